"""A server process that starts its program anew, in place: new connections wait in the socket meanwhile."""

from __future__ import annotations

import os
import socket
import sys
from typing import NoReturn

_SOCKET = "PLAIT_GYRO_SOCKET"


def inherited() -> bool:
    """Whether the program before this one has left its socket."""
    return bool(os.environ.get(_SOCKET))


def listen(host: str, port: int) -> socket.socket:
    """The socket that the program before this one has left; otherwise a new one."""
    if left := os.environ.pop(_SOCKET, ""):
        return socket.socket(fileno=int(left))
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((host, port))
    made.listen(2048)
    return made


def renew(listening: socket.socket | None) -> NoReturn:
    """Start the program of this process anew. The process keeps its id, so its supervisor does not notice."""
    if listening is not None:
        listening.set_inheritable(True)
        os.environ[_SOCKET] = str(listening.fileno())
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
