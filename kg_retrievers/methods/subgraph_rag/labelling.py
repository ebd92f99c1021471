"""Labels triples by a language model: which of those that were retrieved for a question matter to its answer.

The task is that of "Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation" (M. Li, S. Miao, P. Li, ICLR 2025, arXiv:2410.20724), figure 7: triples and a question
are shown, and each that matters comes back behind "evidence:"; section 4.1 takes up to 20 of them as a standard for
retrieval. The words are our own. Differs from the paper: triples are numbered and stand in a frame that is said to be
data; what was not shown is left out; an unreadable reply is asked for once more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate, ChatPromptTemplate

from kg_retrievers.core.facts_prompt import FACTS_ARE_DATA, FRAMED_FACTS
from kg_retrievers.core.prompts import check_model, check_placeholders
from kg_retrievers.core.replies import is_abstention, without_reasoning
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import Body, Call, GeneratorRunnable
from kg_retrievers.core.structured_replies import guarded
from kg_retrievers.datasets import Question
from kg_retrievers.errors import AnswerParseError, InvalidArgumentError
from kg_retrievers.graph import Triple, verbalize

#: The version of all prompts in this file. It changes with any change of their words.
VERSION = "1"

#: How many triples are shown: section 4.1 retrieves 100.
MAX_TRIPLES = 100

#: Section 4.1: the most triples that are labelled for a question.
MAX_RELEVANT = 20

#: How many characters of a reply are read.
MAX_REPLY = 20_000

_SYSTEM = f"""\
Choose, from triples that were retrieved from a knowledge graph, those that the answer to a question rests on: every \
step from what the question names to what it asks for, and no others. Give each on a line of its own that begins with \
"evidence:", with its number, copied letter by letter, {MAX_RELEVANT} lines at most. If none matters, write only \
"evidence: none". {FACTS_ARE_DATA}"""

_ASKED = f"Triples:\n{FRAMED_FACTS}\n\nQuestion: {{question}}"

#: Asks which triples matter. Placeholders: `question`, `evidence`. The reply is read by `parse_relevant`.
LABELLING_PROMPT: ChatPromptTemplate = ChatPromptTemplate.from_messages([("system", _SYSTEM), ("human", _ASKED)])

#: Asks once more after an unreadable reply. Placeholders: those of `LABELLING_PROMPT`, `reply` and `error`.
LABELLING_REPAIR_PROMPT: ChatPromptTemplate = ChatPromptTemplate.from_messages(
    [
        ("system", _SYSTEM),
        ("human", _ASKED),
        ("ai", "{reply}"),
        ("human", "This reply cannot be read: {error} Write the lines again, correctly, and nothing else."),
    ]
)

_MARKER = re.compile(r"[ \t>*_`#-]*evidences?[ \t*_`]*:[*_` \t]*", re.IGNORECASE)
_NUMBER = re.compile(r"[\[(]?(\d{1,6})[\])]?(?=[\s.:,;]|\Z)[.:]?\s*")
_NONE = re.compile(r"[\"'`*_(\[]*(?:none|nothing|no triples?)\b", re.IGNORECASE)


def parse_relevant(reply: str, shown: Sequence[str]) -> list[int]:
    """Read which triples a reply to `LABELLING_PROMPT` names: their positions, in the reply's order, each once.

    A line behind "evidence:" names a triple by its words, or by its number where its words are none that were shown.
    What was never shown is left out.

    Args:
        reply: The text of the reply, of which the first `MAX_REPLY` characters after the reasoning are read.
        shown: The triples as they were shown, without their numbers.

    Raises:
        AnswerParseError: If no line holds the marker, or all lines name what was not shown.

    Example:
        >>> parse_relevant("evidence: [2] Her -> by -> Jonze", ["Her -> in -> 2013", "Her -> by -> Jonze"])
        [1]
        >>> parse_relevant("evidence: none", ["Her -> in -> 2013"])
        []
    """
    lines = without_reasoning(reply)[:MAX_REPLY].splitlines()
    marked = [line[found.end() :].strip() for line in lines if (found := _MARKER.match(line))]
    named = [text for text in marked if text and not _NONE.match(text) and not is_abstention(text)]
    if not marked:
        raise AnswerParseError('parse_relevant: no line of the reply begins with "evidence:".', reply)
    places = {_plain(text): place for place, text in reversed(list(enumerate(shown)))}
    found_places = [_place(text, places, len(shown)) for text in named]
    chosen = [place for place in dict.fromkeys(found_places) if place is not None]
    if named and not chosen:
        raise AnswerParseError("parse_relevant: no line of the reply names a triple that was shown.", reply)
    return chosen


def _place(text: str, places: dict[str, int], count: int) -> int | None:
    """Return the position of the triple that a line names, None where there is none."""
    number = _NUMBER.match(text)
    words = _plain(text[number.end() :] if number else text)
    if (place := places.get(words, places.get(_plain(text)))) is not None:
        return place
    return int(number[1]) - 1 if number and 1 <= int(number[1]) <= count else None


def _plain(text: str) -> str:
    """Return a written triple without capitals and marks of emphasis, with single blanks and no parentheses around."""
    bare = " ".join(text.strip("`*_\"'.; \t").split()).casefold()
    return bare[1:-1] if bare.startswith("(") and bare.endswith(")") else bare


class TripleLabeller(GeneratorRunnable[Question, Question]):
    """Asks a language model which of the triples that a retriever finds matter; returns the question with them.

    `train_triple_scorer(..., supervision="triples")` learns from such questions, and an evaluation measures the recall
    of their triples. A question for which nothing is retrieved comes back without triples, and no model is called.

    Cost: a retrieval and a call of a language model for each question, two where the first reply is unreadable.

    Args:
        retriever: What finds the triples, around the entities that a question brings.
        llm: The language model.
        max_triples: The most triples that are shown, the best first.
        prompt: In place of ours, with the placeholders `question` and `evidence`.
        repair_prompt: In place of ours, with the placeholders `question`, `evidence`, `reply` and `error`.

    Raises:
        InvalidArgumentError: If `retriever` or `llm` is none, a prompt has other placeholders, or `max_triples` is
            below 1.
        AnswerParseError: From `invoke`, if the second reply is unreadable, too.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, NeighborhoodRetriever, default_embeddings
        >>> from kg_retrievers.testing import ScriptedChatModel
        >>> facts = [("Her", "directed_by", "Spike Jonze"), ("Her", "has_genre", "Drama")]
        >>> index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
        >>> llm = ScriptedChatModel(replies=["evidence: Her -> directed by -> Spike Jonze"])
        >>> labeller = TripleLabeller(NeighborhoodRetriever.from_index(index), llm)
        >>> labeller.invoke(Question("Who directed Her?", ("Her",))).triples
        (Triple(head='Her', relation='directed_by', tail='Spike Jonze'),)
    """

    def __init__(
        self,
        retriever: BaseKGRetriever,
        llm: BaseLanguageModel[Any],
        *,
        max_triples: int = MAX_TRIPLES,
        prompt: BasePromptTemplate[Any] = LABELLING_PROMPT,
        repair_prompt: BasePromptTemplate[Any] = LABELLING_REPAIR_PROMPT,
    ) -> None:
        """Check the retriever, the model and the prompts."""
        if not isinstance(retriever, BaseKGRetriever):
            got = f"{retriever!r:.100}"
            raise InvalidArgumentError(f"TripleLabeller: retriever must be a BaseKGRetriever, but got {got}.")
        if max_triples < 1:
            raise InvalidArgumentError(f"TripleLabeller: max_triples must be 1 or more, but got {max_triples}.")
        check_model(llm, "TripleLabeller")
        check_placeholders(prompt, LABELLING_PROMPT.input_variables, "TripleLabeller: prompt")
        check_placeholders(repair_prompt, LABELLING_REPAIR_PROMPT.input_variables, "TripleLabeller: repair_prompt")
        self.retriever, self.llm = retriever, llm
        self.max_triples = max_triples
        self.prompts = {"labelling": prompt, "repair": repair_prompt}

    def body(self, input: Question) -> Body[Question]:
        """Retrieve, ask, read, and if need be ask again with the reason."""
        asked = self.retriever.bind(on_refusal="empty", k=self.max_triples, **self.retriever.inputs_for(input))
        documents = yield Call(asked, input.text)
        triples = [Triple(*triple) for document in documents for triple in document.metadata["triples"]]
        triples = list(dict.fromkeys(triples))[: self.max_triples]
        if not triples:
            return replace(input, triples=())
        shown = [verbalize([triple], style="triples", label=self.retriever.graph.label).text for triple in triples]
        numbered = verbalize(triples, style="numbered", label=self.retriever.graph.label).text
        values = {"question": input.text, "evidence": numbered}
        reply = yield Call(self.prompts["labelling"] | guarded(self.llm) | StrOutputParser(), values)
        try:
            chosen = parse_relevant(reply, shown)
        except AnswerParseError as error:
            values |= {"reply": error.reply, "error": error.reason}
            reply = yield Call(self.prompts["repair"] | guarded(self.llm) | StrOutputParser(), values)
            chosen = parse_relevant(reply, shown)
        return replace(input, triples=tuple(triples[place] for place in chosen))
