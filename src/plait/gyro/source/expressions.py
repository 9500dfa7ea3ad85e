"""The values of Python expressions, and the SQL that they execute (see `functions.py`)."""

from __future__ import annotations

import abc
import ast
import dataclasses
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from plait.gyro.source import sqlalchemy_core as core
from plait.gyro.source.values import (
    Clause,
    CoreColumns,
    CoreTable,
    Handle,
    Many,
    Mapping,
    Query,
    Result,
    Row,
    Sequence,
    Text,
    Value,
    as_term,
    has,
    is_plain,
    merge,
)
from plait.gyro.sql.schema import Schema
from plait.gyro.sql.statements import Ids, placeholders
from plait.gyro.sql.terms import Constant, Parameter, Term, Unknown
from plait.gyro.transactions import Transaction

if TYPE_CHECKING:
    from plait.gyro.source.modules import Function, Module, Program

_EXECUTE = {"execute", "executemany", "executescript", "exec_driver_sql"}
_FETCH = {"fetch", "fetchrow", "fetchval", "scalar", "scalars"}
"""Methods that execute a statement if they get SQL."""
_SQL = re.compile(
    r"\s*(SELECT\b.*\bFROM\b|INSERT\s+(OR\s+\w+\s+)?INTO\b|UPDATE\s+\S+\s+SET\b|DELETE\s+FROM\b|REPLACE\s+INTO\b"
    r"|MERGE\s+INTO\b|WITH\b.*\bAS\s*\()",
    re.IGNORECASE | re.DOTALL,
)
_ONE = {"fetchone", "one", "first", "one_or_none"}
_ALL = {"fetchall", "fetchmany", "all", "mappings", "partitions", "unique", "yield_per", "tuples", "keys"}
_SCALAR = {"scalar", "scalar_one", "scalar_one_or_none"}
_OPENS = {
    "cursor",
    "connect",
    "begin",
    "begin_nested",
    "connection",
    "transaction",
    "execution_options",
    "__enter__",
    "acquire",
}
_HARMLESS = {
    "commit",
    "rollback",
    "close",
    "flush",
    "create_function",
    "set_isolation_level",
    "__exit__",
    "in_transaction",
}
_ORM = {"add", "add_all", "delete", "get", "get_one", "merge", "query", "refresh"}
_CONSTRUCTORS = {"connect", "create_engine", "closing", "Session", "sessionmaker", "aconnect"}
NAMES = {"db", "conn", "con", "connection", "cursor", "cur", "session", "tx", "engine", "pool", "database"}
_DYNAMIC = "write the statement as a constant string, with placeholders for values"

_CORE = (CoreTable, CoreColumns, Clause, Query)
_MANAGERS = {"query", "objects"}
"""Attributes of classes with which an ORM executes SQL on a connection that is not visible in the source."""
_PLAIN_FUNCTIONS = {"int", "str", "float", "len", "abs", "round", "min", "max", "sum", "bool"}

Environment = dict[object, Value]


