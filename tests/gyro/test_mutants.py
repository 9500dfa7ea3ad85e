"""The oracle notices wrong analyses: each rule that makes the analysis sound is left out, and a wrong "local" is found."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plait.gyro import analysis
from plait.gyro.conflicts import Clause
from plait.gyro.partitioning import Problem
from plait.gyro.sql import queries, statements
from plait.gyro.sql.schema import ROW, Attribute
from plait.gyro.sql.terms import Constant, Parameter, Same, conjunction
from tests.gyro.oracle import Application, Transaction, violation
from tests.gyro.random_applications import classified

T = "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, n TEXT);"
U = "CREATE TABLE u (id INTEGER PRIMARY KEY, k INTEGER, c INTEGER);"
Patch = Callable[[pytest.MonkeyPatch], None]


def application(ddl: str, *transactions: tuple[str, ...]) -> Application:
    """Transactions of p (and q, if it is mentioned), each a tuple of statements."""
    made = []
    for i, sql in enumerate(transactions):
        names = tuple(n for n in ("p", "q") if any(f":{n}" in s for s in sql))
        made.append(Transaction(f"t{i}", names, sql, tuple(s.replace("(b, k)", "(id, b, k)") for s in sql)))
    return Application(ddl, tuple(made))


def no_conditions_read(patch: pytest.MonkeyPatch) -> None:
    """The dissertation: a query reads what it returns."""
    read = queries.Reader._read
    patch.setattr(queries.Reader, "_read", lambda self, *a: None if self._tested else read(self, *a))


def named_columns_only(patch: pytest.MonkeyPatch) -> None:
    """The dissertation: INSERT writes the columns that it names."""
    write = statements._Statement._write

    def narrow(self: Any, table: Any, attributes: Any, condition: Any, instance: str, role: str) -> None:
        if role == "insert":
            parts = getattr(condition, "parts", (condition,))
            given = {p.left.name for p in parts if isinstance(p, Same) and p.right != Constant(None)}
            attributes = frozenset(given)
        write(self, table, attributes, condition, instance, role)

    patch.setattr(statements._Statement, "_write", narrow)


def first_pair_only(patch: pytest.MonkeyPatch) -> None:
    """The dissertation's pseudocode: one pair of entries of each kind."""
    conflicts = analysis.conflicts

    def first(*a: Any, **k: Any) -> list[Clause]:
        found: dict[Any, Clause] = {}
        for clause in conflicts(*a, **k):
            found.setdefault((clause.writer, clause.other, clause.written), clause)
        return list(found.values())

    patch.setattr(analysis, "conflicts", first)


def without(*roles: str) -> Patch:
    """No entries with these roles."""

    def patched(patch: pytest.MonkeyPatch) -> None:
        for name in ("_look", "_write"):
            old = getattr(statements._Statement, name)
            patch.setattr(
                statements._Statement, name, lambda self, *a, old=old: None if a[-1] in roles else old(self, *a)
            )

    return patched


def rows_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    """Whether a row is there is no attribute, and is not read."""
    emit = queries.Reader.emit

    def blind(self: Any, *a: Any) -> None:
        before = len(self.footprint.reads)
        emit(self, *a)
        self.footprint.reads[before:] = [
            dataclasses.replace(e, attributes=e.attributes - {ROW}) for e in self.footprint.reads[before:]
        ]

    patch.setattr(queries.Reader, "emit", blind)


def where_after_outer_joins(patch: pytest.MonkeyPatch) -> None:
    """WHERE is required of rows that an outer join may leave out."""
    patch.setattr(queries.Reader, "condition_for", lambda self, source, scope, conditions: conjunction(*conditions))


def readers_do_not_matter(patch: pytest.MonkeyPatch) -> None:
    """Only conflicts between writes make a transaction global."""
    clause_class = Problem.clause_class
    patch.setattr(Problem, "clause_class", lambda self, c, *a: clause_class(self, c, *a) if c.written else "local")


