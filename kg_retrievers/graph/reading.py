"""Reading: what a source was understood to say, and what of it was left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass
class Reading:
    """What a source was understood to say, so that nothing is guessed or dropped in silence.

    Args:
        format: The format, as "N-Triples"; empty for a graph that was made in Python.
        understood: What each part of the source was taken for, as {"labels": "rdfs:label 5,012"}.
        left_out: How many of what was left out, as {"empty texts": 300}.
        options: How it was read where that was not by default, as {"delimiter": ";"}; predicates of RDF by their IRIs.
            What a file may hold, and what is done at an error, is not among them.

        changes: How many times facts were added or removed since, and how many facts: {"times", "added", "removed"};
            empty where none were.

    Example:
        >>> reading = Reading("N-Triples")
        >>> reading.leave_out("blank nodes")
        >>> reading.left_out
        {'blank nodes': 1}
    """

    format: str = ""
    understood: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, int] = field(default_factory=dict)

    def leave_out(self, what: str, count: int = 1) -> None:
        """Count what is left out."""
        if count:
            self.left_out[what] = self.left_out.get(what, 0) + count

    def joined(self, more: Reading) -> Reading:
        """Return it with what was left out of another source, too."""
        both = Reading(self.format, dict(self.understood), dict(self.left_out), dict(self.options), dict(self.changes))
        for what, count in more.left_out.items():
            both.leave_out(what, count)
        return both

    def changed(self, added: int, removed: int) -> Reading:
        """Return it with a change that added and removed so many facts; itself where it did neither."""
        if not added and not removed:
            return self
        counts = {"times": 1, "added": added, "removed": removed}
        return replace(self, changes={what: self.changes.get(what, 0) + count for what, count in counts.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` reads."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Reading:
        """Read back what `to_dict` returned."""
        parts = (dict(values.get(name, {})) for name in ("understood", "left_out", "options", "changes"))
        return cls(values.get("format", ""), *parts)
