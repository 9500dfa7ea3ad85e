"""Every counterexample replays, also from its file; a stale or edited trace is refused with the step, never a crash."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from plait import (
    Message,
    Process,
    System,
    Trace,
    TraceError,
    action,
    always,
    check,
    crash_recovery,
    crash_stop,
    fifo,
    final,
    on,
    reachable,
)
from plait.check.explain.replay import replay
from plait.kernel.trace import Event
from plait.protocols.abd import abd
from plait.protocols.chang_roberts import chang_roberts
from plait.protocols.mcpaxos import mcpaxos
from plait.protocols.paxos import paxos
from plait.protocols.ping_pong import ping_pong
from plait.protocols.register_paxos import register_paxos
from plait.protocols.single_copy import single_copy
from plait.protocols.two_phase_commit import two_phase_commit
from plait.report.itf import load_trace, save_trace
from tests.oracle.explorer import Exploration
from tests.oracle.random_systems import explored_systems

TWINS: dict[str, Callable[[], System]] = {
    "paxos, acceptor": lambda: paxos(faulty="acceptor"),
    "paxos, learner": lambda: paxos(faulty="learner"),
    "paxos, learner, one by one": lambda: paxos(faulty="learner", quorum=False),
    "two_phase_commit": lambda: two_phase_commit(faulty="hasty"),
    "single_copy": lambda: single_copy(servers=2),
    "abd": lambda: abd(clients=1, servers=3, faulty="hasty"),
    "register_paxos": lambda: register_paxos(faulty="stubborn"),
    "ping_pong": lambda: ping_pong(network="duplicating", faulty="ponger"),
    "mcpaxos": lambda: mcpaxos(faulty="leader"),
    "chang_roberts": lambda: chang_roberts(faulty="greedy"),
}


@pytest.mark.slow
@pytest.mark.parametrize("search", ["bfs", "dfs", "random"])
@pytest.mark.parametrize("name", TWINS)
def test_faulty_twins_replay(name: str, search: Any, tmp_path: Path) -> None:
    verdict = check(TWINS[name](), search=search, seed=3)
    assert verdict.status == "violated"
    assert verdict.trace is not None
    file = tmp_path / "trace.itf.json"
    save_trace(verdict.trace, file)
    for trace in (verdict.trace, load_trace(file)):
        assert list(replay(TWINS[name](), trace)) == without_pictures(verdict.trace.events)


def without_pictures(events: list[Event]) -> list[Event]:
    """A replay draws no views."""
    replace = msgspec.structs.replace
    return [replace(event, state=replace(event.state, views=msgspec.UNSET)) for event in events]


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=150))
def test_random_systems_replay(pair: tuple[System, Exploration]) -> None:
    for search in ("bfs", "dfs"):
        for result in check(pair[0], search=search, keep_going=True).properties:  # type: ignore[arg-type]
            if result.trace is not None:
                assert list(replay(pair[0], result.trace)) == result.trace.events


# -- a model that has changed ----------------------------------------------------------------------------------------


class Coin(Message):
    value: int


class Giver(Process):
    left: int = 2

    @action(when=lambda self: self.left > 0)
    def give(self) -> None:
        self.left -= 1
        self.send(Taker.pid(0), Coin(self.choose([1, 5])))


class Taker(Process):
    sum: int = 0

    @on(Coin)
    def take(self, m: Coin) -> None:
        self.sum += m.value


@always
def poor(s: Any) -> bool:
    return s.processes[1].sum < 6


@final
def balanced(s: Any) -> bool:
    return s.processes[1].sum in (2, 10)


@reachable
def rich(s: Any) -> bool:
    return s.processes[1].sum == 10


def coins(*, giver: Process | None = None, taker: Process | None = None, **system: Any) -> System:
    properties = system.pop("properties", [poor, balanced, rich])
    return System([giver or Giver(), taker or Taker()], properties=properties, **system)


def found(name: str) -> Trace:
    trace = next(p.trace for p in check(coins(), keep_going=True).properties if p.name == name)
    assert trace is not None
    return trace


def refused(system: System, trace: Trace) -> str:
    with pytest.raises(TraceError) as caught:
        list(replay(system, trace))
    assert caught.value.hint
    return caught.value.message


def renamed(name: str, cls: type[Process]) -> Process:
    """A process of a changed class that still has its old name."""
    cls.__name__ = name
    return cls()


class Careful(Process):
    left: int = 2

    @action(when=lambda self: self.left > 1)
    def give(self) -> None:
        self.left -= 1
        self.send(Taker.pid(0), Coin(self.choose([1, 5])))


class Reckless(Process):
    left: int = 2

    @action
    def give(self) -> None:
        self.left -= 1
        self.send(Taker.pid(0), Coin(self.choose([1, 5])))


class Richer(Process):
    left: int = 2

    @action(when=lambda self: self.left > 0)
    def give(self) -> None:
        self.left -= 1
        self.send(Taker.pid(0), Coin(self.choose([1, 6])))


class Twice(Process):
    sum: int = 0

    @on(Coin)
    def take(self, m: Coin) -> None:
        self.sum += 2 * m.value


def test_the_traces_are_as_expected() -> None:
    for name in ("poor", "balanced", "rich"):
        assert len(list(replay(coins(), found(name)))) == 4


def test_a_changed_model_is_noticed() -> None:
    trace = found("poor")
    assert "the initial state differs: Giver0 left was 2 in the trace and is 3 now" in refused(
        coins(giver=Giver(left=3)), trace
    )
    assert "is not possible any more" in refused(coins(giver=renamed("Giver", Careful)), trace)
    assert "step" in refused(coins(giver=renamed("Giver", Careful)), trace)
    assert "is not possible any more" in refused(coins(giver=renamed("Giver", Richer)), trace)
    assert "Taker0 sum was" in refused(coins(taker=renamed("Taker", Twice)), trace)
    extra = System([Giver(), Taker(), Taker()], properties=[poor])
    assert "the initial state differs: process Taker1 is new" in refused(extra, trace)
    assert "process Giver0 is missing" in refused(System([Taker()], properties=[poor]), trace)


def test_a_removed_guard_makes_the_end_no_end() -> None:
    """The run itself is still possible: without a guard there are more runs. But it does not end there."""
    giver = renamed("Giver", Reckless)
    assert len(list(replay(coins(giver=giver), found("poor")))) == 4
    assert "(after step 4) is not terminal any more" in refused(coins(giver=giver), found("balanced"))


def test_a_fixed_property_is_noticed() -> None:
    fixed = always(lambda s: True, name="poor")
    assert "(after step 4) no longer decides poor" in refused(coins(properties=[fixed]), found("poor"))
    assert "no property 'poor'" in refused(coins(properties=[rich]), found("poor"))
    never = reachable(lambda s: False, name="rich")
    assert "no longer decides rich" in refused(coins(properties=[never]), found("rich"))


# -- a trace that has changed ----------------------------------------------------------------------------------------

Edit = Callable[[Any], None]


def edited(trace: Trace, edit: Edit) -> Trace:
    data = msgspec.to_builtins(trace)
    edit(data)
    return msgspec.convert(data, Trace)


EDITS: dict[str, Edit] = {
    "a field": lambda t: t["events"][1]["state"]["fields"]["Giver0"].update(left=7),
    "the type of a field": lambda t: t["initial"]["fields"]["Taker0"].update(sum=False),
    "a malformed field": lambda t: t["events"][1]["state"]["fields"]["Giver0"].update(left={"#tup": 3}),
    "a field of the start": lambda t: t["initial"]["fields"]["Giver0"].update(left=7),
    "an unknown field": lambda t: t["initial"]["fields"]["Giver0"].update(right=7),
    "a missing field": lambda t: t["initial"]["fields"]["Giver0"].clear(),
    "a missing process": lambda t: t["events"][0]["state"]["fields"].pop("Taker0"),
    "a new process": lambda t: t["events"][0]["state"]["fields"].update(Ghost0={}),
    "a missing inbox": lambda t: [e["state"]["pending"].pop("Taker0") for e in t["events"]],
    "an unknown inbox": lambda t: t["events"][0]["state"]["pending"].update(Ghost0=[0]),
    "a lane": lambda t: t["events"][0].update(lane="Ghost0"),
    "a label": lambda t: t["events"][0].update(label="steal"),
    "a kind": lambda t: t["events"][0].update(kind="crash"),
    "a choice": lambda t: t["events"][0].update(choices=[3]),
    "no choice": lambda t: t["events"][0].update(choices=[]),
    "a malformed choice": lambda t: t["events"][0].update(choices=[{"#map": 3}]),
    "a message": lambda t: t["messages"][0]["fields"].update(value=3),
    "a message's type": lambda t: t["messages"][0].update(type="Bill"),
    "a message's sender": lambda t: t["messages"][0].update(sender="Ghost0"),
    "a message's receiver": lambda t: t["messages"][0].update(receiver="Giver0"),
    "a message's id": lambda t: t["messages"][0].update(id=77),
    "no messages": lambda t: t["messages"].clear(),
    "consumed": lambda t: next(e for e in t["events"] if e["consumed"]).update(consumed=[99]),
    "consumed nothing": lambda t: next(e for e in t["events"] if e["consumed"]).update(consumed=[]),
    "sent": lambda t: t["events"][0].update(sent=[-1]),
    "sent nothing": lambda t: t["events"][0].update(sent=[]),
    "announced": lambda t: t["events"][0].update(announced=["hello"]),
    "spawned": lambda t: t["events"][0].update(spawned=["Ghost0"]),
    "changed": lambda t: t["events"][0].update(changed={}),
    "pending": lambda t: t["events"][0]["state"]["pending"].update(Taker0=[5]),
    "pending twice": lambda t: t["events"][0]["state"]["pending"].update(Taker0=[0, 0]),
    "a status": lambda t: t["events"][0]["state"]["status"].update(Taker0="crashed"),
    "a monitor": lambda t: t["initial"]["monitors"].update(Eye={"n": 1}),
    "a budget": lambda t: t["initial"]["budgets"].update(losses=1),
    "a note": lambda t: t["events"][0].update(note="failed"),
    "a missing step": lambda t: t["events"].pop(1),
    "a missing end": lambda t: t["events"].pop(),
    "no steps": lambda t: t["events"].clear(),
    "a step twice": lambda t: t["events"].append(t["events"][-1]),
    "swapped steps": lambda t: t["events"].reverse(),
    "a property": lambda t: t.update(property="ghost"),
    "another property": lambda t: t.update(property="rich"),
    "assertions": lambda t: t.update(property="assertions"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_trace_is_refused(name: str) -> None:
    message = refused(coins(), edited(found("poor"), EDITS[name]))
    assert "step" in message or "the initial state" in message or "property" in message


def test_ids_need_not_be_positions() -> None:
    def renumber(t: Any) -> None:
        def new(ids: list[int]) -> list[int]:
            return [100 - 3 * i for i in ids]

        for message in t["messages"]:
            message["id"] = 100 - 3 * message["id"]
        t["messages"].reverse()
        for event in t["events"]:
            event["consumed"], event["sent"] = new(event["consumed"]), new(event["sent"])
        for state in (t["initial"], *(e["state"] for e in t["events"])):
            state["pending"] = {lane: new(ids) for lane, ids in state["pending"].items()}

    assert len(list(replay(coins(), edited(found("poor"), renumber)))) == 4


@pytest.mark.slow
def test_any_damage_is_refused_or_harmless() -> None:
    """Whatever is cut out or overwritten somewhere in a trace, the replay ends in a TraceError or in the same run."""
    chance = random.Random(7)
    trace = found("poor")

    def damage(data: Any) -> None:
        place = data
        while True:
            keys: list[Any] = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                return
            key = chance.choice(keys)
            if isinstance(place[key], dict | list) and place[key] and chance.random() < 0.97:
                place = place[key]
                continue
            if chance.random() < 0.3:
                del place[key]
            else:
                place[key] = chance.choice([0, 1, -1, True, "x", [], {}, None, 5.0, {"#tup": [1]}, {"#set": 3}])
            return

    refusals = 0
    for _ in range(600):
        try:
            broken = edited(trace, damage)
        except msgspec.ValidationError:
            continue  # a file with this would not have been loaded
        try:
            events: list[Event] = list(replay(coins(), broken))
        except TraceError:
            refusals += 1
        else:
            assert [e.label for e in events] == [e.label for e in trace.events]
    assert refusals > 20


class Talker(Process):
    said: int = 0

    @action(when=lambda self: self.said < 3)
    def talk(self) -> None:
        self.send(Listener.pid(0), Word(self.said % 2))
        self.said += 1


class Word(Message):
    number: int


class Listener(Process):
    heard: tuple[int, ...] = ()

    @on(Word)
    def hear(self, m: Word) -> None:
        self.heard += (m.number,)


def test_steps_that_look_alike_are_told_apart_by_where_they_lead() -> None:
    """Two kinds of crash of one process; the loss of the first or the last of two equal messages in a queue."""
    down = reachable(lambda s: s[Listener][0].status == "down", name="down")
    crashed = reachable(lambda s: s[Listener][0].status == "crashed", name="crashed")
    last_lost = reachable(lambda s: s[Talker][0].said == 3 and s[Listener][0].heard == (0, 1) and not s.messages)
    first_lost = reachable(lambda s: s[Talker][0].said == 3 and s[Listener][0].heard == (1, 0), name="first")
    faults = [crash_stop(Listener), crash_recovery(Listener)]
    system = System(
        [Talker(), Listener()],
        network=fifo(losses=1),
        faults=faults,
        properties=[down, crashed, last_lost, first_lost],
    )
    for search in ("bfs", "dfs"):
        verdict = check(system, search=search)
        assert verdict.status == "holds"
        for result in verdict.properties:
            assert result.trace is not None
            assert len(list(replay(system, result.trace))) == len(result.trace)


class Reader(Process):
    trigger: int = 0
    used: int = 1
    unused: int = 2
    written: int = 0

    @action(when=lambda self: self.trigger == 0)
    def read(self) -> None:
        self.trigger = 1
        if self.choose([False, True]):
            self.written = self.used
        self.send(self.id, Word(0))


def test_a_trace_tells_what_each_step_read() -> None:
    """The guard's fields and the handler's, on the branch that was taken; writing is not reading, nor is acting."""
    took = reachable(lambda s: s[Reader][0].written == 1, name="took")
    left = reachable(lambda s: s[Reader][0].trigger == 1 and s[Reader][0].written == 0, name="left")
    verdict = check(System([Reader()], properties=[took, left]))
    read = {p.name: [e.read for e in p.trace.events] for p in verdict.properties if p.trace}
    assert read == {"took": [["trigger", "used"]], "left": [["trigger"]]}
