"""Lends the connection of an operation to an unmodified application.

`create_engine` of SQLAlchemy and the database backend of Django are replaced before the application is imported. So all
engines connect to the connection of the current operation, whatever database the application names. While the application
starts, they connect to a new scratch database with the initial tables and rows, which no request sees. Later, they refuse
to connect outside of requests, for example in a thread that a request has started: its statements would be lost.
"""

from __future__ import annotations

import importlib
import sqlite3
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from plait.gyro.belt.databases.dbapi import Connection
from plait.gyro.belt.records import OperationError
from plait.gyro.belt.routing import server_of
from plait.gyro.web.hooks import after_import

_KEPT = {"echo", "execution_options", "hide_parameters", "json_deserializer", "json_serializer", "logging_name"}
"""The options of create_engine that do not concern connections."""
_CURRENT: ContextVar[Connection | None] = ContextVar("the connection of the current request", default=None)
_SCHEMA: list[str] = []
_STARTED = threading.Event()
"""Set when the application has started."""
_BACKEND = "plait.gyro.web.django_backend.base"


class Scratch(sqlite3.Connection):
    """The scratch database. It has the methods of a connection of an operation that SQLAlchemy needs."""

    native = True

    def control(self, sql: str) -> None:
        """Execute a statement for savepoints."""
        self.execute(sql)


def install(dialect: str, schema: str, *, server: int = 0, servers: int = 1) -> None:
    """Prepare this process, before the application is imported."""
    _SCHEMA[:] = [schema] if dialect == "sqlite" else []
    _forbid()
    _uuids(server, servers)
    after_import({"sqlalchemy.engine.create": lambda: _sqlalchemy(dialect), "django.db.utils": _django})


def _django() -> None:
    sys.modules["django.db.utils"].load_backend = lambda _: importlib.import_module(_BACKEND)  # type: ignore[attr-defined]


def _sqlalchemy(dialect: str) -> None:
    original = sys.modules["sqlalchemy.engine.create"].create_engine

    def connect() -> Any:
        return current() or scratch()

    def create_engine(_url: Any = None, /, **options: Any) -> Any:
        from plait.gyro.belt.databases.alchemy import lent_engine

        return lent_engine(dialect, connect, original, **{n: v for n, v in options.items() if n in _KEPT})

    for name in ("sqlalchemy.engine.create", "sqlalchemy.engine", "sqlalchemy"):
        sys.modules[name].create_engine = create_engine  # type: ignore[attr-defined]


def started() -> None:
    """The application has started. From now on, it uses its database only in requests."""
    _STARTED.set()


def scratch() -> Scratch:
    """A new scratch database."""
    if _STARTED.is_set():
        raise OperationError(
            "EngineError",
            "the application uses its database outside of a request, for example in a thread of its own: "
            "use it in the thread of the request",
        )
    made = _connect(":memory:", factory=Scratch, check_same_thread=False)
    for ddl in _SCHEMA:
        made.executescript(ddl)
    return made  # type: ignore[no-any-return]


_connect: Callable[..., Any] = sqlite3.connect


def _forbid() -> None:
    """Forbid requests to open a database of their own: the server would not see what they do there."""

    def connect(*arguments: Any, **options: Any) -> Any:
        if current() is not None:
            raise OperationError("EngineError", "the application opens a database of its own in a request")
        return _connect(*arguments, **options)

    sqlite3.connect = connect
    sys.modules["sqlite3.dbapi2"].connect = connect  # type: ignore[attr-defined]


def _uuids(server: int, servers: int) -> None:
    """Let requests make only UUIDs that are mapped to this server, as the ids that its DBMS generates."""
    make = uuid.uuid4

    def mapped() -> uuid.UUID:
        found = current()
        made = make()
        while found is not None and server_of(made.hex, servers) != server:
            made = make()
        if found is not None and found.watch is not None:
            found.watch.made(made.hex)
        return made

    uuid.uuid4 = mapped


@contextmanager
def inside(connection: Connection) -> Iterator[None]:
    """Lend a connection to the application while it answers a request."""
    connection.native = True
    token = _CURRENT.set(connection)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> Connection | None:
    """The connection of the current request; None outside of requests."""
    return _CURRENT.get()
