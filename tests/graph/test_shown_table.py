from __future__ import annotations

from xml.etree import ElementTree

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.schema import MOST_CHARACTERS, MOST_ROWS, html_table


def cells(html: str) -> list[list[str]]:
    """Return the texts of each row of the body; it is well-formed and holds a table alone."""
    (table,) = ElementTree.fromstring(f"<div>{html}</div>")
    assert {element.tag for element in table.iter()} <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert {name for element in table.iter() for name in element.attrib} <= {"style", "colspan"}
    return [[cell.text or "" for cell in row] for row in table.findall("tbody/tr")]


def test_every_text_is_a_text() -> None:
    hostile = [
        *("</td><script>alert(1)</script>", '"><img onerror=x>', "&lt;"),
        *("a\nb\u2028c", "\ud800", "\u202ex", "\x00"),
    ]
    shown = cells(html_table(hostile[0], hostile, [hostile]))
    assert shown == [[hostile[0], hostile[1], "&lt;", "a b c", "\ufffd", "x", " "]]


def test_long_texts_are_cut_and_rows_counted() -> None:
    shown = cells(html_table("many", ["name"], [["x" * 1_000_000]] * (MOST_ROWS + 5)))
    assert shown[0] == ["x" * MOST_CHARACTERS + "…"]
    assert shown[MOST_ROWS:] == [["and 5 more"]]


def test_a_schema() -> None:
    triples = [("Her", "directed_by", "Spike Jonze"), ("Her", "<b>", "2013"), ("Up", "<b>", "2009")]
    schema = KnowledgeGraph.from_triples(triples).schema()
    html = schema._repr_html_()
    assert cells(html)[0][:2] == ["<b>", "2"]
    assert "5 entities, 3 triples" in html
    assert "<b>" not in html
