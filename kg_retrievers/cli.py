"""The command kg-retrievers: ask a graph, index it, look into it, or see a demonstration.

It is the only place that maps the name of a method to its class. What it needs is loaded when a command first needs
it, so that the help and a misspelt option show at once.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import shlex
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

import kg_retrievers
from kg_retrievers.errors import (
    EntityLinkingError,
    FileFormatError,
    GraphLoadError,
    IndexLoadError,
    InvalidArgumentError,
    KGRetrieversError,
    MissingExtraError,
    StaleIndexError,
)

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from kg_retrievers.base import BaseKGRetriever
    from kg_retrievers.graph import KnowledgeGraph
    from kg_retrievers.index import GraphIndex
    from kg_retrievers.questions import Question

#: The methods by name, each as `module:Class`.
RETRIEVERS = {"simgrag": "kg_retrievers.simgrag:SimGRAGRetriever"}

#: How a pattern was made, by its `source`.
PATTERN_SOURCES = {
    "examples": "by the nearest example",
    "linked": "from the entities named in the question (no LLM, no examples)",
    "llm": "by a language model",
}

#: What stands beside an index to say which `--embeddings` it was built with.
RECORD = "cli.json"

#: The model behind `--embeddings local`.
LOCAL_MODEL = "sentence-transformers/all-MiniLM-L6-v2"

#: The most rows of a table, and the most names of a list, that are shown to a reader; `--json` has all.
ROWS_SHOWN = 20

#: Beyond so many seconds, `ask` mentions that `index` would save them.
SLOW = 5.0

#: Exit codes: of `ask` where there is no evidence; after a mistake, after Ctrl-C, and when nobody reads the output.
NO_EVIDENCE, MISTAKE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141

DESCRIPTION = "Fetch the part of a knowledge graph that answers a question."

EPILOG = """\
examples:
  kg-retrievers demo
  kg-retrievers info films.csv
  kg-retrievers ask films.csv "Who directed Her?"
  kg-retrievers index films.csv --output films.index
  kg-retrievers ask films.index "Who directed Her?" --llm openai:gpt-4.1-mini

