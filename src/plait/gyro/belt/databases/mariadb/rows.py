"""Tables of MariaDB: triggers that record row images, statements that apply them, and ids.

A trigger writes the old and the new row into the table `gyro_changes`: each column as the hexadecimal digits of its text or
of its bytes, or `N` for NULL. So nothing depends on the types of JSON, on character sets or on rounding.

MariaDB cannot switch triggers off in a session. So the triggers of the application are created again, with the condition
that no update is being applied.
"""

from __future__ import annotations

import dataclasses
import decimal
import hashlib
import re
from collections.abc import Callable
from typing import Any

from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.databases.mariadb.connection import Db, execute, quoted
from plait.gyro.belt.databases.mariadb.limits import MINE

_DONE = """
  position BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, request VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
  NOT NULL UNIQUE, operation TEXT NOT NULL, arguments LONGBLOB NOT NULL, reply LONGBLOB NOT NULL, seq BIGINT NOT NULL,
  at DOUBLE NOT NULL, KEY (at)"""
CHANGES = """
  n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, relation VARCHAR(64) NOT NULL, kind VARCHAR(6) NOT NULL,
  old LONGTEXT CHARACTER SET ascii NOT NULL, new LONGTEXT CHARACTER SET ascii NOT NULL"""
TORN = f"{OURS}torn"
"""Has a row while a migration runs: MariaDB commits after each statement, so a crash leaves tables half changed."""
_ROW = "one TINYINT NOT NULL PRIMARY KEY CHECK (one = 1)"
CONFIGURATION = f"""
CREATE TABLE IF NOT EXISTS {OURS}configuration ({_ROW}, state LONGTEXT) ENGINE=InnoDB;
INSERT IGNORE INTO {OURS}configuration VALUES (1, NULL);
CREATE TABLE IF NOT EXISTS {OURS}past (
  request VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL PRIMARY KEY, operation TEXT NOT NULL,
  arguments LONGBLOB NOT NULL, reply LONGBLOB NOT NULL, seq BIGINT NOT NULL, position BIGINT NOT NULL,
  server INTEGER NOT NULL, at DOUBLE NOT NULL, KEY (at)) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS {OURS}absorbed (server INTEGER NOT NULL PRIMARY KEY, position BIGINT NOT NULL) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS {OURS}ids (relation VARCHAR(64) NOT NULL PRIMARY KEY, start BIGINT UNSIGNED NOT NULL)
ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS {TORN} ({_ROW}) ENGINE=InnoDB;
"""
"""What a database needs to follow changes of the configuration. The last table says that all are there."""
_OURS = f"""
CREATE TABLE {OURS}state ({_ROW}, applied BIGINT NOT NULL, chain VARCHAR(64) NOT NULL) ENGINE=InnoDB;
CREATE TABLE {OURS}identity ({_ROW}, identity TEXT) ENGINE=InnoDB;
CREATE TABLE {OURS}done ({_DONE}) ENGINE=InnoDB;
CREATE TABLE {OURS}changes ({CHANGES}) ENGINE=InnoDB;
CREATE TABLE {OURS}outbox (
  number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, seq BIGINT NOT NULL, place BIGINT NOT NULL, request TEXT NOT NULL,
  operation TEXT NOT NULL, arguments LONGBLOB NOT NULL, reply LONGBLOB NOT NULL, updates LONGBLOB NOT NULL) ENGINE=InnoDB;
INSERT INTO {OURS}state VALUES (1, 0, '');
INSERT INTO {OURS}identity VALUES (1, NULL);
"""
_STREAM = f"""
CREATE TABLE {OURS}stream ({_ROW}, position BIGINT NOT NULL, chain VARCHAR(64) NOT NULL, whole TINYINT NOT NULL)
ENGINE=InnoDB
"""
_BINARY = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_WHOLE = ("tinyint", "smallint", "mediumint", "int", "bigint")
_NUMBERED = ("bit", "enum", "set")
"""Types whose values are recorded as numbers. An ENUM has a number for a label that is not valid, too."""
_COLUMNS = f"""
SELECT c.TABLE_NAME, c.COLUMN_NAME, c.DATA_TYPE, c.EXTRA, c.GENERATION_EXPRESSION IS NOT NULL, c.COLUMN_TYPE
FROM information_schema.COLUMNS c JOIN information_schema.TABLES t USING (TABLE_SCHEMA, TABLE_NAME)
WHERE c.{MINE.replace("TABLE_NAME", "c.TABLE_NAME")} AND t.TABLE_TYPE = 'BASE TABLE'
ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION
"""
_KEYS = f"""
SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE {MINE} AND INDEX_NAME = 'PRIMARY'
ORDER BY TABLE_NAME, SEQ_IN_INDEX
"""
_TRIGGERS = f"""
SELECT TRIGGER_NAME, ACTION_TIMING, EVENT_MANIPULATION, EVENT_OBJECT_TABLE, ACTION_STATEMENT, SQL_MODE
FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE() AND LEFT(TRIGGER_NAME, {len(OURS)}) <> '{OURS}'
ORDER BY EVENT_OBJECT_TABLE, ACTION_ORDER
"""
_GUARD, _GUARDED = "IF @gyro_applying IS NULL THEN ", "\n; END IF"
"""Around the triggers of the application."""
_COUNTER = re.compile(r" AUTO_INCREMENT=\d+")
_MOST = {"tinyint": 7, "smallint": 15, "mediumint": 23, "int": 31, "bigint": 63}
Row = dict[str, str | None]
"""The columns of a row: text, hexadecimal digits of bytes, or NULL."""


