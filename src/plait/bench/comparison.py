"""A table of model checkers beside one another: the same protocol, the same states, and what they cost each."""

from __future__ import annotations

import msgspec


def times(ratio: float) -> str:
    """How many times as many.

    >>> [times(ratio) for ratio in (0.128, 4.04, 56.7, 111.2)]
    ['0.13', '4.0', '57', '111']
    """
    return f"{ratio:.{2 if ratio < 0.95 else 1 if ratio < 9.95 else 0}f}"


class PeerRow(msgspec.Struct, frozen=True):
    """One checker on one setting."""

    setting: str
    checker: str
    expected: int
    """How many states there are."""
    states: int | None = None
    """How many it found; None if it came to no end."""
    transitions: int | None = None
    expected_transitions: int | None = None
    """How many Plait found on this setting."""
    violated: bool = False
    """It says that the property does not hold. It does."""
    seconds: float | None = None
    """Of the search, by the checker's own account."""
    states_per_second: float | None = None
    """None where there are too few to tell."""
    process_seconds: float | None = None
    """Of its process, from start to end."""
    cpu_seconds: float | None = None
    """Of the processor, by all threads of its process."""
    memory_bytes: int | None = None
    """The peak of its process's resident memory."""
    slower: float | None = None
    """How many times as many states a second Plait has."""
    larger: float | None = None
    """How many times as much memory it takes as Plait."""
    problem: str | None = None
    """Why it came to no end."""

    @property
    def differs(self) -> bool:
        """Whether it found other states or transitions, or another verdict."""
        if self.states is None:
            return False
        transitions = self.expected_transitions in (None, self.transitions)
        return self.states != self.expected or not transitions or self.violated


class PeerTable(msgspec.Struct, frozen=True):
    """Lines in the order of the settings, and what to say about all of them."""

    name: str
    title: str
    rows: list[PeerRow]
    conditions: str
    """How it was measured, and on what."""
    missing: dict[str, str] = {}
    """Checkers that are not here: what to do about it."""
    summary: list[str] = []
    complete: bool = True
    """False if it was interrupted."""

    @property
    def settings(self) -> dict[str, list[PeerRow]]:
        """The lines of each setting."""
        found: dict[str, list[PeerRow]] = {}
        for row in self.rows:
            found.setdefault(row.setting, []).append(row)
        return found
