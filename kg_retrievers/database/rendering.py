"""Writes a pattern as a query, in Cypher or SPARQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any, ClassVar, Literal

from kg_retrievers.database.properties import conditions_of, conditions_on, parameters_of
from kg_retrievers.database.schema import DatabaseSchema, Dialect, backticked, quoted
from kg_retrievers.errors import InvalidArgumentError, PatternError, SearchBudgetError
from kg_retrievers.graph import Known, Pattern, PatternTriple, Term, Unknown
from kg_retrievers.graph.attributes import AttributeCondition
from kg_retrievers.graph.pattern import decide_revisits


@dataclass
class PatternWriter(ABC):
    """Writes a pattern, part by part.

    Attributes:
        pattern: The pattern.
        schema: The schema of the database.
        keys: The keys of which each known node may take one.
        given: The keys of known nodes of absent triples, as a caller gives them.
        allowed: The keys that unknowns may have, by name.
        revisits: Whether other nodes may take the entity of a known node.
        direction: Whether the directions of triples count.
        types: The types below each type, itself included, if there are others.
        attributes: Whether the database holds the attributes of the pattern.
        names: The variable of each node.
        parameters: The parameters of the conditions written so far.
    """

    pattern: Pattern
    schema: DatabaseSchema
    keys: Mapping[Term, Sequence[str]]
    given: Mapping[Known, Sequence[str]]
    allowed: Mapping[str, Sequence[str]]
    revisits: bool
    direction: Literal["ignore", "respect"]
    types: Mapping[str, Sequence[str]]
    names: dict[Term, str] = field(init=False)
    attributes: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)
    absent_count: int = field(default=0, init=False)
    condition_count: int = field(default=0, init=False)

    #: How variables begin.
    sign: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Name the nodes."""
        self.names = {node: f"{self.sign}n{position}" for position, node in enumerate(self.pattern.nodes)}

    @abstractmethod
    def lines(self, bindings: Mapping[str, str], *, counts: bool, facts: bool) -> Iterator[str]:
        """Yield the lines of the query, without LIMIT.

        Args:
            bindings: The unknowns whose keys are the columns, by the name of the column. Empty for the facts.
            counts: Whether the only column is how many different keys the first of them has.
            facts: Whether the facts follow these columns.
        """

    @abstractmethod
    def has_key(self, name: str, keys: Sequence[str]) -> str:
        """Return the condition that a node has one of the keys."""

    @abstractmethod
    def has_type(self, name: str, types: Sequence[str]) -> str:
        """Return the condition that a node has one of some types."""

    def types_of(self, type: str) -> Sequence[str]:
        """Return a type with the types below it."""
        return self.types.get(type, (type,))

    @property
    def absent_directed(self) -> bool:
        """Whether the directions of absent triples count."""
        return self.direction == "respect" if self.pattern.directed is None else self.pattern.directed

    def columns_of(self, bindings: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return the variables of unknowns, each with its column."""
        name_of = {node.name: name for node, name in self.names.items() if isinstance(node, Unknown)}
        if missing := [name for name in bindings.values() if name not in name_of]:
            raise PatternError(f"render: {missing[0]!r} is none of the unknown nodes {list(name_of)}.")
        return [(name_of[name], column) for column, name in bindings.items()]

    def different(self) -> Iterator[tuple[Term, Term]]:
        """Yield the nodes that must be different entities, if their keys leave it open."""
        stated = {*self.pattern.different, *((other, one) for one, other in self.pattern.different)}
        for one, other in combinations(self.names, 2):
            apart = one in self.keys and other in self.keys and set(self.keys[one]).isdisjoint(self.keys[other])
            is_known = one in self.keys or other in self.keys
            if not apart and ((one, other) in stated or (is_known and not self.revisits)):
                yield one, other

    def limits_of_absent(self, node: Term, name: str) -> list[str]:
        """Return the conditions on a node of absent triples alone."""
        keys = self.given.get(node) if isinstance(node, Known) else self.allowed.get(node.name)
        if keys is not None:
            return [self.has_key(name, keys)]
        found = []
        if isinstance(node, Known):
            found.append(self.has_key(name, [node.text if node.entity is None else node.entity]))
        return found if node.type is None else [*found, self.has_type(name, self.types_of(node.type))]


#: The function that returns the type of a relationship.
TYPE_OF: dict[Dialect, str] = {"ladybug": "label", "neo4j": "type"}

#: Sorts relationships in a fixed order. (After DISTINCT, LadybugDB 0.22 sorts wrongly by `id`, fails by `label`.)
_ORDER: dict[Dialect, str] = {"ladybug": "CAST({} AS STRING)", "neo4j": "elementId({})"}

#: The condition that two nodes are not the same.
_DIFFERENT: dict[Dialect, str] = {"ladybug": "id({}) <> id({})", "neo4j": "{} <> {}"}

#: The most keys that conditions may leave.
MAX_KEYS = 100_000

#: Above so many keys, LadybugDB joins them. Otherwise it compares each node with each member of a list.
MAX_LIST = 100


def render(
    pattern: Pattern,
    schema: DatabaseSchema,
    dialect: Dialect,
    *,
    entities: Mapping[Known, Sequence[str]] | None = None,
    direction: Literal["ignore", "respect"] = "ignore",
    allowed: Mapping[str, Sequence[str]] | None = None,
    bindings: Mapping[str, str] | None = None,
    counts: bool = False,
    facts: bool = False,
    types: Mapping[str, Sequence[str]] | None = None,
    attributes: bool = False,
) -> tuple[str, dict[str, Any]]:
    """Write a pattern as a query with the same matches on every engine.

    They are the matches of `match_pattern` at distance 0.

    Each triple stands in a MATCH of its own, since Neo4j, unlike LadybugDB, never binds two relationships of one MATCH
    to the same fact. Entities are parameters, never text of the query.

    Args:
        pattern: The pattern to find. A known relation is a relation of the database by its exact name.
        schema: The schema of the database.
        dialect: The Cypher to write, or SPARQL.
        entities: The keys of which a known node may take one. By default the node's `entity`, or its text.
        direction: With "ignore", a fact fits a triple either way. With "respect", head fits head, and tail fits tail.
        allowed: The keys that an unknown may have, by its name, as its conditions say: see `allowed_entities`. The
            operation of the pattern is not rendered.
        bindings: The names of unknowns, by columns such as "target" and "by", which hold their keys. Each row comes
            once.
        counts: Whether the only column, `count`, is the number of different entities of the first of the bindings.
        facts: Whether `r0`, `r1`, ... follow these columns.
        types: The types below a type, itself included, as `rdfs:subClassOf` says. Other types have none below them.
        attributes: Whether the database holds the attributes that the pattern names. Cypher then leaves out facts that
            fail a condition on them, as far as it can tell. All others are found, if they satisfy it or not.

    No other node takes the entity of a known node, unless the pattern may revisit the named entities (see
    `decide_revisits`). Inequalities that the pattern states always hold.

    Absent triples are conditions. Their directions count if the pattern says so, else as `direction` says. An absent
    node of which `entities` or `allowed` gives the keys is limited to these, whatever its type.

    Returns:
        The query and its parameters. A row is one match. Its columns are `target`, the key of the target (if the
            pattern has one), `r0`, `r1`, ..., the relationships in the order of `pattern.triples`. Rows are sorted by
            the target, then by the database's ids of the relationships.

    Raises:
        InvalidArgumentError: If the database is empty or lacks a relation or type of the pattern, or `allowed` lacks
            an unknown on which the pattern has a condition.
        SearchBudgetError: If `allowed` holds more than `MAX_KEYS` keys.

    Example:
        >>> from kg_retrievers.database.schema import NodeLabel, RelationType
        >>> schema = DatabaseSchema((NodeLabel("Film", "title", {}),), (RelationType("STARS", (), {}),))
        >>> query, parameters = render(Pattern.of(("Her", "STARS", Unknown("x")), target="x"), schema, "neo4j")
        >>> print(query)
        MATCH (n0)-[r0:`STARS`]-(n1)
        WHERE n0:`Film` AND n0.`title` = $n0
        RETURN DISTINCT n1.`title` AS target, r0
        ORDER BY target, elementId(r0)
        >>> parameters
        {'n0': 'Her'}
    """
    if not schema.labels and schema.pattern_writer is None:
        raise InvalidArgumentError(
            "render: the database has no nodes.",
            hint_python="If it has some now, read the schema again: schema(refresh=True).",
            hint_shell="Name another database, or write a graph into this one.",
        )
    limits, given = allowed or {}, entities or {}
    _check_limits(pattern, limits)
    keys: dict[Term, list[str]] = {
        node: list(given.get(node) or [node.text if node.entity is None else node.entity])
        for node in pattern.nodes
        if isinstance(node, Known)
    }
    writer_of = schema.pattern_writer or partial(CypherWriter, dialect=dialect)
    revisits = decide_revisits(pattern).allowed
    writer: PatternWriter = writer_of(
        pattern, schema, keys, given, limits, revisits, direction, types or {}, attributes
    )
    return "\n".join(writer.lines(bindings or {}, counts=counts, facts=facts)), writer.parameters


def _check_limits(pattern: Pattern, allowed: Mapping[str, Sequence[str]]) -> None:
    said = {*allowed, *pattern.attribute_unknowns}  # conditions on attributes are not rendered
    if missing := [one.unknown for one in pattern.conditions if one.unknown not in said]:
        raise InvalidArgumentError(
            f"render: the pattern has a condition on {missing[0]!r}. Give the keys of the entities that satisfy it, as "
            "allowed={name: keys}."
        )
    if (count := sum(map(len, allowed.values()))) > MAX_KEYS:
        raise SearchBudgetError(
            f"render: the conditions of the pattern leave {count} entities, more than the {MAX_KEYS} keys that a query "
            "takes.",
            hint_python="Narrow the conditions, or use SimGRAGRetriever, which holds them in memory.",
            hint_shell="Narrow the conditions, or use --method simgrag, which holds them in memory.",
        )


@dataclass
class CypherWriter(PatternWriter):
    """Writes a pattern as Cypher.

    Attributes:
        dialect: Which Cypher.
        wanted: The conditions on the attributes of all facts, as far as Cypher can express them. See `conditions_on`.
    """

    dialect: Dialect = "neo4j"
    wanted: Sequence[AttributeCondition] = ()

    def lines(self, bindings: Mapping[str, str], *, counts: bool, facts: bool) -> Iterator[str]:
        """Yield the lines of the query."""
        conditions = self.conditions() | self.absences()
        result = [*self.result(bindings, counts=counts, facts=facts)]  # which may refuse what is wanted
        yield from self.matches(conditions)
        yield from result

    def conditions(self) -> dict[str, set[Term]]:
        """Return the conditions on nodes, each with the nodes that it is about."""
        found: dict[str, set[Term]] = {}
        for node, name in self.names.items():
            if node in self.keys:
                found[self.has_key(name, self.keys[node])] = {node}
            elif isinstance(node, Unknown) and node.name in self.allowed and node != self.joined:
                found[self.has_key(name, self.allowed[node.name])] = {node}
            if node.type is not None:
                found[self.has_type(name, self.types_of(node.type))] = {node}
        for one, other in self.different():
            found[_DIFFERENT[self.dialect].format(self.names[one], self.names[other])] = {one, other}
        return found

    @property
    def joined(self) -> Term | None:
        """The unknown whose keys are joined, since they are many."""
        if self.dialect != "ladybug":
            return None
        many = [node for node in self.names if isinstance(node, Unknown) and self._count(node) > MAX_LIST]
        return max(many, key=self._count, default=None)

    def _count(self, node: Unknown) -> int:
        return len(self.allowed.get(node.name, ()))

    def absences(self) -> dict[str, set[Term]]:
        """Return the conditions of absent triples, each with its node.

        Each group is a tree around one node. Each triple has an EXISTS of its own inside the EXISTS of the triple
        before it, since Neo4j never binds two relationships of one MATCH to the same fact.
        """
        conditions: dict[str, set[Term]] = {}
        for group in self.pattern.absent_groups():
            ends = (node for head, _, tail in group for node in (head, tail))
            root = next(node for node in ends if isinstance(node, Unknown) and node in self.names)
            found = self._present(root, self.names[root], group)
            conditions[f"NOT {found[0]}" if len(found) == 1 else f"NOT ({' AND '.join(found)})"] = {root}
        return conditions

    def _present(self, node: Term, name: str, triples: Sequence[PatternTriple]) -> list[str]:
        """Return the conditions that a node is joined to some triples."""
        return [
            self._exists(node, name, triple, [other for other in triples if other is not triple])
            for triple in triples
            if node in (triple.head, triple.tail)
        ]

    def _exists(self, node: Term, name: str, triple: PatternTriple, rest: Sequence[PatternTriple]) -> str:
        there = triple.tail if node == triple.head else triple.head
        inner, self.absent_count = f"a{self.absent_count}", self.absent_count + 1
        ends = (name, inner) if node == triple.head else (inner, name)
        conditions = self.limits_of_absent(there, inner)
        if not isinstance(there, Known):
            beyond = [other for other in rest if node not in (other.head, other.tail) or there in other]
            conditions += self._present(there, inner, beyond)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        arrow = "->" if self.absent_directed else "-"
        return f"EXISTS {{ MATCH ({ends[0]})-[{self._type(triple.relation)}]{arrow}({ends[1]}){where} }}"

    def matches(self, conditions: Mapping[str, set[Term]]) -> Iterator[str]:
        """Yield a MATCH for each triple, with its conditions.

        A condition is stated as soon as possible.
        """
        names, type_of = self.names, TYPE_OF[self.dialect]
        arrow = "->" if self.direction == "respect" else "-"
        waiting = dict(conditions)
        matched: set[Term] = set()
        if isinstance(self.joined, Unknown):
            matched.add(self.joined)
            yield from self._join(self.joined, names[self.joined])
        for node in self.pattern.alone:
            if node not in matched:
                yield f"MATCH ({names[node]})"
                stated = [condition for condition, about in waiting.items() if about == {node}]
                yield from [f"WHERE {' AND '.join(stated)}"] if stated else []
        first_of: dict[Unknown, str] = {}  # the first relationship of each unknown relation
        for position, (head, relation, tail) in _connected(self.pattern, {*self.keys, *matched}):
            here, known_type = f"r{position}", self._type(relation)
            yield f"MATCH ({names[head]})-[{here}{known_type}]{arrow}({names[tail]})"
            matched |= {head, tail}
            stated = [condition for condition, about in waiting.items() if about <= matched]
            for condition in stated:
                del waiting[condition]
            if isinstance(relation, Unknown) and (first := first_of.setdefault(relation, here)) != here:
                stated.append(f"{type_of}({first}) = {type_of}({here})")
            stated += self._attributes(
                here, relation, [*self.wanted, *(conditions_of(self.pattern, position) if self.attributes else ())]
            )
            if stated:
                yield "WHERE " + " AND ".join(stated)

    def _attributes(self, here: str, relation: Term, wanted: Sequence[AttributeCondition]) -> list[str]:
        """Return the conditions on the attributes of a fact.

        There are none if LadybugDB would not find all facts with them.

        It loses rows by a condition on one of several relationships, and one property may have several types there.
        """
        held = [one for one in self.schema.relations if self._type(relation) in ("", f":{backticked(one.name)}")]
        is_alone = len(held) == len(self.pattern.triples) == 1
        if not wanted or (self.dialect == "ladybug" and not is_alone):
            return []
        properties = ChainMap(*(dict(one.properties) for one in held))
        first = self.condition_count
        self.condition_count += len(wanted)
        found = conditions_on(here, wanted, properties, self.dialect, first)
        if found is None:
            return ["false"]
        used = parameters_of(wanted, first)
        self.parameters |= {name: value for name, value in used.items() if f"${name}" in " ".join(found)}
        return found

    def _join(self, node: Unknown, name: str) -> Iterator[str]:
        """Yield the clauses that take the keys of an unknown one by one."""
        self.parameters[name] = list(self.allowed[node.name])
        yield f"UNWIND ${name} AS {name}_key"
        yield f"MATCH ({name})"
        yield f"WHERE {self._compared(name, f'= {name}_key')}"

    def _type(self, relation: Term) -> str:
        return "" if isinstance(relation, Unknown) else f":{backticked(self.schema.type_of(relation.text))}"

    def result(self, bindings: Mapping[str, str], *, counts: bool, facts: bool) -> Iterator[str]:
        """Yield RETURN and ORDER BY for the keys of unknowns, or for their count.

        A count has only RETURN, for how many keys the first unknown has.
        """
        is_target = any(isinstance(node, Unknown) and node.name == self.pattern.target for node in self.names)
        wanted = bindings or ({"target": str(self.pattern.target)} if is_target else {})
        keys = {column: key_of(name, self.schema, self.dialect) for name, column in self.columns_of(wanted)}
        if counts:
            yield f"RETURN count(DISTINCT {next(iter(keys.values()))}) AS count"
            return
        found = [f"r{position}" for position in range(len(self.pattern.triples))] if facts or not bindings else []
        # Without bindings, a row can be there twice only where a fact fits either way.
        distinct = "DISTINCT " if bindings or self.direction == "ignore" else ""
        yield f"RETURN {distinct}{', '.join([*(f'{key} AS {column}' for column, key in keys.items()), *found])}"
        yield f"ORDER BY {', '.join([*keys, *(_ORDER[self.dialect].format(one) for one in found if not bindings)])}"

    def has_key(self, name: str, keys: Sequence[str]) -> str:
        """Return the condition that a node has one of the keys."""
        sign, self.parameters[name] = ("=", keys[0]) if len(keys) == 1 else ("IN", list(keys))
        return self._compared(name, f"{sign} ${name}")

    def _compared(self, name: str, compared: str) -> str:
        """Return the condition that the key of a node compares so."""
        schema, dialect = self.schema, self.dialect
        if dialect == "ladybug" and len(schema.keys) == 1 and all(label.has_text_key for label in schema.labels):
            return f"{name}.{backticked(schema.keys[0])} {compared}"
        cases = [  # with its label, so that Neo4j looks into the index of each
            f"{has_label(name, label.name, dialect)} AND {label.key_text(name, dialect)} {compared}"
            for label in schema.labels
        ]
        return cases[0] if len(cases) == 1 else f"({' OR '.join(cases)})"

    def has_type(self, name: str, types: Sequence[str]) -> str:
        """Return the condition that a node has one of some types.

        A type is a node label or stands in a list of types.
        """
        labels = [label.name for label in self.schema.labels]
        conditions = [has_label(name, type, self.dialect) for type in types if type in labels]
        others = [type for type in types if type not in labels]
        if others and self.schema.types is None:
            if not conditions:
                raise InvalidArgumentError(f"render: the database has no node label {others[0]!r}. It has {labels}.")
            others = []
        for number, type in enumerate(others):
            parameter = f"{name}_type{number or ''}"
            self.parameters[parameter] = type
            conditions.append(f"${parameter} IN {name}.{backticked(str(self.schema.types))}")
        return conditions[0] if len(conditions) == 1 else f"({' OR '.join(conditions)})"


@dataclass
class ViewWriter(CypherWriter):
    """Writes a pattern over a view.

    Each row shows all facts that it rests on.

    Attributes:
        note: Takes the text of each query.
    """

    note: Callable[[str], Any] = str

    def lines(self, bindings: Mapping[str, str], *, counts: bool, facts: bool) -> Iterator[str]:
        """Yield the lines of the query, which returns the facts in any case.

        Raises:
            SearchBudgetError: If no row would show the facts that the pattern rests on.
        """
        if counts or self.pattern.absent or self.pattern.alone:
            what = (
                "counts all matches" if counts else "asks what is not there" if self.pattern.absent else "asks of all"
            )
            raise SearchBudgetError(
                f"The question {what}, and the index is a view of a database, whose Cypher does not tell hidden facts "
                "from others.",
                hint_python="Narrow a copy of the graph: "
                "GraphIndex.build(KnowledgeGraph.from_executor(executor).view(...), embeddings).",
            )
        lines = [*super().lines(bindings, counts=counts, facts=True)]
        self.note("\n".join(lines))
        yield from lines


def key_of(name: str, schema: DatabaseSchema, dialect: Dialect) -> str:
    """Return the expression for the key of the node `name`, as a text."""
    if len(schema.keys) == 1 and all(label.has_text_key for label in schema.labels):
        return f"{name}.{backticked(schema.keys[0])}"
    cases = [f"WHEN {has_label(name, one.name, dialect)} THEN {one.key_text(name, dialect)}" for one in schema.labels]
    if dialect == "ladybug":
        return f"CASE {' '.join(cases)} END"
    # A node may have several labels, and the key of one of them only.
    return f"coalesce({', '.join(f'CASE {case} END' for case in cases)})"


def has_label(name: str, label: str, dialect: Dialect) -> str:
    """Return the condition that the node that a query calls `name` has a label."""
    return f"label({name}) = {quoted(label)}" if dialect == "ladybug" else f"{name}:{backticked(label)}"


def _connected(pattern: Pattern, known: Collection[Term]) -> Iterator[tuple[int, PatternTriple]]:
    """Yield the triples with their positions.

    Each shares a node with a known node or an earlier triple, if one can.
    """
    waiting = dict(enumerate(pattern.triples))
    reached = set(known)
    while waiting:
        joined = (position for position, triple in waiting.items() if reached & {triple.head, triple.tail})
        position = next(joined, next(iter(waiting)))
        triple = waiting.pop(position)
        reached |= {triple.head, triple.tail}
        yield position, triple
