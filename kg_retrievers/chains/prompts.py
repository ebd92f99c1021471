"""Hold the prompts whose replies cite numbered facts.

One prompt asks for an answer, another for a verdict. The module also holds the forms of their replies.

SimGRAG's second prompt (Cai et al., Findings of ACL 2025, arXiv:2412.15272, table 13) has the same task. It verifies a
claim against retrieved subgraphs, with a short reason before the verdict. The words and the examples are our own, and
so are the citations and the third verdict.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal

from langchain_core.prompts import ChatPromptTemplate
from pydantic import BaseModel, BeforeValidator, Field

#: The version of all prompts, in `prompts.toml`. It changes with any change of their words.
VERSION = "3"

_VERDICTS = {
    "true": "supported",
    "false": "refuted",
    "nei": "not enough evidence",
    "not enough info": "not enough evidence",
    "not enough information": "not enough evidence",
    "unknown": "not enough evidence",
}
_NUMBER = re.compile(r"\s*\[?\s*(\d{1,9})\s*\]?\s*")


def _number(value: object) -> object:
    """Read "[3]" and "3" as 3."""
    if isinstance(value, str) and (found := _NUMBER.fullmatch(value)):
        return int(found[1])
    return None if isinstance(value, bool) else value


def _texts(value: object) -> object:
    """Read one text as a list of one, and numbers as texts.

    Blanks are left out.
    """
    values = value if isinstance(value, list) else [] if value is None else [value]
    texts = [str(item) if isinstance(item, int | float) and not isinstance(item, bool) else item for item in values]
    return [text for text in texts if not isinstance(text, str) or text.strip()]


def _numbers(value: object) -> object:
    return value if isinstance(value, list) else [] if value is None else [value]


def _verdict(value: object) -> object:
    """Read the words that models use for the three verdicts."""
    if not isinstance(value, str):
        return value
    word = " ".join(value.casefold().replace("_", " ").split()).strip(".")
    return _VERDICTS.get(word, word)


Citations = Annotated[list[Annotated[int, BeforeValidator(_number)]], BeforeValidator(_numbers)]


class AnswerReply(BaseModel):
    """A model's answer to a question from numbered facts."""

    explanation: str = Field(description="One short sentence that says how the facts answer the question.")
    answers: Annotated[list[str], BeforeValidator(_texts)] = Field(
        description="All answers, copied letter by letter from the facts; empty if the facts hold none."
    )
    citations: Citations = Field(description="The numbers of the facts that the answers rest on.")


class VerdictReply(BaseModel):
    """A model's verdict on a claim from numbered facts."""

    explanation: str = Field(description="One short sentence that says how the facts bear on the claim.")
    verdict: Annotated[Literal["supported", "refuted", "not enough evidence"], BeforeValidator(_verdict)] = Field(
        description="What the facts say of the claim."
    )
    citations: Citations = Field(description="The numbers of the facts that the verdict rests on.")


_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _prompt(text: str, /, **filled: str) -> ChatPromptTemplate:
    """Return a prompt of `prompts.toml`, with some placeholders filled."""
    return ChatPromptTemplate.from_template(_TEXTS[text]).partial(**filled)


def _verdict_rules(second_rule: str) -> str:
    rules: str = _TEXTS["verdict_rules"]
    return rules.replace("{second_rule}", _TEXTS[second_rule])


#: Asks for the answer with citations. Placeholders: `question`, `evidence`.
CITED_ANSWER_PROMPT = _prompt("answer", rules=_TEXTS["answer_rules"])

#: Asks once more for an answer. Placeholders: `question`, `evidence`, `reply`, `error`.
CITED_ANSWER_REPAIR_PROMPT = _prompt(
    "repair",
    task="A question was to be answered from facts of a knowledge graph",
    rules=_TEXTS["answer_rules"],
    name="Question",
)

_OPEN, _CLOSED = _verdict_rules("open_rule"), _verdict_rules("closed_rule")
_CLAIM = {"task": "A claim was to be verified with facts of a knowledge graph", "name": "Claim"}

#: Asks for a verdict on a claim. Placeholders: `question` (the claim), `evidence` and `shots`, which is filled with our
#: examples unless you give others.
VERIFICATION_PROMPT = _prompt("verdict", rules=_OPEN, shots=_TEXTS["shots"])

#: Asks for a verdict where all that is not supported is refuted. Placeholders: as for `VERIFICATION_PROMPT`.
CLOSED_VERIFICATION_PROMPT = _prompt(
    "verdict", rules=_CLOSED, shots=_TEXTS["shots"].replace('"not enough evidence"', '"refuted"')
)

#: Asks once more for a verdict. Placeholders: `question` (the claim), `evidence`, `reply`, `error`.
VERIFICATION_REPAIR_PROMPT = _prompt("repair", rules=_OPEN, **_CLAIM)

#: The same prompt, but it refutes every claim that is not supported.
CLOSED_VERIFICATION_REPAIR_PROMPT = _prompt("repair", rules=_CLOSED, **_CLAIM)
