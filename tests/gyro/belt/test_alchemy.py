"""Applications in SQLAlchemy: served as those in SQL are, judged by the replay of those in SQL."""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
import shutil
import sqlite3
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
import sqlalchemy
from sqlalchemy.orm import Session

from plait.bench.gyro.faults.history import Replay
from plait.gyro.analysis import analyze
from plait.gyro.belt.application import Application, load, schema_of, written_schema
from plait.gyro.belt.databases.alchemy import ddl, wanted
from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.records import DatabaseGoneError, Entry, OperationError, chained
from plait.gyro.belt.routing import Route, routes, server_of
from plait.gyro.source.modules import read_python
from plait.kernel.errors import UsageError
from tests.gyro.belt import board_core
from tests.gyro.belt.cluster import Cluster
from tests.gyro.belt.runs import GENERATED, board_routes, run
from tests.gyro.belt.variants import ROUGH, ParallelPostgresql, Skipping, engine, needs_mariadb, needs_postgresql
from tests.support.engines import Engine, Mariadb, Postgresql, Sqlite, scratch

STORE = Path(__file__).parents[3] / "examples" / "gyro"
BOTH = [Sqlite, pytest.param(Postgresql, marks=[needs_postgresql, pytest.mark.slow])]


@functools.cache
def core_routes() -> dict[str, Route]:
    return routes(analyze(Path(board_core.__file__)))


# -- serializability ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_board_is_classified_as_in_sql() -> None:
    assert core_routes() == board_routes()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(600, 603))
def test_runs_with_deaths_are_serializable(seed: int) -> None:
    faults, cluster = run(seed, module=board_core, routing=core_routes(), servers=3, **ROUGH)
    assert faults == []
    assert {e.kind for e in cluster.events} == {"read", "local", "global"}
    assert {"draw", "bid", "award"} <= {e.operation for e in cluster.events}


@pytest.mark.slow
@needs_postgresql
def test_runs_on_postgresql_are_serializable() -> None:
    faults, _ = run(610, engine=Postgresql, module=board_core, without=GENERATED, servers=3, **ROUGH)
    assert faults == []


@pytest.mark.slow
@needs_postgresql
def test_parallel_operations_on_postgresql_have_no_cycle() -> None:
    """Some are refused for the sake of serializability, and SQLAlchemy wraps that: they run again all the same."""
    faults, _ = run(611, engine=ParallelPostgresql, module=board_core, without=GENERATED, servers=2)
    assert [f for f in faults if f.startswith("cycle")] == []


@pytest.mark.slow
@needs_mariadb
def test_runs_on_mariadb_are_serializable() -> None:
    faults, _ = run(612, engine=Mariadb, module=board_core, without=GENERATED, servers=3, **ROUGH)
    assert faults == []


@pytest.mark.slow
def test_an_update_that_is_skipped_is_noticed() -> None:
    assert any(
        run(seed, engine=engine(Skipping), module=board_core, servers=3, lenient=True)[0] for seed in range(620, 624)
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOTH)
def test_the_example_is_served(kind: type[Engine]) -> None:
    """The store of figure 4 on three servers; store.py, which is in SQL, says what one database would have replied."""
    core, plain = load(str(STORE / "store_core.py")), load(str(STORE / "store.py"))
    fill = "INSERT INTO items VALUES (0, 'pen', 15), (1, 'ink', 10);"
    schema = schema_of(str(STORE / "store_core.py"), core, None, dialect="sqlite" if kind is Sqlite else "postgresql")
    folder = scratch()
    made = kind(folder, schema + fill)
    cluster = Cluster(folder, made, core, routes(analyze(STORE / "store_core.py")), servers=3, seed=1, crashes=0.01)
    generator = random.Random(5)
    try:
        for cart in range(6):
            cluster.call("create", {"cart": cart}, request=f"create {cart}")
        for number in range(60):
            cart, item = generator.randrange(6), generator.randrange(2)
            if generator.random() < 0.6:
                cluster.call(
                    "add", {"cart": cart, "item": item, "amount": generator.randrange(1, 5)}, request=f"{number}"
                )
            else:
                cluster.call("order", {"cart": cart}, request=f"{number}")
        cluster.settle()
        plain.SCHEMA += fill
        replay = Replay(plain, 3)
        assert replay.run(cluster.events) == []
        assert {e.reply for e in cluster.events if e.operation == "add"} == {True, False}
        stock = replay.rows("SELECT id, stock FROM items ORDER BY id")
        rest = replay.rows("SELECT cart, item, amount FROM lines ORDER BY cart, item")
        for server in range(3):
            assert made.rows(server, "SELECT id, stock FROM items ORDER BY id") == stock
            mine = made.rows(server, "SELECT cart, item, amount FROM lines ORDER BY cart, item")
            assert [r for r in mine if server_of(r[0], 3) == server] == [
                r for r in rest if server_of(r[0], 3) == server
            ]
    finally:
        cluster.stop()
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


