"""What becomes of 2,000 Cypher queries that only read and could take a database down.

    python benchmarks/cypher_bounds.py [--run] [--unchecked]

The queries skip and return many rows, nest, chain operators, multiply what has nothing in common, match cliques, stars
and paths, and make texts larger; the sizes are drawn from a fixed seed, from a few to far too many. First: how many of
each kind the check refuses. With --run those that pass are run in the isolated embedded database on a graph of 300
entities, with 1 s and 512 MB each, and with --unchecked those that are refused, too, past the check. "over": seconds of
wall time beyond the limit, at most; "memory": the most that the processes of the database held at one time, read every
20 ms on Linux.
"""

from __future__ import annotations

import argparse
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from kg_retrievers.database.safety import check_read_only
from kg_retrievers.errors import CypherSafetyError, KGRetrieversError
from kg_retrievers.graph import KnowledgeGraph

SEED, NUMBER = 20, 2000
TIMEOUT, MEMORY = 1.0, 512 << 20


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="run the queries that pass")
    parser.add_argument("--unchecked", action="store_true", help="run those that are refused as well")
    options = parser.parse_args()
    queries = generated_queries()
    refused = {query for _, query in queries if not passes(query)}
    print("| kind | queries | refused |\n|---|---|---|")
    for kind in KINDS:
        of_kind = [query for name, query in queries if name == kind]
        print(f"| {kind} | {len(of_kind)} | {sum(query in refused for query in of_kind)} |")
    print(f"| all | {len(queries)} | {sum(query in refused for _, query in queries)} |")
    if options.run or options.unchecked:
        run_all([query for _, query in queries if options.unchecked or query not in refused], refused)


def passes(query: str) -> bool:
    """Tell whether the check lets a query pass."""
    try:
        check_read_only(query)
    except CypherSafetyError:
        return False
    return True


# The queries ---------------------------------------------------------------------------------------------------------


def many(draw: random.Random, most: int) -> int:
    """Draw a number from 1 to `most`, small ones as often as large ones."""
    return round(most ** draw.random())


def skip(draw: random.Random) -> str:
    order = draw.choice(["", " ORDER BY n.key", " ORDER BY n.label DESC, n.key"])
    return f"MATCH (n) RETURN n.key{order} SKIP {many(draw, 10**18)} LIMIT {many(draw, 1000)}"


def limit(draw: random.Random) -> str:
    digits = draw.choice([3, 6, 9, 19, 5000])
    number = draw.randrange(1, 10 ** min(digits, 19)) if digits < 5000 else "9" * digits
    return f"MATCH (n), (m) WITH n, m ORDER BY n.key LIMIT {number} RETURN count(*)"


def nesting(draw: random.Random) -> str:
    depth = many(draw, 3000)
    opening, closing = draw.choice(
        [("(", ")"), ("[", "]"), ("abs(", ")"), ("CASE WHEN true THEN ", " END"), ("COUNT { MATCH (n) WHERE 1 = ", "}")]
    )
    return "RETURN " + opening * depth + "1" + closing * depth


def chain(draw: random.Random) -> str:
    first, more = draw.choice(
        [("1", "+1"), ("true", " AND true"), ("'a'", " + 'b'"), ("[1]", "[1]"), ("2", " ^ 1"), ("1", " IS NULL")]
    )
    if draw.random() < 0.3:
        return (
            "MATCH (n) WHERE n.key = 'a'"
            + f" {draw.choice(['OR', 'AND'])} n.key <> 'b'" * many(draw, 5000)
            + " RETURN n"
        )
    return f"RETURN {first}" + more * many(draw, 20_000)


def product(draw: random.Random) -> str:
    parts = draw.randint(2, 30)
    return "MATCH " + ", ".join(f"(a{i})" for i in range(parts)) + f" RETURN {draw.choice(['count(*)', 'a0, a1'])}"


def clique(draw: random.Random) -> str:
    nodes = draw.randint(3, 12)
    return "MATCH " + ", ".join(f"(a{i})-[:knows]->(a{j})" for i in range(nodes) for j in range(i)) + " RETURN count(*)"


def star(draw: random.Random) -> str:
    separator = draw.choice([", ", " MATCH ", " OPTIONAL MATCH "])
    return "MATCH " + separator.join(f"(a)-[:knows]->(b{i})" for i in range(draw.randint(2, 20))) + " RETURN count(*)"


def path(draw: random.Random) -> str:
    kind = draw.choice(["-[:knows]->", "-->", "-[:knows]-", "-[*1..3]-"])
    return "MATCH (a0)" + "".join(f"{kind}(a{i})" for i in range(1, draw.randint(3, 30))) + " RETURN count(*)"


