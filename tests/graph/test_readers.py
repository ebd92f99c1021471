"""Files of triples and entities, good and broken."""

from __future__ import annotations

import csv
import gzip
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas
import pytest

from kg_retrievers.errors import GraphLoadError, GraphLoadWarning, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.readers.files import read_graph_rows
from kg_retrievers.graph.types import Triple

HER = Triple("Her", "directed_by", "Spike Jonze")
ALIEN = Triple("Alien", "directed_by", "Ridley Scott")


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# --- formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("kb.tsv", "Her\tdirected_by\tSpike Jonze\nAlien\tdirected_by\tRidley Scott\n"),
        ("kb.TSV", "Her\tdirected_by\tSpike Jonze\nAlien\tdirected_by\tRidley Scott"),
        ("crlf.tsv", "Her\tdirected_by\tSpike Jonze\r\nAlien\tdirected_by\tRidley Scott\r\n"),
        ("bom.tsv", "\ufeffHer\tdirected_by\tSpike Jonze\nAlien\tdirected_by\tRidley Scott\n"),
        ("blank.tsv", "\n \nHer \t directed_by\tSpike Jonze\n\t\t\nAlien\tdirected_by\tRidley Scott\n\n"),
        ("header.tsv", "Subject\tPredicate\tObject\nHer\tdirected_by\tSpike Jonze\nAlien\tdirected_by\tRidley Scott"),
        ("kb.txt", "\nHer\tdirected_by\tSpike Jonze\nAlien\tdirected_by\tRidley Scott\n"),
        ("pipe.txt", "Her|directed_by|Spike Jonze\nAlien|directed_by|Ridley Scott\n"),
        ("kb.csv", 'Her,directed_by,"Spike Jonze"\nAlien,directed_by,Ridley Scott\n'),
        (
            "header.csv",
            "year,target,source,edge\n2013,Spike Jonze,Her,directed_by\n,Ridley Scott,Alien,directed_by\n,,,\n",
        ),
        (
            "provenance.csv",
            "subject,predicate,object,source\nHer,directed_by,Spike Jonze,IMDb\nAlien,directed_by,Ridley Scott,IMDb\n",
        ),
        (
            "kb.jsonl",
            '{"head": "Her", "relation": "directed_by", "tail": "Spike Jonze"}\n\n'
            '{"tail": "Ridley Scott", "relation": "directed_by", "head": "Alien", "year": 1979}\n',
        ),
        (
            "kb.ndjson",
            '{"head": "Her", "relation": "directed_by", "tail": "Spike Jonze"}\r\n'
            '{"head": "Alien", "relation": "directed_by", "tail": "Ridley Scott"}',
        ),
    ],
)
def test_each_layout_gives_the_same_triples(tmp_path: Path, name: str, content: str) -> None:
    assert [*read_graph_rows(write(tmp_path, name, content)).triples()] == [HER, ALIEN]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("name", ["kb.tsv", "kb.csv"])
def test_tables_of_pandas(tmp_path: Path, name: str, index: bool, quoting: Any) -> None:
    heads = ["Her", '"Heroes"', "a\tb, c", "d\ne"]
    columns = {
        "head": heads,
        "relation": ["by"] * 4,
        "tail": ["Spike, Jonze", 'x "y"', "é", "z"],
        "since": [1999, 0, 1, 2],
    }
    frame = pandas.DataFrame(columns)
    frame.to_csv(tmp_path / name, sep="\t" if name == "kb.tsv" else ",", index=index, quoting=quoting)
    found, wanted = KnowledgeGraph.from_file(tmp_path / name), KnowledgeGraph.from_frame(frame)
    assert found.fingerprint == wanted.fingerprint
    assert found.attributes(("Her", "by", "Spike, Jonze")) == [{"since": 1999}]