exit codes: 0 evidence found, or done; 1 no evidence found; 2 a mistake, told on one line of stderr; 130 interrupted.
"""

# The demonstration: questions of the sample set, with how many pieces of evidence to fetch.
_BY_LINKS = (
    ("Which films did Christopher Nolan direct?", 1),
    ("Which other films were directed by the director of Her?", 1),
    ("Which science fiction films star Amy Adams?", 1),
    ("Who directed Dune?", 2),
)
_BY_EXAMPLES = (
    "What kind of film is Titanic?",
    "Who wrote other films by the director of Her?",
)
_TAUGHT = "Who wrote other films by the director of Arrival?"
_TAUGHT_PATTERN = {
    "triples": [
        ["Arrival", "directed by", {"unknown": "director"}],
        [{"unknown": "film"}, "directed by", {"unknown": "director"}],
        [{"unknown": "film"}, "written by", {"unknown": "writer"}],
    ],
    "target": "writer",
}

# How the options of Python, as messages name them, are spelt here.
_PYTHON_OPTION = re.compile(r'\b(on_error|encoding|format)=("[^"]*")')
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        argv: The arguments; those of the process by default.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a name that a terminal cannot show must not end the program
    debug = False
    try:
        try:
            options = _parser().parse_args(argv)
            debug = getattr(options, "debug", False)
            with nullcontext() if debug else _quiet():
                code: int = options.run(options)
        except SystemExit as end:  # after --help and --version
            code = int(end.code or 0)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        sys.stderr.write("kg-retrievers: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        with open(os.devnull, "wb") as null:  # for what is still buffered when the process ends
            os.dup2(null.fileno(), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        if debug:
            traceback.print_exc()
        sys.stderr.write(f"kg-retrievers: error: {_message(error)}\n")
        return MISTAKE


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep warnings and log lines of other packages off the terminal."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


# --- the commands -----------------------------------------------------------------------------------------------------


def _ask(options: argparse.Namespace) -> int:
    question = " ".join(options.question).strip()
    if not question:
        raise InvalidArgumentError("the question is empty. Ask something, as in: kg-retrievers ask GRAPH 'Who is it?'")
    examples = kg_retrievers.read_questions(options.examples) if options.examples else None
    llm = _language_model(options.llm) if options.llm else None
    index = _index_for(options)
    fields = {} if options.k is None else {"k": options.k}
    retriever = _load(RETRIEVERS[options.method]).from_index(index, llm=llm, examples=examples, **fields)
    reply = _retrieve(retriever, question, options.seed, llm)
    if options.json:
        _show_json(
            {
                "question": question,
                "method": options.method,
                "llm": options.llm,
                "answer": reply.answer,
                "answers": [{"key": key, "label": index.graph.label(key)} for key in reply.answers],
                "pattern_made": reply.pattern_made,
                "pattern": reply.pattern,
                "reason": reply.reason,
                "documents": [
                    {"id": document.id, "page_content": document.page_content, "metadata": document.metadata}
                    for document in reply.documents
                ],
            }
        )
    else:
        _show(*_rendered(reply), *_notes(reply, index.graph))
    return 0 if reply.documents else NO_EVIDENCE


def _index(options: argparse.Namespace) -> int:
    output = Path(options.output)
    if output.exists() and not output.is_dir():
        raise InvalidArgumentError(f"{output} is a file. Name a folder, as in: --output {output}.index")
    if output.is_dir() and any(output.iterdir()) and not (output / "index.json").exists():
        raise InvalidArgumentError(f"the folder {output} is not empty and holds no index. Name a new one: --output ...")
    graph = _graph(options)
    spec, embeddings = _embeddings(options.embeddings or "hashed")
    kg_retrievers.GraphIndex.build(graph, embeddings, output, progress=Console(stderr=True).is_terminal)
    (output / RECORD).write_text(json.dumps({"embeddings": spec}) + "\n", "utf-8")
    _show(
        Text(f"Indexed {_sizes(graph)} in {output}, with {spec} embeddings."),
        Text(f"Ask it: kg-retrievers ask {shlex.quote(str(output))} 'Who ...?'"),
    )
    return 0


def _info(options: argparse.Namespace) -> int:
    graph = _graph(options)
    schema = graph.schema()
    examples = [list(graph.triple(number)) for number in range(min(5, len(graph)))]
    if options.json:
        relations = [
            {
                "relation": row.relation,
                "triples": row.triples,
                "head_types": list(row.head_types),
                "tail_types": list(row.tail_types),
            }
            for row in schema.relations
        ]
        _show_json(
            {
                "graph": options.graph,
                "entities": schema.entities,
                "triples": schema.triples,
                "names": len(graph.names),
                "duplicates": graph.duplicates,
                "skipped": graph.skipped,
                "types": dict(schema.types),
                "relations": relations,
                "examples": examples,
            }
        )
        return 0
    sizes = _grid()
    for name, value in (
        ("Entities", schema.entities),
        ("Labels and aliases", len(graph.names)),
        ("Relations", len(schema.relations)),
        ("Triples", schema.triples),
        ("Repeated triples dropped", graph.duplicates),
        ("Malformed lines skipped", graph.skipped),
    ):
        sizes.add_row(name, f"{value:,}")
    joined = _table("relation", "triples", "head types", "tail types", number="triples")
    for row in schema.relations[:ROWS_SHOWN]:
        kinds = (_listed(kinds) or "-" for kinds in (row.head_types, row.tail_types))
        joined.add_row(*map(_plain, (row.relation, f"{row.triples:,}", *kinds)))
    types = _table("type", "entities", number="entities")
    for kind, count in list(schema.types.items())[:ROWS_SHOWN]:
        types.add_row(_plain(kind), f"{count:,}")
    facts = _table("head", "relation", "tail", number="")
    for triple in examples:
        facts.add_row(*map(_plain, triple))
    parts: list[RenderableType] = [sizes, _title("\nRelations"), joined, *_left_out(len(schema.relations))]
    if schema.types:
        parts += [_title("\nTypes"), types, *_left_out(len(schema.types))]
    _show(*parts, _title("\nThe first triples, by entity key"), facts)
    return 0


def _demo(options: argparse.Namespace) -> int:
    graph = _load("kg_retrievers.sample:load_graph")()
    questions: list[Question] = _load("kg_retrievers.sample:load_questions")()
    index = kg_retrievers.GraphIndex.build(graph, kg_retrievers.HashedEmbeddings())
    retriever = _load(RETRIEVERS["simgrag"])
    _show(
        Text(
            f"A small graph of films comes with the package: {_sizes(graph)}. SimGRAG turns a question into a small "
            "pattern and finds the part of the graph that is nearest to it. Nothing is downloaded, no API key is used."
        ),
        _title("\n1. The graph alone"),
        Text("The pattern is made from the entities that the question names and the relations around them."),
    )
    for question, k in _BY_LINKS:
        reply = _retrieve(retriever.from_index(index, k=k), question)
        _show(Text(), *_rendered(reply), *_notes(reply, graph))
    taught = kg_retrievers.Question(_TAUGHT, pattern=kg_retrievers.Pattern.from_dict(_TAUGHT_PATTERN))
    examples = [taught, *(question for question in questions if question.text not in _BY_EXAMPLES)]
    _show(
        _title("\n2. With labelled examples"),
        Text(
            f"{len(examples)} other questions with their patterns serve as examples; the nearest one is filled with "
            "the entities of the new question. An example is a line of a file, and teaches a wording:"
        ),
        Text(f"\n{json.dumps(taught.to_dict())}"),
    )
    by_examples = retriever.from_index(index, examples=examples)
    for question in _BY_EXAMPLES:
        reply = _retrieve(by_examples, question)
        _show(Text(), *_rendered(reply))
    sample = Path(_load("kg_retrievers.sample:__file__")).with_name("graph.jsonl")
    commands = (
        f"kg-retrievers ask {shlex.quote(str(sample))} 'Who stars in Arrival?'",
        "kg-retrievers info FILE",
        "kg-retrievers ask FILE 'Who ...?'",
        "kg-retrievers ask FILE 'Who ...?' --examples LABELLED.jsonl",
        "kg-retrievers ask FILE 'Who ...?' --llm openai:gpt-4.1-mini",
        "kg-retrievers index FILE --output FOLDER",
    )
    _show(
        _title("\nNext"),
        Text(
            "Ask this graph something else, or your own: a FILE with a triple a line, as .csv (head,relation,tail), "
            ".tsv, head|relation|tail, or .jsonl.\n"
        ),
        *(Text(f"  {command}") for command in commands),
    )
    return 0


# --- from options to objects ------------------------------------------------------------------------------------------


def _load(name: str) -> Any:
    """Return what `module:name` names. The module is loaded now and not at the top, so that the help is quick."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def _file_options(options: argparse.Namespace) -> dict[str, Any]:
    names = ("entities", "format", "columns", "on_error", "encoding")
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def _graph(options: argparse.Namespace) -> KnowledgeGraph:
    """Read the graph of a file, or of a folder that `index` saved."""
    path = Path(options.graph)
    given = _file_options(options)
    with _working(f"reading {path}"):
        if path.is_dir():
            _refuse_file_options(path, given)
            try:
                return kg_retrievers.KnowledgeGraph.open(path)
            except FileFormatError as error:
                raise _no_index(path, error) from error
        try:
            graph = kg_retrievers.KnowledgeGraph.from_file(path, **given)
        except GraphLoadError as error:
            if error.line != 1 or options.columns or "cells" not in str(error):
                raise
            raise InvalidArgumentError(
                f"{error} If this is a header: --columns HEAD,RELATION,TAIL names its columns."
            ) from error
    if graph.skipped:
        _remark(f"malformed lines of {path} that were skipped: {graph.skipped}")
    is_table = options.format != "jsonl" and not {".jsonl", ".ndjson"} & set(path.suffixes)
    if is_table and not options.columns and _is_apart(graph):
        first = ",".join(graph.triple(0))
        _remark(f"the first line of {path} was read as a fact. If it is a header: --columns {shlex.quote(first)}")
    return graph


