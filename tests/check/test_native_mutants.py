"""A virtual machine with a fault never gives a verdict: CPython, which answers a sample of the questions, notices it.

Faults are planted in the program that the virtual machine executes (`tests/support/mutants.py`). The sample has the first
questions to each function, the first questions of each way through it, and a steady share of the others.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plait import Message, ModelError, Monitor, Pid, Process, System, action, always, check, field, final, on, reachable
from plait.cli.main import main
from plait.ir import nodes
from tests.support.agreement import ZOO
from tests.support.configurations import leaving_out
from tests.support.instances import INSTANCES
from tests.support.mutants import FAULTS, executed, places, planted
from tests.support.natively import checked

DISAGREE = "the virtual machine and CPython disagree"


# -- one fault of each kind ----------------------------------------------------------------------------------------------


class Note(Message):
    value: int


class Teller(Process):
    """Has a place for every fault."""

    n: int = -3
    half: int = 0
    log: list[int] = field(default_factory=list)
    before: int = 0

    @action(when=lambda self: self.n < 4 and self.half < 9)
    def count(self) -> None:
        self.n = self.n + 1
        self.half = self.n // 2
        copied = list(self.log)
        self.log.append(self.n)
        self.before = len(copied)
        self.announce(self.n)
        self.send(Reader.pid(0), Note(len([x for x in self.log if x > 0])))


class Reader(Process):
    got: int = 0

    @on(Note, where=lambda self, m: m.value > 0 or self.got == 0)
    def read(self, m: Note) -> None:
        self.got = m.value if m.value > 1 else 1


class Sum(Monitor):
    total: int = 0

    def observe(self, process: Pid, event: Any) -> None:
        self.total = self.total + event


@always
def halved(s: Any) -> bool:
    return all(t.half == 0 or t.half * 2 <= t.n for t in s[Teller])


@reachable
def summed(s: Any) -> bool:
    return s[Sum].total == 7 or any(r.got == 4 for r in s[Reader])


def tellers() -> System:
    return System([Teller(), Reader()], monitors=[Sum()], properties=[halved, summed])


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_an_internal_error(fault: str, workers: int) -> None:
    assert check(tellers(), workers=workers).status == "holds"
    with executed(lambda program: planted(program, FAULTS[fault], None)), pytest.raises(RuntimeError, match=DISAGREE):
        check(tellers(), workers=workers)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_one_place(fault: str) -> None:
    programs: list[nodes.Program] = []
    with executed(lambda program: programs.append(program) or program):  # type: ignore[func-returns-value]
        truth = checked(tellers(), "auto", keep_going=True)
    count = places(programs[0], FAULTS[fault])
    assert count
    noticed = 0
    for place in range(count):
        with executed(lambda program, place=place: planted(program, FAULTS[fault], place)):  # type: ignore[misc]
            try:
                assert checked(tellers(), "auto", keep_going=True).compared == truth.compared
            except RuntimeError as error:
                assert DISAGREE in str(error)  # noqa: PT017
                noticed += 1
    assert noticed


# -- the rare branch -----------------------------------------------------------------------------------------------------


class Hand(Process):
    """Nothing happens in the first sixty steps that would show a fault in the branch."""

    n: int = 0
    late: int = 0

    @action(when=lambda self: self.n < 100)
    def tick(self) -> None:
        self.n += 1
        if self.n == 60:
            self.late = 7 // 2


def test_a_fault_in_a_branch_that_is_taken_once() -> None:
    system = System([Hand()], properties=[final(lambda s: s[Hand][0].late == 3, name="late")])
    assert check(system).status == "holds"
    faulty = executed(lambda program: planted(program, FAULTS["rounds_up"], None))
    with faulty, pytest.raises(RuntimeError, match=DISAGREE):
        check(system)


# -- sets ----------------------------------------------------------------------------------------------------------------


class Chooser(Process):
    """Its answer depends on the order of a set, but only when the set has grown."""

    n: int = 0
    names: set[str] = field(default_factory=set)
    first: str = ""

    @action(when=lambda self: self.n < 20)
    def grow(self) -> None:
        self.n += 1
        if self.n > 12:
            self.names.add(chr(ord("a") + self.n))
        for name in self.names:
            self.first = name
            break


@pytest.mark.parametrize("forgets", [False, True])
def test_a_machine_that_forgets_orders_of_sets(forgets: bool) -> None:
    """CPython tries other orders too, and has the last word: it is an error of the model."""
    with leaving_out(*(["set orders"] if forgets else [])), pytest.raises(ModelError, match="not a function"):
        check(System([Chooser()], properties=[always(lambda s: True, name="fine")]))


# -- the command line ----------------------------------------------------------------------------------------------------


def test_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.py"
    file.write_text(
        textwrap.dedent("""
        from plait import Process, System, action, always

        class Counter(Process):
            n: int = 0

            @action(when=lambda self: self.n < 5)
            def up(self):
                self.n = (self.n * 2 + 3) // 2

        @always
        def small(s):
            return all(c.n < 9 for c in s[Counter])

        system = System([Counter()], properties=[small])
        """),
        encoding="utf-8",
    )
    assert main(["check", str(file)]) == 0
    with executed(lambda program: planted(program, FAULTS["rounds_up"], None)):
        assert main(["check", str(file), "--json"]) == 4
    shown = capsys.readouterr()
    assert json.loads(shown.out.splitlines()[-1])["error"]["kind"] == "internal"
    assert DISAGREE in shown.err
    assert "this is a bug in Plait" in shown.err


# -- every single fault in models of the zoo -----------------------------------------------------------------------------

MISSED = {("chain", "mixes_and_with_or"), ("conveyor_belt, crashes", "compares_wrongly")}
"""A property that can be true in few states is false there, too, after a way that it took elsewhere."""


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "name",
    [
        *("paxos", "paxos, one by one", "raft", "viewstamped", "zab", "conveyor_belt, crashes", "chain", "abd"),
        *("lamport_mutex, one by one", "three_phase_commit, one by one", "register_paxos", "gossip, tie"),
    ],
)
def test_the_zoo(name: str, fault: str) -> None:
    make: Callable[[], System] = {**ZOO, **INSTANCES}[name]
    programs: list[nodes.Program] = []
    with executed(lambda program: programs.append(program) or program):  # type: ignore[func-returns-value]
        truth = checked(make(), "auto", keep_going=True, max_states=3_000)
    missed = 0
    for place in range(places(programs[0], FAULTS[fault])):
        with executed(lambda program, place=place: planted(program, FAULTS[fault], place)):  # type: ignore[misc]
            try:
                missed += checked(make(), "auto", keep_going=True, max_states=3_000).compared != truth.compared
            except RuntimeError as error:
                assert DISAGREE in str(error)  # noqa: PT017
    assert missed <= ((name, fault) in MISSED)
