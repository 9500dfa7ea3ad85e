"""The handlers of a protocol on opaque phases: the turn of one process, in any phase at once.

Places are relative: round r of the current phase has place r + 1, with r from 0, and the next phase follows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from plait.kernel.errors import PlaitError
from plait.kernel.pid import Pid
from plait.model.message import Message
from plait.model.process import Handler, Process
from plait.model.system import System
from plait.model.tag import tag_of
from plait.rounds.calendar import Calendar, where
from plait.rounds.program.protocol import HandlerRun, Letter, Protocol, delivered, own
from plait.rounds.unbounded.phase import AGE, NotInvariantError, Phase, frozen, rebased


class RelativeCalendar(Calendar):
    """Places relative to the current phase. The place of a message that is long past is an upper bound."""

    def place(self, message: Message) -> int:
        tag = tag_of(type(message))
        if tag is None or tag.round not in self.rounds:
            return super().place(message)  # raises
        phase = tag.phase_of(message)
        if not isinstance(phase, Phase):
            number = phase if type(phase) is int else None
            raise NotInvariantError(f"{type(message).__name__} is sent with the phase {phase!r}, a constant", number)
        age = phase.age if phase.age is not None else AGE + 1 - phase.shift
        place = -age * len(self.rounds) + self.rounds.index(tag.round) + 1
        if phase.age is None and place > 0:
            raise NotInvariantError("a phase that is long past is advanced")
        return place


class Local(NamedTuple):
    """A process between two steps: its fields, its clock if that is later than the current round (else 0), its messages."""

    fields: dict[str, Any]
    clock: int
    letters: tuple[Letter, ...]

    def key(self) -> Hashable:
        """Equal for processes that differ only in the numbers of phases."""
        names = tuple(frozen(value) for value in self.fields.values())
        return names, self.clock, tuple((p, to, frozen(m)) for p, to, m in self.letters)

    def later(self, phases: int, rounds: int) -> Local:
        """The same, seen so many phases later."""
        fields = {name: rebased(value, phases) for name, value in self.fields.items()}
        letters = tuple(Letter(p - phases * rounds, to, rebased(m, phases)) for p, to, m in self.letters)
        return Local(fields, max(0, self.clock - 2 * phases * rounds), letters)


class Record(NamedTuple):
    """A process after a step, with a clock that is not earlier than its own."""

    pid: Pid
    fields: dict[str, Any]
    clock: int


Heard = tuple[tuple[Pid, Message], ...]
Fields = dict[str, Any]


class AnyPhase(Protocol):
    """The protocol in any phase."""

    def __init__(self, system: System) -> None:
        super().__init__(system)
        self.calendar = RelativeCalendar(system)
        self.rounds = len(system.rounds)
        self.records: dict[Hashable, Record] = {}
        """Where processes were, for the conditions."""
        self.sent: dict[Hashable, tuple[Pid, Pid, Message]] = {}
        """Receivers, senders and messages, each as seen in its own phase."""

    def spawn(self, run: HandlerRun, real: Any, role: type[Process], fields: dict[str, Any]) -> Pid:
        raise NotInvariantError("processes are created")

    def process(self, pid: Pid, fields: dict[str, Any]) -> Process:
        """A process with these fields, which a step may change."""
        cls = self.system.classes[self.system.index[pid]]
        process: Process = object.__new__(cls)
        own(process).update({name: rebased(value, 0) for name, value in fields.items()}, _id=pid)
        return process

    def fields(self, process: Process) -> dict[str, Any]:
        """The fields of a process, in order."""
        return {name: own(process)[name] for name in type(process).__plait_fields__}

    def runs(
        self, pid: Pid, fields: dict[str, Any], handler: Handler, consumed: Heard
    ) -> Iterator[tuple[dict[str, Any], list[Letter]]]:
        """What a handler does, once for each combination of its choices."""
        script: list[int] = []
        while True:
            process = self.process(pid, fields)
            run = HandlerRun(self, None, script)
            own(process)["_run"] = run
            messages = tuple(delivered(sender, rebased(message, 0)) for sender, message in consumed)
            self.ran.add((pid.role, handler.name))
            try:
                if handler.kind == "message":
                    handler.function(process, messages if handler.quorum is not None else messages[0])
                else:
                    handler.function(process)
            except NotInvariantError:
                raise
            except (Exception, PlaitError) as error:
                raise NotInvariantError(f"{where(type(process), handler)} raises {type(error).__name__}") from None
            script = (run.script or [])[: len(run.widths)]
            yield self.fields(process), run.letters
            while script and script[-1] + 1 >= run.widths[len(script) - 1]:
                script.pop()
            if not script:
                return
            script[-1] += 1

    def note(self, pid: Pid, local: Local, clock: int, letters: list[Letter]) -> None:
        """Remember where a process is after a step, and what it sent."""
        phases = max(0, (clock // 2 - 1) // self.rounds)
        seen = local.later(phases, self.rounds)
        record = Record(pid, seen.fields, clock - 2 * phases * self.rounds)
        self.records.setdefault((pid, Local(seen.fields, record.clock, ()).key()), record)
        for place, to, message in letters:
            assert message is not None
            mine = rebased(message, (place - 1) // self.rounds)
            self.sent.setdefault((to, pid, frozen(mine)), (to, pid, mine))

    def after(
        self, pid: Pid, handler: Handler, local: Local, clock: int, fields: dict[str, Any], sent: list[Letter]
    ) -> Local:
        """A process after a step that left it with this clock, and sent these messages."""
        after, breach = self.calendar.sent(clock, [letter.place for letter in sent])
        letters = list(local.letters)
        for letter in sent:
            if breach is not None or any(letter[:2] == other[:2] for other in letters):
                cls = self.system.classes[self.system.index[pid]]
                raise NotInvariantError(f"{where(cls, handler)} breaks a condition")
            letters.append(letter)
        return Local(fields, after, tuple(sorted(letters, key=lambda letter: letter[:2])))

    # -- a turn ----------------------------------------------------------------------------------------------------

    def turn(self, pid: Pid, local: Local, heard: Heard, at: int) -> list[Local]:
        """All that a process can do in a round in which these messages may reach it."""
        waiting = local._replace(letters=tuple(letter for letter in local.letters if letter.place > at))
        pending: list[tuple[bool, Local, Heard, bool]] = [(True, waiting, heard, False)]
        seen: set[Hashable] = set()
        found: dict[Hashable, Local] = {}
        while pending:
            updating, now, rest, took = pending.pop()
            key = (updating, now.key(), tuple((s, id(m)) for s, m in rest), took)
            if key in seen:
                continue
            seen.add(key)
            if updating:
                pending.append((False, now, (), False))
                process = self.process(pid, now.fields)
                for handler, consumed in list(self.receipts(process, rest)):
                    clock, breach = self.calendar.consumed(now.clock, [at])
                    if breach is not None:
                        raise NotInvariantError(f"{where(type(process), handler)} breaks a condition")
                    left = tuple(entry for entry in rest if entry not in _same(consumed))
                    for fields, sent in self.runs(pid, now.fields, handler, consumed):
                        then = self.after(pid, handler, now, clock, fields, sent)
                        self.note(pid, then, then.clock, sent)
                        pending.append((True, then, left, True))
            else:
                done = now if now.clock > 2 * (at + 1) else now._replace(clock=0)
                found.setdefault(done.key(), done)
            for handler, fields, sent in self.actions_of(pid, now.fields):
                first = min((letter.place for letter in sent), default=None)
                if first is None and (took or not updating):
                    then = now._replace(fields=fields)
                    self.note(pid, then, max(now.clock, 2 * at + updating), [])
                    pending.append((updating, then, rest, took))
                elif first == at + 1 and not updating:
                    then = self.after(pid, handler, now, now.clock, fields, sent)
                    self.note(pid, then, then.clock, sent)
                    pending.append((updating, then, rest, took))
        return list(found.values())

    def actions_of(self, pid: Pid, fields: dict[str, Any]) -> Iterator[tuple[Handler, dict[str, Any], list[Letter]]]:
        """The actions that are enabled, with what they do."""
        for handler in list(self.actions(self.process(pid, fields))):
            for after, sent in self.runs(pid, fields, handler, ()):
                if sent or tuple(map(frozen, after.values())) != tuple(map(frozen, fields.values())):
                    yield handler, after, sent

    # -- the conditions --------------------------------------------------------------------------------------------

    def require_conditions(self) -> None:
        """Raise an error if some step could break one of the conditions 1, 2, 3 and 5 in some phase."""
        for pid, fields, clock in list(self.records.values()):
            for handler, _, sent in self.actions_of(pid, fields):
                if self.calendar.sent(clock, [letter.place for letter in sent])[1] is not None:
                    cls = self.system.classes[self.system.index[pid]]
                    raise NotInvariantError(
                        f"{where(cls, handler)} may send in an earlier round than its process is in"
                    )
            process = self.process(pid, fields)
            for to, sender, message in self.sent.values():
                if to != pid:
                    continue
                for age in range(AGE + 2):
                    older = rebased(message, age)
                    if 2 * self.calendar.place(older) + 1 >= clock:
                        continue
                    for handler in self.of(process):
                        if handler.kind == "message" and self.fits(process, handler, sender, older):
                            why = "may take a message of an earlier round than its process is in"
                            raise NotInvariantError(f"{where(type(process), handler)} {why}")


def _same(consumed: Heard) -> list[tuple[Pid, Message]]:
    return _Entries(consumed)


class _Entries(list[tuple[Pid, Message]]):
    """Messages that are looked for by identity: equal ones from one sender do not occur in a round."""

    def __contains__(self, entry: object) -> bool:
        return any(entry is other for other in self)


def fields_of(process: Process) -> dict[str, Any]:
    """The fields of a process of the System."""
    return {name: own(process)[name] for name in type(process).__plait_fields__}


def numbers(cls: type[Process]) -> list[str]:
    """The fields of a class that may be phases: whole numbers."""
    return [f.name for f in dataclasses.fields(cls) if f.type in (int, "int")]  # type: ignore[arg-type]
