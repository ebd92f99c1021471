"""Every error a user can meet. Each message names its source, the given value, the wanted value and the next step."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from importlib.metadata import distributions
from inspect import Signature, isfunction, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, TypeVar, Unpack, cast
from urllib.parse import urlparse
from urllib.request import url2pathname

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
    **dict.fromkeys(("sep", "separator"), "delimiter"),
    **dict.fromkeys(("persist_directory", "persist_dir", "folder"), "path"),
    **dict.fromkeys(("head", "relation", "tail"), "columns"),
    "question": "text",
    **dict.fromkeys(("average", "avg"), "mean"),
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


Named = TypeVar("Named", bound=Callable[..., Any])

#: Parts of annotations of arguments that take a list.
_SEVERAL = ("Paths", "Sequence", "Iterable")


def named_arguments(named: Named) -> Named:
    """Let a function raise errors of this package for wrong arguments, and for too little memory.

    They are `InvalidArgumentError`, not TypeError, for a misspelt, missing or surplus argument, and `OutOfMemoryError`.
    Of a class, it takes `__init__` and the public methods.
    """
    if isinstance(named, type):
        for name, member in list(vars(named).items()):
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if isfunction(function) and (name == "__init__" or not name.startswith("_")):
                checked = named_arguments(function)
                setattr(named, name, checked if function is member else type(member)(checked))
        return named

    @wraps(named)
    def checked_call(*args: Any, **kwargs: Any) -> Any:
        try:
            return named(*args, **kwargs)
        except (TypeError, MemoryError) as cause:
            form, who, given = signature(named), named.__name__, args
            if next(iter(form.parameters), "") in ("self", "cls"):
                owner = args[0] if isinstance(args[0], type) else type(args[0])
                who = owner.__name__ if who == "__init__" else f"{owner.__name__}.{who}"
                form, given = form.replace(parameters=list(form.parameters.values())[1:]), args[1:]
            if isinstance(cause, MemoryError):
                raise OutOfMemoryError(f"{who}: the system gives this process no more memory.", **_LESS) from cause
            try:
                bind_arguments(who, form, given, kwargs)
            except InvalidArgumentError as error:
                error.hint_python += _other_reader(args[:1], kwargs.keys() - form.parameters.keys())
                raise error from None
            raise

    return cast(Named, checked_call)


def _other_reader(owner: Sequence[Any], strange: set[str]) -> str:
    """Return which constructor of a class takes an argument that another one lacks."""
    names = [name for name in dir(owner[0]) if name.startswith("from_")] if owner and isinstance(owner[0], type) else []
    taken = {name: strange & signature(getattr(owner[0], name)).parameters.keys() for name in names}
    return next((f"{owner[0].__name__}.{name} takes {min(some)!r}." for name, some in taken.items() if some), "")


def bind_arguments(who: str, form: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name.

    Raises:
        InvalidArgumentError: If one is misspelt, missing or surplus.
    """
    try:
        return form.bind(*args, **kwargs).arguments
    except TypeError as error:
        parameters = form.parameters.values()
        known = [one.name for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
        if len(known) == len(parameters):
            check_known(who, kwargs, known)
        if not parameters:
            raise InvalidArgumentError(f"{who} takes no argument. Leave out what you give.") from None
        unnamed = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        if len(args) > len(unnamed):
            names, got = ", ".join(one.name for one in unnamed) or "none", ", ".join(f"{one!r:.60}" for one in args)
            takes_several = any(kind in str(one.annotation) for one in unnamed for kind in _SEVERAL)
            hint = "Give several as one list, or name the others" if takes_several else "Name the others"
            raise InvalidArgumentError(
                f"{who}: wanted only {names} without a name, but got {got}. {hint}: it takes {', '.join(known)}."
            ) from None
        hint = 'Make one: load_chat_model("openai:gpt-4.1-mini").' if str(error).endswith("argument: 'llm'") else ""
        raise InvalidArgumentError(f"{who}: {error}; it takes {', '.join(known)}.", hint_python=hint) from None


def check_known(
    who: str, given: Iterable[str], known: Collection[str], what: str = "argument", shown: Sequence[str] = ()
) -> None:
    """Check that names exist.

    Args:
        who: The function that takes them.
        given: The names.
        known: The names that there are.
        what: The thing that they name.
        shown: The names that the message lists. By default, all.

    Raises:
        InvalidArgumentError: If one does not exist.
    """
    if strange := next((name for name in given if name not in known), None):
        hint = did_you_mean(str(strange), known)
        if not hint and "where" in known:
            hint = f"did you mean where={{{strange!r}: ...}}?"
        hint = hint or f"it takes {', '.join(shown or known) or 'none'}."
        raise InvalidArgumentError(f"{who}: there is no {what} {strange!r:.100}; {hint}") from None


class GuidedClass(type):
    """The class of `Guided`, for classes that have another one."""

    guide = ""

    if not TYPE_CHECKING:  # so that mypy finds such names

        def __getattr__(cls, name):
            """Say what there is."""
            try:
                return super().__getattr__(name)
            except AttributeError:
                raise AttributeError(f"{cls.__name__} has no {name!r}. {cls.guide}") from None


class Guided(metaclass=GuidedClass):
    """Says what a class can do if it lacks an attribute, such as a name of another library.

    Attributes:
        guide: Sentences on what there is.
    """

    guide: ClassVar[str] = ""

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Say what there is."""
            return getattr(type(self), name)


class OutOfMemoryError(KGRetrieversError):
    """A graph or an index needs more memory than the process may take."""


_LESS: Hints = {
    "hint_python": 'Leave out texts that nobody asks for (attributes="drop", of RDF literals="drop"), index a part '
    "(graph.view({...})), or keep the graph in a server (GraphIndex.connect(executor, embeddings)).",
    "hint_shell": "Leave out texts that nobody asks for (--read attributes=drop, of RDF --read literals=drop), or keep "
    "the graph in a server, and name its address in place of the file.",
}


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
        shown = f"{path}".encode(errors="backslashreplace").decode()  # half a surrogate pair cannot be printed
        place = f"{shown}:{line}" if line is not None else shown
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


class GraphLoadWarning(UserWarning):
    """A file may hold something else than it was read as."""

    def __init__(self, message: str, path: Path, line: int | None = None, **hints: Unpack[Hints]) -> None:
        """Word the warning as a `GraphLoadError`, whose text for the shell is `on_shell`."""
        error = GraphLoadError(message, path, line, **hints)
        super().__init__(str(error))
        self.on_shell = error.on_shell


class FewerNamesWarning(UserWarning):
    """A vector store found fewer names than asked for, though it holds more.

    It is approximate, or returns no more.
    """
