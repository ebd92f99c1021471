"""Errors: their hints, their way between processes, and what installs an extra."""

from __future__ import annotations

import asyncio
import inspect
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kg_retrievers
from kg_retrievers import (
    EntityLinker,
    FollowUpReader,
    GraphIndex,
    KGRetriever,
    KnowledgeGraph,
    Question,
    SimGRAGRetriever,
    agents,
    chains,
    default_embeddings,
    errors,
    join_graphs,
    llama_index,
    why_not,
)
from kg_retrievers.agents.toolkit import KnowledgeGraphToolkit
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError, MissingExtraError, PatternError
from kg_retrievers.graph import Unknown
from kg_retrievers.graph.operations import Operation
from kg_retrievers.testing import tiny_graph

HINTS = {"hint_python": "Call f(x=1).", "hint_shell": "Give --x 1."}

#: What the errors that take more than a message are made of, by the names of their arguments.
ARGUMENTS = {
    "feature": "drawing",
    "extra": "mcp",
    "path": "films.csv",
    "line": 3,
    "reason": "It is empty.",
    "reply": "hm",
    "token": "DELETE",
    "position": 4,
    "query": "MATCH (n) RETURN n",
    "names": ["A"],
    "confidence": 0.25,
    "unplaced": ["salary"],
    "nearest": ["works_for"],
    "suggestions": ["Her"],
    "message": "f: x is missing.",
}


def kinds() -> list[type[KGRetrieversError]]:
    """All errors of the package."""
    found = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, KGRetrieversError)]
    assert len(found) > 20
    return found


def made(kind: type[KGRetrieversError]) -> KGRetrieversError:
    """Return an error of this kind, with hints where it takes some."""
    names = inspect.signature(kind).parameters
    hints = {} if kind is errors.MissingExtraError else HINTS
    return kind(**{name: value for name, value in ARGUMENTS.items() if name in names}, **hints)


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_an_error_carries_its_hints_and_can_be_pickled(kind: type[KGRetrieversError]) -> None:
    error = made(kind)
    if kind is not errors.MissingExtraError:  # whose hint is the same line in Python and on the shell
        assert error.hints == HINTS
        assert str(error) == f"{error.message} Call f(x=1)."
        assert error.on_shell == f"{error.message} Give --x 1."
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize(
    ("record", "wanted"),
    [
        (None, "kg-retrievers[mcp]"),
        ({"url": "file:///my%20place", "dir_info": {"editable": True}}, "/my place[mcp]"),
        ({"url": "file:///a/kg.whl", "archive_info": {}}, "/a/kg.whl[mcp]"),
        ({"url": "https://a.org/kg.whl", "archive_info": {}}, "kg-retrievers[mcp] @ https://a.org/kg.whl"),
        (
            {"url": "https://a.org/kg.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
            "kg-retrievers[mcp] @ git+https://a.org/kg.git@c0ffee",
        ),
    ],
)
def test_an_extra_comes_from_where_the_package_came_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, record: dict[str, Any] | None, wanted: str
) -> None:
    """From an index by its name, if no record says that the package came from elsewhere."""
    folder = tmp_path / "kg_retrievers-9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: kg-retrievers\nVersion: 9\n", "utf-8")
    if record:
        (folder / "direct_url.json").write_text(json.dumps(record), "utf-8")
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    editable = "-e " if record and record.get("dir_info") else ""
    assert str(errors.MissingExtraError("A picture", "mcp")).endswith(f'Run: pip install {editable}"{wanted}"')


INDEX = GraphIndex.build(tiny_graph())

