"""Fingerprints depend on content only, and the codec gives equal bytes to equal values and to no others."""

from __future__ import annotations

import dataclasses
import enum
import math
import os
import subprocess
import sys
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait import Message, Monitor, Pid, Process, System, action, always, check, on
from plait._native import Codec
from plait.check.options import Options, Search
from plait.check.runner import Runner
from plait.check.tabulate.probe import set_order
from tests.oracle.explorer import Exploration
from tests.oracle.random_systems import explored_systems
from tests.oracle.relation import freeze
from tests.support.agreement import ZOO
from tests.support.patience import PATIENCE


def fingerprints(system: System, search: Search = "bfs", workers: int = 1) -> list[int]:
    """Of all reachable states, sorted."""
    engine = Runner(system).engine
    report = engine.search(Options(search=search, workers=workers, keep_going=True))
    found = sorted(engine.fingerprints())
    assert len(found) == report.counters.states
    return found


class Word(Message):
    words: frozenset[str]
    index: dict[str, int]


class Reader(Process):
    """Fields whose order in memory depends on the hash seed."""

    words: set[str] = dataclasses.field(default_factory=set)
    index: dict[str, int] = dataclasses.field(default_factory=dict)

    @action(when=lambda self: len(self.words) < 3)
    def read(self) -> None:
        word = self.choose({"red", "green", "blue", "white"} - self.words)
        self.words.add(word)
        self.index[word] = len(word)
        self.announce((word, frozenset(self.words)))
        self.send(Writer.pid(0), Word(frozenset(self.words), dict(sorted(self.index.items(), reverse=True))))


class Writer(Process):
    known: frozenset[str] = frozenset()

    @on(Word)
    def write(self, m: Word) -> None:
        self.known |= m.words


class Seen(Monitor):
    events: set[Any] = dataclasses.field(default_factory=set)

    def observe(self, process: Pid, event: Any) -> None:
        self.events.add(event)


def words() -> System:
    return System([Reader(), Writer()], monitors=[Seen()])


SUBJECTS = {**ZOO, "words": words}
OTHER_PROCESS = """
import sys, tests.check.test_fingerprints as t, tests.oracle.random_systems as systems
for line in sys.stdin.read().splitlines():
    system = t.SUBJECTS[line]() if line in t.SUBJECTS else systems.build(eval(line, vars(systems)))
    print(*t.fingerprints(system, sys.argv[1], int(sys.argv[2])))
"""


def elsewhere(lines: list[str], seed: int, search: str, workers: int) -> list[list[int]]:
    """Fingerprints of the same systems, found by another process with another hash seed."""
    result = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, search, str(workers)],
        input="\n".join(lines),
        env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert result.returncode == 0, result.stderr
    return [list(map(int, line.split())) for line in result.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "search", "workers"), [(1, "bfs", 1), (2, "dfs", 2), (3, "bfs", 2)])
def test_the_zoo_in_another_process(seed: int, search: str, workers: int) -> None:
    assert elsewhere(list(SUBJECTS), seed, search, workers) == [fingerprints(make()) for make in SUBJECTS.values()]


@pytest.mark.slow
def test_random_systems_in_another_process() -> None:
    from hypothesis import Phase
    from hypothesis import seed as seeded

    drawn: list[System] = []

    @seeded(7)
    @settings(
        max_examples=20, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(explored_systems(limit=150))
    def draw(pair: tuple[System, Exploration]) -> None:
        drawn.append(pair[0])

    draw()
    here = [fingerprints(system) for system in drawn]
    for seed, search in ((4, "bfs"), (5, "dfs")):
        assert elsewhere([system.name for system in drawn], seed, search, 1) == here


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=200))
def test_searches_find_the_same_set(pair: tuple[System, Exploration]) -> None:
    system, truth = pair
    found = fingerprints(system)
    assert len(found) == len(set(found)) == truth.states
    for search, workers in (("bfs", 2), ("dfs", 1), ("dfs", 2)):
        assert fingerprints(system, search, workers) == found


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_order_of_discovery_does_not_matter(name: str) -> None:
    """An engine that has met other states before, in another order, gives the same fingerprints."""
    expected = fingerprints(SUBJECTS[name]())
    engine = Runner(SUBJECTS[name]()).engine
    for seed in range(3):
        engine.search(Options(search="random", workers=1, seed=seed, walks=20, max_depth=30, keep_going=True))
        assert set(engine.fingerprints()) <= set(expected)
    for options in (Options(search="dfs", workers=2, keep_going=True), Options(workers=2, keep_going=True)):
        engine.search(options)
        assert sorted(engine.fingerprints()) == expected


def test_equal_fields_of_two_classes_are_not_mixed_up() -> None:
    """Their content is equal, and so are their ids; a view must still tell the fields apart."""

    class Left(Process):
        left: int = 0

        @action(when=lambda self: self.left < 2)
        def up(self) -> None:
            self.left += 1
            self.announce(self.left)

    class Right(Process):
        right: int = 0

        @action(when=lambda self: self.right < 2)
        def up(self) -> None:
            self.right += 1

    class First(Monitor):
        first: int = 0

        def observe(self, process: Pid, event: int) -> None:
            self.first = event

    class Second(Monitor):
        second: int = 0

        def observe(self, process: Pid, event: int) -> None:
            self.second = event

    @always
    def readable(s: Any) -> bool:
        return {s[Left][0].left, s[Right][0].right, s[First].first, s[Second].second} <= {0, 1, 2}

    system = System([Left(), Right()], monitors=[First(), Second()], properties=[readable])
    verdict = check(system)
    assert (verdict.status, verdict.statistics.states) == ("holds", 9)


# -- the codec -------------------------------------------------------------------------------------------------------


