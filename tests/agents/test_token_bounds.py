import pytest

from kg_retrievers.agents.bounds import LEAST_TOKENS, MOST_TOKENS, count_tokens, fit, to_json
from kg_retrievers.agents.results import (
    Answer,
    Chain,
    CitedFact,
    Counted,
    Fact,
    FoundEntities,
    FoundEntity,
    FoundPaths,
    Named,
    NeighborFact,
    Neighbors,
    QueryRows,
    Refusal,
    RelationCount,
    RelationSummary,
    Result,
    SchemaSummary,
    shown,
)
from kg_retrievers.errors import InvalidArgumentError

#: Texts of which a name may be made, each with many tokens a character in its own way.
HOSTILE = ["7", "日", '"', "<", "\\", "a ", "🎬"]


def results(name: str) -> list[Result]:
    """Return results whose every text is a hostile one."""
    long = shown(name * 1_000_000)
    entity, triple = Named(key=long, label=long), (long, long, long)
    fact, cited = Fact(triple=triple, text=long, sources=[long] * 3), CitedFact(triple=triple, text=long, number=1)
    refusal = Refusal(reason=long, next_step=long)
    count, counted = RelationCount(relation=long, outgoing=10**9, incoming=10**9), Counted(name=long, count=10**9)
    relation = RelationSummary(
        relation=long, facts=10**9, head_types=[long] * 9, tail_types=[long] * 9, least=long, greatest=long
    )
    return [
        Answer(
            refusal=refusal,
            truncated=True,
            answer=long,
            answers=[entity] * 60,
            citations=[cited] * 60,
            explanation=long,
            supported=False,
            confidence=0.123456789012345,
            value=[long] * 100,
        ),
        FoundEntities(entities=[FoundEntity(key=long, label=long, types=[long] * 9, facts=1)] * 60),
        FoundPaths(chains=[Chain(facts=[fact] * 9)] * 60),
        QueryRows(columns=[long] * 9, rows=[[long, 1, None, [long] * 9]] * 60, facts=[fact] * 60),
        SchemaSummary(
            entities=10**9,
            facts=10**9,
            relation_count=10**6,
            type_count=10**6,
            relations=[relation] * 60,
            types=[counted] * 60,
            sources=[counted] * 60,
            methods=["simgrag"] * 5,
        ),
        Neighbors(
            entity=entity,
            types=[long] * 50,
            aliases=[long] * 50,
            total=10**9,
            facts=[NeighborFact(triple=triple, text=long, other=long)] * 60,
            relations=[count] * 60,
        ),
    ]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("max_tokens", [LEAST_TOKENS, 2_000, MOST_TOKENS])
def test_a_result_keeps_to_the_bound_whatever_the_names_are(name, max_tokens):
    for result in results(name):
        short = fit(result, max_tokens)
        assert count_tokens(to_json(short)) <= max_tokens
        assert short.left_out > 0
        assert type(result).model_validate_json(to_json(short)) == short


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("max_tokens", [LEAST_TOKENS, 2_000])
def test_the_text_of_a_result_keeps_to_the_bound_and_says_how_to_go_on(name, max_tokens):
    for result in results(name):
        short = fit(result, max_tokens, Result.in_words)
        text = short.in_words()
        assert count_tokens(text) <= max_tokens
        assert f"({short.left_out:,} more left out. {short.go_on()})" in text
        assert short.go_on().split()[0] in ("Call", "Ask", "Write")


def counts(number: int) -> Neighbors:
    names = [RelationCount(relation=f"relation {n}", outgoing=n, incoming=0) for n in range(number)]
    return Neighbors(entity=Named(key="Her", label="Her"), total=number, relations=names)


def test_a_result_that_fits_is_left_as_it_is():
    assert fit(counts(3), 2_000) == counts(3)


def test_lists_keep_as_many_first_items_as_fit():
    short = fit(counts(500), 1_000)
    kept = len(short.relations)
    assert short.relations == counts(500).relations[:kept]
    assert short.left_out == 500 - kept
    one_more = short.model_copy(update={"relations": counts(500).relations[: kept + 1]})
    assert count_tokens(to_json(one_more)) > 1_000 >= count_tokens(to_json(short))


def test_what_was_left_out_before_is_counted_on():
    before = counts(500).model_copy(update={"left_out": 7})
    assert fit(before, 1_000).left_out == fit(counts(500), 1_000).left_out + 7


def test_long_texts_are_shortened_before_few_items_are_left():
    facts = [NeighborFact(triple=("a", "b", "c"), text="long " * 300, other="c")] * 4
    result = Neighbors(entity=Named(key="a", label="a"), total=4, facts=facts)
    short = fit(result, 1_000)
    assert len(short.facts) == 4
    assert short.left_out == 0
    assert short.facts[0].text.startswith("long long")
    assert short.facts[0].text.endswith(" ...")


@pytest.mark.parametrize("max_tokens", [0, LEAST_TOKENS - 1, MOST_TOKENS + 1])
def test_a_bound_out_of_range_is_refused(max_tokens):
    with pytest.raises(InvalidArgumentError, match=f"max_tokens must be {LEAST_TOKENS} to {MOST_TOKENS}"):
        fit(counts(1), max_tokens)
