"""Translated P programs against an interpreter that interleaves machines at every operation."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from plait import check
from plait.model.system import System
from plait.rounds.p.machine import PMachine
from plait.rounds.p.module import module_of
from tests.oracle.p_machines import Machine, Outcomes, Program, State, World, outcomes, programs, written
from tests.oracle.relation import initial_states, make, make_message, make_process, moves, successors


def ends(system: System) -> tuple[bool, set[World]]:
    """Whether a step of the translated program fails, and its terminal states as the interpreter writes them."""
    met = set(initial_states(system))
    waiting, found, fails = list(met), set(), False
    while waiting:
        state = waiting.pop()
        after = list(successors(system, state))
        fails |= any(t.state is None for t in after)
        if not moves(system, state, after) and not any(t.state is None for t in after):
            numbers = {str(pid): int(pid.role[1:]) for pid in system.pids}
            machines = []
            for index, slot in enumerate(state.slots):
                p = make_process(system, state, index) if slot.status == "up" else None
                queue = [make_message(system, entry) for entry in slot.inbox]
                queue_ = tuple((numbers[str(m.sender)], type(m).__name__, m.payload) for m in queue)
                rest = ((("wait",), 0),) if p is not None and p.frames else ()
                machines.append(Machine(p.at, p.x, p.fuel, rest, queue_) if p is not None else Machine(queue=queue_))
            (spec,) = (make(type(m), fields) for m, fields in zip(system.monitors, state.monitors, strict=True))
            found.add(World(tuple(machines), spec.seen))
        for t in after:
            if t.state is not None and t.state not in met:
                met.add(t.state)
                waiting.append(t.state)
    return fails, found


def translated(program: Program, folder: Path) -> System:
    file = folder / "random.p"
    file.write_text(written(program))
    model = module_of(file).random
    system: System = model(machines=1) if inspect.signature(model).parameters else model()
    return system


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(limit=1500))
def test_random_programs(tmp_path_factory: pytest.TempPathFactory, pair: tuple[Program, Outcomes]) -> None:
    program, truth = pair
    system = translated(program, tmp_path_factory.mktemp("p"))
    fails, found = ends(system)
    assert fails == truth.fails
    if not fails:
        assert found == truth.ends
    verdict = check(system, properties=["assertions", "no_exceptions"])
    assert (verdict.status == "violated") == truth.fails


def state(entry=(), handlers=(("ignore",),) * 3) -> State:
    return State(tuple(entry), (), tuple(handlers))


NOTHING = state()


def test_two_sends_of_one_handler_interleave_with_those_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two machines send to each of two others: four pairs of orders. Atomic handlers would give only two."""
    gather = [("defer",)] * 3

    def sender(event: str) -> State:
        return state([("send", 0, event, 0), ("send", 1, event, 0)])

    target = state(handlers=gather)
    program = Program(((target, NOTHING), (target, NOTHING), (sender("e0"), NOTHING), (sender("e1"), NOTHING)), 2)
    truth = outcomes(program, 10_000)

    def orders(found: Iterable[World]) -> set[tuple[tuple[str, ...], ...]]:
        return {tuple(tuple(event for _, event, _ in m.queue) for m in end.machines[:2]) for end in found}

    assert orders(truth.ends) == {(a, b) for a in (("e0", "e1"), ("e1", "e0")) for b in (("e0", "e1"), ("e1", "e0"))}
    assert ends(translated(program, tmp_path)) == (False, set(truth.ends))

    def perform_all(self: PMachine) -> None:
        while self.outbox:
            to, event, payload = self.outbox[0]
            self.outbox = self.outbox[1:]
            self.emit_(to, event, payload)

    monkeypatch.setattr(PMachine, "perform_", perform_all)
    assert len(orders(ends(translated(program, tmp_path))[1])) == 2


def test_a_machine_that_is_created_later_does_not_overtake(tmp_path: Path) -> None:
    """The first machine sends and then creates: the created one sends later. So there is one order."""
    text = """
    event e0; event e1;
    machine Log { var seen: int; start state S {
      on e0 do { assert seen == 0; seen = 1; }
      on e1 do { assert seen == 1; } } }
    machine Late { start state S { entry (log: machine) { send log, e1; } } }
    machine Main { start state S { entry { var log: machine; log = new Log(); send log, e0; new Late(log); } } }
    """
    file = tmp_path / "late.p"
    file.write_text(text)
    assert check(module_of(file).main()).status == "holds"
    file.write_text(text.replace("send log, e0; new Late(log);", "new Late(log); send log, e0;"))
    assert check(module_of(file).main()).property == "assertions"
