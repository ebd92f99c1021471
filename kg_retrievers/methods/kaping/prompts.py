"""The prompt for answering from single facts that resemble the question.

The method is described in "Knowledge-Augmented Language Model Prompting for Zero-Shot Knowledge Graph Question
Answering" (Baek et al., NLRSE workshop at ACL 2023, arXiv:2306.04136): the facts, then the question. The words and the
worked examples are our own. Unlike the paper's prompt, ours lets a model use nothing but the facts.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from langchain_core.prompts import ChatPromptTemplate

#: The version of all prompts of the method, in `prompts.toml`. It changes with any change of their words.
VERSION = "2"

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

#: Asks for an answer from single facts. Placeholders: `question`, `evidence`.
ANSWER_PROMPT: ChatPromptTemplate = ChatPromptTemplate.from_template(_TEXTS["answer"])
