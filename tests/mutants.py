"""Mutants of models' replies: good ones, changed by bytes, words, marks, nesting, length, letters and values."""

from __future__ import annotations

import gc
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kg_retrievers.errors import KGRetrieversError

SECONDS = float(os.environ.get("KG_RETRIEVERS_FUZZ_SECONDS", "60"))
SEED = int(os.environ.get("KG_RETRIEVERS_FUZZ_SEED", "0"))

#: The most seconds of CPU for one query or reply.
SLOW = 5

#: The most characters of a mutant.
LONGEST = 100_000

REPLIES = [
    "<think>Hm {</think> Answer: Spike Jonze; Lance Acord [1]",
    "**Final answer:**\n- Netherlands\n- France\n\nNote: that is all",
    "Answers:\n1. Mimas\n2. Enceladus",
    'Reason: no.\nAnswer: ["A", "B"]',
    '```json\n{"triples": [["Her", "directed by", "?x"], ["?x", "born in", "?y"]], "target": "?y"}\n```',
    "{'triples': [('Her', 'directed_by', UNKNOWN person 1), {head: a, relation: b, tail: c}], // so",
    '{"triples": [["Amélie", "starring", "?x"]], "target": "?x", "distinct": [["?x", "?y"]], "directed": true}',
    "1. directed_by -> born_in\n2. <PATH> written by <SEP> knows </PATH>\n3. [\"knows\", 'written by']",
    "<PATH> starring </PATH>\n<PATH> starring <SEP> directed_by </PATH>",
    "Here it is:\n```cypher\nMATCH (n) RETURN n;\n```\nIt returns all nodes.<|im_end|>",
    "MATCH (f)-[r0:starring]->(x) WHERE f.key IN $e0 RETURN x.key AS target, r0 ORDER BY target",
    '{"cypher": "MATCH (n {name: \\"x\\"}) RETURN n.\\u0061", "method": "rog"}',
    '{"explanation": "So say facts [1] and 2.", "answers": ["Audrey Tautou", "Kassovitz"], "citations": [1, "[2]"]}',
    '{"explanation": "So says fact [1].", "verdict": "supported", "citations": [1]}',
    '{"name": "search_knowledge_graph", "args": {"query": "Who starred in Amélie?"}}',
    '{"method": "simgrag"}',
    "Who is the maker of Amélie?",
    "The evidence does not say.",
]
MARKS = [*"{}[]()\"'`,:;<>\\/#*-\n\t ", "<think>", "</think>", "```", "Answer:", "ans:", "->", "<-", "\u201c", "\u2019"]
MARKS += ["\ud800", "\x00", "\u202e", "\\u00", "[99]", "?x", "UNKNOWN", "9" * 5000, "[" * 2000, "{" * 500, "((" * 300]
#: What wraps a part of a text, before and behind it.
WRAPS = [("[", "]"), ("{", "}"), ('{"a":', "}"), ("(", ")"), ("<think>", "</think>"), ("```\n", "\n```"), ('"', '"')]
WRAPS += [("[[", ""), ("", "}]"), ("<PATH>", "</PATH>"), ("\\", "\\"), ("UNKNOWN ", "")]
#: Values that stand in for a part of a JSON text.
VALUES: list[Any] = [None, True, -1, 10**400, 1e308, float("nan"), "", " ", "\ud83d", [], {}, [[]], {"": {"": None}}]
VALUES += ["?x", "[1]", "x" * 2000, [1] * 500, {"triples": []}, ["a", "b"], "\u0661", "[9999999999]"]
LETTERS = "\u0130\u00df\ufb03\u202e\u200b\u200d\u0301\ufeff\u2028\uff21\uff3b\U0001d400\U0001f600\u0e33\u05d0\x85\x1b"


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


def by_marks(draw: random.Random, text: str) -> str:
    """Change parts, with pieces of other replies and marks that readers look for."""
    return mutated(draw, text, REPLIES, MARKS)


def by_bytes(draw: random.Random, text: str) -> str:
    """Change bytes; what is no UTF-8 then becomes halves of surrogate pairs."""
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(draw.randint(1, 8)):
        place = draw.randrange(len(data) + 1)
        data[place : place + draw.randint(0, 2)] = draw.randbytes(draw.randint(0, 3))
    return data.decode("utf-8", draw.choice(["replace", "surrogateescape", "ignore"]))


def by_words(draw: random.Random, text: str) -> str:
    """Shuffle, repeat or leave out words."""
    words = text.split(" ")
    for _ in range(draw.randint(1, 4)):
        one, two = draw.randrange(len(words)), draw.randrange(len(words))
        words[one], words[two] = draw.choice([(words[two], words[one]), ("", words[two]), (words[two], words[two])])
    return draw.choice([" ", " ", "\n", "\t", ""]).join(words)


