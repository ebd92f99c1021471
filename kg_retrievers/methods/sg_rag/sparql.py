"""SG-RAG over SPARQL: the prompts, the parser of replies, the checks of queries, and how the schema is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.prompts import ChatPromptTemplate

from kg_retrievers.database.sparql.schema import SparqlSchema
from kg_retrievers.database.sparql.tokens import refusal, tokenize
from kg_retrievers.database.tokens import Token
from kg_retrievers.graph.iris import WELL_KNOWN, Prefixes
from kg_retrievers.graph.verbalize import as_data
from kg_retrievers.methods.sg_rag.prompts import QueryForm, find_query, repairing_prompt, writing_prompt

_RULES = """\
1. Write one query that only reads, of the form SELECT DISTINCT ... WHERE {{ ... }}, with VALUES, FILTER, OPTIONAL, \
UNION, BIND, ORDER BY and LIMIT where they are needed.
2. Use the relations and types of the schema and no others, letter by letter. Mind which way a relation points there.
3. What the question names is given as parameters. Each is a list: write `VALUES ?film {{ $e0 }}`, and never write a \
name into the query.
4. SELECT first what is asked for, AS ?target, and then the three terms of every triple, AS ?h0 ?r0 ?t0 for the first, \
?h1 ?r1 ?t1 for the second. What is not returned is not shown as evidence; so do not count, return the facts.
5. Where others are asked for, as with co-stars, say that they are not the one that is named: \
`FILTER(?other != ?actor)`.
6. Reply with the query and nothing else."""

_EXAMPLES = """\
Example

These are of another database, with the relation ex:flowsThrough from a river to a city.

Question: Which cities lie on the Danube?
Parameters: $e0 = ["ex:Danube"]
SPARQL:
SELECT DISTINCT (?city AS ?target) (?river AS ?h0) (ex:flowsThrough AS ?r0) (?city AS ?t0)
WHERE {{
  VALUES ?river {{ $e0 }}
  ?river ex:flowsThrough ?city .
}}
{examples}"""

#: Asks for a query, with the placeholders of `CYPHER_PROMPT`. The reply is read by `parse_sparql`.
SPARQL_PROMPT: ChatPromptTemplate = writing_prompt("SPARQL", _RULES, _EXAMPLES)

#: Asks once more after a query that cannot be run, with the placeholders of `REPAIR_PROMPT`.
SPARQL_REPAIR_PROMPT: ChatPromptTemplate = repairing_prompt("SPARQL", _RULES)

_FORM = QueryForm(
    "parse_sparql",
    "SPARQL",
    "SELECT",
    re.compile(
        r"""^[ \t>*`"]*(?i:sparql(?:[ ]query)?[ ]?:[ \t]*)?[`"]?(
            (?i:PREFIX\s+[\w-]*:\s*< | SELECT\s+(?:(?:DISTINCT|REDUCED)\s+)?[?(*] | ASK\s*\{)
          | (?:ASK|CONSTRUCT|DESCRIBE|INSERT|DELETE|LOAD|CLEAR|DROP|CREATE|BASE)\b )""",
        re.MULTILINE | re.VERBOSE,
    ),
    re.compile(
        r"\s*(?:(?:PREFIX|SELECT|WHERE|FILTER|OPTIONAL|UNION|VALUES|BIND|ORDER|GROUP|HAVING|LIMIT|OFFSET)\b|[^\w\s])",
        re.IGNORECASE,
    ),
)


def parse_sparql(reply: str) -> str:
    r"""Read the query from a model's reply to `SPARQL_PROMPT`, as `parse_cypher` does.

    Raises:
        CypherGenerationError: If there is no query.

    Example:
        >>> parse_sparql("Here it is:\n```sparql\nSELECT ?x { ?x a dbo:Film }\n```\nIt finds films.")
        'SELECT ?x { ?x a dbo:Film }'
    """
    return find_query(reply, _FORM)


def check_sparql(query: str, parameters: Mapping[str, Any], schema: SparqlSchema, *, shows_facts: bool) -> str:
    """Check that a query only reads and, if wanted, returns the three terms of a fact; return its text.

    Raises:
        SparqlSafetyError: If not.
    """
    from kg_retrievers.database.sparql.executor import fact_columns  # they need an extra
    from kg_retrievers.database.sparql.safety import check_read_only

    checked = check_read_only(query, parameters=parameters, namespaces=schema.vocabulary.names.namespaces)
    if shows_facts and not fact_columns(checked.columns):
        reason = ", which returns no fact: return the head, relation and tail of each AS ?h0 ?r0 ?t0, ?h1 ?r1 ?t1, ..."
        raise refusal(query, checked.tokens[0], reason)
    return query.strip()


def check_names(query: str, schema: SparqlSchema) -> None:
    """Check that a query names only relations and types of the endpoint, unless the schema is a sample.

    Raises:
        SparqlSafetyError: If it names another IRI, for which the endpoint would return nothing without an error.
    """
    if schema.sampled:  # there may be others
        return
    vocabulary = schema.vocabulary
    known = {*schema.relation_names, *schema.type_by_iri, *vocabulary.labels, *vocabulary.aliases, *vocabulary.types}
    tokens = tokenize(query)
    declared = {
        name.text[:-1]: iri.text[1:-1]
        for word, name, iri in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if word.word == "PREFIX"
    }
    namespaces = Prefixes({**vocabulary.prefixes, **declared})
    for at, token in enumerate(tokens):
        if _is_declared(tokens, at) or token.text.startswith("_:"):
            continue
        iri = token.text[1:-1] if token.kind == "iri" else namespaces.expand(token.text)
        if token.kind in ("iri", "prefixed") and iri not in known and not iri.startswith(WELL_KNOWN["xsd"]):
            raise refusal(query, token, ", which is no relation or type of the schema. What is named is a parameter")


def _is_declared(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a token stands in the declaration of a prefix."""
    return any(at >= back and tokens[at - back].word == "PREFIX" for back in (1, 2))


def shown_iri(iri: str, schema: SparqlSchema) -> str:
    """Return an IRI as a query can hold it: its prefixed name where SPARQL can write it so, else the whole."""
    name = schema.vocabulary.names.compact(iri)
    return as_data(name if re.fullmatch(r"[A-Za-z][\w-]*:[A-Za-z_][\w-]*", name, re.ASCII) else f"<{iri}>")


def relation_line(iri: str, schema: SparqlSchema) -> str:
    """Write a relation, with its name where that says more."""
    return f"?head {shown_iri(iri, schema)} ?tail{_called(schema.relation_of(iri), iri, schema)}"


def type_line(name: str, schema: SparqlSchema) -> str:
    """Write a type, with its name where that says more."""
    by, iri = schema.vocabulary.types[0], schema.type_iris[name]
    return f"?thing {shown_iri(by, schema)} {shown_iri(iri, schema)}{_called(name, iri, schema)}"


def _called(name: str, iri: str, schema: SparqlSchema) -> str:
    return "" if name == schema.vocabulary.names.compact(iri) else as_data(f", called {name!r}")
