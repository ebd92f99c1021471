"""Prompts for relation paths: question to relation paths, repair of an unreadable reply; and the reply's parser.

The method is that of "Reasoning on Graphs: Faithful and Interpretable Large Language Model Reasoning" (L. Luo,
Y.-F. Li, G. Haffari, S. Pan, ICLR 2024, arXiv:2310.01061), section 4.1. The words and the worked examples are our own.
Differs from the paper: a model that was not trained for it sees the relations of the graph, and names several paths in
one reply instead of one for each beam.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from langchain_core.prompts import ChatPromptTemplate

from kg_retrievers.core.replies import without_reasoning
from kg_retrievers.errors import RelationPathParseError
from kg_retrievers.graph.verbalize import readable

#: The version of all prompts in this file. It changes with any change of their words.
VERSION = "1"

#: How many characters of a reply are read; a path takes about a hundred.
MAX_REPLY = 10_000

#: The longest name of a relation that the graph does not have.
MAX_NAME = 200

_RULES = """\
1. A relation path is the relations that are crossed one after the other, joined by " -> ". It begins at an entity \
that the question names, and ends at what it asks for.
2. Take relations from the list only, and write them letter by letter as they stand there. A relation may occur twice.
3. A relation can be crossed both ways. Only where it matters which way is meant, as between a parent and a child, \
write (forward) behind it, which is from left to right in the fact beside it, or (backward).
4. A path has {max_hops} relations at most, and no more than the question needs.
5. Write one path a line, at most {beam_width}, the most promising first, each different from the others, and nothing \
else: no names of entities, no numbers, no explanation."""

_EXAMPLES = """\
Question: what languages are spoken in the movies written by the director of Mustang
It names: Mustang
Relations, each with a fact:
directed_by: Mustang -> directed_by -> Deniz Gamze Ergüven
spoken_language: Mustang -> spoken_language -> Turkish
written_by: Mustang -> written_by -> Alice Winocour
Relation paths:
directed_by -> written_by -> spoken_language
directed_by -> directed_by -> spoken_language

