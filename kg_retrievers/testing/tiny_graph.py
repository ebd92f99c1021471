"""A graph of a few facts about films that holds what trips retrievers up."""

from __future__ import annotations

from kg_retrievers.graph import KnowledgeGraph


def tiny_graph() -> KnowledgeGraph:
    """Return 16 facts about films.

    Names in several scripts, a key that is not the label, two films called "Dune", two relations between the same two
    entities, a film that contains itself, and a genre without facts.

    Example:
        >>> graph = tiny_graph()
        >>> [graph.label(triple.tail) for triple in graph.triples("Q155653", "directed_by")]
        ['宮崎駿']
    """
    return KnowledgeGraph.from_triples(
        [
            ("Amélie", "directed_by", "Jean-Pierre Jeunet"),
            ("Amélie", "starring", "Audrey Tautou"),
            ("Amélie", "starring", "Mathieu Kassovitz"),
            ("Amélie", "starring", "Dominique Pinon"),
            ("Alien Resurrection", "directed_by", "Jean-Pierre Jeunet"),
            ("Alien Resurrection", "starring", "Dominique Pinon"),
            ("Dune (1984)", "directed_by", "David Lynch"),
            ("Dune (2021)", "directed_by", "Denis Villeneuve"),
            ("Her", "directed_by", "Spike Jonze"),
            ("Her", "written_by", "Spike Jonze"),
            ("Adaptation", "directed_by", "Spike Jonze"),
            ("Adaptation", "written_by", "Charlie Kaufman"),
            ("Synecdoche, New York", "written_by", "Charlie Kaufman"),
            ("Synecdoche, New York", "contains", "Synecdoche, New York"),
            ("Q155653", "directed_by", "Q55400"),
            ("Q155653", "has_genre", "Фэнтези"),
        ],
        labels={
            "Dune (1984)": "Dune",
            "Dune (2021)": "Dune",
            "Q155653": "千と千尋の神隠し",
            "Q55400": "宮崎駿",
        },
        aliases={
            "Amélie": ["Le Fabuleux Destin d'Amélie Poulain"],
            "Q155653": ["Spirited Away"],
            "Q55400": ["Hayao Miyazaki", "Miyazaki Hayao"],
        },
        types={
            "Amélie": ["film"],
            "Dune (1984)": ["film"],
            "Dune (2021)": ["film"],
            "Her": ["film"],
            "Spike Jonze": ["person", "director"],
            "Q155653": ["film", "animated film"],
            "Q55400": ["person", "director"],
            "Western": ["genre"],
        },
    )