# -- operations ---------------------------------------------------------------------------------------------------------

HEAD = """
import sqlalchemy as sa
from sqlalchemy import Column, Engine, Integer, MetaData, String, Table, insert, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, registry

metadata = MetaData()
cart = Table(
    "cart", metadata, Column("id", Integer, primary_key=True), Column("owner", Integer), Column("note", String, unique=True)
)
line = Table("line", metadata, Column("cart", Integer, primary_key=True), Column("item", Integer, primary_key=True))


class Line:
    pass


class Cart:
    def __init__(self, owner):
        self.owner = owner


registry().map_imperatively(Cart, cart)
registry().map_imperatively(Line, line)


def carts(connection):
    return connection.execute(select(cart).order_by(cart.c.id)).mappings().all()
"""


class Served:
    """Servers 1 and 2 of 3 with an application: the functions above, and some more."""

    def __init__(self, kind: type[Engine], folder: Path) -> None:
        self._kind, self._folder = kind, folder
        self._calls = itertools.count()
        self.databases: list[Database] = []

    def start(self, source: str) -> Self:
        file = self._folder / "served_application.py"
        file.write_text(HEAD + textwrap.dedent(source))
        module = load(str(file))
        plain = self._kind is Sqlite
        self._engine = self._kind(
            self._folder, schema_of(str(file), module, None, dialect="sqlite" if plain else "postgresql")
        )
        self.databases = [self._engine.open(n, 3, lambda _: None) for n in (1, 2)]
        self._application = Application(module, routes(analyze(file, dialect="sqlite" if plain else "postgres")))
        return self

    def call(self, name: str, /, *, how: str = "write", at: int = 0, **given: Any) -> Any:
        """The reply; of a global operation, the update as well."""
        database = self.databases[at]
        call = self._application.call(f"{next(self._calls)}", name, given)
        if how != "visit":
            return msgspec.json.decode(getattr(database, how)(call).reply)
        with database.visit() as visit:
            reply, update = visit.execute(call)
            visit.commit([], None)  # type: ignore[arg-type]
            return msgspec.json.decode(reply), update

    def close(self) -> None:
        for each in self.databases:
            each.close()
        self._engine.close()


@pytest.fixture(params=BOTH)
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    made = Served(request.param, tmp_path)
    yield made
    made.close()


IDS = """
def made(connection, owner):
    return connection.execute(insert(cart).values(owner=owner)).inserted_primary_key[0]

def returned(connection, owner):
    return connection.execute(insert(cart).values(owner=owner).returning(cart.c.id)).scalar_one()

def several(connection, owner):
    rows = [{"owner": owner}, {"owner": owner + 1}, {"owner": owner + 2}]
    return connection.scalars(insert(cart).returning(cart.c.id), rows).all()

def textual(connection, owner):
    connection.execute(text("INSERT INTO cart (owner, note) VALUES (:o, '100 % ?')"), {"o": owner})
    return connection.execute(text("SELECT id FROM cart WHERE note = '100 % ?'")).scalar_one()

def unnamed(connection):
    return connection.execute(insert(cart)).inserted_primary_key[0]

def orm(session: Session, owner):
    made = Cart(owner)
    session.add(made)
    session.flush()
    return made.id
"""


@pytest.mark.slow
def test_generated_ids_are_the_servers_own(served: Served) -> None:
    call = served.start(IDS).call
    found = [call("made", owner=1), call("returned", owner=2), *call("several", owner=3), call("unnamed")]
    found.append(call("orm", owner=7, how="visit")[0])
    found.append(call("textual", owner=8))
    assert all(server_of(i, 3) == 1 for i in found)
    assert len({*found}) == 8
    assert [(c["id"], c["owner"]) for c in call("carts", how="read")] == list(
        zip(sorted(found), [1, 2, 3, 4, 5, None, 7, 8], strict=True)
    )


@pytest.mark.slow
def test_updates_of_sqlalchemy_are_row_images(served: Served) -> None:
    served.start(IDS)
    for seq, name in enumerate(("made", "several", "orm"), start=1):
        reply, update = served.call(name, owner=seq, how="visit")
        entry = Entry(seq, 1, 0, 1, name, name, b"{}", msgspec.json.encode(reply), update)
        served.databases[1].apply(chained(served.databases[1].chain(), [entry]), 2)
    found = served.call("carts", how="read")
    assert len(found) == 5
    assert served.call("carts", how="read", at=1) == found


