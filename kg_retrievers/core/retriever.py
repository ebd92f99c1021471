"""BaseKGRetriever: a short sequence of named stages over one checkpoint-safe state."""

from __future__ import annotations

import logging
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import InitVar, replace
from difflib import get_close_matches
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, ParamSpec, Self, TypeVar, get_args

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun, Callbacks
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableSequence
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator
from pydantic_core import ErrorDetails

from kg_retrievers.core.documents import (
    DocumentStyle,
    documents_of,
    linked_entities,
    note_ambiguous_names,
    note_readings,
    tell_ambiguous_names,
    top_answers,
    why_unsure,
)
from kg_retrievers.core.facts_prompt import ANSWER_PROMPT, TOOL_MESSAGE
from kg_retrievers.core.prompts import AnswerPrompt, prompt_problem
from kg_retrievers.core.replies import drop_model_advice, marked_answers
from kg_retrievers.core.stages import (
    MAX_K,
    MIN_CONFIDENCE,
    REFUSAL_EVENT,
    REFUSALS_LOGGER,
    STAGE_EVENT,
    Body,
    Call,
    Event,
    QuestionShape,
    RetrievalState,
    Stage,
    check_types,
    run_async,
    run_sync,
    shown_confidence,
)
from kg_retrievers.datasets import Question, check_question
from kg_retrievers.errors import (
    EntityLinkingError,
    GuidedClass,
    InvalidArgumentError,
    KGRetrieversError,
    LowConfidenceError,
    NoEvidenceError,
    RefusalError,
    SearchBudgetError,
    check_known,
    did_you_mean,
    named_arguments,
)
from kg_retrievers.graph import Evidence, KnowledgeGraph, pattern_lines, readable
from kg_retrievers.graph.cache import Cache
from kg_retrievers.graph.readers.files import GraphPaths
from kg_retrievers.graph.storage.parts import is_saved
from kg_retrievers.graph.validation import reasons
from kg_retrievers.graph.verbalize import as_data_lines, one_line
from kg_retrievers.index import EntityLinker, GraphIndex, PartRequest, check_index, link_question, linker_of
from kg_retrievers.index.embeddings import folded
from kg_retrievers.index.hints import RAISE_FACTS, REPHRASE, hints_for, unknown_names
from kg_retrievers.index.names import FUNCTION_WORDS, words_of
from kg_retrievers.index.question_keys import with_keys

#: Warns of refused questions, with their texts. Silent from level ERROR on.
_REFUSALS = logging.getLogger(REFUSALS_LOGGER)

#: What happens to a refused question. See `BaseKGRetriever.on_refusal`.
OnRefusal = Literal["empty", "raise"]

#: The name of a preset: the settings of the method's paper.
Preset = Literal["paper"]

#: How many hops around the entities of a question a part of a connected graph goes.
PART_HOPS = 3

#: How many words and relations a refusal names.
NAMED = 3

#: How many letters of words are compared, so that "bells" is known if "bell" is.
STEM = 4

#: A language model that a method may use.
LanguageModel = BaseLanguageModel[Any] | None

#: Labelled questions that a method may learn from.
Examples = Sequence[Question] | None

#: The default of a field that `fields_made_from` makes unless it is given.
MADE: Any = None

Arguments = ParamSpec("Arguments")
Retriever = TypeVar("Retriever", bound="BaseKGRetriever")


#: The name of a retriever as a tool.
TOOL_NAME = "search_knowledge_graph"


