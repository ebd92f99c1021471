"""Every error a user can meet. Each message names its source, the given value, the wanted value and the next step."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec, TypedDict, TypeVar, Unpack

from kg_retrievers.redaction import without_secrets


class Hints(TypedDict, total=False):
    """The next steps: see `KGRetrieversError`."""

    hint_python: str
    hint_shell: str | None
    hint_agent: str | None


#: Begins messages for programmers: the classes or functions that raised them.
_WHO = re.compile(
    r"(?:(?:[A-Z]\w*(?:[a-z][A-Z]\w*|Retriever)(?:\.\w+)?"
    r"|Pattern|Operation|render|(?:match|parse)_pattern|check_meant): )+"
)


class KGRetrieversError(Exception):
    """Base of all errors raised by this package. No message holds a secret: see `kg_retrievers.redaction`.

    Args:
        message: The source, the given value and the wanted value.
        hint_python: The next step in Python, part of the text of the error.
        hint_shell: The next step on the shell, if that is something else. The command shows it instead.
        hint_agent: The next step of an agent. By default, the text of its class.
    """

    #: The next step of an agent, which gives no arguments of Python.
    hint_agent: str = ""

    def __init__(
        self,
        message: str = "",
        *,
        hint_python: str = "",
        hint_shell: str | None = None,
        hint_agent: str | None = None,
    ) -> None:
        """Keep the hints with the message."""
        message = without_secrets(message)
        super().__init__(message)
        self.message = message
        self.hint_python = hint_python
        self.hint_shell = hint_python if hint_shell is None else hint_shell
        if hint_agent is not None:
            self.hint_agent = hint_agent

    def __str__(self) -> str:
        """The message, with the hint for Python."""
        return f"{self.message} {self.hint_python}".strip()

    @property
    def on_shell(self) -> str:
        """The message, with the hint for the shell."""
        return f"{self.message} {self.hint_shell}".strip()

    @property
    def plain_message(self) -> str:
        """The message without the class or function that raised the error."""
        return self.message[found.end() :] if (found := _WHO.match(self.message)) else self.message

    @property
    def on_agent(self) -> str:
        """The plain message, with the hint for an agent, which has no Python."""
        text = self.plain_message
        begun = text if text == self.message else text[:1].upper() + text[1:]
        return f"{begun} {self.hint_agent}".strip()

    @property
    def hints(self) -> dict[str, str]:
        """The hints by name, for an error that passes this one on."""
        own = {"hint_agent": self.hint_agent} if "hint_agent" in vars(self) else {}
        return {"hint_python": self.hint_python, "hint_shell": self.hint_shell, **own}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle whatever the subclass takes.

        An error then comes out of another process as it went in.
        """
        return _error_of, (type(self), self.args, vars(self))


