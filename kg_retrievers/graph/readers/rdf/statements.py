"""The contents of RDF statements, collected by numbers: facts, names, types and literals."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import Field

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError, listed
from kg_retrievers.graph.building import NONE, TextIds
from kg_retrievers.graph.iris import NAMED, WELL_KNOWN, Prefixes
from kg_retrievers.graph.readers.opening import Limits, limit_error, skip_hints
from kg_retrievers.graph.readers.text_files import OnError
from kg_retrievers.graph.validation import checked_dataclass
from kg_retrievers.graph.values import is_valid

#: Languages of a text that is meant for all of them.
NO_LANGUAGE = ("", "mul", "und", "zxx")

#: In `languages`: takes every other language.
ANY = "*"

#: The type of things with names.
Thing = TypeVar("Thing", bound=Hashable)

#: Predicates of labels are fewer.
_STEP = 1_000


class Languages:
    """The languages that are wanted, best first: each takes itself, then its regions, as "en" takes "en-GB".

    Args:
        wanted: The languages, as "en", and "*" for every other one.

    Example:
        >>> languages = Languages(["en", "de"])
        >>> [languages.rank(language) for language in ("en", "en-GB", "de-at", None, "fr")]
        [0, 1, 3, 4, None]
    """

    def __init__(self, wanted: Sequence[str]) -> None:
        """Rank no language yet; `rank` returns how good a language is, from 0, None if it is not wanted.

        No language is wanted after those named.
        """
        self._wanted = [language.lower().lstrip("@") for language in wanted if language != ANY]
        self._takes_any = ANY in wanted
        self.rank: Callable[[str | None], int | None] = cache(self._rank)

    def _rank(self, language: str | None) -> int | None:
        text = (language or "").lower()
        if text in self._wanted:
            return 2 * self._wanted.index(text)
        for position, wanted in enumerate(self._wanted):
            if text.startswith(f"{wanted}-"):
                return 2 * position + 1
        if text in NO_LANGUAGE:
            return 2 * len(self._wanted)
        return 2 * len(self._wanted) + 1 if self._takes_any else None


class Names(Generic[Thing]):
    """Collects labels and aliases of things, in any order. A thing may be a number or its IRI.

    The label is the one in the best language. Of several, the one by the best predicate counts, then the first in
    sorted order. If none is in a wanted language, the first language in sorted order gives it. Other labels in wanted
    languages are aliases.

    Attributes:
        left_out: How many labels and aliases in other languages were left out.
    """

    def __init__(self, languages: Languages) -> None:
        """Begin without names."""
        self._languages = languages
        self._best: dict[Thing, tuple[int, str]] = {}
        self._foreign: dict[Thing, tuple[str, int, str]] = {}
        self._aliases: dict[Thing, set[str]] = {}
        self.left_out = 0

    def add_label(self, thing: Thing, text: str, language: str | None, predicate: int) -> None:
        """Add a label by the predicate at a position, 0 for the best one."""
        rank = self._languages.rank(language)
        if rank is None:
            self.left_out += 1
            foreign = (language or "", predicate, text)
            self._foreign[thing] = min(foreign, self._foreign.get(thing, foreign))
            return
        new = (rank * _STEP + predicate, text)
        best = self._best.setdefault(thing, new)
        if new[1] != best[1]:
            self._aliases.setdefault(thing, set()).add(max(new, best)[1])
        if new < best:
            self._best[thing] = new

    def add_alias(self, thing: Thing, text: str, language: str | None) -> None:
        """Add another name."""
        if self._languages.rank(language) is None:
            self.left_out += 1
        else:
            self._aliases.setdefault(thing, set()).add(text)

    def finish(self) -> Counter[str]:
        """Take labels of other languages if there are no better ones, and return how many by language."""
        taken: Counter[str] = Counter()
        for thing, (language, _, text) in self._foreign.items():
            if thing not in self._best:
                self._best[thing] = (-1, text)
                taken[language] += 1
        self._foreign.clear()
        self.left_out -= taken.total()
        return taken

    def label(self, thing: Thing) -> str | None:
        """Return the label of a thing."""
        best = self._best.get(thing)
        return best[1] if best else None

    def aliases(self, thing: Thing) -> list[str]:
        """Return its other names in sorted order."""
        others = self._aliases.get(thing)
        return sorted(others - {self.label(thing) or ""}) if others else []

    def things(self) -> set[Thing]:
        """Return everything that has a name."""
        return self._best.keys() | self._aliases.keys()


Kept = Literal["keep", "drop"]

#: The use of triples about classes and relations: they describe the others, or they are facts, too.
Schema = Literal["describe", "keep"]

#: The predicates of labels, best first.
LABELS = ("rdfs:label", "skos:prefLabel", "schema:name", "sdo:name", "foaf:name")

#: The predicates of aliases.
ALIASES = ("skos:altLabel", "schema:alternateName", "sdo:alternateName")

#: The predicates of types. The second one is "instance of" of Wikidata.
TYPES = ("rdf:type", "wdt:P31")

#: Things of these types are classes, properties and ontologies: they describe relations and types.
SCHEMA_TYPES = (
    "owl:Class", "rdfs:Class", "rdfs:Datatype", "rdf:Property", "owl:ObjectProperty", "owl:DatatypeProperty",
    "owl:AnnotationProperty", "owl:FunctionalProperty", "owl:InverseFunctionalProperty", "owl:TransitiveProperty",
    "owl:SymmetricProperty", "owl:Ontology", "owl:Restriction", "owl:Axiom", "owl:AllDisjointClasses",
    "wikibase:Property",
)  # fmt: skip

_SCHEMA_IRIS = frozenset(map(Prefixes().expand, SCHEMA_TYPES))

# What is no thing's own, whatever its head: `rdfs:subClassOf` and the like, and relations of OWL except some.
_OF_CLASSES = tuple(f"{WELL_KNOWN['rdfs']}{name}" for name in ("subClassOf", "subPropertyOf", "domain", "range"))
_OF_THINGS = tuple(f"{WELL_KNOWN['owl']}{name}" for name in ("sameAs", "differentFrom", "versionInfo", "deprecated"))


def is_schema_relation(iri: str) -> bool:
    """Return whether a relation describes classes and relations, whatever its facts are about."""
    return iri in _OF_CLASSES or (iri.startswith(WELL_KNOWN["owl"]) and iri not in _OF_THINGS)


#: Wikidata labels a property by its entity: "wd:P57" for the relations "wdt:P57", "p:P57", "ps:P57" and their like.
WIKIDATA_PROPERTIES, WIKIDATA_ENTITIES = "http://www.wikidata.org/prop/", "http://www.wikidata.org/entity/"

#: In `graphs`: the default graph.
DEFAULT = "default"


# The use of a predicate that is no relation: a label by its position, an alias, a type, a reifier of a triple.
ALIAS, TYPE, REIFIER, FIRST_LABEL = -1, -2, -3, -4
_NOT_TAKEN = -2


@checked_dataclass
class RdfOptions:
    """How RDF is read (see `KnowledgeGraph.from_rdf`).

    Raises:
        InvalidArgumentError: If a value is none of those allowed.
    """

    languages: Sequence[str] = ("en",)
    label_predicates: Sequence[str] = LABELS
    alias_predicates: Sequence[str] = ALIASES
    type_predicates: Sequence[str] = TYPES
    literals: Kept = "keep"
    schema: Schema | None = None
    graphs: Sequence[str] | None = None
    blank_nodes: Kept = "keep"
    prefixes: Mapping[str, str] = Field(default_factory=dict)
    base_iri: str | None = None
    on_error: OnError = "raise"
    limits: Limits = Field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Check the values."""
        for prefix, namespace in self.prefixes.items():
            if not namespace or prefix == "_" or set(prefix) & set(": <>/#"):
                raise InvalidArgumentError(f"prefixes: {prefix!r} cannot stand for {namespace!r} in front of a colon.")


