"""What names look like where people and models see them."""

from __future__ import annotations

import re
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.graph.verbalize import as_data, as_data_lines, one_line

UNCHANGED = {
    "Persian": "می\u200cخواهم",
    "Hindi": "क्\u200dष and क्\u200cष",
    "Sinhala": "ශ්\u200dරී ලංකා",
    "Malayalam, at the end of a word": "അവന്\u200d",
    "emoji": "👩‍🚀 ❤️‍🔥",
    "Hebrew": "שלום",
    "Chinese": "宮崎駿",
    "square brackets": "[REC]",
    "a heart": "I <3 You",
    "an arrow": "A -> B <- C",
    "a variant of an ideograph": "葛\U000e0100城",
}


@pytest.mark.parametrize("name", UNCHANGED.values(), ids=list(UNCHANGED))
def test_names_that_stay(name: str) -> None:
    assert as_data(name) == one_line(name) == name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Her\r\n\x0b\x0c\x85\u2028\u2029Dune", "Her Dune"),
        ("a\tb\x00c\x9bd", "a b c d"),
        ("\u202egnp.exe\u202c", "gnp.exe"),
        ("H\u200be\u2060r\ufeff\u00ad", "Her"),
        ("H\u200ce\u200dr", "Her"),  # Latin has no joiners
        ("\u200cمی\u200c", "می"),  # none at an end
        ("می\u200c\u200d\u200cخواهم", "می\u200cخواهم"),
        ("Her\U000e0049\U000e0067", "Her"),  # tags: letters that only a model reads
        ("a\ufe00\ufe01\ufe02", "a\ufe00"),
        ("\ud800", "\ufffd"),
    ],
)
def test_one_line(name: str, shown: str) -> None:
    assert one_line(name) == as_data(name) == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Dune [99]", "Dune (99)"),
        ("[1, 2] [3-5] [ 6 ] [^7]", "(1, 2) (3-5) ( 6 ) (^7)"),
        ("【8】 ［９］", "(8) (９)"),
        ("<|im_start|>system", "‹|im_start|>system"),
        ("<\u200b|im_end|>", "‹|im_end|>"),
        ("</s><s></facts>", "‹/s>‹s>‹/facts>"),
        ("<<SYS>> <</SYS>>", "<‹SYS>> <‹/SYS>>"),
        ("<start_of_turn> <｜User｜> ＜facts＞", "‹start_of_turn> ‹｜User｜> ‹facts＞"),
        ("[INST] x [/INST] [TOOL_CALLS] [gMASK]", "(INST) x (/INST) (TOOL_CALLS) (gMASK)"),
    ],
)
def test_as_data(name: str, shown: str) -> None:
    assert as_data(name) == shown


pieces = st.sampled_from(
    [
        *"[](){}<>|/0123456789,;-^ \n\x1b\u200b\u200c\u200d\u202e\u2028😀می",
        *("INST", "im_start", "<facts>", "</facts>", "[1", "99]", "क्"),
    ]
)
texts = st.text() | st.lists(pieces | st.characters(), max_size=12).map("".join)


@given(texts)
def test_nothing_is_left_that_could_be_more_than_a_name(text: str) -> None:
    shown = as_data(text)
    assert as_data(shown) == shown  # cleaning makes nothing new
    assert shown.splitlines() in ([shown], [])
    assert not {category(character) for character in shown} & {"Cc", "Zl", "Zp", "Cs"}
    assert not re.search("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]", shown)
    assert not re.search(r"\[\s*\d[\d\s,;–-]*\]|<[/|a-zA-Z]|\[/?INST\]", shown)
    assert shown.encode().decode() == shown


def test_lines_of_ours_stay_lines() -> None:
    assert as_data_lines("a -> [1]\r\n\nb\x85c") == "a -> (1) \n\nb c"
