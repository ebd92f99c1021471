"""What the same code prints in two processes, which order sets of strings differently."""

from __future__ import annotations

import os
import subprocess
import sys


def outputs_under_hash_seeds(code: str, *arguments: str) -> set[bytes]:
    """Run Python code once under each of two hash seeds, and return what it prints: one output where both are equal."""
    return {
        subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=300,
        ).stdout
        for seed in ("0", "1")
    }
