"""The log in two engines: serializable with crashes, two tokens and lost answers; each rule is needed (`twins.py`)."""

from __future__ import annotations

from typing import Any

import pytest

from plait import ModelError, check
from plait.protocols.split_log import split_log


@pytest.mark.parametrize(("servers", "carts"), [(2, 1), (3, 1), (3, 2), (4, 1)])
def test_without_orders_servers_have_nothing_to_do_with_each_other(servers: int, carts: int) -> None:
    """A formula: each server holds the token or will get it, and has put 0 to all of its things into its cart."""
    system = split_log(servers, carts, orders=0, timeouts=0, crashes=0)
    found = check(system, properties=["serializable", "prefixes", "ordered"], workers=1)
    assert found.status == "holds"
    assert found.statistics.states == 2 * servers * (carts + 1) ** servers


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [{"timeouts": 0}, {"timeouts": 2, "crashes": 0}, {"carts": 0, "timeouts": 0, "crashes": 2}, {"carts": 0}],
    ids=str,
)
def test_it_is_serializable(parameters: dict[str, Any]) -> None:
    found = check(split_log(**parameters))
    assert (found.status, found.bound) == ("holds", None), str(found)
    assert {p.kind for p in found.properties} == {"always", "reachable"}


@pytest.mark.slow
def test_the_loser_of_an_epoch_is_harmless_without_crashes() -> None:
    """The rule is about appends from before a crash: without crashes, its twin holds."""
    assert check(split_log(faulty="loser", timeouts=2, crashes=0)).status == "holds"
    assert check(split_log(faulty="loser", carts=0)).status == "violated"


@pytest.mark.parametrize(
    "wrong", [{"servers": 1}, {"carts": -1}, {"timeouts": -1}, {"faulty": "fencing"}], ids=str
)  # fmt: skip
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(wrong))):
        split_log(**wrong)
