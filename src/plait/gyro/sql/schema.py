"""The schema of a database, read from its DDL: tables, columns, keys, foreign keys, checks and triggers."""

from __future__ import annotations

import dataclasses
import logging
import re
from typing import Literal

from plait.gyro.sql.kind import declared, kind_in_sqlite, kind_of
from plait.gyro.sql.terms import Kind
from plait.kernel.errors import Argument, UsageError
from plait.kernel.extras import needs

with needs("gyro"):
    import sqlglot
    from sqlglot import exp

Dialect = Literal["sqlite", "postgres", "mysql"]

ROW = "*"
"""An attribute of every table: whether the row exists. Every statement on the table reads it; INSERT and DELETE write
it.
Without it, SELECT COUNT(*) would read nothing."""

_ROWID = re.compile(r",?\s*\bWITHOUT\s+ROWID\b", re.IGNORECASE)
_REPLACES = re.compile(r"\bON CONFLICT\b", re.IGNORECASE)
_UNCLEAR = re.compile(
    r"\s*(CREATE|ALTER|DROP)\s+(?!(EXTENSION|DOMAIN|ROLE|USER|SCHEMA|COLLATION|DATABASE)\b)", re.IGNORECASE
)
_TRIGGER = re.compile(
    r"\bCREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP(?:ORARY)?\s+)?TRIGGER\b.*?\bON\s+(?:[\"`\[]?\w+[\"`\]]?\s*\.\s*)?[\"`\[]?(\w+)[\"`\]]?"
    r"(?:.*?\bBEGIN\b.*?\bEND\s*;?|[^;]*;?)",
    re.IGNORECASE | re.DOTALL,
)
_INTEGER_KEY = re.compile(r'[\s"\]`]*INTEGER\b', re.IGNORECASE)
logging.getLogger("sqlglot").setLevel(logging.ERROR)  # this file handles triggers itself


@dataclasses.dataclass(frozen=True)
class Attribute:
    """A column of a table."""

    name: str
    kind: Kind
    type: str
    nullable: bool = True
    generated: bool = False
    """An INSERT without this column generates a new id."""
    default: bool = False
    """An INSERT without this column sets a default of the schema."""
    computed: bool = False
    """The database sets it whenever the row changes."""


@dataclasses.dataclass(frozen=True)
class Reference:
    """A foreign key: these columns refer to a row of another table."""

    columns: tuple[str, ...]
    table: str
    target: tuple[str, ...]
    on_delete: str = ""
    on_update: str = ""


@dataclasses.dataclass
class Table:
    """A table. Names are in lower case."""

    name: str
    columns: dict[str, Attribute]
    uniques: list[tuple[str, ...]] = dataclasses.field(default_factory=list)
    """Unique keys. An empty one has expressions or conditions, so any row may violate it."""
    primary: tuple[str, ...] = ()
    references: list[Reference] = dataclasses.field(default_factory=list)
    checks: list[frozenset[str]] = dataclasses.field(default_factory=list)
    """The columns of each CHECK."""
    triggers: bool = False

    @property
    def all(self) -> frozenset[str]:
        """Every attribute, including the existence of the row."""
        return frozenset({*self.columns, ROW})

    def written(self, assigned: frozenset[str]) -> frozenset[str]:
        """The columns that change if these columns are assigned."""
        return assigned | {c.name for c in self.columns.values() if c.computed}

    @property
    def generated(self) -> str | None:
        return next((c.name for c in self.columns.values() if c.generated), None)


@dataclasses.dataclass
class Schema:
    """Tables and views by name."""

    tables: dict[str, Table]
    views: dict[str, exp.Expression] = dataclasses.field(default_factory=dict)
    enums: set[str] = dataclasses.field(default_factory=set)
    dialect: Dialect = "sqlite"
    source: str = "the schema"

    def table(self, name: str, where: str) -> Table:
        """The table with this name. If it does not exist, the error lists the tables."""
        found = self.tables.get(name.lower())
        if found is None:
            known = ", ".join(sorted([*self.tables, *self.views])) or "none"
            raise UsageError(
                f"{where}: no table {name} in {self.source}",
                hint=(f"tables: {known}; give the DDL with ", Argument("schema", "FILE")),
            )
        return found


