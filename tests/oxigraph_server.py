"""Oxigraph, a SPARQL endpoint, on loopback."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from kg_retrievers.database.sparql.executor import SparqlExecutor

#: The program that the package `oxigraph`, of the extra `test`, brings.
PROGRAM = shutil.which("oxigraph", path=Path(sys.executable).parent) or "oxigraph"


class Oxigraph:
    """Oxigraph in a process of its own while its context is open, which answers queries and takes no updates.

    Args:
        folder: An empty folder.
        file: The RDF that it holds.
        timeout: The most seconds of a query.
    """

    def __init__(self, folder: Path, file: Path, timeout: int | None = None) -> None:
        self._store, self._log = folder / "store", folder / "log.txt"
        self.load(file)
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/query"
        self._limit = [] if timeout is None else ["--timeout-s", str(timeout)]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def load(self, file: Path) -> None:
        """Load RDF while the process does not run."""
        subprocess.run([PROGRAM, "load", "-l", self._store, "-f", file], check=True, capture_output=True)

    def start(self) -> None:
        """Start the process, and wait until it answers."""
        command = [PROGRAM, "serve-read-only", "-l", self._store, "-b", f"127.0.0.1:{self.port}", *self._limit]
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        until = time.monotonic() + 60
        while True:
            try:
                httpx.get(self.url, trust_env=False)
                return
            except httpx.TransportError:
                if self._process.poll() is not None or time.monotonic() > until:
                    self.stop()
                    raise RuntimeError(self._log.read_text(errors="replace")) from None
                time.sleep(0.02)

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def executor(self, **options: Any) -> SparqlExecutor:
        """Return an executor for it."""
        return SparqlExecutor(self.url, **options)
