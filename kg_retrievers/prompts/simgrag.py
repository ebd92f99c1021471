"""SimGRAG's prompts: question to pattern, repair of an unreadable reply, evidence to answer; and the reply's parser.

The method is that of "SimGRAG: Leveraging Similar Subgraphs for Knowledge Graphs Driven Retrieval-Augmented
Generation" (Cai et al., Findings of ACL 2025, arXiv:2412.15272), section 4 and tables 10 and 12. The words and the
worked examples are our own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from langchain_core.prompts import ChatPromptTemplate

from kg_retrievers.errors import PatternError, PatternParseError
from kg_retrievers.graph.types import Known, Pattern, Term, Unknown
from kg_retrievers.prompts import without_reasoning

#: The version of all prompts in this file. It changes with any change of their words.
VERSION = "1"

#: How many characters of a reply are read; a pattern takes about a thousand.
MAX_REPLY = 100_000

#: The worked examples of `PATTERN_PROMPT`: a question and the object that answers it.
EXAMPLES: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "Which river flows through Budapest?",
        {
            "segments": ["the river that flows through Budapest"],
            "triples": [["UNKNOWN river 1", "flows through", "Budapest"]],
            "target": "UNKNOWN river 1",
        },
    ),
    (
        "In what city was the architect of the Casa Batlló born?",
        {
            "segments": ["the architect of the Casa Batlló", "the city where this architect was born"],
            "triples": [
                ["Casa Batlló", "architect", "UNKNOWN architect 1"],
                ["UNKNOWN architect 1", "birth place", "UNKNOWN city 1"],
            ],
            "target": "UNKNOWN city 1",
        },
    ),
    (
        "what languages are spoken in the movies written by the director of Mustang",
        {
            "segments": [
                "the director of Mustang",
                "the movies written by this director",
                "the languages spoken in these movies",
            ],
            "triples": [
                ["Mustang", "directed by", "UNKNOWN director 1"],
                ["UNKNOWN movie 1", "written by", "UNKNOWN director 1"],
                ["UNKNOWN movie 1", "spoken language", "UNKNOWN language 1"],
            ],
            "target": "UNKNOWN language 1",
        },
    ),
    (
        "Which novels did Jules Verne publish in 1870?",
        {
            "segments": ["the novels written by Jules Verne", "these novels were published in 1870"],
            "triples": [["UNKNOWN novel 1", "author", "Jules Verne"], ["UNKNOWN novel 1", "publication year", "1870"]],
            "target": "UNKNOWN novel 1",
        },
    ),
    (
        "Who are the co-stars of Toni Servillo?",
        {
            "segments": ["the films that star Toni Servillo", "the other actors who star in these films"],
            "triples": [
                ["UNKNOWN film 1", "starring", "Toni Servillo"],
                ["UNKNOWN film 1", "starring", "UNKNOWN actor 1"],
            ],
            "target": "UNKNOWN actor 1",
        },
    ),
    (
        "who directed the film Unknown",
        {
            "segments": ["the director of the film Unknown"],
            "triples": [['"Unknown"', "directed by", "UNKNOWN director 1"]],
            "target": "UNKNOWN director 1",
        },
    ),
    (
        "How is Theo van Gogh connected with Vincent van Gogh?",
        {
            "segments": ["the connection between Theo van Gogh and Vincent van Gogh"],
            "triples": [["Theo van Gogh", "UNKNOWN relation 1", "Vincent van Gogh"]],
            "target": None,
        },
    ),
    (
        "Marie Curie, a native of Warsaw, was married to a physicist.",
        {
            "segments": [
                "Marie Curie was born in Warsaw",
                "Marie Curie was married to a person",
                "this person was a physicist",
            ],
            "triples": [
                ["Marie Curie", "birth place", "Warsaw"],
                ["Marie Curie", "spouse", "UNKNOWN person 1"],
                ["UNKNOWN person 1", "occupation", "physicist"],
            ],
            "target": None,
        },
    ),
)

_RULES = """\
1. First cut the question into segments, one for each single fact it speaks of. Then write one triple for each segment.
2. A triple is ["head", "relation", "tail"]. Write names exactly as the question writes them, and relations as short \
phrases that mean something when read alone: "publication year" rather than "in", "starring" rather than "of".
3. What the question does not name is written UNKNOWN, its kind and a number: "UNKNOWN film 1". The same thing has the \
same number everywhere, different things of one kind have different numbers. A relation that the question does not \
name is "UNKNOWN relation 1".
4. A real name that is, or begins with, the word Unknown stands in quotation marks of its own: "\\"Unknown\\"".
5. A relation between two like things through a third, such as "co-author", "same director" or "colleague", is two \
triples that meet in the third thing.
6. Numbers, years and dates are heads or tails too: only the value, without a unit.
7. The target is the UNKNOWN thing that is asked for. It is null when no thing is asked for, as in a statement, a \
yes-or-no question or a question for a relation.
8. Reply with one JSON object and nothing else:
{"segments": ["...", ...], "triples": [["head", "relation", "tail"], ...], "target": "UNKNOWN kind 1"}"""


def _escape(text: str) -> str:
    """Double the braces of a text that is to become part of a template."""
    return text.replace("{", "{{").replace("}", "}}")


def _prompt(text: str) -> ChatPromptTemplate:
    # One message of the user, as in the paper: some models have no system role.
    return ChatPromptTemplate.from_messages([("human", text)])


#: Asks for the pattern of a question. Placeholder: `question`. The reply is read by `parse_pattern`.
PATTERN_PROMPT: ChatPromptTemplate = _prompt(
    "Rewrite a question as the small graph of facts that would answer it. The graph is then looked up in a knowledge "
    "graph, so leave the answer open even if you know it.\n\nRules\n"
    + _escape(_RULES)
    + "\n\nExamples\n\n"
    + "\n\n".join(
        f"Question: {_escape(question)}\nJSON: {_escape(json.dumps(reply, ensure_ascii=False))}"
        for question, reply in EXAMPLES
    )
    + "\n\nNow the question to rewrite\n\nQuestion: {question}\nJSON:"
)

#: Asks once more after an unreadable reply. Placeholders: `question`, `reply`, `error`.
REPAIR_PROMPT: ChatPromptTemplate = _prompt(
    "A question was to be rewritten as the small graph of facts that would answer it, but the reply cannot be read.\n\n"
    "Rules\n"
    + _escape(_RULES)
    + "\n\nQuestion: {question}\n\nThe reply:\n{reply}\n\nWhat is wrong with it: {error}\n\n"
    "Write the JSON object again, correctly, and nothing else.\nJSON:"
)

#: Asks for the answer from retrieved evidence. Placeholders: `question`, `evidence`.
ANSWER_PROMPT: ChatPromptTemplate = _prompt("""\
Answer a question from facts that were retrieved from a knowledge graph.

