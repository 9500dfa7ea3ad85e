"""Rename the lanes of a trace. A faulty twin of a process has another name, but the same position in the system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from plait.kernel.trace import Event, Sent, Snapshot, Trace
from plait.kernel.values import Data, order


def by_position(given: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
    """A mapping from given names to wanted names at the same position. Empty if the numbers differ, or the names are
    the same.

    >>> by_position(["Client0", "Forger0", "Server0"], ["Client0", "Server0", "Server1"])
    {'Forger0': 'Server0', 'Server0': 'Server1'}
    """
    if len(given) != len(wanted) or {*given} == {*wanted}:
        return {}
    return {name: other for name, other in zip(given, wanted, strict=True) if name != other}


def renamed(trace: Trace, names: Mapping[str, str]) -> Trace:
    """The trace with other names of lanes, also in values."""
    replace = msgspec.structs.replace

    def of(name: str) -> str:
        return names.get(name, name)

    def field(name: str) -> str:
        """A field of a shared object has the name of its lane."""
        lane, dot, rest = name.rpartition(".")
        return f"{of(lane)}{dot}{rest}"

    def data(value: Data) -> Data:
        if isinstance(value, list):
            return [data(item) for item in value]
        if not isinstance(value, dict):
            return value
        made: dict[str, Data] = {k: of(v) if k == "#pid" and isinstance(v, str) else data(v) for k, v in value.items()}
        if "#set" in made:
            made["#set"].sort(key=order)
        elif "#map" in made:
            made["#map"].sort(key=lambda pair: order(pair[0]))
        return made

    def message(sent: Sent) -> Sent:
        return replace(sent, fields=data(sent.fields), sender=of(sent.sender), receiver=of(sent.receiver))

    def snapshot(state: Snapshot) -> Snapshot:
        return replace(
            state,
            fields={of(lane): data(fields) for lane, fields in state.fields.items()},
            pending={of(lane): ids for lane, ids in state.pending.items()},
            monitors=data(state.monitors),
            status={of(lane): status for lane, status in state.status.items()},
        )

    def event(e: Event) -> Event:
        return replace(
            e,
            lane=of(e.lane),
            state=snapshot(e.state),
            announced=data(e.announced),
            choices=data(e.choices),
            spawned=[of(name) for name in e.spawned],
            read=[field(name) for name in e.read],
            changed={field(name): (data(before), data(after)) for name, (before, after) in e.changed.items()},
        )

    if not names:
        return trace
    return replace(
        trace,
        lanes=[replace(lane, name=of(lane.name)) for lane in trace.lanes],
        messages=[message(sent) for sent in trace.messages],
        initial=snapshot(trace.initial),
        chosen={of(lane): data(choices) for lane, choices in trace.chosen.items()},
        events=[event(e) for e in trace.events],
        violators=[[of(name) for name in names] for names in trace.violators],
    )