def _is_apart(graph: KnowledgeGraph) -> bool:
    """Whether the first triple shares nothing with the others, as a header does."""
    head, relation, tail = graph.triple(0)
    parts = ({"head": head}, {"tail": head}, {"relation": relation}, {"head": tail}, {"tail": tail})
    return len(graph) > 1 and all(len(list(islice(graph.triples(**part), 2))) < 2 for part in parts)


def _remark(text: str) -> None:
    sys.stderr.write(f"kg-retrievers: {_plain(text)}\n")


def _index_for(options: argparse.Namespace) -> GraphIndex:
    """Open the index of a folder, or read a file and index it in memory."""
    path = Path(options.graph)
    if path.is_dir():
        return _open_index(options, path)
    begin = time.monotonic()
    graph = _graph(options)
    _, embeddings = _embeddings(options.embeddings or "hashed")
    index = kg_retrievers.GraphIndex.build(graph, embeddings, progress=Console(stderr=True).is_terminal)
    if (seconds := time.monotonic() - begin) > SLOW:
        once = f"kg-retrievers index {shlex.quote(str(path))} --output FOLDER"
        _remark(f"reading and indexing took {seconds:.0f} s. To do it once: {once}")
    return index


def _open_index(options: argparse.Namespace, path: Path) -> GraphIndex:
    _refuse_file_options(path, _file_options(options))
    recorded = _recorded(path)
    again = f"build it again: kg-retrievers index GRAPH --output {shlex.quote(str(path))}"
    wanted = _spec(options.embeddings or recorded or "hashed")
    if recorded and wanted != recorded:
        raise StaleIndexError(
            f"{path} was built with {recorded} embeddings, not {wanted}. Leave out --embeddings, or {again} "
            f"--embeddings {shlex.quote(wanted)}"
        )
    _, embeddings = _embeddings(wanted)
    try:
        with _working(f"opening {path}"):
            return kg_retrievers.GraphIndex.open(path, embeddings)
    except StaleIndexError as error:
        raise StaleIndexError(
            f"{path} was not built with {wanted} embeddings. Name those it was built with, as in "
            f"--embeddings local:MODEL_OR_FOLDER, or {again} ({error})"
        ) from error
    except IndexLoadError as error:
        raise _no_index(path, error) from error


