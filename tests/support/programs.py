"""Random systems whose source uses callables as values, aliases, closures, iterators, reflection and operators.

`tests/support/sourced.py` makes plain programs. These use what an analysis of source can get wrong. A program has a few
statements, so that some field is often auxiliary although the others flow in unusual ways.
"""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Sequence

_TEMPLATE = """
import collections, contextlib, copy, dataclasses, functools, heapq, itertools, operator, sys
from dataclasses import dataclass
from typing import NamedTuple
from plait import *

class Note(Message):
    value: int

class Pair(NamedTuple):
    left: int
    right: int

@dataclass
class Box:
    value: int = 0
    items: list[int] = dataclasses.field(default_factory=list)
    def put(self, x):
        self.items.append(x)
    def into(self, xs, x):
        xs.append(x)
    def peek(self):
        return self.value
    @property
    def spill(self):
        self.items.append(self.value)
        return self.value
{special}
def inc(x):
    return (x + 1) % 3

def put(xs, x):
    xs.append(x)

def put_last(x, xs):
    xs.append(x)
    return x

def same(x):
    return x

def call(f, *args):
    return f(*args)

def stream(xs):
    for x in xs:
        yield x

@contextlib.contextmanager
def held(x):
    yield x

class Node(Process):
    a: int = {a}
    b: int = {b}
    c: int = {c}
    d: int = {d}
    e: int = 0
    maybe: object = None
    xs: list[int] = field(default_factory=list)
    ys: list[int] = field(default_factory=list)
    tags: set[int] = field(default_factory=set)
    table: dict[int, int] = field(default_factory=dict)
    box: Box = field(default_factory=Box)
    fuel: int = 1

    def helper(self, x):
        {helper}
        return x

    def pure(self, x):
        return (x + {constant}) % 3

    @property
    def double(self):
        return self.{doubled} * 2 % 3
{handlers}
    def _trim(self):
        self.xs = [x for x in self.xs if x in (0, 1, 2)][-2:]
        self.ys = [x for x in self.ys if x in (0, 1, 2)][-2:]
        self.box.items = self.box.items[-2:]

{properties}
system = System([Node(fuel={fuel}), Node(fuel={fuel1})], properties=[{names}])
"""

NUMBERS = ("a", "b", "c", "d", "e")
LISTS = ("xs", "ys")
SPECIAL = (
    "    def __eq__(self, other):\n        self.items.append(other)\n        return True\n",
    "    def __add__(self, x):\n        self.items.append(x)\n        return x\n",
    "    def __contains__(self, x):\n        self.items.append(x)\n        return x == 1\n",
    "    def __bool__(self):\n        self.items.append(self.value)\n        return True\n",
    "    def __iter__(self):\n        self.items.append(self.value)\n        return iter([self.value])\n",
    "    def __len__(self):\n        return self.value\n",
)


