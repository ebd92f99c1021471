"""Labels that a source gave, and those that were made from the end of an IRI."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kg_retrievers.graph.changes.merge import Graph
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.iris import Prefixes, local_words


def is_made_up(label: str, key: str, prefixes: Mapping[str, str]) -> bool:
    """Return whether a label is the end of the IRI that a key stands for, as RDF names what it gives no label.

    Example:
        >>> is_made_up("Her 2013", "dbr:Her_2013", {}), is_made_up("Her", "dbr:Her_2013", {})
        (True, False)
    """
    return label == local_words(Prefixes(prefixes).expand(key))


def made_up_labels(graph: Graph, entities: Array) -> Array:
    """Return those of some entities whose labels are the ends of their IRIs."""
    prefixes, found = Prefixes(graph.prefixes), []
    for id in entities.tolist():
        if graph.names[graph.labels[id]] == local_words(prefixes.expand(graph.entities[id])):
            found.append(id)
    return np.array(found, np.int64)
