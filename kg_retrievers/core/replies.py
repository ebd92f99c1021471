"""Read the replies of language models leniently.

The functions find the object in a reply, and the answers in it.

A reply is data: nothing in it is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from kg_retrievers.core.stages import MIN_CONFIDENCE
from kg_retrievers.errors import (
    AnswerParseError,
    EntityLinkingError,
    LowConfidenceError,
    RefusalError,
    ReplyError,
    SearchBudgetError,
)

#: How many characters of a reply are read, after its reasoning.
MAX_REPLY = 100_000

#: How deeply lists and objects are read into each other.
MAX_DEPTH = 8

#: Stands for the answer if there is no evidence, or a model finds no answer in it.
NO_ANSWER = "The knowledge graph holds no answer to this question."

#: Stands for the answer if the question names no entity of the graph, or is not understood surely enough.
NOT_UNDERSTOOD = "The question was not understood."

#: Stands for the answer if it is less certain than the caller requires.
LESS_SURE = "The answer is less certain than required."

#: Stands for the answer if a budget ended the search. The graph may hold one.
SEARCH_ENDED = "The search ended before it found anything."

#: Stands for the answer if the evidence proposes no entity, such as the evidence of a pattern without a target.
NO_TARGET = "The knowledge graph holds facts on this question, but they propose no entity as the answer."

# The advice to give a language model, in hints for Python and for the shell.
_GIVE_MODEL = re.compile(r" (?:or|give|with) llm=,?| (?:or|give) --llm\b,?| --llm MODEL")
_HALVES = re.compile(r"[\ud800-\udfff]")
_THINK_OPENS = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_THINK_CLOSES = re.compile(r"</think(?:ing)?>", re.IGNORECASE)

Form = TypeVar("Form", bound=BaseModel)


def refusal_of(error: RefusalError) -> str:
    """Return the answer to a refused question: `NOT_UNDERSTOOD`, `LESS_SURE`, `SEARCH_ENDED`, or `NO_ANSWER`.

    The graph may hold an answer to a question that was not understood, or whose search a budget ended.
    """
    if isinstance(error, LowConfidenceError) and error.confidence >= MIN_CONFIDENCE:
        return LESS_SURE
    if isinstance(error, EntityLinkingError | LowConfidenceError | ReplyError):
        return NOT_UNDERSTOOD
    return SEARCH_ENDED if isinstance(error, SearchBudgetError) else NO_ANSWER


def _calls_model(retriever: object) -> bool:
    """Tell whether a part of a retriever, or of a retriever within it, calls a language model."""
    parts = [*vars(retriever).values()]
    inner = (part for part in parts if hasattr(part, "stages"))
    return any(getattr(part, "calls_model", False) for part in parts) or any(map(_calls_model, inner))


def drop_model_advice(error: RefusalError, retriever: object) -> None:
    """Drop hints to pass a language model if the retriever uses one.

    Example:
        >>> from types import SimpleNamespace
        >>> error = RefusalError("Nothing fits.", hint_python="Rephrase it, or give examples= or llm=.")
        >>> drop_model_advice(error, SimpleNamespace(generator=SimpleNamespace(calls_model=True)))
        >>> error.hint_python
        'Rephrase it, or give examples=.'
    """
    if _calls_model(retriever):
        error.hint_python = _GIVE_MODEL.sub("", error.hint_python)
        error.hint_shell = _GIVE_MODEL.sub("", error.hint_shell)


def without_reasoning(reply: str) -> str:
    """Return the text of a reply after its reasoning in `<think>` tags.

    The first tag may be missing.

    Halves of surrogate pairs, which no file and no client takes, are replaced.

    Example:
        >>> without_reasoning("It may be {x}.</think> {y}"), without_reasoning("{y} <think> But")
        (' {y}', '{y} ')
    """
    return _whole_characters(_THINK_OPENS.split(_THINK_CLOSES.split(reply)[-1])[0])


# Answers ------------------------------------------------------------------------------------------------------------

# "Answer:", "**Final answer:**", "- ans:" at the beginning of a line.
_MARKER = re.compile(r"[ \t>*_`#-]*(?:final )?ans(?:wers?)?[ \t*_`]*:[*_` \t]*", re.IGNORECASE)
# The same inside of a line, where no line begins with it.
_INNER_MARKER = re.compile(r"\b(?:(?:final )?answers?(?: is| are)?|ans)[*_`]*:[*_` \t]*", re.IGNORECASE)
# Where a model goes on with an example of its own, or explains itself.
_LABEL = re.compile(
    r"[ \t>*_`#-]*(?:question|evidence|facts|graph|paths|steps|reason|explanation|note)[*_`]*:", re.IGNORECASE
)
_BULLET = re.compile(r"\s*[-*+\u2022]\s+(?=\S)")
_NUMBERED = re.compile(r"\s*(\d{1,3})[.)]\s+(?=\S)")
_EMPHASIS = re.compile(r"(\*\*|__|`)(.+)\1")

# Sentences by which a model says that it has no answer; they are read in small letters, from their beginning.
_SOURCE = r"(?:evidence|facts?|(?:sub)?graphs?|triples?|paths?|context|information|data|documents?)"
_NOT = r"(?: not|n['\u2019]t|not)\b"
_LEAD = r"(?:(?:sorry|i['\u2019]?m sorry|unfortunately|however|based on|from|according to)\b[^.;]{0,80}?, )?(?:but )?"
_ABSTENTIONS = (
    rf"(?:not available|n/a|none|no answer|unanswerable|i do{_NOT} know)[.!]?\Z",
    r"(?:there (?:is|are|was|were) )?(?:no|not enough|insufficient) (?:\w+ ){0,2}?(?:answers?|information|evidence)\b",
    r"there (?:is|are|was|were) (?:no|nothing)\b",
    rf"none of the (?:\w+ ){{0,2}}?{_SOURCE}\b",
    rf"(?:(?:the|these|this|those|given|provided) (?:\w+ ){{0,3}}?)?{_SOURCE}(?: \w+){{0,3}}?"
    rf"(?: (?:do|does|did|is|are|was|were|can|could){_NOT}| lacks?\b"
    r"| (?:have|has|holds?|contains?|gives?|says?|shows?|names?|supports?) (?:no|nothing|none)\b"
    r"| (?:is|are) insufficient\b)",
    rf"no (?:\w+ )?{_SOURCE} (?:answer|give|mention|name|sa[iy]|state|support|tell)",
    rf"the (?:[^.;\s]+ ){{1,12}}?(?:(?:is|are|was|were){_NOT} (?:mention|named|provided|specif|state)"
    rf"|(?:can|could){_NOT} be (?:answer|determine|found|identif|infer))",
    rf"(?:it|this|that|they|the (?:question|answer)) (?:\w+ ){{0,8}}?(?:can|could|is|are|was|do|does){_NOT} (?:be )?"
    r"(?:answer|determine|find|found|infer|say|said|state|given|mention|specif|provided|known|available)",
    r"it is (?:im|not )possible to\b",
    rf"i (?:can{_NOT}|could{_NOT}|am unable to|was unable to) (?:answer|find|determine|say)\b",
    rf"(?:can|could){_NOT} (?:be )?(?:answer|determine|found|infer)",
    rf"not (?:stated|given|mentioned|specified|provided|enough|answerable|in the {_SOURCE})\b",
)
_ABSTENTION = re.compile(f"{_LEAD}(?:{'|'.join(_ABSTENTIONS)})")


def is_abstention(text: str) -> bool:
    """Whether a text says, from its beginning, that there is no answer.

    Example:
        >>> is_abstention("The evidence does not say."), is_abstention("Spike Jonze. The evidence does not say more.")
        (True, False)
    """
    words = " ".join(text[:400].casefold().split()).strip("*_`\"' ")
    own = (NO_TARGET.casefold(), NOT_UNDERSTOOD.casefold(), LESS_SURE.casefold())
    return words.startswith(own) or _ABSTENTION.match(words) is not None


def plain_answers(reply: str) -> list[str]:
    """Return a reply after its reasoning as the one answer.

    The list is empty if the reply is blank or an abstention.
    """
    text = without_reasoning(reply).strip()
    return [text] if text and not is_abstention(text) else []


def marked_answers(reply: str, separator: str | None = ";") -> list[str]:
    r"""Read the answers that stand behind a marker, "Answer:" or "ans:", after the reasoning.

    The answers are the items of a list, or the parts of a line between separators. If a line holds the marker alone,
    they follow on the next lines. Without a marker the whole reply is read: its bullets, or its only line, or else all
    of it as one answer. An answer that is an abstention is left out, and so is one that comes again.

    Args:
        reply: The text of the reply, of which the first `MAX_REPLY` characters after the reasoning are read.
        separator: The text between several answers on one line. None if each marker has one answer.

    Example:
        >>> marked_answers("Reason: Both rise there [1].\nAnswer: Netherlands; France")
        ['Netherlands', 'France']
        >>> marked_answers("Reason: No fact tells it.\nAnswer: The evidence does not say.")
        []
    """
    lines = _lines_before_another_question(reply)
    marked = [number for number, line in enumerate(lines) if _MARKER.match(line)]
    if not marked:
        text = "\n".join(lines).strip()
        if inner := _INNER_MARKER.search(text):
            lines = text[inner.end() :].split("\n")
            return _different(_block_answers(lines[0], lines[1:], separator))
        return _different(_text_answers(text, ";"))
    answers: list[str] = []
    for number, after in zip(marked, [*marked[1:], len(lines)], strict=True):
        first = lines[number][_MARKER.match(lines[number]).end() :]  # type: ignore[union-attr]
        answers += _block_answers(first, lines[number + 1 : after], separator)
    return _different(answers)


def listed_answers(reply: str) -> list[str]:
    r"""Read answers that stand one per line, after the reasoning.

    A marker before them, "Answers:", may be missing.

    Example:
        >>> listed_answers("Enceladus\nMimas"), listed_answers("not available")
        (['Enceladus', 'Mimas'], [])
    """
    lines = _lines_before_another_question(reply)
    marked = [number for number, line in enumerate(lines) if _MARKER.match(line)]
    if len(marked) > 1:
        return marked_answers(reply, None)
    if marked:
        lines = lines[marked[0] :]
        lines[0] = _MARKER.sub("", lines[0], count=1)
    paragraph = _paragraph(lines)
    return _different(_text_answers(paragraph[0], ";") if len(paragraph) == 1 else _items(paragraph))


def _lines_before_another_question(reply: str) -> list[str]:
    """Return the lines of a reply.

    After the first marker, these are only the lines before the model continues with something else.
    """
    lines = [line.rstrip() for line in without_reasoning(reply)[:MAX_REPLY].strip().splitlines()]
    first = next((number for number, line in enumerate(lines) if _MARKER.match(line)), None)
    if first is None:
        return lines
    end = next((number for number in range(first + 1, len(lines)) if _LABEL.match(lines[number])), len(lines))
    return lines[:end]


def _block_answers(first: str, following: list[str], separator: str | None) -> list[str]:
    """Return the answers of a marker's line and of the lines that belong to it."""
    below = _paragraph(following)
    if first.strip() and not first.endswith(":"):
        bullets = [line for line in below if _BULLET.match(line)]
        return _text_answers(first, separator) + _items(bullets)
    return _text_answers(below[0], separator) if len(below) == 1 else _items(below)


