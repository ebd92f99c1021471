"""Nodes and edges that an answer names, against the graph: the paper's two answers, all forms of lists, long texts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.evaluation import Grounding, check_grounding
from kg_retrievers.graph import KnowledgeGraph

GRAPH = KnowledgeGraph.from_triples(
    [
        ("elephant", "standing by", "river"),
        ("elephant", "in", "bushes"),
        ("elephant", "eating", "grass"),
        ("Washington, D.C.", "capital_of", "USA"),
        ("Dune (1984)", "directedBy", "Q1"),
        ("women and men", "is a", "citizens"),
        ("$", "in", "USA"),
    ],
    labels={
        "Q1": "David Lynch",
        "9/1": "name: sheep; attribute: white, fluffy; (x,y,w,h): (409, 176, 13, 10)",
        "9/2": "name: blue sky; (x,y,w,h): (0, 0, 501, 60)",
    },
    aliases={"USA": ["United States"]},
)


def nodes(answer: str) -> dict[str, bool]:
    check = check_grounding(answer, GRAPH)
    assert not check.edges
    return {node: node not in check.unknown_nodes for node in check.nodes}


def unread(answer: str, graph: KnowledgeGraph = GRAPH) -> tuple[str, ...]:
    check = check_grounding(answer, graph)
    assert (check.nodes, check.edges, check.fully_valid) == ((), (), None)
    return check.unread


def edges(answer: str) -> dict[str, bool]:
    check = check_grounding(answer, GRAPH)
    assert not check.nodes
    return {edge: edge not in check.unknown_edges for edge in check.edges}


# --- the paper's answers, table 1 -------------------------------------------------------------------------------------


def test_an_answer_with_hallucinations() -> None:
    answer = """The animal in the bushes is a deer.
Nodes:
* Deer (node 1)
* Bushes (node 2)
Edges:
* Deer →Bushes (edge 1)
* Deer →Grass (edge 2)
* Bushes →Grass (edge 3)"""
    wrong = ("Deer -> Bushes", "Deer -> Grass", "Bushes -> Grass")
    check = check_grounding(answer, GRAPH)
    assert check == Grounding(("Deer", "Bushes"), wrong, ("Deer",), wrong, ())
    assert (check.valid_nodes, check.valid_edges, check.fully_valid) == (0.5, 0.0, False)


def test_an_answer_in_whole_sentences() -> None:
    answer = """Based on the information provided in the graph, the animal in the bushes is an elephant.
