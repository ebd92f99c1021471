"""Published figures: a file of JSON for each table, with all that is needed to repeat it.

A measuring script calls `record`, and `docs/generate.py` shows the table with its command. `test_figures.py` fails if
the code behind a figure has changed and the figure is two or more minor versions old.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NotRequired, TypedDict

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"

#: The mode of most tables.
SIMGRAG = "SimGRAG, no language model, no examples, linked entities, default threshold"
SIMGRAG_EXAMPLES = SIMGRAG.replace("no examples", "no examples or 15")

#: The rooms that decide what SimGRAG answers.
SIMGRAG_ROOMS = ("kg_retrievers/questions", "kg_retrievers/methods/simgrag", "kg_retrievers/index")

#: A table: its head and its rows. The first cell of a row is its name.
Table = Sequence[Sequence[str]]


class Run(TypedDict):
    """One run of a command.

    Attributes:
        command: The command, to be run in the root of the checkout.
        commit: The last commit of the package.
        version: The version of the package.
        mode: The method, the language model, the examples, the entities and the threshold.
        embeddings: The embeddings of the index.
        n: How many questions, facts or other things.
        seed: The seed of what is drawn, or None if nothing is.
        depends_on: Rooms of the package, with the digest of the code that was measured.
        note: Why the figures are older than the others.
    """

    command: str
    commit: str
    version: str
    mode: str
    embeddings: str
    n: str
    seed: int | None
    depends_on: dict[str, str]
    note: NotRequired[str]


def run_of(
    command: str,
    *,
    n: str,
    mode: str = SIMGRAG,
    seed: int | None = None,
    embeddings: str = "default",
    depends_on: Iterable[str] = SIMGRAG_ROOMS,
) -> Run:
    """Return a run on the code of this checkout."""
    return {
        "command": command,
        "commit": package_commit(),
        "version": package_version(),
        "mode": mode,
        "embeddings": embeddings,
        "n": n,
        "seed": seed,
        "depends_on": {room: digest(ROOT / room) for room in depends_on},
    }


def record(name: str, table: Table, run: Run) -> None:
    """Write the file of a table."""
    rows = ",\n  ".join(json.dumps(list(row), ensure_ascii=False) for row in table)
    runs = json.dumps([run], ensure_ascii=False, indent=1)
    (RESULTS / f"{name}.json").write_text(f'{{"runs": {runs},\n "table": [\n  {rows}\n ]}}\n', "utf-8")


def this_command(module: str) -> str:
    """Return the command that runs now, without its option to record."""
    return shlex.join(["python", "-m", module, *(one for one in sys.argv[1:] if one != "--record")])


def package_version() -> str:
    """Return the version of the package in this checkout."""
    found: str = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    return found


def package_commit() -> str:
    """Return the last commit of the package, "-changed" after it if files differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    changed = "-changed" if git("status", "--porcelain", "kg_retrievers") else ""
    return (git("log", "-1", "--format=%h", "--abbrev=8", "--", "kg_retrievers") or "unknown") + changed


def digest(room: Path) -> str:
    """Return a digest of the files of a room, by their paths and bytes."""
    made = blake2b(digest_size=8)
    for path in sorted(room.rglob("*") if room.is_dir() else [room]):
        if path.is_file() and "__pycache__" not in path.parts:
            made.update(path.relative_to(room).as_posix().encode() + b"\0" + path.read_bytes())
    return made.hexdigest()


def outdated(run: Run, now: str, root: Path = ROOT) -> list[str]:
    """Return the changed rooms of a run that is more than one minor version older than `now`."""
    (major, minor), (old_major, old_minor) = (
        [int(one) for one in each.split(".")[:2]] for each in (now, run["version"])
    )
    if major == old_major and minor - old_minor <= 1:
        return []
    return [room for room, code in run["depends_on"].items() if digest(root / room) != code]


def load(name: str) -> Any:
    """Return the content of a file of figures."""
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def shown(names: Sequence[str]) -> str:
    """Return files of figures as one Markdown table, joined by the names of rows, with their commands below."""
    found = [load(name) for name in names]
    head, *rows = found[0]["table"]
    lines = [list(head), *map(list, rows)]
    for further in found[1:]:
        cells = {row[0]: row[1:] for row in further["table"]}
        for line in lines:
            line += cells.get(head[0] if line is lines[0] else line[0], [""] * (len(further["table"][0]) - 1))
    return f"{markdown(lines)}\n\n{provenance([run for one in found for run in one['runs']])}"


def provenance(runs: Sequence[Run]) -> str:
    """Return how runs were made, each thing that they share once. What most tables share is said on their pages."""
    commands = ", ".join(f"`{run['command']}` (n {run['n']})" for run in runs)
    others = [f"{'older ' if 'note' in run else ''}commit {run['commit']}" for run in runs]
    others += [f"{run['embeddings']} embeddings" for run in runs if run["embeddings"] != "default"]
    others += [f"seed {run['seed']}" for run in runs if run["seed"] is not None]
    modes = dict.fromkeys(f" Mode: {run['mode']}." for run in runs if run["mode"] != SIMGRAG)
    return f"Measured: {commands}, {', '.join(dict.fromkeys(others))}.{''.join(modes)}"


def outcome_table(
    head: str, title: str, names: Mapping[str, str], counts: Mapping[str, Mapping[str, int]]
) -> list[list[str]]:
    """Return a table of the shares of right, wrong and refused questions, "all" last."""
    rows = [[head, title]]
    for key, shown_name in names.items():
        found, total = counts[key], sum(counts[key].values())
        shares = " / ".join(share(found.get(one, 0) / total, 2) for one in ("right", "wrong", "refused"))
        rows.append([shown_name, shares])
    return rows


def markdown(lines: Table) -> str:
    """Return a table in Markdown."""
    head, *rows = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([head, f"|{'---|' * len(lines[0])}", *rows])


def share(value: float | None, digits: int = 3) -> str:
    """Return a share without the zero before its point."""
    if value is None:
        return "-"
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if value < 1 else text
