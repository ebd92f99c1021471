"""The words of a question, the values in it, how it begins and ends, and the form that is taken from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from kg_retrievers.graph import Known
from kg_retrievers.graph.operations import Operator
from kg_retrievers.graph.values import Comparison, Value, read_value, unit_symbol
from kg_retrievers.index import FUNCTION_WORDS, QuestionEntity
from kg_retrievers.questions.reading import node_of
from kg_retrievers.questions.self_questions.english import is_plural, verb_of
from kg_retrievers.questions.words import NUMBERS, WORDS, any_of

#: The most words of a question that has a form.
MAX_TOKENS = 200

_WORD = re.compile(r"\d{4}-\d\d(?:-\d\d)?(?![\w-])|\d[\d,.]*\d(?:s\b)?|\w+(?:[-'’]\w+)*|[^\w\s]")

#: Ordinals from the second on, and the numbers that they say.
ORDINALS = ["second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
ORDINAL = rf"{'|'.join(ORDINALS)}|[2-9](?:nd|rd|th)|1\d(?:st|nd|rd|th)"

_CENTURIES: list[str] = WORDS["centuries from the eleventh on"]
_CENTURY_WORD = re.compile(rf"(?i)\b({'|'.join(_CENTURIES)})(?= century)")

#: Shortened words, and their long forms. `'s` is "is" after a question word and before anything but a noun.
_SHORT = re.compile(r"(?i)\b(ca|wo|sha|do|does|did|is|are|was|were|has|have|had|could|would|should)n['’]t\b")
_FULL = {"ca": "can", "wo": "will", "sha": "shall"}


@dataclass(frozen=True)
class Token:
    """A word of a question, or an entity that it names.

    Attributes:
        text: As written.
        slot: The entity, or None.
    """

    text: str
    slot: QuestionEntity | None = None

    @property
    def word(self) -> str:
        """The word without case, or "" for an entity."""
        return "" if self.slot else self.text.casefold()

    @property
    def telling(self) -> bool:
        """Whether it is a word that may name something of the graph."""
        return bool(self.word) and self.word[0].isalpha() and self.word not in FUNCTION_WORDS

    @property
    def node(self) -> Known:
        """The node of its entity, which it must have."""
        assert self.slot
        return node_of(self.slot)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all that its entity may be, or none for a word."""
        return self.slot.entities[: self.slot.best] if self.slot else ()


def tokens_of(question: str, slots: Sequence[QuestionEntity]) -> list[Token]:
    """Return the words and the entities of a question, in its order, without those that it does not name.

    Example:
        >>> [token.text for token in tokens_of("Which isn't in it?", [])]
        ['Which', 'is', 'not', 'in', 'it', '?']
    """
    found, at = list[Token](), 0
    for slot in sorted(slots, key=lambda slot: slot.start):
        if at <= slot.start < slot.end:
            found += _words(question[at : slot.start])
            if found and found[-1].word == "the":
                found.pop()
            found.append(Token(slot.name, slot))
            at = slot.end
    found += _words(question[at:])
    for slot in slots:  # an entity of an earlier sentence stands for its pronoun
        if slot.start == slot.end:
            pronouns = [at for at, token in enumerate(found) if token.word in PRONOUNS]
            pronouns += [at for at, token in enumerate(found) if token.word in ("that", "this")][-1:]
            for at in pronouns[:1]:
                found[at] = Token(slot.name, slot)
    return found


def _words(text: str) -> Iterator[Token]:
    full = _SHORT.sub(lambda match: f"{_FULL.get(match[1].casefold(), match[1])} not", text)
    full = re.sub(rf"(?i)\b({ORDINAL})-(?=\w)", r"\1 ", full)
    full = _CENTURY_WORD.sub(lambda match: f"{_CENTURIES.index(match[1].casefold()) + 11}th", full)
    full = re.sub(r"(?i)\b(what|who|where|which|how)['’]s\b", r"\1 is", full)
    for match in _WORD.finditer(full):
        word = re.sub(r"['’]s$", "", match[0])
        if word not in ("s", "'", "’"):
            yield Token(word)


