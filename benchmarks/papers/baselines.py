"""The retrievers that the papers compare their methods with.

"Rand", "RandNoAns", "NoRetriever" and PPR: M. Li, S. Miao, P. Li, ICLR 2025, arXiv:2410.20724, section 4.1 and table 9.
"Dense Subgraph", and the paths of two retrievers together: C. Mavromatis, G. Karypis, arXiv:2405.20139, table 5 and
section 4.5. "RAG (Generated Docs)": A. Saleh, G. Tür,
Y. Saygın, ICNLSP 2024, tables 5 and 6.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from pydantic import Field

from kg_retrievers.algorithms.pagerank import personalized_pagerank
from kg_retrievers.core.documents import DocumentStyle, evidence_of
from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.replies import MAX_REPLY, marked_answers, without_reasoning
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import MAX_K, Body, Call, RetrievalState, Stage, Steps
from kg_retrievers.datasets import Question
from kg_retrievers.graph import Evidence, Triple
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.embeddings import embed
from kg_retrievers.methods.registry import Method

#: As many triples as SubgraphRAG retrieves.
K = 100

_ALONE = """\
Answer the question from what you know.

Rules
1. If there are several answers, give all of them, separated by semicolons.
2. Give names and values alone, without a sentence around them.
3. If you do not know the answer, write only: not available

Question: {question}
Answer:"""

_STEP_BY_STEP = """\
Answer the question from what you know.

Rules
1. Think step by step, and write the steps down.
2. End with one line that begins with "Answer:" and holds the answer alone, names and values without a sentence around \
them. If there are several answers, give all of them, separated by semicolons.
3. If you do not know the answer, end with the line "Answer: not available".

Question: {question}
Steps:"""


class Baseline(BaseNeighborhoodRetriever):
    """A baseline: it links the entities of a question, then finds evidence in one step."""

    suits: ClassVar[frozenset[str]] = frozenset()
    proposes_answers: ClassVar[bool] = False
    links: ClassVar[bool] = True

    #: The number of Documents.
    k: int = Field(default=K, ge=1, le=MAX_K)
    #: What one Document holds.
    granularity: Literal["subgraph", "triple"] = "triple"
    #: How the facts of a Document are written.
    style: DocumentStyle = "triples"

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Link the entities unless the whole graph is searched, then find evidence."""
        find = Stage("find_evidence", RunnableLambda(self.find_evidence), ("answers", "documents"))
        if not self.links or self.scope == "graph":
            return (find,)
        return Stage("link_entities", RunnableLambda(self.link_entities), ("seed_entities",)), find

    def find_evidence(self, state: RetrievalState) -> dict[str, Any]:
        """Run the stage that writes the Documents."""
        evidence = self.evidence(state)
        documents = self.documents_from(evidence, state["k"], state["question"]) if evidence else []
        return {"answers": [], "documents": documents}

    def evidence(self, state: Mapping[str, Any]) -> list[Evidence]:
        """Return the evidence, best first."""
        raise NotImplementedError

    def of_triples(self, state: Mapping[str, Any], found: Iterable[tuple[Any, float]], cut: bool) -> list[Evidence]:
        """Return evidence of ids of triples with their scores."""
        details = self.named(state.get("seed_entities") or [])
        return [
            Evidence(tuple(self.facts_of(ids)), score, truncated=cut, details=details)
            for ids, score in islice(found, state["k"])
        ]


