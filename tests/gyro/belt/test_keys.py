"""Keys: values that a real DBMS regards as equal are mapped to one server, or refused."""

from __future__ import annotations

import datetime as dt
import itertools
import re
import shutil
import zlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.gyro.analysis import analyze
from plait.gyro.belt.client import CallError, Client
from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.databases.values import Domain
from plait.gyro.belt.keys import Keys
from plait.gyro.belt.routing import RequestError, Route, place, routes
from plait.gyro.belt.settings import DIALECTS, Settings
from plait.gyro.belt.supervisor import Supervisor, free_ports
from plait.gyro.sql.kind import affinity
from plait.kernel.errors import UsageError
from tests.gyro.belt import keyed
from tests.gyro.belt.keyed import Column, Oracle, form
from tests.gyro.belt.variants import needs_mariadb
from tests.support.engines import Engine, Mariadb, Postgresql, Sqlite, scratch
from tests.support.patience import PATIENCE


class World(NamedTuple):
    """Two servers, an oracle, and the routes of an application with a table for each type."""

    tables: list[Column]
    known: dict[str, Route]
    servers: list[Database]
    keys: list[Keys]
    oracle: Oracle
    engine: Engine

    def table(self, written: str) -> Column:
        return next(t for t in self.tables if t.type == written)


ENGINES: dict[str, type[Engine]] = {"sqlite": Sqlite, "postgresql": Postgresql, "mariadb": Mariadb}
TYPES = {"sqlite": keyed.SQLITE, "postgresql": keyed.POSTGRESQL, "mariadb": keyed.MARIADB}
BEFORE = {"sqlite": "", "postgresql": keyed.BEFORE, "mariadb": ""}
NUMBERS = {"sqlite": "REAL", "postgresql": "numeric", "mariadb": "decimal(40,20)"}
TEXTS = {"sqlite": "TEXT", "postgresql": "text", "mariadb": "varchar(20) COLLATE utf8mb4_nopad_bin"}


