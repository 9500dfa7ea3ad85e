"""Ben-Or's randomized consensus on a bit (Ben-Or, "Another advantage of free choice", PODC 1983; paper 002, section 6).

Processes start with a bit each, and must agree on one of them, although up to f of them may be silent. There is no leader.
They go through phases of two rounds:

1. Report: everybody sends its *estimate* to all, and waits for the reports of n - f processes. If more than half of all
   processes report the same bit, it proposes that bit, otherwise it proposes nothing.
2. Proposal: everybody sends its proposal to all, and waits for the proposals of n - f processes. No two processes propose
   different bits in one phase. Who sees more than f proposals of a bit *decides* it: then everybody else sees at least one.
   Who sees one takes it for its estimate. Who sees none tosses a coin.

A process that has decided goes on, to help the others.

Faulty twins, each of which breaks agreement:

- `estimate`: a process that decides does not take what it decided for its estimate. With three processes and f = 1 it takes
  three phases to notice: all decide 1 in the first, but their estimates still differ; all coins of the second show 0, and
  they decide 0 in the third.
- `impatient`: a process may go on with fewer than n - f messages, when it waited for long. This is the protocol on a
  weaker network than it was made for.

With `phases=None` there is no end, which needs f = 0: then nobody is more than a phase ahead, and phases are numbered 1 and
0 in turns. `specification="live"` adds two properties. *Termination*, that on every run all decide, is violated: nothing
keeps the coins from differing for ever. *Luck suffices*: if all ever begin a phase with the same estimate, all decide. So
it takes a fair coin, which is no fairness of steps: it is about what the steps choose.

Simplified: the number of phases is bounded, unless f = 0. A message that is never delivered is lost; a crashed process is
one from which nothing is delivered any more. The coin is a choice.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import (
    F,
    Message,
    ModelError,
    Process,
    System,
    always,
    eventually,
    init,
    ltl,
    on,
    predicate,
    reachable,
    tagged,
)
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "estimate", "impatient"]
Specification = Literal["safe", "live"]


@tagged(phase="phase", round="Report")
class Report(Message):
    """The sender's estimate."""

    phase: int
    estimate: int


@tagged(phase="phase", round="Proposal")
class Proposal(Message):
    """The bit that the sender proposes to decide; None if it proposes nothing."""

    phase: int
    bit: int | None


class Peer(Process):
    """Has an estimate, and decides at some time."""

    n: int
    f: int
    phases: int | None
    """So many phases there are; None: without end."""
    estimate: int
    phase: int = 1
    stage: Literal["Report", "Proposal"] = "Report"
    """The round of the phase: what it is waiting for."""
    wait: int
    """For so many messages it is waiting."""
    decisions: tuple[int, ...] = ()
    """What it decided, without repetitions: more than one is a fault already."""

    def patience(self) -> int:
        """For how many messages to wait in the next round."""
        return self.n - self.f

    @init
    def start(self) -> None:
        self.broadcast(Peer, Report(self.phase, self.estimate))

    @on(
        Report,
        quorum=lambda self: self.wait,
        where=lambda self, m: m.phase == self.phase and self.stage == "Report",
    )
    def propose(self, reports: tuple[Report, ...]) -> None:
        bits = [m.estimate for m in reports]
        bit = next((b for b in (0, 1) if 2 * bits.count(b) > self.n), None)
        self.stage = "Proposal"
        self.wait = self.patience()
        self.broadcast(Peer, Proposal(self.phase, bit))

    @on(
        Proposal,
        quorum=lambda self: self.wait,
        where=lambda self, m: m.phase == self.phase and self.stage == "Proposal",
    )
    def conclude(self, proposals: tuple[Proposal, ...]) -> None:
        bits = [m.bit for m in proposals if m.bit is not None]
        decided = len(bits) > self.f
        if decided and bits[0] not in self.decisions:
            self.decisions += (bits[0],)
        if not bits:
            self.estimate = self.choose([0, 1])
        elif self.takes(decided):
            self.estimate = bits[0]
        self.phase = 1 - self.phase if self.phases is None else self.phase + 1
        self.stage = "Report"
        self.wait = self.patience()
        if self.phases is None or self.phase <= self.phases:
            self.broadcast(Peer, Report(self.phase, self.estimate))

    def takes(self, decided: bool) -> bool:
        """Whether it takes a proposed bit for its estimate."""
        return True


class StubbornPeer(Peer):
    """Keeps its estimate when it decides."""

    def takes(self, decided: bool) -> bool:
        """Whether it takes a proposed bit for its estimate."""
        return not decided


class ImpatientPeer(Peer):
    """Goes on with fewer messages than it should wait for."""

    def patience(self) -> int:
        """For how many messages to wait in the next round."""
        return self.choose(range(1, self.n - self.f + 1))


PEERS: dict[Fault, type[Peer]] = {"none": Peer, "estimate": StubbornPeer, "impatient": ImpatientPeer}


# -- properties ------------------------------------------------------------------------------------------------------


@always
def agreement(s: View) -> bool:
    """No two different bits are decided."""
    return len({bit for peer in s[Peer] for bit in peer.decisions}) <= 1


@reachable
def decision(s: View) -> bool:
    """Everybody can decide."""
    return all(peer.decisions for peer in s[Peer])


@predicate
def decided(s: View) -> bool:
    """Everybody has decided."""
    return all(peer.decisions for peer in s[Peer])


@predicate
def lucky(s: View) -> bool:
    """All are about to report the same estimate in the same phase."""
    return len({(peer.phase, peer.stage, peer.estimate) for peer in s[Peer]}) == 1 and s[Peer][0].stage == "Report"


termination = eventually(decided, name="termination")
luck_suffices = ltl(F(lucky) >> F(decided), name="luck_suffices")


# -- the model -------------------------------------------------------------------------------------------------------


def ben_or(
    inputs: tuple[int, ...] = (0, 1, 1),
    f: int = 1,
    phases: int | None = 1,
    specification: Specification = "safe",
    faulty: Fault = "none",
) -> System:
    """Processes with these inputs, of which at most f are silent, that go through so many phases."""
    if phases is not None:
        at_least(1, phases=phases)
    elif f != 0:
        raise ModelError(
            f"phases=None and f={f}: without end, messages that are not waited for would pile up", hint="give f=0"
        )
    at_least(0, f=f)
    one_of(get_args(Specification), specification=specification)
    one_of(get_args(Fault), faulty=faulty)
    n = len(inputs)
    if 2 * f >= n or not set(inputs) <= {0, 1}:
        raise ModelError(
            f"inputs={inputs!r} and f={f}: expected bits of more than 2f = {2 * f} processes",
            hint="for example -p inputs=0,1,1 -p f=1",
        )

    @always
    def validity(s: View) -> bool:
        """What is decided is the input of some process."""
        return all(bit in inputs for peer in s[Peer] for bit in peer.decisions)

    return System(
        [PEERS[faulty](n=n, f=f, phases=phases, estimate=bit, wait=n - f) for bit in inputs],
        properties=[
            agreement,
            validity,
            decision,
            *([termination, luck_suffices] if specification == "live" else []),
        ],
        rounds=["Report", "Proposal"],
        name="ben_or",
    )
