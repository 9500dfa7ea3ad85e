"""Raft's membership changes, one server at a time, and their bug (Ongaro 2014; raft-dev 2015; Sequentialization, section 6).

The servers that take part are the *configuration*, an entry of the log like others. It is valid as soon as it is in a
server's log, committed or not. A leader that adds one server writes a new configuration. If two configurations differ
in one server, any two of their majorities have a server in common. A term has six rounds:

1. RequestVote: a server that wants to lead a term asks the others of its configuration.
2. Vote: a server votes if it was not in that term yet, and its log is not ahead of the candidate's log.
3. Append: with the votes of a majority of its configuration (its own included), a candidate becomes the leader. It
   adds an empty entry of its term to its log, and sends the log to the others.
4. Appended: a server that takes the log replies. When a majority has taken it, the log is *committed*.
5. Change: the leader then creates a server, adds it to the configuration, and sends the log to the others and to it.
6. Changed: a server that takes it replies. When a majority of the new configuration has taken it, it is committed.

Committed logs must never contradict each other.

Faulty twin:

- `early`: a leader changes the configuration as soon as it is elected, as in the first version of the dissertation.
  With servers 0 to 3 the bug takes three terms. Server 0 leads term 1 and adds server 4, but no other server receives
  this. Server 1 leads term 2 with the votes of 2 and 3, adds server 5, and commits this with 2 and 5: three of five.
  Server 0 leads term 3 with the votes of 3 and 4, three of five in *its own* configuration, and commits without 1, 2
  and 5. The fix: a leader first commits an entry of its own term, so it knows that there is no other configuration.

Simplified: messages contain whole logs. Only the leader learns what is committed. No server is removed; one is added
in each of the first `joiners` terms. `candidates` says which server may lead term 1, term 2, and so on (empty: all
servers in all terms); a server may skip terms that it may not lead. A lost message is one that is never delivered.
"""

from __future__ import annotations

import itertools
from typing import Literal, NamedTuple, get_args

from plait import Message, ModelError, Pid, Process, System, action, always, on, reachable, tagged
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "early"]


class Entry(NamedTuple):
    """An entry of a log: its term, and the configuration if it is one."""

    term: int
    members: tuple[Pid, ...] | None = None


Log = tuple[Entry, ...]


@tagged(phase="term", round="RequestVote")
class RequestVote(Message):
    """The sender wants to lead this term; `last` and `length` describe its log."""

    term: int
    last: int
    length: int


@tagged(phase="term", round="Vote")
class Vote(Message):
    """The sender votes for the receiver."""

    term: int


@tagged(phase="term", round="Append")
class Append(Message):
    """The log of the leader of this term."""

    term: int
    log: Log


@tagged(phase="term", round="Appended")
class Appended(Message):
    """The sender took the log."""

    term: int


@tagged(phase="term", round="Change")
class Change(Message):
    """The log of the leader, with a new configuration."""

    term: int
    log: Log


@tagged(phase="term", round="Changed")
class Changed(Message):
    """The sender took the log."""

    term: int


ROUNDS = ["RequestVote", "Vote", "Append", "Appended", "Change", "Changed"]


