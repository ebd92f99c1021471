"""Answer recall and triple recall against tokens and CPU time, for our methods and their rivals.

    PYTHONHASHSEED=0 OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 python -m benchmarks.rivals [--sets ...] [--methods ...]
        [--kept] [--limit N] [--output FILE]
    python -m benchmarks.rivals --charts FILE    # docs/pictures/evidence-*.svg
    python -m benchmarks.rivals --choose         # all settings of the rivals, on own_graphs/dev

README.md beside this file says what is measured, and how.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.rivals.contestants import Contestant
from benchmarks.rivals.ground import Ground
from benchmarks.rivals.measuring import Outcome, ask_all, recalls
from benchmarks.rivals.ours import OURS
from benchmarks.rivals.packages import PACKAGES
from benchmarks.rivals.page import HAND_MADE, draw_charts, table
from benchmarks.rivals.plain import PLAIN
from benchmarks.rivals.sets import OWN, PUBLISHED, Part, own_parts, published_parts
from benchmarks.zero_shot.indexes import Indexer, default_cache
from kg_retrievers import GraphIndex, KnowledgeGraph

#: Everything that is measured, in the order of the tables.
CONTESTANTS: dict[str, Contestant] = {**OURS, **PLAIN, **PACKAGES}

SEED = 20261127

#: The rooms that decide which facts our methods order.
ROOMS = ("kg_retrievers/questions", "kg_retrievers/methods", "kg_retrievers/index", "kg_retrievers/algorithms")


class Embeddings:
    """Loads embeddings when they are first used."""

    def __init__(self, folder: Path) -> None:
        """Keep the folder of the vectors."""
        self._folder, self._loaded = folder, dict[str, Indexer]()

    def __call__(self, name: str) -> Indexer:
        """Return the embeddings of a name with their cache."""
        if name not in self._loaded:
            self._loaded[name] = Indexer("minilm" if name == "minilm" else "default", self._folder)
        return self._loaded[name]


class TimedBuild:
    """Indexes graphs, and keeps the CPU seconds that each index took."""

    def __init__(self, embeddings: Embeddings) -> None:
        """Keep the embeddings."""
        self._embeddings, self._seconds = embeddings, dict[int, float]()

    def __call__(self, graph: KnowledgeGraph) -> GraphIndex:
        """Return the index of a graph with the default embeddings, without vectors of earlier runs."""
        began = time.process_time()
        index = GraphIndex.build(graph, self._embeddings("static").embeddings)
        self._seconds[id(index)] = time.process_time() - began
        return index

    def seconds(self, index: GraphIndex) -> float:
        """Return what an index took."""
        return self._seconds[id(index)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print tables."""
    options = _options(arguments)
    if options.charts:
        draw_charts(json.loads(options.charts.read_text("utf-8")), figures.ROOT / "docs" / "pictures")
        return
    names = _present(options.methods, options.without)
    given = sys.argv[1:] if arguments is None else arguments
    limit = f"at most {options.limit}" if options.limit else "all"
    run = {
        **figures.run_of(
            shlex.join(["python", "-m", "benchmarks.rivals", *given]),
            n=f"{limit} questions of each graph, fewer after {options.seconds:.0f} CPU seconds",
            mode="no language model, no examples, no training",
            seed=options.seed,
            embeddings="default and all-MiniLM-L6-v2" if any("MiniLM" in name for name in names) else "default",
            depends_on=ROOMS if any(CONTESTANTS[name].is_ours for name in names) else ("kg_retrievers/index",),
        ),
        "python": sys.version.split()[0],
        "versions": {
            package: version(package)
            for package in dict.fromkeys(chain.from_iterable(CONTESTANTS[name].packages for name in names))
        },
    }
    for rows in _rows(options, names):
        if options.output:
            results = _merged(options.output, run, rows)
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
        for name in dict.fromkeys(row["set"] for row in rows):
            print(f"\n{name}\n\n{table([row for row in rows if row['set'] == name])}", flush=True)


