"""Records the requests of a web application in the process of its tests: their parameters, and the statements they execute.

`plait gyro record` sets PLAIT_GYRO_RECORD to a folder, and makes Python import this file first (`sitecustomize.py` in
a folder of PYTHONPATH). It waits until a framework and a driver of a database are imported. Then it wraps the entry
of the application and the cursors of the driver. The application and its tests see no difference. Each process appends
one line of JSON per request to a file of its own.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from plait.gyro.web.hooks import after_import

FOLDER = "PLAIT_GYRO_RECORD"
"""The environment variable with the folder for recorded requests."""
_CONTROL = {"BEGIN", "COMMIT", "END", "RELEASE", "ROLLBACK", "SAVEPOINT", "PRAGMA", "SET", "SHOW"}
_LOCK = threading.Lock()


class Execution:
    """One execution of a statement: its values, and what it returned."""

    def __init__(self, sql: str, parameters: Any) -> None:
        self.sql = sql
        self.parameters = parameters
        self.names: list[str] = []
        self.rows: list[Sequence[Any]] = []
        self.last: int | None = None


class Trace:
    """The executions of one request."""

    def __init__(self) -> None:
        self.executions: list[Execution] = []
        self.schema = ""
        self.uuids: list[str] = []


CURRENT: ContextVar[Trace | None] = ContextVar("the request that is recorded", default=None)


@contextmanager
def around(framework: Any, request: Any) -> Iterator[None]:
    """Record one request."""
    from plait.gyro.web.requests import endpoint, parameters

    if CURRENT.get() is not None:  # a request inside of a request
        yield
        return
    match = framework.match(request)
    trace = Trace()
    token = CURRENT.set(trace)
    try:
        yield
    finally:
        CURRENT.reset(token)
        if trace.executions:
            _write(
                {
                    "endpoint": endpoint(request, match),
                    "given": parameters(request, match),
                    "schema": trace.schema,
                    "uuids": trace.uuids,
                    "executions": [
                        {
                            "sql": e.sql,
                            "parameters": _plain(e.parameters),
                            "names": e.names,
                            "rows": _plain(e.rows),
                            "last": e.last,
                        }
                        for e in trace.executions
                    ],
                }
            )


def _plain(value: Any) -> Any:
    """A value for JSON. Values that are neither numbers nor text become text that equals no parameter."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return {"other": repr(value)}


def _write(line: dict[str, Any]) -> None:
    import msgspec

    file = Path(os.environ[FOLDER]) / f"{os.getpid()}.jsonl"
    with _LOCK, file.open("ab") as out:
        out.write(msgspec.json.encode(line) + b"\n")


def begin(sql: Any, parameters: Any) -> list[Execution]:
    """Note a statement of the current request, once per set of parameters."""
    trace = CURRENT.get()
    if trace is None or not isinstance(sql, str) or sql.split(None, 1)[:1] == []:
        return []
    if sql.split(None, 1)[0].upper().rstrip(";") in _CONTROL:
        return []
    made = [Execution(sql, each) for each in parameters]
    trace.executions += made
    return made


# -- SQLite ----------------------------------------------------------------------------------------------------------


class RecordingCursor(sqlite3.Cursor):
    """A cursor that notes what it executes."""

    _noted: Execution | None = None

    def execute(self, sql: Any, parameters: Any = (), /) -> Any:
        """Execute a statement."""
        noted = begin(sql, [parameters])
        done = super().execute(sql, parameters)
        self._after(noted)
        return done

    def executemany(self, sql: Any, parameters: Iterable[Any], /) -> Any:
        """Execute a statement several times."""
        rows = list(parameters)
        begin(sql, rows)
        self._noted = None
        return super().executemany(sql, rows)

    def _after(self, noted: list[Execution]) -> None:
        self._noted = noted[0] if noted else None
        if self._noted is None:
            return
        trace = CURRENT.get()
        if trace is not None and not trace.schema:
            trace.schema = _schema(self.connection)
        self._noted.names = [str(d[0]) for d in self.description or ()]
        self._noted.last = self.lastrowid

    def fetchone(self) -> Any:
        """The next row."""
        return self._seen([super().fetchone()])[0]

    def fetchmany(self, size: int | None = None) -> Any:
        """The next rows."""
        return self._seen(super().fetchmany(self.arraysize if size is None else size))

    def fetchall(self) -> Any:
        """All rows."""
        return self._seen(super().fetchall())

    def __next__(self) -> Any:
        return self._seen([super().__next__()])[0]

    def _seen(self, rows: list[Any]) -> list[Any]:
        if self._noted is not None:
            self._noted.rows += [tuple(r) for r in rows if r is not None]
        return rows


