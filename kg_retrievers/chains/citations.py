"""CitingModel: asks a language model for replies that cite numbered facts."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable
from pydantic import BaseModel

from kg_retrievers.chains.evidence import AnswerInput, ShownEvidence, evidence_of
from kg_retrievers.core.model_calls import guarded
from kg_retrievers.core.prompts import check_model, check_placeholders
from kg_retrievers.core.replies import parse_object
from kg_retrievers.core.runnables import Body, Call, GeneratorRunnable
from kg_retrievers.errors import AnswerParseError, InvalidArgumentError

Reply = TypeVar("Reply", bound=BaseModel)
Cited = TypeVar("Cited")


class CitingModel(GeneratorRunnable[AnswerInput, Cited], Generic[Reply, Cited]):
    """Shows numbered facts to a language model and reads a reply that cites them; asks once more if it is unreadable.

    A model with structured output is asked for it; of any other the text is read. Without documents, no model is
    called.

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
        self._model: Runnable[Any, Any] = llm
        if structured is not False:
            try:
                if not isinstance(llm, BaseChatModel):
                    raise NotImplementedError
                # As a schema: for a class, the client of OpenAI raises an error of its own where a reply does not fit.
                self._model = llm.with_structured_output(self.reply_form.model_json_schema(), include_raw=True)
            except NotImplementedError:
                if structured:
                    raise InvalidArgumentError(
                        f"{who}: structured=True, but {type(llm).__name__} has no structured output. Leave it out."
                    ) from None

    def body(self, input: AnswerInput) -> Body[Cited]:
        """Show the facts, ask, read, and if need be ask again with the reason."""
        if not input["documents"]:
            return self._refusal(input)
        shown = evidence_of(input, "numbered")
        values = {"question": input["question"], "evidence": shown.text}
        if feedback := input.get("feedback"):
            values |= {"reply": json.dumps(input.get("draft"), ensure_ascii=False), "error": feedback}
        reply = yield Call(self.prompts["repair" if feedback else "answer"] | guarded(self._model), values)
        try:
            return self._cited(self._read(reply), shown, input["documents"])
        except AnswerParseError as error:
            values |= {"reply": error.reply, "error": error.reason}
        reply = yield Call(self.prompts["repair"] | guarded(self._model), values)
        return self._cited(self._read(reply), shown, input["documents"])

    def _read(self, reply: Any) -> Reply:
        if isinstance(reply, Mapping):  # a structured output, with the message it came in
            reply = reply["raw"]
        text = reply.text if isinstance(reply, BaseMessage) else str(reply)
        if isinstance(reply, AIMessage) and reply.tool_calls:
            text = json.dumps(reply.tool_calls[0]["args"], ensure_ascii=False)
        elif isinstance(reply, AIMessage) and reply.invalid_tool_calls:
            text = reply.invalid_tool_calls[0]["args"] or text
        read: Reply = parse_object(text, self.reply_form)  # type: ignore[assignment]
        return read

    @abstractmethod
    def _cited(self, reply: Reply, shown: ShownEvidence, documents: Sequence[Document]) -> Cited:
        """Return the content of a reply to some evidence, with its citations as facts that were shown."""

    @abstractmethod
    def _refusal(self, input: AnswerInput) -> Cited:
        """Return the outcome where there are no documents; the input says why."""
