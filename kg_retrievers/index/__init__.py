"""What text finds in a graph: embeddings, nearest names, entity linking."""

from kg_retrievers.index.embeddings import (
    EmbeddingCache,
    HashedEmbeddings,
    SentenceTransformerEmbeddings,
    embed,
    embedding_name,
    local_embeddings,
)
from kg_retrievers.index.graph_index import EXACT_NAME_MARGIN, Candidates, GraphIndex
from kg_retrievers.index.vector_store import ExactSearch, NameSearch, VectorStoreSearch
