"""An election in which voters may crash and recover. Which fields must be on disk?

Each candidate asks every voter. A voter votes once. A candidate with a majority of votes becomes the leader. If a voter
keeps its vote in memory only, it may vote again after a crash. With `persistent=True` the vote is a durable field.
"""

from plait import Message, Pid, Process, System, always, crash_recovery, durable, init, majority, on, reachable, view


class Ask(Message):
    """A candidate asks for a vote."""


class Vote(Message):
    """A voter votes for the candidate that asked."""


class Voter(Process):
    """Votes for the first candidate that asks. It forgets its vote when it crashes."""

    voted: Pid | None = None

    @on(Ask, where=lambda self, m: self.voted is None)
    def vote(self, m: Ask):
        self.voted = m.sender
        self.send(m.sender, Vote())


class PersistentVoter(Voter):
    """The same, with the vote on disk."""

    voted: Pid | None = durable(None)


class Candidate(Process):
    """Wants to be the leader."""

    leader: bool = False

    @init
    def ask(self):
        self.broadcast(Voter, Ask())

    @on(Vote, quorum=majority(Voter))
    def win(self, votes: tuple[Vote, ...]):
        self.leader = True


@always
def at_most_one_leader(s):
    """Two majorities have a common voter, which votes once. So there are never two leaders."""
    return sum(candidate.leader for candidate in s[Candidate]) <= 1


@reachable
def a_leader(s):
    """Some candidate can win."""
    return any(candidate.leader for candidate in s[Candidate])


def box(kind, x, y, text):
    """A box with a text, as SVG."""
    return (
        f'<rect class="{kind}" x="{x - 50}" y="{y - 15}" width="100" height="30"/>'
        f'<text x="{x}" y="{y + 5}" text-anchor="middle">{text}</text>'
    )


@view
def votes(s):
    """Who voted for whom. A leader is green, two leaders are red; a voter that is down is grey."""
    leader = "tint good" if sum(candidate.leader for candidate in s[Candidate]) == 1 else "tint bad"
    place = {p.id: (120 * i + 60, y) for role, y in ((Candidate, 30), (Voter, 140)) for i, p in enumerate(s[role])}
    lines = [(*place[voter.id], *place[voter.voted]) for voter in s[Voter] if voter.voted is not None]
    drawn = [f'<path class="line accent" d="M{x} {y} L{to_x} {to_y}"/>' for x, y, to_x, to_y in lines]
    drawn += [box(leader if c.leader else "box", *place[c.id], c.id) for c in s[Candidate]]
    drawn += [box("tint soft" if v.crashed else "box", *place[v.id], v.id) for v in s[Voter]]
    return f'<svg viewBox="0 0 {max(x for x, _ in place.values()) + 60} 170">{"".join(drawn)}</svg>'


def election(candidates: int = 2, voters: int = 3, crashes: int = 1, persistent: bool = False) -> System:
    """Candidates and voters. In a run, at most `crashes` voters crash."""
    kind = PersistentVoter if persistent else Voter
    return System(
        [*(Candidate() for _ in range(candidates)), *(kind() for _ in range(voters))],
        faults=[crash_recovery(Voter, budget=crashes)],
        properties=[at_most_one_leader, a_leader],
        views=[votes],
    )
