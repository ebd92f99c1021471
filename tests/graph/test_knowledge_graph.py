"""KnowledgeGraph: in, out, on disk, and questions of fact."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, RelationSchema, Triple, adjacency, building
from kg_retrievers.graph import columns as columns_module
from kg_retrievers.graph.storage.parts import _checksum as checksum_of
from kg_retrievers.testing import tiny_graph

FACTS = [
    ("Her", "directed_by", "Spike Jonze"),
    ("Her", "written_by", "Spike Jonze"),
    ("Adaptation", "directed_by", "Spike Jonze"),
    ("Synecdoche", "contains", "Synecdoche"),
]


def facts_of(graph: KnowledgeGraph) -> dict[str, Any]:
    """Return everything a graph says, whatever its numbers are."""
    return {
        "triples": sorted(graph.triples()),
        "entities": {
            key: (graph.label(key), sorted(graph.aliases(key)), sorted(graph.types_of(key))) for key in graph.entities
        },
        "relations": sorted(graph.relations),
    }


# --- from triples ---


def test_entities_keep_the_order_of_first_occurrence() -> None:
    graph = KnowledgeGraph.from_triples(iter(FACTS))
    assert list(graph.triples()) == [Triple(*fact) for fact in FACTS]
    assert list(graph.entities) == ["Her", "Spike Jonze", "Adaptation", "Synecdoche"]
    assert list(graph.relations) == ["directed_by", "written_by", "contains"]
    assert len(graph) == 4
    assert repr(graph) == "KnowledgeGraph(4 entities, 3 relations, 4 triples)"


ENDS = st.sampled_from("abcdefgh")
SAID = st.dictionaries(st.sampled_from("aceghijk"), st.lists(ENDS, min_size=1, max_size=2), max_size=4)


@given(st.lists(st.tuples(ENDS, st.sampled_from("rst"), ENDS), max_size=30), SAID, SAID, st.integers(1, 9))
def test_a_large_graph_is_made_in_files_as_in_memory(
    facts: list[tuple[str, str, str]], aliases: dict[str, list[str]], types: dict[str, list[str]], size: int
) -> None:
    described: dict[str, Any] = {"aliases": aliases, "types": types, "labels": {key: key * 2 for key in aliases}}
    in_memory = KnowledgeGraph.from_triples(facts, **described)
    with ExitStack() as limits:
        limits.enter_context(patch.multiple(adjacency, PART=size, BLOCK=2))
        limits.enter_context(patch.multiple(building, MOST_TEXTS=size, BLOCK=2, MAPPED=size))
        limits.enter_context(patch.object(columns_module, "MAPPED", 1))
        in_files = KnowledgeGraph.from_triples(facts, **described)
    assert in_files.fingerprint == in_memory.fingerprint
    assert in_files.duplicates == in_memory.duplicates


def test_names_and_types() -> None:
    graph = KnowledgeGraph.from_triples(
        [("Q1", "r", "Q2")],
        labels={"Q1": "Dune", "Q2": "Dune", "Q3": "千"},
        aliases={"Q1": ["Дюна", "Дюна"], "Q4": ["Dune"]},
        types={"Q1": ["film", "film", "book"], "Q5": ["film"]},
    )
    assert list(graph.entities) == ["Q1", "Q2", "Q3", "Q4", "Q5"]
    assert graph.entities_named("Dune") == ["Q1", "Q2", "Q4"]
    assert graph.entities_named("Дюна") == ["Q1"]
    assert graph.entities_named("Q4") == ["Q4"]
    assert graph.entities_named("Q1") == graph.entities_named("dune") == []
    assert (graph.label("Q1"), graph.label("Q4"), graph.label("nobody")) == ("Dune", "Q4", "nobody")
    assert (graph.aliases("Q1"), graph.aliases("Q2")) == (["Дюна"], [])
    assert (graph.types_of("Q1"), graph.types_of("Q2")) == (["film", "book"], [])
    assert graph.name_entities(graph.names.find("Dune")) == [0, 1, 3]
    assert graph.type_entities(graph.types.find("film")).tolist() == [0, 4]


@pytest.mark.parametrize(
    ("triples", "names", "words"),
    [
        ([("a", "r")], {}, "triple 1 must be three non-empty texts"),
        ([("a", "r", "b"), ("a", "", "b")], {}, "triple 2 must be three"),
        ([("a", "r", 3)], {}, "triple 1 must be three.*Write numbers and dates as texts"),
        (["abc"], {}, "triple 1 must be three"),
        ([("a", "r", "\ud800")], {}, "half a surrogate pair"),
        ([], {"labels": {"a": ""}}, "a label of 'a' must be a non-empty text"),
        ([], {"aliases": {"a": [""]}}, "a alias of 'a' must be"),
        ([], {"aliases": {"a": "b"}}, "aliases of 'a' must be a list"),
        ([], {"types": {"a": "film"}}, "types of 'a' must be a list"),
    ],
    ids=str,
)
def test_what_is_no_graph(triples: Any, names: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        KnowledgeGraph.from_triples(triples, **names)


def test_empty_graph(tmp_path: Path) -> None:
    graph = KnowledgeGraph.from_triples([])
    graph.save(tmp_path)
    for empty in (graph, KnowledgeGraph.open(tmp_path), KnowledgeGraph.from_networkx(graph.to_networkx())):
        assert len(empty) == len(empty.entities) == len(empty.relations) == 0
        assert list(empty.triples()) == []
        assert empty.schema().relations == ()
        assert empty.fingerprint == graph.fingerprint


# --- questions of fact ---


@pytest.mark.parametrize("head", [None, "Her", "Spike Jonze", "Synecdoche"])
@pytest.mark.parametrize("relation", [None, "directed_by", "contains"])
@pytest.mark.parametrize("tail", [None, "Spike Jonze", "Synecdoche"])
def test_triples(head: str | None, relation: str | None, tail: str | None) -> None:
    wanted = (head, relation, tail)
    expected = [fact for fact in FACTS if all(want in (None, text) for want, text in zip(wanted, fact, strict=True))]
    assert list(KnowledgeGraph.from_triples(FACTS).triples(head, relation, tail)) == expected


@pytest.mark.parametrize("wanted", [("nobody",), (None, "unheard_of"), ("Her", None, "nobody")])
def test_triples_of_an_unknown_entity_or_relation(wanted: tuple[str | None, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"no (entity|relation) .*(nobody|unheard_of)"):
        list(KnowledgeGraph.from_triples(FACTS).triples(*wanted))


def test_contains() -> None:
    graph = KnowledgeGraph.from_triples(FACTS)
    assert all(fact in graph for fact in FACTS)
    strange: list[Any] = [
        ("Her", "directed_by", "Her"), ("Her", "directed_by"), ("Her", None, "Spike Jonze"), ("Her", 3, "Her"),
        "Her", None, list(FACTS[0]),
    ]  # fmt: skip
    assert not any(thing in graph for thing in strange)


@pytest.mark.parametrize("ask", [KnowledgeGraph.aliases, KnowledgeGraph.types_of])
def test_unknown_key(ask: Callable[[KnowledgeGraph, str], Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="no entity with the key 'nobody'"):
        ask(tiny_graph(), "nobody")


def test_equal_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert columns_module.hash_of(b"Spike Jonze").hex() == "429ce5905b3948d8", "another hash needs another format"
    monkeypatch.setattr(columns_module, "hash_of", lambda encoded: bytes(8))
    table = columns_module.StringTable.from_strings("cab")
    assert [table.find(text) for text in "abcd"] == [1, 2, 0, -1]
    others = columns_module.StringTable.from_strings("dba")
    assert table.ids_of(others).tolist() == [-1, 2, 1]
    assert [table.joined(others.subset(np.array([True, False, False]))).find(text) for text in "abcd"] == [1, 2, 0, 3]


def test_schema() -> None:
    graph = tiny_graph()
    schema = graph.schema()
    assert (schema.entities, schema.triples) == (len(graph.entities), 16)
    assert [row.triples for row in schema.relations] == [7, 4, 3, 1, 1]
    assert schema.relations[0] == RelationSchema("directed_by", 7, ("animated film", "film"), ("director", "person"))
    assert schema.types == {"film": 5, "director": 2, "person": 2, "animated film": 1, "genre": 1}
    assert list(schema.types) == ["film", "director", "person", "animated film", "genre"]


def types_below(*facts: tuple[str, str, str], **names: Any) -> dict[str, set[str]]:
    """Return the types below each, by name."""
    graph = KnowledgeGraph.from_triples(facts, **names)
    return {name: {graph.types[kind] for kind in kinds} for name, kinds in graph.types_below.items()}


@pytest.mark.parametrize("below", ["rdfs:subClassOf", "http://www.w3.org/2000/01/rdf-schema#subClassOf"])
def test_types_are_below_others_over_two_levels(below: str) -> None:
    facts = [("Short", below, "Film"), ("Film", below, "Work"), ("Her", "shown in", "Graz")]
    found = types_below(*facts, types={"Her": ["Film"], "Dot": ["Short"]})
    assert found == {"Film": {"Film", "Short"}, "Short": {"Short"}, "Work": {"Film", "Short"}}
    graph = KnowledgeGraph.from_triples(facts)
    assert [graph.are_classes([key]) for key in ("Short", "Film", "Work", "Her", "nobody")] == [True] * 3 + [False] * 2


def test_types_are_below_others_by_the_labels_of_classes() -> None:
    labels, types = {"Q1": "short film", "Q2": "film"}, {"Her": ["film"], "Dot": ["short film"]}
    found = types_below(("Q1", "rdfs:subClassOf", "Q2"), labels=labels, types=types)
    assert found == {"film": {"film", "short film"}, "short film": {"short film"}}


def test_types_in_a_cycle_are_all_below_each_other() -> None:
    facts = [("A", "rdfs:subClassOf", "B"), ("B", "rdfs:subClassOf", "C"), ("C", "rdfs:subClassOf", "A")]
    assert types_below(*facts, types={"x": ["A"], "y": ["B"]}) == {name: {"A", "B"} for name in "ABC"}


def test_a_graph_without_classes_has_types_alone() -> None:
    assert types_below(*FACTS, types={"Her": ["film"]}) == {"film": {"film"}}
    assert not KnowledgeGraph.from_triples(FACTS).are_classes(["Her"])


def test_a_class_with_other_facts_is_an_entity() -> None:
    graph = KnowledgeGraph.from_triples([("Dog", "rdfs:subClassOf", "Animal"), ("Dog", "eats", "Meat")])
    assert not graph.are_classes(["Dog"])


# --- networkx ---


def test_edge_key_is_a_relation() -> None:
    source = nx.MultiDiGraph()
    source.add_edge("a", "b", key="r")
    source.add_edge("a", "b", key="s", relation="t")
    assert set(KnowledgeGraph.from_networkx(source).triples()) == {("a", "r", "b"), ("a", "t", "b")}


# --- on disk ---


def is_mapped(array: object) -> bool:
    """Whether an array is a view of a file."""
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


def test_a_graph_is_saved_and_pickled_whole(tmp_path: Path) -> None:
    graph = KnowledgeGraph.from_triples([*FACTS, FACTS[0]], aliases={"Her": ["Ona"]}, types={"Her": ["film"]})
    graph.save(tmp_path / "deep" / "down")
    opened = KnowledgeGraph.open(str(tmp_path / "deep" / "down"))
    assert is_mapped(opened.adjacency.neighbors)
    for again in (opened, pickle.loads(pickle.dumps(graph))):
        assert not again.adjacency.neighbors.flags.writeable
        assert facts_of(again) == facts_of(graph)
        assert again.fingerprint == graph.fingerprint
        assert (again.duplicates, again.skipped) == (1, 0)
        assert again.schema() == graph.schema()


def test_a_graph_in_a_folder_is_pickled_as_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = KnowledgeGraph.from_triples((str(n), "next", str(n + 1)) for n in range(1000))
    many.save(tmp_path / "graph")
    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps(KnowledgeGraph.open("graph"))
    monkeypatch.chdir("/")
    assert len(pickled) < 1000
    assert is_mapped(pickle.loads(pickled).adjacency.neighbors)
    shutil.rmtree(tmp_path / "graph")
    with pytest.raises(GraphLoadError, match="no such folder"):
        pickle.loads(pickled)


def test_a_graph_whose_folder_holds_another_by_now(tmp_path: Path) -> None:
    tiny_graph().save(tmp_path)
    graph = KnowledgeGraph.open(tmp_path)
    pickled = pickle.dumps(graph)
    KnowledgeGraph.from_triples(FACTS).save(tmp_path)
    with pytest.raises(GraphLoadError, match=r"another graph than the one that was pickled\. Pickle it again"):
        pickle.loads(pickled)
    assert facts_of(pickle.loads(pickle.dumps(graph))) == facts_of(graph), "its columns are pickled now"


def edit_manifest(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the part "graph", as a save of something else would."""
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest["parts"]["graph"])
    del manifest["checksum"]
    (folder / "manifest.json").write_text(json.dumps(manifest | {"checksum": checksum_of(manifest)}))


