"""Consistent broadcast with a Byzantine sender: nobody may be told one thing while others are told another.

A sender sends a value to all receivers; each echoes the first value it gets to all, and delivers a value that enough
receivers echoed (the echo broadcast of Bracha and Toueg). The sender here is a traitor, and has an accomplice among the
receivers that echoes both values. With n receivers of which f are traitors, a quorum of more than (n + f) / 2
echoes is enough: two such quorums have an honest receiver in common, and it echoes once.
"""

from plait import Message, Process, System, action, always, init, on, reachable


class Initial(Message):
    """What the sender says."""

    value: str


class Echo(Message):
    """What a receiver heard."""

    value: str


class Receiver(Process):
    """Follows the protocol."""

    quorum: int
    echoed: str | None = None
    delivered: str | None = None

    @on(Initial, where=lambda self, m: self.echoed is None)
    def echo(self, m: Initial):
        self.echoed = m.value
        self.broadcast(Receiver, Echo(m.value))

    @on(Echo, quorum=lambda self: self.quorum, same="value", where=lambda self, m: self.delivered is None)
    def deliver(self, echoes: tuple[Echo, ...]):
        self.delivered = echoes[0].value


class Accomplice(Process, role=Receiver):
    """Counts as a Receiver (it is sent what they are sent), but has its own handlers: it echoes both values at once."""

    @init
    def echo_everything(self):
        for value in ("attack", "retreat"):
            self.broadcast(Receiver, Echo(value), myself=False)


class Traitor(Process):
    """Tells each receiver what it likes: every combination is explored."""

    lied: bool = False

    @action(when=lambda self: not self.lied)
    def lie(self):
        self.lied = True
        for receiver in self.ids(Receiver):
            self.send(receiver, Initial(self.choose(["attack", "retreat"])))


def delivered(s) -> set[str]:
    """What honest receivers delivered: s[Receiver] has the accomplice too, which has no such field."""
    return {r.delivered for r in s[Receiver] if r.id.role == "Receiver" and r.delivered is not None}


@always
def consistency(s):
    """No two honest receivers deliver different values."""
    return len(delivered(s)) <= 1


@reachable
def delivery(s):
    """An honest receiver can deliver something."""
    return bool(delivered(s))


def traitor(honest: int = 3, quorum: int = 3) -> System:
    """A traitor, one accomplice and some honest receivers, which wait for so many echoes: with 3 honest, 3 are enough."""
    return System(
        [Traitor(), Accomplice(), *(Receiver(quorum=quorum) for _ in range(honest))],
        properties=[consistency, delivery],
    )
