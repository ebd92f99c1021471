"""The commands, and the steps around each: mistakes on one line, interruptions, and the end of the output."""

from __future__ import annotations

import inspect
import logging
import os
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from importlib.metadata import version
from inspect import Parameter
from io import TextIOWrapper
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from kg_retrievers.cli import INTERRUPTED, check_interrupted
from kg_retrievers.cli.show import message, note

#: A command: takes its options, and returns its exit code.
Command = Callable[..., int]

#: Exit codes: after a mistake, and when nobody reads the output. After Ctrl-C: see `kg_retrievers.cli`.
MISTAKE, BROKEN_PIPE = 2, 141

_SILENT = logging.NullHandler()

_Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


class _Commands(TyperGroup):
    """Imports a command when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Replace the entry of a command, which knows its summary, by the command itself."""
        name, entry, rest = super().resolve_command(ctx, args)
        return name, entry and make_command(str(name), entry.callback()), rest  # type: ignore[misc]


class _Command(TyperCommand):
    """Says how to give a surplus argument, before a missing option hides it."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Refuse surplus arguments, and parse the others."""
        given, surplus, _ = self.make_parser(ctx).parse_args(list(args))
        if surplus and not given.get("help"):
            ctx.fail(self._surplus(given, surplus))
        return super().parse_args(ctx, args)

    def _surplus(self, given: Mapping[str, Any], surplus: Sequence[str]) -> str:
        """Return the message about surplus arguments, from the arguments and options that are given."""
        if "question" in given:
            words = [given["question"], *surplus]
            files = [word for word in words if Path(word).exists()]
            asked = " ".join(word for word in words if word not in files) or "Who ...?"
            more = [part for file in files for part in ("--also", file)]
            command = shlex.join(["kg-retrievers", str(self.name), given["place"], asked, *more])
            wanted = "one graph and one question in quotes" if files else "one question in quotes"
            return f"wanted {wanted}, but got {shlex.join(words)}. Ask so: {command}"
        options = {str(one.name): one for one in self.params if one.param_type_name == "option"}
        likely = ("graph", "add", "also" if Path(surplus[0]).exists() else "output")
        named = next((name for name in likely if name in options), "")
        wanted_ones = [one for name, one in options.items() if (one.required or name == named) and name not in given]
        shown = ", ".join(sorted(f"{one.opts[0]} {one.metavar}" for one in wanted_ones))
        hint = f"Give each by its option: {shown}." if shown else "Leave it out, or name its option."
        return f"got {shlex.join(surplus)} without an option. {hint}"


app = typer.Typer(cls=_Commands, add_completion=False, rich_markup_mode="rich")


def make_command(name: str, function: Command) -> Any:
    """Return a command that parses its options and runs it."""
    one = typer.Typer(add_completion=False, rich_markup_mode="rich")
    one.command(name, cls=_Command)(_with_single_options(function))
    return typer.main.get_command(one)


def _with_single_options(function: Command) -> Command:
    """Return a function that takes each field of a group of options by itself, as Typer wants them.

    A group is a dataclass whose fields are options that several commands share, or groups.
    """
    parameters: dict[str, Any] = {}
    make = _spread(function, parameters)
    parameters["debug"] = (_Debug, False)

    def call(**given: Any) -> int:
        is_debugged = given.pop("debug")
        return _run_command(partial(make, given), is_debugged)

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    call.__annotations__ = {name: annotation for name, (annotation, _) in parameters.items()}
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
            for name, (annotation, default) in parameters.items()
        ]
    )
    return call


def _spread(kind: Any, parameters: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    """Add the options of a command or group to the parameters; return a function that calls it with their values."""
    hints = get_type_hints(kind, include_extras=True)
    factories = {field.name: field.default_factory for field in fields(kind)} if is_dataclass(kind) else {}
    parts: dict[str, Callable[[dict[str, Any]], Any]] = {}
    for name, parameter in inspect.signature(kind).parameters.items():
        if is_dataclass(hints[name]):
            parts[name] = _spread(hints[name], parameters)
            continue
        factory: Any = factories.get(name, MISSING)
        parameters[name] = (hints[name], parameter.default if factory is MISSING else factory())
        parts[name] = itemgetter(name)
    return lambda given: kind(**{name: part(given) for name, part in parts.items()})


def _run_command(command: Callable[[], int], is_debugged: bool) -> int:
    show_once = cache(note)  # several methods may warn of the same
    try:
        with warnings.catch_warnings():
            # A line of the source says nothing to a user.
            warnings.showwarning = lambda told, *_: show_once(getattr(told, "on_shell", str(told)))
            return command()
    except BrokenPipeError:
        return BROKEN_PIPE
    except typer.TyperException:
        raise
    except Exception as error:
        check_interrupted()
        if is_debugged:
            traceback.print_exc()
        note(f"error: {message(error)}")
        return MISTAKE


# --- the commands -----------------------------------------------------------------------------------------------------


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"kg-retrievers {version('kg-retrievers')}")
        raise typer.Exit


