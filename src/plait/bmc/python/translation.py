"""One pass over the whole program: variables, the objects that exist after the import, and the threads.

`load.py` repeats passes until the types of all variables are known. The last pass gives the program.
"""

from __future__ import annotations

import ast
import collections
import enum
import queue
import threading
import types
from collections.abc import Hashable
from typing import Any, NamedTuple

import msgspec

from plait.bmc.program.builder import CodeBuilder, ProgramBuilder
from plait.bmc.program.definition import Constant, Expr, Kind, Variable
from plait.bmc.program.definition import Value as Content
from plait.bmc.program.source import Source
from plait.bmc.python.functions import Function, function_of
from plait.bmc.python.heap import Heap, Site
from plait.bmc.python.library.loaded import logging
from plait.bmc.python.values import (
    NEVER,
    NONE_VALUE,
    Type,
    Value,
    constant,
    converted,
    known,
    layout,
    number,
    truth,
    tuple_of,
)
from plait.kernel.errors import ModelError

LOCK, RLOCK = type(threading.Lock()), type(threading.RLock())
SEQUENCES: tuple[type, ...] = (list, collections.deque, queue.Queue, queue.SimpleQueue, queue.LifoQueue)
IS_SET = " is set"
"""The end of the name of the field that says whether an attribute has a value."""
CONTAINERS: tuple[type, ...] = (*SEQUENCES, dict, set)


class Options(NamedTuple):
    """The bounds of the translation."""

    unwind: int = 8
    """Calls of a function inside itself, and rounds of a loop that makes objects."""
    objects: int = 8
    """Objects that one place in a loop can make, and items of a container that grows."""
    threads: int = 4
    """Threads that one place in a loop can make."""


class ThreadPlan(msgspec.Struct, eq=False):
    """A thread that the program can make: its process, and what it runs."""

    site: Site
    copy: int
    code: CodeBuilder
    target: Value | None
    """None: the method `run` of the object."""
    arguments: list[Value] = msgspec.field(default_factory=list)
    keywords: dict[str, Value] = msgspec.field(default_factory=dict)
    task: bool = False
    frame: Any = None
    node: ast.AST = msgspec.field(default_factory=ast.Pass)
    """Where it is made."""
    coroutine: Any = None
    names: list[str] = msgspec.field(default_factory=list)
    """What a task runs, and the names of the last arguments."""
    workers: tuple[Variable, Expr | None] | None = None
    """The free workers of the executor that runs it."""


