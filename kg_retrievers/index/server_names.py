"""Keep the names of a graph in a vector store.

They are found by vector, and, without any scan, by their letters and digits.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID, uuid5

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from rich.console import Console
from rich.progress import Progress

from kg_retrievers.bulk import Workers
from kg_retrievers.errors import FewerNamesWarning, InvalidArgumentError, StaleIndexError
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.parts import PartReader, StoredEntity
from kg_retrievers.graph.values import read_value
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.embeddings import embed, embedding_name
from kg_retrievers.index.names import parts_of
from kg_retrievers.index.parts import embeddings_option
from kg_retrievers.index.vector_store import MOST, VectorStoreSearch

#: Of how many entities a document keeps the keys.
MAX_KEYS = 256

#: Distances that differ by less are equal: stores compute in single precision.
ROUNDING = 1e-6

#: Makes the ids of names.
_NAMES = UUID("8d3c2a4e-5f0b-4d8e-9a51-1f1c5be5b0d7")

#: The id and the text of the one document that holds no name, but the facts about all names.
ABOUT = str(uuid5(_NAMES, "about"))
ABOUT_TEXT = "about the names of this graph"

#: The characters that some stores cannot keep in a text.
_UNKEPT = re.compile(r"[\0\ud800-\udfff]")

#: How many of the nearest names in how many directions tell whether the names are those of a graph.
NEAREST, DIRECTIONS = 16, 5

#: How many entities are read at a time.
PAGE_SIZE = 2_000

#: How many seconds a page may take.
PAGE_SECONDS = 120.0

#: How many names with the same letters and digits are requested at first. If all are there, as many again and more are
#: requested.
ALIKE = 3

#: How often more are requested if the last of the nearest names are equally near.
MAX_TRIES = 4

#: How many names workers embed at a time.
SHARED_SIZE = 128


#: Why a store finds fewer names than it holds, and the remedy.
_LIMITED = f"a search returns {MOST} rows at most. Ask for fewer names."
_APPROXIMATE = (
    "its index is approximate. Let it look at more: `hnsw.ef_search` and `hnsw.iterative_scan` of pgvector (set by "
    "`open_store`), `ef_search` of a Chroma collection, `ef` or `nprobe` in `search_params` of Milvus."
)


class StoredName(NamedTuple):
    """A name and the entities that bear it.

    Attributes:
        name: The name as written.
        keys: The keys of the entities, sorted.
        truncated: Whether there are more than these.
    """

    name: str
    keys: tuple[str, ...]
    truncated: bool = False


class Near(NamedTuple):
    """A name that is near a vector, and its L2 distance in [0, 2]."""

    name: StoredName
    distance: float


@dataclass(frozen=True)
class About:
    """The facts about all names in a store.

    Attributes:
        embeddings: The `embedding_name` of the model.
        dimension: The length of its vectors.
        count: How many names there are.
        position: How far the graph is read. None if all of it is.
    """

    embeddings: str
    dimension: int
    count: int = 0
    position: str | None = ""


class ServerNames:
    """Find the names of a graph in a vector store.

    Names come with the keys of the entities that bear them.

    Each name is one document. Its text is the name in words. Its metadata are `name`, as written, `keys`, a list as
    JSON, and `number`, which gives the order of addition. Its id is made from its letters and digits. So names that
    differ but in case, accents, blanks and signs are found by id. The store holds nothing else, except one document
    that says which embeddings the names have.

    Args:
        store: The store. `open_store` opens one.
        embeddings: The model.
    """

    def __init__(self, store: VectorStoreSearch, embeddings: Embeddings) -> None:
        """Ask nothing yet."""
        self.store = store
        self.embeddings = embeddings
        self._about: About | None = None
        self._has_warned = False

    @property
    def about(self) -> About | None:
        """The store's facts about its names, or None if it is empty.

        They are read once.

        Raises:
            StaleIndexError: If the names were embedded by another model.
        """
        if self._about is None:
            self._about = self._read_about()
        return self._about

    def refresh(self) -> About | None:
        """Read the store's facts about its names again, after others added some."""
        self._about = None
        return self.about

    def _read_about(self) -> About | None:
        document = self.store.get([ABOUT]).get(ABOUT)
        if document is None:
            return None
        about = About(**json.loads(document.metadata["about"]))
        if about.embeddings != (name := embedding_name(self.embeddings)):
            raise StaleIndexError(
                f"ServerNames: the names in the store were embedded by {about.embeddings}, but got {name}.",
                hint_python="Hand in the first, or load the names into another table or collection with the second.",
                hint_shell=f"Name the first, {embeddings_option(about.embeddings)}, or another table or collection: "
                "--vectors ...",
            )
        return about

    def _checked(self) -> About:
        if (about := self.about) is None:
            raise StaleIndexError(
                "ServerNames: the store holds no names of a graph.",
                hint_python="Load them first: load_names(executor, embeddings, store).",
            )
        return about

    def check_graph(self, reader: PartReader) -> None:
        """Check that most names belong to entities of a graph, by names in several directions.

        Raises:
            StaleIndexError: If not.
        """
        if (about := self.about) is None:
            return
        axes = np.eye(min(DIRECTIONS, about.dimension), about.dimension, dtype=np.float32)
        stored = list({near.name.name: near.name for row in self.nearest(axes, NEAREST) for near in row}.values())
        # The names of entities, and no literals or values, if there are some.
        stored = [one for one in stored if read_value(one.name) is None] or stored
        stored = [one for one in stored if one.name not in one.keys] or stored
        keys = sorted({key for name in stored for key in name.keys})
        known = {entity.key for entity in reader.describe(keys, timeout=PAGE_SECONDS)} if keys else set()
        foreign = [name.name for name in stored if known.isdisjoint(name.keys)]
        if 2 * len(foreign) > len(stored):
            raise StaleIndexError(
                f"ServerNames: the store holds names of another graph, such as {foreign[0]!r:.200}.",
                hint_python="Each graph needs a table or collection of its own: load its names into another one.",
                hint_shell="Name the options that it was loaded with, or load the names of this graph into another "
                "table or collection: kg-retrievers index GRAPH --vectors ADDRESS",
            )

    # --- finding ------------------------------------------------------------------------------------------------------

    def nearest(self, vectors: Array, k: int) -> list[list[Near]]:
        """Find the nearest names to each of several vectors.

        They ascend by distance, then by the order of addition.

        Warns `FewerNamesWarning`, once, if the store finds fewer names than there are.

        Args:
            vectors: float32, shape (q, d): unit rows.
            k: How many to find for each.

        Raises:
            StaleIndexError: If the store holds no names, or names of another model.
            DatabaseError: If the server of the store cannot be reached, or lets nobody in.
        """
        about = self._checked()
        if vectors.shape[1:] != (about.dimension,):
            wanted = f"vectors of {about.dimension} numbers, of shape (q, {about.dimension})"
            raise InvalidArgumentError(f"ServerNames.nearest: wanted {wanted}, but got shape {vectors.shape}.")
        return [self._nearest(vector, min(k, about.count), about) for vector in vectors]

    def _nearest(self, vector: Array, k: int, about: About) -> list[Near]:
        """Find the nearest names to one vector.

        Among equally near ones at the end, the names that were added first win.
        """
        asked = k + 2  # one is no name, one says whether the last is as near as the next
        for _ in range(MAX_TRIES):
            documents, distances = self.store.near(vector, asked)
            near, ranks = _in_order(documents, distances)
            ties = len(near) > k > 0 and ranks[-1] == ranks[k - 1]
            if not ties or len(documents) < asked:
                break
            asked *= 4
        if len(near) < k:
            self._warn(len(near), k, is_limited=len(documents) == MOST)
        return near[:k]

    def _warn(self, found: int, wanted: int, is_limited: bool) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        reason = _LIMITED if is_limited else _APPROXIMATE
        text = f"{self.store.who} found {found} names where {wanted} were asked for, and it holds more: {reason}"
        warnings.warn(text, FewerNamesWarning, stacklevel=4)

    def written_as(self, texts: Iterable[str]) -> dict[str, list[StoredName]]:
        """Find the names that are written like some texts.

        Case, accents, blanks and signs may differ. The names come by text, in the order of addition.

        The call makes one request for all texts, and another if more than `ALIKE` names have the same letters and
        digits.

        Raises:
            StaleIndexError: If the store holds no names, or names of another model.
            DatabaseError: If the server of the store cannot be reached, or lets nobody in.
        """
        self._checked()
        letters = {text: letters_of(text) for text in texts}
        found = self._alike(letters.values())
        return {text: [_stored_name(document) for document in found[of]] for text, of in letters.items()}

    def _alike(self, letters: Iterable[str]) -> dict[str, list[Document]]:
        """Return the documents of the names with the same letters, by letters, in order."""
        found: dict[str, list[Document]] = {of: [] for of in letters}
        waiting, first, size = list(found), 0, ALIKE
        while waiting:
            ordinals = range(first, first + size)
            keys = {of: [name_key(of, ordinal) for ordinal in ordinals] for of in waiting}
            documents = self.store.get([key for of in waiting for key in keys[of]])
            for of in waiting:
                found[of] += [documents[key] for key in keys[of] if key in documents]
            waiting = [of for of in waiting if keys[of][-1] in documents]
            first, size = first + size, 4 * size
        return found

    # --- adding -------------------------------------------------------------------------------------------------------

    def add(
        self,
        names: Iterable[StoredName],
        *,
        position: str | None = None,
        batch_size: int = 1024,
        workers: Workers | None = None,
    ) -> int:
        """Add names, in batches.

        A name that is there gets further keys.

        Before a batch is embedded, the store is asked which of its names are there already: after a break, no text is
        embedded twice. A name that gets further keys is embedded again.
        Not to be called from two processes at once.

        Args:
            names: The names.
            position: How far the graph is read. It is kept so that a later call can continue there after a break. By
                default, all is read.
            batch_size: How many names are embedded at once.
            workers: Processes that embed, `SHARED_SIZE` names at a time. By default, this process.

        Returns:
            How many texts were embedded.

        Raises:
            StaleIndexError: If the store holds names of another model.
            InvalidArgumentError: If the embeddings return other than finite vectors of one length.
            DatabaseError: If the server of the store cannot be reached, lets nobody in, or has no room. Names that were
                written stay.
        """
        made, waiting = 0, iter(names)
        while batch := list(islice(waiting, batch_size)):
            keys: dict[str, set[str]] = {}
            for name in batch:
                keys.setdefault(name.name, set()).update(name.keys)
            made += self._add(keys, workers)
        about = self.about
        if about is not None and about.position != position:
            self._write_about(replace(about, position=position))
        return made

    def _add(self, names: Mapping[str, set[str]], workers: Workers | None) -> int:
        letters = {name: letters_of(name) for name in names}
        alike = self._alike(letters.values())
        met = [document.metadata["number"] for documents in alike.values() for document in documents]
        about = self.about
        count = max([about.count if about else 0, *(number + 1 for number in met)])  # those of a broken batch are met
        new: list[Document] = []
        changed: list[Document] = []
        for name, keys in names.items():
            same = alike[letters[name]]
            document = next((one for one in same if one.metadata["name"] == name), None)
            if document is None:
                metadata = {"number": count + len(new), "name": name, **_kept_keys(keys)}
                document = Document(
                    _UNKEPT.sub("\ufffd", readable(name)), id=name_key(letters[name], len(same)), metadata=metadata
                )
                same.append(document)
                new.append(document)
            elif not document.metadata["more_keys"] and not keys.issubset(known := _keys_of(document)):
                document.metadata |= _kept_keys(keys.union(known))
                changed.append(document)
        made = self._embed([*new, *changed], workers)
        if (about := self.about) is not None and about.count != count + len(new):
            self._write_about(replace(about, count=count + len(new)))
        return made

    def _embed(self, documents: Sequence[Document], workers: Workers | None) -> int:
        """Put documents with the vectors of their names.

        Return how many texts were embedded.
        """
        if not documents:
            return 0
        texts = [readable(one.metadata["name"]) for one in documents]
        batch_size = SHARED_SIZE if workers else max(1, len(texts))
        vectors = embed(self.embeddings, texts, batch_size=batch_size, workers=workers)
        if (about := self.about) is None:
            self._write_about(About(embedding_name(self.embeddings), vectors.shape[1]))
        elif vectors.shape[1] != about.dimension:
            got = f"vectors of {about.dimension} and of {vectors.shape[1]} numbers"
            raise InvalidArgumentError(f"ServerNames.add: the embeddings return {got}.")
        self.store.put(documents, vectors)
        return len(documents)

    def _write_about(self, about: About) -> None:
        metadata = {"number": -1, "about": json.dumps(asdict(about))}
        axis = np.eye(1, about.dimension, dtype=np.float32)
        self.store.put([Document(ABOUT_TEXT, id=ABOUT, metadata=metadata)], axis)
        self._about = about


