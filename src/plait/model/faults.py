"""Faults of processes: crash-stop and crash-recovery, each with a budget. A Byzantine process is a Process class."""

from __future__ import annotations

import dataclasses
from typing import Any

from plait.kernel.errors import ModelError
from plait.model.process import Process


@dataclasses.dataclass(frozen=True)
class Crash:
    """At most `budget` crashes in a run, of processes of `roles` (no roles: of all processes)."""

    roles: tuple[type[Process], ...]
    budget: int
    recovers: bool

    def __str__(self) -> str:
        who = ", ".join(r.__name__ for r in self.roles) or "any process"
        return f"{'crash-recovery' if self.recovers else 'crash-stop'} of {who}, at most {self.budget}"


def _crash(roles: tuple[Any, ...], budget: int, recovers: bool) -> Crash:
    for role in roles:
        if not (isinstance(role, type) and issubclass(role, Process)):
            raise ModelError(f"crash: {role!r} is not a Process class", hint="give the classes that may crash")
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 0:
        raise ModelError(f"crash: budget={budget!r} is not a number of crashes", hint="give 0, 1, 2, …")
    return Crash(roles, budget, recovers)


def crash_stop(*roles: type[Process], budget: int = 1) -> Crash:
    """Processes of these roles may stop for ever. Their pending messages are dropped; their fields stay visible."""
    return _crash(roles, budget, False)


def crash_recovery(*roles: type[Process], budget: int = 1) -> Crash:
    """Processes of these roles may crash and recover. `durable` fields keep their values; the other fields are reset.

    Messages wait while a process is down. A method with `@recovery` runs when the process recovers.
    """
    return _crash(roles, budget, True)
