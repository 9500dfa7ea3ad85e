"""Load a C program: from a file to a `Program`."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from pathlib import Path

from plait.bmc.c.reading.tree import Cast, Definition, Name, nodes
from plait.bmc.c.reading.types import INT, VOID, Integer, Pointer, Void
from plait.bmc.c.reading.unit import Unit
from plait.bmc.c.translation.buffers import words
from plait.bmc.c.translation.model import Model, Options, reachable
from plait.bmc.c.translation.threads import finish
from plait.bmc.c.translation.translator import Translator
from plait.bmc.c.translation.values import ZERO, Val
from plait.bmc.program.arithmetic import negate, operation
from plait.bmc.program.definition import LEAKS, Constant, Domain, Ensure, Expr, Program, Read
from plait.bmc.program.source import Place
from plait.kernel.errors import UsageError

_MOST_PASSES = 30


def load_c(
    path: Path | str,
    *,
    unwind: int = 8,
    objects: int = 4,
    threads: int = 4,
    overflow: bool = False,
    leaks: bool = False,
    spurious: bool = False,
    macros: Mapping[str, str | int | bool] | None = None,
) -> Program:
    """Translate a C program with POSIX threads.

    `unwind` bounds recursion, `objects` the objects of a malloc in a loop, `threads` the threads of a pthread_create in
    a loop whose number of iterations is not known. A run that exceeds a bound violates the property `limits`.
    `macros` are defined before the first line, as by `gcc -D`.
    With `overflow`, the overflow of a signed number is a violation; with `leaks`, a thread that is never joined.
    With `spurious`, `pthread_cond_wait` may return without a signal.
    """
    for name, value in (("unwind", unwind), ("objects", objects), ("threads", threads)):
        if value < 1:
            raise UsageError(f"{name}={value} is too small", hint="give 1 or more")
    try:
        unit = Unit(Path(path), _defined(Path(path), macros or {}))
        return _loaded(unit, Options(unwind, objects, threads, overflow, leaks, spurious))
    except (RecursionError, ctypes.ArgumentError):
        # ctypes wraps a RecursionError in a function that converts an argument.
        raise UsageError(
            f"{path}: the nesting of a statement, an expression or of calls is too deep",
            hint="split the expression or the chain of else if, or set a smaller bound for recursion",
        ) from None


def _defined(path: Path, macros: Mapping[str, str | int | bool]) -> list[str]:
    """The options of the preprocessor that define macros."""
    text = path.read_text(encoding="utf-8", errors="replace") if macros and path.exists() else ""
    more = re.search(r"^\s*#\s*include\s*\"", text, re.MULTILINE)
    for name in macros:
        if not re.search(rf"\b{re.escape(name)}\b", text) and not more:
            raise UsageError(f"{path} has no macro {name}", hint="-p NAME=VALUE defines a macro that the program uses")
    values = {name: int(value) if isinstance(value, bool) else value for name, value in macros.items()}
    return [f"-D{name}={value}" for name, value in values.items()]


def _loaded(unit: Unit, options: Options) -> Program:
    path = unit.path
    if unit.function("main") is None:
        raise UsageError(f"{path} has no function main", hint="give the file that contains main")
    reachable(unit)
    model = _translated(unit, options)
    for _ in range(_MOST_PASSES):
        model = _translated(unit, options, model)
        if model.stable:
            return model.program.build()
    raise UsageError(
        f"{path}: the pointers of this program are too deeply nested", hint="use fewer pointers to pointers"
    )


def _translated(unit: Unit, options: Options, before: Model | None = None) -> Model:
    """The program, if values flow to variables as the translation before this one found out."""
    model = Model(unit, options, before)
    code = model.program.process("main")
    main = Translator(model, code, ("main",))
    definition = unit.function("main")
    assert definition is not None
    code.at(definition.place)
    main.inlined(definition, _arguments(main, definition), definition.place)
    if options.leaks:
        code.step(lambda: (_leaks(model), ()))
    code.end()
    while model.waiting:
        thread = model.waiting.pop(0)
        code = thread.code
        of = Translator(model, code, thread.chain)
        of.result = thread.result
        definition = unit.function(thread.function)
        assert definition is not None
        code.at(Place(definition.place.line, definition.place.column, thread.function))
        argument = thread.argument
        if not isinstance(argument, Val):
            origins = frozenset((f"variable {argument.name}",))
            argument = Val(code.load(argument, synchronizes=True), Pointer(VOID), origins)
        value = of.inlined(definition, [argument] if definition.parameters else [], definition.place)
        if code.reachable:
            finish(of, of.cast(value, Pointer(VOID)))
        code.end()
    return model


def _arguments(main: Translator, definition: Definition) -> list[Val]:
    """The arguments of main: any number of words, which nobody may look at."""
    ignored = {id(name) for declared, name in words(definition) if declared in definition.parameters}
    for node in nodes(definition.body):
        if isinstance(node, Cast) and isinstance(node.type, Void):
            inner = node.operand
            while isinstance(inner, Cast):
                inner = inner.operand
            ignored.add(id(inner))
    used = {n.declaration: n for n in nodes(definition.body) if isinstance(n, Name) and id(n) not in ignored}
    found = []
    for parameter in definition.parameters:
        value = Val(ZERO, parameter.type)
        if isinstance(parameter.type, Pointer):
            main.model.words.add(parameter)
        if parameter in used:
            if not isinstance(parameter.type, Integer):
                raise main.refusal(f"{parameter.name}, an argument of main,", used[parameter].place)
            value = Val(main.code.choose(Domain("int", 1, INT.high), INT.bits), INT)
        found.append(value)
    return found


def _leaks(model: Model) -> list[Ensure]:
    found = []
    for thread in model.threads:
        left: Expr = operation("&&", Read(thread.code.started), negate(Read(thread.released)))
        found.append(Ensure(negate(left), LEAKS, f"the thread {thread.code.name} is neither joined nor detached"))
    for item in model.allocated:
        if item.alive is not None:
            for copy in range(item.copies):
                exists = Read(item.alive, Constant(copy))
                found.append(Ensure(negate(exists), LEAKS, f"{item.name} is never freed"))
    return found
