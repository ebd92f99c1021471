"""The commands `questions` and `train`."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from os import W_OK, access
from pathlib import Path
from typing import Annotated, Any

import typer

import kg_retrievers
from kg_retrievers.cli import options
from kg_retrievers.cli.options import option
from kg_retrievers.cli.show import grid, note, on_terminal, show, status
from kg_retrievers.cli.sources import Source, index_of_graphs, read_graph, read_index
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError
from kg_retrievers.methods import registry

#: The fields that `--field` does not set in a training: other options do, or the graph.
TAKEN = (
    *("index", "questions", "validation", "output", "num_examples", "seed", "progress"),
    *("embedding_cache", "dimension", "preset"),
)

_METHODS = ", ".join(method.name for method in registry.METHODS if method.trainer)


def questions(
    graph: options.Graph,
    output: Annotated[str, option("FILE", "A new file, as JSON lines.", parser=options.new_file)],
    reading: options.Reading,
    count: Annotated[int, option("N", "How many (default: 1000).", min=1, max=100_000)] = 1000,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> int:
    """Write questions with answers and patterns from a graph alone.

    Example: kg-retrievers questions films.csv --output questions.jsonl
    """
    path, source = Path(output), Source(graph, reading)
    if path.exists():
        raise InvalidArgumentError(f"{output} is there already. Name a new file: --output ...")
    loaded = read_graph(source)
    with status("writing questions"):
        written = kg_retrievers.generate_questions(loaded, count, seed=seed)
    kg_retrievers.datasets.write_questions(path, written)
    kinds = dict(sorted(Counter(str(question.kind) for question in written).items()))
    if len(written) < count:
        note(f"{count:,} questions were asked for, but the graph gives no more than {len(written):,}")
    if as_json:
        print(json.dumps({"output": output, "questions": len(written), "kinds": kinds}), flush=True)
        return 0
    show(
        f"Wrote {len(written):,} questions to {output}, such as: {written[0].text}",
        grid(*kinds.items()),
        f"Use them as examples: {source.command('ask', 'Who ...?', '--examples', output)}",
        f"Train on them: kg-retrievers train subgraph-rag --graph {graph} --questions {output} --output MODEL",
    )
    return 0


def train(
    method: Annotated[str, typer.Argument(metavar="METHOD", help=f"One of {_METHODS}.")],
    data: Annotated[str, option("FILE_OR_FOLDER", "The questions.", "--questions")],
    output: Annotated[str, option("FOLDER", "A new folder for the model; if begun, go on.")],
    questions: options.QuestionSet,
    reading: options.Reading,
    embeddings: options.Embeddings = None,
    validation: Annotated[
        str | None, option("FILE_OR_FOLDER", "Questions that say when to stop (default: a tenth).")
    ] = None,
    num_examples: Annotated[int | None, option("N", "How many questions to look at, each time counted.", min=1)] = None,
    field: Annotated[list[str], option("NAME=VALUE", "A setting of the training or the model.")] = [],
    preset: options.Preset = None,
    embedding_cache: options.EmbeddingCache = None,
    as_json: options.Json = False,
) -> int:
    """Train a method on questions with answers.

    Example: kg-retrievers train subgraph-rag --graph films.csv --questions asked.jsonl --output films.model
    """
    folder = Path(output)
    _check_output(folder)
    questions.check_graph(reading, {})
    if questions.graph is None and not questions.have_graphs:
        raise InvalidArgumentError(
            "--graph must name the graph that the questions are about. See: kg-retrievers train --help"
        )
    given = options.field_values(field, "max_nodes=1000", TAKEN)
    entry = registry.find_method(method)
    if entry.trainer is None:
        raise InvalidArgumentError(f"{method} is not trained. Name one of {_METHODS}.")
    with status(f"loading the training of {method}"):
        trainer = entry.load_trainer()
    given |= {"preset": preset} if preset else {}
    given |= {"num_examples": num_examples} if num_examples is not None else {}
    split = questions.split or ("train" if questions.format == "metaqa" else None)
    learned = questions.read(data, split, questions.limit)
    validating = None if validation is None else questions.read_part(validation, "dev")
    source = Source(str(questions.graph), reading, embeddings)
    if questions.graph is None:
        index = index_of_graphs(questions, embeddings, embedding_cache, learned)
        given["embedding_cache"] = embedding_cache
    else:
        index = read_index(source)
    from kg_retrievers.training.loop import is_unfinished  # loads torch, as the training just did

    begun = is_unfinished(folder)
    try:
        given |= {"output": folder, "seed": questions.seed, "progress": on_terminal()}
        trained = trainer(index, learned, validating, **given)
    except BaseException as error:
        if is_unfinished(folder) and not isinstance(error, KGRetrieversError):
            note(f"what was trained is in {output}; the same command goes on from the last finished round")
        raise
    if begun:
        note(f"what was trained before was taken from {output}")
    asked = replace(source, place="GRAPH") if questions.have_graphs else source
    _tell(method, output, asked.command("ask", "Who ...?", "--model", output), trained, as_json)
    return 0


def _check_output(folder: Path) -> None:
    """Check before the training that a model can be saved afterwards, and that it replaces none."""
    from kg_retrievers.core.checkpoint import holds_model  # loads numpy, which the help does not need

    if holds_model(folder):
        raise InvalidArgumentError(f"{folder} holds a model already. Name another folder: --output ...")
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir() or not access(there, W_OK):
        what = "cannot be written to" if there.is_dir() else "is a file"
        raise InvalidArgumentError(f"{there} {what}. Name another folder: --output ...")


def _tell(method: str, output: str, command: str, trained: Any, as_json: bool) -> None:
    """Print the figures of a training, for programs or for people."""
    before, after = trained.history[0], trained.best
    if after <= before:
        note("no round was better than the untrained model; are there enough questions, and are they right?")
    if trained.unsupervised:
        note(f"{trained.unsupervised:,} questions supervise nothing: what they label is not among their candidates")
    if as_json:
        reasons = ("without_entities", "without_answers", "unreachable")
        parts = {"training": trained.training, "validation": trained.validation}
        figures = {
            name: {"used": len(part.usable)} | {reason: getattr(part, reason) for reason in reasons}
            for name, part in parts.items()
        }
        about = {"method": method, "output": output, "command": command, "seconds": trained.seconds, **figures}
        about |= {"ndcg_before": before, "ndcg_after": after, "history": trained.history}
        print(json.dumps(about | {"unsupervised": trained.unsupervised}), flush=True)
        return
    show(
        f"Trained {method} in {trained.seconds:,.0f} seconds. The model is in {output}.",
        grid(
            ("Trained on", str(trained.training)),
            ("Validated with", str(trained.validation)),
            ("nDCG of answers", f"{before:.3f} before the training, {after:.3f} after it"),
        ),
        f"Ask it: {command}",
    )
