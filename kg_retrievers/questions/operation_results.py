"""What an operation of a pattern gives, from all bindings of its unknowns: one rule for every backend.

How an operation is carried out, in this order:

1. `carried_out` refuses names and relations that the graph lacks (`known_texts`), and turns triples that can only be
   meant the other way round (`directions`).
2. `allowed_entities` turns conditions and absent triples into the entities that unknowns may be.
3. The matcher (`methods/simgrag/operations.py`) or a database (`methods/sg_rag/operations.py`) finds all bindings; of
   "compare" those of each side, by the part of the pattern around it (`operation_parts`).
4. This module computes the value, the answers, and the targets on which they rest.
5. The matcher or the database shows the facts of the first `SHOWN` of these targets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.operations import Operation
from kg_retrievers.graph.value_columns import ranked_values
from kg_retrievers.graph.values import Comparison, Value, holds

#: Of how many targets the facts are shown.
SHOWN = 20

#: How many of those that rest behind the greatest are kept as evidence: the runner-up.
RUNNERS_UP = 1


class OperationResult(NamedTuple):
    """What an operation gives.

    Attributes:
        value: A number, a truth value, or the values by which the answers were chosen; None where nothing can be said.
        answers: The ids of the entities that answer, the best first.
        support: The ids of the targets whose facts the result rests on, the answers first.
        without: How many targets were left out because they have no value to compare.
    """

    value: Any
    answers: list[int]
    support: list[int]
    without: int = 0


def operation_result(
    operation: Operation, bindings: Iterable[tuple[int, ...]], graph: KnowledgeGraph
) -> OperationResult:
    """Return what an operation gives, but "exists" and "compare".

    Args:
        operation: "list", "count", "max", "min" or "order".
        bindings: The ids of the targets, each with that of what it is compared by, or of what is counted for it, where
            the operation has a `by`.
        graph: Gives the labels and their values.
    """
    if operation.by:
        return _chosen(operation, bindings, graph)
    targets = sorted({row[0] for row in bindings})
    if operation.kind == "count":
        return OperationResult(len(targets), [], targets)
    return OperationResult(None, targets, targets)


def shown_details(result: OperationResult, *, truncated: bool) -> dict[str, Any]:
    """Return of how many targets the facts are shown, and what else is to be said of a result."""
    details: dict[str, Any] = {"shown": min(SHOWN, len(result.support)), "of": len(result.support)}
    details |= {"without_value": result.without} if result.without else {}
    return details | ({"at_least": True} if truncated else {})


def _chosen(operation: Operation, bindings: Iterable[tuple[int, ...]], graph: KnowledgeGraph) -> OperationResult:
    """Return the targets that an operation with one `by` chooses."""
    of_target: dict[int, set[int]] = defaultdict(set)
    for target, by in bindings:
        of_target[target].add(by)
    if operation.kind == "list":
        assert operation.comparison is not None
        wanted = Value("", number=operation.number)
        counts = {target: len(of_one) for target, of_one in of_target.items()}
        kept = sorted(
            target for target, n in counts.items() if holds(Value("", number=n), operation.comparison, wanted)
        )
        return OperationResult([counts[target] for target in kept], kept, kept)
    descending = operation.descending if operation.kind == "order" else operation.kind == "max"
    if operation.of == "count":
        keys: Mapping[int, Any] = {target: len(of_one) for target, of_one in of_target.items()}
        shown = dict(keys)
    else:
        keys, shown = _best_values(of_target, descending, graph)
    ranked = sorted(sorted(keys), key=keys.__getitem__, reverse=descending)
    without = len(of_target) - len(ranked)
    if operation.kind == "order":
        first = ranked[: operation.limit]
        return OperationResult([shown[target] for target in first], first, first, without)
    best = [target for target in ranked if keys[target] == keys[ranked[0]]]
    value = shown[best[0]] if best else None
    return OperationResult(value, best, [*best, *ranked[len(best) :][:RUNNERS_UP]], without)


def _best_values(
    of_target: Mapping[int, set[int]], descending: bool, graph: KnowledgeGraph
) -> tuple[dict[int, Any], dict[int, Any]]:
    """Return the key of the greatest or least value of each target that has one, and this value in plain."""
    entities = np.array(sorted(set().union(*of_target.values())), np.int64)
    ranked, rows = ranked_values(graph.lazy_values, entities)
    keys = {entity: tuple(key) for entity, key in zip(entities[ranked].tolist(), rows[ranked].tolist(), strict=True)}
    choose = max if descending else min
    best: dict[int, int] = {}
    for target, of_one in of_target.items():
        if known := sorted(entity for entity in of_one if entity in keys):
            best[target] = choose(known, key=lambda entity: keys[entity])
    shown = {target: plain_value(graph, entity) for target, entity in best.items()}
    return {target: keys[entity] for target, entity in best.items()}, shown


def plain_value(graph: KnowledgeGraph, entity: int) -> int | float | bool | str:
    """Return what the label of an entity says as a value, as JSON has it; else the label."""
    value = graph.entity_value(entity)
    return graph.names[int(graph.labels[entity])] if value is None else value.plain


def compared(
    operation: Operation, sides: Sequence[Iterable[int]], graph: KnowledgeGraph
) -> tuple[bool | None, list[int]]:
    """Return whether a comparison of two unknowns holds, and what it rests on; None where that is not certain.

    By "=" and "!=", sides without any values are compared as entities: they are equal if they are the same ones, and
    unequal if they share none.

    Args:
        operation: "compare".
        sides: What each of the two unknowns is.
        graph: Gives the labels.
    """
    one, other = (sorted(set(side)) for side in sides)
    comparison: Comparison = operation.comparison or "="
    if operation.of == "count":
        return holds(Value("", number=len(one)), comparison, Value("", number=len(other))), [*one, *other]
    values = [[(entity, graph.entity_value(entity)) for entity in side] for side in (one, other)]
    known = [[(entity, value) for entity, value in side if value is not None] for side in values]
    if one and other and comparison in ("=", "!=") and not known[0] and not known[1]:
        certain = one == other or set(one).isdisjoint(other)
        return ((one == other) == (comparison == "="), [*one, *other]) if certain else (None, [])
    if not known[0] or not known[1]:
        return None, []
    pairs = [(left, right) for left in known[0] for right in known[1]]
    truth = all(holds(left[1], comparison, right[1]) for left, right in pairs)
    opposite = _OPPOSITE[comparison]
    if not truth and not all(holds(left[1], opposite, right[1]) for left, right in pairs):
        return None, []  # dates that are not whole, units that differ, several values
    return truth, [entity for side in known for entity, _ in side]


_OPPOSITE: dict[Comparison, Comparison] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
