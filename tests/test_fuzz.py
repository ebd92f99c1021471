"""Mutants of queries and of models' replies, for as long as asked: `make fuzz SECONDS=600`.

The environment variables KG_RETRIEVERS_FUZZ_SECONDS (60) and KG_RETRIEVERS_FUZZ_SEED (0) say how long in all, and with
which mutants.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from kg_retrievers.core import facts_prompt, path_prompt, replies
from kg_retrievers.database import check_read_only, limited, tokenize
from kg_retrievers.errors import CypherSafetyError, KGRetrieversError
from kg_retrievers.methods.rog.prompts import parse_relation_paths
from kg_retrievers.methods.sg_rag.prompts import parse_cypher
from kg_retrievers.patterns.prompts import parse_pattern
from kg_retrievers.patterns.self_questions.paraphrases import read_paraphrase

pytestmark = pytest.mark.heavy

SECONDS = float(os.environ.get("KG_RETRIEVERS_FUZZ_SECONDS", "60")) / 3  # for each of the three tests
SEED = int(os.environ.get("KG_RETRIEVERS_FUZZ_SEED", "0"))
#: The most seconds of CPU for one query or reply.
SLOW = 0.5

QUERIES = (Path(__file__).parent / "database" / "harmless_queries.cypher").read_text("utf-8").strip().split("\n\n")
WRITES = (
    """
CREATE (x)|MERGE (x)|SET n.x = 1|DELETE n|DETACH DELETE n|REMOVE n.x|INSERT (x)|FOREACH (x IN [1] / SET n.y = x)
LOAD CSV FROM 'x' AS l|LOAD FROM 'x'|CALL { CREATE (x) }|CALL apoc.load.json('x') YIELD value|CALL timeout=0|USE other
; CREATE (x)|UNION CREATE (x)|COPY x FROM 'y'|DROP INDEX i|CREATE p = (a)-[:R]->(b)|SET n:Admin|SET n += {x: 1}
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
PIECES = [
    *"()[]{}.,:;|<>=+-*/'\"`$ \n\\",
    "/*",
    "*/",
    "//",
    "**/",
    "\u200b",
    "\uff33\u017ft",
    "SET",
    "CREATE",
    "DELETE",
]

REPLIES = [
    "<think>Hm {</think> Answer: Spike Jonze; Lance Acord [1]",
    "**Final answer:**\n- Netherlands\n- France\n\nNote: that is all",
    "Answers:\n1. Mimas\n2. Enceladus",
    'Reason: no.\nAnswer: ["A", "B"]',
    '```json\n{"triples": [["Her", "directed by", "?x"], ["?x", "born in", "?y"]], "target": "?y"}\n```',
    "{'triples': [('Her', 'directed_by', UNKNOWN person 1), {head: a, relation: b, tail: c}], // so",
    "1. directed_by -> born_in\n2. <PATH> written by <SEP> knows </PATH>\n3. [\"knows\", 'written by']",
    "Here it is:\n```cypher\nMATCH (n) RETURN n;\n```\nIt returns all nodes.<|im_end|>",
    '{"cypher": "MATCH (n {name: \\"x\\"}) RETURN n.\\u0061", "method": "rog"}',
    "Who is the maker of Her?",
    "The evidence does not say.",
]
MARKS = [*"{}[]()\"'`,:;<>\\/#*-\n\t ", "<think>", "</think>", "```", "Answer:", "ans:", "->", "<-", "\u201c", "\u2019"]
MARKS += ["\ud800", "\x00", "\u202e", "\\u00", "[99]", "?x", "UNKNOWN", "9" * 5000, "[" * 2000, "{" * 500, "((" * 300]


class Reply(BaseModel):
    """What a reply is to hold."""

    method: str


PARSERS: dict[str, Callable[[str], object]] = {
    "plain_answers": replies.plain_answers,
    "marked_answers": replies.marked_answers,
    "listed_answers": replies.listed_answers,
    "parse_object": lambda reply: replies.parse_object(reply, Reply),
    "path answers": path_prompt.parse_answers,
    "facts answers": facts_prompt.parse_answers,
    "parse_pattern": parse_pattern,
    "parse_relation_paths": lambda reply: parse_relation_paths(reply, ["directed_by", "knows", "written by"], 3),
    "parse_cypher": parse_cypher,
    "read_paraphrase": lambda reply: read_paraphrase(reply, ["Her"]),
}


