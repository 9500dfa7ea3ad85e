"""Threads: pthread_create makes a process, with the code of the start function inlined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from plait.bmc.c.reading.tree import Call, Cast, Expression, Number, Unary
from plait.bmc.c.reading.types import INT, VOID, Pointer, as_number
from plait.bmc.c.reading.usage import plain
from plait.bmc.c.translation.model import Thread
from plait.bmc.c.translation.values import ZERO, Val
from plait.bmc.program.arithmetic import operation
from plait.bmc.program.definition import (
    LIMITS,
    LOCKS,
    Action,
    Branch,
    Constant,
    Domain,
    Ensure,
    Expr,
    Read,
    Require,
    Set,
)

if TYPE_CHECKING:
    from plait.bmc.c.translation.translator import Translator

SUCCESS = Val(ZERO, INT)
NOTHING = Val(ZERO, VOID)
_RESULTS = "variable results"
"""The results of all threads, as an origin of values."""
_NESTING = 2
"""How often the function of a thread may start threads with itself, one inside the other."""


def _create(of: Translator, e: Call) -> Val:
    """Start a thread. A call in a loop can start a bounded number of them."""
    handle, _, start, argument = e.arguments
    function = of.value(start).function
    if function is None or of.model.unit.function(function) is None:
        raise of.refusal(
            "a thread whose start function is not known", e.place, "give pthread_create a function by name"
        )
    target = of.written(handle)
    value = of.cast(of.value(argument), Pointer(VOID))
    code = of.code
    if of.chain.count(function) > _NESTING:
        code.ensure(Constant(False), LIMITS, f"threads of {function} start threads of {function}")
        return SUCCESS
    if not of.loops:
        number = thread(of, function, value, True)
        of.store(target, Val(Constant(number.code.number + 1), target.type))
        _start(of, number, value)
        return SUCCESS
    most = of.model.options.threads
    counter = code.local(f"{function} count", temporary=True)
    text = f"more than {most} threads of {function} are started here (the limit is the option threads)"
    code.ensure(operation("<", Read(counter), Constant(most)), LIMITS, text)
    value = Val(of.steady(value.expr), value.type, value.origins)
    done = code.label("started")
    for n in range(most):
        here, after = code.label(), code.label()
        condition: Expr = operation("==", Read(counter), Constant(n)) if n < most - 1 else Constant(True)
        of.branch(condition, here, after)
        of.mark(here)
        started = thread(of, function, value, False)
        of.store(target, Val(Constant(started.code.number + 1), target.type))
        _start(of, started, value)
        of.jump(done)
        of.mark(after)
    of.mark(done)
    code.set(counter, operation("+", Read(counter), Constant(1)))
    return SUCCESS


def thread(of: Translator, function: str, value: Val, once: bool) -> Thread:
    """A new thread. Its code is translated later."""
    model = of.model
    name = model.name(function)
    required = model.waits_for_threads
    code = model.program.process(name, function, spawned=True, required=required)
    shared = model.program.shared
    argument: Val | None = value if once and isinstance(value.expr, Constant) else None
    found = Thread(
        code,
        function,
        argument or shared(f"{name} argument", bits=64, signed=False, temporary=True),
        shared(f"{name} result", bits=64, signed=False, temporary=True),
        (*of.chain, function),
        shared(f"{name} released", "bool", initial=False, temporary=True),
    )
    model.threads.append(found)
    model.waiting.append(found)
    return found


def _start(of: Translator, started: Thread, value: Val) -> None:
    if not isinstance(started.argument, Val):
        of.flow(started.argument, value)
        of.code.set(started.argument, value.expr, synchronizes=True)
    of.code.step([Set(started.code.started, None, Constant(True))])


def _join(of: Translator, e: Call) -> Val:
    """Wait until a thread has ended."""
    handle = of.value(e.arguments[0])
    number = of.steady(handle.expr)
    pointer = plain(e.arguments[1])
    wanted = not _null(pointer)
    direct = isinstance(pointer, Unary) and pointer.operator == "&"
    place_of_result = of.value(pointer) if wanted and not direct else None
    code, model = of.code, of.model
    place = e.arguments[0].place.text

    def wait() -> tuple[Sequence[Action], tuple[Domain, ...]]:
        threads = _possible(of, number)
        ended: Expr = Constant(False)
        known: Expr = Constant(False)
        for t in threads:
            this = operation("==", number, Constant(t.code.number + 1))
            known = operation("||", known, this)
            ended = operation("||", ended, operation("&&", this, Read(t.code.finished)))
        text = f"pthread_join waits for {place}, which is not a thread"
        return (Ensure(known, LOCKS, text), Require(ended)), ()

    if isinstance(number, Constant) and any(t.code.number + 1 == number.value for t in model.threads):
        (one,) = (t for t in model.threads if t.code.number + 1 == number.value)
        code.step([Require(Read(one.code.finished))], waits=True)
    else:
        code.step(wait, waits=True)
    if model.options.leaks:
        code.step(lambda: (_released(of, number), ()))
    if wanted:
        result = code.temporary("int", 64, False)

        def fetch() -> tuple[Sequence[Action], tuple[Domain, ...]]:
            return [
                Branch(operation("==", number, Constant(t.code.number + 1)), (Set(result, None, Read(t.result)),), ())
                for t in _possible(of, number)
            ], ()

        code.step(fetch)
        some, none = code.label(), code.label()
        if place_of_result is None:
            target = of.written(pointer)
        else:
            address = of.steady(place_of_result.expr)
            of.branch(operation("==", address, ZERO), none, some)
            of.mark(some)
            target = of.pointed(place_of_result, f"the pointer {pointer.place.text}")
        if code.reachable:
            of.store(target, of.cast(Val(Read(result), Pointer(VOID), frozenset((_RESULTS,))), target.type))
        of.mark(none)
    return SUCCESS


def _null(e: Expression) -> bool:
    """Whether an argument is the constant NULL."""
    while isinstance(e, Cast):
        e = e.operand
    return isinstance(e, Number) and e.value == 0


def _possible(of: Translator, number: Expr) -> list[Thread]:
    if isinstance(number, Constant):
        return [t for t in of.model.threads if t.code.number + 1 == number.value]
    return of.model.threads


def _released(of: Translator, number: Expr) -> list[Action]:
    return [
        Branch(operation("==", number, Constant(t.code.number + 1)), (Set(t.released, None, Constant(True)),), ())
        for t in _possible(of, number)
    ]


def _exit(of: Translator, e: Call) -> Val:
    """End this thread."""
    finish(of, of.value(e.arguments[0]))
    return NOTHING


def finish(of: Translator, value: Val) -> None:
    """End this thread with a result."""
    if of.result is not None:
        of.model.found.setdefault(_RESULTS, set()).update(value.origins)
        of.code.set(of.result, value.expr, synchronizes=True)
    of.jump(of.code.exit)


def _self(of: Translator, e: Call) -> Val:
    return Val(Constant(of.code.number + 1), e.type)


def _equal(of: Translator, e: Call) -> Val:
    one, two = (of.value(a) for a in e.arguments)
    return Val(as_number(operation("==", one.expr, two.expr)), INT)


def _detach(of: Translator, e: Call) -> Val:
    number = of.steady(of.value(e.arguments[0]).expr)
    if of.model.options.leaks:
        of.code.step(lambda: (_released(of, number), ()))
    return SUCCESS


def _detached(of: Translator, e: Call) -> Val:
    for argument in e.arguments:
        _evaluated(of, argument)
    return SUCCESS


def _evaluated(of: Translator, e: Expression) -> None:
    of.value(e)


THREAD_CALLS: dict[str, Callable[[Translator, Call], Val]] = {
    "pthread_create": _create,
    "pthread_join": _join,
    "pthread_exit": _exit,
    "pthread_self": _self,
    "pthread_equal": _equal,
    "pthread_detach": _detach,
    "pthread_attr_setdetachstate": _detached,
}
