"""Linearizability (Herlihy and Wing 1990) as a monitor: does a sequential history explain a concurrent one?

A process announces `Invoke(op)` when it starts an operation on a shared object, and `Return(result)` when the operation
ends. The history is *linearizable* if all completed operations, and some of the operations in flight, can be put in one
order such that (1) each operation has the result that the sequential specification gives, and (2) if an operation
returned before another was invoked, it comes first.

    class Client(Process):
        @init
        def start(self):
            self.announce(Invoke(Write(1)))
            self.send(..., Put(1))

        @on(PutOk)
        def put(self, m):
            self.announce(Return())

    System([...], monitors=[Linearizability(spec=Register(0))], properties=[linearizability()])

The memory of the monitor is part of the state, so it is as small as possible. For each process it has the operations in
order. For each operation it has the number of operations that every *other* process had completed at the invocation.
Two runs have the same history if they differ only in the order of returns, with no invocation between them. The history
does not depend on the order of the processes, so they may be symmetric.

The search is that of Wing and Gong (1993) with the memoisation of Lowe (2017). A configuration is the number of
operations of each process that are in the order so far, and the state of the specification. Each configuration is tried
once.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable
from typing import Any, Protocol, TypeVar

from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid
from plait.model.monitor import Monitor
from plait.model.properties import Property

T = TypeVar("T")

# -- sequential specifications ---------------------------------------------------------------------------------------


class Specification(Hashable, Protocol):
    """What an object does if one process uses it alone.

    Any frozen dataclass with an `initial` state and a pure function `apply(state, op) -> (state, result)` is a
    specification. States, operations and results must be hashable (numbers, strings, tuples, frozen dataclasses of
    these).

    >>> @dataclasses.dataclass(frozen=True)
    ... class Counter:
    ...     initial: int = 0
    ...     def apply(self, state, op):
    ...         return state + 1, state
    >>> Counter().apply(4, "increment")
    (5, 4)
    """

    @property
    def initial(self) -> Any:
        """The state before the first operation."""

    def apply(self, state: Any, op: Any) -> tuple[Any, Any]:
        """The state after an operation, and the result of the operation."""


@dataclasses.dataclass(frozen=True)
class Write:
    """Operation of a register: store a value. The result is None."""

    value: Any


@dataclasses.dataclass(frozen=True)
class Read:
    """Operation of a register: the result is the value that was stored last."""


@dataclasses.dataclass(frozen=True)
class Register:
    """A memory cell with the operations Write(value) and Read().

    >>> Register(0).apply(0, Write(3))
    (3, None)
    """

    initial: Any = None

    def apply(self, state: Any, op: Any) -> tuple[Any, Any]:
        match op:
            case Write(value):
                return value, None
            case Read():
                return state, state
        raise _unknown(self, op, "Write(value) and Read()")


@dataclasses.dataclass(frozen=True)
class Enqueue:
    """Operation of a queue: append a value. The result is None."""

    value: Any


@dataclasses.dataclass(frozen=True)
class Dequeue:
    """Operation of a queue: remove the oldest value. The result is this value, or None if the queue is empty."""


@dataclasses.dataclass(frozen=True)
class Queue:
    """A first-in first-out queue with the operations Enqueue(value) and Dequeue().

    >>> Queue().apply((1, 2), Dequeue())
    ((2,), 1)
    """

    initial: tuple[Any, ...] = ()

    def apply(self, state: tuple[Any, ...], op: Any) -> tuple[tuple[Any, ...], Any]:
        match op:
            case Enqueue(value):
                return (*state, value), None
            case Dequeue():
                return (state[1:], state[0]) if state else ((), None)
        raise _unknown(self, op, "Enqueue(value) and Dequeue()")


def _unknown(spec: object, op: object, known: str) -> ModelError:
    return ModelError(f"{op!r} is not an operation of a {type(spec).__name__}", hint=f"its operations are {known}")


# -- the monitor -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Invoke:
    """Event: the announcing process starts an operation."""

    op: Any


@dataclasses.dataclass(frozen=True)
class Return:
    """Event: the operation of the announcing process ends, with this result."""

    result: Any = None


@dataclasses.dataclass(frozen=True)
class Invoked:
    """An operation in flight. `seen` has the last completed operation of each other process, by its index."""

    op: Any
    seen: frozenset[tuple[Pid, int]]


@dataclasses.dataclass(frozen=True)
class Completed:
    """An operation that returned, with the operations `seen` at its invocation."""

    op: Any
    result: Any
    seen: frozenset[tuple[Pid, int]]


class Linearizability(Monitor):
    """Records the history of a shared object, and decides whether it is linearizable.

    The monitor ignores all events except Invoke and Return. For two objects, write a subclass for each; its `observe`
    passes on only the events of that object.
    """

    spec: Specification
    completed: dict[Pid, tuple[Completed, ...]] = dataclasses.field(default_factory=dict)
    in_flight: dict[Pid, Invoked] = dataclasses.field(default_factory=dict)

    def observe(self, process: Pid, event: Any) -> None:
        match event:
            case Invoke(op):
                if process in self.in_flight:
                    raise ModelError(
                        f"{process!r} announces {event!r} while its {self.in_flight[process].op!r} is in flight",
                        hint="announce Return(result) first: a process runs one operation at a time",
                    )
                seen = frozenset((other, len(done) - 1) for other, done in self.completed.items() if other != process)
                self.in_flight[process] = Invoked(op, seen)
            case Return(result):
                if process not in self.in_flight:
                    raise ModelError(
                        f"{process!r} announces {event!r}, but it has no operation in flight",
                        hint="announce Invoke(op) when the operation starts",
                    )
                invoked = self.in_flight.pop(process)
                done = Completed(invoked.op, result, invoked.seen)
                self.completed[process] = (*self.completed.get(process, ()), done)

    @property
    def linearizable(self) -> bool:
        """Whether some sequential run of the specification explains the history."""
        threads = sorted({*self.completed, *self.in_flight})
        history = tuple((p, self.completed.get(p, ()), self.in_flight.get(p)) for p in threads)
        return _explained(_hashable(self.spec, "specification"), _hashable(history, "history"))


def linearizability(monitor: type[Linearizability] = Linearizability, *, name: str = "linearizable") -> Property:
    """The property that the history is linearizable in every state.

    >>> linearizability().name
    'linearizable'
    """
    return Property(name, "always", lambda s: s[monitor].linearizable, "the history has a sequential explanation")


# -- the search ------------------------------------------------------------------------------------------------------

Thread = tuple[Pid, tuple[Completed, ...], Invoked | None]


@functools.lru_cache(maxsize=65_536)
def _explained(spec: Specification, threads: tuple[Thread, ...]) -> bool:
    """Search depth first for an order: append one operation at a time, the next one of some process."""
    position = {process: i for i, (process, _, _) in enumerate(threads)}
    goal = tuple(len(done) for _, done, _ in threads)
    start = ((0,) * len(threads), _hashable(spec.initial, "specification's state"))
    tried = {start}
    stack = [start]
    while stack:
        ordered, state = stack.pop()
        if all(n >= all_done for n, all_done in zip(ordered, goal, strict=True)):
            return True
        for i, (_, done, flying) in enumerate(threads):
            following = done[ordered[i]] if ordered[i] < goal[i] else flying if ordered[i] == goal[i] else None
            if following is None or any(ordered[position[other]] <= last for other, last in following.seen):
                continue
            after, result = spec.apply(state, following.op)
            if isinstance(following, Completed) and result != following.result:
                continue
            counts = (*ordered[:i], ordered[i] + 1, *ordered[i + 1 :])
            reached = (counts, _hashable(after, "specification's state"))
            if reached not in tried:
                tried.add(reached)
                stack.append(reached)
    return False


def _hashable(value: T, what: str) -> T:
    try:
        hash(value)
    except TypeError as error:
        raise ModelError(
            f"linearizability: the {what} {value!r} cannot be hashed: {error}",
            hint="use tuples and frozen dataclasses in operations, results and specifications, not lists or dicts",
        ) from None
    return value
