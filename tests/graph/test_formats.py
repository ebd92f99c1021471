"""The same graph in every format of RDF, written by pyoxigraph and by rdflib."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
import rdflib

from kg_retrievers.graph import KnowledgeGraph

Fact = tuple[str, str, str]

#: What RDF calls things. All but the last are prefixes that every reader knows.
NAMESPACES = {
    "dbr": "http://dbpedia.org/resource/",
    "dbo": "http://dbpedia.org/ontology/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "wd": "http://www.wikidata.org/entity/",
    "wdt": "http://www.wikidata.org/prop/direct/",
}

WORDS = [
    "Amélie", "千と千尋", "Дюна", "Žižek", "naïve", "O'Neill", '"Her"', "back\\slash", "a|b", "semi, colon", "<b>&amp;",
    "Crouching Tiger", "e\u0301", "🎬", "%20", "#1", "50 %", "A/B", "[REC]", "{x}", "=1+1", "@home", "null", "NaN",
    "True",
]  # fmt: skip
RELATIONS = ["directed by", "written by", "starring", "réalisé par", "followed by", "part of", "influenced"]
TYPES = ["film", "person", "animated film", "œuvre", "place"]


@dataclass(frozen=True)
class Content:
    """What a graph says. Literals are entities that are called as they are written."""

    facts: frozenset[Fact]
    labels: dict[str, str]
    aliases: dict[str, frozenset[str]]
    types: dict[str, frozenset[str]]
    datatypes: dict[str, str]

    @property
    def keys(self) -> list[str]:
        """The keys of the entities, literals included."""
        return [*self.labels]


def content_of(graph: KnowledgeGraph) -> Content:
    """Return what a graph says."""
    aliases = {key: frozenset(graph.aliases(key)) for key in graph.entities}
    types = {key: frozenset(graph.types_of(key)) for key in graph.entities}
    datatypes = {key: graph.datatype(key) for key in graph.entities}
    return Content(
        frozenset(graph.triples()),
        {key: graph.label(key) for key in graph.entities},
        {key: texts for key, texts in aliases.items() if texts},
        {key: texts for key, texts in types.items() if texts},
        {key: datatype for key, datatype in datatypes.items() if datatype},
    )


@cache
def the_graph() -> Content:
    """Return at least 5,000 facts with accents, quotes, languages, equal labels, and texts of several lines."""
    random_ = random.Random(22)
    keys = [f"dbr:E{number}" for number in range(1_500)]
    names = [" ".join(random_.sample(WORDS, random_.randint(1, 3))) for _ in range(700)]
    labels = {key: random_.choice(names) for key in keys}
    aliases = {key: frozenset(random_.sample(names, 2)) - {labels[key]} for key in keys[::3]}
    types = {key: frozenset(random_.sample(TYPES, random_.randint(1, 2))) for key in keys[1::2]}
    facts = {(random_.choice(keys[:-5]), random_.choice(RELATIONS), random_.choice(keys[:-5])) for _ in range(4_600)}
    datatypes: dict[str, str] = {}
    for number in range(900):
        text, datatype = literal(random_, number)
        datatypes[text] = datatype
        facts.add((random_.choice(keys[:-5]), f"has {datatype.strip('@').removeprefix('xsd:')}", text))
    assert len(facts) >= 5_000
    assert len(set(labels.values())) < len(labels) - 500
    literals = {text: text for text in datatypes}
    return Content(frozenset(facts), labels | literals, {key: a for key, a in aliases.items() if a}, types, datatypes)


def literal(random_: random.Random, number: int) -> tuple[str, str]:
    """Return a literal's text and its datatype or language."""
    words = " ".join(random_.sample(WORDS, 3))
    return [
        (f"{random_.randint(1000, 2030)}-0{random_.randint(1, 9)}-1{number % 10}", "xsd:date"),
        (str(10_000 + number), "xsd:integer"),
        (f"{words},\nin lines\r\nand\ttabs {number}", "@en"),
        (f"« {words} » {number}", "@fr"),
    ][number % 4]


# --- RDF --------------------------------------------------------------------------------------------------------------


def iri(key: str) -> pyoxigraph.NamedNode:
    prefix, _, name = key.partition(":")
    return pyoxigraph.NamedNode(NAMESPACES[prefix] + name)