class Evaluation(abc.ABC):
    """Evaluates the expressions of one transaction. `Walk` handles the statements."""

    def __init__(self, program: Program, transaction: Transaction, schema: Schema, ids: Ids) -> None:
        self.program = program
        self.transaction = transaction
        self.schema = schema
        self.ids = ids
        self.stack: list[Function] = []
        self.connections: set[str] = set()
        """Parameters that are used as connections."""

    @abc.abstractmethod
    def call(self, function: Function, arguments: dict[str, Value]) -> Value:
        """Follow a call; return its result."""

    @abc.abstractmethod
    def assign(self, target: ast.expr, value: Value, environment: Environment) -> None:
        """Assign a value to a target."""

    @abc.abstractmethod
    def forget(self, nodes: Iterable[ast.AST], environment: Environment) -> None:
        """All variables that these nodes assign become unknown."""

    def refuse(self, node: ast.AST, reason: str, remedy: str) -> None:
        self.transaction.refuse(self.place(node), reason, remedy)

    def place(self, node: ast.AST) -> str:
        return f"{self.stack[-1].module.shown}:{getattr(node, 'lineno', 0)}"

    # -- expressions -------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr, environment: Environment) -> Value:
        """The value of an expression. SQL in the expression is added to the transaction."""
        if isinstance(node, ast.Constant):
            return constant(node.value)
        if isinstance(node, ast.Name):
            if node.id in environment:
                return environment[node.id]
            if node.id.lower().lstrip("_") in NAMES:
                return Handle()
            return self._constant(self.stack[-1].module, node.id)
        if isinstance(node, ast.Tuple | ast.List):
            items = tuple(self.value(e, environment) for e in node.elts)
            if any(isinstance(e, ast.Starred) for e in node.elts):
                return Unknown("a list of unknown length")
            return Sequence(items, isinstance(node, ast.List))
        if isinstance(node, ast.Dict):
            values = [self.value(v, environment) for v in node.values]
            keys = [self._key(k, environment) for k in node.keys]
            if all(isinstance(k, str) for k in keys):
                return Mapping(tuple((str(k), v) for k, v in zip(keys, values, strict=True)))
            return Unknown("a dict with computed keys")
        if isinstance(node, ast.JoinedStr):
            return self._joined(node, environment)
        if isinstance(node, ast.BinOp):
            return self.sum(node.left, node.op, node.right, environment)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = self.value(node.left, environment), self.value(node.comparators[0], environment)
            if isinstance(left, _CORE) or isinstance(right, _CORE):
                return core.compare(left, node.ops[0], right)
            return Unknown(f"computed in line {node.lineno}", plain=is_plain(left) and is_plain(right))
        if isinstance(node, ast.UnaryOp):
            found = self.value(node.operand, environment)
            if isinstance(found, _CORE):
                return (
                    core.invert(found)
                    if isinstance(node.op, ast.Invert)
                    else Query("", problem="this operator is not supported")
                )
            return Unknown(f"computed in line {node.lineno}", plain=is_plain(found))
        if isinstance(node, ast.IfExp):
            self.value(node.test, environment)
            return merge(self.value(node.body, environment), self.value(node.orelse, environment))
        if isinstance(node, ast.NamedExpr):
            found = self.value(node.value, environment)
            self.forget([node], environment)  # it may not always be evaluated
            return found
        if isinstance(node, ast.Await | ast.Starred):
            return self.value(node.value, environment)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, environment)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, environment)
        if isinstance(node, ast.Call):
            return self._call(node, environment)
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
            return self._comprehension(node, environment)
        if isinstance(node, ast.Lambda):
            if any(executes(n) for n in ast.walk(node)):
                self.refuse(node, "a lambda executes SQL", "use a function at the top level of the module")
            return Unknown("a function")
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, environment)
        return Unknown(f"computed in line {node.lineno}")

    def sum(self, left: ast.expr, operator: ast.operator, right: ast.expr, environment: Environment) -> Value:
        """The result of an operator. Constant strings are concatenated; other results are unknown."""
        one, other = self.value(left, environment), self.value(right, environment)
        if isinstance(one, _CORE) or isinstance(other, _CORE):
            return core.binary(one, operator, other)
        texts = [v.value for v in (one, other) if isinstance(v, Constant) and isinstance(v.value, str)]
        if isinstance(operator, ast.Add) and len(texts) == 2:
            return Constant("".join(texts))
        plain = is_plain(one) and is_plain(other)
        return Unknown("the string is built at run time" if texts else f"computed in line {left.lineno}", plain=plain)

    def _constant(self, module: Module, name: str) -> Value:
        """A constant of a module. A list or dict is known only if nothing can change it."""
        found = module.constants.get(name, Unknown(f"the name {name}"))
        if isinstance(found, Sequence | Mapping) and not self.program.unchanged(name):
            return Unknown(f"{name} may change")
        return found

    def _joined(self, node: ast.JoinedStr, environment: Environment) -> Value:
        parts = [p.value if isinstance(p, ast.FormattedValue) else p for p in node.values]
        found = joined([(p, self.value(v, environment)) for p, v in zip(node.values, parts, strict=True)])
        return found if found is not None else Unknown("an f-string", plain=True)

    def _key(self, node: ast.expr | None, environment: Environment) -> str | None:
        """A key of a dict: a constant string, or the name of a column."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        found = self.value(node, environment) if node is not None else None
        return (found.column or None) if isinstance(found, Clause) else None

    def _attribute(self, node: ast.Attribute, environment: Environment) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id not in environment:
            module, name = self.stack[-1].module.imported.get(node.value.id, (None, ""))
            known = module.constants.get(node.attr) if module is not None and not name else None
            if module is not None and (
                isinstance(known, CoreTable) or (known and not self.program.assigned(node.attr))
            ):
                return self._constant(module, node.attr)
        base = self.value(node.value, environment)
        if isinstance(base, _CORE):
            return core.attribute(base, node.attr)
        if node.attr in _MANAGERS and isinstance(node.value, ast.Name) and node.value.id[:1].isupper():
            self.refuse(node, f"{ast.unparse(node)} belongs to an ORM", "execute SQL instead")
        if node.attr in _EXECUTE:
            self.refuse(node, f"{ast.unparse(node)} is not called directly", "call it directly")
        if node.attr == "lastrowid":
            found = environment.get(base) if isinstance(base, Handle) else base
            return found.lastrowid if isinstance(found, Result) else Unknown("the id of a row", plain=True)
        if node.attr == "inserted_primary_key" and isinstance(base, Result):
            return Sequence((base.lastrowid,))
        if isinstance(base, Result) and node.attr == "rowcount":
            return Unknown("the number of rows", plain=True)
        if isinstance(base, Row):
            return base.at(node.attr)
        if isinstance(base, Handle):
            return (
                base if node.attr in ("connection", "bind") else Unknown(f"the attribute {node.attr} of a connection")
            )
        return Handle() if node.attr.lower().lstrip("_") in NAMES else Unknown(f"the attribute {node.attr}")

    def _subscript(self, node: ast.Subscript, environment: Environment) -> Value:
        base = self.value(node.value, environment)
        key = self.value(node.slice, environment) if not isinstance(node.slice, ast.Slice) else None
        at = key.value if isinstance(key, Constant) else None
        if isinstance(base, CoreColumns):
            return core.attribute(base, at, item=True) if isinstance(at, str) else Unknown("a column")
        if isinstance(base, Row) and at is not None:
            return base.at(at)
        if isinstance(base, Sequence) and isinstance(at, int) and 0 <= at < len(base.items):
            return base.items[at]
        if isinstance(base, Mapping) and isinstance(at, str):
            return dict(base.items).get(at, Unknown("a missing key"))
        if isinstance(base, Result | Many):
            return self.element(base)
        return Unknown(f"an element, in line {node.lineno}", plain=is_plain(base))

    def element(self, source: Value) -> Value:
        """An element of a value, as in a loop."""
        if isinstance(source, Result):
            return Row(tuple(source.columns))
        return (
            source.item
            if isinstance(source, Many)
            else Unknown("an element of an unknown value", plain=is_plain(source))
        )

    def _comprehension(
        self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp, environment: Environment
    ) -> Value:
        inner = dict(environment)
        self.forget([node], inner)
        self.forget([n for n in ast.walk(node) if isinstance(n, ast.NamedExpr)], environment)
        for generator in node.generators:
            source = self.value(generator.iter, inner)
            self.assign(generator.target, self.element(source), inner)
            for test in generator.ifs:
                self.value(test, inner)
        if isinstance(node, ast.DictComp):
            self.value(node.key, inner)
            self.value(node.value, inner)
            return Unknown("a dict comprehension")
        return Many(self.value(node.elt, inner))

    # -- calls -------------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call, environment: Environment) -> Value:
        function = node.func
        if (known := self.program.resolve(function, self.stack[-1], environment)) is not None:
            return self._follow(known, node, environment)
        called = self.stack[-1].module.sqlalchemy(function)
        if called is not None and core.known(called):
            return core.call(called, *self._given(node, environment))
        if isinstance(function, ast.Attribute):
            return self._method(function, node, environment)
        name = function.id if isinstance(function, ast.Name) else ""
        return self._foreign(name or ast.unparse(function), node, environment)

    def _arguments(self, node: ast.Call, environment: Environment) -> list[Value]:
        return [self.value(a, environment) for a in node.args] + [
            self.value(k.value, environment) for k in node.keywords
        ]

    def _given(self, node: ast.Call, environment: Environment) -> tuple[list[Value], dict[str | None, Value]]:
        """Arguments by position and by name. Arguments with * are unknown."""
        found = [self.value(a, environment) for a in node.args]
        if any(isinstance(a, ast.Starred) for a in node.args):
            found.append(Query("", problem="arguments with * are not supported"))
        return found, {k.arg: self.value(k.value, environment) for k in node.keywords}

    def _follow(self, function: Function, node: ast.Call, environment: Environment) -> Value:
        spec = function.node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        if function.method:
            names = names[1:]
        given: dict[str, Value] = {}
        spread = any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords)
        for i, argument in enumerate(node.args):
            found = self.value(argument, environment)
            if i < len(names) and not spread:
                given[names[i]] = found
        for keyword in node.keywords:
            found = self.value(keyword.value, environment)
            if keyword.arg is not None and not spread:
                given[keyword.arg] = found
        if spread:
            given = {
                a.arg: Unknown("arguments with * or **") for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
            }
        found = self.call(function, given)
        for key in [k for k in environment if isinstance(k, Handle)]:
            del environment[key]  # the callee may have used the cursor
        return found

    def _method(self, function: ast.Attribute, node: ast.Call, environment: Environment) -> Value:
        name = function.attr
        receiver = self.value(function.value, environment)
        if name in _EXECUTE or (name in _FETCH and node.args and isinstance(receiver, Handle | Parameter | Unknown)):
            return self._execute(receiver, name, node, environment)
        if isinstance(receiver, _CORE):
            return core.method(receiver, name, *self._given(node, environment))
        if isinstance(function.value, ast.Name) and name == "text":
            return self._text(node, environment)
        if isinstance(receiver, Text) and name == "bindparams":
            bound = tuple((k.arg, self.value(k.value, environment)) for k in node.keywords if k.arg)
            return Text(receiver.sql, receiver.bound + bound)
        if isinstance(receiver, Handle | Parameter) and name in _OPENS:
            self._connection(receiver)
            self._arguments(node, environment)
            return Handle() if name == "cursor" else receiver if isinstance(receiver, Handle) else Handle()
        result = environment.get(receiver) if isinstance(receiver, Handle) else receiver
        if isinstance(result, Result):
            if name in _ONE:
                return Row(tuple(result.columns))
            if name in _ALL:
                return result
            if name in (*_SCALAR, "scalars"):
                columns = result.columns[:1]
                return (
                    (Many(columns[0][1]) if name == "scalars" else columns[0][1])
                    if columns
                    else Unknown("a result", plain=True)
                )
        if isinstance(receiver, Many) and name in _ALL | _ONE:
            return receiver if name in _ALL else receiver.item
        if isinstance(receiver, Handle):
            self._arguments(node, environment)
            if name in _ORM:
                reason = f"{ast.unparse(function)} belongs to the ORM: its SQL is not visible in the source"
                self.refuse(node, reason, "execute SQL, or Core statements of Tables")
            elif name not in _HARMLESS | _ONE | _ALL | _SCALAR:
                self.refuse(node, f"the method {name} of the connection is not known", "execute SQL instead")
            return Unknown("the result of a method of the connection")
        return self._foreign(ast.unparse(function), node, environment)

    def _foreign(self, name: str, node: ast.Call, environment: Environment) -> Value:
        """A call of a function outside of the application. It must not get a connection or SQL."""
        last = name.rpartition(".")[2]
        if last == "text" and node.args:
            return self._text(node, environment)
        arguments = self._arguments(node, environment)
        if last in _CONSTRUCTORS:
            return next((a for a in arguments if isinstance(a, Handle)), Handle())
        if any(has(a, Handle) for a in arguments):
            self.refuse(node, f"{name} gets the connection, and its source is not known", "execute SQL directly")
        if any(_is_sql(n.value) for n in _loose(node)) or any(
            isinstance(a, Constant) and _is_sql(a.value) for a in arguments
        ):
            self.refuse(node, f"{name} gets SQL, and its source is not known", "execute the SQL on the connection")
        if any(has(a, Query) for a in arguments):
            self.refuse(node, f"{name} gets a statement, and its source is not known", "execute it on the connection")
        first = arguments[0] if arguments else None
        if last in ("list", "tuple", "iter", "sorted") and isinstance(first, Result | Many):
            return first
        if last == "next" and isinstance(first, Result):
            return Row(tuple(first.columns))
        plain = name in _PLAIN_FUNCTIONS and all(is_plain(a) for a in arguments)
        return Unknown(f"the result of {name}", plain=plain)

    def _text(self, node: ast.Call, environment: Environment) -> Value:
        found = self._arguments(node, environment)
        if found and isinstance(found[0], Constant) and isinstance(found[0].value, str):
            return Text(found[0].value)
        return found[0] if found else Unknown("text()")

    def _connection(self, receiver: Value) -> None:
        if isinstance(receiver, Parameter):
            self.connections.add(receiver.name)

    def _execute(self, receiver: Value, method: str, node: ast.Call, environment: Environment) -> Value:
        self._connection(receiver)
        sql: Value = self.value(node.args[0], environment) if node.args else Unknown("missing")
        rest = [self.value(a, environment) for a in node.args[1:]]
        named = {k.arg: self.value(k.value, environment) for k in node.keywords}
        given = rest[0] if rest else named.get("parameters", named.get("params", Sequence(())))
        bound: tuple[tuple[str, Value], ...] = ()
        if isinstance(sql, Query):
            return self._execute_core(sql, receiver, method, node, given, environment)
        if isinstance(sql, Text):
            bound = sql.bound
            sql = Constant(sql.sql)
        if not (isinstance(sql, Constant) and isinstance(sql.value, str)):
            reason = sql.reason if isinstance(sql, Unknown) else "a parameter"
            self.refuse(node, f"the statement is not a constant: {reason}", _DYNAMIC)
            return Unknown("the result of unknown SQL")
        if "$" in sql.value and not isinstance(given, Sequence | Mapping | Many):
            given = Sequence(tuple(rest))  # one argument for each placeholder
        many = method == "executemany"
        if many:
            given = given.item if isinstance(given, Many) else Unknown("a list of rows")
        found = self._add(Text(sql.value, bound), given, node, many=many)
        return self._returned(found, receiver, method, environment)

    def _execute_core(
        self, query: Query, receiver: Value, method: str, node: ast.Call, given: Value, environment: Environment
    ) -> Value:
        """Execute a statement of SQLAlchemy. With a list of rows, execute it once per row."""
        many = isinstance(given, Many) or (isinstance(given, Sequence) and bool(given.items))
        rows = (
            [given.item] if isinstance(given, Many) else list(given.items) if isinstance(given, Sequence) else [given]
        )
        found = Result()
        try:
            if any(not isinstance(r, Mapping) for r in rows):
                raise core.CoreError("the parameters are not a dict with constant keys")
            for row in rows or [None]:
                items = row.items if isinstance(row, Mapping) else None
                found = self._add(core.text(query, items), Mapping(items or ()), node, many=many)
        except core.CoreError as error:
            self.refuse(node, f"the statement is not understood: {error}", "write it as SQL with text()")
            return Unknown("the result of unknown SQL")
        return self._returned(found, receiver, method, environment)

    def _add(self, text: Text, given: Value, node: ast.Call, *, many: bool) -> Result:
        """Add a statement to the transaction."""
        terms = {name: _bound(name, given, dict(text.bound)) for name in placeholders(text.sql)[1]}
        known = {name: term for name, term in terms.items() if term is not None}
        outputs = self.transaction.add(text.sql, known, self.schema, place=self.place(node), ids=self.ids)
        return Result(() if many else tuple((n, _stored(t)) for n, t in outputs))

    def _returned(self, found: Result, receiver: Value, method: str, environment: Environment) -> Value:
        if isinstance(receiver, Handle):
            environment[receiver] = found
        if method == "fetchrow":
            return Row(tuple(found.columns))
        first = next((t for _, t in found.columns), Unknown("a result", plain=True))
        return Many(first) if method == "scalars" else first if method in ("scalar", "fetchval") else found


def _stored(term: Term) -> Term:
    """Mark a result of a statement as a stored value."""
    return dataclasses.replace(term, plain=True) if isinstance(term, Unknown) else term


def _loose(node: ast.AST) -> Iterator[ast.Constant]:
    """Constants in a node that are not part of a call that executes SQL."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Constant):
            yield child
        elif not executes(child):
            yield from _loose(child)


