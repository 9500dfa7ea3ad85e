"""A server process ends when its parent ends, when its node has stopped, or when its cluster has gone on without it."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from plait.gyro.belt.identity import overtaken
from plait.gyro.belt.logs.log import LogGoneError
from plait.gyro.belt.node import Node
from plait.gyro.belt.service.events import event
from plait.gyro.belt.version import Version, superseded

logger = logging.getLogger("plait.gyro")


_TICK = 0.05
"""Seconds between two looks at this process."""
_OFTEN, _SELDOM = 20, 100
"""How many ticks pass between two looks at the log: for another process of this server, and for a newer version."""


def watch(parent: int, node: Node, version: Version, start: int, activated: Callable[[], None]) -> None:
    """Exit when the parent process ends, or when the node has stopped; the supervisor then restarts the server.

    Exit for good if the cluster has gone on with another version while this server did not answer, or if another process
    has started as this server since `start`. Call `activated` if another configuration has begun.
    """
    for tick in itertools.count(1):
        if os.getppid() != parent:
            os._exit(0)
        if node.activated is not None:
            activated()
            return
        if node.broken is not None:
            time.sleep(_TICK)
            if node.activated is None:
                os._exit(3)
            continue
        with contextlib.suppress(LogGoneError):
            if tick % _OFTEN == 0 and overtaken(node.server, start, node.log):
                logger.error(
                    "error: another process has started as server %d, with this database or a copy of it: this one stops\n"
                    "hint: run one process per server; if the database was copied, keep one copy: each may have rows that "
                    "the other does not have",
                    node.server,
                    extra=event("overtaken"),
                )
                exit_with(2)
            if tick % _SELDOM == 0 and superseded(version, node.log):
                logger.error("error: server %d: the cluster has a newer version than %d", node.server, version.number)
                exit_with(2)
        time.sleep(_TICK)


def exit_with(code: int) -> NoReturn:
    """Exit at once, without waiting for threads."""
    sys.stderr.flush()
    os._exit(code)
