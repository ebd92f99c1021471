"""The JSON that the page asks for, and what the server says of what it cannot answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
from kg_retrievers.sample import load_graph
from kg_retrievers.serving.access import Access
from kg_retrievers.serving.service import GraphService
from kg_retrievers.serving.web.app import OPEN_PATHS, PAGE, make_app
from kg_retrievers.serving.workers import Workers

QUESTION = "Which films did Christopher Nolan direct?"
FILMS = ["Inception", "Interstellar", "Memento", "Oppenheimer"]
TOKEN = "0123456789abcdef"


@pytest.fixture
def client(service: GraphService) -> Iterator[TestClient]:
    with TestClient(make_app(service, name="films"), base_url="http://127.0.0.1:8000") as client:
        yield client


def ask(client: TestClient, **body: Any) -> list[dict[str, Any]]:
    """The events of an answer."""
    response = client.post("/api/ask", json=body)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


def of_kind(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == kind]


@pytest.mark.parametrize(
    ("method", "key", "stages"),
    [
        ("kg", "readings", ["read_question", "match_reading", "rank_facts"]),
        ("simgrag", "pattern", ["generate_pattern", "match_subgraphs"]),
        ("rog", "relation_paths", ["link_entities", "propose_relation_paths", "follow_relation_paths"]),
        ("sg-rag", "cypher", ["link_entities", "write_cypher", "run_cypher"]),
    ],
)
def test_an_answer_grows_stage_by_stage_and_runs_on_from_an_edit(
    client: TestClient, method: str, key: str, stages: list[str]
) -> None:
    events = ask(client, question=QUESTION, method=method)
    all_stages = [*stages, "verbalize", "answer", "check_citations"]
    assert events[0]["event"] == "started"
    assert events[0]["stages"] == all_stages
    assert [event["name"] for event in of_kind(events, "stage")] == all_stages
    assert [event["event"] for event in events if event["event"] != "stage"] == ["started", "evidence", "answer"]
    [editable] = [event["editable"] for event in events if "editable" in event]
    assert editable["key"] == key
    [evidence], answer = of_kind(events, "evidence"), events[-1]
    assert sorted(answer["answers"]) == FILMS
    assert [citation["number"] for citation in answer["citations"]] == [1, 2, 3, 4]
    assert answer["confidence"] == evidence["confidence"]
    assert {node["label"] for node in evidence["drawing"]["nodes"]} >= {"Christopher Nolan", *FILMS}
    again = ask(client, question=QUESTION, method=method, edited={key: editable["text"]})
    assert sorted(again[-1]["answers"]) == FILMS
    [edited] = [event for event in again if event.get("edited")]
    assert edited["editable"]["text"] == editable["text"]


@pytest.mark.parametrize(
    ("method", "edited", "answers"),
    [
        (
            "simgrag",
            {"pattern": {"triples": [[{"unknown": "x"}, "starring", "Amy Adams"]], "target": "x"}},
            ["Arrival", "Her"],
        ),
        ("rog", {"relation_paths": [{"relations": [["born_in", "forward"]]}]}, ["United Kingdom"]),
        (
            "sg-rag",
            {
                "cypher": [
                    {
                        "query": "MATCH (f)-[r:starring]->(p) WHERE p.key = $a RETURN f.key AS target, r",
                        "parameters": {"a": "Amy Adams"},
                    }
                ]
            },
            ["Arrival", "Her"],
        ),
    ],
)
def test_what_a_person_writes_is_what_runs(
    client: TestClient, method: str, edited: dict[str, Any], answers: list[str]
) -> None:
    texts = {key: json.dumps(value) for key, value in edited.items()}
    assert sorted(ask(client, question=QUESTION, method=method, edited=texts)[-1]["answers"]) == answers


@pytest.mark.parametrize(
    ("method", "edited", "said"),
    [
        ("simgrag", {"pattern": '{"triples": [[{"unknown": "x"}, "starring", "Amy Adams"]], "target": "y"}'}, "target"),
        ("simgrag", {"pattern": "nonsense"}, "no JSON"),
        ("simgrag", {"pattern": "[" * 30_000}, "no JSON"),
        ("rog", {"relation_paths": '{"a": NaN'}, "no JSON"),
        ("simgrag", {"pattern": '{"triples": 7}'}, "triples"),
        ("simgrag", {"relation_paths": "[]"}, "relation_paths"),
        ("simgrag", {"documents": "[]"}, "cannot be edited"),
        ("rog", {"relation_paths": '[{"relations": [["directed", "either"]]}]'}, "no relation 'directed'"),
        ("rog", {"relation_paths": '["directed"]'}, "relation_paths"),
        ("sg-rag", {"cypher": '[{"query": "MATCH (n) DETACH DELETE n"}]'}, "DE"),
        ("sg-rag", {"cypher": '[{"query": "MATCH (a)-[r:nonsense]->(b) RETURN r"}]'}, "nonsense"),
    ],
)
def test_an_edit_that_cannot_be_used_is_told_in_words(
    client: TestClient, method: str, edited: dict[str, str], said: str
) -> None:
    response = client.post("/api/ask", json={"question": QUESTION, "method": method, "edited": edited})
    assert response.status_code == 400
    assert set(response.json()) == {"error", "next_step"}
    assert said in response.json()["error"]


def test_a_table_is_told_up_to_100_rows(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = ask(client, question="How many films are there per director?")[-1]
    assert answer["value"] is None
    assert answer["table"]["columns"] == ["director", "count"]
    assert answer["table"]["rows"][0] == [["Christopher Nolan"], ["4"]]
    assert answer["table"]["more"] == 0
    monkeypatch.setattr("kg_retrievers.serving.web.stages.ROWS", 2)
    short = ask(client, question="How many films are there per director?")[-1]["table"]
    assert (short["rows"], short["more"]) == (answer["table"]["rows"][:2], len(answer["table"]["rows"]) - 2)


def test_an_edited_name_is_not_replaced_in_silence(client: TestClient) -> None:
    pattern = {"triples": [[{"unknown": "x"}, "starring", "Amy Adamss"]], "target": "x"}
    answer = ask(client, question="Which?", edited={"readings": json.dumps(pattern)})[-1]
    assert answer["notes"] == ["'Amy Adamss' is read as 'Amy Adams'."]
    assert sorted(answer["answers"]) == ["Arrival", "Her"]
    pattern["triples"][0][1] = "sings_in"  # type: ignore[index]
    answer = ask(client, question="Which?", edited={"readings": json.dumps(pattern)})[-1]
    assert (answer["refused"], answer["answers"]) == (True, [])
    assert "'sings_in', which the graph lacks" in answer["reason"]


def test_entities_of_one_name_can_be_chosen() -> None:
    facts = [("p1", "works_at", "Acme"), ("p2", "works_at", "Globex"), ("Acme", "based_in", "Paris")]
    graph = KnowledgeGraph.from_triples(facts, labels={"p1": "John Smith", "p2": "John Smith"})
    service = GraphService(GraphIndex.build(graph, default_embeddings()))
    with TestClient(make_app(service), base_url="http://127.0.0.1:8000") as client:
        answer = ask(client, question="Where does John Smith work at?")[-1]
        [name] = answer["namesakes"]
        assert (name["name"], name["count"]) == ("John Smith", 2)
        assert name["entities"][1]["label"] == "John Smith (works at: Globex)"
        seeds = name["entities"][1]["seeds"]
        assert ask(client, question="Where does John Smith work at?", seed_entities=seeds)[-1]["answers"] == ["Globex"]
        answer = ask(client, question="Where is Acmee based in?")[-1]
        assert (answer["refused"], answer["answers"]) == (True, [])
        assert "Did you mean: 'Acme'" in answer["reason"]


@pytest.mark.parametrize("method", ["kg", "rog"])
def test_only_answers_are_marked_as_answers(client: TestClient, method: str) -> None:
    events = ask(client, question="Who directed Her?", method=method)
    [evidence] = of_kind(events, "evidence")
    drawing = evidence["drawing"]
    assert [node["key"] for node in drawing["nodes"] if node["role"] == "answer"] == events[-1]["answers"]
    assert [one["text"] for one in drawing["answers"]] == events[-1]["answers"]


def test_operations_are_told_in_words_and_a_no_is_shown_as_no(client: TestClient) -> None:
    def lines(question: str) -> list[str]:
        return [
            line for event in ask(client, question=question) for one in event.get("found", ()) for line in one["lines"]
        ]

    assert "how many: ?entity 1" in lines("How many films did Christopher Nolan direct?")
    assert "the least: ?entity 1 by ?entity 2" in lines("Which film is the oldest?")
    [evidence] = of_kind(ask(client, question="Did Spike Jonze direct Alien?"), "evidence")
    assert evidence["result"] == "no"


def test_long_names_are_cut() -> None:
    graph = KnowledgeGraph.from_triples([("Her", "directed_by", "x" * 3_000)])
    service = GraphService(GraphIndex.build(graph, default_embeddings()))
    with TestClient(make_app(service), base_url="http://127.0.0.1:8000") as client:
        answer = ask(client, question="Who directed Her?")[-1]
    assert answer["answer"] == answer["answers"][0] == "x" * 300 + "… (3,000 characters)"


def test_a_refusal_says_why_and_what_to_do_next(client: TestClient) -> None:
    events = ask(client, question="Where is Paris?")
    answer = events[-1]
    assert answer["refused"]
    assert "Paris" in answer["reason"]
    assert "generate_questions" not in answer["reason"]
    assert "Name an entity" in answer["next_step"]
    assert of_kind(events, "evidence") == []
    assert of_kind(events, "stage")[-1]["refused"]


def test_the_confidence_that_is_required_is_kept(client: TestClient) -> None:
    answer = ask(client, question=QUESTION, method="simgrag", min_confidence=0.99)[-1]
    assert answer["refused"]
    assert "less certain" in answer["answer"]


def test_an_unsure_question_shows_evidence_and_says_why_it_is_unsure(client: TestClient) -> None:
    events = ask(client, question="What salary has Amy Adams?")
    assert of_kind(events, "evidence")[0]["documents"]
    assert (events[-1]["refused"], events[-1]["answers"]) == (True, [])
    assert events[-1]["reason"].startswith("Not sure what ")
    assert "Name an entity" in events[-1]["next_step"]


def test_seed_entities_and_k_are_taken(client: TestClient) -> None:
    events = ask(client, question="Which films?", method="neighborhood", seed_entities=["Amy Adams"], k=2)
    labels = {node["label"] for node in of_kind(events, "evidence")[0]["drawing"]["nodes"]}
    assert {"Amy Adams", "Arrival", "Her"} <= labels


def test_the_graph_can_be_looked_into(client: TestClient) -> None:
    about = client.get("/api/about").json()
    assert about["graph"] == "films"
    assert about["default_method"] == "kg"
    assert {"simgrag", "rog", "sg-rag", "kaping"} <= {method["name"] for method in about["methods"]}
    assert set(about["forms"]) == {"readings", "pattern", "relation_paths", "cypher"}
    schema = client.get("/api/schema").json()
    assert (schema["facts"], schema["relation_count"]) == (326, 8)
    assert len(client.get("/api/examples").json()["examples"]) == 6
    names = client.get("/api/entities", params={"text": "chris"}).json()["entities"]
    assert names[0] == {"key": "Christopher Nolan", "label": "Christopher Nolan", "type": "person"}


def test_a_picture_grows_around_an_entity(client: TestClient) -> None:
    facts = [["Her", "directed_by", "Spike Jonze"]]
    body = {
        "entity": "Spike Jonze",
        "facts": facts,
        "answers": ["Spike Jonze"],
        "known": ["Her"],
        "labels": {"Her": "HER"},
    }
    grown = client.post("/api/expand", json=body).json()
    nodes = {node["key"]: node for node in grown["nodes"]}
    keys = {node["id"]: node["key"] for node in grown["nodes"]}
    drawn = [[keys[edge["source"]], edge["relation"], keys[edge["target"]]] for edge in grown["edges"]]
    assert drawn[0] == facts[0]
    around = {*load_graph().triples("Spike Jonze"), *load_graph().triples(tail="Spike Jonze")}
    assert {tuple(fact) for fact in drawn} == around
    assert nodes["Her"]["label"] == "HER"
    assert (nodes["Spike Jonze"]["role"], nodes["Her"]["role"]) == ("answer", "known")
    assert client.post("/api/expand", json={"entity": "Nobody", "facts": []}).status_code == 422


def test_a_change_is_named_that_brings_an_entity_in(client: TestClient) -> None:
    asked = {"question": "Who directed Her?", "entity": "Interstellar", "method": "neighborhood"}
    missed = client.post("/api/why-not", json=asked).json()
    assert (missed["found"], missed["again"]) == (False, {})
    assert missed["change"].startswith("set max_hops to 2")
    missed = client.post("/api/why-not", json={**asked, "entity": "Amy Adams", "method": "kaping"}).json()
    assert missed["change"] == "show up to 13 pieces of evidence."
    assert ask(client, question=asked["question"], method="kaping", **missed["again"])[-1]["event"] == "answer"


def test_why_not_is_asked_with_the_settings_of_the_question(client: TestClient) -> None:
    for film, found in (("Dune (2021)", True), ("Dune (1984)", False)):
        asked = {"question": "Who directed Dune?", "entity": "Denis Villeneuve", "seed_entities": [film]}
        assert client.post("/api/why-not", json=asked).json()["found"] is found


def test_a_key_is_read_back_as_it_is_shown() -> None:
    graph = KnowledgeGraph.from_triples(
        [("<b>Her</b>", "directed_by", "Spike Jonze"), ("Her", "starring", "Amy Adams")]
    )
    service = GraphService(GraphIndex.build(graph, default_embeddings()))
    with TestClient(make_app(service), base_url="http://127.0.0.1:8000") as client:
        grown = client.post("/api/expand", json={"entity": "Spike Jonze", "facts": []}).json()
        shown = grown["nodes"][0]["key"]
        assert shown != "<b>Her</b>"
        asked = {"question": "Who directed Her?", "entity": shown}
        assert client.post("/api/why-not", json=asked).json()["entity"] == "<b>Her</b>"
        asked = {"question": "What is it?", "seed_entities": [shown], "method": "neighborhood"}
        assert client.post("/api/ask", json=asked).status_code == 200


def test_a_follow_up_is_understood_by_the_turns_that_are_sent_along(client: TestClient) -> None:
    first = ask(client, question="Who directed Her?")[-1]
    assert first["asked_as"] is None
    assert first["turn"] == {"question": "Who directed Her?", "entities": [], "answers": ["Spike Jonze"]}
    second = ask(client, question="And when was it released?", turns=[first["turn"]])[-1]
    assert (second["asked_as"], second["answers"]) == ("when was Her released?", ["2013"])
    unclear = ask(client, question="Where was she born?", turns=[{**first["turn"], "answers": ["Her", "Alien"]}])[-1]
    assert "'she' may mean 'Her' or 'Alien'" in unclear["reason"]
    assert unclear["turn"] is None


@pytest.mark.parametrize(
    "turns",
    [
        [{"question": "Who?"}],
        [{"question": "x" * 2_001, "entities": [], "answers": []}],
        [{"question": "Who?", "entities": [], "answers": ["Her"] * 51}],
        [{"question": "Who?", "entities": [], "answers": []}] * 6,
    ],
)
def test_turns_are_bounded(client: TestClient, turns: list[dict[str, Any]]) -> None:
    response = client.post("/api/ask", json={"question": "Who directed Her?", "turns": turns})
    assert response.status_code == 400
    assert "turns" in response.json()["error"]


def test_a_question_in_another_language_is_told_so(client: TestClient) -> None:
    answer = ask(client, question="Wer hat bei Her die Regie?")[-1]
    assert answer["next_step"] == "The question seems to be German. Ask in English."


@pytest.mark.parametrize("asked", [{"entity": "zzzqx"}, {"entity": "Her", "method": "nonsense"}])
def test_what_is_unknown_is_answered_with_a_next_step(client: TestClient, asked: dict[str, str]) -> None:
    response = client.post("/api/why-not", json={"question": "Who directed Her?", **asked})
    assert "/api/about" in response.json()["next_step"]


# --- what it cannot answer --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"{}", 400),
        (b'{"question": 7}', 400),
        (b'{"question": "  "}', 400),
        (b'{"question": "a", "method": "nope"}', 400),
        (b'{"question": "a", "method": "gnn-rag"}', 400),
        (b'{"question": "a", "k": "7"}', 400),
        (b'{"question": "a", "k": 0}', 400),
        (b'{"question": "a", "min_confidence": NaN}', 400),
        (b'{"question": "a", "min_confidence": 2}', 400),
        (b'{"question": "a", "seed_entities": ["Nobody"]}', 422),
        (b'{"question": "a", "edited": {"a": "b", "c": "d"}}', 400),
        (b'{"question": "a", "unknown": 1}', 400),
        (b'{"question": "' + b"a" * 2001 + b'"}', 400),
        (b'{"question": "a"' + b" " * 65_536 + b"}", 413),
        (b"[" * 60_000, 400),
    ],
)
def test_a_body_that_cannot_be_used_is_told(client: TestClient, body: bytes, status: int) -> None:
    response = client.post("/api/ask", content=body, headers={"content-type": "application/json"})
    assert response.status_code == status, response.text
    assert set(response.json()) == {"error", "next_step"}
    assert len(response.text) < 8_000
    assert "Traceback" not in response.text


@pytest.mark.parametrize("path", ["/api/ask", "/api/why-not"])
def test_ten_megabytes_are_refused_before_they_are_read(client: TestClient, path: str) -> None:
    response = client.post(path, content=b"a" * 10_000_000, headers={"content-type": "application/json"})
    assert response.status_code == 413

    def parts() -> Iterator[bytes]:
        for _ in range(1000):
            yield b"a" * 10_000

    response = client.post(path, content=parts(), headers={"content-type": "application/json"})
    assert response.status_code == 413


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_form_of_another_site_can_send_is_refused(client: TestClient, kind: str) -> None:
    response = client.post("/api/ask", content=b'{"question": "a"}', headers={"content-type": kind})
    assert response.status_code == 415


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/nothing", 404),
        ("/page/../app.py", 404),
        ("/page/%2e%2e/app.py", 404),
        ("/page/nothing.js", 404),
        ("/api/ask", 405),
        ("/api/entities", 400),
        ("/api/entities?text=" + "a" * 201, 400),
    ],
)
def test_a_path_that_cannot_be_answered_is_told(client: TestClient, path: str, status: int) -> None:
    response = client.get(path)
    assert response.status_code == status, response.text
    assert set(response.json()) == {"error", "next_step"}


def test_a_mistake_of_the_server_is_logged_under_a_number(
    client: TestClient, service: GraphService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(**_: Any) -> None:
        raise ZeroDivisionError("a secret of the machine")

    monkeypatch.setattr(service, "schema", fail)
    with caplog.at_level(logging.ERROR):
        response = client.get("/api/schema")
    assert response.status_code == 500
    assert "secret" not in response.text
    number = response.json()["next_step"].split()[-1].rstrip(".")
    [record] = caplog.records
    assert number in record.getMessage()


def test_a_stage_that_fails_ends_the_stream_with_the_error(
    client: TestClient, service: GraphService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a secret of the machine")

    monkeypatch.setattr("kg_retrievers.serving.web.stages.draw", fail)
    events = ask(client, question=QUESTION)
    assert events[-1]["event"] == "error"
    assert events[-1]["status"] == 500
    assert "secret" not in json.dumps(events)


def test_a_server_that_has_too_much_to_do_says_so(service: GraphService, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app(service, workers=Workers(threads=0, waiting=0))
    with TestClient(app, base_url="http://localhost") as client:
        for response in (client.get("/api/schema"), client.post("/api/ask", json={"question": "a"})):
            assert response.status_code == 503
            assert response.headers["retry-after"] == "5"


# --- who may ask, and what a browser may do ---------------------------------------------------------------------------


def test_the_page_brings_all_that_it_needs_and_allows_nothing_else(client: TestClient) -> None:
    for path in PAGE:
        response = client.get(path)
        assert response.status_code == 200
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert "unsafe" not in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
    page = client.get("/").text
    for path in list(PAGE)[1:]:
        imported = any(Path(path).name in client.get(other).text for other in PAGE)
        assert imported, f"nothing uses {path}"
    assert "http:" not in page
    assert "https:" not in page
    assert "onclick" not in page


def test_without_the_token_nothing_of_the_graph_is_shown(service: GraphService) -> None:
    access = Access.of_binding("0.0.0.0", TOKEN, OPEN_PATHS)
    with TestClient(make_app(service, access=access), base_url="http://films.example") as client:
        assert client.get("/").status_code == 200
        assert client.get("/healthz").json() == {"status": "ok"}
        for path in ("/api/about", "/api/schema", "/api/examples", "/api/entities?text=a"):
            response = client.get(path)
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
        assert client.post("/api/ask", json={"question": QUESTION}).status_code == 401
        with_token = {"authorization": f"Bearer {TOKEN}"}
        assert client.get("/api/about", headers=with_token).status_code == 200
        assert client.get(f"/api/about?token={TOKEN}").status_code == 401
        assert client.get("/healthz", headers=with_token).json()["version"]


def test_other_sites_and_other_names_are_refused(client: TestClient) -> None:
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421
    other = {"origin": "http://evil.example"}
    assert client.post("/api/ask", json={"question": QUESTION}, headers=other).status_code == 403


def test_healthz_says_what_it_serves(service: GraphService, client: TestClient) -> None:
    told = client.get("/healthz").json()
    assert told["status"] == "ok"
    assert told["index"] == service.index.fingerprint
    assert told["methods"] == list(service.methods)


def test_hostile_names_are_data() -> None:
    script = "<script>alert(1)</script>\u202e"
    graph = KnowledgeGraph.from_triples(
        [("Her", "directed_by", script), ("Her", "starring", '"><img src=x onerror=alert(1)>')]
    )
    service = GraphService(GraphIndex.build(graph, default_embeddings()))
    with TestClient(make_app(service), base_url="http://localhost") as client:
        events = ask(client, question="Who directed Her?")
        assert "\u202e" not in json.dumps(events[-1]["answers"], ensure_ascii=False)
        response = client.post("/api/expand", json={"entity": "Her", "facts": []})
        assert response.status_code == 200
        assert "\u202e" not in response.text
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-content-type-options"] == "nosniff"
