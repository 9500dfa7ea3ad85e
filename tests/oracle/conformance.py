"""Whether a log is a run of a system, by trying everything: written from the definition in docs/reference/conform.md.

A *said* event has what the log says, as values of the oracle. A run explains a log if each event is explained by one
step (or, if it only says what fields are, by a state between steps), such that the order of events is that of the run.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from plait.model.system import System
from tests.oracle.relation import Frozen, State, Transition, field_names, initial_states, successors


class SaidMessage(NamedTuple):
    """What is said of a message; None: nothing."""

    other: int | None  # who sent what was received, who gets what was sent
    type: str | None
    fields: dict[str, Frozen]
    link: int | None = None  # the same where it is sent and where it is received


@dataclasses.dataclass(frozen=True)
class Said:
    label: str | None
    receives: tuple[SaidMessage, ...]
    sends: tuple[SaidMessage, ...]
    state: dict[str, Frozen]
    after: frozenset[tuple[int, int]] = frozenset()  # events of other processes that come before it, by clocks


class Complete(NamedTuple):
    """What each process logs always."""

    steps: frozenset[str] = frozenset()  # labels
    sends: bool = False
    receives: bool = False


Logs = Sequence[Sequence[Said]]


class TooLargeError(Exception):
    """There are more states than are tried."""


class Outcome(NamedTuple):
    explained: int
    ends: frozenset[tuple[int, ...]]  # by process, how many events the longest explained beginnings have


def explained(system: System, logs: Logs, complete: Sequence[Complete], limit: int, *, ends: bool = True) -> Outcome:
    """The longest explained beginnings. Without `ends`, a process may do what it never logs after its last event."""
    linked = joined(logs)
    start = tuple(0 for _ in logs)
    waiting = [(state, start) for state in initial_states(system)]
    met = set(waiting)
    while waiting:
        state, front = waiting.pop()
        for after in successors_of(system, linked, complete, state, front, ends):
            if after not in met:
                met.add(after)
                waiting.append(after)
        if len(met) > limit:
            raise TooLargeError
    most = max(sum(front) for _, front in met)
    return Outcome(most, frozenset(front for _, front in met if sum(front) == most))


def joined(logs: Logs) -> list[list[Said]]:
    """Each message with all that is said of it: where it is sent, and where it is received."""
    sent: dict[int, tuple[int, int, SaidMessage]] = {}
    for process, own in enumerate(logs):
        for number, event in enumerate(own):
            for message in event.sends:
                if message.link is not None:
                    sent[message.link] = (process, number, message)
    found = []
    for process, own in enumerate(logs):
        found.append(
            [
                dataclasses.replace(
                    event,
                    receives=tuple(of_receipt(message, sent) for message in event.receives),
                    sends=tuple(of_sending(message, logs) for message in event.sends),
                    after=event.after
                    | {
                        sent[m.link][:2]
                        for m in event.receives
                        if m.link is not None and m.link in sent and sent[m.link][0] != process
                    },
                )
                for event in own
            ]
        )
    return found


IMPOSSIBLE = SaidMessage(None, "no message has this type", {})


def of_receipt(message: SaidMessage, sent: dict[int, tuple[int, int, SaidMessage]]) -> SaidMessage:
    if message.link is None or message.link not in sent:
        return message
    sender, _, other = sent[message.link]
    both = together(message, other)
    if both is None or message.other not in (None, sender):
        return IMPOSSIBLE
    return both._replace(other=sender)


def of_sending(message: SaidMessage, logs: Logs) -> SaidMessage:
    for process, own in enumerate(logs):
        for event in own:
            for other in event.receives:
                if message.link is not None and other.link == message.link and message.other in (None, process):
                    message = together(message, other) or message
    return message


def together(one: SaidMessage, other: SaidMessage) -> SaidMessage | None:
    if None not in (one.type, other.type) and one.type != other.type:
        return None
    if any(one.fields[name] != other.fields[name] for name in one.fields.keys() & other.fields.keys()):
        return None
    return one._replace(type=one.type or other.type, fields={**one.fields, **other.fields})


def successors_of(
    system: System,
    logs: Sequence[Sequence[Said]],
    complete: Sequence[Complete],
    state: State,
    front: tuple[int, ...],
    ends: bool,
) -> Iterator[tuple[State, tuple[int, ...]]]:
    """A state that shows what an event says; or a step, which explains some events."""
    for process, own in enumerate(logs):
        if front[process] < len(own):
            event = own[front[process]]
            says_state = event.label is None and not event.receives and not event.sends
            if says_state and ready(event, front) and shows(system, state, process, event):
                yield state, moved(front, process, 1)
    for step in successors(system, state):
        if step.state is None:
            continue
        process = step.process
        for size in range(len(logs[process]) - front[process] + 1):
            events = logs[process][front[process] : front[process] + size]
            known = ends or front[process] + size < len(logs[process])
            if explains(system, step, events, complete[process] if known else Complete(), front):
                yield step.state, moved(front, process, size)


def moved(front: tuple[int, ...], process: int, size: int) -> tuple[int, ...]:
    return (*front[:process], front[process] + size, *front[process + 1 :])


def ready(event: Said, front: tuple[int, ...]) -> bool:
    return all(front[process] > number for process, number in event.after)


def shows(system: System, state: State, process: int, event: Said) -> bool:
    names = system.classes[process].__plait_fields__
    fields = dict(zip(names, state.slots[process].fields, strict=False))
    return all(fields.get(name) == value for name, value in event.state.items())


def explains(
    system: System, step: Transition, events: Sequence[Said], complete: Complete, front: tuple[int, ...]
) -> bool:
    """Whether a step explains these events together, and leaves out nothing that is logged always."""
    assert step.state is not None
    label = step.label if step.kind == "step" else step.kind
    labels = [event.label for event in events if event.label is not None]
    received = [message for event in events for message in event.receives]
    sent = [message for event in events for message in event.sends]
    if labels not in ([], [label]) or (not labels and label in complete.steps):
        return False
    if step.kind in ("lose", "duplicate") and events and not labels:  # of these, an event must say so
        return False
    if complete.receives and step.kind in ("step", "recover") and len(received) != len(step.consumed):
        return False
    if complete.sends and len(sent) != len(step.sends):
        return False
    return (
        all(ready(event, front) and shows(system, step.state, step.process, event) for event in events)
        and pair(received, list(step.consumed))
        and pair(sent, list(step.sends))
    )


def pair(said: list[SaidMessage], real: list[tuple[int, Frozen]]) -> bool:
    """Whether each said message is a real one of its own."""
    return len(said) <= len(real) and any(
        all(is_it(one, message) for one, message in zip(said, chosen, strict=True))
        for chosen in itertools.permutations(real, len(said))
    )


def is_it(said: SaidMessage, real: tuple[int, Frozen]) -> bool:
    other, content = real
    if said.other not in (None, other) or said.type not in (None, content[0].__name__):
        return False
    fields = dict(zip(field_names(content[0]), content[1:], strict=True))
    return all(fields.get(name) == value for name, value in said.fields.items())
