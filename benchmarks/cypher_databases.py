"""Whether the same Cypher finds the same on an embedded database, on one that speaks Bolt, and in memory.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/cypher_databases.py [--sections questions queries]

"questions": 100 of MetaQA's dev questions of each hop, drawn from the 20 % that `cypher.py` measures; the other 80 %
are the examples, with nothing but their answers and topics. `CypherRetriever` answers them on LadybugDB and on
ArcadeDB, which speaks Bolt, by the same templates; in memory the pattern that the template writer filled is matched by
SimGRAG's exact matcher, at distance 0, for the same entities in the same order. Compared are, question by question, the
sets of triples and the sets of answers. Each question of which they differ is listed.

"queries": the queries of `cypher_safety.py` that have no syntax error by the set's own mark, on its films: through the
executors, so checked, sorted and limited. On LadybugDB as they are written, for Neo4j, and `translated`: what it writes
otherwise is replaced. Those that fail are listed. Then, for those that run: whether there are rows, by the set's own
mark; whether a query gives the same rows, as a multiset, sent by the executor and as it is written by the bare driver;
and whether both databases give the same. Where that depends on which of several equal rows LIMIT leaves, the queries
are compared without it.

ArcadeDB is left out where its package is not installed (`pip install "kg-retrievers[test-heavy]"`). Data: the folder
named in KG_RETRIEVERS_DATA (default ../shared/data). Needs the extras `ladybug` and `neo4j`.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, is_dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import ladybug
from cypher import HOPS, SEED, split
from cypher_safety import read_queries
from question_splits import DATA, Indexes

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from arcadedb import ArcadeDB, is_installed

from kg_retrievers import GraphIndex, Question, SimGRAGRetriever
from kg_retrievers.core.stages import Body
from kg_retrievers.database.executor import SORT_KEYS, Executor
from kg_retrievers.database.grammar import SyntaxNode, read
from kg_retrievers.database.ladybug import LadybugExecutor
from kg_retrievers.database.ladybug_worker import MAX_SIZE
from kg_retrievers.database.rendering import render
from kg_retrievers.database.safety import check_read_only, limited
from kg_retrievers.database.values import Rows
from kg_retrievers.datasets import read_metaqa
from kg_retrievers.errors import CypherSafetyError, DatabaseQueryError
from kg_retrievers.graph import Known, Pattern
from kg_retrievers.graph.parts import MAX_TIMEOUT
from kg_retrievers.graph.pattern import decide_revisits
from kg_retrievers.index import QuestionEntity
from kg_retrievers.methods.sg_rag.retriever import MAX_ROWS, CypherRetriever
from kg_retrievers.methods.sg_rag.writers import TemplateCypherWriter


class Found(NamedTuple):
    """What is found for a question."""

    triples: frozenset[tuple[str, str, str]]
    answers: frozenset[str]
    truncated: bool


NOTHING = Found(frozenset(), frozenset(), False)


class RememberingWriter(TemplateCypherWriter):
    """Keeps the queries that it wrote last, and their patterns."""

    queries: Sequence[dict[str, Any]] = ()
    patterns: dict[tuple[str, str], Pattern]

    def body(self, input: Mapping[str, Any]) -> Body[list[dict[str, Any]]]:
        """Write the queries for a question."""
        self.patterns = {}
        written = yield from super().body(input)
        self.queries = written
        return written

    def write(
        self, pattern: Pattern, executor: Executor, entities: Sequence[QuestionEntity] = (), question: str = ""
    ) -> Iterator[dict[str, Any]]:
        """Write the queries for a pattern."""
        revisits = decide_revisits(pattern, question).allowed
        for query in super().write(pattern, executor, entities, question):
            stated = replace(pattern, revisits=revisits or query.get("widened", False))
            self.patterns.setdefault((query["query"], json.dumps(query["parameters"])), stated)
            yield query


class Answers:
    """The ways to the answers of a question by the templates of one writer."""

    def __init__(self, index: GraphIndex, examples: Sequence[Question], executors: Mapping[str, Executor]) -> None:
        """Label the examples."""
        self.writer = RememberingWriter(index, examples)
        self.retrievers = {
            name: CypherRetriever(
                index=index,
                writer=self.writer,
                executor=executor,
                on_refusal="empty",
                max_rows=MAX_ROWS,
                timeout=MAX_TIMEOUT,
            )
            for name, executor in executors.items()
        }
        self.matcher = SimGRAGRetriever(
            index=index, pattern_generator=self.writer.generator, direction="respect", max_distance=0.0
        )

    def by_retriever(self, name: str, question: Question, topic_given: bool) -> Found:
        """Ask the retriever over one of the databases."""
        self.writer.queries = ()
        given = {"seed_entities": list(question.seed_entities)} if topic_given else {}
        documents = self.retrievers[name].invoke(question.text, **given)
        if not documents:
            return NOTHING
        (document,) = documents
        data = document.metadata
        return Found(frozenset(map(tuple, data["triples"])), frozenset(data["answers"]), data["truncated"])

    def in_memory(self, executor: Executor) -> Found:
        """Match the pattern of each query that was written last, for its entities, until one is found."""
        for written in self.writer.queries:
            parameters = written["parameters"]
            pattern = self.writer.patterns[written["query"], json.dumps(parameters)]
            keys = {
                node: value if isinstance(value := parameters[f"n{position}"], list) else [value]
                for position, node in enumerate(pattern.nodes)
                if isinstance(node, Known)
            }
            again = render(pattern, executor.schema(), executor.dialect, entities=keys, direction="respect")
            assert again == (written["query"], parameters)  # it is the very pattern
            found = NOTHING
            for chosen in product(*keys.values()):
                terms = {node: Known(node.text, node.type, key) for node, key in zip(keys, chosen, strict=True)}
                for evidence in self.matcher.match(pattern.with_nodes(terms)):
                    found = Found(
                        found.triples.union(map(tuple, evidence.triples)),
                        found.answers.union(evidence.answers),
                        found.truncated or evidence.truncated,
                    )
            if found.triples:
                return found
        return NOTHING


def main() -> None:
    """Run the sections asked for and print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections = ["questions", "queries"]
    parser.add_argument("--sections", nargs="+", choices=sections, default=sections)
    parser.add_argument("--number", type=int, default=100, help="how many questions of each hop")
    parser.add_argument("--cache", type=Path, help="a file that keeps embeddings over several runs")
    arguments = parser.parse_args()
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        server = opened.enter_context(ArcadeDB(folder, sections, memory=1024)) if is_installed() else None
        if server is None:
            print("(ArcadeDB is left out: arcadedb-embedded is not installed.)\n")
        if "questions" in arguments.sections:
            questions(opened, server, arguments.number, arguments.cache)
        if "queries" in arguments.sections:
            queries(opened, server, folder)


