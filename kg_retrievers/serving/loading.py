"""From names to objects: open, load and build for the shell and Studio.

Modules are loaded on first use, so that the shell shows its help, or a misspelt option, at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kg_retrievers
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError, ModelLoadError
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import Method

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from kg_retrievers.core.retriever import BaseKGRetriever
    from kg_retrievers.database.executor import Executor
    from kg_retrievers.datasets import Question
    from kg_retrievers.index import GraphIndex

#: The default embeddings: static token vectors, which the package brings.
STATIC = "static"

#: Embeddings of letters alone.
HASHED = "hashed"

#: The prefix for the name or folder of a model of sentence-transformers.
LOCAL = "local:"

#: The first bytes of a file of LadybugDB. NULs follow, which no text has.
MAGIC = b"LBUG"

#: The schemes of a SPARQL endpoint's address. The part before "+" is none of its own.
SPARQL_SCHEMES = ("sparql+https", "sparql+http", "https", "http")

#: The public endpoints that are known by name, as `SparqlExecutor(preset=)` takes them.
PUBLIC = ("wikidata", "dbpedia")


@dataclass(frozen=True)
class SavedModel:
    """A trained model on disk.

    Attributes:
        folder: Its folder.
        entry: The method that it was trained for, or the graph prompt.
        model: The model; None for a graph prompt, which is read together with an index.
        weights: A digest of its weights.
    """

    folder: str
    entry: registry.Entry
    model: Any
    weights: str


def open_index(folder: str | Path) -> GraphIndex:
    """Open a folder that `kg-retrievers index` saved, with the embeddings it was built with.

    Raises:
        IndexLoadError: If the folder holds no complete index.
        StaleIndexError: If it was built with other embeddings.
    """
    return kg_retrievers.GraphIndex.open(folder, load_embeddings(recorded_embeddings(folder)))


def recorded_embeddings(folder: str | Path) -> str:
    """Return the name of the embeddings that an index was built with.

    An index that was built in Python records the class alone. `STATIC` stands for it if it is none of this package's
    two.
    """
    from kg_retrievers.graph.storage.parts import saved_meta  # loads numpy
    from kg_retrievers.index import embedding_name

    meta = saved_meta(Path(folder), "index")
    if "embeddings_name" in meta:
        return str(meta["embeddings_name"])
    return HASHED if meta.get("embeddings") == embedding_name(load_embeddings(HASHED)) else STATIC


def is_uri(where: str) -> bool:
    """Whether this is a URI, of a graph database or not."""
    return "://" in where


def is_public(where: str) -> bool:
    """Whether this is the name of a public SPARQL endpoint, and of no file."""
    return where in PUBLIC and not Path(where).exists()


def is_endpoint(where: str) -> bool:
    """Whether this is the address of a SPARQL endpoint, or the name of a public one."""
    return is_public(where) or (is_uri(where) and where.partition("://")[0].lower() in SPARQL_SCHEMES)


def is_database_file(where: str) -> bool:
    """Whether this is a file of LadybugDB."""
    try:
        if not Path(where).is_file():
            return False
        with open(where, "rb") as file:
            head = file.read(12)
    except OSError:
        return False  # reading it as text reports the cause
    return head.startswith(MAGIC) and b"\0" in head


def is_database(where: str) -> bool:
    """Whether this is a URI, the name of a public endpoint, or a file of LadybugDB."""
    return is_uri(where) or is_public(where) or is_database_file(where)


def load_embeddings(name: str) -> Embeddings:
    """Return embeddings by their name.

    Args:
        name: "static" or "hashed" for those of this package, "local:MODEL_OR_FOLDER" for sentence-transformers (extra
            `local`), or "PROVIDER:MODEL" for any embeddings of LangChain, as in "openai:text-embedding-3-small" (extra
            `langchain` and the provider's package); a key comes from the environment.

    Raises:
        InvalidArgumentError: If there is no such provider, its package is missing, or it refuses, as without a key.
        MissingExtraError: If the extra is not installed.
    """
    if name == STATIC:
        return kg_retrievers.default_embeddings()
    if name == HASHED:
        return kg_retrievers.HashedEmbeddings()
    if name.startswith(LOCAL):
        return kg_retrievers.local_embeddings(name.removeprefix(LOCAL))
    try:
        from langchain.embeddings import init_embeddings
    except ImportError as cause:
        extra = "openai" if name.startswith("openai:") else "langchain"
        raise MissingExtraError(f"the embeddings {name!r}", extra) from cause
    try:
        return init_embeddings(name)
    except Exception as error:  # each provider has errors of its own
        reason = " ".join(str(error).split())
        raise InvalidArgumentError(f"the embeddings {name!r} cannot be used: {reason:.500}") from error


def load_llm(name: str | None) -> BaseChatModel | None:
    """Return the language model of a name such as "openai:gpt-4.1-mini", if there is a name."""
    return kg_retrievers.load_chat_model(name) if name else None


def read_models(folders: Sequence[str]) -> dict[str, SavedModel]:
    """Read the trained models of folders, each by the name of its method.

    Raises:
        InvalidArgumentError: If two are of one method.
        ModelLoadError: If a folder holds no model, or a damaged one.
    """
    models: dict[str, SavedModel] = {}
    for folder in folders:
        saved = _read_model(folder)
        name = saved.entry.name
        if name in models:
            raise InvalidArgumentError(
                f"{models[name].folder} and {folder} are both models of {name}. Name one of them."
            )
        models[name] = saved
    return models


def _read_model(folder: str) -> SavedModel:
    from kg_retrievers.core.checkpoint import read_header  # loads numpy

    header = read_header(folder)
    entries = {name: entry for entry in registry.trainable() for name in entry.names}
    if header.method not in entries:
        wanted = ", ".join(entry.name for entry in registry.trainable())
        raise ModelLoadError(f"wanted a model of {wanted}, but it is one of {header.method!r:.50}.", folder)
    entry = entries[header.method]
    model = entry.load_model().from_pretrained(folder) if isinstance(entry, Method) else None
    return SavedModel(folder, entry, model, f"{header.digest}{header.config.get('adapter') or ''}")


def choose_method(named: str | None, models: Mapping[str, SavedModel]) -> Method:
    """Return the named method, else the method of the only model, else the default.

    Args:
        named: The name of a method.
        models: Trained models of methods, by the names of these.

    Raises:
        InvalidArgumentError: If there is no such method, or a model is of another one.
    """
    for saved in models.values():
        if not isinstance(saved.entry, Method):
            raise InvalidArgumentError(f"the model in {saved.folder} answers, and retrieves nothing. Leave it out.")
    only_model = next(iter(models)) if len(models) == 1 else None
    method = registry.find_method(named or only_model or registry.DEFAULT.name)
    for name, saved in models.items():
        if name != method.name and not (method.takes_any_model and len(models) == 1):
            raise InvalidArgumentError(
                f"the model in {saved.folder} is of {name}, but asked is {method.name}.",
                hint_python=f"Leave it out, or ask {name}.",
                hint_shell=f"Leave it out, or: --method {name}",
            )
    return method


def model_of(method: Method, models: Mapping[str, SavedModel]) -> SavedModel | None:
    """Return the trained model of a method, or the only one if the method takes any."""
    only_model = next(iter(models.values())) if len(models) == 1 else None
    return models.get(method.name) or (only_model if method.takes_any_model else None)


def build_retriever(
    method: Method,
    index: GraphIndex,
    fields: Mapping[str, Any] | None = None,
    *,
    llm: BaseChatModel | None = None,
    examples: Sequence[Question] | None = None,
    model: SavedModel | None = None,
    executor: Callable[[], Executor] | None = None,
    preset: str | None = None,
) -> BaseKGRetriever:
    """Build the retriever of a method.

    Args:
        method: The method.
        index: The indexed graph.
        fields: Fields of the retriever.
        llm: The language model, if there is one.
        examples: The labelled questions.
        model: The trained model.
        executor: Returns the database in which queries are run; by default the retriever makes one for itself.
        preset: See `BaseKGRetriever.presets`.

    Example:
        >>> from kg_retrievers import GraphIndex, default_embeddings
        >>> from kg_retrievers.methods.registry import find_method
        >>> from kg_retrievers.sample import load_graph
        >>> index = GraphIndex.build(load_graph(), default_embeddings())
        >>> build_retriever(find_method("kaping"), index, {"k": 3}).k
        3
    """
    given: dict[str, Any] = {**(fields or {}), "preset": preset}
    if method.runs_queries and executor is not None:
        given["executor"] = executor()
    trained = None if model is None else model.model
    return method.load_retriever()(index, llm=llm, examples=examples, model=trained, **given)
