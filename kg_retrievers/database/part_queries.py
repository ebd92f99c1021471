"""Writes the Cypher that reads parts of a graph.

An entity is looked up label by label, `UNWIND $keys AS wanted MATCH (n:Label) WHERE n.key = wanted`, since databases
then use the index of the keys of that label, and not as `{key: wanted}`: ArcadeDB takes the key "$keys" for the
parameter of that name. Over Bolt, a UNION makes one query of all labels. In LadybugDB a query is no message, so each
label has a query of its own, and so has each type of relationships with properties, since it makes texts of all values
of a property that has several types.

A property of a node is a fact, as in a file. It is read with its node: nobody looks up the nodes with some value.
"""

from __future__ import annotations

import json
import re
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kg_retrievers.database.properties import (
    Recorder,
    conditions_on,
    node_attributes,
    pairs_of,
    parameters_of,
    properties_of,
)
from kg_retrievers.database.rendering import TYPE_OF, key_of
from kg_retrievers.database.schema import (
    DatabaseSchema,
    Dialect,
    NodeLabel,
    backticked,
    facts_in,
    names_in,
    no_keys,
    quoted,
)
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Triple
from kg_retrievers.graph.attributes import AttributeCondition, read_attribute_set, satisfies
from kg_retrievers.graph.building import NO_ATTRIBUTES
from kg_retrievers.graph.parts import MOST_FACTS, EntityPage, Facts, Limits, Said, StoredEntity
from kg_retrievers.graph.readers.frameworks.attributes import AttributeReader

#: The most nodes that are described at once.
MOST_NODES = 10_000_000

#: The most rows among which the visible facts of a view are looked for.
MOST_READ = 1_000_000

#: Facts of an entity `n`, and which end is the head and which the tail.
_WAYS = (("-[r{}]->(m)", "n", "m"), ("<-[r{}]-(m)", "m", "n"))

#: Of how many relations one query reads samples.
RELATIONS_AT_ONCE = 50

#: The columns of a description in a row of a fact, and of a fact in a row of a description.
NO_ENTITY = "NULL AS place, NULL AS key, NULL AS labels"
NO_FACT = "NULL AS head, NULL AS relation, NULL AS tail"

#: The id of a node or relationship, as a text.
ID_OF: dict[Dialect, str] = {"ladybug": "CAST(id({}) AS STRING)", "neo4j": "elementId({})"}

#: The form of an integer of 64 bits that is a key.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")

_WHO = "GraphIndex.connect"

#: Runs a query: its text, its parameters, the most rows.
Run = Callable[[str, dict[str, Any], int], Sequence[Sequence[Any]]]


