"""Call every public name with hostile values of the right types, and print whatever fails.

    HF_HUB_OFFLINE=1 python -m benchmarks.fuzz --seconds 60 --seed 0

Each call takes a name of `kg_retrievers.__all__`, or a public method of such a class, and draws arguments by their type
hints: hostile numbers and texts, duplicates, and paths in a temporary folder. Allowed are errors of this package and
those that the docstring of the callable names. Anything else fails, and so does a call of more than 10 seconds, or one
that changes its arguments.
"""

from __future__ import annotations

import argparse
import asyncio
import collections.abc
import copy
import inspect
import logging
import os
import random
import shutil
import signal
import sys
import time
import traceback
import types
import typing
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from pydantic import BaseModel

import kg_retrievers
from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Pattern, Question
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.sample import load_graph, load_questions
from kg_retrievers.testing import ScriptedChatModel

#: The most seconds of a call.
SLOW = 10

TEXTS = [
    *"\x00\ud800",
    "",
    " ",
    "x" * 5000,
    "[" * 2000,
    "9" * 400,
    *["?x", "-0", "1e999", "Her", "Spike Jonze", "directed by", "film"],
]
TEXTS += [
    "\u202eHer",
    "\u0130\u00df\ufb03",
    "a\nb\tc",
    "{question}",
    "Who directed Her?",
    "How many films before 0000-99-99?",
]
TEXTS += ["99999-12-31", "-44-03-15", "nan", "SELECT * WHERE { ?s ?p ?o }", "MATCH (n) RETURN n", "directed_by"]
INTS = [0, 1, 2, 3, 10, -1, 2**31, 2**63, 10**400]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.0, 5e-324, 1e308, float("nan"), float("inf"), -float("inf")]
VALUES: list[Any] = [*TEXTS, *INTS, *FLOATS, None, True, [], {}, [[[[[]]]]], {"a": {"a": {}}}, ["Her", "Her"]]
FILES = [
    *["missing", "folder", "index", "empty.tsv", "graph.jsonl", "questions.jsonl", "bytes.csv"],
    "n" * 300,
    "a\x00b",
]
SEVERAL = (Iterable, Sequence, Collection, Iterator)
#: Methods that subclasses fill, called with what they made themselves.
SEAMS = {"model_post_init", "body", "begin", "part", "guesses", "initial_state", "results", "documents_from"}
#: Classes whose own constructors take what this package made.
MADE_HERE = (KnowledgeGraph, GraphIndex, kg_retrievers.Report)
#: Names that ask a hub of models.
REMOTE = {"local_embeddings", "load_chat_model"}


class TooSlowError(BaseException):
    """A call took more than `SLOW` seconds."""


class NoValueError(Exception):
    """No value of a type is known here."""


class Foreign:
    """Stands for a type that is imported for checks of types alone."""

    def __class_getitem__(cls, _: Any) -> type[Foreign]:
        """Stand for the generic type, too."""
        return cls


class Names(dict[str, Any]):
    """The names of annotations: those of the module, of the package and of `typing`."""

    def __init__(self, module: dict[str, Any]) -> None:
        """Take the names of a module."""
        super().__init__(
            vars(typing) | vars(collections.abc) | {"Path": Path, "BaseKGRetriever": BaseKGRetriever} | module
        )

    def __missing__(self, name: str) -> Any:
        """Find a name of the package, or let a foreign type stand for it."""
        if name in dir(__builtins__) or name in vars(__import__("builtins")):
            raise KeyError(name)
        return getattr(kg_retrievers, name) if name in kg_retrievers.__all__ else Foreign


class Target(NamedTuple):
    """A callable, and the class whose instance it needs."""

    name: str
    function: Any
    owner: type | None


def targets() -> Iterator[Target]:
    """Give all public callables."""
    for name in kg_retrievers.__all__:
        item = getattr(kg_retrievers, name)
        if not callable(item) or name in REMOTE:
            continue
        if item not in MADE_HERE:
            yield Target(name, item, None)
        for method in dir(item) if isinstance(item, type) else ():
            raw = inspect.getattr_static(item, method)
            own = str(getattr(inspect.unwrap(getattr(raw, "__func__", raw)), "__module__", "")).startswith(
                "kg_retrievers"
            )
            if (
                not method.startswith("_")
                and method not in SEAMS
                and own
                and inspect.isroutine(raw)
                and not issubclass(item, BaseException)
            ):
                bound = isinstance(raw, classmethod | staticmethod)
                yield Target(f"{name}.{method}", getattr(item, method) if bound else method, None if bound else item)
        if isinstance(item, type) and issubclass(item, BaseKGRetriever):
            yield Target(f"{name}.invoke", "invoke", item)