NUMBER = (
    "inc(<n>)",
    "(<n> + <n>) % 3",
    "len(<xs>) % 3",
    "sum(<xs>) % 3",
    "sum(x == <n> for x in <xs>) % 3",
    "max(<xs>, default=<n>)",
    "max([0, 1, 2], key=lambda x: x == <n>)",
    "sorted([<n>, 1])[0]",
    "(1 if <n> in <xs> else <n>)",
    "(<n> and <n>)",
    "self.table.get(<n>, 0)",
    "self.pure(<n>)",
    "self.double",
    "self.box.value",
    "Pair(<n>, 0).left",
    "Box(<n>).value",
    "int(<n> == <n>)",
    "[0, 1, 2][<n>]",
    "next(iter(<xs>), 0)",
    "int(str(<n>))",
    "int(any(x == <n> for x in <xs>))",
    "(z := <n>)",
    "int(isinstance(<n>, int))",
    "int(bool(<n>))",
)
ODD_NUMBER = (
    "functools.reduce(lambda p, q: (p + q) % 3, <xs>, <n>)",
    "functools.reduce(operator.add, <xs>, <n>) % 3",
    "(lambda x: (x + <n>) % 3)(1)",
    "call(inc, <n>)",
    "call(lambda x: x, <n>)",
    "getattr(self, '<name>')",
    "eval('self.<name>')",
    "self.helper(<n>)",
    "self.box.peek()",
    "self.box.spill",
    "operator.add(<n>, 1) % 3",
    "vars(self)['<name>']",
    "list(map(<f>, [<n>]))[0] or 0",
    "int(<n> in self.box)",
    "int(self.box == <n>)",
    "functools.partial(inc, <n>)()",
    "next(stream([<n>]))",
    "dataclasses.replace(self.box, value=<n>).value",
    "copy.copy(self.box).value",
    "(self.<name> if self.box else <n>)",
)
ITEMS = (
    "[x for x in <xs> if x != <n>]",
    "[(x + <n>) % 3 for x in <xs>]",
    "list(map(inc, <xs>))",
    "list(map(lambda x: (x + <n>) % 3, <xs>))",
    "list(filter(lambda x: x != <n>, <xs>))",
    "sorted(<xs>)",
    "sorted(<xs>, key=lambda x: x == <n>)",
    "list(reversed(<xs>))",
    "[*<xs>, <n>]",
    "[x for x, y in zip(<xs>, <xs>)]",
    "[i for i, x in enumerate(<xs>)]",
    "[<n>] * (<n>)",
    "(<xs> or [<n>])",
    "<xs>[:1]",
    "list({x: <n> for x in <xs>})",
    "same(<xs>)",
)
ODD_ITEMS = (
    "[x or 0 for x in map(<f>, <xs>)]",
    "[x for x in filter(<f>, <xs>)]",
    "sorted(<xs>, key=lambda x: (<f>)(x) or 0)",
    "list(itertools.chain(<xs>, [<n>]))",
    "list(itertools.takewhile(lambda x: x != <n>, <xs>))",
    "list(stream(<xs>))",
    "[f(x) or 0 for x in <xs> for f in [<f>]]",
    "[x for x in <xs> if (<f>)(x)]",
    "call(same, <xs>)",
    "copy.copy(<xs>)",
)
FUNCTION = (
    "<ys>.append",
    "self.tags.add",
    "self.box.put",
    "self.helper",
    "self.pure",
    "inc",
    "same",
    "bool",
    "lambda x: (x + <n>) % 3",
    "lambda x: <ys>.append(x)",
    "lambda x: self.tags.add(x) or <n>",
    "functools.partial(put, <ys>)",
    "functools.partial(put_last, xs=<ys>)",
    "self.table.setdefault",
    "self.table.get",
    "getattr(<ys>, 'append')",
    "<ys>.count",
)
STATEMENT = (
    "<t> = <n>",
    "<t> = <n>",
    "<t>, <t> = <n>, <n>",
    "<ys>.append(<n>)",
    "<ys> = list(<xs>)",
    "self.tags.add(<n>)",
    "self.tags.discard(<n>)",
    "self.tags |= {<n>}",
    "self.table[<n>] = <n>",
    "put(<ys>, <n>)",
    "put(x=<n>, xs=<ys>)",
    "self.maybe = <n>",
    "<t> = 0 if self.maybe is None else 1",
    "t = <ys>; t.append(<n>)",
    "t = [<ys>]; t[0].append(<n>)",
    "t = <ys>; t += [<n>]",
    "<ys>[:] = [<n>]",
    "<ys>.extend(<xs>)",
    "<ys>.sort()",
    "<ys>.reverse()",
    "del <ys>[:<n>]",
    "self.send(Node.pid(<i>), Note(<n>))",
    "<t> = self.choose([0, 1])",
    "assert <n> != 2 or self.fuel",
    "self.box.value = <n>",
    "self.box.items.append(<n>)",
    "self.box = Box(<n>)",
    "if (w := <n>):\n    <t> = w",
    "for i, x in enumerate(<xs>):\n    <t> = x",
    "for x in <xs>:\n    if x == <n>:\n        break\n    <t> = x",
    "match <n>:\n    case 1:\n        <t> = 1\n    case x:\n        <t> = x",
    "try:\n    <t> = <xs>[<n>]\nexcept IndexError:\n    <t> = 2",
    "if <n> == 1:\n    t = <ys>\nelse:\n    t = [<n>]\nt.append(<n>)",
)
ODD_STATEMENT = (
    "list(map(<f>, <xs>))",
    "any(map(<f>, <xs>))",
    "[*filter(<f>, <xs>)]",
    "sorted(<xs>, key=lambda x: 0 if (<f>)(x) else 1)",
    "max([<n>], key=<f>)",
    "f = <f>\nf(<n>)",
    "call(<f>, <n>)",
    "(<f>)(<n>)",
    "def g(x):\n    <ys>.append(x)\ng(<n>)",
    "def g(x):\n    return (x + <n>) % 3\n<t> = g(<n>)",
    "setattr(self, '<name>', <n>)",
    "setattr(self.box, 'value', <n>)",
    "exec('<t> = self.<name>')",
    "locals()['self'].<name> = <n>",
    "vars(self.box)['value'] = <n>",
    "sys._getframe().f_locals['self'].<name> = <n>",
    "self.__dict__['<name>'] = <n>",
    "self.box.put(<n>)",
    "self.box.into(<ys>, <n>)",
    "Box().into(<ys>, <n>)",
    "self.box.spill",
    "it = iter(<xs>); <n> in it; <ys> = list(it)",
    "it = iter([0, 1, 2]); next(it) if <n> else 0; <t> = next(it)",
    "it = (x for x in [0, 1, 2]); any(x == <n> for x in it); <ys> = list(it)",
    "list.append(<ys>, <n>)",
    "list(map(list.append, [<ys>], [<n>]))",
    "list(map(setattr, [self.box], ['value'], [<n>]))",
    "operator.iadd(<ys>, [<n>])",
    "heapq.heappush(<ys>, <n>)",
    "for p, q in zip([<ys>], [<n>]):\n    p.append(q)",
    "{}.setdefault(0, <ys>).append(<n>)",
    "(<ys> or <ys>).append(<n>)",
    "with held(<ys>) as h:\n    h.append(<n>)",
    "with contextlib.suppress(IndexError):\n    <t> = <xs>[<n>]",
    "p, *q = [<ys>, <ys>]\nq[0].append(<n>)",
    "match [<ys>]:\n    case [p]:\n        p.append(<n>)",
    "<n> in self.box",
    "self.box == <n>",
    "[self.box] == [<n>]",
    "self.box.items = <ys>; <ys> = []",
    "b = Box(0, <ys>); b.put(<n>); b = 0",
    "<t> = len(self.box) if hasattr(Box, '__len__') else <n>",
    "for _ in range(<n>):\n    <t> = (<t> + 1) % 3",
)


