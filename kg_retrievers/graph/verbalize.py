"""Turn evidence into text.

No other module turns triples into words or cleans names.

The text is for reading. A name may itself hold "->" or ";", so facts are never parsed back from it. The metadata of a
document holds them. Names are cleaned by `as_data`, so that a line is a fact and nothing else.

`one_line` is for terminals, tables and pictures. `as_data` is for prompts and answers, in which a name must not pass
for a citation mark, for a special token of a chat template, or for the end of the frame around the facts. Stored names
keep every character.
"""

from __future__ import annotations

import csv
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from io import StringIO
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard, get_args
from unicodedata import category, combining

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.attributes import SOURCE
from kg_retrievers.graph.types import Evidence, Path, Triple, read_paths

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
    r"""Return a text on one line, without harmful characters.

    Such characters steer a terminal, turn text around or cannot be seen.

    Line breaks and control characters become one blank. Bidirectional controls and characters without width go. Joiners
    stay between letters of the scripts that need them, as Persian and Hindi do, after a virama, and in emoji.

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
    """Return the first of some joiners if a script or a picture needs it.

    Otherwise the text is empty.
    """
    before, after = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    joins_letters = _joins(before) and (_joins(after) or combining(before) == _VIRAMA)
    return found[0][0] if joins_letters or (_is_picture(before) and _is_picture(after)) else ""


def _is_picture(character: str) -> bool:
    """Tell whether a character is an emoji, its colour, or its variation selector."""
    return character == "\ufe0f" or (character != "" and category(character) in ("So", "Sk"))


def _joins(character: str) -> bool:
    """Tell whether a character belongs to a script that joins.

    It is a letter, or a sign of a letter.
    """
    return _JOINING.match(character) is not None and category(character)[0] in "LM"


def as_data(text: str) -> str:
    """Return `one_line` of a text that reads as a name only.

    A model or a reader of its answer would take some forms for more than a name.

    Numbers in square brackets, such as citations have, and special tokens in square brackets stand in parentheses. "<"
    that begins a tag becomes "‹". Arrows stay.

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
    """Return `as_data` of each line of a text whose line breaks are our own."""
    return "\n".join(as_data(line) for line in text.split("\n"))


#: The name in `details` of the entities that are evidence by themselves, since no triple of it holds them: their keys.
LONE_ENTITIES = "lone_entities"


