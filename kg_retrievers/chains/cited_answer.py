"""Answer with citations.

The citations are the facts that an answer rests on, as triples of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NotRequired

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import TypedDict

from kg_retrievers.chains.answer import CitingModel, Retrieval, choose_answerer, explain_no_target
from kg_retrievers.chains.evidence import (
    AnswerInput,
    Citation,
    ShownEvidence,
    are_supported,
    evidence_of,
    with_whole_evidence,
)
from kg_retrievers.chains.prompts import CITED_ANSWER_PROMPT, CITED_ANSWER_REPAIR_PROMPT, AnswerReply
from kg_retrievers.core.documents import (
    best_answers,
    best_text,
    equally_good,
    result_value,
    tell_ambiguous_names,
    tell_result,
)
from kg_retrievers.core.replies import NO_ANSWER, NO_TARGET
from kg_retrievers.core.retriever import BaseKGRetriever, OnRefusal
from kg_retrievers.core.stages import Body, Call, GeneratorRunnable
from kg_retrievers.errors import InvalidArgumentError, ReplyError, named_arguments
from kg_retrievers.graph.verbalize import approximate_tokens, as_data


class CitedAnswer(TypedDict):
    """An answer and the facts it rests on.

    Attributes:
        answer: The answers as one text, or `NO_ANSWER`, `NOT_UNDERSTOOD` or `SEARCH_ENDED`.
        answers: The answers, as the model or the graph calls them. Empty if the evidence holds none.
        explanation: How the facts answer the question. Of a refused question, the reason. If the evidence answers in
            place of a model, the fault of the model's reply.
        citations: The facts that the answers rest on, among the facts that were shown.
        rejected_citations: How many citations, and marks "[n]" in texts, of facts that were not shown were left out.
        supported: Whether the name of every answer stands in a fact that is cited. If an operation gave a value,
            whether every answer agrees with it. None if no names are known, such as without an answer.
        value: The result of an operation, as in the metadata of the evidence. None without an operation.
    """

    answer: str
    answers: list[str]
    explanation: str
    citations: list[Citation]
    rejected_citations: int
    supported: NotRequired[bool | None]
    value: NotRequired[Any]


#: Turns a question and its evidence into an answer with citations.
CitedAnswerer = Runnable[AnswerInput, CitedAnswer]


class ExtractiveCitedAnswerer(Runnable[AnswerInput, CitedAnswer]):
    """Answers with the entities that the best evidence proposes, and cites all its facts. Asks no language model.

    The result of an operation is the answer if the evidence proposes no entity, such as "6" or "yes".
    """

    def invoke(self, input: AnswerInput, config: RunnableConfig | None = None, **kwargs: Any) -> CitedAnswer:
        """Return the labels of the entities and their facts.

        The facts come from the best Documents that were shown.
        """
        return self._call_with_config(self._answer, input, config)

    def _answer(self, input: AnswerInput) -> CitedAnswer:
        if not input["documents"]:
            return no_answer(input)
        input = with_whole_evidence(input, "ExtractiveCitedAnswerer")
        documents = input["documents"]
        shown = evidence_of(input, "numbered")
        metadata = documents[0].metadata
        answers = best_answers(documents)
        own = [triple for one in equally_good(documents) for triple in one.metadata["triples"]]
        proposed = "The best evidence proposes these entities."
        said = tell_result(metadata) or (proposed if answers else explain_no_target(input))
        numbers = [number for number, triple in enumerate(shown.citable, 1) if triple in own]
        citations, _ = shown.cite(numbers, documents)
        return {
            "answer": best_text(documents) or NO_TARGET,
            "answers": answers,
            "explanation": " ".join([said, *filter(None, [tell_ambiguous_names(documents)])]),
            "citations": citations,
            "rejected_citations": 0,
            "supported": are_supported(answers, _facts(citations), documents=documents),
            "value": metadata.get("value"),
        }


class LLMCitedAnswerer(CitingModel[AnswerReply, CitedAnswer]):
    """Asks a language model for the answer to a question, with citations.

    See `CitingModel` for arguments, errors and the second attempt.

    Example:
        >>> from langchain_core.documents import Document
        >>> from kg_retrievers.testing import ScriptedChatModel
        >>> facts = {"triples": [["Her", "directed_by", "Q1"]], "labels": {"Her": "Her", "Q1": "Spike Jonze"}}
        >>> document = Document("", metadata=facts)
        >>> llm = ScriptedChatModel(replies=['{"explanation": "", "answers": ["Spike Jonze"], "citations": [1, 9]}'])
        >>> reply = LLMCitedAnswerer(llm).invoke({"question": "Who directed Her?", "documents": [document]})
        >>> reply["answer"], reply["citations"][0]["triple"], reply["rejected_citations"]
        ('Spike Jonze', ['Her', 'directed_by', 'Q1'], 1)
    """

    reply_form = AnswerReply

    @named_arguments
    def __init__(
        self,
        llm: BaseLanguageModel[Any],
        *,
        prompt: BasePromptTemplate[Any] = CITED_ANSWER_PROMPT,
        structured: bool | None = None,
    ) -> None:
        """Check the model and the prompt."""
        super().__init__(llm, prompt, CITED_ANSWER_REPAIR_PROMPT, structured)

    def _cited(self, reply: AnswerReply, shown: ShownEvidence, documents: Sequence[Document]) -> CitedAnswer:
        citations, strange = shown.cite(reply.citations, documents)
        return check_answer({**reply.model_dump(), "citations": citations}, shown, strange, documents=documents)

    def _refusal(self, input: AnswerInput) -> CitedAnswer:
        return no_answer(input)


def check_answer(
    draft: str | Mapping[str, Any],
    shown: ShownEvidence,
    strange: Sequence[int] = (),
    parse_answers: Callable[[str], list[str]] | None = None,
    documents: Sequence[Document] = (),
) -> CitedAnswer:
    """Return an answer without citations of facts that were not shown.

    Marks "[n]" of such facts go, too.

    The citations are written again from their triples. Of a text, the facts that it marks are its citations. Whether
    the answers are supported is checked again, too, and the result of an operation is taken from the evidence.

    Args:
        draft: A text, or a mapping with "answers" and "citations", each citation with its "triple".
        shown: The evidence that was shown.
        strange: Cited numbers that match no fact and were already removed from the draft.
        parse_answers: Reads the answers from a text. With None, a text has none.
        documents: The evidence. Empty if it is not known.
    """
    value = result_value(documents)
    if isinstance(draft, str):
        text, marked, gone = shown.read_marks(draft)
        citations, _ = shown.cite(marked, documents)
        answers = parse_answers(text) if parse_answers else []
        return {
            "answer": text,
            "answers": answers,
            "explanation": "",
            "citations": citations,
            "rejected_citations": len(set(gone)),
            "supported": are_supported(answers, _facts(citations), text, documents),
            "value": value,
        }
    cited = [list(citation["triple"]) for citation in draft["citations"]]
    numbers = [shown.citable.index(triple) + 1 for triple in cited if triple in shown.citable]
    citations, _ = shown.cite(numbers, documents)
    invented = sum(triple not in shown.citable for triple in cited)
    said = (draft.get("answer") or NO_ANSWER, draft.get("explanation", ""), *draft["answers"])
    texts = [shown.read_marks(str(text)) for text in said]
    unknown = {*strange, *(number for _, _, gone in texts for number in gone)}
    answer, explanation, *answers = (text for text, _, _ in texts)
    answers = list(dict.fromkeys(answers))
    keeps_answer = value is not None and draft.get("answer")  # as "Her (2013)", where "Her" is the name
    return {
        "answer": answer if keeps_answer else "; ".join(answers) or answer,
        "answers": answers,
        "explanation": explanation,
        "citations": citations,
        "rejected_citations": int(draft.get("rejected_citations", 0)) + invented + len(unknown),
        "supported": are_supported(answers, _facts(citations), documents=documents),
        "value": value,
    }


def _facts(citations: Sequence[Citation]) -> list[str]:
    return [citation["text"] for citation in citations]


def answer_unread(input: AnswerInput, error: ReplyError) -> CitedAnswer:
    """Return the answer of the evidence in place of an unreadable reply.

    The explanation says why the model's reply cannot be read.
    """
    found = ExtractiveCitedAnswerer().invoke(input)
    return {**found, "explanation": f"{found['explanation']} {as_data(str(error))}".strip()}


class CheckedAnswerer(GeneratorRunnable[AnswerInput, CitedAnswer]):
    """Ask any answerer, and check its citations.

    The evidence answers in place of a model whose reply cannot be read.
    """

    def __init__(
        self,
        answerer: Runnable[AnswerInput, Any],
        parse_answers: Callable[[str], list[str]],
        on_refusal: OnRefusal = "empty",
    ) -> None:
        """Take the answerer, its reader of answers, and its treatment of unreadable replies."""
        self.answerer, self.parse_answers, self.on_refusal = answerer, parse_answers, on_refusal

    def body(self, input: AnswerInput) -> Body[CitedAnswer]:
        """Ask, then check."""
        try:
            draft = yield Call(self.answerer, input)
        except ReplyError as error:
            if self.on_refusal == "raise":
                raise
            return answer_unread(input, error)
        check_draft(draft, self.answerer, "cited_answer_chain")
        input = with_whole_evidence(input, "cited_answer_chain")
        shown = evidence_of(input, "numbered")
        return check_answer(draft, shown, parse_answers=self.parse_answers, documents=input["documents"])


def check_draft(draft: object, answerer: object, who: str) -> None:
    """Check that an answerer gave something that can be checked.

    Raises:
        InvalidArgumentError: If not.
    """
    cited = isinstance(draft, Mapping) and {"answers", "citations"} <= set(draft)
    if not isinstance(draft, str) and not (
        cited and all(isinstance(one, Mapping) and "triple" in one for one in draft["citations"])  # type: ignore[index]
    ):
        raise InvalidArgumentError(
            f"{who}: an answerer gives a text or a CitedAnswer, but {type(answerer).__name__} gave {draft!r:.200}."
        )


def no_answer(input: AnswerInput) -> CitedAnswer:
    """Return the answer without evidence, with the reason as the explanation."""
    return {
        "answer": input.get("refusal") or NO_ANSWER,
        "answers": [],
        "explanation": input.get("reason") or "",
        "citations": [],
        "rejected_citations": 0,
        "supported": None,
        "value": None,
    }


@named_arguments
def cited_answer_chain(
    retriever: BaseKGRetriever,
    answerer: CitedAnswerer | BaseLanguageModel[Any] | None = None,
    *,
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] = approximate_tokens,
) -> Runnable[str, CitedAnswer]:
    """Return a chain from a question to an answer with citations.

    A refused question is answered by a constant, with the reason as the explanation, whatever the retriever's
    `on_refusal`. The constant is `NOT_UNDERSTOOD` if the question names no entity of the graph or is not understood
    surely enough, `SEARCH_ENDED` if a budget ended the search, and `NO_ANSWER` otherwise. If a model's reply cannot be
    read twice, the evidence answers, with the reason as the explanation. With `on_refusal="raise"` the chain raises an
    `AnswerParseError` instead.

    Args:
        retriever: Any retriever of this package.
        answerer: An answerer that cites, such as `LLMCitedAnswerer(llm)`, a language model for that answerer, or None
            for the entities that the best evidence proposes.
        max_tokens: The most tokens of evidence that the answerer is shown. None for no limit.
        count_tokens: Counts them, as the model at hand does.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze"), ("Her", "has_genre", "Drama")])
        >>> index = GraphIndex.build(graph, default_embeddings())
        >>> cited_answer_chain(SimGRAGRetriever.from_index(index)).invoke("Who directed Her?")["citations"]
        [{'number': 1, 'triple': ['Her', 'directed_by', 'Spike Jonze'], 'text': 'Her -> directed by -> Spike Jonze'}]
    """
    chosen = choose_answerer(answerer, ExtractiveCitedAnswerer, LLMCitedAnswerer, "cited_answer_chain")
    retrieval = Retrieval(retriever, "numbered", max_tokens, count_tokens, "cited_answer_chain")
    return retrieval | CheckedAnswerer(chosen, retriever.parse_answers, retriever.on_refusal)
