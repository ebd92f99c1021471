"""Frames of pandas, polars and Arrow, lists of dictionaries, Parquet and Arrow files."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from pyarrow import feather, ipc, parquet

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.readers.opening import Limits
from kg_retrievers.graph.readers.tables import frames as frame_tables
from kg_retrievers.graph.types import Triple

ROWS = [
    {"head": "Her", "relation": "directed_by", "tail": " Spike Jonze "},
    {"head": "Amélie", "relation": "tagline", "tail": 'She\'ll "change"\nyour life'},
    {"head": "Her", "relation": "directed_by", "tail": "Spike Jonze"},
    {"head": "Spike Jonze", "relation": "directed", "tail": "Her"},
]
TRIPLES = [
    Triple("Her", "directed_by", "Spike Jonze"),
    Triple("Amélie", "tagline", 'She\'ll "change"\nyour life'),
    Triple("Spike Jonze", "directed", "Her"),
]


class Columns:
    """A frame of a library that nobody knows."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.columns = [*rows[0]]
        self._rows = rows

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        return tuple(row[name] for row in self._rows)


def as_mapping(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row.get(name) for row in rows] for name in rows[0]}


def as_reader(rows: list[dict[str, Any]]) -> Any:
    table = pyarrow.Table.from_pylist(rows)
    return pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2))


FRAMES = {
    "pandas": pandas.DataFrame,
    "pandas objects": lambda rows: pandas.DataFrame(rows, dtype=object),
    "polars": polars.DataFrame,
    "lazy polars": lambda rows: polars.DataFrame(rows).lazy(),
    "Arrow": pyarrow.Table.from_pylist,
    "an Arrow batch": pyarrow.RecordBatch.from_pylist,
    "an Arrow stream": as_reader,
    "dictionaries": list,
    "a mapping": as_mapping,
    "another": Columns,
}


@pytest.fixture(params=FRAMES)
def frame(request: pytest.FixtureRequest) -> Any:
    return FRAMES[request.param]


# --- facts ------------------------------------------------------------------------------------------------------------


def test_each_library_gives_the_same_graph(frame: Any) -> None:
    graph = KnowledgeGraph.from_frame(frame(ROWS))
    assert {*graph.triples()} == {*TRIPLES}
    assert graph.fingerprint == KnowledgeGraph.from_triples(TRIPLES).fingerprint
    assert graph.duplicates == 1
    assert graph.reading.understood["columns"] == "head 'head', relation 'relation', tail 'tail'"


def test_polars_needs_no_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_tables, "find_spec", lambda name: None)
    assert {*KnowledgeGraph.from_frame(polars.DataFrame(ROWS)).triples()} == {*TRIPLES}


@pytest.mark.parametrize("names", [("subject", "predicate", "object"), ("From", "rel", "TO"), ("s", "p", "o")])
def test_columns_are_found_by_name(frame: Any, names: tuple[str, str, str]) -> None:
    rows = [dict(zip(names, ("Her", "year", "2013"), strict=True))]
    assert [*KnowledgeGraph.from_frame(frame(rows)).triples()] == [Triple("Her", "year", "2013")]


def test_columns_are_named(frame: Any) -> None:
    rows = [{"film": "Her", "year": 2013, "fact": "released", "by": "IMDb"}]
    graph = KnowledgeGraph.from_frame(frame(rows), head="film", relation="fact", tail="year", source="by")
    assert [*graph.triples()] == [Triple("Her", "released", "2013")]
    assert graph.sources(("Her", "released", "2013")) == ["IMDb"]


def test_further_columns_are_told_or_become_facts(frame: Any) -> None:
    rows = [ROWS[0] | {"year": 2013, "seen": None}, ROWS[3] | {"year": None, "seen": True}]
    graph = KnowledgeGraph.from_frame(frame(rows))
    assert [graph.attributes(triple) for triple in graph.triples()] == [[{"year": 2013}], [{"seen": True}]]
    assert KnowledgeGraph.from_frame(frame(rows), attributes="drop").reading.left_out == {
        f'cells of column {name!r} (attributes="facts" keeps them)': 2 for name in ("year", "seen")
    }
    graph = KnowledgeGraph.from_frame(frame(rows), facts=["year", "seen"])
    assert set(graph.triples()) - set(TRIPLES) == {Triple("Her", "year", "2013"), Triple("Spike Jonze", "seen", "true")}
    assert graph.reading.left_out == {}


