"""The command `migrate`."""

from __future__ import annotations

import argparse

from kg_retrievers.cli.show import note, status


def run(options: argparse.Namespace) -> int:
    """Convert a folder of an earlier version to the current format, and its index to what a new one holds."""
    from kg_retrievers.graph.migration import migrate  # loads numpy
    from kg_retrievers.index.migration import shrink_names

    with status(f"migrating {options.folder}"):
        changed = migrate(options.folder)
    note(f"{options.folder} is {'now' if changed else 'already'} in the current format")
    with status("writing the vectors of names as bytes and bits"):
        names = shrink_names(options.folder)
    if names:
        note(f"the vectors of {names:,} names take less than a third of what they took, as in a new index")
    return 0
