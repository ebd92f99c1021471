"""How a question begins and ends: requests, claims, "how many", yes-no questions, and what says nothing."""

from __future__ import annotations

import re

from kg_retrievers.questions.question_forms.forms import AUXILIARY, Reading, Token, words_of

_VERB = rf"(?:{'|'.join(sorted(AUXILIARY))})"

#: What may stand before a question, and after it, and says nothing.
_BEFORE = re.compile(
    r"^(?:(?:so|well|now|ok|okay|hey|hi|hello|please|also|and|or|um|just|quick question|question|in all|all in all"
    r"|in total|altogether|overall|finally|next|then|thanks)\b ?)+(?:[,:-] )?|^[,:-] "
)
_AFTER = re.compile(
    r"(?: [,:-])? (?:please|thanks|thank you|then|though|all told|all in all|in all|in total|altogether|overall|at all"
    r"|so far|by the way|anyway|here)$| [,:-]$"
)

#: Asking somebody to say, and what is said to whom.
_SAYING = (
    r"(?:tell|give|show|let|say|know|name|list|find|check|confirm|verify|remind|see|hear|identify|enumerate|return)"
    r"(?: (?:me|us|out|up|know|find|see|again))*"
)
_REQUEST = re.compile(
    r"^(?:(?:can|could|would|will|do|does|did|may|might) (?:you|we|i|anyone|anybody|someone|somebody)"
    rf"(?: (?:please|kindly|possibly|just|perhaps|happen to|help me))* )?(?:please )?(?P<said>{_SAYING})(?: ,| :)?"
    r"(?: (?P<that>if|whether|that))? "
)
_WISH = re.compile(
    r"^(?:i(?:['’](?:m|d|ve))? |(?=looking for|searching for|need |wanted ))"
    r"(?:(?:would|am|was|want|wanted|need|wish|wonder|have|been|like|love|interested|curious"
    r"|about|looking|searching|wondering|after|trying|to|in|for|know|see|find|out|get|hear) )+(?P<that>if|whether)? ?"
)
_CLAIM = re.compile(
    r"^(?:i(?:['’](?:m|ve))? (?:(?:was|am|have|been|seem|to) )*"
    r"(?:think|believe|heard|hear|suppose|guess|assume|remember|recall|read|say|told|sure)(?: (?:somewhere|that))* "
    r"|is it (?:true|right|correct|the case|so|a fact) (?:that )?|true or false(?: :| ,)? "
    r"|(?:am i|would i be) (?:right|correct) (?:in (?:thinking|saying|assuming)|to (?:think|say|assume))? ?(?:that )?"
    r"|(?:could|can|would) it be (?:true |right |correct )?(?:to say )?that )"
)
_CHECKING = frozenset(["check", "confirm", "verify"])

#: What turns a statement into a question.
_TAG = re.compile(
    rf"(?: [,:-])? (?:{_VERB}(?: not)? (?:it|he|she|they|that|there|this)(?: not)?"
    r"(?: (?:right|true|correct|so|the case))?"
    r"|am i right|right|correct|true|innit|(?:- )?yes or no|true or false|or not)$"
)
_WH = re.compile(r"\b(?:who|whom|whose|which|what|when|where|how|why)\b")

_COUNT = re.compile(
    r"^count (?:up |all |the |of )*|^(?:(?:what|is|was|are|the|a) )*(?:total |overall |exact )?"
    r"(?:number|count|tally) of (?:all )?"
    r"(?:the |different |distinct )*"
)
_HOW_MANY = re.compile(r"\bhow many (?:different |distinct )?(?:of (?:the |these |those )?)?(?=\S)")
_LONE_COUNT = re.compile(
    r"(?:[,:-] )?how many(?: of (?:them|these|those))?(?: (?:are|were) there| exist)?(?: of (?:them|these|those))?$"
    r"|(?:[,:-] |\b(?=total|overall))(?:the )?(?:total |overall )?(?:count|number|total)$"
)

#: A topic that is named before the question about it.
_TOPIC = re.compile(
    r"^(?:when it comes to|as for|as regards|regarding|concerning|speaking of|about|in terms of|talking of"
    r"|with regard to) ([^,]*) , "
)
#: Asks which, at the end of a question whether there is any.
_AND_WHICH = re.compile(
    r"(?: ,)? and (?:if so )?(?:, )?(?P<asked>who|which|what)(?: ones?| (?:is|are) (?:it|they|he|she|that|those))?$"
)
_THERE_IS = re.compile(r"^(?:(?:is|are|was|were) (?:there )?)(?:any(?= )|an?(?= )|some(?= ))?")
_PRONOUNS = frozenset(["it", "its", "he", "him", "his", "she", "her", "they", "them", "their"])


def take_opening(reading: Reading) -> None:
    """Take what frames a question, "how many" and "is it true that"; a verb before all else asks whether it holds."""
    _take_frames(reading)
    _take_topic(reading)
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
        if found := reading.search(_AFTER):
            del reading.tokens[found[0] :]
        for form in (_BEFORE, _REQUEST, _CLAIM, _WISH):
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


def _take_topic(reading: Reading) -> None:
    """Take a topic that is named first; an entity stands for the first pronoun of the question about it."""
    found = reading.search(_TOPIC)
    if found is None:
        return
    named = [token for token in reading.tokens[: found[1]] if token.slot]
    del reading.tokens[: found[1]]
    if len(named) == 1:
        at = next((at for at, token in enumerate(reading.tokens) if token.word in _PRONOUNS), None)
        if at is None:
            reading.tokens += [Token("of"), *named]
        else:
            reading.tokens[at] = named[0]


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
