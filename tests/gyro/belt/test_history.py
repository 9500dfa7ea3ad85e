"""The judges themselves: cycles that are known anomalies are found, and serial histories have none."""

from __future__ import annotations

import random

import pytest

from plait.bench.gyro.faults.history import Observation, find_cycle

ANOMALIES = {
    "lost update": [
        Observation([("x", "1")], [("x", [])]),
        Observation([("x", "2")], [("x", [])]),
        Observation([], [("x", ["1", "2"])]),
    ],
    "write skew": [
        Observation([("x", "1")], [("y", [])]),
        Observation([("y", "2")], [("x", [])]),
        Observation([], [("x", ["1"]), ("y", ["2"])]),
    ],
    "dirty write (G0)": [
        Observation([("x", "1"), ("y", "1")], []),
        Observation([("x", "2"), ("y", "2")], []),
        Observation([], [("x", ["1", "2"]), ("y", ["2", "1"])]),
    ],
    "circular flow (G1c)": [Observation([("x", "1")], [("y", ["2"])]), Observation([("y", "2")], [("x", ["1"])])],
    "fork": [
        Observation([("x", "1")], []),
        Observation([("x", "2")], []),
        Observation([], [("x", ["1"])]),
        Observation([], [("x", ["2"])]),
    ],
    "long fork": [
        Observation([("x", "1")], []),
        Observation([("y", "2")], []),
        Observation([], [("x", ["1"]), ("y", [])]),
        Observation([], [("x", []), ("y", ["2"])]),
    ],
    "twice": [Observation([("x", "1")], []), Observation([], [("x", ["1", "1"])])],
}


@pytest.mark.parametrize("name", ANOMALIES)
def test_anomalies_are_found(name: str) -> None:
    assert find_cycle(ANOMALIES[name]) is not None


def test_serial_histories_have_no_cycle() -> None:
    generator = random.Random(1)
    for _ in range(50):
        lists: dict[str, list[str]] = {"x": [], "y": [], "z": []}
        history = []
        for number in range(40):
            keys = generator.sample("xyz", 2)
            reads = [(k, list(lists[k])) for k in keys]
            written = generator.sample(keys, generator.randrange(3))
            for key in written:
                lists[key].append(str(number))
            history.append(Observation([(k, str(number)) for k in written], reads))
        generator.shuffle(history)
        assert find_cycle(history) is None
