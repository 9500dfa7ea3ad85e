"""Ways to run a reduced check, drawn by Hypothesis, and the comparison of its verdict with what the oracle found."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import strategies as st

from plait._native import _test_hooks
from plait.check.api import check
from plait.check.options import Options, Search, Seeds, Split
from plait.check.reduce.plan import plan
from plait.kernel.verdict import Verdict
from plait.model.system import System
from tests.oracle.explorer import Exploration
from tests.support.agreement import check_traces, expected


class Way(NamedTuple):
    search: Search = "bfs"
    workers: int = 1
    split: Split = "combined"
    seeds: Seeds = "fewest"
    learns: bool = True
    """Whether random walks learn facts before the first pass; without them, repeated passes must find everything."""


def ways() -> st.SearchStrategy[Way]:
    return st.builds(
        Way,
        search=st.sampled_from(("bfs", "bfs", "dfs")),
        workers=st.sampled_from((1, 2)),
        split=st.sampled_from(("combined", "none", "reply", "quorum")),
        seeds=st.sampled_from(("fewest", "instance")),
        learns=st.booleans(),
    )


WAYS = (
    Way(),
    Way(workers=2, split="none", seeds="instance"),
    Way(split="reply", learns=False),
    Way(workers=2, split="quorum", seeds="instance", learns=False),
    Way(search="dfs"),
    Way(search="dfs", workers=2, split="none", seeds="instance", learns=False),
)
"""What hand-written systems are tried with: every value of every option, twice at least."""


@contextlib.contextmanager
def leaving_out(*rules: str) -> Iterator[None]:
    """Leave out rules of the reductions by name."""
    _test_hooks(leave_out=rules)
    try:
        yield
    finally:
        _test_hooks()


def run(system: System, way: Way, reduce: str = "por", *, without: str | None = None, **more: Any) -> Verdict:
    """A whole search, beyond the first violation; perhaps without one of the rules."""
    left_out = [*([] if way.learns else ["learning"]), *([without] if without else [])]
    with leaving_out(*left_out):
        return check(
            system,
            reduce=reduce,
            search=way.search,
            workers=way.workers,
            split=way.split,
            seeds=way.seeds,
            keep_going=True,
            explore=True,
            **more,
        )


def fingerprints(system: System, reduce: str, *, without: str | None = None) -> set[int]:
    """The fingerprints that a reduction gives to all reachable states: to all of each orbit, not only to one."""
    with leaving_out(*([without] if without else [])):
        engine = plan(system, Options(reduce=reduce)).runner(system).engine
        waiting = [state for state, _ in engine.initial()]
        met = {tuple(state) for state in waiting}
        for state in waiting:  # the list grows
            after = [t.state for t in engine.successors(state) if t.failure is None]
            waiting += [s for s in after if tuple(s) not in met and not met.add(tuple(s))]  # type: ignore[func-returns-value]
        return {engine.fingerprint(state) for state in waiting}


def violated(verdict: Verdict) -> set[str]:
    return {p.name for p in verdict.properties if p.status == "violated"}


def agrees(verdict: Verdict, truth: Exploration) -> bool:
    """Whether a reduced search found what there is.

    The terminal states of a reduced search are terminal states of the system, so that as many are the same ones.
    """
    stats = verdict.statistics
    return (
        violated(verdict) == truth.violated
        and stats.terminal_states == truth.terminal
        and stats.states <= truth.states
        and verdict.limit is None
    )


def compare(system: System, truth: Exploration, way: Way) -> Verdict:
    """Check with partial-order reduction, and make sure that nothing was missed or invented."""
    verdict = run(system, way)
    assert violated(verdict) == truth.violated
    assert verdict.statistics.terminal_states == truth.terminal
    assert verdict.statistics.states <= truth.states
    assert verdict.status == expected(truth)
    check_traces(system, verdict, truth, shortest=False)
    return verdict