class HasMetadata(Protocol):
    """A Document of a retriever.

    Its metadata has "triples", and may have "labels", "answers" and "details".
    """

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What `BaseKGRetriever` writes."""


HoldsFacts = Evidence | Path | HasMetadata
OneOrSeveral: TypeAlias = HoldsFacts | Iterable[HoldsFacts]


def each_of(what: OneOrSeveral) -> list[Any]:
    """Return one item, or several, as a list."""
    if isinstance(what, str | Evidence | Path) or hasattr(what, "metadata") or not isinstance(what, Iterable):
        return [what]
    return list(what)


def facts_of(what: OneOrSeveral, who: str, also: str = "") -> tuple[tuple[Triple, ...], dict[str, str]]:
    """Return the triples of one item or several, each once, in their order.

    Also return the labels that Documents bring.

    Of several labels of one key, the first counts.

    Args:
        what: The item, or several.
        who: The caller, for the message.
        also: A sentence that the message adds, on other possible arguments.

    Raises:
        InvalidArgumentError: If an item holds no facts, or its labels are no texts.
    """
    triples: dict[Triple, None] = {}
    labels: dict[str, str] = {}
    for item in each_of(what):
        metadata = getattr(item, "metadata", None)
        holds = item.triples if isinstance(item, Evidence | Path) else None
        found = metadata if isinstance(metadata, Mapping) else {"triples": holds}
        rows, called = found.get("triples"), found.get("labels", {})
        if not are_texts(rows, 3) or not isinstance(called, Mapping) or not are_texts([*called.items()], 2):
            raise InvalidArgumentError(
                f"{who}: wanted Evidence, a Path, or a Document as a retriever returns it (its metadata has 'triples', "
                "a list of [head, relation, tail], and perhaps 'labels', {key: text}), or a list of these, but got "
                f"{item!r:.200}.{also}"
            )
        triples |= {Triple(*row): None for row in rows}
        for key, label in called.items():
            labels.setdefault(key, label)
    return tuple(triples), labels


def lone_entities_of(what: OneOrSeveral) -> list[str]:
    """Return the entities that are evidence by themselves.

    They come from one item or several, each once, in their order.

    Example:
        >>> lone_entities_of(Evidence((), score=1, details={LONE_ENTITIES: ["Her"]}))
        ['Her']
    """
    found: dict[str, None] = {}
    for item in each_of(what):
        details = item.details if isinstance(item, Evidence) else getattr(item, "metadata", {}).get("details")
        keys = (details or {}).get(LONE_ENTITIES)
        found |= dict.fromkeys(key for key in keys or () if isinstance(key, str))
    return list(found)


def are_texts(rows: object, length: int) -> TypeGuard[Sequence[Sequence[str]]]:
    """Return whether it is a list of lists of this many texts."""
    return isinstance(rows, list | tuple) and all(
        isinstance(row, list | tuple) and len(row) == length and all(isinstance(text, str) for text in row)
        for row in rows
    )


Style = Literal["triples", "grouped", "numbered", "tables", "paths"]

# Two or more words of a Freebase path, as in "/film/director/film" or "people.person.nationality".
_FREEBASE = re.compile(r"/[a-z]\w+(?:[./]+[a-z]\w+)+|[a-z]\w+(?:\.[a-z]\w+){2,}", re.ASCII)
_PREFIXED = re.compile(r"[A-Za-z][\w.-]*:([A-Za-z_]\w*)")
_CAMEL_CASE = re.compile(r"[a-z]{2}[a-z0-9]*(?:[A-Z][a-z0-9]*)+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def readable(name: str) -> str:
    """Return the name of a relation, or an entity, as words.

    Underscores, the humps of camelCase, and the slashes and dots of Freebase paths become blanks. A name that has
    white space already, or is a URI, is left as it is.

    Example:
        >>> readable("directed_by"), readable("birthPlace"), readable("people.person.nationality")
        ('directed by', 'birth place', 'people person nationality')
        >>> readable("AC/DC Live"), readable("McDonald")
        ('AC/DC Live', 'McDonald')
    """
    if "://" in name or len(name.split()) != 1 or name != name.strip():
        return name
    if _FREEBASE.fullmatch(name):
        name = re.sub("[./]+", " ", name)
    words = list[str]()
    for word in name.replace("_", " ").split():
        humps = _HUMP.split(word) if _CAMEL_CASE.fullmatch(word) else []  # the capitals of "hasISBN" stay
        words += [hump if hump.isupper() and len(hump) > 1 else hump.lower() for hump in humps] or [word]
    return " ".join(words) or name


def local_name(name: str) -> str:
    """Return the local part of a URI or a prefixed name.

    Any other name stays as it is.

    Example:
        >>> local_name("http://example.org/ontology#birthPlace"), local_name("dbo:birthPlace"), local_name("ratio 1:2")
        ('birthPlace', 'birthPlace', 'ratio 1:2')
    """
    if "://" in name:
        return re.split("[/#]", name.rstrip("/#"))[-1]
    prefixed = _PREFIXED.fullmatch(name)
    return prefixed[1] if prefixed else name


_relation_text = lru_cache(maxsize=10_000)(readable)


#: The most characters of an attribute in the words of a fact. The metadata of Documents has all.
ATTRIBUTE_LENGTH = 200


#: A function from a key to the entity's name, and a function from a fact to its words between its ends.
Label: TypeAlias = Callable[[str], str]
Said: TypeAlias = Callable[[Triple], str]


def relation_words(triple: Triple) -> str:
    """Return the relation of a fact in words."""
    return _relation_text(triple.relation)


def attribute_words(sets: Iterable[Mapping[str, Any]]) -> str:
    """Return sets of attributes in words, except the origin of a fact.

    The text is empty if there are none.

    Example:
        >>> attribute_words([{"role": "Neo", "source": "credits.csv"}, {"role": ["A", "B"], "valid_from": 2003}])
        '(role: Neo), (role: A, B; valid from: 2003)'
    """
    parts = []
    for one in sets:
        said = [f"{readable(name)}: {_value_text(value)}" for name, value in one.items() if name != SOURCE]
        parts += [f"({'; '.join(said)})"] if said else []
    return ", ".join(parts)


def _value_text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_value_text, value))
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= ATTRIBUTE_LENGTH else f"{text[: ATTRIBUTE_LENGTH - 3]}..."


def words_with(attributes: Mapping[Triple, Iterable[Mapping[str, Any]]]) -> Said:
    """Return a function that gives a fact's relation in words.

    The fact's attributes stand behind it.

    Example:
        >>> fact = Triple("Reeves", "acted_in", "The Matrix")
        >>> triple_lines([fact], said=words_with({fact: [{"role": "Neo"}]}))
        ['Reeves -> acted in (role: Neo) -> The Matrix']
    """
    return lambda triple: " ".join(filter(None, [relation_words(triple), attribute_words(attributes.get(triple, ()))]))


def words_of_documents(documents: Iterable[HasMetadata]) -> Said:
    """Return a function that gives relations of Documents' facts in words.

    The words include their attributes.
    """
    found = dict[Triple, Iterable[Mapping[str, Any]]]()
    for document in documents:
        rows, said = (document.metadata.get(name) or () for name in ("triples", "attributes"))
        found |= {Triple(*row): sets for row, sets in zip(rows, said, strict=False)}
    return words_with(found)


def triple_lines(triples: Iterable[Triple], label: Label = str, said: Said = relation_words) -> list[str]:
    """Return a line for each triple, in stored direction.

    The lines are for reading: names may hold "->".

    Args:
        triples: The facts.
        label: Maps an entity key to its name. By default it gives the key, and `readable` for keys with underscores.
        said: Gives the relation of a fact in words. `words_with` adds its attributes.

    Example:
        >>> triple_lines([Triple("Her", "directed_by", "Spike Jonze")])
        ['Her -> directed by -> Spike Jonze']
    """
    return [as_data(f"{label(one.head)} -> {said(one)} -> {label(one.tail)}") for one in triples]


def numbered_lines(triples: Iterable[Triple], label: Label = str, said: Said = relation_words) -> list[str]:
    """Return `triple_lines`, each preceded by its number, so that it can be cited.

    Example:
        >>> numbered_lines([Triple("Her", "directed_by", "Spike Jonze")])
        ['[1] Her -> directed by -> Spike Jonze']
    """
    return [f"[{number}] {line}" for number, line in enumerate(triple_lines(triples, label, said), 1)]


def grouped_lines(triples: Iterable[Triple], label: Label = str, said: Said = relation_words) -> list[str]:
    """Return a line for each head and relation with all tails.

    Lines are in order of first occurrence.

    The lines are for reading, since names may hold "->" or ";".

    Args:
        triples: The facts.
        label: Maps an entity key to its name. By default, the key itself.
        said: Gives the relation of a fact in words. `words_with` adds its attributes.

    Example:
        >>> grouped_lines([Triple("Her", "starring", "Amy Adams"), Triple("Her", "starring", "Rooney Mara")])
        ['Her -> starring -> Amy Adams; Rooney Mara']
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for triple in triples:
        groups.setdefault((triple.head, said(triple)), []).append(label(triple.tail))
    return [as_data(f"{label(head)} -> {words} -> {'; '.join(tails)}") for (head, words), tails in groups.items()]


