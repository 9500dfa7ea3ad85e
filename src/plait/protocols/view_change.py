"""Viewstamped Replication's view change: electing the next primary (Liskov, Cowling 2012; Sequentialization, section 6).

Replicas go through *views*, each with a primary. A replica that does not hear from its primary wants the next view. A
view begins in three rounds:

1. StartViewChange: a replica that wants a view tells all.
2. DoViewChange: a replica that receives this from more than half of the replicas sends its log to the primary of the
   view, with the last view in which it was active (*normal*).
3. StartView: a replica that receives the logs of more than half of the replicas is the primary. It takes the log of
   the latest view, the longest of these, and sends it to all. A replica that receives it takes it, and is active in
   that view.

An operation "x" was committed in view 0: more than half of the replicas have it in their logs. The primary of view v
is replica v modulo n. (`viewstamped` models what happens within a view.)

The paper has two faults, which can be combined:

- `leaders="any"`: the replicas do not agree on the primary of a view; each asks any replica. Alone, this violates no
  property here: a replica asks one other replica in a view, and no two replicas get the logs of more than half.
- the faulty twin `quorum`: fewer than half of the replicas are enough, in both places. A primary may miss "x". With
  `leaders="any"`, a view may get two primaries.

Simplified: a replica wants another view only after its own timeout, not when others ask for it. A timeout may come at
any time. Nothing happens within a view. The number of views is bounded. A lost message is one that is never
delivered.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import Message, Process, System, action, always, on, reachable, tagged
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Leaders = Literal["turns", "any"]
Fault = Literal["none", "quorum"]
Log = tuple[str, ...]


@tagged(phase="view", round="StartViewChange")
class StartViewChange(Message):
    """The sender wants this view."""

    view: int


@tagged(phase="view", round="DoViewChange")
class DoViewChange(Message):
    """The receiver should be the primary of this view. The sender was last active in the view `normal`, with this log."""

    view: int
    normal: int
    log: Log


@tagged(phase="view", round="StartView")
class StartView(Message):
    """The sender is the primary of this view, which begins with this log."""

    view: int
    log: Log


class Replica(Process):
    """Is active in a view, or wants the next."""

    n: int
    views: int
    """The number of views after view 0."""
    quorum: int
    """The number of messages that are enough."""
    log: Log
    view: int = 0
    stage: Literal["normal", "wants", "asked", "primary"] = "normal"
    """Its progress in this view: active, or it has sent a StartViewChange, a DoViewChange or a StartView."""
    normal: int = 0
    """The last view in which it was active."""
    led: tuple[int, ...] = ()
    """The views of which it was the primary."""

    @action(when=lambda self: self.view < self.views)
    def timeout(self) -> None:
        self.view += 1
        self.stage = "wants"
        self.broadcast(Replica, StartViewChange(self.view))

    @on(
        StartViewChange,
        quorum=lambda self: self.quorum,
        where=lambda self, m: m.view == self.view and self.stage == "wants",
    )
    def ask(self, wishes: tuple[StartViewChange, ...]) -> None:
        primary = self.ids(Replica)[self.primary()]
        self.stage = "asked"
        self.send(primary, DoViewChange(self.view, self.normal, self.log))

    def primary(self) -> int:
        """The number of the replica that should be the primary of the view."""
        return self.view % self.n

    @on(
        DoViewChange,
        quorum=lambda self: self.quorum,
        same="view",
        where=lambda self, m: m.view > self.view or (m.view == self.view and self.stage in ("wants", "asked")),
    )
    def lead(self, votes: tuple[DoViewChange, ...]) -> None:
        self.view = votes[0].view
        self.stage = "primary"
        self.log = max((m.normal, len(m.log), m.log) for m in votes)[2]
        self.led += (self.view,)
        self.broadcast(Replica, StartView(self.view, self.log))

    @on(StartView, where=lambda self, m: m.view > self.view or (m.view == self.view and self.stage != "normal"))
    def follow(self, m: StartView) -> None:
        self.view = m.view
        self.stage = "normal"
        self.normal = m.view
        self.log = m.log


class ConfusedReplica(Replica):
    """Treats any replica as the primary of a view."""

    def primary(self) -> int:
        """The number of the replica that should be the primary of the view."""
        return self.choose(range(self.n))


# -- properties ------------------------------------------------------------------------------------------------------


@always
def one_primary(s: View) -> bool:
    """No view has two primaries."""
    led = [view for replica in s[Replica] for view in replica.led]
    return len(led) == len(set(led))


@always
def completeness(s: View) -> bool:
    """A primary has the committed operation."""
    return all("x" in replica.log for replica in s[Replica] if replica.stage == "primary")


@reachable
def election(s: View) -> bool:
    """All replicas can be active in the last view."""
    return all(replica.normal == replica.views for replica in s[Replica])


# -- the model -------------------------------------------------------------------------------------------------------


def view_change(replicas: int = 3, views: int = 1, leaders: Leaders = "turns", faulty: Fault = "none") -> System:
    """`replicas` replicas that go through `views` views."""
    at_least(2, replicas=replicas)
    at_least(1, views=views)
    one_of(get_args(Leaders), leaders=leaders)
    one_of(get_args(Fault), faulty=faulty)
    majority = replicas // 2 + 1
    quorum = max(1, (replicas - 1) // 2) if faulty == "quorum" else majority
    replica = ConfusedReplica if leaders == "any" else Replica
    return System(
        [replica(n=replicas, views=views, quorum=quorum, log=("x",) if i < majority else ()) for i in range(replicas)],
        properties=[one_primary, completeness, election],
        rounds=["StartViewChange", "DoViewChange", "StartView"],
        name="view_change",
    )
