"""Training of SubgraphRAG's scorer of triples, with torch (extra `train`).

M. Li, S. Miao, P. Li: Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation. ICLR 2025, arXiv:2410.20724, sections 3.1 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from kg_retrievers.datasets import Question
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.subgraph_rag.config import TripleScorerConfig
from kg_retrievers.methods.subgraph_rag.model import TripleScorer
from kg_retrievers.methods.subgraph_rag.network import Loss, Supervising, Supervision, TripleNetwork
from kg_retrievers.training.fit import ModelTraining, check_arguments, train_on_questions
from kg_retrievers.training.loop import Schedule, stream
from kg_retrievers.training.own_graphs import over_one_graph
from kg_retrievers.training.presets import takes_presets, tell_other_embeddings

#: How many questions a training looks at by default, each counted anew in every epoch.
NUM_EXAMPLES = 16_000

#: Section 4.1: the model that embeds questions, entities and relations, by its name on Hugging Face. It brings code of
#: its own: `local_embeddings(EMBEDDINGS, trust_remote_code=True)` runs that code.
EMBEDDINGS = "Alibaba-NLP/gte-large-en-v1.5"

#: The preset of the paper.
TRAINING: Mapping[str, Mapping[str, Any]] = {
    "paper": {
        "topic": "pair",  #: section 3.1: a one-hot encoding of being a topic entity or not
        "directed": True,  #: section 3.1: along the triples, and against them
        "rounds": 2,  #: the published configuration
        "reverse_rounds": 2,
        "hops": 0,  #: nothing of ours
        "hidden": 1024,  #: the published code: as wide as the vectors of `EMBEDDINGS`
        "mask_entities": False,  #: section 3.1: the question as it is
        "supervision": "directed",  #: the published code: paths follow their triples
        "loss": "binary",  #: equation 2, factorised
        "sampled": False,  #: equation 2: all triples
        "max_nodes": None,  #: appendix B.1: all that is within some hops
        "batch_size": 1,  #: the published configuration, as the two below
        "learning_rate": 1e-3,
        "constant_rate": True,
    }
}


@takes_presets(TRAINING)
def train_triple_scorer(
    index: GraphIndex,
    questions: Sequence[Question],
    validation: Sequence[Question] | None = None,
    *,
    output: str | Path | None = None,
    max_hops: int = 3,
    max_nodes: int | None = 2_000,
    supervision: Supervision = "undirected",
    loss: Loss = "softmax",
    sampled: bool = True,
    num_examples: int = NUM_EXAMPLES,
    batch_size: int = 8,
    learning_rate: float = 5e-3,
    constant_rate: bool = False,
    validations: int = 12,
    patience: int = 4,
    seed: int = 0,
    progress: bool = False,
    embedding_cache: str | Path | None = None,
    preset: Literal["paper"] | None = None,
    **config: Any,
) -> ModelTraining[TripleScorer]:
    """Train a scorer of triples on questions and their answers.

    The triples on all shortest paths between the entities and the answers of a question count as relevant, within its
    candidates: `neighborhood` by `max_hops` and `max_nodes`, which `SubgraphRAGRetriever` then takes, too. With the
    loss "softmax" (ours), the scores of a question's candidates are a distribution that should be uniform over the
    positive triples: only their order counts. "binary" is the paper's loss (equation 2): each candidate by itself.

    `preset="paper"` trains the paper's network as the paper does: see `TRAINING`. What is given by hand wins. It states
    `EMBEDDINGS`; with those of another index it warns.

    *Differs from the paper* by default in undirected paths, all of parallel triples, the loss, and questions that are
    embedded without their entities; from the code published with it in `MAX_POSITIVES` and `MAX_NEGATIVES` triples of a
    question, drawn and weighted so that they stand for all, in steps of eight questions instead of one, and in a
    learning rate of 0.005 that falls in a straight line instead of one of 0.001 that stays. *Also with the preset*,
    parallel triples are all positive, where the code keeps the last one, and the answers say when to stop: how high
    they stand, rather than how many positive triples are among the first 100. Directed paths find none for a question
    of two hops in MetaQA's graph.

    With `output` the training is kept there after each validation, and the same call goes on after an interruption;
    in the end the scorer is saved there. The same arguments give the same scorer on the same machine.

    Args:
        index: The indexed graph.
        questions: With answers; entities that are not given are looked for. Those with a graph of their own
            (`GraphQuestion`) are trained on over these: of the index, only the embeddings are used then.
        validation: Questions that say when to stop; by default a tenth of the others, drawn at random.
        output: A folder for the scorer, which must hold none; by default nothing is saved.
        max_hops: How far candidates are from the entities; also the longest path.
        max_nodes: The most entities among the candidates; None for no limit.
        supervision: "undirected" or "directed": whether paths follow their triples; see `shortest_path_triples`.
            "triples": no paths, but the `triples` that a question brings.
        loss: "softmax" or "binary".
        sampled: Whether `MAX_POSITIVES` and `MAX_NEGATIVES` triples of a question stand for all.
        num_examples: How many questions the training looks at, each counted anew in every epoch.
        batch_size: How many questions make one step.
        learning_rate: The learning rate of Adam at the first step.
        constant_rate: Whether it stays, instead of falling in a straight line.
        validations: How often the scorer is validated.
        patience: After how many validations without a better one the training ends.
        seed: The seed of all random numbers.
        progress: Whether to show a progress bar on stderr.
        embedding_cache: A file that keeps the vectors of names from one run to the next, for questions with graphs.
        preset: "paper" for the settings of the paper.
        **config: Fields of `TripleScorerConfig` but the dimension.

    Raises:
        InvalidArgumentError: If nothing can be trained on, an argument is out of range, the names of the index are in a
            vector store, or the output holds a model or an unfinished training of something else.
        ModelLoadError: If the unfinished training in the output is damaged.
    """
    check_arguments(train_triple_scorer, TripleScorerConfig, index, questions, validation, config)
    index, questions, validation = over_one_graph("train_triple_scorer", index, questions, validation, embedding_cache)
    if preset:
        tell_other_embeddings("train_triple_scorer", index, EMBEDDINGS)
    options = Supervising(supervision, loss, max_hops, max_nodes, sampled)
    settings = TripleScorerConfig(dimension=index.dimension, **config)
    schedule = Schedule(
        num_examples, validations, patience, batch_size, learning_rate, seed, constant_rate=constant_rate
    )
    return train_on_questions(
        TripleNetwork(index, settings, options, stream(seed, "weights")),
        questions,
        validation,
        who="train_triple_scorer",
        max_hops=max_hops,
        output=output,
        schedule=schedule,
        facts=asdict(options) | {"preset": preset},
        progress=progress,
    )
