"""Ben-Or's randomized consensus on a bit (Ben-Or, "Another Advantage of Free Choice", PODC 1983).

Sequentialization (section 6) uses it as an example. Each process starts with a bit. All must agree on one of these
bits, although up to f processes may be silent. There is no leader. A phase has two rounds:

1. Report: each process sends its *estimate* to all, and waits for the reports of n - f processes. If more than half
   of all processes report the same bit, it proposes this bit. Otherwise it proposes nothing.
2. Proposal: each process sends its proposal to all, and waits for the proposals of n - f processes. No two processes
   propose different bits in one phase. A process that sees more than f proposals of a bit *decides* it; then each
   other process sees at least one of them. A process that sees at least one proposal takes the bit as its estimate. A
   process that sees none tosses a coin.

A process that has decided continues, to help the others.

Faulty twins, each of which breaks agreement:

- `estimate`: a process that decides does not take the decided bit as its estimate. With three processes and f = 1 the
  fault shows after three phases: all decide 1 in the first, but their estimates still differ; all coins of the second
  phase show 0; in the third phase they decide 0.
- `impatient`: a process may continue with fewer than n - f messages after a timeout. This is the protocol on a weaker
  network than it was designed for.

`phases=None` removes the bound on phases. This needs f = 0: then no process is more than one phase ahead, and phases
are numbered 1 and 0 in turns. `specification="live"` adds two properties. *Termination* says that all processes
decide on each run. It is violated: the coins may differ for ever. *Luck suffices* says: if all processes ever begin a
phase with the same estimate, all decide. So the protocol needs a fair coin. Fairness of steps does not help: a fair
coin is about the values that steps choose.

Simplified: the number of phases is bounded, unless f = 0. A lost message is one that is never delivered; a crashed
process is one whose messages are no longer delivered. The coin is a choice.
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
    """Has an estimate, and eventually decides."""

    n: int
    f: int
    phases: int | None
    """The number of phases; None for no bound."""
    estimate: int
    phase: int = 1
    stage: Literal["Report", "Proposal"] = "Report"
    """The round of the phase that it waits for."""
    wait: int
    """The number of messages that it waits for."""
    decisions: tuple[int, ...] = ()
    """The bits that it decided, without repetitions: more than one is a violation."""

    def patience(self) -> int:
        """The number of messages to wait for in the next round."""
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
        """Whether it takes a proposed bit as its estimate."""
        return True


class StubbornPeer(Peer):
    """Keeps its estimate when it decides."""

    def takes(self, decided: bool) -> bool:
        """Whether it takes a proposed bit as its estimate."""
        return not decided


class ImpatientPeer(Peer):
    """Continues with fewer messages than it should wait for."""

    def patience(self) -> int:
        """The number of messages to wait for in the next round."""
        return self.choose(range(1, self.n - self.f + 1))


PEERS: dict[Fault, type[Peer]] = {"none": Peer, "estimate": StubbornPeer, "impatient": ImpatientPeer}


# -- properties ------------------------------------------------------------------------------------------------------


@always
def agreement(s: View) -> bool:
    """No two different bits are decided."""
    return len({bit for peer in s[Peer] for bit in peer.decisions}) <= 1


@reachable
def decision(s: View) -> bool:
    """All processes can decide."""
    return all(peer.decisions for peer in s[Peer])


@predicate
def decided(s: View) -> bool:
    """All processes have decided."""
    return all(peer.decisions for peer in s[Peer])


@predicate
def lucky(s: View) -> bool:
    """All processes are about to report the same estimate in the same phase."""
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
    """Processes with these inputs, of which at most f are silent, in `phases` phases."""
    if phases is not None:
        at_least(1, phases=phases)
    elif f != 0:
        raise ModelError(
            f"phases=None and f={f}: without a bound, messages that no process waits for accumulate", hint="give f=0"
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
        """Each decided value is the input of some process."""
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
