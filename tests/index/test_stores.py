"""Vector stores in servers: what is found in them, and what goes wrong with them."""

from __future__ import annotations

import os
import pickle
import sys
import time
import warnings
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import psycopg
import pytest
from chroma_server import ChromaServer
from langchain_postgres import PGEngine, PGVectorStore
from langchain_postgres.v2.indexes import HNSWIndex
from postgres import PASSWORD, Postgres

from kg_retrievers.deadline import deadline
from kg_retrievers.errors import (
    BudgetError,
    DatabaseFullError,
    DatabaseLoginError,
    DatabaseTimeoutError,
    DatabaseUnavailableError,
    FewerNamesWarning,
    InvalidArgumentError,
    MissingExtraError,
    StaleIndexError,
)
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index import ExactSearch, HashedEmbeddings, VectorStoreSearch, embed
from kg_retrievers.index.server_names import ServerNames, StoredName
from kg_retrievers.index.stores import StoreAddress, open_store, read_address

TABLES = count()
EMBEDDINGS = HashedEmbeddings(64)
NAMES = [f"{chr(97 + number % 26) * 3} and film {number}" for number in range(100)]


def names_at(address: str) -> ServerNames:
    return ServerNames(open_store(address, EMBEDDINGS), EMBEDDINGS)


def stored(names: list[str]) -> list[StoredName]:
    return [StoredName(name, (f"key of {name}",)) for name in names]


def table() -> str:
    return f"store_{next(TABLES)}"


class TableNames(ServerNames):
    """Names in a table of PostgreSQL."""

    def __init__(self, address: str, table: str) -> None:
        super().__init__(open_store(f"{address}?table={table}", EMBEDDINGS), EMBEDDINGS)
        self.table = table


@pytest.fixture
def names(postgres: Postgres) -> TableNames:
    """Ten names in PostgreSQL."""
    names = TableNames(postgres.url(), table())
    names.add(stored(NAMES[:10]))
    return names


@pytest.fixture(scope="module")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaServer]:
    with ChromaServer(tmp_path_factory.mktemp("chroma")) as server:
        yield server


def vectors_of(names: list[str]) -> Array:
    return embed(EMBEDDINGS, [readable(name) for name in names])


# --- what is found ----------------------------------------------------------------------------------------------------


def check_same_as_exact(address: str) -> None:
    """Twice the same, and the same as an exact search in memory, after opening again, too."""
    names = names_at(address)
    assert names.add(stored(NAMES), batch_size=40) == 100
    assert names.add(stored(NAMES)) == 0
    vectors = vectors_of(NAMES)
    ids, distances = ExactSearch(vectors).search(vectors, 10)
    for one in (names, names_at(address)):
        found = one.nearest(vectors, 10)
        assert [[near.name.name for near in row] for row in found] == [[NAMES[id] for id in row] for row in ids]
        assert np.allclose([[near.distance for near in row] for row in found], distances, atol=1e-5)
        assert one.written_as([NAMES[3].upper(), "nobody"]) == {NAMES[3].upper(): stored(NAMES)[3:4], "nobody": []}
        assert len(one.nearest(vectors[:1], 1000)[0]) == 100
    again = [StoredName(NAMES[0], ("another key",))]
    assert names.add(again) == 1
    assert names.written_as(NAMES[:1])[NAMES[0]][0].keys == ("another key", f"key of {NAMES[0]}")
    assert len(names.nearest(vectors[:1], 1000)[0]) == 100


def test_postgres(postgres: Postgres) -> None:
    check_same_as_exact(f"{postgres.url()}?table={table()}")


@pytest.mark.heavy
def test_chroma(chroma: ChromaServer) -> None:
    check_same_as_exact(chroma.address(table()))


@pytest.mark.heavy
def test_milvus(tmp_path: Path) -> None:
    pytest.importorskip("langchain_milvus")
    pytest.importorskip("milvus_lite")
    check_same_as_exact(str(tmp_path / "names.db"))


