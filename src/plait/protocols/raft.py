"""Raft: consensus with a leader (Ongaro, Ousterhout, "In Search of an Understandable Consensus Algorithm", ATC 2014).

Servers keep equal logs of commands. Time is divided into *terms*, each with at most one leader.

- A server that hears nothing from a leader begins a new term, votes for itself and asks the others for their votes. A
  server votes once in a term, and only for a candidate whose log is at least as *up to date* as its own: the
  candidate's last entry has a greater term, or the same term and the log is not shorter. A majority of votes makes a
  leader.
- A leader appends a client's command to its log as an entry of its term, and sends it to the others together with the
  index and the term of the entry before it. A follower without such an entry refuses, and the leader sends one more
  entry. A follower that has it takes the new entries, and removes its own entries where they conflict.
- An entry *of the leader's own term* that a majority has is committed, and with it all entries before it. A leader
  tells the followers what is committed with the next entries.
- A server that receives a greater term takes it over, and becomes a follower.

The properties are those of figure 3 of the paper. Two variants, as in `paxos`:

- `quorum=True`: the replies that make a majority with the server itself are consumed in one quorum transition.
- `quorum=False`: each reply is consumed alone; candidates remember the voters, leaders remember what they know of
  each log.

`elections` bounds the runs: it says which servers may stand for election in term 1, in term 2, and so on, with commas
between terms. Each term has `any`, or server numbers such as `1+2`. After a timeout, a server stands for election in
the next term in which it may.

Faulty twins:

- `commit`: a leader also commits entries of earlier terms by counting the servers that have them. Figure 8 of the
  paper shows the consequence with five servers. Three servers with one entry each are enough: server 1 leads term 1,
  and has an entry that no other server has; server 3 leads term 2, and has another; server 1 leads term 3, sends its
  old entry to server 2 and commits it; server 3 leads term 4, elected by server 2, whose entry has a smaller term,
  and lacks the committed entry. Three terms are not enough. Four terms with `any` have millions of states, so this
  twin has `elections="1,3,1,3"` by default; the others have `any,any`.
- `vote`: a follower forgets that it voted, and votes twice in a term.
- `log`: a server votes for a candidate without comparing logs.

`specification="live"` asks whether each run has a leader at some time, while a client keeps asking for ever.
`fairness` says what is assumed of runs:

- `none`: no assumption. In some run only the client takes steps, so there is no leader.
- `messages`: a message that stays deliverable is delivered. In some run no server times out, so there is no leader.
- `timeouts`: in addition, a server that may time out does so at some time. The result depends on `elections`. If all
  servers may stand in each term, votes are split in one term after another, and there is no leader: fairness is not
  enough, and this is why the paper draws timeouts at random. If only one server stands in some term
  (`elections="any,1"`: its timeout is the shortest), it is elected, unless another server was elected before.

Simplified: no crashes and restarts (a crashed server cannot be told from a slow one, and a restart loses only the
role and the commit index); no snapshots; no change of members. A stale message stays pending, where the paper answers
with the greater term. A server does not refuse a vote; it sends no answer. A new leader with an empty log sends
nothing before its first entry, because timeouts come at any time anyway. A leader does not remember what each
follower lacks: it sends a new entry as if nothing else was missing.
"""

from __future__ import annotations

import enum
import itertools
from typing import Literal, NamedTuple, get_args

from plait import (
    Message,
    ModelError,
    Pid,
    Process,
    System,
    action,
    always,
    eventually,
    field,
    on,
    reachable,
    view,
    weak,
)
from plait.model.fairness import Fairness
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "commit", "vote", "log"]
Specification = Literal["safe", "live"]
Assumption = Literal["none", "messages", "timeouts"]


class Entry(NamedTuple):
    """An entry of a log. Its command is not modelled, but different leaders have different commands."""

    term: int
    author: Pid


Log = tuple[Entry, ...]


class RequestVote(Message):
    """The sender stands for election; its log has this length, and ends with an entry of this term."""

    term: int
    last_term: int
    length: int


class Vote(Message):
    """The sender votes for the receiver."""

    term: int


class Append(Message):
    """After the entry with index `previous`, whose term is `previous_term`, the leader's log has these entries."""

    term: int
    previous: int
    """0 if there is none."""
    previous_term: int
    entries: Log
    commit: int
    """The leader's commit index."""


