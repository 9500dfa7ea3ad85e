"""Tables of PostgreSQL: triggers that record row images, statements that apply them, and sequences.

A value in a row image is text, as PostgreSQL writes it and reads it again. Every type has such text, and it loses nothing.
JSON would: it has no negative zero, it does not distinguish its own null from that of SQL, and Python would round numbers.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import msgspec

from plait.gyro.belt.databases.database import OURS
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("serve"):
    import psycopg
    from psycopg import sql

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
  n BIGINT NOT NULL, relation TEXT NOT NULL, kind TEXT NOT NULL, old TEXT, new TEXT);
CREATE TABLE IF NOT EXISTS {OURS}outbox (
  number BIGSERIAL PRIMARY KEY, seq BIGINT NOT NULL, place BIGINT NOT NULL, request TEXT NOT NULL,
  operation TEXT NOT NULL, arguments BYTEA NOT NULL, reply BYTEA NOT NULL, updates BYTEA NOT NULL);
CREATE TABLE IF NOT EXISTS {OURS}stream (one INTEGER PRIMARY KEY CHECK (one = 1), position BIGINT NOT NULL,
  chain TEXT NOT NULL, whole BOOLEAN NOT NULL);
CREATE TABLE IF NOT EXISTS {OURS}tail (seq BIGINT NOT NULL, chain TEXT NOT NULL);
CREATE OR REPLACE FUNCTION {OURS}capture() RETURNS trigger LANGUAGE plpgsql
  SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET extra_float_digits = 1 SET bytea_output = 'hex' AS $$
DECLARE
  place bigint;
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    RAISE EXCEPTION 'TRUNCATE in an operation whose changes are recorded: use DELETE';
  END IF;
  place := coalesce(nullif(current_setting('gyro.place', true), ''), '0')::bigint + 1;
  PERFORM set_config('gyro.place', place::text, true);
  IF current_setting('gyro.capture', true) = 'local' THEN
    INSERT INTO pg_temp.{OURS}local_changes VALUES (
      place, TG_TABLE_NAME, TG_OP,
      CASE WHEN TG_OP = 'INSERT' THEN NULL ELSE OLD::text END,
      CASE WHEN TG_OP = 'DELETE' THEN NULL ELSE NEW::text END);
    RETURN NULL;
  END IF;
  IF current_setting('gyro.slot', true) <> '' THEN
    EXECUTE format('INSERT INTO %I VALUES ($1, $2, $3, $4, $5)',
                   '{OURS}changes_' || current_setting('gyro.slot', true))
      USING place, TG_TABLE_NAME, TG_OP,
        CASE WHEN TG_OP = 'INSERT' THEN NULL ELSE OLD::text END,
        CASE WHEN TG_OP = 'DELETE' THEN NULL ELSE NEW::text END;
    RETURN NULL;
  END IF;
  INSERT INTO {OURS}changes VALUES (
    place, TG_TABLE_NAME, TG_OP,
    CASE WHEN TG_OP = 'INSERT' THEN NULL ELSE OLD::text END,
    CASE WHEN TG_OP = 'DELETE' THEN NULL ELSE NEW::text END);
  RETURN NULL;
END $$;
"""
"""A sequence would number the changes, too. But then lastval(), the id of a new row, would be a number of this sequence."""
LOCAL = f"""
CREATE TEMPORARY TABLE {OURS}local_changes (
  n BIGINT, relation TEXT NOT NULL, kind TEXT NOT NULL, old TEXT, new TEXT) ON COMMIT DELETE ROWS
"""
"""Where a connection records the changes of local operations. In one table for all connections, parallel operations
would conflict; visits need such a table, because a transaction with a temporary table cannot be prepared."""
SLOTS = 8
"""Operations of a visit that run at the same time. Each has its own table of changes; in one table they would conflict."""
_WHEN = "WHEN (current_setting('gyro.capture', true) IN ('on', 'local'))"
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
_DEFINITIONS = f"""
WITH mine AS (
  SELECT oid, relname, relkind FROM pg_class
  WHERE relnamespace = 'public'::regnamespace AND NOT starts_with(relname, '{OURS}') AND relkind IN ('r', 'p', 'v', 'm'))
SELECT 'table ' || m.relname || ' column ' || a.attname,
       format_type(a.atttypid, a.atttypmod) || coalesce(' COLLATE ' || (l.collname || ' ' || l.collisdeterministic), '')
       || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '')
       || a.attidentity::text || a.attgenerated::text
FROM mine m JOIN pg_attribute a ON a.attrelid = m.oid AND a.attnum > 0 AND NOT a.attisdropped
     LEFT JOIN pg_attrdef d ON d.adrelid = m.oid AND d.adnum = a.attnum
     LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE m.relkind IN ('r', 'p')
UNION ALL
SELECT 'table ' || m.relname || ' constraint ' || c.conname, pg_get_constraintdef(c.oid)
FROM mine m JOIN pg_constraint c ON c.conrelid = m.oid WHERE c.contype <> 'n'
UNION ALL
SELECT 'table ' || m.relname || ' index ' || i.indexrelid::regclass, pg_get_indexdef(i.indexrelid)
FROM mine m JOIN pg_index i ON i.indrelid = m.oid
UNION ALL
SELECT 'table ' || m.relname || ' trigger ' || t.tgname, pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text
FROM mine m JOIN pg_trigger t ON t.tgrelid = m.oid WHERE NOT t.tgisinternal AND NOT starts_with(t.tgname, '0{OURS}')
UNION ALL
SELECT 'rule ' || r.rulename || ' of ' || m.relname, pg_get_ruledef(r.oid)
FROM mine m JOIN pg_rewrite r ON r.ev_class = m.oid
UNION ALL
SELECT 'type ' || t.typname, CASE t.typtype
  WHEN 'e' THEN (SELECT string_agg(e.enumlabel, ', ' ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid)
  ELSE format_type(t.typbasetype, t.typtypmod) || coalesce(
    (SELECT string_agg(pg_get_constraintdef(c.oid), ', ' ORDER BY c.conname) FROM pg_constraint c
     WHERE c.contypid = t.oid), '')
  END
FROM pg_type t WHERE t.typnamespace = 'public'::regnamespace AND t.typtype IN ('e', 'd')
UNION ALL
SELECT 'function ' || p.oid::regprocedure, md5(pg_get_functiondef(p.oid))
FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND NOT starts_with(p.proname, '{OURS}') AND p.prokind <> 'a'
     AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
UNION ALL
SELECT 'encoding', pg_encoding_to_char(encoding) || ' ' || datcollate FROM pg_database WHERE datname = current_database()
ORDER BY 1
"""


