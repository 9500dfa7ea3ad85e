"""Arrays that a loop fills before anything else uses them. Nobody need check whether their elements are set.

    int a[4];
    for (int i = 0; i < 4; i++)
      a[i] = i * i;

The first statement after the declaration that mentions the array is such a loop: it counts from 0 over all elements, is
never left early, and assigns each element before it uses another one. `pthread_create(&a[i], …)` assigns one, too.
"""

from __future__ import annotations

from plait.bmc.c.reading.tree import (
    Assign,
    Binary,
    Block,
    Call,
    Case,
    Cast,
    Declaration,
    Declare,
    Definition,
    Do,
    Expression,
    FunctionName,
    Increment,
    Index,
    Jump,
    Loop,
    Name,
    Node,
    Number,
    Return,
    Statement,
    Switch,
    Target,
    Unary,
    nodes,
)
from plait.bmc.c.reading.types import Array, Integer, Pointer


def mark_filled(function: Definition) -> None:
    """Set the flag `filled` of the arrays of a function."""
    everything = list(nodes(function.body))
    if any(isinstance(node, Jump) and node.name not in ("break", "continue") for node in everything):
        return
    for block in everything:
        if isinstance(block, Block):
            for number, statement in enumerate(block.body):
                if isinstance(statement, Declare):
                    for declared in statement.declarations:
                        declared.filled = _is_filled(declared, statement, block.body[number + 1 :])


def _is_filled(array: Declaration, declares: Declare, following: list[Statement]) -> bool:
    t = array.type
    if not isinstance(t, Array) or not isinstance(t.element, Integer | Pointer) or array.initial is not None:
        return False
    if any(d.initial is not None and _mentions(d.initial, array) for d in declares.declarations):
        return False
    first = next((s for s in following if _mentions(s, array)), None)
    return isinstance(first, Loop) and _fills(first, array, t.count)


def _fills(loop: Loop, array: Declaration, count: int) -> bool:
    counter = _counter(loop)
    if counter is None or counter.static or counter.shared or not _covers(loop, counter, count):
        return False
    inside = list(nodes(loop.body))
    if any(isinstance(node, Jump | Return | Target | Switch | Case) for node in inside):
        return False
    for node in inside:
        match node:
            case Assign(target=target) | Increment(target=target) | Unary("&", target):
                if _is(target, counter):
                    return False
    for statement in loop.body.body if isinstance(loop.body, Block) else [loop.body]:
        if _mentions(statement, array):
            return isinstance(statement, Do) and _assigns(statement.expression, array, counter)
    return False


def _counter(loop: Loop) -> Declaration | None:
    """The variable that a loop sets to 0."""
    match loop.initial:
        case Declare([declared]) if declared.initial is not None and _number(declared.initial) == 0:
            return declared
        case Do(Assign("", Name(declared), value)) if _number(value) == 0:
            return declared
        case _:
            return None


def _covers(loop: Loop, counter: Declaration, count: int) -> bool:
    """Whether a loop counts from 0 to the last element."""
    match loop.condition:
        case Binary("<" | "!=", left, right) if not loop.first and _is(left, counter):
            last = _number(right)
        case _:
            return False
    match loop.step:
        case Increment(1, _, target):
            return last == count and _is(target, counter)
        case _:
            return False


def _assigns(e: Expression, array: Declaration, counter: Declaration) -> bool:
    """Whether an expression assigns the element of this number, and does not mention the array otherwise."""
    match e:
        case Assign("", target, value):
            return _is_element(target, array, counter) and not _mentions(value, array)
        case Call(FunctionName("pthread_create"), [handle, *others]):
            place = _plain(handle)
            element = isinstance(place, Unary) and place.operator == "&" and _is_element(place.operand, array, counter)
            return element and not any(_mentions(other, array) for other in others)
        case _:
            return False


def _is_element(e: Expression, array: Declaration, counter: Declaration) -> bool:
    return isinstance(e, Index) and _is(e.base, array) and _is(e.index, counter)


def _is(e: Expression, declared: Declaration) -> bool:
    inner = _plain(e)
    return isinstance(inner, Name) and inner.declaration is declared


def _number(e: Expression) -> int | None:
    inner = _plain(e)
    return inner.value if isinstance(inner, Number) else None


def _plain(e: Expression) -> Expression:
    """An expression without conversions that keep its value."""
    while isinstance(e, Cast) and not _narrows(e):
        e = e.operand
    return e


def _narrows(e: Cast) -> bool:
    before, after = e.operand.type, e.type
    return isinstance(before, Integer) and isinstance(after, Integer) and after.bits < before.bits


def _mentions(node: Node, declared: Declaration) -> bool:
    return any(isinstance(part, Name) and part.declaration is declared for part in nodes(node))