@pytest.mark.parametrize(
    "stray", ['"Weird Al" Yankovic\tplays\tpolka', 'a\tr\t"b', '"a\tr\tb"', '"a"\tr', 'a\tr\t"b\nc\tr\td"']
)
def test_quotes_of_tsv_are_characters_unless_all_rows_obey_them(tmp_path: Path, stray: str) -> None:
    path = write(tmp_path, "kb.tsv", f'"Her"\tdirected_by\tSpike\n{stray}\n')
    found = KnowledgeGraph.from_file(path, on_error="skip")
    wanted = {Triple(*cells) for line in stray.split("\n") if len(cells := line.split("\t")) == 3}
    assert {*found.triples()} == {Triple('"Her"', "directed_by", "Spike"), *wanted}


def test_csv_quotes_as_rfc_4180(tmp_path: Path) -> None:
    path = write(tmp_path, "kb.csv", '"Crouching Tiger, ""Hidden""\nDragon",5" disk,x\n')
    assert [*read_graph_rows(path).triples()] == [Triple('Crouching Tiger, "Hidden"\nDragon', '5" disk', "x")]


def test_other_encodings(tmp_path: Path) -> None:
    text = "Amélie\tdirected_by\tJean-Pierre Jeunet\n"
    for encoding in ("latin-1", "utf-16", "UTF8"):
        path = write(tmp_path, f"{encoding}.tsv", text.encode(encoding))
        assert next(read_graph_rows(path, encoding=encoding).triples()).head == "Amélie"


def test_jsonl_mixes_entities_and_triples(tmp_path: Path) -> None:
    rows = [
        {"entity": "Q1", "label": "Her", "aliases": ["Her (film)", "Her (film)"], "types": ["film"]},
        {"head": "Q1", "relation": "release_year", "tail": 2013},
        {"entity": "Q1", "label": "Her!", "aliases": None, "types": ["film", "work"]},
        {"entity": "Q1", "label": "Her"},
        {"entity": 7, "types": []},
    ]
    path = write(tmp_path, "kb.jsonl", "\n".join(map(json.dumps, rows)))
    rows = read_graph_rows(path)
    assert [*rows.triples()] == [Triple("Q1", "release_year", "2013")]
    assert rows.labels == {"Q1": "Her"}
    assert rows.aliases == {"Q1": ["Her (film)", "Her!"]}
    assert rows.types == {"Q1": ["film", "work"], "7": []}


def test_json_numbers_keep_every_digit(tmp_path: Path) -> None:
    path = write(tmp_path, "kb.jsonl", '{"head": 1.50, "relation": "r", "tail": %s}' % ("9" * 5000))
    assert [*read_graph_rows(path).triples()] == [Triple("1.50", "r", "9" * 5000)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("names.tsv", "Q1\tHer\nQ2\tAlien\nQ1\tHer (film)\n"),
        ("names.txt", "Q1\tHer\nQ2\tAlien\nQ1\tHer (film)\n"),
        ("pipe.txt", "Q1|Her\nQ2|Alien\nQ1|Her (film)\n"),
        ("names.csv", "Name,year,ID\nHer,2013,Q1\nAlien,1979,Q2\nHer (film),,Q1\n"),
        (
            "names.jsonl",
            '{"entity": "Q1", "label": "Her", "aliases": ["Her (film)"]}\n{"entity": "Q2", "label": "Alien"}',
        ),
    ],
)
def test_entity_files(tmp_path: Path, name: str, content: str) -> None:
    facts, entities = write(tmp_path, "kb.jsonl", '["Q1", "before", "Q2"]'), write(tmp_path, name, content)
    rows = read_graph_rows(facts, entities=entities)
    assert rows.labels == {"Q1": "Her", "Q2": "Alien"}
    assert rows.aliases == {"Q1": ["Her (film)"]}