@pytest.mark.heavy
def test_an_hnsw_index_of_pgvector_finds_as_many_as_asked_for(names: TableNames, postgres: Postgres) -> None:
    """Its default finds 40."""
    many = [f"name {number}" for number in range(3000)]
    names.add(stored(many))
    name = names.table
    postgres.run(f"CREATE INDEX ON {name} USING hnsw (embedding vector_l2_ops)")
    postgres.run(f"ANALYZE {name}")
    with psycopg.connect(postgres.url()) as connection:
        connection.execute("SET enable_seqscan = off")
        query = f"SELECT 1 FROM {name} ORDER BY embedding <-> (SELECT embedding FROM {name} LIMIT 1) LIMIT 600"
        assert len(connection.execute(query).fetchall()) < 600
    [found] = names_at(f"{postgres.url()}?table={name}").nearest(vectors_of(many[:1]), 600)
    assert len(found) == 600
    assert found[0].name.name == "name 0"


def test_an_index_that_finds_fewer_names_is_told_once(postgres: Postgres) -> None:
    """A store of the user's own, with an HNSW index of pgvector and its default of 40 candidates."""
    address = postgres.make_database("approximate")
    postgres.run("ALTER DATABASE approximate SET enable_seqscan = off")
    engine = PGEngine.from_connection_string(address.replace("postgresql:", "postgresql+psycopg:"))
    engine.init_vectorstore_table("theirs", EMBEDDINGS.dimension)
    store = PGVectorStore.create_sync(engine, EMBEDDINGS, "theirs")
    names = ServerNames(VectorStoreSearch(store, "cosine_distance"), EMBEDDINGS)
    names.add(stored(NAMES))
    store.apply_vector_index(HNSWIndex())
    with pytest.warns(FewerNamesWarning, match=r"PGVectorStore found (39|40) names where 64 .*hnsw\.ef_search"):
        [found] = names.nearest(vectors_of(NAMES[:1]), 64)
    ids, distances = ExactSearch(vectors_of(NAMES)).search(vectors_of(NAMES[:1]), 64)
    assert len(found) < 64
    assert len({near.name.name for near in found} & {NAMES[id] for id in ids[0]}) == len(found)
    assert abs(found[1].distance - distances[0, 1]) < 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        names.nearest(vectors_of(NAMES[:1]), 64)
        assert names.nearest(vectors_of(NAMES[:1]), 5) == [found[:5]]


# --- opening without making -------------------------------------------------------------------------------------------


def check_nothing_is_made(address: str) -> None:
    """Opening to ask refuses twice what is not there; once names are in it, it opens, from a pickle too."""
    for _ in range(2):
        with pytest.raises(
            StaleIndexError, match=r"open_store: there is no .* load_names\(executor, embeddings, store\)"
        ):
            open_store(address, EMBEDDINGS, create=False)
    names_at(address).add(stored(NAMES[:3]))
    opened = open_store(address, EMBEDDINGS, create=False)
    for store in (opened, pickle.loads(pickle.dumps(opened))):
        assert ServerNames(store, EMBEDDINGS).nearest(vectors_of(NAMES[:1]), 1)[0][0].name.name == NAMES[0]


def test_postgres_is_opened_without_making_a_table(postgres: Postgres) -> None:
    check_nothing_is_made(f"{postgres.url()}?table={table()}")
    name = table()
    for schema in ("public", "nowhere"):
        with pytest.raises(StaleIndexError, match=f"there is no table {name!r} in the schema {schema!r}"):
            open_store(f"{postgres.url()}?table={name}&schema={schema}", EMBEDDINGS, create=False)
    assert not postgres.run(f"SELECT FROM pg_tables WHERE tablename = '{name}'")


# --- addresses --------------------------------------------------------------------------------------------------------


def test_addresses() -> None:
    postgres = "postgresql://ann@db.example.org:5433/films?sslmode=verify-full"
    assert read_address(f"{postgres}&table=names&schema=graph") == StoreAddress(
        "postgresql", postgres, "names", "graph"
    )
    assert read_address("chroma+https://[::1]:8000/films") == StoreAddress(
        "chroma+https", "https://[::1]:8000", "films"
    )
    assert read_address("milvus://localhost") == StoreAddress("milvus", "http://localhost", "kg_retrievers_names")
    assert read_address("names.db?collection=films") == StoreAddress("folder", "names.db", "films")
    assert read_address("folder/names.db") == StoreAddress("folder", "folder/names.db", "kg_retrievers_names")


