"""The interface to Z3: SMT-LIB text in, a model or `unsat` out. No other file uses Z3.

Z3 works in a thread of its own (`_asked`), so that Ctrl-C is never missed, whatever Z3 does. Z3 is imported by the first
question: a program that enumeration decides does not need it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from plait.bmc.encoding.witness import Model
from plait.kernel.deadline import interruptible
from plait.kernel.extras import needs

if TYPE_CHECKING:
    import z3  # type: ignore[import-untyped]

Outcome = Literal["sat", "unsat", "timeout", "memory", "interrupted", "unknown"]
T = TypeVar("T")


class Answer(NamedTuple):
    """The answer of a solver."""

    outcome: Outcome
    model: Model
    seconds: float
    reason: str = ""
    reading: float = 0.0
    """The part of the seconds for reading the formula."""
    work: int = 0
    """The work counter of the solver."""


def solve(text: str, *, timeout: float | None = None, memory: int | None = None, seed: int = 0) -> Answer:
    """Decide a formula. `timeout` is in seconds, `memory` in bytes.

    >>> solve("(declare-const |a b| Bool)(assert |a b|)").model
    {'a b': True}
    """
    z3 = _z3()
    start = time.process_time()
    context = _context()
    solver = _solver(text, context)
    if timeout is not None:
        solver.set("timeout", max(1, int(timeout * 1000)))
    if memory is not None:
        solver.set("max_memory", max(1, memory >> 20))
    solver.set("random_seed", seed)
    _asked(context, solver.from_string, text)
    reading = time.process_time() - start
    work = 0
    try:
        found = _asked(context, solver.check)
        seconds = time.process_time() - start
        work = next((value for key, value in solver.statistics() if key == "rlimit count"), 0)
        if found == z3.sat:
            return Answer("sat", _model(solver.model()), seconds, reading=reading, work=work)
        if found == z3.unsat:
            return Answer("unsat", {}, seconds, reading=reading, work=work)
        reason = solver.reason_unknown()
    except z3.Z3Exception as error:
        reason = str(error)
    words: dict[str, Outcome] = {
        "memory": "memory",
        "interrupt": "interrupted",
        "timeout": "timeout",
        "canceled": "timeout",
    }
    outcome: Outcome = next((o for word, o in words.items() if word in reason), "unknown")
    return Answer(outcome, {}, time.process_time() - start, reason, reading, work)


def enumerate_values(text: str, names: list[str]) -> Iterator[Model]:
    """All combinations of values of the named constants, each once. Only for small formulas."""
    z3 = _z3()
    context = z3.main_ctx()
    solver = _solver(text, context)
    _asked(context, solver.from_string, text)
    while (found := _asked(context, solver.check)) == z3.sat:
        model = solver.model()
        wanted = [d for d in model.decls() if d.name() in names]
        yield _model(model, wanted)
        solver.add(z3.Or([d() != model[d] for d in wanted]))
    if found != z3.unsat:
        raise TimeoutError(solver.reason_unknown())


def consecution(text: str, numbers: Iterable[int], timeout: float | None = None) -> list[int]:
    """The largest set of numbers such that all `before n` together imply every `after n`; [] after a timeout.

    The formula has a constant `after n` for each number, and may have `before n`. If a model makes `after n` false, n
    is removed, together with the assumption `before n`. This repeats until no such model exists.

    >>> text = "(declare-const |before 1| Bool)(declare-const |after 1| Bool)(declare-const |after 2| Bool)"
    >>> consecution(text + "(assert (= |after 1| |before 1|))", [1, 2])
    [1]
    """
    z3 = _z3()
    context = _context()
    solver = _solver(text, context)
    _asked(context, solver.from_string, text)
    deadline = None if timeout is None else time.monotonic() + timeout
    kept = list(numbers)
    before = {n: z3.Bool(f"before {n}", context) for n in kept}
    after = {n: z3.Bool(f"after {n}", context) for n in kept}
    failed = {n: z3.Not(after[n]) for n in kept}
    while kept:
        if deadline is not None:
            solver.set("timeout", max(1, int((deadline - time.monotonic()) * 1000)))
        broken = z3.Bool(f"one of {len(kept)} is broken", context)
        solver.add(z3.Implies(broken, z3.Or([failed[n] for n in kept])))
        found = _asked(context, solver.check, [broken, *(before[n] for n in kept)])
        if found == z3.unsat:
            return kept
        if found != z3.sat:
            return []
        model = solver.model()
        kept = [n for n in kept if not z3.is_false(model[after[n]])]
    return kept


def _z3() -> Any:
    """The package Z3, imported now."""
    with needs("bmc"):
        import z3
    return z3


def _context() -> z3.Context:
    """A context. An exception of a deadline in the middle of its constructor would leave one that cannot be destroyed."""
    return interruptible(_z3().Context, lambda: None)


def _solver(text: str, context: z3.Context) -> z3.Solver:
    """A SAT solver for bit-vector formulas, else the general SMT solver."""
    z3 = _z3()
    solver = z3.SolverFor("QF_FD", ctx=context) if "(set-logic QF_BV)" in text else z3.Solver(ctx=context)
    solver.set("ctrl_c", False)  # Ctrl-C is for Python
    return solver


def _asked(context: z3.Context, question: Callable[..., T], *arguments: Any) -> T:
    """The answer of Z3 to a question. Ctrl-C and a deadline interrupt Z3.

    >>> context = _context()
    >>> _asked(context, _solver("", context).check)
    sat
    """
    return interruptible(lambda: question(*arguments), context.interrupt)


def _model(model: z3.ModelRef, wanted: list[z3.FuncDeclRef] | None = None) -> Model:
    z3, found = _z3(), Model()
    for declaration in model.decls() if wanted is None else wanted:
        value = model[declaration]
        if z3.is_bool(value):
            found[declaration.name()] = z3.is_true(value)
        elif z3.is_bv_value(value):
            # sel and clocks are natural numbers. The interpreter wraps the numbers of the program.
            found[declaration.name()] = value.as_long()
        elif z3.is_int_value(value):
            found[declaration.name()] = value.as_long()
    return found
