"""A write-once register on single-decree Paxos: the example that Stateright checks (examples/paxos.rs).

Each server is proposer, acceptor and learner. The first write that a client requests makes the server propose:

1. It takes a new ballot and sends Prepare to the others. They promise not to take part in smaller ballots, and answer
   with what they accepted last (Prepared).
2. When a majority is prepared (itself included), it asks the others to Accept the value accepted with the greatest
   ballot, or the value of its own client if there is none. With a majority of Accepted, the value is decided, and all
   servers are told.

A server answers a read when it knows the decision. The client whose write was decided gets the PutOk. Other writes
are never answered, so the history stays linearizable.

Simplified: no crashes, and no retries with a greater ballot, so a run can end without a decision.

The faulty twin, `faulty="stubborn"`: a proposer always proposes its own value and ignores earlier accepted values.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

from plait import Message, Pid, System, field, on
from plait.protocols._parameters import at_least, one_of
from plait.protocols._register import Get, GetOk, Put, PutOk, Request, Server, register_system

Fault = Literal["none", "stubborn"]

Ballot = tuple[int, Pid]
"""A round, and the server that leads it."""


@dataclasses.dataclass(frozen=True)
class Proposal:
    """A client's write."""

    request: Request
    value: str


Vote = tuple[Ballot, Proposal]
"""A proposal as it was accepted."""


class Prepare(Message):
    """Phase 1a."""

    ballot: Ballot


class Prepared(Message):
    """Phase 1b, with what the sender accepted last."""

    ballot: Ballot
    accepted: Vote | None


class Accept(Message):
    """Phase 2a."""

    ballot: Ballot
    proposal: Proposal


class Accepted(Message):
    """Phase 2b."""

    ballot: Ballot


class Decided(Message):
    """The decision."""

    ballot: Ballot
    proposal: Proposal


class PaxosServer(Server):
    """Proposes, accepts and learns."""

    ballot: Ballot
    """The greatest ballot it takes part in."""
    proposal: Proposal | None = None
    prepared: dict[Pid, Vote | None] = field(default_factory=dict)
    """As a proposer: the servers that promised, and what they had accepted."""
    accepts: set[Pid] = field(default_factory=set)
    """As a proposer: the servers that accepted."""
    accepted: Vote | None = None
    decided: bool = False

    @on(Put, where=lambda self, m: not self.decided and self.proposal is None)
    def propose(self, m: Put) -> None:
        self.proposal = Proposal(m.request, m.value)
        self.ballot = (self.ballot[0] + 1, self.id)
        self.prepared = {self.id: self.accepted}
        self.accepts = set()
        self.broadcast(Server, Prepare(self.ballot), myself=False)

    @on(Prepare, where=lambda self, m: not self.decided and m.ballot > self.ballot)
    def promise(self, m: Prepare) -> None:
        self.ballot = m.ballot
        self.send(m.sender, Prepared(m.ballot, self.accepted))

    @on(Prepared, where=lambda self, m: not self.decided and m.ballot == self.ballot)
    def collect(self, m: Prepared) -> None:
        self.prepared[m.sender] = m.accepted
        if len(self.prepared) == self.majority():
            self.proposal = self.select()
            assert self.proposal is not None
            self.accepted = (self.ballot, self.proposal)
            self.accepts.add(self.id)
            self.broadcast(Server, Accept(self.ballot, self.proposal), myself=False)

    def select(self) -> Proposal | None:
        """The proposal that may have been decided already, otherwise its own."""
        votes = [vote for vote in self.prepared.values() if vote is not None]
        return max(votes, key=lambda vote: vote[0])[1] if votes else self.proposal

    @on(Accept, where=lambda self, m: not self.decided and m.ballot >= self.ballot)
    def accept(self, m: Accept) -> None:
        self.ballot = m.ballot
        self.accepted = (m.ballot, m.proposal)
        self.send(m.sender, Accepted(m.ballot))

    @on(Accepted, where=lambda self, m: not self.decided and m.ballot == self.ballot)
    def count(self, m: Accepted) -> None:
        self.accepts.add(m.sender)
        if len(self.accepts) == self.majority():
            assert self.proposal is not None
            self.decided = True
            self.broadcast(Server, Decided(self.ballot, self.proposal), myself=False)
            self.send(self.proposal.request.client, PutOk(self.proposal.request))

    @on(Decided, where=lambda self, m: not self.decided)
    def learn(self, m: Decided) -> None:
        self.ballot = m.ballot
        self.accepted = (m.ballot, m.proposal)
        self.decided = True

    @on(Get, where=lambda self, m: self.decided)
    def get(self, m: Get) -> None:
        assert self.accepted is not None
        self.send(m.sender, GetOk(m.request, self.accepted[1].value))

    def majority(self) -> int:
        """More than half of the servers."""
        return len(self.ids(Server)) // 2 + 1


class StubbornPaxosServer(PaxosServer):
    """Proposes the value of its own client and ignores earlier accepted values."""

    def select(self) -> Proposal | None:
        """Select its own proposal."""
        return self.proposal


def register_paxos(clients: int = 2, servers: int = 3, faulty: Fault = "none") -> System:
    """A write-once register decided by `servers` servers, with `clients` clients."""
    at_least(1, clients=clients)
    at_least(2, servers=servers)
    one_of(get_args(Fault), faulty=faulty)
    server = StubbornPaxosServer if faulty == "stubborn" else PaxosServer
    nobody = (0, server.pid(0))
    return register_system([server(ballot=nobody) for _ in range(servers)], clients, "register_paxos")
