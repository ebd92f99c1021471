"""From a question to a pattern: by a language model, by examples, by the words of the question alone."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.prompts import PromptTemplate

from kg_retrievers.datasets import Question
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, PatternParseError
from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, Unknown
from kg_retrievers.index import GraphIndex, HashedEmbeddings, QuestionEntity
from kg_retrievers.questions.examples import ExamplePatternGenerator, confidence_at
from kg_retrievers.questions.llm import GENERATED, SHOTS, LLMPatternGenerator
from kg_retrievers.questions.prompts import EXAMPLES
from kg_retrievers.questions.self_questions.generate import generate_questions
from kg_retrievers.questions.zero_shot.generator import ZeroShotPatternGenerator
from kg_retrievers.sample import load_graph, load_questions
from kg_retrievers.testing import ScriptedChatModel, tiny_graph

X, Y = Unknown("x"), Unknown("y")


class Recording(Embeddings):
    """Keeps the texts that others embed."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return HashedEmbeddings().embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def index(graph: KnowledgeGraph | None = None) -> GraphIndex:
    return GraphIndex.build(tiny_graph() if graph is None else graph, HashedEmbeddings())


INDEX = index()


def example(text: str, *triples: tuple[Any, Any, Any], **fields: Any) -> Question:
    return Question(text, pattern=Pattern.of(*triples, target="x", **fields))


DIRECTED = example("Who directed Her?", ("Her", "directed by", X))
WROTE = example("Who wrote Her?", ("Her", "written by", X))
BOTH = example(
    "Which films did Spike Jonze direct and Charlie Kaufman write?",
    (X, "directed by", "Spike Jonze"),
    (X, "written by", "Charlie Kaufman"),
)


def by_examples(question: str, *examples: Question, seeds: Any = None, on: GraphIndex = INDEX) -> Pattern:
    return ExamplePatternGenerator(on, examples).invoke({"question": question, "seed_entities": seeds})


def zero_shot(question: str, *, seeds: Any = None, on: GraphIndex = INDEX) -> Pattern:
    return ZeroShotPatternGenerator(on).invoke({"question": question, "seed_entities": seeds})


# --- by a language model ---

GOOD = '{"triples": [["Her", "directed by", "?x"]], "target": "?x"}'


def test_llm_uses_the_prompts_it_is_given() -> None:
    prompt = PromptTemplate.from_template("ASK {question}")
    repair = PromptTemplate.from_template("AGAIN {question} {reply} {error}")
    llm = ScriptedChatModel(replies=["what?", GOOD])
    generator = LLMPatternGenerator(llm, prompt=prompt, repair_prompt=repair)
    assert generator.invoke({"question": "Who?", "seed_entities": ["Her"]}) == DIRECTED.pattern
    assert generator.prompts == {"pattern": prompt, "repair": repair}
    assert llm.prompts[0][0].text == "ASK Who?"
    assert llm.prompts[1][0].text.startswith("AGAIN Who? what? parse_pattern: the reply holds no JSON object.")


@pytest.mark.parametrize("prompts", [{"prompt": "Ask!"}, {"repair_prompt": "{question} {reply}"}], ids=str)
def test_llm_refuses_prompts_with_other_placeholders(prompts: dict[str, str]) -> None:
    templates: dict[str, Any] = {name: PromptTemplate.from_template(text) for name, text in prompts.items()}
    with pytest.raises(InvalidArgumentError, match=f"LLMPatternGenerator: {next(iter(prompts))}"):
        LLMPatternGenerator(ScriptedChatModel(replies=[]), **templates)


def test_llm_is_asked_twice_at_most() -> None:
    llm = ScriptedChatModel(replies=["what?", "who?", GOOD])
    with pytest.raises(PatternParseError) as caught:
        LLMPatternGenerator(llm).invoke({"question": "Who?"})
    assert caught.value.reply == "who?"
    assert len(llm.prompts) == 2


def counting(name: str) -> str:
    triples = f'[["?x", "directed by", "{name}"]]'
    return f'{{"triples": {triples}, "target": "?x", "operation": {{"kind": "count"}}}}'


def test_llm_is_told_the_names_nearest_to_what_the_graph_lacks() -> None:
    llm = ScriptedChatModel(replies=[counting("Jeunet the Great"), counting("Jean-Pierre Jeunet")])
    found = LLMPatternGenerator(llm, index=INDEX).invoke({"question": "How many films by Jeunet the Great?"})
    assert found.triples[0].tail == Known("Jean-Pierre Jeunet")
    asked = llm.prompts[1][-1].text
    assert "names 'Jeunet the Great', which the graph lacks. Did you mean: 'Jean-Pierre Jeunet'" in asked
    assert "else keep the name" in asked
    assert counting("Jeunet the Great") in asked


