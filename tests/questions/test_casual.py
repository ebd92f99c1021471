"""Questions as people ask them: with greetings, context, courtesy and typos."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.index import QuestionEntity
from kg_retrievers.index.embeddings import token_table
from kg_retrievers.questions.casual import asked_part, spelt

#: Words of the relations of a graph.
WORDS = frozenset(["directed", "director", "genre", "language", "located", "supervisor", "written"])


def slots_of(question: str, *names: str) -> list[QuestionEntity]:
    """Return entities where a question names them last."""
    starts = [question.rindex(name) for name in names]
    return [QuestionEntity(at, at + len(name), name, (name,), 1, False) for at, name in zip(starts, names, strict=True)]


def asked(question: str, *names: str) -> tuple[str, list[str]]:
    """Return what is asked, and the entities that it names itself; the others stand at its end."""
    text, slots = asked_part(question, slots_of(question, *names))
    named = [slot for slot in slots if slot.start < slot.end]
    assert all(text[slot.start : slot.end] == slot.name for slot in named)
    assert all(slot.start == len(text) for slot in slots if slot not in named)
    return text, [slot.name for slot in named]


@pytest.mark.parametrize(
    "before",
    [
        *("Hi! ", "hey there, ", "Good morning all, ", "Dear team, ", "Sorry to bother you again, ", "Excuse me: "),
        *("Quick question: ", "So, ", "so ", "Ok ", "please ", "   \n Hi\n", "btw, hello, well, ", "I love trams. "),
        *("Can you tell me ", "Does anyone here happen to know ", "I can't remember ", "Hi, do you know "),
    ],
)
def test_a_greeting_is_left_out(before: str) -> None:
    assert asked(f"{before}who sang Hello", "Hello") == ("who sang Hello", ["Hello"])
    assert asked(f"{before}who runs Line 7?", "Line 7") == ("who runs Line 7?", ["Line 7"])


@pytest.mark.parametrize(
    "after",
    [
        *(" please?", ", thanks in advance!", " please? Thanks a lot!", " by any chance", ", do you know?", " again?"),
        *(", if you know?", "? Thx", "?\nCheers", "? I like it."),
    ],
)
def test_courtesy_at_the_end_is_left_out(after: str) -> None:
    text, named = asked(f"Hello, who runs Line 7{after}", "Line 7")
    assert (text.rstrip("?"), named) == ("who runs Line 7", ["Line 7"])


@pytest.mark.parametrize("before", ["Could you please tell us if", "I was wondering whether", "I'd like to know if"])
def test_an_indirect_claim_is_made_direct(before: str) -> None:
    claim = "Line 7 belongs to Metro?"
    assert asked(f"{before} {claim}", "Line 7", "Metro") == (claim, ["Line 7", "Metro"])


@pytest.mark.parametrize(
    "context", ["We missed Line 7. ", "Line 7 is late! I hate it. ", "Line 7: ", "About Line 7 - ", "the tram Line 7, "]
)
def test_context_before_the_question_is_left_out(context: str) -> None:
    assert asked(f"{context}Who runs it?", "Line 7") == ("Who runs it?", [])


def test_a_comma_behind_more_than_a_name_divides_nothing() -> None:
    assert asked("Who runs Line 7, when was it opened?", "Line 7")[0] == "Who runs Line 7, when was it opened?"


@pytest.mark.parametrize(("asks", "kept"), [("Who runs Line 7?", False), ("Who linked it to Line 7?", True)])
def test_an_entity_of_the_context_is_kept_beside_another_for_a_pronoun(asks: str, kept: bool) -> None:
    question = f"We missed Metro. {asks}"
    slots = asked_part(question, slots_of(question, "Metro", "Line 7"))[1]
    assert [slot.name for slot in slots] == ["Metro"] * kept + ["Line 7"]


def test_an_entity_that_the_caller_gives_is_kept() -> None:
    question = "Who works for Metro?"
    given_one = QuestionEntity(len(question), len(question), "Graz", ("Graz",), 1, True)
    assert given_one in asked_part(question, [*slots_of(question, "Metro"), given_one])[1]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        *(("Who is older: Ann or Bob?", ["Ann", "Bob"]), ("is Ann the boss of Bob?", ["Ann", "Bob"])),
        *(
            ("Hello was sung by whom?", ["Hello"]),
            ("So was sung by whom?", ["So"]),
            ("Who wrote Thank You", ["Thank You"]),
        ),
        *(("Who wrote What? When? Where?", ["What? When? Where?"]), ("Which trams has Dr. Who seen?", ["Dr. Who"])),
        *(("All films by Jonze", ["Jonze"]), ("do you know Line 7?", ["Line 7"])),
        *((text, []) for text in ("", "Hi", "hi there", "Thanks!", "Thank you, please.", "Do you know?", "?? !!")),
    ],
)
def test_a_question_stays_if_it_asks_itself_or_is_courtesy_alone(question: str, names: list[str]) -> None:
    assert asked(question, *names) == (question, names)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        *(("who dirceted Her", "who directed Her"), ("whats the gener of Her", "whats the genre of Her")),
        ("wrtten by whom is Her, lcoated where", "written by whom is Her, located where"),
        ("when was Her relased", "when was Her released"),  # a frequent word
    ],
)
def test_typos_are_spelt_like_words_of_the_graph_or_frequent_ones(question: str, expected: str) -> None:
    assert spelt(question, slots_of(question, "Her"), WORDS, token_table())[0] == expected


@pytest.mark.parametrize(
    "question",
    [
        *("who are the supervisors of Ann", "what is the tallest of the genres"),  # forms
        *("who was born in the town where Ann founded a company", "who is Dircetor", "who is the co-dircetor"),
    ],
)
def test_known_words_forms_and_names_are_left_alone(question: str) -> None:
    assert spelt(question, [], WORDS, token_table())[0] == question


def test_entities_are_left_alone_and_move_with_the_spelling() -> None:
    question = "dirceted is the supervisior of gener and knows the populaton of Graz"
    text, slots = spelt(question, slots_of(question, "dirceted", "gener", "Graz"), WORDS, token_table())
    assert text == "dirceted is the supervisor of gener and knows the population of Graz"
    assert [text[slot.start : slot.end] for slot in slots] == ["dirceted", "gener", "Graz"]


pieces = st.sampled_from([
    *("Hi,", "so", "please", "thanks", "Can you tell me", "if", "who", "runs", "it", "its", "Ann", "Dr."),
    *("dirceted", "supervisior", "populaton", ", ", "? ", ". ", ": ", " - ", "\n", "!"),
])  # fmt: skip
texts = st.lists(pieces | st.text(max_size=3), max_size=14).map(" ".join)


@given(texts, st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), max_size=4))
def test_entities_still_cover_their_characters(question: str, ends: list[tuple[int, int]]) -> None:
    slots = []
    for number, pair in enumerate(ends):
        start, end = sorted(min(at, len(question)) for at in pair)
        slots.append(QuestionEntity(start, end, question[start:end], (str(number),), 1, False))
    text, moved = spelt(*asked_part(question, slots), WORDS, token_table())
    for slot in moved:
        assert 0 <= slot.start <= slot.end <= len(text)
        assert slot.start == slot.end or text[slot.start : slot.end] == slot.name
