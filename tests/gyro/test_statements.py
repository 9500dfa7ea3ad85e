"""Read and write sets of single statements, where the dissertation is silent or loose."""

from __future__ import annotations

from typing import Any

import pytest

from plait.gyro.solver import Solver
from plait.gyro.sql.entries import Footprint, NotUnderstoodError
from plait.gyro.sql.schema import ROW, parse_schema
from plait.gyro.sql.statements import footprints, placeholders
from plait.gyro.sql.terms import Parameter
from plait.kernel.errors import UsageError

DDL = """
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER UNIQUE, n TEXT, d INTEGER GENERATED ALWAYS AS (a + 1));
CREATE TABLE u (id INTEGER PRIMARY KEY, k INTEGER REFERENCES t (id) ON DELETE CASCADE, c INTEGER, CHECK (c < k));
CREATE TABLE w (x INTEGER);
CREATE VIEW v AS SELECT id, a FROM t WHERE a > 3;
CREATE TRIGGER g AFTER INSERT ON w BEGIN UPDATE t SET a = 0; DELETE FROM u; END;
"""
SCHEMA = parse_schema(DDL)


def of(sql: str, schema: object = SCHEMA) -> Footprint:
    bindings = {name: Parameter(name) for name in placeholders(sql)[1]}
    (found,) = footprints(sql, bindings, schema, where="here")  # type: ignore[arg-type]
    return found


def reads(sql: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for entry in of(sql).reads:
        found.setdefault(entry.table, set()).update(entry.attributes)
    return found


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT n FROM t WHERE a = :p", {"t": {"n", "a", ROW}}),
        ("SELECT COUNT(*) FROM t", {"t": {ROW}}),
        ("SELECT n FROM t ORDER BY b", {"t": {"n", "b", ROW}}),
        ("SELECT a FROM t GROUP BY a HAVING MAX(b) > 1", {"t": {"a", "b", ROW}}),
        ("SELECT t.n FROM t JOIN u ON u.k = t.id", {"t": {"n", "id", ROW}, "u": {"k", ROW}}),
        ("SELECT c FROM t JOIN u USING (id)", {"t": {"id", ROW}, "u": {"id", "c", ROW}}),
        ("SELECT n FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.id)", {"t": {"n", "id", ROW}, "u": {"k", ROW}}),
        ("WITH q AS (SELECT a FROM t) SELECT a FROM q", {"t": {"a", ROW}}),
        ("SELECT a FROM v", {"t": {"id", "a", ROW}}),
        ("UPDATE t SET n = :p WHERE a = 1", {"t": {"a", ROW}}),
        ("UPDATE u SET c = 1 WHERE id = :p", {"u": {"id", "c", "k", ROW}}),
        ("DELETE FROM t WHERE id = :p", {"t": {"id", ROW}, "u": {"k", ROW}}),
        ("INSERT INTO u (id, k) VALUES (:p, :q)", {"u": {"id", ROW}, "t": {"id", ROW}}),
    ],
)
def test_reads(sql: str, expected: dict[str, set[str]]) -> None:
    assert reads(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("INSERT INTO t (id) VALUES (:p)", {("t", SCHEMA.tables["t"].all)}),
        ("UPDATE t SET a = :p WHERE id = :q", {("t", frozenset({"a", "d"}))}),
        ("DELETE FROM t WHERE id = :p", {("t", SCHEMA.tables["t"].all), ("u", SCHEMA.tables["u"].all)}),
        ("SELECT * FROM t", set()),
        ("BEGIN", set()),
    ],
)
def test_writes(sql: str, expected: set[tuple[str, frozenset[str]]]) -> None:
    assert {(e.table, e.attributes) for e in of(sql).writes} == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "read", "conflict"),
    [
        ("UPDATE t SET n = 1 WHERE a = 1", "SELECT n FROM t WHERE a = 2", False),
        ("UPDATE t SET n = 1 WHERE a = 1", "SELECT n FROM t WHERE a > 0", True),
        ("UPDATE t SET a = 2 WHERE a = 1", "SELECT n FROM t WHERE a = 2", True),
        ("UPDATE t SET a = 2 WHERE a = 1", "SELECT n FROM t WHERE a = 3", False),
        ("INSERT INTO t (id, a) VALUES (:p, 1)", "SELECT n FROM t WHERE a = 2", False),
        ("INSERT INTO t (id, a) VALUES (:p, 1)", "SELECT n FROM t WHERE b IS NOT NULL", False),
        ("INSERT INTO t (id, a) VALUES (:p, 1)", "SELECT n FROM t WHERE NOT a = 1", False),
        ("INSERT INTO t (id, a) VALUES (:p, NULL)", "SELECT n FROM t WHERE a = 1 OR NOT a = 1", False),
        ("DELETE FROM t WHERE n = 'x'", "SELECT a FROM t WHERE n = 'y'", False),
        ("DELETE FROM t WHERE n = 'x'", "SELECT a FROM t WHERE n LIKE 'y'", True),
        ("DELETE FROM t WHERE a = '1'", "SELECT n FROM t WHERE a = '01'", True),
        ("DELETE FROM t WHERE a BETWEEN 1 AND 3", "SELECT n FROM t WHERE a IN (4, 5)", False),
        ("DELETE FROM t WHERE a <= :p AND a > :p", "SELECT n FROM t", False),
    ],
)
def test_conditions_tell_rows_apart(write: str, read: str, conflict: bool) -> None:
    solver = Solver()
    pairs = [
        (w, r) for w in of(write).writes for r in of(read).reads if w.table == r.table and w.attributes & r.attributes
    ]
    assert any(solver.conflict(w, r) for w, r in pairs) == conflict


