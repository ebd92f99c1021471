"""A page inside a notebook."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape


@dataclass(frozen=True)
class Frame:
    """A page in a frame of its own: a notebook shows it, also when it is exported as HTML.

    The frame may run its scripts, and can reach nothing around it.

    Attributes:
        page: The page, as HTML.
        height: In pixels.
    """

    page: str = field(repr=False)
    height: int = 480

    def _repr_html_(self) -> str:
        look = "border:1px solid #8884;border-radius:8px;width:100%"
        return (
            f'<iframe title="Evidence" sandbox="allow-scripts" height="{self.height}" style="{look}" '
            f'srcdoc="{escape(self.page)}"></iframe>'
        )
