"""The virtual machine gives the answers of CPython: every question of some checks is asked twice."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from plait import check
from plait._native import Codec, Failure, Machine
from plait.check.tabulate.evaluation import Evaluation, Judgement
from plait.check.tabulate.guards import Guards, Value
from plait.check.tabulate.steprun import Outcome
from plait.check.tabulate.tabulation import Tabulation
from plait.ir.lower import lower
from plait.ir.nodes import encoded
from plait.kernel.pid import Pid
from plait.model.system import System

MODELS = ["lamport_mutex", "paxos", "raft", "register_paxos", "three_phase_commit", "zab"]


def fields(local: bytes) -> list[bytes]:
    return Codec.fields(local)[1:]


def joined(old: list[bytes], new: Sequence[bytes | None]) -> bytes:
    """The content of a tuple of fields, some of which have changed."""
    assert len(old) < 128
    return b"t" + bytes([len(old)]) + b"".join(o if n is None else n for o, n in zip(old, new, strict=True))


class Oracle:
    """Asks the machine what CPython has answered."""

    def __init__(self) -> None:
        self.machines: dict[int, tuple[System, Machine]] = {}
        self.answered: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def machine(self, system: System) -> Machine:
        if id(system) not in self.machines:
            program = lower(system, Codec(Pid).encode).program
            self.machines[id(system)] = system, Machine(encoded(program), fifo=system.network.kind == "fifo")
        return self.machines[id(system)][1]

    def ask(self, kind: str, question: Any, *arguments: Any) -> Any:
        """The answer; None if the machine gives up."""
        try:
            answer = question(*arguments)
        except LookupError as error:
            self.refused[f"{kind}: {error}"] += 1
            return None
        self.answered[kind] += 1
        return answer


@pytest.fixture
def oracle(monkeypatch: pytest.MonkeyPatch) -> Oracle:
    oracle = Oracle()
    run, observe, evaluate, audited = Tabulation.run, Tabulation.observe, Evaluation.evaluate, Guards._audited

    def run_twice(
        self: Tabulation, index: int, local: bytes, number: int, messages: Sequence[tuple[int, bytes]]
    ) -> list[Outcome]:
        outcomes = run(self, index, local, number, messages)
        if self.system.classes[index].__plait_handlers__[number].kind == "init":
            return outcomes  # CPython alone runs these
        old = fields(local)
        answer = oracle.ask("step", oracle.machine(self.system).step, index, number, old, list(messages))
        if answer is not None:
            made = []
            for new, sends, *rest, _ in answer[0]:
                ordered = sends if self.system.network.kind == "fifo" else sorted(sends)
                made.append((b"\0" + joined(old, new), ordered, *rest, None))
            assert made == [tuple(o) for o in outcomes]
        return outcomes

    def observe_twice(self: Tabulation, number: int, state: bytes, index: int, event: bytes) -> bytes | Failure:
        result = observe(self, number, state, index, event)
        old = fields(b"\0" + state)
        answer = oracle.ask("observation", oracle.machine(self.system).observe, number, old, index, event)
        assert answer is None or joined(old, answer) == result
        return result

    def audited_twice(
        self: Guards, index: int, number: int, local: bytes, messages: Any = (), accept: bool = False
    ) -> tuple[Value, set[str]]:
        value, read = audited(self, index, number, local, messages, accept)
        machine, asked = oracle.machine(self.system), (index, number, fields(local))
        if accept:
            answer = oracle.ask("accept", machine.accepts, *asked, messages)
        else:
            answer = oracle.ask("guard", machine.guard, *asked, *messages)
        if answer is not None:
            names = self.system.classes[index].__plait_fields__
            assert (answer[0], {n for i, n in enumerate(names) if answer[1] >> i & 1}) == (value, read)
        return value, read

    def evaluate_twice(
        self: Evaluation, number: int, locals_: Sequence[int], inboxes: Sequence[int], monitors: Sequence[int]
    ) -> Judgement:
        value, reads = evaluate(self, number, locals_, inboxes, monitors)
        contents = self._contents_of(locals_, inboxes, monitors)
        answer = oracle.ask(
            "property",
            oracle.machine(self.system).property,
            number,
            [(local[0], fields(local)) for local in contents[0]],
            [[(sender, message) for _, sender, message in inbox] for inbox in contents[1]],
            [fields(b"\0" + monitor) for monitor in contents[2]],
        )
        if answer is not None:
            places = {"status": 0, "field": 1}
            found = {(i, places[kind] + field) for kind, i, field in answer[1] if kind in places}
            assert (answer[0], found) == (value, {(i, field) for kind, i, field in reads if kind == "field"})
        return value, reads

    monkeypatch.setattr(Tabulation, "run", run_twice)
    monkeypatch.setattr(Tabulation, "observe", observe_twice)
    monkeypatch.setattr(Guards, "_audited", audited_twice)
    monkeypatch.setattr(Evaluation, "evaluate", evaluate_twice)
    return oracle


@pytest.mark.parametrize("name", MODELS)
def test_every_answer_is_the_answer_of_cpython(name: str, oracle: Oracle) -> None:
    system = getattr(importlib.import_module(f"plait.protocols.{name}"), name)()
    check(system, max_states=1_000, workers=1, native="off")
    assert oracle.answered["step"] > 0
    assert oracle.answered["property"] > 0
    assert oracle.refused == {}
