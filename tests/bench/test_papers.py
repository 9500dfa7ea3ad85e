"""The rows of `plait bench` that are violated: shortest counterexamples, their lengths pinned, run by the oracle."""

from __future__ import annotations

import pytest

from plait.bench.papers import dbss, quorum, rounds
from plait.check.api import check
from plait.model.loading.loader import load
from plait.model.system import System
from plait.rounds.check import check_rounds
from tests.oracle.explorer import evaluate
from tests.oracle.replay import replay
from tests.support.further import further

SETTINGS = dbss.SETTINGS | quorum.SETTINGS

SHORTEST = {
    "Faulty-Paxos (2, 3, 1)": ("agreement", 14, 18),
    "Faulty-Paxos2 (3, 3, 1)": ("agreement", 19, 24),
    "Register, 3, wrong regularity": ("regularity", 8, 10),
    "Register, 4, wrong regularity": ("regularity", 10, 14),
    "Zab (3, 3), liveness": ("establishment", 3, 6),
    "Zab (4, 3), liveness": ("establishment", 3, 6),
    "Faulty Paxos (2, 3, 1)": ("agreement", 14, 18),
    "Echo multicast (2, 1, 2, 1)": ("agreement", 11, 15),
}
"""The property, and how many steps it takes to break it: with quorum transitions, and message by message."""


def system(name: str, by_quorum: bool) -> System:
    setting = SETTINGS[name]
    return load(setting.target, {**setting.parameters, "quorum": str(by_quorum).lower()})


def test_every_row_that_is_violated_is_here() -> None:
    assert {name for name, setting in SETTINGS.items() if setting.verdict == "violated"} == SHORTEST.keys()


@pytest.mark.slow
@pytest.mark.parametrize("by_quorum", [True, False], ids=["quorum", "single"])
@pytest.mark.parametrize("name", SHORTEST)
def test_shortest_counterexamples(name: str, by_quorum: bool) -> None:
    """Every step is one of the oracle's, and in the state where the run ends the oracle finds the property broken."""
    model = system(name, by_quorum)
    broken, *lengths = SHORTEST[name]
    verdict = check(model)
    assert verdict.trace is not None
    assert (verdict.property, len(verdict.trace)) == (broken, lengths[not by_quorum])
    end = replay(model, verdict.trace)
    assert end is not None
    assert not evaluate(model, end, next(prop for prop in model.properties if prop.name == broken))


@pytest.mark.slow
@pytest.mark.parametrize("by_quorum", [True, False], ids=["quorum", "single"])
@pytest.mark.parametrize("name", SHORTEST)
def test_random_walks_find_them(name: str, by_quorum: bool) -> None:
    broken, *lengths = SHORTEST[name]
    verdict = check(system(name, by_quorum), search="random", walks=100_000, workers=1)
    assert verdict.property == broken
    assert verdict.trace is not None
    assert len(verdict.trace) >= lengths[not by_quorum]


@pytest.mark.slow
@pytest.mark.parametrize("name", quorum.SETTINGS)
def test_splits_never_enlarge(name: str) -> None:
    """Of all states, not up to a violation; with the history that the table has, and without."""
    model = system(name, by_quorum=True)
    for history in ("none", "last"):
        found = {
            split: check(
                model, reduce="por", split=split, history=history, keep_going=True, workers=1
            ).statistics.states
            for split in ("none", "reply", "quorum", "combined")
        }
        assert max(found.values()) == found["none"], found
        assert found["combined"] <= min(found.values()), found


# -- Table 1 of Sequentialization ----------------------------------------------------------------------------------------

TABLE_1 = {
    "Paxos": [("R,D,T", "0.53 s"), ("R,D,T,MD", "0.53 s")],
    "Ben-Or": [("R,D", "30.97 s"), ("R,D,T", "0.19 s")],
    "Raft": [("R,D,T,MD", "158.44 s")],
    "ViewChange": [("R,D,T,MD", "0.21 s")],
    "UniformVoting": [("R,D,T,MD", "33.74 s")],
}
"""The rows of the table: the network, and the time of the sequential program."""


def test_the_seven_rows_of_table_1() -> None:
    found: dict[str, list[tuple[str, str]]] = {}
    for name, setting in rounds.SETTINGS.items():
        network = name.rpartition("(")[2].rstrip(")").replace(" ", "")
        assert setting.drops == ("MD" in network)
        found.setdefault(name.replace(",", " ").split()[0], []).append((network, setting.sequential))
    assert found == TABLE_1
    assert rounds.SETTINGS["Ben-Or (R, D)"].quorums == "9.12 s"
    assert rounds.SETTINGS["ViewChange (R, D, T, MD)"].faulty == {"faulty": "quorum", "leaders": "any"}


@pytest.mark.slow
@pytest.mark.parametrize("way", [rounds.FIXED, *further(rounds.SEQUENTIAL)])
def test_ben_or_hears_a_quorum(way: str) -> None:
    """Each process hears n - f = 2 processes in each round, and of the three sets of two only two if they are fixed."""
    setting = rounds.SETTINGS["Ben-Or (R, D)"]
    faulty = load("ben_or", {"phases": "3", **setting.fixed, **setting.faulty})
    assume = "plait.bench.papers.rounds:two_quorums" if way == rounds.FIXED else setting.assume
    verdict = check_rounds(faulty, phases=3, assume=assume, properties=["agreement"])
    assert verdict.property == "agreement"
    assert verdict.trace is not None
    assert replay(faulty, verdict.trace) is not None
    corrected = load("ben_or", {"phases": "1", **setting.fixed})
    assert check_rounds(corrected, phases=1, assume=assume, properties=["agreement"]).status == "holds"
