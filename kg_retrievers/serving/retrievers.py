"""Retrievers: which methods a service offers over its graph; each retriever is built once, for all threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel

from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import Method
from kg_retrievers.serving.loading import SavedModel, build_retriever, choose_methods

if TYPE_CHECKING:
    from kg_retrievers.database.executor import Executor


class Retrievers:
    """The retrievers of one graph, by the names of their methods; any thread may ask for one.

    Args:
        index: The indexed graph.
        llm: As of `GraphService`, and so are the others.
        examples: Labelled questions.
        models: Trained models by the names of their methods.
        default_method: The method where none is named.
        methods: The methods that may be asked.
        executor: Returns the database in which queries are run.
        preset: The preset of each method.

    Raises:
        InvalidArgumentError: If there is no such method, or it cannot be built from what is given.
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
        """Choose the methods; build nothing yet."""
        self._index, self._llm, self._executor, self._preset = index, llm, executor, preset
        self._examples, self._models = examples, models or {}
        named = [registry.find_method(name) for name in methods or ()]
        self._methods = tuple(dict.fromkeys(named)) or tuple(one for one in registry.METHODS if self._can_build(one))
        chosen = choose_methods(default_method, {} if default_method else self._models)
        #: The name of the method that is asked where none is named.
        self.default = registry.joined_names(self._offered(chosen))
        self._built: dict[tuple[str, bool], BaseKGRetriever] = {}
        self._lock = threading.Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the methods that can be asked, the default first."""
        return tuple(dict.fromkeys([self.default, *(method.name for method in self._methods)]))

    def name_of(self, method: str | None) -> str:
        """Return the name of a method, or of several joined by "+"; of the default where none is named.

        Raises:
            InvalidArgumentError: If there is no such method, or it is not offered.
        """
        return registry.joined_names(self._offered(registry.find_methods(method or self.default)))

    def get(self, method: str | None = None, *, with_llm: bool = True) -> BaseKGRetriever:
        """Return the retriever of a method, or the union of several joined by "+".

        Args:
            method: The method; the default one by default.
            with_llm: Whether it has the language model, if there is one.

        Raises:
            InvalidArgumentError: If there is no such method, or it cannot be built from what is given.
        """
        methods = self._offered(registry.find_methods(method or self.default))
        llm = self._llm if with_llm else None
        key = (registry.joined_names(methods), llm is not None)
        with self._lock:
            if key not in self._built:
                self._built[key] = self._build(methods, llm)
            return self._built[key]

    def _build(self, methods: Sequence[Method], llm: BaseChatModel | None) -> BaseKGRetriever:
        return build_retriever(
            methods,
            self._index,
            llm=llm,
            examples={method.name: self._examples_for(method) for method in methods},
            models=self._models,
            executor=self._executor,
            preset=self._preset,
        )

    def _examples_for(self, method: Method) -> Sequence[Question] | None:
        """Return the labelled questions, if a method can use some of them."""
        usable = any(getattr(one, label) for one in self._examples or () for label in method.labels)
        return self._examples if usable else None

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
        given = {"model": method.name in self._models, "llm": self._llm is not None, "examples": bool(self._examples)}
        has_package = method.extra is None or find_spec(method.extra) is not None
        return has_package and (not method.needs or any(given[source] for source in method.needs))
