"""Every method moved to another graph: it finds what it would find had it been built there, and nothing of the old."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from built_methods import built
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from kg_retrievers import (
    CypherRetriever,
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    Question,
    RelationPathRetriever,
    SimGRAGRetriever,
    default_embeddings,
)
from kg_retrievers.core.retriever import on_index
from kg_retrievers.errors import InvalidArgumentError, ModelMismatchError
from kg_retrievers.graph import Known, Pattern, PatternTriple, Unknown
from kg_retrievers.methods.registry import METHODS, Method
from kg_retrievers.methods.rog.proposals import ExampleRelationPaths
from kg_retrievers.questions.examples import ExamplePatternGenerator
from kg_retrievers.testing import tiny_graph

#: Another graph: its relations have other ids, one is missing, and one is new.
OTHER = [
    ("Alien", "composed_by", "Jerry Goldsmith"),
    ("Alien", "directed_by", "Ridley Scott"),
    ("Blade Runner", "directed_by", "Ridley Scott"),
    ("Blade Runner", "starring", "Harrison Ford"),
]
ASKED = "Who directed Alien?"

#: Fields that go along.
GIVEN: dict[str, Any] = {"k": 2, "tags": ["mine"]}

DIRECTED = Pattern((PatternTriple(Known("Her"), Known("directed_by"), Unknown("who")),), target="who")
EXAMPLES = [
    Question("Who directed Her?", answers=("Spike Jonze",), pattern=DIRECTED),
    Question("Who wrote Adaptation?", answers=("Charlie Kaufman",)),
]


@pytest.fixture(scope="module")
def here() -> GraphIndex:
    return GraphIndex.build(tiny_graph(), HashedEmbeddings())


@pytest.fixture(scope="module")
def there() -> GraphIndex:
    return GraphIndex.build(KnowledgeGraph.from_triples(OTHER), HashedEmbeddings())


def as_text(documents: list[Document]) -> list[str]:
    return [document.model_dump_json() for document in documents]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_moved_retriever_is_one_that_was_built_there(method: Method, here: GraphIndex, there: GraphIndex) -> None:
    first = built(method, here, **GIVEN)
    before = as_text(first.invoke("Who directed Her?"))
    moved = first.with_index(there)
    assert type(moved) is type(first)
    assert (moved.index, moved.k, moved.tags) == (there, first.k, first.tags)
    assert as_text(moved.invoke(ASKED)) == as_text(built(method, there, **GIVEN).invoke(ASKED))
    assert as_text(moved.with_index(here).invoke("Who directed Her?")) == before
    assert first.with_index(here) is first
    assert first.index is here


@pytest.mark.parametrize("kind", [SimGRAGRetriever, RelationPathRetriever, CypherRetriever])
def test_what_examples_taught_goes_along(kind: Any, here: GraphIndex, there: GraphIndex) -> None:
    if kind is CypherRetriever:
        pytest.importorskip("ladybug")
    moved = kind.from_index(here, examples=EXAMPLES).with_index(there)
    (document,) = moved.invoke(ASKED)
    assert document.metadata["answers"] == ["Ridley Scott"]
    assert "examples" in document.model_dump_json()


def test_templates_with_a_relation_that_is_not_there_fit_nothing(here: GraphIndex, there: GraphIndex) -> None:
    wrote = Pattern((PatternTriple(Known("Her"), Known("written_by"), Unknown("who")),), target="who")
    generator = ExamplePatternGenerator(here, [Question("Who wrote Her?", pattern=wrote)]).with_index(there)
    (filled,) = generator.nearest({"question": "Who wrote Alien?", "seed_entities": ["Alien"]})
    assert (filled.fits, filled.pattern.confidence) == (False, 0.0)
    asked = {"masked_question": "Who wrote _?", "seed_entities": ["Alien"], "beam_width": 3, "max_hops": 2}
    paths = ExampleRelationPaths(here, EXAMPLES[1:])
    assert paths.invoke(asked | {"seed_entities": ["Her"]})
    assert paths.with_index(there).invoke(asked) == []


class Pinned(RunnableLambda[Any, Any]):
    """A generator of somebody else, over one graph."""

    def __init__(self, index: GraphIndex) -> None:
        super().__init__(lambda asked: DIRECTED)
        self.pinned = index


def test_parts_that_cannot_be_moved(here: GraphIndex, there: GraphIndex) -> None:
    retriever = SimGRAGRetriever.from_index(here, pattern_generator=Pinned(here))
    with pytest.raises(InvalidArgumentError, match="Pinned is made for one graph"):
        retriever.with_index(there)
    free = RunnableLambda(lambda asked: DIRECTED)
    assert on_index(free, there) is free
    steps = on_index(free | ExamplePatternGenerator(here, EXAMPLES[:1]), there).steps
    assert steps[0] is free
    assert steps[1].index is there


def test_a_database_of_the_old_graph_is_refused(here: GraphIndex, there: GraphIndex) -> None:
    pytest.importorskip("ladybug")
    from kg_retrievers.database.ladybug import LadybugExecutor

    with LadybugExecutor.from_graph(here.graph) as executor:
        retriever = CypherRetriever.from_index(here, executor=executor)
        with pytest.raises(InvalidArgumentError, match="its executor holds the graph that it was built on"):
            retriever.with_index(there)
        assert retriever.with_index(here) is retriever


def test_a_model_fits_only_its_embeddings(here: GraphIndex) -> None:
    scorer = next(method for method in METHODS if method.name == "subgraph-rag")
    retriever = built(scorer, here)
    pickle.loads(pickle.dumps(retriever.model))  # what was compared stays behind
    other = GraphIndex.build(KnowledgeGraph.from_triples(OTHER), HashedEmbeddings(256))
    with pytest.raises(ModelMismatchError):
        retriever.with_index(other)


@pytest.mark.parametrize("kind", [SimGRAGRetriever, RelationPathRetriever, CypherRetriever])
@pytest.mark.parametrize("embeddings", [HashedEmbeddings(64), default_embeddings()])
def test_examples_fit_only_their_embeddings(kind: Any, embeddings: Any, here: GraphIndex) -> None:
    other = GraphIndex.build(KnowledgeGraph.from_triples(OTHER), embeddings)
    with pytest.raises(ModelMismatchError, match="examples were embedded with"):
        kind.from_index(here, examples=EXAMPLES).with_index(other)
    kind.from_index(here).with_index(other)
