"""From transitions of the engine to a Trace: plain data in which every message has its own id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from plait._native import Transition
from plait.check.explain.pictures import pictures
from plait.check.runner import Runner
from plait.kernel.trace import TIME, Event, Lane, Picture, Raised, Sent, Snapshot, Trace, Why
from plait.kernel.values import Data, exact, to_data
from plait.model.system import System

Components = tuple[list[int], list[int], list[int], list[int]]
"""Of a state: ids of local states, inboxes and monitors, and budgets."""


class Path:
    """A run from an initial state: its states and transitions so far."""

    def __init__(self, runner: Runner, start: Sequence[int] | None = None) -> None:
        """Begin with a state, usually an initial one; without `start`, with the first initial one."""
        self.runner = runner
        self.state: Sequence[int] = runner.initial[0][0] if start is None else start
        self.visited: list[list[int]] = [list(self.state)]
        self.taken: list[Transition] = []

    def take(self, transition: Transition) -> None:
        """Go on with a transition. One that fails leads nowhere."""
        if transition.failure is None:
            self.state = transition.state
        self.visited.append(list(self.state))
        self.taken.append(transition)


class Tracer(Path):
    """Describes a run. It knows which message instances are pending in which inbox."""

    def __init__(self, runner: Runner, start: Sequence[int] | None = None) -> None:
        super().__init__(runner, start)
        self.system = runner.system
        self.messages: list[Sent] = []
        self.names = [repr(pid) for pid in self.system.pids]
        """Of the processes."""
        self.lanes = [Lane(n, pid.role) for n, pid in zip(self.names, self.system.pids, strict=True)]
        self.lanes += [Lane(repr(shared), type(shared).__name__, shared=True) for shared in self.system.shared]
        self.pending: list[tuple[tuple[int, int], ...]] = [()] * len(self.names)
        """Per process, (message id of the engine, instance id) in the order sent."""
        self._senders: dict[int, str] = {}
        self._touched: set[int] = set()
        """Processes for which `pending` may be more than the engine has."""
        self._fields_at: tuple[list[int], dict[str, dict[str, Data]]] | None = None
        """The last local states whose fields were asked for, and their fields."""
        self._components: tuple[Sequence[int], Components] | None = None
        """The last state whose components were asked for, and these."""
        self._inboxes = self._parts()[1][: len(self.names)]
        for index, inbox in enumerate(self._inboxes):
            for message, sender, content in runner.engine.store.inbox(inbox):
                self._arrive(index, message, sender, content)
        self._ids = {name: [number for _, number in some] for name, some in zip(self.names, self.pending, strict=True)}
        """For each process, the instances that are pending. Snapshots share it: it is replaced, never changed."""
        self.initial = self._snapshot()
        begun = next((number for state, number in runner.initial if state == self.visited[0]), None)
        self.chosen = {} if begun is None else chosen(runner, begun)

    def resumed(
        self, state: Sequence[int], messages: list[Sent], pending: Sequence[tuple[tuple[int, int], ...]], last: Snapshot
    ) -> Tracer:
        """A tracer at the end of a run that this tracer began: with its last state, messages and snapshot."""
        found = object.__new__(Tracer)
        found.__dict__ |= self.__dict__
        found.state, found.visited, found.taken = state, [list(state)], []
        found.messages, found.pending, found._touched = messages, list(pending), set()
        found._inboxes, found._ids = found._parts()[1][: len(self.names)], last.pending
        found._fields_at = found._parts()[0], last.fields
        return found

    def trace(
        self,
        events: list[Event],
        name: str | None,
        explanation: str | None = None,
        *,
        loop: int | None = None,
        tidied: str | None = None,
        why: Why | None = None,
        exception: Raised | None = None,
        violators: list[list[str]] | None = None,
        drawn: bool = True,
    ) -> Trace:
        """The Trace of the events so far; with `drawn`, each state with what the views of the System draw."""
        initial = self.initial
        if drawn and self.system.views:
            first, *rest = pictures(self.runner, self.visited)
            initial = _with(initial, first)
            events = [msgspec.structs.replace(e, state=_with(e.state, p)) for e, p in zip(events, rest, strict=True)]
        return Trace(
            target=self.system.target or "",
            parameters={key: to_data(value) for key, value in self.system.parameters.items()},
            property=name,
            lanes=self.lanes,
            messages=self.messages,
            initial=initial,
            chosen=self.chosen,
            events=events,
            loop=loop,
            explanation=explanation,
            tidied=tidied,
            why=why,
            exception=exception,
            violators=violators or [],
        )

    def step(self, transition: Transition) -> Event:
        """Take a transition, and describe it."""
        index = transition.process
        before, read = self._fields(transition), self._reads(transition)
        consumed = [self._take(transition, index, message) for message, _, _ in transition.consumed]
        if transition.kind == "duplicate":
            for message, sender, content in transition.consumed:
                self._arrive(index, message, sender, content)
        sends = transition.sends if transition.failure is None else []
        sent = [self._arrive(to, message, index, content) for to, message, content in sends]
        self.take(transition)
        self._settle()
        after = self._fields(transition)
        decode = self.runner.tabulation.codec.decode
        return Event(
            lane=self.lane(transition),
            kind=transition.kind,  # type: ignore[arg-type]
            label=self.label(transition),
            state=self._snapshot(),
            consumed=consumed,
            sent=sent,
            announced=[to_data(decode(e)) for e in transition.events],
            choices=[to_data(decode(c)) for c in transition.choices],
            read=read,
            spawned=[self.names[slot] for slot in transition.spawned] if transition.failure is None else [],
            changed={n: (before.get(n), v) for n, v in after.items() if before.get(n) != v or n not in before},
            note=transition.failure.message if transition.failure else None,
        )

    def _reads(self, transition: Transition) -> list[str]:
        if transition.handler is None:
            return []
        index = transition.process
        local = self.runner.local(self.state, index)
        messages = [(sender, content) for _, sender, content in transition.consumed]
        return self.runner.tabulation.reads(index, local, transition.handler, messages, transition.choices)

    def label(self, transition: Transition) -> str:
        """The handler's name, or what the network or the environment does."""
        return label(self.system, transition)

    def lane(self, transition: Transition) -> str:
        """The lane of an event: the process, or time for a tick of all processes."""
        return lane(self.runner, transition)

    def message(self, content: bytes, sender: int) -> tuple[str, str, dict[str, Data]]:
        """A message as data: its sender, type and fields."""
        data: dict[str, Data] = to_data(self.runner.tabulation.codec.decode(content))
        return self.names[sender], data["#type"], {k: v for k, v in data.items() if k != "#type"}

    def _arrive(self, index: int, message: int, sender: int, content: bytes) -> int:
        name, kind, fields = self.message(content, sender)
        number = len(self.messages)
        self.messages.append(Sent(number, kind, fields, name, self.names[index]))
        self.pending[index] += ((message, number),)
        self._touched.add(index)
        self._senders[message] = name
        return number

    def _take(self, transition: Transition, index: int, message: int) -> int:
        """The oldest pending instance of a message. It stays pending in a set, and when the network makes a copy."""
        pending = self.pending[index]
        found = next(entry for entry in pending if entry[0] == message)
        if transition.kind == "lose":
            found = self._lost(transition, index, message)
        if transition.kind != "duplicate" and (transition.kind != "step" or not self._is_set()):
            self.pending[index] = tuple(entry for entry in pending if entry != found)
            self._touched.add(index)
        return found[1]

    def _lost(self, transition: Transition, index: int, message: int) -> tuple[int, int]:
        """One of several equal messages in a queue: the one whose loss gives the queue of the engine."""
        inbox = self.runner.engine.components(transition.state)[1][index]
        left = [m for m, _, _ in self.runner.engine.store.inbox(inbox)]
        equal = [entry for entry in self.pending[index] if entry[0] == message]
        for entry in equal:
            rest = [m for m, number in self.pending[index] if number != entry[1]]
            same_sender = [m for m in rest if self._senders[m] == self._senders[message]]
            if same_sender == [m for m in left if self._senders[m] == self._senders[message]]:
                return entry
        return equal[0]

    def _is_set(self) -> bool:
        return self.system.network.kind == "duplicating" and self.system.network.duplications is None

    def _settle(self) -> None:
        """Drop instances that the engine does not have: merged with an equal one, or sent to a crashed process."""
        before, self._inboxes = self._inboxes, self._parts()[1][: len(self.names)]
        touched = {i for i, (was, now) in enumerate(zip(before, self._inboxes, strict=True)) if was != now}
        touched |= self._touched
        for index in touched:
            there = [message for message, _, _ in self.runner.engine.store.inbox(self._inboxes[index])]
            kept = []
            for entry in self.pending[index]:
                if entry[0] in there:
                    there.remove(entry[0])
                    kept.append(entry)
            self.pending[index] = tuple(kept)
        self._ids = self._ids | {self.names[index]: [number for _, number in self.pending[index]] for index in touched}
        self._touched = set()

    def _parts(self) -> Components:
        """The components of the state."""
        if self._components is None or self._components[0] is not self.state:
            self._components = self.state, self.runner.engine.components(self.state)
        return self._components[1]

    def _fields(self, transition: Transition) -> dict[str, Data]:
        """The fields that a transition may change; those of other lanes with the name of the lane."""
        found = self._all_fields()
        own = None if self.lane(transition) == TIME else self.names[transition.process]
        if own is not None and not self.system.shared:
            return found[own]
        others = found if own is None else map(repr, self.runner.system.shared)
        named = {f"{name}.{field}": value for name in others for field, value in found[name].items()}
        return named if own is None else found[own] | named

    def _all_fields(self) -> dict[str, dict[str, Data]]:
        locals_ = self._parts()[0]
        known = self._fields_at
        if known is None or self.system.drift:
            found = state_fields(self.runner, self.state)
        elif known[0] == locals_:
            found = known[1]
        else:
            found = _with_changes(self.runner, *known, locals_)
        self._fields_at = locals_, found
        return found

    def _snapshot(self) -> Snapshot:
        return snapshot(self.runner, self.state, self._ids, self._all_fields(), self._parts())


