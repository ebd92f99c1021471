"""Reads the entities of a graph behind a SPARQL endpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kg_retrievers.database.sparql.keys import Keys
from kg_retrievers.database.sparql.names import BLOCK, Ask, Called, blocks, read_names, value, values
from kg_retrievers.database.sparql.schema import SparqlSchema, type_labels
from kg_retrievers.database.sparql.terms import STRING, Iri, Text
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.iris import local_words
from kg_retrievers.graph.parts import EntityPage, StoredEntity
from kg_retrievers.graph.readers.rdf.sources import SCHEMA_TYPES

#: The most things that some names may be, all together, and how many things a query names that looks each up alone.
MAX_NAMED, TAILS = 10_000, 5_000

#: How many ranges of entities there are at most: the first eight digits of MD5.
_RANGE = 1 << 32


class Entities:
    """Reads entities; see `PartReader` for what the methods do.

    Args:
        ask: Sends a query.
        schema: Returns what the endpoint holds.
        keys: Turns terms into keys and keys into terms.
    """

    def __init__(self, ask: Ask, schema: Callable[[], SparqlSchema], keys: Keys) -> None:
        """Take what asks."""
        self._ask, self._schema, self._keys = ask, schema, keys
        self._types: dict[str, str] = {}

    def forget(self) -> None:
        """Forget the names of types that the schema lacks."""
        self._types = {}

    @property
    def _facts(self) -> str:
        return self._schema().vocabulary.facts("?head", "?relation", "?tail")

    def describe(self, keys: Sequence[str]) -> list[StoredEntity]:
        """Describe entities."""
        wanted = sorted(set(keys))
        iri_of = {iri.value: key for key in wanted for iri in self._keys.iris(key)}
        called = self._called([*iri_of])
        held = self._in_facts([iri for iri in iri_of if iri not in called])
        called |= {iri: Called(None, [], []) for iri in held}
        found = {entity.key: entity for entity in self.of_called(called)}
        texts = [text for key in wanted if key not in found for text in self._keys.texts(key)]
        keys_of_texts = self._keys.of_terms(self._held(texts))
        for term, key in keys_of_texts.items():
            if key not in found and isinstance(term, Text):
                found[key] = StoredEntity(key, term.value, [], [])
        return [found[key] for key in wanted if key in found]

    def _called(self, iris: Sequence[str]) -> dict[str, Called]:
        """Return what things are called, and their types."""
        schema = self._schema()
        return read_names(self._ask, schema.vocabulary, iris) if schema.described else {}

    def of_called(self, called: dict[str, Called]) -> Iterator[StoredEntity]:
        """Yield what things that are called so are."""
        names = self._type_names({iri for one in called.values() for iri in one.types})
        for iri, one in called.items():
            key = self._schema().vocabulary.names.compact(iri)
            label = one.label or local_words(iri) or key
            yield StoredEntity(key, label, one.aliases, sorted({names[type] for type in one.types}))

    def _type_names(self, iris: set[str]) -> dict[str, str]:
        schema = self._schema()
        known = {iri: schema.type_by_iri.get(iri) or self._types.get(iri) for iri in iris}
        if missing := sorted(iri for iri, name in known.items() if name is None):
            self._types |= type_labels(self._ask, schema.vocabulary, missing)
        return {iri: name or self._types[iri] for iri, name in known.items()}

    def _held(self, texts: Sequence[Text]) -> list[Text]:
        """Return which of some literals are tails of facts."""
        if self._schema().vocabulary.literals != "keep":
            return []
        found = list[Text]()
        for block in blocks(texts, BLOCK):
            rows = self._ask(
                f"SELECT DISTINCT ?tail WHERE {{ {values('?tail', block)} ?head ?relation ?tail . {self._facts} }}"
            )
            found += [term for term in rows.column("tail") if isinstance(term, Text)]
        return found

    def entities_named(self, names: Sequence[str], limit: int) -> dict[str, list[str]]:
        """Find the entities with a key, a label or an alias."""
        found = {name: set[str]() for name in names}
        unsure: dict[str, set[str]] = {}
        for block in blocks([*found], BLOCK // 10):
            self._find_called(block, found, unsure)
            for name in block:  # by the end of an IRI, where nothing gives a label
                for iri in self._iris_ending(name):
                    unsure.setdefault(iri, set()).add(name)
        held = self._keys.existing(unsure)
        called = self._called(sorted(held))
        in_facts = self._in_facts(sorted(held - called.keys()))
        of_unsure = called | {iri: Called(None, [], []) for iri in in_facts}
        for iri, entity in zip(of_unsure, self.of_called(of_unsure), strict=True):
            for name in unsure[iri]:
                if name in (entity.key, entity.label, *entity.aliases):
                    found[name].add(entity.key)
        self._find_texts(found)
        self._leave_out_descriptions(found)
        return {name: sorted(found[name])[:limit] for name in names}

    def _leave_out_descriptions(self, found: dict[str, set[str]]) -> None:
        """Leave out relations and types that are in no fact."""
        expand = self._schema().vocabulary.names.expand
        iri_of = {key: iri for keys in found.values() for key in keys if self._describes(iri := expand(key))}
        lone = set(iri_of.values()) - self._in_facts(sorted(iri_of.values()))
        for keys in found.values():
            keys -= {key for key, iri in iri_of.items() if iri in lone}

    def _find_called(self, names: Sequence[str], found: dict[str, set[str]], unsure: dict[str, set[str]]) -> None:
        """Find things by their labels and aliases; those in other languages are labels only where none is better."""
        vocabulary = self._schema().vocabulary
        by = values("?by", [Iri(iri) for iri in (*vocabulary.labels, *vocabulary.aliases)])
        texts = [text for name in names for text in self._keys.texts(name) if text.value == name]
        rows = self._ask(
            f"SELECT DISTINCT ?thing ?name WHERE {{ {values('?name', texts)} {by} ?thing ?by ?name . "
            f"FILTER(isIRI(?thing)) }} ORDER BY STR(?thing) STR(?name) LIMIT {MAX_NAMED}"
        )
        for thing, name in zip(rows.column("thing"), rows.column("name"), strict=True):
            if isinstance(thing, Iri) and isinstance(name, Text) and name.value in found:
                if vocabulary.ranks.rank(name.language or None) is None:
                    unsure.setdefault(thing.value, set()).add(name.value)
                else:
                    found[name.value].add(vocabulary.names.compact(thing.value))

    def _find_texts(self, found: dict[str, set[str]]) -> None:
        """Find the literals that are called so."""
        keys = self._keys.of_terms(self._held([text for name in found for text in self._keys.texts(name)]))
        for text, key in keys.items():
            for name in {key, text.value} & found.keys():
                found[name].add(key)

    def _iris_ending(self, name: str) -> list[str]:
        """Return IRIs whose key is a name, or that end with it in namespaces that are given."""
        vocabulary = self._schema().vocabulary
        found = [iri.value for iri in self._keys.iris(name)]
        ends = name.replace(" ", "_")
        if vocabulary.prefixes and ends and self._keys.iris(ends):
            made = (vocabulary.names.expand(f"{prefix}:{ends}") for prefix in sorted(vocabulary.prefixes))
            found += [iri for iri in made if local_words(iri) == name]
        return found

    def entities_after(self, position: str, page_size: int) -> EntityPage:
        """Read a page of all entities: those of whose texts MD5 gives a number in some range.

        An order by key would have the endpoint sort all entities for each page.

        Raises:
            InvalidArgumentError: If the position is none.
        """
        start, width = _range(position) if position else (0, self._width(page_size))
        while len(found := self._in_range(start, width, page_size)) > page_size and width > 1:
            width = max(1, width // 2)
        iris = sorted(text for text, is_iri in found if is_iri)
        keys = self._keys.of_terms(Text(text, STRING) for text, is_iri in found if not is_iri)
        entities = [StoredEntity(key, text.value, [], []) for text, key in keys.items() if isinstance(text, Text)]
        entities += self._named_by_iris(iris)
        end = start + width
        if 2 * len(found) <= page_size or len(found) <= 1:
            width = min(2 * width, _RANGE)
        return EntityPage(sorted(entities), f"{end:08x}.{width:08x}" if end < _RANGE else None)

    def _width(self, page_size: int) -> int:
        """Return how wide a range is in which there are a little fewer entities than wanted."""
        entities = self._ask(f"SELECT (COUNT(*) AS ?count) WHERE {{ {self._things()} }}").number()
        return min(_RANGE, max(1, int(_RANGE * 0.9 * page_size / max(1, entities))))

    def _in_range(self, start: int, width: int, most: int) -> list[tuple[str, bool]]:
        """Return the texts of a range, and whether each is that of an IRI; one more than wanted if there are more."""
        end = f"{start + width:08x}" if start + width < _RANGE else "g"
        rows = self._ask(
            f"SELECT DISTINCT ?text ?is_iri WHERE {{ {self._things()} BIND(STR(?thing) AS ?text) "
            f"BIND(isIRI(?thing) AS ?is_iri) BIND(MD5(?text) AS ?number) "
            f'FILTER(?number >= "{start:08x}" && ?number < "{end}") }} LIMIT {most + 1}'
        )
        columns = zip(rows.column("text"), rows.column("is_iri"), strict=True)
        return [(text, value(is_iri) in ("true", "1")) for term, is_iri in columns if (text := value(term)) is not None]

    def _things(self) -> str:
        """Return what finds `?thing`: the ends of facts, and what has names or types."""
        facts = self._schema().vocabulary.facts("?head", "?by", "?thing")
        return (
            f"{{ SELECT DISTINCT ?thing WHERE {{ {{ ?thing ?by ?value . FILTER(isIRI(?thing)) }} UNION "
            f"{{ ?head ?by ?thing . {facts} }} }} }}"
        )

    def _named_by_iris(self, iris: Sequence[str]) -> list[StoredEntity]:
        """Return entities by their IRIs, but for what is in no fact and describes relations and types."""
        schema = self._schema()
        schema_types = {schema.vocabulary.names.expand(name) for name in SCHEMA_TYPES}
        called = self._called(iris)
        unsure = [iri for iri in iris if iri not in called or schema_types.intersection(called[iri].types)]
        unsure += [iri for iri in iris if self._describes(iri)]
        lone = set(unsure) - self._in_facts(sorted(set(unsure)))
        return [*self.of_called({iri: called.get(iri, Called(None, [], [])) for iri in iris if iri not in lone})]

    def _describes(self, iri: str) -> bool:
        """Return whether a thing is a relation or a type, or has the label of one."""
        schema = self._schema()
        return iri in schema.relation_by_iri or iri in schema.type_by_iri or iri in schema.property_entities

    def _in_facts(self, iris: Sequence[str]) -> set[str]:
        """Return which of some IRIs are ends of facts."""
        found = set[str]()
        for block in blocks(iris, TAILS):
            rows = self._ask(f"SELECT DISTINCT ?thing WHERE {{ {self.in_facts_of([Iri(iri) for iri in block])} }}")
            found |= {term.value for term in rows.column("thing") if isinstance(term, Iri)}
        return found

    def in_facts_of(self, things: Sequence[Iri]) -> str:
        """Return what finds, as `?thing`, those of some things that are ends of facts; "" for none."""
        if not things:
            return ""
        vocabulary = self._schema().vocabulary
        as_head = f"EXISTS {{ ?thing ?relation ?tail . {vocabulary.facts('?thing', '?relation', '?tail')} }}"
        as_tail = f"EXISTS {{ ?head ?by ?thing . {vocabulary.facts('?head', '?by', '?thing')} }}"
        return f"{values('?thing', things)} FILTER({as_head} || {as_tail})"


def _range(position: str) -> tuple[int, int]:
    """Read where a range begins, and how wide it is.

    Raises:
        InvalidArgumentError: If the position says neither.
    """
    start, _, width = position.partition(".")
    try:
        found = int(start, 16), int(width, 16)
    except ValueError:
        found = -1, 0
    if not 0 <= found[0] < _RANGE or not 1 <= found[1] <= _RANGE:
        raise InvalidArgumentError(
            f"SparqlExecutor.entities_after: got {position!r:.100}, no position of a page. Begin with an empty text."
        )
    return found
