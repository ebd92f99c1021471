"""The keys of RDF terms, and the terms of keys, by the rules of the reader of files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from kg_retrievers.database.sparql.schema import SparqlSchema
from kg_retrievers.database.sparql.terms import BLOCK, Ask, Iri, Term, Text, blocks, is_sendable, is_writable, values
from kg_retrievers.graph.iris import NAMED
from kg_retrievers.graph.values import is_valid

#: How many kinds of literals that were met are kept beside those of the schema, and of how many IRIs is known whether
#: they are entities.
MAX_KINDS, MAX_KNOWN = 200, 100_000


class Keys:
    """Turns terms into keys and keys into terms.

    The key of an IRI is its short form. That of a literal is its text, in quotes where an entity has that key, so that
    literals of one text are one entity; a blank node has none. A key may be that of several terms, of which the
    endpoint holds some.

    Args:
        ask: Sends a query.
        schema: Returns what the endpoint holds.
    """

    def __init__(self, ask: Ask, schema: Callable[[], SparqlSchema]) -> None:
        """Know nothing yet."""
        self._ask, self._schema = ask, schema
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Forget what was learnt of the endpoint."""
        with self._lock:
            self._kinds: dict[str, None] = {}
            self._is_entity: dict[str, bool] = {}

    def of_terms(self, terms: Iterable[Term | None]) -> dict[Term, str]:
        """Return the keys of some terms, but for blank nodes."""
        compact = self._schema().vocabulary.names.compact
        keys: dict[Term, str] = {}
        texts: list[Text] = []
        for term in dict.fromkeys(terms):
            if isinstance(term, Iri):
                keys[term] = compact(term.value)
            elif isinstance(term, Text):
                texts.append(term)
        if texts:
            self._learn(texts)
            taken = self._taken({text.value for text in texts})
            keys |= {text: _free_key(text.value, taken) for text in texts}
        return keys

    def iris(self, key: str) -> list[Iri]:
        """Return the IRI that a key may be of; none for a text that no query holds."""
        iri = self._schema().vocabulary.names.expand(key) if is_sendable(key) else NAMED
        return [Iri(iri)] if iri != NAMED else []

    def texts(self, key: str) -> list[Text]:
        """Return the literals that a key may be of."""
        unquoted = [key[1:-1]] if len(key) > 2 and key[0] == key[-1] == '"' else []
        found = [text for text in (key, *unquoted) if text and is_sendable(text)]
        with self._lock:
            kinds = dict.fromkeys([*self._schema().kinds, *self._kinds])
        return [Text(text, kind) for text in found for kind in kinds if is_valid(text, kind)]

    def terms(self, key: str) -> list[Iri | Text]:
        """Return all terms that a key may be of."""
        return [*self.iris(key), *self.texts(key)]

    def _learn(self, texts: Sequence[Text]) -> None:
        known = set(self._schema().kinds)
        with self._lock:
            for text in texts:
                if text.kind not in known and is_writable(text) and len(self._kinds) < MAX_KINDS:
                    self._kinds[text.kind] = None

    def _taken(self, texts: set[str]) -> set[str]:
        """Return the texts that are keys of IRIs which are entities."""
        schema = self._schema()
        names = schema.vocabulary.names
        of_text: dict[str, str] = {}
        # In quotes, too, since what they hold may be taken.
        for text in texts:
            iri = names.expand(text)
            if (schema.has_names or not iri.startswith(NAMED)) and is_sendable(iri) and names.compact(iri) == text:
                of_text[text] = iri
        existing = self.existing(of_text.values())
        return {text for text, iri in of_text.items() if iri in existing}

    def existing(self, iris: Iterable[str]) -> set[str]:
        """Return which of some IRIs are entities."""
        wanted = sorted(set(iris))
        with self._lock:
            known = {iri: self._is_entity[iri] for iri in wanted if iri in self._is_entity}
        types = ", ".join(f"<{iri}>" for iri in self._schema().vocabulary.types)
        as_tail = f"EXISTS {{ ?head ?relation ?thing FILTER(?relation NOT IN ({types})) }}"
        for block in blocks([iri for iri in wanted if iri not in known], BLOCK):
            found = self._ask(
                f"SELECT DISTINCT ?thing WHERE {{ {values('?thing', [Iri(iri) for iri in block])} "
                f"FILTER(EXISTS {{ ?thing ?any ?value }} || {as_tail}) }}"
            )
            held = {term.value for term in found.column("thing") if isinstance(term, Iri)}
            known |= {iri: iri in held for iri in block}
        with self._lock:
            if len(self._is_entity) > MAX_KNOWN:
                self._is_entity.clear()
            self._is_entity |= known
        return {iri for iri, is_entity in known.items() if is_entity}


def _free_key(text: str, taken: set[str]) -> str:
    key = text
    while key in taken:
        key = f'"{key}"'
    return key
