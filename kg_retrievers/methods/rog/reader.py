"""RoG's reader: a tuned language model that answers from the paths that were retrieved.

L. Luo, Y.-F. Li, G. Haffari, S. Pan: Reasoning on Graphs: Faithful and Interpretable Large Language Model Reasoning.
ICLR 2024, arXiv:2310.01061, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.shown_text import as_data_lines
from kg_retrievers.methods.rog.adapted_lm import AdaptedLM
from kg_retrievers.methods.rog.tuned_model import TunedModel
from kg_retrievers.methods.rog.tuned_prompts import write_reading

#: The most tokens of the paths that are read, and of an answer.
MAX_CONTEXT_TOKENS, MAX_ANSWER_TOKENS = 512, 64


class PathReader(TunedModel, Runnable[Mapping[str, Any], str]):
    """Answers a question from the paths of its evidence, by a tuned language model; see `train_path_reader`.

    It serves wherever an answerer does: `answer_chain(retriever, reader)`. It reads the text of the Documents, best
    first, as many lines as have room in `MAX_CONTEXT_TOKENS`, and writes one answer a line. Decoding is greedy.

    Args:
        adapted: The language model with its adapters.
        training: What it was trained on, and how well it did; values of JSON.

    Raises:
        InvalidArgumentError: From `invoke`, if the input is no question with Documents.
    """

    method: ClassVar[str] = "rog-reader"
    trainer: ClassVar[str] = "train_path_reader"

    def invoke(self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> str:
        """Answer a question: `{"question": text, "documents": list of Documents}`."""
        return self._call_with_config(self._answer, input, config)

    def _answer(self, input: Mapping[str, Any]) -> str:
        question = input.get("question") if isinstance(input, Mapping) else None
        documents = input.get("documents") if isinstance(input, Mapping) else None
        if not isinstance(question, str) or not isinstance(documents, list | tuple):
            raise InvalidArgumentError(
                'PathReader: wanted {"question": text, "documents": list of Documents}, but got '
                f"{input!r:.200}. With a retriever in front: answer_chain(retriever, reader)."
            )
        told = reading_of(self.adapted, question, documents)
        return self.adapted.lm.decode(self.adapted.write(told, MAX_ANSWER_TOKENS)).strip()


def reading_of(adapted: AdaptedLM, question: str, documents: Sequence[Document]) -> tuple[int, ...]:
    """Return the tokens that a reader is told: the paths that have room, and the question.

    Args:
        adapted: The language model.
        question: The question.
        documents: The evidence, best first.
    """
    texts = [as_data_lines(document.page_content) for document in documents]
    lines = [line for text in texts for line in text.split("\n") if line]
    shown, room = list[str](), MAX_CONTEXT_TOKENS
    for line in lines:
        room -= len(adapted.lm.encode(f"{line}\n"))
        if room < 0:
            break
        shown.append(line)
    return adapted.told(write_reading(question, "\n".join(shown)), MAX_ANSWER_TOKENS)