def _text_answers(text: str, separator: str | None) -> list[str]:
    """Return a text's answers: bullets, parts of a line, or all of it."""
    lines = text.strip().split("\n")
    if any(_BULLET.match(line) for line in lines):
        return _items([line for line in lines if _BULLET.match(line)])
    if is_abstention(text):
        return []
    if quoted := _quoted_list(text.strip()):
        return quoted
    if len(lines) > 1 or separator is None:
        return [text]
    return text.split(separator + " ")


def _quoted_list(text: str) -> list[str]:
    """Return the texts of a list in brackets, whose items are in quotes."""
    if text[:1] != "[" or text[1:2] not in CLOSING:
        return []
    nodes, _ = read_nodes(text)
    whole = nodes[0].is_list and nodes[0].end == len(text)
    return [value for value in nodes[0].values if isinstance(value, str)] if whole else []


def _items(lines: list[str]) -> list[str]:
    """Return the items of a list without bullets, and without numbers if these count from 1."""
    lines = [line for line in lines if not line.endswith(":")]
    numbers = [found[1] if (found := _NUMBERED.match(line)) else "" for line in lines]
    counted = len(lines) > 1 and numbers == [str(number) for number in range(1, len(lines) + 1)]
    return [(_NUMBERED if counted else _BULLET).sub("", line, count=1) for line in lines]