@pytest.mark.parametrize(
    "address",
    [
        *("", "names", "redis://localhost", "chroma://", "milvus://localhost:70000", "chroma://localhost/names?x=1"),
        *("chroma+htps://localhost/names", "postgres://ann@localhost/films"),
    ],
)
def test_addresses_that_nobody_understands(address: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"wanted the address of a vector store.*, but got .* as postgresql://host"
    ):
        read_address(address)


@pytest.mark.parametrize("name", ["a", "a b", 'x"; DROP TABLE y', "é" * 5, "1abc", "x" * 64])
def test_names_of_tables_that_not_every_store_takes(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="3 to 63 letters"):
        read_address(f"postgresql://localhost/films?table={name}")
    with pytest.raises(InvalidArgumentError, match="name of a schema of 3 to 63 letters") as caught:
        read_address(f"postgresql://localhost/films?table=names&schema={name}")
    assert "names'" not in str(caught.value)


def test_a_table_of_another_kind_is_refused(postgres: Postgres) -> None:
    name = table()
    postgres.run(f"CREATE TABLE {name} (id int)")
    with pytest.raises(InvalidArgumentError, match=f"the table '{name}' was not made by open_store"):
        open_store(f"{postgres.url()}?table={name}", EMBEDDINGS)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:s3cret@localhost/films",
        "postgresql://ann@localhost/films?password=s3cret",
        "chroma://s3cret@localhost/films",
        "milvus://root:s3cret@localhost/films",
        "postgresql://ann:5/s3cret@localhost/films",
        "postgresql://ann:5?s3cret@localhost/films",
        "postgresql://ann:5#s3cret@localhost/films",
    ],
)
def test_an_address_with_a_password_is_refused(address: str) -> None:
    with pytest.raises(InvalidArgumentError, match="holds no password") as caught:
        open_store(address, EMBEDDINGS)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("sign", "/?#[")
def test_a_password_that_no_address_can_hold_is_not_shown(sign: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"wanted the address .* with a host and a port from 0 to 65535\. Give"
    ) as caught:
        read_address(f"postgresql://ann:s3cret{sign}s3cret@localhost/films")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "package", "extra"),
    [
        ("postgresql://localhost/films", "langchain_postgres", "postgres"),
        ("chroma://localhost", "chromadb", "chroma"),
        ("names.db", "langchain_milvus", "milvus"),
    ],
)
def test_a_missing_package_is_named(address: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "kg_retrievers.index.postgres_store", raising=False)
    monkeypatch.delattr("kg_retrievers.index.postgres_store", raising=False)
    with pytest.raises(MissingExtraError, match=rf"Run: .*\[{extra}\]"):
        open_store(address, EMBEDDINGS)


