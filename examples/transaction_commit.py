"""Two-phase commit refines transaction commit (Gray and Lamport 2006).

`TransactionCommit` says what a commit protocol may do, and nothing about messages: a resource manager commits only if all
are prepared or have committed, and aborts only if none has committed. Each step of two-phase commit must be one of these
steps, or change no state of a resource manager.

    plait check examples/transaction_commit.py                    two-phase commit is an implementation
    plait check examples/transaction_commit.py -p faulty=hasty    the transaction manager commits too early
"""

from plait import Process, System, action, refines
from plait.protocols.two_phase_commit import ResourceManager, State, two_phase_commit

Member = int
"""The number of a resource manager."""


class TransactionCommit(Process):
    """The states of all resource managers."""

    states: tuple[State, ...]

    def those(self, *states: State) -> list[Member]:
        """The resource managers in one of these states."""
        return [i for i, state in enumerate(self.states) if state in states]

    def enter(self, member: Member, state: State) -> None:
        """A resource manager enters a state."""
        self.states = (*self.states[:member], state, *self.states[member + 1 :])

    @action(when=lambda self: State.WORKING in self.states)
    def prepare(self) -> None:
        self.enter(self.choose(self.those(State.WORKING)), State.PREPARED)

    @action(when=lambda self: State.PREPARED in self.states and set(self.states) <= {State.PREPARED, State.COMMITTED})
    def commit(self) -> None:
        self.enter(self.choose(self.those(State.PREPARED)), State.COMMITTED)

    @action(when=lambda self: State.COMMITTED not in self.states and not set(self.states) <= {State.ABORTED})
    def abort(self) -> None:
        self.enter(self.choose(self.those(State.WORKING, State.PREPARED)), State.ABORTED)


def _specification(members: int) -> System:
    """What a commit protocol may do."""
    return System([TransactionCommit(states=(State.WORKING,) * members)], name="specification")


def transaction_commit(members: int = 3, faulty: str = "none") -> System:
    """Two-phase commit, with the specification as its property."""
    system = two_phase_commit(members, faulty=faulty)  # type: ignore[arg-type]
    mapping = lambda s: TransactionCommit(states=tuple(rm.state for rm in s[ResourceManager]))  # noqa: E731
    return System(
        system.processes,
        network=system.network,
        properties=[refines(_specification(members), mapping, name="refines_transaction_commit")],
        name="transaction_commit",
    )
