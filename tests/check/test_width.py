"""Fingerprints of 64, 96 and 128 bits, and those that become wider in a search."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait import Process, UsageError, action, check, eventually
from plait._native import _test_hooks
from plait.check.options import Fingerprint, Options
from plait.check.runner import Runner
from plait.cli.main import main
from plait.kernel.verdict import Verdict
from plait.model.system import System
from plait.protocols.paxos import paxos
from plait.protocols.ping_pong import ping_pong
from tests.oracle.explorer import Exploration
from tests.oracle.random_systems import explored_systems

PAXOS = 8_649
"""The states of the default Paxos, which two other checkers count as well (tests/protocols/test_ground_truth.py)."""


@contextlib.contextmanager
def hashes(bits: int | None = None, narrow: int | None = None) -> Iterator[None]:
    """Narrow hashes of few bits, and another number of states up to which fingerprints stay narrow."""
    _test_hooks(hash_bits=bits, narrow=narrow)
    try:
        yield
    finally:
        _test_hooks()


def searched(system: System, bits: int, narrow: int | None = None, **options: Any) -> tuple[int, int, int]:
    """States, transitions and terminal states that are met if hashes have so few bits. (Runs to them are not looked for.)"""
    with hashes(bits, narrow):
        found = Runner(system).engine.search(Options(keep_going=True, **options)).counters
    return found.states, found.transitions, found.terminal_states


def counts(verdict: Verdict) -> tuple[str, int, int, int, int]:
    s = verdict.statistics
    return verdict.status, s.states, s.transitions, s.terminal_states, s.depth


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    explored_systems(limit=400),
    st.sampled_from([64, 96, 128, "auto"]),
    st.sampled_from([1, 2]),
    st.integers(0, 300),
)
def test_random_systems(pair: tuple[System, Exploration], fingerprint: Fingerprint, workers: int, narrow: int) -> None:
    system, truth = pair
    with hashes(narrow=narrow):
        verdict = check(system, keep_going=True, explore=True, fingerprint=fingerprint, workers=workers)
    s = verdict.statistics
    assert (s.states, s.transitions, s.terminal_states) == (truth.states, truth.transitions, truth.terminal)
    assert {p.name for p in verdict.properties if p.status == "violated"} == truth.violated


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=400), st.sampled_from([96, 128]), st.sampled_from([1, 2]))
def test_the_rest_of_a_fingerprint_tells_states_apart(
    pair: tuple[System, Exploration], fingerprint: Fingerprint, workers: int
) -> None:
    """With hashes of 8 bits, most states share their narrow fingerprint with others."""
    system, truth = pair
    assert searched(system, 8, fingerprint=fingerprint, workers=workers) == (
        (truth.states, truth.transitions, truth.terminal)
    )


def test_narrow_fingerprints_lose_states_where_hashes_have_few_bits() -> None:
    """So the tests with few bits show something."""
    assert searched(paxos(), 10, fingerprint=64)[0] < PAXOS


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("narrow", [0, 1, 300, 8_000, PAXOS - 1])
def test_wider_between_two_layers(narrow: int, workers: int) -> None:
    expected = counts(check(paxos(), fingerprint=128))
    assert expected[1] == PAXOS
    with hashes(narrow=narrow):
        verdict = check(paxos(), workers=workers)
    assert counts(verdict) == expected
    assert verdict.statistics.collision_probability == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("narrow", [0, 500, 3_000])
def test_states_that_narrow_fingerprints_lost_come_back(narrow: int, workers: int) -> None:
    expected = counts(check(paxos(), fingerprint=96))[1:4]
    assert searched(paxos(), 13, narrow, workers=workers) == expected


@pytest.mark.parametrize("narrow", [0, 100, 700])
def test_the_counterexample_is_the_shortest_one(narrow: int) -> None:
    system = paxos(faulty="acceptor")
    expected = check(system, fingerprint=64, keep_going=True)
    with hashes(narrow=narrow):
        found = check(system, keep_going=True)
    assert expected.trace is not None
    assert found.trace is not None
    assert len(found.trace) == len(expected.trace)
    assert counts(found) == counts(expected)
    assert [(p.name, p.status) for p in found.properties] == [(p.name, p.status) for p in expected.properties]


@pytest.mark.parametrize("depth", [0, 3, 9])
def test_a_limit_of_the_depth(depth: int) -> None:
    expected = check(paxos(), fingerprint=64, max_depth=depth)
    with hashes(narrow=20):
        found = check(paxos(), max_depth=depth)
    assert (counts(found), found.bound) == (counts(expected), expected.bound)


@pytest.mark.parametrize("limit", [1, 20, 777])
def test_a_limit_of_the_states_is_exact(limit: int) -> None:
    with hashes(narrow=20):
        assert check(paxos(), max_states=limit).statistics.states == limit


def test_the_probability_follows_from_the_width() -> None:
    pairs = PAXOS * (PAXOS - 1) / 2
    found = [check(paxos(), fingerprint=bits).statistics for bits in (64, 96, 128)]
    more = [0, *(one.transitions / 2**64 for one in found[1:])]
    assert [one.collision_probability for one in found] == pytest.approx(
        [pairs / 2**bits + more for bits, more in zip((64, 96, 128), more, strict=True)]
    )
    assert found[1].table_bytes > 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"search": "dfs"}, "the dfs search has fingerprints of 64 bits"),
        ({"search": "random"}, "the random search has fingerprints of 64 bits"),
        ({"reduce": "symmetry"}, "the fingerprint is the least one of the images"),
    ],
)
def test_what_has_no_wide_fingerprints_is_refused(options: dict[str, str], reason: str) -> None:
    system = paxos()
    with pytest.raises(UsageError, match=reason):
        check(system, fingerprint=96, **options)  # type: ignore[arg-type]
    assert check(system, fingerprint=64, **options).status != "violated"  # type: ignore[arg-type]


def test_a_property_of_runs_is_refused() -> None:
    class Counter(Process):
        n: int = 0

        @action(when=lambda self: self.n < 1)
        def up(self) -> None:
            self.n += 1

    system = System([Counter()], properties=[eventually(lambda s: s[Counter][0].n == 1, name="rises")])
    with pytest.raises(UsageError, match="needs the graph of all states"):
        check(system, fingerprint=96)


def test_an_odd_width_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="choose one of: auto, 64, 96, 128"):
        check(ping_pong(), fingerprint=80)  # type: ignore[arg-type]
    assert main(["check", "ping_pong", "--fingerprint", "80"]) == 2
    assert main(["check", "ping_pong", "--fingerprint", "96", "--quiet"]) == 0


def test_partial_order_reduction_has_wide_fingerprints() -> None:
    narrow = check(paxos(), reduce="por", fingerprint=64)
    wide = check(paxos(), reduce="por")
    assert counts(narrow) == counts(wide)
    assert wide.statistics.collision_probability < narrow.statistics.collision_probability
