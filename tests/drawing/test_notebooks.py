"""What notebooks show, tried in IPython's own shell, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SHOWN = """
import json
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell('''
from kg_retrievers import draw, GraphIndex, HashedEmbeddings, SimGRAGRetriever
from kg_retrievers.evaluation import evaluate
from kg_retrievers.datasets import Question
from kg_retrievers.sample import load_graph
index = GraphIndex.build(load_graph(), HashedEmbeddings())
retriever = SimGRAGRetriever.from_index(index)
documents = retriever.invoke("Which films did Spike Jonze direct?")
report = evaluate(retriever, [Question("Which films did Spike Jonze direct?", answers=("Her",))])
things = {
    "drawing": draw(documents), "documents": documents, "index": index,
    "schema": index.graph.schema(), "report": report,
    "numbers": [1, 2],
}
''').raise_error()
shown = {name: shell.display_formatter.format(thing)[0] for name, thing in shell.user_ns["things"].items()}
print(json.dumps(shown))
"""


@pytest.mark.heavy
def test_each_thing_shows_itself() -> None:
    process = subprocess.run([sys.executable, "-c", SHOWN], capture_output=True, text=True, check=True)
    shown = json.loads(process.stdout.splitlines()[-1])
    html = shown["drawing"]["text/html"]
    assert html.startswith("<img ")
    for name, words in {"report": ("hit", "95 %"), "schema": ("directed_by", "171 entities, 326 triples")}.items():
        for word in words:
            assert word in shown[name]["text/html"], (name, word)
    for name in ("numbers", "documents"):
        assert list(shown[name]) == ["text/plain"], name
