"""Searches whose states keep growing: what grows is named, and a bound is proposed."""

from __future__ import annotations

from typing import Any

import pytest

from plait import (
    Message,
    Process,
    System,
    action,
    always,
    check,
    field,
    on,
)
from plait.check.growth import Growth, Place, measured
from plait.check.progress import Progress
from plait.cli.progress import ProgressLine
from plait.model.loading.loader import load


class Item(Message):
    number: int


class Slow(Process):
    got: int = 0

    @on(Item)
    def get(self, m: Item) -> None:
        self.got = m.number


class Chatter(Process):
    """Sends and logs without end."""

    log: list[int] = field(default_factory=list)

    @action
    def talk(self) -> None:
        self.send(Slow.pid(0), Item(7))
        self.log.append(1)


def test_what_keeps_growing_is_named_with_a_bound() -> None:
    seen: list[Progress] = []
    system = System([Chatter(), Slow()], properties=[always(lambda s: True, name="it")])
    verdict = check(system, max_states=30_000, progress=seen.append)
    assert verdict.bound == "max-states"
    said = "\n".join(verdict.warnings)
    assert "len(Chatter.log) keeps growing (now " in said
    assert "System(..., within=lambda s: all(len(p.log) <= " in said
    assert "the number of Item messages that are pending for Slow keeps growing" in said
    assert "unordered(capacity=" in said
    assert all(isinstance(p.growing, tuple) for p in seen)


def test_the_bound_that_is_proposed_ends_the_search() -> None:
    class Clocks(Process):
        clock: dict[str, int] = field(default_factory=lambda: {"a": 0})

        @action
        def tick(self) -> None:
            self.clock["a"] += 1

    def made(**more: Any) -> System:
        return System([Clocks(), Clocks()], properties=[always(lambda s: True, name="it")], **more)

    (said,) = check(made(), max_states=60_000).warnings
    proposed = said.partition("within=")[2].removesuffix(")")
    assert proposed.startswith("lambda s: all(max(p.clock.values(), default=0) <= ")
    bounded = check(made(within=eval(proposed, {"Clocks": Clocks})), max_states=60_000)
    assert (bounded.status, bounded.limit) == ("holds", None)


def test_a_complete_search_says_nothing_of_growth() -> None:
    class Counter(Process):
        n: int = 0

        @action(when=lambda self: self.n < 40)
        def up(self) -> None:
            self.n += 1

    assert check(System([Counter(), Counter()], properties=[always(lambda s: True, name="it")])).warnings == []


def test_only_what_grew_in_both_halves_keeps_growing() -> None:
    def said(sizes: list[int]) -> list[str]:
        growth = Growth.__new__(Growth)
        growth._largest = {}
        for doubling, size in enumerate(sizes):
            growth.note(Place("Node", None, "n", "{}"), size, doubling)
        return growth.growing()

    assert said([0, 2, 4, 6, 8, 10, 12, 14, 16]) != []
    assert said([0, 4, 8, 12, 16, 20, 24, 24, 24, 24, 24]) == []  # it has stopped
    assert said([0, 0, 0, 0, 0, 0, 0, 27, 28]) == []  # it has only begun
    assert said([0, 10, 20, 30]) == []  # too few
    assert said([0, 1, 2, 3, 4, 5, 6, 7, 8]) == []  # too small


@pytest.mark.parametrize("name", ["paxos", "raft", "zab", "pbft", "lamport_mutex", "abd", "chain", "view_change"])
@pytest.mark.parametrize("most", [1_000, 20_000])
def test_a_finite_model_is_not_said_to_grow(name: str, most: int) -> None:
    warnings = check(load(name), max_states=most).warnings
    assert not [said for said in warnings if "keeps growing" in said]


def test_what_is_measured() -> None:
    assert dict(measured(True)) == dict(measured("text")) == {}
    assert dict(measured({"a": -7})) == {"len({})": 1, "max({}.values(), default=0)": 7}
    assert dict(measured(Item(3))) == {"{}.number": 3}


def test_the_progress_line_says_it_once(capsys: pytest.CaptureFixture[str]) -> None:
    def progress(now: int) -> Progress:
        return Progress("bfs", 1, 1, 1, 1, 1, 1, 1.0, 0, (f"Node.n keeps growing (now {now}): bound it",))

    with ProgressLine(terminal=False) as shown:
        shown(progress(7))
        shown(progress(8))
    said = capsys.readouterr().err
    assert said.count("keeps growing") == 1
    assert "now 7" in said
