"""The entry: from a function of a Python file to a Program.

The function and all that it calls are translated again and again until the types of all variables are known.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping
from typing import Any

from plait.bmc.program.definition import ASSERTIONS, Constant, Ensure, Program
from plait.bmc.program.source import Source
from plait.bmc.python.functions import Frame, Function
from plait.bmc.python.heap import Heap
from plait.bmc.python.library.executors import Executors
from plait.bmc.python.liveness import forget
from plait.bmc.python.translation import Options, Translation
from plait.kernel.errors import UsageError

_MOST_PASSES = 200


def load_python(
    target: types.FunctionType,
    arguments: Mapping[str, int | bool | str] | None = None,
    *,
    unwind: int = 8,
    objects: int = 8,
    threads: int = 4,
) -> Program:
    """The program of a function that uses threads, as CPython runs it.

    `unwind` bounds recursion. A place in a loop that is not unrolled makes at most `objects` objects and `threads`
    threads, and a container holds at most `objects` items. If a run needs more, the check `limits` is violated.
    """
    given = {name: _converted(value) for name, value in (arguments or {}).items()}
    try:
        return translate(target, given, Options(unwind, objects, threads))
    except RecursionError:
        file = target.__code__.co_filename
        raise UsageError(
            f"{file}: the calls of {target.__name__} are nested too deeply",
            hint="set a smaller unwind, or use a loop",
        ) from None


def _converted(value: int | bool | str) -> int | bool | str:
    """The value of an argument of the command line."""
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    return int(value) if value.removeprefix("-").isdecimal() else value


def translate(target: types.FunctionType, arguments: dict[str, Any], options: Options) -> Program:
    """The program of a function."""
    heap = Heap()
    for _ in range(_MOST_PASSES):
        heap.changed = False
        unrolled = len(heap.unrolled)
        program = _pass(heap, options, target, arguments)
        if len(heap.unrolled) > unrolled:
            heap = heap.restarted()
        elif not heap.changed:
            if heap.settled:
                program.refuse_received()
                for code in program.builder.processes:
                    forget(code)
                return program.builder.build()
            heap.settled = True
    raise UsageError(
        f"{target.__qualname__} is too large to be translated", hint="check a smaller function, or fewer threads"
    )


def _pass(heap: Heap, options: Options, target: types.FunctionType, arguments: dict[str, Any]) -> Translation:
    probe = Translation(heap, options, target.__name__, Source("", ""))
    function: Function | None = probe.function(target)
    if function is None:
        raise UsageError(f"{target.__qualname__} has no source", hint="define it in a file")
    source = Source(function.file, function.text)
    of = Translation(heap, options, target.__name__, source)
    code = of.builder.process("main", "main")
    main = Executors(of, code)
    main.frame = Frame(function, 0, 0)
    node: ast.AST = function.node
    main.at(node)
    values = {name: of.imported(value) for name, value in arguments.items()}
    main.main(function, values, node)
    # Every program has this check: no exception is left uncaught.
    main.emit([Ensure(Constant(True), ASSERTIONS)])
    code.end()
    done: set[Any] = set()
    while True:
        waiting = [plan for key, plan in of.plans.items() if key not in done]
        if not waiting:
            break
        for plan in waiting:
            done.add((plan.site, plan.copy))
            Executors(of, plan.code).run_plan(plan)
    return of
