"""Questions about whole entities and the whole graph: connections of things, facts about one, contents."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from kg_retrievers.graph import Pattern, Term, Unknown
from kg_retrievers.graph.operations import Operation, OperationKind
from kg_retrievers.questions.question_forms.forms import Token
from kg_retrievers.questions.reading import TypeNouns, node_of
from kg_retrievers.questions.words import WORDS, any_of

#: How sure such a question is, if all of its words are known.
SURE = 0.95

#: Words that say nothing about which of these questions it is.
_PLAIN = frozenset(WORDS["say nothing about whole entities"])

#: Plain words too, unless a relation has the word in its name.
_OTHER = frozenset(WORDS["say nothing about whole entities unless a relation has them"])

#: The phrases by which each kind of question is recognised, as a list, and the further words that it may have.
_SHAPES: tuple[tuple[OperationKind, str], ...] = (
    ("connect", "each other another together if hang come comes touch way lead leads using"),
    ("common", "things"),
    ("differ", "different set main respects respect side against"),
)
_DESCRIBES = re.compile(rf"\b{any_of('describe')}\b")
_WHO_IS = re.compile(
    r"(?:and |so )?(?:who or what|who|what) (?:is|are|was|were|s) _|_ (?:who|what) is (?:that|this|it|he|she)"
    r"|(?:who|what) (?:is|are|was|were) (?:that|this|it|he|she|they) _|_ (?:is|was) (?:who|what)"
)

_ASKS_KIND = re.compile(r"(?:which|what) (?!do|does|did|is|are|was|were|have|has)")

#: Asks for a fact of the one entity, and not to describe it.
_ASKS_FACT = re.compile(r"\b(?:where|when|why|how (?:many|much|long|old|big|far|often))\b")

#: Asks for the words by which somebody describes the entity.
_ASKS_WORDS = re.compile(r"\b(?:what|which) words\b")

#: The words of a question about the whole graph, or about the things of a kind in general, in addition to plain words.
_OVERVIEW = re.compile(rf"\b{any_of('overview')}\b")
_ASKS = re.compile(rf"\b{any_of('asks what is known')}\b")

#: Asks about things that were named before.
_OF_THEM = re.compile(r"\b(?:they|them|their|those|he|she|his|her)\b")
_IN_GRAPH = re.compile(
    r"\b(?:in|of|from|within|inside) (?:the |this |these |that |your |our )*"
    r"(?:data\w*|graph|facts|knowledge(?: base| graph)?|collection(?: of facts)?|file|set|list)\b"
)
_OF_THE_GRAPH = frozenset(WORDS["of the whole graph"])


class WholeEntities:
    """Reads these questions by their words alone: each must be known to say nothing else.

    Args:
        kinds: The nouns for the kinds of things, and the words of relations, which may ask for facts of these instead.
    """

    def __init__(self, kinds: TypeNouns) -> None:
        """Keep them."""
        self._kinds, self._relation_words = kinds, kinds.relation_words

    def read(self, tokens: Sequence[Token]) -> Pattern | None:
        """Return the pattern of a question about whole entities, or the whole graph, or None for another question."""
        text = " ".join(token.word or "_" for token in tokens if token.slot or re.match(r"\w", token.text))
        slots = [token.slot for token in tokens if token.slot]
        if not slots:
            return self._of_graph(text)
        nodes = list(dict.fromkeys(map(node_of, slots)))
        return self._of_one(text, nodes) if len(nodes) == 1 else self._of_several(text, nodes)

    def _of_one(self, text: str, nodes: Sequence[Term]) -> Pattern | None:
        """Return the pattern of a question for the facts of an entity."""
        if _WHO_IS.fullmatch(text):
            return _pattern("describe", nodes)
        found = _DESCRIBES.search(text)
        if (
            found is None
            or _ASKS_FACT.search(text)
            or _ASKS_WORDS.search(text)
            or not {*found[0].split()}.isdisjoint(self._relation_words)
        ):
            return None
        known = {word for word in text.split() if _DESCRIBES.fullmatch(word)}
        rest = self._without_kind(text, known)
        asks_kind = rest is not None and rest[0] and _ASKS_KIND.match(text)  # "which band is the song about"
        return None if rest is None or asks_kind else _pattern("describe", nodes)

    def _of_several(self, text: str, nodes: Sequence[Term]) -> Pattern | None:
        """Return the pattern of a question for what connects entities, or how two of them compare."""
        for kind, further in _SHAPES:
            found = re.search(rf"\b{any_of(kind)}\b", text)
            if found is None or (len(nodes) > 2 and kind != "connect"):
                continue
            known = {word for word in text.split() if re.fullmatch(any_of(kind), word)}
            rest = self._without_kind(text, known.union(further.split()))
            if rest is None:
                continue
            named = rest[0]
            if kind == "common" and named and _ASKS_KIND.match(text):
                return None  # "which club do they share"
            if kind == "connect":
                if named and found[0] in self._relation_words and text.startswith(("which", "what")):
                    return None  # "which route connects them" by a relation of this name
                return _pattern(kind, [*nodes, *([Unknown("through", named)] if named else [])])
            return _pattern(kind, nodes)
        return None

    def _without_kind(self, text: str, allowed: Collection[str]) -> tuple[str | None] | None:
        """Return the kind that a text names beside words that say nothing else, in a tuple; None if it says more."""
        words = text.split()
        spans = self._kinds.spans(words)
        named = {at for start, end, _ in spans for at in range(start, end)}
        plain = _PLAIN | (_OTHER - self._relation_words) | {"_", *allowed}
        says_more = any(word not in plain for at, word in enumerate(words) if at not in named)
        return None if says_more else (spans[0][2] if spans else None,)

    def _of_graph(self, text: str) -> Pattern | None:
        """Return the pattern of a question about the graph, or about things of a kind in general."""
        rest = self._without_kind(text, _OF_THE_GRAPH)
        if rest is None or re.search(r"\bhow (?:many|much)\b(?! of (?:each|them|every))", text):
            return None
        if rest[0] is None:
            return _pattern("overview", []) if _OVERVIEW.search(text) and not _OF_THEM.search(text) else None
        return _pattern("overview", [Unknown("thing", rest[0])]) if _ASKS.search(_IN_GRAPH.sub("", text)) else None


def _pattern(kind: OperationKind, nodes: Sequence[Term]) -> Pattern:
    unknown = next((node.name for node in nodes if isinstance(node, Unknown)), None)
    return Pattern.of(
        alone=nodes,
        target=unknown,
        operation=Operation(kind),
        typed=True if unknown else None,
        source="question-forms",
        confidence=SURE,
    )
