"""Writes the Cypher that reads parts of a graph.

An entity is looked up label by label, `UNWIND $keys AS wanted MATCH (n:Label) WHERE n.key = wanted`, since databases
then use the index of the keys of that label, and not as `{key: wanted}`: ArcadeDB takes the key "$keys" for the
parameter of that name. Over Bolt, a UNION makes one query of all labels. In LadybugDB a query is no message, so each
label has a query of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from kg_retrievers.database.rendering import TYPE_OF, key_of
from kg_retrievers.database.schema import DatabaseSchema, Dialect, NodeLabel, backticked
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Triple
from kg_retrievers.graph.parts import EntityPage, Facts, StoredEntity

#: The most nodes that are described at once.
MOST_NODES = 10_000_000

#: Of how many relations one query reads samples.
RELATIONS_AT_ONCE = 50

#: The columns of a description in a row of a fact, and of a fact in a row of a description.
NO_ENTITY = "NULL AS place, NULL AS key, NULL AS labels, NULL AS c0, NULL AS c1, NULL AS c2"
NO_FACT = "NULL AS head, NULL AS relation, NULL AS tail"

#: Runs a query: its text, its parameters, the most rows.
Run = Callable[[str, dict[str, Any], int], Sequence[Sequence[Any]]]


class PartQueries:
    """Writes the queries of one call and reads their rows.

    Args:
        schema: What the database holds.
        dialect: Its Cypher.
        run: Runs a query: its text, its parameters, the most rows.
    """

    def __init__(self, schema: DatabaseSchema, dialect: Dialect, run: Run) -> None:
        """Keep them."""
        self._schema, self._dialect, self._run = schema, dialect, run
        self._labels = sorted(schema.labels, key=lambda label: label.name)
        self._is_ladybug = dialect == "ladybug"

    # --- facts ---

    def facts_of(self, keys: list[str], relations: Sequence[str] | None, limit: int) -> Facts:
        """Read the facts of entities."""
        types = None if relations is None else self._types_of(relations)
        if types == []:
            return Facts([], False)
        of_types = "" if types is None else ":" + "|".join(map(backticked, types))
        ways = {f"-[r{of_types}]->(m)": ("n", "m"), f"<-[r{of_types}]-(m)": ("m", "n")}
        return self._facts_of(keys, ways, "", {}, limit)

    def facts_between(self, keys: list[str], limit: int) -> Facts:
        """Read the facts that join entities."""
        way = {"-[r]->(m)": ("n", "m")}
        if self._is_ladybug:
            return self._facts_of(keys, way, f" AND {self._key('m')} IN $keys", {}, limit)
        among = f" AND $among[toString({self._key('m')})] IS NOT NULL"  # a list would be read again for each fact
        return self._facts_of(keys, way, among, {"among": dict.fromkeys(keys, True)}, limit)

    def _facts_of(
        self,
        keys: list[str],
        ways: Mapping[str, tuple[str, str]],
        further: str,
        parameters: Mapping[str, Any],
        limit: int,
    ) -> Facts:
        """Read the facts of entities, each way, and by the same query what the entities are."""
        if not keys:
            return Facts([], False)
        parts, used = list[str](), {"keys": keys, **parameters}
        for place, label in enumerate(self._labels):
            name, is_wanted = backticked(label.name), f"n.{backticked(label.key)} = wanted{self._own_key()}"
            find = f"UNWIND $keys AS wanted MATCH (n:{name})"
            if self._is_ladybug:  # it reads all relationships for nodes that are joined to a list
                rows = self._run(f"{find} WHERE {is_wanted} RETURN offset(id(n))", used, MOST_NODES)
                used[f"offsets{place}"] = sorted({offset for (offset,) in rows})
                find, is_wanted = f"MATCH (n:{name})", f"offset(id(n)) IN $offsets{place}"
            for way, (head, tail) in ways.items():
                ends = self._ends(head, tail, label)
                fact = f"RETURN DISTINCT {ends}, {NO_ENTITY} ORDER BY head, relation, tail LIMIT {limit + 1}"
                parts.append(f"{find}{way} WHERE {is_wanted}{further} {fact}")
        rows = self._union([*parts, *self._descriptions()], used, MOST_NODES)
        facts = self._facts([row[:3] for row in rows if row[0] is not None], limit)
        return facts._replace(entities=[entity for _, entity in self._entities(rows)])

    def sample_facts(self, relations: Sequence[str], count: int) -> Facts:
        """Read some facts of relations."""
        types, found = self._types_of(relations), list[Sequence[Any]]()
        end = f"WITH n, r, m LIMIT {count + 1} RETURN {self._ends('n', 'm')}"
        for first in range(0, len(types), RELATIONS_AT_ONCE):
            some = types[first : first + RELATIONS_AT_ONCE]
            found += (
                chain.from_iterable(map(self._ladybug_sample, some, repeat(count + 1)))
                if self._is_ladybug
                else self._union([f"MATCH (n)-[r:{backticked(type)}]->(m) {end}" for type in some], {}, count + 1)
            )
        by_type: dict[str, list[Sequence[Any]]] = {}
        for row in found:
            by_type.setdefault(row[1], []).append(row)
        kept = [row for rows in by_type.values() for row in rows[:count]]
        return Facts(self._facts(kept, len(kept)).triples, any(len(rows) > count for rows in by_type.values()))

    def _ladybug_sample(self, type: str, most: int) -> Sequence[Sequence[Any]]:
        match, ends = f"MATCH (n)-[r:{backticked(type)}]->(m)", f"RETURN {self._ends('n', 'm')}"
        # Not by LIMIT, since the threads of LadybugDB race for the first rows; each pair of labels has numbers from 0.
        pairs = next((len(found.ends) for found in self._schema.relations if found.name == type), 1)
        rows = self._run(f"{match} WHERE offset(id(r)) < {most} {ends}", {}, most * max(pairs, 1))
        rows = sorted(rows, key=tuple)
        if len(rows) < most:
            rows = list(self._run(f"{match} {ends} ORDER BY head, tail LIMIT {most}", {}, most))
        return rows[:most]

    def _types_of(self, relations: Sequence[str]) -> list[str]:
        """Return relationship types; Neo4j's side may be asked for one that its schema lacks."""
        types = {relation: name for name, relation in self._schema.relation_names.items()}
        return sorted({types.get(name, name) for name in relations if name in types or not self._is_ladybug})

    def _own_key(self) -> str:
        """Return the condition that a node's key is not only that of another of its labels."""
        is_plain = len(self._schema.keys) == 1 or self._is_ladybug
        return "" if is_plain else f" AND {self._key('n')} = wanted"

    def _ends(self, head: str, tail: str, label: NodeLabel | None = None) -> str:
        """Return the columns of a fact; a node has its id in the database for a key, where it has none."""
        relation = f"{TYPE_OF[self._dialect]}(r) AS relation"
        return f"{self._known_key(head, label)} AS head, {relation}, {self._known_key(tail, label)} AS tail"

    def _known_key(self, name: str, label: NodeLabel | None = None) -> str:
        id = f"CAST(id({name}) AS STRING)" if self._is_ladybug else f"elementId({name})"
        return f"coalesce({self._key(name, label)}, {id})"

    def _key(self, name: str, label: NodeLabel | None = None) -> str:
        """Return the expression for the key of a node; in LadybugDB, `n` has no properties but those of its label."""
        if self._is_ladybug and name == "n" and label is not None:
            return f"n.{backticked(label.key)}"
        return key_of(name, self._schema, self._dialect)

    def _facts(self, rows: Sequence[Sequence[Any]], limit: int) -> Facts:
        name = self._schema.relation_of
        facts = sorted({Triple(str(head), name(type), str(tail)) for head, type, tail in rows})
        return Facts(facts[:limit], len(facts) > limit)

    # --- entities ---

    def describe(self, keys: list[str]) -> list[StoredEntity]:
        """Describe entities."""
        return [entity for _, entity in self._described(keys)]

    def entities_after(self, position: str, page_size: int) -> EntityPage:
        """Read a page, which begins after a key of a label; entities of labels before it are on other pages."""
        label, key = _place_in(position)
        for place, here in enumerate(self._labels):
            if here.name < label:
                continue
            keys = self._keys_after(here, key if here.name == label else "", page_size + 1)
            if not keys:
                continue
            described = self._described(list(dict.fromkeys(keys[:page_size])))
            entities = [entity for first, entity in described if first == place]
            if len(keys) > page_size:
                return EntityPage(entities, json.dumps([here.name, keys[page_size - 1]]))
            following = self._labels[place + 1 :]
            return EntityPage(entities, json.dumps([following[0].name, ""]) if following else None)
        return EntityPage([], None)

    def _keys_after(self, label: NodeLabel, after: str, most: int) -> list[str]:
        """Read the next keys of a label, in the order of the database."""
        key, parameters = f"n.{backticked(label.key)}", {"after": after}
        match = f"MATCH (n:{backticked(label.name)}) WHERE {key} > $after"
        if not self._is_ladybug:
            # ArcadeDB reads all nodes to sort them; a range with two ends it reads from the index. Any end will do.
            first = self._run(f"{match} WITH {key} AS key LIMIT {most} RETURN max(key) AS last", parameters, most)
            if not first or first[0][0] is None:
                return []
            match, parameters = f"{match} AND {key} <= $last", parameters | {"last": first[0][0]}
        rows = self._run(f"{match} RETURN {key} AS key ORDER BY key LIMIT {most}", parameters, most)
        return [row[0] for row in rows]

    def _described(self, keys: list[str]) -> list[tuple[int, StoredEntity]]:
        """Describe entities, each with the position of the first label that has it."""
        if not keys:
            return []
        return self._entities(self._union(self._descriptions(), {"keys": keys}, MOST_NODES))

    def _entities(self, rows: Sequence[Sequence[Any]]) -> list[tuple[int, StoredEntity]]:
        """Return the entities of the rows that are no facts, each with the position of the first label that has it."""
        found: dict[str, list[Sequence[Any]]] = {}
        for row in rows:
            if row[0] is None:
                found.setdefault(str(row[4]), []).append(row[3:])
        return [(min(row[0] for row in found[key]), self._entity(key, found[key])) for key in sorted(found)]

    def _descriptions(self) -> Iterator[str]:
        """Yield the parts of a query that describe the nodes of each label; columns of a UNION have one type."""
        labels = "label(n)" if self._is_ladybug else "labels(n)"
        held = (self._schema.label, self._schema.aliases, self._schema.types)
        for place, label in enumerate(self._labels):
            is_wanted = f"n.{backticked(label.key)} = wanted{self._own_key()}"
            match = f"UNWIND $keys AS wanted MATCH (n:{backticked(label.name)}) WHERE {is_wanted}"
            columns = [f"n.{backticked(one)}" if one and one in label.properties else "NULL" for one in held]
            texts = ", ".join(f"{column} AS c{number}" for number, column in enumerate(columns))
            key = self._key("n", label)
            yield f"{match} RETURN {NO_FACT}, {place} AS place, {key} AS key, {labels} AS labels, {texts}"

    def _entity(self, key: str, rows: list[Sequence[Any]]) -> StoredEntity:
        """Make one entity of its rows, in an order of their own."""
        label, aliases, types = key, dict[str, None](), dict[str, None]()
        labelled = False
        for _, _, labels, name, further, listed in sorted(rows, key=repr):
            if not labelled and isinstance(name, str) and name:
                label, labelled = name, True
            aliases |= dict.fromkeys(further if isinstance(further, list) else ())
            if self._schema.types is None:
                had = labels if isinstance(labels, list) else [labels]
                types |= dict.fromkeys(label.name for label in self._labels if label.name in had)
            elif isinstance(listed, list):
                types |= dict.fromkeys(listed)
        return StoredEntity(key, label, list(aliases), list(types))

    def entities_named(self, names: list[str], limit: int) -> dict[str, list[str]]:
        """Find entities by key, label or alias."""
        if not names:
            return {}
        most = limit * len(names) + 1
        parts = [part for label in self._labels for part in self._naming(label, most)]
        rows = self._union(parts, {"names": names}, most)
        if len(rows) >= most and len(names) > 1:  # one name may have taken the rows of another
            return {name: keys for one in names for name, keys in self.entities_named([one], limit).items()}
        found: dict[str, set[str]] = {}
        for name, key in rows:
            if key is not None:
                found.setdefault(name, set()).add(str(key))
        return {name: sorted(keys)[:limit] for name, keys in found.items()}

    def _naming(self, label: NodeLabel, most: int) -> Iterator[str]:
        """Yield the parts of a query that find names and keys: by key, by label and by alias."""
        match = f"MATCH (n:{backticked(label.name)})"
        result = f"RETURN DISTINCT wanted AS name, {self._key('n', label)} AS key ORDER BY name, key LIMIT {most}"
        held, aliases = self._schema.label, self._schema.aliases
        yield f"UNWIND $names AS wanted {match} WHERE n.{backticked(label.key)} = wanted{self._own_key()} {result}"
        if held is not None and held != label.key and held in label.properties:
            yield f"UNWIND $names AS wanted {match} WHERE n.{backticked(held)} = wanted {result}"
        if aliases is not None and aliases in label.properties:
            among = f"UNWIND n.{backticked(aliases)} AS wanted WITH n, wanted WHERE wanted IN $names"
            yield f"{match} {among} {result}"

    # --- queries ---

    def _union(self, parts: Iterable[str], parameters: dict[str, Any], most: int) -> list[Sequence[Any]]:
        """Return the rows of parts that have the same columns, at most so many of each.

        They are one query where each is a message.
        """
        if self._is_ladybug:
            return [row for part in parts for row in self._run(part, parameters, most)]
        texts = list(parts)
        return list(self._run(" UNION ".join(texts), parameters, most * len(texts))) if texts else []


def _place_in(position: str) -> tuple[str, str]:
    """Return the label and the key behind which a page begins."""
    if not position:
        return "", ""
    try:
        label, key = json.loads(position)
    except (ValueError, TypeError):
        label = key = None
    if not isinstance(label, str) or not isinstance(key, str):
        raise InvalidArgumentError(
            f'entities_after: position is {position!r:.200}. Give "", or the position of the page before.'
        )
    return label, key
