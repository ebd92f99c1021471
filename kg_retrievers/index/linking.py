"""The entities of a graph that a question names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain

import numpy as np

from kg_retrievers.datasets import check_question
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, named_arguments
from kg_retrievers.graph import KnowledgeGraph, Known
from kg_retrievers.graph.cache import Cache
from kg_retrievers.graph.columns import Array
from kg_retrievers.index.connected_graph import ConnectedGraph, PartRequest
from kg_retrievers.index.graph_index import GraphIndex, check_index
from kg_retrievers.index.hints import LOAD_NAMES, NAME_AN_ENTITY, SEE_NAMES, hints_for
from kg_retrievers.index.misspelt_names import (
    FUZZY_NAMES,
    ShortNames,
    misspelt,
    misspelt_windows,
    near_entities,
    nearest_labels,
)
from kg_retrievers.index.names import (
    BLANKS_SCORE,
    CASE_SCORE,
    EXACT_SCORE,
    FUNCTION_WORDS,
    MAX_CANDIDATES,
    How,
    LinkedEntity,
    Match,
    Mention,
    QuestionText,
    apart,
    english_share,
    has_capitals,
    longest,
    with_ranks,
    words_of,
)

# Words with the same first letters as a word of the schema are taken for it: "director" beside "directed_by". Where the
# schema has many words, any word has the first letters of one, and more letters are compared.
_STEM, _LONG_STEM, _MANY_WORDS = 4, 8, 1000

#: Of how many recent questions the mentions are kept: of more than ask at once.
RECENT_QUESTIONS = 128


class EntityLinker:
    """Finds the entities that a question names, in plain text. Safe to share between threads.

    Labels, aliases and keys are looked up at word boundaries: as written, and without case, accents, punctuation and
    underscores. If mentions overlap, the longest wins, then the first. A function word is a mention only if it is
    written exactly and with a capital inside the question ("Her", not "her"). A word of the graph's schema ("director")
    is a mention only if it is written so too, or nothing else is found. Capitalised words that belong to no mention, or
    all words if nothing was found, are looked up as short forms of names ("Acme" for "Acme Ltd.", a surname that one or
    a few people have, initials). They are also compared with the nearest names of the index, letter by letter.

    Next to a mention with capitals, one lower-case word whose name has capitals is a word, not a mention: "who acted
    together with Jane Doe" is not about the film "Together". The word is a mention all the same if a fact points at a
    thing of that name, such as a genre, or if one or two facts join that thing to a mention with capitals. One
    lower-case word with a greater share of English text than of the graph's facts, such as "film" or "world" in MetaQA,
    is no mention next to another one. In this way exactly the question entity is found in 99.0, 99.1 and 99.8 % of
    MetaQA's 1-, 2- and 3-hop dev questions and in 97.7 % of the 1-hop paraphrases (of every tenth).

    The likeliest question entity, rank 1, is a mention with capitals, digits or signs before others, then one that is
    not fuzzy, then the longest. It is right in 99.98, 99.99 and 99.93 % of MetaQA's 1-, 2- and 3-hop dev questions, and
    in 99 % if they are written in lower case.

    A mention has word boundaries around it, so in scripts without blanks between words only whole phrases are found.

    Args:
        index: The index of the graph.

    Example:
        >>> from kg_retrievers.graph import KnowledgeGraph
        >>> from kg_retrievers.index import GraphIndex, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
        >>> linker = EntityLinker(GraphIndex.build(graph, default_embeddings()))
        >>> [(mention.text, mention.candidates[0].how) for mention in linker.link("did spike jonze direct Her?")]
        [('spike jonze', 'case'), ('Her', 'exact')]
    """

    @named_arguments
    def __init__(self, index: GraphIndex) -> None:
        """Make nothing yet: the table of names is made when it is first needed."""
        check_index("EntityLinker", index)
        self.index = index
        self._cache = Cache()

    def with_index(self, index: GraphIndex) -> EntityLinker:
        """Return the linker of another index."""
        return linker_of(index)

    def link(self, question: str) -> list[Mention]:
        """Find the mentions of entities in a question.

        The cost is linear in the length of the question. A recent question costs nothing again.

        Returns:
            The mentions by position, without overlaps.

        Raises:
            InvalidArgumentError: If the question is empty or too long.
            EntityLinkingError: If nothing is found. The error has up to three suggestions.
        """
        check_question(question, "EntityLinker.link")
        if (connected := self.index.connected) is not None:
            kept = connected.mentions.get_or_make(
                [question], lambda _: {question: self._mentions_in(connected, question)}
            )
            return self._held(question, kept[question])
        return list(self._cache.get("links", (self.index,), lambda: lru_cache(RECENT_QUESTIONS)(self._link))(question))

    def _mentions_in(self, connected: ConnectedGraph, question: str) -> list[Mention]:
        """Find the mentions among the names of a connected graph.

        First, the names that the question holds are fetched, then those near to the words that are left.
        """
        keys = tuple(connected.in_question(question))
        names: tuple[str, ...] = ()
        if self.index.finds_near_names:
            part = self.index.part(PartRequest(keys, hops=1, labels=False))
            named, _ = EntityLinker(part)._named(text := QuestionText(question))
            windows = misspelt_windows(text, named, self._is_generic)
            names = tuple(dict.fromkeys(text.text(*window) for window in windows))
        request = PartRequest(keys, hops=1, names=names, k=FUZZY_NAMES, near=True, labels=False)
        return EntityLinker(self.index.part(request))._link(question)

    def _held(self, question: str, mentions: Sequence[Mention]) -> list[Mention]:
        """Return the mentions of entities that a part of a connected graph holds."""
        if not self.index.is_part:
            return list(mentions)
        entities = self.index.graph.entities
        held = [replace(one, candidates=tuple(c for c in one.candidates if c.entity in entities)) for one in mentions]
        held = [mention for mention in held if mention.candidates]
        if not held:
            raise self._nothing_found(question, ())
        return held

    def _link(self, question: str) -> list[Mention]:
        """Find the mentions of a question among the names of a graph in memory."""
        text = QuestionText(question)
        named, generic = self._named(text)
        short = self._short_names.find(text, named)
        windows = misspelt_windows(text, named, self._is_generic)
        near = near_entities(self.index, [text.text(*window) for window in windows])
        fuzzy = misspelt(text, windows, near, [*named, *short])
        matches = apart([*fuzzy, *named, *short]) or ([] if windows else generic)
        if not matches and not text.has_capital:
            likely = [match for match in generic if not self._is_english(text, match)]
            matches = apart(self._short_names.find_in_lower_case(text)) or likely
        matches = self._without_words(text, matches)
        if not matches:
            raise self._nothing_found(question, nearest_labels(chain(*near)))
        return with_ranks(question, matches)

    def resolve(self, keys: Sequence[str]) -> list[str]:
        """Check entities that a caller names.

        Each is named by its key, or by a label or alias that no other entity has.

        Returns:
            Their keys, in the order given.

        Raises:
            InvalidArgumentError: If `keys` is one text.
            EntityLinkingError: If a text names no entity, with suggestions, or several, with their keys.
        """
        if isinstance(keys, str):
            raise InvalidArgumentError(
                f"EntityLinker.resolve: wanted a list of entity keys, but got the text {keys!r:.200}."
            )
        index = self.index.part(PartRequest(tuple(keys), names=tuple(keys), k=FUZZY_NAMES))
        return [self._resolve(index, key) for key in keys]

    def _resolve(self, index: GraphIndex, key: str) -> str:
        graph = index.graph
        if key in graph.entities:
            return key
        found = graph.entities_named(key)
        if len(found) > 1:
            raise EntityLinkingError(f"{key!r:.200} is the name of several entities; give one of the keys {found}.")
        if not found:
            near = near_entities(index, [key] if key.strip() else [])
            message = f"{key!r:.200} is no entity key, label or alias of the graph."
            suggestions = nearest_labels(chain(*near))
            hints = (SEE_NAMES if not suggestions else {}) if index.finds_near_names else LOAD_NAMES
            raise EntityLinkingError(message, suggestions, **hints)
        return found[0]

    def _nothing_found(self, question: str, suggestions: Sequence[str]) -> EntityLinkingError:
        """Return the error for a question that names no entity.

        It has the nearest names, or else the next steps.
        """
        next_step = NAME_AN_ENTITY if self.index.finds_near_names else LOAD_NAMES
        hints = hints_for(question, {} if suggestions else next_step)
        return EntityLinkingError(f"No entity of the graph was found in {question!r:.200}.", suggestions, **hints)

    @property
    def _short_names(self) -> ShortNames:
        index = self.index

        def make() -> ShortNames:
            return ShortNames(index.graph, index.name_table, self._is_generic)

        return self._cache.get("short", (index.graph,), make)

    def _named(self, text: QuestionText) -> tuple[list[Match], list[Match]]:
        """Return the mentions by name, and lower-case words of the schema apart.

        Neither group has overlaps.
        """
        table = self.index.name_table
        names_of, candidates_of = cache(table.names), cache(self._candidates)
        found: list[Match] = []
        generic: list[Match] = []
        for first, last, digest in text.named_windows(table):
            written = text.text(first, last)
            squeezed = "".join(token.word for token in text.tokens[first : last + 1])
            names = names_of(squeezed or written, digest)
            if not names or (written not in names and not (text.tokens[first].word and text.tokens[last].word)):
                continue
            start, end = text.tokens[first].start, text.tokens[last].end
            words = words_of(written)
            marked, whole = text.is_marked(start, end), text.is_whole(start, end)
            if not whole and words and FUNCTION_WORDS.issuperset(words) and not (marked and written in names):
                continue
            if not whole and not words and not text.stands_alone(start, end):
                continue
            known = not whole and not (marked and written in names) and all(map(self._is_generic, words))
            match = Match(start, end, candidates_of(written, tuple(names)), marked)
            (generic if known else found).append(match)
        return longest(found), longest(generic)

    def _candidates(self, text: str, names: Sequence[str]) -> tuple[LinkedEntity, ...]:
        graph = self.index.graph
        words = words_of(text)
        scores = {
            name: EXACT_SCORE if name == text else CASE_SCORE if words_of(name) == words else BLANKS_SCORE
            for name in names
        }
        entities: dict[str, LinkedEntity] = {}
        for name, score in sorted(scores.items(), key=lambda item: -item[1]):
            for entity in [name] * (name in graph.entities) + graph.entities_named(name):
                how: How = "exact" if name == text else "case"
                entities.setdefault(entity, LinkedEntity(entity, graph.label(entity), score, how))
        return tuple(entities.values())[:MAX_CANDIDATES]

    def _is_generic(self, word: str) -> bool:
        """Tell whether a word is a function word, or begins as a schema word."""
        whole = self.index.whole
        stems, length = whole.derived.get("schema words", (), lambda: _schema_stems(whole.graph))
        return word in FUNCTION_WORDS or word[:length] in stems

    def _without_words(self, text: QuestionText, matches: list[Match]) -> list[Match]:
        """Leave out words of English, and lower-case words that are hardly names.

        The latter stand next to a mention with capitals.
        """
        matches = [match for match in matches if not self._is_english(text, match)] or matches
        cased = [match for match in matches if text.has_capitals(match)]
        words = {match for match in matches if _is_word(text.question[match.start : match.end], match.candidates)}
        if not cased or not words:
            return matches
        is_tail, around = cache(self._is_tail), cache(self._around)
        meant = {match for match in words if is_tail(match.candidates)}
        if doubtful := words - meant:
            near = np.zeros(len(self.index.graph.entities), np.bool_)
            for candidates in {match.candidates for match in cased}:
                near[around(candidates)] = True
            meant |= {match for match in doubtful if near[around(match.candidates)].any()}
        return [match for match in matches if match not in words or match in meant]

    def _is_english(self, text: QuestionText, match: Match) -> bool:
        """Tell whether a mention is one lower-case word, likelier English than a name.

        Function words next to it do not count.

        Its share of English text is compared with its candidates' share of the facts. If a database does not count its
        facts, it is assumed to have many.
        """
        written = text.question[match.start : match.end]
        telling = set(words_of(written)) - FUNCTION_WORDS
        if len(telling) != 1 or not all(character.islower() or character.isspace() for character in written):
            return False
        rows = [self.index.graph.adjacency.row(id) for id in self._ids(match.candidates)]
        facts: int = sum(row.stop - row.start for row in rows)
        share, count = english_share(telling.pop()), self.index.triple_count
        return share > 0 if count is None else share * count >= facts

    def _is_tail(self, candidates: tuple[LinkedEntity, ...]) -> bool:
        """Return whether anything that a mention may mean is the tail of a fact."""
        adjacency = self.index.graph.adjacency
        halves = (adjacency.half(id, True) for id in self._ids(candidates))
        return any(half.start < half.stop for half in halves)

    def _around(self, candidates: tuple[LinkedEntity, ...]) -> Array:
        """Return the ids of a mention's candidates and of their neighbors."""
        adjacency, ids = self.index.graph.adjacency, self._ids(candidates)
        return np.concatenate([ids, *(adjacency.neighbors[adjacency.row(id)] for id in ids)])

    def _ids(self, candidates: tuple[LinkedEntity, ...]) -> list[int]:
        return [self.index.graph.entities.find(candidate.entity) for candidate in candidates]


