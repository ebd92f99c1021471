"""Question -> Pattern by a language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import RunnableLambda

from kg_retrievers.core.model_calls import guarded
from kg_retrievers.core.prompts import check_model, check_placeholders
from kg_retrievers.core.runnables import Body, Call, GeneratorRunnable
from kg_retrievers.errors import PatternParseError
from kg_retrievers.graph import Pattern
from kg_retrievers.patterns.examples import ExamplePatternGenerator
from kg_retrievers.patterns.prompts import EXAMPLES, PATTERN_PROMPT, REPAIR_PROMPT, parse_pattern, write_shots
from kg_retrievers.patterns.shots import as_shot

#: How many worked examples the prompt shows in all: section 6.1 and appendix C.1 (12-shot in-context learning); of 4, 8
#: and 12 in table 3, none is best everywhere.
SHOTS = 12


class LLMPatternGenerator(GeneratorRunnable[Mapping[str, Any], Pattern]):
    """Asks a language model for the pattern (SimGRAG, section 4.1), and once more where its reply is unreadable.

    Of the user's examples, the nearest to the question are shown to the model, the nearest last; our own `EXAMPLES`
    come before them as far as `SHOTS` allows. The pattern has no confidence: how often a model is right is not known.

    Args:
        llm: The language model; set its temperature to 0 for equal replies on every run.
        examples: Finds the examples to show; None shows our own alone.
        prompt: In place of ours, with the placeholder `question`, and `shots` if examples are to be shown.
        repair_prompt: In place of ours, with the placeholders `question`, `reply` and `error`.

    Raises:
        InvalidArgumentError: If `llm` is no language model, or a prompt has other placeholders.
        PatternParseError: From `invoke`, if the second reply is unreadable, too.
    """

    calls_model = True

    def __init__(
        self,
        llm: BaseLanguageModel[Any],
        *,
        examples: ExamplePatternGenerator | None = None,
        prompt: BasePromptTemplate[Any] = PATTERN_PROMPT,
        repair_prompt: BasePromptTemplate[Any] = REPAIR_PROMPT,
    ) -> None:
        """Check the model and the prompts."""
        check_model(llm, "LLMPatternGenerator")
        optional = {"shots"}.intersection(getattr(prompt, "input_variables", ()))
        check_placeholders(prompt, {"question", *optional}, "LLMPatternGenerator: prompt")
        check_placeholders(repair_prompt, ["question", "reply", "error"], "LLMPatternGenerator: repair_prompt")
        self.llm, self.examples = llm, examples
        self.prompts = {"pattern": prompt, "repair": repair_prompt}

    def body(self, input: Mapping[str, Any]) -> Body[Pattern]:
        """Ask, read, and if need be ask again with the reason."""
        values = {"question": input["question"]}
        shots = yield Call(RunnableLambda(self._shots), input)
        reply = yield Call(self.prompts["pattern"] | guarded(self.llm) | StrOutputParser(), values | {"shots": shots})
        try:
            return parse_pattern(reply)
        except PatternParseError as error:
            values |= {"reply": error.reply, "error": error.reason}
        reply = yield Call(self.prompts["repair"] | guarded(self.llm) | StrOutputParser(), values)
        return parse_pattern(reply)

    def _shots(self, input: Mapping[str, Any]) -> str:
        """Write the examples nearest to the question, after as many of ours as there is room for."""
        nearest = self.examples.shots(input, SHOTS) if self.examples else []
        ours = EXAMPLES[: SHOTS - len(nearest)]
        return write_shots([*ours, *map(as_shot, reversed(nearest))])
