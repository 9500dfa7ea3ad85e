"""The effect of statements on variables and fields (a part of `plait.check.source.dataflow`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plait.check.source.calls import Calls
from plait.check.source.dataflow import Flow, Node, Value, union
from plait.ir import nodes
from plait.ir.nodes import Expression, Statement, Target


class Body(Calls):
    """Walks the body of one function."""

    def __init__(self, flow: Flow, key: Any, entry: Node, result: Node, root: bool) -> None:
        super().__init__(flow, key)
        self.result = result
        self.left: set[Node] = {entry}
        """Tests that may skip the rest of the function."""
        if root and flow.message is not None and self.tree.parameters == 2:
            self.message = (1, flow.many)

    def here(self) -> frozenset[Node]:
        return super().here() | self.left

    def run(self) -> None:
        self.block(self.tree.body)

    def block(self, statements: Sequence[Statement]) -> bool:
        """Walk statements in order. Return whether a run may reach their end."""
        return all(self.statement(s) for s in statements)

    def statement(self, node: Statement) -> bool:
        self.line = self.line_of(node)
        return getattr(self, f"_{type(node).__name__.lower()}")(node) is not False

    # -- branches and loops ----------------------------------------------------------------------------------------

    def _if(self, node: nodes.If) -> bool:
        test = self.test(self.expr(node.test).deps, node.test)
        before, ends = set(self.bound), []
        self.context.append(test)
        for branch, more in ((node.body, self.bound_if_true.get(id(node.test), set())), (node.orelse, set())):
            self.bound = before | more
            if self.block(branch):
                ends.append(self.bound)
        self.context.pop()
        if leaves(node):
            self.left.add(test)
        self.bound = set.intersection(*ends) if ends else before
        return bool(ends)

    def _for(self, node: nodes.For) -> None:
        items = self.iterated(node.iterable)
        self._loop(node, items, self.test(items.deps, node.iterable))

    def _while(self, node: nodes.While) -> None:
        tested = self.expr(node.test)
        self.sink(tested.deps, "a loop may run forever", node)
        self._loop(node, Value(), self.test(tested.deps, node.test))

    def _loop(self, node: nodes.For | nodes.While, items: Value, test: Node) -> None:
        before = set(self.bound)
        self.context.append(test)
        begun = self.flow.loop(items, isinstance(node, nodes.For) and self.is_list(node.iterable), self.place(node))
        left = set(self.left)
        for _ in range(2):  # the second pass knows the tests that may leave the loop
            self.bound = set(before)
            if isinstance(node, nodes.For):
                if self.is_lazy(node.iterable):
                    self.iterated(node.iterable)
                self.each(node.target, items, node.iterable)
            else:
                self.expr(node.test)
            self.block(node.body)
        self.flow.end(begun)
        self.context.pop()
        if isinstance(node, nodes.While):
            self.sink(frozenset(self.left - left), "a loop may run forever", node)
        if leaves(node):
            self.left.add(test)
        self.bound = set(before)
        self.block(node.orelse)
        self.bound = set(before)

    def _try(self, node: nodes.Try) -> None:
        before = set(self.bound)
        self.strict += 1
        self.block(node.body)
        for handler in node.handlers:
            self.bound = set(before)
            self.block(handler)
        self.bound = set(before)
        self.block(node.orelse)
        self.strict -= 1
        self.bound = set(before)
        self.block(node.finalbody)

    # -- leaving ---------------------------------------------------------------------------------------------------

    def _return(self, node: nodes.Return) -> bool:
        value = self.expr(node.value) if node.value is not None else Value()
        self.flow.store(self.result, value, self.here())
        return False

    def _raise(self, node: nodes.Raise) -> bool:
        self.sink(union([self.expr(e) for e in node.values]).deps, "raises", node)
        return False

    def _assert(self, node: nodes.Assert) -> None:
        value = union([self.expr(e) for e in (node.test, node.message) if e is not None])
        self.sink(value.deps, "asserts", node)

    def _break(self, node: Statement) -> bool:
        return False

    _continue = _break

    # -- assignments -----------------------------------------------------------------------------------------------

    def _evaluate(self, node: nodes.Evaluate) -> None:
        self.expr(node.value)

    def _assign(self, node: nodes.Assign) -> None:
        value = self.expr(node.value)
        for target in node.targets:
            self.assign(target, value, node.value)

    def _augmentedassign(self, node: nodes.AugmentedAssign) -> None:
        match node.target:
            case nodes.LocalTarget(slot):
                read: Expression = nodes.Local(slot)
            case nodes.AttributeTarget(of, name):
                read = nodes.Attribute(of, name)
            case nodes.SubscriptTarget(of, index):
                read = nodes.Subscript(of, index)
            case _:
                raise self.not_understood(node, "the analysis does not support this assignment")
        value = self.expr(read) | self.expr(node.value)
        whole = nodes.BinaryOperation(node.operator, read, node.value)
        self.operated(whole, value)
        self.change(value, value.deps, node)  # += extends a list in place
        self.assign(node.target, value, whole)

    def assign(self, target: Target, value: Value, source: Expression | None) -> None:
        """Store a value. `source` is the expression of the value, if it is known."""
        match target:
            case nodes.LocalTarget(slot):
                if slot in self.process:
                    raise self.not_understood(target, "the process is reassigned")
                self.flow.store(self.variable(slot), value, self.here())
                self.bound.add(slot)
            case nodes.AttributeTarget(of, name) if self.is_self(of):
                if self.deferred:
                    raise self.not_understood(target, "a field is set in a generator")
                self.flow.graph.typed(self.flow.cls, name, self.builtin(source))
                self.flow.store(("field", self.flow.cls, name), value, self.here())
            case nodes.AttributeTarget(of, _) if self.is_clock(of):
                self.change(self.expr(of), value.deps, target)
            case nodes.AttributeTarget(of, name):
                base, owners = self.expr(of), self.owners(of, name)
                shared = self.flow.graph.shared_nodes(name, owners)
                candidates = self.flow.graph.classes.attribute(name, owners)
                if {str(found) for _, found in candidates} != {"data"}:
                    raise self.not_understood(target, f"no record has a field {name}")
                for node in shared:
                    self._share(node, base, value, source, target)
                if shared and owners is None:
                    self.sink(base.deps, "setting an attribute may raise", target)
                if len(shared) == len(candidates):
                    self.flow.refer(base.alias, self.place(target))
                else:
                    # The target may be a class or a member of an enum, which is no part of the state.
                    self.sink(base.deps | value.deps, "setting an attribute may raise", target)
                    self._put(base, value, target)
            case nodes.SubscriptTarget(of, at):
                base, index = self.expr(of), self.expr(at)
                if self.builtin(of) is not dict:
                    self.sink(base.deps | index.deps | value.deps, "setting an item may raise", target)
                elif not self.hashable(at):
                    self.sink(index.deps, "hashing may raise", target)
                self._put(base, value | index, target)
            case nodes.StarredTarget(inner):
                self.assign(inner, value, None)
            case nodes.TupleTarget(targets):
                self._unpack(target, targets, value, source)

    def _unpack(self, target: Target, targets: list[Target], value: Value, source: Expression | None) -> None:
        parts = source.items if isinstance(source, nodes.TupleDisplay | nodes.ListDisplay) else []
        starred = any(isinstance(e, nodes.StarredTarget | nodes.Starred) for e in (*targets, *parts))
        if len(parts) == len(targets) and not starred:
            for one, part in zip(targets, parts, strict=True):
                self.assign(one, self.expr(part), part)
            return
        self.sink(value.deps, "unpacking may raise", target)
        for one in targets:
            self.assign(one, value.part(), None)

    def _share(self, field: Node, base: Value, value: Value, source: Expression | None, target: Target) -> None:
        """A field of some shared object gets a value."""
        if self.deferred:
            raise self.not_understood(target, "a shared field is set in a generator")
        _, cls, name = field
        self.flow.graph.typed(cls, name, self.builtin(source))
        self.flow.store(field, value, base.deps | self.here())

    def _put(self, base: Value, value: Value, node: object) -> None:
        """A value is put into another value."""
        self.change(base, value.deps, node)
        self.join_all(base.alias | value.alias)

    def _delete(self, node: nodes.Delete) -> None:
        match node.target:
            case nodes.LocalTarget(slot):
                self.sink(frozenset({self.variable(slot)}), "deletes", node)
                self.bound.discard(slot)
            case nodes.SubscriptTarget(of, at):
                base, index = self.expr(of), self.expr(at)
                self.sink(base.deps | index.deps, "deleting an item may raise", node)
                self.change(base, index.deps, node)
            case _:
                raise self.not_understood(node, "an attribute is deleted")


def leaves(node: Statement) -> bool:
    """Whether a statement may leave its block by return, break, continue or raise."""
    if isinstance(node, nodes.Return | nodes.Break | nodes.Continue | nodes.Raise):
        return True
    blocks = [getattr(node, name, ()) for name in ("body", "orelse", "finalbody")]
    blocks += getattr(node, "handlers", [])
    return any(leaves(inner) for block in blocks for inner in block)
