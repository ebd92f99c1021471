"""Question -> Pattern by a language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate

from kg_retrievers.core.prompts import check_model, check_placeholders
from kg_retrievers.core.runnables import Body, Call, GeneratorRunnable
from kg_retrievers.errors import PatternParseError
from kg_retrievers.graph import Pattern
from kg_retrievers.patterns.prompts import PATTERN_PROMPT, REPAIR_PROMPT, parse_pattern


class LLMPatternGenerator(GeneratorRunnable[Mapping[str, Any], Pattern]):
    """Asks a language model for the pattern (SimGRAG, section 4.1), and once more where its reply is unreadable.

    Args:
        llm: The language model; set its temperature to 0 for equal replies on every run.
        prompt: In place of ours, with the placeholder `question`.
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
        prompt: BasePromptTemplate[Any] = PATTERN_PROMPT,
        repair_prompt: BasePromptTemplate[Any] = REPAIR_PROMPT,
    ) -> None:
        """Check the model and the prompts."""
        check_model(llm, "LLMPatternGenerator")
        check_placeholders(prompt, ["question"], "LLMPatternGenerator: prompt")
        check_placeholders(repair_prompt, ["question", "reply", "error"], "LLMPatternGenerator: repair_prompt")
        self.llm = llm
        self.prompts = {"pattern": prompt, "repair": repair_prompt}

    def body(self, input: Mapping[str, Any]) -> Body[Pattern]:
        """Ask, read, and if need be ask again with the reason."""
        values = {"question": input["question"]}
        reply = yield Call(self.prompts["pattern"] | self.llm | StrOutputParser(), values)
        try:
            return parse_pattern(reply)
        except PatternParseError as error:
            values |= {"reply": error.reply, "error": error.reason}
        reply = yield Call(self.prompts["repair"] | self.llm | StrOutputParser(), values)
        return parse_pattern(reply)
