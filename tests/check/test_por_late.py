"""Partial-order reduction where something happens so late that no walk sees it: there must be a class for it anyway."""

from __future__ import annotations

from typing import Any

import pytest

from plait import Message, Process, System, action, always, check, final, init, on


class Note(Message): ...


class Door(Process):
    closed: bool = False
    entered: bool = False

    @action(when=lambda self: not self.closed)
    def close(self) -> None:
        self.closed = True

    @on(Note, where=lambda self, m: not self.closed)
    def enter(self, m: Note) -> None:
        self.entered = True


class Slow(Process):
    """Sends after so many steps, which a random walk hardly ever sees happen first."""

    steps: int
    done: int = 0
    side: int = 0

    @action(when=lambda self: self.done < self.steps)
    def step(self) -> None:
        self.done += 1
        if self.steps > 1:
            self.side = self.choose([0, 1])
        if self.done == self.steps:
            self.send(self.ids(Door)[0] if self.ids(Door) else Counter.pid(0), Note())


@always
def nobody_enters(s: Any) -> bool:
    return not s[Door][0].entered


class Counter(Process):
    counted: tuple[int, ...] = ()

    @on(Note, quorum=2, where=lambda self, m: not self.counted)
    def count(self, notes: tuple[Note, ...]) -> None:
        self.counted = tuple(note.sender.index for note in notes)


@always
def the_slow_one_is_late(s: Any) -> bool:
    return 2 not in s[Counter][0].counted


class Ping(Message): ...


class Pong(Message): ...


class Asker(Process):
    first: str = ""

    @init
    def ask(self) -> None:
        self.send(Worker.pid(0), Ping())

    @on(Pong)
    def note(self, m: Pong) -> None:
        self.first = self.first or m.sender.role


class Other(Process):
    @init
    def answer(self) -> None:
        self.send(Asker.pid(0), Pong())


class Boss(Process):
    hired: bool = False

    @action(when=lambda self: not self.hired)
    def hire(self) -> None:
        self.hired = True
        self.spawn(Worker)


class Worker(Process):
    @on(Ping)
    def answer(self, m: Ping) -> None:
        self.send(m.sender, Pong())


@final
def the_worker_is_second(s: Any) -> bool:
    return s[Asker][0].first == "Other"  # type: ignore[no-any-return]


LATE = {
    "a handler that was never seen to run ": System([Door(), Slow(steps=25)], properties=[nobody_enters]),
    "senders that were never seen together have no class": System(
        [Counter(), Slow(steps=1), Slow(steps=1), Slow(steps=20)], properties=[the_slow_one_is_late]
    ),
    "a process with mail waits for its birth": System(
        [Asker(), Other(), Boss()], spare={Worker: 1}, properties=[the_worker_is_second]
    ),
}


@pytest.mark.parametrize("name", LATE)
def test_without_reduction_it_is_violated(name: str) -> None:
    assert check(LATE[name]).status == "violated"


@pytest.mark.slow
@pytest.mark.parametrize("search", ["bfs", "dfs"])
@pytest.mark.parametrize("split", ["none", "reply", "quorum", "combined"])
@pytest.mark.parametrize("name", LATE)
def test_with_reduction_it_is_violated(name: str, split: Any, search: Any) -> None:
    assert check(LATE[name], reduce="por", split=split, search=search).status == "violated"
