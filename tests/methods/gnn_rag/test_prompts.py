"""GNN-RAG's prompt: its words, and its worked examples as paths are written."""

from __future__ import annotations

from pathlib import Path as File

import pytest

from kg_retrievers.core.path_prompt import ANSWER_PROMPT
from kg_retrievers.core.prompts import check_placeholders
from kg_retrievers.graph import Path, Triple
from kg_retrievers.graph.verbalize import path_lines
from kg_retrievers.methods.gnn_rag.prompts import PROMPTS

HERSCHEL = "William Herschel"
URANUS, ENCELADUS, MIMAS = (Triple(HERSCHEL, "discovered", found) for found in ("Uranus", "Enceladus", "Mimas"))
MOON = Triple("Uranus", "moon", "Miranda")


@pytest.mark.parametrize("name", ["answer", "A", "B", "C"])
def test_prompt_snapshot(name: str) -> None:
    """A change of words shows here: bump `VERSION`, then delete the snapshot and run the test again."""
    prompt = PROMPTS.get(name, ANSWER_PROMPT)
    check_placeholders(prompt, ["question", "evidence"], name)
    snapshot = File(__file__).parents[2] / "snapshots" / f"gnn_rag_{name}_prompt.txt"
    text = prompt.format(question="who directed {Her}?", evidence="[1]\nHer -> directed by -> Spike Jonze") + "\n"
    if not snapshot.exists():
        snapshot.write_text(text, encoding="utf-8")
        pytest.fail(f"{snapshot.name} was missing and has been written; look at it and run again.")
    assert text == snapshot.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("start", "path"),
    [("Uranus", [URANUS, ENCELADUS]), ("Uranus", [URANUS, MIMAS]), ("Uranus", [MOON]), ("Miranda", [MOON, URANUS])],
)
def test_worked_examples_are_written_as_paths_are(start: str, path: list[Triple]) -> None:
    (walk,) = path_lines([Path.along(start, path)])
    assert f"\n{walk}\n" in ANSWER_PROMPT.format(question="", evidence="")
