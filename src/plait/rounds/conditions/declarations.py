"""Conditions that follow from the declarations and the source of the handlers (Sequentialization, section 4.2).

Condition 4 says that a step reads messages of one round only. A handler consumes messages of one type, hence of one
round. They have the same phase if the handler consumes a single message, if the phase is constant or one of its `same`
fields, or if its guard is a conjunction with `m.phase == …` whose right side does not depend on the message. The other
conditions depend on earlier steps of a process, and are left to the search.
"""

from __future__ import annotations

import ast
import functools
import inspect

from plait.model.message import subclasses
from plait.model.process import Handler
from plait.model.system import System
from plait.model.tag import tag_of


def proved(system: System) -> dict[int, str]:
    """The conditions that hold in all runs, each with the reason."""
    if all(one_phase(handler) for _, handler in system.handlers() if handler.message is not None):
        return {4: "by the declarations of the handlers"}
    return {}


def one_phase(handler: Handler) -> bool:
    """Whether the declaration of a handler ensures that all messages of a step have the same phase."""
    assert handler.message is not None
    tag = tag_of(handler.message)
    if tag is None or any(tag_of(cls) != tag for cls in subclasses(handler.message)):
        return False
    if handler.quorum is None or handler.quorum == 1 or isinstance(tag.phase, int):
        return True
    return tag.phase in handler.same or _fixes(handler, tag.phase)


def _fixes(handler: Handler, field: str) -> bool:
    """Whether the guard is a conjunction with a part `m.field == value` whose value does not depend on the message."""
    found = _guard(handler)
    if found is None or len(found.args.args) != 2:
        return False
    message = found.args.args[1].arg
    parts = (
        found.body.values if isinstance(found.body, ast.BoolOp) and isinstance(found.body.op, ast.And) else [found.body]
    )
    return any(_equates(part, message, field) for part in parts)


def _equates(part: ast.expr, message: str, field: str) -> bool:
    if not (isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], ast.Eq)):
        return False
    for side, other in ((part.left, part.comparators[0]), (part.comparators[0], part.left)):
        reads = isinstance(side, ast.Attribute) and isinstance(side.value, ast.Name) and side.value.id == message
        if reads and side.attr == field:  # type: ignore[attr-defined]
            return not any(isinstance(node, ast.Name) and node.id == message for node in ast.walk(other))
    return False


def _guard(handler: Handler) -> ast.Lambda | None:
    """The syntax of a guard that is a lambda without assignments, the only one with two arguments on its line."""
    code = getattr(handler.where, "__code__", None)
    if code is None or code.co_name != "<lambda>" or hasattr(handler.where, "__wrapped__"):
        return None
    try:
        lines, _ = inspect.findsource(code)
        tree = _parsed("".join(lines))
    except (OSError, SyntaxError):
        return None
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda) and n.lineno == code.co_firstlineno]
    found = [n for n in found if len(n.args.args) == 2]
    if len(found) != 1 or any(isinstance(n, ast.NamedExpr) for n in ast.walk(found[0])):
        return None
    return found[0]


@functools.lru_cache(maxsize=8)
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)
