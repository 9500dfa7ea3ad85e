"""Anti-entropy: gossip that converges (Demers et al., "Epidemic Algorithms for Replicated Database Maintenance", PODC 1987).

Nodes hold copies of one value. Some nodes write without asking the others. A write spreads because each node
repeatedly picks a neighbour and compares copies with it. The newer copy wins (*last writer wins*). Writes are ordered
by stamps: a logical clock and the number of the writing node, so no two stamps are equal.

- A node that gossips sends a *digest* of its copy, which is the stamp, to one neighbour.
- A node that receives a digest older than its own copy sends an *update*: its copy. If the digest is newer, it
  answers with its own digest, which asks for an update. If the stamps are equal, it does nothing. (Push and pull, as
  in the paper.)
- A node takes an update that is newer than its own copy, and ignores other updates.

Nodes gossip for ever. But once a node has compared its copy with a neighbour, it learns nothing new from that
neighbour until the copy changes. So a node keeps a set of neighbours to compare with, and stops when the set is
empty. In the end all nodes have the same copy, the newest one.

The first `writers` nodes write, `writes` times each. Neighbours are all other nodes (`topology="complete"`), the two
adjacent nodes on a ring (`ring`), or the adjacent nodes on a line (`line`).

Faulty twins:

- `tie`: stamps are clocks only. Two writes at the same time have equal stamps, and nodes that compare their copies
  see no difference.
- `overwrite`: a node takes each update, even one that is older than its own latest write.

Simplified: one item instead of a database; messages are not lost, and nodes do not fail; no deletions.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import Message, ModelError, Pid, Process, System, action, always, field, final, on, reachable
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "tie", "overwrite"]
Topology = Literal["complete", "ring", "line"]

Stamp = tuple[int, int]
"""A clock, and the number of the node that wrote (from 1), to break ties."""

NEVER: Stamp = (0, 0)
"""The stamp of the initial value."""


class Digest(Message):
    """The stamp of the sender's copy."""

    stamp: Stamp


class Update(Message):
    """The sender's copy."""

    stamp: Stamp
    value: str


class Node(Process):
    """Holds a copy, may write, and gossips."""

    neighbours: frozenset[Pid]
    writes: int
    """The number of writes left."""
    stamp: Stamp = NEVER
    value: str = ""
    wrote: Stamp = NEVER
    """The stamp of its newest write."""
    compare: set[Pid] = field(default_factory=set)
    """The neighbours with which it has not compared its copy."""

    @action(when=lambda self: self.writes > 0)
    def write(self) -> None:
        self.writes -= 1
        self.stamp = self.next()
        self.wrote = max(self.wrote, self.stamp)
        self.value = f"node {self.id.index} at {self.stamp[0]}"
        self.compare = set(self.neighbours)

    def next(self) -> Stamp:
        """A stamp greater than all stamps that the node knows."""
        return (self.stamp[0] + 1, self.id.index + 1)

    @action(when=lambda self: len(self.compare) > 0)
    def gossip(self) -> None:
        neighbour = self.choose(self.compare)
        self.compare.remove(neighbour)
        self.send(neighbour, Digest(self.stamp))

    @on(Digest, where=lambda self, m: m.stamp < self.stamp)
    def push(self, m: Digest) -> None:
        self.compare.discard(m.sender)
        self.send(m.sender, Update(self.stamp, self.value))

    @on(Digest, where=lambda self, m: m.stamp > self.stamp)
    def pull(self, m: Digest) -> None:
        self.send(m.sender, Digest(self.stamp))

    @on(Digest, where=lambda self, m: m.stamp == self.stamp)
    def agree(self, m: Digest) -> None:
        self.compare.discard(m.sender)

    @on(Update, where=lambda self, m: m.stamp > self.stamp)
    def take(self, m: Update) -> None:
        self.stamp, self.value = m.stamp, m.value
        self.compare = set(self.neighbours - {m.sender})

    @on(Update, where=lambda self, m: m.stamp <= self.stamp)
    def ignore(self, m: Update) -> None:
        """Ignore an old update."""


class TieNode(Node):
    """Stamps its writes with clocks only."""

    def next(self) -> Stamp:
        """A clock greater than all clocks that the node knows."""
        return (self.stamp[0] + 1, 0)


class OverwritingNode(Node):
    """Takes each update."""

    @on(Update)
    def take(self, m: Update) -> None:
        self.stamp, self.value = m.stamp, m.value
        self.compare = set(self.neighbours - {m.sender})

    ignore = None  # type: ignore[assignment]


# -- properties ------------------------------------------------------------------------------------------------------


def newest(s: View) -> Stamp:
    """The newest write."""
    stamps: list[Stamp] = [node.wrote for node in s[Node]]
    return max(stamps)


@final
def agreement(s: View) -> bool:
    """In the end, all nodes hold the same value."""
    return len({node.value for node in s[Node]}) == 1


@final
def last_writer_wins(s: View) -> bool:
    """In the end, all nodes hold the newest write."""
    return {node.stamp for node in s[Node]} == {newest(s)}


@always
def nothing_invented(s: View) -> bool:
    """No node holds a copy newer than the newest write."""
    return all(node.stamp <= newest(s) for node in s[Node])


@reachable
def conflict(s: View) -> bool:
    """Two nodes can hold different values that were written at the same time."""
    held = {(node.stamp[0], node.value) for node in s[Node]}
    return len({clock for clock, _ in held}) < len(held)


# -- the model -------------------------------------------------------------------------------------------------------


def gossip(
    nodes: int = 3, writers: int = 2, writes: int = 1, topology: Topology = "complete", faulty: Fault = "none"
) -> System:
    """`nodes` nodes, of which the first `writers` write `writes` times each."""
    at_least(2, nodes=nodes)
    at_least(1, writers=writers, writes=writes)
    if writers > nodes:
        raise ModelError(f"writers={writers}: there are only {nodes} nodes", hint=f"give writers={nodes} or less")
    one_of(get_args(Topology), topology=topology)
    one_of(get_args(Fault), faulty=faulty)
    node: type[Node] = {"none": Node, "tie": TieNode, "overwrite": OverwritingNode}[faulty]
    return System(
        [
            node(
                neighbours=frozenset(node.pid(j) for j in _neighbours(i, nodes, topology)),
                writes=writes if i < writers else 0,
            )
            for i in range(nodes)
        ],
        properties=[agreement, last_writer_wins, nothing_invented, *([conflict] if writers > 1 else [])],
        name="gossip",
    )


def _neighbours(node: int, nodes: int, topology: Topology) -> set[int]:
    """The numbers of the neighbours of a node."""
    if topology == "complete":
        return set(range(nodes)) - {node}
    beside = {node - 1, node + 1}
    return {i % nodes for i in beside} - {node} if topology == "ring" else beside & set(range(nodes))
