"""Dining philosophers: deadlock, starvation and fairness.

Each fork is a process that serves one philosopher at a time. A philosopher asks for one fork, then for the other, eats,
and gives both back.

    plait check examples/philosophers.py                    no philosopher starves, with strong fairness
    plait check examples/philosophers.py -p polite=false    all take the left fork first: deadlock
    plait check examples/philosophers.py -p fair=weak       weak fairness is not enough: a neighbour is faster
"""

from plait import Message, Pid, Process, System, action, always_eventually, deadlock_free, on, strong, weak


class Ask(Message):
    """A philosopher asks for the fork."""


class Lend(Message):
    """The fork is lent to the philosopher."""


class Return(Message):
    """The philosopher gives the fork back."""


class Fork(Process):
    """Serves one philosopher at a time. The others wait."""

    lent: bool = False

    @on(Ask, where=lambda self, m: not self.lent)
    def lend(self, m: Ask) -> None:
        self.lent = True
        self.send(m.sender, Lend())

    @on(Return)
    def take_back(self, m: Return) -> None:
        self.lent = False


class Philosopher(Process):
    """Thinks, takes one fork and then the other, eats."""

    first: Pid
    second: Pid
    forks: int = 0
    asked: bool = False

    @action(when=lambda self: self.forks < 2 and not self.asked)
    def ask(self) -> None:
        self.asked = True
        self.send(self.first if self.forks == 0 else self.second, Ask())

    @on(Lend)
    def take(self, m: Lend) -> None:
        self.asked = False
        self.forks += 1

    @action(when=lambda self: self.forks == 2)
    def eat(self) -> None:
        self.forks = 0
        self.send(self.first, Return())
        self.send(self.second, Return())


@always_eventually
def the_first_one_eats(s):  # type: ignore[no-untyped-def]
    """Philosopher 0 eats infinitely often."""
    return s[Philosopher][0].forks == 2


def philosophers(number: int = 3, polite: bool = True, fair: str = "strong") -> System:
    """The table. With `polite`, the last philosopher takes the forks in the other order."""
    forks = [Fork.pid(i) for i in range(number)]
    hands = [(forks[i], forks[(i + 1) % number]) for i in range(number)]
    if polite:
        hands[-1] = hands[-1][::-1]
    served = {"none": [], "weak": [weak(Fork), weak(Message)], "strong": [weak(Fork), strong(Message)]}[fair]
    return System(
        [Fork() for _ in range(number)] + [Philosopher(first=a, second=b) for a, b in hands],
        properties=[deadlock_free(), the_first_one_eats],
        fairness=[*served, *([weak(Philosopher)] if fair != "none" else [])],
    )
