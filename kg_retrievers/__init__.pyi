from .agents import Budget as Budget
from .agents import build_router as build_router
from .agents import build_workflow as build_workflow
from .agents import load_chat_model as load_chat_model
from .agents.explore import explore_agent as explore_agent
from .agents.middleware import KnowledgeGraphMiddleware as KnowledgeGraphMiddleware
from .agents.toolkit import KnowledgeGraphToolkit as KnowledgeGraphToolkit
from .bulk import LocalWorkers as LocalWorkers
from .bulk.ray_workers import RayWorkers as RayWorkers
from .chains import ExtractiveAnswerer as ExtractiveAnswerer
from .chains import LLMCitedAnswerer as LLMCitedAnswerer
from .chains import answer_chain as answer_chain
from .chains import cited_answer_chain as cited_answer_chain
from .chains import fact_verification_chain as fact_verification_chain
from .chains import llm_answerer as llm_answerer
from .core.documents import flat_metadata as flat_metadata
from .database.ladybug import LadybugExecutor as LadybugExecutor
from .database.neo4j import Neo4jExecutor as Neo4jExecutor
from .database.safety import check_read_only as check_read_only
from .database.sparql.executor import SparqlExecutor as SparqlExecutor
from .datasets import GraphQuestion as GraphQuestion
from .datasets import Question as Question
from .datasets import join_graphs as join_graphs
from .datasets import read_question_set as read_question_set
from .datasets import read_questions as read_questions
from .datasets import read_webqsp as read_webqsp
from .drawing import draw as draw
from .errors import KGRetrieversError as KGRetrieversError
from .evaluation import Report as Report
from .evaluation import compare as compare
from .evaluation import evaluate as evaluate
from .evaluation import unanswerable_questions as unanswerable_questions
from .explanation import explain as explain
from .explanation import why_not as why_not
from .graph import Evidence as Evidence
from .graph import KnowledgeGraph as KnowledgeGraph
from .graph import Known as Known
from .graph import Path as Path
from .graph import Pattern as Pattern
from .graph import Triple as Triple
from .graph import Unknown as Unknown
from .graph.readers.opening import Limits as Limits
from .index import EntityLinker as EntityLinker
from .index import GraphIndex as GraphIndex
from .index import HashedEmbeddings as HashedEmbeddings
from .index import StaticEmbeddings as StaticEmbeddings
from .index import default_embeddings as default_embeddings
from .index import local_embeddings as local_embeddings
from .llama_index import as_llama_index as as_llama_index
from .methods.g_retriever.graph_prompt.examples import GraphPromptExample as GraphPromptExample
from .methods.g_retriever.graph_prompt.examples import graph_prompt_examples as graph_prompt_examples
from .methods.g_retriever.graph_prompt.language_model import CausalLM as CausalLM
from .questions.llm import LLMPatternGenerator as LLMPatternGenerator
from .questions.reader import QuestionReader as QuestionReader
from .questions.reading import Reading as Reading
from .questions.self_questions.generate import generate_questions as generate_questions

# isort: split
# generated: stub
from .methods.g_retriever.graph_prompt.model import GraphPromptModel as GraphPromptModel
from .methods.g_retriever.graph_prompt.training import train_graph_prompt as train_graph_prompt
from .methods.g_retriever.retriever import PCSTRetriever as PCSTRetriever
from .methods.gnn_rag.model import GraphReasoner as GraphReasoner
from .methods.gnn_rag.retriever import GNNRAGRetriever as GNNRAGRetriever
from .methods.gnn_rag.training import train_graph_reasoner as train_graph_reasoner
from .methods.kaping.retriever import TripleSimilarityRetriever as TripleSimilarityRetriever
from .methods.neighborhood.retriever import NeighborhoodRetriever as NeighborhoodRetriever
from .methods.rog.retriever import RelationPathRetriever as RelationPathRetriever
from .methods.sg_rag.retriever import CypherRetriever as CypherRetriever
from .methods.simgrag.retriever import SimGRAGRetriever as SimGRAGRetriever
from .methods.subgraph_rag.model import TripleScorer as TripleScorer
from .methods.subgraph_rag.retriever import SubgraphRAGRetriever as SubgraphRAGRetriever
from .methods.subgraph_rag.training import train_triple_scorer as train_triple_scorer
from .methods.union.retriever import UnionRetriever as UnionRetriever

# end generated

__version__: str
