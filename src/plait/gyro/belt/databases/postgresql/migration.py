"""Migrations of PostgreSQL: the tables change inside the transaction in which a configuration begins."""

from __future__ import annotations

import re
from typing import Any

from plait.gyro.belt.databases.changeable import MigrationError
from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.databases.postgresql.rows import capture, definitions
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("serve"):
    import psycopg
    from psycopg import sql

_SCRATCH = f"{OURS}expected"
"""The namespace in which the tables of the new schema are made, to compare them."""
_VARYING = re.compile(
    r"\b(random|setseed|gen_random_uuid|uuid_generate_\w+|now|clock_timestamp|statement_timestamp|transaction_timestamp"
    r"|timeofday|current_timestamp|current_date|current_time|localtime|localtimestamp|nextval|currval|lastval"
    r"|txid_\w+|pg_current_\w+|ctid|xmin)\b|'\s*(now|today|tomorrow|yesterday)\s*'",
    re.IGNORECASE,
)
"""What differs between servers."""
_NUMBERED = re.compile(
    r"\bADD\s+(COLUMN\s+)?(IF\s+NOT\s+EXISTS\s+)?(\"[^\"]+\"|\w+)\s+(small|big)?serial\b", re.IGNORECASE
)


def migrate(db: psycopg.Connection[Any], migration: str, schema: str) -> None:
    """Execute a migration. Afterwards the tables must be those of the schema. Raises MigrationError."""
    if found := _VARYING.search(migration):
        raise MigrationError(f"{found[0]} differs between servers")
    if _NUMBERED.search(migration):
        raise MigrationError("the numbers of a new serial column differ between servers")
    if re.search(rf"\b0?{OURS}", migration, re.IGNORECASE):
        raise MigrationError(f"names that begin with {OURS} belong to the servers")
    try:
        # Triggers and foreign keys act as for any other statement. No change is recorded: all servers execute it.
        db.execute("SET LOCAL session_replication_role = origin")
        before = _used(db)
        _execute(db, migration)
        for name, number in _used(db).items():
            if number is not None and number != before.get(name):
                raise MigrationError(f"it generates ids of {name}, which differ between servers")
        db.execute("SET CONSTRAINTS ALL IMMEDIATE")
        db.execute("SET LOCAL session_replication_role = replica")
        capture(db)
        if schema:
            _compare(_described(db, "public"), _expected(db, schema))
    except UsageError as error:  # a table without a primary key
        raise MigrationError(error.message) from None
    except psycopg.Error as error:
        raise MigrationError(str(error.diag.message_primary or error)) from None


def _used(db: psycopg.Connection[Any]) -> dict[str, int | None]:
    """The last number of each sequence; None if it has given none."""
    return dict(db.execute("SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'public'").fetchall())


def _execute(db: psycopg.Connection[Any], text: str) -> None:
    """Execute statements inside of a DO block, where PostgreSQL refuses those that would end the transaction."""
    if text.strip():
        body = f"BEGIN EXECUTE {sql.Literal(text).as_string(db)}; END"
        db.execute(sql.SQL("DO {}").format(sql.Literal(body)))


def _expected(db: psycopg.Connection[Any], schema: str) -> dict[str, str]:
    """What a new database with this schema would have."""
    ((before,),) = db.execute("SHOW search_path").fetchall()
    db.execute(f"CREATE SCHEMA {_SCRATCH}".encode())
    db.execute(f"SET LOCAL search_path = {_SCRATCH}".encode())
    try:
        _execute(db, schema)
        return _described(db, _SCRATCH)
    finally:
        if db.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS:
            db.execute(sql.SQL("SET LOCAL search_path = {}").format(sql.SQL(before)))
            db.execute(f"DROP SCHEMA {_SCRATCH} CASCADE".encode())


def _described(db: psycopg.Connection[Any], namespace: str) -> dict[str, str]:
    """The definitions of a namespace, without its name. Functions are compared by name."""
    return {
        name: "there" if name.startswith("function ") else " ".join(text.replace(f"{namespace}.", "").split())
        for name, text in definitions(db, namespace)
    }


def _compare(found: dict[str, str], expected: dict[str, str]) -> None:
    for what in sorted(expected.keys() | found.keys()):
        if expected.get(what) != found.get(what):
            raise MigrationError(
                f"{what} is {found.get(what, 'missing')} after it, and {expected.get(what, 'missing')} in the schema"
            )
