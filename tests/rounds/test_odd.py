"""Odd little protocols: what rounds say of each is what the search of the protocol itself says, or they refuse it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plait import ModelError, System, check
from plait.cli.sequential import check_rounds, conditions
from plait.model.loader import load
from plait.rounds.assumptions import Custom
from plait.rounds.emit import program_text
from plait.rounds.sequential import sequentialize

IMPORTS = """\
import functools

from plait import Message, Process, System, action, always, crash_stop, init, on, reachable, tagged
"""
SOURCES = {
    "newborn": """
@tagged(phase="phase", round="A")
class A(Message):
    phase: int

class Child(Process):
    sent: bool = False

    @action(when=lambda self: not self.sent)
    def tell(self):
        self.sent = True
        self.send(Boss.pid(0), A(3))

class Boss(Process):
    x: int = 0
    spawned: bool = False

    @action(when=lambda self: not self.spawned)
    def hire(self):
        self.spawned = True
        self.spawn(Child)

    @on(A)
    def take(self, m):
        self.x = m.phase

@always
def fine(s):
    return s[Boss.pid(0)].x < 3

system = System([Boss()], properties=[fine], rounds=["A"], spare={Child: 1})
""",
    "crash_at_the_end": """
@tagged(round="A")
class A(Message): ...

class N(Process):
    x: int = 0

    @action(when=lambda self: self.x == 0 and self.id.index == 0)
    def go(self):
        self.x = 1
        self.send(N.pid(1), A())

    @on(A)
    def take(self, m):
        self.x = 5

@always
def fine(s):
    return not (s[N.pid(1)].crashed and s[N.pid(1)].x == 5)

system = System([N(), N()], properties=[fine], rounds=["A"], faults=[crash_stop(budget=1)])
""",
    "reach": """
@tagged(phase="phase", round="A")
class A(Message):
    phase: int

class N(Process):
    last: int = 0
    old: bool = False

    @init
    def go(self):
        self.send(N.pid(0), A(1))

    @action(when=lambda self: self.last == 0)
    def go2(self):
        self.last = 1
        self.send(N.pid(0), A(2))

    @on(A)
    def take(self, m):
        if m.phase == 1 and self.last == 2:
            self.old = True
        self.last = m.phase

@reachable
def late(s):
    return any(p.old for p in s)

system = System([N()], properties=[late], rounds=["A"])
""",
    "keep": """
@tagged(phase="phase", round="A")
class A(Message):
    phase: int

class N(Process):
    last: int = 0
    old: bool = False

    @init
    def go(self):
        self.send(N.pid(0), A(1))

    @action(when=lambda self: self.last == 0)
    def go2(self):
        self.last = 1
        self.send(N.pid(0), A(2))

    @on(A)
    def take(self, m):
        if m.phase == 1 and self.last == 2:
            self.old = True
        self.last = m.phase

@always
def never_late(s):
    return not any(p.old for p in s)

@always
def silly(s):
    return not any(p.last for p in s)

system = System([N()], properties=[never_late, silly], rounds=["A"])
""",
    "nested_type": """
@tagged(round="A")
class A(Message): ...

class N(Process):
    st: tuple = (0,)

    @action(when=lambda self: type(self.st[0]) is int)
    def think(self):
        self.st = (False,)

    @on(A)
    def take(self, m): ...

@always
def ok(s):
    return all(p.st[0] is not False for p in s)

system = System([N(), N()], properties=[ok], rounds=["A"])
""",
    "two_faults": """
@tagged(round="A")
class A(Message): ...

class X(Process):
    @on(A)
    def take(self, m): ...

class Y(Process):
    @init
    def go(self):
        self.send(X.pid(0), A())

@always
def ok(s):
    return not all(p.crashed for p in s)

system = System([X(), Y()], properties=[ok], rounds=["A"], faults=[crash_stop(budget=1), crash_stop(X, budget=1)])
""",
    "creators": """
@tagged(round="A")
class A(Message): ...

@tagged(round="B")
class B(Message): ...

class K(Process):
    parent: int
    got: bool = False

    @on(B)
    def hear(self, m):
        self.got = True

class P(Process):
    kid: bool = False

    @init
    def go(self):
        if self.id.index == 1:
            self.send(self.id, A())

    @on(A)
    def take(self, m):
        self.kid = True
        k = self.spawn(K, parent=self.id.index)
        self.send(k, B())

    @action(when=lambda self: self.id.index == 0 and not self.kid)
    def make(self):
        self.kid = True
        self.spawn(K, parent=self.id.index)

@always
def ok(s):
    return not (len(s[K]) == 2 and any(k.got for k in s[K]))

@always
def ok2(s):
    return not (len(s[K]) == 2 and s[K.pid(1)].got)

@always
def ok3(s):
    return not (len(s[K]) == 2 and s[K.pid(0)].got)

system = System([P(), P()], properties=[ok, ok2, ok3], rounds=["A", "B"], spare={K: 2})
""",
    "same": """
