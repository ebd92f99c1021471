"""The bridge to LlamaIndex: any retriever as one of LlamaIndex's, and an agent's tools.

Written for llama-index-core 0.14 (extra `llama-index`). Importing this package imports all of LlamaIndex.
"""

from kg_retrievers.errors import MissingExtraError

try:
    import llama_index.core  # noqa: F401
except ImportError as cause:
    raise MissingExtraError("kg_retrievers.llama_index", "llama-index") from cause

from kg_retrievers.llama_index.retriever import LlamaIndexRetriever as LlamaIndexRetriever
from kg_retrievers.llama_index.retriever import as_llama_index as as_llama_index
from kg_retrievers.llama_index.tools import as_llama_index_tools as as_llama_index_tools
