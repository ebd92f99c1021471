"""One graph, made ready for all contestants: its facts, their lines, names without doubles, vectors, and a linker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from langchain_core.embeddings import Embeddings

from benchmarks.zero_shot.indexes import Indexer
from kg_retrievers import GraphIndex, Triple
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph.verbalize import readable, relation_words, triple_lines
from kg_retrievers.index import embed, link_question, linker_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: A fact of the graph, by the keys of its entities, or an entity without facts, by its key.
Item = Triple | str

#: Finds facts for a question, the best first, or for each budget of tokens.
FindFacts = Callable[[str], Iterable[Item] | Mapping[int, Iterable[Item]]]

#: No contestant need order more facts: the shortest facts have six tokens, and the largest budget is 1,500.
MOST_FACTS = 250

#: Beyond so many facts, rivals that look at very many facts for each fact they found take a step less.
LARGE = 10_000


class Ground:
    """One graph, and the parts that several contestants need. Each part is made when it is first used.

    Args:
        index: Our index, with the default embeddings.
        embeddings: Gives the embeddings of a name, "static" or "minilm", with their cache.
    """

    def __init__(self, index: GraphIndex, embeddings: Callable[[str], Indexer]) -> None:
        """Keep the index."""
        self.index = index
        self.graph = index.graph
        self._embeddings = embeddings
        self._vectors: dict[str, NDArray[np.float32]] = {}

    @cached_property
    def facts(self) -> list[Triple]:
        """All facts, each once, in the order of the graph."""
        return list(dict.fromkeys(Triple(*triple) for triple in self.graph.triples()))

    @cached_property
    def texts(self) -> list[str]:
        """The line of each fact, for searches by text."""
        return list(map(self.line, self.facts))

    @cached_property
    def _names(self) -> dict[str, str]:
        keys: dict[str, list[str]] = {}
        for key in self.graph.entities:
            keys.setdefault(readable(self.graph.label(key)), []).append(key)
        return {key: name if len(group) == 1 else f"{name} ({key})" for name, group in keys.items() for key in group}

    def name(self, key: str) -> str:
        """Return the name of an entity; entities that share a label have their key in it, so that none is lost."""
        return self._names[key]

    @cached_property
    def by_names(self) -> dict[tuple[str, str, str], Triple]:
        """The facts by the names of their ends and the words of their relation, as other programs hold them."""
        return {(self.name(one.head), relation_words(one), self.name(one.tail)): one for one in reversed(self.facts)}

    @cached_property
    def facts_of(self) -> dict[str, list[int]]:
        """The positions of the facts at each entity."""
        found: dict[str, list[int]] = {}
        for position, fact in enumerate(self.facts):
            for key in {fact.head, fact.tail}:
                found.setdefault(key, []).append(position)
        return found

    def line(self, fact: Item) -> str:
        """Return a fact as all contestants' facts are shown to a model."""
        if isinstance(fact, str):
            return readable(self.graph.label(fact))
        return triple_lines([fact], lambda key: readable(self.graph.label(key)))[0]

    def link(self, question: str) -> list[str]:
        """Return the entities that a question may name, by our linker; none if it finds none."""
        try:
            return link_question(linker_of(self.index), question)[0]
        except EntityLinkingError:
            return []

    def embeddings(self, name: str) -> Embeddings:
        """Return embeddings by name."""
        return self._embeddings(name).embeddings

    def embed(self, name: str, texts: Sequence[str], *, keeps: bool = False) -> NDArray[np.float32]:
        """Return unit vectors of texts. `keeps` looks them up on disk and keeps them there, if embeddings are slow."""
        indexer = self._embeddings(name)
        vectors = embed(indexer.embeddings, texts, cache=indexer.cache if keeps and name == "minilm" else None)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)

    def fact_vectors(self, name: str) -> NDArray[np.float32]:
        """Return the vectors of all facts."""
        if name not in self._vectors:
            self._vectors[name] = self.embed(name, self.texts, keeps=True)
        return self._vectors[name]

    def best(self, scores: NDArray[np.floating]) -> list[Triple]:
        """Return the facts with the highest scores, of those above zero."""
        return [self.facts[at] for at in best_first(scores)]


def best_first(scores: NDArray[np.floating], most: int = MOST_FACTS) -> list[int]:
    """Return the positions of the highest scores, of those above zero; equal ones keep their order."""
    near = np.argpartition(-scores, most)[:most] if most < len(scores) else np.arange(len(scores))
    # All that equal the last of these compete for its place, the first first.
    floor = scores[near].min(initial=np.inf)
    candidates = np.flatnonzero(scores >= floor)
    order = candidates[np.argsort(-scores[candidates], kind="stable")][:most]
    return [at for at in order.tolist() if scores[at] > 0]


def distinct(facts: Iterable[Item], most: int = MOST_FACTS) -> list[Item]:
    """Return the first facts, each once."""
    seen: set[Item] = set()
    return list(islice((one for one in facts if not (one in seen or seen.add(one))), most))
