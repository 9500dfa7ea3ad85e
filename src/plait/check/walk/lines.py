"""Which lines of a handler a step executed, with the values that they read and wrote.

The handler is executed once more, under `sys.settrace`, in the run that is this step. Values are looked up in the variables
of the frame and in the fields of objects. Nothing else of the user's code is called for it.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import msgspec

from plait._native import Transition
from plait.check.explain.debugger import run_number
from plait.check.runner import Runner
from plait.check.tabulate.codec import UP, require_users
from plait.ir.definition import source_of
from plait.kernel.values import text, to_data
from plait.model.loading.loader import is_users
from plait.model.process import Process

_LONGEST = 80
"""Characters of a value."""
_MOST = 8
"""Values of a line."""
_FUNCTIONS = 6
"""Functions that are shown: the handler, and functions of the model that it calls."""
_EVENTS = 20_000
"""Lines that are followed. A loop may execute more."""


class Lines(msgspec.Struct, frozen=True):
    """The source of a function, and what a step did there."""

    handler: str
    file: str
    first: int
    """The number of the first line."""
    lines: list[str]
    executed: list[int] = []
    values: dict[int, str] = {}


def lines_of(function: Any, name: str) -> Lines | None:
    """The source of a handler; None without source."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else _source(code, name)


def executed_lines(runner: Runner, state: Sequence[int], transition: Transition) -> list[Lines]:
    """The functions that a step out of this state executed, the handler first. Empty if the step runs no code."""
    tabulation, index = runner.tabulation, transition.process
    handlers = tabulation.handlers[index]
    local, number = runner.local(state, index), transition.handler
    if number is None and transition.kind == "recover":
        number = next((n for n, handler in enumerate(handlers) if handler.kind == "recovery"), None)
        local = bytes([UP]) + local[1:]
    if number is None:
        return []
    messages = [(sender, content) for _, sender, content in transition.consumed]
    function = inspect.unwrap(handlers[number].function)
    if tabulation.guard_raised(index, local, number, messages) or not isinstance(function, types.FunctionType):
        return []
    several = transition.choices or runner.system.spare
    wanted = run_number(runner, state, transition, local, number) if several else 0
    follower = _Follower(function.__code__, wanted)
    before = sys.gettrace()
    sys.settrace(follower.follow)
    try:
        tabulation.answer(("step", index, local, number, messages, True))
    except Exception as error:
        require_users(error)
    finally:
        sys.settrace(before)
    names = {function.__code__: f"{runner.system.classes[index].__name__}.{handlers[number].name}"}
    return list(follower.found(names))


class _Follower:
    """Notes the lines of one run of a handler, and of functions of the user that it calls."""

    def __init__(self, code: types.CodeType, wanted: int) -> None:
        self.code, self.wanted = code, wanted
        self.runs = count()
        self.inside = False
        self.seen = 0
        self.lines: dict[types.CodeType, dict[int, str]] = {}
        self._last: dict[types.FrameType, int] = {}

    def follow(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        """The function for `sys.settrace`."""
        code = frame.f_code
        if event == "call" and code is self.code:
            self.inside = next(self.runs) == self.wanted
        if not self.inside or (code is not self.code and not self._shown(code)):
            return None
        return self._line

    def _shown(self, code: types.CodeType) -> bool:
        known = code in self.lines or len(self.lines) < _FUNCTIONS
        return known and not code.co_name.startswith("<") and _is_users(code.co_filename)

    def _line(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        self.seen += 1
        if self.seen > _EVENTS:
            return None
        noted = self.lines.setdefault(frame.f_code, {})
        if event in ("line", "return", "exception") and frame in self._last:
            line = self._last.pop(frame)
            self._note(noted, line, frame, written=True)
        if event == "line":
            noted.setdefault(frame.f_lineno, "")
            self._note(noted, frame.f_lineno, frame, written=False)
            self._last[frame] = frame.f_lineno
        elif event == "return" and frame.f_code is self.code:
            self.inside = False
        return self._line

    def _note(self, noted: dict[int, str], line: int, frame: types.FrameType, *, written: bool) -> None:
        reads, writes = _places(frame.f_code).get(line, ((), ()))
        said = [part for part in noted[line].split("\0") if part]
        for place in writes if written else reads:
            value = _looked_up(place, frame.f_locals)
            if value is not None:
                name = ".".join(place)
                said = [part for part in said if not part.startswith(f"{name} = ")]
                said.append(f"{name} = {value}")
        noted[line] = "\0".join(said[-_MOST:])

    def found(self, names: dict[types.CodeType, str]) -> Iterator[Lines]:
        """What was noted, by function."""
        for code, noted in self.lines.items():
            source = _source(code, names.get(code, code.co_qualname))
            if source is not None:
                executed = sorted({line for first in noted for line in _range(code, first)})
                values = {line: said.replace("\0", ", ") for line, said in noted.items() if said}
                yield msgspec.structs.replace(source, executed=executed, values=values)


@functools.lru_cache(1_000)
def _is_users(file: str) -> bool:
    return is_users(file)


def _looked_up(place: tuple[str, ...], variables: dict[str, Any]) -> str | None:
    """A variable or a field of one as text; None if it has no value, or none that is worth showing."""
    if place[0] not in variables:
        return None
    value = variables[place[0]]
    for name in place[1:]:
        try:
            value = object.__getattribute__(value, "__dict__")[name]
        except (AttributeError, KeyError, TypeError):
            return None
    if isinstance(value, Process | type | types.FunctionType | types.ModuleType | types.MethodType):
        return None
    said = text(to_data(value))
    return said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1]}…"


