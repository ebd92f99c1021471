"""List the methods by name.

This is the one table that the shell, Studio, the benchmarks, the docs and the tests read. Add a method here in one
entry. Then `make generate` writes the stub of the front door and the tables of the docs.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kg_retrievers.errors import InvalidArgumentError, did_you_mean

if TYPE_CHECKING:
    from kg_retrievers.core.retriever import BaseKGRetriever
    from kg_retrievers.index import GraphIndex

#: The labels that a method can learn from.
Label = Literal["pattern", "answers"]

#: The sources that a method may be built from.
Source = Literal["llm", "examples", "model"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A named part of this package that may be trained.

    Its parts are given by name, so that the table loads none of them.

    Attributes:
        name: The paper's name of it, in small letters.
        finds: Its evidence, or the source of its answers, in a few words.
        paper: Its authors and publication.
        aliases: Other names, for the shell and for models saved under them.
        model: The class of its trained model, as "module:class". None if nothing is trained.
        trainer: The function that trains it, as "module:function".
        extra: The optional packages that it needs to retrieve or answer.
    """

    name: str
    finds: str
    paper: str
    aliases: tuple[str, ...] = ()
    model: str | None = None
    trainer: str | None = None
    extra: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The name and its aliases."""
        return (self.name, *self.aliases)

    def load_model(self) -> Any:
        """Import the class of its trained model.

        Raises:
            InvalidArgumentError: If it is not trained.
            MissingExtraError: If an optional package is needed and not installed.
        """
        return _load(self._trained(self.model))

    def load_trainer(self) -> Any:
        """Import the function that trains it.

        Raises:
            InvalidArgumentError: If it is not trained.
            MissingExtraError: If torch is not installed.
        """
        return _load(self._trained(self.trainer))

    def _trained(self, part: str | None) -> str:
        if part is None:
            raise InvalidArgumentError(f"{self.name} has no trained model: nothing in it is trained.")
        return part


@dataclass(frozen=True, kw_only=True)
class Method(Entry):
    """A method of retrieval.

    Attributes:
        retriever: The retriever, as "module:class".
        labels: The labels of which its examples must have one. Empty if it takes no examples.
        needs: The sources of which it needs one. Empty if it needs none.
        runs_queries: Whether it runs queries in a graph database, its field `executor`.
        takes_any_model: Whether the trained model of any method may join in.
    """

    retriever: str
    labels: tuple[Label, ...] = ()
    needs: tuple[Source, ...] = ()
    runs_queries: bool = False
    takes_any_model: bool = False

    @property
    def class_name(self) -> str:
        """The name of the retriever's class."""
        return self.retriever.partition(":")[2]

    def load_retriever(self) -> type[BaseKGRetriever]:
        """Import the retriever."""
        kind: type[BaseKGRetriever] = _load(self.retriever)
        return kind


@dataclass(frozen=True, kw_only=True)
class TrainedAnswerer(Entry):
    """An answerer that is trained on the evidence of any retriever and retrieves nothing itself.

    Attributes:
        default_method: The name of the method that retrieves for it by default.
    """

    default_method: str


