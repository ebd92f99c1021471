"""The options that say how a graph is read, each with the argument of `KnowledgeGraph` that it sets."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ReadingOption:
    """An option that says how a graph is read.

    Args:
        flag: The option.
        argument: The argument of `KnowledgeGraph.from_file` that it sets, or of `from_executor` for a database.
        help: What it does, and what holds where it is not given.
        settings: Of `argparse`.
        group: The title under which the help lists it.
        of_databases: Whether it is for graph databases as well.
    """

    flag: str
    argument: str
    help: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    group: str = "how a graph file is read"
    of_databases: bool = False

    @property
    def name(self) -> str:
        """The attribute of the parsed options that holds its value."""
        return self.flag.removeprefix("--").replace("-", "_")

    def words(self, value: Any) -> list[str]:
        """Return the words of a command that give it this value.

        Example:
            >>> OPTIONS["columns"].words(["film", "property", "value"])
            ['--columns', 'film,property,value']
        """
        if self.settings.get("action") == "append":
            return [word for one in value for word in (self.flag, one)]
        return [self.flag, value if isinstance(value, str) else ",".join(value)]


def _repeatable(metavar: str) -> dict[str, Any]:
    return {"action": "append", "metavar": metavar}


_ALL = (
    ReadingOption(
        "--entities", "entities", "a second file: labels, aliases and types of entities", {"metavar": "FILE"}
    ),
    ReadingOption(
        "--graph-format", "format", "if the suffix does not tell", {"choices": ("tsv", "csv", "pipe", "jsonl")}
    ),
    ReadingOption(
        "--columns",
        "columns",
        "what the header calls them, where unusual",
        {"type": lambda text: text.split(","), "metavar": "HEAD,RELATION,TAIL"},
    ),
    ReadingOption("--encoding", "encoding", "of the files (default: utf-8)"),
    ReadingOption("--on-error", "on_error", "at a malformed line (default: raise)", {"choices": ("raise", "skip")}),
    ReadingOption(
        "--text-relations",
        "text_relations",
        "a relation whose tails are texts, whatever they look like, as postal codes (default: what reads like a number "
        "or date is one); repeatable",
        _repeatable("RELATION"),
        of_databases=True,
    ),
)

#: The options by the attribute of the parsed options that holds their value.
OPTIONS: Mapping[str, ReadingOption] = {option.name: option for option in _ALL}


def add_reading_options(parser: argparse.ArgumentParser, *format_flags: str) -> None:
    """Add the options to a parser; the one of the format under these names."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for option in OPTIONS.values():
        group = groups.setdefault(option.group, parser.add_argument_group(option.group))
        flags: Sequence[str] = format_flags if option.argument == "format" else (option.flag,)
        group.add_argument(*flags, dest=option.name, help=option.help, **option.settings)
