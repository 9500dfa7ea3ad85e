"""Ids that a server generates: an id determines the server that generated it (Saissi 2019, section 2.7).

With n servers, server s generates ids that are s modulo n. An operation that is routed by such an id goes to the
server that generated it. Sequences of PostgreSQL can count in steps of n. SQLite cannot, so this file adds an id to
every INSERT that leaves out an INTEGER PRIMARY KEY.
"""

from __future__ import annotations

import functools
import re
import sqlite3
from collections.abc import Mapping

from plait.kernel.extras import needs

with needs("serve"):
    import apsw
    import sqlglot
    from sqlglot import exp


_INSERT = re.compile(r"^\s*(?:--[^\n]*\n\s*)*(?:INSERT|REPLACE|WITH)\b", re.IGNORECASE)
_REPLACE = re.compile(r"^\s*REPLACE\s+INTO\b", re.IGNORECASE)
FUNCTION = "gyro_next_id"
TABLE = "gyro_ids"
COUNTERS = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
  name TEXT NOT NULL, server INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (name, server)) WITHOUT ROWID;
"""


class Ids:
    """Generates the ids of each table, and rewrites INSERT statements to use them."""

    def __init__(self, tables: Mapping[str, tuple[str, tuple[str, ...]]], server: int, servers: int) -> None:
        self._tables = {name.lower(): found for name, found in tables.items()}
        """The key and the columns of each table with generated ids."""
        self._server = server
        self._servers = servers
        self.rewrite = functools.lru_cache(maxsize=4096)(self._rewrite)

    def install(self, db: apsw.Connection) -> None:
        """Register the SQL function in a connection."""

        def following(*given: object) -> int:
            return self._next(db, str(given[0]))

        db.create_scalar_function(FUNCTION, following, 1)

    def _next(self, db: apsw.Connection, table: str) -> int:
        """The next id. The counter is a row of the database, so rollback and recovery apply to it too."""
        name, column = quoted(table), quoted(self._tables[table][0])
        last = self._last(db, table) + self._servers
        while list(db.execute(f"SELECT 1 FROM {name} WHERE {column} = ?", (last,))):
            last += self._servers
        self._store(db, table, last)
        return last

    def _last(self, db: apsw.Connection, table: str) -> int:
        """The greatest id that this server has generated, as far as its database knows."""
        for (last,) in db.execute(f"SELECT last FROM {TABLE} WHERE name = ? AND server = ?", (table, self._server)):
            return int(last)
        column = quoted(self._tables[table][0])
        own = f"SELECT max({column}) FROM {quoted(table)} WHERE {column} > 0 AND {column} % ? = ?"
        ((greatest,),) = db.execute(own, (self._servers, self._server))
        return self._server if greatest is None else int(greatest)

    def _store(self, db: apsw.Connection, table: str, last: int) -> None:
        db.execute(f"INSERT OR REPLACE INTO {TABLE} VALUES (?, ?, ?)", (table, self._server, last))

    def skip(self, db: apsw.Connection, gap: int) -> None:
        """Leave out a number of ids of each table."""
        for table in self._tables:
            self._store(db, table, self._last(db, table) + gap * self._servers)

    def _rewrite(self, sql: str) -> str:
        """The statement. An INSERT without an id gets an id of this server."""
        if not _INSERT.match(sql) or not self._tables:
            return sql
        sql = _REPLACE.sub("INSERT OR REPLACE INTO", sql, count=1)  # the parser does not know REPLACE INTO
        try:
            tree = sqlglot.parse_one(sql, dialect="sqlite")
        except sqlglot.errors.SqlglotError:
            return sql if not self._touches(sql) else _refuse(sql)
        if not isinstance(tree, exp.Insert):
            return sql
        target = tree.this
        table = target.this if isinstance(target, exp.Schema) else target
        if not isinstance(table, exp.Table) or table.name.lower() not in self._tables:
            return sql
        key, columns = self._tables[table.name.lower()]
        named = (
            [c.name.lower() for c in target.expressions]
            if isinstance(target, exp.Schema)
            else [c.lower() for c in columns]
        )
        call = exp.Anonymous(this=FUNCTION, expressions=[exp.Literal.string(table.name.lower())])
        source = tree.expression
        if isinstance(source, exp.Values):
            if key.lower() in named:
                place = named.index(key.lower())
                for row in source.expressions:
                    given = row.expressions[place]
                    row.expressions[place].replace(exp.Coalesce(this=given.copy(), expressions=[call.copy()]))
            else:
                for row in source.expressions:
                    row.set("expressions", [call.copy(), *row.expressions])
        elif source is None:
            tree.set("default", None)
            tree.set("expression", exp.Values(expressions=[exp.Tuple(expressions=[call])]))
            named = []
        elif key.lower() in named:
            return sql if not isinstance(source, exp.Query) else self._selected(tree, table, named, key, call)
        else:
            inner = exp.Subquery(this=source.copy(), alias=exp.TableAlias(this=exp.to_identifier("gyro_rows")))
            star = exp.Column(this=exp.Star(), table=exp.to_identifier("gyro_rows"))
            tree.set("expression", exp.Select(expressions=[call, star]).from_(inner))
        if key.lower() not in named:
            listed = [exp.to_identifier(key, quoted=True), *(exp.to_identifier(n, quoted=True) for n in named)]
            tree.set("this", exp.Schema(this=table.copy(), expressions=listed))
        return tree.sql(dialect="sqlite")

    def _selected(self, tree: exp.Insert, table: exp.Table, named: list[str], key: str, call: exp.Expression) -> str:
        """INSERT … SELECT that selects ids: generate an id where it is NULL."""
        inner = exp.Subquery(this=tree.expression.copy(), alias=exp.TableAlias(this=exp.to_identifier("gyro_rows")))
        names = ", ".join(quoted(n) for n in named)
        rows = f"WITH gyro_named ({names}) AS (SELECT * FROM {inner.sql(dialect='sqlite')})"
        chosen = ", ".join(
            f"coalesce({quoted(n)}, {call.sql(dialect='sqlite')})" if n == key.lower() else quoted(n) for n in named
        )
        tree.set("this", exp.Schema(this=table.copy(), expressions=[exp.to_identifier(n, quoted=True) for n in named]))
        tree.set("expression", sqlglot.parse_one(f"SELECT {chosen} FROM gyro_named", dialect="sqlite"))
        return f"{rows} {tree.sql(dialect='sqlite')}"

    def _touches(self, sql: str) -> bool:
        words = {w.lower() for w in re.findall(r"\w+", sql)}
        return bool(words & self._tables.keys())


def _refuse(sql: str) -> str:
    raise sqlite3.NotSupportedError(f"cannot generate an id, because this INSERT is not understood: {sql.strip()[:80]}")


def quoted(name: str) -> str:
    """A quoted identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'