# --- delimiters, headers and columns ----------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["kb.csv", "kb.txt", "kb"])
@pytest.mark.parametrize("header", [True, False])
def test_the_delimiter_is_found(tmp_path: Path, delimiter: str, name: str, header: bool) -> None:
    rows = [("Subject", "Predicate", "Object")] * header + [HER, ALIEN, Triple("a, b; c", "is", "x")]
    if delimiter in ",;" or name == "kb.csv":
        rows.append(Triple('say "no"', "to", "a,b;c\td|e"))
    with open(tmp_path / name, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    read = read_graph_rows(tmp_path / name)
    assert [*read.triples()] == rows[header:]
    assert read.reading.understood["cells"].startswith("split at ")
    assert [*read_graph_rows(tmp_path / name, delimiter=delimiter, format="csv").triples()] == rows[header:]


def test_spaces_count_where_all_lines_have_three_cells(tmp_path: Path) -> None:
    path = write(tmp_path, "kb.txt", 'Her directed_by "Spike Jonze"\nAlien directed_by "Ridley Scott"\n')
    assert [*read_graph_rows(path).triples()] == [HER, ALIEN]
    with pytest.raises(GraphLoadError, match=r"cannot tell the format.*neither tabs, commas"):
        read_graph_rows(write(tmp_path, "kb.txt", "a b c\na b c d\n"))


FACTS = "Her,directed_by,Spike Jonze\nAlien,directed_by,Ridley Scott\nDune,directed_by,David Lynch\n"


@pytest.mark.parametrize(
    "content",
    [
        "movie,relation,person\n" + FACTS,
        "head,what,tail\n" + FACTS,
        "movie,property,value\n" + FACTS,
        "movie,property,value,year\n" + FACTS.replace("\n", ",1979\n"),
    ],
)
def test_a_row_that_may_be_a_header_is_no_fact(tmp_path: Path, content: str) -> None:
    path = write(tmp_path, "kb.csv", content)
    with pytest.raises(GraphLoadError, match=r"seems to name columns.*columns=.*header=False") as caught:
        read_graph_rows(path)
    assert caught.value.line == 1
    assert "--columns HEAD,RELATION,TAIL" in caught.value.on_shell
    columns = content.partition("\n")[0].split(",")[:3]
    assert len(read_graph_rows(path, columns=columns)) == 3
    if content.count("year") == 0:
        assert len(read_graph_rows(path, header=False)) == 4


@pytest.mark.parametrize("content", [FACTS, "Kill Bill,sequel_of,Her\n" + FACTS, "Her,type,film\n" + FACTS, FACTS[:28]])
def test_a_first_row_may_be_a_fact(tmp_path: Path, content: str) -> None:
    rows = read_graph_rows(write(tmp_path, "kb.csv", content))
    assert len(rows) == content.count("\n")
    assert rows.reading.understood["columns"] == "head, relation, tail; the first row is a fact"


@pytest.mark.parametrize(
    "rows", ["Rose,red,thorny\nLily,white,tall\n", "Rose,red,thorny\nLily,white,tall\nOak,green,big\n"]
)
def test_a_first_row_that_too_few_rows_judge_is_a_fact_with_a_warning(tmp_path: Path, rows: str) -> None:
    path = write(tmp_path, "kb.csv", "plant,colour,note\n" + rows)
    with pytest.warns(GraphLoadWarning, match=r"kb\.csv:1: .*'plant'.* read as a fact, .*header=False") as caught:
        assert len(read_graph_rows(path)) == rows.count("\n") + 1
    assert str(getattr(caught[0].message, "on_shell", "")).endswith("--read header=false")
    with warnings.catch_warnings(action="error"):
        read_graph_rows(path, header=False)


@pytest.mark.parametrize(("rare", "is_fact"), [(0, False), (1, False), (30, True)])
def test_a_first_row_may_be_a_fact_of_a_rare_relation(tmp_path: Path, rare: int, is_fact: bool) -> None:
    frequent = [f"film{number},directed_by,person{number % 40}" for number in range(200 - rare)]
    rows = ["film,fact,value", *frequent, *(f"thing{number},rare{number},note{number}" for number in range(rare))]
    path = write(tmp_path, "kb.csv", "\n".join([*rows, ""]))
    if is_fact:
        assert len(read_graph_rows(path)) == 201
    else:
        with pytest.raises(GraphLoadError, match="seems to name columns"):
            read_graph_rows(path)


def test_header_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, "kb.csv", "head,relation,tail\nHer,directed_by,Spike Jonze\n")
    assert len(read_graph_rows(path, header=False)) == 2
    assert [*read_graph_rows(path, header=True).triples()] == [HER]
    with pytest.raises(GraphLoadError, match="seems to name columns"):
        read_graph_rows(write(tmp_path, "kb.csv", FACTS), header=True)


