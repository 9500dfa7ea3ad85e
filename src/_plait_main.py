"""The command `plait`: the process around it. Plait itself is imported only after the process is prepared.

- Ctrl-C while Plait is imported ends the command with one line, not with a traceback.
- SIGTERM and SIGHUP act as Ctrl-C: a search ends with what was found so far. A signal that the process was started with
  as ignored (`nohup`, a job in the background) stays ignored.
- A standard stream that is closed becomes the null device. Otherwise the next file that is opened would take its place.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType

_INTERRUPTED = 3
_NEAR = 1.0
"""Seconds. A closed terminal sends SIGHUP several times: signals that follow each other this closely count once."""
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_ended = float("-inf")
"""The time of the last signal that ended the command."""


def main() -> int:
    """Run the command line, and return its exit code."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it takes the lowest free number
    for number in (signal.SIGINT, *_ENDING):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _quit)
    gc.disable()  # an import leaves nothing to collect, and looking for it takes a tenth of the start
    from plait.cli.main import main as run

    gc.freeze()
    gc.enable()
    return run()


def prepare() -> None:
    """Let Ctrl-C raise a KeyboardInterrupt, and SIGTERM and SIGHUP do the same as Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    """Act as Ctrl-C. It raises the exception itself: a SIGINT that follows at once could be missed by a wait in C."""
    global _ended
    if time.monotonic() - _ended >= _NEAR:
        _ended = time.monotonic()
        raise KeyboardInterrupt


def _quit(number: int, frame: FrameType | None) -> None:
    """End the process at once: nothing has been done yet."""
    with suppress(OSError):
        os.write(2, b"error: interrupted\n")
    if "--json" in sys.argv:
        with suppress(OSError):
            said = b'{"error":{"kind":"interrupted","message":"interrupted","hint":null,"exit_code":3}}\n'
            os.write(1, said)
    os._exit(_INTERRUPTED)
