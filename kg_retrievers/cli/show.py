"""The output for a person: tables on stdout, notes on stderr."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.status import Status
from rich.table import Table
from rich.text import Text

import kg_retrievers
from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.file_writing import FULL

if TYPE_CHECKING:
    from langchain_core.documents import Document

    import kg_retrievers.graph
    from kg_retrievers.evaluation import Comparison

#: The most rows of a table, and the most characters of a text, that are shown to a person. `--json` has all.
ROWS_SHOWN, CHARACTERS_SHOWN = 20, 1000

#: The most further facts that are shown below an answer.
FURTHER_SHOWN = 5


def summary(
    question: str, answer: str | None, documents: list[Document], unsupported: Sequence[str] = ()
) -> RenderableType:
    """Lay out the answer to a question, if there is one, its unsupported names, and the evidence for it."""
    # These load numpy, which the help does not need.
    from kg_retrievers.core.documents import tell_ambiguous_names, tell_reader, tell_readings

    details = documents[0].metadata["details"] if documents else {}
    rows = [("Question", question)]
    if answer is not None:
        rows.append(("Answer", answer))
    if unsupported:
        rows.append(("Unsupported", f"{'; '.join(unsupported)}: in none of the facts below"))
    if told := tell_readings(documents):
        rows.append(("Note", told))
    if told := tell_ambiguous_names(documents):
        rows.append(("Note", f"{told} --entity KEY chooses one."))
    if pattern := details.get("pattern"):
        lines = [*kg_retrievers.graph.pattern_lines(pattern), tell_reader(pattern["source"])]
        rows.append(("Pattern", "\n".join(lines)))
    if details.get("query"):
        rows.append(("Query", _query(details)))
    return grid(*rows)


def _query(details: dict[str, Any]) -> str:
    from kg_retrievers.core.documents import tell_reader  # loads numpy, which the help does not need

    lines = [details["query"]]
    for name, value in details["parameters"].items():
        lines.append(f"${name} = {json.dumps(value, ensure_ascii=False)}")
    return "\n".join([*lines, tell_reader(details["from"])])


def evidence(document: Document) -> RenderableType:
    """Lay out the triples of a document, its paths if that is its style, or its result if it has none."""
    from kg_retrievers.core.documents import tell_result  # loads numpy, which the help does not need

    triples = _named_triples(document)
    count = counted(len(triples), "triple")
    metadata = document.metadata
    title = (
        f"Evidence {metadata['rank']}: {_confidence(document)}score {metadata['score']:.3f}, {count}{_limit(document)}"
    )
    if not triples:
        return Text(f"\n{tell_result(metadata)}", style="bold")
    if metadata["style"] == "paths":
        lines = document.page_content.splitlines()[bool(tell_result(metadata)) :]
        paths = table(title, ("#", "path"), list(enumerate(lines, 1)))
        sources = "; ".join(dict.fromkeys(_sources([document])))
        return Group(paths, Text(f" From {sources}")) if sources else paths
    rows = [(position, *triple) for position, triple in enumerate(triples, 1)]
    is_further = "parts" in metadata["details"] and metadata["rank"] > 1
    if is_further:
        title = f"Further facts: {len(triples)}, the likeliest to hold the answer otherwise first"
    most = FURTHER_SHOWN if is_further else ROWS_SHOWN
    return _facts(title, ("#", "head", "relation", "tail"), rows, [document], most)


def single_triples(documents: list[Document]) -> RenderableType:
    """Lay out documents that hold a triple each."""
    found = [(one.metadata["rank"], f"{one.metadata['score']:.3f}", _named_triples(one)) for one in documents]
    rows = [(rank, score, *triple) for rank, score, triples in found for triple in triples]
    title = f"Evidence: single triples, the best first{_limit(*documents)}"
    return _facts(title, ("#", "score", "head", "relation", "tail"), rows, documents)


def _facts(
    title: str,
    columns: Sequence[str],
    rows: Sequence[tuple[str | int, ...]],
    documents: Sequence[Document],
    most: int = ROWS_SHOWN,
) -> RenderableType:
    """Lay out facts, one row each, with their sources if the graph holds some."""
    sources = _sources(documents)
    if not any(sources):
        return table(title, columns, rows, most)
    return table(title, (*columns, "source"), [(*row, one) for row, one in zip(rows, sources, strict=True)], most)


def _sources(documents: Sequence[Document]) -> list[str]:
    """Return where each fact of some Documents is from; nothing of a graph without sources."""
    return ["; ".join(map(_line, sources)) for one in documents for sources in one.metadata.get("sources", ())]


def _named_triples(document: Document) -> list[tuple[str, str, str]]:
    from kg_retrievers.graph.verbalize import attribute_words  # loads numpy, which the help does not need

    labels, triples = document.metadata["labels"], document.metadata["triples"]
    names = {key: _line(key if label == key else f"{label} [{key}]") for key, label in labels.items()}
    said = map(attribute_words, document.metadata.get("attributes") or [()] * len(triples))
    return [
        (names[head], _line(f"{relation} {words}".strip()), names[tail])
        for (head, relation, tail), words in zip(triples, said, strict=True)
    ]


def _confidence(document: Document) -> str:
    """Return how likely the answers are right, rounded down, so that 1.00 is certain."""
    from kg_retrievers.core.stages import shown_confidence  # loads numpy, which the help does not need

    confidence = document.metadata["confidence"]
    return "" if confidence is None else f"confidence {shown_confidence(confidence)}, "


def _limit(*documents: Document) -> str:
    cut = [one.metadata["details"] for one in documents if one.metadata["truncated"]]
    limits = dict.fromkeys(details.get("limit", "a limit") for details in cut)
    return f", cut short by {' and '.join(limits)}: there may be more" if cut else ""


def grid(*rows: tuple[str, str | int]) -> RenderableType:
    """Lay out names with their values."""
    grid = Table.grid(padding=(0, 2))
    for name, value in rows:
        grid.add_row(Text(name, style="bold"), _cell(value))
    return grid


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str | int]], most: int = ROWS_SHOWN
) -> RenderableType:
    """Lay out the first rows of a table."""
    table = Table(*columns, box=None, header_style="dim")
    for row in rows[:most]:
        table.add_row(*map(_cell, row))
    more = [f" {len(rows) - most:,} more; --json has all."] if len(rows) > most else []
    return Group(Text(f"\n{title}", style="bold"), table, *more)


def _cell(value: str | int) -> Text:
    """Return what is shown of a value: the start of a very long text, and nothing that would steer a terminal."""
    if isinstance(value, int):
        return Text(f"{value:,}", justify="right")
    lines = map(_line, value.split("\n"))
    shown = (textwrap.shorten(line, CHARACTERS_SHOWN, placeholder=" ... (--json has all)") for line in lines)
    return Text("\n".join(shown), overflow="fold")


def lines_of(text: str) -> Text:
    """Return lines without anything that would steer a terminal."""
    return Text("\n".join(map(_line, text.split("\n"))), overflow="fold")


def counted(number: int, noun: str) -> str:
    """Return how many of something there are.

    Example:
        >>> counted(1, "fact"), counted(2000, "fact")
        ('1 fact', '2,000 facts')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def show_comparison(found: Comparison) -> None:
    """Print runs side by side, and the mistakes in each."""
    rows = Table(box=None, header_style="dim", padding=(0, 1, 0, 0))
    for position, head in enumerate(found.columns):
        rows.add_column(head.replace(" ", "\n"), justify="right" if position else "left")
    for row in found.rows:
        rows.add_row(*map(_cell, row))
    show(rows, wide=True)  # a figure that is folded cannot be read
    for method, failures in found.failures.items():
        title = f"Failures of {method}" if failures else f"No failures of {method}"
        show(Text.assemble("\n", _cell(title), style="bold"), *(Text.assemble("- ", _cell(text)) for text in failures))