def _paragraph(lines: list[str]) -> list[str]:
    """Return the first lines with something in them, up to a blank one."""
    text = "\n".join(lines).strip("\n")
    return text.split("\n\n", 1)[0].split("\n")


def _different(answers: Iterable[str]) -> list[str]:
    """Return answers without emphasis, each once, without blanks and abstentions."""
    bare = [_EMPHASIS.sub(r"\2", answer.strip()).rstrip(";").strip() for answer in answers]
    return [answer for answer in dict.fromkeys(bare) if answer and not is_abstention(answer)]


# Objects ------------------------------------------------------------------------------------------------------------


def parse_object(reply: str, form: type[Form]) -> Form:
    """Read the first object of a reply that has the wanted form.

    Accepts what `read_nodes` accepts: reasoning in `<think>` tags, code fences, other text around the object, single or
    typographic quotes, missing or superfluous commas, a missing last brace. Refuses an object that breaks off inside of
    a text or a list.

    Args:
        reply: The text of the reply, of which the first `MAX_REPLY` characters after the reasoning are read.
        form: A pydantic model of the object.

    Raises:
        AnswerParseError: If there is no such object. The message says why, so that a model can correct it.
    """
    text = without_reasoning(reply)[:MAX_REPLY]
    nodes, cut_short = read_nodes(text)
    reason = "the reply is empty." if not text.strip() else "the reply holds no complete JSON object."
    nearest = -1
    for node in nodes:
        if not any(node.keys) or not node.is_whole or (cut_short and node.end is None):
            continue
        try:
            return form.model_validate(node.data())
        except ValidationError as error:
            known = len({*form.model_fields} & {*node.keys})
            if known > nearest:  # the problems of the object that was meant
                nearest = known
                problems = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
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

