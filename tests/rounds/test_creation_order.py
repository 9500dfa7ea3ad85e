"""Processes that several others create: the program numbers them in its own order, so that this must not matter."""

from __future__ import annotations

from typing import Any

import pytest

from plait import Message, ModelError, Pid, Process, System, action, always, check, init, on, tagged
from plait.check.options import Options
from plait.check.runner import Runner
from plait.rounds.between import report_of
from plait.rounds.check import check_rounds
from plait.rounds.program.creation_order import CreationOrder, renamed
from plait.rounds.sequential import program_of


@tagged(phase="k", round="Only")
class Tick(Message):
    k: int


class Child(Process):
    owner: Pid
    luck: int = 0


class Lucky(Child):
    """What it does depends on its number."""

    @action(when=lambda self: self.luck == 0 and self.id.index == 0)
    def win(self) -> None:
        self.luck = 1


class Parent(Process):
    """Creates a process each, the first in phase 1, the second in phase 2."""

    child: Pid | None = None

    @init
    def start(self) -> None:
        self.send(self.id, Tick(self.id.index + 1))

    @on(Tick)
    def create(self, m: Tick) -> None:
        self.child = self.spawn(Child, owner=self.id)


class LuckyParent(Parent):
    def create(self, m: Tick) -> None:
        self.child = self.spawn(Lucky, owner=self.id)


class Counting(Parent):
    """Whether it is content depends on the number of its child."""

    content: bool = False

    def create(self, m: Tick) -> None:
        self.child = self.spawn(Child, owner=self.id)
        self.content = self.child.index == 0


@always
def first_is_of_first(s: Any) -> bool:
    """False if the second parent was the first to create a process."""
    return not (s[Child] and s[Child][0].owner == s[Parent][1].id and s[Parent][0].child is not None)


@always
def owned(s: Any) -> bool:
    """Each child is its owner's."""
    return all(s[child.owner].child == child.id for child in s[Child])


@always
def luck_of_the_first(s: Any) -> bool:
    late = any(child.luck and child.owner == s[Parent][1].id for child in s[Child])
    return not (late and s[Parent][0].child is not None)


@always
def the_first_is_content(s: Any) -> bool:
    return not (s[Parent][1].content and s[Parent][0].child is not None)


class Fond(Parent):
    """One of the names is special from the start."""

    fond_of: Pid = Pid("Child", 0)


class Telling(Parent):
    """Names a process that it was not told of."""

    favourite: Pid | None = None

    def create(self, m: Tick) -> None:
        self.child = self.spawn(Child, owner=self.id)

    @action(when=lambda self: self.favourite is None and self.child is None)
    def tell(self) -> None:
        self.favourite = Pid("Child", 0)


@always
def the_second_has_no_fond_child(s: Any) -> bool:
    second = s[Parent][1]
    return second.child is None or second.child != second.fond_of or s[Parent][0].child is None


@always
def the_second_has_no_favourite(s: Any) -> bool:
    second = s[Parent][1]
    return second.child is None or second.child != second.favourite or s[Parent][0].child is None


def family(parent: type[Parent], child: type[Child], prop: Any) -> System:
    return System([parent(), parent()], spare={child: 2}, properties=[prop], rounds=["Only"])


def differs(protocol: System, phases: int) -> bool | None:
    """Whether the search between rounds finds that numbers may matter."""
    program = program_of(protocol, phases=phases)
    return report_of(program, Runner(protocol, native="auto"), Options(explore=True).completed()).numbers_matter


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parent", "child", "prop", "what"),
    [
        (Parent, Child, first_is_of_first, "property first_is_of_first"),
        (LuckyParent, Lucky, luck_of_the_first, "the guard of Lucky.win"),
        (Counting, Child, the_first_is_content, "Counting.create"),
        (Fond, Child, the_second_has_no_fond_child, "the initial state"),
        (Telling, Child, the_second_has_no_favourite, "Telling.tell"),
    ],
)
def test_numbers_that_matter_are_refused(
    parent: type[Parent], child: type[Child], prop: Any, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = family(parent, child, prop)
    assert check(protocol).status == "violated"
    assert differs(protocol, 3)
    with pytest.raises(
        ModelError, match=rf"create processes of {child.__name__} in any order.*{what}.* depends on their numbers"
    ):
        check_rounds(protocol, phases=3)
    # Without the look at exchanged names the program would miss it.
    monkeypatch.setattr(CreationOrder, "several", None)
    assert check_rounds(protocol, phases=3).status == "holds"


@pytest.mark.slow
def test_numbers_that_do_not_matter_are_allowed() -> None:
    assert check_rounds(family(Parent, Child, owned), phases=2).status == check(family(Parent, Child, owned)).status
    assert check_rounds(family(Parent, Child, owned), phases=2).status == "holds"
    assert differs(family(Parent, Child, owned), 2) is False


def test_one_creator_keeps_its_order() -> None:
    protocol = System([LuckyParent()], spare={Lucky: 2}, properties=[owned], rounds=["Only"])
    assert check_rounds(protocol, phases=3).status == "holds"


def test_too_many_orders_are_not_compared() -> None:
    protocol = System([Parent(), Parent()], spare={Child: 5}, properties=[owned], rounds=["Only"])
    with pytest.raises(ModelError, match="too many orders to compare"):
        check_rounds(protocol, phases=3)


def test_names_are_exchanged_everywhere() -> None:
    a, b, c = Pid("Child", 0), Pid("Child", 1), Pid("Parent", 0)
    names = {a: b, b: a}
    assert renamed([a, (b, c), {a}, {b: [a]}, 1, "a"], names) == [b, (a, c), {b}, {a: [b]}, 1, "a"]
