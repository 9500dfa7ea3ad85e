"""Random small systems that combine what other generators have one by one.

That is shared state, guards over sets of messages, clocks with urgent steps and drift, values of Python's library, several
initial states, a bound, and channels with a capacity.
"""

from __future__ import annotations

import types
from collections import Counter, deque
from typing import Any, NamedTuple

from hypothesis import strategies as st

from plait import Clock, Process, System, action, at_least, field, on
from tests.oracle import bounded_systems, shared_systems
from tests.oracle.explorer import Exploration


class Timing(NamedTuple):
    bound: int
    drift: int
    urgent: tuple[bool, bool]  # the action, the handler of a set of messages
    least: int
    """The smallest count of the clock for which they run."""


class Spec(NamedTuple):
    shared: shared_systems.Spec
    timing: Timing
    bounds: bounded_systems.Bounds


def timed(cls: type[Process], timing: Timing) -> type[Process]:
    """The class with a clock, and with fields whose values are of Python's library."""

    def late(self: Any) -> None:
        self.clock.reset()
        self.kept = Counter({self.store.bump(timing.bound): 1})
        self.recent.append(self.store.a)

    def collect(self: Any, ms: Any) -> None:
        self.clock.reset()
        self.recent.extend(m.value for m in ms)
        self.x = self.kept[self.store.b] + len(self.recent) % 2

    def is_late(self: Any, *_: Any) -> bool:
        return bool(self.clock >= timing.least)

    def enough(self: Any, ms: Any) -> bool:
        return len({m.value for m in ms}) > self.store.b % 2

    body: dict[str, Any] = {
        "__module__": __name__,
        "__annotations__": {"clock": Clock, "kept": Counter, "recent": deque},
        "clock": Clock(bound=timing.bound),
        "kept": field(default_factory=Counter),
        "recent": field(default_factory=lambda: deque(maxlen=1)),
        "late": action(late, when=lambda self: is_late(self) and self.store.a != 1, urgent=timing.urgent[0]),  # type: ignore[call-overload]
        "collect": on(
            shared_systems.Note,
            where=is_late,
            quorum=at_least(1),
            accept=enough,
            distinct=False,
            urgent=timing.urgent[1],
        )(collect),
    }
    return types.new_class(cls.__name__, (cls,), {}, lambda namespace: namespace.update(body))


def build(spec: Spec) -> System:
    """The system of a spec; the same every time."""
    made = shared_systems.build(spec.shared, worker=lambda cls: timed(cls, spec.timing), drift=spec.timing.drift)
    return bounded_systems.bounded(made, spec.bounds)


def specs(symmetric: bool = False) -> st.SearchStrategy[Spec]:
    bounds = bounded_systems.bounds(bounded_systems.SYMMETRIC)
    timing = st.builds(
        Timing,
        bound=st.just(1),
        drift=st.sampled_from((0, 0, 1)),
        urgent=st.tuples(st.booleans(), st.booleans()),
        least=st.integers(0, 1),
    )
    shared = shared_systems.specs(symmetric).map(
        lambda s: shared_systems.without_spawns(s._replace(workers=2, helper=()))
    )
    return st.builds(Spec, shared, timing, bounds.map(lambda b: b._replace(some=False) if symmetric else b))


def explored_systems(limit: int, symmetric: bool = False) -> st.SearchStrategy[tuple[System, Exploration]]:
    """Systems of at most `limit` states, with what the oracle found."""

    def explored(spec: Spec) -> tuple[System, Exploration] | None:
        return bounded_systems.measured(build(spec), limit)

    return specs(symmetric).map(explored).filter(bool)  # type: ignore[arg-type]