@pytest.mark.parametrize("second", [counting("Jeunet the Great"), "what?"])
def test_llm_keeps_a_name_that_the_graph_lacks(second: str) -> None:
    """So that the question is refused by it."""
    llm = ScriptedChatModel(replies=[counting("Jeunet the Great"), second])
    found = LLMPatternGenerator(llm, index=INDEX).invoke({"question": "How many films by Jeunet the Great?"})
    assert found.triples[0].tail == Known("Jeunet the Great")


def test_llm_is_asked_once_if_the_graph_has_all_names() -> None:
    llm = ScriptedChatModel(replies=[counting("Jean-Pierre Jeunet")])
    LLMPatternGenerator(llm, index=INDEX).invoke({"question": "?"})
    assert len(llm.prompts) == 1


def test_llm_is_told_that_nothing_fits() -> None:
    empty = '{"triples": [["Jean-Pierre Jeunet", "written by", "?x"]], "target": "?x"}'
    llm = ScriptedChatModel(replies=[empty, GOOD])
    LLMPatternGenerator(llm, index=INDEX).invoke({"question": "What of Jean-Pierre Jeunet?"})
    assert "Nothing in the graph fits these triples" in llm.prompts[1][-1].text


def test_llm_may_name_what_is_linked() -> None:
    llm = ScriptedChatModel(replies=[counting("that man")])
    entities = [QuestionEntity(0, 8, "that man", ("Jean-Pierre Jeunet",), 1, False)]
    LLMPatternGenerator(llm, index=INDEX).invoke({"question": "How many by that man?", "entities": entities})
    assert len(llm.prompts) == 1


def test_llm_fills_shots_into_a_prompt_that_asks_for_them() -> None:
    prompt = PromptTemplate.from_template("LIKE {shots} ASK {question}")
    examples = ExamplePatternGenerator(INDEX, [DIRECTED, WROTE, BOTH])
    llm = ScriptedChatModel(replies=[GOOD, GOOD])
    LLMPatternGenerator(llm, examples=examples, prompt=prompt).invoke({"question": "Who directed Amélie?"})
    assert '[["Her", "directed by", "UNKNOWN x 1"]]' in llm.prompts[0][0].text.rpartition("Question:")[2]
    LLMPatternGenerator(llm, prompt=prompt).invoke({"question": "Who directed Amélie?"})
    assert llm.prompts[1][0].text.startswith("LIKE Question: Which river flows through Budapest?")


def test_llm_is_shown_a_dozen_examples_in_all() -> None:
    def shown(count: int) -> list[str]:
        templates = [f"Who directed Her{' please' * repeats}?" for repeats in range(count)]
        questions = [example(text, ("Her", "directed by", X)) for text in templates]
        llm = ScriptedChatModel(replies=[GOOD])
        generator = LLMPatternGenerator(llm, examples=ExamplePatternGenerator(INDEX, questions))
        generator.invoke({"question": "Who directed Amélie?"})
        lines = llm.prompts[0][0].text.splitlines()
        return [line.removeprefix("Question: ") for line in lines if line.startswith("Question: ")][:-1]

    ours = [text for text, _ in EXAMPLES]
    assert shown(2)[:-2] == ours[:10]
    assert shown(2)[-1] == "Who directed Her?"
    assert shown(SHOTS - 1)[: -(SHOTS - 1)] == ours[:1]
    assert len(shown(SHOTS + 3)) == SHOTS
    assert not set(ours).intersection(shown(SHOTS + 3))


# --- by examples ---


@pytest.mark.parametrize(
    ("question", "relation", "name"),
    [
        ("Who directed Amélie?", "directed by", "Amélie"),
        ("Who directed amelie?", "directed by", "amelie"),
        ("Who wrote Adaptation?", "written by", "Adaptation"),
        ("Who directed 千と千尋の神隠し?", "directed by", "千と千尋の神隠し"),
        ("Who directed Dune?", "directed by", "Dune"),
    ],
)
def test_nearest_example_is_filled_in(question: str, relation: str, name: str) -> None:
    pattern = by_examples(question, WROTE, DIRECTED)
    assert pattern == Pattern.of((name, relation, X), target="x")
    assert pattern.source == "examples"


