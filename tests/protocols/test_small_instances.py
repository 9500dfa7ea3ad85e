"""Small instances of the zoo against the oracle: the same states, transitions, verdicts and shortest lengths."""

from __future__ import annotations

import pytest

from plait.check.api import check
from tests.oracle.explorer import explore
from tests.support.agreement import compare
from tests.support.further import further
from tests.support.instances import INSTANCES

LONG = ["online_change", "online_change, hasty", "online_change, crashes"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(name for name in INSTANCES if name not in LONG), *further(*LONG)])
def test_as_the_oracle(name: str) -> None:
    system = INSTANCES[name]()
    truth = explore(system)
    compare(system, truth)
    reduced = check(INSTANCES[name](), reduce="auto", keep_going=True)
    assert {p.name for p in reduced.properties if p.status == "violated"} == truth.violated