def hops(draw: random.Random) -> str:
    return f"MATCH p = (a)-[*1..{many(draw, 10**6)}]->(b) RETURN {draw.choice(['count(*)', 'p', 'length(p)'])}"


def text(draw: random.Random) -> str:
    depth, by = many(draw, 40), "a" * many(draw, 200)
    call = draw.choice(["replace({}, 'a', '" + by + "')", "regexp_replace({}, 'a', '" + by + "', 'g')"])
    call = draw.choice([call, "concat({0}, {0})", "repeat({}, " + str(len(by)) + ")", "upper({})"])
    within = "n.label" if draw.random() < 0.5 else "'aaaa'"
    for _ in range(min(depth, 12)):
        if len(within) > 40_000:
            break
        within = call.format(within)
    return f"MATCH (n) RETURN size({within})"


def doubling(draw: random.Random) -> str:
    step = draw.choice(["s + s", "s || s", "concat(s, s, s)", "replace(s, 'a', 'aaaa')", "list_concat([s], [s])"])
    return "WITH 'aaaa' AS s " + f"WITH {step} AS s " * many(draw, 60) + "RETURN s"


def numbers(draw: random.Random) -> str:
    most = many(draw, 10**10)
    return draw.choice(
        [
            f"UNWIND range(1, {most}) AS x RETURN count(x)",
            f"RETURN size(range(1, {most}))",
            f"RETURN repeat('ab', {most})",
        ]
    )


KINDS: dict[str, Callable[[random.Random], str]] = {
    "SKIP": skip,
    "LIMIT": limit,
    "nesting": nesting,
    "chains": chain,
    "products": product,
    "cliques": clique,
    "stars": star,
    "paths": path,
    "hops": hops,
    "text functions": text,
    "doubling": doubling,
    "range, repeat": numbers,
}


def generated_queries(number: int = NUMBER, seed: int = SEED) -> list[tuple[str, str]]:
    """Return queries with their kinds, the same for the same seed."""
    draw = random.Random(seed)
    names = list(KINDS)
    return [(name, KINDS[name](draw)) for name in (names[place % len(names)] for place in range(number))]


# Running them --------------------------------------------------------------------------------------------------------


def sample_graph() -> KnowledgeGraph:
    """Return 200 people who know and 100 films that they made, each with two relationships."""
    people, films = [f"Person {i}" for i in range(200)], [f"Film {i}" for i in range(100)]
    knows = [(people[i], "knows", people[(i * k + k) % 200]) for i in range(200) for k in (3, 7)]
    made = [(people[i], "made", films[i * k % 100]) for i in range(200) for k in (1, 3)]
    return KnowledgeGraph.from_triples(knows + made)


def run_all(queries: list[str], refused: set[str]) -> None:
    """Run queries, one after another, and print what became of them."""
    from kg_retrievers.database.ladybug import LadybugExecutor  # an extra

    outcomes, untyped, slowest = Counter[str](), list[str](), (0.0, "")
    with LadybugExecutor.from_graph(sample_graph(), max_memory=MEMORY) as executor, Memory() as memory:
        executor.run("RETURN 1")
        for query in queries:
            began = time.monotonic()
            try:
                if query in refused:
                    executor._fetch(query, {}, 1001, TIMEOUT)
                else:
                    executor.run(query, timeout=TIMEOUT)
                outcome = "rows"
            except KGRetrieversError as error:
                outcome = type(error).__name__
            except Exception as error:
                outcome = f"untyped: {type(error).__name__}"
                untyped.append(query)
            slowest = max(slowest, (time.monotonic() - began, query))
            outcomes[outcome] += 1
        alive = executor.run("RETURN 1").rows == ((1,),)
    print(f"\n{len(queries)} run, the host is alive and the database answers: {alive}")
    for outcome, times in outcomes.most_common():
        print(f"  {outcome}: {times}")
    print(f"over: {slowest[0] - TIMEOUT:.2f} s, by {slowest[1][:100]}")
    print(f"memory: {memory.most / 2**20:.0f} MB in the processes of the database, limit {MEMORY >> 20} MB")
    for query in untyped:
        print("untyped:", query[:200])


class Memory:
    """Reads every 20 ms what the children of this process hold; `most` is the most at one time, in bytes."""

    def __init__(self) -> None:
        """Watch from `with` on."""
        self.most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        children = Path(f"/proc/{os.getpid()}/task")
        while children.is_dir() and not self._over.wait(0.02):
            held = 0
            for process in {name for task in children.glob("*/children") for name in _read(task).split()}:
                fields = _read(Path(f"/proc/{process}/statm")).split()
                held += int(fields[1]) * os.sysconf("SC_PAGESIZE") if fields else 0
            self.most = max(self.most, held)


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except OSError:  # the process has ended
        return ""


if __name__ == "__main__":
    main()
