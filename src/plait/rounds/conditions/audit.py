"""The audit: the conditions decided on the sequential program (Sequentialization, section 4.2).

The program takes only steps that satisfy the conditions. The first step of a run that breaks a condition comes after a
prefix that satisfies them all, and the program has this prefix, too, in the order of rounds. So it is enough to know
what each process could do next:

- an enabled action that sends a message of an earlier round than the process is in;
- a message that the process did not consume, and whose guard is true later, when the process is past its round;
- messages of several rounds that one quorum transition would consume together.

So the audit keeps for each process its local states with their clocks, the steps between local states, and the messages
that arrived and were not consumed. The last two points forget which run led to a local state, so they may find a step
that no run has: this is a suspicion. If they find nothing, this is a proof. docs/reference/rounds.md has the details.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from plait.kernel.pid import Pid
from plait.model.message import Message
from plait.model.process import Process
from plait.rounds.calendar import where
from plait.rounds.conditions.declarations import one_phase
from plait.rounds.program.protocol import fresh, key_of, own
from plait.rounds.program.step import Heard

if TYPE_CHECKING:
    from plait.rounds.program.protocol import Protocol

Key = Hashable


class Edge(NamedTuple):
    """A step of the protocol from one local state to another."""

    after: Key
    place: int
    clock: int | None
    """The clock after it; None if it neither consumes nor sends, and so leaves the clock unchanged."""


class Passed(NamedTuple):
    """Messages that a process did not consume, and its local state and clock since then."""

    key: Key
    clock: int
    place: int
    """The round of the messages."""
    messages: Key


class Suspicion(NamedTuple):
    """A step that would break a condition."""

    condition: int
    what: str


class Audit:
    """The local states, steps and messages of the processes of a program."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._fields: dict[Pid, dict[Key, dict[str, Any]]] = {}
        self._clocks: dict[Pid, set[tuple[Key, int]]] = {}
        self._edges: dict[Pid, dict[Key, set[Edge]]] = {}
        self._came: dict[Pid, dict[Key, tuple[Pid, Message]]] = {}
        self._passed: dict[Pid, dict[Passed, Heard]] = {}

    def key(self, process: Process) -> Key:
        """The local state of a process as a key."""
        fields = own(process)
        names = self._names(process.id)
        found = tuple(key_of(fields[name]) for name in names)
        known = self._fields.setdefault(process.id, {})
        if found not in known:
            known[found] = {name: fresh(fields[name]) for name in names}
        return found

    def start(self, process: Process, clock: int) -> None:
        """A process begins."""
        self._clocks.setdefault(process.id, set()).add((self.key(process), clock))

    def step(self, process: Process, before: Key, place: int, clock: int | None) -> None:
        """A process took a step of the protocol."""
        after = self.key(process)
        self._edges.setdefault(process.id, {}).setdefault(before, set()).add(Edge(after, place, clock))
        if clock is not None:
            self._clocks.setdefault(process.id, set()).add((after, clock))

    def came(self, process: Process, heard: Heard) -> None:
        """Messages arrived for a process."""
        known = self._came.setdefault(process.id, {})
        for entry in heard:
            known.setdefault(key_of(entry), entry)

    def passed(self, process: Process, clock: int, heard: Heard, place: int) -> None:
        """A process did not consume messages of a round."""
        known = self._passed.setdefault(process.id, {})
        known.setdefault(Passed(self.key(process), clock, place, key_of(heard)), heard)

    def suspicions(self) -> list[Suspicion]:
        """The steps that would break a condition, each once."""
        found: dict[Suspicion, None] = {}
        for pid in self._fields:
            self._spread(pid)
            for suspicion in (*self._sends(pid), *self._receipts(pid), *self._mixtures(pid)):
                found.setdefault(suspicion)
        return list(found)

    def _names(self, pid: Pid) -> tuple[str, ...]:
        return self._protocol.system.classes[self._protocol.system.index[pid]].__plait_fields__

    def _process(self, pid: Pid, key: Key) -> Process:
        cls = self._protocol.system.classes[self._protocol.system.index[pid]]
        process: Process = object.__new__(cls)
        process.__dict__.update(self._fields[pid][key], _id=pid)
        return process

    def _spread(self, pid: Pid) -> None:
        """Steps that neither consume nor send leave the clock unchanged."""
        clocks, edges = self._clocks.setdefault(pid, set()), self._edges.get(pid, {})
        pending = list(clocks)
        while pending:
            key, clock = pending.pop()
            for edge in edges.get(key, ()):
                if edge.clock is None and (edge.after, clock) not in clocks:
                    clocks.add((edge.after, clock))
                    pending.append((edge.after, clock))

    def _sends(self, pid: Pid) -> Iterator[Suspicion]:
        latest: dict[Key, int] = {}
        for key, clock in self._clocks[pid]:
            latest[key] = max(clock, latest.get(key, 0))
        protocol = self._protocol
        for key, clock in latest.items():
            process = self._process(pid, key)
            for handler in protocol.actions(process):
                for trial in protocol.trials(process, handler):
                    _, breach = protocol.calendar.sent(clock, () if trial.fails else trial.places)
                    if breach is not None:
                        yield Suspicion(breach.condition, f"{where(type(process), handler)} {breach.what}")

    def _receipts(self, pid: Pid) -> Iterator[Suspicion]:
        edges, protocol = self._edges.get(pid, {}), self._protocol
        passed = dict(self._passed.get(pid, {}))
        pending = list(passed)
        while pending:
            entry = pending.pop()
            if 2 * entry.place + 1 < entry.clock:
                process = self._process(pid, entry.key)
                for handler, _ in protocol.receipts(process, passed[entry]):
                    _, breach = protocol.calendar.consumed(entry.clock, [entry.place])
                    assert breach is not None
                    yield Suspicion(breach.condition, f"{where(type(process), handler)} {breach.what}")
            for edge in edges.get(entry.key, ()):
                clock = entry.clock if edge.clock is None else edge.clock
                after = entry._replace(key=edge.after, clock=clock)
                if edge.place > entry.place and after not in passed:
                    passed[after] = passed[entry]
                    pending.append(after)

    def _mixtures(self, pid: Pid) -> Iterator[Suspicion]:
        protocol = self._protocol
        quorums = [h for h in protocol.handlers[pid.role].values() if h.message is not None and not one_phase(h)]
        came = list(self._came.get(pid, {}).values())
        for key in self._fields[pid] if quorums and came else ():
            process = self._process(pid, key)
            for handler in quorums:
                phases: dict[Key, set[int]] = {}
                for sender, message in came:
                    if protocol.fits(process, handler, sender, message):
                        same = key_of([getattr(message, name) for name in handler.same])
                        phases.setdefault(same, set()).add(protocol.calendar.place(message))
                for places in phases.values():
                    _, breach = protocol.calendar.consumed(0, places)
                    if breach is not None:
                        yield Suspicion(breach.condition, f"{where(type(process), handler)} {breach.what}")
                        return
