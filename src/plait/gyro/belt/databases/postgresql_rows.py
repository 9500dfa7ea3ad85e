"""Tables of PostgreSQL: triggers that record row images, statements that apply them, and sequences."""

from __future__ import annotations

import dataclasses
from typing import Any

from plait.gyro.belt.databases.database import OURS
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("serve"):
    import psycopg
    from psycopg import sql
    from psycopg.types.json import Jsonb

_OURS = f"""
CREATE TABLE IF NOT EXISTS {OURS}state (one INTEGER PRIMARY KEY CHECK (one = 1), applied BIGINT NOT NULL,
  chain TEXT NOT NULL);
INSERT INTO {OURS}state VALUES (1, 0, '') ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS {OURS}identity (one INTEGER PRIMARY KEY CHECK (one = 1), identity TEXT);
INSERT INTO {OURS}identity VALUES (1, NULL) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS {OURS}done (
  position BIGSERIAL PRIMARY KEY, request TEXT NOT NULL UNIQUE, operation TEXT NOT NULL, arguments BYTEA NOT NULL,
  reply BYTEA NOT NULL, seq BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL);
CREATE TABLE IF NOT EXISTS {OURS}changes (
  n BIGSERIAL PRIMARY KEY, relation TEXT NOT NULL, kind TEXT NOT NULL, old JSONB, new JSONB);
CREATE OR REPLACE FUNCTION {OURS}capture() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    RAISE EXCEPTION 'TRUNCATE in a global operation: use DELETE';
  END IF;
  INSERT INTO {OURS}changes (relation, kind, old, new) VALUES (
    TG_TABLE_NAME, TG_OP,
    CASE WHEN TG_OP = 'INSERT' THEN NULL ELSE to_jsonb(OLD) END,
    CASE WHEN TG_OP = 'DELETE' THEN NULL ELSE to_jsonb(NEW) END);
  RETURN NULL;
END $$;
"""
_WHEN = "WHEN (current_setting('gyro.capture', true) = 'on')"
_FIRST = f'"0{OURS}capture"'
"""Triggers fire in the order of their names. This one records a change before other triggers cause more changes."""
_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attgenerated <> '',
       pg_get_serial_sequence(quote_ident(c.relname), a.attname),
       coalesce((SELECT array_position(i.indkey::int2[], a.attnum) FROM pg_index i
                 WHERE i.indrelid = c.oid AND i.indisprimary), -1)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.relname, a.attnum
"""


@dataclasses.dataclass
class Table:
    """A table: columns with their types, the primary key, and the sequences of columns."""

    name: str
    types: dict[str, str] = dataclasses.field(default_factory=dict)
    stored: list[str] = dataclasses.field(default_factory=list)
    """Columns that are not computed from other columns."""
    key: list[str] = dataclasses.field(default_factory=list)
    sequences: dict[str, str] = dataclasses.field(default_factory=dict)

    def change(
        self, kind: str, old: dict[str, Any] | None, new: dict[str, Any] | None
    ) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The old key of the row, and the changed columns; None if no column has changed."""
        before, after = old or {}, new or {}
        key = {c: (before or after)[c] for c in self.key}
        if kind == "DELETE":
            return key, {}
        row = {c: after[c] for c in self.stored if kind == "INSERT" or before[c] != after[c]}
        return (key, row) if row else None

    def apply(self, db: psycopg.Connection[Any], kind: str, key: dict[str, Any], row: dict[str, Any]) -> None:
        """Set a row to its state at the executing server, whatever its state is here."""
        table, record = (
            sql.Identifier(self.name),
            sql.SQL("jsonb_populate_record(NULL::{}, %s)").format(sql.Identifier(self.name)),
        )
        match = sql.SQL(" AND ").join(sql.SQL("t.{0} = k.{0}").format(sql.Identifier(c)) for c in self.key)
        columns = sql.SQL(", ").join(sql.Identifier(c) for c in row)
        if kind == "DELETE":
            db.execute(
                sql.SQL("DELETE FROM {} AS t USING {} AS k WHERE {}").format(table, record, match), (Jsonb(key),)
            )
        elif kind == "UPDATE":
            changed = sql.SQL(", ").join(sql.SQL("{0} = r.{0}").format(sql.Identifier(c)) for c in row)
            statement = sql.SQL("UPDATE {} AS t SET {} FROM {} AS k, {} AS r WHERE {}")
            db.execute(statement.format(table, changed, record, record, match), (Jsonb(key), Jsonb(row)))
        else:
            db.execute(
                sql.SQL("DELETE FROM {} AS t USING {} AS k WHERE {}").format(table, record, match), (Jsonb(key),)
            )
            statement = sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM {}")
            db.execute(statement.format(table, columns, columns, record), (Jsonb(row),))


def tables(db: psycopg.Connection[Any]) -> dict[str, Table]:
    """The tables of the application, in the schema `public`."""
    found: dict[str, Table] = {}
    keys: dict[str, list[tuple[int, str]]] = {}
    for name, column, kind, computed, sequence, place in db.execute(_COLUMNS).fetchall():
        if name.startswith(OURS):
            continue
        table = found.setdefault(name, Table(name))
        table.types[column] = kind
        if not computed:
            table.stored.append(column)
        if place is not None and place >= 0:
            keys.setdefault(name, []).append((place, column))
        if sequence is not None:
            table.sequences[column] = sequence
    for name, table in found.items():
        table.key = [column for _, column in sorted(keys.get(name, []))]
        if not table.key:
            raise UsageError(
                f"table {name} has no primary key, so updates cannot identify its rows",
                hint="give every table a primary key",
            )
    return found


def install(db: psycopg.Connection[Any], schema: str, server: int, servers: int) -> None:
    """Set up the database once: the schema, the `gyro_` tables, triggers, and sequences with increments."""
    with db.transaction():
        ((known,),) = db.execute("SELECT to_regclass(%s) IS NOT NULL", (f"public.{OURS}state",)).fetchall()
        if known:
            return
        if not tables(db):
            db.execute(schema)
        db.execute(_OURS)
        for table in tables(db).values():
            name = sql.Identifier(table.name)
            for when in (
                f"AFTER INSERT OR UPDATE OR DELETE ON {{}} FOR EACH ROW {_WHEN}",
                f"BEFORE TRUNCATE ON {{}} {_WHEN}",
            ):
                label = _FIRST if when.startswith("AFTER") else f'"0{OURS}truncate"'
                text = f"CREATE TRIGGER {label} {when} EXECUTE FUNCTION {OURS}capture()"
                db.execute(sql.SQL(text).format(name))
            for column, sequence in table.sequences.items():
                greatest = sql.SQL("SELECT greatest(coalesce(max({}), 0), 0) FROM {}").format(
                    sql.Identifier(column), name
                )
                ((used,),) = db.execute(greatest).fetchall()
                start = (int(used) // servers + 1) * servers + server
                text = f"ALTER SEQUENCE {sequence} INCREMENT BY {servers} RESTART WITH {start}"
                db.execute(text)