def letters_of(name: str) -> str:
    """Return the letters and digits of a name, folded, or its signs if it has none.

    Example:
        >>> letters_of("Amélie (2001)"), letters_of("$")
        ('amelie2001', '$')
    """
    return _UNKEPT.sub("", "".join(parts_of(name)))


def name_key(letters: str, ordinal: int) -> str:
    """Return the id of the document of a name: a UUID.

    Args:
        letters: The letters and digits of the name, see `letters_of`.
        ordinal: Which of the names with these letters it is, from 0 on, as they were added.

    Example:
        >>> name_key(letters_of("Amélie"), 0) == name_key(letters_of("AMELIE"), 0) != name_key(letters_of("Amélie"), 1)
        True
    """
    return str(uuid5(_NAMES, f"{ordinal} {letters}"))


def _kept_keys(keys: Iterable[str]) -> dict[str, Any]:
    """Return the metadata of keys: the first of them, and whether there are more."""
    ordered = sorted(keys)
    return {"keys": json.dumps(ordered[:MAX_KEYS]), "more_keys": int(len(ordered) > MAX_KEYS)}


def _keys_of(document: Document) -> list[str]:
    """Return the keys that a document keeps."""
    keys: list[str] = json.loads(document.metadata["keys"])
    return keys


def _stored_name(document: Document) -> StoredName:
    """Return the name that a document keeps."""
    metadata = document.metadata
    return StoredName(metadata["name"], tuple(_keys_of(document)), bool(metadata["more_keys"]))


