"""GNN-RAG's prompt: its words, and its worked examples as paths are written."""

from __future__ import annotations

import pytest

from kg_retrievers.core.path_prompt import ANSWER_PROMPT
from kg_retrievers.graph import Path, Triple
from kg_retrievers.graph.verbalize import path_lines

HERSCHEL = "William Herschel"
URANUS, ENCELADUS, MIMAS = (Triple(HERSCHEL, "discovered", found) for found in ("Uranus", "Enceladus", "Mimas"))
MOON = Triple("Uranus", "moon", "Miranda")


@pytest.mark.parametrize(
    ("start", "path"),
    [("Uranus", [URANUS, ENCELADUS]), ("Uranus", [URANUS, MIMAS]), ("Uranus", [MOON]), ("Miranda", [MOON, URANUS])],
)
def test_worked_examples_are_written_as_paths_are(start: str, path: list[Triple]) -> None:
    (walk,) = path_lines([Path.along(start, path)])
    assert f"\n{walk}\n" in ANSWER_PROMPT.format(question="", evidence="")
