"""Fetch parts of a graph that stays in its database.

`ConnectedGraph` keeps the facts that it read lately.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, NamedTuple

from langchain_core.embeddings import Embeddings

from kg_retrievers.deadline import deadline
from kg_retrievers.errors import DatabaseTimeoutError, InvalidArgumentError
from kg_retrievers.graph import GraphBuilder, KnowledgeGraph, Triple, readable
from kg_retrievers.graph.attributes import attribute_set, read_attribute_set
from kg_retrievers.graph.cache import Immutable, Recent
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.parts import Facts, Limits, PartReader, Said, StoredEntity
from kg_retrievers.index.names import QuestionText, words_of
from kg_retrievers.index.server_names import ServerNames, StoredName
from kg_retrievers.index.vector_store import MOST, VectorStoreSearch

_LOGGER = logging.getLogger(__name__)

#: The most facts of a part. PathQuestion's questions need some hundred, MetaQA's within 3 hops up to 120,000.
MAX_FACTS = 20_000

#: How many facts, and how many descriptions of entities, are kept of earlier parts.
KEPT = 500_000

#: The most hops of a part without a number of hops. If entities are left then, it is truncated.
MOST_HOPS = 100

#: How many seconds a part is taken for the state of the database.
FRESH_SECONDS = 300.0

#: How many seconds one query may take.
TIMEOUT = 30.0

#: How many words of a question a name has at most, if the database looks it up.
NAME_WORDS = 10


class PartRequest(NamedTuple):
    """Which part of a connected graph to fetch: the facts around some entities.

    Attributes:
        keys: The entities.
        hops: How many facts an entity of the part is away from these, at most. None for any number.
        between: Whether to fetch the facts between the outermost entities, too.
        names: Texts. The part also begins from the entities with exactly such a name, or else from the entities with
            the `k` nearest names.
        k: How many names are near to a text.
        near: Whether near names count in addition to exact ones.
        relations: The relations to fetch if the part with all relations is too large.
        limits: The conditions on facts of some of these relations, by relation, if the part is still too large. They
            have the form that `facts_of` of the reader takes, if it `takes_limits`. Others fetch all facts.
        steps: The relations of each hop. By default, all relations.
        labels: Whether to fetch the labels and types of the outermost entities.
        also: Further entities, without the facts around them.
        max_facts: The most facts of the part, if it differs from the index's number.
    """

    keys: tuple[str, ...] = ()
    hops: int | None = 0
    between: bool = False
    names: tuple[str, ...] = ()
    k: int = 1
    near: bool = False
    relations: tuple[str, ...] = ()
    limits: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    steps: tuple[tuple[str, ...], ...] = ()
    labels: bool = True
    also: tuple[str, ...] = ()
    max_facts: int | None = None


class GraphPart(NamedTuple):
    """A part of a graph.

    Attributes:
        graph: Its facts. All relations of the whole graph have the same ids in every part.
        truncated: Whether facts are missing. There may be too many, their relations may be new, or nothing was
            requested.
        narrowed: Whether the part has only the facts of the relations that were asked for.
        names: The names from which it begins.
    """

    graph: KnowledgeGraph
    truncated: bool
    narrowed: bool = False
    names: tuple[str, ...] = ()


class _Around(NamedTuple):
    """Facts around entities, and the entities that were met.

    It also says whether there are more facts, or facts left out.

    The facts of the first `asked` of the entities were asked for.
    """

    facts: Mapping[Triple, Said]
    met: list[str]
    asked: int
    truncated: bool
    left_out: bool


class ConnectedGraph(Immutable):
    """Fetch the facts around entities hop by hop, as a small graph. Safe to share between threads.

    If all facts of an entity were read, they are kept for `fresh_seconds`, with its description and names. A change of
    the database is seen after that time at the latest, or after `forget`. Facts of relations that are new since then
    are left out, since the ids of relations stay as they are. A warning names these relations once.

    Args:
        reader: Reads the database.
        embeddings: The embeddings of the names in the store.
        store: The store of the names. Without one, the database looks up names that are written exactly.
        max_facts: The most facts of a part. If there are more, the part is truncated.
        fresh_seconds: How many seconds a part is kept, 0 or more.
        timeout: The most seconds of one query, above 0.

    Raises:
        InvalidArgumentError: If a number is out of range.
        StaleIndexError: If the store was filled with other embeddings.
    """

    def __init__(
        self,
        reader: PartReader,
        embeddings: Embeddings,
        store: VectorStoreSearch | None = None,
        *,
        max_facts: int = MAX_FACTS,
        fresh_seconds: float = FRESH_SECONDS,
        timeout: float = TIMEOUT,
    ) -> None:
        """Read the names of the relations."""
        for name, value, fits, wanted in (
            ("max_facts", max_facts, _is_number(max_facts, int) and max_facts >= 1, "an integer from 1"),
            ("fresh_seconds", fresh_seconds, _is_number(fresh_seconds, int, float) and fresh_seconds >= 0, "0 or more"),
            ("timeout", timeout, _is_number(timeout, int, float) and timeout > 0, "above 0 seconds"),
        ):
            if not fits:
                raise InvalidArgumentError(f"GraphIndex.connect: {name} must be {wanted}, but got {value!r}.")
        self.reader, self.store = reader, store
        self.names = None if store is None else ServerNames(store, embeddings)
        if self.names is not None:
            self.names.refresh()
        self.max_facts, self.fresh_seconds, self.timeout = max_facts, fresh_seconds, timeout
        self._is_view = getattr(reader, "is_view", False)
        self.relations = tuple(reader.relations(refresh=True, timeout=timeout))
        self._known = frozenset(self.relations)
        self._warned: set[str] = set()
        self.triple_count = reader.count_facts(timeout=timeout)
        self._rows: Recent[dict[Triple, Said]] = Recent(KEPT, fresh_seconds, len)
        self._described: Recent[StoredEntity | None] = Recent(KEPT, fresh_seconds)
        self._named: Recent[list[str]] = Recent(KEPT, fresh_seconds, len)
        #: Indexes of parts, by their requests.
        self.parts: Recent[Any] = Recent(KEPT, fresh_seconds, _facts)
        #: The mentions of entities in questions.
        self.mentions: Recent[Any] = Recent(KEPT, fresh_seconds, len)

    def forget(self) -> None:
        """Forget all parts, so that the next one is read again."""
        for kept in (self._rows, self._described, self._named, self.parts, self.mentions):
            kept.clear()

    # --- facts --------------------------------------------------------------------------------------------------------

    def fetch(self, request: PartRequest, embed: Callable[[Sequence[str]], Array]) -> GraphPart:
        """Fetch the part of a request.

        Cost: one query per hop, with the descriptions of the first entities, one query for the facts between the
        outermost entities or for their descriptions, and one look-up of all names. Kept parts cost no query.

        Args:
            request: The part. Entities that the database lacks are left out.
            embed: Embeds texts that are no names.
        """
        named = self.nearest(request.names, request.k, embed, near=request.near)
        keys = {key for name in named for key in name.keys}.union(request.keys)
        found, narrowed = self._around(sorted(keys), request, None), False
        if found.truncated and request.relations:
            found, narrowed = self._around(sorted(keys), request, request.relations), True
            if found.truncated and request.limits and getattr(self.reader, "takes_limits", False):
                found = self._around(sorted(keys), request, request.relations, dict(request.limits))
        called = found.met if request.labels else found.met[: found.asked]
        graph = self.graph_of(found.facts, [*called, *request.also])
        asked = keys or request.also
        truncated = found.truncated or (found.left_out and not request.relations) or not asked
        names = tuple(dict.fromkeys(one.name for one in named))
        return GraphPart(graph, truncated, narrowed or (found.left_out and bool(request.relations)), names)

    def _around(
        self, starts: Sequence[str], request: PartRequest, only: Sequence[str] | None, limits: Limits | None = None
    ) -> _Around:
        """Return the facts around entities, and the entities that were met.

        The facts may be limited to some relations.
        """
        met = dict.fromkeys(starts)
        facts: dict[Triple, Said] = {}
        frontier, truncated, left_out, asked = list(starts), False, False, len(starts)
        most = self.max_facts if request.max_facts is None else request.max_facts
        for hop in range(MOST_HOPS if request.hops is None else request.hops):
            if not frontier or truncated:
                break
            asked = len(met)
            step = request.steps[hop] if hop < len(request.steps) else only
            read, truncated = self._facts_of(frontier, most - len(facts), step, limits)
            found = self._of_known(read)
            left_out = left_out or len(found) < len(read)
            facts |= found
            ends = {end for triple in found for end in (triple.head, triple.tail)}
            frontier = sorted(ends.difference(met))
            met |= dict.fromkeys(frontier)
        truncated = truncated or (request.hops is None and bool(frontier))
        if request.between and frontier and not truncated and len(facts) < most:
            rest = self.reader.facts_between(frontier, limit=most - len(facts), timeout=self.timeout)
            self._keep_descriptions(rest)
            between = self._of_known(_said(rest))
            left_out = left_out or len(between) < len(rest.triples)
            facts |= between
            truncated = rest.truncated
        return _Around(facts, list(met), asked, truncated, left_out)

    def _of_known(self, facts: Mapping[Triple, Said]) -> dict[Triple, Said]:
        """Return the facts of relations that were there at the connection.

        It warns once of each other relation.
        """
        known = {triple: said for triple, said in facts.items() if triple.relation in self._known}
        if len(known) < len(facts):
            new = sorted({triple.relation for triple in facts}.difference(self._known, self._warned))
            if new:
                self._warned.update(new)
                _LOGGER.warning(
                    "GraphIndex: the database has relations that it did not have when the index was connected: %s. "
                    "Their facts are left out. Connect again to use them: GraphIndex.connect(...).",
                    new[:5],
                )
        return known

    def with_facts(self, part: KnowledgeGraph, facts: Iterable[Triple], keys: Iterable[str]) -> GraphPart:
        """Add known facts, and entities that the database has, to a part."""
        wanted = set(facts)
        ends = {end for triple in wanted for end in (triple.head, triple.tail)}
        read: dict[Triple, Said] = {}
        if wanted:
            found = self.reader.facts_between(sorted(ends), limit=self.max_facts, timeout=self.timeout)
            read = dict(_said(found))
        known = self._of_known({triple: read.get(triple, Said()) for triple in wanted})
        graph = self.graph_of(said_in(part) | known, [*part.entities, *ends, *keys])
        return GraphPart(graph, len(known) < len(wanted))

    def graph_of(self, facts: Mapping[Triple, Said], keys: Iterable[str]) -> KnowledgeGraph:
        """Return a graph of facts and of the entities that the database has.

        It keeps facts of known relations, and its ids are by key.
        """
        ends = {end for triple in facts for end in (triple.head, triple.tail)}
        described = self._describe(sorted(set(keys)))
        builder = GraphBuilder()
        for name in self.relations:
            builder.relation(name)
        for key in sorted(ends.union(described)):
            builder.entity(key)
            entity = described.get(key)
            if entity is not None:
                label = None if entity.label == key else entity.label
                builder.describe(key, label, entity.aliases, entity.types)
        for triple, said in facts.items():
            for attributes in said.attributes or ("{}",):
                builder.add(*triple, read_attribute_set(attributes))
            if said.datatype:
                builder.set_datatype(triple.tail, said.datatype)
        columns, _ = builder.columns()
        return KnowledgeGraph(columns)

    def sample(self, count: int) -> tuple[dict[Triple, Said], bool]:
        """Return some facts of each relation, and whether there are more."""
        found = self.reader.sample_facts(self.relations, count, timeout=self.timeout)
        self._keep_descriptions(found)
        return _said(found), found.truncated

    def _facts_of(
        self, keys: Sequence[str], limit: int, only: Sequence[str] | None, limits: Limits | None
    ) -> tuple[dict[Triple, Said], bool]:
        """Return the facts of entities, `limit` at most.

        Also return whether there are more. The facts may be limited to some relations.
        """
        kept = self._rows.get_all(keys)
        rows = {one: said for row in kept.values() for one, said in row.items() if only is None or one.relation in only}
        left = limit - len(rows)
        wanted = [key for key in keys if key not in kept]
        if left < 0 or (left == 0 and wanted):
            return dict(islice(rows.items(), max(limit, 0))), True
        if not wanted:
            return rows, False
        limited: Any = {"limits": limits} if limits else {}  # which other readers need not know
        found = self.reader.facts_of(wanted, relations=only, **limited, limit=left, timeout=self.timeout)
        self._keep_descriptions(found)
        if only is None and not found.truncated:
            self._rows.keep(_by_entity(_said(found), wanted))
        return rows | _said(found), found.truncated

    def _describe(self, keys: Sequence[str]) -> Mapping[str, StoredEntity]:
        """Return the descriptions of the given entities that the database has."""

        def read(wanted: Sequence[str]) -> dict[str, StoredEntity | None]:
            found = {entity.key: entity for entity in self.reader.describe(wanted, timeout=self.timeout)}
            return {key: found.get(key) for key in wanted}

        described = self._described.get_or_make(keys, read)
        return {key: entity for key, entity in described.items() if entity is not None}

    def _keep_descriptions(self, found: Facts) -> None:
        self._described.keep({entity.key: entity for entity in found.entities})

    # --- names --------------------------------------------------------------------------------------------------------

    def nearest(
        self, texts: Sequence[str], k: int, embed: Callable[[Sequence[str]], Array], *, near: bool = False
    ) -> list[StoredName]:
        """Return names by text, exact ones or else the `k` nearest.

        The nearest names come from the store.

        Args:
            texts: The texts. The keys of entities count as names.
            k: How many near names.
            embed: Embeds texts that are no names.
            near: Whether near names count in addition to exact ones.
        """
        texts = list(dict.fromkeys(texts))
        exact = self._exact(texts)
        found = [name for names in exact.values() for name in names]
        if self.names is not None and (vague := [text for text in texts if near or not exact[text]]):
            vectors = embed([readable(text) for text in vague])
            with self._waiting():
                found += self._nearest(self.names, vectors, k)
        return found

    def _nearest(self, store: ServerNames, vectors: Array, k: int) -> list[StoredName]:
        """Return the `k` nearest names to each of several vectors.

        In a view, only names that it shows count.
        """
        size = k
        while True:
            found = [[one.name for one in names] for names in store.nearest(vectors, size)]
            if not self._is_view:
                return [name for names in found for name in names]
            visible = {name.name: name for name in self._shown([name for names in found for name in names])}
            shown = [[visible[name.name] for name in names if name.name in visible][:k] for names in found]
            if size == MOST or all(len(shown[at]) == k or len(names) < size for at, names in enumerate(found)):
                return [name for names in shown for name in names]
            size = min(4 * size, MOST)

    def _shown(self, names: Sequence[StoredName]) -> list[StoredName]:
        """Return names of the store with the entities that a view shows.

        Names that the view hides are left out.
        """
        if not self._is_view:
            return [*names]
        described = self._describe(sorted({key for name in names for key in name.keys}))
        found = list[StoredName]()
        for name in names:  # an entity may have another name in a view, as in some named graphs
            shown = (described[key] for key in name.keys if key in described)
            keys = [one.key for one in shown if name.name in (one.label, *one.aliases)]
            if name.truncated and not keys:
                keys = self._entities_named([name.name])[name.name]
            found += [name._replace(keys=tuple(keys))] if keys else []
        return found

    def in_question(self, question: str) -> list[str]:
        """Return the keys of the entities whose names a question holds, in whatever case."""
        text = QuestionText(question)
        windows = [
            text.text(first, last)
            for first in range(len(text.tokens))
            for last in range(first, min(first + NAME_WORDS, len(text.tokens)))
        ]
        if self.names is not None:
            with self._waiting():
                found = self.names.written_as(dict.fromkeys(windows))
            written = self._shown([name for names in found.values() for name in names])
            return sorted({key for name in written for key in name.keys})
        cases = {spelt for window in windows for spelt in _spellings(window)}
        return sorted({key for keys in self._entities_named(sorted(cases)).values() for key in keys})

    def _exact(self, texts: Sequence[str]) -> dict[str, list[StoredName]]:
        """Return the names that are written as each text.

        Also return the entities whose key it is.
        """
        found: dict[str, list[StoredName]] = {text: [] for text in texts}
        if self.names is not None and texts:
            with self._waiting():
                written = self.names.written_as(texts)
            shown = self._shown([name for names in written.values() for name in names])
            found |= {text: [name for name in shown if name.name == text] for text in texts}
        if missing := [text for text in texts if not found[text]]:
            for text, keys in self._entities_named(missing).items():
                found[text] = [StoredName(text, tuple(keys))] if keys else []
        return found

    def _entities_named(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Return the keys of the entities that have one of some names exactly.

        A name is a key, a label or an alias.
        """
        timeout = self.timeout
        return self._named.get_or_make(names, lambda wanted: self.reader.entities_named(wanted, timeout=timeout))

    def _waiting(self) -> AbstractContextManager[None]:
        """Let all waits for the store in this block end in time.

        The limit is the timeout of a query.
        """
        reason = f"GraphIndex: the vector store did not answer within {self.timeout:g} s."
        hint = {"hint_python": "Is it overloaded or locked? Else raise timeout.", "hint_shell": "Is it overloaded?"}
        return deadline(self.timeout, lambda: DatabaseTimeoutError(reason, **hint))


