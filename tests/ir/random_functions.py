"""Random Python functions, as source, over the language that is lowered.

Expressions have types, so that most functions run to their end; now and then one has the wrong type. A set is only used
where its order cannot be seen.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from plait.kernel.pid import Pid
from tests.ir.values import Box, Card, Color, Point, Tag

TYPES = ("int", "bool", "str", "tuple", "list", "set", "dict", "color", "point", "card", "box", "pid", "float", "opt")
HEADER = """\
import copy
import functools
import itertools
import math
import operator
from tests.ir.values import *
from fractions import Fraction
from collections import Counter, OrderedDict, defaultdict, deque
from tests.ir.values import Node

"""


def value(kind: str, r: random.Random, depth: int = 2) -> Any:
    """A random value of a type."""
    if kind == "int":
        return r.choice([r.randint(-4, 6), r.randint(-4, 6), r.randint(-4, 6), 10**9, -(2**40)])
    if kind == "bool":
        return r.random() < 0.5
    if kind == "str":
        return r.choice(["", "a", "ab", "Ba c", "x,y", "12", "zé", "aab"])
    if kind == "tuple":
        return tuple(r.randint(-3, 5) for _ in range(r.randint(0, 4)))
    if kind == "list":
        return [r.randint(-3, 5) for _ in range(r.randint(0, 4))]
    if kind == "set":
        return {r.randint(-3, 5) for _ in range(r.randint(0, 4))}
    if kind == "dict":
        return {r.randint(-2, 3): r.randint(-3, 5) for _ in range(r.randint(0, 3))}
    if kind == "color":
        return r.choice(list(Color))
    if kind == "point":
        return Point(r.randint(-2, 3), r.randint(-2, 3))
    if kind == "card":
        return Card(r.randint(0, 3), r.choice("sh"), tuple(r.randint(0, 2) for _ in range(r.randint(0, 2))))
    if kind == "tag":
        return Tag(r.randint(0, 3))
    if kind == "box":
        return Box(r.randint(0, 3), [r.randint(0, 3) for _ in range(r.randint(0, 3))])
    if kind == "pid":
        return Pid("Node", r.randint(0, 2))
    if kind == "float":
        return r.choice([0.0, -0.0, 0.5, -1.5, 2.0, 1e300])
    return None if r.random() < 0.4 else r.randint(-3, 5)


class Writer:
    """Writes one function."""

    types: Sequence[str] = TYPES
    mutable: Sequence[str] = ("list", "set", "dict", "box")

    def __init__(self, r: random.Random, name: str) -> None:
        self.r = r
        self.name = name
        self.lines: list[str] = []
        self.count = 0
        self.in_loop = 0
        self.budget = 40
        self.functions: list[tuple[str, int]] = []
        """Nested functions of ints, with their numbers of parameters."""
        self.scopes: list[dict[str, str]] = []

    def fresh(self, kind: str) -> str:
        self.count += 1
        # Names of built-in functions and of globals, too: they are shadowed.
        return f"{kind[0]}{self.count}" if self.r.random() < 0.93 else self.r.choice(["sum", "PRIMES", "item", "twice"])

    def variables(self, kind: str) -> list[str]:
        found: dict[str, str] = {}
        for scope in self.scopes:
            found |= scope
        return [name for name, of in found.items() if of == kind]

    def known(self, name: str) -> bool:
        return not any(name in scope for scope in self.scopes)

    # -- expressions -----------------------------------------------------------------------------------------------

    def expr(self, kind: str, depth: int = 3) -> str:
        r = self.r
        if r.random() < 0.015:
            kind = r.choice(self.types)  # the wrong type
        names = self.variables(kind)
        if names and (depth <= 0 or r.random() < 0.3):
            return r.choice(names)
        made: Callable[[int], str] = getattr(self, f"{kind}_")
        return made(depth)

    def any_(self, depth: int) -> str:
        return self.expr(self.r.choice(self.types), depth)

    def pick(self, options: list[Callable[[], str]]) -> str:
        return self.r.choice(options)()

    def int_(self, d: int) -> str:
        r, e = self.r, self.expr
        if d <= 0:
            return str(r.randint(-3, 6))
        n = d - 1
        b = self.builtin
        options: list[Callable[[], str]] = [
            lambda: str(r.randint(-3, 6)),
            lambda: f"({e('int', n)} {r.choice('+-')} {e('int', n)})",
            lambda: f"({e('int', n)} * {r.choice([str(r.randint(-3, 9)), '(' + e('int', n) + ' % 9)'])})",
            lambda: f"({e('int', n)} {r.choice(['//', '%'])} {r.choice([e('int', n), str(r.choice([-3, -2, 2, 3]))])})",
            lambda: f"({e('int', n)} {r.choice('&|^')} {e('int', n)})",
            lambda: f"({e('int', n)} {r.choice(['<<', '>>'])} {r.randint(0, 4)})",
            lambda: f"(-{e('int', n)})",
            lambda: f"(~{e('int', n)})",
            lambda: f"({e('int', n)} + {e('bool', n)})",
            lambda: f"(({e('int', n)} % 9 - 2) ** {r.randint(0, 3)})",
            lambda: b("abs", e("int", n)),
            lambda: b("len", e(r.choice(["tuple", "list", "set", "dict", "str"]), n)),
            lambda: b("sum", self.ints(n)),
            lambda: b(r.choice(["min", "max"]), f"{self.ints(n)}, default={e('int', 0)}"),
            lambda: b(r.choice(["min", "max"]), f"{e('int', n)}, {e('int', n)}"),
            lambda: b("max", f"{self.ordered(n)}, key=lambda k: (k % 3, {e('int', 0)}), default=0"),
            lambda: f"next(({e('int', 1)} for {self.target()} in {self.ordered(n)} if {e('bool', 1)}), {e('int', 0)})",
            lambda: f"{e('tuple', n)}[{r.randint(-3, 2)}]",
            lambda: f"{e('list', n)}[{r.randint(-2, 1)}]",
            lambda: f"{e('dict', n)}.get({e('int', n)}, {e('int', 0)})",
            lambda: f"({e('int', n)} if {e('bool', n)} else {e('int', n)})",
            lambda: f"({e('opt', n)} or {e('int', n)})",
            lambda: f"{e('point', n)}.{r.choice(['x', 'y', 'size'])}",
            lambda: f"{e('point', n)}[{r.choice([0, 1, -1])}]",
            lambda: f"{e('card', n)}.rank",
            lambda: f"{e('card', n)}.best({r.choice(['', 'least=' + e('int', 0)])})",
            lambda: f"Card.double({e('int', n)})",
            lambda: f"{e('card', n)}.LIMIT",
            lambda: f"{e('box', n)}.{r.choice(['number', 'total'])}",
            lambda: f"{e('box', n)}.put({e('int', 0)})",
            lambda: f"{e('color', n)}.value",
            lambda: f"{e('pid', n)}.index",
            lambda: (
                f"twice({e('int', n)}{r.choice(['', ', 3', ', plus=' + e('int', 0)])})" if self.known("twice") else "1"
            ),
            lambda: f"factorial({e('int', n)} % 6)",
            lambda: f"largest({', '.join(e('int', 0) for _ in range(r.randint(0, 3)))})",
            lambda: f"largest(*{e('tuple', n)})" if r.random() < 0.2 else "2",
            lambda: f"functools.reduce(lambda a, b: a {r.choice('+-^')} b, {e('list', n)}, {e('int', 0)})",
            lambda: f"apply(lambda q: q {r.choice('+-')} {e('int', 0)}, {e('int', n)})",
            lambda: f"{e('tuple', n)}.count({e('int', n)})",
            lambda: f"{e('str', n)}.find({e('str', 0)})",
            lambda: r.choice(["SIZES['small']", "SIZES['large']"]),
            lambda: f"divmod({e('int', n)}, {r.choice([2, -3, 4])})[{r.randint(0, 1)}]",
            lambda: f"int({e('bool', n)})",
            lambda: b("sum", f"{self.ordered(n)}, {e('int', 0)}"),
            lambda: f"(lambda m, k={e('int', 0)}: m * k)({e('int', n)})",
            lambda: f"sorted({e('dict', n)}.items(), key=operator.itemgetter(1))[0][{r.randint(0, 1)}]",
            lambda: f"{e('list', n)}.index({e('int', n)})",
            lambda: f"max([{e('point', 0)}, {e('point', 0)}], key=operator.attrgetter('y')).x",
            lambda: f"len({e('tuple', n)}[::{r.choice([-1, 2, -2])}])",
            lambda: f"math.prod(k % 5 for k in {e('tuple', n)})",
            lambda: f"round({e('int', n)})",
            lambda: f"math.gcd({e('int', n)}, {e('int', n)})",
            lambda: (
                f"sum(itertools.filterfalse(lambda k: k {r.choice(['>', '=='])} {e('int', 0)}, {e('list', n)}))"
                if self.known("sum")
                else "7"
            ),
            lambda: f"[*map(twice, {e('list', n)})][0]" if self.known("twice") else "6",
            lambda: f"operator.{r.choice(['add', 'sub', 'and_'])}({e('int', n)}, {e('int', n)})",
            lambda: f"({self.walrus()} := {e('int', n)})" if self.in_statement() else "4",
        ]
        for function, parameters in self.functions:
            options.append(lambda f=function, p=parameters: f"{f}({', '.join(e('int', 0) for _ in range(p))})")  # type: ignore[misc]
        return self.pick(options)

    def in_statement(self) -> bool:
        return len(self.scopes) == 1 and bool(self.variables("int"))

    def walrus(self) -> str:
        return self.r.choice(self.variables("int"))

    def builtin(self, name: str, arguments: str) -> str:
        return f"{name}({arguments})" if self.known(name) else "5"

    def bool_(self, d: int) -> str:
        r, e = self.r, self.expr
        if d <= 0:
            return r.choice(["True", "False"])
        n = d - 1
        kind = r.choice(self.types)
        other = kind if r.random() < 0.8 else r.choice(self.types)
        ordered = r.choice(["int", "str", "tuple", "list", "point", "card", "float", "pid"])
        return self.pick(
            [
                lambda: r.choice(["True", "False"]),
                lambda: f"({e(kind, n)} {r.choice(['==', '!='])} {e(other, n)})",
                lambda: f"({e(ordered, n)} {r.choice(['<', '<=', '>', '>='])} {e(ordered, n)})",
                lambda: f"({e('int', n)} < {e('int', n)} <= {e('int', n)})",
                lambda: (
                    f"({e('int', n)} {r.choice(['in', 'not in'])} {e(r.choice(['tuple', 'list', 'set', 'dict']), n)})"
                ),
                lambda: f"({e('str', 0)} in {e('str', n)})",
                lambda: f"({e('bool', n)} {r.choice(['and', 'or'])} {e('bool', n)})",
                lambda: f"(not {e(kind, n)})",
                lambda: f"({e('opt', n)} is {r.choice(['', 'not '])}None)",
                lambda: f"({e('color', n)} is {e('color', n)})",
                lambda: f"{r.choice(['any', 'all'])}({e('bool', 1)} for {self.target()} in {self.ints(n)})",
                lambda: (
                    f"isinstance({e(kind, n)}, {r.choice(['int', 'bool', '(str, tuple)', 'Point', 'Card | Box', 'Color', 'dict'])})"
                ),
                lambda: f"{e('set', n)} {r.choice(['<=', '<', '>=', '=='])} {e('set', n)}",
                lambda: f"{e('set', n)}.{r.choice(['issubset', 'isdisjoint'])}({e(r.choice(['set', 'list']), n)})",
                lambda: f"{e('str', n)}.{r.choice(['startswith', 'endswith'])}({e('str', 0)})",
                lambda: f"{e('color', n)}.warm",
                lambda: f"({e('card', n)} == Tag({e('int', 0)}))",
                lambda: f"bool({e(kind, n)})",
                lambda: f"({e('int', n)} in {e('dict', n)}.values())",
                lambda: f"({e('int', n)} in (k * k for k in {self.ordered(n)}))",
                lambda: f"({e(kind, n)} in [{e(kind, 0)}, {e(other, 0)}])",
                lambda: f"({e(kind, n)} == {e(kind, n)} != {e(other, 0)})",
                lambda: f"(type({e('card', n)}) is {r.choice(['Card', 'Tag'])})",
                lambda: f"({e('opt', n)} == {e('opt', n)})",
            ]
        )

    def str_(self, d: int) -> str:
        r, e = self.r, self.expr
        plain = repr(value("str", r))
        if d <= 0:
            return plain
        n = d - 1
        return self.pick(
            [
                lambda: plain,
                lambda: f"({e('str', n)} + {e('str', n)})[:30]",
                lambda: f"({e('str', n)} * {r.randint(-1, 3)})[:20]",
                lambda: f"{e('str', n)}.{r.choice(['upper', 'lower', 'strip'])}()",
                lambda: (
                    f"{e('str', n)}[{r.choice(['', '1', '-2'])}:{r.choice(['', '2', '-1'])}{r.choice(['', ':2', ':-1'])}]"
                ),
                lambda: f"str({e(r.choice(['int', 'bool', 'str', 'tuple', 'list', 'opt']), n)})",
                lambda: f"','.join(str(k) for k in {self.ordered(n)})",
                lambda: (
                    "f'{" + e("int", n).replace("'", '"') + "}-{" + r.choice(self.variables("str") or ["7"]) + "!r}'"
                ),
                lambda: f"{e('str', n)}.replace({e('str', 0)}, {e('str', 0)})",
                lambda: f"{e('color', n)}.name",
                lambda: f"{e('card', n)}.suit",
                lambda: f"{e('pid', n)}.role",
                lambda: f"chr(ord('a') + {e('int', 0)} % 5)",
                lambda: f"repr({e(r.choice(['int', 'str', 'tuple', 'opt']), n)})",
                lambda: f"({e('str', n)} if {e('bool', n)} else {e('str', n)})",
                lambda: f"type({e(r.choice(['card', 'point', 'box']), n)}).__name__",
            ]
        )

    def target(self) -> str:
        name = self.fresh("int")
        self.pending = name
        return name

    def ordered(self, d: int) -> str:
        """An iterable of ints whose order is known."""
        r, e = self.r, self.expr
        n = d - 1
        return self.pick(
            [
                lambda: e("tuple", n),
                lambda: e("list", n),
                lambda: f"range({r.choice(['', '-1, ', '1, '])}{e('int', 0)} % 6)",
                lambda: f"sorted({e('list', n)}{r.choice(['', ', key=abs', ', reverse=True, key=lambda k: k % 3'])})",
                lambda: f"sorted({e('set', n)}{r.choice(['', ', reverse=True', ', key=lambda k: -k'])})",
                lambda: f"reversed({e(r.choice(['tuple', 'list']), n)})",
                lambda: f"{e('dict', n)}.{r.choice(['values', 'keys'])}()",
                lambda: f"map(lambda k: k + {e('int', 0)}, {e('list', n)})",
                lambda: f"filter(lambda k: k {r.choice(['>', '!='])} {e('int', 0)}, {e('tuple', n)})",
                lambda: f"itertools.chain({e('tuple', n)}, {e('list', n)})",
                lambda: f"map({r.choice(['abs', 'factorial', 'operator.neg'])}, [k % 4 for k in {e('list', n)}])",
                lambda: f"itertools.accumulate({e('list', n)})",
                lambda: f"{e('list', n)}[{r.choice(['', '-2', '1'])}:{r.choice(['', '3', '-1'])}]",
            ]
        )

    def ints(self, d: int) -> str:
        """An iterable of ints, perhaps a set or a generator."""
        if self.r.random() < 0.2:
            return self.expr("set", d - 1)
        if self.r.random() < 0.4:
            return self.comprehension("(", ")", d)
        return self.ordered(d)

    def comprehension(self, begin: str, end: str, d: int, element: str = "int") -> str:
        r = self.r
        iterable = self.ordered(d - 1)
        name = self.fresh("int")
        self.scopes.append({name: "int"})
        clauses = f"for {name} in {iterable}"
        if r.random() < 0.25:
            second = self.ordered(0)
            other = self.fresh("int")
            if other != name:
                self.scopes[-1][other] = "int"
                # Sizes must not grow from round to round of a loop.
                clauses = f"for {name} in itertools.islice({iterable}, 5) for {other} in itertools.islice({second}, 5)"
        if r.random() < 0.4:
            clauses += f" if {self.expr('bool', 1)}"
        made = f"{begin}{self.expr(element, 1)} {clauses}{end}"
        self.scopes.pop()
        return made

    def tuple_(self, d: int) -> str:
        r, e = self.r, self.expr
        if d <= 0:
            return r.choice(["()", "(1, 2)", "(0, -1, 3)", "PRIMES" if self.known("PRIMES") else "(4,)"])
        n = d - 1
        return self.pick(
            [
                lambda: "PRIMES" if self.known("PRIMES") else "(1,)",
                lambda: f"({e('int', n)}, {e('int', n)})",
                lambda: f"({e('int', n)}, *{e(r.choice(['tuple', 'list']), n)})",
                lambda: f"({e('tuple', n)} + {e('tuple', n)})[:9]",
                lambda: f"({e('tuple', n)} * {r.randint(0, 2)})[-9:]",
                lambda: f"tuple({self.ordered(n)})",
                lambda: "tuple" + self.comprehension("(", ")", d),
                lambda: (
                    f"{e('tuple', n)}[{r.choice(['', '1', '-2'])}:{r.choice(['', '2', '-1'])}{r.choice(['', ':2', ':-1'])}]"
                ),
                lambda: f"tuple(sorted({e('set', n)}))",
                lambda: f"({e('tuple', n)} if {e('bool', n)} else {e('tuple', n)})",
                lambda: f"{e('card', n)}.marks",
                lambda: f"tuple(a - b for a, b in zip({self.ordered(n)}, {self.ordered(n)}))",
                lambda: f"tuple(a - b for a, b in itertools.combinations({e('tuple', n)}, 2))",
                lambda: f"tuple(b - a for a, b in itertools.pairwise({e('tuple', n)}))",
                lambda: f"tuple(i + k for i, k in enumerate({e('tuple', n)}{r.choice(['', ', 1'])}))",
                lambda: f"tuple(a + b for a in {e('tuple', 0)} for b in {e('list', 0)})[:9]",
            ]
        )

    def list_(self, d: int) -> str:
        r, e = self.r, self.expr
        if d <= 0:
            return r.choice(["[]", "[1]", "[3, 1, 2]"])
        n = d - 1
        return self.pick(
            [
                lambda: f"[{e('int', n)}, {e('int', n)}]",
                lambda: self.comprehension("[", "]", d),
                lambda: f"list({self.ordered(n)})",
                lambda: f"sorted({e(r.choice(['set', 'tuple', 'list']), n)})",
                lambda: f"({e('list', n)} + {e('list', n)})[:9]",
                lambda: f"{e('list', n)}[{r.choice(['', '1', '-2'])}:{r.choice(['', '2', '-1'])}]",
                lambda: f"[*{e('tuple', n)}, {e('int', n)}]",
                lambda: f"list({e('dict', n)})",
                lambda: f"[k for _, k in {e('dict', n)}.items()]",
                lambda: f"{e('list', n)}.copy()",
                lambda: f"copy.{r.choice(['copy', 'deepcopy'])}({e('list', n)})",
                lambda: f"list({e('box', n)}.items)",
                lambda: f"[q for p in [{e('point', 0)}, {e('point', 0)}] for q in p]",
            ]
        )

    def set_(self, d: int) -> str:
        r, e = self.r, self.expr
        if d <= 0:
            return r.choice(["set()", "{1, 2}", "{-1, 3}"])
        n = d - 1
        return self.pick(
            [
                lambda: f"{{{e('int', n)}, {e('int', n)}}}",
                lambda: self.comprehension("{", "}", d),
                lambda: f"set({self.ordered(n)})",
                lambda: f"({e('set', n)} {r.choice('|&-^')} {e('set', n)})",
                lambda: (
                    f"{e('set', n)}.{r.choice(['union', 'difference', 'intersection'])}({e(r.choice(['list', 'set']), n)})"
                ),
                lambda: f"set({e('dict', n)})",
                lambda: f"{{k % 3 for k in {e('set', n)}}}",
            ]
        )

    def dict_(self, d: int) -> str:
        r, e = self.r, self.expr
        if d <= 0:
            return r.choice(["{}", "{1: 2}", "{0: 1, 2: 5}"])
        n = d - 1
        return self.pick(
            [
                lambda: f"{{{e('int', n)}: {e('int', n)}, {e('int', n)}: {e('int', n)}}}",
                lambda: f"{{True: {e('int', n)}, 1: {e('int', n)}}}",
                lambda: f"{{k: k * {e('int', 0)} for k in {self.ordered(n)}}}",
                lambda: f"{{**{e('dict', n)}, {e('int', n)}: {e('int', n)}}}",
                lambda: f"({e('dict', n)} | {e('dict', n)})",
                lambda: f"dict(zip({self.ordered(n)}, {self.ordered(n)}))",
                lambda: f"{{v: k for k, v in {e('dict', n)}.items()}}",
                lambda: f"dict(enumerate({e('list', n)}))",
                lambda: f"dict.fromkeys({e('list', n)}, {e('int', 0)})",
            ]
        )

    def color_(self, d: int) -> str:
        e = self.expr
        if d <= 0:
            return self.r.choice(["Color.RED", "Color.GREEN", "Color.BLUE"])
        return self.pick(
            [
                lambda: self.r.choice(["Color.RED", "Color.GREEN", "Color.BLUE"]),
                lambda: f"{e('color', d - 1)}.after({self.r.choice(['', e('int', 0)])})",
                lambda: f"Color({e('int', 0)} % 3 + 1)",
                lambda: f"list(Color)[{e('int', 0)} % 3]",
                lambda: f"max(Color, key=lambda c: c.value * {e('int', 0)})",
            ]
        )

    def point_(self, d: int) -> str:
        r, e = self.r, self.expr
        if d <= 0:
            return "Point(1, 2)"
        n = d - 1
        return self.pick(
            [
                lambda: f"Point({e('int', n)}, {e('int', n)})",
                lambda: f"Point(y={e('int', n)}, x={e('int', n)})",
                lambda: f"Point({e('int', n)})",
                lambda: f"{e('point', n)}.plus({e('point', n)})",
                lambda: f"{e('point', n)}._replace({r.choice('xy')}={e('int', n)})",
                lambda: f"min({e('point', n)}, {e('point', n)})",
            ]
        )

    def card_(self, d: int) -> str:
        r, e = self.r, self.expr
        if d <= 0:
            return "Card(2)"
        n = d - 1
        return self.pick(
            [
                lambda: f"Card({e('int', n)}, {e('str', 0)}, {e('tuple', n)})",
                lambda: f"Card({e('int', n)}, marks={e('tuple', n)})",
                lambda: f"Card.of({e('int', n)})",
                lambda: f"dataclasses.replace({e('card', n)}, rank={e('int', n)})",
                lambda: (
                    f"max([{e('card', n)}, {e('card', n)}], key=lambda c: {r.choice(['c', 'c.rank', '(c.suit, c.rank)'])})"
                ),
            ]
        )

    def box_(self, d: int) -> str:
        e = self.expr
        if d <= 0:
            return "Box(1)"
        return self.pick(
            [
                lambda: f"copy.deepcopy({e('box', d - 1)})",
                lambda: f"Box({e('int', d - 1)})",
                lambda: f"Box({e('int', 0)}, {e('list', d - 1)}[:])",
            ]
        )

    def pid_(self, d: int) -> str:
        return self.pick([lambda: f"Node.pid({self.r.randint(0, 2)})", lambda: f"Node.pid({self.expr('int', 0)} % 3)"])

    def float_(self, d: int) -> str:
        r, e = self.r, self.expr
        if d <= 0:
            return r.choice(["0.5", "-0.0", "2.0"])
        n = d - 1
        return self.pick(
            [
                lambda: r.choice(["0.5", "-0.0", "2.0"]),
                lambda: f"({e('float', n)} {r.choice('+-')} {e(r.choice(['float', 'int']), n)})",
                lambda: f"({e('int', n)} / {r.choice(['2', '4', e('int', 0)])})",
                lambda: f"(-{e('float', n)})",
                lambda: f"float({e('int', n)})",
                lambda: f"({e('float', n)} // {r.choice(['2', '-0.5'])})",
            ]
        )

    def opt_(self, d: int) -> str:
        e = self.expr
        return self.pick([lambda: "None", lambda: e("int", d - 1), lambda: f"{e('dict', d - 1)}.get({e('int', 0)})"])

    # -- statements ------------------------------------------------------------------------------------------------

    def line(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def block(self, indent: int, size: int) -> None:
        before = len(self.lines)
        for _ in range(size):
            if self.budget <= 0:
                break
            self.budget -= 1
            self.statement(indent)
        if len(self.lines) == before:
            self.line(indent, "pass")

    def local(self, kind: str) -> str | None:
        names = [n for n, of in self.scopes[0].items() if of == kind]
        return self.r.choice(names) if names else None

    def statement(self, indent: int) -> None:
        r, e = self.r, self.expr
        deep = indent >= 4
        kinds = ["assign"] * 5 + ["augmented", "change", "change", "unpack", "walrus", "delete"]
        if not deep:
            kinds += ["if", "if", "for", "for", "while", "match", "function", "lambda"]
        if self.in_loop:
            kinds += ["leave"]
        kind = r.choice(kinds)
        if kind == "assign":
            of = r.choice(self.types)
            text = e(of)
            name = self.local(of) if r.random() < 0.4 else None
            if name is None:
                name = self.fresh(of)
            if indent > 1 and name not in self.scopes[0]:
                return  # it might have no value later
            self.line(indent, f"{name} = {text}")
            if name in {f for f, _ in self.functions}:
                self.functions = [f for f in self.functions if f[0] != name]
            self.scopes[0][name] = of
        elif kind == "augmented":
            of = r.choice(["int", "str", "tuple", "list", "set", "dict"])
            name = self.local(of)
            if name is not None:
                operator = {"int": r.choice(["+", "-", "//", "|", "%"]), "str": "+", "tuple": "+", "list": "+",
                            "set": r.choice("|&-"), "dict": "|"}[of]  # fmt: skip
                self.line(indent, f"{name} {operator}= {e(of, 2)}")
                if of in ("str", "tuple", "list"):
                    self.line(indent, f"{name} = {name}[:12]")
        elif kind == "change":
            self.change(indent)
        elif kind == "unpack":
            a, b = self.local("int"), self.local("list")
            if a and b:
                self.line(indent, r.choice([f"{a}, *{b} = ({e('int', 1)}, *{e('tuple', 1)})", f"*{b}, {a} = [1, {e('int', 1)}]",
                                            f"{a}, _ = {e('point', 1)}", f"{a} = _ = {e('int', 1)}"]))  # fmt: skip
        elif kind == "walrus":
            name = self.local("int")
            if name:
                self.line(indent, f"if ({name} := {e('int', 1)}) > {r.randint(-2, 3)}:")
                self.block(indent + 1, 1)
        elif kind == "delete":
            name = self.local("list") if r.random() < 0.5 else self.local("dict")
            if name:
                self.line(
                    indent,
                    f"del {name}[{r.choice(['0', '-1', ':1', '1:', e('int', 0)])}]"
                    if r.random() < 0.3
                    else f"{name}.clear()",
                )
        elif kind == "if":
            self.line(indent, f"if {e('bool')}:")
            self.block(indent + 1, r.randint(1, 2))
            if r.random() < 0.5:
                self.line(indent, r.choice(["else:", f"elif {e('bool', 1)}:"]))
                self.block(indent + 1, r.randint(1, 2))
        elif kind == "for":
            iterable, changing = self.ordered(2), None
            name = self.local("int") or "i0"
            if r.random() < 0.2:
                iterable = f"{r.choice(['enumerate', 'itertools.pairwise'])}({e('list', 1)}[:])"
                name = f"_, {name}" if r.random() < 0.7 else f"({name}, *_)"
            elif r.random() < 0.2:
                changing = self.local("list")
            if changing is not None:  # perhaps
                self.line(indent, f"for {name} in {changing}:")
                self.line(indent + 1, f"if len({changing}) > 9:" if self.known("len") else "if False:")
                self.line(indent + 2, "break")
            else:
                self.line(indent, f"for {name} in {iterable}:")
            if name.isidentifier():
                self.scopes[0].setdefault(name, "unused")
            self.in_loop += 1
            self.block(indent + 1, r.randint(1, 2))
            self.in_loop -= 1
            if r.random() < 0.2:
                self.line(indent, "else:")
                self.block(indent + 1, 1)
        elif kind == "while":
            self.count += 1
            counter = f"w{self.count}"
            self.line(indent, f"{counter} = 0")
            self.line(indent, f"while {counter} < {r.randint(1, 4)} and {e('bool', 1)}:")
            self.line(indent + 1, f"{counter} += 1")
            self.in_loop += 1
            self.block(indent + 1, r.randint(1, 2))
            self.in_loop -= 1
            if r.random() < 0.3:
                self.line(indent, "else:")
                self.block(indent + 1, 1)
        elif kind == "leave":
            self.line(indent, f"if {e('bool', 1)}:")
            self.line(indent + 1, r.choice(["break", "continue"]))
        elif kind == "match":
            self.match(indent)
        elif kind == "function" and indent == 1:
            self.function(indent)
        elif kind == "lambda" and indent == 1:
            self.count += 1
            name = f"f{self.count}"
            self.scopes.append({"z": "int"})
            self.line(indent, f"{name} = lambda z{r.choice(['', '=2'])}: {e('int', 2)}")
            self.scopes.pop()
            self.functions.append((name, 1))

    def function(self, indent: int) -> None:
        r, e = self.r, self.expr
        self.count += 1
        name, local = f"g{self.count}", f"y{self.count}"
        self.line(indent, f"def {name}(u, v=3):")
        self.scopes.append({"u": "int", "v": "int"})
        inside, self.functions = self.functions, []
        outer = self.local("int")
        if outer is not None and r.random() < 0.3 and outer not in ("sum", "PRIMES", "item", "twice"):
            self.line(indent + 1, f"nonlocal {outer}")
            self.line(indent + 1, f"{outer} += 1")
        self.line(indent + 1, f"{local} = {e('int', 2)}")
        self.scopes[-1][local] = "int"
        self.line(indent + 1, f"if {e('bool', 1)}:")
        self.line(indent + 2, f"return {e('int', 1)}")
        self.line(indent + 1, f"for k in {self.ordered(1)}:")
        self.line(indent + 2, f"{local} += k")
        self.line(indent + 1, f"return {local} {r.choice(['+ u', '- v', ''])}")
        self.scopes.pop()
        self.functions = [*inside, (name, r.choice([1, 2]))]

    def change(self, indent: int) -> None:
        r, e = self.r, self.expr
        of = r.choice(["list", "set", "dict", "box"])
        name = self.local(of)
        if name is None:
            return
        texts = {
            "list": [f"{name}.append({e('int', 2)})", f"{name}.extend({self.ordered(2)}); del {name}[12:]", f"{name}.sort(key=lambda k: -k)",
                     f"{name}.insert({r.randint(-2, 2)}, {e('int', 1)})", f"{name}[{r.randint(-2, 1)}] = {e('int', 2)}",
                     f"{name}.reverse()", f"{name}.pop({r.choice(['', '0', '-1'])})", f"{name}[1:2] = {e('list', 1)}[:2]",
                     f"{name}[0] += {e('int', 1)}"],
            "set": [f"{name}.add({e('int', 2)})", f"{name}.discard({e('int', 1)})", f"{name}.update({self.ordered(2)})",
                    f"{name} -= {e('set', 1)}"],
            "dict": [f"{name}[{e('int', 1)}] = {e('int', 2)}", f"{name}.update({e('dict', 2)})",
                     f"{name}.setdefault({e('int', 1)}, {e('int', 1)})", f"{name}.pop({e('int', 0)}, None)",
                     f"{name}[{e('int', 0)}] = {name}.get({e('int', 0)}, 0) + 1"],
            "box": [f"{name}.number += {e('int', 2)}", f"{name}.items.append({e('int', 1)})", f"{name}.put({e('int', 1)})",
                    f"{name}.items = {e('list', 1)}[:]"],
        }[of]  # fmt: skip
        self.line(indent, r.choice(texts))

    def match(self, indent: int) -> None:
        r, e = self.r, self.expr
        name = self.local("int")
        if name is None:
            return
        subject, patterns = r.choice(
            [
                (e("int", 2), ["0", "1 | 2", "-1", f"{name} if {name} > 2"]),
                (e("tuple", 2), ["()", f"({name},)", f"(1, {name})", f"({name}, *_)", f"[_, *rest, {name}]"]),
                (e("point", 2), [f"Point(0, {name})", f"Point(x={name}, y=1)", f"Point({name})", "Point()"]),
                (e("card", 2), [f"Card(rank=1 as {name})", f"Card({name}, 's')", f"Card(2 | 3, marks=({name}, *_))"]),
                (e("color", 2), ["Color.RED", "Color.GREEN | Color.BLUE"]),
                (e("opt", 2), ["None", f"int({name})", "True"]),
                (e("dict", 2), [f"{{1: {name}}}", "{0: 1, **kw}" if r.random() < 0.1 else "{0: _}", "{}"]),
                (f"({e('int', 1)}, {e('color', 1)})", [f"(0 | 1, Color.RED) as both if both[0] == {name}", f"({name}, Color.BLUE)"]),
                (self.any_(1), [f"int({name})", "str()", "Point() | Card()", "[_, _]", "None"]),
            ]
        )  # fmt: skip
        self.line(indent, f"match {subject}:")
        for pattern in r.sample(patterns, min(len(patterns), r.randint(1, 3))):
            self.line(indent + 1, f"case {pattern}:")
            self.block(indent + 2, 1)
        if r.random() < 0.5:
            self.line(indent + 1, "case _:")
            self.block(indent + 2, 1)

    def write(self) -> tuple[str, list[str]]:
        """The source of the function, and the types of its parameters."""
        r = self.r
        kinds = [r.choice(self.types) for _ in range(r.randint(1, 3))]
        names = [f"p{i}" for i in range(len(kinds))]
        self.scopes = [dict(zip(names, kinds, strict=True))]
        self.line(0, f"def {self.name}({', '.join(names)}):")
        self.line(1, "i0 = 0")
        self.scopes[0]["i0"] = "int"
        self.block(1, r.randint(1, 6))
        shown = [n for n, k in self.scopes[0].items() if k != "unused"]
        mutable = {n for n, k in self.scopes[0].items() if k in self.mutable}
        result = [self.expr(r.choice(self.types), 2), *(n for n in shown if n not in mutable or r.random() < 0.2)]
        self.line(1, f"return ({', '.join(result)},)")
        return "\n".join(self.lines) + "\n", kinds


def module(seed: int, count: int, writer: type[Writer] = Writer) -> tuple[str, dict[str, list[str]]]:
    """The source of a module of random functions, and the types of their parameters."""
    r = random.Random(seed)
    parts, kinds = [HEADER], {}
    while len(kinds) < count:
        name = f"function_{len(kinds)}"
        source, of = writer(random.Random(r.random()), name).write()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(source, "<random>", "exec")
        except SyntaxError:  # `:=` is not allowed everywhere
            continue
        parts.append(source)
        kinds[name] = of
    return "\n\n".join(parts), kinds
