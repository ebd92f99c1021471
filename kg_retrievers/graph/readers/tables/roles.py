"""Which columns of a table, or keys of an object, hold what: found by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

#: What a column may be called, best name first: a table with "subject" and "source" has its head in "subject".
HEAD = ("head", "subject", "source", "from", "start", "src", "node1", "s", "h")
RELATION = ("relation", "predicate", "edge", "relationship", "rel", "property", "relation_type", "p", "r")
TAIL = ("tail", "object", "target", "to", "end", "dst", "node2", "o", "t")

#: What the column may be called that says where a fact is from, where it is not the head.
SOURCE = ("source", "sources", "provenance", "graph")

ENTITY = ("entity", "id", "key", "node")
LABEL = ("label", "name")
ALIASES = ("aliases", "alias", "synonyms")
TYPES = ("types", "type", "category")

#: What nobody calls a relation of facts: a first row that has it in the place of the relation names the columns.
_ONLY_HEADER = ("relation", "predicate", "edge", "relationship", "rel")


class Roles(NamedTuple):
    """The names of the columns that hold head, relation, tail and, if there is one, the source."""

    head: str
    relation: str
    tail: str
    source: str | None = None


def find_column(names: Sequence[str], wanted: Sequence[str], taken: Sequence[str] = ()) -> str | None:
    """Return the column with the best of the wanted names, whatever their case; None where none or two have it.

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


def find_roles(
    names: Sequence[str],
    head: str | None = None,
    relation: str | None = None,
    tail: str | None = None,
    source: str | None = None,
) -> Roles | None:
    """Return which columns hold head, relation and tail, and the source; None where one of the three is not found.

    Args:
        names: The names of all columns.
        head: The name of the column with heads, where the user names it.
        relation: The same of the relations.
        tail: The same of the tails.
        source: The same of the sources.

    Example:
        >>> find_roles(["subject", "predicate", "object", "source"])
        Roles(head='subject', relation='predicate', tail='object', source='source')
    """
    named = [name for name in (head, relation, tail, source) if name is not None]
    head = head or find_column(names, HEAD, named)
    tail = tail or find_column(names, TAIL, named)
    relation = relation or find_column(names, RELATION, [*named, *filter(None, (head, tail))])
    if head is None or relation is None or tail is None:
        return None
    return Roles(head, relation, tail, source or find_column(names, SOURCE, [head, relation, tail]))


def entity_columns(names: Sequence[str]) -> dict[str, str]:
    """Return what each column of a table of entities is to `AttributeReader`; its own name where it is an attribute.

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
