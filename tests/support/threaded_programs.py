"""Programs as front ends make them, with threads that another thread starts, and shortest runs of them."""

from __future__ import annotations

from plait.bmc.analysis.races import racing
from plait.bmc.analysis.waiting import deadlocked
from plait.bmc.execution.interpreter import Interpreter, State, Step
from plait.bmc.execution.tracing import trace
from plait.bmc.program.arithmetic import negate, operation
from plait.bmc.program.builder import CodeBuilder, ProgramBuilder
from plait.bmc.program.definition import (
    DEADLOCK,
    RACES,
    Constant,
    Domain,
    Program,
    Property,
    Read,
    Require,
    Set,
)
from plait.bmc.program.source import Place, Source
from plait.bmc.program.synchronization import acquire, release
from plait.kernel.trace import Trace
from tests.oracle.program_states import Enumeration


def _joined(main: CodeBuilder, threads: list[CodeBuilder]) -> None:
    for t in threads:
        main.step([Set(t.started, None, Constant(True))], place=Place(9, 1, f"pthread_create(&{t.name}, 0, add, 0);"))
    for t in threads:
        main.step([Require(Read(t.finished))], waits=True, place=Place(10, 1, f"pthread_join({t.name}, 0);"))


def counter(*, atomic: bool = False) -> Program:
    """Two threads increment x without a lock, and main asserts that both increments count."""
    p = ProgramBuilder("counter", Source("src/counter.c", "int x;\n"))
    x = p.shared("x")
    main = p.process("main")
    threads = [p.process(f"t{i}", "add", spawned=True) for i in (1, 2)]
    for t in threads:
        with t.scratch():
            t.at(Place(5, 3, "x = x + 1;"))
            if atomic:
                t.enter()
            t.set(x, operation("+", t.load(x), Constant(1)))
            if atomic:
                t.leave()
        t.end()
    _joined(main, threads)
    main.at(Place(11, 3, "assert(x == 2);"))
    main.ensure(operation("==", main.load(x), Constant(2)))
    main.end()
    return p.build()


def looping_section() -> Program:
    """A thread increments x twice in an atomic section with a loop. Another thread's steps cannot be left out."""
    p = ProgramBuilder("section", Source("section.c", ""))
    x, y = p.shared("x"), p.shared("y")
    one, two = p.process("one"), p.process("two")
    one.at(Place(3, 1, "__VERIFIER_atomic_twice();"))
    i, again, out = one.local("i"), one.label(), one.label()
    one.enter()
    one.set(x, Constant(0))
    one.mark(again)
    with one.scratch():
        one.set(x, operation("+", one.load(x), Constant(1)))
    one.set(i, operation("+", Read(i), Constant(1)))
    rest = one.label()
    one.branch(operation("<", Read(i), Constant(2)), again, rest)
    one.mark(rest)
    one.leave()
    one.mark(out)
    one.end()
    two.at(Place(7, 1, "y = 1;"))
    two.set(y, Constant(1))
    two.at(Place(8, 1, "y = y + 1;"))
    with two.scratch():
        two.set(y, operation("+", two.load(y), Constant(1)))
    two.end()
    p.property("always", "small", operation("<", Read(x), Constant(2)), Place(1, 1, "always small: x < 2;"))
    p.property("always", "low", operation("<", Read(y), Constant(2)), Place(1, 1, "always low: y < 2;"))
    return p.build()


def embrace() -> Program:
    """Two threads take two locks in opposite orders."""
    p = ProgramBuilder("bank", Source("bank.py", ""))
    a, b = p.shared("a", lock=True), p.shared("b", lock=True)
    main = p.process("main")
    threads = [p.process(f"t{i}", "transfer", spawned=True) for i in (1, 2)]
    for t, (first, second) in zip(threads, [(a, b), (b, a)], strict=True):
        t.at(Place(4, 1, f"with {first.name}:"))
        acquire(t, (first, None))
        t.at(Place(5, 1, f"with {second.name}:"))
        acquire(t, (second, None))
        release(t, (second, None))
        release(t, (first, None))
        t.end()
    _joined(main, threads)
    main.end()
    return p.build()


def guess() -> Program:
    """A thread of the environment's choice: an input, an array, and locals of a function that is called twice."""
    p = ProgramBuilder("guess", Source("guess.c", ""))
    cells = p.shared("cells", size=3)
    main = p.process("main")
    t = p.process("t1", "fill", spawned=True)
    for line in (4, 6):
        i = t.local("i")
        t.at(Place(line, 1, "i = __VERIFIER_nondet_int();"))
        with t.scratch():
            t.set(i, t.choose(Domain("int", 0, 2)))
        t.at(Place(line + 1, 1, "cells[i] = i + 1;"))
        t.set(cells, operation("+", Read(i), Constant(1)), Read(i))
    t.end()
    _joined(main, [t])
    main.at(Place(12, 1, "assert(cells[2] != 3);"))
    main.ensure(operation("!=", main.load(cells, Constant(2)), Constant(3)))
    main.end()
    return p.build()


def property_of(program: Program, name: str) -> Property:
    """A property of a program, or one of the checks of all programs."""
    conditions = {DEADLOCK: deadlocked, RACES: racing}
    if name in conditions:
        return Property(name, "always", negate(conditions[name](program)), Place(1, 1))
    found = program.find(name)
    assert found is not None
    return found


def shortest(program: Program, name: str) -> tuple[Interpreter, State, list[Step]]:
    """A shortest run that violates a property, by enumeration."""
    enumeration, bad = Enumeration(program), property_of(program, name).bad
    for layer in enumeration.layers():
        for state in layer.states:
            if enumeration.interpreter.evaluate(bad, state):
                start, moves = enumeration.path(state)
                steps, now = [], start
                for process, inputs in moves:
                    taken = enumeration.interpreter.step(now, process, inputs)
                    assert taken is not None
                    steps.append(taken)
                    now = taken.state
                return enumeration.interpreter, start, steps
    raise AssertionError(f"{name} holds")


def traced(program: Program, name: str, *, full: bool = False) -> Trace:
    """The trace of a shortest run that violates a property."""
    interpreter, start, steps = shortest(program, name)
    return trace(interpreter, program.name, {}, property_of(program, name), start, steps, full=full)
