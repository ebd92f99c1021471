"""Reads the conditions and the operation of a pattern from the reply of a language model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kg_retrievers.core.replies import ReplyNode
from kg_retrievers.errors import PatternError
from kg_retrievers.graph.operations import Condition, Operation, short
from kg_retrievers.graph.values import MAX_DIGITS

#: From a text to the name of the unknown that it means.
NameOf = Callable[[str], str]

#: What a reply may hold under a key.
Said = ReplyNode | str | None


def read_conditions(said: Said, name_of: NameOf) -> list[Condition]:
    """Return the conditions that a reply states, each a list of unknown, operator and value, or an object of these.

    Raises:
        PatternError: If one is none.
    """
    if said is None or (isinstance(said, ReplyNode) and not said.values):
        return []
    rows = said.data() if isinstance(said, ReplyNode) else said
    if isinstance(rows, dict) or (isinstance(rows, list) and isinstance(rows[0], str)):
        rows = [rows]  # one condition without the list around it
    if not isinstance(rows, list):
        raise PatternError(f"'conditions' must be a list, but it is {short(rows)}.")
    return [_condition(row, name_of) for row in rows]


def _condition(row: Any, name_of: NameOf) -> Condition:
    if isinstance(row, list) and len(row) == 3:
        row = dict(zip(("unknown", "operator", "value"), row, strict=True))
    if not isinstance(row, dict) or not isinstance(row.get("unknown"), str):
        raise PatternError(f'a condition must be ["UNKNOWN kind 1", "operator", "value"], but it is {short(row)}.')
    return Condition.from_dict({**row, "unknown": name_of(row["unknown"])})


def read_operation(said: Said, name_of: NameOf) -> Operation | None:
    """Return the operation that a reply states: an object, or its kind alone; None for null.

    Raises:
        PatternError: If it is none.
    """
    if said is None or said in ("", "null", "None"):
        return None
    data = said.data() if isinstance(said, ReplyNode) else said
    if isinstance(data, dict):
        data = {key: value for key, value in data.items() if value is not None}
        data |= {key: int(data[key]) for key in ("limit", "number") if _is_whole_number(data.get(key))}
        if str(data.get("descending")).casefold() in ("true", "false"):
            data["descending"] = str(data["descending"]).casefold() == "true"
        by = data.get("by", [])
        by = [by] if isinstance(by, str) else by
        if isinstance(by, list) and all(isinstance(one, str) for one in by):
            data["by"] = [name_of(one) for one in by]
    return Operation.from_dict(data)


def _is_whole_number(said: object) -> bool:
    """Return whether a text is a whole number; one of more digits than a number has is none."""
    return isinstance(said, str) and said.isdecimal() and len(said) <= MAX_DIGITS
