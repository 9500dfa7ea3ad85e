"""Statements."""

from __future__ import annotations

import ast
import types
from typing import Any

from plait.ir import nodes
from plait.ir.expressions import BINARY
from plait.ir.patterns import Patterns
from plait.ir.scope import Instance, LocalFunction

_REFUSED: dict[type[ast.stmt], str] = {
    ast.With: "with statement",
    ast.Global: "global statement",
    ast.Import: "import statement",
    ast.ImportFrom: "import statement",
    ast.ClassDef: "class statement",
    ast.AsyncFunctionDef: "async function",
    ast.AsyncFor: "async for statement",
    ast.AsyncWith: "async with statement",
}


_NAMED = (type, types.ModuleType)


def is_exception(cls: Any) -> bool:
    """Whether a class is one of exceptions, whose instances are made by Python alone."""
    if not isinstance(cls, type) or not issubclass(cls, BaseException):
        return False
    own = [base for base in cls.__mro__ if base.__module__ != "builtins"]
    return not any(name in base.__dict__ for base in own for name in ("__init__", "__new__"))


class Statements(Patterns):
    """Lowers the statements of one function."""

    def block(self, statements: list[ast.stmt]) -> list[nodes.Statement]:
        """Statements in order."""
        found: list[nodes.Statement] = []
        for i, statement in enumerate(statements):
            following = statements[i + 1] if i + 1 < len(statements) else None
            if following is not None and self._is_generator(statement, following):
                continue
            method = _METHODS.get(type(statement))
            if method is None:
                name = type(statement).__name__
                raise self.refused(statement, _REFUSED.get(type(statement), f"{name.lower()} statement"))
            made = getattr(self, method)(statement)
            self.lowering.lines[id(made)] = (statement.lineno, made)
            if type(made) is list:
                found += made
            elif made is not None:
                found.append(made)
            if self.generators and not self._is_generator_assignment(statement):
                raise self.refused(statement, "generator that is kept")
        return found

    # -- a generator in a variable ---------------------------------------------------------------------------------

    def _is_generator_assignment(self, node: ast.stmt) -> bool:
        return (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.GeneratorExp)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
        )

    def _is_generator(self, node: ast.stmt, following: ast.stmt) -> bool:
        """Whether a statement gives a name to a generator that the next one consumes: then it stands there."""
        if not self._is_generator_assignment(node):
            return False
        assert isinstance(node, ast.Assign)
        assert isinstance(node.targets[0], ast.Name)
        name = node.targets[0].id
        uses = [n for n in ast.walk(self.definition) if isinstance(n, ast.Name) and n.id == name]
        if len(uses) != 2 or not _is_evaluated_first(following, name):
            return False
        self.generators[name] = node.value
        return True

    definition: ast.AST
    """The function."""

    # -- assignments -----------------------------------------------------------------------------------------------

    def target(self, node: ast.expr) -> nodes.Target:
        """The target of an assignment."""
        if type(node) is ast.Name:
            scope = self.holder(node.id)
            if scope is None or node.id in scope.kinds:
                raise self.refused(node, f"{node.id} is assigned")
            if node.id in scope.functions:
                raise self.refused(node, f"{node.id} is assigned")
            return nodes.LocalTarget(scope.slots[node.id])
        if isinstance(node, ast.Attribute):
            kind = self.kind(node.value)
            if isinstance(kind, Instance) and node.attr not in self.lowering.classes.fields(kind.cls):
                raise self.refused(node, f"{ast.unparse(node)}, which is no field, is assigned")
            if not isinstance(kind, Instance):
                self.lowering.classes.use(node.attr)
            if self.is_clock(node):
                raise self.refused(node, f"assignment to the clock {node.attr}")
            return nodes.AttributeTarget(self.expr(node.value), node.attr)
        if isinstance(node, ast.Subscript):
            return nodes.SubscriptTarget(self.expr(node.value), self.expr(node.slice))
        if isinstance(node, ast.Starred):
            return nodes.StarredTarget(self.target(node.value))
        if isinstance(node, ast.Tuple | ast.List):
            return nodes.TupleTarget([self.target(e) for e in node.elts])
        raise self.refused(node, f"assignment to {type(node).__name__.lower()}")

    def _assign(self, node: ast.Assign) -> nodes.Statement:
        first = node.targets[0]
        if isinstance(node.value, ast.Lambda) and len(node.targets) == 1 and isinstance(first, ast.Name):
            scope = self.holder(first.id)
            if scope is not None and first.id in scope.functions:
                return self._function(scope.functions[first.id], scope.slots[first.id], node)
        value = node.value
        unpacked = len(node.targets) == 1 and isinstance(first, ast.Tuple | ast.List)
        made = self.collected(value) if unpacked else self.expr(value)
        return nodes.Assign([self.target(t) for t in node.targets], made)

    def _annassign(self, node: ast.AnnAssign) -> nodes.Statement | None:
        if node.value is None:
            return None
        return nodes.Assign([self.target(node.target)], self.expr(node.value))

    def _augassign(self, node: ast.AugAssign) -> nodes.Statement:
        operator = BINARY.get(type(node.op))
        if operator is None:
            raise self.refused(node, "operator @")
        return nodes.AugmentedAssign(self.target(node.target), operator, self.expr(node.value))

    def _delete(self, node: ast.Delete) -> list[nodes.Statement]:
        found: list[nodes.Statement] = []
        for target in node.targets:
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            for part in parts:
                if not isinstance(part, ast.Name | ast.Subscript):
                    raise self.refused(part, "del of an attribute")
                found.append(nodes.Delete(self.target(part)))
        return found

    # -- nested functions ------------------------------------------------------------------------------------------

    def _functiondef(self, node: ast.FunctionDef) -> nodes.Statement:
        scope = self.holder(node.name)
        if scope is None or node.name not in scope.functions or node.decorator_list:
            raise self.refused(node, "nested function with a decorator, or with another value")
        if any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await) for n in ast.walk(node)):
            raise self.refused(node, "generator function")
        return self._function(scope.functions[node.name], scope.slots[node.name], node)

    def _function(self, function: LocalFunction, slot: int, node: ast.AST) -> nodes.Statement:
        self.around.append(function)
        try:
            made = self.nested(function.node)
        finally:
            self.around.pop()
        reached: list[LocalFunction] = list(function.refers_to)
        for other in reached:
            reached += [more for more in other.refers_to if more not in reached]
        if function in reached:
            raise self.refused(node, "recursive nested function")
        return nodes.Assign([nodes.LocalTarget(slot)], made)

    # -- the others ------------------------------------------------------------------------------------------------

    def _expr(self, node: ast.Expr) -> nodes.Statement | None:
        if isinstance(node.value, ast.Constant):
            return None  # a docstring
        if isinstance(node.value, ast.Yield | ast.YieldFrom | ast.Await):
            raise self.refused(node, "yield" if not isinstance(node.value, ast.Await) else "await")
        operation = self.clock_operation(node.value) if isinstance(node.value, ast.Call) else None
        return operation or nodes.Evaluate(self.expr(node.value))

    def _if(self, node: ast.If) -> Any:
        known = self.truth(node.test)
        if known is not None:
            return self.block(node.body if known else node.orelse)
        return nodes.If(self.expr(node.test), self.block(node.body), self.block(node.orelse))

    def _while(self, node: ast.While) -> nodes.Statement:
        return nodes.While(self.expr(node.test), self.block(node.body), self.block(node.orelse))

    def _for(self, node: ast.For) -> nodes.Statement:
        iterable = self.consumed(node.iter)
        return nodes.For(self.target(node.target), iterable, self.block(node.body), self.block(node.orelse))

    def _break(self, node: ast.Break) -> nodes.Statement:
        return nodes.Break()

    def _continue(self, node: ast.Continue) -> nodes.Statement:
        return nodes.Continue()

    def _return(self, node: ast.Return) -> nodes.Statement:
        return nodes.Return(None if node.value is None else self.expr(node.value))

    def _raise(self, node: ast.Raise) -> nodes.Statement:
        if not self.lowering.whole:
            return nodes.Raise()
        found: list[nodes.Expression] = []
        for part in (node.exc, node.cause):
            if isinstance(part, ast.Call) and is_exception(self._callee(part)):
                found += self.items([*part.args, *(k.value for k in part.keywords)])
            elif part is not None and not (isinstance(part, ast.Name) and is_exception(self.static(part))):
                found.append(self.expr(part))
        return nodes.Raise(found)

    def _assert(self, node: ast.Assert) -> nodes.Statement | None:
        if not __debug__:
            return None
        test = self.expr(node.test)
        return nodes.Assert(test, self.expr(node.msg) if node.msg is not None and self.lowering.whole else None)

    def _try(self, node: ast.Try) -> nodes.Statement:
        if not self.lowering.whole:
            raise self.refused(node, "try statement")
        body, handlers = self.block(node.body), []
        for handler in node.handlers:
            for part in ast.walk(handler.type) if handler.type is not None else ():
                if isinstance(part, ast.Name | ast.Attribute) and not isinstance(self.static(part), _NAMED):
                    raise self.refused(part, f"except {ast.unparse(part)}")
            names = [] if handler.name is None else [self.target(ast.Name(handler.name, ast.Store()))]
            value = nodes.Constant(self.lowering.none)
            handlers.append([*(nodes.Assign([name], value) for name in names), *self.block(handler.body)])
        return nodes.Try(body, handlers, self.block(node.orelse), self.block(node.finalbody))

    def _pass(self, node: ast.stmt) -> None:
        return None

    def _match(self, node: ast.Match) -> list[nodes.Statement]:
        return self.match(node)


