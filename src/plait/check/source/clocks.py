"""The bounds of clocks: the largest numbers that the source compares them with.

A bound that is found here need not be right. Every comparison checks the bound again (`plait.model.clock`), so a
comparison that this search misses ends in an error, never in a wrong verdict.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import operator
import types
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from plait.ir.definition import UNKNOWN, bindings, codes, definition, static_value
from plait.kernel.errors import ModelError
from plait.model.clock import Clock
from plait.model.process import Process
from plait.model.system import System

Bounds = dict[type[Process], dict[str, int]]
"""For each class, the bounds of those of its clocks whose bound is not declared."""

_COMPUTED: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def clock_bounds(system: System) -> Bounds:
    """The bounds of all clocks whose bound is not declared. If one cannot be found, raise a ModelError."""
    missing = list(dict.fromkeys(_undeclared(system)))
    if not missing:
        return {}
    search = _Search(system, {name for _, name in missing})
    bounds: Bounds = {}
    for cls, name in missing:
        unknown = search.unknown.get(name)
        if unknown is not None or name not in search.largest:
            raise ModelError(
                f"{cls.__name__}.{name}: the bound of this clock is not known: "
                f"{unknown or 'the source does not compare it with a constant'}",
                hint=f"declare the largest number that it is compared with: {name}: Clock = Clock(bound=…), "
                f"or for one process {cls.__name__}({name}=Clock(bound=…))",
            )
        bounds.setdefault(cls, {})[name] = search.largest[name]
    return bounds


def _undeclared(system: System) -> Iterator[tuple[type[Process], str]]:
    """The clocks without a bound: of processes, and the defaults of those that can be spawned."""
    for process in system.processes:
        for name in sorted(process.__plait_clocks__):
            if not process.__dict__[name]._is_declared:
                yield type(process), name
    for cls in system.spare:
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            if field.name in cls.__plait_clocks__ and field.default_factory is not dataclasses.MISSING:
                default = field.default_factory()
                if isinstance(default, Clock) and not default._is_declared:
                    yield cls, field.name


class _Search:
    """Looks for comparisons of clocks, by the names of their fields, in all functions of a model."""

    def __init__(self, system: System, names: set[str]) -> None:
        self.classes = list(dict.fromkeys(system.classes))
        self.names = names
        self.largest: dict[str, int] = {}
        self.unknown: dict[str, str] = {}
        """Comparisons with something that is not constant, as text."""
        for label, function in dict.fromkeys(_functions(system)):
            node = definition(function)
            if node is not None:
                self._look(label, function, node)
                continue
            for name in self.names & {name for code in codes(function.__code__) for name in code.co_names}:
                self.unknown.setdefault(name, f"the source of {label} is not available")

    def _look(self, label: str, function: types.FunctionType, node: ast.AST) -> None:
        local = set(bindings(node))  # type: ignore[arg-type]
        for inner in ast.walk(node):
            if not isinstance(inner, ast.Compare):
                continue
            sides = [inner.left, *inner.comparators]
            for left, right in [*pairwise(sides), *pairwise(reversed(sides))]:
                if not (isinstance(left, ast.Attribute) and left.attr in self.names):
                    continue
                number = self._number(function, right, local)
                if number is None:
                    text = f"{label} compares it with {ast.unparse(right)}, which is not constant (line {inner.lineno})"
                    self.unknown.setdefault(left.attr, text)
                else:
                    self.largest[left.attr] = max(number, self.largest.get(left.attr, 0))

    def _number(self, function: types.FunctionType, node: ast.expr, local: set[str]) -> int | None:
        """The value of a constant expression; None if it is not one."""
        found: Any = UNKNOWN
        if isinstance(node, ast.Constant):
            found = node.value
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            operand = self._number(function, node.operand, local)
            return None if operand is None else -operand
        elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
            left, right = (self._number(function, side, local) for side in (node.left, node.right))
            try:
                return None if left is None or right is None else _COMPUTED[type(node.op)](left, right)
            except ZeroDivisionError:
                return None
        elif isinstance(node, ast.Name | ast.Attribute):
            found = static_value(function, node, local)
            if found is UNKNOWN and isinstance(node, ast.Attribute):
                found = self._class_constant(node.attr)
        return int(found) if isinstance(found, int) and not isinstance(found, bool) else None

    def _class_constant(self, name: str) -> Any:
        """The largest value that a constant of this name has in the classes of the model."""
        values = [
            inspect.getattr_static(cls, name, UNKNOWN) if name not in cls.__plait_fields__ else UNKNOWN
            for cls in self.classes
        ]
        numbers = [value for value in values if isinstance(value, int)]
        return max(numbers) if numbers and len(numbers) == len([v for v in values if v is not UNKNOWN]) else UNKNOWN


def _is_written(init: Any) -> bool:
    """Whether a constructor was written by the user, and not made by @dataclass."""
    return getattr(init, "__code__", None) is not None and init.__code__.co_filename != "<string>"


def _functions(system: System) -> Iterator[tuple[str, types.FunctionType]]:
    """The functions of a model, each with a name for errors."""
    found: list[tuple[str, Any]] = []
    for cls in dict.fromkeys(system.classes):
        for handler in cls.__plait_handlers__:
            label = f"{cls.__name__}.{handler.name}"
            found += [(f"the guard of {label}", handler.where), (f"the quorum of {label}", handler.quorum)]
        for base in cls.__mro__:
            if base not in (Process, object):
                own = (item for item in base.__dict__.items() if item[0] != "__init__" or _is_written(item[1]))
                found += [(f"{cls.__name__}.{name}", value) for name, value in own]
    properties = [*system.properties, *(prop for prop in (system.initially, system.within) if prop is not None)]
    found += [(f"property {prop.name}", getattr(prop, "mapping", prop.predicate)) for prop in properties]
    for label, value in found:
        value = getattr(value, "fget", None) or getattr(value, "__func__", value)
        if isinstance(value, types.FunctionType):
            yield label, inspect.unwrap(value)
