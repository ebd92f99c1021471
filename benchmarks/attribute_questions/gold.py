"""The gold answers of the questions about attributes of facts, from a graph file alone: no code of the package.

    python benchmarks/attribute_questions/gold.py benchmarks/attribute_questions/looked_at/NAME

prints each question with its gold answers, and fails if a gold is empty without `"empty": true` or the other way round.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_BEGINS = ("since", "start", "valid_from", "start time", "from", "begin")
_ENDS = ("until", "end", "valid_to", "end time", "to")
_POINTS = ("year", "date", "point in time")
_DATE = re.compile(r"\d{4}(-\d\d){0,2}")
_OPTIONS = {"get", "where", "count", "least", "most", "part"}

Statement = dict[str, Any]


class Statements:
    """The statements of a graph file: head, relation, tail and the attributes, in one dictionary each."""

    def __init__(self, folder: Path) -> None:
        """Read them."""
        rows = [json.loads(line) for line in (folder / "graph.jsonl").read_text("utf-8").splitlines()]
        self.rows: list[Statement] = [
            {"head": row["head"], "relation": row["relation"], "tail": row["tail"], **row.get("attributes", {})}
            for row in rows
        ]
        names = {name for row in self.rows for name in row}
        self.known = {name: {text for row in self.rows for text in texts(row.get(name))} for name in names}


def value_of(row: Statement, name: str) -> Any:
    """Return the value of an attribute or part of a statement, None if it has none."""
    return times(row)[name == "ended"] if name in ("began", "ended") else row.get(name)


def satisfies(row: Statement, name: str, wanted: Any) -> bool:
    """Tell whether a statement satisfies one condition."""
    if name in ("during", "after"):
        begin, end = times(row)
        if begin is None and end is None:
            return False
        if name == "after":
            return end is None or compares(end, ">", wanted)
        low, high = wanted if isinstance(wanted, list) else (wanted, wanted)
        return (begin is None or compares(begin, "<=", high)) and (end is None or compares(end, ">=", low))
    value = value_of(row, name)
    if wanted is None:
        return value is None
    if isinstance(wanted, Mapping):
        return value is not None and all(compares(value, *one) for one in wanted.items())
    return bool(texts(value) & texts(wanted))


def texts(value: Any) -> set[str]:
    """Return the texts of a value or of the values of a list."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    return {str(one) for one in values}


def times(row: Statement) -> tuple[str | None, str | None]:
    """Return when a statement began and ended; a point in time is both."""

    def first(names: Sequence[str]) -> str | None:
        values = (str(row[name]) for name in names if name in row)
        return next((value for value in values if _DATE.fullmatch(value)), None)

    point = first(_POINTS)
    return first(_BEGINS) or point, first(_ENDS) or point


def compares(value: Any, operator: str, wanted: Any) -> bool:
    """Compare numbers, or else dates as far as both of them go."""
    if isinstance(value, list):
        return any(compares(one, operator, wanted) for one in value)
    if isinstance(value, str) or isinstance(wanted, str):
        size = min(len(str(value)), len(str(wanted)))
        value, wanted = str(value)[:size], str(wanted)[:size]
    match operator:
        case "=":
            return bool(value == wanted)
        case "<":
            return bool(value < wanted)
        case "<=":
            return bool(value <= wanted)
        case ">":
            return bool(value > wanted)
        case ">=":
            return bool(value >= wanted)
    raise ValueError(f"no operator {operator!r}")


def gold(facts: Statements, expression: Mapping[str, Any]) -> set[str] | bool | int:
    """Return the gold answer of an expression."""
    if unknown := expression.keys() - _OPTIONS:
        raise ValueError(f"no option {unknown}")
    where = expression["where"]
    rows = [row for row in facts.rows if all(satisfies(row, *one) for one in where.items())]
    for option, choose in (("least", min), ("most", max)):
        if by := expression.get(option):
            rows = [row for row in rows if value_of(row, by) is not None]
            best = choose((value_of(row, by) for row in rows), default=None)
            rows = [row for row in rows if value_of(row, by) == best]
    if expression["get"] == "exists":
        return bool(rows)
    names = expression["get"] if isinstance(expression["get"], list) else [expression["get"]]
    found = {text for row in rows for name in names for text in texts(row.get(name))}
    if expression.get("part") == "year":
        found = {text[:4] for text in found}
    return len(found) if expression.get("count") else found


def golds_of(facts: Statements, row: Mapping[str, Any]) -> list[Any]:
    """Return the gold answers of a question, any of which is right."""
    return [gold(facts, one) for one in row.get("golds") or [row["gold"]]]


def _check(facts: Statements, row: Mapping[str, Any], golds: Sequence[Any]) -> None:
    """Raise an error if a gold is empty, or names something that the graph lacks, without being said to be empty."""
    if row.get("empty"):
        if any(golds):
            raise ValueError("the gold is not empty")
        return
    if any(one in (set(), 0) and one is not False for one in golds):
        raise ValueError("the gold is empty")
    for expression in row.get("golds") or [row["gold"]]:
        for name, wanted in expression["where"].items():
            if name in ("head", "relation", "tail") and not texts(wanted) <= facts.known[name]:
                raise ValueError(f"no {name} {wanted!r}")
            if name not in ("during", "after", "began", "ended", *facts.known):
                raise ValueError(f"no attribute {name!r}")


def main() -> int:
    """Print the gold answers of the questions of a folder."""
    folder, failed = Path(sys.argv[1]), 0
    facts = Statements(folder)
    for line in (folder / "questions.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        try:
            golds = golds_of(facts, row)
            _check(facts, row, golds)
        except (ValueError, TypeError, KeyError) as error:
            failed += 1
            golds = [f"FAILED: {error!r}"]
        print(row["question"], "|", *(sorted(one) if isinstance(one, set) else one for one in golds))
    print(f"{len(facts.rows)} facts, {failed} failed", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