def parse_schema(ddl: str, *, dialect: Dialect = "sqlite", source: str = "the schema") -> Schema:
    """Read DDL. Other statements (INSERT, PRAGMA, …) are ignored.

    >>> schema = parse_schema("CREATE TABLE cart (id INTEGER PRIMARY KEY, owner TEXT UNIQUE)")
    >>> schema.tables["cart"].generated, schema.tables["cart"].uniques
    ('id', [('id',), ('owner',)])
    """
    triggered = {match[1].lower() for match in _TRIGGER.finditer(ddl)}
    text = _TRIGGER.sub(_blank, ddl)
    text = _ROWID.sub(_blank, text) if dialect == "sqlite" else text
    try:
        statements = sqlglot.parse(text, dialect=dialect)
    except sqlglot.errors.SqlglotError as error:
        raise UsageError(
            f"{source}: the schema cannot be parsed as {dialect}: {first_error(error)}",
            hint=("correct the DDL, or choose another ", Argument("dialect")),
        ) from None
    schema = Schema({}, dialect=dialect, source=source)
    for statement in statements:
        if isinstance(statement, exp.Create):
            _create(schema, statement, text)
        elif isinstance(statement, exp.Alter | exp.Drop):
            raise UsageError(
                f"{source}: {statement.sql(dialect=dialect)[:60]}: ALTER and DROP are not supported",
                hint="give only CREATE statements for the final tables",
            )
        elif isinstance(statement, exp.Command) and _UNCLEAR.match(shown := statement.sql(dialect=dialect)):
            raise UsageError(
                f"{source}: {' '.join(shown.split())[:60]}: this statement is not understood and may change tables",
                hint="remove it if it has no effect on tables; otherwise write it differently",
            )
    if not schema.tables:
        raise UsageError(f"{source}: no CREATE TABLE", hint=("give the DDL with ", Argument("schema", "FILE")))
    for name in triggered & schema.tables.keys():
        schema.tables[name].triggers = True
    if unknown := sorted(triggered - schema.tables.keys() - schema.views.keys()):
        raise UsageError(
            f"{source}: a trigger is on {unknown[0]}, which is not a table", hint="give the DDL of all tables"
        )
    for table in schema.tables.values():
        table.references = [_resolved(schema, table, r) for r in table.references]
    return schema


def definitions(ddl: str, *, dialect: Dialect = "sqlite") -> dict[str, str]:
    """The statements that create something, by what they create, in a form that does not depend on spaces and comments.

    >>> definitions("CREATE TABLE t (a  INT); INSERT INTO t VALUES (1); CREATE VIEW v AS SELECT 1 /* one */")
    {'table t': 'CREATE TABLE t (a INTEGER)', 'view v': 'CREATE VIEW v AS SELECT 1'}
    """
    found = {f"trigger on {m[1].lower()} {n}": " ".join(m[0].split()) for n, m in enumerate(_TRIGGER.finditer(ddl))}
    text = _TRIGGER.sub(_blank, ddl)
    if dialect == "sqlite" and (without := _ROWID.findall(text)):
        text, found["WITHOUT ROWID"] = _ROWID.sub(_blank, text), str(len(without))
    try:
        statements = sqlglot.parse(text, dialect=dialect)
    except sqlglot.errors.SqlglotError:
        return {"schema": " ".join(ddl.split())}
    for number, statement in enumerate(statements):
        if isinstance(statement, exp.Create):
            made = statement.find(exp.Table)
            name = f"{str(statement.args.get('kind')).lower()} {made.name.lower() if made is not None else number}"
            name = name if name not in found else f"{name} {number}"
            found[name] = statement.sql(dialect=dialect, comments=False)
        elif isinstance(statement, exp.Command):
            found[f"statement {number}"] = " ".join(statement.sql(dialect=dialect).split())
    return found


def _blank(match: re.Match[str]) -> str:
    """Spaces, so that positions in the text do not change."""
    return re.sub(r"[^\n]", " ", match[0])