# The same questions --------------------------------------------------------------------------------------------------


def drawn(count: int) -> tuple[list[Question], dict[int, list[Question]]]:
    """Return the examples, and for each hop some of the questions that are measured."""
    parts = {hop: split(read_metaqa(DATA / "metaqa", hop)) for hop in HOPS}
    examples = [question for known, _ in parts.values() for question in known]
    return examples, {hop: random.Random(SEED).sample(measured, count) for hop, (_, measured) in parts.items()}


def questions(opened: ExitStack, server: ArcadeDB | None, count: int, cache: Path | None) -> None:
    """Compare the databases and the memory, question by question."""
    index = Indexes("hashed", cache)(DATA / "metaqa" / "kb.txt")
    executors: dict[str, Executor] = {"LadybugDB": opened.enter_context(LadybugExecutor.from_graph(index.graph))}
    if server is not None:
        server.load(index.graph, "questions")
        executors["ArcadeDB"] = opened.enter_context(server.executor("questions", explain=False))
    examples, measured = drawn(count)
    answers = Answers(index, examples, executors)
    print("### The same questions on databases and in memory\n")
    print("| set | topic | compared with memory | n | with triples | same triples | same answers |")
    print("|---|---|---|---|---|---|---|")
    differing = []
    for (hop, of_hop), topic_given in product(measured.items(), (True, False)):
        pairs = {name: list[tuple[Found, Found]]() for name in executors}
        for question in of_hop:
            for name, executor in executors.items():
                pair = answers.by_retriever(name, question, topic_given), answers.in_memory(executor)
                pairs[name].append(pair)
                if pair[0] != pair[1]:
                    differing.append((question, topic_given, name, *pair))
        for name, of_name in pairs.items():
            cells = [
                f"{hop}-hop",
                "given" if topic_given else "not given",
                name,
                len(of_name),
                sum(bool(found.triples) for found, _ in of_name),
                sum(found.triples == in_memory.triples for found, in_memory in of_name),
                sum(found.answers == in_memory.answers for found, in_memory in of_name),
            ]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    print(f"\n{len(differing)} differ\n")
    for question, topic_given, name, found, in_memory in differing:
        print(f"{question.text} ({'topic given' if topic_given else 'no topic given'}; {name})")
        for here, there, said in ((found, in_memory, f"only {name}"), (in_memory, found, "only memory")):
            print(f"  {said}: {sorted(here.triples - there.triples)[:5]}, {sorted(here.answers - there.answers)[:5]}")


