"""Three-phase commit: atomic commitment that does not block (Skeen, "Nonblocking Commit Protocols", SIGMOD 1981).

A coordinator makes all participants commit or all abort a transaction. No site waits for a crashed site for ever.

1. *canCommit*: the coordinator asks all participants to vote. A participant that votes no aborts. One no, or one
   crash, aborts the transaction for all.
2. *preCommit*: all voted yes. The coordinator tells all participants, and waits until all that are up have
   acknowledged.
3. *doCommit*: now all participants know that no one voted no. The coordinator commits, and tells all.

If the coordinator crashes, the next participant becomes the coordinator; if that one crashes, the next, and so on.
The new coordinator decides by its own state (the *termination rule*): a site can have committed only if the new
coordinator is prepared, and a site can have aborted only if it is not. But the new coordinator may crash, too. So
before it decides, it moves all sites that are up to its own state: to prepared, by another preCommit, or back to
waiting, by a *retreat*. A coordinator that has not voted yet, or has decided, needs no answers, and tells its
decision at once.

**When does a timeout expire?** The protocol is for synchronous systems, in which a timeout means that the other site
has crashed. A process of a message-passing model cannot see this, and Plait's own `crash_stop` sends no notice. So
here a crash is a step of the site (`crash`), and its last message to all sites is a notice that stands for its
silence. A site that takes the notice times out (`time_out`). This is a perfect failure detector: sooner or
later it suspects all crashed sites, and no others. The notice may overtake other messages, which a synchronous
network does not allow; sites ignore messages of a site after its notice. The `Environment` chooses in the first step
which sites crash in a run, at most `crashes` of them. The time of each crash is open. Messages are sent one by one,
so a site can crash after it has told only some of the others.

Two variants: with `quorum=True` a coordinator consumes all votes, or all acknowledgements, in one quorum transition;
with `quorum=False` it consumes each alone.

Faulty twins, each of which breaks consistency:

- `slow`: an asynchronous system. Timeouts are actions that may happen at any time, whether the other site has crashed
  or its message is only slow (crashes are Plait's own `crash_stop`, without notice). Even without a crash there can
  be two coordinators that decide differently.
- `hasty`: a new coordinator decides without moving the others to its state. The fault shows after two crashes.
- `local`: there is no new coordinator. A participant that detects the crash decides by its own state, as short
  descriptions of the protocol say. One crash is enough: a coordinator that has told only some participants to
  prepare.

Simplified: a crashed site does not come back, so there is no recovery protocol; the coordinator has no vote; there is
one transaction.
"""

from __future__ import annotations

import enum
import itertools
from typing import Literal, get_args

from plait import Message, Pid, Process, System, action, always, crash_stop, field, final, on, reachable
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "slow", "hasty", "local"]


class Begin(Message):
    """To the coordinator: begin a transaction."""


class Crash(Message):
    """To a site: crash at some time."""


class CanCommit(Message):
    """Phase 1: the coordinator asks for a vote."""


class Reply(Message):
    """A message that a coordinator waits for."""


class Yes(Reply):
    """The vote of a participant that is ready to commit or abort."""


class No(Message):
    """The vote of a participant that has aborted."""


class PreCommit(Message):
    """Phase 2: all have voted yes; become prepared."""


class Retreat(Message):
    """Phase 2 of a new coordinator that is not prepared: go back to waiting."""


class Ack(Reply):
    """Done."""


class DoCommit(Message):
    """Phase 3: the decision to commit."""


class DoAbort(Message):
    """Phase 3: the decision to abort."""


class Crashed(Message):
    """The sender has crashed: sites that wait for it stop waiting."""


class State(enum.Enum):
    """The state of a site."""

    INITIAL = enum.auto()
    WAITING = enum.auto()
    PREPARED = enum.auto()
    COMMITTED = enum.auto()
    ABORTED = enum.auto()


DECIDED = (State.COMMITTED, State.ABORTED)


class Phase(enum.Enum):
    """What a site does as the coordinator."""

    NONE = enum.auto()
    ASKING = enum.auto()
    PREPARING = enum.auto()
    RETREATING = enum.auto()
    CLOSING = enum.auto()


# -- the sites --------------------------------------------------------------------------------------------------------


