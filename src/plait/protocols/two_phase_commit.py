"""Two-phase commit (Gray 1978), as TwoPhase in Gray and Lamport, "Consensus on Transaction Commit", TODS 2006.

A transaction manager gets resource managers to all commit or all abort. A resource manager either tells the transaction
manager that it is prepared, or aborts on its own without a word. The transaction manager commits when all are prepared,
and may abort at any time before; it tells its decision to all, and they obey.

As in the TLA+ specification, messages are a set that never shrinks (a duplicating network), there are no timeouts (to
abort is always possible), and a resource manager obeys whatever state it is in: that it never has to change its mind is
what is checked.

Two variants: with `quorum=False`, the default, which is the specification, the transaction manager notes one by one who
is prepared; with `quorum=True` it commits in one quorum transition that takes what all resource managers have told.

The faulty twin, `faulty="hasty"`: the transaction manager commits without waiting for everybody; without quorum
transitions it waits for nobody, with them for a majority.

Simplified: there is one transaction, and nobody crashes. If the transaction manager could, those that are prepared would
wait for it for ever: see `three_phase_commit`.
"""

from __future__ import annotations

import enum
from typing import Literal, get_args

from plait import (
    Message,
    Pid,
    Process,
    System,
    action,
    always,
    duplicating,
    everyone,
    field,
    final,
    majority,
    on,
    reachable,
)
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of, several

Fault = Literal["none", "hasty"]


class Prepared(Message):
    """The sender can commit and can abort, and leaves the decision to the transaction manager."""


class Commit(Message):
    """The decision: commit."""


class Abort(Message):
    """The decision: abort."""


class State(enum.Enum):
    """Where a process stands; the transaction manager is never prepared."""

    WORKING = enum.auto()
    PREPARED = enum.auto()
    COMMITTED = enum.auto()
    ABORTED = enum.auto()


class ResourceManager(Process):
    """Takes part in the transaction."""

    state: State = State.WORKING

    @action(when=lambda self: self.state is State.WORKING)
    def prepare(self) -> None:
        self.state = State.PREPARED
        self.broadcast(AnyTransactionManager, Prepared())

    @action(when=lambda self: self.state is State.WORKING)
    def choose_to_abort(self) -> None:
        self.state = State.ABORTED

    @on(Commit)
    def commit(self, m: Commit) -> None:
        self.state = State.COMMITTED

    @on(Abort)
    def abort(self, m: Abort) -> None:
        self.state = State.ABORTED


class AnyTransactionManager(Process):
    """Decides."""

    state: State = State.WORKING

    @action(when=lambda self: self.state is State.WORKING)
    def abort(self) -> None:
        self.state = State.ABORTED
        self.broadcast(ResourceManager, Abort())

    def decide_to_commit(self) -> None:
        """Commit, and tell all."""
        self.state = State.COMMITTED
        self.broadcast(ResourceManager, Commit())


class TransactionManager(AnyTransactionManager):
    """Notes who is prepared, and commits when all are."""

    everyone: int
    """The number of resource managers."""
    prepared: set[Pid] = field(default_factory=set)

    @on(Prepared, where=lambda self, m: self.state is State.WORKING)
    def note(self, m: Prepared) -> None:
        self.prepared.add(m.sender)

    @action(when=lambda self: self.state is State.WORKING and len(self.prepared) == self.everyone)
    def commit(self) -> None:
        self.decide_to_commit()


class HastyTransactionManager(TransactionManager):
    """Commits when it feels like it."""

    @action(when=lambda self: self.state is State.WORKING)
    def commit(self) -> None:
        self.decide_to_commit()


class QuorumTransactionManager(AnyTransactionManager):
    """Commits when all have told that they are prepared."""

    @on(Prepared, quorum=everyone(ResourceManager), where=lambda self, m: self.state is State.WORKING)
    def commit(self, prepared: tuple[Prepared, ...]) -> None:
        self.decide_to_commit()


class HastyQuorumTransactionManager(AnyTransactionManager):
    """Commits when a majority has told that it is prepared."""

    @on(Prepared, quorum=majority(ResourceManager), where=lambda self, m: self.state is State.WORKING)
    def commit(self, prepared: tuple[Prepared, ...]) -> None:
        self.decide_to_commit()


@always
def consistency(s: View) -> bool:
    """No resource manager has aborted while another has committed."""
    states = {rm.state for rm in s[ResourceManager]}
    return not {State.COMMITTED, State.ABORTED} <= states


@reachable
def all_commit(s: View) -> bool:
    """The transaction can succeed."""
    return all(rm.state is State.COMMITTED for rm in s[ResourceManager])


@reachable
def all_abort(s: View) -> bool:
    """The transaction can fail."""
    return all(rm.state is State.ABORTED for rm in s[ResourceManager])


@final
def decided(s: View) -> bool:
    """In the end, all have decided."""
    return all(process.state in (State.COMMITTED, State.ABORTED) for process in s.processes)


def two_phase_commit(resource_managers: int = 3, quorum: bool = False, faulty: Fault = "none") -> System:
    """Two-phase commit among so many resource managers."""
    at_least(1, resource_managers=resource_managers)
    one_of(get_args(Fault), faulty=faulty)
    manager: AnyTransactionManager
    if quorum:
        manager = HastyQuorumTransactionManager() if faulty == "hasty" else QuorumTransactionManager()
    else:
        manager = (HastyTransactionManager if faulty == "hasty" else TransactionManager)(everyone=resource_managers)
    return System(
        [manager, *(ResourceManager() for _ in range(resource_managers))],
        network=duplicating(),
        properties=[consistency, decided, all_commit, all_abort],
        symmetric=several({ResourceManager: resource_managers}),
        name="two_phase_commit",
    )
