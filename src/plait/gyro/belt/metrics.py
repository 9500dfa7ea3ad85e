"""Counters and latency histograms of a server, and their text for Prometheus."""

from __future__ import annotations

import bisect
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

_WINDOW = 10.0
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets of histograms, in seconds."""
CLASSES = ("read", "local", "global")


class Histogram:
    """How many durations are below each bound."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def observe(self, seconds: float) -> None:
        """Add a duration."""
        with self._lock:
            self._counts[bisect.bisect_left(BOUNDS, seconds)] += 1
            self._sum += seconds

    def samples(self, name: str, labels: str) -> Iterable[str]:
        """The samples for Prometheus: cumulative buckets, sum and count."""
        with self._lock:
            counts, total = list(self._counts), self._sum
        below = 0
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
            below += count
            yield f'{name}_bucket{{{labels},le="{bound}"}} {below}'
        yield f"{name}_sum{{{labels}}} {total:.17g}"
        yield f"{name}_count{{{labels}}} {below}"


class Metrics:
    """Counters and histograms since the start of the server."""

    def __init__(self) -> None:
        self.started = time.time()
        self.visits = 0
        self.issued = 0
        self.applied = 0
        self.failures = 0
        self.redirected = 0
        self.refused = 0
        self.limited = 0
        self.operations = dict.fromkeys(CLASSES, 0)
        self.errors = dict.fromkeys(CLASSES, 0)
        self.requests = {kind: Histogram() for kind in CLASSES}
        self.queued, self.append, self.commit, self.visit, self.round = (Histogram() for _ in range(5))
        self._arrived = self._before = 0.0
        """When the token arrived in this visit, and in the one before."""
        self._recent: deque[float] = deque()
        self._lock = threading.Lock()

    def done(self, kind: str, error: bool) -> None:
        """Count an executed operation."""
        now = time.monotonic()
        with self._lock:
            self.operations[kind] += 1
            self.errors[kind] += error
            self._recent.append(now)
            while self._recent and self._recent[0] < now - _WINDOW:
                self._recent.popleft()

    def arrive(self) -> None:
        """The token has arrived."""
        self._before, self._arrived = self._arrived, time.perf_counter()
        self.visits += 1
        if self._before:
            self.round.observe(self._arrived - self._before)

    def leave(self) -> None:
        """The visit has ended."""
        self.visit.observe(time.perf_counter() - self._arrived)

    def timed(self, step: Callable[[str], None]) -> Callable[[str], None]:
        """Measure the append to the log and the commit: each ends with a step, and begins with the step before."""
        ends = {"appended": self.append, "committed": self.commit}
        last = time.perf_counter()

        def measured(at: str) -> None:
            nonlocal last
            if at in ends:
                ends[at].observe(time.perf_counter() - last)
            step(at)
            last = time.perf_counter()

        return measured

    @property
    def throughput(self) -> float:
        """Operations per second in the last ten seconds."""
        now = time.monotonic()
        with self._lock:
            count = sum(t >= now - _WINDOW for t in self._recent)
        return count / min(_WINDOW, max(time.time() - self.started, 1.0))

    def text(self, server: int, gauges: dict[str, tuple[str, float]]) -> str:
        """All metrics in the text format of Prometheus. Gauges have a description and a value."""
        lines: list[str] = []
        mine = f'server="{server}"'

        def family(name: str, kind: str, about: str) -> str:
            lines.append(f"# HELP plait_gyro_{name} {about}")
            lines.append(f"# TYPE plait_gyro_{name} {kind}")
            return f"plait_gyro_{name}"

        for name, about, values in (
            ("operations_total", "Operations executed.", self.operations),
            ("errors_total", "Operations that raised an exception.", self.errors),
        ):
            full = family(name, "counter", about)
            lines += [f'{full}{{{mine},class="{label}"}} {value}' for label, value in values.items()]
        for name, about, value in (
            ("visits_total", "Visits of the token.", self.visits),
            ("tokens_issued_total", "Tokens issued by this server.", self.issued),
            ("updates_applied_total", "State updates applied from other servers.", self.applied),
            ("failures_total", "Failures of the DBMS.", self.failures),
            ("redirects_total", "Requests redirected to another server.", self.redirected),
            ("refused_total", "Requests refused because of bad input.", self.refused),
            ("limited_total", "Requests refused because there were too many.", self.limited),
        ):
            lines.append(f"{family(name, 'counter', about)}{{{mine}}} {value}")
        full = family("request_seconds", "histogram", "Duration of requests that succeeded, including waiting.")
        for label, histogram in self.requests.items():
            lines += histogram.samples(full, f'{mine},class="{label}"')
        for name, about, histogram in (
            ("queue_seconds", "Time that global operations wait for the token.", self.queued),
            ("log_append_seconds", "Duration of appends to the log.", self.append),
            ("commit_seconds", "Duration of commits after an append.", self.commit),
            ("visit_seconds", "Duration of visits of the token.", self.visit),
            ("round_seconds", "Time between two visits of the token.", self.round),
        ):
            lines += histogram.samples(family(name, "histogram", about), mine)
        for name, (about, gauge) in gauges.items():
            lines.append(f"{family(name, 'gauge', about)}{{{mine}}} {gauge:.17g}")
        return "\n".join(lines) + "\n"
