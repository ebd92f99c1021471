"""The relation scorer in numpy, against the torch module that is trained."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index.embeddings import mean_rows, token_table
from kg_retrievers.questions.zero_shot.scorer import KINDS, MAX_TOKENS, SCORER, question_ids, relation_scorer
from kg_retrievers.questions.zero_shot.steps import GraphSteps, relation_words, value_kind

torch = pytest.importorskip("torch")
sys.path.append(str(Path(__file__).parents[3]))

STEPS = [
    ("directed by", "", "person", False, ""),
    ("release year", "work", "", True, "date"),
    ("genre", "", "", False, ""),
]


def test_numpy_computes_what_torch_was_trained_as() -> None:
    from safetensors.torch import load_file

    from benchmarks.relation_scorer.batches import StepPool, question_tensors
    from benchmarks.relation_scorer.examples import Step
    from benchmarks.relation_scorer.net import Net, unit_table

    table, scorer = token_table(), relation_scorer()
    weights = {name: tensor.float() for name, tensor in load_file(SCORER).items() if not name.startswith("ranking.")}
    net = Net(torch.from_numpy(unit_table(table))).eval()
    net.load_state_dict(weights)
    text = "what did [x] direct together with [y] in the year"
    with torch.no_grad():
        offered = StepPool(table).encode(net, [Step(*step, ("", False)) for step in STEPS])
        encoded = net.encode(*question_tensors(table, [text]))
        state, cover = net.start.expand(1, -1), torch.zeros(1, 2, encoded.states.shape[1])
        first, ends, cover = net.decide(encoded, state, 0, cover, offered)
        second, later_ends, _ = net.decide(encoded, net.cell(offered.states[[1]], state), 1, cover, offered)
    names, starts, lasts = (mean_rows(table, [step[part] for step in STEPS]) for part in range(3))
    directions = np.array([int(step[3]) for step in STEPS])
    steps = scorer.steps(names, starts, lasts, directions, np.array([KINDS.index(step[4]) for step in STEPS]))
    question = scorer.encode(text)
    prefixes = scorer.begin(question)
    decided = scorer.decide(question, prefixes, 0, steps)
    longer = scorer.extend(prefixes, decided, np.array([0]), steps.take(np.array([1])))
    later = scorer.decide(question, longer, 1, steps)
    for ours, theirs in ((decided.steps, first), (decided.ends, ends), (later.steps, second), (later.ends, later_ends)):
        np.testing.assert_allclose(ours, theirs.numpy(), atol=2e-4)


def test_question_is_read_from_its_topic() -> None:
    ids, positions = question_ids(token_table(), "who wrote [x]")
    assert ids[-1] == -1
    assert positions[-1] - positions[0] == 2
    ids, positions = question_ids(token_table(), "word " * 100)
    assert len(ids) == MAX_TOKENS
    assert len(set(positions)) == 1


@pytest.mark.parametrize(
    ("text", "kind"),
    [("1987", "date"), ("1987-03-02", "date"), ("12", "number"), ("3.5 km", "number"), ("Route 66", ""), ("", "")],
)
def test_values_have_a_kind(text: str, kind: str) -> None:
    assert value_kind(text) == kind


def test_relation_names_of_all_kinds_become_words() -> None:
    assert relation_words("birthPlace") == ("birth place", "")
    assert relation_words("/film/film/release_date_s./film/film_regional_release_date/film_release_region") == (
        "release date s film region",
        "film",
    )
    assert relation_words("is located in") == ("is located in", "")
    assert relation_words("dbo:birthPlace") == ("birth place", "")
    assert relation_words("time 12:30") == ("time 12:30", "")


def test_graph_without_relations_has_no_steps() -> None:
    steps = GraphSteps(KnowledgeGraph.from_triples([]), relation_scorer(), token_table())
    assert len(steps.names) == 0
    assert len(steps.states.states) == 0
