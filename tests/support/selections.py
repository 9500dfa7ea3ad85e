"""Flows in which the chosen field `k` decides which object changes, when code stops, or what happens outside the state.

Like those of `tests/support/flows.py`, they violate the property only from `k = 1`.
"""

from __future__ import annotations

from tests.support.flows import FLOWS, OPERATORS

SELECTIONS: dict[str, str] = {
    # Which object is changed.
    "a conditional": "(self.seen if self.k else []).append(1)",
    "a conditional, the other way": "([] if not self.k else self.seen).insert(0, 1)",
    "a conditional of a set": "(self.tags if self.k else {5}).update({1})",
    "a conditional of a dict": "(self.table if self.k else {})[1] = 0",
    "or": "([0] * (1 - self.k) or self.seen).append(1)",
    "a conditional that clears": "self.seen = [1]\n(self.seen if not self.k else []).clear()",
    "a variable": "t = self.tags if self.k else set()\nt.add(1)",
    "a branch": "if self.k:\n    t = self.seen\nelse:\n    t = []\nt.append(1)",
    "one branch": "t = []\nif self.k:\n    t = self.seen\nt.append(1)",
    "a loop": "t = []\nfor _ in range(self.k):\n    t = self.seen\nt.append(1)",
    "walrus": "(t := self.seen if self.k else []).append(1)",
    "walrus in a test": "t = []\nif self.k and (t := self.seen) is not None:\n    pass\nt.append(1)",
    "match": "match self.k:\n    case 1:\n        t = self.seen\n    case _:\n        t = []\nt.append(1)",
    "a captured name": "match (self.seen if self.k else []):\n    case t:\n        t.append(1)",
    "a variable that is stored later": "t = []\n(t if self.k else []).append(1)\nself.seen = t",
    "another field": "self.any = self.seen if self.k else []\nself.any.append(1)\nself.any = 0",
    "a field that is lost": "t = self.seen\nself.seen = [] if not self.k else self.seen\nt.append(1)",
    "an argument": "put(self.seen if self.k else [], 1)",
    "an argument of a record's method": "Box().into(self.seen if self.k else [], 1)",
    "a record": "b = self.box if self.k else Box()\nb.items.append(1)",
    "an item": "d = [[], []]\nd[self.k] = self.seen\nd[1].append(1)",
    "an order": "d = [self.seen, []]\nif not self.k:\n    d.reverse()\nfor x, n in zip(d, [1, 0]):\n    x.append(n)",
    "a comprehension": "[(self.seen if self.k else []).append(x) for x in [1]]",
    # Patterns with values.
    "a value in a pattern": "match 1:\n    case self.k:\n        self.j = 1",
    "a value in a pattern that fails": "match 0:\n    case self.k:\n        pass\n    case _:\n        self.j = 1",
    "a value in a pattern of a list": "match [1]:\n    case [self.k]:\n        self.j = 1",
    "a value in a pattern of a class": "match Box(1):\n    case Box(value=self.k):\n        self.j = 1",
    "a value in an or pattern": "match 1:\n    case 5 | self.k:\n        self.j = 1",
    "a key in a pattern": "match {1: 0}:\n    case {self.k: _}:\n        self.j = 1",
    # Iterators that stop early.
    "any stops before a condition": "any(x == self.k for x in [0, 1] if self.seen.append(x) is None)",
    "all stops before a condition": "all(x != self.k for x in [0, 1] if self.seen.append(x) is None)",
    "any stops before a loop": "any(x == self.k for y in [0, 1] for x in (self.seen.append(y) or [y]))",
    "any stops before a call": "any(x == self.k for y in [0, 1] for x in [put(self.seen, y), y])",
    # Objects outside the state.
    "an attribute of a class": "Box.value = self.k\nself.j = Box.value\nBox.value = 0",
    "an attribute of an enum's member": "Tint.RED.items = [self.k]\nself.seen = Tint.RED.items",
    "an attribute of a member in a variable": "x = Tint.RED\nx.items = [self.k]\nself.seen = Tint.RED.items",
}
"""Bodies of a handler, by name."""

_MIXIN = "class Mixin:\n    def __getattribute__(self, name):\n        get = object.__getattribute__\n"
_MIXIN += "        if name == 'j' and get(self, 'stage') == 1: get(self, 'seen').append(get(self, 'k'))\n"
_MIXIN += "        return get(self, name)\n"
_COMPARE = "def compare(self, n, other):\n    self.items.append(self.value)\n    return True\n"
_LIST = "class Cell(enum.Enum):\n    A = [0]\n"

ODD: dict[str, dict[str, str]] = {
    "a base class after Process reads": {"body": "self.j", "before": _MIXIN, "bases": "Process, Mixin"},
    "an operator by partialmethod": {
        "body": "Box(self.k, self.seen) == Box(0)",
        "special": f"{_COMPARE}__eq__ = functools.partialmethod(compare, 1)",
    },
    "an operator by property": {
        "body": "Box(self.k, self.seen) == Box(0)",
        "special": "__eq__ = property(lambda self: self.items.append(self.value) or bool)",
    },
    "an operator by a class": {
        "body": "b = Box(self.k, self.seen)\nBox(0) == b",
        "special": "class __eq__:\n    def __init__(self, other):\n        other.items.append(other.value)",
    },
    "a private global": {
        "body": "__sink(self.seen, self.k)",
        "before": "def __sink(xs, x):\n    pass\ndef _P__sink(xs, x):\n    xs.append(x)\n",
    },
    "a global with the name super": {
        "body": "super().into(self.seen, self.k)",
        "before": "def super():\n    return Box()\n",
    },
    "the list of an enum's member": {
        "body": "Cell.A.value[0] = self.k\nself.j = Cell.A.value[0]\nCell.A.value[0] = 0",
        "before": _LIST,
    },
}
"""Arguments of `flow`, by name."""

RAISES: dict[str, str] = {
    "map of None": "list(map(None, [1] * self.k))",
    "map of a number": "list(map(3, [1] * self.k))",
    "map with too few arguments": "list(map(put, [0] * self.k))",
    "map of a lambda with too few arguments": "list(map(lambda a, b: 0, [0] * self.k))",
    "filter of a lambda with too few arguments": "list(filter(lambda a, b: 0, [0] * self.k))",
    "map of nothing": "if self.k:\n    map(bool)",
    "filter of two": "if self.k:\n    filter(None, [], [])",
    "any of nothing": "if self.k:\n    any()",
    "enumerate of nothing": "if self.k:\n    enumerate()",
    "repr of nothing": "if self.k:\n    repr()",
    "print with a wrong separator": "print('', sep=0 if self.k else None)",
    "a generator that membership stops": "1 - self.k in (1 // (1 - y) for y in [0, 1])",
    "a generator that break stops": "for x in (1 // (1 - y) for y in [0, 1]):\n    if x != self.k:\n        break",
    "a generator that zip stops": "list(zip([0] * (self.k + 1), (1 // (1 - y) for y in [0, 1])))",
    "a lambda that any stops": "any(map(lambda y: y != self.k if y else 1 // y, [1, 0]))",
    "a loop that never ends": "while True:\n    if not self.k:\n        break",
}
"""Bodies that raise, or never end, only from `k = 1`."""

ALL: dict[str, dict[str, str]] = {name: {"body": body} for name, body in FLOWS.items()}
ALL |= {f"operator {name}": {"body": body, "special": special} for name, (special, body) in OPERATORS.items()}
ALL |= {f"selection by {name}": {"body": body} for name, body in SELECTIONS.items()}
ALL |= ODD
"""All flows, these and those of `tests/support/flows.py`."""