# The same queries ----------------------------------------------------------------------------------------------------

#: The tables of the films. `votes` is in the set's own graph and in its queries, and not in the script.
TABLES = [
    "NODE TABLE Movie(title STRING PRIMARY KEY, released INT64, tagline STRING, votes INT64)",
    "NODE TABLE Person(name STRING PRIMARY KEY, born INT64)",
    "REL TABLE ACTED_IN(FROM Person TO Movie, roles STRING[])",
    "REL TABLE DIRECTED(FROM Person TO Movie)",
    "REL TABLE FOLLOWS(FROM Person TO Person)",
    "REL TABLE PRODUCED(FROM Person TO Movie)",
    "REL TABLE REVIEWED(FROM Person TO Movie, summary STRING, rating INT64)",
    "REL TABLE WROTE(FROM Person TO Movie)",
]
KEYS = {"Movie": "title", "Person": "name"}

#: More than any of the queries has.
ROWS = 50_000

#: How many of the queries that do not run for one reason are listed.
SHOWN = 10

#: What in a reason is of one query alone.
_OF_ONE = re.compile(
    r"(?<=Invalid input ).*|\(line.*|`[^`]*`|'[^']*'|(?<=property )\w+ for \w+|(?<=Variable )\w+|\d+", re.DOTALL
)

_LIMIT = re.compile(r"\bLIMIT\s+\d+", re.IGNORECASE)

Values = Counter[str]


class Database(NamedTuple):
    """Films in a database: through an executor, and what its bare driver returns for a query."""

    executor: Executor
    rows: Callable[[str], Sequence[Any]]


#: A database, and what is done to queries that were written for Neo4j.
Way = tuple[Database, Callable[[str], str]]


