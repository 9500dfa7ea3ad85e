"""Random logs of random runs: thinned, split, and corrupted. Each as the oracle says it, and as lines of JSON."""

from __future__ import annotations

import dataclasses
import json
import random
from typing import Any, NamedTuple

from plait.kernel.values import to_data
from plait.model.system import System
from tests.oracle.conformance import Complete, Said, SaidMessage
from tests.oracle.relation import Frozen, State, Transition, field_names, freeze, initial_states, successors, thaw

FIELDS = ("x", "mode", "fuel", "table")
MESSAGE_FIELDS = ("value", "level", "items")
"""Those whose annotation says what JSON means."""


class Made(NamedTuple):
    said: list[list[Said]]
    complete: list[Complete]
    lines: list[str]
    open: bool
    places: list[list[int]]
    """By process, the lines of its events."""


def run_of(system: System, chance: random.Random, length: int) -> tuple[State, list[Transition]]:
    """A random run, without steps that fail."""
    state = start = chance.choice(initial_states(system))
    steps: list[Transition] = []
    for _ in range(length):
        possible = [step for step in successors(system, state) if step.state is not None]
        if not possible:
            break
        steps.append(chance.choice(possible))
        state = steps[-1].state  # type: ignore[assignment]
    return start, steps


def said_of(entry: tuple[int, Frozen], link: int | None) -> SaidMessage:
    other, content = entry
    names = field_names(content[0])
    fields = {n: value for n, value in zip(names, content[1:], strict=True) if n in MESSAGE_FIELDS}
    return SaidMessage(other, content[0].__name__, fields, link)


def log_of(system: System, steps: list[Transition], *, linked: bool, clocks: bool) -> list[list[Said]]:
    """All that can be said of a run: one event for each step."""
    logs: list[list[Said]] = [[] for _ in system.classes]
    waiting: dict[
        tuple[int, int, Frozen], list[tuple[int, int, int]]
    ] = {}  # the events that sent a message, its number
    past: list[dict[int, int]] = [{} for _ in system.classes]
    pasts: dict[tuple[int, int], dict[int, int]] = {}
    links = 0
    for step in steps:
        process, number = step.process, len(logs[step.process])
        assert step.state is not None
        receives, sends, seen = [], [], dict(past[process])
        for sender, content in step.consumed:
            source = waiting.get((sender, process, content), [])
            link = None
            if source and step.kind == "step":
                sending, which, link = source.pop(0)
                for other, count in pasts[sending, which].items():
                    seen[other] = max(seen.get(other, 0), count)
            receives.append(said_of((sender, content), link if linked else None))
        for to, content in step.sends:
            links += 1
            waiting.setdefault((process, to, content), []).append((process, number, links))
            sends.append(said_of((to, content), links if linked else None))
        names = system.classes[process].__plait_fields__
        fields = dict(zip(names, step.state.slots[process].fields, strict=False))
        after = (
            frozenset((other, count - 1) for other, count in seen.items() if other != process)
            if clocks
            else frozenset()
        )
        seen[process] = number + 1
        past[process] = pasts[process, number] = seen
        label = step.label if step.kind == "step" else step.kind
        state = {name: fields[name] for name in FIELDS if name in fields}
        logs[process].append(Said(label, tuple(receives), tuple(sends), state, after))
    return logs


def thinned(logs: list[list[Said]], chance: random.Random, keep: float) -> list[list[Said]]:
    """Leave out events, and parts of events."""
    found: list[list[Said]] = []
    kept: dict[tuple[int, int], int] = {}
    for process, own in enumerate(logs):
        found.append([])
        for number, event in enumerate(own):
            some = dataclasses.replace(
                event,
                label=event.label if chance.random() < keep else None,
                receives=tuple(less(m, chance, keep) for m in event.receives if chance.random() < keep),
                sends=tuple(less(m, chance, keep) for m in event.sends if chance.random() < keep),
                state={name: value for name, value in event.state.items() if chance.random() < keep / 2},
            )
            if chance.random() < keep and (some.label or some.receives or some.sends or some.state):
                found[-1].append(some)
            kept[process, number] = len(found[-1])
    # What came before an event that is left out came before what follows it.
    return [
        [
            dataclasses.replace(
                e, after=frozenset((p, kept[p, n] - 1) for p, n in e.after if (p, n) in kept and kept[p, n] > 0)
            )
            for e in own
        ]
        for own in found
    ]


def less(message: SaidMessage, chance: random.Random, keep: float) -> SaidMessage:
    fields = {name: value for name, value in message.fields.items() if chance.random() < keep}
    named = message.type if fields or chance.random() < keep else None
    return message._replace(other=message.other if chance.random() < keep else None, type=named, fields=fields)


def split(logs: list[list[Said]], chance: random.Random) -> list[list[Said]]:
    """Say of some steps in several events what was said in one. Only in logs without clocks."""
    found: list[list[Said]] = []
    for own in logs:
        found.append([])
        for event in own:
            if chance.random() < 0.6:
                found[-1].append(event)
                continue
            none: dict[str, Frozen] = {}
            pieces = [Said(event.label, (), (), none)] if event.label else []
            pieces += [Said(None, (message,), (), none) for message in event.receives]
            pieces += [Said(None, (), (message,), none) for message in event.sends]
            chance.shuffle(pieces)
            pieces += [Said(None, (), (), event.state)] if event.state else []
            found[-1] += pieces
    return found