#: A backslash before any character.
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(slots=True, eq=False)
class ReplyNode:
    """A list, tuple or object of the reply.

    It holds its values in order, each with its key or None.
    """

    opener: str
    start: int
    parent: ReplyNode | None = None
    key: str | None = None
    keys: list[str | None] = field(default_factory=list)
    values: list[ReplyNode | str | None] = field(default_factory=list)
    next_key: str | None = None
    end: int | None = None
    last_is_quoted: bool = False

    @property
    def is_list(self) -> bool:
        """Whether it holds values and none of them has a key."""
        return bool(self.values) and not any(self.keys)

    @property
    def is_whole(self) -> bool:
        """Whether it is closed, or an object that lacks only its last brace."""
        if self.end is not None or self.opener != "{" or not self.values or self.next_key is not None:
            return self.end is not None
        last = self.values[-1]
        if isinstance(last, ReplyNode):
            return last.end is not None
        return self.last_is_quoted and self.keys[-1] is not None

    def get(self, names: Iterable[str]) -> ReplyNode | str | None:
        """Return the value of the first name that is a key here, or None."""
        found = {key.casefold(): value for key, value in zip(self.keys, self.values, strict=True) if key}
        return next((found[name] for name in names if name in found), None)

    def data(self, depth: int = MAX_DEPTH) -> Any:
        """Return plain lists, dictionaries, texts and None.

        A number becomes a text, and deeper values become None.
        """
        values = [
            value if not isinstance(value, ReplyNode) else value.data(depth - 1) if depth > 1 else None
            for value in self.values
        ]
        if self.opener == "[":
            return values
        return {key: value for key, value in zip(self.keys, values, strict=True) if key is not None}

    def add(self, value: ReplyNode | str | None, quoted: bool = False) -> None:
        """Append a value under the key that was read last, if any."""
        self.keys.append(self.next_key)
        self.values.append(value)
        self.next_key = None
        self.last_is_quoted = quoted

    def take_key(self) -> None:
        """Make the last value the key of the next one."""
        if self.values and isinstance(self.values[-1], str) and self.keys[-1] is None:
            self.keys.pop()
            self.next_key = str(self.values.pop()).strip()


