"""What graphs of 1 to 43 million triples cost: loading, indexing, opening, names, search, questions, hubs, batches.

    python -m benchmarks.scale --folder scale --sizes 1M 4.3M
    python -m benchmarks.scale --folder scale --report docs/pictures/scale.svg

Each step runs in a process of its own, one thread, and adds a line to FOLDER/results.jsonl: CPU seconds (user and
system) and greatest resident memory of the whole process, imports included, and what the step measures itself. Steps
that are in the file are not run again unless `--again` names them. The graphs are those of
`benchmarks/synthetic_graph.py`. The folder takes 10 GB for 4.3M and 90 GB for 43M unless `--sweep` removes what is
not needed any more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.scale_report import report
from benchmarks.synthetic_graph import SIZES

#: The steps in their order.
STEPS = (
    "write",
    "load-tsv",
    "load-nt",
    "index",
    "open",
    "names",
    "match",
    "questions",
    "operations",
    "export",
    "evidence",
    "hubs",
    "many",
)

#: What other programs do, with the greatest size that they are asked.
RIVALS = {"duckdb": "43M", "pyoxigraph": "4.3M", "networkx": "4.3M"}


def main() -> None:
    """Run the steps that are missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("scale"))
    parser.add_argument("--sizes", nargs="*", choices=SIZES, default=[])
    parser.add_argument("--steps", nargs="+", choices=(*STEPS, *RIVALS), default=[*STEPS, *RIVALS])
    parser.add_argument("--again", action="store_true", help="run steps again that were run")
    parser.add_argument("--sweep", action="store_true", help="remove the text files when they are loaded")
    parser.add_argument("--report", type=Path, help="draw the curves into this file, an SVG")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for size in arguments.sizes:
        for step in arguments.steps:
            if step in RIVALS and SIZES[size] > SIZES[RIVALS[step]]:
                continue
            if arguments.again or not any(one["step"] == step and one["size"] == size for one in _results(arguments)):
                _run(arguments.folder, size, step)
        if arguments.sweep:
            for suffix in ("tsv", "nt"):
                (arguments.folder / f"{size}.{suffix}").unlink(missing_ok=True)
    report(_results(arguments), arguments.report)


def _results(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the last result of each step and size."""
    path = arguments.folder / "results.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [*{(row["step"], row["size"]): row for row in rows}.values()]


def _run(folder: Path, size: str, step: str) -> None:
    """Run a step in a process of its own, and keep what it measured."""
    print(f"{size:>5} {step} ...", file=sys.stderr, flush=True)
    module = "benchmarks.scale_rivals" if step in RIVALS else "benchmarks.scale_steps"
    measured = _measure([sys.executable, "-m", module, step, size, str(folder)])
    with open(folder / "results.jsonl", "a") as file:
        file.write(json.dumps({"step": step, "size": size, **measured}) + "\n")


def _measure(command: Sequence[str]) -> dict[str, Any]:
    """Run a command that prints a line of JSON, and add its CPU seconds and greatest memory in MB.

    `private_mb` is the memory without pages of files, looked at ten times a second.
    """
    process, private, ended = subprocess.Popen(command, stdout=subprocess.PIPE, text=True), 0, 0
    while not ended:
        ended, status, use = os.wait4(process.pid, os.WNOHANG)
        fields = Path(f"/proc/{process.pid}/status").read_text() if not ended else ""
        private = max(private, *(int(line.split()[1]) for line in fields.splitlines() if line.startswith("RssAnon")), 0)
        time.sleep(0.1)
    assert process.stdout is not None
    if status:
        raise subprocess.CalledProcessError(status, command)
    measured = json.loads(process.stdout.read().strip().splitlines()[-1])
    memory = {"peak_mb": use.ru_maxrss // 1024, "private_mb": private // 1024}
    return {"cpu_s": round(use.ru_utime + use.ru_stime, 2), **memory, **measured}


if __name__ == "__main__":
    main()
