"""Mutexes, condition variables, read-write locks, semaphores, barriers, spin locks, pthread_once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import structs

from plait.bmc.c.reading.tree import Call, Cast, Expression, FunctionName, Name, Text, nodes
from plait.bmc.c.reading.types import INT, Pointer, Synchronization, Void
from plait.bmc.c.translation.values import ZERO, Located, Reference, Val
from plait.bmc.program import synchronization
from plait.bmc.program.arithmetic import operation
from plait.bmc.program.definition import (
    LOCKS,
    Branch,
    Choice,
    Constant,
    Domain,
    Ensure,
    Expr,
    Read,
    Require,
    Set,
)
from plait.bmc.program.synchronization import Cell, me

if TYPE_CHECKING:
    from plait.bmc.c.translation.translator import Translator

EPERM, EAGAIN, EBUSY, EDEADLK, ETIMEDOUT = 1, 11, 16, 35, 110
RECURSIVE, ERRORCHECK = 1, 2
SUCCESS = Val(ZERO, INT)


def no_effect(of: Translator, e: Call) -> Val:
    """A function that does nothing that matters: its arguments are evaluated."""
    for argument in e.arguments:
        inner: Expression = argument
        while isinstance(inner, Cast):
            inner = inner.operand
        known = isinstance(inner, Name) and not inner.declaration.defined
        text = any(isinstance(n, Name) and n.declaration in of.model.words for n in nodes(inner))
        if not isinstance(inner, Text | FunctionName) and not (known or text):
            of.value(argument, needed=False)
    return SUCCESS if not isinstance(e.type, Void) else Val(ZERO, e.type)


def _object(of: Translator, e: Expression, kind: str) -> Reference:
    """The synchronization object that an argument points to."""
    value = of.value(e)
    if value.target is None or not isinstance(value.target.type, Synchronization):
        value = structs.replace(value, type=Pointer(Synchronization(kind)))
    return of.pointed(value, f"the pointer {e.place.text}")


def each(of: Translator, e: Expression, kind: str, act: Callable[[Located], None]) -> None:
    """Do something with the synchronization object that an argument points to."""
    of.access(_object(of, e, kind), act)


def _results(of: Translator, e: Call, kind: str, act: Callable[[Located], Expr | None], argument: int = 0) -> Val:
    """The result of an operation on each object that the argument may be: 0, or an error number."""
    found = _object(of, e.arguments[argument], kind)
    result = None if isinstance(found, Located) else of.code.temporary("int", 32, True)
    values: list[Expr] = []

    def one(at: Located) -> None:
        if at.object.alive is not None:
            of.step(at, [], True)
        values.append(act(at) or ZERO)
        if result is not None:
            of.code.set(result, values[-1])

    of.access(found, one)
    return Val(values[0] if result is None else Read(result), INT)


def _unless(condition: Expr, error: int) -> Expr:
    """0, or an error number unless the condition holds."""
    return Choice(condition, ZERO, Constant(error))


# -- mutexes -----------------------------------------------------------------------------------------------------------


def _kinds(of: Translator, at: Located, act: Callable[[int, Cell, Cell | None], Expr | None]) -> Expr | None:
    """Do something with a mutex, depending on its kind."""
    owner = of.cell(at)
    if not of.model.kinds:
        return act(0, owner, None)
    depth = of.cell(at, "depth")
    kind = of.code.load(*of.cell(at, "kind"), synchronizes=True)
    code = of.code
    result = code.temporary("int", 32, True)
    done = code.label()
    for number in (RECURSIVE, ERRORCHECK, 0):
        here, after = code.label(), code.label()
        of.branch(operation("==", kind, Constant(number)) if number else Constant(True), here, after)
        of.mark(here)
        value = act(number, owner, depth if number == RECURSIVE else None)
        code.set(result, ZERO if value is None else value)
        of.jump(done)
        of.mark(after)
    of.mark(done)
    return Read(result)


def _mutex_lock(of: Translator, e: Call) -> Val:
    def lock(kind: int, owner: Cell, depth: Cell | None) -> Expr | None:
        if kind != ERRORCHECK:
            synchronization.acquire(of.code, owner, depth)
            return None
        free = operation("==", Read(*owner), ZERO)
        own = operation("==", Read(*owner), me(of.code))
        result = of.code.temporary("int", 32, True)
        take = (Set(owner[0], owner[1], me(of.code)), Set(result, None, ZERO))
        of.code.step(
            [
                Require(operation("||", free, own)),
                Branch(own, (Set(result, None, Constant(EDEADLK)),), take),
            ],
            waits=True,
        )
        return Read(result)

    return _results(of, e, "mutex", lambda at: _kinds(of, at, lock))


def _mutex_trylock(of: Translator, e: Call) -> Val:
    def lock(kind: int, owner: Cell, depth: Cell | None) -> Expr | None:
        return _unless(synchronization.try_acquire(of.code, owner, depth), EBUSY)

    return _results(of, e, "mutex", lambda at: _kinds(of, at, lock))


def _mutex_timedlock(of: Translator, e: Call) -> Val:
    def lock(kind: int, owner: Cell, depth: Cell | None) -> Expr | None:
        return _unless(synchronization.acquire_or_give_up(of.code, owner, depth), ETIMEDOUT)

    return _results(of, e, "mutex", lambda at: _kinds(of, at, lock))


def _mutex_unlock(of: Translator, e: Call) -> Val:
    name = e.arguments[0].place.text.lstrip("&")

    def unlock(kind: int, owner: Cell, depth: Cell | None) -> Expr | None:
        if kind != ERRORCHECK:
            synchronization.release(of.code, owner, depth, name=f"the mutex {name}")
            return None
        result = of.code.temporary("int", 32, True)
        own = operation("==", Read(*owner), me(of.code))
        give = (Set(owner[0], owner[1], ZERO), Set(result, None, ZERO))
        of.code.step([Branch(own, give, (Set(result, None, Constant(EPERM)),))])
        return Read(result)

    return _results(of, e, "mutex", lambda at: _kinds(of, at, unlock))


def _mutex_init(of: Translator, e: Call) -> Val:
    attribute = of.value(e.arguments[1])

    def init(at: Located) -> None:
        of.code.step([Set(*of.cell(at), ZERO)])
        if of.model.kinds:
            kind: Expr = ZERO
            if attribute.constant != 0:
                target = of.pointed(_attribute(attribute))
                if isinstance(target, Located):
                    kind = of.code.load(*of.cell(target), synchronizes=True)
                else:
                    raise of.refusal("an attribute of a mutex that is not a variable", e.place)
            of.code.step([Set(*of.cell(at, "kind"), kind), Set(*of.cell(at, "depth"), ZERO)])

    each(of, e.arguments[0], "mutex", init)
    return SUCCESS


def _attribute(value: Val) -> Val:
    return Val(value.expr, Pointer(Synchronization("attribute")), value.origins, value.target)


def _settype(of: Translator, e: Call) -> Val:
    kind = of.value(e.arguments[1])
    each(of, e.arguments[0], "attribute", lambda at: of.code.step([Set(*of.cell(at), kind.expr)]))
    return SUCCESS


def _attribute_init(of: Translator, e: Call) -> Val:
    if not of.model.kinds:
        of.value(e.arguments[0], needed=False)
    else:
        each(of, e.arguments[0], "attribute", lambda at: of.code.step([Set(*of.cell(at), ZERO)]))
    return SUCCESS


def _mutex_destroy(of: Translator, e: Call) -> Val:
    name = e.arguments[0].place.text.lstrip("&")

    def destroy(at: Located) -> None:
        free = operation("==", Read(*of.cell(at)), ZERO)
        of.code.step([Ensure(free, LOCKS, f"the mutex {name} is destroyed while it is locked")])

    each(of, e.arguments[0], "mutex", destroy)
    return SUCCESS


# -- condition variables -----------------------------------------------------------------------------------------------


def _address(of: Translator, e: Expression) -> Expr:
    return of.steady(of.value(e).expr)


def _wait(times_out: bool) -> Callable[[Translator, Call], Val]:
    def call(of: Translator, e: Call) -> Val:
        number = _address(of, e.arguments[0])
        name = e.arguments[1].place.text.lstrip("&")

        def wait(kind: int, owner: Cell, depth: Cell | None) -> Expr | None:
            either = times_out or of.model.options.spurious
            signalled = synchronization.wait(of.code, number, owner, depth, name=f"the mutex {name}", times_out=either)
            return _unless(signalled, ETIMEDOUT) if times_out else None

        return _results(of, e, "mutex", lambda at: _kinds(of, at, wait), argument=1)

    return call


def _signal(of: Translator, e: Call) -> Val:
    synchronization.signal(of.code, _address(of, e.arguments[0]))
    return SUCCESS


def _broadcast(of: Translator, e: Call) -> Val:
    synchronization.broadcast(of.code, _address(of, e.arguments[0]))
    return SUCCESS


# -- read-write locks, semaphores, barriers, spin locks, once ----------------------------------------------------------


def _rwlock(act: Callable[[Translator, Cell, Cell, str], Expr | None]) -> Callable[[Translator, Call], Val]:
    def call(of: Translator, e: Call) -> Val:
        name = f"the lock {e.arguments[0].place.text.lstrip('&')}"

        def one(at: Located) -> Expr | None:
            return act(of, of.cell(at, "readers"), of.cell(at, "writer"), name)

        return _results(of, e, "rwlock", one)

    return call


def _read_lock(of: Translator, readers: Cell, writer: Cell, name: str) -> None:
    synchronization.acquire_shared(of.code, readers, writer)


def _write_lock(of: Translator, readers: Cell, writer: Cell, name: str) -> None:
    synchronization.acquire_exclusive(of.code, readers, writer)


def _try_read_lock(of: Translator, readers: Cell, writer: Cell, name: str) -> Expr:
    return _unless(synchronization.try_acquire_shared(of.code, readers, writer), EBUSY)


def _try_write_lock(of: Translator, readers: Cell, writer: Cell, name: str) -> Expr:
    return _unless(synchronization.try_acquire_exclusive(of.code, readers, writer), EBUSY)


def _rw_unlock(of: Translator, readers: Cell, writer: Cell, name: str) -> None:
    synchronization.release_either(of.code, readers, writer, name=name)


def _rw_init(of: Translator, readers: Cell, writer: Cell, name: str) -> None:
    of.code.step([Set(*readers, ZERO), Set(*writer, ZERO)])


def _sem_init(of: Translator, e: Call) -> Val:
    value = of.value(e.arguments[2])
    each(of, e.arguments[0], "semaphore", lambda at: of.code.step([Set(*of.cell(at), value.expr)]))
    return SUCCESS


def _semaphore(act: Callable[[Translator, Cell], Expr | None]) -> Callable[[Translator, Call], Val]:
    return lambda of, e: _results(of, e, "semaphore", lambda at: act(of, of.cell(at)))


def _sem_wait(of: Translator, count: Cell) -> None:
    synchronization.down(of.code, count)


def _sem_post(of: Translator, count: Cell) -> None:
    synchronization.up(of.code, count)


def _sem_trywait(of: Translator, count: Cell) -> Expr:
    return Choice(synchronization.try_down(of.code, count), ZERO, Constant(-1))


def _sem_getvalue(of: Translator, e: Call) -> Val:
    result = of.code.temporary("int", 32, True)
    each(of, e.arguments[0], "semaphore", lambda at: of.code.step([Set(result, None, Read(*of.cell(at)))]))
    of.store(of.written(e.arguments[1]), Val(Read(result), INT))
    return SUCCESS


def _sem_timedwait(of: Translator, e: Call) -> Val:
    """The semaphore is taken, or the time is over."""
    code = of.code
    result = code.temporary("int", 32, True)
    semaphore = _object(of, e.arguments[0], "semaphore")
    patient, impatient, done = code.label(), code.label(), code.label()
    of.branch(code.choose(Domain("bool")), patient, impatient)
    of.mark(patient)
    of.access(semaphore, lambda at: _timed(of, at))
    code.set(result, ZERO)
    of.jump(done)
    of.mark(impatient)
    code.set(result, Constant(-1))
    of.mark(done)
    return Val(Read(result), INT)


def _timed(of: Translator, at: Located) -> None:
    if at.object.alive is not None:
        of.step(at, [], True)
    _sem_wait(of, of.cell(at))


def _barrier_init(of: Translator, e: Call) -> Val:
    parties = of.value(e.arguments[2])

    def init(at: Located) -> None:
        of.code.step([Set(*of.cell(at, "parties"), parties.expr), Set(*of.cell(at, "arrived"), ZERO)])

    each(of, e.arguments[0], "barrier", init)
    return SUCCESS


def _barrier_wait(of: Translator, e: Call) -> Val:
    number = _address(of, e.arguments[0])

    def wait(at: Located) -> Expr:
        last = synchronization.arrive(of.code, number, of.cell(at, "arrived"), Read(*of.cell(at, "parties")))
        return Choice(last, Constant(-1), ZERO)

    return _results(of, e, "barrier", wait)


def _spin(act: Callable[[Translator, Cell, str], Expr | None]) -> Callable[[Translator, Call], Val]:
    def call(of: Translator, e: Call) -> Val:
        name = f"the lock {e.arguments[0].place.text.lstrip('&')}"
        return _results(of, e, "spin", lambda at: act(of, of.cell(at), name))

    return call


def _spin_lock(of: Translator, owner: Cell, name: str) -> None:
    synchronization.acquire(of.code, owner)


def _spin_unlock(of: Translator, owner: Cell, name: str) -> None:
    synchronization.release(of.code, owner, name=name)


def _spin_trylock(of: Translator, owner: Cell, name: str) -> Expr:
    return _unless(synchronization.try_acquire(of.code, owner), EBUSY)


def _spin_init(of: Translator, owner: Cell, name: str) -> None:
    of.code.step([Set(*owner, ZERO)])


def _once(of: Translator, e: Call) -> Val:
    """The first thread runs the function; the others wait until it has returned."""
    function = of.value(e.arguments[1])
    definition = None if function.function is None else of.model.unit.function(function.function)
    if definition is None:
        raise of.refusal("pthread_once with a function that is not known", e.place)
    first = of.code.temporary("bool")

    def once(at: Located) -> None:
        variable, index = of.cell(at)
        new = operation("==", Read(variable, index), ZERO)
        begin = (Set(variable, index, Constant(1)), Set(first, None, Constant(True)))
        code = of.code
        code.step(
            [
                Require(operation("!=", Read(variable, index), Constant(1))),
                Branch(new, begin, (Set(first, None, Constant(False)),)),
            ],
            waits=True,
        )
        run, done = code.label(), code.label()
        of.branch(Read(first), run, done)
        of.mark(run)
        assert definition is not None
        of.inlined(definition, [], e.place)
        code.step([Set(variable, index, Constant(2))])
        of.mark(done)

    each(of, e.arguments[0], "once", once)
    return SUCCESS


_WITHOUT_EFFECT = (
    "pthread_mutexattr_destroy",
    "pthread_mutexattr_setpshared",
    "pthread_mutexattr_setprotocol",
    "pthread_condattr_init",
    "pthread_condattr_destroy",
    "pthread_condattr_setclock",
    "pthread_rwlockattr_init",
    "pthread_rwlockattr_destroy",
    "pthread_barrierattr_init",
    "pthread_barrierattr_destroy",
    "pthread_attr_setstacksize",
    "pthread_cond_init",
    "pthread_cond_destroy",
    "pthread_rwlock_destroy",
    "pthread_barrier_destroy",
    "pthread_spin_destroy",
    "pthread_attr_init",
    "pthread_attr_destroy",
    "sem_destroy",
)
IGNORED = {
    **dict.fromkeys(_WITHOUT_EFFECT, 0),
    **dict.fromkeys(("pthread_rwlock_init", "pthread_spin_init", "pthread_mutex_timedlock", "sem_timedwait"), 1),
    "pthread_cond_timedwait": 2,
}
"""The position from which on the translation of a function ignores its arguments."""
MIDDLE = frozenset(("pthread_create", "pthread_barrier_init", "sem_init"))
"""Functions of which it ignores the second argument only."""

SYNCHRONIZATION_CALLS: dict[str, Callable[[Translator, Call], Val]] = {
    "pthread_mutex_lock": _mutex_lock,
    "pthread_mutex_trylock": _mutex_trylock,
    "pthread_mutex_timedlock": _mutex_timedlock,
    "pthread_mutex_unlock": _mutex_unlock,
    "pthread_mutex_init": _mutex_init,
    "pthread_mutex_destroy": _mutex_destroy,
    "pthread_mutexattr_init": _attribute_init,
    "pthread_mutexattr_settype": _settype,
    "pthread_cond_wait": _wait(times_out=False),
    "pthread_cond_timedwait": _wait(times_out=True),
    "pthread_cond_signal": _signal,
    "pthread_cond_broadcast": _broadcast,
    "pthread_rwlock_init": _rwlock(_rw_init),
    "pthread_rwlock_rdlock": _rwlock(_read_lock),
    "pthread_rwlock_wrlock": _rwlock(_write_lock),
    "pthread_rwlock_tryrdlock": _rwlock(_try_read_lock),
    "pthread_rwlock_trywrlock": _rwlock(_try_write_lock),
    "pthread_rwlock_unlock": _rwlock(_rw_unlock),
    "sem_init": _sem_init,
    "sem_wait": _semaphore(_sem_wait),
    "sem_post": _semaphore(_sem_post),
    "sem_trywait": _semaphore(_sem_trywait),
    "sem_timedwait": _sem_timedwait,
    "sem_getvalue": _sem_getvalue,
    "pthread_barrier_init": _barrier_init,
    "pthread_barrier_wait": _barrier_wait,
    "pthread_spin_init": _spin(_spin_init),
    "pthread_spin_lock": _spin(_spin_lock),
    "pthread_spin_trylock": _spin(_spin_trylock),
    "pthread_spin_unlock": _spin(_spin_unlock),
    "pthread_once": _once,
    **dict.fromkeys(_WITHOUT_EFFECT, lambda of, e: SUCCESS),
}