def _is_evaluated_first(statement: ast.stmt, name: str) -> bool:
    """Whether a statement evaluates a name once, before it does anything else that matters."""
    node: Any = (
        getattr(statement, "iter", None) if isinstance(statement, ast.For) else getattr(statement, "value", None)
    )
    while node is not None:
        if isinstance(node, ast.Name):
            return bool(node.id == name)
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name) or not node.args:
                return False
            node = node.args[0]
        elif isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
            node = node.generators[0].iter
        elif isinstance(node, ast.UnaryOp):
            node = node.operand
        elif isinstance(node, ast.Compare):
            node = node.left
        else:
            return False
    return False


_METHODS: dict[type[ast.stmt], str] = {
    ast.Assign: "_assign",
    ast.AnnAssign: "_annassign",
    ast.AugAssign: "_augassign",
    ast.Delete: "_delete",
    ast.FunctionDef: "_functiondef",
    ast.Expr: "_expr",
    ast.If: "_if",
    ast.While: "_while",
    ast.For: "_for",
    ast.Break: "_break",
    ast.Continue: "_continue",
    ast.Return: "_return",
    ast.Raise: "_raise",
    ast.Assert: "_assert",
    ast.Pass: "_pass",
    ast.Nonlocal: "_pass",
    ast.Match: "_match",
    ast.Try: "_try",
    ast.TryStar: "_try",
}
