"""The forms of English verbs: "write", "writes", "wrote", "written", "writer"."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Frequent verbs with regular forms that are seldom nouns.
_REGULAR = """
accept accompany accuse achieve acquire adapt add address adopt advise affect amend announce apply appoint approve
arrange arrive assign assist attend belong cite collaborate collect compile complete compose conduct confirm connect
conquer consist consult contain contribute convert cooperate create cure declare defend define deliver depend depict
derive describe destroy determine develop die direct discover distribute donate edit elect employ enable encode enter
establish evolve examine exist export express extend favor follow found govern graduate guide happen identify
illustrate import improve include inherit inhibit inspire install introduce invade invent invest investigate invite
involve join justify live maintain manage marry measure mention merge motivate move narrate nominate observe obtain
occur operate oppose organize own participate perform permit possess practice precede predict prepare prescribe
present preserve preside prevent proclaim produce promote propose protect provide publish receive recommend refer
regulate reject relate release remove rename renovate replace represent require reside resolve retire reveal sell
serve share solve specialize sponsor stimulate succeed suffer suggest supervise supply surround tend transfer
translate transmit treat understudy unite use validate verify violate
"""

#: Verbs with regular forms that are as often nouns: "award".
_ALSO_NOUNS = """
act aim answer appeal associate attack award border camp cause chair challenge change charge claim coach command
contact contest contract control cover craft credit cross date debate demand design dispute document end fail feature
finance form fund grant harm head host influence interact issue judge labor land last launch license link list locate
love manufacture map mark master measure name need number nurse offer order origin paint partner pass patent pilot place
plan plant play plot point power process program project purchase question rank rate reason record reform rent repair
report request research result review reward rule sail sample score signal sign sound source star start state store
study support surface target test title trade train travel trigger vary view visit voice vote watch work
"""

#: Verbs with irregular forms: base, past, participle.
_IRREGULAR = """
bear bore born; become became become; begin began begun; bind bound bound; break broke broken; bring brought brought;
build built built; buy bought bought; catch caught caught; choose chose chosen; come came come; do did done;
draw drew drawn; drive drove driven; eat ate eaten; fall fell fallen; feed fed fed; fight fought fought;
find found found; fly flew flown; forbid forbade forbidden; freeze froze frozen; get got got; give gave given;
go went gone; grow grew grown; hold held held; keep kept kept; know knew known; lay laid laid; lead led led;
leave left left; lend lent lent; lose lost lost; make made made; mean meant meant; meet met met; pay paid paid;
read read read; ride rode ridden; ring rang rung; rise rose risen; run ran run; say said said; see saw seen;
seek sought sought;
sell sold sold; send sent sent; shoot shot shot; show showed shown; sing sang sung; sit sat sat; sleep slept slept;
speak spoke spoken; spend spent spent; stand stood stood; steal stole stolen; swim swam swum; take took taken;
teach taught taught; tell told told; think thought thought; throw threw thrown; understand understood understood;
wear wore worn; weave wove woven; win won won; write wrote written
"""

#: Regular verbs of several syllables, or with an unstressed end, that double their last letter all the same.
_DOUBLING = frozenset({"admit", "commit", "control", "occur", "permit", "program", "refer", "transfer", "transmit"})

_VOWELS = "aeiou"


@dataclass(frozen=True)
class Verb:
    """The forms of a verb. `base` and `third` are empty where only a past form is known.

    Attributes:
        base: As in "did write".
        third: As in "writes".
        past: As in "wrote".
        participle: As in "was written".
        agent: Who does it, as in "writer"; may be no word that people use.
        gerund: As in "writing".
        also_noun: Whether its base and third forms are nouns as well: "award", "awards".
    """

    base: str
    third: str
    past: str
    participle: str
    agent: str = ""
    gerund: str = ""
    also_noun: bool = False


def verb_of(word: str) -> Verb | None:
    """Return the verb that a word is a form of; of an unknown past form only this form is known.

    Example:
        >>> verb_of("written").past, verb_of("colonized").base, verb_of("colour")
        ('wrote', '', None)
    """
    if known := _FORMS.get(word):
        return known
    return Verb("", "", word, word) if re.fullmatch(r"[^\W\d_]{2,}ed", word) else None


def verb_of_agent(noun: str) -> Verb | None:
    """Return the verb of what a noun says somebody does.

    Example:
        >>> verb_of_agent("writer").base, verb_of_agent("river")
        ('write', None)
    """
    return _AGENTS.get(noun)


def _regular(base: str, also_noun: bool) -> Verb:
    past = f"{_stem(base)}d" if base.endswith("e") else f"{_stem(base)}ed"
    return Verb(base, _third(base), past, past, _agent(base), _gerund(base), also_noun)


def _stem(base: str) -> str:
    """Return a base as it stands before "ed" and "er"."""
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "i"
    is_short = re.fullmatch(rf"[^{_VOWELS}]*[{_VOWELS}][^{_VOWELS}wxy]", base)
    return base + base[-1] if is_short or base in _DOUBLING else base


def _third(base: str) -> str:
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def _agent(base: str) -> str:
    if base.endswith(("ate", "ct", "it")):
        return base.removesuffix("e") + "or"
    return f"{base}r" if base.endswith("e") else f"{_stem(base)}er"


def _gerund(base: str) -> str:
    if base.endswith("ie"):
        return base.removesuffix("ie") + "ying"
    if base.endswith("e") and not base.endswith("ee"):
        return base.removesuffix("e") + "ing"
    return (base if base.endswith("y") else _stem(base)) + "ing"


def _irregular(text: str) -> Verb:
    base, past, participle = text.split()
    return Verb(base, _third(base), past, participle, _agent(base), _gerund(base))


def _lexicon() -> list[Verb]:
    verbs = [_irregular(text) for text in _IRREGULAR.split(";")]
    verbs += [_regular(base, True) for base in _ALSO_NOUNS.split()]
    return [*verbs, *(_regular(base, False) for base in _REGULAR.split())]


_VERBS = _lexicon()

#: Every form but the agent; where two verbs share one, as "found", that of the last counts.
_FORMS = {form: verb for verb in _VERBS for form in (verb.base, verb.third, verb.past, verb.participle, verb.gerund)}
_AGENTS = {verb.agent: verb for verb in _VERBS}
