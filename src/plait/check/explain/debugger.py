"""Stops in the user's debugger inside the handler of a step, in the run of the handler that is this step.

The handler gets a first statement that calls `sys.breakpointhook`, as `breakpoint()` does. So any debugger that
PYTHONBREAKPOINT names stops in the frame of the handler, on the lines of the user's file. Only the code object of the
handler is replaced, and only while it runs.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from types import CodeType, FunctionType

from plait._native import Transition
from plait.check.explain.tracing import Tracer
from plait.check.runner import Runner
from plait.check.tabulate.codec import UNBORN, UP
from plait.check.tabulate.steprun import Outcome
from plait.kernel.errors import ModelError, TraceError
from plait.kernel.trace import Trace
from plait.model.system import System

_STOPS = "__plait_stops__"
"""A global name of the handler's module while it runs: a function that says whether to stop in this run."""
_QUIT = ("BdbQuit", "SystemExit")
"""Exceptions by which debuggers end a program."""


def handled_steps(system: System, trace: Trace) -> list[int]:
    """The numbers of the steps that run a handler. Losses, copies and crashes run none."""
    classes = {repr(pid): cls for pid, cls in zip(system.pids, system.classes, strict=True)}
    recovering = {n for n, cls in classes.items() if any(h.kind == "recovery" for h in cls.__plait_handlers__)}
    return [
        number
        for number, event in enumerate(trace.events, 1)
        if event.kind == "step" or (event.kind == "recover" and event.lane in recovering)
    ]


def stop_inside(tracer: Tracer, transition: Transition) -> None:
    """Run the handler of a transition that the tracer is about to take, and stop in its first line.

    What the run does is forgotten. If the user ends the program in the debugger, this is a KeyboardInterrupt.
    """
    tabulation, index = tracer.runner.tabulation, transition.process
    handlers = tabulation.handlers[index]
    local = tracer.runner.local(tracer.state, index)
    number = transition.handler
    if number is None:  # a recovery
        number = next(n for n, handler in enumerate(handlers) if handler.kind == "recovery")
        local = bytes([UP]) + local[1:]
    messages = [(sender, content) for _, sender, content in transition.consumed]
    where = tabulation.where(index, number)
    if tabulation.guard_raised(index, local, number, messages):
        raise TraceError(
            f"the guard of {where} raises an exception, so the handler does not run",
            hint="put breakpoint() into the guard, or choose an earlier step",
        )
    run = run_number(tracer.runner, tracer.state, transition, local, number)
    with _stopping(handlers[number].function, where, run):
        try:
            results = tabulation.answer(("step", index, local, number, messages, True))
        except ModelError:  # the user changed something in the debugger
            return
    failures = [result[-1] for result in results if result[-1] is not None]
    if transition.failure is None and any(failure[-1] in _QUIT for failure in failures):
        raise KeyboardInterrupt


def run_number(runner: Runner, state: Sequence[int], transition: Transition, local: bytes, number: int) -> int:
    """Which of the runs of a handler, one per combination of choices, is this transition. It is counted from 0."""
    engine = runner.engine
    unborn = [engine.store.local(one)[0] == UNBORN for one in engine.components(state)[0]]
    messages = [(sender, content) for _, sender, content in transition.consumed]
    outcomes = runner.tabulation.step(transition.process, local, number, messages)
    return next(i for i, outcome in enumerate(outcomes) if _is(outcome, transition, unborn))


def _is(outcome: Outcome, transition: Transition, unborn: Sequence[bool]) -> bool:
    """Whether an outcome of a handler is the one of this transition: the same choices, and the slots are as it assumes."""
    return outcome.choices == transition.choices and all(unborn[slot] == free for slot, free in outcome.expected)


@contextmanager
def _stopping(handler: object, where: str, run: int) -> Iterator[None]:
    """Inside it, the run of a handler with this number, counted from 0, stops in the debugger."""
    function = inspect.unwrap(handler) if callable(handler) else handler
    if not isinstance(function, FunctionType):
        raise _without_source(where, "it is no function")
    runs, before = count(), function.__code__
    function.__code__ = _with_stop(before, where)
    function.__globals__[_STOPS] = lambda: next(runs) == run
    try:
        yield
    finally:
        function.__code__ = before
        del function.__globals__[_STOPS]


def _with_stop(code: CodeType, where: str) -> CodeType:
    """The code of a function, with a first statement that stops in the debugger.

    The statement has another line than the body, that of the `def`. So the debugger stops at the first line of the body.
    """
    tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                (stop,) = ast.parse(f"if {_STOPS}(): __import__('sys').breakpointhook()").body
                line = node.lineno if node.lineno < node.body[0].lineno else first
                node.body.insert(0, ast.increment_lineno(stop, line - 1))
    for found in _codes(compile(tree, code.co_filename, "exec", dont_inherit=True)):
        same = (found.co_qualname, found.co_firstlineno) == (code.co_qualname, code.co_firstlineno)
        if same and found.co_freevars == code.co_freevars and _STOPS in found.co_names:
            return found
    raise _without_source(where, f"{code.co_filename} does not have its definition")


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _without_source(where: str, why: str) -> TraceError:
    return TraceError(
        f"the debugger cannot stop in {where}: {why}", hint="define the handler with def, or put breakpoint() into it"
    )
