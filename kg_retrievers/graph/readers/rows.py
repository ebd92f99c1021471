"""GraphRows: what a source says about a graph, before it is checked and sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kg_retrievers.graph.types import Triple


@dataclass
class GraphRows:
    """What a source says about a graph, in its order; repeated triples are kept.

    Args:
        triples: The facts.
        labels: The label of each entity that was given one. The first counts; a different later one is an alias.
        aliases: Other names by entity, each once.
        types: Types by entity, each once. An entity that was only declared has an empty list here.
        skipped: How many malformed lines were left out.
    """

    triples: list[Triple] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, list[str]] = field(default_factory=dict)
    types: dict[str, list[str]] = field(default_factory=dict)
    skipped: int = 0

    def describe(
        self, key: str, label: str | None = None, aliases: Sequence[str] = (), types: Sequence[str] = ()
    ) -> None:
        """Add what is said about an entity; a second label becomes an alias."""
        if label is not None and self.labels.setdefault(key, label) != label:
            aliases = [label, *aliases]
        if aliases:
            self.aliases[key] = list(dict.fromkeys([*self.aliases.get(key, ()), *aliases]))
        if types or not (label or aliases):
            self.types[key] = list(dict.fromkeys([*self.types.get(key, ()), *types]))

    def add_descriptions(self, more: GraphRows) -> None:
        """Add what other rows say about entities; where both give a label, the other one becomes an alias."""
        self.skipped += more.skipped
        for key, label in more.labels.items():
            if self.labels.setdefault(key, label) != label:
                self.aliases.setdefault(key, []).append(label)
        for described, further in ((self.aliases, more.aliases), (self.types, more.types)):
            for key, texts in further.items():
                described[key] = [*described.get(key, ()), *texts]
