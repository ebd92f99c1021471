"""The attributes of nodes and edges: names, types, facts, or things that a graph of facts cannot hold."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from reprlib import repr as short
from typing import Any, get_args

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.attributes import SOURCE
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.text_files import Attributes

#: A list of more numbers with a fraction than this is a vector, and no fact.
VECTOR_SIZE = 16

#: How many attributes `Reading` names one by one.
SHOWN_ATTRIBUTES = 20

#: The attributes of a node that hold its name and its types.
NODE_ATTRIBUTES = ("label", "name", "aliases", "types", "type", "datatype")

#: The kinds of attributes used, and how `Reading` begins to name the attributes of each.
_USED = {
    "names and types": "node attributes ",
    "facts from node attributes": "",
    "attributes of facts": "edge attributes ",
}

#: The datatypes of single values.
_DATATYPES: dict[type, str | None] = {str: None, bool: "xsd:boolean", int: "xsd:integer", float: "xsd:double"}
_DATATYPES |= {Decimal: "xsd:decimal", datetime: "xsd:dateTime", date: "xsd:date"}

_DROPPED = '{} (attributes="facts" keeps it)'


class AttributeReader:
    """Adds nodes and edges with attributes to a builder, and counts the attributes left out.

    Of a node, "label" is its label, or "name" if there is none. Otherwise "name" is an alias, unless many nodes share
    few labels, which are then their types, and the names their labels. "aliases", "types" and "type" are a text or a
    list of texts, also one written in JSON. "datatype" is the datatype of a literal. Each other attribute is a relation
    to its value, or to each of its values, if `attributes` is "facts". A number, date or truth value brings its XML
    Schema datatype. None, NaN and empty texts say nothing. Nested values, and lists of more than 16 numbers with a
    fraction, are left out.

    An edge may have a "relation_id", which is how the source writes its relation, and "sources". Its other attributes
    become attributes of the fact, if `attributes` is "facts". Vectors are left out.

    Args:
        builder: What takes the facts.
        attributes: "facts" or "drop".
        who: Begins the messages of errors.

    Raises:
        InvalidArgumentError: If `attributes` is neither.
    """

    def __init__(self, builder: GraphBuilder, attributes: Attributes, who: str) -> None:
        """Begin with nothing counted."""
        if attributes not in get_args(Attributes):
            raise InvalidArgumentError(f'{who}: attributes is "facts" or "drop", but got {attributes!r}.')
        self.builder = builder
        self.who = who
        self._attributes = attributes
        self._counts = defaultdict[str, Counter[str]](Counter)  # of names, by what became of each
        self._nodes: set[str] = set()
        self._ends: set[str] = set()  # of edges, if they were no nodes yet
        self._values: set[str] = set()
        self._named_twice: dict[str, tuple[str, str, list[str], list[str]]] = {}  # the label and the name of each

    def add_node(self, key: str, attributes: Mapping[str, Any]) -> None:
        """Add the attributes of a node."""
        self._nodes.add(key)
        label, other = self._texts(key, "label", attributes), self._texts(key, "name", attributes)
        aliases = self._texts(key, "aliases", attributes)
        types = [*self._texts(key, "types", attributes), *self._texts(key, "type", attributes)]
        if label and other and other != label:
            self._named_twice[key] = (label[0], other[0], aliases, types)
        else:
            self.builder.describe(key, next(iter(label or other), None), aliases, types)
        datatype = attributes.get("datatype")
        if isinstance(datatype, str) and datatype:
            self.builder.set_datatype(key, datatype)
        for name, value in attributes.items():
            if name not in NODE_ATTRIBUTES:
                self._add_attribute(key, str(name), value)

    def add_edge(self, head: str, relation: str, tail: str, attributes: Mapping[str, Any], used: str = "") -> None:
        """Add a fact. `used` names the attribute that holds the relation."""
        self._ends |= {head, tail} - self._nodes
        id = attributes.get("relation_id")
        if isinstance(id, str) and id and id != relation:
            self.builder.name_relation(id, relation)
            relation = id
        sources = _texts_of(attributes.get("sources"), may_be_empty=True)  # an empty text is no source
        read = {used, "relation_id" if isinstance(id, str) else used, used if sources is None else "sources"}
        own = dict[str, Any]()
        for name, value in attributes.items():
            if name in read or _is_absent(value):
                continue
            if _is_vector([*_values(value)]):
                self._counts["edge attribute {} with vectors"][str(name)] += 1
            elif self._attributes == "drop":
                self._counts[f"edge attribute {_DROPPED}"][str(name)] += 1
            else:
                self._counts["attributes of facts"][str(name)] += 1
                own[str(name)] = list_or_value(value)
        for source in sources or ("",):
            self.builder.add(head, relation, tail, {SOURCE: source, **own} if source or own else None)

    @property
    def undefined(self) -> list[str]:
        """The ends of edges that are none of the nodes, sorted. Empty if no node was added."""
        return sorted(self._ends - self._nodes) if self._nodes else []

    def finish(self) -> None:
        """Report in `builder.reading` which attributes were used and which were left out."""
        reading = self.builder.reading
        labels, names = ({row[at] for row in self._named_twice.values()} for at in (0, 1))
        are_types = 2 * len(labels) <= len(self._named_twice) and len(labels) < len(names)
        for key, (label, name, aliases, types) in self._named_twice.items():
            if are_types:
                self.builder.describe(key, name, aliases, [label, *types])
            else:
                self.builder.describe(key, label, [name, *aliases], types)
        if are_types:
            reading.understood["types"] = f"node attribute 'label', which {len(self._named_twice):,} nodes share"
        for what, begin in _USED.items():
            if counts := self._counts.pop(what, None):
                reading.understood[what] = begin + listed_counts(counts)
        if shared := len(self._values & self._nodes):
            reading.understood["attribute values that are keys of nodes"] = f"{shared:,}, each taken as that node"
        for what, counts in self._counts.items():
            for name, count in _first(counts):
                reading.leave_out(what.format(name), count)

    def _add_attribute(self, key: str, name: str, value: Any) -> None:
        if _is_absent(value):
            return
        values = [*_values(value)]
        scalars = [_scalar(one) for one in values if not _is_absent(one)]
        if not name or _is_vector(values) or None in scalars:
            self._counts["node attribute {} with nested values or vectors"][name] += 1
        elif self._attributes == "drop":
            self._counts[f"node attribute {_DROPPED}"][name] += 1
        else:
            for text, datatype in filter(None, scalars):
                self._counts["facts from node attributes"][name] += 1
                self._values.add(text)
                self.builder.add(key, name, text)
                if datatype:
                    self.builder.set_datatype(text, datatype)

    def _texts(self, key: str, name: str, attributes: Mapping[str, Any]) -> list[str]:
        """Return the texts that an attribute holds: its value, or each of its list."""
        value = attributes.get(name)
        if _is_absent(value):
            return []
        is_one = name in ("label", "name")
        texts = _texts_of(value, lists=not is_one)
        if texts is None or (is_one and len(texts) > 1):
            wanted = "a text" if is_one else "a text or a list of texts, none of them empty"
            raise InvalidArgumentError(f"{self.who}: the {name} of {key!r} must be {wanted}, but got {short(value)}.")
        self._counts["names and types"][name] += 1
        return texts


def titled(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a node of a database with "title" as label if there is neither "label" nor "name".

    Example:
        >>> titled({"title": "Her"}), titled({"title": "Dr", "name": "Ann"})
        ({'label': 'Her'}, {'title': 'Dr', 'name': 'Ann'})
    """
    title = properties.get("title")
    if isinstance(title, str) and title and not (properties.get("label") or properties.get("name")):
        properties = {name: value for name, value in properties.items() if name != "title"} | {"label": title}
    return properties


