"""A field for debugging makes states different although they behave the same.

A sender sends two messages. The receiver takes the first and then the second, or both in one step. Then it acknowledges
them. For debugging, it stores a *history*: the messages that its last step took. This is the example of DBSS, section
II. There are seven states, named as in Figure 1(a):

    s1 --send_both--> s2 --wake--> s3 --take_first--> s4 --take_second--> s5 --acknowledge--> s
                              s3 --take_both----------------------> s6 --acknowledge--> s

s5 and s6 differ only in the history. No step and no property depends on it. So it is declared `aux` (auxiliary), and a
search of the *relevant* part of states has one state instead of two: the six states of Figure 1(b)
(`plait check examples/two_messages.py --reduce decomposition`). `plait graph` draws both graphs.

The network keeps delivered messages, so the fields of the receiver say which messages it has not taken yet.
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
    history: frozenset[str] = aux(frozenset())  # the messages that the last step took

    @on(First, where=lambda self, m: not self.awake)
    def wake(self, m: First):
        self.awake = True  # it is scheduled, because messages are pending

    @on(First, where=lambda self, m: self.awake and not self.received)
    def take_first(self, m: First):
        self.take("first")

    @on(Second, where=lambda self, m: self.received == {"first"})
    def take_second(self, m: Second):
        self.take("second")

    @on(Second, where=lambda self, m: self.awake and not self.received)
    def take_both(self, m: Second):
        self.take("first", "second")  # the first is pending too: both were sent in one step

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
    """The receiver acknowledges only messages that arrived."""
    return all(r.received == {"first", "second"} for r in s[Receiver] if r.acknowledged)


@final
def everything_is_received(s):
    """In the end, both messages are taken and acknowledged."""
    return all(len(r.received) == 2 and r.acknowledged for r in s[Receiver])


def two_messages(hasty: bool = False) -> System:
    """A sender and a receiver. With `hasty`, the receiver acknowledges as soon as one message has arrived."""
    return System(
        [Sender(), Receiver(hasty=hasty)],
        network=duplicating(),
        properties=[acknowledged_means_received, everything_is_received],
    )
