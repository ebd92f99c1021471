"""Ask a retriever many questions, and measure."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from types import FunctionType
from typing import Any, Literal, get_args

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from rich.console import Console
from rich.progress import track

from kg_retrievers import errors
from kg_retrievers.bulk import Workers, check_workers, map_batches
from kg_retrievers.core.cost import CostCounter
from kg_retrievers.core.documents import why_unsure
from kg_retrievers.core.retriever import BaseKGRetriever, check_retriever
from kg_retrievers.core.stages import STAGE_EVENT
from kg_retrievers.core.trained_model import TrainedModel
from kg_retrievers.datasets import GraphQuestion, Question
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError, named_arguments
from kg_retrievers.evaluation.identity import digest, identity
from kg_retrievers.evaluation.measuring import record_of
from kg_retrievers.evaluation.records import FORMAT, Header, Record, continued, keep_record
from kg_retrievers.evaluation.report import Report
from kg_retrievers.graph.validation import check_integer
from kg_retrievers.index import embedding_name
from kg_retrievers.index.question_indexes import QuestionIndexes
from kg_retrievers.index.question_keys import with_keys

#: Whether a retriever is given the entities of a question, or has to find them in its text.
Topic = Literal["given", "linked"]

# These errors say that something is wrong with the run, not with one question.
_OF_THE_RUN = (
    InvalidArgumentError,
    errors.MissingExtraError,
    errors.ModelMismatchError,
    errors.BudgetError,
    errors.StaleIndexError,
    errors.DamagedDataError,
    errors.DatabaseUnavailableError,
    errors.DatabaseLoginError,
)


class _PatternTrace(BaseCallbackHandler):
    """Keeps the first pattern that a stage of a retriever makes."""

    run_inline = True
    pattern: dict[str, Any] | None = None

    def on_custom_event(self, name: str, data: Mapping[str, Any], **_: object) -> None:
        """Keep the pattern of a stage."""
        if name == STAGE_EVENT and self.pattern is None:
            self.pattern = data.get("pattern")


class Asker:
    """Asks batches of numbered questions.

    Attributes:
        unmeasured: What is asked before the first batch.
    """

    def __init__(
        self,
        retriever: BaseKGRetriever,
        answerer: Runnable[Any, Any] | None,
        topic: Topic,
        embedding_cache: str | Path | None = None,
    ) -> None:
        """Take the arguments of `evaluate`."""
        self.retriever, self.answerer, self.topic = retriever, answerer, topic
        self.unmeasured: Sequence[Question] = ()
        self._indexes = QuestionIndexes(retriever.index.embeddings, embedding_cache)

    def _over_graph_of(self, question: Question) -> BaseKGRetriever:
        """Return the retriever over the graph that a question is about."""
        if not isinstance(question, GraphQuestion):
            return self.retriever
        return self.retriever.with_index(self._indexes.of(question.graph))

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the retriever and the answerer show."""
        fields = {name: getattr(self.retriever, name) for name in sorted(type(self.retriever).model_fields)}
        prompts = [identity(prompt) for _, prompt in sorted(self.retriever.prompts.items())]
        parts = {name: value for name, value in fields.items() if _is_part(value)} | {"answerer": self.answerer}
        return {
            "topic": self.topic,
            "retriever": type(self.retriever).__name__,
            "fields": {
                name: _setting(value)
                for name, value in fields.items()
                if name not in {"name", "tags", "metadata", "index"}
            },
            "prompts": digest(prompts),
            "parts": {name: identity(part) for name, part in parts.items() if part is not None},
            "embeddings": embedding_name(self.retriever.index.embeddings),
            "index": self.retriever.index.fingerprint,
            "answerer": None if self.answerer is None else self.answerer.get_name(),
            "version": version("kg-retrievers"),
        }

    def __call__(self, numbered: Sequence[tuple[int, Question]]) -> list[Record]:
        """Return the records of some questions; each process that gets a copy asks unmeasured ones first."""
        self._warm_up()
        return [self.record(str(number), question) for number, question in numbered]

    def _warm_up(self) -> None:
        """Ask until there is evidence, unless that costs calls of a language model."""
        questions, self.unmeasured = self.unmeasured, ()
        if not any(stage.calls_model for stage in self.retriever.stages):
            for question in questions:
                if self._retrieve(self._over_graph_of(question), question, {})[0]:
                    break

    def record(self, id: str, question: Question) -> Record:
        """Ask a question and measure. The clock runs once the question's graph is indexed."""
        retriever = self._over_graph_of(question)
        cost, trace = CostCounter(), _PatternTrace()
        config: RunnableConfig = {"callbacks": [cost, trace]}
        began = perf_counter()
        documents, reason, error = self._retrieve(retriever, question, config)
        latency = 1000 * (perf_counter() - began)
        reply, error = self._reply(question, documents, config, error)
        return record_of(
            id,
            question,
            retriever,
            documents,
            reply,
            reason=reason,
            error=error,
            pattern=trace.pattern,
            cost=cost,
            latency=latency,
        )

    def _retrieve(
        self, retriever: BaseKGRetriever, question: Question, config: RunnableConfig
    ) -> tuple[list[Document], str | None, str | None]:
        """Return the evidence; why the question was refused; and what went wrong."""
        given = self.retriever.inputs_for(question)
        if self.topic == "linked":
            given.pop("seed_entities", None)
        try:
            documents = retriever.invoke(question.text, config, on_refusal="raise", **given)
            return documents, why_unsure(documents) or None, None
        except errors.SearchBudgetError as error:  # it does not say that there is nothing
            return [], None, f"{type(error).__name__}: {error}"
        except errors.RefusalError as error:
            return [], str(error), None
        except _OF_THE_RUN:
            raise
        except KGRetrieversError as error:
            return [], None, f"{type(error).__name__}: {error}"

    def _reply(
        self, question: Question, documents: list[Document], config: RunnableConfig, error: str | None
    ) -> tuple[Any, str | None]:
        """Return the reply of the answerer, and what went wrong; None without an answerer."""
        if self.answerer is None:
            return None, error
        if error or not (documents or getattr(self.answerer, "decides_without_evidence", False)):
            return [], error
        try:
            return self.answerer.invoke({"question": question.text, "documents": documents}, config), None
        except _OF_THE_RUN:
            raise
        except KGRetrieversError as caught:
            return [], f"{type(caught).__name__}: {caught}"