def table_lines(
    triples: Iterable[Triple], label: Label = str, said: Said = relation_words, entities: Iterable[str] = ()
) -> list[str]:
    r"""Return the rows of two CSV tables, entities and then triples.

    An empty line stands between them.

    The first table gives the entities ids from 0, in order of first occurrence, head before tail. Two entities with one
    label are two rows. The second refers to heads and tails by these ids. Without triples it has only the names of its
    columns. Without triples and entities there are no tables.

    Each row is one line: `csv.reader(rows)` gives back each label as `as_data` shows it, with commas and quotes, and
    blanks at its ends.

    Source: He et al., "G-Retriever: Retrieval-Augmented Generation for Textual Graph Understanding and Question
    Answering", NeurIPS 2024, arXiv:2402.07630: section 5.4, table 9. Differs from the published code: ids count the
    entities that are shown, not the whole graph, names keep their capitals, and relations are in words.

    Args:
        triples: The facts.
        label: Maps an entity key to its name. By default, the key itself.
        said: Gives the relation of a fact in words. `words_with` adds its attributes.
        entities: Further entities, which follow the entities of the triples.

    Example:
        >>> print(*table_lines([Triple("Her", "directed_by", "Jonze, Spike")]), sep="\n")
        node_id,node_attr
        0,Her
        1,"Jonze, Spike"
        <BLANKLINE>
        src,edge_attr,dst
        0,directed by,1
    """
    numbers: dict[str, int] = {}
    edges = list[tuple[int, str, int]]()
    for triple in triples:
        start, end = (numbers.setdefault(key, len(numbers)) for key in (triple.head, triple.tail))
        edges.append((start, as_data(said(triple)), end))
    for key in entities:
        numbers.setdefault(key, len(numbers))
    nodes = [(number, as_data(label(key))) for key, number in numbers.items()]
    if not nodes:
        return []
    return [*_csv_rows([("node_id", "node_attr"), *nodes]), "", *_csv_rows([("src", "edge_attr", "dst"), *edges])]


