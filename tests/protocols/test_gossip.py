"""Anti-entropy: all copies become the same, and the newest; and two ways to spoil it."""

from __future__ import annotations

from typing import Any

import pytest

from plait import ModelError
from plait.protocols.gossip import gossip
from tests.protocols.agreeing import assert_holds, assert_oracle, assert_violated, last


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodes", "writers", "writes", "topology", "states"),
    [
        (2, 2, 1, "complete", 54),
        (2, 2, 2, "complete", 3_280),
        (3, 2, 1, "line", 400),
        (3, 3, 1, "line", 10_085),
        (3, 2, 1, "complete", 24_366),
        (4, 2, 1, "line", 1_010),
        (4, 2, 1, "ring", 80_364),
    ],
)
def test_it_converges(nodes: int, writers: int, writes: int, topology: Any, states: int) -> None:
    assert_holds(gossip(nodes, writers, writes, topology), states)


@pytest.mark.slow
def test_small_topologies_are_the_same() -> None:
    """Two nodes are a line, a ring and all there is; three on a ring are neighbours of each other."""
    for topology in ("ring", "line"):
        assert_oracle(gossip(2, topology=topology), 54)  # type: ignore[arg-type]
    assert_holds(gossip(3, topology="ring"), 24_366)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "shortest"), [((2, 2, 1, "line"), 4), ((3, 2, 1, "line"), 8), ((3, 2, 1, "complete"), 10)]
)
def test_tie(sizes: Any, shortest: int) -> None:
    """All have the same stamp, and not the same value."""
    trace = assert_violated(gossip(*sizes, faulty="tie"), {"agreement": shortest})["agreement"]
    assert {tuple(stamp["#tup"]) for stamp in last(trace, "stamp")} == {(1, 0)}
    assert set(last(trace, "value")) == {"node 0 at 1", "node 1 at 1"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "shortest"),
    [
        ((2, 2, 1, "line"), {"last_writer_wins": 6, "agreement": 10}),
        ((3, 2, 1, "line"), {"last_writer_wins": 10, "agreement": 14}),
        ((3, 2, 1, "complete"), {"last_writer_wins": 12, "agreement": 19}),
    ],
)
def test_overwrite(sizes: Any, shortest: dict[str, int]) -> None:
    """A write is lost that was newer; worse, two nodes may exchange their copies."""
    traces = assert_violated(gossip(*sizes, faulty="overwrite"), shortest)
    trace = traces["last_writer_wins"]
    newest = max(tuple(stamp["#tup"]) for stamp in last(trace, "wrote"))
    assert any(tuple(stamp["#tup"]) < newest for stamp in last(trace, "stamp"))
    assert len(set(last(traces["agreement"], "value"))) == 2


@pytest.mark.slow
def test_the_oracle_agrees() -> None:
    assert_oracle(gossip(3, topology="line"), 400)
    assert_oracle(gossip(4, topology="line"), 1_010)
    assert_oracle(gossip(3, topology="line", faulty="tie"), 340, {"agreement": 8})
    assert_oracle(gossip(3, topology="line", faulty="overwrite"), 581, {"last_writer_wins": 10, "agreement": 14})


@pytest.mark.parametrize(
    "wrong", [{"nodes": 1}, {"writers": 0}, {"writers": 4}, {"writes": 0}, {"topology": "star"}, {"faulty": "x"}]
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(wrong))):
        gossip(**wrong)
