"""The prompt that chooses a retrieval method for a question."""

from __future__ import annotations

from typing import Annotated

from langchain_core.prompts import ChatPromptTemplate
from pydantic import BaseModel, BeforeValidator

#: The version of the prompt. It changes with any change of its words.
VERSION = "2"

#: Asks for the method that suits a question. Placeholders: `question`, `methods`, and `replies`, one a line.
ROUTING_PROMPT: ChatPromptTemplate = ChatPromptTemplate.from_messages(
    [
        (
            "human",
            """Choose the method that is most likely to find, in a knowledge graph, the facts that answer a question.

The methods, each with what it does:
{methods}

Question: {question}

Reply with one of these JSON objects and nothing else:
{replies}
JSON:""",
        )
    ]
)


class MethodReply(BaseModel):
    """A model's choice of a method."""

    method: Annotated[str, BeforeValidator(lambda value: value.strip() if isinstance(value, str) else value)]
