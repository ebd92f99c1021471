"""Keys of an added graph: an IRI gets the key that the graph has for it, a blank node one that the graph lacks."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from itertools import count, islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kg_retrievers.graph.columns import StringTable
from kg_retrievers.graph.iris import NAMED, Prefixes
from kg_retrievers.graph.readers.rdf.parsing import FORMATS

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph


#: The `Reading.format` of what was read from RDF.
RDF = (*FORMATS, "rdflib")


class NewTexts(NamedTuple):
    """How a graph writes what an addition writes otherwise, by the texts of the addition.

    Attributes:
        prefixes: The prefixes of what is added, as the graph writes it.
        entities: The keys of entities.
        relations: How the source writes relations.
        types: How the source writes types.
        sources: The names of sources.
        datatypes: The names of datatypes.
    """

    prefixes: Mapping[str, str]
    entities: Mapping[str, str] = {}
    relations: Mapping[str, str] = {}
    types: Mapping[str, str] = {}
    sources: Mapping[str, str] = {}
    datatypes: Mapping[str, str] = {}


def written_relations(graph: KnowledgeGraph) -> StringTable:
    """Return how the source of a graph wrote its relations."""
    return graph.relations if graph.relation_ids is None else graph.relation_ids


def written_types(graph: KnowledgeGraph) -> list[str]:
    """Return how the source of a graph wrote its types."""
    return [graph.type_ids.get(name, name) for name in graph.types]


def new_texts(graph: KnowledgeGraph, addition: KnowledgeGraph) -> NewTexts:
    """Return how a graph writes what an addition writes otherwise, so that equal IRIs have equal keys.

    Keys are equal IRIs where their prefixes say so: "ex:klee" is <http://museum.example/id/klee> if "ex" stands for
    http://museum.example/id/. The prefixes of the graph go before those of the addition. Blank nodes of RDF are
    others than those of the graph, whatever they are called.
    """
    ours, theirs = graph.prefixes, addition.prefixes
    is_rdf = addition.reading.format in RDF
    if not (ours or theirs or is_rdf):
        return NewTexts({})
    expand = Prefixes(theirs).expand
    prefixes = Prefixes({prefix: iri for prefix, iri in theirs.items() if prefix not in ours} | ours)
    is_twofold = any(ours[prefix] != theirs[prefix] for prefix in ours.keys() & theirs.keys())

    def form(text: str, known: Container[str]) -> str:
        iri = text if text.startswith("_:") else expand(text)
        if iri.startswith((NAMED, "_:")):
            return text
        short = prefixes.compact(iri)
        return next((one for one in (short, iri, f"<{iri}>") if one in known), short if is_rdf else text)

    def renamed(texts: Iterable[str] | None, known: Container[str] | None) -> dict[str, str]:
        ours = known or ()
        forms = {text: form(text, ours) for text in texts or () if is_twofold or text not in ours}
        return {text: one for text, one in forms.items() if one != text}

    literals = addition._columns.get("datatypes", np.full(len(addition.entities), -1)) >= 0
    keys = [addition.entities[id] for id in np.flatnonzero(~literals).tolist()]
    datatypes = [name for name in addition.datatype_names or () if not name.startswith(("@", "xsd:"))]
    entities, sources = renamed(keys, graph.entities), renamed(addition.source_names, graph.source_names)
    relations = renamed(written_relations(addition), written_relations(graph))
    types, kinds = renamed(written_types(addition), {*written_types(graph)}), renamed(datatypes, graph.datatype_names)
    if is_rdf:
        nodes = [key for key in keys if key.startswith("_:")]
        entities |= _free(nodes, "_:b", graph.entities)
        graphs = [name for name in addition.source_names or () if name.startswith("_:")]
        sources |= {name: entities[name] for name in graphs if name in entities}
        sources |= _free([name for name in graphs if name not in addition.entities], "_:g", graph.source_names or ())
    if not any((entities, relations, types, sources, kinds)):
        return NewTexts(theirs)
    texts = [*keys, *written_relations(addition), *written_types(addition), *datatypes]
    forms = entities | relations | types | kinds
    used = prefixes.used(forms.get(text, text) for text in texts)
    return NewTexts(used, entities, relations, types, sources, kinds)


def _free(nodes: list[str], start: str, known: Container[str]) -> dict[str, str]:
    """Return other names for blank nodes if a graph has one of them: the start and a number."""
    if not any(node in known for node in nodes):
        return {}
    free = (name for name in (f"{start}{number}" for number in count()) if name not in known)
    return dict(zip(nodes, islice(free, len(nodes)), strict=True))