BOUNDARIES = """
def nested(connection, p):
    connection.execute(insert(cart).values(id=p, note="x"))
    try:
        with connection.begin_nested():
            connection.execute(insert(cart).values(id=p + 3, note="y"))
            connection.execute(insert(cart).values(id=p + 6, note="x"))
    except IntegrityError as error:
        kept = "UNIQUE" in str(error.orig).upper()
    with connection.begin_nested() as point:
        connection.execute(insert(cart).values(id=p + 9, note="z"))
        point.rollback()
    connection.execute(insert(cart).values(id=p + 12, note="w"))
    return kept

def undone(connection, p):
    connection.execute(insert(cart).values(id=p))
    connection.rollback()
    for number in (p + 3, p + 6):
        connection.execute(insert(cart).values(id=number))
        connection.commit()
        connection.rollback()
        connection.execute(insert(cart).values(id=number + 100))
        connection.rollback()

def committed(engine: Engine, p):
    with engine.begin() as connection:
        connection.execute(insert(cart).values(id=p))
    with engine.connect() as connection:
        return connection.scalar(select(cart.c.id).where(cart.c.id == p))

def raising(connection, p):
    connection.execute(insert(cart).values(id=p))
    connection.commit()
    raise ValueError("no")

def twice(connection, p):
    connection.execute(insert(cart).values(id=p))
    connection.execute(insert(cart).values(id=p))

def pending(session, p):
    session.add(Cart(p))

def wrong(session, p):
    session.execute(insert(cart).values(id=p))
    other = Cart(p)
    other.id = p
    session.add(other)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["write", "visit"])
def test_transactions_are_the_middlewares(served: Served, how: str) -> None:
    served.start(BOUNDARIES)
    seq = itertools.count(1)

    def call(name: str, *, p: int) -> Any:
        if how == "write":
            return served.call(name, p=p)
        reply, update = served.call(name, p=p, how=how)
        entry = Entry(next(seq), 1, 0, 1, f"{name} {p}", name, b"{}", b"null", update)
        served.databases[1].apply(chained(served.databases[1].chain(), [entry]), 2)
        return reply

    def ids() -> list[int]:
        found = served.call("carts", how="read")
        assert how == "write" or served.call("carts", how="read", at=1) == found
        return [c["id"] for c in found]

    assert call("nested", p=1) is True
    assert ids() == [1, 13]
    call("undone", p=21)
    assert ids() == [1, 13, 24, 27]
    call("committed", p=31)
    assert ids() == [1, 13, 24, 27, 31]
    for name, raised, said in (
        ("raising", "ValueError", "no"),
        ("twice", "IntegrityError", "unique"),
        ("wrong", "IntegrityError", "unique"),
    ):
        with pytest.raises(OperationError) as error:
            call(name, p=41)
        assert error.value.kind == raised
        assert said in error.value.message.lower()
        assert "sqlalche.me" not in error.value.message
    assert ids() == [1, 13, 24, 27, 31]
    call("pending", p=77)
    assert [c["owner"] for c in served.call("carts", how="read")].count(77) == 1
    assert len(ids()) == 6


REFUSED = """
def level(connection, p):
    connection.execution_options(isolation_level="READ UNCOMMITTED").execute(select(cart.c.id).where(cart.c.id == p))

def control(connection, p):
    connection.execute(insert(cart).values(id=p))
    connection.execute(text("/* now */ COMMIT"))

def plain(connection: sa.Integer, p):
    connection.execute("SELECT 1")

def dbapi(connection: int, p):
    connection.execute(insert(cart).values(id=p))

def object(connection, p):
    connection.execute(insert(cart).values(id=p))
    return Cart(p)
