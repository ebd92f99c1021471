"""Files that are broken or hostile: refused within limits of memory and time, by a typed error that says what to do."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import os
import socket
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from benchmarks.hostile_files import lying_metadata, outcome
from kg_retrievers.errors import GraphLoadError, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.readers.opening import Limits, Needs, needs_of, open_bytes

ROWS = b"Her\tdirected_by\tSpike Jonze\n" * 50
PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def zstandard(folder: Path, name: str, content: bytes) -> Path:
    arrow = pytest.importorskip("pyarrow")
    with arrow.output_stream(str(folder / name), compression="zstd") as stream:
        stream.write(content)
    return folder / name


# --- what is unpacked -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize("named", [True, False])
def test_compressed_files_are_unpacked_by_suffix_or_first_bytes(tmp_path: Path, packing: str, named: bool) -> None:
    path = write(tmp_path, f"kb.tsv{packing if named else ''}", PACK[packing](ROWS))
    with open_bytes(path, Limits()) as file:
        assert file.read() == ROWS


def test_zstandard_is_unpacked(tmp_path: Path) -> None:
    with open_bytes(zstandard(tmp_path, "kb.tsv.zst", ROWS), Limits()) as file:
        assert file.read() == ROWS


@pytest.mark.parametrize("packing", PACK)
def test_damage_is_told(tmp_path: Path, packing: str) -> None:
    whole = PACK[packing](os.urandom(5000))
    for content in (whole[:-20], whole[:40] + b"\xff" * 2000 + whole[2040:], b"plain text"):
        path = write(tmp_path, "kb.tsv" + packing, content)
        with pytest.raises(GraphLoadError, match="cannot be read"), open_bytes(path, Limits()) as file:
            file.read()


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packing", [*PACK, ".zst"])
def test_a_bomb_is_refused_in_bounded_memory(tmp_path: Path, packing: str) -> None:
    bomb = (b"0" * 1_023 + b"\n") * (64 << 10)  # 64 MiB
    name = "bomb.tsv" + packing
    path = zstandard(tmp_path, name, bomb) if packing == ".zst" else write(tmp_path, name, PACK[packing](bomb))
    del bomb
    tracemalloc.start()
    try:
        with (
            pytest.raises(GraphLoadError, match=r"becomes more than 8,000,000 bytes.*limits=Limits\(unpacked_bytes="),
            open_bytes(path, Limits(unpacked_bytes=8_000_000)) as file,
        ):
            for _ in file:
                pass
        assert tracemalloc.get_traced_memory()[1] < 16_000_000  # the window of xz takes 8 MiB
    finally:
        tracemalloc.stop()


def test_a_compressed_file_may_become_50_times_its_size() -> None:
    assert Limits().bytes_of(2_800_000) == 140_000_000
    assert Limits().bytes_of(100) == 128 << 20
    assert Limits(unpacked_bytes=7).bytes_of(2_800_000) == 7


@pytest.mark.parametrize("size", [1_000, 1_000_000])
@pytest.mark.parametrize("before", [b"", b"short\n", b"short\r\n" * 400_000])
def test_an_endless_line_is_refused(tmp_path: Path, size: int, before: bytes) -> None:
    path = write(tmp_path, "kb.tsv", before + b"x" * (size + 1) + b"\nshort\n")
    with open_bytes(path, Limits(line_bytes=size + 1)) as file:
        assert max(map(len, file)) == size + 2
    wanted = rf"a line of more than {size:,} bytes.*limits=Limits\(line_bytes="
    with pytest.raises(GraphLoadError, match=wanted) as caught, open_bytes(path, Limits(line_bytes=size)) as file:
        for _ in file:
            pass
    assert f"--read limits.line_bytes={size + 1}" in caught.value.on_shell or "line_bytes=N" in caught.value.on_shell
    with open_bytes(path, Limits(line_bytes=size), by_line=False) as file:
        assert len(file.read()) == len(before) + size + 8


def test_a_limit_that_is_told_for_a_long_cell_of_csv_is_enough(tmp_path: Path) -> None:
    path = write(tmp_path, "kb.csv", b'head,relation,tail\na,r,"%b"\n' % (b"x" * 500))
    before = csv.field_size_limit(10)  # of the whole process; readers only raise it
    try:
        with pytest.raises(GraphLoadError, match=r"a cell of more than 10 characters.*Limits\(cell_length=") as caught:
            KnowledgeGraph.from_file(path, limits=Limits(cell_length=10))
        told = int("".join(filter(str.isdigit, caught.value.hint_python)))
        assert len(KnowledgeGraph.from_file(path, limits=Limits(cell_length=told))) == 1
    finally:
        csv.field_size_limit(before)


@pytest.mark.parametrize("name", ["unpacked_bytes", "line_bytes", "cell_length", "columns"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "8"])
def test_a_limit_allows_something(name: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"Limits: {name} must be .* got {value!r}"):
        Limits(**{name: value})


# --- through every reader of text -------------------------------------------------------------------------------------

NAMES = ("kb.tsv", "kb.csv", "kb.txt", "kb.jsonl", "kb.json", "kb", "kb.parquet", "kb.arrow", "kb.graphml", "kb.nt")
CONTENTS = {
    "zeros": b"\0" * (1 << 20),
    "an endless line": b"x" * (3 << 20),
    "brackets": b"[" * (1 << 20),
    "objects": b'{"a":' * (1 << 18),
    "an open quote": b'"' + b"a,b\n" * (1 << 16),
    "tabs": b"\t" * (1 << 20),
    "commas": b"," * (1 << 20),
    "line breaks": b"\n" * (1 << 18),
    "no utf-8": b"\xff\xfe\xfd" * (1 << 16),
    "surrogates": b"a\xed\xa0\x80\tr\tb\n",
    "a digit": b"[" + b"9" * (1 << 20),
    "magic": b"PAR1ARROW1" * 1000,
}


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("name", NAMES)
def test_hostile_files_are_told(tmp_path: Path, name: str, content: str) -> None:
    path = write(tmp_path, name, CONTENTS[content])
    with pytest.raises(GraphLoadError):
        KnowledgeGraph.from_file(path, limits=Limits(line_bytes=2 << 20))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("kb.tsv", b"a\tr\t%b\n"),
        ("kb.csv", b'a,r,"%b"\n'),
        ("kb.jsonl", b'{"head": "a", "relation": "r", "tail": "%b"}\n'),
        ("kb.json", b'[["a", "r", "%b"]]'),
    ],
)
@pytest.mark.parametrize(
    "cell", [pytest.param(b"x" * (10 << 20), marks=pytest.mark.heavy), b"x " * 524_300], ids=["10 MB", "1,048,600"]
)
def test_a_long_cell_is_refused_or_counted(tmp_path: Path, name: str, content: bytes, cell: bytes) -> None:
    row = content.replace(b"%b", b"b")
    rows = [row[:-1] + b", " + (content % cell)[1:]] if name == "kb.json" else [row, content % cell]
    path = write(tmp_path, name, b"".join(rows))
    with pytest.raises(GraphLoadError, match=r"a cell of .* characters.*limits=Limits\(cell_length="):
        KnowledgeGraph.from_file(path)
    skipped = KnowledgeGraph.from_file(path, on_error="skip")
    assert (len(skipped), skipped.skipped > 0) == (1, True)
    assert len(KnowledgeGraph.from_file(path, limits=Limits(cell_length=11 << 20))) == 2


@pytest.mark.parametrize("name", ["kb.tsv", "kb.csv"])
def test_a_row_of_many_cells_is_refused(tmp_path: Path, name: str) -> None:
    cells = [f"c{number}" for number in range(1_001)]
    path = write(tmp_path, name, ("\t" if name == "kb.tsv" else ",").join(cells).encode() + b"\n")
    with pytest.raises(GraphLoadError, match=r"a row of 1,001 cells.*limits=Limits\(columns=1001\)"):
        KnowledgeGraph.from_file(path)


# --- what is no regular file ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/random"])
def test_devices_are_refused(device: str) -> None:
    with pytest.raises(GraphLoadError, match="device, a pipe or a socket"):
        open_bytes(device, Limits())


def test_pipes_and_sockets_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tsv")
    os.symlink("pipe.tsv", tmp_path / "link.tsv")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket.tsv"))
        for name in ("pipe.tsv", "link.tsv", "socket.tsv"):
            with pytest.raises(GraphLoadError, match="device, a pipe or a socket"):
                open_bytes(tmp_path / name, Limits())


# --- what takes more memory than its size -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tail.parquet", "list.parquet", "delta.parquet", "tail.arrow", "view.arrow"])
def test_one_text_for_many_rows_takes_bounded_memory(tmp_path: Path, name: str) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import ipc, parquet

    count, text = 2_000, "x" * 1_000_000
    short, shared = ["a"] * count, pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([text]))
    columns = {"head": short, "relation": short, "tail": shared}
    if name == "list.parquet":
        listed = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), shared)
        columns = {"head": ["a"], "relation": ["a"], "tail": ["a"], "note": listed}
    if name == "delta.parquet":
        columns = {"head": ["a"] * 300, "relation": ["a"] * 300, "tail": [text] * 300}
    if name == "view.arrow":
        view, data = pa.array([text]).cast(pa.string_view()).buffers()[1:]
        views = [None, pa.py_buffer(view.to_pybytes() * count), data]
        columns["tail"] = pa.Array.from_buffers(pa.string_view(), count, views)
    table, path = pa.table(columns), tmp_path / name
    encoding = {"use_dictionary": False, "column_encoding": {"tail": "DELTA_BYTE_ARRAY"}} if "delta" in name else {}
    if path.suffix == ".parquet":
        parquet.write_table(table, path, compression="zstd", store_schema=False, **encoding)
    else:
        with ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    found = outcome(path)
    assert (found["error"], found["failed"]) == ("GraphLoadError", False), found
    with pytest.raises(GraphLoadError, match=r"becomes more than .* bytes.*limits=Limits\(unpacked_bytes="):
        KnowledgeGraph.from_file(path, limits=Limits(unpacked_bytes=32 << 20))


def test_parquet_whose_metadata_says_too_little_takes_bounded_memory(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    lies = {"page", "dictionary", "version 2", "list", "delta"}
    found = {path.stem: outcome(path) for path in lying_metadata(tmp_path) if path.stem in lies}
    assert {name: (one["error"], one["failed"]) for name, one in found.items()} == dict.fromkeys(
        lies, ("GraphLoadError", False)
    )


def test_values_of_arrow_that_stand_for_many_rows_are_refused(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    tail = pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(["t"]))
    table = pa.table({"head": ["a"], "relation": ["r"], "tail": tail})
    with pa.ipc.new_file(tmp_path / "kb.arrow", table.schema) as file:
        file.write_table(table)
    with pytest.raises(GraphLoadError, match=r"a column has the type run_end_encoded.*Write it as texts"):
        KnowledgeGraph.from_file(tmp_path / "kb.arrow")


#: Reads, indexes or runs a command with 30 MB more than the process has.
IN_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph
from kg_retrievers.cli.shell import run
from kg_retrievers.errors import OutOfMemoryError
import numpy as np
what, path = sys.argv[1:]
graph = KnowledgeGraph.from_file(path) if what == "build" else KnowledgeGraph.from_triples([("a", "r", "b")])
GraphIndex.build(KnowledgeGraph.from_triples([("a", "r", "b")]), HashedEmbeddings())
np.ones((512, 512)) @ np.ones((512, 512))  # OpenBLAS takes its memory once, and ends the process if it gets none
most = 30_000_000 + 4096 * int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (most, most))
if what == "index":
    sys.exit(run(["index", path, "--output", path + ".index", "--embeddings", "hashed"]))
try:
    GraphIndex.build(graph, HashedEmbeddings()) if what == "build" else KnowledgeGraph.from_file(path)
except OutOfMemoryError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the addresses of a process")
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("read", "KnowledgeGraph.from_file: the system gives this process no more memory. Leave out texts"),
        ("build", "GraphIndex.build: the system gives this process no more memory. Leave out texts"),
        ("index", "error: KnowledgeGraph.from_file: the system gives this process no more memory. Leave out texts"),
    ],
    ids=["read", "build", "index"],
)
def test_too_little_memory_is_a_typed_error(tmp_path: Path, what: str, words: str) -> None:
    rows = "".join(f"entity number {number}\tr\tother entity {number}\n" for number in range(200_000))
    path = write(tmp_path, "kb.tsv", rows.encode())
    command = [sys.executable, "-c", IN_LITTLE_MEMORY, what, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert words in ended.stdout + ended.stderr
    assert (ended.stdout + ended.stderr).strip().count("\n") == 0


# --- what takes more time than its size -------------------------------------------------------------------------------

SMALL = {
    "kb.tsv": b"a\tr\tb\n",
    "kb.csv.bz2": bz2.compress(b"head,relation,tail\na,r,b\n"),
    "kb.jsonl": b'{"head": "a", "relation": "r", "tail": "b"}\n',
    "kb.json.gz": gzip.compress(b'[["a", "r", "b"]]'),
    "kb.graphml": b'<graphml><graph edgedefault="directed"/></graphml>',
    "kb.ttl": b"<x:a> <x:r> <x:b> .",
    "kb.rdf": b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>",
    "kb.jsonld": b'{"@id": "x:a", "x:r": {"@id": "x:b"}}',
}


@pytest.mark.parametrize("name", [*SMALL, "kb.parquet", "kb.arrow"])
def test_a_reading_that_takes_too_long_ends(tmp_path: Path, name: str) -> None:
    if name in SMALL:
        write(tmp_path, name, SMALL[name])
    else:
        table = pytest.importorskip("pandas").DataFrame({"head": ["a"], "relation": ["r"], "tail": ["b"]})
        (table.to_parquet if name.endswith("parquet") else table.to_feather)(tmp_path / name)
    wanted = r"took more than 1e-09 seconds.*limits=Limits\(max_seconds=N\)"
    with pytest.raises(GraphLoadError, match=wanted) as caught:
        KnowledgeGraph.from_file(tmp_path / name, limits=Limits(max_seconds=1e-9))
    assert "--read limits.max_seconds=N" in caught.value.on_shell


@pytest.mark.parametrize("attribute", ["xmlns:a%d='http://a/%d'", "rdf:a%d='%d'"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("kb.rdf", "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' %s/>"),
        ("kb.graphml", "<graphml><graph edgedefault='directed' %s/></graphml>"),
        ("kb.gexf", "<gexf %s/>"),
    ],
)
def test_a_tag_of_many_attributes_is_refused(tmp_path: Path, name: str, content: str, attribute: str) -> None:
    many = " ".join(attribute % (number, number) for number in range(1_001))
    path = write(tmp_path, name, (content % many).encode())
    with pytest.raises(GraphLoadError, match="a tag has more than 1,000 attributes or namespaces"):
        KnowledgeGraph.from_file(path)


def test_namespaces_count_in_all_open_tags(tmp_path: Path) -> None:
    tags = (
        "<a " + " ".join(f"xmlns:a{depth}x{number}='http://a/'" for number in range(300)) + ">" for depth in range(4)
    )
    path = write(tmp_path, "kb.rdf", "".join(tags).encode())
    with pytest.raises(GraphLoadError, match="more than 1,000 attributes or namespaces"):
        KnowledgeGraph.from_file(path)


def test_a_graph_that_does_not_fit_the_memory_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, "kb.tsv", b"Her\tdirected_by\tSpike Jonze\n" * 10_000 + b"broken")
    with pytest.raises(GraphLoadError, match=r"reading takes about 0\.0 GB of memory.*memory_bytes=N") as refused:
        KnowledgeGraph.from_file(path, limits=Limits(memory_bytes=100_000))
    assert "--read limits.memory_bytes=N" in refused.value.on_shell


@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz"])
def test_the_needs_of_a_file_are_told_before_it_is_read(tmp_path: Path, suffix: str) -> None:
    text = b"".join(b"entity %d\trelation %d\tentity %d\n" % (n, n % 9, n * 7 % 5_000) for n in range(20_000))
    path = write(tmp_path, "kb" + suffix, gzip.compress(text) if suffix.endswith("gz") else text)
    needs = needs_of([path])
    assert 0.5 * len(text) < needs.memory < 20 * len(text)
    assert needs.told == ""
    assert Needs(2_000_000_000, 500_000_000, 3).told == "about 2.0 GB of memory, 0.5 GB saved, 3 minutes"
