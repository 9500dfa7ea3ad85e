"""The entry: from a System to a Program, and a report on each function that a user wrote."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, NamedTuple

from plait.ir import nodes
from plait.ir.frame import unwrapped
from plait.ir.parts.quantifiers import parts_of
from plait.ir.program import Lowering
from plait.ir.reason import NotLoweredError, Reason
from plait.ir.scope import VIEW, Instance, Kind
from plait.kernel.pid import Pid
from plait.model.monitor import Monitor
from plait.model.process import Handler, Process
from plait.model.properties import Property
from plait.model.quorum import Quorum
from plait.model.shared import Shared
from plait.model.system import System


class FunctionReport(NamedTuple):
    """A handler, guard, quorum size, property or monitor: whether the virtual machine runs it."""

    label: str
    """`Server.vote`, `guard of Server.vote`, `quorum of Server.win`, `accept of Server.win`, `property agreement`,
    `History.observe`."""
    file: str
    line: int
    reason: Reason | None
    """Why CPython runs it; None if it does not."""


class Lowered(NamedTuple):
    """A program, and a report on each function."""

    program: nodes.Program
    functions: list[FunctionReport]
    classes: list[type]
    """The classes of the program, as they are numbered in it."""


class _Entry(NamedTuple):
    label: str
    function: Any
    number: int | None
    reason: Reason | None
    pure: bool
    """Whether it must not have effects: a guard, a quorum size, a property, a monitor."""
    shown: Any = None
    """The function of the user."""


class _HandlerEntries(NamedTuple):
    step: _Entry | None
    """None: it runs before the first step, once, in CPython."""
    guard: _Entry | None
    quorum: _Entry | None
    accept: _Entry | None
    several: bool


def lower(system: System, encode: Callable[[object], bytes]) -> Lowered:
    """Lower the functions of a System. `encode` makes the canonical bytes of a value."""
    collecting = gc.isenabled()
    gc.disable()  # a syntax tree has many objects, none of which is garbage
    try:
        return _Systems(system, encode).lowered()
    finally:
        if collecting:
            gc.enable()


def lower_expression(system: System, function: Any, encode: Callable[[object], bytes]) -> Lowered:
    """Lower one function of the view, as the only property of the program. It need not be true or false."""
    return _Systems(system, encode).of_state(function)


class _Systems:
    """Lowers one System."""

    def __init__(self, system: System, encode: Callable[[object], bytes]) -> None:
        self.system = system
        self.lowering = Lowering(system, encode)
        self.classes = list(dict.fromkeys(system.classes))
        self.entries: list[_Entry] = []

    def entry(
        self, label: str, function: Any, kinds: tuple[Kind | None, ...], *, pure: bool = True, shown: Any = None
    ) -> _Entry:
        """A function that the engine calls with arguments of these kinds. `shown`: what it is made from, for reports."""
        found = self._entry(label, unwrapped(function), kinds, pure)._replace(shown=unwrapped(shown or function))
        self.entries.append(found)
        return found

    def _entry(self, label: str, function: Any, kinds: tuple[Kind | None, ...], pure: bool) -> _Entry:
        try:
            return _Entry(label, function, self.lowering.entry(function, kinds), None, pure)
        except NotLoweredError as error:
            return _Entry(label, function, None, error.reason, pure)

    def lowered(self) -> Lowered:
        """The program and the reports."""
        self._meet()
        handlers = [[self._handler(cls, h) for h in cls.__plait_handlers__] for cls in self.classes]
        monitors = [self._monitor(monitor) for monitor in self.system.monitors]
        properties = [self._judged(p) for p in self.system.properties]
        self.lowering.complete()
        return self._program(
            [[self._made(h) for h in of_class] for of_class in handlers],
            [(cls, self._native(entry)) for cls, entry in monitors],
            [self._property(*judged) for judged in properties],
        )

    def of_state(self, function: Any) -> Lowered:
        """The program of one function of the view, without handlers."""
        self._meet()
        entry = self.entry("the expression", function, (VIEW,))
        self.lowering.complete()
        number = self.lowering.classes.number
        monitors: list[tuple[int, int | None]] = [(number(type(monitor)), None) for monitor in self.system.monitors]
        return self._program([[] for _ in self.classes], monitors, [self._property(entry, True, [])])

    def _meet(self) -> None:
        """Number the classes of the System, and those of the values that it begins with."""
        system, classes = self.system, self.lowering.classes
        for cls in (*self.classes, *map(type, system.monitors), *map(type, system.shared)):
            classes.number(cls)
        for thing in (*system.processes, *system.monitors, *system.shared):
            for name in thing.__plait_fields__:
                classes.meet(thing.__dict__[name])

    def _program(
        self,
        handlers: list[list[nodes.Handler]],
        monitors: list[tuple[int, int | None]],
        properties: list[nodes.Property | None],
    ) -> Lowered:
        system, lowering = self.system, self.lowering
        program = nodes.Program(
            functions=lowering.finished(),
            classes=lowering.classes.finished(),
            processes=[
                nodes.Process(lowering.classes.number(cls), pid.role, pid.index, self.classes.index(cls))
                for cls, pid in zip(system.classes, system.pids, strict=True)
            ],
            first_spare=len(system.processes),
            handlers=handlers,
            monitors=monitors,
            shared=[self._shared(shared) for shared in system.shared],
            properties=properties,
            inserts=lowering.inserts,
        )
        return Lowered(program, [self._report(entry) for entry in self.entries], lowering.classes.order)

    def _handler(self, cls: type[Process], handler: Handler) -> _HandlerEntries:
        where = f"{cls.__name__}.{handler.name}"
        kinds: tuple[Kind | None, ...] = (Instance(cls),)
        if handler.kind == "message":
            kinds += (None,)
        guard = quorum = accept = None
        if handler.where is not None:
            guard = self.entry(f"guard of {where}", handler.where, kinds)
        if not isinstance(handler.size, int | Quorum):
            quorum = self.entry(f"quorum of {where}", handler.size, kinds[:1])
        if handler.accept is not None:
            accept = self.entry(f"accept of {where}", handler.accept, kinds)
        step = None if handler.kind == "init" else self.entry(where, handler.function, kinds, pure=False)
        return _HandlerEntries(step, guard, quorum, accept, handler.quorum is not None)

    def _monitor(self, monitor: Monitor) -> tuple[int, _Entry]:
        cls = type(monitor)
        entry = self.entry(f"{cls.__name__}.observe", cls.observe, (Instance(cls), None, None))
        return self.lowering.classes.number(cls), entry

    def _shared(self, shared: Shared) -> tuple[int, str, int]:
        pid: Pid = shared.__dict__["_id"]
        return self.lowering.classes.number(type(shared)), pid.role, pid.index

    def _reason(self, entry: _Entry) -> Reason | None:
        for shared in self.system.shared:  # any function may get a reference to it
            objection = self.lowering.classes.self_objection(type(shared))
            if objection is not None:
                return Reason(objection, "", 0)
        if entry.number is None:
            return entry.reason
        reason = self.lowering.reasons.get(entry.number)
        if reason is None and entry.pure and entry.number in self.lowering.effects:
            code = entry.shown.__code__
            return Reason("an effect, which only handlers may have", code.co_filename, code.co_firstlineno)
        return reason

    def _native(self, entry: _Entry | None) -> int | None:
        return None if entry is None or self._reason(entry) is not None else entry.number

    def _made(self, entries: _HandlerEntries) -> nodes.Handler:
        return nodes.Handler(
            step=self._native(entries.step),
            guard=self._native(entries.guard),
            guarded=entries.guard is not None,
            quorum=self._native(entries.quorum),
            accept=self._native(entries.accept),
            several=entries.several,
        )

    def _judged(self, prop: Property) -> tuple[_Entry, bool, list[nodes.Part]]:
        entry = self.entry(f"property {prop.name}", prop.predicate, (VIEW,), shown=prop.function)
        if entry.number is None or entry.number in self.lowering.reasons:
            return entry, True, []
        return entry, *parts_of(self.lowering, entry.function)

    def _property(self, entry: _Entry, every: bool, parts: list[nodes.Part]) -> nodes.Property | None:
        number = self._native(entry)
        if any(part.function in self.lowering.reasons for part in parts):
            parts = []
        return None if number is None else nodes.Property(number, every, parts)

    def _report(self, entry: _Entry) -> FunctionReport:
        code = getattr(entry.shown, "__code__", None)
        file, line = ("", 0) if code is None else (code.co_filename, code.co_firstlineno)
        return FunctionReport(entry.label, file, line, self._reason(entry))
