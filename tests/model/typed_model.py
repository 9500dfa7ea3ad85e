"""A model that type checkers accept."""

from plait import Message, Monitor, Pid, Process, System, View, action, always, final, init, majority, on, reachable


class Vote(Message):
    value: int


class Done(Message): ...


class Voter(Process):
    value: int = 0
    leader: Pid | None = None

    def limit(self) -> int:
        return 3

    @init
    def start(self) -> None:
        self.broadcast(Counter, Vote(self.value))

    @action(when=lambda self: self.value < 2)
    def again(self) -> None:
        self.value += 1

    @on(Done, where=lambda self, m: m.sender is not None)
    def done(self, m: Done) -> None:
        self.leader = m.sender


class Counter(Process):
    votes: frozenset[int] = frozenset()

    @on(Vote, quorum=majority(Voter), same="value", where=lambda self, m: m.value >= 0)
    def count(self, ms: tuple[Vote, ...]) -> None:
        self.votes |= {m.value for m in ms}
        self.send([m.sender for m in ms], Done())


class Log(Monitor):
    events: tuple[str, ...] = ()

    def observe(self, process: Pid, event: object) -> None:
        self.events += (str(event),)


@always
def few(s: View) -> bool:
    """Few values."""
    for voter in s[Voter]:
        if voter.crashed or voter.inbox:
            return True
        number: int = voter.value
        assert number >= 0
    first: Counter = s[Counter][0]
    return len(first.votes) < 3 and len(s[Log].events) == 0 and len(s.messages) < 100


@always(each=Voter)
def small(voter: Voter) -> bool:
    return voter.value < voter.limit() and not voter.crashed


@final(pairs=Voter)
def alike(one: Voter, other: Voter) -> bool:
    return one.leader == other.leader


bounded = always(lambda voter: voter.value < 9, each=Voter, name="bounded")


@reachable(name="some")
def some_votes(s: View) -> bool:
    return any(c.votes for c in s[Counter])


ends = final(lambda s: len(s[Voter]) > 0, name="ends")


def system(voters: int = 2) -> System:
    properties = [few, small, alike, bounded, some_votes, ends]
    return System([*(Voter() for _ in range(voters)), Counter()], properties=properties, monitors=[Log()])
