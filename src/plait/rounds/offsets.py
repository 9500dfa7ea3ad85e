"""Conditions 1, 2 and 5 of paper 002, section 4.2, from the source of the handlers: nothing is sent late.

Phases are followed as *offsets*. In a handler that takes messages of phase p, `m.phase` is p, `m.phase + 1` is p + 1, and a
field that was set to one of these, or that the guard compares with `m.phase`, is known too. A message of round s and phase
p + k, sent by a step that takes round r of phase p, comes later if k > 0, or if k = 0 and s is after r. That is enough for
classes that send only when they receive.

An action takes nothing. It may send if some field of the class, its *phase*, is never behind: each step leaves in it at
least the phase of everything that the step took and sent, and never decreases it. Then a message of a phase after that is
late for nothing.

Whatever is not understood proves nothing, and is left to the search.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import NamedTuple

from plait.kernel.errors import ModelError
from plait.model.message import Message
from plait.model.process import Handler, Process
from plait.model.system import System
from plait.model.tag import Tag, tag_of
from plait.rounds.reads import guard_of, one_phase
from plait.rounds.structure import function_of

_SENDS = ("send", "broadcast", "spawn", "_running", "_run")
_MADE = "()"
"""After a name: it stands for a message that this step made."""
_DEEPEST = 4
"""Methods that call each other are followed so far."""
_MOST = 64
"""So many ways through a handler are followed."""


class _Path(NamedTuple):
    """A way through a handler, as far as it was followed."""

    known: dict[str, int]
    """Offsets of numbers, from the phase of what was taken; or, in an action, from the phase of the process."""
    sent: frozenset[tuple[int, int]] = frozenset()
    """Offsets and rounds of the messages that were made."""
    ended: bool = False


class _UnclearError(Exception):
    """The source has something that is not followed."""


def never_late(system: System) -> bool:
    """Whether the source shows that no process ever sends a message of an earlier round than it is in."""
    return not any(system.spare.values()) and all(
        _class_is_never_late(system, cls) for cls in dict.fromkeys(system.classes)
    )


def _class_is_never_late(system: System, cls: type[Process]) -> bool:
    kinds = [handler.kind for handler in cls.__plait_handlers__]
    if kinds.count("init") > 1 or "recovery" in kinds:
        return False
    return any(_all_in_time(system, cls, field) for field in (None, *cls.__plait_fields__))


def _all_in_time(system: System, cls: type[Process], phase: str | None) -> bool:
    try:
        return all(_in_time(system, cls, handler, phase) for handler in cls.__plait_handlers__)
    except (_UnclearError, ModelError):
        return False


def _in_time(system: System, cls: type[Process], handler: Handler, phase: str | None) -> bool:
    """Whether a handler sends nothing late, and leaves in its phase at least what it took and sent."""
    if handler.kind == "init" and phase is None:
        return True  # before the first round nothing is late
    walk = _Walk(system, cls, phase)
    definition = walk.source(handler.function)
    tag = tag_of(handler.message) if handler.message is not None else None
    start = {} if phase is None else {f"self.{phase}": 0}
    bounded = True
    """Whether the phase of the process was at most that of the messages."""
    if handler.message is not None:
        if tag is None or not isinstance(tag.phase, str) or not one_phase(handler):
            return False
        argument = definition.args.args[1].arg
        relations = dict(_compared(handler, tag.phase))
        start = {f"{argument}.{tag.phase}": 0, f"{argument}[0].{tag.phase}": 0}
        start |= {f"self.{field}": 0 for field, equal in relations.items() if equal}
        bounded = phase is None or phase in relations
    taken = system.rounds.index(tag.round) if tag is not None else None
    for path in walk.function(definition, _Path(start)):
        for offset, number in path.sent:
            in_time = offset > 0 or (taken is not None and offset == 0 and number > taken)
            if handler.kind != "init" and not (in_time and (taken is not None or phase is not None)):
                return False
        latest = max([0, *(offset for offset, _ in path.sent)])
        if phase is not None and not (bounded and path.known.get(f"self.{phase}", -1) >= latest):
            return False
    return True


def _compared(handler: Handler, phase: str) -> Iterator[tuple[str, bool]]:
    """The fields that a guard wants to be at most the phase of the message; and whether they must be equal to it."""
    guard = guard_of(handler)
    if guard is None or len(guard.args.args) != 2:
        return
    me, message = (argument.arg for argument in guard.args.args)
    fields = {n.attr for n in ast.walk(guard.body) if isinstance(n, ast.Attribute) and _name(n.value) == me}
    for field in fields:
        mine, other = f"{me}.{field}", f"{message}.{phase}"
        if _implies(guard.body, mine, other, equal=True):
            yield field, True
        elif _implies(guard.body, mine, other, equal=False):
            yield field, False


def _implies(test: ast.expr, mine: str, other: str, *, equal: bool) -> bool:
    """Whether a test is true only if one is equal to the other, or at most that."""
    if isinstance(test, ast.BoolOp):
        combine = any if isinstance(test.op, ast.And) else all
        return combine(_implies(part, mine, other, equal=equal) for part in test.values)
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
        return False
    left, right, operator = ast.unparse(test.left), ast.unparse(test.comparators[0]), test.ops[0]
    if isinstance(operator, ast.Eq):
        return {left, right} == {mine, other}
    if equal:
        return False
    if isinstance(operator, ast.Lt | ast.LtE):
        return (left, right) == (mine, other)
    return isinstance(operator, ast.Gt | ast.GtE) and (left, right) == (other, mine)


@dataclasses.dataclass
class _Walk:
    """A walk through a handler: what is known of numbers on the way, and what is sent."""

    system: System
    cls: type[Process]
    phase: str | None
    depth: int = 0

    def function(self, definition: ast.FunctionDef, start: _Path) -> list[_Path]:
        """All ways through a function."""
        return [path._replace(ended=False) for path in self._block(definition.body, [start])]

    def _block(self, body: list[ast.stmt], paths: list[_Path]) -> list[_Path]:
        for statement in body:
            paths = [after for path in paths for after in ([path] if path.ended else self._statement(statement, path))]
            if len(paths) > _MOST:
                raise _UnclearError
        return paths

    def _statement(self, node: ast.stmt, path: _Path) -> list[_Path]:
        if isinstance(node, ast.If):
            path = self._expression(node.test, path)
            return [*self._block(node.body, [path]), *self._block(node.orelse, [path])]
        if isinstance(node, ast.For) and not node.orelse:
            path = self._expression(node.iter, path)
            # What the body changes is not known in it, nor afterwards.
            inside = path._replace(known=_without(path.known, node))
            through = self._block(node.body, [inside])
            if any(p.ended or any(p.known.get(k) != v for k, v in inside.known.items()) for p in through):
                raise _UnclearError  # methods that are called in it may change more
            return [inside._replace(sent=frozenset().union(inside.sent, *(p.sent for p in through)))]
        if isinstance(node, ast.Return):
            return [self._expression(node.value, path)._replace(ended=True)]
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            return [self._assigned(node, self._expression(node.value, path))]
        if isinstance(node, ast.Expr):
            return self._method(node.value, path) or [self._expression(node.value, path)]
        if isinstance(node, ast.Pass | ast.Assert):
            for child in ast.iter_child_nodes(node):
                path = self._expression(child, path)
            return [path]
        raise _UnclearError

    def _assigned(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign, path: _Path) -> _Path:
        after = _without(path.known, node)
        pairs: list[tuple[ast.expr, ast.expr]]
        if isinstance(node, ast.AugAssign):
            pairs = [(node.target, ast.BinOp(node.target, node.op, node.value))]
        elif isinstance(node, ast.AnnAssign):
            pairs = [(node.target, node.value)] if node.value is not None else []
        else:
            pairs = [(target, node.value) for target in node.targets]
        for target, value in pairs:
            both = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                both = list(zip(target.elts, value.elts, strict=True))
            for one, other in both:
                offset = _offset(other, path.known)
                if offset is not None and isinstance(one, ast.Name | ast.Attribute):
                    after[ast.unparse(one)] = offset
                if isinstance(one, ast.Name) and isinstance(other, ast.Call) and self._message(other) is not None:
                    after[f"{one.id}{_MADE}"] = 0
        return path._replace(known=after)

    def _expression(self, node: ast.AST | None, path: _Path) -> _Path:
        """Note the messages that are made. Only these may be sent; methods that matter must be statements."""
        if node is None:
            return path
        parts = list(ast.walk(node))
        if any(isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.Lambda) for part in parts):
            raise _UnclearError
        mine = [part for part in parts if isinstance(part, ast.Attribute) and _name(part.value) == "self"]
        if _escapes(parts) or any(self._odd(part.attr) for part in mine):
            raise _UnclearError
        calls = [part for part in parts if isinstance(part, ast.Call)]
        if any(part.attr in _SENDS and all(part is not call.func for call in calls) for part in mine):
            raise _UnclearError
        inside = _without(path.known, node)  # a comprehension has variables of its own
        sent = set(path.sent)
        for call in calls:
            if (made := self._message(call)) is not None:
                sent.add(self._made(made, call, inside))
            elif isinstance(call.func, ast.Attribute) and call.func in mine and call.func.attr in _SENDS:
                self._sent(call, inside)
            elif self._matters(call.func):
                raise _UnclearError
        return path._replace(sent=frozenset(sent))

    def _sent(self, call: ast.Call, known: dict[str, int]) -> None:
        """What is sent must be made in this step."""
        given = (
            call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "message"), None)
        )
        fresh = isinstance(given, ast.Call) and self._message(given) is not None
        if not fresh and not (isinstance(given, ast.Name) and f"{given.id}{_MADE}" in known):
            raise _UnclearError

    def _message(self, call: ast.Call) -> type[Message] | None:
        """The class of messages that a call makes one of."""
        made = vars(sys.modules[self.cls.__module__]).get(call.func.id) if isinstance(call.func, ast.Name) else None
        return made if isinstance(made, type) and issubclass(made, Message) else None

    def _made(self, made: type[Message], call: ast.Call, known: dict[str, int]) -> tuple[int, int]:
        """The offset and the round of a message."""
        tag = tag_of(made)
        if tag is None or tag.round not in self.system.rounds:
            raise _UnclearError
        given = _argument(made, call, tag)
        offset = _offset(given, known) if given is not None else None
        if offset is None:
            raise _UnclearError
        return offset, self.system.rounds.index(tag.round)

    def _method(self, node: ast.expr, path: _Path) -> list[_Path]:
        """The ways through a call of the process's own method; none if it is no such call, or does not matter."""
        if not (isinstance(node, ast.Call) and self._matters(node.func)):
            return []
        definition = self._definition(node.func)
        assert definition is not None
        names = [a.arg for a in definition.args.args[1:]]
        if node.keywords or len(node.args) != len(names) or self.depth >= _DEEPEST:
            raise _UnclearError
        known = path.known
        inside = {k: v for k, v in known.items() if k.startswith("self.")}
        for name, value in zip(names, node.args, strict=True):
            path = self._expression(value, path)
            offset, whole = _offset(value, known), ast.unparse(value)
            inside |= {name: offset} if offset is not None else {}
            inside |= {name + k[len(whole) :]: v for k, v in known.items() if k.startswith((f"{whole}.", f"{whole}["))}
        self.depth += 1
        through = self.function(definition, _Path(inside, path.sent))
        self.depth -= 1
        local = {k: v for k, v in known.items() if not k.startswith("self.")}
        return [p._replace(known=local | {k: v for k, v in p.known.items() if k.startswith("self.")}) for p in through]

    def _matters(self, function: ast.expr, depth: int = 0) -> bool:
        """Whether a method of the process sends or changes fields, itself or through others."""
        definition = self._definition(function)
        if definition is None:
            return False
        if depth > _DEEPEST:
            raise _UnclearError
        if any(name.startswith("self.") for name in _changed(definition)):
            return True
        attributes = [n for n in ast.walk(definition) if isinstance(n, ast.Attribute) and _name(n.value) == "self"]
        if any(a.attr in _SENDS for a in attributes):
            return True
        if _escapes(list(ast.walk(definition))) or any(self._odd(a.attr) for a in attributes):
            raise _UnclearError
        return any(self._matters(a, depth + 1) for a in attributes)

    def _odd(self, name: str) -> bool:
        """Whether to look at this attribute may do anything, or what should send is the user's own."""
        mine, usual = (inspect.getattr_static(cls, name, None) for cls in (self.cls, Process))
        return mine is not usual and (isinstance(mine, property) or name in _SENDS)

    def _definition(self, function: ast.expr) -> ast.FunctionDef | None:
        """The source of a method of the process that the user wrote."""
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name | ast.Call):
            return None
        if _name(function.value) == "super()":
            raise _UnclearError
        method = getattr(self.cls, function.attr, None) if _name(function.value) == "self" else None
        if not isinstance(method, types.FunctionType) or method.__module__.startswith("plait.model"):
            return None
        return self.source(method)

    def source(self, function: types.FunctionType | Callable[..., object]) -> ast.FunctionDef:
        """The source of a function that is what its source says, and calls its process `self`."""
        definition = function_of(function)
        arguments = definition.args
        plain = inspect.unwrap(function) is function and function.__module__ == self.cls.__module__
        plain &= not (arguments.vararg or arguments.kwarg or arguments.defaults)
        if not plain or not arguments.args or arguments.args[0].arg != "self" or "self" in set(_changed(definition)):
            raise _UnclearError
        return definition


