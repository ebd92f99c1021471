r"""Count the files of the package that one question enters, per method, on the sample graph.

    python benchmarks/files_entered.py [--list]

"ask" is `kg-retrievers ask` with the sample graph, from its arguments to what it prints; "invoke" is the retriever
alone, from the question to the Documents. A file counts when one of its functions is called, compiled ones by the
function that calls them; what runs when a module is imported does not count. The trained methods get a model of the
sample's own questions, which says nothing about their quality.
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

HOME = Path(kg.__file__).parent
QUESTION = "Who directed Her?"
METHODS = {
    "simgrag": "SimGRAGRetriever",
    "pcst": "PCSTRetriever",
    "gnn-rag": "GNNRAGRetriever",
    "subgraph-rag": "SubgraphRAGRetriever",
    "cypher": "CypherRetriever",
    "relation-paths": "RelationPathRetriever",
    "triple-similarity": "TripleSimilarityRetriever",
}


def main() -> None:
    """Print a row for each method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the files that the retriever alone enters")
    arguments = parser.parse_args()
    questions = sample.load_questions()
    index = kg.GraphIndex.build(sample.load_graph(), kg.HashedEmbeddings())
    print(f"{'method':20} {'ask':>5} {'invoke':>7}")
    with TemporaryDirectory() as folder:
        models = {"subgraph-rag": f"{folder}/scorer", "gnn-rag": f"{folder}/reasoner"}
        kg.train_triple_scorer(index, questions, output=models["subgraph-rag"])
        kg.train_graph_reasoner(index, questions, output=models["gnn-rag"])
        for method, name in METHODS.items():
            model = models.get(method)
            command = ["ask", str(HOME / "sample" / "graph.jsonl"), QUESTION, "--method", method]
            command += ["--model", model] if model else []
            examples = questions if method == "relation-paths" else None
            command += ["--examples", str(HOME / "sample" / "questions.jsonl")] if examples else []
            retriever = getattr(kg, name).from_index(index, examples=examples, model=model)
            retriever.invoke(QUESTION)  # what is made once is made
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                cli.main(command)
                with entered() as by_ask:
                    cli.main(command)
            with entered() as by_invoke:
                retriever.invoke(QUESTION)
            print(f"{method:20} {len(by_ask):>5} {len(by_invoke):>7}", flush=True)
            if arguments.list:
                print(*(f"    {file}" for file in sorted(by_invoke)), sep="\n")


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
