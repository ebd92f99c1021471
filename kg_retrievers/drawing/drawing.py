"""Evidence as a picture: a page, SVG, Mermaid, DOT, and a graph of networkx.

Every text is data: it is escaped as each format wants it, and nodes are called n0, n1, ..., never by their names.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, ClassVar

import networkx as nx
from pydantic import Field

from kg_retrievers.drawing.html_page import cut, described, html_page, page_data
from kg_retrievers.drawing.picture import COLORS, INK, Box, Role, clean_line, cut_short, svg_picture
from kg_retrievers.errors import InvalidArgumentError, named_arguments
from kg_retrievers.file_writing import write_file
from kg_retrievers.graph.types import Triple
from kg_retrievers.graph.validation import checked_dataclass
from kg_retrievers.graph.verbalize import HoldsFacts, are_texts, each_of, facts_of, lone_entities_of, readable

#: How many triples a picture shows by default. More can hardly be read.
MAX_TRIPLES = 100

#: Mermaid takes labels for Markdown and HTML: only letters, digits, blanks, commas and inner hyphens are not coded.
_MERMAID = re.compile(r"[^\w ,-]|_|(?<!\w)-|-(?!\w)")


@dataclass(frozen=True, repr=False)
class Drawing:
    """A small graph to look at, made by `draw`. A notebook shows it as it is.

    Args:
        triples: The facts drawn, each once, in stored direction.
        labels: The label of each entity drawn, by key, in order of first occurrence.
        answers: The keys to mark as answers.
        known: The keys to mark as known. A key that is both is marked as an answer.
        left_out: How many triples are not drawn. Every picture says so.
        documents: The evidence, as metadata of Documents. A page shows it.
    """

    triples: tuple[Triple, ...]
    labels: Mapping[str, str]
    answers: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    left_out: int = 0
    documents: tuple[Mapping[str, Any], ...] = ()

    def __repr__(self) -> str:
        """Sizes only."""
        return f"Drawing(entities={len(self.labels)}, triples={len(self.triples)}, left_out={self.left_out})"

    def to_mermaid(self) -> str:
        """Return a Mermaid flowchart.

        Characters that may be taken for markup are coded, such as "(" as `#40;`. Long names are cut here: Mermaid has
        no tooltips without links.
        """
        entities, relations = self.boxes()
        lines = ["flowchart LR"]
        for number, box in enumerate(entities):
            lines.append(f'n{number}["{_mermaid(box.shown)}"]' + (f":::{box.role}" if box.role != "other" else ""))
        for (head, tail), box in zip(self.ends(), relations, strict=True):
            lines.append(f'n{head} -->|"{_mermaid(box.shown)}"| n{tail}')
        if self._notice:
            lines.append(f'note["{self._notice}"]')
        for role in self._marks():
            fill, outline = COLORS[role]
            lines.append(f"classDef {role} fill:{fill},stroke:{outline},color:{INK}")
        return "\n    ".join(lines) + "\n"

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Return the drawing for networkx, with entity keys as nodes and relations as edge keys.

        The form is the one of `KnowledgeGraph.to_networkx`. Nodes have "label" and "role" ("answer", "known" or
        "other"), the graph has "left_out".
        """
        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(left_out=self.left_out)
        for key, label in self.labels.items():
            graph.add_node(key, label=label, role=self._role(key))
        for head, relation, tail in self.triples:
            graph.add_edge(head, tail, key=relation, relation=relation)
        return graph

    def _repr_html_(self) -> str:
        """Return the picture as an image: notebooks that are not trusted yet show no SVG within HTML."""
        data = b64encode(self.to_svg().encode()).decode()
        return f'<img alt="{escape(repr(self))}" src="data:image/svg+xml;base64,{data}">'

    def to_svg(self) -> str:
        """Return one SVG that needs nothing else: no script, no style sheet, no address."""
        below = [(COLORS[role][1], f"■ {role}") for role in self._marks()]
        below += [(INK, self._notice)] if self._notice else []
        return svg_picture(*self.boxes(), self.ends(), below, repr(self))

    def _role(self, key: str) -> Role:
        return "answer" if key in self.answers else "known" if key in self.known else "other"

    def _marks(self) -> list[Role]:
        """Return the roles that are marked and occur."""
        roles = {self._role(key) for key in self.labels}
        return [role for role in COLORS if role in roles and role != "other"]

    @property
    def _notice(self) -> str:
        """The sentence that the picture must show, if any."""
        if self.left_out:
            return f"{self.left_out} more {'triple' if self.left_out == 1 else 'triples'} left out"
        return "" if self.triples else "no triples"

    def to_html(self, *, title: str | None = None) -> str:
        """Return a page to look at, to search and to print: one file that loads nothing else.

        Args:
            title: The heading, such as the question. None takes "Evidence".
        """
        return html_page(self.page_data(), cut(title or "Evidence"))

    def save(self, path: str | Path, *, title: str | None = None) -> None:
        """Write the drawing to a file.

        Args:
            path: The file. Its ending chooses the format: ".html" a page, ".svg" a picture, ".mmd" Mermaid.
            title: The heading of a page.

        Raises:
            InvalidArgumentError: If the ending is another one.
            FileWriteError: If the file cannot be written.
        """
        writers: dict[str, Callable[[], str]] = {
            ".html": lambda: self.to_html(title=title),
            ".svg": self.to_svg,
            ".mmd": self.to_mermaid,
        }
        ending = Path(path).suffix.lower()
        if ending not in writers:
            raise InvalidArgumentError(
                f'Drawing.save: the file must end in one of {", ".join(writers)}, but got "{path}".'
            )
        write_file(path, writers[ending]())

    def page_data(self) -> dict[str, Any]:
        """Return the data of a page, JSON-safe: nodes and edges with their sizes, Documents, answers."""
        return page_data(self.triples, self.labels, *self.boxes(), self.ends(), self.documents, self.left_out)

    def boxes(self) -> tuple[list[Box], list[Box]]:
        """Return the boxes of the entities and of the relations."""
        named = [(key, clean_line(key), clean_line(label)) for key, label in self.labels.items()]
        return [
            Box(self._role(key), cut_short(label), label if label == whole else f"{label}\n{whole}")
            for key, whole, label in named
        ], [Box("relation", cut_short(clean_line(readable(name))), clean_line(name)) for _, name, _ in self.triples]

    def ends(self) -> list[tuple[int, int]]:
        """Return for each triple the positions of its head and tail in `labels`."""
        positions = {key: position for position, key in enumerate(self.labels)}
        return [(positions[head], positions[tail]) for head, _, tail in self.triples]


