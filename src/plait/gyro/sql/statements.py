"""The footprint of one SQL statement: what it reads and writes, and in which rows (see `entries.py`)."""

from __future__ import annotations

import re
from typing import Any, Literal

from plait.gyro.sql.conditions import short
from plait.gyro.sql.entries import Entry, Footprint, NotUnderstoodError
from plait.gyro.sql.queries import Reader, Scope, Source, _arg
from plait.gyro.sql.schema import ROW, Schema, Table, first_error
from plait.gyro.sql.terms import (
    TRUE,
    Column,
    Compare,
    Condition,
    Constant,
    Generated,
    Parameter,
    Same,
    Term,
    Unknown,
    conjunction,
    substitute,
)
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("gyro"):
    import sqlglot
    from sqlglot import exp

Ids = Literal["server", "table"]
"""The source of ids that an INSERT leaves out: the server (its own range), or the table (its greatest id plus one)."""

_PLACEHOLDER = re.compile(
    r"'(?:''|[^'])*'|\"(?:\"\"|[^\"])*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|::"
    r"|%\((?P<pyformat>\w+)\)s|(?P<format>%s)|\?(?P<qmark>\d*)|:(?P<named>\w+)|\$(?P<dollar>\d+)",
    re.DOTALL,
)
_REPLACE = re.compile(r"\A\s*REPLACE\s+INTO\b", re.IGNORECASE)
_MYSQL_REPLACE = re.compile(r"\A\s*REPLACE(?:\s+(?:LOW_PRIORITY|DELAYED))?(?:\s+INTO)?\b(?!\s*\()", re.IGNORECASE)
_HARMLESS = {"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "END", "START"}


def placeholders(sql: str) -> tuple[str, list[str]]:
    """The statement with all placeholders in one style, and their names. A positional placeholder has a number.

    >>> placeholders("SELECT x FROM t WHERE a = ? AND b = %(b)s AND c = '?'")
    ("SELECT x FROM t WHERE a = :_1 AND b = :b AND c = '?'", ['_1', 'b'])
    """
    names: list[str] = []
    position = 0

    def rename(match: re.Match[str]) -> str:
        nonlocal position
        kind = match.lastgroup
        if kind is None:
            return match[0]
        if kind == "format" or (kind == "qmark" and not match["qmark"]):
            position += 1
            name = f"_{position}"
        else:
            name = match[kind]
            name = f"_{name}" if name.isdigit() else name
        names.append(name)
        return f":{name}"

    return _PLACEHOLDER.sub(rename, sql), names


def footprints(
    sql: str, bindings: dict[str, Term], schema: Schema, *, where: str, site: int = 0, ids: Ids = "server"
) -> list[Footprint]:
    """The footprint of each statement in the text. `bindings` has a term for each placeholder.

    >>> from plait.gyro.sql.schema import parse_schema
    >>> schema = parse_schema("CREATE TABLE cart (id INT, item INT, quantity INT)")
    >>> found, = footprints("UPDATE cart SET quantity = 1 WHERE id = :c", {"c": Parameter("c")}, schema, where="here")
    >>> [(sorted(e.attributes), str(e.condition)) for e in found.writes]
    [(['quantity'], 'cart.id = :c'), (['quantity'], 'cart.id = :c and cart.quantity = 1')]
    """
    text, names = placeholders(sql)
    if schema.dialect == "sqlite":
        text = _REPLACE.sub("INSERT OR REPLACE INTO", text)
    replaces = schema.dialect == "mysql" and _MYSQL_REPLACE.match(text) is not None
    if replaces:
        text = _MYSQL_REPLACE.sub("INSERT INTO", text)
    for name in names:
        if name not in bindings:
            raise UsageError(
                f"{where}: no value for the placeholder {name.removeprefix('_')!r} of {_line(sql)}",
                hint="give one value for each placeholder",
            )
    try:
        parsed = sqlglot.parse(text, dialect=schema.dialect)
    except sqlglot.errors.SqlglotError as error:
        raise NotUnderstoodError(f"the SQL has a syntax error: {first_error(error)}") from None
    if replaces and isinstance(parsed[0], exp.Insert):
        parsed[0].set("alternative", "REPLACE")
    return [_Statement(schema, bindings, where, site, ids).run(node) for node in parsed if node is not None]


class _Statement(Reader):
    def __init__(self, schema: Schema, bindings: dict[str, Term], where: str, site: int, ids: Ids) -> None:
        super().__init__(schema, bindings, where)
        self.site = site
        self.ids = ids

    def run(self, node: Any) -> Footprint:
        """The footprint of a parsed statement."""
        if isinstance(node, exp.Query):
            self.footprint.outputs = [(n, _value(t)) for n, t in self.query(node, None)]
        elif isinstance(node, exp.Insert):
            self.insert(node)
        elif isinstance(node, exp.Update):
            self.update(node)
        elif isinstance(node, exp.Delete):
            self.delete(node)
        elif not isinstance(node, exp.Transaction | exp.Commit | exp.Rollback | exp.EndStatement) and not (
            isinstance(node, exp.Command | exp.Alias | exp.Column) and _first_word(node) in _HARMLESS
        ):
            raise NotUnderstoodError(f"{short(node)}: expected a query, INSERT, UPDATE or DELETE")
        return self.footprint

    def _target(self, node: exp.Expression | None, scope: Scope) -> tuple[Source, Table]:
        if not isinstance(node, exp.Table) or node.name.lower() in self.schema.views:
            raise NotUnderstoodError(f"the target {short(node) if node is not None else '(none)'} is not a table")
        source = self.source(scope, node)
        assert source.table is not None
        if source.table.triggers:
            raise NotUnderstoodError(f"the table {source.table.name} has triggers")
        return source, source.table

    # -- INSERT ------------------------------------------------------------------------------------------------------

    def insert(self, node: exp.Insert) -> None:
        """INSERT writes whole rows. It reads rows with equal keys, and rows that foreign keys refer to."""
        outside = self._with(node, None)
        target = node.this.this if isinstance(node.this, exp.Schema) else node.this
        scope = Scope(outside)
        source, table = self._target(target, scope)
        given = (
            [i.name.lower() for i in node.this.expressions]
            if isinstance(node.this, exp.Schema)
            else list(table.columns)
        )
        for name in given:
            if name not in table.columns:
                raise UsageError(
                    f"{self.where}: {table.name} has no column {name}", hint=f"columns: {', '.join(table.columns)}"
                )
        rows = self._rows(node, given, outside)
        action = str(node.args.get("alternative") or "").upper()
        conflict = node.args.get("conflict")
        named = (
            {k.this.name.lower() for k in (conflict.args.get("conflict_keys") or [])} if conflict is not None else set()
        )
        for row in rows:
            self._generate(table, row)
            for column in table.columns.values():
                if action == "REPLACE" and column.default:
                    row.pop(column.name, None)  # REPLACE sets the default instead of a forbidden NULL
                elif column.nullable and not (column.default or column.computed):
                    row.setdefault(column.name, Constant(None))
            as_given = conjunction(*(Same(source.term(n), t) for n, t in row.items()))
            self._write(table, table.all, as_given, source.instance, "insert")
            for key in table.uniques:
                same = self._key(table, source, key, row)
                self._look(table, {*key, ROW} if key else table.all, same, source.instance, "key")
                if action == "REPLACE":
                    self._write(table, table.all, same, source.instance, "replace")
                    self._children(table, same, source.instance, None, set())
                if conflict is not None and (not named or named == {*key}):
                    self._upsert(table, source, scope, conflict, same)
            self._parents(table, row)
        if action or conflict is not None or node.args.get("ignore") or len(rows) > 1:
            self.footprint.generated = None  # it may affect an older row
        returning = node.args.get("returning")
        for projection in returning.expressions if returning is not None else []:
            self.visit(projection, scope)
            column = projection.unalias().name.lower()
            value = rows[0].get(column) if len(rows) == 1 and not action and conflict is None else None
            self.footprint.outputs.append(
                (projection.alias_or_name.lower(), value or Unknown("the result of an INSERT"))
            )

    def _rows(self, node: exp.Insert, given: list[str], scope: Scope) -> list[dict[str, Term]]:
        values = node.expression
        if isinstance(values, exp.Values):
            rows = []
            for row in values.expressions:
                cells = (
                    row.expressions if isinstance(row, exp.Tuple) else [row.this if isinstance(row, exp.Paren) else row]
                )
                if len(cells) != len(given):
                    raise UsageError(
                        f"{self.where}: INSERT has {len(cells)} values for {len(given)} columns",
                        hint="give one value for each column",
                    )
                for cell in cells:
                    self.visit(cell, scope)
                rows.append({n: _value(self.term(c, scope)) for n, c in zip(given, cells, strict=True)})
            return rows
        if isinstance(values, exp.Query):
            outputs = self.query(values, scope)
            return [dict(zip(given, (_value(t) for _, t in outputs), strict=False))]
        if node.args.get("default"):
            return [{}]
        raise NotUnderstoodError(f"{short(node)}: the values are not understood")

    def _generate(self, table: Table, row: dict[str, Term]) -> None:
        """Add the generated ids to a row."""
        for name in (c.name for c in table.columns.values() if c.generated):
            if row.get(name, Constant(None)) != Constant(None):
                continue
            if self.ids == "server":
                row[name] = Generated(f"{table.name}.{name}", self.site)
            else:
                row[name] = Unknown(f"the table generates {table.name}.{name}")
                self._look(table, {name, ROW}, TRUE, table.name, "greatest id")
            if name == table.generated:
                self.footprint.generated = row[name]

    def _upsert(self, table: Table, source: Source, scope: Scope, conflict: exp.Expression, same: Condition) -> None:
        """ON CONFLICT DO UPDATE: an update of the row with the same key, if it exists."""
        if not conflict.expressions:
            return
        around = Scope(scope.outer, {"excluded": Source("excluded", "excluded", None, set(table.columns))})
        inner = Scope(around, {source.alias: source})
        for part in (*conflict.expressions, *filter(None, [conflict.args.get("where")])):
            self.visit(part, inner)
        assigned = self._assignments(table, source, conflict.expressions, inner)
        self._change(table, source, assigned, same)
        self._look(table, {*source.read, ROW}, same, source.instance, "update")

    # -- UPDATE and DELETE -------------------------------------------------------------------------------------------

    def update(self, node: exp.Update) -> None:
        """UPDATE writes the assigned columns, in the rows before and after it."""
        scope = self._with(node, None)
        source, table = self._target(node.this, scope)
        conditions = self.sources(scope, _arg(node, "from"), node.this.args.get("joins") or [])
        assigned = self._assignments(table, source, node.expressions, scope)
        condition = self._condition(node, scope, source, conditions)
        for check in table.checks:
            if check & assigned.keys():
                self._read(source, *(check & table.columns.keys()))
        self.emit(scope, self._all(node, scope, conditions))
        self._change(table, source, assigned, condition)

    def delete(self, node: exp.Delete) -> None:
        """DELETE writes all attributes of the deleted rows."""
        scope = self._with(node, None)
        if node.args.get("tables"):
            raise NotUnderstoodError("DELETE with several tables is not understood")
        source, table = self._target(node.this, scope)
        using = node.args.get("using")
        for other in using if isinstance(using, list) else []:
            self.source(scope, other)
        condition = self._condition(node, scope, source, [])
        self.emit(scope, self._all(node, scope, []))
        self._write(table, table.all, condition, source.instance, "delete")
        self._children(table, condition, source.instance, None, set())

    def _all(self, node: exp.Expression, scope: Scope, conditions: list[Condition]) -> list[Condition]:
        where = node.args.get("where")
        return conditions + (self.conjuncts(where.this, scope) if where is not None else [])

    def _condition(self, node: exp.Expression, scope: Scope, source: Source, conditions: list[Condition]) -> Condition:
        """Record all reads except assignments; return the condition on rows of the target."""
        for key in ("where", "order", "limit", "returning"):
            if isinstance(part := node.args.get(key), exp.Expression):
                self.visit(part, scope)
        return self.condition_for(source, scope, self._all(node, scope, conditions))

    def _assignments(self, table: Table, target: Source, nodes: list[exp.Expression], scope: Scope) -> dict[str, Term]:
        assigned: dict[str, Term] = {}
        for node in nodes:
            if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
                raise NotUnderstoodError(f"SET {short(node)} is not understood")
            name = node.this.name.lower()
            if node.this.table and scope.sources.get(node.this.table.lower(), target) is not target:
                raise NotUnderstoodError(f"SET {short(node)}: UPDATE with several tables is not understood")
            if name not in table.columns:
                raise UsageError(
                    f"{self.where}: {table.name} has no column {name}", hint=f"columns: {', '.join(table.columns)}"
                )
            self.visit(node.expression, scope)
            value = self.term(node.expression, scope)
            mixed = self.schema.dialect == "mysql" and isinstance(value, Column)  # MySQL assigns from left to right
            assigned[name] = Unknown("computed") if mixed else value
        return assigned

    def _change(self, table: Table, source: Source, assigned: dict[str, Term], condition: Condition) -> None:
        """Add the entries of an update: rows before and after it, and reads and writes of keys."""
        columns = table.written(frozenset(assigned))
        before: dict[Term, Term] = {
            source.term(n): Column(f"{source.instance}/before", n, found.kind, found.nullable, found.type)
            for n, found in ((n, table.columns[n]) for n in columns)
        }
        self._write(table, columns, condition, source.instance, "update")
        after = [
            Same(source.term(n), before.get(t, t))
            for n, t in assigned.items()
            if not isinstance(t, Unknown)
            and not (isinstance(t, Column) and t.type != table.columns[n].type)  # the DBMS may convert the value
        ]
        self._write(
            table,
            columns,
            conjunction(substitute(condition, before), *after),
            source.instance,
            "update (rows after it)",
        )
        plain = {n: _value(t) for n, t in assigned.items()}
        for key in table.uniques:
            if not key or {*key} & assigned.keys():
                same = self._key(table, source, tuple(n for n in key if n in plain), plain)
                self._look(table, {*key, ROW} if key else table.all, same, source.instance, "key")
        self._parents(table, plain)
        self._children(table, condition, source.instance, columns, set())

    # -- keys --------------------------------------------------------------------------------------------------------

    def _key(self, table: Table, source: Source, key: tuple[str, ...], row: dict[str, Term]) -> Condition:
        return conjunction(*(Compare("=", source.term(n), row[n]) for n in key if n in row))

    def _parents(self, table: Table, row: dict[str, Term]) -> None:
        """Foreign keys of the assigned columns read the rows that they refer to."""
        for reference in table.references:
            if {*reference.columns} & row.keys():
                parent = Source(reference.table, f"{reference.table}#parent", self.schema.tables[reference.table])
                named = [
                    Compare("=", parent.term(t), row[c])
                    for c, t in zip(reference.columns, reference.target, strict=True)
                    if c in row
                ]
                attributes = {*reference.target, ROW}
                self._look(
                    self.schema.tables[reference.table], attributes, conjunction(*named), parent.instance, "foreign key"
                )

    def _children(
        self, table: Table, condition: Condition, instance: str, changed: frozenset[str] | None, seen: set[str]
    ) -> None:
        """Read the rows that refer to deleted rows, or to rows with a changed key; write them if this cascades."""
        if table.name in seen:
            return
        for child in self.schema.tables.values():
            for reference in child.references:
                if reference.table != table.name or (changed is not None and not changed & {*reference.target}):
                    continue
                parent, row = Source("", instance, table), Source("", f"{child.name}#child{len(seen)}", child)
                refers = [
                    Compare("=", row.term(c), parent.term(t))
                    for c, t in zip(reference.columns, reference.target, strict=True)
                ]
                which = conjunction(condition, *refers)
                self._look(child, {*reference.columns, ROW}, which, row.instance, "foreign key")
                action = reference.on_delete if changed is None else reference.on_update
                if action not in ("CASCADE", "SET NULL", "SET DEFAULT"):
                    continue
                if child.triggers:
                    raise NotUnderstoodError(f"the table {child.name} has triggers")
                gone = action == "CASCADE" and changed is None
                columns = child.all if gone else child.written(frozenset(reference.columns))
                self._write(child, columns, which, row.instance, "cascade")
                if not gone:
                    self._write(child, columns, TRUE, row.instance, "cascade (rows after it)")
                self._children(child, which, row.instance, None if gone else columns, seen | {table.name})

    def _look(
        self, table: Table, attributes: set[str] | frozenset[str], condition: Condition, instance: str, role: str
    ) -> None:
        self.footprint.reads.append(Entry(table.name, frozenset(attributes), condition, instance, role))

    def _write(self, table: Table, attributes: frozenset[str], condition: Condition, instance: str, role: str) -> None:
        self.footprint.writes.append(Entry(table.name, attributes, condition, instance, role))


def _value(term: Term) -> Term:
    """The value, independent of its row."""
    return term if isinstance(term, Parameter | Constant | Generated | Unknown) else Unknown(f"read from {term}")


def _first_word(node: exp.Expression) -> str:
    return node.sql().split(" ")[0].upper()


def _line(sql: str) -> str:
    text = " ".join(sql.split())
    return text if len(text) <= 60 else f"{text[:59]}…"
