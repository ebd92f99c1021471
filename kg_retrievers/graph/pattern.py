"""Define `Pattern`, the small graph that a question asks for.

The module also decides whether its walks may return to an entity that it names.

One rule for returning serves the matcher, Cypher and relation paths:

1. The pattern's own statement decides (`Pattern.revisits`), from the writer of the pattern or from the answers of
   examples.
2. Else a walk may not return if words of the question exclude the entity, such as in "What else did they direct?", or
   if it has both a forward and a backward step, such as a walk to the other films of a director. Any other walk may,
   such as a walk to the parents of a child.
3. If only one of the two reasons in 2 holds and nothing is found, the search is repeated and the walk may return.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple, TypedDict, Unpack

from pydantic import BeforeValidator, Field, PlainSerializer, Strict, StrictBool
from pydantic.dataclasses import dataclass as pydantic_dataclass

from kg_retrievers.errors import PatternError, named_arguments
from kg_retrievers.graph.operations import AROUND, CONFIG, Condition, Name, Operation, Written, raises_pattern_errors

#: The most triples, absent triples, conditions and attributes of a pattern.
MAX_TRIPLES, MAX_ABSENT, MAX_CONDITIONS, MAX_ATTRIBUTES = 256, 64, 64, 64

#: The most nodes that stand alone.
MAX_ALONE = 8


@named_arguments
@dataclass(frozen=True)
class Known:
    """A node or relation of a pattern that is known by its text.

    Args:
        text: Its name, as a person would write it.
        type: The type a node should have, or None.
        entity: The key of the entity, when the node is already linked. Then nothing else can match it.
    """

    text: str
    type: str | None = None
    entity: str | None = None


@named_arguments
@dataclass(frozen=True)
class Unknown:
    """A node or relation of a pattern that is to be found. Equal names are the same unknown.

    Args:
        name: A name that is unique in its pattern, as in "film 1".
        type: The type a node should have, or None.
    """

    name: str
    type: str | None = None

    def __post_init__(self) -> None:
        """Check the name."""
        if not isinstance(self.name, str):
            raise PatternError(f"Unknown: the name must be a text, such as 'film 1', but got {self.name!r:.100}.")


Term = Known | Unknown


def _term(value: object) -> Term:
    """Return a term.

    A text becomes a known one, and an object as `to_dict` writes it is read.
    """
    if isinstance(value, str):
        value = Known(value)
    elif isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values()):
        if "unknown" in value and value.keys() <= {"unknown", "type"}:
            value = Unknown(value["unknown"], value.get("type"))
        elif "known" in value and value.keys() <= {"known", "type", "entity"}:
            value = Known(value["known"], value.get("type"), value.get("entity"))
    if not isinstance(value, Known | Unknown):
        raise ValueError('a term is a text or {"unknown": name}, with "type" if wanted')
    if not (value.text if isinstance(value, Known) else value.name).strip():
        raise ValueError("a term has an empty text")
    return value


def _written(term: Term) -> str | dict[str, str]:
    if isinstance(term, Unknown):
        return {"unknown": term.name} | ({"type": term.type} if term.type is not None else {})
    optional = {"type": term.type, "entity": term.entity}
    said = {key: value for key, value in optional.items() if value is not None}
    return {"known": term.text} | said if said else term.text


_Term = Annotated[Term, BeforeValidator(_term), PlainSerializer(_written)]


class PatternTriple(NamedTuple):
    """One edge of a pattern."""

    head: _Term
    relation: _Term
    tail: _Term


@raises_pattern_errors
@pydantic_dataclass(frozen=True, config=CONFIG)
class FactAttribute(Written):
    """An attribute of the fact that fits a triple of a pattern.

    Its value is an unknown, but not an entity.

    Conditions, the target and the operation of the pattern name it as they name other unknowns. Attributes of one
    triple come from one statement of the fact, such as one of two relationships.

    Args:
        triple: The number of the triple, from 0.
        name: The name of the attribute in the graph.
        unknown: The name of the unknown. Equal names are equal values.
        optional: Whether a fact without it fits, too. Then conditions on it hold.

    Example:
        >>> FactAttribute(0, "role", "role").to_dict()
        {'triple': 0, 'name': 'role', 'unknown': 'role'}
    """

    triple: Annotated[int, Strict(), Field(ge=0)]
    name: Name
    unknown: Name
    optional: StrictBool = False


class PatternParts(TypedDict, total=False):
    """The parts of a pattern except its triples, as `Pattern.of` takes them.

    Texts are known terms.
    """

    target: str | None
    different: Iterable[Sequence[Term | str]]
    revisits: bool | None
    directed: bool | None
    conditions: Iterable[Condition]
    absent: Iterable[Sequence[Term | str]]
    operation: Operation | str | None
    alone: Iterable[Term | str]
    typed: bool | None
    source: str | None
    confidence: float | None
    unplaced: Iterable[str]
    nearest: Iterable[str]
    lacking: Iterable[str]
    truncated: bool
    attributes: Iterable[FactAttribute]


@raises_pattern_errors
@pydantic_dataclass(frozen=True, config=CONFIG)
class Pattern(Written):
    """The small graph that a question asks for.

    The class, never the text, says whether a term is known, so a film may be called "Unknown". In `to_dict` a known
    term without type or entity is a string, any other an object with the key "known" or "unknown". Equal terms are the
    same node, a plain string stands for `Known(string)`, and a repeated triple counts once. Source, confidence and the
    fields `unplaced` to `truncated` do not count for equality.

    Args:
        triples: The edges, `(head, relation, tail)`.
        target: The name of the unknown node that is asked for, or None.
        different: Pairs of nodes that must not be the same entity.
        revisits: Whether an unknown may be an entity that the pattern names. For example, the other parent of one's
            child is not. None leaves it to the retriever.
        directed: Whether the directions of the triples count. None leaves it to the retriever. With an operation they
            count then, except for a triple that can only be meant the other way round.
        typed: Whether a type means this very type: no entity of another one answers, and one without types only if no
            entity of the type does, or in a graph database not at all. None leaves it to the retriever, as a distance.
        source: Who wrote the pattern: "examples", "question-forms", "zero-shot", "llm", or None. It is "chosen" if a
            language model chose it.
        confidence: How likely the answers of the pattern are right, in [0, 1]. None if nobody can tell.
        conditions: The conditions on its unknowns, all of which must hold.
        absent: Triples that must not be in the graph (negation as failure: facts that the graph lacks are taken to be
            false). Triples that share an unknown which no other triple has are absent together, such as "no prize of
            this country". Such a group names one unknown of the other triples. A known text in them stands for any
            entity called so.
        operation: The request about the things found. None for the things themselves.
        alone: Nodes that stand in no triple: all things of a type, as in "how many ports are there", or the entities
            that an operation describes, compares or connects.
        unplaced: The words of the question that the pattern does not cover.
        nearest: The relations that came nearest to the question, the nearest first.
        lacking: Clauses on things that the question asks for and an entity that it names lacks, while others have them.
        truncated: Whether a limit cut the facts that it was generated from, so that another one may fit better.
        attributes: Attributes of facts that it asks for, or limits by conditions.

    Raises:
        PatternError: If the pattern has no triples and no nodes or too many parts, if a term is empty, or if a relation
            has a type or an entity. Also if the `target` does not occur in it, or a name in a condition, an operation
            or `different` does not. Also if a node stands alone without an operation for it, if a group of absent
            triples does not name exactly one of its unknowns or forms a cycle, or if an attribute is of a triple that
            it lacks.

    Example:
        >>> Pattern.of(("Her", "directed by", Unknown("director")), target="director").to_dict()
        {'triples': [['Her', 'directed by', {'unknown': 'director'}]], 'target': 'director'}
    """

    triples: Annotated[tuple[PatternTriple, ...], Field(max_length=MAX_TRIPLES)] = ()
    target: str | None = None
    different: tuple[tuple[_Term, _Term], ...] = ()
    revisits: StrictBool | None = None
    directed: StrictBool | None = None
    typed: StrictBool | None = None
    source: str | None = field(default=None, compare=False)
    confidence: Annotated[float, Strict(), Field(ge=0, le=1)] | None = field(default=None, compare=False)
    conditions: Annotated[tuple[Condition, ...], Field(max_length=MAX_CONDITIONS)] = ()
    absent: Annotated[tuple[PatternTriple, ...], Field(max_length=MAX_ABSENT)] = ()
    operation: Annotated[
        Operation | None, BeforeValidator(lambda one: {"kind": one} if isinstance(one, str) else one)
    ] = None
    alone: Annotated[tuple[_Term, ...], Field(max_length=MAX_ALONE)] = ()
    unplaced: tuple[str, ...] = field(default=(), compare=False)
    nearest: tuple[str, ...] = field(default=(), compare=False)
    lacking: tuple[str, ...] = field(default=(), compare=False)
    truncated: StrictBool = field(default=False, compare=False)
    attributes: Annotated[tuple[FactAttribute, ...], Field(max_length=MAX_ATTRIBUTES)] = ()

    def __post_init__(self) -> None:
        """Drop repeated triples, and check that the parts fit."""
        self._check_attributes()
        for name in ("triples", "absent"):
            object.__setattr__(self, name, tuple(dict.fromkeys(getattr(self, name))))
        self._check_alone()
        for _, relation, _ in (*self.triples, *self.absent):
            if relation.type is not None or (isinstance(relation, Known) and relation.entity is not None):
                raise PatternError(f"Pattern: {relation} is a relation; only a node has a type or an entity.")
        nodes = self.nodes
        unknown = [node.name for node in nodes if isinstance(node, Unknown)]
        unknown += self.attribute_unknowns
        named = [*unknown, *(node.name for node in self._absent_nodes() if isinstance(node, Unknown))]
        if len(set(named)) < len(named):
            raise PatternError(
                "Pattern: an unknown is given with two different types, or is both a node and the value of an "
                f"attribute; unknowns are {named}."
            )
        if self.target is not None and self.target not in unknown:
            raise PatternError(f"Pattern: the target {self.target!r} is none of the unknowns {unknown}.")
        for one, other in self.different:
            if one == other or not {one, other} <= {*nodes}:
                raise PatternError(f"Pattern: {one} and {other} are said to differ, but are not two of its nodes.")
        self._check_absent()
        self._check_operations(unknown, named)

    def _check_attributes(self) -> None:
        """Check that attributes are of triples, and count a repeated triple once."""
        if not self.attributes:
            return
        first = {triple: at for at, triple in enumerate(dict.fromkeys(self.triples))}
        kept = []
        for one in self.attributes:
            if one.triple >= len(self.triples):
                raise PatternError(f"Pattern: {one} is of a triple that it lacks; it has {len(self.triples)}, from 0.")
            kept.append(replace(one, triple=first[self.triples[one.triple]]))
        object.__setattr__(self, "attributes", tuple(dict.fromkeys(kept)))

    def _check_alone(self) -> None:
        """Check that an operation asks for the nodes that stand alone."""
        kind = self.operation.kind if self.operation else "list"
        if not self.triples and not self.alone and kind != "overview":
            raise PatternError("Pattern: got no triples; a pattern needs at least one.")
        known = sum(isinstance(node, Known) for node in self.alone)
        if kind not in AROUND:
            if known or (self.alone and self.operation is None) or len(self.alone) > 1:
                raise PatternError(
                    f"Pattern: {list(self.alone)} stand in no triple. One unknown may, with an operation such as "
                    "'list' or 'count', and entities with 'connect', 'describe', 'common' or 'differ'."
                )
            return
        least, most = {"connect": (2, MAX_ALONE), "describe": (1, 1), "overview": (0, 0)}.get(kind, (2, 2))
        if self.triples or self.absent or not least <= known <= most or len(self.alone) - known > 1:
            raise PatternError(
                f"Pattern: the operation {kind!r} takes {least} to {most} known nodes that stand alone, perhaps with "
                f"one unknown, and no triples, but got {list(self.alone)} and {len(self.triples)} triples."
            )

    def _check_operations(self, unknown: Sequence[str], named: Sequence[str]) -> None:
        """Check the names in conditions and the operation."""
        for condition in self.conditions:
            if condition.unknown not in named:
                raise PatternError(
                    f"Pattern: a condition names {condition.unknown!r}, none of the unknown nodes {list(named)}."
                )
        if self.operation is None:
            return
        kind, names = self.operation.kind, filter(None, (*self.operation.by, self.operation.group))
        if strangers := [name for name in names if name not in unknown]:
            raise PatternError(f"Pattern: the operation names {strangers}, none of the unknown nodes {list(unknown)}.")
        if self.target is None and kind not in ("exists", "compare", "table", *AROUND):
            raise PatternError(f"Pattern: the operation {kind!r} needs a target, an unknown node.")
        types = [node.type for node in self.nodes if isinstance(node, Unknown) and node.name == self.target]
        if kind == "share" and not self.operation.by and not self.operation.whole and types == [None]:
            raise PatternError("Pattern: 'share' needs a target with a type, a 'whole', or an unknown in 'by'.")
        whole = self.operation.whole
        if isinstance(whole, int) and whole > len(self.triples):
            raise PatternError(f"Pattern: 'share' takes a 'whole' of at most {len(self.triples)} triples, got {whole}.")
        ends = (end for head, _, tail in self.triples[: whole if isinstance(whole, int) else 0] for end in (head, tail))
        if isinstance(whole, int) and self.target not in {end.name for end in ends if isinstance(end, Unknown)}:
            raise PatternError(f"Pattern: the first {whole} triples, the whole of 'share', do not name the target.")

    def _check_absent(self) -> None:
        relations = [relation for _, relation, _ in (*self.triples, *self.absent)]
        for _, relation, _ in self.absent:
            if isinstance(relation, Unknown) and relations.count(relation) > 1:
                raise PatternError(
                    f"Pattern: the relation {relation.name!r} of an absent triple is any relation, but another triple "
                    "names it too. Give it a name of its own."
                )
        if strange := [triple for triple in self.absent if triple in self.triples]:
            raise PatternError(f"Pattern: {strange[0]} is said to be absent, and to be present.")
        for group in self.absent_groups():
            inside = {node for triple in group for node in (triple.head, triple.tail) if node in self.nodes}
            if sum(isinstance(node, Unknown) for node in inside) != 1:
                raise PatternError(
                    f"Pattern: the absent triples {list(group)} must name one unknown of the other triples, but name "
                    f"{[node.name for node in inside if isinstance(node, Unknown)]}."
                )
            unknowns = {node for triple in group for node in (triple.head, triple.tail) if isinstance(node, Unknown)}
            if sum(unknowns >= {head, tail} for head, _, tail in group) >= len(unknowns):
                raise PatternError(f"Pattern: the absent triples {list(group)} form a cycle; that is not supported.")

    def _absent_nodes(self) -> tuple[Term, ...]:
        """The nodes that stand in absent triples alone."""
        nodes = self.nodes
        ends = (node for triple in self.absent for node in (triple.head, triple.tail))
        return tuple(dict.fromkeys(node for node in ends if node not in nodes))

    def absent_groups(self) -> list[tuple[PatternTriple, ...]]:
        """Return the absent triples in groups.

        Triples that share an unknown of no other triple are absent together.
        """
        own = {node for node in self._absent_nodes() if isinstance(node, Unknown)}
        groups: list[tuple[PatternTriple, ...]] = []
        for triple in self.absent:
            linked = own & {triple.head, triple.tail}
            joined = [group for group in groups if any(linked & {one.head, one.tail} for one in group)]
            groups = [group for group in groups if group not in joined]
            groups.append((*(one for group in joined for one in group), triple))
        return groups

    @classmethod
    def of(cls, *triples: Sequence[Term | str], **parts: Unpack[PatternParts]) -> Pattern:
        """Build a pattern by hand from `(head, relation, tail)`.

        Strings stand for known terms.
        """
        return cls(triples=triples, **parts)  # type: ignore[arg-type] # texts become terms

    @cached_property
    def nodes(self) -> tuple[Term, ...]:
        """The nodes, each once, in order of first occurrence."""
        ends = (node for triple in self.triples for node in (triple.head, triple.tail))
        return tuple(dict.fromkeys((*self.alone, *ends)))

    @property
    def attribute_unknowns(self) -> tuple[str, ...]:
        """The names of the unknowns that are values of attributes, each once."""
        return tuple(dict.fromkeys(one.unknown for one in self.attributes))

    def with_nodes(self, new: Mapping[Any, Term]) -> Pattern:
        """Return the pattern with other nodes in place of some of its own."""

        def renamed(triples: Sequence[PatternTriple]) -> tuple[PatternTriple, ...]:
            return tuple(PatternTriple(new.get(head, head), one, new.get(tail, tail)) for head, one, tail in triples)

        apart = tuple((new.get(one, one), new.get(other, other)) for one, other in self.different)
        alone = tuple(new.get(node, node) for node in self.alone)
        return replace(self, triples=renamed(self.triples), absent=renamed(self.absent), different=apart, alone=alone)


#: Words that exclude the entity that the question names.
EXCLUDING = re.compile(
    r"\b(?:another|others?|else|also|besides|fellow)\b|\bco-\w|\bsame\b.*\bas\b", re.IGNORECASE | re.DOTALL
)


class Revisits(NamedTuple):
    """Whether an unknown may be an entity that the pattern names.

    Attributes:
        allowed: Whether it may.
        certain: Whether that holds even if nothing is found.
    """

    allowed: bool
    certain: bool


def decide_revisits(pattern: Pattern, question: str = "") -> Revisits:
    """Decide whether an unknown may be an entity that the pattern names.

    The walks of a pattern lead from its known nodes over its unknown ones. Two steps of which one has an unknown
    relation count as a forward and a backward one.

    Args:
        pattern: The pattern.
        question: Its question. The names that the pattern knows do not count as words.

    Example:
        >>> by, child = Unknown("director"), Unknown("child")
        >>> decide_revisits(Pattern.of(("Her", "directed by", by), (Unknown("film"), "directed by", by)))
        Revisits(allowed=False, certain=False)
        >>> decide_revisits(Pattern.of(("Ann", "child", child), (child, "parent", Unknown("parent"))))
        Revisits(allowed=True, certain=True)
    """
    if pattern.revisits is not None:
        return Revisits(pattern.revisits, True)
    names = [node.text for node in pattern.nodes if isinstance(node, Known)]
    return decide(None, excluded=excludes_named(question, names), turning=_turns_somewhere(pattern))


def decide(stated: bool | None, *, excluded: bool, turning: bool) -> Revisits:
    """Decide whether a walk may return to the entity from which it starts.

    Args:
        stated: The statement of the writer of the walk, or None.
        excluded: Whether words of the question exclude the entity.
        turning: Whether the walk has both a forward and a backward step.
    """
    if stated is not None:
        return Revisits(stated, True)
    return Revisits(allowed=not (excluded or turning), certain=excluded == turning)


def excludes_named(question: str, names: Iterable[str] = ()) -> bool:
    """Tell whether a question's words exclude its entities from the answers.

    Args:
        question: The question.
        names: The names of the entities, whose own words do not count.

    Example:
        >>> excludes_named("Who else directed Her?"), excludes_named("Who directed The Other?", ["The Other"])
        (True, False)
    """
    rest = question
    for name in sorted(filter(None, names), key=len, reverse=True):
        rest = re.sub(re.escape(name), "_", rest, flags=re.IGNORECASE)
    return EXCLUDING.search(rest) is not None


def turns(backward: Sequence[bool]) -> bool:
    """Tell whether a walk has both a forward and a backward step.

    Args:
        backward: Whether each step is backward.
    """
    return any(backward) and not all(backward)


#: The state of a walk of a pattern: at a node, by an edge, with the directions of its steps so far.
_Place = tuple[Term, int, frozenset[bool]]


def _turns_somewhere(pattern: Pattern) -> bool:
    """Tell whether a walk from a known node has both directions.

    The walk goes over unknown nodes, and never straight back.
    """
    known: list[_Place] = [(node, -1, frozenset()) for node in pattern.nodes if isinstance(node, Known)]
    waiting, seen = deque(known), set(known)
    while waiting:
        here, came, directions = waiting.popleft()
        for edge, (head, relation, tail) in enumerate(pattern.triples):
            there = tail if here == head else head
            if edge == came or here not in (head, tail) or isinstance(there, Known):
                continue
            crossed = {False, True} if isinstance(relation, Unknown) else {here != head}
            place = there, edge, directions | crossed
            if directions and len(place[2]) == 2:
                return True
            if place not in seen:
                seen.add(place)
                waiting.append(place)
    return False
