"""Write evidence for language models within a budget of tokens.

Also check that answers stand in the evidence.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired

from langchain_core.documents import Document
from pydantic import Field
from typing_extensions import TypedDict

from kg_retrievers.core.documents import (
    agrees,
    result_value,
    tell_ambiguous_names,
    tell_result,
    tell_results,
    whole_documents,
)
from kg_retrievers.core.replies import without_reasoning
from kg_retrievers.core.stages import check_types
from kg_retrievers.errors import InvalidArgumentError, named_arguments
from kg_retrievers.graph import Triple, verbalize
from kg_retrievers.graph.values import read_value
from kg_retrievers.graph.verbalize import (
    approximate_tokens,
    as_data,
    as_data_lines,
    lone_entities_of,
    words_of_documents,
)
from kg_retrievers.index.names import words_of

#: A mark of facts in a text: "[3]", "[1, 2]", "[2-4]".
MARK = re.compile(r"\s?\[\s?(\d{1,9}(?:\s*[,;–-]\s*\d{1,9})*)\s?\]")

#: "documents": each Document in the words of its retriever. "numbered": each triple on a line, to be cited by number.
EvidenceStyle = Literal["documents", "numbered"]


class AnswerInput(TypedDict):
    """The input of an answerer.

    Attributes:
        question: The question.
        documents: The evidence, best first. Empty if the question was refused.
        reason: Why it was refused: the words that were not understood, and the nearest matches.
        refusal: The answer in that case. `NO_ANSWER` if this is left out.
        note: The names in the question that several entities bear.
        refusals: Why other retrievers of a router, or before a fallback, gave no evidence.
        evidence: The text to show to a model. Without it, an answerer shows all of the documents.
        citable: The triples that this text numbers, the first of them being `[1]`.
        feedback: The fault of the `draft`, if an answer is asked for once more.
        draft: The answer before.
    """

    question: str
    documents: list[Document]
    reason: NotRequired[str]
    refusal: NotRequired[str]
    note: NotRequired[str]
    refusals: NotRequired[str]
    evidence: NotRequired[str]
    citable: NotRequired[list[list[str]]]
    feedback: NotRequired[str]
    draft: NotRequired[object]


class Citation(TypedDict):
    """A cited fact of the evidence that was shown.

    Attributes:
        number: The number under which the fact was shown, from 1.
        triple: Head, relation and tail by entity key, in stored direction.
        text: The fact in words.
        sources: Where the fact is from. Absent if the graph holds no attributes.
        attributes: The sets of its attributes. Absent if the graph holds none.
    """

    number: int
    triple: list[str]
    text: str
    sources: NotRequired[list[str]]
    attributes: NotRequired[list[dict[str, Any]]]


@dataclass(frozen=True)
class ShownEvidence:
    """The text of evidence for a model, and the triples it numbers.

    Args:
        text: The text.
        citable: The triples that the text numbers, one per line, in that order. Empty if it does not number triples.

    Example:
        >>> shown = ShownEvidence("[1] Her -> starring -> Amy Adams", [["Her", "starring", "Amy Adams"]])
        >>> shown.cite([1, 1, 7])
        ([{'number': 1, 'triple': ['Her', 'starring', 'Amy Adams'], 'text': 'Her -> starring -> Amy Adams'}], [7])
        >>> shown.read_marks("As [1, 7] and [8] say.")
        ('As [1] and say.', [1], [7, 8])
    """

    text: str
    citable: list[list[str]]

    def cite(self, numbers: Sequence[int], documents: Sequence[Document] = ()) -> tuple[list[Citation], list[int]]:
        """Return the facts of these numbers, each once, in their order.

        Also return the numbers that were never shown.

        Args:
            numbers: The numbers.
            documents: The evidence, which says where facts are from. Without it, citations have no sources.
        """
        once, lines = list(dict.fromkeys(numbers)), self.text.split("\n")
        shown = [number for number in once if 1 <= number <= len(self.citable)]
        citations = [
            Citation(number=n, triple=list(self.citable[n - 1]), text=lines[n - 1].removeprefix(f"[{n}] "))
            for n in shown
        ]
        sources, attributes = _each_of(documents, "sources"), _each_of(documents, "attributes")
        for citation in citations:
            if (triple := Triple(*citation["triple"])) in sources:
                citation |= {"sources": sources[triple], "attributes": attributes.get(triple, [])}
        return citations, [number for number in once if number not in shown]

    def read_marks(self, text: str) -> tuple[str, list[int], list[int]]:
        """Return a text without marks of facts that were not shown.

        Also return the numbers that it marks, and the numbers that were removed.

        Words in brackets in a name, such as in "Dune [1984]", are no mark. They are put in parentheses, as in evidence.
        """
        marked, strange = list[int](), list[int]()

        def kept(mark: re.Match[str]) -> str:
            numbers = _numbers(mark[1])
            shown = [number for number in numbers if 1 <= number <= len(self.citable)]
            marked.extend(shown)
            if len(shown) == len(numbers):
                return mark[0]
            if (of_name := as_data(mark[0])).strip() in self.text:
                return of_name
            strange.extend(number for number in numbers if number not in shown)
            return f" [{', '.join(map(str, shown))}]" if shown else ""

        return (MARK.sub(kept, text) if self.citable else text), marked, strange


def _each_of(documents: Sequence[Document], name: str) -> dict[Triple, Any]:
    """Return the values of each triple under a name in the metadata of Documents.

    The result is empty if the metadata has none.
    """
    return {
        triple: said
        for document in documents
        for triple, said in zip(_triples(document), document.metadata.get(name, ()), strict=False)
    }


def _numbers(mark: str) -> list[int]:
    """Return the numbers of a mark.

    For a range, these are its ends and, if it is short, the numbers between.
    """
    found: list[int] = []
    for part in re.split(r"[,;]", mark):
        ends = [int(number) for number in re.split(r"[–-]", part)]
        between = range(ends[0], ends[-1] + 1)
        found += between if 0 < len(between) <= 100 else ends
    return list(dict.fromkeys(found))


def evidence_of(input: AnswerInput, style: EvidenceStyle) -> ShownEvidence:
    """Return the evidence of an input as text.

    This is its `evidence`, or else all of its documents.
    """
    text, citable = input.get("evidence"), input.get("citable")
    return show_evidence(input["documents"], style) if text is None else ShownEvidence(text, citable or [])


def with_whole_evidence(input: AnswerInput, who: str) -> AnswerInput:
    """Return the input of an answerer with whole Documents (`whole_documents`)."""
    return {**input, "documents": whole_documents(input["documents"], who)}


class _TokenBudget(TypedDict):
    max_tokens: Annotated[int, Field(ge=1, strict=True)] | None
    count_tokens: Callable[[str], int]


def check_token_budget(max_tokens: object, count_tokens: object, who: str) -> None:
    """Check a budget of tokens and its counter.

    Raises:
        InvalidArgumentError: If the budget is not an integer from 1 or None, or the counter cannot be called.
    """
    check_types(_TokenBudget, {"max_tokens": max_tokens, "count_tokens": count_tokens}, who)


@named_arguments
def show_evidence(
    documents: Sequence[Document],
    style: EvidenceStyle = "documents",
    *,
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] = approximate_tokens,
) -> ShownEvidence:
    """Write evidence as a text for a model.

    Shows each triple whole or not at all. Leaves out from the end the triples that do not fit, and says how many. The
    results of operations are always shown. Says at the end which names of the question several entities bear, unless
    that takes more than half of the budget.

    Args:
        documents: The evidence, best first.
        style: "documents" numbers the Documents and shows them in the words of their retriever. A Document that does
            not fit as a whole is cut to its first triples, in the same style, with the paths that are whole among
            these. "numbered" shows each triple once, numbered from 1, then the results of operations, and entities
            alone.
        max_tokens: The budget. None shows everything.
        count_tokens: Counts the tokens of a text, as the model at hand does.

    Raises:
        InvalidArgumentError: If the style is unknown, a Document cannot be read or numbered, or the budget has no room
            for the first triple.

    Example:
        >>> facts = {"triples": [["Her", "directed_by", "Q1"]], "labels": {"Her": "Her", "Q1": "Spike Jonze"}}
        >>> show_evidence([Document("", metadata=facts)], "numbered").text
        '[1] Her -> directed by -> Spike Jonze'
    """
    documents = whole_documents(documents, "show_evidence")
    for number, one in enumerate(documents, 1):
        if style == "numbered" and not one.metadata["retriever"] and not one.metadata["triples"]:
            raise InvalidArgumentError(
                f"show_evidence: Document {number} has no triples, so that nothing of it can be cited. Leave it out, "
                'or show the documents as they are: answer_chain, llm_answerer, evidence_style="documents".'
            )
    note = tell_ambiguous_names(documents)
    if note and max_tokens is not None:
        room = max_tokens - count_tokens(f"\n\n{note}")
        note, max_tokens = (note, room) if 2 * room > max_tokens else ("", max_tokens)
    if style == "numbered":
        names = "; ".join(lone_names(documents))
        result = "\n\n".join(filter(None, [tell_results(documents), f"Entities: {names}" if names else ""]))
        if result and max_tokens is not None:
            max_tokens = max(max_tokens - count_tokens(f"\n\n{result}"), 1)
        text, citable = _numbered_text(documents, max_tokens, count_tokens)
        text, number = "\n\n".join(filter(None, [text, result])), len(citable) or len(result)
    elif style == "documents":
        text, number = _documents_text(documents, max_tokens, count_tokens)
        citable = []
    else:
        raise InvalidArgumentError(f'show_evidence: style is "documents" or "numbered", but got {style!r}.')
    if documents and not number and max_tokens is not None:
        raise InvalidArgumentError(
            f"show_evidence: max_tokens={max_tokens} has no room for a single fact of the evidence. Allow more."
        )
    return ShownEvidence(f"{text}\n\n{note}" if note else text, citable)


def _numbered_text(
    documents: Sequence[Document], max_tokens: int | None, count_tokens: Callable[[str], int]
) -> tuple[str, list[list[str]]]:
    """Return the text of the triples that fit, and these triples.

    Each triple of the documents comes once, numbered.
    """
    labels = {key: label for document in documents for key, label in document.metadata["labels"].items()}
    triples = list(dict.fromkeys(triple for document in documents for triple in _triples(document)))
    shown = verbalize(
        triples,
        style="numbered",
        label=labels.__getitem__,
        said=words_of_documents(documents),
        max_tokens=max_tokens,
        count_tokens=count_tokens,
    )
    return shown.text, [list(triple) for triple in triples[: shown.shown]]


def lone_names(documents: Sequence[Document]) -> list[str]:
    """Return the labels of the entities that are evidence by themselves."""
    labels = {key: label for document in documents for key, label in document.metadata.get("labels", {}).items()}
    return [as_data(labels.get(key, key)) for key in lone_entities_of(documents)]


def _triples(document: Document) -> list[Triple]:
    return [Triple(*triple) for triple in document.metadata.get("triples", [])]


def _documents_text(
    documents: Sequence[Document], max_tokens: int | None, count_tokens: Callable[[str], int]
) -> tuple[str, int]:
    """Return the text of the triples that fit, and their number."""
    total, result = sum(len(_triples(document)) for document in documents), tell_results(documents[:1])

    def text(shown: int) -> str:
        parts = []
        for number, document in enumerate(documents, 1):
            triples = _triples(document)
            if shown >= len(triples):
                parts.append(f"[{number}]\n{as_data_lines(document.page_content)}")
            elif shown > 0 or (number == 1 and result):
                style, label = document.metadata.get("style", "grouped"), document.metadata["labels"].__getitem__
                paths = (document.metadata.get("details") or {}).get("paths")
                said = words_of_documents([document])
                cut = verbalize(triples[:shown], style=style, label=label, said=said, paths=paths).text
                parts.append("\n".join(filter(None, [f"[{number}]", tell_result(document.metadata), cut])))
            shown -= len(triples)
        if shown < 0:
            parts.append(f"({-shown} more {'fact' if shown == -1 else 'facts'} left out)")
        return "\n\n".join(parts)

    everything = text(total)
    if max_tokens is None or count_tokens(everything) <= max_tokens:
        return everything, max(total, len(documents))
    shown = bisect_right(range(total), max_tokens, key=lambda number: count_tokens(text(number))) - 1
    return (text(shown), max(shown, 1)) if shown > 0 or (shown == 0 and result) else ("", 0)


# What separates the names in a line; a name may hold it, too.
_PARTS = re.compile(r" (?:->|<-) ")


def are_supported(
    answers: Sequence[str], facts: Sequence[str], reply: str = "", documents: Sequence[Document] = ()
) -> bool | None:
    """Tell whether no answer is `unsupported`.

    None if that function returns None.

    Example:
        >>> are_supported(["Jonze"], ["Her -> directed by -> Spike Jonze"]), are_supported(["Jonze"], [])
        (True, False)
    """
    missing = unsupported(answers, facts, reply, documents)
    return None if missing is None else not missing


def unsupported(
    answers: Sequence[str], facts: Sequence[str], reply: str = "", documents: Sequence[Document] = ()
) -> list[str] | None:
    """Return the answers whose names stand in none of some facts.

    None if no names are known.

    A name stands in a fact if its words stand in one name of that fact, in their order. Case, accents, signs and marks
    such as "[1]" do not count. If an operation gave a value, an answer is supported if it says that value, such as "6
    films" for 6, or the name of an entity that the operation chose.

    Args:
        answers: The answers. Without any, no names are known.
        facts: Facts as `triple_lines` writes them.
        reply: The text that the answers were read from. An answer that is all of it and stands in no fact may be a
            sentence, whose names are not known.
        documents: The evidence. The first holds the result of an operation.

    Example:
        >>> unsupported(["spike jonze [1]", "Amy Adams"], ["Her -> directed by -> Spike Jonze"])
        ['Amy Adams']
    """
    if result_value(documents) is not None:
        missing = [answer for answer in answers if not agrees(MARK.sub("", answer), documents[0].metadata)]
        reply = "" if answers and read_value(answers[0]) else reply  # a number is no sentence
    else:
        missing = [answer for answer in answers if not any(_stands_in(answer, fact) for fact in facts)]
    is_whole_reply = len(answers) == 1 and words_of(answers[0]) == words_of(without_reasoning(reply))
    return None if not answers or (missing and is_whole_reply) else missing


def _stands_in(answer: str, fact: str) -> bool:
    name = MARK.sub("", answer)
    words = words_of(name)
    if not words or _PARTS.search(name):
        return name.strip() in fact
    wanted = f" {' '.join(words)} "
    return any(wanted in f" {' '.join(words_of(part))} " for part in _PARTS.split(fact))


def fact_lines(documents: Sequence[Document]) -> list[str]:
    """Return a line for each fact of some Documents.

    Each entity that is evidence by itself has a line, too.
    """
    shown = show_evidence(documents, "numbered")
    numbers = range(1, len(shown.citable) + 1)
    return [*(citation["text"] for citation in shown.cite(numbers)[0]), *lone_names(documents)]
