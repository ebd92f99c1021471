"""The command `migrate`."""

from __future__ import annotations

import argparse

from kg_retrievers.cli.show import note, status


def run(options: argparse.Namespace) -> int:
    """Convert a folder of an earlier version to the current format."""
    from kg_retrievers.graph.migration import migrate  # loads numpy

    with status(f"migrating {options.folder}"):
        changed = migrate(options.folder)
    note(f"{options.folder} is {'now' if changed else 'already'} in the current format")
    return 0