Place = tuple[str, ...]
_known: dict[types.CodeType, dict[int, tuple[tuple[Place, ...], tuple[Place, ...]]]] = {}
_ranges: dict[types.CodeType, dict[int, range]] = {}


def _places(code: types.CodeType) -> dict[int, tuple[tuple[Place, ...], tuple[Place, ...]]]:
    """By line of a function: the variables and fields that it reads and writes."""
    if code not in _known:
        _known[code], _ranges[code] = {}, {}
        source = source_of(code)
        node = None if source is None else next(iter(_definitions(source.tree, code)), None)
        for statement in _statements([] if node is None else node.body):
            parts = _header(statement)
            last = max((part.end_lineno or statement.lineno for part in parts), default=statement.lineno)
            reads, writes = _named(parts, ast.Load), _named(parts, ast.Store)
            if isinstance(statement, ast.AugAssign):
                reads += writes
            for line in range(statement.lineno, last + 1):
                _known[code][line] = (tuple(reads), tuple(writes))
                _ranges[code][line] = range(statement.lineno, last + 1)
    return _known[code]


def _range(code: types.CodeType, line: int) -> range:
    _places(code)
    return _ranges[code].get(line, range(line, line + 1))


def _definitions(tree: ast.Module, code: types.CodeType) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                yield node


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block, with those of inner blocks."""
    for statement in body:
        yield statement
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(statement, name, [])
            if isinstance(inner, list) and not isinstance(statement, ast.FunctionDef | ast.ClassDef):
                yield from _statements(inner)
        for case in getattr(statement, "cases", ()):
            yield from _statements(case.body)
        for handler in getattr(statement, "handlers", ()):
            yield from _statements(handler.body)


def _header(statement: ast.stmt) -> list[ast.expr]:
    """The expressions of a statement, without those of the statements in it."""
    return [part for part in ast.iter_child_nodes(statement) if isinstance(part, ast.expr)]


def _named(parts: Sequence[ast.expr], context: type[ast.expr_context]) -> list[Place]:
    found: dict[Place, None] = {}
    waiting: list[ast.AST] = list(parts)
    while waiting:
        node = waiting.pop(0)
        place = _chain(node)
        if place is not None:
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, context):
                found[place] = None
            if len(place) > 2:
                found[place[:2]] = None
            continue
        waiting += ast.iter_child_nodes(node)
    return list(found)


def _chain(node: ast.AST) -> Place | None:
    """`a`, `a.b` or `a.b.c` as names."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        inner = _chain(node.value)
        return None if inner is None else (*inner, node.attr)
    return None


@functools.lru_cache(1_000)
def _source(code: types.CodeType, name: str) -> Lines | None:
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError):
        return None
    return Lines(name, code.co_filename, first, [line.rstrip("\n") for line in lines])
