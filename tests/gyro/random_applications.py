"""Random small applications: schemas with keys, foreign keys and checks; transactions that mostly have a key."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from plait.gyro.analysis import analyze
from plait.kernel.classification import Classification
from tests.gyro.oracle import Application, Transaction

PARAMETERS = ("p", "q")


@st.composite
def schemas(draw: st.DrawFn) -> str:
    unique = draw(st.sampled_from(["", "", " UNIQUE"]))
    check = draw(st.sampled_from(["", "", ", CHECK (a <= b)"]))
    collation = draw(st.sampled_from(["", " COLLATE NOCASE"]))
    action = draw(st.sampled_from(["", " ON DELETE CASCADE", " ON DELETE SET NULL", " ON UPDATE CASCADE"]))
    refers = draw(st.sampled_from(["", f" REFERENCES t (id){action}"]))
    return (
        f"CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER{unique}, n TEXT{collation}{check});\n"
        f"CREATE TABLE u (id INTEGER PRIMARY KEY, k INTEGER{refers}, c INTEGER);"
    )


TEXTS = ("'x'", "'X'")
COLUMNS = {"t": ("id", "a", "b", "n"), "u": ("id", "k", "c")}
NUMBERS = {"t": ("id", "a", "b"), "u": ("id", "k", "c")}


class Builder:
    """Draws the parts of statements."""

    def __init__(self, draw: st.DrawFn, names: tuple[str, ...], homes: dict[str, str], tight: bool) -> None:
        self.draw = draw
        self.names = list(names)
        self.key = names[0]
        self.homes = homes
        """Per table, the column that is usually bound to the key."""
        self.tight = tight

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def table(self) -> str:
        return self.pick("t", "t", "u")

    def value(self, table: str) -> str:
        return self.pick(*(f":{n}" for n in self.names), "0", "1", *(f"{table}.{c}" for c in NUMBERS[table][:2]))

    def simple(self) -> str:
        return self.pick(*(f":{n}" for n in self.names), "0", "1", "NULL")

    def atom(self, table: str) -> str:
        column = f"{table}.{self.pick(*NUMBERS[table])}"
        kind = self.pick("compare", "compare", "compare", "null", "in", "between", "text", "exists", "member")
        if kind == "null":
            return f"{column} IS {self.pick('', 'NOT ')}NULL"
        if kind == "in":
            return f"{column} {self.pick('', 'NOT ')}IN ({self.value(table)}, {self.value(table)})"
        if kind == "between":
            return f"{column} BETWEEN {self.value(table)} AND {self.value(table)}"
        if kind == "text" and table == "t":
            return f"t.n {self.pick('=', '<>')} {self.pick(*TEXTS, f':{self.names[-1]}')}"
        if kind == "exists" and table == "t":
            return f"{self.pick('', 'NOT ')}EXISTS (SELECT 1 FROM u WHERE u.k = t.id)"
        if kind == "member" and table == "u":
            return f"u.k IN (SELECT id FROM t WHERE a = {self.simple()})"
        return f"{column} {self.pick('=', '=', '<', '<=', '<>')} {self.value(table)}"

    def condition(self, table: str) -> str:
        """Mostly bound to the key of the transaction."""
        parts = []
        if self.tight or self.draw(st.booleans()):
            other = "" if self.tight else NUMBERS[table][1]
            parts.append(f"{table}.{self.pick(self.homes[table], other or self.homes[table])} = :{self.key}")
        if not parts or self.draw(st.booleans()):
            atoms = [self.atom(table) for _ in range(self.draw(st.integers(1, 2)))]
            parts.append("(" + self.pick(" AND ", " OR ").join(f"{self.pick('', '', 'NOT ')}{a}" for a in atoms) + ")")
        return " AND ".join(parts)

    def select(self) -> str:
        table = self.table()
        where = self.condition(table)
        return self.pick(
            f"SELECT {self.pick(*COLUMNS[table])} FROM {table} WHERE {where}",
            f"SELECT * FROM {table} WHERE {where}",
            f"SELECT COUNT(*) FROM {table} WHERE {where}",
            f"SELECT MAX({self.pick(*NUMBERS[table])}) FROM {table} WHERE {where}",
            f"SELECT id FROM {table} WHERE {where} ORDER BY {self.pick(*NUMBERS[table])}, id LIMIT 1",
            f"SELECT t.a, u.c FROM t JOIN u ON u.k = t.id WHERE {where}",
            f"SELECT t.id, u.id FROM t LEFT JOIN u ON u.k = t.id AND u.c = {self.simple()} WHERE {self.condition('t')}",
            f"SELECT t.id FROM t LEFT JOIN u ON u.k = t.a WHERE u.id IS NULL AND {self.condition('t')}",
            f"SELECT {NUMBERS[table][1]}, COUNT(*) FROM {table} WHERE {where} GROUP BY 1",
            f"SELECT d.id FROM (SELECT id FROM {table} WHERE {where}) AS d WHERE d.id < 2",
            f"SELECT id FROM t WHERE {self.condition('t')} UNION SELECT k FROM u WHERE {self.condition('u')}",
        )

    def update(self) -> str:
        table = self.table()
        column = self.pick(*NUMBERS[table][1:], NUMBERS[table][1])
        value = self.pick(self.simple(), self.simple(), f"{column} + 1", NUMBERS[table][-1], "(SELECT MAX(c) FROM u)")
        return f"UPDATE {table} SET {column} = {value} WHERE {self.condition(table)}"

    def delete(self) -> str:
        table = self.table()
        return f"DELETE FROM {table} WHERE {self.condition(table)}"

    def insert(self, ids: str) -> tuple[str, str]:
        """What is analysed, and what is executed: an id that the server makes is written out."""
        table = self.table()
        columns = [c for c in NUMBERS[table][1:] if self.draw(st.booleans())]
        if self.tight and self.homes[table] != "id" and self.homes[table] not in columns:
            columns.append(self.homes[table])
        values = [f":{self.key}" if self.tight and c == self.homes[table] else self.simple() for c in columns]
        if self.draw(st.integers(0, 2)) == 0:
            cells = ", ".join(values)
            made = f"INSERT INTO {table} ({', '.join(['id', *columns])}) VALUES ({', '.join([':new', *values])})"
            left = (
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({cells})"
                if columns
                else f"INSERT INTO {table} DEFAULT VALUES"
            )
            return left, made if ids == "server" else left
        verb = self.pick("INSERT", "INSERT", "INSERT OR IGNORE", "INSERT OR REPLACE")
        key = self.pick(f":{self.key}", f":{self.key}", f":{self.key}" if self.tight else "0")
        names, cells = ", ".join(["id", *columns]), ", ".join([key, *values])
        source = self.pick(
            f"VALUES ({cells})", f"VALUES ({cells})", f"SELECT {cells} FROM t WHERE t.id = {self.simple()}"
        )
        tail = ""
        if verb == "INSERT" and source.startswith("VALUES"):
            tail = self.pick(
                "",
                "",
                f" ON CONFLICT (id) DO UPDATE SET {columns[0] if columns else NUMBERS[table][1]} = {self.simple()}",
            )
        sql = f"{verb} INTO {table} ({names}) {source}{tail}"
        return sql, sql


@st.composite
def applications(draw: st.DrawFn) -> Application:
    ddl = draw(schemas())
    ids = draw(st.sampled_from(["server", "server", "table"]))
    homes = {"t": draw(st.sampled_from(["id", "id", "a"])), "u": draw(st.sampled_from(["id", "k"]))}
    tight = draw(st.integers(0, 4)) > 0
    transactions = []
    for number in range(draw(st.integers(1, 3))):
        names = PARAMETERS[: draw(st.integers(1, 2))]
        builder = Builder(draw, names, homes, tight and draw(st.integers(0, 5)) > 0)
        statements: list[tuple[str, str]] = []
        for _ in range(draw(st.integers(1, 2))):
            kind = builder.pick("select", "update", "update", "insert", "insert", "delete", "chain")
            if kind == "insert":
                statements.append(builder.insert(ids))
            elif kind == "chain":
                table = builder.table()
                column, where = builder.pick(*NUMBERS[table]), builder.condition(table)
                sql = f"SELECT {column} AS r FROM {table} WHERE {where} ORDER BY id LIMIT 1"
                statements.append((sql, sql))
                builder.names.append("r")
            else:
                sql = getattr(builder, kind)()
                statements.append((sql, sql))
        analysed, executed = zip(*statements, strict=True)
        transactions.append(Transaction(f"t{number}", names, analysed, executed))
    return Application(ddl, tuple(transactions), ids)


WRITES = (
    ("INSERT INTO t (a, b) VALUES (:p, :q)", "INSERT INTO t (id, a, b) VALUES (:new, :p, :q)"),
    *(
        (sql, sql)
        for sql in (
            "DELETE FROM t WHERE a = :p AND b = :q",
            "UPDATE t SET n = 'x' WHERE a = :p AND b = :q",
            "UPDATE t SET n = :q WHERE a = :p",
            "UPDATE u SET c = c + 1 WHERE k = :p",
            "UPDATE u SET c = 1 WHERE k = :q AND c = :p",
            "SELECT c FROM u WHERE k = :q",
        )
    ),
)
ACCESSES = (
    "SELECT * FROM t WHERE a = :p",
    "SELECT b, n FROM t WHERE b = :p",
    "SELECT COUNT(*) FROM t WHERE b = :p AND a <= 1",
    "SELECT c FROM u WHERE k = :p",
    "UPDATE u SET c = 0 WHERE k = :p",
    "DELETE FROM u WHERE k = :p",
)


@st.composite
def double_keyed(draw: st.DrawFn) -> Application:
    """Rows that belong to two keys at once, and transactions that have one of them."""
    ddl = draw(schemas())
    transactions = []
    for number in range(draw(st.integers(1, 2))):
        chosen = draw(st.lists(st.sampled_from(WRITES), min_size=1, max_size=2))
        transactions.append(Transaction(f"w{number}", PARAMETERS, *zip(*chosen, strict=True)))
    for number in range(draw(st.integers(1, 3))):
        sql = draw(st.sampled_from(ACCESSES))
        transactions.append(Transaction(f"r{number}", ("p",), (sql,), (sql,)))
    return Application(ddl, tuple(transactions))


def classified(application: Application, folder: Path) -> Classification:
    file = folder / "application.sql"
    file.write_text(application.sql)
    return analyze(file, ids=application.ids, servers=2)  # type: ignore[arg-type]
