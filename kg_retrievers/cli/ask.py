"""The commands `ask` and `demo`."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

import kg_retrievers
from kg_retrievers.cli import options, sources
from kg_retrievers.cli.options import flag, option
from kg_retrievers.cli.show import evidence, lines_of, note, show, single_triples, status, summary
from kg_retrievers.cli.sources import Source
from kg_retrievers.errors import InvalidArgumentError, LowConfidenceError, RefusalError
from kg_retrievers.serving.loading import build_retriever, is_database, is_uri, load_llm

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.runnables import Runnable

    import kg_retrievers.chains
    from kg_retrievers.core.retriever import BaseKGRetriever
    from kg_retrievers.explanation import Explanation, WhyNot

#: The graph that comes with the package, and questions over it.
SAMPLE = Path(__file__).parents[1] / "sample"

#: The exit code if there is no evidence, or if it proposes no answer since the question is not understood surely.
NO_ANSWER = 1

#: The next step for an unsure question, on the shell.
UNSURE_HINT = "The facts below may hold the answer. Rephrase it, lower --min-confidence, or give --examples or --llm."

#: The text above the explanation of evidence that is refused, and in place of an explanation.
REFUSED = "The question is refused; with --min-confidence 0 this is what is found:"
NOTHING_FOUND = "There is no evidence to explain; the answer says why. --why-not ENTITY says what keeps an entity out."


def ask(
    source: Source,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question, in quotes.")],
    given: options.Given,
    method: options.Method = None,
    k: options.K = None,
    entity: Annotated[list[str], option("NAME", "An entity that the question is about.")] = [],
    min_confidence: Annotated[
        float | None, option("P", "Refuse answers that are less likely right, from 0 to 1.", min=0, max=1)
    ] = None,
    explain: Annotated[bool, flag("--explain", "How the question leads to the evidence.")] = False,
    why_not: Annotated[str | None, option("ENTITY", "What keeps an entity out of the evidence.")] = None,
    field: options.Field = [],
    as_json: options.Json = False,
) -> int:
    """Answer a question from a graph, with the evidence.

    Example: kg-retrievers ask films.csv "Who directed Her?"
    """
    _check_order(source.place, question)
    examples = kg_retrievers.read_questions(given.examples) if given.examples else None
    fields = options.field_values(field, "max_tokens=150", options.TAKEN_FIELDS)
    chosen, model, prompt = sources.load_models(given.model, method)
    sources.check_database(chosen, given.database)
    with status("loading the language model"):
        llm = load_llm(given.llm)
    index = sources.read_index(source, given.database)
    by_prompt = sources.load_answerer(prompt, index) if prompt else None
    with sources.query_database(source, given.database, index) as executor:
        retriever = build_retriever(
            chosen,
            index,
            fields,
            llm=llm,
            examples=examples if chosen.labels else None,
            model=model,
            executor=executor,
            preset=given.preset,
        )
        inputs: dict[str, Any] = {"seed_entities": entity} if entity else {}
        inputs = retriever.check_inputs(inputs | {"k": retriever.k if k is None else k})
        if min_confidence is not None:
            inputs["min_confidence"] = min_confidence
        answerer = by_prompt or (kg_retrievers.llm_answerer(retriever.answer_prompt, llm) if llm else None)
        with status("searching (the first search compiles code, for about ten seconds)"):
            found = _search(question, retriever, inputs)
            answer, unsupported = _answer(found, retriever, answerer)
        explained = _explain(found, retriever, inputs, explain, why_not)
    if as_json:
        _print_json(found, answer, unsupported, explained)
    else:
        parts = [evidence(document) for document in found.documents]
        if found.documents and retriever.granularity == "triple":
            parts = [single_triples(found.documents)]
        said = _refused(found.refusal) if found.refusal else answer
        if answer is None and found.why:
            said = found.why if answerer else f"{found.why} {UNSURE_HINT}"
        show(summary(question, said, found.documents, unsupported or ()))
        show(*parts, *_shown(found, explained, explain))
    if found.is_tie:
        note(f"another reading of the question is equally good: use --k {inputs['k'] + 1}")
    if answer is None and found.documents and (answerer or not found.why):
        if prompt:
            note(f"the model in {prompt.folder} writes no answer")
        elif llm:
            note("the language model finds no answer in the evidence")
        else:
            note(f"{chosen.name} finds facts and proposes no answer; --llm answers from them")
    return NO_ANSWER if not found.documents or (found.why and answer is None) else 0


def _check_order(place: str, question: str) -> None:
    """Check that the graph and the question are not swapped."""
    looks_asked = not is_uri(place) and not Path(place).exists() and (place.rstrip().endswith("?") or " " in place)
    if looks_asked and (Path(question).exists() or is_database(question)):
        raise InvalidArgumentError(
            f"the graph comes first, but got the question {place!r:.200}. Swap them: "
            f"{shlex.join(['kg-retrievers', 'ask', question, place])}"
        )


@dataclass(frozen=True)
class _Found:
    """The evidence for a question.

    Attributes:
        question: The question.
        documents: The evidence, best first.
        refusal: Why there is no evidence.
        is_tie: Whether the first document that is not shown is equally good.
    """

    question: str
    documents: list[Document]
    refusal: RefusalError | None = None
    is_tie: bool = False

    @property
    def why(self) -> str:
        """Why evidence proposes no answer, or empty if it does, or if its method never does."""
        from kg_retrievers.core.documents import why_unsure  # loads numpy, which the help does not need

        return why_unsure(self.documents)


def _search(question: str, retriever: BaseKGRetriever, inputs: dict[str, Any]) -> _Found:
    """Retrieve k Documents, and one more that shows whether another reading of the question is equally good."""
    from kg_retrievers.core.stages import MAX_K  # loads numpy, which the help does not need

    k = inputs["k"]
    wanted = min(k + int(retriever.proposes_answers), MAX_K)
    try:
        found = retriever.invoke(question, on_refusal="raise", **(inputs | {"k": wanted}))
    except RefusalError as refusal:
        return _Found(question, [], refusal)
    is_tie = len(found) > k and _is_tie(found[0].metadata, found[k].metadata)
    return _Found(question, found[:k], None, is_tie)


def _is_tie(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two Documents are equally good and about different entities of the graph."""
    is_equal = one["score"] == other["score"] > 0
    return bool(is_equal and one["details"].get("entities") != other["details"].get("entities"))


