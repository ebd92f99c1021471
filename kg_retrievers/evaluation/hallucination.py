"""Which of the nodes and edges that an answer names are in the graph: G-Retriever's measure of hallucination.

He et al., "G-Retriever: Retrieval-Augmented Generation for Textual Graph Understanding and Question Answering", NeurIPS
2024, arXiv:2402.07630: section 6.4, table 5 and appendix F. A model is told to list the nodes and edges that support
its answer; measured are the share of valid nodes, that of valid edges, and how often all of an answer are valid.
*Differs*: the authors read 100 answers themselves, here a rule reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, permutations

from langchain_core.documents import Document

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, readable
from kg_retrievers.index import FUNCTION_WORDS
from kg_retrievers.index.embeddings import folded

#: Unknown text of so many words or more is taken for a sentence and no name; what it says is told by the names in it.
SENTENCE_WORDS = 6

#: An edge with commas in its names is in so many parts at most.
MAX_PARTS = 12

_WORD = re.compile(r"[^\W_]+")
_ARTICLE = re.compile(r"(?:a|an|the) ")
# What an object of a scene graph is called, in the label that G-Retriever gives it.
_OBJECT = re.compile(r"name: (.+?)(?:; attribute: .*)?; \(x,y,w,h\): .*")

_KIND = r"(nodes?|entit(?:y|ies)|edges?|triples?|facts?|relationships?)\b"
_BEFORE = r"(?:(?:the|these|here|are|following|supporting|relevant|key|cited|used|graph)\W+){0,5}"
# "Nodes", "**Edges:**", "The nodes that support this answer are: Her, Spike Jonze".
_HEADER = re.compile(rf"\W*{_BEFORE}{_KIND}(?!\s*\d)(?:[^:,.]{{0,60}}:(.*)|\W*)", re.IGNORECASE)
_INLINE_HEADER = re.compile(rf"(?<=[.;])\s+(?={_KIND}:)", re.IGNORECASE)
_NUMBERED = re.compile(rf"{_KIND}\s*\d+\s*[:.)]\s*(.*)", re.IGNORECASE)  # "Edge 2: ..."
_NUMBER = re.compile(rf"\s*\(\s*{_KIND}\s*\d+\s*\)", re.IGNORECASE)  # "Her (node 1)"
_BULLET = re.compile(r"(?:[-*•–]|\d+[.)])\s+(.*)")
_SEPARATOR = re.compile(r"(\s*[,;]\s*and\s+|\s*[,;]\s*|\s+and\s+)")
_LABELLED_ARROW = re.compile(r"(?<!-)-+\[:?([^\[\]]+)\]-*>|(?<!-)--+([^-<>]+)--+>")
_ARROW = re.compile(r" ?(<[-=–—]+|←|(?<![-=–—])[-=–—]+>|→) ?")
_GROUP = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)")  # "(Dune (1984), directed_by, David Lynch)"


@dataclass(frozen=True)
class NameCheck:
    """The nodes and edges that an answer lists, each wording once, and those of them that are not in the graph.

    Attributes:
        nodes: The nodes.
        edges: The edges, as "head -> relation -> tail", or as they are written where they are a sentence.
        unknown_nodes: The nodes that the graph does not have.
        unknown_edges: The edges that the graph does not have.
        mentioned: Where nothing is listed, the names of the graph in the text, in lower case. They are in no share:
            what is not in the graph cannot be found in a text.
    """

    nodes: tuple[str, ...]
    edges: tuple[str, ...]
    unknown_nodes: tuple[str, ...]
    unknown_edges: tuple[str, ...]
    mentioned: tuple[str, ...]

    @property
    def valid_nodes(self) -> float | None:
        """The share of the nodes that the graph has, 0 ... 1; None where none is listed."""
        return 1 - len(self.unknown_nodes) / len(self.nodes) if self.nodes else None

    @property
    def valid_edges(self) -> float | None:
        """The share of the edges that the graph has, 0 ... 1; None where none is listed."""
        return 1 - len(self.unknown_edges) / len(self.edges) if self.edges else None

    @property
    def fully_valid(self) -> bool | None:
        """Whether the graph has all of them; None where nothing is listed."""
        return not (self.unknown_nodes or self.unknown_edges) if self.nodes or self.edges else None


def check_names(answer: str, graph: KnowledgeGraph | Document | Sequence[Document]) -> NameCheck:
    r"""Look up the nodes and edges that an answer lists.

    A list begins with "Nodes" or "Edges" (or entities, triples, facts, relationships), and is behind a colon or on the
    lines below. An edge is `(a, r, b)`, `a, r, b`, `a -> r -> b`, or `a -> b` whatever its relation; more arrows are
    more edges. It is valid if the graph has it in that direction. An entry that is none of these is a sentence: it is
    valid if the graph joins two of the entities that it names.

    A node is valid if it is a label, alias or key; case, accents, punctuation and articles do not count. An object of a
    scene graph is known by its name, too.

    Args:
        answer: What a model wrote.
        graph: The graph, or the evidence that the model was shown. The names of one graph are kept for the next answer.

    Raises:
        InvalidArgumentError: If the answer is no text, or `graph` is neither a graph nor Documents of a retriever.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("elephant", "in", "bushes"), ("elephant", "eats", "grass")])
        >>> check = check_names("A deer.\nNodes: deer, bushes\nEdges:\n* elephant -> eats -> grass", graph)
        >>> check.unknown_nodes, check.valid_nodes, check.valid_edges, check.fully_valid
        (('deer',), 0.5, 1.0, False)
    """
    if not isinstance(answer, str):
        raise InvalidArgumentError(f"check_names: wanted the answer as a text, but got {answer!r:.200}.")
    names = _names(graph) if isinstance(graph, KnowledgeGraph) else _Names(_shown(graph))
    nodes: dict[str, bool] = {}
    edges: dict[str, bool] = {}
    for are_edges, entry in _entries(answer):
        found = names.written_edges(entry)
        if found or are_edges:
            edges |= found or names.edges_in_words(entry)
        else:
            nodes |= names.nodes(entry)
    return NameCheck(
        tuple(nodes),
        tuple(edges),
        tuple(node for node, known in nodes.items() if not known),
        tuple(edge for edge, known in edges.items() if not known),
        () if nodes or edges else tuple(names.mentioned(answer)),
    )


def _shown(documents: Document | Sequence[Document]) -> KnowledgeGraph:
    """Return the evidence of Documents as one graph."""
    try:
        contents = [one.metadata for one in ([documents] if isinstance(documents, Document) else documents)]
        labels = {key: label for content in contents for key, label in content.get("labels", {}).items()}
        return KnowledgeGraph.from_triples(chain(*(content["triples"] for content in contents)), labels=labels)
    except (AttributeError, KeyError, TypeError, InvalidArgumentError) as cause:
        raise InvalidArgumentError(
            "check_names: wanted a KnowledgeGraph, or Documents as a retriever returns them (their metadata has "
            f"'triples', a list of [head, relation, tail]), but got {documents!r:.200}."
        ) from cause


def _entries(answer: str) -> Iterator[tuple[bool, str]]:
    """Yield each entry of the lists in an answer, and whether it is of a list of edges."""
    are_edges: bool | None = None  # in no list
    bullets: bool | None = None  # at the beginning of a list
    for line in _INLINE_HEADER.sub("\n", answer.replace("**", "").replace("`", "")).splitlines():
        line = " ".join(line.split())
        bullet = _BULLET.fullmatch(line)
        entry = bullet[1] if bullet else line
        if numbered := _NUMBERED.fullmatch(entry):
            yield _are_edges(numbered[1]), numbered[2]
            bullets = True
        elif header := _HEADER.fullmatch(entry):
            are_edges, entry = _are_edges(header[1]), (header[2] or "").strip()
            bullets = True if entry else None
            if entry:
                yield are_edges, entry
        elif not entry:
            are_edges = None if bullets is False else are_edges
        elif not bullet and bullets:
            are_edges = None
        elif are_edges is not None:
            bullets = bullet is not None
            yield are_edges, entry


def _are_edges(kind: str) -> bool:
    return not kind.casefold().startswith(("node", "entit"))


@lru_cache(maxsize=1)
def _names(graph: KnowledgeGraph) -> _Names:
    return _Names(graph)


class _Names:
    """The names of a graph, by their words, and what an entry of a list says about it."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.graph = graph
        self.entities: dict[str, set[str]] = {}
        for key in graph.entities:
            label = graph.label(key)
            called = _OBJECT.fullmatch(label)
            for name in (key, label, *graph.aliases(key), *([called[1]] if called else [])):
                self.entities.setdefault(_words(name), set()).add(key)
        self.longest = max((name.count(" ") + 1 for name in self.entities), default=0)

    def keys(self, text: str) -> set[str]:
        """Return the entities that are called so."""
        words = _words(text)
        return self.entities.get(words) or self.entities.get(_ARTICLE.sub("", words, count=1), set())

    def mentioned(self, text: str) -> list[str]:
        """Return the names in a text, each once, the longest at each place."""
        words, found, start = _WORD.findall(folded(text)), dict[str, None](), 0
        while start < len(words):
            ends = range(min(len(words), start + self.longest), start, -1)
            names = ((end, " ".join(words[start:end])) for end in ends)
            end, name = next(((end, name) for end, name in names if name in self.entities), (start + 1, ""))
            if name and name not in FUNCTION_WORDS:
                found[name] = None
            start = end
        return list(found)

    def nodes(self, entry: str) -> dict[str, bool]:
        """Return the nodes of an entry, and whether the graph has them; commas within its names are no separators."""
        parts = _SEPARATOR.split(_NUMBER.sub("", entry))
        found: dict[str, bool] = {}
        start = 0
        while start < len(parts):
            ends = range(min(len(parts), start + 2 * self.longest - 1), start, -2)
            end = next((end for end in ends if self.keys("".join(parts[start:end]))), start + 1)
            text = "".join(parts[start:end]).strip(" .")
            known = bool(self.keys(text))
            if names := self.mentioned(text) if self._is_sentence(text) else []:
                found |= dict.fromkeys(names, True)
            elif known or _says_something(text):
                found[text] = known
            start = end + 1
        return found

    def written_edges(self, entry: str) -> dict[str, bool]:
        """Return the edges of an entry that is made of arrows or of `(a, r, b)`, and whether the graph has them."""
        text = _LABELLED_ARROW.sub(lambda found: f" -> {found[1] or found[2]} -> ", _NUMBER.sub("", entry))
        text = " ".join(text.split()).strip(" .")
        if _ARROW.search(text):
            rows = [part for row in _chains(text, ";") for part in _chains(row, ",")]
            return dict(edge for row in rows for edge in self._arrows(_ARROW.split(row)))
        groups = [] if _WORD.search(_GROUP.sub("", text)) else map(self._three, _GROUP.findall(text))
        return dict(self._edge(*group) for group in groups if group)

    def edges_in_words(self, entry: str) -> dict[str, bool]:
        """Return the edges of an entry as `a, r, b`, or else the entry, and whether the graph has them."""
        text = _NUMBER.sub("", entry).strip(" .")
        whole, several = self._three(text), [self._three(row) for row in text.split(";")]
        rows = several if all(several) and not (whole and self._edge(*whole)[1]) else [whole]
        if edges := [row for row in rows if row and not any(map(self._is_sentence, row))]:
            return dict(self._edge(*edge) for edge in edges)
        pairs = permutations([self.entities[name] for name in self.mentioned(text)], 2)
        joined = any(self._joins(heads, None, tails) for heads, tails in pairs)
        return {text: joined} if joined or _says_something(text) else {}

    def _is_sentence(self, text: str) -> bool:
        return len(text.split()) >= SENTENCE_WORDS and not self.keys(text)

    def _arrows(self, terms: Sequence[str]) -> Iterator[tuple[str, bool]]:
        """Yield the edges of what stands between arrows, and these: entities alone, or relations between two arrows."""
        step = 2 if len(terms) % 4 == 3 else 4
        for at in range(0, len(terms) - step, step):
            ends = terms[at], terms[at + step]
            head, tail = reversed(ends) if terms[at + 1].startswith(("<", "←")) else ends
            yield self._edge(head, terms[at + 2] if step == 4 else None, tail)

    def _three(self, text: str) -> tuple[str, str, str] | None:
        """Cut a text into head, relation and tail: where the graph has the edge, or else has head and tail."""
        parts = re.split(r"\s*[;|]\s*" if re.search("[;|]", text) else r"\s*,\s*", text.strip())
        cuts = [
            (", ".join(parts[:one]), ", ".join(parts[one:two]), ", ".join(parts[two:]))
            for one, two in combinations(range(1, len(parts) if len(parts) <= MAX_PARTS else 1), 2)
        ]
        whole = [cut for cut in cuts if all(cut)]
        return max(whole, key=self._fit, default=None)

    def _fit(self, cut: tuple[str, str, str]) -> tuple[bool, int]:
        return self._edge(*cut)[1], sum(bool(self.keys(cut[end])) for end in (0, 2))

    def _edge(self, head: str, relation: str | None, tail: str) -> tuple[str, bool]:
        """Return an edge as a text, and whether the graph has it."""
        known = self._joins(self.keys(head), relation, self.keys(tail))
        return " -> ".join(part for part in (head, relation, tail) if part is not None), known

    def _joins(self, heads: set[str], relation: str | None, tails: set[str]) -> bool:
        triples = (triple for head in heads for tail in tails for triple in self.graph.triples(head, None, tail))
        return any(relation is None or _words(triple.relation) == _words(relation) for triple in triples)


def _words(name: str) -> str:
    """Return the letters and digits of a name, folded; the name itself where there are none."""
    return " ".join(_WORD.findall(folded(readable(name.strip())))) or name.strip()


def _chains(text: str, separator: str) -> list[str]:
    """Cut a text at the separators, if arrows are in each part; a name may hold one."""
    parts = [part.strip() for part in text.split(separator)]
    return parts if all(map(_ARROW.search, parts)) else [text]


def _says_something(text: str) -> bool:
    return _words(text) not in ("", "none", "n a")