class Drawing:
    """Draws values by their types, from a seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        """Build the sample's index, and what else is drawn from."""
        self.random, self.folder = random.Random(seed), folder
        self.graph, self.questions = load_graph(), load_questions()
        self.index = GraphIndex.build(self.graph, HashedEmbeddings(64), triples=True)
        self.index.graph.save(folder.parent / "saved")
        empty = KnowledgeGraph.from_triples([])
        odd = KnowledgeGraph.from_triples([("a", "r", "a"), ("a", "r", "b"), ("x" * 5000, "\u202e", "b")])
        self.known: dict[type, Callable[[], Any]] = {
            KnowledgeGraph: lambda: self.random.choice([self.graph, self.graph, empty, odd]),
            GraphIndex: lambda: self.random.choice([self.index, GraphIndex.build(odd, HashedEmbeddings(8))]),
            Embeddings: lambda: HashedEmbeddings(self.random.choice([8, 64])),
            BaseLanguageModel: lambda: ScriptedChatModel(replies=[self.random.choice(TEXTS)], cycle=True),
            BaseChatModel: lambda: ScriptedChatModel(replies=[self.random.choice(TEXTS)], cycle=True),
            Question: lambda: self.random.choice([*self.questions, Question(self.random.choice(TEXTS))]),
            Pattern: lambda: self.random.choice([one for one in self.questions if one.pattern]).pattern,
            Document: lambda: self.random.choice(
                kg_retrievers.SimGRAGRetriever.from_index(self.index).invoke("Who directed Her?")
            ),
            BaseKGRetriever: lambda: kg_retrievers.SimGRAGRetriever.from_index(self.index),
            Path: lambda: self.folder / self.random.choice(FILES),
            str: lambda: self.random.choice(TEXTS),
            int: lambda: self.random.choice(INTS),
            float: lambda: self.random.choice(FLOATS),
            bool: lambda: self.random.random() < 0.5,
            type(None): lambda: None,
        }

    def value(self, kind: Any) -> Any:
        """Return a value of a type.

        Raises:
            NoValueError: If none is known.
        """
        origin, inside = typing.get_origin(kind), typing.get_args(kind)
        if kind is Any or kind is object:
            return self.random.choice(VALUES)
        if origin in (typing.Union, types.UnionType):
            return self.any_of(inside)
        if origin is typing.Literal:
            return self.random.choice(inside)
        if origin is typing.Annotated or isinstance(kind, typing.TypeAliasType if sys.version_info >= (3, 12) else ()):
            return self.value(inside[0] if inside else kind.__value__)
        if origin is tuple and Ellipsis not in inside:
            return tuple(self.value(one) for one in inside)
        if origin in SEVERAL or origin in (list, tuple, set, frozenset):
            items = [self.value(inside[0]) for _ in range(self.random.choice([0, 1, 2, 5]))]
            return items * self.random.choice([1, 2]) if origin in SEVERAL else origin(items)
        if origin in (dict, collections.abc.Mapping):
            return {self.value(inside[0]): self.value(inside[1]) for _ in range(self.random.choice([0, 1, 3]))}
        if (
            typing.is_typeddict(kind)
            or getattr(kind, "_is_protocol", False)
            or kind in (Foreign, dict, kg_retrievers.Report)
        ):
            raise NoValueError(str(kind))
        if kind in self.known:
            return self.known[kind]()
        if isinstance(kind, type) and issubclass(kind, BaseKGRetriever) and not inspect.isabstract(kind):
            return kind.from_index(self.index, **self.fields(kind))
        if isinstance(kind, type) and kind.__module__.startswith("kg_retrievers") and not inspect.isabstract(kind):
            return kind(**self.arguments(kind))
        raise NoValueError(str(kind))

    def any_of(self, kinds: tuple[Any, ...]) -> Any:
        """Return a value of one of several types."""
        for kind in self.random.sample(kinds, len(kinds)):
            try:
                return self.value(kind)
            except NoValueError:
                continue
        raise NoValueError(str(kinds))

    def fields(self, kind: type[BaseModel]) -> dict[str, Any]:
        """Return a few settings of a retriever."""
        chosen = self.random.sample(sorted(kind.model_fields), self.random.choice([0, 1, 2]))
        kinds = {name: kind.model_fields[name].annotation for name in chosen}
        return self.given(
            {name: (one, False) for name, one in kinds.items() if name not in ("index", "metadata", "tags")}
        )

    def arguments(self, function: Any) -> dict[str, Any]:
        """Return arguments for a callable, by name.

        Raises:
            NoValueError: If they cannot be drawn.
        """
        try:
            return self.given(self.kinds(function))
        except (TypeError, ValueError) as error:
            raise NoValueError(str(error)) from error

    def kinds(self, function: Any) -> dict[str, tuple[Any, bool]]:
        """Return the type of each argument, and whether it is needed."""
        code = inspect.unwrap(
            function.__init__ if isinstance(function, type) else getattr(function, "__func__", function)
        )
        names, kinds = Names(getattr(code, "__globals__", {})), {}
        for one in inspect.signature(function).parameters.values():
            if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
                given = one.annotation
                hint = (
                    Foreign if "Graph[" in str(given) else eval(given, {}, names) if isinstance(given, str) else given
                )
                kinds[one.name] = (Path if "path" in one.name and hint is str else hint, one.default is one.empty)
        return kinds

    def given(self, kinds: dict[str, tuple[Any, bool]]) -> dict[str, Any]:
        """Return a value for each needed argument, and for some of the others."""
        drawn = {}
        for name, (kind, needed) in kinds.items():
            if needed or self.random.random() < 0.4:
                try:
                    drawn[name] = self.value(Path if kind == str | Path else kind)
                except NoValueError:
                    if needed:
                        raise
        return drawn


