"""Writes a drawing as a page: one file that holds all it needs and asks nobody for anything."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

#: The style sheet that Cytoscape would else write into the page, which the page's policy forbids.
_CYTOSCAPE_STYLE = ".__________cytoscape_container { position: relative; }"

_PAGE_STYLE = """
html, body { height: 100%; margin: 0; background: var(--kg-paper); }
body { display: flex; flex-direction: column; color: var(--kg-ink); font: 14px/1.45 system-ui, sans-serif; }
h1 { margin: 0; padding: 10px 12px 0; font-size: 17px; overflow-wrap: anywhere; }
main { flex: 1; min-height: 0; }
@media print { html, body { display: block; height: auto; } }
"""

_START = """
const data = JSON.parse(document.getElementById("data").textContent);
window.evidence = showGraph(document.getElementById("view"), data);
"""

#: What no text in a script may hold: what may end the script, and what is no text in older JavaScript.
_IN_SCRIPT = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def html_page(data: dict[str, Any], title: str) -> str:
    """Return a page that shows what `Drawing.page_data` returns.

    The page's policy lets only its own scripts and styles run, by their hashes, and lets it load nothing.

    Args:
        data: The data.
        title: The title, shown as the heading.
    """
    scripts = [page_file("cytoscape.min.js"), page_file("graph_view.js"), _START]
    styles = [page_file("style.css"), _PAGE_STYLE, _CYTOSCAPE_STYLE]
    policy = (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{escape(title)}</title>",
            f"<style>{styles[0]}</style>\n<style>{styles[1]}</style>",
            f'<style id="__________cytoscape_stylesheet">{styles[2]}</style>\n</head>\n<body>',
            f"<h1>{escape(title)}</h1>",
            '<main id="view"><noscript>This page shows its facts by a script, which is turned off.</noscript></main>',
            f'<script type="application/json" id="data">{_json(data)}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body>\n</html>\n",
        ]
    )


@cache
def page_file(name: str) -> str:
    """Return a script or the style sheet of the page, as text."""
    return (files("kg_retrievers.drawing") / "page" / name).read_text(encoding="utf-8")


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).translate(_IN_SCRIPT)


def _hashes(texts: list[str]) -> str:
    return " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts)
