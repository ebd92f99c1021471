"""A parser of arguments that reports a mistake on one line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from kg_retrievers.cli.show import note
from kg_retrievers.errors import InvalidArgumentError, did_you_mean

#: The options for a graph that stays in its database.
OF_CONNECTED = frozenset(("--connect", "--vectors", "--max-facts"))


class Parser(argparse.ArgumentParser):
    """Parses arguments, and reports a mistake on one line with the nearest option or choice."""

    #: The parsers of the commands, by name.
    commands: dict[str, Parser]

    def error(self, message: str) -> NoReturn:
        """Raise an InvalidArgumentError; passwords of addresses are hidden."""
        shown = re.sub(r"://\S*@", "://...@", message)  # an argument may hold a password
        end = "" if shown.endswith("?") else "."
        raise InvalidArgumentError(f"{shown}{end} See: {self.prog} --help") from None

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Parse arguments; of one that is unknown the nearest option is named."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            parser = self.commands[options.command]
            flags = re.findall(r"--[\w-]+", parser.format_usage())
            flag = unknown[0].partition("=")[0]
            if flag in OF_CONNECTED and "--key" in flags and "--vectors" not in flags:
                parser.error(f"{options.command} reads the whole graph. Leave out {flag}")
            near = "put a text of several words in quotes"
            if flag.startswith("--"):
                near = did_you_mean(flag, flags)
            parser.error(f"unrecognized arguments: {' '.join(unknown)}{near and f'; {near}'}")
        return options

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        near = did_you_mean(str(value), map(str, action.choices))
        choices = f"choose from {', '.join(map(str, action.choices))}"
        raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {near or choices}")


class Renamed(argparse.Action):
    """Takes the value of an option under its name of an earlier version, and notes the name of today."""

    def __call__(self, _: argparse.ArgumentParser, options: argparse.Namespace, value: Any, flag: Any = None) -> None:
        """Take the value."""
        note(f"{flag} is called --{self.dest.replace('_', '-')} now")
        setattr(options, self.dest, value)


Options = Parser | argparse._ArgumentGroup
