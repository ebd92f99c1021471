"""Remove secrets from texts.

The texts are all messages of this package, and errors of others that pass through it.
"""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import parse_qsl

#: Stands in place of a secret.
HIDDEN = "***"

#: The environment variables whose values are secrets.
_SECRET_VARIABLE = re.compile(
    r"(?:API_?KEY|ACCESS_KEY|SECRET(?:_KEY)?|TOKEN|PASSWORD|PASSWD|PASSPHRASE)\Z", re.IGNORECASE
)

#: Values of fewer characters are not looked for: they stand in many texts by chance.
SHORTEST = 8

_NAME = (
    r"(?:\w*(?:api[_-]?key|access[_-]?key|password|passwd|passphrase|secret|auth[_-]?token|access[_-]?token)"
    r"|pwd|token)"
)

# What a secret looks like, with what stands before it: in an address, in a header, behind its name, by its form.
_FORMS = (
    re.compile(r"(?P<before>(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://)[^\s/?#'\"@]*(?:@[^\s/?#'\"@]*)*(?=@)", re.IGNORECASE),
    re.compile(rf"(?P<before>[?&;]{_NAME}=)[^\s&#;'\"]+", re.IGNORECASE),
    re.compile(rf"(?P<before>\b{_NAME}['\"]?(?:=|:\s?)['\"]?)(?![*\s])[^\s&,;'\"]{{4,}}", re.IGNORECASE),
    re.compile(r"(?P<before>\b(?:bearer|basic)\s)[\w.~+/=-]{8,}", re.IGNORECASE),
    re.compile(r"(?P<before>)\b(?:sk|pk|rk|gsk|hf|xai|pplx)[-_][\w-]{8,}"),
    re.compile(r"(?P<before>)\bAIza[\w-]{20,}"),
)


def without_secrets(text: str) -> str:
    """Return a text with `HIDDEN` in place of secrets and their like.

    A secret is the value of an environment variable whose name ends in API_KEY, ACCESS_KEY, SECRET, TOKEN or PASSWORD,
    of at least `SHORTEST` characters. User name and password of an address, text behind "password=", "api_key:" and
    their like, or behind "Bearer", and a key in the form of a known provider are secrets, too.

    Example:
        >>> without_secrets("bolt://ann:s3cret@localhost:7687?password=s3cret refused the key sk-abcdefgh1234")
        'bolt://***@localhost:7687?password=*** refused the key ***'
    """
    for value in _values():
        if value in text:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", HIDDEN, text)
    for form in _FORMS:
        text = form.sub(rf"\g<before>{HIDDEN}", text)
    return text


def hide_secrets(error: BaseException) -> None:
    """Remove secrets from an error that others raised, in place.

    The errors that led to it are cleaned, too.

    Its type stays, so that its handler finds it. Its texts are cleaned: arguments, attributes, and the texts in their
    lists and dictionaries.
    """
    for one in causes_of(error):
        one.args = tuple(_cleaned(part) for part in one.args)
        for name, value in list(vars(one).items()):
            if (cleaned := _cleaned(value)) is not value:
                vars(one)[name] = cleaned


def causes_of(error: BaseException) -> list[BaseException]:
    """Return an error, the errors that led to it, and the members of groups.

    Each comes once.
    """
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop(0)
        if one is not None and all(one is not seen for seen in found):
            found.append(one)
            waiting += [one.__cause__, one.__context__]
            waiting += one.exceptions if isinstance(one, BaseExceptionGroup) else ()
    return found


def names_secret(query: str) -> bool:
    """Tell whether an address's query has a parameter with a secret's name.

    The query has the form "a=1&b=2".
    """
    return any(re.fullmatch(_NAME, name, re.IGNORECASE) for name, _ in parse_qsl(query, keep_blank_values=True))


def _values() -> list[str]:
    """Return the secrets of the environment, the longest first."""
    values = {value for name, value in os.environ.items() if len(value) >= SHORTEST and _SECRET_VARIABLE.search(name)}
    return sorted(values, key=len, reverse=True)


def _cleaned(value: Any) -> Any:
    """Return a text, or a list or dictionary of texts, without secrets.

    The value itself is returned if there is none.
    """
    match value:
        case str():
            cleaned: Any = without_secrets(value)
        case list() | tuple() if type(value) in (list, tuple):
            cleaned = type(value)(_cleaned(part) for part in value)
        case dict() if type(value) is dict:
            cleaned = {key: _cleaned(part) for key, part in value.items()}
        case _:
            return value
    return value if cleaned == value else cleaned