TESTS = (
    "p.<name> != <k>",
    "<k> not in p.xs",
    "<k> not in p.ys",
    "<k> not in p.tags",
    "p.box.value != <k>",
    "len(p.ys) < 2",
    "<k> not in p.box.items",
    "<k> not in p.table",
)


class Writer:
    """Writes one program. In the tables, <n> is a number, <xs> a list, <f> a function, <t> and <ys> a field to write."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.read = rng.sample(NUMBERS, rng.choice((1, 2)))
        self.received = False
        self.odd = rng.choice((0, 1, 1, 2))
        """How many more unusual constructs the program may have. An analysis must give up on many of them."""

    def either(self, plain: Sequence[str], odd: Sequence[str], chance: float) -> str:
        """A plain construct, or an unusual one."""
        if self.odd > 0 and self.rng.random() < chance:
            self.odd -= 1
            return self.rng.choice(odd)
        return self.rng.choice(plain)

    def field(self) -> str:
        """A field to read: one or two are read more than the others."""
        return f"self.{self.rng.choice(self.read if self.rng.random() < 0.8 else NUMBERS)}"

    def filled(self, template: str, depth: int) -> str:
        """A template with random parts."""
        parts = {
            "<n>": lambda: self.number(depth),
            "<xs>": lambda: self.items(depth),
            "<f>": lambda: self.filled(self.rng.choice(FUNCTION), depth + 1),
            "<t>": lambda: f"self.{self.rng.choice(NUMBERS)}",
            "<ys>": lambda: f"self.{self.rng.choice(LISTS)}",
            "<name>": lambda: self.rng.choice(NUMBERS),
            "<k>": lambda: str(self.rng.randint(0, 2)),
            "<i>": lambda: str(self.rng.randint(0, 1)),
        }
        return re.sub("<[a-z]+>", lambda found: parts[found.group()](), template)

    def number(self, depth: int = 0) -> str:
        """An expression for a number from 0 to 2."""
        if depth > 2 or self.rng.random() < 0.5:
            simple = [str(self.rng.randint(0, 2)), self.field(), self.field()]
            return self.rng.choice([*simple, *(["m.value"] * self.received)])
        return self.filled(self.either(NUMBER, ODD_NUMBER, 0.3), depth + 1)

    def items(self, depth: int = 0) -> str:
        """An expression for a list of numbers."""
        if depth > 2 or self.rng.random() < 0.5:
            return self.filled(self.rng.choice(("<ys>", "[<n>]", "[0, 1]", "list(self.table)", "self.box.items")), 3)
        return self.filled(self.either(ITEMS, ODD_ITEMS, 0.3), depth + 1)

    def statement(self, indent: str, depth: int = 0) -> str:
        if depth < 2 and self.rng.random() < 0.2:
            return (
                f"{indent}if {self.number()} == {self.rng.randint(0, 2)}:\n{self.statement(indent + '    ', depth + 1)}"
            )
        template = self.either(STATEMENT, ODD_STATEMENT, 0.5)
        return textwrap.indent(self.filled(template, 1), indent) + "\n"

    def handler(self, name: str, received: bool) -> str:
        self.received = received
        guard = f"self.fuel > 0{self.rng.choice(('', '', f' and {self.field()} != 2'))}"
        head = f"@on(Note, where=lambda self, m: {guard})" if received else f"@action(when=lambda self: {guard})"
        body = "".join(self.statement(" " * 8) for _ in range(self.rng.randint(1, 3)))
        if self.rng.random() < 0.6:
            body = f"        self.{self.rng.choice((*NUMBERS, *self.read * 4))} = self.choose([0, 1])\n{body}"
        trim = "        self._trim()\n" if self.rng.random() < 0.2 else ""
        parameters = "self, m" if received else "self"
        return f"    {head}\n    def {name}({parameters}):\n        self.fuel -= 1\n{body}{trim}"

    def property(self, number: int) -> str:
        kind = self.rng.choice(("always", "always", "final"))
        test = self.filled(self.rng.choice(TESTS), 0)
        return f"@{kind}\ndef prop{number}(s):\n    return all({test} for p in s[Node])\n"


def random_program(rng: random.Random) -> str:
    """The source of a random system."""
    write = Writer(rng)
    handlers = [write.handler("first", False), write.handler("second", False)]
    if rng.random() < 0.6:
        handlers.append(write.handler("note", True))
    write.received = False
    count = rng.randint(1, 2)
    return _TEMPLATE.format(
        **{name: rng.randint(0, 1) for name in "abcd"},
        special=rng.choice(SPECIAL) if rng.random() < 0.15 else "",
        helper=write.filled(rng.choice(("self.xs.append(x)", "self.tags.add(x)", "<t> = x", "pass")), 0),
        constant=rng.randint(0, 2),
        doubled=rng.choice(NUMBERS),
        handlers="\n".join(handlers),
        properties="\n".join(write.property(i) for i in range(count)),
        names=", ".join(f"prop{i}" for i in range(count)),
        fuel=rng.randint(2, 3),
        fuel1=rng.randint(0, 1),
    )
