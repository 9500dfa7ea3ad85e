"""Load a Program from a target: a `.plait` file, C (`program.c`, `program.i`), Python or a zoo name.

A Python target is a function that returns a Program (`counter.py:program`), or ordinary code with threads or tasks
(`bank.py:main`), which is read and never executed.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from plait.bmc.program.definition import Program
from plait.kernel.errors import PlaitError, UsageError
from plait.kernel.imports import import_file, search_first


class Reading(NamedTuple):
    """How a front end reads a program. A limit that a run exceeds makes the verdict inconclusive."""

    unwind: int = 8
    """The maximal depth of recursion."""
    objects: int = 8
    """The maximal number of objects that one allocation in the source makes."""
    threads: int = 4
    """The maximal number of threads that one place in the source starts, if the number is not known."""
    overflow: bool = False
    """Whether a signed overflow in C is a violation. Otherwise, numbers wrap around."""
    leaks: bool = False
    """Whether a thread that is neither joined nor detached is a violation."""
    atomic: bool = False
    """Whether every statement is one step: a claim of the user, for the small language."""
    spurious: bool = False
    """Whether threads in C may wake up from a condition variable without a signal."""

    def changed(self) -> dict[str, int | bool]:
        """The options that do not have their default values, as parameters of a trace.

        >>> Reading(unwind=3).changed()
        {'--unwind': 3}
        """
        return {f"--{k}": v for k, v in self._asdict().items() if v != Reading._field_defaults[k]}


ZOO = Path(__file__).parent / "zoo"
"""The programs that ship with Plait."""


def zoo() -> list[str]:
    """The names of the programs that ship with Plait."""
    return sorted(file.stem for file in ZOO.glob("*.plait"))


def read(path: Path) -> str:
    """Read the text of a file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="give a .plait, C or Python file") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text (UTF-8)", hint="give a .plait, C or Python file") from None


def parse_program(
    text: str,
    parameters: Mapping[str, str | int | bool] | None = None,
    name: str = "program",
    *,
    atomic: bool = False,
) -> Program:
    """Parse a program; `parameters` replace its constants. With `atomic`, you claim that every statement is one step.

    >>> [v.name for v in parse_program("int x = 0; process p { int t; t = x; }").variables]
    ['x', 'p.t']
    """
    from msgspec import structs

    from plait.bmc.language.compiler import compile_program
    from plait.bmc.language.parser import parse

    try:
        tree = parse(text, name)
        return compile_program(structs.replace(tree, atomic=True) if atomic else tree, parameters)
    except RecursionError:
        raise UsageError(
            f"{name}: the nesting of a statement or an expression is too deep",
            hint="assign parts of it to variables, or use loops and quantifiers",
        ) from None


def load(
    target: str, parameters: Mapping[str, str | int | bool] | None = None, reading: Reading | None = None
) -> Program:
    """Load the program of a target. Parameters of a saved trace such as `--unwind` are options of the front end."""
    given = dict(parameters or {})
    options = {k: given.pop(f"--{k}") for k in Reading._fields if f"--{k}" in given}
    reading = reading or Reading(**options)  # type: ignore[arg-type]
    file, _, name = target.rpartition(":") if ".py:" in target else (target, "", "")
    path = Path(file)
    if target in zoo():
        path = ZOO / f"{target}.plait"
    if path.suffix == ".py":
        return _from_python(path, name, given, reading)
    if not path.exists():
        raise UsageError(
            f"there is no file {target}",
            hint=f"give a .plait file, a C file, a Python file, or one of {', '.join(zoo())}",
        )
    if path.suffix in (".c", ".i"):
        from plait.bmc.c.load import load_c

        return load_c(
            path,
            unwind=reading.unwind,
            objects=reading.objects,
            threads=reading.threads,
            overflow=reading.overflow,
            leaks=reading.leaks,
            spurious=reading.spurious,
            macros=given,
        )
    return parse_program(read(path), given, target, atomic=reading.atomic)


def _from_python(path: Path, name: str, parameters: dict[str, Any], reading: Reading) -> Program:
    read(path)
    search_first(path.absolute().parent)
    with _loading(path):
        module = import_file(path.stem, path)
    threaded = _threaded(module, name)
    if threaded:
        from plait.bmc.python.load import load_python

        limits = {"unwind": reading.unwind, "objects": reading.objects, "threads": reading.threads}
        return load_python(threaded, parameters, **limits)
    with _loading(path):
        found = _named(module, path, name)
        if isinstance(found, Program):
            if parameters:
                raise UsageError(
                    f"{path}: the program has no parameters",
                    hint="turn the program into a function that returns it: its arguments are the parameters",
                )
            return found
        program = found(**_converted(found, parameters))
    if not isinstance(program, Program):
        raise UsageError(f"{path}: {name or 'the function'} does not return a Program", hint="return build(…)")
    return program


@contextmanager
def _loading(path: Path) -> Iterator[None]:
    """Around code of the user: its exceptions are errors of the file."""
    try:
        yield
    except PlaitError:
        raise
    except Exception as error:
        raise UsageError(
            f"{path} cannot be loaded: {type(error).__name__}: {error}",
            hint="run the file with python to see the error",
        ) from None


def _threaded(module: Any, name: str) -> types.FunctionType | None:
    """A function that is ordinary code with threads: no function that returns a Program."""
    found = getattr(module, name or "main", None)
    if not inspect.isfunction(found) or found.__annotations__.get("return") in (Program, "Program"):
        return None
    if any(
        value is parse_program or getattr(value, "__module__", "").startswith("plait.bmc")
        for value in vars(module).values()
    ):
        return None
    return found


def _named(module: Any, path: Path, name: str) -> Program | Callable[..., Any]:
    if name:
        found = getattr(module, name, None)
        if found is None:
            raise UsageError(
                f"{path} has no {name}",
                hint="give the name of a function that starts threads or tasks, or of one that returns a Program",
            )
        return found  # type: ignore[no-any-return]
    own = vars(module).values()
    programs = [v for v in own if isinstance(v, Program)]
    functions = [
        v
        for v in own
        if inspect.isfunction(v)
        and v.__module__ == module.__name__
        and v.__annotations__.get("return") in (Program, "Program")
    ]  # fmt: skip
    candidates: list[Any] = [*programs, *functions]
    if len(candidates) != 1:
        raise UsageError(
            f"{path} has no function main, and {len(candidates)} programs",
            hint=f"name the function that starts threads or tasks, or that returns a Program: {path}:NAME",
        )
    return candidates[0]  # type: ignore[no-any-return]


def _converted(function: Callable[..., Any], parameters: dict[str, Any]) -> dict[str, Any]:
    known = inspect.signature(function).parameters
    found: dict[str, Any] = {}
    for name, value in parameters.items():
        if name not in known:
            raise UsageError(
                f"the program has no parameter {name!r}", hint=f"its parameters are: {', '.join(known) or 'none'}"
            )
        text = str(value).lower()
        if text in ("true", "false"):
            found[name] = text == "true"
            continue
        try:
            found[name] = int(text)
        except ValueError:
            raise UsageError(f"{name}={value!r} does not fit", hint="give a number, true or false") from None
    return found