@tagged(round="A")
class A(Message):
    v: object

class N(Process):
    x: int = 0
    sent: bool = False

    @action(when=lambda self: not self.sent)
    def go(self):
        self.sent = True
        self.send(N.pid(0), A(1 if self.id.index else True))

    @on(A, quorum=2, same="v")
    def take(self, ms):
        self.x = 1

@always
def ok(s):
    return all(p.x < 1 for p in s)

system = System([N(), N()], rounds=["A"], properties=[ok])
""",
    "kinds": """
@tagged(round="A")
class A(Message): ...

@tagged(round="B")
class B(A): ...

class N(Process):
    st: int = 0
    sent: bool = False

    @action(when=lambda self: not self.sent)
    def go(self):
        self.sent = True
        self.send(N.pid(0), A() if self.id.index else B())

    @on(A, quorum=2)
    def take(self, m):
        self.st = 7

    @on(B, where=lambda self, m: False)
    def no(self, m): ...

@always
def ok(s):
    return all(p.st < 7 for p in s)

system = System([N(), N()], properties=[ok], rounds=["A", "B"])
""",
    "loop": """
@tagged(phase="ballot", round="A")
class A(Message):
    ballot: int

class N(Process):
    ballot: int = 0
    k: int = 0

    @action(when=lambda self: self.ballot < 2)
    def go(self):
        self.ballot += 1
        self.send(Sink.pid(0), A(self.ballot))

    @action(when=lambda self: 0 <= self.k < 24)
    def right(self):
        self.k += 1

    @action(when=lambda self: 0 <= self.k < 24)
    def wrong(self):
        self.k = -1

    @action(when=lambda self: self.k == 24 and self.ballot == 2)
    def forget(self):
        for _ in range(1):
            self._reset()
        self.k = -1

    def _reset(self):
        self.ballot = 0

class Sink(Process):
    seen: tuple = ()

    @on(A, where=lambda self, m: m.ballot not in self.seen and (not self.seen or m.ballot > self.seen[-1]))
    def take(self, m):
        self.seen += (m.ballot,)

@always
def ok(s):
    return True

system = System([N(), Sink()], properties=[ok], rounds=["A"])
""",
    "wrapped_guard": """
def unless(guard):
    @functools.wraps(guard)
    def negated(self, m):
        return not guard(self, m)

    return negated

@tagged(phase="ballot", round="A")
class A(Message):
    ballot: int

class N(Process):
    st: int = 0
    sent: int = 0

    @action(when=lambda self: self.sent == 0)
    def go(self):
        self.sent = 1
        self.send(N.pid(0), A(1 + self.id.index))

    @on(A, quorum=2, where=unless(lambda self, m: m.ballot == 7))
    def take(self, m):
        self.st = 7

@always
def ok(s):
    return all(p.st < 7 for p in s)

system = System([N(), N()], properties=[ok], rounds=["A"])
""",
    "twice": """
@tagged(round="A")
class A(Message):
    v: int

class N(Process):
    x: int = 0

    @init
    def go(self):
        self.send(N.pid(0), A(1))
        self.send(N.pid(0), A(2))

    @on(A)
    def take(self, m):
        self.x = m.v

system = System([N()], rounds=["A"])
""",
    "first_hears_all": """
@tagged(round="Z")
class Z(Message): ...

@tagged(round="A")
class A(Message): ...

@tagged(round="B")
class B(Message): ...

class N(Process):
    z: bool = False
    got: bool = False
    told: bool = False
    alarm: bool = False

    @init
    def begin(self):
        self.send(self.id, Z())

    @on(Z, where=lambda self, m: not self.told)
    def start(self, m):
        self.z = True
        self.send(self.id, A())

    @on(A, where=lambda self, m: not self.told)
    def take(self, m):
        self.got = True

    @action(when=lambda self: not self.told)
    def tell(self):
        self.told = True
        self.send(self.id, B())

    @on(B)
    def check(self, m):
        self.alarm = self.z and not self.got

@always
def ok(s):
    return not (s[N.pid(0)].crashed and not s[N.pid(0)].z and not s[N.pid(0)].told and s[N.pid(1)].alarm)

system = System([N(), N()], properties=[ok], rounds=["Z", "A", "B"], faults=[crash_stop(budget=1)])
""",
    "last_hears": """
@tagged(round="A")
class A(Message): ...

@tagged(round="B")
class B(Message): ...

class N(Process):
    @init
    def go(self):
        self.send(M.pid(0), A())

class M(Process):
    got: int = 0
    told: bool = False
    alarm: bool = False

    @on(A, where=lambda self, m: not self.told)
    def take(self, m):
        self.got += 1

    @action(when=lambda self: not self.told)
    def tell(self):
        self.told = True
        self.send(M.pid(0), B())

    @on(B)
    def check(self, m):
        self.alarm = self.got < 2

@always
def ok(s):
    return not any(p.alarm for p in s[M])

