"""Network assumptions: which messages of a round may be lost (paper 002, section 4.1 and Fig. 11).

An assumption is asked process after process, in the order of Algorithm 1: of the senders whose messages wait for this
process, which sets may be lost? What it must remember of the earlier processes of the round is a *note* that travels with
the turn.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from plait.kernel.errors import UsageError
from plait.kernel.pid import Pid
from plait.kernel.places import user_line

Note = Any
Lost = frozenset[Pid]


@dataclasses.dataclass(frozen=True)
class Assumption:
    """No assumption: every message may be lost. The others restrict it."""

    name: str = "none"

    @property
    def free(self) -> bool:
        """Whether anything may be lost, so that a process need not react to what it hears."""
        return type(self) is Assumption

    def start(self, everyone: tuple[Pid, ...]) -> Note:
        """The note at the start of a round."""
        return None

    def losses(
        self, note: Note, me: Pid, senders: tuple[Pid, ...], everyone: tuple[Pid, ...]
    ) -> Iterator[tuple[Lost, Note]]:
        """The sets of senders whose messages to me may be lost, each with the note for the next process."""
        for lost in subsets(senders):
            yield lost, note

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class Deliver(Assumption):
    """Every process hears a number of messages at least, or all that were sent to it if they are fewer."""

    missing: Callable[[int], int] = lambda n: 0
    """How many of n processes may go unheard."""

    def losses(
        self, note: Note, me: Pid, senders: tuple[Pid, ...], everyone: tuple[Pid, ...]
    ) -> Iterator[tuple[Lost, Note]]:
        least = len(everyone) - self.missing(len(everyone))
        for lost in subsets(senders, len(senders) - min(least, len(senders))):
            yield lost, note


@dataclasses.dataclass(frozen=True)
class Kernel(Assumption):
    """Some process is heard by all; with `mutual`, it hears all too. The note is who may still be that process."""

    mutual: bool = True

    def start(self, everyone: tuple[Pid, ...]) -> Note:
        return everyone

    def losses(
        self, note: Note, me: Pid, senders: tuple[Pid, ...], everyone: tuple[Pid, ...]
    ) -> Iterator[tuple[Lost, Note]]:
        for lost in subsets(senders):
            left = tuple(k for k in note if k not in lost and not (self.mutual and k == me and lost))
            if left:
                yield lost, left


Predicate = Callable[[Mapping[Pid, frozenset[Pid]]], Any]
_MOST = 4
"""Above so many processes, who hears whom has too many cases to try them all."""


@dataclasses.dataclass(frozen=True)
class Custom(Assumption):
    """A predicate of the user's over who hears whom. The note is whom the earlier processes hear."""

    predicate: Predicate = lambda hears: True

    def start(self, everyone: tuple[Pid, ...]) -> Note:
        if len(everyone) > _MOST:
            raise UsageError(
                f"{self.name}: {len(everyone)} processes have too many ways to hear each other",
                hint=f"a predicate is tried on all of them, for at most {_MOST} processes: use n-f, kernel or majority",
                placed=True,
            )
        if not self._possible(everyone, ()):
            said = f"--assume {self.name} is false whoever hears whom"
            raise UsageError(said, hint="correct the predicate", placed=True)
        return ()

    def losses(
        self, note: Note, me: Pid, senders: tuple[Pid, ...], everyone: tuple[Pid, ...]
    ) -> Iterator[tuple[Lost, Note]]:
        for unheard in subsets(everyone):
            heard = tuple(p for p in everyone if p not in unheard)
            if self._possible(everyone, (*note, heard)):
                yield unheard & frozenset(senders), (*note, heard)

    @functools.cache  # noqa: B019 an assumption lives as long as its check
    def _possible(self, everyone: tuple[Pid, ...], heard: tuple[tuple[Pid, ...], ...]) -> bool:
        """Whether the processes that come later can hear others so that the predicate holds."""
        if len(heard) == len(everyone):
            try:
                value = self.predicate({p: frozenset(h) for p, h in zip(everyone, heard, strict=True)})
            except Exception as error:
                raise UsageError(
                    f"--assume {self.name} raised {type(error).__name__}: {error}{user_line(error)}",
                    hint="it gets a mapping: hears[p] is the set of the processes that p hears",
                    placed=True,
                ) from error
            if not isinstance(value, bool):
                said = f"--assume {self.name} returned {value!r}"
                raise UsageError(said, hint="a predicate returns True or False", placed=True)
            return value
        rest = (tuple(p for p in everyone if p not in unheard) for unheard in subsets(everyone))
        return any(self._possible(everyone, (*heard, h)) for h in rest)


def subsets(items: Sequence[Pid], most: int | None = None) -> Iterator[Lost]:
    """All subsets up to a size, the small ones first."""
    for size in range(min(len(items), len(items) if most is None else most) + 1):
        for chosen in itertools.combinations(items, size):
            yield frozenset(chosen)


def _minority(n: int) -> int:
    return (n - 1) // 2


NAMES = "none, reliable, n-f, n-1 (n-2, …), majority, common, kernel, or module:predicate"


def assumption(name: str, *, faults: int | None = None) -> Assumption:
    """The assumption of a name; `faults` is the f of n-f, by default the largest minority.

    >>> str(assumption("n-2")), assumption("none").free, assumption("reliable").free
    ('n-2', True, False)
    """
    if name == "none":
        return Assumption()
    if name == "reliable":
        return Deliver(name, lambda n: 0)
    if name == "n-f":
        return Deliver(name, _minority if faults is None else lambda n: faults)
    if match := re.fullmatch(r"n-(\d+)", name):
        missing = int(match[1])
        return Deliver(name, lambda n: missing)
    if name == "majority":
        return Deliver(name, _minority)
    if name in ("kernel", "common"):
        return Kernel(name, mutual=name == "kernel")
    module, colon, function = name.partition(":")
    if not colon:
        raise UsageError(f"there is no network assumption {name!r}", hint=f"choose one of: {NAMES}")
    return Custom(name, _predicate(name, module, function))


def _predicate(name: str, module: str, function: str) -> Predicate:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"--assume {name}: {error}",
            hint="give module:function, a function of who hears whom, like: def two(hears): return …",
        ) from None
    if not callable(found):
        raise UsageError(f"--assume {name}: {found!r} is no function", hint="give a function of who hears whom")
    return found  # type: ignore[no-any-return]
