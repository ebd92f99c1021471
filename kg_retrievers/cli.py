"""The command kg-retrievers: ask a graph, index it, look into it, or see a demonstration.

It is the only place that maps the name of a method to its class. What a command needs is loaded through the front door
when it is first used, so that the help and a misspelt option show at once.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Console, Group, RenderableType
from rich.status import Status
from rich.table import Table
from rich.text import Text

import kg_retrievers
from kg_retrievers.errors import (
    EntityLinkingError,
    GraphLoadError,
    InvalidArgumentError,
    KGRetrieversError,
)

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    import kg_retrievers.chains
    from kg_retrievers.base import BaseKGRetriever
    from kg_retrievers.graph import KnowledgeGraph
    from kg_retrievers.index import GraphIndex

#: The methods by name, each with its class behind the front door.
RETRIEVERS = {"simgrag": "SimGRAGRetriever"}

#: How a pattern was made, by its `source`.
PATTERN_SOURCES = {
    "examples": "by the nearest example",
    "linked": "from the entities named in the question (no LLM, no examples)",
    "llm": "by a language model",
}

#: What stands beside an index to say which `--embeddings` it was built with.
RECORD = "cli.json"

#: The most rows of a table, and the most characters of a text, that are shown to a person; `--json` has all.
ROWS_SHOWN, CHARACTERS_SHOWN = 20, 1000

#: Exit codes: of `ask` where there is no evidence; after a mistake, after Ctrl-C, and when nobody reads the output.
NO_EVIDENCE, MISTAKE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141

EPILOG = """\
examples:
  kg-retrievers demo
  kg-retrievers info films.csv
  kg-retrievers ask films.csv "Who directed Her?"
  kg-retrievers index films.csv --output films.index
  kg-retrievers ask films.index "Who directed Her?" --llm openai:gpt-4.1-mini