def test_a_fact_has_the_sources_of_its_rows(frame: Any) -> None:
    rows = [dict(row, source=source) for row, source in zip(ROWS, ("IMDb", None, "Wikidata", "IMDb"), strict=True)]
    graph = KnowledgeGraph.from_frame(frame(rows))
    assert [graph.sources(triple) for triple in TRIPLES] == [["IMDb", "Wikidata"], [], ["IMDb"]]


def test_a_list_of_sources_is_left_out_and_counted(frame: Any) -> None:
    graph = KnowledgeGraph.from_frame(frame([dict(row, sources=["IMDb", "Wikidata"]) for row in ROWS]))
    assert [graph.sources(triple) for triple in TRIPLES] == [[]] * len(TRIPLES)
    assert "sources" in str(graph.reading.left_out)


# --- numbers and dates ------------------------------------------------------------------------------------------------


def tails(values: list[Any], make: Any) -> list[str]:
    rows = [{"head": f"e{number}", "relation": "r", "tail": value} for number, value in enumerate(values)]
    return [triple.tail for triple in KnowledgeGraph.from_frame(make(rows)).triples()]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2013, -1], ["2013", "-1"]),
        ([2013.0, 7.0], ["2013", "7"]),
        ([2013.0, 7.5, 2e15, 1e300], ["2013", "7.5", "2000000000000000", "1e+300"]),
        ([True, False], ["true", "false"]),
        ([date(2013, 12, 18), date(1, 1, 1)], ["2013-12-18", "0001-01-01"]),
        ([datetime(2013, 12, 18), datetime(1979, 1, 2)], ["2013-12-18", "1979-01-02"]),
        ([datetime(2013, 12, 18), datetime(1979, 1, 2, 3, 4)], ["2013-12-18", "1979-01-02T03:04:00"]),
        ([Decimal("1.50"), Decimal("2.00")], ["1.50", "2.00"]),
    ],
)
def test_numbers_and_dates_are_written_by_rule(frame: Any, values: list[Any], expected: list[str]) -> None:
    assert tails(values, frame) == expected


# --- rows that are no facts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", [None, "", "  ", float("nan")])
def test_empty_cells_are_reported_or_counted(frame: Any, empty: Any) -> None:
    rows = [ROWS[0], ROWS[0] | {"head": "Unseen"}, ROWS[0] | {"tail": empty}, ROWS[3]]
    if isinstance(empty, float):
        rows = [row | {"tail": tail} for row, tail in zip(rows, (1.0, 1.0, empty, 2.0), strict=True)]
    rows[2]["head"] = "Lost"
    with pytest.raises(InvalidArgumentError, match=r"row 3, column 'tail': a cell is empty\..*on_error=\"skip\""):
        KnowledgeGraph.from_frame(frame(rows))
    graph = KnowledgeGraph.from_frame(frame(rows), on_error="skip")
    assert (graph.skipped, len(graph)) == (1, 3)
    assert "Lost" not in graph.entities


@pytest.mark.parametrize("empty", [pandas.NA, pandas.NaT, np.nan, Decimal("nan")])
def test_the_empty_cells_of_pandas(empty: Any) -> None:
    rows = pandas.DataFrame([ROWS[0], ROWS[0] | {"relation": empty}], dtype=object)
    with pytest.raises(InvalidArgumentError, match="row 2, column 'relation': a cell is empty"):
        KnowledgeGraph.from_frame(rows)


@pytest.mark.parametrize(
    ("cell", "wanted"),
    [
        (["a", "b"], r"\['a', 'b'\] is no text"),
        ({"a": 1}, "is no text"),
        (b"bytes", "b'bytes' is no text"),
        ("a\0b", "holds NUL or half a surrogate pair"),
    ],
)
def test_other_cells_are_no_texts(frame: Any, cell: Any, wanted: str) -> None:
    rows = [{"head": "Her", "relation": "r", "tail": cell}]
    with pytest.raises(InvalidArgumentError, match=f"row 1, column 'tail': .*{wanted}"):
        KnowledgeGraph.from_frame(frame(rows))


def test_half_a_surrogate_is_no_text() -> None:
    for make in (list, as_mapping, Columns):
        with pytest.raises(InvalidArgumentError, match="half a surrogate"):
            KnowledgeGraph.from_frame(make([ROWS[0] | {"head": "\ud800"}]))


