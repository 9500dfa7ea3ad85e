"""The motivating example of DBSS (section II, Figure 1), state for state, with and without decomposition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plait import check
from plait.check.reduce.decomposition import decompose
from plait.check.runner import Runner
from plait.model.loading.loader import load
from plait.model.system import System
from tests.oracle.explorer import explore
from tests.oracle.relation import initial, successors, thaw

FILE = Path(__file__).parents[2] / "examples" / "two_messages.py"
Local = tuple[bool, bool, frozenset[str], bool, frozenset[str]]

NONE: frozenset[str] = frozenset()
FIRST, SECOND, BOTH = frozenset({"first"}), frozenset({"second"}), frozenset({"first", "second"})
NAIVE: dict[str, Local] = {
    # the sender has sent; the receiver is awake, has received, has acknowledged, and took in its last step
    "s1": (False, False, NONE, False, NONE),
    "s2": (True, False, NONE, False, NONE),
    "s3": (True, True, NONE, False, NONE),
    "s4": (True, True, FIRST, False, FIRST),
    "s5": (True, True, BOTH, False, SECOND),
    "s6": (True, True, BOTH, False, BOTH),
    "s": (True, True, BOTH, True, NONE),
}
EDGES = {
    ("s1", "send_both", "s2"),
    ("s2", "wake", "s3"),
    ("s3", "take_first", "s4"),
    ("s4", "take_second", "s5"),
    ("s3", "take_both", "s6"),
    ("s5", "acknowledge", "s"),
    ("s6", "acknowledge", "s"),
}
"""Figure 1(a)."""


@pytest.fixture
def system() -> System:
    return load(str(FILE), {}, parse=False)


def local(sender: dict[str, Any], receiver: dict[str, Any]) -> Local:
    return sender["sent"], receiver["awake"], receiver["received"], receiver["acknowledged"], receiver["history"]


def test_figure_1a_by_the_oracle(system: System) -> None:
    names = {fields: name for name, fields in NAIVE.items()}

    def name_of(state: Any) -> str:
        sender, receiver = (
            dict(zip(cls.__plait_fields__, map(thaw, slot.fields), strict=True))
            for cls, slot in zip(system.classes, state.slots, strict=True)
        )
        return names[local(sender, receiver)]

    truth = explore(system)
    assert name_of(initial(system)) == "s1"
    assert sorted(map(name_of, truth.seen)) == sorted(NAIVE)
    edges = [(name_of(s), t.label, name_of(t.state)) for s in truth.seen for t in successors(system, s)]
    assert sorted(edges) == sorted(EDGES)


def engine_graph(runner: Runner) -> tuple[list[Local], list[tuple[Local, str, Local]]]:
    """The states and transitions that the engine finds, one representative for each fingerprint."""

    def fields(state: Any) -> Local:
        locals_ = runner.engine.components(state)[0]
        sender, receiver = (runner.tabulation.local_value(i, locals_[i])[1] for i in (0, 1))
        return local(sender, receiver)

    ((start, _),) = runner.engine.initial()
    seen = {runner.engine.fingerprint(start): fields(start)}
    queue, edges = [start], []
    for state in queue:  # grows while it is read
        here = seen[runner.engine.fingerprint(state)]
        for t in runner.engine.successors(state):
            assert t.handler is not None
            if t.fingerprint not in seen:
                seen[t.fingerprint] = fields(t.state)
                queue.append(t.state)
            handler = runner.system.classes[t.process].__plait_handlers__[t.handler].name
            edges.append((here, handler, seen[t.fingerprint]))
    return list(seen.values()), edges


def test_figure_1a_by_the_engine(system: System) -> None:
    states, edges = engine_graph(Runner(system))
    assert sorted(states, key=repr) == sorted(NAIVE.values(), key=repr)
    assert sorted(edges, key=repr) == sorted(((NAIVE[a], t, NAIVE[b]) for a, t, b in EDGES), key=repr)
    found = check(system).statistics
    assert (found.states, found.transitions, found.terminal_states) == (7, 7, 1)


def test_figure_1b(system: System) -> None:
    """s5 and s6 are one state: six states, and the six transitions of Figure 1(b)."""
    states, edges = engine_graph(Runner(system, decompose(system, "declared")))

    def relevant(fields: Local) -> str:
        name = next(name for name, known in NAIVE.items() if known[:-1] == fields[:-1])
        return "s5 = s6" if name in ("s5", "s6") else name

    merge = {"s5": "s5 = s6", "s6": "s5 = s6"}
    assert sorted(map(relevant, states)) == sorted({merge.get(name, name) for name in NAIVE})
    assert {(relevant(a), t, relevant(b)) for a, t, b in edges} == {
        (merge.get(a, a), t, merge.get(b, b)) for a, t, b in EDGES
    }
    assert len(edges) == 6


@pytest.mark.parametrize("search", ["bfs", "dfs"])
def test_the_search_with_decomposition(system: System, search: Any) -> None:
    verdict = check(system, search=search, reduce="decomposition", decomposition="declared")
    assert verdict.status == "holds"
    assert (verdict.statistics.states, verdict.statistics.transitions) == (6, 6)


def test_the_history_can_be_inferred(system: System) -> None:
    """No declaration is needed: nothing reads the history."""
    assert check(system, reduce="decomposition", decomposition="auto").statistics.states == 6
