"""Conformance against a search that tries everything (`tests/oracle/conformance.py`): random models, random logs."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from plait.conform.log import read_lines
from plait.conform.search import conform
from plait.model.process import Process
from plait.model.system import System
from plait.protocols.chang_roberts import chang_roberts
from plait.protocols.ping_pong import ping_pong
from plait.protocols.two_phase_commit import two_phase_commit
from tests.conform.random_logs import Made, random_log
from tests.oracle.conformance import Complete, Outcome, TooLargeError, explained
from tests.oracle.random_systems import Spec, build, specs
from tests.support.further import further

LARGEST = 2_000


def agree(system: System, made: Made) -> Outcome:
    """The search and the oracle explain the same, with the reduction and without it."""
    total = sum(map(len, made.said))
    truth = explained(system, made.said, made.complete, LARGEST, ends=not made.open)
    names = [repr(pid) for pid in system.pids]
    for reduced in (True, False):
        found = conform(system, read_lines("log", made.lines), reduced=reduced, traced=False)
        assert found.explained == truth.explained, made.lines
        assert (found.status in ("conforms", "violated")) == (truth.explained == total), made.lines
        if found.unexplained:
            # The events that come next belong to one of the longest beginnings.
            lines = {one.process: int(one.place.rpartition(":")[2]) for one in found.unexplained}
            assert any(is_next(made, names, lines, end) for end in truth.ends), (lines, truth.ends, made.lines)
    return truth


def is_next(made: Made, names: list[str], lines: dict[str, int], end: tuple[int, ...]) -> bool:
    """Whether these lines have the next events of some processes, if so many of each are explained."""
    return all(
        made.places[names.index(name)][end[names.index(name)]] == line
        for name, line in lines.items()
        if (end[names.index(name)] < len(made.places[names.index(name)]))
    ) and all(end[names.index(name)] < len(made.places[names.index(name)]) for name in lines)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(specs(), st.integers(0, 10**6))
def test_random_models(spec: Spec, seed: int) -> None:
    # Monitors do not restrict the search; the oracle has no run after one that raises.
    system = build(spec._replace(monitors=0))
    made = random_log(system, seed)
    assume(sum(map(len, made.said)) > 0)
    try:
        agree(system, made)
    except TooLargeError:
        assume(False)


SMALL = {
    "ping_pong": lambda: ping_pong(maximum=3, network="duplicating", lossy=True),
    "chang_roberts": lambda: chang_roberts(nodes=3),
    "two_phase_commit": lambda: two_phase_commit(resource_managers=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*list(SMALL)[:2], *further(*list(SMALL)[2:])])
def test_protocols(name: str) -> None:
    system = SMALL[name]()
    compared = deviating = 0
    for seed in range(25):
        made = random_log(system, seed, length=8)
        try:
            truth = agree(system, made)
        except TooLargeError:
            continue
        compared += 1
        deviating += truth.explained < sum(map(len, made.said))
    assert compared > 10
    assert 0 < deviating < compared


def test_the_oracle_knows_what_is_complete() -> None:
    """A log without events conforms, also if it leaves out no step; a log that names an impossible step does not."""
    system = ping_pong(maximum=1)
    nothing: list[list[object]] = [[] for _ in system.classes]
    every = [Complete(frozenset({"hit"}), True, True) for _ in system.classes]
    assert explained(system, nothing, every, LARGEST) == Outcome(0, frozenset({(0,) * len(nothing)}))  # type: ignore[arg-type]
    assert all(issubclass(cls, Process) for cls in system.classes)
