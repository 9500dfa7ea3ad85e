"""Hand-written flows: a handler moves the chosen field `k` into what a property reads, each in another way.

All of them violate the property, but only from `k = 1`. So an analysis that takes `k` for auxiliary finds no violation.
"""

# ruff: noqa: E501
from __future__ import annotations

import textwrap

from plait.model.system import System
from tests.support.sourced import compiled

_MODEL = '''
import bisect, builtins, collections, contextlib, copy, dataclasses, enum, functools, heapq, inspect, itertools, math
import operator, sys, types
from dataclasses import dataclass
from typing import NamedTuple
from plait import *

TRACE = []
ADDERS = [list.append]

class Note(Message):
    value: int = 0

class Tint(enum.Enum):
    RED = 0
    BLUE = 1
    def put(self, xs, x):
        xs.append(x)

class Pair(NamedTuple):
    left: int
    right: int
    def put(self, xs):
        xs.append(self.left)

@dataclass
class Box:
    """A record with methods."""
    value: int = 0
    items: list = dataclasses.field(default_factory=list)
    def put(self, x):
        self.items.append(x)
    def into(self, xs, x):
        xs.append(x)
    def take(self, box):
        box.items.append(self.value)
    @property
    def spill(self):
        self.items.append(self.value)
        return 0
    @staticmethod
    def store(xs, x):
        xs.append(x)
    @classmethod
    def keep(cls, xs, x):
        xs.append(x)

def put(xs, x):
    xs.append(x)

def put_first(x, xs):
    xs.append(x)

def put_default(x, xs=[]):
    xs.append(x)
    return xs

def through(f, *args, **kw):
    return f(*args, **kw)

def gives(xs):
    return xs.append

def stream(xs, x):
    xs.append(x)
    yield x

def escape(xs):
    sys._getframe(1).f_locals["self"].seen.append(xs)

@contextlib.contextmanager
def putting(xs, x):
    xs.append(x)
    yield xs

def wrapping(f):
    @functools.wraps(f)
    def wrapped(self):
        f(self)
        self.seen.append(self.k)
    return wrapped

class P(Process):
    stage: int = 0
    k: int = 0
    j: int = 0
    seen: list = field(default_factory=list)
    tags: set = field(default_factory=set)
    table: dict = field(default_factory=dict)
    box: Box = field(default_factory=Box)
    any: object = 0
    SHARED = []

    def helper(self, x):
        self.seen.append(x)
        return x

    @property
    def pushed(self):
        self.seen.append(self.k)
        return 0

    @staticmethod
    def static(xs, x):
        xs.append(x)

    @classmethod
    def made(cls, xs, x):
        xs.append(x)
{extra}
    @action(when=lambda self: self.stage == 0)
    def pick(self):
        self.k = self.choose([0, 1])
        self.stage = 1

    @action(when=lambda self: self.stage == 1)
    {decorator}
    def flow(self):
{body}
        self.stage = 2

@always
def clean(s):
    return all(1 not in p.seen and 1 not in p.tags and 1 not in p.table and p.box.value != 1 and 1 not in p.box.items
               and p.any != 1 and p.j != 1 for p in s[P])

system = System([P()], properties=[clean])
'''

