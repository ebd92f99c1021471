"""The command `migrate`."""

from __future__ import annotations

import argparse

from kg_retrievers.cli.show import note, status


def run(options: argparse.Namespace) -> int:
    """Write a folder of an earlier version in the format of today."""
    from kg_retrievers.graph.migration import migrate  # loads numpy

    with status(f"migrating {options.folder}"):
        changed = migrate(options.folder)
    note(f"{options.folder} is {'now ' if changed else ''}in the format of today")
    return 0
