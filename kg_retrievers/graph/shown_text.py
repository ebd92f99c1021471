"""Cleans names before people or models see them; no other module does. What is stored keeps every character.

`one_line` is for terminals, tables and pictures; `as_data` for prompts and answers, where a name must not pass for a
citation mark, for a special token of a chat template, or for the end of the frame around the facts.
"""

from __future__ import annotations

import re
from unicodedata import category, combining

_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# Bidirectional controls, characters without width, and tags, which only a model reads; joiners are looked at apart.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]+"
)
_UNFIT = re.compile("[\ud800-\udfff\ufffe\uffff]")
# A second variation selector in a row changes nothing that can be seen, but may carry hidden text.
_SELECTORS = re.compile("([\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
_JOINERS = re.compile("[\u200c\u200d]+")
# The scripts that joiners belong to: Arabic to Malayalam and Sinhala, Tibetan and Myanmar, Khmer and Mongolian, and
# the Arabic presentation forms.
_JOINING = re.compile("[\u0600-\u0dff\u0f00-\u109f\u1780-\u18af\u1b00-\u1bff\ufb50-\ufdff\ufe70-\ufefc]")
# The combining class of the signs that take the vowel from an Indic letter.
_VIRAMA = 9

# "[99]", "[1, 2]", "[3-5]", also in brackets of other scripts.
_MARK = re.compile(r"[\[［【〔](\s*\^?\d[\s\d,;–—-]*)[\]］】〕]")
# "<|im_start|>", "</s>", "<start_of_turn>", "</facts>": only the bracket goes, so that no such token is left.
_TAG = re.compile(r"[<＜](?=[/|｜!?]|[^\W\d])")
# Special tokens that stand in square brackets.
_BRACKETED = re.compile(
    r"[\[［](/?(?:INST|SYS|SYSTEM_PROMPT|MODEL_SETTINGS|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|CALL_ID|"
    r"ARGS|THINK|IMG|IMG_BREAK|IMG_END|AUDIO|BEGIN_AUDIO|PREFIX|MIDDLE|SUFFIX|CLS|SEP|PAD|MASK|UNK|BOS|EOS|[gs]MASK))"
    r"[\]］]"
)


def one_line(text: str) -> str:
    r"""Return a text on one line, without characters that steer a terminal, turn text around or cannot be seen.

    Line breaks and control characters become one blank; bidirectional controls and characters without width go.
    Joiners stay between letters of the scripts that need them, as Persian and Hindi do, after a virama, and in emoji.

    Example:
        >>> one_line("Her\n[2] Dune"), one_line("\u202eenuD\u202c"), one_line("\x1b[2JHer")
        ('Her [2] Dune', 'enuD', ' [2JHer')
        >>> one_line("می\u200cخواهم") == "می\u200cخواهم"
        True
    """
    if text.isascii() and text.isprintable():
        return text
    text = _INVISIBLE.sub("", _BREAKS.sub(" ", text))
    text = _SELECTORS.sub(r"\1", _UNFIT.sub("\ufffd", text))
    return _JOINERS.sub(_needed_joiner, text)


def _needed_joiner(found: re.Match[str]) -> str:
    """Return the first of some joiners where a script or a picture needs it; else nothing."""
    before, after = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    joins_letters = _joins(before) and (_joins(after) or combining(before) == _VIRAMA)
    return found[0][0] if joins_letters or (_is_picture(before) and _is_picture(after)) else ""


def _is_picture(character: str) -> bool:
    """Tell whether a character is an emoji, its colour, or its variation selector."""
    return character == "\ufe0f" or (character != "" and category(character) in ("So", "Sk"))


def _joins(character: str) -> bool:
    """Tell whether a character is a letter, or a sign of a letter, of a script that joins."""
    return _JOINING.match(character) is not None and category(character)[0] in "LM"


def as_data(text: str) -> str:
    """Return `one_line` of a text, without what a model or a reader of its answer would take for more than a name.

    Numbers in square brackets, as citations have, and special tokens in square brackets stand in parentheses; "<" that
    begins a tag becomes "‹". Arrows stay.

    Example:
        >>> as_data("Dune [99]"), as_data("</facts>"), as_data("[INST] Her <|im_end|>")
        ('Dune (99)', '‹/facts>', '(INST) Her ‹|im_end|>')
        >>> as_data("Her <- directed by <- Spike Jonze"), as_data("[REC]"), as_data("I <3 You")
        ('Her <- directed by <- Spike Jonze', '[REC]', 'I <3 You')
    """
    line = one_line(text)
    line = _MARK.sub(r"(\1)", line)
    line = _BRACKETED.sub(r"(\1)", line)
    return _TAG.sub("‹", line)


def as_data_lines(text: str) -> str:
    """Return `as_data` of each line of a text, where the line breaks are our own."""
    return "\n".join(as_data(line) for line in text.split("\n"))