def queries(opened: ExitStack, server: ArcadeDB | None, folder: Path) -> None:
    """Run the queries of the set on its films."""
    script = (DATA / "cypher" / "movies.cypher").read_text("utf-8")
    good = [query for query in read_queries() if query.good]
    distinct = list({query.text: query for query in good}.values())
    embedded = in_ladybug(opened, script, folder / "films.lbdb")
    ways: dict[str, Way] = {"LadybugDB, as written": (embedded, str), "LadybugDB, translated": (embedded, translated)}
    if server is not None:
        server.load_script(script, "queries")
        executor = opened.enter_context(server.executor("queries", key=KEYS, explain=False))
        ways["ArcadeDB, as written"] = Database(executor, lambda query: server.read("queries", query)), str
    print("### Queries that people wrote for Neo4j\n")
    print("| database | questions | run | | distinct queries | run | |\n|---|---|---|---|---|---|---|")
    found, failed = dict[str, dict[str, Rows]](), dict[str, dict[str, str]]()
    for name, (database, form) in ways.items():
        found[name], failed[name] = run(database.executor, [query.text for query in distinct], form)
        cells = [name]
        for some in (good, distinct):
            ran = sum(query.text in found[name] for query in some)
            cells += [str(len(some)), str(ran), f"{100 * ran / len(some):.1f} %"]
        print(f"| {' | '.join(cells)} |", flush=True)
    for name, reasons in failed.items():
        print(f"\n{name}: {len(reasons)} not run")
        list_reasons(reasons)

    print("\n### Whether they find the same\n")
    print("| | n | same | same but for which of equal rows a LIMIT leaves | other |\n|---|---|---|---|---|")
    other = dict[str, list[str]]()
    del ways["LadybugDB, as written"]
    for name, way in ways.items():
        marked = [query for query in distinct if query.text in found[name] and "votes" not in query.text]
        title = f"{name}: rows or none, as the set says"
        other[title] = [query.text for query in marked if query.has_rows != (len(found[name][query.text]) > 0)]
        print(f"| {title} | {len(marked)} | {len(marked) - len(other[title])} | | {len(other[title])} |", flush=True)
        title = f"{name}: as it is sent, and as the bare driver runs it"
        other[title] = compare(title, list(found[name]), partial(rows_as_sent, way), partial(rows_of_driver, way))
    if server is not None:
        both = [text for text in found["LadybugDB, translated"] if text in found["ArcadeDB, as written"]]
        title = "both databases"
        other[title] = compare(title, both, *(partial(rows_of_executor, way) for way in ways.values()))
    for title, texts in other.items():
        print(f"\n{title}: {len(texts)} other")
        print("".join(f"  {' '.join(text.split())}\n" for text in texts), end="")


def in_ladybug(opened: ExitStack, script: str, path: Path) -> Database:
    """Load the films into LadybugDB, which reads the statement of the script that makes them as it is."""
    with ladybug.Database(path, max_db_size=MAX_SIZE) as database, ladybug.Connection(database) as connection:
        for table in TABLES:
            connection.execute(f"CREATE {table}")
        connection.execute(script[script.index("CREATE (") :])
    executor = opened.enter_context(LadybugExecutor(path))
    bare = opened.enter_context(ladybug.Database(path, max_db_size=MAX_SIZE, read_only=True))
    connection = opened.enter_context(ladybug.Connection(bare))
    return Database(executor, lambda query: connection.execute(query).get_all())


def run(executor: Executor, texts: Sequence[str], form: Callable[[str], str]) -> tuple[dict[str, Rows], dict[str, str]]:
    """Run queries, and return the rows of those that run and the reasons of those that do not."""
    found, failed = dict[str, Rows](), dict[str, str]()
    for text in texts:
        try:
            found[text] = executor.run(form(text), limit=ROWS)
        except DatabaseQueryError as error:
            failed[text] = error.reason
        except CypherSafetyError as error:
            failed[text] = str(error)
    return found, failed


def list_reasons(reasons: Mapping[str, str]) -> None:
    """Print the reasons why queries do not run, without what is of one query alone, and some of the queries."""
    groups: dict[str, list[str]] = {}
    for text, reason in reasons.items():
        groups.setdefault(_OF_ONE.sub("...", reason.strip()).splitlines()[0], []).append(" ".join(text.split()))
    for reason, texts in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        print(f"- {len(texts)}: {reason}")
        for text in texts[:SHOWN]:
            print(f"    {text}")