def _is_number(value: object, *kinds: type) -> bool:
    """Whether a value is a number of some kinds."""
    return isinstance(value, kinds) and not isinstance(value, bool)


def _said(found: Facts) -> dict[Triple, Said]:
    """Return facts with their attributes."""
    return {triple: found.said.get(triple, Said()) for triple in found.triples}


def said_in(graph: KnowledgeGraph) -> dict[Triple, Said]:
    """Return the facts of a graph with their attributes."""
    return {
        triple: Said(tuple(map(attribute_set, graph.attributes(triple))), graph.datatype(triple.tail) or "")
        for triple in graph.triples()
    }


def _by_entity(facts: Mapping[Triple, Said], keys: Sequence[str]) -> dict[str, dict[Triple, Said]]:
    """Return the facts of each of some entities, a value only with its head."""
    rows: dict[str, dict[Triple, Said]] = {key: {} for key in keys}
    for triple, said in facts.items():
        for end in {triple.head} if said.is_value else {triple.head, triple.tail}:
            if end in rows:
                rows[end][triple] = said
    return rows


def _facts(index: Any) -> int:
    """Return how many facts the index of a part has."""
    return len(index.graph)


def _spellings(text: str) -> set[str]:
    """Return how a name may be written that a question holds in other letters."""
    words = words_of(text)
    if not words:
        return {text}
    return {text, text.title(), text.lower(), text.capitalize(), "_".join(words)}
