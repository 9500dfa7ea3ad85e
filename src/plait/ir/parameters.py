"""The parameters of functions and of constructors."""

from __future__ import annotations

import functools
import types
from typing import NamedTuple

from plait.ir.scope import Kind

Supplied = tuple[str, Kind | None]
"""A parameter that a call gives, and what is known about its value."""


class Parameters(NamedTuple):
    """The parameters of a function, by name."""

    positional: tuple[str, ...]
    keywords: frozenset[str]
    """Those that a call may give by name."""
    required: tuple[str, ...]
    """Those without a default."""
    vararg: str | None = None
    kwarg: bool = False


@functools.lru_cache(maxsize=4096)
def parameters_of(function: types.FunctionType) -> Parameters:
    """The parameters of a function."""
    code = function.__code__
    names = code.co_varnames
    positional = names[: code.co_argcount]
    only_named = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    defaults = function.__defaults__ or ()
    required = positional[: len(positional) - len(defaults)]
    required += tuple(n for n in only_named if n not in (function.__kwdefaults__ or {}))
    at = code.co_argcount + code.co_kwonlyargcount
    vararg = names[at] if code.co_flags & 0x04 else None
    keywords = frozenset((*positional[code.co_posonlyargcount :], *only_named))
    return Parameters(positional, keywords, required, vararg, bool(code.co_flags & 0x08))


def defaults_of(function: types.FunctionType) -> dict[str, object]:
    """The default values of parameters; of `*args`, the empty tuple."""
    parameters = parameters_of(function)
    defaults = function.__defaults__ or ()
    last = parameters.positional[len(parameters.positional) - len(defaults) :]
    found: dict[str, object] = dict(zip(last, defaults, strict=True))
    found |= function.__kwdefaults__ or {}
    if parameters.vararg is not None:
        found[parameters.vararg] = ()
    return found
