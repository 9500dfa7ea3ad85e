"""Leader election on a ring (Chang and Roberts, CACM 1979), after the TLA+ specification in tlaplus/Examples.

Nodes with distinct identities form a ring. Messages travel one way and may overtake each other. Initiators send their
identity to the next node. A node that receives a smaller identity than its own has lost, and passes it on. It drops a
greater identity. A node that receives its own identity has won. A node that is not an initiator has lost from the
start, and passes on all identities. So the initiator with the smallest identity is elected.

`initiators` says which nodes initiate: `any` (each node decides when it begins, so one check covers all cases),
`all`, or node numbers such as `1,3` (the empty string: no node). Nodes are numbered from 1, and the number is also
the identity. The TLA+ specification chooses the initiators in the initial state, so it has one initial state for each
subset of the nodes. Its states are the states of the Systems for all subsets together.

The faulty twin, `faulty="greedy"`: nodes pass on greater identities, too.

`specification="live"` also asks for termination: on each run, all nodes have begun, no claim is in transit, and some
node has won if any node initiated. This needs no fairness, because all runs are finite. The twin has an infinite run:
the claim of a node that has lost travels around the ring for ever.

Simplified: the identities are 1, 2, … in the order of the ring; the winner does not tell the others; nodes do not
crash, and messages are not lost.
"""

from __future__ import annotations

import enum
import math
from typing import Literal, get_args

from plait import Message, ModelError, Pid, Process, System, action, always, eventually, final, on, reachable, view
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "greedy"]
Specification = Literal["safe", "live"]


class Claim(Message):
    """The identity of a node that wants to be the leader."""

    identity: int


class Standing(enum.Enum):
    """What a node knows about its own candidacy."""

    CANDIDATE = enum.auto()
    LOST = enum.auto()
    WON = enum.auto()


class Node(Process):
    """A node of the ring."""

    identity: int
    initiator: bool | None
    """None until the node decides."""
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
    """Only the initiator with the smallest identity wins, and then all others have lost."""
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
    """In the end, some node has won if any node initiated."""
    return any(node.standing is Standing.WON for node in s[Node]) or not any(node.initiator for node in s[Node])


@reachable
def election(s: View) -> bool:
    """Some node can win."""
    return any(node.standing is Standing.WON for node in s[Node])


@eventually
def termination(s: View) -> bool:
    """All nodes have begun, no claim is in transit, and some node has won if any node initiated."""
    return all(node.begun for node in s[Node]) and not s.messages and bool(somebody_wins.predicate(s))


@view
def ring(s: View) -> str:
    """The nodes on the ring: lost ones are grey, a winner is green. Beside each node, the claims that it has to receive."""
    colours = {Standing.CANDIDATE: "accent", Standing.LOST: "soft", Standing.WON: "good"}
    drawn = ['<circle class="line soft" r="60"/>']
    for i, node in enumerate(s[Node]):
        angle = 2 * math.pi * i / len(s[Node])
        x, y = math.sin(angle), -math.cos(angle)
        claims = sorted(m.identity for m in node.inbox if isinstance(m, Claim))
        drawn += [
            f'<circle class="tint {colours[node.standing]}" cx="{60 * x:.0f}" cy="{60 * y:.0f}" r="16"/>',
            f'<text x="{60 * x:.0f}" y="{60 * y + 5:.0f}" text-anchor="middle">{node.identity}</text>',
            f'<text class="accent" x="{95 * x:.0f}" y="{95 * y + 5:.0f}" text-anchor="middle">{claims or ""}</text>',
        ]
    return f'<svg viewBox="-120 -110 240 220">{"".join(drawn)}</svg>'


def chang_roberts(
    nodes: int = 3, initiators: str = "any", specification: Specification = "safe", faulty: Fault = "none"
) -> System:
    """A ring of `nodes` nodes. `initiators`: which nodes may begin: any, all, or numbers with commas."""
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
        views=[ring],
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
                f"initiators={initiators!r}: {part!r} is not a node",
                hint=f"give 'any', 'all', or numbers from 1 to {nodes} separated by commas",
            )
    return str(node) in chosen
