"""The prompts for relation paths, and good, ragged, empty and hostile replies to them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.errors import RelationPathParseError
from kg_retrievers.methods.rog.prompts import MAX_REPLY, PATHS_PROMPT, parse_relation_paths

RELATIONS = ["directed_by", "starred_actors", "/people/person/parents", "married, once", "Unrelated To"]

VALUES: dict[str, Any] = {
    "question": "who directed {Her}?",
    "entities": "{Her}",
    "relations": "directed_by: Her -> directed_by -> Spike Jonze",
    "beam_width": 3,
    "max_hops": 2,
}

DIRECTED, STARRED = ("directed_by", "either"), ("starred_actors", "either")


def test_the_worked_examples_can_be_read() -> None:
    examples = PATHS_PROMPT.format(**VALUES).split("Relation paths:\n")[1:]
    relations = ["directed_by", "written_by", "spoken_language", "parent", "spouse"]
    paths = [parse_relation_paths(example.split("\n\n")[0], relations, 3) for example in examples]
    assert paths[0] == [
        [("directed_by", "either"), ("written_by", "either"), ("spoken_language", "either")],
        [("directed_by", "either"), ("directed_by", "either"), ("spoken_language", "either")],
    ]
    assert paths[1] == [
        [("parent", "backward"), ("parent", "backward")],
        [("spouse", "either"), ("parent", "backward"), ("parent", "backward")],
    ]


# --- good and ragged replies ---

SAME = {
    "as asked": "directed_by -> starred_actors",
    "other arrows": "directed_by → starred_actors",
    "greater than": "directed_by > starred_actors",
    "commas": "directed_by, starred_actors",
    "bars": "directed_by | starred_actors",
    "the paper's marks": "<PATH> directed_by <SEP> starred_actors </PATH>",
    "a list": '["directed_by", "starred_actors"]',
    "a list of texts": '[\n  "directed_by -> starred_actors",\n  "directed_by -> starred_actors"\n]',
    "words": "Directed by -> Starred actors",
    "numbered": "1. directed_by -> starred_actors",
    "chatter": "Sure! Here are the paths:\n\ndirected_by -> starred_actors\n\nLet me know if I can help.",
    "twice": "directed_by -> starred_actors\n2) directed by -> starred actors",
    "a longer one beside it": "directed_by -> directed_by -> directed_by\ndirected_by -> starred_actors",
}


@pytest.mark.parametrize("reply", SAME.values(), ids=list(SAME))
def test_ragged_reply(reply: str) -> None:
    assert parse_relation_paths(reply, RELATIONS, 2) == [[DIRECTED, STARRED]]


STEPS = {
    "alone": ("directed_by", [DIRECTED]),
    "directions": (
        "directed_by (forward) -> directed_by (backward)",
        [("directed_by", "forward"), ("directed_by", "backward")],
    ),
    "inverse": ("directed_by [inverse]", [("directed_by", "backward")]),
    "no brackets": ("directed_by backwards -> starred_actors", [("directed_by", "backward"), STARRED]),
    "made up": ("is directed by -> starred_actors", [("is directed by", "either"), STARRED]),
    "made up, with a direction": ("sibling (forward) -> directed_by", [("sibling", "forward"), DIRECTED]),
    "an arrow back": ("directed_by <- directed_by", [DIRECTED, ("directed_by", "backward")]),
    "arrows back": ("<-- directed_by ⟵ starred_actors", [("directed_by", "backward"), ("starred_actors", "backward")]),
    "arrows both ways": ("directed_by <-> starred_actors ↔ directed_by", [DIRECTED, STARRED, DIRECTED]),
    "an arrow and a word": ("directed_by <- starred_actors (forward)", [DIRECTED, ("starred_actors", "forward")]),
    "quoted, with a direction": ("`directed_by (forward)`", [("directed_by", "forward")]),
    "a path of Freebase": ("people person parents", [("/people/person/parents", "either")]),
    "a comma in its name": ("married, once", [("married, once", "either")]),
    "a comma in its name, and an arrow": ("married, once -> directed_by", [("married, once", "either"), DIRECTED]),
    "a direction is a name, too": ("forward -> directed_by", [("forward", "either"), DIRECTED]),
}


@pytest.mark.parametrize(("reply", "path"), STEPS.values(), ids=list(STEPS))
def test_steps(reply: str, path: list[tuple[str, str]]) -> None:
    assert parse_relation_paths(reply, RELATIONS, len(path)) == [path]


@pytest.mark.parametrize(
    ("reply", "path"),
    [
        ("Her -> directed_by", [DIRECTED]),
        ("1. `her` -> directed_by -> starred_actors", [DIRECTED, STARRED]),
        ("Spike_Jonze <- directed_by <- Her -> starred_actors", [("directed_by", "backward"), STARRED]),
        ("Spike Jonze, directed_by", [DIRECTED]),
        ("Unrelated To -> directed_by", [("Unrelated To", "either"), DIRECTED]),  # a relation letter by letter
        ("unrelated to -> directed_by", [DIRECTED]),
        ("Arrival -> directed_by", [("Arrival", "either"), DIRECTED]),
    ],
)
def test_entities_of_the_question_are_no_steps(reply: str, path: list[tuple[str, str]]) -> None:
    assert parse_relation_paths(reply, RELATIONS, len(path), ["Her", "Spike Jonze", "unrelated to"]) == [path]


def test_of_two_relations_that_read_the_same_each_is_found_by_its_name() -> None:
    relations = ["born in", "born_in", "Born In"]
    for relation in relations:
        assert parse_relation_paths(relation, relations, 1) == [[(relation, "either")]]
    assert parse_relation_paths("BORN IN", relations, 1) == [[("born in", "either")]]


# --- empty, broken and hostile replies ---

UNREADABLE = {
    "empty": ("", "the reply is empty"),
    "spaces": (" \n", "the reply is empty"),
    "reasoning only": ("<think>directed_by", "no line of the reply is a path"),
    "a refusal": ("I'm sorry, I can't do that.", "no line of the reply is a path"),
    "the answer": ("Spike Jonze", "no line of the reply is a path"),
    "prose with an arrow": ("I would go from the film -> to its maker.", "no line of the reply is a path"),
    "prose with a direction": ("The film is found by going backward", "no line of the reply is a path"),
    "made up": ("is directed by -> sibling (forward)", "no line of the reply is a path"),
    "entities": ("Her -> Spike Jonze", "no line of the reply is a path"),
    "too long": ("directed_by -> directed_by -> directed_by", "more than 2 relations"),
    "arrows only": ("-> -> ->", "no line of the reply is a path"),
    "a step without a name": ('directed_by -> ""', "no line of the reply is a path"),
    "lists of lists": ('[["directed_by"], ["starred_actors"]]', "no line of the reply is a path"),
    "call": ('__import__("os").system("echo")', "no line of the reply is a path"),
}


@pytest.mark.parametrize(("reply", "reason"), UNREADABLE.values(), ids=list(UNREADABLE))
def test_unreadable_reply(reply: str, reason: str) -> None:
    with pytest.raises(RelationPathParseError, match=reason) as caught:
        parse_relation_paths(reply, RELATIONS, 2, ["Her"])
    assert caught.value.reply == reply
    assert "Wanted lines as 'relation -> relation'" in str(caught.value)


def test_of_a_huge_reply_the_beginning_is_read() -> None:
    for huge in ("->" * 10**6, "<-" * 10**6, "[" * 10**6, "1. " * 10**6, "(forward" * 10**5, "\n" * 10**6, "a" * 10**6):
        with pytest.raises(RelationPathParseError):
            parse_relation_paths(huge, RELATIONS, 2)
        assert parse_relation_paths(f"directed_by -> starred_actors\n{huge}", RELATIONS, 2)[0] == [DIRECTED, STARRED]
    with pytest.raises(RelationPathParseError):
        parse_relation_paths(" " * MAX_REPLY + "directed_by", RELATIONS, 2)


PIECES = [*RELATIONS, "->", "<-", "(forward)", "\n", "- ", ",", "x", "["]


@given(st.text() | st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_reply_is_read_or_refused(reply: str) -> None:
    try:
        paths = parse_relation_paths(reply, RELATIONS, 3, ["x"])
    except RelationPathParseError as error:
        assert error.reply == reply  # noqa: PT017
        return
    assert len({tuple(path) for path in paths}) == len(paths) >= 1
    for path in paths:
        assert 1 <= len(path) <= 3
        assert all(name.strip() and direction in ("forward", "backward", "either") for name, direction in path)
        assert any(name in RELATIONS for name, _ in path)


@given(st.lists(st.tuples(st.sampled_from(RELATIONS), st.sampled_from(["forward", "backward", "either"])), min_size=1))
def test_what_is_asked_for_is_read_exactly(path: list[tuple[str, str]]) -> None:
    steps = [name if direction == "either" else f"{name} ({direction})" for name, direction in path]
    assert parse_relation_paths(" -> ".join(steps), RELATIONS, len(path)) == [path]


@pytest.mark.parametrize("filling", [" ", "-", "> ", "<-", "<", "\t"])
def test_long_runs_are_read_in_no_time(filling: str) -> None:
    """Where each blank or dash is a new beginning, this takes minutes."""
    reply = f"r1 -> r2\na{filling * 100_000}b"
    assert parse_relation_paths(reply, ["r1", "r2"], 3) == [[("r1", "either"), ("r2", "either")]]