def _answer(
    found: _Found, retriever: BaseKGRetriever, answerer: Runnable[Any, Any] | None
) -> tuple[str | None, list[str] | None]:
    """Answer with a graph prompt or a language model, if there is one, else with the proposals of the retriever.

    Returns:
        The answer, and the names in it that no fact holds; None if no names are known.
    """
    # These load numpy, which the help does not need.
    from kg_retrievers.chains.evidence import fact_lines, unsupported
    from kg_retrievers.core.documents import best_answers

    answer: str | None = None
    names: list[str] = []
    documents, reply = found.documents, ""
    if answerer is not None and documents:
        said = answerer.invoke({"question": found.question, "documents": documents})
        names, reply = (retriever.parse_answers(said), said) if isinstance(said, str) else (said, "")
        answer = "; ".join(names) or None
    elif retriever.proposes_answers and documents and not found.why:
        answer = kg_retrievers.ExtractiveAnswerer().invoke({"question": found.question, "documents": documents})
        names = best_answers(documents)
    return answer, unsupported(names, fact_lines(documents), reply, documents)


def _explain(
    found: _Found, retriever: BaseKGRetriever, inputs: dict[str, Any], is_explained: bool, entity: str | None
) -> dict[str, Explanation | WhyNot]:
    """Return the explanations that the options ask for: of the best Document, and of an entity that is not found."""
    explained: dict[str, Explanation | WhyNot] = {}
    documents = found.documents if is_explained else []
    if is_explained and isinstance(found.refusal, LowConfidenceError):
        anyway = {"min_confidence": 0.0, "on_refusal": "empty"}
        calls_model = any(stage.calls_model for stage in retriever.stages)
        documents = [] if calls_model else retriever.invoke(found.question, **(inputs | anyway))
    if documents:
        explained["explanation"] = kg_retrievers.explain(documents[0], retriever)
    if entity is not None:
        explained["why_not"] = kg_retrievers.why_not(retriever, found.question, entity, **inputs)
    return explained


def _refused(refusal: RefusalError) -> str:
    from kg_retrievers.core.replies import refusal_of  # loads numpy, which the help does not need

    is_unsure = isinstance(refusal, LowConfidenceError)
    return f"{refusal_of(refusal) if is_unsure else 'No evidence found.'} {refusal.on_shell}"


def _shown(found: _Found, explained: dict[str, Any], is_explained: bool) -> list[Text]:
    """Lay out the explanations for people."""
    texts: dict[str, str] = {}
    if "explanation" in explained:
        remark = "" if found.documents else f"{REFUSED}\n"
        texts["Explanation"] = remark + explained["explanation"].text
    elif is_explained:
        texts["Explanation"] = NOTHING_FOUND
    if "why_not" in explained:
        texts["Why not"] = explained["why_not"].shell_text
    return [Text.assemble((f"\n{title}\n", "bold"), lines_of(text)) for title, text in texts.items()]


def _print_json(found: _Found, answer: str | None, unsupported: list[str] | None, explained: dict[str, Any]) -> None:
    """Print one JSON object for programs."""
    first = found.documents[0].metadata if found.documents else {"value": None, "confidence": None}
    reply: dict[str, Any] = {
        "question": found.question,
        "answer": answer,
        "value": first["value"],
        "supported": None if unsupported is None else not unsupported,
        "confidence": first["confidence"],
        "reason": found.refusal.on_shell if found.refusal else found.why or None,
        "documents": [document.model_dump() for document in found.documents],
    }
    if isinstance(found.refusal, LowConfidenceError):
        reply["confidence"] = found.refusal.confidence
        reply |= {"unplaced": found.refusal.unplaced, "nearest": found.refusal.nearest}
    print(json.dumps(reply | {name: one.to_dict() for name, one in explained.items()}), flush=True)


def demo() -> int:
    """Ask the sample graph a few questions. No download, no API key.

    Example: kg-retrievers demo
    """
    graph, examples = str(SAMPLE / "graph.jsonl"), str(SAMPLE / "questions.jsonl")
    show(
        "A small graph of films comes with the package. A question becomes a small pattern, and what fits it in the "
        "graph is the answer. Nothing is downloaded, no API key is used."
    )
    for question, uses_examples in (
        ("Which films did Christopher Nolan direct?", False),
        ("Which science fiction films star Amy Adams?", False),
        ("Who directed Dune?", False),
        ("What kind of film is Inception?", True),
        ("Who wrote other films by the director of Barbie?", True),
    ):
        command = ["ask", graph, question, *(["--examples", examples] if uses_examples else [])]
        show(Text(f"\n$ kg-retrievers {shlex.join(command)}\n", style="bold"))
        ask(Source(graph, options.Reading()), question, options.Given(examples=examples if uses_examples else None))
    show(
        "\nNow your own graph, a FILE with a triple a line: .csv, .tsv, head|relation|tail or .jsonl",
        "\n  kg-retrievers info FILE",
        "  kg-retrievers ask FILE 'Who ...?'",
        "  kg-retrievers ask FILE 'Who ...?' --llm openai:gpt-4.1-mini",
    )
    return 0
