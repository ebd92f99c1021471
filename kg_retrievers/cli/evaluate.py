"""The commands `evaluate` and `compare`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import kg_retrievers
from kg_retrievers.cli.measurement import BuiltMethod, Choice, Measured, MeasuredWith, Measurement, read_measurement
from kg_retrievers.cli.methods import load_models, read_trained
from kg_retrievers.cli.options import (
    ADVANCED,
    Connection,
    Embedded,
    Given,
    Json,
    Method,
    QuestionSet,
    Reading,
    natural,
    new_file,
    option,
)
from kg_retrievers.cli.show import message, note, show_comparison
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.file_writing import raise_write_errors, write_file
from kg_retrievers.methods import registry

if TYPE_CHECKING:
    from kg_retrievers.evaluation import Comparison, Report

#: Stands for every method that can be built from the options.
ALL = "all"

By = Annotated[
    Literal["hops", "kind", "seed_entities", "answers"],
    option("FIELD", "hops, kind, seed_entities or answers.", panel=ADVANCED),
]
Figures = Annotated[list[str], option("NAME", "Also this one, such as hits@10.", panel=ADVANCED)]
Output = Annotated[str | None, option("FILE", "Write the figures as JSON.", parser=new_file)]


def evaluate(
    data: Annotated[str, option("FILE_OR_FOLDER", "The questions.")],
    questions: QuestionSet,
    given: Given,
    settings: MeasuredWith,
    reading: Reading,
    embedded: Embedded,
    connection: Connection,
    method: Method = None,
    records: Annotated[str | None, option("FILE", "Keep the results, or go on.", parser=new_file)] = None,
    by: By = "hops",
    figure: Figures = [],
    output: Output = None,
    as_json: Json = False,
) -> int:
    """Measure a method on questions whose answers are known.

    Example: kg-retrievers evaluate --graph films.csv --data asked.jsonl
    """
    _check_figures(figure)
    options = Measured(questions, given, reading, embedded, connection, settings, data)
    models = load_models(given.model, method, options.fields)
    models.check_database(given.database)
    measurement = read_measurement(options, models.of_retrievers, models.prompt)
    with measurement.database:
        fields = models.fields if settings.k is None else models.fields | {"k": settings.k}
        built = measurement.build(Choice(models.methods), fields, given.preset)
        report = measurement.run(built, records)
    _write(report.to_dict(), kg_retrievers.compare([report], failures=0, by=by, figures=figure), output, as_json)
    return 0


def compare(
    questions: QuestionSet,
    given: Given,
    settings: MeasuredWith,
    reading: Reading,
    embedded: Embedded,
    connection: Connection,
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RECORDS]...", help="Files of records that `evaluate` wrote.")
    ] = None,
    data: Annotated[str | None, option("FILE_OR_FOLDER", "The questions.")] = None,
    method: Annotated[list[str], option("NAME[:WITH]", "all, or as `evaluate`, with plain, examples or llm.")] = [],
    records: Annotated[str | None, option("FOLDER", "Keep the results, or go on.")] = None,
    failures: Annotated[int, option("N", "Failures to show (default: 10).", parser=natural)] = 10,
    by: By = "hops",
    figure: Figures = [],
    output: Output = None,
    as_json: Json = False,
) -> int:
    """Put several methods, or earlier runs, side by side.

    Example: kg-retrievers compare one.jsonl two.jsonl
    """
    _check_figures(figure)
    earlier = [kg_retrievers.Report.read(path) for path in runs or ()]
    measured: list[Report] = []
    if method:
        if data is None:
            raise InvalidArgumentError("to run methods, --data must be given. See: kg-retrievers compare --help")
        options = Measured(questions, given, reading, embedded, connection, settings, data)
        measured = list(_measured(options, method, _folder_of_records(records)))
    elif not earlier:
        raise InvalidArgumentError("name files of records, or methods to run: --method ... --method ...")
    names = Counter(report.method for report in (*earlier, *measured))
    reports = [
        replace(report, method=f"{report.method} ({path})") if names[report.method] > 1 else report
        for report, path in zip(earlier, runs or (), strict=True)
    ] + measured
    found = kg_retrievers.compare(reports, failures=failures, by=by, figures=figure)
    texts = {name: list(failed) for name, failed in found.failures.items()}
    _write({"runs": [report.to_dict() for report in reports], "failures": texts}, found, output, as_json)
    return 0


def _write(figures: dict[str, Any], found: Comparison, output: str | None, as_json: bool) -> None:
    """Write the figures to a file, and print them as JSON or as a table."""
    text = json.dumps(figures, indent=2)
    if output is not None:
        write_file(output, text + "\n")
    if as_json:
        print(text, flush=True)
    else:
        show_comparison(found)


def _check_figures(names: Sequence[str]) -> None:
    """Check before the work begins that there are such figures."""
    if names:
        from kg_retrievers.evaluation import comparison

        comparison.check_figures(names)


def _folder_of_records(name: str | None) -> Path | None:
    """Make the folder of records, if the options name one."""
    if name is None:
        return None
    folder = Path(name)
    if folder.exists() and not folder.is_dir():
        raise InvalidArgumentError(f"{folder} is a file. Name a folder: --records ...")
    with raise_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _measured(options: Measured, names: Sequence[str], folder: Path | None) -> Iterator[Report]:
    """Run the methods."""
    chosen = {name: Choice.of(name) for name in names if name != ALL}
    trained, prompt = read_trained(options.given.model)
    if ALL not in names:
        compared = {method.name for choice in chosen.values() for method in choice.methods}
        for name, saved in trained.items():
            if name not in compared:
                note(f"the model in {saved.folder} is left out: {name} is not compared")
    measurement = read_measurement(options, trained, prompt)
    with measurement.database:
        for built in _built_methods(measurement, names):
            name = built.choice.name.replace(":", "-")
            yield measurement.run(built, folder and folder / f"{name}.jsonl")


def _built_methods(measurement: Measurement, names: Sequence[str]) -> list[BuiltMethod]:
    """Build the named methods; ALL builds each method with nothing, and with each source that is given.

    Raises:
        InvalidArgumentError: If none of them can be built, or
        MissingExtraError: if what is missing is an optional package.
    """
    all_built: list[BuiltMethod] = []
    refused: dict[str, Exception] = {}
    for choice, is_named in _choices(names, measurement.sources).items():
        try:
            built = measurement.build(choice, _fields_of(choice, measurement.options), _preset_of(choice, measurement))
        except (InvalidArgumentError, MissingExtraError) as error:
            refused[choice.name] = error
            continue
        alike = [one.choice.name for one in all_built if one.made_of == built.made_of]
        if alike and not is_named:
            note(f"{choice.name} is left out: it is the same as {alike[0]}")
        else:
            all_built.append(built)
    if not all_built:
        raise next(iter(refused.values()))
    for name, reason in refused.items():
        note(f"{name} is left out: {message(reason)}")
    return all_built


def _choices(names: Sequence[str], given: Sequence[str]) -> dict[Choice, bool]:
    """Return the choices to compare, in order; True if the user names one, False if only ALL includes it."""
    sources = given if len(given) > 1 else [""]
    choices: dict[Choice, bool] = {}
    for name in names:
        if name != ALL:
            choices[Choice.of(name)] = True
            continue
        for method in map(registry.find_method, registry.method_names()):
            for source in sources:
                choices.setdefault(Choice((method,), source), False)
    return choices


def _fields_of(choice: Choice, options: Measured) -> dict[str, Any]:
    """Return the fields that this method has, of those that some method has."""
    fields = options.fields if options.settings.k is None else options.fields | {"k": options.settings.k}
    if not fields:
        return {}
    of_others: set[str] = set()
    for method in (*registry.METHODS, registry.UNION):
        of_others |= method.load_retriever().model_fields.keys()
    missing = sorted(fields.keys() & of_others - registry.retriever_class(choice.methods).model_fields.keys())
    if missing:
        note(f"{registry.joined_names(choice.methods)} has no field {', '.join(missing)}; it goes without")
    return {name: value for name, value in fields.items() if name not in missing}


def _preset_of(choice: Choice, measurement: Measurement) -> str | None:
    """Return the preset, or None if a method lacks it."""
    preset = measurement.options.given.preset
    if preset is None:
        return None
    lacking = [method.name for method in choice.methods if preset not in method.load_retriever().presets]
    if lacking:
        note(f"{', '.join(lacking)} has no preset {preset}; {choice.name} goes without")
    return None if lacking else preset
