"""Conveyor Belt: serializable with its token, with new tokens and with crashes; and what takes that away."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from plait import ModelError, check
from plait.protocols.conveyor_belt import Reply, conveyor_belt, explained


@pytest.mark.parametrize(("servers", "carts"), [(2, 1), (3, 1), (3, 2), (4, 1)])
def test_without_orders_servers_have_nothing_to_do_with_each_other(servers: int, carts: int) -> None:
    """A formula: the token is at one of the servers, and each server has put 0 to all of its things into its cart."""
    found = check(conveyor_belt(servers, carts, orders=0), properties=["serializable", "prefixes"], workers=1)
    assert found.status == "holds"
    assert found.statistics.states == servers * (carts + 1) ** servers


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"servers": 2, "orders": 2},
        {"carts": 0, "reissues": 1},
        {"carts": 0, "crashes": 1},
        {"servers": 2, "reissues": 1, "crashes": 1},
    ],
    ids=str,
)
def test_it_is_serializable(parameters: dict[str, Any]) -> None:
    """With two tokens as well: one is issued while the old one is there; and with a crash between any two steps."""
    found = check(conveyor_belt(**parameters))
    assert (found.status, found.bound) == ("holds", None), str(found)
    assert {p.kind for p in found.properties} == {"always", "reachable"}


def sequential(order: tuple[Reply, ...]) -> bool:
    """Whether one server that executes the operations in this order gives these replies: by definition."""
    stock: tuple[str, ...] = ()
    carts: dict[str, tuple[str, ...]] = {}
    for name, seen, read in order:
        home = name.split()[1].split(".")[0]
        if (seen, read) != (stock, carts.get(home, ())):
            return False
        if name.startswith("order"):
            stock += (name,)
        else:
            carts[home] = (*carts.get(home, ()), name)
    return True


def test_explained_is_the_definition() -> None:
    """All sets of three replies over what could have been read: some permutation is sequential, or none is."""
    names = ("add 0.1", "order 0.1", "order 1.1")
    stocks = [(), ("order 0.1",), ("order 1.1",), ("order 0.1", "order 1.1"), ("order 1.1", "order 0.1")]
    reads: dict[str, list[Any]] = {n: list(itertools.product(stocks, [(), ("add 0.1",)])) for n in names}
    agreed = 0
    for first, second, third in itertools.product(*(reads[n] for n in names)):
        replies = {(n, *r) for n, r in zip(names, (first, second, third), strict=True)}
        truth = any(sequential(order) for order in itertools.permutations(replies))
        assert explained(frozenset(replies), (), {}) == truth
        agreed += truth
    assert 0 < agreed < len(reads[names[0]]) ** 3


def test_an_order_without_a_reply_may_have_been_seen() -> None:
    assert explained(frozenset({("add 0.1", ("order 1.1",), ())}), (), {})
    assert not explained(frozenset({("add 0.1", ("order 1.1",), ()), ("order 1.1", ("order 0.1",), ())}), (), {})


@pytest.mark.parametrize(
    "wrong",
    [
        {"servers": 1},
        {"carts": -1},
        {"crashes": -1},
        {"faulty": "x"},
        {"faulty": "fencing"},
        {"faulty": "skip", "reissues": 1},
    ],
    ids=str,
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(wrong))):
        conveyor_belt(**wrong)
