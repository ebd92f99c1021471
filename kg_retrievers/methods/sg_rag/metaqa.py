"""MetaQA as SG-RAG reads it: the labels of its entities (table 2), and a Cypher template for each of its categories."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from kg_retrievers.datasets import Question
from kg_retrievers.datasets.metaqa import RELATIONS
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import find_name
from kg_retrievers.methods.sg_rag.hand_written import CypherTemplate

#: The label of the head of every fact.
MOVIE = "Movie"

#: Table 2: the label of the tail of a fact, by its relation.
TAIL_LABELS = {
    "directed_by": "People",
    "written_by": "People",
    "starred_actors": "People",
    "in_language": "Language",
    "release_year": "Year",
    "has_genre": "Genre",
    "has_tags": "Tag",
    "has_imdb_votes": "Vote",
    "has_imdb_rating": "Rate",
}


def label_metaqa(graph: KnowledgeGraph) -> KnowledgeGraph:
    """Return the graph of MetaQA with the labels of table 2 as types; an entity may have several.

    Args:
        graph: That of `kb.txt`, whose entities have keys alone.

    Raises:
        InvalidArgumentError: If it has other relations.

    Example:
        >>> graph = label_metaqa(KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")]))
        >>> graph.types_of("Her"), graph.types_of("Spike Jonze")
        (['Movie'], ['People'])
    """
    if strange := [relation for relation in graph.relations if relation not in TAIL_LABELS]:
        raise InvalidArgumentError(
            f"label_metaqa: MetaQA has no relation {strange[0]!r:.100}; its relations are {sorted(TAIL_LABELS)}."
        )
    types: dict[str, dict[str, None]] = {}
    triples = list(graph.triples())
    for head, relation, tail in triples:
        types.setdefault(head, {})[MOVIE] = None
        types.setdefault(tail, {})[TAIL_LABELS[relation]] = None
    return KnowledgeGraph.from_triples(triples, types={key: list(labels) for key, labels in types.items()})


def metaqa_templates(questions: Sequence[Question]) -> list[CypherTemplate]:
    """Return a template for each category among questions of MetaQA, with their words (section 5.3 and table 3).

    Args:
        questions: Questions with `kind`, such as "writer_to_movie_to_genre", and the entity that they name; those of
            the training split, so that no question is measured by its own words.

    Raises:
        InvalidArgumentError: If a question has no category or does not name its entity.

    Example:
        >>> question = Question("who directed Her", ("Her",), kind="movie_to_director")
        >>> print(metaqa_templates([question])[0].query)
        MATCH (n0:Movie)-[r1:DIRECTED_BY]->(n1:People)
        WHERE n0.name="<entity>"
        RETURN n0, r1, n1
    """
    words: dict[str, dict[str, None]] = {}
    for question in questions:
        topic = question.seed_entities[0] if question.seed_entities else ""
        span = find_name(topic, question.text) if topic else None
        if not question.kind or span is None:
            raise InvalidArgumentError(
                f"metaqa_templates: {question.text!r:.200} has no category, or does not name its entity. Read "
                "questions with their types: read_metaqa(folder, hop)."
            )
        text = f"{question.text[: span[0]]}<entity>{question.text[span[1] :]}"
        words.setdefault(question.kind, {})[text] = None
    return [CypherTemplate(category_query(kind), tuple(texts)) for kind, texts in sorted(words.items())]


def category_query(kind: str) -> str:
    """Return the Cypher of a category of questions, as table 3 writes it."""
    steps = kind.split("_to_")
    labels = [MOVIE if step == "movie" else TAIL_LABELS[RELATIONS[step]] for step in steps]
    path, returned = f"(n0:{labels[0]})", ["n0"]
    for hop, (here, there) in enumerate(pairwise(steps), 1):
        forward = here == "movie"
        type = RELATIONS[there if forward else here].upper()
        arrow = f"-[r{hop}:{type}]->" if forward else f"<-[r{hop}:{type}]-"
        path += f"{arrow}(n{hop}:{labels[hop]})"
        returned += [f"r{hop}", f"n{hop}"]
    return f'MATCH {path}\nWHERE n0.name="<entity>"\nRETURN {", ".join(returned)}'
