"""Explicit-state checking: search all states of a System for violations of its properties.

In: a System (`plait.model`) and the options of a search. Out: a Verdict, with a Trace if a property is violated. Open
`api.py` first: it has `check`. `runner.py` connects a System and the native engine. `hash_seeds.py`
compares answers with those of other interpreters. The folders are the stages:
`tabulate/` answers the engine's questions, `source/` reads the text of handlers, `reduce/` chooses reductions, `live/`
checks temporal properties, `explain/` makes traces, `cover/` measures coverage.

`plait.check` is the function that users call, and this room has the same name. An import of a module of the room
replaces the function by the room. So the room is callable too: it calls `plait.check.api.check`.
"""

from __future__ import annotations

import sys
import types
from typing import Any


class _CallableRoom(types.ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Any:
        from plait.check.api import check

        return check(*args, **options)


sys.modules[__name__].__class__ = _CallableRoom
