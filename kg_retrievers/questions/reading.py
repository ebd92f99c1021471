"""A question as patterns, and the base of everything that reads questions without a language model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from langchain_core.runnables import Runnable, RunnableConfig

from kg_retrievers.graph import Known, Pattern, Term, Unknown
from kg_retrievers.index import EntityLinker, GraphIndex, QuestionEntity, check_index, linker_of, question_entities

#: Ours. The confidence from which on no language model is asked.
SURE = 0.8


@dataclass(frozen=True)
class Reading:
    """What a question is read to ask for.

    Attributes:
        pattern: The likeliest pattern. It has the source, the nearest relations and what the entities lack.
        alternatives: Other patterns, the likeliest first, each with its own confidence.
    """

    pattern: Pattern
    alternatives: tuple[Pattern, ...] = ()

    @property
    def confidence(self) -> float | None:
        """How likely the pattern is right, in [0, 1]; None if nothing is known about it."""
        return self.pattern.confidence

    @property
    def unplaced(self) -> tuple[str, ...]:
        """The words of the question that the pattern does not account for."""
        return self.pattern.unplaced

    @property
    def is_sure(self) -> bool:
        """Whether no language model need be asked: the confidence is `SURE`, and no word is left over."""
        return self.confidence is not None and self.confidence >= SURE and not self.unplaced


#: A generator of your own: any Runnable from `{"question", "seed_entities"}` to a pattern or a reading. If it has
#: `calls_model`, `prompts` or `with_index`, retrievers use them.
PatternGenerator = Runnable[Any, Pattern] | Runnable[Any, Reading]


def pattern_of(read: Reading | Pattern) -> Pattern:
    """Return the pattern of a reading. A generator of patterns may return either."""
    return read.pattern if isinstance(read, Reading) else read


class PatternWalk(NamedTuple):
    """A walk of a pattern, from a known node to the target: its relations, and whether each is crossed backward."""

    start: Known
    steps: list[tuple[str, bool]]


def walks_of(pattern: Pattern) -> list[PatternWalk] | None:
    """Return the walks from each known node of a pattern to its target; None if the pattern is more than walks.

    Example:
        >>> pattern = Pattern.of(("Her", "directed by", Unknown("who")), target="who")
        >>> walks_of(pattern)
        [PatternWalk(start=Known(text='Her', type=None, entity=None), steps=[('directed by', False)])]
    """
    left, walks = list(pattern.triples), list[PatternWalk]()
    for node in pattern.nodes:
        if not isinstance(node, Known):
            continue
        here: Term = node
        steps = list[tuple[str, bool]]()
        while not (isinstance(here, Unknown) and here.name == pattern.target):
            triple = next((triple for triple in left if here in (triple.head, triple.tail)), None)
            if triple is None or not isinstance(triple.relation, Known):
                return None
            left.remove(triple)
            backward = triple.head != here
            steps.append((triple.relation.text, backward))
            here = triple.head if backward else triple.tail
        walks.append(PatternWalk(node, steps))
    return walks if walks and not left else None


class LinkingGenerator(Runnable[Mapping[str, Any], Pattern]):
    """A generator without a language model, which starts from the entities of a question."""

    calls_model = False

    def __init__(self, index: GraphIndex, linker: EntityLinker | None) -> None:
        """Take the index and its linker, or another one."""
        check_index(type(self).__name__, index)
        self.index = index
        self.linker = linker or linker_of(index)

    def with_index(self, index: GraphIndex) -> Self:
        """Return the generator over another graph."""
        moved = copy(self)
        moved.index, moved.linker = index, self.linker.with_index(index)
        return moved

    def invoke(self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> Pattern:
        """Return the pattern of `{"question", "seed_entities"}`; "entities" may hold them as they were found."""
        return self._call_with_config(self._generate, input, config)

    @abstractmethod
    def _generate(self, input: Mapping[str, Any]) -> Pattern:
        """Return the pattern of the input of `invoke`."""

    def _slots(self, input: Mapping[str, Any]) -> list[QuestionEntity]:
        """Return the entities of a question, the likeliest first: those given, else those found in it."""
        found: list[QuestionEntity] | None = input.get("entities")
        return found or question_entities(self.linker, input["question"], input.get("seed_entities") or ())
