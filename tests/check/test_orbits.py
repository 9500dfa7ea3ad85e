"""Numbers of orbits that are known from combinatorics, and the note of an audit that is not complete.

Processes that link each other make a state a graph, and its orbit a graph without labels. These were counted long ago, so
that the expected numbers do not depend on any code of ours. Small groups are checked both ways: with all images (as they are
listed by default) and with canonical images, which larger groups need.
"""

from __future__ import annotations

from typing import Any

import pytest

from plait import Message, Monitor, Network, Pid, Process, System, action, always, field, fifo, on, unordered
from plait.check.api import check
from plait.check.reduce.asymmetry import AsymmetryError
from tests.support.configurations import Way, fingerprints, run

pytestmark = pytest.mark.slow
BOTH = pytest.mark.parametrize("without", [None, "listing"])


def states(system: System, without: str | None, labelled: int = 5000) -> int:
    """The number of orbits, of a search, and of all states with labels if they are not too many."""
    verdict = run(system, Way(), "symmetry", without=without)
    if check(system, max_states=labelled, explore=True).bound is None:
        assert len(fingerprints(system, "symmetry", without=without)) == verdict.statistics.states
    return verdict.statistics.states


class Node(Process):
    """May link any other node."""

    linked: frozenset[Pid] = frozenset()

    @action
    def link(self) -> None:
        self.linked |= {self.choose([pid for pid in self.ids(Node) if pid != self.id])}


@BOTH
@pytest.mark.parametrize(("nodes", "count"), [(2, 3), (3, 16), (4, 218)])
def test_directed_graphs(nodes: int, count: int, without: str | None) -> None:
    """OEIS A000273."""
    assert states(System([Node() for _ in range(nodes)], symmetric=[Node]), without) == count


@BOTH
def test_directed_graphs_with_five_nodes(without: str | None) -> None:
    """OEIS A000273: 9,608 of 2 to the power of 20."""
    assert states(System([Node() for _ in range(5)], symmetric=[Node]), without) == 9608


class Guest(Process): ...


class Host(Process):
    """May invite any guests."""

    invited: frozenset[Pid] = frozenset()

    @action
    def invite(self) -> None:
        self.invited |= {self.choose(self.ids(Guest))}


@BOTH
@pytest.mark.parametrize(("hosts", "guests", "count"), [(2, 2, 7), (2, 3, 13), (3, 3, 36), (3, 4, 87), (4, 4, 317)])
def test_bipartite_graphs(hosts: int, guests: int, count: int, without: str | None) -> None:
    """OEIS A028657: binary matrices up to the order of rows and of columns."""
    processes = [*(Guest() for _ in range(guests)), *(Host() for _ in range(hosts))]
    assert states(System(processes, symmetric=[Guest, Host]), without) == count


class Letter(Message): ...


class Writer(Process):
    """May write to all others, one after the other; nobody reads."""

    others: int = 3
    written: frozenset[Pid] = frozenset()

    @action(when=lambda self: len(self.written) < self.others)
    def write(self) -> None:
        to = self.choose([pid for pid in self.ids(Writer) if pid not in {self.id, *self.written}])
        self.written |= {to}
        self.send(to, Letter())

    @on(Letter, where=lambda self, m: False)
    def read(self, m: Letter) -> None: ...


@BOTH
@pytest.mark.parametrize("network", ["unordered", "fifo"])
def test_directed_graphs_of_messages(network: str, without: str | None) -> None:
    """The graph is in the inboxes as well, which does not change the number of orbits."""
    more = {"network": fifo()} if network == "fifo" else {}
    assert states(System([Writer() for _ in range(4)], symmetric=[Writer], **more), without) == 218


class Vote(Message):
    value: int


class Box(Process):
    @on(Vote, where=lambda self, m: False)
    def count(self, m: Vote) -> None: ...


class Voter(Process):
    """Votes, and forgets what it has voted for."""

    voted: bool = False

    @action(when=lambda self: not self.voted)
    def vote(self) -> None:
        self.voted = True
        self.broadcast(Box, Vote(self.choose([0, 1])))


@BOTH
@pytest.mark.parametrize("network", [unordered(), fifo()], ids=str)
@pytest.mark.parametrize(("voters", "count"), [(3, 10), (4, 15), (8, 45)])
def test_votes_on_their_way(network: Network, voters: int, count: int, without: str | None) -> None:
    """How many have not voted, voted for 0 and voted for 1: 10 is 5 over 2, 15 is 6 over 2, and 45 is 10 over 2."""
    system = System([Box(), *(Voter() for _ in range(voters))], symmetric=[Voter], network=network)
    assert states(system, without, labelled=100) == count