def test_cells_beside_a_fact_are_counted_where_they_are_no_texts() -> None:
    graph = KnowledgeGraph.from_frame([ROWS[0] | {"extra": {"a": 1}}], facts=["extra"])
    assert graph.reading.left_out == {"cells of column 'extra' that are no texts, numbers or dates": 1}


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"head": "who"}, "no column 'who', but 'head', 'relation', 'tail'"),
        ({"facts": ["year"]}, "no column 'year'"),
        ({"on_error": "ignore"}, "on_error is"),
        ({"attributes": "keep", "entities": [{"id": "a"}]}, "attributes is"),
    ],
)
def test_bad_arguments(frame: Any, arguments: dict[str, Any], wanted: str) -> None:
    with pytest.raises(InvalidArgumentError, match=wanted):
        KnowledgeGraph.from_frame(frame(ROWS), **arguments)


def test_unknown_columns_are_listed(frame: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"but 'film', 'year'\. Say which they are: head="):
        KnowledgeGraph.from_frame(frame([{"film": "Her", "year": 2013}]))


@pytest.mark.parametrize("thing", [7, "text", [("a", "b", "c")], None, np.zeros(3)])
def test_what_is_no_frame(thing: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"wanted a frame of pandas.*from_triples"):
        KnowledgeGraph.from_frame(thing)


# --- entities ---------------------------------------------------------------------------------------------------------


def test_a_frame_describes_entities(frame: Any) -> None:
    entities = [
        {"key": "Her", "label": "Her (film)", "aliases": ["Ella"], "types": ["film", "work"], "year": 2013},
        {"key": "Amélie", "label": "Le Fabuleux Destin", "aliases": [], "types": ["film"], "year": None},
    ]
    graph = KnowledgeGraph.from_frame(frame(ROWS), entities=frame(entities))
    assert graph.label("Her") == "Her (film)"
    assert graph.aliases("Her") == ["Ella"]
    assert graph.types_of("Her") == ["film", "work"]
    assert graph.types_of("Amélie") == ["film"]
    assert [triple.relation for triple in graph.triples()].count("year") == 1
    dropped = KnowledgeGraph.from_frame(frame(ROWS), entities=frame(entities), attributes="drop")
    assert {*dropped.triples()} == {*TRIPLES}
    assert "year" in str(dropped.reading.left_out)


def test_names_between_pipes() -> None:
    entities = [{"id": "Her", "name": "Her (film)", "aliases": "Ella | Lei", "types": "film|work"}]
    graph = KnowledgeGraph.from_frame(ROWS, entities=entities)
    assert (graph.aliases("Her"), graph.types_of("Her")) == (["Ella", "Lei"], ["film", "work"])


def test_entities_need_keys() -> None:
    with pytest.raises(InvalidArgumentError, match="entities: no column is called entity or id"):
        KnowledgeGraph.from_frame(ROWS, entities=[{"label": "Her"}])
    rows = [{"id": "Her", "label": "x"}, {"id": None, "label": "y"}]
    with pytest.raises(InvalidArgumentError, match="entities: row 2: the key is empty"):
        KnowledgeGraph.from_frame(ROWS, entities=rows)
    assert KnowledgeGraph.from_frame(ROWS, entities=rows, on_error="skip").skipped == 1


# --- files ------------------------------------------------------------------------------------------------------------


def write_stream(table: Any, path: Path) -> None:
    with ipc.new_stream(str(path), table.schema) as sink:
        sink.write_table(table)


