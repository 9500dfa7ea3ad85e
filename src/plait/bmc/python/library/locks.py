"""Objects of `threading` and `queue` that synchronize: each call of a method is one operation, or one before and one
after it waits."""

from __future__ import annotations

import ast
import queue
import threading
from collections.abc import Sequence
from typing import Any

from plait.bmc.program import synchronization as sync
from plait.bmc.program.arithmetic import negate, operation
from plait.bmc.program.definition import (
    ASSERTIONS,
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
from plait.bmc.python.heap import Site
from plait.bmc.python.library.containers import ZERO, Containers
from plait.bmc.python.translation import LOCK, RLOCK
from plait.bmc.python.values import BOOL, INT, NONE_VALUE, Type, Value, number, scalar, truth

Cell = tuple[Variable, Expr | None]
_QUEUES = (queue.Queue, queue.SimpleQueue)
_MADE: dict[Any, type] = {
    threading.Lock: LOCK,
    threading.RLock: RLOCK,
    threading.Condition: threading.Condition,
    threading.Semaphore: threading.Semaphore,
    threading.BoundedSemaphore: threading.BoundedSemaphore,
    threading.Event: threading.Event,
    threading.Barrier: threading.Barrier,
    queue.Queue: queue.Queue,
    queue.LifoQueue: queue.LifoQueue,
    queue.SimpleQueue: queue.SimpleQueue,
}


class Locks(Containers):
    """Translates operations of synchronization objects."""

    def make_lock(self, target: Any, given: list[Value], named: dict[str, Value], node: ast.AST) -> Value | None:
        """Make a synchronization object. None: the class is not known."""
        cls = _MADE.get(target) if target.__hash__ is not None else None
        if cls is None:
            return None
        parameters = {
            threading.Condition: ["lock"],
            threading.Semaphore: ["value"],
            threading.BoundedSemaphore: ["value"],
            threading.Barrier: ["parties", "action", "timeout"],
            queue.Queue: ["maxsize"],
            queue.LifoQueue: ["maxsize"],
        }.get(cls, [])
        values = dict(zip(parameters, given, strict=False)) | named
        return self.filled_lock(cls, values, node)

    def filled_lock(self, cls: type, values: dict[str, Value], node: ast.AST) -> Value:
        """A new synchronization object."""
        site, value, _ = self.allocate(node, cls, cls.__name__.lower())
        reference = scalar(value, self.heap)
        if issubclass(cls, threading.Semaphore):
            start = self.number(values.get("value", number(1)), node)
            self.code.set(*self._order(self.cell(site, "value", reference, INT), start))
            self.code.set(*self._order(self.cell(site, "bound", reference, INT), start))
        elif issubclass(cls, threading.Barrier):
            parties = self.number(values["parties"], node)
            self.code.set(*self._order(self.cell(site, "parties", reference, INT), parties))
        elif issubclass(cls, threading.Condition):
            lock = values.get("lock", NONE_VALUE)
            if lock.type.category == "none":
                inner = self.heap.functions.setdefault(("lock of", node), ast.copy_location(ast.Pass(), node))
                _, lock, _ = self.allocate(inner, RLOCK, "condition lock")
            self.set_field(site, reference, "lock", lock)
        elif issubclass(cls, _QUEUES):
            self.limit(site, reference, values.get("maxsize", number(0)), node)
        return value

    def _order(self, cell: Cell, value: Expr) -> tuple[Variable, Expr, Expr | None]:
        return cell[0], value, cell[1]

    def set_field(self, site: Site, reference: Expr, name: str, value: Value) -> None:
        """Write a field of an object of Python."""
        from plait.bmc.python.values import converted

        to = self.joined(self.heap.field(site, name), value.type, name)
        cells = self.field_cells(site, name, reference)
        self.write(cells, converted(value, to, self.heap), value.type, to)

    def limit(self, site: Site, reference: Expr, maxsize: Value, node: ast.AST) -> None:
        limit = self.number(maxsize, node)
        if isinstance(limit, Constant) and limit.value > 0:
            if site.extent < limit.value:
                site.extent = limit.value
                self.heap.changed = True
        else:
            self.grow(Value(Type("ref", site=self.heap.find(site))))
        self.set_field(site, reference, "maxsize", maxsize)

    def identity(self, site: Site, reference: Expr) -> Expr:
        """The number of an object that threads wait for: no other object has it."""
        return operation("+", reference, Constant(self.heap.find(site).number * 1024))

    def patience(self, values: dict[str, Value]) -> bool | None:
        """Whether a call waits: True, False (not at all), None (until a timeout)."""
        blocking = values.get("blocking", values.get("block"))
        if blocking is not None and blocking.type.constant is not None and not blocking.type.constant:
            return False
        timeout = values.get("timeout")
        if timeout is None or timeout.type.category == "none" or timeout.type.constant == -1:
            return True
        return None

    # -- locks ---------------------------------------------------------------------------------------------------------

    def lock_cells(self, value: Value, node: ast.AST) -> tuple[Cell, Cell | None]:
        """The owner of a lock, and the depth of a recursive one."""
        site = value.type.site
        assert site is not None
        kinds = {issubclass(cls, RLOCK) for cls in self.heap.classes(site)}
        if len(kinds) > 1:
            raise self.refused(node, "a variable holds a Lock and an RLock", "use one of them")
        reference = self.reference(value, "a lock")
        owner = self.cell(site, "owner", reference, INT)
        return owner, self.cell(site, "depth", reference, INT) if kinds == {True} else None

    def acquire(self, value: Value, node: ast.AST, patience: bool | None = True) -> Value:
        """Take a lock."""
        owner, depth = self.lock_cells(value, node)
        if patience:
            assert value.type.site is not None
            released = self.heap.find(value.type.site).released
            sync.acquire(self.code, owner, depth, anyone=depth is None and released)
            return truth(True)
        return Value(BOOL, (sync.try_acquire(self.code, owner, depth),))

    def release(self, value: Value, node: ast.AST) -> Value:
        """Release a lock."""
        owner, depth = self.lock_cells(value, node)
        sync.release(self.code, owner, depth, name=ast.unparse(self.receiver(node)), anyone=depth is None)
        return NONE_VALUE

    def _note_release(self, value: Value) -> None:
        """A thread that waits for this lock may wait for any thread, not only for its owner."""
        assert value.type.site is not None
        pool = self.heap.find(value.type.site)
        if not pool.released:
            pool.released = self.heap.changed = True

    def receiver(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.value
        return node.items[0].context_expr if isinstance(node, ast.With | ast.AsyncWith) else node

    def lock_method(self, value: Value, name: str, values: dict[str, Value], node: ast.AST) -> Value | None:
        """A method of a lock."""
        if name in ("acquire", "__enter__"):
            return self.acquire(value, node, self.patience(values))
        if name in ("release", "__exit__"):
            if name == "release":
                self._note_release(value)
            return self.release(value, node)
        if name == "locked":
            owner, _ = self.lock_cells(value, node)
            owned = self.read(INT, [owner], atomic=True)
            return Value(BOOL, (operation("!=", scalar(owned, self.heap), ZERO),))
        return None

    # -- condition variables -------------------------------------------------------------------------------------------

    def condition_method(self, value: Value, name: str, values: dict[str, Value], node: ast.AST) -> Value | None:
        """A method of a condition variable."""
        site = value.type.site
        assert site is not None
        reference = self.reference(value, name)
        lock = self.read(self.heap.type(self.heap.field(site, "lock")), self.field_cells(site, "lock", reference))
        if lock.type.category == "never":
            return NONE_VALUE
        if name in ("acquire", "release", "__enter__", "__exit__"):
            return self.lock_method(lock, name, values, node)
        owner, depth = self.lock_cells(lock, node)
        identity = self.identity(site, reference)
        what = ast.unparse(self.receiver(node))
        if name == "wait":
            return Value(BOOL, (self._wait(identity, owner, depth, what, self.patience(values)),))
        if name == "wait_for":
            return self._wait_for(identity, owner, depth, what, values, node)
        if name not in ("notify", "notify_all", "notifyAll"):
            return None
        mine = operation("==", Read(*owner), sync.me(self.code))
        held = mine if depth is not None else operation("!=", Read(*owner), ZERO)
        self.emit([Ensure(held, LOCKS, f"{what}.{name}() without holding its lock")], atomic=True)
        if name == "notify":
            times = self.number(values.get("n", number(1)), node)
            if not isinstance(times, Constant):
                raise self.refused(node, "notify(n) needs a known number", "use a constant, or notify_all()")
            for _ in range(times.value):
                sync.signal(self.code, identity)
        else:
            sync.broadcast(self.code, identity)
        return NONE_VALUE

    def _wait(self, identity: Expr, owner: Cell, depth: Cell | None, what: str, patience: bool | None) -> Expr:
        return sync.wait(self.code, identity, owner, depth, name=f"the lock of {what}", times_out=patience is None)

    def _wait_for(
        self, identity: Expr, owner: Cell, depth: Cell | None, what: str, values: dict[str, Value], node: ast.AST
    ) -> Value:
        again, wait, end = (self.code.label() for _ in range(3))
        patience = self.patience(values)
        self.code.mark(again)
        self.loops.append(("wait_for", self.frame.context, node))
        fine = self.test_of(self.call_value(values["predicate"], [], {}, node))
        self.loops.pop()
        result = self.code.temporary("bool")
        self.code.set(result, fine)
        self.code.branch(Read(result), end, wait)
        self.code.mark(wait)
        signalled = self._wait(identity, owner, depth, what, patience)
        if patience is None:
            self.code.branch(signalled, again, end)
        else:
            self.code.jump(again)
        self.code.mark(end)
        return Value(BOOL, (Read(result),))

    # -- semaphores, events, barriers ----------------------------------------------------------------------------------

    def semaphore_method(self, value: Value, name: str, values: dict[str, Value], node: ast.AST) -> Value | None:
        """A method of a semaphore."""
        site = value.type.site
        assert site is not None
        reference = self.reference(value, name)
        count = self.cell(site, "value", reference, INT)
        if name in ("acquire", "__enter__"):
            if self.patience(values):
                sync.down(self.code, count)
                return truth(True)
            return Value(BOOL, (sync.try_down(self.code, count),))
        if name not in ("release", "__exit__"):
            return None
        times = self.number(values.get("n", number(1)), node)
        if not isinstance(times, Constant):
            raise self.refused(node, "release(n) needs a known number", "use a constant")
        bounded = issubclass(site.cls, threading.BoundedSemaphore)
        for _ in range(times.value):
            most = Read(*self.cell(site, "bound", reference, INT)) if bounded else None
            sync.up(self.code, count, most=most)
        return NONE_VALUE

    def woken(self, identity: Expr) -> list[Action]:
        """Wake all threads that wait for an object."""
        return [
            Branch(operation("==", Read(v), identity), (Set(v, None, ZERO),), ())
            for n, v in sorted(self.code.program.waiters.items())
            if n != self.code.number
        ]

    def waits(self, identity: Expr, before: Sequence[Action], unless: Expr, after: Sequence[Action] = ()) -> None:
        """Wait for an object unless a condition holds."""
        code = self.code
        code.program.waiters[code.number] = code.waiting
        code.step([*before, Branch(unless, (), (Set(code.waiting, None, identity), *after))])
        code.step([Require(operation("==", Read(code.waiting), ZERO))], waits=True)

    def event_method(self, value: Value, name: str, values: dict[str, Value], node: ast.AST) -> Value | None:
        """A method of an event."""
        site = value.type.site
        assert site is not None
        reference = self.reference(value, name)
        flag = self.cell(site, "flag", reference, BOOL)
        identity = self.identity(site, reference)
        if name == "set":

            def actions() -> tuple[Sequence[Action], tuple[Domain, ...]]:
                return [Set(*flag, Constant(True)), *self.woken(identity)], ()

            self.code.step(actions)
            return NONE_VALUE
        if name == "clear":
            self.code.step([Set(*flag, Constant(False))])
            return NONE_VALUE
        if name == "wait" and self.patience(values):
            self.waits(identity, [], Read(*flag))
            return truth(True)
        if name in ("is_set", "isSet", "wait"):
            return self.read(BOOL, [flag], atomic=True)
        return None

    def barrier_method(self, value: Value, name: str, values: dict[str, Value], node: ast.AST) -> Value | None:
        """A method of a barrier."""
        site = value.type.site
        assert site is not None
        if name == "wait" and self.patience(values):
            reference = self.reference(value, name)
            count, parties = (self.cell(site, field, reference, INT) for field in ("count", "parties"))
            identity = self.identity(site, reference)
            code = self.code
            code.program.waiters[code.number] = code.waiting
            place = code.temporary()

            def actions() -> tuple[Sequence[Action], tuple[Domain, ...]]:
                arrived = operation("+", Read(*count), Constant(1))
                complete = operation("==", arrived, Read(*parties))
                last = (Set(*count, ZERO), *self.woken(identity))
                early = (Set(*count, arrived), Set(code.waiting, None, identity))
                return [Set(place, None, Read(*count)), Branch(complete, last, early)], ()

            code.step(actions)
            code.step([Require(operation("==", Read(code.waiting), ZERO))], waits=True)
            return Value(INT, (Read(place),))
        if name == "wait":
            raise self.refused(node, "wait(timeout) of a barrier is not supported", "call wait() without a timeout")
        return None

    # -- queues --------------------------------------------------------------------------------------------------------

    def queue_method(self, value: Value, name: str, values: dict[str, Value], node: ast.AST) -> Value | None:
        """A method of a queue."""
        site = value.type.site
        assert site is not None
        reference = self.reference(value, name)
        items = self.items(value)
        maxsize = self.heap.type(self.heap.field(site, "maxsize"))
        limit = Value(maxsize, tuple(Read(v, i) for v, i in self.field_cells(site, "maxsize", reference)))
        most = scalar(limit, self.heap)
        bounded = operation(">", most, ZERO)
        full = operation("&&", bounded, operation(">=", items.count, most))
        patience = False if name.endswith("_nowait") else self.patience(values)
        unfinished = self.cell(site, "unfinished", reference, INT)
        if name in ("put", "put_nowait"):
            item = values["item"]
            if item.type.category == "never":
                return NONE_VALUE
            room = self.room(items)
            if isinstance(most, Constant) and most.value > 0:
                room = Ensure(Constant(True))
            more = Set(*unfinished, operation("+", Read(*unfinished), Constant(1)))
            actions = [room, *self.put(items, items.count, item), items.counted(1), more]
            return self._queued(actions, negate(full), patience, queue.Full)
        if name in ("get", "get_nowait"):
            lifo = issubclass(site.cls, queue.LifoQueue)
            last = operation("-", items.count, Constant(1))
            result, copy = self.copied(self.content(items, last if lifo else ZERO))
            remove = [*self.erase(items, last), items.counted(-1)] if lifo else self.taken(items, ZERO)
            self._queued([*copy, *remove], operation(">", items.count, ZERO), patience, queue.Empty)
            return result
        if name == "task_done":
            enough = operation(">", Read(*unfinished), ZERO)
            less = Set(*unfinished, operation("-", Read(*unfinished), Constant(1)))
            self.guarded(enough, ValueError, ASSERTIONS, "ValueError: task_done() called too many times", [less])
            return NONE_VALUE
        if name == "join":
            self.block_until(operation("==", Read(*unfinished), ZERO), [])
            return NONE_VALUE
        if name in ("qsize", "empty", "full"):
            answers = {"qsize": items.count, "empty": operation("==", items.count, ZERO), "full": full}
            found = self.code.temporary("int" if name == "qsize" else "bool")
            self.emit([Set(found, None, answers[name])], atomic=True)
            return Value(INT if name == "qsize" else BOOL, (Read(found),))
        return None

    def block_until(self, condition: Expr, actions: Sequence[Action]) -> None:
        """Wait for a condition, and act at once."""
        self.code.step([Require(condition), *actions], waits=True)

    def _queued(self, actions: Sequence[Action], possible: Expr, patience: bool | None, cls: type) -> Value:
        if patience:
            self.block_until(possible, actions)
        else:
            self.guarded(possible, cls, ASSERTIONS, f"queue.{cls.__name__} is not caught", actions)
        return NONE_VALUE
