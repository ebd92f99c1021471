"""Check that a Cypher query only reads allowed things before it runs.

A driver's read-only mode is not enough: LadybugDB's still reads files (`LOAD FROM`), writes files (`COPY ... TO`) and
changes settings (`CALL timeout=0`), Neo4j's calls procedures that open URLs. Lists of forbidden words refuse data that
contain them and miss words that they do not know. So a query must fit into a grammar of reading. Everything else is
refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, NamedTuple

from kg_retrievers.database.bounds import check_bounds
from kg_retrievers.database.grammar import SyntaxNode, read
from kg_retrievers.database.tokens import Token, refusal, tokenize, without_comments
from kg_retrievers.errors import InvalidArgumentError, first_of, named_arguments

#: How many characters a query may have.
MAX_QUERY = 100_000

#: Functions that only read, in small letters. The list leaves out functions that open files or addresses, change
#: sequences or settings, or wait. It also leaves out functions that make a large value of a small one, such as `repeat`
#: and `reduce`, except `replace` and `range`, which `kg_retrievers.database.bounds` bounds.
READ_FUNCTIONS = frozenset((files(__package__) / "read_functions.txt").read_text("utf-8").split())


@dataclass(frozen=True)
class CheckedQuery:
    """A query that only reads.

    Args:
        text: The text to send to the engine, and nothing else. It is the query without comments and without `;` at its
            end.
        parameters: The names of the parameters it uses, in their order.
        columns: The names of its columns, or None for `*`. A name is None if it depends on the engine.
        limit: Its own LIMIT, the name of a parameter if its value is not known, or None if it has none, as a UNION.
        sort_by: The expressions by which ORDER BY can name each column. Empty if it cannot name all of them.
        sorted_by: The expressions that its rows are sorted by already.
        split: Its text up to the place of further columns to sort by, and the SKIP behind that. None for a UNION.
    """

    text: str
    parameters: tuple[str, ...]
    columns: tuple[str | None, ...] | None
    limit: int | str | None = None
    sort_by: tuple[str, ...] = ()
    sorted_by: tuple[str, ...] = ()
    split: tuple[str, str] | None = None


@named_arguments
def check_read_only(
    query: str,
    *,
    labels: Collection[str] | None = None,
    relations: Collection[str] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> CheckedQuery:
    """Check that a query only reads, without running it.

    The check takes time linear in the length of the query.

    Allowed are MATCH, OPTIONAL MATCH, WHERE, WITH, UNWIND, RETURN, DISTINCT, ORDER BY, SKIP, LIMIT and UNION, with all
    patterns and expressions inside them, and the subqueries EXISTS, COUNT and COLLECT { ... }, which are read by the
    same rules. Everything else is refused, such as CALL, EXPLAIN and a second query after `;`. Words such as `create`
    and `set` are free as properties, keys, labels and aliases, and as anything in back-ticks or quotes.

    A query that merely takes long, such as `-[*]->`, is not refused, since timeouts serve for that. A query that an
    engine does not survive, or plans for seconds, is refused: see `kg_retrievers.database.bounds`. Also bound the
    memory of a database on its own machine.

    Args:
        query: One query in Cypher, of at most `MAX_QUERY` characters.
        labels: The node labels that it may name. None allows any. Upper and lower case count, here and below.
        relations: The relationship types that it may name. None allows any.
        parameters: The parameters that it is run with. Others are refused. None allows any.

    Returns:
        The query in the form to send, and the known facts on its result.

    Raises:
        CypherSafetyError: If the query may do more than read or names things that it may not. The message names the
            fault, its place and the text to write instead, so that a model can correct it.

    Example:
        >>> checked = check_read_only("MATCH (m:Movie {title: $title})<-[:DIRECTED]-(p) RETURN p.name AS name LIMIT 5;")
        >>> checked.parameters, checked.columns, checked.limit
        (('title',), ('name',), 5)
        >>> check_read_only("MATCH (n) DETACH DELETE n")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        kg_retrievers.errors.CypherSafetyError: check_read_only: got 'DETACH' at line 1, column 11, which ...
    """
    if len(query) > MAX_QUERY:
        reason = f", the first of {len(query)} characters; at most {MAX_QUERY} are read. Pass values as parameters"
        raise refusal(query, Token("sign", query[:1], 0), reason)
    tokens, root = read(query)
    nodes = list(root.walk())
    variables = {tokens[node.start].name for node in nodes if node.rule == "variable"}
    may_be = None if labels is None or relations is None else {*labels, *relations}
    rules: dict[str, tuple[Collection[str] | None, str]] = {  # what is allowed, and what is wrong
        "labels": (labels, "a label that the graph does not have"),
        "types": (relations, "a relationship type that the graph does not have"),
        "is_a": (may_be, "a label or relationship type that the graph does not have"),
        "function": (READ_FUNCTIONS, "a function that is not known to only read and to stay small"),
        "parameter": (parameters, "a parameter that is not given"),
    }
    used = list(_used(tokens, nodes))
    for rule, name, token in used:
        allowed, wrong = rules[rule]
        if allowed is None or (name.lower() if rule == "function" else name) in allowed:
            continue
        if rule == "is_a" and name in variables:  # [x IN y WHERE x:Label | x]: no label stands behind |
            continue
        instead = "a plain one" if rule == "function" else f"one of: {first_of(sorted(allowed), 20)}"
        raise refusal(query, token, f", {wrong}" + (f". Use {instead}" if allowed else ""))
    check_bounds(query, tokens, root, parameters or {})
    parts = root.inside[0]
    text = without_comments(query)[: tokens[parts.end - 1].end]
    names = tuple(dict.fromkeys(name for rule, name, _ in used if rule == "parameter"))
    projection = parts.inside[0].inside[-1]
    columns = _columns(text, tokens, projection.inside[0], nodes)
    titles = None if columns is None else tuple(column.name for column in columns)
    if len(parts.inside) > 1:
        return CheckedQuery(text, names, titles)
    order, limit = projection.find("order"), projection.find("limit")
    sort_by = tuple(column.sort_by for column in columns or () if column.sort_by is not None)
    keys = order.inside if order else ()
    end = tokens[(order or projection.inside[0]).end - 1].end
    return CheckedQuery(
        text,
        names,
        titles,
        limit=None if limit is None else _value(tokens[limit.end - 1], parameters or {}),
        sort_by=sort_by if columns and len(sort_by) == len(columns) else (),
        sorted_by=tuple(text[tokens[key.start].position : tokens[key.end - 1].end] for key in keys),
        split=(text[:end], text[end : tokens[limit.start].position if limit else len(text)].rstrip()),
    )


class _Column(NamedTuple):
    """A column's name, and the expression by which ORDER BY can name it.

    Each is None if it is not plain.
    """

    name: str | None
    sort_by: str | None


def _columns(text: str, tokens: Sequence[Token], columns: SyntaxNode, nodes: list[SyntaxNode]) -> list[_Column] | None:
    """Return the columns of a RETURN, or None if it has *."""
    found = list[_Column]()
    seen = {tokens[node.start].name.lower() for node in nodes if node.rule == "variable" and node.start < columns.end}
    for node in columns.inside:
        item = tokens[node.start : node.inside[0].end]
        if item[-1].text == "*":
            return None
        if node.find("alias"):
            alias = tokens[node.end - 1]
            same = len(item) == 1 and item[0].name == alias.name
            found.append(_Column(alias.name, alias.text if same or alias.name.lower() not in seen else None))
            continue
        named = all(token.kind in ("name", "quoted") or token.text == "." for token in item)
        plain = all(token.kind != "sign" or token.text in "()[],.*" for token in item)
        name = ".".join(token.name for token in item[::2]) if named else None
        found.append(_Column(name, text[item[0].position : item[-1].end] if plain else None))
    return None if tokens[columns.start].text == "*" else found


def _used(tokens: Sequence[Token], nodes: list[SyntaxNode]) -> Iterator[tuple[str, str, Token]]:
    """Yield the names in the query, each with its rule and its token."""
    for node in nodes:
        if node.rule in ("labels", "types", "is_a"):
            for inner in node.walk():
                if inner.rule == "tag":
                    yield node.rule, tokens[inner.start].name, tokens[inner.start]
        elif node.rule in ("function", "parameter"):
            yield node.rule, ".".join(token.name for token in tokens[node.start : node.end : 2]), tokens[node.start]


def _value(count: Token, parameters: Mapping[str, Any]) -> int | str:
    """Return an integer, or the parameter's name if its value is not known."""
    if count.kind == "integer":
        return int(count.text)
    value = parameters.get(count.name)
    return value if isinstance(value, int) else count.name


