"""Which servers a statement needs, if the rows of some tables are partitioned over several servers of PostgreSQL.

A table is *partitioned* by one of its columns, or *replicated*: every server has all its rows. A query runs at one server if
its partitioned tables are all bound to keys of that server (`WHERE key = ?`, also through joins). For any other query, the
rows of partitioned tables are gathered: each server sends the rows that satisfy the conditions on the table alone, and the
query runs on these rows at the server of the client.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Literal

from plait.gyro.belt.databases.placeholders import placeholders
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("gyro"):
    import sqlglot
    from sqlglot import exp

_NOW = "to_char(now() AT TIME ZONE 'utc', 'YYYY-MM-DD HH24:MI:SS')"
_TODAY = "to_char(now() AT TIME ZONE 'utc', 'YYYY-MM-DD')"
_LATER = "to_char(now() AT TIME ZONE 'utc' + interval '{}', 'YYYY-MM-DD HH24:MI:SS')"
_AFTER = re.compile(r"\+(\d+ hours)")
Kind = Literal["select", "insert", "update", "delete"]


@dataclasses.dataclass(frozen=True)
class Layout:
    """The columns of all tables, and the column by which a table is partitioned. The other tables are replicated."""

    columns: Mapping[str, list[str]]
    partitioned: Mapping[str, str]
    servers: int

    def server_of(self, key: Any) -> int:
        """The server that has the rows with this key."""
        return int(key) % self.servers


@dataclasses.dataclass(frozen=True)
class Gathered:
    """The rows of a partitioned table that a query needs."""

    table: str
    sql: str
    keys: list[Any] | None
    """The keys that all mentions of the table are bound to; None: rows of all servers."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """A statement, and what determines its servers. A key is the name of a parameter (`p0`), or a number."""

    kind: Kind
    sql: str
    """For PostgreSQL. Writers return the rows that they changed."""
    target: str | None
    """The table that is written."""
    keys: list[Any] | None
    """The keys of all partitioned tables; None if one of them is not bound to a key. Empty: only replicated tables."""
    gathered: list[Gathered]
    collected: str
    """The query on gathered rows, which are parameters."""


def plan(sql: str, layout: Layout) -> Plan:
    """Analyze a statement of the application."""
    tree = _parsed(sql)
    if isinstance(tree, exp.Select):
        return _query(tree, layout)
    if isinstance(tree, exp.Insert | exp.Update | exp.Delete):
        return _writer(tree, layout, sql)
    raise UsageError(f"a partitioned database cannot execute {sql[:80]!r}", hint="use SELECT, INSERT, UPDATE or DELETE")


def _parsed(sql: str) -> exp.Expr:
    parts = placeholders(sql).replace("%%", "%").split("%s")
    numbered = parts[0] + "".join(f":p{n}{part}" for n, part in enumerate(parts[1:]))

    def changed(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.CurrentTimestamp):
            return sqlglot.parse_one(_NOW, read="postgres")
        if isinstance(node, exp.CurrentDate):
            return sqlglot.parse_one(_TODAY, read="postgres")
        if isinstance(node, exp.Anonymous) and node.name.lower() == "datetime":
            found = _AFTER.fullmatch(node.expressions[1].name)
            return sqlglot.parse_one(_LATER.format(found[1]), read="postgres") if found else node
        return node

    return sqlglot.parse_one(numbered, read="sqlite").transform(changed)


class _Scope:
    """The tables of a statement, and the values that its columns are bound to."""

    def __init__(self, tree: exp.Expr, layout: Layout, tables: list[exp.Table]) -> None:
        self.layout = layout
        self.names = {t.alias_or_name: t.name for t in tables}
        where = tree.args.get("where")
        conditions = [where.this] if where else []
        conditions += [on for join in tree.args.get("joins") or [] if not join.side and (on := join.args.get("on"))]
        self.conjuncts = [c for e in conditions for c in (e.flatten() if isinstance(e, exp.And) else [e])]
        self._same: dict[tuple[str, str], tuple[str, str]] = {}
        self._values: dict[tuple[str, str], Any] = {}
        equal = [(c.this.unnest(), c.expression.unnest()) for c in self.conjuncts if isinstance(c, exp.EQ)]
        for one, other in equal:
            first, second = self._column(one), self._column(other)
            if first and second:
                self._same[self._root(first)] = self._root(second)
        for one, other in equal:
            for side, value in ((one, other), (other, one)):
                if (column := self._column(side)) and (found := _constant(value)) is not None:
                    self._values[self._root(column)] = found

    def _column(self, node: exp.Expr) -> tuple[str, str] | None:
        if not isinstance(node, exp.Column):
            return None
        if node.table:
            return (node.table, node.name) if node.table in self.names else None
        owners = [alias for alias, name in self.names.items() if node.name in self.layout.columns[name]]
        return (owners[0], node.name) if len(owners) == 1 else None

    def _root(self, column: tuple[str, str]) -> tuple[str, str]:
        while column in self._same:
            column = self._same[column]
        return column

    def key(self, alias: str) -> Any:
        """The value that the partitioning column of a table is bound to; None if there is none."""
        return self._values.get(self._root((alias, self.layout.partitioned[self.names[alias]])))

    def only(self, alias: str) -> list[exp.Expr]:
        """The conditions on one table alone."""
        return [
            c
            for c in self.conjuncts
            if not c.find(exp.Select) and all((o := self._column(n)) and o[0] == alias for n in c.find_all(exp.Column))
        ]


def _constant(node: exp.Expr) -> Any:
    if isinstance(node, exp.Placeholder):
        return node.name
    return int(node.name) if isinstance(node, exp.Literal) and node.is_int else None


def _query(tree: exp.Select, layout: Layout) -> Plan:
    top = [t for t in (_from(tree), *(j.this for j in tree.args.get("joins") or [])) if isinstance(t, exp.Table)]
    scope = _Scope(tree, layout, top)
    mentions = [t for t in tree.find_all(exp.Table) if t.name in layout.partitioned]
    keys = [scope.key(t.alias_or_name) if t in top else None for t in mentions]
    names = sorted({t.name for t in mentions})
    gathered = []
    for name in names:
        of = [(t, k) for t, k in zip(mentions, keys, strict=True) if t.name == name]
        filters = scope.only(of[0][0].alias_or_name) if len(of) == 1 and of[0][0] in top else []
        rows = exp.select("*").from_(exp.alias_(exp.to_table(name), of[0][0].alias_or_name, table=True))
        rows = rows.where(*(f.copy() for f in filters))
        sql = f"SELECT to_jsonb(x.*) FROM ({rows.sql('postgres')}) AS x"
        bound = [k for _, k in of]
        gathered.append(Gathered(name, sql, None if None in bound else bound))
    collected = tree.copy()
    for name in names:
        text = f"SELECT * FROM jsonb_populate_recordset(NULL::public.{name}, :rows_{name})"
        collected = collected.with_(name, as_=sqlglot.parse_one(text, read="postgres"))
    return Plan(
        "select", tree.sql("postgres"), None, None if None in keys else keys, gathered, collected.sql("postgres")
    )


def _from(tree: exp.Expr) -> exp.Expr | None:
    found = tree.args.get("from_") or tree.args.get("from")
    return found.this if found else None


def _writer(tree: exp.Insert | exp.Update | exp.Delete, layout: Layout, sql: str) -> Plan:
    kind: Kind = "insert" if isinstance(tree, exp.Insert) else "update" if isinstance(tree, exp.Update) else "delete"
    table = tree.find(exp.Table)
    assert table is not None
    others = [t.name for t in tree.find_all(exp.Table) if t is not table]
    if any(name in layout.partitioned for name in others):
        raise UsageError(
            f"a partitioned database cannot execute {sql[:80]!r}: it reads a partitioned table to write another",
            hint="select the rows first",
        )
    keys: list[Any] | None = []
    if (column := layout.partitioned.get(table.name)) is not None:
        if isinstance(tree, exp.Insert):
            names = [e.name for e in tree.this.expressions] or layout.columns[table.name]
            values = tree.expression.find(exp.Tuple) if isinstance(tree.expression, exp.Values) else None
            if values is None or len(tree.expression.expressions) != 1:
                raise UsageError(
                    f"a partitioned database cannot execute {sql[:80]!r}", hint="insert one row, with VALUES"
                )
            keys = [_constant(values.expressions[names.index(column)])] if column in names else []
        else:
            if isinstance(tree, exp.Update) and any(e.this.name == column for e in tree.expressions):
                raise UsageError(f"a partitioned database cannot move rows: {sql[:80]!r}", hint=f"do not set {column}")
            found = _Scope(tree, layout, [table]).key(table.alias_or_name)
            keys = None if found is None else [found]
    text = f"{tree.sql('postgres')} RETURNING to_jsonb({table.alias_or_name}.*)"
    return Plan(kind, text, table.name, keys, [], "")
