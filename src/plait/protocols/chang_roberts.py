"""Leader election on a ring (Chang and Roberts, CACM 1979), after the TLA+ specification in tlaplus/Examples.

Nodes with distinct identities form a ring in which messages travel one way, and may overtake each other. Initiators
send their identity to the next node. A node that gets a smaller identity than its own has lost, and passes it on; a
greater one it swallows; and when its own comes back, it has won. A node that does not initiate has lost from the start,
and passes everything on. So the initiator with the smallest identity is elected.

`initiators` says who initiates: `any` (every node decides when it begins, so that one check covers all cases), `all`,
or some node numbers such as `1,3` (the empty string: nobody). Nodes are numbered from 1, and the number is also the
identity. In the TLA+ specification the initiators are chosen in the initial state, of which there are as many as there
are subsets of the nodes: its states are those of the Systems for all subsets together.

The faulty twin, `faulty="greedy"`: nodes pass on greater identities, too.

`specification="live"` asks for termination as well: on every run, all have begun, no claim is under way any more, and
somebody has won if anybody initiated. It needs no fairness, for no run is infinite. Of the twin one is: the claim of a
node that has lost goes round for ever.

Simplified: the identities are 1, 2, … in the order of the ring; who has won does not tell the others; nobody crashes, and
nothing is lost.
"""

from __future__ import annotations

import enum
from typing import Literal, get_args

from plait import Message, ModelError, Pid, Process, System, action, always, eventually, final, on, reachable
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "greedy"]
Specification = Literal["safe", "live"]


class Claim(Message):
    """The identity of a node that wants to be the leader."""

    identity: int


class Standing(enum.Enum):
    """What a node knows of its own candidature."""

    CANDIDATE = enum.auto()
    LOST = enum.auto()
    WON = enum.auto()


class Node(Process):
    """A node of the ring."""

    identity: int
    initiator: bool | None
    """None until it is decided."""
    standing: Standing
    begun: bool = False

    @action(when=lambda self: not self.begun)
    def begin(self) -> None:
        self.begun = True
        if self.initiator is None:
            self.initiator = self.choose([True, False])
            self.standing = Standing.CANDIDATE if self.initiator else Standing.LOST
        if self.initiator:
            self.send(self.successor(), Claim(self.identity))

    @on(Claim, where=lambda self, m: self.begun)
    def receive(self, m: Claim) -> None:
        if self.standing is Standing.LOST:
            self.send(self.successor(), m)
        elif m.identity < self.identity:
            self.standing = Standing.LOST
            self.send(self.successor(), m)
        elif m.identity == self.identity:
            self.standing = Standing.WON
        else:
            self.refuse(m)

    def refuse(self, claim: Claim) -> None:
        """A greater identity goes no further."""

    def successor(self) -> Pid:
        """The next node on the ring."""
        nodes = self.ids(Node)
        return nodes[(self.id.index + 1) % len(nodes)]


class GreedyNode(Node):
    """Passes everything on."""

    def refuse(self, claim: Claim) -> None:
        """Let it pass."""
        self.send(self.successor(), claim)


@always
def correctness(s: View) -> bool:
    """Who has won is the initiator with the smallest identity, and all others have lost."""
    return all(
        winner.initiator
        and all(
            other.standing is Standing.LOST and (not other.initiator or other.identity > winner.identity)
            for other in s[Node]
            if other != winner
        )
        for winner in s[Node]
        if winner.standing is Standing.WON
    )


@final
def somebody_wins(s: View) -> bool:
    """In the end, somebody has won, if anybody initiated."""
    return any(node.standing is Standing.WON for node in s[Node]) or not any(node.initiator for node in s[Node])


@reachable
def election(s: View) -> bool:
    """Somebody can win."""
    return any(node.standing is Standing.WON for node in s[Node])


@eventually
def termination(s: View) -> bool:
    """All have begun, no claim is under way, and somebody has won, if anybody initiated."""
    return all(node.begun for node in s[Node]) and not s.messages and bool(somebody_wins.predicate(s))


def chang_roberts(
    nodes: int = 3, initiators: str = "any", specification: Specification = "safe", faulty: Fault = "none"
) -> System:
    """A ring of so many nodes; see the module for `initiators` and `specification`."""
    at_least(1, nodes=nodes)
    one_of(get_args(Specification), specification=specification)
    one_of(get_args(Fault), faulty=faulty)
    kind = GreedyNode if faulty == "greedy" else Node
    decided = {i: _initiates(i, initiators, nodes) for i in range(1, nodes + 1)}
    nobody = all(choice is False for choice in decided.values())
    return System(
        [
            kind(identity=i, initiator=choice, standing=Standing.LOST if choice is False else Standing.CANDIDATE)
            for i, choice in decided.items()
        ],
        properties=[
            correctness,
            somebody_wins,
            *([] if nobody else [election]),
            *([termination] if specification == "live" else []),
        ],
        name="chang_roberts",
    )


def _initiates(node: int, initiators: str, nodes: int) -> bool | None:
    """Whether a node initiates; None leaves it to the node."""
    if initiators in ("any", "all"):
        return None if initiators == "any" else True
    chosen = [part.strip() for part in initiators.split(",")] if initiators else []
    for part in chosen:
        if not part.isdecimal() or not 1 <= int(part) <= nodes:
            raise ModelError(
                f"initiators={initiators!r}: {part!r} is no node",
                hint=f"give 'any', 'all', or numbers from 1 to {nodes} with commas between",
            )
    return str(node) in chosen
