"""The command `ask`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

import kg_retrievers
from kg_retrievers.cli.options import (
    TAKEN_FIELDS,
    Connection,
    Embeddings,
    Field,
    Given,
    Graph,
    Json,
    K,
    Method,
    Reading,
    field_values,
    flag,
    option,
)
from kg_retrievers.cli.show import announce_compilation, evidence, lines_of, note, show, single_triples, status, summary
from kg_retrievers.cli.sources import (
    Source,
    check_database,
    load_answerer,
    load_models,
    query_database,
    read_index,
    share_examples,
)
from kg_retrievers.errors import LowConfidenceError, RefusalError
from kg_retrievers.methods.registry import joined_names
from kg_retrievers.serving.loading import build_retriever, load_llm

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

    import kg_retrievers.chains
    from kg_retrievers.core.retriever import BaseKGRetriever
    from kg_retrievers.explanation import Explanation, WhyNot

#: The exit code if there is no evidence.
NO_EVIDENCE = 1

#: The text above the explanation of evidence that is refused, and in place of an explanation.
REFUSED = "The question is refused; with --min-confidence 0 this is what is found:"
NOTHING_FOUND = "There is no evidence to explain; the answer says why. --why-not ENTITY says what keeps an entity out."


def ask(
    graph: Graph,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question, in quotes.")],
    given: Given,
    reading: Reading,
    connection: Connection,
    embeddings: Embeddings = None,
    method: Method = None,
    k: K = None,
    entity: Annotated[list[str], option("NAME", "An entity that the question is about.")] = [],
    min_confidence: Annotated[
        float | None, option("P", "Refuse answers that are less likely right, from 0 to 1.", min=0, max=1)
    ] = None,
    explain: Annotated[bool, flag("--explain", "How the question leads to the evidence.")] = False,
    why_not: Annotated[str | None, option("ENTITY", "What keeps an entity out of the evidence.")] = None,
    field: Field = [],
    as_json: Json = False,
) -> int:
    """Answer a question from a graph, with the evidence.

    Example: kg-retrievers ask films.csv "Who directed Her?"
    """
    examples = kg_retrievers.read_questions(given.examples) if given.examples else None
    fields = field_values(field, "max_distance=0.5", TAKEN_FIELDS)
    methods, models, prompt = load_models(given.model, method)
    check_database(methods, given.database)
    with status("loading the language model"):
        llm = load_llm(given.llm)
    source = Source(graph, reading, embeddings, connection)
    index = read_index(source, given.database)
    by_prompt = load_answerer(prompt, index) if prompt else None
    with query_database(source, given.database, index) as executor:
        retriever = build_retriever(
            methods,
            index,
            fields,
            llm=llm,
            examples=share_examples(methods, examples),
            models=models,
            executor=executor,
            preset=given.preset,
        )
        inputs: dict[str, Any] = {"seed_entities": entity} if entity else {}
        inputs = retriever.check_inputs(inputs | {"k": retriever.k if k is None else k})
        if min_confidence is not None:
            inputs["min_confidence"] = min_confidence
        asked = _Asked(question, retriever, llm, by_prompt, inputs)
        with status("searching"), announce_compilation():
            found = asked.search()
        found = asked.explain(found, explain, why_not)
    if as_json:
        _print_json(asked, found)
    else:
        _show(asked, found)
    if found.is_tie:
        note(f"another reading of the question is equally good: use --k {asked.k + 1}")
    if found.answer is None and found.documents:
        if prompt:
            note(f"the model in {prompt.folder} writes no answer")
        elif llm:
            note("the language model finds no answer in the evidence")
        else:
            note(f"{joined_names(methods)} finds facts and proposes no answer; --llm answers from them")
    return 0 if found.documents else NO_EVIDENCE


@dataclass(frozen=True)
class _Found:
    """The reply to a question.

    Attributes:
        documents: The evidence, best first.
        answer: The answer from the evidence, if there is one.
        unsupported: The names in the answer that no fact holds; None if no names are known.
        refusal: Why there is no evidence.
        is_tie: Whether the first document that is not shown is equally good.
        explanation: How the question leads to the best evidence, if it is asked for.
        why_not: What keeps an entity out, if it is asked for.
        remark: The text above the explanation, or in place of one.
    """

    documents: list[Document]
    answer: str | None = None
    unsupported: list[str] | None = None
    refusal: RefusalError | None = None
    is_tie: bool = False
    explanation: Explanation | None = None
    why_not: WhyNot | None = None
    remark: str = ""

    @property
    def confidence(self) -> float | None:
        """How likely the answers are right, or would have been."""
        if isinstance(self.refusal, LowConfidenceError):
            return self.refusal.confidence
        return self.documents[0].metadata["confidence"] if self.documents else None


@dataclass(frozen=True)
class _Asked:
    """A question, and what answers it: a graph prompt, else a language model, else the retriever itself."""

    question: str
    retriever: BaseKGRetriever
    llm: BaseChatModel | None
    by_prompt: Runnable[Any, list[str]] | None
    inputs: dict[str, Any]

    @property
    def k(self) -> int:
        """How many Documents are wanted."""
        return int(self.inputs["k"])

    def search(self) -> _Found:
        """Retrieve k Documents, and one more that shows whether another reading of the question is equally good."""
        from kg_retrievers.chains.evidence import fact_lines, unsupported  # loads numpy, which the help does not need
        from kg_retrievers.core.stages import MAX_K

        wanted = min(self.k + int(self.retriever.proposes_answers), MAX_K)
        try:
            found = self.retriever.invoke(self.question, on_refusal="raise", **(self.inputs | {"k": wanted}))
        except RefusalError as refusal:
            return _Found([], refusal=refusal)
        documents = found[: self.k]
        answer, names, reply = self._answer(documents)
        missing = unsupported(names, fact_lines(documents), reply, documents)
        return _Found(documents, answer, missing, None, len(found) > self.k and _is_tie(found[0], found[self.k]))

    def _answer(self, documents: list[Document]) -> tuple[str | None, list[str], str]:
        """Return the answer, its names, and the reply of a language model."""
        from kg_retrievers.core.documents import result_answers  # loads numpy, which the help does not need

        retriever = self.retriever
        value: Any = {"question": self.question, "documents": documents}
        if self.by_prompt is not None:
            names = self.by_prompt.invoke(value)
            return "; ".join(names) or None, names, ""
        if self.llm is not None:
            answerer = kg_retrievers.llm_answerer(retriever.answer_prompt, self.llm)
            reply = answerer.invoke(value)
            names = retriever.parse_answers(reply)
            return "; ".join(names) or None, names, reply
        if not retriever.proposes_answers:
            return None, [], ""
        extractive = kg_retrievers.ExtractiveAnswerer()
        best = [document for document in documents if document.metadata["score"] == documents[0].metadata["score"]]
        best = [document for document in best if result_answers(document.metadata)] or best[:1]
        answers = [extractive.invoke({"question": self.question, "documents": [document]}) for document in best]
        names = [name for document in best for name in result_answers(document.metadata)]
        return "\nor ".join(dict.fromkeys(answers)), names, ""

    def explain(self, found: _Found, explained: bool, entity: str | None) -> _Found:
        """Add the explanations of the best Document, and of an entity that is not found, as the options ask for."""
        if explained:
            documents = found.documents or self._refused_documents(found.refusal)
            if not found.documents:
                found = replace(found, remark=REFUSED if documents else NOTHING_FOUND)
            if documents:
                found = replace(found, explanation=kg_retrievers.explain(documents[0], self.retriever))
        if entity is None:
            return found
        return replace(found, why_not=kg_retrievers.why_not(self.retriever, self.question, entity, **self.inputs))

    def _refused_documents(self, refusal: RefusalError | None) -> list[Document]:
        """Return what is found for a question that is not understood surely enough, without a language model."""
        if not isinstance(refusal, LowConfidenceError) or any(stage.calls_model for stage in self.retriever.stages):
            return []
        anyway = {"min_confidence": 0.0, "on_refusal": "empty"}
        return self.retriever.invoke(self.question, **(self.inputs | anyway))


def _is_tie(one: Document, other: Document) -> bool:
    """Whether two Documents are equally good and about different entities of the graph."""
    a, b = one.metadata, other.metadata
    return bool(a["score"] == b["score"] > 0 and a["details"].get("entities") != b["details"].get("entities"))


def _show(asked: _Asked, found: _Found) -> None:
    """Print the answer, the evidence and the explanations for people."""
    answer = found.answer
    if found.refusal is not None:
        from kg_retrievers.core.replies import refusal_of  # loads numpy, which the help does not need

        unsure = isinstance(found.refusal, LowConfidenceError)
        answer = f"{refusal_of(found.refusal) if unsure else 'No evidence found.'} {found.refusal.on_shell}"
    parts = [evidence(document) for document in found.documents]
    if found.documents and asked.retriever.granularity == "triple":
        parts = [single_triples(found.documents)]
    texts = {
        "Explanation": "\n".join(filter(None, [found.remark, found.explanation.text if found.explanation else ""])),
        "Why not": found.why_not and found.why_not.shell_text,
    }
    explained = [Text.assemble((f"\n{title}\n", "bold"), lines_of(text)) for title, text in texts.items() if text]
    show(summary(asked.question, answer, found.documents, found.unsupported or ()), *parts, *explained)


def _print_json(asked: _Asked, found: _Found) -> None:
    """Print one JSON object for programs."""
    reply: dict[str, Any] = {
        "question": asked.question,
        "answer": found.answer,
        "value": found.documents[0].metadata["value"] if found.documents else None,
        "supported": None if found.unsupported is None else not found.unsupported,
        "confidence": found.confidence,
        "reason": None if found.refusal is None else found.refusal.on_shell,
        "documents": [document.model_dump() for document in found.documents],
    }
    if isinstance(found.refusal, LowConfidenceError):
        reply |= {"unplaced": found.refusal.unplaced, "nearest": found.refusal.nearest}
    explained = {"explanation": found.explanation, "why_not": found.why_not}
    reply |= {name: one.to_dict() for name, one in explained.items() if one is not None}
    print(json.dumps(reply), flush=True)
