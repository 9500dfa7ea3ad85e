"""Templates of statements: what is equal and what is not, and that nothing else changes."""

from __future__ import annotations

import sqlite3

import pytest

from plait.gyro.web.template import template_of

SAME = [
    ("SELECT a FROM t WHERE b = ?", "SELECT  a\nFROM t -- all\nWHERE b=?;"),
    ("SELECT a FROM t WHERE b IN (?)", "SELECT a FROM t WHERE b IN (?, ?, ?)"),
    ("SELECT a FROM t WHERE b IN (?)", "SELECT a FROM t WHERE b IN (SELECT 1 FROM (SELECT 1) WHERE 1!=1)"),
    ("INSERT INTO t (a, b) VALUES (?, ?)", "INSERT INTO t (a, b) VALUES (?, ?), (?, ?)"),
    ("SELECT a FROM t WHERE b = ?", "SELECT a FROM t WHERE b = :name"),
    ("SELECT a FROM t WHERE b = ?", "SELECT a FROM t WHERE b = %(name)s"),
]
DIFFERENT = [
    ("SELECT a FROM t WHERE b = ?", "SELECT a FROM t WHERE b = 1"),
    ("SELECT a FROM t WHERE b = '?'", "SELECT a FROM t WHERE b = ?"),
    ("SELECT a FROM t WHERE b = 'x  y'", "SELECT a FROM t WHERE b = 'x y'"),
    ("SELECT a FROM t WHERE b NOT IN (?)", "SELECT a FROM t WHERE b NOT IN (SELECT 1 FROM (SELECT 1) WHERE 1!=1)"),
    ("SELECT a FROM t WHERE b IN (?, 1)", "SELECT a FROM t WHERE b IN (?)"),
    ("INSERT INTO t (a) VALUES (?), (1)", "INSERT INTO t (a) VALUES (?)"),
    ("INSERT INTO t (a) VALUES (?)", "INSERT OR REPLACE INTO t (a) VALUES (?)"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_these_are_executions_of_one_statement(one: str, other: str) -> None:
    assert template_of(one).text == template_of(other).text


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_these_are_different_statements(one: str, other: str) -> None:
    assert template_of(one).text != template_of(other).text


def test_values_go_to_their_slots() -> None:
    many = template_of("INSERT INTO t (a, b) VALUES (?, ?), (?, ?) ON CONFLICT (a) DO UPDATE SET b = ?")
    assert many.values((1, 2, 3, 4, 5)) == [((1,), (2,), (5,)), ((3,), (4,), (5,))]
    assert template_of("SELECT 1 FROM t WHERE a = %(a)s AND b = %(a)s").values({"a": 7}) == [((7,), (7,))]
    assert template_of("SELECT 1 FROM t WHERE a IN (?, ?) AND b = ?").values((1, 2, 3)) == [((1, 2), (3,))]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t.a, count(*) FROM t WHERE t.b <= ? AND t.a <> 'it''s  ? :x' GROUP BY t.a",
        'SELECT "t"."a" || ? FROM "t" WHERE ("t"."b" >= ? AND "t"."a" != ?) LIMIT 1',
        "SELECT a FROM t WHERE b IN (?) ORDER BY a",
    ],
)
def test_a_statement_with_other_names_means_the_same(sql: str) -> None:
    """SQLite is the judge: the rows are the same, and the template is the same."""
    db = sqlite3.connect(":memory:")
    db.executescript("CREATE TABLE t (a TEXT, b INT); INSERT INTO t VALUES ('x', 1), ('it''s  ? :x', 1), ('y', 2)")
    template = template_of(sql)
    values = [1, 1, "x"][: len(template.rows[0])]
    names = [f"p{n}" for n in range(len(values))]
    renamed = template.named(names)
    assert template_of(renamed).text == template.text
    expected = db.execute(sql, values).fetchall()
    assert db.execute(renamed, dict(zip(names, values, strict=True))).fetchall() == expected
