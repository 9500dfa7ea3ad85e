"""The analysis of what depends on which field: one case per rule."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from plait.check.reduce.decomposition import Decomposition, decompose
from plait.ir.definition import definition
from plait.model.loader import load
from plait.model.process import Process, action
from plait.model.properties import always
from plait.model.system import System
from tests.support.sourced import compiled

MODEL = """
import functools
import heapq
import operator
from dataclasses import dataclass
from plait import *

TABLE = [1, 2]
CACHE = []

class Note(Message):
    value: int
    items: tuple[int, ...] = ()

@dataclass(frozen=True)
class Mark:
    value: int

@dataclass
class Diary:
    pages: list[int]
    def append(self, page):
        assert len(self.pages) < 3

def twice(value):
    return [value, value]

def remember(values, value):
    values.append(value)

def first(values):
    return values[0]

class Base(Process):
    def hook(self):
        return 0

class P(Base):
    a: int = 0
    b: int = 0
    c: int = 0
    maybe: int | None = None
    log: list[int] = field(default_factory=list)
    old: list[int] = field(default_factory=list)
    map: dict[int, int] = field(default_factory=dict)
    diary: Diary = field(default_factory=lambda: Diary([]))
    wrong: int = None
    LIMIT = 3

    @property
    def size(self):
        return self.b

    def helper(self, value):
        self.log.append(value)

    def get(self):
        return self.b

    def hook(self):
        return self.b

    @staticmethod
    def plus(value):
        return value + 1

{extra}
    @on(Note{guard})
    def handle(self, m):
{body}

@{kind}
def prop(s):
    return all(p.a < 9 for p in s[P])

