"""Turn scored paths into evidence, for GNN-RAG and for relation paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kg_retrievers.graph import Evidence, Path
from kg_retrievers.graph.types import path_rows


@dataclass(frozen=True)
class ScoredPath:
    """A path that leads to a proposed answer, its last entity.

    Args:
        path: The walk, from an entity of the question.
        score: How well it fits. Higher is better.
    """

    path: Path
    score: float

    @property
    def answer(self) -> str:
        """The key of the entity at its end."""
        return self.path.entities[-1]


def relation_path(path: Path) -> tuple[tuple[str, str], ...]:
    """Return the relations of a path with their directions.

    The direction is "forward" (from head to tail) or "backward".

    A triple from an entity to itself is crossed forward.

    Example:
        >>> from kg_retrievers import Triple
        >>> triples = (Triple("Her", "directed_by", "Spike Jonze"), Triple("Adaptation", "directed_by", "Spike Jonze"))
        >>> relation_path(Path(("Her", "Spike Jonze", "Adaptation"), triples))
        (('directed_by', 'forward'), ('directed_by', 'backward'))
    """
    return tuple(
        (triple.relation, "forward" if triple.tail == there else "backward")
        for there, triple in zip(path.entities[1:], path.triples, strict=True)
    )


def path_evidence(
    paths: Sequence[ScoredPath], *, merge: bool, truncated: bool, details: Mapping[str, Any]
) -> list[Evidence]:
    """Return evidence of paths, by falling score.

    A path that occurs twice counts once, with its higher score. A path without triples shows nothing and is left out.

    Args:
        paths: The paths, in any order.
        merge: Whether paths of one relation path, whatever their first entity, form one piece of evidence. Its triples
            are the triples of the paths, path after path, each once. Its score is the highest score of the paths. Its
            answers are the ends of the paths by falling score. Of two such pieces with one score, the piece whose ends
            have the higher sum of scores comes first, then the one whose path came first. If not, each path is a piece
            of evidence, in stable order.
        truncated: Whether a limit cut the search for paths.
        details: The details of each piece. `path_evidence` adds "relation_path", which is `[[relation, "forward" or
            "backward"], ...]`, and "paths", as `path_rows` writes them.
    """
    best: dict[Path, ScoredPath] = {}
    for scored in sorted(paths, key=lambda scored: -scored.score):
        if scored.path.triples:
            best.setdefault(scored.path, scored)
    groups: dict[object, list[ScoredPath]] = {}
    for scored in best.values():
        groups.setdefault(relation_path(scored.path) if merge else scored.path, []).append(scored)
    ranked: list[tuple[float, float, Evidence]] = []
    for group in groups.values():
        ends: dict[str, float] = {}
        for scored in group:
            ends.setdefault(scored.answer, scored.score)
        triples = tuple(dict.fromkeys(triple for scored in group for triple in scored.path.triples))
        item = Evidence(
            triples=triples,
            score=group[0].score,
            answers=tuple(ends),
            truncated=truncated,
            details={
                **details,
                "relation_path": [list(step) for step in relation_path(group[0].path)],
                "paths": path_rows((scored.path for scored in group), triples),
            },
        )
        ranked.append((item.score, sum(ends.values()) if merge else 0.0, item))
    ranked.sort(key=lambda row: (-row[0], -row[1]))
    return [item for _, _, item in ranked]