class RecordingConnection(sqlite3.Connection):
    """A connection whose cursors note what they execute."""

    def cursor(self, factory: Any = sqlite3.Cursor) -> Any:
        """A new cursor."""
        return super().cursor(_recording(factory))

    def execute(self, sql: Any, parameters: Any = (), /) -> Any:
        """Execute a statement on a new cursor."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: Any, parameters: Iterable[Any], /) -> Any:
        """Execute a statement several times."""
        return self.cursor().executemany(sql, parameters)


_FACTORIES: dict[Any, Any] = {sqlite3.Cursor: RecordingCursor}


def _recording(factory: Any) -> Any:
    """A class of cursors that records below the given one: it sees the statement as the database does."""
    if factory not in _FACTORIES:
        _FACTORIES[factory] = type(f"Recording{factory.__name__}", (factory, RecordingCursor), {})
    return _FACTORIES[factory]


def _schema(connection: sqlite3.Connection) -> str:
    query = (
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY rowid"
    )
    cursor = sqlite3.Connection.cursor(connection, sqlite3.Cursor)
    cursor.row_factory = None
    return "".join(f"{sql};\n" for (sql,) in sqlite3.Cursor.execute(cursor, query).fetchall())


def _sqlite() -> None:
    connect = sqlite3.connect

    def recording(*arguments: Any, **options: Any) -> Any:
        if len(arguments) < 6 and "factory" not in options:
            options["factory"] = RecordingConnection
        return connect(*arguments, **options)

    sqlite3.connect = recording
    sys.modules["sqlite3.dbapi2"].connect = recording  # type: ignore[attr-defined]


# -- frameworks ------------------------------------------------------------------------------------------------------


def _flask() -> None:
    from plait.gyro.web.flask_framework import install

    install(around)


def _starlette() -> None:
    from plait.gyro.web.starlette_framework import install

    install(around)


def _django() -> None:
    from plait.gyro.web.django_framework import install

    install(around)


_DRIVERS = {
    "psycopg": "PostgreSQL", "psycopg2": "PostgreSQL", "asyncpg": "PostgreSQL",
    "pymysql": "MariaDB", "MySQLdb": "MariaDB", "mysql.connector": "MariaDB",
}  # fmt: skip
"""Drivers whose statements are not recorded."""
DRIVERS = "drivers"
"""The file with the names of such drivers that were used."""


def _foreign(name: str) -> Callable[[], None]:
    """Note that a driver connects whose statements are not recorded."""

    def wrap() -> None:
        module = sys.modules[name]
        connect = module.connect

        def noted(*arguments: Any, **options: Any) -> Any:
            with _LOCK, (Path(os.environ[FOLDER]) / DRIVERS).open("a", encoding="utf-8") as out:
                out.write(f"{_DRIVERS[name]} (with {name})\n")
            return connect(*arguments, **options)

        module.connect = noted  # type: ignore[attr-defined]

    return wrap


_HOOKS: dict[str, Callable[[], None]] = {
    "flask": _flask,
    "starlette.applications": _starlette,
    "django.core.handlers.base": _django,
    **{name: _foreign(name) for name in _DRIVERS},
}
"""What to do when a module has been imported."""


def _uuids() -> None:
    """Note the UUIDs that requests make."""
    make = uuid.uuid4

    def noted() -> uuid.UUID:
        made = make()
        if (trace := CURRENT.get()) is not None:
            trace.uuids.append(made.hex)
        return made

    uuid.uuid4 = noted


def start() -> None:
    """Begin to record in this process."""
    _sqlite()
    _uuids()
    after_import(_HOOKS)
