"""The gallery shows what its blocks make."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from built_site import build_site

from kg_retrievers.methods.registry import Method, entries

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def gallery() -> ModuleType:
    """The script that `make docs` runs."""
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "docs" / "gallery.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(gallery: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the page makes."""
    folder = tmp_path_factory.mktemp("gallery")
    gallery.make_pictures(folder)
    return folder


@pytest.mark.heavy
def test_pictures_are_what_the_page_makes(gallery: ModuleType, made: Path) -> None:
    pictures = {path.name: path.read_text("utf-8") for path in made.glob("*.svg")}
    kept = {path.name: path.read_text("utf-8") for path in gallery.PICTURES.glob("*.svg")}
    assert pictures.keys() == kept.keys()
    stale = sorted(name for name, text in pictures.items() if kept[name] != text)
    assert not stale, f"{stale} are out of date. Run: make docs"


@pytest.mark.heavy
def test_everything_made_is_shown_and_nothing_else(gallery: ModuleType, made: Path) -> None:
    text = gallery.PAGE.read_text("utf-8")
    shown = set(re.findall(r"pictures/gallery/([\w-]+\.(?:svg|html))", text))
    assert shown == {path.name for ending in ("svg", "html") for path in made.glob(f"*.{ending}")}


def test_each_method_is_in_the_gallery(gallery: ModuleType) -> None:
    names = {method.name for method in entries() if isinstance(method, Method)}
    assert len(names) > 8
    assert names <= {path.stem for path in gallery.PICTURES.glob("*.svg")}


@pytest.mark.heavy
def test_pages_ask_nobody_for_anything(made: Path) -> None:
    pages = sorted(made.glob("*.html"))
    assert [page.name for page in pages] == ["50.html", "500.html"]
    for page in pages:
        text = page.read_text("utf-8")
        assert "default-src 'none'" in text
        assert not re.findall(r"<(?:link|img|iframe|script src)[^>]*", text)
        assert len(text.encode()) < 1_000_000


@pytest.mark.heavy
def test_the_site_shows_what_is_made(made: Path, tmp_path: Path) -> None:
    page = build_site(tmp_path, made.glob("*.html")) / "gallery" / "index.html"
    shown = set(re.findall(r'(?:src|href)="?([^" >]*pictures/gallery/[^" >]*)', page.read_text("utf-8")))
    assert {Path(address).suffix for address in shown} == {".svg", ".html"}
    missing = sorted(address for address in shown if not (page.parent / address).is_file())
    assert not missing