def _refuse_file_options(path: Path, given: Iterable[str]) -> None:
    if names := ", ".join(f"--{name.replace('_', '-')}" for name in given):
        raise InvalidArgumentError(
            f"{path} is a folder; {names} says how to read a file. Give the file, or leave it out."
        )


def _no_index(path: Path, error: Exception) -> KGRetrieversError:
    return InvalidArgumentError(
        f"{error} To make an index of a graph file: kg-retrievers index FILE --output {shlex.quote(str(path))}"
    )


def _recorded(folder: Path) -> str | None:
    """Return the `--embeddings` with which `index` made a folder, if it did."""
    record = folder / RECORD
    if not record.exists():
        return None
    try:
        return str(json.loads(record.read_text("utf-8"))["embeddings"])
    except (ValueError, KeyError, TypeError) as cause:
        raise IndexLoadError("damaged. Delete it, and name the embeddings with --embeddings.", record) from cause


def _spec(written: str) -> str:
    """Return one way of writing what `--embeddings` says: folders in full."""
    kind, _, model = written.partition(":")
    if written == "hashed":
        return written
    if kind != "local":
        raise InvalidArgumentError(f"--embeddings: wanted hashed or local:MODEL_OR_FOLDER, but got {written!r}.")
    return f"local:{Path(model).resolve() if model and Path(model).is_dir() else model or LOCAL_MODEL}"


def _embeddings(written: str) -> tuple[str, Embeddings]:
    spec = _spec(written)
    if spec == "hashed":
        return spec, kg_retrievers.HashedEmbeddings()
    model = spec.partition(":")[2]
    if Path(model).is_absolute() and not Path(model).is_dir():
        raise InvalidArgumentError(f"--embeddings: there is no folder {model}.")
    with _working(f"loading {spec}"):
        return spec, kg_retrievers.local_embeddings(model)


