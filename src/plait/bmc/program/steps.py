"""From operations to steps: each step has at most one access to memory that several processes use.

A step begins with an operation that other processes can notice (it accesses shared memory, waits or assumes), and
continues with the operations after it that they cannot notice. So local computation costs no states. A step is a tree:
operations after a join are repeated in both branches, up to a size. A loop that accesses no shared memory begins a step
of its own.

The operations of an atomic section are one step too, if they are a small tree without a loop. Otherwise, the section
has several steps, and its inner locations are exclusive: no other process runs meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from plait.bmc.program.builder import Code, CodeBuilder, Label, substituted
from plait.bmc.program.definition import (
    Action,
    Branch,
    Constant,
    Domain,
    Ensure,
    Expr,
    Goto,
    Instruction,
    Operation,
    Read,
    Require,
    Set,
    Variable,
    accesses,
    variables_of,
)
from plait.bmc.program.source import Place

_LARGEST = 48
"""The number of operations of a step. Beyond it, every join begins a new step."""


def instructions(code: CodeBuilder, private: set[Variable], signals: set[Variable]) -> tuple[Instruction, ...]:
    """The steps of a process.

    No other process can notice an access to a variable of `private`, or a write of a signal (see `signals_of`).
    """
    return _Packing(code, private, signals).instructions()


def signals_of(operations: Iterable[Code], variables: Iterable[Variable]) -> set[Variable]:
    """The variables that are only set to true, and that processes only wait for.

    A write of a signal disables no step of another process, and nobody can observe that it has not happened yet. So it
    can happen at once, as a part of the step before it: every run has an equivalent one in which it does.
    """
    found = {v for v in variables if v.kind == "bool" and v.size is None and v.initial == (False,)}
    for operation in operations:
        for action in operation.actions:
            match action:
                case Set(variable, None, Constant(True)) if variable in found:
                    pass
                case Require(condition):
                    found -= variables_of(condition) - _awaited(condition)
                case _:
                    reads, writes = accesses((action,))
                    found -= reads | writes
        if operation.condition is not None:
            found -= variables_of(operation.condition)
    return found


def _awaited(e: Expr) -> set[Variable]:
    """The variables that occur only positively in a condition: it stays true if one of them becomes true."""
    match e:
        case Read(variable, None):
            return {variable}
        case Operation("&&" | "||", left, right):
            one, two = _awaited(left), _awaited(right)
            return (one - variables_of(right)) | (two - variables_of(left)) | (one & two)
        case _:
            return set()


class _TooLargeError(Exception):
    """A step has too many operations."""


class _Packing:
    def __init__(self, code: CodeBuilder, private: set[Variable], signals: set[Variable]) -> None:
        self.code, self.operations = code, _threaded(code.operations)
        self.private, self.signals = private, signals
        self.noticed = [self._noticed(operation) for operation in self.operations]
        self.joins = self._joins()
        self.heads: set[int] = {0}
        """The operations that begin a step."""

    def _noticed(self, operation: Code) -> bool:
        reads, writes = accesses(tuple(operation.actions))
        if operation.condition is not None:
            reads = reads | accesses((Require(operation.condition),))[0]
        shared = any(v.process is None and v not in self.private for v in reads | (writes - self.signals))
        return shared or operation.waits or operation.assumes or bool(operation.inputs)

    def _joins(self) -> set[int]:
        entries: dict[int, int] = {}
        for operation in self.operations:
            for label in (operation.then, operation.otherwise):
                if label is not None and label.operation is not None:
                    entries[label.operation] = entries.get(label.operation, 0) + 1
        return {number for number, count in entries.items() if count > 1}

    def instructions(self) -> tuple[Instruction, ...]:
        while True:
            trees = self._trees()
            if trees is not None:
                break
        order = sorted(trees, key=lambda number: (number != 0, number))
        location = {number: at for at, number in enumerate(order)}
        end = len(order)
        found = []
        for number in order:
            body, inputs, operations = trees[number]
            actions = tuple(_located(a, location, end) for a in body)
            blocking = [o for o in operations if o.waits or o.assumes]
            first = self.operations[number]
            found.append(
                Instruction(
                    self.code.number,
                    location[number],
                    actions,
                    targets_of(actions),
                    next((o.place for o in self._statements(number, operations)), first.place),
                    inputs,
                    waits=bool(blocking) and all(o.waits for o in blocking),
                    owner=first.owner if blocking == [first] else None,
                    synchronizes=all(o.synchronizes or o.section for o in operations if self._touches(o)),
                    exclusive=first.section and not first.entry,
                )
            )
        return tuple(found)

    def _statements(self, number: int, operations: list[Code]) -> list[Code]:
        """The operations with a text. If a thread starts and accesses memory in one step, the access comes first."""
        found = [o for o in operations if self.shown(o)]
        if number == 0 and self.code.spawned:
            found.sort(key=lambda o: o is operations[0] or not self._touches(o))
        return found

    def shown(self, operation: Code) -> bool:
        """Whether traces can show it as a statement: it acts or decides, and has a text."""
        return (bool(operation.actions) or operation.condition is not None) and operation.place.text != ""

    def _touches(self, operation: Code) -> bool:
        return any(
            v.process is None and v not in self.private for v in set().union(*accesses(tuple(operation.actions)))
        )

    def _trees(self) -> dict[int, tuple[list[Action], tuple[Domain, ...], list[Code]]] | None:
        """The steps from all heads that can be reached. None: there are more heads than known, so begin again."""
        found: dict[int, tuple[list[Action], tuple[Domain, ...], list[Code]]] = {}
        todo = [0]
        before = len(self.heads)
        while todo:
            number = todo.pop()
            if number in found:
                continue
            tree = _Tree(self)
            try:
                body = tree.grown(number)
            except _TooLargeError:
                self.heads |= tree.joined
                if len(self.heads) == before:
                    self.heads.add(tree.last)
                return None
            found[number] = (body, tuple(tree.inputs), tree.operations)
            todo += tree.targets
        return found if len(self.heads) == before else None


class _Tree:
    """One step: the operations from a head on."""

    def __init__(self, of: _Packing) -> None:
        self.of = of
        self.inputs: list[Domain] = []
        self.operations: list[Code] = []
        self.targets: list[int] = []
        self.path: list[int] = []
        self.joined: set[int] = set()
        self.last = 0

    def grown(self, number: int) -> list[Action]:
        """The actions from an operation on."""
        operation = self.of.operations[number]
        self.operations.append(operation)
        self.last = number
        if len(self.operations) > _LARGEST:
            raise _TooLargeError
        shift = {n: n + len(self.inputs) for n in range(len(operation.inputs))}
        self.inputs += operation.inputs
        actions = [_shifted(a, shift) for a in operation.actions] if shift else list(operation.actions)
        shown = next((o.place for o in self.operations if self.of.shown(o)), operation.place)
        if operation.place.line != shown.line:
            actions = [_told(a, operation.place) for a in actions]
        self.path.append(number)
        then = self._next(number, operation.then)
        if operation.condition is not None:
            condition = substituted(operation.condition, shift)
            otherwise = self._next(number, operation.otherwise)
            actions.append(Branch(condition, tuple(then), tuple(otherwise)))
        else:
            actions += then
        self.path.pop()
        return actions

    def _next(self, number: int, label: Label | None) -> list[Action]:
        if label is None or label.operation is None or label.operation >= len(self.of.operations):
            return [Goto(_END)]
        target = label.operation
        here, there = self.of.operations[number], self.of.operations[target]
        together = here.section and there.section
        if self.path[0] == 0 and self.of.code.spawned and not any(self.of.noticed[n] for n in self.path[1:]):
            # Nobody can notice whether a process has started, so its first access belongs to the same step. A process
            # that waits is not at its start, or it would not count for deadlocks.
            together = not (there.waits or there.assumes or there.inputs)
        loop = target in self.path
        if there.entry or loop or target in self.of.heads or (self.of.noticed[target] and not together):
            self.targets.append(target)
            return [Goto(target)]
        if target in self.of.joins:
            self.joined.add(target)
        return self.grown(target)


_END = -1
"""The target of a step after which the process has ended, until locations are known."""


def _threaded(operations: Sequence[Code]) -> list[Code]:
    """The operations, in which a jump to a jump goes to its target at once."""

    def final(label: Label | None) -> Label | None:
        seen: set[int] = set()
        while label is not None and label.operation is not None and label.operation not in seen:
            seen.add(label.operation)
            there = operations[label.operation]
            if there.actions or there.condition is not None or there.then is None or there.entry or there.inputs:
                return label
            label = there.then
        return label

    for operation in operations:
        operation.then, operation.otherwise = final(operation.then), final(operation.otherwise)
    return list(operations)


def _told(action: Action, place: Place) -> Action:
    """A check that also says where it is: the step has the place of another statement."""
    if not isinstance(action, Ensure):
        return action
    where = f"line {place.line}: {place.text}" if place.text else f"line {place.line}"
    return Ensure(action.condition, action.check, f"{action.text} ({where})")


def _mapped(action: Action, change: Callable[[Expr], Expr], go: Callable[[int], int]) -> Action:
    match action:
        case Set(variable, index, value):
            return Set(variable, None if index is None else change(index), change(value))
        case Require(condition):
            return Require(change(condition))
        case Ensure(condition, check, text):
            return Ensure(change(condition), check, text)
        case Branch(condition, then, otherwise):
            sides = [tuple(_mapped(a, change, go) for a in side) for side in (then, otherwise)]
            return Branch(change(condition), *sides)
        case Goto(location):
            return Goto(go(location))


def _shifted(action: Action, inputs: dict[int, int]) -> Action:
    return _mapped(action, lambda e: substituted(e, inputs), lambda location: location)


def _located(action: Action, location: dict[int, int], end: int) -> Action:
    return _mapped(action, lambda e: e, lambda number: end if number == _END else location[number])


def targets_of(actions: Sequence[Action]) -> tuple[int, ...]:
    """The locations that actions can lead to."""
    found: list[int] = []
    for action in actions:
        match action:
            case Goto(location):
                found.append(location)
            case Branch(condition, then, otherwise):
                sides = [then, otherwise]
                if isinstance(condition, Constant):
                    sides = [then if condition.value else otherwise]
                for side in sides:
                    found += targets_of(side)
    return tuple(dict.fromkeys(found))