def _schema_stems(graph: KnowledgeGraph) -> tuple[frozenset[str], int]:
    """Return the first letters of the words in relations and types, with their number."""
    words = {word for name in chain(graph.relations, graph.types) for word in words_of(name) if len(word) >= _STEM}
    length = _STEM if len(words) <= _MANY_WORDS else _LONG_STEM
    return frozenset(word[:length] for word in words), length


def _is_word(text: str, candidates: Sequence[LinkedEntity]) -> bool:
    """Tell whether a mention is a lower-case word whose names have capitals."""
    differs = candidates[0].how == "case" and all(has_capitals(candidate.label) for candidate in candidates)
    return differs and text.isalpha() and text.islower()


def linker_of(index: GraphIndex) -> EntityLinker:
    """Return the linker of an index.

    It is the same one every time, so that its table is made once.

    Example:
        >>> from kg_retrievers.graph import KnowledgeGraph
        >>> from kg_retrievers.index import default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "starring", "Amy Adams")])
        >>> index = GraphIndex.build(graph, default_embeddings())
        >>> linker_of(index) is linker_of(index)
        True
    """
    return index.derived.get("linker", (), lambda: EntityLinker(index))


#: Replaces an entity in a question whose entities are masked.
MASK = "_"


@dataclass(frozen=True)
class QuestionEntity:
    """An entity that the question names, or several candidates with the same name.

    Attributes:
        start: The position of its first character in the question.
        end: The position after its last. Both are the question's length if it is not named.
        name: The question's name for it, or the label of a given entity.
        entities: The keys of its candidates, best first.
        best: How many of the first candidates are tied.
        given: Whether the caller named it by key.
        short: Whether the question shortens its name.
    """

    start: int
    end: int
    name: str
    entities: tuple[str, ...]
    best: int
    given: bool
    short: bool = False

    @property
    def term(self) -> Known:
        """The node that represents it in a pattern.

        It is the given or shortened entity, else anything with the name.
        """
        only = (self.given or self.short) and len(self.entities) == 1  # of several, any may be meant
        return Known(self.name, entity=self.entities[0] if only else None)


