"""Bound the joins of a SPARQL query.

The bounds limit how much it joins at once, and forbid parts that multiply each other.

rdflib parses the query. Each group is read by itself, as engines evaluate it. Its triples fall into parts: two that
share a subject or object are in one part. A part has a beginning if a subject or object of it is a term. A class does
not count, since it has many members. A part that begins leads to another part if a relation or graph of the first is a
subject or object of the other. A group may have one part without a beginning, and the parts to which it leads, since
the rows of two such parts are all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rdflib.namespace import RDF
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import BNode, Variable

#: How much a group may join: its triples, the further steps of its paths, two triples for each item of a collection,
#: and VALUES, UNION and sub-queries. (Oxigraph plans 0.1 s for 60 triples at one node, 0.8 s for 100, 4 s for 150.)
MAX_JOINED = 60

#: How many rows a sub-query may be limited to and count as a beginning.
FEW_ROWS = 100

AT_ONCE = (
    f"behind {MAX_JOINED} triples that are joined at once, the most there may be. Ask for less, or put some into a "
    "sub-query with a LIMIT"
)
APART = (
    "where a part begins that shares no variable with the part before, and of both no subject or object is named, so "
    "that each row of one meets each row of the other. Join them by a variable, name an entity, or ask twice"
)

#: Raises the error of a query from the variables at the place, and the reason.
Refuse = Callable[[Iterable[str], str], None]


class Part(NamedTuple):
    """Triples that share variables.

    Attributes:
        variables: Those of its subjects and objects.
        begins: Whether it begins at a term.
        relations: Variables for relations and graphs. Two parts that share no other variable are still all pairs,
            nearly. A part leads to another whose subjects or objects they are.
        many: Whether it holds patterns with any number of rows.
    """

    variables: frozenset[str]
    begins: bool = False
    relations: frozenset[str] = frozenset()
    many: bool = True


@dataclass
class _Group:
    """The joins of a group.

    Attributes:
        parts: The parts that it joins in any case.
        unions: The parts of each alternative of each UNION.
        within: The groups of OPTIONAL and EXISTS, and whether these are joined.
        count: How much is joined at once.
    """

    parts: list[Part] = field(default_factory=list)
    unions: list[list[list[Part]]] = field(default_factory=list)
    within: list[tuple[CompValue, bool]] = field(default_factory=list)
    count: int = 0

    def join(self, part: Part) -> None:
        """Add a part."""
        self.parts.append(part)
        self.count += 1


def merged(parts: Iterable[Part]) -> list[Part]:
    """Return parts that are apart from each other."""
    found: list[Part] = []
    for part in parts:
        joined = [one for one in found if one.variables & part.variables]
        found = [one for one in found if one not in joined]
        variables, begins, relations, many = zip(part, *joined, strict=True)
        found.append(Part(frozenset().union(*variables), any(begins), frozenset().union(*relations), any(many)))
    return found


def walk(tree: Any) -> Iterator[Any]:
    """Yield a parse tree and all nodes below it.

    Of the group of an EXISTS, only its node is yielded.
    """
    yield tree
    if isinstance(tree, CompValue):
        if tree.name not in ("Builtin_EXISTS", "Builtin_NOTEXISTS"):
            for inner in tree.values():
                yield from walk(inner)
    elif not isinstance(tree, str):
        for inner in tree if hasattr(tree, "__iter__") else ():
            yield from walk(inner)


def check_joins(query: CompValue, refuse: Refuse, is_type: Callable[[CompValue], bool]) -> None:
    """Refuse a query that joins too much at once.

    Parts that multiply each other are refused, too.

    Args:
        query: The parse tree of a SELECT.
        refuse: Raises the error, given the variables at the place and the reason.
        is_type: Returns whether a prefixed name is `rdf:type`.
    """
    _Joins(refuse, is_type).of_select(query)


class _Joins:
    """Reads the groups of one query."""

    def __init__(self, refuse: Refuse, is_type: Callable[[CompValue], bool]) -> None:
        self.refuse, self.is_type = refuse, is_type

    def of_select(self, query: CompValue) -> list[Part]:
        """Check a query or sub-query, and return the parts of its WHERE."""
        given = _names(query.valuesClause.var) if query.valuesClause else frozenset[str]()
        parts = self.group(query.where, given).parts
        for clause in (query.projection, query.groupby, query.having, query.orderby):
            for inner in _exists(clause):
                self.group(inner, _variables_of(parts))
        return parts

    def group(self, tree: CompValue, given: Collection[str] = ()) -> _Group:
        """Check a group, in which a part with a given variable begins."""
        group = _Group()
        if tree.name == "SubSelect":
            group.join(self._sub_query(tree))
        for element in tree.part or ():
            self._element(group, element)
            if group.count > MAX_JOINED:
                self.refuse(_variables_of(group.parts[-1:]), AT_ONCE)
        chosen = [(branch, union) for union in group.unions for branch in union]
        for branch, union in chosen:
            others = [part for other in group.unions if other is not union for one in other for part in one]
            self._check_apart(merged([*group.parts, *others, *branch]), given)
        parts = merged([*group.parts, *(part for branch, _ in chosen for part in branch)])
        if not chosen:
            self._check_apart(parts, given)
        for inner, is_joined in group.within:
            bound = _variables_of(parts) | set(given)
            found = self.group(inner, bound).parts
            if is_joined:
                self._check_apart([*parts, *(part for part in found if not part.variables & bound)], given)
                parts = merged([*parts, *found])
        return _Group(parts, count=group.count)

    def _check_apart(self, parts: Sequence[Part], given: Collection[str]) -> None:
        left = lone = _lone(parts, {*given})
        while left:
            start = left[0]
            left = _lone(left, _variables_of([start]))
        # If one part leads to all others, the last start does: no earlier one led to it.
        if lone and _lone(lone, _variables_of([start])):
            self.refuse(sorted(start.variables), APART)

    def _element(self, group: _Group, element: CompValue) -> None:
        match element.name:
            case "TriplesBlock":
                for terms in element.triples:
                    for at in range(0, len(terms), 3):
                        self._triple(group, *terms[at : at + 3])
            case "InlineData":
                group.join(Part(_names(element.var), begins=True))
            case "GroupOrUnionGraphPattern":
                self._alternatives(group, element)
            case "OptionalGraphPattern":
                group.within.append((element.graph, True))
            case "MinusGraphPattern":
                self.group(element.graph)
            case "GraphGraphPattern":
                inside, names = self.group(element.graph), _names([element.term])
                group.parts += [part._replace(relations=part.relations | names) for part in inside.parts]
                group.count += inside.count
            case "Filter" | "Bind":
                self._expression(group, element)
            case name:
                self.refuse((), f"a part of the kind {name!r}, which is not known to only read")

    def _alternatives(self, group: _Group, element: CompValue) -> None:
        """Read groups that UNION joins, or one group.

        An engine joins one group with its surroundings.
        """
        found = [self.group(inner) for inner in element.graph]
        if len(found) > 1:
            group.unions.append([one.parts for one in found])
            group.count += 1
        else:
            group.parts += found[0].parts
            group.count += found[0].count

    def _expression(self, group: _Group, element: CompValue) -> None:
        """Read a condition or value.

        Without variables, a value begins a part. With one variable, it belongs to its part. Otherwise it belongs to
        none.
        """
        group.within += [(inner, False) for inner in _exists(element.expr)]
        if element.name == "Bind":
            own, of = _names([element.var]), _names(walk(element.expr))
            group.join(Part(own | of if len(of) == 1 else own, begins=not of, many=False))

    def _triple(self, group: _Group, head: Any, relation: Any, tail: Any) -> None:
        path = list(walk(relation))
        group.count += sum(len(one.part) - 1 for one in path if _is(one, "PathSequence"))
        names = _names([head, tail])
        # Classes have many members, and every collection ends at the same term.
        of_class = any(one in (RDF.type, RDF.rest) or (_is(one, "pname") and self.is_type(one)) for one in path)
        begins = not _names([head]) or not (_names([tail]) or of_class)
        group.join(Part(names, begins, _names([relation])))

    def _sub_query(self, query: CompValue) -> Part:
        inside = self.of_select(query)
        limit = query.limitoffset.limit if query.limitoffset else None
        is_sum = any(isinstance(one, CompValue) and one.name.startswith("Aggregate_")
                     for one in walk(query.projection))  # fmt: skip
        begins = (is_sum and not query.groupby) or (limit is not None and int(limit) <= FEW_ROWS)
        begins |= all(part.begins or not part.many for part in inside)
        if not query.projection:  # SELECT *
            return Part(frozenset(_variables_of(inside)), begins)
        return Part(_names(column.evar or column.var for column in query.projection), begins)


def _lone(parts: Sequence[Part], known: set[str]) -> list[Part]:
    """Return the parts to which neither a beginning nor a known variable leads."""
    while begun := [part for part in parts if part.begins or part.variables & known]:
        parts = [part for part in parts if part not in begun]
        known = known | _variables_of(begun)
    return [part for part in parts if part.many]


def _is(tree: Any, name: str) -> bool:
    return isinstance(tree, CompValue) and tree.name == name


def _exists(expression: Any) -> list[CompValue]:
    """Return the outermost groups of EXISTS in an expression."""
    return [one.graph for one in walk(expression) if isinstance(one, CompValue) and one.name.endswith("EXISTS")]


def _names(terms: Any) -> frozenset[str]:
    """Return the names of the variables and blank nodes among some terms."""
    return frozenset(str(term) for term in terms or () if isinstance(term, Variable | BNode))


def _variables_of(parts: Iterable[Part]) -> set[str]:
    return {name for part in parts for name in part.variables | part.relations}
