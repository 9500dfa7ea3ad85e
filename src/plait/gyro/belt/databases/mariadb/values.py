"""What columns of MariaDB store: a temporary table with a column of the same type answers.

MariaDB regards strings as equal that differ in case, accents or spaces at the end, depending on the collation. Only columns
whose collation compares code points (`…_bin`) can be keys. Except with `…_nopad_bin`, comparisons ignore spaces at the end.
All sessions are in UTC. A TIMESTAMP is an instant, so a value for it must have its offset.
"""

from __future__ import annotations

import datetime
import decimal
import threading
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from plait.gyro.belt.databases.mariadb.connection import Db, execute, gone, line
from plait.gyro.belt.databases.mariadb.limits import MINE
from plait.gyro.belt.databases.values import Domain, Stored, UnstorableError, changed, unexpected
from plait.gyro.sql.kind import text_in_mysql
from plait.kernel.extras import needs

with needs("serve"):
    import pymysql

_KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "decimal"), "number"),
    **dict.fromkeys(("float", "double"), "float"),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), "bytes"),
    "uuid": "uuid",
    "date": "date",
    "datetime": "timestamp",
    "timestamp": "timestamptz",
}
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
_COLUMNS = f"""
SELECT LOWER(CONCAT(TABLE_NAME, '.', COLUMN_NAME)), DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME
FROM information_schema.COLUMNS WHERE {MINE}
"""
_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_ISO: dict[str, tuple[type, Callable[[str], Any]]] = {
    "date": (datetime.date, datetime.date.fromisoformat),
    "timestamp": (datetime.datetime, datetime.datetime.fromisoformat),
    "timestamptz": (datetime.datetime, datetime.datetime.fromisoformat),
}
Open = Callable[[], AbstractContextManager[Db]]


class MariadbValues:
    """The columns of a database, and what they store. `connection` lends a connection outside of transactions."""

    def __init__(self, connection: Open) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def domains(self) -> dict[str, Domain]:
        """The domain of each column. Its type contains the character set and the collation."""
        with self._connection() as db:
            return {name: _domain(*rest) for name, *rest in execute(db, _COLUMNS)}

    def certain(self, domain: Domain) -> Callable[[Any], bool]:
        """Whole numbers in the range of the column, and bytes and strings that are not too long."""
        name, size = _parts(domain.type)
        if (bits := _BITS.get(name)) is not None:
            least, most = (0, 1 << bits) if "unsigned" in domain.type else (-(1 << (bits - 1)), 1 << (bits - 1))
            return lambda value: type(value) is int and least <= value < most
        if name == "varbinary":
            return lambda value: type(value) is bytes and len(value) <= size
        if name == "varchar" and "utf8mb4" in domain.type:
            return lambda value: type(value) is str and len(value) <= size and value.isascii() and value[-1:] != " "
        return lambda _: False

    def stored(self, domain: Domain, value: Any) -> Stored:
        """Insert the value into a column of the same type, and read it."""
        kind = domain.kind
        if kind in ("number", "float"):
            return self._number(domain, value)
        if kind in _ISO:
            return self._time(domain, value)
        if kind == "uuid" and type(value) in (str, uuid.UUID):
            form = self._ask(domain, str(value))
            return Stored(form if type(value) is str else value, form)
        if type(value) is not {"text": str, "char": str, "bytes": bytes}.get(kind):
            raise unexpected(domain)
        form = self._ask(domain, value)
        kept = value
        if kind == "char":  # comparisons ignore spaces at the end
            form, kept = form.rstrip(" "), value.rstrip(" ")
        if form != kept:
            raise changed(domain, form)
        return Stored(value, form)

    def _number(self, domain: Domain, value: Any) -> Stored:
        """A comparison with a binary floating-point number is one of such numbers. All others are exact.

        A float for an exact column is executed as the stored number.
        """
        if type(value) not in (int, float, bool, decimal.Decimal):
            raise unexpected(domain)
        form = self._ask(domain, value, "k + 0e0" if domain.kind == "float" else "k")
        if isinstance(form, decimal.Decimal) and form == form.to_integral_value():
            form = int(form)
        try:
            if domain.kind == "float":
                same = float(value) == form
            else:
                same = float(form) == value if type(value) is float else form == value
        except OverflowError:
            same = False
        if not same:
            raise changed(domain, form)
        if domain.kind == "float":
            return Stored(value if type(value) in (int, float) and value == form else form, form)
        return Stored(form if type(value) is float else value, form)

    def _time(self, domain: Domain, value: Any) -> Stored:
        """A date, or a date and a time. Python and MariaDB must read it in the same way; MariaDB reads no offsets."""
        kept, parse = _ISO[domain.kind]
        try:
            read: Any = parse(value) if type(value) is str else value
        except ValueError:
            raise unexpected(domain) from None
        aware = getattr(read, "tzinfo", None) is not None
        if type(read) is not kept or aware != (domain.kind == "timestamptz"):
            raise unexpected(domain)
        try:
            given: Any = _naive(read) if aware else read
        except OverflowError:
            raise unexpected(domain) from None
        found = self._ask(domain, value if type(value) is str and not aware else given)
        if type(found) is not kept or found != given:
            raise changed(domain, str(found))
        return Stored(str(found) if type(value) is str else value, str(found))

    def _ask(self, domain: Domain, value: Any, shown: str = "k") -> Any:
        """What a column of this type stores. One question at a time: all use one name for the table."""
        try:
            with self._lock, self._connection() as db:
                execute(db, f"CREATE OR REPLACE TEMPORARY TABLE gyro_stored (k {domain.type}) ENGINE=InnoDB")
                execute(db, "INSERT INTO gyro_stored VALUES (%s)", (value,))
                ((form,),) = execute(db, f"SELECT {shown} FROM gyro_stored")
                return form
        except (pymysql.MySQLError, ValueError, OverflowError) as error:
            if isinstance(error, pymysql.MySQLError) and gone(error):
                raise
            raise UnstorableError(f"{unexpected(domain)} that fits {domain.type} ({line(error)})") from None


def _domain(base: str, written: str, charset: str | None, collation: str | None) -> Domain:
    if base in _TEXTS and collation is not None:
        kind = text_in_mysql("CHAR" if base == "char" else "TEXT", collation)
        return Domain(kind, f"{written} CHARACTER SET {charset} COLLATE {collation}")
    return Domain(_KINDS.get(base, "other"), written)


def _parts(written: str) -> tuple[str, int]:
    name, _, rest = written.partition("(")
    size = rest.partition(")")[0]
    return name.split()[0], int(size) if size.isdigit() else 0


def _naive(moment: Any) -> Any:
    """An instant in UTC, as the time of a session."""
    return moment.astimezone(datetime.UTC).replace(tzinfo=None)
