"""Chroma as a server on loopback, in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self


class ChromaServer:
    """A server while its context is open.

    Args:
        folder: Where its data are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def address(self, collection: str) -> str:
        """Return the address of a collection."""
        return f"chroma://127.0.0.1:{self._port}/{collection}"

    def start(self) -> None:
        """Start the server, and wait until it listens."""
        program = Path(sys.executable).with_name("chroma")
        options = ["--path", str(self._folder), "--host", "127.0.0.1", "--port", str(self._port)]
        self._process = subprocess.Popen(
            [program, "run", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"ANONYMIZED_TELEMETRY": "False"},
        )
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with closing(socket.socket()) as probe:
                if not probe.connect_ex(("127.0.0.1", self._port)):
                    return
            time.sleep(0.1)
        self.stop()
        raise RuntimeError("chroma run does not listen")

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait(30)
