"""The pytest plugin: a model in a test file is collected as one test per property.

Mark a test function that returns a System:

    @pytest.mark.plait(search="dfs", max_states=1_000_000)
    def test_paxos() -> System:
        return paxos(acceptors=3)

    @pytest.mark.plait
    @pytest.mark.parametrize("nodes", [2, 3])
    def test_ring(nodes: int) -> System: ...

Or give a System at the top level of the module a name that pytest collects, or mark the whole module:

    test_token = System([...])

    pytestmark = pytest.mark.plait(workers=1)   # all Systems here, and all test functions annotated -> System

The mark takes the options of `plait.check` by name (`plait.check.options.Options` lists them), except keep_going. On
the command line, --plait-workers and --plait-timeout replace those of all marks, and --plait-html writes reports. A
model is checked once, and each property becomes a test: `test_paxos[agreement]`. The test of a violated property
fails with the counterexample and the command that replays it. The test of an inconclusive property fails with the
limit that was reached.

Every pytest run in an environment with Plait loads this module. So it imports plait only when it is used.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest._code.code import ExceptionInfo, TerminalRepr

    from plait.check.options import Options
    from plait.kernel.verdict import PropertyResult, Verdict
    from plait.model.system import System

_COVERAGE = "plait coverage"
"""The property of a test report that has the coverage of its model."""


class PlaitWarning(UserWarning):
    """A warning about a model that does not fail a property."""


class PropertyFailedError(Exception):
    """A property does not hold. The text is the report for the user."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options that replace those of the marks."""
    group = parser.getgroup("plait", "models that are checked by Plait")
    group.addoption("--plait-workers", metavar="N", help="number of threads that search each model")
    group.addoption("--plait-timeout", metavar="TIME", help="stop each model after this time (90, 2m)")
    group.addoption(
        "--plait-html", metavar="FOLDER", type=Path, help="write an HTML report of each model to this folder"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line(
        "markers",
        "plait(search=, workers=, max_states=, timeout=, properties=, …): check the System that this test function "
        "returns, one test per property. On a module: every System in it. It takes the options of plait.check by name.",
    )


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> Generator[None, Any, Any]:
    """Replace each marked test function by one test per property. Collect Systems at the top level of modules."""
    found = yield
    if found is None:
        return _system_items(collector, name, obj)
    if not isinstance(found, list):
        return found
    items: list[Any] = []
    for item in found:
        items += _function_items(item) if _is_model_test(item) else [item]
    return items


def _is_model_test(item: object) -> bool:
    if not isinstance(item, pytest.Function) or item.get_closest_marker("plait") is None:
        return False
    if any(mark.name == "plait" for mark in item.own_markers):
        return True
    # The mark is on the module or the class, which may have ordinary tests too.
    from plait.model.loading.loader import returns_system

    return returns_system(item.obj)


def _function_items(item: pytest.Function) -> list[pytest.Item]:
    callspec = getattr(item, "callspec", None)
    parameters = dict(callspec.params) if callspec is not None else {}
    return _items(item, item.name, lambda: _build(item, parameters))


def _build(item: pytest.Function, parameters: Mapping[str, Any]) -> System:
    from plait.kernel.errors import UsageError
    from plait.model.loading.loader import ModelFunction

    if item.cls is not None:
        raise UsageError(
            f"{item.nodeid} is a method, which plait replay cannot load",
            hint="make it a function at the top level of the module",
        )
    missing = [
        name
        for name, p in inspect.signature(item.obj).parameters.items()
        if name not in parameters and p.default is p.empty
    ]
    if missing:
        raise UsageError(
            f"{item.name} has the parameter {missing[0]!r}, but models cannot use fixtures",
            hint=f'write @pytest.mark.parametrize("{missing[0]}", […]), or give it a default',
        )
    return ModelFunction(_target(item.path, item.originalname), item.obj).build(parameters, parse=False)


def _system_items(collector: pytest.Module | pytest.Class, name: str, obj: object) -> list[pytest.Item] | None:
    module = sys.modules.get("plait.model.system")
    if module is None or not isinstance(obj, module.System) or not isinstance(collector, pytest.Module):
        return None
    marked = collector.get_closest_marker("plait") is not None and not name.startswith("_")
    if not marked and not collector.funcnamefilter(name):
        return None

    def build() -> System:
        obj.target = _target(collector.path, name)
        if obj.name == "system":
            obj.name = name
        return obj  # type: ignore[no-any-return]

    return _items(collector, name, build)


def _target(path: Path, name: str) -> str:
    """The target of `plait check` for this model, relative to the folder in which pytest was started."""
    return f"{os.path.relpath(path)}:{name}"


def _items(source: pytest.Function | pytest.Module, name: str, build: Callable[[], System]) -> list[pytest.Item]:
    """One item for each property of the model. A single item if the model has no properties or cannot be built."""
    from plait.kernel.errors import PlaitError

    parent = source if isinstance(source, pytest.Module) else source.parent
    assert parent is not None
    model = Model(name, source.path)
    names: list[str | None] = [None]
    try:
        model.options = _options(source)
        model.system = build()
        names = list(model.selected()) or [None]
    except PlaitError as error:
        model.error = error
    items: list[pytest.Item] = []
    for number, property_name in enumerate(names):
        item = PropertyItem.from_parent(parent, name=_item_name(name, property_name))
        item.model, item.property_name, item.first = model, property_name, number == 0
        if isinstance(source, pytest.Function):
            item.own_markers.extend(source.own_markers)
            item.keywords.update({mark.name: mark for mark in source.own_markers})
            item.obj = source.obj
        items.append(item)
    return items


def _item_name(name: str, property_name: str | None) -> str:
    if property_name is None:
        return name
    return f"{name[:-1]}-{property_name}]" if name.endswith("]") else f"{name}[{property_name}]"


def _options(source: pytest.Item | pytest.Collector) -> Options:
    """The options of all marks; the closest mark wins. They are checked when tests are collected."""
    from plait.check.options import options_from
    from plait.kernel.errors import PlaitError, UsageError

    given: dict[str, Any] = {}
    for mark in reversed(list(source.iter_markers("plait"))):  # the closest one last
        for name in (*map(repr, mark.args), *(name for name in mark.kwargs if name == "keep_going")):
            raise UsageError(
                f"{source.nodeid}: pytest.mark.plait has no option {name}",
                hint="it takes the options of plait.check by name, without keep_going: all properties are decided",
            )
        given |= mark.kwargs
    given |= _command_line(source.config)
    try:
        return options_from({**given, "keep_going": True}, caller="pytest.mark.plait")
    except PlaitError as error:
        raise error.at(source.nodeid) from None


def _command_line(config: pytest.Config) -> dict[str, Any]:
    """The options of the command line, read as `plait check` reads them."""
    from plait.cli.options import count, seconds
    from plait.kernel.errors import UsageError

    found: dict[str, Any] = {}
    for name, read in (("workers", count), ("timeout", seconds)):
        text = config.getoption(f"--plait-{name}")
        if text is not None:
            try:
                found[name] = read(text)
            except ValueError as error:
                raise UsageError(f"--plait-{name} {text}", hint=str(error)) from None
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the coverage of models whose mark asks for it."""
    reports = [r for kind in terminalreporter.stats.values() for r in kind if isinstance(r, pytest.TestReport)]
    found = {text: None for report in reports for name, text in report.user_properties if name == _COVERAGE}
    for text in found:
        terminalreporter.section("coverage of a model")
        terminalreporter.write_line(str(text))


class Model:
    """What the tests of one System share. The System is checked once, when the first test runs."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.options: Options | None = None
        self.system: System | None = None
        self.error: Exception | None = None
        self._verdict: Verdict | None = None

    def selected(self) -> list[str]:
        """The names of the properties to check."""
        from plait.model.system import selected

        assert self.system is not None
        assert self.options is not None
        return [p.name for p in selected(self.system, self.options.properties)]

    @property
    def verdict(self) -> Verdict:
        if self.error is not None:
            raise self.error
        if self._verdict is None:
            from plait.check.api import check

            assert self.system is not None
            try:
                verdict = check(self.system, self.options)
            except Exception as error:
                self.error = error
                raise
            if verdict.bound == "interrupted":
                raise KeyboardInterrupt
            self._verdict = verdict
        return self._verdict


class PropertyItem(pytest.Item):
    """One property of one System."""

    model: Model
    property_name: str | None = None
    first = False
    obj: Callable[..., Any] | None = None

    def runtest(self) -> None:
        verdict = self.model.verdict
        if self.first:
            self._write(verdict)
        warned = verdict.warnings if self.first else []
        failure = self._failure(verdict)
        if failure is not None:
            raise PropertyFailedError("\n".join([failure, *(f"warning: {text}" for text in warned)]))
        for text in warned:
            warnings.warn(PlaitWarning(f"{self.model.name}: {text}"), stacklevel=1)

    def _failure(self, verdict: Verdict) -> str | None:
        """Why the test fails, as text; None if it does not."""
        results = {p.name: p for p in verdict.properties}
        result = results.get(self.property_name or "")
        if result is None or result.status == "holds":
            # A failure that is not of a property (an assertion in a handler) fails every test of the model.
            known = self.model.selected()
            result = next((p for p in verdict.properties if p.name not in known and p.status != "holds"), result)
        failed = (verdict if result is None else result).status != "holds"
        return self._explain(verdict, result) if failed else None

    def _write(self, verdict: Verdict) -> None:
        """The HTML report and the coverage, if they are wanted. A test report carries the coverage to the summary."""
        from plait.cli.output import file_name
        from plait.kernel.errors import UsageError

        if verdict.coverage is not None:
            from plait.report.text import coverage_text

            self.user_properties.append((_COVERAGE, f"{self.model.name}\n{coverage_text(verdict)}"))
        folder = self.config.getoption("--plait-html")
        if folder is not None:
            from plait.report.html import report

            file = folder / f"{file_name(self.model.path.stem, self.model.name)}.html"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                file.write_text(report(verdict), encoding="utf-8")
            except OSError as error:
                raise UsageError(
                    f"--plait-html: {file} cannot be written: {error.strerror}", hint="choose another folder"
                ) from None

    def _explain(self, verdict: Verdict, result: PropertyResult | None) -> str:
        from plait.cli.output import default_trace_path, file_name, ready
        from plait.kernel.errors import PlaitError
        from plait.kernel.verdict import VACUOUS
        from plait.report.itf import save_trace
        from plait.report.text import LONG, trace_text
        from plait.report.wording import length_text, stopped

        name = result.name if result is not None else verdict.property
        status = result.status if result is not None else verdict.status
        lines = [f"property {name} is {status}" if name else f"the verdict is {status}"]
        if result is not None and result.note:
            lines.append(result.note)
        if verdict.message and (result is None or verdict.property == name):
            lines.append(verdict.message)
        if status == "inconclusive":
            why = f" ({stopped(verdict.bound)})" if verdict.bound else ""
            lines += (
                ["hint: give the model properties and steps, or only explore it: pytest.mark.plait(explore=True)"]
                if verdict.bound in VACUOUS
                else [f"the search is not complete{why}", "hint: raise the limit in pytest.mark.plait"]
            )
        trace = result.trace if result is not None and result.trace is not None else None
        if trace is None and verdict.property == name:
            trace = verdict.trace
        if status == "violated" and trace is not None:
            path = default_trace_path(file_name(self.model.path.stem, self.model.name), name or "counterexample")
            abridged = self.config.get_verbosity() < 2
            lines += ["", trace_text(trace, verdict, width=100, abridged=abridged), ""]
            if len(trace) > LONG:
                lines.append(f"{lines[0]} ({length_text(trace)})")
            try:
                save_trace(trace, ready(path))
                lines.append(f"replay: plait replay {path}")
            except (OSError, PlaitError) as error:
                lines.append(f"the counterexample could not be saved: {error}")
        return "\n".join(lines)

    def repr_failure(self, excinfo: ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        """The counterexample, or the error and its hint, without a traceback of Plait."""
        error = excinfo.value
        if isinstance(error, PropertyFailedError | PlaitWarning):
            return self._report(str(error))
        from plait.kernel.errors import PlaitError

        if isinstance(error, PlaitError):
            return self._report(f"error: {error}")
        return super().repr_failure(excinfo, style)

    def _report(self, text: str) -> TerminalRepr:
        """A report whose line in the summary is the first line: pytest does not shorten that line in CI."""
        from _pytest._code.code import ReprExceptionInfo, ReprFileLocation, ReprTracebackNative

        place = ReprFileLocation(str(self.path), (self.reportinfo()[1] or 0) + 1, text.partition("\n")[0])
        return ReprExceptionInfo(ReprTracebackNative([text + "\n"]), place)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        line = inspect.getsourcelines(self.obj)[1] - 1 if self.obj is not None else None
        return self.path, line, self.name
