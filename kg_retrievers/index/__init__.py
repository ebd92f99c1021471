"""Find the parts of a graph that a text may mean.

The room holds embeddings, the search for nearest names, and entity linking.
"""

from kg_retrievers.algorithms.candidates import Candidates as Candidates
from kg_retrievers.index.ambiguity import Homonym as Homonym
from kg_retrievers.index.ambiguity import tell_apart as tell_apart
from kg_retrievers.index.connected_graph import PartRequest as PartRequest
from kg_retrievers.index.embeddings import EmbeddingCache as EmbeddingCache
from kg_retrievers.index.embeddings import HashedEmbeddings as HashedEmbeddings
from kg_retrievers.index.embeddings import SentenceTransformerEmbeddings as SentenceTransformerEmbeddings
from kg_retrievers.index.embeddings import embed as embed
from kg_retrievers.index.embeddings import embedding_name as embedding_name
from kg_retrievers.index.embeddings import local_embeddings as local_embeddings
from kg_retrievers.index.exact_search import ExactSearch as ExactSearch
from kg_retrievers.index.graph_index import GraphIndex as GraphIndex
from kg_retrievers.index.graph_index import check_at_hand as check_at_hand
from kg_retrievers.index.graph_index import check_index as check_index
from kg_retrievers.index.graph_index import check_same_embeddings as check_same_embeddings
from kg_retrievers.index.linking import MASK as MASK
from kg_retrievers.index.linking import EntityLinker as EntityLinker
from kg_retrievers.index.linking import QuestionEntity as QuestionEntity
from kg_retrievers.index.linking import find_name as find_name
from kg_retrievers.index.linking import link_question as link_question
from kg_retrievers.index.linking import linker_of as linker_of
from kg_retrievers.index.linking import mask as mask
from kg_retrievers.index.linking import question_entities as question_entities
from kg_retrievers.index.names import FUNCTION_WORDS as FUNCTION_WORDS
from kg_retrievers.index.names import LinkedEntity as LinkedEntity
from kg_retrievers.index.names import Mention as Mention
from kg_retrievers.index.server_names import ServerNames as ServerNames
from kg_retrievers.index.server_names import StoredName as StoredName
from kg_retrievers.index.server_names import load_names as load_names
from kg_retrievers.index.static_embeddings import StaticEmbeddings as StaticEmbeddings
from kg_retrievers.index.static_embeddings import default_embeddings as default_embeddings
from kg_retrievers.index.stores import open_store as open_store
from kg_retrievers.index.vector_store import VectorStoreSearch as VectorStoreSearch