class Pairs(Monitor):
    """The undirected graph of all that was announced."""

    met: dict[str, set[frozenset[Pid]]] = field(default_factory=dict)

    def observe(self, process: Pid, event: Any) -> None:
        self.met.setdefault("pairs", set()).add(frozenset({process, event}))


class Friendly(Process):
    """Meets any other; only the monitor remembers."""

    @action
    def meet(self) -> None:
        self.announce(self.choose([pid for pid in self.ids(Friendly) if pid != self.id]))


@BOTH
@pytest.mark.parametrize(("nodes", "count"), [(3, 4), (4, 11)])
def test_graphs_in_a_monitor(nodes: int, count: int, without: str | None) -> None:
    """OEIS A000088: graphs without labels."""
    system = System([Friendly() for _ in range(nodes)], symmetric=[Friendly], monitors=[Pairs()])
    assert states(system, without) == count


class Bead(Process):
    """Black or white."""

    black: bool = False

    @action(when=lambda self: not self.black)
    def paint(self) -> None:
        self.black = True


@BOTH
@pytest.mark.parametrize(("beads", "count"), [(2, 3), (3, 4), (4, 6), (6, 14), (9, 60), (12, 352)])
def test_necklaces(beads: int, count: int, without: str | None) -> None:
    """OEIS A000031: necklaces of two colours, up to rotation."""
    assert states(System([Bead() for _ in range(beads)], rotations=[Bead]), without) == count
    assert states(System([Bead() for _ in range(beads)], symmetric=[Bead]), without) == beads + 1


def test_a_necklace_beside_a_set() -> None:
    """The orbits of a product of groups are pairs of orbits, if neither part names the other."""
    processes = [*(Bead() for _ in range(6)), *(Node() for _ in range(3))]
    system = System(processes, symmetric=[Node], rotations=[Bead])
    assert [states(system, without) for without in (None, "listing")] == [14 * 16] * 2


# -- audits that are not complete ------------------------------------------------------------------------------------


class Runner(Process):
    fast: bool = False

    @action(when=lambda self: not self.fast)
    def hurry(self) -> None:
        self.fast = True


class Referee(Process):
    """Notes who comes first, second and so on."""

    places: int
    podium: tuple[Pid, ...] = ()

    @action(when=lambda self: len(self.podium) < self.places)
    def note(self) -> None:
        self.podium += (self.choose([pid for pid in self.ids(Runner) if pid not in self.podium]),)


def test_a_sample_of_images_is_noted() -> None:
    """Four of eight runners, in order, have 8!/4! = 1,680 images, and five have 6,720: at most 5,040 are verified."""
    note = "40,320 permutations of 8 Runner"
    for places, reason in ((4, note), (5, f"{note}; verified on a sample of images, because there are too many")):
        verdict = check(
            System([Referee(places=places), *(Runner() for _ in range(8))], symmetric=[Runner]),
            reduce="symmetry",
            explore=True,
        )
        assert verdict.status == "holds"
        # Each on the podium is fast or not, and of the others only how many are.
        assert verdict.statistics.states == sum(2**k * (9 - k) for k in range(places + 1))
        assert [(r.name, r.applied, r.reason) for r in verdict.statistics.reductions] == [("symmetry", True, reason)]


@always
def the_first_waits(s: Any) -> bool:
    return not s[Runner][0].fast


@pytest.mark.parametrize("runners", [2, 8, 12])
def test_a_broken_symmetry_is_noticed_in_a_large_group(runners: int) -> None:
    """Few names are at stake, so that the images are few and all are verified, however large the group is."""
    system = System([Runner() for _ in range(runners)], symmetric=[Runner], properties=[the_first_waits])
    with pytest.raises(AsymmetryError, match="property the_first_waits treats them differently"):
        check(system, reduce="symmetry")
    verdict = check(system, reduce="auto")
    (note,) = [r for r in verdict.statistics.reductions if r.name == "symmetry"]
    assert verdict.status == "violated"
    assert not note.applied
    assert "property the_first_waits treats them differently" in note.reason


def test_the_probability_of_a_collision() -> None:
    """Each pair of states may collide, and with symmetry each pair of images that are compared: here all 24."""
    system = System([Bead() for _ in range(4)], symmetric=[Bead])
    found = [check(system, reduce=reduce, explore=True).statistics for reduce in ("none", "symmetry")]
    assert [one.states for one in found] == [16, 5]
    assert [one.collision_probability * 2**64 for one in found] == pytest.approx([16 * 15 / 2, 24 * 5 * 4 / 2])
