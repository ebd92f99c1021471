"""Verifies a claim, with citations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NotRequired

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable
from typing_extensions import TypedDict

from kg_retrievers.chains.answer import CitingModel, Retrieval
from kg_retrievers.chains.cited_answer import answer_unread
from kg_retrievers.chains.evidence import AnswerInput, Citation, ShownEvidence
from kg_retrievers.chains.prompts import (
    CLOSED_VERIFICATION_PROMPT,
    CLOSED_VERIFICATION_REPAIR_PROMPT,
    VERIFICATION_PROMPT,
    VERIFICATION_REPAIR_PROMPT,
    VerdictReply,
)
from kg_retrievers.core.documents import result_value
from kg_retrievers.core.retriever import BaseKGRetriever, OnRefusal
from kg_retrievers.core.stages import Body, Call, GeneratorRunnable
from kg_retrievers.errors import InvalidArgumentError, ReplyError, named_arguments
from kg_retrievers.graph.verbalize import approximate_tokens, as_data

#: The verdicts.
VerdictName = Literal["supported", "refuted", "not enough evidence"]

#: The status of a claim that is not supported. See `FactVerifier`.
Otherwise = Literal["not enough evidence", "refuted"]

#: The prompt and the repair prompt of each kind of verdict.
PROMPTS: dict[Otherwise, tuple[BasePromptTemplate[Any], BasePromptTemplate[Any]]] = {
    "not enough evidence": (VERIFICATION_PROMPT, VERIFICATION_REPAIR_PROMPT),
    "refuted": (CLOSED_VERIFICATION_PROMPT, CLOSED_VERIFICATION_REPAIR_PROMPT),
}


class Verdict(TypedDict):
    """The verdict of the evidence on a claim.

    Attributes:
        verdict: The verdict. It is "not enough evidence", whatever the model says, if the model cites nothing that was
            shown and no operation gave a value, or if the model contradicts an operation that decided whether the claim
            holds. If the verifier refutes every claim that is not supported, see `FactVerifier`.
        explanation: How the facts bear on the claim. For a refused claim, why there are none.
        citations: The facts that the verdict rests on, among the facts that were shown.
        rejected_citations: How many citations of facts that were not shown were left out.
        value: The result of an operation, as in the metadata of the evidence. None without an operation.
    """

    verdict: VerdictName
    explanation: str
    citations: list[Citation]
    rejected_citations: int
    value: NotRequired[Any]


class FactVerifier(CitingModel[VerdictReply, Verdict]):
    """Ask a language model for its verdict on a claim, with citations.

    See SimGRAG, section 4.4 and table 13.

    Differs from the paper: the verdict cites facts, and there is a third verdict, "not enough evidence". The paper's
    prompt refutes whatever the evidence does not support. `otherwise="refuted"` is the paper's rule. The verdict is
    "supported" if the model says so, whatever it cites, unless an operation decided the contrary. Any other claim is
    "refuted", also without evidence.

    Args:
        llm: The language model.
        prompt: In place of ours, with the placeholders `question` and `evidence`.
        structured: As for `CitingModel`.
        otherwise: The verdict on a claim that is neither supported nor, of three verdicts, refuted.

    Raises:
        InvalidArgumentError: If `otherwise` is misspelt, or as for `CitingModel`.
        AnswerParseError: From `invoke`, if the second reply is unreadable, too.
    """

    reply_form = VerdictReply

    @named_arguments
    def __init__(
        self,
        llm: BaseLanguageModel[Any],
        *,
        prompt: BasePromptTemplate[Any] | None = None,
        structured: bool | None = None,
        otherwise: Otherwise = "not enough evidence",
    ) -> None:
        """Check the model and the prompt."""
        if otherwise not in [*PROMPTS]:  # it may be unhashable
            raise InvalidArgumentError(
                f'FactVerifier: otherwise is "not enough evidence" or "refuted", but got {otherwise!r:.100}.'
            )
        self.otherwise = otherwise
        ours, repair_prompt = PROMPTS[otherwise]
        super().__init__(llm, prompt or ours, repair_prompt, structured)

    @property
    def decides_without_evidence(self) -> bool:
        """Whether a claim without evidence has a verdict.

        If so, it counts as one in an evaluation.
        """
        return self.otherwise == "refuted"

    def _cited(self, reply: VerdictReply, shown: ShownEvidence, documents: Sequence[Document]) -> Verdict:
        citations, strange = shown.cite(reply.citations, documents)
        explanation, _, gone = shown.read_marks(reply.explanation)
        value = result_value(documents)
        return {
            "verdict": self._verdict(reply, value, cites=bool(citations)),
            "explanation": explanation,
            "citations": citations,
            "rejected_citations": len({*strange, *gone}),
            "value": value,
        }

    def _verdict(self, reply: VerdictReply, value: object, *, cites: bool) -> VerdictName:
        """Return the verdict that a reply may give.

        It depends on the result of an operation and on whether the reply cites a fact.
        """
        contradicts = isinstance(value, bool) and reply.verdict == ("refuted" if value else "supported")
        if self.otherwise == "refuted":
            return "supported" if reply.verdict == "supported" and not contradicts else "refuted"
        rests_on_something = cites or value is not None
        return reply.verdict if rests_on_something and not contradicts else "not enough evidence"

    def _refusal(self, input: AnswerInput) -> Verdict:
        return Verdict(
            verdict=self.otherwise,
            explanation=input.get("reason") or "",
            citations=[],
            rejected_citations=0,
            value=None,
        )


class _Verification(GeneratorRunnable[AnswerInput, Verdict]):
    """Ask a verifier.

    The evidence decides in place of a model whose reply cannot be read.
    """

    def __init__(self, verifier: FactVerifier, on_refusal: OnRefusal) -> None:
        self.verifier, self.on_refusal = verifier, on_refusal

    def body(self, input: AnswerInput) -> Body[Verdict]:
        try:
            verdict: Verdict = yield Call(self.verifier, input)
        except ReplyError as error:
            if self.on_refusal == "raise":
                raise
            return self._unread(input, error)
        return verdict

    def _unread(self, input: AnswerInput, error: ReplyError) -> Verdict:
        """Return the verdict of an operation that decided the claim.

        Otherwise return the verifier's verdict without evidence.
        """
        found = answer_unread(input, error)
        value = found.get("value")
        is_decided = isinstance(value, bool)
        decided: VerdictName = "supported" if value else "refuted"
        return Verdict(
            verdict=decided if is_decided else self.verifier.otherwise,
            explanation=found["explanation"] if is_decided else as_data(str(error)),
            citations=found["citations"] if is_decided else [],
            rejected_citations=0,
            value=value,
        )


@named_arguments
def fact_verification_chain(
    retriever: BaseKGRetriever,
    llm: BaseLanguageModel[Any] | FactVerifier,
    *,
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] = approximate_tokens,
) -> Runnable[str, Verdict]:
    """Return a chain from a claim to a verdict.

    A claim that the retriever refuses gets "not enough evidence", or the verifier's `otherwise`, with the reason as the
    explanation, whatever the retriever's `on_refusal`. So does a claim on which a model's reply cannot be read twice,
    unless an operation decided it. With `on_refusal="raise"` the chain raises an `AnswerParseError` instead.

    Args:
        retriever: Any retriever of this package.
        llm: A language model, or a `FactVerifier` with prompts of yours.
        max_tokens: The most tokens of evidence that the model is shown. None for no limit.
        count_tokens: Counts them, as the model at hand does.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
        >>> from kg_retrievers.testing import ScriptedChatModel
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
        >>> retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> reply = '{"explanation": "So says fact 1.", "verdict": "supported", "citations": [1]}'
        >>> chain = fact_verification_chain(retriever, ScriptedChatModel(replies=[reply]))
        >>> chain.invoke("Spike Jonze directed Her.")["verdict"]
        'supported'
    """
    verifier = llm if isinstance(llm, FactVerifier) else FactVerifier(llm)
    retrieval = Retrieval(retriever, "numbered", max_tokens, count_tokens, "fact_verification_chain")
    return retrieval | _Verification(verifier, retriever.on_refusal)