class Site(Process):
    """A site of the transaction: follows the current coordinator, and may become the coordinator."""

    at_once: bool
    """Whether it takes all replies in one quorum transition, or each alone."""
    leader: Pid
    """The current coordinator: the first site that is not known to have crashed."""
    up: bool = True
    state: State = State.INITIAL
    lost: set[Pid] = field(default_factory=set)
    """The sites that are known to have crashed."""
    phase: Phase = Phase.NONE
    untold: set[Pid] = field(default_factory=set)
    """As the coordinator: the sites that this phase still has to tell."""
    missing: set[Pid] = field(default_factory=set)
    """As the coordinator: the sites whose reply this phase waits for."""

    # As a follower of the current coordinator. A site that has decided never changes its decision.

    @on(CanCommit, where=lambda self, m: self.up and m.sender == self.leader and self.state is State.INITIAL)
    def vote(self, m: CanCommit) -> None:
        yes = self.choose([True, False])
        self.state = State.WAITING if yes else State.ABORTED
        self.send(m.sender, Yes() if yes else No())

    @on(PreCommit, where=lambda self, m: self.up and m.sender == self.leader)
    def prepare(self, m: PreCommit) -> None:
        self.move(State.PREPARED)
        self.send(m.sender, Ack())

    @on(Retreat, where=lambda self, m: self.up and m.sender == self.leader)
    def retreat(self, m: Retreat) -> None:
        self.move(State.WAITING)
        self.send(m.sender, Ack())

    @on(DoCommit, where=lambda self, m: self.up and m.sender == self.leader)
    def commit(self, m: DoCommit) -> None:
        self.move(State.COMMITTED)

    @on(DoAbort, where=lambda self, m: self.up and m.sender == self.leader)
    def abort(self, m: DoAbort) -> None:
        self.move(State.ABORTED)

    def move(self, state: State) -> None:
        """Change the state, unless it is decided."""
        if self.state not in DECIDED:
            self.state = state

    # As the coordinator.

    @on(Begin, where=lambda self, m: self.up)
    def begin(self, m: Begin) -> None:
        if self.lost:
            self.decide(State.ABORTED)
        else:
            self.state = State.WAITING
            self.lead(Phase.ASKING)

    def lead(self, phase: Phase) -> None:
        """Begin a phase: tell all sites, and wait for all."""
        self.phase = phase
        self.untold = set(self.ids(Site)) - self.lost - {self.id}
        self.missing = set() if phase is Phase.CLOSING else set(self.untold)
        if not self.untold:
            self.complete()

    @action(when=lambda self: self.up and len(self.untold) > 0)
    def tell(self) -> None:
        site = self.choose(self.untold)
        self.untold.remove(site)
        self.send(site, self.order())

    def order(self) -> Message:
        """The message of the phase."""
        match self.phase:
            case Phase.ASKING:
                return CanCommit()
            case Phase.PREPARING:
                return PreCommit()
            case Phase.RETREATING:
                return Retreat()
        return DoCommit() if self.state is State.COMMITTED else DoAbort()

    @on(No, where=lambda self, m: self.up and self.phase is Phase.ASKING)
    def refused(self, m: No) -> None:
        self.decide(State.ABORTED)

    @on(
        Reply,
        quorum=lambda self: max(1, len(self.missing)) if self.at_once else 1,
        where=lambda self, m: self.up and m.sender in self.missing,
    )
    def replied(self, replies: tuple[Reply, ...]) -> None:
        self.missing -= {m.sender for m in replies}
        if not self.missing:
            self.complete()

    def complete(self) -> None:
        """No reply is missing: begin the next phase."""
        match self.phase:
            case Phase.ASKING:
                self.state = State.PREPARED
                self.lead(Phase.PREPARING)
            case Phase.PREPARING:
                self.decide(State.COMMITTED)
            case Phase.RETREATING:
                self.decide(State.ABORTED)

    def decide(self, state: State) -> None:
        """Commit or abort, and tell all sites."""
        self.state = state
        self.missing = set()
        self.lead(Phase.CLOSING)

    # Crashes and timeouts.

    @on(Crash, where=lambda self, m: self.up)
    def crash(self, m: Crash) -> None:
        self.up = False
        self.broadcast(Site, Crashed(), myself=False)

    @on(Crashed, where=lambda self, m: self.up)
    def time_out(self, m: Crashed) -> None:
        self.lose(m.sender)

    def lose(self, site: Pid) -> None:
        """Continue without a site."""
        self.lost.add(site)
        self.untold.discard(site)
        self.missing.discard(site)
        if site == self.leader:
            self.leader = next(other for other in self.ids(Site) if other not in self.lost)
            self.succeed()
        elif self.phase is Phase.ASKING:
            self.decide(State.ABORTED)
        elif not self.missing:
            self.complete()

    def succeed(self) -> None:
        """The current coordinator has crashed: become the coordinator if it is this site's turn."""
        if self.leader == self.id:
            self.terminate()

    def terminate(self) -> None:
        """The termination rule: lead all sites to a decision that agrees with its own state."""
        match self.state:
            case State.INITIAL:
                self.decide(State.ABORTED)
            case State.WAITING:
                self.lead(Phase.RETREATING)
            case State.PREPARED:
                self.lead(Phase.PREPARING)
            case _:
                self.lead(Phase.CLOSING)


