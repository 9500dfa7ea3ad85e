"""The options of a search: name, default, meaning and accepted values of each, written once.

`check()`, the command line, the pytest mark and the native engine all take `Options`. The text below a field is its help on
the command line. An `Options` is checked when it is made: a value that does not fit is a UsageError.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict, get_args, get_origin, get_type_hints

from plait.kernel.errors import Argument, UsageError

Search = Literal["bfs", "dfs", "random", "stateless"]
ReductionName = Literal["decomposition", "por", "symmetry", "dpor"]
Inference = Literal["auto", "declared"]
Split = Literal["none", "reply", "quorum", "combined"]
Seeds = Literal["fewest", "instance"]
History = Literal["none", "last"]
Native = Literal["auto", "off", "only"]
Fingerprint = Literal["auto", 64, 96, 128]

STATELESS_DEPTH = 10_000
"""A search without a visited set follows a cycle forever. So it ends at this depth if there is no `max_depth`."""
_MEMORY_SHARE = 0.85


@dataclasses.dataclass(frozen=True)
class Number:
    """A number that is at least `least`. `unit` says how people write it on the command line."""

    least: int = 0
    unit: Literal["count", "seconds", "bytes"] = "count"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a search. All fields have defaults; `check(system, search="dfs")` changes one of them.

    >>> Options(search="dfs", max_states=1_000).workers is None
    True
    """

    properties: Sequence[str] | None = None
    """Check only this property. Repeat the option for several properties."""
    search: Search = "bfs"
    """bfs finds a shortest counterexample, dfs needs less memory, random is for state spaces that are too large, stateless \
stores no states."""
    workers: Annotated[int | None, Number(1)] = None
    """Number of threads that search. By default one per processor."""
    max_states: Annotated[int | None, Number(1)] = None
    """Stop after this many distinct states. Numbers may be written 1_000_000, 1e6, 10k or 10M."""
    max_depth: Annotated[int | None, Number()] = None
    """Search only runs of at most this many steps."""
    timeout: Annotated[float | None, Number(unit="seconds")] = None
    """Stop after this many seconds; 2m and 1h are understood."""
    memory: Annotated[int | None, Number(1, unit="bytes")] = None
    """Stop before the process uses more memory than this: 500M, 4G. By default most of the machine's memory."""
    seed: Annotated[int, Number()] = 0
    """Seed of the random walks; the same seed gives the same walks."""
    walks: Annotated[int, Number(1)] = 10_000
    """Number of random walks."""
    keep_going: bool = False
    """Continue after a violation, until every property has its verdict."""
    reduce: str | Sequence[str] = "none"
    """Reductions, separated by commas: decomposition, por, symmetry; dpor for the stateless search; auto, or none."""
    decomposition: Inference = "auto"
    """Which fields are auxiliary: those that Plait proves to be, too (auto), or only those declared with aux(…)."""
    split: Split = "reply"
    """How por divides transitions into classes by the senders of the consumed messages."""
    seeds: Seeds = "fewest"
    """Where the stubborn sets of por start: at the first instance, or where the fewest processes are enough."""
    history: History = "none"
    """Make the messages that each process consumed last part of the state, as the tool of DBSS does."""
    spos: bool = True
    """Depth-first searches keep states with a single successor off the stack (selective push-on-stack)."""
    explore: bool = False
    """Explore the states only. Without this, a model without properties or steps is inconclusive."""
    raw: bool = False
    """Show counterexamples as they were found: all steps, in that order."""
    native: Native = "auto"
    """Run the model as native code where possible (auto), never (off), or refuse a model with a function that needs Python \
(only; Python still answers single questions, such as a step that raises an exception, and a warning counts them)."""
    fingerprint: Fingerprint = "auto"
    """Bits of the fingerprint by which a state is remembered. auto: 64, and in large searches with bfs 96, so that the \
probability of a missed state stays below one in a million."""
    coverage: bool = False
    """Report which handlers, branches, messages and fields were exercised, and which properties hold vacuously."""

    def __post_init__(self) -> None:
        for name, accepts in _accepted().items():
            value = getattr(self, name)
            expected = accepts(value)
            if expected is not None:
                raise UsageError((Argument(name, value), " is not valid"), hint=expected)
        for name in ("properties", "reduce"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                object.__setattr__(self, name, tuple(value))
        self.reductions  # noqa: B018 - names of reductions are checked at once, too

    @property
    def reductions(self) -> tuple[frozenset[str], bool]:
        """The names of the reductions to apply, and whether to apply only those that suit (`auto`)."""
        names = self.reduce.split(",") if isinstance(self.reduce, str) else self.reduce
        names = [name.strip() for name in names if name.strip()]
        known = get_args(ReductionName)
        if names == ["auto"]:
            return frozenset(known), True
        if names == ["none"] or (not names and not isinstance(self.reduce, str)):
            return frozenset(), False
        for name in names or [""]:
            if name in ("auto", "none"):
                raise UsageError(
                    (Argument("reduce", ",".join(names)), f": {name} cannot be combined with other names"),
                    hint=f"give {name} without other names",
                )
            if name not in known:
                close = difflib.get_close_matches(name.lower(), known, n=1)
                every = f"give any of {', '.join(known)}, separated by commas; or auto, or none"
                raise UsageError(
                    (Argument("reduce", name), ": there is no such reduction"),
                    hint=f"did you mean {close[0]}?" if close else every,
                )
        return frozenset(names), False

    def completed(self) -> Options:
        """The same options, with the values that depend on this machine and on the search filled in."""
        depth = STATELESS_DEPTH if self.search == "stateless" else None
        return dataclasses.replace(
            self,
            workers=self.workers or os.cpu_count() or 1,
            max_depth=self.max_depth if self.max_depth is not None else depth,
            memory=self.memory if self.memory is not None else _most_memory(),
        )


class Changes(TypedDict, total=False):
    """The options of a search as keyword arguments: for each field of `Options` its type (a test compares the two)."""

    properties: Sequence[str] | None
    search: Search
    workers: int | None
    max_states: int | None
    max_depth: int | None
    timeout: float | None
    memory: int | None
    seed: int
    walks: int
    keep_going: bool
    reduce: str | Sequence[str]
    decomposition: Inference
    split: Split
    seeds: Seeds
    history: History
    spos: bool
    explore: bool
    raw: bool
    native: Native
    fingerprint: Fingerprint
    coverage: bool


def options_from(changes: Mapping[str, Any], start: Options | None = None, caller: str = "check()") -> Options:
    """Options with some of them changed. An unknown name is a UsageError of `caller`.

    >>> options_from({"search": "dfs"}).search
    'dfs'
    """
    known = [field.name for field in dataclasses.fields(Options)]
    for name in changes:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise UsageError(
                f"{caller} has no option {name}",
                hint=(f"did you mean {close[0]}? " if close else "") + f"its options are: {', '.join(known)}",
            )
    if start is not None and not isinstance(start, Options):
        raise UsageError(
            (Argument("options", start), " is not an Options"), hint="give Options(…), or keyword arguments"
        )
    return dataclasses.replace(start or Options(), **changes)


@functools.cache
def _accepted() -> dict[str, Any]:
    """For each option a function: None if a value fits, else a text with the values that are expected."""
    return {name: _accepts(hint) for name, hint in get_type_hints(Options, include_extras=True).items()}


def _accepts(hint: Any) -> Any:
    if get_origin(hint) is Literal:
        choices = get_args(hint)
        expected = f"choose one of: {', '.join(map(str, choices))}"
        return lambda value: None if any(value == one and type(value) is type(one) for one in choices) else expected
    if get_origin(hint) is Annotated:
        kinds, number = get_args(hint)[:2]
        return functools.partial(_number, optional=type(None) in get_args(kinds), number=number)
    if hint is bool:
        return lambda value: None if isinstance(value, bool) else "give True or False"
    return functools.partial(_names, optional=type(None) in get_args(hint), text=str in get_args(hint))


def _number(value: object, *, optional: bool, number: Number) -> str | None:
    kinds = int | float if number.unit == "seconds" else int
    if value is None and optional:
        return None
    if isinstance(value, kinds) and not isinstance(value, bool) and number.least <= value < 2**63:
        return None
    return f"give a {'' if number.unit == 'seconds' else 'whole '}number, {number.least} or more"


def _names(value: object, *, optional: bool, text: bool) -> str | None:
    if (value is None and optional) or (isinstance(value, str) and text):
        return None
    if isinstance(value, list | tuple | set | frozenset) and all(isinstance(name, str) for name in value):
        return None
    return 'give names, as in ["one", "another"]' + (' or "one,another"' if text else "")


def _most_memory() -> int | None:
    """Most of the machine's memory. A search that reaches this limit ends with a verdict, and is not killed."""
    try:
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _MEMORY_SHARE)
    except (ValueError, OSError, AttributeError):
        return None
