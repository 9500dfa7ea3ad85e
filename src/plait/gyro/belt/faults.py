"""Deaths and delays on request, for tests: what `kill -9` between any two steps of the protocol does.

`PLAIT_GYRO_CRASH=appended:3` kills the server the third time that it has appended to the log and not committed yet;
`appended:3@1` only server 1. `PLAIT_GYRO_DELAY=0.01` makes every step wait for up to so many seconds, at random. The steps,
in their order: received, applied, execute, executed, captured, prepared, appended, committed, replied, pass, passed.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable

CRASH, DELAY = "PLAIT_GYRO_CRASH", "PLAIT_GYRO_DELAY"


def steps(server: int) -> Callable[[str], None]:
    """What a server does at each step: nothing, unless the environment asks for it."""
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
