"""Random small systems with source, for what is read from source: fields, assignments, tests, loops, helpers, aliases.

Each handler costs fuel, so that there are finitely many states, except for free actions on bounded fields.
"""

from __future__ import annotations

import random
import sys
import tempfile
import types
from pathlib import Path

from plait.model.system import System

NUMBERS = ("u", "v", "w", "x", "y", "z")
_FOLDER = Path(tempfile.mkdtemp(prefix="plait-sourced-"))
_COUNT = iter(range(10**9))

_TEMPLATE = """
from plait import *

class Note(Message):
    value: int
    kind: int = 0


class Other(Message):
    value: int


class Node(Process):
    u: int = {u}
    v: int = {v}
    w: int = {w}
    x: int = {x}
    y: int = {y}
    z: int = {z}
    log: list[int] = {log}
    seen: dict[int, int] = field(default_factory=dict)
    fuel: int = durable(1)
{handlers}

{properties}
system = System(
    [Node(fuel={fuel0}), Node(fuel={fuel1}, u={u1})],
    network={network},
    faults={faults},
    properties=[{names}],
)
"""


class Draw:
    """Random choices, and the fields that are read more than others: the rest are often auxiliary."""

    def __init__(self, rng: random.Random) -> None:
        self.choice, self.randint, self.random = rng.choice, rng.randint, rng.random
        self.read = [rng.choice(NUMBERS[:3]), rng.choice(NUMBERS)]

    def field(self) -> str:
        """A field to read."""
        return self.choice(self.read) if self.random() < 0.9 else self.choice(NUMBERS)


def compiled(source: str) -> types.ModuleType:
    """A module with this source, in a file."""
    name = f"plait_sourced_{next(_COUNT)}"
    file = _FOLDER / f"{name}.py"
    file.write_text(source, encoding="utf-8")
    module = types.ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module
    exec(compile(source, str(file), "exec"), module.__dict__)
    return module


def random_source(random_: random.Random, *, aux: frozenset[str] = frozenset()) -> str:
    """The source of a random system; fields in `aux` are declared so."""
    rng = Draw(random_)
    handlers = []
    for number in range(rng.randint(1, 2)):
        handlers.append(_handler(rng, f"act{number}", "action", _guard(rng)))
    if rng.random() < 0.3:
        line = f"self.{rng.choice(NUMBERS)} = {_expression(rng, False)}"
        handlers.append(f"    @action\n    def free(self):\n        t = 0\n        {line}\n")
    handlers.append(_handler(rng, "note", "on(Note", _guard(rng)))
    handlers.append(_handler(rng, "other", "on(Other", _guard(rng)))
    helper = _block(rng, 2, "        ", received=False, depth=1)
    handlers.append(f"    def helper(self, t):\n{helper}        return {_expression(rng, False)}\n")
    if rng.random() < 0.3:
        handlers.append(
            f"    @recovery\n    def back(self):\n        t = 0\n{_block(rng, 2, '        ', received=False, depth=2)}"
        )
    properties, names = [], []
    for number in range(rng.randint(1, 2)):
        kind, name = rng.choice(("always", "reachable", "final")), rng.choice((*rng.read, *rng.read, "log"))
        test = f"p.{name} != {rng.randint(0, 2)}" if name != "log" else f"len(p.log) < {rng.randint(1, 2)}"
        properties.append(f"@{kind}\ndef prop{number}(s):\n    return all({test} for p in s[Node])\n")
        names.append(f"prop{number}")
    values = {
        name: f"aux({rng.randint(0, 1)}, durable={rng.random() < 0.5})" if name in aux else str(rng.randint(0, 1))
        for name in NUMBERS
    }
    return _TEMPLATE.format(
        **values,
        log=f"{'aux' if 'log' in aux else 'field'}(default_factory=list)",
        handlers="\n".join(handlers),
        properties="\n".join(properties),
        fuel0=rng.randint(1, 3),
        fuel1=rng.randint(0, 1),
        u1=rng.randint(0, 1),
        network=rng.choice(("unordered()", "unordered()", "fifo()", "duplicating()", "unordered(losses=1)")),
        faults=rng.choice(("[]", "[]", "[crash_stop(Node, budget=1)]", "[crash_recovery(Node, budget=1)]")),
        names=", ".join(names),
    )


