"""Builds the docs into a site."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]


def build_site(folder: Path, pages: Iterable[Path] = ()) -> Path:
    """Build the site in an empty folder, with pages that `make docs` writes for the gallery, and return where it is."""
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "zensical.toml"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("*.html"))
    for path in pages:
        shutil.copy(path, folder / "docs" / "pictures" / "gallery")
    (folder / "kg_retrievers").symlink_to(ROOT / "kg_retrievers")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"
