"""What a query reads: its sources, the columns it mentions, and the condition on the rows of each table.

This file also resolves names, scope by scope; `statements.py` uses it for INSERT, UPDATE and DELETE. SQL that would make
the entries wrong raises `NotUnderstoodError`.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

from plait.gyro.sql.conditions import condition, short, term
from plait.gyro.sql.entries import Entry, Footprint, NotUnderstoodError
from plait.gyro.sql.schema import ROW, Schema, Table
from plait.gyro.sql.terms import And, Column, Compare, Condition, Term, Unknown, conjunction, terms
from plait.kernel.errors import Argument, UsageError
from plait.kernel.extras import needs

with needs("gyro"):
    from sqlglot import exp

_PURE = {
    *("date", "time", "datetime", "julianday", "strftime", "unixepoch", "timediff", "now", "curdate", "curtime"),
    *("utc_timestamp", "sysdate", "clock_timestamp", "statement_timestamp", "age", "date_part", "date_add", "date_sub"),
    *(
        "random",
        "rand",
        "randomblob",
        "uuid",
        "gen_random_uuid",
        "zeroblob",
        "hex",
        "unhex",
        "quote",
        "typeof",
        "printf",
    ),
    *("format", "instr", "ifnull", "nullif", "iif", "total", "likely", "unlikely", "glob", "char", "unicode", "concat"),
    *(
        "concat_ws",
        "last_insert_rowid",
        "last_insert_id",
        "changes",
        "values",
        "sign",
        "trunc",
        "mod",
        "log",
        "md5",
        "sha1",
    ),
    *("substr", "lpad", "rpad", "lcase", "ucase", "crc32", "octet_length", "json_extract", "json_object", "json_array"),
}
"""Pure functions that sqlglot does not know. Other functions may read and write tables."""


@dataclasses.dataclass
class Source:
    """A source in FROM: a table, or a query."""

    alias: str
    instance: str
    table: Table | None = None
    outputs: set[str] | None = None
    """Column names of a derived table; None if they are unknown."""
    read: set[str] = dataclasses.field(default_factory=set)
    tested: set[str] = dataclasses.field(default_factory=set)
    """The columns in `read` that are used for more than the output."""
    optional: bool = False
    """It is on the optional side of an outer join."""
    joined: list[exp.Expression] = dataclasses.field(default_factory=list)
    """The ON of the outer join that makes it optional, if there is only one."""

    def term(self, name: str) -> Term:
        """The column with this name."""
        if self.table is None:
            return Unknown(f"a column of the derived table {self.alias}")
        if name in ("rowid", "oid", "_rowid_") and name not in self.table.columns:
            name = next((c.name for c in self.table.columns.values() if c.generated), name)
        column = self.table.columns[name]
        return Column(self.instance, name, column.kind, column.nullable, column.type)

    @property
    def names(self) -> list[str]:
        return sorted(self.table.columns if self.table is not None else self.outputs or ())

    def has(self, name: str) -> bool:
        if self.table is not None:
            return name in self.table.columns or (name == "rowid" and self.table.generated is not None)
        return self.outputs is None or name in self.outputs


@dataclasses.dataclass
class Scope:
    """Sources by alias, queries of WITH by name, and the outer scope."""

    outer: Scope | None = None
    sources: dict[str, Source] = dataclasses.field(default_factory=dict)
    ctes: dict[str, set[str] | None] = dataclasses.field(default_factory=dict)

    def cte(self, name: str) -> tuple[bool, set[str] | None]:
        if name in self.ctes:
            return True, self.ctes[name]
        return self.outer.cte(name) if self.outer is not None else (False, None)


class Reader:
    """Turns expressions of one statement into terms, conditions and read entries."""

    def __init__(self, schema: Schema, bindings: dict[str, Term], where: str) -> None:
        self.schema = schema
        self.bindings = bindings
        self.where = where
        self.footprint = Footprint()
        self._numbers = itertools.count(1)
        self._tested = True

    # -- queries -----------------------------------------------------------------------------------------------------

    def query(self, node: Any, outer: Scope | None) -> list[tuple[str, Term]]:
        """Add the reads of a query to the footprint; return its output columns."""
        if isinstance(node, exp.Subquery):
            scope = self._with(node, outer)
            return self.query(node.this, scope)
        if isinstance(node, exp.SetOperation):
            scope = self._with(node, outer)
            outputs = self.query(node.this, scope)
            self.query(node.expression, scope)
            return [(name, Unknown("a column of a UNION")) for name, _ in outputs]
        if not isinstance(node, exp.Select):
            raise NotUnderstoodError(f"this query is not understood: {short(node)}")
        return self._select(node, self._with(node, outer))

    def _with(self, node: exp.Expression, outer: Scope | None) -> Scope:
        scope = Scope(outer)
        clause = _arg(node, "with")
        for cte in clause.expressions if clause is not None else []:
            named = {c.name.lower() for c in cte.args["alias"].args.get("columns") or []}
            if clause is not None and clause.args.get("recursive"):
                scope.ctes[cte.alias.lower()] = named or None
            if not isinstance(cte.this, exp.Query):
                raise NotUnderstoodError("WITH contains a statement that writes")
            outputs = {name for name, _ in self.query(cte.this, scope)}
            scope.ctes[cte.alias.lower()] = named or outputs
        return scope

    def _select(self, node: exp.Select, scope: Scope) -> list[tuple[str, Term]]:
        conditions = self.sources(scope, _arg(node, "from"), node.args.get("joins") or [])
        if node.args.get("laterals") or node.args.get("into"):
            raise NotUnderstoodError(f"{short(node)}: LATERAL and INTO are not understood")
        outputs: list[tuple[str, Term]] = []
        self._tested = bool(node.args.get("distinct")) or scope.outer is not None
        for projection in node.expressions:
            self.visit(projection, scope)
            if isinstance(projection, exp.Star) or (
                isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star)
            ):
                outputs += [(n, Unknown("a column of a query")) for n in self._starred(projection, scope)]
            else:
                outputs.append((projection.alias_or_name.lower(), self.term(projection.unalias(), scope)))
        self._tested = True
        if isinstance(node.args.get("distinct"), exp.Expression):
            self.visit(node.args["distinct"], scope)
        aliases = {p.alias.lower() for p in node.expressions if isinstance(p, exp.Alias)}
        for key, part in node.args.items():
            if key in ("expressions", "from", "from_", "joins", "with", "with_", "distinct") or part is None:
                continue
            for child in part if isinstance(part, list) else [part]:
                if isinstance(child, exp.Expression):
                    self.visit(child, scope, aliases if key in ("group", "order", "having", "qualify") else set())
        where = node.args.get("where")
        if where is not None:
            conditions += self.conjuncts(where.this, scope)
        self.emit(scope, conditions)
        return outputs

    def _starred(self, projection: exp.Expression, scope: Scope) -> list[str]:
        chosen = [
            s for s in scope.sources.values() if projection.args.get("table") is None or s.alias == _table(projection)
        ]
        return [n for s in chosen for n in (s.table.columns if s.table is not None else s.outputs or ())]

    def sources(self, scope: Scope, clause: exp.Expression | None, joins: list[exp.Expression]) -> list[Condition]:
        """Add the sources of FROM to the scope; return the conditions of inner joins."""
        conditions: list[Condition] = []
        first = [clause.this] if clause is not None else []
        first += clause.expressions if clause is not None else []
        for node in first:
            self.source(scope, node)
            for join in node.args.get("joins") or []:
                conditions += self._join(scope, join)
        for join in joins:
            conditions += self._join(scope, join)
        return conditions

    def source(self, scope: Scope, node: exp.Expression) -> Source:
        """Add one source to the scope."""
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            name = node.name.lower()
            alias = node.alias_or_name.lower()
            known, outputs = scope.cte(name)
            if known:
                found = Source(alias, alias, None, outputs)
            elif name in self.schema.views:
                view = Reader(self.schema, {}, f"the view {name}")
                outputs = {n for n, _ in view.query(self.schema.views[name], None)}
                self.footprint.reads += view.footprint.reads
                found = Source(alias, alias, None, outputs)
            else:
                table = self.schema.table(name, self.where)
                found = Source(alias, f"{table.name}#{next(self._numbers)}", table)
        elif isinstance(node, exp.Subquery):
            outputs = {n for n, _ in self.query(node, scope.outer)}
            if alias_columns := node.args.get("alias") and node.args["alias"].args.get("columns"):
                outputs = {c.name.lower() for c in alias_columns}
            found = Source(node.alias.lower(), node.alias.lower(), None, outputs)
        else:
            raise NotUnderstoodError(f"{short(node)} is not a table")
        if found.alias in scope.sources:
            raise UsageError(f"{self.where}: {found.alias} appears twice in FROM", hint="give one of them an alias")
        scope.sources[found.alias] = found
        return found

    def _join(self, scope: Scope, join: exp.Expression) -> list[Condition]:
        before = list(scope.sources.values())
        added = self.source(scope, join.this)
        side, kind = join.args.get("side") or "", join.args.get("kind") or ""
        if kind.upper() not in ("", "INNER", "CROSS", "OUTER"):
            raise NotUnderstoodError(f"{kind} JOIN is not understood")
        conditions: list[Condition] = []
        if (join.args.get("method") or "").upper() == "NATURAL":
            for source in (*before, added):
                self._read(source, *(source.table.columns if source.table is not None else ()))
        for name in (i.name.lower() for i in join.args.get("using") or []):
            left = next((s for s in before if s.has(name)), None)
            if left is None or not added.has(name):
                raise UsageError(
                    f"{self.where}: USING ({name}): only one side has this column", hint="use a column of both sides"
                )
            self._read(left, name)
            self._read(added, name)
            conditions.append(Compare("=", left.term(name), added.term(name)))
        if (on := join.args.get("on")) is not None:
            self.visit(on, scope)
            if not side:
                conditions += self.conjuncts(on, scope)
        if side.upper() == "LEFT":
            added.optional = True
            added.joined = [on] if on is not None else []
        elif side:
            for source in (*before, added):
                source.optional, source.joined = True, []
        return conditions if not side else []

    def emit(self, scope: Scope, conditions: list[Condition]) -> None:
        """Add a read entry for each table in the scope."""
        for source in scope.sources.values():
            if source.table is not None:
                self.footprint.reads.append(
                    Entry(
                        source.table.name,
                        frozenset({*source.read, ROW}),
                        self.condition_for(source, scope, conditions),
                        source.instance,
                        "query",
                        frozenset(source.read - source.tested),
                    )
                )

    def condition_for(self, source: Source, scope: Scope, conditions: list[Condition]) -> Condition:
        """The condition on rows of this source that influence the result.

        A row of an optional source influences the result if the ON of its join is true of it, even if WHERE is not: it
        replaces the row of NULLs. So the condition on an optional source is its ON only.
        """
        optional = {s.instance for s in scope.sources.values() if s.optional}
        kept = [c for c in conditions if not optional & instances(c)]
        for on in source.joined:
            kept += [c for c in self.conjuncts(on, scope) if not (optional - {source.instance}) & instances(c)]
        return conjunction(*kept)

    # -- names -------------------------------------------------------------------------------------------------------

    def visit(self, node: exp.Expression, scope: Scope, aliases: set[str] | frozenset[str] = frozenset()) -> None:
        """Record all columns that an expression mentions, and the reads of subqueries."""
        if isinstance(node, exp.Anonymous) and node.name.lower() not in _PURE:
            raise NotUnderstoodError(f"the function {node.name} is not known: it may read and write everything")
        if isinstance(node, exp.Query):
            tested, self._tested = self._tested, True
            self.query(node, scope)
            self._tested = tested
        elif isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            name = node.name.lower()
            if not node.table and name in aliases and not any(s.table and s.has(name) for s in scope.sources.values()):
                return
            self._read(self.resolve(node, scope), name)
        elif isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            if isinstance(node.parent, exp.Count):
                return
            for source in scope.sources.values():
                if source.table is not None and _table(node) in ("", source.alias):
                    self._read(source, *source.table.columns)
        else:
            for child in node.iter_expressions():
                self.visit(child, scope, aliases)

    def _read(self, source: Source, *names: str) -> None:
        if source.table is None:
            return
        known = {n if n in source.table.columns else source.table.generated or n for n in names}
        source.read |= known
        if self._tested:
            source.tested |= known

    def resolve(self, node: exp.Column, scope: Scope) -> Source:
        """The source of a column."""
        name, table = node.name.lower(), _table(node)
        around: Scope | None = scope
        while around is not None:
            if table:
                if table in around.sources:
                    source = around.sources[table]
                    if source.has(name):
                        return source
                    raise UsageError(
                        f"{self.where}: {table} has no column {name}",
                        hint=f"columns of {table}: {', '.join(source.names)}",
                    )
            else:
                found = [s for s in around.sources.values() if s.has(name)]
                certain = [s for s in found if s.table is not None or s.outputs is not None] or found
                if len(certain) > 1 and not _using(node, name):
                    raise UsageError(
                        f"{self.where}: column {name} is ambiguous: {', '.join(s.alias for s in certain)} have it",
                        hint=f"write {certain[0].alias}.{name}",
                    )
                if certain:
                    return certain[0]
            around = around.outer
        sources = ", ".join(scope.sources) or "no table"
        raise UsageError(
            f"{self.where}: no column {f'{table}.' if table else ''}{name} (in {sources})",
            hint=("correct the statement, or give its schema with ", Argument("schema", "FILE")),
        )

    # -- conditions --------------------------------------------------------------------------------------------------

    def conjuncts(self, node: exp.Expression, scope: Scope) -> list[Condition]:
        """The conditions that an expression joins with AND."""
        found = condition(node, lambda operand: self.term(operand, scope))
        return list(found.parts) if isinstance(found, And) else [found]

    def term(self, node: exp.Expression, scope: Scope) -> Term:
        """An expression as a term."""
        return term(node, self.bindings, lambda column: self.resolve(column, scope).term(column.name.lower()))


def instances(condition: Condition) -> set[str]:
    """The instances whose columns a condition mentions."""
    return {t.instance for t in terms(condition) if isinstance(t, Column)}


def _arg(node: exp.Expression, name: str) -> exp.Expression | None:
    """An argument whose name is a Python keyword: its spelling depends on the release of sqlglot."""
    return node.args.get(f"{name}_") or node.args.get(name)


def _table(node: exp.Expression) -> str:
    return node.table.lower() if isinstance(node, exp.Column) else ""


def _using(node: exp.Expression, name: str) -> bool:
    """Whether a join merges the columns with this name."""
    select = node.find_ancestor(exp.Select)
    joins: Iterator[exp.Expression] = iter(select.args.get("joins") or []) if select is not None else iter(())
    return any(
        name in (i.name.lower() for i in j.args.get("using") or []) or (j.args.get("method") or "").upper() == "NATURAL"
        for j in joins
    )