_EXACT = "; ".join(
    f"SET LOCAL {name} = '{value}'"
    for name, value in {
        "datestyle": "ISO", "intervalstyle": "postgres", "extra_float_digits": "1", "bytea_output": "hex"
    }.items()
)  # fmt: skip
"""Values as text, as the function that captures changes writes them."""
Image = dict[str, str | None]
"""The text of columns of a row; None is NULL."""


class Change(msgspec.Struct, array_like=True):
    """The change of one row: its table, the kind of change, its key, and the changed columns."""

    table: str
    kind: str
    key: Image
    row: Image


@dataclasses.dataclass
class Table:
    """A table: columns with their types, the primary key, and the sequences of columns."""

    name: str
    types: dict[str, str] = dataclasses.field(default_factory=dict)
    stored: list[str] = dataclasses.field(default_factory=list)
    """Columns that are not computed from other columns."""
    key: list[str] = dataclasses.field(default_factory=list)
    sequences: dict[str, str] = dataclasses.field(default_factory=dict)

    def change(self, kind: str, old: str | None, new: str | None) -> tuple[Image, Image] | None:
        """The old key of the row, and the changed columns; None if no column has changed."""
        before, after = self._columns(old), self._columns(new)
        key = {c: (before or after)[c] for c in self.key}
        if kind == "DELETE":
            return key, {}
        row = {c: after[c] for c in self.stored if kind == "INSERT" or before[c] != after[c]}
        return (key, row) if row else None

    def _columns(self, row: str | None) -> Image:
        """The text of each column of a row that a trigger has recorded."""
        return dict(zip(self.types, fields(row), strict=True)) if row is not None else {}

    def find(self, db: psycopg.Connection[Any], key: Image) -> Image | None:
        """The text of the stored columns of a row; None if there is no such row. It needs a transaction."""
        match = sql.SQL(" AND ").join(sql.SQL("{} = %s").format(sql.Identifier(c)) for c in key)
        db.execute(_EXACT)
        query = sql.SQL("SELECT t::text FROM {} AS t WHERE {}").format(sql.Identifier(self.name), match)
        found = db.execute(query, list(key.values())).fetchall()
        return {c: v for c, v in self._columns(found[0][0]).items() if c in self.stored} if found else None

    def apply(self, db: psycopg.Connection[Any], kind: str, key: Image, row: Image) -> None:
        """Set a row to its state at the executing server, whatever its state is here."""
        table = sql.Identifier(self.name)
        match = sql.SQL(" AND ").join(sql.SQL("{} = %s").format(sql.Identifier(c)) for c in key)
        if kind == "UPDATE":
            changed = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(c)) for c in row)
            statement = sql.SQL("UPDATE {} SET {} WHERE {}").format(table, changed, match)
            db.execute(statement, [*row.values(), *key.values()])
            return
        db.execute(sql.SQL("DELETE FROM {} WHERE {}").format(table, match), list(key.values()))
        if kind == "INSERT":
            columns = sql.SQL(", ").join(sql.Identifier(c) for c in row)
            values = sql.SQL(", ").join(sql.Placeholder() for _ in row)
            insert = sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES ({})").format(table, columns, values)
            db.execute(insert, list(row.values()))


