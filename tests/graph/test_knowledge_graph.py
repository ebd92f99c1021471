"""KnowledgeGraph: in, out, on disk, and questions of fact."""

from __future__ import annotations

import copy
import json
import os
import pickle
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, RelationSchema, Triple
from kg_retrievers.graph import columns as columns_module
from kg_retrievers.graph.storage.manifest import Manifest, SavedColumn, SavedPart
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


def test_repeated_triples_are_counted() -> None:
    graph = KnowledgeGraph.from_triples([*FACTS, FACTS[0], list(FACTS[0])])
    assert (len(graph), graph.duplicates, graph.skipped) == (4, 2, 0)


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
    assert graph.type_entities(graph.types.find("film")) == [0, 4]


@pytest.mark.parametrize(
    ("triples", "names", "words"),
    [
        ([("a", "r")], {}, "triple 1 must be three non-empty texts"),
        ([("a", "r", "b", "c")], {}, "triple 1 must be three"),
        ([("a", "r", "b"), ("a", "", "b")], {}, "triple 2 must be three"),
        ([("a", "r", None)], {}, "triple 1 must be three"),
        ([("a", "r", 3)], {}, "triple 1 must be three"),
        (["abc"], {}, "triple 1 must be three"),
        (("a", "r", "b"), {}, "triple 1 must be three"),
        ([("a", "r", "\ud800")], {}, "half a surrogate pair"),
        ([], {"labels": {"a": "\udfff"}}, "half a surrogate pair"),
        ([], {"labels": {"a": ""}}, "a label of 'a' must be a non-empty text"),
        ([], {"labels": {"a": 3}}, "a label of 'a' must be"),
        ([], {"aliases": {"a": [""]}}, "a alias of 'a' must be"),
        ([], {"aliases": {"a": "b"}}, "aliases of 'a' must be a list"),
        ([], {"types": {"a": [None]}}, "a type of 'a' must be"),
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
        assert list(empty.triples()) == list(empty.triples("Her")) == []
        assert empty.schema().relations == ()
        assert empty.fingerprint == graph.fingerprint


# --- questions of fact ---


@pytest.mark.parametrize("head", [None, "Her", "Spike Jonze", "Synecdoche", "nobody"])
@pytest.mark.parametrize("relation", [None, "directed_by", "contains", "unheard_of"])
@pytest.mark.parametrize("tail", [None, "Spike Jonze", "Synecdoche", "nobody"])
def test_triples(head: str | None, relation: str | None, tail: str | None) -> None:
    wanted = (head, relation, tail)
    expected = [fact for fact in FACTS if all(want in (None, text) for want, text in zip(wanted, fact, strict=True))]
    assert list(KnowledgeGraph.from_triples(FACTS).triples(head, relation, tail)) == expected


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


def test_string_tables_are_sequences() -> None:
    table = KnowledgeGraph.from_triples(FACTS).entities
    assert (table[0], table[-1], table[1:3]) == ("Her", "Synecdoche", ["Spike Jonze", "Adaptation"])
    assert "Her" in table
    assert 3 not in table
    assert table.find("\ud800") == -1
    for index in (4, -5):
        with pytest.raises(IndexError, match="holds 4 strings"):
            table[index]


def test_many_strings_are_compared_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "STRINGS_AT_ONCE", 3)
    table = columns_module.StringTable.from_strings(["", "é", *map(str, range(11))])
    others = columns_module.StringTable.from_strings([*map(str, range(9, 13)), "é", "x", ""])
    assert table.ids_of(others).tolist() == [11, 12, -1, -1, 1, -1, 0]


def test_equal_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "hash_of", lambda encoded: 7)
    monkeypatch.setattr(columns_module, "hashes_of", lambda offsets, data: np.full(len(offsets) - 1, 7, np.uint64))
    table = columns_module.StringTable.from_strings("cab")
    assert [table.find(text) for text in "abcd"] == [1, 2, 0, -1]
    others = columns_module.StringTable.from_strings("dba")
    assert table.ids_of(others).tolist() == [-1, 2, 1]
    assert [table.joined(others.subset(np.array([True, False, False]))).find(text) for text in "abcd"] == [1, 2, 0, 3]


def test_adjacency_holds_every_triple_twice() -> None:
    graph = tiny_graph()
    rows = graph.adjacency
    for entity in range(len(graph.entities)):
        row = slice(rows.indptr[entity], rows.indptr[entity + 1])
        numbers = rows.row_triples(entity)
        for neighbor, label, number in zip(rows.neighbors[row], rows.labels[row], numbers, strict=True):
            ends = (entity, int(neighbor)) if label % 2 == 0 else (int(neighbor), entity)
            expected = Triple(graph.entities[ends[0]], graph.relations[int(label) >> 1], graph.entities[ends[1]])
            assert graph.triple(int(number)) == expected
    assert sorted(rows.backward_triples.tolist()) == [*range(len(graph))]


