"""The prompt for answering from single facts that resemble the question.

The method is that of "Knowledge-Augmented Language Model Prompting for Zero-Shot Knowledge Graph Question Answering"
(Baek et al., NLRSE workshop at ACL 2023, arXiv:2306.04136): the facts, then the question. The words and
the worked examples are our own; unlike the paper's, the prompt lets a model use nothing but the facts.
"""

from __future__ import annotations

from langchain_core.prompts import ChatPromptTemplate

from kg_retrievers.core.facts_prompt import FACTS_ONLY, FRAMED_FACTS

#: The version of all prompts in this file. It changes with any change of their words.
VERSION = "2"

#: Asks for an answer from single facts. Placeholders: `question`, `evidence`.
ANSWER_PROMPT: ChatPromptTemplate = ChatPromptTemplate.from_template(
    f"""\
Below are single facts of a knowledge graph that resemble a question, the most similar first. Each is read from left \
to right: an entity, how it is related, another entity.

Rules
1. {FACTS_ONLY}
2. Similar is not relevant: many of the facts may have nothing to do with the answer. Leave them aside.
3. Copy names and values letter by letter from the facts; do not translate, shorten or correct them.
4. If several facts answer the question, give all answers, separated by semicolons.
5. If the facts do not answer the question, say so instead of guessing.
6. First give the reason in one short sentence, then the answer.

Examples

Facts:
<facts>
[1]
Rusalka -> composer -> Antonín Dvořák

[2]
Rusalka -> librettist -> Jaroslav Kvapil

[3]
Armida -> composer -> Antonín Dvořák
</facts>
Question: Who composed the opera Rusalka?
Reason: The composer of Rusalka is Antonín Dvořák [1].
Answer: Antonín Dvořák

Facts:
<facts>
[1]
Rhine -> mouth country -> Netherlands

[2]
Rhine -> length -> 1,233 km
</facts>
Question: Which cities lie on the Rhine?
Reason: The facts tell the mouth and the length of the Rhine, but no city.
Answer: The facts do not say.

Now the question to answer

Facts:
{FRAMED_FACTS}
Question: {{question}}
Reason:"""
)
