"""Replies with queries in them: good, ragged, empty and hostile ones; and the words of the prompts."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from kg_retrievers.errors import CypherGenerationError
from kg_retrievers.methods.sg_rag import prompts as cypher
from kg_retrievers.methods.sg_rag.prompts import ANSWER_PROMPT, CYPHER_PROMPT, REPAIR_PROMPT, parse_cypher

QUERY = "MATCH (f:Film)-[r0:DIRECTED_BY]->(d)\nWHERE f.key IN $e0\nRETURN d.key AS target, r0"


@pytest.mark.parametrize(
    "reply",
    [
        QUERY,
        f"\n  {QUERY}  \n",
        f"```cypher\n{QUERY}\n```",
        f"```\n{QUERY}",
        f"Sure! Here is the query:\n\n```cypher\n{QUERY}\n```\nIt returns the directors.",
        f"Here is the query:\n{QUERY}\n\nExplanation: it looks for directors.",
        f"<think>MATCH (x) RETURN x?</think>{QUERY}",
        f"{QUERY}<|im_end|>\n<|im_start|>user",
        f"Cypher: {QUERY}",
        f"Cypher query:\n{QUERY}</s>",
        f"`{QUERY}`",
        f"With the schema in mind, match the film:\n{QUERY}",
        '{"query": ' + '"' + QUERY.replace("\n", "\\n") + '"}',
        '{"query": ' + '"' + QUERY.replace("\n", "\\n") + '"',
        "{'Cypher': '" + QUERY.replace("\n", "\\n") + "',}",
        '{reason: "It names a {film}.", query: "' + QUERY + '"} as asked',
        '[{"note": "x"}, {"answer": {"statement": "' + QUERY + '"}}]',
        "```json\n{'x': 1}\n```\n```cypher\n" + QUERY + "\n```",
        QUERY.replace("\n", "\r\n"),
        f"> {QUERY}",
    ],
)
def test_ragged_replies(reply: str) -> None:
    assert parse_cypher(reply) == QUERY


@pytest.mark.parametrize(
    ("written", "meant"),
    [(r".*\d+", r".*\d+"), (r".*\\d+", r".*\d+"), (r"\u00e9", "é"), (r"\uZZ", r"\uZZ"), (r"a\\\w", r"a\\w")],
)
def test_backslashes_that_json_does_not_have(written: str, meant: str) -> None:
    reply = '{"query": "MATCH (n) WHERE n.key =~ \'' + written + "' RETURN n\"}"
    assert parse_cypher(reply) == f"MATCH (n) WHERE n.key =~ '{meant}' RETURN n"


def test_blank_lines_inside_of_a_query() -> None:
    parts = QUERY.split("\n")
    assert parse_cypher("\n\n".join(parts) + "\n\nThis finds it.") == "\n\n".join(parts)


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("optional match (n) return n", "optional match (n) return n"),
        ("UNWIND $e0 AS key MATCH (n {key: key}) RETURN n", "UNWIND $e0 AS key MATCH (n {key: key}) RETURN n"),
        ("MATCH p = (a)--(b) RETURN p;", "MATCH p = (a)--(b) RETURN p;"),
        ("DROP TABLE Film", "DROP TABLE Film"),  # to be refused with a reason
        (f"{QUERY}; MATCH (n) DETACH DELETE n", f"{QUERY}; MATCH (n) DETACH DELETE n"),
    ],
)
def test_what_counts_as_a_query(reply: str, found: str) -> None:
    assert parse_cypher(reply) == found


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("<think>MATCH (n) RETURN n", "reasoning only"),
        ("I cannot answer that.", "no query"),
        ('{"query": ""}', "no query"),
        ('{"query": "MATCH (n) RETURN', "no query"),
        ('{"query": ["MATCH (n) RETURN n"]}', "no query"),
        ('{"query": "\\ud800"}', "no query"),
        ("Match the film with its director.", "no query"),
        ("```python\nprint('MATCH')\n```", "no query"),
        ("__import__('os').system('id')", "no query"),
    ],
)
def test_replies_without_a_query(reply: str, reason: str) -> None:
    with pytest.raises(CypherGenerationError, match=reason) as caught:
        parse_cypher(reply)
    assert caught.value.reply == reply


@pytest.mark.parametrize("piece", ["```", "MATCH (", "\n\n", '"query": "', "\\", "<think>", "` > ", "<|a", "Cypher: "])
def test_long_hostile_replies_take_no_time(piece: str) -> None:
    began = time.process_time()
    with suppress(CypherGenerationError):
        parse_cypher(piece * (3 * cypher.MAX_REPLY // len(piece)))
    assert time.process_time() - began < 5


def test_prompts() -> None:
    assert set(CYPHER_PROMPT.input_variables) == {"question", "parameters", "schema", "examples"}
    assert set(REPAIR_PROMPT.input_variables) == {"question", "parameters", "schema", "reply", "error"}
    assert set(ANSWER_PROMPT.input_variables) == {"question", "evidence"}
    assert "subject" in ANSWER_PROMPT.invoke({"question": "?", "evidence": "A -> b -> C"}).to_string()