class _ToolInput(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    query: str = Field(description="The question, in full sentences.")


if TYPE_CHECKING:  # a type checker knows the fields of a model by its metaclass
    _Guided = BaseRetriever
else:

    class _GuidedModel(GuidedClass, type(BaseRetriever)):
        pass

    class _Guided(BaseRetriever, metaclass=_GuidedModel):
        pass


class BaseKGRetriever(_Guided):
    """A LangChain retriever that returns evidence from a knowledge graph.

    `invoke(question, k=..., seed_entities=..., ...)` takes any key of the method's state by name, and `on_refusal`.
    Sync and async run the same body and give the same list. A retriever can be copied and pickled. A copy makes its own
    caches.

    Raises:
        InvalidArgumentError: If the question is empty or has more than 10,000 characters, or a field or an argument is
            misspelt or out of range.
        RefusalError: If the question is refused and `on_refusal` is "raise". It is an `EntityLinkingError` if the
            question names no entity of the graph, a `LowConfidenceError` if it is not understood surely enough, and a
            `NoEvidenceError` if nothing fits.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", validate_assignment=True)

    guide: ClassVar[str] = (
        "Make one with from_file(path), also of a saved folder, or from_index(GraphIndex.build(graph)), and ask with "
        "invoke(question), or batch([question, ...])."
    )
    #: The state of the method's stages: `RetrievalState`, or a TypedDict that extends it.
    state_class: ClassVar[type] = RetrievalState
    #: The questions that the method suits. A router asks it first for these.
    suits: ClassVar[frozenset[QuestionShape]] = frozenset({"one entity"})
    #: Whether the evidence proposes answers. If not, an evaluation reports None for every metric that compares answers.
    proposes_answers: ClassVar[bool] = True
    #: Whether the method carries out patterns with an operation, such as for "how many". A router asks these methods
    #: first if a question needs an operation.
    operations: ClassVar[bool] = False

    #: The prompts for answering that `answer_prompt` takes by name.
    answer_prompts: ClassVar[Mapping[str, BasePromptTemplate[Any]]] = {}

    #: The fields that a preset sets, by its name. A field that the user sets wins.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    #: The keys of the state that hold keys of entities, in addition to the seed entities.
    entity_inputs: ClassVar[frozenset[str]] = frozenset()

    #: The graph and its search structures.
    index: GraphIndex = Field(kw_only=False)
    #: The number of Documents to return. The result has fewer only if the graph holds no more.
    k: int = Field(default=1, ge=1, le=MAX_K)
    #: The contents of one Document.
    granularity: Literal["subgraph", "path", "triple"] = "subgraph"
    #: How the facts of a Document are written: see `verbalize`, whose "numbered" would begin with 1 in each Document.
    style: DocumentStyle = "grouped"
    #: The reaction to a refused question. A question is refused if no entity is found in it, if it is not understood
    #: surely enough (`min_confidence`), or if nothing in the graph fits. "empty": return no Documents, log the reason
    #: as a warning and send it as the event `kg_retrievers.refused`. Chains, tools and workflows answer with the
    #: reason. "raise": raise it as a `RefusalError`.
    on_refusal: OnRefusal = "empty"
    #: The least likelihood that the answers are right. A question below it is refused, and 0 refuses none.
    #: `KGRetriever` proposes no answer then. It has no effect if the method, or the model behind it, states no
    #: confidence: `metadata["confidence"]` is None.
    min_confidence: float = Field(default=MIN_CONFIDENCE, ge=0, le=1, strict=True)
    #: The prompt for answering, with the placeholders `question` and `evidence`.
    answer_prompt: AnswerPrompt = ANSWER_PROMPT
    #: Reads the answers from a model's reply to `answer_prompt`. It finds none if the model abstains.
    parse_answers: Callable[[str], list[str]] = marked_answers

    _cache: Cache = PrivateAttr(default_factory=Cache)

    if TYPE_CHECKING:  # arguments of `from_index` that are no fields; a type checker adds the fields of the class
        llm: InitVar[LanguageModel] = None
        examples: InitVar[Examples] = None
        model: InitVar[Any] = None
        preset: InitVar[Preset | None] = None

    else:

        def __init__(self, index=None, *, llm=None, examples=None, model=None, preset=None, **fields) -> None:
            """Take what `from_index` takes."""
            who = type(self).__name__
            check_index(who, index)
            given = self._with_preset(preset, fields)
            if isinstance(examples, Sequence) and all(isinstance(one, Question) for one in examples):
                matched = with_keys(index, examples)
                examples = matched.questions
                if matched.told:  # once, from this line, though a retriever is built from another one
                    warnings.warn(f"examples: {matched.told}", stacklevel=1)
            given |= self.fields_made_from(index, llm, examples, model, given)
            try:
                super().__init__(index=index, **given)
            except ValidationError as error:
                raise self._wrong_fields(error) from None

        def __getattr__(self, name):
            """Say how to ask, for a name of another library such as `query`."""
            try:
                return super().__getattr__(name)
            except AttributeError as error:
                raise AttributeError(f"{error}. {self.guide}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        """Change a field and check its new value."""
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            raise self._wrong_fields(error) from None

    @classmethod
    def _wrong_fields(cls, error: ValidationError) -> InvalidArgumentError:
        for problem in error.errors():
            name = ".".join(map(str, problem["loc"]))
            if problem["type"] in ("extra_forbidden", "no_such_attribute"):
                known = [*cls.model_fields, "llm", "examples", "model", "preset"]
                of_index = "GraphIndex.build takes it." if name in signature(GraphIndex.build).parameters else ""
                hint = of_index or did_you_mean(name, known) or f"the fields are {sorted(cls.model_fields)}."
                return InvalidArgumentError(f"{cls.__name__}: there is no field {name!r}; {hint}")
            if isinstance(cause := problem.get("ctx", {}).get("error"), InvalidArgumentError):
                if not name:  # all fields together: the message says whose
                    return cause
                return InvalidArgumentError(f"{cls.__name__}: {name}: {cause.message}", **cause.hints)
        return InvalidArgumentError(f"{cls.__name__}: {reasons(error)}{cls._bounds(error.errors())}")

    @classmethod
    def _bounds(cls, problems: Sequence[ErrorDetails]) -> str:
        """Return the least and the greatest value of a field, if this one alone got a value of another type."""
        name, kind = ".".join(map(str, problems[0]["loc"])), problems[0]["type"]
        if len(problems) > 1 or name not in cls.model_fields or not kind.endswith(("_type", "_parsing")):
            return ""
        told = list[str]()
        for limit in cls.model_fields[name].metadata:
            told += [f"at least {limit.ge:,}"] if hasattr(limit, "ge") else []
            told += [f"at most {limit.le:,}"] if hasattr(limit, "le") else []
        return f" It is {' and '.join(told)}." if told else ""

    @field_validator("answer_prompt", mode="plain")
    @classmethod
    def _checked_prompt(cls, prompt: Any) -> Any:
        if isinstance(prompt, str) and (names := cls.answer_prompts):
            if prompt not in names:
                raise ValueError(f"wanted a prompt template of LangChain, or the name of one ({', '.join(names)})")
            return names[prompt]
        if problem := prompt_problem(prompt, ["question", "evidence"]):
            raise ValueError(problem)
        return prompt

    @classmethod
    def from_index(cls: Callable[Arguments, Retriever], *args: Arguments.args, **fields: Arguments.kwargs) -> Retriever:
        """Build the retriever from an index and the user's settings.

        Every method takes the same arguments. A method ignores `llm` and `examples` if it cannot use them.

        Args:
            *args: `index`, the indexed graph.
            **fields: `llm`, a language model. `examples`, labelled questions. `model`, a trained model or its folder.
                `preset="paper"`, the settings of the method's paper. All others are fields of the class.

        Raises:
            InvalidArgumentError: If a model is missing or not wanted, there is no such preset, or a field is wrong.
            ModelLoadError: If the folder holds no such model.
            ModelMismatchError: If the model was trained with other embeddings.
        """
        return cls(*args, **fields)

    @classmethod
    @named_arguments
    def from_file(cls, path: GraphPaths, *, embeddings: Embeddings | None = None, **fields: Any) -> Self:
        """Read a graph, index it with the default embeddings, and build the retriever.

        Args:
            path: A path, or several, as of `KnowledgeGraph.from_file`, or a folder that `GraphIndex.build` saved.
            embeddings: Other embeddings.
            **fields: As of `from_index`, and the arguments of `KnowledgeGraph.from_file`, such as `ontology` or
                `columns`.

        Raises:
            GraphLoadError: If the file cannot be read.
            StaleIndexError: If the folder was saved with other embeddings.
            InvalidArgumentError: As of `from_index`.
        """
        known = signature(KnowledgeGraph.from_file).parameters.keys() - {"path"}
        reading = {name: fields.pop(name) for name in known & fields.keys()}
        if isinstance(path, str | Path) and is_saved(Path(path)):
            if reading:
                raise InvalidArgumentError(
                    f"{cls.__name__}.from_file: {path} holds a graph that was read already, but got {min(reading)}=. "
                    "Leave it out, or give the file that the graph was read from."
                )
            return cls(index=GraphIndex.open(path, embeddings), **fields)
        return cls(index=GraphIndex.build(KnowledgeGraph.from_file(path, **reading), embeddings), **fields)

    @classmethod
    def fields_made_from(
        cls, index: GraphIndex, llm: LanguageModel, examples: Examples, model: Any, fields: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Make fields from the user's arguments.

        A method overrides this.

        Args:
            index: As of `from_index`.
            llm: As of `from_index`.
            examples: As of `from_index`.
            model: As of `from_index`.
            fields: The fields that the user or the preset gives.

        Raises:
            InvalidArgumentError: If a model is given to a method that is not trained.
        """
        if model is not None:
            raise InvalidArgumentError(f"{cls.__name__}: got a trained model, but it is not trained. Leave it out.")
        return {}

    @classmethod
    def _check_made_once(cls, name: str, llm: LanguageModel, examples: Examples) -> None:
        """Refuse `llm` and `examples` together with the field that is made from them."""
        if llm is not None or examples is not None:
            raise InvalidArgumentError(
                f"{cls.__name__}: got {name}= beside llm= or examples=, from which one is made. Leave one out."
            )

    @classmethod
    def _with_preset(cls, preset: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a preset, overridden by the given fields."""
        if preset is None:
            return dict(fields)
        check_known(cls.__name__, [preset], cls.presets, "preset")
        return {**cls.presets[preset], **fields}

    def with_index(self, index: GraphIndex) -> Self:
        """Return a retriever with the same settings over another graph.

        The new retriever keeps nothing of this graph.

        Parts that are built from the index, such as a generator of patterns, move by their own `with_index`. Their
        knowledge from examples goes along, by the names of relations.

        Args:
            index: The index of the other graph.

        Raises:
            InvalidArgumentError: If a part of the retriever is made for its graph and cannot be moved.
            ModelMismatchError: If the index has other embeddings than those a model was trained with, or examples were
                embedded with.
        """
        check_index(type(self).__name__, index)
        if index is self.index:
            return self
        fields = {name: on_index(getattr(self, name), index) for name in self.model_fields_set - {"index"}}
        return type(self)(index=index, **fields)

    def with_fields(self, fields: Mapping[str, Any]) -> Self:
        """Return a retriever with some fields changed.

        It shares the prepared parts of this one, such as a database.

        Raises:
            InvalidArgumentError: If there is no such field, or a value is wrong.
        """
        kept = {name: getattr(self, name) for name in self.model_fields_set}
        changed = type(self)(**{**kept, **fields})
        changed._cache = self._cache
        return changed

    @property
    @abstractmethod
    def stages(self) -> tuple[Stage, ...]:
        """The stages, in the order the data takes."""

    @property
    def running_stages(self) -> tuple[Stage, ...]:
        """The stages as they run.

        Over a connected graph, each stage runs over the part that the question needs.
        """
        if not self.index.is_connected:
            return self.stages
        return tuple(replace(one, work=partial(self._over_part, at)) for at, one in enumerate(self.stages))

    def _over_part(self, at: int, state: Mapping[str, Any]) -> Runnable[Any, dict[str, Any]]:
        """Return a stage over the part of the graph that the question needs.

        LangChain runs it on the same state.
        """
        return self.over(self.part(state)).stages[at].run

    def over(self, part: GraphIndex) -> Self:
        """Return the retriever over a part of its connected graph."""
        return self if part is self.index else self.with_index(part)

    def part(self, state: Mapping[str, Any]) -> GraphIndex:
        """Fetch the part of a connected graph that the stages need.

        The part holds the facts around the entities of the question.

        It is kept, so that the stages of a question share it.

        Args:
            state: The state of the stages.
        """
        seeds: Sequence[str] = state.get("seed_entities") or ()
        if "seed_entities" not in state:
            with suppress(EntityLinkingError):
                seeds, _ = link_question(linker_of(self.index), state["question"])
        return self.index.part(self.part_request(tuple(sorted(set(seeds)))))

    def part_request(self, entities: tuple[str, ...]) -> PartRequest:
        """Return which part of a connected graph is around the entities of a question."""
        return PartRequest(entities, PART_HOPS)

    @property
    def prompts(self) -> dict[str, BasePromptTemplate[Any]]:
        """The prompts of the retriever and of its answerers, by name."""
        return {"answer": self.answer_prompt}

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph."""
        return self.index.graph

    def as_tool(
        self,
        args_schema: type | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: Mapping[str, type] | None = None,
    ) -> BaseTool:
        """Return a tool for agents. Its message frames the evidence as data, its artifact holds the Documents.

        If nothing is found, or the question is refused, the message says so. A model can then ask another way.
        `args_schema` and `arg_types` are there for LangChain's signature only: the tool takes one text, `query`.
        """
        if args_schema is not None or arg_types is not None:
            raise InvalidArgumentError("as_tool: args_schema and arg_types are fixed; the tool takes a text, `query`.")

        def shown(documents: list[Document]) -> tuple[str, list[Document]]:
            evidence = "\n\n".join(document.page_content for document in documents)
            unsure = as_data_lines(why_unsure(documents))
            parts = [unsure, TOOL_MESSAGE.format(evidence=evidence), tell_ambiguous_names(documents)]
            return "\n\n".join(filter(None, parts)), documents

        def search(query: str, callbacks: Callbacks = None) -> tuple[str, list[Document]]:
            try:
                return shown(self.invoke(query, {"callbacks": callbacks}, on_refusal="raise"))
            except KGRetrieversError as error:
                return as_data_lines(error.on_agent), []

        async def asearch(query: str, callbacks: Callbacks = None) -> tuple[str, list[Document]]:
            try:
                return shown(await self.ainvoke(query, {"callbacks": callbacks}, on_refusal="raise"))
            except KGRetrieversError as error:
                return as_data_lines(error.on_agent), []

        return StructuredTool.from_function(
            search,
            asearch,
            name or TOOL_NAME,
            description or "Search a knowledge graph for facts that answer a question.",
            args_schema=_ToolInput,
            response_format="content_and_artifact",
            handle_validation_error=lambda error: as_data_lines(
                f"{name or TOOL_NAME}: {reasons(error)} Next step: Call it again with the question, as query."
            ),
        )

    def batch(self, inputs: list[str], *args: Any, **kwargs: Any) -> list[list[Document]]:
        """Retrieve for several questions, as LangChain does."""
        return super().batch(self._several(inputs), *args, **kwargs)

    async def abatch(self, inputs: list[str], *args: Any, **kwargs: Any) -> list[list[Document]]:
        """Retrieve for several questions, as LangChain does."""
        return await super().abatch(self._several(inputs), *args, **kwargs)

    def _several(self, inputs: list[str]) -> list[str]:
        if isinstance(inputs, str):
            who = type(self).__name__
            raise InvalidArgumentError(f"{who}: wanted a list of questions, got {inputs!r:.100}. Put it into a list.")
        return inputs

    def initial_state(self, question: str, **inputs: Any) -> dict[str, Any]:
        """Return the state before the first stage, checked.

        Raises:
            InvalidArgumentError: If the question cannot be asked (`check_question`), or an input is not of the state or
                out of range.
            EntityLinkingError: If a seed entity is not in the graph.
        """
        check_question(question, type(self).__name__)
        checked = self.check_named_inputs({name: value for name, value in inputs.items() if value is not None})
        if not checked.get("seed_entities"):  # none given: the stage that links is not skipped
            checked.pop("seed_entities", None)
        return {"question": question, "k": self.k, **checked}

    def inputs_for(self, question: Question) -> dict[str, Any]:
        """Return the inputs of a labelled question for `invoke`, except its text.

        These are its entities, if it names some.
        """
        return {"seed_entities": list(question.seed_entities)} if question.seed_entities else {}

    def check_named_inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Check inputs like `check_inputs`.

        For a connected graph, the check covers the entities that the inputs name and the facts between them.
        """
        if not inputs or not self.index.is_connected:
            return self.check_inputs(inputs)
        keys = {text for name in self.entity_inputs & inputs.keys() for text in texts_in(inputs[name])}
        return self.over(self.index.part(PartRequest(tuple(sorted(keys)), between=True))).check_inputs(inputs)

    def check_inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Check values that a caller or a person supplies for the state.

        The result holds the values as stages write them.

        Raises:
            InvalidArgumentError: If a key is not of the state, or a value is of another type or out of range.
            EntityLinkingError: If a seed entity is not in the graph.
        """
        checked = check_types(self.state_class, inputs, type(self).__name__)
        if "seed_entities" in checked:
            checked["seed_entities"] = linker_of(self.index).resolve(checked["seed_entities"])
        return checked

    def results(self, state: RetrievalState, evidence: Sequence[Evidence]) -> dict[str, Any]:
        """Return the results of the last stage.

        These are the answers of the evidence with the top score, and the Documents.
        """
        documents = self.documents_from(evidence, state["k"], state["question"])
        return {"answers": top_answers(evidence), "documents": documents}

    def documents_from(self, evidence: Sequence[Evidence], k: int, question: str = "") -> list[Document]:
        """Return the first k Documents of the evidence, best first.

        The Documents have the granularity of this retriever.

        Names that several entities of the question bear stand in `details["ambiguous"]`. If the question is given, it
        stands in the metadata, with its words for the entities of the evidence ("linked"). Entities that it calls by
        another name than their label stand in `details["read_as"]`.
        """
        who, single = type(self).__name__, self.granularity == "triple"
        if self.index.truncated:
            if not evidence:
                raise nothing_fetched(who)
            evidence = [replace(one, truncated=True) for one in evidence]
        noted = note_ambiguous_names(evidence, self.index)
        linked = linked_entities(evidence, self.index, question) if question else {}
        noted = note_readings(noted, self.graph, linked)
        return documents_of(
            noted,
            k,
            self.graph,
            retriever=who,
            style=self.style,
            single_triples=single,
            question=question,
            linked=linked,
        )

    def check_confidence(
        self,
        state: RetrievalState,
        confidence: float | None,
        unplaced: Sequence[str] = (),
        nearest: Sequence[str] = (),
        lacking: Sequence[str] = (),
        truncated: bool = False,
        reading: Mapping[str, Any] | None = None,
    ) -> None:
        """Check that the question of a state was understood surely enough.

        Args:
            state: The state.
            confidence: How likely the answers are right, in [0, 1]. None means that nobody can tell, and is enough.
            unplaced: The words of the question that nothing in the graph fits.
            nearest: The relations that came nearest to the question, the nearest first.
            lacking: Clauses on things that an entity of the question lacks and others have. They say it all.
            truncated: Whether there are facts that were not fetched, which may include the answer.
            reading: The likeliest reading, as `Pattern.to_dict` writes it.

        Raises:
            LowConfidenceError: If not. It names the words that no relation fits, and the nearest relations. If the
                confidence is at least half of what is required, it asks whether the reading is meant.
            SearchBudgetError: If not, and the missing fact may be among facts that were not fetched.
        """
        wanted, who = state.get("min_confidence", self.min_confidence), type(self).__name__
        if confidence is None or confidence >= wanted:
            return
        question, shown = state["question"], shown_confidence(confidence)
        near = "; ".join(pattern_lines(reading)) if reading and confidence >= wanted / 2 else ""
        meant = f" Did you mean: {near}?" if near else ""
        if confidence >= MIN_CONFIDENCE:
            raise LowConfidenceError(
                f"{who}: the confidence of the answer to {question!r:.200} is {shown}; {wanted:g} is required.{meant}",
                confidence,
                unplaced,
                nearest,
                hint_python="Lower min_confidence to see it.",
                hint_shell="Lower --min-confidence to see it.",
            )
        if lacking and truncated:
            raise nothing_fetched(who, lacking)
        unnamed, words = question, words_of(question)
        unplaced = [
            word if folded(word) in words else next(iter(get_close_matches(word, words, 1)), word) for word in unplaced
        ]  # as the question spells them
        with suppress(EntityLinkingError):
            _, unnamed = link_question(linker_of(self.index), question)
        why = list(lacking)
        if not (lacking or state.get("seed_entities")) and (names := unknown_names(unnamed, unplaced)):
            why.append(f"the graph has nothing called {_named(names)}")
            of_names = {folded(word) for name in names for word in name.split()}
            unplaced = [word for word in unplaced if word not in of_names]
        unplaced = [word for word in unplaced if folded(word) not in FUNCTION_WORDS]
        schema = (word for name in (*self.graph.relations, *self.graph.types) for word in words_of(readable(name)))
        known = {word[:STEM] for word in schema}
        for is_known, said in ((False, "no relation fits"), (True, "the reading leaves out")):
            if not lacking and (words := [word for word in unplaced if (folded(word)[:STEM] in known) == is_known]):
                why.append(f"{said} {_named(words)}")
        lacked = {word.casefold() for word in unplaced}
        others = [name for name in map(readable, nearest) if name.casefold() not in lacked]
        if others and not lacking:
            why.append(f"the nearest relations are {_named(others)}")
        raise LowConfidenceError(
            f"{who}: not sure what {question!r:.200} asks for (confidence {shown}, wanted {wanted:g})"
            f"{': ' if why else ''}{'; '.join(why)}.{meant}",
            confidence,
            unplaced,
            nearest,
            **hints_for(unnamed, REPHRASE),
        )

    def _body(self, question: str, inputs: dict[str, Any]) -> Body[list[Document]]:
        """Run the stages, and turn a refusal into the result that `on_refusal` asks for."""
        on_refusal = inputs.pop("on_refusal", None) or self.on_refusal
        if on_refusal not in get_args(OnRefusal):
            raise InvalidArgumentError(
                f"{type(self).__name__}: on_refusal must be 'empty' or 'raise', but got {on_refusal!r:.100}."
            )
        begin = partial(self.initial_state, **inputs)
        asks_database = self.index.is_connected and bool({"seed_entities", *self.entity_inputs} & inputs.keys())
        state = (yield Call(begin, question)) if asks_database else self.initial_state(question, **inputs)
        try:
            documents = yield from self._run_stages(state)
        except RefusalError as refusal:
            if on_refusal == "raise":
                raise
            _REFUSALS.warning("%s", one_line(str(refusal)))
            who, kind = type(self).__name__, type(refusal).__name__
            told = {"retriever": who, "question": question, "reason": str(refusal), "kind": kind}
            yield Event(REFUSAL_EVENT, told)
            return []
        return documents

    def _run_stages(self, state: dict[str, Any]) -> Body[list[Document]]:
        who = type(self).__name__
        for stage in self.running_stages:
            if all(name in state for name in stage.writes):
                continue
            try:
                update = yield Call(stage.work, dict(state), stage.shown_as(who))
            except RefusalError as refusal:
                drop_model_advice(refusal, self)
                raise
            update = stage.checked(update, who)
            state |= update
            shown = {name: value for name, value in update.items() if name != "documents"}
            yield Event(STAGE_EVENT, {"retriever": who, "stage": stage.name, **shown})
        documents: list[Document] = state["documents"]
        if not documents:
            raise NoEvidenceError(f"{who}: {nothing_fits(state['question'], state.get('pattern'))}")
        return documents

    def _get_relevant_documents(  # type: ignore[override]  # so that `query` may be an argument
        self, query: str, /, *, run_manager: CallbackManagerForRetrieverRun, **inputs: Any
    ) -> list[Document]:
        return run_sync(self._body(query, inputs), {"callbacks": run_manager.get_child()})

    async def _aget_relevant_documents(  # type: ignore[override]
        self, query: str, /, *, run_manager: AsyncCallbackManagerForRetrieverRun, **inputs: Any
    ) -> list[Document]:
        return await run_async(self._body(query, inputs), {"callbacks": run_manager.get_child()})


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts in nested lists and mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(item)


def _named(words: Sequence[str]) -> str:
    return ", ".join(map(repr, words[:NAMED]))


def check_retriever(retriever: object, who: str, name: str = "retriever", call: str = "") -> None:
    """Check that a function was given a retriever.

    Args:
        retriever: The value that was given.
        who: The function.
        name: The name of its argument.
        call: The right call, for a function that takes more.

    Raises:
        InvalidArgumentError: If it is something else.
    """
    if not isinstance(retriever, BaseKGRetriever):
        make = "Make one: KGRetriever.from_file(path), or KGRetriever.from_index(GraphIndex.build(graph))."
        raise InvalidArgumentError(
            f"{who}: {name} must be a BaseKGRetriever, but got {retriever!r:.100}.",
            hint_python=f"Call {call}." if call else make,
        )


def nothing_fits(question: str, reading: Mapping[str, Any] | None) -> str:
    """Return the reason why a question has no answer, with the reading that nothing fits."""
    read = f", read as: {'; '.join(pattern_lines(reading))}" if reading else ""
    return f"nothing in the graph fits the question {question!r:.200}{read}."


def nothing_fetched(
    who: str, why: Sequence[str] = ("nothing fits among the facts that were fetched",)
) -> SearchBudgetError:
    """Return the error for a connected graph with more facts if nothing fetched fits."""
    return SearchBudgetError(
        f"{who}: {'; '.join(why)}; there are more facts around the entities of the question.", **RAISE_FACTS
    )


def on_index(part: Any, index: GraphIndex) -> Any:
    """Return a part of a retriever as it is over another graph.

    If a part has `with_index`, that method moves it. The same holds for each item of a list or a sequence of Runnables.
    Any other part knows no graph, and is returned as it is.

    Args:
        part: The value of a field, or a part of a part.
        index: The index of the other graph.

    Raises:
        InvalidArgumentError: If the part holds an index and cannot be moved.

    Example:
        >>> from kg_retrievers import KnowledgeGraph, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "starring", "Amy Adams")])
        >>> index = GraphIndex.build(graph, default_embeddings())
        >>> on_index(5, index)
        5
    """
    if isinstance(part, list | tuple):
        return type(part)(on_index(item, index) for item in part)
    if isinstance(part, RunnableSequence):
        return RunnableSequence(*(on_index(step, index) for step in part.steps))
    if hasattr(part, "with_index"):
        return part.with_index(index)
    if isinstance(part, Runnable) and any(isinstance(one, GraphIndex | EntityLinker) for one in vars(part).values()):
        kind = type(part).__name__
        raise InvalidArgumentError(
            f"{kind} is made for one graph, and has no method with_index(index) that makes it for another. "
            "Give it one, or build the retriever on the other graph without it."
        )
    return part
