"""Searches in which the virtual machine answers every question too. An answer of its own is a failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from plait._native import Codec, Failure, Machine
from plait.check import runner
from plait.check.tabulate.guards import Takes
from plait.check.tabulate.tabulation import Tabulation
from plait.ir.lower import Lowered, lower
from plait.ir.nodes import encoded
from plait.model.system import System

BAILS: Counter[str] = Counter()
"""How often the machine gave up, and why."""
ASKED: Counter[str] = Counter()


class Compared(Tabulation):
    """Answers questions, and asks the virtual machine the same."""

    def __init__(self, system: System, recorder: Any = None) -> None:
        super().__init__(system, recorder)
        self.lowered: Lowered = lower(system, self.codec.encode)
        self.machine = Machine(encoded(self.lowered.program), fifo=system.network.kind == "fifo")

    def ask(self, kind: str, raised: bool, question: Any) -> Any:
        """The answer of the machine; None if it gave up, which it must if CPython raised an exception."""
        ASKED[kind] += 1
        try:
            answer = question()
        except LookupError as error:
            if not raised:
                BAILS[f"{kind}: {error}"] += 1
            return None
        assert not raised, f"{kind}: CPython raises, the machine answers {answer}"
        return answer

    def armed(self, index: int, local: bytes, only: int | None = None) -> list[Takes]:
        found = super().armed(index, local, only)
        fields, given = Codec.fields(local)[1:], {takes.handler: takes.least for takes in found}
        for number, handler in enumerate(self.handlers[index]):
            if (index, number, local, ()) in self._guards.raised or only not in (None, number):
                continue
            where = self.where(index, number)
            if handler.kind == "action" and handler.where is not None:
                answer = self.ask(f"guard of {where}", False, lambda: self.machine.guard(index, number, fields)[0])  # noqa: B023
                assert answer in (None, number in given), where
            if callable(handler.size) and number in given:
                answer = self.ask(f"quorum of {where}", False, lambda: self.machine.quorum(index, number, fields))  # noqa: B023
                assert answer in (None, given[number]), where
        return found

    def guards(self, index: int, local: bytes, questions: Sequence[tuple[int, tuple[int, bytes]]]) -> list[Any]:
        answers = super().guards(index, local, questions)
        fields = Codec.fields(local)[1:]
        for (number, message), answer in zip(questions, answers, strict=True):
            if self.handlers[index][number].where is not None:
                where = f"guard of {self.where(index, number)}"
                raised = isinstance(answer, Failure)
                found = self.ask(where, raised, lambda: self.machine.guard(index, number, fields, message)[0])  # noqa: B023
                assert found in (None, answer is not None), (where, self.codec.decode(local[1:]))
        return answers

    def accepts(
        self, index: int, local: bytes, number: int, sets: Sequence[Sequence[tuple[int, bytes]]]
    ) -> list[bool | Failure]:
        answers = super().accepts(index, local, number, sets)
        fields, where = Codec.fields(local)[1:], f"accept of {self.where(index, number)}"
        for messages, answer in zip(sets, answers, strict=True):
            raised = isinstance(answer, Failure)
            found = self.ask(where, raised, lambda: self.machine.accepts(index, number, fields, messages)[0])  # noqa: B023
            assert found in (None, answer), (where, self.codec.decode(local[1:]))
        return answers

    def step(self, index: int, local: bytes, number: int, messages: Sequence[tuple[int, bytes]]) -> Any:
        outcomes = super().step(index, local, number, messages)
        fields, where = Codec.fields(local)[1:], self.where(index, number)
        raised = any(o.failure is not None and o.failure.violation for o in outcomes)
        found = self.ask(where, raised, lambda: self.machine.step(index, number, fields, list(messages))[0])
        if found is not None:
            assert len(found) == len(outcomes), where
            for mine, outcome in zip(found, outcomes, strict=True):
                changed, sends, events, spawns, expected, choices, no_slot = mine
                assert no_slot == (outcome.failure is not None), where
                assert (list(expected), list(choices)) == (outcome.expected, outcome.choices), where
                if no_slot:
                    continue
                after = Codec.fields(outcome.local)[1:]
                own, first = len(after), len(self.system.classes)
                assert [b if n is None else n for n, b in zip(changed[:own], fields, strict=False)] == after, where
                written = [(i, self._cell(c)) for i, c in enumerate(changed[own:], start=first) if c is not None]
                assert written == [(slot, c) for slot, c in outcome.spawns if slot >= first], where
                born = [(slot, c) for slot, c in outcome.spawns if slot < first]
                sends = sends if self.system.network.kind == "fifo" else sorted(sends)
                assert (list(sends), list(events)) == (outcome.sends, outcome.events), where
                assert [(slot, content[1:]) for slot, content in spawns] == [(s, c[1:]) for s, c in born] or [
                    (slot, bytes(content)) for slot, content in spawns
                ] == [(s, c[1:]) for s, c in born], where
        return outcomes

    def observe(self, number: int, state: bytes, index: int, event: bytes) -> bytes | Failure:
        result = super().observe(number, state, index, event)
        fields = Codec.fields(b"\0" + state)[1:]
        where = f"{type(self.system.monitors[number]).__name__}.observe"
        raised = isinstance(result, Failure)
        found = self.ask(where, raised, lambda: self.machine.observe(number, fields, index, event))
        if found is not None:
            assert not isinstance(result, Failure)
            after = Codec.fields(b"\0" + result)[1:]
            assert [b if n is None else n for n, b in zip(found, fields, strict=True)] == after, where
        return result

    def evaluate(self, number: int, locals_: Any, inboxes: Any, monitors: Any) -> Any:
        judgement = super().evaluate(number, locals_, inboxes, monitors)
        contents, mail, states = self._contents_of(locals_, inboxes, monitors)
        state = (
            [(c[0], [] if c[0] == 3 else Codec.fields(c)[1:]) for c in contents],
            [[(sender, m) for _, sender, m in box] for box in mail],
            [Codec.fields(b"\0" + s)[1:] for s in states],
        )
        name = f"property {self.system.properties[number].name}"
        found = self.ask(name, judgement[0] is None, lambda: self.machine.property(number, *state)[0])
        assert found in (None, judgement[0]), name
        prop = self.lowered.program.properties[number]
        if prop is not None and prop.parts:
            try:
                parts = [self.machine.property(number, *state, part=i)[0] for i in range(len(prop.parts))]
            except LookupError as error:
                BAILS[f"part of {name}: {error}"] += 1
            else:
                ASKED[f"parts of {name}"] += 1
                assert (all(parts) if prop.every else any(parts)) == judgement[0], f"parts of {name}"
        return judgement


@contextmanager
def comparing() -> Iterator[None]:
    """Let every search ask the virtual machine too."""
    BAILS.clear()
    ASKED.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "Tabulation", Compared)
        yield
