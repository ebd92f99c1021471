"""Answers a question in words from the evidence of any retriever."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import BaseModel

from kg_retrievers.chains.evidence import (
    AnswerInput,
    EvidenceStyle,
    ShownEvidence,
    check_token_budget,
    evidence_of,
    show_evidence,
    with_whole_evidence,
)
from kg_retrievers.core.documents import best_text, tell_ambiguous_names, why_unsure
from kg_retrievers.core.prompts import check_model, check_placeholders
from kg_retrievers.core.replies import NO_ANSWER, NO_TARGET, plain_answers, refusal_of
from kg_retrievers.core.retriever import BaseKGRetriever, check_retriever
from kg_retrievers.core.stages import Body, Call, GeneratorRunnable
from kg_retrievers.core.structured_replies import MAX_ITEMS, StructuredModel, guarded, read_object
from kg_retrievers.errors import AnswerParseError, InvalidArgumentError, RefusalError, named_arguments
from kg_retrievers.graph.verbalize import approximate_tokens, as_data

#: Turns a question and its evidence into a text: `prompt | llm`, `ExtractiveAnswerer`, a trained model. If there are no
#: documents, the `reason` of the input says why.
Answerer = Runnable[AnswerInput, str]

Answer = TypeVar("Answer")


class ExtractiveAnswerer(Runnable[AnswerInput, str]):
    """Joins the labels of the entities that the best evidence proposes by "; ". Asks no language model.

    Equally good evidence, such as evidence on another entity of the same name, follows behind "or".

    The result of an operation is the answer if the evidence proposes none, such as "6" or "yes". Otherwise it stands
    behind each answer in parentheses.

    Example:
        >>> from langchain_core.documents import Document
        >>> document = Document("", metadata={"answers": ["Q1"], "labels": {"Q1": "Spike Jonze"}})
        >>> ExtractiveAnswerer().invoke({"question": "Who directed Her?", "documents": [document]})
        'Spike Jonze'
    """

    def invoke(self, input: AnswerInput, config: RunnableConfig | None = None, **kwargs: Any) -> str:
        """Return the labels, each once, or `refusal_text` without evidence.

        Evidence without answers gives `NO_TARGET`, followed by the `refusals` of the input. The `note` of the input
        follows in parentheses.
        """
        return self._call_with_config(self._answer, input, config)

    def _answer(self, input: AnswerInput) -> str:
        if not input["documents"]:
            return refusal_text(input)
        input = with_whole_evidence(input, "ExtractiveAnswerer")
        answers = best_text(input["documents"]) or explain_no_target(input)
        return f"{answers}\n({input['note']})" if input.get("note") else answers


def explain_no_target(input: AnswerInput) -> str:
    """Return the answer to evidence that proposes none.

    It adds why the evidence proposes none, or why other retrievers found nothing.
    """
    return " ".join(filter(None, [NO_TARGET, as_data(why_unsure(input["documents"])), input.get("refusals")]))


def refusal_text(input: AnswerInput) -> str:
    """Return the answer without evidence, and the reason if it is known."""
    refusal, reason = input.get("refusal") or NO_ANSWER, input.get("reason")
    return f"{refusal} {reason}" if reason else refusal


@named_arguments
def llm_answerer(
    prompt: BasePromptTemplate[Any],
    llm: BaseLanguageModel[Any],
    parse_answers: Callable[[str], list[str]] | None = None,
) -> Answerer:
    r"""Return an answerer that shows the evidence to a language model.

    Without evidence the model is not called.

    Args:
        prompt: The prompt, with the placeholders `question` and `evidence`.
        llm: The language model.
        parse_answers: Reads the answers from a reply, as a retriever's `parse_answers` does for its `answer_prompt`.
            They are joined by "; ". If there are none, the answer is `NO_ANSWER`. It reads whole replies, so that the
            answer is one chunk at the end of a stream. None for the reply as it comes, token by token.

    Raises:
        InvalidArgumentError: If `llm` is no language model, the prompt has other placeholders, or `parse_answers`
            cannot be called.

    Example:
        >>> from langchain_core.documents import Document
        >>> from kg_retrievers.methods.subgraph_rag.prompts import ANSWER_PROMPT, parse_answers
        >>> from kg_retrievers.testing import ScriptedChatModel
        >>> llm = ScriptedChatModel(replies=["So says fact 1.\nans: Spike Jonze"])
        >>> value = {"question": "Who directed Her?", "documents": [Document("Her -> directed by -> Spike Jonze")]}
        >>> llm_answerer(ANSWER_PROMPT, llm, parse_answers).invoke(value)
        'Spike Jonze'
    """
    check_model(llm, "llm_answerer")
    check_placeholders(prompt, ["question", "evidence"], "llm_answerer: prompt")
    ask: Answerer = RunnableLambda(_prompt_values) | prompt | guarded(llm) | StrOutputParser()
    if callable(parse_answers):
        ask |= RunnableLambda(partial(_joined, parse_answers))
    elif parse_answers is not None:
        raise InvalidArgumentError(
            "llm_answerer: parse_answers must be a function from a reply to its answers, or None, but got "
            f"{parse_answers!r:.100}."
        )
    choose = RunnableLambda(lambda value: ask if value["documents"] else refusal_text(value))
    return choose.with_config(run_name="llm_answerer")


def _joined(parse_answers: Callable[[str], list[str]], reply: str) -> str:
    return "; ".join(parse_answers(reply)) or NO_ANSWER


def _prompt_values(value: AnswerInput) -> dict[str, str]:
    return {"question": value["question"], "evidence": evidence_of(value, "documents").text}


def choose_answerer(
    answerer: object,
    without_model: Callable[[], Runnable[AnswerInput, Answer]],
    with_model: Callable[[BaseLanguageModel[Any]], Runnable[AnswerInput, Answer]],
    who: str,
) -> Runnable[AnswerInput, Answer]:
    """Return the answerer, or make one of a language model, or of None.

    Raises:
        InvalidArgumentError: If it is something else, such as the name of a model.
    """
    if answerer is None:
        return without_model()
    if isinstance(answerer, BaseLanguageModel):
        return with_model(answerer)
    if not isinstance(answerer, Runnable):
        raise InvalidArgumentError(
            f"{who}: wanted an answerer, a LangChain language model or None, but got {answerer!r:.100}. "
            'Make a model from its name: load_chat_model("provider:model").'
        )
    return answerer


class Retrieval(GeneratorRunnable[str, AnswerInput]):
    """Turn a question into the input of an answerer.

    This is the first half of every chain.
    """

    def __init__(
        self,
        retriever: BaseKGRetriever,
        style: EvidenceStyle,
        max_tokens: int | None,
        count_tokens: Callable[[str], int],
        who: str,
    ) -> None:
        """Check and take the retriever, and the style and budget of its evidence.

        Raises:
            InvalidArgumentError: If one of them is wrong. The message names `who`, the chain.
        """
        check_retriever(retriever, who)
        check_token_budget(max_tokens, count_tokens, who)
        self.retriever = retriever
        self.show = partial(show_evidence, style=style, max_tokens=max_tokens, count_tokens=count_tokens)

    def body(self, input: str) -> Body[AnswerInput]:
        """Retrieve and verbalize. A refusal becomes the reason."""
        try:
            documents = yield Call(self.retriever.bind(on_refusal="raise"), input)
        except RefusalError as error:
            nothing = AnswerInput(question=input, documents=[], evidence="", citable=[])
            return {**nothing, "reason": as_data(str(error)), "refusal": refusal_of(error)}
        shown, note = self.show(documents), tell_ambiguous_names(documents)
        given = AnswerInput(question=input, documents=documents, evidence=shown.text, citable=shown.citable)
        if note:
            given["note"] = note
        return given


@named_arguments
def answer_chain(
    retriever: BaseKGRetriever,
    answerer: Answerer | BaseLanguageModel[Any] | None = None,
    *,
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] = approximate_tokens,
) -> Runnable[str, str]:
    """Return a chain from a question to an answer.

    It streams the chunks of the answerer.

    A refused question is answered by a constant and the reason, whatever the retriever's `on_refusal`. The constant is
    `NOT_UNDERSTOOD` if the question names no entity of the graph or is not understood surely enough, `SEARCH_ENDED` if
    a budget ended the search, and `NO_ANSWER` otherwise.

    Args:
        retriever: Any retriever of this package.
        answerer: An answerer, a language model, or None for the extractive answerer. A language model gets the
            retriever's own prompt, and the retriever's `parse_answers` reads its reply (see `llm_answerer`). With
            `plain_answers`, it streams token by token.
        max_tokens: The most tokens of evidence that the answerer is shown. None for no limit.
        count_tokens: Counts them, as the model at hand does.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze"), ("Her", "has_genre", "Drama")])
        >>> index = GraphIndex.build(graph, default_embeddings())
        >>> answer_chain(SimGRAGRetriever.from_index(index)).invoke("Who directed Her?")
        'Spike Jonze'
    """
    if isinstance(answerer, CitingModel):
        raise InvalidArgumentError(
            f"answer_chain: {type(answerer).__name__} cites numbered facts. Use cited_answer_chain(retriever, ...)."
        )
    retrieval = Retrieval(retriever, "documents", max_tokens, count_tokens, "answer_chain")
    parse_answers = None if retriever.parse_answers is plain_answers else retriever.parse_answers
    by_model = partial(llm_answerer, retriever.answer_prompt, parse_answers=parse_answers)
    chosen = choose_answerer(answerer, ExtractiveAnswerer, by_model, "answer_chain")
    return retrieval | chosen


Reply = TypeVar("Reply", bound=BaseModel)
Cited = TypeVar("Cited")


class CitingModel(GeneratorRunnable[AnswerInput, Cited], Generic[Reply, Cited]):
    """Show numbered facts to a language model and read its citations.

    If the reply is unreadable, it asks once more.

    A model with structured output is asked for it, by a schema that lets it cite only facts that are shown, and give
    about as many answers. The reply of any other model is read as text. Without documents, no model is called.

    Args:
        llm: The language model.
        prompt: In place of ours, with the placeholders `question` and `evidence`.
        repair_prompt: Asks once more, with the placeholders `question`, `evidence`, `reply` and `error`.
        structured: Whether to use the model's structured output. None uses it if the model has it. False suits servers
            that speak the protocol of a model with structured output without having it.

    Raises:
        InvalidArgumentError: If `llm` is no language model, the prompt has other placeholders, or `structured` is asked
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
        """Check the model and the prompt."""
        who = type(self).__name__
        check_model(llm, who)
        check_placeholders(prompt, ["question", "evidence"], f"{who}: prompt")
        self.llm = llm
        self.prompts = {"answer": prompt, "repair": repair_prompt}
        self._model = StructuredModel(llm, self.reply_form, structured=structured, who=who)

    def body(self, input: AnswerInput) -> Body[Cited]:
        """Show the facts, ask, read, and if need be ask again with the reason."""
        if not input["documents"]:
            return self._refusal(input)
        input = with_whole_evidence(input, type(self).__name__)
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
        """Return the limits that so many facts add to the schema of replies.

        The schema allows as many citations, and none of anything else.
        """
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
        """Return the content of a reply to some evidence.

        Its citations become facts that were shown.
        """

    @abstractmethod
    def _refusal(self, input: AnswerInput) -> Cited:
        """Return the outcome if there are no documents. The input says why."""
