"""The proof: the states between rounds repeat, up to the numbers of the phases."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from plait.kernel.deadline import Deadline
from plait.kernel.errors import PlaitError
from plait.kernel.pid import Pid
from plait.model.process import Process
from plait.model.system import System
from plait.rounds.conditions.declarations import proved
from plait.rounds.program.protocol import delivered
from plait.rounds.unbounded.opaque import looks_through
from plait.rounds.unbounded.phase import NotInvariantError, Phase, frozen, rebased
from plait.rounds.unbounded.protocol import AnyPhase, Heard, Local, fields_of, numbers

MOST = 1_000_000
"""How many states between rounds are searched, at most."""
ATTEMPTS = 16
"""How many choices of the fields that are phases are tried."""


class Proof(NamedTuple):
    """Whether a System satisfies its `always` properties in any number of phases."""

    states: int
    """States between rounds, up to the numbers of phases."""
    why_not: str | None
    """Why there is no proof."""


Fields = frozenset[tuple[str, str]]
"""Classes and fields whose first values are phases."""


def prove(system: System, *, most: int = MOST, timeout: float | None = None) -> Proof:
    """Look for a proof that all `always` properties and the conditions hold in any number of phases.

    The System has been checked for some phases, without network assumption.
    """
    clock = Deadline(timeout)
    if system.faults or any(system.spare.values()) or system.shared:
        return Proof(0, "processes crash or are created")
    if (why := looks_through(system)) is not None:
        return Proof(0, why)
    if 4 not in proved(system):
        return Proof(0, "condition 4 does not follow from the declarations")
    pending: list[Fields] = [frozenset()]
    tried: set[Fields] = set()
    first: Proof | None = None
    while pending and len(tried) < ATTEMPTS:
        phases = pending.pop()
        if phases in tried:
            continue
        tried.add(phases)
        search = Search(system, phases, most, clock)
        try:
            search.run()
            return Proof(len(search.known), None)
        except NotInvariantError as error:
            last = Proof(len(search.known), error.why)
            # The reason of the attempt that came farthest says most.
            first = last if first is None or last.states >= first.states else first
            if error.compared is not None:
                pending += [
                    phases | {field} for field in reversed(_candidates(system, error.compared)) if field not in phases
                ]
        except PlaitError as error:
            return Proof(len(search.known), error.message)
        except Exception as error:  # of a guard: it did what cannot be done with a phase
            last = Proof(len(search.known), f"a guard raises {type(error).__name__}")
            first = first or last
    return first or Proof(0, "no choice of the fields that are phases was tried")


def _candidates(system: System, number: int) -> list[tuple[str, str]]:
    """Fields that begin with this number."""
    found = {
        (cls.__name__, name): None
        for process, cls in zip(system.processes, system.classes, strict=False)
        for name in numbers(cls)
        if type(fields_of(process)[name]) is int and fields_of(process)[name] == number
    }
    return list(found)


class Search:
    """The states between rounds, up to the numbers of phases."""

    def __init__(self, system: System, phases: Fields, most: int, clock: Deadline) -> None:
        self.system, self.phases, self.most, self.clock = system, phases, most, clock
        self.protocol = AnyPhase(system)
        self.rounds = len(system.rounds)
        self.locals: list[Local] = []
        self._ids: dict[Hashable, int] = {}
        self.known: set[tuple[int, ...]] = set()
        """The round, and for each process the number of its local state."""
        self._evaluated: set[tuple[Hashable, ...]] = set()
        self._turns: dict[Hashable, list[int]] = {}
        self._shown: dict[int, Hashable] = {}
        self._acting: dict[tuple[Pid, int, int], bool] = {}

    def run(self) -> None:
        """Search until no state is new. Raise an error if there is no proof."""
        pending = [self._begin()]
        self._meet(pending[0])
        while pending:
            following = []
            for state in pending:
                for after in self._successors(state):
                    if after not in self.known:
                        self._meet(after)
                        following.append(after)
            pending = following
        self.protocol.require_conditions()

    def _meet(self, state: tuple[int, ...]) -> None:
        self.known.add(state)
        if len(self.known) > self.most:
            raise NotInvariantError(f"the states between rounds did not repeat within {self.most:,}")
        if len(self.known) % 256 == 0 and self.clock.left is not None and self.clock.left <= 0:
            raise NotInvariantError("the time was over")
        self._require_properties(state)

    def _id(self, pid: Pid, local: Local) -> int:
        key = (pid, local.key())
        if key not in self._ids:
            self._ids[key] = len(self.locals)
            self.locals.append(local)
        return self._ids[key]

    def _begin(self) -> tuple[int, ...]:
        """The state after the @init methods, before the first round of the current phase."""
        ids = []
        for process in self.system.processes:
            pid = process.id
            fields = {
                name: Phase(1 - value) if (pid.role, name) in self.phases else rebased(value, 0)
                for name, value in fields_of(process).items()
            }
            local = Local(fields, 0, ())
            for handler in self.protocol.of(process):
                if handler.kind == "init":
                    runs = list(self.protocol.runs(pid, local.fields, handler, ()))
                    if len(runs) > 1:
                        raise NotInvariantError("an @init method chooses")
                    local = self.protocol.after(pid, handler, local, local.clock, *runs[0])
                    self.protocol.note(pid, local, local.clock, runs[0][1])
            if not local.letters:
                self.protocol.note(pid, local, local.clock, [])
            ids.append(self._id(pid, local))
        return (0, *ids)

    def _successors(self, state: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        at, ids = state[0], state[1:]
        if not any(
            self._may_act(process.id, number, at) for process, number in zip(self.system.processes, ids, strict=True)
        ):
            return  # it stays as it is: numbers of phases that are compared stay as near as they are
        heard: dict[Pid, list[tuple[Pid, Any]]] = {process.id: [] for process in self.system.processes}
        for process, number in zip(self.system.processes, ids, strict=True):
            for place, to, message in self.locals[number].letters:
                if place == at:
                    heard[to].append((process.id, message))
        turns = [
            self._turn(process.id, number, tuple(heard[process.id]), at)
            for process, number in zip(self.system.processes, ids, strict=True)
        ]
        # After the last round, the first of the next phase has the place of the first round again.
        following = 1 if at == self.rounds else at + 1
        if following > self.rounds:
            following = 1
        for chosen in itertools.product(*turns):
            yield (following, *chosen)

    def _may_act(self, pid: Pid, number: int, at: int) -> bool:
        """Whether a process has sent a message of this round or of a later one, or has an action that it may take later."""
        if (pid, number, at) not in self._acting:
            local = self.locals[number]
            acts = any(letter.place >= at for letter in local.letters)
            for _, _, sent in self.protocol.actions_of(pid, local.fields):
                acts = acts or not sent or min(letter.place for letter in sent) > at
            self._acting[pid, number, at] = acts
        return self._acting[pid, number, at]

    def _turn(self, pid: Pid, number: int, heard: Heard, at: int) -> list[int]:
        key = (pid, number, at, tuple((sender, frozen(message)) for sender, message in heard))
        if key not in self._turns:
            waiting = tuple((sender, delivered(sender, rebased(message, 0))) for sender, message in heard)
            found = self.protocol.turn(pid, self.locals[number], waiting, at)
            over = at == self.rounds
            self._turns[key] = list(
                dict.fromkeys(self._id(pid, one.later(1, self.rounds) if over else one) for one in found)
            )
        return self._turns[key]

    def _require_properties(self, state: tuple[int, ...]) -> None:
        shown = tuple(self._fields_key(number) for number in state[1:])
        if shown in self._evaluated:
            return
        self._evaluated.add(shown)
        processes = [
            self.protocol.process(process.id, self.locals[number].fields)
            for process, number in zip(self.system.processes, state[1:], strict=True)
        ]
        view = _View(self.system, processes)
        for prop in self.system.properties:
            if prop.kind != "always":
                continue
            try:
                value = prop.predicate(view)
            except NotInvariantError as error:
                raise NotInvariantError(f"the property {prop.name}: {error.why}", error.compared) from None
            except Exception as error:
                raise NotInvariantError(f"the property {prop.name} raises {type(error).__name__}") from None
            if not value:
                raise NotInvariantError(f"{prop.name} is violated in some phase: search more phases")

    def _fields_key(self, number: int) -> Hashable:
        if number not in self._shown:
            self._shown[number] = tuple(frozen(value) for value in self.locals[number].fields.values())
        return self._shown[number]


class _View:
    """A state for properties: the processes by role or by id."""

    def __init__(self, system: System, processes: list[Process]) -> None:
        self._system, self._processes = system, processes

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Pid):
            return self._processes[self._system.index[key]]
        return tuple(process for process in self._processes if isinstance(process, key))

    def get(self, role: Any) -> Any:
        return self[role]

    def __iter__(self) -> Iterator[Process]:
        return iter(self._processes)

    @property
    def processes(self) -> tuple[Process, ...]:
        return tuple(self._processes)
