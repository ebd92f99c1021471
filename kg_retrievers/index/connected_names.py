"""ConnectedNames: what the names of a connected graph are near to, in a vector store or by the database alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from kg_retrievers.deadline import deadline
from kg_retrievers.errors import DatabaseTimeoutError
from kg_retrievers.graph.cache import Immutable
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.connected_graph import ConnectedGraph
from kg_retrievers.index.mentions import QuestionText
from kg_retrievers.index.nearest import EXACT_NAME_MARGIN
from kg_retrievers.index.server_names import Near, ServerNames, StoredName
from kg_retrievers.index.words import words_of

#: How many words of a question a name has at most, where the database looks it up.
NAME_WORDS = 10


class ConnectedNames(Immutable):
    """Finds the names of a connected graph: without a store, only those that are written exactly.

    Args:
        connected: Reads the database.
        names: Those in a vector store; None where there is none.
        embed: Embeds texts.
    """

    def __init__(
        self, connected: ConnectedGraph, names: ServerNames | None, embed: Callable[[Sequence[str]], Array]
    ) -> None:
        """Take the parts as they are."""
        self._names, self._connected, self._embed = names, connected, embed

    def nearest(self, texts: Sequence[str], k: int) -> list[list[Near]]:
        """Return the names nearest to each text; one that equals it comes first, at a distance of 0.

        Entities whose key a text is are among them. All other names are `EXACT_NAME_MARGIN` away at least.
        """
        distinct = list(dict.fromkeys(texts))
        exact = self._exact(distinct)
        near: dict[str, list[Near]] = {text: [] for text in distinct}
        if self._names is not None and (vague := [text for text in distinct if k > 1 or not exact[text]]):
            vectors = self._embed([readable(text) for text in vague])
            with self._within():
                near |= zip(vague, self._names.nearest(vectors, k), strict=True)
        return [_exact_first(exact[text], near[text], k) for text in texts]

    def in_question(self, question: str) -> list[str]:
        """Return the keys of the entities that bear names which a question holds, in whatever case."""
        text = QuestionText(question)
        windows = [
            text.text(first, last)
            for first in range(len(text.tokens))
            for last in range(first, min(first + NAME_WORDS, len(text.tokens)))
        ]
        if self._names is not None:
            with self._within():
                found = self._names.written_as(dict.fromkeys(windows))
            return sorted({key for names in found.values() for name in names for key in name.keys})
        cases = {spelt for window in windows for spelt in _spellings(window)}
        by_name = self._connected.entities_named(sorted(cases))
        return sorted({key for keys in by_name.values() for key in keys})

    def _within(self) -> AbstractContextManager[None]:
        """Let all waits for the store in this block end after the timeout of a query."""
        seconds = self._connected.timeout
        reason = f"GraphIndex: the vector store did not answer within {seconds:g} s."
        hint = {"hint_python": "Is it overloaded or locked? Else raise timeout.", "hint_shell": "Is it overloaded?"}
        return deadline(seconds, lambda: DatabaseTimeoutError(reason, **hint))

    def _exact(self, texts: Sequence[str]) -> dict[str, list[Near]]:
        """Return the names that are written as each text, and the entities whose key it is."""
        found: dict[str, list[Near]] = {text: [] for text in texts}
        if self._names is not None:
            with self._within():
                written = self._names.written_as(texts)
            for text, names in written.items():
                found[text] = [Near(name, 0.0) for name in names if name.name == text]
        if missing := [text for text in texts if not found[text]]:
            for text, keys in self._connected.entities_named(missing).items():
                found[text] = [Near(StoredName(text, tuple(keys)), 0.0)] if keys else []
        return found


def _exact_first(exact: Sequence[Near], near: Sequence[Near], k: int) -> list[Near]:
    names = {one.name.name for one in exact}
    others = [Near(one.name, max(one.distance, EXACT_NAME_MARGIN)) for one in near if one.name.name not in names]
    return [*exact, *others[: max(k - len(exact), 0)]]


def _spellings(text: str) -> set[str]:
    """Return how a name may be written that a question holds in other letters."""
    words = words_of(text)
    if not words:
        return {text}
    return {text, text.title(), text.lower(), text.capitalize(), "_".join(words)}
