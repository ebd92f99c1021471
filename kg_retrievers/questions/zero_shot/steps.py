"""The relations of a graph as steps of walks, and the words of a question without its entities.

Some facts of each relation show the kinds of entities it joins, so that the cost depends on the number of relations
alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, dropwhile, pairwise, takewhile
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph import KnowledgeGraph, local_name, readable
from kg_retrievers.graph.adjacency import (
    Adjacency,
    half_of,
    is_backward,
    label_count,
    label_of,
    relation_of,
    reversed_label,
)
from kg_retrievers.graph.columns import Array, distinct, entries_between, spread
from kg_retrievers.graph.kinds import kind_members
from kg_retrievers.graph.pattern import excludes_named
from kg_retrievers.index import FUNCTION_WORDS, QuestionEntity
from kg_retrievers.index.embeddings import UNKNOWN, TokenTable, known_ids, mean_rows, sums_of_rows, words
from kg_retrievers.questions.words import WORDS, any_of
from kg_retrievers.questions.zero_shot.direction import Said, relation_says, stem_of
from kg_retrievers.questions.zero_shot.scorer import KINDS, OTHER, TOPIC, RelationScorer, StepStates

#: The words of a question about the kind of its answers, one of `KINDS`. The first in the question counts.
_ASKS = (
    ("date", re.compile(r"\bwhen\b|\b(?:what|which) (?:year|date|day|month)s?\b|(?<!same )\b(?:date|year)\b")),
    ("number", re.compile(r"\bhow (?!do\b|does\b|did\b|is\b|are\b|was\b|were\b|can\b|old\b)\w+|\bnumber of\b")),
    ("", re.compile(r"\b(?:who|whom|whose|where)\b")),
)

#: A question that begins with "what" or "which" asks for its noun: "where" in its midst begins a clause about it.
_ASKS_NOUN = re.compile(r"\W*(?:(?:in|on|at|to|from|for|by|of|with|under) )?(?:what|which)\b")
_RELATIVE = re.compile(r"\b(?:who|whom|whose|where|when) (?=\S)")


#: Words that a noun for the answers follows, and those that may stand between.
_BEFORE_NOUNS = frozenset(["which", "what", "list", "name", "give", "show", "find"])
_BETWEEN = frozenset(["the", "me", "all", "other", "of", "any", "some", "names"])


#: Words for an entity that a question does not name.
_PRONOUN = re.compile(r"\b(?:it|its|he|him|his|she|her|hers|they|them|their)\b", re.IGNORECASE)


#: Words that ask for others of which the same holds as of the entity that a question names, beside those of
#: `kg_retrievers.graph.pattern.EXCLUDING`.
_SHARING = re.compile(rf"\b{any_of('ask for others alike')}\b", re.IGNORECASE)


#: Words that ask for a step twice.
_TWICE = re.compile(r"\b(?:grand|great-?)\w+|\b(?:twice|two|three)\b", re.IGNORECASE)


#: Words of questions and relations, and units, by their measure.
_MEASURED_BY = {
    word: frozenset(name for name, some in WORDS["measures"].items() if word in some)
    for words_of_one in WORDS["measures"].values()
    for word in words_of_one
}


def measured_by(texts: Iterable[str]) -> frozenset[str]:
    """Return the measure that some words mean.

    Example:
        >>> sorted(measured_by(["how", "long"])), measured_by(["weight", "in", "grams"])
        (['length', 'time'], frozenset({'weight'}))
    """
    return frozenset().union(*(_MEASURED_BY.get(word, ()) for word in texts))


class Word(NamedTuple):
    """A word of a text.

    Attributes:
        text: The word, folded.
        vector: The mean of the rows of its tokens, a unit vector; zero for a word that the table does not know.
        telling: Whether it may name a relation: it is no function word and no sign.
        known: Whether the table has some of its tokens.
    """

    text: str
    vector: Array
    telling: bool
    known: bool


def masked_text(question: str, slots: Sequence[QuestionEntity], topic: QuestionEntity | None = None) -> str:
    """Return a question with `TOPIC` for one of its entities and `OTHER` for the others.

    If the question does not name the topic, it is put for the first pronoun, or otherwise at the end.

    Args:
        question: The question.
        slots: Its entities.
        topic: The one where walks start; None leaves all entities out.

    Example:
        >>> ann, bob = (QuestionEntity(start, start + 3, "", (), 0, False) for start in (9, 17))
        >>> masked_text("Who knew Ann and Bob?", [ann, bob], bob)
        'Who knew [y] and [x]'
        >>> given = QuestionEntity(15, 15, "Ann", ("Ann",), 1, True)
        >>> masked_text("Who is her aunt?", [given], given)
        'Who is [x] aunt'
    """
    parts, at = list[str](), 0
    for slot in sorted(slots, key=lambda slot: slot.start):
        if at <= slot.start < slot.end:
            parts += [question[at : slot.start], " " if topic is None else TOPIC if slot is topic else OTHER]
            at = slot.end
    text = "".join([*parts, question[at:]]).strip().rstrip("?.! ")
    if topic is None or topic.start < topic.end:
        return text
    told, replaced = _PRONOUN.subn(TOPIC, text, count=1)
    return told if replaced else f"{text} {TOPIC}"


def asked_kind(question: str) -> str | None:
    """Return the kind of value that a question asks for, one of `KINDS`, or None where its words do not say.

    Example:
        >>> asked_kind("When was it built?"), asked_kind("How tall is it?"), asked_kind("Who built it the same year?")
        ('date', 'number', '')
        >>> [asked_kind(text) for text in ("Which films came out in the same year?", "What is the town where it lies?")]
        [None, None]
    """
    folded = question.casefold()
    asked = _RELATIVE.sub("", folded) if _ASKS_NOUN.match(folded) else folded
    found = [(match.start(), kind) for kind, words in _ASKS if (match := words.search(asked))]
    return min(found)[1] if found else None


class Again(NamedTuple):
    """The way a question asks again for a thing it has named.

    Attributes:
        others: Whether its words ask for others that are like the entity it names.
        twice: Whether it says a verb or noun twice, such as "the teacher of her teacher".
    """

    others: bool
    twice: bool


def asked_again(text: str) -> Again:
    """Return how a question asks again. A verb together with its noun, such as "written" and "writer", is said twice.

    Args:
        text: The question without its entities.

    Example:
        >>> [asked_again(text).others for text in ("Who shares an office with", "who else is at", "teammates of")]
        [True, True, True]
        >>> asked_again("Which films were written by the writer of")
        Again(others=True, twice=True)
        >>> asked_again("What is the climate and the common name of")
        Again(others=False, twice=False)
    """
    said = [word for word in words(text) if word[0].isalpha() and word not in FUNCTION_WORDS]
    stems, forms = {stem_of(word) for word in said}, {*said}
    others = len(stems) < len(forms) or bool(_SHARING.search(text)) or excludes_named(text)
    return Again(others, len(stems) < len(said) or bool(_TWICE.search(text)))


def question_words(table: TokenTable, text: str) -> list[Word]:
    """Return the words of a text without entities."""
    return [read_word(table, word) for word in words(text)]


def read_word(table: TokenTable, word: str) -> Word:
    """Return a word as the function `words` found it in a text."""
    ids = known_ids(table, word)
    vector = table.rows(ids).mean(axis=0) if ids else np.zeros(table.dimension, np.float32)
    telling = word[0].isalnum() and word not in FUNCTION_WORDS
    return Word(word, vector / (np.linalg.norm(vector) + np.float32(1e-9)), telling, bool(ids))


def words_to_cover(question: Sequence[Word]) -> list[Word]:
    """Return the words that may name a relation, or all words if none may."""
    return [word for word in question if word.telling] or list(question)


def asked_noun(question: Sequence[Word]) -> list[Word]:
    """Return the words that say the kind of answers: those after "which", "what" or the like, up to a function word.

    Example:
        >>> from kg_retrievers.index.embeddings import token_table
        >>> [word.text for word in asked_noun(question_words(token_table(), "in which old towns is it"))]
        ['old', 'towns']
    """
    texts = [word.text for word in question]
    start = next((at for at, text in enumerate(texts) if text in _BEFORE_NOUNS), None)
    if start is None:
        return []
    after = dropwhile(lambda word: word.text in _BETWEEN, question[start + 1 :])
    return list(takewhile(lambda word: word.telling, after))


#: How many adjacency entries of an end are looked at, and how many of the relations found show the kind of the ends.
ENTRIES_SEEN, RELATIONS_SEEN = 64, 5

#: The share of the ends of a relation that must be of a kind, or of a type, for the relation to have it.
SHARE = 0.6

#: Heads and tails of a relation are of one kind where at least this share of the fewer of them are both.
COMMON_ENTITIES = 0.1

#: Of so many of the fewer ones, if there are more than are kept of a label.
COMMON_SEEN = 64

#: Heads and tails of a relation are of one kind if the relations around both have at least this Jaccard index.
COMMON_RELATIONS = 1 / 3

#: Of how many relations the entities are looked at at once.
_AT_ONCE = 256

#: How many facts of an entity are looked at for one that says the same.
MOST_ENTRIES = 4_096

#: The share of the facts of a relation that another has turned round, for both to say the same, and the fewest.
INVERSE, FEWEST = 0.8, 3

#: The greatest nearness of a noun to the things that entities have.
FURTHER = 0.5

#: How many relations beside show the kind of an end without a type.
BESIDE = 2

_DATE = re.compile(r"[12]\d{3}|[12]\d{3}[-/.]\d{1,2}([-/.]\d{1,2})?([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.][12]\d{3}")
_NUMBER = re.compile(r"[-+]?[$€£]?\d[\d.,]*([eE][-+]?\d+)?(\s?[%\w°/]{1,4})?")

#: Whether a text that begins with a byte may be a value: a digit of any script, a sign, or the sign of a currency.
_MAY_BEGIN_VALUES = np.array([chr(byte) in "0123456789+-$" or byte >= 0x80 for byte in range(256)])


def value_kind(text: str) -> str:
    """Return the kind of a text as a value, one of `KINDS`.

    Example:
        >>> value_kind("1987-03-02"), value_kind("1,200 km"), value_kind("Apollo 13")
        ('date', 'number', '')
    """
    if _DATE.fullmatch(text):
        return "date"
    return "number" if _NUMBER.fullmatch(text) else ""


class RelationEnds(NamedTuple):
    """The kinds of entities that each relation joins.

    Attributes:
        head_types: The type of most heads of each relation, or "".
        tail_types: The type of most tails of each relation, or "".
        around_heads: The labels that most heads of each relation have beside the relation's own.
        around_tails: The same of its tails.
        kinds: What the tails of each relation are as values, positions in `KINDS`; (relations).
        alike: Whether heads and tails of each relation are entities of one kind; (relations).
    """

    head_types: list[str]
    tail_types: list[str]
    around_heads: list[list[int]]
    around_tails: list[list[int]]
    kinds: Array
    alike: Array

    @classmethod
    def of_graph(cls, graph: KnowledgeGraph) -> RelationEnds:
        """Look at some facts of each relation, spread over all of them."""
        samples, relations = graph.relation_samples, np.arange(len(graph.relations))
        indptr = samples.facts_indptr
        around_heads = _around(graph.adjacency, samples.heads, indptr, label_of(relations, False))
        around_tails = _around(graph.adjacency, samples.tails, indptr, label_of(relations, True))
        alike = [
            len({*heads} & {*tails}) >= COMMON_RELATIONS * len({*heads, *tails}) > 0
            or _have_common_entities(graph, relation)
            for relation, (heads, tails) in enumerate(zip(around_heads, around_tails, strict=True))
        ]
        return cls(
            _types(graph, samples.heads, indptr),
            _types(graph, samples.tails, indptr),
            around_heads,
            around_tails,
            _kinds(graph, samples.tails, indptr),
            np.array(alike, bool),
        )


def _around(adjacency: Adjacency, entities: Array, indptr: Array, own: Array) -> list[list[int]]:
    """Return the labels that most of the entities of each relation have, the most frequent first.

    Args:
        adjacency: The graph.
        entities: Entities, by relation.
        indptr: Where those of each relation begin.
        own: The label of each relation that does not count.
    """
    size, around = label_count(len(own)), list[list[int]]()
    for first in range(0, len(own), _AT_ONCE):
        bounds = indptr[first : first + _AT_ONCE + 1]
        relations = np.repeat(np.arange(first, first + len(bounds) - 1), np.diff(bounds))
        of_entities, labels = _labels_of(adjacency, entities[bounds[0] : bounds[-1]], size)
        codes, counts = np.unique(relations[of_entities] * size + labels, return_counts=True)
        order = np.lexsort((codes, -counts, codes // size))
        of_codes, labels = np.divmod(codes[order], size)
        others = labels != own[of_codes]
        of_codes, labels = of_codes[others], labels[others]
        firsts = np.searchsorted(of_codes, np.arange(first, first + len(bounds)))
        around += [labels[low:high][:RELATIONS_SEEN].tolist() for low, high in pairwise(firsts.tolist())]
    return around


def _labels_of(adjacency: Adjacency, entities: Array, size: int) -> tuple[Array, Array]:
    """Return the labels in the first `ENTRIES_SEEN` entries of entities by label, each once, and whose they are."""
    ranges = (half_of(adjacency, entities, backward) for backward in (False, True))
    halves = [entries_between(low, np.minimum(high, low + ENTRIES_SEEN)) for low, high in ranges]
    codes = np.sort(np.concatenate([of_entries * size + adjacency.labels[entries] for entries, of_entries in halves]))
    of_codes = codes // size
    seen = np.arange(len(codes)) - np.searchsorted(of_codes, of_codes) < ENTRIES_SEEN
    of_entities, labels = np.divmod(distinct(codes[seen]), size)
    return of_entities, labels


def _have_common_entities(graph: KnowledgeGraph, relation: int) -> bool:
    """Return whether many of the heads of a relation are tails of it, or many of its tails are heads."""
    samples = graph.relation_samples
    fewer, more = sorted([label_of(relation, False), label_of(relation, True)], key=samples.sources.item)
    some = samples.sources_of(fewer)
    if samples.has_all(fewer) and samples.has_all(more):
        both = np.isin(some, samples.sources_of(more), assume_unique=True)
    else:
        some = some if samples.has_all(fewer) else spread(some, COMMON_SEEN)
        firsts, lasts = graph.adjacency.ranges_with(some, more)
        both = firsts < lasts
    return int(both.sum()) >= COMMON_ENTITIES * len(some) > 0


def _kinds(graph: KnowledgeGraph, tails: Array, indptr: Array) -> Array:
    """Return what most of the tails of each relation are as values, positions in `KINDS`."""
    names, of_tails = np.unique(graph.labels[tails], return_inverse=True)
    relations = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    kinds_of_names = np.zeros(len(names), np.int64)
    for at in np.flatnonzero(_MAY_BEGIN_VALUES[graph.names.first_bytes(names)]).tolist():
        kinds_of_names[at] = KINDS.index(value_kind(graph.names[int(names[at])]))
    kinds, least = np.zeros(len(indptr) - 1, np.int64), SHARE * np.diff(indptr)
    own = kinds_of_names[of_tails]
    numbers = KINDS.index("number")  # some of which may look like years
    for kind, of_kind in [(numbers, own > 0), *((kind, own == kind) for kind in range(1, len(KINDS)))]:
        counts = np.bincount(relations[of_kind], minlength=len(kinds))
        kinds[(counts >= least) & (counts > 0)] = kind
    return kinds


def _types(graph: KnowledgeGraph, entities: Array, indptr: Array) -> list[str]:
    """Return the type that most of the entities of each relation have, the rarest of equally frequent ones, or ""."""
    if not len(graph.types):
        return [""] * (len(indptr) - 1)
    types_of, found = {entity: graph.entity_types(entity) for entity in np.unique(entities).tolist()}, list[str]()
    for first, last in pairwise(indptr.tolist()):
        counts = Counter(chain.from_iterable(types_of[entity] for entity in entities[first:last].tolist()))
        most = max(counts.values(), default=0)
        frequent = [kind for kind, count in counts.items() if count == most >= SHARE * (last - first)]
        kind = min(frequent, key=lambda kind: (len(graph.type_entities(kind)), kind), default=None)
        found.append("" if kind is None else readable(local_name(graph.types[kind])))
    return found


#: Words of relations that hold either way round, of which a graph may store one way only.
_MUTUAL = re.compile(rf"\b{any_of('relations that hold either way')}\b", re.IGNORECASE)


def is_mutual(name: str) -> bool:
    """Return whether the words of a relation say that it holds either way round."""
    return bool(_MUTUAL.search(name))


def relation_words(name: str) -> tuple[str, str]:
    """Return the words of a relation, and of the type of its subjects if its name says it, as Freebase's do.

    Example:
        >>> relation_words("directed_by"), relation_words("/people/person/place_of_birth")
        (('directed by', ''), ('place of birth', 'person'))
        >>> relation_words("http://example.org/ontology#birthPlace"), relation_words("dbo:birthPlace")
        (('birth place', ''), ('birth place', ''))
    """
    name = local_name(name)
    if not name.startswith("/") and not re.fullmatch(r"[a-z]\w+(\.[a-z]\w+){2,}", name):
        return readable(name), ""
    parts = [re.split(r"[/.]", part.strip("/.")) for part in re.split(r"\./", name)]
    words = " ".join(readable(part[-1]) for part in parts).split()
    subject = readable(parts[0][-2]) if len(parts[0]) > 1 else ""
    return " ".join(dict.fromkeys(words)), subject


class GraphSteps:
    """The steps of a graph, one for each adjacency label.

    Args:
        graph: The graph.
        scorer: Reads the steps.
        table: Gives the vectors of words.

    Attributes:
        states: What the scorer reads of them; rows are labels.
        names: The words of each relation.
        vectors: `mean_rows` of the names, (relations, e).
        words: The vectors of the words of each relation.
        text_sums: The sum of the table's rows over the words of `step_texts`, by label; (labels, e).
        kinds: The positions in `KINDS` of what each label leads to.
        beside: Pairs of a label and one of the most frequent that its starts have beside it; (2, pairs).
        alike: Whether each relation joins entities of one kind, so that its direction matters: some are heads and tails
            of it, or they have like relations, and its name says nothing mutual; (relations).
        is_typed: Whether most of what each label leads to has a type; (labels).
        measures: What the words of each relation measure.
        phrases: Each label in words, in the order of the fact; see `step_phrase`.
        same: For each label the first label that says the same: itself, or the way back along a relation that is stored
            as its inverse; (labels).
    """

    def __init__(self, graph: KnowledgeGraph, scorer: RelationScorer, table: TokenTable) -> None:
        """Look at some facts of each relation."""
        read = [relation_words(name) for name in graph.relations]
        self.names = [name for name, _ in read]
        self.vectors = mean_rows(table, self.names)
        self.words = WordRows(table, self.names)
        ends = RelationEnds.of_graph(graph)
        heads = [subject or kind for (_, subject), kind in zip(read, ends.head_types, strict=True)]
        types = list(zip(heads, ends.tail_types, strict=True))
        around = list(chain.from_iterable(zip(ends.around_heads, ends.around_tails, strict=True)))
        self.beside = np.array([(label, other) for label, others in enumerate(around) for other in others], np.int64)
        self.beside = self.beside.reshape(-1, 2).T
        # Forward, a label leads from heads to tails; texts and rows are in the order of labels.
        known = [
            " ".join(filter(None, [kind, *(self.names[relation_of(label)] for label in labels)]))
            for kind, labels in zip(chain(*types), around, strict=True)
        ]
        texts = [text for name, of_one in zip(self.names, types, strict=True) for text in step_texts(name, *of_one)]
        self.text_sums = sums_of_rows(table, [known_ids(table, text) for text in texts])
        said = _turned(list(map(self._said_of, chain(*types), around)))
        self._own_words = WordRows(table, [own for own, _ in said])
        self._further_words = WordRows(table, [further for _, further in said])
        self.kinds = np.zeros(len(texts), np.int64)
        self.kinds[::2] = ends.kinds
        self.measures = [measured_by(words(name)) for name in self.names]
        self.phrases = _phrases(self.names, types, ends)
        self.same = same_labels(graph)
        mutual = np.array([is_mutual(name) for name in self.names], bool)
        same_types = np.array([bool(head) and head == tail for head, tail in types], bool)
        self.alike = (ends.alike | same_types) & ~mutual
        starts = mean_rows(table, known)
        self.is_typed = np.array([bool(kind) for pair in types for kind in reversed(pair)], bool)
        self._graph, self._typed, self._said = graph, dict[str, Array](), dict[int, Said | None]()
        saying = np.bincount(self.same, minlength=len(self.same))[self.same]
        shared: list[int] = np.flatnonzero(saying > 1).tolist()
        self._back = {label: np.flatnonzero(self.same == self.same[label]) for label in shared}
        self.states: StepStates = scorer.steps(
            np.repeat(self.vectors, 2, axis=0),
            starts,
            starts.reshape(-1, 2, table.dimension)[:, ::-1].reshape(-1, table.dimension),
            is_backward(np.arange(label_count(len(self.names)))).astype(np.int64),
            self.kinds,
        )

    def _said_of(self, kind: str, labels: Sequence[int]) -> tuple[str, str]:
        """Return the words that say what some entities are, and the nouns for what their relations lead to.

        Args:
            kind: Their type, or "".
            labels: The adjacency labels that most of them have.
        """
        own, further = [kind], list[str]()
        for label in labels:
            name = self.names[relation_of(label)]
            *before, last = words(name) or [""]
            names_other = not is_backward(label) and last not in FUNCTION_WORDS
            own.append(" ".join(before) if names_other else name)
            further += [last] if names_other else []
        return " ".join(filter(None, own)), " ".join(further)

    def end_nearness(self, rows: Array, label: int) -> Array:
        """Return the cosine of each of some vectors with the nearest word for the ends of a label, (n).

        At most `FURTHER` for the nouns of its further relations: a thing that has a country is hardly one.
        """
        own, further = ((rows @ words[label].T).max(axis=1) for words in (self._own_words, self._further_words))
        return np.asarray(np.maximum(own, np.minimum(further, FURTHER)))

    def turned_back(self, label: int) -> Array:
        """Return the labels that undo a step: its own way back, and the one that the graph stores as its inverse."""
        back = int(reversed_label(label))
        return self._back[back] if back in self._back else np.array([back])

    def said_end(self, label: int) -> Said | None:
        """Return the meaning of a relation's name for the end of a step along it, if it joins things of one kind."""
        relation = relation_of(label)
        if relation not in self._said:
            self._said[relation] = relation_says(self.names[relation]) if self.alike[relation] else None
        said = self._said[relation]
        return said and Said(said.stem, said.acts == bool(is_backward(label)))

    def turns_back(self, walk: Sequence[int]) -> bool:
        """Return whether a walk has a step that undoes the one before."""
        return any(following in self.turned_back(step) for step, following in pairwise(walk))

    def type_shares(self, kind: str) -> Array:
        """Return the share of the ends of each label of a type or of one below it, from -1 to 1, (labels).

        0 for ends without types, unless they are values.

        Args:
            kind: The type.
        """
        if kind not in self._typed:
            self._typed[kind] = self._shares_of(kind)
        return self._typed[kind]

    def _shares_of(self, kind: str) -> Array:
        graph, samples = self._graph, self._graph.relation_samples
        members = kind_members(graph, kind)
        of_kind = np.empty(0, np.int64) if members is None else members
        shares = np.zeros(len(self.phrases))
        starts, sizes = samples.facts_indptr[:-1], np.maximum(np.diff(samples.facts_indptr), 1)
        for backward, ends in ((False, samples.tails), (True, samples.heads)):
            inside, untyped = (
                np.add.reduceat(np.append(np.isin(ends, some), False), starts) for some in (of_kind, graph.untyped)
            )
            shares[label_of(np.arange(len(sizes)), backward)] = (2 * inside + untyped) / sizes - 1
        shares[self.kinds > 0] = -1
        return shares


