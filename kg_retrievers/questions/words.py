"""Words and phrases by their meanings, and forms that find any phrase of a list."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

WORDS: dict[str, Any] = json.loads((files(__package__) / "words.json").read_text("utf-8"))

#: The small numbers in words, each at its own place.
NUMBERS = re.findall(r"\w+", "zero one two three four five six seven eight nine ten eleven twelve")


def any_of(name: str) -> str:
    """Return the form of any phrase of a list, as a group.

    Example:
        >>> any_of("asides before a sign")[:24]
        '(?:morning|evening|so|we'
    """
    return f"(?:{'|'.join(WORDS[name])})"
