"""Two-phase commit (Gray 1978), as TwoPhase in Gray and Lamport, "Consensus on Transaction Commit", TODS 2006.

A transaction manager makes all resource managers commit or all abort. A resource manager either tells the transaction
manager that it is prepared, or aborts on its own without a message. The transaction manager commits when all are
prepared, and may abort at any time before. It sends its decision to all, and they obey.

As in the TLA+ specification, messages are a set that never shrinks (a duplicating network), there are no timeouts
(aborting is always possible), and a resource manager obeys in any state. The properties check that it never has to
change its decision.

Two variants: with `quorum=False` (the default, and the TLA+ specification) the transaction manager records the
prepared resource managers one by one. With `quorum=True` it commits in one quorum transition that takes the messages
of all of them.

The faulty twin, `faulty="hasty"`: the transaction manager commits too early. Without quorum transitions it waits for
no message, with them it waits for a majority.

Simplified: there is one transaction, and processes do not crash. If the transaction manager could crash, prepared
resource managers would wait for it for ever: see `three_phase_commit`.
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
    """The sender is ready to commit or abort, as the transaction manager decides."""


class Commit(Message):
    """The decision: commit."""


class Abort(Message):
    """The decision: abort."""


class State(enum.Enum):
    """The state of a process; the transaction manager is never prepared."""

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
    """Records the prepared resource managers, and commits when all are prepared."""

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
    """Commits at any time."""

    @action(when=lambda self: self.state is State.WORKING)
    def commit(self) -> None:
        self.decide_to_commit()


class QuorumTransactionManager(AnyTransactionManager):
    """Commits when all are prepared."""

    @on(Prepared, quorum=everyone(ResourceManager), where=lambda self, m: self.state is State.WORKING)
    def commit(self, prepared: tuple[Prepared, ...]) -> None:
        self.decide_to_commit()


class HastyQuorumTransactionManager(AnyTransactionManager):
    """Commits when a majority is prepared."""

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
    """Two-phase commit among `resource_managers` resource managers."""
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
