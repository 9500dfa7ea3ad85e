"""A sample of the questions about a model, and what its code uses whose result may depend on the interpreter.

Changing the order of sets (`plait.check.tabulate.probe`) does not show what depends on hashes, on addresses, or on a set
that C code iterates without the protocol of iterators. If the code that answers the sampled questions uses such things,
`plait.check.hash_seeds` compares the sample with the answers of other interpreters. Code that is not known counts.
"""

from __future__ import annotations

import dis
import functools
import gc
import importlib.machinery
import sys
import sysconfig
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from plait.check.tabulate.probe import unpermuted

T = TypeVar("T")

_MOST = 2_000
"""The largest number of questions in a sample."""
_OURS = str(Path(__file__).parents[2])
_ZOO = str(Path(_OURS, "protocols"))
_LIBRARY = tuple({folder for kind in ("stdlib", "platstdlib") if (folder := sysconfig.get_path(kind))})
_PACKAGES = tuple({folder for kind in ("purelib", "platlib") if (folder := sysconfig.get_path(kind))})
_TRUSTED = """
abc array asyncio binascii bisect blake2 builtins cmath codecs collections contextvars csv datetime decimal errno
frozen_importlib functools hashlib heapq imp io itertools json locale math md5 nt operator plait posix queue random re
sha1 sha2 sha256 sha3 sha512 signal sre stat statistics string struct sys thread time typing unicodedata warnings
weakref zlib
"""
"""Modules whose C functions do not depend on the hash seed, on addresses or on the order of a set that they are given."""
_TRUSTED_MODULES = frozenset(_TRUSTED.split())
_BY_VALUE = ("hash", "id")
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME")
_DIRECT = ("LIST_EXTEND", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC")
"""Instructions that iterate a plain set without the protocol, from Python 3.13 on."""
_NO_SETS = (types.ModuleType, int, float, str, bytes)


class Question(NamedTuple):
    """A question, with the answer of this interpreter."""

    place: str
    """The code that answers it, for messages."""
    asked: tuple[Any, ...]
    answer: Any


class Sample:
    """The sample of one tabulation."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self.uses: dict[str, str] = {}
        """For each place, something that it uses and that may depend on the interpreter."""
        self._seen: dict[int | str, types.CodeType | None] = {}
        """Code objects by their address, and modules by name, that were looked at."""

    def takes(self, count: int) -> bool:
        """Whether the question number `count` to a piece of code belongs to the sample: 1, 2, 4, 8, and so on."""
        return count & (count - 1) == 0 and len(self.questions) < _MOST

    def record(self, place: str, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function, and record what its code uses."""
        if sys.getprofile() is not None:
            self._note(place, "code that a profiler hides")
            return function(*arguments)

        def profile(frame: types.FrameType, event: str, called: Any) -> None:
            if event == "call":
                code = frame.f_code
                if id(code) not in seen:  # its own hash takes long
                    seen[id(code)] = code
                    self._note(place, _used_by(code, frame.f_globals))
            elif event == "c_call" and not _is_ours(frame.f_code.co_filename):
                module = called.__module__ or _home(called)
                if module in seen:
                    return
                if module.split(".")[0].lstrip("_") in _TRUSTED_MODULES:
                    seen[module] = None
                else:
                    self._note(place, f"the C function {module}.{called.__name__}")

        seen, collects = self._seen, gc.isenabled()
        gc.disable()  # a collection would run code of others: their callbacks, and their finalizers
        sys.setprofile(profile)
        try:
            return function(*arguments)
        finally:
            sys.setprofile(None)
            if collects:
                gc.enable()

    def _note(self, place: str, what: str | None) -> None:
        if what is not None:
            known = self.uses.setdefault(place, what)
            if what.endswith("()") and not known.endswith("()"):
                self.uses[place] = what


def _home(method: Any) -> str:
    """The module of the class that defines a method of C."""
    owner, name = method.__self__, method.__name__
    kind = owner if isinstance(owner, type) else type(owner)
    classes = [*kind.__mro__, *type(kind).__mro__]  # type: ignore[misc]  # mypy takes the second for a property
    return str(next((c for c in classes if name in c.__dict__), kind).__module__)


def _is_ours(file: str) -> bool:
    """Whether code of this file is Plait's own, and not a model."""
    return file.startswith(_OURS) and not file.startswith(_ZOO)


def _used_by(code: types.CodeType, names: dict[str, Any]) -> str | None:
    """What this code uses that may depend on the interpreter."""
    file = code.co_filename
    if code.co_name == "__hash__":
        return None  # it decides about the order of sets only, which is changed anyway
    if _is_ours(file):
        return None
    if file.startswith(_LIBRARY) and not file.startswith(_PACKAGES):
        return None
    named = [names[name] for name in code.co_names if name in names]
    for name in _by_value(code):
        if name not in names:
            return f"{name}()"
    for value in named:
        if package := _compiled_package(value):
            return f"the package {package}"
    if ways := unpermuted(made=True):
        if "iter" in ways:
            return "sets, whose order Plait cannot change in this implementation of Python,"
        if ways & {*code.co_names}:
            return "a set in C code"
    ways = unpermuted()
    if ways and (code.co_freevars or not all(isinstance(v, _NO_SETS) or callable(v) for v in named)):
        called = ways & {*code.co_names} or ("repr" in ways and "str" in code.co_names)
        if called or any(i.opname in _DIRECT for i in dis.get_instructions(code)):
            return "a set in C code"
    return None


@functools.lru_cache(maxsize=10_000)
def _by_value(code: types.CodeType) -> tuple[str, ...]:
    """Those of `hash`, `id` and `__hash__` that this code uses (and not only attributes of these names)."""
    if not {"hash", "id", "__hash__"}.intersection(code.co_names):
        return ()
    used = [i.argval for i in dis.get_instructions(code) if i.opname in _LOADS and i.argval in _BY_VALUE]
    return (*used, *(["__hash__"] if "__hash__" in code.co_names else []))


def _compiled_package(value: Any) -> str | None:
    """The package that a value comes from, if parts of it are compiled and it is no part of Python."""
    module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    package = module.split(".")[0] if isinstance(module, str) else ""
    if not package or package in ("plait", "__main__") or package in sys.stdlib_module_names:
        return None
    return package if _is_compiled(package) else None


@functools.cache
def _is_compiled(package: str) -> bool:
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    parts = [m for name, m in list(sys.modules.items()) if name == package or name.startswith(f"{package}.")]
    return any((getattr(m, "__file__", None) or "").endswith(suffixes) for m in parts)
