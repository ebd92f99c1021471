"""GraphService: what a graph answers, as MCP and the web page offer it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import ConfigDict, ValidationError, validate_call

from kg_retrievers.chains.cited_answer import CheckedAnswerer, CitedAnswer, ExtractiveCitedAnswerer, LLMCitedAnswerer
from kg_retrievers.chains.evidence import AnswerInput, show_evidence
from kg_retrievers.core.cost import CostCounter
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError, RefusalError
from kg_retrievers.explanation import explain, why_not
from kg_retrievers.graph.validation import reasons
from kg_retrievers.index import GraphIndex, check_index
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import Method
from kg_retrievers.serving.answers import (
    answer_of,
    evidence_of,
    explained_absence,
    explained_document,
    refused,
    schema_of,
)
from kg_retrievers.serving.bounds import (
    DEFAULT_TOKENS,
    Entity,
    K,
    Limit,
    MaxTokens,
    MethodName,
    MinConfidence,
    Missing,
    QuestionText,
    Relation,
    Seeds,
    fit,
)
from kg_retrievers.serving.examples import example_questions
from kg_retrievers.serving.loading import SavedModel, build_retriever, choose_methods
from kg_retrievers.serving.neighborhoods import neighbors_of, resolve
from kg_retrievers.serving.results import Answer, Cost, Explained, Found, FoundEvidence, Neighbors, SchemaSummary

if TYPE_CHECKING:
    from kg_retrievers.database.executor import Executor

F = TypeVar("F", bound=Found)
P = ParamSpec("P")
T = TypeVar("T")

#: The tokens of evidence that a language model is shown.
EVIDENCE_TOKENS = 6_000


def _checked(verb: Callable[P, T]) -> Callable[P, T]:
    """Return a verb that raises `InvalidArgumentError` if an argument is out of its bounds."""
    validated: Callable[..., T] = validate_call(config=ConfigDict(arbitrary_types_allowed=True))(verb)
    parameters = signature(verb)

    @wraps(verb)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        given = parameters.bind(*args, **kwargs).arguments
        try:
            return validated(**given)
        except ValidationError as error:
            if error.title != verb.__qualname__:  # not the arguments, but something inside
                raise
            raise InvalidArgumentError(reasons(error)) from None

    return run


class GraphService:
    """Answers questions about a graph, and shows what is in it; it changes nothing, and any thread may call it.

    Args:
        index: The indexed graph.
        llm: A language model for the methods and for the answers; without one, an answer is what the best evidence
            proposes.
        examples: Labelled questions, for methods that can use them.
        models: Trained models by the names of their methods, as `read_models` gives them.
        default_method: The method where none is named: by default that of the only model, else `registry.DEFAULT`.
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
        executor: Callable[[], Executor] | None = None,
        preset: str | None = None,
    ) -> None:
        """Check what is given; nothing is built before it is asked for."""
        check_index(type(self).__name__, index)
        self.index, self.llm, self._executor, self._preset = index, llm, executor, preset
        self._examples, self._models = examples, models or {}
        self._methods = tuple(one for one in registry.METHODS if self._can_build(one))
        chosen = choose_methods(default_method, {} if default_method else self._models)
        self._default = registry.joined_names(self._offered(chosen))
        self._built: dict[tuple[str, bool], BaseKGRetriever] = {}
        self._questions: list[str] | None = None
        self._lock, self._questions_lock = threading.Lock(), threading.Lock()

    def view(self, **view: Any) -> GraphService:
        """Return a service of a view of the graph, of which each method sees nothing else.

        Queries are run in a database that is made of the view.

        Args:
            **view: The arguments of `GraphIndex.view`; without any, the service itself is returned.

        Raises:
            InvalidArgumentError: As of `GraphIndex.view`, or if the service has labelled questions, which name entities
                that the view may hide.
        """
        if not view:
            return self
        if self._examples:
            raise InvalidArgumentError(
                "GraphService.view: examples may name entities that the view hides.",
                hint_python="Make a service without examples=.",
                hint_shell="Leave out --examples.",
            )
        return GraphService(
            self.index.view(**view),
            llm=self.llm,
            models=self._models,
            default_method=self._default,
            preset=self._preset,
        )

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods that can be asked, the default first."""
        return tuple(dict.fromkeys([self._default, *(method.name for method in self._methods)]))

    def retriever(self, method: str | None = None, *, with_llm: bool = True) -> BaseKGRetriever:
        """Return the retriever of a method, or the union of several joined by "+"; it is built once.

        Args:
            method: The method; the default one by default.
            with_llm: Whether it has the language model, if there is one.

        Raises:
            InvalidArgumentError: If there is no such method, or it cannot be built from what the service was given.
        """
        methods = self._offered(registry.find_methods(method or self._default))
        llm = self.llm if with_llm else None
        key = (registry.joined_names(methods), llm is not None)
        examples = self._examples or ()
        with self._lock:
            if key not in self._built:
                self._built[key] = build_retriever(
                    methods,
                    self.index,
                    llm=llm,
                    examples={one.name: examples for one in methods if _can_use(examples, one)},
                    models=self._models,
                    executor=self._executor,
                    preset=self._preset,
                )
            return self._built[key]

    def _name_of(self, method: str | None) -> str:
        """Return the name of a method, or of several joined by "+"."""
        return registry.joined_names(self._offered(registry.find_methods(method or self._default)))

    @_checked
    def ask(
        self,
        question: QuestionText,
        *,
        method: MethodName = None,
        k: K = None,
        seed_entities: Seeds = None,
        min_confidence: MinConfidence = None,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
        callbacks: Sequence[BaseCallbackHandler] = (),
    ) -> Answer:
        """Answer a question, with the facts that the answer rests on.

        Args:
            question: The question, in full sentences.
            method: The method; the default one by default.
            k: How many pieces of evidence are looked at; by default as the method has it.
            seed_entities: The entities that the question is about, by key, label or alias; found in it by default.
            min_confidence: Refuse a question whose answers are less likely right, from 0 to 1.
            max_tokens: The most tokens of the result; see `kg_retrievers.serving.bounds`.
            callbacks: Hear of each stage, and of each call of a model.

        Raises:
            InvalidArgumentError: If an argument is out of range, or there is no such method.
            KGRetrieversError: If a database or a model fails. A refusal is no error, but a result.
        """
        name = self._name_of(method)
        inputs = {"k": k, "seed_entities": seed_entities, "min_confidence": min_confidence}

        def work(config: RunnableConfig) -> Answer:
            documents = self._documents(question, name, inputs, config)
            return answer_of(question, self._answer(question, name, documents, config), documents, name)

        return self._run("ask", question, name, work, Answer, max_tokens, callbacks)

    @_checked
    def search_evidence(
        self,
        question: QuestionText,
        *,
        method: MethodName = None,
        k: K = None,
        seed_entities: Seeds = None,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
        callbacks: Sequence[BaseCallbackHandler] = (),
    ) -> FoundEvidence:
        """Find the facts of the graph that a question is about; arguments and errors are those of `ask`."""
        name = self._name_of(method)

        def work(config: RunnableConfig) -> FoundEvidence:
            inputs = {"k": k, "seed_entities": seed_entities}
            return evidence_of(question, self._documents(question, name, inputs, config), name)

        return self._run("search_evidence", question, name, work, FoundEvidence, max_tokens, callbacks)

    @_checked
    def explain(
        self,
        question: QuestionText,
        *,
        entity: Missing = None,
        method: MethodName = None,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
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
        name = self._name_of(method)
        retriever = self.retriever(name)
        key = None if entity is None else resolve(self.index, entity)

        def work(config: RunnableConfig) -> Explained:
            if key is not None:
                return explained_absence(why_not(retriever, question, key), name)
            documents = self._documents(question, name, {}, config)
            return explained_document(question, explain(documents[0], retriever), name)

        return self._run("explain", question, name, work, Explained, max_tokens, callbacks)

    def schema(self, *, max_tokens: MaxTokens = DEFAULT_TOKENS) -> SchemaSummary:
        """Return the relations and types of the graph, those with most facts first."""
        return fit(schema_of(self.index, self.methods), max_tokens)

    @_checked
    def neighbors(
        self, entity: Entity, *, relation: Relation = None, limit: Limit = 50, max_tokens: MaxTokens = DEFAULT_TOKENS
    ) -> Neighbors:
        """Return the facts around an entity, some of each relation, in both directions.

        Args:
            entity: Its key, its label or an alias.
            relation: Facts of this relation alone.
            limit: The most facts.
            max_tokens: The most tokens of the result.

        Raises:
            InvalidArgumentError: If the entity has no such relation, or an argument is out of range.
            EntityLinkingError: If no entity has this name, with the nearest names, or several have.
        """
        return fit(neighbors_of(self.index, resolve(self.index, entity), limit, relation), max_tokens)

    def examples(self) -> list[str]:
        """Return example questions that the graph asks of itself and the default method answers, the same each time.

        There are at most six. No language model is called.
        """
        with self._questions_lock:
            if self._questions is None:
                self._questions = example_questions(self.retriever(with_llm=False), 6)
            return list(self._questions)

    def _documents(self, question: str, name: str, inputs: Mapping[str, Any], config: RunnableConfig) -> list[Document]:
        """Retrieve; a refusal is raised."""
        if seeds := inputs.get("seed_entities"):
            inputs = {**inputs, "seed_entities": [resolve(self.index, seed) for seed in seeds]}
        return self.retriever(name).invoke(question, config, on_refusal="raise", **inputs)

    def _answer(self, question: str, name: str, documents: list[Document], config: RunnableConfig) -> CitedAnswer:
        retriever = self.retriever(name)
        answerer = ExtractiveCitedAnswerer() if self.llm is None else LLMCitedAnswerer(self.llm)
        evidence = show_evidence(documents, "numbered", max_tokens=EVIDENCE_TOKENS)
        given = AnswerInput(question=question, documents=documents, evidence=evidence.text, citable=evidence.citable)
        return CheckedAnswerer(answerer, retriever.parse_answers).invoke(given, config)

    def _offered(self, methods: Sequence[Method]) -> tuple[Method, ...]:
        """Check that methods may be asked.

        Raises:
            InvalidArgumentError: If not.
        """
        missing = [method.name for method in methods if method not in self._methods]
        if missing:
            known = ", ".join(method.name for method in self._methods)
            raise InvalidArgumentError(f"the method {missing[0]} is not offered here; offered are {known}.")
        return tuple(methods)

    def _can_build(self, method: Method) -> bool:
        """Tell whether a method has what it needs: a trained model, a language model or examples, and its package."""
        given = {"model": method.name in self._models, "llm": self.llm is not None, "examples": bool(self._examples)}
        has_package = method.extra is None or find_spec(method.extra) is not None
        return has_package and (not method.needs or any(given[source] for source in method.needs))

    def _run(
        self,
        verb: str,
        question: str,
        name: str,
        work: Callable[[RunnableConfig], F],
        kind: type[F],
        max_tokens: int,
        callbacks: Sequence[BaseCallbackHandler],
    ) -> F:
        """Return a result with its cost, within a bound of tokens; to whoever watches, all of it is one run."""
        began, counter = time.monotonic(), CostCounter()
        run: Runnable[str, F] = RunnableLambda(lambda _, config: work(config), name=verb)
        try:
            found = run.invoke(question, {"callbacks": [*callbacks, counter]})
        except RefusalError as refusal:
            found = refused(kind, question, refusal, name)
        cost = counter.cost(time.monotonic() - began)
        calls = Cost.model_validate({name: count for name, count in cost.items() if name != "seconds"})
        return fit(found.model_copy(update={"cost": calls, "seconds": round(cost["seconds"], 3)}), max_tokens)


def _can_use(examples: Sequence[Question], method: Method) -> bool:
    """Tell whether a method can use some of the labelled questions."""
    return any(getattr(one, label) for one in examples for label in method.labels)
