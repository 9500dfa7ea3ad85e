"""From a run of the sequential program back to one of the protocol (paper 002, section 5: every bug is one of the input).

The choices of the program name the protocol's steps; in that order they are a run of the protocol, in which the messages
that the program lost are late. Between the rounds go marks, with what was lost in each.
"""

from __future__ import annotations

import msgspec

from plait.kernel.step import Step
from plait.kernel.trace import Mark, Trace
from plait.kernel.values import Data
from plait.model.message import Message
from plait.model.system import System
from plait.model.tag import tag_of
from plait.rounds.calendar import Calendar

_FIRED = "Fired"


def protocol_steps(trace: Trace) -> list[Step]:
    """The steps of the protocol in a trace of its sequential program, round by round.

    The program lets a process send in its turn while later ones have not updated yet; in the order of rounds the same
    steps end in the same state. A step that fails stays the last one. If processes would be created in another order,
    and so get other names, the steps stay as they are: that is a run too.
    """
    found: list[tuple[tuple[int, int], Step]] = []
    births: list[tuple[int, int]] = []
    for event in trace.events:
        for number, choice in enumerate(event.choices):
            if isinstance(choice, dict) and choice.get("#type") == _FIRED:
                key = (choice["place"], choice["part"])
                found.append((key, _step(event.lane, choice, event.choices[number + 1 :])))
                births += [key] if event.spawned else []
                break
    if births != sorted(births):
        return [step for _, step in found]
    last = [found.pop()] if found and trace.events[-1].note else []
    return [step for _, step in (*sorted(found, key=lambda entry: entry[0]), *last)]


def _step(lane: str, step: dict[str, Data], later: list[Data]) -> Step:
    if step["handler"] == "crash":
        return Step(lane, "crash", "crash", place=step["place"])
    consumed = []
    for entry in step["consumed"]["#tup"]:
        sender, message = entry["#tup"]
        fields = {name: value for name, value in message.items() if name != "#type"}
        consumed.append((sender["#pid"], message["#type"], fields))
    return Step(lane, step["handler"], "step", consumed, [*step["choices"]["#tup"], *later], step["place"])


def steps_of(trace: Trace) -> list[Step]:
    """The steps of a trace, to execute them on the same system without its ghosts."""
    messages = {m.id: (m.sender, m.type, m.fields) for m in trace.messages}
    return [
        Step(event.lane, event.label, event.kind, [messages[i] for i in event.consumed], event.choices)
        for event in trace.events
    ]


def marked(system: System, trace: Trace, steps: list[Step]) -> Trace:
    """The run of the protocol with a mark where a round begins, and with the messages that were lost."""
    calendar = Calendar(system)
    tags = _tags(system)
    places: dict[int, int] = {}
    for message in trace.messages:
        if message.type not in tags:
            continue  # nobody takes it
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
    """Per type of message its phase (a field or a constant) and the number of its round."""
    found: dict[str, tuple[str | int, int]] = {}
    # Those that are consumed, and not others of the same name.
    pending: list[type[Message]] = [h.message for _, h in system.handlers() if h.message is not None]
    while pending:
        cls = pending.pop()
        pending += cls.__subclasses__()
        tag = tag_of(cls)
        if tag is not None and tag.round in system.rounds:
            found[cls.__name__] = (tag.phase, system.rounds.index(tag.round))
    return found