def _language_model(name: str) -> BaseChatModel:
    """Return the chat model `provider:model` with a temperature of 0; its key comes from the environment."""
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise InvalidArgumentError(f"--llm: wanted provider:model, as in openai:gpt-4.1-mini, but got {name!r}.")
    with _working(f"loading {name}"):
        try:
            from langchain.chat_models import init_chat_model
        except ImportError as cause:
            raise MissingExtraError("--llm", "openai" if provider == "openai" else "langchain") from cause
        try:
            return init_chat_model(model, model_provider=provider, temperature=0)
        except ImportError as cause:
            if provider == "openai":
                raise MissingExtraError(f"--llm {name}", "openai") from cause
            raise


# --- asking -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reply:
    """What came of a question. `reason` says why there are no documents, where that is known."""

    question: str
    documents: list[Document]
    answers: list[str]
    answer: str | None
    pattern: dict[str, Any] | None
    reason: str | None
    seeds: list[str]
    by_llm: bool

    @property
    def pattern_made(self) -> str | None:
        """How the pattern was made, in words."""
        return PATTERN_SOURCES.get(self.pattern.get("source", "")) if self.pattern else None


def _retrieve(
    retriever: BaseKGRetriever, question: str, seeds: Sequence[str] = (), llm: BaseChatModel | None = None
) -> _Reply:
    """Run the stages of a retriever, and the answerer on what they find."""
    state = retriever.initial_state(question, **({"seed_entities": list(seeds)} if seeds else {}))
    reason = None
    try:
        for stage in retriever.stages:
            with _working(stage.name.replace("_", " ")):
                state |= stage.run.invoke(state)
    except EntityLinkingError as error:
        reason = str(error)
    documents: list[Document] = state.get("documents", [])
    answer = None
    if documents:
        answerer = kg_retrievers.ExtractiveAnswerer()
        if llm is not None:
            answerer = _load("kg_retrievers.chains.answer:llm_answerer")(retriever.answer_prompt, llm)
        with _working("answering"):
            answer = answerer.invoke({"question": question, "documents": documents})
    return _Reply(
        question=question,
        documents=documents,
        answers=state.get("answers", []),
        answer=answer,
        pattern=state.get("pattern"),
        reason=reason,
        seeds=state.get("seed_entities", []),
        by_llm=llm is not None,
    )


@contextmanager
def _working(what: str) -> Iterator[None]:
    """Show on the terminal what is going on; and everywhere, once, that numba compiles, since it takes so long."""
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    compiling = "compiling the matcher, once (up to a minute; it is kept for the next time)"
    with ExitStack() as stack:
        status = None
        if console.is_terminal:
            status = stack.enter_context(console.status(f"{what} ...", spinner="line"))
        if "numba" in sys.modules:
            from numba.core import event

            class Announcement(event.Listener):
                made = False

                def on_start(self, _: Any) -> None:
                    if not self.made and status is not None:
                        status.update(f"{compiling} ...")
                    elif not self.made:
                        _remark(f"{compiling} ...")
                    self.made = True

                def on_end(self, _: Any) -> None:
                    pass

            stack.enter_context(event.install_listener("numba:compile", Announcement()))
        yield


# --- for the reader ---------------------------------------------------------------------------------------------------


def _rendered(reply: _Reply) -> list[RenderableType]:
    """Lay out a reply: the answer, how it was come by, and the evidence."""
    head = _grid()
    head.add_row("Question", _plain(reply.question))
    if not reply.documents:
        head.add_row("Answer", "No evidence found.")
        head.add_row("", _plain(reply.reason or "Nothing in the graph fits."))
    elif reply.by_llm or not reply.answers:
        head.add_row("Answer", "\n".join(map(_plain, (reply.answer or "").splitlines())))
    else:
        for document in reply.documents:
            if document.metadata["score"] == reply.documents[0].metadata["score"]:
                head.add_row("or" if head.row_count > 1 else "Answer", _plain(_answers(document)))
    if reply.pattern:
        lines = [" -> ".join(map(_term, triple)) for triple in reply.pattern["triples"]]
        head.add_row("Pattern", "\n".join(map(_plain, lines)))
        if reply.pattern_made:
            head.add_row("", f"made {reply.pattern_made}")
    parts: list[RenderableType] = [head]
    for document in reply.documents:
        parts += _evidence(document, len(reply.documents))
    return parts