def test_further_columns_are_told_or_become_facts(tmp_path: Path) -> None:
    path = write(tmp_path, "kb.csv", "head,relation,tail,year\nHer,directed_by,Spike Jonze,2013\nA,is,B,\n")
    kept = KnowledgeGraph.from_file(path)
    assert [kept.attributes(triple) for triple in kept.triples()] == [[{"year": 2013}], []]
    assert kept.reading.understood["attributes of facts"] == "'year' (facts=['year'] makes facts about the head)"
    assert read_graph_rows(path, attributes="drop").reading.left_out == {
        "cells of column 'year' (attributes=\"facts\" keeps them)": 2
    }
    rows = read_graph_rows(path, facts=["year"])
    assert [*rows.triples()] == [HER, Triple("A", "is", "B"), Triple("Her", "year", "2013")]
    assert rows.reading.left_out == {}
    with pytest.raises(GraphLoadError, match=r"facts names \['day'\]"):
        read_graph_rows(path, facts=["day"])


def test_a_column_names_sources(tmp_path: Path) -> None:
    path = write(tmp_path, "kb.csv", "head,relation,tail,source\nA,is,B,IMDb\nA,is,B,Films\nC,is,D,\n")
    graph = KnowledgeGraph.from_file(path)
    assert (graph.sources(("A", "is", "B")), graph.sources(("C", "is", "D"))) == (["IMDb", "Films"], [])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("names.csv", "id,name,aliases,types,year\nHer,Her (film),Ella|Lei,film|work,2013\nAlien,,,film,\n"),
        (
            "names.csv",
            'id;name;aliases;types;year\nHer;Her (film);"[""Ella"", ""Lei""]";film|work;2013\nAlien;;;film;\n',
        ),
    ],
)
def test_a_table_of_entities_has_attributes(tmp_path: Path, name: str, content: str) -> None:
    facts, names = write(tmp_path, "kb.csv", FACTS), write(tmp_path, name, content)
    graph = KnowledgeGraph.from_file(facts, entities=names)
    assert graph.label("Her") == "Her (film)"
    assert graph.aliases("Her") == ["Ella", "Lei"]
    assert graph.types_of("Her") == ["film", "work"]
    assert graph.types_of("Alien") == ["film"]
    assert ("Her", "year", "2013") in graph
    dropped = KnowledgeGraph.from_file(facts, entities=names, attributes="drop")
    assert len(dropped) == 3
    assert dropped.reading.left_out == {"node attribute 'year' (attributes=\"facts\" keeps it)": 1}


def test_a_table_of_entities_names_its_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "names.csv", "qid,title,year\nHer,Her (film),2013\n")
    facts = write(tmp_path, "kb.csv", FACTS)
    with pytest.raises(GraphLoadError, match=r"no columns are called entity or id.*Name them in the header"):
        read_graph_rows(facts, entities=path)


# --- JSON -------------------------------------------------------------------------------------------------------------

ROWS = [
    {"head": "Her", "relation": "P57", "tail": "Spike Jonze", "source": "IMDb", "year": 2013},
    ["Alien", "P57", "Ridley Scott"],
    {"subject": "Her", "predicate": "year", "object": 2013, "source": ["IMDb", "Films"]},
    {"relation": "P57", "label": "director"},
    {"entity": "Her", "label": "Her (film)", "datatype": "xsd:string"},
]