exit codes: 0 evidence found, or done; 1 no evidence found; 2 a mistake, told on one line of stderr; 130 interrupted.
"""

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        argv: The arguments; those of the process by default.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that a terminal cannot show must not end the program
    options = argparse.Namespace(debug=False)
    try:
        _parser().parse_args(argv, options)
        return int(options.run(options))
    except KeyboardInterrupt:
        _remark("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed when the process ends
        return BROKEN_PIPE
    except Exception as error:
        if options.debug:
            traceback.print_exc()
        _remark(f"error: {_message(error)}")
        return MISTAKE


# --- the commands -----------------------------------------------------------------------------------------------------


def _ask(options: argparse.Namespace) -> int:
    question = options.question
    examples = kg_retrievers.read_questions(options.examples) if options.examples else None
    llm = _language_model(options.llm) if options.llm else None
    index = _index_of(_graph(options), options)
    seeds = kg_retrievers.EntityLinker(index).resolve(options.seed)
    retriever = getattr(kg_retrievers, RETRIEVERS[options.method]).from_index(index, llm=llm, examples=examples)
    found: list[Document] = []
    reason = "Nothing in the graph fits."
    with _working("searching"), _compilation_told():
        try:
            found = retriever.invoke(question, k=options.k + 1, seed_entities=seeds)
        except EntityLinkingError as error:
            reason = str(error)
        documents = found[: options.k]
        answer = _answer(question, documents, retriever, llm) if documents else None
    if options.json:
        reply = {"question": question, "answer": answer, "reason": None if documents else reason}
        print(json.dumps(reply | {"documents": [document.model_dump() for document in documents]}), flush=True)
    else:
        _show(_summary(question, answer or f"No evidence found. {reason}", documents), *map(_evidence, documents))
    if len(found) > options.k and _is_tie(*found[-2:]):
        _remark(f"another reading of the question is equally good: use --k {options.k + 1}")
    return 0 if documents else NO_EVIDENCE


def _index(options: argparse.Namespace) -> int:
    output = Path(options.output)
    if output.exists() and not output.is_dir():
        raise InvalidArgumentError(f"{output} is a file. Name a folder: --output ...")
    if output.exists() and any(output.iterdir()) and not (output / "index.json").exists():
        raise InvalidArgumentError(f"the folder {output} is not empty and holds no index. Name a new one: --output ...")
    graph = _graph(options)
    embeddings = options.embeddings or "hashed"
    kg_retrievers.GraphIndex.build(graph, _embeddings(embeddings), output, progress=sys.stderr.isatty())
    (output / RECORD).write_text(json.dumps({"embeddings": embeddings}), "utf-8")
    _show(
        f"Indexed {len(graph.entities):,} entities, {len(graph.relations):,} relations, {len(graph):,} triples "
        f"in {output}, with {embeddings} embeddings.",
        f"Ask it: {shlex.join(['kg-retrievers', 'ask', str(output), 'Who ...?'])}",
    )
    return 0


def _info(options: argparse.Namespace) -> int:
    graph = _graph(options)
    schema = graph.schema()
    counts = {"names": len(graph.names), "duplicates": graph.duplicates, "skipped": graph.skipped}
    examples = [graph.triple(number) for number in range(min(5, len(graph)))]
    if options.json:
        print(json.dumps(asdict(schema) | counts | {"examples": examples}), flush=True)
        return 0
    relations = [
        (row.relation, row.triples, ", ".join(row.head_types), ", ".join(row.tail_types)) for row in schema.relations
    ]
    _show(
        _grid(
            ("Entities", schema.entities),
            ("Labels and aliases", counts["names"]),
            ("Triples", schema.triples),
            ("Repeated triples dropped", counts["duplicates"]),
            ("Malformed lines skipped", counts["skipped"]),
        ),
        _table("Relations", ("relation", "triples", "head types", "tail types"), relations),
        _table("Types", ("type", "entities"), list(schema.types.items())),
        _table("The first triples, by entity key", ("head", "relation", "tail"), examples),
    )
    return 0


def _demo(options: argparse.Namespace) -> int:
    sample = Path(__file__).with_name("sample")
    examples = ("--examples", str(sample / "questions.jsonl"))
    _show(
        "A small graph of films comes with the package. SimGRAG turns a question into a small pattern and finds the "
        "part of the graph that is nearest to it. Nothing is downloaded, no API key is used."
    )
    for question, *more in (
        ("Which films did Christopher Nolan direct?",),
        ("Which science fiction films star Amy Adams?",),
        ("Who directed Dune?", "--k", "2"),
        ("What kind of film is Inception?", *examples),
        ("Who wrote other films by the director of Barbie?", *examples),
    ):
        command = ["ask", str(sample / "graph.jsonl"), question, *more]
        _show(Text(f"\n$ kg-retrievers {shlex.join(command)}\n", style="bold"))
        _ask(_parser().parse_args(command))
    _show(
        "\nNow your own graph, a FILE with a triple a line: .csv, .tsv, head|relation|tail or .jsonl",
        "\n  kg-retrievers info FILE",
        "  kg-retrievers ask FILE 'Who ...?'",
        "  kg-retrievers ask FILE 'Who ...?' --llm openai:gpt-4.1-mini",
    )
    return 0


# --- from options to objects ------------------------------------------------------------------------------------------


def _graph(options: argparse.Namespace) -> KnowledgeGraph:
    """Read the graph of a file, or of a folder that `index` saved."""
    path = Path(options.graph)
    names = ("entities", "format", "columns", "encoding", "on_error")
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    with _working(f"reading {path}"):
        if not path.is_dir():
            graph = kg_retrievers.KnowledgeGraph.from_file(path, **given)
            if graph.skipped:
                _remark(f"malformed lines of {path} that were skipped: {graph.skipped}")
            return graph
        if given:
            raise InvalidArgumentError(f"{path} is a folder; leave out what says how to read a file: {[*given]}.")
        try:
            return kg_retrievers.KnowledgeGraph.open(path)
        except GraphLoadError as error:
            command = shlex.join(["kg-retrievers", "index", "FILE", "--output", str(path)])
            raise InvalidArgumentError(f"{error} To index a file: {command}") from error


def _index_of(graph: KnowledgeGraph, options: argparse.Namespace) -> GraphIndex:
    """Open the index of a folder with the embeddings it was built with, or index the graph of a file in memory."""
    path = Path(options.graph)
    if not path.is_dir():
        embeddings = _embeddings(options.embeddings or "hashed")
        return kg_retrievers.GraphIndex.build(graph, embeddings, progress=sys.stderr.isatty())
    record = path / RECORD
    recorded = json.loads(record.read_text("utf-8"))["embeddings"] if record.exists() else "hashed"
    return kg_retrievers.GraphIndex.open(path, _embeddings(options.embeddings or recorded), graph=graph)


def _embeddings(name: str) -> Embeddings:
    if name == "hashed":
        return kg_retrievers.HashedEmbeddings()
    with _working(f"loading {name}"):
        return kg_retrievers.local_embeddings(name.removeprefix("local:"))


def _language_model(name: str) -> BaseChatModel:
    with _working(f"loading {name}"):
        return kg_retrievers.load_chat_model(name)


def _answer(question: str, documents: list[Document], retriever: BaseKGRetriever, llm: BaseChatModel | None) -> str:
    """Return the answer of the language model, or what the best documents propose, each for itself."""
    if llm is not None:
        by_llm = kg_retrievers.llm_answerer(retriever.answer_prompt, llm)
        return by_llm.invoke({"question": question, "documents": documents})
    extractive = kg_retrievers.ExtractiveAnswerer()
    best = [document for document in documents if document.metadata["score"] == documents[0].metadata["score"]]
    return "\nor ".join(extractive.invoke({"question": question, "documents": [document]}) for document in best)


def _is_tie(one: Document, other: Document) -> bool:
    """Whether two documents are equally good and about different entities of the graph."""
    a, b = one.metadata, other.metadata
    return bool(a["score"] == b["score"] > 0 and a["details"].get("entities") != b["details"].get("entities"))


# --- for a person -----------------------------------------------------------------------------------------------------


def _summary(question: str, answer: str, documents: list[Document]) -> RenderableType:
    """Lay out the answer to a question, and the pattern that led to it."""
    rows = [("Question", question), ("Answer", answer)]
    if documents and (pattern := documents[0].metadata["details"].get("pattern")):
        triples = [" -> ".join(map(_term, triple)) for triple in pattern["triples"]]
        rows.append(("Pattern", "\n".join([*triples, f"made {PATTERN_SOURCES[pattern['source']]}"])))
    return _grid(*rows)


def _term(term: str | dict[str, str]) -> str:
    return term if isinstance(term, str) else term.get("known") or f"?{term['unknown']}"


def _evidence(document: Document) -> RenderableType:
    """Lay out the triples of a document."""
    metadata = document.metadata
    triples, labels = metadata["triples"], metadata["labels"]
    count = "1 triple" if len(triples) == 1 else f"{len(triples):,} triples"
    limit = ", cut short by a limit: there may be more" if metadata["truncated"] else ""
    names = {key: key if label == key else f"{label} [{key}]" for key, label in labels.items()}
    rows = [(number, names[head], relation, names[tail]) for number, (head, relation, tail) in enumerate(triples, 1)]
    title = f"Evidence {metadata['rank']}: score {metadata['score']:.3f}, {count}{limit}"
    return _table(title, ("#", "head", "relation", "tail"), rows)


def _grid(*rows: tuple[str, str | int]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for name, value in rows:
        grid.add_row(Text(name, style="bold"), _cell(value))
    return grid


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str | int]]) -> RenderableType:
    table = Table(*columns, box=None, header_style="dim")
    for row in rows[:ROWS_SHOWN]:
        table.add_row(*map(_cell, row))
    more = [f" {len(rows) - ROWS_SHOWN:,} more; --json has all."] if len(rows) > ROWS_SHOWN else []
    return Group(Text(f"\n{title}", style="bold"), table, *more)


def _cell(value: str | int) -> Text:
    """Return what is shown of a value: the start of a very long text, and nothing that would steer a terminal."""
    if isinstance(value, int):
        return Text(f"{value:,}", justify="right")
    lines = _CONTROL.sub(" ", value).split("\n")
    shown = (textwrap.shorten(line, CHARACTERS_SHOWN, placeholder=" ... (--json has all)") for line in lines)
    return Text("\n".join(shown), overflow="fold")


def _show(*parts: RenderableType) -> None:
    """Print on stdout: in the width and colours of a terminal, else plain, a row a line."""
    width = None if sys.stdout.isatty() else 10_000
    console = Console(width=width, markup=False, highlight=False, emoji=False)
    with console.capture() as capture:
        console.print(*parts, sep="\n")
    print(*(line.rstrip() for line in capture.get().splitlines()), sep="\n", flush=True)


def _remark(text: str) -> None:
    print(f"kg-retrievers: {text}", file=sys.stderr)


def _message(error: Exception) -> str:
    """Return one line about an error."""
    message = " ".join(_CONTROL.sub(" ", str(error)).split())
    if not isinstance(error, KGRetrieversError):
        return f"{type(error).__name__}: {textwrap.shorten(message, 500)} (--debug shows where)"
    for option in ("encoding", "format", "on_error"):  # as Python spells them
        message = message.replace(f"{option}=", f"--{option.replace('_', '-')} ")
    return message


def _working(what: str) -> Status:
    """Show on a terminal what is going on."""
    return Console(stderr=True).status(Text(f"{what} ..."), spinner="line")


def _compilation_told() -> Any:
    """Tell once that numba compiles, since it takes so long."""
    from numba.core import event

    class Listener(event.Listener):
        told = False

        def on_start(self, _: object) -> None:
            if not self.told:
                _remark("compiling the search, once (up to a minute; it is kept for the next time) ...")
            self.told = True

        def on_end(self, _: object) -> None:
            pass

    return event.install_listener("numba:compile", Listener())


# --- the options ------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Tells a mistake on one line."""

    def error(self, message: str) -> NoReturn:
        raise InvalidArgumentError(f"{message}. See: {self.prog} --help")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"wanted a whole number of 1 or more, but got {text!r}")
    return int(text)


