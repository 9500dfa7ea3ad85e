"""The command `plait`: the process around it. Plait itself is imported only after the process is prepared.

- Ctrl-C while Plait is imported ends the command with one line, not with a traceback.
- SIGTERM and SIGHUP act as Ctrl-C: a search ends with what was found so far. A signal that the process was started with
  as ignored (`nohup`, a job in the background) stays ignored.
- A standard stream that is closed becomes the null device. Otherwise the next file that is opened would take its place.
"""

from __future__ import annotations

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
_terminated = threading.Event()


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
    from plait.cli.main import main as run

    return run()


def prepare() -> None:
    """Let Ctrl-C raise a KeyboardInterrupt, and SIGTERM and SIGHUP do the same as Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt_if_terminated)
    else:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    heeded = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heeded:
        signal.signal(number, _do_nothing)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    # Python's own handlers wait for the next instruction of Python. A solver in C may run for hours before that, but
    # knows SIGINT. So a thread turns the signal into SIGINT at once.
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_forward, args=(reader, heeded), daemon=True).start()


def _forward(reader: int, heeded: list[int]) -> None:
    last = -_NEAR
    while numbers := os.read(reader, 64):
        if not set(numbers).isdisjoint(heeded) and time.monotonic() - last >= _NEAR:
            last = time.monotonic()
            _terminated.set()
            os.kill(os.getpid(), signal.SIGINT)


def _quit(number: int, frame: FrameType | None) -> None:
    """End the process at once: nothing has been done yet."""
    with suppress(OSError):
        os.write(2, b"error: interrupted\n")
    if "--json" in sys.argv:
        with suppress(OSError):
            said = b'{"error":{"kind":"interrupted","message":"interrupted","hint":null,"exit_code":3}}\n'
            os.write(1, said)
    os._exit(_INTERRUPTED)


def _interrupt_if_terminated(number: int, frame: FrameType | None) -> None:
    if _terminated.is_set():
        raise KeyboardInterrupt


def _do_nothing(number: int, frame: FrameType | None) -> None:
    pass