def _with(state: Snapshot, views: dict[str, Picture]) -> Snapshot:
    return msgspec.structs.replace(state, views=views)


def chosen(runner: Runner, combination: int) -> dict[str, list[Data]]:
    """What the @init methods of each process choose in a combination."""
    pids, decode = runner.system.pids, runner.tabulation.codec.decode
    made = runner.tabulation.chosen(combination).items()
    return {repr(pids[index]): [to_data(decode(choice)) for choice in choices] for index, choices in made}


def begun(runner: Runner, trace: Trace) -> list[int] | None:
    """The initial state of the model in which the @init methods choose as in a trace; None if there is none."""
    wanted = exact(trace.chosen)
    return next((state for state, number in runner.initial if exact(chosen(runner, number)) == wanted), None)


def label(system: System, transition: Transition) -> str:
    """The handler's name, or what the network or the environment does."""
    if transition.handler is not None:
        return system.classes[transition.process].__plait_handlers__[transition.handler].name
    return transition.kind


def lane(runner: Runner, transition: Transition) -> str:
    """The lane of an event: the process, or time for a tick of all processes."""
    return TIME if transition.kind == "tick" and not runner.system.drift else runner.names[transition.process]


def snapshot(
    runner: Runner,
    state: Sequence[int],
    pending: dict[str, list[int]],
    fields: dict[str, dict[str, Data]] | None = None,
    components: Components | None = None,
) -> Snapshot:
    """A state as data. The caller gives the ids of the pending messages; fields and components if it knows them."""
    locals_, _, monitors, budgets = components or runner.engine.components(state)
    system, tabulation = runner.system, runner.tabulation
    names = runner.names
    may_be_away = system.faults or system.spare
    statuses = [tabulation.local_value(i, locals_[i])[0] for i in range(len(names))] if may_be_away else []
    return Snapshot(
        fields=state_fields(runner, state) if fields is None else fields,
        pending=pending,
        monitors={
            type(m).__name__: _monitor(tabulation.monitor_value(i, monitors[i])) for i, m in enumerate(system.monitors)
        },
        status={name: s for name, s in zip(names, statuses, strict=False) if s != "up"},
        budgets=dict(zip(_budget_names(system), budgets, strict=True)),
    )


