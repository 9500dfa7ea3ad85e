"""Processes that end when the process that started them ends, even by `kill -9`.

On Linux the kernel does this (PR_SET_PDEATHSIG). It sends the signal when the *thread* ends that started the process. So
only processes that the main thread starts are tied in this way. Servers also watch their parent (`server.py`), on every
system.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
TIED = "PLAIT_GYRO_TIED"
"""The environment variable with the process id of a supervisor, for servers that the kernel shall end with it."""


def ends_with_parent(how: signal.Signals) -> Callable[[], None] | None:
    """A function to run in a new process before its program starts. None if the kernel cannot do it."""
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    prctl, parent = (
        ctypes.CDLL(None, use_errno=True).prctl,
        os.getpid(),
    )  # loaded here: the child must not wait for locks

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, how, 0, 0, 0)
        if os.getppid() != parent:  # it has ended already
            os._exit(0)

    return tie


def tied_environment() -> dict[str, str]:
    """What a supervisor adds to the environment of a server, so that `tie_to_supervisor` works."""
    main = threading.current_thread() is threading.main_thread()
    return {TIED: str(os.getpid())} if main else {}


def tell_systemd(state: str) -> None:
    """Report a state such as READY=1 to systemd, if systemd has started this process (sd_notify)."""
    if address := os.environ.get("NOTIFY_SOCKET"):
        where = "\0" + address[1:] if address.startswith("@") else address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
            connection.connect(where)
            connection.send(state.encode())


def tie_to_supervisor() -> None:
    """Let the kernel kill this process when its supervisor ends."""
    parent = os.environ.pop(TIED, "")
    if sys.platform == "linux" and parent:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != int(parent):
            os._exit(0)