def test_the_next_nearest_examples_by_hand() -> None:
    same = example("who DIRECTED Amélie?", ("Amélie", "directed by", X))
    starred = example("Who starred in films by Spike Jonze?", (Y, "directed by", "Spike Jonze"), (Y, "starring", X))
    generator = ExamplePatternGenerator(INDEX, [WROTE, DIRECTED, same, starred, BOTH])
    found = list(generator.nearest({"question": "Who directed Adaptation?"}))
    # Nothing starred in films by "Adaptation", so that its template fits no more; and each pattern is there once.
    assert [(one.text, one.pattern.triples[0].relation) for one in found] == [
        ("Who directed Her?", Known("directed by")),
        ("Who wrote Her?", Known("written by")),
    ]
    assert found[0].distance < 1e-3 < found[1].distance < 2
    assert found[0].pattern == generator.invoke({"question": "Who directed Adaptation?"})
    assert found[0].pattern.source == "examples"
    nothing_fits = list(generator.nearest({"question": "Who directed Spike Jonze?", "seed_entities": ["Amélie"]}))
    assert [one.text for one in nothing_fits] == ["Who directed Her?"]


def test_entities_are_masked() -> None:
    embeddings = Recording()
    on = GraphIndex.build(tiny_graph(), embeddings)
    embeddings.texts.clear()
    same = example("Who directed Amélie?", ("Amélie", "directed by", X))
    inside = example("Who wrote Here and there in HER?", ("Her", "written by", X))
    longer = example("Is Dune: Part Two like Dune?", ("Dune", "like", "Dune: Part Two"), ("Dune", "like", X))
    generator = ExamplePatternGenerator(on, [DIRECTED, same, inside, longer, BOTH])
    assert sorted(text for text in embeddings.texts if "_" in text) == [
        "Is _ like _?",
        "Which films did _ direct and _ write?",
        "Who directed _?",
        "Who wrote Here and there in _?",
    ]
    generator.invoke({"question": "Say,  which films did David Lynch direct and Spike Jonze write?"})
    assert embeddings.texts[-2:] == [
        "Say, which films did _ direct and Spike Jonze write?",
        "Say, which films did _ direct and _ write?",
    ]


@pytest.mark.parametrize(
    ("question", "director", "writer"),
    [
        ("Which films did David Lynch direct and Charlie Kaufman write?", "David Lynch", "Charlie Kaufman"),
        ("Which films did Charlie Kaufman direct and Spike Jonze write?", "Charlie Kaufman", "Spike Jonze"),
    ],
)
def test_two_slots_are_filled_in_the_order_of_the_words(question: str, director: str, writer: str) -> None:
    expected = Pattern.of((X, "directed by", director), (X, "written by", writer), target="x")
    assert by_examples(question, BOTH) == expected
    seeds = [writer, director]  # whatever order they come in
    pattern = by_examples(question, BOTH, seeds=seeds)
    assert [triple.tail for triple in pattern.triples] == [
        Known(director, entity=director),
        Known(writer, entity=writer),
    ]


def test_one_of_two_entities_may_be_all_an_example_takes() -> None:
    """The likelier topic is filled in; the other stays in the question as words."""
    pattern = by_examples("Who directed Amélie, the one by Spike Jonze?", DIRECTED)
    assert len(pattern.triples) == 1


@pytest.mark.parametrize("seed", ["Q155653", "Dune (2021)"])
def test_seeds_are_pinned(seed: str) -> None:
    label = INDEX.graph.label(seed)
    for question in (f"Who directed {label}?", f"Who directed {seed}?", "Who directed it?"):
        expected = Pattern.of((Known(label, entity=seed), "directed by", X), target="x")
        assert by_examples(question, DIRECTED, seeds=[seed]) == expected
        assert zero_shot(question, seeds=[seed]).triples[0].head == Known(label, entity=seed)


def test_seeds_are_found_by_their_aliases() -> None:
    embeddings = Recording()
    on = GraphIndex.build(tiny_graph(), embeddings)
    by_examples("Please, who directed Spirited Away?", DIRECTED, seeds=["Q155653"], on=on)
    assert embeddings.texts[-1] == "Please, who directed _?"


def test_examples_that_the_entity_cannot_fill_are_passed_over() -> None:
    """Nobody wrote Amélie in the graph, so the nearest example is of no use."""
    assert by_examples("Who wrote Her?", WROTE, DIRECTED) == WROTE.pattern
    assert by_examples("Who wrote Amélie?", WROTE, DIRECTED) == Pattern.of(("Amélie", "directed by", X), target="x")
    assert by_examples("Who wrote Amélie?", WROTE) == Pattern.of(("Amélie", "written by", X), target="x")
    starred = example("Who wrote for Her?", ("Her", "starring", X), ("Her", "directed by", Y))
    pattern = by_examples("Who wrote for Amélie?", WROTE, starred, DIRECTED)
    assert pattern == Pattern.of(("Amélie", "starring", X), ("Amélie", "directed by", Y), target="x")


