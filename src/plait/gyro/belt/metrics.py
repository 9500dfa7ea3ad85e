"""Counters of a server, and their text for Prometheus."""

from __future__ import annotations

import threading
import time
from collections import deque

_WINDOW = 10.0


class Metrics:
    """Counters since the start of the server."""

    def __init__(self) -> None:
        self.started = time.time()
        self.visits = 0
        self.issued = 0
        self.applied = 0
        self.failures = 0
        self.redirected = 0
        self.refused = 0
        self.operations = {"local": 0, "global": 0}
        self.errors = {"local": 0, "global": 0}
        self.seconds = {"local": 0.0, "global": 0.0}
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

    def took(self, kind: str, seconds: float) -> None:
        """Add the duration of a request, including waiting."""
        with self._lock:
            self.seconds[kind] += seconds

    @property
    def throughput(self) -> float:
        """Operations per second in the last ten seconds."""
        now = time.monotonic()
        with self._lock:
            count = sum(t >= now - _WINDOW for t in self._recent)
        return count / min(_WINDOW, max(time.time() - self.started, 1.0))

    def text(self, server: int, gauges: dict[str, float]) -> str:
        """All counters in the text format of Prometheus."""
        lines: list[str] = []

        def family(name: str, kind: str, about: str, values: dict[str, float]) -> None:
            lines.append(f"# HELP plait_gyro_{name} {about}")
            lines.append(f"# TYPE plait_gyro_{name} {kind}")
            for label, value in values.items():
                extra = f',class="{label}"' if label else ""
                lines.append(f'plait_gyro_{name}{{server="{server}"{extra}}} {value:.17g}')

        family("operations_total", "counter", "Operations executed.", {k: float(v) for k, v in self.operations.items()})
        family(
            "errors_total",
            "counter",
            "Operations that raised an exception.",
            {k: float(v) for k, v in self.errors.items()},
        )
        family("seconds_total", "counter", "Duration of requests, including waiting.", self.seconds)
        for name, about, value in (
            ("visits_total", "Visits of the token.", self.visits),
            ("tokens_issued_total", "Tokens issued by this server.", self.issued),
            ("updates_applied_total", "State updates applied from other servers.", self.applied),
            ("failures_total", "Failures of the DBMS.", self.failures),
            ("redirects_total", "Requests redirected to another server.", self.redirected),
            ("refused_total", "Requests refused because of bad input.", self.refused),
        ):
            family(name, "counter", about, {"": float(value)})
        for name, gauge in gauges.items():
            family(name, "gauge", name.replace("_", " ").capitalize() + ".", {"": gauge})
        return "\n".join(lines) + "\n"
