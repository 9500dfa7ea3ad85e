"""Faults that a user defines in Python. A file has two functions, and may name an action:

ACTION = "set"                     # xor (default), or, clear, set, add, divide

def fits(site, thread):            # which sites: a plait.epa.instrumentation.table.Site, the name of a thread
    return site.op == "load" and site.function == "distance"

def value(site, random):           # the VALUE of the action
    return random.choice([0, 1, 2**31 - 1])
"""

from __future__ import annotations

import random
import runpy
from pathlib import Path
from typing import Any

from plait.epa.faults import ACTIONS, MODELS, Model
from plait.epa.instrumentation.table import Site
from plait.kernel.errors import UsageError

_ALL = (1 << 64) - 1


def model(kind: str) -> Model:
    """The type of fault of a name: a known type, or a file that ends in .py."""
    if kind in MODELS:
        return MODELS[kind]
    if not kind.endswith(".py"):
        raise UsageError(
            f"{kind} is not a type of fault", hint=f"the types are {', '.join(MODELS)}, or a file such as my_faults.py"
        )
    try:
        content: dict[str, Any] = runpy.run_path(str(Path(kind)))
    except Exception as error:
        raise UsageError(f"{kind} cannot be used: {error}", hint="the file is run as Python; check it") from None
    action = content.get("ACTION", "xor")
    fits, value = content.get("fits"), content.get("value")
    if action not in ACTIONS or not callable(fits) or not callable(value):
        raise UsageError(
            f"{kind} does not define a type of fault",
            hint=f"it needs fits(site, thread) and value(site, random); ACTION is one of {', '.join(ACTIONS)}",
        )

    def fitting(site: Site, thread: str) -> bool:
        return site.bits > 0 and bool(_called(kind, fits, site, thread))

    def drawn(site: Site, random_: random.Random) -> int:
        found = _called(kind, value, site, random_)
        if not isinstance(found, int):
            raise UsageError(f"{kind}: value returned {found!r}, not an integer", hint="return an int")
        return found & (_ALL if action == "add" else (1 << site.bits) - 1)

    return Model(content.get("__doc__") or kind, action, fitting, drawn)


def _called(kind: str, function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        name = getattr(function, "__name__", "a function")
        raise UsageError(f"{kind}: {name} failed: {error!r}", hint="check the function") from None