def _merged(file: Path, run: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the results of a file, if there is one, with new rows; they replace those of the same set and method."""
    results = json.loads(file.read_text("utf-8")) if file.exists() else {"runs": [], "rows": []}
    runs = results["runs"] if run in results["runs"] else [*results["runs"], run]
    new = {_key(row): {**row, "run": runs.index(run)} for row in rows}
    kept = {_key(row): new.pop(_key(row), row) for row in results["rows"]}
    places = {name: place for place, name in enumerate(CONTESTANTS)}
    rows = sorted([*kept.values(), *new.values()], key=lambda row: places.get(row["method"], len(places)))
    used = sorted({row["run"] for row in rows})  # runs whose rows were all replaced are left out
    return {"runs": [runs[at] for at in used], "rows": [{**row, "run": used.index(row["run"])} for row in rows]}


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["set"], row["method"], row["setting"]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rivals", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=[*PUBLISHED.values(), "own"], default=["own", *PUBLISHED.values()])
    parser.add_argument(
        "--methods", nargs="+", metavar="NAME", default=list(CONTESTANTS), help="names or parts of them"
    )
    parser.add_argument(
        "--without", nargs="+", metavar="NAME", default=[], help="names, or parts, to leave out: minilm"
    )
    parser.add_argument("--folder", type=Path, default=OWN / "dev", help="hand-made graphs (default: those of dev)")
    parser.add_argument(
        "--kept",
        dest="folder",
        action="store_const",
        const=OWN / "kept",
        help="the hand-made graphs that are kept aside",
    )
    parser.add_argument("--seed", type=int, default=SEED, help="draws the questions")
    parser.add_argument("--limit", type=int, default=200, help="questions of each graph; 0 for all (default: 200)")
    parser.add_argument(
        "--seconds", type=float, default=120, help="CPU seconds after which no more questions of a graph are asked"
    )
    parser.add_argument("--choose", action="store_true", help="measure all settings, not the first alone")
    parser.add_argument("--output", type=Path, metavar="FILE", help="add the results to this file of JSON")
    parser.add_argument("--charts", type=Path, metavar="FILE", help="draw the docs' charts of results; measure nothing")
    return parser.parse_args(arguments)


def _present(wanted: Sequence[str], unwanted: Sequence[str]) -> list[str]:
    """Return the names of the contestants that are wanted and installed."""
    found = []
    for name, contestant in CONTESTANTS.items():
        if not _is_among(name, wanted) or _is_among(name, unwanted):
            continue
        missing = [package for package in contestant.packages if not _is_installed(package)]
        if missing:
            print(f"{name}: left out, since {', '.join(missing)} is not installed.", file=sys.stderr)
        else:
            found.append(name)
    return found


def _is_among(name: str, parts: Sequence[str]) -> bool:
    return any(part.casefold() in name.casefold() for part in parts)


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _rows(options: argparse.Namespace, names: Sequence[str]) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each set."""
    embeddings = Embeddings(default_cache())
    build = TimedBuild(embeddings)
    if "own" in options.sets:
        parts = list(own_parts(options.folder, options.limit, build, options.seed))
        measured = [_measured(part, names, options, embeddings, build) for part in parts]
        together = {key: list(chain.from_iterable(part[key][0] for part in measured)) for key in measured[0]}
        built = {key: sum(part[key][1] for part in measured) for key in measured[0]}
        yield [_row(HAND_MADE, key, outcomes, built[key]) for key, outcomes in together.items()]
        for part, found in zip(parts, measured, strict=True):
            yield [_row(part.name, key, *result) for key, result in found.items()]
    published = [name for name in PUBLISHED.values() if name in options.sets]
    for shown, part in published_parts(published, options.limit, build, options.seed):
        found = _measured(part, names, options, embeddings, build)
        yield [_row(shown, key, *result) for key, result in found.items()]


def _measured(
    part: Part, names: Sequence[str], options: argparse.Namespace, embeddings: Embeddings, build: TimedBuild
) -> Mapping[tuple[str, str], tuple[list[Outcome], float]]:
    """Return the outcomes of each contestant and setting, and the CPU seconds that it took to get ready.

    Our index counts for our methods and for those that get the entities of our linker.
    """
    ground, found = Ground(part.index, embeddings), {}
    for name in names:
        contestant = CONTESTANTS[name]
        for setting in list(contestant.settings)[: None if options.choose else 1]:
            began = time.process_time()
            find = contestant.on(ground, setting)
            ready = time.process_time() - began
            if contestant.is_ours or contestant.is_given_entities:
                ready += build.seconds(part.index)
            outcomes = ask_all(find, ground, part.questions, options.seconds)
            found[name, setting] = outcomes, ready
            print(f"{part.name}: {name} ({setting}), {time.process_time() - began:.0f} CPU s", file=sys.stderr)
    return found


def _row(shown: str, key: tuple[str, str], outcomes: list[Outcome], ready: float) -> dict[str, Any]:
    name, setting = key
    contestant = CONTESTANTS[name]
    return {
        "set": shown,
        "method": name,
        "setting": setting,
        "ours": contestant.is_ours,
        "given_entities": contestant.is_given_entities,
        **recalls(outcomes),
        "ready_s": round(ready, 2),
    }


if __name__ == "__main__":
    main()
