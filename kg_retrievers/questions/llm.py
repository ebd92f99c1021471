"""Question -> Pattern by a language model."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Self

from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate

from kg_retrievers.core.prompts import check_model, check_placeholders
from kg_retrievers.core.stages import Body, Call, GeneratorRunnable
from kg_retrievers.core.structured_replies import CUT, StructuredModel, reply_text, was_cut
from kg_retrievers.datasets import Question
from kg_retrievers.errors import (
    EntityLinkingError,
    InvalidArgumentError,
    LowConfidenceError,
    PatternError,
    PatternParseError,
    SearchBudgetError,
    named_arguments,
)
from kg_retrievers.graph import Known, Pattern, PatternTriple, Term, Unknown, readable
from kg_retrievers.graph.validation import check_integer
from kg_retrievers.graph.verbalize import as_data
from kg_retrievers.index import GraphIndex
from kg_retrievers.questions.carried_out import check_known_texts
from kg_retrievers.questions.choosing import sample_answers
from kg_retrievers.questions.examples import ExamplePatternGenerator
from kg_retrievers.questions.prompts import (
    EXAMPLES,
    PATTERN_PROMPT,
    REPAIR_PROMPT,
    PatternReply,
    parse_pattern,
    write_schema,
    write_shots,
)
from kg_retrievers.questions.schema_lines import schema_lines
from kg_retrievers.questions.self_questions.generate import generate_questions

#: How a question begins that asks for things: "who", "in which", "how many", "when did".
_ASKS_FOR_THINGS = re.compile(
    r"\W*(?:\w+ )?(?:who|whom|whose|which|what|how (?:many|much)|"
    r"(?:when|where) (?:is|are|was|were|do|does|did|has|have|had|will|can))\b",
    re.IGNORECASE,
)


def check_meant(pattern: Pattern, question: str, shots: Iterable[tuple[str, Mapping[str, Any]]], reply: str) -> None:
    """Check that a pattern leaves the question's target open, and has no fact of an example about other things.

    Args:
        pattern: The pattern that was read.
        question: What the model was asked.
        shots: The examples that it was shown: questions with the objects that answer them.
        reply: Where the pattern was read, for the error.

    Raises:
        PatternParseError: If not; the message says why, so that a model can repair it.
    """
    is_closed = not any(isinstance(term, Unknown) for triple in pattern.triples for term in triple)
    if is_closed and _ASKS_FOR_THINGS.match(question):
        raise PatternParseError(
            "check_meant: the question asks for something, but no triple holds an UNKNOWN. Write UNKNOWN, its kind and "
            "a number for what is asked for.",
            reply,
        )
    words = question.casefold()
    strange = [triple for triple in pattern.triples if _is_about_others(triple, words)]
    if not strange:
        return
    shown = {triple for _, answer in shots for triple in parse_pattern(json.dumps(answer)).triples}
    if copied := next((triple for triple in strange if triple in shown), None):
        names = [node.text for node in (copied.head, copied.tail) if isinstance(node, Known)]
        raise PatternParseError(
            f"check_meant: a triple about {names} is copied from an example, and the question names none of it. Write "
            "the facts that the question speaks of.",
            reply,
        )


def _is_about_others(triple: PatternTriple, words: str) -> bool:
    """Tell whether a triple names something, and nothing of a question."""
    names = [node.text.casefold() for node in (triple.head, triple.tail) if isinstance(node, Known)]
    return bool(names) and not any(name in words for name in names)


def as_shot(example: Question) -> tuple[str, dict[str, Any]]:
    """Return the question of an example and the reply that a language model should give to it.

    Raises:
        InvalidArgumentError: If the example has no pattern.

    Example:
        >>> from kg_retrievers import Pattern
        >>> pattern = Pattern.of(("Her", "directed_by", Unknown("who")), target="who")
        >>> as_shot(Question("Who directed Her?", pattern=pattern))[1]["triples"]
        [['Her', 'directed_by', 'UNKNOWN who 1']]
    """
    pattern = example.pattern
    if pattern is None:
        raise InvalidArgumentError(f"as_shot: the example {example.text!r:.100} has no pattern to show.")
    relations = dict.fromkeys(triple.relation for triple in pattern.triples)
    absent_ends = (node for triple in pattern.absent for node in (triple.head, triple.tail))
    node_words = _words(list(dict.fromkeys([*pattern.nodes, *absent_ends])))
    relation_words = _words(list(relations), kind="relation")
    triples = [
        [node_words[head], relation_words[relation], node_words[tail]] for head, relation, tail in pattern.triples
    ]
    segments = [f"{head} {readable(relation)} {tail}" for head, relation, tail in triples]
    unknown = [node for node in pattern.nodes if isinstance(node, Unknown)]
    target = next((node_words[node] for node in unknown if node.name == pattern.target), None)
    reply = {"segments": segments, "triples": triples, "target": target}
    return example.text, reply | _operations(pattern, node_words)


def _operations(pattern: Pattern, words: dict[Term, str]) -> dict[str, Any]:
    """Return what a reply says beside the triples; nothing where a pattern has no more than these."""
    names = {node.name: word for node, word in words.items() if isinstance(node, Unknown)}
    said: dict[str, Any] = {}
    if pattern.conditions:
        rows = [condition.to_dict() for condition in pattern.conditions]
        said["conditions"] = [[names[row["unknown"]], row["operator"], row["value"]] for row in rows]
    if pattern.absent:
        relations = _words(list(dict.fromkeys(triple.relation for triple in pattern.absent)), kind="other relation")
        said["absent"] = [[words[head], relations[relation], words[tail]] for head, relation, tail in pattern.absent]
    if pattern.operation is not None:
        said["operation"] = pattern.operation.to_dict()
        if pattern.operation.by:
            said["operation"]["by"] = [names[name] for name in pattern.operation.by]
    return said


def _words(terms: list[Term], kind: str = "") -> dict[Term, str]:
    """Return how a reply writes each term: a name, or UNKNOWN, its kind and a number."""
    counts: Counter[str] = Counter()
    words: dict[Term, str] = {}
    for term in terms:
        if isinstance(term, Known):  # in quotes if it would be read as an unknown
            is_like_unknown = term.text.casefold().startswith(("unk", "?"))
            words[term] = f'"{term.text}"' if is_like_unknown else term.text
        else:
            of_kind = kind or term.type or readable(term.name).rstrip("0123456789 ") or "thing"
            counts[of_kind] += 1
            words[term] = f"UNKNOWN {of_kind} {counts[of_kind]}"
    return words


#: How many worked examples the prompt shows in all: section 6.1 and appendix C.1 (12-shot in-context learning). Of 4, 8
#: and 12 in table 3, none is best everywhere.
SHOTS = 12


#: How many questions a graph asks of itself if there are no examples, and the most facts of such a graph.
GENERATED, MOST_FACTS = 60, 1_000_000


class LLMPatternGenerator(GeneratorRunnable[Mapping[str, Any], Pattern]):
    """Asks a language model for the pattern (SimGRAG, section 4.1), and once more where its reply cannot be used.

    It cannot be used if it is unreadable, leaves nothing open or copies an example (see `check_meant`), names things
    that the graph lacks (see `check_known_texts`), or fits nothing in the graph. Then a message says so to the model,
    with the nearest names of the graph. A model with structured output is asked for it.

    The model sees the part of the schema that is near the question: see `schema_lines`. Of the user's examples, the
    nearest to the question are shown, the nearest last. Our own `EXAMPLES` come before them as far as there is room.
    Without any, questions that the graph asks of itself take half of the room (`generate_questions`). The pattern has
    no confidence. `QuestionReader` gives it one.

    Differs from the paper: the examples are the nearest to each question, while the paper shows the same to all. The
    paper's prompt also shows nothing of the graph.

    Args:
        llm: The language model; set its temperature to 0 for equal replies on every run.
        examples: Finds the examples to show; None shows our own alone.
        index: The indexed graph; None shows no schema and checks no names.
        prompt: In place of ours, with the placeholder `question`, and `shots` and `schema` if these are to be shown.
        repair_prompt: In place of ours, with the placeholders `question`, `reply` and `error`.
        shots: How many worked examples the prompt shows in all, 1 or more; table 3 compares 4, 8 and 12. As many
            examples of yours as that leave no room for ours.
        structured: Whether to use the model's structured output; None where the model has it. False suits servers that
            speak the protocol of a model with structured output without having it.

    Raises:
        InvalidArgumentError: If `llm` is no language model, a prompt has other placeholders, `shots` is below 1, or
            `structured` is asked of a model that has it not.
        PatternParseError: From `invoke`, if the second reply cannot be used, either.
    """

    calls_model = True

    @named_arguments
    def __init__(
        self,
        llm: BaseLanguageModel[Any],
        *,
        examples: ExamplePatternGenerator | None = None,
        index: GraphIndex | None = None,
        prompt: BasePromptTemplate[Any] = PATTERN_PROMPT,
        repair_prompt: BasePromptTemplate[Any] = REPAIR_PROMPT,
        shots: int = SHOTS,
        structured: bool | None = None,
    ) -> None:
        """Check the model, the prompts and the number of shots."""
        check_model(llm, "LLMPatternGenerator")
        optional = {"shots", "schema"}.intersection(getattr(prompt, "input_variables", ()))
        check_placeholders(prompt, {"question", *optional}, "LLMPatternGenerator: prompt")
        check_placeholders(repair_prompt, ["question", "reply", "error"], "LLMPatternGenerator: repair_prompt")
        check_integer(shots, "LLMPatternGenerator: shots")
        self.llm, self.examples, self.index, self.shots = llm, examples, index, shots
        self.prompts = {"pattern": prompt, "repair": repair_prompt}
        self._model = StructuredModel(llm, PatternReply, structured=structured, who="LLMPatternGenerator").asked()

    def with_index(self, index: GraphIndex) -> Self:
        """Return the generator over another graph. Without an index it is the same over any."""
        moved = copy(self)
        moved.examples = self.examples and self.examples.with_index(index)
        moved.index = self.index and index
        return moved

    def body(self, input: Mapping[str, Any]) -> Body[Pattern]:
        """Ask, read, check the names, and if need be ask again with the reason."""
        values = {"question": input["question"]}
        shots = yield Call(self._shots, input)
        schema: Sequence[str] = yield Call(self._schema, input)
        asked = values | {"shots": write_shots(shots), "schema": write_schema(schema)}
        reply = yield Call(self.prompts["pattern"] | self._model, asked)
        refused: Pattern | None = None
        try:
            refused = _read(reply, values["question"], shots)
            error = yield Call(self._lacking, {**input, "pattern": refused})
            if not error:
                return refused
            values |= {"reply": reply_text(reply), "error": error}
        except PatternParseError as cause:
            values |= {"reply": cause.reply, "error": cause.reason}
        reply = yield Call(self.prompts["repair"] | self._model, values)
        try:
            return _read(reply, values["question"], shots)
        except PatternParseError:
            if refused is None:
                raise
            return refused

    def _lacking(self, input: Mapping[str, Any]) -> str:
        """Return what a pattern names that the graph lacks, with the nearest names, or that nothing fits it."""
        if self.index is None or self.index.is_part:
            return ""
        try:
            check_known_texts(self.index, input["pattern"], {one.term.text for one in input.get("entities") or ()})
            found = sample_answers(self.index, input["pattern"])
        except (EntityLinkingError, LowConfidenceError) as error:
            return as_data(error.message) + " Name one of these only if the question means it; else keep the name."
        except (PatternError, SearchBudgetError) as error:
            return as_data(str(error))
        if found == []:
            return "Nothing in the graph fits these triples. Look at the names and directions of the relations again."
        return ""

    def _schema(self, input: Mapping[str, Any]) -> list[str]:
        if self.index is None:
            return []
        return schema_lines(self.index, input["question"], input.get("entities") or ())

    def _shots(self, input: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """Return the examples nearest to the question, after as many of ours as there is room for."""
        nearest = self.examples.shots(input, self.shots) if self.examples else self._generated(input)
        ours = EXAMPLES[: self.shots - len(nearest)]
        return [*ours, *map(as_shot, reversed(nearest))]

    def _generated(self, input: Mapping[str, Any]) -> list[Question]:
        """Return the questions nearest to a question of those that the graph asks of itself, for half of the shots."""
        index = self.index
        if index is None or index.is_part or not 0 < len(index.graph) <= MOST_FACTS:
            return []
        graph = index.graph
        made: ExamplePatternGenerator = index.derived.get(
            "generated examples", (graph,), lambda: ExamplePatternGenerator(index, generate_questions(graph, GENERATED))
        )
        return made.shots(input, self.shots // 2)


def _read(reply: Any, question: str, shots: Sequence[tuple[str, Mapping[str, Any]]]) -> Pattern:
    """Return the pattern of a reply.

    Raises:
        PatternParseError: If it cannot be used.
    """
    text = reply_text(reply)
    try:
        pattern = parse_pattern(text)
    except PatternParseError as error:
        if was_cut(reply):
            raise PatternParseError(f"{CUT} {error.reason}", error.reply) from error
        raise
    check_meant(pattern, question, shots, text)
    return pattern