class Appended(Message):
    """The sender's log is the leader's up to the index `match`."""

    term: int
    match: int


class Refused(Message):
    """The sender's log has no such entry at the index `previous`."""

    term: int
    previous: int


class Role(enum.Enum):
    """What a server is in its term."""

    FOLLOWER = enum.auto()
    CANDIDATE = enum.auto()
    LEADER = enum.auto()


# -- servers ---------------------------------------------------------------------------------------------------------


class AnyServer(Process):
    """Follows, stands for election, leads."""

    half: int
    """The number of other servers that make a majority with itself."""
    stands: tuple[int, ...]
    """The terms in which it may stand for election."""
    capacity: int
    """The length of a log at which a leader takes no more commands."""
    role: Role = Role.FOLLOWER
    term: int = 0
    voted: Pid | None = None
    """The server for which it voted in its term."""
    log: Log = ()
    commit: int = 0
    """The entries up to this index are committed."""

    # Election

    @action(when=lambda self: self.role is not Role.LEADER and any(term > self.term for term in self.stands))
    def time_out(self) -> None:
        self.enter(min(term for term in self.stands if term > self.term))
        self.role = Role.CANDIDATE
        self.voted = self.id
        self.broadcast(AnyServer, RequestVote(self.term, self.term_at(len(self.log)), len(self.log)), myself=False)

    @on(RequestVote, where=lambda self, m: m.term > self.term or (m.term == self.term and self.voted is None))
    def vote(self, m: RequestVote) -> None:
        if m.term > self.term:
            self.enter(m.term)
        if self.up_to_date(m):
            self.voted = m.sender
            self.send(m.sender, Vote(m.term))

    def up_to_date(self, m: RequestVote) -> bool:
        """Whether the candidate's log is at least as up to date as its own."""
        return (m.last_term, m.length) >= (self.term_at(len(self.log)), len(self.log))

    def enter(self, term: int) -> None:
        """Begin a new term as a follower that has not voted."""
        self.role, self.term, self.voted = Role.FOLLOWER, term, None

    def lead(self) -> None:
        """Find out which servers lack entries."""
        self.role = Role.LEADER
        if self.log:
            for other in self.others():
                self.replicate(other, len(self.log))

    # Replication

    @action(when=lambda self: self.role is Role.LEADER and len(self.log) < self.capacity)
    def request(self) -> None:
        self.log += (Entry(self.term, self.id),)
        for other in self.others():
            self.replicate(other, len(self.log) - 1)

    def replicate(self, follower: Pid, previous: int) -> None:
        """Send all entries after an index."""
        self.send(follower, Append(self.term, previous, self.term_at(previous), self.log[previous:], self.commit))

    @on(Append, where=lambda self, m: m.term >= self.term)
    def append(self, m: Append) -> None:
        if m.term > self.term:
            self.enter(m.term)
        self.role = Role.FOLLOWER
        if len(self.log) < m.previous or self.term_at(m.previous) != m.previous_term:
            self.send(m.sender, Refused(m.term, m.previous))
            return
        match = m.previous + len(m.entries)
        if self.log[m.previous : match] != m.entries:  # never remove entries that an older message does not contain
            self.log = self.log[: m.previous] + m.entries
        self.commit = max(self.commit, min(m.commit, match))
        self.send(m.sender, Appended(m.term, match))

    @on(Refused, where=lambda self, m: self.role is Role.LEADER and m.term == self.term)
    def back_up(self, m: Refused) -> None:
        self.replicate(m.sender, m.previous - 1)

    # Helpers

    def others(self) -> list[Pid]:
        """All servers but itself."""
        return [pid for pid in self.ids(AnyServer) if pid != self.id]

    def term_at(self, index: int) -> int:
        """The term of the entry with this index; 0 before the first."""
        return self.log[index - 1].term if index else 0


class Server(AnyServer):
    """Takes the replies of a majority at once."""

    @on(
        Vote,
        quorum=lambda self: self.half,
        same="term",
        where=lambda self, m: self.role is Role.CANDIDATE and m.term == self.term,
    )
    def win(self, votes: tuple[Vote, ...]) -> None:
        self.lead()

    @on(
        Appended,
        quorum=lambda self: self.half,
        same=("term", "match"),
        where=lambda self, m: (
            self.role is Role.LEADER
            and m.term == self.term
            and m.match > self.commit
            and self.log[m.match - 1].term == self.term
        ),
    )
    def advance(self, replies: tuple[Appended, ...]) -> None:
        self.commit = replies[0].match


