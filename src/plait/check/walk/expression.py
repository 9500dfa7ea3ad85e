"""Expressions that a user types while walking: `s[Acceptor][0].ballot`, `any(l.value for l in s[Learner])`.

An expression is a Python expression over the view `s` of a state, as in a property. It is never executed by CPython. It is
parsed, lowered (`plait.ir`), and executed by the virtual machine, which has neither files nor a network, counts the
instructions and bounds the length of values. What cannot be lowered is refused with the reason.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import linecache
import sys
import types
import weakref
from collections.abc import Sequence
from typing import Any

from plait._native import Codec, Machine
from plait.check.runner import Runner
from plait.check.tabulate.evaluation import STATUSES
from plait.check.tabulate.tabulation import Tabulation
from plait.ir.lower import lower_expression
from plait.ir.nodes import encoded
from plait.kernel.errors import UsageError
from plait.kernel.values import Data, to_data
from plait.model.properties import Property
from plait.model.system import System
from plait.model.view import Component, View

LONGEST = 2_000
"""Characters of an expression."""
_numbers = itertools.count(1)

Locals = list[tuple[int, list[bytes]]]
Inboxes = list[list[tuple[int, bytes]]]
Monitors = list[list[bytes]]
Read = tuple[str, int, int]
"""What an expression read: ("status" | "field" | "inbox" | "monitor", position, field counted from 0)."""


class ExpressionError(UsageError):
    """An expression that is refused, or that has no value in a state."""


class Expression:
    """An expression, ready for the virtual machine."""

    def __init__(self, system: System, tabulation: Tabulation, text: str) -> None:
        self.system, self.tabulation = system, tabulation
        self.text, self.function = _function(system, text)
        lowered = lower_expression(system, self.function, tabulation.codec.encode)
        reason = lowered.functions[0].reason
        if reason is not None:
            raise ExpressionError(
                f"{self.text}: the virtual machine cannot run {reason.construct}",
                hint="use the fields of processes, operators, comprehensions, and functions such as len, any, all, max",
            )
        for cls, made in zip(lowered.classes, lowered.program.classes, strict=True):
            if made.kind not in ("process", "monitor"):
                tabulation.codec.learn(cls)
        self._machine = Machine(encoded(lowered.program))

    def value(self, runner: Runner, state: Sequence[int]) -> Data:
        """Its value in a state, as data."""
        content, _ = self.content(*contents(runner, state))
        return to_data(self.tabulation.codec.decode(content))

    def content(self, locals_: Locals, inboxes: Inboxes, monitors: Monitors) -> tuple[bytes, list[Read]]:
        """Its value in a state as canonical bytes, and what it read."""
        try:
            return self._machine.value(0, locals_, inboxes, monitors)
        except LookupError as error:
            raise ExpressionError(
                f"{self.text} has no value in this state: {error.args[0]}",
                hint="an exception, a process as the result, or a step too many ends an expression",
            ) from None

    def avoided(self) -> Property:
        """The invariant that the expression is never true: a search for it ends where the expression is true."""
        negated = Expression(self.system, self.tabulation, f"not ({self.text})")
        negated.text = self.text  # in errors
        return _Judged("that is searched for", "always", negated.function, expression=negated)


@dataclasses.dataclass(frozen=True)
class _Judged(Property):
    """A property that asks the virtual machine, also where CPython would be asked."""

    expression: Any = None

    def __call__(self, view: View) -> bool:
        expression: Expression = self.expression
        content, reads = expression.content(*_contents_of(expression, view))
        view.reads.update(dict.fromkeys(_component(expression.system, read) for read in reads))
        return bool(expression.tabulation.codec.decode(content))


def contents(runner: Runner, state: Sequence[int]) -> tuple[Locals, Inboxes, Monitors]:
    """The canonical bytes of all components of a state."""
    locals_, inboxes, monitors, _ = runner.engine.components(state)
    store = runner.engine.store
    return (
        [_local(store.local(one)) for one in locals_],
        [[(sender, content) for _, sender, content in store.inbox(one)] for one in inboxes],
        [_fields(runner.tabulation, store.monitor(one)) for one in monitors],
    )


def _local(content: bytes) -> tuple[int, list[bytes]]:
    status, *fields = Codec.fields(content)
    return status[0], list(fields)


def _fields(tabulation: Tabulation, monitor: bytes) -> list[bytes]:
    """The contents of the fields of a monitor."""
    return [tabulation.codec.encode(value) for value in tabulation.codec.decode(monitor)]


def _contents_of(expression: Expression, view: View) -> tuple[Locals, Inboxes, Monitors]:
    """The canonical bytes of a state that is given as a view."""
    system, encode = expression.system, expression.tabulation.codec.encode
    before = dict(view.reads)
    locals_: Locals = []
    for index in range(len(system.classes)):
        status, fields = view.local(index)
        locals_.append((STATUSES.index(status), [encode(value) for value in fields.values()]))
    locals_ += [(0, [encode(view.cell(number))]) for number in range(len(system.cells))]
    inboxes: Inboxes = [
        [(system.index[message.sender], encode(message)) for message in view.inbox(index)]
        for index in range(len(system.classes))
    ]
    monitors = [
        [encode(found.__dict__[name]) for name in found.__plait_fields__]
        for found in map(view.monitor, range(len(system.monitors)))
    ]
    view.reads.clear()
    view.reads.update(before)
    return locals_, inboxes + [[] for _ in system.cells], monitors


def _component(system: System, read: Read) -> Component:
    """What the machine read, as a view notes it."""
    kind, index, number = read
    if kind == "monitor":
        return "monitor", index, None
    if kind == "inbox":
        return "inbox", index, None
    if index >= len(system.classes):
        return "cell", index - len(system.classes), None
    return "field", index, None if kind == "status" else system.classes[index].__plait_fields__[number]


def _function(system: System, text: str) -> tuple[str, types.FunctionType]:
    """The text in normal form, and a function of the view with this text. Making it executes nothing of the text."""
    if len(text) > LONGEST:
        raise ExpressionError(f"the expression has {len(text)} characters", hint=f"write at most {LONGEST}")
    try:
        node = ast.parse(text.strip(), mode="eval").body
        normal = ast.unparse(node)
        source = f"lambda s: {normal}"
        file = f"<plait expression {next(_numbers)}>"
        outer = compile(source, file, "eval", dont_inherit=True)
    except SyntaxError as error:
        raise ExpressionError(
            f"{_shown(text)} is not an expression: {error.msg}",
            hint="write a Python expression over the view s, as in a property",
        ) from None
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise ExpressionError(
            f"{_shown(text)} is not an expression: {type(error).__name__}", hint="write a shorter expression"
        ) from None
    (code,) = (constant for constant in outer.co_consts if isinstance(constant, types.CodeType))
    function = types.FunctionType(code, names(system), "<lambda>")
    linecache.cache[file] = (len(source), None, [source], file)
    weakref.finalize(function, linecache.cache.pop, file, None)
    return normal, function


def _shown(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


def names(system: System) -> dict[str, Any]:
    """The names that an expression can use: those of the modules of the model, and its classes."""
    things = [*system.classes, *map(type, system.monitors), *map(type, system.shared)]
    found: dict[str, Any] = {}
    modules = {getattr(prop.function, "__module__", None) for prop in system.properties}
    for module in [*modules, *(cls.__module__ for cls in reversed(things))]:
        if module in sys.modules:
            found |= vars(sys.modules[module])
    return found | {cls.__name__: cls for cls in things}
