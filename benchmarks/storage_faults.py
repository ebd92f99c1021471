"""Whether a saved index survives kills, two writers, a full disk, damage and readers beside a writer.

    python benchmarks/storage_faults.py

The sample graph, with embeddings of letters. A process is ended (SIGKILL) at a random moment of a save; then the folder
must open as the save before or as the new one, all checksums must agree, and the next save must leave no other file.
"update" changes the index; in "grow", many new rows go behind those of a saved column, in its file. "two writers": both
save at once, and one of them is killed; who comes second must be told. "disk full": no file may become longer than a
random size (RLIMIT_FSIZE).

Damage: a bit is flipped, a file is cut or emptied, or the contents of two files are swapped. "told": a typed error when
the folder is opened or asked. "--verify" must find each. "untyped" and "crashed" must be 0. Once more with the check of
checksums left out, as it is for columns of more than 4 MiB.

Readers: one process builds the index again and again, of one graph and of another, while this one opens it and asks.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import resource
import shutil
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    NeighborhoodRetriever,
    PCSTRetriever,
    RelationPathRetriever,
    SimGRAGRetriever,
    TripleSimilarityRetriever,
)
from kg_retrievers.errors import FileWriteError, KGRetrieversError
from kg_retrievers.graph.storage import parts as storage
from kg_retrievers.graph.storage.parts import (
    KEEP,
    MANIFEST,
    FolderWriter,
    Grown,
    Part,
    open_parts,
    own_files,
    read_manifest,
    verify,
)
from kg_retrievers.sample import load_graph

EMBEDDINGS = HashedEmbeddings(64)
METHODS = (
    SimGRAGRetriever,
    PCSTRetriever,
    TripleSimilarityRetriever,
    NeighborhoodRetriever,
    RelationPathRetriever,
)
QUESTIONS = ("Who directed Her?", "Which films did Spike Jonze direct?", "What genre has Her?")

#: What a process says by its exit code.
DONE, TOLD, UNTYPED = 0, 3, 4

#: The seconds after which a process that asks a damaged folder counts as crashed.
PATIENCE = 120


def main() -> None:
    """Run what is asked for, and print a table each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="points of each kind of save (default 200)")
    parser.add_argument("--corruptions", type=int, default=1000, help="damaged folders (default 1000)")
    parser.add_argument("--rebuilds", type=int, default=500, help="saves beside a reader (default 500)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    logging.disable()
    with TemporaryDirectory() as name:
        show_kills(Path(name), options.kills)
        show_corruptions(Path(name), options.corruptions, "as a small folder is, by checksums")
        storage.CHECKED = 0
        show_corruptions(Path(name), options.corruptions, "as columns of more than 4 MiB are, by bounds alone")
        show_readers(Path(name), options.rebuilds)


# --- graphs -----------------------------------------------------------------------------------------------------------

OLD = load_graph()
NEW = OLD.with_changes(added=[(f"new entity {number}", "directed by", "Spike Jonze") for number in range(50)])
OTHER = OLD.with_changes(added=[("another entity", "directed by", "Spike Jonze")])


def build(graph: KnowledgeGraph, folder: Path) -> None:
    """Save a graph and its index."""
    GraphIndex.build(graph, EMBEDDINGS, folder, triples=True)


def update(folder: Path) -> None:
    """Change a saved index."""
    added = [(f"new entity {number}", "directed by", "Spike Jonze") for number in range(50)]
    gone = next(OLD.triples())  # unless an earlier change has removed it
    removed = [gone] if gone in KnowledgeGraph.open(folder) else []
    GraphIndex.update(folder, EMBEDDINGS, added=added, removed=removed)


def grow(folder: Path) -> None:
    """Add rows to a column beside graph and index."""
    with FolderWriter(folder) as writer:
        size = writer.before.parts["rows"].meta["size"] if "rows" in writer.before.parts else 0
        rows = np.arange(size, size + 20_000)
        part = Part({"ids": Grown(rows) if size else rows}, {"size": size + len(rows)})
        writer.replace({"graph": KEEP, "index": KEEP, "rows": part})


# --- processes --------------------------------------------------------------------------------------------------------


def start(action: Callable[[], Any], size: int | None = None) -> int:
    """Run something in a process of its own; return its id."""
    process = os.fork()
    if process:
        return process
    code = DONE
    try:
        if size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        action()
    except FileWriteError:
        code = TOLD
    except BaseException as error:
        print(f"untyped: {error!r}", flush=True)
        code = UNTYPED
    os._exit(code)


def end(process: int) -> int:
    """Wait for a process; return its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def duration(action: Callable[[Path], Any], before: Path, folder: Path) -> float:
    """Return the seconds that a save takes."""
    times = []
    for _ in range(5):
        put(before, folder)
        began = time.perf_counter()
        end(start(lambda: action(folder)))
        times.append(time.perf_counter() - began)
    return median(times)


def put(before: Path, folder: Path) -> None:
    """Put a folder back as it was before."""
    shutil.rmtree(folder, ignore_errors=True)
    if before.exists():
        shutil.copytree(before, folder)


# --- kills ------------------------------------------------------------------------------------------------------------


def show_kills(place: Path, points: int) -> None:
    """Kill saves of each kind."""
    before, none, grown, folder = place / "before", place / "none", place / "grown", place / "index"
    build(OLD, before)
    put(before, grown)
    grow(grown)
    cases: dict[str, tuple[Path, Callable[[Path], Any]]] = {
        "first save": (none, lambda path: build(NEW, path)),
        "save over": (before, lambda path: build(NEW, path)),
        "update": (before, update),
        "grow": (grown, grow),
    }
    print(f"{'':14}{'points':>8}{'old':>6}{'new':>6}{'neither':>9}{'leftovers':>11}{'told':>6}{'untyped':>9}")
    for name, (earlier, action) in cases.items():
        seconds = duration(action, earlier, folder)
        found: Counter[str] = Counter()
        for _ in range(points):
            put(earlier, folder)
            process = start(partial(action, folder))
            time.sleep(random.uniform(0, 1.1 * seconds))
            os.kill(process, signal.SIGKILL)
            end(process)
            found[state_of(folder, earlier)] += 1
            found["leftovers"] += leftovers_after(action, folder)
        show_kind(name, points, found)
    show_kind("two writers", points, two_writers(before, folder, points))
    show_kind("disk full", points, disk_full(before, folder, points))


def two_writers(before: Path, folder: Path, points: int) -> Counter[str]:
    """Let two processes save at once, and kill one of them."""
    seconds = duration(lambda path: build(NEW, path), before, folder)
    found: Counter[str] = Counter()
    for _ in range(points):
        put(before, folder)
        processes = [start(partial(build, graph, folder)) for graph in (NEW, OTHER)]
        time.sleep(random.uniform(0, 2 * seconds))
        os.kill(random.choice(processes), signal.SIGKILL)
        codes = [end(process) for process in processes]
        found["told"] += codes.count(TOLD)
        found["untyped"] += codes.count(UNTYPED)
        found[state_of(folder, before)] += 1
        found["leftovers"] += leftovers_after(lambda path: build(NEW, path), folder)
    return found


def disk_full(before: Path, folder: Path, points: int) -> Counter[str]:
    """Let a save end at a full disk."""
    largest = max(path.stat().st_size for path in before.iterdir())
    found: Counter[str] = Counter()
    for _ in range(points):
        put(before, folder)
        code = end(start(lambda: build(NEW, folder), random.randrange(largest)))
        found["told"] += code == TOLD
        found["untyped"] += code not in (TOLD, DONE)
        found[state_of(folder, before)] += 1
        found["leftovers"] += leftovers_after(lambda path: build(NEW, path), folder)
    return found


def state_of(folder: Path, before: Path) -> str:
    """Return whether a folder holds the earlier save or a new one; "neither" where it cannot be opened."""
    if not before.exists() and not (folder / MANIFEST).exists():
        return "old"  # there was none
    try:
        verify(folder)
        fingerprint = GraphIndex.open(folder, EMBEDDINGS).graph.fingerprint
        if "rows" in (read_manifest(folder) or read_manifest(before)).parts:  # type: ignore[union-attr]
            rows = open_parts(folder, ["rows"])["rows"]
            assert rows.columns["ids"].tolist() == list(range(rows.meta["size"]))
            return "old" if rows.meta["size"] == 20_000 else "new"
    except (KGRetrieversError, AssertionError) as error:
        print(f"neither: {error!r}", flush=True)
        return "neither"
    return "old" if fingerprint == OLD.fingerprint else "new"


def leftovers_after(action: Callable[[Path], Any], folder: Path) -> int:
    """Save again; return how many files are there, or are longer, than the manifest says."""
    action(folder)
    manifest = read_manifest(folder)
    sizes = {} if manifest is None else manifest.sizes
    others = {path.name for path in folder.iterdir()} - {*sizes, MANIFEST}
    return len(others) + sum((folder / name).stat().st_size != size for name, size in sizes.items())


def show_kind(name: str, points: int, found: Counter[str]) -> None:
    """Print a row of the table of kills."""
    counts = [found[key] for key in ("old", "new", "neither", "leftovers", "told", "untyped")]
    print(
        f"{name:14}{points:8}" + "".join(f"{n:{width}}" for n, width in zip(counts, (6, 6, 9, 11, 6, 9), strict=True))
    )


# --- damage -----------------------------------------------------------------------------------------------------------


def flip(files: list[Path]) -> str:
    """Flip a bit of a file; return its name."""
    path = random.choice([file for file in files if file.stat().st_size])
    content = bytearray(path.read_bytes())
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)
    return path.name


def cut(files: list[Path]) -> str:
    """Cut a file somewhere; return its name."""
    path = random.choice([file for file in files if file.stat().st_size])
    os.truncate(path, random.randrange(path.stat().st_size))
    return path.name


def blank(files: list[Path]) -> str:
    """Set a part of a file to zeros or ones, as a bad sector does; return its name."""
    path = random.choice([file for file in files if file.stat().st_size])
    content = bytearray(path.read_bytes())
    start = random.randrange(len(content))
    end_of_block = min(len(content), start + random.choice([4, 64, 512]))
    content[start:end_of_block] = random.choice([b"\0", b"\xff"]) * (end_of_block - start)
    path.write_bytes(content)
    return path.name


def swap(files: list[Path]) -> str:
    """Swap the contents of two files, of one size where there are two; return their names."""
    one = random.choice(files)
    others = [file for file in files if file.stat().st_size == one.stat().st_size and file != one]
    other = random.choice(others or files)
    contents = one.read_bytes(), other.read_bytes()
    one.write_bytes(contents[1])
    other.write_bytes(contents[0])
    return f"{one.name} {other.name}"


DAMAGES = (flip, flip, cut, blank, swap)


def show_corruptions(place: Path, count: int, how: str) -> None:
    """Damage folders, open and ask each in a process of its own, and verify each."""
    before, folder = place / "before", place / "damaged"
    put(Path("/none"), before)
    build(OLD, before)
    wanted = answers(GraphIndex.open(before, EMBEDDINGS))
    contents = {path.name: path.read_bytes() for path in before.iterdir()}
    found: Counter[str] = Counter()
    verified: Counter[str] = Counter()
    done = 0
    while done < count:
        put(before, folder)
        damage = random.choice(DAMAGES)
        damaged = damage(sorted(folder.iterdir()))
        if {path.name: path.read_bytes() for path in folder.iterdir()} == contents:
            continue
        done += 1
        result = asked(folder, wanted)
        found[result] += 1
        verified[verification(folder)] += 1
        if result in ("untyped", "crashed"):
            print(f"{damage.__name__} {damaged}: {result}", flush=True)
    names = ("told on open", "told when asked", "same answers", "other answers", "untyped", "crashed")
    print(f"\n{count} damaged folders, opened {how}: " + ", ".join(f"{name} {found[name]}" for name in names))
    print(f"with --verify: told {verified['told']}, silent {verified['silent']}, untyped {verified['untyped']}")


def verification(folder: Path) -> str:
    """Return what `verify` says."""
    try:
        verify(folder)
    except KGRetrieversError:
        return "told"
    except Exception as error:
        print(f"untyped by verify: {error!r}", flush=True)
        return "untyped"
    return "silent"


def asked(folder: Path, wanted: list[Any]) -> str:
    """Open and ask a folder in a process of its own; return what happened."""
    reading, writing = os.pipe()

    def ask() -> None:
        signal.alarm(PATIENCE)
        os.write(writing, outcome(folder, wanted).encode())

    process = start(ask)
    os.close(writing)
    code = end(process)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    return said if code == DONE else "crashed"


def outcome(folder: Path, wanted: list[Any]) -> str:
    """Return what happens when a folder is opened and asked."""
    opened = False
    try:
        index = GraphIndex.open(folder, EMBEDDINGS)
        opened = True
        return "same answers" if answers(index) == wanted else "other answers"
    except KGRetrieversError:
        return "told when asked" if opened else "told on open"
    except Exception as error:
        traceback.print_exception(error, limit=-3)
        return "untyped"


def answers(index: GraphIndex) -> list[Any]:
    """Return what each method finds for each question, and what the graph says of each entity."""
    found: list[Any] = [sorted(index.graph.triples()), index.graph.schema()]
    for method in METHODS:
        retriever = method.from_index(index)
        for question in QUESTIONS:
            documents = retriever.invoke(question)
            found.append(json.dumps([[document.page_content, document.metadata["score"]] for document in documents]))
    return found


# --- readers beside a writer ------------------------------------------------------------------------------------------


def show_readers(place: Path, rebuilds: int) -> None:
    """Open the index while another process builds it again and again."""
    folder = place / "rebuilt"
    build(OLD, folder)

    def rebuild() -> None:
        for number in range(rebuilds):
            build((NEW, OLD)[number % 2], folder)

    writer = start(rebuild)
    failed: Counter[str] = Counter()
    graphs: Counter[str] = Counter()
    while not os.waitpid(writer, os.WNOHANG)[0]:
        try:
            index = GraphIndex.open(folder, EMBEDDINGS)
            graphs["old" if index.graph.fingerprint == OLD.fingerprint else "new"] += 1
            index.nearest_entities(["Her"], 1)
            sum(1 for _ in index.graph.triples())
        except Exception as error:
            failed[f"{type(error).__name__}: {error}"[:200]] += 1
    opens = sum(graphs.values()) + sum(failed.values())
    print(f"\n{rebuilds} rebuilds: opened {opens} times, old {graphs['old']}, new {graphs['new']}, ", end="")
    print(f"failed {sum(failed.values())} {dict(failed) or ''}; files left {len(own_files(folder))}")


if __name__ == "__main__":
    main()
