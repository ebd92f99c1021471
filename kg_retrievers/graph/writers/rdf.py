"""From the content of a graph to RDF (extra `rdf`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain, count
from typing import Any, BinaryIO
from urllib.parse import quote

import numpy as np

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.attributes import SOURCE, AttributeValue, read_attribute_set
from kg_retrievers.graph.building import NO_ATTRIBUTES
from kg_retrievers.graph.iris import NAMED, WELL_KNOWN, Prefixes, local_words
from kg_retrievers.graph.readers.rdf.parsing import oxigraph
from kg_retrievers.graph.writers.content import ROWS, Entity, GraphContent
from kg_retrievers.graph.writers.texts import xml_text

#: The formats that hold the sources of facts as named graphs. The others hold them as attributes.
NAMED_GRAPHS = ("nq", "trig", "jsonld")

#: The formats in which no node can reify a triple of RDF 1.2. It is an `rdf:Statement` there.
OLD_FORMATS = ("jsonld",)

#: The names that are the syntax of RDF/XML. It cannot hold relations of these names.
_SYNTAX = re.compile(
    re.escape(WELL_KNOWN["rdf"])
    + "(RDF|Description|ID|about|parseType|resource|nodeID|datatype|li|aboutEach|aboutEachPrefix|bagID)"
)

#: The keys of blank nodes that every format can hold. Other keys become IRIs.
_BLANK = re.compile("_:[A-Za-z][A-Za-z0-9]*")

_PREFIX = re.compile(r"(?:[A-Za-z][A-Za-z0-9-]*)?")


def write_rdf(content: GraphContent, file: BinaryIO, format: str) -> None:
    """Write a graph as RDF: facts, labels (rdfs:label), aliases (skos:altLabel) and types (rdf:type).

    Prefixed names become IRIs again, literals have their datatypes. A name that is no IRI, such as "Her", becomes one
    that `from_rdf` reads as this name. Attributes of a fact belong to a blank node that reifies it. A list, or a text
    with NUL in it, is written as JSON.

    Args:
        content: The graph.
        file: The file to write.
        format: The format, such as "nt" or "ttl".

    Raises:
        InvalidArgumentError: If RDF/XML cannot hold a relation or a text.
        MissingExtraError: If pyoxigraph is not installed.
    """
    statements = _Statements(content, Prefixes(content.prefixes), format)
    quads = statements.quads() if format in NAMED_GRAPHS else (quad.triple for quad in statements.quads())
    if format == "rdf":
        quads = map(_xml_triple, quads)
    module = oxigraph()
    module.serialize(quads, file, module.RdfFormat.from_extension(format), prefixes=_declarable(content.prefixes))


def rdf_losses(content: GraphContent) -> dict[str, int]:
    """Count what RDF cannot hold: entities without any statement."""
    lonely = content.lonely()
    silent = sum(entity.key in lonely and not entity.is_described for entity in content.entities())
    return {"entities of which nothing is said": silent} if silent else {}


class _Statements:
    """The statements of a graph."""

    def __init__(self, content: GraphContent, prefixes: Prefixes, format: str) -> None:
        self._module = oxigraph()
        self._content, self._prefixes, self._format = content, prefixes, format
        self._label, self._alias, self._type = map(self._iri, ("rdfs:label", "skos:altLabel", "rdf:type"))

    def quads(self) -> Iterator[Any]:
        """Yield the statements.

        Names of relations and types come first, then facts, then names and types of entities.
        """
        content, module = self._content, self._module
        relation_names = zip(content.relation_ids, content.relations, strict=True)
        type_names = ((id, name) for name, id in content.type_ids.items())
        for id, name in chain(relation_names, type_names):
            iri = self._iri(id)
            if name != self._prefixes.name_of(iri.value):
                yield module.Quad(iri, self._label, module.Literal(name.removesuffix(f" ({id})")))
        keys, relations = content.graph.entities, [self._iri(id) for id in content.relation_ids]
        is_head = np.diff(content.graph.adjacency.first_triples) > 0
        term = lru_cache(ROWS)(lambda id: self._term(content.entity(id), bool(is_head[id])))
        free = (name for name in map("fact{}".format, count()) if f"_:{name}" not in keys)
        for (head, relation, tail), one in zip(content.edges(), content.facts(), strict=True):
            told = [self._in_graph(read_attribute_set(said)) for said in one.attributes or [NO_ATTRIBUTES]]
            reified = [graph for graph, said in told if said]
            for graph, said in told:
                fact = module.Quad(term(head), relations[relation], term(tail), *map(self._node, graph))
                yield fact
                if graph in reified:
                    yield from self._reifier(fact, module.BlankNode(next(free)), said)
        for id, entity in enumerate(content.entities()):
            if not isinstance(node := self._term(entity, bool(is_head[id])), module.Literal):
                yield from self._descriptions(entity, node)

    def _in_graph(self, attributes: Mapping[str, AttributeValue]) -> tuple[tuple[str, ...], dict[str, AttributeValue]]:
        """Return the name of a graph and the other attributes.

        There is a name if the format has graphs and there is a source.
        """
        if SOURCE not in attributes or self._format not in NAMED_GRAPHS:
            return (), dict(attributes)
        others = {name: value for name, value in attributes.items() if name != SOURCE}
        return (str(attributes[SOURCE]),), others

    def _reifier(self, fact: Any, node: Any, attributes: Mapping[str, AttributeValue]) -> Iterator[Any]:
        """Yield the statements that make a node stand for a fact.

        The attributes of the fact follow.
        """
        module, graph = self._module, fact.graph_name
        if self._format in OLD_FORMATS:
            yield module.Quad(node, self._type, self._iri("rdf:Statement"), graph)
            for part, term in zip(("subject", "predicate", "object"), fact.triple, strict=True):
                yield module.Quad(node, self._iri(f"rdf:{part}"), term, graph)
        else:
            yield module.Quad(node, self._iri("rdf:reifies"), fact.triple, graph)
        for name, value in attributes.items():
            yield module.Quad(node, module.NamedNode(NAMED + quote(name, safe="")), self._value(value), graph)

    def _value(self, value: AttributeValue) -> Any:
        """Return the value of an attribute as a literal."""
        is_plain = isinstance(value, int | str) and "\0" not in str(value)
        if is_plain:
            return self._module.Literal(value)
        datatype = self._iri("xsd:double" if isinstance(value, float) else "rdf:JSON")
        return self._module.Literal(json.dumps(value), datatype=datatype)

    def _descriptions(self, entity: Entity, term: Any) -> Iterator[Any]:
        module = self._module
        of_iri = "" if entity.key.startswith("_:") else local_words(term.value)
        if entity.label != (of_iri or entity.key):  # else it is called so when it is read
            yield module.Quad(term, self._label, module.Literal(entity.label))
        for alias in entity.aliases:
            yield module.Quad(term, self._alias, module.Literal(alias))
        for kind in entity.types:
            yield module.Quad(term, self._type, self._iri(self._content.type_ids.get(kind, kind)))

    def _term(self, entity: Entity, is_head: bool) -> Any:
        """Return a literal for an entity with a datatype.

        The head of a fact is excepted, since no literal can be a head.
        """
        if entity.datatype is None or is_head or entity.types or entity.aliases:
            return self._node(entity.key)
        if entity.datatype.startswith("@"):
            return self._module.Literal(entity.label, language=entity.datatype[1:])
        datatype = self._module.NamedNode(self._prefixes.datatype_iri(entity.datatype))
        return self._module.Literal(entity.label, datatype=datatype)

    def _node(self, key: str) -> Any:
        return self._module.BlankNode(key[2:]) if _BLANK.fullmatch(key) else self._iri(key)

    def _iri(self, name: str) -> Any:
        try:
            return self._module.NamedNode(self._prefixes.expand(name))
        except ValueError:  # as of "http://["
            return self._module.NamedNode(NAMED + quote(name, safe=""))


def _xml_triple(triple: Any) -> Any:
    """Return a triple if RDF/XML can hold it, or raise an error."""
    if found := _SYNTAX.fullmatch(triple.predicate.value):
        message = (
            f"KnowledgeGraph.write: RDF/XML cannot hold the relation 'rdf:{found[1]}', which is a word of its syntax."
        )
        raise InvalidArgumentError(f"{message} Write nt, ttl or JSONL.")
    xml_text(getattr(triple.object, "value", ""))
    return triple


def _declarable(prefixes: Mapping[str, str]) -> dict[str, str]:
    """Return the prefixes that every format can declare.

    The prefixes of labels, aliases and types are among them.
    """
    prefixes = {name: WELL_KNOWN[name] for name in ("rdf", "rdfs", "skos")} | dict(prefixes)
    return {prefix: namespace for prefix, namespace in prefixes.items() if _PREFIX.fullmatch(prefix)}
