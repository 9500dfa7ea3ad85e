"""A limit that is hit makes the verdict inconclusive and says which; infinite models end, within their memory."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plait import Message, Process, System, Verdict, action, always, check, eventually, on, reachable
from tests.support.patience import PATIENCE, started, until

INFINITE = '''
from pathlib import Path

from plait import Process, System, action, always, field, reachable


class Counter(Process):
    n: int = 0

    @action
    def up(self):
        self.n += 1
        if self.n > 3:
            Path("ready").touch()


class Writer(Process):
    lines: list = field(default_factory=list)

    @action
    def write(self):
        self.lines.append("a line that takes some space " * 20)


class Chooser(Process):
    """So many states that hardly any Python is needed."""
    n: int = 0

    @action(when=lambda self: self.n < 100)
    def up(self):
        self.n += 1
        if self.n > 3:
            Path("ready").touch()


@always
def positive(s):
    return True


@reachable
def second(s):
    return s.processes[0].n == 2


def counter() -> System:
    """Counts for ever."""
    return System([Counter(), Counter()], properties=[positive, second])


def writer() -> System:
    """Writes for ever."""
    return System([Writer()], properties=[positive])


def wide() -> System:
    """10**16 states."""
    return System([Chooser() for _ in range(8)], properties=[positive, second])
'''


class Counter(Process):
    most: int = 3
    n: int = 0

    @action(when=lambda self: self.n < self.most)
    def up(self) -> None:
        self.n += 1


class Ring(Process):
    n: int = 0

    @action
    def turn(self) -> None:
        self.n = (self.n + 1) % 3


class Endless(Process):
    n: int = 0

    @action
    def up(self) -> None:
        self.n += 1


class Note(Message):
    number: int


class Echo(Process):
    """An inbox that grows."""

    @action
    def say(self) -> None:
        self.send(self.id, Note(self.choose([1, 2])))

    @on(Note)
    def hear(self, m: Note) -> None:
        pass


@always
def true(s: Any) -> bool:
    return True


def below(limit: int) -> Any:
    return always(lambda s: all(p.n < limit for p in s.processes), name="below")


def grid(most: int = 3, **system: Any) -> System:
    """(most + 1)² states, of depth 2 · most."""
    return System([Counter(most=most), Counter(most=most)], **{"properties": [true], **system})


def inconclusive(verdict: Verdict, bound: str) -> Verdict:
    assert (verdict.status, verdict.bound, verdict.exit_code) == ("inconclusive", bound, 3), str(verdict)
    assert not verdict
    assert verdict.message == f"stopped: {bound}"
    assert verdict.trace is None
    assert all(p.status != "violated" for p in verdict.properties)
    return verdict


SEARCHES = [("bfs", 1), ("bfs", 2), ("dfs", 1), ("dfs", 2)]


@pytest.mark.parametrize(("search", "workers"), [*SEARCHES, ("random", 1), ("stateless", 1)])
def test_max_states(search: Any, workers: int) -> None:
    verdict = inconclusive(
        check(System([Endless()], properties=[true]), search=search, workers=workers, max_states=100), "max-states"
    )
    assert verdict.statistics.states == 100
    assert verdict.properties[0].note == "no violation so far (max-states)"


@pytest.mark.parametrize(("search", "workers"), SEARCHES)
def test_as_many_states_as_there_are_complete(search: Any, workers: int) -> None:
    assert check(grid(), search=search, workers=workers, max_states=16).status == "holds"
    assert check(grid(), search=search, workers=workers, max_states=16).bound is None
    inconclusive(check(grid(), search=search, workers=workers, max_states=15), "max-states")


@pytest.mark.slow
@pytest.mark.parametrize("reduce", ["none", "por", "auto"])
@pytest.mark.parametrize(("search", "workers"), [*SEARCHES, ("bfs", 4), ("dfs", 4)])
def test_a_search_stops_at_exactly_so_many_states(search: Any, workers: int, reduce: str) -> None:
    """No state beyond the limit is counted, judged or taken for the last one."""
    seen = always(lambda s: met.add(tuple(p.n for p in s.processes)) or True, name="seen")
    for limit in (1, 3, 100, 224, 225, 226):
        met: set[tuple[int, ...]] = set()
        system = grid(14, properties=[seen])
        verdict = check(system, search=search, workers=workers, reduce=reduce, max_states=limit)
        assert verdict.statistics.states == min(limit, 225)
        assert verdict.bound == ("max-states" if limit < 225 else None)
        if reduce == "none":
            assert len(met) == min(limit, 225)


@pytest.mark.parametrize(("search", "workers"), [("random", 1), ("random", 3), ("stateless", 1), ("stateless", 3)])
@pytest.mark.parametrize("reduce", ["none", "auto"])
def test_searches_without_a_frontier_stop_there_too(search: Any, workers: int, reduce: str) -> None:
    for limit in (1, 3, 10, 150 if reduce == "auto" else 1500):
        verdict = check(grid(100), search=search, workers=workers, reduce=reduce, max_states=limit, max_depth=300)
        assert (verdict.statistics.states, verdict.bound) == (limit, "max-states")
    # From the corner of a grid of 2 by 2 there are 2 runs of 3 states: with their prefixes, 1 + 2 + 2 visits.
    small = check(grid(1), search="stateless", workers=workers, max_states=5)
    assert (small.statistics.states, small.status) == (5, "holds")


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_graph_of_runs_stops_there_too(workers: int) -> None:
    met: set[tuple[int, ...]] = set()

    @eventually
    def corner(s: Any) -> bool:
        met.add(tuple(p.n for p in s.processes))
        return False

    for limit in (1, 3, 99):
        met.clear()
        verdict = inconclusive(check(grid(9, properties=[corner]), workers=workers, max_states=limit), "max-states")
        assert verdict.statistics.states == verdict.statistics.graph_states == len(met) == limit
    assert check(grid(9, properties=[corner]), workers=workers, max_states=100).status == "violated"


@pytest.mark.parametrize(("search", "workers"), SEARCHES)
def test_max_depth(search: Any, workers: int) -> None:
    for depth in range(6):
        verdict = inconclusive(check(grid(), search=search, workers=workers, max_depth=depth), "max-depth")
        assert verdict.statistics.depth <= depth
    # States at the depth itself are not expanded, so that 6 would not be enough to know that there is nothing below.
    assert check(grid(), search=search, workers=workers, max_depth=7).status == "holds"


@pytest.mark.parametrize(("search", "workers"), SEARCHES)
def test_an_inbox_that_grows(search: Any, workers: int) -> None:
    system = System([Echo()], properties=[true])
    inconclusive(check(system, search=search, workers=workers, max_states=200), "max-states")
    inconclusive(check(system, search=search, workers=workers, max_depth=12), "max-depth")


def test_breadth_first_sees_all_states_up_to_the_depth() -> None:
    for depth, states in ((0, 1), (1, 3), (2, 6), (3, 10), (4, 13), (5, 15), (6, 16)):
        assert check(grid(), max_depth=depth).statistics.states == states


@pytest.mark.parametrize(("search", "workers"), [*SEARCHES, ("stateless", 1), ("random", 1), ("random", 2)])
def test_timeout(search: Any, workers: int) -> None:
    system = System([Endless(), Endless()], properties=[true])
    more = {"walks": 10**12} if search == "random" else {}
    depth = {"max_depth": 10**6} if search == "stateless" else {}
    inconclusive(check(system, search=search, workers=workers, timeout=0.2, **more, **depth), "timeout")


@pytest.mark.parametrize(("search", "workers"), SEARCHES)
def test_a_violation_before_the_limit_counts(search: Any, workers: int) -> None:
    system = System([Endless()], properties=[below(5)])
    for limits in ({"max_states": 50}, {"max_depth": 50}, {"timeout": 60}):
        verdict = check(system, search=search, workers=workers, **limits)
        assert (verdict.status, verdict.property, verdict.exit_code) == ("violated", "below", 1)
        assert verdict.trace is not None
        assert len(verdict.trace) == 5


@pytest.mark.parametrize("workers", [1, 2])
def test_a_violation_stays_one_although_the_search_goes_on_into_a_limit(workers: int) -> None:
    system = System([Endless()], properties=[below(5), true, reachable(lambda s: s.processes[0].n == 7, name="seven")])
    verdict = check(system, workers=workers, max_states=50, keep_going=True)
    assert (verdict.status, verdict.property, verdict.bound) == ("violated", "below", "max-states")
    assert [p.status for p in verdict.properties] == ["violated", "inconclusive", "holds"]


def test_an_example_beyond_the_limit_is_not_denied() -> None:
    system = System([Endless()], properties=[reachable(lambda s: s.processes[0].n == 70, name="seventy")])
    verdict = inconclusive(check(system, max_states=50), "max-states")
    assert verdict.properties[0].note == "no example so far (max-states)"


def test_random_walks_never_claim_to_have_seen_everything() -> None:
    for system in (grid(), System([Ring()], properties=[true])):
        for workers in (1, 2):
            verdict = check(system, search="random", walks=500, max_depth=20, workers=workers)
            assert verdict.status == "inconclusive"
            assert verdict.bound in ("walks", "max-depth")
            assert verdict.exit_code == 3
            assert verdict.statistics.walks == 500


@pytest.mark.slow
def test_the_same_seed_takes_the_same_walks() -> None:
    def trace(seed: int) -> Any:
        system = grid(40, properties=[always(lambda s: sum(p.n for p in s.processes) < 30, name="below")])
        verdict = check(system, search="random", seed=seed, workers=1)
        assert verdict.status == "violated"
        return verdict.trace

    assert trace(1) == trace(1)
    assert len({tuple(e.lane for e in trace(seed).events) for seed in range(8)}) > 1


def test_a_stateless_search_of_a_cycle_ends_at_a_depth() -> None:
    verdict = inconclusive(check(System([Ring()], properties=[true]), search="stateless"), "max-depth")
    assert verdict.statistics.states >= 10_000
    inconclusive(check(System([Ring()], properties=[true]), search="stateless", max_depth=7), "max-depth")
    assert check(grid(), search="stateless").status == "holds"


# -- in a process of its own -----------------------------------------------------------------------------------------


@pytest.fixture
def infinite(tmp_path: Path) -> Path:
    file = tmp_path / "infinite.py"
    file.write_text(INFINITE)
    return file


MEASURE = """
import json, re, runpy, sys
from pathlib import Path
from plait import check
model = runpy.run_path(sys.argv[1])[sys.argv[2]]()
limit = int(sys.argv[5])
check(model, max_states=10)
verdict = check(model, search=sys.argv[3], workers=int(sys.argv[4]), memory=limit, timeout=250)
most = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
print(json.dumps([verdict.status, verdict.bound, verdict.exit_code, most]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "search", "workers"), [("wide", "bfs", 1), ("wide", "bfs", 2), ("wide", "dfs", 1), ("writer", "bfs", 1)]
)
def test_memory_is_bounded(infinite: Path, model: str, search: str, workers: int) -> None:
    limit = 160 * 2**20
    result = subprocess.run(
        [sys.executable, "-c", MEASURE, str(infinite), model, search, str(workers), str(limit)],
        cwd=infinite.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert result.returncode == 0, result.stderr
    *verdict, most = json.loads(result.stdout)
    assert verdict == ["inconclusive", "memory", 3]
    assert most < limit + 100 * 2**20


@pytest.mark.slow
@pytest.mark.parametrize("model", ["counter", "wide"])
@pytest.mark.parametrize("options", [("--json",), ()])
def test_control_c(infinite: Path, model: str, options: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "plait.cli.main", "check", f"{infinite}:{model}", "--workers", "2", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(command, cwd=infinite.parent, start_new_session=True, **pipes) as process:
        until(lambda: (infinite.parent / "ready").exists() or process.poll() is not None, "the search is under way")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, err
    assert "Traceback" not in err
    if options:
        verdict = json.loads(out)
        assert (verdict["verdict"], verdict["bound"]) == ("inconclusive", "interrupted")
        assert verdict["states"] > 2
        found = {p["name"]: p["status"] for p in verdict["properties"]}
        assert found == {"positive": "inconclusive", "second": "holds"}
    else:
        assert "inconclusive" in out.lower()
        assert "interrupted" in out


class Slow(Process):
    """Its one step does not return."""

    n: int = 0

    @action(when=lambda self: self.n < 3)
    def up(self) -> None:
        self.n += 1
        while self.n == 3:
            pass


@pytest.mark.slow
def test_a_handler_that_does_not_return_is_no_mistake_of_the_model() -> None:
    verdict = inconclusive(check(System([Slow()], properties=[true]), timeout=0.2), "timeout")
    assert verdict.statistics.states == 3
    (warning,) = verdict.warnings
    assert "user code was still running when the search ended" in warning
    assert "test_limits.py" in warning


class Crowd(Process):
    """Each has a message for the first: the table of the first takes as many questions as there are processes."""

    got: int = -1

    @action(when=lambda self: self.got < 0)
    def say(self) -> None:
        self.send(Crowd.pid(0), Note(self.id.index))

    @on(Note)
    def hear(self, m: Note) -> None:
        self.got = m.number


@pytest.mark.slow
def test_the_timeout_counts_while_tables_are_filled() -> None:
    inconclusive(check(System([Crowd() for _ in range(300)], properties=[true]), timeout=0.3), "timeout")


def test_the_timeout_counts_before_the_search() -> None:
    verdict = check(grid(), timeout=0.0)
    assert (verdict.status, verdict.bound) == ("inconclusive", "timeout")
    assert [p.status for p in verdict.properties] == ["inconclusive"]
    assert "Inconclusive" in str(verdict)
