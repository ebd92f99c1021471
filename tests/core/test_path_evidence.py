"""Evidence of scored paths."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.core.path_evidence import ScoredPath, path_evidence, relation_path
from kg_retrievers.graph import Path, Triple
from kg_retrievers.graph.types import read_paths

KNOWS = Triple("ann", "knows", "bob")
BOSS = Triple("bob", "boss_of", "dan")
BOSS_TOO = Triple("bob", "boss_of", "eve")


def scored(score: float, *entities: str, by: tuple[Triple, ...]) -> ScoredPath:
    return ScoredPath(Path(entities, by), score)


def test_of_equal_scores_the_one_with_more_answers_is_first() -> None:
    paths = [scored(0.9, "ann", "bob", by=(KNOWS,)), scored(0.9, "bob", "dan", by=(BOSS,))]
    paths += [
        scored(0.2, "bob", "eve", by=(BOSS_TOO,)),
        scored(0.1, "fay", "eve", by=(Triple("fay", "boss_of", "eve"),)),
    ]
    evidence = path_evidence(paths, merge=True, truncated=False, details={})
    assert [item.answers for item in evidence] == [("dan", "eve"), ("bob",)]
    assert len(evidence[0].details["paths"]) == 3  # two lead to eve, from different entities


@st.composite
def some_paths(draw: st.DrawFn) -> ScoredPath:
    here = draw(st.sampled_from("abc"))
    entities, triples = [here], []
    for _ in range(draw(st.integers(0, 3))):
        there, relation, forward = draw(st.tuples(st.sampled_from("abc"), st.sampled_from("rs"), st.booleans()))
        triples.append(Triple(here, relation, there) if forward else Triple(there, relation, here))
        entities.append(there)
        here = there
    return ScoredPath(Path(tuple(entities), tuple(triples)), draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])))


@given(st.lists(some_paths(), max_size=12), st.booleans())
def test_nothing_is_lost_and_no_two_pieces_are_the_same(paths: list[ScoredPath], merge: bool) -> None:
    evidence = path_evidence(paths, merge=merge, truncated=False, details={})
    assert [item.score for item in evidence] == sorted((item.score for item in evidence), reverse=True)
    kept = {scored.path for scored in paths if scored.path.triples}
    assert len({(item.triples, item.answers, str(item.details)) for item in evidence}) == len(evidence)
    shown = [path for item in evidence for path in read_paths(item.details["paths"], item.triples)]
    assert (len(shown), set(shown)) == (len(kept), kept)
    for item in evidence:
        group = [
            scored
            for scored in paths
            if scored.path.triples
            and [list(step) for step in relation_path(scored.path)] == item.details["relation_path"]
            and (merge or (tuple(dict.fromkeys(scored.path.triples)), (scored.answer,)) == (item.triples, item.answers))
        ]
        assert {triple for scored in group for triple in scored.path.triples} == set(item.triples)
        assert {scored.answer for scored in group} == set(item.answers)
        assert item.score == max(scored.score for scored in group)
