"""Several initial states: `@init` methods choose, and every combination is an initial state."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from plait import (
    Message,
    ModelError,
    Monitor,
    Pid,
    Process,
    System,
    TraceError,
    action,
    always,
    check,
    eventually,
    final,
    init,
    on,
    reachable,
)
from plait.check.explain.graph import state_graph
from plait.check.explain.replay import replay
from plait.check.runner import Runner
from plait.cli.main import main
from plait.model.loading.loader import load
from plait.report.itf import load_trace, save_trace
from tests.oracle.explorer import explore
from tests.support.agreement import compare
from tests.support.examples import FOLDER


class Hello(Message):
    value: int


class Die(Process):
    """Shows a number, and tells it to the other one."""

    faces: int = 2
    shows: int = 0
    heard: int = -1

    @init
    def throw(self) -> None:
        self.shows = self.choose(range(self.faces))

    @init
    def tell(self) -> None:
        self.send(self.ids(Die)[1 - self.id.index], Hello(self.shows))

    @on(Hello)
    def hear(self, m: Hello) -> None:
        self.heard = m.value


@always
def heard_what_is_shown(s: Any) -> bool:
    one, other = s[Die]
    return one.heard in (-1, other.shows)


@always
def not_both(s: Any) -> bool:
    return not all(die.shows == 1 for die in s[Die])


def dice(*properties: Any, **more: Any) -> System:
    return System([Die(), Die(faces=3)], properties=properties or [heard_what_is_shown], **more)


def test_every_combination_is_an_initial_state() -> None:
    verdict = check(dice())
    assert verdict.status == "holds"
    # Each message is pending or was taken, for each of 2 * 3 combinations.
    assert (verdict.statistics.states, verdict.statistics.transitions, verdict.statistics.depth) == (24, 24, 2)
    assert verdict.statistics.terminal_states == 6


@pytest.mark.parametrize(
    "options", [{"search": "dfs"}, {"search": "dfs", "workers": 3}, {"workers": 3}, {"native": "off"}]
)
def test_all_searches_count_the_same(options: dict[str, Any]) -> None:
    assert check(dice(), **options).statistics.states == 24


def test_searches_without_a_visited_set_begin_with_each() -> None:
    # From each initial state: two orders of two steps, which makes five visits; dpor needs one order.
    assert check(dice(), search="stateless").statistics.states == 6 * 5
    assert check(dice(), search="stateless", reduce="dpor").statistics.states == 6 * 3
    walks = check(dice(reachable(lambda s: s[Die][1].shows == 2)), search="random", walks=200, max_depth=1)
    assert walks.statistics.states == 6 * 3  # all combinations were begun with


def test_the_oracle_agrees() -> None:
    system = dice(heard_what_is_shown, not_both)
    compare(system, explore(system))


def test_equal_states_are_one() -> None:
    class Same(Process):
        x: int = 0

        @init
        def begin(self) -> None:
            self.x = self.choose([1, 2, 1, 3]) % 2

        @action(when=lambda self: self.x < 2)
        def step(self) -> None:
            self.x = 2

    assert check(System([Same(), Same()]), explore=True).statistics.states == 3 * 3
    assert len(Runner(System([Same(), Same()])).initial) == 4


def test_initially_keeps_the_combinations_that_are_meant() -> None:
    verdict = check(dice(initially=lambda s: s[Die][0].shows == s[Die][1].shows))
    assert verdict.statistics.states == 2 * 4
    with pytest.raises(ModelError, match="there is no initial state: initially is false in all 6 combinations"):
        check(dice(initially=lambda s: s[Die][0].shows > 5))
    with pytest.raises(ModelError, match="initially raised an exception"):
        check(dice(initially=lambda s: 1 // 0))
    with pytest.raises(ModelError, match="initially=3 is not a function of the view"):
        dice(initially=3)
    with pytest.raises(ModelError, match="property initially returned 3"):
        check(dice(initially=lambda s: 3))


def test_a_violation_names_the_initial_state_and_replays(tmp_path: Path) -> None:
    system = dice(not_both)
    trace = check(system).trace
    assert trace is not None
    assert len(trace) == 0
    assert trace.chosen == {"Die0": [1], "Die1": [1]}
    assert "initially Die0 chose 1; Die1 chose 1" in str(trace)
    assert "in an initial state" in str(trace)
    assert "initially Die0 chose 1; Die1 chose 1" in trace._repr_html_()
    save_trace(trace, tmp_path / "run.itf.json")
    again = load_trace(tmp_path / "run.itf.json")
    assert again == trace
    assert list(replay(system, again)) == []
    other = System([Die(), Die(faces=1)], properties=[not_both])
    with pytest.raises(
        TraceError, match=re.escape("no initial state is the one of the trace any more (Die0 chooses 1; ")
    ):
        list(replay(other, again))
    with pytest.raises(TraceError, match="no initial state is the one of the trace any more"):
        list(replay(dice(not_both, initially=lambda s: s[Die][0].shows == 0), again))


def test_the_command_line_replays_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = str(FOLDER / "termination.py")
    assert main(["check", file, "-p", "stain=false", "--quiet"]) == 1
    (saved,) = (tmp_path / ".plait").glob("*.itf.json")
    assert main(["replay", str(saved)]) == 0
    assert "initially Ring0 chose" in capsys.readouterr().out


def test_final_and_temporal_properties() -> None:
    @final
    def knows(s: Any) -> bool:
        return all(die.heard >= 0 for die in s[Die])

    verdict = check(dice(knows, eventually(lambda s: s[Die][0].heard >= 0, name="hears")))
    assert {p.name: p.status for p in verdict.properties} == {"knows": "holds", "hears": "holds"}
    two = check(dice(eventually(lambda s: s[Die][1].shows < 2 or s[Die][0].heard == 2, name="it")))
    assert two.status == "holds"
    never = check(dice(eventually(lambda s: s[Die][1].shows < 2, name="it")))
    assert never.trace is not None
    assert never.trace.chosen["Die1"] == [2]


def test_monitors_observe_each_combination() -> None:
    class Sum(Monitor):
        total: int = 0

        def observe(self, process: Pid, event: Any) -> None:
            self.total = 10 * self.total + event

    class Announcer(Process):
        x: int = 0

        @init
        def begin(self) -> None:
            self.x = self.choose([1, 2])
            self.announce(self.x)

        @action(when=lambda self: self.x < 0)
        def never(self) -> None: ...

    @always
    def in_order(s: Any) -> bool:
        return bool(s[Sum].total == 10 * s[Announcer][0].x + s[Announcer][1].x)

    system = System([Announcer(), Announcer()], monitors=[Sum()], properties=[in_order])
    assert check(system, explore=True).statistics.states == 4


def test_symmetry_needs_symmetric_choices() -> None:
    class Coin(Process):
        up: bool = False

        @init
        def toss(self) -> None:
            self.up = self.choose([False, True])

        @action(when=lambda self: self.up)
        def turn(self) -> None:
            self.up = False

    @always
    def fine(s: Any) -> bool:
        return len(s[Coin]) == 3

    def coins(**more: Any) -> System:
        return System([Coin(), Coin(), Coin()], symmetric=[Coin], properties=[fine], **more)

    assert check(coins()).statistics.states == 8
    assert check(coins(), reduce="symmetry").statistics.states == 4
    assert check(coins(), reduce="symmetry", search="dfs").statistics.states == 4
    with pytest.raises(ModelError, match="the initial states treat them differently: there is no initial state that"):
        check(coins(initially=lambda s: not s[Coin][0].up), reduce="symmetry")
    some = check(coins(initially=lambda s: sum(c.up for c in s[Coin]) == 2), reduce="symmetry")
    assert some.statistics.states == 3


def test_the_graph_has_several_roots() -> None:
    graph = state_graph(dice())
    assert len(graph.states) == 24
    assert sum(state.predecessor is None for state in graph.states) == 6


def test_decomposition_merges_initial_states() -> None:
    class Logger(Process):
        name: str = ""
        n: int = 0

        @init
        def begin(self) -> None:
            self.name = self.choose(["a", "b", "c"])
            self.n = self.choose([0, 1])

        @action(when=lambda self: self.n < 2)
        def count(self) -> None:
            self.n += 1

    @always
    def small(s: Any) -> bool:
        return all(logger.n < 2 for logger in s[Logger])

    verdict = check(System([Logger()], properties=[small]), reduce="decomposition", keep_going=True)
    assert verdict.statistics.states == 3
    assert verdict.trace is not None
    assert verdict.trace.chosen == {"Logger0": ["a", 1]}


class Bad(Process):
    """What it does first is given."""

    does: str = "spawn"
    x: int = 0

    @init
    def begin(self) -> None:
        match self.does:
            case "spawn":
                self.spawn(Die)
            case "fail":
                assert self.choose([True, False])
            case "raise":
                self.x = 1 // self.choose([1, 0])
            case "none":
                self.choose([])
            case "choose":
                self.x = self.choose(range(128))


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("spawn", "Bad.begin: an @init method must not spawn or fail"),
        ("fail", "Bad.begin: an @init method must not spawn or fail"),
        ("raise", "Bad.begin raised ZeroDivisionError"),
        ("none", "choose() was given no options"),
    ],
)
def test_what_must_not_happen_before_the_first_step(does: str, said: str) -> None:
    with pytest.raises(ModelError, match=re.escape(said)):
        check(System([Bad(does=does)], spare={Die: 1}), explore=True)


def test_too_many_combinations_are_refused() -> None:
    with pytest.raises(ModelError, match="the @init methods have more than 1048576 combinations of choices"):
        check(System([Bad(does="choose") for _ in range(3)]), explore=True)


def test_limits_hold_for_initial_states() -> None:
    verdict = check(System([Bad(does="choose")]), explore=True, max_states=100)
    assert (verdict.bound, verdict.statistics.states) == ("max-states", 100)
    live = check(dice(eventually(lambda s: False, name="never")), max_states=3)
    assert live.bound == "max-states"


@pytest.mark.parametrize(
    ("name", "parameters", "states"),
    [
        ("alternating_bit", {}, 240),
        ("termination", {}, 302),
        ("termination", {"nodes": 4}, 1_566),
        ("pending_work", {"nodes": 4}, 4_097),
    ],
)
@pytest.mark.parametrize("search", ["bfs", "dfs"])
def test_published_counts(name: str, parameters: dict[str, Any], states: int, search: Any) -> None:
    """Distinct states of MCAlternatingBit, EWD840 and AsyncTerminationDetection in tlaplus/Examples."""
    verdict = check(load(str(FOLDER / f"{name}.py"), parameters, parse=False), search=search)
    assert (verdict.status, verdict.statistics.states) == ("holds", states)
