"""Handlers as the source describes them: for each, the round of the messages that it consumes and of those that it sends."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
import textwrap
import types
from collections.abc import Iterator

from plait.kernel.errors import ModelError
from plait.model.message import Message
from plait.model.process import Handler, Process
from plait.model.system import System
from plait.model.tag import tag_of


@dataclasses.dataclass(frozen=True)
class Upon:
    """A handler, as an `upon` of the main loop (Sequentialization, Fig. 6)."""

    handler: Handler
    guard: str
    """What it waits for, as Python code."""
    body: list[ast.stmt]
    takes: int | None
    """The round of the messages that it consumes; None for an action."""
    sends: tuple[int, ...]
    """The rounds of the messages that it sends."""
    argument: str | None
    """The name of its parameter for messages."""

    @property
    def name(self) -> str:
        return self.handler.name

    @property
    def clock(self) -> int:
        """When it can run in a phase: twice its round, and one more for a receipt; an action runs where it sends."""
        return 2 * self.takes + 1 if self.takes is not None else 2 * min(self.sends, default=-1)

    @property
    def ends(self) -> int:
        """The clock of the process within the phase after it."""
        within = [2 * r for r in self.sends if self.takes is None or r > self.takes]
        return max([self.clock, *within])

    @property
    def leaves(self) -> bool:
        """Whether it may begin the next phase: it sends in a round that is not after the round that it consumed."""
        return self.takes is not None and any(r <= self.takes for r in self.sends)


def upons(system: System, cls: type[Process], *kinds: str) -> list[Upon]:
    """The handlers of a class of these kinds, in the order of the source."""
    return [_upon(system, cls, h) for h in cls.__plait_handlers__ if h.kind in kinds]


def _upon(system: System, cls: type[Process], handler: Handler) -> Upon:
    definition = function_of(handler.function)
    body = definition.body
    if ast.get_docstring(definition) is not None and len(body) > 1:
        body = body[1:]
    tag = tag_of(handler.message) if handler.message is not None else None
    takes = system.rounds.index(tag.round) if tag is not None else None
    argument = definition.args.args[1].arg if handler.message is not None and len(definition.args.args) > 1 else None
    sent = tuple(sorted(set(sends(definition, cls, system))))
    return Upon(handler, _guard(handler, _declared(cls, handler)), body, takes, sent, argument)


def _declared(cls: type[Process], handler: Handler) -> ast.FunctionDef:
    """The definition with the decorator: an overriding method may leave it out."""
    for base in cls.__mro__:
        definition = base.__dict__.get(handler.name)
        if definition is not None and function_of(definition).decorator_list:
            return function_of(definition)
    return function_of(handler.function)


def function_of(function: object) -> ast.FunctionDef:
    """The syntax of a function."""
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))  # type: ignore[arg-type]
        found = next(n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef))
    except (OSError, TypeError, SyntaxError, StopIteration):
        raise ModelError(
            f"the source of {getattr(function, '__qualname__', function)} cannot be found",
            hint="give a model in a Python file",
        ) from None
    return found


def _guard(handler: Handler, definition: ast.FunctionDef) -> str:
    """`mbox(Ack, lambda m: m.ballot == self.ballot, times=majority(Replica))`, as in the decorator."""
    said = {
        keyword.arg: ast.unparse(keyword.value.body if isinstance(keyword.value, ast.Lambda) else keyword.value)
        for decorator in definition.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
    }
    if handler.message is None:
        return said.get("when", "True")
    parts = [handler.message.__name__]
    parts += [f"lambda m: {said['where']}"] if "where" in said else []
    parts += [f"times={said['quorum']}"] if "quorum" in said else []
    parts += [f"same={said['same']}"] if "same" in said else []
    return f"mbox({', '.join(parts)})"


def sends(function: ast.AST, cls: type[Process], system: System) -> Iterator[int]:
    """The rounds of the messages that a function creates, directly or in methods that it calls."""
    namespace = vars(sys.modules[cls.__module__])
    seen: set[str] = set()
    pending: list[ast.AST] = [function]
    while pending:
        for node in ast.walk(pending.pop()):
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Name):
                made = namespace.get(node.func.id)
                tag = tag_of(made) if isinstance(made, type) and issubclass(made, Message) else None
                if tag is not None and tag.round in system.rounds:
                    yield system.rounds.index(tag.round)
            elif isinstance(node.func, ast.Attribute) and (called := ast.unparse(node.func)) not in seen:
                seen.add(called)
                above = cls.__mro__[1:] if called.startswith("super()") else cls.__mro__
                methods = (base.__dict__.get(node.func.attr) for base in above)
                method = next((m for m in methods if m is not None), None)
                if isinstance(method, types.FunctionType) and not method.__module__.startswith("plait.model"):
                    pending.append(function_of(method))
