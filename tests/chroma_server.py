"""Chroma as a server on loopback."""

from __future__ import annotations

import sys
from pathlib import Path

from server_process import ServerProcess, free_port


class ChromaServer(ServerProcess):
    """Chroma in a process of its own while its context is open.

    Args:
        folder: Where its data are.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        program = Path(sys.executable).with_name("chroma")
        port = free_port()
        command = [str(program), "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
        super().__init__(command, port, folder / "log.txt")

    def address(self, collection: str) -> str:
        """Return the address of a collection."""
        return f"chroma://127.0.0.1:{self.port}/{collection}"
