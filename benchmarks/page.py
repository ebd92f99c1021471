"""The page of evidence: its size, how long it takes to write and to open, and whether names overlap.

    python -m benchmarks.page GRAPH [--facts 5 50 500] [--draws 5] [--pictures FOLDER]   # a folder or a .tsv file

Draws the facts nearest to random entities of a graph, writes the page, and opens it in Chromium without a window, each
page in a fresh browser, until its first picture is painted. Of each number of facts it says the median and the worst of

- overlaps: pairs of names that lie over one another, as measured in the page;
- size, seconds to write (layout and all) and to open, CPU time of the page's thread, messages of the console, requests
  beside the page itself.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from playwright.sync_api import Browser, sync_playwright

from kg_retrievers import KnowledgeGraph, draw
from kg_retrievers.graph import Evidence, Triple

SEED = 20261123

OVERLAPS = """() => {
    const boxes = evidence.cy.nodes().map((node) => node.boundingBox({ includeLabels: true, includeOverlays: false }));
    let found = 0;
    boxes.forEach((one, place) => boxes.slice(place + 1).forEach((other) => {
        const across = Math.min(one.x2, other.x2) - Math.max(one.x1, other.x1);
        const down = Math.min(one.y2, other.y2) - Math.max(one.y1, other.y1);
        found += across > 0.5 && down > 0.5 ? 1 : 0;
    }));
    return found;
}"""

PAINTED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def evidence_around(graph: KnowledgeGraph, facts: int, generator: np.random.Generator) -> Evidence:
    """Return the facts nearest to a random entity that has so many, with one answer two facts away."""
    by_entity: dict[str, list[Triple]] = {}
    for triple in graph.triples():
        for key in {triple.head, triple.tail}:
            by_entity.setdefault(key, []).append(triple)
    entities = sorted(by_entity)
    while True:
        start = entities[int(generator.integers(len(entities)))]
        found, reached, queue = dict[Triple, None](), {start}, [start]
        while queue and len(found) < facts:
            for triple in by_entity[queue.pop(0)]:
                found.setdefault(triple)
                new = [key for key in (triple.head, triple.tail) if key not in reached]
                reached.update(new)
                queue += new
        if len(found) >= facts:
            triples = tuple(found)[:facts]
            return Evidence(triples, 1.0, (triples[-1].tail,), details={"entities": [["x", start]]})


def measured(evidence: Evidence, browser: Browser, file: Path, picture: Path | None) -> dict[str, float]:
    """Return the figures of one page."""
    begin = time.perf_counter()
    drawing = draw(evidence, max_triples=len(evidence.triples))
    drawing.save(file)
    written = time.perf_counter() - begin
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    said, asked = list[str](), list[str]()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    begin = time.perf_counter()
    page.goto(file.as_uri())
    page.evaluate(PAINTED)
    opened = time.perf_counter() - begin
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    figures = {
        "boxes": len(drawing.labels) + len(drawing.triples),
        "overlaps": page.evaluate(OVERLAPS),
        "kB": file.stat().st_size / 1000,
        "write s": written,
        "open s": opened,
        "open CPU s": metrics["TaskDuration"],
        "console": len(said),
        "requests": len(asked) - 1,
    }
    if picture:
        page.screenshot(path=str(picture))
    page.close()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", type=Path)
    parser.add_argument("--facts", type=int, nargs="+", default=[5, 50, 500])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    graph = KnowledgeGraph.open(options.graph) if options.graph.is_dir() else KnowledgeGraph.from_file(options.graph)
    executable = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(SEED)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        for facts in options.facts:
            rows = []
            for number in range(options.draws):
                browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
                picture = options.pictures / f"{facts}-{number}.png" if options.pictures else None
                evidence = evidence_around(graph, facts, generator)
                rows.append(measured(evidence, browser, Path(folder) / "evidence.html", picture))
                browser.close()
            told = [
                f"{name} {median(row[name] for row in rows):.4g} ({max(row[name] for row in rows):.4g})"
                for name in rows[0]
            ]
            print(f"{facts} facts, {options.draws} pages, median (worst): {', '.join(told)}", flush=True)


if __name__ == "__main__":
    main()