WRITERS = {
    "kb.parquet": parquet.write_table,
    "kb.feather": feather.write_feather,
    "kb.arrow": feather.write_feather,
    "kb.arrows": write_stream,
    "parquet-by-content": parquet.write_table,
    "arrow-by-content": lambda table, path: feather.write_feather(table, path, compression="uncompressed"),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("encoded", [False, True])
def test_files_of_arrow(tmp_path: Path, name: str, encoded: bool) -> None:
    table = pyarrow.Table.from_pylist([dict(row, source="IMDb") for row in ROWS])
    if encoded:
        table = pyarrow.table({column: table[column].dictionary_encode() for column in table.column_names})
    WRITERS[name](table, tmp_path / name)
    graph = KnowledgeGraph.from_file(tmp_path / name)
    assert {*graph.triples()} == {*TRIPLES}
    assert graph.sources(TRIPLES[0]) == ["IMDb"]
    assert graph.reading.format in ("Parquet", "Arrow IPC")


def test_columns_of_a_file_are_named(tmp_path: Path) -> None:
    table = pyarrow.table({"film": ["Her"], "fact": ["year"], "value": [2013]})
    parquet.write_table(table, tmp_path / "kb.parquet")
    graph = KnowledgeGraph.from_file(tmp_path / "kb.parquet", columns=("film", "fact", "value"))
    assert [*graph.triples()] == [Triple("Her", "year", "2013")]
    with pytest.raises(GraphLoadError, match=r"but 'film', 'fact', 'value'\. .*columns=") as caught:
        KnowledgeGraph.from_file(tmp_path / "kb.parquet")
    assert "--columns HEAD" in caught.value.on_shell


def test_a_file_describes_entities(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "kb.parquet")
    entities = pyarrow.table({"entity": ["Her"], "label": ["Her (film)"], "types": [["film"]]})
    parquet.write_table(entities, tmp_path / "entities.parquet")
    graph = KnowledgeGraph.from_file(tmp_path / "kb.parquet", entities=tmp_path / "entities.parquet")
    assert (graph.label("Her"), graph.types_of("Her")) == ("Her (film)", ["film"])


def test_rows_of_a_file_are_reported_or_counted(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.Table.from_pylist([*ROWS, ROWS[0] | {"tail": None}]), tmp_path / "kb.parquet")
    with pytest.raises(GraphLoadError, match="row 5, column 'tail': a cell is empty"):
        KnowledgeGraph.from_file(tmp_path / "kb.parquet")
    assert KnowledgeGraph.from_file(tmp_path / "kb.parquet", on_error="skip").skipped == 1


def test_long_cells_of_a_file_are_refused(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.Table.from_pylist([ROWS[0] | {"tail": "x" * 10_000_000}]), tmp_path / "kb.parquet")
    with pytest.raises(GraphLoadError, match=r"a cell of 10,000,000 characters.*limits=Limits\(cell_length="):
        KnowledgeGraph.from_file(tmp_path / "kb.parquet")
    limits = Limits(cell_length=10_000_000)
    assert len(KnowledgeGraph.from_file(tmp_path / "kb.parquet", limits=limits)) == 1


@pytest.mark.parametrize("name", ["kb.parquet", "kb.arrow", "kb.arrows"])
def test_damaged_files(tmp_path: Path, name: str) -> None:
    WRITERS[name](pyarrow.Table.from_pylist(ROWS), tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    for content in (b"", b"text", whole[:-40], whole[:40], whole[:8] + b"\xff" * (len(whole) - 16) + whole[-8:]):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(GraphLoadError):
            KnowledgeGraph.from_file(tmp_path / name)


def test_a_packed_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kb.parquet.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(GraphLoadError, match="packed within"):
        KnowledgeGraph.from_file(tmp_path / "kb.parquet.gz")


def test_a_table_of_a_billion_rows_in_a_small_file_is_refused(tmp_path: Path) -> None:
    rows = 3_000_000
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.zeros(rows, np.int8)), ["a"])
    parquet.write_table(pyarrow.table(dict.fromkeys(("s", "p", "o"), column)), tmp_path / "kb.parquet")
    feather.write_feather(pyarrow.table(dict.fromkeys(("s", "p", "o"), column)), tmp_path / "kb.arrow")
    assert (tmp_path / "kb.parquet").stat().st_size < 30_000
    for name in ("kb.parquet", "kb.arrow"):
        with pytest.raises(GraphLoadError, match=r"becomes more than 20,000,000 bytes.*limits=Limits\(unpacked_bytes="):
            KnowledgeGraph.from_file(tmp_path / name, limits=Limits(unpacked_bytes=20_000_000))
        assert KnowledgeGraph.from_file(tmp_path / name).duplicates == rows - 1


def test_a_table_of_many_columns_is_refused(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({f"c{number}": [1] for number in range(1_001)}), tmp_path / "kb.parquet")
    with pytest.raises(GraphLoadError, match=r"a table of 1,001 columns.*The limit columns"):
        KnowledgeGraph.from_file(tmp_path / "kb.parquet")
