"""Show the part "Example:" of a docstring as code, as griffe does with "Examples:"."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^([ \t]*)Example:$", re.MULTILINE)


class ExamplesAsCode(griffe.Extension):
    """Rename the part before it is parsed."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename it in one docstring."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(r"\1Examples:", obj.docstring.value)
