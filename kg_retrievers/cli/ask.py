"""The command `ask`."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import kg_retrievers
from kg_retrievers.cli.database import QueryDatabase
from kg_retrievers.cli.explained import Explained, explain_found, given_inputs
from kg_retrievers.cli.graph_prompt import make_answerer, retriever_models
from kg_retrievers.cli.load import check_database_is_used, read_index, share_examples
from kg_retrievers.cli.show import announce_compilation, evidence, note, show, single_triples, status, summary
from kg_retrievers.errors import LowConfidenceError, RefusalError
from kg_retrievers.methods.registry import GRAPH_PROMPT, joined_names
from kg_retrievers.serving.loading import SavedModel, build_retriever, choose_methods, load_llm, read_models

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

    import kg_retrievers.chains
    from kg_retrievers.core.retriever import BaseKGRetriever

#: The exit code where there is no evidence.
NO_EVIDENCE = 1


@dataclass(frozen=True)
class _Found:
    """The reply to a question.

    Attributes:
        documents: The evidence, best first.
        answer: The answer from the evidence, if there is one.
        unsupported: The names in the answer that stand in none of the facts; None where no names are known.
        refusal: Why there is no evidence.
        is_tie: Whether the first document that is not shown is equally good.
    """

    documents: list[Document]
    answer: str | None
    unsupported: list[str] | None
    refusal: RefusalError | None
    is_tie: bool

    @property
    def reason(self) -> str | None:
        """Why there is no evidence, and what to do next on the shell."""
        return None if self.refusal is None else self.refusal.on_shell

    @property
    def value(self) -> Any:
        """What an operation gave; None where there was no operation."""
        return self.documents[0].metadata["value"] if self.documents else None

    @property
    def confidence(self) -> float | None:
        """How likely the answers are right, or would have been."""
        if isinstance(self.refusal, LowConfidenceError):
            return self.refusal.confidence
        return self.documents[0].metadata["confidence"] if self.documents else None


@dataclass(frozen=True)
class _Answerers:
    """The ways to answer from evidence: a graph prompt, else a language model, else the retriever itself."""

    prompt: SavedModel | None
    by_prompt: Runnable[Any, list[str]] | None
    llm: BaseChatModel | None


def run(options: argparse.Namespace) -> int:
    """Answer a question from a graph, with the evidence."""
    examples = kg_retrievers.read_questions(options.examples) if options.examples else None
    with status("reading the trained models"):
        models = read_models(options.model)
    prompt = models.pop(GRAPH_PROMPT.name, None)
    of_retrievers = retriever_models(prompt, models, options) if prompt else models
    methods = choose_methods(options.method, of_retrievers)
    check_database_is_used(methods, options)
    with status("loading the language model"):
        llm = load_llm(options.llm)
    index = read_index(options)
    answerers = _Answerers(prompt, make_answerer(prompt, index) if prompt else None, llm)
    given = share_examples(methods, examples) if len(methods) > 1 else {methods[0].name: examples}
    with ExitStack() as at_end:
        database = at_end.enter_context(QueryDatabase(options, index))
        retriever = build_retriever(
            methods,
            index,
            dict(options.field),
            llm=llm,
            examples=given,
            models=of_retrievers,
            executor=lambda: database.executor,
            preset=options.preset,
        )
        k = retriever.k if options.k is None else retriever.check_inputs({"k": options.k})["k"]
        with status("searching"), announce_compilation():
            found = _search(retriever, options, k, answerers)
        explained = explain_found(found.documents, found.refusal, retriever, options, k)
    _show(found, explained, retriever, options)
    if found.is_tie:
        note(f"another reading of the question is equally good: use --k {k + 1}")
    if found.answer is None and found.documents:
        note(_why_no_answer(retriever, joined_names(methods), answerers))
    return 0 if found.documents else NO_EVIDENCE


def _search(retriever: BaseKGRetriever, options: argparse.Namespace, k: int, answerers: _Answerers) -> _Found:
    """Retrieve k Documents, and one more that shows whether another reading of the question is equally good."""
    from kg_retrievers.chains.support import fact_lines, unsupported  # loads numpy, which the help does not need
    from kg_retrievers.core.stages import MAX_K

    given = given_inputs(retriever, options)
    wanted = min(k + int(retriever.proposes_answers), MAX_K)
    try:
        found = retriever.invoke(options.question, k=wanted, on_refusal="raise", **given)
    except RefusalError as refusal:
        return _Found([], None, None, refusal, False)
    documents = found[:k]
    answer, names, reply = _answer(options.question, documents, retriever, answerers)
    missing = unsupported(names, fact_lines(documents), reply, documents)
    return _Found(documents, answer, missing, None, len(found) > k and _is_tie(found[0], found[k]))


def _answer(
    question: str, documents: list[Document], retriever: BaseKGRetriever, answerers: _Answerers
) -> tuple[str | None, list[str], str]:
    """Return the answer of a graph prompt or a language model, or of the best documents; its names; a model's reply."""
    from kg_retrievers.core.results import result_answers  # loads numpy, which the help does not need

    value: Any = {"question": question, "documents": documents}
    if answerers.by_prompt is not None:
        names = answerers.by_prompt.invoke(value)
        return "; ".join(names) or None, names, ""
    if answerers.llm is not None:
        answerer = kg_retrievers.llm_answerer(retriever.answer_prompt, answerers.llm)
        reply = answerer.invoke(value)
        names = retriever.parse_answers(reply)
        return "; ".join(names) or None, names, reply
    if not retriever.proposes_answers:
        return None, [], ""
    extractive = kg_retrievers.ExtractiveAnswerer()
    best = [document for document in documents if document.metadata["score"] == documents[0].metadata["score"]]
    best = [document for document in best if result_answers(document.metadata)] or best[:1]
    answers = [extractive.invoke({"question": question, "documents": [document]}) for document in best]
    names = [name for document in best for name in result_answers(document.metadata)]
    return "\nor ".join(dict.fromkeys(answers)), names, ""


