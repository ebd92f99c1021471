"""From a file or folder to a graph, by the options that say how it is read."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import kg_retrievers
from kg_retrievers.cli.reading_options import ANY_RDF, OPTIONS, RDF, ReadingOption
from kg_retrievers.cli.reused_options import reused_options
from kg_retrievers.cli.show import note
from kg_retrievers.errors import GraphLoadError, InvalidArgumentError

if TYPE_CHECKING:
    from kg_retrievers.graph import KnowledgeGraph

# What the header of an export of Neo4j names, and how much of a file is looked at for it.
_NEO4J_HEADER, _HEADER_SIZE = re.compile(rb":(?:START_)?ID\b"), 1 << 16

#: How the package writes what keeps something that is left out, as `literals="keep"` or `languages=[..., "*"]`.
_CHOICE = re.compile(r'(?P<argument>\w+)=(?P<value>None|"[^"]*"|\[[^]]*\])')
_LIMIT = re.compile(r"limits=Limits\((\w+=\w+)\)")
_IN_PYTHON_ALONE = re.compile(r" \(\w+=\(\)\)")


def given_options(options: argparse.Namespace) -> list[ReadingOption]:
    """Return the options for reading that were given."""
    return [option for name, option in OPTIONS.items() if getattr(options, name) is not None]


def read_file(
    path: Path, options: argparse.Namespace, earlier: KnowledgeGraph | None = None, *, progress: bool = False
) -> KnowledgeGraph:
    """Read a graph from a file, or from a folder of a format that is a folder.

    Args:
        path: The file or folder.
        options: Those of the command.
        earlier: A graph that it changes. It is read as that was, if it is of the same format and no option says
            otherwise, and RDF with the prefixes of that.
        progress: Whether to show a progress bar.

    Raises:
        InvalidArgumentError: If an option is for other formats than that of the file.
        GraphLoadError: If it cannot be read.
    """
    from kg_retrievers.graph.readers.file_options import FileOptions  # loads numpy
    from kg_retrievers.graph.readers.formats import find_format
    from kg_retrievers.graph.readers.limits import Limits
    from kg_retrievers.graph.readers.rdf.wikidata import TYPE as WIKIDATA_TYPE
    from kg_retrievers.graph.readers.rdf.wikidata import wikidata_format

    given = {option.argument: getattr(options, option.name) for option in given_options(options)}
    about = {name: given[name] for name in ("encoding",) if name in given}
    limits = given["limits"] = Limits(**{name: int(value) for name, value in given.get("limits", ())})
    # A table whose delimiter is to be found has no format yet.
    format = find_format(path, given.get("format"), FileOptions(**about, limits=limits)) or "csv"
    _check_options(path, format, options)
    if "prefixes" in given:
        given["prefixes"] = dict(given["prefixes"])
    if earlier is not None:
        given = reused_options(earlier, path, format, given) | given
        if format in ANY_RDF:
            given["prefixes"] = earlier.prefixes | given.get("prefixes", {})
    if format == "wikidata":
        given = {"type_predicates": [WIKIDATA_TYPE], **given, "format": wikidata_format(path)}
    elif format in RDF:
        given["format"] = format
    if format in ANY_RDF:
        graph = kg_retrievers.KnowledgeGraph.from_rdf(path, progress=progress, **given)
    else:
        graph = kg_retrievers.KnowledgeGraph.from_file(path, progress=progress, **given)
    if graph.skipped:
        note(f"malformed lines of {path} that were skipped: {graph.skipped}")
    return graph


def _check_options(path: Path, format: str, options: argparse.Namespace) -> None:
    """Check that each option is for this format.

    Raises:
        InvalidArgumentError: If one is for others.
    """
    from kg_retrievers.graph.readers.file_options import OF_ENTITIES  # loads numpy

    given = given_options(options)
    of_entities = OF_ENTITIES if options.entities is not None else ()
    for option in given:
        if format not in option.formats and option.argument not in of_entities:
            kind = "RDF" if option.formats == ANY_RDF else f"the formats {', '.join(option.formats)}"
            is_format = "RDF" if format in RDF else format
            raise InvalidArgumentError(f"{option.flag} is for {kind}, but {path} is {is_format}. Leave it out.")


def read_folder(path: Path, options: argparse.Namespace) -> KnowledgeGraph:
    """Open what `index` saved in a folder, or read the export of a graph that is a folder.

    Raises:
        InvalidArgumentError: If it was saved, and options say how to read a file.
        GraphLoadError: If it holds no graph, with the files in it that may be one.
    """
    try:
        graph = kg_retrievers.KnowledgeGraph.open(path)
    except GraphLoadError:
        from kg_retrievers.graph.readers.formats import SUFFIXES

        if is_export(path):
            return read_file(path, options)
        files = sorted(str(file) for file in path.iterdir() if SUFFIXES.keys() & set(file.suffixes))
        if not files:
            raise
        count = "a file" if len(files) == 1 else f"{len(files):,} files"
        raise GraphLoadError(
            f"the folder holds no saved graph, but {count} that may be one.",
            path,
            hint_shell=f"Name the file: kg-retrievers info {shlex.quote(files[0])}",
        ) from None
    check_saved_folder(path, options)
    return graph


def check_saved_folder(path: Path, options: argparse.Namespace) -> None:
    """Check that no option says how to read a file, where `index` saved what is read.

    Raises:
        InvalidArgumentError: If one does.
    """
    if given := ", ".join(option.flag for option in given_options(options)):
        raise InvalidArgumentError(f"{path} is a folder; leave out what says how to read a file: {given}.")


def is_export(path: Path) -> bool:
    """Whether a path is a folder that holds an export of a graph, which several files make up."""
    if not path.is_dir():
        return False
    from kg_retrievers.graph.readers.formats import csv_files
    from kg_retrievers.graph.readers.limits import Limits
    from kg_retrievers.graph.readers.opening import open_bytes

    for file in csv_files(path):
        with suppress(GraphLoadError), open_bytes(file, Limits()) as opened:
            if _NEO4J_HEADER.search(opened.readline(_HEADER_SIZE)):
                return True
    return False


def on_shell(text: str) -> str:
    """Return what says how to keep something in the words of the shell.

    Example:
        >>> on_shell('literals (literals="keep")'), on_shell('names in other languages (languages=[..., "*"])')
        ('literals (--literals keep)', "names in other languages (--language '*')")
        >>> on_shell("statements of other graphs (graphs=None)"), on_shell("classes (type_predicates=())")
        ('statements of other graphs (without --named-graph)', 'classes')
        >>> on_shell("cells of column 'year' (facts=['year'])"), on_shell("a long text (limits=Limits(cell_length=N))")
        ("cells of column 'year' (--facts year)", 'a long text (--read-limit cell_length=N)')
    """
    return _CHOICE.sub(_on_shell, _LIMIT.sub(r"--read-limit \1", _IN_PYTHON_ALONE.sub("", text)))


def _on_shell(choice: re.Match[str]) -> str:
    option = next((option for option in OPTIONS.values() if option.argument == choice["argument"]), None)
    if option is None:
        return choice[0]
    try:
        value = ast.literal_eval(choice["value"])
    except (SyntaxError, ValueError):  # a name with brackets in it
        return choice[0]
    given = [value] if isinstance(value, str) else value or ()
    values = [one for one in given if isinstance(one, str)]
    return " ".join(f"{option.flag} {shlex.quote(value)}" for value in values) or f"without {option.flag}"
