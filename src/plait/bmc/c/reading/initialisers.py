"""Initialisers: which expression initialises which scalar of an object (C17, section 6.7.9)."""

from __future__ import annotations

from collections.abc import Iterator

from plait.bmc.c.reading.tree import Cast, Expression, Items, Number, Text
from plait.bmc.c.reading.types import CHAR, Array, CType, Integer, Pointer, Struct, Synchronization, similar

Step = str | int
Initial = tuple[tuple[Step, ...], Expression]
"""The fields and indices of a part, and its initial value."""


def initials(t: CType, e: Expression) -> list[Initial]:
    """The parts of an object that an initialiser mentions. A later value for the same part replaces an earlier one."""
    found: dict[tuple[Step, ...], Expression] = {}
    for path, value in _initials(t, e):
        found.pop(path, None)
        found[path] = value
    return list(found.items())


def _initials(t: CType, e: Expression) -> Iterator[Initial]:
    inner = e.operand if isinstance(e, Cast) and isinstance(e.operand, Text) else e
    if isinstance(inner, Text) and isinstance(t, Array):
        for n, c in enumerate(inner.value[: t.count]):
            yield (n,), Number(ord(c), CHAR, e.place)
    elif not isinstance(e, Items) or isinstance(t, Synchronization):
        yield (), e
    elif isinstance(t, Struct | Array):
        yield from _Filling(list(e.items)).parts(t, ())
    elif e.items:
        yield from _initials(t, e.items[0][1])


class _Filling:
    """Takes the items of an initialiser in braces one after the other."""

    def __init__(self, items: list[tuple[list[Step], Expression]]) -> None:
        self.items = items

    def parts(self, t: Struct | Array, path: tuple[Step, ...], outermost: bool = True) -> Iterator[Initial]:
        names: list[Step] = list(t.fields) if isinstance(t, Struct) else list(range(t.count))
        at = 0
        while self.items:
            designator, value = self.items[0]
            if designator:
                if not outermost:
                    return
                at = names.index(designator[0])
            if at >= len(names):
                return
            part = t.fields[str(names[at])] if isinstance(t, Struct) else t.element
            here = (*path, names[at])
            at += 1
            if designator[1:]:
                self.items.pop(0)
                inner: Expression = Items([(designator[1:], value)], part, value.place)
                yield from ((here + p, v) for p, v in _initials(part, inner))
            elif isinstance(part, Struct | Array) and not _whole(part, value):
                # Braces are left out: the part takes as many items as it needs.
                self.items[0] = ([], value)
                yield from self.parts(part, here, outermost=False)
            else:
                self.items.pop(0)
                yield from ((here + p, v) for p, v in _initials(part, value))


def _whole(t: CType, e: Expression) -> bool:
    inner = e.operand if isinstance(e, Cast) else e
    return isinstance(e, Items) or isinstance(inner, Text) or similar(e.type, t)


def scalars(t: CType) -> Iterator[tuple[Step, ...]]:
    """The paths of all scalars of a type."""
    match t:
        case Integer() | Pointer():
            yield ()
        case Struct():
            for name, part in t.fields.items():
                yield from ((name, *path) for path in scalars(part))
        case Array(element, count):
            for n in range(count):
                yield from ((n, *path) for path in scalars(element))
        case _:
            return
