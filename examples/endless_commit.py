"""Two-phase commit of one transaction after the other; without end for `transactions=0`.

Each process remembers only its present transaction. So the states between rounds repeat, up to the numbers of the
transactions, and `plait check -p transactions=0 --rounds --phases any` proves the properties for any number of them. With
`hasty`, the coordinator decides although one vote is missing.
"""

from plait import Message, Process, System, always, init, on, reachable, tagged


@tagged(phase="transaction", round="Request")
class Request(Message):
    transaction: int


@tagged(phase="transaction", round="Vote")
class Vote(Message):
    transaction: int
    yes: bool


@tagged(phase="transaction", round="Decision")
class Decision(Message):
    transaction: int
    commit: bool


class Coordinator(Process):
    transactions: int  # how many there are; 0 for no limit
    enough: int  # the number of votes with which it decides
    transaction: int = 1

    @init
    def start(self):
        self.broadcast(Participant, Request(self.transaction))

    @on(Vote, quorum=lambda self: self.enough, where=lambda self, m: m.transaction == self.transaction)
    def decide(self, votes):
        self.broadcast(Participant, Decision(self.transaction, all(m.yes for m in votes)))
        self.transaction += 1
        if self.transactions == 0 or self.transaction <= self.transactions:
            self.broadcast(Participant, Request(self.transaction))


class Participant(Process):
    transaction: int = 0
    vote: bool | None = None  # its vote on the transaction
    outcome: bool | None = None  # whether the transaction was committed, as far as it knows

    @on(Request, where=lambda self, m: m.transaction > self.transaction)
    def answer(self, m):
        self.transaction = m.transaction
        self.vote = self.choose([True, False])
        self.outcome = None
        self.send(m.sender, Vote(m.transaction, self.vote))

    @on(Decision, where=lambda self, m: m.transaction == self.transaction and self.outcome is None)
    def obey(self, m):
        self.outcome = m.commit


@always
def consistency(s):
    """No participant commits a transaction that another one aborts."""
    done = [p for p in s[Participant] if p.outcome is not None]
    return all(p.outcome == q.outcome for p in done for q in done if p.transaction == q.transaction)


@always
def validity(s):
    """A transaction is committed only if all participants that know it voted for it."""
    committed = [p.transaction for p in s[Participant] if p.outcome is True]
    return all(p.vote for p in s[Participant] for t in committed if p.transaction == t)


@reachable
def commitment(s):
    """A transaction can be committed by all."""
    return all(p.outcome is True for p in s[Participant])


def endless_commit(participants: int = 2, transactions: int = 2, hasty: bool = False) -> System:
    """A coordinator and its participants; if it is `hasty`, it decides without the last vote."""
    return System(
        [
            Coordinator(transactions=transactions, enough=participants - hasty),
            *(Participant() for _ in range(participants)),
        ],
        properties=[consistency, validity, commitment],
        rounds=["Request", "Vote", "Decision"],
    )
