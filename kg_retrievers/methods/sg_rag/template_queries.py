"""The query of a template that a person wrote: its places for entities, and the names of a database in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from kg_retrievers.database.executor import Executor
from kg_retrievers.database.grammar import SyntaxNode, read
from kg_retrievers.database.schema import backticked
from kg_retrievers.database.splicing import Edit, alias_of, condition_on, splice, tags_of, variables_of
from kg_retrievers.database.tokens import Token
from kg_retrievers.errors import InvalidArgumentError

#: Stands for an entity, in questions and, between quotation marks, in queries: the tag of section 5.3.
PLACEHOLDER = r"<entity(?: ?\d+)?>"

#: What table 3 calls the property that holds an entity's name.
NAME = "name"


class _Place(NamedTuple):
    """Where a query compares a property with an entity: `variable.property = "<entity>"`."""

    text: str
    variable: Token
    property: Token
    sign: Token
    value: Token


class TemplateQuery:
    """A query with places for entities.

    Args:
        query: The query.
        target: The variable of what is asked for; see `CypherTemplate`.

    Raises:
        InvalidArgumentError: If an entity is not compared by `=` with a property, or the target is not returned.
        CypherSafetyError: If the query does more than read.
    """

    def __init__(self, query: str, target: str | None = None) -> None:
        """Find the places."""
        self.query = query
        self._tokens, self._root = read(query)
        self._found = self._find_places()
        self._target = self._target_edits(target)
        self._once = self._once_edits()

    @property
    def places(self) -> list[str]:
        """What stands for entities, each once."""
        return list(dict.fromkeys(place.text for place in self._found))

    def fill(
        self, entities: Mapping[str, Sequence[str]], executor: Executor, label: Callable[[str], str]
    ) -> tuple[str, dict[str, Any]]:
        """Return the query in the names of a database, and its parameters.

        Args:
            entities: The keys of each place.
            executor: The database.
            label: From a key to the label of the entity.
        """
        schema = executor.schema()
        edits, parameters = [*self._target, *(self._once if executor.dialect == "ladybug" else ())], dict[str, Any]()
        properties = [part.properties for part in schema.labels] + [part.properties for part in schema.relations]
        own_properties = {name for part in properties for name in part}
        for place in self._found:
            by_key = place.property.name in schema.keys or place.property.name not in own_properties
            parameter = f"e{self.places.index(place.text)}" + ("" if by_key else "_names")
            keys = list(entities[place.text])
            parameters[parameter] = keys if by_key else list(dict.fromkeys(map(label, keys)))
            edits += [_replaced(place.sign, " IN "), _replaced(place.value, f"${parameter}")]
        compared = {place.property for place in self._found}
        for token in self._properties():
            if token.name == NAME and NAME not in own_properties:
                name = schema.keys[0] if token in compared and len(schema.keys) == 1 else schema.label
                edits += [_replaced(token, name)] if name else []
        labels = [*(one.name for one in schema.labels), *schema.type_labels]
        edits += self._renamed("labels", labels)
        edits += self._renamed("types", [one.name for one in schema.relations])
        return splice(self.query, edits), parameters

    def _find_places(self) -> list[_Place]:
        found, tokens = [], self._tokens
        for at, token in enumerate(tokens):
            if token.kind == "string" and re.fullmatch(PLACEHOLDER, token.text[1:-1]):
                before = tokens[max(at - 4, 0) : at]
                if [one.text for one in before[1::2]] != [".", "="]:
                    raise InvalidArgumentError(
                        f"CypherTemplate: {token.text} stands where no property is compared with it. Write it as in "
                        'WHERE m.name = "<entity>".'
                    )
                found.append(_Place(token.text[1:-1], before[0], before[2], before[3], token))
        return found

    def _properties(self) -> Iterable[Token]:
        for node in self._root.walk():
            if node.rule == "value":
                yield from (self._tokens[inner.start] for inner in node.inside if inner.rule == "name")

    def _renamed(self, rule: str, names: Sequence[str]) -> list[Edit]:
        """Return the edits that put the names of a database where a query has them in another spelling."""
        spelt: dict[str, list[str]] = {}
        for name in names:
            spelt.setdefault(_spelling(name), []).append(name)
        edits = []
        for node in self._root.walk():
            for token in tags_of(self._tokens, node) if node.rule == rule else ():
                near = spelt.get(_spelling(token.name), [])
                if token.name not in names and len(near) == 1:
                    edits.append(_replaced(token, backticked(near[0])))
        return edits

    def _target_edits(self, target: str | None) -> list[Edit]:
        """Return the edits that call the column of what is asked for `target`."""
        edits = []
        nodes = {name for node in self._root.walk() if node.rule == "node" for name in variables_of(self._tokens, node)}
        compared = {place.variable.name for place in self._found}
        for part in self._root.inside[0].inside:
            columns = part.inside[-1].inside[0].inside
            named = {name for column in columns for name in alias_of(self._tokens, column)}
            alone = [token for column in columns if (token := self._alone(column))]
            if target is not None:
                chosen = [token for token in alone if token.name == target]
                if not chosen:
                    raise InvalidArgumentError(f"CypherTemplate: the query does not return its target {target!r}.")
            elif "target" in named:
                continue
            else:
                chosen = [token for token in alone if token.name in nodes - compared]
            edits += [(token.end, token.end, " AS target") for token in chosen[-1:]]
        return edits

    def _once_edits(self) -> list[Edit]:
        """Return the edits by which a MATCH takes each relationship once, as Neo4j does and LadybugDB does not."""
        edits: list[Edit] = []
        for match in self._root.walk():
            patterns = match.find("patterns") if match.rule in ("clause", "subquery") else None
            found = [one for one in patterns.walk() if one.rule == "relationship"] if patterns else []
            named = {one: next(iter(variables_of(self._tokens, one)), "") for one in found}
            pairs = [(one, other) for one, other in combinations(found, 2) if self._may_be_same(one, other)]
            names = [(named[one], named[other]) for one, other in pairs if named[one] and named[other]]
            if conditions := [f"id({backticked(one)}) <> id({backticked(other)})" for one, other in names]:
                edits += condition_on(self._tokens, match, " AND ".join(conditions))
        return edits

    def _may_be_same(self, one: SyntaxNode, other: SyntaxNode) -> bool:
        """Whether two relationships of one hop may be of the same type."""
        if any(node.find("length") or node.find("quantifier") for node in (one, other)):
            return False
        types = [{_spelling(token.name) for token in tags_of(self._tokens, node)} for node in (one, other)]
        return not all(types) or bool(types[0] & types[1])

    def _alone(self, column: SyntaxNode) -> Token | None:
        """Return the variable of a column that is no more than one."""
        return self._tokens[column.start] if column.end - column.start == 1 else None


def _spelling(name: str) -> str:
    return re.sub(r"\W", "_", name).casefold()


def _replaced(token: Token, text: str) -> Edit:
    return token.position, token.end, text
