"""Three-phase commit: atomic commitment that does not block (Skeen, "Nonblocking Commit Protocols", SIGMOD 1981).

A coordinator gets participants to all commit or all abort a transaction, and nobody waits for a crashed site for ever.

1. *canCommit*: the coordinator asks everybody for a vote. Who votes no aborts. One no, or one crash, aborts it for all.
2. *preCommit*: all voted yes. The coordinator tells everybody so, and waits until all that are up have acknowledged.
3. *doCommit*: now that nobody is left who could think that a no is possible, the coordinator commits, and tells all.

If the coordinator crashes, the next participant takes its office; if that one crashes, the next, and so on. The new
coordinator decides by its own state (the *termination rule*): it can only be that somebody committed if it is prepared
itself, and only that somebody aborted if it is not. But it may crash as well, so before it decides it moves everybody
that is up to its own state: to prepared, by another preCommit, or back to waiting, by a *retreat*. One that has not voted
yet, or has decided, has nothing to find out, and tells its decision at once.

**When do timeouts run out?** The protocol is for synchronous systems, in which a timeout means that the awaited site has
crashed. No process of a message-passing model can see that, and Plait's own `crash_stop` tells nobody. So here a crash is
a step of the site (`crash`), whose last message to everybody is the notice that its silence would be; to take the notice
is to have waited in vain (`time_out`). This is a perfect failure detector: it suspects all that crashed, sooner or later,
and nobody else. The notice may overtake other messages, which is more than a synchronous network does; nobody listens to
a site after its notice. Who crashes in a run is drawn by the `Environment` in the first step, at most `crashes` of the
sites; when they do is open. Messages are sent one by one, so a site can crash when it has told some and not others.

Two variants: with `quorum=True` a coordinator takes all votes, or all acknowledgements, in one quorum transition; with
`quorum=False` it takes each alone.

Faulty twins, each of which breaks consistency:

- `slow`: an asynchronous system. Timeouts are actions that may come at any moment, whether the other site is up or its
  message only slow (crashes are Plait's own `crash_stop`, without notice). It takes no crash at all to have two
  coordinators that decide differently.
- `hasty`: a new coordinator decides without moving the others to its state. It takes two crashes to notice.
- `local`: there is no new coordinator; a participant that hears of the crash decides by its own state, as short accounts
  of the protocol have it. It takes one crash: that of a coordinator that has told some to prepare and not others.

Simplified: a crashed site does not come back, so there is no recovery protocol; the coordinator has no vote of its own;
there is one transaction.
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
    """To the coordinator: there is a transaction."""


class Crash(Message):
    """To a site: crash, sooner or later."""


class CanCommit(Message):
    """Phase 1: the coordinator asks for a vote."""


class Reply(Message):
    """What a coordinator waits for."""


class Yes(Reply):
    """The vote of a participant that can commit and can abort, and leaves the decision to others."""


class No(Message):
    """The vote of a participant that has aborted."""


class PreCommit(Message):
    """Phase 2: all have voted yes; be prepared."""


class Retreat(Message):
    """Phase 2 of a new coordinator that is not prepared: be prepared no more."""


class Ack(Reply):
    """Done."""


class DoCommit(Message):
    """Phase 3: the decision to commit."""


class DoAbort(Message):
    """Phase 3: the decision to abort."""


class Crashed(Message):
    """The sender has crashed: whoever waits for it need not wait any longer."""


class State(enum.Enum):
    """Where a site stands."""

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
    """A site of the transaction: follows the coordinator in office, and may have to be it."""

    at_once: bool
    """Whether it takes all replies in one quorum transition, or each alone."""
    leader: Pid
    """The coordinator in office: the first site that is not lost."""
    up: bool = True
    state: State = State.INITIAL
    lost: set[Pid] = field(default_factory=set)
    """The sites of whose crash this one has heard."""
    phase: Phase = Phase.NONE
    untold: set[Pid] = field(default_factory=set)
    """As the coordinator: who is still to be told what this phase tells."""
    missing: set[Pid] = field(default_factory=set)
    """As the coordinator: whose reply this phase waits for."""

    # As a follower of the coordinator in office. Who has decided never changes its mind.

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
        """Begin a phase: tell everybody, and wait for everybody."""
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
        """What the phase tells."""
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
        """Nobody's reply is missing: go on to the next phase."""
        match self.phase:
            case Phase.ASKING:
                self.state = State.PREPARED
                self.lead(Phase.PREPARING)
            case Phase.PREPARING:
                self.decide(State.COMMITTED)
            case Phase.RETREATING:
                self.decide(State.ABORTED)

    def decide(self, state: State) -> None:
        """Commit or abort, and tell everybody."""
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
        """Do without a site."""
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
        """The coordinator in office has crashed: take the office, if it is this one's turn."""
        if self.leader == self.id:
            self.terminate()

    def terminate(self) -> None:
        """The termination rule: bring all to a decision that agrees with the own state."""
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
    """In an asynchronous system, a timeout may run out at any moment."""

    @action(when=lambda self: self.state not in DECIDED and (self.leader != self.id or len(self.missing) > 0))
    def run_out(self) -> None:
        self.lose(self.choose(self.missing) if self.leader == self.id else self.leader)


class HastySite(Site):
    """As a new coordinator, decides at once."""

    def terminate(self) -> None:
        """Decide by the own state, and tell everybody."""
        self.move(State.COMMITTED if self.state is State.PREPARED else State.ABORTED)
        self.lead(Phase.CLOSING)


class LocalSite(Site):
    """Decides for itself when the coordinator has crashed."""

    def succeed(self) -> None:
        """Decide by the own state, and tell nobody."""
        self.move(State.COMMITTED if self.state is State.PREPARED else State.ABORTED)


class Environment(Process):
    """Begins the transaction, and draws who will crash in its course."""

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
    """No site has aborted while another has committed, whether they are up or not."""
    states = {site.state for site in s[Site]}
    return not {State.COMMITTED, State.ABORTED} <= states


@always
def unanimity(s: View) -> bool:
    """Nobody commits before all have voted."""
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
    """The participants can commit although the coordinator has crashed before it did."""
    coordinator, *participants = s[Site]
    return (
        not coordinator.up
        and coordinator.state is State.PREPARED
        and all(site.state is State.COMMITTED for site in participants)
    )


# -- the model --------------------------------------------------------------------------------------------------------


def three_phase_commit(participants: int = 2, crashes: int = 2, quorum: bool = True, faulty: Fault = "none") -> System:
    """One coordinator and so many participants, of which so many may crash; `faulty` plants a fault (see the module)."""
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
