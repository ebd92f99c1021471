"""A server on loopback, in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self


def free_port() -> int:
    """Return a port on which nobody listens."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


class ServerProcess:
    """A server while its context is open.

    Args:
        command: What starts it.
        port: Where it listens then.
        log: The file that takes what it prints; its folder is there.
    """

    def __init__(self, command: Sequence[str], port: int, log: Path) -> None:
        self.port = port
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def process_id(self) -> int:
        """The id of the process, while it runs."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the process, and wait until it listens."""
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._log.parent,
                env=os.environ | {"ANONYMIZED_TELEMETRY": "False"},  # of Chroma
            )
        until = time.monotonic() + 180
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > until:
                self.stop()
                raise RuntimeError(self._log.read_text(errors="replace"))
            time.sleep(0.02)

    def _listens(self) -> bool:
        with closing(socket.socket()) as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