# --- processes --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_says_that_the_connections_are_not_its_own(names: TableNames) -> None:
    if not (child := os.fork()):
        try:
            names.written_as(NAMES[:1])
        except DatabaseUnavailableError as error:
            os._exit(7 if "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert names.written_as(NAMES[:1])[NAMES[0]]


# --- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_a_server_that_is_stopped_and_started_between_calls(names: TableNames, postgres: Postgres) -> None:
    before = names.nearest(vectors_of(NAMES[:2]), 3)
    postgres.stop()
    try:
        for use in (
            lambda: names.nearest(vectors_of(NAMES[:1]), 3),
            lambda: names.written_as(NAMES[:1]),
            lambda: names.add(stored(["new"])),
            lambda: open_store(postgres.url(), EMBEDDINGS),
        ):
            with pytest.raises(DatabaseUnavailableError, match=r"cannot connect to the server .*Is it running"):
                use()
    finally:
        postgres.start()
    assert names.nearest(vectors_of(NAMES[:2]), 3) == before


def test_a_call_ends_at_the_deadline(names: TableNames, postgres: Postgres) -> None:
    name = names.table
    with psycopg.connect(postgres.url()) as connection:
        connection.execute(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")
        began = time.monotonic()
        with pytest.raises(BudgetError), deadline(0.3, lambda: BudgetError("no time left")):
            names.nearest(vectors_of(NAMES[:1]), 3)
        assert time.monotonic() - began < 10
    assert names.nearest(vectors_of(NAMES[:1]), 1)[0][0].name.name == NAMES[0]


def test_logins(names: TableNames, postgres: Postgres, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = names.table
    address = f"{postgres.url(user='ann')}?table={name}"
    for password in (None, "a wrong one"):
        if password:
            monkeypatch.setenv("PGPASSWORD", password)
        with pytest.raises(DatabaseLoginError, match="PGPASSWORD") as caught:
            names_at(address)
        assert "wrong" not in str(caught.value)
    with pytest.raises(DatabaseLoginError):
        open_store(postgres.url(user="bob"), EMBEDDINGS)

    monkeypatch.delenv("PGPASSWORD")
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"127.0.0.1:*:*:ann:{PASSWORD}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    for create in (True, False):
        with pytest.raises(DatabaseLoginError, match="permission denied for table"):
            open_store(address, EMBEDDINGS, create=create)
    postgres.run(f"GRANT SELECT ON {name} TO ann")
    reader = names_at(address)
    assert reader.nearest(vectors_of(NAMES[:1]), 1)[0][0].name.name == NAMES[0]
    with pytest.raises(DatabaseLoginError, match="permission denied"):
        reader.add(stored(["new"]))
    postgres.run(f"GRANT INSERT, UPDATE ON {name} TO ann")
    assert reader.add([*stored(["new"]), StoredName(NAMES[0], ("another key",))]) == 2
    with pytest.raises(DatabaseLoginError, match="permission denied"):
        open_store(f"{postgres.url(user='ann')}?table={table()}", EMBEDDINGS)
    with pytest.raises(DatabaseUnavailableError, match="does not exist"):
        open_store(postgres.url("nowhere"), EMBEDDINGS)


def test_a_server_without_pgvector(postgres: Postgres) -> None:
    address = postgres.make_database("bare")
    postgres.run("ALTER DATABASE bare SET extension_control_path = '/nowhere'")
    with pytest.raises(DatabaseUnavailableError, match=r"does not have the extension `vector`.*Install pgvector"):
        open_store(address, EMBEDDINGS)


def test_a_full_disk(names: TableNames, postgres: Postgres) -> None:
    """The server says so by its code 53100, as it does here."""
    name = names.table
    postgres.run(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END$$"
    )
    postgres.run(f"CREATE TRIGGER full_disk BEFORE INSERT ON {name} EXECUTE FUNCTION full_disk()")
    with pytest.raises(DatabaseFullError, match="Make room"):
        names.add(stored(NAMES))
    postgres.run(f"DROP TRIGGER full_disk ON {name}")
    assert names.add(stored(NAMES)) == 90


def test_a_statement_that_the_server_stops(names: TableNames, postgres: Postgres) -> None:
    name = names.table
    address = f"{postgres.url()}?table={name}&options=-c%20statement_timeout%3D200"
    limited = names_at(address)
    with psycopg.connect(postgres.url()) as other:
        other.execute(f"LOCK TABLE {name}")
        with pytest.raises(DatabaseTimeoutError, match=r"took too long.*statement_timeout of PostgreSQL"):
            limited.written_as(["x"])
    assert limited.written_as(NAMES[:1])[NAMES[0]]


@pytest.mark.heavy
def test_a_chroma_server_that_is_stopped_and_started(chroma: ChromaServer) -> None:
    address = chroma.address(table())
    names = names_at(address)
    names.add(stored(NAMES[:10]))
    chroma.stop()
    try:
        for use in (lambda: names.nearest(vectors_of(NAMES[:1]), 3), lambda: names_at(address)):
            with pytest.raises(DatabaseUnavailableError):
                use()
    finally:
        chroma.start()
    assert names.nearest(vectors_of(NAMES[:1]), 1)[0][0].name.name == NAMES[0]
