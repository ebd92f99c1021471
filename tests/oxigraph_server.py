"""Oxigraph, a SPARQL endpoint, on loopback."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from server_process import ServerProcess, free_port

from kg_retrievers.database.sparql.executor import SparqlExecutor

#: The program that the package `oxigraph`, of the extra `test`, brings.
PROGRAM = shutil.which("oxigraph", path=Path(sys.executable).parent) or "oxigraph"


class Oxigraph(ServerProcess):
    """Oxigraph in a process of its own while its context is open, which answers queries and takes no updates.

    Args:
        folder: An empty folder.
        file: The RDF that it holds.
    """

    def __init__(self, folder: Path, file: Path) -> None:
        self._store = folder / "store"
        port = free_port()
        command = [PROGRAM, "serve-read-only", "-l", str(self._store), "-b", f"127.0.0.1:{port}"]
        super().__init__(command, port, folder / "log.txt")
        self.url = f"http://127.0.0.1:{self.port}/query"
        self.load(file)

    def load(self, file: Path) -> None:
        """Load RDF while the process does not run."""
        subprocess.run([PROGRAM, "load", "-l", self._store, "-f", file], check=True, capture_output=True)

    def executor(self, **options: Any) -> SparqlExecutor:
        """Return an executor for it."""
        return SparqlExecutor(self.url, **options)
