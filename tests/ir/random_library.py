"""Random functions on values of Python's library and of derived classes, as `random_functions.py` writes others."""

from __future__ import annotations

import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tests.ir import random_functions
from tests.ir.random_functions import TYPES, Writer
from tests.ir.values import Ace, Amount, Crate, Name, Pair, Right

LIBRARY = ("deque", "ddict", "lists", "counter", "odict", "flag", "name", "amount", "pair", "fraction", "ace", "crate")


def value(kind: str, r: random.Random) -> Any:
    """A random value of a type."""
    numbers = [r.randint(-3, 5) for _ in range(r.randint(0, 4))]
    pairs = [(r.randint(-2, 3), r.randint(-3, 5)) for _ in range(r.randint(0, 3))]
    makers: dict[str, Callable[[], Any]] = {
        "deque": lambda: deque(numbers, r.choice([None, None, 3, 0])),
        "ddict": lambda: defaultdict(int, pairs),
        "lists": lambda: defaultdict(list, {k: [v] for k, v in pairs}),
        "counter": lambda: Counter(dict(pairs)),
        "odict": lambda: OrderedDict(pairs),
        "flag": lambda: r.choice([Right(0), Right.READ, Right.WRITE, Right.BOTH, Right.SHARE, Right(9), ~Right(0)]),
        "name": lambda: Name(r.choice(["", "a", "ab", "Ba c", "zé"])),
        "amount": lambda: Amount(r.randint(-3, 6)),
        "pair": lambda: Pair(numbers),
        "fraction": lambda: Fraction(r.randint(-6, 6), r.randint(1, 6)),
        "ace": lambda: Ace(r.randint(0, 3), "s", tuple(numbers[:2]), r.random() < 0.5),
        "crate": lambda: Crate(r.randint(0, 3), numbers[:3], "x"),
    }
    return makers[kind]() if kind in makers else random_functions.value(kind, r)