class Shade(enum.Enum):
    DARK = 1
    LIGHT = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Name(enum.StrEnum):
    RED = "red"


class Point(NamedTuple):
    x: Any
    y: Any


class Spot(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass(frozen=True)
class Pair:
    left: Any
    right: Any


@dataclasses.dataclass
class Cell:
    left: Any
    right: Any


class Parcel(Message):
    left: Any
    right: Any


CODEC = Codec(Pid)

numbers = (
    st.integers() | st.integers(-(2**80), 2**80) | st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64])
)
atoms = (
    st.none()
    | st.booleans()
    | numbers
    | st.floats()
    | st.text(max_size=4)
    | st.binary(max_size=4)
    | st.sampled_from([*Shade, *Level, *Name])
    | st.builds(Pid, st.sampled_from(["Node", "Leader"]), st.integers(0, 3))
)
hashable = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.frozensets(inner, max_size=3)
        | st.builds(Point, inner, inner)
        | st.builds(Spot, inner, inner)
        | st.builds(Pair, inner, inner)
        | st.builds(Parcel, inner, inner)
    ),
    max_leaves=5,
)
values = st.recursive(
    hashable,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.sets(hashable, max_size=3)
        | st.dictionaries(hashable, inner, max_size=3)
        | st.builds(Pair, inner, inner)
        | st.builds(Cell, inner, inner)
    ),
    max_leaves=8,
)


def exact(value: Any) -> Any:
    """A value that is equal exactly to itself: by the oracle's own canonical form."""
    return freeze(value)


@pytest.mark.slow
@given(values)
def test_decoding_gives_the_value_back(value: Any) -> None:
    content = CODEC.encode(value)
    back = CODEC.decode(content)
    assert exact(back) == exact(value)
    assert type(back) is type(value)
    assert CODEC.encode(back) == content


@pytest.mark.slow
@given(values)
def test_a_probe_is_equal_to_the_value(value: Any) -> None:
    content = CODEC.encode(value)
    probe = set_order().permuted(0, CODEC.decode, content)
    assert CODEC.encode(probe) == content
    if "nan" not in repr(value):
        assert probe == CODEC.decode(content)


@pytest.mark.slow
@given(values, values)
def test_only_equal_values_have_equal_content(one: Any, other: Any) -> None:
    assert (CODEC.encode(one) == CODEC.encode(other)) == (exact(one) == exact(other))


@pytest.mark.slow
@settings(suppress_health_check=list(HealthCheck))
@given(st.lists(values, min_size=2, max_size=30))
def test_no_two_different_values_have_the_same_content(many: list[Any]) -> None:
    assert len({CODEC.encode(v) for v in many}) == len({exact(v) for v in many})


@given(st.lists(st.tuples(hashable, st.integers()), max_size=6, unique_by=lambda item: item[0]), st.randoms())
def test_insertion_order_does_not_matter(items: list[tuple[Any, int]], chance: Any) -> None:
    shuffled = list(items)
    chance.shuffle(shuffled)
    keys = [key for key, _ in items]
    other = [key for key, _ in shuffled]
    assert CODEC.encode(dict(items)) == CODEC.encode(dict(shuffled))
    assert CODEC.encode(set(keys)) == CODEC.encode(set(other))
    assert CODEC.encode(frozenset(keys)) == CODEC.encode(frozenset(other))
    grown = {"extra", *keys}
    grown.discard("extra")
    if "extra" not in keys:
        assert CODEC.encode(grown) == CODEC.encode(set(keys))


def test_values_that_look_alike_differ() -> None:
    alike: list[Any] = [
        *(1, True, 1.0, "1", b"1", Level.LOW, (1,), [1], {1}, frozenset({1}), {1: 1}, {1: True}, {1: None}, ((1,),)),
        *(0, False, 0.0, -0.0, "", b"", (), [], set(), frozenset(), {}, None, math.nan, math.inf, -math.inf),
        *(Point(1, 2), Spot(1, 2), Pair(1, 2), Cell(1, 2), Parcel(1, 2), (1, 2), [1, 2], Pair(2, 1)),
        *("red", Name.RED, Shade.DARK, Pid("Node", 1), Pid("Node", 11), Pid("Node1", 1), "Node1", ("Node", 1)),
        *(["a", "b"], ["ab"], ["a", ["b"]], [["a"], "b"], {"a": {"b": 1}}, {"a": {}, "b": 1}),
        *(2**63, -(2**63), str(2**63), 2**64, -1, "-1"),
    ]
    contents = [CODEC.encode(value) for value in alike]
    assert len(set(contents)) == len(alike)
    for value, content in zip(alike, contents, strict=True):
        assert exact(CODEC.decode(content)) == exact(value)


def test_special_numbers() -> None:
    assert CODEC.encode(float("nan")) == CODEC.encode(-float("nan"))
    assert math.isnan(CODEC.decode(CODEC.encode(math.nan)))
    assert math.copysign(1, CODEC.decode(CODEC.encode(-0.0))) == -1
    for number in (10**4000, -(10**4000), 2**63 - 1, -(2**63)):
        assert CODEC.decode(CODEC.encode(number)) == number


def test_every_decoded_value_is_fresh() -> None:
    content = CODEC.encode([[], {}, set(), Cell([], [])])
    one, other = CODEC.decode(content), CODEC.decode(content)
    assert all(a is not b for a, b in zip(one, other, strict=True))


@given(st.binary(max_size=30))
def test_decoding_nonsense_raises(content: bytes) -> None:
    """Content comes from the codec; other bytes give a value or an exception, never a crash."""
    try:
        value = CODEC.decode(content)
    except (ValueError, TypeError, KeyError, UnicodeError, OverflowError):
        return
    CODEC.encode(value)