def question_of(tokens: Sequence[Token]) -> tuple[str, list[QuestionEntity]]:
    """Return the text of some tokens, and their entities by their places in it.

    Example:
        >>> question_of([Token("Who"), Token("Ann", QuestionEntity(9, 12, "Ann", ("a",), 1, False))])[0]
        'Who Ann'
    """
    text, slots = "", list[QuestionEntity]()
    for token in tokens:
        start = len(text) + bool(text)
        text = f"{text} {token.text}" if text else token.text
        if token.slot:
            slots.append(replace(token.slot, start=start, end=len(text)))
    return text, slots


def telling_words(tokens: Sequence[Token], without: Sequence[Token] = ()) -> str:
    """Return the telling words of some tokens, a blank between them, without some other tokens.

    Example:
        >>> telling_words(tokens_of("Which huts have the most beds?", []), [Token("huts")])
        'beds'
    """
    return " ".join(token.word for token in tokens if token.telling and token not in without)


def words_of(tokens: Sequence[Token]) -> str:
    """Return the words of some tokens, separated by blanks, with "_" for an entity."""
    return " ".join(token.word or "_" for token in tokens)


#: Words on -est and -er that compare nothing.
_PLAIN = frozenset(WORDS["words on -est and -er that compare nothing"])

#: Adjectives of time: which way their comparatives and superlatives point along a date.
_TIMES: dict[str, int] = WORDS["adjectives of time"]

#: Adjectives that point to the lower end of a number.
_LOW = frozenset(WORDS["adjectives of the lower end"])
_IRREGULAR: dict[str, str] = WORDS["irregular comparatives and superlatives"]


def base_of(word: str, ending: str) -> str | None:
    """Return the adjective of a comparative ("er") or superlative ("est"), or None for other words.

    Example:
        >>> [base_of(word, "est") for word in ("biggest", "oldest", "heaviest", "largest", "guest", "nicest")]
        ['big', 'old', 'heavy', 'large', None, 'nice']
    """
    if not word.endswith(ending) or len(word) < len(ending) + 3 or word in _PLAIN:
        return _IRREGULAR.get(word) if word.endswith(("st" if ending == "est" else "er", "less")) else None
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    stem = word[: -len(ending)]
    if stem.endswith("i"):
        return stem[:-1] + "y"
    if re.search(r"([bdgmnpt])\1$", stem):
        return stem[:-1]
    return f"{stem}e" if re.search(r"[aeiou](?:[cgsvz]|rg)$", stem) or stem.endswith(("bl", "pl")) else stem


def time_direction(adjective: str) -> int:
    """Return -1 if an adjective points to earlier dates, 1 if to later ones, 0 if it is not of time."""
    return _TIMES.get(adjective, 0)


def direction(adjective: str) -> int:
    """Return -1 if an adjective points to lower values, otherwise 1.

    Example:
        >>> direction("cheap"), direction("tall"), direction("young"), direction("old")
        (-1, 1, 1, -1)
    """
    return time_direction(adjective) or (-1 if adjective in _LOW else 1)


_LEADS: list[tuple[Operator, re.Pattern[str]]] = [
    (operator, re.compile(rf"(?:^|(?<=\s))(?:{'|'.join(leads)})(?: the)?(?: year)?$"))
    for operator, leads in WORDS["before a value"].items()
]

#: The most words of a value, and of the limit before it.
_LONGEST = 5
_TAILS: list[tuple[Operator, re.Pattern[str]]] = [
    (operator, re.compile(rf"^(?:{'|'.join(tails)})")) for operator, tails in WORDS["after a value"].items()
]
_CENTURY = re.compile(r"(1[1-9]|2\d) ?(?:st|nd|rd|th) century\b")
_DECADE = re.compile(r"(?:the )?(early |late )?(1\d|20)(\d0)s")


class Limit(NamedTuple):
    """A value that limits the things asked for.

    Attributes:
        operator: How it limits.
        values: The value, two for "between"; as a condition takes them.
        start: The position of its first word.
        end: The position after its last.
        kind: "date" or "number", if its words say so: "before 1900", "more than 1900".
        word: The adjective that compares, as "deep" of "deeper than 500 m"; "" for none.
    """

    operator: Operator
    values: tuple[str, ...]
    start: int
    end: int
    kind: str = ""
    word: str = ""

    @property
    def value(self) -> Value:
        """The value, or the lower one of two."""
        return read_value(self.values[0]) or Value(self.values[0])


