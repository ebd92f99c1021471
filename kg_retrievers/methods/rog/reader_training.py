"""Training of a reader of relation paths, with torch (extra `graph-prompt`).

L. Luo, Y.-F. Li, G. Haffari, S. Pan: Reasoning on Graphs: Faithful and Interpretable Large Language Model Reasoning.
ICLR 2024, arXiv:2310.01061, section 4.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import GraphQuestion, Question, check_questions
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.index.question_indexes import QuestionIndexes
from kg_retrievers.methods.rog.adapted_lm import AdaptedLM, AdapterConfig, Text
from kg_retrievers.methods.rog.reader import MAX_ANSWER_TOKENS, PathReader, reading_of
from kg_retrievers.methods.rog.tuned_prompts import ANSWER_SEPARATOR
from kg_retrievers.training.causal_lm import CausalLM

try:
    from kg_retrievers.methods.rog.tuning import Example, LanguageModelTuning, TuningOptions, tune, tuned
    from kg_retrievers.training.fit import VALIDATION_SHARE, checked_output
    from kg_retrievers.training.schedule import stream
except ImportError as cause:
    raise MissingExtraError("train_path_reader", "graph-prompt") from cause


def train_path_reader(
    retriever: BaseKGRetriever,
    questions: Sequence[Question],
    validation: Sequence[Question] | None = None,
    *,
    llm: str | Path | CausalLM,
    output: str | Path | None = None,
    num_examples: int = 2_000,
    batch_size: int = 4,
    learning_rate: float = 1e-3,
    validations: int = 4,
    patience: int = 2,
    seed: int = 0,
    threads: int | None = None,
    progress: bool = False,
    **config: Any,
) -> LanguageModelTuning[PathReader]:
    """Tune a language model to answer from the paths that a retriever finds.

    Loss: the mean over the questions of -log p(answers | question, paths), per token, as in section 4.2 of the paper.

    *Differs from the paper* in paths that are those retrieved, as they will be read, in place of shortest paths to the
    answers; in adapters in place of all weights; and in planner and reader that are tuned each for itself.

    With `output` the training is kept there after each validation, and the same call goes on after an interruption; in
    the end the reader is saved there. The same arguments give the same reader on the same machine, on a CPU.

    Args:
        retriever: Finds the paths, such as `RelationPathRetriever`.
        questions: With answers. One for which nothing is found is left out. One with a graph of its own
            (`GraphQuestion`) is asked over that.
        validation: Questions that say when to stop; by default a tenth of the others, drawn at random.
        llm: The language model, or its name on Hugging Face or folder; one that was handed in has adapters afterwards,
            and serves this reader alone.
        output: A folder for the reader, which must hold none; by default nothing is saved.
        num_examples: How many questions the training looks at, each counted anew in every epoch.
        batch_size: How many questions make one step.
        learning_rate: The highest learning rate of AdamW.
        validations: How often the reader is validated.
        patience: After how many validations without a better one the training ends.
        seed: The seed of all random numbers.
        threads: The number of threads that torch runs on; None to leave it as it is.
        progress: Whether to show a progress bar on stderr.
        **config: Fields of `AdapterConfig`.

    Raises:
        InvalidArgumentError: If nothing can be trained on, an argument is out of range, or the output holds a model or
            an unfinished training of something else.
        ModelLoadError: If the language model cannot be loaded, or the unfinished training in the output is damaged.
    """
    began, who = time.monotonic(), "train_path_reader"
    check_questions(questions, who)
    options = TuningOptions(
        num_examples=num_examples,
        batch_size=batch_size,
        learning_rate=learning_rate,
        validations=validations,
        patience=patience,
        seed=seed,
        threads=threads,
    )
    settings, folder = AdapterConfig(**config), checked_output(who, output)
    adapted = AdaptedLM(llm if isinstance(llm, CausalLM) else CausalLM.load(llm), settings, seed=seed)
    found = _examples(adapted, retriever, questions)
    checked = [] if validation is None else _examples(adapted, retriever, validation)
    learned, validating = _split(found, seed) if validation is None else (found, checked)
    if not learned or not validating:
        raise InvalidArgumentError(
            f"{who}: {len(questions):,} questions, but none with an answer of the graph for which {retriever!r:.100} "
            "finds paths. A row is {'question': ..., 'answers': [...]}, with entity keys."
        )
    facts = {"questions": len(learned), "data": _digest(learned, validating)}
    history = tune(adapted, learned, validating, options, facts, folder, progress=progress)
    reader = PathReader(adapted, training={**facts, "validation": history, "seed": seed})
    left_out = {"without_paths": len(questions) - len(found)}
    return tuned(reader, adapted, history, (len(learned), len(validating)), left_out, began, folder)


def _examples(adapted: AdaptedLM, retriever: BaseKGRetriever, questions: Sequence[Question]) -> list[Example]:
    """Return the text to learn of each question for which something is found, over its own graph where it has one."""
    indexes, examples = QuestionIndexes(retriever.index.embeddings), list[Example]()
    for question in questions:
        asked = retriever
        if isinstance(question, GraphQuestion):
            question, asked = question.with_keys(), retriever.with_index(indexes.of(question.graph))
        documents = asked.invoke(question.text, on_refusal="empty", **asked.inputs_for(question))
        labels = [asked.graph.label(key) for key in question.answers if key in asked.graph.entities]
        if documents and labels:
            told = reading_of(adapted, question.text, documents)
            examples.append((Text(told, (*_tokens(adapted, labels), adapted.end)),))
    return examples


def _tokens(adapted: AdaptedLM, answers: Sequence[str]) -> list[int]:
    """Return the tokens of as many answers as have room; of the first, as much of it."""
    written = adapted.lm.encode(answers[0])[:MAX_ANSWER_TOKENS]
    for count in range(2, len(answers) + 1):
        longer = adapted.lm.encode(ANSWER_SEPARATOR.join(answers[:count]))
        if len(longer) > MAX_ANSWER_TOKENS:
            break
        written = longer
    return written


def _split(examples: Sequence[Example], seed: int) -> tuple[list[Example], list[Example]]:
    """Return the examples to train on and to validate with; a single one is both."""
    if len(examples) < 2:
        return list(examples), list(examples)
    count = max(1, int(len(examples) * VALIDATION_SHARE))
    chosen = set(stream(seed, "split").permutation(len(examples))[:count].tolist())
    parts: tuple[list[Example], list[Example]] = [], []
    for position, example in enumerate(examples):
        parts[position in chosen].append(example)
    return parts


def _digest(*parts: Sequence[Example]) -> str:
    """Return 32 hexadecimal digits that change with what is learned."""
    return blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
