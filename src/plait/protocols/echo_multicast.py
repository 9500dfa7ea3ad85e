"""Echo multicast: consistent multicast among Byzantine processes (Reiter, "Secure Agreement Protocols", CCS 1994).

An initiator multicasts numbered messages to all receivers. A lying initiator must not make two honest receivers
deliver different messages with the same number. It is allowed that one receiver delivers and another never does.

- The initiator sends its message to all receivers (INIT).
- A receiver signs the first message that it sees for each initiator and number, and returns the signature (ECHO).
- When the initiator has a quorum of signatures, it sends them to all receivers as a proof (COMMIT).
- A receiver checks the proof, and delivers.

With n receivers, up to f = ⌊(n - 1) / 3⌋ of them may be Byzantine, and a quorum is more than (n + f) / 2. So two
quorums have an honest receiver in common, which signs once, and the n - f honest receivers form a quorum.

The attacks are those of MP-Basset, section V. It describes a setting as (honest receivers, honest initiators,
Byzantine receivers, Byzantine initiators):

- A Byzantine initiator divides the honest receivers into two groups, in each possible way, and sends a different
  message to each group. It asks the Byzantine receivers to sign both. When it has a quorum for one message, it sends
  the proof to all. It also sends each group a COMMIT without signatures, in case a receiver does not check.
- A Byzantine receiver signs both messages of a Byzantine initiator. To an honest initiator it sends a signature of
  another message.
- `attack="both"` is a stronger initiator: it sends both messages to all receivers. So the order of arrival decides
  which message an honest receiver signs, and an honest receiver has a message to reject.

(3,0,1,1) and (2,1,0,1) satisfy agreement. (2,1,2,1) has more Byzantine receivers than the protocol tolerates, and
breaks it: this is the wrong specification of the MP-Basset paper.

Two variants, as in `paxos`: with `quorum=True` an initiator consumes a quorum of signatures in one transition, with
`quorum=False` one by one.

Faulty twins, each of which breaks agreement:

- `gullible`: the honest receivers do not count the signatures of a COMMIT.
- `signer`: one honest receiver signs each message that it sees. The fault shows with `attack="both"`.

Simplified: a signature is the id of the signer. Signatures cannot be forged, because no process of the model sends
the signature of another. Receivers do not forward messages.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import Message, Pid, Process, System, action, always, field, final, on, reachable
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of, several

Attack = Literal["groups", "both"]
Fault = Literal["none", "gullible", "signer"]

HONEST = "m"
"""The message of an honest initiator."""
LIES = ("a", "b")
"""The messages that a Byzantine initiator sends to the two groups."""
INVALID = "x"
"""A message that no initiator multicasts. A Byzantine receiver signs it to mislead an honest initiator."""


class Init(Message):
    """This is my message with this number."""

    number: int
    value: str


class Echo(Message):
    """My signature: this is the first message with this number that I saw of you."""

    number: int
    value: str


class Commit(Message):
    """Deliver this message; these receivers have signed it."""

    number: int
    value: str
    signers: frozenset[Pid]


# -- receivers, honest and Byzantine ----------------------------------------------------------------------------------


class AnyReceiver(Process):
    """The role of all receivers."""


class Receiver(AnyReceiver):
    """Signs once, and delivers a message that a quorum has signed."""

    quorum: int
    """The number of signatures that make a proof."""
    signed: set[tuple[Pid, int]] = field(default_factory=set)
    """The initiators and numbers for which it has signed a message."""
    delivered: dict[tuple[Pid, int], str] = field(default_factory=dict)
    """What it delivered, by initiator and number."""

    @on(Init, where=lambda self, m: (m.sender, m.number) not in self.signed)
    def echo(self, m: Init) -> None:
        self.signed.add((m.sender, m.number))
        self.send(m.sender, Echo(m.number, m.value))

    @on(
        Commit,
        where=lambda self, m: len(m.signers) >= self.quorum and (m.sender, m.number) not in self.delivered,
    )
    def deliver(self, m: Commit) -> None:
        self.delivered[m.sender, m.number] = m.value


class GullibleReceiver(Receiver):
    """Delivers after each COMMIT without counting signatures."""

    @on(Commit, where=lambda self, m: (m.sender, m.number) not in self.delivered)
    def deliver(self, m: Commit) -> None:
        self.delivered[m.sender, m.number] = m.value


class Signer(Receiver):
    """Signs each message that it sees."""

    @on(Init)
    def echo(self, m: Init) -> None:
        self.send(m.sender, Echo(m.number, m.value))


class ByzantineReceiver(AnyReceiver):
    """Helps Byzantine initiators, and misleads honest ones. It delivers nothing."""

    @on(Init, where=lambda self, m: m.value in LIES)
    def confirm(self, m: Init) -> None:
        self.send(m.sender, Echo(m.number, m.value))

    @on(Init, where=lambda self, m: m.value not in LIES)
    def mislead(self, m: Init) -> None:
        self.send(m.sender, Echo(m.number, INVALID))


# -- honest initiators ------------------------------------------------------------------------------------------------


class AnyInitiator(Process):
    """Multicasts several messages, one after the other."""

    last: int
    quorum: int
    number: int = 0
    collecting: bool = False

    @action(when=lambda self: not self.collecting and self.number < self.last)
    def multicast(self) -> None:
        self.collecting = True
        self.number += 1
        self.broadcast(AnyReceiver, Init(self.number, HONEST))

    def commit(self, signers: frozenset[Pid]) -> None:
        """Send the proof, and be ready for the next message."""
        self.collecting = False
        self.broadcast(AnyReceiver, Commit(self.number, HONEST, signers))


class Initiator(AnyInitiator):
    """Takes a quorum of signatures at once."""

    @on(
        Echo,
        quorum=lambda self: self.quorum,
        where=lambda self, m: self.collecting and m.number == self.number and m.value == HONEST,
    )
    def signed(self, echoes: tuple[Echo, ...]) -> None:
        self.commit(frozenset(m.sender for m in echoes))


class CountingInitiator(AnyInitiator):
    """Takes the signatures one by one."""

    signers: set[Pid] = field(default_factory=set)

    @on(Echo, where=lambda self, m: self.collecting and m.number == self.number and m.value == HONEST)
    def signed(self, m: Echo) -> None:
        self.signers.add(m.sender)
        if len(self.signers) == self.quorum:
            self.commit(frozenset(self.signers))
            self.signers.clear()


# -- Byzantine initiators ---------------------------------------------------------------------------------------------


class AnyByzantineInitiator(Process):
    """Multicasts two messages with the same number."""

    last: int
    quorum: int
    attack: Attack
    number: int = 0

    @action(when=lambda self: self.number < self.last)
    def lie(self) -> None:
        self.number += 1
        for receiver in self.ids(Receiver):
            told = LIES if self.attack == "both" else (self.choose(LIES),)
            for value in told:
                self.send(receiver, Init(self.number, value))
                self.send(receiver, Commit(self.number, value, frozenset()))
        for value in LIES:
            self.broadcast(ByzantineReceiver, Init(self.number, value))

    def commit(self, echo: Echo, signers: frozenset[Pid]) -> None:
        """Send the proof of one of the two."""
        self.broadcast(AnyReceiver, Commit(echo.number, echo.value, signers))


class ByzantineInitiator(AnyByzantineInitiator):
    """Takes a quorum of signatures at once. A quorum is more than half, so this happens at most once for a message."""

    @on(Echo, quorum=lambda self: self.quorum, same=("number", "value"))
    def signed(self, echoes: tuple[Echo, ...]) -> None:
        self.commit(echoes[0], frozenset(m.sender for m in echoes))


class CountingByzantineInitiator(AnyByzantineInitiator):
    """Takes the signatures one by one."""

    signers: dict[tuple[int, str], set[Pid]] = field(default_factory=dict)
    """The signers of each message, until there are enough."""
    committed: set[tuple[int, str]] = field(default_factory=set)

    @on(Echo, where=lambda self, m: (m.number, m.value) not in self.committed)
    def signed(self, m: Echo) -> None:
        signers = self.signers.setdefault((m.number, m.value), set())
        signers.add(m.sender)
        if len(signers) == self.quorum:
            self.committed.add((m.number, m.value))
            self.commit(m, frozenset(self.signers.pop((m.number, m.value))))


# -- properties -------------------------------------------------------------------------------------------------------


@always
def agreement(s: View) -> bool:
    """No two honest receivers deliver different messages of one initiator with the same number."""
    agreed: dict[tuple[Pid, int], str] = {}
    return all(
        agreed.setdefault(key, value) == value for receiver in s[Receiver] for key, value in receiver.delivered.items()
    )


@always
def integrity(s: View) -> bool:
    """What is delivered as the message of an honest initiator is what it multicast."""
    honest = {initiator.id: initiator for initiator in s.get(AnyInitiator)}
    return all(
        value == HONEST and number <= honest[initiator].number
        for receiver in s[Receiver]
        for (initiator, number), value in receiver.delivered.items()
        if initiator in honest
    )


@final
def honest_messages_arrive(s: View) -> bool:
    """In the end, all honest receivers have delivered all messages of honest initiators."""
    return all(
        (initiator.id, number) in receiver.delivered
        for initiator in s.get(AnyInitiator)
        for number in range(1, initiator.last + 1)
        for receiver in s[Receiver]
    )


@reachable
def delivery(s: View) -> bool:
    """Something can be delivered."""
    return any(receiver.delivered for receiver in s[Receiver])


# -- the model --------------------------------------------------------------------------------------------------------


def echo_multicast(
    honest_receivers: int = 3,
    honest_initiators: int = 1,
    byzantine_receivers: int = 1,
    byzantine_initiators: int = 1,
    messages: int = 1,
    quorum: bool = True,
    attack: Attack = "groups",
    faulty: Fault = "none",
) -> System:
    """Echo multicast of `messages` messages per initiator. `attack`: what Byzantine initiators do. `faulty`: a fault."""
    at_least(1, honest_receivers=honest_receivers, messages=messages)
    at_least(0, honest_initiators=honest_initiators)
    at_least(0, byzantine_receivers=byzantine_receivers, byzantine_initiators=byzantine_initiators)
    one_of(get_args(Attack), attack=attack)
    one_of(get_args(Fault), faulty=faulty)
    receivers = honest_receivers + byzantine_receivers
    tolerated = (receivers - 1) // 3
    enough = (receivers + tolerated) // 2 + 1
    receiver: type[Receiver] = GullibleReceiver if faulty == "gullible" else Receiver
    first: type[Receiver] = Signer if faulty == "signer" else receiver
    initiator: type[AnyInitiator] = Initiator if quorum else CountingInitiator
    liar: type[AnyByzantineInitiator] = ByzantineInitiator if quorum else CountingByzantineInitiator
    return System(
        [
            *(initiator(last=messages, quorum=enough) for _ in range(honest_initiators)),
            *(liar(last=messages, quorum=enough, attack=attack) for _ in range(byzantine_initiators)),
            first(quorum=enough),
            *(receiver(quorum=enough) for _ in range(honest_receivers - 1)),
            *(ByzantineReceiver() for _ in range(byzantine_receivers)),
        ],
        properties=[
            agreement,
            integrity,
            # With too many Byzantine receivers, honest initiators get no quorum, and no message is delivered.
            *([honest_messages_arrive] if honest_initiators and byzantine_receivers <= tolerated else []),
            *([delivery] if byzantine_initiators or (honest_initiators and honest_receivers >= enough) else []),
        ],
        symmetric=several(
            {
                AnyInitiator: honest_initiators,
                AnyByzantineInitiator: byzantine_initiators,
                Receiver: honest_receivers,
                ByzantineReceiver: byzantine_receivers,
            }
        ),
        name="echo_multicast",
    )