def state_fields(runner: Runner, state: Sequence[int]) -> dict[str, dict[str, Data]]:
    """For each process and shared object, its fields as data; with drift, also by how many ticks a process is ahead."""
    system = runner.system
    found: dict[str, dict[str, Data]] = {}
    leads = runner.engine.leads(state) if system.drift else []
    locals_ = runner.engine.components(state)[0]
    for index, name in enumerate(runner.names):
        own = found[name] = runner.data(index, locals_[index])
        if leads and system.classes[index].__plait_clocks__:
            found[name] = own | {"(lead)": leads[index]}
    found |= {repr(shared): {} for shared in system.shared}
    for index, cell in enumerate(system.cells, len(system.pids)):
        found[repr(cell.shared)][cell.name] = runner.data(index, locals_[index])[""]
    return found


def _with_changes(
    runner: Runner, before: Sequence[int], fields: dict[str, dict[str, Data]], after: Sequence[int]
) -> dict[str, dict[str, Data]]:
    """The fields of processes and shared objects after a step, from those before it. What did not change is shared."""
    found, processes = dict(fields), len(runner.names)
    for index, (was, now) in enumerate(zip(before, after, strict=True)):
        if was == now:
            continue
        if index < processes:
            found[runner.names[index]] = runner.data(index, now)
        else:
            cell = runner.system.cells[index - processes]
            name = repr(cell.shared)
            found[name] = found[name] | {cell.name: runner.data(index, now)[""]}
    return found


def _monitor(monitor: Any) -> Data:
    return {name: to_data(monitor.__dict__[name]) for name in monitor.__plait_fields__}


def _budget_names(system: System) -> list[str]:
    network = system.network
    names = ["losses"] if network.losses is not None else []
    names += ["duplications"] if network.kind == "duplicating" and network.duplications is not None else []
    return names + [f"crashes {i}" if i else "crashes" for i in range(len(system.faults))]
