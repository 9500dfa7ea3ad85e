"""How a Verdict or a Trace shows itself (`str`, Jupyter) although the kernel imports no room.

The package `plait` provides the renderer when it is imported. It comes from `plait.report`, and is loaded on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Renderer(Protocol):
    """Values of the kernel as text and as HTML."""

    def text(self, value: object) -> str:
        """The value for a terminal."""

    def html(self, value: object) -> str:
        """The value for a notebook."""


_loaders: list[Callable[[], Renderer]] = []


def provide(load: Callable[[], Renderer]) -> None:
    """Use this renderer from now on; it is loaded when it is first needed."""
    _loaders[:] = [load]


def renderer() -> Renderer:
    """The renderer that was provided."""
    return _loaders[0]()
