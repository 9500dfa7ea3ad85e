"""Changesets say what sessions of SQLite's own extension say, and lead to the same rows elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.gyro.belt.databases.sqlite.changeset import HookRecorder, SessionRecorder, recorder
from plait.gyro.belt.databases.sqlite.visit import resolve
from plait.gyro.belt.records import OperationError

SCHEMA = """
CREATE TABLE a (id INTEGER PRIMARY KEY, x, y REAL, u INTEGER UNIQUE);
CREATE TABLE b (p INTEGER PRIMARY KEY DESC, x, y REAL, u INTEGER) WITHOUT ROWID;
CREATE TABLE c (x, p TEXT COLLATE NOCASE, y REAL, u, q INTEGER DEFAULT 0, PRIMARY KEY (q, p));
CREATE TABLE d (p NOT NULL PRIMARY KEY, x, y REAL, u, g AS (typeof(x)) STORED);
CREATE TABLE e (p INTEGER PRIMARY KEY DESC, x, y REAL, u INTEGER REFERENCES a (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TRIGGER t AFTER UPDATE OF x ON a BEGIN UPDATE e SET x = NEW.x WHERE u = NEW.u; END;
INSERT INTO a VALUES (1, 'one', 1, 11), (2, 'two', 2, 12), (3, NULL, NULL, NULL);
INSERT INTO b VALUES (1, 'one', 1, 11), (2, x'00ff', 2.5, 12);
INSERT INTO c VALUES ('one', 'k', 1, 11, 0), ('two', 'l', 2, 12, 1);
INSERT INTO d (p, x, y, u) VALUES (1, 'one', 1, 11), ('k', 'two', 2, 12), (2.5, 0.0, 2, 13);
INSERT INTO e VALUES (1, 'one', 1, 1), (2, 'two', 2, 2), (7, 'three', 3, 11);
"""
TABLES = {"a": "id", "b": "p", "c": "p", "d": "p", "e": "p"}

values = st.one_of(
    st.none(),
    st.integers(0, 4),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0.0, -0.0, 1.0, 2.5, 1e300, float("inf")]),
    st.sampled_from(["", "k", "K", "1", "1.0", "é\0x" * 60]),
    st.binary(max_size=3),
)
NUMBERS = st.integers(0, 4)
KEYS = st.one_of(NUMBERS, st.sampled_from([1.0, 2.5, "k", "K", "l", "1", b"k"]))


@st.composite
def statements(draw: st.DrawFn, keys: st.SearchStrategy[Any]) -> tuple[str, tuple[Any, ...]]:
    table = draw(st.sampled_from(sorted(TABLES)))
    key = TABLES[table]
    k, v, w = draw(keys), draw(values), draw(values)
    return draw(
        st.sampled_from(
            [
                (f"INSERT INTO {table} ({key}, x, u) VALUES (?, ?, ?)", (k, v, w)),
                (f"INSERT OR REPLACE INTO {table} ({key}, x, y, u) VALUES (?, ?, ?, ?)", (k, v, w, v)),
                (f"INSERT OR IGNORE INTO {table} ({key}, x, u) VALUES (?, ?, ?)", (k, v, w)),
                (f"INSERT INTO {table} ({key}, x) VALUES (?, 'new') ON CONFLICT DO UPDATE SET x = ?, y = ?", (k, v, w)),
                (f"UPDATE {table} SET x = ?, y = ? WHERE {key} = ?", (v, w, k)),
                (f"UPDATE {table} SET {key} = ? WHERE {key} = ?", (k, draw(keys))),
                (f"UPDATE OR IGNORE {table} SET {key} = {key} + 1, u = ?", (v,)),
                (f"UPDATE {table} SET u = ? WHERE {key} > ?", (v, k)),
                (f"UPDATE OR REPLACE {table} SET u = u + 1", ()),
                (f"DELETE FROM {table} WHERE {key} = ?", (k,)),
                (f"DELETE FROM {table}", ()),
                ("SAVEPOINT s", ()),
                ("ROLLBACK TO s", ()),
                ("RELEASE s", ()),
            ]
        )
    )


@contextlib.contextmanager
def fresh(*, checked: bool = True) -> Iterator[apsw.Connection]:
    with closing(apsw.Connection(":memory:")) as db:
        db.execute(SCHEMA)
        db.pragma("foreign_keys", int(checked))
        if not checked:
            db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        yield db


def run(db: apsw.Connection, program: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
    """Execute what SQLite allows. A statement that fails halfway undoes its own changes."""
    for sql, parameters in program:
        with contextlib.suppress(apsw.ConstraintError, apsw.SQLError, apsw.MismatchError):
            db.execute(sql, parameters)


def rows(db: apsw.Connection) -> dict[str, list[str]]:
    return {table: sorted(map(repr, db.execute(f"SELECT * FROM {table}"))) for table in TABLES}


def listed(changeset: bytes) -> set[str]:
    """The changes, without their order and their origin."""
    return {repr((c.name, c.op, c.old, c.new)) for c in apsw.Changeset.iter(changeset)} if changeset else set()


def by_session(program: Sequence[tuple[str, tuple[Any, ...]]]) -> bytes:
    with fresh() as db, closing(apsw.Session(db, "main")) as session:
        session.attach()
        db.execute("BEGIN")
        run(db, program)
        return bytes(session.changeset())


def recorded(program: Sequence[tuple[str, tuple[Any, ...]]]) -> bytes:
    """The changeset of a recorder. Elsewhere, it makes the same rows."""
    with fresh() as here, fresh(checked=False) as there:
        recorder = HookRecorder(here)
        here.execute("BEGIN")
        recorder.begin()
        run(here, program)
        update = recorder.changeset()
        recorder.end()
        if update:
            apsw.Changeset.apply(update, there, conflict=resolve)
        assert rows(there) == rows(here)
        return update


@pytest.mark.slow
@given(st.lists(statements(NUMBERS), min_size=1, max_size=8))
def test_a_changeset_is_the_one_of_a_session(program: list[tuple[str, tuple[Any, ...]]]) -> None:
    assert listed(recorded(program)) == listed(by_session(program))


@pytest.mark.slow
@given(st.lists(statements(KEYS), min_size=1, max_size=8))
def test_keys_have_several_spellings(program: list[tuple[str, tuple[Any, ...]]]) -> None:
    """Such as k and K, 1 and 1.0. A session may lose a change from one to the other."""
    recorded(program)


def test_a_table_that_is_emptied_is_recorded_row_by_row() -> None:
    with fresh() as db:
        recorder = HookRecorder(db)
        db.execute("DELETE FROM b")  # compiled while nothing is recorded
        db.execute("INSERT INTO b VALUES (5, 5, 5, 5)")
        recorder.begin()
        db.execute("DELETE FROM b")
        assert [(c.op, c.old) for c in apsw.Changeset.iter(recorder.changeset())] == [("DELETE", (5, 5, 5.0, 5))]
        recorder.end()


def test_a_change_that_cannot_be_recorded_is_not_lost_in_silence() -> None:
    """SQLite makes a change even if the hook fails, and the application may catch the error."""
    with closing(apsw.Connection(":memory:")) as db:
        db.execute("CREATE TABLE t (k TEXT PRIMARY KEY, v); INSERT INTO t VALUES (NULL, 1)")
        recorder = HookRecorder(db)
        recorder.begin()
        with pytest.raises(OperationError, match="the primary key of t is NULL"):
            db.execute("UPDATE t SET v = 2")
        with pytest.raises(OperationError, match="the primary key of t is NULL"):
            recorder.changeset()
        recorder.end()


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ("CREATE TABLE t (k TEXT PRIMARY KEY, v, g AS (v || 'g') STORED)", HookRecorder),
        ("CREATE TABLE t (k TEXT PRIMARY KEY, v, g AS (v || 'g'))", SessionRecorder),
    ],
)
def test_generated_columns_are_not_part_of_a_changeset(schema: str, kind: type) -> None:
    with closing(apsw.Connection(":memory:")) as here, closing(apsw.Connection(":memory:")) as there:
        for db in (here, there):
            db.execute(f"{schema}; INSERT INTO t (k, v) VALUES ('a', 1), ('b', 2)")
        made = recorder(here)
        assert type(made) is kind
        for sql in ("UPDATE t SET v = 3", "INSERT INTO t (k, v) VALUES ('c', 4)", "DELETE FROM t WHERE k = 'a'"):
            made.begin()
            here.execute(sql)
            apsw.Changeset.apply(made.changeset(), there, conflict=resolve)
            made.end()
        assert list(there.execute("SELECT * FROM t")) == [("b", 3, "3g"), ("c", 4, "4g")]


@pytest.mark.parametrize("kind", [HookRecorder, SessionRecorder])
@pytest.mark.parametrize(
    "table", ["CREATE TABLE t (k INTEGER PRIMARY KEY, v)", "CREATE TABLE t (k TEXT PRIMARY KEY, v)"]
)
def test_text_that_is_not_utf_8_is_refused(kind: type, table: str) -> None:
    with closing(apsw.Connection(":memory:")) as db:
        db.execute(f"{table}; INSERT INTO t VALUES ('1', x'')")
        made = kind(db)
        made.begin()
        with pytest.raises(OperationError, match="text in t is not UTF-8: store it as a BLOB"):  # noqa: PT012
            db.execute("UPDATE t SET v = CAST(x'ff41' AS TEXT)")
            made.changeset()
        made.end()
