"""The page in a real browser: asked, edited, compared, looked into; with hostile names, and by the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from browser import BrowserPage
from browser import browser_page as browser_page
from web_server import WebServer

from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
from kg_retrievers.serving.access import Access
from kg_retrievers.serving.service import GraphService
from kg_retrievers.serving.web.app import OPEN_PATHS, make_app

QUESTION = "Which films did Christopher Nolan direct?"
TOKEN = "0123456789abcdef"

#: What would run, or break out of its place, if it were taken for markup or for a part of the page.
HOSTILE = (
    "<script>window.ran = 1</script>",
    "\"><img src=x onerror='window.ran = 1'>",
    "</script><script>window.ran = 1</script>",
    "javascript:window.ran = 1",
    "`${window.ran = 1}` 'quoted' \\u003cscript\\u003e",
    "\u202eesrever\u202c \u200b",
    "__proto__",
    "x" * 1_000_000,
)


@pytest.fixture(scope="module")
def server(service: GraphService) -> Iterator[WebServer]:
    with WebServer(make_app(service, name="films")) as running:
        yield running


@pytest.fixture
def shown(browser_page: BrowserPage, server: WebServer) -> Iterator[BrowserPage]:
    """The page, opened; in the end, nothing was said in the console, and nothing was asked of any other server."""
    browser_page.page.goto(server.address)
    browser_page.page.wait_for_selector(".chip")
    yield browser_page
    assert browser_page.errors == []
    assert [one for one in browser_page.requests if not one.startswith((server.address, "data:"))] == []


def ask(shown: BrowserPage, question: str, method: str = "simgrag") -> None:
    """Ask, and wait for the answer."""
    shown.page.fill("#question", question)
    shown.page.select_option("#method", method)
    shown.page.click("#ask button.main")
    answered(shown)


def answered(shown: BrowserPage, views: int = 1) -> None:
    shown.page.locator(".answer[aria-busy=false]").nth(views - 1).wait_for()


def texts(shown: BrowserPage, selector: str) -> list[str]:
    found: list[str] = shown.page.locator(selector).all_inner_texts()
    return found


def test_a_question_is_answered_in_stages_with_citations_and_the_graph(shown: BrowserPage) -> None:
    shown.keep_picture("page-start")
    ask(shown, QUESTION)
    assert texts(shown, ".result .text") == ["Memento; Inception; Interstellar; Oppenheimer"]
    assert texts(shown, ".stages .done .name") == [
        "Generate pattern",
        "Match subgraphs",
        "Write the facts out",
        "Answer",
        "Check citations",
    ]
    assert "96 %" in texts(shown, ".confidence")[0]
    rows = texts(shown, ".facts tbody tr")
    assert rows[0].split("\t") == ["1", "Memento", "directed by", "Christopher Nolan"]
    assert len(rows) == 4
    shown.page.click(".cite >> nth=1")
    assert texts(shown, ".kg-details h2") == ["Fact 2"]
    assert "null" not in shown.page.inner_text("main")
    shown.keep_picture("page-answer")


def test_a_table_is_shown_as_a_table(shown: BrowserPage) -> None:
    ask(shown, "How many films are there per director?")
    assert texts(shown, ".result .text thead th") == ["director", "count"]
    rows = texts(shown, ".result .text tbody tr")
    assert rows[0].split("\t") == ["Christopher Nolan", "4"]
    assert len(rows) > 5
    shown.keep_picture("page-table")


def test_a_pattern_is_edited_and_run_on(shown: BrowserPage) -> None:
    ask(shown, QUESTION)
    shown.page.click("text=Edit and run on")
    shown.page.fill(".edit textarea", '{"triples": [[{"unknown": "x"}, "starring", "Amy Adams"]], "target": "x"}')
    shown.keep_picture("page-edit")
    shown.page.click(".edit button.main")
    shown.page.wait_for_selector(".tag")
    answered(shown)
    assert texts(shown, ".result .text") == ["Her; Arrival"]
    shown.page.click("text=Edit and run on")
    shown.page.fill(".edit textarea", "nonsense")
    shown.page.click(".edit button.main")
    shown.page.wait_for_selector(".side .problem")
    assert "no JSON" in texts(shown, ".side .problem")[0]
    shown.keep_picture("page-edit-refused")
    shown.errors.clear()  # the browser itself notes the status 400


def test_methods_are_compared_side_by_side(shown: BrowserPage) -> None:
    shown.page.fill("#question", QUESTION)
    shown.page.click("#compare")
    shown.page.check("input[value=simgrag]")
    shown.page.check("input[value=rog]")
    shown.page.click("#compare-run")
    answered(shown, 3)
    assert texts(shown, ".answer h2 >> visible=true")[:1] == ["kg"]
    assert shown.page.locator(".answer.small").count() == 3
    assert len(texts(shown, ".result .text")) == 3
    shown.page.wait_for_timeout(300)
    shown.keep_picture("page-compare")


def test_further_facts_are_folded_and_facts_are_saved(shown: BrowserPage) -> None:
    ask(shown, "Who directed Her?", "kg")
    assert [row.split("\t")[0] for row in texts(shown, ".facts > .citations tbody tr")] == ["1"]
    assert not shown.page.is_visible(".facts details table")
    assert "further facts" in texts(shown, ".facts summary")[0]
    for name, start in (("CSV", '"Fact","Head","Relation","Tail","Sources"'), ("HTML", "<!doctype html>")):
        with shown.page.expect_download() as saved:
            shown.page.click(f"text=Save as {name}")
        text = saved.value.path().read_text()
        assert text.startswith(start)
        assert "Spike Jonze" in text


def test_namesakes_are_chosen_by_a_click(browser_page: BrowserPage) -> None:
    facts = [("p1", "works_at", "Acme"), ("p2", "works_at", "Globex")]
    graph = KnowledgeGraph.from_triples(facts, labels={"p1": "John Smith", "p2": "John Smith"})
    with WebServer(make_app(GraphService(GraphIndex.build(graph, default_embeddings())))) as running:
        browser_page.page.goto(running.address)
        browser_page.page.wait_for_selector("#method option", state="attached")
        ask(browser_page, "Where does John Smith work at?", "kg")
        assert texts(browser_page, ".result .text") == ["Acme; Globex"]
        browser_page.page.click(".namesakes button >> nth=1")
        browser_page.page.get_by_text("Asked about John Smith (works at: Globex) alone").wait_for()
        assert texts(browser_page, ".result .text") == ["Globex"]


def test_many_answers_and_long_names_are_folded(browser_page: BrowserPage) -> None:
    facts = [("Ann", "knows", f"P{number} {'x' * 3_000}") for number in range(40)]
    service = GraphService(GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings()))
    with WebServer(make_app(service)) as running:
        browser_page.page.goto(running.address)
        browser_page.page.wait_for_selector("#method option", state="attached")
        ask(browser_page, "Who does Ann know?", "kg")
        assert "40 answers" in texts(browser_page, ".result")[0]
        assert texts(browser_page, ".result summary") == ["28 more"]
        assert browser_page.page.evaluate("document.documentElement.scrollHeight") < 3_000


def test_why_not_names_the_reason(shown: BrowserPage) -> None:
    ask(shown, QUESTION)
    shown.page.fill(".why input", "amy ad")
    shown.page.locator(".why option").first.wait_for(state="attached")
    assert shown.page.locator(".why option").first.get_attribute("value") == "Amy Adams"
    shown.page.fill(".why input", "Amy Adams")
    shown.page.click(".why button")
    shown.page.wait_for_selector(".outcome .reasons")
    assert "Amy Adams" in texts(shown, ".outcome")[0]
    shown.page.locator(".why").scroll_into_view_if_needed()
    shown.keep_picture("page-why-not")
    shown.page.fill(".why input", "Memento")
    shown.page.click(".why button")
    shown.page.get_by_text("is among the answers").wait_for()


def test_an_entity_is_expanded_and_facts_keep_their_numbers(shown: BrowserPage) -> None:
    ask(shown, QUESTION)
    shown.page.click(".cite >> nth=0")
    shown.page.click(".kg-details .kg-link >> text=Memento")
    shown.page.click(".kg-expand")
    shown.page.locator(".facts details summary").click()
    assert [row.split()[0] for row in texts(shown, ".facts > .citations tbody tr")] == ["1", "2", "3", "4"]
    assert any("Guy Pearce" in row and row.startswith("+") for row in texts(shown, ".facts details tbody tr"))
    shown.page.wait_for_timeout(300)
    shown.keep_picture("page-expanded")


def test_the_schema_and_an_example(shown: BrowserPage) -> None:
    shown.page.click("#open-schema")
    shown.page.wait_for_selector("#schema table")
    assert "directed_by" in shown.page.inner_text("#schema")
    shown.keep_picture("page-schema")
    shown.page.keyboard.press("Escape")
    question = texts(shown, ".chip")[0]
    shown.page.click(".chip >> nth=0")
    answered(shown)
    assert shown.page.input_value("#question") == question
    assert texts(shown, ".citations tr")


def test_a_refusal_says_why_and_what_next(shown: BrowserPage) -> None:
    ask(shown, "Where is Paris?")
    assert texts(shown, ".result .text") == ["The question was not understood."]
    assert "Paris" in texts(shown, ".result")[0]
    assert "Name an entity" in texts(shown, ".next")[0]
    assert texts(shown, ".stages .refused .name") == ["Generate pattern"]
    shown.keep_picture("page-refused")


def test_a_conversation_goes_on_until_a_new_one_begins(shown: BrowserPage) -> None:
    assert not shown.page.is_visible("#conversation")
    ask(shown, "Who directed Her?")
    assert texts(shown, "#last-question") == ["Who directed Her?"]
    ask(shown, "And when was it released?")
    assert texts(shown, ".result .understood") == ["Understood as: when was Her released?"]
    assert texts(shown, ".result .text") == ["2013"]
    assert "when+was+Her+released" in shown.page.url
    shown.keep_picture("page-conversation")
    shown.page.focus("#new-conversation")
    shown.page.keyboard.press("Enter")
    assert not shown.page.is_visible("#conversation")
    assert shown.page.evaluate("document.activeElement.id") == "question"
    ask(shown, "When was it released?")
    assert texts(shown, ".result .understood") == []
    assert texts(shown, ".result .text") == ["The question was not understood."]


def test_the_address_holds_the_question_and_the_method(shown: BrowserPage, server: WebServer) -> None:
    ask(shown, QUESTION, "rog")
    address = shown.page.url
    assert address.startswith(f"{server.address}#q=")
    shown.page.goto("about:blank")
    shown.page.goto(address)
    answered(shown)
    assert shown.page.input_value("#method") == "rog"
    assert "Memento" in texts(shown, ".result .text")[0]
    assert not any("Nolan" in request.partition("#")[0] for request in shown.requests)


def test_the_keyboard_is_enough(shown: BrowserPage) -> None:
    keyboard = shown.page.keyboard
    shown.page.focus("#question")
    keyboard.type(QUESTION)
    keyboard.press("Enter")
    answered(shown)
    shown.page.focus(".cite >> nth=0")
    keyboard.press("Enter")
    assert texts(shown, ".kg-details h2") == ["Fact 1"]
    keyboard.press("Escape")
    shown.page.focus("text=Edit and run on")
    keyboard.press("Enter")
    assert shown.page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    assert shown.page.inner_text("#said") == f"Answer: {texts(shown, '.result .text')[0]}"
    unnamed = "input:not([aria-label]):not([type=checkbox]), select, textarea"
    for field in shown.page.locator(unnamed).all():
        assert field.evaluate("field => field.labels.length"), field.get_attribute("id")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1600])
def test_it_fits_narrow_and_wide_windows_in_both_schemes(shown: BrowserPage, scheme: str, width: int) -> None:
    shown.page.emulate_media(color_scheme=scheme)
    shown.page.set_viewport_size({"width": width, "height": 900})
    ask(shown, QUESTION)
    shown.page.wait_for_timeout(300)
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
    shown.keep_picture(f"page-{scheme}-{width}")


def test_the_token_is_asked_for_and_stays_out_of_addresses(browser_page: BrowserPage, service: GraphService) -> None:
    page = browser_page.page
    with WebServer(make_app(service, access=Access({TOKEN: {}}, open_paths=OPEN_PATHS))) as running:
        page.goto(running.address)
        page.fill("#token", "not the token at all")
        page.click("#login .main")
        page.get_by_text("does not accept").wait_for()
        browser_page.keep_picture("page-token")
        page.fill("#token", TOKEN)
        page.click("#login .main")
        page.wait_for_selector(".chip")
        ask(browser_page, QUESTION)
    assert not any(TOKEN in request for request in browser_page.requests)
    assert TOKEN not in page.url


def test_hostile_names_run_nothing_and_break_nothing(browser_page: BrowserPage) -> None:
    page = browser_page.page
    facts = [("Her", "directed_by", name) for name in HOSTILE] + [(name, HOSTILE[0], "Her") for name in HOSTILE]
    service = GraphService(GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings()))
    with WebServer(make_app(service, name=HOSTILE[0])) as running:
        page.goto(f"{running.address}#q={quote(HOSTILE[0])}&m={quote(HOSTILE[1])}")
        answered(browser_page)
        for method in ("simgrag", "neighborhood"):
            ask(browser_page, "Who directed Her?", method)
            page.locator(".facts tbody tr").first.wait_for()
        page.click(".cite >> nth=0")
        page.click(".kg-details .kg-link >> nth=0")
        page.click(".kg-expand")
        page.fill(".why input", HOSTILE[1])
        page.click(".why button")
        page.locator(".outcome > *").first.wait_for()
        page.click("#open-schema")
        page.wait_for_selector("#schema table")
        page.wait_for_timeout(300)
        browser_page.keep_picture("page-hostile")
        assert page.evaluate("window.ran === undefined")
        assert page.locator("img").count() == 0
        assert all(one.startswith((running.address, "data:")) for one in browser_page.requests)
    assert not [one for one in browser_page.errors if "status of 4" not in one]
