"""Questions about whole entities and the whole graph: how things are connected, what is known of one, what is there."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from kg_retrievers.graph import Pattern, Term, Unknown
from kg_retrievers.graph.operations import Operation, OperationKind
from kg_retrievers.questions.question_forms.forms import Token
from kg_retrievers.questions.reading import TypeNouns, node_of

#: How sure such a question is, if all of its words are known.
SURE = 0.95

#: Words that say nothing about which of these questions it is.
_PLAIN_WORDS = """
a an the this that these those it its he she they him her them there here of on in to for with by and or as at i i'd
i'm i've you've me my we us you your some any all each every other both two one more most everything anything
something what which who whom whose how where why is are was were be been am do does did has have had can could will
would may might should please just kindly thanks thank so let s d m ll ve e g ie give show tell say says said
explain list name want need like know learn find see help get looking new exactly actually really briefly short
brief quick little bit general way ways sort kind kinds type types seen before about between from into through via
graph data dataset database knowledge base collection facts fact set file things thing stuff entity entities
information info details detail different properties going travelling next week soon today now hi hello again up out
over first asked ask question questions answered answer person people many much someone
"""
_PLAIN = frozenset(_PLAIN_WORDS.split())

#: What each kind of question is recognised by, and the further words that it may have.
_SHAPES: tuple[tuple[OperationKind, str, str], ...] = (
    (
        "connect",
        r"connect(?:s|ed|ion|ions|ing)?|link(?:s|ed|ing)?|related|relate|relation(?:ship)?s?|path|paths|chain"
        r"|have to do with|has to do with|tie|ties|tied|join(?:s|ed)?|associated|association",
        "each other another together if",
    ),
    ("common", r"in common|common|share|shared|similar|similarit(?:y|ies)|alike", "things"),
    (
        "differ",
        r"differ|differs|differences?|distinguish(?:es)?|compare|comparison|contrast|versus|vs|apart|tell apart",
        "different set main respects respect side",
    ),
    (
        "describe",
        r"tell .*\babout|know (?:about|of)|describe|description|profile|summar(?:y|ise|ize)|portrait|information|info"
        r"|details?|everything|all (?:the )?facts|facts (?:about|on|of)|learn .*about|introduce|background|overview"
        r"|say.* about|about _",
        "stored recorded available",
    ),
)
_WHO_IS = re.compile(
    r"(?:and |so )?(?:who|what) (?:is|are|was|were|s) _|_ (?:who|what) is (?:that|this|it|he|she)"
    r"|(?:who|what) (?:is|are|was|were) (?:that|this|it|he|she|they) _"
)
_OVERVIEW = re.compile(
    r"overview|what (?:is|s) (?:in|inside) (?:this|the|your|it|here|there)\b|contents?|schema|what .*\babout\b"
    r"|what (?:is|s) (?:this|the|your) (?:graph|data\w*|knowledge|collection)"
    r"|what (?:does|do) .*\b(?:contain|cover|hold|know about|have)\b"
    r"|(?:kinds?|types?|sorts?|classes) of (?:things?|entit(?:y|ies)|data|objects?|information)"
    r"|(?:describe|explain|summari[sz]e) (?:the|this) (?:graph|data\w*|knowledge)"
)
_ASKS = re.compile(
    r"\bcan .*\b(?:ask|answer|answered|tell)\b|\b(?:store|record|stored|recorded|keep)\b|\bknow about\b"
    r"|\b(?:facts|information|info|properties|attributes|relations|fields|details|data|questions)\b"
    r".*\b(?:about|on|for|of|does|do|have|has)\b"
)
_OF_THE_GRAPH_WORDS = """
overview contain contains cover covers hold content contents schema describe summarise summarize stored store
recorded record available attributes relations fields keep kept possible classes class objects object i topic topics
subject
"""
_OF_THE_GRAPH = frozenset(_OF_THE_GRAPH_WORDS.split())


class WholeEntities:
    """Reads these questions by their words alone: each must be known to say nothing else.

    Args:
        kinds: The nouns for the kinds of things.
        relation_words: The words of the names of relations, which may ask for facts of these instead.
    """

    def __init__(self, kinds: TypeNouns, relation_words: Collection[str]) -> None:
        """Keep them."""
        self._kinds, self._relation_words = kinds, relation_words

    def read(self, tokens: Sequence[Token]) -> Pattern | None:
        """Return the pattern of a question about whole entities, or the whole graph; None for another question."""
        text = " ".join(token.word or "_" for token in tokens if token.slot or re.match(r"\w", token.text))
        slots = [token.slot for token in tokens if token.slot]
        if not slots:
            return self._of_graph(text)
        nodes = list(dict.fromkeys(map(node_of, slots)))
        if len(nodes) == 1 and _WHO_IS.fullmatch(text):
            return _pattern("describe", nodes)
        for kind, trigger, further in _SHAPES:
            if (len(nodes) == 1) != (kind == "describe") or (len(nodes) > 2 and kind != "connect"):
                continue
            found = re.search(rf"\b(?:{trigger})\b", text) if len(nodes) > 1 or kind == "describe" else None
            if found is None:
                continue
            known = {word for word in text.split() if re.fullmatch(trigger, word)}
            rest = self._without_kind(text, known.union(further.split()))
            if rest is None:
                continue
            named = rest[0]
            if kind == "connect":
                if named and found[0] in self._relation_words and text.startswith(("which", "what")):
                    return None  # "which route connects them" by a relation of this name
                return _pattern(kind, [*nodes, *([Unknown("through", named)] if named else [])])
            if kind == "describe" and not {*found[0].split()}.isdisjoint(self._relation_words):
                return None
            return _pattern(kind, nodes)
        return None

    def _without_kind(self, text: str, allowed: Collection[str]) -> tuple[str | None] | None:
        """Return the kind that a text names beside words that say nothing else, in a tuple; None if it says more."""
        words, named = text.split(), None
        at = 0
        while at < len(words):
            kind, size = self._kind_at(words, at)
            if kind:
                named = named or kind
                at += size
                continue
            if words[at] != "_" and words[at] not in _PLAIN and words[at] not in allowed:
                return None
            at += 1
        return (named,)

    def _kind_at(self, words: Sequence[str], at: int) -> tuple[str | None, int]:
        for size in (3, 2, 1):
            if at + size <= len(words) and (kind := self._kinds.meant(words[at : at + size])):
                return kind, size
        return None, 0

    def _of_graph(self, text: str) -> Pattern | None:
        """Return the pattern of a question about the graph, or about things of a kind in general."""
        if not (_OVERVIEW.search(text) or _ASKS.search(text)):
            return None
        rest = self._without_kind(text, _OF_THE_GRAPH)
        if rest is None:
            return None
        if rest[0] is None:
            return _pattern("overview", []) if _OVERVIEW.search(text) else None
        return _pattern("overview", [Unknown("thing", rest[0])]) if _ASKS.search(text) else None


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