@app.callback(
    epilog="Exit codes: 0 evidence found, or done; 1 no evidence found; 2 a mistake, told on one line of stderr; "
    "130 interrupted."
)
def _about(
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Fetch the part of a knowledge graph that answers a question.

    Examples:
      kg-retrievers demo
      kg-retrievers ask films.csv "Who directed Her?"
      kg-retrievers index films.csv --output films.index
      kg-retrievers ask films.index "Who directed Her?" --llm openai:gpt-4.1-mini
      kg-retrievers COMMAND --help
    """


@app.command("ask")
def _ask() -> Command:
    """Answer a question from a graph, with the evidence."""
    from kg_retrievers.cli.ask import ask

    return ask


@app.command("index")
def _index() -> Command:
    """Index a graph once, for many questions."""
    from kg_retrievers.cli.index import index

    return index


@app.command("update")
def _update() -> Command:
    """Change a saved graph and its index: add facts, remove facts."""
    from kg_retrievers.cli.index import update

    return update


@app.command("info")
def _info() -> Command:
    """Show what was understood of a graph, and what is in it."""
    from kg_retrievers.cli.info import info

    return info


@app.command("questions")
def _questions() -> Command:
    """Write questions with answers and patterns from a graph alone."""
    from kg_retrievers.cli.train import questions

    return questions


@app.command("train")
def _train() -> Command:
    """Train a method on questions with answers."""
    from kg_retrievers.cli.train import train

    return train


@app.command("evaluate")
def _evaluate() -> Command:
    """Measure a method on questions whose answers are known."""
    from kg_retrievers.cli.evaluate import evaluate

    return evaluate


@app.command("compare")
def _compare() -> Command:
    """Put several methods, or earlier runs, side by side."""
    from kg_retrievers.cli.evaluate import compare

    return compare


@app.command("serve")
def _serve() -> Command:
    """Open a page in the browser that asks a graph."""
    from kg_retrievers.cli.services import serve

    return serve


@app.command("mcp")
def _mcp() -> Command:
    """Serve a graph to agents over MCP, the Model Context Protocol."""
    from kg_retrievers.cli.services import mcp

    return mcp


@app.command("demo")
def _demo() -> Command:
    """Ask the sample graph a few questions; no download, no API key."""
    from kg_retrievers.cli.ask import demo

    return demo


# --- one call ---------------------------------------------------------------------------------------------------------


def run(argv: Sequence[str] | None) -> int:
    """Run the command and return its exit code.

    Raises:
        KeyboardInterrupt: If the user interrupts it.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and not stream.closed:
            stream.reconfigure(errors="backslashreplace")  # a name that a terminal cannot show must not end the program
    # The library logs why it refuses a question; the commands say so themselves, in their own words.
    logging.getLogger("kg_retrievers").addHandler(_SILENT)
    try:
        command = typer.main.get_command(app)
        code = command.main(argv, prog_name="kg-retrievers", standalone_mode=False)
    except typer.TyperException as error:
        note(f"error: {_usage_message(error)}")
        code = MISTAKE
    except SystemExit:  # so Typer ends if nobody reads its help
        code = BROKEN_PIPE
    except OSError as error:  # of a page of help
        note(f"error: {message(error)}")
        code = MISTAKE
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return _end_output(code)


def _usage_message(error: typer.TyperException) -> str:
    """Return one line about a mistake in the arguments, with the command that helps; passwords are hidden."""
    from pydantic import ValidationError  # which the help does not need

    text = re.sub(r"://\S*@", "://...@", error.format_message()).replace("Value error, ", "")
    if isinstance(cause := error.__cause__, ValidationError):
        problem = cause.errors()[0]
        if problem["type"] != "value_error":  # whose message shows the value
            text = f"{re.sub(', unable to parse string.*', '', text)}, but got {problem['input']!r:.100}"
        given = str(problem["input"])
        is_share = given.endswith("%") and not problem["type"].startswith("int")
        if is_share or problem.get("ctx", {}).get("le") == 1:
            with suppress(ValueError):
                if 1 < (percent := float(given.rstrip("% "))) <= 100:
                    text += f"; did you mean {percent / 100:g}?"
    text = text.replace("Input should be a valid integer", "wanted a whole number")
    text = text.replace("Input should be a valid number", "wanted a number")
    text = text.replace("Input should be", "wanted a value")
    text = re.sub(r"^Invalid value for '(\S*)':", r"\1:", text)
    text = re.sub(r" \(Possible options: (.*)\)$", r"; did you mean \1?", " ".join(text.split()))
    where = getattr(getattr(error, "ctx", None), "command_path", "kg-retrievers")
    if (name := getattr(error, "option_name", None)) in ("--graph", "--question"):
        text = f"No such option: {name}. Write GRAPH and the question in quotes without an option."
    elif field := _field_of(name, error):
        text = f"No such option: {name}; did you mean --field {field}=VALUE?"
    return f"{text}{'' if text.endswith(('.', '?')) else '.'} See: {where} --help"


def _field_of(option: str | None, error: typer.TyperException) -> str | None:
    """Return the field of a method that an unknown option names, if the command takes `--field`."""
    context = getattr(error, "ctx", None)
    if not option or context is None or all(one.name != "field" for one in context.command.params):
        return None
    from kg_retrievers.methods import registry  # which the help does not need

    field = option.lstrip("-").replace("-", "_")
    return next((field for method in registry.METHODS if field in method.load_retriever().model_fields), None)


def _end_output(code: int) -> int:
    """Write what stdout still holds; return the exit code, another one where nobody takes it."""
    if sys.stdout is None or sys.stdout.closed:
        return code
    try:
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        ended = BROKEN_PIPE
    except OSError as error:
        if not code:  # else it was told
            note(f"error: {message(error)}")
        ended = code or MISTAKE
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed when the process ends
    return ended