def second_keys_are_homes(patch: pytest.MonkeyPatch) -> None:
    """An operation with two keys counts as executed at the server of its second key, too."""
    clause_class = Problem.clause_class

    def loose(self: Problem, clause: Clause, mine: Any, theirs: Any) -> Any:
        others = {Parameter(n) for n in theirs[1:]}
        if any(left == Parameter(mine[0]) and right in others for left, right in clause.equal if mine):
            return "local"
        return clause_class(self, clause, mine, theirs)

    patch.setattr(Problem, "clause_class", loose)


def equal_is_identical(patch: pytest.MonkeyPatch) -> None:
    """Columns whose collation ignores case are compared like others."""
    from plait.gyro.sql import schema

    def made(*a: Any) -> Attribute:
        return Attribute(a[0], "text" if a[1] == "other" else a[1], *a[2:])

    patch.setattr(schema, "Attribute", made)


MUTANTS: list[tuple[Patch, Application]] = [
    (
        no_conditions_read,
        application(T, ("UPDATE t SET a = :q WHERE id = :p",), ("SELECT b FROM t WHERE a = :p",)),
    ),
    (
        named_columns_only,
        application(T, ("INSERT INTO t (id, a) VALUES (:p, 0)",), ("SELECT MAX(b IS NULL) FROM t WHERE b IS NULL",)),
    ),
    (
        first_pair_only,
        application(
            T + U,
            ("UPDATE t SET a = 5 WHERE id = :p", "UPDATE u SET c = 7 WHERE k = 0"),
            ("SELECT a FROM t WHERE id = :p", "SELECT c FROM u WHERE k = 0"),
        ),
    ),
    (
        without("update (rows after it)"),
        application(T, ("UPDATE t SET a = 1 WHERE id = :p AND a = 0",), ("SELECT COUNT(*) FROM t WHERE a = 1",)),
    ),
    (
        without("key"),
        application(T.replace("b INTEGER", "b INTEGER UNIQUE"), ("INSERT INTO t (id, b) VALUES (:p, 1)",)),
    ),
    (
        without("foreign key"),
        application(
            T + U.replace("k INTEGER", "k INTEGER REFERENCES t (id)"),
            ("DELETE FROM t WHERE id = :p",),
            ("INSERT INTO u (id, k) VALUES (:p, 0)",),
        ),
    ),
    (
        without("cascade", "foreign key"),
        application(
            T + U.replace("k INTEGER", "k INTEGER REFERENCES t (id) ON DELETE CASCADE"),
            ("DELETE FROM t WHERE id = :p",),
            ("SELECT c FROM u WHERE id = :p",),
        ),
    ),
    (
        rows_are_not_counted,
        application(T, ("INSERT INTO t (id, a) VALUES (:p, 0)",), ("SELECT COUNT(*) FROM t",)),
    ),
    (
        where_after_outer_joins,
        application(
            T + U,
            ("UPDATE u SET k = :q WHERE id = :p",),
            ("SELECT t.id FROM t LEFT JOIN u ON u.k = t.id WHERE u.id IS NULL",),
        ),
    ),
    (
        readers_do_not_matter,
        application(T, ("UPDATE t SET a = :q WHERE id = :p",), ("SELECT SUM(a) FROM t",)),
    ),
    (
        second_keys_are_homes,
        application(
            T + U,
            (
                "SELECT c FROM u WHERE k = :p",
                "SELECT c FROM u WHERE k = :q",
                "UPDATE t SET n = 'x' WHERE a = :p AND b = :q",
            ),
            ("SELECT n FROM t WHERE a = :p",),
            ("SELECT n FROM t WHERE b = :p",),
            ("UPDATE u SET c = 5 WHERE k = :p",),
        ),
    ),
    (
        equal_is_identical,
        application(
            T.replace("n TEXT", "n TEXT COLLATE NOCASE"),
            ("UPDATE t SET a = 5 WHERE n = :p",),
            ("SELECT a FROM t WHERE n = :p",),
        ),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("mutate", "example"), MUTANTS, ids=lambda x: getattr(x, "__name__", None))
def test_a_rule_less_is_noticed(
    mutate: Patch, example: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert violation(example, classified(example, tmp_path), 0, databases=20) is None
    mutate(monkeypatch)
    assert violation(example, classified(example, tmp_path), 0, databases=20) is not None