@dataclasses.dataclass
class Table:
    """A table: its columns with their types, and the primary key."""

    name: str
    types: dict[str, str] = dataclasses.field(default_factory=dict)
    """Columns that are not computed from other columns."""
    key: list[str] = dataclasses.field(default_factory=list)
    touched: list[str] = dataclasses.field(default_factory=list)
    """Columns that MariaDB sets to the present time when the row changes (ON UPDATE)."""
    generated: str = ""
    """The column with AUTO_INCREMENT."""
    most: int = 0
    """The greatest id of this column."""

    def change(self, kind: str, old: str, new: str) -> tuple[Row, Row] | None:
        """The old key of the row, and the changed columns; None if no column has changed."""
        before, after = self._row(old), self._row(new)
        key = {c: (before or after)[c] for c in self.key}
        if kind == "DELETE":
            return key, {}
        row = {c: v for c, v in after.items() if kind == "INSERT" or before[c] != v}
        return (key, row) if row else None

    def _row(self, recorded: str) -> Row:
        if not recorded:
            return {}
        found: Row = {}
        for (column, kind), cell in zip(self.types.items(), recorded.split(","), strict=True):
            text = cell if kind in _BINARY or cell == "N" else bytes.fromhex(cell).decode()
            found[column] = None if cell == "N" else text
        return found

    def _value(self, column: str, text: str | None) -> Any:
        """The value of a column, as a parameter."""
        kind = self.types[column]
        if text is None:
            return None
        if kind in _BINARY:
            return bytes.fromhex(text)
        convert: Callable[[str], Any] = (
            int if kind in (*_WHOLE, *_NUMBERED) else decimal.Decimal if kind == "decimal" else float
            if kind in ("float", "double") else str
        )  # fmt: skip
        return convert(text)

    def apply(self, db: Db, kind: str, key: Row, row: Row) -> None:
        """Set a row to its state at the executing server, whatever its state is here."""
        name = quoted(self.name)
        match = " AND ".join(f"{quoted(c)} = %s" for c in self.key)
        at = [self._value(c, key[c]) for c in self.key]
        values = [self._value(c, v) for c, v in row.items()]
        if kind == "UPDATE":
            changed = [f"{quoted(c)} = %s" for c in row]
            changed += [f"{quoted(c)} = {quoted(c)}" for c in self.touched if c not in row]
            execute(db, f"UPDATE {name} SET {', '.join(changed)} WHERE {match}", values + at)
            return
        execute(db, f"DELETE FROM {name} WHERE {match}", at)
        if kind == "INSERT":
            columns, marks = ", ".join(map(quoted, row)), ", ".join(["%s"] * len(row))
            execute(db, f"INSERT INTO {name} ({columns}) VALUES ({marks})", values)

    def find(self, db: Db, key: Row) -> Row | None:
        """The columns of a row; None if there is no such row."""
        match = " AND ".join(f"{quoted(c)} = %s" for c in self.key)
        values = [self._value(c, key[c]) for c in self.key]
        query = f"SELECT {self.image('r').replace('%', '%%')} FROM {quoted(self.name)} AS r WHERE {match}"
        found = execute(db, query, values)
        return self._row(found[0][0]) if found else None

    def image(self, row: str) -> str:
        """The expression of a row image; `row` is OLD or NEW in a trigger, or the name of a row."""
        return f"CONCAT_WS(',', {', '.join(_digits(f'{row}.{quoted(c)}', kind) for c, kind in self.types.items())})"