system = System([P(), P()], properties=[prop])
"""
FIELDS = {"b", "c", "maybe", "log", "old", "map", "diary", "wrong"}
"""All but `a`, which the property reads."""


def facts(body: str, *, guard: str = "", kind: str = "always", extra: str = "") -> Decomposition:
    source = MODEL.format(
        body=textwrap.indent(textwrap.dedent(body), " " * 8),
        guard=guard,
        kind=kind,
        extra=textwrap.indent(textwrap.dedent(extra), " " * 4),
    )
    return decompose(compiled(source).system, "auto")


def relevant(body: str, **more: str) -> set[str]:
    """The fields besides `a` that matter to a handler with this body."""
    found = {f.name for f in facts(body, **more).fields if not f.auxiliary}
    assert "a" in found
    return found - {"a"}


CASES: dict[str, tuple[str, str]] = {
    # A handler's body, and the fields that become relevant.
    "nothing": ("pass", ""),
    "only written": ("self.b = m.value\nself.log.append(m.value)\nself.map[m.value] = 1", ""),
    "counted": ("self.b += 1", ""),
    "copied to auxiliary": ("self.b = self.c\nself.log.append(self.b)\nself.old = list(self.log)", ""),
    "data": ("self.a = self.b", "b"),
    "data, in two steps": ("self.a = self.b\nself.b = self.c", "b c"),
    "through a variable": ("x = self.b\ny = x + 1\nself.a = y", "b"),
    "sent": ("self.send(m.sender, Note(self.b))", "b"),
    "receiver": ("self.send(self.ids(P)[self.b], Note(1))", "b"),
    "broadcast": ("self.broadcast(P, Note(self.b))", "b"),
    "announced": ("self.announce((self.b, 1))", "b"),
    "chosen from": ("self.c = self.choose([self.b, 1])", "b"),
    "asserted": ("assert self.b < 9, self.c", "b c"),
    "raised": ("if self.b > 3:\n    raise ValueError", "b"),
    "control": ("if self.b:\n    self.a = 1", "b"),
    "control of an auxiliary field": ("if self.b:\n    self.c = 1\nelse:\n    self.log.append(2)", ""),
    "control, nested": ("if self.b:\n    if self.c:\n        self.send(m.sender, Note(1))", "b c"),
    "conditional expression": ("self.a = 1 if self.b else 2", "b"),
    "chain of comparisons": ("0 < self.b < self.choose([1, 2])", "b"),
    "and": ("self.b and self.send(m.sender, Note(1))", "b"),
    "early return": ("if self.b:\n    return\nself.a = 1", "b"),
    "early return, nothing after it": ("self.a = 1\nif self.b:\n    return\nself.c = 1", ""),
    "early return in a branch": ("if m.value:\n    if self.b:\n        return\nself.a = 1", "b"),
    "loop": ("for x in self.log:\n    self.a = 1", "log"),
    "loop variable": ("for x in self.log:\n    self.a = x", "log"),
    "loop, auxiliary": ("for x in self.log:\n    self.old.append(x)", ""),
    "loop with break": ("for x in (1, 2):\n    self.a += 1\n    if self.b == x:\n        break", "b"),
    "loop with continue": ("for x in (1, 2):\n    if self.b == x:\n        continue\n    self.a += 1", "b"),
    "while may not end": ("while self.b < 3:\n    self.b += 1", "b"),
    "loop over pairs": ("for k, v in self.map.items():\n    self.b = v", ""),
    "loop over numbers": ("for i, x in enumerate(self.log):\n    self.b = i", ""),
    "unpacking may raise": ("x, y = self.log", "log"),
    "swap": ("self.b, self.c = self.c, self.b", ""),
    "swap with the relevant": ("self.a, self.b = self.b, self.c", "b c"),
    "starred": ("x, *y = (1, self.b)\nself.c = x", "b"),
    "starred display": ("self.log = [*self.log, m.value][-2:]", ""),
    "augmented": ("self.a += self.b", "b"),
    "augmented list": ("self.log += [self.b]", ""),
    "augmented division": ("self.b //= self.c", "b c"),
    "modulo of a constant": ("self.b = (self.b + 1) % 3", ""),
    "modulo of a field": ("self.b = m.value % self.c", "c"),
    "alias": ("x = self.log\nx.append(self.b)\nself.a = len(self.log)", "log b"),
    "alias, the other way": ("x = self.log\nself.log.append(self.b)\nself.a = len(x)", "log b"),
    "alias of two fields": (
        "x = self.log if m.value else self.old\nx.append(self.b)\nself.a = len(self.old)",
        "old b",
    ),
    "alias in a container": ("x = [self.log]\nfor y in x:\n    y.append(self.b)\nself.a = len(self.log)", "log b x"),
    "no alias after a copy of numbers": ("self.old = [1, 2]\nself.old.append(self.b)\nself.a = len(self.log)", "log"),
    "helper method": ("self.helper(self.b)", ""),
    "helper method, relevant": ("self.helper(self.b)\nself.a = len(self.log)", "log b"),
    "helper method under a test": ("if self.b:\n    self.helper(1)\nself.a = len(self.log)", "log b"),
    "helper's result": ("self.a = self.get()", "b"),
    "helper's result, unused": ("self.get()", ""),
    "overridden helper": ("self.a = self.hook()", "b"),
    "super": ("self.a = super().hook()", ""),
    "static method": ("self.c = P.plus(1)", ""),
    "property of the class": ("self.a = self.size", "b"),
    "getattr": ("self.a = getattr(self, 'b')", "b"),
    "class attribute": ("self.b = self.LIMIT", ""),
    "try": ("try:\n    self.b = self.c\nexcept ValueError:\n    pass", "c"),
    "comprehension": ("self.a = len([x for x in self.log])", "log"),
    "comprehension's test": ("self.a = len([x for x in (1, 2) if x != self.b])", "b"),
    "comprehension, auxiliary": ("self.old = [self.b + 1 for x in (1, 2)]", ""),
    "comprehension over unknown values": ("self.old = [x + self.b for x in self.log]", "b log"),
    "lambda's own parameter": ("x = 1\nself.old = list(map(lambda x: x + 1, self.log))", "log"),
    "rebound by a pattern": ("x = 1\nmatch self.maybe:\n    case x:\n        self.b = x + 1", "maybe"),
    "generator": ("self.a = any(x == self.b for x in (1, 2))", "b"),
    "lambda": ("self.a = max((1, 2), key=lambda x: self.map.get(x, 0) == x)", "map"),
    "lambda, auxiliary": ("self.old = list(map(lambda x: x, self.log))", ""),
    "walrus": ("if (x := self.b) > 1:\n    self.a = x", "b"),
    "walrus, auxiliary": ("if (x := self.b) > 1:\n    self.c = x", ""),
    "match": ("match self.b:\n    case 1:\n        self.a = 1", "b"),
    "match, capture": ("match self.b:\n    case x:\n        self.a = x", "b"),
    "match, auxiliary": ("match self.b:\n    case 1 | 2:\n        self.c = 1", ""),
    "match of a sequence, auxiliary": ("match self.log:\n    case [1, x, *y]:\n        self.b = x", ""),
    "match of a sequence": ("match self.log:\n    case [1, x, *y]:\n        self.a = x", "log"),
    "match with guard": ("match m.value:\n    case 1 if self.b:\n        self.a = 1", "b"),
    "delete": ("del self.map[self.b]", "map b"),
    "variable without a value": ("if self.b:\n    x = 1\nself.c = x", "b"),
    "variable in both branches": ("if self.b:\n    x = 1\nelse:\n    x = 2\nself.c = x", ""),
    "subscript": ("self.b = self.log[0]", "log"),
    "slice": ("self.log = self.log[-2:]", ""),
    "pop": ("self.log.pop()", "log"),
    "get": ("self.b = self.map.get(self.c, 0)", ""),
    "may be None": ("self.b = self.maybe + 1", "maybe"),
    "ordering of what may be None": ("self.b = self.maybe < 3", "maybe"),
    "equality of what may be None": ("self.b = self.maybe == 3", ""),
    "a container of the user's": ("self.diary.append(1)", "diary"),
    "annotation that is not meant": ("self.c = self.wrong + 1", "wrong"),
    "attribute of a value": ("self.b = self.maybe.real", "maybe"),
    "constructor": ("self.old = [Mark(self.b)]", ""),
    "function": ("self.old = twice(self.b)", ""),
    "function, relevant": ("self.a = len(twice(self.b))", "b"),
    "function that changes": ("remember(self.log, self.b)\nself.a = len(self.log)", "log b"),
    "function that may raise": ("self.b = first(self.log)", "log"),
    "unknown function": ("self.b = operator.index(self.c)", "c"),
    "library function that changes": ("heapq.heappush(self.log, self.b)", "log b"),
    "values of two types": ("if self.b:\n    x = 1\nelse:\n    x = 'a'\nself.c = x + 1", "b"),
    "field of two types": ("self.c = 'a' if self.b else 1\nself.old.append(self.c + 1)", "b c"),
    "unhashable": ("x = [] if self.b else 0\nself.map[x] = 1", "b"),
    "membership": ("self.c = 1 in self.maybe", "maybe"),
    "loop over what may be None": ("for x in self.maybe:\n    self.c = x", "maybe"),
    "loop that changes its dict": ("for x in self.map:\n    self.map[1] = 2", "map"),
    "mapped function": ("self.old = list(map(twice, self.log))", ""),
    "sorted by a field": ("self.a = sorted((1, 2), key=lambda x: x == self.b)[0]", "b"),
    "formatted": ("self.log.append(f'{self.b}')", ""),
    "formatted with a specification": ("self.log.append(f'{self.b:.2f}')", "b"),
}
ESCAPES = {
    # What is not understood makes every field relevant.
    "self is passed on": "twice(self)",
    "self is stored": "x = self",
    "getattr of a computed name": "getattr(self, 'b' * m.value)",
    "setattr": "setattr(self, 'b', 1)",
    "vars": "vars(self).clear()",
    "__dict__": "self.__dict__['b'] = 1",
    "nested function": "def f():\n    return self.b\nself.c = 1",
    "kept lambda": "f = lambda: self.b\nself.c = f()",
    "lambda that changes": "list(map(lambda x: self.log.append(x), (1, 2)))",
    "lambda that sends": "list(map(lambda x: self.send(m.sender, Note(x)), (1, 2)))",
    "generator that sends": "x = (self.send(m.sender, Note(x)) for x in (1, 2))\nif self.b:\n    list(x)",
    "method as a value": "x = self.get",
    "global": "global CACHE\nCACHE = self.b",
    "global list": "CACHE[0] = self.b",
    "field that shares a global": "self.log = TABLE\nself.log.append(self.b)",
    "deleted field": "del self.b",
    "undeclared field": "self.nothing = 1",
    "unknown method": "self.nothing()",
    "function as a value": "f = twice\nself.c = 1",
    "bound method as a value": "f = self.log.append\nself.c = 1",
    "iterator in a variable": "x = iter((1, 2))\nself.c = 1",
    "method that is mapped": "list(map(self.log.append, (1, 2)))",
    "wrong number of arguments": "if self.b:\n    Mark()",
    "eval": "eval('1')",
    "import": "import operator as o",
    "with": "with functools.partial(m.value) as x:\n    self.b = self.c",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_rule(name: str) -> None:
    body, expected = CASES[name]
    found = relevant(body)
    assert found == set(expected.split()) & FIELDS


@pytest.mark.parametrize("name", ESCAPES)
def test_what_is_not_understood(name: str) -> None:
    assert relevant(ESCAPES[name]) == FIELDS


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        (", where=lambda self, m: self.b == m.value", {"b"}),
        (", where=lambda self, m: m.value in self.map", {"map"}),
        (", where=lambda self, m: m.value > 1", set()),
        (", where=lambda self, m: self.get() == 1", {"b"}),
        (", quorum=lambda self: 1 + self.b, where=lambda self, m: self.c == 1", {"b", "c"}),
        (", where=functools.partial(lambda x, self, m: True, 1)", FIELDS),
    ],
)
def test_guards(guard: str, expected: set[str]) -> None:
    assert relevant("pass", guard=guard) == expected


def test_a_parameter_for_messages_that_is_rebound() -> None:
    assert relevant("self.c = len(m)", guard=", quorum=1") == set()
    assert relevant("if self.b:\n    m = 5\nself.c = len(m)", guard=", quorum=1") == {"b"}


def test_classes_that_intercept_attributes_are_not_understood() -> None:
    assert relevant("pass", extra="def __setattr__(self, name, value):\n    self.__dict__[name] = value") == FIELDS
    assert relevant("pass", extra="def __getattr__(self, name):\n    return 0") == FIELDS


def test_an_override_is_analysed_for_its_own_class() -> None:
    source = MODEL.format(body="        self.a = self.hook()", guard="", kind="always", extra="")
    source += (
        "\nclass Q(P):\n    def hook(self):\n        return self.c\nsystem = System([P(), Q()], properties=[prop])\n"
    )
    found = decompose(compiled(source).system, "auto")
    assert {f.label for f in found.fields if not f.auxiliary} == {"P.a", "P.b", "Q.a", "Q.c"}


def test_final_properties_ask_whether_a_step_changes_anything() -> None:
    toggle = "@action\ndef toggle(self):\n    self.b = 1 - self.b"
    assert relevant("pass", extra=toggle) == set()
    assert relevant("pass", extra=toggle, kind="final") == {"b"}
    # A step that takes a message away changes the state, unless it sends the message to itself again.
    assert relevant("self.b = 1 - self.b", kind="final") == set()
    assert relevant("self.b = 1 - self.b\nself.send(self.id, Note(m.value))", kind="final") == {"b"}


def test_the_decomposition_is_relative_to_the_properties() -> None:
    system = compiled(MODEL.format(body="        self.b = self.a", guard="", kind="always", extra="")).system
    assert {f.name for f in decompose(system, "auto").fields if not f.auxiliary} == {"a"}
    system.properties = []
    assert not any(not f.auxiliary for f in decompose(system, "auto").fields)


def test_a_class_without_source_is_all_relevant() -> None:
    namespace: dict[str, Any] = {}
    source = "class Dark(Process):\n    n: int = 0\n    @action\n    def tick(self): self.n += 1\n"
    code = compile(source, "<nowhere>", "exec", dont_inherit=True)
    exec(code, {"Process": Process, "action": action, "__name__": "nowhere"}, namespace)
    (field,) = decompose(System([namespace["Dark"]()]), "auto").fields
    assert field.reason == ("the source of Dark.tick is not available",)


class Reader(Process):
    """Fields that properties read in various ways."""

    one: int = 0
    two: int = 0
    three: int = 0


def third(p: Any) -> Any:
    return p.three


def test_properties_are_followed_into_what_they_call() -> None:
    def read(predicate: Any) -> set[str]:
        return {f.name for f in decompose(System([Reader()], properties=[predicate]), "auto").fields if not f.auxiliary}

    assert read(always(lambda s: all(p.one == 0 for p in s[Reader]))) == {"one"}
    assert read(always(lambda s: all(third(p) == 0 for p in s[Reader]))) == {"three"}
    assert read(always(lambda s: all(getattr(p, "two") == 0 for p in s[Reader]))) == {"two"}  # noqa: B009
    assert read(always(lambda s: all(getattr(p, str(p.id)) for p in s[Reader]))) == {"one", "two", "three"}
    assert read(always(lambda s: len(s.messages) == 0)) == set()
    inner = always(lambda s: all(p.one == 0 for p in s[Reader]))
    assert read(always(lambda s: inner(s) and True, name="outer")) == {"one"}
    assert read(always(lambda s: all("{0.one}".format(p) for p in s[Reader]))) == {"one", "two", "three"}  # noqa: UP030,UP032
    assert read(always(print)) == {"one", "two", "three"}


def test_reasons_are_chains() -> None:
    found = {f.label: f.reason for f in decompose(load("paxos", {"quorum": "false"}), "auto").fields}
    count = found["CountingProposer.count"]
    assert count[0].startswith("a test in CountingProposer.read (line ")
    assert count[-1].startswith("sends Write in AnyProposer.write (line ")
    assert found["CountingLearner.votes"][0] == "CountingLearner.learned"
    assert found["CountingLearner.votes"][-1].startswith("property agreement reads it")
    assert found["Acceptor.promised"] == ("the guard of Acceptor.promise",)


def test_lambdas_on_one_line_are_told_apart() -> None:
    first, second = (lambda self: self.a), (lambda self: self.b)
    tree = definition(first), definition(second)  # type: ignore[arg-type]
    assert [t is not None and t.body.attr for t in tree] == ["a", "b"]  # type: ignore[union-attr]
