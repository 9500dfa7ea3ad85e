"""What keeps growing in a search: numbers and containers in fields and messages, and inboxes.

A model without a bound has infinitely many states, and its search does not end. The engine keeps a sample of the
local states and inboxes, in the order in which it met them. A value *keeps growing* if the largest one grew in the
first and in the second half of the last doublings of their number. This is no proof, because it may stop later. So it
is said while the search runs, or if a limit ended it; a search that is complete says nothing.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

from plait.check.runner import Runner
from plait.model.shared import Shared

DOUBLINGS = 6
LEAST = 16
"""A smaller value is not said to grow: ballots, rounds and inboxes of finite models grow up to here."""
MOST_NAMED = 5
_SHARED = "shared"
"""In place of a message: the field of a shared object."""


class Place(NamedTuple):
    """What is measured: an expression, in a field of a role, or of a type of messages that are pending for a role."""

    role: str
    type: str | None
    field: str | None
    """None: the number of pending messages of this type."""
    expression: str
    """With {} for the field."""


class Growth:
    """Watches the sample of a running search."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._store = runner.engine.store  # the engine itself cannot be asked while it searches
        self._seen = 0
        self._largest: dict[Place, list[int]] = {}
        """For each doubling of the number of local states, the largest value that was met up to its end."""

    def notes(self) -> list[str]:
        """What keeps growing so far, and the bound to give, as text."""
        last = 0
        for number, process, local, inbox in self._store.sample()[self._seen :]:
            self._seen, last = self._seen + 1, number.bit_length()
            for place, size in self._sizes(process, local, inbox):
                self.note(place, size, last)
        return self.growing()

    def note(self, place: Place, size: int, doubling: int) -> None:
        """A value was met, in this doubling of the number of local states."""
        largest = self._largest.setdefault(place, [0])
        largest += [largest[-1]] * (doubling + 1 - len(largest))
        largest[doubling] = max(largest[doubling], size)

    def growing(self) -> list[str]:
        """What keeps growing, as text."""
        last = max(map(len, self._largest.values()), default=0)
        found = []
        for place, known in self._largest.items() if last > DOUBLINGS else ():
            sizes = known + known[-1:] * (last - len(known))
            first, middle, now = sizes[-1 - DOUBLINGS], sizes[-1 - DOUBLINGS // 2], sizes[-1]
            if first < middle < now and now >= LEAST:
                found.append((now / max(1, first), _text(place, now, max(1, first))))
        return [text for _, text in sorted(found, key=lambda one: -one[0])[:MOST_NAMED]]

    def _sizes(self, process: int, local: int, inbox: int) -> Iterator[tuple[Place, int]]:
        runner, system = self._runner, self._runner.system
        decode = runner.tabulation.codec.decode
        content = self._store.local(local)
        if process >= len(system.classes):
            cell = system.cells[process - len(system.classes)]
            for expression, size in measured(decode(content[1:])[0]):
                yield Place(cell.shared.role, _SHARED, cell.name, expression), size
            return
        cls = system.classes[process]
        if len(content) > 1:
            for name, value in zip(cls.__plait_fields__, decode(content[1:]), strict=True):
                for expression, size in measured(value):
                    yield Place(cls.__name__, None, name, expression), size
        counts: Counter[str] = Counter()
        for _, _, sent in self._store.inbox(inbox):
            message: Any = decode(sent)
            counts[type(message).__name__] += 1
            for field in dataclasses.fields(message):
                for expression, size in measured(getattr(message, field.name)):
                    yield Place(cls.__name__, type(message).__name__, field.name, expression), size
        for kind, count in counts.items():
            yield Place(cls.__name__, kind, None, ""), count


def measured(value: object, inside: str = "{}") -> Iterator[tuple[str, int]]:
    """The sizes of a value: a number as it is, a container by its length and by the largest number in it.

    >>> dict(measured([3, 5]))
    {'len({})': 2, 'max({}, default=0)': 5}
    """
    if isinstance(value, int) and not isinstance(value, bool | Enum):
        yield inside, abs(value)
    elif isinstance(value, list | tuple | deque | set | frozenset | dict):
        yield f"len({inside})", len(value)
        inner = f"{inside}.values()" if isinstance(value, dict) else inside
        numbers = [n for n in (value.values() if isinstance(value, dict) else value) if type(n) is int]
        if numbers:
            yield f"max({inner}, default=0)", max(map(abs, numbers))
    elif dataclasses.is_dataclass(value) and inside == "{}" and not isinstance(value, Shared):
        for field in dataclasses.fields(value):
            yield from measured(getattr(value, field.name), f"{{}}.{field.name}")


def _text(place: Place, now: int, bound: int) -> str:
    role, kind, field, expression = place
    if field is None:
        return (
            f"the number of {kind} messages that are pending for {role} keeps growing (now {now:,}): if it has no bound, "
            f"the search does not end. Bound the channels, for example unordered(capacity={bound}), or the search: "
            f"System(..., within=lambda s: all(len(p.inbox) <= {bound} for p in s[{role}]))"
        )
    if kind == _SHARED:
        return (
            f"{expression.format(f'{role}.{field}')} keeps growing (now {now:,}): if it has no bound, the search does not "
            f"end. Bound the search: System(..., within=lambda s: {expression.format(f's[{role}].{field}')} <= {bound})"
        )
    owner = kind or role
    one, each = ("m", f"for m in s.messages if isinstance(m, {kind})") if kind else ("p", f"for p in s[{role}]")
    return (
        f"{expression.format(f'{owner}.{field}')} keeps growing (now {now:,}): if it has no bound, the search does not end. "
        f"Bound the search: System(..., within=lambda s: all({expression.format(f'{one}.{field}')} <= {bound} {each}))"
    )
