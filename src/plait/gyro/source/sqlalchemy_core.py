"""SQLAlchemy Core: translates its expressions and statements to SQL, with placeholders for values.

`select`, `insert`, `update` and `delete` of Tables that the application defines become SQL. The analysis then
continues as for other SQL. A value in a comparison must certainly be a value, because an unknown object might be an
expression. Other constructs (aliases, subqueries, outer joins, ORM classes) are not understood; a transaction that
executes them is refused. `column == value` means IS NULL if the value is None at run time, so it becomes IS NOT
DISTINCT FROM. If it is negated, this selects more rows, never fewer.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
from collections.abc import Sequence as Items

from plait.gyro.source.values import Clause, CoreColumns, CoreTable, Mapping, Query, Sequence, Text, Value, is_plain
from plait.gyro.sql.terms import Constant, Parameter, Unknown

_numbers = itertools.count(1)
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "=", ast.NotEq: "<>",
}  # fmt: skip
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_FUNCTIONS = {"count", "sum", "min", "max", "avg", "coalesce", "lower", "upper", "length", "abs"}
_STATEMENTS = {"select", "insert", "update", "delete"}
_OTHERS = {"and_", "or_", "not_", "desc", "asc", "bindparam", "func.now", "func.current_timestamp"}
_METHODS = {
    "add", "as_readonly", "clear", "compare", "contains_column", "corresponding_column", "extend", "get", "items", "keys",
    "remove", "update", "values",
}  # fmt: skip
"""Methods of `table.c`, which are not columns."""
Row = tuple[tuple[str, Value], ...]


class CoreError(Exception):
    """A construct of SQLAlchemy that is not understood."""


def known(name: str) -> bool:
    """Whether this file translates the SQLAlchemy function with this name."""
    return name in _STATEMENTS or name in _OTHERS or name.startswith("func.")


def call(name: str, arguments: Items[Value], named: dict[str | None, Value]) -> Value:
    """The result of a call of a SQLAlchemy function."""
    try:
        if name in _STATEMENTS:
            return _statement(name, arguments, named)
        return _function(name, arguments, named)
    except CoreError as error:
        return Query(name, problem=str(error))


def _statement(name: str, arguments: Items[Value], named: dict[str | None, Value]) -> Query:
    if named:
        raise CoreError(f"{name}() with {next(iter(named))} is not supported")
    if name == "select":
        return Query("select", columns=tuple(c for a in arguments for c in _selected(a)), more=_tables(arguments))
    if len(arguments) != 1 or not isinstance(arguments[0], CoreTable):
        raise CoreError(f"{name}() needs a Table of the application; ORM classes are not supported")
    return Query(name, arguments[0])


def _tables(arguments: Items[Value]) -> tuple[str, ...]:
    return tuple(a.name for a in arguments if isinstance(a, CoreTable))


def _selected(value: Value) -> list[Clause]:
    if isinstance(value, CoreTable):
        return [column(value, name) for name, _ in value.columns]
    if not isinstance(value, Clause | Query):
        raise CoreError("select() needs columns of a Table; ORM classes are not supported")
    return [_clause(value)]


def _function(name: str, arguments: Items[Value], named: dict[str | None, Value]) -> Clause:
    if named or (name == "bindparam" and len(arguments) != 1):
        raise CoreError(f"{name}() with options is not supported")
    if name in ("and_", "or_"):
        return _joined(" AND " if name == "and_" else " OR ", [_clause(a) for a in arguments])
    if name == "not_" and len(arguments) == 1:
        return _wrapped("NOT ({})", _clause(arguments[0]))
    if name in ("desc", "asc") and len(arguments) == 1:
        return _wrapped(f"{{}} {name.upper()}", _clause(arguments[0]))
    if name == "bindparam" and isinstance(arguments[0], Constant) and isinstance(arguments[0].value, str):
        return Clause(f":{arguments[0].value}")
    if name in ("func.now", "func.current_timestamp") and not arguments:
        return Clause("CURRENT_TIMESTAMP")
    function = name.removeprefix("func.")
    if not name.startswith("func.") or function not in _FUNCTIONS:
        raise CoreError(f"{name} is not supported")
    parts = [_operand(a, None) for a in arguments]
    sql = ", ".join(p.sql for p in parts) or ("*" if function == "count" else "")
    return Clause(f"{function.upper()}({sql})", *_of(parts))


def column(table: CoreTable, name: str) -> Clause:
    """A column of a Table."""
    for own, plain in table.columns:
        if own == name:
            return Clause(f'"{table.name}"."{name}"', (table.name,), column=name, plain=plain)
    raise CoreError(f"the Table {table.name} has no column {name}")


def attribute(base: CoreTable | CoreColumns | Clause | Query, name: str, *, item: bool = False) -> Value:
    """`table.c`, `table.c.name`, and with `item` `table.c["name"]`."""
    if isinstance(base, CoreTable) and name in ("c", "columns"):
        return CoreColumns(base)
    if isinstance(base, CoreColumns) and name in _METHODS and not item:
        return Query("column", problem=f"{base.table.name}.c.{name} is a method of SQLAlchemy, not a column")
    if isinstance(base, CoreColumns):
        try:
            return column(base.table, name)
        except CoreError as error:
            return Unknown(str(error))
    return Unknown(f"the attribute {name}")


def compare(left: Value, operator: ast.cmpop, right: Value) -> Value:
    """A comparison such as `column == value`."""
    sign = _COMPARE.get(type(operator))
    try:
        for side in (left, right):
            if isinstance(side, Query) and side.problem:
                raise CoreError(side.problem)
        if sign is None:
            raise CoreError("this comparison does not exist in SQL")
        if not isinstance(left, Clause):
            left, right, sign = right, left, _FLIPPED[sign]
        if not isinstance(left, Clause):
            raise CoreError("both sides of the comparison are unknown")
        if isinstance(right, Constant) and right.value is None:
            if sign not in ("=", "<>"):
                raise CoreError("< and > with None are not supported")
            return _wrapped(f"({{}} IS {'NOT ' if sign == '<>' else ''}NULL)", left)
        value = _operand(right, left)
        of = _of([left, value])
        if isinstance(right, Clause | Constant):
            return Clause(f"({left.sql} {sign} {value.sql})", *of)
        if sign == "=":
            return Clause(f"({left.sql} IS NOT DISTINCT FROM {value.sql})", *of)
        if sign == "<>":
            null = f"{value.sql} IS NULL AND {left.sql} IS NOT NULL"
            return Clause(f"({value.sql} IS NOT NULL AND {left.sql} <> {value.sql} OR {null})", *of)
        return Clause(f"({left.sql} {sign} {value.sql})", *of)
    except CoreError as error:
        return Query("expression", problem=str(error))


def binary(left: Value, operator: ast.operator, right: Value) -> Value:
    """`&`, `|` and arithmetic."""
    try:
        if isinstance(operator, ast.BitAnd | ast.BitOr):
            word = " AND " if isinstance(operator, ast.BitAnd) else " OR "
            return _joined(word, [_clause(left), _clause(right)])
        sign = _ARITHMETIC.get(type(operator))
        if sign is None:
            raise CoreError("this operator is not supported")
        parts = [_operand(p, None) for p in (left, right)]
        return Clause(f"({parts[0].sql} {sign} {parts[1].sql})", *_of(parts))
    except CoreError as error:
        return Query("expression", problem=str(error))


def invert(value: Value) -> Value:
    """`~condition`."""
    try:
        return _wrapped("NOT ({})", _clause(value))
    except CoreError as error:
        return Query("expression", problem=str(error))


def method(receiver: Value, name: str, arguments: Items[Value], named: dict[str | None, Value]) -> Value:
    """A method of a Table, of an expression or of a statement."""
    try:
        if isinstance(receiver, Query):
            return receiver if receiver.problem else _extended(receiver, name, arguments, named)
        if isinstance(receiver, CoreTable) and name in _STATEMENTS and not arguments:
            return _statement(name, [receiver], named)
        if isinstance(receiver, Clause):
            return _of_clause(receiver, name, arguments, named)
        raise CoreError(f"the method {name} is not supported")
    except CoreError as error:
        return Query("expression", problem=str(error))


def _of_clause(clause: Clause, name: str, arguments: Items[Value], named: dict[str | None, Value]) -> Clause:
    if named:
        raise CoreError(f"{name}() with {next(iter(named))} is not supported")
    one = arguments[0] if len(arguments) == 1 else None
    null = isinstance(one, Constant) and one.value is None
    if name in ("desc", "asc") and not arguments:
        return _wrapped(f"{{}} {name.upper()}", clause)
    if name in ("is_", "is_not", "isnot") and null:
        return _wrapped(f"({{}} IS {'' if name == 'is_' else 'NOT '}NULL)", clause)
    if name == "label" and isinstance(one, Constant) and isinstance(one.value, str) and one.value.isidentifier():
        return dataclasses.replace(_wrapped(f'{{}} AS "{one.value}"', clause), column="")
    if name == "between" and len(arguments) == 2:
        ends = [_operand(a, clause) for a in arguments]
        return Clause(f"({clause.sql} BETWEEN {ends[0].sql} AND {ends[1].sql})", *_of([clause, *ends]))
    if name == "like" and one is not None:
        pattern = _operand(one, clause)
        return Clause(f"({clause.sql} LIKE {pattern.sql})", *_of([clause, pattern]))
    if name in ("in_", "not_in", "notin_") and one is not None:
        return _membership(clause, one, negated=name != "in_")
    raise CoreError(f"the method {name} of an expression is not supported")


def _membership(clause: Clause, given: Value, *, negated: bool) -> Clause:
    word = "NOT IN" if negated else "IN"
    if isinstance(given, Sequence) and given.items:
        items = [_operand(i, clause) for i in given.items]
        return Clause(f"({clause.sql} {word} ({', '.join(i.sql for i in items)}))", *_of([clause, *items]))
    if not is_plain(given):
        raise CoreError("the argument of in_() may be a subquery")
    several = _operand(given, None)  # it may be several values
    return Clause(f"({clause.sql} {word} (SELECT {several.sql}))", *_of([clause, several]))


def _extended(query: Query, name: str, arguments: Items[Value], named: dict[str | None, Value]) -> Query:
    """The statement with one more part."""
    change = dataclasses.replace
    if name == "values" and query.kind in ("insert", "update"):
        if query.values or len(arguments) > 1 or (arguments and named):
            raise CoreError("values() is called twice, or with several arguments")
        given = arguments[0] if arguments else Mapping(tuple((str(k), v) for k, v in named.items()))
        if not isinstance(given, Mapping) or None in named:
            raise CoreError("the argument of values() is not a dict with constant keys")
        return change(query, values=_assigned(query, given.items))
    if named:
        raise CoreError(f"{name}() with {next(iter(named))} is not supported")
    if name in ("where", "filter") and query.kind != "insert":
        return change(query, where=query.where + tuple(_clause(a) for a in arguments))
    if name == "returning" and query.kind == "insert":
        return change(query, columns=tuple(c for a in arguments for c in _selected(a)))
    if query.kind != "select":
        raise CoreError(f"{query.kind}().{name}() is not supported")
    if name in ("order_by", "group_by"):
        return change(query, tail=(*query.tail, (name, tuple(_clause(a) for a in arguments))))
    if name in ("limit", "offset") and len(arguments) == 1:
        return change(query, tail=(*query.tail, (name, (_operand(arguments[0], None),))))
    if name == "select_from" and all(isinstance(a, CoreTable) for a in arguments):
        return change(query, more=query.more + _tables(arguments))
    if name == "join" and len(arguments) == 2 and isinstance(arguments[0], CoreTable):
        return change(query, more=query.more + _tables(arguments), where=(*query.where, _clause(arguments[1])))
    if name == "with_for_update" and not arguments:
        return query
    if name == "distinct" and not arguments:
        return change(query, tail=(*query.tail, (name, ())))
    raise CoreError(f"select().{name}() is not supported")


def _assigned(query: Query, items: Row) -> tuple[tuple[str, Clause], ...]:
    assert query.table is not None
    found = []
    for name, value in items:
        target = column(query.table, name)
        made = _operand(value, target)
        if any(t != query.table.name for t in made.tables) or (query.kind == "insert" and made.tables):
            raise CoreError(f"the value of {name} comes from another row")
        found.append((name, made))
    return tuple(found)


def text(query: Query, row: Row | None) -> Text:
    """The statement as SQL. `row` is the dict that execute() gets: values of columns, or of bindparam()."""
    if query.problem:
        raise CoreError(query.problem)
    if query.kind == "select":
        return _select(query)
    table = query.table
    assert table is not None
    if query.kind != "delete" and table.written:
        raise CoreError(f"SQLAlchemy fills {table.written}")
    values = dict(query.values)
    if row is not None and query.kind != "delete":
        if query.values or query.where:
            raise CoreError("values() or where() together with a dict of values is not supported")
        values = dict(_assigned(query, row))
    if not values and query.kind != "delete":
        raise CoreError(f"{query.kind} without known columns")
    parts = [*values.values(), *query.where, *query.columns]
    tables, bound = _of(parts)
    if any(t != table.name for t in tables):
        raise CoreError(f"{query.kind} uses another table")
    where = f" WHERE {' AND '.join(c.sql for c in query.where)}" if query.where else ""
    if query.kind == "delete":
        return Text(f'DELETE FROM "{table.name}"{where}', bound)
    if query.kind == "update":
        sets = ", ".join(f'"{n}" = {c.sql}' for n, c in values.items())
        return Text(f'UPDATE "{table.name}" SET {sets}{where}', bound)
    names, given = ", ".join(f'"{n}"' for n in values), ", ".join(c.sql for c in values.values())
    back = f" RETURNING {', '.join(c.sql for c in query.columns)}" if query.columns else ""
    return Text(f'INSERT INTO "{table.name}" ({names}) VALUES ({given}){back}', bound)


def _select(query: Query) -> Text:
    tail = [c for _, clauses in query.tail for c in clauses]
    tables, bound = _of([*query.columns, *query.where, *tail])
    sources = tuple(dict.fromkeys((*query.more, *_of([*query.columns, *query.where])[0])))
    if not query.columns or not sources or any(t not in sources for t in tables):
        raise CoreError("select() has no table, or is ordered by a column of another table")
    sql = "SELECT DISTINCT " if any(n == "distinct" for n, _ in query.tail) else "SELECT "
    sql += ", ".join(c.sql for c in query.columns) + " FROM " + ", ".join(f'"{s}"' for s in sources)
    sql += f" WHERE {' AND '.join(c.sql for c in query.where)}" if query.where else ""
    for name, words in (("group_by", "GROUP BY"), ("order_by", "ORDER BY"), ("limit", "LIMIT"), ("offset", "OFFSET")):
        if found := [c.sql for n, clauses in query.tail if n == name for c in clauses]:
            sql += f" {words} {', '.join(found)}"
    return Text(sql, bound)


def _clause(value: Value) -> Clause:
    if isinstance(value, Query):
        raise CoreError(value.problem or "a subquery is not supported")
    if not isinstance(value, Clause):
        raise CoreError("the condition is not an expression of Tables")
    return value


def _operand(value: Value, target: Clause | None) -> Clause:
    """An expression, or a value with a placeholder. A value that the type of the target converts is unknown."""
    if isinstance(value, Clause | Query):
        return _clause(value)
    if not is_plain(value):
        raise CoreError("the value may be an expression of SQLAlchemy")
    name = f"core_{next(_numbers)}"
    converted = target is not None and not target.plain and not (isinstance(value, Constant) and value.value is None)
    if converted or (isinstance(value, Parameter) and target is None):
        value = Unknown("the type of the column converts it", plain=True)
    return Clause(f":{name}", (), ((name, value),))


def _of(parts: Items[Clause]) -> tuple[tuple[str, ...], Row]:
    """The tables and the placeholders of expressions."""
    return tuple(dict.fromkeys(t for p in parts for t in p.tables)), tuple(b for p in parts for b in p.bound)


def _joined(word: str, parts: Items[Clause]) -> Clause:
    if not parts:
        raise CoreError("the condition is empty")
    return Clause(f"({word.join(p.sql for p in parts)})", *_of(parts))


def _wrapped(pattern: str, clause: Clause) -> Clause:
    return Clause(pattern.format(clause.sql), clause.tables, clause.bound)
