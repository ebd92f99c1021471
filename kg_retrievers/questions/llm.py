"""Question -> Pattern by a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self

from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import RunnableLambda

from kg_retrievers.core.prompts import check_model, check_placeholders
from kg_retrievers.core.runnables import Body, Call, GeneratorRunnable
from kg_retrievers.core.structured_replies import CUT, StructuredModel, reply_text, was_cut
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, LowConfidenceError, PatternParseError
from kg_retrievers.graph import Pattern
from kg_retrievers.graph.shown_text import as_data
from kg_retrievers.index import GraphIndex
from kg_retrievers.questions.examples import ExamplePatternGenerator
from kg_retrievers.questions.known_texts import check_known_texts
from kg_retrievers.questions.prompts import EXAMPLES, PATTERN_PROMPT, REPAIR_PROMPT, parse_pattern, write_shots
from kg_retrievers.questions.reply_checks import check_meant
from kg_retrievers.questions.reply_form import PatternReply
from kg_retrievers.questions.shots import as_shot

#: How many worked examples the prompt shows in all: section 6.1 and appendix C.1 (12-shot in-context learning); of 4, 8
#: and 12 in table 3, none is best everywhere.
SHOTS = 12


class LLMPatternGenerator(GeneratorRunnable[Mapping[str, Any], Pattern]):
    """Asks a language model for the pattern (SimGRAG, section 4.1), and once more where its reply cannot be used.

    It cannot be used where it is unreadable, where it leaves nothing open or copies an example (see `check_meant`), or
    where it has an operation, conditions or absent triples and names what the graph lacks (see `check_known_texts`);
    the model is told the nearest names of the graph. A model with structured output is asked for it.

    Of the user's examples, the nearest to the question are shown to the model, the nearest last; our own `EXAMPLES`
    come before them as far as there is room. The pattern has no confidence: how often a model is right is not known.

    Differs from the paper: the examples are those nearest to each question, where the paper shows the same to all.

    Args:
        llm: The language model; set its temperature to 0 for equal replies on every run.
        examples: Finds the examples to show; None shows our own alone.
        index: The indexed graph; None checks no names.
        prompt: In place of ours, with the placeholder `question`, and `shots` if examples are to be shown.
        repair_prompt: In place of ours, with the placeholders `question`, `reply` and `error`.
        shots: How many worked examples the prompt shows in all, 1 or more; table 3 compares 4, 8 and 12. As many
            examples of yours as that leave no room for ours.
        structured: Whether to use the model's structured output; None where the model has it. False suits servers that
            speak the protocol of a model with structured output without having it.

    Raises:
        InvalidArgumentError: If `llm` is no language model, a prompt has other placeholders, `shots` is below 1, or
            `structured` is asked of a model that has it not.
        PatternParseError: From `invoke`, if the second reply cannot be used, either.
    """

    calls_model = True

    def __init__(
        self,
        llm: BaseLanguageModel[Any],
        *,
        examples: ExamplePatternGenerator | None = None,
        index: GraphIndex | None = None,
        prompt: BasePromptTemplate[Any] = PATTERN_PROMPT,
        repair_prompt: BasePromptTemplate[Any] = REPAIR_PROMPT,
        shots: int = SHOTS,
        structured: bool | None = None,
    ) -> None:
        """Check the model, the prompts and the number of shots."""
        check_model(llm, "LLMPatternGenerator")
        optional = {"shots"}.intersection(getattr(prompt, "input_variables", ()))
        check_placeholders(prompt, {"question", *optional}, "LLMPatternGenerator: prompt")
        check_placeholders(repair_prompt, ["question", "reply", "error"], "LLMPatternGenerator: repair_prompt")
        if type(shots) is not int or shots < 1:
            raise InvalidArgumentError(f"LLMPatternGenerator: shots must be an integer from 1, but got {shots!r:.100}.")
        self.llm, self.examples, self.index, self.shots = llm, examples, index, shots
        self.prompts = {"pattern": prompt, "repair": repair_prompt}
        self._model = StructuredModel(llm, PatternReply, structured=structured, who="LLMPatternGenerator").asked()

    def with_index(self, index: GraphIndex) -> Self:
        """Return the generator over another graph; without an index it is the same over any."""
        moved = copy(self)
        moved.examples = self.examples and self.examples.with_index(index)
        moved.index = self.index and index
        return moved

    def body(self, input: Mapping[str, Any]) -> Body[Pattern]:
        """Ask, read, check the names, and if need be ask again with the reason."""
        values = {"question": input["question"]}
        shots = yield Call(RunnableLambda(self._shots), input)
        asked = values | {"shots": write_shots(shots)}
        reply = yield Call(self.prompts["pattern"] | self._model, asked)
        refused: Pattern | None = None
        try:
            refused = _read(reply, values["question"], shots)
            error = yield Call(RunnableLambda(self._lacking), {**input, "pattern": refused})
            if not error:
                return refused
            values |= {"reply": reply_text(reply), "error": error}
        except PatternParseError as cause:
            values |= {"reply": cause.reply, "error": cause.reason}
        reply = yield Call(self.prompts["repair"] | self._model, values)
        try:
            return _read(reply, values["question"], shots)
        except PatternParseError:
            if refused is None:
                raise
            return refused

    def _lacking(self, input: Mapping[str, Any]) -> str:
        """Return what a pattern names that the graph lacks, with the nearest names; nothing if all is there."""
        if self.index is None:
            return ""
        try:
            check_known_texts(self.index, input["pattern"], {one.term.text for one in input.get("entities") or ()})
        except (EntityLinkingError, LowConfidenceError) as error:
            return as_data(error.message) + " Name one of these only if the question means it; else keep the name."
        return ""

    def _shots(self, input: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """Return the examples nearest to the question, after as many of ours as there is room for."""
        nearest = self.examples.shots(input, self.shots) if self.examples else []
        ours = EXAMPLES[: self.shots - len(nearest)]
        return [*ours, *map(as_shot, reversed(nearest))]


def _read(reply: Any, question: str, shots: Sequence[tuple[str, Mapping[str, Any]]]) -> Pattern:
    """Return the pattern of a reply.

    Raises:
        PatternParseError: If it cannot be used.
    """
    text = reply_text(reply)
    try:
        pattern = parse_pattern(text)
    except PatternParseError as error:
        if was_cut(reply):
            raise PatternParseError(f"{CUT} {error.reason}", error.reply) from error
        raise
    check_meant(pattern, question, shots, text)
    return pattern