METHODS: tuple[Method, ...] = (
    Method(
        name="kg",
        retriever="kg_retrievers.methods.kg.retriever:KGRetriever",
        finds="the answer, if the question is understood, and the best evidence for a budget of tokens",
        paper="of this package, not on arXiv",
        labels=("pattern", "answers"),
        takes_any_model=True,
    ),
    Method(
        name="simgrag",
        retriever="kg_retrievers.methods.simgrag.retriever:SimGRAGRetriever",
        finds="the subgraphs most similar to a pattern of the question",
        paper="Cai et al., Findings of ACL 2025, arXiv:2412.15272",
        labels=("pattern",),
    ),
    Method(
        name="g-retriever",
        retriever="kg_retrievers.methods.g_retriever.retriever:PCSTRetriever",
        finds="the connected subgraph that collects the most prizes",
        paper="He et al., NeurIPS 2024, arXiv:2402.07630",
        aliases=("pcst",),
    ),
    Method(
        name="gnn-rag",
        retriever="kg_retrievers.methods.gnn_rag.retriever:GNNRAGRetriever",
        finds="the shortest paths to the answers that a graph network proposes",
        paper="Mavromatis and Karypis, arXiv:2405.20139",
        model="kg_retrievers.methods.gnn_rag.model:GraphReasoner",
        trainer="kg_retrievers.methods.gnn_rag.training:train_graph_reasoner",
        needs=("model",),
    ),
    Method(
        name="subgraph-rag",
        retriever="kg_retrievers.methods.subgraph_rag.retriever:SubgraphRAGRetriever",
        finds="the triples that a small network scores highest",
        paper="Li, Miao and Li, ICLR 2025, arXiv:2410.20724",
        model="kg_retrievers.methods.subgraph_rag.model:TripleScorer",
        trainer="kg_retrievers.methods.subgraph_rag.training:train_triple_scorer",
        needs=("model",),
    ),
    Method(
        name="sg-rag",
        retriever="kg_retrievers.methods.sg_rag.retriever:CypherRetriever",
        finds="the subgraphs that a Cypher query returns",
        paper="Saleh, Tür and Saygın, ICNLSP 2024",
        aliases=("cypher",),
        labels=("answers", "pattern"),
        runs_queries=True,
        extra="ladybug",
    ),
    Method(
        name="rog",
        retriever="kg_retrievers.methods.rog.retriever:RelationPathRetriever",
        finds="what the relation paths proposed for the question lead to",
        paper="Luo et al., ICLR 2024, arXiv:2310.01061",
        aliases=("relation-paths",),
        labels=("answers",),
    ),
    Method(
        name="kaping",
        retriever="kg_retrievers.methods.kaping.retriever:TripleSimilarityRetriever",
        finds="the triples whose texts are nearest to the question",
        paper="Baek, Aji and Saffari, NLRSE 2023, arXiv:2306.04136",
        aliases=("triple-similarity",),
    ),
    Method(
        name="neighborhood",
        retriever="kg_retrievers.methods.neighborhood.retriever:NeighborhoodRetriever",
        finds="the facts within k hops of the question's entities: the baseline",
        paper="as in He et al., WSDM 2021, arXiv:2101.03737",
    ),
)

#: The entry of the graph prompt, which is trained on evidence and answers from it.
GRAPH_PROMPT = TrainedAnswerer(
    name="graph-prompt",
    default_method="g-retriever",
    finds="answers, by a language model that reads the evidence as text and as a soft prompt",
    paper="He et al., NeurIPS 2024, arXiv:2402.07630",
    model="kg_retrievers.methods.g_retriever.graph_prompt.model:GraphPromptModel",
    trainer="kg_retrievers.methods.g_retriever.graph_prompt.training:train_graph_prompt",
    extra="graph-prompt",
)


def entries() -> tuple[Entry, ...]:
    """Return all entries of the table: the methods, and the trained answerer."""
    return (*METHODS, GRAPH_PROMPT)


def method_names() -> list[str]:
    """Return the names of all methods, in alphabetical order."""
    return sorted(method.name for method in METHODS)


def trainable() -> tuple[Entry, ...]:
    """Return the entries that can be trained."""
    return (*(method for method in METHODS if method.trainer), GRAPH_PROMPT)


def find_method(name: str) -> Method:
    """Return the method with a name or an alias, in capital or small letters.

    Raises:
        InvalidArgumentError: If there is none. The message suggests the nearest name.

    Example:
        >>> find_method("pcst").name
        'g-retriever'
    """
    known = {one: method for method in METHODS for one in method.names}
    wanted = name.casefold()
    if wanted in known:
        return known[wanted]
    by_class = {method.class_name.casefold(): method.name for method in METHODS}
    near = did_you_mean(by_class.get(wanted, wanted), known) or f"the methods are {', '.join(method_names())}."
    if "+" in name:
        near = "kg ranks the facts of several methods together."
    if "," in name:
        near = "name one. `compare` takes --method several times."
    raise InvalidArgumentError(f"there is no method {name!r}; {near}")


#: The method that answers if none is named.
DEFAULT = find_method("kg")


def trained_retriever(index: GraphIndex, model: Any) -> BaseKGRetriever:
    """Return the retriever of a trained model.

    Args:
        index: The indexed graph.
        model: The model, or its folder.

    Raises:
        InvalidArgumentError: If it is the model of no method.
        ModelLoadError: If the folder holds no model, or a damaged one.
        ModelMismatchError: If it was trained with other embeddings.
    """
    from kg_retrievers.core.checkpoint import read_header  # loads numpy

    trained = [method for method in METHODS if method.trainer]
    name = read_header(model).method if isinstance(model, str | Path) else None
    for method in trained:
        if name in method.names if name else isinstance(model, method.load_model()):
            return method.load_retriever()(index, model=model)
    wanted = " or ".join(method.name for method in trained)
    raise InvalidArgumentError(
        f"trained_retriever: wanted a trained model of {wanted}, or its folder, but got {name or model!r:.100}."
    )


def _load(dotted: str) -> Any:
    module, _, name = dotted.partition(":")
    return getattr(import_module(module), name)
