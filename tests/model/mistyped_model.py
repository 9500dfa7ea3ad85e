"""A model with mistakes of types. Type checkers must report the lines marked `error`, and no others."""

from plait import Message, Process, View, always, on


class Vote(Message):
    value: int


class Done(Message): ...


class Counter(Process):
    votes: int = 0

    @on(Vote)  # error: Vote
    def wrong_message(self, m: Done) -> None:
        self.votes += 1

    @on(Vote, where=lambda self, m: m.valeu > 0)  # error: valeu
    def wrong_guard(self, m: Vote) -> None:
        self.votes += m.value

    @on(Vote, quorum=2)  # error: tuple
    def wrong_quorum(self, m: Vote) -> None:
        self.votes += 1


@always
def wrong_field(s: View) -> bool:
    return all(c.vote < 3 for c in s[Counter])  # error: vote


@always
def wrong_type(s: View) -> bool:
    return all(c.votes.startswith("x") for c in s[Counter])  # error: startswith


Vote(values=3)  # error: values
Counter(votes="many")  # error: str