@pytest.mark.parametrize("indent", [None, 0, 4])
@pytest.mark.parametrize("name", ["kb.json", "kb.jsonl", "kb"])
def test_rows_of_json(tmp_path: Path, name: str, indent: int | None) -> None:
    if name == "kb.jsonl":
        content = "\n".join(map(json.dumps, ROWS))
    else:
        content = json.dumps(ROWS, indent=indent, ensure_ascii=False)
    graph = KnowledgeGraph.from_file(write(tmp_path, name, content))
    facts = [
        Triple("Her", "director", "Spike Jonze"),
        Triple("Her", "year", "2013"),
        Triple("Alien", "director", "Ridley Scott"),
    ]
    assert [*graph.triples()] == facts
    assert [graph.sources(fact) for fact in facts] == [["IMDb"], ["IMDb", "Films"], []]
    assert graph.relation_id("director") == "P57"
    assert graph.label("Her") == "Her (film)"
    assert graph.datatype("Her") == "xsd:string"
    assert graph.reading.left_out == {}
    assert [one.get("year") for fact in facts for one in graph.attributes(fact)] == [2013, None, None]


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ('[["a", "r", "b"], ["a", "r"]]', r"kb\.json:2: wanted an object such as"),
        ('[["a", "r", "b"], 7]', r"kb\.json:2: wanted an object"),
    ],
)
def test_malformed_elements_are_reported_or_counted(tmp_path: Path, content: str, wanted: str) -> None:
    path = write(tmp_path, "kb.json", content)
    with pytest.raises(GraphLoadError, match=wanted):
        read_graph_rows(path)
    assert read_graph_rows(path, on_error="skip").skipped == 1


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ('[["a", "r", "b"]', "kb.json:1: not JSON: Expecting ',' delimiter at column 17"),
        ('[["a", "r", "b"] ["c"]]', "not JSON: Expecting ',' delimiter"),
        ('[["a", "r", "b"],\n ]', "kb.json:2: not JSON"),
        ('[["a", "r", "b"]] x', "not JSON: Extra data"),
        ('[["a", "r", "\0"]]', "NUL byte"),
        ("[]", "no triples"),
        ('[["a", "r", NaN]]', "NaN is not JSON"),
        ("7", "neither rows of facts"),
        ('{"a": {"b": "c"}}x', "not JSON"),
        ('{"a": ', "not JSON"),
    ],
)
def test_broken_arrays(tmp_path: Path, content: str, wanted: str) -> None:
    with pytest.raises(GraphLoadError, match=wanted):
        read_graph_rows(write(tmp_path, "kb.json", content), on_error="skip")


# --- malformed lines --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "lines", "wanted"),
    [
        ("kb.tsv", ["Her\tdirected_by"], r"wanted 3 cells \(tsv\), but got 2: \['Her', 'directed_by'\]"),
        ("kb.tsv", ["Her\tdirected_by\tSpike Jonze\t"], "got 4"),
        ("kb.tsv", ["Her\t \tSpike Jonze"], "a cell is empty"),
        ("kb.csv", ["Her,directed_by,"], "a cell is empty"),
        ("kb.csv", ['Her,directed_by,"Spike" Jonze'], "row that begins here is not CSV: ',' expected after '\"'"),
        ("kb.csv", ['Her,directed_by,"Spike\nJonze",x'], "got 4"),
        ("kb.txt", ["Her|directed_by|Spike|Jonze"], r"wanted 3 cells \(pipe\), but got 4"),
        ("kb.jsonl", ["{"], "not JSON: .* at column 2"),
        ("kb.jsonl", ["[" * 100_000], "nested too deeply"),
        ("kb.jsonl", ["[]"], r"wanted an object such as .*, but got \[\]"),
        ("kb.jsonl", ["{}"], r"there is no \['head', 'relation', 'tail'\]"),
        ("kb.jsonl", ['{"head": "Her", "tail": "x"}'], r"there is no \['relation'\]"),
        ("kb.jsonl", ['{"head": "Her", "relation": "r", "tail": true}'], '"tail" must be a text.*got True'),
        ("kb.jsonl", ['{"head": "Her", "relation": null, "tail": "x"}'], '"relation" must be a text.*got None'),
        ("kb.jsonl", ['{"head": " ", "relation": "r", "tail": "x"}'], '"head" must be a text'),
        ("kb.jsonl", ['{"head": "\\u0000", "relation": "r", "tail": "x"}'], "without NUL"),
        ("kb.jsonl", ['{"head": "\\ud800", "relation": "r", "tail": "x"}'], "half a surrogate"),
        ("kb.jsonl", ['{"head": NaN, "relation": "r", "tail": "x"}'], "NaN is not JSON"),
        ("kb.jsonl", ['{"entity": "Her", "alias": ["x"]}'], r"keys .* but got also \['alias'\]"),
        ("kb.jsonl", ['{"entity": "Her", "aliases": "x"}'], '"aliases" must be a list of texts'),
        ("kb.jsonl", ['{"entity": "Her", "types": [["x"]]}'], '"types" must be a text'),
        ("kb.jsonl", ['{"entity": "Her", "label": ""}'], '"label" must be a text'),
        ("kb.jsonl", ['{"entity": null}'], '"entity" must be a text'),
        ("kb.jsonl", ['{"entity": "Her", "head": "Her"}'], r"got also \['head'\]"),
    ],
)
def test_malformed_lines_are_reported_or_counted(tmp_path: Path, name: str, lines: Sequence[str], wanted: str) -> None:
    good = {
        "kb.tsv": "\t".join(HER),
        "kb.csv": ",".join(HER),
        "kb.txt": "|".join(HER),
        "kb.jsonl": json.dumps(HER._asdict()),
    }[name]
    path = write(tmp_path, name, "\n".join([good, "", *lines, good]))
    with pytest.raises(GraphLoadError, match=wanted) as caught:
        read_graph_rows(path)
    assert (caught.value.path, caught.value.line) == (path, 3)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert 'on_error="skip"' in str(caught.value)
    rows = read_graph_rows(path, on_error="skip")
    assert [*rows.triples()] == [HER, HER]
    assert rows.skipped == "\n".join(lines).count("\n") + 1


