"""Reads the triples of a group of a SPARQL query, and which of them share variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kg_retrievers.database.sparql.tokens import Token, refusal
from kg_retrievers.errors import SparqlSafetyError
from kg_retrievers.graph.iris import WELL_KNOWN

_TYPE = WELL_KNOWN["rdf"] + "type"
_TERMS = ("iri", "prefixed", "string", "number", "parameter")
_ELEMENTS = ("OPTIONAL", "MINUS", "GRAPH", "FILTER", "BIND", "VALUES")


@dataclass(frozen=True)
class Part:
    """What shares variables, from a token on.

    Attributes:
        variables: Those of its subjects and objects.
        begins: Whether it begins at a term.
        many: Whether it holds what may have any number of rows.
        relations: Variables for relations and graphs. Two parts that share no other variable are still all pairs,
            nearly; one whose relations are the subjects of another is one with it.
    """

    token: Token
    variables: frozenset[str]
    begins: bool = False
    many: bool = True
    relations: frozenset[str] = frozenset()

    def meets(self, other: Part) -> bool:
        """Return whether both are one part."""
        related = self.relations & other.variables or other.relations & self.variables
        return bool(self.variables & other.variables or (related and self.many and other.many))

    def joined(self, other: Part) -> Part:
        """Return both as one part."""
        return Part(
            self.token,
            self.variables | other.variables,
            self.begins or other.begins,
            self.many or other.many,
            self.relations | other.relations,
        )


@dataclass
class Group:
    """What a group joins.

    Attributes:
        parts: What it joins in any case.
        unions: The parts of each alternative of each UNION.
        within: Where the groups of OPTIONAL and EXISTS begin, and whether these are joined.
        count: How much is joined at once.
    """

    parts: list[Part] = field(default_factory=list)
    unions: list[list[list[Part]]] = field(default_factory=list)
    within: list[tuple[int, bool]] = field(default_factory=list)
    count: int = 0


def merged(parts: Sequence[Part]) -> list[Part]:
    """Return parts that are apart from each other, in the order of their first tokens."""
    found: list[Part] = []
    for part in parts:
        apart: list[Part] = []
        for one in found:
            if one.meets(part):
                part = one.joined(part)
            else:
                apart.append(one)
        found = [*apart, part]
    if len(found) < len(parts):
        return merged(found)
    return sorted(found, key=lambda part: part.token.position)


def variables_of(parts: Iterable[Part]) -> set[str]:
    """Return the variables of parts."""
    return {name for part in parts for name in part.variables | part.relations}


class TripleReader:
    """Reads triples, from the token `at` on.

    Args:
        query: The text of the query.
        tokens: Its tokens.
        closing: Where each bracket is closed.
        expand: Returns the IRI of a prefixed name.
    """

    def __init__(
        self, query: str, tokens: Sequence[Token], closing: Mapping[int, int], expand: Callable[[Token], str]
    ) -> None:
        """Begin at the first token."""
        self.query, self.tokens, self.closing, self.expand = query, tokens, closing, expand
        self.at = 0

    def join(self, group: Group, part: Part) -> None:
        """Join a part to a group."""
        group.parts.append(part)
        group.count += 1

    def read_triples(self, group: Group) -> None:
        """Read the triples of one subject."""
        token = self.tokens[self.at]
        subject = self._node(group)
        if token.text not in ("[", "(") or self._is_verb(self.tokens[self.at]):
            self._properties(group, subject)
        if self.tokens[self.at].text not in (".", "{", "}") and self.tokens[self.at].word not in _ELEMENTS:
            raise self.unread(self.tokens[self.at])

    def _properties(self, group: Group, subject: str | None) -> None:
        while True:
            verb, start = self.tokens[self.at], self.at
            relation = self._verb(group)
            of_class = any(map(self._is_type, self.tokens[start : self.at]))
            while True:
                thing = self._node(group)
                names = frozenset(name for name in (subject, thing) if name is not None)
                begins = subject is None or (thing is None and not of_class)
                relations = frozenset() if relation is None else frozenset([relation])
                self.join(group, Part(verb, names, begins, relations=relations))
                if self.tokens[self.at].text != ",":
                    break
                self.at += 1
            if self.tokens[self.at].text != ";":
                return
            while self.tokens[self.at].text == ";":
                self.at += 1
            if not self._is_verb(self.tokens[self.at]):
                return

    def _is_type(self, verb: Token) -> bool:
        iri = self.expand(verb) if verb.kind == "prefixed" else verb.text.strip("<>")
        return verb.text == "a" or iri == _TYPE

    def _is_verb(self, token: Token) -> bool:
        return token.kind in ("iri", "prefixed", "variable", "parameter") or token.text in ("a", "^", "!", "(")

    def _verb(self, group: Group) -> str | None:
        """Read a relation or path; return the variable, if it is one."""
        token = self.tokens[self.at]
        if token.kind == "variable":
            self.at += 1
            return token.name
        wants_step = True
        while True:
            token = self.tokens[self.at]
            if wants_step and token.text in ("^", "!"):
                self.at += 1
            elif wants_step and (token.text in ("(", "a") or token.kind in ("iri", "prefixed", "parameter")):
                end = self.closing.get(self.at, self.at)
                group.count += sum(one.text == "/" for one in self.tokens[self.at : end])
                self.at, wants_step = end + 1, False
            elif not wants_step and (token.text in ("?", "*") or (token.text == "+" and not self._is_signed())):
                self.at += 1
            elif not wants_step and token.text in ("/", "|"):
                group.count += token.text == "/"
                self.at, wants_step = self.at + 1, True
            elif wants_step:
                raise self.unread(token)
            else:
                return None

    def _is_signed(self) -> bool:
        """Return whether a sign belongs to the number behind it."""
        sign, number = self.tokens[self.at : self.at + 2]
        return number.kind == "number" and number.position == sign.end

    def _node(self, group: Group) -> str | None:
        """Read a subject or object; return its variable, or None for a term."""
        at, token = self.at, self.tokens[self.at]
        self.at += 1
        if token.kind == "variable":
            return token.name
        if token.text.startswith("_:"):
            return token.text
        if token.text in ("[", "("):
            return self._nested(group, token, at)
        if token.text in ("+", "-") and self.tokens[self.at].kind == "number":
            self.at += 1
        elif token.kind not in _TERMS and token.text.lower() not in ("true", "false"):
            raise self.unread(token)
        if self.tokens[self.at].kind == "language":
            self.at += 1
        elif self.tokens[self.at].text == "^^":
            self.at += 2
        return None

    def _nested(self, group: Group, token: Token, at: int) -> str | None:
        """Read a node without a name, or a collection: two triples for each item."""
        own, end = f"{token.text}{at}", self.closing[at]
        if token.text == "[":
            if self.at < end:
                self._properties(group, own)
        elif self.at == end:
            own = ""
        while token.text == "(" and self.at < end:
            item = self._node(group)
            names = frozenset(name for name in (own, item) if name is not None)
            self.join(group, Part(token, names, begins=item is None))
            group.count += 1
        self.expect("]" if token.text == "[" else ")")
        self.at = end + 1
        return own or None

    def expect(self, sign: str) -> None:
        """Refuse another token than a sign."""
        if self.tokens[self.at].text != sign:
            raise self.unread(self.tokens[self.at])

    def unread(self, token: Token) -> SparqlSafetyError:
        """Return the error where a token cannot stand."""
        return refusal(
            self.query, token, ", where SPARQL has something else. A triple is a subject, a relation and an object"
        )
