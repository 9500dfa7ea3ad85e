"""Leader election on a ring with few messages (Hirschberg and Sinclair, CACM 1980).

Nodes with distinct identities form a ring in which messages travel both ways, and may overtake each other. A node does
not know how large the ring is. The one with the largest identity is elected, in phases: in phase k a candidate sends its
identity as a *probe* 2^k nodes far in both directions.

- A node that gets a larger identity than its own passes the probe on; where its way ends, the probe is answered by a
  *reply*, which travels back.
- A node that gets a smaller identity swallows the probe, and that candidate waits in vain.
- A candidate that has both replies has beaten everybody within 2^k nodes, and begins phase k + 1.
- A candidate that gets its own probe has beaten the whole ring: it is the leader, and sends its identity around the ring.

Those that survive phase k - 1 are more than 2^(k - 1) nodes apart, so there are at most n / (2^(k - 1) + 1) candidates in
phase k, and each causes at most 4 * 2^k messages: O(n log n) of them altogether (compare `chang_roberts`, with fewer kinds
of messages and up to n^2 of them). Nodes count what they send, and `few_messages` compares that with the exact sum.

Nodes have the identities 1 to n. Of their orders around the ring, `order` is the one to check: `ascending`, or some
order written with commas, such as `2,4,1,3`.

Faulty twins:

- `meek`: relays let every candidate pass, and all nodes are elected.
- `reversed`: relays compare the wrong way, and the smallest identity is elected.

Simplified: all nodes begin at once (their probes are on their way in the initial state); nobody crashes, and nothing is
lost.
"""

from __future__ import annotations

import enum
from typing import Literal, get_args

from plait import Message, ModelError, Process, System, always, field, final, init, on, reachable
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "meek", "reversed"]


class Way(enum.Enum):
    """Which way a message travels around the ring; the value is the step from node to node."""

    LEFT = -1
    RIGHT = 1


class Probe(Message):
    """The identity of a candidate on its way, with the phase and the number of nodes it has reached."""

    identity: int
    phase: int
    hops: int
    way: Way


class Reply(Message):
    """The answer on its way back to the candidate."""

    identity: int
    phase: int
    way: Way


class Elected(Message):
    """The identity of the leader on its way around the ring."""

    identity: int


class Node(Process):
    """A node of the ring."""

    identity: int
    phase: int = 0
    replied: set[Way] = field(default_factory=set)
    """The ways by which replies of this phase have come."""
    elected: bool = False
    leader: int | None = None
    """The identity of the leader, when it is known."""
    sent: int = 0
    """How many messages it has sent."""

    @init
    def begin(self) -> None:
        self.probe()

    def probe(self) -> None:
        """Begin a phase."""
        for way in Way:
            self.pass_on(Probe(self.identity, self.phase, 1, way), way)

    @on(Probe, where=lambda self, m: m.identity != self.identity)
    def relay(self, m: Probe) -> None:
        if not self.beaten_by(m.identity):
            return
        if m.hops < 2**m.phase:
            self.pass_on(Probe(m.identity, m.phase, m.hops + 1, m.way), m.way)
        else:
            self.pass_on(Reply(m.identity, m.phase, back(m.way)), back(m.way))

    def beaten_by(self, identity: int) -> bool:
        """Whether the candidate with this identity goes on."""
        return identity > self.identity

    @on(Reply, where=lambda self, m: m.identity != self.identity)
    def relay_reply(self, m: Reply) -> None:
        self.pass_on(m, m.way)

    @on(Reply, where=lambda self, m: m.identity == self.identity)
    def survive(self, m: Reply) -> None:
        self.replied.add(m.way)
        if len(self.replied) == len(Way):
            self.phase += 1
            self.replied = set()
            self.probe()

    @on(Probe, where=lambda self, m: m.identity == self.identity)
    def win(self, m: Probe) -> None:
        if not self.elected:
            self.elected = True
            self.leader = self.identity
            self.pass_on(Elected(self.identity), Way.RIGHT)

    @on(Elected)
    def learn(self, m: Elected) -> None:
        if m.identity != self.identity:
            self.leader = m.identity
            self.pass_on(m, Way.RIGHT)

    def pass_on(self, message: Message, way: Way) -> None:
        """Send to the next node on this way."""
        nodes = self.ids(Node)
        self.sent += 1
        self.send(nodes[(self.id.index + way.value) % len(nodes)], message)


def back(way: Way) -> Way:
    """The other way."""
    return Way.LEFT if way is Way.RIGHT else Way.RIGHT


class MeekNode(Node):
    """Lets every candidate pass."""

    def beaten_by(self, identity: int) -> bool:
        """Always."""
        return True


class ReversedNode(Node):
    """Passes smaller identities on."""

    def beaten_by(self, identity: int) -> bool:
        """By a smaller one."""
        return identity < self.identity


@always
def one_leader(s: View) -> bool:
    """At most one node is elected."""
    return len([node for node in s[Node] if node.elected]) <= 1


@always
def largest(s: View) -> bool:
    """Only the node with the largest identity is elected."""
    return all(node.identity == len(s[Node]) for node in s[Node] if node.elected)


@final
def all_know(s: View) -> bool:
    """In the end, there is a leader, and all nodes know it."""
    return any(node.elected for node in s[Node]) and all(node.leader == len(s[Node]) for node in s[Node])


@final
def few_messages(s: View) -> bool:
    """In the end, no more messages were sent than the candidates of all phases can cause, and the announcement."""
    return bool(sum(node.sent for node in s[Node]) <= most_messages(len(s[Node])))


@reachable
def election(s: View) -> bool:
    """Somebody can be elected."""
    return any(node.elected for node in s[Node])


def most_messages(nodes: int) -> int:
    """The bound of the paper: all candidates of phase 0, then of each phase as long as there are candidates; and n.

    >>> [most_messages(n) for n in (1, 2, 4, 8)]
    [5, 18, 52, 136]
    """
    total, candidates, distance = nodes, nodes, 1
    while True:
        total += candidates * 4 * distance
        if distance >= nodes:  # these probes get around the ring
            return total
        candidates = nodes // (distance + 1)
        distance *= 2


def hirschberg_sinclair(nodes: int = 4, order: str = "ascending", faulty: Fault = "none") -> System:
    """A ring of so many nodes; see the module for `order`."""
    at_least(1, nodes=nodes)
    one_of(get_args(Fault), faulty=faulty)
    kind: type[Node] = {"meek": MeekNode, "reversed": ReversedNode}.get(faulty, Node)
    return System(
        [kind(identity=identity) for identity in _identities(nodes, order)],
        properties=[one_leader, largest, all_know, few_messages, election],
        name="hirschberg_sinclair",
    )


def _identities(nodes: int, order: str) -> list[int]:
    """The identities around the ring."""
    ascending = list(range(1, nodes + 1))
    if order == "ascending":
        return ascending
    parts = [part.strip() for part in order.split(",")]
    if sorted(parts) != sorted(map(str, ascending)):
        raise ModelError(
            f"order={order!r} is no order of {nodes} nodes",
            hint=f"give 'ascending', or the numbers from 1 to {nodes} with commas between",
        )
    return [int(part) for part in parts]
