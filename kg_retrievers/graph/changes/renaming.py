"""An added graph with other keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from kg_retrievers.graph.building import GraphBuilder, relation_names
from kg_retrievers.graph.changes.labels import is_made_up
from kg_retrievers.graph.changes.merge import Graph, written_relations, written_types
from kg_retrievers.graph.iris import Prefixes
from kg_retrievers.graph.writers.content import GraphContent

G = TypeVar("G", bound=Graph)


class NewTexts(NamedTuple):
    """The new form of keys, of ids of relations and types, of sources and of datatypes, where it differs."""

    entities: dict[str, str]
    relations: dict[str, str]
    types: dict[str, str]
    sources: dict[str, str]
    datatypes: dict[str, str]


def renamed(addition: G, new: NewTexts, prefixes: Prefixes) -> G:
    """Return a graph with other texts, whose prefixes have some of these; entities that get one key become one."""
    builder = GraphBuilder()
    content = GraphContent(addition._columns, addition.prefixes, addition.type_ids)
    labels = _labels(addition.types, written_types(addition), new.types, addition.prefixes, prefixes)
    types = _new_types(addition, new, labels, builder)
    for entity in content.entities():
        key = new.entities.get(entity.key, entity.key)
        builder.entity(key)
        label = None if entity.label == entity.key else entity.label
        if label or entity.aliases or entity.types:
            builder.describe(key, label, entity.aliases, [types[name] for name in entity.types])
        if entity.datatype:
            builder.set_datatype(key, new.datatypes.get(entity.datatype, entity.datatype))
    relations = {id: new.relations.get(id, id) for id in content.relation_ids}
    labels = _labels(content.relations, content.relation_ids, new.relations, addition.prefixes, prefixes)
    builder.relation_labels.update(labels)
    for fact in content.facts():
        head, tail = (new.entities.get(key, key) for key in (fact.head, fact.tail))
        for source in fact.sources or [""]:
            builder.add(head, relations[fact.relation_id], tail, new.sources.get(source, source) or None)
    return _made(addition, new, builder, prefixes)


def _labels(
    names: Iterable[str],
    ids: Iterable[str],
    new: Mapping[str, str],
    before: Mapping[str, str],
    prefixes: Prefixes,
) -> dict[str, str]:
    """Return the labels of relations or types by their new ids; one that was made of an IRI is made anew.

    Args:
        names: What they are called.
        ids: How the source writes them.
        new: Their new ids, where they differ.
        before: The prefixes of the earlier ids.
        prefixes: The prefixes of the new ids.
    """
    labels = {}
    for name, id in zip(names, ids, strict=True):
        label = name.removesuffix(f" ({id})")
        if id in new and (label == id or is_made_up(label, id, before)):
            label = prefixes.name_of(prefixes.expand(new[id]))
        labels[new.get(id, id)] = label
    return {id: label for id, label in labels.items() if label != id}


def _new_types(addition: Graph, new: NewTexts, labels: Mapping[str, str], builder: GraphBuilder) -> dict[str, str]:
    """Return what each type is called now, and say in the builder how its source writes it."""
    ids = {name: new.types.get(id, id) for name, id in zip(addition.types, written_types(addition), strict=True)}
    distinct = [*dict.fromkeys(ids.values())]
    names = dict(zip(distinct, relation_names(distinct, labels), strict=True))
    builder.type_ids = {name: id for id, name in names.items() if name != id}
    return {name: names[id] for name, id in ids.items()}


def _made(addition: G, new: NewTexts, builder: GraphBuilder, prefixes: Prefixes) -> G:
    """Return the graph of a builder, with what is known of the addition."""
    columns, _ = builder.columns()
    made = type(addition)(columns, 0, addition.skipped, reading=addition.reading, type_ids=builder.type_ids)
    made.duplicates = addition.duplicates + len(addition) - len(made)
    names = dict(zip(written_relations(made), made.relations, strict=True))
    ids = dict(zip(addition.relations, written_relations(addition), strict=True))
    made.text_relations = tuple(names[new.relations.get(ids[name], ids[name])] for name in addition.text_relations)
    keys = [key for key in made.entities if key not in builder.datatypes]
    types = (builder.type_ids.get(name, name) for name in made.types)
    made.prefixes = prefixes.used([*keys, *names, *types, *builder.datatypes.values()])
    return made
