"""The names of a graph in a vector store: found by vector, and, without any scan, by their letters and digits."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from kg_retrievers.bulk import Workers
from kg_retrievers.errors import FewerNamesWarning, InvalidArgumentError, StaleIndexError
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.embedding_cache import EmbeddingCache
from kg_retrievers.index.embeddings import embed, embedding_name
from kg_retrievers.index.parts import embeddings_option
from kg_retrievers.index.stored_names import (
    ABOUT,
    ABOUT_TEXT,
    About,
    Near,
    StoredName,
    gains,
    in_order,
    kept_keys,
    keys_of,
    letters_of,
    name_key,
    stored_name,
    text_of,
)
from kg_retrievers.index.vector_store import VectorStoreSearch

__all__ = ["About", "Near", "ServerNames", "StoredName"]

#: How many names with the same letters and digits are asked for at first; as many again and more, where all are there.
ALIKE = 3

#: How often more are asked for, where the last of the nearest names are equally near.
MAX_TRIES = 4

#: How many names workers embed at a time.
SHARED_SIZE = 128


#: Why a store finds fewer names than it holds, and what to do about it.
_LIMITED = "a search returns {most} rows at most. Ask for fewer names."
_APPROXIMATE = (
    "its index is approximate. Let it look at more: `hnsw.ef_search` and `hnsw.iterative_scan` of pgvector (set by "
    "`open_store`), `ef_search` of a Chroma collection, `ef` or `nprobe` in `search_params` of Milvus."
)


class ServerNames:
    """Finds the names of a graph in a vector store, with the keys of the entities that bear them.

    Each name is one document: its text is the name in words; its metadata are `name`, as written, `keys`, a list as
    JSON, and `number`, which says when it was added; its id is made from its letters and digits. So names that differ
    but in case, accents, blanks and signs are found by id. The store holds nothing else, but one document that says
    which embeddings the names have.

    Args:
        store: The store; `open_store` opens one.
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
        """What the store says of its names, None if it is empty; read once.

        Raises:
            StaleIndexError: If the names were embedded by another model.
        """
        if self._about is None:
            self._about = self._read_about()
        return self._about

    def refresh(self) -> About | None:
        """Read again what the store says of its names, after others added some."""
        self._about = None
        return self.about

    def _read_about(self) -> About | None:
        document = self.store.documents.get([ABOUT]).get(ABOUT)
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

    # --- finding ------------------------------------------------------------------------------------------------------

    def nearest(self, vectors: Array, k: int) -> list[list[Near]]:
        """Find the nearest names to each of several vectors, ascending by distance, then as they were added.

        Warns `FewerNamesWarning`, once, where the store finds fewer names than there are.

        Args:
            vectors: float32, shape (q, d): unit rows.
            k: How many to find for each.

        Raises:
            StaleIndexError: If the store holds no names, or those of another model.
            DatabaseError: If the server of the store cannot be reached, or lets nobody in.
        """
        about = self._checked()
        if vectors.shape[1:] != (about.dimension,):
            wanted = f"vectors of {about.dimension} numbers, of shape (q, {about.dimension})"
            raise InvalidArgumentError(f"ServerNames.nearest: wanted {wanted}, but got shape {vectors.shape}.")
        return [self._nearest(vector, min(k, about.count), about) for vector in vectors]

    def _nearest(self, vector: Array, k: int, about: About) -> list[Near]:
        """Find the nearest names to one vector; among equally near ones at the end, those that were added first."""
        asked = k + 2  # one is no name, one says whether the last is as near as the next
        for _ in range(MAX_TRIES):
            documents, distances = self.store.documents_near(vector, asked)
            hits = in_order(documents, distances)
            ties = len(hits) > k > 0 and hits[-1].rank == hits[k - 1].rank
            if not ties or len(documents) < asked:
                break
            asked *= 4
        if len(hits) < k:
            self._warn(len(hits), k, is_limited=len(documents) == self.store.documents.most)
        return [Near(stored_name(hit.document), hit.distance) for hit in hits[:k]]

    def _warn(self, found: int, wanted: int, is_limited: bool) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        documents = self.store.documents
        reason = _LIMITED.format(most=documents.most) if is_limited else _APPROXIMATE
        text = f"{documents.who} found {found} names where {wanted} were asked for, and it holds more: {reason}"
        warnings.warn(text, FewerNamesWarning, stacklevel=4)

    def written_as(self, texts: Iterable[str]) -> dict[str, list[StoredName]]:
        """Find the names that are some texts but for case, accents, blanks and signs, by text, as they were added.

        One request for all texts; another where more than `ALIKE` names have the same letters and digits.

        Raises:
            StaleIndexError: If the store holds no names, or those of another model.
            DatabaseError: If the server of the store cannot be reached, or lets nobody in.
        """
        self._checked()
        letters = {text: letters_of(text) for text in texts}
        found = self._alike(letters.values())
        return {text: [stored_name(document) for document in found[of]] for text, of in letters.items()}

    def _alike(self, letters: Iterable[str]) -> dict[str, list[Document]]:
        """Return the documents of the names with the same letters, by letters, in order."""
        found: dict[str, list[Document]] = {of: [] for of in letters}
        waiting, first, size = list(found), 0, ALIKE
        while waiting:
            ordinals = range(first, first + size)
            keys = {of: [name_key(of, ordinal) for ordinal in ordinals] for of in waiting}
            documents = self.store.documents.get([key for of in waiting for key in keys[of]])
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
        cache: EmbeddingCache | None = None,
        workers: Workers | None = None,
    ) -> int:
        """Add names, in batches; a name that is there gets further keys.

        Before a batch is embedded, the store is asked which of its names are there already: after a break, no text is
        embedded twice. Where a name gets further keys, PostgreSQL and Chroma keep its vector; for other stores it is
        embedded again, unless a cache has it. Not to be called from two processes at once.

        Args:
            names: The names.
            position: How far the graph is read, kept for whoever goes on there after a break; by default all is.
            batch_size: How many names are embedded at once.
            cache: Supplies known vectors and keeps new ones.
            workers: Processes that embed, `SHARED_SIZE` names at a time; this one by default.

        Returns:
            How many texts were embedded.

        Raises:
            StaleIndexError: If the store holds names of another model.
            InvalidArgumentError: If the embeddings return other than finite vectors of one length.
            DatabaseError: If the server of the store cannot be reached, lets nobody in, or has no room. What was
                written stays.
        """
        made, waiting = 0, iter(names)
        while batch := list(islice(waiting, batch_size)):
            made += self._add(_by_name(batch), cache, workers)
        about = self.about
        if about is not None and about.position != position:
            self._write_about(replace(about, position=position))
        return made

    def _add(self, names: Mapping[str, set[str]], cache: EmbeddingCache | None, workers: Workers | None) -> int:
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
                metadata = {"number": count + len(new), "name": name, **kept_keys(keys)}
                document = Document(text_of(name), id=name_key(letters[name], len(same)), metadata=metadata)
                same.append(document)
                new.append(document)
            elif gains(document, keys):
                document.metadata |= kept_keys(keys | set(keys_of(document)))
                changed.append(document)
        made = self._embed(new, cache, workers)
        if not self.store.documents.describe([str(one.id) for one in changed], [one.metadata for one in changed]):
            made += self._embed(changed, cache, workers)
        if (about := self.about) is not None and about.count != count + len(new):
            self._write_about(replace(about, count=count + len(new)))
        return made

    def _embed(self, documents: Sequence[Document], cache: EmbeddingCache | None, workers: Workers | None) -> int:
        """Put documents with the vectors of their names; return how many texts were embedded."""
        if not documents:
            return 0
        texts = [readable(one.metadata["name"]) for one in documents]
        batch_size = SHARED_SIZE if workers else max(1, len(texts))
        vectors = embed(self.embeddings, texts, batch_size=batch_size, cache=cache, workers=workers)
        if (about := self.about) is None:
            self._write_about(About(embedding_name(self.embeddings), vectors.shape[1]))
        elif vectors.shape[1] != about.dimension:
            got = f"vectors of {about.dimension} and of {vectors.shape[1]} numbers"
            raise InvalidArgumentError(f"ServerNames.add: the embeddings return {got}.")
        self._put(documents, vectors)
        return len(documents)

    def _put(self, documents: Sequence[Document], vectors: Array) -> None:
        keys = [str(document.id) for document in documents]
        texts = [document.page_content for document in documents]
        self.store.documents.put(keys, texts, [document.metadata for document in documents], vectors)

    def _write_about(self, about: About) -> None:
        metadata = {"number": -1, "about": json.dumps(asdict(about))}
        axis = np.eye(1, about.dimension, dtype=np.float32)
        self._put([Document(ABOUT_TEXT, id=ABOUT, metadata=metadata)], axis)
        self._about = about


def _by_name(names: Iterable[StoredName]) -> dict[str, set[str]]:
    keys: dict[str, set[str]] = {}
    for name in names:
        keys.setdefault(name.name, set()).update(name.keys)
    return keys
