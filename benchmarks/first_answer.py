"""CPU seconds of the first answer on a fresh machine, and of the second one.

    python benchmarks/first_answer.py [--method simgrag] [--json FILE]

`kg-retrievers ask` answers a question over the sample graph in two fresh processes. The first one finds an empty cache
of machine code, the second one what the first has compiled. Seconds are those of the processor, user and system. The
compiled functions and their seconds come from numba's event "numba:compile"; a function without those that it calls.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from numba.core import event

SAMPLE = Path(__file__).parents[1] / "kg_retrievers" / "sample" / "graph.jsonl"
QUESTION = "Who directed Her?"

#: The variable of the environment that tells a process to ask, and where to write what it measured.
MEASURED = "FIRST_ANSWER_MEASURED"


class Compilations(event.Listener):
    """Takes the processor's seconds of each compilation, without those inside of it."""

    def __init__(self) -> None:
        """Begin with none."""
        self.seconds: list[tuple[str, float]] = []
        self._open: list[list[float]] = []

    def on_start(self, event: Any) -> None:
        """Note when a compilation begins."""
        self._open.append([time.process_time(), 0.0])

    def on_end(self, event: Any) -> None:
        """Note what a compilation took."""
        begun, inside = self._open.pop()
        took = time.process_time() - begun
        self.seconds.append((event.data["dispatcher"].py_func.__qualname__, took - inside))
        if self._open:
            self._open[-1][1] += took


def ask(method: str, path: Path) -> None:
    """Ask in this process, and write what was compiled and all seconds of the process."""
    from kg_retrievers import cli

    compilations = Compilations()
    event.register("numba:compile", compilations)
    cli.main(["ask", str(SAMPLE), QUESTION, "--method", method])
    times = os.times()
    path.write_text(json.dumps({"seconds": times.user + times.system, "compiled": compilations.seconds}))


def measure(method: str) -> dict[str, Any]:
    """Ask in two fresh processes; return the seconds of both and what the first one compiled."""
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "measured.json"
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder, MEASURED: str(path)}
        for _ in range(2):
            command = [sys.executable, __file__, "--method", method]
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            answers.append(json.loads(path.read_text()))
    first, second = answers
    slowest: Counter[str] = Counter()
    for name, seconds in first["compiled"]:
        slowest[name] += seconds
    return {
        "method": method,
        "first_seconds": round(first["seconds"], 1),
        "second_seconds": round(second["seconds"], 1),
        "functions": len(slowest),
        "signatures": len(first["compiled"]),
        "compiling_seconds": round(sum(seconds for _, seconds in first["compiled"]), 1),
        "slowest": {name: round(seconds, 2) for name, seconds in slowest.most_common(10)},
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="simgrag")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    if MEASURED in os.environ:
        ask(options.method, Path(os.environ[MEASURED]))
        return
    figures = json.dumps(measure(options.method), indent=2)
    print(figures)
    if options.json:
        options.json.write_text(figures + "\n")


if __name__ == "__main__":
    main()