The nodes that support this answer are:
* Node 1: The elephant is mentioned in the first line of the graph.
The edges that support this answer are:
* The edge connects the elephant to the bushes, indicating that the elephant is in the bushes.
Therefore, the answer to the question is: The animal in the bushes is an elephant."""
    check = check_grounding(answer, GRAPH)
    edge = "The edge connects the elephant to the bushes, indicating that the elephant is in the bushes"
    node = "The elephant is mentioned in the first line of the graph"
    assert check == Grounding((), (edge,), (), (), (node,))
    assert (check.valid_nodes, check.valid_edges, check.fully_valid) == (None, 1.0, True)


# --- nodes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Nodes: elephant, deer; River and grass.", {"elephant": True, "deer": False, "River": True, "grass": True}),
        ("Yes. Nodes: elephant", {"elephant": True}),
        ("**Nodes**\n\n- `elephant`\n- The Elephant!\n", {"elephant": True, "The Elephant!": True}),
        ("## Supporting entities:\n1. USA\n2) united states\n• q1\n", {"USA": True, "united states": True, "q1": True}),
        ("Nodes:\nelephant\ndeer\n\nThe answer is yes.", {"elephant": True, "deer": False}),
        ("Nodes:\n* elephant\n\n* deer\nThe answer is yes.\n* no", {"elephant": True, "deer": False}),
        ("Nodes: elephant\n* deer\nThe answer is yes.", {"elephant": True, "deer": False}),
        ("Node 1: elephant\nNode 2: deer\nThe answer is yes.", {"elephant": True, "deer": False}),
        ("Nodes: Washington, D.C., Washington", {"Washington, D.C": True, "Washington": False}),
        ("Nodes: women and men, citizens", {"women and men": True, "citizens": True}),
        ("Nodes: Dune (1984), Dune, $, €", {"Dune (1984)": True, "Dune": False, "$": True, "€": False}),
        ("Nodes: the sheep, blue sky, sky, 9/1", {"the sheep": True, "blue sky": True, "sky": False, "9/1": True}),
        ("Nodes: a big grey beast", {"a big grey beast": False}),
        ("Nodes: David Lynch (director, writer), deer (an animal)", {"David Lynch": True, "deer (an animal)": False}),
        ("Nodes: elephant (grey) - big", {"elephant": True}),
        ("Nodes:\n- Dune (1984): a film, of sand and worms\n- Deer: shy", {"Dune (1984)": True, "Deer: shy": False}),
        ("Nodes:\n- Elephant - big, grey\n- deer – small", {"Elephant": True, "deer – small": False}),
        ("Nodes: David Lynch-Smith", {"David Lynch-Smith": False}),
        ("Nodes:\n[0] elephant\n[1] deer", {"elephant": True, "deer": False}),
        ("Nodes:\n0, elephant\n1, deer", {"elephant": True, "deer": False}),
        ("Nodes: ['elephant', 'deer']", {"elephant": True, "deer": False}),
        ("Nodes: (elephant, deer)", {"elephant": True, "deer": False}),
        (
            "Nodes:\n\n| Id | Node | What |\n|---|:---:|---|\n| 0 | elephant | big, grey |\n| 1 | deer | no |",
            {"elephant": True, "deer | no": False},
        ),
        ("Nodes\n-----\nelephant\n-----\ndeer", {"elephant": True}),
        ("Nodes: elephant, Elephant, elephant", {"elephant": True, "Elephant": True}),
        ("Nodes: none", {}),
        ("Nodes:", {}),
        ("Based on these facts, the answer is: elephant", {}),
        ("The nodes of this graph. It has a root: elephant", {}),
    ],
)
def test_nodes(answer: str, expected: dict[str, bool]) -> None:
    assert nodes(answer) == expected


# --- edges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("(elephant, in, bushes)", {"elephant -> in -> bushes": True}),
        ("(bushes, in, elephant)", {"bushes -> in -> elephant": False}),
        ("(elephant, eating, bushes)", {"elephant -> eating -> bushes": False}),
        (
            "(elephant; IN; bushes), (Dune (1984), directed by, David Lynch)",
            {"elephant -> IN -> bushes": True, "Dune (1984) -> directed by -> David Lynch": True},
        ),
        ("(Washington, D.C., capital of, USA)", {"Washington, D.C. -> capital of -> USA": True}),
        ("elephant, in, the bushes", {"elephant -> in -> the bushes": True}),
        ("elephant | in | bushes", {"elephant -> in -> bushes": True}),
        ("elephant; in; river", {"elephant -> in -> river": False}),
        ("(elephant, bushes), (bushes, deer)", {"elephant -> bushes": True, "bushes -> deer": False}),
        ("| elephant | in | bushes |", {"elephant -> in -> bushes": True}),
        ("| 0 | elephant | in | river | why |", {"elephant -> in -> river": False}),
        ("[0] elephant -> in -> [3] bushes (green)", {"elephant -> in -> bushes": True}),
        ("elephant -> bushes: it is in them", {"elephant -> bushes": True}),
        ("(France, capital of, Washington, D.C.)", {"France -> capital of -> Washington, D.C.": False}),
        ("elephant -> in -> bushes", {"elephant -> in -> bushes": True}),
        ("elephant -[in]-> bushes", {"elephant -> in -> bushes": True}),
        ("elephant --in--> bushes", {"elephant -> in -> bushes": True}),
        ("bushes <- in <- elephant", {"bushes <- in <- elephant": True}),
        ("elephant → bushes", {"elephant -> bushes": True}),
        ("bushes → elephant", {"bushes -> elephant": False}),
        ("deer -> bushes, elephant -> in -> bushes", {"deer -> bushes": False, "elephant -> in -> bushes": True}),
        ("deer -> bushes; Washington, D.C. -> USA", {"deer -> bushes": False, "Washington, D.C. -> USA": True}),
        (
            "The elephant, as one sees, is eating the grass, which is green",
            {"The elephant, as one sees, is eating the grass, which is green": True},
        ),
        ("Dune (1984) was directed by Lynch, David Lynch", {"Dune (1984) was directed by Lynch, David Lynch": True}),
        ("None.", {}),
    ],
)
def test_edges(entry: str, expected: dict[str, bool]) -> None:
    assert edges(f"Edges: {entry}") == expected
    assert edges(f"It is so.\nThe triples used are:\n- {entry}\n\nYes.") == expected


@pytest.mark.parametrize(
    "entry",
    [
        "The river joins the bushes",
        "The deer is in the bushes",
        "The elephant likes the grass in summer",
        "In summer the elephant sees the grass",
        "The elephant is not in the bushes",
        "The elephant isn't eating grass",
        "The elephant never ever was in the bushes",
        "The elephant is in the bushes, eating grass",
        "elephant in elephant",
        "elephant",
        "elephant, bushes",
        "elephant, in, bushes; deer, in, river",
        "elephant -> in -> bushes -> eating -> grass",
        "river <- standing by <- elephant -> eating -> grass",
        f"elephant{', grass' * 12}",
        "0 -> in -> 3",
        "0, in, 3",
        "elephant -> -> ->",
    ],
)
def test_what_is_no_known_form_is_no_edge(entry: str) -> None:
    """It is neither valid nor invalid."""
    assert len(unread(f"Edges: {entry}")) == 1


@pytest.mark.parametrize(
    "entry", ["a big grey beast that nobody saw", "7", "The elephant is mentioned in the first line"]
)
def test_what_is_no_known_form_is_no_node(entry: str) -> None:
    assert unread(f"Nodes: {entry}") == (entry,)


def test_a_sentence_is_a_fact_of_the_graph_or_unread() -> None:
    dune = KnowledgeGraph.from_triples([("Amy Adams", "starred in", "Dune")])
    for sentence in ("Amy Adams directed Dune", "Spike Jonze did not direct Dune", "Amy Adams never starred in Dune"):
        assert unread(f"Edges: {sentence}", dune) == (sentence,)
    assert check_grounding("Edges: Amy Adams starred in Dune", dune).valid_edges == 1.0
    triples = [("Her", "film.film.directed_by", "Spike Jonze"), ("Dune", "directed_by", "Denis Villeneuve")]
    films = KnowledgeGraph.from_triples(triples)
    assert check_grounding("Edges: Spike Jonze directed Her", films).valid_edges == 1.0
    for sentence in (
        "Spike Jonze told her that he directed it",
        "Her film was by Spike Jonze",
        "Spike Jonze directed Dune",
        "Spike Jonze directed Her and Denis Villeneuve Dune",
    ):
        assert unread(f"Edges: {sentence}", films) == (sentence,)


def test_numbers_that_are_names_are_not_cut() -> None:
    graph = KnowledgeGraph.from_triples([("7", "before", "8"), ("12, Rue Royale", "in", "Paris")])
    check = check_grounding("Nodes: 7, 8\nNodes: 12, Rue Royale\nEdges: 7 | before | 8\n", graph)
    assert check == Grounding(("7", "8", "12, Rue Royale"), ("7 -> before -> 8",), (), (), ())


def test_many_entities_of_one_name_and_many_names_in_a_sentence() -> None:
    keys = [f"k{number}" for number in range(3_000)]
    graph = KnowledgeGraph.from_triples(
        [(one, "near", other) for one, other in pairwise(keys)], labels=dict.fromkeys(keys, "sheep")
    )
    check = check_grounding("Edges: sheep -> eats -> sheep, sheep -> near -> sheep", graph)
    assert check.unknown_edges == ("sheep -> eats -> sheep",)
    graph = KnowledgeGraph.from_triples([(one, "near", other) for one, other in pairwise(keys)])
    assert len(unread(f"Edges: {' near '.join(keys)}", graph)) == 1


def test_arrows_are_edges_in_any_list() -> None:
    answer = "Nodes:\n* elephant\n* elephant -> in -> bushes\n* deer -> in -> bushes"
    check = check_grounding(answer, GRAPH)
    assert (check.nodes, check.unknown_edges) == (("elephant",), ("deer -> in -> bushes",))
    assert (check.valid_nodes, check.valid_edges, check.fully_valid) == (1.0, 0.5, False)


# --- what is not listed -----------------------------------------------------------------------------------------------


def test_an_answer_without_lists_has_no_shares() -> None:
    check = check_grounding("It is an elephant, in WASHINGTON D.C., in the bushes.", GRAPH)
    assert check == Grounding((), (), (), (), ())
    assert (check.valid_nodes, check.valid_edges, check.fully_valid) == (None, None, None)


# --- against evidence -------------------------------------------------------------------------------------------------


def test_evidence_in_place_of_the_graph() -> None:
    first = Document("", metadata={"triples": [["Q2", "directed_by", "Q1"]], "labels": {"Q2": "Dune"}})
    second = Document("", metadata={"triples": [["Q2", "directed_by", "Q1"], ["Q2", "year", "1984"]]})
    answer = "Nodes: Dune, Q1, Her\nEdges: (Dune, directed by, Q1), (Dune, year, 1984)"
    one, both, none = (check_grounding(answer, shown) for shown in (first, [first, second], []))
    assert (one.unknown_nodes, one.valid_edges) == (("Her",), 0.5)
    assert (both.unknown_nodes, both.valid_edges) == (("Her",), 1.0)
    assert (none.valid_nodes, none.valid_edges) == (0.0, 0.0)


@pytest.mark.parametrize(
    "wrong", [None, 5, "a text", [("a", "r", "b")], Document(""), Document("", metadata={"triples": [["a", "b"]]})]
)
def test_what_is_no_graph_is_refused(wrong: object) -> None:
    with pytest.raises(
        InvalidArgumentError,
        match=r"check_grounding: wanted Evidence, a Path, or a Document.* Or hand in a KnowledgeGraph",
    ):
        check_grounding("Nodes: a", wrong)  # type: ignore[arg-type]


def test_an_answer_is_a_text() -> None:
    with pytest.raises(InvalidArgumentError, match="wanted the answer as a text"):
        check_grounding(["Nodes: a"], GRAPH)  # type: ignore[arg-type]


# --- any answer -------------------------------------------------------------------------------------------------------

names = st.sampled_from(["a", "B b", "Ç, c", "d and e", "f (1984)", "$"])
relations = st.sampled_from(["r", "made_by", "is a"])
facts = st.lists(st.tuples(names, relations, names), min_size=1, max_size=6, unique=True)


@settings(max_examples=50)
@given(facts, facts, st.sampled_from(["({}, {}, {})", "{} -> {} -> {}", "{} | {} | {}", "{} -[{}]-> {}"]))
def test_what_is_listed_is_found_as_it_is(
    known: list[tuple[str, str, str]], listed: list[tuple[str, str, str]], form: str
) -> None:
    graph = KnowledgeGraph.from_triples(known, labels={key: key for head, _, tail in listed for key in (head, tail)})
    rows = "\n".join("* " + form.format(*fact) for fact in listed)
    check = check_grounding(f"Edges:\n{rows}\nNodes:\n" + "\n".join(f"* {key}" for key in graph.entities), graph)
    assert check.edges == tuple(" -> ".join(fact) for fact in listed)
    assert check.unknown_edges == tuple(" -> ".join(fact) for fact in listed if fact not in known)
    assert (check.nodes, check.unknown_nodes) == (tuple(graph.entities), ())


@given(
    st.lists(st.sampled_from(["Nodes:", "Edge 2:", "\n", "* ", "(", ")", ",", ";", "->", "<-", "--", "[", "a", " "]))
)
def test_no_answer_is_too_ragged(parts: list[str]) -> None:
    check = check_grounding("".join(parts), GRAPH)
    assert set(check.unknown_nodes) <= set(check.nodes)
    assert set(check.unknown_edges) <= set(check.edges)


@pytest.mark.parametrize(
    "part", ["a, ", "(a, ", "(", "-", "-[", "->", "a -> ", " ", "; ", "* a\n", "edges ", "elephant "]
)
def test_long_answers_are_read(part: str) -> None:
    check_grounding(f"Nodes: {part * 5_000}\nEdges: {part * 5_000}", GRAPH)


plain = st.sampled_from(["a", "B b", "f", "$ g"])


@given(
    st.lists(st.tuples(plain, relations, plain), max_size=6),
    plain,
    st.sampled_from(["r", "made by", "made", "is", "likes"]),
    plain,
)
def test_no_sentence_is_valid_that_the_graph_does_not_say(
    known: list[tuple[str, str, str]], left: str, word: str, right: str
) -> None:
    check = check_grounding(f"Edges: {left.upper()} {word} {right.upper()}", KnowledgeGraph.from_triples(known))
    said = {"r": "r", "made_by": "made", "is a": "is"}
    joined = any({head, tail} == {left, right} and said[relation] in word.split() for head, relation, tail in known)
    assert check.unknown_edges == ()
    assert bool(check.edges) is (joined and left != right)
