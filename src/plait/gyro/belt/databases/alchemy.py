"""SQLAlchemy for the functions of the application: real connections, engines and sessions on top of `dbapi.py`.

SQLAlchemy creates the SQL and converts values. It executes on a connection of `dbapi.py`, so the server controls
updates, ids and transactions as usual. Savepoints (`begin_nested`) work. A Session of the ORM is flushed when the
function returns.
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
from sqlalchemy.dialects.mysql.pymysql import MySQLDialect_pymysql
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import ArgumentError, CompileError, StatementError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateIndex, CreateTable

from plait.gyro.belt.databases.dbapi import Connection
from plait.gyro.belt.databases.mariadb.connection import MODE
from plait.gyro.belt.databases.mariadb.limits import OLDEST
from plait.gyro.belt.records import OperationError
from plait.kernel.errors import UsageError

Kind = Literal["dbapi", "connection", "engine", "session"]
"""The kind of connection that a function takes."""
_CURRENT: ContextVar[Connection] = ContextVar("the connection of the current operation")
_LEVEL = "SERIALIZABLE"

if TYPE_CHECKING:
    from sqlalchemy.engine.default import DefaultDialect as _Dialect
else:
    _Dialect = object


class _Lent(_Dialect):
    """Replaces what dialects do with their own connections."""

    supports_server_side_cursors = False

    def on_connect(self) -> Any:
        return None

    def get_default_isolation_level(self, dbapi_conn: Any) -> Any:
        return _LEVEL

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        return _LEVEL

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        if level != _LEVEL:
            raise ArgumentError(f"isolation level {level} in an operation: only {_LEVEL} is possible")

    def do_savepoint(self, connection: Any, name: str) -> None:
        connection.connection.control(f"SAVEPOINT {name}")

    def do_rollback_to_savepoint(self, connection: Any, name: str) -> None:
        connection.connection.control(f"ROLLBACK TO SAVEPOINT {name}")

    def do_release_savepoint(self, connection: Any, name: str) -> None:
        connection.connection.control(f"RELEASE SAVEPOINT {name}")


class LentSqlite(_Lent, SQLiteDialect_pysqlite):
    """SQLite, with the exceptions of the module sqlite3."""

    supports_statement_cache = True


class LentPostgresql(_Lent, PGDialect_psycopg):
    """PostgreSQL, with psycopg."""

    supports_statement_cache = True


class LentMariadb(_Lent, MySQLDialect_pymysql):
    """MariaDB, with pymysql. It asks the server nothing: the settings of its connections are known."""

    supports_statement_cache = True
    supports_native_uuid = True
    _allows_uuid_binds = True
    name = "mariadb"

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "is_mariadb": True})

    def initialize(self, connection: Any) -> None:
        self.server_version_info = OLDEST
        self._sql_mode, self._connection_charset, self._server_ansiquotes, self._casing = MODE, "utf8mb4", False, 0
        self._initialize_mariadb(connection)


for _name, _class in (("sqlite", LentSqlite), ("postgresql", LentPostgresql), ("mariadb", LentMariadb)):
    registry.register(f"{_name}.plait", __name__, _class.__name__)


@functools.cache
def _engine(dialect: str) -> sqlalchemy.Engine:
    """The engine of this process. It always connects to the connection of the current operation."""
    return lent_engine(dialect, _current, sqlalchemy.create_engine, pool_reset_on_return=None)


def lent_engine(
    dialect: str, connect: Callable[[], Any], create: Callable[..., sqlalchemy.Engine], **options: Any
) -> sqlalchemy.Engine:
    """A new engine that connects to what `connect` returns. `create` is SQLAlchemy's create_engine."""
    if dialect == "postgresql":
        options["use_native_hstore"] = False
    return create(f"{dialect}+plait://", creator=connect, poolclass=NullPool, **options)


def _current() -> Any:
    try:
        return _CURRENT.get()
    except LookupError:
        raise OperationError("EngineError", "the engine is used outside of an operation") from None


def wanted(function: Callable[..., Any], names: Iterable[str]) -> dict[str, Kind]:
    """The kind of each connection: by its annotation, or SQLAlchemy if the module of the function uses SQLAlchemy."""
    function = inspect.unwrap(function)
    around = getattr(function, "__globals__", {})
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        hints = {}
    return {name: _kind(name, hints.get(name), around) for name in names}


def _kind(name: str, annotation: Any, around: Mapping[str, Any]) -> Kind:
    if annotation is None:
        known = name if any(_from_sqlalchemy(v) or _from_sqlalchemy(type(v)) for v in around.values()) else None
    else:
        parts = (annotation, *typing.get_args(annotation))  # Connection | None
        known = next((getattr(p, "__name__", name) for p in parts if _from_sqlalchemy(p)), None)
    if known is None:
        return "dbapi"
    return "engine" if "engine" in known.lower() else "session" if "session" in known.lower() else "connection"


def _from_sqlalchemy(value: Any) -> bool:
    """Whether SQLAlchemy defines this object."""
    where = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(where, str) and where.partition(".")[0] == "sqlalchemy"


@contextmanager
def lent(connection: Connection, kinds: Mapping[str, Kind]) -> Iterator[dict[str, Any]]:
    """The connections of a function, open while it runs."""
    if not connection.dialect:
        raise OperationError("EngineError", "SQLAlchemy is not supported with this DBMS")
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
                each.commit()  # otherwise an open transaction would be rolled back
    except StatementError as error:
        raise OperationError(type(error).__name__, str(error.orig or error)) from error
    finally:
        _CURRENT.reset(token)


def ddl(module: ModuleType, dialect: str) -> str:
    """CREATE statements for the Tables of an application; empty if it has no Tables."""
    modules = [m for n, m in sys.modules.items() if n == module.__name__ or n.startswith(f"{module.__name__}.")]
    known = [v for m in modules for v in vars(m).values()]
    found = {id(m): m for v in known if isinstance(m := getattr(v, "metadata", v), sqlalchemy.MetaData)}
    tables = [t for metadata in found.values() for t in metadata.sorted_tables]
    parts: list[Any] = [CreateTable(t) for t in tables]
    parts += [CreateIndex(i) for t in tables for i in sorted(t.indexes, key=lambda i: str(i.name))]
    try:
        return "".join(f"{str(part.compile(dialect=_engine(dialect).dialect)).strip()};\n" for part in parts)
    except CompileError as error:
        raise UsageError(
            f"SQLAlchemy cannot write the schema for {dialect}: {error}",
            hint="correct the Tables: in MariaDB, a String needs a length",
        ) from None
