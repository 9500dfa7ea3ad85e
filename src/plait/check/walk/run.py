"""Runs by keys: a run is the number of its initial state, and a key for each step.

A key is text that stays the same when the model is loaded again, so a link can have it: the handler and the process, and a
hash of the messages and choices. Runs are kept in a tree, by prefix: what two runs have in common is executed once.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence

import msgspec

from plait._native import Transition
from plait.check.explain.tracing import Tracer, begun, label, lane
from plait.check.runner import Runner
from plait.kernel.step import Step, steps_of
from plait.kernel.trace import Event, Sent, Trace
from plait.kernel.values import Data, exact, to_data
from plait.model.system import System

MOST_KEPT = 20_000
"""States of runs that are kept. With more, all are forgotten: they can be executed again."""


class Run(msgspec.Struct, frozen=True):
    """A run, by keys."""

    initial: int = 0
    steps: tuple[str, ...] = ()


class Missing(msgspec.Struct, frozen=True):
    """A step of a run that the model does not have."""

    step: int
    """Counted from 0."""
    reason: str


def step_key(step: Step) -> str:
    """The key of a step, apart from steps that look the same.

    >>> step_key(Step("Node0", "start"))
    'start@Node0'
    """
    place = f"{step.label}@{step.lane}"
    if step.kind == "crash":  # a crash does not choose the messages that it drops
        return place
    if not step.consumed and not step.choices:
        return place
    content = exact([sorted(exact(list(message)) for message in step.consumed), step.choices])
    digest = hashlib.blake2b(content.encode(), digest_size=3).digest()
    return f"{place}:{base64.urlsafe_b64encode(digest).decode()}"


def step_of(runner: Runner, transition: Transition) -> Step:
    """What a transition does, without its effects."""
    system, decode = runner.system, runner.tabulation.codec.decode
    consumed = []
    for _, sender, content in transition.consumed:
        data: dict[str, Data] = to_data(decode(content))
        fields = {name: value for name, value in data.items() if name != "#type"}
        consumed.append((runner.names[sender], data["#type"], fields))
    choices = [to_data(decode(choice)) for choice in transition.choices]
    kind = transition.kind
    return Step(lane(runner, transition), label(system, transition), kind, consumed, choices)  # type: ignore[arg-type]


def keyed(runner: Runner, state: Sequence[int], place: str | None = None) -> dict[str, Transition]:
    """The transitions out of a state by key; with a place (`handler@process`), only those of this handler.

    Those that look the same are numbered in the order of their fingerprints.
    """
    alike: dict[str, list[Transition]] = {}
    for transition in runner.engine.successors(state):
        if place is not None and f"{label(runner.system, transition)}@{lane(runner, transition)}" != place:
            continue
        alike.setdefault(step_key(step_of(runner, transition)), []).append(transition)
    found = {}
    for key, some in alike.items():
        some.sort(key=lambda transition: (transition.failure is not None, transition.fingerprint))
        for number, transition in enumerate(some, 1):
            found[key if number == 1 else f"{key}~{number}"] = transition
    return found


def keys_of(runner: Runner, start: Sequence[int], path: Sequence[Transition]) -> Iterator[str]:
    """The keys of transitions that follow each other."""
    state = start
    for transition in path:
        key = step_key(step_of(runner, transition))
        if transition.kind != "step":  # steps of the environment may look the same
            same = (t for t in keyed(runner, state).items() if t[0].partition("~")[0] == key)
            key = next((k for k, t in same if t.fingerprint == transition.fingerprint), key)
        yield key
        state = transition.state


class Stop:
    """A state of a run, and how it was reached."""

    def __init__(self, before: Stop | None, key: str, tracer: Tracer, event: Event | None, sent: list[Sent]) -> None:
        self.before, self.key, self.event, self.sent = before, key, event, sent
        self.state: Sequence[int] = tracer.state
        self.transition = tracer.taken[-1] if event is not None else None
        self.number: int = 0 if before is None else before.number + 1
        """How many steps lead here."""
        self.messages: int = len(sent) if before is None else before.messages + len(sent)
        self.pending = list(tracer.pending)
        if self.transition is None or self.failed:
            self.fingerprint = tracer.runner.engine.fingerprint(self.state)
        else:
            self.fingerprint = self.transition.fingerprint
        self.after: dict[str, Stop] = {}
        self.open: dict[str, object] = {}
        """What is known of properties of the run up to here, by name: what is open, or since when it is true."""

    def path(self) -> list[Stop]:
        """The states of the run, from the initial one."""
        found, stop = [self], self
        while stop.before is not None:
            stop = stop.before
            found.append(stop)
        return found[::-1]

    @property
    def failed(self) -> bool:
        """Whether the step to it failed. Then no step follows."""
        return self.transition is not None and self.transition.failure is not None


class Runs:
    """The runs of a model that were executed so far, as a tree."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self._kept = 0
        self._roots: dict[int, tuple[Stop, Tracer]] = {}

    def at(self, run: Run) -> tuple[Stop, Missing | None]:
        """The last state of a run; if the model does not have one of its steps, the state before this step, and why."""
        if self._kept > MOST_KEPT:
            self._roots, self._kept = {}, 0
        count = len(self.runner.initial)
        if run.initial >= count:
            return self._root(0)[0], Missing(0, f"the model has {count} initial states, not {run.initial + 1}")
        stop, root = self._root(run.initial)
        tracer: Tracer | None = None
        for number, key in enumerate(run.steps):
            known = stop.after.get(key)
            if known is not None:
                stop, tracer = known, None
                continue
            transition = None if stop.failed else keyed(self.runner, stop.state, _place(key)).get(key)
            if transition is None:
                possible = {} if stop.failed else keyed(self.runner, stop.state)
                return stop, Missing(number, _missing(self.runner.system, stop, key, possible))
            tracer = tracer or self.tracer(stop, root)
            stop = self._taken(stop, key, tracer, transition)
        return stop, None

    def tracer(self, stop: Stop, root: Tracer | None = None) -> Tracer:
        """A tracer at the end of a run, which can go on."""
        root = root or self._root_of(stop)
        messages = [message for one in stop.path() for message in one.sent]
        last = root.initial if stop.event is None else stop.event.state
        return root.resumed(stop.state, messages, stop.pending, last)

    def trace(self, stop: Stop, *, loop: int | None = None, drawn: bool = False) -> Trace:
        """A run as a Trace; with `drawn`, each state with what the views of the System draw."""
        tracer, path = self.tracer(stop), stop.path()
        tracer.visited = [list(one.state) for one in path]
        events = [one.event for one in path if one.event is not None]
        return tracer.trace(events, None, loop=loop, drawn=drawn)

    def _root_of(self, stop: Stop) -> Tracer:
        first = stop.path()[0]
        return next(tracer for root, tracer in self._roots.values() if root is first)

    def _root(self, number: int) -> tuple[Stop, Tracer]:
        if number not in self._roots:
            tracer = Tracer(self.runner, self.runner.initial[number][0])
            self._roots[number] = Stop(None, "", tracer, None, list(tracer.messages)), tracer
        return self._roots[number]

    def _taken(self, stop: Stop, key: str, tracer: Tracer, transition: Transition) -> Stop:
        event = tracer.step(transition)
        found = stop.after[key] = Stop(stop, key, tracer, event, tracer.messages[stop.messages :])
        self._kept += 1
        return found