def translated(query: str) -> str:
    """Return a query for Neo4j with what LadybugDB writes otherwise replaced.

    - `type(r)` -> `label(r)`
    - `EXISTS { (a)-->(b) }`, `COUNT { ... }` -> `EXISTS { MATCH (a)-->(b) }`
    - `exists((a)-->(b))` -> `EXISTS { MATCH (a)-->(b) }`
    - `size([(a)-->(b) | b])` -> `COUNT { MATCH (a)-->(b) }`
    - `WITH a ORDER BY b` -> `WITH a ORDER BY b LIMIT ...`, so many that all rows stay
    - `list[0]` -> `list[1]`
    """
    tokens, root = read(query)
    edits = list[tuple[int, int, str]]()
    for node in root.walk():
        first, last = tokens[node.start], tokens[node.end - 1]
        if node.rule == "subquery" and node.inside[0].rule == "patterns":
            edits.append((*[tokens[node.start + 1].end] * 2, " MATCH"))
        elif node.rule == "clause" and (projection := node.find("projection")):
            if projection.find("order") and not projection.find("limit"):
                edits.append((*[tokens[projection.end - 1].end] * 2, f" LIMIT {ROWS}"))
        elif node.rule == "index" and node.end - node.start == 3 and tokens[node.start + 1].kind == "integer":
            index = tokens[node.start + 1]
            edits.append((index.position, index.end, str(int(index.text) + 1)))
        elif node.rule == "call":
            function, pattern = first.name.lower(), next((n for n in node.walk() if is_pattern(n)), None)
            if function == "type":
                edits.append((first.position, first.end, "label"))
            elif function in ("exists", "size") and pattern is not None:
                text = query[tokens[pattern.start].position : tokens[pattern.end - 1].end]
                word = "EXISTS" if function == "exists" else "COUNT"
                edits.append((first.position, last.end, f"{word} {{ MATCH {text} }}"))
    for start, end, text in sorted(edits, reverse=True):
        query = query[:start] + text + query[end:]
    return query


def is_pattern(node: SyntaxNode) -> bool:
    """Whether a part of an expression is a pattern."""
    return node.rule == "operand" and len(node.inside) > 1 and node.inside[1].rule == "relationship"


def compare(title: str, texts: Sequence[str], one: Callable[[str], Values], two: Callable[[str], Values]) -> list[str]:
    """Print how many queries give the same rows in two ways, and return those that do not."""
    same, at_limit, other = 0, 0, list[str]()
    for text in texts:
        left, right = one(text), two(text)
        if left == right:
            same += 1
            continue
        whole = _LIMIT.sub("", text)
        all_left, all_right = one(whole), two(whole)
        if all_left == all_right and left.total() == right.total() and left <= all_left and right <= all_right:
            at_limit += 1
        else:
            other.append(text)
    print(f"| {title} | {len(texts)} | {same} | {at_limit} | {len(other)} |", flush=True)
    return other


def rows_of_executor(way: Way, text: str) -> Values:
    """Run a query by the executor."""
    database, form = way
    return values(database.executor.run(form(text), limit=ROWS).rows)


def rows_as_sent(way: Way, text: str) -> Values:
    """Run a query as the executor sends it, by the bare driver."""
    database, form = way
    sent = limited(check_read_only(form(text)), ROWS, sort_key=SORT_KEYS[database.executor.dialect])
    return values(database.rows(sent.text))


def rows_of_driver(way: Way, text: str) -> Values:
    """Run a query as it is, by the bare driver."""
    database, form = way
    return values(database.rows(form(text)))


def values(rows: Sequence[Any]) -> Values:
    """Return rows as a multiset, and lists in them as multisets, too."""
    return Counter(json.dumps(list(map(unordered, row)), sort_keys=True) for row in rows)


def unordered(value: Any) -> Any:
    """Return a value as JSON, with lists in an order of their own."""
    if isinstance(value, list | tuple):
        return sorted(map(unordered, value), key=json.dumps)
    if isinstance(value, dict):
        return {name: unordered(part) for name, part in sorted(value.items())}
    if is_dataclass(value):
        return unordered(asdict(value))
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


if __name__ == "__main__":
    main()