def fill(folder: Path, saved: Path) -> None:
    """Make the files that paths may name."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "folder").mkdir(parents=True)
    shutil.copytree(saved, folder / "index")
    for name in ("graph.jsonl", "questions.jsonl"):
        shutil.copy(Path(kg_retrievers.sample.__file__).parent / name, folder / name)
    (folder / "empty.tsv").touch()
    (folder / "bytes.csv").write_bytes(bytes(range(256)) * 9)


def documented(function: Any) -> set[str]:
    """Return the errors that a docstring names."""
    texts = [inspect.getdoc(function) or "", inspect.getdoc(getattr(function, "__init__", None)) or ""]
    return {word.split(":")[0].strip() for text in texts for word in text.partition("Raises:")[2].splitlines()}


@contextmanager
def no_longer_than(seconds: int) -> Iterator[None]:
    """Break off a call that takes longer."""

    def stop(*_: object) -> None:
        raise TooSlowError(f"more than {seconds} seconds")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def call(target: Target, drawing: Drawing) -> None:
    """Call once.

    Raises:
        AssertionError: If the call changed an argument.
    """
    owner = None if target.owner is None else drawing.value(target.owner)
    function = target.function if owner is None else getattr(owner, target.function)
    if not callable(function):
        return
    given = {} if target.name.endswith(".invoke") else drawing.arguments(function)
    if target.name.endswith("invoke"):
        asked = drawing.random.choice(TEXTS)
        taken = isinstance(owner, BaseKGRetriever)
        given = {"input": asked if taken else {"question": asked, "documents": [], "evidence": ""}}
    plain = {name: copy.deepcopy(value) for name, value in given.items() if isinstance(value, list)}
    graphs = {name: value.fingerprint for name, value in given.items() if isinstance(value, KnowledgeGraph)}
    result = function(**given)
    if inspect.iscoroutine(result):
        asyncio.run(result)
    if inspect.isgenerator(result):
        list(result)
    changed = [name for name, value in plain.items() if repr(value) != repr(given[name])]
    changed += [name for name, value in graphs.items() if value != given[name].fingerprint]
    assert not changed, f"changed {changed}"


def fuzz(seconds: float, seed: int) -> dict[str, Counter[str]]:
    """Call all targets in turn until the time is over; return calls, failures and the like of each."""
    found: dict[str, Counter[str]] = {}
    told: set[str] = set()
    back = Path.cwd()
    with TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = Path(name)
        drawing = Drawing(seed, place / "work")
        for method in (kg_retrievers.KGRetriever, kg_retrievers.PCSTRetriever, kg_retrievers.SimGRAGRetriever):
            method.from_index(drawing.index).invoke("Who directed Her?")  # compiles
        end = time.monotonic() + seconds
        try:
            for number in range(sys.maxsize):
                for target in targets():
                    if time.monotonic() > end:
                        return found
                    fill(place / "work", place / "saved")
                    os.chdir(place / "work")
                    found.setdefault(target.name, Counter())["calls"] += 1
                    drawing.random.seed(f"{seed} {number} {target.name}")
                    allowed = documented(
                        target.function if target.owner is None else getattr(target.owner, target.function)
                    )
                    try:
                        with no_longer_than(SLOW):
                            call(target, drawing)
                    except NoValueError:
                        found[target.name]["no values"] += 1
                    except KGRetrieversError:
                        found[target.name]["typed errors"] += 1
                    except (Exception, TooSlowError) as error:
                        if type(error).__name__ in allowed:
                            found[target.name]["typed errors"] += 1
                            continue
                        found[target.name]["failures"] += 1
                        place_of = traceback.extract_tb(error.__traceback__)[-1]
                        key = f"{target.name}: {type(error).__name__} at {place_of.filename[-40:]}:{place_of.lineno}"
                        if key not in told:
                            told.add(key)
                            text = "".join(traceback.format_exception(error, limit=-6))[-1500:]
                            print(f"--- {key}, round {number}\n{text}".encode(errors="replace").decode(), flush=True)
        finally:
            os.chdir(back)
    return found


def main() -> None:
    """Call for as long as asked, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.disable()
    columns = ("calls", "typed errors", "no values", "failures")
    print(f"{'function':45}" + "".join(f"{column:>14}" for column in columns))
    found = fuzz(options.seconds, options.seed)
    for name, counts in [*found.items(), ("all", sum(found.values(), Counter()))]:
        print(f"{name:45}" + "".join(f"{counts[column]:14}" for column in columns))


if __name__ == "__main__":
    main()
