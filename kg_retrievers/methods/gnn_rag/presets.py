"""The settings of GNN-RAG's paper, by name.

C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning. arXiv:2405.20139, and the
code published with it; the network is that of the same authors' ReaRev: Adaptive Reasoning for Question Answering over
Knowledge Graphs. Findings of EMNLP 2022, arXiv:2210.13650.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kg_retrievers.methods.gnn_rag.prompts import PROMPTS

#: Section 5: SBERT, in the published code this model, by its name on Hugging Face.
EMBEDDINGS = "all-MiniLM-L6-v2"

#: What `GNNRAGRetriever` takes.
RETRIEVAL: Mapping[str, Mapping[str, Any]] = {
    "paper": {
        "threshold": 0.95,  #: table 18: the default
        "include_crossing": True,  #: the published code
        "granularity": "path",  #: section 4.3: one line for each path
        "k": 1_000,  #: section 4.3: all paths; as many as `max_paths` allows
        "answer_prompt": PROMPTS["A"],  #: appendix E.4: prompt A, the default
    }
}

#: What `train_graph_reasoner` takes.
TRAINING: Mapping[str, Mapping[str, Any]] = {
    "paper": {
        "tokens": "states",  #: equation 3: the tokens of a language model
        "pooling": "first",  #: equations 3 and 4: [CLS] pooling of questions and relations
        "inverse": "words",  #: the published code: the words of inverse relations in reverse
        "relative": False,  #: section 4.1: the probabilities as they are
        "norms": False,  #: nothing of ours
        "gates": "own",  #: the published code: one for each instruction
        "mask_entities": False,  #: section 4.2: the question as it is
        "width": 50,  #: the published code, as those below
        "instructions": 3,  #: CWQ and MetaQA; 2 for WebQSP
        "layers": 3,  #: table 1, and the published code
        "stages": 2,  #: CWQ and MetaQA; 3 for WebQSP
        "max_nodes": 2_000,  #: appendix D: m = 2,000
        "batch_size": 8,
        "learning_rate": 5e-4,
        "constant_rate": True,
    }
}
