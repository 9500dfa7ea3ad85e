"""What a MariaDB and a schema must not have: what would break the order of commits, or change rows without a trigger.

- Triggers record the changes of rows. They do not fire for the actions of foreign keys, and not for `TRUNCATE`.
- Transactions are serializable because InnoDB locks all that a transaction reads and writes. Other engines do not lock
  rows, a full-text index is read without locks, and events of the DBMS write outside of operations.
- A visit is prepared with XA, which Galera does not support. Replies must not be lost with the power.

The role of a server needs all privileges on its own database, and no others (`deploy/gyro/role-mariadb.sql`).
"""

from __future__ import annotations

import re
from typing import NoReturn

from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.databases.mariadb.connection import Db, execute
from plait.kernel.errors import UsageError

ROLE = "gyro"
"""The user, and the database, that a server uses in a MariaDB that Plait has started."""
OLDEST = (10, 11)
"""The oldest release that is tested."""
MINE = f"TABLE_SCHEMA = DATABASE() AND LEFT(TABLE_NAME, {len(OURS)}) <> '{OURS}'"
_SPATIAL = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection",
)  # fmt: skip


def trial_of(database: str) -> str:
    """The database in which a server tries migrations."""
    return f"{database[:53]}_gyro_trial"


def check_server(db: Db, where: str) -> None:
    """Refuse a DBMS whose transactions or settings do not fit."""
    ((version, flush, read_only),) = execute(db, "SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@read_only")
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if "mariadb" not in version.lower() or numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST:
        raise UsageError(
            f"{where} has the version {version}, expected MariaDB {'.'.join(map(str, OLDEST))} or later",
            hint="use a newer MariaDB; MySQL is not supported",
        )
    if str(flush) not in ("1", "3"):
        raise UsageError(
            f"{where}: innodb_flush_log_at_trx_commit is {flush}, so a power failure would lose operations",
            hint="set innodb_flush_log_at_trx_commit = 1",
        )
    if execute(db, "SHOW GLOBAL VARIABLES WHERE Variable_name = 'wsrep_on' AND Value = 'ON'"):
        raise UsageError(
            f"{where} is a node of Galera, which cannot prepare transactions",
            hint="use a MariaDB with wsrep_on = OFF",
        )
    if read_only:
        raise UsageError(f"{where} is read-only", hint="set read_only = OFF")


def check_schema(db: Db, where: str) -> None:
    """Refuse tables whose changes triggers would not record, or whose transactions would not be serializable."""

    def refuse(what: str, hint: str) -> NoReturn:
        raise UsageError(f"{where}: {what}", hint=hint)

    names: dict[str, str] = {}
    for name, kind, engine in execute(
        db, f"SELECT TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE {MINE}"
    ):
        if (other := names.setdefault(name.lower(), name)) != name:
            refuse(f"the tables {other} and {name} differ in case only", "rename one of them")
        if kind == "VIEW":
            continue
        if kind != "BASE TABLE":
            refuse(f"{name} is a {kind.lower()}, which is not supported", "use a table of InnoDB")
        if str(engine).lower() != "innodb":
            refuse(f"the table {name} has the engine {engine}, which has no transactions", "use ENGINE=InnoDB")
    columns = execute(db, f"SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE {MINE}")
    for table, column, kind in columns:
        if kind in _SPATIAL:
            refuse(f"{table}.{column} has the type {kind}, which is not supported", "store coordinates as numbers")
    keyed = set()
    for table, index, kind, part in execute(
        db, f"SELECT TABLE_NAME, INDEX_NAME, INDEX_TYPE, SUB_PART FROM information_schema.STATISTICS WHERE {MINE}"
    ):
        if kind in ("FULLTEXT", "SPATIAL"):
            refuse(f"{table} has the {kind} index {index}, which is read without locks", "remove the index")
        if index == "PRIMARY":
            keyed.add(table)
            if part is not None:
                refuse(f"the primary key of {table} has only a prefix of a column", "use whole columns")
    for table, kind in execute(db, f"SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE {MINE}"):
        if kind == "BASE TABLE" and table not in keyed:
            raise UsageError(
                f"table {table} has no primary key, so updates cannot identify its rows",
                hint="give every table a primary key",
            )
    for table, name, deleted, updated in execute(
        db,
        "SELECT TABLE_NAME, CONSTRAINT_NAME, DELETE_RULE, UPDATE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS "
        "WHERE CONSTRAINT_SCHEMA = DATABASE()",
    ):
        for event, rule in (("DELETE", deleted), ("UPDATE", updated)):
            if rule not in ("RESTRICT", "NO ACTION"):
                refuse(
                    f"the foreign key {name} of {table} has ON {event} {rule}: MariaDB runs no triggers for it, so the "
                    "changes would not reach other servers",
                    f"leave out ON {event}, and {'delete' if rule == 'CASCADE' else 'change'} the rows in the operation",
                )
    for (name,) in execute(db, "SELECT EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE()"):
        refuse(f"the event {name} would change rows outside of operations", f"DROP EVENT {name}")
