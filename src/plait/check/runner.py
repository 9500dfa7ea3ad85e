"""A System with its engine, for a search, a trace or a replay."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from plait._native import Engine, Failure, Transition
from plait.check.cover.recorder import Recorder
from plait.check.options import Native
from plait.check.reduce.decomposition import Decomposition
from plait.check.reduce.relevance import Relevance
from plait.check.tabulate.native import native_system
from plait.check.tabulate.native_shape import NativeSystem
from plait.check.tabulate.tabulation import Tabulation
from plait.ir.lower import FunctionReport
from plait.kernel.errors import Argument, UsageError
from plait.kernel.values import Data, to_data
from plait.model.properties import ASSERTIONS, NO_EXCEPTIONS
from plait.model.system import System, plays


class Runner:
    """Connects a System, its tabulation and the native engine."""

    def __init__(
        self,
        system: System,
        decomposition: Decomposition | None = None,
        *,
        history: bool = False,
        symmetry: Sequence[Sequence[int]] = (),
        rotations: Sequence[Sequence[int]] = (),
        recorder: Recorder | None = None,
        foresee: bool = False,
        native: Native = "off",
    ) -> None:
        self.system = system
        self.decomposition = decomposition
        self.tabulation = Relevance(system, decomposition, recorder) if decomposition else Tabulation(system, recorder)
        self.tabulation.foresee(foresee)
        self.native = self._native_system(native, foresee)
        """What runs natively; None if nothing does."""
        network = system.network
        self.engine = Engine(
            self.tabulation,
            processes=len(system.classes),
            cells=len(system.cells),
            handlers=[len(cls.__plait_handlers__) for cls in system.classes],
            monitors=len(system.monitors),
            network=network.kind,
            capacity=network.capacity,
            drops=network.full == "drop",
            lossy=network.lossy,
            losses=network.losses,
            duplications=network.duplications if network.kind == "duplicating" else None,
            faults=[
                (
                    [i for i, c in enumerate(system.classes) if not f.roles or any(plays(c, r) for r in f.roles)],
                    f.budget,
                    f.recovers,
                )
                for f in system.faults
            ],
            returning=system.returning,
            properties=[p.kind for p in system.properties],
            history=history,
            symmetry=symmetry,
            rotations=rotations,
            pids=[(pid.role, pid.index) for pid in system.pids],
            clocks=_clocks(system),
            native=self.native,
        )
        self.tabulation.store = self.engine.store
        self._data: dict[tuple[type | None, int], dict[str, Data]] = {}

    @functools.cached_property
    def names(self) -> list[str]:
        """The names of the processes."""
        return [repr(pid) for pid in self.system.pids]

    @functools.cached_property
    def initial(self) -> list[tuple[list[int], int]]:
        """The initial states, each with the number of the combination of choices that leads to it."""
        return self.engine.initial()

    def _native_system(self, native: Native, foresee: bool) -> NativeSystem | None:
        # Coverage is recorded by running the user's code, and decomposition keeps full local states in Python.
        if native == "off" or self.tabulation.recorder is not None or self.decomposition:
            return None
        found = native_system(self.tabulation, foresee=foresee)
        if native == "only":
            _require_native(found.functions)
        return found if found.any else None

    def local(self, state: Sequence[int], index: int) -> bytes:
        """What a step of a process depends on: its local state, followed by the contents of all cells."""
        locals_ = self.engine.components(state)[0]
        cells = locals_[len(self.system.classes) :]
        store = self.engine.store
        return store.local_with_cells(locals_[index], cells) if cells else store.local(locals_[index])

    def data(self, index: int, local: int) -> dict[str, Data]:
        """The fields of a local state as data; of a cell, its content without a name. Callers must not change it."""
        processes = len(self.system.classes)
        key = (self.system.classes[index] if index < processes else None, local)
        if key not in self._data:
            cell = index >= processes
            fields = {"": self.tabulation.cell_value(local)} if cell else self.tabulation.local_value(index, local)[1]
            self._data[key] = {name: to_data(value) for name, value in fields.items()}
        return self._data[key]

    def holds(self, number: int, state: Sequence[int]) -> bool | None:
        """Whether a property's predicate is true in a state; None if it raises an exception."""
        locals_, inboxes, monitors, _ = self.engine.components(state)
        return self.tabulation.evaluate(number, locals_, inboxes, monitors)[0]

    def is_within(self, state: Sequence[int]) -> bool:
        """Whether a state is within the bound of the System, if it has one."""
        return all(self.holds(i, state) for i, p in enumerate(self.system.properties) if p.kind == "within")

    def changes(self, state: Sequence[int], t: Transition) -> bool:
        """Whether a transition leads to another state. The history of a process (`history="last"`) is no part of it."""
        components, leads = self.engine.components, self.engine.leads
        return components(t.state) != components(state) or leads(t.state) != leads(state)

    def is_terminal(self, state: Sequence[int]) -> bool:
        """Whether no step leads out of the state. A recovery that is assumed to happen counts as a step of a process."""
        return not any(t.failure or self.changes(state, t) for t in self.moves(state, self.engine.successors(state)))

    def may_end(self, state: Sequence[int]) -> bool:
        """Whether a run may stay in the state forever: no step leads out of it, or every such step fails.

        In a model with clocks, also if ticks are possible and change nothing.
        """
        transitions = self.engine.successors(state)
        moves = self.moves(state, transitions)
        return self.rests(transitions) or not any(not t.failure and self.changes(state, t) for t in moves)

    def rests(self, transitions: Sequence[Transition]) -> bool:
        """Whether time can go on for ever in a state with these transitions, and changes nothing."""
        handlers = self.tabulation.handlers
        urgent = (t.handler is not None and handlers[t.process][t.handler].urgent for t in transitions)
        return bool(self.system.ticking) and not any(urgent) and not any(t.kind == "tick" for t in transitions)

    def moves(self, state: Sequence[int], transitions: Sequence[Transition]) -> list[Transition]:
        """The transitions that count as steps. A tick does if time changes a clock: with drift, it may change only leads."""
        time = self._time_matters(state)
        return [t for t in transitions if t.moves or (t.kind == "tick" and time)]

    def _time_matters(self, state: Sequence[int]) -> bool:
        locals_ = [self.engine.store.local(i) for i in self.engine.components(state)[0]] if self.system.ticking else []
        clocks = (i for i, cls in enumerate(self.system.classes) if cls.__plait_clocks__)
        return any(self.tabulation.tick(i, locals_[i]) != locals_[i] for i in clocks)

    def failing(self, state: Sequence[int], name: str) -> Transition | None:
        """A step out of this state that violates a built-in property, or None."""
        return next((t for t in self.engine.successors(state) if violated_by(t) == name), None)

    def raising(self, state: Sequence[int]) -> tuple[int, Failure] | None:
        """A property that raises an exception in a state, with the exception, or None."""
        parts = self.engine.components(state)[:3]
        for number, prop in enumerate(self.system.properties):
            if prop.kind == "final" and not self.is_terminal(state):
                continue
            failure = self.tabulation.property_failure(number, *parts)
            if failure is not None:
                return number, failure
        return None