def question_entities(linker: EntityLinker, question: str, given: Sequence[str] = ()) -> list[QuestionEntity]:
    """Return the entities that a question is about, the likeliest first.

    These are the given entities, else the entities found in it.

    Raises:
        InvalidArgumentError: If the question is empty.
        EntityLinkingError: If none is given and none is found.
    """
    if not given:
        found = []
        for mention in sorted(linker.link(question), key=lambda mention: mention.rank):
            scores = [candidate.score for candidate in mention.candidates]
            keys = tuple(candidate.entity for candidate in mention.candidates)
            best, short = scores.count(scores[0]), mention.candidates[0].how == "short"
            found.append(QuestionEntity(mention.start, mention.end, mention.text, keys, best, False, short))
        return found
    return _given_entities(linker, question, given)


def _given_entities(linker: EntityLinker, question: str, given: Sequence[str]) -> list[QuestionEntity]:
    graph = linker.index.holding(given).graph
    alike: dict[str, list[str]] = {}
    for key in dict.fromkeys(given):
        alike.setdefault(graph.label(key), []).append(key)
    entities = []
    for label, group in alike.items():
        names = (label, *(name for key in group for name in (key, *graph.aliases(key))))
        spans = [span for name in names if (span := find_name(name, question))]
        start, end = spans[0] if spans else _linked_span(linker, question, group)
        entities.append(QuestionEntity(start, end, label, tuple(group), len(group), True))
    return entities


