"""Training of RoG's planner, with torch (extra `graph-prompt`).

L. Luo, Y.-F. Li, G. Haffari, S. Pan: Reasoning on Graphs: Faithful and Interpretable Large Language Model Reasoning.
ICLR 2024, arXiv:2310.01061, section 4.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from kg_retrievers.algorithms.path_mining import MAX_ENTRIES, SAME_FIT, LabelledQuestion, mine_relation_paths
from kg_retrievers.algorithms.relation_paths import joining_relation_paths
from kg_retrievers.bulk import Workers
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import is_backward, relation_of
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.rog.adapted_lm import AdaptedLM, AdapterConfig, Text
from kg_retrievers.methods.rog.decoding import Labels
from kg_retrievers.methods.rog.planner import STEP_TOKENS, RelationPathPlanner
from kg_retrievers.methods.rog.tuned_prompts import write_planning, write_step
from kg_retrievers.training.causal_lm import CausalLM
from kg_retrievers.training.dataset import TrainingQuestion, TrainingQuestions, training_questions

try:
    from kg_retrievers.methods.rog.tuning import Example, LanguageModelTuning, TuningOptions, tune, tuned
    from kg_retrievers.training.fit import check_arguments, checked_output, digest_of_questions, split_questions
    from kg_retrievers.training.own_graphs import over_one_graph
    from kg_retrievers.training.presets import takes_presets
except ImportError as cause:
    raise MissingExtraError("train_planner", "graph-prompt") from cause

#: Which relation paths of a question are learned; see `train_planner`.
Supervision = Literal["best", "shortest"]

#: The most relation paths of a question that are learned.
PATHS_LEARNED = 4

#: The most pairs of an entity and an answer whose shortest paths are looked for.
PAIRS_TRIED = 20


@takes_presets({"paper": {"supervision": "shortest"}})
def train_planner(
    index: GraphIndex,
    questions: Sequence[Question],
    validation: Sequence[Question] | None = None,
    *,
    llm: str | Path | CausalLM,
    output: str | Path | None = None,
    max_hops: int = 3,
    supervision: Supervision = "best",
    num_examples: int = 2_000,
    batch_size: int = 4,
    learning_rate: float = 1e-3,
    validations: int = 4,
    patience: int = 2,
    seed: int = 0,
    threads: int | None = None,
    progress: bool = False,
    workers: Workers | None = None,
    embedding_cache: str | Path | None = None,
    preset: Literal["paper"] | None = None,
    **config: Any,
) -> LanguageModelTuning[RelationPathPlanner]:
    """Tune a language model to write the relation paths that lead from a question's entities to its answers.

    Loss: the mean over the questions of the mean over their relation paths z of -log p(z | question), per token, as in
    section 4.2 of the paper. The z of a question are, at most `PATHS_LEARNED`:

    - "shortest", the paper's: the relation paths of the shortest walks from an entity of the question to an answer;
    - "best" (ours): the relation paths, however long, whose ends are nearest to the answers by F1, as of examples in
      `ExampleRelationPaths`. Of MetaQA's 3-hop questions, the shortest path to an answer often is not what is asked.

    The end of a path is a token of it, so that a planner learns where to end.

    *Differs from the paper* in that supervision; in adapters in place of all weights; in relations with a direction,
    since walks follow triples either way; in questions without the names of their entities; and in planner and reader
    that are tuned each for itself.

    With `output` the training is kept there after each validation, and the same call goes on after an interruption; in
    the end the planner is saved there. The same arguments give the same planner on the same machine, on a CPU.

    Args:
        index: The indexed graph.
        questions: With answers; entities that are not given are looked for. Those with a graph of their own
            (`GraphQuestion`) are trained on over these: of the index, only the embeddings are used then.
        validation: Questions that say when to stop; by default a tenth of the others, drawn at random.
        llm: The language model, or its name on Hugging Face or folder; one that was handed in has adapters afterwards,
            and serves this planner alone.
        output: A folder for the planner, which must hold none; by default nothing is saved.
        max_hops: The most relations of a path.
        supervision: Which relation paths are learned.
        num_examples: How many questions the training looks at, each counted anew in every epoch.
        batch_size: How many questions make one step.
        learning_rate: The highest learning rate of AdamW.
        validations: How often the planner is validated.
        patience: After how many validations without a better one the training ends.
        seed: The seed of all random numbers.
        threads: The number of threads that torch runs on; None to leave it as it is.
        progress: Whether to show a progress bar on stderr.
        workers: Processes that find the entities of questions before the training, `LocalWorkers` or `RayWorkers`.
        embedding_cache: A file that keeps the vectors of names from one run to the next, for questions with graphs.
        preset: "paper" for the supervision of the paper.
        **config: Fields of `AdapterConfig`.

    Raises:
        InvalidArgumentError: If nothing can be trained on, an argument is out of range, or the output holds a model or
            an unfinished training of something else.
        ModelLoadError: If the language model cannot be loaded, or the unfinished training in the output is damaged.
    """
    began, who = time.monotonic(), "train_planner"
    check_arguments(train_planner, AdapterConfig, index, questions, validation, config)
    index, questions, validation = over_one_graph(who, index, questions, validation, embedding_cache)
    options = TuningOptions(
        num_examples=num_examples,
        batch_size=batch_size,
        learning_rate=learning_rate,
        validations=validations,
        patience=patience,
        seed=seed,
        threads=threads,
    )
    if supervision not in get_args(Supervision):
        raise InvalidArgumentError(
            f"{who}: supervision is one of {list(get_args(Supervision))}, but got {supervision!r:.50}."
        )
    settings, folder = AdapterConfig(**config), checked_output(who, output)
    find = partial(training_questions, index, max_hops=max_hops, workers=workers)
    learned, validating = split_questions(who, index.graph, find, questions, validation, max_hops, seed)
    adapted = AdaptedLM(llm if isinstance(llm, CausalLM) else CausalLM.load(llm), settings, seed=seed)
    examples = _examples(adapted, index, learned, max_hops, supervision)
    checked = _examples(adapted, index, validating, max_hops, supervision)
    if not examples or not checked:
        raise InvalidArgumentError(
            f"{who}: from the entities of {learned} and {validating}, no walk of {max_hops} hops leads to an answer. "
            "Raise max_hops."
        )
    facts = {
        "questions": len(examples),
        "data": digest_of_questions(index, learned, validating),
        "max_hops": max_hops,
        "supervision": supervision,
    }
    history = tune(adapted, examples, checked, options, facts, folder, progress=progress)
    planner = RelationPathPlanner(adapted, training={**facts, "validation": history, "seed": seed})
    return tuned(planner, adapted, history, (len(examples), len(checked)), _left_out(learned, examples), began, folder)


def _left_out(learned: TrainingQuestions, examples: Sequence[Example]) -> dict[str, int]:
    names = ("without_entities", "without_answers", "unreachable")
    counts = {name: getattr(learned, name) for name in names}
    return counts | {"unreachable": learned.unreachable + len(learned.usable) - len(examples)}


def _examples(
    adapted: AdaptedLM, index: GraphIndex, questions: TrainingQuestions, max_hops: int, supervision: Supervision
) -> list[Example]:
    """Return the texts to learn of each question that has some."""
    find = shortest_relation_paths if supervision == "shortest" else best_relation_paths
    examples: list[Example] = []
    for question in questions.usable:
        if paths := find(index.graph.adjacency, question, max_hops)[:PATHS_LEARNED]:
            told = adapted.told(write_planning(question.text), STEP_TOKENS * max_hops)
            examples.append(tuple(Text(told, _label(adapted, index, path), 1 / len(paths)) for path in paths))
    return examples


def _label(adapted: AdaptedLM, index: GraphIndex, path: Sequence[int]) -> tuple[int, ...]:
    """Return the tokens of a relation path, each step by itself as in `search`, and of its end."""
    names = index.graph.relations
    steps = [adapted.lm.encode(write_step(names[relation_of(label)], bool(is_backward(label)))) for label in path]
    return (*(token for step in steps for token in step), adapted.end)


def best_relation_paths(adjacency: Adjacency, question: TrainingQuestion, max_hops: int) -> list[Labels]:
    """Return the relation paths whose ends are nearest to the answers of a question, by F1; of equal ones all.

    Args:
        adjacency: The graph, both directions.
        question: The question.
        max_hops: The longest path.
    """
    size = len(question.answers) + question.missing
    labelled = LabelledQuestion(question.seeds, question.answers, size)
    mined = mine_relation_paths(adjacency, [labelled], max_hops=max_hops)
    return [path.labels for path in mined if path.f1 > mined[0].f1 - SAME_FIT]


def shortest_relation_paths(adjacency: Adjacency, question: TrainingQuestion, max_hops: int) -> list[Labels]:
    """Return the relation paths of the shortest walks from entities to answers, whatever the direction of triples.

    Args:
        adjacency: The graph, both directions.
        question: The question; an answer that is an entity of it is none.
        max_hops: The longest walk.

    Returns:
        First those that join most entities with answers, then the shortest, then by label. Looked at are the first
        `PAIRS_TRIED` pairs of an entity and an answer.
    """
    pairs = [(seed, answer) for seed in question.seeds for answer in question.answers if seed != answer]
    joining: Counter[Labels] = Counter()
    for seed, answer in pairs[:PAIRS_TRIED]:
        for hops in range(1, max_hops + 1):
            found = joining_relation_paths(adjacency, seed, answer, max_hops=hops, max_entries=MAX_ENTRIES)
            if found:
                joining.update(found)
                break
    return sorted(joining, key=lambda path: (-joining[path], len(path), path))
