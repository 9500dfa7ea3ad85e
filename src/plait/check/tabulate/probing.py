"""Probing: while a probe runs, every function of the user's that it reaches has the code of its twin.

`plait.check.tabulate.reach` finds the functions that the source names. A twin also passes each function that it is about
to call to `_callee`. So a function that comes out of a table, of `getattr` or of a library is found when it is called.

The code is swapped in place, and swapped back after the probe. So it does not matter how a function is called: as a
method, a property, an operator, or by a library. Other threads of the user's that call such a function meanwhile see
sets in another order, which Python allows. No other question is answered while a probe runs (`alone`).
"""

from __future__ import annotations

import builtins
import functools
import threading
import types
from collections.abc import Callable
from typing import Any

from plait.check.tabulate import rewriting
from plait.check.tabulate.probe import probe
from plait.check.tabulate.reach import CACHED, Reach, is_users_class, is_users_file
from plait.model.system import System

alone = threading.RLock()
"""Held while a question about a model is answered: a probe changes functions that two Systems may share."""
_KEEPING = {"setattr", "id", "__build_class__"}
"""Built-in functions that do not iterate their arguments."""
_FILLING = {"extend", "extendleft", "update", "fromkeys", "join", "writelines"}
"""Methods that iterate their argument, and do not keep it."""
_DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)
_CALLBACKS = (types.FunctionType, types.MethodType, functools.partial)
_active: Probe | None = None


class Probe:
    """A context in which what is reached from some roots has the code of its twins. It can be entered many times."""

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self._outer: Probe | None = None
        self._caches: dict[Any, Any] = {}
        self.foreign: set[types.FunctionType] = set()
        """Functions without a twin that were called: of Plait, of the standard library, or without source."""

    def __enter__(self) -> None:
        global _active
        alone.acquire()
        self._outer, _active = _active, self
        self._caches.clear()
        for function, (_, twin) in self.reach.code.items():
            function.__code__ = twin

    def __exit__(self, *error: object) -> None:
        global _active
        try:
            for function, (code, _) in self.reach.code.items():
                function.__code__ = code
            _active = self._outer
            for function, (_, twin) in _active.reach.code.items() if _active else ():
                function.__code__ = twin
        finally:
            alone.release()

    def meet(self, *found: Any) -> None:
        """A function or a class that was not reached so far, and is used now."""
        known = len(self.reach.code)
        self.reach.add(*found)
        for function, (_, twin) in list(self.reach.code.items())[known:]:
            function.__code__ = twin

    def fresh(self, cached: Any) -> Any:
        """A function with an empty cache: the cached results come from runs that were no probes."""
        if cached not in self._caches:
            self._caches[cached] = functools.cache(cached.__wrapped__)
            self.meet(cached)
        return self._caches[cached]


class Probes:
    """The probes of one System."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._made: dict[Any, Probe] = {}
        self._classes: list[type] | None = None

    def of(self, root: Any, cls: type | None = None) -> Probe:
        """The probe of a function: of a handler, a guard, a property or `observe`; `cls` is the class of its object."""
        found = self._made.get((root, cls))
        if found is None:
            roots = [root]
            if (
                isinstance(root, types.FunctionType)
                and not is_users_file(root.__code__.co_filename)
                and cls is not None
            ):
                roots += [
                    vars(base) for base in cls.__mro__ if is_users_class(base)
                ]  # it runs the handlers of the user
            classes = [*self.classes, *([cls] if cls else [])]
            found = self._made[root, cls] = Probe(Reach(*roots, candidates=classes))
        return found

    @property
    def classes(self) -> list[type]:
        """The classes of values that the functions of the System may meet: those that its modules name."""
        if self._classes is None:
            spaces: dict[int, dict[str, Any]] = {}
            functions: list[Any] = [p.predicate for p in self._system.properties]
            functions += [value for m in self._system.monitors for value in vars(type(m)).values()]
            functions += [f for c in dict.fromkeys(self._system.classes) for b in c.__mro__ for f in vars(b).values()]
            for function in functions:
                if isinstance(function, types.FunctionType) and is_users_file(function.__code__.co_filename):
                    spaces[id(function.__globals__)] = function.__globals__
            named = [value for space in spaces.values() for value in space.values() if isinstance(value, type)]
            held = [type(v) for p in self._system.processes for v in vars(p).values()]
            self._classes = [cls for cls in dict.fromkeys([*named, *held]) if is_users_class(cls)]
        return self._classes


# -- what a twin calls ---------------------------------------------------------------------------------------------


def _callee(function: Any) -> Any:
    """What a twin calls instead of a function: the function itself, after it has been given its twin, as a rule."""
    here, kind = _active, type(function)
    if here is None:
        return function
    if kind is types.FunctionType:
        if function in here.reach.code:
            return function
        if function not in here.foreign:
            here.meet(function)
            if function in here.reach.code:
                return function
            here.foreign.add(function)
        return function if _is_ours(function) else functools.partial(_with_probes, function)
    if kind is types.MethodType:
        inner = function.__func__
        if type(inner) is CACHED:
            return types.MethodType(here.fresh(inner), function.__self__)
        if inner not in here.reach.code and inner not in here.foreign:
            here.meet(function)
            here.foreign.update({inner} - here.reach.code.keys())
        return function
    if isinstance(function, type):
        if not is_users_class(function):
            return function if function.__module__.startswith("plait") else functools.partial(_with_probes, function)
        if not here.reach.classes.get(function):
            here.meet(function)
        return function
    if kind is CACHED:
        return here.fresh(function)
    if kind is types.BuiltinFunctionType:
        return _builtin(function)
    if kind in _DESCRIPTORS:
        return functools.partial(_with_probes, function) if function.__name__ in _FILLING else function
    here.meet(function)
    return function


def _is_ours(function: types.FunctionType) -> bool:
    return str(function.__module__).startswith("plait.")


def _builtin(function: Any) -> Any:
    owner, name = function.__self__, function.__name__
    kind = type(owner)
    if kind is set and name == "pop":
        return functools.partial(_popped, owner)
    if kind in (set, frozenset):
        return functools.partial(_as_probe, function)
    stores = name in _KEEPING if isinstance(owner, types.ModuleType | str | bytes | type) else name not in _FILLING
    return function if stores else functools.partial(_with_probes, function)


def _popped(plain: set[Any]) -> Any:
    last = list(plain)[-1] if plain else None
    plain.remove(last) if plain else plain.pop()
    return last


def _as_probe(function: Callable[..., Any], /, *arguments: Any) -> Any:
    return probe(function(*arguments))


def _with_probes(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    """Call a function that has no twin: it gets probes instead of plain sets, and the functions it gets have twins."""
    for value in (*arguments, *named.values()):
        if type(value) in _CALLBACKS and _active is not None:
            _active.meet(value)
    return function(*map(probe, arguments), **named)


setattr(builtins, rewriting.VALUE, probe)
setattr(builtins, rewriting.CALLEE, _callee)