def test_confidence_falls_with_the_distance() -> None:
    """It is 0 where the entity has none of the relations: the pattern leads nowhere."""
    texts = ("Who directed Amélie?", "Who has directed Amélie?", "Amélie, please?")
    patterns = [by_examples(text, DIRECTED) for text in texts]
    confidences = [pattern.confidence or 0.0 for pattern in patterns]
    assert confidences == sorted(confidences, reverse=True)
    assert confidences[0] == pytest.approx(confidence_at(0.0), abs=0.01)
    assert by_examples("Who wrote Amélie?", WROTE).confidence == 0.0


def test_any_entity_of_an_ambiguous_name_will_do() -> None:
    """Only one of the two Dunes has a writer."""
    graph = tiny_graph().with_changes(added=[("Dune (2021)", "written_by", "Eric Roth")])
    pattern = by_examples("Who wrote Dune?", DIRECTED, WROTE, on=index(graph))
    assert pattern == Pattern.of(("Dune", "written by", X), target="x")


def test_the_commoner_of_equal_questions_wins() -> None:
    made, wrote = (example("Who made Her?", ("Her", relation, X)) for relation in ("directed by", "written by"))
    more = example("Who made Adaptation?", ("Adaptation", "written by", X))
    for examples in ([made, wrote, more], [more, wrote, made]):
        assert by_examples("Who made Her?", *examples) == wrote.pattern
    for examples in ([made, wrote], [wrote, made]):
        assert by_examples("Who made Her?", *examples) == made.pattern


def test_inequalities_and_names_outside_of_the_question_are_kept() -> None:
    other = example(
        "What else is by the maker of Her?",
        ("Her", "directed by", Y),
        (X, "directed by", Y),
        (X, "number", "0"),
        different=[(X, "Her")],
    )
    pattern = by_examples("What else is by the maker of Adaptation?", other)
    assert pattern.triples[2].tail == Known("0")
    assert pattern.different == ((X, Known("Adaptation")),)


def test_example_without_entities_serves_all_questions() -> None:
    everything = example("Who directs films?", (X, "directed by", "a film"))
    assert by_examples("Who directs Her?", everything) == everything.pattern


@pytest.mark.parametrize(
    ("examples", "told"),
    [
        ([], "got 0 examples, but none with a pattern"),
        ([Question("Who directed Her?")], "got 1 examples, but none with a pattern"),
        *((given, "wanted a list of Question, but got ") for given in (5, "Who directed Her?", ["Who?"], None)),
    ],
)
def test_examples_of_no_use_are_refused(examples: Any, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"ExamplePatternGenerator: {told}"):
        ExamplePatternGenerator(INDEX, examples)


def test_too_few_entities_for_any_example() -> None:
    with pytest.raises(EntityLinkingError, match=r"found 1 entities in .*; the examples have 2"):
        by_examples("What did Spike Jonze direct?", BOTH)


def test_graph_without_facts() -> None:
    on = index(KnowledgeGraph.from_triples([], labels={"Her": "Her"}))
    assert by_examples("Who directed Her?", DIRECTED, on=on) == DIRECTED.pattern
    with pytest.raises(EntityLinkingError, match="'Her' has no facts"):
        zero_shot("Who directed Her?", on=on)


# --- all ---


@pytest.mark.parametrize("generator", [ZeroShotPatternGenerator(INDEX), ExamplePatternGenerator(INDEX, [DIRECTED])])
def test_nothing_linked(generator: Any) -> None:
    for question in ("Who directed Xyzzyplugh?", "and?"):
        with pytest.raises(EntityLinkingError, match="No entity of the graph"):
            generator.invoke({"question": question})


def test_sample_questions_find_their_own_examples() -> None:
    """Each question is nearest to itself, and gets its own pattern."""
    generator = ExamplePatternGenerator(index(load_graph()), load_questions())
    wrong = [
        question.text
        for question in load_questions()
        if {triple.relation for triple in generator.invoke({"question": question.text}).triples}
        != {triple.relation for triple in (question.pattern.triples if question.pattern else ())}
    ]
    assert not wrong


def test_without_examples_the_graph_shows_questions_that_it_answers() -> None:
    llm = ScriptedChatModel(replies=[GOOD])
    LLMPatternGenerator(llm, index=INDEX, shots=12).invoke({"question": "Who directed Her?"})
    (message,) = llm.prompts[0]
    shown = [line.removeprefix("Question: ") for line in message.text.splitlines() if line.startswith("Question: ")]
    own = {question.text for question in generate_questions(INDEX.graph, GENERATED)}
    assert 0 < len(own & {*shown}) <= 6
