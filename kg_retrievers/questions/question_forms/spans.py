"""Parts of the words of a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kg_retrievers.graph import Known
from kg_retrievers.index import QuestionEntity
from kg_retrievers.questions.question_forms.forms import joined
from kg_retrievers.questions.question_forms.tokens import Token


def node_of(slot: QuestionEntity) -> Known:
    """Return the node of an entity, pinned where only one is meant."""
    return Known(slot.name, entity=slot.entities[0]) if slot.best == 1 else slot.term


def entity_groups(tokens: Sequence[Token], both: bool = False) -> list[tuple[int, ...]]:
    """Return the positions of entities; those that "or" joins are together, or "and" where both are meant alike."""
    groups = list[tuple[int, ...]]()
    for at, token in enumerate(tokens):
        if not token.slot:
            continue
        if groups and joined(tokens, groups[-1][-1] + 1, ("and",) if both else ("or",)) == at:
            groups[-1] = (*groups[-1], at)
        else:
            groups.append((at,))
    return groups


def keys_of(slots: Iterable[QuestionEntity]) -> list[str]:
    """Return the keys of all that some entities may be."""
    return [key for slot in slots for key in slot.entities[: slot.best]]


def span_of(tokens: Sequence[Token], part: Sequence[Token]) -> tuple[int, int]:
    """Return where a part stands in tokens; an empty span at their end where it does not."""
    size = len(part)
    for at in range(len(tokens) - size + 1 if size else 0):
        if list(tokens[at : at + size]) == list(part):
            return at, at + size
    return len(tokens), len(tokens)


def asking(tokens: Sequence[Token], span: tuple[int, int], opening: str) -> tuple[list[Token], tuple[int, int]]:
    """Return a text that asks for a value of what a span stands for, and where the span is in it."""
    words = [Token(word) for word in opening.split()]
    start = span[0]
    while start and tokens[start - 1].word in ("which", "what", "the", "of"):
        start -= 1
    kept, rest = list(tokens[:start]), list(tokens[span[1] :])
    middle = list(tokens[span[0] : span[1]]) or [Token("it")]
    return [*words, *kept, *middle, *rest], (len(words) + len(kept), len(words) + len(kept) + len(middle))


def before_slot(tokens: Sequence[Token]) -> list[Token]:
    """Return the words before the last entity, but those of function right before it."""
    last = max((at for at, token in enumerate(tokens) if token.slot), default=len(tokens))
    kept = list(tokens[:last])
    while kept and not kept[-1].telling and len(kept) > 1:
        kept.pop()
    return kept
