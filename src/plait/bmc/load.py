"""Load a Program from a target: a `.plait` file, a Python file (`counter.py`, `counter.py:program`) or a zoo name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from plait.bmc.language.compiler import compile_program
from plait.bmc.language.parser import parse, read
from plait.bmc.program.definition import Program
from plait.kernel.errors import PlaitError, UsageError
from plait.kernel.imports import import_file

ZOO = Path(__file__).parent / "zoo"
"""The programs that ship with Plait."""


def zoo() -> list[str]:
    """The names of the programs that ship with Plait."""
    return sorted(file.stem for file in ZOO.glob("*.plait"))


def parse_program(
    text: str, parameters: Mapping[str, str | int | bool] | None = None, name: str = "program"
) -> Program:
    """Parse a program; `parameters` replace its constants.

    >>> [v.name for v in parse_program("int x = 0; process p { int t; t = x; }").variables]
    ['x', 'p.t']
    """
    try:
        return compile_program(parse(text, name), parameters)
    except RecursionError:
        raise UsageError(
            f"{name}: the nesting of a statement or an expression is too deep",
            hint="assign parts of it to variables, or use loops and quantifiers",
        ) from None


def load(target: str, parameters: Mapping[str, str | int | bool] | None = None) -> Program:
    """Load the program of a target."""
    parameters = dict(parameters or {})
    file, _, name = target.rpartition(":") if ".py:" in target else (target, "", "")
    path = Path(file)
    if target in zoo():
        path = ZOO / f"{target}.plait"
    if path.suffix == ".py":
        return _from_python(path, name, parameters)
    if not path.exists():
        raise UsageError(
            f"there is no file {target}",
            hint=f"give a .plait file, a Python file with a program, or one of {', '.join(zoo())}",
        )
    return parse_program(read(path), parameters, target)


def _from_python(path: Path, name: str, parameters: dict[str, Any]) -> Program:
    read(path)
    try:
        found = _named(import_file(path.stem, path), path, name)
        if isinstance(found, Program):
            if parameters:
                raise UsageError(
                    f"{path}: the program has no parameters",
                    hint="turn the program into a function that returns it: its arguments are the parameters",
                )
            return found
        program = found(**_converted(found, parameters))
    except PlaitError:
        raise
    except Exception as error:
        raise UsageError(
            f"{path} cannot be loaded: {type(error).__name__}: {error}",
            hint="run the file with python to see the error",
        ) from None
    if not isinstance(program, Program):
        raise UsageError(f"{path}: {name or 'the function'} does not return a Program", hint="return build(…)")
    return program


def _named(module: Any, path: Path, name: str) -> Program | Callable[..., Any]:
    if name:
        found = getattr(module, name, None)
        if found is None:
            raise UsageError(
                f"{path} has no {name}", hint="give the name of a program, or of a function that returns one"
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
        raise UsageError(f"{path} has {len(candidates)} programs", hint=f"choose one, for example {path}:program")
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
