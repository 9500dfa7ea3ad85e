"""The native engine against the oracle: the same states, transitions, terminal states, verdicts and shortest lengths."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from plait.check.api import check
from plait.model.system import System
from plait.protocols.two_phase_commit import two_phase_commit
from tests.oracle.explorer import Exploration, explore
from tests.oracle.random_systems import explored_systems
from tests.oracle.relation import initial
from tests.support.agreement import ZOO, check_traces, compare


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_the_zoo(name: str) -> None:
    system = ZOO[name]()
    compare(system, explore(system))


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=600))
def test_random_systems(pair: tuple[System, Exploration]) -> None:
    compare(*pair)


@pytest.mark.slow
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=60))
def test_random_walks_find_only_real_violations(pair: tuple[System, Exploration]) -> None:
    system, truth = pair
    verdict = check(system, search="random", walks=200, max_depth=30, keep_going=True)
    found = {p.name for p in verdict.properties if p.status == "violated"}
    assert found <= truth.violated
    assert verdict.statistics.states <= truth.states
    assert verdict.status != "holds"
    check_traces(system, verdict, truth, shortest=False)


@pytest.mark.slow
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=60))
def test_stateless_search_agrees_where_it_ends(pair: tuple[System, Exploration]) -> None:
    system, truth = pair
    verdict = check(system, search="stateless", max_states=20_000, max_depth=40, keep_going=True)
    found = {p.name for p in verdict.properties if p.status == "violated"}
    if verdict.bound is None:
        assert found == truth.violated
        assert verdict.statistics.states >= truth.states
    else:
        assert found <= truth.violated
    check_traces(system, verdict, truth, shortest=False)


def test_the_oracle_is_not_the_engine() -> None:
    """The comparison would mean nothing if the oracle shared code with what it judges."""
    import tests.oracle.relation as relation

    assert not any("plait.check" in str(getattr(v, "__module__", "")) for v in vars(relation).values())
    assert initial(two_phase_commit()) is not None