"""


@pytest.mark.slow
def test_errors_are_clear(served: Served) -> None:
    call = served.start(REFUSED).call
    for name, said in (
        ("level", "isolation level READ UNCOMMITTED in an operation"),
        ("control", "COMMIT in an operation"),
        ("plain", "Not an executable object"),
        ("dbapi", "annotate the parameter with sqlalchemy.Connection"),
        ("object", "cannot be encoded as JSON: an object of type Cart"),
    ):
        with pytest.raises(OperationError, match=said):
            call(name, p=1)
    assert call("carts", how="read") == []


@pytest.mark.slow
def test_a_write_of_a_reader_is_refused(served: Served) -> None:
    call = served.start(IDS).call
    with pytest.raises(OperationError, match=r"(?i)read.?only"):
        call("made", owner=1, how="read")


@pytest.mark.slow
@needs_postgresql
@pytest.mark.parametrize("served", [Postgresql], indirect=True)
def test_a_database_that_goes_away_is_not_the_functions_fault(served: Served) -> None:
    call = served.start(
        """
        def suicide(connection, p):
            connection.execute(insert(cart).values(id=p))
            connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid()) FROM cart"))
        """
    ).call
    for how in ("write", "visit"):
        with pytest.raises(DatabaseGoneError, match=r"terminating connection|closed"):
            call("suicide", p=1, how=how)
    assert call("carts", how="read") == []


# -- which functions ----------------------------------------------------------------------------------------------------


def test_what_functions_want() -> None:
    def by_name(connection, engine, session, db):  # type: ignore[no-untyped-def]
        pass

    def annotated(a, b, c, d, e):  # type: ignore[no-untyped-def]
        pass

    kinds = (sqlalchemy.Connection, sqlalchemy.Engine, Session, sqlite3.Connection, sqlalchemy.Engine | None)
    annotated.__annotations__ = dict(zip("abcde", kinds, strict=True))
    assert wanted(by_name, ["connection", "engine", "session", "db"]) == {
        "connection": "connection", "engine": "engine", "session": "session", "db": "connection",
    }  # fmt: skip
    assert [*wanted(annotated, "abcde").values()] == ["connection", "engine", "session", "dbapi", "engine"]
    board = load(str(STORE / "store.py"))
    assert wanted(board.create, ["db"]) == {"db": "dbapi"}


def test_functions_that_are_asynchronous_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "later.py"
    file.write_text(HEAD + "async def act(connection, p):\n    await connection.execute(insert(cart).values(id=p))\n")
    with pytest.raises(UsageError, match="act is asynchronous"):
        Application(load(str(file)), routes(analyze(file)))


def test_tables_are_the_schema_of_a_dbms(tmp_path: Path) -> None:
    module = load(str(STORE / "store_core.py"))
    assert "id INTEGER NOT NULL" in ddl(module, "sqlite")
    assert "id SERIAL NOT NULL" in ddl(module, "postgresql")
    with pytest.raises(UsageError, match="VARCHAR requires a length on dialect mariadb"):
        ddl(module, "mariadb")
    assert ddl(load(str(STORE / "store.py")), "sqlite") == ""


def test_classes_of_the_orm_are_the_schema_of_what_is_served(tmp_path: Path) -> None:
    """The analysis imports nothing, so it is given what SQLAlchemy makes of them; the functions are global."""
    file = tmp_path / "mapped.py"
    file.write_text(
        "from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column\n"
        "class Base(DeclarativeBase):\n    pass\n"
        "class Cart(Base):\n    __tablename__ = 'cart'\n"
        "    id: Mapped[int] = mapped_column(primary_key=True)\n    owner: Mapped[str | None]\n"
        "def act(session: Session, p):\n    session.get(Cart, p).owner = 'x'\n"
    )
    module = load(str(file))
    assert written_schema(str(file), module, None) is None
    schema = tmp_path / "made.sql"
    schema.write_text(schema_of(str(file), module, None))
    found = analyze(file, schema=schema)
    assert "session.get belongs to the ORM" in found.operation("act").refused[0]
    assert found.operation("act").classed == "global"
    database = SqliteDatabase(tmp_path / "a.db", schema=schema.read_text() + "INSERT INTO cart VALUES (3, 'y');")
    database.write(Application(module, routes(found)).call("", "act", {"p": 3}))
    database.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as plain:
        assert plain.execute("SELECT owner FROM cart").fetchall() == [("x",)]


def test_postgresql_generates_what_the_analysis_says(tmp_path: Path) -> None:
    """SQLAlchemy makes a SERIAL of a key of one integer, unless it is told not to."""
    for options, generated in ((", primary_key=True", "id"), (", primary_key=True, autoincrement=False", None)):
        file = tmp_path / "keys.py"
        file.write_text(
            "from sqlalchemy import Column, Integer, MetaData, Table, insert\n"
            f"t = Table('t', MetaData(), Column('id', Integer{options}), Column('a', Integer))\n"
            "def put(connection, a):\n    connection.execute(insert(t).values(a=a))\n"
        )
        assert read_python(file, None, dialect="postgres")[0].tables["t"].generated == generated
        assert ("SERIAL" in ddl(load(str(file)), "postgresql")) == (generated is not None)
