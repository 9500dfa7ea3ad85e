"""Leader election on a ring with few messages (Hirschberg and Sinclair, CACM 1980).

Nodes with distinct identities form a ring. Messages travel both ways and may overtake each other. A node does not
know the size of the ring. The node with the largest identity is elected, in phases: in phase k a candidate sends its
identity as a *probe* to a distance of 2^k nodes in both directions.

- A node that receives a larger identity than its own passes the probe on. The last node on the way answers with a
  *reply*, which travels back.
- A node that receives a smaller identity drops the probe, and this candidate waits for ever.
- A candidate that has both replies has beaten all nodes within distance 2^k, and begins phase k + 1.
- A candidate that receives its own probe has beaten the whole ring: it is the leader, and sends its identity around
  the ring.

Candidates that survive phase k - 1 are more than 2^(k - 1) nodes apart. So phase k has at most n / (2^(k - 1) + 1)
candidates, and each causes at most 4 * 2^k messages: O(n log n) in total. (`chang_roberts` has fewer types of
messages, and up to n^2 messages.) Nodes count the messages that they send, and `few_messages` compares the count with
the exact sum.

Nodes have the identities 1 to n. `order` is their order around the ring: `ascending`, or numbers with commas such as
`2,4,1,3`.

Faulty twins:

- `meek`: relays pass on each candidate, and all nodes are elected.
- `reversed`: relays compare in the wrong direction, and the smallest identity is elected.

Simplified: all nodes begin at once (their probes are in transit in the initial state); nodes do not crash, and
messages are not lost.
"""

from __future__ import annotations

import enum
from typing import Literal, get_args

from plait import Message, ModelError, Process, System, always, field, final, init, on, reachable
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "meek", "reversed"]


class Way(enum.Enum):
    """The direction in which a message travels; its value is the step from node to node."""

    LEFT = -1
    RIGHT = 1


class Probe(Message):
    """The identity of a candidate, with the phase and the number of nodes that the probe has reached."""

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
    """The directions from which replies of this phase have arrived."""
    elected: bool = False
    leader: int | None = None
    """The identity of the leader, once the node knows it."""
    sent: int = 0
    """The number of messages that it has sent."""

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
            self.pass_on(Reply(m.identity, m.phase, opposite(m.way)), opposite(m.way))

    def beaten_by(self, identity: int) -> bool:
        """Whether the candidate with this identity beats the node."""
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
        """Send to the next node in this direction."""
        nodes = self.ids(Node)
        self.sent += 1
        self.send(nodes[(self.id.index + way.value) % len(nodes)], message)


def opposite(way: Way) -> Way:
    """The opposite direction."""
    return Way.LEFT if way is Way.RIGHT else Way.RIGHT


class MeekNode(Node):
    """Passes on each candidate."""

    def beaten_by(self, identity: int) -> bool:
        """Always."""
        return True


class ReversedNode(Node):
    """Passes smaller identities on."""

    def beaten_by(self, identity: int) -> bool:
        """A smaller identity beats the node."""
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
    """In the end, the number of messages is at most the bound of the paper (see `most_messages`)."""
    return bool(sum(node.sent for node in s[Node]) <= most_messages(len(s[Node])))


@reachable
def election(s: View) -> bool:
    """Some node can be elected."""
    return any(node.elected for node in s[Node])


def most_messages(nodes: int) -> int:
    """The bound of the paper: the messages of the candidates of all phases, and n for the announcement.

    >>> [most_messages(n) for n in (1, 2, 4, 8)]
    [5, 18, 52, 136]
    """
    total, candidates, distance = nodes, nodes, 1
    while True:
        total += candidates * 4 * distance
        if distance >= nodes:  # these probes travel around the whole ring
            return total
        candidates = nodes // (distance + 1)
        distance *= 2


def hirschberg_sinclair(nodes: int = 4, order: str = "ascending", faulty: Fault = "none") -> System:
    """A ring of `nodes` nodes. `order`: their order around the ring, ascending or numbers with commas."""
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
            f"order={order!r} is not an order of {nodes} nodes",
            hint=f"give 'ascending', or the numbers from 1 to {nodes} separated by commas",
        )
    return [int(part) for part in parts]