def column(folder: Path, name: str = "adjacency.neighbors") -> Path:
    return next(folder.glob(f"graph.{name}-*.column"))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (shutil.rmtree, "no such folder"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "manifest is damaged"),
        (lambda folder: (folder / "manifest.json").write_text('{"format": 4}'), "manifest is damaged"),
        (lambda folder: (folder / "manifest.json").write_text('{"format": 9}'), "format 9, this package reads 4"),
        (lambda folder: edit_manifest(folder, lambda graph: graph["meta"].clear()), "duplicates, skipped, fingerprint"),
        (lambda folder: edit_manifest(folder, lambda graph: graph["columns"].pop("labels")), "labels is missing"),
        (
            lambda folder: edit_manifest(folder, lambda graph: graph["columns"]["labels"].update(file="/etc/passwd")),
            "manifest is damaged",
        ),
        (
            lambda folder: edit_manifest(folder, lambda graph: graph["columns"]["labels"].update(dtype="|O")),
            "manifest is damaged",
        ),
        (lambda folder: column(folder).unlink(), "the column cannot be read"),
        (lambda folder: column(folder).write_bytes(column(folder).read_bytes()[:-4]), "124 bytes, wanted 128"),
    ],
)
def test_damaged_folder(tmp_path: Path, damage: Callable[[Path], Any], words: str) -> None:
    folder = tmp_path / "graph"
    tiny_graph().save(folder)
    damage(folder)
    with pytest.raises(GraphLoadError, match=words) as caught:
        KnowledgeGraph.open(folder)
    assert str(caught.value.path).startswith(str(folder))