Question: Who are the grandchildren of Queen Victoria?
It names: Queen Victoria
Relations, each with a fact:
parent: Queen Victoria -> parent -> Prince Edward
spouse: Queen Victoria -> spouse -> Prince Albert
Relation paths:
parent (backward) -> parent (backward)
spouse -> parent (backward) -> parent (backward)"""

_QUESTION = """\
Question: {question}
It names: {entities}
Relations, each with a fact:
{relations}
"""

#: Asks for relation paths. Placeholders: `question`, `entities`, `relations`, `beam_width`, `max_hops`. The reply is
#: read by `parse_relation_paths`.
PATHS_PROMPT: ChatPromptTemplate = ChatPromptTemplate.from_template(
    "Say which relations of a knowledge graph lead from what a question names to what it asks for. The paths "
    "are then looked up in the graph, so leave the answer open even if you know it.\n\nRules\n"
    f"{_RULES}\n\nExamples\n\n{_EXAMPLES}\n\nNow the question\n\n{_QUESTION}Relation paths:"
)

#: Asks once more after an unreadable reply. Placeholders: those of `PATHS_PROMPT`, `reply` and `error`.
REPAIR_PROMPT: ChatPromptTemplate = ChatPromptTemplate.from_template(
    "Relations of a knowledge graph that lead from what a question names to what it asks for were to be named, "
    f"but the reply cannot be read.\n\nRules\n{_RULES}\n\n{_QUESTION}\n"
    "The reply:\n{reply}\n\nWhat is wrong with it: {error}\n\n"
    "Write the relation paths again, correctly, and nothing else.\nRelation paths:"
)

# Lines come with single blanks, and a run of dashes is tried at its beginning only, so that time stays linear.
_DASHES = r"[-=\u2013\u2014]"
_ARROW = re.compile(
    rf"(<{_DASHES}+>?|(?<!{_DASHES}){_DASHES}+>|<SEP>|[\u2190-\u21ff\u2794-\u27be\u27f0-\u27ff])", re.IGNORECASE
)
_BACK = ("<", "\u2190", "\u21d0", "\u21e0", "\u27f5", "\u27f8")
_SEPARATOR = re.compile(r"[,;|]| > ")
_BULLET = re.compile(r"(?:(?:[-*+\u2022]|(?:path|relation path)?\s*#?\d+\s*[.:)])\s+)*", re.IGNORECASE)
_DIRECTION = re.compile(r"[(\[]?\b(forwards?|backwards?|inversed?|reversed?)\b[)\]]?\s*\Z", re.IGNORECASE)
_MARKUP = re.compile(r"</?PATH>|[`\"'*\u201c\u201d\u201e<>]", re.IGNORECASE)


def parse_relation_paths(
    reply: str, relations: Collection[str], max_hops: int, seeds: Collection[str] = ()
) -> list[list[tuple[str, str]]]:
    """Read relation paths from a model's reply to `PATHS_PROMPT` or `REPAIR_PROMPT`.

    Reads the reply as text; nothing in it is evaluated. Accepts reasoning in `<think>` tags, code fences, numbers and
    bullets before a path, quotes and other arrows, and names of the question's entities, which it drops. A line is a
    path if one of its relations is known, whatever its capitals and underscores. Skips other lines, paths that are too
    long, and repeated ones. Time is linear in the length of the reply, of which the first `MAX_REPLY` characters after
    the reasoning are read.

    Args:
        reply: The text of the reply.
        relations: The relations of the graph. A path may hold others beside them, as the model wrote them.
        max_hops: The most relations of a path.
        seeds: The names of the question's entities. The exact name of a relation is a relation nevertheless.

    Returns:
        For each path its relations, each with "forward", "backward", also where "<-" leads to it, or, where the reply
        does not say, "either".

    Raises:
        RelationPathParseError: If no line is a path; the message says why, so that a model can repair it.

    Example:
        >>> parse_relation_paths("1. directed by -> `directed_by` (backward)", ["directed_by"], 3)
        [[('directed_by', 'either'), ('directed_by', 'backward')]]
        >>> parse_relation_paths("Her -> directed_by <- directed_by", ["directed_by"], 3, ["Her"])
        [[('directed_by', 'either'), ('directed_by', 'backward')]]
    """
    known: dict[str, str | None] = {_plain(relation): relation for relation in reversed(list(relations))}
    known |= dict.fromkeys(map(_plain, seeds)) | {name: name for name in relations}
    paths: dict[tuple[tuple[str, str], ...], None] = {}
    too_long = False
    lines = (" ".join(line.split()) for line in without_reasoning(reply)[:MAX_REPLY].splitlines())
    for line in filter(None, lines):
        path = _path(line, known)
        too_long |= len(path) > max_hops
        if 1 <= len(path) <= max_hops:
            paths[path] = None
    if paths:
        return [list(path) for path in paths]
    if not reply.strip():
        reason = "the reply is empty."
    elif too_long:
        reason = f"all paths have more than {max_hops} relations."
    else:
        reason = "no line of the reply is a path of relations that are in the list."
    raise RelationPathParseError(f"parse_relation_paths: {reason} Wanted lines as 'relation -> relation'.", reply)


def _plain(name: str) -> str:
    """Return a relation as words without capitals, so that its spellings are the same."""
    return " ".join(readable(name).replace("_", " ").split()).casefold()


def _path(line: str, known: Mapping[str, str | None]) -> tuple[tuple[str, str], ...]:
    """Return the steps of a line; none where it is no path."""
    if name := known.get(line):
        return ((name, "either"),)
    line = _BULLET.sub("", line, count=1).rstrip(",;").removeprefix("[").removesuffix("]")
    parts = ["", line]  # each behind the arrow that leads to it
    if _step("", line, known)[0] not in known:  # the name of a relation may hold what separates others
        parts = ["", *_ARROW.split(line if _ARROW.search(line) else _SEPARATOR.sub("->", line))]
    said = [_step(arrow, part, known) for arrow, part in zip(parts[::2], parts[1::2], strict=True) if part.strip()]
    steps = tuple((name, direction) for name, direction in said if name is not None)
    is_path = any(name in known for name, _ in steps)
    return steps if is_path and all(1 <= len(name) <= MAX_NAME for name, _ in steps if name not in known) else ()


def _step(arrow: str, part: str, known: Mapping[str, str | None]) -> tuple[str | None, str]:
    """Return the relation or other text of a step, or None for an entity of the question; and the direction."""
    part, text = part.strip(), _MARKUP.sub("", part).strip()
    direction = "backward" if arrow.startswith(_BACK) and not arrow.endswith(">") else "either"
    for name in (part, _plain(part), text, _plain(text)):
        if name in known:
            return known[name], direction
    if (said := _DIRECTION.search(text)) and (bare := text[: said.start()].strip()):
        text, direction = bare, "forward" if said[1][0] in "fF" else "backward"
    return known.get(text, known.get(_plain(text), text)), direction
