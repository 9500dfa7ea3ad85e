"""The comparison of two checks of one system: natively where possible, and in CPython only."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from plait.check import api
from plait.check.options import Native
from plait.check.runner import Runner
from plait.kernel.errors import PlaitError
from plait.kernel.verdict import Statistics, Verdict
from plait.model.system import System

_OF_THE_RUN = dict.fromkeys(
    (
        "seconds",
        "python_calls",
        "native_answers",
        "native_compared",
        "memory_bytes",
        "table_bytes",
        "local_states",
        "local_bytes",
        "collision_probability",
    ),
    0,
)
"""What may differ: the time, who was asked how often, the size of tables (before a process recovers, its local state is
in a table of the native engine, too), and under how many keys values of properties are stored (natively, by parts)."""


class Checked(NamedTuple):
    """A check, apart from what may differ."""

    verdict: Verdict | None
    error: tuple[type[PlaitError], str] | None
    """The class and the text of a model error instead of a verdict."""
    fingerprints: frozenset[int]
    runner: Runner | None

    @property
    def compared(self) -> tuple[object, ...]:
        return self.verdict, self.error, self.fingerprints


@contextlib.contextmanager
def judged() -> Iterator[list[Runner]]:
    """The runners of the verdicts that are given meanwhile."""
    runners: list[Runner] = []
    judge = api.judge

    def noting(runner: Runner, *arguments: Any) -> Verdict:
        runners.append(runner)
        return judge(runner, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "judge", noting)
        yield runners


def checked(system: System, native: Native, **options: Any) -> Checked:
    """Check a system with one worker, so that every search finds the same run."""
    with judged() as runners:
        try:
            verdict = api.check(system, native=native, workers=1, **options)
        except PlaitError as error:
            message = re.sub(r"0x[0-9a-f]+", "0x…", str(error))  # the address of an object
            return Checked(None, (type(error), message), frozenset(), None)
    statistics: Statistics = msgspec.structs.replace(verdict.statistics, **_OF_THE_RUN)
    verdict = msgspec.structs.replace(verdict, statistics=statistics)
    return Checked(verdict, None, frozenset(runners[-1].engine.fingerprints()), runners[-1])


def compare(make: Callable[[], System], *, counts: bool = True, **options: Any) -> Checked:
    """Check twice, natively and in CPython: the same verdict, runs, warnings, errors and states. Returns the native check.

    `counts=False` is for searches that choose transitions by what properties have read so far (`por`, `dpor`). A property
    that runs natively by parts may read more or less before it is decided, so that other states are left out.
    """
    native, python = (checked(make(), how, **options) for how in ("auto", "off"))
    assert native.error == python.error
    if native.verdict is None or python.verdict is None:
        return native
    if not counts:
        mine, other = ({p.name: p.status for p in v.properties} for v in (native.verdict, python.verdict))
        assert mine == other
        return native
    for name in ("status", "property", "message", "trace"):
        assert getattr(native.verdict, name) == getattr(python.verdict, name), name
    if native.verdict.status == "violated" and not options.get("keep_going"):
        return native  # how much more a search does when it has found a violation depends on time
    for name in native.verdict.statistics.__struct_fields__:
        one, two = (getattr(verdict.statistics, name) for verdict in (native.verdict, python.verdict))
        assert one == two, name
    assert native.verdict.warnings == python.verdict.warnings
    assert native.verdict == python.verdict
    assert native.fingerprints == python.fingerprints
    return native


def share(checked: Checked) -> tuple[int, int]:
    """How many functions of the model run natively, of how many."""
    assert checked.runner is not None
    if checked.runner.native is None:
        return 0, 0
    functions = checked.runner.native.functions
    return sum(function.reason is None for function in functions), len(functions)
