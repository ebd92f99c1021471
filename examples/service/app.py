"""Answers questions over HTTP about a graph that stays in Neo4j, or in another database that speaks Bolt."""

import os
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from kg_retrievers import GraphIndex, KGRetriever, Neo4jExecutor, cited_answer_chain, default_embeddings
from kg_retrievers.errors import DatabaseError


class Answer(BaseModel):
    """An answer with the facts behind it, or the reason for none."""

    answers: list[str]
    value: Any = None
    facts: list[tuple[str, str, str]]
    explanation: str


def create_app(executor: Any) -> FastAPI:
    """Return a service over the database of an executor, which only reads."""
    index = GraphIndex.connect(executor, default_embeddings())
    chain = cited_answer_chain(KGRetriever.from_index(index))
    app = FastAPI(title="Ask the graph")

    @app.get("/ask")
    async def ask(question: Annotated[str, Query(pattern=r"\S", max_length=2000)]) -> Answer:
        cited = await chain.ainvoke(question)
        facts = [citation["triple"] for citation in cited["citations"]]
        return Answer(**{**cited, "facts": facts})

    @app.exception_handler(DatabaseError)
    async def database_failed(request: Request, error: DatabaseError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, status_code=503)

    return app


def from_environment() -> FastAPI:
    """Return the service over the database at NEO4J_URI, with NEO4J_USERNAME and NEO4J_PASSWORD."""
    return create_app(Neo4jExecutor(os.environ["NEO4J_URI"], key=None))
