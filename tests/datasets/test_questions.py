"""Question sets: the published layouts, rows by hand, and everything that can be wrong with a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from question_files import write

from kg_retrievers.datasets import Question, read_metaqa, read_pathquestion, read_questions, write_questions
from kg_retrievers.errors import InvalidArgumentError, QuestionsLoadError
from kg_retrievers.graph.pattern import Known, Pattern, Unknown
from kg_retrievers.graph.types import Triple

FULL = Question(
    "who directed “Malèna”\u2028?",
    seed_entities=("Malèna",),
    answers=("Giuseppe Tornatore",),
    pattern=Pattern.of(("Malèna", "directed by", Unknown("director", "person")), target="director"),
    triples=(Triple("Malèna", "directed_by", "Giuseppe Tornatore"),),
    kind="movie_to_director",
)


def load_error(path: Path, text: str) -> QuestionsLoadError:
    with pytest.raises(QuestionsLoadError) as caught:
        read_questions(write(path, text))
    return caught.value


def test_the_hops_of_a_question() -> None:
    facts = (Triple("a", "r", "b"), Triple("b", "r", "c"), Triple("c", "r", "d"))
    x = Unknown("x")
    two = Pattern.of(("Her", "directed by", x), (Unknown("y"), "directed by", x), target="y")
    assert Question("q", pattern=two, triples=facts).hops == 2
    assert Question("q", triples=facts).hops == 3
    assert Question("q", answers=("a", "b"), triples=facts).hops is None
    assert Question("q").hops is None


# --- JSON lines ---


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    questions = [FULL, Question("bare"), Question("how many", value=0), Question("is it", value=False)]
    write_questions(path, questions)
    assert read_questions(path) == questions
    lines = path.read_bytes().decode("utf-8").split("\n")
    assert lines[1:3] == ['{"question": "bare"}', '{"question": "how many", "value": 0}']
    assert "Malèna" in lines[0]


def test_labelled_example_with_target_beside_the_pattern(tmp_path: Path) -> None:
    pattern = {"triples": [["Her", "directed by", {"unknown": "director"}]]}
    row = {"question": "q", "pattern": pattern, "target": "director", "answers": None, "mine": 1}
    again = {"question": "q", "pattern": pattern | {"target": "director"}, "target": "director"}
    path = write(tmp_path / "examples.jsonl", f"\ufeff\r\n{json.dumps(row)}\r\n  \n{json.dumps(again)}")
    first, second = read_questions(path)
    assert (
        first
        == second
        == Question("q", pattern=Pattern.of(("Her", "directed by", Unknown("director")), target="director"))
    )


def test_keys_of_ones_own_are_ignored(tmp_path: Path) -> None:
    """Also those that are like one that the row has."""
    row = {"question": "q", "question_id": 7, "answers": ["a"], "answer": "A", "id": 1, "source": "x", "": 0}
    assert read_questions(write(tmp_path / "rows.jsonl", json.dumps(row))) == [Question("q", answers=("a",))]


def test_a_question_is_answerable_unless_it_says_otherwise(tmp_path: Path) -> None:
    path = write(
        tmp_path / "rows.jsonl",
        '{"question": "a"}\n{"question": "b", "answerable": true}\n{"question": "c", "answerable": null}\n'
        '{"question": "d", "answerable": false, "answers": []}\n',
    )
    questions = read_questions(path)
    assert [question.answerable for question in questions] == [True, True, True, False]
    assert [question.to_dict() for question in questions[2:]] == [
        {"question": "c"},
        {"question": "d", "answerable": False},
    ]
    write_questions(path, questions)
    assert read_questions(path) == questions


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("Her\tdirected_by\tSpike Jonze", 'Each question is an object such as {"question": "Who directed Her'),
        ("{", "no valid JSON at column 2"),
        ("[" * 100_000, "recursion"),
        ("[1]", "must be a valid dictionary, but got [1]"),
        ("{}", "question is missing in {}"),
        ('{"question": 1}', "question must be a valid string, but got 1"),
        ('{"question": " "}', "the question is empty"),
        ('{"qestion": "q"}', "there is no key 'qestion'; did you mean 'question'?"),
        ('{"question": "q", "anwsers": ["a"]}', "there is no key 'anwsers'; did you mean 'answers'?"),
        ('{"question": "q", "answer": "a"}', "there is no key 'answer'; did you mean 'answers'?"),
        ('{"question": "q", "Answers": ["a"]}', "there is no key 'Answers'; did you mean 'answers'?"),
        ('{"question": "q", "seed_entity": "a"}', "there is no key 'seed_entity'; did you mean 'seed_entities'?"),
        ('{"question": "q", "answerable": false, "answers": ["a"]}', "'answerable' is false, but 'answers' holds"),
        ('{"question": "q", "triples": [["a", "b"]]}', "triples.0.2 is missing in ['a', 'b']"),
        ('{"question": "q", "pattern": []}', "Pattern: The value must be a dictionary"),
        ('{"question": "q", "pattern": {"triples": []}}', "Pattern: got no triples"),
        ('{"question": "q", "target": "x"}', "'pattern' is None"),
        ('{"question": "q", "pattern": {"triples": [["a", "b", "c"]]}, "target": "x"}', "the target 'x' is none"),
        ('{"question": "q", "pattern": {"target": "y"}, "target": "x"}', "inside of 'pattern' it is 'y'"),
    ],
)
def test_malformed_row_is_named_by_line(tmp_path: Path, row: str, message: str) -> None:
    error = load_error(tmp_path / "rows.jsonl", f'{{"question": "fine"}}\n\n{row}\n')
    assert error.line == 3
    assert message in str(error)
    assert len(str(error)) < 600


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(QuestionsLoadError, match="No such file"):
        read_questions(tmp_path / "absent.jsonl")
    with pytest.raises(QuestionsLoadError, match="cannot be read"):
        read_questions(tmp_path)
    assert "the file is empty" in str(load_error(tmp_path / "empty.jsonl", "\ufeff\n \n"))
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes('{"question": "fine"}\n{"question": "Malèna"}\n'.encode("latin-1"))
    with pytest.raises(QuestionsLoadError, match="UTF-8") as caught:
        read_questions(str(latin))
    assert caught.value.line == 2


# --- MetaQA ---

ROWS = "what does [Tom Cullen] appear in\tWeekend|Weekend|Downton|\n[Ann] acted in what\tA\n"


@pytest.mark.parametrize("name", ["1-hop/qa_test.txt", "1-hop/vanilla/qa_test.txt"])
@pytest.mark.parametrize("types", ["1-hop/qa_test_qtype.txt", "1-hop/vanilla/qa_test_qtype.txt", None])
def test_metaqa_in_both_layouts(tmp_path: Path, name: str, types: str | None) -> None:
    write(tmp_path / name, ROWS)
    if types:
        write(tmp_path / types, "actor_to_movie\r\nactor_to_movie\r\n")
    first, second = read_metaqa(tmp_path, 1, "test")
    assert first.text == "what does Tom Cullen appear in"
    assert first.seed_entities == ("Tom Cullen",)
    assert first.answers == ("Weekend", "Downton")
    assert second.text == "Ann acted in what"
    if types:
        assert first.kind == "actor_to_movie"
        assert first.pattern == Pattern.of((Unknown("movie 1"), "starred_actors", "Tom Cullen"), target="movie 1")
    else:
        assert (first.kind, first.pattern, second.pattern) == (None, None, None)


@pytest.mark.parametrize("name", ["1-hop/ntm/qa_dev.txt", "1-hop/qa_dev_ntm.txt"])
def test_metaqa_paraphrases(tmp_path: Path, name: str) -> None:
    write(tmp_path / "1-hop/qa_dev.txt", "who directed [Her]\tSpike Jonze\n")
    write(tmp_path / "1-hop/qa_dev_qtype.txt", "movie_to_director\n")
    write(tmp_path / name, "Director  [Her] \tSpike Jonze\n")
    (plain,), (paraphrase,) = read_metaqa(tmp_path, 1), read_metaqa(tmp_path, 1, paraphrases=True)
    assert (plain.text, paraphrase.text) == ("who directed Her", "Director  Her")
    assert (
        plain.pattern
        == paraphrase.pattern
        == Pattern.of(("Her", "directed_by", Unknown("director 1")), target="director 1")
    )


@pytest.mark.parametrize(
    ("kind", "triples", "target"),
    [
        ("tag_to_movie", [(Unknown("movie 1"), "has_tags", Known("X"))], "movie 1"),
        ("movie_to_tags", [(Known("X"), "has_tags", Unknown("tags 1"))], "tags 1"),
        ("movie_to_imdbvotes", [(Known("X"), "has_imdb_votes", Unknown("imdbvotes 1"))], "imdbvotes 1"),
        (
            "writer_to_movie_to_writer",
            [(Unknown("movie 1"), "written_by", Known("X")), (Unknown("movie 1"), "written_by", Unknown("writer 1"))],
            "writer 1",
        ),
        (
            "movie_to_actor_to_movie_to_actor",
            [
                (Known("X"), "starred_actors", Unknown("actor 1")),
                (Unknown("movie 1"), "starred_actors", Unknown("actor 1")),
                (Unknown("movie 1"), "starred_actors", Unknown("actor 2")),
            ],
            "actor 2",
        ),
    ],
)
def test_question_type_gives_the_pattern(
    tmp_path: Path, kind: str, triples: list[tuple[Known | Unknown, str, Known | Unknown]], target: str
) -> None:
    hop = kind.count("_to_")
    write(tmp_path / f"{hop}-hop/qa_dev.txt", "about [X]\tY\n")
    write(tmp_path / f"{hop}-hop/qa_dev_qtype.txt", kind)
    (question,) = read_metaqa(tmp_path, hop)
    assert question.pattern == Pattern.of(*triples, target=target)


@pytest.mark.parametrize(
    "row",
    [
        "no topic\tA",
        "[A] and [B]\tC",
        "about []\tA",
        "about [A]",
        "about [A]\t",
        "about [A]\t|",
        "about [A]\tB\tC",
        "about [[A]]\tB",
    ],
)
def test_malformed_metaqa_row(tmp_path: Path, row: str) -> None:
    write(tmp_path / "1-hop/qa_dev.txt", f"about [A]\tB\n{row}\n")
    with pytest.raises(QuestionsLoadError, match="wanted 'question with") as caught:
        read_metaqa(tmp_path, 1)
    assert caught.value.line == 2


@pytest.mark.parametrize(
    "kind", ["movie", "movie_to_movie", "actor_to_director", "movie_to_colour", "movie_to_actor_to_movie", "director"]
)
def test_unknown_question_type(tmp_path: Path, kind: str) -> None:
    write(tmp_path / "1-hop/qa_dev.txt", ROWS)
    types = write(tmp_path / "1-hop/qa_dev_qtype.txt", f"actor_to_movie\n{kind}\n")
    with pytest.raises(QuestionsLoadError, match="wanted a question type of 1 steps") as caught:
        read_metaqa(tmp_path, 1)
    assert (caught.value.path, caught.value.line) == (types, 2)


def test_metaqa_files_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(QuestionsLoadError, match=r"wanted 'qa_dev.txt' or 'vanilla/qa_dev.txt' here"):
        read_metaqa(tmp_path, 4)
    with pytest.raises(QuestionsLoadError, match=r"wanted 'ntm/qa_train.txt' or 'qa_train_ntm.txt' here"):
        read_metaqa(tmp_path, 1, "train", paraphrases=True)
    write(tmp_path / "1-hop/qa_dev.txt", ROWS)
    write(tmp_path / "1-hop/qa_dev_qtype.txt", "actor_to_movie\n")
    with pytest.raises(QuestionsLoadError, match="each of 2 questions, but got 1"):
        read_metaqa(tmp_path, 1)


# --- PathQuestion ---


def test_pathquestion_row(tmp_path: Path) -> None:
    path = write(
        tmp_path / "PQ.txt", "sex of a_b 's child ?\tmale(female/male/)\ta_b#children#c#gender#male#<end>#male\n"
    )
    assert read_pathquestion(path) == [
        Question(
            "sex of a_b 's child ?",
            seed_entities=("a_b",),
            answers=("female", "male"),
            pattern=Pattern.of(
                ("a_b", "children", Unknown("entity 1")),
                (Unknown("entity 1"), "gender", Unknown("entity 2")),
                target="entity 2",
            ),
            triples=(Triple("a_b", "children", "c"), Triple("c", "gender", "male")),
            kind="children -> gender",
        )
    ]


@pytest.mark.parametrize(
    "row",
    [
        "q",
        "q\ta(a/)",
        "q\ta\ta#r#b#<end>#b",
        "q\ta()\ta#r#b#<end>#b",
        "q\ta(/)\ta#r#b#<end>#b",
        "q\tb(b/)\ta#r#b",
        "q\tb(b/)\ta#r#<end>#b",
        "q\tb(b/)\ta#<end>#a",
        "q\tb(b/)\ta##b#<end>#b",
        "q\tb(b/)\ta#r#b#<end>#b\tmore",
    ],
)
def test_malformed_pathquestion_row(tmp_path: Path, row: str) -> None:
    path = write(tmp_path / "PQ.txt", f"q\tb(b/)\ta#r#b#<end>#b\n{row}\n")
    with pytest.raises(QuestionsLoadError, match="wanted 'question<TAB>") as caught:
        read_pathquestion(path)
    assert caught.value.line == 2


# --- the published data ---


@pytest.mark.real
@pytest.mark.parametrize(
    ("hop", "paraphrases", "count"),
    [
        (1, False, 9_992),
        pytest.param(1, True, 9_992, marks=pytest.mark.heavy),
        pytest.param(2, False, 14_872, marks=pytest.mark.heavy),
        pytest.param(3, False, 14_274, marks=pytest.mark.heavy),
    ],
)
def test_published_metaqa(data_dir: Path, tmp_path: Path, hop: int, paraphrases: bool, count: int) -> None:
    facts = [line.split("|") for line in (data_dir / "metaqa/kb.txt").read_text(encoding="utf-8").splitlines()]
    names = {name for head, _, tail in facts for name in (head, tail)}
    relations = {relation for _, relation, _ in facts}
    questions = read_metaqa(data_dir / "metaqa", hop, paraphrases=paraphrases)
    assert len(questions) == count
    for question in questions:
        (topic,) = question.seed_entities
        assert topic in names
        assert topic in question.text
        assert question.answers
        assert names.issuperset(question.answers)
        assert question.kind is not None
        assert question.pattern is not None
        assert len(question.pattern.triples) == hop
        assert Known(topic) in question.pattern.nodes
        assert all(
            isinstance(edge.relation, Known) and edge.relation.text in relations for edge in question.pattern.triples
        )
    write_questions(tmp_path / "again.jsonl", questions)
    assert read_questions(tmp_path / "again.jsonl") == questions


@pytest.mark.real
@pytest.mark.parametrize(("hop", "count"), [(2, 1_908), (3, 5_198)])
def test_published_pathquestion(data_dir: Path, hop: int, count: int) -> None:
    folder = data_dir / "pathquestion"
    facts = {Triple(*line.split("\t")) for line in (folder / f"{hop}H-kb.txt").read_text(encoding="utf-8").splitlines()}
    questions = read_pathquestion(folder / f"PQ-{hop}H.txt")
    assert len(questions) == count
    for question in questions:
        assert question.seed_entities[0] in question.text.split()
        assert question.pattern is not None
        assert len(question.pattern.triples) == len(question.triples) == hop
        assert facts.issuperset(question.triples)
        assert question.triples[-1].tail in question.answers


@pytest.mark.parametrize("value", [{"a": 1}, [[1]], object()])
def test_a_gold_value_is_plain(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="value must be a number"):
        Question("how many", value=value)
