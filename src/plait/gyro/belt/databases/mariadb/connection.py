"""Connections to MariaDB: their addresses and settings, and DB-API connections for functions of the application.

A connection has fixed settings, so that statements mean what the analysis says: a strict SQL mode, UTC, and ids with the
remainder of the server. An application may only use queries, INSERT, UPDATE, DELETE and REPLACE. All other statements of
MariaDB change the session, commit implicitly, or read and write without locks (HANDLER, LOAD DATA, CALL, XA, …).
"""

from __future__ import annotations

import datetime
import functools
import re
import socket
import urllib.parse
from collections.abc import Iterable
from typing import Any

from plait.gyro.belt.databases.dbapi import Connection, Cursor
from plait.gyro.belt.databases.placeholders import placeholders
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("serve"):
    import pymysql
    from pymysql.constants import CLIENT, CR
    from pymysql.converters import conversions, escape_datetime

Db = Any
"""A connection of pymysql."""
_CONNECT = 5.0
"""How long to wait for a connection, in seconds."""
CONFLICTS = (1205, 1213, 1020)
"""A lock that is not granted in time, a deadlock, and a row that was changed meanwhile: the transaction runs again."""
GONE = (1040, 1053, 1152, 1184, 1927)
"""Errors of the server that are not about a statement: too many connections, a shutdown, a connection that was killed."""
MODE = (
    "STRICT_ALL_TABLES,STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO"
)
"""The SQL mode. Without NO_AUTO_VALUE_ON_ZERO, MariaDB would generate an id for the id 0."""
_OPTIONS = {"unix_socket": "unix_socket", "ssl_ca": "ssl_ca", "ssl_cert": "ssl_cert", "ssl_key": "ssl_key"}
_SHOWN = "mariadb://USER:PASSWORD@HOST:PORT/DATABASE, or mariadb://USER@/DATABASE?unix_socket=PATH"
TOKEN = re.compile(
    r"""'(?:\\.|''|[^'\\])*'|"(?:\\.|""|[^"\\])*"|`[^`]*`|--(?=\s|$)[^\n]*|\#[^\n]*|/\*.*?\*/""", re.DOTALL
)
"""Strings, quoted names and comments."""
_ALLOWED = ("SELECT", "WITH", "VALUES", "INSERT", "UPDATE", "DELETE", "REPLACE")
_QUERIES = ("SELECT", "WITH", "VALUES")
_LOCKS = re.compile(r"\bFOR\s+UPDATE\b|\bLOCK\s+IN\s+SHARE\s+MODE\b", re.IGNORECASE)
_IGNORE = re.compile(r"^\W*(INSERT|UPDATE|DELETE)\b[^(]{0,40}?\bIGNORE\b", re.IGNORECASE)
_IGNORED = (1062, 1451, 1452)
"""What IGNORE may ignore: rows that violate a key or a foreign key. It must not change values."""


def address(dsn: str) -> dict[str, Any]:
    """The arguments of pymysql.connect for a DSN.

    >>> sorted(address("mariadb://gyro:pa%2Fss@db:3307/shop").items())
    [('database', 'shop'), ('host', 'db'), ('password', 'pa/ss'), ('port', 3307), ('user', 'gyro')]
    """
    try:
        found = urllib.parse.urlsplit(dsn)
        options = dict(urllib.parse.parse_qsl(found.query, strict_parsing=True)) if found.query else {}
        port = found.port
    except ValueError:
        raise UsageError("the DSN is not a URL", hint=f"expected {_SHOWN}") from None
    database = urllib.parse.unquote(found.path.lstrip("/"))
    if found.scheme not in ("mariadb", "mysql") or not database or not found.username or options.keys() - _OPTIONS:
        raise UsageError("the DSN is not an address of MariaDB", hint=f"expected {_SHOWN}")
    made: dict[str, Any] = {"user": urllib.parse.unquote(found.username), "database": database}
    if found.hostname:
        made |= {"host": found.hostname, "port": port or 3306}
    if found.password is not None:
        made["password"] = urllib.parse.unquote(found.password)
    return made | {_OPTIONS[name]: value for name, value in options.items()}


def _shown(dsn: str) -> str:
    """A DSN without its password."""
    parts = urllib.parse.urlsplit(dsn)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def connect(
    dsn: str, *, server: int = 0, servers: int = 1, mode: str = MODE, several: bool = False, **session: Any
) -> Db:
    """A new connection with the settings of a server, and more settings; `several`: it accepts many statements at once."""
    where = address(dsn)
    db = pymysql.connect(
        **where, charset="utf8mb4", autocommit=True, connect_timeout=_CONNECT, conv=_CONVERSIONS, defer_connect=True,
        client_flag=CLIENT.FOUND_ROWS | (CLIENT.MULTI_STATEMENTS if several else 0),
    )  # fmt: skip
    db.connect(local_socket(where["unix_socket"]) if "unix_socket" in where else None)
    version = str(db.get_server_info())  # type: ignore[no-untyped-call]
    if "mariadb" not in version.lower():
        db.close()
        raise UsageError(
            f"the DBMS of {_shown(dsn)} is MySQL {version}, expected MariaDB",
            hint="use MariaDB 10.11 or later: MySQL has no DELETE … RETURNING, and needs a privilege for XA RECOVER",
        )
    settings = {
        "sql_mode": mode,
        "time_zone": "+00:00",
        "auto_increment_increment": servers,
        "auto_increment_offset": server or servers,  # it must not be 0
        "innodb_lock_wait_timeout": 5,
        "wait_timeout": 31536000,
        "idle_transaction_timeout": 0,
        "idle_write_transaction_timeout": 0,
        "default_storage_engine": "InnoDB",
    }
    settings |= session
    assigned = ", ".join(f"{name} = {db.escape(value)}" for name, value in settings.items())
    try:
        execute(db, f"SET SESSION {assigned}, @gyro_capture = NULL, @gyro_applying = NULL")
    except BaseException:
        db.close()
        raise
    return db


