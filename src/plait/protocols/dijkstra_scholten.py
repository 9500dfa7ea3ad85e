"""Termination detection for diffusing computations (Dijkstra, Scholten, Information Processing Letters 1980).

A *diffusing computation* starts at one node, the root, which is active; all other nodes are passive. An active node
may send work to other nodes, and may become passive at any time. A passive node becomes active only when work
arrives. The computation has terminated when all nodes are passive and no work is in transit. The root must detect
this.

- Each work message is acknowledged. A node counts the acknowledgements that it still waits for: its *deficit*.
- A passive node that receives work joins a tree: the sender becomes its *parent*. Work that arrives while a node is
  in the tree is acknowledged at once.
- A node that is passive and has deficit zero leaves the tree: it acknowledges the work that made it join. When the
  root would leave, the computation has terminated, and the root announces it.

So each node in the tree waits for its children, and all activity is below the root.

Simplified: the work is bounded. Each node sends at most `sends` work messages in a run, to any other node. The result
of the work is not modelled.

Faulty twins:

- `hasty`: nodes acknowledge all work at once, instead of when their children have acknowledged. Termination is
  announced too early.
- `fickle`: a node in the tree takes each new sender of work as its parent, and never acknowledges the work of the
  former parent. Termination is never announced.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import Message, Pid, Process, System, action, always, final, on, reachable
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of, several

Fault = Literal["none", "hasty", "fickle"]


class Work(Message):
    """Makes the receiver active."""


class Ack(Message):
    """Acknowledges one work message of the receiver."""


class Node(Process):
    """Works when it has work."""

    sends: int
    """The number of work messages that it may still send."""
    active: bool = False
    parent: Pid | None = None
    """The node whose work made it join the tree; None while it is not in the tree."""
    deficit: int = 0
    """The number of acknowledgements that it waits for."""

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
    """Replaces its parent by each new sender of work."""

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
    """When termination has been announced, no node is active, then or later."""
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
    """A root and `nodes` - 1 other nodes, each of which sends at most `sends` work messages."""
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
