"""The questions of a run in groups: by hops, kind, number of question entities, and number of gold answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.evaluation.records import Record

#: What questions are grouped by: see `grouped`.
GroupBy = Literal["hops", "kind", "seed_entities", "answers"]

#: The name of the group of questions of which it is not known.
UNKNOWN = "unknown"

# The least number of each group, and its name.
_ENTITIES = {0: "0", 1: "1", 2: "2+"}
_ANSWERS = {0: "0", 1: "1", 2: "2-4", 5: "5-9", 10: "10+"}


def grouped(records: Sequence[Record], by: GroupBy) -> dict[str, list[Record]]:
    """Return the records of each group, the groups in their order and what is "unknown" last.

    - "hops": how many facts a question joins.
    - "kind": its type, in the words of its set.
    - "seed_entities": how many entities it names: "0", "1" or "2+", as in GNN-RAG's table 3 (arXiv:2405.20139) and in
      SubgraphRAG's table 8 (arXiv:2410.20724).
    - "answers": how many gold answers it has: "0", "1", "2-4", "5-9" or "10+", as in GNN-RAG's table 10.

    Raises:
        InvalidArgumentError: If `by` is none of these.
    """
    if by not in get_args(GroupBy):
        raise InvalidArgumentError(f"grouped: wanted one of {', '.join(get_args(GroupBy))}, but got {by!r}.")
    groups: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: _order(record, by)):
        value = _value(record, by)
        groups.setdefault(UNKNOWN if value is None else _name(value, by), []).append(record)
    return groups


def _order(record: Record, by: GroupBy) -> tuple[bool, int, str]:
    value = _value(record, by)
    if isinstance(value, str):
        return False, 0, value
    return value is None, value or 0, ""


def _value(record: Record, by: GroupBy) -> int | str | None:
    if by == "kind" or by == "hops":
        return record[by]
    if by == "answers":
        return len(set(record["gold"]))
    return None if record["seed_entities"] is None else len(set(record["seed_entities"]))


def _name(value: int | str, by: GroupBy) -> str:
    if isinstance(value, str) or by == "hops":
        return str(value)
    names = _ENTITIES if by == "seed_entities" else _ANSWERS
    return names[max(least for least in names if least <= value)]
