"""The page of a drawing in a real browser: what it shows, its keys, its colours, and that no name runs as a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser import BrowserPage
from browser import browser_page as browser_page
from drawn_evidence import HOSTILE, hostile_documents, scale_free
from langchain_core.documents import Document

from kg_retrievers.drawing import Drawing, draw
from kg_retrievers.graph import Evidence

#: How many pairs of boxes overlap, as the page has placed them, and how many texts are wider than their boxes.
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


def document(**metadata: Any) -> Document:
    triples = [["Her", "directed_by", "Q1"], ["Her", "written_by", "Q1"], ["Her", "has_genre", "Drama"]]
    given = {"triples": triples, "labels": {"Q1": "Spike Jonze"}, "answers": ["Q1"], "score": 0.875, "rank": 1}
    given |= {"retriever": "SimGRAGRetriever", "confidence": 0.75, "details": {"entities": [["her", "Her"]]}}
    return Document("Her -> directed by -> Spike Jonze", metadata=given | metadata)


def shown(browser: BrowserPage, drawing: Drawing, folder: Path, title: str = "Who directed Her?") -> Any:
    """Open a drawing in the browser, and return Playwright's page once it is painted."""
    path = folder / "evidence.html"
    drawing.save(path, title=title)
    browser.requests.clear()
    browser.page.goto(path.as_uri())
    browser.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return browser.page


def boxes_in(page: Any, selector: str) -> list[str]:
    """Return the ids of the boxes of a class, in the picture."""
    return page.evaluate(f"evidence.cy.nodes('{selector}').map((node) => node.id())")


@pytest.mark.parametrize(("count", "most"), [(1, 0), (5, 0), (50, 0), (500, 0)])
def test_names_do_not_overlap_and_nothing_is_asked_for(
    browser_page: BrowserPage, tmp_path: Path, count: int, most: int
) -> None:
    evidence = scale_free(count)
    page = shown(browser_page, draw(evidence, max_triples=500), tmp_path)
    assert page.evaluate("evidence.cy.nodes('.relation').length") == count
    assert page.evaluate(OVERLAPS) <= most
    assert browser_page.requests == [(tmp_path / "evidence.html").as_uri()]
    assert (tmp_path / "evidence.html").stat().st_size <= 1_000_000
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(300)
        browser_page.keep_picture(f"page-{count}-{scheme}")
    assert browser_page.errors == []


def test_what_is_shown(browser_page: BrowserPage, tmp_path: Path) -> None:
    page = shown(browser_page, draw(document()), tmp_path)
    assert page.title() == page.locator("h1").inner_text() == "Who directed Her?"
    assert page.locator(".kg-summary").inner_text().split("\n") == ["Answer: Spike Jonze", "3 facts · 3 entities"]
    rows = [row.split("\t") for row in page.locator(".kg-facts tbody").inner_text().split("\n")]
    assert rows == [
        ["1", "Her", "directed by", "Spike Jonze"],
        ["2", "Her", "written by", "Spike Jonze"],
        ["3", "Her", "has genre", "Drama"],
    ]
    assert page.locator(".kg-legend li").all_inner_texts() == ["Answer", "Known from the question", "Other"]
    labels = page.evaluate("evidence.cy.nodes().map((node) => node.data('label'))")
    assert labels == ["Her", "Spike Jonze", "Drama", "[1] directed by", "[2] written by", "[3] has genre"]


def test_a_click_shows_where_a_fact_is_from(browser_page: BrowserPage, tmp_path: Path) -> None:
    sources = [["imdb.tsv", "wikidata"], [], []]
    page = shown(browser_page, draw([document(sources=sources), document(rank=2, score=0.5)]), tmp_path)
    assert not page.locator(".kg-details").is_visible()
    page.locator(".kg-facts tbody tr").first.click()
    details = page.locator(".kg-details").inner_text()
    for text in ("Fact 1", "directed by Spike Jonze", "imdb.tsv", "wikidata", "Evidence of rank 1", "0.875", "0.75"):
        assert text in details
    for text in ("SimGRAGRetriever", "Evidence of rank 2", "0.5"):
        assert text in details
    page.locator(".kg-details .kg-link").last.click()
    assert page.locator(".kg-details h2").inner_text() == "Spike Jonze"
    assert "Q1" in page.locator(".kg-details").inner_text()
    assert page.locator(".kg-expand").count() == 0  # there is nobody to ask for more
    page.get_by_label("Close details").click()
    assert not page.locator(".kg-details").is_visible()


