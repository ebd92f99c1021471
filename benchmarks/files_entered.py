r"""Count the files and rooms of the package that one question enters, per method, on the sample graph.

    python benchmarks/files_entered.py [--list METHOD]

"ask" is `kg-retrievers ask` with the sample graph, from its arguments to what it prints; "invoke" is the retriever
alone, from the question to the Documents; the second question counts, since the first one makes what is made once. A
file counts when one of its functions is called, compiled ones by the function that calls them; what runs when a module
is imported does not count. A room is a folder of the package; each method is one of its own.

The trained methods get a model of the sample's own questions, which says nothing about their quality.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import kg_retrievers as kg
from kg_retrievers import cli, sample
from kg_retrievers.methods.registry import METHODS, Method

HOME = Path(kg.__file__).parent
GRAPH, EXAMPLES = HOME / "sample" / "graph.jsonl", HOME / "sample" / "questions.jsonl"
QUESTION = "Who directed Her?"


def main() -> None:
    """Print a row for each method, or the files of one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", metavar="METHOD", help="name the files that this method enters")
    arguments = parser.parse_args()
    index = kg.GraphIndex.build(sample.load_graph(), kg.HashedEmbeddings())
    print(f"{'':14} {'ask':^14} {'invoke':^14}\n{'method':14} {'files':>6} {'rooms':>6}  {'files':>6} {'rooms':>6}")
    with TemporaryDirectory() as folder:
        for method in METHODS:
            by_ask, by_invoke = _entered_by(method, index, Path(folder) / method.name)
            counts = (len(by_ask), len(_rooms(by_ask)), len(by_invoke), len(_rooms(by_invoke)))
            print("{:14} {:>6} {:>6}  {:>6} {:>6}".format(method.name, *counts), flush=True)
            if arguments.list in method.names:
                print(*(f"    {'ask, invoke' if file in by_invoke else 'ask':12} {file}" for file in by_ask), sep="\n")


def _entered_by(method: Method, index: kg.GraphIndex, folder: Path) -> tuple[list[str], list[str]]:
    """Return the files that `ask` enters, and those that the retriever alone enters."""
    command = ["ask", str(GRAPH), QUESTION, "--method", method.name]
    given = {}
    if "model" in method.needs:
        method.load_trainer()(index, sample.load_questions(), output=folder)
        given["model"], command = folder, [*command, "--model", str(folder)]
    elif "examples" in method.needs:
        given["examples"], command = sample.load_questions(), [*command, "--examples", str(EXAMPLES)]
    retriever = method.load_retriever().from_index(index, **given)
    retriever.invoke(QUESTION)
    with entered() as by_invoke:
        retriever.invoke(QUESTION)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        cli.main(command)
        with entered() as by_ask:
            cli.main(command)
    return sorted(by_ask), sorted(by_invoke)


def _rooms(files: list[str]) -> set[str]:
    """Return the folders of files; of a method, its own."""
    return {"/".join(file.split("/")[: 2 if file.startswith("methods/") else 1]) for file in files}


@contextlib.contextmanager
def entered() -> Iterator[set[str]]:
    """Collect the files whose functions are called inside of the block, in this thread."""
    files: set[str] = set()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(str(HOME)):
            files.add(Path(code.co_filename).relative_to(HOME).as_posix())

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield files
    finally:
        sys.setprofile(before)


if __name__ == "__main__":
    main()
