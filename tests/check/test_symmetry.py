"""Symmetry against brute force: exact orbits, the same verdicts, real runs; and what is no symmetry is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait import (
    Message,
    ModelError,
    Monitor,
    Pid,
    Process,
    System,
    action,
    always,
    field,
    final,
    init,
    on,
    reachable,
)
from plait.check.api import check
from plait.kernel.verdict import Verdict
from plait.protocols.mcpaxos import mcpaxos
from plait.protocols.paxos import paxos
from plait.protocols.two_phase_commit import two_phase_commit
from tests.oracle import symmetric_systems as symmetric
from tests.oracle.explorer import Exploration, explore
from tests.oracle.orbits import Orbits, image, orbits, permutations
from tests.oracle.relation import initial
from tests.support.agreement import check_traces
from tests.support.configurations import WAYS, Way, run, violated, ways

RANDOM = settings(deadline=None, suppress_health_check=list(HealthCheck))


def compare(system: System, truth: Exploration, there: Orbits, way: Way, reduce: str) -> Verdict:
    """Check with symmetry, and perhaps por: the orbits that there are (or some), all terminal ones, the same verdicts."""
    verdict = run(system, way, reduce)
    stats = verdict.statistics
    assert violated(verdict) == truth.violated
    assert stats.terminal_states == there.terminal
    assert stats.states == there.states if reduce == "symmetry" else stats.states <= there.states
    assert verdict.status == ("violated" if truth.violated else "holds")
    check_traces(system, verdict, truth, shortest=way.search == "bfs" and reduce == "symmetry")
    return verdict


MODELS: dict[str, Callable[[], System]] = {
    "mcpaxos": lambda: mcpaxos(acceptors=2),
    "mcpaxos, leader": lambda: mcpaxos(acceptors=2, faulty="leader"),
    "paxos": lambda: paxos(proposers=2, acceptors=2),
    "paxos, one by one": lambda: paxos(proposers=2, acceptors=2, quorum=False),
    "paxos, two learners": lambda: paxos(proposers=1, acceptors=2, learners=2),
    "paxos, one of three faulty": lambda: paxos(proposers=1, acceptors=3, faulty="acceptor"),
    "two_phase_commit": two_phase_commit,
    "two_phase_commit, hasty": lambda: two_phase_commit(faulty="hasty"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_zoo(name: str) -> None:
    system = MODELS[name]()
    truth = explore(system)
    there = orbits(system, truth)
    assert there.closed
    assert there.impartial
    assert there.states < truth.states
    for way in WAYS:
        for reduce in ("symmetry", "por,symmetry"):
            compare(system, truth, there, way, reduce)


@pytest.mark.slow
@pytest.mark.parametrize(("managers", "count"), [(3, 80), (5, 314)])
def test_published_orbits_of_two_phase_commit(managers: int, count: int) -> None:
    """Of 288 and 8,832 states of the TLA+ specification, by exact orbits over the resource managers."""
    for search in ("bfs", "dfs"):
        for workers in (1, 2):
            verdict = run(two_phase_commit(managers), Way(search, workers), "symmetry")
            assert (verdict.status, verdict.statistics.states) == ("holds", count)


@pytest.mark.slow
def test_images_of_a_state() -> None:
    """The brute force is itself as it should be: a group of six, and every state back where it was."""
    system = two_phase_commit()
    moves = list(permutations(system))
    assert len(set(moves)) == 6
    assert moves[0] == (0, 1, 2, 3)
    for state in explore(system).seen:
        for move in moves:
            back = tuple(move.index(i) for i in range(4))
            assert image(system, image(system, state, move), back) == state
    assert all(image(system, initial(system), move) == initial(system) for move in moves)


# -- random systems --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(RANDOM, max_examples=200)
@given(symmetric.explored_systems(limit=150), ways(), st.sampled_from(("symmetry", "por,symmetry", "por,symmetry")))
def test_symmetric_systems(pair: tuple[System, Exploration], way: Way, reduce: str) -> None:
    there = orbits(*pair)
    assert there.closed
    assert there.impartial
    compare(*pair, there, way, reduce)


@pytest.mark.slow
@settings(RANDOM, max_examples=150)
@given(
    symmetric.explored_systems(100, symmetric.ODDITIES),
    ways(),
    st.sampled_from(("symmetry", "por,symmetry")),
)
def test_systems_with_an_oddity(pair: tuple[System, Exploration], way: Way, reduce: str) -> None:
    """Refused, unless the oddity never matters. (A property that was decided before is not looked at any more.)"""
    there = orbits(*pair)
    try:
        verdict = run(pair[0], way, reduce)
    except ModelError as error:
        assert "are not symmetric: " in str(error)  # noqa: PT017
        return
    assert there.closed
    assert violated(verdict) == pair[1].violated
    if there.impartial:
        compare(*pair, there, way, reduce)


# -- what is no symmetry ---------------------------------------------------------------------------------------------


class Hello(Message):
    value: int = 0


class Hub(Process):
    """Knows who greeted it."""

    met: frozenset[Pid] = frozenset()

    @on(Hello)
    def meet(self, m: Hello) -> None:
        self.met |= {m.sender}


class Worker(Process):
    """Greets the hub, once."""

    value: int = 0
    chief: Pid | None = None
    greets: bool = True

    @action(when=lambda self: self.greets)
    def greet(self) -> None:
        self.greets = False
        self.broadcast(Hub, Hello(self.value))


class Comparer(Worker):
    """Gives way to smaller ids."""

    @on(Hello, where=lambda self, m: m.sender < self.id)
    def give_way(self, m: Hello) -> None:
        self.chief = m.sender

    @action(when=lambda self: self.greets)
    def greet(self) -> None:
        self.greets = False
        self.broadcast(Worker, Hello(), myself=False)


class Numbered(Worker):
    @action(when=lambda self: self.greets)
    def greet(self) -> None:
        self.greets, self.value = False, self.id.index


class Follower(Worker):
    @action(when=lambda self: self.greets)
    def greet(self) -> None:
        self.greets, self.chief = False, min(self.ids(Worker))


class Starter(Worker):
    @init
    def start(self) -> None:
        if self.id == self.ids(Worker)[0]:
            self.broadcast(Hub, Hello())


class Queue(Process, role=Hub):
    """Keeps the senders of a quorum in the order in which they are given."""

    order: tuple[Pid, ...] = ()

    @on(Hello, quorum=2)
    def gather(self, ms: tuple[Hello, ...]) -> None:
        self.order = tuple(m.sender for m in ms)


class Chooser(Hub):
    """Greets the first worker."""

    done: bool = False

    @action(when=lambda self: not self.done)
    def choose_one(self) -> None:
        self.done = True
        self.send(self.ids(Worker)[0], Hello())


class Announcer(Worker):
    @action(when=lambda self: self.greets)
    def greet(self) -> None:
        self.greets = False
        self.announce("here")


class Champion(Monitor):
    who: Pid | None = None

    def observe(self, process: Pid, event: Any) -> None:
        self.who = process


class Favourite(Champion):
    def observe(self, process: Pid, event: Any) -> None:
        if process.index == 1:
            self.who = process


class Register(Champion):
    """All who announced something, whoever they are."""

    known: dict[Pid, str] = field(default_factory=dict)

    def observe(self, process: Pid, event: Any) -> None:
        self.known[process] = event


@always
def the_second_waits(s: Any) -> bool:
    return s[Worker][1].greets or not s[Worker][0].greets


@reachable
def the_first_is_done(s: Any) -> bool:
    return not s[Worker][0].greets


@final
def the_last_knows(s: Any) -> bool:
    return s[Worker][2].chief is not None


def three(worker: type[Worker], hub: type[Process] = Hub, **more: Any) -> System:
    return System([hub(), *(worker() for _ in range(3))], symmetric=[Worker], **more)


REFUSED: dict[str, tuple[Callable[[], System], str]] = {
    "a guard compares ids": (
        lambda: three(Comparer),
        r"Comparer\d and Comparer\d are not symmetric: Comparer.give_way treats them differently: .* with Hello\(",
    ),
    "a handler uses an index": (
        lambda: three(Numbered),
        r"Numbered0 and Numbered1 are not symmetric: Numbered.greet treats them differently: Numbered0\(value=0",
    ),
    "a handler takes the least id": (
        lambda: three(Follower),
        r"Follower0 and Follower1 are not symmetric: Follower.greet treats them differently",
    ),
    "a handler keeps the order of a quorum": (
        lambda: three(Worker, Queue),
        r"Worker\d and Worker\d are not symmetric: Queue.gather treats them differently: .* with Hello\(value=0\)",
    ),
    "another process prefers one": (
        lambda: three(Worker, Chooser),
        r"Worker0 and Worker1 are not symmetric: Chooser.choose_one treats them differently",
    ),
    "an invariant singles one out": (
        lambda: three(Worker, properties=[the_second_waits]),
        r"Worker\d and Worker\d are not symmetric: property the_second_waits treats them differently",
    ),
    "an example singles one out": (
        lambda: three(Worker, properties=[the_first_is_done]),
        r"Worker0 and Worker1 are not symmetric: property the_first_is_done treats them differently",
    ),
    "initial states differ": (
        lambda: System([Hub(), Worker(), Worker(), Worker(value=2)], symmetric=[Worker]),
        r"Worker1 and Worker2 are not symmetric: the initial states of Worker\d and Worker\d differ: value is 0 and 2",
    ),
    "an initial state names one": (
        lambda: System([Hub(met=frozenset({Pid("Worker", 1)})), Worker(), Worker()], symmetric=[Worker]),
        r"Worker0 and Worker1 are not symmetric: the initial states of Hub0 and Hub0 differ",
    ),
    "@init differs": (
        lambda: three(Starter),
        r"Starter0 and Starter1 are not symmetric: the initial states of .* differ: they were sent different messages",
    ),
    "a monitor starts with one": (
        lambda: three(Announcer, monitors=[Champion(who=Pid("Announcer", 0))]),
        r"Announcer0 and Announcer1 are not symmetric: the initial state of monitor Champion treats them differently",
    ),
    "a monitor prefers one": (
        lambda: three(Announcer, monitors=[Favourite()]),
        r"Announcer\d and Announcer\d are not symmetric: observe\(\) of monitor Favourite treats them differently",
    ),
}


@pytest.mark.parametrize("reduce", ["symmetry", "por,symmetry"])
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_symmetry_is_refused(case: str, reduce: str) -> None:
    make_system, evidence = REFUSED[case]
    for way in WAYS:
        with pytest.raises(ModelError, match=evidence) as caught:
            run(make_system(), way, reduce)
        assert "\nhint: remove the role from System(symmetric=…)" in str(caught.value)
    assert check(make_system(), reduce="por").bound is None, "it is only the symmetry that is refused"


@pytest.mark.parametrize(
    "system",
    [three(Worker), three(Announcer, monitors=[Champion()]), three(Announcer, monitors=[Register()])],
    ids=["workers", "a monitor that remembers one", "a monitor that remembers all"],
)
def test_what_treats_all_alike_is_not_refused(system: System) -> None:
    truth = explore(system)
    there = orbits(system, truth)
    for way in WAYS:
        compare(system, truth, there, way, "symmetry")
        compare(system, truth, there, way, "por,symmetry")


# -- found before ----------------------------------------------------------------------------------------------------


class Token(Message):
    real: bool


class Mail(Message):
    kind: str


class Judge(Process):
    early: bool = False
    done: bool = False

    @on(Mail)
    def mail(self, m: Mail) -> None:
        if m.kind == "late":
            self.early = not self.done
        else:
            assert not (m.kind == "b" and self.early)
            self.done, self.early = True, False
            self.broadcast(Locksmith, Token(False))


class Locksmith(Process):
    length: int
    dial: int = -1

    @on(Token)
    def token(self, m: Token) -> None:
        if m.real:
            self.dial = 0

    @action(when=lambda self: 0 <= self.dial < self.length)
    def turn(self) -> None:
        """A combination lock, so that the walks that learn the facts do not open it."""
        self.dial = self.choose([self.dial + 1, 99])

    @action(when=lambda self: self.dial == self.length)
    def use(self) -> None:
        self.dial = 98
        self.broadcast(Judge, Mail("late"))


class Granter(Process):
    done: bool = False

    @action(when=lambda self: not self.done)
    def grant(self) -> None:
        self.done = True
        kind = self.choose(["a", "b"])
        smiths = self.ids(Locksmith) if kind == "a" else self.ids(Locksmith)[::-1]
        self.send(self.choose(smiths), Token(True))
        self.broadcast(Judge, Mail(kind))


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 6, 9, 12, 16])
def test_what_the_image_of_a_process_does_is_known(length: int) -> None:
    """The search meets one of two locksmiths behind each choice; that the other sends the same, por has to know, too."""
    system = System([Judge(), *(Locksmith(length=length) for _ in range(2)), Granter()], symmetric=[Locksmith])
    truth = explore(system)
    assert truth.violated == {"assertions"}
    there = orbits(system, truth)
    for way in WAYS:
        compare(system, truth, there, way, "por,symmetry")
