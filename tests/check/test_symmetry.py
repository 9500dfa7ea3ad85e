"""Symmetry against brute force: exact orbits, the same verdicts, real runs; and what is no symmetry is refused."""

from __future__ import annotations

import re
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
    UsageError,
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
from tests.oracle.orbits import Orbits, image, multisets, orbits, permutations
from tests.oracle.relation import initial
from tests.support.agreement import check_traces, expected
from tests.support.configurations import WAYS, Way, fingerprints, run, violated, ways

RANDOM = settings(deadline=None, suppress_health_check=list(HealthCheck))


LISTS = st.sampled_from((None, "listing"))
"""Small groups are listed, unless a test leaves that out: then their states get canonical images, as with large groups."""


def compare(
    system: System, truth: Exploration, there: Orbits, way: Way, reduce: str, without: str | None = None
) -> Verdict:
    """Check with symmetry, and perhaps por: the orbits that there are (or some), all terminal ones, the same verdicts."""
    verdict = run(system, way, reduce, without=without)
    stats = verdict.statistics
    assert violated(verdict) == truth.violated
    assert stats.terminal_states == there.terminal
    assert stats.states == there.states if reduce == "symmetry" else stats.states <= there.states
    assert verdict.status == expected(truth)
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
        compare(system, truth, there, way, "symmetry", without="listing")


@pytest.mark.slow
@pytest.mark.parametrize(("managers", "count"), [(3, 80), (5, 314)])
@pytest.mark.parametrize("without", [None, "listing"])
def test_published_orbits_of_two_phase_commit(managers: int, count: int, without: str | None) -> None:
    """Of 288 and 8,832 states of the TLA+ specification, by exact orbits over the resource managers."""
    for search in ("bfs", "dfs"):
        for workers in (1, 2):
            verdict = run(two_phase_commit(managers), Way(search, workers), "symmetry", without=without)
            assert (verdict.status, verdict.statistics.states) == ("holds", count)


@pytest.mark.slow
@pytest.mark.parametrize("managers", [4, 7, 8, 12])
def test_large_roles(managers: int) -> None:
    """The orbits are the multisets; they were 920 of 296,448 states for 7 resource managers."""
    assert multisets(3) == 80
    assert multisets(7) == 920
    verdict = check(two_phase_commit(managers), reduce="symmetry", properties=["all_commit"])
    assert (verdict.status, verdict.statistics.states) == ("holds", multisets(managers))


@pytest.mark.slow
def test_por_is_left_out_where_the_group_is_large() -> None:
    verdict = check(two_phase_commit(8), reduce="auto", properties=["all_commit"])
    notes = {r.name: r for r in verdict.statistics.reductions}
    assert notes["symmetry"].applied
    assert notes["symmetry"].reason == "40,320 permutations of 8 ResourceManager"
    assert not notes["por"].applied
    assert verdict.statistics.states == multisets(8)
    with pytest.raises(UsageError, match="more than 5,040 permutations, which por does not support"):
        check(two_phase_commit(8), reduce="por,symmetry")


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
@given(
    symmetric.explored_systems(150, ("none", "none", "ring")),
    ways(),
    st.sampled_from(("symmetry", "por,symmetry", "por,symmetry")),
    LISTS,
)
def test_symmetric_systems(pair: tuple[System, Exploration], way: Way, reduce: str, without: str | None) -> None:
    there = orbits(*pair)
    assert there.closed
    assert there.impartial
    compare(*pair, there, way, reduce, without)
    assert len(fingerprints(pair[0], "symmetry", without=without)) == there.states


@pytest.mark.slow
@settings(RANDOM, max_examples=150)
@given(
    symmetric.explored_systems(100, symmetric.ODDITIES),
    ways(),
    st.sampled_from(("symmetry", "por,symmetry")),
    LISTS,
)
def test_systems_with_an_oddity(pair: tuple[System, Exploration], way: Way, reduce: str, without: str | None) -> None:
    """Refused, unless the oddity never matters. (A property that was decided before is not looked at any more.)"""
    there = orbits(*pair)
    try:
        verdict = run(pair[0], way, reduce, without=without)
    except ModelError as error:
        assert "are not symmetric: " in str(error)  # noqa: PT017
        return
    assert there.closed
    assert violated(verdict) == pair[1].violated
    if there.impartial:
        compare(*pair, there, way, reduce, without)


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
    found = check(make_system(), reduce="auto", decomposition="declared", explore=True)
    assert found.bound is None, "it is only the symmetry that is refused"
    notes = {r.name: r for r in found.statistics.reductions}
    assert not notes["symmetry"].applied
    assert re.search(evidence, notes["symmetry"].reason), "and auto says why"
    assert violated(found) == violated(check(make_system()))


