"""The comparison of a verdict with what the oracle found, and small instances of the zoo to compare on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait.check.api import check
from plait.check.reduce.decomposition import Decomposition
from plait.kernel.verdict import Verdict
from plait.model.system import System
from plait.protocols.abd import abd
from plait.protocols.chang_roberts import chang_roberts
from plait.protocols.mcpaxos import mcpaxos
from plait.protocols.paxos import paxos
from plait.protocols.ping_pong import ping_pong
from plait.protocols.register_paxos import register_paxos
from plait.protocols.regular_register import regular_register
from plait.protocols.single_copy import single_copy
from plait.protocols.two_phase_commit import two_phase_commit
from tests.oracle.explorer import Exploration, evaluate
from tests.oracle.relation import State, moves, successors
from tests.oracle.replay import replay

ZOO: dict[str, Callable[[], System]] = {
    "abd": lambda: abd(clients=2, servers=2),
    "chang_roberts": chang_roberts,
    "mcpaxos": lambda: mcpaxos(acceptors=2),
    "paxos": lambda: paxos(proposers=2, acceptors=2),
    "paxos, one by one": lambda: paxos(proposers=2, acceptors=2, quorum=False),
    "paxos, faulty": lambda: paxos(proposers=2, acceptors=2, faulty="acceptor"),
    "ping_pong": lambda: ping_pong(maximum=3, network="duplicating", lossy=True),
    "register_paxos": lambda: register_paxos(clients=1, servers=3),
    "regular_register": regular_register,
    "regular_register, wrong": lambda: regular_register(quorum=False, specification="wrong"),
    "single_copy": single_copy,
    "single_copy, two": lambda: single_copy(clients=2, servers=2),
    "two_phase_commit": two_phase_commit,
}


def compare(system: System, truth: Exploration) -> None:
    """Both searches, with one worker and with two, count and find what the oracle does."""
    for search in ("bfs", "dfs"):
        for workers in (1, 2):
            verdict = check(system, search=search, workers=workers, keep_going=True)
            where = f"{search}, {workers} workers"
            stats = verdict.statistics
            assert (stats.states, stats.transitions, stats.terminal_states, stats.cut_states) == (
                truth.states,
                truth.transitions,
                truth.terminal,
                truth.outside,
            ), where
            found = {p.name for p in verdict.properties if p.status == "violated"}
            assert found == truth.violated, where
            assert (verdict.status == "violated") == bool(found), where
            if search == "bfs":
                assert stats.depth == truth.depth, where
            check_traces(system, verdict, truth, shortest=search == "bfs")
    # Stopping at the first violation gives a shortest counterexample of the property that is reported.
    first = check(system, workers=2, explore=True)
    assert first.status == expected(truth)
    check_traces(system, first, truth, shortest=True)


def expected(truth: Exploration) -> str:
    """The status of a verdict. An example that was not found may be outside of the bound."""
    unknown = truth.outside and any(r.kind == "reachable" and r.length is None for r in truth.properties.values())
    return "violated" if truth.violated else "inconclusive" if unknown else "holds"


def check_traces(system: System, verdict: Verdict, truth: Exploration, *, shortest: bool) -> None:
    """Every reported run is a run of the oracle, and ends where the property is decided."""
    for result in verdict.properties:
        if result.trace is None:
            continue
        length = truth.properties[result.name].length
        assert length is not None
        assert len(result.trace) == length if shortest else len(result.trace) >= length
        end = replay(system, result.trace)
        if result.name in ("assertions", "no_exceptions"):
            assert end is None
            continue
        assert end is not None
        prop = next(p for p in system.properties if p.name == result.name)
        assert evaluate(system, end, prop) == (prop.kind == "reachable")
        if prop.kind == "final":
            assert not moves(system, end, successors(system, end))


def projected(system: System, decomposition: Decomposition, state: State) -> State:
    """The relevant part of a state of the oracle's."""
    slots = []
    for cls, slot in zip(system.classes, state.slots, strict=True):
        hidden = decomposition.auxiliary.get(cls, frozenset())
        kept = [None if n in hidden else v for n, v in zip(cls.__plait_fields__, slot.fields, strict=False)]
        slots.append(slot._replace(fields=tuple(kept)))  # type: ignore[arg-type]
    shared = []
    for owner, fields in zip(system.shared, state.shared, strict=True):
        hidden = decomposition.auxiliary.get(type(owner), frozenset())
        shared.append(tuple(None if n in hidden else v for n, v in zip(owner.__plait_fields__, fields, strict=True)))
    return state._replace(slots=tuple(slots), shared=tuple(shared))


def compare_projections(system: System, truth: Exploration, facts: Decomposition, **options: Any) -> Verdict:
    """A reduced search finds the projections of the oracle's states, its verdicts, and real runs."""
    verdict = check(system, reduce="decomposition", keep_going=True, **options)
    assert {p.name for p in verdict.properties if p.status == "violated"} == truth.violated
    parts = {projected(system, facts, state) for state in truth.seen}
    assert verdict.statistics.states == len(parts)
    if any(p.kind == "final" for p in system.properties):
        assert verdict.statistics.terminal_states == len({projected(system, facts, s) for s in truth.ends})
    check_traces(system, verdict, truth, shortest=options.get("search", "bfs") == "bfs")
    return verdict
