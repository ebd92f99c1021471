"""The page of `kg-retrievers serve`: the seconds until it can be asked, and its faults of accessibility.

    python -m benchmarks.served_page [GRAPH] [--axe axe.min.js] [--opened 5]

Serves a graph, by default the sample graph, and opens the page in Chromium without a window, each time in a fresh
browser, until the first proposed question is seen. With the script of axe-core (`npm pack axe-core`), it asks the
questions below in light and in dark colours, and prints the violations of each view by their impact.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, Page, sync_playwright

SAMPLE = Path(__file__).parents[1] / "kg_retrievers" / "sample" / "graph.jsonl"

#: Questions whose views differ: a relation, a table of counts, a refusal, a list.
QUESTIONS = (
    "Who directed Her?",
    "How many films are there per director?",
    "What salary has Amy Adams?",
    "Which films did Christopher Nolan direct?",
)

VIOLATIONS = "async () => (await axe.run(document)).violations.map((one) => [one.impact, one.id, one.nodes.length])"


@contextmanager
def served(graph: Path) -> Iterator[str]:
    """Serve a graph, and yield the address."""
    command = [sys.executable, "-m", "kg_retrievers.cli", "serve", str(graph), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            said = ""
            while not (found := re.search(r"http://127\.0\.0\.1:\d+/", said)):
                line = process.stdout.readline() if process.stdout else ""
                if not line:
                    raise SystemExit(f"The server ended: {said}")
                said += line
            yield found[0]
        finally:
            process.terminate()


def opened(browser: Browser, address: str) -> float:
    """Return the seconds until the page proposes a question."""
    page = browser.new_page()
    begin = time.perf_counter()
    page.goto(address)
    page.wait_for_selector(".chip")
    seconds = time.perf_counter() - begin
    page.close()
    return seconds


def views(page: Page, address: str) -> Iterator[str]:
    """Yield the name of each view once it is shown."""
    page.goto(address)
    page.wait_for_selector(".chip")
    yield "start"
    page.click("#open-schema")
    page.wait_for_selector("#schema table")
    yield "what the graph holds"
    page.goto(address)
    for question in QUESTIONS:
        page.fill("#question", question)
        page.click("#ask button.main")
        page.locator(".answer[aria-busy=true]").wait_for(timeout=2_000, state="attached")
        page.locator(".answer[aria-busy=false]").wait_for()
        page.wait_for_timeout(500)
        yield question


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", type=Path, nargs="?", default=SAMPLE)
    parser.add_argument("--axe", type=Path)
    parser.add_argument("--opened", type=int, default=5)
    options = parser.parse_args()
    executable = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with served(options.graph) as address, sync_playwright() as playwright:
        seconds = list[float]()
        for _ in range(options.opened):
            browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
            seconds.append(opened(browser, address))
            browser.close()
        print(f"opened {len(seconds)} times, seconds: median {median(seconds):.2f}, worst {max(seconds):.2f}")
        if options.axe is None:
            return
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        impacts = Counter[str]()
        for scheme in ("light", "dark"):
            context = browser.new_context(bypass_csp=True, color_scheme=scheme)
            page = context.new_page()
            for view in views(page, address):
                page.evaluate(options.axe.read_text("utf-8"))
                found = page.evaluate(VIOLATIONS)
                impacts.update(impact for impact, _, _ in found)
                print(f"{scheme}, {view}: {found or 'nothing'}")
            context.close()
        browser.close()
        print(f"in all: {dict(impacts) or 'nothing'}")


if __name__ == "__main__":
    main()
