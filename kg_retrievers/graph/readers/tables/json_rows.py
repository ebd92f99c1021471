"""JSON lines and JSON arrays: an object or an array of three for each fact, entity or relation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from reprlib import repr as short
from typing import Any, NoReturn

from kg_retrievers.graph.attributes import SOURCE
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.frameworks.attributes import listed_counts
from kg_retrievers.graph.readers.opening import read_document
from kg_retrievers.graph.readers.tables.cells import UNFIT
from kg_retrievers.graph.readers.text_files import Attributes, Roles, TextFile, encoding_hints, find_roles
from kg_retrievers.graph.types import Triple

#: How many rows are read before the time is looked at.
ROWS_AT_ONCE = 1 << 10

_ENTITY_KEYS = {"entity", "label", "aliases", "types", "datatype"}
_RELATION_KEYS = {"relation", "label", "text"}

_ENTITY_EXAMPLE = '{"entity": "Her", "label": "Her"}'
_TOO_DEEP = "JSON that is nested too deeply for Python."
_ANY_EXAMPLE = '{"head": "Her", "relation": "directed_by", "tail": "Spike Jonze"} or ' + _ENTITY_EXAMPLE


class JsonRows:
    """Adds the rows of JSON to a builder.

    A row is one of the following. A fact is `{"head", "relation", "tail"}` (or keys of `roles`, as "subject"), with a
    text or list of texts under "source" if it has one, or `[head, relation, tail]`. An entity is `{"entity", "label",
    "aliases", "types"}`. `{"relation", "label"}` names a relation, with `"text": true` or this alone if its tails are
    texts, whatever they look like. Numbers are read as text. Further keys of a fact, and those of an object under
    "attributes", are its attributes, or are left out and counted with `attributes="drop"`.

    Args:
        builder: What takes the rows.
        with_facts: Whether there may be facts.
        attributes: "facts" or "drop".
        cell_length: The most characters of a text.

    Attributes:
        count: How many rows were added.
        names: How many facts have an attribute of each name.
    """

    def __init__(self, builder: GraphBuilder, with_facts: bool, attributes: Attributes, cell_length: int) -> None:
        """Begin with no row."""
        self._builder, self._with_facts, self._most = builder, with_facts, cell_length
        self._keeps = attributes == "facts"
        self._roles: dict[tuple[str, ...], Roles | None] = {}
        self.count = 0
        self.names: Counter[str] = Counter()
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
        own = self._attributes(row, roles)
        for source in self._sources(row, roles.source):
            self._builder.add(head, relation, tail, {SOURCE: source, **own} if source or own else None)

    def _attributes(self, row: dict[str, Any], roles: Roles) -> dict[str, Any]:
        """Return the attributes of a fact."""
        found = {key: value for key, value in row.items() if key not in roles}
        if isinstance(nested := found.get("attributes"), dict):
            del found["attributes"]
            if twice := sorted(found.keys() & nested.keys()):
                raise ValueError(f'{twice[0]!r} stands both beside and in "attributes".')
            found |= nested
        for value in found.values():
            if self._most < (length := len(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))):
                raise _LongTextError(length)
        if self._keeps:
            self.names.update(key for key, value in found.items() if value is not None)
            return {key: typed(value) for key, value in found.items()}
        for key in found:
            self._builder.reading.leave_out(f'attribute {key!r} of facts (attributes="facts" keeps it)')
        return {}

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


def typed(value: Any) -> Any:
    """Return a value of JSON with its numbers as numbers."""
    match value:
        case JsonNumber():
            return json.loads(value)
        case list():
            return [typed(one) for one in value]
        case dict():
            return {key: typed(one) for key, one in value.items()}
    return value


class _LongTextError(ValueError):
    """A text that exceeds the limit of cells."""


def add_rows(file: TextFile, builder: GraphBuilder, *, with_facts: bool, is_array: bool) -> int:
    """Add the content of each line or element of an array, and return how many did."""
    rows = JsonRows(builder, with_facts, file.options.attributes, file.options.limits.cell_length)
    add_each(file, json_rows(file, is_array=is_array), rows.add)
    builder.skipped += file.skipped
    if rows.names:
        builder.reading.understood["attributes of facts"] = listed_counts(rows.names)
    return rows.count


def add_each(file: TextFile, rows: Iterator[Any], add: Callable[[Any], None]) -> None:
    """Hand each row to `add`. A malformed row is raised or counted."""
    for row in rows:
        try:
            add(row)
        except _LongTextError as error:
            file.reject_cell(error.args[0], file.line)
        except (ValueError, RecursionError) as error:
            file.reject(str(error) if isinstance(error, ValueError) else _TOO_DEEP, file.line)


def json_rows(file: TextFile, *, is_array: bool) -> Iterator[Any]:
    """Return the content of each line, or each element of an array, with numbers as texts.

    `line` of the file is then the number of the line, or that of the element, from 1.
    """
    return numbered(file, _array_elements(file)) if is_array else _lines(file)


def numbered(file: TextFile, rows: Iterable[Any]) -> Iterator[Any]:
    """Yield rows. `line` of the file is the number of each, from 1."""
    for file.line, row in enumerate(rows, 1):
        if file.line % ROWS_AT_ONCE == 0:
            file.options.limits.check_time(file.path)
        yield row


def _lines(file: TextFile) -> Iterator[Any]:
    """Yield what each line holds."""
    for text in file.lines():
        if not text.isspace():
            try:
                yield DECODER.decode(text.rstrip())
            except (ValueError, RecursionError) as error:
                file.reject(_reason(error), file.line)


def _reason(error: Exception) -> str:
    """Return why a text is no JSON."""
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} at column {error.colno}."
    return _TOO_DEEP if isinstance(error, RecursionError) else f"not JSON: {error!s:.100}"


def _array_elements(file: TextFile) -> list[Any]:
    """Return the elements of a JSON array, with numbers as texts.

    Raises:
        GraphLoadError: If the file is no JSON array, or exceeds a limit.
    """
    elements = read_json(file, DECODER)
    if not isinstance(elements, list):
        file.fail(f"wanted a JSON array, but found {short(elements)}.")
    return elements


def read_json(file: TextFile, decoder: json.JSONDecoder) -> Any:
    """Return the content of a file of JSON as a whole.

    Raises:
        GraphLoadError: If it is no JSON, or exceeds a limit.
    """
    content = read_document(file.path, file.options.limits)
    try:
        text = content.decode(file.options.codec)
    except UnicodeDecodeError as error:
        file.fail(f"byte {error.start} is not {error.encoding}.", None, **encoding_hints(error.object))
    del content  # which takes as much memory as the text
    if "\0" in text:
        file.fail("NUL byte: this is no text, or its encoding is another (utf-16?).")
    try:
        return decoder.decode(text)
    except (ValueError, RecursionError) as error:
        file.fail(f"{_reason(error)} Correct it there, or see if the file was cut off.", getattr(error, "lineno", None))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON.")


class JsonNumber(str):
    """A number of JSON as it is written."""

    __slots__ = ()


DECODER = json.JSONDecoder(parse_float=JsonNumber, parse_int=JsonNumber, parse_constant=_refuse)
