"""Mutual exclusion by messages (Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System", CACM 1978).

Processes share a resource that only one of them may hold at a time. There is no central server. Each process has a
logical clock and a queue of the requests that it knows, ordered by *stamp*: the clock of the requesting process, and
the process itself to break ties.

- To request, a process adds its request to its queue, and sends it to all others. They add it to their queues, set
  their clocks beyond its stamp, and acknowledge.
- A process enters when all others have acknowledged its request, and its request is the first in its own queue.
- When it leaves, it removes its request from its queue, and sends a release to all others, which remove it, too.

Messages from one process to another arrive in the order in which they were sent. So when the acknowledgement of
another process arrives, all its earlier requests have arrived, too, and its later requests have later stamps. Each
process enters `entries` times, and all are served in the end.

Simplified: each process makes a bounded number of requests. As in the TLA+ specification LamportMutex
(tlaplus/Examples), clocks advance only when a request is received; this is enough to order the requests. With
`quorum=False, entries=None, clock_limit=6` and three processes, the model has the states of that specification with
TLC's constraint on clocks: a request that would set a clock beyond the limit is never received.

- `quorum=True`: the acknowledgements of all others are consumed in one quorum transition.
- `quorum=False`: each acknowledgement is consumed alone, and processes remember the senders.

`specification="live"` also asks for freedom from starvation, for each process: a process that waits enters
eventually. Clocks grow with each entry, so all runs are finite, and no fairness is needed. Acknowledgements prevent
a release from overtaking its request. Without them (`faulty="acks"`) on an unordered network, a request can stay in a
queue for ever, and a process with a later stamp starves.

Twins that break mutual exclusion:

- `network="unordered"`: an acknowledgement may overtake a request that was sent before it.
- `faulty="tie"`: stamps are clocks only, so each of two requests with equal clocks counts as the first.
- `faulty="acks"`: a process enters as soon as its request is the first in its queue.
"""

from __future__ import annotations

import enum
from typing import Literal, get_args

from plait import (
    Message,
    ModelError,
    Pid,
    Process,
    System,
    action,
    always,
    field,
    fifo,
    final,
    leads_to,
    on,
    reachable,
    unordered,
)
from plait.model.temporal import Temporal
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "tie", "acks"]
NetworkName = Literal["fifo", "unordered"]
Specification = Literal["safe", "live"]

Stamp = tuple[int, Pid]
"""The clock of a request, and the process that made it, to break ties."""


class Request(Message):
    """The sender wants to enter; `clock` is its clock."""

    clock: int


class Ack(Message):
    """The sender has the request in its queue."""


class Release(Message):
    """The sender has left."""


class Phase(enum.Enum):
    """What a process is doing."""

    IDLE = enum.auto()
    WAITING = enum.auto()
    CRITICAL = enum.auto()


class Contender(Process):
    """Wants to enter several times."""

    others: int
    """The number of processes that have to acknowledge."""
    left: int | None
    """The number of requests left; None for no bound."""
    clock_limit: int | None
    """The greatest clock; None for no limit."""
    clock: int = 1
    queue: set[Stamp] = field(default_factory=set)
    """The requests that it knows, including its own."""
    acks: set[Pid] = field(default_factory=set)
    """The processes that acknowledged its request."""
    phase: Phase = Phase.IDLE

    @action(when=lambda self: self.phase is Phase.IDLE and self.left != 0)
    def ask(self) -> None:
        self.phase = Phase.WAITING
        if self.left is not None:
            self.left -= 1
        self.queue.add((self.clock, self.id))
        self.broadcast(Contender, Request(self.clock), myself=False)

    @on(Request, where=lambda self, m: self.clock_limit is None or max(self.clock, m.clock) < self.clock_limit)
    def acknowledge(self, m: Request) -> None:
        self.clock = max(self.clock, m.clock) + 1
        self.queue.add((m.clock, m.sender))
        self.send(m.sender, Ack())

    @action(
        when=lambda self: (
            self.phase is Phase.WAITING and len(self.acks) == self.others and min(self.queue)[1] == self.id
        )
    )
    def enter(self) -> None:
        self.phase = Phase.CRITICAL

    @action(when=lambda self: self.phase is Phase.CRITICAL)
    def leave(self) -> None:
        self.phase = Phase.IDLE
        self.acks = set()
        self.forget(self.id)
        self.broadcast(Contender, Release(), myself=False)

    @on(Release)
    def released(self, m: Release) -> None:
        self.forget(m.sender)

    def forget(self, who: Pid) -> None:
        """Remove the requests of a process from the queue."""
        self.queue = {stamp for stamp in self.queue if stamp[1] != who}


