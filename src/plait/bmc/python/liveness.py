"""Dead variables: a local variable that no later operation reads gets its initial value back at once.

So states that differ only in what a thread no longer needs are one state. Nothing else can be observed: other threads
do not read local variables.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.bmc.program.builder import Code, CodeBuilder, Label
from plait.bmc.program.definition import (
    Action,
    Branch,
    Constant,
    Ensure,
    Require,
    Set,
    Variable,
    accesses,
    variables_of,
)


def forget(code: CodeBuilder) -> None:
    """Reset dead variables in the code of a process. Its deferred actions are made first."""
    code.resolve()
    code.deferred.clear()
    operations = code.operations
    own = {v for v in code.program.variables if v.process == code.number and v.size is None and v.temporary}
    effects = [_effects(operation, own) for operation in operations]
    live = _live(operations, effects)
    early: dict[int, set[Variable]] = {}
    """What an operation resets first: variables that only the branch before it needs."""
    for number in range(len(operations)):
        operation = operations[number]
        exposed, _, written = effects[number]
        after = _after(operation, live)
        touched = (live[number] | exposed | written) & own
        tested = variables_of(operation.condition) & own if operation.condition is not None else set()
        operation.actions = (*operation.actions, *_resets(touched - after - tested))
        if operation.condition is None:
            continue
        for side in ("then", "otherwise"):
            label: Label | None = getattr(operation, side)
            kept = live[label.operation] if label is not None and label.operation is not None else set()
            dead = ((touched & after) | tested) - kept
            if not dead or label is None or label.operation is None:
                continue
            if _is_local(operations[label.operation], code.number):
                early.setdefault(label.operation, set()).update(dead)
            else:
                added = Code(_resets(dead), operation.place, then=label, section=operation.section)
                setattr(operation, side, Label("forget", len(operations)))
                operations.append(added)
    for number, dead in early.items():
        operations[number].actions = (*_resets(dead), *operations[number].actions)


def _is_local(operation: Code, process: int) -> bool:
    """Whether an operation belongs to the step before it: it accesses variables of its process only."""
    read, written = accesses(tuple(operation.actions))
    shared = any(v.process != process for v in read | written)
    return not (shared or operation.waits or operation.assumes or operation.inputs or operation.entry)


def _resets(variables: set[Variable]) -> tuple[Action, ...]:
    order = sorted(variables, key=lambda v: v.name)
    return tuple(Set(v, None, Constant(v.initial[0])) for v in order if v.initial[0] is not None)


Effects = tuple[set[Variable], set[Variable], set[Variable]]
"""The variables that an operation reads before it writes them, those that it always writes, and those that it may write."""


def _effects(operation: Code, own: set[Variable]) -> Effects:
    exposed: set[Variable] = set()
    always: set[Variable] = set()
    written: set[Variable] = set()

    def visit(actions: Sequence[Action], inner: bool) -> None:
        for action in actions:
            match action:
                case Set(variable, index, value):
                    read = variables_of(value) | (variables_of(index) if index is not None else set())
                    exposed.update((read & own) - always)
                    written.update({variable} & own)
                    if not inner:
                        always.update({variable} & own)
                case Require(condition) | Ensure(condition):
                    exposed.update((variables_of(condition) & own) - always)
                case Branch(condition, then, otherwise):
                    exposed.update((variables_of(condition) & own) - always)
                    visit(then, True)
                    visit(otherwise, True)

    visit(operation.actions, False)
    if operation.condition is not None:
        exposed.update((variables_of(operation.condition) & own) - always)
    return exposed, always, written


def _after(operation: Code, live: list[set[Variable]]) -> set[Variable]:
    found: set[Variable] = set()
    for label in (operation.then, operation.otherwise):
        if label is not None and label.operation is not None and label.operation < len(live):
            found |= live[label.operation]
    return found


def _live(operations: Sequence[Code], effects: Sequence[Effects]) -> list[set[Variable]]:
    """The variables that each operation, or one after it, reads."""
    live: list[set[Variable]] = [set() for _ in operations]
    changed = True
    while changed:
        changed = False
        for number in range(len(operations) - 1, -1, -1):
            exposed, always, _ = effects[number]
            found = exposed | (_after(operations[number], live) - always)
            if found != live[number]:
                live[number] = found
                changed = True
    return live
