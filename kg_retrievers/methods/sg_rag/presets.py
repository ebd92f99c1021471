"""The settings of the paper, as fields of the retriever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Each preset by its name. The paper's queries come from templates by hand: `writer=HandWrittenCypherWriter(...)`.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {
        #: Section 4.1: "the triplets from the same subgraph are grouped together", and each record is a subgraph.
        "ties": "break",
        #: Section 4.1: all records that the query returns; as many as `max_rows`.
        "k": 1000,
        #: Section 4.1: "(Subject, Relation, Object)".
        "style": "triples",
        #: The order of the records.
        "order": "by_row",
    },
}
