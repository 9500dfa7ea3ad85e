"""Shipped updates: nothing that a reply has shown is lost with a disk, and backups are closed under dependencies."""

from __future__ import annotations

from typing import Any

import pytest

from plait import check
from plait.protocols.shipped_updates import shipped_updates


@pytest.mark.parametrize("adds", [1, 2, 3, 4])
def test_the_outbox_is_a_pipeline(adds: int) -> None:
    """A formula: s updates are shipped, a are committed; if a > s, one may be on its way to the log, or its answer."""
    found = check(shipped_updates(adds, looks=0, orders=0, rebuilds=False, backups=0), workers=1)
    assert found.status == "holds"
    assert found.statistics.states == sum((adds - s + 1) + 2 * (adds - s) for s in range(adds + 1))


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{}, {"crashes": 1, "backups": 0}, {"adds": 2, "backups": 0}], ids=str)
def test_nothing_is_lost(parameters: dict[str, Any]) -> None:
    """Whenever the server is rebuilt, whether or not the old one still runs."""
    found = check(shipped_updates(**parameters))
    assert (found.status, found.bound) == ("holds", None), str(found)