def _turned(said: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what is said of heads and tails of each relation as what is said of the ends of its labels."""
    return [one for pair in zip(said[::2], said[1::2], strict=True) for one in reversed(pair)]


def _phrases(names: Sequence[str], types: Sequence[tuple[str, str]], ends: RelationEnds) -> list[str]:
    """Return each label in words. An end without a type is called by its kind of value, or by relations beside."""

    def beside(labels: Sequence[int]) -> str:
        return ", ".join(names[relation_of(label)] for label in labels[:BESIDE])

    phrases = list[str]()
    for relation, (name, (head, tail)) in enumerate(zip(names, types, strict=True)):
        head = head or beside(ends.around_heads[relation])
        tail = tail or KINDS[ends.kinds[relation]] or beside(ends.around_tails[relation])
        phrases += [step_phrase(name, head, tail, False), step_phrase(name, tail, head, True)]
    return phrases


def same_labels(graph: KnowledgeGraph) -> Array:
    """Return for each label the first that says the same, by the facts: most facts of one are the other turned round.

    Example:
        >>> pairs = [("A", "B"), ("C", "D"), ("E", "F")]
        >>> facts = [fact for a, b in pairs for fact in ((a, "hosts", b), (b, "hosted by", a))]
        >>> same_labels(KnowledgeGraph.from_triples(facts)).tolist()
        [0, 1, 1, 0]
    """
    samples, relations = graph.relation_samples, len(graph.relations)
    same = np.arange(label_count(relations))
    found: dict[int, int] = {}
    for relation, (low, high) in enumerate(pairwise(samples.facts_indptr.tolist())):
        counts = Counter[int]()
        for head, tail in zip(samples.heads[low:high].tolist(), samples.tails[low:high].tolist(), strict=True):
            forward, backward = graph.adjacency.half(tail, False), graph.adjacency.half(head, True)
            entries, other = min((forward, head), (backward, tail), key=lambda pair: pair[0].stop - pair[0].start)
            entries = slice(entries.start, min(entries.stop, entries.start + MOST_ENTRIES))
            labels = graph.adjacency.labels[entries][graph.adjacency.neighbors[entries] == other]
            counts.update(set(relation_of(labels).tolist()))
        other, count = max(counts.items(), key=lambda pair: (pair[1], -pair[0]), default=(-1, 0))
        if count >= max(INVERSE * (high - low), FEWEST):
            found[relation] = other
    for relation, other in found.items():
        if found.get(other) == relation >= other:
            same[label_of(relation, True)] = label_of(other, False)
            same[label_of(relation, False)] = label_of(other, relation != other)
    return same


def step_texts(name: str, heads: str, tails: str) -> tuple[str, str]:
    """Return a relation as a step forward and backward, in words.

    Args:
        name: Its words.
        heads: What its heads are, or "".
        tails: What its tails are, or "".

    Example:
        >>> step_texts("genre", "film", "")
        ('genre of film', 'film whose genre')
    """
    forward, backward = [tails, name, "of", heads], [heads, "whose", name]
    return " ".join(filter(None, forward)), " ".join(filter(None, backward))


def schema_words(graph: KnowledgeGraph) -> frozenset[str]:
    """Return the words of the relations and types of a graph."""
    names = chain(
        (relation_words(name)[0] for name in graph.relations), (readable(local_name(name)) for name in graph.types)
    )
    return frozenset(chain.from_iterable(map(words, names)))


def step_phrase(name: str, start: str, end: str, backward: bool) -> str:
    """Return a step in words in the order of the fact. "x" stands for its start, "?" for its end.

    Args:
        name: The words of its relation.
        start: What it starts from, or "".
        end: What it leads to, or "".
        backward: Whether the relation is crossed from tail to head.

    Example:
        >>> step_phrase("operated by", "plant", "company", False), step_phrase("reports to", "", "person", True)
        ('plant x operated by company ?', 'person ? reports to x')
    """
    here, there = f"{start} x".strip(), f"{end} ?".strip()
    return f"{there} {name} {here}" if backward else f"{here} {name} {there}"


class WordRows:
    """The vectors of the words of texts that mean something, or of all words of a text if none does.

    Args:
        table: Gives the vectors of words.
        texts: The texts.

    Example:
        >>> from kg_retrievers.index.embeddings import token_table
        >>> rows = WordRows(token_table(), ["place of birth", ""])
        >>> rows[0].shape, rows[1].any()
        ((2, 256), np.False_)
    """

    def __init__(self, table: TokenTable, texts: Sequence[str]) -> None:
        """Read each word once."""
        words_of = {text: words(text) for text in dict.fromkeys(texts)}
        read = {word: read_word(table, word) for word in dict.fromkeys(chain.from_iterable(words_of.values()))}
        ids = {word: at for at, word in enumerate(read)}
        telling = {text: [word for word in found if read[word].telling] for text, found in words_of.items()}
        self._vectors = np.stack([word.vector for word in read.values()]) if read else table.rows([UNKNOWN])
        self._of_texts = [[ids[word] for word in telling[text] or words_of[text]] for text in texts]
        self._nothing = table.rows([UNKNOWN])

    def __getitem__(self, text: int) -> Array:
        """Return the vectors of the words of a text, by its position: unit rows, (n, e); one of zeros for no word."""
        ids = self._of_texts[text]
        return np.asarray(self._vectors[ids] if ids else self._nothing)
