"""Answers about the model and about runs, as the viewer asks them."""

from __future__ import annotations

import functools
import inspect
import os
from typing import Any

import msgspec

from plait.check.explain.pictures import pictures
from plait.check.explain.tracing import chosen
from plait.check.live.search import flattened
from plait.check.runner import Runner
from plait.check.walk.disabled import Disabled, DisabledHandlers
from plait.check.walk.enabled import Enabled, enabled
from plait.check.walk.expression import Expression
from plait.check.walk.lines import Lines, executed_lines, lines_of
from plait.check.walk.run import Missing, Run, Runs, Stop, repeated
from plait.explore.differences import Difference, differences
from plait.explore.requests import RunBody, WalkBody
from plait.explore.statuses import PropertyStatus, statuses
from plait.kernel.errors import PlaitError
from plait.kernel.trace import Lane, Picture, Snapshot, Trace
from plait.kernel.values import Data, text, to_data
from plait.model.properties import Property
from plait.model.system import System
from plait.model.temporal import Temporal
from plait.report.viewer import sparse

_KEPT_EXPRESSIONS = 200
_PICTURE_SECONDS = 2.0
"""For the pictures of a state: less than a request may take, so that the rest of the answer arrives."""
_INITIALS = 200
"""Initial states that are described."""


class HandlerText(msgspec.Struct, frozen=True):
    """A handler, and where it is."""

    role: str
    name: str
    kind: str
    file: str
    line: int
    source: str


class PropertyText(msgspec.Struct, frozen=True):
    """A property as the user wrote it."""

    name: str
    kind: str
    text: str


class ErrorText(msgspec.Struct, frozen=True):
    """An error as on the command line."""

    message: str
    hint: str | None


class ModelText(msgspec.Struct, frozen=True):
    """A model, or why it does not load."""

    target: str
    name: str = ""
    parameters: dict[str, Data] = {}
    roles: list[str] = []
    lanes: list[Lane] = []
    handlers: list[HandlerText] = []
    properties: list[PropertyText] = []
    initial: int = 0
    initials: list[str] = []
    views: bool = False
    error: ErrorText | None = None


class Watch(msgspec.Struct, frozen=True):
    """The value of an expression, or why it has none."""

    text: str
    value: Data = None
    error: str | None = None


class Walked(msgspec.Struct, frozen=True):
    """The last state of a run."""

    trace: dict[str, Any]
    """As in a report: each state as its changes to the state before (`plait.report.viewer.sparse`)."""
    valid: int
    """The number of steps that the model has."""
    gone: Missing | None
    state: Snapshot
    terminal: bool
    enabled: list[Enabled]
    disabled: list[Disabled]
    properties: list[PropertyStatus]
    watches: list[Watch]
    source: list[Lines]
    differences: list[Difference]
    views: dict[str, Picture] = {}
    """What the views of the model draw of it."""