def test_an_open_quote_is_reported_where_it_begins(tmp_path: Path) -> None:
    path = write(tmp_path, "kb.csv", 'Her,directed_by,Spike Jonze\nAlien,tag,"scary\na,b,c\nd,e,f\n')
    with pytest.raises(GraphLoadError, match="unexpected end of data") as caught:
        read_graph_rows(path)
    assert caught.value.line == 2
    rows = read_graph_rows(path, on_error="skip")
    assert ([*rows.triples()], rows.skipped) == ([HER], 3)


# --- files that cannot be read ----------------------------------------------------------------------------------------


NODES, KNOWS = "id:ID,name,:LABEL\na1,Ann,Person\n", ":START_ID,:END_ID,:TYPE\na1,c1,KNOWS\nd1,a1,KNOWS\n"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"kb.nt.gz": gzip.compress(b"<a:a> <b:b> <c:c> .\n")[:-9]}, "the file is cut off. Fetch it again"),
        ({"nodes.csv": NODES}, "nodes and no relationships. Name the folder that holds the file of its relationships"),
        ({"nodes.csv": NODES, "knows.csv": KNOWS}, "2 nodes of relationships are in no file, such as 'c1'"),
    ],
)
def test_a_part_that_is_missing_is_told(tmp_path: Path, files: dict[str, str | bytes], told: str) -> None:
    paths = [write(tmp_path, name, content) for name, content in files.items()]
    with pytest.warns(GraphLoadWarning, match=told) if len(paths) > 1 else pytest.raises(GraphLoadError, match=told):
        KnowledgeGraph.from_file(tmp_path if len(paths) > 1 else paths[0])


@pytest.mark.parametrize("name", ["kb.tsv", "kb.csv", "kb.jsonl", "kb.txt"])
@pytest.mark.parametrize("content", ["", "\ufeff", "\n \n"])
def test_empty_files(tmp_path: Path, name: str, content: str) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(GraphLoadError, match="no triples, 0 malformed lines"):
        read_graph_rows(path)
    with pytest.raises(GraphLoadError, match="no entities, 0 malformed lines"):
        read_graph_rows(write(tmp_path, "facts.csv", FACTS), entities=path)


def test_missing_file(tmp_path: Path) -> None:
    write(tmp_path, "movies.tsv", "")
    with pytest.raises(GraphLoadError, match=r"no such file\. Did you mean: 'movies.tsv'\?"):
        read_graph_rows(tmp_path / "movie.tsv")
    for other in ("nowhere/movies.tsv", "nofile.tsv", "series.tsv"):
        with pytest.raises(GraphLoadError, match=r"no such file\. Check the path"):
            read_graph_rows(tmp_path / other)


