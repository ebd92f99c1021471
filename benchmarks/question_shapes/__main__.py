"""Asks the questions of twelve shapes: how many are right, wrong and refused, by shape.

    python -m benchmarks.question_shapes [--kept | --more] [--show] [--record] [GRAPH ...]

No language model and no examples; entities are found in the questions. A value, table or set of answers is right if it
is exactly that of `gold.py`. A description may leave facts out if it counts them.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.question_shapes.gold import Facts, golds_of, local
from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
from kg_retrievers.errors import KGRetrieversError

#: Where the questions are.
HERE = Path(__file__).parent

OUTCOMES = ("right", "wrong", "refused")

#: The shapes of questions, in the order of the table.
SHAPES = ("connect", "describe", "list", "count", "aggregate", "group", "rank", "share", "parts", "compare", "overview")

#: How many chains are asked for.
CHAINS = 10


def plain(name: str) -> str:
    """Return a name without case and signs; that of a relation or type without what stands before it."""
    return re.sub(r"[\W_]+", "", local(name.split(":")[-1]).casefold())


class Said:
    """What a retriever said."""

    def __init__(
        self, metadatas: Sequence[Mapping[str, Any]], graph: KnowledgeGraph, called: Mapping[str, str]
    ) -> None:
        """Keep the metadata of its Documents, and the local names of relations and types by label."""
        self.metadatas, self._graph, self.first = metadatas, graph, metadatas[0]
        self._called = {label.casefold(): name for label, name in called.items()}
        self.value = self.first["value"]
        self.answers = {graph.label(key) for key in self.first["answers"]}

    def facts(self, metadata: Mapping[str, Any]) -> frozenset[tuple[str, str, str]]:
        """Return the facts of a Document by label."""
        label = self._graph.label
        return frozenset(
            (label(head), self.named(relation), label(tail)) for head, relation, tail in metadata["triples"]
        )

    def named(self, name: str) -> str:
        """Return the plain local name of a relation or type."""
        return plain(self._called.get(name.casefold(), name))

    def title(self, name: str) -> str:
        """Return the plain local name of a relation, with "-" before it if it is crossed from tail to head."""
        return f"-{self.named(name[:-5])}" if name.endswith(" (of)") else self.named(name)

    @property
    def rows(self) -> list[list[Any]]:
        """The rows of the table, if there is one."""
        return self.value["rows"] if isinstance(self.value, dict) else []


def same_number(one: object, other: object) -> bool:
    """Tell whether two numbers are equal, except for rounding."""
    if isinstance(one, bool) or not isinstance(one, int | float) or not isinstance(other, int | float):
        return False
    return abs(one - other) <= 1e-6 * max(abs(one), abs(other), 1)


def cells(cell: object) -> set[str]:
    """Return what a cell of a table holds, numbers without their form."""
    return {form(one) for one in (cell if isinstance(cell, list) else [cell])}


def form(value: object) -> str:
    """Return a value in one form, however it is written."""
    text = str(value).strip()
    if number := re.fullmatch(r"(-?\d[\d,]*(?:\.\d+)?)\s*\D{0,12}", text):
        return f"{float(number[1].replace(',', '')):g}"
    return text


def is_right(expression: Sequence[Any], gold: Any, said: Said) -> bool:
    """Tell whether an answer is the gold one."""
    name = expression[0]
    if name == "connect":
        chains = {said.facts(metadata) for metadata in said.metadatas}
        wanted = {frozenset((a, plain(r), b) for a, r, b in chain) for chain in gold}
        return chains <= wanted and len(chains) == min(CHAINS, len(wanted))
    if name == "describe":
        facts, wanted = said.facts(said.first), {(a, plain(r), b) for a, r, b in gold}
        left = sum((said.first["details"].get("left_out") or {}).values())
        return bool(facts) and facts <= wanted and len(facts) + left == len(wanted)
    if name == "common":
        return {_seen(fact, expression[1]) for fact in said.facts(said.first)} - {None} == {
            (plain(relation), forward, end) for relation, forward, end in gold
        }
    if name == "differ":
        found = {said.title(row[0]): tuple(map(cells, row[1:])) for row in said.rows}
        return found == {_title(key): tuple({form(one) for one in side} for side in pair) for key, pair in gold.items()}
    if name == "overview":
        found = {said.named(row[0]): row[-1] for row in said.rows}
        return all(found.get(plain(kind)) == count for kind, count in gold.items())
    if name == "asks":
        return {said.title(row[0]).lstrip("-") for row in said.rows} == {plain(relation) for relation in gold}
    if name in ("group", "group_count"):
        table = {form(row[0]): row[-1] for row in said.rows}
        wanted = {form(key): value for key, value in gold.items()}
        return table.keys() == wanted.keys() and all(_same(table[key], wanted[key]) for key in wanted)
    if name == "parts":
        columns = [set().union(*map(cells, column)) for column in zip(*said.rows, strict=True)] or [set()]
        wanted = [part if isinstance(part, set) else {part} for part in gold]
        return sorted(map(sorted, columns)) == sorted(sorted(map(form, part)) for part in wanted)
    return _is_right_value(gold, said)


def _is_right_value(gold: Any, said: Said) -> bool:
    if isinstance(gold, set):
        forms = {form(one) for one in gold}
        values = said.value if isinstance(said.value, list) else [] if said.value is None else [said.value]
        return forms in ({form(one) for one in said.answers}, {form(one) for one in values})
    if isinstance(gold, bool):
        return said.value is gold
    answers = {form(one) for one in said.answers}
    return _same(said.value, gold) or (said.value is None and not isinstance(gold, list) and answers == {form(gold)})


def _same(one: Any, other: Any) -> bool:
    if isinstance(other, list):
        return isinstance(one, list) and len(one) == len(other) and all(map(_same, map(_number, one), other))
    return same_number(_number(one), other)


def _number(value: object) -> object:
    try:
        return float(form(value)) if isinstance(value, str) else value
    except ValueError:
        return value


def _title(name: str) -> str:
    return ("-" * name.startswith("-")) + plain(name)


def _seen(fact: tuple[str, str, str], thing: str) -> tuple[str, bool, str] | None:
    head, relation, tail = fact
    return (relation, True, tail) if head == thing else (relation, False, head) if tail == thing else None


def outcome(
    retriever: SimGRAGRetriever, row: Mapping[str, Any], golds: Sequence[Any], called: Mapping[str, str]
) -> tuple[str, str]:
    """Return whether a question is answered rightly, wrongly or not at all, and what was said."""
    expressions = row.get("golds") or [row["gold"]]
    refuses = any(
        one == ["refuse"] or gold is None or (one[0] == "parts" and any(part is None for part in gold))
        for one, gold in zip(expressions, golds, strict=True)
    )
    try:
        documents = retriever.invoke(row["question"], k=CHAINS, on_refusal="raise")
    except KGRetrieversError as error:
        return "right" if refuses else "refused", f"{type(error).__name__}: {error}"
    said = Said([document.metadata for document in documents], retriever.graph, called)
    told = f"{said.value!r} {sorted(said.answers)} {said.first['confidence']} {said.first['details'].get('pattern')}"
    right = not refuses and any(is_right(one, gold, said) for one, gold in zip(expressions, golds, strict=True))
    return ("right" if right else "wrong"), told


def outcomes(folder: Path, report: Callable[[str], None]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the questions of a folder with their outcomes, and report those that are not right."""
    file = next(path for name in ("graph.ttl", "graph.tsv") if (path := folder / name).exists())
    retriever = SimGRAGRetriever.from_index(GraphIndex.build(KnowledgeGraph.from_file(file), default_embeddings()))
    facts = Facts(folder)
    for line in (folder / "questions.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        golds = golds_of(facts, row)
        result, said = outcome(retriever, row, golds, facts.called)
        if result != "right":
            report(
                f"{folder.name} {row['shape']} {result}: {row['question']}\n    {said[:600]}\n    GOLD {golds!r:.300}"
            )
        yield row, result


def main() -> None:
    """Ask all questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="*", help="the names of graphs; all by default")
    parser.add_argument("--kept", action="store_true", help="ask the graphs that are kept aside")
    parser.add_argument("--more", action="store_true", help="ask two further graphs")
    parser.add_argument("--show", action="store_true", help="show the questions that are not answered rightly")
    parser.add_argument("--record", action="store_true", help="write the table of the docs")
    options = parser.parse_args()
    logging.getLogger("kg_retrievers").setLevel(logging.ERROR)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    folders = HERE / ("kept" if options.kept else "more" if options.more else "looked_at")
    for folder in sorted(folders.iterdir()):
        if options.graphs and folder.name not in options.graphs:
            continue
        for row, result in outcomes(folder, print if options.show else lambda text: None):
            for name in (row["shape"], folder.name, "all"):
                counts[name][result] += 1
    for name, found in counts.items():
        print(f"{name:12}", *(f"{outcome} {found[outcome] / found.total():.3f}" for outcome in OUTCOMES), found.total())
    if options.record:
        title = {"more": "looked at, harder words", "kept": "kept aside"}.get(folders.name, "looked at")
        rows = figures.outcome_table("shape", title, {name: name for name in (*SHAPES, "facts", "all")}, counts)
        run = figures.run_of(figures.this_command("benchmarks.question_shapes"), n=f"{counts['all'].total()} questions")
        figures.record(f"question-shapes-{folders.name.replace('_', '-')}", rows, run)


if __name__ == "__main__":
    main()
