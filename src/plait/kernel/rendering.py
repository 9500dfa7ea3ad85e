"""Renders a Verdict or a Trace for `str` and Jupyter, although the kernel imports no room.

The package `plait` provides the renderer when it is imported. The renderer is in `plait.report`, and is loaded on first
use.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol


class Renderer(Protocol):
    """Turns values of the kernel into text and HTML."""

    def text(self, value: object) -> str:
        """The value as text for a terminal."""

    def html(self, value: object) -> str:
        """The value as HTML for a notebook."""

    def widget(self, value: object) -> Any:
        """The value as a widget of a notebook."""

    def save(self, value: object, path: str | os.PathLike[str]) -> None:
        """Write the value to a file, in the format that the suffix says."""


_loaders: list[Callable[[], Renderer]] = []


def provide(load: Callable[[], Renderer]) -> None:
    """Use this renderer from now on. It is loaded on first use."""
    _loaders[:] = [load]


def renderer() -> Renderer:
    """The renderer that was provided."""
    return _loaders[0]()
