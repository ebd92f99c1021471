"""The types that all packages share: Triple, Path, Pattern, Evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kg_retrievers.errors import InvalidArgumentError, PatternError


class Triple(NamedTuple):
    """One fact, in the direction in which the graph stores it. `head` and `tail` are entity keys."""

    head: str
    relation: str
    tail: str


@dataclass(frozen=True)
class Path:
    """A walk over triples, each crossed forwards or backwards.

    Args:
        entities: The n + 1 entity keys in the order of the walk.
        triples: The n triples between them, in stored direction.

    Raises:
        InvalidArgumentError: If a triple does not join its two entities.
    """

    entities: tuple[str, ...]
    triples: tuple[Triple, ...]

    def __post_init__(self) -> None:
        """Check that each triple joins neighbouring entities."""
        if len(self.entities) != len(self.triples) + 1:
            raise InvalidArgumentError(
                f"Path: {len(self.triples)} triples join {len(self.triples) + 1} entities, "
                f"but got {len(self.entities)}."
            )
        for here, there, triple in zip(self.entities, self.entities[1:], self.triples, strict=False):
            if (here, there) not in ((triple.head, triple.tail), (triple.tail, triple.head)):
                raise InvalidArgumentError(f"Path: {triple} does not join {here!r} and {there!r}.")

    @classmethod
    def along(cls, start: str, triples: Sequence[Triple]) -> Path:
        """Return the walk from an entity over these triples, one after the other.

        Raises:
            InvalidArgumentError: If a triple does not begin or end where the walk has come to.
        """
        entities = [start]
        for triple in triples:
            entities.append(triple.tail if triple.head == entities[-1] else triple.head)
        return cls(tuple(entities), tuple(triples))

    @property
    def relations(self) -> tuple[str, ...]:
        """The relation path: the relations in the order of the walk."""
        return tuple(triple.relation for triple in self.triples)


def path_rows(paths: Iterable[Path], triples: Sequence[Triple]) -> list[list[Any]]:
    """Return walks as JSON holds them beside their triples: `[[first entity, [position of a triple, ...]], ...]`.

    Args:
        paths: The walks.
        triples: All triples of the walks, each once; positions count from 0.

    Example:
        >>> triples = [Triple("Her", "directed_by", "Jonze"), Triple("Jackass", "directed_by", "Jonze")]
        >>> path_rows([Path.along("Her", triples), Path.along("Jackass", triples[1:])], triples)
        [['Her', [0, 1]], ['Jackass', [1]]]
    """
    positions = {triple: position for position, triple in enumerate(triples)}
    return [[path.entities[0], [positions[triple] for triple in path.triples]] for path in paths]


def read_paths(rows: object, triples: Sequence[Triple]) -> list[Path]:
    """Return the walks that `path_rows` wrote; leave out those that are no walk over one or more of these triples."""
    read = []
    for row in rows if isinstance(rows, list | tuple) else ():
        match row:
            case [str(start), [_, *_] as positions]:
                known = [at for at in positions if type(at) is int and 0 <= at < len(triples)]
                crossed = [triples[at] for at in known]
                if len(crossed) == len(positions):
                    with suppress(InvalidArgumentError):
                        read.append(Path.along(start, crossed))
    return read


@dataclass(frozen=True)
class Known:
    """A node or relation of a pattern that is known by its text.

    Args:
        text: What it is called, as a person would write it.
        type: The type a node should have, or None.
        entity: The key of the entity, when the node is already linked; then nothing else can match it.
    """

    text: str
    type: str | None = None
    entity: str | None = None


@dataclass(frozen=True)
class Unknown:
    """A node or relation of a pattern that is to be found. Equal names are the same unknown.

    Args:
        name: A name that is unique in its pattern, as in "film 1".
        type: The type a node should have, or None.
    """

    name: str
    type: str | None = None


Term = Known | Unknown


class PatternTriple(NamedTuple):
    """One edge of a pattern."""

    head: Term
    relation: Term
    tail: Term


@dataclass(frozen=True)
class Pattern:
    """The small graph that a question asks for.

    The class, never the text, says whether a term is known, so a film may be called "Unknown".
    Equal terms are the same node; a plain string stands for `Known(string)`; a repeated triple counts once.

    Args:
        triples: The edges, `(head, relation, tail)`.
        target: The name of the unknown node that is asked for, or None.
        different: Pairs of nodes that must not be the same entity.
        revisits: Whether an unknown may be an entity that the pattern names, as the other parent of one's child is not;
            None leaves it to the retriever.
        directed: Whether the directions of the triples count; None leaves it to the retriever.
        source: Who wrote the pattern: "llm", "examples", "zero-shot", or None. This and what follows are not part of
            equality.
        confidence: How likely the answers of the pattern are right, in [0, 1]; None where nobody can tell.
        unplaced: The words of the question that the pattern does not cover.
        nearest: The relations that came nearest to the question, the nearest first.

    Raises:
        PatternError: If the pattern has no triples, a term is empty, a relation has a type or an entity, or `target`
            or a node of `different` does not occur in it.

    Example:
        >>> Pattern.of(("Her", "directed by", Unknown("director")), target="director").to_dict()
        {'triples': [['Her', 'directed by', {'unknown': 'director'}]], 'target': 'director'}
    """

    triples: tuple[PatternTriple, ...]
    target: str | None = None
    different: tuple[tuple[Term, Term], ...] = ()
    revisits: bool | None = None
    directed: bool | None = None
    source: str | None = field(default=None, compare=False)
    confidence: float | None = field(default=None, compare=False)
    unplaced: tuple[str, ...] = field(default=(), compare=False)
    nearest: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        """Turn tuples into triples and strings into terms, drop repeated triples, check that the parts fit."""
        triples = dict.fromkeys(PatternTriple(*map(_term, triple)) for triple in self.triples)
        object.__setattr__(self, "triples", tuple(triples))
        object.__setattr__(self, "different", tuple((_term(a), _term(b)) for a, b in self.different))
        if not self.triples:
            raise PatternError("Pattern: got no triples; a pattern needs at least one.")
        for _, relation, _ in self.triples:
            if relation.type is not None or (isinstance(relation, Known) and relation.entity is not None):
                raise PatternError(f"Pattern: {relation} is a relation; only a node has a type or an entity.")
        self._check_understanding()
        nodes = self.nodes
        unknown = [node.name for node in nodes if isinstance(node, Unknown)]
        if len(set(unknown)) < len(unknown):
            raise PatternError(f"Pattern: an unknown is given with two different types; unknowns are {unknown}.")
        if self.target is not None and self.target not in unknown:
            raise PatternError(f"Pattern: the target {self.target!r} is none of the unknown nodes {unknown}.")
        for pair in self.different:
            for node in pair:
                if node not in nodes:
                    raise PatternError(f"Pattern: {node} is said to differ from another node, but is no node of it.")
            if pair[0] == pair[1]:
                raise PatternError(f"Pattern: {pair[0]} cannot differ from itself.")

    def _check_understanding(self) -> None:
        for name in ("revisits", "directed"):
            if not isinstance(getattr(self, name), bool | None):
                raise PatternError(
                    f"Pattern: {name!r} must be true, false or left out, but got {getattr(self, name)!r}."
                )
        if self.confidence is not None and not _is_share(self.confidence):
            raise PatternError(f"Pattern: 'confidence' must be a number from 0 to 1, but got {self.confidence!r}.")

    @classmethod
    def of(
        cls,
        *triples: Sequence[Term | str],
        target: str | None = None,
        different: Iterable[Sequence[Term | str]] = (),
        revisits: bool | None = None,
        directed: bool | None = None,
        source: str | None = None,
        confidence: float | None = None,
        unplaced: Iterable[str] = (),
        nearest: Iterable[str] = (),
    ) -> Pattern:
        """Build a pattern by hand from `(head, relation, tail)` with strings for what is known."""
        edges = []
        for triple in triples:
            if len(triple) != 3:
                raise PatternError(f"Pattern: a triple has a head, a relation and a tail, but got {list(triple)!r}.")
            edges.append(PatternTriple(*map(_term, triple)))
        pairs = tuple((_term(a), _term(b)) for a, b in different)
        return cls(
            tuple(edges),
            target,
            pairs,
            revisits,
            directed,
            source,
            confidence,
            unplaced=tuple(unplaced),
            nearest=tuple(nearest),
        )

    @property
    def nodes(self) -> tuple[Term, ...]:
        """The nodes, each once, in order of first occurrence."""
        return tuple(dict.fromkeys(node for triple in self.triples for node in (triple.head, triple.tail)))

    def with_known(self, terms: Mapping[Known, Known]) -> Pattern:
        """Return the pattern with other known nodes in place of some of its own."""

        def new(node: Term) -> Term:
            return terms.get(node, node) if isinstance(node, Known) else node

        triples = tuple(PatternTriple(new(head), relation, new(tail)) for head, relation, tail in self.triples)
        return replace(self, triples=triples, different=tuple((new(a), new(b)) for a, b in self.different))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dictionary that `from_dict` reads back.

        A known term without type or entity is a string; any other term is an object with the key "known" or
        "unknown". Keys without a value are left out.
        """
        data: dict[str, Any] = {"triples": [[_term_to_json(term) for term in triple] for triple in self.triples]}
        if self.target is not None:
            data["target"] = self.target
        if self.different:
            data["different"] = [[_term_to_json(a), _term_to_json(b)] for a, b in self.different]
        optional = {name: getattr(self, name) for name in ("revisits", "directed", "source", "confidence")}
        data |= {name: value for name, value in optional.items() if value is not None}
        words = {"unplaced": list(self.unplaced), "nearest": list(self.nearest)}
        data |= {name: value for name, value in words.items() if value}
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Pattern:
        """Read what `to_dict` wrote, or a person edited.

        Raises:
            PatternError: If a key is unknown or missing, or a value has the wrong shape.
        """
        if not isinstance(data, Mapping):
            raise PatternError(f"Pattern: wanted an object with the key 'triples', but got {data!r}.")
        known = [
            "triples",
            "target",
            "different",
            "revisits",
            "directed",
            "source",
            "confidence",
            "unplaced",
            "nearest",
        ]
        if strange := [key for key in data if key not in known]:
            raise PatternError(f"Pattern: unknown keys {strange}; known are {known}.")
        triples, different = data.get("triples"), data.get("different", [])
        if not isinstance(triples, Sequence) or isinstance(triples, str):
            raise PatternError(f"Pattern: 'triples' must be a list of [head, relation, tail], but got {triples!r}.")
        if not isinstance(different, Sequence) or isinstance(different, str):
            raise PatternError(f"Pattern: 'different' must be a list of pairs of nodes, but got {different!r}.")
        edges = [tuple(map(_term_from_json, _items(triple, 3))) for triple in triples]
        pairs = [tuple(map(_term_from_json, _items(pair, 2))) for pair in different]
        for name in ("target", "source"):
            if not isinstance(data.get(name), str | None):
                raise PatternError(f"Pattern: {name!r} must be a text, but got {data[name]!r}.")
        for name in ("unplaced", "nearest"):
            if not _are_texts(data.get(name, [])):
                raise PatternError(f"Pattern: {name!r} must be a list of texts, but got {data[name]!r}.")
        optional = {name: data[name] for name in known[1:] if name in data}
        return cls.of(*edges, **{**optional, "different": pairs})


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _are_texts(values: object) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(value, str) for value in values)


