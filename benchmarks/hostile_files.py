"""Memory and time of reading hostile files of every format.

    python benchmarks/hostile_files.py [--classes CLASS ...]

Each file is read in a process of its own, with `Limits(unpacked_bytes=32 MiB)`. A case fails if the process takes more
than `unpacked_bytes` and 200 MB beyond the memory of reading one fact, more than 10 CPU seconds, or ends with an error
that is none of the package. Linux only.
"""

from __future__ import annotations

import argparse
import json
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


CLASSES: dict[str, Callable[[Path], Iterator[Path]]] = {"one text for many rows": one_text_for_many_rows}


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
    given = parser.parse_args()
    if given.read:
        print(json.dumps(read(given.read)))
        return
    print("| class | cases | failures | most MB | most CPU s |\n|---|---|---|---|---|")
    for name in given.classes:
        with TemporaryDirectory() as folder:
            found = {path.name: outcome(path) for path in CLASSES[name](Path(folder))}
        most = (max(one[what] for one in found.values()) for what in ("bytes", "seconds"))
        failed = {path: one for path, one in found.items() if one["failed"]}
        print(f"| {name} | {len(found)} | {len(failed)} | {next(most) / 1e6:.0f} | {next(most):.1f} |")
        for path, one in failed.items():
            print(f"{path}: {one}", file=sys.stderr)


if __name__ == "__main__":
    main()
