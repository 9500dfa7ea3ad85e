"""Code that could look through an opaque phase number, or depend on it unnoticed.

A `Phase` raises an error when it is used other than a phase may be. So a run of a handler without such an error is the same
in all phases, unless the code asks for the type or the identity of a value, or catches the error. This is looked for in the
compiled code of the model, and of all functions of Python that it calls.
"""

from __future__ import annotations

import builtins
import ctypes
import dis
import functools
import gc
import inspect
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from plait.model.message import Message, subclasses
from plait.model.process import Process
from plait.model.system import System

_ASKING = frozenset(
    [
        "isinstance",
        "issubclass",
        "type",
        "id",
        "hash",
        "vars",
        "dir",
        "eval",
        "exec",
        "compile",
        "globals",
        "locals",
        "getattr",
        "hasattr",
        "callable",
        "repr",
        "setattr",
        "delattr",
        "__import__",
        "breakpoint",
        "input",
        "open",
        "print",
        "memoryview",
    ]
)
"""Functions by which code may ask for the type, the identity or the text of a value, or reach what is not looked at."""
_BUILT_IN = [getattr(builtins, name) for name in _ASKING]
_INSIDE = frozenset(
    ["__class__", "__dict__", "__reduce__", "__reduce_ex__", "__getattribute__", "__code__", "__globals__"]
)
"""Attributes by which code may do so."""
_MODULES = (builtins, sys, gc, ctypes, inspect)
_CATCHING = frozenset({"PUSH_EXC_INFO", "CHECK_EXC_MATCH", "MATCH_CLASS", "CHECK_EG_MATCH"})


def looks_through(system: System) -> str | None:
    """Why the code of a System could tell phases apart unnoticed; None if it cannot."""
    for function in _functions(system):
        if (why := _suspect(function)) is not None:
            return why
    return None


def _functions(system: System) -> Iterator[Any]:
    """The functions of a model, and all that they call by name."""
    pending: list[Any] = []
    for cls in dict.fromkeys(system.classes):
        pending.append(cls)
        for handler in cls.__plait_handlers__:
            pending += [handler.function, handler.where, handler.quorum, handler.accept, *handler.messages]
    pending += [prop.predicate for prop in system.properties]
    seen: set[int] = set()
    while pending:
        found = pending.pop()
        found = inspect.unwrap(found) if isinstance(found, FunctionType) else found
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, FunctionType):
            if found.__module__.startswith("plait.model.") or found.__module__.startswith("plait.kernel."):
                continue
            yield found
            pending += _named_by(found)
        elif any(found is asking for asking in _BUILT_IN) or (isinstance(found, ModuleType) and found in _MODULES):
            yield found
        elif isinstance(found, type):
            for base in found.__mro__:
                if base not in (Process, Message, object) and not base.__module__.startswith("plait.model."):
                    pending += [v for k, v in vars(base).items() if not k.startswith("__plait")]
                    if issubclass(base, Message):
                        pending += subclasses(base)
        elif isinstance(found, property):
            pending += [found.fget]
        elif isinstance(found, classmethod | staticmethod | MethodType):
            pending += [found.__func__]
        elif isinstance(found, functools.partial):
            pending += [found.func, *found.args, *found.keywords.values()]
        elif isinstance(found, functools.cached_property):
            pending += [found.func]


def _named_by(function: FunctionType) -> list[Any]:
    """What a function refers to."""
    found: list[Any] = list(function.__defaults__ or ())
    found += [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
    for code in _codes(function.__code__):
        for name in code.co_names:
            if name in function.__globals__:
                value = function.__globals__[name]
                found.append(value)
                if isinstance(value, ModuleType):
                    found += [getattr(value, other, None) for other in code.co_names]
    return found


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _suspect(function: Any) -> str | None:
    """Why a function could tell phases apart unnoticed."""
    if not isinstance(function, FunctionType):
        return f"the model uses {function.__name__}, which could tell a number from a phase"
    if function.__code__.co_filename.startswith("<"):  # made by dataclasses or NamedTuple
        return None
    for code in _codes(function.__code__):
        before = None
        for instruction in dis.get_instructions(code):
            glances = instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and instruction.argval in _ASKING
            if glances or instruction.argval in _INSIDE:
                return f"{function.__qualname__} uses {instruction.argval}, which could tell a number from a phase"
            if instruction.opname in _CATCHING:
                return f"{function.__qualname__} catches exceptions or matches classes"
            if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                return f"{function.__qualname__} changes the global variable {instruction.argval}"
            if instruction.opname == "IS_OP" and not (
                before is not None
                and before.opname == "LOAD_CONST"
                and any(before.argval is constant for constant in (None, True, False))
            ):
                return f"{function.__qualname__} compares with `is` something other than None, True and False"
            before = instruction
    return None
