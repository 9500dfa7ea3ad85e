"""Progress on stderr: one line that is updated on a terminal; elsewhere, a new line every few seconds."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from plait.cli.output import note

if TYPE_CHECKING:
    from plait.check.progress import Progress

_PLAIN_INTERVAL = 10.0
"""Seconds between lines, if stderr is not a terminal."""


class ProgressLine:
    """A context manager. Inside it, a call shows the given Progress."""

    def __init__(self, *, terminal: bool | None = None) -> None:
        self._terminal = sys.stderr.isatty() if terminal is None else terminal
        self._live: Any = None
        self._started, self._due = time.monotonic(), _PLAIN_INTERVAL
        self._noted: set[str] = set()

    def __enter__(self) -> ProgressLine:
        if self._terminal:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), transient=True, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, progress: Progress) -> None:
        self._show(line(progress), progress.seconds)
        for text in progress.growing:
            what = text.partition(" keeps growing")[0]
            if what not in self._noted:  # once: its value is another one each time
                self._noted.add(what)
                self._print(text)

    def _print(self, text: str) -> None:
        """A line that stays."""
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False)
        else:
            note(text)

    def say(self, text: str) -> None:
        """Show a text."""
        self._show(text, time.monotonic() - self._started)

    def _show(self, text: str, seconds: float) -> None:
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text(text), refresh=True)
        elif seconds >= self._due:
            self._due = seconds + _PLAIN_INTERVAL
            note(text)


def line(progress: Progress) -> str:
    """The progress as one line. The most important numbers come first, because a narrow terminal wraps the line."""
    p = progress
    rate = p.states / p.seconds if p.seconds > 0 else 0.0
    parts = [
        f"{p.search} {_clock(p.seconds)}",
        f"{p.states:,} states",
        f"{_short(rate)}/s",
        f"depth {p.depth:,}",
        f"{p.transitions:,} transitions",
        f"frontier {p.frontier:,}",
        f"{p.memory_bytes / 2**20:,.0f} MiB",
        f"{p.python_calls:,} Python calls",
    ]
    if p.walks:
        parts.insert(1, f"{p.walks:,} walks")
    return " · ".join(parts)


def _short(number: float) -> str:
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.1f}{name}"
    return f"{number:.0f}"


def _clock(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest:02}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02}m{rest:02}s"
