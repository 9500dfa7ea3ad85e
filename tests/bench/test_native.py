"""`plait bench native`: the one-process model, the processes that search, and the table with native execution."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plait import check
from plait.bench.engine import native, native_search
from plait.bench.engine.native_search import Model
from plait.bench.engine.termination import expected_states, plain_search, termination
from plait.bench.errors import FailedError
from plait.bench.options import Options
from plait.cli.main import main
from tests.oracle.explorer import explore

# -- the one-process model -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "capacity"), [(1, 2), (2, 1), pytest.param(3, 2, marks=pytest.mark.slow)])
def test_the_plain_search_and_the_oracle_find_the_same(nodes: int, capacity: int) -> None:
    system = termination(nodes, capacity)
    verdict, plain, truth = check(system), plain_search(nodes, capacity), explore(system)
    found = verdict.statistics
    assert (verdict.status, plain.holds, truth.violated) == ("holds", True, set())
    assert found.states == plain.states == truth.states == expected_states(nodes, capacity)
    assert found.transitions == plain.transitions == truth.transitions


# -- the processes ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_process_searches_cold_and_warm() -> None:
    found = native_search.measured("quick", "Two-phase commit, 5 resource managers", "off")
    cold, warm = found["cold"], found["warm"]
    assert (cold["states"], cold["bound"]) == (warm["states"], warm["bound"]) == (8_832, None)
    assert cold["transitions"] == warm["transitions"]
    assert cold["python_calls"] > 100 * warm["python_calls"]
    assert found["peak_rss_bytes"] > 10 * 2**20


@pytest.mark.slow
def test_a_limit_ends_the_search() -> None:
    found = native_search.measured("quick", "Raft, 5 servers", "off")
    assert (found["cold"]["states"], found["cold"]["bound"]) == (20_000, "max-states")


@pytest.mark.slow
def test_a_process_that_fails_is_told() -> None:
    with pytest.raises(FailedError, match=r"no such model: the search failed \(exit code 1\)"):
        native_search.measured("quick", "no such model", "off")


# -- the table -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("Lamport mutex, 2 processes", "One process, 4 nodes")
    few = {name: native_search.QUICK[name] for name in names}
    monkeypatch.setattr(native, "SIZES", {"quick": few})
    assert main(["bench", "native", "--quick", "--json", "-q"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    assert [row["variant"] for row in table["rows"]] == list(names)
    values = [{name: cell["value"] for name, cell in row["cells"].items()} for row in table["rows"]]
    assert [row["states"] for row in values] == [401, expected_states(4, 2)]
    for row in values:
        assert row["tables"] > 1
    assert "plain" not in values[0]
    assert values[1]["local"] > 0
    assert "a plain search in Python takes" in table["summary"][0]


def _fake(seconds: float, calls: int, states: int) -> dict[str, Any]:
    search = {"states": states, "transitions": 20, "local_bytes": 640, "local_states": 8, "bound": None}
    return {
        "cold": {"seconds": seconds, "python_calls": calls, **search},
        "warm": {"seconds": 1.0, "python_calls": 0, **search},
        "peak_rss_bytes": 2**20,
    }


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Figures that are not measured, of a version with native execution; how many states each search counts."""
    states = {"auto": 10, "off": 10}
    seconds = {("off", 1): 40.0, ("auto", 1): 4.0, ("auto", 2): 2.0}

    def measured(size: str, name: str, how: str, workers: int = 1) -> dict[str, Any]:
        return _fake(seconds[how, workers], 50 if how == "auto" else 1_000, states[how])

    monkeypatch.setattr(native, "switches", lambda: True)
    monkeypatch.setattr(native, "measured", measured)
    monkeypatch.setattr(native, "SIZES", {"full": {"model": Model(termination, 10)}})
    return states


@pytest.mark.usefixtures("counted")
def test_native_execution_is_compared_with_cpython() -> None:
    (row,) = native.measure(Options()).rows
    assert (row.value("cold"), row.value("cold_off"), row.value("faster")) == (4.0, 40.0, 10.0)
    assert (row.value("warm"), row.value("tables")) == (1.0, 4.0)
    assert (row.value("two_cold"), row.value("two_warm"), row.value("two_searches")) == (2.0, 1.0, 2.0)
    assert (row.value("share"), row.value("local")) == (0.05, 80)


def test_other_counts_are_told(counted: dict[str, int]) -> None:
    counted["auto"] = 11
    table = native.measure(Options())
    assert table.differs
    assert table.errors == ["model, auto: states: 11 instead of 10"]
