"""Locks, condition variables, semaphores, barriers: the operations that C and Python share.

Each function adds operations to the code of a process. The state of an object is in cells that the front end declares,
each a shared variable with an index: the owner of a lock is the number of a process plus one, 0 if the lock is free. An
object that processes wait for (a condition variable, a barrier) has a number that is not 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.bmc.program.arithmetic import negate, operation
from plait.bmc.program.builder import CodeBuilder
from plait.bmc.program.definition import (
    LOCKS,
    Action,
    Branch,
    Constant,
    Domain,
    Ensure,
    Expr,
    Input,
    Read,
    Require,
    Set,
    Variable,
)

Cell = tuple[Variable, Expr | None]
"""A shared variable, and its index if it is an array."""

FREE, ONE, YES, NO = Constant(0), Constant(1), Constant(True), Constant(False)


def me(code: CodeBuilder) -> Constant:
    """The number of a process as the owner of a lock."""
    return Constant(code.number + 1)


def _read(cell: Cell) -> Expr:
    return Read(*cell)


def _write(cell: Cell, value: Expr) -> Action:
    return Set(cell[0], cell[1], value)


def _is(cell: Cell, value: Expr) -> Expr:
    return operation("==", _read(cell), value)


def _plus(cell: Cell, change: int) -> Action:
    return _write(cell, operation("+", _read(cell), Constant(change)))


# -- locks -------------------------------------------------------------------------------------------------------------


def _can_take(code: CodeBuilder, owner: Cell, depth: Cell | None) -> Expr:
    free = _is(owner, FREE)
    return free if depth is None else operation("||", free, _is(owner, me(code)))


def _take(code: CodeBuilder, owner: Cell, depth: Cell | None) -> list[Action]:
    return [_write(owner, me(code)), *([] if depth is None else [_plus(depth, 1)])]


def acquire(code: CodeBuilder, owner: Cell, depth: Cell | None = None, *, anyone: bool = False) -> None:
    """Wait for a lock and take it. A recursive lock has a depth. With `anyone`, other processes may release it."""
    actions = [Require(_can_take(code, owner, depth)), *_take(code, owner, depth)]
    code.step(actions, waits=True, owner=None if anyone else Read(*owner))


def try_acquire(code: CodeBuilder, owner: Cell, depth: Cell | None = None) -> Expr:
    """Take a lock if it is free; the result says whether it was."""
    taken = code.temporary("bool")
    then = (*_take(code, owner, depth), Set(taken, None, YES))
    code.step([Branch(_can_take(code, owner, depth), then, (Set(taken, None, NO),))])
    return Read(taken)


def acquire_or_give_up(code: CodeBuilder, owner: Cell, depth: Cell | None = None) -> Expr:
    """Wait for a lock with a timeout: it is taken, or the time is over, whether the lock is free or not."""
    patience = code.choose(Domain("bool"))
    taken = code.temporary("bool")
    wait = (Require(_can_take(code, owner, depth)), *_take(code, owner, depth), Set(taken, None, YES))
    code.step([Branch(patience, wait, (Set(taken, None, NO),))])
    return Read(taken)


def release(
    code: CodeBuilder, owner: Cell, depth: Cell | None = None, *, name: str = "the lock", anyone: bool = False
) -> None:
    """Release a lock. Only its owner may do so; with `anyone`, any process may release a lock that is taken."""
    mine = negate(_is(owner, FREE)) if anyone else _is(owner, me(code))
    text = (
        f"{name} is released, but it is not locked"
        if anyone
        else f"{name} is released by a thread that does not hold it"
    )
    actions: list[Action] = [Ensure(mine, LOCKS, text)]
    if depth is None:
        actions.append(_write(owner, FREE))
    else:
        last = operation("==", _read(depth), ONE)
        actions += [Branch(last, (_write(owner, FREE),), ()), _plus(depth, -1)]
    code.step(actions)


# -- condition variables -----------------------------------------------------------------------------------------------


def wait(
    code: CodeBuilder,
    number: Expr,
    owner: Cell,
    depth: Cell | None = None,
    *,
    name: str = "the lock",
    times_out: bool = False,
) -> Expr:
    """Release a lock, wait for the signal of a condition variable, take the lock again.

    The result says whether there was a signal; it is always so, unless the wait can time out.
    """
    _waits(code)
    saved = code.temporary() if depth is not None else None
    held = Ensure(_is(owner, me(code)), LOCKS, f"the thread waits without holding {name}")
    actions: list[Action] = [held]
    again: list[Action] = [_write(owner, me(code))]
    if depth is not None and saved is not None:
        actions += [Set(saved, None, _read(depth)), _write(depth, FREE)]
        again.append(_write(depth, Read(saved)))
    code.step([*actions, _write(owner, FREE), Set(code.waiting, None, number)])
    signalled = operation("==", Read(code.waiting), FREE)
    if not times_out:
        code.step([Require(operation("&&", signalled, _is(owner, FREE))), *again], waits=True)
        return YES
    result = code.temporary("bool")
    code.step(
        [Require(_is(owner, FREE)), Set(result, None, signalled), Set(code.waiting, None, FREE), *again], waits=True
    )
    return Read(result)


def _waits(code: CodeBuilder) -> None:
    code.program.waiters[code.number] = code.waiting


def signal(code: CodeBuilder, number: Expr) -> None:
    """Wake one process that waits for an object, if there is one: any of them."""

    def actions() -> tuple[Sequence[Action], tuple[Domain, ...]]:
        waiters = [v for n, v in sorted(code.program.waiters.items()) if n != code.number]
        here = [operation("==", Read(v), number) for v in waiters]
        if not waiters:
            return (), ()
        if len(waiters) == 1:
            return (Branch(here[0], (Set(waiters[0], None, FREE),), ()),), ()
        chosen: tuple[Action, ...] = ()
        for k, (variable, waits) in reversed(list(enumerate(zip(waiters, here, strict=True)))):
            this = (Require(waits), Set(variable, None, FREE))
            chosen = (Branch(operation("==", Input(0), Constant(k)), this, chosen),) if chosen else this
        anyone = here[0]
        for waits in here[1:]:
            anyone = operation("||", anyone, waits)
        nobody = (Require(operation("==", Input(0), FREE)),)
        return (Branch(anyone, chosen, nobody),), (Domain("int", 0, len(waiters) - 1),)

    code.step(actions)


def broadcast(code: CodeBuilder, number: Expr) -> None:
    """Wake all processes that wait for an object."""
    code.step(lambda: (_all_woken(code, number), ()))


def _all_woken(code: CodeBuilder, number: Expr) -> tuple[Action, ...]:
    return tuple(
        Branch(operation("==", Read(v), number), (Set(v, None, FREE),), ())
        for n, v in sorted(code.program.waiters.items())
        if n != code.number
    )


# -- semaphores, barriers, read-write locks ----------------------------------------------------------------------------


def down(code: CodeBuilder, count: Cell) -> None:
    """Wait until a semaphore is above 0, and decrement it."""
    code.step([Require(operation(">", _read(count), FREE)), _plus(count, -1)], waits=True)


def try_down(code: CodeBuilder, count: Cell) -> Expr:
    """Decrement a semaphore if it is above 0; the result says whether it was."""
    taken = code.temporary("bool")
    then = (_plus(count, -1), Set(taken, None, YES))
    code.step([Branch(operation(">", _read(count), FREE), then, (Set(taken, None, NO),))])
    return Read(taken)


def up(code: CodeBuilder, count: Cell, *, most: Expr | None = None) -> None:
    """Increment a semaphore. With `most`, a semaphore that has this value may not be released."""
    check = (
        []
        if most is None
        else [Ensure(operation("<", _read(count), most), LOCKS, "the semaphore is released too often")]
    )
    code.step([*check, _plus(count, 1)])


def arrive(code: CodeBuilder, number: Expr, count: Cell, parties: Expr) -> Expr:
    """Wait at a barrier until all parties have arrived; the result says whether this process was the last one."""
    _waits(code)
    last = code.temporary("bool")

    def actions() -> tuple[Sequence[Action], tuple[Domain, ...]]:
        complete = operation("==", operation("+", _read(count), ONE), parties)
        then = (_write(count, FREE), *_all_woken(code, number), Set(last, None, YES))
        otherwise = (_plus(count, 1), Set(code.waiting, None, number), Set(last, None, NO))
        return (Branch(complete, then, otherwise),), ()

    code.step(actions)
    code.step([Require(operation("==", Read(code.waiting), FREE))], waits=True)
    return Read(last)


def acquire_shared(code: CodeBuilder, readers: Cell, writer: Cell) -> None:
    """Take a read-write lock for reading."""
    code.step([Require(_is(writer, FREE)), _plus(readers, 1)], waits=True)


def acquire_exclusive(code: CodeBuilder, readers: Cell, writer: Cell) -> None:
    """Take a read-write lock for writing."""
    free = operation("&&", _is(writer, FREE), _is(readers, FREE))
    code.step([Require(free), _write(writer, me(code))], waits=True)


def try_acquire_shared(code: CodeBuilder, readers: Cell, writer: Cell) -> Expr:
    """Take a read-write lock for reading if no process writes."""
    taken = code.temporary("bool")
    then = (_plus(readers, 1), Set(taken, None, YES))
    code.step([Branch(_is(writer, FREE), then, (Set(taken, None, NO),))])
    return Read(taken)


def try_acquire_exclusive(code: CodeBuilder, readers: Cell, writer: Cell) -> Expr:
    """Take a read-write lock for writing if it is free."""
    taken = code.temporary("bool")
    free = operation("&&", _is(writer, FREE), _is(readers, FREE))
    code.step([Branch(free, (_write(writer, me(code)), Set(taken, None, YES)), (Set(taken, None, NO),))])
    return Read(taken)


def release_either(code: CodeBuilder, readers: Cell, writer: Cell, *, name: str = "the lock") -> None:
    """Release a read-write lock: as the writer if this process is the writer, else as a reader."""
    reading = (
        Ensure(operation(">", _read(readers), FREE), LOCKS, f"{name} is released, but not locked"),
        _plus(readers, -1),
    )
    code.step([Branch(_is(writer, me(code)), (_write(writer, FREE),), reading)])