class LibraryWriter(Writer):
    """Writes one function."""

    types = (*TYPES, *LIBRARY, *LIBRARY)
    mutable = (*Writer.mutable, "deque", "ddict", "lists", "counter", "odict", "crate")

    def or_library(self, d: int, usual: Callable[[int], str], options: list[Callable[[], str]]) -> str:
        """One of these expressions, or a usual one."""
        return self.pick(options) if d > 0 and self.r.random() < 0.35 else usual(d)

    def int_(self, d: int) -> str:
        r, e, n = self.r, self.expr, d - 1
        dicts = r.choice(["ddict", "counter", "odict"])
        return self.or_library(
            d,
            super().int_,
            [
                lambda: f"{e('deque', n)}[{r.randint(-2, 2)}]",
                lambda: f"{e('deque', n)}.{r.choice(['pop', 'popleft'])}()",
                lambda: f"{e('deque', n)}.{r.choice(['count', 'index'])}({e('int', 0)})",
                lambda: f"({e('deque', n)}.maxlen or 0)",
                lambda: f"{e(dicts, n)}[{e('int', 0)}]",
                lambda: f"{e(dicts, n)}.get({e('int', 0)}, {e('int', 0)})",
                lambda: f"{e(dicts, n)}.pop({e('int', 0)}, {e('int', 0)})",
                lambda: f"{e(dicts, n)}.setdefault({e('int', 0)}, {e('int', 0)})",
                lambda: f"{e('counter', n)}.total()",
                lambda: f"{e('counter', n)}.most_common({r.choice(['1', 'n=2', '', '0'])})[0][{r.randint(0, 1)}]",
                lambda: f"{e('odict', n)}.popitem({r.choice(['', 'last=False', 'True', 'last=' + e('bool', 0)])})[0]",
                lambda: (
                    f"len({e(r.choice(['deque', 'ddict', 'lists', 'counter', 'odict', 'flag', 'name', 'pair']), n)})"
                ),
                lambda: f"{e('flag', n)}.value",
                lambda: f"({e('amount', n)} {r.choice('+-*&|')} {e(r.choice(['amount', 'int']), n)})",
                lambda: f"({e('int', n)} {r.choice(['//', '%', '-'])} {e('amount', n)})",
                lambda: f"({r.choice('-+~')}{e('amount', n)})",
                lambda: f"{r.choice(['abs', 'int', 'round'])}({e('amount', n)})",
                lambda: f"{e('amount', n)}.LIMIT",
                lambda: f"{e(r.choice(['list', 'tuple', 'pair']), n)}[{e('amount', 0)} % 3]",
                lambda: f"{e('pair', n)}[{r.randint(-2, 1)}]",
                lambda: f"{e('pair', n)}.count({e('int', 0)})",
                lambda: f"{e('name', n)}.find({e('str', 0)})",
                lambda: f"{e('fraction', n)}.{r.choice(['numerator', 'denominator'])}",
                lambda: f"int({e('fraction', n)})",
                lambda: f"({e('fraction', n)} // {e(r.choice(['fraction', 'int']), n)})",
                lambda: f"sum({e(r.choice(['deque', 'pair']), n)})",
                lambda: f"sum({e('lists', n)}[{e('int', 0)}])",
                lambda: f"sum(map(len, {e('lists', n)}.values()))",
                lambda: f"{r.choice(['min', 'max'])}({e('amount', n)}, {e('int', n)})",
                lambda: f"{e('ace', n)}.best({r.choice(['', 'least=2'])})",
                lambda: f"{e('crate', n)}.{r.choice(['total', 'number'])}",
                lambda: f"{e('crate', n)}.put({e('int', 0)})",
                lambda: f"max({e('counter', n)}, key={e('counter', n)}.get, default=1)",
            ],
        )

    def bool_(self, d: int) -> str:
        r, e, n = self.r, self.expr, d - 1
        dicts = ("ddict", "counter", "odict", "dict", "lists")
        like = [
            ("deque", "list"),
            dicts,
            ("name", "str"),
            ("amount", "int", "fraction", "bool"),
            ("pair", "tuple", "point"),
        ]
        group = r.choice(like)
        kinds = r.choice(["deque", "OrderedDict", "(Counter, deque)", "defaultdict", "Fraction", "Name | Amount", "Pair",
                          "str", "tuple", "dict", "Card", "Right", "Box"])  # fmt: skip
        return self.or_library(
            d,
            super().bool_,
            [
                lambda: f"({e(r.choice(group), n)} {r.choice(['==', '!='])} {e(r.choice(group), n)})",
                lambda: f"({e(r.choice(group), n)} {r.choice(['<', '<=', '>', '>='])} {e(r.choice(group), n)})",
                lambda: f"({e('deque', n)} {r.choice(['<', '>='])} {e('deque', n)})",
                lambda: f"({e('counter', n)} {r.choice(['<', '<=', '>', '>=', '=='])} {e('counter', n)})",
                lambda: f"({e('int', n)} {r.choice(['in', 'not in'])} {e(r.choice(['deque', 'pair', *dicts]), n)})",
                lambda: f"({e('flag', n)} {r.choice(['in', 'is', '==', 'is not'])} {e('flag', n)})",
                lambda: f"({e(r.choice(['name', 'str']), 0)} in {e(r.choice(['name', 'str']), n)})",
                lambda: f"bool({e(r.choice(LIBRARY), n)})",
                lambda: f"(not {e(r.choice(LIBRARY), n)})",
                lambda: f"isinstance({e(r.choice(self.types), n)}, {kinds})",
                lambda: (
                    f"(type({e(r.choice(['ace', 'card', 'crate', 'box']), n)}) is {r.choice(['Ace', 'Card', 'Box'])})"
                ),
                lambda: f"{e('flag', n)}.is_open",
                lambda: f"{e('name', n)}.{r.choice(['startswith', 'endswith'])}({e(r.choice(['name', 'str']), 0)})",
                lambda: f"({e(r.choice(LIBRARY), n)} in [{e(r.choice(LIBRARY), 0)}, {e(r.choice(LIBRARY), 0)}])",
                lambda: f"({e('name', n)} in {{{e('str', 0)}: 1, {e('name', 0)}: 2}})",
                lambda: f"(len({{{e('amount', n)}, {e('int', n)}, {e('fraction', n)}}}) == 2)",
            ],
        )

    def str_(self, d: int) -> str:
        r, e, n = self.r, self.expr, d - 1
        return self.or_library(
            d,
            super().str_,
            [
                lambda: f"({e('name', n)} + {e(r.choice(['name', 'str']), n)})[:20]",
                lambda: f"{e('name', n)}.{r.choice(['upper()', 'strip()', 'loud()', 'loud(2)', 'first'])}",
                lambda: f"{e('name', n)}[{r.choice(['0', ':', '1:', '::-1'])}]",
                lambda: f"str({e(r.choice(['name', 'amount', 'pair', 'fraction']), n)})",
                lambda: f"repr({e(r.choice(['name', 'amount', 'pair', 'fraction']), n)})",
                lambda: f"{e(r.choice(['name', 'str']), n)}.join([{e('name', 0)}, {e('str', 0)}])",
                lambda: f"{e('flag', n)}.name",
                lambda: (
                    f"f'{{{r.choice(self.variables('name') or ['1'])}}}/{{{r.choice(self.variables('fraction') or ['2'])}}}'"
                ),
                lambda: f"type({e(r.choice(['name', 'amount', 'ace', 'crate', 'flag']), n)}).__name__",
                lambda: f"({e('name', n)} * 2)",
            ],
        )

    def ordered(self, d: int) -> str:
        r, e, n = self.r, self.expr, d - 1
        dicts = r.choice(["ddict", "counter", "odict"])
        return self.or_library(
            d,
            super().ordered,
            [
                lambda: e(r.choice(["deque", "pair"]), n),
                lambda: f"{e(dicts, n)}{r.choice(['', '.keys()', '.values()'])}",
                lambda: f"reversed({e(r.choice(['deque', 'pair']), n)})",
                lambda: f"sorted({e(r.choice(['deque', 'pair', dicts]), n)})",
                lambda: f"[k + v for k, v in {e(dicts, n)}.items()]",
                lambda: f"[k for k, _ in {e('counter', n)}.most_common()]",
                lambda: f"(flag.value for flag in {e('flag', n)})",
                lambda: f"{e('lists', n)}[{e('int', 0)}]",
            ],
        )

    def deque_(self, d: int) -> str:
        r, e, n = self.r, self.expr, d - 1
        if d <= 0:
            return r.choice(["deque()", "deque([1, 2], maxlen=2)", "deque((3,))"])
        return self.pick(
            [
                lambda: (
                    f"deque({self.ordered(n)}{r.choice(['', ', 3', ', maxlen=2', ', maxlen=None', ', ' + e('int', 0)])})"
                ),
                lambda: f"({e('deque', n)} + {e('deque', n)})",
                lambda: f"{e('deque', n)}.copy()",
                lambda: f"copy.{r.choice(['copy', 'deepcopy'])}({e('deque', n)})",
            ]
        )

    def ddict_(self, d: int) -> str:
        r, e, n = self.r, self.expr, d - 1
        if d <= 0:
            return r.choice(["defaultdict(int)", "defaultdict(int, {1: 2})"])
        return self.pick(
            [
                lambda: f"defaultdict({r.choice(['int', 'int', 'bool', 'None'])}, {e('dict', n)})",
                lambda: f"defaultdict(int, zip({self.ordered(n)}, {self.ordered(n)}))",
                lambda: f"({e('ddict', n)} | {e('ddict', n)})",
                lambda: f"{e('ddict', n)}.copy()",
            ]
        )

    def lists_(self, d: int) -> str:
        r, e, n = self.r, self.expr, d - 1
        if d <= 0:
            return r.choice(["defaultdict(list)", "defaultdict(list, {1: [2]})"])
        return self.pick(
            [
                lambda: f"defaultdict(list, {{{e('int', n)}: [{e('int', 0)}]}})",
                lambda: f"copy.deepcopy({e('lists', n)})",
            ]
        )

    def counter_(self, d: int) -> str:
        r, e, n = self.r, self.expr, d - 1
        if d <= 0:
            return r.choice(["Counter()", "Counter([1, 1, 2])", "Counter({3: -1, 1: 2})"])
        return self.pick(
            [
                lambda: f"Counter({self.ordered(n)})",
                lambda: f"Counter({e(r.choice(['dict', 'counter', 'odict']), n)})",
                lambda: f"({e('counter', n)} {r.choice('+-|&')} {e('counter', n)})",
                lambda: f"({r.choice('+-')}{e('counter', n)})",
                lambda: f"sum([{e('counter', n)}, {e('counter', 0)}], Counter())",
                lambda: f"{e('counter', n)}.copy()",
            ]
        )

    def odict_(self, d: int) -> str:
        r, e, n = self.r, self.expr, d - 1
        if d <= 0:
            return r.choice(["OrderedDict()", "OrderedDict([(2, 1), (1, 2)])"])
        return self.pick(
            [
                lambda: f"OrderedDict({e(r.choice(['dict', 'odict', 'counter']), n)})",
                lambda: f"OrderedDict(zip({self.ordered(n)}, {self.ordered(n)}))",
                lambda: f"OrderedDict((k, v) for v, k in {e('odict', n)}.items())",
                lambda: f"({e('odict', n)} | {e('odict', n)})",
            ]
        )

    def flag_(self, d: int) -> str:
        r, e, n = self.r, self.expr, d - 1
        if d <= 0:
            return r.choice(["Right.READ", "Right.WRITE", "Right.BOTH", "Right.SHARE", "Right(0)"])
        return self.pick(
            [
                lambda: f"({e('flag', n)} {r.choice('|&^')} {e('flag', n)})",
                lambda: f"(~{e('flag', n)})",
                lambda: f"Right({e('int', 0)} % 12)",
                lambda: f"list(Right)[{r.randint(0, 2)}]",
                lambda: f"functools.reduce(operator.or_, {e('flag', n)}, Right(0))",
            ]
        )

    def name_(self, d: int) -> str:
        return self.pick([lambda: f"Name({self.expr('str', d - 1)})", lambda: "Name('ab')", lambda: "Name()"])

    def amount_(self, d: int) -> str:
        e = self.expr
        return self.pick(
            [lambda: f"Amount({e('int', d - 1)})", lambda: "Amount(2)", lambda: f"{e('amount', d - 2)}.capped()"]
        )

    def pair_(self, d: int) -> str:
        return self.pick(
            [lambda: f"Pair({self.ordered(d - 1)})", lambda: "Pair((1, 2))", lambda: "Pair((3, 1)).swapped()"]
        )

    def fraction_(self, d: int) -> str:
        r, e, n = self.r, self.expr, d - 1
        if d <= 0:
            return r.choice(["Fraction(1, 3)", "Fraction(2)", "Fraction(-3, 4)"])
        return self.pick(
            [
                lambda: f"({e('fraction', n)} {r.choice('+-*/%')} {e(r.choice(['fraction', 'int', 'amount']), n)})",
                lambda: f"({e('int', n)} {r.choice('+-*/%')} {e('fraction', n)})",
                lambda: f"Fraction({e(r.choice(['int', 'fraction']), n)}, {r.choice(['2', '6', '-4', e('int', 0)])})",
                lambda: f"{r.choice(['-', 'abs', 'max', '+'])}({e('fraction', n)})".replace(
                    "max(", "max(Fraction(1, 2), "
                ),
            ]
        )

    def ace_(self, d: int) -> str:
        e = self.expr
        return (
            f"Ace({e('int', 0)}, wild={e('bool', 0)})"
            if d <= 0
            else f"dataclasses.replace({e('ace', d - 1)}, rank={e('int', 0)})"
        )

    def crate_(self, d: int) -> str:
        e = self.expr
        return "Crate(1)" if d <= 0 else f"Crate({e('int', d - 1)}, label={e('str', 0)})"

    def statement(self, indent: int) -> None:
        if self.r.random() < 0.3:
            self.change_library(indent)
        else:
            super().statement(indent)

    def change_library(self, indent: int) -> None:
        """A statement that changes a value in place, or combines it with another one."""
        r, e = self.r, self.expr
        kinds = [kind for kind in LIBRARY if self.local(kind) is not None]
        if not kinds:
            return
        kind = r.choice(kinds)
        name = self.local(kind)
        key, number = e("int", 0), e("int", 1)
        texts: dict[str, list[str]] = {
            "deque": [
                f"{name}.{r.choice(['append', 'appendleft', 'remove'])}({number})",
                f"{name}.rotate({r.choice(['', number])})",
                f"{name}.{r.choice(['extend', 'extendleft'])}({self.ordered(2)}); {name} = deque(list({name})[:9])",
                f"{name}.{r.choice(['reverse', 'clear'])}()",
                f"{name}[{r.randint(-2, 1)}] = {number}",
                f"del {name}[0]",
                f"{name}.insert({r.randint(-2, 2)}, {number})",
                f"{name} += {e('tuple', 1)}[:3]",
                f"{name}[0] += 1",
            ],
            "ddict": [
                f"{name}[{key}] += {number}",
                f"{name}[{key}]",
                f"{name}.update({e('dict', 1)})",
                f"del {name}[{key}]",
                f"{name} |= {e(r.choice(['dict', 'ddict', 'counter']), 1)}",
                f"_ = [{name}[k] for k in {self.ordered(1)}][:9]",
            ],
            "lists": [
                f"{name}[{key}].append({number})",
                f"{name}[{key}] += [{number}]",
                f"{name}[{key}]",
                f"del {name}[{key}]",
                f"{name}[{key}] = {name}[{e('int', 0)}][:]",
            ],
            "counter": [
                f"{name}[{key}] += {number}",
                f"{name}[{key}]",
                f"del {name}[{key}]",
                f"{name}.update({self.ordered(2)})",
                f"{name}.{r.choice(['update', 'subtract'])}({e(r.choice(['counter', 'dict']), 1)})",
                f"{name}.subtract(k % 3 for k in {self.ordered(1)})",
                f"{name} {r.choice('+-|&')}= {e('counter', 1)}",
            ],
            "odict": [
                f"{name}[{key}] = {number}",
                f"{name}.move_to_end({key}{r.choice(['', ', last=False', ', ' + e('bool', 0)])})",
                f"{name}.popitem(last={e('bool', 0)})",
                f"{name}.update({e('odict', 1)})",
                f"del {name}[{key}]",
                f"{name} |= {e(r.choice(['dict', 'odict']), 1)}",
            ],
            "flag": [f"{name} {r.choice('|&^')}= {e('flag', 1)}"],
            "name": [
                f"{name} = Name({name} + {e('str', 0)})[:9]",
                f"{name} += {e('str', 0)}; {name} = Name({name}[:9])",
            ],
            "amount": [f"{name} = Amount({number})", f"{name} += 1; {name} = Amount({name})"],
            "pair": [f"{name} = {name}.swapped()", f"{name} = Pair({name} + ({number},))"],
            "fraction": [f"{name} {r.choice('+-*/')}= {e(r.choice(['fraction', 'int']), 1)}"],
            "ace": [f"{name} = {e('ace', 1)}"],
            "crate": [f"{name}.put({number})", f"{name}.label += 'x'", f"{name}.items = {e('list', 1)}[:]"],
        }
        self.line(indent, r.choice(texts[kind]))
