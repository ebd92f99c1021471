"""JSON lines and JSON arrays: an object or an array of three for each fact, entity or relation."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from reprlib import repr as short
from typing import Any, NoReturn

from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.limits import is_too_deep, limit_error
from kg_retrievers.graph.readers.opening import open_bytes
from kg_retrievers.graph.readers.tables.cell_texts import UNFIT
from kg_retrievers.graph.readers.tables.roles import Roles, find_roles
from kg_retrievers.graph.readers.tables.text_lines import TextFile, encoding_hints
from kg_retrievers.graph.types import Triple

_ENTITY_KEYS = {"entity", "label", "aliases", "types", "datatype"}
_RELATION_KEYS = {"relation", "label", "text"}

_ENTITY_EXAMPLE = '{"entity": "Her", "label": "Her"}'
_ANY_EXAMPLE = '{"head": "Her", "relation": "directed_by", "tail": "Spike Jonze"} or ' + _ENTITY_EXAMPLE

#: How many characters of an array are read at a time.
CHUNK = 1 << 18


class JsonRows:
    """Adds what rows of JSON say to a builder.

    A row is a fact `{"head", "relation", "tail"}` (or keys of `roles`, as "subject"), with a text or list of texts
    under "source" where it has one; a fact `[head, relation, tail]`; an entity `{"entity", "label", "aliases",
    "types"}`; or `{"relation", "label"}`, which names a relation, with `"text": true` or this alone where its tails are
    texts, whatever they look like. Numbers are read as text. Further keys of a fact are left out and counted.

    Args:
        builder: What takes the rows.
        with_facts: Whether there may be facts.
        cell_length: The most characters of a text.
    """

    def __init__(self, builder: GraphBuilder, with_facts: bool, cell_length: int) -> None:
        """Begin with no row."""
        self._builder, self._with_facts, self._most = builder, with_facts, cell_length
        self._roles: dict[tuple[str, ...], Roles | None] = {}
        self.count = 0
        self.wanted = f"wanted an object such as {_ANY_EXAMPLE if with_facts else _ENTITY_EXAMPLE}"

    def add(self, row: Any) -> None:
        """Add one row.

        Raises:
            ValueError: If it is none of these.
        """
        if isinstance(row, list) and len(row) == 3 and self._with_facts:
            self._add_fact(dict(zip(Triple._fields, row, strict=True)))
        elif not isinstance(row, dict):
            raise ValueError(f"{self.wanted}, but got {short(row)}.")
        elif "entity" in row:
            self._add_entity(row)
        elif "relation" in row and len(row) > 1 and row.keys() <= _RELATION_KEYS:
            self._add_relation(row)
        elif not self._with_facts:
            raise ValueError(f"{self.wanted}, but got {short(row)}.")
        else:
            self._add_fact(row)
        self.count += 1

    def _add_fact(self, row: dict[str, Any]) -> None:
        keys = tuple(row)
        if keys not in self._roles:
            self._roles[keys] = find_roles(keys)
        roles = self._roles[keys]
        if roles is None:
            missing = [key for key in Triple._fields if key not in row]
            raise ValueError(f"{self.wanted}, but there is no {missing}, only {[*row]}.")
        head, relation, tail = (self._text(row, key) for key in roles[:3])
        for source in self._sources(row, roles.source):
            self._builder.add(head, relation, tail, source)
        for key in keys:
            if key not in roles:
                self._builder.reading.leave_out(f"key {key!r} of facts (a fact holds head, relation, tail and source)")

    def _sources(self, row: dict[str, Any], key: str | None) -> list[str | None]:
        if key is None or row[key] is None or row[key] == []:
            return [None]
        if isinstance(row[key], list):
            return [self._text({key: one}, key) for one in row[key]]
        return [self._text(row, key)]

    def _add_entity(self, row: dict[str, Any]) -> None:
        if strange := sorted(set(row) - _ENTITY_KEYS):
            raise ValueError(f"an entity has the keys {sorted(_ENTITY_KEYS)}, but got also {strange}.")
        given = {key: value for key, value in row.items() if value is not None}
        for key in ("aliases", "types"):
            if not isinstance(given.get(key, []), list):
                raise ValueError(f'"{key}" must be a list of texts, but got {short(given[key])}.')
        aliases, types = ([self._text({key: item}, key) for item in given.get(key, [])] for key in ("aliases", "types"))
        label = self._text(row, "label") if "label" in given else None
        entity = self._text(row, "entity")
        self._builder.describe(entity, label, aliases, types)
        if "datatype" in given:
            self._builder.set_datatype(entity, self._text(row, "datatype"))

    def _add_relation(self, row: dict[str, Any]) -> None:
        relation = self._text(row, "relation")
        if not isinstance(row.get("text", False), bool):
            raise ValueError(f'"text" of a relation must be true or false, but got {short(row["text"])}.')
        if "label" in row:
            self._builder.name_relation(relation, self._text(row, "label"))
        if row.get("text"):
            self._builder.text_relations[relation] = None

    def _text(self, row: dict[str, Any], key: str) -> str:
        """Return the text under `key`, as it is."""
        text = row[key]
        if not isinstance(text, str) or not text.strip() or UNFIT.search(text):
            raise ValueError(
                f'"{key}" must be a text, not blank, without NUL or half a surrogate, but got {short(text)}.'
            )
        if len(text) > self._most:
            raise _LongTextError(len(text))
        return text


class _LongTextError(ValueError):
    """A text that exceeds the limit of cells."""


def add_each(file: TextFile, add: Callable[[Any], None], *, is_array: bool) -> None:
    """Hand each line, or each element of an array, to `add`; a ValueError is raised with its line or counted.

    An element has its number, from 1, in place of a line.
    """
    values = array_elements(file) if is_array else _lines(file)
    for value in values:
        try:
            add(value)
        except _LongTextError as error:
            file.reject_cell(error.args[0], file.line)
        except ValueError as error:
            file.reject(str(error), file.line)


def _lines(file: TextFile) -> Iterator[Any]:
    """Yield what each line holds."""
    for text in file.lines():
        if not text.isspace():
            try:
                yield decode(text.rstrip(), file)
            except ValueError as error:
                file.reject(str(error), file.line)


def decode(text: str, file: TextFile, decoder: json.JSONDecoder | None = None) -> Any:
    """Return what a text of JSON holds; by default with numbers as texts.

    Raises:
        ValueError: If it is no JSON, or nested more deeply than the limit.
    """
    _check_depth(text, file)
    try:
        return (decoder or DECODER).decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}.") from None
    except RecursionError:
        raise ValueError("JSON that is nested too deeply for Python.") from None


def _check_depth(text: str, file: TextFile) -> None:
    limit = file.options.limits.json_depth
    if is_too_deep(text, limit):
        raise ValueError(f"JSON that is nested too deeply: more than {limit} levels, the limit json_depth of Limits.")


def array_elements(file: TextFile) -> Iterator[Any]:
    """Yield the elements of a JSON array, with numbers as texts; only one element is in memory at a time.

    Raises:
        GraphLoadError: If the file is no JSON array, or an element is longer than the limit of a line.
    """
    limits = file.options.limits
    with open_bytes(file.path, limits, by_line=False) as opened:
        stream = io.TextIOWrapper(opened, encoding=file.options.codec)
        array = _Array(stream, file)
        array.expect("[")
        file.line = 0
        while not array.at_end():
            file.line += 1
            try:
                yield array.element()
            except ValueError as error:
                file.reject(str(error), file.line)


class _Array:
    """The text of an array, of which only the part that is not read yet is kept."""

    def __init__(self, stream: io.TextIOWrapper, file: TextFile) -> None:
        self._stream, self._file = stream, file
        self._text, self._at = "", 0
        self._first, self._ended = True, False

    def expect(self, wanted: str) -> None:
        if self._next() != wanted:
            self._file.fail(f"wanted {wanted!r} but found {self._next()!r:.20}: this is no JSON array.")
        self._at += 1

    def at_end(self) -> bool:
        """Whether the array ends here; if not, what follows is an element."""
        if self._next() == "]":
            self._at += 1
            if rest := self._next():
                self._file.fail(f"after the array comes {rest!r}.")
            return True
        if not self._first:
            self.expect(",")
            self._next()
        self._first = False
        return False

    def element(self) -> Any:
        """Read the element that begins here.

        Raises:
            ValueError: If it is nested too deeply.
        """
        most = self._file.options.limits.line_bytes
        size = CHUNK
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
                break
            except (json.JSONDecodeError, RecursionError) as error:
                if len(self._text) - self._at > most:
                    exceeded = f"element {self._file.line} of more than {most:,} bytes, or broken"
                    raise limit_error(self._file.path, None, exceeded, "line_bytes") from None
                if not self._more(size):
                    self._file.fail(f"element {self._file.line} of the array is not JSON: {error!s:.100}.")
                size *= 2
            except ValueError as error:  # a constant that JSON does not have
                self._file.fail(f"element {self._file.line} of the array: {error}")
        text, self._at = self._text[self._at : end], end
        _check_depth(text, self._file)
        return value

    def _next(self) -> str:
        """Return the next character that is no white space, and go there; empty at the end of the file."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more(CHUNK):
                return ""

    def _more(self, size: int) -> bool:
        """Read more of the file, and forget what was read before; False at its end."""
        try:
            more = self._stream.read(size)
        except UnicodeDecodeError as error:
            self._file.fail(f"is not {error.encoding}: {error.reason}.", None, **encoding_hints(error.object))
        if "\0" in more:
            self._file.fail("NUL byte: this is no text, or its encoding is another (utf-16?).")
        self._text, self._at = self._text[self._at :] + more, 0
        return bool(more)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON.")


DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refuse)
_SPACE = re.compile(r"\s*")
