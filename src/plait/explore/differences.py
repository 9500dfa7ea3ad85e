"""How two states differ, down to the parts of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from plait.kernel.trace import Sent, Snapshot
from plait.kernel.values import Data, exact, text

_MOST = 500
_ABSENT = object()


class Difference(msgspec.Struct, frozen=True):
    """A part of a state that differs. None stands for a part that is not there."""

    path: str
    before: Data
    after: Data


def differences(
    before: Snapshot, after: Snapshot, first: Mapping[int, Sent], second: Mapping[int, Sent] | None = None
) -> list[Difference]:
    """The differences of two states. `first` and `second` are the messages of their traces by id."""
    one, other = _data(before, first), _data(after, first if second is None else second)
    return [found for found, _ in zip(_compared("", one, other), range(_MOST), strict=False)]


def _data(state: Snapshot, messages: Mapping[int, Sent]) -> dict[str, Data]:
    """A state as one record: lanes, monitors, and what differs of them."""
    found: dict[str, Data] = {lane: dict(fields) for lane, fields in state.fields.items()}
    for lane, status in state.status.items():
        found.setdefault(lane, {})["(status)"] = status
    for lane, pending in state.pending.items():
        said = sorted(f"{text({'#type': m.type, **m.fields})} from {m.sender}" for m in map(messages.get, pending) if m)
        if said:
            found.setdefault(lane, {})["(pending)"] = {"#set": _numbered(said)}
    found |= dict(state.monitors)
    return found | {f"({name} left)": count for name, count in state.budgets.items()}


def _numbered(said: list[str]) -> list[str]:
    """Equal texts get numbers, so that they are different elements of a set."""
    counts: dict[str, int] = {}
    found = []
    for one in said:
        counts[one] = counts.get(one, 0) + 1
        found.append(one if counts[one] == 1 else f"{one} ({counts[one]})")
    return found


def _compared(path: str, before: Data, after: Data) -> Iterator[Difference]:
    if exact(before) == exact(after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        if "#set" in before and "#set" in after:
            yield from _sets(path, before["#set"], after["#set"])
            return
        if "#map" in before and "#map" in after:
            yield from _parts(path, _mapped(before), _mapped(after), "[{}]")
            return
        if "#tup" in before and "#tup" in after:
            yield from _compared(path, before["#tup"], after["#tup"])
            return
        tags = [{key for key in value if key.startswith("#")} for value in (before, after)]
        if tags[0] == tags[1] <= {"#type"} and before.get("#type") == after.get("#type"):
            yield from _parts(path, before, after, ".{}" if path else "{}")
            return
    if isinstance(before, list) and isinstance(after, list):
        yield from _parts(path, dict(enumerate(before)), dict(enumerate(after)), "[{}]")
        return
    yield Difference(path, before, after)


def _parts(path: str, before: Mapping[Data, Data], after: Mapping[Data, Data], form: str) -> Iterator[Difference]:
    for key in dict.fromkeys([*before, *after]):
        was, now = before.get(key, _ABSENT), after.get(key, _ABSENT)
        place = path + form.format(key)
        if was is _ABSENT or now is _ABSENT:
            yield Difference(place, None if was is _ABSENT else was, None if now is _ABSENT else now)
        else:
            yield from _compared(place, was, now)


def _mapped(data: dict[str, Data]) -> dict[str, Data]:
    return {text(key): value for key, value in data["#map"]}


def _sets(path: str, before: list[Data], after: list[Data]) -> Iterator[Difference]:
    """What a set lost, and what it gained."""
    had, has = ({exact(one): one for one in some} for some in (before, after))
    for key, one in had.items():
        if key not in has:
            yield Difference(f"{path} −", one, None)
    for key, one in has.items():
        if key not in had:
            yield Difference(f"{path} +", None, one)
