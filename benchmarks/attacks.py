"""All classes of attacks, with their cases and failures, in one table.

    python -m benchmarks.attacks [--classes CLASS ...] [--fuzz-seconds 60] [--question-seconds 20] [--record]

Each class runs a benchmark or tests of its own, in another process. A case is a file, a path, a kill, a call or a test.
A class that ends without a result is one failure. `--record` writes `benchmarks/results/attacks.json`. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.figures import markdown, record, run_of, this_command

ROOT = Path(__file__).parents[1]


class Result(NamedTuple):
    """How many cases a class has, and how many of them failed."""

    cases: int
    failures: int


def output_of(*command: str) -> str:
    """Run a module of Python from the root of the checkout, and return all that it prints."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        print(ended.stdout[-2000:] + ended.stderr[-2000:], file=sys.stderr)
    return ended.stdout


def tests(*selected: str) -> Callable[[], Result]:
    """Return a class of tests, each of which is a case."""

    def run() -> Result:
        said = output_of("pytest", "-p", "no:cacheprovider", "-m", "heavy or not heavy", *selected)
        passed, failed = (
            sum(map(int, re.findall(rf"(\d+) {words}", said))) for words in ("passed", "(?:failed|errors?)")
        )
        return Result(passed + failed, failed) if passed + failed else Result(1, 1)

    return run


def hostile_files() -> Result:
    rows = re.findall(r"\| (\d+) \| (\d+) \| \d+ \| [\d.]+ \|", output_of("benchmarks.hostile_files"))
    return _summed(rows)


def fuzz(seconds: float) -> Result:
    rows = re.findall(r"^all +(\d+) +\d+ +\d+ +(\d+)$", output_of("benchmarks.fuzz", "--seconds", str(seconds)), re.M)
    return _summed(rows)


def kills() -> Result:
    """Kills, two writers and full disks: a failure is a folder that does not open, a leftover or an untyped error."""
    said = output_of("benchmarks.storage_faults", "--kills", "20", "--corruptions", "60", "--rebuilds", "20")
    rows = re.findall(r"^[a-z ]+? +(\d+) +\d+ +\d+ +(\d+) +(\d+) +\d+ +(\d+)$", said, re.M)
    damaged = re.findall(r"^(\d+) damaged folders.* untyped (\d+), crashed (\d+)$", said, re.M)
    return _summed([(cases, sum(map(int, failures))) for cases, *failures in rows + damaged])


def many_questions(seconds: float) -> Result:
    said = output_of("benchmarks.many_questions", "--long", "--seconds", str(seconds))
    found = [json.loads(line) for line in said.splitlines()]
    return _summed([(1, not one["flat"]) for one in found])


def _summed(rows: Sequence[Sequence[str | int]]) -> Result:
    return Result(*(sum(int(row[at]) for row in rows) for at in (0, 1))) if rows else Result(1, 1)


def main() -> None:
    """Run the classes, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fuzz-seconds", type=float, default=60)
    parser.add_argument("--question-seconds", type=float, default=20, help="for each method")
    parser.add_argument("--classes", nargs="+")
    parser.add_argument("--record", action="store_true", help="write benchmarks/results/attacks.json")
    given = parser.parse_args()
    sessions, transports = (f"tests/serving/mcp/test_{name}.py" for name in ("sessions", "transports"))
    classes: dict[str, Callable[[], Result]] = {
        "hostile files": hostile_files,
        "odd paths": tests("tests/test_paths.py"),
        "hostile arguments": lambda: fuzz(given.fuzz_seconds),
        "kills, damage and full disks of an index": kills,
        "kills of a training": tests("tests/training/test_loop.py", "tests/core/test_checkpoint.py", "-k", "killed"),
        "full disks and permissions": tests("tests/test_file_writing.py"),
        "hash seeds": tests("tests/methods/test_hash_seeds.py"),
        "saves of other versions": tests(
            "tests/core/test_checkpoint.py", "tests/graph/test_storage.py", "-k", "version"
        ),
        "clocks": tests("tests/agents/test_workflow.py", "-k", "pauses"),
        "servers": tests("tests/serving/web/test_server.py", "tests/cli/test_serve.py", sessions, transports),
        "many questions": lambda: many_questions(given.question_seconds),
    }
    if given.classes and (unknown := {*given.classes} - {*classes}):
        parser.error(f"unknown classes: {unknown}. Known are: {', '.join(classes)}")
    rows = [["class", "cases", "failures"]]
    for name in given.classes or classes:
        found = classes[name]()
        rows.append([name, f"{found.cases:,}", f"{found.failures:,}"])
        print(*rows[-1], sep=": ", file=sys.stderr, flush=True)
    print(markdown(rows))
    if given.record:
        cases = sum(int(row[1].replace(",", "")) for row in rows[1:])
        about = run_of(
            this_command("benchmarks.attacks"),
            n=f"{cases:,} cases",
            mode="each method of the registry, models with drawn weights",
            embeddings="hashed",
            seed=0,
            depends_on=["kg_retrievers/graph", "kg_retrievers/serving", "kg_retrievers/core"],
        )
        record("attacks", rows, about)


if __name__ == "__main__":
    main()
