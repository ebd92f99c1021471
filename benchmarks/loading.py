"""What it costs to read a graph from a file and save it: CPU seconds and the peak memory of a whole process.

    python benchmarks/loading.py --triples 1000000

writes a synthetic graph in each format, 15 % of it labels, 15 % types, 7.5 % labels in another language and 15 %
literals, and reads each file in a process of its own, imports included. Tables (parquet, arrow, csv, tsv, jsonl) hold
the same statements as texts, a row each.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_RESOURCE, _ONTOLOGY = "http://dbpedia.org/resource/", "http://dbpedia.org/ontology/"
_RDF, _RDFS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_WORDS = ["amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "jetty", "knoll", "larch"]

#: What a process of its own runs.
READ_RDF = """
import sys
from kg_retrievers.graph import KnowledgeGraph
graph = KnowledgeGraph.from_rdf(sys.argv[1])
graph.save(sys.argv[2])
print(graph)
"""


READ_TABLE = READ_RDF.replace("from_rdf", "from_file")

#: The formats that are tables.
TABLES = ("parquet", "arrow", "csv", "tsv", "jsonl")


_FORMATS = f"suffixes of RDF: nt ttl rdf jsonld nq trig; or of tables: {' '.join(TABLES)}"


class Cost(NamedTuple):
    """What a process took: CPU seconds (user and system), and its greatest resident memory in MB."""

    seconds: float
    megabytes: float
    output: str


def statements(triples: int) -> Iterator[str]:
    """Yield lines of N-Triples."""
    draw = random.Random(1)
    entities = max(1, triples * 15 // 100)
    names = [f"{draw.choice(_WORDS)} {draw.choice(_WORDS)} {entity}" for entity in range(entities)]
    iris = [f"<{_RESOURCE}{name.title().replace(' ', '_')}>" for name in names]
    count = 0
    for line in _descriptions(draw, names, iris):
        yield line
        count += 1
    while count < triples:
        head, tail = draw.choice(iris), iris[int(entities * draw.random() ** 3)]
        yield f"{head} <{_ONTOLOGY}relation{draw.randrange(200)}> {tail} .\n"
        count += 1


def _descriptions(draw: random.Random, names: list[str], iris: list[str]) -> Iterator[str]:
    """Yield 3.5 lines for each entity: label, type, and of some another label, a text, a date, a number."""
    for position, (name, iri) in enumerate(zip(names, iris, strict=True)):
        yield f'{iri} <{_RDFS}label> "{name.title()}"@en .\n'
        yield f"{iri} <{_RDF}type> <{_ONTOLOGY}Kind{position % 50}> .\n"
        if position % 2:
            yield f'{iri} <{_RDFS}label> "{name.title()} (Ort)"@de .\n'
        if position % 10 < 3:
            yield f'{iri} <{_ONTOLOGY}abstract> "{name} lies by the {draw.choice(_WORDS)}, and is old."@en .\n'
            day = f"{draw.randrange(1800, 2020)}-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}"
            yield f'{iri} <{_ONTOLOGY}founded> "{day}"^^<{_XSD}date> .\n'
        if position % 10 < 4:
            yield f'{iri} <{_ONTOLOGY}population> "{draw.randrange(1_000_000)}"^^<{_XSD}integer> .\n'


def measure(program: str, *arguments: str) -> Cost:
    """Run a program in a process of its own."""
    runner = (
        "import resource, subprocess, sys; done = subprocess.run([sys.executable, '-c', *sys.argv[1:]], check=True, "
        "capture_output=True, text=True); use = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(use.ru_utime + use.ru_stime, use.ru_maxrss / 1024, done.stdout.strip(), sep='|')"
    )
    command = [sys.executable, "-c", runner, program, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, megabytes, output = done.stdout.strip().split("|", 2)
    return Cost(float(seconds), float(megabytes), output)


def write_formats(plain: Path, formats: list[str]) -> dict[str, Path]:
    """Write a file of N-Triples in other formats, and return the file of each."""
    import pyoxigraph

    files = {}
    for suffix in formats:
        files[suffix] = plain.with_suffix(f".{suffix}")
        if suffix in TABLES:
            write_table(plain, files[suffix])
        elif suffix != "nt":
            statements = (quad.triple for quad in pyoxigraph.parse(path=plain))
            pyoxigraph.serialize(statements, files[suffix])
    return files


def write_table(plain: Path, path: Path) -> None:
    """Write the statements of a file of N-Triples as a table of texts."""
    import pandas

    with open(plain) as file:
        rows = [[text.rpartition("/")[2].strip('>"') for text in line[:-3].split(" ", 2)] for line in file]
    table = pandas.DataFrame(rows, columns=["head", "relation", "tail"])
    if path.suffix == ".parquet":
        table.to_parquet(path)
    elif path.suffix == ".arrow":
        table.to_feather(path)
    elif path.suffix == ".jsonl":
        table.to_json(path, orient="records", lines=True, force_ascii=False)
    else:
        table.to_csv(path, sep="\t" if path.suffix == ".tsv" else ",", index=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=1_000_000)
    parser.add_argument(
        "--formats",
        nargs="+",
        default=["nt"],
        help=_FORMATS,
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "graph.nt"
        with open(plain, "w") as file:
            file.writelines(statements(arguments.triples))
        for suffix, path in write_formats(plain, arguments.formats).items():
            cost = measure(
                READ_TABLE if suffix in TABLES else READ_RDF, str(path), str(Path(folder) / f"saved-{suffix}")
            )
            print(
                f"{suffix:8}{path.stat().st_size / 1e6:7.0f} MB {cost.seconds:6.2f} CPU s {cost.megabytes:6.0f} MB",
                end="  ",
            )
            print(cost.output)


if __name__ == "__main__":
    main()