class Statements:
    """The statements of a source, by numbers: of IRIs and blank nodes, of literals, of graphs.

    Attributes:
        ids: The number of each IRI and blank node ("_:" before its name).
        literals: The number of each text of a literal.
        heads: The number of the head of each fact.
        relations: The number of its relation, an IRI.
        tails: The number of its tail; ~number for a literal.
        sources: The number of its graph, `NONE` for the default graph; shorter where no more facts have one.
        typed: The numbers of things, and
        kinds: of their types, side by side.
        datatypes: The number of the datatype of each literal, in `datatype_ids`.
        retyped: Literals with a further datatype, this datatype, and the fact that has it, or `NONE`.
        reified: Five numbers for each reifier of a triple: its own, those of the triple, and that of its graph.
        type_predicates: The IRIs of those predicates of types that were used.
        predicates: The number of each predicate; a negative one if it is for names or types.
        foreign: Texts and graphs in the first language in sorted order that is not wanted, by head and relation.
        foreign_count: How many texts in languages that are not wanted there were.
        invalid: How many literals are none that their datatype allows.
        names: Labels and aliases.
        uses: How often each predicate of labels was used, and those of aliases.
        left_out: What was left out, and how often.
        only_described: The numbers of what files speak of that only describe.
        of_other_graphs: What `left_out` calls statements of graphs that are not wanted.
    """

    def __init__(self, options: RdfOptions, oxigraph: Any, place: Path) -> None:
        """Begin without statements."""
        self.options, self._oxigraph, self.place = options, oxigraph, place
        self.languages = Languages(options.languages)
        self.names: Names[int] = Names(self.languages)
        self.ids, self.literals, self.datatype_ids, self.graphs = TextIds(), TextIds(), TextIds(), TextIds()
        self.heads, self.relations, self.tails = array("i"), array("i"), array("i")
        self.sources, self.typed, self.kinds, self.datatypes = array("i"), array("i"), array("i"), array("i")
        self.retyped: list[tuple[int, int, int]] = []
        self.reified = array("i")
        self.foreign: dict[tuple[int, int], tuple[str, list[tuple[str, int]]]] = {}
        self.foreign_count = self.invalid = 0
        self.uses: Counter[int] = Counter()
        self.left_out: Counter[str] = Counter()
        self.of_other_graphs = "statements of other graphs (graphs=None)"
        self._graph_numbers: dict[str, int] = {}
        self._keeps_literals = options.literals == "keep"
        self._max_length = options.limits.cell_length
        self._takes_default = options.graphs is None or DEFAULT in options.graphs
        self.predicates: dict[str, int] = {}
        self.type_predicates = set[str]()
        self._wanted_graphs: set[str] | None = None
        self._blank, self._only_describes = "_:", False
        self.only_described = set[int]()

    def next_file(self, number: int, only_describes: bool) -> None:
        """Begin a further file, whose blank nodes are others.

        Args:
            number: How many files were before.
            only_describes: Whether it has no facts, but names, classes and relations.
        """
        self._blank, self._only_describes = f"_:{number}." if number else "_:", only_describes

    def begin(self, declared: Mapping[str, str], *, has_formulas: bool = False) -> None:
        """Read the names of predicates and graphs in the options by the prefixes that the source declares.

        Args:
            declared: These prefixes.
            has_formulas: Whether graphs without a name are formulas, which state nothing.

        Raises:
            InvalidArgumentError: If a name has an unknown prefix.
        """
        options = self.options
        prefixes = Prefixes({**declared, **options.prefixes})
        roles = {f"{WELL_KNOWN['rdf']}reifies": REIFIER}
        roles |= dict.fromkeys(expanded("type_predicates", options.type_predicates, prefixes), TYPE)
        roles |= dict.fromkeys(expanded("alias_predicates", options.alias_predicates, prefixes), ALIAS)
        labels = expanded("label_predicates", options.label_predicates, prefixes)
        roles |= {iri: FIRST_LABEL - rank for rank, iri in enumerate(labels)}
        self.predicates = _Roles(self.ids, {**self.predicates, **roles})
        self._wanted_graphs = None
        if has_formulas:
            self._wanted_graphs, self.of_other_graphs = set(), "statements within formulas, which state nothing"
        elif options.graphs is not None:
            named = [name for name in options.graphs if name != DEFAULT]
            self._wanted_graphs = set(expanded("graphs", named, prefixes))

    def check_graphs(self) -> None:
        """Check that the source has all graphs that are wanted.

        Raises:
            InvalidArgumentError: If it has not.
        """
        missing = sorted((self._wanted_graphs or set()) - self._graph_numbers.keys())
        if missing:
            graphs, wanted = listed(sorted(self._graph_numbers)), ", ".join(map(repr, missing))
            has = f"its named graphs are {graphs}" if graphs else "it has no named graphs"
            raise InvalidArgumentError(
                f"{self.place} has no named graph {wanted}; {has}.",
                hint_python='Give graphs= some of them, or "default" for the graph without a name; or leave it out.',
                hint_shell="Give --read graphs=IRI, or graphs=default for the graph without a name.",
            )

    def take(self, statements: Iterable[Any]) -> None:
        """Take statements."""
        for subject, predicate, object, graph in statements:
            self._take(subject, predicate, self.predicates[predicate.value], object, graph)

    def _take(self, subject: Any, predicate: Any, role: int, object: Any, graph: Any) -> None:
        source = NONE if type(graph) is self._oxigraph.DefaultGraph else self._graph(graph)
        if source == _NOT_TAKEN or (source == NONE and not self._takes_default):
            self.left_out[self.of_other_graphs] += 1
            return
        head = self._thing(subject)
        if head is None:
            return
        if self._only_describes:
            self.only_described.add(head)
            if self._is_statement_of_things(predicate, role, object):
                self.left_out["other statements of files that only describe"] += 1
                return
        if type(object) is self._oxigraph.Literal:
            self._take_literal(head, predicate, role, object, source)
            return
        if role == REIFIER and type(object) is self._oxigraph.Triple:
            self._take_reifier(head, object, source)
            return
        tail = self._thing(object)
        if tail is None:
            return
        if role == TYPE:
            self.type_predicates.add(predicate.value)
            self.typed.append(head)
            self.kinds.append(tail)
        else:
            self.add_fact(head, self._relation(predicate, role), tail, source)

    def _is_statement_of_things(self, predicate: Any, role: int, object: Any) -> bool:
        """Return whether a statement says more than names of its subject, or what a class or relation is."""
        if role == TYPE:
            return object.value not in _SCHEMA_IRIS
        return not (role <= FIRST_LABEL or role == ALIAS or is_schema_relation(predicate.value))

    def _take_reifier(self, node: int, triple: Any, source: int) -> None:
        """Keep which triple a node reifies."""
        head, relation, object = self._thing(triple.subject), self.predicates[triple.predicate.value], triple.object
        if type(object) is self._oxigraph.Literal:
            tail: int | None = ~self.literal(object.value, _datatype(object), NONE)
        else:
            tail = self._thing(object)
        if head is not None and tail is not None:
            self.reified.extend((node, head, relation, tail, source))

    def _relation(self, predicate: Any, role: int) -> int:
        """Return the number of a relation, whatever else its predicate is for."""
        return role if role >= 0 else self.ids[predicate.value]

    def _thing(self, term: Any) -> int | None:
        """Return the number of an IRI or a blank node; None where it is left out."""
        if type(term) is self._oxigraph.NamedNode:
            return self.ids[term.value]
        if type(term) is not self._oxigraph.BlankNode:
            self.left_out["triple terms, which are statements about statements"] += 1
            return None
        if self.options.blank_nodes == "drop":
            self.left_out['statements with blank nodes (blank_nodes="keep")'] += 1
            return None
        return self.ids[self._blank + term.value]

    def _take_literal(self, head: int, predicate: Any, role: int, literal: Any, source: int) -> None:
        text, language = literal.value, literal.language
        if not text:
            self.left_out["empty texts"] += 1
        elif len(text) > self._max_length or "\0" in text:
            self._leave_out(text, head, predicate)
        elif role <= FIRST_LABEL:
            self.uses[role] += 1
            self.names.add_label(head, text, language, FIRST_LABEL - role)
        elif role == ALIAS:
            self.uses[role] += 1
            self.names.add_alias(head, text, language)
        elif not self._keeps_literals:
            self.left_out['literals (literals="keep")'] += 1
        elif language and self.languages.rank(language) is None:
            self._take_foreign((head, self._relation(predicate, role)), language, (text, source))
        else:
            if language and getattr(literal, "direction", None) is not None:
                self.left_out["directions of texts, of which the language stays"] += 1
            number = self.literal(text, _datatype(literal), len(self.heads))
            self.add_fact(head, self._relation(predicate, role), ~number, source)

    def _leave_out(self, text: str, head: int, predicate: Any) -> None:
        """Count a literal that is too long or holds NUL, or raise for it."""
        is_long = len(text) > self._max_length
        if self.options.on_error == "skip":
            long = f"more than {self._max_length:,} characters (limits=Limits(cell_length=N))"
            self.left_out[f"literals with {long if is_long else 'a NUL character'}"] += 1
            return
        thing = next(iri for iri, number in self.ids.items() if number == head)
        where = f"a literal of <{thing}> <{predicate.value}> has"
        if is_long:
            raise limit_error(self.place, None, f"{where} {len(text):,} characters", "cell_length", len(text))
        raise GraphLoadError(f"{where} a NUL character.", self.place, None, **skip_hints("literal"))

    def _take_foreign(self, pair: tuple[int, int], language: str, text: tuple[str, int]) -> None:
        """Keep a text of the first language in sorted order, in case there is none in a wanted language."""
        self.foreign_count += 1
        before = self.foreign.get(pair)
        if before is None or language < before[0]:
            self.foreign[pair] = language, [text]
        elif language == before[0]:
            before[1].append(text)

    def literal(self, text: str, datatype: str, fact: int) -> int:
        """Return the number of a literal.

        Args:
            text: Its text.
            datatype: The IRI of its datatype, or "@" and its language.
            fact: The number of the fact whose tail it is, or `NONE`.
        """
        literal, kind = self.literals[text], self.datatype_ids[datatype]
        if literal == len(self.datatypes):
            self.datatypes.append(kind)
            self.invalid += not is_valid(text, datatype)
        elif self.datatypes[literal] != kind:
            self.retyped.append((literal, kind, fact))
        return literal

    def add_fact(self, head: int, relation: int, tail: int, source: int) -> None:
        """Add a fact by its ids."""
        self.heads.append(head)
        self.relations.append(relation)
        self.tails.append(tail)
        if source != NONE:
            self.sources.extend([NONE] * (len(self.heads) - 1 - len(self.sources)))
            self.sources.append(source)

    def _graph(self, graph: Any) -> int:
        name = graph.value if type(graph) is self._oxigraph.NamedNode else self._blank + graph.value
        if name not in self._graph_numbers:
            taken = self._wanted_graphs is None or name in self._wanted_graphs
            self._graph_numbers[name] = self.graphs[name] if taken else _NOT_TAKEN
        return self._graph_numbers[name]


def _datatype(literal: Any) -> str:
    """Return the IRI of the datatype of a literal, or "@" and its language."""
    return f"@{literal.language}" if literal.language else str(literal.datatype.value)


def expanded(option: str, names: Sequence[str], prefixes: Prefixes) -> list[str]:
    """Return the IRIs of some names."""
    iris = []
    for name in names:
        iri = prefixes.expand(name)
        if iri.startswith(NAMED) or (iri == name and "://" not in name and not name.startswith("urn:")):
            raise InvalidArgumentError(
                f"{option}: {name!r} is no IRI, and no known prefix begins it.",
                hint_python='Give its prefix: prefixes={"ex": "http://example.org/"}.',
                hint_shell="Give its prefix: --read prefixes.ex=http://example.org/",
            )
        iris.append(iri)
    return iris


class _Roles(dict[str, int]):
    """What each predicate is for: the number of its IRI where it is a relation, a negative role otherwise."""

    def __init__(self, ids: TextIds, roles: Mapping[str, int]) -> None:
        super().__init__(roles)
        self._ids = ids

    def __missing__(self, iri: str) -> int:
        number = self[iri] = self._ids[iri]
        return number