def find_limits(words: Sequence[str], units: Collection[str]) -> list[Limit]:
    """Return the values that limit the target of a question, by position. None overlap.

    Args:
        words: The words of the question, as `Token.word`.
        units: The units of the numbers of the graph; another word behind a number is none of it.

    Example:
        >>> [limit[:2] for limit in find_limits("which huts lie above 2,600 m".split(), {"m"})]
        [('>', ('2,600 m',))]
        >>> [limit[:2] for limit in find_limits("born between 1960 and 1965".split(), set())]
        [('between', ('1960', '1965'))]
        >>> [limit[:2] for limit in find_limits("opened in the 1930s".split(), set())]
        [('between', ('1930', '1939'))]
        >>> [limit[:2] for limit in find_limits("opened before 1900 or after 2000".split(), set())]
        [('<', ('1900',)), ('>', ('2000',))]
    """
    found, at = list[Limit](), 0
    while at < len(words):
        limit = _limit_at(words, at, units)
        if limit is None or (found and limit.start < found[-1].end):
            at += 1
        else:
            found.append(limit)
            at = limit.end
    return found


def _span_at(words: Sequence[str], at: int) -> Limit | None:
    """Return the years that a decade or a century means."""
    if decade := _DECADE.fullmatch(words[at]):
        first, last, end = int(decade[2] + decade[3]), int(decade[2] + decade[3]) + 9, at + 1
    elif century := _CENTURY.match(" ".join(words[at : at + 3])):
        last = 100 * int(century[1])
        first, end = last - 99, at + len(century[0].split())
    else:
        return None
    lead = re.search(r"(?:^|(?<=\s))(?:in the|in|during the|of the|the)$", " ".join(words[max(at - 2, 0) : at]))
    start = at - (len(lead[0].split()) if lead else 0)
    return Limit("between", (str(first), str(last)), start, end)


def _limit_at(words: Sequence[str], at: int, units: Collection[str]) -> Limit | None:
    """Return the limit whose first value begins at a position."""
    before = " ".join(words[max(at - _LONGEST, 0) : at])
    if span := _span_at(words, at):
        return span
    end = _literal_end(words, at, units)
    if end is None:
        return None
    literal = _written(words[at:end], units)
    if re.search(r"\b(?:between|from)$", before) and end < len(words) and words[end] in ("and", "to", "until"):
        last = _literal_end(words, end + 1, units)
        if last is not None:
            return Limit("between", (literal, _written(words[end + 1 : last], units)), at - 1, last)
    after = " ".join(words[end : end + 3])
    if compared := _compared(words[:at], literal):
        adjective = base_of(before.split()[-2], "er") or ""
        return Limit(compared[0], (literal,), at - compared[1], end, compared[2], adjective)
    operator = next(((op, match) for op, form in _TAILS if (match := form.search(after))), None)
    if operator and _literal_end(words, end + len(operator[1][0].split()), units) is not None:
        operator = None  # "or after 2000" begins another limit
    lead = next(((op, match) for op, form in _LEADS if (match := form.search(before))), None)
    if operator is None and lead is None:
        return None
    start = at - (len(lead[1][0].split()) if lead else 0)
    if operator:
        return Limit(operator[0], (literal,), start, end + len(operator[1][0].split()))
    assert lead
    if lead[0] == "=" and not _is_date(literal):
        return None
    return Limit(lead[0], (literal,), start, end, _kind_said(lead[1][0], literal))


def _compared(before: Sequence[str], literal: str) -> tuple[Operator, int, str] | None:
    """Return the operator of a comparative before a value, as "no longer than", how many words it is, and of what."""
    if len(before) < 2 or before[-1] != "than" or not (base := base_of(before[-2], "er")):
        return None
    denied = len(before) > 2 and before[-3] in ("no", "not", "never")
    time = time_direction(base) if _is_date(literal) and base not in ("old", "young") else 0
    upward = (time or (-1 if base == "young" else 1 if base == "old" else direction(base))) > 0
    operators: tuple[Operator, Operator] = ("<=", ">=") if denied else (">", "<")
    return operators[not upward], 3 if denied else 2, "date" if time else ""