def _texts_of(value: Any, *, lists: bool = True, may_be_empty: bool = False) -> list[str] | None:
    """Return the text of a value, or of each in a list, also of one that is written in JSON; None where one has none.

    Args:
        value: A value of an attribute.
        lists: Whether a text that begins like a list in JSON is one: formats such as GraphML hold no other lists.
        may_be_empty: Whether a text may be empty.
    """
    if _is_absent(value):
        return []
    scalars = [_scalar(one) for one in _values(list_or_value(value) if lists else value)]
    texts = [text for text, _ in filter(None, scalars) if text or may_be_empty]
    return texts if len(texts) == len(scalars) else None


def list_or_value(value: Any) -> Any:
    """Return the list that a text holds in JSON, as formats without lists write it, otherwise the value."""
    if isinstance(value, str) and value.startswith("["):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def _values(value: Any) -> Iterator[Any]:
    """Yield the value, or each of a list, set or array."""
    value = _plain(value)
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    if isinstance(value, list | tuple):
        yield from value
    else:
        yield value


def _scalar(value: Any) -> tuple[str, str | None] | None:
    """Return the text and datatype of a single value; None of any other."""
    datatype = next((_DATATYPES[kind] for kind in type(value).__mro__ if kind in _DATATYPES), "")
    text = value.isoformat() if isinstance(value, date) else str(value)
    return None if datatype == "" else (text.lower() if isinstance(value, bool) else text, datatype)


def _is_absent(value: Any) -> bool:
    """Whether a value says nothing: None, NaN, an empty text, an empty list."""
    value = _plain(value)
    if value is None or (isinstance(value, str | list | tuple | set | frozenset | dict) and not value):
        return True
    return isinstance(value, float | Decimal | datetime) and value != value  # NaN, and NaT of pandas


def _plain(value: Any) -> Any:
    """Return what numpy, torch and their like hold as plain values of Python."""
    return value.tolist() if hasattr(value, "tolist") else value


def _is_vector(values: list[Any]) -> bool:
    return len(values) > VECTOR_SIZE and all(isinstance(value, float) for value in values)


def _first(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return the names that occur most often, quoted, and all the rest as one."""
    common = counts.most_common(SHOWN_ATTRIBUTES)
    shown = [(repr(name), count) for name, count in common]
    rest = counts.total() - sum(count for _, count in common)
    return [*shown, (f"of {len(counts) - len(common):,} other names", rest)] if rest else shown


def listed_counts(counts: Counter[str]) -> str:
    """Return names with their counts, the most frequent first."""
    return ", ".join(f"{name} {count:,}" for name, count in _first(counts))
