"""The command `warm-up`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

from kg_retrievers.cli.show import note
from kg_retrievers.errors import InvalidArgumentError

#: The functions that compile, by the text that is shown before; each takes the folder of a saved graph.
Steps = dict[str, Callable[[str], None]]


def warm_up() -> int:
    """Compile all methods now, so that no first question waits for it. Needed once per machine and user.

    Example: kg-retrievers warm-up
    """
    from kg_retrievers.algorithms.compiled import ENTRIES
    from kg_retrievers.graph import KnowledgeGraph

    with tempfile.TemporaryDirectory() as folder:
        KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")]).save(folder)
        for number, (what, compile_step) in enumerate(STEPS.items(), 1):
            note(f"compiling {what} ({number} of {len(STEPS)}) ...")
            compile_step(folder)
    folders = {entry.stats.cache_path for entry in ENTRIES} - {None}
    if not folders:
        raise InvalidArgumentError(
            "the compiled code is lost, since no folder for it can be written. Name one in the environment variable "
            "NUMBA_CACHE_DIR, also for the processes that answer questions."
        )
    note(f"compiled; kept in {', '.join(sorted(folders))}")
    return 0


def _search(folder: str) -> None:
    import numpy as np

    from kg_retrievers.graph import KnowledgeGraph
    from kg_retrievers.methods.simgrag.matching import Candidates, MatchNode, MatchQuery, match_pattern

    known = MatchNode(Candidates(np.zeros(1, np.int32), np.zeros(1, np.float32)))
    match_pattern(KnowledgeGraph.open(folder).adjacency, 1, MatchQuery([known, MatchNode()], [None], [(0, 0, 1)]))


def _neighborhoods(folder: str) -> None:
    import numpy as np

    from kg_retrievers.algorithms.local_walk import walk_around
    from kg_retrievers.algorithms.neighborhood import neighborhood
    from kg_retrievers.algorithms.pagerank import personalized_pagerank
    from kg_retrievers.graph import KnowledgeGraph

    adjacency = KnowledgeGraph.open(folder).adjacency
    neighborhood(adjacency, [0])
    personalized_pagerank(adjacency, [0])
    walk_around(adjacency, np.array([0]), max_hops=1, most=1, max_entries=1)


def _trees(_: str) -> None:
    import numpy as np

    from kg_retrievers.methods.g_retriever.solver import solve_pcst

    solve_pcst(np.array([0]), np.array([1]), np.ones(1), np.ones(2))


def _messages(folder: str) -> None:
    import numpy as np

    from kg_retrievers.graph import KnowledgeGraph
    from kg_retrievers.methods.gnn_rag import message_passing

    adjacency = KnowledgeGraph.open(folder).adjacency
    around = message_passing.local_adjacency(adjacency, np.arange(2))
    weights, messages, received = (np.zeros(shape, np.float32) for shape in (2, (2, 1), (2, 1)))
    message_passing.pass_messages(around, weights, messages, received)
    message_passing.add_products(received, np.zeros((1, 1), np.float32), np.zeros((2, 1), np.float32))


def _scans(_: str) -> None:
    import numpy as np

    from kg_retrievers.algorithms.bit_scan import cosines, nearest_by_bits
    from kg_retrievers.algorithms.quantization import quantized, rotated_bits

    numbers = quantized(np.eye(2, dtype=np.float32))
    bits = rotated_bits(numbers)
    nearest_by_bits(bits, bits, 1)
    cosines(numbers, np.zeros(1, np.int64), np.ones(2, np.float32))


STEPS: Steps = {
    "the search for patterns": _search,
    "neighborhoods": _neighborhoods,
    "trees of facts": _trees,
    "messages between entities": _messages,
    "the scan of names": _scans,
}
