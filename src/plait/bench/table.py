"""Tables of measurements: what a setting came to with each reduction or encoding, and what was published about it."""

from __future__ import annotations

import msgspec

from plait.kernel.verdict import Status


class Comparison(msgspec.Struct, frozen=True):
    """The states of a line against those of its base."""

    base: str
    removed: float
    """The share of the base's states that were left out; negative if there are more."""
    at_least: bool = False
    """The base hit a limit, and has more states than were counted."""


class Row(msgspec.Struct, frozen=True):
    """One setting with one reduction."""

    setting: str
    reduction: str
    states: int
    seconds: float
    verdict: Status
    violated: str | None
    """The property that is."""
    bound: str | None
    """The limit that was hit."""
    comparisons: list[Comparison] = []
    published_verdict: Status | None = None
    published_states: int | None = None
    published_limit: bool = False
    """The published search was stopped: it has more states than that."""
    published_time: str | None = None
    """How long the published search took, in words."""
    note: str | None = None

    @property
    def differs(self) -> bool:
        """Whether the verdict contradicts the published one. A search that hit a limit contradicts nothing."""
        return self.verdict != "inconclusive" and self.published_verdict not in (None, self.verdict)


class Table(msgspec.Struct, frozen=True):
    """Lines in the order of the settings, and what to say about all of them."""

    name: str
    title: str
    rows: list[Row]
    conditions: str
    """How it was measured."""
    summary: list[str] = []
    complete: bool = True
    """False if it was interrupted."""

    @property
    def settings(self) -> dict[str, list[Row]]:
        """The lines of each setting."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.setting, []).append(row)
        return found


class Timing(msgspec.Struct, frozen=True):
    """One setting decided in one way: CPU seconds."""

    setting: str
    way: str
    solving: float
    total: float
    verdict: str
    """What was found: sat, unsat, or the limit that was hit."""
    published_solving: float | None = None
    published_total: float | None = None
    published_limit: bool = False
    """The published run was stopped: it takes longer than that."""
    expected: str | None = None
    """What was published: sat or unsat."""
    work: int | None = None
    """What the solver counted of its own doing; None without a solver."""
    building: float = 0.0

    @property
    def decided(self) -> bool:
        return self.verdict in ("sat", "unsat")

    @property
    def differs(self) -> bool:
        """Whether it contradicts what was published."""
        return self.decided and self.expected not in (None, self.verdict)


class TimingTable(msgspec.Struct, frozen=True):
    """Timings in the order of the settings, and what to say about all of them."""

    name: str
    title: str
    rows: list[Timing]
    conditions: str
    summary: list[str] = []
    complete: bool = True

    @property
    def settings(self) -> dict[str, list[Timing]]:
        """The lines of each setting."""
        found: dict[str, list[Timing]] = {}
        for row in self.rows:
            found.setdefault(row.setting, []).append(row)
        return found