def _kind_said(lead: str, literal: str) -> str:
    """Return which of both a number that may be a year is, by the words before it."""
    if not _is_date(literal):
        return ""
    if re.match(r"(?:before|after|since|until|till|prior|earlier|later|no earlier|no later|during|in|as of)\b", lead):
        return "date"
    numeric = r"(?:under|below|over|above|exceeding|(?:no |not )?(?:less|fewer|more|lower|higher|greater) than)\b"
    return "number" if re.match(numeric, lead) else ""


def _is_date(text: str) -> bool:
    value = read_value(text)
    return value is not None and value.first is not None


def _literal_end(words: Sequence[str], at: int, units: Collection[str]) -> int | None:
    """Return where the longest value that begins at a position ends, or None."""
    for end in range(min(at + _LONGEST, len(words)), at, -1):
        value = read_value(" ".join(words[at:end]))
        if value is None or value.truth is not None:
            continue
        if value.unit and end > at + 1 and not is_unit(unit_symbol(value.unit), units):
            continue
        return end
    return None


def is_unit(unit: str, units: Collection[str]) -> bool:
    """Return whether the graph has a unit, whose case the words of a question have lost."""
    return unit in units or any(one.casefold() == unit for one in units)


def _written(words: Sequence[str], units: Collection[str]) -> str:
    """Return words as a literal, its unit in the case of the only unit of the graph that has these letters."""
    literal = " ".join(words)
    value = read_value(literal)
    if value is None or not value.unit or unit_symbol(value.unit) in units:
        return literal
    cased = [one for one in units if one.casefold() == value.unit]
    return literal.removesuffix(value.unit) + cased[0] if len(cased) == 1 and literal.endswith(value.unit) else literal


FormKind = Literal["list", "count", "exists", "best", "choice", "compare"]

#: Verbs with which a yes-no question begins.
AUXILIARY = frozenset(
    re.findall(r"\w+", "am is are was were do does did has have had can could will would should may might must")
)
#: A number of things: in words, or in few digits.
NUMBER = rf"(?P<n>{'|'.join(NUMBERS)}|\d{{1,6}})(?![^ ])(?! (?:hundred|thousand|million|billion)\b)"

#: May follow a verb, more likely than a noun.
_AFTER_VERBS = frozenset(["the", "a", "an", "most", "more", "in", "on", "at", "for", "_"])


@dataclass(frozen=True)
class Quantity:
    """How many of something, as in "at least two huts"."""

    comparison: Comparison
    number: int
    noun: tuple[Token, ...]


@dataclass(frozen=True)
class Degree:
    """The measure by which things are compared, as in "the oldest", "the most huts", "more members".

    Attributes:
        sign: 1 for the greatest, -1 for the least.
        time: Whether its adjective is of time.
        words: The adjective, and words such as "by beds".
        noun: What is counted or measured; empty for an adjective alone.
        raw: The superlative or comparative as written; "" for none of one word.
        most: How many things are asked for, as in "the three oldest".
        often: Whether something is asked that happens most often.
        offset: How many of the first are passed over: 1 for the second.
    """

    sign: int
    time: bool = False
    words: tuple[Token, ...] = ()
    noun: tuple[Token, ...] = ()
    raw: str = ""
    most: int = 1
    often: bool = False
    offset: int = 0

    @property
    def comparison(self) -> Comparison:
        """The sign between the value of the winner and the value it is compared with."""
        return ">" if self.sign > 0 else "<"


