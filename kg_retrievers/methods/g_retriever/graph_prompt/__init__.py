"""The graph as a soft prompt of a language model, trained and served: G-Retriever's generator."""

from kg_retrievers.methods.g_retriever.graph_prompt.config import GraphPromptConfig
from kg_retrievers.methods.g_retriever.graph_prompt.examples import GraphPromptExample, graph_prompt_examples
from kg_retrievers.methods.g_retriever.graph_prompt.language_model import CausalLM
from kg_retrievers.methods.g_retriever.graph_prompt.model import GraphPromptModel
from kg_retrievers.methods.g_retriever.graph_prompt.training import GraphPromptTraining, train_graph_prompt

__all__ = [
    "CausalLM",
    "GraphPromptConfig",
    "GraphPromptExample",
    "GraphPromptModel",
    "GraphPromptTraining",
    "graph_prompt_examples",
    "train_graph_prompt",
]