_FIELD = re.compile(r'[(,](?:"((?:[^"\\]|""|\\\\)*)"|([^,()"]*))')
"""A field of a composite value; the quotes inside of quotes, and backslashes, are doubled."""


def fields(row: str) -> list[str | None]:
    """The fields of a composite value, as PostgreSQL writes it.

    >>> fields('(7,,"","a ""b"", c",{1})')
    ['7', None, '', 'a "b", c', '{1}']
    """
    return [
        m[2] or None if m[1] is None else m[1].replace('""', '"').replace("\\\\", "\\") for m in _FIELD.finditer(row)
    ]


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


def definitions(db: psycopg.Connection[Any], namespace: str = "public") -> list[tuple[str, str]]:
    """All objects of the application in a schema, with their definitions. Sequences differ between servers."""
    query = _DEFINITIONS.replace("'public'", f"'{namespace}'")
    return [(str(name), str(text)) for name, text in db.execute(query.encode()).fetchall()]


def skip(db: psycopg.Connection[Any], table: Table, server: int, servers: int, used: dict[str, int], gap: int) -> None:
    """Let the sequences of a table go on after all ids that were used, and after a gap; at most a part of their range."""
    for column, sequence in table.sequences.items():
        greatest = sql.SQL("SELECT coalesce(max({}), 0) FROM {}").format(
            sql.Identifier(column), sql.Identifier(table.name)
        )
        ((found,),) = db.execute(greatest).fetchall()
        ((most,),) = db.execute("SELECT seqmax FROM pg_sequence WHERE seqrelid = %s::regclass", (sequence,)).fetchall()
        last = max(int(found), used.get(sequence, 0), 0)
        last += min(gap * servers, max(int(most) - last, 0) // 16)
        db.execute(
            sql.SQL("ALTER SEQUENCE {} RESTART WITH {}").format(
                sql.SQL(sequence), sql.Literal((last // servers + 1) * servers + server)
            )
        )


def capture(db: psycopg.Connection[Any]) -> None:
    """Let the changes of all tables be recorded."""
    known = {
        str(name)
        for (name,) in db.execute(
            "SELECT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE t.tgname = %s",
            (_FIRST.strip('"'),),
        ).fetchall()
    }
    for table in tables(db).keys() - known:
        for when in (
            f"AFTER INSERT OR UPDATE OR DELETE ON {{}} FOR EACH ROW {_WHEN}",
            f"BEFORE TRUNCATE ON {{}} {_WHEN}",
        ):
            label = _FIRST if when.startswith("AFTER") else f'"0{OURS}truncate"'
            text = f"CREATE TRIGGER {label} {when} EXECUTE FUNCTION {OURS}capture()"
            db.execute(sql.SQL(text).format(sql.Identifier(table)))


def install(db: psycopg.Connection[Any], schema: str, server: int, servers: int, shipping: bool) -> None:
    """Set up the database once: the schema, the `gyro_` tables, triggers, and sequences with increments."""
    with db.transaction():
        ((known,),) = db.execute("SELECT to_regclass(%s) IS NOT NULL", (f"public.{OURS}state",)).fetchall()
        if known:
            return
        if empty := not tables(db):
            db.execute(schema)
        db.execute(_OURS)
        db.execute(f"INSERT INTO {OURS}stream VALUES (1, 0, '', %s)", (empty and shipping,))
        for number in range(SLOTS):
            db.execute(f"CREATE TABLE IF NOT EXISTS {OURS}changes_{number} (LIKE {OURS}changes INCLUDING ALL)".encode())
        capture(db)
        for table in tables(db).values():
            for column, sequence in table.sequences.items():
                greatest = sql.SQL("SELECT greatest(coalesce(max({}), 0), 0) FROM {}").format(
                    sql.Identifier(column), sql.Identifier(table.name)
                )
                ((used,),) = db.execute(greatest).fetchall()
                start = (int(used) // servers + 1) * servers + server
                text = f"ALTER SEQUENCE {sequence} INCREMENT BY {servers} RESTART WITH {start}"
                db.execute(text)
