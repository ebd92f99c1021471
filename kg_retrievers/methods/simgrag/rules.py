"""The rules that a match must keep to, one by one: each can be left out, and says what it excludes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

from kg_retrievers.algorithms.candidates import Candidates
from kg_retrievers.core.obstacles import Why
from kg_retrievers.graph import Known, Pattern, PatternTriple, Term
from kg_retrievers.graph.operations import Condition
from kg_retrievers.methods.simgrag.matching import Match
from kg_retrievers.methods.simgrag.trials import WIDE, Trial

#: From texts and a number k to the k nearest names of each text.
Nearest: TypeAlias = Callable[[Sequence[str], int], list[Candidates]]


class Broken(NamedTuple):
    """What is said of an entity that fits only without a rule.

    Attributes:
        text: Why it does not fit, behind the words "fits only".
        fields: The fields of the retriever that leave out the rule; none where a change of the pattern does.
        details: The figures behind it.
    """

    text: str
    fields: dict[str, Any]
    details: dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """A rule.

    Attributes:
        why: The kind of obstacle.
        without: Returns a trial without the rule.
        broken: What is said if a trial has no match with the rule, and one without it.
    """

    why: Why
    without: Callable[[Trial], Trial]
    broken: Callable[[Trial, Match], Broken]


def rules_of(trial: Trial) -> list[Rule]:
    """Return the rules of a trial, in the order in which they are put back."""
    pattern = trial.pattern
    rules = [
        Rule("pruned", lambda one: replace(one, all_relations=True), _far_relations),
        Rule("pruned", lambda one: replace(one, all_names=True), _far_names),
    ]
    if trial.retriever.respects_direction(pattern):
        rules.append(Rule("excluded", lambda one: _with(one, directed=False), _other_direction))
    if any(node.type is not None for node in pattern.nodes) and len(trial.retriever.graph.types):
        rules.append(Rule("excluded", _without_types, _other_type))
    rules += [_condition_rule(condition) for condition in pattern.conditions]
    rules += [_absent_rule(group) for group in pattern.absent_groups()]
    rules += [_different_rule(pair) for pair in pattern.different]
    if trial.retriever.distinct != "none":
        rules.append(Rule("excluded", lambda one: replace(one, any_entities=True), _same_entity))
    return rules


def without(rules: Sequence[Rule], trial: Trial) -> Trial:
    """Return a trial without some rules."""
    for rule in rules:
        trial = rule.without(trial)
    return trial


def read_as_others(trial: Trial, match: Match) -> list[list[str]]:
    """Return the texts of a pattern that are not the names that they match, each with this name."""
    graph, pattern = trial.retriever.graph, trial.pattern
    keys = [graph.entities[int(ids[0])] for ids in match.entities]
    names = [(node, graph.label(key)) for node, key in zip(pattern.nodes, keys, strict=True)]
    for triple, relation in zip(pattern.triples, match.relations, strict=True):
        names += [(triple.relation, graph.relations[relation])] if relation >= 0 else []
    return [
        [term.text, name]
        for term, name in dict.fromkeys(names)
        if isinstance(term, Known) and term.entity is None and term.text != name
    ]


def _with(trial: Trial, **changes: Any) -> Trial:
    return replace(trial, pattern=replace(trial.pattern, **changes))


# --- candidates -------------------------------------------------------------------------------------------------------


def _far_relations(trial: Trial, match: Match) -> Broken:
    """Say which relations are no candidates of the texts that they match."""
    find, own = trial.retriever.index.nearest_relations, trial.retriever.k_relations
    read, most = [], own
    for triple, relation in zip(trial.pattern.triples, match.relations, strict=True):
        if isinstance(triple.relation, Known) and relation >= 0:
            text, name = triple.relation.text, trial.retriever.graph.relations[relation]
            needed = _needed(text, relation, find, own, len(trial.retriever.graph.relations))
            read += [f"{text!r} is read as {name!r}, number {needed} of the relations nearest to it"] * (needed > own)
            most = max(most, needed)
    text = f"if {' and '.join(read)}; k_relations is {own}"
    return Broken(text, {"k_relations": most}, {"needed": most, "k_relations": own})


def _far_names(trial: Trial, match: Match) -> Broken:
    """Say which entities are no candidates of the texts that they match."""
    graph, own = trial.retriever.graph, trial.retriever.k_nodes
    read, most = [], own
    for node, ids in zip(trial.pattern.nodes, match.entities, strict=True):
        if isinstance(node, Known) and node.entity is None:
            label = graph.label(graph.entities[int(ids[0])])
            needed = _needed(node.text, int(ids[0]), trial.retriever.index.nearest_entities, own, WIDE)
            read += [f"{node.text!r} is read as {label!r}, number {needed} of the names nearest to it"] * (needed > own)
            most = max(most, needed)
    return Broken(f"if {' and '.join(read)}; k_nodes is {own}", {"k_nodes": most}, {"needed": most, "k_nodes": own})


def _needed(text: str, id: int, find: Nearest, own: int, most: int) -> int:
    """Return the least number of candidates of a text among which one is; not below what it has."""
    return least(own, most, lambda count: id in find([text], count)[0].ids)


def least(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the least number from which on something holds; the higher one holds.

    Example:
        >>> least(1, 100, lambda number: number >= 37)
        37
    """
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