Rules
1. Use the evidence only, never what you know otherwise.
2. Copy names and values letter by letter from the evidence; do not translate, shorten or correct them.
3. Several pieces of evidence may hold different right answers: give all of them. Leave out what clearly does not fit \
the question.
4. If the evidence does not answer the question, say so instead of guessing.
5. First give the reason in one short sentence, then the answer; several answers are separated by semicolons.

Examples

Question: In which countries do the rivers end that rise in the Swiss Alps?
Evidence:
[1] (Rhine, source, Swiss Alps); (Rhine, mouth_country, Netherlands)
[2] (Rhône, source, Swiss Alps); (Rhône, mouth_country, France)
[3] (Po, source, Cottian Alps); (Po, mouth_country, Italy)
Reason: The Rhine [1] and the Rhône [2] rise in the Swiss Alps, the Po does not.
Answer: Netherlands; France

Question: Who composed the opera Rusalka?
Evidence:
[1] (Rusalka, language, Czech); (Rusalka, premiere_year, 1901)
Reason: The evidence tells the language and the year of Rusalka [1], but not its composer.
Answer: The evidence does not say.

Now the question to answer

Question: {question}
Evidence:
{evidence}
Reason:""")


def parse_pattern(reply: str) -> Pattern:
    r"""Read the pattern from a model's reply to `PATTERN_PROMPT` or `REPAIR_PROMPT`.

    The reply is read as data by a tolerant reader, nothing in it is evaluated. Reasoning in `<think>` tags, code
    fences, other text around the object, single or typographic quotes, tuples, comments, missing or superfluous commas
    and unescaped quotes inside names are put up with. The first list of readable triples counts; it is called
    "triples", "triplets", "graph", "edges" or "pattern", or it is the whole reply. A triple is a list of three texts
    or an object with head, relation and tail (or subject, predicate and object; source and target). A reply that
    breaks off is refused, since a part of a pattern asks for something else.

    How a text becomes a term:

    - `UNKNOWN film 1`, in capitals or not, is `Unknown("film 1", type="film")`; a relation gets no type.
    - `?film` is `Unknown("film")`.
    - `UNKNOWN` alone, in capitals, is one unknown without a kind; `Unknown` or `unknown` alone is a name.
    - A text in quotes of its own, as in `"\"Unknown\""`, is a name whatever it says.
    - Everything else is a name.

    A target that is not mentioned is the unknown node, if there is exactly one; a target that is null or names no
    unknown node is None. Time and memory are linear in the length of the reply, of which the first `MAX_REPLY`
    characters after the reasoning are read.

    Args:
        reply: The text of the reply.

    Returns:
        The pattern, with `source="llm"`.

    Raises:
        PatternParseError: If the reply holds no readable pattern; the message says why, so that a model can repair it.

    Example:
        >>> parse_pattern('Here you are: {"triples": [("Her", "directed by", "UNKNOWN director 1")]}').triples[0].tail
        Unknown(name='director 1', type='director')
    """
    text = without_reasoning(reply)[:MAX_REPLY]
    nodes, cut_short = _read(text)
    lists = [node for node in nodes if (node.key or "").casefold() in _TRIPLES_KEYS and node.is_list] or [
        node for node in nodes if node.parent is None and node.is_list and isinstance(node.values[0], _Node)
    ]
    reason = ""
    for node in lists:
        try:
            return _pattern(node, text, cut_short)
        except PatternError as error:
            reason = reason or str(error)
    if not reply.strip():
        reason = "the reply is empty."
    elif not text.strip():
        reason = "the reply holds reasoning only."
    elif not nodes:
        reason = "the reply holds no JSON object."
    elif not reason:
        reason = "the reply has no list of triples under the key 'triples'."
    wanted = '{"segments": [...], "triples": [["head", "relation", "tail"], ...], "target": ...}'
    raise PatternParseError(f"parse_pattern: {reason} Wanted one JSON object {wanted}.", reply)


# From text to nodes -------------------------------------------------------------------------------------------------

# Each quote that can open a string, with those that can close it; the codes are the typographic double and single ones.
_CLOSING = {'"': '"', "'": "'"}
_CLOSING |= dict.fromkeys("\u201c\u201d\u201e", '\u201c\u201d"') | dict.fromkeys("\u2018\u2019", "\u2018\u2019'")

_START = re.compile(r"[{\[]")
_TOKEN = re.compile(
    rf"""(?:[\s,]|//[^\n]*|\#[^\n]*)*+   # commas and comments are no more than space
    (?: (?P<open>[{{\[(]) | (?P<close>[}}\])]) | (?P<colon>:) | (?P<quote>[{"".join(_CLOSING)}])
      | (?P<bare>(?:[^,:{{}}\[\]()/\#]|/(?!/))+) )""",
    re.VERBOSE,
)
# A quote ends a string only where the structure goes on after it, so that 'Schindler's List' is one string.
_STRING_ENDS = {
    quote: re.compile(rf"\\.|[{closing}](?=\s*+(?:[,:\])}}]|//|\#|\Z))", re.DOTALL)
    for quote, closing in _CLOSING.items()
}

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(slots=True, eq=False)
class _Node:
    """A list, tuple or object of the reply: its values in order, each with its key or None."""

    opener: str
    start: int
    parent: _Node | None = None
    key: str | None = None
    keys: list[str | None] = field(default_factory=list)
    values: list[_Node | str | None] = field(default_factory=list)
    next_key: str | None = None
    end: int | None = None

    @property
    def is_list(self) -> bool:
        return bool(self.values) and not any(self.keys)

    def get(self, names: Iterable[str]) -> _Node | str | None:
        """Return the value of the first name that is a key here, or None."""
        found = {key.casefold(): value for key, value in zip(self.keys, self.values, strict=True) if key}
        return next((found[name] for name in names if name in found), None)


def _read(text: str) -> tuple[list[_Node], bool]:
    """Return all nodes of the text, outer ones first, and whether it ends inside a string."""
    nodes: list[_Node] = []
    stack: list[_Node] = []
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
        value: _Node | str | None
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
            value = _Node("{" if mark == "{" else "[", token.start("open"), here, here.next_key if here else None)
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


# From nodes to a pattern --------------------------------------------------------------------------------------------

_TRIPLES_KEYS = ("triples", "triplets", "graph", "edges", "pattern")
_HEAD, _RELATION, _TAIL = (
    ("head", "subject", "source", "from"),
    ("relation", "predicate", "relationship", "label", "type"),
    ("tail", "object", "target", "to"),
)

_UNKNOWN = re.compile(r"(?:UNK[NOW]{2,5}|(?i:unknown))(?=[\s_\-\d]|\Z)")  # UNKOWN, UNKNWON ... are common
_VARIABLE = re.compile(r"\?\w+")


def _pattern(node: _Node, text: str, cut_short: bool) -> Pattern:
    owner = node.parent
    if node.end is None or (cut_short and owner is not None and owner.end is None):
        raise PatternError("the reply breaks off before its JSON object is complete.")
    triples: list[_Node | str | None] = [*node.values]
    if len(triples) == 3 and all(isinstance(value, str) for value in triples):
        triples = [node]  # one triple without the list around it
    nodes: dict[str, Unknown] = {}
    relations: dict[str, Unknown] = {}
    edges: list[tuple[Term, Term, Term]] = []
    for number, triple in enumerate(triples, start=1):
        head, relation, tail = _three_texts(triple, number, text)
        edges.append((_term(head, nodes), _term(relation, relations, typed=False), _term(tail, nodes)))
    target = _target(node, nodes)
    return Pattern.of(*edges, target=target, source="llm")


def _three_texts(triple: _Node | str | None, number: int, text: str) -> tuple[str, str, str]:
    if isinstance(triple, _Node):
        parts = triple.values if triple.is_list else [triple.get(names) for names in (_HEAD, _RELATION, _TAIL)]
        texts = [part for part in parts if isinstance(part, str)]
        if len(parts) == len(texts) == 3:
            return texts[0], texts[1], texts[2]
        shown = text[triple.start : min(triple.end or len(text), triple.start + 120)]
    else:
        shown = "null" if triple is None else repr(triple[:120])
    raise PatternError(f'triple {number} must be three texts ["head", "relation", "tail"], but it is {shown}.')


def _term(text: str, unknowns: dict[str, Unknown], typed: bool = True) -> Term:
    """Return the term that a text means; an unknown that was met before keeps its first spelling."""
    text = text.strip()
    if len(text) > 2 and text[-1] in _CLOSING.get(text[0], "") and not {text[0], text[-1]} & set(text[1:-1]):
        return Known(text[1:-1].strip())
    if (named := _unknown_name(text)) is None:
        return Known(text)
    name, kind = named
    return unknowns.setdefault(name.casefold(), Unknown(name, (kind or None) if typed else None))


def _unknown_name(text: str) -> tuple[str, str] | None:
    """Return the name and kind of an unknown, or None for the text of something known."""
    if _VARIABLE.fullmatch(text):
        return text[1:], ""
    if not (prefix := _UNKNOWN.match(text)):
        return None
    name, kind = _name_and_kind(text[prefix.end() :])
    if name:
        return name, kind
    return ("unknown", "") if text.isupper() else None


def _name_and_kind(text: str) -> tuple[str, str]:
    """Split " film_1" and its like into ("film 1", "film")."""
    words = " ".join(text.replace("_", " ").split()).strip("- ")
    kind = words.rstrip("0123456789")
    number = words[len(kind) :]
    kind = kind.rstrip(" #-")
    return f"{kind} {number}".strip(), kind


def _target(node: _Node, unknowns: dict[str, Unknown]) -> str | None:
    """Return the target that is named beside the triples or one level further out, else the only unknown."""
    owner = node.parent
    for holder in (owner, owner.parent if owner else None):
        if holder is None or not any(key and key.casefold() == "target" for key in holder.keys):
            continue
        value = holder.get(["target"])
        if isinstance(value, _Node):  # a list of targets: the first counts
            value = next(iter(value.values), None)
        if not isinstance(value, str):
            return None
        name, _ = _unknown_name(value.strip()) or _name_and_kind(value)
        unknown = unknowns.get(name.casefold())
        return unknown.name if unknown else None
    names = [unknown.name for unknown in unknowns.values()]
    return names[0] if len(names) == 1 else None