def _digits(column: str, kind: str) -> str:
    if kind in _BINARY:
        text = column
    elif kind in _NUMBERED:
        text = f"CAST({column} + 0 AS CHAR)"
    elif kind == "float":
        text = f"CAST({column} + 0e0 AS CHAR)"  # as a FLOAT, its text would be rounded
    else:
        text = f"CONVERT({column} USING utf8mb4)"
    return f"IFNULL(HEX({text}), 'N')"


def tables(db: Db) -> dict[str, Table]:
    """The tables of the application."""
    found: dict[str, Table] = {}
    for name, column, kind, extra, computed, written in execute(db, _COLUMNS):
        table = found.setdefault(name, Table(name))
        if computed:
            continue
        table.types[column] = kind
        if "on update" in extra.lower():
            table.touched.append(column)
        if "auto_increment" in extra.lower():
            table.generated = column
            table.most = (1 << (_MOST.get(kind, 63) + ("unsigned" in written))) - 1
    for name, column in execute(db, _KEYS):
        found[name].key.append(column)
    return found


def definitions(db: Db) -> list[tuple[str, str]]:
    """All objects of the application, with their definitions. Counters of ids differ between servers."""
    found = []
    ((database,),) = execute(db, "SELECT DATABASE()")
    for name, kind in execute(
        db, f"SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE {MINE} ORDER BY TABLE_NAME"
    ):
        if kind == "VIEW":
            ((text,),) = execute(
                db,
                "SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s",
                (name,),
            )
            found.append((f"view {name}", str(text).replace(f"{quoted(database)}.", "")))
        else:
            ((_, text),) = execute(db, f"SHOW CREATE TABLE {quoted(name)}")
            found.append((f"table {name}", _COUNTER.sub("", text)))
    for name, timing, event, table, body, mode in triggers(db):
        found.append((f"trigger {name}", f"{timing} {event} ON {table} {mode} {body}"))
    for name, kind, body in execute(
        db,
        "SELECT ROUTINE_NAME, ROUTINE_TYPE, ROUTINE_DEFINITION FROM information_schema.ROUTINES "
        "WHERE ROUTINE_SCHEMA = DATABASE() ORDER BY ROUTINE_TYPE, ROUTINE_NAME",
    ):
        found.append((f"{kind.lower()} {name}", str(body)))
    return found


def functions(db: Db) -> bool:
    """Whether the schema has functions, which may write in a query."""
    return bool(
        execute(
            db,
            "SELECT 1 FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() "
            "AND ROUTINE_TYPE = 'FUNCTION' LIMIT 1",
        )
    )


def known(db: Db, name: str = f"{OURS}stream") -> bool:
    """Whether the database has a table; whether it is set up."""
    return bool(execute(db, f"SHOW TABLES LIKE '{name.replace('_', chr(92) + '_')}'"))


def torn(db: Db) -> bool:
    """Whether a migration was interrupted."""
    return known(db, TORN) and bool(execute(db, f"SELECT 1 FROM {TORN}"))


def clear(db: Db, *, keep: str = "") -> None:
    """Remove everything, but a table."""
    execute(db, "SET SESSION foreign_key_checks = 0")
    for name, kind in execute(
        db, "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"
    ):
        if name != keep:
            word = kind if kind in ("VIEW", "SEQUENCE") else "TABLE"
            execute(db, f"DROP {word} {quoted(name)}")
    for name, kind in execute(
        db, "SELECT ROUTINE_NAME, ROUTINE_TYPE FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()"
    ):
        execute(db, f"DROP {kind} {quoted(name)}")
    for (name,) in execute(db, "SELECT EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE()"):
        execute(db, f"DROP EVENT {quoted(name)}")
    execute(db, "SET SESSION foreign_key_checks = 1")