class PartQueries:
    """Writes the queries of one call and reads their rows.

    Args:
        schema: The schema of the database.
        dialect: Its Cypher.
        run: Runs a query: its text, its parameters, the most rows.
        wanted: The conditions on the attributes of facts. All other facts, and entities that are only in these, are
            hidden, and no result refers to them.
    """

    def __init__(
        self, schema: DatabaseSchema, dialect: Dialect, run: Run, wanted: Sequence[AttributeCondition] = ()
    ) -> None:
        """Keep them."""
        self._schema, self._dialect, self._run, self._wanted = schema, dialect, run, wanted
        self._limits = parameters_of(wanted)
        self._limited: dict[str, tuple[int, Sequence[AttributeCondition]]] = {}
        self._shows_values = satisfies({}, wanted)
        self._labels = sorted(schema.labels, key=lambda label: label.name)
        self._is_ladybug = dialect == "ladybug"

    # --- facts ---

    def facts_of(self, keys: list[str], relations: Sequence[str] | None, limit: int, limits: Limits) -> Facts:
        """Read the facts of entities."""
        types = {relation: name for name, relation in self._schema.relation_names.items()}
        for relation in sorted(limits.keys() & types.keys()):
            first = len(self._limits)
            self._limited[types[relation]] = first, limits[relation]
            self._limits |= parameters_of(limits[relation], first)
        return self._with_ends(self._facts_of(keys, relations, limit, limit))

    def facts_between(self, keys: list[str], limit: int) -> Facts:
        """Read the facts that join entities."""
        return self._with_ends(self._facts_of(keys, None, limit, limit, between=True))

    def _facts_of(
        self, keys: list[str], relations: Collection[str] | None, limit: int, most: int, *, between: bool = False
    ) -> Facts:
        """Read the facts of entities, with descriptions of the entities.

        One query reads both.

        Args:
            keys: The entities.
            relations: The relations of the facts. None for any.
            limit: The most facts.
            most: The most rows of a part of the query. More if too few of them are visible.
            between: Whether both ends are among the entities. By default, one of them is.
        """
        if not keys:
            return Facts([], False)
        used: dict[str, Any] = {"keys": self._keys(keys), **self._limits}
        among = dict.fromkeys(keys, True)
        parts, further = list[str](), f" AND coalesce({self._key('m')}, '') <> ''"
        if between and self._is_ladybug:
            further += f" AND {self._key('m')} IN $keys"
        elif between:  # a list would be read again for each fact
            further += f" AND $among[{self._key('m')}] IS NOT NULL"
            used["among"] = among
        for place, label in enumerate(self._labels):
            name, has_key = backticked(label.name), self._has_key(label)
            find = f"UNWIND $keys AS wanted MATCH (n:{name})"
            if self._is_ladybug:  # it reads all relationships for nodes that are joined to a list
                rows = self._run(f"{find} WHERE {has_key} RETURN offset(id(n))", used, MOST_NODES)
                used[f"offsets{place}"] = sorted({offset for (offset,) in rows})
                find, has_key = f"MATCH (n:{name})", f"offset(id(n)) IN $offsets{place}"
            for way, head, tail in _WAYS[:1] if between else _WAYS:
                for types, said, only in self._relationships(label, relations, head == "n"):
                    columns = f"{self._ends(head, tail, label)}, {said} AS said, {NO_ENTITY}"
                    fact = f"RETURN DISTINCT {columns} ORDER BY head, relation, tail LIMIT {most + 1}"
                    parts.append(f"{find}{way.format(types)} WHERE {has_key}{further}{only} {fact}")
        rows = self._union([*parts, *self._descriptions()], used, MOST_NODES)
        stated = self._stated(rows)
        entities, values = self._described_by(rows)
        wanted = (one for one in values if relations is None or one.relation in relations)
        values = {one: values[one] for one in wanted if not between or one.tail in among}
        found = _facts(stated, values, limit)
        if not self._wanted:
            return found._replace(entities=[entity for _, entity in entities])
        is_cut = sum(row[1] is not None for row in rows) > most
        if is_cut and not found.truncated and most < MOST_READ:
            return self._facts_of(keys, relations, limit, min(4 * most, MOST_READ), between=between)
        return found._replace(truncated=found.truncated or is_cut)

    def _relationships(
        self, label: NodeLabel, relations: Collection[str] | None, is_head: bool
    ) -> Iterator[tuple[str, str, str]]:
        """Yield what `relationships_of` returns, with the conditions in place of the properties."""
        for types, said, properties in relationships_of(self._schema, self._dialect, label, relations, is_head):
            wanted = conditions_on("r", self._wanted, properties, self._dialect)
            if wanted is not None:
                yield types, said, "".join(f" AND {one}" for one in (*wanted, *self._limits_on(types, properties)))

    def _limits_on(self, types: str, properties: Mapping[str, str]) -> Iterator[str]:
        """Yield the conditions of `limits` on relationships of some types."""
        for type, (first, wanted) in self._limited.items():
            if self._is_ladybug and types != _of_types([type]):
                continue
            found = conditions_on("r", wanted, properties, self._dialect, first)
            stated = "false" if found is None else " AND ".join(["true", *found])
            yield f"({TYPE_OF[self._dialect]}(r) <> {quoted(type)} OR {stated})"

    def _with_ends(self, found: Facts) -> Facts:
        """Describe the entities of visible facts.

        Then nobody has to ask whether they are visible.
        """
        if not self._wanted:
            return found
        return found._replace(entities=[entity for _, entity in self._described(sorted(_ends_of(found)))])

    def _visible(self, keys: Sequence[str]) -> set[str]:
        """Return the entities that have visible facts, or no fact at all."""
        if not self._wanted:
            return {*keys}
        visible = self._with_facts(keys)
        hidden = [key for key in keys if key not in visible]
        return {*keys} - PartQueries(self._schema, self._dialect, self._run)._with_facts(hidden) | visible

    def _with_facts(self, keys: Sequence[str]) -> set[str]:
        """Return the entities that have facts."""
        found, left = set[str](), [*keys]
        while left:
            most = max(MOST_FACTS, 4 * len(left))
            facts = self._facts_of(left, None, most, most)
            ends = _ends_of(facts).intersection(left)
            found |= ends
            left = [key for key in left if key not in ends] if facts.truncated and ends else []
        return found

    def sample_facts(self, relations: Sequence[str], count: int) -> Facts:
        """Read some facts of relations."""
        types, most = self._types_of(relations), count
        stated, is_cut = dict[Triple, Collection[str]](), False
        while types:
            rows, types = self._sample_rows(types, most + 1), []
            for type, of_type in rows.items():
                visible = self._stated(of_type[:most])
                if self._wanted and len(visible) < count and len(of_type) > most and most < MOST_READ:
                    types.append(type)
                    continue
                stated |= dict([*visible.items()][:count])
                is_cut |= len(of_type) > most or len(visible) > count
            most = min(4 * most, MOST_READ)
        values: dict[str, dict[Triple, str]] = {}
        for label in self._labels if self._shows_values else ():
            parts = [
                self._value_sample(label, one, count + 1) for one in facts_in(label, self._schema) if one in relations
            ]
            for triple, datatype in self._described_by(self._union(parts, {}, count + 1))[1].items():
                values.setdefault(triple.relation, {})[triple] = datatype
        kept = {triple: datatype for found in values.values() for triple, datatype in [*found.items()][:count]}
        is_cut |= any(len(found) > count for found in values.values())
        return self._with_ends(_facts(stated, kept, MOST_NODES)._replace(truncated=is_cut))

    def _sample_rows(self, types: Sequence[str], most: int) -> dict[str, list[Sequence[Any]]]:
        """Return at most so many rows of each of some types of relationships."""
        rows = list[Sequence[Any]]()
        for first in range(0, len(types), RELATIONS_AT_ONCE):
            some = types[first : first + RELATIONS_AT_ONCE]
            if self._is_ladybug:
                rows += [row for type in some for row in self._ladybug_sample(type, most)]
            else:
                parts = (self._sample(type, f" WITH n, r, m LIMIT {most}") for type in some)
                rows += self._union([part for part in parts if part], self._limits, most)
        by_type: dict[str, list[Sequence[Any]]] = {}
        for row in rows:
            by_type.setdefault(row[1], []).append(row)
        return by_type

    def _sample(self, type: str, some: str = "", only: Sequence[str] = ()) -> str:
        """Return the query that reads relationships of a type.

        It is empty if no condition can hold of one.
        """
        properties = next((one.properties for one in self._schema.relations if one.name == type), {})
        wanted = conditions_on("r", self._wanted, properties, self._dialect)
        if wanted is None:
            return ""
        where = f" WHERE {' AND '.join([*wanted, *only])}" if wanted or only else ""
        said = properties_of("r", [properties], self._dialect)
        return f"MATCH (n)-[r:{backticked(type)}]->(m){where}{some} RETURN {self._ends('n', 'm')}, {said} AS said"

    def _ladybug_sample(self, type: str, most: int) -> Sequence[Sequence[Any]]:
        # Not by LIMIT, since the threads of LadybugDB race for the first rows; each pair of labels has numbers from 0.
        pairs = next((len(found.ends) for found in self._schema.relations if found.name == type), 1)
        few = self._sample(type, only=[f"offset(id(r)) < {most}"])
        rows = sorted(self._run(few, self._limits, most * max(pairs, 1)), key=repr) if few else []
        if few and len(rows) < most:
            few = f"{self._sample(type)} ORDER BY head, tail LIMIT {most}"
            rows = list(self._run(few, self._limits, most))
        return rows[:most]

    def _value_sample(self, label: NodeLabel, name: str, most: int) -> str:
        """Return the query that reads a property of some nodes."""
        held = f"n.{backticked(name)}"
        match = f"MATCH (n:{backticked(label.name)}) WHERE {held} IS NOT NULL AND n.{backticked(label.key)} IS NOT NULL"
        first, last = ("", f" ORDER BY key LIMIT {most}") if self._is_ladybug else (f" WITH n LIMIT {most}", "")
        shown = [name, *names_in(label, self._schema).get(name, ())]  # a title is no fact without the names before it
        said = pairs_of("n", shown, self._dialect)
        return f"{match}{first} RETURN {self._description(label, said)}{last}"

    def _types_of(self, relations: Sequence[str]) -> list[str]:
        """Return relationship types.

        Neo4j's side may be asked for a type that its schema lacks.
        """
        types = {relation: name for name, relation in self._schema.relation_names.items()}
        unknown = {*relations}.difference(types, self._schema.value_relations) if not self._is_ladybug else set()
        return sorted({*unknown, *(types[name] for name in relations if name in types)})

    def _keys(self, texts: list[str]) -> list[str | int]:
        """Return texts, and over Bolt their integers if some keys are no texts."""
        if self._is_ladybug or all(label.has_text_key for label in self._labels):
            return [*texts]
        numbers = [int(text) for text in texts if _INTEGER.fullmatch(text)]
        return [*texts, *(number for number in numbers if -(2**63) <= number < 2**63)]

    def _has_key(self, label: NodeLabel) -> str:
        """Return the condition that a node has the wanted key.

        A key by another of its labels does not suffice.
        """
        key = label.key_text("n", self._dialect) if self._is_ladybug else label.key_order("n", self._dialect)
        is_plain = len(self._schema.keys) == 1 or self._is_ladybug
        return f"{key} = wanted" + ("" if is_plain else f" AND {self._key('n')} = toString(wanted)")

    def _ends(self, head: str, tail: str, label: NodeLabel | None = None) -> str:
        """Return the columns of a fact."""
        relation = f"{TYPE_OF[self._dialect]}(r) AS relation"
        return f"{self._key(head, label)} AS head, {relation}, {self._key(tail, label)} AS tail"

    def _key(self, name: str, label: NodeLabel | None = None) -> str:
        """Return the expression for the key of a node.

        In LadybugDB, `n` has only the properties of its label.
        """
        if self._is_ladybug and name == "n" and label is not None:
            return label.key_text(name, self._dialect)
        return key_of(name, self._schema, self._dialect)

    def _stated(self, rows: Sequence[Sequence[Any]]) -> dict[Triple, set[str]]:
        """Return the relationships among rows between nodes with keys.

        Each comes with its sets of attributes.
        """
        facts = Recorder()
        reader = AttributeReader(facts, "facts", _WHO)
        for head, type, tail, said, *_ in rows:
            if type is not None and head not in (None, "") and tail not in (None, ""):
                reader.add_edge(str(head), self._schema.relation_of(type), str(tail), dict(said or {}))
        if not self._wanted:
            return facts.said
        kept = {
            fact: {one for one in sets if satisfies(read_attribute_set(one), self._wanted)}
            for fact, sets in facts.said.items()
        }
        return {fact: sets for fact, sets in kept.items() if sets}

    # --- entities ---

    def describe(self, keys: list[str]) -> list[StoredEntity]:
        """Describe entities."""
        found = [entity for _, entity in self._described(keys)]
        visible = self._visible([entity.key for entity in found])
        return [entity for entity in found if entity.key in visible]

    def entities_after(self, position: str, page_size: int) -> EntityPage:
        """Read a page, which begins after a key of a label.

        Entities of labels before it are on other pages.
        """
        label, key = _place_in(position)
        for place, here in enumerate(self._labels):
            if here.name < label:
                continue
            keys = self._keys_after(here, key if here.name == label and key != "" else here.least, page_size + 1)
            if not keys:
                continue
            described = self._described(list(dict.fromkeys(map(str, keys[:page_size]))))
            visible = self._visible([entity.key for first, entity in described if first == place])
            entities = [entity for first, entity in described if first == place and entity.key in visible]
            if len(keys) > page_size:
                return EntityPage(entities, json.dumps([here.name, keys[page_size - 1]]))
            following = self._labels[place + 1 :]
            return EntityPage(entities, json.dumps([following[0].name, ""]) if following else None)
        if not position and self._run("MATCH (n) RETURN count(n) AS nodes", {}, 1)[0][0]:
            raise no_keys("entities_after", self._labels)
        return EntityPage([], None)

    def _keys_after(self, label: NodeLabel, after: str | int, most: int) -> list[str | int]:
        """Read the next keys of a label, in the order of the database."""
        key, parameters = label.key_order("n", self._dialect), {"after": after}
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
        return self._described_by(self._union(self._descriptions(), {"keys": self._keys(keys)}, MOST_NODES))[0]

    def _described_by(self, rows: Sequence[Sequence[Any]]) -> tuple[list[tuple[int, StoredEntity]], dict[Triple, str]]:
        """Return the entities of the rows that are no facts.

        Each comes with the position of the first label that has it.

        And the facts of their properties, sorted, each with the datatype of its value.
        """
        nodes: dict[str, list[Sequence[Any]]] = {}
        for _, type, _, *row in rows:
            if type is None and row[2] is not None:
                nodes.setdefault(str(row[2]), []).append(row)
        found = Recorder()
        reader = AttributeReader(found, "facts", _WHO)
        for key in sorted(nodes):
            for said, place, _, labels in sorted(nodes[key], key=lambda row: (row[1], repr(row))):
                names = [labels] if isinstance(labels, str) else labels
                reader.add_node(key, node_attributes(dict(said or {}), self._labels[place], names, self._schema))
        entities = list[tuple[int, StoredEntity]]()
        for key in sorted(nodes):
            aliases, types = ([*said.get(key, [])] for said in (found.aliases, found.types))
            entity = StoredEntity(key, found.labels.get(key, key), aliases, types)
            entities.append((min(row[1] for row in nodes[key]), entity))
        values = sorted(found.said) if self._shows_values else ()
        return entities, {one: found.datatypes.get(one.tail, "") for one in values}

    def _descriptions(self) -> Iterator[str]:
        """Yield the parts of a query that describe the nodes of each label."""
        for label in self._labels:
            match = f"UNWIND $keys AS wanted MATCH (n:{backticked(label.name)}) WHERE {self._has_key(label)}"
            yield f"{match} RETURN {self._description(label, properties_of('n', [label.properties], self._dialect))}"

    def _description(self, label: NodeLabel, said: str) -> str:
        """Return the columns of the description of a node.

        Columns of a UNION have one type.
        """
        place, key = self._labels.index(label), self._key("n", label)
        labels = "label(n)" if self._is_ladybug else "labels(n)"
        return f"{NO_FACT}, {said} AS said, {place} AS place, {key} AS key, {labels} AS labels"

    def entities_named(self, names: list[str], limit: int) -> dict[str, list[str]]:
        """Find entities by key, label or alias."""
        if not names:
            return {}
        most = limit * len(names) + 1
        parts = [part for label in self._labels for part in self._naming(label, most)]
        rows = self._union(parts, {"keys": self._keys(names), "names": names}, most)
        if len(rows) >= most and len(names) > 1:  # one name may have taken the rows of another
            return {name: keys for one in names for name, keys in self.entities_named([one], limit).items()}
        found: dict[str, set[str]] = {}
        for name, key in rows:
            if key is not None:
                found.setdefault(str(name), set()).add(str(key))
        visible = self._visible(sorted({key for keys in found.values() for key in keys}))
        kept = {name: sorted(keys & visible)[:limit] for name, keys in found.items()}
        unsure = [name for name, keys in found.items() if len(keys) >= limit > len(kept[name])]
        more = self.entities_named(unsure, 4 * limit)
        return kept | {name: keys[:limit] for name, keys in more.items()}

    def _naming(self, label: NodeLabel, most: int) -> Iterator[str]:
        """Yield the query parts that find names and keys by key, label and alias."""
        match = f"MATCH (n:{backticked(label.name)})"
        result = f"RETURN DISTINCT wanted AS name, {self._key('n', label)} AS key ORDER BY name, key LIMIT {most}"
        yield f"UNWIND $keys AS wanted {match} WHERE {self._has_key(label)} {result}"
        for name, lacking in names_in(label, self._schema).items():
            alone = "".join(f" AND n.{backticked(other)} IS NULL" for other in lacking)
            yield f"UNWIND $names AS wanted {match} WHERE n.{backticked(name)} = wanted{alone} {result}"
        aliases = self._schema.aliases
        if aliases is not None and aliases in label.properties:
            among = f"UNWIND n.{backticked(aliases)} AS wanted WITH n, wanted WHERE wanted IN $names"
            yield f"{match} {among} {result}"

    # --- queries ---

    def _union(self, parts: Iterable[str], parameters: dict[str, Any], most: int) -> list[Sequence[Any]]:
        """Return the rows of parts with the same columns, at most so many of each.

        They are one query if each query is a message.
        """
        if self._is_ladybug:
            return [row for part in parts for row in self._run(part, parameters, most)]
        texts = list(parts)
        return list(self._run(" UNION ".join(texts), parameters, most * len(texts))) if texts else []


