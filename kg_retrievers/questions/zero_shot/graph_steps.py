"""The relations of a graph as steps of walks: what they are called, and what they join."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

import numpy as np

from kg_retrievers.graph import KnowledgeGraph, local_name, readable
from kg_retrievers.graph.adjacency import is_backward, label_count, relation_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.index.token_table import UNKNOWN, TokenTable, words
from kg_retrievers.questions.zero_shot.reading import read_word
from kg_retrievers.questions.zero_shot.relation_ends import RelationEnds
from kg_retrievers.questions.zero_shot.scorer import RelationScorer, StepStates, mean_rows, sums_of_rows

#: Words of relations that hold either way round, of which a graph may store one way only.
_MUTUAL = re.compile(
    r"\b(?:adjacent|adjoins?|ally|allied|borders?|bordering|colleagues?|connects?|connected|cousins?|enem(?:y|ies)|equals?"
    r"|friends?|interacts?|married|neighbou?rs?|neighbou?ring|opposite|partners?|related|rivals?|same|siblings?|similar"
    r"|spouses?|twins?|twinned|(?:class|room|team|work)-?mates?)\b",
    re.IGNORECASE,
)


def relation_words(name: str) -> tuple[str, str]:
    """Return the words of a relation, and of the type of its subjects where its name tells it, as Freebase's do.

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
        end_words: The vectors of the words that say what each label leads to.
        text_sums: The sum of the table's rows over the words of `step_texts`, by label; (labels, e).
        kinds: The positions in `KINDS` of what each label leads to.
        beside: Pairs of a label and one of the most frequent that its starts have beside it; (2, pairs).
        alike: Whether each relation joins entities of one kind, so that its direction matters: some are heads and tails
            of it, or they have like relations, and its name says nothing mutual; (relations).
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
        leads_to = [text for pair in zip(known[::2], known[1::2], strict=True) for text in reversed(pair)]
        texts = [text for name, of_one in zip(self.names, types, strict=True) for text in step_texts(name, *of_one)]
        self.text_sums = sums_of_rows(table, [_known_ids(table, text) for text in texts])
        self.end_words = WordRows(table, leads_to)
        self.kinds = np.zeros(len(texts), np.int64)
        self.kinds[::2] = ends.kinds
        mutual = np.array([bool(_MUTUAL.search(name)) for name in self.names], bool)
        self.alike = ends.alike & ~mutual
        starts = mean_rows(table, known)
        self.states: StepStates = scorer.steps(
            np.repeat(self.vectors, 2, axis=0),
            starts,
            starts.reshape(-1, 2, table.dimension)[:, ::-1].reshape(-1, table.dimension),
            is_backward(np.arange(label_count(len(self.names)))).astype(np.int64),
            self.kinds,
        )


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


class WordRows:
    """The vectors of the words of texts that mean something, or of all words of a text where none does.

    Args:
        table: Gives the vectors of words.
        texts: The texts.

    Example:
        >>> from kg_retrievers.index.token_table import token_table
        >>> rows = WordRows(token_table(), ["place of birth", ""])
        >>> rows[0].shape, rows[1].any()
        ((2, 256), np.False_)
    """

    def __init__(self, table: TokenTable, texts: Sequence[str]) -> None:
        """Read each word once."""
        known: dict[str, int] = {}
        telling, vectors = list[bool](), list[Array]()
        of_texts: dict[str, tuple[int, ...]] = {}
        for text in dict.fromkeys(texts):
            found = words(text)
            for word in found:
                if known.setdefault(word, len(known)) == len(vectors):
                    read = read_word(table, word)
                    telling.append(read.telling)
                    vectors.append(read.vector)
            ids = [known[word] for word in found]
            of_texts[text] = tuple([id for id in ids if telling[id]] or ids)
        self._vectors = np.stack(vectors) if vectors else np.empty((0, table.dimension), np.float32)
        self._of_texts = [of_texts[text] for text in texts]
        self._nothing = table.rows([UNKNOWN])

    def __getitem__(self, text: int) -> Array:
        """Return the vectors of the words of a text, by its position: unit rows, (n, e); one of zeros for no word."""
        ids = self._of_texts[text]
        rows: Array = self._vectors[list(ids)] if ids else self._nothing
        return rows


def _known_ids(table: TokenTable, text: str) -> list[int]:
    return [id for id in table.token_ids(text) if id != UNKNOWN]