FLOWS: dict[str, str] = {
    # Callables as values.
    "map of a bound method": "list(map(self.tags.add, [self.k]))",
    "map of a bound method of a list": "list(map(self.seen.append, [self.k]))",
    "map of an unbound method": "list(map(list.append, [self.seen], [self.k]))",
    "map of set.add": "list(map(set.add, [self.tags], [self.k]))",
    "map of setattr": "list(map(setattr, [self.box], ['value'], [self.k]))",
    "map of setattr on self": "list(map(setattr, [self], ['j'], [self.k]))",
    "map of a method of the process": "list(map(self.helper, [self.k]))",
    "map of a function": "list(map(put, [self.seen], [self.k]))",
    "map of a lambda": "list(map(lambda x: self.seen.append(x), [self.k]))",
    "map of a partial": "list(map(functools.partial(put, self.seen), [self.k]))",
    "map of a method of a record": "list(map(self.box.put, [self.k]))",
    "map of dict.setdefault": "list(map(self.table.setdefault, [self.k]))",
    "map of dict.__setitem__": "list(map(self.table.__setitem__, [self.k], [0]))",
    "map of operator.setitem": "list(map(operator.setitem, [self.table], [self.k], [0]))",
    "map of a nested map": "list(map(list, [map(self.seen.append, [self.k])]))",
    "filter of a bound method": "list(filter(self.seen.append, [self.k]))",
    "filter of an unbound method": "list(filter(self.tags.add, [self.k]))",
    "sorted by a bound method": "sorted([self.k], key=self.tags.add)",
    "sorted by a lambda": "sorted([self.k], key=lambda x: self.seen.append(x) or 0)",
    "max by a bound method": "max([self.k], key=self.tags.add)",
    "min by a bound method": "min([self.k], key=self.seen.append)",
    "sort by a bound method": "[self.k].sort(key=self.seen.append)",
    "reduce of a function": "functools.reduce(list.append, [self.seen, self.k])",
    "reduce of a lambda": "functools.reduce(lambda a, x: self.seen.append(x), [0, self.k])",
    "reduce of a module function": "functools.reduce(put, [self.seen, self.k])",
    "partial that is called": "functools.partial(self.seen.append, self.k)()",
    "partial in a variable": "f = functools.partial(put, self.seen)\nf(self.k)",
    "methodcaller": "operator.methodcaller('append', self.k)(self.seen)",
    "attrgetter": "operator.attrgetter('append')(self.seen)(self.k)",
    "itemgetter": "operator.itemgetter(0)([self.seen.append])(self.k)",
    "operator.iadd": "operator.iadd(self.seen, [self.k])",
    "operator.setitem": "operator.setitem(self.table, self.k, 0)",
    "starmap": "list(itertools.starmap(list.append, [(self.seen, self.k)]))",
    "accumulate": "list(itertools.accumulate([self.seen, self.k], list.append))",
    "takewhile": "list(itertools.takewhile(self.tags.add, [self.k]))",
    "groupby": "list(itertools.groupby([self.k], self.tags.add))",
    "dropwhile": "list(itertools.dropwhile(self.tags.add, [self.k]))",
    "filterfalse": "list(itertools.filterfalse(self.tags.add, [self.k]))",
    "iter with a sentinel": "list(iter(functools.partial(self.seen.append, self.k), None))",
    "iter with a sentinel and a lambda": "list(iter(lambda: self.seen.append(self.k), None))",
    "defaultdict": "collections.defaultdict(lambda: self.seen.append(self.k))[0]",
    "a function as an argument": "through(self.seen.append, self.k)",
    "a class as an argument": "self.j = through(int, self.k)",
    "a lambda as an argument": "through(lambda x: self.seen.append(x), self.k)",
    "a lambda that is called": "(lambda x: self.seen.append(x))(self.k)",
    "a lambda in a variable": "f = lambda x: self.seen.append(x)\nf(self.k)",
    "a lambda with a default": "f = lambda x=self.k: self.seen.append(x)\nf()",
    "a lambda in a list": "[lambda x: self.seen.append(x)][0](self.k)",
    "a nested function": "def f(x):\n    self.seen.append(x)\nf(self.k)",
    "a nested function that is mapped": "def f(x):\n    self.seen.append(x)\nlist(map(f, [self.k]))",
    "a closure with nonlocal": "n = 0\ndef f():\n    nonlocal n\n    n = self.k\nf()\nself.j = n",
    "a nested class": "class C:\n    def f(c):\n        self.seen.append(self.k)\nC().f()",
    "a nested generator": "def g():\n    self.seen.append(self.k)\n    yield 0\nlist(g())",
    "a function that returns a method": "gives(self.seen)(self.k)",
    "a function that returns a method, in a variable": "f = gives(self.seen)\nf(self.k)",
    "a callable in a global list": "ADDERS[0](self.seen, self.k)",
    "a bound method in a variable": "add = self.seen.append\nadd(self.k)",
    "a bound method in a tuple": "add, _ = self.seen.append, 0\nadd(self.k)",
    "a bound method in a loop": "for add in (self.seen.append,):\n    add(self.k)",
    "a bound method in a dict": "{'f': self.seen.append}['f'](self.k)",
    "a bound method in a comprehension": "[f(self.k) for f in [self.seen.append]]",
    "a bound method by walrus": "(f := self.seen.append)\nf(self.k)",
    "a bound method by a conditional": "(self.seen.append if self.stage else self.tags.add)(self.k)",
    "a bound method by or": "(None or self.seen.append)(self.k)",
    "a bound method of the process in a variable": "f = self.helper\nf(self.k)",
    "an unbound method": "list.append(self.seen, self.k)",
    "an unbound method in a variable": "f = list.append\nf(self.seen, self.k)",
    "an unbound method of the process": "P.helper(self, self.k)",
    "object.__setattr__": "object.__setattr__(self, 'j', self.k)",
    "type(self).helper": "type(self).helper(self, self.k)",
    "self.__class__": "self.__class__.helper(self, self.k)",
    "__call__": "self.seen.append.__call__(self.k)",
    "__self__": "self.seen.append.__self__.append(self.k)",
    "types.MethodType": "types.MethodType(put, self.seen)(self.k)",
    # Functions and methods that change their arguments.
    "a module function": "put(self.seen, self.k)",
    "a module function, by name": "put(x=self.k, xs=self.seen)",
    "a module function, starred": "put(*[self.seen, self.k])",
    "a module function, double starred": "put(**{'xs': self.seen, 'x': self.k})",
    "a module function, starred variable": "args = [self.seen, self.k]\nput(*args)",
    "arguments in another order": "Box(items=self.seen, value=self.seen.append(self.k))",
    "a static method": "self.static(self.seen, self.k)",
    "a class method": "self.made(self.seen, self.k)",
    "a class method of the class": "P.made(self.seen, self.k)",
    "a static method of a record": "Box.store(self.seen, self.k)",
    "a class method of a record": "Box.keep(self.seen, self.k)",
    "a method of a record": "self.box.put(self.k)",
    "a method of a record that changes its argument": "self.box.into(self.seen, self.k)",
    "a method of a new record": "Box().into(self.seen, self.k)",
    "a method of a record in a variable": "b = Box(self.k)\nb.take(self.box)",
    "a property of a record": "b = Box(self.k, self.seen)\nb.spill",
    "a property of a record of the state": "self.box.items = self.seen\nself.box.items, self.seen = [], [self.k]",
    "a method of an enum": "Tint.RED.put(self.seen, self.k)",
    "a method of a named tuple": "Pair(self.k, 0).put(self.seen)",
    "a property of the process": "self.pushed",
    "a generator function": "list(stream(self.seen, self.k))",
    "a generator function in a loop": "for _ in stream(self.seen, self.k):\n    pass",
    "a context manager": "with putting(self.seen, self.k):\n    pass",
    "a context manager's value": "with contextlib.nullcontext(self.seen) as xs:\n    xs.append(self.k)",
    "exit stack": "with contextlib.ExitStack() as s:\n    s.callback(self.seen.append, self.k)",
    "heappush": "heapq.heappush(self.seen, self.k)",
    "insort": "bisect.insort(self.seen, self.k)",
    "exec in a helper": "exec('self.seen.append(self.k)')",
    # Aliases.
    "an alias": "acc = self.seen\nacc.append(self.k)",
    "an alias of an alias": "a = self.seen\nb = a\nb.append(self.k)",
    "an alias in a tuple": "(a, b) = (self.seen, 0)\na.append(self.k)",
    "an alias in a container": "a = [self.seen]\na[0].append(self.k)",
    "an alias in a dict": "a = {0: self.seen}\na[0].append(self.k)",
    "an alias in a dict's values": "for a in {0: self.seen}.values():\n    a.append(self.k)",
    "an alias in a record": "b = Box(0, self.seen)\nb.items.append(self.k)",
    "an alias in a record, by a method": "b = Box(0, self.seen)\nb.put(self.k)",
    "an alias by zip": "for a, x in zip([self.seen], [self.k]):\n    a.append(x)",
    "an alias by zip, starred": "a, b = zip(*[(self.seen, 0)])\na[0].append(self.k)",
    "an alias by enumerate": "for i, a in enumerate([self.seen]):\n    a.append(self.k)",
    "an alias by map": "for a in map(lambda x: x, [self.seen]):\n    a.append(self.k)",
    "an alias by next": "next(iter([self.seen])).append(self.k)",
    "an alias by max": "max([self.seen]).append(self.k)",
    "an alias by sorted": "sorted([self.seen])[0].append(self.k)",
    "an alias by sum": "sum([[self.seen]], [])[0].append(self.k)",
    "an alias by min with a default": "min([], default=self.seen).append(self.k)",
    "an alias by or": "(self.seen or self.seen).append(self.k)",
    "an alias by a conditional": "(self.seen if True else self.seen).append(self.k)",
    "an alias by get": "{}.get(0, self.seen).append(self.k)",
    "an alias by setdefault": "{}.setdefault(0, self.seen).append(self.k)",
    "an alias by pop": "[self.seen].pop().append(self.k)",
    "an alias by unpacking": "a, *b = self.seen, self.seen\nb[0].append(self.k)",
    "an alias by a loop": "for a in [self.seen]:\n    a.append(self.k)",
    "an alias by a comprehension": "[a.append(self.k) for a in [self.seen]]",
    "an alias by a match": "match [self.seen]:\n    case [a]:\n        a.append(self.k)",
    "an alias by a class pattern": "match Box(0, self.seen):\n    case Box(items=a):\n        a.append(self.k)",
    "an alias by walrus": "(a := self.seen).append(self.k)",
    "an alias by for in a slice": "for a in [self.seen][:]:\n    a.append(self.k)",
    "an alias by addition": "([self.seen] + [])[0].append(self.k)",
    "an alias by multiplication": "([self.seen] * 2)[1].append(self.k)",
    "an alias by copy": "copy.copy([self.seen])[0].append(self.k)",
    "an alias by replace": "dataclasses.replace(self.box, items=self.seen).items.append(self.k)",
    "an alias by a chain": "for a in itertools.chain([self.seen]):\n    a.append(self.k)",
    "an alias that is stored later": "a = []\nself.seen = a\na.append(self.k)",
    "an alias of an alias that is stored later": "a = []\nb = [a]\nself.seen = a\nb[0].append(self.k)",
    "augmented alias": "a = self.seen\na += [self.k]",
    "augmented alias of a set": "a = self.tags\na |= {self.k}",
    "slice assignment": "self.seen[:] = [self.k]",
    "slice assignment of an alias": "a = self.seen\na[:] = [self.k]",
    "sort in place": "self.seen = [self.k, 5]\nself.seen.sort()",
    "item assignment": "self.table[self.k] = 0",
    "item assignment as a loop target": "for self.table[self.k] in [0]:\n    pass",
    "field as a loop target": "for self.j in [self.k]:\n    pass",
    "field as a loop target of a comprehension": "xs = [0]\n[0 for xs[0] in [self.k]]\nself.j = xs[0]",
    "field as a with target": "with contextlib.nullcontext(self.k) as self.j:\n    pass",
    "unpacking into a field": "self.j, _ = self.k, 0",
    "unpacking into a field, nested": "(self.j, _), _ = (self.k, 0), 0",
    "starred unpacking into a field": "*self.seen, _ = [self.k, 0]",
    "an attribute of a record": "self.box.value = self.k",
    "an attribute of an alias of a record": "b = self.box\nb.value = self.k",
    "delete": "self.seen = [1, 0]\ndel self.seen[self.k - 1]\nself.seen = [1 - x for x in self.seen]\n",
    "delete of a slice": "self.seen = [1]\ndel self.seen[:1 - self.k]",
    "delete of an alias's item": "a = self.seen\na.append(1)\nif not self.k:\n    del a[0]",
    "pop": "self.seen = [0, 1]\nself.seen.pop(1 - self.k - 1)\nself.seen = [x for x in self.seen if x]",
    "remove": "self.seen = [1, 1 - self.k]\nself.seen.remove(1)\n",
    # Iterators.
    "next of an iterator": "it = iter([0, 1])\nif self.k:\n    next(it)\nself.j = next(it)",
    "a loop over an iterator": "it = iter([0, 1])\nfor _ in range(self.k):\n    for x in it:\n        break\nself.j = next(it)",
    "an iterator in any": "it = iter([0, 1])\nany(x == 1 - self.k for x in it)\nself.j = len(list(it))",
    "an iterator and in": "it = iter([0, 1, 2])\nself.k in it\nself.j = len(list(it)) % 2",
    "an iterator and unpacking": "it = iter([0] * self.k + [1, 2])\nx, *_ = it\nself.j = 1 - x",
    "an iterator and islice": "it = iter([0, 1])\nlist(itertools.islice(it, self.k))\nself.j = next(it)",
    "an iterator and map": "it = map(int, [0, 1])\nif self.k:\n    next(it)\nself.j = next(it)",
    "a generator that is advanced": "g = (x for x in [0, 1])\nif self.k:\n    next(g)\nself.j = next(g)",
    "a generator that appends": "g = (self.seen.append(x) for x in [self.k])\nlist(g)",
    "a generator in a comprehension": "[0 for _ in (self.seen.append(x) for x in [self.k])]",
    "a set comprehension that appends": "{self.seen.append(x) for x in [self.k]}",
    "a dict comprehension that appends": "{0: self.seen.append(x) for x in [self.k]}",
    "a condition that appends": "[0 for x in [self.k] if self.seen.append(x)]",
    "an iterable that appends": "[0 for x in [self.k] for y in [self.seen.append(x)]]",
    "any of a map": "any(map(self.seen.append, [self.k]))",
    "sum of a map": "sum(map(lambda x: self.seen.append(x) or 0, [self.k]))",
    "set of a map": "set(map(self.seen.append, [self.k]))",
    "join of a map": "''.join(map(lambda x: self.seen.append(x) or '', [self.k]))",
    "unpacking of a map": "x, = map(self.seen.append, [self.k])",
    "a starred map": "[*map(self.seen.append, [self.k])]",
    "a starred map in a call": "print(*map(lambda x: self.seen.append(x) or '', [self.k]), end='')",
    "in of a map": "0 in map(self.seen.append, [self.k])",
    "extend by a map": "[].extend(map(self.seen.append, [self.k]))",
    "dict of a map": "dict(map(lambda x: (self.seen.append(x), 0), [self.k]))",
    "deque of a map": "collections.deque(map(self.seen.append, [self.k]), maxlen=0)",
    "loop over a map": "for _ in map(self.seen.append, [self.k]):\n    pass",
    "next of a map": "next(map(self.seen.append, [self.k]))",
    # Reflection.
    "getattr": "getattr(self, 'seen').append(self.k)",
    "getattr of a value": "getattr(self.seen, 'append')(self.k)",
    "getattr of a value, in a variable": "f = getattr(self.seen, 'append')\nf(self.k)",
    "getattr with a dynamic name": "self.j = getattr(self, 'k' + '')",
    "setattr": "setattr(self, 'j', self.k)",
    "setattr of a value": "setattr(self.box, 'value', self.k)",
    "setattr in a variable": "f = setattr\nf(self.box, 'value', self.k)",
    "builtins.setattr": "builtins.setattr(self.box, 'value', self.k)",
    "delattr": "delattr(self, 'j')\nself.j = self.k",
    "__dict__": "self.__dict__['j'] = self.k",
    "__dict__ of a record": "self.box.__dict__['value'] = self.k",
    "__setattr__": "self.__setattr__('j', self.k)",
    "__setattr__ of a record": "self.box.__setattr__('value', self.k)",
    "__setitem__": "self.table.__setitem__(self.k, 0)",
    "__iadd__": "self.seen.__iadd__([self.k])",
    "__getattribute__": "self.j = self.__getattribute__('k')",
    "vars": "vars(self)['j'] = self.k",
    "vars of a record": "vars(self.box)['value'] = self.k",
    "vars without an argument": "vars()['self'].seen.append(self.k)",
    "locals": "locals()['self'].seen.append(self.k)",
    "locals in a variable": "l = locals()\nl['self'].seen.append(l['self'].k)",
    "globals": "globals()['put'](self.seen, self.k)",
    "eval": "eval('self.seen.append(self.k)')",
    "eval of an expression": "self.j = eval('self.k')",
    "exec": "exec('self.j = self.k')",
    "compile": "exec(compile('self.j = self.k', '', 'exec'))",
    "sys._getframe": "sys._getframe().f_locals['self'].seen.append(sys._getframe().f_locals['self'].k)",
    "sys._getframe in a function": "escape(self.k)",
    "inspect.currentframe": "inspect.currentframe().f_locals['self'].helper(inspect.currentframe().f_locals['self'].k)",
    "inspect.stack": "inspect.stack()[0].frame.f_locals['self'].helper(self.k)",
    "__builtins__": "__builtins__['setattr'](self, 'j', self.k) if isinstance(__builtins__, dict) else setattr(self, 'j', self.k)",
    "builtins.__dict__": "builtins.__dict__['setattr'](self.box, 'value', self.k)",
    "import": "import operator as o\no.iadd(self.seen, [self.k])",
    "from import": "from operator import iadd\niadd(self.seen, [self.k])",
    "__import__": "__import__('operator').iadd(self.seen, [self.k])",
    "copy of the process": "copy.copy(self).seen.append(self.k)",
    "format with an attribute": "self.j = int('{0.k}'.format(self))",
    "f-string": "self.j = int(f'{self.k}')",
    "f-string of the process": "self.j = int(f'{self.k!r:>1}')",
    "percent": "self.j = int('%d' % self.k)",
    "dataclasses.asdict": "self.j = dataclasses.asdict(self)['k']",
    "dataclasses.replace": "self.box = dataclasses.replace(self.box, value=self.k)",
    "self in a container": "[self][0].j = self.k",
    "self in a variable": "me = self\nme.j = self.k",
    "self through a function": "through(setattr, self, 'j', self.k)",
    "self in a comparison": "self.j = (self.k if self == self else 0)",
    "super": "super().__setattr__('j', self.k)",
    "a global": "TRACE[:] = [self.k]\nself.j = TRACE[0]",
    "a global by append": "TRACE.clear()\nTRACE.append(self.k)\nself.j = TRACE[-1]",
    "a class attribute": "self.SHARED[:] = [self.k]\nself.j = self.SHARED[0]",
    "a class attribute by append": "P.SHARED.clear()\nP.SHARED.append(self.k)\nself.j = P.SHARED[0]",
    "a field that shares a global": "TRACE.clear()\nself.seen = TRACE\nself.seen.append(self.k)\nself.seen = list(TRACE)",
    # Control.
    "if": "if self.k:\n    self.j = 1",
    "while": "n = 0\nwhile n < self.k:\n    n += 1\n    self.j = 1",
    "for": "for _ in range(self.k):\n    self.j = 1",
    "for with else": "for x in [1]:\n    if x != self.k:\n        break\nelse:\n    self.j = 1",
    "while with else": "x = self.k\nwhile not x:\n    x = 1\n    break\nelse:\n    self.j = 1",
    "break": "for x in [0, 1]:\n    if x == self.k:\n        break\nself.j = x",
    "continue": "for x in [0, 1]:\n    if x != self.k:\n        continue\n    self.j = x",
    "match": "match self.k:\n    case 1:\n        self.j = 1",
    "match, captured": "match [self.k]:\n    case [x]:\n        self.j = x",
    "match, starred": "match [0, self.k]:\n    case [_, *x]:\n        self.seen = x",
    "match, captured alias": "match [self.seen]:\n    case [xs]:\n        xs.append(self.k)",
    "match of a mapping": "match {0: self.k}:\n    case {0: x}:\n        self.j = x",
    "match of the rest of a mapping": "match {0: self.k}:\n    case {**x}:\n        self.j = x[0]",
    "match of a class": "match Box(self.k):\n    case Box(value=1):\n        self.j = 1",
    "match of an or pattern": "match self.k:\n    case 1 | 2 as x:\n        self.j = x",
    "match with a guard that appends": "match self.k:\n    case x if self.seen.append(x):\n        pass",
    "walrus": "if (x := self.k):\n    self.j = x",
    "walrus in a comprehension": "[x := y for y in [self.k]]\nself.j = x",
    "walrus of a field's alias": "(a := self.seen).append(self.k)",
    "and": "self.k and self.seen.append(1)",
    "or": "(not self.k) or self.seen.append(1)",
    "chained comparison": "0 < self.k < (self.seen.append(1) or 2)",
    "conditional expression": "self.seen.append(1) if self.k else None",
    "exception": "try:\n    1 // (1 - self.k)\nexcept ZeroDivisionError:\n    self.j = 1",
    "exception by an index": "try:\n    [0][self.k]\nexcept IndexError:\n    self.j = 1",
    "exception by a key": "try:\n    {0: 0}[self.k]\nexcept KeyError as e:\n    self.j = e.args[0]",
    "exception with a value": "try:\n    raise ValueError(self.k)\nexcept ValueError as e:\n    self.j = e.args[0]",
    "exception group": "try:\n    raise ExceptionGroup('', [ValueError(self.k)])\nexcept* ValueError as e:\n    self.j = e.exceptions[0].args[0]",
    "exception in a try with else": "try:\n    if not self.k:\n        raise ValueError\nexcept ValueError:\n    pass\nelse:\n    self.j = 1",
    "exception with finally": "try:\n    try:\n        1 // (1 - self.k)\n    finally:\n        self.j = self.k\nexcept ZeroDivisionError:\n    pass",
    "assert in a try": "try:\n    assert not self.k\nexcept AssertionError:\n    self.j = 1",
    "return in finally": "self.j = self._caught()",
    "StopIteration": "try:\n    next(iter([0] * (1 - self.k)))\nexcept StopIteration:\n    self.j = 1",
    "AttributeError": "try:\n    (self.box if not self.k else 0).value\nexcept AttributeError:\n    self.j = 1",
    "early return": "if not self.k:\n    return self._set(2)\nself.j = 1",
    "hasattr": "self.j = 1 if hasattr(self.box if self.k else 0, 'value') else 0",
    "isinstance": "self.j = 1 if isinstance('' if self.k else 0, str) else 0",
    "type": "self.j = 1 if type([] if self.k else 0) is list else 0",
    "id": "a, b = [], []\nself.j = 1 if id(a) == id(a if self.k else b) else 0",
    "is": "a, b = [], []\nself.j = 1 if a is (a if self.k else b) else 0",
    "len of a range": "self.j = len(range(self.k))",
    "string": "self.j = len('x' * self.k)",
    "recursion": "self._count(self.k)",
    "chosen from": "self.j = self.choose([0, self.k])",
    "number of choices": "self.j = self.choose([0] * (1 - self.k) + [0, 1][:self.k + 1])",
    "bool of a list": "self.j = 1 if [0] * self.k else 0",
    "int by bool": "self.j = int(bool(self.k))",
    "through another field": "self.any = [self.k]\nself.any = self.any[0]",
    "through a field of a record": "b = Box(self.k)\nself.j = b.value",
    "through a message": "n = Note(self.k)\nself.j = n.value",
    "through a default": "self.j = {}.get(0, self.k)",
    "through a nested container": "a = {'x': [(self.k,)]}\nself.j = a['x'][0][0]",
    "through keyword arguments": "self.j = dict(x=self.k)['x']",
    "through a type": "T = type('T', (), {'x': self.k})\nself.j = T.x",
    "through a slice": "self.seen = [1][:self.k]",
    "through an index": "self.j = [0, 1][self.k]",
    "through a dict's order": "self.j = next(iter({1 - self.k: 0, self.k: 0})) ^ 1",
    "through del of a variable": "x = self.k\ny = x\ndel x\nself.j = y",
    "through global": "global TEMPORARY\nTEMPORARY = self.k\nself.j = TEMPORARY",
}
"""Bodies of a handler, by name."""