def _ends_of(found: Facts) -> set[str]:
    """Return the entities of facts."""
    tails = {triple.tail for triple in found.triples if not found.said[triple].is_value}
    return tails | {triple.head for triple in found.triples}


def _facts(stated: Mapping[Triple, Collection[str]], values: Mapping[Triple, str], limit: int) -> Facts:
    """Return facts of relationships and of values, `limit` at most."""
    found = {triple: Said(tuple(sorted(sets))) for triple, sets in stated.items()}
    for triple, datatype in values.items():
        sets = {*stated[triple], NO_ATTRIBUTES} if triple in stated else ()
        found[triple] = Said(tuple(sorted(sets)), datatype, is_value=triple not in stated)
    some = sorted(found)[:limit]
    is_cut = len(found) > limit or sum(map(len, stated.values())) > limit
    return Facts(some, is_cut, said={triple: found[triple] for triple in some})


def relationships_of(
    schema: DatabaseSchema,
    dialect: Dialect,
    label: NodeLabel,
    relations: Collection[str] | None = None,
    is_head: bool = True,
) -> list[tuple[str, str, Mapping[str, str]]]:
    """Return the types `:A|B` of relationships `r`, and their properties.

    One query reads these relationships. The properties come with expression and types.

    Args:
        schema: The schema of the database.
        dialect: Its Cypher.
        label: The label of one end.
        relations: The relations that are wanted, by their names in triples. None for all.
        is_head: Whether that end is the head.
    """
    held = [one for one in schema.relations if relations is None or schema.relation_of(one.name) in relations]
    if dialect != "ladybug":
        known = {*schema.relation_names.values(), *schema.value_relations}
        names = [*(one.name for one in held), *sorted({*(relations or ())} - known)]
        properties = [one.properties for one in schema.relations]
        said, types = properties_of("r", properties, dialect), _of_types(names if relations is not None else ())
        return [(types, said, ChainMap(*map(dict, properties)))] if names or relations is None else []
    held = [one for one in held if any(end[0 if is_head else 1] == label.name for end in one.ends)]
    plain = [one.name for one in held if not one.properties]
    found: list[tuple[str, str, Mapping[str, str]]] = [(_of_types(plain), "NULL", {})] if plain else []
    for one in held:
        if one.properties:
            found.append((_of_types([one.name]), properties_of("r", [one.properties], dialect), one.properties))
    return found


def _of_types(names: Collection[str]) -> str:
    return f":{'|'.join(map(backticked, names))}" if names else ""


def _place_in(position: str) -> tuple[str, str | int]:
    """Return the label and the key behind which a page begins."""
    if not position:
        return "", ""
    try:
        label, key = json.loads(position)
    except (ValueError, TypeError):
        label = key = None
    if not isinstance(label, str) or not isinstance(key, str | int):
        raise InvalidArgumentError(
            f'entities_after: position is {position!r:.200}. Give "", or the position of the page before.'
        )
    return label, key