def limited(checked: CheckedQuery, limit: int, *, sort_key: str = "{}") -> CheckedQuery:
    """Return a query that fetches one row more than `limit`.

    If possible, it is sorted by all its columns.

    The additional row shows whether there are more than `limit`. The order cuts off the same rows every time. The
    query's own ORDER BY comes first, its columns are not sorted by once more, and its own LIMIT stays if it is not
    above `limit`. Columns cannot be sorted by in `RETURN *`, if an expression without an alias is more than names and
    calls, and if an alias is the name of another variable. In these cases only the number of rows is bounded. A UNION
    cannot be bounded at its end, because LIMIT belongs to its last part there. It comes back as it is. So a caller that
    runs a query stops after `limit + 1` rows in any case.

    Args:
        checked: A query from `check_read_only`.
        limit: The number of rows that are wanted, from 1.
        sort_key: How the engine sorts by a column `{}`: "CAST({} AS STRING)" for LadybugDB, which refuses to sort by
            nodes, relationships, paths and lists as they are.

    Returns:
        The query to send.

    Raises:
        InvalidArgumentError: If the value of the query's own LIMIT is not known.

    Example:
        >>> limited(check_read_only("MATCH (n) RETURN n.name AS name, n.born"), 10).text
        'MATCH (n) RETURN n.name AS name, n.born ORDER BY name, n.born LIMIT 11'
    """
    if isinstance(checked.limit, str):
        raise InvalidArgumentError(
            f"limited: the query's own LIMIT is ${checked.limit}, whose value is not known. "
            "Give an integer for it in check_read_only(parameters=...), or write the integer into the query."
        )
    if checked.split is None:
        return checked
    keys = [sort_key.format(name) for name in checked.sort_by if name not in checked.sorted_by]
    keys = [key for key in keys if key not in checked.sorted_by]
    order = ((", " if checked.sorted_by else " ORDER BY ") + ", ".join(keys)) if keys else ""
    head, skip = checked.split
    text = f"{head}{order}{skip} LIMIT {limit + 1 if checked.limit is None else min(checked.limit, limit + 1)}"
    used = (token.name for token in tokenize(text) if token.kind == "parameter")
    return replace(checked, text=text, parameters=tuple(dict.fromkeys(used)))
