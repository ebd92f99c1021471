"""One lenient reader of the replies of language models, for patterns, answers, citations, verdicts and routing.

A reply is data: nothing in it is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from kg_retrievers.errors import AnswerParseError

#: How many characters of a reply are read, after its reasoning.
MAX_REPLY = 100_000

#: How deeply lists and objects are read into each other.
MAX_DEPTH = 8

_THINK_OPENS = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_THINK_CLOSES = re.compile(r"</think(?:ing)?>", re.IGNORECASE)

Form = TypeVar("Form", bound=BaseModel)


def without_reasoning(reply: str) -> str:
    """Return what a reply says after its reasoning in `<think>` tags, of which the first may be missing.

    Example:
        >>> without_reasoning("It may be {x}.</think> {y}"), without_reasoning("{y} <think> But")
        (' {y}', '{y} ')
    """
    return _THINK_OPENS.split(_THINK_CLOSES.split(reply)[-1])[0]


def plain_answers(reply: str) -> list[str]:
    """Return the text of a reply, after its reasoning, as the one answer; none where it is blank."""
    text = without_reasoning(reply).strip()
    return [text] if text else []


def parse_object(reply: str, form: type[Form]) -> Form:
    """Read the first object of a reply that has the wanted form.

    Accepts what `read_nodes` accepts: reasoning in `<think>` tags, code fences, other text around the object, single or
    typographic quotes, missing or superfluous commas, a missing brace. Refuses an object that breaks off inside of a
    string.

    Args:
        reply: The text of the reply, of which the first `MAX_REPLY` characters after the reasoning are read.
        form: A pydantic model of the object.

    Raises:
        AnswerParseError: If there is no such object; the message says why, so that a model can correct it.
    """
    text = without_reasoning(reply)[:MAX_REPLY]
    nodes, cut_short = read_nodes(text)
    reason = "the reply is empty." if not text.strip() else "the reply holds no complete JSON object."
    for node in nodes:
        if node.opener != "{" or not node.is_whole or (cut_short and node.end is None):
            continue
        try:
            return form.model_validate(node.data())
        except ValidationError as error:
            problems = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False)]
            reason = f"the JSON object does not have the wanted form: {'; '.join(problems)}."
    raise AnswerParseError(f"{reason} Wanted one JSON object with {list(form.model_fields)}.", reply)


# Each quote that can open a string, with those that can close it; the codes are the typographic double and single ones.
CLOSING = {'"': '"', "'": "'"}
CLOSING |= dict.fromkeys("\u201c\u201d\u201e", '\u201c\u201d"') | dict.fromkeys("\u2018\u2019", "\u2018\u2019'")

_START = re.compile(r"[{\[]")
_TOKEN = re.compile(
    rf"""(?:[\s,]|//[^\n]*|\#[^\n]*)*+   # commas and comments are no more than space
    (?: (?P<open>[{{\[(]) | (?P<close>[}}\])]) | (?P<colon>:) | (?P<quote>[{"".join(CLOSING)}])
      | (?P<bare>(?:[^,:{{}}\[\]()/\#]|/(?!/))+) )""",
    re.VERBOSE,
)
# A quote ends a string only where the structure goes on after it, so that 'Schindler's List' is one string.
_STRING_ENDS = {
    quote: re.compile(rf"\\.|[{closing}](?=\s*+(?:[,:\])}}]|//|\#|\Z))", re.DOTALL)
    for quote, closing in CLOSING.items()
}

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(slots=True, eq=False)
class ReplyNode:
    """A list, tuple or object of the reply: its values in order, each with its key or None."""

    opener: str
    start: int
    parent: ReplyNode | None = None
    key: str | None = None
    keys: list[str | None] = field(default_factory=list)
    values: list[ReplyNode | str | None] = field(default_factory=list)
    next_key: str | None = None
    end: int | None = None

    @property
    def is_list(self) -> bool:
        """Whether it holds values and none of them has a key."""
        return bool(self.values) and not any(self.keys)

    @property
    def is_whole(self) -> bool:
        """Whether it is closed, or is an object that lacks nothing but its last brace."""
        if self.end is not None or self.opener != "{" or not self.values:
            return self.end is not None
        last = self.values[-1]
        return isinstance(last, ReplyNode) and last.end is not None

    def get(self, names: Iterable[str]) -> ReplyNode | str | None:
        """Return the value of the first name that is a key here, or None."""
        found = {key.casefold(): value for key, value in zip(self.keys, self.values, strict=True) if key}
        return next((found[name] for name in names if name in found), None)

    def data(self, depth: int = MAX_DEPTH) -> Any:
        """Return plain lists, dictionaries, texts and None; a number is a text, what lies deeper is None."""
        values = [
            value if not isinstance(value, ReplyNode) else value.data(depth - 1) if depth > 1 else None
            for value in self.values
        ]
        if self.opener == "[":
            return values
        return {key: value for key, value in zip(self.keys, values, strict=True) if key is not None}


def read_nodes(text: str) -> tuple[list[ReplyNode], bool]:
    """Return all nodes of the text, outer ones first, and whether it ends inside a string."""
    nodes: list[ReplyNode] = []
    stack: list[ReplyNode] = []
    still_open = {"{": 0, "[": 0}
    position = 0
    while True:
        if not stack:
            if not (start := _START.search(text, position)):
                return nodes, False
            position = start.start()
        if not (token := _TOKEN.match(text, position)):
            return nodes, False
        kind, position = token.lastgroup, token.end()
        mark = token[kind or 0]
        here = stack[-1] if stack else None
        value: ReplyNode | str | None
        if kind == "close":
            opener = "{" if mark == "}" else "["
            while still_open[opener]:  # forgotten closers in between are put up with
                closed = stack.pop()
                closed.end = position
                still_open[closed.opener] -= 1
                if closed.opener == opener:
                    break
            continue
        if kind == "colon":
            if here and here.values and isinstance(here.values[-1], str) and here.keys[-1] is None:
                here.keys.pop()
                here.next_key = str(here.values.pop()).strip()
            continue
        if kind == "open":
            value = ReplyNode("{" if mark == "{" else "[", token.start("open"), here, here.next_key if here else None)
            nodes.append(value)
            stack.append(value)
            still_open[value.opener] += 1
        elif kind == "quote":
            ends = (found for found in _STRING_ENDS[mark].finditer(text, position) if found[0][0] != "\\")
            if not (end := next(ends, None)):
                return nodes, True
            value, position = _unescape(text[position : end.start()]), end.end()
        else:
            value = None if mark.strip().casefold() in ("null", "none") else mark.strip()
        if here:
            here.keys.append(here.next_key)
            here.values.append(value)
            here.next_key = None


def _unescape(text: str) -> str:
    def character(escape: re.Match[str]) -> str:
        code = escape[1]
        if len(code) == 1:
            return _ESCAPED.get(code, code)
        number = int(code[1:], 16)
        return chr(number) if number <= 0x10FFFF else "\N{REPLACEMENT CHARACTER}"

    if "\\" not in text:
        return text
    # JSON writes characters beyond the 16-bit range as two escapes; they are joined here.
    return _ESCAPE.sub(character, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
