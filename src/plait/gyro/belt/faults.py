"""Crashes and delays for tests: kill a server (as `kill -9` does) between any two steps of the protocol.

`PLAIT_GYRO_CRASH=appended:3` kills a server when it reaches the step `appended` for the third time: it has appended to
the log, and has not committed yet. `appended:3@1` kills only server 1. `PLAIT_GYRO_DELAY=0.01` delays every step by a
random time of up to 0.01 seconds. The steps, in order: received, applied, execute, executed, captured, prepared,
appended, committed, replied, pass, passed. For local updates: ship, shipped.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable

CRASH, DELAY = "PLAIT_GYRO_CRASH", "PLAIT_GYRO_DELAY"


def steps(server: int) -> Callable[[str], None]:
    """A function that a server calls at each step. It does nothing unless an environment variable is set."""
    crash, delay = os.environ.get(CRASH, ""), float(os.environ.get(DELAY, "0") or 0)
    where, _, who = crash.partition("@")
    name, _, count = where.partition(":")
    if who and int(who) != server:
        name = ""
    if not name and not delay:
        return lambda _: None
    left = {name: int(count or 1)}

    def step(at: str) -> None:
        if delay:
            time.sleep(random.random() * delay)
        if at == name:
            left[at] -= 1
            if left[at] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return step
