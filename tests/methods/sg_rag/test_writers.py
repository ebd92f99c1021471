"""Templates from schemas and examples, and queries written from patterns and by models: by hand and by brute force."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.runnables import RunnableLambda

import kg_retrievers
from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Known, Pattern, Question, Unknown
from kg_retrievers.algorithms.relation_paths import relation_path_ends
from kg_retrievers.database.schema import DatabaseSchema, NodeLabel, RelationType
from kg_retrievers.errors import CypherSafetyError, EntityLinkingError, InvalidArgumentError
from kg_retrievers.index import QuestionEntity, linker_of, question_entities
from kg_retrievers.methods.sg_rag.queries import check_shows_facts
from kg_retrievers.methods.sg_rag.writers import PatternCypherWriter, TemplateCypherWriter
from kg_retrievers.questions.labelling import label_examples, star_pattern

BY, STAR, YEAR, WROTE = "directed_by", "starring", "release_year", "written_by"
FILMS = [
    ("Her", BY, "Jonze"),
    ("Her", STAR, "Adams"),
    ("Her", YEAR, "2013"),
    ("Her", WROTE, "Jonze"),
    ("Adaptation", BY, "Jonze"),
    ("Adaptation", WROTE, "Kaufman"),
    ("Adaptation", YEAR, "2002"),
    ("Arrival", BY, "Villeneuve"),
    ("Arrival", STAR, "Adams"),
    ("Arrival", YEAR, "2016"),
]
TYPES = {
    **{film: ["film", "work"] for film in ("Her", "Adaptation", "Arrival")},
    **{person: ["person"] for person in ("Jonze", "Adams", "Kaufman", "Villeneuve")},
    "a novel": ["work"],
}
GRAPH = KnowledgeGraph.from_triples(FILMS, types=TYPES)
INDEX = GraphIndex.build(GRAPH, HashedEmbeddings())

ENTITY = NodeLabel("Entity", "key", {"key": "STRING", "label": "STRING", "types": "STRING[]"})
SCHEMA = DatabaseSchema(
    (ENTITY,), tuple(RelationType(name, (("Entity", "Entity"),), {}) for name in sorted(GRAPH.relations)), types="types"
)


class OnPaper:
    """An executor that has a schema and runs nothing."""

    dialect = "ladybug"

    def schema(self, *, refresh: bool = False) -> DatabaseSchema:
        return SCHEMA


def ladybug(graph: KnowledgeGraph) -> Any:
    """Return an executor that runs what it is given."""
    pytest.importorskip("ladybug")
    return kg_retrievers.LadybugExecutor.from_graph(graph)


def asked(question: str, seeds: Sequence[str] = (), executor: Any = None, index: GraphIndex = INDEX) -> dict[str, Any]:
    entities: list[QuestionEntity] = []
    with suppress(EntityLinkingError):
        entities = question_entities(linker_of(index), question, seeds)
    keys = [key for entity in entities for key in entity.entities[: entity.best]]
    return {"question": question, "seed_entities": keys, "entities": entities, "executor": executor or OnPaper()}


def shape(pattern: Pattern) -> list[str]:
    def name(term: Any) -> str:
        return f"_{':' + term.type if term.type else ''}" if isinstance(term, Known) else term.name[-1]

    return [f"{name(head)} {relation.text} {name(tail)}" for head, relation, tail in pattern.triples]  # type: ignore[union-attr]


# --- templates --------------------------------------------------------------------------------------------------------


FACTS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("rs"), st.sampled_from("abcd")), min_size=1, max_size=8
)


@given(FACTS, st.booleans())
@settings(max_examples=60, deadline=None)
def test_ends_of_relation_paths_against_brute_force(facts: list[tuple[str, str, str]], bounded: bool) -> None:
    graph = KnowledgeGraph.from_triples(facts)
    steps = [(h, (r, True), t) for h, r, t in set(facts)] + [(t, (r, False), h) for h, r, t in set(facts)]
    start = facts[0][0]
    expected: dict[tuple[Any, ...], set[str]] = {}
    for walk in [*product(steps, repeat=1), *product(steps, repeat=2)]:
        here = start
        for origin, _, there in walk:
            here = there if here == origin and there != start else ""
        if here:
            expected.setdefault(tuple(way for _, way, _ in walk), set()).add(here)
    number = graph.entities.find(start)
    found = {
        tuple((graph.relations[label >> 1], label & 1 == 0) for label in path): {graph.entities[end] for end in ends}
        for path, ends in relation_path_ends(graph.adjacency, np.array([number]), max_hops=2, without=number)
    }
    assert found == expected
    if bounded:
        none = relation_path_ends(graph.adjacency, np.array([number]), max_hops=2, max_entries=0)
        assert list(none) == []


def test_examples_get_the_template_that_answers_them() -> None:
    kept = Pattern.of(("Her", YEAR, Unknown("year")), target="year")
    labelled = label_examples(
        INDEX,
        [
            Question("Who directed films with Adams?", answers=("Jonze", "Villeneuve")),
            Question("What else did the director of Her direct?", seed_entities=("Her",), answers=("Adaptation",)),
            Question("When was Her released?", pattern=kept),
            Question("Which film is by nobody?", answers=("Her",)),
            Question("Who directed Her?", answers=("somebody else",)),
            Question("And it?", seed_entities=("Her",), answers=("2013",)),
        ],
    )
    shapes = [shape(example.pattern) if example.pattern else None for example in labelled]
    assert shapes[0] == ["1 starring _", "1 directed_by 2"]
    assert shapes[1] == ["_ directed_by 1", "2 directed_by 1"]
    assert labelled[2].pattern is kept
    assert shapes[3:] == [None, None, None]


def test_of_templates_with_the_same_answers_the_words_decide() -> None:
    wrote, directed = label_examples(
        INDEX,
        [Question("Who is the writer of Her?", answers=("Jonze",)), Question("Who directed Her?", answers=("Jonze",))],
    )
    assert (shape(wrote.pattern), shape(directed.pattern)) == (["_ written_by 1"], ["_ directed_by 1"])  # type: ignore[arg-type]


# --- directions -------------------------------------------------------------------------------------------------------


FAMILY = KnowledgeGraph.from_triples(
    [
        ("Anna", "parent_of", "Berta"),
        ("Berta", "parent_of", "Carla"),
        ("Doris", "parent_of", "Emma"),
        ("Emma", BY, "Fritz"),
    ]
)


def test_the_answer_none_is_not_turned_into_the_opposite_fact() -> None:
    index = GraphIndex.build(FAMILY, HashedEmbeddings())
    pattern = Pattern.of((Unknown("x"), "parent_of", "Doris"), target="x")
    with ladybug(FAMILY) as executor:
        asks = asked("Who is a parent of Doris?", executor=executor, index=index)
        (row,) = PatternCypherWriter(index, fixed(pattern)).invoke(asks)
        assert executor.run(row["query"], row["parameters"]).rows == ()


# --- what queries must show -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (f)-[r]->(p) RETURN p.key AS target, r",
        "MATCH p = (a)-[:starring]->(b) RETURN p",
        "MATCH p = (a)-[:starring]->(b) RETURN relationships(p) AS facts",
        "MATCH (f)-[r]->(p) RETURN *",
        "MATCH (f)-[r]->(p) WITH f, collect(r) AS facts UNWIND facts AS fact RETURN f.key, fact",
        "MATCH (f)-[r]->(p) RETURN r UNION MATCH (f)<-[r]-(p) RETURN r",
    ],
)
def test_queries_that_show_facts(query: str) -> None:
    check_shows_facts(query)


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (f)-[:starring]->(p) RETURN p.key",
        "MATCH (f)-[r]->(p) RETURN p.key",
        "MATCH (f)-[r]->(p) WITH p RETURN p",
        "MATCH (f)-[r]->(p) RETURN p.key AS target, count(r) AS films",
        "MATCH (f)-[r]->(p) WITH p, r.role AS role RETURN p, role",
        "MATCH (f)-[r]->(p) RETURN r UNION MATCH (f)<-[r]-(p) RETURN p AS r",
    ],
)
def test_queries_that_show_none(query: str) -> None:
    with pytest.raises(CypherSafetyError, match="returns no relationship"):
        check_shows_facts(query)


# --- queries from patterns --------------------------------------------------------------------------------------------


def fixed(pattern: Pattern) -> RunnableLambda[Any, Pattern]:
    return RunnableLambda(lambda input: pattern)


def test_a_pattern_becomes_a_query() -> None:
    pattern = Pattern.of(("Jonze", "directed by", Unknown("film", "film")), target="film", source="llm")
    (row,) = PatternCypherWriter(INDEX, fixed(pattern)).invoke(asked("What did Jonze direct?"))
    assert row["query"].startswith("MATCH (n0)-[r0:`directed_by`]->(n1)\nWHERE ")  # the graph's name, and turned
    assert row["parameters"] == {"n1": "Jonze", "n0_type": "film"}
    assert row["from"] == "llm"


def test_names_that_are_not_linked_become_the_nearest() -> None:
    pattern = Pattern.of(("Adaptatoin", BY, Unknown("x")), (Unknown("x"), Unknown("somehow"), "Kaufman"), target="x")
    rows = PatternCypherWriter(INDEX, fixed(pattern)).invoke(asked("?"))
    assert rows[0]["parameters"] == {"n0": "Adaptation", "n2": "Kaufman"}
    assert len(rows) == 5
    assert "]->(" not in rows[0]["query"]  # the relation is unknown, and so is its direction


def test_types_that_the_graph_lacks_are_left_out() -> None:
    pattern = Pattern.of(
        (Known("Her", "motion picture"), BY, Unknown("x", "human")),
        target="x",
        different=[(Known("Her", "motion picture"), Unknown("x", "human"))],
    )
    (row,) = PatternCypherWriter(INDEX, fixed(pattern)).invoke(asked("Who directed Her?"))
    assert row["parameters"] == {"n0": "Her"}


@pytest.mark.parametrize("triple", [("Her", BY, Unknown("x")), ("Her", Unknown("r"), Unknown("x"))])
def test_nothing_is_near_in_an_empty_graph(triple: Any) -> None:
    index = GraphIndex.build(KnowledgeGraph.from_triples([]), HashedEmbeddings())
    with pytest.raises(EntityLinkingError, match="which the graph lacks"):
        PatternCypherWriter(index, fixed(Pattern.of(triple))).invoke(asked("?", index=index))


async def test_templates_of_the_nearest_example() -> None:
    writer = TemplateCypherWriter(
        INDEX,
        [
            Question("Who directed films with Adams?", answers=("Jonze", "Villeneuve")),
            Question("When did films with Adams come out?", answers=("2013", "2016")),
        ],
    )
    asks = asked("When did the films with Kaufman come out?")
    row, wider = writer.invoke(asks)
    assert [row, wider] == await writer.ainvoke(asks)
    assert (row["from"], wider["widened"]) == ("examples", True)
    assert "`release_year`" in row["query"]
    assert row["parameters"] == {"n1": "Kaufman"}


def walk(question: str, answers: Sequence[str], *relations: str, **fields: Any) -> Question:
    steps = [(name[1:], name[0] == ">") for name in relations]
    pattern = star_pattern([(Known(question.split()[-1], **fields), steps)])
    return Question(question, answers=tuple(answers), pattern=pattern)


def test_whether_walks_come_back_is_learned_from_answers() -> None:
    back = walk("What did they direct who directed Her", ["Adaptation", "Her"], f">{BY}", f"<{BY}")
    asked_for = asked("What did they direct who directed Adaptation")
    (row,) = TemplateCypherWriter(INDEX, [back]).invoke(asked_for)
    assert "id(n0) <> id(n2)" not in row["query"]
    onward = replace(back, answers=("Adaptation",))
    (row,) = TemplateCypherWriter(INDEX, [onward]).invoke(asked_for)
    assert "id(n0) <> id(n2)" in row["query"]
    alone = [replace(one, pattern=None) for one in (back, onward)]
    for example, learned in zip(alone, (True, False), strict=True):
        (row,) = TemplateCypherWriter(INDEX, [example]).invoke(asked_for)
        assert ("id(n0) <> id(n2)" not in row["query"]) is learned


def test_where_nothing_tells_the_wider_query_comes_last() -> None:
    pattern = Pattern.of(("Arrival", BY, Unknown("x")), (Unknown("film"), BY, Unknown("x")), target="film")
    writer = PatternCypherWriter(INDEX, RunnableLambda(lambda _: pattern))
    first, second = writer.invoke(asked("What did the director of Arrival direct?"))
    assert "id(n0) <> id(n2)" in first["query"]
    assert "widened" not in first
    assert "id(n0) <> id(n2)" not in second["query"]
    assert second["widened"] is True
    (only,) = writer.invoke(asked("What else did the director of Arrival direct?"))
    assert only["query"] == first["query"]
    (stated,) = PatternCypherWriter(INDEX, RunnableLambda(lambda _: replace(pattern, revisits=True))).invoke(
        asked("What else did the director of Arrival direct?")
    )
    assert stated["query"] == second["query"]


BELLS = [("Bell One", "cast by", "Ida"), ("Bell One", "hangs in", "Kiel"), ("Bell Two", "cast by", "Ida")]
BELLS += [("Bell Two", "hangs in", "Riga"), ("Bell Three", "cast by", "Otto"), ("Bell Three", "hangs in", "Kiel")]


def test_examples_of_several_entities_with_answers_alone_are_stars() -> None:
    index = GraphIndex.build(KnowledgeGraph.from_triples(BELLS), HashedEmbeddings())
    examples = [
        Question("Which bell cast by Ida hangs in Kiel?", answers=("Bell One",)),
        Question("Which bell cast by Ida hangs in Riga?", answers=("Bell Two",)),
    ]
    for example in label_examples(index, examples):
        assert example.pattern is not None
        bell, (maker, place) = Unknown("entity 1"), example.text[:-1].split(" by ")[1].split(" hangs in ")
        assert example.pattern == Pattern.of((bell, "cast by", maker), (bell, "hangs in", place), target="entity 1")
    one = Question("Who cast the bells with that of Riga?", answers=("Ida",))
    (labelled,) = label_examples(index, [one])
    assert labelled.pattern is not None
    assert len([node for node in labelled.pattern.nodes if isinstance(node, Known)]) == 1


def test_writers_say_what_they_want() -> None:
    with pytest.raises(InvalidArgumentError, match="generator of patterns"):
        PatternCypherWriter(INDEX, "examples")  # type: ignore[arg-type]
    with pytest.raises(
        InvalidArgumentError, match=r"none of 1 examples has a pattern, .* gold answers match no entity .* 'nobody'"
    ):
        TemplateCypherWriter(INDEX, [Question("Who?", answers=("nobody",))])
    for examples in ("Who?", ["Who?"], 5):
        with pytest.raises(InvalidArgumentError, match="wanted a list of Question"):
            TemplateCypherWriter(INDEX, examples)  # type: ignore[arg-type]
