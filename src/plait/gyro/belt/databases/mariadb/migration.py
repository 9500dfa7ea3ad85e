"""Migrations of MariaDB: how one is tried without an effect, and executed.

MariaDB commits after each statement that changes a table, so a migration that fails cannot be rolled back. A server tries it
in another database of the same MariaDB, with a copy of the tables and rows. It tries it twice, with another clock and other
generated ids. If the rows differ after that, they would differ between servers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from plait.gyro.belt.databases.changeable import MigrationError
from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.databases.mariadb.connection import TOKEN, Db, code, execute, line, quoted
from plait.gyro.belt.databases.mariadb.limits import check_schema, trial_of
from plait.gyro.belt.databases.mariadb.rows import definitions, tables, triggers
from plait.gyro.belt.records import DatabaseGoneError
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("serve"):
    import pymysql

Open = Callable[..., Db]
_ALONE = 600
"""How long to wait, in seconds, for a migration that MariaDB still executes for a server that has died."""
_DENIED = (1044, 1045, 1142)
_RUNS = (
    {"auto_increment_increment": 2, "auto_increment_offset": 1, "timestamp": 981173106},
    {"auto_increment_increment": 2, "auto_increment_offset": 2, "timestamp": 1813256980},
)
"""The settings of the two trials: ids and the time differ."""
_REFUSED = (
    (r"/\*M?!", "a comment that MariaDB executes"),
    (r"@", "a variable (@…)"),
    (r"(?:^|;)\s*USE\b", "USE"),
    (r"\b(?:PREPARE|EXECUTE|LOAD|OUTFILE|DUMPFILE|GRANT|REVOKE|DELIMITER|XA|HANDLER|GET_LOCK|RELEASE_\w*LOCKS?)\b", ""),
    (r"\b(?:DATABASE|SCHEMA)\s*[(`\w]", ""),
)
_VARYING = re.compile(
    r"\b(CURRENT_USER|CURRENT_ROLE|(?:SYSDATE|USER|SESSION_USER|SYSTEM_USER|CONNECTION_ID|LAST_INSERT_ID|ROW_COUNT"
    r"|FOUND_ROWS|VERSION)(?=\s*\())",
    re.IGNORECASE,
)
"""What may differ between servers, and not between two trials at one of them."""


@contextmanager
def alone(db: Db, database: str) -> Iterator[None]:
    """Wait until no other connection migrates this database. A dead server may have left one that still executes."""
    name = f"{OURS}{hashlib.blake2b(database.encode(), digest_size=16).hexdigest()}"
    ((got,),) = execute(db, "SELECT GET_LOCK(%s, %s)", (name, _ALONE))
    if got != 1:
        raise DatabaseGoneError(f"MariaDB still executes a migration of the database {database}")
    try:
        yield
    finally:
        if db.open:
            execute(db, "SELECT RELEASE_LOCK(%s)", (name,))


def migrate(db: Db, migration: str) -> None:
    """Execute the statements of a migration."""
    try:
        with db.cursor() as cursor:
            cursor.execute(migration)
            while cursor.nextset():
                pass
    except pymysql.MySQLError as error:
        raise MigrationError(line(error)) from None


def tried(
    connect: Open, database: str, where: str, migration: str, schema: str, merge: Callable[[Db], None]
) -> str:  # fmt: skip
    """Try a migration on a copy of the tables; return the tables after it as text. `merge` changes the rows of the copy."""
    _check_text(migration, database)
    sums, text = [], ""
    for settings in _RUNS:
        with _scratch(connect, database, settings) as db:
            _copy(db, database, merge)
            migrate(db, migration)
            try:
                check_schema(db, where)
            except UsageError as error:
                raise MigrationError(error.message.removeprefix(f"{where}: ")) from None
            _check_keys(db)
            found = described(db)
            text = "\n".join(f"{name}: {' '.join(each.split())}" for name, each in definitions(db))
            sums.append({name: execute(db, f"CHECKSUM TABLE {quoted(name)} EXTENDED")[0][1] for name in tables(db)})
    for name, number in sums[0].items():
        if sums[1][name] != number:
            raise MigrationError(
                f"it gives the table {name} other rows each time: it depends on the time, on chance or on generated ids"
            )
    compare(connect, database, schema, found)
    return text


def compare(connect: Open, database: str, schema: str, found: dict[str, str] | None = None) -> None:
    """Refuse if the tables are not those of a schema. `found`: the tables, as `described` gives them."""
    if found is None:
        db = connect()
        found = described(db)
        db.close()
    if not schema:
        return
    with _scratch(connect, database, {}) as db:
        migrate(db, schema)
        expected = described(db)
    for what in sorted(expected.keys() | found.keys()):
        if expected.get(what) != found.get(what):
            raise MigrationError(
                f"{what} is {found.get(what, 'missing')} after it, and {expected.get(what, 'missing')} in the schema"
            )


def _check_text(migration: str, database: str) -> None:
    """Refuse what a trial cannot show, or what would leave the database."""
    text = TOKEN.sub(
        lambda m: "''" if m[0][0] in "'\"" else m[0] if m[0][0] == "`" or "!" in m[0][:4] else " ", migration
    )
    for pattern, name in _REFUSED:
        if found := re.search(pattern, text, re.IGNORECASE):
            raise MigrationError(f"{name or ' '.join(found[0].split())} is not possible in a migration")
    if found := _VARYING.search(text):
        raise MigrationError(f"{found[1]} differs between servers")
    if re.search(rf"(?<![\w`]){re.escape(database)}\s*\.|`{re.escape(database)}`\s*\.", text, re.IGNORECASE):
        raise MigrationError(f"names must not contain the database ({database}.…)")
    if re.search(rf"\b{OURS}", text, re.IGNORECASE):
        raise MigrationError(f"names that begin with {OURS} belong to the servers")


def _check_keys(db: Db) -> None:
    """Refuse rows without the rows that they refer to. A migration may have switched the checks off."""
    references: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for name, table, column, target, key in execute(
        db,
        "SELECT CONSTRAINT_NAME, TABLE_NAME, COLUMN_NAME, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME FROM "
        "information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = DATABASE() AND REFERENCED_TABLE_NAME IS NOT NULL",
    ):
        references.setdefault((name, table, target), []).append((column, key))
    for (_, table, target), columns in references.items():
        filled = " AND ".join(f"c.{quoted(column)} IS NOT NULL" for column, _ in columns)
        same = " AND ".join(f"p.{quoted(key)} = c.{quoted(column)}" for column, key in columns)
        query = f"SELECT 1 FROM {quoted(table)} c WHERE {filled} AND NOT EXISTS "
        if execute(db, f"{query}(SELECT 1 FROM {quoted(target)} p WHERE {same}) LIMIT 1"):
            raise MigrationError(f"a row of {table} has no row of {target} that it refers to")


@contextmanager
def _scratch(connect: Open, database: str, settings: dict[str, int]) -> Iterator[Db]:
    """A new database, which is removed afterwards."""
    name = trial_of(database)
    db = connect()
    try:
        with alone(db, name):
            _create(db, name)
            try:
                for setting, value in settings.items():
                    execute(db, f"SET SESSION {setting} = {value}")
                yield db
            finally:
                if db.open:
                    with suppress(pymysql.MySQLError):
                        _remove(db, name)
    finally:
        db.close()


def _create(db: Db, name: str) -> None:
    """Create the database of a trial, and use it."""
    ((charset, collation),) = execute(db, "SELECT @@character_set_database, @@collation_database")
    try:
        _remove(db, name)
        execute(db, f"CREATE DATABASE {quoted(name)} CHARACTER SET {charset} COLLATE {collation}")
    except pymysql.OperationalError as error:
        if code(error) not in _DENIED:
            raise
        raise MigrationError(
            f"the user may not create the database {name}, in which migrations are tried (deploy/gyro/role-mariadb.sql)"
        ) from None
    db.select_db(name)
    execute(db, f"CREATE TABLE {OURS}trial (one INTEGER PRIMARY KEY)")


def _remove(db: Db, name: str) -> None:
    """Remove the database of a trial; never another one that has this name."""
    known = [
        t for (t,) in execute(db, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s", (name,))
    ]
    if known and f"{OURS}trial" not in known:
        raise MigrationError(f"the database {name} has tables: its name is reserved for trials of migrations")
    execute(db, f"DROP DATABASE IF EXISTS {quoted(name)}")


def _copy(db: Db, database: str, merge: Callable[[Db], None]) -> None:
    """Copy tables, rows, views, functions and triggers into the present database."""
    trial = trial_of(database)
    db.select_db(database)
    known, theirs = tables(db), triggers(db)
    made = [execute(db, f"SHOW CREATE TABLE {quoted(name)}")[0][1] for name in known]
    views = dict(found for found in definitions(db) if found[0].startswith("view "))
    routines = [
        (kind, name)
        for kind, name in execute(
            db,
            "SELECT ROUTINE_TYPE, ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()",
        )
    ]
    texts = [execute(db, f"SHOW CREATE {kind} {quoted(name)}")[0][2] for kind, name in routines]
    db.select_db(trial)
    execute(db, "SET @gyro_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO'")
    execute(db, "SET SESSION foreign_key_checks = 0, SESSION check_constraint_checks = 0")
    for ddl in [*made, *texts]:
        execute(db, ddl)
    for name, table in known.items():
        columns = ", ".join(map(quoted, table.types))
        execute(db, f"INSERT INTO {quoted(name)} ({columns}) SELECT {columns} FROM {quoted(database)}.{quoted(name)}")
    merge(db)
    _create_views(db, views)
    execute(db, "SET SESSION foreign_key_checks = 1, SESSION check_constraint_checks = 1")
    for name, timing, event, on, body, mode in theirs:
        execute(db, "SET SESSION sql_mode = %s", (mode,))
        execute(db, f"CREATE TRIGGER {quoted(name)} {timing} {event} ON {quoted(on)} FOR EACH ROW {body}")
    execute(db, "SET SESSION sql_mode = @gyro_mode")


def _create_views(db: Db, views: dict[str, str]) -> None:
    """Create views, each after those that it uses."""
    while views:
        failed: dict[str, str] = {}
        reason = ""
        for name, text in views.items():
            try:
                execute(db, f"CREATE VIEW {quoted(name.removeprefix('view '))} AS {text}")
            except pymysql.MySQLError as error:
                failed[name], reason = text, line(error)
        if len(failed) == len(views):
            raise MigrationError(f"{next(iter(failed))} cannot be copied for a trial: {reason}")
        views = failed


def described(db: Db) -> dict[str, str]:
    """What the analysis relies on: columns in their order, keys, options, views, triggers; functions by name."""
    found: dict[str, str] = {}
    for what, text in definitions(db):
        kind, _, name = what.partition(" ")
        if kind in ("function", "procedure"):
            found[what] = "there"
        elif kind != "table":
            found[what] = " ".join(text.split())
        else:
            found |= _table(name, text)
    return found


def _table(name: str, text: str) -> dict[str, str]:
    """The lines of SHOW CREATE TABLE. Names of foreign keys do not count."""
    _, *lines, options = text.splitlines()
    parts = [each.strip().removesuffix(",") for each in lines]
    columns = [each for each in parts if each.startswith("`")]
    keys = [re.sub(r"^CONSTRAINT `[^`]+` FOREIGN", "FOREIGN", each) for each in parts if not each.startswith("`")]
    found = {f"the table {name}": options.removeprefix(")").strip(), f"the keys of {name}": ", ".join(sorted(keys))}
    for number, each in enumerate(columns, 1):
        column, _, rest = each[1:].partition("` ")
        found[f"the column {name}.{column}"] = f"number {number}, {rest}"
    return found
