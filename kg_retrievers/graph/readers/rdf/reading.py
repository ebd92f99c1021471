"""What RDF was understood to say: labels, languages, types, literals, blank nodes, graphs, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.iris import Prefixes
from kg_retrievers.graph.readers.rdf.columns import PLAIN_FACTS, RdfColumns
from kg_retrievers.graph.readers.rdf.statements import ALIAS, DEFAULT, FIRST_LABEL, RdfOptions, Statements


def describe_reading(
    statements: Statements, builder: GraphBuilder, columns: RdfColumns, foreign_labels: Counter[str]
) -> None:
    """Fill the `reading` of a builder.

    Args:
        statements: What was collected.
        builder: What came of it.
        columns: How it came.
        foreign_labels: How many labels were taken from each language that is not wanted.
    """
    reading, options = builder.reading, statements.options
    named = {name: statements.uses[FIRST_LABEL - rank] for rank, name in enumerate(options.label_predicates)} | {
        "the end of the IRI": columns.local_names
    }
    kinds = Counter(builder.datatypes.values())
    blanks = columns.blanks
    said = {
        "labels": _counts(named),
        "aliases": _count(statements.uses[ALIAS], f"by {', '.join(options.alias_predicates)}"),
        "languages": _languages(options.languages, foreign_labels),
        "types": _count(len(statements.typed), f"by {', '.join(options.type_predicates)}"),
        "classes and properties": _count(columns.described, "describe types and relations and are no entities"),
        "literals": _count(kinds.total(), f"({_counts(kinds)})"),
        "literals that their datatype does not allow": _count(statements.invalid, "taken as texts"),
        "blank nodes": _count(blanks, f"kept as _:b0 to _:b{blanks - 1}" if blanks > 1 else "kept as _:b0"),
        "graphs": _count(len(statements.graphs), "named ones, kept as sources of facts"),
    }
    said |= {what: _count(columns.plain_facts[what], text) for what, (_, text) in PLAIN_FACTS.items()}
    reading.understood |= {what: text for what, text in said.items() if text}
    reading.leave_out('names in other languages (languages=[..., "*"])', statements.names.left_out)
    reading.leave_out('literals in other languages (languages=[..., "*"])', statements.foreign_count)
    reading.leave_out("types that are blank nodes (type_predicates=())", columns.blank_types)
    for what, count in statements.left_out.items():
        reading.leave_out(what, count)


def given_options(options: RdfOptions, prefixes: Prefixes) -> dict[str, Any]:
    """Return the options that differ from their defaults, but for those of errors and limits; predicates by IRIs."""
    default, given = RdfOptions(), {}
    for name in ("languages", "literals", "blank_nodes", "base_iri"):
        if getattr(options, name) != getattr(default, name):
            given[name] = getattr(options, name)
    for name in ("label_predicates", "alias_predicates", "type_predicates", "graphs"):
        names = getattr(options, name)
        if names is not None and [*names] != [*(getattr(default, name) or ())]:
            given[name] = [one if one == DEFAULT else prefixes.expand(one) for one in names]
    if options.prefixes:
        given["prefixes"] = dict(options.prefixes)
    return {name: [*value] if isinstance(value, tuple) else value for name, value in given.items()}


def _count(count: int, text: str) -> str:
    return f"{count:,} {text}" if count else ""


def _counts(counts: Mapping[str, int]) -> str:
    """Return counts as a text, the greatest first."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count:,}" for name, count in ranked if count)


def _languages(wanted: Sequence[str], foreign: Counter[str]) -> str:
    text = ", then ".join([*wanted, "no language"])
    return f"{text}; {foreign.total():,} labels in others ({_counts(foreign)})" if foreign else text
