"""GraphService: the retrievers of a graph, and its contents for the page and MCP."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel

from kg_retrievers.agents.answers import schema_of
from kg_retrievers.agents.bounds import DEFAULT_TOKENS, fit
from kg_retrievers.agents.neighborhoods import neighbors_of, resolve
from kg_retrievers.agents.results import Neighbors, SchemaSummary
from kg_retrievers.agents.toolkit import KnowledgeGraphToolkit
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.index import GraphIndex, check_index
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import Method
from kg_retrievers.serving.examples import example_questions
from kg_retrievers.serving.loading import SavedModel, build_retriever, choose_method, model_of

if TYPE_CHECKING:
    from kg_retrievers.database.executor import Executor


class GraphService:
    """Builds the retrievers and the tools of a graph, and shows its contents. Any thread may call it.

    Args:
        index: The indexed graph.
        llm: A language model for the methods and for the answers; without one, an answer is what the best evidence
            proposes.
        examples: Labelled questions, for methods that can use them.
        models: Trained models by the names of their methods, as `read_models` gives them.
        default_method: The method where none is named: by default that of the only model, else `registry.DEFAULT`.
        executor: Returns the database in which queries are run; by default a retriever makes one for itself.
        runs_queries: Whether agents may run queries in this database, or in that of a connected graph.
        preset: The preset of each method; see `BaseKGRetriever.presets`.

    Raises:
        InvalidArgumentError: If there is no such method, or it cannot be built from what is given.

    Example:
        >>> from kg_retrievers import GraphIndex, default_embeddings
        >>> from kg_retrievers.sample import load_graph
        >>> service = GraphService(GraphIndex.build(load_graph(), default_embeddings()))
        >>> service.toolkit().ask("Who directed Her?").answer
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
        runs_queries: bool = False,
        preset: str | None = None,
    ) -> None:
        """Check what is given; nothing is built before it is asked for."""
        check_index(type(self).__name__, index)
        self.index, self.llm, self._executor, self._preset = index, llm, executor, preset
        self._examples, self._models, self._runs_queries = examples, models or {}, runs_queries
        self._methods = tuple(one for one in registry.METHODS if self._can_build(one))
        chosen = choose_method(default_method, {} if default_method else self._models)
        self._default = self._offered(chosen).name
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
        """Return the retriever of a method, which is built once.

        Args:
            method: The method; the default one by default.
            with_llm: Whether it has the language model, if there is one.

        Raises:
            InvalidArgumentError: If there is no such method, or it cannot be built from what the service was given.
        """
        chosen = self._offered(registry.find_method(method or self._default))
        llm = self.llm if with_llm else None
        key = (chosen.name, llm is not None)
        with self._lock:
            if key not in self._built:
                self._built[key] = build_retriever(
                    chosen,
                    self.index,
                    llm=llm,
                    examples=self._examples if _can_use(self._examples or (), chosen) else None,
                    model=model_of(chosen, self._models),
                    executor=self._executor,
                    preset=self._preset,
                )
            return self._built[key]

    def toolkit(self) -> KnowledgeGraphToolkit:
        """Return the tools by which an agent reads the graph. `ask` asks the default method."""
        runs = self._runs_queries
        executor = self._executor() if runs and self._executor else None
        return KnowledgeGraphToolkit(
            self.index, llm=self.llm, executor=executor, runs_queries=runs, method=self.retriever()
        )

    def schema(self) -> SchemaSummary:
        """Return the relations and types of the graph, the ones with the most facts first."""
        return fit(schema_of(self.index, self.methods), DEFAULT_TOKENS)

    def neighbors(self, entity: str, *, limit: int = 50) -> Neighbors:
        """Return the facts around an entity, some of each relation, in both directions.

        Args:
            entity: Its key, its label or an alias.
            limit: The most facts.

        Raises:
            EntityLinkingError: If no entity has this name, with the nearest names, or several have.
        """
        return fit(neighbors_of(self.index, resolve(self.index, entity), limit, None), DEFAULT_TOKENS)

    def examples(self) -> list[str]:
        """Return example questions that the graph asks of itself and the default method answers, the same each time.

        There are at most six. No language model is called.
        """
        with self._questions_lock:
            if self._questions is None:
                self._questions = example_questions(self.retriever(with_llm=False), 6)
            return list(self._questions)

    def _offered(self, method: Method) -> Method:
        """Return a method that may be asked.

        Raises:
            InvalidArgumentError: If it may not.
        """
        if method not in self._methods:
            known = ", ".join(one.name for one in self._methods)
            raise InvalidArgumentError(f"the method {method.name} is not offered here; offered are {known}.")
        return method

    def _can_build(self, method: Method) -> bool:
        """Tell whether a method has what it needs: a trained model, a language model or examples, and its package."""
        given = {"model": method.name in self._models, "llm": self.llm is not None, "examples": bool(self._examples)}
        has_package = method.extra is None or find_spec(method.extra) is not None
        return has_package and (not method.needs or any(given[source] for source in method.needs))


def _can_use(examples: Sequence[Question], method: Method) -> bool:
    """Tell whether a method can use some of the labelled questions."""
    return any(getattr(one, label) for one in examples for label in method.labels)
