"""Memory: objects with addresses, pointers as numbers, and the accesses to them.

Each scalar part of an object is a variable; the elements of arrays are the cells of that variable. An access through
a pointer is a branch on the address, to each object that the pointer may point to. `Model.flows` says which these are:
the values that may flow to each variable (Andersen 1994, without the order of statements).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import structs

from plait.bmc.c.reading.types import (
    ADDRESS,
    Array,
    CType,
    Integer,
    Pointer,
    Struct,
    Synchronization,
    cells,
    converted,
    described,
    integer,
    offset,
    similar,
)
from plait.bmc.c.translation.values import TRUE, ZERO, Located, Object, Origins, Pointed, Reference, Val
from plait.bmc.program.arithmetic import operation
from plait.bmc.program.builder import CodeBuilder, Label
from plait.bmc.program.definition import (
    BOUNDS,
    LIMITS,
    MEMORY,
    Action,
    Constant,
    Domain,
    Ensure,
    Expr,
    Read,
    Set,
    Variable,
    accesses,
)
from plait.bmc.program.source import Place

if TYPE_CHECKING:
    from plait.bmc.c.translation.model import Model


class Memory:
    """Reads and writes memory in the code of one process."""

    def __init__(self, model: Model, code: CodeBuilder) -> None:
        self.model, self.code = model, code
        self.sections: dict[Label, int] = {}
        """For each label that a jump names: how many atomic sections are open there."""
        self.silent = False
        """Whether arithmetic wraps around in any case: that of atomic operations does."""

    # -- control flow --------------------------------------------------------------------------------------------------

    def jump(self, label: Label) -> None:
        """Continue at a label."""
        if self.code.reachable:
            self._note(label)
            self.code.jump(label)

    def branch(self, condition: Expr, then: Label, otherwise: Label) -> None:
        """Continue at one of two labels."""
        if isinstance(condition, Constant):
            self.jump(then if condition.value else otherwise)
        elif self.code.reachable:
            self._note(then)
            self._note(otherwise)
            self.code.branch(condition, then, otherwise)

    def mark(self, label: Label, again: bool = False) -> None:
        """The next operation is at this label, if a jump leads to it. `again`: later jumps may do so."""
        code = self.code
        open_ = self.sections.get(label)
        if open_ is None and not (again or code.reachable):
            return
        if code.entering:
            code.step([])  # The section begins once, although the code after its beginning is repeated.
        if open_ is not None:
            if code.reachable and open_ != code.sections:
                raise self.refusal("an atomic section that begins or ends on one of two paths only")
            code.sections = open_
        else:
            self.sections[label] = code.sections
        code.mark(label)

    def _note(self, label: Label) -> None:
        known = self.sections.setdefault(label, self.code.sections)
        if known != self.code.sections:
            raise self.refusal("an atomic section that begins or ends on one of two paths only")

    # -- parts of objects ----------------------------------------------------------------------------------------------

    def whole(self, found: Object) -> Located:
        """An object."""
        return Located(found, found.type, Constant(found.base or 0), count=found.copies)

    def member(self, of: Reference, name: str) -> Reference:
        """A field of a struct."""
        if isinstance(of, Pointed):
            assert isinstance(of.type, Struct)
            return structs.replace(of, type=of.type.fields[name], steps=(*of.steps, name))
        return _member(of, name)

    def element(self, of: Reference, index: Expr) -> Reference:
        """An element of an array."""
        if isinstance(of, Pointed):
            assert isinstance(of.type, Array)
            return structs.replace(of, type=of.type.element, steps=(*of.steps, index))
        return _element(of, index)

    def variable(self, at: Located, part: str = "") -> Variable:
        """The variable of a scalar, or of a part of a synchronization object."""
        key = (*at.path, part) if part else at.path
        known = at.object.variables.get(key)
        if known is not None:
            return known
        size = _total(at.object.type, at.path) * at.object.copies
        plain = size == 1 and not _arrays(at.object.type, at.path) and at.object.copies == 1
        t = integer(at.type) if isinstance(at.type, Integer | Pointer) else None
        values: list[int] = at.object.initial.get(key, [])
        initial = [*values, *([0] * (size - len(values)))]
        name = ".".join((at.object.name, *key))
        found = self.model.program.shared(
            name if at.object.process is None else f"{self.code.name}.{name}",
            size=None if plain else size,
            initial=initial,
            bits=t.bits if t else None,
            signed=t.signed if t else True,
            lock=isinstance(at.type, Synchronization) and part == "" and at.type.kind in ("mutex", "spin"),
            process=at.object.process,
            temporary=part in ("kind", "depth"),
        )
        at.object.variables[key] = found
        return found

    def cell(self, at: Located, part: str = "") -> tuple[Variable, Expr | None]:
        """The cell of a scalar, or of a part of a synchronization object."""
        variable = self.variable(at, part)
        return variable, None if variable.size is None else at.index

    def flag(self, at: Located) -> Read | None:
        """Whether a scalar is set. None: it always is."""
        of = at.object
        if not (of.unset or of.doubtful) or not isinstance(at.type, Integer | Pointer):
            return None
        variable = self.variable(at)
        found = of.flags.get(at.path)
        if found is None:
            found = of.flags[at.path] = self.model.program.shared(
                f"{variable.name} set",
                "bool",
                size=variable.size,
                initial=not of.unset,
                temporary=True,
                process=variable.process,
            )
        return Read(found, None if found.size is None else at.index)

    def forget(self, of: Located) -> None:
        """The scalars of an object lose their values: it is declared again."""
        found = [self.flag(part) for part in self.parts(of) if isinstance(part, Located)]
        actions = [Set(flag.variable, flag.index, Constant(False)) for flag in found if flag is not None]
        if actions:
            self.code.step(actions, synchronizes=False)

    # -- accesses ------------------------------------------------------------------------------------------------------

    def access(self, to: Reference, act: Callable[[Located], None]) -> None:
        """Do something with what a reference refers to: for a pointer, with each object that it may point to."""
        if isinstance(to, Located):
            self._check(to)
            act(to)
            return
        code = self.code
        address = self.steady(to.address)
        done = code.label("accessed")
        for candidate, condition in self._candidates(to, address):
            here, after = code.label(), code.label()
            self.branch(condition, here, after)
            self.mark(here)
            self._check(candidate)
            act(candidate)
            self.jump(done)
            self.mark(after)
        if code.reachable:
            self._invalid(to, address)
            self.jump(done)
        self.mark(done)

    def steady(self, e: Expr) -> Expr:
        """An expression that can be used several times without repeating a calculation."""
        return e if isinstance(e, Constant | Read) else self.code.kept(e, bits=ADDRESS.bits, signed=False)

    def _check(self, to: Located) -> None:
        for condition, text in to.checks:
            self.code.ensure(condition, BOUNDS, text)

    def _invalid(self, to: Pointed, address: Expr) -> None:
        """The pointer points to none of its objects."""
        code = self.code
        code.ensure(operation("!=", address, ZERO), MEMORY, f"{to.text} is NULL")
        for found in self.objects(to.origins):
            if found.base is not None and not _uniform(found.type, to.target):
                last = found.base + found.copies * (cells(found.type) + 1) - 1
                inside = operation(
                    "&&",
                    operation(">=", address, Constant(found.base)),
                    operation("<", address, Constant(last)),
                )
                text = f"{to.text} accesses {found.name} as {described(to.target)}: this cannot be checked"
                code.ensure(operation("==", inside, Constant(False)), LIMITS, text)
        code.ensure(Constant(False), MEMORY, f"{to.text} does not point to an object of type {described(to.target)}")

    def objects(self, origins: Origins) -> list[Object]:
        """The objects to which a pointer may point."""
        found = map(self.model.recalled, self.model.resolved(origins))
        return [o for o in found if o is not None]

    def _candidates(self, to: Pointed, address: Expr) -> Iterator[tuple[Located, Expr]]:
        for found in self.objects(to.origins):
            if found.base is None:
                continue
            for path, offset_, dimensions in positions(found.type, to.target):
                sizes = dimensions
                if found.copies > 1:
                    sizes = [(found.copies, cells(found.type) + 1), *dimensions]
                at = operation("-", address, Constant(found.base + offset_))
                condition, index, copy = _decomposed(at, sizes, found.copies > 1)
                if condition == Constant(False):
                    continue
                count = found.copies
                for n, _ in dimensions:
                    count *= n
                here = Located(found, to.target, address, path, index, count, copy)
                for step in to.steps:
                    here = _member(here, step) if isinstance(step, str) else _element(here, step)
                yield here, condition

    def load(self, source: Reference, *, copies: bool = False) -> Val:
        """The value at a reference. Each scalar of shared memory is read in an operation of its own.

        With `copies`, it may be a value that is not set: a struct is copied.
        """
        t = source.type
        if isinstance(t, Struct | Array):
            parts = tuple(self.load(part, copies=True) for part in self.scalars(source))
            return Val(ZERO, t, parts=parts)
        synchronizes = bool(getattr(t, "atomic", False))
        if isinstance(source, Located) and source.object.alive is None:
            self._check(source)
            variable, index = self.cell(source)
            flag = self.flag(source)
            if flag is None or variable.process is not None:
                known: Expr = flag if flag is not None and copies else TRUE
                if flag is not None and not copies:
                    self.doubt(flag, source)
                value = self.code.load(variable, index, synchronizes=synchronizes)
                return Val(converted(value, _own(variable), t), t, self._contents(variable), known=known)
        number = integer(t)
        result = self.code.temporary("int", number.bits, number.signed)
        certain = self.code.temporary("bool") if copies else None
        origins: set[str] = set()

        def act(at: Located) -> None:
            variable, index = self.cell(at)
            origins.update(self._contents(variable))
            actions: list[Action] = [Set(result, None, converted(Read(variable, index), _own(variable), number))]
            if certain is not None:
                actions.append(Set(certain, None, self.flag(at) or TRUE))
            self.step(at, actions, synchronizes, copies=copies)

        self.access(source, act)
        return Val(Read(result), t, frozenset(origins), known=TRUE if certain is None else Read(certain))

    def store(self, target: Reference, value: Val) -> None:
        """Write a value."""
        if value.parts is not None:
            for part, scalar in zip(self.scalars(target), value.parts, strict=True):
                self.store(part, scalar)
            return
        synchronizes = bool(getattr(target.type, "atomic", False))

        def act(at: Located) -> None:
            variable, index = self.cell(at)
            self.flow(variable, value)
            own = converted(value.expr, at.type, _own(variable))
            if value.known != TRUE and self.flag(at) is None:
                self.model.doubtful.add(at.object.key)
                text = f"a part of a struct that was never set is copied to {at.object.name}: this cannot be checked"
                self.code.ensure(value.known, LIMITS, text)
            self.step(at, [Set(variable, index, own)], synchronizes, known=value.known)

        self.access(target, act)

    def flow(self, variable: Variable, value: Val) -> None:
        """Note that a value flows to a variable."""
        if value.origins:
            self.model.found.setdefault(f"variable {variable.name}", set()).update(value.origins)

    def _contents(self, variable: Variable) -> Origins:
        return frozenset((f"variable {variable.name}",))

    def step(
        self,
        at: Located,
        actions: list[Action],
        synchronizes: bool,
        waits: bool = False,
        *,
        known: Expr = TRUE,
        copies: bool = False,
    ) -> None:
        """An access to an object as one operation; it fails if the object has been freed.

        `known`: whether the value that is written is set. With `copies`, one that is not can be read.
        """
        flag, certain = self.flag(at), None
        if flag is not None:
            reads, writes = accesses(tuple(actions))
            variable = self.variable(at)
            if variable in reads and not copies and variable.process is None:
                certain = self.code.temporary("bool")
                actions = [Set(certain, None, flag), *actions]
            if variable in writes:
                actions = [*actions, Set(flag.variable, flag.index, known)]
        if at.object.alive is not None:
            alive = Read(at.object.alive, at.copy)
            text = f"{at.object.name} is used after it was freed, or before it was allocated"
            actions = [Ensure(alive, MEMORY, text), *actions]
        elif len(actions) == 1 and isinstance(actions[0], Set):
            action = actions[0]
            self.code.set(action.variable, action.value, action.index, synchronizes=synchronizes)
            return
        self.code.step(actions, waits=waits, synchronizes=synchronizes)
        if certain is not None:
            self.doubt(Read(certain), at)

    def doubt(self, known: Expr, at: Located) -> None:
        """If a scalar was read that is not set: the run may go on with its cell as it is, but that is a violation."""
        code = self.code
        doubt, wrong, done = code.label(), code.label(), code.label("read")
        self.branch(known, done, doubt)
        self.mark(doubt)
        self.branch(code.choose(Domain("bool")), done, wrong)
        self.mark(wrong)
        name = re.sub(r"#(\d+)", r" (\1)", ".".join((at.object.name, *at.path)))
        if self.variable(at).size is not None:
            name = f"{name}[{at.index.value}]" if isinstance(at.index, Constant) else f"an element of {name}"
        code.ensure(Constant(False), MEMORY, f"{name} is read, but it was never set")
        code.reachable = False
        self.mark(done)

    def scalars(self, of: Reference) -> Iterator[Reference]:
        """The scalars of a struct or an array, in order."""
        for part in self.parts(of):
            if isinstance(part.type, Synchronization):
                raise self.refusal(f"the copy of a {part.type.kind}")
            yield part

    def parts(self, of: Reference) -> Iterator[Reference]:
        """The scalars and synchronization objects of a struct or an array, in order."""
        match of.type:
            case Struct():
                for name in of.type.fields:
                    yield from self.parts(self.member(of, name))
            case Array(_, count):
                for n in range(count):
                    yield from self.parts(self.element(of, Constant(n)))
            case _:
                yield of

    def refusal(self, what: str, place: Place | None = None, hint: str | None = None) -> Exception:
        """The error for something that is not supported."""
        return self.model.unit.refusal(place or self.code.here, what, hint)

    # -- pointers ------------------------------------------------------------------------------------------------------

    def pointer(self, to: Reference) -> Val:
        """The address of something."""
        if isinstance(to, Located):
            if to.object.base is None:
                raise AssertionError(f"the address of {to.object.name} is needed, but it has none")
            return Val(to.address, Pointer(to.type), frozenset((f"object {to.object.name}",)), to)
        address, t = to.address, to.target
        for step in to.steps:
            if isinstance(step, str):
                assert isinstance(t, Struct)
                address = operation("+", address, Constant(offset(t, step)))
                t = t.fields[step]
            else:
                assert isinstance(t, Array)
                t = t.element
                address = operation("+", address, operation("*", step, Constant(cells(t))))
        return Val(address, Pointer(t), to.origins)

    def pointed(self, value: Val, text: str = "the pointer") -> Reference:
        """What a pointer points to."""
        t = value.type.target if isinstance(value.type, Pointer) else value.type
        if value.target is not None:
            if similar(value.target.type, t):
                return structs.replace(value.target, type=t if isinstance(t, Integer) else value.target.type)
            inner = _first(value.target, t)
            if inner is not None:
                return inner
        return Pointed(value.expr, t, value.origins, t, text=text)

    def counted(self, value: Val) -> None:
        """Arithmetic counts cells. This is right only if the pointer points to an object of its own type."""
        t = value.type.target if isinstance(value.type, Pointer) else value.type
        mixed = [o for o in self.objects(value.origins) if o.base is not None and not _uniform(o.type, t)]
        if not mixed:
            return
        if self.silent:
            raise self.refusal("atomic arithmetic on a pointer to an object of another type")
        address = self.steady(value.expr)
        for found in mixed:
            first = found.base or 0
            behind = first + found.copies * (cells(found.type) + 1) - 1
            legal = operation(
                "||", operation("<", address, Constant(first)), operation(">=", address, Constant(behind))
            )
            for _, condition in self._candidates(Pointed(address, t, frozenset((f"object {found.name}",)), t), address):
                legal = operation("||", legal, condition)
            if legal != Constant(True):
                text = (
                    f"arithmetic on a pointer to {described(t)} that points into {found.name}: this cannot be checked"
                )
                self.code.ensure(legal, LIMITS, text)

    def moved(self, value: Val, by: Expr) -> Val:
        """A pointer plus a number of elements."""
        t = value.type.target if isinstance(value.type, Pointer) else value.type
        stride = cells(t)
        address = operation("+", value.expr, operation("*", by, Constant(stride)))
        target = None
        if value.target is not None and value.target.array is not None and similar(value.target.type, t):
            target = _element(value.target.array, operation("+", value.target.position, by))
            address = target.address
        elif by == ZERO:
            target = value.target
        else:
            self.counted(value)
        return Val(address, value.type, value.origins, target)


def _own(variable: Variable) -> Integer:
    """The type of a variable."""
    return Integer(variable.bits or ADDRESS.bits, variable.signed)


def _member(of: Located, name: str) -> Located:
    assert isinstance(of.type, Struct)
    address = operation("+", of.address, Constant(offset(of.type, name)))
    return structs.replace(
        of, type=of.type.fields[name], address=address, path=(*of.path, name), array=None, position=ZERO
    )


def _element(of: Located, index: Expr) -> Located:
    assert isinstance(of.type, Array)
    t, count = of.type.element, of.type.count
    checks = of.checks
    inside = operation("&&", operation("<=", ZERO, index), operation("<", index, Constant(count)))
    if inside != Constant(True):
        number = f"the index {index.value}" if isinstance(index, Constant) else "an index"
        checks = (*checks, (inside, f"{number} is out of range: {of.object.name} has {count} elements there"))
    return structs.replace(
        of,
        type=t,
        address=operation("+", of.address, operation("*", index, Constant(cells(t)))),
        index=operation("+", operation("*", of.index, Constant(count)), index) if of.index != ZERO else index,
        count=of.count * count,
        checks=checks,
        array=of,
        position=index,
    )


def _uniform(t: CType, part: CType) -> bool:
    """Whether an object consists of parts of one type only."""
    return similar(t, part) or (isinstance(t, Array) and _uniform(t.element, part))


def _first(at: Located, t: CType) -> Located | None:
    """The first part of this type at the beginning of something: a pointer to a struct also points to its first field."""
    while not similar(at.type, t):
        if isinstance(at.type, Struct) and at.type.fields:
            at = _member(at, next(iter(at.type.fields)))
        elif isinstance(at.type, Array) and at.type.count:
            at = _element(at, ZERO)
        else:
            return None
    return at


def _arrays(t: CType, path: tuple[str, ...]) -> list[int]:
    """The lengths of the arrays on the way to a part."""
    found = []
    names = list(path)
    while True:
        if isinstance(t, Array):
            found.append(t.count)
            t = t.element
        elif isinstance(t, Struct) and names:
            t = t.fields[names.pop(0)]
        else:
            return found


def _total(t: CType, path: tuple[str, ...]) -> int:
    total = 1
    for count in _arrays(t, path):
        total *= count
    return total


Position = tuple[tuple[str, ...], int, list[tuple[int, int]]]
"""Fields, the number of cells before the part, and for each array on the way its length and the cells per element."""


def positions(t: CType, wanted: CType) -> Iterator[Position]:
    """The parts of a type that have another type."""
    if similar(t, wanted):
        yield (), 0, []
        return
    match t:
        case Struct():
            for name, part in t.fields.items():
                for path, at, dimensions in positions(part, wanted):
                    yield (name, *path), offset(t, name) + at, dimensions
        case Array(element, count):
            for path, at, dimensions in positions(element, wanted):
                yield path, at, [(count, cells(element)), *dimensions]


def _decomposed(at: Expr, sizes: list[tuple[int, int]], copies: bool) -> tuple[Expr, Expr, Expr]:
    """From a number of cells to the index in nested arrays: the condition that it is one, the index, and the copy."""
    if not sizes:
        return operation("==", at, ZERO), ZERO, ZERO
    condition, rest = operation(">=", at, ZERO), at
    index: Expr = ZERO
    copy: Expr = ZERO
    for number, (count, stride) in enumerate(sizes):
        here: Expr = rest if stride == 1 else operation("quot", rest, Constant(stride))
        rest = ZERO if stride == 1 else operation("rem", rest, Constant(stride))
        condition = operation("&&", condition, operation("<", here, Constant(count)))
        index = here if number == 0 else operation("+", operation("*", index, Constant(count)), here)
        if number == 0 and copies:
            copy = here
    if rest != ZERO:
        condition = operation("&&", condition, operation("==", rest, ZERO))
    return condition, index, copy
