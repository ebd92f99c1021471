"""Bounds what a SPARQL query joins: how much at once, and no parts that multiply each other.

Each group is read by itself, as engines evaluate it. Its triples fall into parts: two that share a subject or object
are in one part. A part has a beginning where a subject or object of it is a term rather than a variable; a class does
not count, since it has many members. Of parts without a beginning a group may have one: the rows of two are all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from kg_retrievers.database.sparql.tokens import Token, refusal
from kg_retrievers.database.sparql.triples import Group, Part, TripleReader, merged, variables_of

#: How much a group may join: its triples, the further steps of its paths, two triples for each item of a collection,
#: and VALUES, UNION and sub-queries. (Oxigraph plans 0.1 s for 60 triples at one node, 0.8 s for 100, 4 s for 150.)
MAX_JOINED = 60

#: How many rows a sub-query may be limited to and count as a beginning.
FEW_ROWS = 100

_AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")


def check_joins(
    query: str,
    tokens: Sequence[Token],
    closing: Mapping[int, int],
    start: int,
    where: int,
    expand: Callable[[Token], str],
) -> None:
    """Refuse a query that joins too much at once, or parts that multiply each other.

    Args:
        query: The text of the query.
        tokens: Its tokens.
        closing: Where each bracket is closed.
        start: The position of SELECT or ASK.
        where: The position of the bracket behind WHERE.
        expand: Returns the IRI of a prefixed name.

    Raises:
        SparqlSafetyError: If it does, or if what stands in a group cannot be read.
    """
    _Joins(query, tokens, closing, expand).of_select(start, where, len(tokens) - 1)


class _Joins(TripleReader):
    """Reads the groups of one query."""

    def of_select(self, start: int, where: int, end: int) -> list[Part]:
        """Check a query or sub-query, of which SELECT stands at `start`; return the parts of its WHERE."""
        tail = self.closing[where] + 1
        given = set[str]()
        for at in range(tail, end):
            if self.tokens[at].word == "VALUES":
                given |= self._named(at, end)
        parts = self._group(where, given).parts
        for first, last in ((start, where), (tail, end)):
            self._expressions(first, last, variables_of(parts))
        self.at = end
        return parts

    def _group(self, opening: int, given: Collection[str] = ()) -> Group:
        """Check the group whose bracket stands at `opening`; a part with a given variable begins there."""
        group, end = Group(), self.closing[opening]
        self.at = opening + 1
        while self.at < end:
            self._element(group)
            if group.count > MAX_JOINED:
                raise refusal(self.query, self.tokens[self.at], f", behind {MAX_JOINED} triples {_AT_ONCE}")
        every = [part for union in group.unions for branch in union for part in branch]
        chosen = [(branch, union) for union in group.unions for branch in union]
        for branch, union in chosen:
            others = [part for other in group.unions if other is not union for one in other for part in one]
            self._check_apart(merged([*group.parts, *others, *branch]), given)
        parts = merged([*group.parts, *every])
        if not chosen:
            self._check_apart(parts, given)
        for inner, is_joined in group.within:
            bound = variables_of(parts) | set(given)
            found = self._group(inner, bound).parts
            if is_joined:
                self._check_apart([*parts, *(part for part in found if not part.variables & bound)], given)
                parts = merged([*parts, *found])
        self.at = end + 1
        return Group(parts, count=group.count)

    def _check_apart(self, parts: Sequence[Part], given: Collection[str]) -> None:
        free = [part for part in parts if part.many and not part.begins and not part.variables.intersection(given)]
        if len(free) > 1:
            raise refusal(self.query, free[1].token, f", where a part begins that shares no variable {_APART}")

    def _element(self, group: Group) -> None:
        token = self.tokens[self.at]
        match token.word:
            case ".":
                self.at += 1
            case "{":
                self._alternatives(group)
            case "OPTIONAL" | "MINUS" | "GRAPH":
                self._marked(group, token)
            case "FILTER":
                self._filter(group)
            case "BIND":
                self._bind(group, token)
            case "VALUES":
                named = self._named(self.at, len(self.tokens))
                self.join(group, Part(token, frozenset(named), begins=True, many=False))
                while self.tokens[self.at].text != "{":
                    self.at += 1
                self.at = self.closing[self.at] + 1
            case _:
                self.read_triples(group)

    # Groups in groups -------------------------------------------------------------------------------------------------

    def _alternatives(self, group: Group) -> None:
        token, found = self.tokens[self.at], list[Group]()
        while True:
            self.expect("{")
            following = self.tokens[self.at + 1]
            found.append(
                Group([self._sub_query(token)], count=1) if following.word == "SELECT" else self._group(self.at)
            )
            if self.tokens[self.at].word != "UNION":
                break
            self.at += 1
        if len(found) > 1:
            group.unions.append([one.parts for one in found])
            group.count += 1
        else:
            group.parts += found[0].parts
            group.count += found[0].count  # an engine joins it with what is around

    def _sub_query(self, token: Token) -> Part:
        start, end = self.at + 1, self.closing[self.at]
        where = start
        while self.tokens[where].text != "{" and where < end:
            where = self.closing.get(where, where) + 1
        if where >= end:
            raise self.unread(self.tokens[end])
        inside = self.of_select(start, where, end)
        self.at = end + 1
        selected, tail = list(self._outside(start, where)), list(self._outside(self.closing[where] + 1, end))
        is_sum = any(self.tokens[at].word in _AGGREGATES for at in selected)
        is_sum &= all(self.tokens[at].word != "GROUP" for at in tail)
        counts = (int(self.tokens[at + 1].text) for at in tail if self.tokens[at].word == "LIMIT")
        begins = is_sum or any(count <= FEW_ROWS for count in counts)
        begins |= all(part.begins or not part.many for part in inside)
        return Part(token, frozenset(self._columns(start, where)), begins)

    def _columns(self, start: int, where: int) -> set[str]:
        """Return the columns of a sub-query: variables, and those behind AS."""
        found, at = set[str](), start
        while at < where:
            if at in self.closing:
                at = self.closing[at]
                found.add(self.tokens[at - 1].name)
            elif self.tokens[at].kind == "variable":
                found.add(self.tokens[at].name)
            at += 1
        return found

    def _outside(self, start: int, end: int) -> Iterator[int]:
        """Yield the positions that are in no group."""
        at = start
        while at < end:
            yield at
            at = self.closing[at] if self.tokens[at].text == "{" else at + 1

    def _marked(self, group: Group, mark: Token) -> None:
        self.at += 1
        graph: Token | None = None
        if mark.word == "GRAPH":
            graph = self.tokens[self.at]
            self.at += 1
        self.expect("{")
        if mark.word == "OPTIONAL":
            group.within.append((self.at, True))
            self.at = self.closing[self.at] + 1
            return
        inside = self._group(self.at)
        if graph is not None:
            name = {graph.name} if graph.kind == "variable" else set()
            group.parts += [replace(part, relations=part.relations | name) for part in inside.parts]
            group.count += inside.count

    def _filter(self, group: Group) -> None:
        start = self.at
        while self.at not in self.closing:
            if self.tokens[self.at].kind == "end":
                raise self.unread(self.tokens[self.at])
            self.at += 1
        self.at = self.closing[self.at] + 1
        group.within += [(at, False) for at in self._exists(start, self.at)]

    def _bind(self, group: Group, token: Token) -> None:
        """Read a value: of no variable, it begins a part; of one, it belongs to that one; of more, to none."""
        self.at += 1
        self.expect("(")
        start, end = self.at, self.closing[self.at]
        names = [one.name for one in self.tokens[start:end] if one.kind == "variable"]
        group.within += [(at, False) for at in self._exists(start, end)]
        own, of = set(names[-1:]), set(names[:-1])
        variables = frozenset(own | of if len(of) == 1 else own)
        self.join(group, Part(token, variables, begins=not of, many=False))
        self.at = end + 1

    def _exists(self, start: int, end: int) -> list[int]:
        """Return where the outermost groups in an expression begin."""
        return [at for at in self._outside(start, end) if self.tokens[at].text == "{"]

    def _expressions(self, start: int, end: int, given: Collection[str]) -> None:
        for at in self._exists(start, end):
            if self.tokens[at - 1].word == "EXISTS":
                self._group(at, given)

    def _named(self, at: int, end: int) -> set[str]:
        """Return the variables of VALUES."""
        found = set[str]()
        while at < end and self.tokens[at].text != "{":
            if self.tokens[at].kind == "variable":
                found.add(self.tokens[at].name)
            at += 1
        if at >= end:
            raise self.unread(self.tokens[-1])
        return found


_AT_ONCE = "that are joined at once, the most there may be. Ask for less, or put some into a sub-query with a LIMIT"
_APART = (
    "with the part before, and of both no subject or object is named, so that each row of one meets each row of the "
    "other. Join them by a variable, name an entity, or ask twice"
)
