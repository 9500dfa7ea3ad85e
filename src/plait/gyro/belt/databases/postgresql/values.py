"""What columns of PostgreSQL store: casts, with values bound as the driver binds them in an operation.

A value is accepted if PostgreSQL regards it as equal to what the column stores. Dates and times must be in ISO 8601, and an
instant must have its offset. Otherwise the value would depend on settings of a session (DateStyle, TimeZone) or on the
clock ('now').
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from plait.gyro.belt.databases.values import Domain, Stored, UnstorableError, changed, unexpected
from plait.kernel.extras import needs

with needs("serve"):
    import psycopg

_KINDS = {
    **dict.fromkeys(("int2", "int4", "int8", "numeric"), "number"),
    **dict.fromkeys(("float4", "float8"), "float"),
    **dict.fromkeys(("text", "varchar"), "text"),
    "bpchar": "char",
    "bool": "boolean",
    "uuid": "uuid",
    "date": "date",
    "time": "time",
    "bytea": "bytes",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
}
_COLUMNS = """
SELECT lower(c.relname || '.' || a.attname), format_type(a.atttypid, a.atttypmod), t.typname::text, t.typtype::text,
       t.typnamespace = 'pg_catalog'::regnamespace, coalesce(l.collisdeterministic, true)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
     LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
"""
_RANGES = {"smallint": 1 << 15, "integer": 1 << 31, "bigint": 1 << 63}
_ISO: dict[str, tuple[type, Callable[[str], Any]]] = {
    "date": (datetime.date, datetime.date.fromisoformat),
    "time": (datetime.time, datetime.time.fromisoformat),
    "timestamp": (datetime.datetime, datetime.datetime.fromisoformat),
    "timestamptz": (datetime.datetime, datetime.datetime.fromisoformat),
}

Open = Callable[[], AbstractContextManager[psycopg.Connection[Any]]]


class PostgresqlValues:
    """The columns of a database, and what they store. `connection` lends a connection outside of transactions."""

    def __init__(self, connection: Open) -> None:
        self._connection = connection
        with connection() as db:
            self._utf8 = db.execute("SHOW server_encoding").fetchall() == [("UTF8",)]

    def domains(self) -> dict[str, Domain]:
        """The domain of each column. Nondeterministic collations regard different strings as equal."""
        found: dict[str, Domain] = {}
        with self._connection() as db:
            for name, written, base, category, ours, deterministic in db.execute(_COLUMNS).fetchall():
                kind = _KINDS.get(base, "other") if ours and deterministic else "other"
                domain = Domain(f"enum {base.lower()}" if category == "e" else kind, written)
                if found.setdefault(name, domain) != domain:
                    found[name] = Domain("other", written)  # two names that differ in case only
        return found

    def certain(self, domain: Domain) -> Callable[[Any], bool]:
        """Whole numbers in the range of the column, strings in unbounded columns, booleans, bytes."""
        if (limit := _RANGES.get(domain.type)) is not None:
            return lambda value: type(value) is int and -limit <= value < limit
        if domain.type == "double precision":
            return lambda value: type(value) is float
        if domain.kind == "text" and domain.type in ("text", "character varying") and self._utf8:
            return lambda value: type(value) is str and "\0" not in value
        if domain.kind in ("boolean", "bytes"):
            kept = bool if domain.kind == "boolean" else bytes
            return lambda value: type(value) is kept
        return lambda _: False

    def stored(self, domain: Domain, value: Any) -> Stored:
        """Cast the value to the type of the column."""
        kind = domain.kind
        if kind in ("number", "float"):
            return self._number(domain, value)
        if kind in _ISO:
            return self._time(domain, value)
        if kind == "uuid" and type(value) in (str, uuid.UUID):
            ((form,),) = self._ask(domain, f"SELECT %(v)s::{_given(value, 'uuid')}::text", value)
            return Stored(form if type(value) is str else value, form)
        if kind == {bool: "boolean", bytes: "bytes"}.get(type(value)):
            return Stored(value, value)
        if type(value) is not str or kind in ("boolean", "bytes", "uuid"):
            raise unexpected(domain)
        ((form,),) = self._ask(domain, f"SELECT %(v)s::text::{domain.type}::text", value)
        kept = value.rstrip(" ") if kind == "char" else value  # comparisons of CHAR(n) ignore spaces at the end
        if kind == "char":
            form = form.rstrip(" ")
        if form != kept:
            raise changed(domain, form)
        return Stored(kept, form)

    def _number(self, domain: Domain, value: Any) -> Stored:
        """Exact numbers are compared exactly, and binary floating-point numbers as such.

        A float for an exact column is executed as the stored number: PostgreSQL would round both sides of a comparison.
        """
        if type(value) not in (int, float, decimal.Decimal):
            raise unexpected(domain)
        own = "float8" if type(value) is float or domain.kind == "float" else "numeric"
        cast = f"%(v)s::{own}::{domain.type}"
        ((form, same),) = self._ask(domain, f"SELECT {cast}, {cast} = %(v)s::{own}", value)
        if isinstance(form, decimal.Decimal) and form.is_finite() and form == form.to_integral_value():
            form = int(form)
        if not same:
            raise changed(domain, form)
        if domain.kind == "float":
            return Stored(value if value == form else form, form)
        return Stored(form if type(value) is float else value, form)

    def _time(self, domain: Domain, value: Any) -> Stored:
        """A date, a time, or both. Python and PostgreSQL must read it in the same way."""
        kept, parse = _ISO[domain.kind]
        try:
            read = parse(value) if type(value) is str else value
        except ValueError:
            raise unexpected(domain) from None
        aware = getattr(read, "tzinfo", None) is not None
        if type(read) is not kept or aware != (domain.kind == "timestamptz"):
            raise unexpected(domain)
        base = f"%(v)s::{_given(value, domain.kind)}"
        ((found, same),) = self._ask(domain, f"SELECT {base}::{domain.type}, {base}::{domain.type} = {base}", value)
        if aware:
            found = found.astimezone(datetime.UTC)
        if not same or found != read:
            raise changed(domain, found.isoformat())
        return Stored(found.isoformat() if type(value) is str else found, found.isoformat())

    def _ask(self, domain: Domain, query: str, value: Any) -> list[tuple[Any, ...]]:
        try:
            with self._connection() as db:
                return db.execute(query, {"v": value}, binary=True).fetchall()
        except (psycopg.DataError, psycopg.NotSupportedError, ValueError, OverflowError) as error:
            said = " ".join(str(error).split("\n")[0].split())
            raise UnstorableError(f"{unexpected(domain)} that fits {domain.type} ({said})") from None


def _given(value: Any, kind: str) -> str:
    """The cast of a parameter. A string is a literal of the type."""
    return f"text::{kind}" if type(value) is str else kind
