"""The functions of the C library and of SV-COMP that the translation knows; `CALLS` has all of them by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from plait.bmc.c.reading.tree import Call, Expression, Text, Unary
from plait.bmc.c.reading.types import (
    BOOL,
    CHAR,
    INT,
    VOID,
    Array,
    Pointer,
    Struct,
    Void,
    as_condition,
    as_number,
    converted,
    integer,
    size,
)
from plait.bmc.c.reading.usage import plain
from plait.bmc.c.translation.buffers import BUFFER_CALLS, typed
from plait.bmc.c.translation.pthreads import IGNORED, MIDDLE, SUCCESS, SYNCHRONIZATION_CALLS, no_effect
from plait.bmc.c.translation.threads import THREAD_CALLS
from plait.bmc.c.translation.values import ZERO, Reference, Val
from plait.bmc.program.arithmetic import operation
from plait.bmc.program.definition import (
    ASSERTIONS,
    LIMITS,
    MEMORY,
    Action,
    Choice,
    Constant,
    Domain,
    Ensure,
    Read,
    Set,
)

if TYPE_CHECKING:
    from plait.bmc.c.translation.translator import Translator

NOTHING = Val(ZERO, VOID)


# -- the end of a run, assertions, SV-COMP -----------------------------------------------------------------------------


def _fail(of: Translator, e: Call) -> Val:
    """An assertion that does not hold."""
    text = "an error is reached"
    if e.arguments:
        first = typed(e.arguments[0])
        if isinstance(first, Text):
            text = f"the assertion {first.value} fails"
    _violated(of, text)
    return NOTHING


def _error(of: Translator, e: Call) -> Val:
    assert e.function.place is not None
    _violated(of, f"{getattr(e.function, 'name', 'error')}() is called")
    return NOTHING


def _violated(of: Translator, text: str) -> None:
    of.code.ensure(Constant(False), ASSERTIONS, text)
    of.code.reachable = False


def _assert(of: Translator, e: Call) -> Val:
    condition = of.condition(e.arguments[0])
    of.code.ensure(condition, ASSERTIONS, f"the assertion {e.arguments[0].place.text} fails")
    return NOTHING


def _assume(of: Translator, e: Call) -> Val:
    of.code.assume(of.condition(e.arguments[0]))
    return NOTHING


def _end(of: Translator, e: Call) -> Val:
    """The whole program ends: this process takes no further step. What others do now, they could have done before."""
    for argument in e.arguments:
        of.value(argument)
    of.code.assume(Constant(False))
    of.code.reachable = False
    return NOTHING


def _begin(of: Translator, e: Call) -> Val:
    of.code.enter()
    return NOTHING


def _leave(of: Translator, e: Call) -> Val:
    if of.code.sections == 0:
        raise of.refusal("the end of an atomic section that has not begun", e.place)
    of.code.leave()
    return NOTHING


def _expect(of: Translator, e: Call) -> Val:
    return of.value(e.arguments[0])


def _any_number(of: Translator, e: Call) -> Val:
    """rand(): any number that is not negative."""
    return Val(of.code.choose(Domain("int", 0, INT.high), INT.bits), INT)


def _time(of: Translator, e: Call) -> Val:
    """Any time."""
    now = of.nondeterministic(e)
    target = plain(e.arguments[0])
    if isinstance(target, Unary) and target.operator == "&":
        of.store(of.written(target), now)
    elif of.value(target).constant != 0:
        raise of.refusal("time with a pointer that may be NULL", e.place, "give the address of a variable, or NULL")
    return now


def _clock_gettime(of: Translator, e: Call) -> Val:
    """Any time, in all fields of the result."""
    of.value(e.arguments[0])
    for part in of.scalars(of.written(e.arguments[1])):
        t = integer(part.type)
        of.store(part, Val(of.code.choose(Domain("int", t.low, t.high), t.bits, t.signed), part.type))
    return SUCCESS


def _absolute(of: Translator, e: Call) -> Val:
    value = of.value(e.arguments[0])
    t = integer(e.type)
    negative = operation("<", value.expr, ZERO)
    minus = of.arithmetic("-", ZERO, value.expr, t)
    return Val(Choice(negative, minus, value.expr), e.type)


# -- allocation --------------------------------------------------------------------------------------------------------


def _malloc(of: Translator, e: Call) -> Val:
    return _allocated(of, e, of.value(e.arguments[0]).constant, unset=True)


def _calloc(of: Translator, e: Call) -> Val:
    count, each = (of.value(a).constant for a in e.arguments)
    return _allocated(of, e, None if count is None or each is None else count * each)


def _allocated(of: Translator, e: Call, wanted: int | None, *, unset: bool = False) -> Val:
    """Objects that a call allocates: one, or a bounded number if the call is in a loop."""
    t = of.wanted
    if wanted is None:
        raise of.refusal("the allocation of an object whose size is not a constant", e.place)
    if t is None or isinstance(t, Void):
        if wanted != 1:
            raise of.refusal(
                "the allocation of an object of unknown type", e.place, "convert the result: (struct node *)malloc(…)"
            )
        t = CHAR
    if wanted != size(t):
        if wanted % size(t) or wanted == 0:
            raise of.refusal(f"the allocation of {wanted} bytes for objects of {size(t)} bytes", e.place)
        t = Array(t, wanted // size(t))
    model, code = of.model, of.code
    copies = model.options.objects if of.loops else 1
    name = f"{code.name}.malloc:{e.place.line}"
    found = model.object(name, t, copies=copies, heap=True)
    found.unset = unset
    pointer = Pointer(t.element if isinstance(t, Array) else t)
    place = of.whole(found)
    if copies == 1:
        if found.alive is not None:
            code.step([Set(found.alive, ZERO, Constant(True))])
        start = of.pointer(of.element(place, ZERO) if isinstance(t, Array) else place)
        return Val(start.expr, pointer, start.origins, start.target)
    from plait.bmc.c.reading.types import cells

    number = code.local(f"{found.name} count", temporary=True)
    text = f"malloc is called more than {copies} times in line {e.place.line} (the limit is the option objects)"
    code.ensure(operation("<", Read(number), Constant(copies)), LIMITS, text)
    stride = cells(t) + 1
    address = operation("+", Constant(found.base or 0), operation("*", Read(number), Constant(stride)))
    result = code.kept(address, bits=64, signed=False)
    if found.alive is not None:
        code.step([Set(found.alive, Read(number), Constant(True))])
    code.set(number, operation("+", Read(number), Constant(1)))
    return Val(result, pointer, frozenset((f"object {found.name}",)))


def _free(of: Translator, e: Call) -> Val:
    """The object of a pointer ceases to exist."""
    value = of.value(typed(e.arguments[0]))
    address = of.steady(value.expr)
    code = of.code
    done = code.label("freed")
    after = code.label()
    of.branch(operation("==", address, ZERO), done, after)
    of.mark(after)
    from plait.bmc.c.reading.types import cells

    for found in of.objects(value.origins):
        if found.base is None or found.alive is None:
            continue
        stride = cells(found.type) + 1
        for copy in range(found.copies):
            here, after = code.label(), code.label()
            of.branch(operation("==", address, Constant(found.base + copy * stride)), here, after)
            of.mark(here)
            actions: list[Action] = [
                Ensure(Read(found.alive, Constant(copy)), MEMORY, f"{found.name} is freed twice"),
                Set(found.alive, Constant(copy), Constant(False)),
            ]
            code.step(actions)
            of.jump(done)
            of.mark(after)
    if code.reachable:
        code.ensure(Constant(False), MEMORY, "the argument of free is not the beginning of an allocated object")
    of.mark(done)
    return NOTHING


# -- atomic operations -------------------------------------------------------------------------------------------------


def _atomic(of: Translator, e: Expression) -> Reference:
    """The scalar of an atomic operation."""
    target = of.pointed(of.value(typed(e)), f"the pointer {e.place.text}")
    if isinstance(target.type, Struct):
        target = of.member(target, next(iter(target.type.fields)))
    if isinstance(target.type, Void):
        raise of.refusal("an atomic operation through a pointer of unknown type", e.place)
    return target


def _operand(of: Translator, e: Expression, target: Reference) -> Val:
    value = of.cast(of.value(e), target.type)
    t = integer(target.type)
    return Val(of.code.kept(value.expr, bits=t.bits, signed=t.signed), target.type, value.origins, value.target)


def _load(of: Translator, e: Call) -> Val:
    return of.update(_atomic(of, e.arguments[0]), lambda old: old, writes=False)[0]


def _store(of: Translator, e: Call) -> Val:
    target = _atomic(of, e.arguments[0])
    value = _operand(of, e.arguments[1], target)
    of.update(target, lambda _: value, reads=False)
    return NOTHING


def _exchange(of: Translator, e: Call) -> Val:
    target = _atomic(of, e.arguments[0])
    value = _operand(of, e.arguments[1], target)
    return of.update(target, lambda _: value)[0]


def _test_and_set(of: Translator, e: Call) -> Val:
    target = _atomic(of, e.arguments[0])
    old, _ = of.update(target, lambda _: Val(Constant(1), target.type))
    return Val(converted(old.expr, old.type, BOOL), BOOL)


def _clear(of: Translator, e: Call) -> Val:
    target = _atomic(of, e.arguments[0])
    of.update(target, lambda _: Val(ZERO, target.type), reads=False)
    return NOTHING


def _compare_exchange(of: Translator, e: Call) -> Val:
    """C11: if the value is not the expected one, write it to `expected`."""
    target = _atomic(of, e.arguments[0])
    expected = of.written(e.arguments[1])
    wanted = of.load(expected)
    t = integer(target.type)
    wanted = Val(of.code.kept(wanted.expr, bits=t.bits, signed=t.signed), wanted.type, wanted.origins)
    old, equal = _compare(of, target, wanted, _operand(of, e.arguments[2], target))
    no, done = of.code.label(), of.code.label()
    of.branch(as_condition(equal.expr), done, no)
    of.mark(no)
    of.store(expected, old)
    of.mark(done)
    return equal


def _compare(of: Translator, target: Reference, expected: Val, new: Val) -> tuple[Val, Val]:
    """Write a value if the old one is the expected one: the old one, and whether they are equal."""

    def chosen(old: Val) -> Val:
        equal = operation("==", old.expr, expected.expr)
        return Val(Choice(equal, new.expr, old.expr), old.type, old.origins | new.origins)

    old, _ = of.update(target, chosen)
    return old, Val(as_number(operation("==", old.expr, expected.expr)), INT)


def _compare_and_swap(of: Translator, e: Call) -> Val:
    target = _atomic(of, e.arguments[0])
    expected = _operand(of, e.arguments[1], target)
    return _compare(of, target, expected, _operand(of, e.arguments[2], target))[0]


def _bool_compare_and_swap(of: Translator, e: Call) -> Val:
    target = _atomic(of, e.arguments[0])
    expected = _operand(of, e.arguments[1], target)
    return _compare(of, target, expected, _operand(of, e.arguments[2], target))[1]


def _fetch(operator: str, new: bool) -> Callable[[Translator, Call], Val]:
    """An operation that returns the value before it, or the new one."""

    def call(of: Translator, e: Call) -> Val:
        target = _atomic(of, e.arguments[0])
        value = _operand(of, e.arguments[1], target)

        def calculated(old: Val) -> Val:
            if operator == "nand":
                both = operation("&", old.expr, value.expr)
                return of.unary("~", Val(both, old.type), integer(old.type))
            if isinstance(old.type, Pointer):
                return of.binary(operator, old, Val(value.expr, INT, value.origins), old.type)
            return Val(of.arithmetic(operator, old.expr, value.expr, integer(old.type)), old.type, old.origins)

        return of.update(target, calculated)[new]

    return call


_OPERATORS = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^", "nand": "nand"}


_IGNORED = {
    "__CPROVER_assert": 1,
    "__ESBMC_assert": 1,
    **dict.fromkeys(("atoi", "atol", "atoll", "sscanf"), 0),
    **dict.fromkeys(("strtol", "strtoul", "strtoll", "strtoull"), 0),
    "__builtin_expect": 1,
    "__plait_load": 1,
    "__plait_test_and_set": 1,
    "__plait_clear": 1,
    "__plait_compare_exchange": 3,
    "__plait_compare_and_swap": 3,
    "__plait_bool_compare_and_swap": 3,
    **IGNORED,
}
"""The position from which on the translation of a function ignores its arguments."""


def ignores(name: str, number: int) -> bool:
    """Whether the translation of a function does not evaluate an argument, for example a memory order."""
    if name in MIDDLE:
        return number == 1
    return number >= _IGNORED.get(name, 2 if name.startswith("__plait_") else number + 1)


CALLS: dict[str, Callable[[Translator, Call], Val]] = {
    "__assert_fail": _fail,
    "__assert": _fail,
    "__VERIFIER_assert": _assert,
    "__CPROVER_assert": _assert,
    "__ESBMC_assert": _assert,
    "assert": _assert,
    "__VERIFIER_assume": _assume,
    "__ESBMC_assume": _assume,
    "__CPROVER_assume": _assume,
    "assume": _assume,
    "reach_error": _error,
    "__VERIFIER_error": _error,
    **dict.fromkeys(("__VERIFIER_atomic_begin", "__CPROVER_atomic_begin", "__ESBMC_atomic_begin"), _begin),
    **dict.fromkeys(("__VERIFIER_atomic_end", "__CPROVER_atomic_end", "__ESBMC_atomic_end"), _leave),
    "abort": _end,
    "exit": _end,
    "_exit": _end,
    "_Exit": _end,
    "__builtin_unreachable": _end,
    "__builtin_expect": _expect,
    "rand": _any_number,
    "abs": _absolute,
    "labs": _absolute,
    "malloc": _malloc,
    "calloc": _calloc,
    "free": _free,
    "__plait_load": _load,
    "__plait_store": _store,
    "__plait_exchange": _exchange,
    "__plait_compare_exchange": _compare_exchange,
    "__plait_compare_and_swap": _compare_and_swap,
    "__plait_bool_compare_and_swap": _bool_compare_and_swap,
    "__plait_test_and_set": _test_and_set,
    "__plait_clear": _clear,
    **{f"__plait_fetch_{name}": _fetch(operator, False) for name, operator in _OPERATORS.items()},
    **{f"__plait_{name}_fetch": _fetch(operator, True) for name, operator in _OPERATORS.items()},
    **dict.fromkeys(
        ("printf", "puts", "putchar", "perror", "fprintf", "fputs", "fflush", "sleep", "usleep", "nanosleep"), no_effect
    ),
    **dict.fromkeys(("sched_yield", "pthread_yield", "srand", "atomic_thread_fence"), no_effect),
    "time": _time,
    "clock_gettime": _clock_gettime,
    **BUFFER_CALLS,
    **SYNCHRONIZATION_CALLS,
    **THREAD_CALLS,
}