def _linked_span(linker: EntityLinker, question: str, keys: Sequence[str]) -> tuple[int, int]:
    """Return the position of a name of some entities in other letters or in short.

    It is the end of the question if there is none.
    """
    mentions = []
    with suppress(EntityLinkingError):
        mentions = linker.link(question) if question.strip() else []
    for mention in sorted(mentions, key=lambda mention: mention.rank):
        if any(candidate.entity in keys for candidate in mention.candidates):
            return mention.start, mention.end
    return len(question), len(question)


def link_question(linker: EntityLinker, question: str, given: Sequence[str] = ()) -> tuple[list[str], str]:
    """Return the question's possible entities, and the question without their names.

    The entities are given by key, the likeliest first.

    Raises:
        InvalidArgumentError: If the question is empty.
        EntityLinkingError: As `question_entities`.
    """
    entities = question_entities(linker, question, given)
    keys = dict.fromkeys(key for entity in entities for key in entity.entities[: entity.best])
    return list(keys), mask(question, [(entity.start, entity.end) for entity in entities])


def mask(question: str, spans: Iterable[tuple[int, int]]) -> str:
    """Replace parts of a question by `MASK`, and squeeze blanks.

    Overlapping parts become a single one.

    Example:
        >>> mask("who directed Her ?", [(13, 16)])
        'who directed _ ?'
    """
    parts, at = list[str](), 0
    for start, end in sorted(spans):
        if at <= start < end:
            parts += [question[at:start], MASK]
        at = max(at, end) if start < end else at
    return " ".join("".join([*parts, question[at:]]).split())


def find_name(name: str, text: str) -> tuple[int, int] | None:
    """Return the span of a name that occurs as whole words in a text.

    Case does not count. None if the name does not occur.
    """
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
    return found.span() if found else None