@dataclass(frozen=True)
class Form:
    """The request of a question, and its words for it.

    Attributes:
        kind: What is asked.
        noun: The words for what is looked for, as "huts"; "who"; or none.
        clause: The rest of the question, with the noun in its place.
        negative: The clause that must not hold; empty if there is none.
        limits: The values that limit what is looked for.
        quantity: How many of something it must have.
        degree: By what it is compared.
        standards: The entities with which each thing is compared, as in "huts higher than it". Empty if the things are
            compared with one another.
        compared: The noun of a superlative, as "hut" of "who owns the highest hut". Empty if it has none.
        counted: Whether the question asks how many.
        unread: Whether a part of the question asks for what no form says; it must be refused.
        both: Whether all entities that "and" joins are meant in the same way, as after "both".
    """

    kind: FormKind
    noun: tuple[Token, ...] = ()
    clause: tuple[Token, ...] = ()
    negative: tuple[Token, ...] = ()
    limits: tuple[Limit, ...] = ()
    quantity: Quantity | None = None
    degree: Degree | None = None
    standards: tuple[Token, ...] = ()
    compared: tuple[Token, ...] = ()
    counted: bool = False
    unread: bool = False
    both: bool = False

    @property
    def leaves_open(self) -> bool:
        """Whether it asks who did something, and only the verb says what that is."""
        return words_of(self.noun) == "who" and any(token.word in ("something", "anything") for token in self.clause)


@dataclass
class Reading:
    """A question while its form is taken from it."""

    tokens: list[Token]
    noun_score: Callable[[str], float]
    units: Collection[str]
    polar: bool = False
    count: bool = False
    counted_at: int = -1
    limits: tuple[Limit, ...] = ()
    quantity: Quantity | None = None
    degree: Degree | None = None
    standards: tuple[Token, ...] = ()
    negative: tuple[Token, ...] = ()
    than: bool = False
    after_degree: tuple[Token, ...] = ()
    unread: bool = False
    both: bool = False

    @property
    def text(self) -> str:
        """Its words, "_" for an entity."""
        return words_of(self.tokens)

    @property
    def asks(self) -> bool:
        """Whether it asks for something, rather than whether it is so."""
        return not self.polar and any(token.word in ("which", "what", "who", "whom", "whose") for token in self.tokens)

    def search(self, form: str | re.Pattern[str]) -> tuple[int, int, re.Match[str]] | None:
        """Return the place of a form, as positions of tokens."""
        match = re.search(form, self.text)
        if match is None:
            return None
        start = self.text[: match.end() - len(match[0].lstrip())].count(" ")
        return start, start + len(match[0].split()), match

    def score(self, tokens: Sequence[Token]) -> float:
        """Return how near a noun is to the names in the graph."""
        return self.noun_score(words_of(tokens)) if tokens else 0.0


def noun_end(reading: Reading, at: int) -> int:
    """Return the end of the noun that begins at a position, which may have several words, up to a plural."""
    tokens, end = reading.tokens, at
    while end < len(tokens) and tokens[end].telling and end < at + 3:
        end += 1
    if end <= at + 1:
        return end
    words = [token.word for token in tokens[at:end]]
    if is_plural(words[0]) or is_verb(words[1]):
        return at + 1
    following = (tokens[at + 2].word or "_") if at + 2 < len(tokens) else ""
    if not is_plural(words[1]) or following in AUXILIARY or following in ("", ",", "of", "that", "which", "who"):
        return at + 2
    score = reading.noun_score  # "launch sites in", but "actor appears in"
    return at + 2 if score(words[1]) > score(words[0]) or following not in _AFTER_VERBS else at + 1


def is_verb(word: str) -> bool:
    """Tell whether a word is the form of a verb and no noun."""
    verb = verb_of(word)
    if verb is None:
        return False
    return (word in (verb.past, verb.participle) and word != verb.base) or (word == verb.third and not verb.also_noun)


def number_of(text: str) -> int:
    """Return a number that `NUMBER` found."""
    return NUMBERS.index(text) if text in NUMBERS else int(text)


def joined(tokens: Sequence[Token], at: int, words: Collection[str]) -> int:
    """Return the position of the second of two entities that a word at a position joins, or 0 if it joins none.

    The word must be one of some. A preposition and an article may stand before the second entity.
    """
    if not 0 < at < len(tokens) - 1 or tokens[at].word not in words or not tokens[at - 1].slot:
        return 0
    other = at + 1
    while other < len(tokens) - 1 and other < at + 4 and tokens[other].word and not tokens[other].telling:
        other += 1
    return other if tokens[other].slot else 0


