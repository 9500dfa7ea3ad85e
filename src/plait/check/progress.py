"""What a running search tells about itself."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Progress:
    """A glance at a search that goes on; handed to `check(..., progress=…)` some times a second."""

    search: str
    states: int
    transitions: int
    depth: int
    frontier: int
    """States that wait to be expanded (the depth of the stack, for dfs)."""
    memory_bytes: int
    python_calls: int
    seconds: float
    walks: int
