"""GraphService: what a graph answers, as MCP and the web page offer it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig

from kg_retrievers.chains.cited_answer import CheckedAnswerer, CitedAnswer, ExtractiveCitedAnswerer, LLMCitedAnswerer
from kg_retrievers.chains.evidence import AnswerInput, show_evidence
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import Question
from kg_retrievers.errors import RefusalError
from kg_retrievers.explanation import explain, why_not
from kg_retrievers.index import GraphIndex, check_index
from kg_retrievers.serving.answers import (
    answer_of,
    evidence_of,
    explained_absence,
    explained_document,
    refused_answer,
    refused_evidence,
    unexplained,
)
from kg_retrievers.serving.examples import example_questions
from kg_retrievers.serving.limits import MOST_EVIDENCE, MOST_EXAMPLES, MOST_FACTS, check_range, check_seeds, check_text
from kg_retrievers.serving.loading import SavedModel
from kg_retrievers.serving.neighborhoods import neighbors_of, resolve
from kg_retrievers.serving.results import Answer, Explained, FoundEvidence, Neighbors, SchemaSummary
from kg_retrievers.serving.retrievers import Retrievers
from kg_retrievers.serving.runs import run_question
from kg_retrievers.serving.schemas import schema_of
from kg_retrievers.serving.token_bounds import DEFAULT_TOKENS, check_max_tokens, fit

if TYPE_CHECKING:
    from kg_retrievers.database.executor import Executor

#: The tokens of evidence that a language model is shown.
EVIDENCE_TOKENS = 6_000


class GraphService:
    """Answers questions about a graph, and shows what is in it; it changes nothing, and any thread may call it.

    Args:
        index: The indexed graph.
        llm: A language model for the methods and for the answers; without one, an answer is what the best evidence
            proposes.
        examples: Labelled questions, for methods that can use them.
        models: Trained models by the names of their methods, as `read_models` gives them.
        default_method: The method where none is named: by default that of the only model, else `registry.DEFAULT`.
        methods: The methods that may be asked; by default all that can be built from what is given.
        executor: Returns the database in which queries are run; by default a retriever makes one for itself.
        preset: The preset of each method; see `BaseKGRetriever.presets`.

    Raises:
        InvalidArgumentError: If there is no such method, or it cannot be built from what is given.

    Example:
        >>> from kg_retrievers import GraphIndex, default_embeddings
        >>> from kg_retrievers.sample import load_graph
        >>> service = GraphService(GraphIndex.build(load_graph(), default_embeddings()))
        >>> service.ask("Who directed Her?").answer
        'Spike Jonze'
    """

    def __init__(
        self,
        index: GraphIndex,
        *,
        llm: BaseChatModel | None = None,
        examples: Sequence[Question] | None = None,
        models: Mapping[str, SavedModel] | None = None,
        default_method: str | None = None,
        methods: Sequence[str] | None = None,
        executor: Callable[[], Executor] | None = None,
        preset: str | None = None,
    ) -> None:
        """Check what is given; nothing is built before it is asked for."""
        check_index(type(self).__name__, index)
        self.index, self.llm = index, llm
        self._retrievers = Retrievers(
            index,
            llm=llm,
            examples=examples,
            models=models,
            default_method=default_method,
            methods=methods,
            executor=executor,
            preset=preset,
        )
        self._questions: dict[int, list[str]] = {}
        self._lock = threading.Lock()

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods that can be asked, the default first."""
        return self._retrievers.names

    def retriever(self, method: str | None = None) -> BaseKGRetriever:
        """Return the retriever of a method, or the union of several joined by "+"; it is built once.

        Raises:
            InvalidArgumentError: If there is no such method, or it cannot be built from what the service was given.
        """
        return self._retrievers.get(method)

    def ask(
        self,
        question: str,
        *,
        method: str | None = None,
        k: int | None = None,
        seed_entities: Sequence[str] | None = None,
        min_confidence: float | None = None,
        max_tokens: int = DEFAULT_TOKENS,
        callbacks: Sequence[BaseCallbackHandler] = (),
    ) -> Answer:
        """Answer a question, with the facts that the answer rests on.

        Args:
            question: The question, in full sentences.
            method: The method; the default one by default.
            k: How many pieces of evidence are looked at; by default as the method has it.
            seed_entities: The entities that the question is about, by key, label or alias; found in it by default.
            min_confidence: Refuse a question whose answers are less likely right, from 0 to 1.
            max_tokens: The most tokens of the result; see `kg_retrievers.serving.token_bounds`.
            callbacks: Hear of each stage, and of each call of a model.

        Raises:
            InvalidArgumentError: If an argument is out of range, or there is no such method.
            KGRetrieversError: If a database or a model fails. A refusal is no error, but a result.
        """
        name = self._retrievers.name_of(method)
        inputs = {"k": k, "seed_entities": seed_entities, "min_confidence": min_confidence}

        def work(config: RunnableConfig) -> Answer:
            documents = self._documents(question, name, inputs, config)
            return answer_of(question, self._answer(question, name, documents, config), documents, name)

        def refused(refusal: RefusalError) -> Answer:
            return refused_answer(question, refusal, name)

        return run_question("ask", question, work, refused, max_tokens, callbacks)

    def search_evidence(
        self,
        question: str,
        *,
        method: str | None = None,
        k: int | None = None,
        seed_entities: Sequence[str] | None = None,
        max_tokens: int = DEFAULT_TOKENS,
        callbacks: Sequence[BaseCallbackHandler] = (),
    ) -> FoundEvidence:
        """Find the facts of the graph that a question is about; arguments and errors are those of `ask`."""
        name = self._retrievers.name_of(method)

        def work(config: RunnableConfig) -> FoundEvidence:
            inputs = {"k": k, "seed_entities": seed_entities}
            return evidence_of(question, self._documents(question, name, inputs, config), name)

        def refused(refusal: RefusalError) -> FoundEvidence:
            return refused_evidence(question, refusal, name)

        return run_question("search_evidence", question, work, refused, max_tokens, callbacks)

    def explain(
        self,
        question: str,
        *,
        entity: str | None = None,
        method: str | None = None,
        max_tokens: int = DEFAULT_TOKENS,
        callbacks: Sequence[BaseCallbackHandler] = (),
    ) -> Explained:
        """Explain how the best evidence comes about, or why an entity is not found.

        Args:
            question: The question.
            entity: The entity that is missing, by key, label or alias; None for what is found.
            method: The method; the default one by default.
            max_tokens: The most tokens of the result.
            callbacks: Hear of each stage, and of each call of a model.

        Raises:
            EntityLinkingError: If no entity has this name, with the nearest names, or several have.
            InvalidArgumentError: As `ask`.
        """
        name = self._retrievers.name_of(method)
        retriever = self.retriever(name)
        if entity is not None:
            check_text("question", question)
            check_text("entity", entity)
            key = resolve(self.index, entity)

            def missing(config: RunnableConfig) -> Explained:
                return explained_absence(why_not(retriever, question, key), name)

            return run_question("explain", question, missing, None, max_tokens, callbacks)

        def work(config: RunnableConfig) -> Explained:
            documents = self._documents(question, name, {"k": None, "seed_entities": None}, config)
            return explained_document(question, explain(documents[0], retriever), name)

        def refused(refusal: RefusalError) -> Explained:
            return unexplained(question, refusal, name)

        return run_question("explain", question, work, refused, max_tokens, callbacks)

    def schema(self, *, max_tokens: int = DEFAULT_TOKENS) -> SchemaSummary:
        """Return the relations and types of the graph, those with most facts first."""
        return fit(schema_of(self.index, self.methods), max_tokens)

    def neighbors(
        self, entity: str, *, limit: int = 50, relation: str | None = None, max_tokens: int = DEFAULT_TOKENS
    ) -> Neighbors:
        """Return the facts around an entity, some of each relation, in both directions.

        Args:
            entity: Its key, its label or an alias.
            limit: The most facts, 1 to `MOST_FACTS`.
            relation: Facts of this relation alone.
            max_tokens: The most tokens of the result.

        Raises:
            InvalidArgumentError: If an argument is out of range, or the entity has no such relation.
            EntityLinkingError: If no entity has this name, with the nearest names, or several have.
        """
        check_max_tokens(max_tokens)
        check_text("entity", entity)
        check_range("limit", limit, MOST_FACTS)
        if relation is not None:
            check_text("relation", relation)
        return fit(neighbors_of(self.index, resolve(self.index, entity), limit, relation), max_tokens)

    def examples(self, count: int = 6) -> list[str]:
        """Return example questions that the graph asks of itself and the default method answers, the same each time.

        No language model is called.

        Args:
            count: How many, 1 to `MOST_EXAMPLES`; fewer where the graph has no more.
        """
        check_range("count", count, MOST_EXAMPLES)
        with self._lock:
            if count not in self._questions:
                retriever = self._retrievers.get(with_llm=False)
                self._questions[count] = example_questions(retriever, count)
            return list(self._questions[count])

    def _documents(self, question: str, name: str, inputs: Mapping[str, Any], config: RunnableConfig) -> list[Document]:
        """Retrieve; a refusal is raised."""
        check_text("question", question)
        if inputs["k"] is not None:
            check_range("k", inputs["k"], MOST_EVIDENCE)
        seeds = inputs["seed_entities"]
        if seeds is not None:
            check_seeds(seeds)
            inputs = {**inputs, "seed_entities": [resolve(self.index, seed) for seed in seeds]}
        return self.retriever(name).invoke(question, config, on_refusal="raise", **inputs)

    def _answer(self, question: str, name: str, documents: list[Document], config: RunnableConfig) -> CitedAnswer:
        retriever = self.retriever(name)
        answerer = ExtractiveCitedAnswerer() if self.llm is None else LLMCitedAnswerer(self.llm)
        evidence = show_evidence(documents, "numbered", max_tokens=EVIDENCE_TOKENS)
        given = AnswerInput(question=question, documents=documents, evidence=evidence.text, citable=evidence.citable)
        return CheckedAnswerer(answerer, retriever.parse_answers).invoke(given, config)