class QuorumContender(Contender):
    """Takes the acknowledgements of all others at once."""

    @on(Ack, quorum=lambda self: self.others, where=lambda self, m: self.phase is Phase.WAITING)
    def acknowledged(self, acks: tuple[Ack, ...]) -> None:
        self.acks = {m.sender for m in acks}


class CountingContender(Contender):
    """Takes the acknowledgements one by one."""

    @on(Ack)
    def acknowledged(self, m: Ack) -> None:
        self.acks.add(m.sender)


class TieContender(Contender):
    """Compares clocks only: requests with the same clock do not block it."""

    @action(
        when=lambda self: (
            self.phase is Phase.WAITING
            and len(self.acks) == self.others
            and (min(self.queue)[0], self.id) in self.queue
        )
    )
    def enter(self) -> None:
        self.phase = Phase.CRITICAL


class HastyContender(Contender):
    """Does not wait for acknowledgements."""

    @action(when=lambda self: self.phase is Phase.WAITING and min(self.queue)[1] == self.id)
    def enter(self) -> None:
        self.phase = Phase.CRITICAL

    @on(Ack)
    def acknowledged(self, m: Ack) -> None:
        """Ignore the acknowledgement."""


class QuorumTieContender(QuorumContender, TieContender):
    """Takes the acknowledgements at once, and compares clocks only."""


class CountingTieContender(CountingContender, TieContender):
    """Takes the acknowledgements one by one, and compares clocks only."""


# -- properties ------------------------------------------------------------------------------------------------------


@always
def mutual_exclusion(s: View) -> bool:
    """No two processes are in the critical section."""
    return sum(p.phase is Phase.CRITICAL for p in s[Contender]) <= 1


@final
def everybody_served(s: View) -> bool:
    """In the end, each process has entered as often as it wanted."""
    return all(p.phase is Phase.IDLE and p.left == 0 for p in s[Contender])


@reachable
def contention(s: View) -> bool:
    """A process is in the critical section while another waits."""
    return {p.phase for p in s[Contender]} >= {Phase.CRITICAL, Phase.WAITING}


def no_starvation(process: int) -> Temporal:
    """A process that waits enters eventually."""

    def waits(s: View) -> bool:
        return s[Contender][process].phase is Phase.WAITING

    def enters(s: View) -> bool:
        return s[Contender][process].phase is Phase.CRITICAL

    return leads_to(waits, enters, name=f"no_starvation{process}")


# -- the model -------------------------------------------------------------------------------------------------------


def lamport_mutex(
    processes: int = 3,
    entries: int | None = 1,
    quorum: bool = True,
    network: NetworkName = "fifo",
    clock_limit: int | None = None,
    specification: Specification = "safe",
    faulty: Fault = "none",
) -> System:
    """`processes` processes that enter `entries` times each. An unordered `network`, or `faulty`, breaks it."""
    at_least(2, processes=processes)
    one_of(get_args(NetworkName), network=network)
    one_of(get_args(Specification), specification=specification)
    one_of(get_args(Fault), faulty=faulty)
    if clock_limit is not None and specification == "live":
        raise ModelError(
            f"clock_limit={clock_limit} and specification='live': requests beyond the limit are never received",
            hint="give entries=2 and no clock_limit",
        )
    if entries is not None:
        at_least(1, entries=entries)
    if clock_limit is not None:
        at_least(2, clock_limit=clock_limit)
    elif entries is None:
        raise ModelError("entries=None without a clock_limit has infinitely many states", hint="give clock_limit=4")
    kinds: dict[Fault, type[Contender]] = {
        "none": QuorumContender if quorum else CountingContender,
        "tie": QuorumTieContender if quorum else CountingTieContender,
        "acks": HastyContender,
    }
    return System(
        [kinds[faulty](others=processes - 1, left=entries, clock_limit=clock_limit) for _ in range(processes)],
        network=fifo() if network == "fifo" else unordered(),
        properties=[
            mutual_exclusion,
            contention,
            *([everybody_served] if clock_limit is None else []),
            *(no_starvation(i) for i in range(processes) if specification == "live"),
        ],
        name="lamport_mutex",
    )
