"""Random round-based protocols: every process keeps the round that it is in, and its guards follow from that."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import strategies as st

from plait import Message, Process, System, action, crash_stop, on, tagged


@tagged(phase="phase", round="A")
class A(Message):
    phase: int
    value: int


@tagged(phase="phase", round="B")
class B(Message):
    phase: int
    value: int


@tagged(phase="phase", round="C")
class C(Message):
    phase: int
    value: int


TYPES = (A, B, C)


@dataclasses.dataclass(frozen=True)
class Rule:
    """What is done with the messages of a round, and what is sent then."""

    count: int = 1
    """1 for a handler of single messages, else the size of its quorum."""
    later: bool = False
    """Whether messages of later phases are let through as well."""
    factor: int = 1
    reply: int | None = None
    """The round that is sent afterwards; one that does not come later is of the next phase."""
    to_all: bool = True
    same: bool = False
    chooses: bool = False
    creates: bool = False
    """Whether a process is created, if there is none of this one's yet."""
    decides: int | None = None
    """After a receipt in this round an action decides, and sends this round; one that does not come later is of the next
    phase, which may be after the last."""
    piecemeal: bool = False
    """Whether the action sends to the first process only, and another one to the others."""


@dataclasses.dataclass(frozen=True)
class Spec:
    """A protocol."""

    rules: tuple[Rule, ...]
    phases: int
    starts: tuple[int, ...]
    """Per process the round that it may start a phase with; -1 for none."""
    jumps: bool = False
    """Whether a start may leave out a phase."""
    idle: bool = False
    """Whether there is an action that sends nothing; where processes are created, of these only."""
    prepares: bool = False
    """Whether a process starts only after it was idle."""
    parents: int = 0
    """So many processes create another one."""


def _accepts(number: int, single: bool) -> Any:
    def where(self: Node, m: Any) -> bool:
        if number >= len(self.spec.rules):
            return False
        rule = self.spec.rules[number]
        if (rule.count == 1) != single:
            return False
        if m.phase > self.spec.phases:
            return False
        now = self.phase == m.phase and self.stage <= 2 * number + 1
        return now or (rule.later and m.phase > self.phase)

    return where


def _size(number: int) -> Any:
    return lambda self: self.spec.rules[number].count if number < len(self.spec.rules) else 2


