"""Evidence as a picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from base64 import b64decode
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hash_seeds import outputs_under_hash_seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from kg_retrievers import flat_metadata
from kg_retrievers.drawing import Drawing, draw
from kg_retrievers.drawing.picture import MAX_CHARACTERS
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Evidence, KnowledgeGraph, Path, Triple

HER = Triple("Her", "directed_by", "Spike Jonze")
WRITTEN = Triple("Her", "written_by", "Spike Jonze")
ADAPTATION = Triple("Adaptation", "directed_by", "Spike Jonze")
LOOP = Triple("Her", "contains", "Her")
DETAILS = {"entities": [["her", "Her"]], "distance": 0.0}
EVIDENCE = Evidence((HER, WRITTEN, LOOP, ADAPTATION), 1.0, ("Spike Jonze",), details=DETAILS)

MERMAID = """\
flowchart LR
    n0["Her"]:::known
    n1["Spike Jonze"]:::answer
    n2["Adaptation"]
    n0 -->|"directed by"| n1
    n0 -->|"written by"| n1
    n0 -->|"contains"| n0
    n2 -->|"directed by"| n1
    classDef answer fill:#fff1c7,stroke:#8a5a00,color:#1f2328
    classDef known fill:#ddf0ff,stroke:#0a5cb8,color:#1f2328