def quads(content: Content, relations: dict[str, str], types: dict[str, str]) -> Iterator[pyoxigraph.Quad]:
    """Yield the graph; `relations` and `types` are the keys of what has a name."""

    def text(value: str) -> pyoxigraph.Literal:
        return pyoxigraph.Literal(value, language="en")

    def quad(head: str, relation: str, tail: Any) -> pyoxigraph.Quad:
        return pyoxigraph.Quad(iri(head), iri(relation), tail)

    for name, key in [*relations.items(), *types.items()]:
        yield quad(key, "rdfs:label", text(name))
    for key, label in content.labels.items():
        if key not in content.datatypes:
            yield quad(key, "rdfs:label", text(label))
    for key, texts in content.aliases.items():
        yield from (quad(key, "skos:altLabel", text(alias)) for alias in texts)
    for key, names in content.types.items():
        yield from (
            quad(key, "wdt:P31" if "wdt:P1" in relations.values() else "rdf:type", iri(types[name])) for name in names
        )
    for head, relation, tail in content.facts:
        datatype = content.datatypes.get(tail)
        if datatype is None:
            yield quad(head, relations[relation], iri(tail))
        elif datatype.startswith("@"):
            yield quad(head, relations[relation], pyoxigraph.Literal(tail, language=datatype[1:]))
        else:
            yield quad(head, relations[relation], pyoxigraph.Literal(tail, datatype=iri(datatype)))


def numbered(names: Any, prefix: str) -> dict[str, str]:
    return {name: f"{prefix}{number}" for number, name in enumerate(sorted(names), 1)}


def rdf(content: Content) -> Iterator[pyoxigraph.Quad]:
    return quads(content, numbered({fact[1] for fact in content.facts}, "dbo:relation"), numbered(TYPES, "dbo:Type"))


def read_rdf(folder: Path, suffix: str, **options: Any) -> KnowledgeGraph:
    path, format = folder / f"graph.{suffix}", pyoxigraph.RdfFormat.from_extension(suffix)
    assert format is not None
    triples: Any = rdf(the_graph())
    if not format.supports_datasets:
        triples = (quad.triple for quad in triples)
    pyoxigraph.serialize(triples, str(path), format=format, **options)
    return KnowledgeGraph.from_rdf(path, languages=["en", "*"])


@cache
def rdflib_graph() -> rdflib.Graph:
    graph = rdflib.Graph()
    lines = pyoxigraph.serialize((quad.triple for quad in rdf(the_graph())), format=pyoxigraph.RdfFormat.N_TRIPLES)
    return graph.parse(data=lines, format="nt")


def read_rdflib_file(folder: Path, suffix: str, format: str) -> KnowledgeGraph:
    path = folder / f"graph.{suffix}"
    rdflib_graph().serialize(path, format, encoding="utf-8")
    return KnowledgeGraph.from_rdf(path, languages=["en", "*"])


def read_wikidata(folder: Path) -> KnowledgeGraph:
    content = the_graph()
    triples = quads(content, numbered({fact[1] for fact in content.facts}, "wdt:P"), numbered(TYPES, "wd:Q1000"))
    renamed = pyoxigraph.serialize((quad.triple for quad in triples), format=pyoxigraph.RdfFormat.N_TRIPLES)
    (folder / "truthy.nt").write_bytes(renamed)
    return KnowledgeGraph.from_rdf(folder / "truthy.nt", type_predicates=["wdt:P31"])


Reader = Callable[[Path], KnowledgeGraph]

#: Formats that hold all of the graph.
WHOLE: dict[str, Reader] = {
    "N-Triples": lambda folder: read_rdf(folder, "nt"),
    "N-Quads": lambda folder: read_rdf(folder, "nq"),
    "Turtle": lambda folder: read_rdf(folder, "ttl"),
    "TriG": lambda folder: read_rdf(folder, "trig"),
    "JSON-LD": lambda folder: read_rdf(folder, "jsonld"),
    "Turtle of rdflib": lambda folder: read_rdflib_file(folder, "ttl", "turtle"),
    "JSON-LD of rdflib": lambda folder: read_rdflib_file(folder, "jsonld", "json-ld"),
    "rdflib": lambda _: KnowledgeGraph.from_rdf(rdflib_graph(), languages=["en", "*"]),
    "RDF/XML": lambda folder: read_rdf(folder, "rdf"),
    "RDF/XML of rdflib": lambda folder: read_rdflib_file(folder, "rdf", "xml"),
    "Wikidata": read_wikidata,
}  # fmt: skip


@pytest.mark.parametrize("format", WHOLE)
def test_the_same_graph(tmp_path: Path, format: str) -> None:
    check(WHOLE[format](tmp_path), the_graph())


def check(graph: KnowledgeGraph, content: Content) -> None:
    """Check that a graph says this and nothing else."""
    found = content_of(graph)
    for part in ("facts", "labels", "aliases", "types", "datatypes"):
        expected, got = getattr(content, part), getattr(found, part)
        pairs = (expected, got) if part == "facts" else (expected.items(), got.items())
        differing = [[*pairs[0] - pairs[1]][:5], [*pairs[1] - pairs[0]][:5]]
        assert differing == [[], []], part
