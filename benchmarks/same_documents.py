r"""Freeze the answers of one version of the package and compare another version with them.

    python benchmarks/same_documents.py --models MODELS --output FROZEN [--limit 200] [--only NAME ...]
    python benchmarks/same_documents.py --models MODELS --against FROZEN [--exact] [--limit 200] [--only NAME ...]

PYTHONPATH chooses the version: the package, its examples and its hand-made graphs are those of that checkout. Set
OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1 in both runs, and use the same folder of models. Missing models are trained
first, on 600 questions that are never asked (on the hand-made graphs: on their 15 examples).

Each section is one configuration and becomes one file in `--output`. `--only` takes names or patterns, such as
`metaqa/simgrag` or "hashed/*", and `--list` prints all names. A smaller `--limit` asks the first questions of a larger
one, so frozen answers of any limit can be compared.

The comparison prints how many questions have the same evidence (content, triples, answers, value, score and
confidence) and how many have the same Documents in full (id and all metadata except durations). It counts the
outcomes of both versions. The exit status is 1 if a section fails or if a new count leaves the 95 % Wilson interval of
the frozen share. With `--exact` it is 1 if any Document differs.

An answer is right if it is the exact value or exactly the set of gold answers, partly right if it holds one of them,
and refused if there are no Documents. If a method proposes no answers, the entities of its facts count: right if they
hold all gold answers, partly right if they hold one.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from fnmatch import fnmatch
from functools import cache
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import kg_retrievers as kg
from kg_retrievers.errors import RefusalError
from kg_retrievers.methods import registry

sys.path.insert(0, str(Path(__file__).parent))
ROOT = Path(kg.__file__).parents[1]
DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", ROOT.parent / "shared" / "data"))
OUTCOMES = ("right", "partly", "wrong", "refused")
TRAINING_QUESTIONS = 600

#: What decides the answer of a method with these names: time limits are lifted, so that a busy machine changes nothing.
UNLIMITED = {"max_seconds": None}

#: The hand-made graphs whose questions are asked: those with examples.
OWN_GRAPHS = ("dev/cookery", "dev/railway", "test/books", "test/hospital", "test/zoo")

#: The graphs of the questions with operations, and their files.
OPERATIONS = {
    "sample": ("dev", "held_out"),
    "huts": ("dev", "held_out"),
    "newspapers": ("dev", "held_out"),
    "check/bridges": ("questions",),
}


class Asked(NamedTuple):
    """A question with its gold answers, or its gold value."""

    text: str
    answers: Sequence[str] = ()
    value: Any = None


#: The questions about the sample graph that the shell is asked.
ASKED_ON_SHELL = (
    Asked("Who directed Her?", ["Spike Jonze"]),
    Asked("How many films did Spike Jonze direct?", value=2),
    Asked("Which films did Christopher Nolan direct?", ["Memento", "Inception", "Interstellar", "Oppenheimer"]),
    Asked("Which science fiction films star Amy Adams?", ["Her", "Arrival"]),
    Asked("Was Her released before 2010?", value=False),
    Asked("Who directed Tom Kidman?"),
)


class Part(NamedTuple):
    """The questions to one graph, and what builds its retriever."""

    questions: Sequence[Asked]
    build: Callable[[], Any]


class Data(NamedTuple):
    """An index, the questions to ask, the questions to learn from, and the folder of its models."""

    index: Any
    asked: Sequence[Asked]
    examples: Sequence[Any]
    models: Path


#: What returns the parts of a section. They run in a context that ends with the section.
Section = Callable[[ExitStack], Iterable[Part]]


def main() -> int:
    """Freeze or compare the sections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, default=Path("models"), help="the folder of the trained models")
    parser.add_argument("--output", type=Path, help="the folder to write (default: a temporary one)")
    parser.add_argument("--against", type=Path, help="the folder of frozen answers to compare with")
    parser.add_argument("--exact", action="store_true", help="fail if any Document differs")
    parser.add_argument("--limit", type=int, default=200, help="questions per section (default: 200)")
    parser.add_argument("--only", nargs="+", default=["*"], help="names or patterns of sections")
    parser.add_argument("--list", action="store_true", help="print the names of the sections")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    known = sections(options.models, options.limit)
    chosen = {name: one for name, one in known.items() if any(fnmatch(name, only) for only in options.only)}
    if options.list:
        print(*chosen, sep="\n")
        return 0
    folder = options.output or Path(tempfile.mkdtemp(prefix="documents-"))
    failed = []
    for name, section in chosen.items():
        frozen = _read(options.against, name) if options.against else None
        if options.against and frozen is None:
            print(f"{name:32} not frozen, skipped", flush=True)
            continue
        began = time.perf_counter()
        try:
            rows = answered(section, options.limit)
        except Exception:  # another version may lack what the section needs; the other sections still run
            print(f"{name:32} FAILED\n{traceback.format_exc(limit=-3)}", flush=True)
            failed.append(name)
            continue
        seconds = time.perf_counter() - began
        path = folder / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"seconds": round(seconds, 1), "rows": rows}, indent=0, ensure_ascii=False), "utf-8")
        report, same = compared(rows, frozen, options.exact) if frozen else (_counts(rows), True)
        print(f"{name:32} {report}  {seconds:6.1f} s", flush=True)
        failed += [] if same else [name]
    if options.against:
        every = {
            path.relative_to(options.against).with_suffix("").as_posix() for path in options.against.rglob("*.json")
        }
        gone = sorted(name for name in every - set(known) if any(fnmatch(name, only) for only in options.only))
        print(*(f"{name:32} is frozen, but this version has no such section" for name in gone), sep="\n")
    print(f"written to {folder}", *([f"differ or failed: {', '.join(failed)}"] if failed else []), sep="\n")
    return 1 if failed else 0


