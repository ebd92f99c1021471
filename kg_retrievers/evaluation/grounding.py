"""Which nodes and edges that an answer names are in the graph: G-Retriever's measure of hallucination.

He et al., "G-Retriever: Retrieval-Augmented Generation for Textual Graph Understanding and Question Answering", NeurIPS
2024, arXiv:2402.07630: section 6.4, table 5 and appendix F. A model is asked to list the nodes and edges that support
its answer; the measures are the share of valid nodes, that of valid edges, and how often all of an answer are valid.

*Differs*: the authors read 100 answers themselves, in any wording. Here a rule reads lists, in the forms that
`check_grounding` names, and reports what it could not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice, pairwise

import numpy as np
from langchain_core.documents import Document

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, readable
from kg_retrievers.graph.facts import facts_of
from kg_retrievers.index import FUNCTION_WORDS
from kg_retrievers.index.embeddings import folded

_NAME_WORDS = 5  # longer text that is no name of the graph is a sentence, and no invented name
_PARTS = 12  # a name has so many commas at most, and in a sentence so many words
# The last is that of "didn't".
_NEGATIONS = frozenset(("not", "no", "never", "nor", "neither", "nobody", "nothing", "without", "cannot", "t"))

_KIND = r"(nodes?|entit(?:y|ies)|edges?|triples?|facts?|relationships?)\b"
_BEFORE = r"(?:(?:the|these|here|are|following|supporting|relevant|key|cited|used|graph)\W+){0,5}"
# "Nodes", "**Edges:**", "The nodes that support this answer are: Her, Spike Jonze".
_HEADER = re.compile(rf"\W*{_BEFORE}{_KIND}(?!\s*\d)(?:[^:,.]{{0,60}}:(.*)|\W*)", re.IGNORECASE)
_INLINE_HEADER = re.compile(rf"(?<=[.;])\s+(?={_KIND}:)", re.IGNORECASE)
_NUMBERED = re.compile(rf"{_KIND}\s*\d+\s*[:.)]\s*(.*)", re.IGNORECASE)  # "Edge 2: ..."
_NUMBER = re.compile(rf"\s*\(\s*{_KIND}\s*\d+\s*\)", re.IGNORECASE)  # "Her (node 1)"
_BULLET = re.compile(r"(?:[-*•–]|\d+[.)])\s+(.*)")
_RULE = re.compile(r"[\s|:]*-[-\s|:]*")  # "|---|---|"
_ROW = re.compile(r"(?:(\d+) ?\||\[\d+\]) ?(?=.)")  # "0 | Her", "[0] Her"
_MARK = re.compile(r" [(\[|]| [-–—] |:")  # between a name and what is said of it: "Her (film)", "Her: a film"
_OPEN_MARK = re.compile(r" \|| [-–—] |:")  # those after which commas do not separate nodes
_SEPARATOR = re.compile(r"( ?[,;] ?(?:and )?| and )(?![^()]{0,200}\))")  # outside of parentheses
_LABELLED_ARROW = re.compile(r"(?<!-)-+\[:?([^\[\]]+)\]-*>|(?<!-)--+([^-<>]+)--+>")
_ARROW = re.compile(r" ?(?:(?<![-=–—])[-=–—]+>|→) ?")
_BACKWARDS = re.compile(r"<[-=–—]|←")
_GROUP = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)")  # "(Dune (1984), directed_by, David Lynch)"
_OBJECT = re.compile(r"name: (.+?)(?:; attribute: .*)?; \(x,y,w,h\): .*")  # the label of an object of a scene graph
_WORD = re.compile(r"[^\W_]+")
_ARTICLE = re.compile(r"\A(?:a|an|the) ")

_Reading = tuple[str, bool | None]  # a text, and whether the graph has what it says; None where it is unread


@dataclass(frozen=True)
class Grounding:
    """The nodes and edges that an answer lists, each wording once, and those of them that are not in the graph.

    Attributes:
        nodes: The nodes.
        edges: The edges, as "head -> relation -> tail", or as they are written where they are a sentence.
        unknown_nodes: The nodes that the graph does not have.
        unknown_edges: The edges that the graph does not have.
        unread: Entries of no known form. They are in no share, neither valid nor invalid.
    """

    nodes: tuple[str, ...]
    edges: tuple[str, ...]
    unknown_nodes: tuple[str, ...]
    unknown_edges: tuple[str, ...]
    unread: tuple[str, ...]

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


def check_grounding(answer: str, graph: KnowledgeGraph | Document | Sequence[Document]) -> Grounding:
    r"""Look up the nodes and edges that an answer lists.

    A list begins with "Nodes" or "Edges" (or entities, triples, facts, relationships), and is behind a colon or on the
    lines below, also as a Markdown table. Text outside of lists is not read.

    - Nodes are separated by lines, commas, semicolons and "and". One is valid if it is a label, alias or key, or the
      name of an object of a scene graph. Case, accents, punctuation, articles, a number before it ("[0] Her", "0, Her")
      and what is said of it behind a parenthesis, colon, dash or "|" ("Her (film)") do not count.
    - An edge is `(a, r, b)`, `a, r, b`, `a | r | b` or `a -> r -> b`; or `a -> b` or `(a, b)`, whatever its relation.
      It is valid if the graph has it in that direction.
    - A sentence in a list of edges is valid if it is not negated, names two entities, no more, and has between them the
      telling word of a relation that joins them: the first of its last segment that is no function word, as "directed"
      of "film.directed_by". Which of them is the head is not read.
    - Other sentences are unread, never invalid; so is text in a list of nodes that is no name and has more than 5
      words, a node or a head that is a number (perhaps of a row of the prompt), and other rows of arrows.

    Args:
        answer: What a model wrote.
        graph: The graph, or the evidence that the model was shown. The names of one graph are kept for the next answer.

    Raises:
        InvalidArgumentError: If the answer is no text, or `graph` is neither a graph nor Documents of a retriever.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("elephant", "in", "bushes"), ("elephant", "eats", "grass")])
        >>> check = check_grounding("A deer.\nNodes: deer, bushes\nEdges:\n* elephant -> eats -> grass", graph)
        >>> check.unknown_nodes, check.valid_nodes, check.valid_edges, check.fully_valid
        (('deer',), 0.5, 1.0, False)
    """
    if not isinstance(answer, str):
        raise InvalidArgumentError(f"check_grounding: wanted the answer as a text, but got {answer!r:.200}.")
    if isinstance(graph, KnowledgeGraph):
        names = _names(graph)
    else:
        triples, labels = facts_of(graph, "check_grounding", " Or hand in a KnowledgeGraph.")
        names = _Names(KnowledgeGraph.from_triples(triples, labels=labels))
    found: tuple[dict[str, bool | None], ...] = ({}, {})
    for entry in _entries(answer):
        for is_edge, name, known in names.read(*entry):
            found[is_edge][name] = known
    nodes, edges = (tuple(name for name, known in one.items() if known is not None) for one in found)
    no_nodes, no_edges = (tuple(name for name, known in one.items() if known is False) for one in found)
    unread = tuple(name for one in found for name, known in one.items() if known is None)
    return Grounding(nodes, edges, no_nodes, no_edges, unread)


def _entries(answer: str) -> Iterator[tuple[bool, str]]:
    """Yield each entry of the lists in an answer, and whether it is of a list of edges."""
    are_edges: bool | None = None  # in no list
    bullets: bool | None = None  # at the beginning of a list
    lines = _INLINE_HEADER.sub("\n", answer.replace("**", "").replace("`", "")).splitlines()
    for line, below in pairwise([*lines, ""]):
        if _RULE.fullmatch(line) or ("|" in line and _RULE.fullmatch(below)):
            are_edges = are_edges if "|" in line or bullets is None else None
            continue  # in a table, and the names of its columns
        line = " ".join(line.split()).strip("| ")
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
        self.entities: dict[str, list[int]] = {}
        for number, key in enumerate(graph.entities):
            label = graph.label(key)
            called = _OBJECT.fullmatch(label)
            for words in {_words(name) for name in (key, label, *graph.aliases(key), called[1] if called else key)}:
                self.entities.setdefault(words, []).append(number)

    def read(self, are_edges: bool, entry: str) -> Iterator[tuple[bool, str, bool | None]]:
        """Yield what an entry holds: whether it is an edge, as arrows are in any list, its text, and what is known."""
        text = _LABELLED_ARROW.sub(lambda found: f" -> {found[1] or found[2]} -> ", _NUMBER.sub("", entry))
        text = self._without_row(" ".join(text.split()).strip(" .|"))
        are_edges = are_edges or _ARROW.search(text) is not None
        if _words(text) not in ("", "none", "n a") and (_WORD.search(text) or not are_edges):
            yield from ((are_edges, *one) for one in (self._edges(text) if are_edges else self._nodes(text)))

    def find(self, text: str) -> tuple[str, list[int]]:
        """Return the longest beginning of a text that is a name, and the entities called so; else the text and none."""
        text = self._without_row(text).strip(" []\"'") or text
        ends = [len(text), *reversed([mark.start() for mark in islice(_MARK.finditer(text), _PARTS)])]
        names = (text[:end] for end in ends if _words(text[:end]) in self.entities)
        name = next(names, text)
        return name, self.entities.get(_words(name), [])

    def _without_row(self, text: str) -> str:
        row = _ROW.match(text)
        return text if row is None or row[1] in self.entities or _words(text) in self.entities else text[row.end() :]

    def _nodes(self, text: str) -> Iterator[_Reading]:
        """Yield nodes; commas within names of the graph, or in what is said of a node, separate none."""
        text = text[1:-1] if text.startswith("(") and text.endswith(")") else text
        runs, described = list(self._runs(_SEPARATOR.split(text))), False
        for part, whole in runs[1:] if len(runs) > 1 and runs[0][0].isdecimal() and not runs[0][1] else runs:
            name, entities = self.find(part)
            marked = not whole and _OPEN_MARK.search(part) is not None
            if part and (marked or not described):
                yield name, True if entities else False if _may_be_name(name) and not name.isdecimal() else None
            described = described or marked

    def _edges(self, text: str) -> list[_Reading]:
        if _ARROW.search(text):
            rows = [part for row in _rows(text, ";") for part in _rows(row, ",")]
            return [(not _BACKWARDS.search(row) and self._edge(_ARROW.split(row))) or (row, None) for row in rows]
        groups = [] if _WORD.search(_GROUP.sub("", text)) else [self._columns(row) for row in _GROUP.findall(text)]
        edges = [edge for edge in groups if edge]
        return edges or [self._columns(text, bare=True) or (text, self._is_said(text) or None)]

    def _runs(self, parts: list[str]) -> Iterator[tuple[str, bool]]:
        """Yield the longest names of the graph in parts, where every other one is a separator, and what is none."""
        start = 0
        while start < len(parts):
            ends = range(min(len(parts), start + 2 * _PARTS - 1), start, -2)
            end = next((end for end in ends if _words("".join(parts[start:end])) in self.entities), None)
            yield "".join(parts[start : end or start + 1]).strip(" ."), end is not None
            start = (end or start + 1) + 1

    def _columns(self, text: str, bare: bool = False) -> _Reading | None:
        """Return the edge `a, r, b`, cut where the graph has it, or `(a, b)`; bare text must look like an edge."""
        separator = next((one for one in "|;" if one in text), ",")
        parts = [part.strip() for part in text.split(separator)][: 3 if separator == "|" else None]
        if len(parts) < 3 or len(parts) > _PARTS:
            return None if bare else self._edge(parts)
        ends = combinations(range(1, len(parts)), 2)
        cuts = [[f"{separator} ".join(part) for part in (parts[:a], parts[a:b], parts[b:])] for a, b in ends]
        fits = [(self._edge(cut), bool(self.find(cut[0])[1]) + bool(self.find(cut[2])[1])) for cut in cuts]
        edge, _ = max(fits, key=lambda fit: (fit[0] is not None and fit[0][1] is True, fit[1]))
        sure = not bare or separator == "|" or (len(parts) == 3 and all(map(_may_be_name, parts)))
        return edge if sure or (edge and edge[1]) else None

    def _edge(self, terms: list[str]) -> _Reading | None:
        """Return an edge of head, relation and tail, or of head and tail; None for other terms."""
        if not all(terms) or len(terms) not in (2, 3):
            return None
        (head, heads), *relation, (tail, tails) = self.find(terms[0]), *terms[1:-1], self.find(terms[-1])
        wanted = [_words(one) for one in relation]
        known = any(not wanted or _words(one) in wanted for one in self._relations(heads, tails))
        return " -> ".join((head, *relation, tail)), None if head.isdecimal() and not heads else known

    def _relations(self, heads: list[int], tails: list[int]) -> set[str]:
        """Return the relations from any of some entities to any of others."""
        near = [self.graph.adjacency.row_triples(end) for end in min(heads, tails, key=len)]
        edges = self.graph.edges[np.concatenate(near)] if near else self.graph.edges[:0]
        joining = edges[np.isin(edges[:, 0], heads) & np.isin(edges[:, 2], tails)]
        return {self.graph.relations[int(relation)] for relation in np.unique(joining[:, 1])}

    def _is_said(self, text: str) -> bool:
        """Whether a sentence names two entities of the graph and, between them, what joins them."""
        runs = [(_words(run), known, run.islower()) for run, known in self._runs(re.split(r"(\W+)", text))]
        are_names = [known and not (lower and words in FUNCTION_WORDS) for words, known, lower in runs]
        names = [at for at, is_name in enumerate(are_names) if is_name]
        ends = [self.entities[name] for name in dict.fromkeys(runs[at][0] for at in names)]
        others = [(at, words) for at, (words, _, _) in enumerate(runs) if not are_names[at]]
        if len(ends) != 2 or any(words in _NEGATIONS for _, words in others):
            return False
        between = {words for at, words in others if names[0] < at < names[-1]}
        return any(_telling(relation) in between for relation in self._relations(*ends) | self._relations(*ends[::-1]))


def _words(name: str) -> str:
    """Return the letters and digits of a name, folded, without an article; the name itself where there are none."""
    return _ARTICLE.sub("", " ".join(_WORD.findall(folded(readable(name.strip())))), count=1) or name.strip()


def _telling(relation: str) -> str:
    """Return the first word of the last segment of a relation that is no function word, or its first word."""
    words = _words(re.split(r"[./#]", relation)[-1] or relation).split()
    return next((word for word in words if word not in FUNCTION_WORDS), words[0])


def _rows(text: str, separator: str) -> list[str]:
    """Cut a text at the separators, if arrows are in each part; a name may hold one."""
    parts = [part.strip() for part in text.split(separator)]
    return parts if all(map(_ARROW.search, parts)) else [text]


def _may_be_name(text: str) -> bool:
    return len(_MARK.split(text, maxsplit=1)[0].split()) <= _NAME_WORDS