def _embeddings_name(text: str) -> str:
    kind, _, model = text.partition(":")
    if text != "hashed" and (kind != "local" or not model):
        raise argparse.ArgumentTypeError(f"wanted hashed or local:MODEL_OR_FOLDER, but got {text!r}")
    return f"local:{Path(model).resolve()}" if model and Path(model).is_dir() else text


def _parser() -> argparse.ArgumentParser:
    debug, graph, embeddings, as_json = (_Parser(add_help=False) for _ in range(4))
    debug.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show an error's traceback")
    graph.add_argument(
        "graph",
        metavar="GRAPH",
        help="a file with a triple a line (.csv, .tsv, head|relation|tail, .jsonl; also .gz), or a folder of `index`",
    )
    reading = graph.add_argument_group("how a graph file is read")
    reading.add_argument("--entities", metavar="FILE", help="a second file: labels, aliases and types of entities")
    reading.add_argument("--format", choices=("tsv", "csv", "pipe", "jsonl"), help="if the suffix does not tell")
    reading.add_argument(
        "--columns",
        type=lambda text: text.split(","),
        metavar="HEAD,RELATION,TAIL",
        help="what the header calls them, where unusual",
    )
    reading.add_argument("--encoding", help="of the files (default: utf-8)")
    reading.add_argument("--on-error", choices=("raise", "skip"), help="at a malformed line (default: raise)")
    embeddings.add_argument(
        "--embeddings",
        type=_embeddings_name,
        metavar="WHICH",
        help="hashed (no download) or local:MODEL_OR_FOLDER (sentence-transformers); "
        "default: those that a folder was built with, else hashed",
    )
    as_json.add_argument("--json", action="store_true", help="one JSON object on stdout, and nothing else")

    parser = _Parser(
        prog="kg-retrievers",
        description="Fetch the part of a knowledge graph that answers a question.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[debug],
    )
    parser.add_argument("--version", action="version", version=f"kg-retrievers {version('kg-retrievers')}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int], about: str, *parents: _Parser) -> _Parser:
        made = commands.add_parser(name, help=about, description=f"{about}.", parents=[*parents, debug])
        made.set_defaults(run=run)
        return made

    ask = command("ask", _ask, "Answer a question from a graph, with the evidence", graph, embeddings, as_json)
    ask.add_argument("question", metavar="QUESTION", help="the question, in quotes")
    ask.add_argument("--method", choices=sorted(RETRIEVERS), default="simgrag", help="(default: simgrag)")
    ask.add_argument(
        "--llm",
        metavar="PROVIDER:MODEL",
        help="a language model for the patterns and the answer, as in openai:gpt-4.1-mini; "
        "its key is read from the environment, as OPENAI_API_KEY",
    )
    ask.add_argument("--examples", metavar="FILE", help='labelled questions, JSON lines {"question", "pattern"}')
    ask.add_argument("--k", type=_count, default=1, metavar="N", help="how many pieces of evidence (default: 1)")
    ask.add_argument("--seed", action="append", default=[], metavar="KEY", help="an entity it is about; repeatable")
    index = command("index", _index, "Index a graph once, for many questions", graph, embeddings)
    index.add_argument("--output", required=True, metavar="FOLDER", help="where to save it")
    command("info", _info, "Show what is in a graph", graph, as_json)
    command("demo", _demo, "Ask the sample graph a few questions; no download, no API key")
    return parser


if __name__ == "__main__":
    sys.exit(main())