_VERB = rf"(?:{'|'.join(sorted(AUXILIARY))})"

#: Words that may stand before a question, and after it, and say nothing.
_OPENING = re.compile(rf"^(?:{any_of('openings')}\b ?)+(?:[,:-] )?|^[,:-] |^{any_of('topics are named by')} [^,_]* , ")
_CLOSING = re.compile(rf"(?: [,:-])? {any_of('closings')}$| , which(?: ones?)?$| [,:-]$")

#: The words that ask somebody to say something, and whom.
_SAYING = rf"{any_of('sayings')}(?: (?:me|us|out|up|know|find|see|again))*"
_REQUEST = re.compile(
    r"^(?:(?:can|could|would|will|do|does|did|may|might) (?:you|we|i|anyone|anybody|someone|somebody)"
    rf"(?: (?:please|kindly|possibly|just|perhaps|happen to|help me))* )?(?:please )?(?P<said>{_SAYING})(?: ,| :)?"
    r"(?: (?P<that>if|whether|that))? "
)
_WISH = re.compile(
    r"^(?:i(?:['’](?:m|d|ve))? |(?=looking for|searching for|need |wanted ))"
    rf"(?:{any_of('words of a wish')} )+(?P<that>if|whether)? ?"
)
_CLAIM = re.compile(
    r"^(?:i(?:['’](?:m|ve))? (?:(?:was|am|have|been|seem|to) )*"
    r"(?:think|believe|heard|hear|suppose|guess|assume|remember|recall|read|say|told|sure)(?: (?:somewhere|that))* "
    r"|is it (?:true|right|correct|the case|so|a fact) (?:that )?|true or false(?: :| ,)? "
    r"|(?:am i|would i be) (?:right|correct) (?:in (?:thinking|saying|assuming)|to (?:think|say|assume))? ?(?:that )?"
    r"|(?:could|can|would) it be (?:true |right |correct )?(?:to say )?that )"
)
_CHECKING = frozenset(["check", "confirm", "verify"])

#: Words that turn a statement into a question.
_TAG = re.compile(
    rf"(?: [,:-])? (?:{_VERB}(?: not)? (?:it|he|she|they|that|there|this)(?: not)?"
    r"(?: (?:right|true|correct|so|the case))?"
    r"|am i right|right|correct|true|innit|(?:- )?yes or no|true or false|or not)$"
)
#: Words with which a question asks.
WH = "who|whom|whose|which|what|when|where|how|why"
_WH = re.compile(rf"\b(?:{WH})\b")

_COUNT = re.compile(
    r"^count (?:up |all |the |of )*|^(?:(?:what|which|is|was|are|the|a) )*(?:total |overall |exact )?"
    r"(?:(?:number|count|tally|quantity) of|amount of(?= (?:all )?(?:the )?[a-z]+s\b)) (?:all )?"
    r"(?:the |different |distinct )*"
)
_HOW_MANY = re.compile(r"\bhow many (?:different |distinct )?(?:of (?:the |these |those )?)?(?=\S)")
_LONE_COUNT = re.compile(
    r"(?:[,:-] )?(?:how many|what number)(?: of (?:them|these|those))?"
    r"(?: (?:are|were|is|have|do) (?:there|these|those|they|it|we|you)(?: have| know)?| exist)?"
    r"(?: of (?:them|these|those))?$"
    r"|(?:[,:-] |\b(?=total|overall))(?:the |what )?(?:total |overall )?(?:count|number|total)$"
)

#: Asks which, at the end of a question whether there is any.
_AND_WHICH = re.compile(
    r"(?: ,)? and (?:if so )?(?:, )?(?P<asked>who|which|what)(?: ones?| (?:is|are) (?:it|they|he|she|that|those))?$"
)
_THERE_IS = re.compile(r"^(?:(?:is|are|was|were) (?:there )?)(?:any(?= )|an?(?= )|some(?= ))?")
PRONOUNS = frozenset(["it", "its", "he", "him", "his", "she", "her", "they", "them", "their"])


