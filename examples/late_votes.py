"""A protocol that is not round-based: a late message still counts.

A chair asks one question after the other. It continues as soon as one member raises its hand. A hand that was raised
for an earlier question and arrives late counts for the current question. So the result depends on the delay of
messages, and the protocol is not round-based: `plait rounds tags examples/late_votes.py` says so, and names the guard.
With `strict=True` the chair checks the question of each hand, and the protocol is round-based.
"""

from plait import Message, Process, System, always, init, on, reachable, tagged


@tagged(phase="question", round="Ask")
class Ask(Message):
    question: int


@tagged(phase="question", round="Hand")
class Hand(Message):
    question: int


class Member(Process):
    question: int = 0

    @on(Ask, where=lambda self, m: m.question > self.question)
    def raise_hand(self, m: Ask):
        self.question = m.question
        self.send(m.sender, Hand(m.question))


class Chair(Process):
    questions: int
    question: int = 1
    hands: tuple[int, ...] = ()

    @init
    def ask(self):
        self.broadcast(Member, Ask(self.question))

    @on(Hand, where=lambda self, m: self.question <= self.questions)
    def count(self, m: Hand):
        self.hands += (m.question,)
        self.question += 1
        if self.question <= self.questions:
            self.broadcast(Member, Ask(self.question))


class StrictChair(Chair):
    @on(Hand, where=lambda self, m: m.question == self.question)
    def count(self, m: Hand):
        super().count(m)


@always
def no_late_hand(s):
    """Each hand that counts for a question was raised for this question."""
    return all(hand == number for chair in s[Chair] for number, hand in enumerate(chair.hands, 1))


@reachable
def all_asked(s):
    """All questions can be asked."""
    return all(chair.question > chair.questions for chair in s[Chair])


def late_votes(strict: bool = False) -> System:
    """A chair with three questions, and two members."""
    chair = StrictChair if strict else Chair
    return System(
        [chair(questions=3), Member(), Member()],
        properties=[no_late_hand, all_asked],
        rounds=["Ask", "Hand"],
    )
