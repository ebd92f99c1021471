"""The boxes of a picture: what is written in them, and how large they are."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple
from unicodedata import category, east_asian_width

from kg_retrievers.graph.verbalize import one_line

Role = Literal["answer", "known", "other", "relation"]

#: How many characters of a name a picture shows.
MAX_CHARACTERS = 28

#: In pixels: the fonts of entities and of relations.
ENTITY_FONT, RELATION_FONT = 12, 10

_BLANKS = re.compile("[ \xa0]+")


class Box(NamedTuple):
    """An entity or a relation as a picture shows it; sizes in pixels, widths estimated for a sans-serif font."""

    role: Role
    shown: str
    tooltip: str

    @property
    def font(self) -> int:
        """The size of the font, in pixels."""
        return RELATION_FONT if self.role == "relation" else ENTITY_FONT

    @property
    def size(self) -> tuple[float, int]:
        """Width and height, in pixels."""
        space, height = (8, 15) if self.role == "relation" else (20, 26)
        return space + self.font * sum(map(_width, self.shown)), height


def clean_line(text: str) -> str:
    """Return a name on one line, with single blanks."""
    return _BLANKS.sub(" ", one_line(text)).strip() or "(no name)"


def cut_short(line: str) -> str:
    """Return as many characters of a line as a picture shows."""
    return line if len(line) <= MAX_CHARACTERS else line[: MAX_CHARACTERS - 1].rstrip() + "…"


def _width(character: str) -> float:
    """Return the estimated width of a character, as a share of the font size."""
    if category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    return 1.0 if east_asian_width(character) in "WF" else 0.75 if character.isupper() else 0.57