def _error_of(kind: type[KGRetrieversError], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> Exception:
    error = kind.__new__(kind, *arguments)
    vars(error).update(attributes)
    return error


#: What arguments are called here that LangChain, LlamaIndex or vector stores call otherwise.
_CALLED_HERE = {
    **dict.fromkeys(("top_k", "search_kwargs", "similarity_top_k", "n_results", "num_results", "limit"), "k"),
    **dict.fromkeys(("score_threshold", "similarity_threshold", "threshold"), "min_confidence"),
    **dict.fromkeys(("language_model", "chat_model", "model_name"), "llm"),
    **dict.fromkeys(("embedding", "embedding_function", "embed_model"), "embeddings"),
    **dict.fromkeys(("persist_directory", "persist_dir", "folder"), "path"),
}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "did you mean ...?" with the nearest known name.

    The text is empty if none is near.

    Example:
        >>> did_you_mean("simrag", ["simgrag", "kaping"]), did_you_mean("top_k", ["k", "llm"])
        ("did you mean 'simgrag'?", "did you mean 'k'?")
    """
    names = list(known)
    near = [one for one in [_CALLED_HERE.get(name)] if one in names] or get_close_matches(name, names, 1)
    return f"did you mean {near[0]!r}?" if near else ""


def listed(names: Sequence[str], most: int = 10) -> str:
    """Return the first of some names for a message.

    It says how many more there are. The text is empty if there are none.

    Example:
        >>> listed(["director", "genre", "year"], 2)
        "'director', 'genre' and 1 more"
    """
    return first_of([repr(name) for name in names], most)


def first_of(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Return the first of some names as they are.

    It says how many more there are.

    Example:
        >>> first_of(["director", "genre", "year"], 2, "; ")
        'director; genre and 1 more'
    """
    more = len(names) - most
    shown = separator.join(names[:most])
    return f"{shown} and {more:,} more" if more > 0 else shown


class InvalidArgumentError(KGRetrieversError, ValueError):
    """An argument is misspelt, out of range, or contradicts another."""


Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def named_arguments(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Let a method raise `InvalidArgumentError`, not TypeError, for a misspelt or missing argument."""
    form = signature(function)

    @wraps(function)
    def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        try:
            form.bind(*args, **kwargs)
        except TypeError as error:
            owner = args[0] if isinstance(args[0], type) else type(args[0])
            who = owner.__name__ if function.__name__ == "__init__" else f"{owner.__name__}.{function.__name__}"
            known = list(form.parameters)[1:]
            strange = next((name for name in kwargs if name not in known), None)
            if strange is None:
                raise InvalidArgumentError(f"{who}: {error}. It takes {', '.join(known)}.") from None
            hint = did_you_mean(strange, known) or f"it takes {', '.join(known)}."
            raise InvalidArgumentError(f"{who}: there is no argument {strange!r}; {hint}") from None
        return function(*args, **kwargs)

    return checked


class MissingExtraError(KGRetrieversError, ImportError):
    """An optional package is needed and not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        """Name the `feature` that was asked for and the `extra` that brings it."""
        super().__init__(f"{feature} needs an optional package.", hint_python=f"Run: {install_command(extra)}")
        self.extra = extra


def install_command(extra: str) -> str:
    """Return the shell command that installs an extra.

    It installs from the place that this package was installed from.

    PEP 610's record names the place: a checkout, a file, a URL or a repository. Without one it is an index of packages,
    which has this one by its name.
    """
    from importlib.metadata import distributions  # here, since these take longer than the rest of the package
    from urllib.parse import urlparse
    from urllib.request import url2pathname

    for distribution in distributions(name="kg-retrievers"):
        if content := distribution.read_text("direct_url.json"):
            record = json.loads(content)
            url, repository = record["url"], record.get("vcs_info")
            if url.startswith("file:") and not repository:
                editable = "-e " if record.get("dir_info", {}).get("editable") else ""
                return f'pip install {editable}"{url2pathname(urlparse(url).path)}[{extra}]"'
            if repository:
                url = f"{repository['vcs']}+{url}@{repository['commit_id']}"
            return f'pip install "kg-retrievers[{extra}] @ {url}"'
    return f'pip install "kg-retrievers[{extra}]"'


class FileFormatError(KGRetrieversError):
    """A file or folder cannot be read as the expected contents. `path` and `line` (from 1) give the place."""

    def __init__(self, message: str, path: str | Path, line: int | None = None, **hints: Unpack[Hints]) -> None:
        """Put the place in front of the `message`, as compilers do: `path:line: message`."""
        place = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{place}: {message}", **hints)
        self.path = Path(path)
        self.line = line


class GraphLoadError(FileFormatError):
    """A knowledge graph cannot be read from a file or folder."""


class QuestionsLoadError(FileFormatError):
    """Questions or labelled examples cannot be read from a file."""


class IndexLoadError(FileFormatError):
    """A saved index is missing, incomplete or damaged."""


class ModelLoadError(FileFormatError):
    """A trained model is missing, incomplete or damaged."""


class ModelMismatchError(KGRetrieversError):
    """A trained model does not fit its use.

    The use has other embeddings or dimensions, or another language model.
    """


class StaleIndexError(KGRetrieversError):
    """A saved index was built from other inputs.

    The graph, embedding model or parameters differ from the ones given now.
    """


class DamagedDataError(KGRetrieversError):
    """A text or vector that was read from a folder is damaged.

    The damage shows when it is used.
    """


class PatternError(KGRetrieversError, ValueError):
    """A pattern cannot be built or matched.

    For example, nothing in it is known.
    """


class QuerySafetyError(KGRetrieversError, ValueError):
    """A query is not known to be a mere reading one. `token` is the offending token, at `position` (from 0) in it."""

    def __init__(self, message: str, token: str, position: int, **hints: Unpack[Hints]) -> None:
        """Keep the `token` and its `position` with the message.

        The token is empty at the end of the query.
        """
        super().__init__(message, **hints)
        self.token = token
        self.position = position


class CypherSafetyError(QuerySafetyError):
    """A Cypher query is not known to be a mere reading one."""


class SparqlSafetyError(QuerySafetyError):
    """A SPARQL query is not known to be a mere reading one."""


class DatabaseError(KGRetrieversError):
    """A graph database, or the server of a vector store, failed at a request."""


class DatabaseUnavailableError(DatabaseError):
    """A graph database or a vector store cannot be reached.

    Another cause is that its files cannot be opened.
    """


class DatabaseLoginError(DatabaseError):
    """A graph database or a vector store did not accept the login.

    The user name and password are wrong, or the user may not do this.
    """


class DatabaseFullError(DatabaseError):
    """A graph database or a vector store has no room.

    Earlier writes stay.
    """


class DatabaseTimeoutError(DatabaseError, TimeoutError):
    """A query took longer than it may, and was stopped."""


class DatabaseQueryError(DatabaseError):
    """A graph database refused a query. `reason` is its own message, from which a query can be repaired."""

    def __init__(self, message: str, query: str, reason: str, **hints: Unpack[Hints]) -> None:
        """Keep the `query` that was sent and the `reason` with the message."""
        super().__init__(message, **hints)
        self.query = query
        self.reason = without_secrets(reason)


class DatabaseMemoryError(DatabaseQueryError):
    """A query needs more memory than it may take, and was stopped."""


class DatabaseCrashError(DatabaseQueryError):
    """A query ended the process in which the embedded database runs.

    Nothing was lost, and another process takes its place.
    """


class DatabaseCancelledError(DatabaseError):
    """A query was stopped because its caller no longer waits for it."""


class RefusalError(KGRetrieversError):
    """A question is refused.

    No entity was found in it, or nothing in the graph fits. See `on_refusal`.
    """

    hint_agent = "Ask again in other words."


class NoEvidenceError(RefusalError):
    """Nothing in the graph fits the question."""

    hint_agent = "The graph may not say it."


class LowConfidenceError(RefusalError):
    """A question was not understood surely enough to answer it.

    See `min_confidence`.

    Attributes:
        confidence: How likely the answers would have been right, in [0, 1].
        unplaced: The words of the question that nothing in the graph fits.
        nearest: The relations that came nearest to the question, the nearest first.
    """

    hint_agent = "Ask again in the graph's own words."

    def __init__(
        self,
        message: str,
        confidence: float,
        unplaced: Sequence[str] = (),
        nearest: Sequence[str] = (),
        **hints: Unpack[Hints],
    ) -> None:
        """Keep the understanding of the question with the message."""
        super().__init__(message, **hints)
        self.confidence = confidence
        self.unplaced = list(unplaced)
        self.nearest = list(nearest)


class SearchBudgetError(RefusalError):
    """A search reached its budget before it found anything.

    The graph may hold an answer all the same.

    It is a refusal. By default `invoke` returns an empty list, with the reason in the log and in the event
    `kg_retrievers.refused`. With `on_refusal="raise"` it raises the error. Chains and workflows do not say that the
    graph holds no answer, but that the search ended. An evaluation counts it as an error.
    """

    hint_agent = "Ask about one or two entities."


class ReplyError(RefusalError, ValueError):
    """A language model's reply cannot be used. `reason` says why, `reply` is the reply as it came."""

    def __init__(self, reason: str, reply: str, **hints: Unpack[Hints]) -> None:
        """Keep `reason` and the whole `reply`.

        The message shows the beginning of the reply.
        """
        shown = reply if len(reply) <= 300 else reply[:300] + " ..."
        super().__init__(f"{reason} The reply was: {shown!r}", **hints)
        self.reason = reason
        self.reply = reply


class PatternParseError(PatternError, ReplyError):
    """A language model's reply holds no readable pattern."""


class AnswerParseError(ReplyError):
    """A language model's reply holds no readable answer.

    Another cause is an answer that lacks the requested form.
    """


class ModelCallError(KGRetrieversError):
    """The client of a language model or of embeddings failed.

    It failed on its server's data, with an error of Python's own.
    """


class FileWriteError(FileFormatError, OSError):
    """A file cannot be written.

    The disk is full, or this user may not write there.
    """

    def __init__(
        self,
        message: str,
        path: str | Path,
        *,
        reason: str | None = None,
        number: int | None = None,
        **hints: Unpack[Hints],
    ) -> None:
        """Keep `number` and `reason` as `errno` and `strerror`.

        The system gave them. `filename` is the path.
        """
        super().__init__(message, path, **hints)
        self.errno, self.strerror, self.filename = number, reason, str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the values of an OSError, too."""
        return *super().__reduce__(), {"errno": self.errno, "strerror": self.strerror, "filename": self.filename}


class WorkersError(KGRetrieversError):
    """Processes that share work failed.

    They cannot be started or reached, or ended before their work was done.
    """


class BudgetError(KGRetrieversError):
    """A run has used up its budget.

    The budget limits calls of a language model, tokens or seconds.
    """


class EntityLinkingError(RefusalError):
    """No entity of the graph was found in a question. `suggestions` are the nearest names."""

    hint_agent = "Use a name that the graph has."

    def __init__(self, message: str, suggestions: Sequence[str] = (), **hints: Unpack[Hints]) -> None:
        """Append "did you mean" when there is something to suggest."""
        near = " Did you mean: " + ", ".join(map(repr, suggestions)) + "?" if suggestions else ""
        super().__init__(message + near, **hints)
        self.suggestions = list(suggestions)


class FewerNamesWarning(UserWarning):
    """A vector store found fewer names than asked for, though it holds more.

    It is approximate, or returns no more.
    """
