"""Tests of presets: the settings of a method's paper by one name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, NeighborhoodRetriever
from kg_retrievers.errors import InvalidArgumentError

GRAPH = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze"), ("Her", "has_genre", "Drama")])
INDEX = GraphIndex.build(GRAPH, HashedEmbeddings())


class PresetRetriever(NeighborhoodRetriever):
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": {"max_hops": 3, "max_triples": 7}}


def test_a_preset_sets_its_fields_and_a_field_that_is_given_wins() -> None:
    for given, hops in ({}, 3), ({"max_hops": 1}, 1):
        retriever = PresetRetriever.from_index(INDEX, preset="paper", **given)
        assert (retriever.max_hops, retriever.max_triples) == (hops, 7)


def test_a_preset_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"PresetRetriever: there is no preset 'papers'; did you mean 'paper'"
    ):
        PresetRetriever.from_index(INDEX, preset="papers")  # type: ignore[typeddict-item]
    with pytest.raises(InvalidArgumentError, match=r"no preset 'paper'; it takes none\."):
        NeighborhoodRetriever.from_index(INDEX, preset="paper")
