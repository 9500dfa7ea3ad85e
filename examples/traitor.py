"""Consistent broadcast with a Byzantine sender: honest receivers never deliver different values.

A sender sends a value to all receivers. Each receiver echoes the first value that it gets to all receivers. It delivers
a value that enough receivers echoed (the echo broadcast of Bracha and Toueg). Here the sender is a traitor. It has an
accomplice among the receivers, which echoes both values. With n receivers, of which f are traitors, a quorum of more
than (n + f) / 2 echoes is enough: two such quorums have a common honest receiver, which echoes one value only.
"""

from plait import Message, Process, System, action, always, init, on, reachable


class Initial(Message):
    """The value of the sender."""

    value: str


class Echo(Message):
    """A receiver echoes a value."""

    value: str


class Receiver(Process):
    """An honest receiver, which follows the protocol."""

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
    """Counts as a Receiver, so it gets the same messages. It has its own handlers, and echoes both values at once."""

    @init
    def echo_everything(self):
        for value in ("attack", "retreat"):
            self.broadcast(Receiver, Echo(value), myself=False)


class Traitor(Process):
    """Sends any value to each receiver. The search explores every combination."""

    lied: bool = False

    @action(when=lambda self: not self.lied)
    def lie(self):
        self.lied = True
        for receiver in self.ids(Receiver):
            self.send(receiver, Initial(self.choose(["attack", "retreat"])))


def delivered(s) -> set[str]:
    """The values that honest receivers delivered. s[Receiver] includes the accomplice, which has no such field."""
    return {r.delivered for r in s[Receiver] if r.id.role == "Receiver" and r.delivered is not None}


@always
def consistency(s):
    """No two honest receivers deliver different values."""
    return len(delivered(s)) <= 1


@reachable
def delivery(s):
    """An honest receiver can deliver a value."""
    return bool(delivered(s))


def traitor(honest: int = 3, quorum: int = 3) -> System:
    """A traitor, one accomplice and `honest` receivers, which wait for `quorum` echoes. With 3 honest, 3 are enough."""
    return System(
        [Traitor(), Accomplice(), *(Receiver(quorum=quorum) for _ in range(honest))],
        properties=[consistency, delivery],
    )