class JoinedRetriever(BaseKGRetriever):
    """Gives all that several retrievers find, without a rank: GNN-RAG+RA is GNN-RAG and relation paths."""

    suits: ClassVar[frozenset[str]] = frozenset()

    #: The retrievers, on one graph.
    retrievers: tuple[BaseKGRetriever, ...]
    #: The number of Documents.
    k: int = Field(default=MAX_K, ge=1, le=MAX_K)

    @classmethod
    def of(cls, first: BaseKGRetriever, *others: BaseKGRetriever) -> Self:
        """Join retrievers; the first says how facts are written and a language model is asked."""
        taken = {name: getattr(first, name) for name in ("answer_prompt", "parse_answers", "style")}
        return cls(first.index, retrievers=(first, *others), **taken)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Ask one after the other."""
        calls_model = any(stage.calls_model for one in self.retrievers for stage in one.stages)
        return (Stage("retrieve", Steps(self._retrieve), ("answers", "documents"), calls_model),)

    def _retrieve(self, state: RetrievalState) -> Body[dict[str, Any]]:
        """Run the stage that writes `answers` and `documents`."""
        seeds = {"seed_entities": state["seed_entities"]} if state.get("seed_entities") else {}
        documents: list[Document] = []
        for one in self.retrievers:
            documents += yield Call(one.bind(on_refusal="empty", **seeds), state["question"])
        return self.results(state, joined(documents))


def joined(documents: Iterable[Document]) -> list[Evidence]:
    """Return the evidence of Documents, each set of facts once, with all answers that are proposed for it."""
    found: dict[frozenset[Triple], Evidence] = {}
    for evidence in (evidence_of(document.metadata) for document in documents):
        facts = frozenset(evidence.triples)
        held = found.get(facts, evidence)
        found[facts] = replace(held, score=1.0, answers=tuple(dict.fromkeys([*held.answers, *evidence.answers])))
    return list(found.values())


def last_line_answers(reply: str) -> list[str]:
    r"""Read the answers from the last line of a reply, after a chain of thought; behind "Answer:" if it has that.

    Example:
        >>> last_line_answers("Rusalka is an opera.\nAnswer: Dvořák wrote Armida, too.\nAnswer: Antonín Dvořák")
        ['Antonín Dvořák']
    """
    filled = [line for line in without_reasoning(reply)[:MAX_REPLY].split("\n") if line.strip()]
    return marked_answers(filled[-1]) if filled else []


class ClosedBookRetriever(Baseline):
    """Finds nothing, so that a language model answers from its memory; see `closed_book_answerer`."""

    links: ClassVar[bool] = False
    #: Whether the model thinks step by step before it answers.
    chain_of_thought: bool = False

    def evidence(self, state: Mapping[str, Any]) -> list[Evidence]:
        """Return nothing."""
        return []

    def answerer(self, llm: BaseLanguageModel[Any]) -> RunnableLambda[Any, list[str]]:
        """Return an answerer that asks a language model the question alone."""
        prompt = ChatPromptTemplate.from_messages([("human", _STEP_BY_STEP if self.chain_of_thought else _ALONE)])
        parse: Callable[[str], list[str]] = last_line_answers if self.chain_of_thought else marked_answers
        ask = prompt | llm | StrOutputParser() | RunnableLambda(parse)
        answerer = RunnableLambda(lambda value, config: ask.invoke({"question": value["question"]}, config))
        answerer.decides_without_evidence = True  # type: ignore[attr-defined]
        return answerer


class RandomTripleState(RetrievalState, total=False):
    """The state of the stages."""

    #: The entities whose triples are left out: the gold answers.
    left_out: Annotated[list[str], Field(description="a list of keys of entities")]


class RandomTripleRetriever(Baseline):
    """Returns triples around the question's entities, in an order that `seed`, question and triple determine."""

    state_class: ClassVar[type] = RandomTripleState
    entity_inputs: ClassVar[frozenset[str]] = frozenset({"left_out"})

    #: Of the draw.
    seed: int = 0
    #: Whether drawn triples that hold a gold answer are left out.
    without_answers: bool = False

    def inputs_for(self, question: Question) -> dict[str, Any]:
        """Return its entities and, if answers are left out, these."""
        left_out = {"left_out": list(question.answers)} if self.without_answers else {}
        return super().inputs_for(question) | left_out

    def evidence(self, state: Mapping[str, Any]) -> list[Evidence]:
        """Draw triples."""
        triples, cut = self.triples_in_scope(state.get("seed_entities") or [])
        numbers = {triple: self._number(state["question"], triple) for triple in self.facts_of(triples)}
        order = sorted(numbers, key=lambda triple: (-numbers[triple], triple))
        left_out, details = set(state.get("left_out") or ()), self.named(state.get("seed_entities") or [])
        return [
            Evidence((triple,), numbers[triple], truncated=cut, details=details)
            for triple in order[: state["k"]]
            if not left_out & {triple.head, triple.tail}
        ]

    def _number(self, question: str, triple: Triple) -> float:
        text = json.dumps([self.seed, question, *triple])
        return (int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 11) / 2**53


class PageRankRetriever(Baseline):
    """Returns the triples whose two ends have the highest personalized PageRank."""

    #: The probability that the walk returns to the question's entities: 1 less the damping factor of NetworkX.
    restart: float = Field(default=0.15, gt=0, lt=1)

    def evidence(self, state: Mapping[str, Any]) -> list[Evidence]:
        """Rank triples."""
        triples, cut = self.triples_in_scope(state["seed_entities"])
        ranks = personalized_pagerank(
            self.graph.adjacency, self.entity_ids(state["seed_entities"]), restart=self.restart
        )
        heads, tails = self.graph.edges[triples][:, [0, 2]].T
        scores = (ranks[heads] + ranks[tails]) / 2
        order = np.argsort(-scores, kind="stable")
        return self.of_triples(state, ((triples[[one]], float(scores[one])) for one in order), cut)


