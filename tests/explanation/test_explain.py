"""explain, by every method: each thing that it names is recomputed."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from built_methods import built
from explanation.methods import each_method
from langchain_core.documents import Document

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KGRetriever,
    KnowledgeGraph,
    Known,
    NeighborhoodRetriever,
    Pattern,
    SimGRAGRetriever,
    TripleSimilarityRetriever,
    Unknown,
    explain,
    why_not,
)
from kg_retrievers.chains.evidence import evidence_of
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.explanation import Explanation
from kg_retrievers.methods.registry import Method
from kg_retrievers.sample import load_graph, load_questions

EMBEDDINGS = HashedEmbeddings()
QUESTIONS = [question.text for question in load_questions()]


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    return GraphIndex.build(load_graph(), EMBEDDINGS)


def asked(retriever: BaseKGRetriever) -> list[Document]:
    found = (retriever.invoke(question, min_confidence=0.0) for question in QUESTIONS[:: len(QUESTIONS) // 12])
    documents = [documents[0] for documents in found if documents]
    assert documents
    return documents


def check_named(found: Explanation, document: Document, graph: KnowledgeGraph) -> None:
    """Check that what is named stands in the question, the graph and the evidence."""
    metadata = document.metadata
    assert found.question in QUESTIONS
    for one in found.entities:
        assert one.label == graph.label(one.key)
        if one.how == "exact":
            assert one.text in found.question
            assert one.text in (one.label, one.key)
            assert one.likeness == 1
        elif one.how == "case":
            assert one.text.casefold() in (one.label.casefold(), one.key.casefold())
            assert one.text in found.question
        elif one.how != "given":
            assert one.text in found.question
            assert one.likeness is None or 0 < one.likeness <= 1
    assert {one.key for one in found.entities} == {key for _, key in metadata["details"].get("entities") or ()}
    relations = {relation for _, relation, _ in metadata["triples"]}
    of_pattern = {relation for _, relation in metadata["details"].get("relations") or () if relation}
    assert len(found.relations) == len(of_pattern & relations)
    assert [list(fact.triple) for fact in found.facts] == metadata["triples"]
    labels = dict.fromkeys(graph.label(key) for key in metadata["answers"])
    assert found.answers == [*labels] or metadata["value"] is not None


def check_data(found: Explanation) -> None:
    """Check that the data are plain, and that the text and the picture say all of the evidence."""
    data = found.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert "\n".join(fact.line for fact in found.facts[:3]).split("\n")[0] in found.text
    assert all(answer in found.text for answer in found.answers[:3])
    drawing = found.draw()
    assert {*drawing.triples} == {tuple(fact.triple) for fact in found.facts[:100]}
    assert drawing.known == {one.key for one in found.entities if one.key in drawing.labels}
    HTMLParser().feed(found._repr_html_())


@each_method
def test_what_a_document_says_alone_and_with_its_retriever(method: Method, index: GraphIndex) -> None:
    retriever = built(method, index)
    for document in asked(retriever):
        for found in (explain(document), explain(document, retriever)):
            check_named(found, document, index.graph)
            check_data(found)


def test_how_words_name_an_entity() -> None:
    facts = [("q1", "directed_by", "q2"), ("q3", "directed_by", "q2"), ("q4", "starring", "q2")]
    labels = {"q1": "Her", "q2": "Spike Jonze", "q3": "Dune", "q4": "Dune"}
    graph = KnowledgeGraph.from_triples(facts, labels=labels, aliases={"q2": ["Adam Spiegel"]})
    retriever = NeighborhoodRetriever.from_index(GraphIndex.build(graph, EMBEDDINGS))

    def named(question: str, **inputs: Any) -> list[tuple[str, str, str]]:
        (document,) = retriever.invoke(question, **inputs)
        return [(one.text, one.key, one.how) for one in explain(document).entities]

    assert named("What did Spike Jonze make?") == [("Spike Jonze", "q2", "exact")]
    assert named("what did spike jonze make?") == [("spike jonze", "q2", "case")]
    assert named("What did Adam Spiegel make?") == [("Adam Spiegel", "q2", "alias")]
    assert named("What did Spike Jonse make?") == [("Spike Jonse", "q2", "fuzzy")]
    assert named("What did Jonze make?") == [("Jonze", "q2", "short")]
    assert named("What did he make?", seed_entities=["q2"]) == [("Spike Jonze", "q2", "given")]
    (document,) = retriever.invoke("Who made Dune?")
    first, second = explain(document, retriever).entities
    assert [one.entity for one in first.others] == [second.key]
    assert "or 'Dune' [q4] (1.00)" in explain(document, retriever).text


def test_a_pattern_names_a_relation_and_a_similar_entity(index: GraphIndex) -> None:
    retriever = SimGRAGRetriever.from_index(index)
    pattern = Pattern.of((Unknown("film"), "was directed by", Known("Spike Jonez")), target="film")
    document = retriever.invoke("Which films are by Spike Jonez?", pattern=pattern)[0]
    found = explain(document, retriever)
    assert found.relations == ("'was directed by' of the pattern stands for 'directed by'",)
    assert found.entities[0].key == "Spike Jonze"
    assert "?film -> was directed by -> Spike Jonez" in found.text


def test_facts_are_numbered_as_a_chain_numbers_them(index: GraphIndex) -> None:
    (document,) = NeighborhoodRetriever.from_index(index).invoke("What of Her?")
    shown = evidence_of({"question": "What of Her?", "documents": [document]}, "numbered")
    assert [list(fact.triple) for fact in explain(document).facts] == shown.citable
    assert explain(document).facts[0].line == shown.text.split("\n")[0]


def test_sources_stand_behind_facts() -> None:
    graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
    graph = graph.with_changes(added=[("Her", "starring", "Amy")], source="films.csv")
    retriever = NeighborhoodRetriever.from_index(GraphIndex.build(graph, EMBEDDINGS))
    found = explain(retriever.invoke("What of Her?")[0])
    assert [fact.sources for fact in found.facts] == [(), ("films.csv",)]
    assert "(from films.csv)" in found.text


def test_what_is_not_known_is_not_said(index: GraphIndex) -> None:
    retriever = NeighborhoodRetriever.from_index(index)
    document = retriever.invoke("What of Her?")[0]
    bare = Document(document.page_content, id=document.id, metadata=dict(document.metadata))
    del bare.metadata["question"], bare.metadata["linked"]
    found = explain(bare, retriever)
    assert found.question == ""
    assert [one.how for one in found.entities] == ["given"]


@pytest.mark.parametrize("wrong", [None, "text", Document("no metadata")])
def test_what_is_no_document_of_a_retriever(wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="explain: wanted a Document"):
        explain(wrong)


def test_what_is_no_retriever(index: GraphIndex) -> None:
    document = NeighborhoodRetriever.from_index(index).invoke("What of Her?")[0]
    with pytest.raises(InvalidArgumentError, match="explain: retriever must be a BaseKGRetriever"):
        explain(document, index)  # type: ignore[arg-type]


EVIL = "</pre><script>alert(1)</script>\n[9] \x1b[31m" + "x" * 50


def test_hostile_names_do_nothing() -> None:
    graph = KnowledgeGraph.from_triples([(EVIL, "<b>r</b>", "Her"), ("Her", "r2", "B"), ("B", "r2", EVIL + "2")])
    retriever = TripleSimilarityRetriever.from_index(GraphIndex.build(graph, EMBEDDINGS))
    found = explain(retriever.invoke("What of Her? <img src=x onerror=alert(2)>")[0], retriever)
    missed = why_not(retriever, "What of Her? <script>", EVIL + "2", k=1)
    for one in (found, missed):
        html = one._repr_html_()
        assert "<script>" not in html
        assert "<img src=x" not in html
        assert "<b>" not in html
        assert "\x1b" not in one.text
    assert len(missed.text.split("\n")) == 5


def test_facts_of_kg_retriever_say_which_part_found_them(index: GraphIndex) -> None:
    """Each further fact has its origin behind it, and an unsure reading says why it is unsure."""
    last = KGRetriever.from_index(index).invoke("Who directed Her?")[-1]
    explained = explain(last)
    assert {"near an entity of the question", "its text is near to the question"} & {
        fact.line.rpartition("(")[2].rstrip(")") for fact in explained.facts
    }
    assert [fact.part for fact in explained.facts] == last.metadata["details"]["parts"]
    (unsure,) = KGRetriever.from_index(index).invoke("Who quibbled Her?")
    assert "Not sure" in explain(unsure).text
