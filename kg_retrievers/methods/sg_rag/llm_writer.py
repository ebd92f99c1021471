"""Question -> Cypher by a language model that is shown the schema; its query is checked before it runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import RunnableLambda

from kg_retrievers.algorithms.neighborhood import neighborhood
from kg_retrievers.core.prompts import check_model, check_placeholders
from kg_retrievers.core.stages import Body, Call, GeneratorRunnable
from kg_retrievers.core.structured_replies import guarded
from kg_retrievers.database.executor import Executor
from kg_retrievers.database.schema import DatabaseSchema, NodeLabel, RelationType, backticked
from kg_retrievers.database.sparql.schema import SparqlSchema
from kg_retrievers.datasets import Question
from kg_retrievers.errors import CypherGenerationError, DatabaseQueryError, InvalidArgumentError, QuerySafetyError
from kg_retrievers.graph import KnowledgeGraph, Known
from kg_retrievers.graph.parts import TIMEOUT
from kg_retrievers.graph.verbalize import approximate_tokens, as_data
from kg_retrievers.index import GraphIndex, QuestionEntity, check_same_embeddings, embed, find_name, mask
from kg_retrievers.methods.sg_rag.arrows import correct_directions
from kg_retrievers.methods.sg_rag.labelling import label_examples
from kg_retrievers.methods.sg_rag.prompts import CYPHER_PROMPT, REPAIR_PROMPT, parse_cypher
from kg_retrievers.methods.sg_rag.queries import (
    cancellable,
    check_lists,
    check_properties,
    check_query,
    check_shows_facts,
)
from kg_retrievers.methods.sg_rag.sparql import (
    SPARQL_PROMPT,
    SPARQL_REPAIR_PROMPT,
    check_names,
    check_sparql,
    parse_sparql,
    relation_line,
    type_line,
)
from kg_retrievers.methods.sg_rag.writers import MAX_QUERIES, PatternCypherWriter, Queries
from kg_retrievers.questions.operations import Directions
from kg_retrievers.questions.zero_shot.generator import ZeroShotPatternGenerator

#: The most tokens of the schema that a language model is shown.
MAX_SCHEMA_TOKENS = 1500

#: Relationship types within so many hops of the question's entities are shown first.
SCHEMA_HOPS = 3

#: The most pairs of labels that are shown for a relationship type, and properties for a type or a label.
PAIRS_SHOWN, PROPERTIES_SHOWN = 5, 20

#: The most types of a SPARQL endpoint that are shown.
TYPES_SHOWN = 30

#: How many of the user's examples a language model is shown.
EXAMPLES_SHOWN = 3

Prompt = BasePromptTemplate[Any]

#: Properties that hold vectors, by their type or name; they mean nothing to a language model.
_VECTOR = re.compile(r"(?:FLOAT|DOUBLE|FLOAT32|FLOAT64|INT8)\d*\[\d*\]|LIST.*FLOAT|VECTOR", re.IGNORECASE)
_VECTOR_NAME = re.compile(r"embedding|vector", re.IGNORECASE)


class LLMCypherWriter(GeneratorRunnable[Mapping[str, Any], Queries]):
    """Asks a language model for a query, and once more, with the reason, where the query cannot be run.

    The model is shown the part of the schema near to the question, with a fact for each relation, and the entities that
    the question names as parameters. Its query must only read, name nothing that the database does not have, and return
    relationships; arrows that can only point the other way are turned; then the database compiles it, without running
    it. Where the likeliest name in the question may mean further entities, the same query follows for each of them.

    Args:
        index: The indexed graph.
        llm: The language model; set its temperature to 0 for equal replies on every run.
        examples: Questions with patterns or answers, of which the nearest are shown with their queries.
        max_schema_tokens: The most tokens of the schema, roughly counted.
        prompt: Replaces `CYPHER_PROMPT`, with the same placeholders.
        repair_prompt: Replaces `REPAIR_PROMPT`, with the same placeholders.

    Raises:
        InvalidArgumentError: If `llm` is no language model, a prompt has other placeholders, or `max_schema_tokens` is
            below 1.
        CypherGenerationError: From `invoke`, if the second reply cannot be used either.
    """

    calls_model = True
    checks_queries = True

    def __init__(
        self,
        index: GraphIndex,
        llm: BaseLanguageModel[Any],
        *,
        examples: Sequence[Question] = (),
        max_schema_tokens: int = MAX_SCHEMA_TOKENS,
        prompt: BasePromptTemplate[Any] = CYPHER_PROMPT,
        repair_prompt: BasePromptTemplate[Any] = REPAIR_PROMPT,
    ) -> None:
        """Check the model and the prompts, and embed the examples."""
        check_model(llm, "LLMCypherWriter")
        check_placeholders(prompt, CYPHER_PROMPT.input_variables, "LLMCypherWriter: prompt")
        check_placeholders(repair_prompt, REPAIR_PROMPT.input_variables, "LLMCypherWriter: repair_prompt")
        if type(max_schema_tokens) is not int or max_schema_tokens < 1:
            raise InvalidArgumentError(
                f"LLMCypherWriter: max_schema_tokens must be an integer from 1, but got {max_schema_tokens!r}."
            )
        self.index, self.llm, self.max_schema_tokens = index, llm, max_schema_tokens
        self.prompts = {"cypher": prompt, "repair": repair_prompt}
        self._directions = Directions(index)
        self._patterns = PatternCypherWriter(index, ZeroShotPatternGenerator(index))
        self._examples = [example for example in label_examples(index, examples) if example.pattern]
        self._vectors = embed(index.embeddings, [_masked(example) for example in self._examples], batch_size=1024)

    def with_index(self, index: GraphIndex) -> Self:
        """Return the writer over another graph, with the same examples.

        Raises:
            ModelMismatchError: If it was indexed with other embeddings than the examples.
        """
        if self._examples:
            check_same_embeddings(type(self).__name__, self.index, index)
        moved = copy(self)
        moved.index, moved._directions = index, Directions(index)
        moved._patterns = self._patterns.with_index(index)
        return moved

    def body(self, input: Mapping[str, Any]) -> Body[Queries]:
        """Ask, check, and ask again with the reason where the query cannot be run."""
        executor: Executor = input["executor"]
        entities: list[QuestionEntity] = input["entities"][:MAX_QUERIES]
        parameters = {f"e{slot}": list(entity.entities[: entity.best]) for slot, entity in enumerate(entities)}
        values, examples = yield Call(self._prompt_values, {**input, "parameters": parameters})
        prompt, repair_prompt, parse = self._language(executor)
        check: RunnableLambda[str, str] = cancellable(
            lambda query: self._checked(query, parameters, executor, input.get("timeout", TIMEOUT))
        )
        reply = yield Call(prompt | guarded(self.llm) | StrOutputParser(), values | {"examples": examples})
        try:
            query = yield Call(check, parse(reply))
        except (CypherGenerationError, QuerySafetyError, DatabaseQueryError) as error:
            values |= {"reply": reply, "error": _reason(error)}
            reply = yield Call(repair_prompt | guarded(self.llm) | StrOutputParser(), values)
            try:
                query = yield Call(check, parse(reply))
            except (QuerySafetyError, DatabaseQueryError) as again:
                reason = f"LLMCypherWriter: the second query cannot be run either: {_reason(again)}"
                raise CypherGenerationError(reason, reply) from again
        other_meanings = entities[0].entities[entities[0].best :] if entities else ()
        meant = [parameters, *({**parameters, "e0": [key]} for key in other_meanings)]
        return [{"query": query, "parameters": given, "from": "llm"} for given in meant[:MAX_QUERIES]]

    def _language(self, executor: Executor) -> tuple[Prompt, Prompt, Callable[[str], str]]:
        """Return both prompts, and what reads the replies; a prompt that was given stays."""
        prompt, repair_prompt = self.prompts["cypher"], self.prompts["repair"]
        if executor.dialect != "sparql":
            return prompt, repair_prompt, parse_cypher
        prompt = SPARQL_PROMPT if prompt is CYPHER_PROMPT else prompt
        return prompt, SPARQL_REPAIR_PROMPT if repair_prompt is REPAIR_PROMPT else repair_prompt, parse_sparql

    def _checked(self, query: str, parameters: Mapping[str, Any], executor: Executor, timeout: float) -> str:
        """Return a query with its arrows the right way round, once all checks let it through."""
        schema = executor.schema()
        if isinstance(schema, SparqlSchema):
            text = check_sparql(query, parameters, schema, shows_facts=True)
            check_names(text, schema)
            executor.explain(text, parameters, timeout=timeout)
            return text
        checked = check_query(query, parameters, schema)
        check_properties(checked.text, schema)
        check_lists(checked.text, parameters)
        check_shows_facts(checked.text)
        corrected = correct_directions(checked.text, parameters, schema, self._directions)
        executor.explain(corrected, parameters, timeout=timeout)
        return corrected

    # --- what the model is shown --------------------------------------------------------------------------------------

    def _prompt_values(self, input: Mapping[str, Any]) -> tuple[dict[str, str], str]:
        """Return the values of both prompts, and the examples of the first; reads the database."""
        question, executor, entities = input["question"], input["executor"], input["entities"][:MAX_QUERIES]
        schema = self.describe_schema(executor.schema(), question, input["seed_entities"])
        names = {f"e{slot}": entity.name for slot, entity in enumerate(entities)}
        values = {"question": question, "parameters": _shown(input["parameters"], names), "schema": schema}
        return values, self._shown_examples(question, entities, executor)

    def describe_schema(self, schema: DatabaseSchema, question: str, seed_entities: Sequence[str] = ()) -> str:
        """Write the part of a schema that is near to a question, within `max_schema_tokens`.

        Relationship types around the entities come first, then those whose words are nearest to the question; labels
        are those that the types join. Properties that hold vectors are left out.
        """
        if isinstance(schema, SparqlSchema):
            known = {label.name: type_line(label.name, schema) for label in schema.labels[:TYPES_SHOWN]}
        else:
            known = {label.name: _label_line(label) for label in schema.labels}
        relations = self._by_nearness(schema, question, seed_entities)
        total = len(relations) or len(known)
        left = self.max_schema_tokens - approximate_tokens(_more(total, "relationship types"))
        if not relations:
            return "\n".join(_first_labels(known, left))
        labels: dict[str, str] = {}
        lines: list[str] = []
        if isinstance(schema, SparqlSchema):  # which types a relation joins is not known
            labels = dict(zip(known, _first_labels(known, left // 4), strict=False))
            left -= sum(map(_tokens, labels.values()))
        for relation in relations:
            pairs = (relation.ends or (("", ""),))[:PAIRS_SHOWN]
            new = {name: known[name] for pair in pairs for name in pair if name in known and name not in labels}
            line = self._relation_lines(relation, pairs, schema)
            cost = sum(map(_tokens, (line, *new.values())))
            if cost <= left:
                left -= cost
                labels |= new
                lines.append(line)
            elif lines:
                break
        if more := len(relations) - len(lines):
            lines.append(_more(more, "relationship types"))
        return "\n".join([*labels.values(), *lines])

    def _by_nearness(self, schema: DatabaseSchema, question: str, seed_entities: Sequence[str]) -> list[RelationType]:
        """Return the relationship types, those around the entities first, then by their words."""
        graph = self.index.graph
        likeness = self.index.relation_vectors @ self.index.embed([question])[0]
        is_near = np.zeros(len(graph.relations), bool)
        if seeds := [graph.entities.find(key) for key in seed_entities]:
            around = neighborhood(graph.adjacency, seeds, max_hops=SCHEMA_HOPS, max_nodes=2_000).triples
            is_near[np.unique(graph.edges[around][:, 1])] = True
        order = np.lexsort((-likeness, ~is_near)).tolist()
        rank = {graph.relations[relation]: position for position, relation in enumerate(order)}
        return sorted(schema.relations, key=lambda r: (rank.get(schema.relation_of(r.name), len(rank)), r.name))

    def _relation_lines(self, relation: RelationType, pairs: Sequence[tuple[str, str]], schema: DatabaseSchema) -> str:
        """Write a relationship type between some of its pairs of labels, with one of its facts."""
        if isinstance(schema, SparqlSchema):
            return relation_line(relation.name, schema) + self._fact(schema.relation_of(relation.name))
        arrow = f"-[:{_name(relation.name)}{_properties(relation.properties)}]->"
        lines = "\n".join(f"{_node(head)}{arrow}{_node(tail)}" for head, tail in pairs)
        lines += self._fact(schema.relation_of(relation.name))
        if more := len(relation.ends) - len(pairs):
            lines += "\n" + _more(more, f"pairs of labels of {_name(relation.name)}")
        return lines

    def _fact(self, relation: str) -> str:
        whole = self.index.whole
        graph = whole.graph
        facts = whole.derived.get("first facts", (graph,), lambda: _first_facts(graph))
        if (id := graph.relations.find(relation)) not in facts:
            return ""
        head, _, tail = graph.triple(facts[id])
        return as_data("   for example " + " -> ".join(" ".join(graph.label(end).split()) for end in (head, tail)))

    def _shown_examples(self, question: str, entities: Sequence[QuestionEntity], executor: Executor) -> str:
        """Write the nearest examples with their queries."""
        if not self._examples:
            return ""
        masked = mask(question, [(entity.start, entity.end) for entity in entities])
        distances = np.linalg.norm(self._vectors - self.index.embed([masked]), axis=1)
        shown, language = [], "SPARQL" if executor.dialect == "sparql" else "Cypher"
        for nearest in np.argsort(distances, kind="stable")[:EXAMPLES_SHOWN].tolist():
            example = self._examples[nearest]
            assert example.pattern is not None
            written = next(self._patterns.write(example.pattern, executor))
            names = {name: f"e{slot}" for slot, name in enumerate(written["parameters"])}
            query, parameters = written["query"].split("\nORDER BY ")[0], dict[str, Any]()
            for name, value in written["parameters"].items():
                stands = rf"\${name}\b" if executor.dialect == "sparql" else rf"(?:=|IN) \${name}\b"
                query = re.sub(stands, f"{'' if executor.dialect == 'sparql' else 'IN '}${names[name]}", query)
                parameters[names[name]] = value if isinstance(value, list) else [value]
            shown.append(f"Question: {example.text}\nParameters: {_shown(parameters, {})}\n{language}:\n{query}")
        return "\nThese are of this database.\n\n" + "\n\n".join(shown)


def _first_facts(graph: KnowledgeGraph) -> dict[int, int]:
    """Return the first fact of each relation, by ids."""
    relations, first = np.unique(graph.edges.relations, return_index=True)
    return dict(zip(relations.tolist(), first.tolist(), strict=True))


def _masked(example: Question) -> str:
    """Return the text of an example without the names in its pattern."""
    nodes = example.pattern.nodes if example.pattern else ()
    spans = (find_name(node.text, example.text) for node in nodes if isinstance(node, Known))
    return mask(example.text, [span for span in spans if span])


def _shown(parameters: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Write parameters, each on a line, with their names in the question where these are not the keys."""
    lines = []
    for name, value in parameters.items():
        called = f", which is {names[name]!r}" if name in names and value != [names[name]] else ""
        lines.append(as_data(f"${name} = {json.dumps(value, ensure_ascii=False)}{called}"))
    return "\n".join(lines) or "none"


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else as_data(backticked(name))