def _in_order(documents: Sequence[Document], distances: Array) -> tuple[list[Near], Array]:
    """Return the names among documents, with ranks that equal distances share.

    They ascend by distance, then by number.
    """
    # A document without a name is of no use here, and another program may have written anything into it.
    numbers = np.array([one.metadata["number"] if "name" in one.metadata else -1 for one in documents], np.int64)
    ranks = np.empty(len(documents), np.int64)
    ascending = np.argsort(distances, kind="stable")
    ranks[ascending] = np.cumsum(np.diff(distances[ascending], prepend=0) > ROUNDING)
    order = [at for at in np.lexsort((numbers, ranks)).tolist() if "name" in documents[at].metadata]
    return [Near(_stored_name(documents[at]), float(distances[at])) for at in order], ranks[order]


@dataclass(frozen=True)
class LoadedNames:
    """The result of `load_names`.

    Attributes:
        entities: How many entities it read.
        embedded: How many names it embedded, without names that the store held already.
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
    progress: bool = False,
    workers: Workers | None = None,
) -> LoadedNames:
    """Put all entity names of a database into a vector store.

    The database is read page by page.

    The store keeps the position: after a break, the same call goes on there, and embeds no name twice. Once all are
    loaded, a further call adds new names. Names of entities that are gone stay, and lead to nothing.

    Args:
        reader: An executor.
        embeddings: Any LangChain embeddings.
        store: The store for the names, which holds nothing else.
        page_size: How many entities are read at a time, 1 or more.
        progress: Whether to show a progress bar on stderr.
        workers: Processes that embed, `LocalWorkers` or `RayWorkers`. By default, this process. The database and the
            store are asked by this process alone.

    Raises:
        StaleIndexError: If the store holds names of other embeddings, or of another graph.
        DatabaseError: If the database or the store fails. Loaded names stay.
    """
    names = ServerNames(store, embeddings)
    about = names.refresh()
    names.check_graph(reader)
    position = (about.position or "") if about else ""
    read = embedded = 0
    with Progress(console=Console(stderr=True), transient=True, disable=not progress) as bar:
        task = bar.add_task("Loading names", total=None)
        at: str | None = position
        while at is not None:
            page = reader.entities_after(at, page_size, timeout=PAGE_SECONDS)
            embedded += names.add(_names_of(page.entities), position=page.position, workers=workers)
            read += len(page.entities)
            bar.update(task, description=f"Loading names: {read:,} entities")
            at = page.position
    held = names.about
    return LoadedNames(read, embedded, held.count if held else 0)


def _names_of(entities: Sequence[StoredEntity]) -> Iterator[StoredName]:
    for entity in entities:
        for name in dict.fromkeys((entity.label, *entity.aliases)):
            yield StoredName(name, (entity.key,))