class Walker:
    """One model, and the runs of it that were asked about."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.runner = Runner(flattened(system, system.properties), native="auto")
        self.runs = Runs(self.runner)
        self._disabled = DisabledHandlers(self.runner)
        self._expression = functools.lru_cache(_KEPT_EXPRESSIONS)(self._lowered)

    def model(self) -> ModelText:
        """The model."""
        system, runner = self.system, self.runner
        return ModelText(
            target=system.target or system.name,
            name=system.name,
            parameters={name: to_data(value) for name, value in system.parameters.items()},
            roles=[cls.__name__ for cls in dict.fromkeys(system.classes)],
            lanes=self.runs.tracer(self.runs.at(Run())[0]).lanes,
            handlers=[_handler(cls.__name__, handler) for cls, handler in system.handlers()],
            properties=[PropertyText(prop.name, prop.kind, _property_text(prop)) for prop in system.properties],
            initial=len(runner.initial),
            views=bool(system.views),
            initials=[_initial(runner, number) for _, number in runner.initial[:_INITIALS]],
        )

    def walk(self, asked: WalkBody) -> Walked:
        """The last state of a run."""
        stop, gone = self.runs.at(asked.run.run())
        whole = self.runs.trace(stop, loop=repeated(stop, asked.run.loop))
        possible = enabled(self.runner, stop)
        last = stop.event.state if stop.event is not None else whole.initial
        return Walked(
            trace=_later(whole, stop, min(asked.have, stop.number)),
            valid=stop.number,
            gone=gone,
            state=last,
            terminal=stop.failed or self.runner.is_terminal(stop.state),
            enabled=possible,
            disabled=[] if stop.failed else self._disabled.others(stop.state, {(e.lane, e.label) for e in possible}),
            properties=statuses(self.runner, self.system, stop),
            watches=[self._watch(one, stop) for one in asked.watches],
            source=self._source(stop),
            differences=self._differences(whole, last, stop, asked),
            views=pictures(self.runner, [stop.state], _PICTURE_SECONDS)[0] if self.system.views else {},
        )

    def trace(self, asked: RunBody, *, drawn: bool = False) -> Trace:
        """A run, as far as the model has it; with `drawn`, with pictures."""
        stop, _ = self.runs.at(asked.run())
        return self.runs.trace(stop, loop=repeated(stop, asked.loop), drawn=drawn)

    def _watch(self, text_: str, stop: Stop) -> Watch:
        try:
            return Watch(text_, self._expression(text_).value(self.runner, stop.state))
        except PlaitError as error:
            return Watch(text_, error=error.message)

    def _lowered(self, text_: str) -> Expression:
        return Expression(self.runner.system, self.runner.tabulation, text_)

    def _source(self, stop: Stop) -> list[Lines]:
        if stop.before is None or stop.transition is None:
            return []
        return [_local(lines) for lines in executed_lines(self.runner, stop.before.state, stop.transition)]

    def _differences(self, whole: Trace, last: Snapshot, stop: Stop, asked: WalkBody) -> list[Difference]:
        messages = {message.id: message for message in whole.messages}
        if asked.compare is not None:
            other = self.runs.at(asked.compare.run())[0]
            trace = self.runs.trace(other)
            state = other.event.state if other.event is not None else trace.initial
            return differences(state, last, {message.id: message for message in trace.messages}, messages)
        if stop.before is None:
            return []
        before = stop.before.event.state if stop.before.event is not None else whole.initial
        return differences(before, last, messages)


def _later(trace: Trace, stop: Stop, have: int) -> dict[str, Any]:
    """A trace without its first events, and without the messages that were sent before."""
    messages = trace.messages[stop.path()[have].messages :] if have else trace.messages
    return sparse(trace, have) | {"messages": messages}


def _handler(role: str, handler: Any) -> HandlerText:
    lines = lines_of(handler.function, handler.name)
    if lines is None:
        return HandlerText(role, handler.name, handler.kind, "", 0, "")
    return HandlerText(role, handler.name, handler.kind, local_file(lines.file), lines.first, "\n".join(lines.lines))


def _local(lines: Lines) -> Lines:
    return msgspec.structs.replace(lines, file=local_file(lines.file))


def local_file(file: str) -> str:
    """A file as people write it: seen from the current folder if it is there."""
    try:
        near = os.path.relpath(file)
    except ValueError:
        return file
    return file if near.startswith("..") else near


def _property_text(prop: Property) -> str:
    if isinstance(prop, Temporal):
        return prop.doc or str(prop.formula)
    if prop.doc:
        return prop.doc
    try:
        return inspect.getsource(inspect.unwrap(prop.function)).strip()
    except (OSError, TypeError):
        return ""


def _initial(runner: Runner, number: int) -> str:
    made = chosen(runner, number).items()
    return "; ".join(f"{lane} chooses {', '.join(map(text, choices))}" for lane, choices in made if choices)
