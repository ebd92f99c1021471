"""Parts of a graph that stays in its database, and what reads them: those of `graph.parts`."""

from kg_retrievers.graph.parts import (
    MOST_FACTS,
    MOST_OF_NAME,
    TIMEOUT,
    EntityPage,
    Facts,
    PartReader,
    StoredEntity,
)

__all__ = ["MOST_FACTS", "MOST_OF_NAME", "TIMEOUT", "EntityPage", "Facts", "PartReader", "StoredEntity"]
