"""Worked examples of a user's own in the prompts that ask for answers or verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, get_type_hints

from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate

from kg_retrievers.chains.evidence import show_evidence
from kg_retrievers.chains.prompts import CLOSED_VERIFICATION_PROMPT
from kg_retrievers.core.facts_prompt import FRAMED_FACTS
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import Question, check_questions
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.verbalize import as_data, lone_entities_of
from kg_retrievers.index import PartRequest

#: SimGRAG, appendix C.1: 12 worked examples; table 3 compares 4, 8 and 12.
SHOTS = 12


def with_answer_shots(
    retriever: BaseKGRetriever, examples: Sequence[Question], *, shots: int = SHOTS
) -> BasePromptTemplate[Any]:
    """Return the answer prompt of a retriever with examples of a user's in place of ours (SimGRAG, table 12).

    Each shows the evidence that the retriever finds, where the example has a pattern by that pattern, which Documents
    name a gold answer, and the gold answers. Examples without evidence are passed over.

    Args:
        retriever: Its `answer_prompt` has a place for `shots`, as that of SimGRAG.
        examples: Questions with answers.
        shots: The most examples, 1 or more; the first ones are taken.

    Raises:
        InvalidArgumentError: If the prompt has no such place, no example has evidence, or an argument is wrong.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
        >>> retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> prompt = with_answer_shots(retriever, [Question("Who directed Her?", answers=("Spike Jonze",))])
        >>> print(prompt.partial_variables["shots"])
        Question: Who directed Her?
        Evidence:
        <facts>
        [1]
        Her -> directed by -> Spike Jonze
        </facts>
        Reason: So says [1].
        Answer: Spike Jonze
    """

    def shown(example: Question, documents: list[Document]) -> str:
        facts = FRAMED_FACTS.format(evidence=show_evidence(documents).text)
        reply = _answer(retriever, example, documents)
        return f"Question: {as_data(example.text)}\nEvidence:\n{facts}\n{reply}"

    texts = (shown(*pair) for pair in _with_evidence(retriever, examples, "with_answer_shots"))
    return _filled(retriever.answer_prompt, list(islice(texts, _checked(shots))), "with_answer_shots")


def with_verdict_shots(
    retriever: BaseKGRetriever,
    claims: Sequence[Question],
    *,
    shots: int = SHOTS,
    prompt: BasePromptTemplate[Any] = CLOSED_VERIFICATION_PROMPT,
) -> BasePromptTemplate[Any]:
    """Return a prompt for verdicts with claims of a user's in place of our examples (SimGRAG, table 13).

    Args:
        retriever: Finds the evidence, as for `with_answer_shots`.
        claims: Claims, whose `value` is whether they hold.
        shots: The most claims, 1 or more; the first ones are taken.
        prompt: Has a place for `shots`; that of the paper's rule by default.

    Raises:
        InvalidArgumentError: If a claim has no truth value, or as for `with_answer_shots`.
    """
    who = "with_verdict_shots"
    if lacking := [claim for claim in claims if isinstance(claim, Question) and not isinstance(claim.value, bool)]:
        raise InvalidArgumentError(f"{who}: the claim {lacking[0].text!r:.100} has no value, True or False.")

    def shown(claim: Question, documents: list[Document]) -> str:
        evidence = show_evidence(documents, "numbered")
        facts = FRAMED_FACTS.format(evidence=evidence.text)
        verdict = _verdict(claim, len(evidence.citable))
        return f"Claim: {as_data(claim.text)}\nFacts:\n{facts}\nJSON: {verdict}"

    texts = (shown(*pair) for pair in _with_evidence(retriever, claims, who))
    return _filled(prompt, list(islice(texts, _checked(shots))), who)


def _with_evidence(
    retriever: BaseKGRetriever, examples: Sequence[Question], who: str
) -> Iterator[tuple[Question, list[Document]]]:
    """Yield the examples for which the retriever finds something, with what it finds."""
    check_questions(examples, who)
    takes_pattern = "pattern" in get_type_hints(retriever.state_class)
    for example in examples:
        given = retriever.inputs_for(example)
        if takes_pattern and example.pattern is not None:
            given["pattern"] = example.pattern
        if documents := retriever.invoke(example.text, on_refusal="empty", **given):
            yield example, documents


def _answer(retriever: BaseKGRetriever, example: Question, documents: Sequence[Document]) -> str:
    gold = {*example.answers}
    naming = [f"[{n}]" for n, one in enumerate(documents, 1) if gold & _entities(one)]
    if not naming:
        return "Reason: No piece of evidence says it.\nAnswer: The evidence does not say."
    keys = tuple(example.answers)
    graph = retriever.index.part(PartRequest(keys)).graph
    labels = [as_data(graph.label(key)) for key in keys]
    says = f"says {naming[0]}" if len(naming) == 1 else f"say {', '.join(naming[:-1])} and {naming[-1]}"
    return f"Reason: So {says}.\nAnswer: {'; '.join(labels)}"


def _entities(document: Document) -> set[str]:
    ends = {key for head, _, tail in document.metadata["triples"] for key in (head, tail)}
    return ends | set(lone_entities_of(document))


def _verdict(claim: Question, facts: int) -> str:
    reply: dict[str, Any] = {"explanation": "The facts do not say all of it.", "verdict": "refuted", "citations": []}
    if claim.value:
        numbers = list(range(1, facts + 1))
        reply = {"explanation": "The facts say all of it.", "verdict": "supported", "citations": numbers}
    return json.dumps(reply)


def _checked(shots: int) -> int:
    if type(shots) is not int or shots < 1:
        raise InvalidArgumentError(f"worked examples: shots must be an integer from 1, but got {shots!r:.100}.")
    return shots


def _filled(prompt: BasePromptTemplate[Any], texts: Sequence[str], who: str) -> BasePromptTemplate[Any]:
    if "shots" not in {*prompt.partial_variables, *prompt.input_variables}:
        raise InvalidArgumentError(f"{who}: the prompt has no place for examples. Write {{shots}} where they belong.")
    if not texts:
        raise InvalidArgumentError(f"{who}: the retriever finds evidence for no example. Give others.")
    return prompt.partial(shots="\n\n".join(texts))
