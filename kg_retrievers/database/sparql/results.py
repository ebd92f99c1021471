"""From the results of an endpoint to rows by entity key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kg_retrievers.database.sparql.facts import SparqlParts
from kg_retrievers.database.sparql.keys import Keys
from kg_retrievers.database.sparql.names import Solutions
from kg_retrievers.database.sparql.safety import CheckedSparql
from kg_retrievers.database.sparql.terms import STRING, Blank, Iri, Term, Text, read_term
from kg_retrievers.database.values import Relationship, Rows
from kg_retrievers.errors import DatabaseUnavailableError

_FACT = re.compile(r"([hrt])(\d+)")


def read_solutions(found: Mapping[str, Any], wanted: Sequence[str], is_cut: bool, url: str) -> Solutions:
    """Read a result in JSON.

    Args:
        found: The result.
        wanted: The names of the columns of SELECT; none for ASK.
        is_cut: Whether the endpoint says that it cut it off.
        url: Its address.

    Raises:
        DatabaseUnavailableError: If it has another form, or other columns.
    """
    try:
        if not wanted:
            if not isinstance(found["boolean"], bool):
                raise TypeError("a truth value that is none")
            return Solutions(["ask"], [[Text(str(found["boolean"]).lower(), STRING)]], False)
        if missing := set(wanted).difference(found["head"]["vars"]):
            raise KeyError(f"no column {min(missing)}")
        rows = [[None if (term := row.get(name)) is None else read_term(term) for name in wanted]
                for row in found["results"]["bindings"]]  # fmt: skip
    except (AttributeError, KeyError, TypeError, ValueError) as cause:
        raise DatabaseUnavailableError(
            f"SparqlExecutor: {url} does not answer as a SPARQL endpoint: its result has another form "
            f"({type(cause).__name__}: {cause!s:.100}). Is this the address of its queries?"
        ) from cause
    return Solutions(wanted, rows, is_cut)


def fact_columns(columns: Sequence[str]) -> list[int]:
    """Return the numbers of the facts of which a result has all three terms, sorted.

    Example:
        >>> fact_columns(["target", "h0", "r0", "t0", "h1"])
        [0]
    """
    found: dict[int, set[str]] = {}
    for match in filter(None, map(_FACT.fullmatch, columns)):
        found.setdefault(int(match[2]), set()).add(match[1])
    return sorted(number for number, parts in found.items() if len(parts) == 3)


def rows_of(found: Solutions, checked: CheckedSparql, limit: int, keys: Keys, reader: SparqlParts) -> Rows:
    """Turn terms into keys, and three columns of a fact into one.

    Rows are sorted by their values, unless the query has an order of its own. Those that are equal by key, as where
    literals differ in their language alone, are one.
    """
    if checked.form == "ASK":
        return Rows(("ask",), tuple((term is not None and _text(term) == "true",) for (term,) in found.rows))
    stored = found.rows[:limit]
    facts = fact_columns(checked.columns)
    of_facts = {f"{letter}{number}" for number in facts for letter in "hrt"}
    plain = [name for name in checked.columns if name not in of_facts]
    at = {name: position for position, name in enumerate(checked.columns)}
    key_of = keys.of_terms(term for row in stored for term in row)
    triples = reader.by_rows([[row[at[f"{letter}{n}"]] for letter in "hrt"] for row in stored for n in facts])
    rows: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for number, row in enumerate(stored):
        values: list[Any] = [_key(row[at[name]], key_of) for name in plain]
        of_row = triples[number * len(facts) : (number + 1) * len(facts)]
        rows.setdefault(
            (*values, *of_row), (*values, *(None if fact is None else Relationship(fact, {}) for fact in of_row))
        )
    order = list(rows) if checked.order_by else sorted(rows, key=_sort_key)
    truncated = len(found.rows) > limit or found.is_cut
    return Rows((*plain, *(f"r{number}" for number in facts)), tuple(rows[one] for one in order), truncated)


def _key(term: Term | None, keys: Mapping[Term, str]) -> str | None:
    if isinstance(term, Blank):
        return f"_:{term.value}"
    return None if term is None else keys[term]


def _sort_key(row: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    return [(value is not None, () if value is None else tuple(value) if isinstance(value, tuple) else (value,))
            for value in row]  # fmt: skip


def _text(term: Term) -> str:
    return term.value if isinstance(term, Iri | Text) else ""