@pytest.mark.parametrize("before", [0, 1, 5000])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_wrong_encoding_says_where(tmp_path: Path, before: int, pack: Any) -> None:
    good = "Léon\tdirected_by\tLuc Besson\n".encode() * before
    path = write(
        tmp_path, "kb.tsv" + (".gz" if pack is gzip.compress else ""), pack(good + b"a\tb\tAm\xe9lie\nc\td\te")
    )
    with pytest.raises(GraphLoadError, match=rf'byte {len(good) + 6} is not utf-8\. .*encoding="latin-1"') as caught:
        read_graph_rows(path, on_error="skip")
    assert caught.value.line == before + 1
    assert [*read_graph_rows(path, encoding="latin-1").triples()][before].tail == "Amélie"


@pytest.mark.parametrize("name", ["kb.tsv", "kb.csv", "kb.jsonl", "kb.txt"])
def test_nul_bytes(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name, b"\n\0\t\0\t\0\n")
    with pytest.raises(GraphLoadError, match="NUL byte") as caught:
        read_graph_rows(path, on_error="skip")
    assert caught.value.line == 2


@pytest.mark.parametrize("name", ["kb.txt", "kb", "kb.data"])
def test_unknown_layout(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name, "\nonce upon a time\nthere was no table\n")
    with pytest.raises(GraphLoadError, match=r'cannot tell the format.*once upon.*format="tsv"') as caught:
        read_graph_rows(path)
    assert caught.value.line == 2


@pytest.mark.parametrize("header", ["film,property", "film,property,value,film"])
def test_missing_columns(tmp_path: Path, header: str) -> None:
    path = write(tmp_path, "kb.csv", f"{header}\nHer,directed_by,Spike Jonze\n")
    with pytest.raises(GraphLoadError, match=r"columns \['film', 'property', 'value'\].*found \['film', 'property'"):
        read_graph_rows(path, columns=("film", "property", "value"), on_error="skip")


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"format": "xml"}, "format is .* got 'xml'"),
        ({"on_error": "ignore"}, "on_error must be .* got 'ignore'"),
        ({"encoding": "utf-88"}, "no text encoding 'utf-88'"),
        ({"encoding": "hex"}, "no text encoding 'hex'"),
        ({"columns": ("a", "b")}, r"the names of the columns for head, relation, tail \(and .*, but got \('a', 'b'\)"),
        ({"columns": "abc"}, "got 'abc'"),
        ({"columns": ("a", "b", "c"), "format": "jsonl"}, "columns is for the formats csv, .* is jsonl. Leave it out"),
    ],
)
def test_bad_arguments(tmp_path: Path, arguments: dict[str, Any], wanted: str) -> None:
    path = write(tmp_path, "kb.tsv", "\t".join(HER))
    with pytest.raises(InvalidArgumentError, match=wanted):
        read_graph_rows(path, **arguments)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("kb.jsonl", {"delimiter": ";"}),
        ("kb.jsonl", {"header": False}),
        ("kb.jsonl", {"facts": ["year"]}),
        ("kb.nt", {"encoding": "latin-1"}),
        ("neo4j.csv", {"facts": ["year"]}),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(tmp_path: Path, name: str, option: dict[str, Any]) -> None:
    contents = {"neo4j.csv": ":START_ID,:TYPE,:END_ID\na,r,b\n"}
    path = write(tmp_path, name, contents.get(name, ""))
    with pytest.raises(InvalidArgumentError, match=f"{next(iter(option))} is for the formats .* Leave it out"):
        KnowledgeGraph.from_file(path, **option)


def test_options_that_count_for_the_entities_alone(tmp_path: Path) -> None:
    facts = write(tmp_path, "kb.jsonl", '["Her", "directed_by", "Spike Jonze"]')
    entities = write(tmp_path, "entities.csv", "entity~label~born\nHer~Elle~1987\n")
    graph = KnowledgeGraph.from_file(facts, entities=entities, delimiter="~", attributes="drop")
    assert (graph.label("Her"), len(graph)) == ("Elle", 1)
    odd = write(tmp_path, "odd.csv", "Her~directed_by~Spike Jonze\n")
    tabs = write(tmp_path, "names.tsv", "Her\tElle\n")
    assert KnowledgeGraph.from_file(odd, delimiter="~", entities=tabs).label("Her") == "Elle"