class Server(Process):
    """Votes, takes logs, and leads."""

    terms: int
    """The number of terms."""
    joiners: int
    """The number of terms, from the first, in which a server is added."""
    candidates: tuple[int, ...]
    """The servers that may lead term 1, 2, …; empty if all servers may lead all terms."""
    log: Log = ()
    term: int = 0
    stage: int = 0
    """The round of the term (1 to 6) of its last message."""
    leader: bool = False
    """Whether it is the leader of the term."""
    committed: Log = ()
    """The logs that it committed as a leader."""

    def members(self) -> tuple[Pid, ...]:
        """The configuration: the last one in the log."""
        return next((entry.members for entry in reversed(self.log) if entry.members is not None), ())

    def others(self) -> list[Pid]:
        """The other servers of the configuration."""
        return [pid for pid in self.members() if pid != self.id]

    def needed(self) -> int:
        """The number of other servers that make a majority with itself."""
        return max(1, len(self.members()) // 2)

    def next_term(self) -> int | None:
        """The next term that it may lead."""
        own = (t for t in range(self.term + 1, self.terms + 1) if self.id in self.members())
        return next((t for t in own if not self.candidates or self.candidates[t - 1] == self.id.index), None)

    @action(when=lambda self: self.next_term() is not None)
    def stand(self) -> None:
        self.term = self.next_term() or self.term
        self.stage, self.leader = 1, False
        self.send(self.others(), RequestVote(self.term, self.log[-1].term, len(self.log)))

    @on(RequestVote, where=lambda self, m: m.term > self.term)
    def vote(self, m: RequestVote) -> None:
        self.term = m.term
        self.stage, self.leader = 2, False
        last = self.log[-1].term if self.log else 0
        if (m.last, m.length) >= (last, len(self.log)):
            self.send(m.sender, Vote(m.term))

    @on(Vote, quorum=lambda self: self.needed(), where=lambda self, m: m.term == self.term and self.stage == 1)
    def elected(self, votes: tuple[Vote, ...]) -> None:
        self.leader = True
        self.append()

    def append(self) -> None:
        """Send the log, with an empty entry of this term."""
        self.stage = 3
        self.log += (Entry(self.term),)
        self.send(self.others(), Append(self.term, self.log))

    def change(self) -> None:
        """Create a server, and send the log with it in the configuration."""
        self.stage = 5
        self.log += (Entry(self.term, (*self.members(), self.create())),)
        self.send(self.others(), Change(self.term, self.log))

    def create(self) -> Pid:
        """Create a server with an empty log."""
        return self.spawn(Server, terms=self.terms, joiners=self.joiners, candidates=self.candidates)

    @on(Append, where=lambda self, m: m.term > self.term or (m.term == self.term and self.stage < 3))
    def take(self, m: Append) -> None:
        self.term = m.term
        self.stage, self.leader = 4, False
        self.log = m.log
        self.send(m.sender, Appended(m.term))

    @on(Appended, quorum=lambda self: self.needed(), where=lambda self, m: m.term == self.term and self.stage == 3)
    def commit(self, replies: tuple[Appended, ...]) -> None:
        self.stage = 4
        self.committed = self.log
        if self.term <= self.joiners:
            self.change()

    @on(Change, where=lambda self, m: m.term > self.term or (m.term == self.term and self.stage < 5))
    def take_change(self, m: Change) -> None:
        self.term = m.term
        self.stage, self.leader = 6, False
        self.log = m.log
        self.send(m.sender, Changed(m.term))

    @on(Changed, quorum=lambda self: self.needed(), where=lambda self, m: m.term == self.term and self.stage == 5)
    def commit_change(self, replies: tuple[Changed, ...]) -> None:
        self.stage = 6
        self.committed = self.log


class EarlyServer(Server):
    """Changes the configuration before it has committed an entry of its term."""

    def elected(self, votes: tuple[Vote, ...]) -> None:
        self.leader = True
        if self.term <= self.joiners:
            self.change()
        else:
            self.append()

    def create(self) -> Pid:
        """Create a server with an empty log."""
        return self.spawn(EarlyServer, terms=self.terms, joiners=self.joiners, candidates=self.candidates)


# -- properties ------------------------------------------------------------------------------------------------------


@always
def agreement(s: View) -> bool:
    """Of two logs that were committed, one is a prefix of the other."""
    logs = sorted({server.committed for server in s[Server]}, key=len)
    return all(longer[: len(log)] == log for log, longer in itertools.pairwise(logs))


@always
def election_safety(s: View) -> bool:
    """No term has two leaders."""
    terms = [server.term for server in s[Server] if server.leader]
    return len(terms) == len(set(terms))


@reachable
def change(s: View) -> bool:
    """A new configuration can be committed."""
    return any(entry.members and entry.term for server in s[Server] for entry in server.committed)


# -- the model -------------------------------------------------------------------------------------------------------


def raft_membership(
    servers: int = 4,
    joiners: int = 2,
    terms: int = 1,
    candidates: tuple[int, ...] = (0, 1, 0),
    faulty: Fault = "none",
) -> System:
    """`servers` servers, `joiners` that may join them, and `terms` terms with these candidates."""
    at_least(2, servers=servers)
    at_least(1, terms=terms, joiners=joiners)
    one_of(get_args(Fault), faulty=faulty)
    if candidates and (len(candidates) < terms or not all(0 <= i < servers for i in candidates)):
        raise ModelError(
            f"candidates={candidates!r}: expected a server from 0 to {servers - 1} for each of {terms} terms",
            hint="for example -p terms=3 -p candidates=0,1,0",
        )
    server = EarlyServer if faulty == "early" else Server
    members = tuple(server.pid(i) for i in range(servers))
    slots = min(joiners, terms)
    return System(
        [server(terms=terms, joiners=joiners, candidates=candidates, log=(Entry(0, members),)) for _ in range(servers)],
        spare={server: slots},
        properties=[agreement, election_safety, change],
        rounds=ROUNDS,
        name="raft_membership",
    )