def _setting(field: object) -> Any:
    """Return a field as JSON holds it, where it is a plain value or a list of such; else its name or its class."""
    plain = bool | int | float | str | None
    if isinstance(field, list | tuple) and all(isinstance(item, plain) for item in field):
        return list(field)
    if isinstance(field, FunctionType):
        return f"{field.__module__}.{field.__qualname__}"
    return field if isinstance(field, plain) else type(field).__name__


def _is_part(field: object) -> bool:
    """Whether the figures depend on what a field holds, not only on its class: a generator, a model, retrievers."""
    if isinstance(field, list | tuple):
        return any(map(_is_part, field))
    return isinstance(field, Runnable | TrainedModel) and not isinstance(field, BasePromptTemplate)


#: How many questions are asked at most before the clock runs, until one has evidence: the first search compiles.
WARM_UP = 10

#: How many questions a worker is given at once.
SHARED_SIZE = 8


@named_arguments
def evaluate(
    retriever: BaseKGRetriever,
    questions: Iterable[Question],
    *,
    answerer: Runnable[Any, Any] | None = None,
    topic: Topic = "given",
    method: str | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    records: str | Path | None = None,
    embedding_cache: str | Path | None = None,
    progress: bool = False,
    workers: Workers | None = None,
) -> Report:
    """Ask a retriever questions whose answers are known.

    The answers proposed are the top group's: of all Documents whose score equals the first one's, such as when a
    Document holds one of several equally good results. The evidence comes from all Documents, as many as the
    retriever's `k`. If the retriever proposes no answers (`proposes_answers`), the figures that compare answers are
    None.

    A question is refused if there is no Document, or only evidence that proposes no answer since the question is not
    understood surely, or, with an answerer, if its reply holds no answers. A reply that is a text is read by the
    retriever's `parse_answers`. The answers it finds are scored, and an abstention such as "ans: not available" is a
    refusal. A verdict on a claim, as `FactVerifier` gives it, is the value that `exact_value` compares with the gold
    one, True or False: so it is the accuracy of verdicts.

    The latency is the wall time of the retrieval, calls of language models included, one question after the other. If
    no stage calls one, a question or a few are asked before, since the first search compiles.

    An error of this package at a question is recorded and counts as no answer. Two kinds of errors end the run: one
    that says that the run itself is wrong (a misspelt argument, a missing package, a used-up budget), and any other, as
    of a network. The finished questions are in the file of records then, and the same call continues it.

    A question with a graph of its own (`GraphQuestion`) is asked over that graph, by the retriever that `with_index`
    gives. The graph is indexed before the clock runs. The lessons from the retriever's examples go along, but its own
    graph is not looked at.

    Gold answers may be keys, names that one entity has, or values, such as "3", "1990-05-03" or "yes". A warning and
    `Report.unmatched` count those that match no entity, or several. These still count, so that no reply is right there.

    Args:
        retriever: Any retriever of this package.
        questions: The questions. Those with a gold value count for `exact_value`; those without gold answers or value,
            unless they are unanswerable, only for the size of the evidence, the cost and the refusals.
        answerer: From `{"question", "documents"}` to a text, a list of texts, a mapping with such a list under
            "answers", or a verdict; adds the metrics `text_...`. Without evidence only one that decides
            without (`FactVerifier(llm, otherwise="refuted")`) is asked.
        topic: "given" hands `seed_entities` to the retriever where a question has some; "linked" lets it find the
            entities in the text.
        method: The name in the report; the name of the class by default.
        seed: For the bootstrap intervals.
        settings: What else the figures depend on and the report should say, JSON-safe: data, language model, examples.
        records: A file of JSON lines to keep what is measured; if it is there, the run is continued, as long as the
            questions, the retriever with its examples, prompts and language model (`identity`), and the rest of the
            settings are the same.
        embedding_cache: A file that keeps the vectors of names from one run to the next, for questions with graphs of
            their own. A missing file is made. Without it they are kept for this run.
        progress: Whether to show a progress bar on stderr.
        workers: Processes that ask, `LocalWorkers` or `RayWorkers`; this one by default. The records are the same but
            for the latency, that of a machine that does more at once; they are kept `SHARED_SIZE` at a time.

    Raises:
        InvalidArgumentError: If there are no questions, an argument is misspelt, the settings are not JSON-safe, or
            `records` belongs to a run of other settings.
        FileFormatError: If `records` is there and holds something else.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, Question, SimGRAGRetriever, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze"), ("Her", "has_genre", "Drama")])
        >>> retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> report = evaluate(retriever, [Question("Who directed Her?", answers=("Spike Jonze",))])
        >>> report.metrics["hit"], report.metrics["triples_mean"], report.metrics["abstention"]
        (1.0, 1.0, None)
    """
    asked = list(questions)
    if not asked or not all(isinstance(question, Question) for question in asked):
        raise InvalidArgumentError(
            f"evaluate: wanted a list of one Question or more, but got {questions!r:.100}. "
            "Read a file with read_questions(path), or write Question(text, answers=(...,)). The retriever comes first."
        )
    check_retriever(retriever, "evaluate")
    if isinstance(answerer, BaseLanguageModel) or not isinstance(answerer, Runnable | None):
        raise InvalidArgumentError(
            f"evaluate: wanted an answerer or None, but got {answerer!r:.100}. Of a model: LLMCitedAnswerer(llm)."
        )
    if topic not in get_args(Topic):
        raise InvalidArgumentError(f'evaluate: topic is "given" or "linked", but got {topic!r}.')
    check_integer(seed, "evaluate: seed", 0)
    check_workers("evaluate", workers)
    places = {"records": records, "embedding_cache": embedding_cache}
    for name, value, kind, wanted in (
        ("method", method, str, "a name"),
        ("settings", settings, Mapping, "a mapping"),
        *((name, place, str | Path, "a path") for name, place in places.items()),
    ):
        if not isinstance(value, kind | None):
            raise InvalidArgumentError(f"evaluate: {name} must be {wanted} or None, but got {value!r:.100}.")
    matched = with_keys(retriever.index, asked)
    if matched.told:
        warnings.warn(f"evaluate: {matched.told}", stacklevel=3)
    asker = Asker(retriever, answerer, topic, embedding_cache)
    header: Header = {
        "format": FORMAT,
        "method": method or type(retriever).__name__,
        "seed": int(seed),
        "proposes_answers": retriever.proposes_answers,
        "settings": _json_safe(
            {
                **(settings or {}),
                **asker.settings,
                "questions": digest(list(map(_identity, asked))),
                "unmatched": matched.unmatched,
            }
        ),
    }
    done = continued(records, header)
    waiting = list(enumerate(matched.questions, 1))[len(done) :]
    made = _made(asker, waiting, workers)
    label = f"Asking {header['method']}"
    for record in track(made, label, len(waiting), console=Console(stderr=True)) if progress else made:
        keep_record(records, record)
        done.append(record)
    return Report.from_header(header, done)


def _made(asker: Asker, numbered: Sequence[tuple[int, Question]], workers: Workers | None) -> Iterator[Record]:
    """Yield the records of questions, as they are made."""
    asker.unmeasured = [question for _, question in numbered[:WARM_UP]]
    size = SHARED_SIZE if workers else 1
    batches = (numbered[first : first + size] for first in range(0, len(numbered), size))
    for records in map_batches(asker, batches, workers):
        yield from records


def _identity(question: Question) -> str:
    """Return a text that changes with a question, and with the graph where it has its own."""
    row = json.dumps(question.to_dict())
    return f"{row} {question.graph.fingerprint}" if isinstance(question, GraphQuestion) else row


def _json_safe(settings: Mapping[str, Any]) -> dict[str, Any]:
    try:
        safe: dict[str, Any] = json.loads(json.dumps(settings))
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"evaluate: the settings must be JSON-safe: {error}.") from error
    return safe
