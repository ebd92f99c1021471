"""How a name is kept in a vector store: as one document, whose id is made from its letters and digits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID, uuid5

import numpy as np
from langchain_core.documents import Document

from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.name_table import parts_of

#: Of how many entities a document keeps the keys.
MAX_KEYS = 256

#: Distances that differ by less are equal: stores compute in single precision.
ROUNDING = 1e-6

#: Makes the ids of names.
_NAMES = UUID("8d3c2a4e-5f0b-4d8e-9a51-1f1c5be5b0d7")

#: The id and the text of the one document that holds no name, but what is known of all.
ABOUT = str(uuid5(_NAMES, "about"))
ABOUT_TEXT = "about the names of this graph"

#: What some stores cannot keep in a text.
_UNKEPT = re.compile(r"[\0\ud800-\udfff]")


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
    """What is known of all names in a store.

    Attributes:
        embeddings: The model, as `embedding_name` says it.
        dimension: The length of its vectors.
        count: How many names there are.
        position: How far they were read from the graph, as whoever added them said; None when all were.
    """

    embeddings: str
    dimension: int
    count: int = 0
    position: str | None = ""


def letters_of(name: str) -> str:
    """Return the letters and digits of a name, folded; its signs where it has none.

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


def text_of(name: str) -> str:
    """Return the text of the document of a name: the name in words, without what a store cannot keep."""
    return _UNKEPT.sub("\ufffd", readable(name))


def kept_keys(keys: Iterable[str]) -> dict[str, Any]:
    """Return the metadata of keys: the first of them, and whether there are more."""
    ordered = sorted(keys)
    return {"keys": json.dumps(ordered[:MAX_KEYS]), "more_keys": int(len(ordered) > MAX_KEYS)}


def keys_of(document: Document) -> list[str]:
    """Return the keys that a document keeps."""
    keys: list[str] = json.loads(document.metadata["keys"])
    return keys


def gains(document: Document, keys: set[str]) -> bool:
    """Return whether a document has to say more than it does, once some keys are added to its own."""
    known = keys_of(document)
    return not keys <= set(known) and not document.metadata["more_keys"]


def stored_name(document: Document) -> StoredName:
    """Return the name that a document keeps."""
    metadata = document.metadata
    return StoredName(metadata["name"], tuple(keys_of(document)), bool(metadata["more_keys"]))


class Hit(NamedTuple):
    """A name found: its place, the same for those that are equally near, when it was added, and its distance."""

    rank: int
    number: int
    distance: float
    document: Document


def in_order(documents: Sequence[Document], distances: Array) -> list[Hit]:
    """Return the names among documents, ascending by distance, then by number."""
    ascending = np.argsort(distances, kind="stable")
    ranks = np.cumsum(np.diff(distances[ascending], prepend=0) > ROUNDING)
    hits = [
        Hit(rank, documents[at].metadata["number"], float(distances[at]), documents[at])
        for rank, at in zip(ranks.tolist(), ascending.tolist(), strict=True)
        if "name" in documents[at].metadata
    ]
    return sorted(hits, key=lambda hit: hit[:2])
