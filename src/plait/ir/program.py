"""A program while it is made: the table of functions, and why some of them cannot be lowered.

A function is lowered when something calls it. If it cannot be, its entry in the table bails, and every function that
calls it is refused too, for the same reason. Methods of values are different: the class of a value is known only at run
time, so a method that cannot be lowered bails when it is reached.
"""

from __future__ import annotations

import ast
import enum
import re
import types
from collections.abc import Callable
from typing import Any

from plait.ir import nodes
from plait.ir.classes import RECEIVER, Classes
from plait.ir.definition import Definition, Source, definition_in, source_of
from plait.ir.frame import Frame, is_code
from plait.ir.parameters import Supplied, defaults_of, parameters_of
from plait.ir.reason import NotLoweredError, Reason
from plait.ir.scope import CALLABLE, VIEW, Bindings, Instance, Kind, Static, exists
from plait.ir.statements import Statements
from plait.model.clock import Clock
from plait.model.system import System

_SUSPENDS = 0x20 | 0x80 | 0x200
"""The code flags of generators, coroutines and asynchronous generators."""


class Lowering:
    """The tables of a program."""

    enum = enum.Enum

    def __init__(self, system: System, encode: Callable[[object], bytes], *, whole: bool = False) -> None:
        self.system = system
        self.encode = encode
        self.none = encode(None)
        self.whole = whole
        """Lower also what only CPython executes, for analyses: `try`, what an exception is made of, more functions."""
        self.lines: dict[int, tuple[int, Any]] = {}
        """The lines of nodes, by their identity, with the nodes: so no identity is used twice."""
        self.certain: dict[int, Any] = {}
        """Nodes of patterns that never raise, because of the tests before them, by their identity."""
        self.values: dict[bytes, Any] = {self.none: None}
        """The values of constants."""
        self.bodies: dict[int, Body] = {}
        self.functions: list[nodes.Function | None] = []
        self.reasons: dict[int, Reason] = {}
        """Why a function of the table bails."""
        self.inserts = False
        """Whether the program, or code that CPython runs, may make a `defaultdict`."""
        self.effects: set[int] = set()
        """Functions that send, announce, choose or spawn."""
        self._callees: dict[int, set[int]] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._sources: dict[str, Source | None] = {}
        self._definitions: dict[types.CodeType, Definition | None] = {}
        self._expected: list[tuple[int, str, Reason]] = []
        self.classes = Classes(self)
        self.clocks = frozenset().union(*(cls.__plait_clocks__ for cls in system.classes))
        """The names of all clocks. To the virtual machine, a clock is a record, which only `plait.ir.clocks` uses."""
        if self.clocks:
            self.classes.number(Clock)

    # -- source ----------------------------------------------------------------------------------------------------

    def source(self, code: types.CodeType) -> Source | None:
        """The source file of a function."""
        file = code.co_filename
        if file not in self._sources or file.startswith("<"):
            self._sources[file] = source_of(code)
        return self._sources[file]

    def definition(self, function: types.FunctionType) -> Definition | None:
        """The syntax tree of a function; None without source."""
        code = function.__code__
        if code not in self._definitions:
            source = self.source(code)
            self._definitions[code] = None if source is None else definition_in(source, code)
        return self._definitions[code]

    def rebinds(self, module: types.ModuleType, name: str) -> bool:
        """Whether a function of a module reassigns its variable of this name."""
        file = getattr(module, "__file__", None)
        if file is None or is_code(module.__dict__[name]) or not file.endswith(".py"):
            return False
        try:
            with open(file, encoding="utf-8") as text:  # noqa: PTH123
                return re.search(rf"^\s*global\b.*\b{name}\b", text.read(), re.M) is not None
        except (OSError, ValueError):
            return True

    # -- functions -------------------------------------------------------------------------------------------------

    def variant(
        self,
        function: types.FunctionType,
        supplied: tuple[Supplied, ...],
        caller: Frame | None,
        node: ast.AST | None,
        *,
        keep: bool = False,
    ) -> int:
        """The number of a function with these parameters. With `keep`, the view has a slot, which is empty."""
        key = (function, supplied, keep)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.functions)
            self.functions.append(None)
            self._callees[number] = set()
            code = function.__code__
            try:
                body = self.bodies[number] = Body(self, function, number)
                self.functions[number] = body.lowered(supplied, keep)
            except NotLoweredError as error:
                self.reasons[number] = error.reason
            except RecursionError:
                self.reasons[number] = Reason("deeply nested code", code.co_filename, code.co_firstlineno)
            if self.functions[number] is None:
                count = sum(keep or exists(kind) for _, kind in supplied)
                bails: list[nodes.Statement] = [nodes.Raise()]
                made = nodes.Function(function.__qualname__, code.co_filename, code.co_firstlineno, count, count, bails)
                self.functions[number] = made
        if caller is not None:
            self._callees[caller.number].add(number)
        return number

    def entry(self, function: Any, kinds: tuple[Kind | None, ...]) -> int:
        """The number of a function that the engine calls with arguments of these kinds."""
        if not isinstance(function, types.FunctionType):
            raise NotLoweredError(Reason(f"a {type(function).__name__} as a function", "", 0))
        parameters = parameters_of(function)
        supplied: list[Supplied] = list(zip(parameters.positional, kinds, strict=False))
        code = function.__code__
        if len(supplied) < len(kinds) or not set(parameters.required) <= {n for n, _ in supplied} or parameters.kwarg:
            what = "function with **kwargs" if parameters.kwarg else "parameters"
            raise NotLoweredError(Reason(what, code.co_filename, code.co_firstlineno))
        return self.variant(function, tuple(supplied), None, None, keep=VIEW in kinds)

    def part(
        self, function: types.FunctionType, definition: Definition, view: str, chosen: dict[ast.AST, Any], count: int
    ) -> int | None:
        """The number of a part of a property, which has `count` processes as parameters; None if it cannot be lowered."""
        number = len(self.functions)
        self.functions.append(None)
        self._callees[number] = set()
        body = Body(self, function, number)
        body.chosen = chosen
        body.names = ["a process"] * count
        try:
            self.functions[number] = body.completed(definition, ((view, VIEW),), count)
        except (NotLoweredError, RecursionError):
            code = function.__code__
            bails: list[nodes.Statement] = [nodes.Raise()]
            made = nodes.Function(function.__qualname__, code.co_filename, code.co_firstlineno, count, count, bails)
            self.functions[number] = made
            return None
        return number

    def acts(self, frame: Frame) -> None:
        """Note that a function has effects."""
        self.effects.add(frame.number)

    def expects(self, frame: Frame, name: str, node: ast.AST) -> None:
        """Note that some class must have a method of this name, or the call always bails."""
        self._expected.append((frame.number, name, frame.refused(node, f".{name}(…)").reason))

    def complete(self) -> None:
        """Lower what classes need, then refuse the functions that call a function which is refused."""
        self.classes.complete()
        for number, name, reason in self._expected:
            if not self.classes.defines(name):
                self.reasons.setdefault(number, reason)
        callers: dict[int, list[int]] = {}
        for number, callees in self._callees.items():
            for callee in callees:
                callers.setdefault(callee, []).append(number)
        todo = list(self.reasons)
        for number in todo:
            for caller in callers.get(number, ()):
                if caller not in self.reasons:
                    self.reasons[caller] = self.reasons[number]
                    todo.append(caller)
        todo = list(self.effects)
        for number in todo:
            for caller in callers.get(number, ()):
                if caller not in self.effects:
                    self.effects.add(caller)
                    todo.append(caller)

    def finished(self) -> list[nodes.Function]:
        """The table of functions."""
        return [function for function in self.functions if function is not None]