def _csv_rows(rows: Iterable[Sequence[object]]) -> list[str]:
    written = StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    return written.getvalue().removesuffix("\n").split("\n")


def path_lines(paths: Iterable[Path], label: Label = str, said: Said = relation_words) -> list[str]:
    """Return a line for each path, with arrows in stored direction.

    Each triple has an arrow.

    The lines are for reading: names may hold "->" or "<-".

    Args:
        paths: The walks.
        label: Maps an entity key to its name. By default, the key itself.
        said: Gives the relation of a fact in words. `words_with` adds its attributes.

    Example:
        >>> triples = (Triple("Her", "directed_by", "Spike Jonze"), Triple("Adaptation", "directed_by", "Spike Jonze"))
        >>> path_lines([Path(("Her", "Spike Jonze", "Adaptation"), triples)])
        ['Her -> directed by -> Spike Jonze <- directed by <- Adaptation']
    """
    lines = []
    for path in paths:
        parts = [label(path.entities[0])]
        for there, triple in zip(path.entities[1:], path.triples, strict=True):
            arrow = "->" if triple.tail == there else "<-"
            parts += [arrow, said(triple), arrow, label(there)]
        lines.append(as_data(" ".join(parts)))
    return lines


def walk_lines(
    triples: Iterable[Triple], label: Label = str, said: Said = relation_words, paths: object = ()
) -> list[str]:
    """Return a line for each known walk over the triples.

    A line for each triple that is on none of them follows.

    Lines have the form of `path_lines` and are for reading: names may hold "->" or "<-".

    Args:
        triples: The facts.
        label: Maps an entity key to its name. By default, the key itself.
        said: Gives the relation of a fact in words. `words_with` adds its attributes.
        paths: The known walks, as `path_rows` writes them. A row that is no walk over the triples is left out.

    Example:
        >>> walk = [Triple("Her", "written_by", "Jonze"), Triple("Adaptation", "directed_by", "Jonze")]
        >>> walk_lines([*walk, Triple("Arrival", "starring", "Amy Adams")], paths=[["Her", [0, 1]]])
        ['Her -> written by -> Jonze <- directed by <- Adaptation', 'Arrival -> starring -> Amy Adams']
    """
    triples = tuple(triples)
    known = read_paths(paths, triples)
    on_known = {triple for path in known for triple in path.triples}
    rest = (one for one in triples if one not in on_known)
    return path_lines(known, label, said) + triple_lines(rest, label, said)


