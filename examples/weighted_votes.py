"""Weighted voting (Gifford 1979): a replicated value whose copies have different numbers of votes.

A write needs copies with `write` votes together, a read needs `read` votes. If read + write is more than all votes, each
read meets a copy that the last write has reached. How many copies this takes depends on which copies answer. So the guard
is over the whole set of answers: `accept=`. A copy may refuse a write. The writer decides as soon as a set of answers is
decisive, so it takes messages of two types in one step.
"""

from plait import Message, Process, System, always, at_least, init, on, reachable


class Write(Message):
    """The new value."""

    value: int


class Stored(Message):
    """A copy has stored the new value."""

    votes: int


class Refused(Message):
    """A copy has not stored the new value."""

    votes: int


class Written(Message):
    """The write is complete: now the reader starts."""


class Read(Message):
    """What is the value?"""


class Content(Message):
    """The value of a copy."""

    value: int
    votes: int


class Copy(Process):
    """Stores the value, with some votes."""

    votes: int
    value: int = 0

    @on(Write)
    def write(self, m: Write):
        if self.choose([True, False]):
            self.value = m.value
            self.send(m.sender, Stored(self.votes))
        else:
            self.send(m.sender, Refused(self.votes))

    @on(Read)
    def read(self, m: Read):
        self.send(m.sender, Content(self.value, self.votes))


def votes_of(messages: tuple[Message, ...], kind: type[Message]) -> int:
    """The votes in the messages of a type."""
    return sum(m.votes for m in messages if isinstance(m, kind))


class Writer(Process):
    """Writes 1 once."""

    needed: int
    all_votes: int
    outcome: str | None = None

    @init
    def begin(self):
        self.broadcast(Copy, Write(1))

    def decisive(self, messages: tuple[Stored | Refused, ...]) -> bool:
        """Enough votes for the value, or so many against it that this can not happen any more."""
        enough = votes_of(messages, Stored) >= self.needed
        return enough or votes_of(messages, Refused) > self.all_votes - self.needed

    @on(
        Stored,
        Refused,
        quorum=at_least(1),
        where=lambda self, m: self.outcome is None,
        accept=lambda self, ms: self.decisive(ms),
    )
    def decide(self, answers: tuple[Stored | Refused, ...]):
        self.outcome = "written" if votes_of(answers, Stored) >= self.needed else "given up"
        if self.outcome == "written":
            self.broadcast(Reader, Written())


class Reader(Process):
    """Reads when the write is complete. Of several values it takes the newest, the largest one."""

    needed: int
    found: int | None = None

    @on(Written)
    def begin(self, m: Written):
        self.broadcast(Copy, Read())

    @on(
        Content,
        quorum=at_least(1),
        where=lambda self, m: self.found is None,
        accept=lambda self, ms: sum(m.votes for m in ms) >= self.needed,
    )
    def decide(self, answers: tuple[Content, ...]):
        self.found = max(m.value for m in answers)


@always
def reads_are_fresh(s):
    """A read after the write finds the new value."""
    return all(reader.found in (None, 1) for reader in s[Reader])


@reachable
def given_up(s):
    """The writer can give up."""
    return any(writer.outcome == "given up" for writer in s[Writer])


@reachable
def complete(s):
    """The read can end."""
    return any(reader.found == 1 for reader in s[Reader])


def weighted_votes(write: int = 3, read: int = 2) -> System:
    """Three copies with 2, 1 and 1 votes. With write=2, the two quorums need not have a common copy."""
    votes = (2, 1, 1)
    return System(
        [Writer(needed=write, all_votes=sum(votes)), Reader(needed=read), *(Copy(votes=v) for v in votes)],
        properties=[reads_are_fresh, given_up, complete],
    )
