"""What the tests of the zoo's protocols share: a model is searched in several ways, and all of them agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plait import System, check
from plait.kernel.trace import Trace
from plait.kernel.verdict import Verdict
from tests.oracle.explorer import explore


def statuses(verdict: Verdict) -> dict[str, str]:
    return {p.name: p.status for p in verdict.properties}


def assert_holds(system: System, states: int) -> None:
    """All properties hold in so many states, without a warning, and with the reductions as well."""
    verdict = check(system)
    assert verdict.status == "holds", str(verdict)
    assert verdict.bound is None
    assert verdict.warnings == []
    assert verdict.statistics.states == states
    reduced = check(system, reduce="auto")
    assert statuses(reduced) == statuses(verdict)
    assert reduced.statistics.states <= states


def assert_violated(system: System, shortest: Mapping[str, int]) -> dict[str, Trace]:
    """These properties are violated, by shortest runs of these lengths; all searches find it. Returns those runs."""
    verdict = check(system, keep_going=True)
    traces = {p.name: p.trace for p in verdict.properties if p.status == "violated" and p.trace is not None}
    assert {name: len(trace) for name, trace in traces.items()} == shortest
    assert statuses(check(system, reduce="auto", keep_going=True)) == statuses(verdict)
    for search in ("bfs", "dfs", "random"):
        assert check(system, search=search).property in shortest, search
    return traces


def assert_oracle(system: System, states: int, violated: Mapping[str, int] | None = None) -> None:
    """The oracle counts the same, finds the same violations, and its shortest runs to them are as long."""
    truth = explore(system)
    verdict = check(system, keep_going=True)
    found = verdict.statistics
    assert truth.states == states
    assert (found.states, found.transitions, found.terminal_states) == (truth.states, truth.transitions, truth.terminal)
    assert {name: truth.properties[name].length for name in truth.violated} == (violated or {})
    assert {p.name: len(p.trace) for p in verdict.properties if p.status == "violated" and p.trace} == (violated or {})


def last(trace: Trace, field: str) -> list[Any]:
    """A field of all processes that have it, after the last event."""
    return [fields[field] for fields in trace.events[-1].state.fields.values() if field in fields]
