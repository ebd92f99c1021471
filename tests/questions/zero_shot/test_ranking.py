"""The features by which walks are ranked."""

from __future__ import annotations

import numpy as np
import pytest

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index.embeddings import token_table
from kg_retrievers.questions.zero_shot.ranking import WALK_FEATURES, Asked, coverage, walk_features
from kg_retrievers.questions.zero_shot.scorer import relation_scorer
from kg_retrievers.questions.zero_shot.sentence_encoder import StepMeanings, sentence_encoder
from kg_retrievers.questions.zero_shot.steps import Again, GraphSteps, question_words

#: The labels of "wrote" forward and backward, and of "lives in" forward.
WROTE, WRITTEN_BY, LIVES_IN = 0, 1, 2


@pytest.mark.parametrize("asked", [True, False])
def test_walks_that_turn_back_are_told_and_whether_that_is_asked_for(asked: bool) -> None:
    graph = KnowledgeGraph.from_triples([("Ann", "wrote", "Dawn"), ("Ann", "lives in", "Oslo")])
    steps = GraphSteps(graph, relation_scorer(), token_table())
    walks = [(WRITTEN_BY, WROTE), (WRITTEN_BY, LIVES_IN), (WRITTEN_BY, WROTE, WRITTEN_BY)]
    covered = coverage(question_words(token_table(), "what else did the author write"), walks, steps)
    encoder = sentence_encoder()
    again = Asked((), None, None, None, np.zeros(encoder.dimension), Again(asked, False))
    meanings = StepMeanings(steps.phrases, encoder)
    features = walk_features(again, walks, [-1.0] * len(walks), covered, steps, meanings)
    of_walks = dict(zip(WALK_FEATURES, features.T.tolist(), strict=True))
    assert of_walks["turns back"] == [1, 0, 1]
    assert of_walks["turns back as asked"] == ([1, 0, 1] if asked else [0, 0, 0])
    assert of_walks["relations repeated"] == [0, 0, 1]
    assert of_walks["two steps"] == [1, 1, 0]
    assert of_walks["three steps"] == [0, 0, 1]