# Asking and comparing -------------------------------------------------------------------------------------------------


def answered(section: Section, limit: int) -> list[dict[str, Any]]:
    """Return a row per question of a section."""
    rows = []
    with ExitStack() as at_end:
        for part in section(at_end):
            retriever = part.build()
            rows += [row_of(question, *_invoke(retriever, question)) for question in part.questions]
    return rows


def _invoke(retriever: Any, question: Asked) -> tuple[list[Any], str | None]:
    if not hasattr(retriever, "invoke"):  # the shell
        return retriever(question.text), None
    try:
        return [_plain(document.model_dump()) for document in retriever.invoke(question.text)], None
    except RefusalError:
        return [], None
    except Exception as error:  # compared like an answer
        return [], type(error).__name__


def _plain(value: Any) -> Any:
    """Return metadata without durations."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items() if "seconds" not in str(name)}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def row_of(question: Asked, documents: list[Any], error: str | None) -> dict[str, Any]:
    """Return the digests and the outcome of a question."""
    parts = [document["metadata"] for document in documents]
    names = ("triples", "answers", "value", "score", "confidence")
    evidence = [
        [document["page_content"], [part.get(name) for name in names]]
        for document, part in zip(documents, parts, strict=True)
    ]
    said = parts[0].get("value") if parts and parts[0].get("value") is not None else _answers(parts)
    return {
        "question": question.text,
        "outcome": error or _outcome(question, parts, said),
        "said": said if not isinstance(said, list) else said[:5],
        "evidence": _digest(evidence),
        "documents": _digest(documents),
    }


def _answers(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the answers of the first Document, or the entities of all facts if none is proposed."""
    if any(part["answers"] for part in parts):
        return list(parts[0]["answers"])
    return list(dict.fromkeys(key for part in parts for head, _, tail in part["triples"] for key in (head, tail)))


def _outcome(question: Asked, parts: Sequence[Mapping[str, Any]], said: Any) -> str:
    if not parts:
        return "refused"
    if question.value is not None:
        return "right" if type(said) is type(question.value) and said == question.value else "wrong"
    gold, found = set(question.answers), set(said if isinstance(said, list) else [said])
    proposed = any(part["answers"] for part in parts)
    if gold and (found == gold if proposed else found >= gold):
        return "right"
    return "partly" if gold & found else "wrong"


def _digest(value: Any) -> str:
    return blake2b(json.dumps(value, sort_keys=True, default=str).encode(), digest_size=8).hexdigest()


