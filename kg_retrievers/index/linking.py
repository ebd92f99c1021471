"""EntityLinker: the entities that a question names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain, groupby
from typing import Literal, NamedTuple, get_args

import numpy as np

from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.graph.adjacency import is_backward
from kg_retrievers.graph.cache import Cache
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.index.embeddings import folded
from kg_retrievers.index.graph_index import GraphIndex

How = Literal["exact", "case", "fuzzy"]
NoEntity = Literal["raise", "empty"]

#: Scores of an entity whose name is written exactly; but for case, accents or punctuation; but for blanks as well; and
#: the most that a fuzzy mention gets.
EXACT_SCORE, CASE_SCORE, BLANKS_SCORE, FUZZY_SCORE = 1.0, 0.9, 0.8, 0.8

#: The least share of equal letters between a fuzzy mention and a name: one wrong letter in six passes. On MetaQA dev
#: with a random typo in each topic, 81 % are linked right by it and 1 % wrong; of names that are not in the graph, 1 %.
FUZZY_SHARE = 0.83

#: How many near names a fuzzy mention is compared with; of how many words it is at most; how many mentions are tried.
FUZZY_NAMES, FUZZY_WORDS, FUZZY_WINDOWS = 8, 10, 256

# Words with the same first letters as a word of the schema are taken for it: "director" beside "directed_by".
_STEM = 4

_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"[^\W_]+")

#: No mentions by themselves in lower case, since films are called "Her", "It" and "Up".
FUNCTION_WORDS = frozenset(
    _WORD.findall(
        "a about after all also am an and any are as at be been before but by can could d did do does during each find "
        "for from get give had has have he her him his how i if in into is it its list ll m many may me more most much "
        "my name no not of off on one or other our out over please re s same see shall she should show so some such t "
        "tell than that the their them then there these they this those to under up us ve was we were what when where "
        "which while who whom whose why will with would you your film films movie movies"
    )
)


@dataclass(frozen=True)
class LinkedEntity:
    """An entity that a mention may mean.

    Attributes:
        entity: Its key.
        label: What it is called.
        score: In (0, 1]: 1 if a name is written exactly, 0.9 but for case, accents or punctuation, 0.8 but for blanks
            as well; 0.8 times the share of equal letters for a fuzzy mention.
        how: "exact", "case" or "fuzzy".
    """

    entity: str
    label: str
    score: float
    how: How


@dataclass(frozen=True)
class Mention:
    """A part of a question that names an entity.

    Attributes:
        text: The part, `question[start:end]`.
        start: Where it begins.
        end: Where it ends.
        candidates: The entities it may mean, best first; all entities of an ambiguous label have equal scores.
        rank: 1 for the mention most likely to be the topic of the question, then 2, 3 ...
    """

    text: str
    start: int
    end: int
    candidates: tuple[LinkedEntity, ...]
    rank: int


class _Token(NamedTuple):
    start: int
    end: int
    word: str  # its letters and digits, folded
    capital: bool


class _Match(NamedTuple):
    start: int
    end: int
    candidates: tuple[LinkedEntity, ...]
    marked: bool  # has capitals, digits or signs, other than at the very beginning of the question


class _Table(NamedTuple):
    texts: dict[str, list[str]]  # names and keys by their letters and digits, folded
    longest: int
    schema: frozenset[str]  # the first letters of words in relations and types


class EntityLinker:
    """Finds the entities that a question names, in plain text. Safe to share between threads.

    Labels, aliases and keys are looked up at word boundaries: as written, and without case, accents, punctuation and
    underscores. Where mentions overlap, the longest wins, then the first. A function word is a mention only if it is
    written exactly and with a capital inside the question ("Her", not "her"); a lower-case word of the graph's schema
    ("director") only if nothing else is found. Capitalised words that belong to no mention, or all words where nothing
    was found, are compared with the nearest names of the index, letter by letter.

    Beside a mention with capitals, one lower-case word whose name has capitals is a word, not a mention: "who acted
    together with Jane Doe" is not about the film "Together". It is one all the same where a fact points at what has the
    name, as at a genre, or where one or two facts join that to a mention with capitals. So the topic and no other is
    found in 95.9, 99.1 and 99.6 % of MetaQA's 1-, 2- and 3-hop dev questions and in 90.0 % of the 1-hop paraphrases,
    not in 94.7, 90.1, 92.7 and 84.5 % (on a random half, the other half of which the rule was chosen on).

    The likeliest topic, rank 1, is a mention with capitals, digits or signs before others, then one that is not fuzzy,
    then the longest. It is the topic of 99.98, 99.99 and 99.93 % of MetaQA's 1-, 2- and 3-hop dev questions; of 99 % if
    they are written in lower case.

    A mention has word boundaries around it, so in scripts without blanks between words only whole phrases are found.

    Args:
        index: The index of the graph.
        max_candidates: How many entities a mention may have.
        no_entity: What `link` does when it finds nothing: "raise" an error, or return an "empty" list.

    Raises:
        InvalidArgumentError: If `max_candidates` is no integer from 1, or `no_entity` is neither of the two.

    Example:
        >>> from kg_retrievers.graph import KnowledgeGraph
        >>> from kg_retrievers.index import GraphIndex, HashedEmbeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
        >>> linker = EntityLinker(GraphIndex.build(graph, HashedEmbeddings()))
        >>> [(mention.text, mention.candidates[0].how) for mention in linker.link("did spike jonze direct Her?")]
        [('spike jonze', 'case'), ('Her', 'exact')]
    """

    def __init__(self, index: GraphIndex, *, max_candidates: int = 16, no_entity: NoEntity = "raise") -> None:
        """Check the arguments; the table of names is made when it is first needed."""
        if type(max_candidates) is not int or max_candidates < 1:
            raise InvalidArgumentError(
                f"EntityLinker: max_candidates must be an integer from 1, but got {max_candidates!r}."
            )
        if no_entity not in get_args(NoEntity):
            raise InvalidArgumentError(f"EntityLinker: no_entity must be 'raise' or 'empty', but got {no_entity!r}.")
        self.index = index
        self.max_candidates = max_candidates
        self.no_entity = no_entity
        self._cache = Cache()

    def link(self, question: str) -> list[Mention]:
        """Find the mentions of entities in a question.

        Returns:
            The mentions by position; none overlap.

        Raises:
            InvalidArgumentError: If the question is empty.
            EntityLinkingError: If nothing is found and `no_entity` is "raise"; with up to three suggestions.
        """
        if not question.strip():
            raise InvalidArgumentError("EntityLinker.link: got an empty question.")
        tokens = [
            _Token(*found.span(), _squeezed(found[0]), found[0][0].isupper() or found[0][0].isdigit())
            for found in _TOKEN.finditer(question)
        ]
        matches, generic = self._named(question, tokens)
        windows = self._fuzzy_windows(tokens, matches)
        near = self._near([question[start:end] for start, end in windows])
        fuzzy = []
        for (start, end), entities in zip(windows, near, strict=True):
            if close := tuple(entity for entity in entities if entity.score >= FUZZY_SCORE * FUZZY_SHARE):
                fuzzy.append(_Match(start, end, close[: self.max_candidates], _marked(question, start, end)))
        fuzzy.sort(key=lambda match: -match.candidates[0].score)
        matches = self._without_words(question, sorted(_apart(fuzzy + matches) or ([] if windows else generic)))
        if not matches and self.no_entity == "raise":
            raise EntityLinkingError(f"No entity of the graph was found in {question!r}.", _labels(chain(*near)))
        ranks = {match: rank for rank, match in enumerate(sorted(matches, key=_likelihood, reverse=True), 1)}
        return [Mention(question[m.start : m.end], m.start, m.end, m.candidates, ranks[m]) for m in matches]

    def resolve(self, keys: Sequence[str]) -> list[str]:
        """Check entities that a caller names, each by its key, or by a label or alias that no other entity has.

        Returns:
            Their keys, in the order given.

        Raises:
            InvalidArgumentError: If `keys` is one text.
            EntityLinkingError: If a text names no entity, with suggestions, or several, with their keys.
        """
        if isinstance(keys, str):
            raise InvalidArgumentError(
                f"EntityLinker.resolve: wanted a list of entity keys, but got the text {keys!r}."
            )
        return [self._resolve(key) for key in keys]

    def _resolve(self, key: str) -> str:
        graph = self.index.graph
        if key in graph.entities:
            return key
        found = graph.entities_named(key)
        if len(found) > 1:
            raise EntityLinkingError(f"{key!r} is the name of several entities; give one of the keys {found}.")
        if not found:
            near = self._near([key] if key.strip() else [])
            raise EntityLinkingError(f"{key!r} is no entity key, label or alias of the graph.", _labels(chain(*near)))
        return found[0]

    @property
    def _table(self) -> _Table:
        return self._cache.get("table", (self.index,), lambda: _table_of(self.index.graph))

    def _named(self, question: str, tokens: Sequence[_Token]) -> tuple[list[_Match], list[_Match]]:
        """Return the mentions by name, and those that are lower-case words of the schema, each without overlaps."""
        table = self._table
        found: list[_Match] = []
        generic: list[_Match] = []
        for first, token in enumerate(tokens):
            squeezed = ""
            for last in tokens[first:]:
                start, end = token.start, last.end
                squeezed += last.word
                if len(squeezed) > table.longest or end - start > 2 * table.longest:
                    break
                text = question[start:end]
                names = table.texts.get(squeezed or text, ())
                if not names or (text not in names and not (token.word and last.word)):
                    continue
                words = _words(text)
                marked = _marked(question, start, end)
                whole = text == question.strip()
                if not whole and words and FUNCTION_WORDS.issuperset(words) and not (marked and text in names):
                    continue
                if not whole and not words and not _stands_alone(question, start, end):
                    continue
                known = not whole and not marked and all(map(self._is_generic, words))
                (generic if known else found).append(_Match(start, end, self._candidates(text, names), marked))
        return _longest(found), _longest(generic)

    def _candidates(self, text: str, names: Sequence[str]) -> tuple[LinkedEntity, ...]:
        graph = self.index.graph
        words = _words(text)
        scores = {
            name: EXACT_SCORE if name == text else CASE_SCORE if _words(name) == words else BLANKS_SCORE
            for name in names
        }
        entities: dict[str, LinkedEntity] = {}
        for name, score in sorted(scores.items(), key=lambda item: -item[1]):
            for key in [name] * (name in graph.entities) + graph.entities_named(name):
                how: How = "exact" if name == text else "case"
                entities.setdefault(key, LinkedEntity(key, graph.label(key), score, how))
        return tuple(entities.values())[: self.max_candidates]

    def _is_generic(self, word: str) -> bool:
        return word in FUNCTION_WORDS or word[:_STEM] in self._table.schema

    def _without_words(self, question: str, matches: list[_Match]) -> list[_Match]:
        """Leave out lower-case words that, beside a mention with capitals, are hardly meant as names."""
        cased = [match for match in matches if _has_capitals(_inside(question, match.start, match.end))]
        words = [match for match in matches if _is_word(question[match.start : match.end], match.candidates)]
        if not cased or not words:
            return matches
        near = np.concatenate([self._around(match)[0] for match in cased])

        def is_meant(match: _Match) -> bool:
            around, is_tail = self._around(match)
            return is_tail or bool(np.isin(around, near).any())

        return [match for match in matches if match not in words or is_meant(match)]

    def _around(self, match: _Match) -> tuple[Array, bool]:
        """Return the ids of what a mention may mean and of its neighbors, and whether any is the tail of a fact."""
        graph, adjacency = self.index.graph, self.index.graph.adjacency
        ids = [graph.entities.find(candidate.entity) for candidate in match.candidates]
        rows = [adjacency.row(id) for id in ids]
        is_tail = any(is_backward(adjacency.labels[row]).any() for row in rows)
        return np.concatenate([ids, *(adjacency.neighbors[row] for row in rows)]), is_tail

    def _fuzzy_windows(self, tokens: Sequence[_Token], matches: Sequence[_Match]) -> list[tuple[int, int]]:
        """Return where misspelt names may be: runs of capitalised words that are not all matched, else anywhere."""
        opening = tokens[0]._replace(capital=tokens[0].capital and tokens[0].word not in FUNCTION_WORDS)
        runs = [list(run) for capital, run in groupby([opening, *tokens[1:]], lambda token: token.capital) if capital]
        windows = []
        for first, run in enumerate(runs):
            for last in range(first, len(runs)):
                inside = list(chain.from_iterable(runs[first : last + 1]))
                if len(inside) <= FUZZY_WORDS and not all(any(_covers(m, token) for m in matches) for token in inside):
                    windows.append((run[0].start, inside[-1].end))
        if not windows and not matches:
            for first, token in enumerate(tokens):
                for last in range(first, min(first + FUZZY_WORDS, len(tokens))):
                    words = [token.word for token in tokens[first : last + 1]]
                    ends_in_name = words[0] and words[-1] and words[-1] not in FUNCTION_WORDS
                    if ends_in_name and not all(map(self._is_generic, words)):
                        windows.append((token.start, tokens[last].end))
        return windows[:FUZZY_WINDOWS]

    def _near(self, texts: Sequence[str]) -> list[list[LinkedEntity]]:
        """Return the entities with the names nearest to each text, by falling share of equal letters."""
        graph = self.index.graph
        found = []
        for text, candidates in zip(texts, self.index.nearest_entities(texts, FUZZY_NAMES), strict=True):
            near = []
            for key in (graph.entities[id] for id in candidates.ids.tolist()):
                label = graph.label(key)
                share = max(_same_letters(text, name) for name in (label, *graph.aliases(key)))
                near.append(LinkedEntity(key, label, FUZZY_SCORE * share, "fuzzy"))
            found.append(sorted(near, key=lambda entity: -entity.score))
        return found


def _table_of(graph: KnowledgeGraph) -> _Table:
    texts: dict[str, list[str]] = {}
    for text in chain(graph.names, graph.entities):
        same = texts.setdefault(_squeezed(text) or text.strip(), [])
        if text not in same:
            same.append(text)
    words = chain.from_iterable(map(_words, chain(graph.relations, graph.types)))
    schema = frozenset(word[:_STEM] for word in words if len(word) >= _STEM)
    return _Table(texts, max(map(len, texts), default=0), schema)


def _words(text: str) -> list[str]:
    return _WORD.findall(folded(text))


def _squeezed(text: str) -> str:
    return "".join(_words(text))


def _same_letters(a: str, b: str) -> float:
    """Return the letters that two texts share in order, as a share of the longer text."""
    a, b = " ".join(_words(a)), " ".join(_words(b))
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / max(len(a), len(b), 1)


def _marked(question: str, start: int, end: int) -> bool:
    text = _inside(question, start, end)
    return _has_capitals(text) or not all(character.isalpha() or character.isspace() for character in text)


def _inside(question: str, start: int, end: int) -> str:
    """Return a part of a question without its very first letter, where a capital says nothing."""
    beginning = len(question) - len(question.lstrip())
    return question[max(start, beginning + 1) : end]


def _is_word(text: str, candidates: Sequence[LinkedEntity]) -> bool:
    """Return whether a mention is a word in lower case where the names have capitals."""
    differs = candidates[0].how == "case" and all(_has_capitals(candidate.label) for candidate in candidates)
    return differs and text.isalpha() and text.islower()


def _has_capitals(text: str) -> bool:
    return any(map(str.isupper, text))


def _stands_alone(question: str, start: int, end: int) -> bool:
    """Return whether a mention of signs has blanks around it and is not the full stop or question mark."""
    closing = question[start:end] in (".", "?", "!") and not question[end:].strip()
    return not closing and not question[start - 1 : start].strip() and not question[end : end + 1].strip()


def _covers(match: _Match, token: _Token) -> bool:
    return match.start <= token.start < match.end


def _likelihood(match: _Match) -> tuple[bool, bool, int, float]:
    """Return a sort key, greater for a likelier topic."""
    best = match.candidates[0]
    return match.marked, best.how != "fuzzy", match.end - match.start, best.score


def _longest(matches: list[_Match]) -> list[_Match]:
    """Keep the longest of overlapping matches, and none that differs in blanks where there is another."""
    return _apart(sorted(matches, key=lambda m: (m.candidates[0].score <= BLANKS_SCORE, m.start - m.end, m.start)))


def _apart(matches: Iterable[_Match]) -> list[_Match]:
    """Keep each match that does not overlap an earlier one."""
    kept: list[_Match] = []
    for match in matches:
        if all(match.end <= other.start or other.end <= match.start for other in kept):
            kept.append(match)
    return kept


def _labels(entities: Iterable[LinkedEntity]) -> list[str]:
    """Return the labels of the three entities with the highest scores."""
    best = sorted(entities, key=lambda entity: -entity.score)
    return list(dict.fromkeys(entity.label for entity in best))[:3]


def linker_of(index: GraphIndex) -> EntityLinker:
    """Return the linker of an index, the same one every time, so that its table is made once.

    Example:
        >>> from kg_retrievers.graph import KnowledgeGraph
        >>> from kg_retrievers.index import HashedEmbeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "starring", "Amy Adams")])
        >>> index = GraphIndex.build(graph, HashedEmbeddings())
        >>> linker_of(index) is linker_of(index)
        True
    """
    return index.derived.get("linker", (), lambda: EntityLinker(index))
