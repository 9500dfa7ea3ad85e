"""The alternating-bit protocol over a network that loses messages: several initial states, and a bound.

A sender sends a value with a bit, again and again, until the acknowledgement has the same bit. Both begin with the
same bit, but it may be any bit, and the values that were sent and received before may be any values: `@init` methods
choose them, and `initially` says which combinations are meant. The sender may send at any time, so the queues have no
bound. The search has one: states with more than `most` messages in a queue are checked, but not expanded.

    plait check examples/alternating_bit.py                    what is sent is received, within the bound
    plait check examples/alternating_bit.py -p most=1          a smaller bound
    plait check examples/alternating_bit.py -p careful=false   a receiver that acknowledges before it has received

The model of the TLA+ examples with the same name (SpecifyingSystems/TLC) has 240 states, like this one.
"""

from plait import Message, Process, System, View, action, always, fifo, init, leads_to, on, predicate, strong, weak

VALUES = ("one", "two")


class Data(Message):
    """A value with the bit of its sender."""

    bit: int
    value: str


class Ack(Message):
    """The bit of the last value that was received."""

    bit: int


class Sender(Process):
    """Sends a value until it is acknowledged, then the next one."""

    bit: int = 0
    acknowledged: int = 0
    sent: str = VALUES[0]

    @init
    def begin(self) -> None:
        self.bit = self.acknowledged = self.choose([0, 1])
        self.sent = self.choose(VALUES)

    @action(when=lambda self: self.acknowledged == self.bit)
    def send_next(self) -> None:
        self.sent = self.choose(VALUES)
        self.bit = 1 - self.bit
        self.send(Receiver.pid(0), Data(self.bit, self.sent))

    @action(when=lambda self: self.acknowledged != self.bit)
    def send_again(self) -> None:
        self.send(Receiver.pid(0), Data(self.bit, self.sent))

    @on(Ack)
    def acknowledge(self, m: Ack) -> None:
        self.acknowledged = m.bit


class Receiver(Process):
    """Takes values, and acknowledges the last one at any time."""

    careful: bool = True
    bit: int = 0
    received: str = VALUES[0]

    @init
    def begin(self) -> None:
        self.bit = self.choose([0, 1])
        self.received = self.choose(VALUES)

    @on(Data)
    def receive(self, m: Data) -> None:
        self.bit, self.received = m.bit, m.value

    @action
    def confirm(self) -> None:
        self.send(Sender.pid(0), Ack(self.bit if self.careful else self.choose([0, 1])))


@always
def acknowledged_means_received(s: View) -> bool:
    """If the sender knows that its value was received, the receiver has it."""
    (sender,), (receiver,) = s[Sender], s[Receiver]
    fresh = sender.bit != receiver.bit
    return not (fresh and sender.acknowledged == sender.bit)


def same_bit(s: View) -> bool:
    """Both begin with the same bit."""
    return s[Sender][0].bit == s[Receiver][0].bit


def alternating_bit(most: int = 2, careful: bool = True) -> System:
    """Queues of at most `most` messages. A receiver that is not careful acknowledges what it has not received."""

    def short_queues(s: View) -> bool:
        return all(len(process.inbox) <= most for process in s)

    arrives = [
        leads_to(
            predicate(
                lambda s, value=value: s[Sender][0].sent == value and s[Sender][0].acknowledged != s[Sender][0].bit
            ),
            predicate(lambda s, value=value: s[Receiver][0].received == value),
            name=f"{value} arrives",
        )
        for value in VALUES
    ]
    return System(
        [Sender(), Receiver(careful=careful)],
        network=fifo(lossy=True),
        initially=same_bit,
        within=short_queues,
        fairness=[
            weak(Sender.send_again),
            weak(Receiver.confirm),
            strong(Receiver.receive),
            strong(Sender.acknowledge),
        ],
        properties=[acknowledged_means_received, *arrives],
        name="alternating_bit",
    )
