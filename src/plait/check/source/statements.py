"""The effect of statements on variables and fields (a part of `plait.check.source.dataflow`)."""

from __future__ import annotations

import ast
import enum
import types
from collections.abc import Sequence
from typing import Any

from plait.check.source import purity
from plait.check.source.calls import Calls
from plait.check.source.dataflow import Flow, Node, Value, union
from plait.ir.definition import Definition, leaves, static_value


class Body(Calls):
    """Walks the body of one function."""

    def __init__(
        self,
        flow: Flow,
        function: types.FunctionType,
        node: Definition,
        key: Any,
        process: str | None,
        entry: Node,
        result: Node,
        root: bool,
    ) -> None:
        super().__init__(flow, function, node, key, process)
        self.result = result
        self.left: set[Node] = {entry}
        """Tests that may skip the rest of the function."""
        given = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        if root and flow.message is not None and len(given) == 2:
            self.message = (given[1], flow.many)

    def here(self) -> frozenset[Node]:
        return super().here() | self.left

    def run(self) -> None:
        if isinstance(self.node, ast.Lambda):
            self._returns(self.expr(self.node.body))
        else:
            self.block(self.node.body)

    def _returns(self, value: Value) -> None:
        self.flow.store(self.result, value, self.here())

    def block(self, statements: Sequence[ast.stmt]) -> bool:
        """Walk statements in order. Return whether a run may reach their end."""
        return all(self.statement(s) for s in statements)

    def statement(self, node: ast.stmt) -> bool:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None or not isinstance(node, ast.stmt):
            raise self.not_understood(node, f"the analysis does not support {type(node).__name__}")
        return method(node) is not False

    # -- branches and loops ----------------------------------------------------------------------------------------

    def _if(self, node: ast.If) -> bool:
        test = self.test(self.expr(node.test).deps, node.test)
        before, ends = set(self.bound), []
        self.context.append(test)
        for branch in (node.body, node.orelse):
            self.bound = set(before)
            if self.block(branch):
                ends.append(self.bound)
        self.context.pop()
        if leaves(node):
            self.left.add(test)
        self.bound = set.intersection(*ends) if ends else before
        return bool(ends)

    def _for(self, node: ast.For) -> None:
        items = self.iterated(node.iter)
        self._loop(node, items, self.test(items.deps, node.iter))

    def _while(self, node: ast.While) -> None:
        tested = self.expr(node.test)
        self.sink(tested.deps, "a loop may run forever", node)
        self._loop(node, None, self.test(tested.deps, node.test))

    def _loop(self, node: ast.For | ast.While, items: Value | None, test: Node) -> None:
        before = set(self.bound)
        self.context.append(test)
        begun = self.flow.loop(
            items or Value(), isinstance(node, ast.For) and self.is_list(node.iter), self.place(node)
        )
        left = set(self.left)
        for _ in range(2):  # the second pass knows the tests that may leave the loop
            self.bound = set(before)
            if items is not None:
                assert isinstance(node, ast.For)
                if self.is_lazy(node.iter):
                    self.iterated(node.iter)
                self.each(node.target, items, node.iter)
            elif isinstance(node, ast.While):
                self.expr(node.test)
            self.block(node.body)
        self.flow.end(begun)
        self.context.pop()
        if isinstance(node, ast.While):
            self.sink(frozenset(self.left - left), "a loop may run forever", node)
        if leaves(node):
            self.left.add(test)
        self.bound = set(before)
        self.block(node.orelse)
        self.bound = set(before)

    def _match(self, node: ast.Match) -> None:
        subject = self.expr(node.subject)
        before, depth = set(self.bound), len(self.context)
        self.context.append(self.test(subject.deps, node.subject))
        for case in node.cases:
            self.bound = set(before)
            self.context.append(self.test(self._pattern(case.pattern, subject), case.pattern))
            if case.guard is not None:
                self.context.append(self.test(self.expr(case.guard).deps, case.guard))
            self.block(case.body)
        if leaves(node):
            self.left.update(self.context[depth:])
        del self.context[depth:]
        self.bound = before

    def _pattern(self, pattern: ast.pattern, subject: Value) -> frozenset[Node]:
        """Binds the names of a pattern. Returns what the values in it depend on: `case self.k` reads a field."""
        deps: frozenset[Node] = frozenset()
        for part in ast.walk(pattern):
            compared = [part.value] if isinstance(part, ast.MatchValue) else getattr(part, "keys", [])
            deps |= union(map(self.expr, compared)).deps
            if isinstance(part, ast.MatchClass | ast.MatchMapping):
                self.sink(subject.deps | deps, "a pattern may raise", part)
            if isinstance(part, ast.MatchClass):
                self._class_pattern(part, subject)
            name = part.rest if isinstance(part, ast.MatchMapping) else getattr(part, "name", None)
            if isinstance(name, str):
                self.flow.store(self.variable(name), subject.part(), self.here())
                self.bound.add(name)
        return deps

    def _class_pattern(self, pattern: ast.MatchClass, subject: Value) -> None:
        """A pattern of a class reads attributes."""
        cls = static_value(self.function, pattern.cls, self.local)
        if type(cls) not in (type, enum.EnumType):
            raise self.not_understood(pattern, f"{ast.unparse(pattern.cls)} is no class")
        names = list(pattern.kwd_attrs)
        if pattern.patterns and cls not in purity.BUILTIN:
            names += [name for name in getattr(cls, "__match_args__", ()) if isinstance(name, str)]
        for name in names:
            self.member(subject, name, pattern)

    def _try(self, node: ast.Try) -> None:
        before = set(self.bound)
        self.strict += 1
        self.block(node.body)
        self.bound = set(before)
        for handler in node.handlers:
            if handler.type is not None:
                self.expr(handler.type)
            if handler.name is not None:
                self.bound.add(handler.name)
            self.block(handler.body)
            self.bound = set(before)
        self.block(node.orelse)
        self.strict -= 1
        self.bound = set(before)
        self.block(node.finalbody)

    _trystar = _try

    # -- leaving ---------------------------------------------------------------------------------------------------

    def _return(self, node: ast.Return) -> bool:
        self._returns(self.expr(node.value) if node.value is not None else Value())
        return False

    def _raise(self, node: ast.Raise) -> bool:
        value = union(self.expr(e) for e in (node.exc, node.cause) if e is not None)
        self.sink(value.deps, "raises", node)
        return False

    def _assert(self, node: ast.Assert) -> None:
        value = union(self.expr(e) for e in (node.test, node.msg) if e is not None)
        self.sink(value.deps, "asserts", node)

    def _leave(self, node: ast.stmt) -> bool:
        return False

    _break = _continue = _leave

    # -- assignments -----------------------------------------------------------------------------------------------

    def _pass(self, node: ast.Pass) -> None:
        pass

    def _expr(self, node: ast.Expr) -> None:
        self.expr(node.value)

    def _assign(self, node: ast.Assign) -> None:
        unpacked = all(isinstance(t, ast.Tuple | ast.List) for t in node.targets) and len(node.targets) == 1
        value = self.expr(node.value, consumed=unpacked)
        for target in node.targets:
            self.assign(target, value, node.value)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.expr(node.value), node.value)

    def _augassign(self, node: ast.AugAssign) -> None:
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        for part in ast.walk(read):
            ast.copy_location(part, node.target)
        value = self.expr(read) | self.expr(node.value)
        if not self.safe_operation(node.op, read, node.value):
            self.sink(value.deps, "an operator may raise", node)
        self.change(value, value.deps, node)  # += extends a list in place
        self.assign(node.target, value, ast.copy_location(ast.BinOp(read, node.op, node.value), node))

    def assign(self, target: ast.expr, value: Value, source: ast.expr | None) -> None:
        """Store a value. `source` is the expression of the value, if it is known."""
        if isinstance(target, ast.Name):
            if target.id == self.process:
                raise self.not_understood(target, f"{target.id} is reassigned")
            self.flow.store(self.variable(target.id), value, self.here())
            self.bound.add(target.id)
        elif isinstance(target, ast.Attribute) and self.is_self(target.value):
            if target.attr not in self.flow.cls.__plait_fields__:
                raise self.not_understood(target, f"self.{target.attr} is not a field")
            if self.deferred:
                raise self.not_understood(target, "a field is set in a generator")
            kind = self.builtin(source) if source is not None else None
            self.flow.graph.typed(self.flow.cls, target.attr, kind)
            self.flow.store(("field", self.flow.cls, target.attr), value, self.here())
        elif isinstance(target, ast.Attribute):
            base = self.expr(target.value)
            # The target may be a class or a member of an enum, which is no part of the state.
            self.sink(base.deps | value.deps, "setting an attribute may raise", target)
            if "data" not in (found := self.flow.graph.classes.attribute(target.attr)) or len(set(map(str, found))) > 1:
                raise self.not_understood(target, f"no record has a field {target.attr}")
            self._put(base, value, target)
        elif isinstance(target, ast.Subscript):
            base, index = self.expr(target.value), self.expr(target.slice)
            if self.builtin(target.value) is not dict:
                self.sink(base.deps | index.deps | value.deps, "setting an item may raise", target)
            elif not self.hashable(target.slice):
                self.sink(index.deps, "hashing may raise", target)
            self._put(base, value | index, target)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value, None)
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target, value, source)
        else:
            raise self.not_understood(target, f"the analysis does not support {type(target).__name__}")

    def _unpack(self, target: ast.Tuple | ast.List, value: Value, source: ast.expr | None) -> None:
        parts = source.elts if isinstance(source, ast.Tuple | ast.List) else []
        starred = any(isinstance(e, ast.Starred) for e in (*target.elts, *parts))
        if len(parts) == len(target.elts) and not starred:
            for one, part in zip(target.elts, parts, strict=True):
                self.assign(one, self.expr(part), part)
            return
        self.sink(value.deps, "unpacking may raise", target)
        for one in target.elts:
            self.assign(one, value.part(), None)

    def _put(self, base: Value, value: Value, node: ast.AST) -> None:
        """A value is put into another value."""
        self.change(base, value.deps, node)
        self.join_all(base.alias | value.alias)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            for part in parts:
                if isinstance(part, ast.Name):
                    self.sink(frozenset({self.variable(part.id)}), "deletes", part)
                    self.bound.discard(part.id)
                elif isinstance(part, ast.Subscript):
                    base, index = self.expr(part.value), self.expr(part.slice)
                    self.sink(base.deps | index.deps, "deleting an item may raise", part)
                    self.change(base, index.deps, part)
                else:
                    raise self.not_understood(part, "an attribute is deleted")