class CountingServer(AnyServer):
    """Takes the replies one by one."""

    votes: set[Pid] = field(default_factory=set)
    """The other servers that voted for this candidate."""
    match: dict[Pid, int] = field(default_factory=dict)
    """For each other server, the index up to which its log is known to equal this leader's log; 0 if missing."""

    def enter(self, term: int) -> None:
        """Forget what belongs to the last term."""
        super().enter(term)
        self.votes, self.match = set(), {}

    @on(Vote, where=lambda self, m: self.role is Role.CANDIDATE and m.term == self.term)
    def win(self, m: Vote) -> None:
        self.votes.add(m.sender)
        if len(self.votes) == self.half:
            self.votes = set()
            self.lead()

    @on(Appended, where=lambda self, m: self.role is Role.LEADER and m.term == self.term)
    def advance(self, m: Appended) -> None:
        self.match[m.sender] = max(m.match, self.match.get(m.sender, 0))
        index = sorted(self.match.values(), reverse=True)[self.half - 1] if len(self.match) >= self.half else 0
        if index > self.commit and self.may_count(index):
            self.commit = index

    def may_count(self, index: int) -> bool:
        """Whether an entry that a majority has is committed: only if it has the leader's own term."""
        return self.term_at(index) == self.term


class Client(Process):
    """Asks for the leader again and again. The answers are not modelled."""

    waits: bool = False

    @action
    def ask(self) -> None:
        self.waits = not self.waits


FAIRNESS: dict[Assumption, list[Fairness]] = {
    "none": [],
    "messages": [weak(Message)],
    "timeouts": [weak(Message), weak(AnyServer.time_out)],
}


# -- faulty servers --------------------------------------------------------------------------------------------------


class CommittingServer(Server):
    """Commits each entry that a majority has."""

    @on(
        Appended,
        quorum=lambda self: self.half,
        same=("term", "match"),
        where=lambda self, m: self.role is Role.LEADER and m.term == self.term and m.match > self.commit,
    )
    def advance(self, replies: tuple[Appended, ...]) -> None:
        self.commit = replies[0].match


class CommittingCountingServer(CountingServer):
    """Commits each entry that a majority has."""

    def may_count(self, index: int) -> bool:
        """Each entry counts."""
        return True


class ForgetfulServer(Server):
    """Votes as long as it is a follower, even if it voted in this term."""

    @on(
        RequestVote,
        where=lambda self, m: m.term > self.term or (m.term == self.term and self.role is Role.FOLLOWER),
    )
    def vote(self, m: RequestVote) -> None:
        super().vote(m)


class ForgetfulCountingServer(CountingServer):
    """Votes as long as it is a follower, even if it voted in this term."""

    @on(
        RequestVote,
        where=lambda self, m: m.term > self.term or (m.term == self.term and self.role is Role.FOLLOWER),
    )
    def vote(self, m: RequestVote) -> None:
        super().vote(m)


class CarelessServer(Server):
    """Does not compare logs before it votes."""

    def up_to_date(self, m: RequestVote) -> bool:
        """Accept each log."""
        return True


class CarelessCountingServer(CountingServer):
    """Does not compare logs before it votes."""

    def up_to_date(self, m: RequestVote) -> bool:
        """Accept each log."""
        return True


SERVERS: dict[Fault, tuple[type[AnyServer], type[AnyServer]]] = {
    "none": (Server, CountingServer),
    "commit": (CommittingServer, CommittingCountingServer),
    "vote": (ForgetfulServer, ForgetfulCountingServer),
    "log": (CarelessServer, CarelessCountingServer),
}
"""The servers of each twin: with quorum transitions, and without."""


# -- properties ------------------------------------------------------------------------------------------------------


@always
def election_safety(s: View) -> bool:
    """There are no two leaders in a term."""
    terms = [server.term for server in s[AnyServer] if server.role is Role.LEADER]
    return len(terms) == len(set(terms))