class Node(Process):
    """Follows the rules of its Spec."""

    spec: Spec
    number: int
    x: int = 0
    phase: int = 1
    stage: int = 0
    """Twice the round, and one more after a receipt in it."""
    idled: bool = False
    created: bool = False
    decided: tuple[int, ...] = ()
    owed: bool = False
    """Whether it has told the first process only."""

    @action(when=lambda self: self.spec.starts[self.number] >= 0 and (self.idled or not self.spec.prepares))
    def start(self) -> None:
        number = self.spec.starts[self.number]
        options = [self.phase] if self.stage < 2 * number or (self.stage == 0 and number == 0) else []
        options += list(range(self.phase + 1, self.spec.phases + 1))[: 2 if self.spec.jumps else 1]
        if options:
            phase = self.choose(options)
            if (phase, 2 * number) > (self.phase, self.stage) or self.stage == 0 == number == self.phase - 1 == self.x:
                self.x = 1
                self._tell(phase, number, None)

    @action(when=lambda self: self.spec.idle and not self.idled)
    def idle(self) -> None:
        self.idled, self.x = True, (self.x + 1) % 3

    @action(when=lambda self: self.stage % 2 == 1 and self.rule.decides is not None)
    def decide(self) -> None:
        to, rule = self.rule.decides, self.rule
        assert to is not None
        self.decided += (self.x,)
        self._tell(self.phase + (to <= self.stage // 2), to, Node.pid(0) if rule.piecemeal else None)
        self.owed = rule.piecemeal

    @action(when=lambda self: self.owed)
    def tell_others(self) -> None:
        self.owed = False
        self.decided += (-1,)
        for node in range(1, len(self.spec.starts)):
            self.send(Node.pid(node), TYPES[self.stage // 2](self.phase, self.x))

    @property
    def rule(self) -> Rule:
        return self.spec.rules[self.stage // 2] if self.stage // 2 < len(self.spec.rules) else Rule()

    @on(A, where=_accepts(0, True))
    def a(self, m: A) -> None:
        self._take(0, (m,))

    @on(B, where=_accepts(1, True))
    def b(self, m: B) -> None:
        self._take(1, (m,))

    @on(C, where=_accepts(2, True))
    def c(self, m: C) -> None:
        self._take(2, (m,))

    @on(A, where=_accepts(0, False), quorum=_size(0), same="phase")
    def a_quorum(self, ms: tuple[A, ...]) -> None:
        self._take(0, ms)

    @on(B, where=_accepts(1, False), quorum=_size(1), same="phase")
    def b_quorum(self, ms: tuple[B, ...]) -> None:
        self._take(1, ms)

    @on(C, where=_accepts(2, False), quorum=_size(2), same=("phase", "value"))
    def c_quorum(self, ms: tuple[C, ...]) -> None:
        self._take(2, ms)

    def _take(self, number: int, messages: tuple[Any, ...]) -> None:
        rule, phase = self.spec.rules[number], messages[0].phase
        self.phase, self.stage, self.owed = phase, 2 * number + 1, False
        self.x = (rule.factor * self.x + sum(m.value for m in messages) + min(messages[0].sender.index, 2)) % 3
        if rule.chooses:
            self.x = self.choose([self.x, 0])
        child = None
        if rule.creates and not self.created:
            # It takes part from the next round on, as after a receipt in it.
            self.created, last = True, number + 1 == len(TYPES)
            born = (phase + 1, 1) if last else (phase, 2 * number + 3)
            child = self.spawn(Node, spec=self.spec, number=self.number, phase=born[0], stage=born[1], created=True)
        if rule.reply is not None and (rule.reply > number or phase < self.spec.phases):
            self._tell(
                phase if rule.reply > number else phase + 1,
                rule.reply,
                None if rule.to_all else messages[0].sender,
                child,
            )

    def _tell(self, phase: int, number: int, to: Any, child: Any = None) -> None:
        self.phase, self.stage, self.owed = phase, 2 * number, False
        message = TYPES[number](phase, self.x)
        if child is not None:
            self.send(child, message)
        if to is None:
            self.broadcast(Node, message)
        else:
            self.send(to, message)


@st.composite
def specs(
    draw: st.DrawFn, *, processes: int = 2, most_rounds: int = 3, grows: bool = False, decides: bool = False
) -> Spec:
    """Draw a protocol; in some round an action decides, if wanted."""
    count = draw(st.integers(1, most_rounds))
    rule = st.builds(
        Rule,
        count=st.integers(1, processes),
        later=st.booleans(),
        factor=st.integers(0, 2),
        reply=st.none() | st.integers(0, count - 1),
        to_all=st.booleans(),
        same=st.booleans(),
        chooses=st.booleans(),
        creates=st.booleans() if grows else st.just(False),
        decides=st.none() | st.integers(0, count - 1) if decides else st.none(),
        piecemeal=st.booleans() if decides else st.just(False),
    )
    starts = st.tuples(st.just(0), *[st.integers(-1, count - 1)] * (processes - 1))
    rules = [draw(rule) for _ in range(count)]
    if grows:
        rules[0] = dataclasses.replace(rules[0], creates=True)
    if decides and all(rule.decides is None for rule in rules):
        number = draw(st.integers(0, count - 1))
        rules[number] = dataclasses.replace(rules[number], decides=draw(st.integers(0, count - 1)))
    idle = grows or draw(st.booleans())
    return Spec(
        tuple(rules),
        phases=1 if grows else draw(st.integers(1, 2)),
        starts=draw(starts),
        jumps=draw(st.booleans()),
        idle=idle,
        prepares=decides and idle and draw(st.booleans()),
        parents=draw(st.integers(1, 2)) if grows else 0,
    )


def system(spec: Spec, *, crashes: int = 0) -> System:
    """The protocol as a System."""
    grows = spec.parents > 0
    return System(
        [Node(spec=spec, number=i, idled=grows, created=i >= spec.parents) for i in range(len(spec.starts))],
        rounds=["A", "B", "C"],
        spare={Node: spec.parents} if spec.parents else {},
        faults=[crash_stop(budget=crashes)] if crashes else [],
    )
