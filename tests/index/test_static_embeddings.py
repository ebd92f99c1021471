"""The default embeddings: synonyms, typos, the same vectors everywhere; and what the hashed ones keep to as well."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers import GraphIndex, KnowledgeGraph, StaticEmbeddings, default_embeddings, sample
from kg_retrievers.index import HashedEmbeddings, embed, embedding_name
from kg_retrievers.index.embeddings import ArrayEmbeddings
from kg_retrievers.index.static_embeddings import LETTERS

NAMES = ["Her", "Spike Jonze", "Amélie", "$", "1984", "", "Кино", "place of birth"]


def cosines(text: str, *others: str, letters: float = LETTERS) -> list[float]:
    one, *rows = StaticEmbeddings(letters).embed_array([text, *others])
    return [float(one @ row) for row in rows]


HASHED = [HashedEmbeddings(dimension) for dimension in (1, 7, 512)]
STATIC = [StaticEmbeddings(letters) for letters in (0, LETTERS, 1)]


@given(st.lists(st.text(st.characters()), max_size=4), st.sampled_from([*HASHED, *STATIC]))
def test_vectors_are_unit_and_do_not_depend_on_their_neighbours(texts: list[str], embeddings: ArrayEmbeddings) -> None:
    vectors = embeddings.embed_array(texts)
    assert embed(embeddings, texts).dtype == np.float32
    assert vectors.shape == (len(texts), embeddings.dimension)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.allclose(embeddings.embed_query(text), vector, atol=1e-6)
        assert np.allclose(embed(embeddings, [text])[0], vector, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "synonym", "unrelated"),
    [
        ("spouse", "wife", "river"),
        ("place of birth", "birthplace", "official language"),
        ("movies directed", "film director", "bank account"),
        ("manager", "boss", "colour"),
        ("employer", "company", "mountain"),
        ("cost", "price", "author"),
    ],
)
def test_synonyms_are_nearer_than_unrelated_words(text: str, synonym: str, unrelated: str) -> None:
    near, far = cosines(text, synonym, unrelated)
    assert near > far + 0.1


@pytest.mark.parametrize(("right", "typo"), [("Spike Jonze", "spike jonez"), ("Denis Villeneuve", "Dennis Vilneuve")])
def test_typos_are_forgiven(right: str, typo: str) -> None:
    others = [name for name in sample.load_graph().entities if name != right]
    near, *far = cosines(typo, right, *others)
    assert near > max(far)


@pytest.mark.parametrize(
    ("embeddings", "a", "b"),
    [
        *(
            (embeddings, *pair)
            for embeddings in (HASHED[-1], STATIC[1])
            for pair in (("Amélie", "AMELIE"), ("", " \n"))
        ),
        (HASHED[-1], "Ludwig_II of Bavaria", "ludwig ii of bavaria"),
        (HASHED[-1], "Spider-Man", "spider man"),
        (STATIC[1], "Kevin\u00a0Bacon", "kevin bacon"),
    ],
)
def test_case_accents_blanks_and_punctuation_do_not_count(embeddings: ArrayEmbeddings, a: str, b: str) -> None:
    one, other = embeddings.embed_array([a, b])
    assert np.allclose(one, other, atol=1e-6)


def test_copies_pickles_and_threads() -> None:
    embeddings = StaticEmbeddings(0.4)
    wanted = embeddings.embed_array(NAMES)
    pickled = pickle.dumps(embeddings)
    assert len(pickled) < 1000, "the share, not the table"
    for again in (copy.deepcopy(embeddings), pickle.loads(pickled)):
        assert embedding_name(again) == embedding_name(embeddings) != embedding_name(StaticEmbeddings())
        assert np.array_equal(again.embed_array(NAMES), wanted)
    with ThreadPoolExecutor(4) as pool:
        assert all(np.array_equal(found, wanted) for found in pool.map(embeddings.embed_array, [NAMES] * 50))


def test_an_index_finds_a_relation_by_another_word_for_it() -> None:
    graph = KnowledgeGraph.from_triples(
        [("Ann", "spouse", "Bob"), ("Ann", "employer", "Acme"), ("Ann", "born_in", "Rome")]
    )
    found = {
        text: graph.relations[GraphIndex.build(graph, default_embeddings()).nearest_relations([text], k=1)[0].ids[0]]
        for text in ("wife", "works for", "birthplace")
    }
    assert found == {"wife": "spouse", "works for": "employer", "birthplace": "born_in"}