# --- what the pattern says --------------------------------------------------------------------------------------------


def _other_direction(trial: Trial, match: Match) -> Broken:
    fields = {} if trial.pattern.directed is not None else {"direction": "ignore"}
    return Broken("if a fact is taken the other way round; directions count", fields, {})


def _without_types(trial: Trial) -> Trial:
    """Return a trial in which the types of nodes add to the distance, and exclude nothing."""
    fields: dict[str, Any] = {"k_types": len(trial.retriever.graph.types)}
    if trial.retriever.node_types == "candidates":
        fields["node_types"] = "distance"
    free = trial.with_fields(**fields)
    return _with(free, typed=False) if trial.pattern.typed else free


def _other_type(trial: Trial, match: Match) -> Broken:
    graph, parts = trial.retriever.graph, []
    for node, ids in zip(trial.pattern.nodes, match.entities, strict=True):
        if node.type is not None:
            key = graph.entities[int(ids[0])]
            kinds = ", ".join(map(repr, graph.types_of(key))) or "nothing"
            parts.append(f"{graph.label(key)!r}, which is {kinds}, is taken for {node.type!r}")
    free = _without_types(trial).retriever
    fields = {} if trial.pattern.typed else {"k_types": len(graph.types), "node_types": free.node_types}
    return Broken(f"if {' and '.join(parts)}", fields, {})


def _condition_rule(condition: Condition) -> Rule:
    said = f"{condition.unknown!r} {condition.operator} {condition.value!r}"

    def without(trial: Trial) -> Trial:
        left = tuple(one for one in trial.pattern.conditions if one != condition)
        return _with(trial, conditions=left)

    def broken(trial: Trial, match: Match) -> Broken:
        return Broken(f"without the condition {said}", {}, {"condition": condition.to_dict()})

    return Rule("excluded", without, broken)


def _absent_rule(group: Sequence[PatternTriple]) -> Rule:
    written = Pattern(tuple(group)).to_dict()["triples"]
    said = ", ".join(" -> ".join(map(_shown, triple)) for triple in group)

    def without(trial: Trial) -> Trial:
        left = tuple(triple for triple in trial.pattern.absent if triple not in group)
        names = {end for triple in (*trial.pattern.triples, *left) for end in (triple.head, triple.tail)}
        unknown = {node.name for node in names if not isinstance(node, Known)}
        conditions = tuple(one for one in trial.pattern.conditions if one.unknown in unknown)
        return _with(trial, absent=left, conditions=conditions)

    def broken(trial: Trial, match: Match) -> Broken:
        return Broken(f"since the graph has what is asked to be absent, {said}", {}, {"absent": written})

    return Rule("excluded", without, broken)


def _different_rule(pair: tuple[Term, Term]) -> Rule:
    said = " and ".join(map(_shown, pair))

    def without(trial: Trial) -> Trial:
        return _with(trial, different=tuple(one for one in trial.pattern.different if one != pair))

    def broken(trial: Trial, match: Match) -> Broken:
        return Broken(f"if {said} are the same; they are said to differ", {}, {"different": list(map(_shown, pair))})

    return Rule("excluded", without, broken)


def _same_entity(trial: Trial, match: Match) -> Broken:
    """Say which nodes are one entity in one binding of the match."""
    free, graph = replace(trial, any_entities=True), trial.retriever.graph
    one = free.pinned("none", "break") or match
    same = sorted(_same(trial.pattern, one), key=lambda pair: not isinstance(pair[0], Known))
    said = [
        f"{_shown(first)} and {_shown(other)} are both {graph.label(graph.entities[id])!r}" for first, other, id in same
    ]
    text = f"if {' and '.join(said)}; distinct is {trial.retriever.distinct!r}"
    return Broken(text, {"distinct": "none"}, {"same": [[_shown(first), _shown(other)] for first, other, _ in same]})


def _same(pattern: Pattern, match: Match) -> Iterator[tuple[Term, Term, int]]:
    places = zip(pattern.nodes, (int(ids[0]) for ids in match.entities), strict=True)
    for (one, entity), (other, another) in combinations(places, 2):
        if entity == another:
            yield one, other, entity


def _shown(term: Term) -> str:
    return repr(term.text) if isinstance(term, Known) else f"({term.name})"
