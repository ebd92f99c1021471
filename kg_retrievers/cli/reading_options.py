"""The options that say how a graph is read, each with the argument of `KnowledgeGraph` that it sets."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: The formats of a graph's file, as `--graph-format` names them.
TABLES = ("csv", "tsv", "pipe", "parquet", "arrow")
ATTRIBUTED = ("graphml", "gexf", "node-link", "neo4j-csv", "apoc-jsonl")
RDF = ("nt", "nq", "ttl", "trig", "rdf", "jsonld", "n3")
FORMATS = (*TABLES, "jsonl", "json", *ATTRIBUTED, *RDF, "wikidata")

#: The formats that `KnowledgeGraph.from_rdf` reads.
ANY_RDF = (*RDF, "wikidata")

_NOT_RDF = tuple(name for name in FORMATS if name not in ANY_RDF)
_TEXT_TABLES = ("csv", "tsv", "pipe")

#: Under which titles the help lists the options.
_ANY, _OF_TABLES, _OF_RDF = "how a graph file is read", "how a table is read", "how RDF is read"

#: The fields of `Limits`, with their defaults.
LIMITS = {
    "unpacked_bytes": "50 times the packed file, at least 128 MiB",
    "line_bytes": "16 MiB",
    "document_bytes": "256 MiB",
    "cell_length": "1,048,576 characters",
    "columns": "1,000",
    "json_depth": "64",
}


@dataclass(frozen=True)
class ReadingOption:
    """An option that says how a graph is read.

    Args:
        flag: The option.
        argument: The argument that it sets: of `KnowledgeGraph.from_file`, of `from_rdf` for RDF, of `from_executor`
            for a database.
        help: What it does, and what holds where it is not given.
        settings: Of `argparse`.
        formats: Those that know it.
        group: The title under which the help lists it.
        of_databases: Whether it is for graph databases as well.
    """

    flag: str
    argument: str
    help: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    formats: Collection[str] = FORMATS
    group: str = _ANY
    of_databases: bool = False

    @property
    def name(self) -> str:
        """The attribute of the parsed options that holds its value."""
        return self.flag.removeprefix("--").replace("-", "_")

    def words(self, value: Any) -> list[str]:
        """Return the words of a command that give it this value.

        Example:
            >>> OPTIONS["columns"].words(["film", "property", "value"]), OPTIONS["header"].words(False)
            (['--columns', 'film,property,value'], ['--no-header'])
        """
        if isinstance(value, bool):
            return [self.flag if value else f"--no-{self.flag.removeprefix('--')}"]
        if self.settings.get("action") == "append":
            return [word for one in value for word in (self.flag, one if isinstance(one, str) else "=".join(one))]
        return [self.flag, value if isinstance(value, str) else ",".join(value)]


def _repeatable(metavar: str, **settings: Any) -> dict[str, Any]:
    return {"action": "append", "metavar": metavar, **settings}


def _limit(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if name not in LIMITS or not value.isdecimal() or not int(value):
        raise argparse.ArgumentTypeError(f"wanted NAME=N, NAME one of {', '.join(LIMITS)}, but got {text!r}")
    return name, value


def _prefix(text: str) -> tuple[str, str]:
    prefix, _, namespace = text.partition("=")
    if not namespace:
        raise argparse.ArgumentTypeError(f"wanted PREFIX=NAMESPACE, as ex=http://example.org/, but got {text!r}")
    return prefix, namespace


_ALL = (
    ReadingOption(
        "--graph-format",
        "format",
        f"if neither the suffix nor the content tells: {', '.join(FORMATS)}",
        {"choices": FORMATS, "metavar": "FORMAT"},
    ),
    ReadingOption(
        "--entities",
        "entities",
        "a second file: labels, aliases, types and attributes of entities",
        {"metavar": "FILE"},
        _NOT_RDF,
    ),
    ReadingOption(
        "--text-relations",
        "text_relations",
        "a relation whose tails are texts, whatever they look like, as postal codes (default: what reads like a number "
        "or date is one); repeatable",
        _repeatable("RELATION"),
        of_databases=True,
    ),
    ReadingOption(
        "--attributes",
        "attributes",
        "attributes of nodes become facts, or are dropped (default: facts)",
        {"choices": ("facts", "drop")},
        (*TABLES, *ATTRIBUTED),
    ),
    ReadingOption(
        "--encoding",
        "encoding",
        "of the files (default: utf-8)",
        {"metavar": "NAME"},
        (*_TEXT_TABLES, "jsonl", "json", "node-link", "neo4j-csv", "apoc-jsonl"),
    ),
    ReadingOption(
        "--on-error",
        "on_error",
        "at a malformed line (default: raise); what is skipped is counted",
        {"choices": ("raise", "skip")},
    ),
    ReadingOption(
        "--read-limit",
        "limits",
        f"what a file may hold: {', '.join(f'{name} ({default})' for name, default in LIMITS.items())}; repeatable",
        _repeatable("NAME=N", type=_limit),
    ),
    ReadingOption(
        "--columns",
        "columns",
        "what the header calls them, where unusual (default: head, subject, source ...), and of a table the source",
        {"type": lambda text: text.split(","), "metavar": "HEAD,RELATION,TAIL[,SOURCE]"},
        (*TABLES, "graphml", "gexf", "node-link"),
        _OF_TABLES,
    ),
    ReadingOption(
        "--header",
        "header",
        "whether the first row names the columns (default: if it looks like it)",
        {"action": argparse.BooleanOptionalAction},
        _TEXT_TABLES,
        _OF_TABLES,
    ),
    ReadingOption(
        "--delimiter",
        "delimiter",
        "what stands between cells (default: found by the first lines)",
        {"metavar": "C"},
        (*_TEXT_TABLES, "neo4j-csv"),
        _OF_TABLES,
    ),
    ReadingOption(
        "--facts",
        "facts",
        "a column whose cells become facts about the head (default: none); repeatable",
        _repeatable("COLUMN"),
        TABLES,
        _OF_TABLES,
    ),
    ReadingOption(
        "--language",
        "languages",
        "of labels and texts, best first; * takes all (default: en); repeatable",
        _repeatable("TAG"),
        ANY_RDF,
        _OF_RDF,
    ),
    ReadingOption(
        "--label-predicate",
        "label_predicates",
        "of labels, best first (default: rdfs:label, skos:prefLabel, schema:name, sdo:name, foaf:name); repeatable",
        _repeatable("IRI"),
        ANY_RDF,
        _OF_RDF,
    ),
    ReadingOption(
        "--alias-predicate",
        "alias_predicates",
        "of aliases (default: skos:altLabel, schema:alternateName, sdo:alternateName); repeatable",
        _repeatable("IRI"),
        ANY_RDF,
        _OF_RDF,
    ),
    ReadingOption(
        "--type-predicate",
        "type_predicates",
        "of types, as wdt:P31 (default: rdf:type); repeatable",
        _repeatable("IRI"),
        ANY_RDF,
        _OF_RDF,
    ),
    ReadingOption(
        "--literals",
        "literals",
        "facts whose tails are literals (default: keep)",
        {"choices": ("keep", "drop")},
        ANY_RDF,
        _OF_RDF,
    ),
    ReadingOption(
        "--named-graph",
        "graphs",
        "a graph to take, default for the one without a name (default: all of them); repeatable",
        _repeatable("IRI"),
        ANY_RDF,
        _OF_RDF,
    ),
    ReadingOption(
        "--blank-nodes",
        "blank_nodes",
        "statements with blank nodes (default: keep)",
        {"choices": ("keep", "drop")},
        ANY_RDF,
        _OF_RDF,
    ),
    ReadingOption(
        "--prefix",
        "prefixes",
        "beside those that are well known and those of the file; repeatable",
        _repeatable("PREFIX=NAMESPACE", type=_prefix),
        ANY_RDF,
        _OF_RDF,
    ),
    ReadingOption(
        "--base-iri",
        "base_iri",
        "what relative IRIs are relative to (default: none)",
        {"metavar": "IRI"},
        ANY_RDF,
        _OF_RDF,
    ),
)

#: The options by the attribute of the parsed options that holds their value.
OPTIONS: Mapping[str, ReadingOption] = {option.name: option for option in _ALL}


def add_reading_options(parser: argparse.ArgumentParser, *format_flags: str) -> None:
    """Add the options to a parser; the one of the format under these names."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for option in OPTIONS.values():
        if option.group not in groups:
            groups[option.group] = parser.add_argument_group(option.group)
        flags: Sequence[str] = format_flags if option.argument == "format" else (option.flag,)
        groups[option.group].add_argument(*flags, dest=option.name, help=option.help, **option.settings)
