"""The command `info`: how a graph was understood, and its contents."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from kg_retrievers.cli import options, sources
from kg_retrievers.cli.options import flag
from kg_retrievers.cli.show import counted, grid, note, show, status, table
from kg_retrievers.cli.sources import Source
from kg_retrievers.errors import DatabaseTimeoutError, InvalidArgumentError, QuerySafetyError, first_of

if TYPE_CHECKING:
    from kg_retrievers.database.executor import Executor
    from kg_retrievers.graph import KnowledgeGraph, Triple
    from kg_retrievers.graph.schema import Schema

#: How many triples are shown as examples.
EXAMPLES = 5

#: How many types are shown of the heads, or the tails, of a relation.
TYPES_SHOWN = 5


def _each(found: re.Match[str]) -> str:
    return " ".join(f"--read {found[1]}={one}" for one in re.findall("'(.*?)'", found[2]))


#: Arguments of Python, such as `literals="keep"` or `languages=[..., "*"]`, and the same on the shell.
_ON_SHELL: dict[str, str | Callable[[re.Match[str]], str]] = {
    r"(\w+)=\[('[^\]]*)\]": _each,
    r" \(\w+=\(\)\)": "",
    r"(\w+)=None": r"without --read \1",
    r"(\w+)=[^\"'()]*([\"'])(.*?)\2\]?": r"--read \1=\3",
    r"limits=Limits\((\w+=\w+)\)": r"--read limits.\1",
}


def info(
    source: Source,
    more: Annotated[list[str], typer.Argument(metavar="[FILE]...", help="As --also.", show_default=False)] = [],
    verify: Annotated[bool, flag("--verify", "Compare a folder with its checksums.")] = False,
    as_json: options.Json = False,
) -> int:
    """Show how a graph was understood, and its contents.

    Example: kg-retrievers info films.csv --columns film,property,value
    """
    source = replace(source, reading=replace(source.reading, also=[*source.reading.also, *more]))
    verified = _verify(source.place) if verify else None
    source.check()
    if source.stays:
        return _describe_database(source, as_json)
    loaded = sources.read_graph(source)
    schema = loaded.schema()
    if as_json:
        about = _described(loaded, schema) | ({} if verified is None else {"verified_bytes": verified})
        print(json.dumps(about), flush=True)
        return 0
    _warn(loaded)
    show(
        _understood(loaded),
        _counts(loaded, schema, verified),
        _relations(loaded, schema),
        *_tables(loaded, schema),
        table(
            "The first triples", ("head", "relation", "tail"), [_named(loaded, triple) for triple in _examples(loaded)]
        ),
    )
    return 0


def _without_words(graph: KnowledgeGraph) -> dict[str, list[str]]:
    """Return the names of relations, and the labels of entities, that are identifiers such as P31 and Q42."""
    from kg_retrievers.methods.subgraph_rag.model import IDENTIFIERS, without_text  # loads numpy

    labels = {graph.label(graph.entities[at]) for at in without_text(graph, IDENTIFIERS).nonzero()[0].tolist()}
    is_identifier = re.compile(rf"(?:\w*:)?(?:{IDENTIFIERS})").fullmatch
    return {"relations": [*filter(is_identifier, graph.relations)], "entities": sorted(labels)}


def _warn(graph: KnowledgeGraph) -> None:
    """Warn of relations and entities that no question can name, and say what to do."""
    for what, names in _without_words(graph).items():
        if names:
            note(
                f"{what} without words: {len(names):,}, such as {first_of(names, 3)}. No question can name them. Give "
                "their labels: --also FILE, or --ontology FILE for RDF, or --entities FILE for a table"
            )


def _verify(place: str) -> int:
    """Compare a folder with its checksums; return how many bytes were read."""
    if not Path(place).is_dir():
        raise InvalidArgumentError(f"--verify is for a folder of `index`, but {place} is none. Leave it out.")
    from kg_retrievers.graph.storage.parts import verify  # loads numpy

    with status(f"verifying {place}"):
        return verify(place)


def _described(graph: KnowledgeGraph, schema: Schema) -> dict[str, Any]:
    """Return all that is known, for programs."""
    relations = [asdict(row) | {"id": graph.relation_id(row.relation)} for row in schema.relations]
    return {
        **asdict(graph.reading),
        **asdict(schema),
        "relations": relations,
        "names": len(graph.names),
        "duplicates": graph.duplicates,
        "skipped": graph.skipped,
        "text_relations": list(graph.text_relations),
        "prefixes": graph.prefixes,
        "examples": _examples(graph),
        "without_words": _without_words(graph),
    }


def _examples(graph: KnowledgeGraph) -> list[Triple]:
    return [graph.triple(id) for id in range(min(EXAMPLES, len(graph)))]


def _named(graph: KnowledgeGraph, triple: Triple) -> tuple[str, str, str]:
    """Return a triple with the labels of its ends, and their keys behind them where these differ."""
    head, tail = (key if (label := graph.label(key)) == key else f"{label} [{key}]" for key in (triple[0], triple[2]))
    return head, triple.relation, tail


def _understood(graph: KnowledgeGraph) -> RenderableType:
    """Lay out the format, and what each part of the source was taken for."""
    rows: list[tuple[str, str | int]] = [
        (f"{what[:1].upper()}{what[1:]}", how) for what, how in sorted(graph.reading.understood.items())
    ]
    if graph.text_relations:
        rows.append(("Texts, not values", ", ".join(graph.text_relations)))
    if changes := graph.reading.changes:
        added, times = counted(changes["added"], "fact"), counted(changes["times"], "change")
        rows.append(("Changed since it was read", f"{added} added and {changes['removed']:,} removed, in {times}"))
    return grid(("Format", graph.reading.format or "not recorded"), *rows)


def _on_shell(text: str) -> str:
    """Return how to keep something in the words of the shell.

    Example:
        >>> _on_shell('literals (literals="keep")'), _on_shell('names in other languages (languages=[..., "*"])')
        ('literals (--read literals=keep)', 'names in other languages (--read languages=*)')
        >>> _on_shell("statements of other graphs (graphs=None)"), _on_shell("classes (type_predicates=())")
        ('statements of other graphs (without --read graphs)', 'classes')
        >>> _on_shell("a long text (limits=Limits(cell_length=N))")
        'a long text (--read limits.cell_length=N)'
        >>> _on_shell("facts=['year'] makes facts about the head of them")
        '--read facts=year makes facts about the head of them'
        >>> _on_shell("facts=['since', 'weight'] makes facts about the head")
        '--read facts=since --read facts=weight makes facts about the head'
    """
    for in_python, on_shell in _ON_SHELL.items():
        text = re.sub(in_python, on_shell, text)
    return text


def _counts(graph: KnowledgeGraph, schema: Schema, verified: int | None) -> RenderableType:
    rows: list[tuple[str, str | int]] = [
        ("Entities", schema.entities),
        ("Labels and aliases", len(graph.names)),
        ("Relations", len(graph.relations)),
        ("Types", len(graph.types)),
        ("Triples", schema.triples),
        ("Repeated triples dropped", graph.duplicates),
        ("Malformed lines skipped", graph.skipped),
    ]
    if verified is not None:
        rows.append(("Verified", f"{verified:,} bytes, all as they were saved"))
    return grid(("", ""), *rows)


def _relations(graph: KnowledgeGraph, schema: Schema) -> RenderableType:
    """Lay out the relations, the most frequent first; with their ids if these differ from the names."""
    has_ids = graph.relation_ids is not None
    rows: list[tuple[str | int, ...]] = []
    for row in schema.relations:
        names = (row.relation, graph.relation_id(row.relation)) if has_ids else (row.relation,)
        values = "" if row.least is None else f"{row.least} ... {row.greatest}"
        heads, tails = first_of(row.head_types, TYPES_SHOWN), first_of(row.tail_types, TYPES_SHOWN)
        rows.append((*names, row.triples, heads, tails, values))
    ids = ("in the source",) if has_ids else ()
    return table("Relations", ("relation", *ids, "triples", "head types", "tail types", "values"), rows)


def _tables(graph: KnowledgeGraph, schema: Schema) -> Iterator[RenderableType]:
    """Lay out what only some graphs have."""
    left_out = {_on_shell(what): count for what, count in graph.reading.left_out.items()}
    for title, columns, counts in (
        ("Left out", ("what", "how many"), left_out),
        ("Types", ("type", "entities"), schema.types),
        ("Datatypes and languages of literals", ("datatype", "literals"), schema.datatypes),
        ("Sources", ("source", "triples"), schema.sources),
        ("Attributes of facts", ("attribute", "triples"), schema.attributes),
    ):
        if counts:
            rows: list[tuple[str, int]] = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            yield table(title, columns, rows)
    if graph.prefixes:
        yield table("Prefixes", ("prefix", "IRI"), sorted(graph.prefixes.items()))


# --- a graph that stays in its database -------------------------------------------------------------------------------


def _describe_database(source: Source, as_json: bool) -> int:
    """Show what a database holds, and what a store says of its names.

    Raises:
        StaleIndexError: If the store is not there, or holds no names, those of another graph or of other embeddings.
    """
    names = about = None
    vectors = source.connection.vectors
    if vectors is not None:
        names = sources.open_names(source, sources.embeddings_of(source.embeddings))
        about = sources.loaded_names(names, source)
    with status(f"asking {source.place}"), closing(sources.open_database(source.place, source)) as database:
        if names is not None:
            names.check_graph(database)
        contents = _contents(database)
    if about is not None:
        contents["names"] = {"in": vectors, **asdict(about), "complete": about.position is None}
    if as_json:
        print(json.dumps({"graph": source.place, "connected": True, **contents}), flush=True)
        return 0
    rows: list[tuple[str, str | int]] = [
        ("Graph", f"{source.place}, which is asked in {contents['dialect']} and stays there"),
        ("Entities", "not counted" if contents["entities"] is None else f"{contents['entities']:,}"),
        ("Triples", "not counted" if contents["triples"] is None else f"{contents['triples']:,}"),
        ("Relations", len(contents["relations"])),
    ]
    if contents["sampled"]:
        rows.append(("Sampled", "there may be more relations and types than these"))
    if about is not None:
        part = "" if about.position is None else ", not all: a load was broken off"
        rows.append(("Names", f"{about.count:,} in {vectors}{part}"))
        rows.append(("Embeddings", f"{about.embeddings}, {about.dimension} numbers"))
    labels = (
        "Types"
        if contents["types_in"] is None
        else f"Labels of nodes; types are in the property {contents['types_in']}"
    )
    rows += [(f"{what[:1].upper()}{what[1:]}", how) for what, how in contents["understood"].items()]
    left_out = contents["left_out"] or {}
    show(
        grid(*rows),
        *([table("Left out", ("what", "how many"), [*left_out.items()])] if left_out else []),
        table("Relations", ("relation",), [(name,) for name in contents["relations"]]),
        table(labels, ("label",), [(name,) for name in contents["labels"]]),
        table("Some triples", ("head", "relation", "tail"), [tuple(fact) for fact in contents["examples"]]),
    )
    return 0


def _contents(database: Executor) -> dict[str, Any]:
    """Return what is known, for programs; None stands for what is not cheap to count."""
    schema = database.schema()
    relations = database.relations(timeout=sources.TIMEOUT)
    entities = None
    if database.dialect != "sparql" and schema.labels:  # graph databases keep this number, endpoints do not
        with suppress(DatabaseTimeoutError, QuerySafetyError):  # some cannot say whether a query only reads
            entities = int(
                database.run("MATCH (n) RETURN count(n) AS nodes", timeout=sources.TIMEOUT).column("nodes")[0]
            )
    reading = None
    with suppress(DatabaseTimeoutError, QuerySafetyError):
        reading = database.reading(timeout=sources.TIMEOUT)
    return {
        "understood": reading.understood if reading else {"left out": "not counted"},
        "left_out": reading.left_out if reading else None,
        "dialect": "SPARQL" if database.dialect == "sparql" else "Cypher",
        "entities": entities,
        "triples": database.count_facts(timeout=sources.TIMEOUT),
        "relations": relations,
        "labels": [label.name for label in schema.labels],
        "types_in": schema.types,
        "sampled": schema.sampled,
        "examples": database.sample_facts(relations[:EXAMPLES], 1, timeout=sources.TIMEOUT).triples
        if relations
        else [],
    }
