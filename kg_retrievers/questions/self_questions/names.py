"""What the entities, relations and types of a graph are called, where no other one is called the same."""

from __future__ import annotations

from collections import Counter

from kg_retrievers.graph import KnowledgeGraph, readable
from kg_retrievers.index.embeddings import folded
from kg_retrievers.questions.self_questions.ends import type_noun
from kg_retrievers.questions.self_questions.relation_grammar import RelationWords, read_relation

#: The longest name that a question mentions, in characters.
LONGEST_NAME = 80

#: Stands for the bearer of a name that several entities bear.
SEVERAL = -1


class Names:
    """The names by which questions can tell entities, relations and types from all others.

    Case and accents tell nothing apart, since people leave them out.

    Args:
        graph: The graph.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        """Note which names one entity alone bears, and how relations can be said."""
        self._graph = graph
        self._bearers: dict[str, int] = {}
        for id, name in enumerate(graph.names):
            key = folded(name)
            for entity in graph.name_entities(id):
                self._bearers[key] = entity if self._bearers.get(key, entity) == entity else SEVERAL
        self._found: dict[int, str] = {}
        self._relations = _relation_words(list(graph.relations))

    def __contains__(self, entity: int) -> bool:
        """Tell whether an entity has a name of its own."""
        return bool(self[entity])

    def __getitem__(self, entity: int) -> str:
        """Return the label or the first alias that no other entity bears; nothing where there is none."""
        if entity not in self._found:
            key = self._graph.entities[entity]
            names = (self._graph.label(key), *self._graph.aliases(key))
            self._found[entity] = next(filter(self._is_telling, names), "")
        return self._found[entity]

    def _is_telling(self, name: str) -> bool:
        is_speakable = len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()
        return is_speakable and any(map(str.isalnum, name)) and self._bearers[folded(name)] != SEVERAL

    @property
    def relations(self) -> list[int]:
        """The ids of the relations that can be told from all others."""
        return [id for id, words in enumerate(self._relations) if words]

    def relation_words(self, relation: int) -> RelationWords:
        """Return how one of `relations` is said."""
        words = self._relations[relation]
        assert words is not None
        return words

    def type_noun(self, kind: int) -> str:
        """Return the noun for a type, given by its id; nothing where it has none that is short."""
        return type_noun(self._graph.types[kind])


def _relation_words(relations: list[str]) -> list[RelationWords | None]:
    """Return how each relation is said: in more words where its last ones are not its own; None where none are."""
    texts = [folded(readable(name)) for name in relations]
    said = [read_relation(name) for name in relations]
    same_text, same_words = Counter(texts), Counter(said)
    words: list[RelationWords | None] = []
    for text, short in zip(texts, said, strict=True):
        is_known = same_text[text] == 1 and text.isprintable()
        long = RelationWords("noun", " ".join(dict.fromkeys(text.split())))
        words.append((short if same_words[short] == 1 else long) if is_known else None)
    return words
