"""The order of a small set is found in whichever question it first matters, also late in a search."""

from __future__ import annotations

from typing import Any

import pytest

from plait import Message, ModelError, Monitor, Pid, Process, System, action, always, check, on

NAMES = frozenset({"ann", "bob", "cyd"})
LATE = 30


def leak(count: int, place: int) -> bool:
    """From a late question on, whether one name has this place in the order of a set."""
    return count >= LATE and list(NAMES)[place] == "ann"


class Tick(Message):
    """Nothing."""


class Watch(Monitor):
    """Counts announcements."""

    place: int
    leaks: bool = False
    count: int = 0
    late: bool = False

    def observe(self, process: Pid, event: Any) -> None:
        self.count += 1
        self.late = self.leaks and leak(self.count, self.place)


class Counter(Process):
    """Counts, and leaks where the test says."""

    where: str
    place: int
    count: int = 0
    first: bool = False

    @action(when=lambda self: self.count < LATE + 2 and not (self.where == "guard" and leak(self.count, self.place)))
    def tick(self) -> None:
        self.count += 1
        self.announce("tick")
        self.first = self.where == "handler" and leak(self.count, self.place)

    @on(Tick, quorum=lambda self: 1 + (self.where == "quorum" and leak(self.count, self.place)))
    def hear(self, ticks: tuple[Tick, ...]) -> None:
        self.count = 0


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("handler", "Counter.tick"),
        ("guard", "the guard of Counter.tick"),
        ("quorum", "the quorum of Counter.hear"),
        ("property", "property calm"),
        ("monitor", "Watch.observe"),
    ],
)
def test_a_place_in_a_set_of_three_is_found_whatever_the_hash_seed(where: str, named: str, place: int) -> None:
    calm = always(lambda s: not (where == "property" and leak(s[Counter][0].count, place)), name="calm")
    system = System(
        [Counter(where=where, place=place)], monitors=[Watch(place=place, leaks=where == "monitor")], properties=[calm]
    )
    with pytest.raises(ModelError, match=f"{named} is not a function"):
        check(system, workers=1)
