"""An agent that answers from a graph in RDF: a chat model with the tools of the toolkit."""

import asyncio
import os
from functools import cache
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel

from kg_retrievers import GraphIndex, KnowledgeGraph, KnowledgeGraphToolkit, default_embeddings, load_chat_model

GRAPH = Path(__file__).with_name("museums.ttl")
PROMPT = "Look facts up in the knowledge graph with the tools, cite their numbers, and say if there is no answer."


def build_agent(model: BaseChatModel, graph: str | Path = GRAPH) -> Any:
    """Return a LangGraph agent of a model that calls tools, over a file of RDF."""
    index = GraphIndex.build(KnowledgeGraph.from_file(graph), default_embeddings())
    return create_agent(model, KnowledgeGraphToolkit(index).get_tools(), system_prompt=PROMPT)


@cache
def built_once() -> Any:
    """Return the agent of the environment: MODEL as provider:model, and GRAPH as a file of RDF."""
    return build_agent(load_chat_model(os.environ["MODEL"]), os.environ.get("GRAPH", GRAPH))


async def agent() -> Any:
    """Return the agent to LangGraph's server, which allows no reading of files in its event loop."""
    return await asyncio.to_thread(built_once)
