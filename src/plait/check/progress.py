"""The counters of a search while it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plait._native import Counters


@dataclasses.dataclass(frozen=True)
class Progress:
    """The counters of a running search. `check(..., progress=…)` gets them a few times per second."""

    search: str
    states: int
    transitions: int
    depth: int
    frontier: int
    """States that are not expanded yet (for dfs, the depth of the stack)."""
    memory_bytes: int
    python_calls: int
    seconds: float
    walks: int
    growing: tuple[str, ...] = ()
    """What keeps growing, and the bound to give: the search may not end."""

    @classmethod
    def of(cls, search: str, counters: Counters, growing: Sequence[str] = ()) -> Progress:
        """The counters of the engine so far."""
        names = [field.name for field in dataclasses.fields(cls) if field.name not in ("search", "growing")]
        return cls(search=search, growing=tuple(growing), **{name: getattr(counters, name) for name in names})
