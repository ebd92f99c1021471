"""What text finds in a graph: embeddings, nearest names, entity linking."""

from kg_retrievers.algorithms.candidates import Candidates
from kg_retrievers.index.ambiguity import Homonym, tell_apart
from kg_retrievers.index.connected_graph import PartRequest
from kg_retrievers.index.embeddings import (
    EmbeddingCache,
    HashedEmbeddings,
    SentenceTransformerEmbeddings,
    embed,
    embedding_name,
    local_embeddings,
)
from kg_retrievers.index.exact_search import ExactSearch
from kg_retrievers.index.graph_index import GraphIndex, check_at_hand, check_index, check_same_embeddings
from kg_retrievers.index.linking import (
    MASK,
    EntityLinker,
    QuestionEntity,
    find_name,
    link_question,
    linker_of,
    mask,
    question_entities,
)
from kg_retrievers.index.names import FUNCTION_WORDS, LinkedEntity, Mention
from kg_retrievers.index.server_names import ServerNames, StoredName, load_names
from kg_retrievers.index.static_embeddings import StaticEmbeddings, default_embeddings
from kg_retrievers.index.stores import open_store
from kg_retrievers.index.vector_store import VectorStoreSearch

__all__ = [
    "FUNCTION_WORDS",
    "MASK",
    "Candidates",
    "EmbeddingCache",
    "EntityLinker",
    "ExactSearch",
    "GraphIndex",
    "HashedEmbeddings",
    "Homonym",
    "LinkedEntity",
    "Mention",
    "PartRequest",
    "QuestionEntity",
    "SentenceTransformerEmbeddings",
    "ServerNames",
    "StaticEmbeddings",
    "StoredName",
    "VectorStoreSearch",
    "check_at_hand",
    "check_index",
    "check_same_embeddings",
    "default_embeddings",
    "embed",
    "embedding_name",
    "find_name",
    "link_question",
    "linker_of",
    "load_names",
    "local_embeddings",
    "mask",
    "open_store",
    "question_entities",
    "tell_apart",
]
