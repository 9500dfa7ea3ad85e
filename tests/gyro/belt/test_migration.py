"""Migrations of MariaDB, which cannot be rolled back: they are tried in another database, and a crash is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plait.gyro.belt.configuration.merge import Fold, RowChange
from plait.gyro.belt.databases.changeable import MigrationError, Switch
from plait.gyro.belt.databases.mariadb.connection import address, connect, execute
from plait.gyro.belt.databases.mariadb.database import MariadbDatabase
from plait.gyro.belt.records import Call, Entry, chained
from tests.gyro.belt.variants import needs_mariadb
from tests.support.engines import Mariadb, shared_mariadb

pytestmark = [pytest.mark.slow, needs_mariadb]
OLD = """
CREATE TABLE people (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) NOT NULL UNIQUE, touched INT NOT NULL DEFAULT 0);
CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, person INT NOT NULL, FOREIGN KEY (person) REFERENCES people (id));
CREATE TRIGGER touch BEFORE UPDATE ON people FOR EACH ROW SET NEW.touched = OLD.touched + 1;
CREATE VIEW named AS SELECT id, name FROM people;
INSERT INTO people (id, name) VALUES (1, 'ada'), (2, 'ben');
INSERT INTO orders (id, person) VALUES (1, 1);
"""
NEW = OLD.partition("INSERT")[0].replace(
    "NOT NULL UNIQUE,", "NOT NULL UNIQUE, style VARCHAR(9) NOT NULL DEFAULT 'plain',"
)
STYLE = "ALTER TABLE people ADD COLUMN style VARCHAR(9) NOT NULL DEFAULT 'plain' AFTER name;"


class Run:
    """A server whose tables migrate."""

    def __init__(self, folder: Path) -> None:
        self.engine = Mariadb(folder, OLD)
        self.die = ""
        self.open()

    def open(self, rank: int = 0, servers: int = 2, schema: str = OLD) -> MariadbDatabase:
        self.database = MariadbDatabase(
            self.engine.dsn(0), rank=rank, servers=servers, schema=schema, shipping=1 << 20, step=self._step, parallel=1
        )
        return self.database

    def _step(self, name: str) -> None:
        if name == self.die:
            raise KeyboardInterrupt

    def switch(self, migration: str, schema: str = NEW, *, attempt: bool = True, **more: Any) -> str:
        seq, chain = self.database.applied() + 1, self.database.chain()
        entry = chained(chain, [Entry(seq, 1, 0, 0, f"r{seq}", "gyro:activate", b"{}", b"", b"")])[0]
        given = {"fold": Fold(), "past": [], "rank": 0, "servers": 2} | more
        return self.database.switch(Switch(entry, "{}", migration=migration, schema=schema, **given), attempt=attempt)

    def write(self, sql: str, *parameters: Any) -> Any:
        def run(db: Any) -> bytes:
            return b"%d" % (db.execute(sql, parameters).lastrowid or 0)

        return int(self.database.write(Call(f"{sql}{parameters}", "t", {}, run)).reply)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.engine.rows(0, query)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    made = Run(tmp_path)
    yield made
    made.database.close()
    made.engine.close()


def databases() -> set[str]:
    db = connect(shared_mariadb().admin)
    try:
        return {name for (name,) in execute(db, "SHOW DATABASES") if name.endswith("_trial")}
    finally:
        db.close()


def test_a_migration_that_is_refused_leaves_no_trace(run: Run) -> None:
    """Each of these would give servers different rows, other tables than the analysis knows, or touch other databases."""
    before = run.database.schema(), run.rows("SELECT * FROM people"), run.rows("SHOW TABLES")
    name = address(run.engine.dsn(0))["database"]
    for migration, said in (
        (STYLE + "UPDATE people SET style = LEFT(UUID(), 9)", "other rows each time"),
        (STYLE + "UPDATE people SET style = FLOOR(RAND() * 1000000)", "other rows each time"),
        (STYLE + "UPDATE people SET style = SECOND(NOW()) + MONTH(CURDATE())", "other rows each time"),
        (STYLE + "INSERT INTO orders (person) SELECT id FROM people", "other rows each time"),
        (STYLE + "UPDATE people SET style = LEFT(CURRENT_USER, 9)", "CURRENT_USER differs between servers"),
        (STYLE + "UPDATE people SET style = sysdate ()", "sysdate differs between servers"),
        (STYLE + "DROP TABLE absent", "Unknown table"),
        (STYLE + "ALTER TABLE people ADD CHECK (touched > 0)", "CONSTRAINT"),
        ("ALTER TABLE people ADD COLUMN style VARCHAR(9) AFTER name", "the column people.style is number 3"),
        (STYLE.replace(" AFTER name", ""), "the column people.style is number 4"),
        (STYLE + "DROP VIEW named", "view named is missing after it"),
        (STYLE + "SET foreign_key_checks = 0; DELETE FROM people", "a row of orders has no row of people"),
        (STYLE + "DELETE FROM people", "foreign key constraint fails"),
        (STYLE + "ALTER TABLE orders DROP PRIMARY KEY, MODIFY id INT", "orders has no primary key"),
        (f"UPDATE {name} . people SET name = 'x'", "names must not contain the database"),
        (f"UPDATE `{name}`.people SET name = 'x'", "names must not contain the database"),
        (f"{STYLE} USE {name}", "USE is not possible"),
        (f"DROP DATABASE {name}", "DATABASE . is not possible"),
        ("UPDATE gyro_state SET applied = 7", "belong to the servers"),
        ("/*!99999 DROP TABLE people */", "a comment that MariaDB executes"),
        ("EXECUTE IMMEDIATE 'DROP TABLE people'", "EXECUTE is not possible"),
        ("SET @x = 1", "a variable"),
    ):
        with pytest.raises(MigrationError, match=said):
            run.switch(migration)
    assert (run.database.schema(), run.rows("SELECT * FROM people"), run.rows("SHOW TABLES")) == before
    assert not databases()
    assert run.switch(STYLE) != before[0]
    assert run.database.schema() == before[0]


def test_triggers_record_and_act_once_after_a_migration(run: Run) -> None:
    """A trial has the rows that all servers have, and its text is that of the tables afterwards."""
    fold = Fold()
    fold.add([RowChange("people", "INSERT", ("3",), {"id": "3", "name": "eve", "touched": "0"})])
    text = run.switch(STYLE + "UPDATE people SET style = name WHERE id = 3", fold=fold)
    assert run.rows("SELECT id FROM people") == [(1,), (2,)]
    assert run.switch(STYLE + "UPDATE people SET style = name WHERE id = 3", attempt=False, fold=fold) == text
    assert run.database.schema() == text
    assert run.rows("SELECT * FROM people ORDER BY id") == [
        (1, "ada", "plain", 0),
        (2, "ben", "plain", 0),
        (3, "eve", "eve", 1),
    ]
    run.write("UPDATE people SET style = 'gold' WHERE id = 1")
    (update,) = run.database.outbox((), 9)
    (change,) = run.database.row_changes(update.update)
    assert (change.key, change.values) == (("1",), {"style": "gold", "touched": "1"})
    assert run.rows("SELECT style, touched FROM people WHERE id = 1") == [("gold", 1)]


def test_new_ids_are_above_all_ids_of_all_servers(run: Run) -> None:
    """Also those of rows that were deleted, and also after a crash before the ids begin."""
    first = run.write("INSERT INTO people (name) VALUES ('x')")
    run.write("DELETE FROM people WHERE id = %s", first)
    assert run.database.ids()["people"] >= first
    run.switch("", OLD, attempt=False, servers=3, rank=1, ids={"people": 100})
    run.database.close()
    run.open(1, 3)
    found = [run.write("INSERT INTO people (name) VALUES (%s)", str(n)) for n in range(3)]
    assert all(i > 100 and i % 3 == 1 for i in found)
    run.database.close()
    run.open(1, 3)
    assert run.write("INSERT INTO people (name) VALUES ('y')") > max(found)


@pytest.mark.parametrize("step", ["migrate?", "migrate"])
def test_an_interrupted_migration_is_noticed(step: str, run: Run) -> None:
    """The database is empty at the next start, and at each one until it has an identity again."""
    run.database.identify("mine")
    run.die = step
    with pytest.raises(KeyboardInterrupt):
        run.switch(STYLE, attempt=False)
    run.die = ""
    for _ in range(2):
        run.database.close()
        assert run.open().torn
        assert (run.database.identity(), run.database.applied(), run.database.whole()) == (None, 0, True)
        assert run.rows("SELECT * FROM people") == [(1, "ada", 0), (2, "ben", 0)]
        run.switch(STYLE, attempt=False)
    run.database.identify("mine")
    run.database.close()
    assert not run.open().torn
    assert run.rows("SELECT style FROM people") == [("plain",), ("plain",)]


def test_a_trial_needs_its_own_database(run: Run) -> None:
    """Without the right to create it, and if somebody else uses the name."""
    name = address(run.engine.dsn(0))["database"]
    db = connect(shared_mariadb().admin)
    try:
        execute(db, f"CREATE DATABASE {name}_gyro_trial")
        execute(db, f"CREATE TABLE {name}_gyro_trial.theirs (id INT PRIMARY KEY)")
        with pytest.raises(MigrationError, match="reserved for trials"):
            run.switch(STYLE)
        assert execute(db, f"SHOW TABLES FROM {name}_gyro_trial") == [("theirs",)]
        execute(db, f"DROP DATABASE {name}_gyro_trial")
        execute(db, f"REVOKE ALL PRIVILEGES ON `{name}\\_gyro\\_trial`.* FROM gyro@localhost")
        with pytest.raises(MigrationError, match="may not create the database"):
            run.switch(STYLE)
    finally:
        db.close()