# --- changes and fingerprints ---


def test_fingerprint_changes_with_everything() -> None:
    base: dict[str, Any] = {
        "triples": FACTS,
        "labels": {"Her": "H"},
        "aliases": {"Her": ["O"]},
        "types": {"Her": ["f"]},
    }
    others: list[dict[str, Any]] = [
        {"triples": FACTS[:3]}, {"triples": [*FACTS, ("a", "r", "b")]}, {"labels": {"Her": "I"}},
        {"aliases": {"Her": ["P"]}}, {"types": {"Her": ["g"]}}, {"types": {}},
        {"labels": {}, "aliases": {"Her": ["H"]}},
    ]  # fmt: skip
    prints = [KnowledgeGraph.from_triples(**base | other).fingerprint for other in ({}, *others)]
    assert len(set(prints)) == len(prints)
    assert KnowledgeGraph.from_triples(**base).fingerprint == prints[0]
    assert len(prints[0]) == 32


# --- threads and any graph at all ---


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4) | st.sampled_from("abc")
named = st.dictionaries(texts, st.lists(texts, max_size=2), max_size=3)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(texts, texts, texts), max_size=8), st.dictionaries(texts, texts, max_size=3), named, named)
@example(triples=[], labels={}, aliases={"a": ["a"]}, types={})
def test_round_trips(
    tmp_path_factory: pytest.TempPathFactory,
    triples: list[tuple[str, str, str]],
    labels: dict[str, str],
    aliases: dict[str, list[str]],
    types: dict[str, list[str]],
) -> None:
    graph = KnowledgeGraph.from_triples(triples, labels=labels, aliases=aliases, types=types)
    assert set(graph.triples()) == set(triples)
    assert len(graph) + graph.duplicates == len(triples)
    assert set(graph.entities) == {key for head, _, tail in triples for key in (head, tail)} | {
        *labels, *aliases, *types
    }  # fmt: skip
    for key in graph.entities:
        assert graph.label(key) == labels.get(key, key)
        assert graph.aliases(key) == list(dict.fromkeys(aliases.get(key, [])))
        for name in (graph.label(key), *graph.aliases(key)):
            assert key in graph.entities_named(name)
        assert all(key in [graph.entities[i] for i in graph.type_entities(graph.types.find(kind))]
                   for kind in graph.types_of(key))  # fmt: skip
    folder = tmp_path_factory.mktemp("graph")
    graph.save(folder)
    again = KnowledgeGraph.open(folder)
    assert (facts_of(again), again.fingerprint) == (facts_of(graph), graph.fingerprint)
    assert facts_of(KnowledgeGraph.from_networkx(graph.to_networkx())) == facts_of(graph)
    assert facts_of(graph.with_changes()) == facts_of(graph)


@pytest.mark.parametrize("id", [-1, 99, 10**400])
def test_an_id_that_is_none_is_told(id: int) -> None:
    graph = KnowledgeGraph.from_triples([("Her", "directed by", "Spike Jonze")])
    for look in (graph.triple, graph.entity_value, graph.entity_types, graph.name_entities, graph.type_entities):
        with pytest.raises(InvalidArgumentError, match="wanted the id of a"):
            look(id)


@pytest.mark.parametrize("rows", ["Her,directed_by,Spike Jonze", {"Her": "Spike Jonze"}])
def test_one_text_is_no_list_of_triples(rows: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"wanted rows of \(head, relation, tail\).*from_file\(path\)"):
        KnowledgeGraph.from_triples(rows)