"""

HOSTILE = [
    *('"', "\\", '\\"', "\\N", "a\r\n\tb", "<script>alert(1)</script>", "</title></svg>", "&lt;", "&#60;", "#quot;"),
    *("]]>", '"]', "end", "graph", "%%{init: {}}%%", "a|b", "a;b", "`code`", "**bold**", "_x_", "1. first", "- item"),
    *("# title", "www.x.org", "fa:fa-car", "$\\frac", "{x}", "", " ", "\x00", "\ufffe", "\ud800", "\u202e", "\u2028"),
    *("宮崎駿", "عمر الشريف", "e\u0301", "👩\u200d🚀", "ﬂ°°35¶ß"),
]
names = st.sampled_from(HOSTILE) | st.text(st.characters(), max_size=40)
few = st.sampled_from("abcdef")


def picture(drawing: Drawing) -> ElementTree.Element:
    """Return the SVG that a notebook is given, parsed."""
    image = ElementTree.fromstring(drawing._repr_html_().removesuffix(">") + "/>")
    assert (image.tag, image.attrib["alt"]) == ("img", repr(drawing))
    data = image.attrib["src"].removeprefix("data:image/svg+xml;base64,")
    return ElementTree.fromstring(b64decode(data).replace(b' xmlns="http://www.w3.org/2000/svg"', b"", 1))


def texts(svg: ElementTree.Element) -> list[str]:
    """Return all that is written in a picture: entities, relations, the lines below."""
    return [text.text or "" for text in svg.iter("text")]


def boxes(svg: ElementTree.Element) -> np.ndarray:
    """Return left, top, right and bottom of each entity and relation."""
    found = [[float(rect.attrib[name]) for name in ("x", "y", "width", "height")] for rect in svg.findall("g/rect")]
    corners = np.array(found).reshape(-1, 4)
    corners[:, 2:] += corners[:, :2]
    return corners


# --- what is drawn --------------------------------------------------------------------------------------------------


def test_parts_of_a_picture_do_not_start_at_one_place() -> None:
    facts = [("a", "r", "b"), *(("c", "r", name) for name in "defgh")]
    data = draw(Evidence(tuple(Triple(*fact) for fact in facts), score=1.0)).page_data()
    assert np.isfinite([node["x"] for node in data["nodes"]]).all()


def test_mermaid() -> None:
    assert draw(EVIDENCE).to_mermaid() == MERMAID


def test_networkx() -> None:
    graph = draw(EVIDENCE, label=str.upper, max_triples=3).to_networkx()
    assert dict(graph.nodes(data=True)) == {
        "Her": {"label": "HER", "role": "known"},
        "Spike Jonze": {"label": "SPIKE JONZE", "role": "answer"},
    }
    assert list(graph.edges(keys=True)) == [
        ("Her", "Spike Jonze", "directed_by"),
        ("Her", "Spike Jonze", "written_by"),
        ("Her", "Her", "contains"),
    ]
    assert graph.graph == {"left_out": 1}
    assert set(KnowledgeGraph.from_networkx(graph, attributes="drop").triples()) == {HER, WRITTEN, LOOP}


def test_svg() -> None:
    svg = picture(draw(EVIDENCE, label={"Her": "HER", "Spike Jonze": "Spike", "Adaptation": "Adaptation"}.__getitem__))
    assert [title.text for title in svg.iter("title")] == [
        *("HER\nHer", "Spike\nSpike Jonze", "Adaptation", "directed_by", "written_by", "contains", "directed_by")
    ]
    assert texts(svg) == [
        *("HER", "Spike", "Adaptation", "directed by", "written by", "contains", "directed by"),
        *("■ answer", "■ known"),
    ]
    assert [group[1].attrib["fill"] for group in svg.iter("g")] == [
        *("#ddf0ff", "#fff1c7", "#f3f4f6", "#ffffff", "#ffffff", "#ffffff", "#ffffff")
    ]
    assert len(svg.findall("path")) == len(svg.findall("polygon")) == 4


def document(*triples: Triple, **metadata: Any) -> Document:
    return Document("", metadata={"triples": [list(triple) for triple in triples], **metadata})


def test_what_can_be_drawn() -> None:
    path = Path(("Her", "Spike Jonze", "Adaptation"), (HER, ADAPTATION))
    for what in (Evidence((HER, ADAPTATION), 1.0), path, document(HER, ADAPTATION), [path], (path, path), iter([path])):
        drawing = draw(what)
        assert drawing.triples == (HER, ADAPTATION)
        assert list(drawing.labels) == ["Her", "Spike Jonze", "Adaptation"]
    assert draw(SimpleNamespace(metadata={"triples": [list(HER)]})).triples == (HER,)


def test_several_are_one() -> None:
    drawing = draw(
        [
            document(WRITTEN, answers=["Spike Jonze"], labels={"Her": "HER"}),
            Evidence((HER, WRITTEN), 0.5, ("Nobody",), details=DETAILS),
            document(HER, ADAPTATION, answers=["Adaptation"], labels={"Her": "her", "Adaptation": "A."}),
        ]
    )
    assert drawing.triples == (WRITTEN, HER, ADAPTATION)
    assert drawing.labels == {"Her": "HER", "Spike Jonze": "Spike Jonze", "Adaptation": "A."}
    assert drawing.answers == {"Spike Jonze", "Adaptation"}
    assert drawing.known == {"Her"}
    assert repr(drawing) == "Drawing(entities=3, triples=3, left_out=0)"


@pytest.mark.parametrize(
    ("entities", "known"),
    [
        ([["her", "Her"]], {"Her"}),
        ([("her", "Her"), ["x", "Nobody"]], {"Her"}),
        ([], set()),
        (["Her"], set()),
        ([["Her"]], set()),
        ([["her", 7]], set()),
        ({"her": "Her"}, set()),
        ("Her", set()),
        (None, set()),
    ],
)
def test_known_entities_are_pairs_in_the_details(entities: object, known: set[str]) -> None:
    assert draw(document(HER, details={"entities": entities})).known == known
    assert draw(Evidence((HER,), 1.0, details={"entities": entities})).known == known


@pytest.mark.parametrize(
    "what",
    [
        *("Her", 7, None, HER, [HER], [[list(HER)]], [None], Document("no facts"), document(), object()),
        *(Document("", metadata={"triples": rows}) for rows in ("abc", [["a", "b"]], [["a", "b", 3]], ["abc"], None)),
        flat_metadata(document(HER)),
    ],
    ids=lambda what: type(what).__name__,
)
def test_what_cannot_be_drawn(what: Any) -> None:
    if what == document():
        assert draw(what).triples == ()
        return
    with pytest.raises(InvalidArgumentError, match=r"draw: wanted Evidence, a Path, or a Document"):
        draw(what)


@pytest.mark.parametrize("most", [0, -1, True, 2.0, "9", None])
def test_max_triples_is_checked(most: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape("draw: max_triples must be ") + f".*but got {most!r}"):
        draw(EVIDENCE, max_triples=most)


@pytest.mark.parametrize(("most", "notice"), [(4, None), (3, "1 more triple left out"), (1, "3 more triples left out")])
def test_what_is_left_out_is_said(most: int, notice: str | None) -> None:
    drawing = draw([EVIDENCE, EVIDENCE], max_triples=most)
    assert len(drawing.triples) == most
    for text in (drawing.to_mermaid(), "\n".join(texts(picture(drawing)))):
        assert "left out" in text if notice else "left out" not in text
        assert notice is None or notice in text


@pytest.mark.parametrize("what", [[], Evidence((), 0.0, ("Her",)), Path(("Her",), ()), document()], ids=repr)
def test_nothing_is_said_to_be_nothing(what: Any) -> None:
    drawing = draw(what)
    assert drawing.to_mermaid() == 'flowchart LR\n    note["no triples"]\n'
    assert len(drawing.to_networkx()) == 0
    assert texts(picture(drawing)) == ["no triples"]


def test_entities_without_facts_stand_in_a_column() -> None:
    drawing = draw(Evidence((), 1.0, ("Up",), details={"lone_entities": ["Her", "Up"]}))
    assert texts(picture(drawing)) == ["Her", "Up", "■ answer", "no triples"]
    her, up = boxes(picture(drawing))
    assert her[3] < up[1]
    assert [node["role"] for node in drawing.page_data()["nodes"]] == ["other", "answer"]


# --- every text is data ---------------------------------------------------------------------------------------------

MERMAID_TEXT = r'"((?:[^\W_]|[ ,-]|#\d+;)+)"'
MERMAID_LINES = [
    "flowchart LR",
    rf"    n\d+\[{MERMAID_TEXT}\](?::::(?:answer|known))?",
    rf"    n\d+ -->\|{MERMAID_TEXT}\| n\d+",
    r"    classDef (?:answer|known) [\w:#,]+",
]
#: No event handler, no address, no style.
HARMLESS = {"x", "y", "width", "height", "rx", "d", "points", "fill", "stroke", "font-size", "font-family"}
HARMLESS |= {"role", "aria-label", "text-anchor", "dominant-baseline"}


def read(text: str, grammar: list[str]) -> list[tuple[str, ...]]:
    """Return the quoted texts of each line; every line is one of the grammar."""
    found = []
    for line in text.splitlines():
        matches = [match for match in (re.fullmatch(rule, line) for rule in grammar) if match]
        assert matches, f"no such line: {line!r}"
        found.append(matches[0].groups())
    return [quoted for quoted in found if quoted]


def mermaid_texts(drawing: Drawing) -> list[str]:
    coded = [quoted for (quoted,) in read(drawing.to_mermaid(), MERMAID_LINES)]
    return [re.sub(r"#(\d+);", lambda code: chr(int(code[1])), text) for text in coded]


@given(names, names, names, names)
def test_any_name_is_a_text(head: str, relation: str, tail: str, label: str) -> None:
    evidence = Evidence((Triple(head, relation, tail),), 1.0, (tail,), details={"entities": [["x", head]]})
    for drawing in (draw(evidence), draw(evidence, label=lambda key: label if key == head else key)):
        svg = picture(drawing)
        assert {element.tag for element in svg.iter()} <= {"svg", "g", "title", "rect", "text", "path", "polygon"}
        assert {name for element in svg.iter() for name in element.attrib} <= HARMLESS
        shown = [text.text for text in svg.findall("g/text")]
        assert len(shown) == len(drawing.labels) + 1
        assert all(shown)
        assert mermaid_texts(drawing) == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\nb", "a b"),
        ("a \t\r\n b", "a b"),
        ("\x00", "(no name)"),
        ("", "(no name)"),
        ("\ud800x", "\ufffdx"),
        ("x" * MAX_CHARACTERS, "x" * MAX_CHARACTERS),
        ("x" * (MAX_CHARACTERS + 1), "x" * (MAX_CHARACTERS - 1) + "…"),
        ("x" * (MAX_CHARACTERS - 2) + " and so on", "x" * (MAX_CHARACTERS - 2) + "…"),
    ],
)
def test_what_is_changed_in_a_name(name: str, shown: str) -> None:
    assert texts(picture(draw(Evidence((Triple(name, "r", "t"),), 1.0))))[0] == shown


def test_tooltips_are_whole() -> None:
    head, relation = "A very long name that does not end " * 9, "an_even_longer_relation_that_goes_on_and_on"
    drawing = draw(Evidence((Triple("Q1", relation, "t"),), 1.0), label=lambda key: head if key == "Q1" else key)
    tooltips = [title.text for title in picture(drawing).iter("title")]
    assert tooltips == [f"{head.strip()}\nQ1", "t", relation]


def test_equal_labels_stay_two() -> None:
    remakes = (Triple("Q1", "year", "1984"), Triple("Q2", "year", "2021"))
    drawing = draw(Evidence(remakes, 1.0), label=lambda key: "Dune" if key.startswith("Q") else key)
    assert mermaid_texts(drawing) == ["Dune", "1984", "Dune", "2021", "year", "year"]
    assert [title.text for title in picture(drawing).iter("title")][::2][:2] == ["Dune\nQ1", "Dune\nQ2"]


# --- the layout -----------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.lists(st.builds(Triple, few, st.text("rstuvw_", max_size=20), few), min_size=1, max_size=25))
def test_boxes_never_overlap_and_arrows_end_at_them(triples: list[Triple]) -> None:
    drawing = draw(Evidence(tuple(triples), 1.0))
    svg = picture(drawing)
    found, entities = boxes(svg), list(drawing.labels)
    assert len(found) == len(entities) + len(drawing.triples)
    assert found.min() >= 0
    assert (found[:, 2:].max(0) <= [float(svg.attrib["width"]), float(svg.attrib["height"])]).all()
    for one, other in combinations(found, 2):
        assert (one[:2] > other[2:]).any() or (other[:2] > one[2:]).any()
    arrows, lines = svg.findall("polygon"), svg.findall("path")
    assert len(arrows) == len(lines) == len(drawing.triples)
    for (head, _, tail), arrow, line in zip(drawing.triples, arrows, lines, strict=True):
        left, top, right, bottom = found[entities.index(tail)]
        x, y = map(float, arrow.attrib["points"].split()[0].split(","))
        assert max(left - x, x - right, top - y, y - bottom) == pytest.approx(0, abs=4)
        start = np.array(line.attrib["d"].split()[0].removeprefix("M").split(","), float)
        assert start == pytest.approx((found[entities.index(head)].reshape(2, 2)).mean(0), abs=0.2)


def test_parallel_edges_and_loops_have_lines_of_their_own() -> None:
    triples = [Triple(head, f"r{number}", tail) for number in range(3) for head, tail in ("ab", "ba", "aa")]
    lines = [line.attrib["d"] for line in picture(draw(Evidence(tuple(triples), 1.0))).iter("path")]
    assert len(set(lines)) == 9
    for triple, line in zip(triples, lines, strict=True):
        points = np.array(re.findall(r"[\d.]+,[\d.]+", line))
        start, bend, middle = (np.array(point.split(","), float) for point in points[:3])
        away = np.linalg.norm(bend - (start + middle) / 2)
        assert (away > 5) == (triple.head == triple.tail)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_a_chain_goes_from_left_to_right(length: int) -> None:
    chain = [Triple(str(number), "r", str(number + 1)) for number in range(length)]
    left = boxes(picture(draw(Evidence(tuple(chain), 1.0))))[: length + 1, 0]
    assert (np.diff(left) > 0).all()


def luminance(color: str) -> float:
    parts = (int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_texts_stand_out_from_what_is_behind_them() -> None:
    """The picture brings its own paper, so that it reads the same in light and dark notebooks."""
    svg = picture(draw(EVIDENCE, max_triples=3))
    paper = svg[0]
    assert paper.tag == "rect"
    assert paper.attrib["width"] == svg.attrib["width"]
    assert paper.attrib["height"] == svg.attrib["height"]
    for group in svg.iter("g"):
        rect, text = group[1], group[2]
        assert contrast(rect.attrib["fill"], text.attrib["fill"]) >= 7
    below = svg.findall("text")
    assert [text.text for text in below] == ["■ answer", "■ known", "1 more triple left out"]
    for text in below:
        assert contrast(paper.attrib["fill"], text.attrib["fill"]) >= 4.5
    fills = {group[2].text: group[1].attrib["fill"] for group in svg.iter("g")}
    assert fills["Spike Jonze"] != fills["Her"]


IN_ANOTHER_PROCESS = """
import sys
sys.modules["scipy"] = None
from kg_retrievers.drawing import draw
from kg_retrievers.graph import Evidence
from kg_retrievers.testing import tiny_graph
graph = tiny_graph()
answers = ("Spike Jonze", "David Lynch", "Q55400")
drawing = draw(Evidence(tuple(graph.triples()), 1.0, answers), label=graph.label)
sys.stdout.buffer.write("".join([drawing.to_mermaid(), drawing._repr_html_()]).encode())
"""


@pytest.mark.heavy
def test_the_same_in_every_process_and_without_scipy() -> None:
    (output,) = outputs_under_hash_seeds(IN_ANOTHER_PROCESS)
    assert len(output) > 5000
