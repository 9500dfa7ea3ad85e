"""Odd little models, each with an answer that was worked out by hand: loops, ends, joins, fairness of what never happens."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from plait import (
    F,
    G,
    Message,
    Pid,
    Process,
    System,
    X,
    action,
    always_eventually,
    check,
    crash_recovery,
    crash_stop,
    duplicating,
    eventually,
    fifo,
    init,
    leads_to,
    ltl,
    on,
    predicate,
    stable,
    strong,
    unordered,
    weak,
)
from plait.check.explain.replay import replay


class Poll(Process):
    """Looks again and again, and nothing changes: a loop of one state that is no step."""

    done: bool = False

    @action
    def look(self) -> None:
        """Nothing."""

    @action(when=lambda self: not self.done)
    def act(self) -> None:
        self.done = True


class Idle(Process):
    """Can do nothing at all."""

    n: int = 0


class Chooser(Process):
    """Tosses a coin until it shows heads; tails is where it was, or not."""

    heads: bool = False
    tosses: int = 0

    @action(when=lambda self: not self.heads)
    def toss(self) -> None:
        self.heads = self.choose([True, False])
        self.tosses = 1 - self.tosses


class Clock(Process):
    """Goes round."""

    hour: int = 0

    @action
    def tick(self) -> None:
        self.hour = (self.hour + 1) % 3


class Sleeper(Process):
    """Has a handler that is never enabled, and one that is only at one hour of its own clock."""

    hour: int = 0
    awake: bool = False

    @action(when=lambda self: not self.awake)
    def turn(self) -> None:
        self.hour = (self.hour + 1) % 3

    @action(when=lambda self: self.hour == 1 and not self.awake)
    def wake(self) -> None:
        self.awake = True

    @action(when=lambda self: self.hour > 5)
    def never(self) -> None:
        self.hour = 0


class Ping(Message):
    """A message."""

    n: int = 0


class Target(Process):
    """Takes messages, or does not."""

    got: int = 0
    deaf: bool = False

    @action
    def toggle(self) -> None:
        self.deaf = not self.deaf

    @on(Ping, where=lambda self, m: not self.deaf)
    def take(self, m: Ping) -> None:
        self.got = 1


class Post(Process):
    """Sends one message at the beginning."""

    to: Pid

    @init
    def send_it(self) -> None:
        self.send(self.to, Ping())


class Echo(Process):
    """Sends every message back, for ever."""

    turns: int = 0

    @on(Ping)
    def back(self, m: Ping) -> None:
        self.turns = 1 - self.turns
        self.send(m.sender, Ping(m.n))


class Server(Process):
    """Begins with a message to the echo; a second client of its own waits in vain, or not."""

    turns: int = 0
    served: bool = False

    @init
    def begin(self) -> None:
        self.send(Echo.pid(0), Ping(0))
        self.send(self.id, Ping(1))

    @on(Ping, where=lambda self, m: m.n == 0)
    def back(self, m: Ping) -> None:
        self.turns = 1 - self.turns
        self.send(Echo.pid(0), m)

    @on(Ping, where=lambda self, m: m.n == 1)
    def serve(self, m: Ping) -> None:
        self.served = True


class Diamond(Process):
    """Two ways that meet: one by a, one by b; then an end."""

    at: str = "top"

    @action(when=lambda self: self.at == "top")
    def a(self) -> None:
        self.at = "a"

    @action(when=lambda self: self.at == "top")
    def b(self) -> None:
        self.at = "b"

    @action(when=lambda self: self.at in "ab")
    def down(self) -> None:
        self.at = "bottom"


class Work(Process):
    """One thing to do."""

    done: bool = False

    @action(when=lambda self: not self.done)
    def work(self) -> None:
        self.done = True


class Relay(Process):
    """Two states in which either one or the other of two handlers is enabled: neither stays enabled."""

    side: int = 0
    out: bool = False

    @action(when=lambda self: not self.out)
    def cross(self) -> None:
        self.side = 1 - self.side

    @action(when=lambda self: self.side == 0 and not self.out)
    def left(self) -> None:
        self.out = True

    @action(when=lambda self: self.side == 1 and not self.out)
    def right(self) -> None:
        self.out = True


class Odd(NamedTuple):
    """A model, what is asked, and the answer; `loop` is whether a violating run goes on for ever."""

    processes: list[Process]
    wanted: Any
    expected: str
    loop: bool | None = None
    options: Mapping[str, Any] = MappingProxyType({})


def of(cls: type[Process], test: Any) -> Any:
    return lambda s: test(s[cls][0])


acted = eventually(of(Poll, lambda p: p.done), name="acted")
heads = eventually(of(Chooser, lambda p: p.heads), name="heads")
awake = eventually(of(Sleeper, lambda p: p.awake), name="awake")
got = eventually(of(Target, lambda p: p.got == 1), name="got")
served = eventually(of(Server, lambda p: p.served), name="served")
out = eventually(of(Relay, lambda p: p.out), name="out")
worked = eventually(of(Work, lambda p: p.done), name="worked")
at = {where: predicate(of(Diamond, lambda p, where=where: p.at == where)) for where in ("top", "a", "b", "bottom")}
noon = predicate(of(Clock, lambda p: p.hour == 0))


def post(**options: Any) -> tuple[list[Process], dict[str, Any]]:
    return [Target(), Post(to=Target.pid(0))], options


ODD = {
    # A step that changes nothing is none: the only thing that can happen is the act.
    "a process that polls does not keep itself from acting": Odd([Poll()], acted, "holds"),
    "a system without steps stays where it is": Odd(
        [Idle()], eventually(of(Idle, lambda p: p.n == 1)), "violated", False
    ),
    "what is true at once is true some time": Odd([Idle()], eventually(of(Idle, lambda p: p.n == 0)), "holds"),
    "a terminal state satisfies X of what it satisfies": Odd([Idle()], ltl(X(of(Idle, lambda p: p.n == 0))), "holds"),
    "again and again, in a terminal state": Odd([Work()], always_eventually(of(Work, lambda p: p.done)), "holds"),
    # No fairness of handlers makes a coin fair: each toss happens, and shows tails.
    "a coin may show tails for ever": Odd([Chooser()], heads, "violated", True, {"fairness": [strong(Chooser)]}),
    # The clock never stops; nothing is terminal, although the other process has nothing to do.
    "the end of one process is no end": Odd([Work(), Clock()], ltl(F(G(noon))), "violated", True),
    "a loop comes by everything in it": Odd([Clock()], always_eventually(noon), "holds"),
    # wake is enabled at one hour of three: not for ever, but again and again.
    "weak fairness does not wake": Odd([Sleeper()], awake, "violated", True, {"fairness": [weak(Sleeper.wake)]}),
    "strong fairness wakes": Odd([Sleeper()], awake, "holds", None, {"fairness": [strong(Sleeper.wake)]}),
    "fairness of the process is met by turning": Odd(
        [Sleeper()], awake, "violated", True, {"fairness": [strong(Sleeper)]}
    ),
    # An assumption about what is never enabled is met by every run.
    "fairness of what never happens": Odd([Sleeper()], awake, "violated", True, {"fairness": [strong(Sleeper.never)]}),
    # Each handler is enabled half of the time: weak assumptions about both demand nothing, a strong one of either is enough.
    "two that take turns, weakly": Odd(
        [Relay()], out, "violated", True, {"fairness": [weak(Relay.left), weak(Relay.right)]}
    ),
    "two that take turns, strongly": Odd([Relay()], out, "holds", None, {"fairness": [strong(Relay.left)]}),
    # The guard takes the message now and then only: it does not stay deliverable.
    "now and then deliverable, weakly": Odd(post()[0], got, "violated", True, {"fairness": [weak(Ping)]}),
    "now and then deliverable, strongly": Odd(post()[0], got, "holds", None, {"fairness": [strong(Ping)]}),
    # The handler for both is the same process's; the messages are told apart, so the one that waits is delivered.
    "a message that waits behind others": Odd(
        [Server(), Echo()], served, "violated", True, {"fairness": [weak(Server)]}
    ),
    "is delivered, if each message is": Odd([Server(), Echo()], served, "holds", None, {"fairness": [weak(Message)]}),
    "in a queue the echo is first": Odd(
        [Server(), Echo()], served, "holds", None, {"fairness": [weak(Message)], "network": fifo()}
    ),
    # A set keeps the message: it is deliverable for ever, and delivering it again changes nothing, so that it is no step.
    "a message that stays after it was taken": Odd(
        post()[0], got, "violated", True, {"fairness": [weak(Ping)], "network": duplicating()}
    ),
    # A loss needs not happen, but may; fairness of messages is about those that stay.
    "a message may be lost": Odd(
        post()[0], got, "violated", True, {"fairness": [strong(Ping)], "network": unordered(losses=1)}
    ),
    # Each state is reached in two ways; a way by b satisfies neither F a nor its consequences.
    "a join does not forget the way": Odd([Diamond()], eventually(at["a"]), "violated", False),
    "one of both": Odd([Diamond()], ltl(F(at["a"]) | F(at["b"])), "holds"),
    "the join leads to the end": Odd([Diamond()], leads_to(at["top"], at["bottom"]), "holds"),
    "stable at the end": Odd([Diamond()], stable(at["bottom"]), "holds"),
    "not stable before": Odd([Diamond()], stable(at["a"]), "violated", False),
    # A crash ends the worker: fairness of its steps demands nothing any more.
    "a crashed process owes nothing": Odd(
        [Work()], worked, "violated", False, {"fairness": [strong(Work)], "faults": [crash_stop(budget=1)]}
    ),
    # It comes back, or not: a recovery is a fault's other half, and need not happen.
    "a process that is down need not come back": Odd(
        [Work()], worked, "violated", False, {"fairness": [strong(Work)], "faults": [crash_recovery(budget=1)]}
    ),
    # While one is down, the other goes on for ever.
    "nor does the other wait for it": Odd(
        [Work(), Clock()],
        worked,
        "violated",
        True,
        {"fairness": [weak(Process)], "faults": [crash_stop(Work, budget=1)]},
    ),
    "without faults it is fair": Odd([Work(), Clock()], worked, "holds", None, {"fairness": [weak(Process)]}),
}


@pytest.mark.parametrize("name", ODD)
def test_odd(name: str) -> None:
    odd = ODD[name]
    system = System(odd.processes, properties=[odd.wanted], **odd.options)
    found = check(system)
    assert found.status == odd.expected
    if odd.expected == "violated":
        assert found.trace is not None
        assert (found.trace.loop is not None) == odd.loop
        assert len(list(replay(system, found.trace))) == len(found.trace)


@pytest.mark.parametrize("name", ODD)
def test_odd_with_history(name: str) -> None:
    """What a process consumed last is no part of a run."""
    odd = ODD[name]
    system = System(odd.processes, properties=[odd.wanted], **odd.options)
    found = check(system, history="last", search="dfs")
    assert found.status == odd.expected
    if found.trace is not None:
        assert (found.trace.loop is not None) == odd.loop
        assert len(list(replay(system, found.trace))) == len(found.trace)


@pytest.mark.parametrize("name", [name for name, odd in ODD.items() if not odd.options.get("fairness")])
def test_odd_with_reductions(name: str) -> None:
    odd = ODD[name]
    if "X" in str(odd.wanted.formula).split():
        return
    assert check(System(odd.processes, properties=[odd.wanted], **odd.options), reduce="por").status == odd.expected
    assert check(System(odd.processes, properties=[odd.wanted], **odd.options), reduce="auto").status == odd.expected


class Failing(Process):
    """Its second step fails."""

    x: int = 0

    @action(when=lambda self: self.x == 0)
    def go(self) -> None:
        self.x = 1

    @action(when=lambda self: self.x == 1)
    def fail(self) -> None:
        raise AssertionError


@pytest.mark.parametrize("reduce", ["none", "symmetry", "por"])
def test_a_run_whose_next_step_fails_ends_there(reduce: str) -> None:
    never = eventually(lambda s: False, name="never")
    system = System([Failing(), Failing()], symmetric=[Failing], properties=[never])
    verdict = check(system, reduce=reduce, keep_going=True)
    assert {p.name: p.status for p in verdict.properties} == {"never": "violated", "assertions": "violated"}
    for result in verdict.properties:
        assert result.trace is not None
        assert len(list(replay(system, result.trace))) == len(result.trace)
