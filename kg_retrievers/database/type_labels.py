"""Reads types of entities where a query names labels, in a database with one label for all entities."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from kg_retrievers.database.grammar import Edit, SyntaxNode, read, splice, variables_of
from kg_retrievers.database.safety import MAX_QUERY
from kg_retrievers.database.schema import DatabaseSchema, backticked, quoted
from kg_retrievers.database.tokens import Token

#: How the signs between labels are written as conditions; `%` is any label.
_SIGNS = {"|": "OR", "&": "AND", ":": "AND", "!": "NOT", "%": "TRUE"}


def types_as_conditions(query: str, schema: DatabaseSchema) -> str:
    """Return a query with a condition on the types of a node in place of each label that is a type.

    A label that the database has stays. One that is neither makes the database refuse the query.

    Args:
        query: The query.
        schema: Its `type_labels` are the types that may stand as labels.

    Raises:
        CypherSafetyError: If there are types, and the query cannot be read.

    Example:
        >>> from kg_retrievers.database.schema import NodeLabel
        >>> entity = NodeLabel("Entity", "key", {"key": "STRING", "types": "STRING[]"})
        >>> schema = DatabaseSchema((entity,), (), types="types", type_labels=("Film",))
        >>> types_as_conditions("MATCH (f:Film)-[r]->(p) WHERE f.key = 'Her' OR p.key = 'Her' RETURN r", schema)
        "MATCH (f:`Entity`)-[r]->(p) WHERE (f.key = 'Her' OR p.key = 'Her') AND ('Film' IN f.types) RETURN r"
    """
    if len(query) > MAX_QUERY or not any(name in query for name in schema.type_labels):
        return query
    tokens, root = read(query)
    rewriting = _Rewriting(tokens, schema)
    rewriting.visit(root, [])
    return splice(query, rewriting.edits)


class _Rewriting:
    """Collects what is changed in a query."""

    def __init__(self, tokens: Sequence[Token], schema: DatabaseSchema) -> None:
        self.tokens, self.edits = tokens, list[Edit]()
        self._types = schema.types or ""
        self._labels = {label.name for label in schema.labels}
        self._type_labels = {*schema.type_labels} - self._labels
        self._typed_label = next(label.name for label in schema.labels if self._types in label.properties)
        used = {token.name for token in tokens}
        self._free_names = (name for number in count() if (name := f"typed{number}") not in used)

    def visit(self, node: SyntaxNode, conditions: list[str]) -> None:
        """Change a part of the query; conditions on its nodes are added to those of the MATCH around it."""
        patterns = node.find("patterns")
        if patterns and node.rule in ("clause", "subquery"):
            self._visit_match(node, patterns)
        elif node.rule == "operand" and node.inside[0].rule == "node":
            self._visit_test(node)
        else:
            if node.rule == "node" and (labels := node.find("labels")) and self._names_type(labels):
                conditions.append(self._untyped(node, labels))
            elif node.rule == "value":
                self._change_test_of_label(node)
            for inner in node.inside:
                self.visit(inner, conditions)

    def _visit_match(self, node: SyntaxNode, patterns: SyntaxNode) -> None:
        """Change a MATCH, or patterns in a subquery; the conditions join those of its WHERE."""
        own: list[str] = []
        self.visit(patterns, own)
        condition, where = " AND ".join(own), node.find("where")
        if where is None:
            end = self._span(patterns)[1]
            self.edits.append((end, end, f" WHERE {condition}" if own else ""))
            return
        start, end = self._span(where.inside[0])[0], self._span(where)[1]
        self.edits.append((start, start, "(" if own else ""))
        self.visit(where, [])
        self.edits.append((end, end, f") AND {condition}" if own else ""))

    def _visit_test(self, node: SyntaxNode) -> None:
        """Change a pattern that stands as a condition: it can have conditions of its own in a subquery alone."""
        own: list[str] = []
        named = any(self._names_type(inner) for inner in node.walk() if inner.rule == "labels")
        start, end = self._span(node)
        self.edits.append((start, start, "EXISTS { MATCH " if named else ""))
        for inner in node.inside:
            self.visit(inner, own)
        self.edits.append((end, end, f" WHERE {' AND '.join(own)} }}" if named else ""))

    def _untyped(self, node: SyntaxNode, labels: SyntaxNode) -> str:
        """Put the label of all entities in place of types, and return the condition on them."""
        named = variables_of(self.tokens, node)
        name = backticked(named[0]) if named and self.tokens[node.start + 1].kind == "quoted" else "".join(named)
        name = name or next(self._free_names)
        label = f"{'' if named else name}:{backticked(self._typed_label)}"
        self.edits.append((*self._span(labels), label))
        return self._condition(labels, name)

    def _change_test_of_label(self, node: SyntaxNode) -> None:
        """Change `film:Film`, where it stands as a condition."""
        test, operand = node.find("is_a"), node.find("operand")
        if test and operand and operand.inside[0].rule == "variable" and self._names_type(test):
            start, end = self._span(operand)[0], self._span(test)[1]
            self.edits.append((start, end, self._condition(test, self.tokens[operand.start].text)))

    def _condition(self, labels: SyntaxNode, name: str) -> str:
        """Return the condition on the types of a node."""
        words = []
        for token, before in zip(
            self.tokens[labels.start + 1 : labels.end], self.tokens[labels.start : labels.end], strict=False
        ):
            if token.name in self._type_labels and token.kind != "sign":
                words.append(f"{quoted(token.name)} IN {name}.{self._types}")
            elif token.kind != "sign":
                words.append("TRUE")
            elif not (token.text == ":" and before.text == "|"):  # "A|:B" is "A|B"
                words.append(_SIGNS.get(token.text, token.text))
        return f"({' '.join(words)})"

    def _names_type(self, labels: SyntaxNode) -> bool:
        """Whether all labels are known, and some are types."""
        names = {self.tokens[inner.start].name for inner in labels.walk() if inner.rule == "tag"}
        return bool(names & self._type_labels) and names <= self._type_labels | self._labels

    def _span(self, node: SyntaxNode) -> tuple[int, int]:
        return self.tokens[node.start].position, self.tokens[node.end - 1].end