def test_replace_deletes_the_row_with_the_key() -> None:
    for sql in ("REPLACE INTO t (id, b) VALUES (:p, :q)", "INSERT OR REPLACE INTO t (id, b) VALUES (:p, :q)"):
        conditions = {str(e.condition) for e in of(sql).writes if e.role == "replace"}
        assert conditions == {"t.id = :p", "t.b = :q"}


def test_constraints_that_are_not_understood_may_concern_any_row() -> None:
    for ddl in (
        "CREATE TABLE s (id INTEGER, a INTEGER); CREATE UNIQUE INDEX i ON s (id) WHERE a > 3",
        "CREATE TABLE s (id INTEGER, a INTEGER); CREATE UNIQUE INDEX i ON s (lower(id))",
    ):
        found = of("UPDATE s SET a = 5 WHERE id = :p", parse_schema(ddl))
        assert [str(e.condition) for e in found.reads if e.role == "key"] == ["true"]


def test_ids_of_the_table_are_read_from_it() -> None:
    (found,) = footprints("INSERT INTO t (a) VALUES (1)", {}, SCHEMA, where="here", ids="table")
    assert "greatest id" in {e.role for e in found.reads}
    assert "greatest id" not in {e.role for e in of("INSERT INTO t (a) VALUES (1)").reads}


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO w VALUES (1)",
        "UPDATE v SET a = 1",
        "CREATE INDEX i ON t (a)",
        "PRAGMA foreign_keys = OFF",
        "WITH q AS (DELETE FROM t RETURNING id) SELECT id FROM q",
        "SELECT FROM WHERE",
        "ATTACH 'x' AS y",
        "SELECT my_function(1)",
        "UPDATE t SET a = nextval('s')",
        "UPDATE OR REPLACE t SET b = 1",
        "UPDATE t SET (a, b) = (1, 2)",
    ],
)
def test_what_is_not_understood_is_refused(sql: str) -> None:
    with pytest.raises(NotUnderstoodError):
        of(sql)


def test_collations_and_types() -> None:
    """Where equal is not identical, nothing is concluded from it."""
    schema = parse_schema('CREATE TABLE s (a CHAR(3), b VARCHAR(3), c TEXT COLLATE "C", e INT)', dialect="postgres")
    kinds = {name: c.kind for name, c in schema.tables["s"].columns.items()}
    assert kinds == {"a": "char", "b": "text", "c": "text", "e": "number"}
    mysql = parse_schema("CREATE TABLE s (b VARCHAR(3), e INT AUTO_INCREMENT PRIMARY KEY)", dialect="mysql")
    assert (mysql.tables["s"].columns["b"].kind, mysql.tables["s"].generated) == ("other", "e")
    lite = parse_schema("CREATE TABLE s (a TEXT COLLATE NOCASE, b INT PRIMARY KEY)")
    assert (lite.tables["s"].columns["a"].kind, lite.tables["s"].generated) == ("other", None)


