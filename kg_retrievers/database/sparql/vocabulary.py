"""Define which triples of an endpoint are facts or descriptions.

The module also has the settings of two public endpoints.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from typing import Any, ClassVar, Literal

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.iris import Prefixes
from kg_retrievers.graph.readers.rdf.statements import ANY, NO_LANGUAGE, Kept, Languages, RdfOptions, Schema, expanded
from kg_retrievers.graph.validation import checked_dataclass

#: The public endpoints that are known by name.
Preset = Literal["wikidata", "dbpedia"]


@checked_dataclass
class Vocabulary(RdfOptions):
    """How the triples of an endpoint are read.

    They are read as `KnowledgeGraph.from_rdf` reads a file, except blank nodes.

    Args:
        blank_nodes: "drop", since no query can name one.
        schema: "keep", since queries see the triples about classes, too.
        namespaces: How the IRIs of relations begin. Empty for all predicates.
        listing: Finds `?relation` and the `?named` thing that has its label, if not all triples are looked at.
        unless: Holds of a `?relation` that is left out.

    Raises:
        InvalidArgumentError: If a value is not allowed, or a name has an unknown prefix.
    """

    who: ClassVar[str] = "SparqlExecutor"

    blank_nodes: Kept = "drop"
    schema: Schema | None = "keep"
    namespaces: Sequence[str] = ()
    listing: str = ""
    unless: str = ""

    def __post_init__(self) -> None:
        """Check the values."""
        super().__post_init__()
        _ = self.labels, self.aliases, self.types, self.starts
        for language in self.languages:
            if language != ANY and not all(part.isalnum() and part.isascii() for part in language.split("-")):
                raise InvalidArgumentError(f"{self.who}: languages has {language!r}. Wanted a code, as 'en' or '*'.")

    @cached_property
    def names(self) -> Prefixes:
        """Writes IRIs short, and reads them back."""
        return Prefixes(self.prefixes)

    @cached_property
    def ranks(self) -> Languages:
        """Ranks languages."""
        return Languages(self.languages)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The IRIs of the predicates of labels, best first."""
        return self._iris("label_predicates", self.label_predicates)

    @cached_property
    def aliases(self) -> tuple[str, ...]:
        """The IRIs of the predicates of aliases."""
        return self._iris("alias_predicates", self.alias_predicates)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The IRIs of the predicates of types."""
        return self._iris("type_predicates", self.type_predicates)

    @cached_property
    def starts(self) -> tuple[str, ...]:
        """How the IRIs of relations begin."""
        return self._iris("namespaces", self.namespaces)

    def _iris(self, option: str, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(expanded(f"{self.who}: {option}", names, self.names))

    def is_relation(self, iri: str) -> bool:
        """Return whether facts may have a predicate."""
        return not self.starts or iri.startswith(self.starts)

    def wanted(self, variable: str) -> str:
        """Return the condition that a literal is in a wanted language, or in none."""
        if ANY in self.languages:
            return "true"
        none = ", ".join(f'"{language}"' for language in NO_LANGUAGE)
        named = (f'LANGMATCHES(LANG({variable}), "{language}")' for language in self.languages)
        return " || ".join([f"LANG({variable}) IN ({none})", *named])

    def facts(self, head: str, relation: str, tail: str, iri: str | None = None, *, keep_blank: bool = False) -> str:
        """Return the filters by which a triple of a query is a fact.

        A text in a language that is not wanted is a tail only if the head has no other by this relation.

        Args:
            head: Its variable for the head.
            relation: Its variable for the relation, or the IRI of the relation.
            tail: Its variable for the tail.
            iri: The IRI of the relation, if it is known.
            keep_blank: Whether triples with blank nodes pass, too.
        """
        own = f"{tail}_other"
        names, types = {*self.labels, *self.aliases}, self.types
        literal = [f'STR({tail}) != ""']
        if self.literals == "drop" or iri in names:
            literal = ["false"]
        elif iri is None:
            literal.append(f"{relation} NOT IN ({_list(sorted(names))})")
        if literal != ["false"] and ANY not in self.languages:
            better = f'isLiteral({own}) && STR({own}) != "" && ({self.wanted(own)} || LANG({own}) < LANG({tail}))'
            lone = f"NOT EXISTS {{ {head} {relation} {own} . FILTER({better}) }}"
            literal.append(f"({self.wanted(tail)} || {lone})")
        thing = "true"
        if types:
            thing = f"{relation} NOT IN ({_list(types)})" if iri is None else str(iri not in types).lower()
        filters = [
            *([] if keep_blank else [f"!isBlank({head}) && !isBlank({tail})"]),
            f"IF(isLiteral({tail}), {' && '.join(literal)}, {thing})",
        ]
        filters += self.relations(relation) if iri is None else []
        return " ".join(f"FILTER({one})" for one in filters)

    def relations(self, variable: str) -> list[str]:
        """Return the conditions by which a predicate is a relation."""
        found = []
        if self.starts:
            begins = " || ".join(f'STRSTARTS(STR({variable}), "{start}")' for start in self.starts)
            found.append(f"({begins})")
        if self.unless:
            found.append(f"NOT EXISTS {{ {self.unless.replace('?relation', variable)} }}")
        return found


def _list(iris: Sequence[str]) -> str:
    return ", ".join(f"<{iri}>" for iri in iris)


#: The settings of public endpoints: their address, and how their triples are read.
PRESETS: Mapping[Preset, Mapping[str, Any]] = json.loads((files(__package__) / "presets.json").read_text("utf-8"))