def _is_tie(one: Document, other: Document) -> bool:
    """Whether two Documents are equally good and about different entities of the graph."""
    a, b = one.metadata, other.metadata
    return bool(a["score"] == b["score"] > 0 and a["details"].get("entities") != b["details"].get("entities"))


def _show(found: _Found, explained: Explained, retriever: BaseKGRetriever, options: argparse.Namespace) -> None:
    """Print the answer, the evidence and what explains it, for programs or for people."""
    if options.json:
        print(json.dumps(_reply(found, options.question) | explained.to_dict()), flush=True)
        return
    answer = found.answer
    if found.refusal is not None:
        from kg_retrievers.core.replies import refusal_of  # loads numpy, which the help does not need

        unsure = isinstance(found.refusal, LowConfidenceError)
        said = refusal_of(found.refusal) if unsure else "No evidence found."
        answer = f"{said} {found.reason}"
    parts = [evidence(document) for document in found.documents]
    if found.documents and retriever.granularity == "triple":
        parts = [single_triples(found.documents)]
    show(summary(options.question, answer, found.documents, found.unsupported or ()), *parts, *explained.parts)


def _reply(found: _Found, question: str) -> dict[str, Any]:
    """Return what a program is shown."""
    reply: dict[str, Any] = {
        "question": question,
        "answer": found.answer,
        "value": found.value,
        "supported": None if found.unsupported is None else not found.unsupported,
        "confidence": found.confidence,
        "reason": found.reason,
        "documents": [document.model_dump() for document in found.documents],
    }
    if isinstance(found.refusal, LowConfidenceError):
        reply |= {"unplaced": found.refusal.unplaced, "nearest": found.refusal.nearest}
    return reply


def _why_no_answer(retriever: BaseKGRetriever, methods: str, answerers: _Answerers) -> str:
    if answerers.prompt:
        return f"the model in {answerers.prompt.folder} writes no answer"
    if answerers.llm:
        return "the language model finds no answer in the evidence"
    return f"{methods} finds facts and proposes no answer; --llm answers from them"