@always
def log_matching(s: View) -> bool:
    """If two logs have an entry of the same index and term, they are equal up to it."""
    logs = {server.log for server in s[AnyServer]}
    return all(
        one[: i + 1] == other[: i + 1]
        for one, other in itertools.combinations(logs, 2)
        for i in range(min(len(one), len(other)))
        if one[i].term == other[i].term
    )


@always
def leader_completeness(s: View) -> bool:
    """A leader's log has all entries that a server of the same or a smaller term knows to be committed."""
    leaders = [server for server in s[AnyServer] if server.role is Role.LEADER]
    return all(
        leader.log[: server.commit] == server.log[: server.commit]
        for leader in leaders
        for server in s[AnyServer]
        if server.term <= leader.term
    )


@always
def state_machine_safety(s: View) -> bool:
    """No two servers commit different entries with the same index."""
    committed = [server.log[: server.commit] for server in s[AnyServer]]
    return all(one[: len(other)] == other[: len(one)] for one, other in itertools.combinations(committed, 2))


@reachable
def committed(s: View) -> bool:
    """A log can be full of committed entries."""
    return any(server.commit == server.capacity for server in s[AnyServer])


@eventually
def leadership(s: View) -> bool:
    """On each run, there is a leader at some time."""
    return any(server.role is Role.LEADER for server in s[AnyServer])


# -- the model -------------------------------------------------------------------------------------------------------


@view
def logs(s: View) -> str:
    """The log of each server, as the terms of its entries: green where it knows that they are committed."""
    colours = {Role.LEADER: "good", Role.CANDIDATE: "accent", Role.FOLLOWER: "soft"}
    drawn = []
    for row, server in enumerate(s[AnyServer]):
        y, role = 44 * row, server.role.name.lower()
        drawn.append(f'<text y="{y + 16}">{server.id!r}</text>')
        drawn.append(f'<text class="{colours[server.role]}" y="{y + 34}">{role}, term {server.term}</text>')
        for column, entry in enumerate(server.log):
            x, kind = 180 + 34 * column, "tint good" if column < server.commit else "box"
            drawn.append(f'<rect class="{kind}" x="{x}" y="{y + 6}" width="28" height="28"/>')
            drawn.append(f'<text x="{x + 14}" y="{y + 25}" text-anchor="middle">{entry.term}</text>')
    longest = max(server.capacity for server in s[AnyServer])
    return f'<svg viewBox="0 0 {180 + 34 * longest} {44 * len(s[AnyServer])}">{"".join(drawn)}</svg>'


def raft(
    servers: int = 3,
    elections: str = "",
    entries: int = 1,
    quorum: bool = True,
    specification: Specification = "safe",
    fairness: Assumption = "none",
    faulty: Fault = "none",
) -> System:
    """`servers` servers with logs of `entries` entries. `elections`: who may stand in each term, for example any,1."""
    at_least(2, servers=servers)
    at_least(1, entries=entries)
    one_of(get_args(Specification), specification=specification)
    one_of(get_args(Assumption), fairness=fairness)
    one_of(get_args(Fault), faulty=faulty)
    live = specification == "live"
    elections = elections or ("1,3,1,3" if faulty == "commit" and servers > 2 else "any,any")
    kind = SERVERS[faulty][0 if quorum else 1]
    return System(
        [
            kind(half=servers // 2, stands=_stands(i, elections, servers), capacity=entries)
            for i in range(1, servers + 1)
        ]
        + ([Client()] if live else []),
        properties=[
            election_safety,
            log_matching,
            leader_completeness,
            state_machine_safety,
            committed,
            *([leadership] if live else []),
        ],
        fairness=FAIRNESS[fairness],
        symmetric=[AnyServer] if set(elections.split(",")) == {"any"} else [],
        views=[logs],
        name="raft",
    )


def _stands(server: int, elections: str, servers: int) -> tuple[int, ...]:
    """The terms in which a server may stand for election."""
    terms = []
    for term, candidates in enumerate(elections.split(","), start=1):
        names = [name.strip() for name in candidates.split("+")]
        for name in names:
            if name != "any" and not (name.isdecimal() and 1 <= int(name) <= servers):
                raise ModelError(
                    f"elections={elections!r}: {name!r} is not a server",
                    hint=f"give for each term 'any' or numbers from 1 to {servers} separated by +; separate terms by commas",
                )
        if "any" in names or str(server) in names:
            terms.append(term)
    return tuple(terms)
