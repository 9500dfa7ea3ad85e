"""Conditions of paper 002, section 4.2, that the source of the handlers proves."""

from __future__ import annotations

from plait.model.system import System


def proved(system: System) -> dict[int, str]:
    """The conditions that hold whatever happens, each with the reason."""
    return {}