def _counts(rows: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(row["outcome"] for row in rows)
    return f"n {len(rows):3}  " + "  ".join(f"{name} {counts[name]:3}" for name in _outcomes(counts))


def _outcomes(*counts: Mapping[str, int]) -> list[str]:
    return list(dict.fromkeys([*OUTCOMES, *(name for one in counts for name in one)]))


def compared(rows: Sequence[dict[str, Any]], frozen: Sequence[dict[str, Any]], exact: bool) -> tuple[str, bool]:
    """Return a report on the questions that both versions were asked, and whether the versions agree."""
    from wilson import wilson_interval

    before = {row["question"]: row for row in frozen}
    pairs = [(before[row["question"]], row) for row in rows if row["question"] in before]
    n = len(pairs)
    if not n:
        return "no question in common", False
    same = {part: sum(old[part] == new[part] for old, new in pairs) for part in ("evidence", "documents")}
    old, new = (Counter(pair[at]["outcome"] for pair in pairs) for at in (0, 1))
    cells, agree = [], not exact or same["documents"] == n
    for name in _outcomes(old, new):
        low, high = wilson_interval(old[name], n)
        inside = round(low, 9) <= new[name] / n <= round(high, 9)
        agree &= inside
        cells.append(f"{name} {old[name]} > {new[name]} [{low:.2f}, {high:.2f}]{'' if inside else ' OUTSIDE'}")
    changed = [f"\n    {a['question']}: {a['said']} > {b['said']}" for a, b in pairs if a["evidence"] != b["evidence"]]
    report = f"n {n}, same evidence {same['evidence']}, same Documents {same['documents']}; {', '.join(cells)}"
    return report + "".join(changed[:5]), agree


def _read(folder: Path, name: str) -> list[dict[str, Any]] | None:
    path = folder / f"{name}.json"
    rows: list[dict[str, Any]] | None = json.loads(path.read_text("utf-8"))["rows"] if path.is_file() else None
    return rows


# The sections ---------------------------------------------------------------------------------------------------------


def sections(models: Path, limit: int) -> dict[str, Section]:
    """Return all sections by name. Nothing is read before a section runs."""

    def one(data: Callable[[], Data], name: str, **given: Any) -> Section:
        return lambda _: [_part(data(), name, **given)]

    hashed = cache(lambda: _metaqa("hashed", models, limit))
    metaqa = cache(lambda: _metaqa("default", models, limit))
    pathquestion = cache(lambda: _pathquestion(3, models, limit))
    own = cache(lambda: [_own(name, models, limit) for name in OWN_GRAPHS])
    found: dict[str, Section] = {}
    for name in ("simgrag", "g-retriever", "kaping", "subgraph-rag", "gnn-rag", "sg-rag"):
        found[f"hashed/{name}"] = one(hashed, name)
    for name in ("simgrag", "rog", "sg-rag"):
        found[f"hashed/{name}-examples"] = one(hashed, name, examples=True)
    found["hashed/simgrag-examples-ties-k5"] = one(hashed, "simgrag", examples=True, ties="break", k=5)
    for method in registry.METHODS:
        for suffix in ("", "-examples") if method.labels else ("",):
            name, given = method.name, {"examples": True} if suffix else {}
            found[f"metaqa/{name}{suffix}"] = one(metaqa, name, **given)
            found[f"pathquestion/{name}{suffix}"] = one(pathquestion, name, **given)
            found[f"own/{name}{suffix}"] = lambda _, name=name, given=given: (_part(d, name, **given) for d in own())
    found["operations/simgrag"] = lambda _: _operations(limit)
    found["refusals/made"] = lambda _: [_made_refusals(metaqa(), limit)]
    found["refusals/own"] = lambda _: (_own_refusals(name, data) for name, data in zip(OWN_GRAPHS, own(), strict=True))
    for database in ("ladybug", "oxigraph"):
        for name in ("simgrag", "g-retriever", "kaping", "rog-examples", "neighborhood", "sg-rag"):
            found[f"{database}/{name}"] = lambda at_end, place=database, name=name: _connected(
                at_end, place, name, models, limit
            )
    for name in ("random", "pagerank", "passages", "dense-subgraph"):
        found[f"baselines/{name}"] = one(metaqa, name)
    found["shell/ask"] = lambda _: [Part(ASKED_ON_SHELL, lambda: _ask)]
    return found


def _part(data: Data, name: str, **given: Any) -> Part:
    return Part(data.asked, lambda: _retriever(data, name, **given))


def _retriever(data: Data, name: str, *, examples: bool = False, **fields: Any) -> Any:
    """Build a method on an index."""
    method = _method(name)
    kind = method.load_retriever()
    if method.trainer and "model" in method.needs:
        fields["model"] = data.models / name
        if not fields["model"].is_dir():
            method.load_trainer()(data.index, data.examples, output=fields["model"], seed=0)
    if examples:
        fields["examples"] = data.examples
    fields |= {name: value for name, value in UNLIMITED.items() if name in kind.model_fields}
    return kind.from_index(data.index, **fields)


def _method(name: str) -> Any:
    """Return a method or a baseline, which is in the registry or in `benchmarks.papers`."""
    known = [*registry.METHODS, *getattr(registry, "BASELINES", ())]
    if name not in {method.name for method in known}:
        sys.path.insert(0, str(ROOT))
        known = [*import_module("benchmarks.papers.baselines").BASELINES]
    return next(method for method in known if method.name == name)


def _mixed(questions: Iterable[Any]) -> list[Any]:
    """Return questions in a fixed random order, each text once."""
    mixed = list({question.text: question for question in questions}.values())
    random.Random(0).shuffle(mixed)
    return mixed


def _asked(questions: Iterable[Any]) -> list[Asked]:
    return [Asked(question.text, question.answers, question.value) for question in questions]


def _drawn(index: Any, questions: Iterable[Any], limit: int, models: Path) -> Data:
    mixed = _mixed(questions)
    return Data(index, _asked(mixed[:limit]), mixed[-TRAINING_QUESTIONS:], models)


def _metaqa(embeddings: str, models: Path, limit: int) -> Data:
    graph = kg.KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt")
    index = kg.GraphIndex.build(graph, kg.HashedEmbeddings() if embeddings == "hashed" else kg.default_embeddings())
    questions = kg.read_question_set(DATA / "metaqa", "metaqa", split="dev")
    return _drawn(index, questions, limit, models / f"metaqa-{embeddings}")


def _pathquestion(hops: int, models: Path, limit: int) -> Data:
    graph = kg.KnowledgeGraph.from_file(DATA / "pathquestion" / f"{hops}H-kb.txt")
    questions = kg.read_question_set(DATA / "pathquestion" / f"PQ-{hops}H.txt", "pathquestion")
    index = kg.GraphIndex.build(graph, kg.default_embeddings())
    return _drawn(index, questions, limit, models / f"pathquestion-{hops}")


def _own(name: str, models: Path, limit: int) -> Data:
    folder = ROOT / "benchmarks" / "own_graphs" / name
    index = kg.GraphIndex.build(kg.KnowledgeGraph.from_file(folder / "graph.tsv"), kg.default_embeddings())
    asked = _asked(_mixed(kg.read_questions(folder / "questions.jsonl")))
    examples = kg.read_questions(folder / "examples.jsonl")
    return Data(index, asked[: -(-limit // len(OWN_GRAPHS))], examples, models / name)


def _rows(path: Path) -> list[Asked]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [Asked(row["question"], row.get("answers", ()), row.get("value")) for row in rows]


def _operations(limit: int) -> Iterator[Part]:
    """Yield all 320 questions with an operation if the limit is 200 or more, else the first ones of each graph."""
    for name, parts in OPERATIONS.items():
        folder = ROOT / "benchmarks" / "operation_questions" / name
        sample = import_module("kg_retrievers.sample")
        graph = sample.load_graph() if name == "sample" else kg.KnowledgeGraph.from_file(folder / "graph.tsv")
        data = Data(kg.GraphIndex.build(graph, kg.default_embeddings()), (), (), Path())
        asked = _mixed([row for part in parts for row in _rows(folder / f"{part}.jsonl")])
        yield Part(
            asked[: 80 if limit >= 200 else -(-limit // len(OPERATIONS))], lambda d=data: _retriever(d, "simgrag")
        )


def _made_refusals(data: Data, limit: int) -> Part:
    """Return 60 questions that MetaQA's graph cannot answer."""
    make = import_module("kg_retrievers.evaluation").unanswerable_questions
    made = make(data.examples, data.index.graph, 60, seed=0)
    return Part(_asked(made)[:limit], lambda: _retriever(data, "simgrag"))


def _own_refusals(name: str, data: Data) -> Part:
    """Return the first 12 questions that a hand-made graph cannot answer."""
    rows = _rows(ROOT / "benchmarks" / "own_graphs" / name / "unanswerable.jsonl")
    return Part(rows[:12], lambda: _retriever(data, "simgrag"))


def _connected(at_end: ExitStack, database: str, name: str, models: Path, limit: int) -> list[Part]:
    """Return questions of two hops to PathQuestion's graph in a database."""
    data = _pathquestion(2, models, limit)
    graph = data.index.graph
    folder = Path(at_end.enter_context(tempfile.TemporaryDirectory()))
    if database == "ladybug":
        executor = at_end.enter_context(kg.LadybugExecutor.from_graph(graph))
    else:
        sys.path.insert(0, str(ROOT / "tests"))
        graph.write(folder / "graph.nt")
        server = at_end.enter_context(import_module("oxigraph_server").Oxigraph(folder, folder / "graph.nt"))
        executor = at_end.enter_context(server.executor())
    there = data._replace(index=kg.GraphIndex.connect(executor, kg.default_embeddings()))
    examples = name.endswith("-examples")
    return [Part(data.asked, lambda: _retriever(there, name.removesuffix("-examples"), examples=examples))]


def _ask(question: str) -> list[dict[str, Any]]:
    """Return the Documents of `kg-retrievers ask --json`; the first holds the answer, too."""
    graph = ROOT / "kg_retrievers" / "sample" / "graph.jsonl"
    command = [sys.executable, "-m", "kg_retrievers.cli", "ask", str(graph), question, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    reply = _plain(json.loads(done.stdout))
    for document in reply["documents"][:1]:
        document["reply"] = {name: reply[name] for name in ("answer", "value", "supported", "confidence")}
    found: list[dict[str, Any]] = reply["documents"]
    return found


if __name__ == "__main__":
    sys.exit(main())