class Friend(Worker):
    """Has a friend, who is any other."""

    @action(when=lambda self: self.chief is None)
    def befriend(self) -> None:
        self.chief = self.choose([pid for pid in self.ids(Worker) if pid != self.id])

    greet = None


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "count"), [(2, 3), (3, 7), (4, 19), (5, 47), (6, 130), (7, 343)])
@pytest.mark.parametrize("without", [None, "listing"])
def test_references_among_the_symmetric(workers: int, count: int, without: str | None) -> None:
    """States are the functions from workers to workers (a worker without a friend stands for a fixed point).

    Up to names, there are as many as OEIS A001372 says.
    """
    system = System([Friend() for _ in range(workers)], symmetric=[Worker])
    if workers <= 4:
        assert orbits(system, explore(system)).states == count
    assert run(system, Way(workers=1), "symmetry", without=without).statistics.states == count


# -- rings -----------------------------------------------------------------------------------------------------------


class Hot(Message):
    left: int


class Player(Process):
    """May throw a potato to the next one, which goes half a round."""

    thrown: bool = False
    caught: int = 0
    source: Pid | None = None

    def following(self) -> Pid:
        ring = self.ids(Player)
        return ring[(self.id.index + 1) % len(ring)]

    @action(when=lambda self: not self.thrown)
    def throw(self) -> None:
        self.thrown = True
        self.send(self.following(), Hot(len(self.ids(Player)) // 2))

    @on(Hot)
    def catch(self, m: Hot) -> None:
        self.caught = min(2, self.caught + 1)
        self.source = m.sender
        if m.left > 1:
            self.send(self.following(), Hot(m.left - 1))


class Cheat(Player):
    """Throws over the end of the ring to itself."""

    def following(self) -> Pid:
        return self.ids(Player)[min(self.id.index + 1, len(self.ids(Player)) - 1)]


@always
def not_all_busy(s: Any) -> bool:
    return not all(p.caught for p in s[Player])


@always
def the_first_is_idle(s: Any) -> bool:
    return s[Player][0].caught == 0


def ring(size: int, player: type[Player] = Player, **more: Any) -> System:
    return System([*(player() for _ in range(size)), Hub()], rotations=[Player], **more)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("without", [None, "listing"])
def test_rotations_of_a_ring(size: int, without: str | None) -> None:
    system = ring(size, properties=[not_all_busy])
    truth = explore(system)
    there = orbits(system, truth)
    assert there.closed
    assert there.impartial
    assert truth.states / size <= there.states < truth.states
    for way in WAYS:
        for reduce in ("symmetry", "por,symmetry"):
            compare(system, truth, there, way, reduce, without)


def test_a_ring_and_a_set() -> None:
    """Both kinds in one system: the group is the product."""
    system = System(
        [*(Worker() for _ in range(4)), *(Player() for _ in range(2))], symmetric=[Worker], rotations=[Player]
    )
    truth = explore(system)
    there = orbits(system, truth)
    assert len(list(permutations(system))) == 48
    for without in (None, "listing"):
        verdict = compare(system, truth, there, Way(), "symmetry", without)
        assert verdict.statistics.reductions[0].reason == "24 permutations of 4 Worker, 2 rotations of 2 Player"


@pytest.mark.parametrize("without", [None, "listing"])
def test_what_is_no_rotation_is_refused(without: str | None) -> None:
    for system, evidence in (
        (ring(3, Cheat), r"Cheat0, Cheat1 and Cheat2 are not symmetric: Cheat.throw treats them differently"),
        (
            ring(3, properties=[the_first_is_idle]),
            "property the_first_is_idle treats them differently: .* after a rotation",
        ),
        (System([Player(), Player(caught=1), Player()], rotations=[Player]), "the initial states .* caught is 0 and 1"),
    ):
        with pytest.raises(ModelError, match=evidence) as caught:
            run(system, Way(), "symmetry", without=without)
        assert "\nhint: remove the role from System(rotations=…)" in str(caught.value)
    exchanged = System([Player(), Player(), Player()], symmetric=[Player])
    with pytest.raises(ModelError, match=r"Player\.throw treats them differently"):
        run(exchanged, Way(), "symmetry", without=without)


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
