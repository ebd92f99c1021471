"""ConnectedGraph: fetches parts of a graph that stays in its database, and keeps what it read lately."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import GraphBuilder, KnowledgeGraph, Triple
from kg_retrievers.graph.cache import Immutable
from kg_retrievers.graph.parts import Facts, PartReader, StoredEntity
from kg_retrievers.index.reach import Reach
from kg_retrievers.index.recent import Recent

_LOGGER = logging.getLogger(__name__)

#: The most facts of a part. PathQuestion's questions need some hundred, MetaQA's within 3 hops up to 120,000.
MAX_FACTS = 20_000

#: How many facts, and how many descriptions of entities, are kept of earlier parts.
KEPT = 500_000

#: The most hops of a part that goes any number of hops; where entities are left then, it is truncated.
MOST_HOPS = 100

#: How many seconds what was read is taken for what the database holds.
FRESH_SECONDS = 300.0

#: How many seconds one query may take.
TIMEOUT = 30.0


class GraphPart(NamedTuple):
    """A part of a graph.

    Attributes:
        graph: Its facts; all relations of the whole graph have the same ids in every part.
        truncated: Whether facts within reach are missing: there are too many, or their relations are new.
        narrowed: Whether facts of relations are missing that the work did not name.
    """

    graph: KnowledgeGraph
    truncated: bool
    narrowed: bool = False


class _Around(NamedTuple):
    """Facts around entities, the entities that were met, and whether there are more facts, or facts left out.

    All facts were asked for of the first `asked` of the entities.
    """

    facts: list[Triple]
    met: list[str]
    asked: int
    truncated: bool
    left_out: bool


class ConnectedGraph(Immutable):
    """Fetches the facts around entities, hop by hop, and makes a small graph of them. Safe to share between threads.

    The facts of an entity, where all of them were read, its description and names are kept for `fresh_seconds`; so a
    change of the database is seen after that time at the latest, or after `forget`. Facts of relations that are
    new since then are left out, since the ids of relations stay as they are; a warning names these relations once.

    Args:
        reader: Reads the database.
        max_facts: The most facts of a part; where there are more, the part is truncated.
        fresh_seconds: How long what was read is kept, 0 or more.
        timeout: The most seconds of one query, above 0.

    Raises:
        InvalidArgumentError: If a number is out of range.
    """

    def __init__(
        self,
        reader: PartReader,
        *,
        max_facts: int = MAX_FACTS,
        fresh_seconds: float = FRESH_SECONDS,
        timeout: float = TIMEOUT,
    ) -> None:
        """Read which relations there are."""
        if not _is_number(max_facts, int) or max_facts < 1:
            raise InvalidArgumentError(
                f"GraphIndex.connect: max_facts must be an integer from 1, but got {max_facts!r}."
            )
        if not _is_number(fresh_seconds, int, float) or not fresh_seconds >= 0:
            raise InvalidArgumentError(
                f"GraphIndex.connect: fresh_seconds must be 0 or more, but got {fresh_seconds!r}."
            )
        if not _is_number(timeout, int, float) or not timeout > 0:
            raise InvalidArgumentError(f"GraphIndex.connect: timeout must be above 0 seconds, but got {timeout!r}.")
        self.reader = reader
        self.max_facts, self.timeout = max_facts, timeout
        self.relations = tuple(reader.relations(refresh=True, timeout=timeout))
        self._known = frozenset(self.relations)
        self._told: set[str] = set()
        self.triple_count = reader.count_facts(timeout=timeout)
        self._rows: Recent[list[Triple]] = Recent(KEPT, fresh_seconds, len)
        self._described: Recent[StoredEntity | None] = Recent(KEPT, fresh_seconds, _one)
        #: Parts of graphs, with what is derived from them.
        self.parts: Recent[Any] = Recent(KEPT, fresh_seconds, len)
        self._named: Recent[list[str]] = Recent(KEPT, fresh_seconds, len)

    def forget(self) -> None:
        """Forget what was read, so that the next part is as the database is now."""
        self._rows.clear()
        self._described.clear()
        self._named.clear()
        self.parts.clear()

    def part(self, keys: Iterable[str], reach: Reach) -> GraphPart:
        """Return the facts within reach of some entities.

        Cost: a query for each hop, with the descriptions of the entities that it begins from; one for the outermost
        entities, with the facts between these if they are wanted; none for what is kept.

        Args:
            keys: The entities; those that the database lacks are left out.
            reach: How far it goes from them.
        """
        starts = sorted(set(keys))
        found = self._around(starts, reach, None)
        narrowed = found.truncated and bool(reach.relations)
        if narrowed:
            found = self._around(starts, reach, reach.relations)
        further = self._of_known(reach.facts)
        facts = dict.fromkeys((*found.facts, *further))
        ends = {end for triple in further for end in (triple.head, triple.tail)}
        called = [*found.met, *sorted(ends)] if reach.names_ends else found.met[: found.asked]
        graph = self.graph_of(facts, [*called, *reach.also])
        left_out = found.left_out or len(further) < len(reach.facts)
        if reach.relations:
            return GraphPart(graph, found.truncated, narrowed or left_out)
        return GraphPart(graph, found.truncated or left_out)

    def _around(self, starts: Sequence[str], reach: Reach, only: Sequence[str] | None) -> _Around:
        """Return the facts within reach of entities, of some relations if given, and the entities that were met."""
        met = dict.fromkeys(starts)
        facts: dict[Triple, None] = {}
        frontier, truncated, left_out, asked = list(starts), False, False, len(starts)
        most = self.max_facts if reach.max_facts is None else reach.max_facts
        for hop in range(MOST_HOPS if reach.hops is None else reach.hops):
            if not frontier or truncated:
                break
            asked = len(met)
            step = reach.steps[hop] if hop < len(reach.steps) else only
            read, truncated = self._facts_of(frontier, most - len(facts), step)
            found = self._of_known(read)
            left_out = left_out or len(found) < len(read)
            facts |= dict.fromkeys(found)
            ends = {end for triple in found for end in (triple.head, triple.tail)}
            frontier = sorted(ends.difference(met))
            met |= dict.fromkeys(frontier)
        truncated = truncated or (reach.hops is None and bool(frontier))
        if reach.between and frontier and not truncated and len(facts) < most:
            read_between = self.reader.facts_between(frontier, limit=most - len(facts), timeout=self.timeout)
            rest = self._keep_descriptions(read_between)
            between = self._of_known(rest.triples)
            left_out = left_out or len(between) < len(rest.triples)
            facts |= dict.fromkeys(between)
            truncated = rest.truncated
        return _Around(list(facts), list(met), asked, truncated, left_out)

    def _of_known(self, facts: Sequence[Triple]) -> list[Triple]:
        """Return the facts whose relation was there when the index was connected; warn once of each other relation."""
        known = [triple for triple in facts if triple.relation in self._known]
        if len(known) < len(facts):
            new = sorted({triple.relation for triple in facts}.difference(self._known, self._told))
            if new:
                self._told.update(new)
                _LOGGER.warning(
                    "GraphIndex: the database has relations that it did not have when the index was connected: %s. "
                    "Their facts are left out. Connect again to use them: GraphIndex.connect(...).",
                    new[:5],
                )
        return known

    def graph_of(self, facts: Iterable[Triple], keys: Sequence[str]) -> KnowledgeGraph:
        """Return a graph of facts of known relations and of the entities that the database has; ids are by key."""
        described = self._describe(list(dict.fromkeys(keys)))
        builder = GraphBuilder()
        for name in self.relations:
            builder.relation(name)
        facts = list(facts)
        named = {end for triple in facts for end in (triple.head, triple.tail)}
        for key in sorted(named.union(described)):
            builder.entity(key)
            entity = described.get(key)
            if entity is not None:
                label = None if entity.label == key else entity.label
                builder.describe(key, label, entity.aliases, entity.types)
        for triple in facts:
            builder.add(*triple)
        columns, _ = builder.columns()
        return KnowledgeGraph(columns)

    def entities_named(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Return the keys of the entities whose key, label or alias is exactly one of some names."""
        kept = self._named.get_all(names)
        if wanted := [name for name in names if name not in kept]:
            found = self.reader.entities_named(wanted, timeout=self.timeout)
            self._named.keep(found)
            kept |= found
        return {name: kept[name] for name in names}

    def _facts_of(self, keys: Sequence[str], limit: int, only: Sequence[str] | None) -> tuple[list[Triple], bool]:
        """Return the facts of entities, `limit` at most, and whether there are more; of some relations, if given."""
        kept = self._rows.get_all(keys)
        rows = [triple for row in kept.values() for triple in row if only is None or triple.relation in only]
        left = limit - len(set(rows))
        wanted = [key for key in keys if key not in kept]
        if left < 0 or (left == 0 and wanted):
            return rows[: max(limit, 0)], True
        if not wanted:
            return rows, False
        found = self._keep_descriptions(self.reader.facts_of(wanted, relations=only, limit=left, timeout=self.timeout))
        if only is None and not found.truncated:
            self._rows.keep(_by_entity(found.triples, wanted))
        return [*rows, *found.triples], found.truncated

    def _describe(self, keys: Sequence[str]) -> Mapping[str, StoredEntity]:
        """Return the descriptions of those of some entities that the database has."""
        kept = self._described.get_all(keys)
        if wanted := [key for key in keys if key not in kept]:
            read = {entity.key: entity for entity in self.reader.describe(wanted, timeout=self.timeout)}
            found = {key: read.get(key) for key in wanted}
            self._described.keep(found)
            kept |= found
        return {key: entity for key, entity in kept.items() if entity is not None}

    def _keep_descriptions(self, found: Facts) -> Facts:
        """Keep the descriptions that came with facts."""
        self._described.keep({entity.key: entity for entity in found.entities})
        return found


def _is_number(value: object, *kinds: type) -> bool:
    """Whether a value is a number of some kinds."""
    return isinstance(value, kinds) and not isinstance(value, bool)


def _by_entity(triples: Iterable[Triple], keys: Sequence[str]) -> dict[str, list[Triple]]:
    """Return the facts of each of some entities."""
    rows: dict[str, list[Triple]] = {key: [] for key in keys}
    for triple in triples:
        for end in {triple.head, triple.tail}:
            if end in rows:
                rows[end].append(triple)
    return rows


def _one(entity: StoredEntity | None) -> int:
    """Return how much a description counts."""
    return 1