def _node(label: str) -> str:
    return f"(:{_name(label)})" if label else "()"


def _properties(properties: Mapping[str, str]) -> str:
    shown = {
        name: kind
        for name, kind in properties.items()
        if not (_VECTOR.search(kind) or (_VECTOR_NAME.search(name) and "STRING" not in kind.upper()))
    }
    texts = [f"{_name(name)}: {kind}" for name, kind in list(shown.items())[:PROPERTIES_SHOWN]]
    if more := len(shown) - len(texts):
        texts.append(f"... {more} more")
    return " {" + ", ".join(texts) + "}" if texts else ""


def _tokens(line: str) -> int:
    """Return roughly how many tokens a line has, its end included."""
    return approximate_tokens(f"{line}\n")


def _more(count: int, what: str) -> str:
    return f"({count} more {what} are not shown)"


def _first_labels(lines: Mapping[str, str], tokens: int) -> Iterator[str]:
    """Yield the lines of labels that take at most so many tokens, and how many are left."""
    for position, line in enumerate(lines.values()):
        tokens -= _tokens(line)
        if tokens < 0:
            yield _more(len(lines) - position, "labels")
            return
        yield line


def _label_line(label: NodeLabel) -> str:
    return f"(:{_name(label.name)}{_properties(label.properties)}), its key is {_name(label.key)}"


def _reason(error: Exception) -> str:
    """Return what was wrong, in the database's own words where it refused the query."""
    return str(getattr(error, "reason", error))
