"""The sources of odd little protocols: each was once a wrong verdict of rounds, or an error."""

from __future__ import annotations

IMPORTS = """\
import functools
from typing import Any, NamedTuple

from plait import Message, Process, System, action, always, crash_stop, init, on, reachable, tagged
"""
LATE = """
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

"""
"""Takes a message of a round that it has left."""
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
    "reach": LATE
    + """
@reachable
def late(s):
    return any(p.old for p in s)

system = System([N()], properties=[late], rounds=["A"])
""",
    "keep": LATE
    + """
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
    "newborn_thinks": """
@tagged(phase="k", round="A")
class A(Message):
    k: int

class K(Process):
    s: int = 0

    @action(when=lambda self: self.s < 2)
    def silent(self):
        self.s += 1

class N(Process):
    n: int = 0
    got: int = 0

    @action(when=lambda self: self.id.index == 0 and self.n < 2)
    def go(self):
        self.n += 1
        self.send(N.pid(1), A(self.n))

    @on(A, where=lambda self, m: m.k > self.got)
    def take(self, m):
        self.got = m.k
        if m.k == 1:
            self.spawn(K)

@always
def fine(s):
    return all(k.s < 2 for k in s[K])

system = System([N(), N()], rounds=["A"], spare={K: 1}, properties=[fine])
""",
    "named_tuples": """
class Pt(NamedTuple):
    x: int
    y: int

@tagged(phase="k", round="A")
class A(Message):
    k: int
    v: Any

class N(Process):
    i: int
    x: Any = (1, 2)
    z: float = 0.0
    got: bool = False

    @action(when=lambda self: type(self.x) is tuple)
    def conv(self):
        self.x = Pt(1, 2)

    @action(when=lambda self: str(self.z) == "0.0")
    def neg(self):
        self.z = -0.0

    @on(A)
    def take(self, m):
        pass

@always
def fine(s):
    return all(type(p.x) is tuple for p in s[N])

@always
def fine2(s):
    return all(str(p.z) == "0.0" for p in s[N])

@reachable
def pt(s):
    return any(type(p.x) is Pt for p in s[N])

system = System([N(i=0), N(i=1)], rounds=["A"], properties=[fine, fine2, pt])
""",
    "merged_states": """
# the audit's key confuses Pt(1,2) with (1,2), and 0.0 with -0.0
class Pt(NamedTuple):
    x: int
    y: int

@tagged(phase="k", round="A")
class A(Message):
    k: int

class N(Process):
    x: Any = None
    d: int = 0

    @action(when=lambda self: self.x is None and self.id.index == 0)
    def start(self):
        self.x = (1, 2)
        self.d = 1

    @action(when=lambda self: self.id.index == 1 and self.d == 0)
    def go(self):
        self.d = 1
        self.send(N.pid(0), A(2))

    @on(A, where=lambda self, m: self.d < 2)
    def take(self, m):
        self.d = 3
        self.x = Pt(1, 2) if self.x is not None else (1, 2)

    @action(when=lambda self: self.d == 3 and type(self.x) is tuple)
    def late(self):
        self.d = 4
        self.send(N.pid(1), A(1))

@always
def fine(s):
    return True

system = System([N(), N()], rounds=["A"], properties=[fine])
""",
    "walrus": """
@tagged(phase="k", round="A")
class A(Message):
    k: int
    v: int

class N(Process):
    i: int
    done: int = 0
    mixed: bool = False

    @action(when=lambda self: self.i < 2 and self.done == 0)
    def go(self):
        self.done = 1
        self.send(N.pid(2), A(self.i + 1, self.i + 1))

    @on(A, quorum=2, where=lambda self, m: (p := m.v) > 0 and m.k == p)
    def take(self, ms):
        self.mixed = ms[0].k != ms[1].k

@always
def fine(s):
    return not any(p.mixed for p in s[N])

system = System([N(i=0), N(i=1), N(i=2)], rounds=["A"], properties=[fine])
""",
}