def _constraints(definition: exp.Schema) -> list[str]:
    """The constraints of a table, as text."""
    return [str(part.sql("sqlite")) for part in definition.expressions if not isinstance(part, exp.ColumnDef)]


def first_error(error: sqlglot.errors.SqlglotError) -> str:
    """The error of the parser, in one line."""
    found = getattr(error, "errors", None)
    if found:
        return f"{found[0].get('description', '').rstrip('.')} near {found[0].get('highlight', '')!r}"
    return str(error).splitlines()[0]


def _create(schema: Schema, statement: exp.Create, text: str) -> None:
    kind = str(statement.args.get("kind", "")).upper()
    if kind == "VIEW":
        schema.views[statement.find(exp.Table).name.lower()] = statement.expression  # type: ignore[union-attr]
    elif kind == "TYPE":
        if isinstance(statement.expression, exp.DataType) and statement.expression.this.name == "ENUM":
            schema.enums.add(statement.this.this.sql(dialect=schema.dialect))
    elif kind == "INDEX" and statement.args.get("unique"):
        index = statement.this
        name = index.args["table"].name.lower()
        if name in schema.tables:
            columns = [o.this for o in index.args["params"].args.get("columns") or []]
            plain = all(isinstance(c, exp.Column) for c in columns) and not index.args["params"].args.get("where")
            schema.tables[name].uniques.append(tuple(c.name.lower() for c in columns) if plain else ())
    elif kind == "TABLE":
        if not isinstance(statement.this, exp.Schema):
            raise UsageError(
                f"{schema.source}: CREATE TABLE {statement.this.sql()} has no columns",
                hint="list the columns; CREATE TABLE … AS SELECT is not supported",
            )
        if statement.find(exp.InheritsProperty):
            raise UsageError(
                f"{schema.source}: {statement.this.this.sql()} inherits from another table, which is not supported",
                hint="define the table without INHERITS",
            )
        if any(_REPLACES.search(c) for c in _constraints(statement.this)):
            raise UsageError(
                f"{schema.source}: a key of {statement.this.this.sql()} has ON CONFLICT, which is not supported",
                hint="use INSERT OR REPLACE or INSERT OR IGNORE in the statements",
            )
        table = _table(schema, statement.this, text)
        schema.tables[table.name] = table


def _prefixed(key: exp.Expression) -> bool:
    """Whether a key has only a prefix of a column (MySQL): then different values may violate it."""
    return any(not isinstance(e, exp.Identifier | exp.Column) for e in key.expressions)


def _table(schema: Schema, definition: exp.Schema, text: str) -> Table:
    table = Table(definition.this.name.lower(), {})
    collate = definition.parent.find(exp.CollateProperty) if definition.parent is not None else None
    table_collation = collate.this.name if collate is not None and schema.dialect == "mysql" else ""
    integer_keys: set[str] = set()
    for part in definition.expressions:
        while isinstance(part, exp.Constraint):
            part = part.expressions[0]
        if isinstance(part, exp.Identifier):  # a column without a type
            part = exp.ColumnDef(this=part)
        if isinstance(part, exp.ColumnDef):
            if (end := part.this.meta.get("end")) is not None and _INTEGER_KEY.match(text, end + 1):
                integer_keys.add(part.name.lower())
            _column(schema, table, part, text, table_collation)
        elif isinstance(part, exp.PrimaryKey):
            table.primary = tuple(e.name.lower() for e in part.expressions)
            if _prefixed(part):
                table.uniques.append(())
        elif isinstance(part, exp.UniqueColumnConstraint) and part.this is not None:
            whole = not _prefixed(part.this)
            table.uniques.append(tuple(e.name.lower() for e in part.this.expressions) if whole else ())
        elif isinstance(part, exp.ForeignKey):
            columns = tuple(e.name.lower() for e in part.expressions)
            table.references.append(_reference(columns, part.args["reference"], part.args.get("options")))
        elif isinstance(part, exp.CheckColumnConstraint):
            table.checks.append(frozenset(c.name.lower() for c in part.find_all(exp.Column)))
        elif not isinstance(part, exp.IndexColumnConstraint):
            table.uniques.append(())  # EXCLUDE and similar: any row may violate it
    if table.primary:
        table.uniques.insert(0, table.primary)
    if len(table.primary) == 1 and schema.dialect == "sqlite" and table.primary[0] in integer_keys:
        key = table.columns[table.primary[0]]  # SQLite's INTEGER PRIMARY KEY is the row's id
        table.columns[key.name] = dataclasses.replace(key, generated=True, nullable=False)
    elif schema.dialect != "sqlite":
        for name in table.primary:
            table.columns[name] = dataclasses.replace(table.columns[name], nullable=False)
    return table