def take_opening(reading: Reading) -> None:
    """Take the frame of a question, "how many" and "is it true that". A verb before all else asks whether it holds."""
    _take_frames(reading)
    _take_and_which(reading)
    if not _WH.search(reading.text) and (found := reading.search(_TAG)) and found[0]:
        reading.polar = True
        del reading.tokens[found[0] :]
    _take_count(reading)
    if not reading.count and not reading.polar:
        _take_auxiliary(reading)


def _take_frames(reading: Reading) -> None:
    """Take requests, wishes and claims from the beginning, and courtesies from both ends."""
    for _ in range(8):
        before = len(reading.tokens)
        if found := reading.search(_CLOSING):
            del reading.tokens[found[0] :]
        for form in (_OPENING, _REQUEST, _CLAIM, _WISH):
            found = reading.search(form)
            if found is None or found[1] >= len(reading.tokens):
                continue
            said = found[2].groupdict()
            del reading.tokens[: found[1]]
            asked = _WH.match(reading.text)
            checks = not _CHECKING.isdisjoint((said.get("said") or "").split())
            if not asked and (form is _CLAIM or said.get("that") in ("if", "whether") or checks):
                reading.polar = True
            elif form in (_REQUEST, _WISH) and not asked and not _is_question(reading):
                _name_target(reading)
        if len(reading.tokens) == before:
            return


def _is_question(reading: Reading) -> bool:
    """Whether what is left asks by itself."""
    return reading.tokens[0].word in AUXILIARY or bool(_WH.search(reading.text)) or bool(reading.search(_COUNT))


def _name_target(reading: Reading) -> None:
    """Write "which" before what a request asks for: "the huts of" becomes "which huts of"."""
    while len(reading.tokens) > 1 and reading.tokens[0].word in ("the", "all", "every", "each", "any", "of", "a", "an"):
        del reading.tokens[0]
    person = reading.tokens[0].word in ("anyone", "anybody", "everyone", "everybody", "someone", "somebody")
    if person:
        reading.tokens[0] = Token("who")
        del reading.tokens[1 : 2 if len(reading.tokens) > 1 and reading.tokens[1].word == "who" else 1]
    else:
        reading.tokens.insert(0, Token("which"))


def _take_and_which(reading: Reading) -> None:
    """Read "Are there huts above it, and which ones?" as "which huts above it"."""
    found = reading.search(_AND_WHICH)
    if found is None or not (there := _THERE_IS.match(reading.text)):
        return
    tokens = reading.tokens[len(there[0].split()) : found[0]]
    if tokens and tokens[0].word in ("anyone", "anybody", "someone", "somebody"):
        reading.tokens = [Token("who"), *tokens[2 if len(tokens) > 1 and tokens[1].word == "who" else 1 :]]
    else:
        reading.tokens = [Token("which"), *tokens]


def _take_count(reading: Reading) -> None:
    """Take "how many" and "the number of", wherever they stand."""
    if found := reading.search(_COUNT):
        reading.tokens[: found[1]] = [Token("which")]
    elif (found := reading.search(_LONE_COUNT)) and found[0]:
        del reading.tokens[found[0] :]
        reading.tokens.insert(0, Token("which"))
    elif found := reading.search(_HOW_MANY):
        reading.tokens[found[0] : found[1]] = [Token("which")]
        reading.counted_at = found[0]
    else:
        return
    reading.count, reading.polar = True, False


def _take_auxiliary(reading: Reading) -> None:
    """Take the verb with which a yes-no question begins, also after what is said first: "In 1990, was it built?"."""
    text = reading.text
    if re.search(r"\b(?:what|when|how|why)\b", text) or not reading.tokens:
        return
    if reading.tokens[0].word in AUXILIARY and not re.match(r"\w+ (?:you|we|i)\b", text):
        reading.polar = True
        del reading.tokens[0]
    elif found := reading.search(rf"^(?:[^,]+) , (?={_VERB} (?:_|it|he|she|they|any|the|there|a|an)\b)"):
        first = reading.tokens[: found[1] - 1]
        if not _WH.search(words_of(first)):
            reading.polar = True
            reading.tokens = [*reading.tokens[found[1] + 1 :], *first]
