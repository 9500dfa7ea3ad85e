"""A state keeps the local state of each process apart, which is what permuting processes needs (DBSS, IV-B c, d)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from plait import check
from plait.check.runner import Runner
from plait.model.loading.loader import load
from plait.model.system import System

FILE = Path(__file__).parents[2] / "examples" / "two_actors.py"


@pytest.fixture
def system() -> System:
    return load(str(FILE), {}, parse=False)


def ends(runner: Runner) -> list[Sequence[int]]:
    """The states in which nothing is left to do, in the order of the driver's choices."""
    seen: dict[int, Sequence[int]] = {}
    queue: list[Sequence[int]] = [state for state, _ in runner.engine.initial()]
    for state in queue:
        for transition in runner.engine.successors(state):
            if transition.fingerprint not in seen:
                seen[transition.fingerprint] = transition.state
                queue.append(transition.state)
    found = [state for state in seen.values() if runner.is_terminal(state)]
    return sorted(found, key=lambda state: [number for number, _ in structured(runner, state)])


def actors(runner: Runner, state: Sequence[int]) -> list[dict[str, Any]]:
    """The local states of the two actors."""
    locals_ = runner.engine.components(state)[0]
    return [runner.tabulation.local_value(i, locals_[i])[1] for i in (1, 2)]


def structured(runner: Runner, state: Sequence[int]) -> list[tuple[int, int]]:
    """Process by process: each with everything that belongs to it."""
    return [(actor["number"], actor["inner"].foo) for actor in actors(runner, state)]


def unstructured(roots: Iterable[dict[str, Any]]) -> list[int]:
    """As the serializer in Figure 2 does without the changes: references go to the end of one queue for all processes."""
    queue, buffer = list(roots), []
    for fields in queue:  # grows while it is read
        for value in fields.values():
            if dataclasses.is_dataclass(value):
                queue.append(vars(value))
            else:
                buffer.append(value)
    return buffer


def test_structured_states_say_what_belongs_to_whom(system: System) -> None:
    runner = Runner(system)
    first, second = ends(runner)
    assert structured(runner, first) == [(1, 11), (2, 12)]
    assert structured(runner, second) == [(2, 12), (1, 11)]
    assert unstructured(actors(runner, first)) == [1, 2, 11, 12]
    assert unstructured(actors(runner, second)) == [2, 1, 12, 11]


def test_the_flat_form_loses_what_belongs_to_whom() -> None:
    """Different states have the same flat form, so that nobody can exchange the actors in it."""

    @dataclasses.dataclass
    class Foo:
        foo: int

    one_object_each = [{"number": 1, "inner": Foo(11)}, {"number": 2, "inner": Foo(12)}]
    both_in_the_first = [{"number": 1, "inner": Foo(11), "other": Foo(12)}, {"number": 2}]
    assert unstructured(one_object_each) == unstructured(both_in_the_first) == [1, 2, 11, 12]


def test_local_states_are_equal_wherever_they_are(system: System) -> None:
    """The content of a local state does not depend on the process that has it: permuting is moving ids around."""
    runner = Runner(system)
    first, second = (runner.engine.components(state)[0] for state in ends(runner))
    store = runner.engine.store
    assert store.local(first[1]) == store.local(second[2])
    assert store.local(first[2]) == store.local(second[1])
    assert runner.engine.fingerprint(ends(runner)[0]) != runner.engine.fingerprint(ends(runner)[1])


def test_without_reduction_both_are_searched(system: System) -> None:
    """1 before the choice; then for each of 2 choices 4, as each actor begins or not."""
    found = check(system).statistics
    assert (found.states, found.terminal_states) == (1 + 2 * 4, 2)


def test_symmetry_makes_one_orbit_of_the_two(system: System) -> None:
    """Of the 8 states after the choice, each is the image of another one."""
    verdict = check(system, reduce="symmetry")
    assert verdict.status == "holds"
    assert (verdict.statistics.states, verdict.statistics.terminal_states) == (1 + 4, 1)
