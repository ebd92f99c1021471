"""Cypher templates that a person wrote: those of table 3, against a plain rendering of sections 4.1 and 5.3."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any

import pytest

from kg_retrievers import CypherRetriever, GraphIndex, HashedEmbeddings, KnowledgeGraph, LadybugExecutor, Question
from kg_retrievers.database.grammar import read
from kg_retrievers.database.schema import DatabaseSchema, NodeLabel, RelationType
from kg_retrievers.database.splicing import tags_of
from kg_retrievers.errors import CypherSafetyError, EntityLinkingError, InvalidArgumentError, LowConfidenceError
from kg_retrievers.methods.sg_rag import CypherTemplate, HandWrittenCypherWriter
from kg_retrievers.methods.sg_rag.metaqa import TAIL_LABELS, category_query, label_metaqa, metaqa_templates
from kg_retrievers.methods.sg_rag.template_queries import TemplateQuery

#: Table 3: for each category a question of ours, and the template, letter by letter but for blanks.
TABLE_3 = {
    "movie_to_language": (
        "in which language is <entity>",
        'MATCH (m:Movie)-[r:IN_LANGUAGE]->(l:Language) WHERE m.name="<entity>" RETURN m, r, l',
    ),
    "director_to_movie": (
        "what did <entity> direct",
        'MATCH (m:Movie)-[r:DIRECTED_BY]->(d:People) WHERE d.name="<entity>" RETURN m, r, d',
    ),
    "writer_to_movie_to_genre": (
        "of which genres are the films that <entity> wrote",
        "MATCH (w:People)<-[r1:WRITTEN_BY]-(m:Movie) -[r2:HAS_GENRE]->(g:Genre) "
        'WHERE w.name="<entity>" RETURN w, r1, m, r2, g',
    ),
    "actor_to_movie_to_year": (
        "when were the films with <entity> released",
        "MATCH (a:People)<-[r1:STARRED_ACTORS]-(m:Movie) -[r2:RELEASE_YEAR]->(y:Year) "
        'WHERE a.name="<entity>" RETURN a, r1, m, r2, y',
    ),
    "movie_to_director_to_movie_to_actor": (
        "who acted in the other films of the director of <entity>",
        "MATCH (m1:Movie)-[r1:DIRECTED_BY]->(d:People) <-[r2:DIRECTED_BY]-(m2:Movie) "
        '-[r3:STARRED_ACTORS]->(a:People) WHERE m1.name="<entity>" RETURN m1, r1, d, r2, m2, r3, a',
    ),
    "movie_to_writer_to_movie_to_language": (
        "in which languages are the other films of the writer of <entity>",
        "MATCH (m1:Movie)-[r1:WRITTEN_BY]->(w:People) <-[r2:WRITTEN_BY]-(m2:Movie) "
        '-[r3:IN_LANGUAGE]->(l:Language) WHERE m1.name="<entity>" RETURN m1, r1, w, r2, m2, r3, l',
    ),
}
TEMPLATES = [CypherTemplate(query, (question,)) for question, query in TABLE_3.values()]
FILMS, PEOPLE = ["Alpha", "Beta", "Gamma"], ["Ann Lee", "Bob Ray", "Carl May"]
NAMES = {"People": PEOPLE, "Language": ["German", "Thai"], "Genre": ["Drama", "Western"], "Year": ["1999", "2001"]}


def random_films(seed: int) -> list[tuple[str, str, str]]:
    draw = random.Random(seed)
    relations = ["directed_by", "written_by", "starred_actors", "in_language", "has_genre", "release_year"]
    facts = product(FILMS, relations, range(3))
    drawn = ((film, relation, draw.choice(NAMES[TAIL_LABELS[relation]])) for film, relation, _ in facts)
    return sorted({fact for fact in drawn if draw.random() < 0.8})


def plain_subgraphs(facts: Sequence[tuple[str, str, str]], kind: str, entity: str) -> list[tuple[Any, str]]:
    """Render a category by hand: all walks from the entity, each fact once in each, with their ends."""
    steps = kind.split("_to_")
    words = {"director": "directed_by", "writer": "written_by", "actor": "starred_actors"}
    words |= {"language": "in_language", "genre": "has_genre", "year": "release_year"}
    walks: list[tuple[tuple[tuple[str, str, str], ...], str]] = [((), entity)]
    for here, there in pairwise(steps):
        relation = words[there if here == "movie" else here]
        walks = [
            ((*walk, fact), fact[2] if here == "movie" else fact[0])
            for walk, end in walks
            for fact in facts
            if fact[1] == relation and fact[0 if here == "movie" else 2] == end and fact not in walk
        ]
    return walks


@pytest.mark.parametrize("seed", range(3))
def test_table_3_gives_the_subgraphs_of_a_plain_rendering(seed: int) -> None:
    facts = random_films(seed)
    index = GraphIndex.build(label_metaqa(KnowledgeGraph.from_triples(facts)), HashedEmbeddings())
    writer = HandWrittenCypherWriter(index, TEMPLATES)
    found_some = False
    with LadybugExecutor.from_graph(index.graph) as executor:
        retriever = CypherRetriever.from_index(index, preset="paper", writer=writer, executor=executor)
        for kind, (question, _) in TABLE_3.items():
            for entity in FILMS if kind.startswith("movie") else PEOPLE:
                if entity not in index.graph.entities:
                    continue
                documents = retriever.invoke(question.replace("<entity>", entity))
                found = [(document.metadata["triples"], document.metadata["answers"]) for document in documents]
                plain = [([list(fact) for fact in walk], [end]) for walk, end in plain_subgraphs(facts, kind, entity)]
                assert Counter(map(str, found)) == Counter(map(str, plain))
                found_some |= bool(found)
                if found:
                    assert documents[0].metadata["details"]["rows"] == len(documents)
                    assert documents[0].metadata["details"]["example"] == {"question": question, "distance": 0.0}
    assert found_some


@pytest.mark.parametrize("kind", TABLE_3)
def test_templates_of_categories_are_those_of_table_3(kind: str) -> None:
    assert without_names(category_query(kind)) == without_names(TABLE_3[kind][1])


def without_names(query: str) -> set[tuple[str, str, str]]:
    """Return the arrows of a query between labels, each as it points: the variables have other names."""
    tokens, root = read(query)
    words = {node: tags[0].name for node in root.walk() if (tags := tags_of(tokens, node))}
    (path,) = (node for node in root.walk() if node.rule == "path")
    steps = set()
    for one, arrow, other in zip(path.inside[::2], path.inside[1::2], path.inside[2::2], strict=False):
        backward = tokens[arrow.start].text == "<"
        head, tail = (other, one) if backward else (one, other)
        steps.add((words[head], words[arrow], words[tail]))
    return steps


def test_metaqa_templates_mask_the_entity() -> None:
    questions = [
        Question("what did Ann Lee direct", ("Ann Lee",), kind="director_to_movie"),
        Question("what did Bob Ray direct", ("Bob Ray",), kind="director_to_movie"),
        Question("films by Bob Ray", ("Bob Ray",), kind="director_to_movie"),
        Question("in which language is Alpha", ("Alpha",), kind="movie_to_language"),
    ]
    first, second = metaqa_templates(questions)
    assert first.questions == ("what did <entity> direct", "films by <entity>")
    assert second.questions == ("in which language is <entity>",)
    with pytest.raises(InvalidArgumentError, match="has no category"):
        metaqa_templates([Question("what did Ann Lee direct", ("Ann Lee",))])


def test_labels_of_metaqa() -> None:
    graph = label_metaqa(KnowledgeGraph.from_triples([("1999", "release_year", "1999"), ("1999", "written_by", "Ann")]))
    assert graph.types_of("1999") == ["Movie", "Year"]
    with pytest.raises(InvalidArgumentError, match="no relation 'likes'"):
        label_metaqa(KnowledgeGraph.from_triples([("a", "likes", "b")]))


# --- a template -------------------------------------------------------------------------------------------------------


class Database:
    """A schema with a dialect, as far as filling a template asks."""

    def __init__(self, dialect: str, schema: DatabaseSchema) -> None:
        self.dialect, self._schema = dialect, schema

    def schema(self) -> DatabaseSchema:
        return self._schema


MOVIES = Database(
    "neo4j",
    DatabaseSchema(
        (NodeLabel("Movie", "title", {"title": "STRING"}), NodeLabel("People", "name", {"name": "STRING"})),
        (RelationType("DIRECTED_BY", (("Movie", "People"),), {}),),
    ),
)
EMBEDDED = Database(
    "ladybug",
    DatabaseSchema(
        (NodeLabel("Entity", "key", dict.fromkeys(("key", "label", "types", "aliases"), "STRING")),),
        (RelationType("directed by", (("Entity", "Entity"),), {}),),
        label="label",
        types="types",
        type_labels=("movie", "People"),
    ),
)


def fill(query: str, database: Database, **entities: list[str]) -> tuple[str, dict[str, Any]]:
    given = {f"<{name.replace('_', ' ')}>": keys for name, keys in entities.items()}
    filled = TemplateQuery(query).fill(given, database, str.upper)  # type: ignore[arg-type]
    return " ".join(filled[0].split()), filled[1]


def test_neo4j_keeps_its_names() -> None:
    query = 'MATCH (m:Movie)-[r:DIRECTED_BY]->(d:People) WHERE d.name="<entity>" RETURN m, r, d'
    assert fill(query, MOVIES, entity=["Ann"]) == (
        "MATCH (m:Movie)-[r:DIRECTED_BY]->(d:People) WHERE d.name IN $e0 RETURN m AS target, r, d",
        {"e0": ["Ann"]},
    )


def test_names_of_the_embedded_database() -> None:
    query = "MATCH (m:Movie)-[r:DIRECTED_BY]->(d:People) WHERE d.name = '<entity>' RETURN m.name AS target, r"
    assert fill(query, EMBEDDED, entity=["Q1", "Q2"]) == (
        "MATCH (m:`movie`)-[r:`directed by`]->(d:People) WHERE d.key IN $e0 RETURN m.label AS target, r",
        {"e0": ["Q1", "Q2"]},
    )


def test_a_property_that_is_no_key_is_compared_with_labels() -> None:
    query = 'MATCH (m)-[r]->(d) WHERE d.label = "<entity>" RETURN r, d, m'
    assert fill(query, EMBEDDED, entity=["Q1", "q1"]) == (
        "MATCH (m)-[r]->(d) WHERE d.label IN $e0_names RETURN r, d, m AS target",
        {"e0_names": ["Q1"]},
    )


def test_several_entities_and_relationships_that_may_be_the_same() -> None:
    query = (
        "MATCH (a)-[r:`directed by`]->(m)<-[s:DIRECTED_BY]-(b), (m)-[t:likes]->(c)-[u:X*1..2]->() "
        'WHERE a.key = "<entity 1>" OR b.key = "<entity 2>" RETURN r, s, m'
    )
    assert fill(query, EMBEDDED, entity_1=["A"], entity_2=["B"]) == (
        "MATCH (a)-[r:`directed by`]->(m)<-[s:`directed by`]-(b), (m)-[t:likes]->(c)-[u:X*1..2]->() "
        "WHERE (a.key IN $e0 OR b.key IN $e1) AND id(`r`) <> id(`s`) RETURN r, s, m AS target",
        {"e0": ["A"], "e1": ["B"]},
    )


def test_the_target_is_the_users() -> None:
    text, _ = TemplateQuery('MATCH (m)-[r]->(d) WHERE d.key = "<entity>" RETURN r, m, d', "d").fill(
        {"<entity>": ["A"]},
        EMBEDDED,  # type: ignore[arg-type]
        str,
    )
    assert text.endswith("RETURN r, m, d AS target")
    with pytest.raises(InvalidArgumentError, match="does not return its target"):
        CypherTemplate('MATCH (m)-[r]->(d) WHERE d.key = "<entity>" RETURN r, m', ("<entity>",), target="d")


@pytest.mark.parametrize(
    ("query", "questions", "words"),
    [
        ('MATCH (m {name: "<entity>"})-[r]->() RETURN r', ("who is <entity>",), "no property is compared"),
        ('MATCH (m)-[r]->() WHERE "<entity>" = m.name RETURN r', ("who is <entity>",), "no property is compared"),
        ('MATCH (m)-[r]->() WHERE m.name = "<entity>" RETURN r', ("who is it",), "other places"),
        ("MATCH (m)-[r]->() RETURN r", ("who is <entity>",), "other places"),
        ("MATCH (m)-[r]->() RETURN r", (), "tuple of one text"),
        ("MATCH (m)-[r]->() RETURN r", "who is it", "tuple of one text"),
    ],
)
def test_wrong_templates(query: str, questions: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        CypherTemplate(query, questions)


def test_a_template_only_reads() -> None:
    with pytest.raises(CypherSafetyError):
        CypherTemplate("MATCH (m) DETACH DELETE m", ("delete all",))


# --- the writer -------------------------------------------------------------------------------------------------------

INDEX = GraphIndex.build(
    label_metaqa(
        KnowledgeGraph.from_triples([("Alpha", "directed_by", "Ann Lee"), ("Beta", "directed_by", "Ann Lee")])
    ),
    HashedEmbeddings(),
)


def test_the_nearest_question_of_any_template_is_taken() -> None:
    templates = [
        CypherTemplate(TABLE_3["director_to_movie"][1], ("what did <entity> direct", "films made by <entity>")),
        CypherTemplate(
            'MATCH (m)-[r:directed_by]->(d) WHERE m.key = "<entity>" RETURN d, r', ("who directed <entity>",)
        ),
    ]
    retriever = CypherRetriever.from_index(INDEX, preset="paper", writer=HandWrittenCypherWriter(INDEX, templates))
    films = retriever.invoke("films made by Ann Lee")
    assert [one.metadata["answers"] for one in films] == [["Alpha"], ["Beta"]]
    assert films[0].metadata["details"]["from"] == "template"
    (document,) = retriever.invoke("who directed Alpha")
    assert document.metadata["answers"] == ["Ann Lee"]
    merged = CypherRetriever.from_index(INDEX, preset="paper", ties="merge", writer=retriever.writer)
    assert [one.metadata["answers"] for one in merged.invoke("films made by Ann Lee")] == [["Alpha", "Beta"]]


def test_two_entities_and_none() -> None:
    joined = CypherTemplate(
        'MATCH (m)-[r:directed_by]->(d) WHERE m.key = "<entity 1>" AND d.key = "<entity 2>" RETURN r, m',
        ("did <entity 2> direct <entity 1>",),
        target="m",
    )
    every = CypherTemplate("MATCH (m:Movie)-[r]->(d) RETURN m, r", ("list all films",))
    retriever = CypherRetriever.from_index(INDEX, writer=HandWrittenCypherWriter(INDEX, [joined, every]))
    (document,) = retriever.invoke("did Ann Lee direct Beta")
    assert document.metadata["triples"] == [["Beta", "directed_by", "Ann Lee"]]


def test_refusals() -> None:
    writer = HandWrittenCypherWriter(INDEX, TEMPLATES[1:2])
    retriever = CypherRetriever.from_index(INDEX, writer=writer, on_refusal="raise")
    with pytest.raises(LowConfidenceError):
        retriever.invoke("is the weather in Alpha better than it was a long time ago")
    with pytest.raises(EntityLinkingError, match="every template needs more"):
        HandWrittenCypherWriter(INDEX, TEMPLATES).invoke({"question": "who?", "entities": [], "executor": None})
    strange = CypherTemplate('MATCH (m:Film)-[r]->(d) WHERE m.key = "<entity>" RETURN r, d', ("who made <entity>",))
    with pytest.raises(CypherSafetyError, match="a label that the graph does not have"):
        CypherRetriever.from_index(INDEX, writer=HandWrittenCypherWriter(INDEX, [strange])).invoke("who made Alpha")
    with pytest.raises(InvalidArgumentError, match="one CypherTemplate or more"):
        HandWrittenCypherWriter(INDEX, [])
