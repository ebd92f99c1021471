"""BaseEnsembleRetriever: the base of retrievers that ask others, their members."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from kg_retrievers.core.obstacles import Obstacle
from kg_retrievers.core.retriever import BaseKGRetriever


class BaseEnsembleRetriever(BaseKGRetriever):
    """A retriever that asks others."""

    @property
    @abstractmethod
    def members(self) -> dict[str, BaseKGRetriever]:
        """The retrievers that it asks, by name."""

    @abstractmethod
    def with_members(self, members: Mapping[str, BaseKGRetriever]) -> Self:
        """Return the same with some members changed.

        Args:
            members: Those in place of the members of these names.
        """

    @abstractmethod
    def member_arguments(self, state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the arguments of `invoke` that each member is given, by its name."""

    @abstractmethod
    def obstacle_of_member(self, name: str, obstacle: Obstacle, state: Mapping[str, Any]) -> Obstacle:
        """Return what keeps an entity out of what a member finds, as an obstacle of this retriever.

        Args:
            name: The name of the member.
            obstacle: What keeps the entity out there.
            state: What the stages of this retriever wrote.
        """
