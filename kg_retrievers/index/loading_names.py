"""Loads the names of a graph that stays in its database into a vector store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from langchain_core.embeddings import Embeddings
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kg_retrievers.bulk import Workers
from kg_retrievers.graph.parts import PartReader, StoredEntity
from kg_retrievers.index.embedding_cache import EmbeddingCache
from kg_retrievers.index.server_names import ServerNames, StoredName
from kg_retrievers.index.vector_store import VectorStoreSearch

#: How many entities are read at a time.
PAGE_SIZE = 2_000

#: How many seconds a page may take.
PAGE_SECONDS = 120.0


@dataclass(frozen=True)
class LoadedNames:
    """What `load_names` did.

    Attributes:
        entities: How many entities it read.
        embedded: How many names it embedded; those that the store held already were not.
        names: How many names the store holds now.
    """

    entities: int
    embedded: int
    names: int


def load_names(
    reader: PartReader,
    embeddings: Embeddings,
    store: VectorStoreSearch,
    *,
    page_size: int = PAGE_SIZE,
    cache: EmbeddingCache | None = None,
    progress: bool = False,
    workers: Workers | None = None,
) -> LoadedNames:
    """Put the names of all entities of a database into a vector store, page by page.

    The store keeps how far it came: after a break, the same call goes on there, and embeds no name twice. Once all are
    loaded, a further call adds what is new; names of entities that are gone stay, and lead to nothing.

    Args:
        reader: An executor.
        embeddings: Any LangChain embeddings.
        store: Where the names go; it holds nothing else.
        page_size: How many entities are read at a time, 1 or more.
        cache: Supplies known vectors and keeps new ones.
        progress: Whether to show a progress bar on stderr.
        workers: Processes that embed, `LocalWorkers` or `RayWorkers`; this one by default. The database and the store
            are asked by this process alone.

    Raises:
        StaleIndexError: If the store holds names of other embeddings.
        DatabaseError: If the database or the store fails; what was loaded stays.
    """
    names = ServerNames(store, embeddings)
    about = names.refresh()
    position = (about.position or "") if about else ""
    read = embedded = 0
    with _bar(progress) as bar:
        task = bar.add_task("Loading names", total=None)
        at: str | None = position
        while at is not None:
            page = reader.entities_after(at, page_size, timeout=PAGE_SECONDS)
            embedded += names.add(_names_of(page.entities), position=page.position, cache=cache, workers=workers)
            read += len(page.entities)
            bar.update(task, completed=read)
            at = page.position
    held = names.about
    return LoadedNames(read, embedded, held.count if held else 0)


def _names_of(entities: Sequence[StoredEntity]) -> Iterator[StoredName]:
    for entity in entities:
        for name in dict.fromkeys((entity.label, *entity.aliases)):
            yield StoredName(name, (entity.key,))


def _bar(progress: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not progress,
    )
