"""Functions that run after the import of a module, so that nothing is imported which the application does not use."""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


def after_import(hooks: Mapping[str, Callable[[], None]]) -> None:
    """Run each hook after the import of its module, or now if it is imported."""
    left = dict(hooks)
    for name in [n for n in hooks if n in sys.modules]:
        left.pop(name)()
    sys.meta_path.insert(0, _Finder(left))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, hooks: dict[str, Callable[[], None]]) -> None:
        self._hooks = hooks

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> Any:
        """Find a module that has a hook, with the other finders."""
        if name not in self._hooks:
            return None
        hook = self._hooks.pop(name)
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module = _hooked(spec.loader.exec_module, hook)  # type: ignore[method-assign, assignment]
                return spec
        return None


def _hooked(execute: Callable[[ModuleType], None], hook: Callable[[], None]) -> Callable[[ModuleType], None]:
    def both(module: ModuleType) -> None:
        execute(module)
        hook()

    return both