#: Functions that hand further arguments on: the arguments that they need, and one that does not exist.
HANDED_ON: list[tuple[Callable[[], object], str]] = [
    (lambda: KGRetriever.from_index(INDEX, top_k=3), "no field 'top_k'; did you mean 'k'"),
    (lambda: KGRetriever.from_index(INDEX).invoke("?", search_kwargs={}), "no argument 'search_kwargs'; did you"),
    (lambda: KGRetriever.from_index(INDEX).invoke("?", pattern={}), "; it takes k, seed_entities, min_confidence, on_"),
    (
        lambda: chains.answer_chain(KGRetriever.from_index(INDEX)).invoke("?", k=3),
        "Retrieval.invoke: there is no argument 'k'",
    ),
    (lambda: llama_index.as_llama_index(KGRetriever.from_index(INDEX), top_k=3), "no argument 'top_k'; did you mean"),
    (lambda: llama_index.as_llama_index(KGRetriever.from_index(INDEX)).as_query_engine(lm=3), "'lm'; did you mean"),
    (lambda: why_not(KGRetriever.from_index(INDEX), "?", "Her", top_k=3), "no argument 'top_k'; did you mean 'k'?"),
    (lambda: INDEX.with_changes(add=[("a", "b", "c")]), "no argument 'add'; did you mean 'added'?"),
    (lambda: INDEX.view(role="x"), "no argument 'role'; did you mean where={'role': ...}?"),
]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        *HANDED_ON,
        (lambda: GraphIndex.build(tiny_graph(), worker=2), "GraphIndex.build: there is no argument 'worker'; did you"),
        (lambda: KnowledgeGraph.from_file("a.csv", column="x"), "KnowledgeGraph.from_file: there is no argument 'colu"),
        (lambda: KnowledgeGraphToolkit(max_tokens=9), "KnowledgeGraphToolkit: missing a required argument: 'index'"),
        (lambda: KnowledgeGraph.from_file("a.ttl", "b.ttl"), "but got 'a.ttl', 'b.ttl'. Give several as one list, or"),
        (lambda: KGRetriever.from_file("a.ttl", "b.ttl"), "but got 'a.ttl', 'b.ttl'. Give several as one list, or"),
        (lambda: Question(answer="Her"), "Question: there is no argument 'answer'; did you mean 'answers'?"),
        (lambda: Question(question="Who?"), "Question: there is no argument 'question'; did you mean 'text'?"),
        (lambda: default_embeddings("mini"), "default_embeddings takes no argument. Leave out what you give."),
        (lambda: KGRetriever.from_index(INDEX).invoke("?", query="x"), "KGRetriever: there is no argument 'query'; it"),
        (lambda: agents.Budget(token=3), "Budget: there is no argument 'token'; did you mean 'tokens'?"),
    ],
)
def test_a_misspelt_argument_names_the_nearest(call: Callable[[], object], told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape(told)):
        call()


