"""Network assumptions: which messages of a round may be lost (Sequentialization, section 4.1 and Fig. 11).

The program asks an assumption for one process after another, in the order of Algorithm 1: which sets of the messages
that wait for this process may be lost? What an assumption must remember of the earlier processes of the round is a
*note*. The note travels with the turn.
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

from plait.kernel.errors import Argument, UsageError
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
        """Whether each message may be lost, so that a process does not have to react to a message."""
        return type(self) is Assumption

    def start(self, everyone: tuple[Pid, ...]) -> Note:
        """The note at the start of a round."""
        return None

    def losses(
        self, note: Note, me: Pid, senders: tuple[Pid, ...], everyone: tuple[Pid, ...]
    ) -> Iterator[tuple[Lost, Note]]:
        """The sets of senders whose messages to `me` may be lost, each with the note for the next process."""
        for lost in subsets(senders):
            yield lost, note

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class Deliver(Assumption):
    """Each process receives at least a number of messages, or all messages sent to it if these are fewer."""

    missing: Callable[[int], int] = lambda n: 0
    """The number of n processes whose messages may be lost."""

    def losses(
        self, note: Note, me: Pid, senders: tuple[Pid, ...], everyone: tuple[Pid, ...]
    ) -> Iterator[tuple[Lost, Note]]:
        least = len(everyone) - self.missing(len(everyone))
        for lost in subsets(senders, len(senders) - min(least, len(senders))):
            yield lost, note


@dataclasses.dataclass(frozen=True)
class Kernel(Assumption):
    """All processes hear one process; with `mutual`, it hears all, too. The note: which processes can still be it."""

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
"""The largest number of processes for which all cases of a predicate are tried."""


@dataclasses.dataclass(frozen=True)
class Custom(Assumption):
    """A user's predicate on which processes hear each other. The note: which processes the earlier processes hear."""

    predicate: Predicate = lambda hears: True

    def start(self, everyone: tuple[Pid, ...]) -> Note:
        if len(everyone) > _MOST:
            raise UsageError(
                f"{self.name}: {len(everyone)} processes are too many for a predicate",
                hint=f"a predicate is tried on all cases, for at most {_MOST} processes: use n-f, kernel or majority",
                placed=True,
            )
        if not self._possible(everyone, ()):
            raise UsageError(
                (Argument("assume", self.name), ": the predicate is always false"),
                hint="correct the predicate",
                placed=True,
            )
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
        """Whether the predicate can become true, depending on what the later processes hear."""
        if len(heard) == len(everyone):
            try:
                value = self.predicate({p: frozenset(h) for p, h in zip(everyone, heard, strict=True)})
            except Exception as error:
                raise UsageError(
                    (Argument("assume", self.name), f" raised {type(error).__name__}: {error}{user_line(error)}"),
                    hint="its argument is a mapping: hears[p] is the set of processes that p hears",
                    placed=True,
                ) from error
            if not isinstance(value, bool):
                raise UsageError(
                    (Argument("assume", self.name), f" returned {value!r}"),
                    hint="a predicate returns True or False",
                    placed=True,
                )
            return value
        rest = (tuple(p for p in everyone if p not in unheard) for unheard in subsets(everyone))
        return any(self._possible(everyone, (*heard, h)) for h in rest)


def subsets(items: Sequence[Pid], most: int | None = None) -> Iterator[Lost]:
    """All subsets up to a size, small ones first."""
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
        raise UsageError(
            (Argument("assume"), f": there is no network assumption {name!r}"), hint=f"give one of: {NAMES}"
        )
    return Custom(name, _predicate(name, module, function))


def _predicate(name: str, module: str, function: str) -> Predicate:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            (Argument("assume", name), f": {error}"),
            hint="give module:function, for example a function def two(hears): return …",
        ) from None
    if not callable(found):
        raise UsageError(
            (Argument("assume", name), f": {found!r} is not a function"),
            hint="give a function of one argument, hears: hears[p] is the set of processes that p hears",
        )
    return found  # type: ignore[no-any-return]
