"""CitingModel: asks a language model for replies that cite numbered facts."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from pydantic import BaseModel

from kg_retrievers.chains.evidence import AnswerInput, ShownEvidence, evidence_of
from kg_retrievers.core.prompts import check_model, check_placeholders
from kg_retrievers.core.runnables import Body, Call, GeneratorRunnable
from kg_retrievers.core.structured_replies import MAX_ITEMS, StructuredModel, read_object
from kg_retrievers.errors import AnswerParseError

Reply = TypeVar("Reply", bound=BaseModel)
Cited = TypeVar("Cited")


class CitingModel(GeneratorRunnable[AnswerInput, Cited], Generic[Reply, Cited]):
    """Shows numbered facts to a language model and reads a reply that cites them; asks once more if it is unreadable.

    A model with structured output is asked for it, by a schema that lets it cite only facts that are shown, and give
    about as many answers; of any other model the text is read. Without documents, no model is called.

    Args:
        llm: The language model.
        prompt: In place of ours, with the placeholders `question` and `evidence`.
        repair_prompt: In place of ours, with the placeholders `question`, `evidence`, `reply` and `error`.
        structured: Whether to use the model's structured output; None where the model has it. False suits servers that
            speak the protocol of a model with structured output without having it.

    Raises:
        InvalidArgumentError: If `llm` is no language model, a prompt has other placeholders, or `structured` is asked
            of a model that has it not.
        AnswerParseError: From `invoke`, if the second reply is unreadable, too.
    """

    reply_form: ClassVar[type[BaseModel]]

    def __init__(
        self,
        llm: BaseLanguageModel[Any],
        prompt: BasePromptTemplate[Any],
        repair_prompt: BasePromptTemplate[Any],
        structured: bool | None,
    ) -> None:
        """Check the model and the prompts."""
        who = type(self).__name__
        check_model(llm, who)
        check_placeholders(prompt, ["question", "evidence"], f"{who}: prompt")
        check_placeholders(repair_prompt, ["question", "evidence", "reply", "error"], f"{who}: repair_prompt")
        self.llm = llm
        self.prompts = {"answer": prompt, "repair": repair_prompt}
        self._model = StructuredModel(llm, self.reply_form, structured=structured, who=who)

    def body(self, input: AnswerInput) -> Body[Cited]:
        """Show the facts, ask, read, and if need be ask again with the reason."""
        if not input["documents"]:
            return self._refusal(input)
        shown = evidence_of(input, "numbered")
        values = {"question": input["question"], "evidence": shown.text}
        if feedback := input.get("feedback"):
            values |= {"reply": json.dumps(input.get("draft"), ensure_ascii=False), "error": feedback}
        model = self._model.asked(**self._bounds(len(shown.citable)))
        reply = yield Call(self.prompts["repair" if feedback else "answer"] | model, values)
        try:
            return self._cited(self._read(reply), shown, input["documents"])
        except AnswerParseError as error:
            values |= {"reply": error.reply, "error": error.reason}
        reply = yield Call(self.prompts["repair"] | model, values)
        return self._cited(self._read(reply), shown, input["documents"])

    def _bounds(self, facts: int) -> dict[str, dict[str, Any]]:
        """Return what so many facts add to the schema of replies: as many citations, none of anything else."""
        number = {"type": "integer", "minimum": 1, "maximum": max(facts, 1)}
        bounds: dict[str, dict[str, Any]] = {"citations": {"items": number, "maxItems": facts}}
        if "answers" in self.reply_form.model_fields:
            bounds["answers"] = {"maxItems": max(2 * facts, MAX_ITEMS)}  # two entities a fact
        return bounds

    def _read(self, reply: Any) -> Reply:
        read: Reply = read_object(reply, self.reply_form)  # type: ignore[assignment]
        return read

    @abstractmethod
    def _cited(self, reply: Reply, shown: ShownEvidence, documents: Sequence[Document]) -> Cited:
        """Return the content of a reply to some evidence, with its citations as facts that were shown."""

    @abstractmethod
    def _refusal(self, input: AnswerInput) -> Cited:
        """Return the outcome where there are no documents; the input says why."""
