"""Conditions of paper 002, section 4.2, that the declarations and the source of the handlers prove."""

from __future__ import annotations

from plait.model.system import System
from plait.rounds.offsets import never_late
from plait.rounds.reads import one_phase


def proved(system: System) -> dict[int, str]:
    """The conditions that hold whatever happens, each with the reason; the others are left to the search."""
    found: dict[int, str] = {}
    if all(one_phase(handler) for _, handler in system.handlers() if handler.message is not None):
        found[4] = "by the declarations of the handlers"
    if never_late(system):
        found |= dict.fromkeys((1, 2, 5), "by the source of the handlers")
    return found
