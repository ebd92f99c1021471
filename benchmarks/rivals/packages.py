"""Rivals that are packages, each by its public API over the same facts, names and embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from benchmarks.rivals.contestants import MINILM, Contestant
from benchmarks.rivals.ground import LARGE, MOST_FACTS, FindFacts, Ground
from kg_retrievers import Triple
from kg_retrievers.graph.verbalize import relation_words


def llama_index(ground: Ground, embeddings: str = "static", top_k: int = 4, depth: int = 1) -> FindFacts:
    """`VectorContextRetriever` over a `SimplePropertyGraphStore`: the entities nearest in meaning, and their facts.

    The names of entities are embedded into a `SimpleVectorStore`, as `PropertyGraphIndex` does with `embed_kg_nodes`.
    """
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.graph_stores import SimplePropertyGraphStore
    from llama_index.core.graph_stores.types import EntityNode, Relation
    from llama_index.core.indices.property_graph import VectorContextRetriever
    from llama_index.core.schema import TextNode
    from llama_index.core.vector_stores import SimpleVectorStore

    class SameEmbedding(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            vector: list[float] = ground.embed(embeddings, [text])[0].tolist()
            return vector

        _get_query_embedding = _get_text_embedding

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    names = list(map(ground.name, ground.graph.entities))
    store, vectors = SimplePropertyGraphStore(), SimpleVectorStore()
    nodes = {name: EntityNode(name=name) for name in names}
    fact_of = {}
    for (head, relation, tail), fact in ground.by_names.items():
        fact_of[nodes[head].id, relation, nodes[tail].id] = fact
    store.upsert_nodes(list(nodes.values()))
    store.upsert_relations([Relation(label=label, source_id=one, target_id=other) for one, label, other in fact_of])
    vectors.add(
        [
            TextNode(id_=nodes[name].id, text=name, embedding=vector)
            for name, vector in zip(names, ground.embed(embeddings, names, keeps=True).tolist(), strict=True)
        ]
    )
    retriever = VectorContextRetriever(
        store,
        include_text=False,
        embed_model=SameEmbedding(),
        vector_store=vectors,
        similarity_top_k=top_k,
        path_depth=1 if len(ground.facts) > LARGE else depth,
        limit=MOST_FACTS,
    )

    def find(question: str) -> list[Triple]:
        texts = [found.node.get_content() for found in retriever.retrieve(question)]
        return [fact_of[parts] for text in texts if len(parts := tuple(text.split(" -> "))) == 3]

    return find


def langchain_graph_retriever(
    ground: Ground, embeddings: str = "static", start_k: int = 4, adjacent_k: int = 10, depth: int | None = None
) -> FindFacts:
    """`GraphRetriever` over an `InMemoryVectorStore`: facts are documents, adjacent if they share an entity.

    The strategy is its default, `Eager`. `adjacent_k` is the number of facts that each step adds.
    """
    from graph_retriever.strategies import Eager
    from langchain_core.documents import Document
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_graph_retriever import GraphRetriever

    store = InMemoryVectorStore(ground.embeddings(embeddings))
    ground_vectors = ground.fact_vectors(embeddings).tolist()
    for number, (text, vector) in enumerate(zip(ground.texts, ground_vectors, strict=True)):
        fact = ground.facts[number]
        metadata = {"ends": [fact.head, fact.tail]}
        store.store[str(number)] = {"id": str(number), "vector": vector, "text": text, "metadata": metadata}
    if len(ground.facts) > LARGE:
        depth = 1
    retriever = GraphRetriever(
        store=store,
        edges=[("ends", "ends")],
        strategy=Eager(select_k=MOST_FACTS, start_k=start_k, adjacent_k=adjacent_k, max_depth=depth),
    )

    def find(question: str) -> list[Triple]:
        found: Sequence[Document] = retriever.invoke(question)
        return [ground.facts[int(document.id or "")] for document in found]

    return find


def pyg(
    ground: Ground,
    embeddings: str = "static",
    topk: int = 3,
    topk_e: int = 5,
    cost_e: float = 0.5,
    around: int | None = None,
) -> FindFacts:
    """PyG's `retrieval_via_pcst`: the prize-collecting Steiner tree of G-Retriever's published code.

    Its order is that of the graph. A tree of one entity has no facts. `around` gives it only the facts within so many
    hops of the entities that our linker finds.
    """
    import pandas as pd
    import torch
    from torch_geometric.data import Data
    from torch_geometric.llm.utils.backend_utils import retrieval_via_pcst

    _check_pcst_fast()
    place = {key: position for position, key in enumerate(ground.graph.entities)}
    ends = np.array([[place[fact.head], place[fact.tail]] for fact in ground.facts]).T
    names = list(map(ground.name, ground.graph.entities))
    nodes = torch.from_numpy(ground.embed(embeddings, names, keeps=True))
    words = list(dict.fromkeys(map(relation_words, ground.facts)))
    relations = dict(zip(words, ground.embed(embeddings, words, keeps=True), strict=True))
    edges = torch.from_numpy(np.stack([relations[relation_words(fact)] for fact in ground.facts]))

    def part(positions: np.ndarray) -> tuple[Data, np.ndarray]:
        """Return the graph of some facts and the numbers of its entities."""
        kept, local = np.unique(ends[:, positions], return_inverse=True)
        data = Data(
            x=nodes[kept],
            edge_index=torch.from_numpy(local.reshape(2, -1)),
            edge_attr=edges[positions],
            node_idx=np.arange(len(kept)),
            edge_idx=positions,
        )
        return data, kept

    everything = part(np.arange(len(ground.facts)))

    def near(question: str) -> np.ndarray:
        reached, found = set(ground.link(question)), set[int]()
        for _ in range(around or 0):
            found |= {position for key in reached for position in ground.facts_of.get(key, ())}
            reached = {end for position in found for end in (ground.facts[position].head, ground.facts[position].tail)}
        return np.array(sorted(found), int)

    def find(question: str) -> list[Triple]:
        positions = near(question) if around else None
        if positions is not None and not len(positions):
            return []
        data, kept = everything if positions is None else part(positions)
        textual_nodes = pd.DataFrame({"node_id": kept, "node_attr": [names[at] for at in kept]})
        source, target = data.edge_index.numpy()
        textual_edges = pd.DataFrame({"src": source, "edge_attr": data.edge_idx, "dst": target})
        query = torch.from_numpy(ground.embed(embeddings, [question]))
        found, _ = retrieval_via_pcst(data, query, textual_nodes, textual_edges, topk, topk_e, cost_e)
        return [ground.facts[position] for position in np.asarray(found.edge_idx, int).ravel().tolist()]

    return find


def _check_pcst_fast() -> None:
    """Raise if the wheel of pcst-fast is the one that gives one number again and again under numpy 2."""
    from pcst_fast import pcst_fast

    nodes, _ = pcst_fast([[0, 1], [1, 2]], [3.0, 0.0, 3.0], [0.5, 0.5], -1, 1, "gw", 0)
    if sorted(nodes.tolist()) != [0, 1, 2]:
        raise RuntimeError(
            f"pcst-fast returned {nodes.tolist()} for the nodes of a path of 0, 1 and 2. "
            "Build it for this numpy: pip install --force-reinstall --no-deps --no-binary pcst-fast pcst-fast"
        )


def byokg(
    ground: Ground, embeddings: str = "static", hops: int = 2, ways: Literal["outgoing", "both"] = "outgoing"
) -> FindFacts:
    """BYOKG-RAG's `GraphScoringRetriever` over a `LocalKGStore`, without its model.

    Its own reranker is a model of the Hub, so that a `GReranker` of the same embeddings stands in for it. Traversal
    follows facts from head to tail; with `ways="both"` the store also holds each fact from its tail, as "... of".
    """
    from graphrag_toolkit.byokg_rag.graph_retrievers.graph_reranker import GReranker
    from graphrag_toolkit.byokg_rag.graph_retrievers.graph_retrievers import GraphScoringRetriever
    from graphrag_toolkit.byokg_rag.graph_retrievers.graph_traversal import GTraversal
    from graphrag_toolkit.byokg_rag.graph_retrievers.graph_verbalizer import TripletGVerbalizer
    from graphrag_toolkit.byokg_rag.graphstore import LocalKGStore

    class SameReranker(GReranker):
        def rerank_input_with_query(
            self, query: str, input: list[str], topk: int | None = None, return_scores: bool = False
        ) -> tuple[Any, ...]:
            texts = sorted(input)  # its sets have no order
            scores = ground.embed(embeddings, texts, keeps=True) @ ground.embed(embeddings, [query])[0]
            order = np.argsort(-scores, kind="stable")[:topk]
            kept = [texts[at] for at in order]
            return (kept, scores[order], order) if return_scores else (kept, order)

    graph: dict[str, dict[str, dict[str, list[tuple[str, str, str]]]]] = {}
    facts_of: dict[tuple[str, str], list[Triple]] = {}

    def add(one: str, relation: str, other: str, fact: Triple) -> None:
        graph.setdefault(one, {}).setdefault(relation, {"triplets": []})["triplets"].append((one, relation, other))
        facts_of.setdefault((one, relation), []).append(fact)

    for (head, relation, tail), fact in ground.by_names.items():
        add(head, relation, tail, fact)
        if ways == "both":
            add(tail, f"{relation} of", head, fact)
    separator = " -> "
    reranker, traversal = SameReranker(), GTraversal(LocalKGStore(graph))
    retriever = GraphScoringRetriever(traversal, TripletGVerbalizer(), reranker, reranker)

    def find(question: str) -> Iterable[Triple]:
        sources = [ground.name(key) for key in ground.link(question)]
        lines = retriever.retrieve(question, sources, hops=hops, topk=MOST_FACTS, max_num_triplets=MOST_FACTS)
        for line in lines:
            one, relation, others = line.split(separator, 2)
            tails = set(others.split(" | "))
            for fact in facts_of.get((one, relation), ()):
                if {ground.name(fact.head), ground.name(fact.tail)} & tails:
                    yield fact

    return find


_BUILT: dict[str, Contestant] = {
    "LlamaIndex VectorContextRetriever": Contestant(
        llama_index,
        {
            "top 4, depth 2 (large graphs: 1)": {"depth": 2},
            "top 4, depth 1 (default)": {},
            "top 10, depth 1": {"top_k": 10},
            "top 2, depth 1": {"top_k": 2},
        },
        ("llama-index-core",),
    ),
    "langchain-graph-retriever": Contestant(
        langchain_graph_retriever,
        {
            "start 4, adjacent 100, depth 2 (large graphs: 1)": {"adjacent_k": 100, "depth": 2},
            "start 4, adjacent 10, any depth (default)": {},
            "start 4, adjacent 100, depth 1": {"adjacent_k": 100, "depth": 1},
            "start 20, adjacent 100, depth 1": {"start_k": 20, "adjacent_k": 100, "depth": 1},
            "start 50, adjacent 200, depth 1": {"start_k": 50, "adjacent_k": 200, "depth": 1},
        },
        ("langchain-graph-retriever",),
    ),
    "PyG retrieval_via_pcst": Contestant(
        pyg,
        {
            "3 and 5, 2 hops around the entities": {"around": 2},
            "3 and 5, whole graph (default)": {},
            "10 and 5, whole graph": {"topk": 10},
            "10 and 5, 2 hops around the entities": {"around": 2, "topk": 10},
            "3 and 5, cost 0.1, 2 hops around the entities": {"around": 2, "cost_e": 0.1},
        },
        ("torch-geometric", "pcst-fast"),
        is_given_entities=True,
    ),
    "BYOKG-RAG GraphScoringRetriever": Contestant(
        byokg,
        {
            "2 hops, both ways": {"ways": "both"},
            "2 hops, outgoing (default)": {},
            "3 hops, outgoing": {"hops": 3},
            "3 hops, both ways": {"hops": 3, "ways": "both"},
            "1 hop, both ways": {"hops": 1, "ways": "both"},
        },
        ("graphrag-byokg",),
        is_given_entities=True,
    ),
}


def _with_minilm(contestant: Contestant) -> Contestant:
    return replace(
        contestant,
        build=partial(contestant.build, embeddings="minilm"),
        packages=(*contestant.packages, *MINILM),
    )


#: Each with the static embeddings of our index, and with MiniLM.
PACKAGES = {
    name + suffix: build(contestant)
    for name, contestant in _BUILT.items()
    for suffix, build in (("", lambda contestant: contestant), (", MiniLM", _with_minilm))
}