def _column(schema: Schema, table: Table, part: exp.ColumnDef, text: str, collation: str = "") -> None:
    name = part.name.lower()
    type_name = part.kind.this.name if part.kind is not None and hasattr(part.kind.this, "name") else ""
    nullable, generated, computed, default = True, "SERIAL" in type_name, False, False
    if schema.dialect == "mysql" and any(
        isinstance(c.kind, exp.CharacterSetColumnConstraint) for c in part.constraints
    ):
        collation = ""  # the usual collation of this character set
    for constraint in part.constraints:
        rule = constraint.kind
        if isinstance(rule, exp.PrimaryKeyColumnConstraint):
            table.primary = (name,)
        elif isinstance(rule, exp.UniqueColumnConstraint):
            table.uniques.append((name,))
        elif isinstance(rule, exp.NotNullColumnConstraint):
            nullable = bool(rule.args.get("allow_null"))
        elif isinstance(rule, exp.AutoIncrementColumnConstraint | exp.GeneratedAsIdentityColumnConstraint):
            generated = True
        elif isinstance(rule, exp.DefaultColumnConstraint):
            default = True
        elif isinstance(rule, exp.ComputedColumnConstraint | exp.OnUpdateColumnConstraint):
            computed = True
        elif isinstance(rule, exp.CollateColumnConstraint):
            collation = rule.this.name
        elif isinstance(rule, exp.Reference):
            table.references.append(_reference((name,), rule, None))
        elif isinstance(rule, exp.CheckColumnConstraint):
            table.checks.append(frozenset(c.name.lower() for c in rule.find_all(exp.Column)))
    written = part.kind.sql(dialect=schema.dialect) if part.kind is not None else ""
    if schema.dialect == "sqlite":
        if (end := part.this.meta.get("end")) is not None:
            written = declared(text, end + 1)
        kind = kind_in_sqlite(written, type_name, collation)
    else:
        kind = kind_of(type_name, written, schema.dialect, collation, frozenset(schema.enums))
    table.columns[name] = Attribute(name, kind, written, nullable, generated, default, computed)


def _reference(columns: tuple[str, ...], node: exp.Expression, options: object) -> Reference:
    text = " ".join(str(o) for o in [*(node.args.get("options") or []), *(options or [])]).upper()  # type: ignore[misc]
    actions = dict(re.findall(r"ON (DELETE|UPDATE) (CASCADE|SET NULL|SET DEFAULT|RESTRICT|NO ACTION)", text))
    for key in ("delete", "update"):
        if node.parent is not None and (action := node.parent.args.get(key)):
            actions[key.upper()] = str(action).upper()
    target = node.this
    names = tuple(e.name.lower() for e in target.expressions) if isinstance(target, exp.Schema) else ()
    table = target.this.name if isinstance(target, exp.Schema) else target.name
    return Reference(columns, table.lower(), names, actions.get("DELETE", ""), actions.get("UPDATE", ""))


def _resolved(schema: Schema, table: Table, reference: Reference) -> Reference:
    """The foreign key with its target columns: by default, the primary key of the other table."""
    parent = schema.table(reference.table, f"the foreign key ({', '.join(reference.columns)}) of {table.name}")
    target = reference.target or parent.primary
    if len(target) != len(reference.columns):
        raise UsageError(
            f"{schema.source}: the foreign key ({', '.join(reference.columns)}) of {table.name} does not match "
            f"({', '.join(target)}) of {parent.name}",
            hint="give the same number of columns on both sides",
        )
    return dataclasses.replace(reference, target=target)
