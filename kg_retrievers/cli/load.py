"""From options to objects."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kg_retrievers
from kg_retrievers.cli.database import QueryDatabase, check_database_options, is_database, open_database
from kg_retrievers.cli.show import remark, working
from kg_retrievers.errors import GraphLoadError, InvalidArgumentError, ModelLoadError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from kg_retrievers.core.retriever import BaseKGRetriever
    from kg_retrievers.datasets import Question
    from kg_retrievers.graph import KnowledgeGraph
    from kg_retrievers.index import GraphIndex

#: The methods by name, each with its class behind the front door.
RETRIEVERS = {
    "simgrag": "SimGRAGRetriever",
    "pcst": "PCSTRetriever",
    "triple-similarity": "TripleSimilarityRetriever",
    "subgraph-rag": "SubgraphRAGRetriever",
    "gnn-rag": "GNNRAGRetriever",
    "relation-paths": "RelationPathRetriever",
    "cypher": "CypherRetriever",
}

#: The method that is asked where none is named.
DEFAULT = "simgrag"

#: The method that runs queries in a database.
CYPHER = "cypher"

#: Those of the methods that are trained, each with the function that does it and the class of its model.
TRAINERS = {"subgraph-rag": "train_triple_scorer", "gnn-rag": "train_graph_reasoner"}
MODELS = {"subgraph-rag": "TripleScorer", "gnn-rag": "GraphReasoner"}

#: What answers from the evidence of any method, and is trained on it.
GRAPH_PROMPT = "graph-prompt"

#: What `--field` does not set in a training: other options do, or the graph.
NAMED_IN_TRAINING = (
    *("index", "questions", "validation", "output", "visits", "seed", "progress", "dimension"),
    *("llm", "embeddings", "examples", "setting", "model", "retrievers", "executor"),
)

#: Those of the methods that learn from labelled questions, each with what one of these must have, any of it; and those
#: that take a language model beside them, where the others take it instead.
TAUGHT = {"simgrag": ("pattern",), "relation-paths": ("answers",), CYPHER: ("answers", "pattern")}
TAUGHT_WITH_LLM = (CYPHER,)

#: What joins the names of methods whose evidence is united, and the class that unites it.
AND = "+"
UNION = "UnionRetriever"

#: What stands beside an index to say which `--embeddings` it was built with.
RECORD = "cli.json"


def read_graph(options: argparse.Namespace) -> KnowledgeGraph:
    """Read the graph of a file, of a folder that `index` saved, or of a database."""
    check_database_options(options)
    path = Path(options.graph)
    names = {"entities": "entities", "graph_format": "format", "columns": "columns"}
    names |= {"encoding": "encoding", "on_error": "on_error"}
    given = {name: value for option, name in names.items() if (value := getattr(options, option)) is not None}
    in_database = is_database(options.graph)
    if given and (in_database or path.is_dir()):
        kind = "graph database" if in_database else "folder"
        raise InvalidArgumentError(f"{options.graph} is a {kind}; leave out what says how to read a file: {[*given]}.")
    with working(f"reading {options.graph}"):
        if in_database:
            with open_database(options.graph, options) as executor:
                return kg_retrievers.KnowledgeGraph.from_executor(executor)
        if not path.is_dir():
            graph = kg_retrievers.KnowledgeGraph.from_file(path, **given)
            if graph.skipped:
                remark(f"malformed lines of {path} that were skipped: {graph.skipped}")
            return graph
        try:
            return kg_retrievers.KnowledgeGraph.open(path)
        except GraphLoadError as error:
            command = shlex.join(["kg-retrievers", "index", "FILE", "--output", str(path)])
            raise InvalidArgumentError(f"{error} To index a file: {command}") from error


def read_index(options: argparse.Namespace) -> GraphIndex:
    """Open the index of a folder, or index the graph of a file or database in memory."""
    graph = read_graph(options)
    if Path(options.graph).is_dir():
        return open_index(options.graph, options.embeddings, graph=graph)
    embeddings = make_embeddings(options.embeddings or "hashed")
    return kg_retrievers.GraphIndex.build(graph, embeddings, progress=sys.stderr.isatty())


def open_index(folder: str | Path, embeddings: str | None = None, *, graph: KnowledgeGraph | None = None) -> GraphIndex:
    """Open a folder that `kg-retrievers index` saved.

    Args:
        folder: The folder.
        embeddings: As `--embeddings`; those that it was built with by default.
        graph: The graph, where it is at hand.

    Raises:
        IndexLoadError: If the folder holds no complete index.
        StaleIndexError: If it was built with other embeddings.
    """
    record = Path(folder) / RECORD
    recorded = json.loads(record.read_text("utf-8"))["embeddings"] if record.exists() else "hashed"
    return kg_retrievers.GraphIndex.open(folder, make_embeddings(embeddings or recorded), graph=graph)


def read_training_questions(options: argparse.Namespace) -> tuple[list[Question], list[Question] | None]:
    """Read what is trained on, about one graph, and, where it is named, what validates."""
    split = options.split or ("train" if options.format == "metaqa" else None)
    data = {"format": options.format, "only_hops": options.hops}
    with working(f"reading {options.questions}"):
        drawn = {"limit": options.limit, "seed": options.seed}
        questions = kg_retrievers.read_question_set(options.questions, split=split, **data, **drawn)
    if options.validation is None:
        if options.validation_split:
            raise InvalidArgumentError("--validation-split says which part of --validation to take; give that, too.")
        return questions, None
    with working(f"reading {options.validation}"):
        return questions, kg_retrievers.read_question_set(options.validation, split=options.validation_split, **data)


def make_embeddings(name: str) -> Embeddings:
    """Return the embeddings that `--embeddings` names."""
    if name == "hashed":
        return kg_retrievers.HashedEmbeddings()
    with working(f"loading {name}"):
        return kg_retrievers.local_embeddings(name.removeprefix("local:"))


def make_llm(name: str | None) -> BaseChatModel | None:
    """Return the language model that `--llm` names, if it does."""
    if name is None:
        return None
    with working(f"loading {name}"):
        return kg_retrievers.load_chat_model(name)


@dataclass(frozen=True)
class TrainedModel:
    """A trained model, which a graph prompt is not yet; the folder that it was read from; a digest of its weights."""

    folder: str
    model: Any
    weights: str


def read_models(folders: Sequence[str]) -> dict[str, TrainedModel]:
    """Read the trained models of folders, each by the name of its method.

    Raises:
        InvalidArgumentError: If two are of one method.
        ModelLoadError: If a folder holds no model, or a damaged one.
    """
    models: dict[str, TrainedModel] = {}
    for folder in folders:
        try:
            config = json.loads((Path(folder) / "config.json").read_text("utf-8"))
            method, weights = str(config["method"]), f"{config['weights']}{config.get('adapter') or ''}"
        except (OSError, ValueError, RecursionError, LookupError, TypeError) as error:
            told = "no trained model is here. `kg-retrievers train` saves one when it is finished."
            raise ModelLoadError(told, folder) from error
        if method not in (kinds := (*MODELS, GRAPH_PROMPT)):
            raise ModelLoadError(f"wanted a model of {', '.join(kinds)}, but it is one of {method!r:.50}.", folder)
        if method in models:
            raise InvalidArgumentError(
                f"{models[method].folder} and {folder} are both models of {method}. Name one of them."
            )
        with working(f"reading {folder}"):
            model = getattr(kg_retrievers, MODELS[method]).from_pretrained(folder) if method in MODELS else None
        models[method] = TrainedModel(folder, model, weights)
    return models


def asked_method(named: str | None, models: Mapping[str, TrainedModel], default: str = DEFAULT) -> str:
    """Return the method that is asked: the one that is named, else that of the only model, else the default.

    Raises:
        InvalidArgumentError: If there is a model of another method.
    """
    method = named or (next(iter(models)) if len(models) == 1 else default)
    together = AND.join(models)
    for name, model in models.items():
        if name not in method_names(method):
            raise InvalidArgumentError(
                f"the model in {model.folder} is of {name}, but asked is {method}. "
                f"Leave it out, or: --method {together}"
            )
    return method


def check_database_is_used(method: str, options: argparse.Namespace) -> None:
    """Check that the only method that is asked runs queries, if it is said where.

    Raises:
        InvalidArgumentError: If it does not.
    """
    if options.database is not None and CYPHER not in method_names(method):
        raise InvalidArgumentError(
            f"--database is for {CYPHER}, but asked is {method}. Leave it out, or: --method {CYPHER}"
        )


def method_names(method: str) -> list[str]:
    """Return the methods that are asked, one or those that are united, without what stands behind a colon."""
    return method.partition(":")[0].split(AND)


def method_class(method: str) -> type[BaseKGRetriever]:
    """Return the class whose fields a method has: of several methods, that of their union."""
    names = method_names(method)
    kind: type[BaseKGRetriever] = getattr(kg_retrievers, RETRIEVERS[names[0]] if len(names) == 1 else UNION)
    return kind


def quoted(names: Sequence[str]) -> str:
    """Return alternatives as a sentence has them."""
    return " or ".join(f'"{name}"' for name in names)


def share_examples(
    method: str, examples: Sequence[Question] | None, llm: BaseChatModel | None
) -> dict[str, Sequence[Question]]:
    """Return the examples for each method that can use them, and tell why the others of `TAUGHT` go without.

    Args:
        method: The method, or several joined by `AND`. What one alone cannot use, it refuses itself.
        examples: Labelled questions, if there are some.
        llm: The language model, if there is one.
    """
    shared: dict[str, Sequence[Question]] = {}
    if examples is None:
        return shared
    names = method_names(method)
    for name in (name for name in TAUGHT if name in names):
        if llm is not None and name not in TAUGHT_WITH_LLM:
            remark(f"{name} takes --llm or examples, not both; it gets the former. For the latter, leave out --llm")
        elif len(names) > 1 and not any(getattr(example, what) for example in examples for what in TAUGHT[name]):
            remark(f"{name} goes without the examples, none of which has {quoted(TAUGHT[name])}")
        else:
            shared[name] = examples
    return shared


def build_retriever(
    method: str,
    index: GraphIndex,
    fields: Mapping[str, Any],
    *,
    llm: BaseChatModel | None,
    examples: Mapping[str, Sequence[Question] | None],
    models: Mapping[str, TrainedModel],
    database: QueryDatabase | None = None,
) -> BaseKGRetriever:
    """Build a method, or several and their union.

    Args:
        method: The method, or several joined by `AND`.
        index: The indexed graph.
        fields: Those of the retriever that is asked: of several methods, of their union.
        llm: The language model of all, if there is one.
        examples: Those that a method gets, by its name.
        models: The trained models, by the names of their methods.
        database: Where queries are run; None for a database that each retriever makes for itself.
    """

    def build(name: str, **fields: Any) -> BaseKGRetriever:
        if name == CYPHER and database is not None:
            fields["executor"] = database.executor
        model = models[name].model if name in models else None
        return method_class(name).from_index(index, llm=llm, examples=examples.get(name), model=model, **fields)

    names = method_names(method)
    if len(names) == 1:
        return build(names[0], **fields)
    union: BaseKGRetriever = getattr(kg_retrievers, UNION).of(*map(build, names), **fields)
    return union
