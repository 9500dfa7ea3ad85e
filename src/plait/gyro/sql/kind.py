"""The kind of a column: which values its type can store, and when the DBMS regards two of them as equal.

Columns of one kind can be compared without loss. So a value that all of them store unchanged is one value for all of them,
and it can be a key. Values of the kind `other` (collations that ignore case, intervals, arrays, …) may be equal and still
differ, so they are no keys, and comparisons of them are opaque.
"""

from __future__ import annotations

import re
from typing import Literal

from plait.gyro.sql.terms import Kind

Affinity = Literal["INTEGER", "TEXT", "BLOB", "REAL", "NUMERIC"]

_EXACT = {
    *("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "DECIMAL", "SERIAL", "BIGSERIAL", "SMALLSERIAL"),
    *("UINT", "UBIGINT", "USMALLINT", "UTINYINT", "UMEDIUMINT"),
}
_FLOATS = {"DOUBLE", "FLOAT", "REAL"}
_TEXTS = {"TEXT", "VARCHAR"}
_POSTGRES: dict[str, Kind] = {
    "CHAR": "char",
    "BPCHAR": "char",
    "BOOLEAN": "boolean",
    "UUID": "uuid",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamptz",
    "VARBINARY": "bytes",
}
_MYSQL: dict[str, Kind] = {
    **dict.fromkeys(("BOOLEAN", "UDECIMAL"), "number"),
    "UDOUBLE": "float",
    "UUID": "uuid",
    "DATE": "date",
    "DATETIME": "timestamp",
    "TIMESTAMPTZ": "timestamptz",
    **dict.fromkeys(("BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"), "bytes"),
}
_MYSQL_TEXTS = {*_TEXTS, "CHAR", "TINYTEXT", "MEDIUMTEXT", "LONGTEXT"}
_BYTEWISE = ("BINARY", "C", "POSIX", "UCS_BASIC")
_WORD = r'"[^"]*"|`[^`]*`|\[[^\]]*\]|\w+'
_CLAUSES = "CONSTRAINT|PRIMARY|NOT|NULL|UNIQUE|CHECK|DEFAULT|COLLATE|REFERENCES|GENERATED|AS|AUTOINCREMENT|ON"
_TYPE = re.compile(
    rf"(?P<name>(?:\s*(?!(?:{_CLAUSES})\b)(?:{_WORD}))*)\s*(?P<size>\([^()]*\))?",
    re.IGNORECASE,
)


def declared(text: str, start: int) -> str:
    """The type of a column of SQLite as it is written, from behind the name of the column.

    >>> declared('CREATE TABLE t (x DOUBLE  PRECISION NOT NULL, y)', 17), declared('CREATE TABLE t (y, z)', 17)
    ('DOUBLE PRECISION', '')
    """
    found = _TYPE.match(text, start)
    assert found is not None
    return " ".join(found["name"].split()) + (found["size"] or "" if found["name"].strip() else "")


def affinity(declared: str) -> Affinity:
    """What SQLite converts the values of a column to, by its declared type.

    >>> affinity("BIGINT"), affinity("VARCHAR(3)"), affinity(""), affinity("DOUBLE PRECISION"), affinity("STRING")
    ('INTEGER', 'TEXT', 'BLOB', 'REAL', 'NUMERIC')
    """
    name = declared.upper()
    if "INT" in name:
        return "INTEGER"
    if any(part in name for part in ("CHAR", "CLOB", "TEXT")):
        return "TEXT"
    if "BLOB" in name or not name:
        return "BLOB"
    if any(part in name for part in ("REAL", "FLOA", "DOUB")):
        return "REAL"
    return "NUMERIC"


def kind_in_sqlite(declared: str, parsed: str, collation: str = "") -> Kind:
    """The kind of a column of SQLite. SQLite compares all numbers exactly. `parsed` is the usual name of the type."""
    if collation.upper() not in ("", "BINARY"):
        return "other"
    found = affinity(declared)
    if found == "TEXT":
        return "text"
    if found == "BLOB":
        return "bytes" if declared.upper() == "BLOB" else "other"
    return "number" if parsed in {*_EXACT, *_FLOATS, "BOOLEAN"} or found in ("INTEGER", "REAL") else "other"


def kind_of(parsed: str, written: str, dialect: str, collation: str = "", enums: frozenset[str] = frozenset()) -> Kind:
    """The kind of a column of another DBMS, by the usual name of its type; `written` is the name of a type of the schema.

    >>> kind_of("DECIMAL", "", "postgres"), kind_of("DOUBLE", "", "postgres"), kind_of("ENUM", "", "mysql")
    ('number', 'float', 'other')
    """
    if dialect == "mysql" and parsed in _MYSQL_TEXTS:
        return text_in_mysql(parsed, collation)
    if collation and not (collation.upper() in _BYTEWISE or collation.upper().endswith("_BIN")):
        return "other"
    if parsed in _EXACT:
        return "number"
    if parsed in _FLOATS:
        return "float"
    if dialect == "mysql":
        return _MYSQL.get(parsed, "other")
    if parsed in _TEXTS:
        return "text"
    if written in enums:
        return "enum " + written.strip('"').lower()
    return _POSTGRES.get(parsed, "other")


def text_in_mysql(parsed: str, collation: str) -> Kind:
    """The kind of a string in MySQL or MariaDB. The usual collations ignore case; most also ignore spaces at the end.

    >>> [text_in_mysql("VARCHAR", c) for c in ("utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_nopad_bin", "")]
    ['other', 'char', 'text', 'other']
    """
    if not collation.lower().endswith("_bin"):
        return "other"
    if not collation.lower().endswith("_nopad_bin"):
        return "char"
    return "other" if parsed == "CHAR" else "text"  # CHAR removes spaces at the end, and this collation compares them
