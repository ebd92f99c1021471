"""The user's description of a file, its lines, and the roles of its columns or keys, found by name."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from pydantic import Field

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError
from kg_retrievers.graph.readers.opening import Limits, limit_error, open_bytes, skip_hints
from kg_retrievers.graph.validation import checked_dataclass

#: The use of the attributes of nodes that are no names or types.
Attributes = Literal["facts", "drop"]
OnError = Literal["raise", "skip"]

#: The formats: what `Reading` calls each, the suffixes of its files, and the options that not all formats know.
FORMATS: Mapping[str, Any] = json.loads((files("kg_retrievers.graph") / "formats.json").read_text("utf-8"))

#: The options that not all formats know.
_OPTIONS = ("columns", "delimiter", "header", "facts", "attributes", "encoding")

#: The defaults of `attributes` and `encoding`.
DEFAULTS = ("facts", "utf-8")

#: The options that count for a second file with entities, too.
OF_ENTITIES = ("delimiter", "attributes", "encoding")


@checked_dataclass
class FileOptions:
    """How a file is read (see `KnowledgeGraph.from_file`).

    Args:
        columns: What the header calls head, relation and tail, and the source if you like.
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
    limits: Limits = Field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Check each field."""
        try:
            " ".encode(self.encoding)
        except LookupError:
            message = f'Python knows no text encoding {self.encoding!r}; wanted one such as "utf-8" or "latin-1".'
            raise InvalidArgumentError(message) from None
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise InvalidArgumentError(
                f"delimiter is one character, as ';', but got {self.delimiter!r}.",
                hint_shell="Quote it: --read 'delimiter=;'",
            )

    @property
    def codec(self) -> str:
        """The encoding, with a byte order mark allowed in UTF-8."""
        return "utf-8-sig" if codecs.lookup(self.encoding).name == "utf-8" else self.encoding

    @property
    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults, except options of errors and limits."""
        default, values = FileOptions(), {name: getattr(self, name) for name in _OPTIONS}
        given = {name: value for name, value in values.items() if value != getattr(default, name)}
        return {name: [*value] if name in ("columns", "facts") else value for name, value in given.items()}

    @property
    def named_columns(self) -> list[str | None]:
        """The columns of heads, relations, tails and sources, None for those that are not named."""
        return [*(self.columns or ()), None, None, None, None][:4]

    def check_columns(self, has_source: bool) -> None:
        """Check that `columns` names three columns, or four if one of them may be the source.

        Raises:
            InvalidArgumentError: If it does not.
        """
        if self.columns is None or (not isinstance(self.columns, str) and len(self.columns) in (3, 3 + has_source)):
            return
        also = " (and source, if you like)" if has_source else ""
        raise InvalidArgumentError(
            f"wanted the names of the columns for head, relation, tail{also}, but got {self.columns!r}.",
            hint_python="Give columns=(head, relation, tail), each as in the header.",
            hint_shell="Give --columns HEAD,RELATION,TAIL, each as in the header.",
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
        for name in _OPTIONS:
            value, formats = getattr(self, name), [one for one, about in FORMATS.items() if name in about["options"]]
            is_given = (value or value is False) and value not in DEFAULTS
            if is_given and format not in formats and not (entities and name in OF_ENTITIES):
                raise InvalidArgumentError(
                    f"{name} is for the formats {', '.join(formats)}, but {path} is {format}. Leave it out."
                )


_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

#: How many bytes are read at a time. With more of them the texts leave the cache of the processor before they are used.
BLOCK_BYTES = 1 << 16

#: Characters that no text holds, in whatever encoding that has ASCII in it.
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


class TextFile:
    """A file that is read line by line.

    Attributes:
        path: The file.
        line: The number of the last line that was read, from 1.
        text: This line.
        skipped: How many malformed lines were left out.
    """

    def __init__(self, path: str | os.PathLike[str], options: FileOptions) -> None:
        """Begin before the first line."""
        self.path = Path(path)
        self.options = options
        self.line, self.text = 0, ""
        self.skipped = 0

    def fail(self, message: str, line: int | None = None, **hints: str) -> NoReturn:
        """Raise a GraphLoadError at a line."""
        raise GraphLoadError(message, self.path, line, **hints)

    def reject(self, message: str, line: int, last: int | None = None) -> None:
        """Raise for the row from `line` to `last`, by default one line, or count its lines."""
        if self.options.on_error == "raise":
            self.fail(message, line, **skip_hints("line"))
        self.skipped += (last or line) - line + 1

    def reject_cell(self, length: int | None, line: int, last: int | None = None, enough: int | None = None) -> None:
        """Raise for a cell that is too long, or count its lines.

        Args:
            length: How many characters it has; None if it was not read to its end.
            line: The first line of its row.
            last: The last line, by default the first one.
            enough: A limit that would do, if its length is not known.
        """
        if self.options.on_error == "raise":
            known = f"{length:,}" if length else f"more than {self.options.limits.cell_length:,}"
            raise limit_error(self.path, line, f"a cell of {known} characters", "cell_length", length or enough)
        self.skipped += (last or line) - line + 1

    def lines(self) -> Iterator[str]:
        """Yield the lines from the first, each with its line break."""
        return self.lines_of(self.blocks())

    def lines_of(self, blocks: Iterable[str]) -> Iterator[str]:
        """Yield the lines of blocks that were not counted, each with its line break."""
        for block in blocks:
            for self.text in io.StringIO(block, newline=""):
                self.line += 1
                yield self.text

    def blocks(self) -> Iterator[str]:
        """Yield the whole lines of each part of the file. The caller counts them in `line`, as `lines_of` does."""
        self.line = before = 0
        with open_bytes(self.path, self.options.limits) as opened:
            decoder = codecs.getincrementaldecoder(self.options.codec)()
            rest, is_last = "", False
            while not is_last:
                data = opened.read1(BLOCK_BYTES)
                is_last = not data
                try:
                    text = rest + decoder.decode(data, final=is_last)
                except UnicodeDecodeError as error:
                    offset = opened.tell() - len(error.object) + error.start
                    line = before + error.object[: error.start].count(b"\n") + 1
                    self.fail(f"byte {offset} is not {error.encoding}.", line, **encoding_hints(error.object))
                if "\0" in text:
                    line = before + _line_breaks(text[: text.index("\0")]) + 1
                    self.fail("NUL byte: this is no text, or its encoding is another (utf-16?).", line)
                end = len(text) if is_last else _end_of_lines(text)
                before += _line_breaks(text[:end])
                rest = text[end:]
                yield text[:end]


def _line_breaks(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def _end_of_lines(text: str) -> int:
    r"""Return where the last whole line of a text ends; a line break "\r" at its very end may go on as "\r\n".

    Example:
        >>> _end_of_lines("a\nb"), _end_of_lines("a\r\nb\r"), _end_of_lines("a")
        (2, 3, 0)
    """
    return max(text.rfind("\n"), text.rfind("\r", 0, -1)) + 1


def encoding_hints(data: bytes) -> dict[str, str]:
    r"""Return what to do about bytes of a file that are not in its encoding, as arguments of errors.

    Example:
        >>> encoding_hints(b"Am\xe9lie")["hint_shell"], encoding_hints(b"\xe9\x01")["hint_python"]
        ('Perhaps the file is --read encoding=latin-1.', 'It is no text: name a file that holds triples.')
    """
    is_utf_16 = data.startswith(_UTF_16)
    if not is_utf_16 and _CONTROLS.search(data):
        return {"hint_python": "It is no text: name a file that holds triples."}
    other = "utf-16" if is_utf_16 else "latin-1"
    advice = "Perhaps the file is"
    return {"hint_python": f'{advice} encoding="{other}".', "hint_shell": f"{advice} --read encoding={other}."}


#: The possible names of a column, best first: a table with "subject" and "source" has its head in "subject".
HEAD = ("head", "subject", "source", "from", "start", "src", "node1", "s", "h")
RELATION = ("relation", "predicate", "edge", "relationship", "rel", "property", "relation_type", "p", "r")
TAIL = ("tail", "object", "target", "to", "end", "dst", "node2", "o", "t")

#: The possible names of the column for the source of a fact, if it is not the head.
SOURCE = ("source", "sources", "provenance", "graph")

#: Begins the name of a column that is an attribute of facts, though it is called like another column.
ATTRIBUTE_PREFIX = "attribute:"

ENTITY = ("entity", "id", "key", "node")
LABEL = ("label", "name")
ALIASES = ("aliases", "alias", "synonyms")
TYPES = ("types", "type", "category")

#: Names that nobody gives a relation of facts: a first row that has one in the place of the relation names the columns.
_ONLY_HEADER = ("relation", "predicate", "edge", "relationship", "rel")


def is_role(name: str) -> bool:
    """Tell whether a reader takes a column of this name for something else than an attribute."""
    folded = name.strip().casefold()
    is_other = folded in (*HEAD, *RELATION, *TAIL, *SOURCE, "aliases", "types") and name != SOURCE[0]
    return is_other or folded.startswith(ATTRIBUTE_PREFIX)


class Roles(NamedTuple):
    """The names of the columns that hold head, relation, tail and, if there is one, the source."""

    head: str
    relation: str
    tail: str
    source: str | None = None


def find_column(names: Sequence[str], wanted: Sequence[str], taken: Sequence[str] = ()) -> str | None:
    """Return the column with the best of the wanted names, in any case, or None if none or two have it.

    Example:
        >>> find_column(["Source", "Subject"], HEAD)
        'Subject'
    """
    free = [name for name in names if name not in taken]
    for one in wanted:
        found = [name for name in free if name.strip().casefold() == one]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def find_roles(names: Sequence[str], given: Sequence[str | None] = (None,) * 4) -> Roles | None:
    """Return the columns of head, relation, tail and source, or None if one of the first three is not found.

    Args:
        names: The names of all columns.
        given: The columns of heads, relations, tails and sources, None for those that the user does not name.

    Example:
        >>> find_roles(["subject", "predicate", "object", "source"])
        Roles(head='subject', relation='predicate', tail='object', source='source')
    """
    head, relation, tail, source = given
    named = [name for name in given if name is not None]
    head = head or find_column(names, HEAD, named)
    tail = tail or find_column(names, TAIL, named)
    relation = relation or find_column(names, RELATION, [*named, *filter(None, (head, tail))])
    if head is None or relation is None or tail is None:
        return None
    return Roles(head, relation, tail, source or find_column(names, SOURCE, [head, relation, tail]))


def repeated_name(names: Iterable[str]) -> str | None:
    """Return the first name that two columns have, or None if all differ. Several columns may have none.

    Example:
        >>> repeated_name(["a", "", "b", "", "a"])
        'a'
    """
    return next((name for name, count in Counter(filter(None, names)).items() if count > 1), None)


def entity_columns(names: Sequence[str]) -> dict[str, str]:
    """Return the role of each column of a table of entities for `AttributeReader`, or its name if an attribute.

    The key is under "".

    Example:
        >>> entity_columns(["ID", "Name", "year"])
        {'ID': '', 'Name': 'label', 'year': 'year'}
    """
    columns: dict[str, str] = {}
    for role, wanted in (("", ENTITY), ("label", LABEL), ("aliases", ALIASES), ("types", TYPES)):
        if (found := find_column(names, wanted, [*columns])) is not None:
            columns[found] = role
    return {name: columns.get(name, name) for name in names}


def looks_like_header(cells: Sequence[str]) -> bool:
    """Whether a row of three cells is more likely to name columns than to be a fact, though it does not name all.

    It does if two cells are names of columns in their places, or the relation is called "relation" or the like.

    Example:
        >>> looks_like_header(["film", "relation", "person"]), looks_like_header(["Her", "type", "film"])
        (True, False)
    """
    folded = [cell.strip().casefold() for cell in cells]
    named = sum(cell in role for cell, role in zip(folded, (HEAD, RELATION, TAIL), strict=False))
    return named >= 2 or (len(folded) > 1 and folded[1] in _ONLY_HEADER)