def read_nodes(text: str) -> tuple[list[ReplyNode], bool]:
    """Return all nodes of the text, outer ones first, and whether it ends inside a string.

    Time and memory are linear in the length of the text.
    """
    return _NodeReader(text).read()


class _NodeReader:
    """Reads nodes, token by token."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0
        self.nodes: list[ReplyNode] = []
        self.stack: list[ReplyNode] = []
        self.still_open = {"{": 0, "[": 0}

    def read(self) -> tuple[list[ReplyNode], bool]:
        """Return what `read_nodes` returns."""
        while token := self._next_token():
            kind, mark = token.lastgroup, token[token.lastgroup or 0]
            self.position = token.end()
            if kind == "open":
                self._open("{" if mark == "{" else "[", token.start("open"))
            elif kind == "close":
                self._close("{" if mark == "}" else "[")
            elif kind == "colon":
                self.stack[-1].take_key()
            elif kind == "quote":
                if not self._read_string(mark):
                    return self.nodes, True
            else:
                self.stack[-1].add(None if mark.strip().casefold() in ("null", "none") else mark.strip())
        return self.nodes, False

    def _next_token(self) -> re.Match[str] | None:
        """Return the next token. Outside of all nodes, return the next token that opens one."""
        if not self.stack:
            if not (start := _START.search(self.text, self.position)):
                return None
            self.position = start.start()
        return _TOKEN.match(self.text, self.position)

    def _open(self, opener: str, start: int) -> None:
        parent = self.stack[-1] if self.stack else None
        node = ReplyNode(opener, start, parent, parent.next_key if parent else None)
        if parent:
            parent.add(node)
        self.nodes.append(node)
        self.stack.append(node)
        self.still_open[opener] += 1

    def _close(self, opener: str) -> None:
        """Close the nearest node of that kind, and the unclosed nodes inside it."""
        while self.stack and self.still_open[opener]:
            closed = self.stack.pop()
            closed.end = self.position
            self.still_open[closed.opener] -= 1
            if closed.opener == opener:
                break

    def _read_string(self, quote: str) -> bool:
        """Read a string up to its end, and return whether it has one."""
        ends = (found for found in _STRING_ENDS[quote].finditer(self.text, self.position) if found[0][0] != "\\")
        if not (end := next(ends, None)):
            return False
        self.stack[-1].add(_unescaped(self.text[self.position : end.start()]), quoted=True)
        self.position = end.end()
        return True


def _unescaped(text: str) -> str:
    def character(escape: re.Match[str]) -> str:
        code = escape[1]
        if len(code) == 1:
            return _ESCAPED.get(code, code)
        codepoint = int(code[1:], 16)
        return chr(codepoint) if codepoint <= 0x10FFFF else "\N{REPLACEMENT CHARACTER}"

    if "\\" not in text:
        return text
    return _whole_characters(_ESCAPE.sub(character, text))


def _whole_characters(text: str) -> str:
    """Join halves of surrogate pairs, such as from JSON's escapes.

    Halves that stand alone are replaced.
    """
    if text.isascii() or not _HALVES.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