def system_of(source: str) -> System:
    """The system of a source."""
    system: System = compiled(source).system
    return system


def _guard(rng: Draw) -> str:
    extra = f" and self.{rng.field()} != {rng.randint(0, 2)}" if rng.random() < 0.3 else ""
    return f"self.fuel > 0{extra}"


def _handler(rng: Draw, name: str, trigger: str, guard: str) -> str:
    received = trigger != "action"
    parameters = "self, m" if received else "self"
    head = f"@{trigger}, where=lambda self, m: {guard})" if received else f"@action(when=lambda self: {guard})"
    body = _block(rng, rng.randint(1, 4), "        ", received, 0)
    if rng.random() < 0.5:
        body = f"        self.{rng.choice(NUMBERS)} = self.choose([0, 1])\n{body}"
    return f"    {head}\n    def {name}({parameters}):\n        self.fuel -= 1\n        t = {rng.randint(0, 2)}\n{body}"


def _block(rng: Draw, count: int, indent: str, received: bool, depth: int) -> str:
    return "".join(_statement(rng, indent, received, depth) for _ in range(count))


def _statement(rng: Draw, indent: str, received: bool, depth: int) -> str:
    """One statement; within a helper (depth 1 and more) no further calls of it."""
    field, value = rng.choice(NUMBERS), _expression(rng, received)
    simple = [
        f"self.log.append({value})",
        f"self.{field} = {value}",
        f"self.{field} = {value}",
        f"self.{field} = {value}",
        f"self.{field} += 1; self.{field} %= 3",
        f"self.{field}, self.{rng.choice(NUMBERS)} = {value}, {_expression(rng, received)}",
        f"self.log.append({value}); self.log = self.log[-2:]",
        f"k = self.log; k.append({value}); del k[:-2]",
        f"k = self.log; k.append({value}); self.log = k[-1:]",
        f"self.seen[{rng.randint(0, 1)}] = {value}",
        f"self.seen |= {{{rng.randint(0, 1)}: {value}}}",
        f"self.{field} = [{value} for i in self.log if i != {rng.randint(0, 2)}] != []",
        f"self.{field} = sum(1 for i in self.log) % 3",
        f"self.{field} = len([1 for i in self.log if i == self.{rng.field()}])",
        f"self.{field} = self.choose([0, 1])",
        f"assert self.{rng.field()} != 2",
        f"self.send(Node.pid({rng.randint(0, 1)}), {rng.choice(('Note', 'Other'))}({value}))",
        f"self.send(Node.pid({rng.randint(0, 1)}), {rng.choice(('Note', 'Other'))}({rng.randint(0, 1)}))",
    ]
    if depth == 0:
        simple += [f"self.{field} = self.helper({value})", f"self.helper({value})", f"t = {value}"]
    if depth < 2 and rng.random() < 0.35:
        inner = _block(rng, rng.randint(1, 2), indent + "    ", received, depth + 1)
        leave = f"{indent}    return\n" if rng.random() < 0.25 and depth == 0 else ""
        test = f"{_expression(rng, received)} == {rng.randint(0, 2)}"
        if rng.random() < 0.2:
            return f"{indent}for t in list(self.log):\n{inner}{leave or ''}"
        other = f"{indent}else:\n{_block(rng, 1, indent + '    ', received, depth + 1)}" if rng.random() < 0.4 else ""
        return f"{indent}if {test}:\n{inner}{leave}{other}"
    return f"{indent}{rng.choice(simple)}\n"


def _expression(rng: Draw, received: bool) -> str:
    options = [str(rng.randint(0, 2)), *(f"self.{rng.field()}" for _ in range(4))]
    options += [f"(self.{rng.field()} + {rng.randint(0, 2)}) % 3", "t", "len(self.log)"]
    options += [f"(t + self.{rng.field()}) % 3", f"self.seen.get({rng.randint(0, 1)}, 0)"]
    options += [f"({rng.randint(0, 2)} if self.{rng.field()} else self.{rng.field()})"]
    return rng.choice([*options, *(["m.value"] * 4 if received else [])])
