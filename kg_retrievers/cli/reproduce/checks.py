"""Checks before anything is asked, so that a dry run fails where the run would: the models, and where records go."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from os import W_OK, access
from pathlib import Path

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.evaluation.papers.plan import Plan
from kg_retrievers.methods import registry


def check_options(plan: Plan, options: argparse.Namespace, models: Mapping[str, str]) -> None:
    """Check what can be checked without a call of a model.

    Raises:
        InvalidArgumentError: If a model is none of the table's, or of another method; if a language model has no
            provider that there is, or is no folder; or records cannot be written.
        MissingExtraError: If the extra `openai` is wanted, and not installed.
        ModelLoadError: If the folder of a trained model holds none.
    """
    _check_models(plan, models)
    _check_records(Path(options.records))
    if options.causal_lm:
        _check_causal_lm(options.causal_lm)
    if options.llm:
        _check_llm(options.llm)


def _check_models(plan: Plan, models: Mapping[str, str]) -> None:
    """Check that each given model is of the table, and that its folder holds one of its method."""
    from kg_retrievers.core.checkpoint import read_header  # loads numpy, which the help does not need

    trained = {cell.model: cell.run.training.method for cell in plan.distinct if cell.run.training}
    if strange := [name for name in models if name not in trained]:
        there = f"it has {', '.join(sorted(trained))}." if trained else "it has none. Leave it out."
        raise InvalidArgumentError(f"--model: the table has no model {strange[0]!r}; {there}")
    names = {entry.name: entry.names for entry in registry.trainable()}
    for name, folder in models.items():
        method = read_header(folder).method
        if method not in names[trained[name]]:
            raise InvalidArgumentError(f"--model: {folder} holds a model of {method!r:.50}, wanted one of {name!r}.")


def _check_records(home: Path) -> None:
    """Check that records can be written."""
    there = next(path for path in (home, *home.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InvalidArgumentError(f"--records: {there} is a file. Name a folder.")
    if not access(there, W_OK):
        raise InvalidArgumentError(f"--records: {there} cannot be written to. Name another folder.")


def _check_causal_lm(name: str) -> None:
    """Check that what can only be a folder is one with a model in it; a name is looked up when it is loaded."""
    folder = Path(name)
    if folder.is_dir() and (folder / "config.json").is_file():
        return
    if folder.exists() or folder.is_absolute() or name.startswith("."):
        raise InvalidArgumentError(
            f"--causal-lm: {name} is no folder of a causal language model. Name one with a config.json, or a model of "
            "Hugging Face."
        )


def _check_llm(name: str) -> None:
    """Check the name and the provider; a key is wanted when it is called."""
    from kg_retrievers.serving.loading import load_llm  # loads langchain, which the help does not need

    try:
        load_llm(name)
    except InvalidArgumentError as error:
        if error.__cause__ is None or type(error.__cause__) in (ImportError, ModuleNotFoundError, ValueError):
            raise
