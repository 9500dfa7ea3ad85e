"""Columns of every type as keys: an application for each type, values, and what a real DBMS says about them."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import psycopg
import pymysql

from plait.gyro.analysis import analyze
from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.databases.mariadb.connection import MariadbConnection, gone
from plait.gyro.belt.databases.mariadb.database import MariadbDatabase
from plait.gyro.belt.databases.postgresql.connection import PgConnection
from plait.gyro.belt.databases.postgresql.database import PostgresqlDatabase
from plait.gyro.belt.databases.sqlite.connection import SqliteConnection
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.keys import Keys
from plait.gyro.belt.routing import RequestError, Route, server_of
from plait.kernel.classification import Classification

POSTGRESQL = [
    *("smallint", "integer", "bigint", "numeric", "numeric(10,2)", "numeric(5,0)", "real", "double precision"),
    *("text", "varchar", "varchar(3)", "char(3)", 'text COLLATE "C"', "boolean", "uuid", "date", "time", "time(0)"),
    *("timestamp", "timestamp(0)", "timestamptz", "timestamptz(0)", "bytea", "mood"),
]
SQLITE = [
    *("INTEGER", "INT", "BIGINT", "NUMERIC(10,2)", "DECIMAL", "REAL", "DOUBLE PRECISION", "BOOLEAN"),
    *("TEXT", "VARCHAR(3)", "CHAR(3)", "TEXT COLLATE BINARY", "BLOB"),
]
MARIADB = [
    *("tinyint", "smallint", "int", "bigint", "int unsigned", "bigint unsigned", "decimal(10,2)", "decimal(5,0)"),
    *("decimal(40,20)", "float", "double", "boolean", "uuid", "date", "datetime", "datetime(3)", "datetime(6)"),
    *("timestamp", "timestamp(6)", "varbinary(8)", "binary(3)", "char(3) COLLATE utf8mb4_bin"),
    *("varchar(3) COLLATE utf8mb4_bin", "varchar(40) COLLATE utf8mb4_bin", "varchar(40) COLLATE utf8mb4_nopad_bin"),
    "varchar(3) COLLATE utf8mb4_nopad_bin",
]
NO_KEYS = {
    "mariadb": [
        *(
            "varchar(20)",
            "varchar(20) COLLATE utf8mb4_general_ci",
            "varchar(20) CHARACTER SET latin1",
            "enum('a', 'b')",
        ),
        *("char(3) COLLATE utf8mb4_nopad_bin", "time", "year", "bit(3)", "set('a', 'b')"),
    ],
    "postgresql": ["citext", "text COLLATE nearly", "interval", "timetz", "inet", "text[]", "email", "point"],
    "sqlite": ["TEXT COLLATE NOCASE", "TEXT COLLATE RTRIM", "STRING", "UUID", "DATE", ""],
}
"""Types whose values may be equal although they differ, or that are not known well enough."""
BEFORE = """
CREATE EXTENSION citext;
CREATE COLLATION nearly (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE DOMAIN email AS citext;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'Ok');
"""
UUID = "6a2f41a3-c54c-4ce8-92d2-0324e1c32e22"
_UTC = dt.UTC
_EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))
VALUES: list[Any] = [
    *(
        0,
        1,
        -1,
        7,
        11,
        12,
        32767,
        32768,
        -32768,
        2**31 - 1,
        2**31,
        2**53,
        2**53 + 1,
        2**63 - 1,
        2**63,
        -(2**63),
        10**30,
    ),
    *(0.0, -0.0, 1.0, 11.0, 11.3, 11.5, 0.1, 0.5, 0.1 + 0.2, 1e-7, 1.001, 1.003, 2.0**53, 2.0**63, 1e22, 1e300, 5e-324),
    *(float("nan"), float("inf"), -float("inf"), True, False),
    *(Decimal(n) for n in ("11", "11.0", "11.30", "1.001", "1.00", "0.1", "-0", "1E+2", "100", "NaN", "Infinity")),
    Decimal("0.1000000000000000055511151231257827021181583404541015625"),
    *(
        "",
        " ",
        "bob",
        "bob ",
        "bob  ",
        " bob",
        "bobby",
        "Bob",
        "11",
        "11.0",
        "011",
        " 11",
        "1e1",
        "0x0b",
        "true",
        "t",
        "a\0b",
    ),
    *("\u00e9", "e\u0301", "\u212b", "\u00c5", "ﬁ", "fi", "\U0001f600", "ß", "ss", "ok", "Ok", "OK", "sad", "sad "),
    *(UUID, UUID.upper(), "{" + UUID + "}", UUID.replace("-", ""), "{" + UUID.upper() + "}", uuid.UUID(UUID)),
    *("2019-12-31", "20191231", "12/31/2019", "31.12.2019", "2019-W01-1", "today", "now", "epoch", "infinity"),
    *("2019-12-31T23:59:59", "2019-12-31 23:59:59", "2019-12-31T23:59:59.4", "2019-12-31T23:59:59.4999999"),
    *("2019-12-31T23:59:59.123456", "2019-12-31T23:59:59.1234567", "2019-12-31T23:59:59Z", "2019-12-31T23:59:59+00:00"),
    *(
        "2020-01-01T05:29:59+05:30",
        "2019-12-31 23:59:59+00",
        "2019-12-31T18:59:59-05:00",
        "2019-12-31 00:00",
        "2019-12-31T00",
    ),
    *("23:59:59", "23:59", "23:59:00", "23:59:59.4", "24:00:00", "00:00", "23:59:59+02:00", "allballs"),
    *(dt.date(2019, 12, 31), dt.time(23, 59, 59), dt.time(23, 59, 59, 400000), dt.time(1, tzinfo=_UTC)),
    *(
        dt.datetime(2019, 12, 31, 23, 59, 59),
        dt.datetime(2019, 12, 31),
        dt.datetime(2019, 12, 31, 23, 59, 59, tzinfo=_UTC),
    ),
    *(dt.datetime(2020, 1, 1, 5, 29, 59, tzinfo=_EAST), dt.datetime(2019, 12, 31, 23, 59, 59, 400000)),
    *(b"", b"bob", b"b\x00b", b"bob ", b"\\x626f62", b"\xff\x00"),
    *([1], {"a": 1}),
]
MANY = 1_000_003
"""So many servers that different forms are rarely mapped to one server by chance."""


class Column(NamedTuple):
    """A table with one key of a type."""

    name: str
    type: str


def columns(types: Iterable[str]) -> list[Column]:
    return [Column(f"t{number}", written) for number, written in enumerate(types)]


def schema(tables: Iterable[Column], before: str = "") -> str:
    lines = [f"CREATE TABLE {t.name} (k {t.type} PRIMARY KEY, n BIGINT);" for t in tables]
    return before + "\n".join(lines)


def listing(tables: Iterable[Column]) -> str:
    """Two transactions for each table, as a list of SQL."""
    return "".join(
        f"-- transaction: create_{t.name}(k, n)\nINSERT INTO {t.name} (k, n) VALUES (:k, :n);\n"
        f"-- transaction: find_{t.name}(k)\nSELECT n FROM {t.name} WHERE k = :k;\n"
        for t in tables
    )


def classified(tables: list[Column], folder: Path, dialect: str, before: str = "") -> Classification:
    file = folder / f"{dialect}.sql"
    file.write_text(schema(tables, before) + "\n" + listing(tables), encoding="utf-8")
    return analyze(file, dialect=dialect)  # type: ignore[arg-type]


def form(keys: Keys, route: Route, value: Any) -> tuple[Any, Any] | RequestError:
    """The value to execute with, and the server among very many; or why it is refused."""
    arguments = {"k": value, "n": 0}
    if keys.certain(route, arguments):
        return value, server_of(value, MANY)
    try:
        changed, forms = keys.stored(route, arguments)
    except RequestError as error:
        return error
    return changed["k"], server_of(forms["k"], MANY)


class Oracle:
    """A real database that is asked which values are one key, with no code of keys: INSERT and WHERE decide."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def _connection(self) -> Any:
        if isinstance(self._database, SqliteDatabase):
            yield SqliteConnection(self._database._local, None)
        elif isinstance(self._database, MariadbDatabase):
            with self._database._connection("") as db:
                yield MariadbConnection(db)
        else:
            assert isinstance(self._database, PostgresqlDatabase)
            with self._database._connection("") as db:
                yield PgConnection(db)

    def keys(self, table: str, values: list[Any]) -> list[int | None]:
        """Insert all values in an empty table; for each, the number of the first one with the same key, or None."""
        with self._connection() as db:
            db.execute(f"DELETE FROM {table}")
            found: list[int | None] = []
            for number, value in enumerate(values):
                conflict = "ON CONFLICT (k) DO UPDATE SET"
                if isinstance(self._database, MariadbDatabase):
                    conflict = "ON DUPLICATE KEY UPDATE"
                upsert = f"INSERT INTO {table} (k, n) VALUES (?, ?) {conflict} n = {table}.n RETURNING n"
                rows = self._rows(db, upsert, (value, number))
                found.append(rows[0] if rows else None)
            return found

    def equal(self, table: str, values: list[Any]) -> list[set[int]]:
        """For each value, the rows that a comparison finds."""
        with self._connection() as db:
            return [set(self._rows(db, f"SELECT n FROM {table} WHERE k = ?", (value,))) for value in values]

    @staticmethod
    def _rows(db: Any, statement: str, parameters: tuple[Any, ...]) -> list[int]:
        try:
            return [row[0] for row in db.execute(statement, parameters).fetchall()]
        except (
            psycopg.Error,
            apsw.Error,
            pymysql.MySQLError,
            ArithmeticError,
            ValueError,
            TypeError,
            OSError,
        ) as error:
            if isinstance(error, psycopg.OperationalError) or (isinstance(error, pymysql.MySQLError) and gone(error)):
                raise
            return []
        except Exception as error:
            if type(error).__module__ != "sqlite3":
                raise
            return []
