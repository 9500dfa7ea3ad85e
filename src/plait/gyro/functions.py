"""The statements of a Python function, and which of its parameters flow into them: an abstract walk over its syntax.

The walk goes through every statement once, branches and loops included: all SQL of the function counts, on whatever path.
What a variable holds is known only if it holds that on every path: branches are merged, a loop forgets what it assigns
before its body is looked at, calls of the application's own functions are followed. What is not understood gives an
unknown value. SQL that is not a constant, or a connection that is handed to code outside, refuses the transaction.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from plait.gyro.schema import Schema
from plait.gyro.statements import Ids, placeholders
from plait.gyro.terms import Constant, Parameter, Term, Unknown
from plait.gyro.transactions import Transaction
from plait.gyro.values import Handle, Many, Mapping, Result, Row, Sequence, Text, Value, as_term, has_handle, merge

if TYPE_CHECKING:
    from plait.gyro.modules import Function, Program

_EXECUTE = {"execute", "executemany", "executescript", "exec_driver_sql"}
_FETCH = {"fetch", "fetchrow", "fetchval", "scalar", "scalars"}
"""Methods that execute if they are given SQL."""
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
_HARMLESS = {"commit", "rollback", "close", "create_function", "set_isolation_level", "__exit__", "in_transaction"}
_CONSTRUCTORS = {"connect", "create_engine", "closing", "Session", "sessionmaker", "aconnect"}
_NAMES = {"db", "conn", "con", "connection", "cursor", "cur", "session", "tx", "engine", "pool", "database"}
_TYPES = ("Connection", "Cursor", "Session", "Engine")
_DYNAMIC = "write the statement as a constant, with placeholders for values"

Environment = dict[object, Value]


def connection_like(argument: ast.arg) -> bool:
    """Whether a parameter is the connection, by its annotation or name."""
    said = ast.unparse(argument.annotation) if argument.annotation is not None else ""
    return any(t in said for t in _TYPES) or (not said and argument.arg.lower() in _NAMES)


class Walk:
    """One transaction: its function, and the functions that it calls."""

    def __init__(self, program: Program, transaction: Transaction, schema: Schema, ids: Ids) -> None:
        self.program = program
        self.transaction = transaction
        self.schema = schema
        self.ids = ids
        self.stack: list[Function] = []
        self.connections: set[str] = set()
        """Parameters that turned out to be connections."""

    # -- functions ---------------------------------------------------------------------------------------------------

    def call(self, function: Function, arguments: dict[str, Value]) -> Value:
        """Follow a call; what it returns."""
        node = function.node
        if function in self.stack:
            self.refuse(node, f"{function.name} calls itself", "write it as a loop")
            return Unknown("a recursive call")
        self.stack.append(function)
        environment: Environment = {}
        spec = node.args
        positional = [*spec.posonlyargs, *spec.args]
        defaults = dict(
            zip([a.arg for a in positional][len(positional) - len(spec.defaults) :], spec.defaults, strict=True)
        )
        defaults |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
        for argument in (*positional, *spec.kwonlyargs):
            if argument.arg in arguments:
                self.bind(argument.arg, arguments[argument.arg], environment)
            else:
                default = defaults.get(argument.arg)
                self.bind(argument.arg, self.value(default, {}) if default else Unknown("not given"), environment)
        for rest in filter(None, (spec.vararg, spec.kwarg)):
            environment[rest.arg] = Unknown("any number of arguments")
        self.block(node.body, environment)
        self.stack.pop()
        found = environment.get("return", Constant(None))
        return found if isinstance(node.body[-1], ast.Return) else merge(found, Constant(None))

    def refuse(self, node: ast.AST, reason: str, remedy: str) -> None:
        self.transaction.refuse(self.place(node), reason, remedy)

    def place(self, node: ast.AST) -> str:
        return f"{self.stack[-1].module.shown}:{getattr(node, 'lineno', 0)}"

    # -- statements --------------------------------------------------------------------------------------------------

    def block(self, body: list[ast.stmt], environment: Environment) -> None:
        for statement in body:
            self.statement(statement, environment)

    def statement(self, node: ast.stmt, environment: Environment) -> None:
        """The effect of a statement on what is known."""
        if isinstance(node, ast.Assign):
            found = self.value(node.value, environment)
            for target in node.targets:
                self.assign(target, found, environment)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.assign(node.target, self.value(node.value, environment), environment)
        elif isinstance(node, ast.AugAssign):
            self.assign(node.target, self.sum(node.target, node.op, node.value, environment), environment)
        elif isinstance(node, ast.Return):
            found = self.value(node.value, environment) if node.value is not None else Constant(None)
            environment["return"] = merge(environment["return"], found) if "return" in environment else found
        elif isinstance(node, ast.If):
            self.value(node.test, environment)
            self.branches(environment, node.body, node.orelse)
        elif isinstance(node, ast.For | ast.AsyncFor):
            source = self.value(node.iter, environment)
            self.forget([node], environment)
            self.assign(node.target, self.element(source), environment)
            self.branches(environment, [*node.body], [])
            self.block(node.orelse, environment)
        elif isinstance(node, ast.While):
            self.forget([node], environment)
            self.value(node.test, environment)
            self.branches(environment, node.body, [])
            self.block(node.orelse, environment)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                found = self.value(item.context_expr, environment)
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, found, environment)
            self.block(node.body, environment)
        elif isinstance(node, ast.Try | ast.TryStar):
            self._try(node, environment)
        elif isinstance(node, ast.Match):
            self.value(node.subject, environment)
            self.forget(node.cases, environment)
            self.branches(environment, *(case.body for case in node.cases), [])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if any(isinstance(n, ast.Nonlocal | ast.Global) or _executes(n) for n in ast.walk(node)):
                self.refuse(
                    node, f"the function {node.name} inside of another executes SQL", "move it to the top level"
                )
            environment[node.name] = Unknown("a function")
        elif isinstance(node, ast.Delete | ast.Global | ast.Nonlocal):
            self.forget([node], environment)
            if isinstance(node, ast.Global):
                self.stack[-1].globals.update(node.names)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.value(child, environment)

    def _try(self, node: ast.Try | ast.TryStar, environment: Environment) -> None:
        self.block(node.body, environment)
        after = dict(environment)
        self.forget(node.body, environment)  # an exception may come before, between or after the assignments
        failed = dict(environment)
        self.block(node.orelse, after)
        ends = [after]
        for handler in node.handlers:
            end = dict(failed)
            if handler.name:
                end[handler.name] = Unknown("an exception")
            self.block(handler.body, end)
            ends.append(end)
        self._merge(environment, [*ends, failed] if node.finalbody else ends)
        self.block(node.finalbody, environment)

    def branches(self, environment: Environment, *bodies: list[ast.stmt]) -> None:
        """Each of the bodies, from what is known now; then what all agree on."""
        ends = []
        for body in bodies:
            end = dict(environment)
            self.block(body, end)
            ends.append(end)
        self._merge(environment, ends)

    def _merge(self, environment: Environment, ends: list[Environment]) -> None:
        names = {name for end in ends for name in end}
        merged: Environment = {}
        for name in names:
            values = [end.get(name) for end in ends]
            if name == "return":
                values = [v for v in values if v is not None]
            found = values[0]
            for other in values[1:]:
                found = merge(found, other)
            merged[name] = found if found is not None else Unknown("not on every path")
        environment.clear()
        environment.update(merged)

    def forget(self, nodes: Iterable[ast.AST], environment: Environment) -> None:
        """Whatever is assigned somewhere inside may be anything."""
        for node in (n for top in nodes for n in ast.walk(top)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
                self._lose(node.id, environment)
            elif isinstance(node, ast.Global | ast.Nonlocal):
                for name in node.names:
                    self._lose(name, environment)
            elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
                self._lose(node.name, environment)
            elif isinstance(node, ast.MatchMapping) and node.rest:
                self._lose(node.rest, environment)
        for key in [k for k in environment if isinstance(k, Handle)]:
            del environment[key]

    def _lose(self, name: str, environment: Environment) -> None:
        if not isinstance(environment.get(name), Handle):
            environment[name] = Unknown(f"{name} is assigned in a loop or a branch")

    def assign(self, target: ast.expr, value: Value, environment: Environment) -> None:
        """Bind a target."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value, environment)
        elif isinstance(target, ast.Tuple | ast.List):
            items: list[Value] = []
            if isinstance(value, Sequence):
                items = list(value.items)
            elif isinstance(value, Row):
                items = [t for _, t in value.columns]
            fits = len(items) == len(target.elts) and not any(isinstance(e, ast.Starred) for e in target.elts)
            for i, element in enumerate(target.elts):
                inner = element.value if isinstance(element, ast.Starred) else element
                self.assign(inner, items[i] if fits else Unknown("a part of something"), environment)
        else:
            for child in ast.iter_child_nodes(target):
                if isinstance(child, ast.expr):
                    self.value(child, environment)

    def bind(self, name: str, value: Value, environment: Environment) -> None:
        """Give a variable a value; a list or dict only if nobody can change it."""
        if isinstance(value, Sequence | Mapping) and value.mutable and not self.stack[-1].only_executed(name):
            value = Unknown(f"{name} may be changed")
        if name in self.stack[-1].globals:
            value = Unknown(f"{name} is global")
        environment[name] = value

    # -- expressions -------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr, environment: Environment) -> Value:
        """What an expression gives; the SQL inside of it is added to the transaction."""
        if isinstance(node, ast.Constant):
            return constant(node.value)
        if isinstance(node, ast.Name):
            if node.id in environment:
                return environment[node.id]
            if node.id.lower().lstrip("_") in _NAMES:
                return Handle()
            return self.stack[-1].module.constants.get(node.id, Unknown(f"the name {node.id}"))
        if isinstance(node, ast.Tuple | ast.List):
            items = tuple(self.value(e, environment) for e in node.elts)
            if any(isinstance(e, ast.Starred) for e in node.elts):
                return Unknown("a list of unknown length")
            return Sequence(items, isinstance(node, ast.List))
        if isinstance(node, ast.Dict):
            values = [self.value(v, environment) for v in node.values]
            keys = [k.value if isinstance(k, ast.Constant) else None for k in node.keys]
            if all(isinstance(k, str) for k in keys):
                return Mapping(tuple((str(k), v) for k, v in zip(keys, values, strict=True)))
            return Unknown("a dict with computed keys")
        if isinstance(node, ast.JoinedStr):
            return self._joined(node, environment)
        if isinstance(node, ast.BinOp):
            return self.sum(node.left, node.op, node.right, environment)
        if isinstance(node, ast.IfExp):
            self.value(node.test, environment)
            return merge(self.value(node.body, environment), self.value(node.orelse, environment))
        if isinstance(node, ast.NamedExpr):
            found = self.value(node.value, environment)
            self.forget([node], environment)  # it may stand where it is not always evaluated
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
            if any(_executes(n) for n in ast.walk(node)):
                self.refuse(node, "a lambda executes SQL", "write a function at the top level")
            return Unknown("a function")
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, environment)
        return Unknown(f"computed in line {node.lineno}")

    def sum(self, left: ast.expr, operator: ast.operator, right: ast.expr, environment: Environment) -> Value:
        """Constant strings can be concatenated; nothing else is computed."""
        one, other = self.value(left, environment), self.value(right, environment)
        texts = [v.value for v in (one, other) if isinstance(v, Constant) and isinstance(v.value, str)]
        if isinstance(operator, ast.Add) and len(texts) == 2:
            return Constant("".join(texts))
        return Unknown("put together at run time" if texts else f"computed in line {left.lineno}")

    def _joined(self, node: ast.JoinedStr, environment: Environment) -> Value:
        parts = []
        for part in node.values:
            plain = isinstance(part, ast.Constant) or (part.conversion == -1 and part.format_spec is None)  # type: ignore[attr-defined]
            found = self.value(part if isinstance(part, ast.Constant) else part.value, environment)  # type: ignore[attr-defined]
            parts.append(
                found.value if plain and isinstance(found, Constant) and isinstance(found.value, str) else None
            )
        return Constant("".join(p for p in parts if p)) if None not in parts else Unknown("an f-string")

    def _attribute(self, node: ast.Attribute, environment: Environment) -> Value:
        base = self.value(node.value, environment)
        if node.attr in _EXECUTE:
            self.refuse(node, f"{ast.unparse(node)} is not called at once", "call it where it stands")
        if node.attr == "lastrowid":
            found = environment.get(base) if isinstance(base, Handle) else base
            return found.lastrowid if isinstance(found, Result) else Unknown("the id of a row that was inserted")
        if isinstance(base, Row):
            return base.at(node.attr)
        if isinstance(base, Handle):
            return base if node.attr in ("connection", "bind") else Unknown(f"the connection's {node.attr}")
        return Handle() if node.attr.lower().lstrip("_") in _NAMES else Unknown(f"the attribute {node.attr}")

    def _subscript(self, node: ast.Subscript, environment: Environment) -> Value:
        base = self.value(node.value, environment)
        key = self.value(node.slice, environment) if not isinstance(node.slice, ast.Slice) else None
        at = key.value if isinstance(key, Constant) else None
        if isinstance(base, Row) and at is not None:
            return base.at(at)
        if isinstance(base, Sequence) and isinstance(at, int) and 0 <= at < len(base.items):
            return base.items[at]
        if isinstance(base, Result | Many):
            return self.element(base)
        return Unknown(f"a part of something, in line {node.lineno}")

    def element(self, source: Value) -> Value:
        """What a loop over it gives."""
        if isinstance(source, Result):
            return Row(tuple(source.columns))
        return source.item if isinstance(source, Many) else Unknown("an element of something")

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
        if isinstance(function, ast.Attribute):
            return self._method(function, node, environment)
        name = function.id if isinstance(function, ast.Name) else ""
        return self._foreign(name or ast.unparse(function), node, environment)

    def _arguments(self, node: ast.Call, environment: Environment) -> list[Value]:
        return [self.value(a, environment) for a in node.args] + [
            self.value(k.value, environment) for k in node.keywords
        ]

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
            given = {a.arg: Unknown("spread arguments") for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
        found = self.call(function, given)
        for key in [k for k in environment if isinstance(k, Handle)]:
            del environment[key]  # the callee may have used the cursor
        return found

    def _method(self, function: ast.Attribute, node: ast.Call, environment: Environment) -> Value:
        name = function.attr
        receiver = self.value(function.value, environment)
        if name in _EXECUTE or (name in _FETCH and node.args and isinstance(receiver, Handle | Parameter | Unknown)):
            return self._execute(receiver, name, node, environment)
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
                return (Many(columns[0][1]) if name == "scalars" else columns[0][1]) if columns else Unknown("a result")
        if isinstance(receiver, Handle):
            self._arguments(node, environment)
            if name not in _HARMLESS | _ONE | _ALL | _SCALAR:
                self.refuse(node, f"the connection's method {name} is not known", "execute SQL instead")
            return Unknown("what the connection returned")
        return self._foreign(ast.unparse(function), node, environment)

    def _foreign(self, name: str, node: ast.Call, environment: Environment) -> Value:
        """A function that is not the application's: it may do nothing with a connection."""
        last = name.rpartition(".")[2]
        if last == "text" and node.args:
            return self._text(node, environment)
        arguments = self._arguments(node, environment)
        if last in _CONSTRUCTORS:
            return next((a for a in arguments if isinstance(a, Handle)), Handle())
        if any(has_handle(a) for a in arguments):
            self.refuse(node, f"the connection is given to {name}, which is not known", "execute SQL instead")
        if any(isinstance(n, ast.Constant) and _is_sql(n.value) for n in ast.walk(node)) or any(
            isinstance(a, Constant) and _is_sql(a.value) for a in arguments
        ):
            self.refuse(node, f"SQL is given to {name}, which is not known", "execute it on the connection")
        first = arguments[0] if arguments else None
        if last in ("list", "tuple", "iter", "sorted") and isinstance(first, Result | Many):
            return first
        if last == "next" and isinstance(first, Result):
            return Row(tuple(first.columns))
        return Unknown(f"what {name} returns")

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
        if isinstance(sql, Text):
            bound = sql.bound
            sql = Constant(sql.sql)
        if not (isinstance(sql, Constant) and isinstance(sql.value, str)):
            reason = sql.reason if isinstance(sql, Unknown) else "a parameter"
            self.refuse(node, f"its SQL is not a constant: {reason}", _DYNAMIC)
            return Unknown("what unknown SQL returned")
        if "$" in sql.value and not isinstance(given, Sequence | Mapping | Many):
            given = Sequence(tuple(rest))  # one argument for each placeholder
        if method == "executemany":
            given = given.item if isinstance(given, Many) else Unknown("a list of rows")
        terms = {name: _bound(name, given, dict(bound)) for name in placeholders(sql.value)[1]}
        known = {name: term for name, term in terms.items() if term is not None}
        outputs = self.transaction.add(sql.value, known, self.schema, place=self.place(node), ids=self.ids)
        if method == "executemany":
            outputs = []
        found = Result(tuple(outputs))
        if isinstance(receiver, Handle):
            environment[receiver] = found
        if method == "fetchrow":
            return Row(tuple(found.columns))
        single = method in ("scalar", "scalars", "fetchval")
        return next((t for _, t in found.columns), Unknown("a result")) if single else found


def constant(value: object) -> Value:
    """A literal, if it is one that the same SQL literal could be."""
    if value is None or isinstance(value, str):
        return Constant(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return Constant(value)
    return Unknown(f"the literal {value!r}")


def _bound(name: str, given: Value, bound: dict[str, Value]) -> Term | None:
    """What a placeholder stands for; None if nothing is given for it."""
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
    return Unknown(given.reason if isinstance(given, Unknown) else "the parameters are not known")


def _is_sql(value: object) -> bool:
    return isinstance(value, str) and _SQL.match(value) is not None


def _executes(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _EXECUTE