def test_a_click_on_the_picture_opens_a_node(browser_page: BrowserPage, tmp_path: Path) -> None:
    page = shown(browser_page, draw(document()), tmp_path)
    place = page.evaluate("evidence.cy.getElementById('n2').renderedPosition()")
    page.locator(".kg-canvas").click(position=place)
    assert page.locator(".kg-details h2").inner_text() == "Drama"
    assert boxes_in(page, ".faded") == ["n1", "re0", "re1"]


def test_all_by_keyboard(browser_page: BrowserPage, tmp_path: Path) -> None:
    page = shown(browser_page, draw(document()), tmp_path)
    canvas, details = page.locator(".kg-canvas"), page.locator(".kg-details")
    stops = []
    for _ in range(6):
        page.keyboard.press("Tab")
        stops.append(page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.tagName"))
    assert stops == ["INPUT", "Zoom out", "Zoom in", "Fit the whole graph", "Picture of the facts", "TR"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert details.locator("h2").inner_text() == "Fact 3"
    page.keyboard.press("Escape")
    assert not details.is_visible()
    assert page.evaluate("document.activeElement.innerText.split('\\t')[0]") == "3"
    canvas.focus()
    page.keyboard.press("ArrowRight")
    assert boxes_in(page, ".cursor") == ["n0"]
    for key, back in (("ArrowRight", "ArrowLeft"), ("ArrowDown", "ArrowUp")):
        before = page.evaluate("evidence.cy.$('.cursor').position()")
        page.keyboard.press(key)
        after = page.evaluate("evidence.cy.$('.cursor').position()")
        axis = "x" if key == "ArrowRight" else "y"
        assert after[axis] > before[axis] or boxes_in(page, ".cursor") == ["n0"]
        page.keyboard.press(back)
    seen = []
    for _ in range(7):
        page.keyboard.press("PageDown")
        seen += boxes_in(page, ".cursor")
    assert set(seen) == {"n0", "n1", "n2", "re0", "re1", "re2"}
    assert seen[0] == seen[6]
    page.keyboard.press("Enter")
    assert details.is_visible()
    assert page.evaluate("document.activeElement.tagName") == "H2"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.className").startswith("kg-canvas")
    before = page.evaluate("evidence.cy.zoom()")
    page.keyboard.press("+")
    assert page.evaluate("evidence.cy.zoom()") > before
    page.keyboard.press("0")
    assert page.evaluate("evidence.cy.zoom()") == pytest.approx(before)


def test_what_a_screen_reader_is_told(browser_page: BrowserPage, tmp_path: Path) -> None:
    page = shown(browser_page, draw(document()), tmp_path)
    assert page.get_by_role("grid", name="Facts").get_by_role("row").count() == 4
    assert page.get_by_role("columnheader").all_inner_texts() == ["#", "Head", "Relation", "Tail"]
    assert page.get_by_role("searchbox", name="Search names of entities and relations").count() == 1
    page.locator(".kg-canvas").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("[aria-live=polite].kg-said").text_content() == "Her, known from the question, 3 facts"
    unnamed = page.evaluate("[...document.querySelectorAll('button')].filter((one) => !one.innerText.trim()).length")
    assert unnamed == 0


def test_search(browser_page: BrowserPage, tmp_path: Path) -> None:
    page = shown(browser_page, draw(document(labels={"Q1": "Spïke Jonze"})), tmp_path)
    search = page.get_by_role("searchbox")
    search.fill("spike")
    assert page.locator(".kg-found").inner_text() == "1 found"
    assert boxes_in(page, ".match") == ["n1"]
    assert page.locator(".kg-facts tbody tr:visible").count() == 2
    search.press("Enter")
    assert boxes_in(page, ".cursor") == ["n1"]
    search.fill("genre")
    assert boxes_in(page, ".match") == ["re2"]
    search.fill("nobody")
    assert page.locator(".kg-found").inner_text() == "0 found"
    search.press("Escape")
    assert search.input_value() == ""
    assert boxes_in(page, ".faded") == []
    assert page.locator(".kg-facts tbody tr:visible").count() == 3


def test_light_and_dark(browser_page: BrowserPage, tmp_path: Path) -> None:
    page = shown(browser_page, draw(document()), tmp_path)
    colour = "evidence.cy.getElementById('n1').style('background-color')"
    seen = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
        page.wait_for_timeout(200)
        paper = page.evaluate("getComputedStyle(document.querySelector('.kg-view')).backgroundColor")
        seen[scheme] = (page.evaluate(colour), paper)
    assert seen == {"light": ("rgb(255,241,199)", "rgb(255, 255, 255)"), "dark": ("rgb(75,56,0)", "rgb(13, 17, 23)")}


def test_print(browser_page: BrowserPage, tmp_path: Path) -> None:
    page = shown(browser_page, draw(document()), tmp_path)
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    svg = page.locator(".kg-print svg")
    assert svg.is_visible()
    assert svg.locator("text").all_text_contents()[:3] == ["Her", "Spike Jonze", "Drama"]
    assert svg.locator("polygon").count() == 3
    assert page.locator(".kg-facts").is_visible()
    for hidden in (".kg-canvas", ".kg-buttons", "input"):
        assert not page.locator(hidden).is_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.kg-view')).backgroundColor") == "rgb(255, 255, 255)"
    browser_page.keep_picture("page-print")
    assert page.pdf().startswith(b"%PDF")


def test_nothing_is_said_to_be_nothing(browser_page: BrowserPage, tmp_path: Path) -> None:
    page = shown(browser_page, draw([]), tmp_path)
    assert page.locator(".kg-summary").inner_text() == "No facts"
    page.locator(".kg-canvas").focus()
    for key in ("ArrowRight", "Enter", "Escape", "0"):
        page.keyboard.press(key)
    assert browser_page.errors == []


def test_hostile_names_do_nothing(browser_page: BrowserPage, tmp_path: Path) -> None:
    page = shown(browser_page, draw(hostile_documents(), max_triples=500), tmp_path, title=HOSTILE[0])
    page.evaluate("document.querySelectorAll('.kg-facts tbody tr').forEach((row) => row.click())")
    for box in page.evaluate("evidence.cy.nodes('[^none]').map((node) => node.id())"):
        page.evaluate("(id) => evidence.open(id.startsWith('r') ? id.slice(1) : id)", box)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.get_by_role("searchbox").fill("<img")
    assert page.evaluate("window.ran") is None
    assert page.evaluate("document.querySelectorAll('img, iframe, b, a').length") == 0
    assert page.evaluate("document.scripts.length") == 4
    assert len(browser_page.requests) == 1
    assert browser_page.errors == []
    browser_page.keep_picture("page-hostile")


def test_a_script_that_is_put_in_does_not_run(browser_page: BrowserPage, tmp_path: Path) -> None:
    """The policy holds even where a name would get into the markup."""
    html = draw(document()).to_html()
    for number, markup in enumerate(("<script>window.ran = 1</script>", "<img src=x onerror='window.ran = 1'>")):
        path = tmp_path / f"{number}.html"
        path.write_text(html.replace("</h1>", f"</h1>{markup}"), encoding="utf-8")
        browser_page.page.goto(path.as_uri())
        assert browser_page.page.evaluate("window.ran") is None
        assert browser_page.page.evaluate("evidence.cy.nodes().length") == 6
    assert "Content Security Policy" in " ".join(browser_page.errors)


def test_more_facts_are_asked_for_where_somebody_answers(browser_page: BrowserPage, tmp_path: Path) -> None:
    page = shown(browser_page, draw(document()), tmp_path)
    page.evaluate(
        """(data) => {
            const asked = (node) => { window.asked = node.key; evidence.update(data); };
            const old = evidence;
            const first = JSON.parse(document.getElementById("data").textContent);
            old.destroy();
            window.evidence = showGraph(document.getElementById("view"), first, { onExpand: asked });
            evidence.open("n1");
        }""",
        draw([document(), Evidence((("Jackass", "directed_by", "Q1"),), 1.0)]).page_data(),  # type: ignore[arg-type]
    )
    page.locator(".kg-expand").click()
    assert page.evaluate("window.asked") == "Q1"
    assert page.locator(".kg-facts tbody tr").count() == 4
    assert page.locator(".kg-details h2").inner_text() == "Spike Jonze"  # stays open
    assert browser_page.errors == []
