"""What the same code prints in several processes, which order sets of strings differently."""

from __future__ import annotations

import os
import subprocess
import sys


def outputs_under_hash_seeds(code: str, *arguments: str) -> set[bytes]:
    """Run Python code once under each of three hash seeds, and return the different outputs."""
    return {
        subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=300,
        ).stdout
        for seed in ("0", "1", "2")
    }
