"""Viewstamped Replication's normal case: agreement, durability, order, and what its rules are for."""

from __future__ import annotations

from typing import Any

import pytest

from plait import ModelError, System, check
from plait.protocols.viewstamped import Backup, Client, viewstamped
from tests.oracle.explorer import explore

pytestmark = pytest.mark.slow

QUORUM = pytest.mark.parametrize("quorum", [True, False], ids=["quorum", "one by one"])


@QUORUM
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"replicas": 2},
        {"replicas": 4, "clients": 1},
        {"replicas": 5, "clients": 1},
        {"clients": 1, "requests": 2},
        {"clients": 1, "requests": 3},
    ],
)
def test_it_replicates(parameters: dict[str, int], quorum: bool) -> None:
    verdict = check(viewstamped(**parameters, quorum=quorum))  # type: ignore[arg-type]
    assert verdict.status == "holds"
    assert verdict.bound is None
    assert verdict.warnings == []


@pytest.mark.parametrize(
    ("parameters", "states", "transitions"),
    [
        ({"clients": 1}, 142, 307),
        ({"clients": 1, "quorum": False}, 182, 462),
        ({"clients": 1, "requests": 2}, 2_304, 5_709),
        ({"clients": 1, "repeats": 0, "replicas": 5}, 497, 1_401),
        ({"clients": 1, "repeats": 0, "replicas": 5, "quorum": False}, 771, 2_892),
    ],
)
def test_the_oracle_agrees(parameters: dict[str, Any], states: int, transitions: int) -> None:
    truth = explore(viewstamped(**parameters))
    assert (truth.states, truth.transitions, truth.violated) == (states, transitions, set())
    found = check(viewstamped(**parameters)).statistics
    assert (found.states, found.transitions, found.terminal_states) == (states, transitions, truth.terminal)


def test_size() -> None:
    """Larger ones, which the oracle would take long to count."""
    assert check(viewstamped()).statistics.states == 45_718
    assert check(viewstamped(quorum=False)).statistics.states == 77_782


# -- faulty twins ----------------------------------------------------------------------------------------------------

TWINS = [
    pytest.param("order", {"replicas": 2, "repeats": 0}, {"durability": 4, "agreement": 7}, id="order"),
    pytest.param("hasty", {"clients": 1}, {"durability": 1}, id="hasty"),
]


@QUORUM
@pytest.mark.parametrize(("faulty", "sizes", "lengths"), TWINS)
def test_the_oracle_agrees_on_the_twins(faulty: Any, sizes: Any, lengths: dict[str, int], quorum: bool) -> None:
    system = viewstamped(faulty=faulty, quorum=quorum, **sizes)
    truth = explore(system)
    assert {name: truth.properties[name].length for name in truth.violated} == lengths
    verdict = check(system, keep_going=True)
    assert verdict.statistics.states == truth.states
    assert violated(system) == lengths


@pytest.mark.parametrize(("quorum", "length"), [(True, 12), (False, 15)], ids=["quorum", "one by one"])
def test_the_oracle_agrees_on_the_twin_without_a_table(quorum: bool, length: int) -> None:
    """One by one it takes longer until nothing is left to do: the PrepareOks that nobody needs are taken, too."""
    system = viewstamped(faulty="table", clients=1, quorum=quorum)
    truth = explore(system)
    assert {name: truth.properties[name].length for name in truth.violated} == {
        "at_most_once": 6,
        "convergence": length,
    }
    assert violated(system) == {"at_most_once": 6, "convergence": length}


def violated(system: System, **options: Any) -> dict[str, int]:
    """The violated properties, and the lengths of their counterexamples."""
    properties = check(system, keep_going=True, **options).properties
    return {p.name: len(p.trace) for p in properties if p.status == "violated" and p.trace is not None}


@QUORUM
def test_backups_that_take_prepares_as_they_come_have_other_logs(quorum: bool) -> None:
    """The PrepareOk of the second request stands for the first, too, which the backup does not have."""
    verdict = check(viewstamped(faulty="order", quorum=quorum))
    assert (verdict.property, verdict.trace and len(verdict.trace)) == ("durability", 4)
    assert verdict.trace is not None
    fields: Any = verdict.trace.events[-1].state.fields
    primary, backup, _ = (replica for replica in fields.values() if "log" in replica)
    assert primary["commit"] == 2
    assert backup["log"]["#tup"] == primary["log"]["#tup"][1:]


@QUORUM
def test_a_hasty_primary_executes_what_it_alone_has(quorum: bool) -> None:
    verdict = check(viewstamped(faulty="hasty", quorum=quorum))
    assert (verdict.property, verdict.trace and len(verdict.trace)) == ("durability", 1)


@QUORUM
def test_a_primary_without_a_table_executes_a_request_twice(quorum: bool) -> None:
    verdict = check(viewstamped(faulty="table", quorum=quorum))
    assert verdict.property == "at_most_once"
    assert verdict.trace is not None
    assert "repeat" in [event.label for event in verdict.trace.events]
    fields: Any = verdict.trace.events[-1].state.fields
    primary = next(iter(fields.values()))
    first, second = primary["log"]["#tup"]
    assert first == second
    assert primary["commit"] == 2


def test_without_repeats_nobody_needs_the_table() -> None:
    assert check(viewstamped(faulty="table", repeats=0)).status == "holds"


@QUORUM
@pytest.mark.parametrize(
    ("faulty", "names"),
    [("order", {"durability", "agreement"}), ("hasty", {"durability"}), ("table", {"at_most_once", "convergence"})],
)
def test_random_walks_find_the_faults(faulty: Any, names: set[str], quorum: bool) -> None:
    assert check(viewstamped(faulty=faulty, quorum=quorum), search="random").property in names


# -- reductions ------------------------------------------------------------------------------------------------------


@QUORUM
def test_reductions_agree(quorum: bool) -> None:
    verdict = check(viewstamped(quorum=quorum), reduce="auto")
    assert verdict.status == "holds"
    assert verdict.statistics.states < check(viewstamped(quorum=quorum)).statistics.states / 3
    for faulty in ("order", "hasty", "table"):
        system = viewstamped(clients=2 if faulty == "order" else 1, repeats=1, faulty=faulty, quorum=quorum)  # type: ignore[arg-type]
        assert violated(system, reduce="auto").keys() == violated(system).keys()


def test_symmetric_roles() -> None:
    assert viewstamped().symmetric == [Backup, Client]
    assert viewstamped(replicas=2, clients=1).symmetric == []


@pytest.mark.parametrize("wrong", [{"replicas": 1}, {"clients": 0}, {"repeats": -1}, {"faulty": "view"}])
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(wrong))):
        viewstamped(**wrong)
