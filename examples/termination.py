"""Termination detection on a ring (Dijkstra, Feijen and van Gasteren 1983, EWD 840), from any initial state.

Nodes are active or passive, and an active node activates others at any time. A token goes round the ring, from the
last node down to node 0. A node that activates one with a greater number becomes black, and makes the token black
when it passes it on. If the token comes back white to a white, passive node 0, all nodes are passive. The algorithm
works from every state in which the token is black: all these states are initial states of the search, with no state
before them.

    plait check examples/termination.py                     termination is detected, and never too early
    plait check examples/termination.py -p nodes=4          four nodes
    plait check examples/termination.py -p stain=false      nodes that stay white: termination is detected too early

With three nodes there are 302 states, as in the model EWD840 of the TLA+ examples. As there, a node activates another
one at once, without a message under way. So the ring is one process, and each of its steps is a step of one node.
"""

from plait import Process, System, View, action, always, field, init, leads_to, predicate, weak


class Ring(Process):
    """All nodes, the position of the token, and whether nodes and token are black."""

    nodes: int
    stain: bool
    active: list[bool] = field(default_factory=list)
    black: list[bool] = field(default_factory=list)
    token: int = 0
    black_token: bool = True

    @init
    def begin(self) -> None:
        self.active = [self.choose([False, True]) for _ in range(self.nodes)]
        self.black = [self.choose([False, True]) for _ in range(self.nodes)]
        self.token = self.choose(range(self.nodes))

    @action(when=lambda self: self.token == 0 and (self.black_token or self.black[0]))
    def send_token(self) -> None:
        self.black[0] = self.black_token = False
        self.token = self.nodes - 1

    @action(
        when=lambda self: self.token > 0 and (self.black_token or self.black[self.token] or not self.active[self.token])
    )
    def pass_token(self) -> None:
        self.black_token |= self.black[self.token]
        self.black[self.token] = False
        self.token -= 1

    @action(when=lambda self: any(self.active))
    def activate(self) -> None:
        node = self.choose([i for i in range(self.nodes) if self.active[i]])
        other = self.choose([i for i in range(self.nodes) if i != node])
        self.active[other] = True
        if self.stain and other > node:
            self.black[node] = True

    @action(when=lambda self: any(self.active))
    def rest(self) -> None:
        self.active[self.choose([i for i in range(self.nodes) if self.active[i]])] = False


def terminated(s: View) -> bool:
    """All nodes are passive."""
    return all(not any(ring.active) for ring in s[Ring])


def detected(s: View) -> bool:
    """Node 0 sees that all nodes are passive."""
    return all(not (r.token or r.black_token or r.black[0] or r.active[0]) for r in s[Ring])


@always
def never_too_early(s: View) -> bool:
    """If termination is detected, all nodes are passive."""
    return not detected(s) or terminated(s)


def termination(nodes: int = 3, stain: bool = True) -> System:
    """A ring. Without `stain`, a node that activates another one does not become black."""
    return System(
        [Ring(nodes=nodes, stain=stain)],
        fairness=[weak(Ring.send_token), weak(Ring.pass_token)],
        properties=[never_too_early, leads_to(predicate(terminated), predicate(detected), name="detected_in_the_end")],
        name="termination",
    )