def show(*parts: RenderableType, wide: bool = False) -> None:
    """Print on stdout in a terminal's width and colours, or one row per line if `wide` or without a terminal."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    width = None if is_terminal and not wide else 10_000
    console = Console(width=width, markup=False, highlight=False, emoji=False)
    with console.capture() as capture:
        console.print(*parts, sep="\n")
    print(*(line.rstrip() for line in capture.get().splitlines()), sep="\n", flush=True)


def note(text: str) -> None:
    """Print a line on stderr."""
    print(f"kg-retrievers: {_line(text)}", file=sys.stderr)


def message(error: Exception) -> str:
    """Return one line about an error, with the next step on the shell."""
    if isinstance(error, KGRetrieversError):
        return _one_line(error.on_shell)
    if isinstance(error, OSError) and error.filename is not None:
        return _one_line(f"{error.filename}: {error.strerror}. Name another file or folder.")
    if isinstance(error, OSError) and error.errno in FULL:  # without a file: of stdout
        return _one_line(f"the output cannot be written: {error.strerror}. Make room, or send it to another file.")
    return f"{type(error).__name__}: {textwrap.shorten(_one_line(str(error)), 500)} (--debug shows where)"


def _one_line(text: str) -> str:
    return " ".join(_line(text).split())


def _line(text: str) -> str:
    from kg_retrievers.graph.verbalize import one_line  # loads numpy, which the help does not need

    return one_line(text)


def on_terminal() -> bool:
    """Tell whether notes go to a terminal, which shows the state of work."""
    return Console(stderr=True).is_terminal


def status(what: str) -> Status:
    """Show the state of work on a terminal."""
    return Console(stderr=True).status(Text(f"{what} ..."), spinner="line")
