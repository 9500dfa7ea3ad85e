"""Further cases of a test, which `make test` leaves out and `make long` runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def further(*cases: Any, name: Callable[[Any], str] | None = None) -> list[Any]:
    """Parameters of a test that are marked `long`."""
    return [pytest.param(case, marks=pytest.mark.long, id=name(case) if name else None) for case in cases]