def by_spaces(draw: random.Random, text: str) -> str:
    """Change spaces alone, which most readers forgive, so that what comes after them is reached."""
    letters = [draw.choice([" ", " ", "  ", "\n", "\t", "\xa0"]) if letter == " " else letter for letter in text]
    return draw.choice(["", "\n", "Sure: ", "```\n"]) + "".join(letters)


def by_nesting(draw: random.Random, text: str) -> str:
    """Put a part into brackets, up to some thousands deep."""
    before, behind = draw.choice(WRAPS)
    depth = draw.choice([1, 2, 10, 100, 1000, 5000])
    start, end = sorted(draw.choices(range(len(text) + 1), k=2))
    return f"{text[:start]}{before * depth}{text[start:end]}{behind * depth}{text[end:]}"


def by_length(draw: random.Random, text: str) -> str:
    """Repeat a part until the text is long."""
    start, end = sorted(draw.choices(range(len(text) + 1), k=2))
    part = text[start:end] or draw.choice(MARKS)
    times = draw.choice([1_000, 5_000, 20_000, LONGEST]) // len(part) + 1
    return text[:start] + part * times + text[end:]


def by_letters(draw: random.Random, text: str) -> str:
    """Put in letters and marks that Unicode treats apart."""
    letters = list(text)
    for _ in range(draw.randint(1, 12)):
        letters.insert(draw.randrange(len(letters) + 1), draw.choice(LETTERS))
    cases: list[Callable[[str], str]] = [str, str, str.upper, str.casefold, str.title]
    return draw.choice(cases)("".join(letters))


def by_values(draw: random.Random, text: str) -> str:
    """Put other values into a JSON text; into a list of lines where the text is none."""
    try:
        value = json.loads(text)
    except ValueError:
        value = {"answer": text.split("\n")}
    for _ in range(draw.randint(1, 3)):
        value = _with_another_value(draw, value)
    return json.dumps(value, ensure_ascii=draw.random() < 0.5)


def _with_another_value(draw: random.Random, value: Any) -> Any:
    if isinstance(value, dict | list) and value and draw.random() < 0.8:
        changed = value.copy()
        key = draw.choice(list(value) if isinstance(value, dict) else range(len(value)))
        changed[key] = _with_another_value(draw, value[key])
        return changed
    return draw.choice([draw.choice(VALUES), [value] * draw.randint(0, 3), {"answers": value}, str(value)])


#: What makes a mutant, with how often it is drawn; long texts are rare, since each takes as long as a hundred others.
CHANGES: dict[Callable[[random.Random, str], str], int] = {
    by_marks: 30,
    by_bytes: 14,
    by_words: 14,
    by_letters: 14,
    by_values: 14,
    by_spaces: 20,
    by_nesting: 10,
    by_length: 2,
}


def mutant(draw: random.Random, marker: str = "") -> str:
    """Return a good reply after one or two changes; every second time one of those that hold the marker."""
    text = draw.choice([reply for reply in REPLIES if marker in reply] if draw.random() < 0.5 else REPLIES)
    for change in draw.choices([*CHANGES], [*CHANGES.values()], k=draw.choice([1, 1, 2])):
        text = change(draw, text)
    return text[:LONGEST]


@dataclass
class Readings:
    """Counts what readers are given, and keeps what none may do: raise an error without a type, or be slow."""

    replies: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def one(self, reader: str, replies: list[str]) -> Iterator[None]:
        """Watch a reader while it reads; the replies may be added to the list meanwhile."""
        began, failed = time.process_time(), None
        try:
            yield
        except KGRetrieversError:
            pass
        except Exception as error:
            failed = f"{type(error).__name__}: {error!s:.200}"
        took = time.process_time() - began
        if took > SLOW:
            failed = f"{failed}, {took:.2f} s"
        if failed is not None:
            self.failures.append(f"{reader}: {failed} for {[reply[:500] for reply in replies]!r}")
        self.replies[reader] += len(replies)

    @contextmanager
    def all(self) -> Iterator[None]:
        """Keep collections of what is in memory by now out of the times; then print the counts, and check.

        One such collection takes half a second, and falls on whichever reader is at work.
        """
        gc.collect()
        gc.freeze()
        try:
            yield
        finally:
            gc.unfreeze()
        print(f"\n{dict(self.replies)}, {len(self.failures)} failures")
        assert not self.failures, "\n".join(self.failures[:20])


def rounds(seconds: float) -> Iterator[random.Random]:
    """Yield one source of chance until the time is over; 100 times at least."""
    draw, until, done = random.Random(SEED), time.monotonic() + seconds, 0
    while done < 100 or time.monotonic() < until:
        done += 1
        yield draw
    print(f"\n{done} rounds, seed {SEED}")


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
