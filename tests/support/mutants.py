"""Programs with one planted fault: what a virtual machine that misunderstands one construct would execute.

A fault is planted in the program that the virtual machine loads. CPython runs the source, which has no fault.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import pytest

from plait.check.tabulate import native
from plait.ir import nodes
from plait.ir.nodes import Node

Fault = Callable[[Node], Node | None]
"""A node with a fault instead of this node, or None if the fault does not fit."""
NOTHING = nodes.Constant(b"N")
"""None, in canonical bytes."""
_OTHER = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "in": "not in", "not in": "in"}
_COPIES = ("list", "set", "dict", "tuple", "sorted", "frozenset")


def rounds_up(node: Node) -> Node | None:
    if isinstance(node, nodes.BinaryOperation) and node.operator == "//":
        return nodes.UnaryOperation("-", nodes.BinaryOperation("//", nodes.UnaryOperation("-", node.left), node.right))
    return None


def aliases(node: Node) -> Node | None:
    """A copy that is no copy."""
    if isinstance(node, nodes.CallBuiltin) and node.name in _COPIES and len(node.arguments) == 1 and not node.keywords:
        return None if isinstance(node.arguments[0], nodes.Generator | nodes.Starred) else node.arguments[0]
    if isinstance(node, nodes.CallMethod) and node.name == "copy":
        return node.value
    if isinstance(node, nodes.Subscript) and node.index == nodes.Slice(None, None, None):
        return node.value
    return None


def sends_nothing(node: Node) -> Node | None:
    return NOTHING if isinstance(node, nodes.Send | nodes.Broadcast) else None


def announces_nothing(node: Node) -> Node | None:
    return NOTHING if isinstance(node, nodes.Announce) else None


def compares_wrongly(node: Node) -> Node | None:
    if isinstance(node, nodes.Compare) and node.operators[0] in _OTHER:
        other: Any = _OTHER[node.operators[0]]
        return nodes.Compare(node.left, [other, *node.operators[1:]], node.rights)
    return None


def calculates_wrongly(node: Node) -> Node | None:
    if isinstance(node, nodes.BinaryOperation) and node.operator in ("+", "-"):
        return nodes.BinaryOperation("-" if node.operator == "+" else "+", node.left, node.right)
    return None


def assigns_nothing(node: Node) -> Node | None:
    if isinstance(node, nodes.Assign) and isinstance(node.targets[0], nodes.AttributeTarget | nodes.SubscriptTarget):
        return nodes.Evaluate(node.value)
    return None


def takes_the_other_branch(node: Node) -> Node | None:
    if isinstance(node, nodes.If):
        return nodes.If(nodes.UnaryOperation("not", node.test), node.body, node.orelse)
    if isinstance(node, nodes.Conditional):
        return nodes.Conditional(node.test, node.orelse, node.body)
    return None


def mixes_and_with_or(node: Node) -> Node | None:
    if isinstance(node, nodes.And):
        return nodes.Or(node.operands)
    return nodes.And(node.operands) if isinstance(node, nodes.Or) else None


def filters_nothing(node: Node) -> Node | None:
    return nodes.Clause(node.target, node.iterable, []) if isinstance(node, nodes.Clause) and node.conditions else None


FAULTS: Mapping[str, Fault] = {
    fault.__name__: fault
    for fault in (
        *(rounds_up, aliases, sends_nothing, announces_nothing, compares_wrongly, calculates_wrongly),
        *(assigns_nothing, takes_the_other_branch, mixes_and_with_or, filters_nothing),
    )
}


def places(program: nodes.Program, fault: Fault) -> int:
    """In how many places of a program a fault fits."""
    return _planted(program, fault, None)[1]


def planted(program: nodes.Program, fault: Fault, place: int | None) -> nodes.Program:
    """The program with a fault in one place, or in all places."""
    return _planted(program, fault, place)[0]


def _planted(program: nodes.Program, fault: Fault, place: int | None) -> tuple[nodes.Program, int]:
    met = 0

    def visit(value: Any) -> Any:
        nonlocal met
        if isinstance(value, list):
            return [visit(item) for item in value]
        if isinstance(value, dict):
            return {name: visit(item) for name, item in value.items()}
        if not isinstance(value, Node):
            return value
        made: Any = msgspec.structs.replace(value, **{n: visit(getattr(value, n)) for n in value.__struct_fields__})
        other = fault(made)
        if other is None:
            return made
        met += 1
        return other if place in (None, met - 1) else made

    functions = [msgspec.structs.replace(f, body=visit(f.body)) for f in program.functions]
    return msgspec.structs.replace(program, functions=functions), met


@contextlib.contextmanager
def executed(change: Callable[[nodes.Program], nodes.Program]) -> Iterator[None]:
    """Meanwhile, the virtual machine executes changed programs."""
    encoded = nodes.encoded
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "encoded", lambda program: encoded(change(program)))
        yield
