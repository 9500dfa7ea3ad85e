"""Termination detection for diffusing computations (Dijkstra, Scholten, Information Processing Letters 1980).

A *diffusing computation* starts at one node, the root, which is active; all others are passive. An active node may send
work to others, and may become passive at any time; a passive node becomes active when work arrives, and only then. It
is over when all nodes are passive and no work is in transit. The root wants to know when that is.

- Every work message is acknowledged. A node counts the acknowledgements that are due to it: its *deficit*.
- A passive node that gets work joins a tree: who sent it becomes its *parent*. Work that arrives while a node is in the
  tree is acknowledged at once.
- A node that is passive, and whose deficit is zero, leaves the tree: it acknowledges the work that made it join. When
  the root would leave, the computation is over, and it announces that.

So whoever is in the tree waits for its children, and all that is going on is below the root.

Simplified: the work is bounded, each node sends at most `sends` work messages, to any other node, in a run; what the work
computes is left out.

Faulty twins:

- `hasty`: nodes acknowledge all work at once, instead of when their children have acknowledged. Termination is announced
  too early.
- `fickle`: a node in the tree takes whoever sends it work for its new parent, and never acknowledges the work of the one
  before. Then termination is never announced.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import Message, Pid, Process, System, action, always, final, on, reachable
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of, several

Fault = Literal["none", "hasty", "fickle"]


class Work(Message):
    """Something to do."""


class Ack(Message):
    """The receiver need not wait for one of its work messages any longer."""


class Node(Process):
    """Works when there is work."""

    sends: int
    """How many work messages it may still send."""
    active: bool = False
    parent: Pid | None = None
    """Whose work made it join the tree; None while it is not in the tree."""
    deficit: int = 0
    """How many acknowledgements are due to it."""

    @action(when=lambda self: self.active and self.sends > 0)
    def delegate(self) -> None:
        self.sends -= 1
        self.deficit += 1
        self.send(self.choose([pid for pid in self.ids(Node) if pid != self.id]), Work())

    @action(when=lambda self: self.active)
    def rest(self) -> None:
        self.active = False

    @on(Work, where=lambda self, m: self.parent is None)
    def join(self, m: Work) -> None:
        self.active = True
        self.parent = m.sender

    @on(Work, where=lambda self, m: self.parent is not None)
    def take(self, m: Work) -> None:
        self.active = True
        self.send(m.sender, Ack())

    @on(Ack, where=lambda self, m: self.deficit > 0)
    def acknowledged(self, m: Ack) -> None:
        self.deficit -= 1

    @action(when=lambda self: self.parent is not None and not self.active and self.deficit == 0)
    def leave(self) -> None:
        assert self.parent is not None
        self.send(self.parent, Ack())
        self.parent = None


class HastyNode(Node):
    """Acknowledges all work as soon as it arrives, and never joins the tree."""

    @on(Work)
    def take(self, m: Work) -> None:
        self.active = True
        self.send(m.sender, Ack())

    join = None  # type: ignore[assignment]
    leave = None  # type: ignore[assignment]


class FickleNode(Node):
    """Forgets its parent for a new one."""

    def take(self, m: Work) -> None:
        self.active = True
        self.parent = m.sender


class Root(Node):
    """Where the computation starts: the root of the tree, and its own parent."""

    announced: bool = False

    join = None  # type: ignore[assignment]

    def leave(self) -> None:
        self.parent = None
        self.announced = True


# -- properties ------------------------------------------------------------------------------------------------------


@always
def nobody_active(s: View) -> bool:
    """When termination is announced, no node is active; nor ever after, so that no work was left to arrive."""
    (root,) = s[Root]
    return not root.announced or not any(node.active for node in s[Node])


@always
def nothing_in_transit(s: View) -> bool:
    """When termination is announced, no work is in transit."""
    (root,) = s[Root]
    return not root.announced or not any(isinstance(m, Work) for m in s.messages)


@final
def announced(s: View) -> bool:
    """In the end, termination is announced."""
    (root,) = s[Root]
    return bool(root.announced)


@reachable
def everybody_works(s: View) -> bool:
    """All nodes can be active at once."""
    return all(node.active for node in s[Node])


# -- the model -------------------------------------------------------------------------------------------------------


def dijkstra_scholten(nodes: int = 3, sends: int = 2, faulty: Fault = "none") -> System:
    """A root and so many nodes less one, each of which sends at most so many work messages."""
    at_least(2, nodes=nodes)
    at_least(1, sends=sends)
    one_of(get_args(Fault), faulty=faulty)
    node = {"none": Node, "hasty": HastyNode, "fickle": FickleNode}[faulty]
    return System(
        [
            Root(sends=sends, active=True, parent=Root.pid(0)),
            *(node(sends=sends) for _ in range(nodes - 1)),
        ],
        properties=[nobody_active, nothing_in_transit, announced, everybody_works],
        symmetric=several({node: nodes - 1}),
        name="dijkstra_scholten",
    )