def _clocks(system: System) -> tuple[list[list[tuple[int, bool]]], list[list[int]], int] | None:
    """By process, its clocks (the field, and whether it is durable) and its urgent handlers; and the drift."""
    if not system.ticking:
        return None
    clocks = [
        [
            (number, name in cls.__plait_durable__)
            for number, name in enumerate(cls.__plait_fields__)
            if name in cls.__plait_clocks__
        ]
        for cls in system.classes
    ]
    urgent = [[n for n, handler in enumerate(cls.__plait_handlers__) if handler.urgent] for cls in system.classes]
    return clocks, urgent, system.drift


def _require_native(functions: Sequence[FunctionReport]) -> None:
    """Refuse a model with functions that only CPython can run."""
    left = [f"\n  {function.label}: {function.reason}" for function in functions if function.reason is not None]
    if left:
        raise UsageError(
            (Argument("native", "only"), ": these functions of the model need Python:", *left),
            hint=(
                "change these lines, or use ",
                Argument("native", "auto"),
                ", which runs the other functions natively",
            ),
        )


def violated_by(transition: Transition) -> str | None:
    """The built-in property that a step violates: an assertion fails, or user code raises an exception."""
    failure = transition.failure
    if failure is None or not failure.violation:
        return None
    return ASSERTIONS if failure.exception is None else NO_EXCEPTIONS