def system(crashes: int = 0, first: bool = False) -> System:
    ps = [M(), N(), N()] if first else [N(), N(), M()]
    return System(ps, properties=[ok], rounds=["A", "B"], faults=[crash_stop(N, budget=crashes)] if crashes else [])
""",
}


@pytest.fixture
def odd(tmp_path: Path) -> Any:
    def find(name: str, **parameters: str) -> System:
        file = tmp_path / f"{name}.py"
        file.write_text(IMPORTS + SOURCES[name], encoding="utf-8")
        return load(str(file), parameters)

    return find


@pytest.mark.parametrize(
    ("name", "phases", "why"),
    [
        ("newborn", 3, "a process that is created may send after a quiet round"),
        ("newborn", 5, "and in many phases"),
        ("crash_at_the_end", 1, "a process may crash after its last step"),
        ("nested_type", 1, "0 and False are different, wherever they are"),
        ("two_faults", 1, "a crash is of one fault or another"),
        ("same", 1, "1 and True are not the same"),
    ],
)
def test_rounds_agree(odd: Any, name: str, phases: int, why: str) -> None:
    assert check_rounds(odd(name), phases=phases).status == check(odd(name)).status, why


@pytest.mark.parametrize("property_", ["ok", "ok2"])
def test_created_in_another_order_than_that_of_rounds(odd: Any, property_: str) -> None:
    found = check_rounds(odd("creators"), phases=1, properties=[property_])
    assert (found.status, check(odd("creators"), properties=[property_]).status) == ("violated", "violated")


def test_an_order_that_rounds_do_not_have_is_refused(odd: Any) -> None:
    assert check(odd("creators"), properties=["ok3"]).status == "violated"
    with pytest.raises(ModelError, match="property ok3 tells those apart"):
        check_rounds(odd("creators"), phases=1, properties=["ok3"])


def test_that_nothing_is_reached_is_a_claim(odd: Any) -> None:
    assert check(odd("reach")).status == "holds"
    with pytest.raises(ModelError, match="not round-based"):
        check_rounds(odd("reach"))


def test_one_violation_makes_no_other_property_hold(odd: Any) -> None:
    verdict = check_rounds(odd("keep"), keep_going=True)
    assert (verdict.status, verdict.property) == ("violated", "silly")
    assert {p.name: p.status for p in verdict.properties} == {"never_late": "inconclusive", "silly": "violated"}


@pytest.mark.parametrize("name", ["kinds", "loop", "wrapped_guard", "twice"])
def test_what_is_not_round_based_is_never_proven_to_be(odd: Any, name: str) -> None:
    assert conditions(odd(name)).status == "violated"
    assert conditions(odd(name), max_states=1).status != "holds"


def test_a_predicate_is_about_those_who_crashed_as_well(odd: Any) -> None:
    def first_hears_all(hears: Any) -> bool:
        return len(hears[min(hears)]) == len(hears)

    def m_hears_all(hears: Any) -> bool:
        return all(len(hears[p]) == len(hears) for p in hears if p.role == "M")

    free = check_rounds(odd("first_hears_all"), phases=2, assume=Custom("first", first_hears_all))  # type: ignore[arg-type]
    assert free.status == "violated"
    bound = check_rounds(odd("last_hears", crashes="1"), phases=1, assume=Custom("m", m_hears_all))  # type: ignore[arg-type]
    assert bound.status == "holds"


FAMILY = '''
import enum


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@tagged(phase="phase", round="A")
class A(Message):
    phase: int


class N(Process):
    x: int = 0
    color: Color = Color.RED
    TEXT = """one



        two"""

    @action(when=lambda self: self.x < 2 and self.id.index == 0)
    def go(self):
        self.x += 1
        self.send(N.pid(1), A(self.x))

    start = go

    @on(A, where=lambda self, m: m.phase > self.x)
    def take(self, m):
        self.x = m.phase


@always
def whole(s):
    return N.TEXT.count(chr(10)) == 4 and all(p.x < 3 for p in s)
'''
MODELS = {
    "function": """
def model(color: Color = Color.RED) -> System:
    return System([N(color=color), N()], properties=[whole], rounds=["A"])


def other() -> System:
    return model()
""",
    "variable": """
model = System([N(), N()], properties=[whole], rounds=["A"])
""",
}


@pytest.mark.parametrize("kind", MODELS)
def test_the_emitted_program_is_the_only_model(kind: str, tmp_path: Path) -> None:
    file, program = tmp_path / "family.py", tmp_path / "program.py"
    file.write_text(IMPORTS + FAMILY + MODELS[kind], encoding="utf-8")
    system = load(f"{file}:model", {"color": "BLUE"} if kind == "function" else {})
    program.write_text(program_text(system, phases=2, assume="none"), encoding="utf-8")
    emitted, direct = check(load(str(program))), check(sequentialize(system, phases=2))
    assert (emitted.status, emitted.statistics.states) == ("holds", direct.statistics.states)