def rounds() -> Iterator[random.Random]:
    """Yield one source of chance until the time is over; 100 times at least."""
    draw, until, done = random.Random(SEED), time.monotonic() + SECONDS, 0
    while done < 100 or time.monotonic() < until:
        done += 1
        yield draw
    print(f"{done} rounds, seed {SEED}")


def mutated(draw: random.Random, text: str, others: list[str], pieces: list[str]) -> str:
    """Return a text with up to four changes: parts cut, doubled, taken from other texts, or pieces put in."""
    for _ in range(draw.randint(1, 4)):
        start = draw.randint(0, len(text))
        end = min(len(text), start + draw.choice([0, 0, 1, 3, 10, 50]))
        other = draw.choice(others)
        taken = draw.randint(0, len(other))
        put_in = draw.choice(["", text[start:end] * 2, other[taken : taken + draw.randint(1, 40)], draw.choice(pieces)])
        text = text[:start] + put_in + text[end:]
    return text


def timed(function: Callable[[str], object], text: str, allowed: type[Exception]) -> object:
    """Call a function, which may raise only what is allowed, and not take long; return None where it raised."""
    began = time.process_time()
    try:
        return function(text)
    except allowed:
        return None
    finally:
        took = time.process_time() - began
        assert took < SLOW, f"{took:.2f} s for {text[:500]!r}"


def test_no_clause_that_writes_passes() -> None:
    for draw in rounds():
        query = draw.choice(QUERIES)
        depth, places = 0, [0]
        for token in tokenize(query):
            depth += (token.text in tuple("([{")) - (token.text in tuple(")]}")) if token.kind == "sign" else 0
            if not depth and token.kind != "comment":
                places.append(token.end)
        place = draw.choice(places)
        changed = f"{query[:place]} {draw.choice(WRITES)} {query[place:]}"
        if "//" not in query[:place]:
            assert timed(check_read_only, changed, CypherSafetyError) is None, changed


def test_mutants_of_queries_change_nothing() -> None:
    """Those that pass run in a database that can be written to."""
    ladybug = pytest.importorskip("ladybug")
    connection = ladybug.Connection(ladybug.Database(":memory:", buffer_pool_size=256 << 20))
    connection.execute("CREATE NODE TABLE Person(name STRING PRIMARY KEY, age INT64, x INT64)")
    connection.execute("CREATE REL TABLE KNOWS(FROM Person TO Person, since INT64)")
    connection.execute("UNWIND range(1, 9) AS i CREATE (:Person {name: CAST(i AS STRING), age: i, x: i})")
    connection.execute("MATCH (a:Person), (b:Person) WHERE a.age + 1 = b.age CREATE (a)-[:KNOWS {since: a.age}]->(b)")
    connection.set_query_timeout(200)

    def stored() -> list[object]:
        tables = connection.execute("CALL show_tables() RETURN *").get_all()
        people = connection.execute("MATCH (n:Person) RETURN n.* ORDER BY n.name").get_all()
        return [tables, people, connection.execute("MATCH ()-[r]->() RETURN r ORDER BY r.since").get_all()]

    before = stored()
    for draw in rounds():
        query = draw.choice(QUERIES)
        changed = mutated(draw, draw.choice([query, f"{query} {draw.choice(WRITES)}"]), QUERIES + WRITES, PIECES)
        checked = timed(check_read_only, changed, CypherSafetyError)
        if checked is None or "$" in changed or isinstance(checked.limit, str):  # type: ignore[attr-defined]
            continue
        sent = limited(checked, 10, sort_key="CAST({} AS STRING)").text  # type: ignore[arg-type]
        try:
            connection.execute(sent)
        except (RuntimeError, MemoryError, UnicodeDecodeError):
            continue
        assert stored() == before, sent


def test_mutants_of_replies_raise_nothing_untyped() -> None:
    for draw in rounds():
        reply = mutated(draw, draw.choice(REPLIES), REPLIES, MARKS)
        for parse in PARSERS.values():
            timed(parse, reply, KGRetrieversError)