def test_columns_that_the_database_fills() -> None:
    ddl = "CREATE TABLE s (id SERIAL PRIMARY KEY, number BIGSERIAL, a INT NOT NULL, b INT, c INT DEFAULT 3)"
    (insert,) = of("INSERT INTO s (b) VALUES (1)", parse_schema(ddl, dialect="postgres")).writes
    assert str(insert.condition) == "s.b = 1 and s.id = new s.id and s.number = new s.number"
    ddl = "CREATE TABLE s (id INT, at TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, a INT)"
    found = of("UPDATE s SET a = 1 WHERE id = :p", parse_schema(ddl, dialect="mysql"))
    assert {e.attributes for e in found.writes} == {frozenset({"a", "at"})}


def test_an_update_of_two_tables_is_refused() -> None:
    ddl = "CREATE TABLE a (id INT, x INT); CREATE TABLE b (id INT, x INT)"
    with pytest.raises(NotUnderstoodError):
        of("UPDATE a JOIN b ON a.id = b.id SET a.x = 1, b.x = 2", parse_schema(ddl, dialect="mysql"))


def test_postgres_and_its_placeholders() -> None:
    schema = parse_schema("CREATE TABLE s (id SERIAL PRIMARY KEY, a INT)", dialect="postgres")
    found = of("INSERT INTO s (a) VALUES (%(x)s) ON CONFLICT (id) DO UPDATE SET a = s.a + excluded.a", schema)
    assert {e.role for e in found.writes} == {"insert", "update", "update (rows after it)"}
    assert str(of("SELECT a FROM s WHERE id = $1 AND a::text = 'x'", schema).reads[0].condition).startswith(
        "s.id = :_1"
    )


@pytest.mark.parametrize(
    ("dialect", "ddl", "said"),
    [
        ("postgres", "CREATE UNIQUE INDEX i ON t (a) NULLS NOT DISTINCT", "not understood"),
        ("postgres", "CREATE RULE r AS ON INSERT TO t DO ALSO DELETE FROM t", "not understood"),
        ("postgres", "CREATE TABLE child (b INT) INHERITS (t)", "inherits"),
        ("sqlite", "CREATE TABLE x (a INT, UNIQUE (a) ON CONFLICT REPLACE)", "ON CONFLICT"),
        ("sqlite", "CREATE TABLE x (a INT, CONSTRAINT k UNIQUE (a) ON CONFLICT REPLACE)", "ON CONFLICT"),
        ("sqlite", "ALTER TABLE t ADD COLUMN b INT", "ALTER and DROP"),
    ],
)  # fmt: skip
def test_ddl_that_is_not_understood_is_not_passed_over(dialect: Any, ddl: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_schema(f"CREATE TABLE t (a INT PRIMARY KEY); {ddl};", dialect=dialect)


@pytest.mark.parametrize(
    "end", ["WITHOUT ROWID", "STRICT", "STRICT, WITHOUT ROWID", "WITHOUT ROWID, STRICT", "without  rowid"]
)
def test_tables_without_rowid(end: str) -> None:
    found = parse_schema(
        f"CREATE TABLE t (a INT, b INT, PRIMARY KEY (a, b)) {end};\nCREATE TABLE u (c INTEGER PRIMARY KEY);"
    )
    assert list(found.tables) == ["t", "u"]
    assert found.tables["t"].uniques == [("a", "b")]
    assert found.tables["u"].generated == "c"


@pytest.mark.parametrize("table", ["t", '"t"', "[t]", "main.t", '"main"."t"'])
def test_triggers_are_found(table: str) -> None:
    tables = "CREATE TABLE t (a INT); CREATE TABLE u (b INT);"
    found = parse_schema(f"{tables} CREATE TRIGGER g AFTER INSERT ON {table} BEGIN DELETE FROM u; END;")
    assert [t.name for t in found.tables.values() if t.triggers] == ["t"]


def test_a_column_without_a_type_is_a_column() -> None:
    table = parse_schema('CREATE TABLE w (k TEXT PRIMARY KEY, v, "x y", UNIQUE (v))').tables["w"]
    assert {c.name: c.kind for c in table.columns.values()} == {"k": "text", "v": "other", "x y": "other"}
    assert table.uniques == [("k",), ("v",)]
