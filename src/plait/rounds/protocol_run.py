"""From a run of the sequential program to a run of the protocol (Sequentialization, section 5).

Each bug of the program is a bug of the protocol. The choices of the program are steps of the protocol. In the same order
they are a run of the protocol in which the messages that the program lost are late. Marks show where a round begins,
and which messages were lost in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from plait.check.explain.execute import execution
from plait.kernel.step import Step, steps_of
from plait.kernel.trace import Mark, Trace
from plait.model.message import subclasses
from plait.model.system import System
from plait.model.tag import tag_of
from plait.rounds.calendar import Calendar
from plait.rounds.program.step import ProtocolStep


def protocol_steps(program: System, trace: Trace) -> list[Step]:
    """The steps of the protocol in a trace of its sequential program, round by round.

    The program lets a process send in its turn before later processes have updated. In the order of the rounds, the same
    steps end in the same state.
    """
    found: list[Placed] = []
    choices_of = execution(program, steps_of(trace)).choices()
    for event, choices in zip(trace.events, choices_of, strict=True):
        for number, choice in enumerate(choices):
            if isinstance(choice, ProtocolStep):
                step = choice.taken_by(event.lane, choices[number + 1 :])
                found.append(Placed(choice.key, step, bool(event.spawned)))
                break
    return in_order(found, fails=bool(trace.events and trace.events[-1].note))


class Placed(NamedTuple):
    """A step, where it belongs in the order of the rounds, and whether it creates processes."""

    key: tuple[int, int]
    step: Step
    creates: bool


def in_order(found: Sequence[Placed], *, fails: bool = False) -> list[Step]:
    """The steps of a run in the order of the rounds. If the last one fails, it stays the last.

    If this order would create processes in another order, and so give them other names, the steps stay as they are.
    """
    births = [placed.key for placed in found if placed.creates]
    if births != sorted(births):
        return [placed.step for placed in found]
    last = [found[-1]] if found and fails else []
    rest = found[: len(found) - len(last)]
    return [placed.step for placed in (*sorted(rest, key=lambda placed: placed.key), *last)]


def with_marks(system: System, trace: Trace, steps: list[Step]) -> Trace:
    """The run of the protocol with a mark where each round begins, and with the messages that were lost."""
    calendar = Calendar(system)
    tags = _tags(system)
    places: dict[int, int] = {}
    for message in trace.messages:
        if message.type not in tags:
            continue  # no handler takes it
        phase_of, number = tags[message.type]
        phase = message.fields[phase_of] if isinstance(phase_of, str) else phase_of
        places[message.id] = (phase - 1) * len(calendar.rounds) + number + 1
    taken = {i for event in trace.events for i in event.consumed}
    sent = {i: number for number, event in enumerate(trace.events) for i in event.sent}
    marks: list[Mark] = []
    current = -1
    for number, step in enumerate(steps):
        if step.place > current:
            missed = [i for i, t in places.items() if current <= t < step.place and i not in taken]
            marks.append(Mark(number, calendar.name(step.place), [i for i in missed if sent.get(i, -1) < number]))
            current = step.place
    return msgspec.structs.replace(trace, marks=marks)


def _tags(system: System) -> dict[str, tuple[str | int, int]]:
    """For each type of message its phase (a field or a constant) and the number of its round."""
    found: dict[str, tuple[str | int, int]] = {}
    # Only the types that a handler consumes: other types may have the same name.
    consumed = [h.message for _, h in system.handlers() if h.message is not None]
    for cls in (kind for message in consumed for kind in (message, *subclasses(message))):
        tag = tag_of(cls)
        if tag is not None and tag.round in system.rounds:
            found[cls.__name__] = (tag.phase, system.rounds.index(tag.round))
    return found
