"""Attributes of facts: kept by every format and every change, and views that they make."""

from __future__ import annotations

import csv
import json
import pickle
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.attributes import attribute_cell, attribute_set, read_attribute_cell, read_attribute_set
from kg_retrievers.graph.readers.opening import Limits

FACTS: list[Any] = [
    ("Reeves", "acted in", "The Matrix", {"role": "Neo", "since": 1999, "credited": True, "code": "007"}),
    ("Reeves", "acted in", "Speed", {"role": ["Jack", "Traven"], "share": 0.5}),
    ("Ann", "works for", "Acme", {"valid_from": date(2001, 1, 1), "valid_to": "2003", "source": "hr.csv"}),
    ("Ann", "works for", "Acme", {"valid_from": "2010", "source": "crm.csv"}),
    ("Bob", "works for", "Acme"),
    ("Bob", "knows", "Ann", {"source": "a"}),
    ("Bob", "knows", "Ann", {"source": "b"}),
    ("Bob", "knows", "Ann"),
]


def graph() -> KnowledgeGraph:
    return KnowledgeGraph.from_triples(FACTS)


def said(of: KnowledgeGraph) -> dict[Triple, list[str]]:
    """Return the facts of a graph with their attributes, in any order."""
    return {fact: sorted(map(attribute_set, of.attributes(fact))) for fact in of.triples()}


def test_a_fact_has_the_attributes_of_each_time_that_it_is_stated() -> None:
    found = graph()
    assert found.attributes(("Reeves", "acted in", "The Matrix")) == [
        {"role": "Neo", "since": 1999, "credited": True, "code": "007"}
    ]
    assert [one.get("valid_from") for one in found.attributes(("Ann", "works for", "Acme"))] == ["2001-01-01", "2010"]
    assert found.attributes(("Bob", "works for", "Acme")) == []
    assert (found.sources(("Bob", "knows", "Ann")), found.source_names) == (["a", "b"], ["hr.csv", "crm.csv", "a", "b"])
    assert found.attribute_names == ["code", "credited", "role", "share", "since", "source", "valid_from", "valid_to"]
    assert KnowledgeGraph.from_triples([("a", "r", "b", {})]).attribute_names == []


def stated(of: KnowledgeGraph) -> list[tuple[Triple, dict[str, Any]]]:
    return [(fact, one) for fact in of.triples() for one in of.attributes(fact) or [{}]]


