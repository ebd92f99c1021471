"""SimGRAG's prompts, and good, ragged, empty and hostile replies to them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate

from kg_retrievers.core.prompts import check_placeholders
from kg_retrievers.core.replies import MAX_REPLY
from kg_retrievers.errors import InvalidArgumentError, PatternParseError
from kg_retrievers.graph.pattern import Known, Pattern, Term, Unknown
from kg_retrievers.questions.prompts import EXAMPLES, parse_pattern
from kg_retrievers.testing import ScriptedChatModel

DIRECTOR = Unknown("director 1", "director")
FILM = Unknown("film 1", "film")
HER = Pattern.of(("Her", "directed by", DIRECTOR), target="director 1")
TWO_HOPS = Pattern.of(("Her", "directed by", DIRECTOR), (FILM, "directed by", DIRECTOR), target="film 1")

HER_TRIPLES = '"triples": [["Her", "directed by", "UNKNOWN director 1"]]'
HER_JSON = f'{{"segments": ["the director of Her"], {HER_TRIPLES}, "target": "UNKNOWN director 1"}}'


def triples(*items: str) -> str:
    """Return a reply with these triples, as they are."""
    return '{"triples": [' + ", ".join(items) + "]}"


# --- the prompts ---


def test_worked_examples_keep_the_direction_of_a_relation() -> None:
    """An operation respects directions, and the prompt tells a model to take those of the examples."""
    edges = [triple for _, reply in EXAMPLES for triple in parse_pattern(json.dumps(reply)).triples]
    relations: set[Term] = {Known("directed by"), Known("written by"), Known("starring")}
    of_films = [edge for edge in edges if edge.relation in relations]
    people = {"director", "actor"}
    assert len(of_films) == 5
    assert {edge.tail.type for edge in of_films} - {None} == people
    assert not {edge.head.type for edge in of_films} & people


@pytest.mark.parametrize(("question", "reply"), EXAMPLES, ids=[question for question, _ in EXAMPLES])
def test_worked_example_can_be_read(question: str, reply: dict[str, Any]) -> None:
    pattern = parse_pattern(json.dumps(reply))
    assert len(pattern.triples) == len(reply["segments"]) == len(reply["triples"])
    assert pattern.target == (reply["target"] and reply["target"].removeprefix("UNKNOWN "))
    for known in (term for triple in pattern.triples for term in (triple.head, triple.tail)):
        assert isinstance(known, Unknown) or known.text in question


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("Answer!", "has the placeholders [], but needs exactly ['question']: add {question}."),
        ("{query}", "add {question} and remove {query} (a brace meant as text is doubled)."),
        ('{question} as {{"x": {y}}}', "needs exactly ['question']: remove {y} (a brace"),
    ],
    ids=["missing", "misspelt", "superfluous"],
)
@pytest.mark.parametrize("kind", [ChatPromptTemplate, PromptTemplate])
def test_wrong_placeholders(kind: type[ChatPromptTemplate | PromptTemplate], template: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape(message)) as caught:
        check_placeholders(kind.from_template(template), ["question"], "pattern_prompt")
    assert str(caught.value).startswith("pattern_prompt: ")


def test_partly_filled_prompt_is_fine() -> None:
    prompt = PromptTemplate.from_template("{style} {question}").partial(style="short")
    check_placeholders(prompt, {"question"}, "pattern_prompt")


# --- good and ragged replies ---

SAME_AS_HER = {
    "as asked": HER_JSON,
    "capital key": '{"Triples": [["Her", "directed by", "UNKNOWN director 1"]]}',
    "key graph": '{"divided": [], "graph": [("Her", "directed by", "UNKNOWN director 1")]}',
    "key edges": '{"nodes": ["Her"], "edges": [("Her", "directed by", "UNKNOWN director 1")]}',
    "object in key pattern": f'{{"pattern": {{{HER_TRIPLES}}}, "target": "director 1"}}',
    "set of tuples": '{"triples": {("Her", "directed by", "UNKNOWN director 1")}}',
    "list only": '[["Her", "directed by", "UNKNOWN director 1"]]',
    "one triple without list": '{"triples": ["Her", "directed by", "UNKNOWN director 1"]}',
    "objects": '{"triples": [{"head": "Her", "relation": "directed by", "tail": "UNKNOWN director 1"}]}',
    "subject, predicate, object": '[{"Subject": "Her", "Predicate": "directed by", "Object": "UNKNOWN director 1"}]',
    "source, label, target": '{"edges": [{"source": "Her", "label": "directed by", "target": "UNKNOWN director 1"}]}',
    "repeated triple": triples(*['["Her", "directed by", "UNKNOWN director 1"]'] * 2),
    "lower case": triples('["Her", "directed by", "unknown director 1"]'),
    "title case": triples('["Her", "directed by", "Unknown director 1"]'),
    "misspelt UNKOWN": triples('["Her", "directed by", "UNKOWN director 1"]'),
    "misspelt UNKNWON": triples('["Her", "directed by", "UNKNWON director 1"]'),
    "underscores": triples('["Her", "directed by", "UNKNOWN_director_1"]'),
    "hyphens": triples('["Her", "directed by", "UNKNOWN-director-1"]'),
    "spaces": triples('[" Her ", "directed by\\n", "UNKNOWN  director1 "]'),
    "target in other case": f'{{{HER_TRIPLES}, "Target": "Director 1"}}',
    "target in a list": f'{{{HER_TRIPLES}, "target": ["UNKNOWN director 1"]}}',
    "escapes": triples(r'["H\u0065r", "directed\x20by", "UNKNOWN director 1"]'),
}


@pytest.mark.parametrize("reply", SAME_AS_HER.values(), ids=SAME_AS_HER.keys())
def test_ragged_reply(reply: str) -> None:
    pattern = parse_pattern(reply)
    assert pattern == HER
    assert pattern.source == "llm"


def test_two_hops() -> None:
    reply = triples('["Her", "directed by", "UNKNOWN director 1"]', '["UNKNOWN Film 1", "directed by", "?director"]')
    assert parse_pattern(reply).nodes == (Known("Her"), DIRECTOR, Unknown("Film 1", "Film"), Unknown("director"))
    reply = reply.replace("?director", "unknown DIRECTOR 1").replace("Film", "film")
    assert parse_pattern(reply[:-1] + ', "target": "film 1"}') == TWO_HOPS


NAMES = {
    "bare Unknown is a name": ('"Unknown"', Known("Unknown")),
    "bare unknown is a name": ('"unknown"', Known("unknown")),
    "bare UNKNOWN is unknown": ('"UNKNOWN"', Unknown("unknown")),
    "UNKNOWN in quotes is a name": (r'"\"UNKNOWN\""', Known("UNKNOWN")),
    "Unknown in quotes": (r'"\"Unknown\""', Known("Unknown")),
    "Unknown in raw quotes": ('""Unknown""', Known("Unknown")),
    "Unknown in other quotes": ("'\"Unknown Pleasures\"'", Known("Unknown Pleasures")),
    "Unknown in smart quotes": ('"“Unknown”"', Known("Unknown")),
    "only whole names lose quotes": (r'"\"A\" or \"B\""', Known('"A" or "B"')),
    "unknown further inside": ('"The Unknown Soldier"', Known("The Unknown Soldier")),
    "longer word": ('"UNKNOWNS"', Known("UNKNOWNS")),
    "number without kind": ('"UNKNOWN 1"', Unknown("1")),
    "kind without number": ('"UNKNOWN tv show"', Unknown("tv show", "tv show")),
    "two words and number": ('"UNKNOWN tv show #2"', Unknown("tv show 2", "tv show")),
    "variable": ('"?x"', Unknown("x")),
    "bare variable": ("?film_1", Unknown("film_1")),
    "question mark": ('"?"', Known("?")),
    "year": ("1999", Known("1999")),
    "year in quotes": ("'\"1999\"'", Known("1999")),
    "negative number": ("-1.5e3", Known("-1.5e3")),
    "true": ("true", Known("true")),
    "apostrophe": ('"Schindler\'s List"', Known("Schindler's List")),
    "apostrophe in single quotes": ("'Schindler's List'", Known("Schindler's List")),
    "escaped apostrophe": (r"'Schindler\'s List'", Known("Schindler's List")),
    "smart apostrophe": ("‘Schindler’s List’", Known("Schindler’s List")),
    "raw quotes inside": ('""Weird Al" Yankovic"', Known('"Weird Al" Yankovic')),
    "apostrophe at the end": ("'The Lovers''", Known("The Lovers'")),
    "brackets": ('"Her } ] ) { [ (2013)"', Known("Her } ] ) { [ (2013)")),
    "comma, colon": ('"Alien: Covenant, 2"', Known("Alien: Covenant, 2")),
    "slashes and hash": ('"Face//Off #1"', Known("Face//Off #1")),
    "backslash": (r'"AC\\DC"', Known("AC\\DC")),
    "unicode": ('"Amélie 千と千尋 😀"', Known("Amélie 千と千尋 😀")),
    "surrogate pair": (r'"\ud83d\ude00"', Known("😀")),
    "half a surrogate pair": (r'"\ud83d!"', Known("\ufffd!")),
    "python escape": (r"'\U0001f600'", Known("😀")),
    "escape out of range": (r"'\Uffffffff'", Known("\ufffd")),
    "tab": (r'"a\tb"', Known("a\tb")),
    "null in quotes": ('"None"', Known("None")),
}


@pytest.mark.parametrize(("text", "term"), NAMES.values(), ids=NAMES.keys())
def test_term(text: str, term: Known | Unknown) -> None:
    pattern = parse_pattern(triples(f'["Some Film", "starring", {text}]', f'[{text}, "born in", "Paris"]'))
    assert pattern.nodes == (Known("Some Film"), term, Known("Paris"))
    assert pattern.target == (term.name if isinstance(term, Unknown) else None)


def test_unknown_relation() -> None:
    reply = triples('["A", "UNKNOWN relation 1", "B"]', '["B", "UNKNOWN", "C"]', '["C", "unknown relation 1", "D"]')
    relations = [triple.relation for triple in parse_pattern(reply).triples]
    assert relations == [Unknown("relation 1"), Unknown("unknown"), Unknown("relation 1")]
    assert parse_pattern(reply).target is None


TARGETS = {
    "asked for": ('"target": "UNKNOWN film 1"', "film 1"),
    "without UNKNOWN": ('"target": "film 1"', "film 1"),
    "other spelling": ('"TARGET": "unknown Film_1"', "film 1"),
    "a variable": ('"target": "?director"', "director"),
    "null": ('"target": null', None),
    "None": ('"target": None', None),
    "null in quotes": ('"target": "null"', None),
    "a known node": ('"target": "Her"', None),
    "nobody": ('"target": "UNKNOWN writer 1"', None),
    "empty": ('"target": ""', None),
    "empty list": ('"target": []', None),
    "missing, two unknown nodes": ('"note": "x"', None),
}


@pytest.mark.parametrize("before", [True, False], ids=["before the triples", "after them"])
@pytest.mark.parametrize(("target", "name"), TARGETS.values(), ids=TARGETS.keys())
def test_target(target: str, name: str | None, before: bool) -> None:
    edges = '"triples": [["Her", "directed by", "?director"], ["UNKNOWN film 1", "directed by", "?director"]]'
    reply = f"{{{target}, {edges}}}" if before else f"{{{edges}, {target}}}"
    assert parse_pattern(reply).target == name


def test_null_target_beside_one_unknown_is_kept() -> None:
    assert parse_pattern(f'{{{HER_TRIPLES}, "target": null}}').target is None


# --- empty, broken and hostile replies ---

UNREADABLE = {
    "empty": ("", "the reply is empty"),
    "reasoning only": ("<think>hm", "reasoning only"),
    "words": ("I'm sorry, I can't do that.", "no JSON object"),
    "empty object": ("{}", "no list of triples"),
    "no triples": ('{"segments": [], "triples": []}', "no list of triples"),
    "triples are text": ('{"triples": "Her, directed by, ?x"}', "no list of triples"),
    "format only": ('{"triples": [["head", "relation", "tail"], ...]}', "triple 2 must be three texts"),
    "two terms": (triples('["A", "r", "B"]', '["Her", "UNKNOWN x"]'), 'triple 2 must be three texts ["head"'),
    "four terms": (triples('["A", "r", "B", "C"]'), 'but it is ["A", "r", "B", "C"]'),
    "null term": (triples('["A", null, "B"]'), 'but it is ["A", null, "B"]'),
    "null triple": (triples("null", '["A", "r", "B"]'), "triple 1 must be three texts"),
    "nested term": (triples('["A", "r", ["B"]]'), "triple 1 must be three texts"),
    "object without tail": (triples('{"head": "A", "relation": "r"}'), "triple 1 must be three texts"),
    "empty term": (triples('["A", "r", " "]'), "a term has an empty text"),
    "breaks off in a text": ('{"triples": [["A", "r", "B"], ["B", "r2', "breaks off"),
    "breaks off after a triple": ('{"triples": [["A", "r", "B"],', "breaks off"),
    "breaks off in the target": ('{"triples": [["A", "r", "?x"], ["?x", "r", "?y"]], "target": "UNK', "breaks off"),
    "import": ('{"graph": __import__("os").getcwd()}', "no list of triples"),
    "call in a list": ('{"graph": [__import__("os").system("echo")]}', "triple 1 must be three texts"),
    "closers only": ("}])" * 50, "no JSON object"),
    "huge triple": (triples('["' + "x" * 50_000 + '"]'), "xxx. Wanted one JSON object"),
}


@pytest.mark.parametrize(("reply", "reason"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_unreadable_reply(reply: str, reason: str) -> None:
    with pytest.raises(PatternParseError, match=re.escape(reason)) as caught:
        parse_pattern(reply)
    assert caught.value.reply == reply
    assert len(str(caught.value)) < 1000


HOSTILE = {
    "nested triples": '{"triples":[' * 4_000 + "]}" * 4_000,
    "numbers in a name": '{"triples": [["A", "r", "UNKNOWN ' + "# 1" * 20_000 + '", "B"]]}',
    "digits in a limit": f'{{{HER_TRIPLES}, "operation": {{"kind": "order", "by": "x", "limit": {"9" * 5000}}}}}',
    "digits in a number": f'{{{HER_TRIPLES}, "operation": {{"kind": "list", "number": "{"9" * 5000}"}}}}',
}


@pytest.mark.heavy
@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_reply_is_refused_in_time(reply: str) -> None:
    """Quadratic time would show as a test that takes minutes."""
    with pytest.raises(PatternParseError):
        parse_pattern(reply)


@pytest.mark.heavy
def test_only_the_beginning_is_read() -> None:
    assert parse_pattern(HER_JSON + "{" * 2 * MAX_REPLY) == HER
    with pytest.raises(PatternParseError, match="no JSON object"):
        parse_pattern("." * MAX_REPLY + HER_JSON)


@settings(deadline=None)
@given(st.text() | st.text("{}[]()\"'`,:\\?#/<>“”‘’ \nUNKOWtriples12ax"))
def test_any_text_is_read_or_refused(reply: str) -> None:
    for text in (reply, f'{{"triples": [["A", "r", {reply}]]}}', f'{{"triples": [["A", "r", "{reply}"]]}}'):
        with suppress(PatternParseError):
            assert parse_pattern(text).source == "llm"


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(
    lambda name: name.strip() == name and not re.match(r"""["'“”„‘’?]|UNK|unknown""", name, re.IGNORECASE)
)
unknown_nodes = st.builds(
    lambda kind, number: Unknown(f"{kind} {number}", kind),
    st.sampled_from(["film", "tv show", "co-author"]),
    st.integers(1, 2),
)
edges = st.tuples(
    st.builds(Known, names | st.just("Unknown")) | unknown_nodes,
    st.builds(Known, names) | st.just(Unknown("relation 1")),
    st.builds(Known, names) | unknown_nodes,
)


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Draw a pattern of one to four triples, with a target if it has an unknown node, or without."""
    pattern = Pattern.of(*draw(st.lists(edges, min_size=1, max_size=4)))
    targets = [node.name for node in pattern.nodes if isinstance(node, Unknown)]
    return replace(pattern, target=draw(st.sampled_from([None, *targets])))


RENDERERS: dict[str, Callable[[dict[str, Any]], str]] = {
    "json": json.dumps,
    "json, as it is": lambda data: json.dumps(data, ensure_ascii=False, indent=2),
    "fenced": lambda data: f"Here it is:\n```json\n{json.dumps(data)}\n```\nIs it what you're looking for?",
    "python": repr,
    "tuples": lambda data: repr(data | {"triples": [tuple(triple) for triple in data["triples"]]}),
}


def as_asked(pattern: Pattern) -> dict[str, Any]:
    """Return the object that the prompt asks for."""

    def word(term: Known | Unknown) -> str:
        if isinstance(term, Unknown):
            return f"UNKNOWN {term.name}"
        return '"Unknown"' if term.text == "Unknown" else term.text

    target = pattern.target and f"UNKNOWN {pattern.target}"
    return {"segments": ["it's"], "triples": [[word(term) for term in t] for t in pattern.triples], "target": target}


@pytest.mark.parametrize("render", RENDERERS.values(), ids=RENDERERS.keys())
@settings(deadline=None)
@given(pattern=patterns())
def test_pattern_survives_the_way_through_text(render: Callable[[dict[str, Any]], str], pattern: Pattern) -> None:
    assert parse_pattern(render(as_asked(pattern))) == pattern


# --- the scripted chat model, alone and between prompt and parser ---


def test_scripted_model_follows_the_script() -> None:
    model = ScriptedChatModel(replies=["one", TimeoutError("late"), "three"])
    assert model.invoke("a").text == "one"
    with pytest.raises(TimeoutError, match="late"):
        model.invoke("b")
    assert asyncio.run(model.ainvoke("c")).text == "three"
    with pytest.raises(AssertionError, match=r"call 4, but the script has 3 replies\. Add a reply, or set cycle=True"):
        model.invoke("d")
    assert [messages[0].text for messages in model.prompts] == list("abcd")


def test_scripted_model_cycles() -> None:
    model = ScriptedChatModel(replies=["one", "two"], cycle=True)
    assert [model.invoke("?").text for _ in range(5)] == ["one", "two", "one", "two", "one"]
    with pytest.raises(AssertionError, match="the script has 0 replies"):
        ScriptedChatModel(replies=[], cycle=True).invoke("?")


@pytest.mark.parametrize(
    ("reply", "words"),
    [("one two\n three ", ["one", " two", "\n three", " "]), ("  ", ["  "]), ("", [""])],
    ids=["words", "spaces", "empty"],
)
def test_scripted_model_streams_by_words(reply: str, words: list[str]) -> None:
    async def stream() -> list[str]:
        return [chunk.text async for chunk in ScriptedChatModel(replies=[reply]).astream("?")]

    assert [chunk.text for chunk in ScriptedChatModel(replies=[reply]).stream("?")] == words
    assert asyncio.run(stream()) == words


def test_scripted_model_gives_each_reply_once_to_threads() -> None:
    model = ScriptedChatModel(replies=[str(number) for number in range(200)])
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda number: model.invoke(str(number)).text, range(200)))
    assert sorted(replies, key=int) == [str(number) for number in range(200)]
    assert len(model.prompts) == 200
