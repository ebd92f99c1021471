"""What the reply of an answerer says: answers, or a verdict on a claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kg_retrievers.core.results import result_answers
from kg_retrievers.errors import InvalidArgumentError

#: Whether a claim holds, by its verdict; where neither is known, the verdict is an abstention.
_HOLDS = {"supported": True, "refuted": False}


def is_verdict(reply: object) -> bool:
    """Whether a reply is a verdict on a claim, as `FactVerifier` gives it."""
    return isinstance(reply, Mapping) and isinstance(reply.get("verdict"), str)


def verdict_value(reply: Mapping[str, Any]) -> bool | None:
    """Return whether a claim holds by its verdict; None where the evidence does not say.

    Example:
        >>> verdict_value({"verdict": "refuted"}), verdict_value({"verdict": "not enough evidence"})
        (False, None)
    """
    return _HOLDS.get(reply["verdict"])


def predicted_answers(reply: object) -> str | list[str]:
    """Return the answers in a reply: a text, a list, or a list under "answers"; of a verdict "yes" or "no".

    Raises:
        InvalidArgumentError: If it holds no answers.

    Example:
        >>> predicted_answers({"answers": ["Spike Jonze"]}), predicted_answers({"verdict": "supported"})
        (['Spike Jonze'], ['yes'])
    """
    if isinstance(reply, Mapping) and is_verdict(reply):
        return result_answers({"answers": [], "value": verdict_value(reply)})
    answers = reply.get("answers") if isinstance(reply, Mapping) else reply
    if not isinstance(answers, str | list):
        raise InvalidArgumentError(
            f"evaluate: the answerer must return a text, a list of texts, or a mapping with such a list under "
            f"'answers', or with a 'verdict', but returned {reply!r:.200}."
        )
    return answers
