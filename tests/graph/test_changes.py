"""Changes of a graph against a graph made anew from the facts and descriptions that result."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.adjacency import Adjacency
from kg_retrievers.graph.building import GraphBuilder, Reading
from kg_retrievers.testing import tiny_graph

KEYS = st.sampled_from(["a", "b", "c", "d", "Q1", "Q2"])
RELATIONS = st.sampled_from(["r", "s", "P57", "P58"])
LABELS = st.sampled_from(["a", "b", "Her", "Her two", "X", "é"])
TYPES = st.sampled_from(["film", "person", "a"])
SOURCES = st.sampled_from([None, "one", "two"])
TRIPLES = st.tuples(KEYS, RELATIONS, KEYS)
FACTS = st.lists(st.tuples(TRIPLES, SOURCES), max_size=12)
DESCRIPTIONS = st.fixed_dictionaries(
    {
        "labels": st.dictionaries(KEYS, LABELS, max_size=3),
        "aliases": st.dictionaries(KEYS, st.lists(LABELS, max_size=2, unique=True), max_size=3),
        "types": st.dictionaries(KEYS, st.lists(TYPES, max_size=2, unique=True), max_size=3),
    }
)
RELATION_LABELS = st.dictionaries(RELATIONS, st.sampled_from(["director", "R"]), max_size=3)


def made(facts: Any, descriptions: Any, relation_labels: Any, datatypes: Any = None) -> KnowledgeGraph:
    """Make a graph from all that is said."""
    builder = GraphBuilder(**descriptions, relation_labels=relation_labels)
    for triple, source in facts:
        head, relation, tail = triple
        builder.add(head, relation, tail, {"source": source})
    for key, datatype in (datatypes or {}).items():
        builder.set_datatype(key, datatype)
    return KnowledgeGraph._from_builder(builder)


def content(graph: KnowledgeGraph) -> dict[str, Any]:
    """Return all that a graph says, without any order."""
    keys = list(graph.entities)
    return {
        "facts": {triple: set(graph.sources(triple)) for triple in graph.triples()},
        "labels": {key: graph.label(key) for key in keys},
        "aliases": {key: graph.aliases(key) for key in keys},
        "types": {key: graph.types_of(key) for key in keys},
        "named": {name: set(graph.entities_named(name)) for name in graph.names},
        "typed": {kind: {graph.entities[id] for id in graph.type_entities(at)} for at, kind in enumerate(graph.types)},
        "relations": {name: graph.relation_id(name) for name in graph.relations},
        "datatypes": {key: graph.datatype(key) for key in keys},
        "columns": set(graph._columns),
    }


def check_sound(graph: KnowledgeGraph) -> None:
    """Check that the columns fit together."""
    wanted = Adjacency.of_edges(graph.edges[:], len(graph.entities))
    for name, column in wanted._asdict().items():
        assert np.array_equal(getattr(graph.adjacency, name), column), name
        assert getattr(graph.adjacency, name).dtype == column.dtype, name
    for table in (graph.entities, graph.relations, graph.names, graph.types):
        assert [table.find(text) for text in table] == list(range(len(table)))
    again = KnowledgeGraph.from_triples(graph.triples())
    plain = {name: (column.dtype, column.ndim) for name, column in again._columns.items()}
    assert {name: (graph._columns[name].dtype, graph._columns[name].ndim) for name in plain} == plain
    assert all(
        graph._row("name_entities", id) == sorted(graph._row("name_entities", id)) for id in range(len(graph.names))
    )


def sourced(facts: Any) -> dict[Any, set[str]]:
    """Return the sources of each fact, None among them where it is given without one."""
    sources: dict[Any, set[Any]] = {}
    for triple, source in facts:
        sources.setdefault(triple, set()).add(source)
    return sources


def ends_of(triples: Any) -> set[str]:
    return {key for head, _, tail in triples for key in (head, tail)}


def made_anew(before: Any, said: Any, after: Any, more: Any, names: Any) -> KnowledgeGraph:
    """Make a graph from the facts that result and the descriptions before and after."""
    whole = {kind: said[kind] | more[kind] for kind in said}
    alone = set().union(*said.values()) - ends_of(before)
    mentioned = set().union(*more.values())
    for key in set().union(*said.values()) - alone - mentioned:
        label, aliases, types = (whole[kind].get(key) for kind in ("labels", "aliases", "types"))
        if (label or key) == key and not aliases and not types:  # nothing describes it
            for values in whole.values():
                values.pop(key, None)
    whole["types"] = {key: [] for key in alone | mentioned} | whole["types"]
    return made([(triple, one) for triple, of in after.items() for one in sorted(of, key=str)], whole, names)


@settings(max_examples=300)
@given(FACTS, DESCRIPTIONS, RELATION_LABELS, FACTS, DESCRIPTIONS, RELATION_LABELS, SOURCES, st.data())
def test_a_changed_graph_equals_one_made_anew(
    facts: Any, said: Any, names: Any, added: Any, more: Any, more_names: Any, source: Any, data: Any
) -> None:
    graph, before = made(facts, said, names), sourced(facts)
    removed = data.draw(st.sets(st.sampled_from(sorted(before)))) if before else set()
    known = sorted(set().union(*before.values()) - {None})
    lost = data.draw(st.sets(st.sampled_from(known))) if known else set()
    after = {triple: of - lost for triple, of in before.items() if triple not in removed and of - lost}
    for triple, _ in added:
        after.setdefault(triple, set()).add(source)
    entities = {*graph.entities, *ends_of(triple for triple, _ in added), *more["types"]}
    for kind in ("labels", "aliases"):
        more[kind] = {key: value for key, value in more[kind].items() if key in entities}
    more_names = {id: label for id, label in more_names.items() if id in {relation for _, relation, _ in after}}
    changed = graph.with_changes(
        added=[triple for triple, _ in added],
        removed=removed,
        removed_sources=lost,
        source=source,
        relation_labels=more_names,
        **more,
    )
    names = {graph.relation_id(name): names.get(graph.relation_id(name), name) for name in graph.relations}
    check_sound(changed)
    assert content(changed) == content(made_anew(before, said, after, more, names | more_names))


@settings(max_examples=100)
@given(FACTS, DESCRIPTIONS, RELATION_LABELS, FACTS, DESCRIPTIONS, RELATION_LABELS)
def test_a_graph_is_added_with_all_that_it_says(
    facts: Any, said: Any, names: Any, added: Any, more: Any, more_names: Any
) -> None:
    graph, addition = made(facts, said, names), made(added, more, more_names)
    changed = graph.with_changes(added=addition)
    check_sound(changed)
    assert set(changed.entities) == {*graph.entities, *addition.entities}
    for key in changed.entities:
        both = [one for one in (graph, addition) if key in one.entities]
        labels = [one.label(key) for one in both if one.label(key) != key] or [key]
        assert changed.label(key) == labels[-1]
        assert set(changed.aliases(key)) == {name for one in both for name in one.aliases(key)}
        assert set(changed.types_of(key)) == {kind for one in both for kind in one.types_of(key)}
    sources = {triple: of - {None} for triple, of in sourced(facts + added).items()}
    found = {(t.head, changed.relation_id(t.relation), t.tail): set(changed.sources(t)) for t in changed.triples()}
    assert found == sources


# --- by hand ---


def test_a_fact_that_is_also_given_without_a_source_stays(tmp_path: Path) -> None:
    fact, other = Triple("Her", "genre", "Drama"), Triple("Her", "year", "2013")
    graph = made([(fact, "review.txt"), (fact, None), (other, "review.txt")], {}, {})
    assert graph.sources(fact) == ["review.txt"]
    assert graph.schema().sources == {"review.txt": 2}
    for name in ("a.jsonl", "a.csv", "a.nq", "a.parquet", "a.json", "a.graphml"):
        graph.write(tmp_path / name, on_loss="drop")
        again = KnowledgeGraph.from_file(tmp_path / name)
        lost = again.with_changes(removed_sources=[*again.sources(again.triple(0))])
        assert [triple.tail for triple in lost.triples()] == ["Drama"], name
        assert lost.source_names == []
    later = made([(fact, "review.txt")], {}, {}).with_changes(added=[fact])
    assert [*later.with_changes(removed_sources=["review.txt"]).triples()] == [fact]
    with pytest.raises(InvalidArgumentError, match=r"is from ''.*Its sources: 'review.txt'"):
        graph.with_changes(removed_sources=[""])


@pytest.mark.parametrize(
    ("removed", "message"),
    [
        (("Her", "director", "Spike Jonze"), "Its ends are joined by 'directed_by', 'written_by'."),
        (("Spike Jonze", "directed", "Her"), "Nothing leads from its head to its tail."),
        (("Dune", "written_by", "Denis Villeneuve"), "The key of 'Dune' is 'Dune (1984)', 'Dune (2021)'."),
        (("No", "such", "fact"), "No entity has the key 'No'. No entity has the key 'fact'."),
    ],
)
def test_removing_what_is_not_there_says_what_is(removed: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is not in the graph") as caught:
        tiny_graph().with_changes(removed=[removed])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": {"Duna": "Dune"}}, "no entity has the key 'Duna'"),
        ({"aliases": {"Dune": ["Duna"]}}, r"It is a name of 'Dune \("),
        ({"relation_labels": {"directed": "director"}}, "did you mean 'directed_by'"),
        ({"removed_sources": ["one"]}, "no fact of the graph is from 'one'. Its sources: none"),
        ({"labels": {"Her": ""}}, "a label of 'Her' must be"),
        ({"types": {"Her": "film"}}, "types of 'Her' must be a list"),
        ({"added": [("Her", "", "x")]}, "triple 1 must be three non-empty texts"),
    ],
)
def test_wrong_changes_are_refused(changes: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        tiny_graph().with_changes(**changes)


def test_relations_are_added_by_id_or_name() -> None:
    graph = KnowledgeGraph.from_triples([("Her", "P57", "Jonze")], relation_labels={"P57": "director"})
    changed = graph.with_changes(added=[("Dune", "P57", "Lynch"), ("Dune 2", "director", "Villeneuve")])
    assert {triple.relation for triple in changed.triples()} == {"director"}
    assert changed.with_changes(removed=[("Dune", "director", "Lynch")]).relation_id("director") == "P57"


def test_datatypes_change_with_the_facts() -> None:
    facts = [(("Her", "released", "2013"), None), (("Her", "length", "126"), None)]
    nothing: Any = {"labels": {}, "aliases": {}, "types": {}}
    graph = made(facts[:1], nothing, {}, {"2013": "xsd:gYear"})
    addition = made(facts, nothing, {}, {"2013": "xsd:date", "126": "xsd:int"})
    changed = graph.with_changes(added=addition)
    assert content(changed) == content(made(facts, nothing, {}, {"2013": "xsd:date", "126": "xsd:int"}))
    assert changed.with_changes(removed=changed.triples(head="Her", relation="length")).datatype_names is not None
    assert tiny_graph().with_changes(added=addition).datatype("126") == "xsd:int"
    assert changed.with_changes(removed=[triple for triple, _ in facts], added=[("a", "r", "b")]).datatype_names is None


def test_text_relations_follow_their_relations() -> None:
    graph = KnowledgeGraph.from_triples([("Her", "title", "1917"), ("Her", "r", "7")], text_relations=["title", "r"])
    changed = graph.with_changes(relation_labels={"title": "called"}, removed=[("Her", "r", "7")])
    assert changed.text_relations == ("called",)


def test_what_was_left_out_of_an_addition_is_counted() -> None:
    rows = [{"head": "a", "relation": "r", "tail": "b", "year": 1}]
    graph = KnowledgeGraph.from_frame(rows, attributes="drop")
    addition = KnowledgeGraph.from_frame([rows[0] | {"tail": "c", "note": "x"}], attributes="drop")
    changed = graph.with_changes(added=addition)
    counts = {what.split("'")[1]: count for what, count in changed.reading.left_out.items()}
    assert counts == {"year": 2, "note": 1}
    assert [*graph.reading.left_out.values()] == [1]


def test_the_reading_counts_changes_of_facts() -> None:
    graph = KnowledgeGraph.from_triples([("a", "r", "b"), ("a", "r", "c")])
    assert graph.reading.changes == {}
    changed = graph.with_changes(added=[("a", "r", "b"), ("a", "r", "d")], removed=[("a", "r", "c")])
    changed = changed.with_changes(labels={"a": "Anna"}).with_changes(added=[("a", "r", "e")])
    assert changed.reading.changes == {"times": 2, "added": 2, "removed": 1}
    assert Reading(**asdict(changed.reading)) == changed.reading