def test_schema() -> None:
    graph = tiny_graph()
    schema = graph.schema()
    assert (schema.entities, schema.triples) == (len(graph.entities), 16)
    assert [row.triples for row in schema.relations] == [7, 4, 3, 1, 1]
    assert schema.relations[0] == RelationSchema("directed_by", 7, ("animated film", "film"), ("director", "person"))
    assert schema.types == {"film": 5, "director": 2, "person": 2, "animated film": 1, "genre": 1}
    assert list(schema.types) == ["film", "director", "person", "animated film", "genre"]


# --- networkx ---


def test_networkx_both_ways() -> None:
    graph = tiny_graph()
    out = graph.to_networkx()
    assert out.number_of_edges() == len(graph)
    assert out.nodes["Q155653"] == {
        "label": "千と千尋の神隠し", "aliases": ["Spirited Away"], "types": ["film", "animated film"],
    }  # fmt: skip
    assert set(out["Her"]["Spike Jonze"]) == {"directed_by", "written_by"}
    assert out.has_edge("Synecdoche, New York", "Synecdoche, New York")
    assert facts_of(KnowledgeGraph.from_networkx(out)) == facts_of(graph)


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_from_networkx(kind: Any) -> None:
    source = kind()
    source.add_edge("Her", "Spike Jonze", name="directed_by")
    source.add_edge(1, 1, name="is")
    source.add_node("alone")
    graph = KnowledgeGraph.from_networkx(source, relation="name")
    assert set(graph.triples()) == {("Her", "directed_by", "Spike Jonze"), ("1", "is", "1")}
    assert set(graph.entities) == {"Her", "Spike Jonze", "1", "alone"}


def test_edge_key_is_a_relation() -> None:
    source = nx.MultiDiGraph()
    source.add_edge("a", "b", key="r")
    source.add_edge("a", "b", key="s", relation="t")
    assert set(KnowledgeGraph.from_networkx(source).triples()) == {("a", "r", "b"), ("a", "t", "b")}


def bad_networkx(kind: str) -> Any:
    source: Any = nx.Graph() if kind == "undirected" else nx.DiGraph()
    if kind == "multi without key":
        source = nx.MultiDiGraph()
    source.add_edge("a", 1)
    if kind == "twice":
        source.add_edge("a", "1", relation="r")
    if kind == "label":
        source.add_node("a", label={"en": "A"})
        source["a"][1]["relation"] = "r"
    return source


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("undirected", "undirected graph"),
        ("no relation", "no text in its attribute 'relation', but None"),
        ("multi without key", "no text in its attribute 'relation', but 0"),
        ("twice", "two nodes are both written '1'"),
        ("label", "the label of 'a' must be"),
    ],
)
def test_networkx_that_is_no_knowledge_graph(kind: str, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        KnowledgeGraph.from_networkx(bad_networkx(kind))


# --- on disk ---


def is_mapped(array: object) -> bool:
    """Whether an array is a view of a file."""
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


def test_save_and_open(tmp_path: Path) -> None:
    graph = KnowledgeGraph.from_triples([*FACTS, FACTS[0]], aliases={"Her": ["Ona"]}, types={"Her": ["film"]})
    graph.save(tmp_path / "deep" / "down")
    again = KnowledgeGraph.open(str(tmp_path / "deep" / "down"))
    assert is_mapped(again.adjacency.neighbors)
    assert not again.adjacency.neighbors.flags.writeable
    assert facts_of(again) == facts_of(graph)
    assert again.fingerprint == graph.fingerprint
    assert (again.duplicates, again.skipped) == (1, 0)
    assert again.schema() == graph.schema()


def test_a_copy_is_the_graph_itself() -> None:
    graph = tiny_graph()
    assert copy.copy(graph) is graph
    assert copy.deepcopy([graph])[0] is graph


def test_a_graph_in_memory_is_pickled_whole() -> None:
    graph = KnowledgeGraph.from_triples([*FACTS, FACTS[0]], aliases={"Her": ["Ona"]}, types={"Her": ["film"]})
    again = pickle.loads(pickle.dumps(graph))
    assert facts_of(again) == facts_of(graph)
    assert again.fingerprint == graph.fingerprint
    assert again.duplicates == 1
    assert not again.adjacency.neighbors.flags.writeable


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


def test_saving_again_replaces_what_was_there(tmp_path: Path) -> None:
    tiny_graph().save(tmp_path)
    first = KnowledgeGraph.open(tmp_path)
    KnowledgeGraph.from_triples(FACTS).save(tmp_path)
    assert len(KnowledgeGraph.open(tmp_path)) == 4
    assert len(list(tmp_path.glob("graph.adjacency.labels-*"))) == 1
    assert len(list(first.triples())) == 16, "a graph that is open stays readable"


@pytest.mark.parametrize("broken", ["zlib.crc32", "os.fsync", "os.replace"])
@pytest.mark.parametrize("stopped_by", [OSError("disk full"), KeyboardInterrupt()], ids=repr)
def test_interrupted_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, stopped_by: BaseException
) -> None:
    """The old graph stays, and nothing of the new one; where there was none, the error says so."""
    tiny_graph().save(tmp_path / "old")
    before = set(os.listdir(tmp_path / "old"))
    calls = iter(range(100))
    module, name = broken.split(".")
    owner = import_module(module)
    real = getattr(owner, name)

    def stop_later(*args: Any, **kwargs: Any) -> Any:
        if name == "replace" or next(calls) == 5:
            raise stopped_by
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, stop_later)
    for folder in ("old", "new"):
        calls = iter(range(100))
        with pytest.raises(type(stopped_by)):
            KnowledgeGraph.from_triples(FACTS).save(tmp_path / folder)
    monkeypatch.undo()
    assert KnowledgeGraph.open(tmp_path / "old").fingerprint == tiny_graph().fingerprint
    assert set(os.listdir(tmp_path / "old")) == before
    assert not (tmp_path / "new").exists()
    with pytest.raises(GraphLoadError, match="no such folder"):
        KnowledgeGraph.open(tmp_path / "new")


