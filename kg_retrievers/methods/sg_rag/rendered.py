"""A pattern as queries of the state: one for facts, or one for the bindings of an operation and one for their facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kg_retrievers.database.executor import Executor
from kg_retrievers.database.graph_store import QueryExecutor
from kg_retrievers.database.rendering import render
from kg_retrievers.graph import Known, Pattern, Unknown
from kg_retrievers.graph.operations import Operation


@dataclass(frozen=True)
class Rendered:
    """A pattern whose names are decided, for one database.

    Attributes:
        pattern: The pattern.
        executor: The database.
        entities: The keys of which known nodes may take one; see `render`, as for what follows.
        allowed: The keys that unknowns may have.
        distinct: Which nodes must be different entities.
        direction: Whether the directions of triples count.
    """

    pattern: Pattern
    executor: Executor
    entities: Mapping[Known, Sequence[str]]
    allowed: Mapping[str, Sequence[str]]
    distinct: Literal["auto", "known", "nodes", "none"]
    direction: Literal["ignore", "respect"]

    def query(self, operation: Operation | None) -> dict[str, Any]:
        """Return the query for the facts of the pattern, or for the bindings that an operation takes.

        The query for bindings brings that for "facts", whose parameter "shown" takes the keys of some targets.
        """
        if operation is None:
            return self._render(self.allowed, ())
        stated = {"operation": operation.to_dict()}
        if operation.kind == "exists":
            return self._render(self.allowed, ()) | stated
        target = str(self.pattern.target)
        by = () if operation.kind == "compare" else operation.by
        position = next(
            at for at, node in enumerate(self.pattern.nodes) if isinstance(node, Unknown) and node.name == target
        )
        facts = self._render({**self.allowed, target: []}, ()) | {"shown": f"n{position}"}
        return self._render(self.allowed, (target, *by)) | stated | {"facts": facts}

    def _render(self, allowed: Mapping[str, Sequence[str]], bindings: Sequence[str]) -> dict[str, Any]:
        query, parameters = render(
            self.pattern,
            self.executor.schema(),
            self.executor.dialect,
            entities=self.entities,
            distinct=self.distinct,
            direction=self.direction,
            nodes=not bindings and isinstance(self.executor, QueryExecutor),
            allowed=allowed,
            bindings=bindings,
        )
        return {"query": query, "parameters": parameters}
