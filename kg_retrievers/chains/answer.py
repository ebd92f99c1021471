"""An answer to a question from the evidence of any retriever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnablePassthrough
from typing_extensions import TypedDict

from kg_retrievers.base import BaseKGRetriever
from kg_retrievers.prompts import check_model, check_placeholders

#: What is answered where there is no evidence.
NO_ANSWER = "The knowledge graph holds no answer to this question."

#: What the extractive answerer says of evidence that proposes no entity, as that of a pattern without a target.
NO_TARGET = "The knowledge graph holds facts on this question, but they propose no entity as the answer."


class AnswerInput(TypedDict):
    """What an answerer is given."""

    question: str
    documents: list[Document]


#: Anything that turns a question and its evidence into an answer: `prompt | llm`, the extractive one, a trained model.
Answerer = Runnable[AnswerInput, str]


class ExtractiveAnswerer(Runnable[AnswerInput, str]):
    """Answers with the labels of the entities that the best evidence proposes, joined by "; ". No language model.

    Example:
        >>> document = Document("", metadata={"answers": ["Q1"], "labels": {"Q1": "Spike Jonze"}})
        >>> ExtractiveAnswerer().invoke({"question": "Who directed Her?", "documents": [document]})
        'Spike Jonze'
    """

    def invoke(self, input: AnswerInput, config: RunnableConfig | None = None, **kwargs: Any) -> str:
        """Return the labels, each once, or `NO_ANSWER` without evidence, `NO_TARGET` without answers."""
        return self._call_with_config(self._answer, input, config)

    def _answer(self, input: AnswerInput) -> str:
        if not input["documents"]:
            return NO_ANSWER
        metadata = input["documents"][0].metadata
        return "; ".join(dict.fromkeys(metadata["labels"][key] for key in metadata["answers"])) or NO_TARGET


def format_evidence(documents: Sequence[Document]) -> str:
    """Number the Documents and put their texts one after the other."""
    return "\n\n".join(f"[{number}]\n{document.page_content}" for number, document in enumerate(documents, 1))


def llm_answerer(prompt: BasePromptTemplate[Any], llm: BaseLanguageModel[Any]) -> Answerer:
    """Return an answerer that shows the evidence to a language model; without evidence the model is not called.

    Raises:
        InvalidArgumentError: If `llm` is no language model, or the prompt has other placeholders than `question` and
            `evidence`.
    """
    check_model(llm, "llm_answerer")
    check_placeholders(prompt, ["question", "evidence"], "llm_answerer: prompt")
    ask = (
        {"question": lambda value: value["question"], "evidence": lambda value: format_evidence(value["documents"])}
        | prompt
        | llm
        | StrOutputParser()
    )
    return RunnableLambda(lambda value: ask if value["documents"] else NO_ANSWER).with_config(run_name="llm_answerer")


def answer_chain(
    retriever: BaseKGRetriever, answerer: Answerer | BaseLanguageModel[Any] | None = None
) -> Runnable[str, str]:
    """Return a chain from a question to an answer.

    Args:
        retriever: Any retriever of this package.
        answerer: An answerer; or a language model, which is asked with the retriever's own prompt; or None for the
            extractive answerer.

    Example:
        >>> from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, SimGRAGRetriever
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze"), ("Her", "has_genre", "Drama")])
        >>> index = GraphIndex.build(graph, HashedEmbeddings())
        >>> answer_chain(SimGRAGRetriever.from_index(index)).invoke("Who directed Her?")
        'Spike Jonze'
    """
    if answerer is None:
        answerer = ExtractiveAnswerer()
    elif isinstance(answerer, BaseLanguageModel) or not isinstance(answerer, Runnable):
        answerer = llm_answerer(retriever.answer_prompt, answerer)
    return {"question": RunnablePassthrough(), "documents": retriever} | answerer
