"""Odd paths in every function that takes one: a typed error or a result, and never a wait without end."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KGRetriever,
    KnowledgeGraph,
    NeighborhoodRetriever,
    Report,
    evaluate,
)
from kg_retrievers.core.checkpoint import load_checkpoint, read_header, save_checkpoint
from kg_retrievers.datasets import (
    Question,
    read_metaqa,
    read_pathquestion,
    read_question_set,
    read_questions,
    read_webqsp,
    write_questions,
)
from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.file_writing import write_file
from kg_retrievers.graph.storage.parts import verify
from kg_retrievers.index import EmbeddingCache
from kg_retrievers.methods.subgraph_rag.model import TripleScorer
from kg_retrievers.serving.loading import open_index
from kg_retrievers.training.fit import checked_output


def graph() -> KnowledgeGraph:
    return KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])


def index() -> GraphIndex:
    return GraphIndex.build(graph(), HashedEmbeddings())


def ladybug(path: Path) -> None:
    pytest.importorskip("ladybug")
    from kg_retrievers import LadybugExecutor

    LadybugExecutor(path).close()


def ladybug_of_graph(path: Path) -> None:
    pytest.importorskip("ladybug")
    from kg_retrievers import LadybugExecutor

    LadybugExecutor.from_graph(graph(), path).close()


READS: dict[str, Callable[[Path], Any]] = {
    "KnowledgeGraph.from_file": KnowledgeGraph.from_file,
    "KnowledgeGraph.from_file of a list": lambda path: KnowledgeGraph.from_file([path, path]),
    "KnowledgeGraph.from_file, entities": lambda path: KnowledgeGraph.from_file("facts/facts.tsv", entities=path),
    "KnowledgeGraph.from_rdf": KnowledgeGraph.from_rdf,
    "KnowledgeGraph.from_rdf, ontology": lambda path: KnowledgeGraph.from_rdf(path, ontology=path),
    "KnowledgeGraph.open": KnowledgeGraph.open,
    "GraphIndex.open": lambda path: GraphIndex.open(path, HashedEmbeddings()),
    "GraphIndex.update": lambda path: GraphIndex.update(path, HashedEmbeddings(), added=[("a", "r", "b")]),
    "verify": verify,
    "open_index": open_index,
    "KGRetriever.from_file": KGRetriever.from_file,
    "read_questions": read_questions,
    "read_pathquestion": read_pathquestion,
    "read_metaqa": lambda path: read_metaqa(path, 1),
    "read_webqsp": lambda path: [*read_webqsp(path)],
    "read_webqsp of a split": lambda path: [*read_webqsp(path, "test")],
    "Report.read": Report.read,
    "TripleScorer.from_pretrained": TripleScorer.from_pretrained,
    "load_checkpoint": lambda path: load_checkpoint(path, "subgraph-rag"),
    "read_header": read_header,
    "LadybugExecutor": ladybug,
}
for format in ("metaqa", "pathquestion", "jsonl", "webqsp"):
    READS[f"read_question_set of {format}"] = lambda path, format=format: read_question_set(path, format)

WRITES: dict[str, Callable[[Path], Any]] = {
    "KnowledgeGraph.save": lambda path: graph().save(path),
    "GraphIndex.build": lambda path: GraphIndex.build(graph(), HashedEmbeddings(), path),
    "GraphIndex.build, cache": lambda path: GraphIndex.build(graph(), HashedEmbeddings(), cache=path),
    "EmbeddingCache": EmbeddingCache,
    "write_questions": lambda path: write_questions(path, [Question("Who directed Her?")]),
    "evaluate": lambda path: evaluate(
        NeighborhoodRetriever(index()), [Question("Her", ("Her",), ("Her",))], records=path
    ),
    "save_checkpoint": lambda path: save_checkpoint(path, "subgraph-rag", {}, {"bias": np.zeros(1, np.float32)}),
    "write_file": lambda path: write_file(path, "text"),
    "checked_output": lambda path: checked_output("train", path),
    "LadybugExecutor.from_graph": ladybug_of_graph,
}
for format in ("jsonl", "csv", "graphml", "nt", "parquet"):
    WRITES[f"KnowledgeGraph.write of {format}"] = lambda path, format=format: graph().write(path, format)


@pytest.fixture
def odd_paths(tmp_path: Path) -> Iterator[dict[str, Path]]:
    """Paths that no file can have, and others that a reader would wait for."""
    os.mkfifo(tmp_path / "pipe")
    os.symlink("loop", tmp_path / "loop")
    os.symlink("/dev/zero", tmp_path / "zero")
    for name in (
        "manifest.json",
        "model.safetensors",
        "config.json",
        "1-hop",
        "PQ-2H.txt",
        "test.jsonl",
        ".writer.lock",
    ):
        (tmp_path / "pipes").mkdir(exist_ok=True)
        os.mkfifo(tmp_path / "pipes" / name)
    (tmp_path / "file").write_text("text")
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "facts.tsv").write_text("Her\tdirected_by\tSpike Jonze\n")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket"))
        yield {
            "NUL": tmp_path / "a\0b",
            "surrogate": tmp_path / "a\ud800b",
            "300 characters": tmp_path / ("a" * 300),
            "5,000 characters": tmp_path / "/".join(["a" * 100] * 50),
            "under a file": tmp_path / "file" / "a",
            "missing folder": tmp_path / "none" / "a",
            "empty": Path(""),
            **{name: tmp_path / name for name in ("pipe", "loop", "zero", "socket", "pipes")},
            "folder": tmp_path,
        }


class EndlessError(BaseException):
    """A wait that nobody ends, which no handler of errors takes for one of its own."""


def too_long(*_: Any) -> None:
    raise EndlessError


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_an_odd_path_is_a_typed_error(odd_paths: dict[str, Path], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(odd_paths["folder"])
    signal.signal(signal.SIGALRM, too_long)
    untyped = dict[str, str]()
    for kind, path in odd_paths.items():
        signal.alarm(5)
        try:
            (READS | WRITES)[name](path)
            if name in READS:
                untyped[kind] = "no error"
        except KGRetrieversError as error:
            str(error).encode()
        except (Exception, EndlessError) as error:
            untyped[kind] = repr(error)[:200]
        finally:
            signal.alarm(0)
    assert not untyped
