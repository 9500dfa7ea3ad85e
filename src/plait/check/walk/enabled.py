"""The steps that are possible in a state of a run: what each takes, sends and changes, and whether it leads on."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from plait._native import Transition
from plait.check.explain.tracing import label, lane, state_fields
from plait.check.runner import Runner
from plait.check.walk.run import Stop, keyed
from plait.kernel.trace import TIME, EventKind
from plait.kernel.values import Data, to_data


class Passed(msgspec.Struct, frozen=True):
    """A message that a step takes or sends."""

    id: int | None
    """In the trace of the run; None if the step sends it."""
    type: str
    fields: dict[str, Data]
    sender: str
    receiver: str


class Enabled(msgspec.Struct, frozen=True):
    """A step that is possible."""

    key: str
    lane: str
    label: str
    kind: EventKind
    consumed: list[Passed]
    sent: list[Passed]
    choices: list[Data]
    changed: dict[str, tuple[Data, Data]]
    leads: str
    """'same' to a state of the run, else 'new'."""
    note: str | None
    """Why the step fails, if it does."""


def enabled(runner: Runner, stop: Stop) -> list[Enabled]:
    """The steps that are possible at the end of a run, in the order of lanes."""
    if stop.failed:
        return []
    seen = {one.fingerprint for one in stop.path()}
    before = state_fields(runner, stop.state)
    return [
        Enabled(
            key=key,
            lane=lane(runner, transition),
            label=label(runner.system, transition),
            kind=transition.kind,  # type: ignore[arg-type]
            consumed=list(_consumed(runner, stop, transition)),
            sent=[
                _passed(runner, content, transition.process, to, None)
                for to, _, content in (transition.sends if transition.failure is None else [])
            ],
            choices=[to_data(runner.tabulation.codec.decode(choice)) for choice in transition.choices],
            changed=_changed(runner, before, transition),
            leads="same" if transition.fingerprint in seen and transition.failure is None else "new",
            note=transition.failure.message if transition.failure else None,
        )
        for key, transition in sorted(keyed(runner, stop.state).items(), key=lambda item: item[1].process)
    ]


def _consumed(runner: Runner, stop: Stop, transition: Transition) -> Iterator[Passed]:
    waiting = list(stop.pending[transition.process])
    for message, sender, content in transition.consumed:
        entry = next((entry for entry in waiting if entry[0] == message), None)
        if entry is not None:
            waiting.remove(entry)
        yield _passed(runner, content, sender, transition.process, None if entry is None else entry[1])


def _passed(runner: Runner, content: bytes, sender: int, receiver: int, number: int | None) -> Passed:
    data: dict[str, Data] = to_data(runner.tabulation.codec.decode(content))
    pids = runner.system.pids
    fields = {name: value for name, value in data.items() if name != "#type"}
    return Passed(number, data["#type"], fields, repr(pids[sender]), repr(pids[receiver]))


def _changed(
    runner: Runner, before: dict[str, dict[str, Data]], transition: Transition
) -> dict[str, tuple[Data, Data]]:
    """The fields that differ afterwards; those of other lanes with the name of the lane."""
    if transition.failure is not None:
        return {}
    own = lane(runner, transition)
    found = {}
    for name, fields in state_fields(runner, transition.state).items():
        if fields is before[name]:
            continue
        for field, value in fields.items():
            if field not in before[name] or before[name][field] != value:
                place = field if name == own and own != TIME else f"{name}.{field}"
                found[place] = (before[name].get(field), value)
    return found