class Translation:
    """One pass."""

    def __init__(self, heap: Heap, options: Options, name: str, source: Source) -> None:
        self.heap, self.options = heap, options
        self.builder = ProgramBuilder(name, source)
        self.cells: dict[Hashable, list[Variable]] = {}
        self.names: dict[str, int] = {}
        self.plans: dict[tuple[Site, int], ThreadPlan] = {}
        self.codes: list[CodeBuilder] = []
        self.escaping: set[type] = set()
        """The exceptions that tasks and calls of executors may not catch."""
        self.received: list[tuple[tuple[type, ...], bool, ModelError]] = []
        """Where such exceptions are caught: the classes, whether as a group, and the error."""

    def refuse_received(self) -> None:
        """An exception that leaves a task ends the check. So it is an error if others catch it, and continue."""
        for caught, group, error in self.received:
            for cls in self.escaping:
                if issubclass(ExceptionGroup if group else cls, caught):
                    raise error

    # -- variables -----------------------------------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """A name that no other variable has."""
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        return f"{name}#{count + 1}" if count else name

    def variables(self, key: Hashable, t: Type, name: str, code: CodeBuilder | None, initial: Value) -> list[Variable]:
        """The variables of a key: one for each part of its type. `code`: the process of a local variable."""
        kinds = layout(t, self.heap)
        own = is_own(name)
        found = self.cells.get((key, kinds))
        if found is None:
            values = _contents(converted(initial, t, self.heap), kinds)
            found = []
            for at, kind in enumerate(kinds):
                full = name if len(kinds) == 1 else f"{name}.{at}"
                if code is not None:
                    made = code.local(full, kind, initial=values[at], temporary=own)
                else:
                    made = self.builder.shared(self.unique(full), kind, initial=values[at], temporary=own)
                found.append(made)
            self.cells[key, kinds] = found
        return found

    def fields(self, site: Site, name: str, t: Type | None = None, extent: int = 0) -> list[Variable]:
        """The arrays of a field of a pool, one for each part of its type. `extent`: cells for each object."""
        heap = self.heap
        root = heap.find(site)
        t = t or heap.type(heap.field(site, name))
        kinds = layout(t, heap)
        key = ("field", root, name, kinds, heap.size(root), extent)
        found = self.cells.get(key)
        if found is None:
            found = self.cells[key] = []
            contents: list[list[Content]] = [[] for _ in kinds]
            for member in heap.pool(root):
                for value in self._initial(member, name, extent):
                    for at, content in enumerate(_contents(converted(value, t, heap), kinds)):
                        contents[at].append(content)
            single = heap.only(root) and extent == 0
            label = f"{root.name}.{name}" if heap.only(root) else f"{root.cls.__name__}.{name}"
            own = is_own(name)
            lock = name == "owner" and root.cls.__module__ in ("_thread", "threading")
            for at, kind in enumerate(kinds):
                full = self.unique(label if len(kinds) == 1 else f"{label}.{at}")
                size = None if single else len(contents[at])
                made = self.builder.shared(full, kind, size=size, initial=contents[at], temporary=own, lock=lock)
                found.append(made)
        return found

    def _initial(self, member: Site, name: str, extent: int) -> list[Value]:
        """The initial values of a field of all objects of a site."""
        count = (extent or 1) * member.capacity
        if name.endswith(IS_SET):
            real = name.removesuffix(IS_SET)
            return [truth(hasattr(member.cls if member.origin is None else member.origin, real))] * count
        if member.origin is None:
            default = getattr(member.cls, name, NEVER) if kind_of(member.cls) is None else NEVER
            plain = isinstance(default, int | str | enum.Enum | tuple) or default is None
            return [self.imported(default) if plain else Value(NEVER)] * count
        found = [self.imported(value) for value in contents_of(member.origin, name)]
        return (found + [Value(NEVER)] * count)[:count]

    def index(self, site: Site, reference: Expr) -> Expr | None:
        """The index of an object in the arrays of its pool. None: the pool has one object, so there are no arrays."""
        if self.heap.only(site):
            return None
        return Constant(reference.value - 1) if isinstance(reference, Constant) else _minus(reference)

    # -- the state after the import ------------------------------------------------------------------------------------

    def imported(self, value: Any, name: str = "") -> Value:
        """A value of the module."""
        if value is None:
            return NONE_VALUE
        if isinstance(value, bool):
            return truth(value)
        if type(value) is int or isinstance(value, enum.IntEnum):
            return number(int(value))
        if isinstance(value, str | enum.Enum):
            return Value(constant("str", self.heap.text(value)))
        if type(value) is tuple:
            items = [self.imported(v) for v in value]
            return Value(tuple_of(tuple(v.type for v in items)), tuple(p for v in items for p in v.parts))
        if _is_object(value):
            return self.reference(self._site(value, name))
        return known(value)

    def _site(self, value: Any, name: str) -> Site:
        heap = self.heap
        key = ("imported", id(value))
        if key in heap.sites:
            return heap.sites[key]
        site = heap.site(key, type(value), name or type(value).__name__.lower(), origin=value)
        for field in fields_of(value):
            contents = [self.imported(v, f"{site.name}.{field}") for v in contents_of(value, field)]
            for content in contents:
                heap.assign(heap.field(site, field), content.type)
        if isinstance(value, queue.Queue | queue.SimpleQueue):
            site.extent = getattr(value, "maxsize", 0)
            site.grows = site.extent <= 0
        elif isinstance(value, CONTAINERS):
            site.extent = max(1, len(contents_of(value, "item" if not isinstance(value, dict) else "key")))
        return site

    def reference(self, site: Site, copy: Expr | None = None) -> Value:
        """A reference to the object of a site. `copy`: which one, from 0."""
        heap = self.heap
        t = Type("ref", site=heap.find(site))
        if heap.only(site):
            return Value(t)
        first = heap.first(site)
        if copy is None or isinstance(copy, Constant):
            return Value(t, (Constant(first + (0 if copy is None else copy.value)),))
        from plait.bmc.program.arithmetic import operation

        return Value(t, (operation("+", copy, Constant(first)),))

    # -- functions -----------------------------------------------------------------------------------------------------

    def function(self, origin: types.FunctionType) -> Function | None:
        """A function with its source."""
        key = (origin.__code__, id(origin))
        if key not in self.heap.functions:
            self.heap.functions[key] = function_of(origin)
        found: Function | None = self.heap.functions[key]
        return found

    def context(self, parent: Hashable, node: ast.AST, tag: Hashable = None) -> Hashable:
        """The number of a context: a call inside another one, or a round of a loop."""
        return self.heap.contexts.setdefault((parent, node, tag), len(self.heap.contexts) + 1)


