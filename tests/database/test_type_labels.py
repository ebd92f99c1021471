"""Types that queries name like labels, in the embedded database: by hand, and against plain sets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kg_retrievers import CypherRetriever, GraphIndex, HashedEmbeddings, KnowledgeGraph, LadybugExecutor
from kg_retrievers.database.ladybug import DatabaseQueryError
from kg_retrievers.errors import CypherSafetyError

TYPES = {
    "Her": ["Movie"],
    "Tenet": ["Movie", "Hit film"],
    "Jonze": ["People"],
    "Nolan": ["People", "Entity"],
    "London": ["It's"],
}
FACTS = [("Her", "by", "Jonze"), ("Tenet", "by", "Nolan"), ("Nolan", "from", "London"), ("Jonze", "likes", "Tenet")]
GRAPH = KnowledgeGraph.from_triples(FACTS, types=TYPES)


@pytest.fixture(scope="module")
def executor() -> Iterator[LadybugExecutor]:
    with LadybugExecutor.from_graph(GRAPH) as executor:
        yield executor


def keys(executor: LadybugExecutor, query: str) -> list[tuple[str, ...]]:
    return list(executor.run(query).rows)


def test_the_schema_tells_the_types(executor: LadybugExecutor) -> None:
    assert executor.schema().type_labels == ("Entity", "Hit film", "It's", "Movie", "People")
    assert [label.name for label in executor.schema().labels] == ["Entity"]


@pytest.mark.parametrize(
    ("labels", "holds"),
    [
        (":Movie", lambda t: "Movie" in t),
        (" IS Movie", lambda t: "Movie" in t),
        (":`It's`", lambda t: "It's" in t),
        (":Movie|People", lambda t: bool({"Movie", "People"} & t)),
        (":Movie:`Hit film`", lambda t: {"Movie", "Hit film"} <= t),
        (":Movie&!`Hit film`", lambda t: "Movie" in t and "Hit film" not in t),
        (":(Movie|People)&!`Hit film`", lambda t: bool({"Movie", "People"} & t) and "Hit film" not in t),
        (":!Movie&%", lambda t: "Movie" not in t),
        (":Entity&Movie", lambda t: "Movie" in t),  # a label of the database is one, whatever a type is called
        (":Entity", lambda t: True),
    ],
)
def test_labels_of_nodes(executor: LadybugExecutor, labels: str, holds: object) -> None:
    wanted = [(key,) for key in sorted(TYPES) if holds({*TYPES[key]})]  # type: ignore[operator]
    assert keys(executor, f"MATCH (n{labels}) RETURN n.key") == wanted


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("MATCH (:Movie)-[r:by]->(p:People) RETURN p.key", [("Jonze",), ("Nolan",)]),
        ("MATCH (m:Movie)-[:by]->(p) WHERE p.key = 'Nolan' OR m.key = 'Her' RETURN m.key", [("Her",), ("Tenet",)]),
        (
            "MATCH (n) OPTIONAL MATCH (n)-[:by]->(p:People) WHERE p.key <> 'Nolan' RETURN n.key, p.key",
            [("Her", "Jonze"), ("Jonze", None), ("London", None), ("Nolan", None), ("Tenet", None)],
        ),
        ("MATCH (n) WHERE (n)-[:likes]->(:Movie) RETURN n.key", [("Jonze",)]),
        ("MATCH (n) WHERE NOT (n)-[:by]->(:People) AND (n)-[:`from`]->() RETURN n.key", [("Nolan",)]),
        ("MATCH (n) WHERE EXISTS { MATCH (n)-[:by]->(p:People) WHERE p.key = 'Nolan' } RETURN n.key", [("Tenet",)]),
        ("MATCH (n:Movie) WHERE (n)<-[:likes]-(:People) RETURN n.key", [("Tenet",)]),
        ("MATCH (n) WHERE n:Movie AND NOT n:`Hit film` RETURN n.key", [("Her",)]),
        ("MATCH (`a b`:Movie {key: 'Her'}) RETURN `a b`.key", [("Her",)]),
        (
            "MATCH (m:Movie) WITH m MATCH (m)-[:by]->(p:People) RETURN m.key, p.key",
            [("Her", "Jonze"), ("Tenet", "Nolan")],
        ),
        (
            "MATCH (m:`Hit film`) RETURN m.key AS k UNION MATCH (p:People) RETURN p.key AS k",
            [("Jonze",), ("Nolan",), ("Tenet",)],
        ),
        ("MATCH (typed0:Movie)-[:by]->(:People) RETURN typed0.key", [("Her",), ("Tenet",)]),
        ("MATCH (n) WHERE n.key = 'Movie' RETURN n.key", []),
    ],
)
def test_where_labels_can_stand(executor: LadybugExecutor, query: str, wanted: list[tuple[str, ...]]) -> None:
    assert sorted(keys(executor, query), key=str) == sorted(wanted, key=str)


def test_what_is_no_type_is_refused(executor: LadybugExecutor) -> None:
    with pytest.raises(DatabaseQueryError, match="Film"):
        executor.run("MATCH (n:Film) RETURN n.key")
    with pytest.raises(DatabaseQueryError, match=r"Movie|Film"):
        executor.run("MATCH (n:Movie|Film) RETURN n.key")


def test_queries_that_are_given_or_written_may_name_types() -> None:
    index = GraphIndex.build(GRAPH, HashedEmbeddings())
    retriever = CypherRetriever.from_index(index)
    query = "MATCH (m:Movie)-[r:by]->(p:People) RETURN p AS target, r"
    assert retriever.invoke("Who made films?", cypher=query)[0].metadata["answers"] == ["Jonze", "Nolan"]
    with pytest.raises(CypherSafetyError, match=r"Film.*one of.*Movie"):
        retriever.invoke("Who made films?", cypher=query.replace("Movie", "Film"))
