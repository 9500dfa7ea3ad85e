"""Locks, events, conditions and queues of asyncio: what suspends a task, and when it continues."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import msgspec

from plait.bmc.program import synchronization as sync
from plait.bmc.program.arithmetic import negate, operation
from plait.bmc.program.definition import (
    LOCKS,
    Action,
    Branch,
    Constant,
    Domain,
    Ensure,
    Expr,
    Read,
    Require,
    Set,
    Variable,
)
from plait.bmc.python.functions import Frame, Function
from plait.bmc.python.library.builtins import Library
from plait.bmc.python.library.containers import ZERO
from plait.bmc.python.library.loaded import asyncio
from plait.bmc.python.values import BOOL, INT, NO_VALUE, NONE_VALUE, Value, known, number, scalar, truth

_OBJECTS = ("Lock", "Event", "Semaphore", "BoundedSemaphore", "Condition", "Queue")
"""The classes of asyncio whose objects tasks share."""


def is_object(cls: type) -> bool:
    """Whether it is one of these classes."""
    return any(cls is getattr(asyncio, name) for name in _OBJECTS)


class Coroutine(msgspec.Struct, eq=False):
    """A call of an asynchronous function that has not started."""

    function: Function
    found: list[Value]
    named: dict[str, Value]
    outer: Frame | None
    owner: type | None
    node: ast.AST


class Awaitable(msgspec.Struct, eq=False):
    """Something of asyncio that can be awaited."""

    run: Callable[[], Value]


class Awaitables(Library):
    """Translates operations of the objects of asyncio."""

    def closed(self) -> Variable:
        """Whether the loop is over: then, no task continues."""
        return self.of.variables(("loop",), BOOL, "loop closed", None, truth(False))[0]

    def suspend(self, condition: Expr, actions: Sequence[Action] = ()) -> None:
        """Let other tasks run, until a condition holds."""
        if not self.code.sections:
            raise self.refused(self.node, "await outside of asyncio.run", "await in an asynchronous function")
        self.code.pause()
        if self.task:
            condition = operation("&&", negate(Read(self.closed())), condition)
        waits = condition != Constant(True)
        self.code.step([Require(condition), *actions] if waits else list(actions), waits=waits)

    def made_object(self, cls: type, values: dict[str, Value], node: ast.AST) -> Value:
        """A new object of asyncio."""
        site, value, _ = self.allocate(node, cls, cls.__name__.lower())
        reference = scalar(value, self.heap)
        if issubclass(cls, asyncio.Semaphore):
            start = self.number(values.get("value", number(1)), node)
            for field in ("value", "bound"):
                variable, index = self.cell(site, field, reference, INT)
                self.code.set(variable, start, index)
        elif issubclass(cls, asyncio.Condition):
            lock = values.get("lock", NONE_VALUE)
            if lock.type.category == "none":
                inner = self.heap.functions.setdefault(("lock of", node), ast.copy_location(ast.Pass(), node))
                _, lock, _ = self.allocate(inner, asyncio.Lock, "condition lock")
            self.set_field(site, reference, "lock", lock)
        elif issubclass(cls, asyncio.Queue):
            self.limit(site, reference, values.get("maxsize", number(0)), node)
        return value

    def library_method(
        self, receiver: Value, name: str, given: list[Value], named: dict[str, Value], node: ast.AST
    ) -> Value | None:
        """Call a method of an object of Python. None: the method is one of the user."""
        site = receiver.type.site
        assert site is not None
        kinds = {asyncio.Lock: "lock", asyncio.Event: "event", asyncio.Semaphore: "semaphore"}
        kinds |= {asyncio.Condition: "condition", asyncio.Queue: "queue"}
        kind = next((k for cls, k in kinds.items() if issubclass(site.cls, cls)), None)
        if kind is None:
            return super().library_method(receiver, name, given, named, node)
        if any(v.type.category == "never" for v in (*given, *named.values())):
            return NO_VALUE
        method: Callable[..., Value | None] = getattr(self, f"_async_{kind}")
        found = method(receiver, name, given, node)
        if found is None:
            raise self.refused(
                node, f"the method {name} of asyncio.{site.cls.__name__} is not supported", "use another"
            )
        return found

    def waiting_for(self, identity: Expr) -> Callable[[], Expr]:
        """Whether some task waits for an object."""

        def found() -> Expr:
            result: Expr = Constant(False)
            for _, variable in sorted(self.code.program.waiters.items()):
                result = operation("||", result, operation("==", Read(variable), identity))
            return result

        return found

    def _taken(self, identity: Expr, free: Expr, take: Sequence[Action]) -> Value:
        """Take a lock or a semaphore: at once if it is free and nobody waits for it."""
        code = self.code
        code.program.waiters[code.number] = code.waiting
        taken = code.temporary("bool")
        anyone = self.waiting_for(identity)

        def actions() -> tuple[Sequence[Action], tuple[Domain, ...]]:
            at_once = operation("&&", free, negate(anyone()))
            late = (Set(taken, None, Constant(False)), Set(code.waiting, None, identity))
            return [Branch(at_once, (Set(taken, None, Constant(True)), *take), late)], ()

        code.step(actions)
        fine, late = code.label(), code.label()
        code.branch(Read(taken), fine, late)
        code.mark(late)
        self.suspend(free, [Set(code.waiting, None, ZERO), *take])
        code.jump(fine)
        code.mark(fine)
        return truth(True)

    def _async_lock(self, value: Value, name: str, given: list[Value], node: ast.AST) -> Value | None:
        site = value.type.site
        assert site is not None
        reference = self.reference(value, name)
        owner = self.cell(site, "owner", reference, INT)
        free = operation("==", Read(*owner), ZERO)
        if name == "acquire":
            take = [Set(*owner, sync.me(self.code))]
            return known(Awaitable(lambda: self._taken(self.identity(site, reference), free, take)))
        if name == "release":
            sync.release(self.code, owner, name=ast.unparse(self.receiver(node)), anyone=True)
            return NONE_VALUE
        if name == "locked":
            owned = self.read(INT, [owner], atomic=True)
            return Value(BOOL, (operation("!=", scalar(owned, self.heap), ZERO),))
        return None

    def _async_semaphore(self, value: Value, name: str, given: list[Value], node: ast.AST) -> Value | None:
        site = value.type.site
        assert site is not None
        reference = self.reference(value, name)
        count = self.cell(site, "value", reference, INT)
        if name == "acquire":
            take = [Set(*count, operation("-", Read(*count), Constant(1)))]
            free = operation(">", Read(*count), ZERO)
            return known(Awaitable(lambda: self._taken(self.identity(site, reference), free, take)))
        if name == "release":
            bounded = issubclass(site.cls, asyncio.BoundedSemaphore)
            most = Read(*self.cell(site, "bound", reference, INT)) if bounded else None
            sync.up(self.code, count, most=most)
            return NONE_VALUE
        return None

    def _async_event(self, value: Value, name: str, given: list[Value], node: ast.AST) -> Value | None:
        site = value.type.site
        assert site is not None
        if name != "wait":
            return self.event_method(value, name, {}, node)
        reference = self.reference(value, name)
        flag = self.cell(site, "flag", reference, BOOL)

        def run() -> Value:
            code, fine, late = self.code, self.code.label(), self.code.label()
            code.program.waiters[code.number] = code.waiting
            known_flag = scalar(self.read(BOOL, [flag], atomic=True), self.heap)
            code.branch(known_flag, fine, late)
            code.mark(late)
            code.step([Set(code.waiting, None, self.identity(site, reference))])
            self.suspend(operation("==", Read(code.waiting), ZERO))
            code.jump(fine)
            code.mark(fine)
            return truth(True)

        return known(Awaitable(run))

    def _async_condition(self, value: Value, name: str, given: list[Value], node: ast.AST) -> Value | None:
        site = value.type.site
        assert site is not None
        reference = self.reference(value, name)
        lock = self.read(self.heap.type(self.heap.field(site, "lock")), self.field_cells(site, "lock", reference))
        if lock.type.category == "never" or lock.type.site is None:
            return NONE_VALUE
        if name in ("acquire", "release", "locked"):
            return self._async_lock(lock, name, given, node)
        owner = self.cell(lock.type.site, "owner", self.reference(lock, name), INT)
        identity, code = self.identity(site, reference), self.code
        held = Ensure(operation("!=", Read(*owner), ZERO), LOCKS, f"{name}() without holding the lock")

        def wait() -> Value:
            code.program.waiters[code.number] = code.waiting
            code.step([held, Set(*owner, ZERO), Set(code.waiting, None, identity)])
            woken = operation("==", Read(code.waiting), ZERO)
            free = operation("==", Read(*owner), ZERO)
            self.suspend(operation("&&", woken, free), [Set(*owner, sync.me(code))])
            return truth(True)

        def wait_for() -> Value:
            again, late, fine = code.label(), code.label(), code.label()
            code.mark(again)
            self.loops.append(("wait_for", self.frame.context, node))
            test = self.test_of(self.call_value(given[0], [], {}, node))
            self.loops.pop()
            code.branch(test, fine, late)
            code.mark(late)
            wait()
            code.jump(again)
            code.mark(fine)
            return truth(True)

        if name in ("wait", "wait_for"):
            return known(Awaitable(wait if name == "wait" else wait_for))
        if name not in ("notify", "notify_all"):
            return None
        self.emit([held], atomic=True)
        (sync.signal if name == "notify" else sync.broadcast)(code, identity)
        return NONE_VALUE

    def _async_queue(self, value: Value, name: str, given: list[Value], node: ast.AST) -> Value | None:
        values = {"item": given[0]} if given else {}
        if name not in ("put", "get", "join"):
            return self.queue_method(value, name, values, node)
        value = self.keep(value)

        def run() -> Value:
            before, self.queueing = self.queueing, True
            found = self.queue_method(value, name, values, node)
            self.queueing = before
            assert found is not None
            return found

        return known(Awaitable(run))

    def block_until(self, condition: Expr, actions: Sequence[Action]) -> None:
        """Wait for a queue: an asynchronous one suspends the task only if it has to wait."""
        if not self.queueing:
            super().block_until(condition, actions)
            return
        done = self.code.temporary("bool")
        yes = (*actions, Set(done, None, Constant(True)))
        self.code.step([Branch(condition, yes, (Set(done, None, Constant(False)),))])
        fine, late = self.code.label(), self.code.label()
        self.code.branch(Read(done), fine, late)
        self.code.mark(late)
        self.suspend(condition, actions)
        self.code.jump(fine)
        self.code.mark(fine)
