"""An abstract interpretation of a Python function: its SQL statements, and the parameters that flow into them.

It visits every statement once, including all branches and loop bodies, so it finds the SQL on every path. The value of
a variable is known only if it is the same on every path. Branches are merged. Variables that a loop assigns are
unknown in its body. Calls of functions of the application are followed. An expression that is not understood has an
unknown value. The transaction is refused if a statement is not a constant, or if code outside of the application gets
the connection.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from plait.gyro.source.expressions import NAMES, Environment, Evaluation, executes
from plait.gyro.source.values import Handle, Mapping, Row, Sequence, Value, merge
from plait.gyro.sql.terms import Constant, Unknown

if TYPE_CHECKING:
    from plait.gyro.source.modules import Function

_UNROLLED = 32
"""The longest constant list whose elements a loop visits one by one."""
_TYPES = ("Connection", "Cursor", "Session", "Engine")


def connection_like(argument: ast.arg) -> bool:
    """Whether a parameter is a connection, by its annotation or name."""
    annotation = ast.unparse(argument.annotation) if argument.annotation is not None else ""
    return any(t in annotation for t in _TYPES) or (not annotation and argument.arg.lower() in NAMES)


class Walk(Evaluation):
    """Walks through one transaction: its function, and the functions that it calls."""

    # -- functions ---------------------------------------------------------------------------------------------------

    def call(self, function: Function, arguments: dict[str, Value]) -> Value:
        """Follow a call; return its result."""
        node = function.node
        if function in self.stack:
            self.refuse(node, f"{function.name} calls itself", "use a loop instead of recursion")
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
                self.bind(
                    argument.arg,
                    self.value(default, {}) if default else Unknown("the argument is missing"),
                    environment,
                )
        for rest in filter(None, (spec.vararg, spec.kwarg)):
            environment[rest.arg] = Unknown("any number of arguments")
        self.block(node.body, environment)
        self.stack.pop()
        found = environment.get("return", Constant(None))
        return found if isinstance(node.body[-1], ast.Return) else merge(found, Constant(None))

    # -- statements --------------------------------------------------------------------------------------------------

    def block(self, body: list[ast.stmt], environment: Environment) -> None:
        for statement in body:
            self.statement(statement, environment)

    def statement(self, node: ast.stmt, environment: Environment) -> None:
        """The effect of a statement on the variables."""
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
            elements = self._elements(source)
            for element in elements:
                self.forget([node], environment)
                self.assign(node.target, element, environment)
                self.branches(environment, [*node.body], [])
            if len(elements) > 1:
                self.forget([node.target], environment)
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
            if any(isinstance(n, ast.Nonlocal | ast.Global) or executes(n) for n in ast.walk(node)):
                self.refuse(node, f"the nested function {node.name} executes SQL", "move it to the top level")
            environment[node.name] = Unknown("a function")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = (alias.asname or alias.name).partition(".")[0]
                environment[name] = Unknown(f"{name} is imported inside of the function")
                if name == "*":
                    self.refuse(node, "the function has import *", "import at the top level")
        elif isinstance(node, ast.Delete | ast.Global | ast.Nonlocal):
            self.forget([node], environment)
            if isinstance(node, ast.Global):
                self.stack[-1].globals.update(node.names)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.value(child, environment)

    def _elements(self, source: Value) -> list[Value]:
        """What the variable of a loop may be. A loop over a few constants is visited once for each."""
        items = source.items if isinstance(source, Sequence) else ()
        if 0 < len(items) <= _UNROLLED and all(isinstance(i, Constant) for i in items):
            return list(items)
        return [self.element(source)]

    def _try(self, node: ast.Try | ast.TryStar, environment: Environment) -> None:
        self.block(node.body, environment)
        after = dict(environment)
        self.forget(node.body, environment)  # an exception may occur before or after each assignment
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
        """Visit each body with the current variables, then merge the results."""
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
            merged[name] = found if found is not None else Unknown("not assigned on every path")
        environment.clear()
        environment.update(merged)

    def forget(self, nodes: Iterable[ast.AST], environment: Environment) -> None:
        """All variables that these nodes assign become unknown."""
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
        """Assign a value to a target."""
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
                self.assign(inner, items[i] if fits else Unknown("an element of an unknown value"), environment)
        else:
            for child in ast.iter_child_nodes(target):
                if isinstance(child, ast.expr):
                    self.value(child, environment)

    def bind(self, name: str, value: Value, environment: Environment) -> None:
        """Assign a value to a variable. A list or dict is known only if no code can change it."""
        if isinstance(value, Sequence | Mapping) and value.mutable and not self.stack[-1].only_executed(name):
            value = Unknown(f"{name} may change")
        if name in self.stack[-1].globals:
            value = Unknown(f"{name} is global")
        environment[name] = value