def corrupted(logs: list[list[Said]], system: System, chance: random.Random) -> list[list[Said]]:
    """Change one thing."""
    places = [(process, number) for process, own in enumerate(logs) for number in range(len(own))]
    if not places:
        return logs
    process, number = chance.choice(places)
    logs = [list(own) for own in logs]
    own = logs[process]
    event = own[number]
    ways = ["drop", "twice", "swap"]
    ways += ["state"] * 3 if event.state else []
    ways += ["label"] * 2 if event.label else []
    ways += ["receive"] * 2 if event.receives else []
    ways += ["send"] * 2 if event.sends else []
    match chance.choice(ways):
        case "drop" if not event.after and not any(e.after for some in logs for e in some):
            del own[number]
        case "twice" if not any(e.after for some in logs for e in some):
            copy = dataclasses.replace(event, sends=tuple(m._replace(link=None) for m in event.sends))
            own.insert(number, dataclasses.replace(copy, receives=tuple(m._replace(link=None) for m in event.receives)))
        case "swap" if number + 1 < len(own) and not any(e.after or linked(e) for some in logs for e in some):
            own[number], own[number + 1] = own[number + 1], own[number]
        case "state":
            name = chance.choice(sorted(event.state))
            other = {"x": 2, "fuel": 0}.get(name)
            if other is not None:
                own[number] = dataclasses.replace(event, state={**event.state, name: freeze(other)})
        case "label":
            names = [h.name for h in system.classes[process].__plait_handlers__ if h.kind in ("action", "message")]
            own[number] = dataclasses.replace(event, label=chance.choice([*names, "crash"]))
        case "receive":
            first, *rest = event.receives
            own[number] = dataclasses.replace(event, receives=(wrong(first, chance), *rest))
        case "send":
            first, *rest = event.sends
            own[number] = dataclasses.replace(event, sends=(wrong(first, chance), *rest))
    return logs


def linked(event: Said) -> bool:
    return any(message.link is not None for message in (*event.receives, *event.sends))


def wrong(message: SaidMessage, chance: random.Random) -> SaidMessage:
    if message.type is not None and "value" in message.fields:
        return message._replace(fields={**message.fields, "value": freeze(chance.choice([0, 1, 2]))})
    return message._replace(other=chance.choice([0, 1]))


def complete_of(system: System, chance: random.Random) -> tuple[list[Complete], list[str]]:
    """What the log leaves out nowhere (true or not), for the oracle, and for the header of a log."""
    chosen = [what for what in ("steps", "sends", "receives") if chance.random() < 0.35]
    found = []
    for cls in system.classes:
        labels = {h.name for h in cls.__plait_handlers__} | {"crash", "recover"} if "steps" in chosen else set()
        found.append(Complete(frozenset(labels), "sends" in chosen, "receives" in chosen))
    return found, chosen


def message_data(system: System, message: SaidMessage, role: str) -> dict[str, Any]:
    found: dict[str, Any] = {"fields": {name: to_data(thaw(value)) for name, value in message.fields.items()}}
    if message.type is not None:
        found["type"] = message.type
    if message.other is not None:
        found[role] = repr(system.pids[message.other])
    if message.link is not None:
        found["id"] = message.link
    return found


def lines_of(
    system: System, logs: list[list[Said]], header: dict[str, Any], chance: random.Random, clocks: bool
) -> tuple[list[str], list[list[int]]]:
    """The log as JSON, and the lines of each process. Processes are interleaved at random: that order means nothing."""
    queues = []
    for process, own in enumerate(logs):
        name = repr(system.pids[process])
        queue = []
        for number, event in enumerate(own):
            record: dict[str, Any] = {"at": name, "step": event.label}
            record["receive"] = [message_data(system, m, "from") for m in event.receives]
            record["send"] = [message_data(system, m, "to") for m in event.sends]
            record["state"] = {field: to_data(thaw(value)) for field, value in event.state.items()}
            if clocks:
                record["clock"] = {repr(system.pids[p]): n + 1 for p, n in event.after} | {name: number + 1}
            queue.append(json.dumps({key: value for key, value in record.items() if value not in (None, [], {})}))
        queues.append(queue)
    lines = [json.dumps({"plait": 1, **header})]
    places: list[list[int]] = [[] for _ in logs]
    while any(queues):
        process = chance.choice([process for process, queue in enumerate(queues) if queue])
        lines.append(queues[process].pop(0))
        places[process].append(len(lines))
    return lines, places


def random_log(system: System, seed: int, *, length: int = 6) -> Made:
    """A log of a random run of a system."""
    chance = random.Random(seed)
    clocks, linked = chance.random() < 0.3, chance.random() < 0.5
    _, steps = run_of(system, chance, length)
    logs = log_of(system, steps, linked=linked, clocks=clocks)
    logs = thinned(logs, chance, chance.choice([1.0, 0.9, 0.7, 0.5]))
    if not clocks and chance.random() < 0.5:
        logs = split(logs, chance)
    if chance.random() < 0.6:
        logs = corrupted(logs, system, chance)
    complete, header = complete_of(system, chance)
    logs = [[e for e in own if e.label or e.receives or e.sends or e.state] for own in logs] if not clocks else logs
    ends_early = chance.random() < 0.3
    lines, places = lines_of(system, logs, {"complete": header, "open": ends_early}, chance, clocks)
    return Made(logs, complete, lines, ends_early, places)