def install(db: Db, *, whole: bool) -> None:
    """Create the `gyro_` tables and the triggers. The table `gyro_stream` comes last: it says that all is there."""
    for statement in filter(str.strip, _OURS.split(";\n")):
        execute(db, statement)
    record(db)
    execute(db, _STREAM)
    execute(db, f"INSERT INTO {OURS}stream VALUES (1, 0, '', %s)", (whole,))


def complete(db: Db) -> None:
    """Create the tables for changes of the configuration, if a release without them has set up the database."""
    if not known(db, TORN) or not known(db, f"{OURS}configuration"):
        for statement in filter(str.strip, CONFIGURATION.split(";\n")):
            execute(db, statement)


def unrecord(db: Db) -> None:
    """Drop the triggers that record changes."""
    for (name,) in execute(
        db,
        "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE() "
        f"AND LEFT(TRIGGER_NAME, {len(OURS)}) = '{OURS}'",
    ):
        execute(db, f"DROP TRIGGER {quoted(name)}")


def record(db: Db) -> None:
    """Create the triggers that record changes, and those of the application behind them."""
    theirs = triggers(db)
    for name, *_ in theirs:
        execute(db, f"DROP TRIGGER {quoted(name)}")
    for table in tables(db).values():
        label = hashlib.blake2b(table.name.encode(), digest_size=12).hexdigest()
        for event in ("INSERT", "UPDATE", "DELETE"):
            old = "''" if event == "INSERT" else table.image("OLD")
            new = "''" if event == "DELETE" else table.image("NEW")
            execute(
                db,
                f"CREATE TRIGGER {OURS}{event.lower()}_{label} AFTER {event} ON {quoted(table.name)} FOR EACH ROW "
                f"IF @gyro_capture = 1 THEN INSERT INTO {OURS}changes (relation, kind, old, new) "
                f"VALUES ({db.escape(table.name)}, '{event}', {old}, {new}); END IF",
            )
    for name, timing, event, on, body, mode in theirs:
        execute(db, "SET @gyro_mode = @@SESSION.sql_mode, SESSION sql_mode = %s", (mode,))
        execute(
            db,
            f"CREATE TRIGGER {quoted(name)} {timing} {event} ON {quoted(on)} FOR EACH ROW {_GUARD}{body}{_GUARDED}",
        )
        execute(db, "SET SESSION sql_mode = @gyro_mode")


def triggers(db: Db) -> list[tuple[str, str, str, str, str, str]]:
    """The triggers of the application, as it wrote them: name, time, event, table, body, SQL mode."""
    return [
        (name, timing, event, table, body.removeprefix(_GUARD).removesuffix(_GUARDED), mode)
        for name, timing, event, table, body, mode in execute(db, _TRIGGERS)
    ]


def first_id(db: Db, table: Table, rank: int, servers: int, used: int, gap: int) -> int:
    """The id with which a table goes on: after all ids that were used, and after a gap; at most a part of their range."""
    column = quoted(table.generated)
    ((found,),) = execute(db, f"SELECT COALESCE(MAX({column}), 0) FROM {quoted(table.name)}")
    last = max(int(found), used, 0)
    last += min(gap * servers, max(table.most - last, 0) // 16)
    return (last // servers + 1) * servers + rank


def begin_ids(db: Db, table: str, start: int) -> None:
    """Let the ids of a table go on with an id. MariaDB commits after this statement."""
    execute(db, f"ALTER TABLE {quoted(table)} AUTO_INCREMENT = {start}")


def next_ids(db: Db) -> dict[str, int]:
    """The next id of each table that generates ids."""
    query = f"SELECT TABLE_NAME, AUTO_INCREMENT FROM information_schema.TABLES WHERE {MINE}"
    return {name: int(number) for name, number in execute(db, query) if number is not None}