def repeated(stop: Stop, wanted: int | None = None) -> int | None:
    """The number of steps before the loop of a run; None if its last state is no earlier state of the run.

    Several states of the run may be the last one. Then the loop is the one that is wanted, or else the shortest one.
    """
    if stop.failed:
        return None
    found = [one.number for one in stop.path()[:-1] if one.fingerprint == stop.fingerprint]
    return wanted if wanted in found else max(found, default=None)


def _place(key: str) -> str:
    """The handler and the process of a key."""
    return key.partition("~")[0].partition(":")[0]


def _missing(system: System, stop: Stop, key: str, possible: dict[str, Transition]) -> str:
    """Why a state has no step with this key."""
    place = _place(key)
    name, _, lane_ = place.rpartition("@")
    if stop.failed:
        return "the step before it fails"
    if any(_place(one) == place for one in possible):
        return f"{name} of {lane_} is possible, but with other messages or choices"
    lanes = {repr(pid): cls for pid, cls in zip(system.pids, system.classes, strict=True)}
    if lane_ in lanes and name in {handler.name for handler in lanes[lane_].__plait_handlers__}:
        return f"{name} of {lane_} is not possible here"
    return f"the model has no step {place!r}" if lane_ not in lanes else f"{lane_} has no handler {name!r}"


def run_of(runs: Runs, trace: Trace) -> Run:
    """The keys of a saved run, as far as this model has its steps."""
    start = begun(runs.runner, trace)
    initial = next((i for i, (state, _) in enumerate(runs.runner.initial) if state == start), 0)
    found = Run(initial)
    for step, event in zip(steps_of(trace), trace.events, strict=True):
        wanted, (stop, _) = step_key(step), runs.at(found)
        alike = [key for key in keyed(runs.runner, stop.state) if key.partition("~")[0] == wanted]
        after = [Run(initial, (*found.steps, key)) for key in alike]
        if len(after) > 1:
            bare = msgspec.structs.replace(event, state=msgspec.structs.replace(event.state, views=msgspec.UNSET))
            after.sort(key=lambda run: runs.at(run)[0].event != bare)
        if not after:
            break
        found = after[0]
    return found