def local_socket(path: str) -> socket.socket:
    """A connection to a local socket. pymysql would leave its own one open if MariaDB does not answer."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(_CONNECT)
        made.connect(path)
    except OSError as error:
        made.close()
        raise pymysql.OperationalError(
            CR.CR_CONN_HOST_ERROR, f"cannot connect to MariaDB at {path} ({error})"
        ) from None
    return made


def execute(db: Db, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Execute a statement of the server; return its rows."""
    with db.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall()) if cursor.description else []


def inserted(db: Db, sql: str, parameters: Any) -> int:
    """Execute an INSERT of the server; return the generated id."""
    with db.cursor() as cursor:
        cursor.execute(sql, parameters)
        return int(cursor.lastrowid)


def code(error: BaseException) -> int:
    """The number of an error of MariaDB; 0 if it has none."""
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


def gone(error: Exception) -> bool:
    """Whether MariaDB does not answer. The numbers from 2000 to 2999 are errors of clients."""
    if isinstance(error, pymysql.InterfaceError):
        return True
    number = code(error)
    return isinstance(error, pymysql.OperationalError) and (2000 <= number < 3000 or number in GONE or not number)


def line(error: Exception) -> str:
    """What an error says, in one line."""
    said = " ".join(str(part) for part in error.args[1:] or error.args)
    return " ".join(said.split()) or type(error).__name__


def quoted(name: str) -> str:
    """A quoted identifier of MariaDB."""
    return "`" + name.replace("`", "``") + "`"


def _moment(value: datetime.datetime, mapping: Any = None) -> str:
    """An instant in UTC, as all sessions are. pymysql would leave out its offset."""
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return str(escape_datetime(value, mapping))


_CONVERSIONS: dict[Any, Any] = {**conversions, datetime.datetime: _moment}


class MariadbConnection(Connection):
    """A connection to MariaDB."""

    dialect = "mariadb"

    def __init__(self, db: Db, *, snapshot: bool = False) -> None:
        super().__init__()
        self._db = db
        self.snapshot = snapshot
        """Whether the transaction reads a snapshot. A read that locks would read newer rows."""
        self.conflict: Exception | None = None
        """The error of a statement after which the transaction must run again, even if the function catches it."""
        self.wrote = False
        """Whether a statement was executed that is not a query."""

    def cursor(self) -> MariadbCursor:
        """A new cursor."""
        return MariadbCursor(self)

    def control(self, sql: str) -> None:
        """Execute a statement for savepoints."""
        execute(self._db, sql)

    @property
    def open(self) -> bool:
        return bool(self._db.open)


class MariadbCursor(Cursor):
    """A cursor."""

    connection: MariadbConnection

    def __init__(self, connection: MariadbConnection) -> None:
        super().__init__(connection)
        self._last: int | None = None

    def run(self, sql: str, parameters: Any) -> Iterable[Any]:
        """Execute one statement."""
        connection = self.connection
        if not connection.native:
            sql = placeholders(sql)
        word, locks, problem = admitted(sql)
        if connection.snapshot and locks:
            problem = "a read-only operation takes no locks: leave out FOR UPDATE and LOCK IN SHARE MODE"
        if problem:
            raise pymysql.NotSupportedError(problem)
        connection.wrote = connection.wrote or word not in _QUERIES
        with connection._db.cursor() as cursor:
            try:
                self.rowcount = cursor.execute(sql, parameters or None)
            except pymysql.MySQLError as error:
                if code(error) in CONFLICTS:
                    connection.conflict = error
                raise
            self.description = cursor.description
            self._last = cursor.lastrowid or None
            rows = list(cursor.fetchall()) if self.description else []
            if cursor.warning_count and _IGNORE.match(sql):
                self._refuse_changes(cursor)
            return rows

    @staticmethod
    def _refuse_changes(cursor: Any) -> None:
        cursor.execute("SHOW WARNINGS")
        for level, number, said in cursor.fetchall():
            if level != "Note" and number not in _IGNORED:
                raise pymysql.DataError(number, f"{said} (IGNORE must not change values)")

    @property
    def lastrowid(self) -> int | None:
        return self._last


@functools.lru_cache(maxsize=4096)
def admitted(sql: str) -> tuple[str, bool, str]:
    """The first word of a statement of the application, whether it locks rows that it reads, and why it is refused.

    >>> admitted("/* hi */ select 1 FOR UPDATE"), admitted("# c\\nCALL p()")[2]  # doctest: +ELLIPSIS
    (('SELECT', True, ''), 'CALL in an operation: ...')
    """
    for match in TOKEN.finditer(sql):
        if match[0].startswith(("/*!", "/*M!")):
            return "", False, "a comment that MariaDB executes (/*! … */) in an operation: write the SQL without it"
    text = TOKEN.sub(lambda m: "''" if m[0][0] in "'\"`" else " ", sql)
    words = text.replace("(", " ").split(None, 1)
    word = words[0].upper() if words else ""
    if word not in _ALLOWED:
        return word, False, f"{word} in an operation: expected a query, INSERT, UPDATE, DELETE or REPLACE"
    if "@" in text:
        return word, False, "a variable (@…) in an operation: variables of the session outlive an operation"
    return word, bool(_LOCKS.search(text)), ""