@named_arguments
def draw(
    what: HoldsFacts | Iterable[HoldsFacts],
    *,
    label: Callable[[str], str] | None = None,
    max_triples: int = MAX_TRIPLES,
) -> Drawing:
    """Make a picture of evidence, of a Document of any retriever, of a path, or of several of these as one.

    It marks answers, and entities that were known beforehand if the details name them: a list "entities" of pairs
    [text, entity key]. Two entities with one label stay two. `readable` writes the relations.

    Args:
        what: The evidence to draw. Each triple is drawn once. Answers that are in no triple are not drawn.
        label: Maps an entity key to its label, as `graph.label` does. None takes the labels that Documents bring, and
            otherwise the key.
        max_triples: The most triples to draw, 1 or more, from the first. The picture says how many it leaves out.

    Raises:
        InvalidArgumentError: If `what` holds no facts, or `max_triples` is below 1.

    Example:
        >>> from kg_retrievers.graph import Evidence
        >>> evidence = Evidence((Triple("Her", "directed_by", "Spike Jonze"),), score=1.0, answers=("Spike Jonze",))
        >>> print(draw(evidence).to_mermaid().rstrip())
        flowchart LR
            n0["Her"]
            n1["Spike Jonze"]:::answer
            n0 -->|"directed by"| n1
            classDef answer fill:#fff1c7,stroke:#8a5a00,color:#1f2328
    """
    most = _Limit(max_triples).max_triples
    items = each_of(what)
    triples, brought = facts_of(items, "draw")
    shown = triples[:most]
    ends = (key for head, _, tail in shown for key in (head, tail))
    keys = dict.fromkeys([*ends, *lone_entities_of(items)])
    labels = {key: label(key) if label else brought.get(key, key) for key in keys}
    documents = tuple(map(described, items))
    answers = frozenset(key for about in documents for key in labels.keys() & (about.get("answers") or ()))
    known = frozenset(key for about in documents for key in labels.keys() & _known(about.get("details") or {}))
    return Drawing(shown, labels, answers, known, len(triples) - len(shown), documents)


@checked_dataclass
class _Limit:
    who: ClassVar[str] = "draw"
    max_triples: int = Field(ge=1)


def _known(details: Mapping[str, Any]) -> list[str]:
    pairs = details.get("entities")
    return [key for _, key in pairs] if are_texts(pairs, 2) else []


def _mermaid(line: str) -> str:
    return _MERMAID.sub(lambda found: f"#{ord(found[0])};", line)
