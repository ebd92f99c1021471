"""Memory and time of reading hostile files of every format.

    python -m benchmarks.hostile_files [--classes CLASS ...] [--growth]

Each file is read in a process of its own, with `Limits(unpacked_bytes=32 MiB)`. A case fails if the process takes more
than `unpacked_bytes` and 200 MB beyond the memory of reading one fact, more than 10 CPU seconds, or ends with an error
that is none of the package. Linux only.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import json
import lzma
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.readers.opening import Limits

UNPACKED, BEYOND, SECONDS = 32 << 20, 200_000_000, 10.0


def one_text_for_many_rows(folder: Path) -> Iterator[Path]:
    """Tables of Arrow whose rows, or the elements of whose lists, share one wide text."""
    import pyarrow as pa
    from pyarrow import ipc, parquet

    count, wide = 10_000, "x" * 2_000_000
    short = pa.array(["a"] * count)
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([wide]))
    listed = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), shared)
    view, data = pa.array([wide]).cast(pa.string_view()).buffers()[1:]
    views = pa.Array.from_buffers(pa.string_view(), count, [None, pa.py_buffer(view.to_pybytes() * count), data])
    facts = {"head": short, "relation": short, "tail": short}
    tables = {
        "tail": {**facts, "tail": shared},
        "attribute": {**facts, "note": shared},
        "structure": {**facts, "note": pa.StructArray.from_arrays([shared], ["text"])},
        "list": {**{name: column[:1] for name, column in facts.items()}, "note": listed},
        "view": {**facts, "tail": views},
        "plain": {**{name: column[:200] for name, column in facts.items()}, "tail": pa.array([wide] * 200)},
        "union": {
            **facts,
            "tail": pa.UnionArray.from_dense(
                pa.array([0] * count, pa.int8()), short.dictionary_encode().indices, [pa.array([wide])]
            ),
        },
    }
    for name, columns in tables.items():
        table = pa.table(columns)
        for packing in ("zstd", None):
            path = folder / f"{name}-{packing}.arrow"
            with ipc.new_file(path, table.schema, options=ipc.IpcWriteOptions(compression=packing)) as file:
                file.write_table(table)
            yield path
        if name not in ("view", "union"):
            for encoding in ({}, {"use_dictionary": False, "column_encoding": {"tail": "DELTA_BYTE_ARRAY"}}):
                path = folder / f"{name}-{len(encoding)}.parquet"
                if not encoding or name == "plain":
                    parquet.write_table(table, path, compression="zstd", store_schema=False, **encoding)
                    yield path


class Long(int):
    """A number of 64 bits in Thrift."""


def thrift(value: Any) -> bytes:
    """Write a number, a text, a list or a structure, by the numbers of its fields, in Thrift's compact protocol."""

    def kind(item: Any) -> int:
        return {bool: 1, int: 5, Long: 6, bytes: 8, list: 9, dict: 12}[type(item)]

    match value:
        case bool():
            return b""
        case int():
            return _varint(value * 2 if value >= 0 else -value * 2 - 1)
        case bytes():
            return _varint(len(value)) + value
        case list():
            return bytes([0xF0 | kind(value[0])]) + _varint(len(value)) + b"".join(map(thrift, value))
    fields = sorted(value.items())
    steps = zip(fields, [0, *value], strict=False)
    written = [bytes([(name - before) << 4 | kind(item)]) + thrift(item) for (name, item), before in steps]
    return b"".join(written) + b"\0"


def _varint(number: int) -> bytes:
    return bytes([number & 127 | 128]) + _varint(number >> 7) if number > 127 else bytes([number])


