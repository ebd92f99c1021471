"""The command `ask`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

import kg_retrievers
from kg_retrievers.cli.database import QueryDatabase
from kg_retrievers.cli.graph_prompt import make_answerer, read_asked_models
from kg_retrievers.cli.load import (
    AND,
    asked_method,
    build_retriever,
    check_database_is_used,
    make_llm,
    read_index,
    share_examples,
)
from kg_retrievers.cli.show import compilation_told, evidence, remark, show, single_triples, summary, working
from kg_retrievers.errors import EntityLinkingError

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

    from kg_retrievers.core.retriever import BaseKGRetriever

#: The exit code where there is no evidence.
NO_EVIDENCE = 1


def run(options: argparse.Namespace) -> int:
    """Answer a question from a graph, with the evidence."""
    question = options.question
    examples = kg_retrievers.read_questions(options.examples) if options.examples else None
    models, prompt = read_asked_models(options)
    method = asked_method(options.method, models)
    check_database_is_used(method, options)
    llm = make_llm(options.llm)
    index = read_index(options)
    by_prompt = make_answerer(prompt, index) if prompt else None
    seeds = kg_retrievers.EntityLinker(index).resolve(options.seed)
    given = share_examples(method, examples, llm) if AND in method else {method: examples}
    fields = dict(options.field)
    with QueryDatabase(options, index.graph) as database:
        retriever = build_retriever(method, index, fields, llm=llm, examples=given, models=models, database=database)
        k = retriever.k if options.k is None else options.k
        one_more = int(retriever.proposes_answers)  # to see whether another reading is equally good
        found: list[Document] = []
        reason = "Nothing in the graph fits."
        with working("searching"), compilation_told():
            try:
                found = retriever.invoke(question, k=k + one_more, seed_entities=seeds)
            except EntityLinkingError as error:
                reason = str(error)
            documents = found[:k]
            answer = _answer(question, documents, retriever, llm, by_prompt) if documents else None
    if options.json:
        reply = {"question": question, "answer": answer, "reason": None if documents else reason}
        print(json.dumps(reply | {"documents": [document.model_dump() for document in documents]}), flush=True)
    else:
        shown = answer if documents else f"No evidence found. {reason}"
        one_by_one = documents and retriever.granularity == "triple"
        parts = [single_triples(documents)] if one_by_one else map(evidence, documents)
        show(summary(question, shown, documents), *parts)
    if len(found) > k and _is_tie(*found[-2:]):
        remark(f"another reading of the question is equally good: use --k {k + 1}")
    if documents and answer is None and prompt:
        remark(f"the model in {prompt.folder} writes no answer")
    elif documents and answer is None:
        remark(f"{method} finds facts and proposes no answer; --llm answers from them")
    return 0 if documents else NO_EVIDENCE


def _answer(
    question: str,
    documents: list[Document],
    retriever: BaseKGRetriever,
    llm: BaseChatModel | None,
    by_prompt: Runnable[Any, list[str]] | None,
) -> str | None:
    """Return the answer of a graph prompt or a language model, or what the best documents propose, each but once."""
    if by_prompt is not None:
        return "; ".join(by_prompt.invoke({"question": question, "documents": documents})) or None
    if llm is not None:
        by_llm = kg_retrievers.llm_answerer(retriever.answer_prompt, llm)
        return by_llm.invoke({"question": question, "documents": documents})
    if not retriever.proposes_answers:
        return None
    extractive = kg_retrievers.ExtractiveAnswerer()
    best = [document for document in documents if document.metadata["score"] == documents[0].metadata["score"]]
    best = [document for document in best if document.metadata["answers"]] or best[:1]
    answers = [extractive.invoke({"question": question, "documents": [document]}) for document in best]
    return "\nor ".join(dict.fromkeys(answers))


def _is_tie(one: Document, other: Document) -> bool:
    """Whether two documents are equally good and about different entities of the graph."""
    a, b = one.metadata, other.metadata
    return bool(a["score"] == b["score"] > 0 and a["details"].get("entities") != b["details"].get("entities"))