def _items(value: object, length: int) -> Sequence[Any]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != length:
        raise PatternError(f"Pattern: wanted a list of {length} terms, but got {value!r}.")
    return value


def _term(value: Term | str) -> Term:
    term = Known(value) if isinstance(value, str) else value
    if not isinstance(term, Known | Unknown):
        raise PatternError(f"Pattern: a term is a text, Known or Unknown, but got {value!r}.")
    if not (term.text if isinstance(term, Known) else term.name).strip():
        raise PatternError("Pattern: a term has an empty text.")
    return term


def _term_to_json(term: Term) -> str | dict[str, str]:
    if isinstance(term, Unknown):
        return {"unknown": term.name} | ({"type": term.type} if term.type is not None else {})
    if term.type is None and term.entity is None:
        return term.text
    optional = {"type": term.type, "entity": term.entity}
    return {"known": term.text} | {key: value for key, value in optional.items() if value is not None}


def _term_from_json(value: object) -> Term:
    if isinstance(value, str):
        return _term(value)
    if isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values()):
        keys = set(value)
        if "unknown" in keys and keys <= {"unknown", "type"}:
            return _term(Unknown(value["unknown"], value.get("type")))
        if "known" in keys and keys <= {"known", "type", "entity"}:
            return _term(Known(value["known"], value.get("type"), value.get("entity")))
    raise PatternError(f'Pattern: a term is a text or {{"unknown": name}}, with "type" if wanted, but got {value!r}.')


@dataclass(frozen=True)
class Evidence:
    """A part of the graph that supports an answer to a question, with everything needed to cite it.

    Args:
        triples: The facts, in stored direction, most important first.
        score: How well they fit; higher is better, always.
        answers: The entity keys proposed as answers, best first; empty if the method proposes none.
        truncated: True if a limit cut the search, so that there may be more or better evidence.
        confidence: How likely the answers are right, in [0, 1]; None where the method cannot tell. The score rates the
            evidence against the pattern, the confidence rates the pattern against the question.
        details: What the method adds, as JSON-safe values. "paths" holds the walks that the facts form, if any, as
            `path_rows` writes them.
    """

    triples: tuple[Triple, ...]
    score: float
    answers: tuple[str, ...] = ()
    truncated: bool = False
    confidence: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
