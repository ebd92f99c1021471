"""Tools of LangChain as tools of LlamaIndex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.tools import BaseTool
from llama_index.core.tools import FunctionTool

from kg_retrievers.errors import named_arguments


@named_arguments
def as_llama_index_tools(tools: Sequence[BaseTool]) -> list[FunctionTool]:
    r"""Return tools for LlamaIndex's agents with the same names, arguments and messages.

    Args:
        tools: Such as `KnowledgeGraphToolkit(index).get_tools()`.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, KnowledgeGraphToolkit, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
        >>> toolkit = KnowledgeGraphToolkit(GraphIndex.build(graph, default_embeddings()))
        >>> tools = {tool.metadata.name: tool for tool in as_llama_index_tools(toolkit.get_tools())}
        >>> print(tools["facts"].call(entity="Her").content.split("\n")[3])
        Her -> directed by -> Spike Jonze
    """
    return [_function_tool(tool) for tool in tools]


def _function_tool(tool: BaseTool) -> FunctionTool:
    schema: Any = tool.args_schema

    def named(values: tuple[Any, ...], arguments: dict[str, Any]) -> dict[str, Any]:
        names = [*schema.model_fields, *(f"argument {number}" for number in range(len(values)))]
        return {**dict(zip(names, values, strict=False)), **arguments}

    def call(*values: Any, **arguments: Any) -> str:
        return str(tool.invoke(named(values, arguments)))

    async def acall(*values: Any, **arguments: Any) -> str:
        return str(await tool.ainvoke(named(values, arguments)))

    return FunctionTool.from_defaults(
        call, name=tool.name, description=tool.description, fn_schema=schema, async_fn=acall
    )
