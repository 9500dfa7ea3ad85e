"""Paxos refines voting, and voting refines consensus (Lamport; tlaplus/Examples, PaxosHowToWinATuringAward).

Three models of one algorithm. `Consensus` chooses one value. `Voting` chooses it by votes in ballots, with the condition
that an acceptor votes only for values that are safe; acceptors know everything. In Paxos they know only messages.

    plait check examples/consensus.py                                 Paxos refines voting
    plait check examples/consensus.py -p model=voting                 voting refines consensus
    plait check examples/consensus.py -p faulty=true                  a leader ignores earlier votes
    plait check examples/consensus.py -p model=voting -p faulty=true  acceptors vote for unsafe values
"""

from itertools import combinations

from plait import Process, System, action, refines
from plait.protocols.mcpaxos import Acceptor, Observer, Phase2b, mcpaxos

Vote = tuple[int, int]
"""A ballot and a value."""


class Consensus(Process):
    """Chooses at most one value."""

    values: int
    chosen: frozenset[int] = frozenset()

    @action(when=lambda self: not self.chosen)
    def choose_value(self) -> None:
        self.chosen = frozenset([self.choose(range(self.values))])


class Voting(Process):
    """The votes of all acceptors, and the greatest ballot that each has joined."""

    values: int
    ballots: int
    votes: tuple[frozenset[Vote], ...]
    max_bal: tuple[int, ...]
    careless: bool = False

    def join(self, acceptor: int, ballot: int) -> None:
        """An acceptor takes part in no smaller ballot any more."""
        self.max_bal = (*self.max_bal[:acceptor], ballot, *self.max_bal[acceptor + 1 :])

    def is_safe(self, ballot: int, value: int) -> bool:
        """A quorum shows that no other value is or will be chosen in a smaller ballot."""
        count = len(self.votes)
        for quorum in combinations(range(count), count // 2 + 1):
            if all(self.max_bal[a] >= ballot for a in quorum):
                earlier = {vote for a in quorum for vote in self.votes[a] if vote[0] < ballot}
                if not earlier or (max(vote[0] for vote in earlier), value) in earlier:
                    return True
        return False

    def possible_votes(self) -> list[tuple[int, int, int]]:
        """Acceptors, ballots and values that the acceptors may vote for."""
        found = []
        for acceptor, joined in enumerate(self.max_bal):
            for ballot in range(max(joined, 0), self.ballots):
                taken = {vote[1] for votes in self.votes for vote in votes if vote[0] == ballot}
                if any(vote[0] == ballot for vote in self.votes[acceptor]):
                    continue
                for value in range(self.values):
                    safe = self.careless or self.is_safe(ballot, value)
                    if taken <= {value} and safe:
                        found.append((acceptor, ballot, value))
        return found

    @action(when=lambda self: any(joined < self.ballots - 1 for joined in self.max_bal))
    def increase_max_bal(self) -> None:
        options = [(a, b) for a, joined in enumerate(self.max_bal) for b in range(joined + 1, self.ballots)]
        self.join(*self.choose(options))

    @action(when=lambda self: bool(self.possible_votes()))
    def vote(self) -> None:
        acceptor, ballot, value = self.choose(self.possible_votes())
        mine = self.votes[acceptor] | {(ballot, value)}
        self.votes = (*self.votes[:acceptor], mine, *self.votes[acceptor + 1 :])
        self.join(acceptor, ballot)


def chosen(votes: tuple[frozenset[Vote], ...]) -> frozenset[int]:
    """The values for which a majority voted in one ballot."""
    cast = [vote for some in votes for vote in some]
    return frozenset(value for ballot, value in cast if 2 * cast.count((ballot, value)) > len(votes))


def voting_system(acceptors: int, values: int, ballots: int, careless: bool = False) -> Voting:
    """The initial state."""
    nothing, never = (frozenset[Vote](),) * acceptors, (-1,) * acceptors
    return Voting(values=values, ballots=ballots, votes=nothing, max_bal=never, careless=careless)


def _voting(acceptors: int, values: int, ballots: int, careless: bool) -> System:
    """Voting, with consensus as its property."""
    consensus = System([Consensus(values=values)], name="consensus")
    mapping = lambda s: Consensus(values=values, chosen=chosen(s[Voting][0].votes))  # noqa: E731
    return System(
        [voting_system(acceptors, values, ballots, careless)],
        properties=[refines(consensus, mapping, name="refines_consensus")],
        name="voting",
    )


def _paxos(acceptors: int, values: int, ballots: int, faulty: bool) -> System:
    """Paxos, with voting as its property."""
    system = mcpaxos(acceptors, values, ballots, faulty="leader" if faulty else "none")

    def as_voting(s):  # type: ignore[no-untyped-def]
        cast = [m for m in s[Observer][0].inbox if isinstance(m, Phase2b)]
        votes = tuple(frozenset((m.bal, m.val) for m in cast if m.sender == a.id) for a in s[Acceptor])
        max_bal = tuple(a.max_bal for a in s[Acceptor])
        return Voting(values=values, ballots=ballots, votes=votes, max_bal=max_bal)

    return System(
        system.processes,
        network=system.network,
        properties=[refines(System([voting_system(acceptors, values, ballots)]), as_voting, name="refines_voting")],
        name="paxos",
    )


def consensus(
    model: str = "paxos", acceptors: int = 3, values: int = 2, ballots: int = 2, faulty: bool = False
) -> System:
    """One of the models (paxos or voting), with the next more abstract one as its property."""
    return {"paxos": _paxos, "voting": _voting}[model](acceptors, values, ballots, faulty)