class DenseSubgraphRetriever(Baseline):
    """Returns all facts between the entities around those of the question, as a graph network reads them."""

    #: What one Document holds.
    granularity: Literal["subgraph", "triple"] = "subgraph"

    def evidence(self, state: Mapping[str, Any]) -> list[Evidence]:
        """Take the subgraph."""
        around = self.neighborhood(state["seed_entities"])
        hops_of_node = np.full(len(self.graph.entities), self.max_hops, np.int64)
        hops_of_node[around.nodes] = around.hops
        triples, cut = around.triples, around.truncated
        hops = 1 + hops_of_node[self.graph.edges[triples][:, [0, 2]]].min(axis=1)
        order = np.argsort(hops, kind="stable")
        triples, hops = triples[order], hops[order]
        if self.granularity == "subgraph":
            return self.of_triples(state, [(triples, 1.0)] if len(triples) else [], cut)
        return self.of_triples(state, ((triples[hops == hop], 1 / hop) for hop in np.unique(hops).tolist()), cut)


class Passage(NamedTuple):
    """The ids of triples, and a text that says them."""

    triples: list[int]
    text: str


class PassageRetriever(Baseline):
    """Returns the passages nearest to the question, of texts on each entity that a rule makes from the graph."""

    #: "graph": the text of all of the graph.
    scope: Literal["neighborhood", "graph"] = "graph"
    #: The number of Documents, each a passage; the paper tries 1, 2 and 3.
    k: int = Field(default=3, ge=1, le=MAX_K)
    #: What one Document holds.
    granularity: Literal["subgraph", "triple"] = "subgraph"
    #: The most words of a passage.
    max_words: int = Field(default=100, ge=1)

    def find_evidence(self, state: RetrievalState) -> dict[str, Any]:
        """Rank passages, and show their texts."""
        if self.scope == "graph":
            every = range(len(self.graph.entities))
            passages, vectors = self._cache.get("passages", (self.graph,), lambda: self._embedded(every))
        else:
            near = self.neighborhood(state.get("seed_entities") or []).nodes.tolist()
            passages, vectors = self._embedded(near)
        if not passages:
            return {"answers": [], "documents": []}
        direction = self.index.embed([state["question"]])[0].astype(np.float64)
        scores = (vectors.astype(np.float64) @ direction).round(5)
        best = np.argsort(-scores, kind="stable")[: state["k"]].tolist()
        found = ((np.array(passages[one].triples), float(scores[one])) for one in best)
        documents = self.documents_from(self.of_triples(state, found, False), state["k"], state["question"])
        for document, one in zip(documents, best, strict=True):
            document.page_content = passages[one].text
        return {"answers": [], "documents": documents}

    def _embedded(self, entities: Iterable[int]) -> tuple[list[Passage], Any]:
        passages: dict[tuple[int, ...], Passage] = {}
        for entity in entities:
            for passage in self._passages(entity):
                passages.setdefault(tuple(sorted(passage.triples)), passage)
        kept = list(passages.values())
        return kept, embed(self.index.embeddings, [passage.text for passage in kept])

    def _passages(self, entity: int) -> list[Passage]:
        """Return the text on an entity, cut between sentences."""
        graph = self.graph
        ids = np.unique(graph.adjacency.row_triples(entity))
        passages: list[Passage] = []
        room = 0
        for triple, (head, relation, tail) in zip(ids.tolist(), self.facts_of(ids), strict=True):
            sentence = f"{graph.label(head)} {readable(relation)} {graph.label(tail)}."
            words = len(sentence.split())
            if words > room:
                passages.append(Passage([], ""))
                room = self.max_words
            last = passages.pop()
            passages.append(Passage([*last.triples, triple], f"{last.text} {sentence}".lstrip()))
            room -= words
        return passages


#: The baselines as entries, like those of the registry.
BASELINES = tuple(
    Method(name=name, retriever=f"{__name__}:{kind.__name__}", finds=str(kind.__doc__), paper="")
    for name, kind in {
        "none": ClosedBookRetriever,
        "random": RandomTripleRetriever,
        "pagerank": PageRankRetriever,
        "passages": PassageRetriever,
        "dense-subgraph": DenseSubgraphRetriever,
    }.items()
)