def _evidence(document: Document, count: int) -> list[RenderableType]:
    metadata = document.metadata
    triples, labels = metadata["triples"], metadata["labels"]
    title = f"\nEvidence {metadata['rank']} of {count}: score {metadata['score']:.3f}, "
    title += "1 triple" if len(triples) == 1 else f"{len(triples):,} triples"
    if metadata["truncated"]:
        title += ", cut short by a limit: there may be more"
    table = _table("#", "head", "relation", "tail", number="#")
    for number, (head, relation, tail) in enumerate(triples[:ROWS_SHOWN], 1):
        table.add_row(str(number), *map(_plain, (_named(head, labels), relation, _named(tail, labels))))
    return [_title(title), table, *_left_out(len(triples))]


def _notes(reply: _Reply, graph: KnowledgeGraph) -> list[RenderableType]:
    """Say what a reader may not expect: namesakes that the evidence is not about, seeds that it does not hold."""
    notes = []
    linked = [document.metadata["details"].get("entities", {}).values() for document in reply.documents]
    shown = {key for keys in linked for key in keys}
    for key in dict.fromkeys(linked[0]) if linked and not reply.seeds else ():
        same = graph.entities_named(graph.label(key))
        if others := [other for other in same if other not in shown]:
            pinned = "" if reply.by_llm else f" or --seed {shlex.quote(others[0])}"
            about = _listed(other for other in same if other in shown)
            notes.append(
                f"{graph.label(key)!r} names {len(same)} entities; this is about {about}. "
                f"For the others, add --k {len(same)}{pinned}."
            )
    ends = {
        end for document in reply.documents for head, _, tail in document.metadata["triples"] for end in (head, tail)
    }
    if ends and reply.seeds and not ends & set(reply.seeds):
        notes.append(f"The evidence holds none of the seeds: {_listed(reply.seeds)}.")
    if not reply.documents:
        notes.append("`kg-retrievers info` shows what is in the graph; --seed names an entity of it.")
    return [Text(f"\nNote: {_plain(note)}") for note in notes]


def _answers(document: Document) -> str:
    labels = document.metadata["labels"]
    return _listed(dict.fromkeys(labels[key] for key in document.metadata["answers"]), "; ") or "(none proposed)"


def _term(term: str | Mapping[str, str]) -> str:
    if isinstance(term, str):
        return term
    return f"?{term['unknown']}" if "unknown" in term else term["known"]


def _named(key: str, labels: Mapping[str, str]) -> str:
    return key if labels[key] == key else f"{labels[key]} [{key}]"


def _sizes(graph: KnowledgeGraph) -> str:
    return f"{len(graph.entities):,} entities, {len(graph.relations):,} relations, {len(graph):,} triples"


def _listed(names: Iterable[str], separator: str = ", ") -> str:
    names = list(names)
    more = f" ... and {len(names) - ROWS_SHOWN:,} more (--json has all)" if len(names) > ROWS_SHOWN else ""
    return separator.join(names[:ROWS_SHOWN]) + more


def _left_out(count: int) -> list[Text]:
    return [Text(f" {count - ROWS_SHOWN:,} more; --json has all.")] if count > ROWS_SHOWN else []


def _plain(text: str) -> str:
    """Return a text on one line, without what would steer a terminal."""
    return _CONTROL.sub(" ", text)


def _title(text: str) -> Text:
    return Text(text, style="bold")


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def _table(*columns: str, number: str) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 1))
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column == number else "left")
    return table


def _show(*parts: RenderableType) -> None:
    """Print on stdout: in the width and colours of a terminal, else plain, a row a line."""
    width = None if sys.stdout.isatty() else 10_000
    console = Console(width=width, markup=False, highlight=False, emoji=False, force_jupyter=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))
    sys.stdout.flush()