GRAPH = KnowledgeGraph.from_triples([("p1", "keeps", "h1", {"role": "boss"})], labels={"p1": "Ada"})


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: tiny_graph().view(as_of="2020"), "Attributes: none. Leave it out, or give facts attributes: further"),
        (lambda: GRAPH.attributes("p1"), "wanted a fact (head, relation, tail), but got 'p1'. An entity has facts: "),
        (lambda: list(GRAPH.triples("Ada")), "no entity with the key 'Ada'. The key of 'Ada' is 'p1'."),
        (lambda: list(GRAPH.triples("keeps")), "no entity with the key 'keeps'. It is a relation: relation='keeps'."),
        (lambda: GraphIndex.open(INDEX.embeddings, "idx"), "wanted a folder, then embeddings, but got <kg_"),
        (lambda: GraphIndex.update(INDEX.embeddings, "idx"), "wanted a folder, then embeddings, but got <kg_"),
        (lambda: KGRetriever.from_index(INDEX).batch("Who?"), "a list of questions, got 'Who?'. Put it into a list."),
        (lambda: asyncio.run(KGRetriever.from_index(INDEX).abatch("Who?")), "a list of questions, got 'Who?'."),
        (lambda: SimGRAGRetriever.from_index(INDEX, preset="papers"), "no preset 'papers'; did you mean 'paper'?"),
        (lambda: kg_retrievers.compare("run.jsonl"), "wanted a list of one Report or more, but got 'run.jsonl'"),
        (lambda: kg_retrievers.compare([INDEX]), "wanted a list of one Report or more, but got [GraphIndex("),
        (lambda: kg_retrievers.evaluate(KGRetriever.from_index(INDEX), "q.jsonl"), "Read a file with read_questions("),
        (lambda: EntityLinker(GRAPH), "EntityLinker: wanted a GraphIndex, but got KnowledgeGraph("),
        (lambda: FollowUpReader(INDEX).invoke("Who?"), 'wanted {"question": ..., "turns": [...]}, but got \'Who?\'.'),
        (lambda: join_graphs([GRAPH]), "join_graphs: wanted a list of Question, but got [KnowledgeGraph("),
        (lambda: GRAPH.with_changes(removed=[("p1", "keeps", "h2")]), "Some facts of 'p1' lead to 'h1'."),
        (lambda: GRAPH.with_changes(added=("p1", "keeps", "h2")), "Give a list of triples: [(head, relation, tail)"),
        (lambda: Operation("average"), "but got 'average'; did you mean 'mean'?"),
        (lambda: KnowledgeGraph.from_file("a.ttl", schema="keep"), "KnowledgeGraph.from_rdf takes 'schema'."),
        (lambda: Unknown(3), "Unknown: the name must be a text, such as 'film 1', but got 3."),
        (lambda: GRAPH.triple("p1"), "from 0 to 0, but got 'p1'. Keys find facts by graph.triples(head, "),
        (lambda: KGRetriever.from_file(GRAPH), "A graph: KGRetriever.from_index(GraphIndex.build(graph))."),
        (lambda: KGRetriever.from_file("bolt://localhost:1"), "GraphIndex.connect(Neo4jExecutor(address), embeddings)"),
        (lambda: KnowledgeGraph.from_file("https://x.org/a.ttl"), "Save a file of the web first."),
        (lambda: KnowledgeGraph.from_file("a.csv", head="film"), "did you mean 'columns'?"),
        (lambda: KnowledgeGraph.from_file("a.csv", columns="a, b,c"), "a list of texts, such as ['a', 'b', 'c']"),
        (lambda: GRAPH.save("out.csv"), "Name a folder, or write a file: graph.write('out.csv')."),
        (lambda: GraphIndex.build(GRAPH, path="out.ttl"), "wanted a folder, but got 'out.ttl', the name of a file."),
        (lambda: GraphIndex.build(GRAPH, "MiniLM"), "such as local_embeddings("),
        (lambda: SimGRAGRetriever.from_index(INDEX, embeddings=INDEX.embeddings), "GraphIndex.build takes it."),
        (lambda: SimGRAGRetriever.from_index(INDEX).invoke("Who?", pattern=[("a", "b", "c")]), "Give Pattern.of((head"),
        (lambda: agents.load_chat_model("antropic:claude"), "no provider 'antropic'; did you mean 'anthropic'?"),
        (lambda: chains.fact_verification_chain(INDEX), "Make one: load_chat_model("),
        (lambda: kg_retrievers.explain("Who?", INDEX), "Call explain(retriever.invoke(question)[0], retriever)."),
        (lambda: kg_retrievers.why_not("Who?", INDEX, "p1"), "Call why_not(retriever, question, entity)."),
        (lambda: agents.build_router([3]), "wanted retrievers by name, such as {'kg': retriever}, but got [3]."),
    ],
)
def test_a_wrong_argument_is_told_with_the_next_step(call: Callable[[], object], told: str) -> None:
    with pytest.raises((InvalidArgumentError, PatternError), match=re.escape(told)):
        call()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: KnowledgeGraph.from_csv("a.csv"), "KnowledgeGraph has no 'from_csv'. Read a graph with from_file("),
        (lambda: GRAPH.nodes, "KnowledgeGraph has no 'nodes'."),
        (lambda: KGRetriever.from_documents([]), "KGRetriever has no 'from_documents'. Make one with from_file("),
        (lambda: GraphIndex.load("idx"), "GraphIndex has no 'load'. Make an index with build(graph), and open a saved"),
        (lambda: INDEX.search("Ada"), "EntityLinker(index).link(text) finds the entities of a text."),
    ],
)
def test_a_name_of_another_library_is_told_with_ours(call: Callable[[], object], told: str) -> None:
    with pytest.raises((AttributeError, TypeError), match=re.escape(told)):
        call()


def test_every_public_function_refuses_an_unknown_argument() -> None:
    """Except classes that the package makes, and `HANDED_ON`."""
    made_by_us = {"Evidence", "Path", "Triple", "Reading", "Report", "Workflow", "LlamaIndexRetriever"}
    made_by_us |= {"GraphReasoner", "TripleScorer"}
    checked = set()
    for package in (kg_retrievers, chains, agents, llama_index):
        for name in dir(package):
            try:
                public = getattr(package, name)
            except MissingExtraError:
                continue
            is_class = inspect.isclass(public) and "__init__" in vars(public)
            if not (is_class or inspect.isfunction(public)) or name.startswith("_") or name in made_by_us:
                continue
            if is_class and issubclass(public, BaseKGRetriever | BaseException):
                continue
            with pytest.raises((InvalidArgumentError, PatternError), match=r"no_such_argument|missing a required"):
                public(no_such_argument=1)
            checked.add(name)
    assert len(checked) > 40
