"""A search by a solver in a process of its own: `portfolio.py` starts it and reads what it finds.

A process can be ended at any time, whatever the solver does. The request and the answers are pickled on the standard
streams; no other program writes there.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from plait.bmc.finding import Answer, Costs, Finding, Schedule
from plait.bmc.options import Limits, Options
from plait.bmc.program.arithmetic import operation
from plait.bmc.program.definition import Constant, Expr, Program, Property, ended_in, variables_of
from plait.kernel.errors import PlaitError
from plait.kernel.imports import ADDED

_NICE = 10
"""Solvers take the cores that the enumeration leaves free: if it ends, it is the faster one."""


class Request(NamedTuple):
    """What to decide."""

    program: Program
    properties: list[str]
    options: Options
    seconds: float | None
    memory: int | None


class SolverProcess:
    """A process that decides a request, as the process sees it that asked."""

    def __init__(self, request: Request, take: Callable[[Any], None]) -> None:
        """Start it. Each answer is given to `take`, in a thread of its own; None is the last one."""
        data = pickle.dumps(request)
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from plait.bmc.worker import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p and p not in ADDED)},
            process_group=0,  # Ctrl-C is for the process that asked. In a session of its own, nice would have no effect.
        )
        self.listener = threading.Thread(target=self._listen, args=(data, take), daemon=True)
        self.listener.start()

    def _listen(self, data: bytes, take: Callable[[Any], None]) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(data)
            self.process.stdin.close()
            while True:
                take(pickle.load(self.process.stdout))
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            pass
        finally:
            take(None)

    def end(self) -> None:
        """Kill the process, and close its streams."""
        self.process.kill()
        self.process.wait()
        self.listener.join()
        for stream in filter(None, (self.process.stdin, self.process.stdout)):
            with suppress(OSError):
                stream.close()


def main() -> None:
    """Decide the properties of a request, and write the answers as they come."""
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(_NICE)
    answers = os.fdopen(os.dup(1), "wb")
    sys.stdout = sys.stderr  # nothing else may write to the answers

    def send(answer: Any) -> None:
        pickle.dump(answer, answers)
        answers.flush()

    with suppress(BrokenPipeError):  # nobody wants the answers any more
        try:
            decide(pickle.load(sys.stdin.buffer), send)
        except PlaitError as error:
            send(error)
        except Exception:
            send(RuntimeError(f"a search by a solver failed:\n{traceback.format_exc()}"))


def _watch(parent: int) -> None:
    """End with the process that asked, however that ended."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def decide(request: Request, send: Callable[[Any], None]) -> None:
    """Send an `Answer` for each property, the progress as text, and the `Costs`."""
    from plait.bmc.search import SolverSearch

    deadline = None if request.seconds is None else time.monotonic() + request.seconds
    search = SolverSearch(request.program, request.options, Limits(deadline, request.memory), send)
    found = [request.program.find(name) for name in request.properties]
    todo = [p for p in found if p is not None]
    while todo:
        group, todo = _group(todo)
        finding = search.decide(group[0] if len(group) == 1 else _all_of(group))
        if finding.run is not None:
            last = finding.run.steps[-1].state if finding.run.steps else finding.run.start
            bad = [p for p in group if search.interpreter.evaluate(p.bad, last)]
            todo = [p for p in group if p not in bad] + todo
            group = bad
        for property_ in group:
            send(_answer(finding, property_.name))
        costs, search.costs = search.costs, Costs()
        send(costs)


def _group(properties: list[Property]) -> tuple[list[Property], list[Property]]:
    """The properties that one query can decide: all checks of the front end, or one property of another kind."""
    checks = [p for p in properties if all(v.hidden for v in variables_of(p.condition)) and not ended_in(p.condition)]
    return (checks, [p for p in properties if p not in checks]) if checks else (properties[:1], properties[1:])


def _all_of(properties: Sequence[Property]) -> Property:
    condition: Expr = Constant(True)
    for property_ in properties:
        condition = operation("&&", condition, property_.condition)
    return Property(", ".join(p.name for p in properties), "always", condition, properties[0].place)


def _answer(finding: Finding, name: str) -> Answer:
    run: Schedule | None = None
    if finding.run is not None:
        run = finding.run.start.values, [(step.process, step.inputs) for step in finding.run.steps]
    return Answer(name, run, finding.covered, finding.depth, finding.bound, finding.note)