@pytest.fixture(scope="module", params=["sqlite", "postgresql", pytest.param("mariadb", marks=needs_mariadb)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    name, folder = request.param, scratch()
    before = BEFORE[name]
    tables = keyed.columns(TYPES[name])
    known = routes(keyed.classified(tables, folder, DIALECTS[name], before))
    engine = ENGINES[name](folder, keyed.schema(tables, before))
    opened = [engine.open(number, 3, lambda _: None) for number in range(3)]
    keys = [Keys(known, server) for server in opened[:2]]
    yield World(tables, known, opened[:2], keys, Oracle(opened[2]), engine)
    for database in opened:
        database.close()
    engine.close()
    shutil.rmtree(folder, ignore_errors=True)


def dbms(world: World) -> Any:
    return next(name for name, kind in ENGINES.items() if isinstance(world.engine, kind))


def test_every_type_can_be_a_key(world: World) -> None:
    for table in world.tables:
        for name in (f"create_{table.name}", f"find_{table.name}"):
            assert world.known[name].keys == ["k"], table
            assert world.known[name].classed == "local", table
            assert list(world.known[name].columns["k"]) == [f"{table.name}.k"]


def check(world: World, table: Column, values: list[Any]) -> list[tuple[Any, Any] | RequestError]:
    """The law, for all pairs of values."""
    create, find = world.known[f"create_{table.name}"], world.known[f"find_{table.name}"]
    keys = world.keys
    forms = [form(keys[0], create, value) for value in values]
    for value, found in zip(values, forms, strict=True):
        for other in (form(keys[1], create, value), form(keys[1], find, value), form(keys[0], create, value)):
            assert isinstance(other, RequestError) == isinstance(found, RequestError), (table, value)
            assert isinstance(other, RequestError) or other[1] == found[1], (table, value)  # type: ignore[index]
    inserted = world.oracle.keys(table.name, values)
    executed = [value if isinstance(f, RequestError) else f[0] for value, f in zip(values, forms, strict=True)]
    compared = world.oracle.equal(table.name, executed)
    accepted = [(n, f[1]) for n, f in enumerate(forms) if not isinstance(f, RequestError)]
    for (one, here), (other, there) in itertools.combinations(accepted, 2):
        pair = (table, values[one], values[other])
        stored = inserted[one] is not None and inserted[one] == inserted[other]
        if stored or compared[one] & compared[other] or inserted[other] in compared[one]:
            assert here == there, pair
    kept = [f[0] for f in forms if not isinstance(f, RequestError)]
    again = world.oracle.keys(table.name, values + kept)  # the value that is executed is equal to the given one
    for (number, _), changed, key in zip(accepted, kept, again[len(values) :], strict=True):
        offset = again[number] is None and table.type.startswith("timestamp") and dbms(world) == "mariadb"
        assert again[number] == key or offset, (table, values[number], changed)  # MariaDB reads no offsets
    return forms


@pytest.mark.slow
def test_equal_values_have_one_server(world: World) -> None:
    for table in world.tables:
        forms = check(world, table, keyed.VALUES)
        assert sum(not isinstance(f, RequestError) for f in forms) >= 2, table


TOGETHER = {
    "postgresql": [
        ("integer", [11, 11.0]),
        ("bigint", [2**53, 2.0**53]),
        ("numeric", [11, 11.0, Decimal("11.0"), Decimal("11")]),
        ("numeric", [0.1, Decimal("0.1"), Decimal("0.10")]),
        ("numeric(10,2)", [1, Decimal("1.00"), 1.0]),
        ("double precision", [2**53, 2**53 + 1, 2.0**53]),
        ("double precision", [0.0, -0.0, 0]),
        ("double precision", [float("nan"), Decimal("NaN")]),
        ("char(3)", ["bob", "bob ", "bob  "]),
        (
            "uuid",
            [u for u in keyed.VALUES if str(u).strip("{}").replace("-", "").lower() == keyed.UUID.replace("-", "")],
        ),
        ("date", ["2019-12-31", "20191231", dt.date(2019, 12, 31)]),
        ("time", ["23:59", "23:59:00", dt.time(23, 59)]),
        ("timestamp", ["2019-12-31T23:59:59", "2019-12-31 23:59:59", dt.datetime(2019, 12, 31, 23, 59, 59)]),
        ("timestamptz", ["2019-12-31T23:59:59Z", "2020-01-01T05:29:59+05:30", "2019-12-31 18:59:59-05:00"]),
    ],
    "mariadb": [
        ("int", [11, 11.0, Decimal("11.0")]),
        ("boolean", [True, 1, 1.0]),
        ("bigint", [2**53, 2.0**53]),
        ("decimal(10,2)", [1, Decimal("1.00"), 1.0]),
        ("decimal(40,20)", [0.1, Decimal("0.1"), Decimal("0.10")]),
        ("double", [2**53, 2**53 + 1, 2.0**53]),
        ("double", [0.0, -0.0, 0]),
        ("char(3) COLLATE utf8mb4_bin", ["bob", "bob ", "bob  "]),
        ("varchar(40) COLLATE utf8mb4_bin", ["bob", "bob ", "bob  "]),
        ("uuid", [keyed.UUID, keyed.UUID.upper(), keyed.UUID.replace("-", "")]),
        ("date", ["2019-12-31", "20191231", dt.date(2019, 12, 31)]),
        ("datetime", ["2019-12-31T23:59:59", "2019-12-31 23:59:59", dt.datetime(2019, 12, 31, 23, 59, 59)]),
        ("timestamp", ["2019-12-31T23:59:59Z", "2020-01-01T05:29:59+05:30", "2019-12-31 18:59:59-05:00"]),
    ],
    "sqlite": [
        ("INTEGER", [11, 11.0]),
        ("INTEGER", [1, True]),
        ("REAL", [11, 11.0]),
        ("NUMERIC(10,2)", [0.0, -0.0, 0]),
    ],
}
REFUSED = {
    "postgresql": [
        ("integer", 11.3, "would store 11 "),
        ("integer", 2**31, "out of range"),
        ("integer", "11", "expected a number"),
        ("integer", True, "expected a number"),
        ("numeric(10,2)", 1.001, "would store 1 "),
        ("numeric", 0.1 + 0.2, "would store Decimal('0.3"),
        ("real", 0.1, "would store 0.1"),
        ("varchar(3)", "bob ", "would store 'bob'"),
        ("varchar(3)", "bobby", "would store 'bob'"),
        ("text", "a\0b", "NUL"),
        ("text", 11, "expected a string"),
        ("boolean", "true", "expected a boolean"),
        ("uuid", "bob", "expected a UUID"),
        ("date", "12/31/2019", "expected a date"),
        ("timestamp", "now", "expected a time"),
        ("timestamp", "2019-12-31T23:59:59+02:00", "without an offset"),
        ("timestamp(0)", "2019-12-31T23:59:59.4", "would store '2019-12-31T23:59:59'"),
        ("timestamptz", "2019-12-31T23:59:59", "with its offset"),
        ("bytea", "bob", "expected bytes"),
        ("mood", "OK", "invalid input value for enum"),
        ("text", ["bob"], "expected one value"),
    ],
    "mariadb": [
        ("int", 11.3, "would store 11 "),
        ("int", 2**31, "Out of range"),
        ("int", "11", "expected a number"),
        ("int unsigned", -1, "Out of range"),
        ("decimal(10,2)", 1.001, "would store 1 "),
        ("float", 0.1, "would store 0.1"),
        ("double", float("nan"), "expected a number"),
        ("varchar(3) COLLATE utf8mb4_bin", "bobby", "too long"),
        ("varchar(3) COLLATE utf8mb4_nopad_bin", "bob ", "would store 'bob'"),
        ("varchar(40) COLLATE utf8mb4_bin", 11, "expected a string"),
        ("uuid", "bob", "expected a UUID"),
        ("date", "12/31/2019", "expected a date"),
        ("datetime", "now", "expected a time"),
        ("datetime", "2019-12-31T23:59:59+02:00", "without an offset"),
        ("datetime", "2019-12-31T23:59:59.4", "would store '2019-12-31 23:59:59'"),
        ("timestamp", "2019-12-31T23:59:59", "with its offset"),
        ("binary(3)", b"a", "would store b'a"),
        ("varbinary(8)", "bob", "expected bytes"),
    ],
    "sqlite": [
        ("INTEGER", "11", "expected a number"),
        ("INTEGER", 2**63, "expected a number"),
        ("INTEGER", float("nan"), "would store None"),
        ("REAL", 2**53 + 1, "would store 9007199254740992.0"),
        ("TEXT", 11, "expected a string"),
        ("BLOB", "bob", "expected bytes"),
    ],
}


def test_spellings_of_one_value(world: World) -> None:
    kind = dbms(world)
    keys = world.keys[0]
    for written, values in TOGETHER[kind]:
        route = world.known[f"create_{world.table(written).name}"]
        found = [form(keys, route, value) for value in values]
        assert not any(isinstance(f, RequestError) for f in found), (written, found)
        assert len({f[1] for f in found}) == 1, (written, values, found)  # type: ignore[index]


def test_what_a_column_would_change_is_refused(world: World) -> None:
    kind = dbms(world)
    keys = world.keys[0]
    for written, value, said in REFUSED[kind]:
        route = world.known[f"create_{world.table(written).name}"]
        found = form(keys, route, value)
        assert isinstance(found, RequestError), (written, value, found)
        assert found.status == 400
        assert said in found.message + " "
        assert f"k={value!r}" in found.message
        assert "send a value that the database stores unchanged" in found.hint
        with pytest.raises(RequestError):  # the second answer comes from the cache
            keys.stored(route, {"k": value})


whole = st.integers() | st.sampled_from([2**n + d for n in (15, 31, 53, 63) for d in (-1, 0, 1)])
tenths = st.builds(lambda n, e: Decimal(n).scaleb(-e), st.integers(-(10**6), 10**6), st.integers(0, 8))
texts = st.text(st.sampled_from("abAé́ß \u3000ﬁ1.e-"), max_size=5)
instants = st.datetimes(dt.datetime(1, 2, 1), dt.datetime(9999, 11, 1))
zones = st.builds(lambda m: dt.timezone(dt.timedelta(minutes=m)), st.integers(-900, 900))
aware = st.builds(lambda t, z: t.replace(tzinfo=z), instants, zones)
uuids = st.uuids().flatmap(lambda u: st.sampled_from([u, str(u), str(u).upper(), "{" + u.hex + "}"]))
moments = instants | aware | st.dates() | st.times()
anything = st.one_of(
    whole, st.floats(), tenths, whole.map(float), tenths.map(float), tenths.map(str), texts, st.booleans(), uuids,
    moments, moments.map(str), moments.map(lambda m: m.isoformat()), st.binary(max_size=3),
    st.sampled_from(keyed.VALUES[:-2]),
)  # fmt: skip


def respelled(value: Any) -> st.SearchStrategy[Any]:
    """Values that a DBMS may regard as equal to a value."""
    found = [value, str(value)]
    if isinstance(value, str):
        found += [value + " ", value.rstrip(), value.upper(), value.lower(), "{" + value + "}", value.replace("T", " ")]
    if isinstance(value, bool):
        found += [int(value), float(value), str(value).lower()]
    elif isinstance(value, int | float | Decimal):
        with_float = float(value) if abs(value) < 10**300 else value
        found += [with_float, Decimal(value), Decimal(str(value))]
        if value == value and abs(value) < 10**300:
            found += [int(value), round(value), round(float(value), 2), Decimal(value).normalize()]
    if isinstance(value, dt.datetime):
        found += [value.isoformat(), value.replace(microsecond=0)]
        if value.tzinfo is not None:
            return st.sampled_from(found) | zones.map(value.astimezone) | zones.map(lambda z: str(value.astimezone(z)))
    return st.sampled_from(found)


groups = st.lists(anything.flatmap(lambda v: st.lists(respelled(v), min_size=1, max_size=4)), min_size=1, max_size=5)


@pytest.mark.slow
@settings(deadline=None)
@given(data=st.data())
def test_random_values(world: World, data: st.DataObject) -> None:
    table = data.draw(st.sampled_from(world.tables))
    values = [v for group in data.draw(groups) for v in group]
    check(world, table, values)


@pytest.mark.slow
@settings(deadline=None)
@given(data=st.data())
def test_two_servers_never_insert_one_key(world: World, data: st.DataObject) -> None:
    """Each value goes to the server that accepts it. Then all rows of both servers fit into one table."""
    table = data.draw(st.sampled_from(world.tables))
    values = [v for group in data.draw(groups) for v in group]
    create = world.known[f"create_{table.name}"]
    keys = world.keys
    for number, oracle in enumerate(Oracle(server) for server in world.servers):
        accepted = []
        for value in values:
            arguments: dict[str, Any] = {"k": value, "n": number}
            forms = arguments
            try:
                if not keys[number].certain(create, arguments):
                    arguments, forms = keys[number].stored(create, arguments)
            except RequestError:
                continue
            if place(create, forms, 2, number)[0] == number:
                accepted.append(arguments["k"])
        oracle.keys(table.name, accepted)
    rows = [world.engine.rows(n, f"SELECT k FROM {table.name}") for n in range(2)]
    stored = [k for found in rows for (k,) in found]
    classes = world.oracle.keys(table.name, stored)
    assert None not in classes
    assert len(set(classes)) == len(stored), (table, rows)


def anything_goes(self: Any, domain: Domain) -> Any:
    return lambda value: True


def by_spelling(form: Any, servers: int) -> int:
    return zlib.crc32(repr(form).encode()) % servers


@pytest.mark.parametrize("instead", [anything_goes, by_spelling])
def test_the_law_detects_mutants(instead: Any, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = dbms(world)
    if kind == "mariadb" and instead is by_spelling:
        pytest.skip("MariaDB shows equal numbers in one spelling")
    if instead is anything_goes:
        monkeypatch.setattr(type(world.servers[0].values()), "certain", instead)
    else:
        monkeypatch.setattr(keyed, "server_of", instead)
    mutant = world._replace(keys=[Keys(world.known, server) for server in world.servers])
    written = NUMBERS[kind]
    with pytest.raises(AssertionError):
        check(mutant, world.table(written), [v for v in keyed.VALUES if isinstance(v, int | float | Decimal)])


def test_types_that_are_no_keys(world: World, tmp_path: Path) -> None:
    """The analysis does not route by them. If the analysis saw another type, the server does not start."""
    kind = dbms(world)
    dialect, before, key = DIALECTS[kind], BEFORE[kind], TEXTS[kind]
    tables = keyed.columns(keyed.NO_KEYS[kind])
    found = keyed.classified(tables, tmp_path, dialect, before)
    assert all("k" not in o.keys for o in found.operations)
    assert all(o.classed == "global" for o in found.operations if o.name.startswith("create"))
    believed = routes(keyed.classified([Column(t.name, key) for t in tables], tmp_path, dialect))
    engine = type(world.engine)(tmp_path, keyed.schema([t for t in tables if t.type != "point"], before))
    database = engine.open(0, 2, lambda _: None)
    try:
        for table in tables:
            name = f"create_{table.name}"
            with pytest.raises(UsageError, match=rf"create_{table.name} is routed by k, but") as error:
                Keys({name: believed[name]}, database)
            if "the database has no column" not in str(error.value):
                hint = str(error.value.hint)
                assert re.match(rf".*declare {table.name}\.k (as \S|without a type).*, and analyze it again", hint)
                assert " in the database" in hint
                if re.search("citext|COLLATE|interval|email", table.type):
                    assert "a column of this type cannot be a key" in hint
    finally:
        database.close()
        engine.close()


def test_a_key_of_columns_with_different_types(tmp_path: Path) -> None:
    """Both columns store the value, or the key is refused; columns of two kinds make no key."""
    file = tmp_path / "a.sql"
    file.write_text(
        "CREATE TABLE a (k INTEGER PRIMARY KEY, s VARCHAR(3)); CREATE TABLE b (k NUMERIC(10, 2) PRIMARY KEY, s TEXT);\n"
        "CREATE TABLE c (k DOUBLE PRECISION PRIMARY KEY);\n"
        "-- transaction: both(k)\nINSERT INTO a (k) VALUES (:k); INSERT INTO b (k) VALUES (:k);\n"
        "-- transaction: mixed(k)\nINSERT INTO c (k) VALUES (:k); DELETE FROM b WHERE k = :k;\n",
        encoding="utf-8",
    )
    known = routes(analyze(file, dialect="postgres"))
    assert (known["both"].keys, known["mixed"].keys) == (["k"], [])
    assert known["both"].columns == {"k": {"a.k": "INT", "b.k": "DECIMAL(10, 2)"}}
    engine = Postgresql(tmp_path, file.read_text(encoding="utf-8").partition("--")[0])
    database = engine.open(0, 2, lambda _: None)
    try:
        keys = Keys(known, database)
        assert keys.stored(known["both"], {"k": 11.0}) == ({"k": 11}, {"k": 11})
        for value in (11.5, Decimal("11.25"), 1.001):
            with pytest.raises(RequestError, match="would store"):
                keys.stored(known["both"], {"k": value})
    finally:
        database.close()
        engine.close()


@pytest.mark.parametrize(
    "declared",
    [
        "INT",
        "CHARINT",
        "varchar(20)",
        "CLOB",
        "XBLOB",
        "BLOBINT",
        "",
        "REAL",
        "FLOATING POINT",
        "DOUBLE",
        "DECIMAL",
        "STRING",
    ],
)
def test_affinities_are_those_of_sqlite(declared: str) -> None:
    import apsw

    db = apsw.Connection(":memory:")
    db.execute(f"CREATE TABLE t (x {declared})")
    for value in ("7", 7, 7.5):
        db.execute("INSERT INTO t VALUES (?)", (value,))
    found = tuple(kind for (kind,) in db.execute("SELECT typeof(x) FROM t ORDER BY rowid"))
    expected = {
        "INTEGER": ("integer", "integer", "real"),
        "NUMERIC": ("integer", "integer", "real"),
        "REAL": ("real", "real", "real"),
        "TEXT": ("text", "text", "text"),
        "BLOB": ("text", "integer", "real"),
    }
    assert found == expected[affinity(declared)]


CARTS = """
SCHEMA = "CREATE TABLE carts (id INTEGER PRIMARY KEY, n INTEGER); CREATE TABLE files (id UUID_TYPE PRIMARY KEY);"


def create(db, cart):
    db.execute("INSERT INTO carts (id, n) VALUES (?, 0)", (cart,))


def carts(db, cart):
    return db.execute("SELECT count(*) FROM carts WHERE id = ?", (cart,)).fetchone()[0]


def upload(db, file):
    db.execute("INSERT INTO files (id) VALUES (?)", (file,))
    return file
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_servers_execute_the_stored_form_or_refuse(kind: str, tmp_path: Path) -> None:
    """The processes as a client sees them: a key is created once, whichever server is asked, however it is spelled."""
    source = CARTS.replace("UUID_TYPE", "TEXT" if kind == "sqlite" else "UUID")
    file = tmp_path / "shop.py"
    file.write_text(source, encoding="utf-8")
    engine = Postgresql(tmp_path, source.split('"')[1])
    options: dict[str, Any] = {}
    if kind == "postgresql":
        options = {"db": kind, "dsns": [engine.dsn(n) for n in range(2)]}
    found = analyze(file, dialect="sqlite" if kind == "sqlite" else "postgres")
    urls = [f"http://127.0.0.1:{port}" for port in free_ports(2)]
    schema = source.split('"')[1]
    supervisor = Supervisor(Settings(str(file), routes(found), schema, urls, str(tmp_path), secret="s", **options))
    supervisor.start(wait=PATIENCE)
    try:
        client = Client(urls, patience=PATIENCE)

        def refused(operation: str, at: int, **parameters: Any) -> tuple[int, str]:
            with pytest.raises(CallError) as error:
                client.send(operation, parameters, at=at)
            return error.value.status, error.value.message

        client.call("create", cart=11)
        for at in range(2):
            assert refused("create", at, cart=11)[0] == 422  # the primary key exists
            assert refused("create", at, cart=11.0)[0] == 422
            assert client.send("carts", {"cart": 11.0}, at=at).reply == 1
            assert refused("create", at, cart="11")[0] == 400
        if kind == "postgresql":
            for at in range(2):
                status, said = refused("create", at, cart=11.3)
                assert (status, "would store 11" in said, "cart=11.3" in said) == (400, True, True)
            assert client.call("upload", file=keyed.UUID.upper()) == keyed.UUID
            for at in range(2):
                for spelled in (keyed.UUID, "{" + keyed.UUID + "}", keyed.UUID.replace("-", "")):
                    assert refused("upload", at, file=spelled)[0] == 422
        client.close()
    finally:
        supervisor.stop()
        engine.close()