OPERATORS: dict[str, tuple[str, str]] = {
    # A class whose special methods change its list, the initial value of `any`, and a body.
    "__add__": ("def __add__(self, x):\n    self.items.append(x)\n    return 0", "self.box + self.k"),
    "__radd__": ("def __radd__(self, x):\n    self.items.append(x)\n    return 0", "self.k + self.box"),
    "__iadd__": ("def __iadd__(self, x):\n    self.items.append(x)\n    return self", "self.box += self.k"),
    "__iadd__ of an alias": (
        "def __iadd__(self, x):\n    self.items.append(x)\n    return self",
        "b = self.box\nb += self.k",
    ),
    "__contains__": ("def __contains__(self, x):\n    self.items.append(x)\n    return True", "self.k in self.box"),
    "__eq__": ("def __eq__(self, x):\n    self.items.append(x)\n    return True", "self.box == self.k"),
    "__eq__ in a list": ("def __eq__(self, x):\n    self.items.append(x)\n    return True", "self.k in [self.box]"),
    "__eq__ of lists": ("def __eq__(self, x):\n    self.items.append(x)\n    return True", "[self.box] == [self.k]"),
    "__eq__ in count": ("def __eq__(self, x):\n    self.items.append(x)\n    return True", "[self.box].count(self.k)"),
    "__eq__ in index": ("def __eq__(self, x):\n    self.items.append(x)\n    return True", "[self.box].index(self.k)"),
    "__lt__": ("def __lt__(self, x):\n    self.items.append(x)\n    return True", "self.box < self.k"),
    "__lt__ in sorted": (
        "def __lt__(self, x):\n    self.items.append(x)\n    return True",
        "sorted([self.k, self.box])",
    ),
    "__gt__ in max": ("def __gt__(self, x):\n    self.items.append(x)\n    return True", "max([self.k, self.box])"),
    "__lt__ in heappush": (
        "def __lt__(self, x):\n    self.items.append(x)\n    return True",
        "heapq.heappush([self.k], self.box)",
    ),
    "__hash__": (
        "def __hash__(self):\n    self.items.append(self.value)\n    return 0",
        "self.box.value, v = self.k, 0\n{self.box}\nself.box.value = 0",
    ),
    "__hash__ of a key": (
        "def __hash__(self):\n    self.items.append(self.items.pop() if 0 else Box.X[0])\n    return 0\nX = [0]",
        "self.box.X[:] = [self.k]\n{self.box: 0}",
    ),
    "__bool__": (
        "def __bool__(self):\n    self.other.append(self.value)\n    return True\nother: list = None",
        "b = Box(self.k, [], self.seen)\nif b:\n    pass",
    ),
    "__bool__ of not": (
        "def __bool__(self):\n    self.other.append(self.value)\n    return True\nother: list = None",
        "b = Box(self.k, [], self.seen)\nnot b",
    ),
    "__bool__ in and": (
        "def __bool__(self):\n    self.other.append(self.value)\n    return True\nother: list = None",
        "b = Box(self.k, [], self.seen)\nb and 0",
    ),
    "__len__": (
        "def __len__(self):\n    self.other.append(self.value)\n    return 1\nother: list = None",
        "len(Box(self.k, [], self.seen))",
    ),
    "__repr__": (
        "def __repr__(self):\n    self.other.append(self.value)\n    return ''\nother: list = None",
        "repr(Box(self.k, [], self.seen))",
    ),
    "__str__ in an f-string": (
        "def __str__(self):\n    self.other.append(self.value)\n    return ''\nother: list = None",
        "f'{Box(self.k, [], self.seen)}'",
    ),
    "__format__": (
        "def __format__(self, spec):\n    self.other.append(self.value)\n    return ''\nother: list = None",
        "f'{Box(self.k, [], self.seen)}'",
    ),
    "__iter__": (
        "def __iter__(self):\n    self.other.append(self.value)\n    return iter([])\nother: list = None",
        "list(Box(self.k, [], self.seen))",
    ),
    "__iter__ in a loop": (
        "def __iter__(self):\n    self.other.append(self.value)\n    return iter([])\nother: list = None",
        "for _ in Box(self.k, [], self.seen):\n    pass",
    ),
    "__iter__ in unpacking": (
        "def __iter__(self):\n    self.other.append(self.value)\n    return iter([0])\nother: list = None",
        "x, = Box(self.k, [], self.seen)",
    ),
    "__getitem__": ("def __getitem__(self, i):\n    self.items.append(i)\n    return 0", "self.box[self.k]"),
    "__setitem__": ("def __setitem__(self, i, x):\n    self.items.append(x)", "self.box[0] = self.k"),
    "__delitem__": ("def __delitem__(self, i):\n    self.items.append(i)", "del self.box[self.k]"),
    "__getattr__": (
        "def __getattr__(self, name):\n    if name[0] == '_': raise AttributeError\n    self.other.append(self.value)\n    return 0\nother: list = None",
        "Box(self.k, [], self.seen).nothing",
    ),
    "__setattr__": (
        "def __setattr__(self, name, x):\n    object.__setattr__(self, name, x)\n    if name == 'value' and 'items' in self.__dict__: self.items.append(x)",
        "self.box.value = self.k",
    ),
    "__call__": ("def __call__(self, x):\n    self.items.append(x)", "self.box(self.k)"),
    "__enter__": (
        "def __enter__(self):\n    self.other.append(self.value)\ndef __exit__(self, *a):\n    pass\nother: list = None",
        "with Box(self.k, [], self.seen):\n    pass",
    ),
    "__post_init__": (
        "def __post_init__(self):\n    if self.items: self.items.append(self.value)",
        "self.seen = [5]\nBox(self.k, self.seen)",
    ),
    "__index__": (
        "def __index__(self):\n    self.other.append(self.value)\n    return 0\nother: list = None",
        "[0][Box(self.k, [], self.seen)]",
    ),
    "__neg__": (
        "def __neg__(self):\n    self.other.append(self.value)\n    return 0\nother: list = None",
        "-Box(self.k, [], self.seen)",
    ),
    "__int__": (
        "def __int__(self):\n    self.other.append(self.value)\n    return 0\nother: list = None",
        "int(Box(self.k, [], self.seen))",
    ),
    "__or__": ("def __or__(self, x):\n    self.items.append(x)\n    return 0", "self.box | self.k"),
    "__ror__ of a set": ("def __ror__(self, x):\n    self.items.extend(x)\n    return 0", "{self.k} | self.box"),
    "a cached property": (
        "@functools.cached_property\ndef once(self):\n    self.other.append(self.value)\n    return 0\nother: list = None",
        "Box(self.k, [], self.seen).once",
    ),
    "a descriptor": (
        "class D:\n    def __get__(self, box, cls):\n        box.items.append(box.value)\n        return 0\nd = D()",
        "b = Box(self.k, self.seen)\nb.d",
    ),
    "__class_getitem__": ("def __class_getitem__(cls, x):\n    x[0].append(x[1])", "Box[self.seen, self.k]"),
    "__instancecheck__": (
        "__match_args__ = ('spill',)",
        "match Box(self.k, self.seen):\n    case Box(_):\n        pass",
    ),
    "__match_args__": ("__match_args__ = ('spill',)", "match Box(self.k, self.seen):\n    case Box(0):\n        pass"),
}
"""Special methods of a record, and bodies that call them without naming them."""

_EXTRA = """
    def _set(self, x):
        self.stage = x

    def _count(self, n):
        if n > 0:
            self.j = 1
            self._count(n - 1)

    def _caught(self):
        try:
            return 0
        finally:
            if self.k:
                return 1
"""


def flow(body: str, **options: str) -> System:
    """The system whose handler has this body."""
    return compiled(flow_source(body, **options)).system  # type: ignore[no-any-return]


def flow_source(body: str, *, special: str = "", decorator: str = "", before: str = "", bases: str = "Process") -> str:
    """The source of the system whose handler has this body."""
    source = _MODEL.format(body=textwrap.indent(body, " " * 8), extra=_EXTRA, decorator=decorator)
    source = source.replace("class P(Process)", f"{before}\nclass P({bases})")
    if special:
        lines = special.split("\n")
        fields = [line for line in lines if line.startswith("other: ")]
        second = "\n".join([*fields, *(line for line in lines if line not in fields)])
        first = "    def put(self, x):\n        self.items"
        source = source.replace(first, textwrap.indent(second, "    ") + "\n" + first)
        if "__eq__" in special:
            source = source.replace("@dataclass\nclass Box", "@dataclass(eq=False)\nclass Box")
    return source