def pattern_lines(pattern: Mapping[str, Any]) -> list[str]:
    """Return a line for each triple of a pattern, in its own words.

    "?" stands before each unknown, and the wanted type in brackets after a node.

    Conditions, absent triples and the operation follow, one per line.

    Args:
        pattern: The output of `Pattern.to_dict`.

    Example:
        >>> pattern_lines({"triples": [["Her", "directed_by", {"unknown": "x"}]], "target": "x"})
        ['Her -> directed_by -> ?x']
    """
    limits = [f"?{one['unknown']} {one['operator']} {_literal(one['value'])}" for one in pattern.get("conditions", ())]
    absent = [f"not: {' -> '.join(map(_term, triple))}" for triple in pattern.get("absent", ())]
    lines = [
        f"{_typed(head)} -> {_term(relation)}{_attributes_of(pattern, number)} -> {_typed(tail)}"
        for number, (head, relation, tail) in enumerate(pattern.get("triples", ()))
    ]
    lines += [_typed(node) for node in pattern.get("alone", ())]
    operation = [_operation_line(pattern)] if pattern.get("operation") else []
    return [as_data(line) for line in (*lines, *limits, *absent, *operation)]


def _attributes_of(pattern: Mapping[str, Any], triple: int) -> str:
    of_triple = (one for one in pattern.get("attributes", ()) if one["triple"] == triple)
    texts = [f"{one['name']}{' if any' if one.get('optional') else ''}: ?{one['unknown']}" for one in of_triple]
    return f" ({'; '.join(texts)})" if texts else ""


def _operation_line(pattern: Mapping[str, Any]) -> str:
    operation = pattern["operation"]
    target = f" ?{pattern['target']}" if pattern.get("target") else ""
    measured = [
        f"{'the number of ' if operation.get('of') == 'count' else ''}?{name}" for name in operation.get("by", ())
    ]
    if operation["kind"] == "compare":
        return f"compare: {measured[0]} {operation['comparison']} {measured[1]}"
    by = f" by {', '.join(measured)}" if measured else ""
    by += f" for each ?{operation['group']}" if "group" in operation else ""
    number = f" {operation['comparison']} {operation['number']}" if "number" in operation else ""
    rising = ", rising" if operation.get("descending") is False else ""
    limit = f", the first {operation['limit']}" if "limit" in operation else ""
    limit += f" after {operation['offset']}" if "offset" in operation else ""
    return f"{operation['kind']}:{target}{by}{number}{rising}{limit}"


def _typed(node: str | Mapping[str, str]) -> str:
    kind = "" if isinstance(node, str) else node.get("type")
    return f"{_term(node)} ({kind})" if kind else _term(node)


def _literal(value: object) -> str:
    return " and ".join(map(str, value)) if isinstance(value, list) else str(value)


def _term(term: str | Mapping[str, str]) -> str:
    return term if isinstance(term, str) else term.get("known") or f"?{term['unknown']}"


_LINES: dict[Style, Callable[..., list[str]]] = {
    "triples": triple_lines,
    "grouped": grouped_lines,
    "numbered": numbered_lines,
    "tables": table_lines,
    "paths": walk_lines,
}


# What `approximate_tokens` counts, and what each is worth, in hundredths of a token. Fitted so that no style is off by
# more than 15 % on three graphs of `benchmarks/token_estimates.py`; its tokenizers differ by up to 33 %.
_WORD, _LETTER, _DIGIT, _MARKS, _LINE, _NOT_ASCII = 75, 8, 70, 125, 100, 75
_WORDS = re.compile(r"[^\W\d_]+")
_OTHER_MARKS = re.compile(r"(?:[^\w\s]|_)+")
_DIGITS = re.compile(r"\d")


