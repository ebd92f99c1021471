"""SubgraphRAG's prompt as a dialogue: an example of 30 triples that was answered before, then the question.

The form is that of "Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation" (M. Li, S. Miao, P. Li, ICLR 2025, arXiv:2410.20724), figure 6: a system message, one
example as messages of user and assistant, then the triples and the question; the reply explains, then gives each answer
behind "ans:". The words and the example are our own. Differs from the paper: triples are numbered, with arrows instead
of parentheses, and stand in a frame that is said to be data.
"""

from __future__ import annotations

from langchain_core.prompts import ChatPromptTemplate

from kg_retrievers.core.facts_prompt import FACTS_ARE_DATA, FRAMED_FACTS

#: The version of all prompts in this file. It changes with any change of their words.
VERSION = "1"

#: The triples of the example, as a retriever orders them: those that matter stand among others.
EXAMPLE_FACTS = (
    "Rusalka -> composer -> Antonín Dvořák",
    "Antonín Dvořák -> place of birth -> Nelahozeves",
    "Nelahozeves -> country -> Czech Republic",
    "Antonín Dvořák -> place of death -> Prague",
    "Czech Republic -> shares border with -> Germany",
    "Prague -> country -> Czech Republic",
    "Czech Republic -> shares border with -> Poland",
    "Rusalka -> librettist -> Jaroslav Kvapil",
    "Jaroslav Kvapil -> place of birth -> Chudenice",
    "Czech Republic -> shares border with -> Slovakia",
    "Czech Republic -> capital -> Prague",
    "Slovakia -> shares border with -> Czech Republic",
    "Germany -> shares border with -> Czech Republic",
    "Czech Republic -> shares border with -> Austria",
    "Rusalka -> language -> Czech",
    "Rusalka -> place of first performance -> Prague",
    "Antonín Dvořák -> occupation -> composer",
    "Czech Republic -> official language -> Czech",
    "Germany -> shares border with -> France",
    "Slovakia -> shares border with -> Hungary",
    "Antonín Dvořák -> notable work -> Slavonic Dances",
    "Chudenice -> country -> Czech Republic",
    "Poland -> capital -> Warsaw",
    "Austria -> capital -> Vienna",
    "Rusalka -> genre -> opera",
    "Antonín Dvořák -> student -> Josef Suk",
    "Jaroslav Kvapil -> occupation -> poet",
    "Nelahozeves -> river -> Vltava",
    "Austria -> shares border with -> Hungary",
    "Prague -> river -> Vltava",
)

_EXAMPLE_QUESTION = "Which countries border on the country where the composer of Rusalka was born?"

_EXAMPLE_REPLY = """\
Rusalka was composed by Antonín Dvořák [1]. He was born in Nelahozeves [2], which lies in the Czech Republic [3]. The \
Czech Republic borders on Germany [5], Poland [7], Slovakia [10] and Austria [14].
ans: Germany
ans: Poland
ans: Slovakia
ans: Austria"""

_SYSTEM = f"""\
Answer a question from triples that were retrieved from a knowledge graph, and from nothing else. First explain which \
triples lead to the answer, step by step. Then give every answer on a line of its own that begins with "ans:", copied \
letter by letter. If the triples do not suffice, say what is missing, and end with the line "ans: not available". \
{FACTS_ARE_DATA}"""

_ASKED = f"Triples:\n{FRAMED_FACTS}\n\nQuestion: {{question}}"


def _example() -> str:
    facts = "\n\n".join(f"[{number}]\n{fact}" for number, fact in enumerate(EXAMPLE_FACTS, 1))
    return _ASKED.format(evidence=facts, question=_EXAMPLE_QUESTION)


#: Asks for an answer from scored triples. Placeholders: `question`, `evidence`. The reply is read by `parse_answers`.
DIALOGUE_PROMPT: ChatPromptTemplate = ChatPromptTemplate.from_messages(
    [("system", _SYSTEM), ("human", _example()), ("ai", _EXAMPLE_REPLY), ("human", _ASKED)]
)
