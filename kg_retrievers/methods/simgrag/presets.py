"""The settings of the paper, as fields of the retriever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Appendix C.1, with the candidates that it takes on MetaQA.
PAPER: Mapping[str, Any] = {
    #: Appendix C.1; table 3 compares 1, 2 and 3.
    "k": 3,
    #: Appendix C.1: k(n) = k(r) = 16, k(t) = 16.
    "k_nodes": 16,
    "k_relations": 16,
    "k_types": 16,
    #: Appendix C.1: "all nodes with such similar types as the candidate nodes"; equation 3 has no term for them. MetaQA
    #: has no types.
    "node_types": "candidates",
    #: Definition 1: the mapping of nodes is one-to-one.
    "distinct": "nodes",
    #: Section 4.2: "we do not consider the edge direction".
    "direction": "ignore",
    #: Algorithm 1: each mapping is a subgraph of its own.
    "ties": "break",
    #: Section 4.1: a language model writes every pattern.
    "asks_model": "always",
    #: Appendix C.1; table 3 compares 4, 8 and 12.
    "shots": 12,
}

#: Appendix C.1: the candidates on FactKG's DBpedia, in place of those on MetaQA.
FACTKG: Mapping[str, Any] = {"k_nodes": 16_384, "k_relations": 512}

PRESETS: Mapping[str, Mapping[str, Any]] = {"paper": PAPER}
