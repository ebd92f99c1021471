"""Changes of an index against an index built anew, in memory and on disk."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, StaleIndexError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import EntityLinker, GraphIndex, HashedEmbeddings, Mention
from kg_retrievers.index.embeddings import ArrayEmbeddings
from kg_retrievers.index.names import NAME_COLUMNS, name_columns
from kg_retrievers.testing import tiny_graph

EMBEDDINGS = HashedEmbeddings(64)
KEYS = st.sampled_from(["Spike Jonze", "spike_jonze", "Her", "Q1", "Acme Steel Works", "a b c", "!", "Jonze"])
RELATIONS = st.sampled_from(["directed_by", "directed by", "starring", "made in"])
TRIPLES = st.tuples(KEYS, RELATIONS, KEYS)
NAMES = st.sampled_from(["Her", "her", "Spike Jonze", "Big Acme Works", "Acme", "Q1", "New York City Hall"])
CHANGE = st.fixed_dictionaries(
    {
        "added": st.lists(TRIPLES, max_size=5),
        "removed": st.lists(TRIPLES, max_size=5),
        "types": st.dictionaries(
            KEYS, st.lists(st.sampled_from(["film", "made_in"]), max_size=2, unique=True), max_size=2
        ),
        "labels": st.dictionaries(KEYS, NAMES, max_size=2),
        "aliases": st.dictionaries(KEYS, st.lists(NAMES, max_size=2, unique=True), max_size=2),
    }
)
TEXTS = ["Spike Jonze", "jonze", "Her", "Q1", "acme works", "!", "directed by", "New York"]
QUESTIONS = ["Who directed Her?", "what did Spike Jonze make", "Is ASW in New York City Hall?", "Q1!", "acme"]


class CountedEmbeddings(ArrayEmbeddings):
    """Hashed embeddings that keep the texts that they were asked for."""

    model = "counted"
    dimension = 64

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_array(self, texts: Sequence[str]) -> Array:
        self.texts += texts
        return EMBEDDINGS.embed_array(texts)


def possible(change: Any, graph: KnowledgeGraph) -> dict[str, Any]:
    """Return what of a change the graph can take."""
    known = {*graph.entities, *change["types"]} | {key for head, _, tail in change["added"] for key in (head, tail)}
    kept = {kind: {key: value for key, value in change[kind].items() if key in known} for kind in ("labels", "aliases")}
    return change | kept | {"removed": [triple for triple in change["removed"] if triple in graph]}


def anew(graph: KnowledgeGraph, triples: bool = False) -> GraphIndex:
    """Build an index of the same content, in another order."""
    facts = sorted(graph.triples())
    keys = list(graph.entities)
    labels = {key: graph.label(key) for key in keys}
    aliases, types = {key: graph.aliases(key) for key in keys}, {key: graph.types_of(key) for key in keys}
    again = KnowledgeGraph.from_triples(facts, labels=labels, aliases=aliases, types=types)
    return GraphIndex.build(again, EMBEDDINGS, triples=triples)


def near(index: GraphIndex, texts: Sequence[str]) -> list[dict[str, float]]:
    """Return the distance of every entity, relation and type from each text."""
    graph, found = index.graph, []
    searches = (
        (index.nearest_entities, graph.entities, max(1, len(graph.names))),
        (index.nearest_relations, graph.relations, max(1, len(graph.relations))),
        (index.nearest_types, graph.types, max(1, len(graph.types))),
    )
    for nearest, table, k in searches:
        for of_text in nearest(texts, k):
            rows = zip(of_text.ids.tolist(), of_text.distances.tolist(), strict=True)
            found.append({table[id]: round(distance, 5) for id, distance in rows})
    return found


def linked(index: GraphIndex) -> list[Any]:
    """Return which entities each question names."""
    linker, questions = EntityLinker(index), list[list[Mention]]()
    for question in QUESTIONS:
        questions.append([])
        with suppress(EntityLinkingError):
            questions[-1] = linker.link(question)
    return [
        [
            (mention.text, {(one.entity, one.how, round(one.score, 5)) for one in mention.candidates})
            for mention in mentions
        ]
        for mentions in questions
    ]


def check_equal(index: GraphIndex, other: GraphIndex) -> None:
    assert near(index, TEXTS) == near(other, TEXTS)
    assert linked(index) == linked(other)


some_changes = given(st.lists(TRIPLES, max_size=8), st.lists(CHANGE, min_size=1, max_size=4), st.booleans())


@settings(max_examples=2)
@some_changes
def test_changed_indexes_equal_one_built_anew(facts: Any, changes: Any, triples: bool) -> None:
    check_changes(facts, changes, triples)


@pytest.mark.heavy
@settings(max_examples=100)
@some_changes
def test_many_changed_indexes_equal_those_built_anew(facts: Any, changes: Any, triples: bool) -> None:
    check_changes(facts, changes, triples)


def check_changes(facts: Any, changes: Any, triples: bool) -> None:
    graph = KnowledgeGraph.from_triples(facts)
    with TemporaryDirectory() as folder:
        index = GraphIndex.build(graph, EMBEDDINGS, folder, triples=triples)
        for change in changes:
            change = possible(change, index.graph)
            index = index.with_changes(**change)
            update = GraphIndex.update(folder, EMBEDDINGS, **change)
            assert update.index.graph.fingerprint == index.graph.fingerprint
            found, fresh = update.index._linking or {}, name_columns(update.index.graph)
            assert all(np.array_equal(found[name], fresh[name]) for name in NAME_COLUMNS if name != "longest")
        other = anew(index.graph, triples)
        check_equal(index, other)
        check_equal(update.index, other)
        if triples and len(index.graph):
            ids = [list(other.graph.triples()).index(triple) for triple in index.graph.triples()]
            similar = other.triple_similarities("spike jonze")[ids]
            for one in (index, update.index):
                assert np.allclose(one.triple_similarities("spike jonze"), similar, atol=1e-5)
                assert np.allclose(one.triple_similarities("spike jonze", [len(ids) - 1]), similar[-1:], atol=1e-5)


# --- by hand ---


def test_only_what_is_new_is_embedded(tmp_path: Path) -> None:
    embeddings = CountedEmbeddings()
    index = GraphIndex.build(tiny_graph(), embeddings, tmp_path, triples=True)
    embeddings.texts.clear()
    changes: Any = {
        "added": [("Her", "has_genre", "New Genre"), ("Her", "shot_in", "2013")],
        "labels": {"2013": "MMXIII"},
    }
    index.with_changes(**changes)
    reworded = {triple for triple in tiny_graph().triples() if "2013" in triple}
    assert {"New Genre", "shot in", "MMXIII", "Her has genre New Genre"} < set(embeddings.texts)
    assert not {"Spike Jonze", "has genre"} & set(embeddings.texts)
    count = len(embeddings.texts)
    assert count == 5 + len(reworded), "three texts, and the triples that are new or called otherwise"
    embeddings.texts.clear()
    assert GraphIndex.update(tmp_path, embeddings, **changes).embedded == count
    probe = "directed by"  # compared once whenever an index is opened
    assert len([text for text in embeddings.texts if text != probe]) == count


def test_an_update_says_what_it_did(tmp_path: Path) -> None:
    graph = tiny_graph()
    GraphIndex.build(graph, EMBEDDINGS, tmp_path)
    fact = graph.triple(0)
    update = GraphIndex.update(
        tmp_path,
        EMBEDDINGS,
        added=[fact, ("Her", "r", "x"), ("Her", "r", "x")],
        removed=[graph.triple(1)],
        source="one",
    )
    assert (update.added, update.present, update.removed, update.embedded) == (1, 2, 1, 2)
    assert update.index.graph.sources(("Her", "r", "x")) == ["one"]
    assert update.index.graph.sources(fact) == ["one"]
    assert fact in GraphIndex.update(tmp_path, EMBEDDINGS, removed_sources=["one"]).index.graph  # it was there before


def test_a_wrong_change_leaves_the_folder_as_it_is(tmp_path: Path) -> None:
    index = GraphIndex.build(tiny_graph(), EMBEDDINGS, tmp_path)
    files = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    with pytest.raises(InvalidArgumentError, match="is not in the graph"):
        GraphIndex.update(tmp_path, EMBEDDINGS, added=[("a", "r", "b")], removed=[("a", "r", "c")])
    with pytest.raises(StaleIndexError, match="was built with"):
        GraphIndex.update(tmp_path, HashedEmbeddings(32), added=[("a", "r", "b")])
    assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == files
    assert GraphIndex.open(tmp_path, EMBEDDINGS).fingerprint == index.fingerprint