def _show_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout; on one line, unless for a terminal."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(value, ensure_ascii=not unicode, indent=indent) + "\n")


def _message(error: Exception) -> str:
    """Return one line about an error."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    message = _plain(" ".join(str(error).split()))
    if isinstance(error, KGRetrieversError):
        return _PYTHON_OPTION.sub(lambda found: f"--{found[1].replace('_', '-')} {found[2]}", message)
    if len(message) > 500:
        message = message[:500] + " ..."
    return f"{type(error).__name__}: {message} (--debug shows where)"


# --- the options ------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Tells a mistake on one line, by the parser that met it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **settings)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        namespace, rest = super().parse_known_args(args, namespace)
        if rest:
            quotes = "" if rest[0].startswith("-") else " Put the question in quotes."
            self.error(f"unrecognized arguments: {' '.join(rest)}.{quotes}")
        return namespace, rest

    def error(self, message: str) -> NoReturn:
        raise InvalidArgumentError(f"{message.rstrip('.')}. See: {self.prog} --help")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"wanted a whole number of 1 or more, but got {text!r}")
    return int(text)


def _columns(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if len(names) != 3 or not all(names):
        raise argparse.ArgumentTypeError(f"wanted three names, as in from,rel,to, but got {text!r}")
    return names


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0


def _parser() -> argparse.ArgumentParser:
    common = _Parser(add_help=False)
    common.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
    )
    graph = _Parser(add_help=False)
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
        type=_columns,
        metavar="HEAD,RELATION,TAIL",
        help="what the header calls them, where unusual",
    )
    reading.add_argument("--encoding", help="of the files (default: utf-8)")
    reading.add_argument(
        "--on-error", choices=("raise", "skip"), help="what to do at a malformed line (default: raise)"
    )
    as_json = _Parser(add_help=False)
    as_json.add_argument("--json", action="store_true", help="one JSON object on stdout, and nothing else")

    parser = _Parser(prog="kg-retrievers", description=DESCRIPTION, epilog=EPILOG, parents=[common])
    parser.add_argument("--version", action="version", version=f"kg-retrievers {version('kg-retrievers')}")
    parser.set_defaults(run=lambda _: _help(parser))
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")

    def command(name: str, run: Any, about: str, parents: Sequence[_Parser] = ()) -> _Parser:
        made: _Parser = commands.add_parser(name, help=about, description=f"{about}.", parents=[*parents, common])
        made.set_defaults(run=run)
        return made

    ask = command("ask", _ask, "Answer a question from a graph, with the evidence", [graph, as_json])
    ask.epilog = "exit codes: 0 evidence found; 1 no evidence found; 2 a mistake, told on one line of stderr"
    ask.add_argument("question", metavar="QUESTION", nargs="+", help="the question, best in quotes")
    ask.add_argument("--method", choices=sorted(RETRIEVERS), default="simgrag", help="(default: simgrag)")
    ask.add_argument(
        "--llm",
        metavar="PROVIDER:MODEL",
        help="a language model for the patterns and the answer, as in openai:gpt-4.1-mini; "
        "its key is read from the environment, as OPENAI_API_KEY",
    )
    ask.add_argument("--examples", metavar="FILE", help='labelled questions, JSON lines {"question", "pattern"}')
    ask.add_argument("--k", type=_count, metavar="N", help="how many pieces of evidence to fetch (default: 1)")
    ask.add_argument(
        "--seed", action="append", default=[], metavar="KEY", help="an entity that the question is about; repeatable"
    )
    index = command("index", _index, "Index a graph once, for many questions", [graph])
    index.add_argument("--output", required=True, metavar="FOLDER", help="where to save it")
    for made, default in ((ask, "hashed, or those of the folder"), (index, "hashed")):
        made.add_argument(
            "--embeddings",
            metavar="WHICH",
            help=f"hashed (no download) or local:MODEL_OR_FOLDER, by sentence-transformers (default: {default})",
        )
    command("info", _info, "Show what is in a graph", [graph, as_json])
    command("demo", _demo, "Ask the sample graph a few questions; no download, no API key")
    return parser


if __name__ == "__main__":
    sys.exit(main())
