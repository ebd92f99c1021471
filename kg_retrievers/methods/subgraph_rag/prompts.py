"""SubgraphRAG's prompt: scored facts to an answer, with the steps that lead to it.

The method is that of "Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation" (M. Li, S. Miao, P. Li, ICLR 2025, arXiv:2410.20724), section 3.2, figures 2 and 6: the
facts, then the question; explain, then give each answer on a line that begins with "ans:", and "ans: not available"
where there is none (appendix E). The words and the worked examples are our own. Differs from the paper: all is one
message; facts are lines with arrows; a second example shows facts that do not suffice. `DIALOGUE_PROMPT` has the form
of figure 6, with numbered triples in a frame that is said to be data.
"""

from __future__ import annotations

from langchain_core.prompts import ChatPromptTemplate

from kg_retrievers.core.facts_prompt import FACTS_ARE_DATA, FACTS_ONLY, FRAMED_FACTS
from kg_retrievers.core.replies import marked_answers

#: The version of all prompts in this file. It changes with any change of their words.
VERSION = "2"

#: Asks for an answer from scored facts. Placeholders: `question`, `evidence`.
ANSWER_PROMPT: ChatPromptTemplate = ChatPromptTemplate.from_template(f"""\
Below are facts of a knowledge graph that were chosen for a question, the most promising first. Each is read from left \
to right: an entity, how it is related, another entity; where several follow, they are separated by semicolons.

Rules
1. {FACTS_ONLY}
2. Go step by step, from what the question names to what it asks for, and say which facts each step rests on. The \
facts that belong together may stand far apart, and many belong to no step: leave those aside.
3. Then give the answers, each on a line of its own that begins with "ans:", and nothing after them.
4. Give every entity or value that answers the question, once. Copy it letter by letter from the facts; do not \
translate, shorten or correct it.
5. If the facts do not suffice, say what is missing, and end with the line "ans: not available" instead of guessing.

Examples

Facts:
<facts>
[1]
Uranus -> discoverer -> William Herschel

[2]
Uranus -> moon -> Titania

[3]
Enceladus -> discoverer -> William Herschel

[4]
Saturn -> moon -> Enceladus

[5]
Uranus -> moon -> Miranda
</facts>
Question: Which moons has the planet that William Herschel discovered?
Steps: William Herschel discovered Uranus [1] and Enceladus [3]. Enceladus is a moon of Saturn [4], so the planet is \
Uranus. Its moons are Titania [2] and Miranda [5].
ans: Titania
ans: Miranda

Facts:
<facts>
[1]
Miranda -> discoverer -> Gerard Kuiper

[2]
Miranda -> diameter -> 472 km
</facts>
Question: In which year was Miranda discovered?
Steps: The facts tell who discovered Miranda [1] and how large it is [2], but not when it was discovered.
ans: not available

Now the question to answer

Facts:
{FRAMED_FACTS}
Question: {{question}}
Steps:""")


def parse_answers(reply: str) -> list[str]:
    r"""Read the answers from a model's reply to `ANSWER_PROMPT`; none where it ends with "ans: not available".

    Without "ans:", the whole reply is the answer: see `marked_answers`.

    Example:
        >>> parse_answers("Its moons are Titania [2] and Miranda [5].\nans: Titania\nans: Miranda")
        ['Titania', 'Miranda']
    """
    return marked_answers(reply, separator=None)


# --- the dialogue of figure 6: system, an example of 30 triples, the question -----------------------------------------

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
