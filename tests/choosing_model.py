"""A scripted model that chooses the line with a text among readings, and writes a pattern if none has it."""

from __future__ import annotations

import json
import re

from kg_retrievers.questions.choosing import NONE
from kg_retrievers.testing import ScriptedChatModel


def choosing(wanted: str, written: str = "{}") -> ScriptedChatModel:
    """Return the model.

    Args:
        wanted: The beginning of the line that it means.
        written: The reply if it is asked for a pattern. From then on it means the line of this pattern.
    """

    meant = [wanted]

    def reply(prompt: str) -> str:
        lines = re.findall(r"^(\d+)\. (.*)$", prompt, re.MULTILINE)
        if not any(line == NONE for _, line in lines):
            meant.append(_first_fact(written))
            return written
        numbers = [number for number, line in lines if line.startswith(meant[-1])]
        none = [number for number, line in lines if line == NONE]
        return json.dumps({"choice": int((numbers or none)[0])})

    return ScriptedChatModel(replies=reply)


def _first_fact(written: str) -> str:
    """Return how the line of a written pattern begins."""
    triples = json.loads(written).get("triples")
    if not triples:
        return NONE
    head, relation, _ = triples[0]
    return f"{head} -> {relation} -> "