def parquet_file(
    pages: list[tuple[dict[int, Any], bytes]], rows: int = 1, repetition: int = 0, groups: int = 1
) -> bytes:
    """Write a Parquet file of one row of short texts and a column of zstd pages, whose metadata says anything."""
    written = [b"".join(thrift(head) + body for head, body in pages)]
    short = zstd(b"\1\0\0\0a")
    written += [thrift({1: 0, 2: 5, 3: len(short), 5: {1: 1, 2: 0, 3: 3, 4: 3}}) + short] * 2
    names, at, chunks = [b"tail", b"head", b"relation"], 4, []
    for name, content in zip(names, written, strict=True):
        about = {
            1: 6,
            2: [pages[0][0].get(5, {2: 0})[2] if name == b"tail" else 0],
            3: [name],
            4: 6,
            5: Long(rows),
            6: Long(9),
            7: Long(len(content)),
            9: Long(at),
        }
        chunks.append({2: Long(at), 3: about})
        at += len(content)
    leaves = [{1: 6, 3: repetition if name == b"tail" else 0, 4: name, 6: 0} for name in names]
    group = {1: chunks, 2: Long(9), 3: Long(rows)}
    schema = [{4: b"schema", 5: 3}, *leaves]
    footer = thrift({1: 1, 2: schema, 3: Long(rows * groups), 4: [group] * groups})
    return b"PAR1" + b"".join(written) + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def zstd(content: bytes) -> bytes:
    import pyarrow as pa

    packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    return packed