def joined(parts: Iterable[tuple[ast.expr, Value | None]]) -> Constant | None:
    """An f-string of constant strings; None if a part is not known or has a format."""
    texts = []
    for part, found in parts:
        formatted = isinstance(part, ast.FormattedValue) and (part.conversion != -1 or part.format_spec is not None)
        if formatted or not isinstance(found, Constant) or not isinstance(found.value, str):
            return None
        texts.append(found.value)
    return Constant("".join(texts))


def constant(value: object) -> Value:
    """The value of a literal; unknown if SQL has no equal literal."""
    if value is None or isinstance(value, str):
        return Constant(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return Constant(value)
    return Unknown(f"the literal {value!r}", plain=True)


def _bound(name: str, given: Value, bound: dict[str, Value]) -> Term | None:
    """The term for a placeholder; None if there is no value for it."""
    if name in bound:
        return as_term(bound[name])
    if isinstance(given, Mapping):
        found = dict(given.items).get(name)
        return as_term(found) if found is not None else None
    if isinstance(given, Sequence):
        if any(isinstance(i, Mapping | Sequence) for i in given.items):
            return _bound(name, given.items[0], bound) if len(given.items) == 1 else Unknown("a list of rows")
        at = name.removeprefix("_")
        return as_term(given.items[int(at) - 1]) if at.isdigit() and 0 < int(at) <= len(given.items) else None
    return Unknown(given.reason if isinstance(given, Unknown) else "the parameters are unknown")


def _is_sql(value: object) -> bool:
    return isinstance(value, str) and _SQL.match(value) is not None


def executes(node: ast.AST) -> bool:
    """Whether a node is a call that executes SQL."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _EXECUTE
