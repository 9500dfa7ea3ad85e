"""The code of one thread while it is translated: its frames, reads and writes of variables, exceptions and clean-up.

All functions are inlined, so the handlers of an exception are known where it is raised. `exits` is the stack of what
is around a statement: loops, calls, handlers, and clean-up (`finally`, the end of `with`).
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from plait.bmc.program.arithmetic import negate, operation
from plait.bmc.program.builder import Code, CodeBuilder, Label
from plait.bmc.program.definition import (
    ASSERTIONS,
    LIMITS,
    Action,
    Branch,
    Choice,
    Constant,
    Ensure,
    Expr,
    Read,
    Set,
    Variable,
)
from plait.bmc.python.functions import Frame, Function, uses_exception
from plait.bmc.python.heap import Site
from plait.bmc.python.translation import Translation
from plait.bmc.python.values import (
    NO_VALUE,
    NONE,
    MixedTypesError,
    Type,
    Value,
    converted,
    described,
    is_none,
    layout,
    number_of,
    scalar,
)
from plait.kernel.errors import ModelError

_LIBRARIES = {"_thread", "threading", "asyncio", "concurrent"}
"""Their context managers let all exceptions pass."""


class Exit(msgspec.Struct):
    """Something around a statement that jumps leave."""

    kind: str
    """`loop`, `call`, `except`, `handler`, `cleanup` or `group` (the clean-up of a task group)"""
    label: Label | None = None
    """The end of a loop or call."""
    again: Label | None = None
    """The next round of a loop."""
    key: Hashable = None
    """The variable of the result of a call."""
    handlers: list[tuple[tuple[type, ...], Label]] = msgspec.field(default_factory=list)
    emit: Callable[[], None] | None = None
    loop: ast.AST | None = None
    caught: type | None = None
    """In a handler: the class of the exception, for `raise` alone."""
    sees: bool = False
    """The end of `with` of an object whose `__exit__` reads the exception, or may end it."""
    diverts: bool = False
    """Clean-up that can end an exception: with `return`, `break` or `continue`, or with another exception."""


class ThreadCode:
    """Emits the code of one process."""

    def __init__(self, of: Translation, code: CodeBuilder) -> None:
        self.of, self.code, self.heap = of, code, of.heap
        self.exits: list[Exit] = []
        self.frame: Frame = None  # type: ignore[assignment]
        self.node: ast.AST = ast.Pass()
        self.loops: list[Hashable] = []
        """The loops around, that are not unrolled: what they make, they may make several times."""
        self.depth: list[ast.AST] = []
        """The functions that are inlined around."""
        self.building: list[Site] = []
        """The sites of the objects whose `__init__` runs."""
        self.named: dict[ast.AST, str] = {}
        """The variables that new objects are assigned to."""
        self.task = False
        """Whether it is a task of asyncio."""
        self.awaitable = False
        """Whether others can wait for its result, and get its exceptions: a task, or a call of an executor."""
        self.queueing = False
        """Whether an operation of an asynchronous queue is translated."""
        self.thrown: dict[int, set[type]] = {}
        """The exceptions that reach each handler."""
        self.scanned = 0
        self.targets: set[int] = set()
        """The labels that jumps lead to."""

    if TYPE_CHECKING:
        # What the classes derived from this one define, and all of them use.
        def expr(self, node: ast.expr) -> Value: ...
        def number(self, value: Value, node: ast.AST) -> Expr: ...
        def same(self, left: Value, right: Value, node: ast.AST, *, identity: bool = False) -> Expr: ...
        def test_of(self, value: Value) -> Expr: ...
        def packed(self, values: list[Value]) -> Value: ...
        def merged(self, node: ast.AST, tag: str, ways: list[tuple[Label, Callable[[], Value]]]) -> Value: ...
        def tuple_items(self, value: Value) -> list[Value]: ...
        def attribute(self, value: Value, name: str, node: ast.AST) -> Value: ...
        def arguments(self, node: ast.Call) -> tuple[list[Value], dict[str, Value]]: ...
        def assign(self, target: ast.expr, value: Value) -> None: ...
        def block(self, statements: list[ast.stmt]) -> None: ...
        def builtin(self, target: Any, node: ast.Call) -> Value | None: ...
        def container_operator(self, left: Value, operator: ast.operator, right: Value, node: ast.AST) -> Value: ...
        def enter_context(self, value: Value, node: ast.With) -> Value: ...
        def leave_context(self, value: Value, node: ast.With) -> None: ...
        def call(self, callee: Value, node: ast.Call) -> Value: ...
        def call_method(
            self, receiver: Value, name: str, given: list[Value], named: dict[str, Value], node: ast.AST
        ) -> Value: ...
        def call_function(
            self,
            target: Callable[..., Any],
            found: list[Value],
            named: dict[str, Value],
            node: ast.AST,
            owner: type | None,
        ) -> Value: ...
        def coroutine(
            self,
            function: Function,
            found: list[Value],
            named: dict[str, Value],
            outer: Frame | None,
            owner: type | None,
            node: ast.AST,
        ) -> Value: ...
        def call_value(self, callee: Value, found: list[Value], named: dict[str, Value], node: ast.AST) -> Value: ...
        def dispatched(
            self,
            receiver: Value,
            name: str,
            found: list[Value],
            named: dict[str, Value],
            node: ast.AST,
            after: type | None = None,
        ) -> Value: ...

    # -- errors --------------------------------------------------------------------------------------------------------

    def refused(self, node: ast.AST, what: str, hint: str) -> ModelError:
        """The error for a construct that is not supported."""
        return self.frame.function.error(node, what, hint)

    def at(self, node: ast.AST) -> None:
        """The place of the following operations."""
        self.node = node
        place = self.frame.function.place(node)
        self.code.at(place._replace(file="") if place.file == self.of.builder.source.name else place)

    # -- variables -----------------------------------------------------------------------------------------------------

    def store(self, key: Hashable, value: Value, name: str, local: bool, initial: Value = NO_VALUE) -> None:
        """Assign a variable."""
        t = self.joined(key, value.type, name)
        variables = self.of.variables(key, t, name, self.code if local else None, initial)
        self.write([(v, None) for v in variables], converted(value, t, self.heap), value.type, t)

    def joined(self, key: Hashable, t: Type, name: str) -> Type:
        before = self.heap.type(key)
        try:
            return self.heap.assign(key, t)
        except MixedTypesError:
            raise self.refused(
                self.node,
                f"{name} is a {described(before)} elsewhere, and a {described(t)} here",
                "use two variables: a variable has values of one type, or None",
            ) from None

    def write(
        self, cells: Sequence[tuple[Variable, Expr | None]], parts: Sequence[Expr], given: Type, to: Type
    ) -> None:
        """Write the parts of a value in one operation."""
        if to.category == "int" and to.optional and given.category == "int" and not given.optional and parts:
            self.code.ensure(
                operation("!=", parts[0], Constant(NONE)),
                LIMITS,
                f"the number {NONE} stands for None in the translation",
            )
        actions = [Set(v, i, p) for (v, i), p in zip(cells, parts, strict=False)]
        if actions:
            self.emit(actions)

    def emit(self, actions: Sequence[Action], *, atomic: bool = False) -> None:
        """One operation. `atomic`: it is an operation of a built-in object, no plain access."""
        self.code._add(Code(tuple(actions), self.code.here, synchronizes=atomic))

    def fetch(self, key: Hashable, name: str, local: bool, initial: Value = NO_VALUE) -> Value:
        """Read a variable."""
        t = self.heap.type(key)
        variables = self.of.variables(key, t, name, self.code if local else None, initial)
        if local:
            return Value(t, tuple(Read(v) for v in variables))
        return self.read(t, [(v, None) for v in variables])

    def read(self, t: Type, cells: Sequence[tuple[Variable, Expr | None]], *, atomic: bool = False) -> Value:
        """Read the parts of a value in one operation."""
        temporaries = [self.code.temporary(v.kind) for v, _ in cells]
        if temporaries:
            self.emit([Set(t, None, Read(v, i)) for t, (v, i) in zip(temporaries, cells, strict=True)], atomic=atomic)
        return Value(t, tuple(Read(v) for v in temporaries))

    def keep(self, value: Value) -> Value:
        """A copy of a value, which later assignments do not change."""
        kinds = layout(value.type, self.heap)
        return Value(value.type, tuple(self.code.kept(p, k) for p, k in zip(value.parts, kinds, strict=False)))

    def set_assigned(self, frame: Frame, name: str, value: bool) -> None:
        """Note that a local variable of the running function is assigned, or not."""
        if self._is_early(frame, name):
            self.code.set(self._assigned(frame, name), Constant(value))

    def check_assigned(self, frame: Frame, name: str) -> None:
        """A local variable of the running function is read: it must be assigned."""
        if self._is_early(frame, name):
            text = f"UnboundLocalError: the local variable {name} is read before it is assigned"
            self.check(Read(self._assigned(frame, name)), UnboundLocalError, ASSERTIONS, text)

    def _is_early(self, frame: Frame, name: str) -> bool:
        # Other functions, which may run in other threads, do not see the flag.
        return name in frame.function.early and name not in frame.renamed and frame.home == self.frame.home

    def _assigned(self, frame: Frame, name: str) -> Variable:
        key = (frame.home, name, "assigned")
        return self.of.variables(key, Type("bool"), f"{name} is assigned", self.code, NO_VALUE)[0]

    # -- objects -------------------------------------------------------------------------------------------------------

    def reference(self, value: Value, what: str) -> Expr:
        """The number of an object; None is an exception."""
        if value.type.optional:
            self.check(negate(is_none(value, self.heap)), AttributeError, ASSERTIONS, f"AttributeError: {what} of None")
        return scalar(value, self.heap)

    def cell(self, site: Site, name: str, reference: Expr, t: Type) -> tuple[Variable, Expr | None]:
        """The cell of a field that has one part, of a type that is known."""
        self.heap.assign(self.heap.field(site, name), t)
        (variable,) = self.of.fields(site, name, t)
        return variable, self.of.index(site, reference)

    def field_cells(self, site: Site, name: str, reference: Expr) -> list[tuple[Variable, Expr | None]]:
        """The cells of a field."""
        index = self.of.index(site, reference)
        return [(variable, index) for variable in self.of.fields(site, name)]

    def allocate(self, node: ast.AST, cls: type, name: str, *, most: int | None = None) -> tuple[Site, Value, Expr]:
        """Make an object: its site, a reference, and which object of the site it is, from 0."""
        heap = self.heap
        heap.unrolled.update(self.loops)
        capacity = 1 if not self.loops else (most or self.of.options.objects)
        key = ("made", self.frame.context, node)
        site = heap.site(key, cls, self.named.get(node, name), capacity)
        if capacity == 1:
            return site, self.of.reference(site), Constant(0)
        counter = self.of.variables(("count", site), Type("int"), f"{name} objects", self.code, NO_VALUE)[0]
        counter_type = self.code.temporary()
        option = "objects" if most is None else "threads"
        text = f"the loop makes more than {capacity} objects of {cls.__name__} here (the limit is the option {option})"
        self.code.ensure(operation("<", Read(counter), Constant(capacity)), LIMITS, text)
        self.code.set(counter_type, Read(counter))
        self.code.set(counter, operation("+", Read(counter), Constant(1)))
        return site, self.of.reference(site, Read(counter_type)), Read(counter_type)

    def member(self, site: Site, reference: Expr) -> list[tuple[Site, Expr]]:
        """The sites of a pool, each with the condition that the object is of it. The last condition is always true."""
        found: list[tuple[Site, Expr]] = []
        pool = self.heap.pool(site)
        if isinstance(reference, Constant):
            number = reference.value
            for member in pool:
                first = self.heap.first(member)
                if first <= number < first + member.capacity:
                    return [(member, Constant(True))]
        for member in pool:
            last = self.heap.first(member) + member.capacity
            found.append((member, operation("<", reference, Constant(last))))
        found[-1] = (found[-1][0], Constant(True))
        return found

    # -- truth ---------------------------------------------------------------------------------------------------------

    def test(self, value: Value) -> Expr:
        """The truth of a value that is no container."""
        heap, t = self.heap, value.type
        match t.category:
            case "none" | "never":
                return Constant(False)
            case "bool":
                return scalar(value, heap)
            case "int":
                found = number_of(value, heap)
                true = operation("!=", found, Constant(0))
                return operation("&&", true, operation("!=", found, Constant(NONE))) if t.optional else true
            case "str":
                found = scalar(value, heap)
                true = operation("!=", found, Constant(heap.text("")))
                return operation("&&", true, operation("!=", found, Constant(0))) if t.optional else true
            case "ref":
                return negate(is_none(value, heap))
            case "tuple":
                return negate(is_none(value, heap)) if t.items else Constant(False)
            case "static":
                assert t.static is not None
                return Constant(bool(t.static.value))
            case _:
                return Constant(True)

    # -- exceptions and jumps ------------------------------------------------------------------------------------------

    def catcher(self, cls: type) -> int | None:
        """The position of the handler of an exception in `exits`, or of clean-up before it that can end it."""
        for at in range(len(self.exits) - 1, -1, -1):
            if self.exits[at].sees:
                raise self.refused(
                    self.node,
                    f"{cls.__name__} may leave a `with` whose __exit__ uses the exception: this is not supported",
                    "use try, or let __exit__ use none of its arguments and return None",
                )
            if self.exits[at].diverts or any(issubclass(cls, classes) for classes, _ in self.exits[at].handlers):
                return at
        if self.awaitable:
            self.of.escaping.add(cls)
        return None

    def sees(self, value: Value, name: str) -> bool:
        """Whether the method `__exit__` or `__aexit__` of the user's object reads an exception, or may end it."""
        site = value.type.site
        for cls in {member.cls for member in self.heap.pool(self.heap.find(site))} if site is not None else ():
            method = getattr(cls, name, None)
            if not isinstance(method, types.FunctionType) or method.__module__.split(".")[0] in _LIBRARIES:
                continue
            function = self.of.function(method)
            if function is not None and uses_exception(function):
                return True
        return False

    def receives(self, *, group: bool = False) -> None:
        """Here the exceptions of tasks are raised again. `group`: as a group of exceptions."""
        caught = [cls for e in self.exits for classes, _ in e.handlers for cls in classes]
        if any(e.diverts or e.sees for e in self.exits):
            caught.append(BaseException)
        if caught:
            error = self.refused(
                self.node,
                "an exception of a task is caught by who awaits it: this is not supported",
                "catch it inside the task",
            )
            self.of.received.append((tuple(caught), group, error))

    def check(self, condition: Expr, cls: type, check: str, text: str) -> None:
        """An exception is raised if the condition does not hold; if nobody catches it, the check fails."""
        if condition == Constant(True):
            return
        if self.catcher(cls) is None:
            self.code.ensure(condition, check, text)
            return
        fine, bad = self.code.label(), self.code.label()
        self.code.branch(condition, fine, bad)
        self.code.mark(bad)
        self.throw(cls, check, text)
        self.code.mark(fine)

    def guarded(
        self,
        condition: Expr,
        cls: type,
        check: str,
        text: str,
        actions: Sequence[Action],
        *,
        before: Sequence[Action] = (),
        atomic: bool = True,
    ) -> None:
        """One operation of a built-in object that raises an exception if the condition does not hold."""
        if condition == Constant(True):
            self.emit([*before, *actions], atomic=atomic)
        elif self.catcher(cls) is None:
            self.emit([*before, Ensure(condition, check, text), *actions], atomic=atomic)
        else:
            fine = self.code.temporary("bool")
            test = Set(fine, None, condition)
            self.emit([*before, test, Branch(Read(fine), tuple(actions), ())], atomic=atomic)
            self.check(Read(fine), cls, check, text)

    def throw(self, cls: type, check: str, text: str) -> None:
        """Raise an exception."""
        at = self.catcher(cls)
        if at is None:
            self.code.ensure(Constant(False), check, text)
            self.code.jump(self.code.exit)
            return
        if any(e.kind == "group" for e in self.exits[at:]):
            raise self.refused(
                self.node, f"{cls.__name__} can leave a task group, and is caught outside", "catch it inside the group"
            )
        if not self.exits[at].diverts:
            target = next(label for classes, label in self.exits[at].handlers if issubclass(cls, classes))
            self.thrown.setdefault(id(target), set()).add(cls)
            self.leave(at, target)
            return
        kept = self.exits
        self._clean(at)
        if self.code.reachable:
            self.exits = kept[:at]
            self.throw(cls, check, text)
        self.exits = kept

    def leave(self, at: int, target: Label) -> None:
        """Jump to a label outside of all that is in `exits` from a position on, with its clean-up."""
        self._clean(at)
        if self.code.reachable:
            self.code.jump(target)

    def _clean(self, at: int) -> None:
        """The clean-up of all that is in `exits` from a position on. If it jumps elsewhere, the rest is left out."""
        kept = self.exits
        for position in range(len(kept) - 1, at - 1, -1):
            emit = kept[position].emit
            if emit is not None and self.code.reachable:
                self.exits = kept[:position]
                emit()
        self.exits = kept

    def nearest(self, kind: str) -> int | None:
        """The position of the innermost exit of a kind, in this call."""
        for at in range(len(self.exits) - 1, -1, -1):
            if self.exits[at].kind == kind:
                return at
            if self.exits[at].kind == "call":
                return None
        return None

    def choice(self, condition: Expr, then: Expr, otherwise: Expr) -> Expr:
        """A conditional expression."""
        if isinstance(condition, Constant):
            return then if condition.value else otherwise
        return then if then == otherwise else Choice(condition, then, otherwise)
