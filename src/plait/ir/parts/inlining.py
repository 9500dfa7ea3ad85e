"""Helpers of properties, put in place: `agreed(s)` becomes the expression that the function `agreed` returns."""

from __future__ import annotations

import ast
import copy
import types
from typing import TYPE_CHECKING, Any

from plait.ir.definition import Definition, bindings
from plait.ir.frame import Frame, unwrapped
from plait.ir.scope import VIEW

if TYPE_CHECKING:
    from plait.ir.program import Lowering

_DEEPEST = 3
"""Helpers that call helpers."""


class NotQuantifiedError(Exception):
    """The property is not decided by one or two processes at a time."""


class Inlining:
    """A property with its helpers in place."""

    def __init__(self, lowering: Lowering, function: types.FunctionType, definition: Definition) -> None:
        self.lowering = lowering
        self.function = function
        self.view = function.__code__.co_varnames[0]
        self.frame = Frame(lowering, function, -1)
        self.frame.scope.kinds[self.view] = VIEW
        self.names: set[str] = set()
        """All names that the property and its helpers bind."""
        self._bind(definition)

    def is_view(self, node: ast.AST) -> bool:
        """Whether an expression is the view."""
        return isinstance(node, ast.Name) and node.id == self.view

    def _bind(self, definition: ast.AST) -> None:
        found = list(bindings(definition))  # type: ignore[arg-type]
        if found.count(self.view) > 1:
            raise NotQuantifiedError
        self.names |= {*found} - {self.view}
        for name in self.names:
            self.frame.scope.slots[name] = 0

    def inlined(self, definition: Any, depth: int = _DEEPEST) -> Any:
        """The property with its helpers in place: functions of the view whose body is one expression."""
        inlining = self

        class Inline(ast.NodeTransformer):
            def visit_Call(self, node: ast.Call) -> ast.AST:
                body = inlining._helper(node)
                if body is None:
                    return self.generic_visit(node)
                ast.fix_missing_locations(body)
                if depth == 0:
                    raise NotQuantifiedError
                return inlining.inlined(body, depth - 1)  # type: ignore[no-any-return]

        calls = any(isinstance(n, ast.Call) and self._helper(n) is not None for n in ast.walk(definition))
        return Inline().visit(copy.deepcopy(definition)) if calls else definition

    def _helper(self, node: ast.Call) -> ast.expr | None:
        """The body of a helper that is called with the view only."""
        if len(node.args) != 1 or node.keywords or not self.is_view(node.args[0]):
            return None
        if not isinstance(node.func, ast.Name | ast.Attribute):
            return None
        function = unwrapped(self.frame.static(node.func))
        if not isinstance(function, types.FunctionType) or function.__code__.co_argcount != 1:
            return None
        found = self.lowering.definition(function)
        if found is None or function.__closure__ or function.__globals__ is not self.function.__globals__:
            raise NotQuantifiedError
        body: Any = found.body
        if isinstance(found, ast.FunctionDef):
            rest = [s for s in found.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
            if len(rest) != 1 or not isinstance(rest[0], ast.Return) or rest[0].value is None:
                raise NotQuantifiedError
            body = rest[0].value
        own = function.__code__.co_varnames[0]
        bound = set(bindings(body))
        used = {n.id for n in ast.walk(body) if isinstance(n, ast.Name)} - bound
        if own in bound or self.view in bound or used & (self.names | ({self.view} - {own})):
            raise NotQuantifiedError
        body = copy.deepcopy(body)
        for part in ast.walk(body):
            if isinstance(part, ast.Name) and part.id == own:
                part.id = self.view
        self._bind(body)
        return body  # type: ignore[no-any-return]
