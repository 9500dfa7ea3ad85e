"""SQLAlchemy for the application's functions: real connections, engines and sessions, over those of the middleware.

SQLAlchemy makes the SQL and converts the values; what it executes goes to a connection of `dbapi.py`, so updates, ids and
transactions are the middleware's as ever. Savepoints (`begin_nested`) are real. What a Session of the ORM still holds is
flushed when the function has returned.
"""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import sqlalchemy
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import ArgumentError, StatementError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateIndex, CreateTable

from plait.gyro.belt.databases.dbapi import Connection
from plait.gyro.belt.records import OperationError

Kind = Literal["dbapi", "connection", "engine", "session"]
"""What a function wants to be given."""
_CURRENT: ContextVar[Connection] = ContextVar("the connection of the operation that is executed")
_LEVEL = "SERIALIZABLE"

if TYPE_CHECKING:
    from sqlalchemy.engine.default import DefaultDialect as _Dialect
else:
    _Dialect = object


class _Lent(_Dialect):
    """What dialects would do with a connection of their own."""

    supports_server_side_cursors = False

    def on_connect(self) -> Any:
        return None

    def get_default_isolation_level(self, dbapi_conn: Any) -> Any:
        return _LEVEL

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        return _LEVEL

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        if level != _LEVEL:
            raise ArgumentError(f"isolation level {level} in an operation: operations are executed at {_LEVEL}")

    def do_savepoint(self, connection: Any, name: str) -> None:
        connection.connection.control(f"SAVEPOINT {name}")

    def do_rollback_to_savepoint(self, connection: Any, name: str) -> None:
        connection.connection.control(f"ROLLBACK TO SAVEPOINT {name}")

    def do_release_savepoint(self, connection: Any, name: str) -> None:
        connection.connection.control(f"RELEASE SAVEPOINT {name}")


class LentSqlite(_Lent, SQLiteDialect_pysqlite):
    """SQLite, with the exceptions of Python's sqlite3."""

    supports_statement_cache = True


class LentPostgresql(_Lent, PGDialect_psycopg):
    """PostgreSQL, with psycopg."""

    supports_statement_cache = True


for _name, _class in (("sqlite", LentSqlite), ("postgresql", LentPostgresql)):
    registry.register(f"{_name}.plait", __name__, _class.__name__)


@functools.cache
def _engine(dialect: str) -> sqlalchemy.Engine:
    """The engine of this process: whoever connects gets the connection of the operation that runs."""
    options = {"use_native_hstore": False} if dialect == "postgresql" else {}
    return sqlalchemy.create_engine(
        f"{dialect}+plait://", creator=_current, poolclass=NullPool, pool_reset_on_return=None, **options
    )


def _current() -> Any:
    try:
        return _CURRENT.get()
    except LookupError:
        raise OperationError("EngineError", "the engine of an operation is used outside of it") from None


def wanted(function: Callable[..., Any], names: Iterable[str]) -> dict[str, Kind]:
    """What the connections of a function are: as annotated, or of SQLAlchemy if the function's module has anything of it."""
    function = inspect.unwrap(function)
    around = getattr(function, "__globals__", {})
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        hints = {}
    return {name: _kind(name, hints.get(name), around) for name in names}


def _kind(name: str, annotation: Any, around: Mapping[str, Any]) -> Kind:
    if annotation is None:
        said = name if any(_theirs(v) or _theirs(type(v)) for v in around.values()) else None
    else:
        parts = (annotation, *typing.get_args(annotation))  # Connection | None
        said = next((getattr(p, "__name__", name) for p in parts if _theirs(p)), None)
    if said is None:
        return "dbapi"
    return "engine" if "engine" in said.lower() else "session" if "session" in said.lower() else "connection"


def _theirs(value: Any) -> bool:
    """Whether something is of SQLAlchemy."""
    where = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(where, str) and where.partition(".")[0] == "sqlalchemy"


@contextmanager
def lent(connection: Connection, kinds: Mapping[str, Kind]) -> Iterator[dict[str, Any]]:
    """The connections of a function, for as long as it runs."""
    if not connection.dialect:
        raise OperationError("EngineError", "SQLAlchemy does not run on this DBMS here")
    connection.native = True
    engine = _engine(connection.dialect)
    token = _CURRENT.set(connection)
    try:
        with ExitStack() as stack:
            given: dict[str, Any] = {}
            ended: list[sqlalchemy.Connection | Session] = []
            for name, kind in kinds.items():
                if kind in ("dbapi", "engine"):
                    given[name] = connection if kind == "dbapi" else engine
                    continue
                made = Session(engine) if kind == "session" else engine.connect()
                stack.callback(made.close)
                given[name] = made
                ended.append(made)
            yield given
            for each in ended:
                each.commit()  # what is left open would be rolled back
    except StatementError as error:
        raise OperationError(type(error).__name__, str(error.orig or error)) from error
    finally:
        _CURRENT.reset(token)


def ddl(module: ModuleType, dialect: str) -> str:
    """CREATE statements for the Tables of an application; none if it has none."""
    modules = [m for n, m in sys.modules.items() if n == module.__name__ or n.startswith(f"{module.__name__}.")]
    known = [v for m in modules for v in vars(m).values()]
    found = {id(m): m for v in known if isinstance(m := getattr(v, "metadata", v), sqlalchemy.MetaData)}
    tables = [t for metadata in found.values() for t in metadata.sorted_tables]
    parts: list[Any] = [CreateTable(t) for t in tables]
    parts += [CreateIndex(i) for t in tables for i in sorted(t.indexes, key=lambda i: str(i.name))]
    return "".join(f"{str(part.compile(dialect=_engine(dialect).dialect)).strip()};\n" for part in parts)
