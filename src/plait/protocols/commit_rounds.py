"""Two-phase commit of several transactions in a row, in rounds (Gray 1978; Sequentialization, section 5.2).

A coordinator and several participants execute transactions together. Each transaction has three rounds:

1. Request: the coordinator asks all participants.
2. Vote: each participant says yes or no.
3. Decision: with the votes of *all* participants the coordinator decides: commit if all say yes, otherwise abort. It
   tells all participants, who obey, and starts the next transaction.

The protocol is made for a reliable network. If a message is lost, the transaction never ends, but no property is
violated. (`two_phase_commit` is another model, after the TLA+ specification, with a set of messages and a single
transaction.)

Faulty twins:

- `hasty`: the coordinator decides when all participants but one have voted, and counts the missing vote as a yes.
- `doubt`: a participant that said yes and waits too long treats the transaction as aborted. A timeout may come at any
  time, so this can happen too early even on a reliable network.

Simplified: processes do not crash. The contents of transactions are not modelled: a vote is a choice.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import Message, Process, System, action, always, init, on, reachable, tagged
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of, several

Fault = Literal["none", "hasty", "doubt"]


@tagged(phase="transaction", round="Request")
class Request(Message):
    """Can you commit this transaction?"""

    transaction: int


@tagged(phase="transaction", round="Vote")
class Vote(Message):
    """The sender's answer."""

    transaction: int
    yes: bool


@tagged(phase="transaction", round="Decision")
class Decision(Message):
    """The coordinator's decision."""

    transaction: int
    commit: bool


class Coordinator(Process):
    """Asks, and decides."""

    transactions: int
    """The number of transactions."""
    enough: int
    """The number of votes with which it decides."""
    decisions: tuple[bool, ...] = ()
    """Whether each transaction was committed."""

    @init
    def start(self) -> None:
        self.broadcast(Participant, Request(1))

    @on(Vote, quorum=lambda self: self.enough, where=lambda self, m: m.transaction == len(self.decisions) + 1)
    def decide(self, votes: tuple[Vote, ...]) -> None:
        transaction, commit = votes[0].transaction, all(m.yes for m in votes)
        self.decisions += (commit,)
        self.broadcast(Participant, Decision(transaction, commit))
        if transaction < self.transactions:
            self.broadcast(Participant, Request(transaction + 1))


class Participant(Process):
    """Votes, and obeys the decision."""

    transaction: int = 0
    voted: bool | None = None
    """Its vote, while it waits for the decision."""
    votes: tuple[bool, ...] = ()
    done: tuple[bool, ...] = ()
    """Whether it committed each transaction."""

    @on(Request, where=lambda self, m: m.transaction == self.transaction + 1 and self.voted is None)
    def vote(self, m: Request) -> None:
        self.transaction = m.transaction
        self.voted = self.choose([True, False])
        self.votes += (self.voted,)
        self.send(m.sender, Vote(m.transaction, self.voted))

    @on(Decision, where=lambda self, m: m.transaction == self.transaction and self.voted is not None)
    def obey(self, m: Decision) -> None:
        self.voted = None
        self.done += (m.commit,)


class DoubtfulParticipant(Participant):
    """Aborts after a timeout."""

    @action(when=lambda self: self.voted is True)
    def give_up(self) -> None:
        self.voted = None
        self.done += (False,)


# -- properties ------------------------------------------------------------------------------------------------------


@always
def consistency(s: View) -> bool:
    """No participant commits a transaction that another aborts."""
    done = [participant.done for participant in s[Participant]]
    return all(len({d[i] for d in done if len(d) > i}) <= 1 for i in range(max(map(len, done))))


@always
def validity(s: View) -> bool:
    """A transaction is committed only if all participants voted for it."""
    participants = s[Participant]
    committed = {i for p in participants for i, commit in enumerate(p.done) if commit}
    return all(len(p.votes) > i and p.votes[i] for p in participants for i in committed)


@reachable
def commitment(s: View) -> bool:
    """All transactions can be committed."""
    (coordinator,) = s[Coordinator]
    return all(p.done == (True,) * coordinator.transactions for p in s[Participant])


# -- the model -------------------------------------------------------------------------------------------------------


def commit_rounds(participants: int = 3, transactions: int = 2, faulty: Fault = "none") -> System:
    """A coordinator and its participants, which execute transactions one after the other."""
    at_least(2, participants=participants)
    at_least(1, transactions=transactions)
    one_of(get_args(Fault), faulty=faulty)
    enough = participants - 1 if faulty == "hasty" else participants
    participant = DoubtfulParticipant if faulty == "doubt" else Participant
    return System(
        [
            Coordinator(transactions=transactions, enough=enough),
            *(participant() for _ in range(participants)),
        ],
        properties=[consistency, validity, commitment],
        symmetric=several({Participant: participants}),
        rounds=["Request", "Vote", "Decision"],
        name="commit_rounds",
    )