class Body(Statements):
    """Lowers one function."""

    supplied: tuple[Supplied, ...] = ()
    """The parameters that a call gives."""

    def lowered(self, supplied: tuple[Supplied, ...], keep: bool = False) -> nodes.Function:
        """The function with these parameters. The others have their defaults."""
        self.supplied = supplied
        function = self.function
        code = function.__code__
        definition = self.lowering.definition(function)
        if definition is None:
            raise self.refused(_NO_SOURCE, f"{function.__qualname__}, which has no source")
        if code.co_flags & _SUSPENDS:
            raise self.refused(definition, "generator function")
        self.lowering.classes.sweep(function.__globals__)
        if parameters_of(function).kwarg:
            raise self.refused(definition, "function with **kwargs")
        for name, kind in supplied:
            if isinstance(kind, Instance):
                objection = self.lowering.classes.self_objection(kind.cls)
                if objection is not None:
                    raise self.refused(definition, objection)
            if keep and kind is VIEW:
                self.slot()
            if exists(kind):
                self.scope.slots[name] = self.slot(name)
            if kind is CALLABLE:
                self.callables.add(self.scope.slots[name])
        return self.completed(definition, supplied, self.slots)

    def completed(self, definition: Definition, supplied: tuple[Supplied, ...], count: int) -> nodes.Function:
        """The function, whose first `count` slots are its parameters."""
        function = self.function
        self.definition = definition
        for name, kind in supplied:
            if kind is not None:
                self.scope.kinds[name] = kind
        prologue = self._defaults(supplied)
        parts: list[Any] = [definition.body] if isinstance(definition, ast.Lambda) else definition.body
        code = function.__code__
        if len(code.co_varnames) > code.co_argcount + code.co_kwonlyargcount or code.co_cellvars:
            self.declare(self.scope, Bindings(parts), {RECEIVER, *(n for n, _ in supplied)})
        for name in self.scope.kinds:
            if not exists(self.scope.kinds[name]) and name in self.scope.slots:
                raise self.refused(definition, f"{name} is assigned")
        if isinstance(definition, ast.Lambda):
            body: list[nodes.Statement] = [nodes.Return(self.expr(definition.body))]
        else:
            body = self.block(definition.body)
        return nodes.Function(
            name=function.__qualname__,
            file=self.file,
            line=function.__code__.co_firstlineno,
            parameters=count,
            slots=self.slots,
            body=prologue + body,
        )

    def _defaults(self, supplied: tuple[Supplied, ...]) -> list[nodes.Statement]:
        """Assignments of the defaults of the parameters that no call gives."""
        given = {name for name, _ in supplied}
        found: list[nodes.Statement] = []
        for name, value in defaults_of(self.function).items():
            if name in given:
                continue
            if is_code(value):
                self.scope.kinds[name] = Static(value)
                continue
            slot = self.scope.slots[name] = self.slot(name)
            found.append(nodes.Assign([nodes.LocalTarget(slot)], self.constant(value, self.definition)))
        return found


_NO_SOURCE = ast.Pass()
