"""The sentence encoder of the package: texts and walks as unit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from kg_retrievers.errors import IndexLoadError
from kg_retrievers.graph.columns import Array
from kg_retrievers.questions.zero_shot import sentence_encoder as module
from kg_retrievers.questions.zero_shot.sentence_encoder import SentenceEncoder, StepMeanings, sentence_encoder

TEXTS = ["who trained x", "x trained who", "", "   ", "Кто снял 東京 𒀀", "🙂", "word " * 500, "\udcff", "x?"]
PHRASES = ["x trained by person ?", "person x lives in town ?", "town ? in country x", "x owns ?"]


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    """The encoder of the package, which remembers nothing yet."""
    return sentence_encoder.__wrapped__()


def test_texts_become_unit_vectors(encoder: SentenceEncoder) -> None:
    vectors = encoder.vectors(TEXTS)
    assert vectors.shape == (len(TEXTS), encoder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert encoder.vectors([]).shape == (0, encoder.dimension)


def test_equal_texts_have_equal_vectors_whatever_is_beside_them(encoder: SentenceEncoder) -> None:
    other = sentence_encoder.__wrapped__()
    np.testing.assert_array_equal(other.vectors([*TEXTS[::-1], "another"])[:-1][::-1], encoder.vectors(TEXTS))


def test_the_order_of_words_counts(encoder: SentenceEncoder) -> None:
    one, turned, again = encoder.vectors(["who trained x", "x trained who", "Who  trained X"])
    assert one @ turned < 0.995
    np.testing.assert_array_equal(one, again)


def test_the_rest_of_a_long_text_is_not_read(encoder: SentenceEncoder) -> None:
    most = "word " * (module.MAX_TOKENS - 2)
    whole, longer, shorter = encoder.vectors([most, f"{most} and who trained x", most.removesuffix("word ") + "x"])
    np.testing.assert_array_equal(whole, longer)
    assert not np.array_equal(whole, shorter)


def test_walks_become_unit_vectors_in_which_the_places_of_steps_count(encoder: SentenceEncoder) -> None:
    steps = StepMeanings(PHRASES, encoder)
    walks = [(0,), (0, 0), (0, 1), (1, 0), (0, 1, 2), (2, 1, 0), (0, 1, 2, 3)]
    vectors = steps.joined(walks)
    assert vectors.shape == (len(walks), encoder.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(steps.joined(walks[4:5])[0], vectors[4], atol=1e-5)
    assert (np.triu(vectors @ vectors.T, 1) < 0.999).all()


def test_a_step_is_encoded_once_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, encoded = sentence_encoder.__wrapped__(), list[str]()
    vectors = encoder.vectors

    def counted(texts: Sequence[str]) -> Array:
        encoded.extend(texts)
        return vectors(texts)

    monkeypatch.setattr(encoder, "vectors", counted)
    meanings = StepMeanings(PHRASES, encoder)
    assert encoded == []
    meanings.joined([(1, 3), (3, 1)])
    meanings.joined([(3,)])
    assert encoded == [PHRASES[1], PHRASES[3]]


@pytest.mark.parametrize("share", [None, 0, 0.5], ids=["missing", "empty", "cut"])
def test_a_damaged_file_is_refused(share: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy, whole = tmp_path / module.ENCODER.name, module.ENCODER.read_bytes()
    if share is not None:
        copy.write_bytes(whole[: int(share * len(whole))])
    monkeypatch.setattr(module, "ENCODER", copy)
    sentence_encoder.cache_clear()  # nothing is kept of a file that cannot be read
    with pytest.raises(IndexLoadError, match="sentence encoder of the package cannot be read"):
        sentence_encoder()


def test_int8_rows_are_read_with_their_scales() -> None:
    rows, scales = np.array([[[1, -2], [3, 127]]], np.int8), np.array([[0.5, 2]], np.float16)
    stored: dict[str, Array] = {"roles": rows, "roles.scales": scales, "bias": np.array([0.5, 2], np.float16)}
    weights = module.read_weights(stored | {"tokens": rows[0], "tokens.scales": scales[0]})
    assert weights["roles"].tolist() == [[[0.5, -1], [6, 254]]]
    assert weights["bias"].tolist() == weights["token_scales"].tolist() == [0.5, 2]
    assert all(weights[name].dtype == np.float32 for name in ("bias", "roles", "token_scales"))
