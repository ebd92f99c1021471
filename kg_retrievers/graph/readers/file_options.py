"""What a user says about the file of a graph."""

from __future__ import annotations

import codecs
import encodings.aliases
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from kg_retrievers.errors import InvalidArgumentError, did_you_mean
from kg_retrievers.graph.readers.frameworks.attributes import Attributes
from kg_retrievers.graph.readers.limits import Limits

OnError = Literal["raise", "skip"]

_TEXT_TABLES = ("csv", "tsv", "pipe")
#: What text encodings are called.
_ENCODINGS = {name.replace("_", "-") for pair in encodings.aliases.aliases.items() for name in pair}

_TABLES = (*_TEXT_TABLES, "parquet", "arrow")
_GRAPHS = ("graphml", "gexf", "node-link")

#: The formats that know an option; the other options are for all.
FORMATS_OF = {
    "columns": (*_TABLES, *_GRAPHS),
    "delimiter": (*_TEXT_TABLES, "neo4j-csv"),
    "header": _TEXT_TABLES,
    "facts": _TABLES,
    "attributes": (*_TABLES, *_GRAPHS, "neo4j-csv", "apoc-jsonl"),
    "encoding": (*_TEXT_TABLES, "jsonl", "json", "node-link", "neo4j-csv", "apoc-jsonl"),
}

#: The defaults of `attributes` and `encoding`.
DEFAULTS = ("facts", "utf-8")

#: The options that count for a second file with entities, too.
OF_ENTITIES = ("delimiter", "attributes", "encoding")


@dataclass(frozen=True)
class FileOptions:
    """How a file is read; see `KnowledgeGraph.from_file`.

    Args:
        columns: What the header calls head, relation and tail, and the source if you like; or entity and label.
        on_error: "skip" counts malformed lines and goes on.
        encoding: The encoding of the text; a byte order mark is dropped.
        delimiter: What stands between the cells of a table; None finds it.
        header: Whether the first row of a table names the columns; None finds it.
        attributes: Whether attributes of entities become facts.
        facts: Columns of a table of facts whose cells become facts about the head.
        limits: What the file may hold.

    Raises:
        InvalidArgumentError: If a field has no such value.
    """

    columns: Sequence[str] | None = None
    on_error: OnError = "raise"
    encoding: str = "utf-8"
    delimiter: str | None = None
    header: bool | None = None
    attributes: Attributes = "facts"
    facts: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Check each field."""
        for name, kind in (("on_error", OnError), ("attributes", Attributes)):
            value, allowed = getattr(self, name), get_args(kind)
            if value not in allowed:
                raise InvalidArgumentError(f'{name} is "{allowed[0]}" or "{allowed[1]}", but got {value!r}.')
        try:
            " ".encode(self.encoding)
        except LookupError:
            near = did_you_mean(self.encoding.lower(), _ENCODINGS) or 'wanted one such as "utf-8" or "latin-1".'
            raise InvalidArgumentError(f"Python knows no text encoding {self.encoding!r}; {near}") from None
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise InvalidArgumentError(f"delimiter is one character, as ';', but got {self.delimiter!r}.")
        if self.header not in (None, True, False):
            raise InvalidArgumentError(f"header is True, False or None, but got {self.header!r}.")
        if isinstance(self.facts, str):
            raise InvalidArgumentError(f"facts is a list of columns, but got {self.facts!r}.")
        if not isinstance(self.limits, Limits):
            raise InvalidArgumentError(f"limits is a kg_retrievers.Limits, but got {self.limits!r}.")

    @property
    def codec(self) -> str:
        """The encoding, with a byte order mark allowed in UTF-8."""
        return "utf-8-sig" if codecs.lookup(self.encoding).name == "utf-8" else self.encoding

    @property
    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults, but for those of errors and limits."""
        default, values = FileOptions(), {name: getattr(self, name) for name in FORMATS_OF}
        given = {name: value for name, value in values.items() if value != getattr(default, name)}
        return {name: [*value] if name in ("columns", "facts") else value for name, value in given.items()}

    def check_columns(self, width: int, most: int | None = None) -> None:
        """Check that `columns` names so many columns, or up to `most`.

        Raises:
            InvalidArgumentError: If it does not.
        """
        widths = range(width, (most or width) + 1)
        if self.columns is not None and (isinstance(self.columns, str) or len(self.columns) not in widths):
            names = "head, relation, tail" if width == 3 else "entity, label"
            also = " (and source, if you like)" if most else ""
            raise InvalidArgumentError(
                f"wanted the names of the columns for {names}{also}, but got {self.columns!r}.",
                hint_python=f"Give columns=({names}), each as in the header.",
                hint_shell=f"Give --columns {names.upper().replace(' ', '')}, each as in the header.",
            )

    def check_known(self, path: Path, format: str, entities: bool = False) -> None:
        """Check that a format knows each option that is given.

        Args:
            path: The file, for errors.
            format: Its format.
            entities: Whether there is a second file with entities, which may need some of the options.

        Raises:
            InvalidArgumentError: If an option is for other formats.
        """
        for name, formats in FORMATS_OF.items():
            value = getattr(self, name)
            is_given = (value or value is False) and value not in DEFAULTS
            if is_given and format not in formats and not (entities and name in OF_ENTITIES):
                raise InvalidArgumentError(
                    f"{name} is for the formats {', '.join(formats)}, but {path} is {format}. Leave it out."
                )
