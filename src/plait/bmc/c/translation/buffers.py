"""Functions of the C library that fill or copy memory, and that read input: `memset`, `memcpy`, `atoi`, `scanf`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from plait.bmc.c.reading.tree import (
    Assign,
    Call,
    Cast,
    Declaration,
    Definition,
    Evaluated,
    Expression,
    FunctionName,
    Increment,
    Name,
    Text,
    nodes,
)
from plait.bmc.c.reading.types import INT, Array, Integer, Pointer, Synchronization, Void, integer, size
from plait.bmc.c.translation.values import ZERO, Located, Reference, Val
from plait.bmc.program.arithmetic import operation
from plait.bmc.program.definition import Constant, Domain, Expr, Read

if TYPE_CHECKING:
    from plait.bmc.c.translation.translator import Translator

_UNROLLED = 64
"""The number of elements up to which a copy of known length needs no loop."""
_CONVERSION = re.compile(r"%(\*?)(\d*)(hh|h|ll|l|j|z|t)?([a-zA-Z\[%])")
_BITS = {"hh": 8, "h": 16, "l": 64, "ll": 64, "j": 64, "z": 64, "t": 64}


def typed(e: Expression) -> Expression:
    """An argument without the conversions to `void *` and `char *`, which hide its type."""
    while isinstance(e, Cast) and isinstance(e.type, Pointer) and isinstance(e.operand.type, Pointer | Array):
        if isinstance(e.operand.type, Array) and not isinstance(e.operand, Text):
            return e
        e = e.operand
    return e


# -- memset, memcpy ----------------------------------------------------------------------------------------------------


def _memset(of: Translator, e: Call) -> Val:
    """All bytes of some elements get the same value."""
    pointer = of.value(typed(e.arguments[0]))
    byte, count = of.value(e.arguments[1]).constant, of.value(e.arguments[2])
    whole = _whole(of, pointer, count)
    refusal = of.refusal("memset of a synchronization object, or with a byte that is not a constant,", e.place)

    def fill(target: Reference) -> None:
        for part in of.parts(target):
            if isinstance(part.type, Synchronization) and byte == 0:
                continue
            if not isinstance(part.type, Integer | Pointer) or byte is None:
                raise refusal
            t = integer(part.type)
            bits = int.from_bytes(bytes([byte & 255] * (t.bits // 8 or 1)), "little")
            value = bits - (1 << t.bits) if t.signed and bits >> (t.bits - 1) else bits
            if value and (isinstance(part.type, Pointer) or t.bits == 1):
                raise of.refusal("memset of a pointer or a _Bool to a byte that is not 0", e.place)
            of.store(part, Val(Constant(value), part.type))

    if whole is not None:
        fill(whole)
        return pointer
    steady = Val(of.steady(pointer.expr), pointer.type, pointer.origins, pointer.target)
    _each(of, e, [steady], count, lambda targets: fill(targets[0]))
    return pointer


def _memcpy(of: Translator, e: Call) -> Val:
    """Elements are copied from one array, or one object, to another one of the same type."""
    to, source = (of.value(typed(argument)) for argument in e.arguments[:2])
    count = of.value(e.arguments[2])
    if to.type != source.type and not _alike(to, source):
        raise of.refusal("memcpy between objects of different types", e.place)
    pair = [Val(of.steady(v.expr), v.type, v.origins, v.target) for v in (to, source)]

    def copy(targets: list[Reference]) -> None:
        for target, value in zip(*(list(of.scalars(t)) for t in targets), strict=True):
            of.store(target, of.load(value, copies=True))

    _each(of, e, pair, count, copy)
    return to


def _alike(one: Val, other: Val) -> bool:
    types = [v.type.target if isinstance(v.type, Pointer) else v.type for v in (one, other)]
    sizes = {t.bits for t in types if isinstance(t, Integer)}
    return all(isinstance(t, Integer) for t in types) and len(sizes) == 1


def _whole(of: Translator, pointer: Val, count: Val) -> Reference | None:
    """The object or the array that a pointer leads to, if it has this number of bytes."""
    target = of.pointed(pointer)
    if isinstance(target, Located) and target.array is not None and size(target.type) != count.constant:
        target = target.array
    known = not isinstance(target.type, Void) and size(target.type) == count.constant
    return target if known else None


def _each(of: Translator, e: Call, pointers: list[Val], count: Val, act: Callable[[list[Reference]], None]) -> None:
    """Do something with as many elements as a number of bytes covers."""
    code = of.code
    t = pointers[0].type
    element = t.target if isinstance(t, Pointer) else t
    name = getattr(e.function, "name", "the function")
    if isinstance(element, Void) or size(element) == 0:
        raise of.refusal(f"{name} of objects of unknown type", e.place, "give it a pointer to the type of the object")

    def at(index: Expr) -> list[Reference]:
        return [of.pointed(of.moved(pointer, index)) for pointer in pointers]

    if count.constant is not None:
        if count.constant % size(element):
            raise of.refusal(f"{name} of a part of an element", e.place)
        number = count.constant // size(element)
        if number <= _UNROLLED:
            for n in range(number):
                act(at(Constant(n)))
            return
    most = of.steady(count.expr)
    index = code.local(f"{name} index", temporary=True)
    again, inside, done = (code.label() for _ in range(3))
    code.set(index, ZERO)
    of.mark(again, again=True)
    of.branch(operation("<", operation("*", Read(index), Constant(size(element))), most), inside, done)
    of.mark(inside)
    act(at(Read(index)))
    code.set(index, operation("+", Read(index), Constant(1)))
    of.jump(again)
    of.mark(done)
    code.set(index, ZERO)


# -- input -------------------------------------------------------------------------------------------------------------


def _number(of: Translator, e: Call) -> Val:
    """The number that a text stands for: any number."""
    for argument in e.arguments[1:2]:
        if of.value(argument).constant != 0:
            raise of.refusal("a pointer to the end of the number", e.place, "give NULL")
    return of.nondeterministic(e)


def _scanf(first: int) -> Callable[[Translator, Call], Val]:
    """All conversions succeed, with any number."""

    def call(of: Translator, e: Call) -> Val:
        form = typed(e.arguments[first - 1])
        if not isinstance(form, Text):
            raise of.refusal("a format that is not a literal", e.place)
        found = [m.groups() for m in _CONVERSION.finditer(form.value) if m.group(4) != "%"]
        wanted = [(length, kind) for skip, _, length, kind in found if not skip]
        if any(kind not in "diuxXo" for _, kind in wanted) or len(wanted) != len(e.arguments) - first:
            raise of.refusal("a format with other conversions than those of integers", e.place)
        for (length, kind), argument in zip(wanted, e.arguments[first:], strict=True):
            t = Integer(_BITS.get(length or "", 32), kind in "di")
            value = of.code.choose(Domain("int", t.low, t.high), t.bits, t.signed)
            target = of.pointed(of.value(typed(argument)), f"the pointer {argument.place.text}")
            of.store(target, of.cast(Val(value, t), target.type))
        return Val(Constant(len(wanted)), INT)

    return call


_TEXTS = ("printf", "fprintf", "puts", "fputs", "perror", "atoi", "atol", "atoll", "strtol", "strtoul", "strtoll")
BUFFER_CALLS: dict[str, Callable[[Translator, Call], Val]] = {
    "memset": _memset,
    **dict.fromkeys(("memcpy", "memmove", "__builtin_memcpy", "__builtin_memmove"), _memcpy),
    "__builtin_memset": _memset,
    **dict.fromkeys(("atoi", "atol", "atoll", "strtol", "strtoul", "strtoll", "strtoull"), _number),
    "scanf": _scanf(1),
    "fscanf": _scanf(2),
    "sscanf": _scanf(2),
}


def words(definition: Definition) -> Iterator[tuple[Declaration, Name]]:
    """The uses of variables in arguments of which only the type matters: `atoi(argv[1])`, `printf("%s", argv[0])`."""
    for node in nodes(definition.body):
        if not isinstance(node, Call) or not isinstance(node.function, FunctionName):
            continue
        name = node.function.name
        given = node.arguments[:1] if name == "sscanf" else node.arguments if name in _TEXTS else []
        for argument in given:
            inside = list(nodes(argument))
            if isinstance(argument.type, Pointer) and not any(isinstance(n, _EFFECTS) for n in inside):
                yield from ((n.declaration, n) for n in inside if isinstance(n, Name))


_EFFECTS = Assign | Increment | Call | Evaluated
