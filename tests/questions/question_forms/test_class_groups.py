"""Which ends of relations are one class of entities."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.graph import GraphBuilder, KnowledgeGraph
from kg_retrievers.graph.adjacency import label_count
from kg_retrievers.questions.question_forms.classes import COMMON, class_groups, leading_labels

RELATIONS = "rstu"

triples = st.lists(
    st.tuples(st.sampled_from("abcdefg"), st.sampled_from(RELATIONS), st.sampled_from("abcdefg")),
    min_size=1,
    max_size=25,
    unique=True,
)


def graph_of(rows: list[tuple[str, str, str]]) -> KnowledgeGraph:
    """Return a graph that has all relations, some of them perhaps without facts, as a part of a graph may."""
    builder = GraphBuilder()
    for name in RELATIONS:
        builder.relation(name)
    for row in rows:
        builder.add(*row)
    return KnowledgeGraph(builder.columns()[0])


def ends_of(graph: KnowledgeGraph) -> list[set[int]]:
    """Return the entities to which each label leads."""
    ends: list[set[int]] = [set() for _ in range(label_count(len(graph.relations)))]
    for head, relation, tail in graph.edges[:].tolist():
        ends[2 * relation].add(tail)
        ends[2 * relation + 1].add(head)
    return ends


@given(triples)
def test_the_labels_that_lead_to_entities(rows: list[tuple[str, str, str]]) -> None:
    graph = graph_of(rows)
    ends = ends_of(graph)
    entities = np.arange(len(graph.entities))
    labels, indptr = leading_labels(graph.adjacency, entities)
    for entity in entities.tolist():
        found = labels[indptr[entity] : indptr[entity + 1]].tolist()
        assert sorted(found) == [label for label, of_label in enumerate(ends) if entity in of_label]


@given(triples, st.integers(0, 255))
def test_labels_whose_ends_are_shared_are_one_class(rows: list[tuple[str, str, str]], chosen: int) -> None:
    graph = graph_of(rows)
    ends = ends_of(graph)
    grouped = np.array([bool(chosen >> label & 1) for label in range(len(ends))])
    groups = class_groups(graph.adjacency, [np.array(sorted(of_label), np.int64) for of_label in ends], grouped)
    parents = list(range(len(ends)))
    for one in np.flatnonzero(grouped).tolist():
        for other in np.flatnonzero(grouped).tolist():
            if len(ends[one] & ends[other]) >= max(COMMON * len(ends[one]), 1):
                parents = [parents[other] if parent == parents[one] else parent for parent in parents]
    for one in range(len(ends)):
        for other in range(len(ends)):
            assert (groups[one] == groups[other]) == (parents[one] == parents[other])
