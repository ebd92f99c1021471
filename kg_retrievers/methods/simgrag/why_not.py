"""What keeps an entity out of the answers of the subgraphs nearest to a pattern.

The first of these holds, in this order:

1. The pattern asks for no entity, as by "how many" with the facts of some shown, or names what the graph lacks.
2. No subgraph has the entity in the place of the target: facts are lacking, or a name is read as another entity.
3. One has, but for a rule: candidates (`k_relations`, `k_nodes`), directions, types, conditions, absent triples,
   inequalities, `distinct`.
4. It is found, but another one wins an operation, or it is cut off by a limit, or its rank is above k.

"too_far" cannot occur, and "below_min_confidence" is for all methods the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kg_retrievers.core.obstacles import Lift, Obstacle, Why
from kg_retrievers.errors import EntityLinkingError, RefusalError, SearchBudgetError
from kg_retrievers.graph import Known, Pattern, Unknown
from kg_retrievers.graph.operations import Condition
from kg_retrievers.index import linker_of, question_entities
from kg_retrievers.methods.simgrag.lacking import STAGE, lacking_facts
from kg_retrievers.methods.simgrag.matching import Match
from kg_retrievers.methods.simgrag.rules import Rule, least, read_as_others, rules_of, without
from kg_retrievers.methods.simgrag.seeds import pin_seeds
from kg_retrievers.methods.simgrag.trials import RANKS, Matcher, Trial, ample
from kg_retrievers.methods.simgrag.widening import SAME_DISTANCE
from kg_retrievers.questions.operations import carried_out


def find_obstacle(retriever: Matcher, entity: str, state: Mapping[str, Any]) -> Obstacle | None:
    """Return the first thing that keeps an entity out of the answers; None where nobody can tell.

    Args:
        retriever: The retriever.
        entity: The key of the entity.
        state: What its stages wrote.
    """
    if "pattern" not in state:
        return None
    seeds = state.get("seed_entities") or []
    written = pin_seeds(Pattern.from_dict(state["pattern"]), seeds, retriever.graph)
    try:
        read = carried_out(retriever.index, written).pattern
    except RefusalError as refusal:
        return _not_known(written, refusal)
    read = replace(read, directed=retriever.respects_direction(read))
    try:
        return _Case(retriever, entity, state, read).obstacle()
    except SearchBudgetError:
        return None


def _not_known(written: Pattern, refusal: RefusalError) -> Obstacle:
    """Return the obstacle of a pattern that names, beside an operation or a condition, what the graph lacks."""
    why: Why = "not_linked" if isinstance(refusal, EntityLinkingError) else "no_such_edge"
    plain = replace(written, operation=None, conditions=(), absent=())
    return Obstacle(why, STAGE, refusal.message, Lift(inputs={"pattern": plain.to_dict()}))


class _Case:
    """An entity, and a pattern in which it is no answer.

    Args:
        retriever: The retriever.
        entity: The key of the entity.
        state: What the stages wrote.
        read: The pattern as it is carried out, with its direction decided.
    """

    def __init__(self, retriever: Matcher, entity: str, state: Mapping[str, Any], read: Pattern) -> None:
        self.retriever, self.entity, self.state, self.read = retriever, entity, state, read
        self.graph, self.label = retriever.graph, repr(retriever.graph.label(entity))
        self.trial = self._trial(replace(read, operation=None))

    def obstacle(self) -> Obstacle | None:
        """Return the first thing that keeps the entity out."""
        asks = self.read.operation.kind if self.read.operation else "list"
        if self.read.target is None or asks in ("exists", "compare"):
            return self._not_asked(asks)
        found = self._broken_rule()
        if not isinstance(found, Match):
            return found
        return self._operation(found) if self.read.operation else self._ranked(found)

    def _trial(self, plain: Pattern) -> Trial:
        read = self.read
        nearest = bool(read.operation or read.conditions or read.absent or read.typed)
        return Trial(ample(self.retriever), plain, self.entity, self.state["question"], nearest)

    def _lift(self, pattern: Pattern) -> Lift:
        return Lift(inputs={"pattern": pattern.to_dict()})

    # --- what is asked for --------------------------------------------------------------------------------------------

    def _not_asked(self, asks: str) -> Obstacle | None:
        """Return the obstacle of a pattern that asks for no entity; what lifts it asks for an unknown of it."""
        unknown = [node.name for node in self.read.nodes if isinstance(node, Unknown)]
        if not unknown:
            return None
        plain = [replace(self.read, operation=None, target=name) for name in unknown]
        found = [without(rules_of(trial), trial).match() for trial in map(self._trial, plain)]
        distances = [float("inf") if match is None else match.distance for match in found]
        asked = plain[int(np.argmin(distances))]
        said = {"exists": "whether something holds", "compare": "for a comparison", "list": "for no unknown"}[asks]
        text = f"The question is read to ask {said}: {self.label} cannot be an answer, and stands in no fact shown."
        return Obstacle("excluded", STAGE, text, self._lift(asked), {"asks": asks})

    # --- the rules ----------------------------------------------------------------------------------------------------

    def _broken_rule(self) -> Obstacle | Match | None:
        """Return the first rule that excludes the entity, else its match.

        All rules are left out first, and then put back one after the other.
        """
        rules = rules_of(self.trial)
        match = without(rules, self.trial).match()
        if match is None:
            return self._other_reading() or lacking_facts(self.retriever.index, self.read, self.entity)
        for position, rule in enumerate(rules):
            closer = without(rules[position + 1 :], self.trial).match()
            if closer is None:
                return self._excluded(rule, without(rules[position + 1 :], self.trial), match)
            match = closer
        return match

    def _excluded(self, rule: Rule, trial: Trial, match: Match) -> Obstacle:
        broken = rule.broken(trial, match)
        pattern = rule.without(self.trial).pattern
        changed = pattern != self.trial.pattern
        inputs = {"pattern": replace(pattern, operation=self.read.operation).to_dict()} if changed else {}
        text = f"{self.label} fits only {broken.text}."
        return Obstacle(rule.why, STAGE, text, Lift(fields=broken.fields, inputs=inputs), broken.details)

    def _other_reading(self) -> Obstacle | None:
        """Return the obstacle of a name that is read as one entity, where another one leads to the entity."""
        for node, key in self._other_entities():
            pattern = self.read.with_known({node: replace(node, entity=key)})
            trial = self._trial(replace(pattern, operation=None))
            if without(rules_of(trial), trial).match() is None:
                continue
            seeds = [key if seed == node.entity else seed for seed in self.state.get("seed_entities") or [key]]
            text = f"{node.text!r} is read as {node.entity!r}; {self.label} is found from {key!r}, of the same name."
            lift = Lift(inputs={"seed_entities": seeds, "pattern": pattern.to_dict()})
            return Obstacle("not_linked", "generate_pattern", text, lift, {"read_as": node.entity, "other": key})
        return None

    def _other_entities(self) -> Iterator[tuple[Known, str]]:
        """Yield the pinned nodes of the pattern with the other entities that their words may mean."""
        pinned = [node for node in self.read.nodes if isinstance(node, Known) and node.entity is not None]
        if not pinned:
            return
        try:
            named = question_entities(linker_of(self.retriever.index), self.state["question"])
        except RefusalError:
            named = []
        for node in pinned:
            together = [entity.entities for entity in named if node.entity in entity.entities]
            keys = [key for keys in together for key in keys]
            for key in dict.fromkeys([*keys, *self.graph.entities_named(node.text)]):
                if key != node.entity:
                    yield node, key

    # --- the operation ------------------------------------------------------------------------------------------------

    def _operation(self, match: Match) -> Obstacle | None:
        """Return why an operation does not choose an entity that fits the pattern."""
        assert self.read.operation is not None
        if (cut := self._cut_operation()) is not None:
            return cut
        kind, lift = self.read.operation.kind, self._lift(replace(self.read, operation=None))
        best = self.trial.best()
        if best is not None and match.distance > best.distance + SAME_DISTANCE:
            text = (
                f"{self.label} fits at a distance of {match.distance:.3f}; {kind!r} is asked of the nearest alone, at "
                f"{best.distance:.3f}."
            )
            details = {"distance": match.distance, "best_distance": best.distance}
            return Obstacle("outscored", STAGE, text, lift, details)
        value = self._value(self.read)
        if kind == "count":
            text = f"{self.label} is one of {value}, and the facts of a part of them are shown."
            return Obstacle("pruned", STAGE, text, lift, {"value": value})
        alone = Condition(str(self.read.target), "in", (self.entity,))
        own = self._value(replace(self.read, conditions=(*self.read.conditions, alone)))
        details = {"value": value, "own": own}
        if own is None:
            text = f"{self.label} fits the pattern, but has no value that {kind!r} takes."
            return Obstacle("excluded", STAGE, text, lift, details)
        text = f"{self.label} fits the pattern, but of {kind!r} it has {own}; what is chosen has {value}."
        return Obstacle("outscored", STAGE, text, lift, details)

    def _value(self, pattern: Pattern) -> Any:
        found = self.trial.retriever.match(pattern, 1, question=self.state["question"])
        return found[0].value if found else None

    def _cut_operation(self) -> Obstacle | None:
        """Return the limit that ends an operation; None where it is carried out."""
        limits: dict[str, Any] = {"max_bindings": len(self.graph.entities), "max_scans": self.trial.retriever.max_scans}
        limits |= {"max_seconds": self.trial.retriever.max_seconds}
        changed: dict[str, Any] = {}
        why = self._refused({})
        if not why:
            return None
        for name, enough in limits.items():
            changed[name] = enough
            if not self._refused(changed):
                return Obstacle(
                    "pruned", STAGE, why, Lift(fields={name: enough}), {name: getattr(self.retriever, name)}
                )
        return Obstacle("pruned", STAGE, why, self._lift(replace(self.read, operation=None)))

    def _refused(self, fields: Mapping[str, Any]) -> str:
        try:
            self.retriever.model_copy(update=fields).match(self.read, 1, question=self.state["question"])
        except SearchBudgetError as error:
            return error.message
        return ""

    # --- the ranking --------------------------------------------------------------------------------------------------

    def _ranked(self, match: Match) -> Obstacle | None:
        """Return the first limit that cuts off an entity that fits, or its rank."""
        rank = self.trial.rank(match.distance)
        if rank is None:
            return self._limited(match.distance)
        if self.trial.finds(self.state["k"]):
            return self._out_of_budget()
        return self._outscored(match, rank if self.trial.finds(rank) else least(rank, RANKS, self.trial.finds))

    def _limited(self, distance: float) -> Obstacle | None:
        """Return the first limit that leaves out an entity whatever k is.

        All limits are lifted first, and then put back one after the other.
        """
        own = self.retriever
        free = self.trial.with_fields(max_distance=None, max_bindings=len(self.graph.entities), granularity="subgraph")
        if free.pattern.typed:
            typed, free = free, replace(free, pattern=replace(free.pattern, typed=False))
            if typed.rank(distance) is None:
                text = f"{self.label} fits with other types than those asked for, at a distance of {distance:.3f}."
                lift = self._lift(replace(self.read, typed=False))
                return Obstacle("outscored", STAGE, text, lift, {"distance": distance})
            free = typed
        if free.rank(distance) is None:
            return None
        if own.max_distance is not None and distance > own.max_distance:
            text = f"{self.label} fits at a distance of {distance:.3f}; max_distance is {own.max_distance}."
            return Obstacle("excluded", STAGE, text, Lift(fields={"max_distance": distance}), {"distance": distance})
        bound = free.with_fields(max_bindings=own.max_bindings, max_distance=own.max_distance)
        if bound.rank(distance) is None:
            return self._too_many(free, distance)
        text = f"{self.label} fits with facts that stand in Documents of others (granularity)."
        return Obstacle("pruned", STAGE, text, Lift(fields={"granularity": "subgraph"}))

    def _too_many(self, free: Trial, distance: float) -> Obstacle:
        """Return the obstacle of an unknown with more entities than one piece of evidence holds."""
        own = self.retriever.max_bindings

        def holds(most: int) -> bool:
            return free.with_fields(max_bindings=most).rank(distance) is not None

        needed = least(own, len(self.graph.entities), holds)
        text = f"More than {own} entities fit one place of the pattern (max_bindings), and {self.label} is left out."
        return Obstacle("pruned", STAGE, text, Lift(fields={"max_bindings": needed}), {"needed": needed})

    def _outscored(self, match: Match, rank: int) -> Obstacle:
        """Return the obstacle of an entity whose subgraph is farther away than others."""
        best, read_as = self.trial.best() or match, read_as_others(self.trial, match)
        text = f"{self.label} is in subgraph number {rank}, the nearest first, and k is {self.state['k']}"
        if match.distance > best.distance + SAME_DISTANCE:
            why = " and ".join(f"{text!r} is read as {name!r}" for text, name in read_as)
            text += f": its distance is {match.distance:.3f}, since {why or 'its type differs'}"
            text += f"; the nearest has {best.distance:.3f}"
        else:
            text += ": others are as near"
        details = {"rank": rank, "distance": match.distance, "best_distance": best.distance, "read_as": read_as}
        return Obstacle("outscored", STAGE, f"{text}.", Lift(inputs={"k": rank}), details)

    def _out_of_budget(self) -> Obstacle | None:
        """Return the budget that ends the search before it finds an entity that is among the first k."""
        scans, seconds, k = self.retriever.max_scans, self.retriever.max_seconds, self.state["k"]
        whole = self.trial

        def holds(most: int) -> bool:
            return whole.with_fields(max_scans=most).finds(k)

        if not holds(scans):
            enough = scans
            while enough < whole.retriever.max_scans and not holds(enough):
                enough *= 2
            text = f"The search ended after {scans} adjacency entries (max_scans), before it found {self.label}."
            return Obstacle("pruned", STAGE, text, Lift(fields={"max_scans": enough}), {"enough": enough})
        if seconds is None:
            return None
        text = f"The search ended after {seconds} s (max_seconds), before it found {self.label}."
        return Obstacle("pruned", STAGE, text, Lift(fields={"max_seconds": None}), {"max_seconds": seconds})
