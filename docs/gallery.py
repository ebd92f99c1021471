"""Make the pictures of the gallery: run the blocks of docs/gallery.md, each of which saves what the page shows.

`make docs` runs it. A block whose optional package is missing is skipped: its picture is kept as it is.
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from pathlib import Path
from shutil import copyfile

from kg_retrievers.errors import MissingExtraError

DOCS = Path(__file__).parent
PAGE = DOCS / "gallery.md"
PICTURES = DOCS / "pictures" / "gallery"

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def make_pictures(folder: Path) -> None:
    """Run the blocks of the page as one program, so that what they save stands in a folder."""
    text = PAGE.read_text(encoding="utf-8")
    program: dict[str, object] = {"__name__": "__main__"}
    with contextlib.chdir(folder):
        for block in _BLOCK.finditer(text):
            code = "\n" * text.count("\n", 0, block.start(1)) + block[1]
            try:
                exec(compile(code, str(PAGE), "exec"), program)
            except MissingExtraError as error:
                print(f"{PAGE.name}: a picture is kept as it is. {error}", file=sys.stderr)


def main() -> None:
    """Write what is made beside the page."""
    with tempfile.TemporaryDirectory() as folder:
        make_pictures(Path(folder))
        for made in sorted([*Path(folder).glob("*.svg"), *Path(folder).glob("*.html")]):
            copyfile(made, PICTURES / made.name)


if __name__ == "__main__":
    main()
