"""What all tests share."""

from __future__ import annotations

import gc
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings

pytest_plugins = ["pytester"]
pytest.register_assert_rewrite("tests.oracle", "tests.support")  # a failure there shows the values, too

COUNTER = '''
"""Counts to a limit."""

from plait import Process, System, action, always, reachable


class Counter(Process):
    """Counts."""

    limit: int
    number: int = 0

    @action(when=lambda self: self.number < self.limit)
    def tick(self):
        self.number += 1


def counter(limit: int = 3, most: int = 10) -> System:
    """A process that counts to a limit: limit + 1 states."""

    @always
    def small(s):
        """No number is above the most."""
        return all(c.number <= most for c in s[Counter])

    @reachable
    def end(s):
        """The limit is reached."""
        return any(c.number == limit for c in s[Counter])

    return System([Counter(limit=limit)], properties=[small, end])
'''


ROOT = Path(__file__).parents[1]
OURS = (str(ROOT / "src"), str(ROOT / "tests"), sys.prefix, sys.base_prefix)


@pytest.fixture(autouse=True)
def no_models_left() -> Iterator[None]:
    """Files of models that a test imports are forgotten after it: another test may have one of the same name."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and not file.startswith(OURS):
            del sys.modules[name]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def counter(workplace: Path) -> Path:
    """A model file with one parametrized model: it holds by default, and `most=1` breaks it in two steps."""
    file = workplace / "counter.py"
    file.write_text(COUNTER)
    return file


# The same examples each time, so that a red run means a change; `make fuzz` draws others, as many as the tests want.
# No example has a deadline: how long one takes depends on what else the machine does.
settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=5)
settings.register_profile("fuzz", deadline=None, print_blob=True)
MOST_EXAMPLES = {"quick": 5, "default": 25}
"""Limits for tests that say how many examples they want. The profile `fuzz` has none."""
settings.load_profile("default")


def pytest_configure() -> None:
    """Prepare the process.

    A shell ignores Ctrl-C for jobs in the background, and they hand that on: tests that interrupt commands need it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Thousands of tests and their modules stay until the end: the collector need not look at them again every moment.
    gc.set_threshold(20_000, 20, 20)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Limit the number of examples, as the profile says; begin with what takes longest."""
    most = MOST_EXAMPLES.get(config.getoption("--hypothesis-profile") or "default")
    for item in items:
        test = getattr(item, "obj", None)
        if most is not None and is_hypothesis_test(test):
            # Hypothesis has no public way to change the settings of a test that has its own.
            own = test._hypothesis_internal_use_settings  # type: ignore[union-attr]
            test._hypothesis_internal_use_settings = settings(own, max_examples=min(most, own.max_examples))  # type: ignore[union-attr]
    if config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        items.sort(key=_takes_longest)


def _takes_longest(item: pytest.Item) -> tuple[bool, bool]:
    """Slow tests with random examples go first, then the other slow ones: short ones at the end keep all workers busy."""
    return item.get_closest_marker("slow") is None, not is_hypothesis_test(getattr(item, "obj", None))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line that says what was left out, and why."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.getreports("skipped"):
        if isinstance(report.longrepr, tuple):
            reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1
    if reasons:
        parts = "; ".join(f"{count} because {reason}" for reason, count in sorted(reasons.items()))
        terminalreporter.write_line(f"left out: {reasons.total()} tests: {parts}")