def _argument(made: type[Message], call: ast.Call, tag: Tag) -> ast.expr | None:
    """What is given for the phase of a message."""
    names = [f.name for f in dataclasses.fields(made)]  # type: ignore[arg-type]
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    given = dict(zip(names, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg is not None}
    return given.get(tag.phase) if isinstance(tag.phase, str) else None


def _offset(node: ast.expr, known: dict[str, int]) -> int | None:
    """The offset of a number, if it is known."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and isinstance(node.right, ast.Constant):
        left = _offset(node.left, known)
        if left is None or type(node.right.value) is not int:
            return None
        return left + (node.right.value if isinstance(node.op, ast.Add) else -node.right.value)
    return known.get(ast.unparse(node)) if isinstance(node, ast.Name | ast.Attribute) else None


def _changed(node: ast.AST) -> Iterator[str]:
    """The names and fields that are assigned to somewhere in this."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Store | ast.Del):
            yield ast.unparse(part)


def _without(known: dict[str, int], node: ast.AST) -> dict[str, int]:
    """What is still known if this is assigned to: what hangs on a name changes with it."""
    changed = list(_changed(node))
    gone = tuple(f"{name}{end}" for name in changed for end in (".", "[", _MADE))
    return {k: v for k, v in known.items() if k not in changed and not k.startswith(gone)}


def _escapes(parts: list[ast.AST]) -> bool:
    """Whether somebody else gets hold of the process, who may do anything with it: `self` without a field or a method."""
    used = [part for part in parts if isinstance(part, ast.Name) and part.id == "self"]
    fields = [part for part in parts if isinstance(part, ast.Attribute) and _name(part.value) == "self"]
    types_ = [part for part in parts if isinstance(part, ast.Call) and _name(part) == "type(self)"]
    return len(used) != len(fields) + len(types_)


def _name(node: ast.expr) -> str:
    return ast.unparse(node)
