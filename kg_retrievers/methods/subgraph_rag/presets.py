"""The settings of SubgraphRAG's paper, by name.

M. Li, S. Miao, P. Li: Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation. ICLR 2025, arXiv:2410.20724, and the code published with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kg_retrievers.methods.subgraph_rag.dialogue_prompt import DIALOGUE_PROMPT

#: Section 4.1: the model that embeds questions, entities and relations, by its name on Hugging Face. It brings code of
#: its own: `local_embeddings(EMBEDDINGS, trust_remote_code=True)` runs that code.
EMBEDDINGS = "Alibaba-NLP/gte-large-en-v1.5"

#: What `SubgraphRAGRetriever` takes.
RETRIEVAL: Mapping[str, Mapping[str, Any]] = {
    "paper": {
        "k": 100,  #: section 4.1: recall and prompts with the first 100 triples; 200 and 500 for larger models
        "granularity": "triple",  #: section 3.2: a list of triples
        "max_triples": 100,
        "style": "triples",
        "answer_prompt": DIALOGUE_PROMPT,  #: figure 6: system, one example of 30 triples, question
    }
}

#: What `train_triple_scorer` takes.
TRAINING: Mapping[str, Mapping[str, Any]] = {
    "paper": {
        "topic": "pair",  #: section 3.1: a one-hot encoding of being a topic entity or not
        "directed": True,  #: section 3.1: along the triples, and against them
        "rounds": 2,  #: the published configuration
        "reverse_rounds": 2,
        "hops": 0,  #: nothing of ours
        "hidden": 1024,  #: the published code: as wide as the vectors of `EMBEDDINGS`
        "mask_entities": False,  #: section 3.1: the question as it is
        "supervision": "directed",  #: the published code: paths follow their triples
        "loss": "binary",  #: equation 2, factorised
        "sampled": False,  #: equation 2: all triples
        "max_nodes": None,  #: appendix B.1: all that is within some hops
        "batch_size": 1,  #: the published configuration, as the two below
        "learning_rate": 1e-3,
        "constant_rate": True,
    }
}
