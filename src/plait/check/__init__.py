"""Explicit-state checking: tabulation, searches, replay.

`plait.check` is the function that users call, and this room has the same name. Importing a module of the room puts the
room in the function's place, so the room can be called too: it hands over to `plait.check.api.check`.
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
