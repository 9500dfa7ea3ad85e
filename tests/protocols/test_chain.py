"""Chain replication: it is linearizable and goes on when a server stops, as long as the tail answers the queries."""

from __future__ import annotations

from typing import Any

import pytest

from plait import ModelError, System, check
from plait.kernel.trace import Trace
from plait.protocols.chain import Reader, chain
from tests.oracle.explorer import explore

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"servers": 4, "writers": 1},
        {"writers": 1, "readers": 2},
        {"writers": 3, "reads": 1},
        {"writers": 1, "reads": 3},
    ],
)
def test_it_is_linearizable(parameters: dict[str, int]) -> None:
    verdict = check(chain(**parameters))  # type: ignore[arg-type]
    assert verdict.status == "holds"
    assert verdict.bound is None
    assert verdict.warnings == []


@pytest.mark.parametrize("parameters", [{"servers": 2}, {"crash": False}, {"crash": False, "servers": 5}])
def test_short_chains_and_lucky_ones(parameters: dict[str, Any]) -> None:
    """If nobody stops, or nobody stands between head and tail, there is less to do."""
    assert check(chain(**parameters)).status == "holds"


@pytest.mark.parametrize(
    ("parameters", "states", "transitions"),
    [
        ({"crash": False}, 481, 856),
        ({"writers": 1}, 1_239, 2_328),
        ({"writers": 1, "reads": 1}, 416, 797),
    ],
)
def test_the_oracle_agrees(parameters: dict[str, Any], states: int, transitions: int) -> None:
    truth = explore(chain(**parameters))
    assert (truth.states, truth.transitions, truth.violated) == (states, transitions, set())
    found = check(chain(**parameters)).statistics
    assert (found.states, found.transitions, found.terminal_states) == (states, transitions, truth.terminal)


def test_size() -> None:
    """A larger one, which the oracle would take long to count."""
    assert check(chain()).statistics.states == 24_735


# -- faulty twins ----------------------------------------------------------------------------------------------------


def reads(trace: Trace | None) -> list[str]:
    """What the reader's reads returned, in order."""
    assert trace is not None
    monitor: Any = trace.events[-1].state.monitors["Linearizability"]
    ((reader, operations),) = monitor["completed"]["#map"]
    assert reader == {"#pid": "Reader0"}
    return [operation["result"] for operation in operations["#tup"]]


def stopped(trace: Trace | None) -> list[int]:
    """The places in the chain of the servers that stopped."""
    assert trace is not None
    fields: Any = trace.events[-1].state.fields
    servers = [server for server in fields.values() if "stopped" in server]
    return [place for place, server in enumerate(servers) if server["stopped"]]


def test_if_any_server_answers_a_read_may_be_undone_by_the_next() -> None:
    verdict = check(chain(faulty="any"))
    assert (verdict.property, verdict.trace and len(verdict.trace)) == ("linearizable", 5)
    assert reads(verdict.trace) == ["A", ""]
    assert stopped(verdict.trace) == []


def test_if_the_head_answers_what_was_read_stops_with_it() -> None:
    verdict = check(chain(faulty="head"))
    assert (verdict.property, verdict.trace and len(verdict.trace)) == ("linearizable", 9)
    assert reads(verdict.trace) == ["A", ""]
    assert stopped(verdict.trace) == [0]


def test_the_head_may_answer_as_long_as_it_does_not_stop() -> None:
    assert check(chain(faulty="head", crash=False)).status == "holds"


def test_without_resending_the_clients_wait_for_ever() -> None:
    verdict = check(chain(faulty="resend"))
    assert (verdict.property, verdict.trace and len(verdict.trace)) == ("answers", 11)
    assert stopped(verdict.trace) == [1], "not the head, and not the tail"
    assert verdict.trace is not None
    fields: Any = verdict.trace.events[-1].state.fields
    assert fields["Writer0"]["awaiting"] is not None
    assert fields["Writer1"]["awaiting"] is not None


TWINS = [
    pytest.param({"faulty": "any", "servers": 2, "writers": 1, "crash": False}, {"linearizable": 5}, id="any"),
    pytest.param({"faulty": "head", "writers": 1}, {"linearizable": 9}, id="head"),
    pytest.param({"faulty": "resend", "writers": 1}, {"answers": 10}, id="resend"),
]


@pytest.mark.parametrize(("parameters", "lengths"), TWINS)
def test_the_oracle_agrees_on_the_twins(parameters: dict[str, Any], lengths: dict[str, int]) -> None:
    system = chain(**parameters)
    truth = explore(system)
    assert {name: truth.properties[name].length for name in truth.violated} == lengths
    assert violated(system) == lengths
    assert check(system, keep_going=True).statistics.states == truth.states


@pytest.mark.parametrize(("parameters", "lengths"), TWINS)
def test_reductions_agree_on_the_twins(parameters: dict[str, Any], lengths: dict[str, int]) -> None:
    for search in ("bfs", "dfs"):
        assert violated(chain(**parameters), search=search, reduce="auto").keys() == lengths.keys()


def violated(system: System, **options: Any) -> dict[str, int]:
    """The violated properties, and the lengths of their counterexamples."""
    properties = check(system, keep_going=True, **options).properties
    return {p.name: len(p.trace) for p in properties if p.status == "violated" and p.trace is not None}


@pytest.mark.parametrize(("faulty", "name"), [("any", "linearizable"), ("head", "linearizable"), ("resend", "answers")])
def test_random_walks_find_the_faults(faulty: Any, name: str) -> None:
    assert check(chain(faulty=faulty), search="random").property == name


def test_reductions_agree() -> None:
    for parameters in ({}, {"readers": 2, "reads": 1, "writers": 1}):
        verdict = check(chain(**parameters), reduce="auto")  # type: ignore[arg-type]
        assert verdict.status == "holds"
        assert verdict.statistics.states < check(chain(**parameters)).statistics.states  # type: ignore[arg-type]


def test_readers_are_symmetric() -> None:
    assert chain(readers=2).symmetric == [Reader]
    assert chain().symmetric == []


@pytest.mark.parametrize("wrong", [{"servers": 1}, {"writers": 0}, {"reads": 0}, {"readers": 0}, {"faulty": "tail"}])
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(wrong))):
        chain(**wrong)