# -- faulty sites -----------------------------------------------------------------------------------------------------


class SlowSite(Site):
    """In an asynchronous system, a timeout may expire at any time."""

    @action(when=lambda self: self.state not in DECIDED and (self.leader != self.id or len(self.missing) > 0))
    def run_out(self) -> None:
        self.lose(self.choose(self.missing) if self.leader == self.id else self.leader)


class HastySite(Site):
    """As a new coordinator, decides at once."""

    def terminate(self) -> None:
        """Decide by its own state, and tell all sites."""
        self.move(State.COMMITTED if self.state is State.PREPARED else State.ABORTED)
        self.lead(Phase.CLOSING)


class LocalSite(Site):
    """Decides alone when the coordinator has crashed."""

    def succeed(self) -> None:
        """Decide by its own state, and send nothing."""
        self.move(State.COMMITTED if self.state is State.PREPARED else State.ABORTED)


class Environment(Process):
    """Begins the transaction, and chooses the sites that will crash."""

    crashes: int
    begun: bool = False

    @action(when=lambda self: not self.begun)
    def draw(self) -> None:
        self.begun = True
        sites = self.ids(Site)
        self.send(sites[0], Begin())
        groups = [group for size in range(self.crashes + 1) for group in itertools.combinations(sites, size)]
        self.send(self.choose(groups), Crash())


# -- properties -------------------------------------------------------------------------------------------------------


@always
def consistency(s: View) -> bool:
    """No site has aborted while another has committed, crashed or not."""
    states = {site.state for site in s[Site]}
    return not {State.COMMITTED, State.ABORTED} <= states


@always
def unanimity(s: View) -> bool:
    """No site commits before all have voted."""
    states = {site.state for site in s[Site]}
    return not {State.COMMITTED, State.INITIAL} <= states


@final
def not_blocking(s: View) -> bool:
    """In the end, every site that is up has decided."""
    return all(site.state in DECIDED or not site.up or site.crashed for site in s[Site])


@reachable
def all_commit(s: View) -> bool:
    """The transaction can succeed."""
    return all(site.state is State.COMMITTED for site in s[Site])


@reachable
def all_abort(s: View) -> bool:
    """The transaction can fail."""
    return all(site.state is State.ABORTED for site in s[Site])


@reachable
def commit_without_the_coordinator(s: View) -> bool:
    """The participants can commit although the coordinator crashed before it committed."""
    coordinator, *participants = s[Site]
    return (
        not coordinator.up
        and coordinator.state is State.PREPARED
        and all(site.state is State.COMMITTED for site in participants)
    )


# -- the model --------------------------------------------------------------------------------------------------------


def three_phase_commit(participants: int = 2, crashes: int = 2, quorum: bool = True, faulty: Fault = "none") -> System:
    """One coordinator and its participants. Up to `crashes` sites may crash; `faulty` plants a fault."""
    at_least(1, participants=participants)
    at_least(0, crashes=crashes)
    one_of(get_args(Fault), faulty=faulty)
    kind: type[Site] = {"slow": SlowSite, "hasty": HastySite, "local": LocalSite}.get(faulty, Site)
    slow = faulty == "slow"
    return System(
        [
            Environment(crashes=0 if slow else crashes),
            *(kind(at_once=quorum, leader=kind.pid(0)) for _ in range(1 + participants)),
        ],
        faults=[crash_stop(Site, budget=crashes)] if slow and crashes else [],
        properties=[
            consistency,
            unanimity,
            not_blocking,
            all_commit,
            all_abort,
            *([commit_without_the_coordinator] if crashes and not slow else []),
        ],
        name="three_phase_commit",
    )