def test_killed_save(tmp_path: Path) -> None:
    """A process that was killed could not clean up behind it."""
    tiny_graph().save(tmp_path)
    shutil.copy(column(tmp_path), tmp_path / f"graph.adjacency.labels-{'0123abcd' * 4}.column")
    (tmp_path / "graph.adjacency.labels-of-mine.column").touch()
    assert len(KnowledgeGraph.open(tmp_path)) == 16
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(GraphLoadError, match="interrupted before it was complete"):
        KnowledgeGraph.open(tmp_path)
    KnowledgeGraph.from_triples(FACTS).save(tmp_path)
    assert len(KnowledgeGraph.open(tmp_path)) == 4
    (tmp_path / "graph.adjacency.labels-of-mine.column").unlink()
    KnowledgeGraph.from_triples(FACTS[:1]).save(tmp_path)  # each save clears away the one before it
    assert len(list(tmp_path.glob("graph.adjacency.labels-*"))) == 1


def edit_manifest(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the part "graph", as a save of something else would."""
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest["parts"]["graph"])
    parts = manifest["parts"].items()
    columns = [{name: SavedColumn(**saved) for name, saved in part["columns"].items()} for _, part in parts]
    saved = {name: SavedPart(of_part, part["meta"]) for (name, part), of_part in zip(parts, columns, strict=True)}
    (folder / "manifest.json").write_text(Manifest(saved).to_json())


def column(folder: Path, name: str = "adjacency.neighbors") -> Path:
    return next(folder.glob(f"graph.{name}-*.column"))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (shutil.rmtree, "no such folder"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "manifest is damaged"),
        (lambda folder: (folder / "manifest.json").write_text("[1]"), "manifest is damaged"),
        (lambda folder: (folder / "manifest.json").write_text('{"format": 3}'), "manifest is damaged"),
        (lambda folder: (folder / "manifest.json").write_bytes(b"\xff\xfe"), "manifest is damaged"),
        (lambda folder: (folder / "manifest.json").write_text('{"format": 9}'), "format 9, this package reads 3"),
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
        (lambda folder: column(folder).write_bytes(b""), r"the column cannot be read \(0 bytes, wanted 128\)"),
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


def test_with_changes() -> None:
    graph = tiny_graph()
    changed = graph.with_changes(added=[("Her", "has_genre", "Western"), FACTS[0]], removed=[FACTS[1]])
    assert set(changed.triples()) == {*graph.triples(), ("Her", "has_genre", "Western")} - {FACTS[1]}
    assert changed.duplicates == 1
    assert set(changed.entities) == set(graph.entities)
    assert changed.types_of("Q155653") == ["film", "animated film"]
    assert changed.label("Dune (2021)") == "Dune"
    assert len(graph) == 16, "the graph itself is left as it was"
    emptied = graph.with_changes(removed=graph.triples())
    described = {key for key in graph.entities if graph.label(key) != key or graph.aliases(key) or graph.types_of(key)}
    assert (len(emptied), set(emptied.entities)) == (0, described)


@pytest.mark.parametrize("removed", [("Her", "r"), "abc", ("Her", None, "Spike Jonze"), {"head": "Her"}])
def test_removing_what_is_no_triple(removed: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="triple 1 "):
        tiny_graph().with_changes(removed=[removed])


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


def test_threads_read_one_graph(tmp_path: Path) -> None:
    tiny_graph().save(tmp_path)
    graph = KnowledgeGraph.open(tmp_path)

    def read(key: str) -> Any:
        return (graph.fingerprint, list(graph.triples(key)), graph.label(key), graph.aliases(key), graph.schema())

    keys = list(graph.entities) * 8
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(read, keys)) == [read(key) for key in keys]


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4) | st.sampled_from("abc")
named = st.dictionaries(texts, st.lists(texts, max_size=2), max_size=3)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(texts, texts, texts), max_size=8), st.dictionaries(texts, texts, max_size=3), named, named)
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