def lying_metadata(folder: Path) -> Iterator[Path]:
    """Parquet whose pages become 400 MB and whose metadata says 9 bytes, or whose numbers of rows differ."""
    size, count = 400_000_000, 100_000_000
    wide, part, one, none = zstd(bytes(size)), zstd(bytes(size // 8)), zstd(b"\1\0\0\0t"), zstd(b"")
    run = _varint(2 * count)
    levels = b"".join(len(level).to_bytes(4, "little") + level for level in (b"\2\0" + run + b"\1", run + b"\1"))
    index = zstd(levels + b"\1" + run + b"\0")
    page = {1: 0, 2: size, 3: len(wide), 5: {1: count, 2: 0, 3: 3, 4: 3}}
    empty = {1: 0, 2: 0, 3: len(none), 5: {1: 1, 2: 8, 3: 3, 4: 3}}
    listed = {1: 0, 2: len(levels) + 7, 3: len(index), 5: {1: count, 2: 8, 3: 3, 4: 3}}
    second = {1: count, 2: 0, 3: count, 4: 0, 5: 0, 6: 0, 7: True}
    texts = 10_000
    same, growing = ((texts // 128 + 1) * (thrift(step) + bytes(4)) for step in (0, 200))
    counted = b"\x80\1\4" + _varint(texts)
    deltas = counted + b"\0" + growing + counted + thrift(200) + same + bytes(200 * texts)
    delta = zstd(deltas)
    grown = {1: 0, 2: len(deltas), 3: len(delta), 5: {1: texts, 2: 7, 3: 3, 4: 3}}
    files: dict[str, Any] = {
        "page": ([(page, wide)],),
        "rows": ([(page, wide)], 10_000),
        "pages": ([({**page, 2: size // 8, 3: len(part)}, part)] * 8, 10**6),
        "dictionary": ([({1: 2, 2: size, 3: len(wide), 7: {1: count, 2: 0}}, wide), (empty, none)],),
        "version 2": ([({1: 3, 2: size, 3: len(wide), 8: second}, wide)],),
        "short claim": ([({**page, 2: 1_000}, wide)],),
        "long claim": ([({**empty, 2: 2**31 - 1}, none)],),
        "negative": ([({**page, 2: -1}, wide)],),
        "list": ([({1: 2, 2: 5, 3: len(one), 7: {1: 1, 2: 0}}, one), (listed, index)], 1, 2),
        "delta": ([(grown, delta)], texts),
        "many rows": ([(empty, none)], 10**12),
        "groups": ([({**page, 2: 5, 3: len(one)}, one)], 1, 0, 5_000),
    }
    for name, given in files.items():
        yield write(folder / f"{name}.parquet", parquet_file(*given))


RDF = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:ex='http://ex/' {}>{}</rdf:RDF>"
GRAPHML = "<graphml><graph edgedefault='directed' {}>{}</graph></graphml>"
GEXF = "<gexf version='1.2' {}><graph defaultedgetype='directed'><nodes>{}</nodes></graph></gexf>"
XML = {"rdf": RDF, "graphml": GRAPHML, "gexf": GEXF}

#: A row of each format of text, and what stands around all rows.
ROWS = {
    "tsv": ("a{0}\tr\tb{0}\n", "{}"),
    "csv": ("a{0},r,b{0}\n", "head,relation,tail\n{}"),
    "jsonl": ('{{"head": "a{0}", "relation": "r", "tail": "b{0}"}}\n', "{}"),
    "json": ('["a{0}", "r", "b{0}"],', '[{}["a", "r", "b"]]'),
    "nt": ("<x:a{0}> <x:r> <x:b{0}> .\n", "{}"),
    "ttl": ("<x:a{0}> <x:r> <x:b{0}> .\n", "{}"),
    "jsonld": ('{{"@id": "x:a{0}", "x:r": {{"@id": "x:b{0}"}}}},', '[{}{{"@id": "x:a"}}]'),
    "rdf": (
        "<rdf:Description rdf:about='x:a{0}'><ex:r rdf:resource='x:b{0}'/></rdf:Description>",
        RDF.format("", "{}"),
    ),
    "graphml": ("<node id='a{0}'/><edge source='a{0}' target='a0' relation='r'/>", GRAPHML.format("", "{}")),
}

PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def packed_bombs(folder: Path) -> Iterator[Path]:
    """Packed files that become 100 MB, of one row again and again, of blank lines, and of one line."""
    size = 100_000_000
    for packing, pack in PACK.items():
        for name, (row, _) in ROWS.items():
            if packing == "gz" or name in ("tsv", "nt"):
                block = row.format(7).encode() * 20_000
                yield write(folder / f"rows.{name}.{packing}", pack(block) * (size // len(block)))
        for name, text in {"blank": b"\n", "line": b"x"}.items():
            for format in ("tsv", "jsonl", "rdf") if packing == "gz" else ("tsv",):
                yield write(folder / f"{name}.{format}.{packing}", pack(text * (size // 20)) * 20)


def many_attributes(folder: Path) -> Iterator[Path]:
    """XML with 200,000 attributes or namespaces in one tag, or 200 namespaces in each of 250 nested tags."""
    for suffix, document in XML.items():
        for name, text in {"namespaces": "xmlns:a{0}='http://a/{0}'", "attributes": "ex:a{0}='{0}'"}.items():
            many = " ".join(map(text.format, range(200_000)))
            yield write(folder / f"{name}.{suffix}", document.format(many, ""))
        some = " ".join(map("xmlns:a{0}='http://a/{0}'".format, range(200)))
        yield write(folder / f"nested.{suffix}", document.format("", f"<ex:a {some}>" * 250 + "</ex:a>" * 250))


def deep_nesting(folder: Path) -> Iterator[Path]:
    """Elements, brackets, objects and lists that are nested 1,000,000 deep."""
    count = 1_000_000
    for suffix, document in XML.items():
        yield write(folder / f"elements.{suffix}", document.format("", "<ex:a>" * count + "</ex:a>" * count))
    for suffix, text in {
        "json": "[",
        "jsonl": '{"a":',
        "jsonld": '{"@graph":[',
        "ttl": "<x:a> <x:b> (",
        "nt": "<<",
    }.items():
        yield write(folder / f"brackets.{suffix}", text * count)


def entities(folder: Path) -> Iterator[Path]:
    """XML whose entities refer to one another, to a file or to an address."""
    laughs = "".join(f"<!ENTITY e{n} '{f'&e{n - 1};' * 10}'>" for n in range(1, 12))
    for suffix, document in XML.items():
        for name, about in {
            "laughs": f"<!ENTITY e0 'ha'>{laughs}",
            "file": "<!ENTITY e11 SYSTEM 'file:///etc/passwd'>",
            "address": "<!ENTITY e11 SYSTEM 'http://127.0.0.1:9/'>",
        }.items():
            head = document.partition(" ")[0].strip("<>")
            yield write(folder / f"{name}.{suffix}", f"<!DOCTYPE {head} [{about}]>" + document.format("", "&e11;"))


def long_texts(folder: Path) -> Iterator[Path]:
    """Cells, lines, literals and names of 64 MB."""
    text = "x" * (64 << 20)
    for suffix, (row, document) in ROWS.items():
        yield write(folder / f"long.{suffix}", document.replace("{}", row.format(text)))


CLASSES: dict[str, Callable[[Path], Iterator[Path]]] = {
    "one text for many rows": one_text_for_many_rows,
    "lying metadata": lying_metadata,
    "packed bombs": packed_bombs,
    "many attributes": many_attributes,
    "deep nesting": deep_nesting,
    "entities": entities,
    "long texts": long_texts,
}

#: How many rows a file has whose cost is compared.
SIZES = (10_000, 20_000, 40_000)


def growth(folder: Path) -> Iterator[tuple[str, list[float]]]:
    """Yield the CPU seconds of files of each format with 10,000, 20,000 and 40,000 rows."""
    for suffix, (row, document) in ROWS.items():
        files = (
            write(folder / f"{size}.{suffix}", document.replace("{}", "".join(map(row.format, range(size)))))
            for size in SIZES
        )
        yield suffix, [outcome(path)["seconds"] for path in files]


def read(path: Path) -> dict[str, Any]:
    """Read a file in this process, and return the error's name, the further memory in bytes and the CPU seconds."""
    import pyarrow.parquet  # noqa: F401 - loaded before the memory is measured
    import pyoxigraph  # noqa: F401

    KnowledgeGraph.from_triples([("a", "b", "c")])
    before, begun, error, is_typed = _peak(), time.process_time(), "", True
    try:
        KnowledgeGraph.from_file(path, limits=Limits(unpacked_bytes=UNPACKED))
    except Exception as raised:
        error, is_typed = type(raised).__name__, isinstance(raised, KGRetrieversError)
    return {"error": error, "is_typed": is_typed, "bytes": _peak() - before, "seconds": time.process_time() - begun}


def _peak() -> int:
    """Return the most memory that this process took, in bytes. `ru_maxrss` would begin at the memory of the parent."""
    return 1024 * int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])


def outcome(path: Path) -> dict[str, Any]:
    """Read a file in another process, and return what `read` does, and whether the case `failed`."""
    command = [sys.executable, "-m", "benchmarks.hostile_files", "--read", str(path)]
    ended = subprocess.run(
        command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False, timeout=120
    )
    found: dict[str, Any] = {"error": ended.stderr[-200:], "is_typed": False, "bytes": 0, "seconds": 0.0}
    if ended.returncode == 0:
        found = json.loads(ended.stdout)
    allowed = max(UNPACKED, path.stat().st_size) + BEYOND
    return found | {"failed": not found["is_typed"] or found["bytes"] > allowed or found["seconds"] > SECONDS}


def main() -> None:
    """Print a table of the classes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--read", type=Path)
    parser.add_argument("--classes", nargs="+", choices=CLASSES, default=[*CLASSES])
    parser.add_argument("--growth", action="store_true", help="also measure how the time grows with the rows")
    given = parser.parse_args()
    if given.read:
        print(json.dumps(read(given.read)))
        return
    print("| class | cases | failures | most MB | most CPU s |\n|---|---|---|---|---|")
    for name in given.classes:
        with TemporaryDirectory() as folder:
            found = {path.name: _outcome_once(path) for path in CLASSES[name](Path(folder))}
        most = (max(one[what] for one in found.values()) for what in ("bytes", "seconds"))
        failed = {path: one for path, one in found.items() if one["failed"]}
        print(f"| {name} | {len(found)} | {len(failed)} | {next(most) / 1e6:.0f} | {next(most):.1f} |")
        for path, one in failed.items():
            print(f"{path}: {one}", file=sys.stderr)
    if given.growth:
        print("\n| format | " + " | ".join(f"{size:,} rows, CPU s" for size in SIZES) + " |\n|---|---|---|---|")
        with TemporaryDirectory() as folder:
            for suffix, seconds in growth(Path(folder)):
                print(f"| {suffix} | " + " | ".join(f"{one:.2f}" for one in seconds) + " |")


def _outcome_once(path: Path) -> dict[str, Any]:
    found = outcome(path)
    path.unlink()
    return found


if __name__ == "__main__":
    main()
