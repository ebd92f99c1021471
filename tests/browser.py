"""A real Chromium without a window: the fixture `browser_page`, for the pages that the package writes and serves.

A test file takes it by `from browser import browser_page as browser_page`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

#: The names under which Chromium may be installed.
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass
class BrowserPage:
    """A page of the browser, and what it did.

    Attributes:
        page: That of Playwright.
        pictures: The folder for pictures: that of the environment variable KG_RETRIEVERS_PICTURES, else one of the
            test.
        errors: What the console of the browser said of errors and warnings, and errors that nothing caught.
        requests: The addresses that were asked for.
    """

    page: Any
    pictures: Path
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.errors.append(said.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def keep_picture(self, name: str) -> Path:
        """Write what is seen as a PNG file, and return its path."""
        path = self.pictures / f"{name}.png"
        self.page.screenshot(path=str(path))
        return path


def chromium() -> str:
    """Return the path of Chromium; the test is skipped where there is none, or Playwright is missing."""
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no Chromium: looked for {', '.join(NAMES)}")
    return found


@pytest.fixture
def browser_page(tmp_path: Path) -> Iterator[BrowserPage]:
    """A page of a browser of its own; nothing is downloaded, and nothing is kept."""
    executable = chromium()
    from playwright.sync_api import sync_playwright

    pictures = Path(os.environ.get("KG_RETRIEVERS_PICTURES") or tmp_path)
    pictures.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        try:
            yield BrowserPage(browser.new_page(viewport={"width": 1280, "height": 800}), pictures)
        finally:
            browser.close()