def is_own(name: str) -> bool:
    """Whether a variable belongs to the translation, not to the program: traces do not show it."""
    return " " in name


def _minus(reference: Expr) -> Expr:
    from plait.bmc.program.arithmetic import operation

    return operation("-", reference, Constant(1))


def _contents(parts: tuple[Expr, ...], kinds: tuple[Kind, ...]) -> list[Content]:
    found: list[Content] = []
    for part, kind in zip(parts, kinds, strict=True):
        value = part.value if isinstance(part, Constant) else 0
        found.append(bool(value) if kind == "bool" else int(value))
    return found


def _is_object(value: Any) -> bool:
    if isinstance(value, type | types.FunctionType | types.ModuleType | types.BuiltinFunctionType | types.MethodType):
        return False
    if isinstance(value, float | bytes | BaseException | logging.Logger | logging.LoggerAdapter):
        return False
    if isinstance(value, CONTAINERS):
        # Others have their own ideas of items: a defaultdict, a queue with priorities, a deque that drops items.
        hidden = isinstance(value, queue.SimpleQueue) and not value.empty()
        return type(value) in CONTAINERS and getattr(value, "maxlen", None) is None and not hidden
    return isinstance(value, (LOCK, RLOCK, *CONTAINERS)) or hasattr(value, "__dict__")


_STATES: dict[type, tuple[str, ...]] = {
    LOCK: ("owner",),
    RLOCK: ("owner", "depth"),
    threading.Semaphore: ("value", "bound"),
    threading.Event: ("flag",),
    threading.Barrier: ("count", "parties"),
    threading.Condition: ("lock",),
}
"""The fields of synchronization objects."""


def kind_of(cls: type) -> type | None:
    """The class of the library that an object's class is, or derives from, if it has one."""
    return next((k for k in (*_STATES, *CONTAINERS, threading.Thread) if issubclass(cls, k)), None)


def fields_of(value: Any) -> tuple[str, ...]:
    """The fields of an object that exists after the import."""
    if isinstance(value, dict):
        return ("length", "key", "item")
    if isinstance(value, queue.Queue):
        return ("length", "item", "unfinished", "maxsize")
    if isinstance(value, CONTAINERS):
        return ("length", "item")
    for cls, fields in _STATES.items():
        if isinstance(value, cls):
            return fields
    return tuple(vars(value))


def contents_of(value: Any, name: str) -> list[Any]:
    """The contents of a field of an object that exists after the import: one for each cell."""
    if isinstance(value, dict):
        return {"length": [len(value)], "key": list(value.keys()), "item": list(value.values())}[name]
    if isinstance(value, (*SEQUENCES, set)):
        held: Any = getattr(value, "queue", [] if isinstance(value, queue.SimpleQueue) else value)
        items = list(held)
        unfinished = getattr(value, "unfinished_tasks", 0)
        maxsize = getattr(value, "maxsize", 0)
        return {"length": [len(items)], "item": items, "unfinished": [unfinished], "maxsize": [maxsize]}[name]
    if isinstance(value, LOCK):
        return [1 if value.locked() else 0]
    if isinstance(value, RLOCK):
        return [0]
    if isinstance(value, threading.Semaphore):
        state = {"value": value._value, "bound": getattr(value, "_initial_value", -1)}
        return [state[name]]
    if isinstance(value, threading.Event):
        return [value.is_set()]
    if isinstance(value, threading.Barrier):
        return [0 if name == "count" else value.parties]
    if isinstance(value, threading.Condition):
        return [value._lock]  # type: ignore[attr-defined]
    return [vars(value).get(name)]
