"""What other programs take for parts of `benchmarks/scale.py`, in the same run: DuckDB, pyoxigraph, networkx.

- `duckdb`: the text is loaded, texts are numbered, triples sorted by head, and saved; then two-hop neighborhoods.
- `pyoxigraph`: N-Triples are loaded into a store in memory; then the same neighborhoods by SPARQL.
- `networkx`: the text becomes a `MultiDiGraph`; then the same neighborhoods.

`neighborhoods` is what this package takes for these.
"""

from __future__ import annotations

import csv
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.synthetic_graph import ENTITY
from kg_retrievers import KnowledgeGraph

#: How many entities have their neighborhoods taken, the same for all.
COUNT, SEED = 20, 20261123

#: More entities than this in two hops: the entity is a neighbor of a hub, and another is drawn.
MOST = 20_000


def duckdb(size: str, folder: Path) -> dict[str, Any]:
    """Measure DuckDB on one thread."""
    import duckdb

    path = folder / f"{size}.duckdb"
    path.unlink(missing_ok=True)
    database = duckdb.connect(str(path), config={"threads": 1})
    began = time.process_time()
    database.execute(
        f"CREATE TABLE text AS SELECT * FROM read_csv('{folder / size}.tsv', delim='\\t', header=false, quote='', "
        "columns={'h': 'VARCHAR', 'r': 'VARCHAR', 't': 'VARCHAR'})"
    )
    database.execute(
        "CREATE TABLE entities AS SELECT row_number() OVER () AS id, name "
        "FROM (SELECT h AS name FROM text UNION SELECT t FROM text)"
    )
    database.execute(
        "CREATE TABLE relations AS SELECT row_number() OVER () AS id, r AS name FROM (SELECT DISTINCT r FROM text)"
    )
    for table, order in (("forward", "h, r, t"), ("backward", "t, r, h")):
        database.execute(
            f"CREATE TABLE {table} AS SELECT a.id AS h, b.id AS r, c.id AS t FROM text "
            "JOIN entities a ON text.h = a.name "
            f"JOIN relations b ON text.r = b.name JOIN entities c ON text.t = c.name ORDER BY {order}"
        )
    database.execute("DROP TABLE text")
    database.execute("CHECKPOINT")
    loaded = time.process_time() - began
    both = "(SELECT h AS a, t AS b FROM forward UNION ALL SELECT t, h FROM backward)"

    def around(name: str) -> int:
        query = (
            f"WITH one AS (SELECT DISTINCT b FROM {both} WHERE a = (SELECT id FROM entities WHERE name = ?)) "
            f"SELECT count(DISTINCT b) FROM {both} WHERE a IN (SELECT b FROM one)"
        )
        return int(database.execute(query, [name]).fetchone()[0])

    return {"load_s": round(loaded, 2), "disk_bytes": path.stat().st_size, **_compared(around, size, folder)}


def pyoxigraph(size: str, folder: Path) -> dict[str, Any]:
    """Measure a store in memory."""
    from pyoxigraph import RdfFormat, Store

    store = Store()
    began = time.process_time()
    store.bulk_load(path=str(folder / f"{size}.nt"), format=RdfFormat.N_TRIPLES)
    loaded = time.process_time() - began

    def around(name: str) -> int:
        iri = f"<{ENTITY}{name.replace(' ', '_')}>"
        either = "{{ {0} ?{2} {1} }} UNION {{ {1} ?{2} {0} }}"
        query = (
            f"SELECT (COUNT(DISTINCT ?b) AS ?n) {{ {either.format(iri, '?a', 'p')} {either.format('?a', '?b', 'q')} }}"
        )
        return int(next(iter(store.query(query)))["n"].value)

    return {"load_s": round(loaded, 2), **_compared(around, size, folder)}


def networkx(size: str, folder: Path) -> dict[str, Any]:
    """Measure a `MultiDiGraph`."""
    import networkx

    began = time.process_time()
    graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    with open(folder / f"{size}.tsv", newline="", encoding="utf-8") as file:
        for head, relation, tail in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            graph.add_edge(head, tail, relation)
    loaded = time.process_time() - began

    def near(name: str) -> set[str]:
        return {*graph.successors(name), *graph.predecessors(name)}

    def around(name: str) -> int:
        return len(set().union(*map(near, near(name))))

    return {"load_s": round(loaded, 2), **_compared(around, size, folder)}


def _compared(around: Callable[[str], int], size: str, folder: Path) -> dict[str, Any]:
    """Take the neighborhoods of the same entities by another program and by this package."""
    graph, drawn = KnowledgeGraph.open(folder / f"{size}.graph"), random.Random(SEED)
    rows, theirs, ours = graph.adjacency, [], []
    while len(ours) < COUNT:
        entity = drawn.randrange(len(graph.entities))
        began = time.process_time()
        one = set(rows.neighbors[rows.row(entity)].tolist())
        entries = sum(rows.row(near).stop - rows.row(near).start for near in one)
        if entries > MOST:
            continue
        found = {other for near in one for other in rows.neighbors[rows.row(near)].tolist()}
        ours.append(1000 * (time.process_time() - began))
        began = time.process_time()
        count = around(graph.entities[entity])
        theirs.append(1000 * (time.process_time() - began))
        if count != len(found):
            raise SystemExit(f"{graph.entities[entity]}: {count} entities in two hops, wanted {len(found)}")
    medians = statistics.median(theirs), statistics.median(ours)
    return {
        "two_hops_ms": round(medians[0], 3),
        "ours_ms": round(medians[1], 3),
        "ratio": round(medians[0] / medians[1], 1),
    }


def main() -> None:
    """Run one program."""
    program, size, folder = sys.argv[1:]
    run = {"duckdb": duckdb, "pyoxigraph": pyoxigraph, "networkx": networkx}[program]
    print(json.dumps(run(size, Path(folder))))


if __name__ == "__main__":
    main()
