"""`@conforms`: a function that turns what an implementation has logged into events.

It gets what a line says and returns the events for it: none, one, or several. So one line may stand for several
steps, and lines that say nothing of the model are left out.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from plait.conform.log import Log, Record, bad, of_records
from plait.kernel.errors import UsageError
from plait.kernel.imports import import_file, search_first
from plait.kernel.places import text_of
from plait.model.system import System

_MARK = "__plait_conforms__"


def conforms(function: Any = None, /, *, text: bool = False) -> Any:
    """Mark a function of a model's module: it turns a line of a log into events.

    The function gets the JSON of the line, or with `text=True` the line itself. It returns an event (a dict, as the
    format of logs has it), a list of events, or None. A generator function gets an iterator over all lines instead, and
    yields events: it can put several lines together into one event.

    >>> @conforms
    ... def event(line):
    ...     return {"at": line["node"], "step": line["event"]} if "event" in line else None
    """
    if function is None:
        return lambda function: conforms(function, text=text)
    setattr(function, _MARK, "text" if text else "json")
    return function


def mapping_of(system: System) -> Callable[..., Any] | None:
    """The function that is marked in a module of the classes of a system."""
    modules = dict.fromkeys(cls.__module__ for cls in system.classes)
    spaces = [vars(sys.modules[name]) for name in modules if name in sys.modules]
    found = [one for space in spaces for one in space.values() if inspect.isfunction(one) and hasattr(one, _MARK)]
    unique = list({id(one): one for one in found}.values())
    if len(unique) > 1:
        raise UsageError(
            f"the model has {len(unique)} functions with @conforms: {', '.join(one.__name__ for one in unique)}",
            hint="keep one of them",
        )
    return unique[0] if unique else None


def mapped(name: str, lines: Iterable[str], function: Callable[..., Any]) -> Log:
    """The log that a function makes of lines."""
    place = [f"{name}:1"]

    def read() -> Iterator[Any]:
        for number, line in enumerate(lines, 1):
            place[0] = f"{name}:{number}"
            if not line.strip():
                continue
            if getattr(function, _MARK) == "text":
                yield line.rstrip("\n")
                continue
            try:
                yield msgspec.json.decode(line)
            except msgspec.MsgspecError as error:
                raise bad(place[0], f"not JSON: {error}", "@conforms(text=True) gets lines that are not JSON") from None

    def made() -> Iterator[tuple[str, Any]]:
        if inspect.isgeneratorfunction(function):
            for one in _called(function, read()):
                yield place[0], one
            return
        for line in read():
            for one in _events(_called(function, line)):
                yield place[0], one

    def _called(function: Callable[..., Any], argument: Any) -> Any:
        try:
            result = function(argument)
            return _stepped(result) if inspect.isgenerator(result) else result
        except Exception as error:
            raise _failed(error) from error

    def _stepped(result: Iterator[Any]) -> Iterator[Any]:
        while True:
            try:
                one = next(result)
            except StopIteration:
                return
            except UsageError:
                raise
            except Exception as error:
                raise _failed(error) from error
            yield one

    def _failed(error: Exception) -> UsageError:
        if isinstance(error, UsageError):
            return error
        return bad(
            place[0],
            f"{function.__name__} raised {type(error).__name__}: {text_of(error)}",
            f"fix {function.__name__}, or return None for lines that it does not know",
        )

    return of_records(name, made())


def _events(result: Any) -> Iterable[Any]:
    if result is None:
        return ()
    return [result] if isinstance(result, dict | Record) else result


def mapping_in(file: Path) -> Callable[..., Any]:
    """The function that is marked in a file."""
    if not file.is_file():
        raise UsageError(f"{file} cannot be read", hint="give a Python file with a function that is marked @conforms")
    search_first(file.resolve().parent)
    try:
        module = import_file(f"plait_mapping_{file.stem}", file)
    except Exception as error:
        raise UsageError(f"{file} raised {type(error).__name__}: {text_of(error)}", hint="fix this file") from error
    found = [one for one in vars(module).values() if inspect.isfunction(one) and hasattr(one, _MARK)]
    if len(found) != 1:
        raise UsageError(f"{file} has {len(found)} functions with @conforms", hint="mark exactly one function")
    return found[0]
