"""Evidence to draw: graphs of any size, and names that would run, break or swell a page."""

from __future__ import annotations

import random

from langchain_core.documents import Document

from kg_retrievers.graph import Evidence, Triple

RELATIONS = ("directed_by", "starring", "written_by", "has_genre", "release_year")

HOSTILE = (
    "</script><script>window.ran = 1</script>",
    '"><img src=x onerror="window.ran = 1">',
    "<!--<script>",
    "'; window.ran = 1; '",
    '"\\";window.ran=1//',
    "\u2028window.ran = 1\u2029",
    "\ud800 alone \udc00",
    "\u202egnp.cod\u202c \u200f",
    "javascript:window.ran=1",
    "${window.ran = 1}",
    "{{window.ran = 1}}",
    "__proto__",
    "constructor",
    "\x00\x1b[2J\n\r",
    "",
    "x" * 1_000_000,
    "</title></style><svg onload=window.ran=1>" * 1_000,
    "\u0301" * 10_000,
)


def scale_free(count: int, seed: int = 0) -> Evidence:
    """Return facts with a few hubs, as neighbourhoods in knowledge graphs have, about people and films."""
    draw = random.Random(seed)
    ends, triples = ["Film 0"], dict[Triple, None]()
    while len(triples) < count:
        head = draw.choice(ends)
        tail = f"{draw.choice(['Film', 'Person', 'Country of'])} {len(ends)}"
        if draw.random() < 0.25 and len(ends) > 2:
            tail = draw.choice(ends)
        triple = Triple(head, draw.choice(RELATIONS), tail)
        if head != tail and triple not in triples:
            triples[triple] = None
            ends += [head, tail]
    answer = next(iter(triples)).tail
    return Evidence(tuple(triples), 1.0, (answer,), details={"entities": [["film", "Film 0"]]})


def hostile_documents() -> list[Document]:
    """Return Documents with hostile texts wherever a text may stand."""
    found = []
    for place, name in enumerate(HOSTILE):
        other = HOSTILE[place - 1]
        found.append(
            Document(
                name,
                metadata={
                    "triples": [[name, other, f"tail {place}"], [f"tail {place}", name, name], ["hub", "r", name]],
                    "labels": {f"tail {place}": name, name: other},
                    "answers": [name],
                    "sources": [[name, other], [other], []],
                    "retriever": name,
                    "score": float("inf"),
                    "rank": name,
                    "confidence": float("nan"),
                    "value": [name],
                    "details": {"entities": [[name, other]]},
                },
            )
        )
    return found
