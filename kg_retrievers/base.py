"""BaseKGRetriever: a short sequence of named stages over one checkpoint-safe state."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from hashlib import blake2b
from typing import Annotated, Any, ClassVar, Literal, Self, get_type_hints

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun, Callbacks
from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError
from typing_extensions import TypedDict

from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, KGRetrieversError
from kg_retrievers.graph import Evidence, KnowledgeGraph, Triple, verbalize
from kg_retrievers.index import EntityLinker, GraphIndex
from kg_retrievers.prompts import check_placeholders
from kg_retrievers.questions import Question
from kg_retrievers.steps import Call, Event, Steps, adrive, drive

#: The name of the custom event that is sent after each stage.
STAGE_EVENT = "kg_retrievers.stage"

#: The most Documents that can be asked for.
MAX_K = 1_000_000


#: What a question looks like before it is understood: how many entities of the graph it names, or whether it asks for
#: a description ("open").
QuestionShape = Literal["no entity", "one entity", "several entities", "open"]


def _checked_answer_prompt(prompt: object) -> BasePromptTemplate[Any]:
    if not isinstance(prompt, BasePromptTemplate):
        raise InvalidArgumentError(f"the prompt for answering must be a prompt template, but got {prompt!r}.")
    check_placeholders(prompt, ["question", "evidence"], "the prompt for answering")
    return prompt


#: The type of a field that holds a prompt for answering. Pydantic alone refuses every template where the annotation is
#: a parametrised `BasePromptTemplate[...]`.
AnswerPrompt = Annotated[BasePromptTemplate[Any], PlainValidator(_checked_answer_prompt)]


class RetrievalState(TypedDict, total=False):
    """What the stages of every retriever share; each method extends it with keys of its own.

    All values are small and JSON-safe, or Documents, so that a workflow can checkpoint them.
    """

    question: str
    k: int
    seed_entities: list[str]
    #: Those of all evidence with the top score: see `top_answers`.
    answers: list[str]
    documents: list[Document]


def top_answers(evidence: Sequence[Evidence]) -> list[str]:
    """Return the answers that all evidence with the top score proposes, best first, each once.

    Args:
        evidence: By falling score.
    """
    return list(dict.fromkeys(key for item in evidence if item.score == evidence[0].score for key in item.answers))


def documents_answers(documents: Sequence[Document]) -> list[str]:
    """Return what `top_answers` does, of Documents of a retriever."""
    top = [found.metadata for found in documents if found.metadata["score"] == documents[0].metadata["score"]]
    return list(dict.fromkeys(key for metadata in top for key in metadata["answers"]))


@dataclass(frozen=True)
class Stage:
    """One step of a retriever.

    Attributes:
        name: Unique in its retriever; the name of the node in a workflow.
        run: From the state to the keys it writes.
        writes: These keys. The stage is skipped where the caller supplied all of them.
        calls_model: Whether a language model is called, so that a retry may help.
    """

    name: str
    run: Runnable[Any, dict[str, Any]]
    writes: tuple[str, ...]
    calls_model: bool = False

    def check(self, update: Mapping[str, Any], who: str) -> None:
        """Check that what was written is what is declared.

        Raises:
            InvalidArgumentError: If not.
        """
        if set(update) != set(self.writes):
            raise InvalidArgumentError(
                f"{who}: the stage {self.name!r} wrote {sorted(update)}, but declares {sorted(self.writes)}."
            )


class _Query(BaseModel):
    query: str = Field(description="The question, in full sentences.")


class BaseKGRetriever(BaseRetriever):
    """A LangChain retriever that returns evidence from a knowledge graph.

    `invoke(question, k=..., seed_entities=..., ...)` takes any key of the method's state by name. Sync and async run
    the same body and give the same list.

    Raises:
        InvalidArgumentError: If the question is empty, or a field or an argument is misspelt or out of range.
        EntityLinkingError: If no entity of the graph is found in the question and `no_entity` is "raise".
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", validate_assignment=True)

    #: The state of the method's stages: `RetrievalState`, or a TypedDict that extends it.
    state_class: ClassVar[type] = RetrievalState
    #: The questions that the method suits; a router asks it first for these.
    suits: ClassVar[frozenset[QuestionShape]] = frozenset({"one entity"})
    #: Whether its evidence proposes answers; if not, what compares answers is null in an evaluation.
    proposes_answers: ClassVar[bool] = True

    #: The graph and what finds things in it.
    index: GraphIndex
    #: The number of Documents to return; fewer only where the graph holds no more.
    k: int = Field(default=1, ge=1, le=MAX_K)
    #: What one Document holds.
    granularity: Literal["subgraph", "path", "triple"] = "subgraph"
    #: How the facts of a Document are written: see `verbalize`, whose "numbered" would begin with 1 in each Document.
    style: Literal["triples", "grouped", "tables", "paths"] = "grouped"
    #: What to do where no entity is found in a question.
    no_entity: Literal["raise", "empty"] = "raise"

    def __init__(self, **fields: Any) -> None:
        """Take the fields by name."""
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise self._refusal(error) from None

    def __setattr__(self, name: str, value: Any) -> None:
        """Change a field; its new value is checked."""
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            raise self._refusal(error) from None

    @classmethod
    def _refusal(cls, error: ValidationError) -> InvalidArgumentError:
        reasons = []
        for problem in error.errors():
            name = ".".join(map(str, problem["loc"])) or "fields"
            if problem["type"] in ("extra_forbidden", "no_such_attribute"):
                close = get_close_matches(name, cls.model_fields, 1)
                hint = f"did you mean {close[0]!r}?" if close else f"the fields are {sorted(cls.model_fields)}."
                reasons.append(f"there is no field {name!r}; {hint}")
            else:
                wanted = problem["msg"].removeprefix("Value error, ")
                reasons.append(f"{name}: {wanted}, but got {problem['input']!r:.200}.")
        return InvalidArgumentError(f"{cls.__name__}: " + " ".join(reasons))

    @classmethod
    @abstractmethod
    def from_index(
        cls,
        index: GraphIndex,
        *,
        llm: BaseLanguageModel[Any] | None = None,
        examples: Sequence[Question] | None = None,
        model: Any = None,
        **fields: Any,
    ) -> Self:
        """Build the retriever from what a user has; the same arguments for every method.

        Args:
            index: The indexed graph.
            llm: A language model, for methods that can use one.
            examples: Labelled questions, for methods that can use them.
            model: A trained model, for methods that need one.
            **fields: Fields of the retriever.
        """

    @property
    @abstractmethod
    def stages(self) -> tuple[Stage, ...]:
        """The stages, in the order the data takes."""

    @property
    @abstractmethod
    def prompts(self) -> dict[str, BasePromptTemplate[Any]]:
        """The prompts the retriever would use, by name."""

    @property
    @abstractmethod
    def answer_prompt(self) -> BasePromptTemplate[Any]:
        """The method's prompt for answering, with the placeholders `question` and `evidence`."""

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
        """Return a tool for agents. Its message holds the evidence as text, its artifact the Documents.

        Where nothing is found, or the question is refused, the message says so, so that a model can ask another way.
        `args_schema` and `arg_types` are there for LangChain's signature only: the tool takes one text, `query`.
        """
        if args_schema is not None or arg_types is not None:
            raise InvalidArgumentError("as_tool: args_schema and arg_types are fixed; the tool takes a text, `query`.")

        def found(documents: list[Document]) -> tuple[str, list[Document]]:
            texts = [document.page_content for document in documents]
            return "\n\n".join(texts) or "The knowledge graph holds nothing on this question.", documents

        def search(query: str, callbacks: Callbacks = None) -> tuple[str, list[Document]]:
            try:
                return found(self.invoke(query, {"callbacks": callbacks}))
            except KGRetrieversError as error:
                return str(error), []

        async def asearch(query: str, callbacks: Callbacks = None) -> tuple[str, list[Document]]:
            try:
                return found(await self.ainvoke(query, {"callbacks": callbacks}))
            except KGRetrieversError as error:
                return str(error), []

        return StructuredTool.from_function(
            search,
            asearch,
            name or "search_knowledge_graph",
            description or "Search a knowledge graph for facts that answer a question.",
            args_schema=_Query,
            response_format="content_and_artifact",
        )

    def initial_state(self, question: str, **inputs: Any) -> dict[str, Any]:
        """Return the state before the first stage, checked.

        Raises:
            InvalidArgumentError: If the question is empty, or an input is not of the state or out of range.
            EntityLinkingError: If a seed entity is not in the graph.
        """
        who = type(self).__name__
        if not isinstance(question, str):
            raise InvalidArgumentError(f"{who}: the question must be a text, but got {question!r:.100}.")
        if not question.strip():
            raise InvalidArgumentError(f"{who}: the question is empty. Ask something about the graph.")
        checked = {name: value for name, value in self.check_inputs(inputs).items() if value is not None}
        if not checked.get("seed_entities"):  # none given: a stage that links is not to be skipped
            checked.pop("seed_entities", None)
        return {"question": question, "k": self.k, **checked}

    def check_inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a caller supplies for the state, or a person edits in it, checked and as stages write it.

        Raises:
            InvalidArgumentError: If a key is not of the state, or a value is out of range.
            EntityLinkingError: If a seed entity is not in the graph.
        """
        who, checked = type(self).__name__, dict(inputs)
        allowed = sorted(set(get_type_hints(self.state_class)) - {"question"})
        if strange := sorted(set(inputs) - set(allowed)):
            raise InvalidArgumentError(f"{who}: unknown arguments {strange}; invoke takes {allowed}.")
        if "k" in inputs:
            k = inputs["k"]
            if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MAX_K:
                raise InvalidArgumentError(f"{who}: k must be a whole number in 1 ... {MAX_K}, but got {k!r}.")
        if (seeds := inputs.get("seed_entities")) is not None:
            if isinstance(seeds, str) or not isinstance(seeds, Sequence) or not all(isinstance(s, str) for s in seeds):
                raise InvalidArgumentError(f"{who}: seed_entities must be a list of keys, but got {seeds!r}.")
            checked["seed_entities"] = EntityLinker(self.index).resolve(seeds)
        return checked

    def documents_from(self, evidence: Sequence[Evidence], k: int) -> list[Document]:
        """Return the first k Documents of the evidence, best first, in the granularity of this retriever."""
        if self.granularity == "triple":
            seen: dict[Triple, Evidence] = {}
            for item in evidence:
                details = {name: value for name, value in item.details.items() if name != "paths"}
                for triple in item.triples:
                    seen.setdefault(triple, replace(item, triples=(triple,), details=details))
            evidence = list(seen.values())
        return [self._document(item, rank) for rank, item in enumerate(evidence[:k], 1)]

    def _document(self, evidence: Evidence, rank: int) -> Document:
        keys = [key for head, _, tail in evidence.triples for key in (head, tail)]
        metadata = {
            "triples": [list(triple) for triple in evidence.triples],
            "labels": {key: self.graph.label(key) for key in dict.fromkeys((*keys, *evidence.answers))},
            "score": float(evidence.score),
            "rank": rank,
            "retriever": type(self).__name__,
            "answers": list(evidence.answers),
            "truncated": evidence.truncated,
            "style": self.style,
            "details": dict(evidence.details),
        }
        paths = evidence.details.get("paths")
        content = verbalize(evidence.triples, style=self.style, label=self.graph.label, paths=paths).text
        identity = json.dumps([metadata[name] for name in ("retriever", "triples", "answers", "details")])
        return Document(content, id=blake2b(identity.encode(), digest_size=16).hexdigest(), metadata=metadata)

    def _steps(self, question: str, inputs: Mapping[str, Any]) -> Steps[list[Document]]:
        state = self.initial_state(question, **inputs)
        for stage in self.stages:
            if all(name in state for name in stage.writes):
                continue
            try:
                update = yield Call(stage.run, dict(state))
            except EntityLinkingError:
                if self.no_entity == "raise":
                    raise
                return []
            stage.check(update, type(self).__name__)
            state |= update
            shown = {name: value for name, value in update.items() if name != "documents"}
            yield Event(STAGE_EVENT, {"retriever": type(self).__name__, "stage": stage.name, **shown})
        documents: list[Document] = state["documents"]
        return documents

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **inputs: Any
    ) -> list[Document]:
        return drive(self._steps(query, inputs), {"callbacks": run_manager.get_child()})

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **inputs: Any
    ) -> list[Document]:
        return await adrive(self._steps(query, inputs), {"callbacks": run_manager.get_child()})


def flat_metadata(document: Document) -> Document:
    """Return a copy whose metadata holds only texts, numbers and truth values, as Chroma and its like accept.

    Lists and dictionaries become JSON texts.
    """
    flat = {
        name: json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
        for name, value in document.metadata.items()
    }
    return Document(document.page_content, id=document.id, metadata=flat)
