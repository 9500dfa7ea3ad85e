"""What a process remembers only to be looked at makes states different that behave alike.

A sender sends two messages; its receiver takes the first alone and then the second, or both in one step, and then
acknowledges. For whoever debugs it, it keeps a *history*: what its last step took. This is the example of DBSS,
section II. There are seven states, named as in Figure 1(a):

    s1 --send_both--> s2 --wake--> s3 --take_first--> s4 --take_second--> s5 --acknowledge--> s
                              s3 --take_both----------------------> s6 --acknowledge--> s

s5 and s6 differ in the history alone, and nothing depends on it: neither what may happen next, nor the property. So it
is declared `aux`, auxiliary, and a search that keeps only the *relevant* part of a state sees one state instead of two
(`plait check examples/two_messages.py --reduce decomposition`): the six states of Figure 1(b). `plait graph` draws both.

The network keeps what was delivered, so that the receiver's own fields say what is left to take.
"""

from plait import Message, Process, System, action, always, aux, duplicating, final, on


class First(Message): ...


class Second(Message): ...


class Acknowledgement(Message): ...


class Sender(Process):
    sent: bool = False

    @action(when=lambda self: not self.sent)
    def send_both(self):
        self.sent = True
        self.broadcast(Receiver, First())
        self.broadcast(Receiver, Second())


class Receiver(Process):
    hasty: bool
    awake: bool = False
    received: frozenset[str] = frozenset()
    acknowledged: bool = False
    history: frozenset[str] = aux(frozenset())  # what the last step took

    @on(First, where=lambda self, m: not self.awake)
    def wake(self, m: First):
        self.awake = True  # it is scheduled, because there is something to take

    @on(First, where=lambda self, m: self.awake and not self.received)
    def take_first(self, m: First):
        self.take("first")

    @on(Second, where=lambda self, m: self.received == {"first"})
    def take_second(self, m: Second):
        self.take("second")

    @on(Second, where=lambda self, m: self.awake and not self.received)
    def take_both(self, m: Second):
        self.take("first", "second")  # the first is there as well: they were sent together

    def take(self, *names):
        self.received |= frozenset(names)
        self.history = frozenset(names)

    @action(when=lambda self: not self.acknowledged and len(self.received) >= (1 if self.hasty else 2))
    def acknowledge(self):
        self.acknowledged = True
        self.history = frozenset()
        self.broadcast(Sender, Acknowledgement())


@always
def acknowledged_means_received(s):
    """Nothing is acknowledged that did not arrive."""
    return all(r.received == {"first", "second"} for r in s[Receiver] if r.acknowledged)


@final
def everything_is_received(s):
    """In the end, both messages have been taken, and acknowledged."""
    return all(len(r.received) == 2 and r.acknowledged for r in s[Receiver])


def two_messages(hasty: bool = False) -> System:
    """A sender and a receiver; a hasty one acknowledges as soon as anything has arrived."""
    return System(
        [Sender(), Receiver(hasty=hasty)],
        network=duplicating(),
        properties=[acknowledged_means_received, everything_is_received],
    )