def write_neo4j(folder: Path) -> None:
    """Write neo4j-admin's CSV, whose columns have types: one file for each statement."""
    folder.mkdir()
    kinds = {bool: "boolean", int: "int", float: "double", str: "string", list: "string[]"}
    for number, (fact, one) in enumerate(stated(graph())):
        with (folder / f"{number}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            names = [f"{name}:{kinds[type(value)]}" for name, value in one.items()]
            rows.writerow([":START_ID", ":TYPE", ":END_ID", *names])
            rows.writerow([*fact, *(";".join(value) if isinstance(value, list) else value for value in one.values())])


def apoc_rows() -> list[dict[str, Any]]:
    return [
        {"type": "relationship", "id": str(number), "label": fact.relation, "properties": one,
         "start": {"id": fact.head}, "end": {"id": fact.tail}}
        for number, (fact, one) in enumerate(stated(graph()))
    ]  # fmt: skip


def write_apoc_csv(path: Path) -> None:
    """Write APOC's CSV, with a text that looks like a number in quotes, since it has no types."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["_id", "_labels", "_start", "_end", "_type", *graph().attribute_names])
        for fact, one in stated(graph()):
            cells = [attribute_cell(one[name]) if name in one else "" for name in graph().attribute_names]
            rows.writerow(["", "", fact.head, fact.tail, fact.relation, *cells])


def write_arrows(path: Path) -> None:
    relationships = [
        {"fromId": fact.head, "toId": fact.tail, "type": fact.relation,
         "properties": {name: attribute_cell(value) for name, value in one.items()}}
        for fact, one in stated(graph())
    ]  # fmt: skip
    path.write_text(json.dumps({"nodes": [], "relationships": [{"id": "r", **one} for one in relationships]}))


def write_gexf(path: Path) -> None:
    """Write GEXF, whose lists are texts in JSON."""
    network = nx.MultiDiGraph()
    for fact, one in stated(graph()):
        plain = {name: json.dumps(value) if isinstance(value, list) else value for name, value in one.items()}
        network.add_edge(fact.head, fact.tail, relation=fact.relation, **plain)
    nx.write_gexf(network, path)


def frame() -> list[dict[str, Any]]:
    return [{**fact._asdict(), **one} for fact, one in stated(graph())]


RDF = ["g.nt", "g.nq", "g.ttl", "g.trig", "g.rdf", "g.jsonld"]

#: What writes and reads each format that holds attributes.
FORMATS: dict[str, Callable[[Path], KnowledgeGraph]] = {
    **{name: lambda path: (graph().write(path), KnowledgeGraph.from_file(path))[1]
       for name in ("g.jsonl", "g.csv", "g.tsv", "g.parquet", "g.graphml", "g.json", *RDF)},
    "folder": lambda path: (graph().save(path), KnowledgeGraph.open(path))[1],
    "pickle": lambda path: pickle.loads(pickle.dumps(graph())),
    "networkx": lambda path: KnowledgeGraph.from_networkx(graph().to_networkx()),
    "frame": lambda path: KnowledgeGraph.from_frame(frame()),
    "array.json": lambda path: (path.write_text(json.dumps(frame())), KnowledgeGraph.from_file(path))[1],
    "neo4j": lambda path: (write_neo4j(path), KnowledgeGraph.from_file(path))[1],
    "apoc.csv": lambda path: (write_apoc_csv(path), KnowledgeGraph.from_file(path))[1],
    "apoc.json": lambda path: (path.write_text(json.dumps(apoc_rows())), KnowledgeGraph.from_file(path))[1],
    "rels.json": lambda path: (path.write_text(json.dumps({"nodes": [], "rels": apoc_rows()})),
                               KnowledgeGraph.from_file(path))[1],
    "arrows.json": lambda path: (write_arrows(path), KnowledgeGraph.from_file(path))[1],
    "g.gexf": lambda path: (write_gexf(path), KnowledgeGraph.from_file(path))[1],
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_attributes_come_back_from_every_format(tmp_path: Path, name: str) -> None:
    assert said(FORMATS[name](tmp_path / name)) == said(graph())


def test_a_format_without_attributes_says_what_it_would_lose(tmp_path: Path) -> None:
    clash = KnowledgeGraph.from_triples([("a", "r", "b", {"target": "c"})])
    with pytest.raises(InvalidArgumentError, match=r"no edge can have the attribute 'target' of 'a'"):
        clash.write(tmp_path / "g.graphml")
    for name in ("g.csv", "g.jsonl"):
        clash.write(tmp_path / name)
        assert said(KnowledgeGraph.from_file(tmp_path / name)) == said(clash)


VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)


@given(st.dictionaries(st.text(min_size=1, max_size=4), VALUES | st.lists(VALUES, max_size=3), max_size=4))
def test_a_set_of_attributes_is_read_as_it_is_written(attributes: dict[str, Any]) -> None:
    text = attribute_set(attributes)
    assert attribute_set(read_attribute_set(text)) == text
    for value in read_attribute_set(text).values():
        assert read_attribute_cell(attribute_cell(value)) == value


def test_values_of_other_types_are_plain() -> None:
    given = {"price": Decimal("1.5"), "n": np.int64(3), "tags": {"b", "a"}, "nan": float("nan"), "more": {"x": 1}}
    assert read_attribute_set(attribute_set(given)) == {"price": 1.5, "n": 3, "tags": ["a", "b"], "more": '{"x": 1}'}


def test_lists_in_lists_are_their_json() -> None:
    deep: list[Any] = [1]
    for _ in range(200):  # as many levels of quotes would fill the memory
        deep = [deep]
    found = KnowledgeGraph.from_triples([("a", "r", "b", {"deep": deep, "pairs": [(1, 2), {"x": [date(2001, 2, 3)]}]})])
    assert found.attributes(("a", "r", "b")) == [
        {"deep": ["[" * 200 + "1" + "]" * 200], "pairs": ["[1, 2]", '{"x": ["2001-02-03"]}']}
    ]


def endless() -> list[Any]:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


UNFIT = [endless(), float("inf"), Decimal("-Infinity"), [1, float("inf")], object(), b"Neo", {"x": object()}]


@pytest.mark.parametrize("value", UNFIT, ids=map(str, range(len(UNFIT))))
def test_values_that_are_none_of_an_attribute_are_counted(value: Any) -> None:
    found = KnowledgeGraph.from_triples([("a", "r", "b", {"x": value, "y": 1})])
    assert found.attributes(("a", "r", "b")) == [{"y": 1}]
    assert found.reading.left_out == {"attribute 'x' of facts that is infinite or an unknown object": 1}
    rows = [{"head": "a", "relation": "r", "tail": "b", "x": value, "y": 1}] * 2
    framed = KnowledgeGraph.from_frame(rows)
    assert framed.attributes(("a", "r", "b")) == [{"y": 1}]
    assert framed.reading.left_out == {"cells of column 'x' that are no texts, numbers or dates": 2}


def test_json_lines_name_their_attributes(tmp_path: Path) -> None:
    graph().write(tmp_path / "g.jsonl")
    understood = KnowledgeGraph.from_file(tmp_path / "g.jsonl").reading.understood
    assert understood["attributes of facts"].startswith("'role' 2, ")


@pytest.mark.parametrize("name", ["g.jsonl", "g.parquet", "g.csv"])
@pytest.mark.parametrize("value", ["x" * 30, ["x" * 30]])
def test_limits_of_cells_hold_for_attributes(tmp_path: Path, name: str, value: Any) -> None:
    long = KnowledgeGraph.from_triples([("a", "r", "b", {"x": value}), ("a", "r", "c")])
    long.write(tmp_path / name)
    with pytest.raises(GraphLoadError, match=r"a cell of \d+ characters.*cell_length"):
        KnowledgeGraph.from_file(tmp_path / name, limits=Limits(cell_length=20))
    skipped = KnowledgeGraph.from_file(tmp_path / name, limits=Limits(cell_length=20), on_error="skip")
    assert (skipped.attribute_names, len(skipped) + skipped.skipped) == ([], 2)


@pytest.mark.parametrize("name", ["g.csv", "g.tsv", "g.parquet"])
def test_columns_of_one_name_are_told(tmp_path: Path, name: str) -> None:
    names = ["head", "relation", "tail", "since", "since"]
    table = pyarrow.table([["a"], ["r"], ["b"], ["1"], ["2"]], names)
    if name == "g.parquet":
        pyarrow.parquet.write_table(table, tmp_path / name)
    else:
        rows = "\n".join(("\t" if name == "g.tsv" else ",").join(row) for row in (names, "arb12"))
        (tmp_path / name).write_text(rows)
    with pytest.raises(GraphLoadError, match=r"two columns have one name, 'since'\. Rename one"):
        KnowledgeGraph.from_file(tmp_path / name)
    with pytest.raises(InvalidArgumentError, match=r"two columns have one name, 'since'\. Rename one"):
        KnowledgeGraph.from_frame(table)


def test_attributes_follow_changes() -> None:
    changed = graph().with_changes(
        added=[("Bob", "works for", "Acme"), ("Eve", "knows", "Bob", {"since": 2020})],
        removed=[("Reeves", "acted in", "Speed")],
        removed_sources=["hr.csv", "a"],
        source="new",
    )
    assert changed.attributes(("Eve", "knows", "Bob")) == [{"since": 2020, "source": "new"}]
    assert changed.attributes(("Ann", "works for", "Acme")) == [{"source": "crm.csv", "valid_from": "2010"}]
    assert changed.sources(("Bob", "works for", "Acme")) == ["new"]
    assert "share" not in changed.attribute_names


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ({"role": "Neo"}, ["The Matrix"]),
        ({"role": "neo"}, []),
        ({"role": ["Jack", "Neo"]}, ["Speed", "The Matrix"]),
        ({"since": {">=": 1999, "<": 2000}}, ["The Matrix"]),
        ({"since": {">": 1999}}, []),
        ({"share": {"<": 1}}, ["Speed"]),
        ({"credited": True}, ["The Matrix"]),
        ({"code": "7"}, []),
        ({"role": None}, ["Acme", "Ann"]),
        ({"source": ["a", None], "role": None}, ["Acme", "Ann"]),
        ({"role": {"Neo", None}}, ["Acme", "Ann", "The Matrix"]),
        ({"valid_from": date(2001, 1, 1)}, ["Acme"]),
        ({"valid_from": {">": "2005"}}, ["Acme"]),
        ({"role": {"!=": "Neo"}}, ["Speed"]),
    ],
)
def test_a_view_holds_the_facts_that_satisfy_its_conditions(where: dict[str, Any], kept: list[str]) -> None:
    if not kept:
        with pytest.raises(InvalidArgumentError, match="no fact satisfies these conditions"):
            graph().view(where)
        return
    assert sorted({fact.tail for fact in graph().view(where).triples()}) == kept


@pytest.mark.parametrize(("day", "sources"), [("2000", []), (date(2002, 5, 1), ["hr.csv"]), ("2011-02", ["crm.csv"])])
def test_a_view_of_a_day_holds_what_was_valid_then(day: Any, sources: list[str]) -> None:
    view = graph().view(as_of=day)
    facts = [fact for fact in view.triples() if fact.head == "Ann"]
    assert [view.sources(fact) for fact in facts] == ([sources] if sources else [])
    assert ("Bob", "works for", "Acme") in view


def test_a_fact_whose_time_is_no_date_is_in_no_view_of_a_day() -> None:
    facts = KnowledgeGraph.from_triples([("a", "r", "b", {"from": "soon"}), ("a", "r", "c", {"to": "2021"})])
    assert [*facts.view(as_of="2020", validity=("from", "to")).triples()] == [("a", "r", "c")]


def test_a_view_holds_nothing_of_hidden_facts() -> None:
    facts = [("Ann", "knows", "Bob", {"tenant": "a"}), ("Eve", "hides", "Zed", {"tenant": "b", "note": "x"})]
    labels = {"Eve": "Eve Secret", "Ann": "Ann Public"}
    whole = KnowledgeGraph.from_triples(facts, labels=labels, types={"Eve": ["Spy"], "Bob": ["Man"], "alone": ["Man"]})
    view = whole.view({"tenant": "a"})
    assert list(view.entities) == ["Ann", "Bob", "alone"]
    assert (list(view.relations), list(view.types), list(view.names)) == (
        ["knows"],
        ["Man"],
        ["Ann Public", "Bob", "alone"],
    )
    assert view.attribute_names == ["tenant"]
    assert "Eve" not in str(view.__reduce__())
    with pytest.raises(InvalidArgumentError) as error:
        view.view({"note": "x"})
    assert "no fact has the attribute 'note'. Attributes: 'tenant'." in str(error.value)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"rol": "Neo"}, "no fact has the attribute 'rol'; did you mean 'role'"),
        ({"since": {">": "abc"}}, "the limits of 'since' must be all numbers or all dates"),
        ({"since": {">": 1, "<": "2000-01-01"}}, "must be all numbers or all dates"),
        ({"since": {"~": 1}}, "'since' takes comparisons of '=', '!='"),
        ({"since": {}}, "'since' takes comparisons"),
        ({"since": {"=": [1]}}, "takes a text, number, date or truth value"),
        ({"since": object()}, "takes a text, number, date or truth value"),
        *((where, "view: ") for where in (["role"], "role", {1: "a"}, {"role": b"Neo"})),
    ],
)
def test_conditions_that_mean_nothing_are_refused(where: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        graph().view(where)


def test_a_day_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="as_of must be a date, such as '2015-06-30', but got 'soon'"):
        graph().view(as_of="soon")
    with pytest.raises(InvalidArgumentError, match="names the attributes that as_of looks at"):
        graph().view(validity=("from", "to"))
    with pytest.raises(InvalidArgumentError, match="where is a mapping"):
        graph().view("")  # type: ignore[arg-type] # a mistake


@pytest.mark.parametrize("end", ["9999-12-31", "9999", 9999, "3000-01", 2003.0, "2003-05-01T10:00:00"])
def test_any_day_of_the_calendar_is_a_date(end: Any) -> None:
    facts = KnowledgeGraph.from_triples([("a", "r", "b", {"valid_from": "0900-01-01", "valid_to": end})])
    assert len(facts.view(as_of="2003-01-01")) == 1
    with pytest.raises(InvalidArgumentError, match="no fact satisfies"):
        facts.view(as_of="0899")


@pytest.mark.parametrize("validity", [("begin", "valid_to"), ("begin", "end"), "be", ("valid_from",)])
def test_attributes_of_time_that_no_fact_has_are_refused(validity: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"no fact has |the names of two attributes"):
        graph().view(as_of="2002", validity=validity)
    with pytest.raises(InvalidArgumentError, match="as_of reads the attributes 'valid_from' and 'valid_to'"):
        KnowledgeGraph.from_triples([("a", "r", "b")]).view(as_of="2002")


def test_a_number_is_a_text_that_is_written_so() -> None:
    facts = [("a", "r", text, {"n": text}) for text in ("5", "05", "5 km")] + [("a", "r", "5.0", {"n": 5.0})]
    assert [fact.tail for fact in KnowledgeGraph.from_triples(facts).view({"n": 5}).triples()] == ["5", "5.0"]
    assert len(KnowledgeGraph.from_triples(facts).view({"n": np.int64(5)})) == 2


def test_a_truth_value_is_no_number() -> None:
    facts = KnowledgeGraph.from_triples([("a", "r", "one", {"x": 1}), ("a", "r", "true", {"x": True})])
    assert [fact.tail for fact in facts.view({"x": True}).triples()] == ["true"]
    assert [fact.tail for fact in facts.view({"x": 1}).triples()] == ["one"]


def test_a_source_of_a_change_keeps_what_else_is_said() -> None:
    added = [("P", "r", "Q", {"tenant": "a", "source": "mine"})]
    changed = KnowledgeGraph.from_triples([("N", "r", "M", {"tenant": "b"})]).with_changes(added=added, source="s.txt")
    assert [one["tenant"] for one in changed.attributes(("P", "r", "Q"))] == ["a", "a"]
    assert changed.sources(("P", "r", "Q")) == ["mine", "s.txt"]


def test_facts_are_removed_without_their_attributes() -> None:
    with pytest.raises(InvalidArgumentError, match="removed takes facts without attributes"):
        graph().with_changes(removed=[("Ann", "works for", "Acme", {"source": "hr.csv"})])
    assert ("Ann", "works for", "Acme") not in graph().with_changes(removed=[("Ann", "works for", "Acme")])


@pytest.mark.parametrize("name", ["g.jsonl", "g.csv", "g.tsv", "g.parquet", "g.ttl", "g.jsonld"])
def test_names_and_values_that_look_like_others_come_back(tmp_path: Path, name: str) -> None:
    said_of = {"attributes": "v", "SOURCE": "x", "aliases": "y", "pad": " padded ", "line": "end\u2028", "target": "t"}
    said_of |= {"breaks": "a\tb\nc\0", "digits": "1999", "quotes": '"Her"', "open": '"a'}
    whole = KnowledgeGraph.from_triples([("a", "r", "b", said_of)])
    whole.write(tmp_path / name)
    assert said(KnowledgeGraph.from_file(tmp_path / name)) == said(whole)


def test_the_schema_counts_facts_and_not_how_often_they_are_stated() -> None:
    schema = graph().schema()
    assert schema.attributes["valid_from"] == 1
    assert schema.sources == {"a": 1, "b": 1, "crm.csv": 1, "hr.csv": 1}


def test_attributes_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="the fourth part of triple 1 must be its attributes"):
        KnowledgeGraph.from_triples([("a", "r", "b", "c")])
    with pytest.raises(InvalidArgumentError, match="an attribute's name must be a text, but got 1"):
        KnowledgeGraph.from_triples([("a", "r", "b", {1: "c"})])


def test_only_the_shell_names_the_values_of_an_attribute() -> None:
    """An application may show the message to the user of a tenant, from whom a view hides the others."""
    graph = KnowledgeGraph.from_triples([("Ada", "keeps", "h1", {"tenant": "acme"})])
    with pytest.raises(InvalidArgumentError) as refused:
        graph.view({"tenant": "globex"})
    assert "acme" not in str(refused.value)
    assert refused.value.on_shell.endswith("'tenant' has the values 'acme'.")
