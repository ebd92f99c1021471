"""Templates from schemas and examples, and queries written from patterns and by models: by hand and by brute force."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda

import kg_retrievers
from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Known, Pattern, Question, Unknown
from kg_retrievers.algorithms.relation_paths import relation_path_ends
from kg_retrievers.database.schema import DatabaseSchema, NodeLabel, RelationType
from kg_retrievers.errors import (
    CypherGenerationError,
    CypherSafetyError,
    DatabaseQueryError,
    InvalidArgumentError,
    PatternError,
)
from kg_retrievers.graph.verbalize import approximate_tokens
from kg_retrievers.index import EntityLinker, question_entities
from kg_retrievers.methods.sg_rag import (
    LLMCypherWriter,
    PatternCypherWriter,
    TemplateCypherWriter,
    label_examples,
)
from kg_retrievers.methods.sg_rag.arrows import correct_directions
from kg_retrievers.methods.sg_rag.labelling import walk_pattern
from kg_retrievers.methods.sg_rag.queries import (
    check_properties,
    check_shows_facts,
)
from kg_retrievers.questions.operations import Directions, Edge
from kg_retrievers.testing import ScriptedChatModel

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
TYPED = DatabaseSchema(
    (NodeLabel("Film", "key", {"key": "STRING"}), NodeLabel("Person", "key", {"key": "STRING", "born": "INT64"})),
    (RelationType(BY, (("Film", "Person"),), {}), RelationType(STAR, (("Film", "Person"),), {"role": "STRING"})),
)


class OnPaper:
    """An executor that has a schema and runs nothing; `explain` refuses what is on a list."""

    dialect = "ladybug"

    def __init__(self, schema: DatabaseSchema = SCHEMA, refused: Mapping[str, str] | None = None) -> None:
        self._schema, self._refused, self.explained = schema, dict(refused or {}), list[str]()

    def schema(self, *, refresh: bool = False) -> DatabaseSchema:
        return self._schema

    def explain(self, query: str, parameters: Mapping[str, Any], *, timeout: float) -> None:
        self.explained.append(query)
        for part, reason in self._refused.items():
            if part in query:
                raise DatabaseQueryError(f"refused: {reason}", query, reason)


def ladybug(graph: KnowledgeGraph) -> Any:
    """Return an executor that runs what it is given."""
    pytest.importorskip("ladybug")
    return kg_retrievers.LadybugExecutor.from_graph(graph)


def asked(question: str, seeds: Sequence[str] = (), executor: Any = None, index: GraphIndex = INDEX) -> dict[str, Any]:
    entities = question_entities(EntityLinker(index, no_entity="empty"), question, seeds)
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


def numbered(*edges: tuple[str, str, str]) -> list[Edge]:
    return [Edge(head, [GRAPH.relations.find(relation)], tail) for head, relation, tail in edges]


@pytest.mark.parametrize(
    ("edges", "turned"),
    [
        ([("film", BY, "person"), ("film", YEAR, "year")], [False, False]),
        ([("person", BY, "film"), ("film", YEAR, "year")], [True, False]),
        ([("person", BY, "film"), ("year", YEAR, "film")], [True, True]),
        ([("Jonze", BY, "film")], [True]),
        ([("film", BY, "Jonze")], [False]),
        ([("2013", YEAR, "film"), ("person", BY, "film")], [True, True]),
        ([("2013", BY, "Jonze")], [False]),  # neither way
    ],
)
def test_directions_by_hand(edges: list[tuple[str, str, str]], turned: list[bool]) -> None:
    entities = {name: [GRAPH.entities.find(name)] for name in ("Jonze", "2013")}
    assert Directions(INDEX).correct(numbered(*edges), entities) == turned


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
    query = "MATCH (p)-[r0:parent_of]->(c) WHERE c.key IN $e0 RETURN p.key AS target, r0"
    pattern = Pattern.of((Unknown("x"), "parent_of", "Doris"), target="x")
    with ladybug(FAMILY) as executor:
        asks = asked("Who is a parent of Doris?", executor=executor, index=index)
        llm = ScriptedChatModel(replies=[query])
        for writer in (LLMCypherWriter(index, llm), PatternCypherWriter(index, fixed(pattern))):
            (row,) = writer.invoke(asks)
            assert executor.run(row["query"], row["parameters"]).rows == ()


@pytest.mark.parametrize(
    ("query", "corrected"),
    [
        ("(p)-[r:directed_by]->(f) WHERE p.key IN $e0", "(p)<-[r:directed_by]-(f) WHERE p.key IN $e0"),
        ("(f)<-[r:directed_by]-(p {key: $e1})", "(f)-[r:directed_by]->(p {key: $e1})"),
        ("(y)-[r:release_year]->(f)-[:directed_by]->(p)", "(y)<-[r:release_year]-(f)-[:directed_by]->(p)"),
        ("(p)-[r:starring|directed_by]->(f {key: 'x', key: $e1})", None),
        ("(p {key: $e1})-[r:starring|directed_by]->(f)", "(p {key: $e1})<-[r:starring|directed_by]-(f)"),
        ("(f)-[r:directed_by]->(p) WHERE $e0 = p.key", None),
        ("(f)-[r:directed_by]-(p) WHERE p.key IN $e0", None),
        ("(p)-[r:directed_by*1..2]->(f) WHERE p.key IN $e0", None),
        ("(p)-[r:!starring]->(f) WHERE p.key = $e1", None),
        ("(p)-[r:other]->(f) WHERE p.key = $e1", None),
        ("(p)-[r:directed_by]->(f) WHERE p.key = $e2", None),
        ("(p)-[r:directed_by]->(f) WHERE p.key = $e3", None),
    ],
)
def test_directions_of_queries(query: str, corrected: str | None) -> None:
    parameters = {"e0": ["Jonze"], "e1": "Jonze", "e2": "nobody", "e3": 7}
    found = correct_directions(f"MATCH {query} RETURN r", parameters, SCHEMA, Directions(INDEX))
    assert found == f"MATCH {corrected or query} RETURN r"


@pytest.mark.parametrize(
    ("query", "turned"),
    [
        ("MATCH (p)-[r:directed_by]->(f) WHERE NOT p.key IN $e0 RETURN r", False),
        ("MATCH (p)-[r:directed_by]->(f) WHERE NOT (p.key IN $e0) RETURN r", False),
        ("MATCH (p)-[r:directed_by]->(f) WHERE p.key IN $e0 OR p.key IN $e1 RETURN r", False),
        ("MATCH (p)-[r:directed_by]->(f) WHERE f.key <> 'x' XOR p.key IN $e0 RETURN r", False),
        ("MATCH (p)-[r:directed_by]->(f) WHERE p.key IN $e0 = false RETURN r", False),
        ("MATCH (p)-[r:directed_by]->(f) WHERE x.key IN $e0 RETURN r", False),
        ("MATCH (p)-[r:directed_by]->(f) WHERE f.key <> 'x' AND p.key IN $e0 RETURN r", True),
        ("MATCH (p WHERE p.key IN $e0)-[r:directed_by]->(f) RETURN r", True),
        ("MATCH (p) WHERE p.key IN $e0 AND NOT (p)-[r:directed_by]->() RETURN p", False),
        ("MATCH (p) WHERE p.key IN $e0 AND NOT EXISTS { MATCH (p)-[r:directed_by]->() } RETURN p", False),
        ("MATCH (p) WHERE p.key IN $e0 MATCH (p)-[r:directed_by]->(f) RETURN r", True),
        ("MATCH (p) WHERE p.key IN $e0 OPTIONAL MATCH (p)-[r:directed_by]->(f) RETURN r", True),
        ("OPTIONAL MATCH (p)-[r:directed_by]->(f) WHERE p.key IN $e0 RETURN r", False),
        ("MATCH (p) WHERE p.key IN $e0 RETURN p AS r UNION MATCH (p)-[r:directed_by]->(f) RETURN r", False),
        ("MATCH (p) RETURN p AS r UNION MATCH (p)-[r:directed_by]->(f) WHERE p.key IN $e0 RETURN r", True),
        ("MATCH (q) WHERE q.key IN $e0 WITH q AS p MATCH (p)-[r:directed_by]->(f) RETURN r", True),
        ("MATCH (p) WHERE p.key IN $e0 WITH *, 1 AS one MATCH (p)-[r:directed_by]->(f) RETURN r", True),
        ("MATCH (p) WHERE p.key IN $e0 WITH count(p) AS n MATCH (p)-[r:directed_by]->(f) RETURN r", False),
        ("MATCH (p:!Person)-[r:directed_by]->(f:!Film) RETURN r", False),
    ],
)
def test_only_what_a_query_requires_turns_its_arrows(query: str, turned: bool) -> None:
    corrected = query.replace("-[r:directed_by]->", "<-[r:directed_by]-") if turned else query
    for schema in (SCHEMA, TYPED):
        assert correct_directions(query, {"e0": ["Jonze"], "e1": ["Her"]}, schema, Directions(INDEX)) == corrected


def test_directions_by_labels() -> None:
    query = "MATCH (p:Person)-[r:directed_by]->(f:Film)<-[s:starring]-(q:Person) RETURN p.key AS target, r, s"
    corrected = "MATCH (p:Person)<-[r:directed_by]-(f:Film)-[s:starring]->(q:Person) RETURN p.key AS target, r, s"
    assert correct_directions(query, {}, TYPED, Directions(INDEX)) == corrected
    assert correct_directions(corrected, {}, TYPED, Directions(INDEX)) == corrected


# --- what queries may name and must show ------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", ["p.name", "p {name: 1}"])
def test_properties(name: str) -> None:
    query = "MATCH (p {name: 1})-[r]->(f) RETURN r" if "{" in name else f"MATCH (p)-[r]->(f) WHERE {name} = 1 RETURN r"
    with pytest.raises(CypherSafetyError, match="a property that the graph does not have"):
        check_properties(query, TYPED)
    check_properties("MATCH (p:Person {key: 'x'})-[r]->(f) WHERE p.born > 1 AND r.role = 'x' RETURN r", TYPED)
    check_properties("UNWIND [{name: 1}] AS row MATCH (p)-[r]->(f) WHERE p.born = row.name RETURN r", TYPED)


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


def ambiguous() -> GraphIndex:
    graph = KnowledgeGraph.from_triples(
        [("Dune 1", BY, "Lynch"), ("Dune 2", BY, "Villeneuve"), ("dune", BY, "Nobody")],
        labels={"Dune 1": "Dune", "Dune 2": "Dune"},
    )
    return GraphIndex.build(graph, HashedEmbeddings())


@pytest.mark.parametrize("triple", [("Her", BY, Unknown("x")), ("Her", Unknown("r"), Unknown("x"))])
def test_nothing_is_near_in_an_empty_graph(triple: Any) -> None:
    index = GraphIndex.build(KnowledgeGraph.from_triples([]), HashedEmbeddings())
    with pytest.raises(PatternError, match="empty"):
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
    pattern = walk_pattern(Known(question.split()[-1], **fields), [(name[1:], name[0] == ">") for name in relations])
    return Question(question, answers=tuple(answers), pattern=pattern)


def test_whether_walks_come_back_is_learned_from_answers() -> None:
    back = walk("What did they direct who directed Her", ["Adaptation", "Her"], f">{BY}", f"<{BY}")
    asked_for = asked("What did they direct who directed Adaptation")
    (row,) = TemplateCypherWriter(INDEX, [back]).invoke(asked_for)
    assert "id(n0) <> id(n2)" not in row["query"]
    (row,) = TemplateCypherWriter(INDEX, [back], distinct="known").invoke(asked_for)
    assert "id(n0) <> id(n2)" in row["query"]
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
        InvalidArgumentError, match=r"none of 1 examples has a pattern, .* 'nobody', an answer .* is no key"
    ):
        TemplateCypherWriter(INDEX, [Question("Who?", answers=("nobody",))])
    for examples in ("Who?", ["Who?"], 5):
        with pytest.raises(InvalidArgumentError, match="wanted a list of Question"):
            TemplateCypherWriter(INDEX, examples)  # type: ignore[arg-type]


# --- queries by a model -----------------------------------------------------------------------------------------------

GOOD = "MATCH (f)-[r0:directed_by]->(d) WHERE f.key IN $e0 RETURN d.key AS target, r0"


def written(*replies: Any, question: str = "Who directed Her?", executor: Any = None, **arguments: Any) -> Any:
    llm = ScriptedChatModel(replies=list(replies))
    rows = LLMCypherWriter(INDEX, llm, **arguments).invoke(asked(question, executor=executor))
    return rows, [messages[0].text for messages in llm.prompts]


async def test_a_query_by_a_model() -> None:
    executor = OnPaper()
    rows, prompts = written(GOOD, executor=executor)
    assert rows == [{"query": GOOD, "parameters": {"e0": ["Her"]}, "from": "llm"}]
    assert executor.explained == [GOOD]
    assert "(:Entity)-[:directed_by]->(:Entity)   for example Her -> Jonze" in prompts[0]
    assert '$e0 = ["Her"]\n' in prompts[0]
    llm = ScriptedChatModel(replies=[GOOD])
    assert await LLMCypherWriter(INDEX, llm).ainvoke(asked("Who directed Her?")) == rows


REPAIRED = [
    ("I cannot say.", "holds no query"),
    ("MATCH (f) DETACH DELETE f", "DETACH"),
    (f"{GOOD}; DROP TABLE Entity", "DROP"),
    ("LOAD FROM '/etc/passwd' RETURN *", "LOAD"),
    ("CALL db.labels() YIELD label RETURN label", "a procedure that is not allowed"),
    (GOOD.replace("(f)", "(f:Film)"), "a label that the graph does not have"),
    (GOOD.replace("directed_by", "DIRECTED"), "a relationship type that the graph does not have"),
    (GOOD.replace("f.key", "f.title"), "a property that the graph does not have"),
    (GOOD.replace("$e0", "$name"), "a parameter that is not given"),
    (GOOD.replace(", r0", ""), "returns no relationship"),
    (GOOD.replace("IN $e0", "= $e0"), "got '$e0' at line 1, column 47, a list, which is equal to no key. Write IN $e0"),
    (GOOD.replace("(f)", "(f {key: $e0})"), "Write IN $e0"),
    (GOOD.replace("f.key IN $e0", "toLower(f.key) = toLower($e0)"), "Write IN $e0"),
    (f"{GOOD} LIMIT $e0", "Write IN $e0"),
    (f"{GOOD} ORDER BY r0", "Cannot sort by a relationship"),
]


@pytest.mark.parametrize(("reply", "told"), REPAIRED)
def test_one_repair(reply: str, told: str) -> None:
    executor = OnPaper(refused={"ORDER BY r0": "Cannot sort by a relationship"})
    rows, prompts = written(reply, f"```\n{GOOD}\n```", executor=executor)
    assert rows[0]["query"] == GOOD
    assert reply in prompts[1]
    assert told in prompts[1].split("What is wrong with it:")[1]


def test_no_second_repair() -> None:
    with pytest.raises(CypherGenerationError) as caught:
        written("no", "MATCH (f) DETACH DELETE f")
    assert caught.value.reply == "MATCH (f) DETACH DELETE f"


async def test_the_database_is_read_beside_the_event_loop() -> None:
    class Watched(OnPaper):
        threads: set[int] = set()  # noqa: RUF012

        def schema(self, *, refresh: bool = False) -> DatabaseSchema:
            self.threads.add(threading.get_ident())
            return super().schema(refresh=refresh)

    examples = [Question("Who directed Arrival?", answers=("Villeneuve",))]
    writer = LLMCypherWriter(INDEX, ScriptedChatModel(replies=[GOOD]), examples=examples)
    await writer.ainvoke(asked("Who directed Her?", executor=Watched()))
    assert Watched.threads
    assert threading.get_ident() not in Watched.threads


def test_wrong_directions_need_no_repair() -> None:
    rows, prompts = written(GOOD.replace("-[r0:directed_by]->", "<-[r0:directed_by]-"))
    assert (rows[0]["query"], len(prompts)) == (GOOD, 1)


def test_other_meanings_get_the_same_query() -> None:
    index = ambiguous()
    llm = ScriptedChatModel(replies=[GOOD])
    rows = LLMCypherWriter(index, llm).invoke(asked("Who directed Dune?", executor=OnPaper(TYPED), index=index))
    assert [row["parameters"] for row in rows] == [{"e0": ["Dune 1", "Dune 2"]}, {"e0": ["dune"]}]
    assert "which is 'Dune'" in llm.prompts[0][0].text


def test_the_nearest_examples_are_shown() -> None:
    examples = [
        Question("Who directed Arrival?", answers=("Villeneuve",)),
        Question("When did Arrival come out?", answers=("2016",)),
        Question("Who starred in Arrival?", answers=("Adams",)),
        Question("Who wrote Adaptation?", answers=("Kaufman",)),
    ]
    _, prompts = written(GOOD, examples=examples)
    shown = prompts[0].split("These are of this database.")[1].split("Now the question")[0]
    assert shown.strip().startswith("Question: Who directed Arrival?")
    assert shown.count("Question:") == 3
    assert '$e0 = ["Arrival"]\nCypher:\nMATCH (n0)-[r0:`directed_by`]->(n1)\nWHERE n0.`key` IN $e0' in shown


VECTORS = DatabaseSchema(
    (
        NodeLabel(
            "Film", "key", {"key": "STRING", "plot_embedding": "LIST", "plot": "FLOAT[384]", "the year": "INT64"}
        ),
        NodeLabel("Person", "key", {"key": "STRING"}),
        NodeLabel("Planet", "key", {"key": "STRING"}),
    ),
    (
        RelationType(BY, (("Film", "Person"),), {"vectors": "DOUBLE[]", "since": "DATE"}),
        RelationType("ORBITS", (("Planet", "Planet"),), {}),
        RelationType("VISITED BY", (("Planet", "Person"), ("Planet", "Film")), {}),
    ),
)


def test_the_schema_that_is_shown() -> None:
    writer = LLMCypherWriter(INDEX, ScriptedChatModel(replies=[]))
    text = writer.describe_schema(VECTORS, "Who directed Her?", ["Her"])
    assert text.split("\n") == [
        "(:Film {key: STRING, `the year`: INT64}), its key is key",
        "(:Person {key: STRING}), its key is key",
        "(:Planet {key: STRING}), its key is key",
        "(:Film)-[:directed_by {since: DATE}]->(:Person)   for example Her -> Jonze",
        "(:Planet)-[:ORBITS]->(:Planet)",
        "(:Planet)-[:`VISITED BY`]->(:Person)",
        "(:Planet)-[:`VISITED BY`]->(:Film)",
    ]
    short = LLMCypherWriter(INDEX, ScriptedChatModel(replies=[]), max_schema_tokens=90)
    text = short.describe_schema(VECTORS, "Who directed Her?")
    assert "Planet" not in text
    assert text.endswith("(2 more relationship types are not shown)")
    bare = DatabaseSchema((ENTITY,), (RelationType("R", (), {}),))
    assert "()-[:R]->()" in short.describe_schema(bare, "?")
    assert "(:Entity" in short.describe_schema(DatabaseSchema((ENTITY,), ()), "?")


MANY = {f"property number {number}": "STRING" for number in range(3000)}
PAIRS = tuple((f"L{one}", f"M{other}") for one in range(50) for other in range(50))


@pytest.mark.parametrize("most", [20, 100, 1500])
@pytest.mark.parametrize(
    "schema",
    [
        DatabaseSchema((ENTITY,), (RelationType(BY, PAIRS, {}), RelationType("x" * 9000, PAIRS, {}))),
        DatabaseSchema((ENTITY,), (RelationType("x" * 9000, PAIRS, {}), RelationType("y", (), {}))),
        DatabaseSchema((NodeLabel("Entity", "key", MANY),), (RelationType(BY, (("Entity", "Entity"),), MANY),)),
        DatabaseSchema(tuple(NodeLabel(f"Label{number}", "key", {"key": "STRING"}) for number in range(3000)), ()),
    ],
)
def test_the_schema_that_is_shown_is_bounded(schema: DatabaseSchema, most: int) -> None:
    writer = LLMCypherWriter(INDEX, ScriptedChatModel(replies=[]), max_schema_tokens=most)
    text = writer.describe_schema(schema, "Who directed Her?", ["Her"])
    assert approximate_tokens(text) <= most
    assert "more" in text


def test_what_a_model_writer_wants() -> None:
    llm = ScriptedChatModel(replies=[])
    with pytest.raises(InvalidArgumentError, match="language model"):
        LLMCypherWriter(INDEX, "gpt")  # type: ignore[arg-type]
    for most in (0, "60", True):
        with pytest.raises(InvalidArgumentError, match="max_schema_tokens"):
            LLMCypherWriter(INDEX, llm, max_schema_tokens=most)  # type: ignore[arg-type]
    for name in ("prompt", "repair_prompt"):
        with pytest.raises(InvalidArgumentError, match=name):
            LLMCypherWriter(INDEX, llm, **{name: PromptTemplate.from_template("{question}")})  # type: ignore[arg-type]
