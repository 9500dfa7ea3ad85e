"""Conditions of paper 002, section 4.2, that the declarations and the source of the handlers prove.

Condition 4, that a step reads messages of one round only, can be read off: a handler takes messages of one type, hence of
one round; that their phase is one follows if it takes a single message, if the phase is among its `same` fields or constant,
or if its guard is a conjunction with `m.phase == …`, the right side of which does not depend on the message. The others
depend on what a process did before, and are left to the search.
"""

from __future__ import annotations

import ast

from plait.kernel.errors import ModelError
from plait.model.process import Handler
from plait.model.system import System
from plait.model.tag import tag_of
from plait.rounds.structure import function_of


def proved(system: System) -> dict[int, str]:
    """The conditions that hold whatever happens, each with the reason."""
    if all(one_phase(handler) for _, handler in system.handlers() if handler.message is not None):
        return {4: "by the declarations of the handlers"}
    return {}


def one_phase(handler: Handler) -> bool:
    """Whether all messages that a handler takes in a step are of one phase, by what it declares."""
    assert handler.message is not None
    tag = tag_of(handler.message)
    if tag is None:
        return False
    if handler.quorum is None or handler.quorum == 1 or isinstance(tag.phase, int):
        return True
    return tag.phase in handler.same or _fixes(handler, tag.phase)


def _fixes(handler: Handler, field: str) -> bool:
    """Whether the guard is a conjunction of which one part is `m.field == something`, and that is not of the message."""
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
    """The syntax of a guard that is a lambda in the decorator."""
    try:
        decorators = function_of(handler.function).decorator_list
    except ModelError:
        return None
    given = [k.value for d in decorators if isinstance(d, ast.Call) for k in d.keywords if k.arg == "where"]
    return given[0] if len(given) == 1 and isinstance(given[0], ast.Lambda) else None