def approximate_tokens(text: str) -> int:
    r"""Return a rough count of the tokens that language models make of a text.

    It counts words and their letters, digits, runs of marks, and lines: a table of numbers has twice the tokens of a
    text as long. The count is within 17 % of the tokenizers of SmolLM2, Mistral, GPT-4 and GPT-4o for each style of
    `verbalize`, on graphs that it was not fitted on (`benchmarks/token_estimates.py`). It is roughly right for other
    scripts.

    Example:
        >>> approximate_tokens("Spike Jonze"), approximate_tokens("12,7\n12,8")
        (3, 8)
    """
    words = _WORDS.findall(text)
    worth = _WORD * len(words) + _LETTER * sum(map(len, words)) + _DIGIT * len(_DIGITS.findall(text))
    worth += _MARKS * len(_OTHER_MARKS.findall(text)) + _LINE * text.count("\n")
    if not text.isascii():
        worth += _NOT_ASCII * (len(text) - len(text.encode("ascii", "ignore")))
    return -(-worth // 100)


@dataclass(frozen=True)
class Verbalization:
    """Triples as text.

    Args:
        text: The lines.
        shown: How many triples, from the first, the text shows.
        left_out: How many it does not.
    """

    text: str
    shown: int
    left_out: int


def verbalize(
    triples: Sequence[Triple],
    *,
    style: Style = "grouped",
    label: Label = str,
    said: Said = relation_words,
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] = approximate_tokens,
    paths: object = (),
    entities: Sequence[str] = (),
    notice: bool = True,
) -> Verbalization:
    """Turn triples into text that keeps to a budget.

    A triple is shown whole or not at all: triples are left out from the end, and a last line, within the budget, says
    how many. If not even that line fits, the text is empty. `count_tokens` is called O(log n) times.

    Args:
        triples: The facts, most important first.
        style: "triples" for `triple_lines`, "grouped" for `grouped_lines`, "numbered" for `numbered_lines`,
            "tables" for `table_lines`, "paths" for `walk_lines`.
        label: Maps an entity key to its name. By default, the key itself.
        said: Gives the relation of a fact in words. `words_with` adds its attributes.
        max_tokens: The budget. None shows everything.
        count_tokens: Counts the tokens of a text, as the model at hand does. Longer texts should have no fewer.
        paths: For the style "paths", the known walks: see `walk_lines`. A walk is shown as one if all of its triples
            are shown.
        entities: Entities that no triple holds. Tables list them behind the others, other styles a line each below the
            triples. They are left out first.
        notice: Whether the last line says how many facts are left out.

    Raises:
        InvalidArgumentError: If `max_tokens` is below 1 or `style` is unknown.

    Example:
        >>> facts = [Triple("Her", "starring", name) for name in ("Joaquin Phoenix", "Amy Adams", "Rooney Mara")]
        >>> print(verbalize(facts, style="triples", max_tokens=18).text)
        Her -> starring -> Joaquin Phoenix
        (2 more facts left out)
    """
    if style not in get_args(Style):
        raise InvalidArgumentError(f"verbalize: style is one of {list(get_args(Style))}, but got {style!r}.")
    if max_tokens is not None and max_tokens < 1:
        raise InvalidArgumentError(f"verbalize: max_tokens is 1 or more, or None for no limit, but got {max_tokens}.")
    lines = partial(walk_lines, paths=paths) if style == "paths" else _LINES[style]
    label, said, count, total = cache(label), cache(said), len(triples), len(triples) + len(entities)
    each = lines(triples, label, said) if style in ("triples", "numbered") else None  # one line for each fact

    def text(shown: int) -> str:
        facts, alone = triples[:shown], entities[: max(shown - count, 0)]
        if style == "tables":
            shown_lines = table_lines(facts, label, said, alone)
        else:
            of_facts = lines(facts, label, said) if each is None else each[:shown]
            shown_lines = [*of_facts, *(as_data(label(key)) for key in alone)]
        kinds = [("fact", "facts", count - len(facts)), ("entity", "entities", len(entities) - len(alone))]
        left_out = " and ".join(f"{some} more {one if some == 1 else many}" for one, many, some in kinds if some)
        told = [f"({left_out} left out)"] if left_out and notice else []
        apart = [""] if told and shown_lines and style == "tables" else []  # or it would be read as a row
        return "\n".join(shown_lines + apart + told)

    everything = text(total)
    if max_tokens is None or count_tokens(everything) <= max_tokens:
        return Verbalization(everything, count, 0)
    # The greatest number that fits; the search has measured it, whatever count_tokens does elsewhere.
    shown = bisect_right(range(total), max_tokens, key=lambda number: count_tokens(text(number))) - 1
    of_triples = min(max(shown, 0), count)
    return Verbalization(text(shown) if shown >= 0 else "", of_triples, count - of_triples)
