r"""`kg-retrievers compare` of all methods for each question set, and of SimGRAG without examples; prints each command.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/all_methods.py [--work FOLDER] [--limit 200] [--sets ...]

The questions of each set are split as in `question_splits.py`, seed 0, and written as JSON lines. The methods that are
trained learn from 80 % of them and are stopped by 10 % (`kg-retrievers train`, unless the folder holds their
models already); the same 80 % are the examples of those that take examples; `--limit` of each number of hops are drawn
from the other 10 % and measured. No language model; no topic is given where it is measured. MetaQA's paraphrases are
those of the measured 1-hop questions; nothing is trained on paraphrases, and no example is one.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from question_splits import DATA, TASKS, Indexes

from kg_retrievers.core.checkpoint import holds_model
from kg_retrievers.datasets import write_questions
from kg_retrievers.methods import registry

METHODS = tuple(method.name for method in registry.METHODS)
SETS = {
    "metaqa": ("metaqa", 0, DATA / "metaqa" / "kb.txt"),
    "pathquestion-2": ("pathquestion", 0, DATA / "pathquestion" / "2H-kb.txt"),
    "pathquestion-3": ("pathquestion", 1, DATA / "pathquestion" / "3H-kb.txt"),
}


def main() -> None:
    """Print commands and their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="a folder that keeps questions and models (default: a temporary one)")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--limit", type=int, default=200, help="measured questions of each number of hops")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    arguments = parser.parse_args()
    with TemporaryDirectory() as scratch:
        for name in arguments.sets:
            _compare((arguments.work or Path(scratch)) / name, name, arguments)


def _compare(home: Path, name: str, arguments: argparse.Namespace) -> None:
    """Print the tables of a set."""
    section, position, graph = SETS[name]
    measured = _written(home, section, position)
    trained = []
    for method in registry.METHODS:
        if method.trainer is None:
            continue
        model = home / method.name
        if not holds_model(model):
            questions, validation = home / "training.jsonl", home / "validation.jsonl"
            command = ["train", method.name, "--graph", graph, "--questions", questions, "--validation", validation]
            _run([*command, "--output", model])
        trained += ["--model", model]
    for part in measured:
        data = ["--graph", graph, "--data", part, "--format", "jsonl", "--topic", "linked"]
        data += ["--limit", arguments.limit, "--seed", 0]
        examples = ["--examples", home / "training.jsonl"]
        methods = [word for method in arguments.methods for word in ("--method", method)]
        _run(["compare", *data, *examples, *trained, *methods, "--failures", 0])
        _run(["compare", *data, "--method", "simgrag", "--failures", 0])  # without examples


def _written(home: Path, section: str, position: int) -> list[Path]:
    """Write the questions of a set; return the files of what is measured."""
    home.mkdir(parents=True, exist_ok=True)
    _, task_of = list(TASKS[section](Indexes("hashed", None)))[position]
    task = task_of(0)
    write_questions(home / "training.jsonl", task.training)
    write_questions(home / "validation.jsonl", task.validation)
    plain = [question for kind, (_, part) in task.measured.items() if "para" not in kind for question in part]
    paraphrased = [question for kind, (_, part) in task.measured.items() if "para" in kind for question in part]
    files = {home / "measured.jsonl": plain, home / "paraphrased.jsonl": paraphrased}
    for path, questions in files.items():
        if questions:
            write_questions(path, questions)
    return [path for path, questions in files.items() if questions]


def _run(words: Sequence[object]) -> None:
    command = ["kg-retrievers", *map(str, words)]
    print(f"\n$ {shlex.join(command)}", flush=True)
    subprocess.run([str(Path(sys.executable).with_name(command[0])), *command[1:]], check=True)


if __name__ == "__main__":
    main()
