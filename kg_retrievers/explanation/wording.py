"""The parts of an explanation in plain lines."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence

from kg_retrievers.core.obstacles import Lift
from kg_retrievers.explanation.considered import Considered
from kg_retrievers.explanation.named import NamedEntity, NamedRelation
from kg_retrievers.graph import pattern_lines
from kg_retrievers.graph.shown_text import as_data, one_line
from kg_retrievers.graph.verbalize import readable

#: The most lines of one kind; data have all.
MOST_LINES = 12

#: The most characters of a value that a lift sets.
MOST_CHARACTERS = 120

#: How words name an entity.
HOW = {
    "exact": "exactly",
    "case": "but for case or signs",
    "alias": "by another name",
    "short": "in short",
    "fuzzy": "but for some letters",
    "similar": "as the nearest name",
}


def lift_lines(lift: Lift) -> list[str]:
    """Return what a lift changes, a line each.

    Example:
        >>> lift_lines(Lift(fields={"max_hops": 2}, inputs={"k": 7}))
        ['the field max_hops=2', 'invoke(..., k=7)']
        >>> lift_lines(Lift(members={"GNNRAGRetriever": Lift(fields={"max_candidates": 5})}))
        ['of the GNNRAGRetriever: the field max_candidates=5']
        >>> lift_lines(Lift(inputs={"pattern": {"triples": [["Her", "directed_by", {"unknown": "x"}]], "target": "x"}}))
        ['the pattern: find ?x; Her -> directed_by -> ?x']
    """
    fields = [f"the field {name}={_value(value)}" for name, value in lift.fields.items()]
    inputs = [_input_line(name, value) for name, value in lift.inputs.items()]
    facts = [f"add the fact {one_line(' -> '.join(fact))}" for fact in lift.facts]
    members = [f"of the {name}: {line}" for name, member in lift.members.items() for line in lift_lines(member)]
    return fields + inputs + facts + members


#: The options of `kg-retrievers ask` for arguments of `invoke`.
OPTIONS = {"k": "--k", "min_confidence": "--min-confidence", "seed_entities": "--seed"}


def shell_lines(lift: Lift) -> list[str]:
    """Return what a lift changes as `kg-retrievers ask` is told it, a line each; in Python what no option sets.

    Example:
        >>> shell_lines(Lift(fields={"max_nodes": None}, inputs={"k": 7, "seed_entities": ["d2", "Amy Adams"]}))
        ['--field max_nodes=null', '--k 7', "--seed d2 --seed 'Amy Adams'"]
        >>> shell_lines(Lift(members={"GNNRAGRetriever": Lift(fields={"max_candidates": 5})}))
        ['of the GNNRAGRetriever: the field max_candidates=5']
    """
    fields = [f"--field {shlex.quote(f'{name}={_option(value)}')}" for name, value in lift.fields.items()]
    inputs = list[str]()
    for name in (name for name in OPTIONS if name in lift.inputs):
        value = lift.inputs[name]
        values = value if isinstance(value, list) else [value]
        inputs.append(" ".join(f"{OPTIONS[name]} {shlex.quote(one_line(str(one)))}" for one in values))
    others = {name: value for name, value in lift.inputs.items() if name not in OPTIONS}
    return fields + inputs + lift_lines(Lift(inputs=others, facts=lift.facts, members=lift.members))


def _input_line(name: str, value: object) -> str:
    """Return what an argument of `invoke` is set to; a pattern is told by its lines."""
    if name == "pattern" and isinstance(value, Mapping) and value.get("triples"):
        target = [f"find ?{value['target']}"] if value.get("target") and not value.get("operation") else []
        return f"the pattern: {one_line('; '.join([*target, *pattern_lines(value)]))}"
    return f"invoke(..., {name}={_value(value)})"


def _option(value: object) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, default=str))


def _value(value: object) -> str:
    written = one_line(json.dumps(value, ensure_ascii=False, default=str) if value is not None else "None")
    return written if len(written) <= MOST_CHARACTERS else f"{written[: MOST_CHARACTERS - 3]}..."


def section(title: str, lines: Sequence[str]) -> list[str]:
    """Return a title with the first of some lines below it; nothing where there are none."""
    more = len(lines) - MOST_LINES
    shown = [*lines[:MOST_LINES], *([f"... and {more} more"] if more > 0 else [])]
    return [title, *(f"  {line}" for line in shown)] if shown else []


def entity_line(one: NamedEntity) -> str:
    """Return which words name an entity, and what else they may mean."""
    text, label = one_line(one.text), one_line(one.label)
    key = "" if one.key == one.label else f" [{one_line(one.key)}]"
    likeness = "" if one.likeness is None else f" ({one.likeness:.2f})"
    if one.how == "given":
        line = f"{label!r}{key} is given; the question does not name it"
    else:
        line = f"{text!r} names {label!r}{key} {HOW.get(one.how, one.how)}{likeness}"
    others = [f"{one_line(other.label)!r} [{one_line(other.key)}] ({other.likeness:.2f})" for other in one.others[:3]]
    return f"{line}; or {', '.join(others)}" if others else line


def relation_line(one: NamedRelation) -> str:
    """Return which words name a relation."""
    likeness = "" if one.likeness is None else f" (cosine {one.likeness:.2f})"
    name, text = as_data(readable(one.relation)), one_line(one.text)
    if one.how == "pattern" and readable(one.text) == readable(one.relation):
        return f"{name!r}, as the pattern says"
    if one.how == "pattern":
        return f"{text!r} of the pattern stands for {name!r}{likeness}"
    return f"{text!r} comes nearest to {name!r}{likeness}"


def considered_lines(found: Considered) -> list[str]:
    """Return what was considered besides."""
    lines = list[str]()
    if found.facts is not None:
        lines.append(f"within reach: {found.facts:,} facts between {found.entities:,} entities")
    if found.relations:
        nearest = ", ".join(f"{as_data(one.label)!r} ({one.likeness:.2f})" for one in found.relations)
        lines.append(f"the relations nearest to the words of the question alone: {nearest}")
    for one in found.after:
        beyond = "" if one.is_returned else ", beyond k"
        lines.append(f"next: Document {one.rank}, score {one.score:.3f}{beyond}: {one.shown}")
    if found.note:
        lines.append(found.note)
    elif not found.after:
        lines.append("nothing comes next")
    return lines
