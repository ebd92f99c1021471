"""The training of the relation scorer, on a few natural questions of our own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kg_retrievers.index.embeddings import mean_rows, token_table
from kg_retrievers.questions.zero_shot.scorer import KINDS, RelationScorer

if TYPE_CHECKING:
    from benchmarks.relation_scorer.examples import Example

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.heavy
ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT))

PROPERTIES = {
    "P131": ("located in the administrative territorial entity", ["is in", "in the region of"]),
    "P276": ("location", ["venue", "place"]),
    "P361": ("part of", ["belongs to", "component of"]),
    "P108": ("employer", ["works for", "working for"]),
    "P463": ("member of", ["membership"]),
    "P17": ("country", ["state", "nation"]),
    "P159": ("headquarters location", ["head office", "based in"]),
    "P19": ("place of birth", ["birthplace", "born in"]),
    "P57": ("director", ["directed by", "film director"]),
    "P22": ("father", ["dad"]),
}

ASKED = {
    "17": ("which country is {} in", "what country contains {}", "name the country of {}"),
    "19": ("where was {} born", "what is the birthplace of {}", "which city was {} born in"),
    "57": ("who directed {}", "who was the director of {}", "what person directed {}"),
    "22": ("who is the father of {}", "who is {} 's dad", "name the father of {}"),
    "108": ("who does {} work for", "which company employs {}", "what is the employer of {}"),
    "463": ("which band is {} a member of", "what group is {} in", "what is {} a member of"),
    "361": ("what is {} a part of", "which series is {} part of", "what does {} belong to"),
}

NAMES = ["velora", "quint harbor", "tamsin oakes", "brillowick", "ostrava hills", "pell", "jorun dahl", "mirefield"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like `relation_language` of the data."""
    folder = tmp_path_factory.mktemp("relation_language")
    rows = [
        {"id": id, "label": label, "aliases": aliases, "type": "WikibaseItem"}
        for id, (label, aliases) in PROPERTIES.items()
    ]
    rows.append({"id": "P569", "label": "date of birth", "aliases": ["born on"], "type": "Time"})
    (folder / "wikidata_properties.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    facts = [
        f"Q{number}\tR{id}\tQ{(number * 5 + int(id)) % 30}\t{text.format(name)}"
        for id, texts in ASKED.items()
        for number, name in enumerate(NAMES)
        for text in texts
    ]
    (folder / "simplequestions_wikidata_train.txt").write_text("\n".join(facts), "utf-8")
    (folder / "simplequestions_wikidata_valid.txt").write_text(facts[0].replace("R17", "P17"), "utf-8")
    lines = [f"f/{name}\tf/people/person/profession\tf/{name}s\twhat is the job of {name}" for name in NAMES]
    (folder / "simplequestions_freebase_valid.txt").write_text("\n".join(lines), "utf-8")
    return folder


@pytest.fixture(scope="module")
def examples(folder: Path) -> list[Example]:
    """Two thousand made questions."""
    from benchmarks.relation_scorer.examples import Examples

    return list(Examples(folder, token_table(), 0).made(2000))


def test_written_scorer_computes_what_was_trained(examples: list[Example], tmp_path: Path) -> None:
    from benchmarks.relation_scorer.batches import StepPool, question_tensors
    from benchmarks.relation_scorer.files import half_precision, read_scorer, write_scorer
    from benchmarks.relation_scorer.net import Net, unit_table
    from benchmarks.relation_scorer.train import train

    table = token_table()
    net = train(table, examples, seed=0, epochs=0.3, log=False)
    write_scorer(tmp_path / "scorer.safetensors", half_precision(net), {"seed": 0})
    weights, training = read_scorer(tmp_path / "scorer.safetensors")
    assert training == {"seed": 0}
    assert {array.dtype for array in weights.values()} == {np.dtype(np.float32)}
    rounded = Net(torch.from_numpy(unit_table(table))).eval()
    rounded.load_state_dict({name: torch.from_numpy(weights[name]) for name in rounded.state_dict()})
    offered = list({step: None for example in examples[:40] for step in example.path})
    scorer, question = RelationScorer(weights, table), examples[0].question
    with torch.no_grad():
        steps, encoded = StepPool(table).encode(rounded, offered), rounded.encode(*question_tensors(table, [question]))
        cover = torch.zeros(1, 2, encoded.states.shape[1])
        logits, ends, _ = rounded.decide(encoded, rounded.start[None], 0, cover, steps)
    names = (mean_rows(table, texts) for texts in zip(*((s.name, s.start, s.end) for s in offered), strict=True))
    states = scorer.steps(
        *names, np.array([int(s.backward) for s in offered]), np.array([KINDS.index(s.kind) for s in offered])
    )
    read = scorer.encode(question)
    decided = scorer.decide(read, scorer.begin(read), 0, states)
    np.testing.assert_allclose(decided.steps, logits.numpy(), atol=2e-4)
    np.testing.assert_allclose(decided.ends, ends.numpy(), atol=2e-4)


def test_training_is_repeatable_and_learns(examples: list[Example]) -> None:
    from benchmarks.relation_scorer.net import Net, unit_table
    from benchmarks.relation_scorer.train import share_right, train

    table = token_table()
    once, again = (train(table, examples[1000:], seed=3, epochs=2, log=False).state_dict() for _ in range(2))
    assert all(torch.equal(once[name], again[name]) for name in once)
    untaught, taught = (Net(torch.from_numpy(unit_table(table))).eval() for _ in range(2))
    taught.load_state_dict(once)
    assert share_right(taught, table, examples[:500]) > share_right(untaught, table, examples[:500])


def test_domains_hold_together() -> None:
    """Each walk of a question over a schema goes on where its step before ends."""
    from benchmarks.sentence_encoder.domains import read_domains

    asked = [(domain, one) for domain in read_domains() for one in domain.asked]
    assert len(asked) > 20_000
    assert all("[x]" in one.text and domain.is_walk(one.steps) for domain, one in asked)
