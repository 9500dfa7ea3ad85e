"""The Python side of the engine: run one step, one guard, one observation, one property.

The native engine calls each method once per distinct input and stores the answer. So these methods run a few thousand
times in a search of millions of states. Values cross the border as canonical bytes (`plait._native.Codec`). Decoding
makes new objects: a handler cannot keep or leak a reference into another state.

Every step runs twice, the second time as a probe (`plait.check.tabulate.probe`). A difference is a model error:
the handler is not a function of its local state, the consumed messages and its choices.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from threading import get_ident
from typing import Any

from plait._native import Failure
from plait.check.cover.recorder import Recorder
from plait.check.reduce.asymmetry import Asymmetry
from plait.check.source.clocks import clock_bounds
from plait.check.tabulate.codec import (
    CRASHED,
    DOWN,
    UNBORN,
    UP,
    declared_values,
    explained,
    failed,
    kind_of,
    require_users,
    without_clock,
)
from plait.check.tabulate.evaluation import Evaluation
from plait.check.tabulate.guards import Guards, Takes, watched, watched_message
from plait.check.tabulate.probe import turns
from plait.check.tabulate.sample import Question
from plait.check.tabulate.steprun import Branches, NoSlotError, Outcome, StepRun
from plait.kernel.errors import ModelError, PlaitError
from plait.kernel.places import text_of
from plait.kernel.values import text, to_data
from plait.model.clock import Clock
from plait.model.message import Message
from plait.model.monitor import Monitor
from plait.model.process import Handler, Process
from plait.model.system import Cell, System

_FEW_OUTCOMES = 1_000
"""A step with more outcomes runs only twice: it has shown enough results that may differ."""
_MOST_CHOICES = 50_000
"""More outcomes of one step are an error, because no limit of the search is checked while they are tabulated."""


class Tabulation(Evaluation, Asymmetry):
    """Answers the questions of the native engine about one System.

    A message is passed together with the position of its sender.
    """

    def __init__(self, system: System, recorder: Recorder | None = None) -> None:
        super().__init__(system, recorder)
        self.bounds = clock_bounds(system)
        if system.ticking:
            self.codec.learn(Clock)
        self.interrupt = self.model_codec.interrupt
        self.handlers: list[tuple[Handler, ...]] = [c.__plait_handlers__ for c in system.classes]
        if recorder is not None:
            self.handlers = [tuple(recorder.handler(c, h) for h in c.__plait_handlers__) for c in system.classes]
        self._guards = Guards(self.model_codec, self.handlers, self.order, self.sample, recorder)
        self.handlers_for = self._guards.handlers_for
        self.sent: set[tuple[type[Message], type[Process]]] = set()
        """Types of messages, and the classes of their receivers."""
        self.starts: list[list[Outcome]] = []
        """For each process the outcomes of its @init methods, once the engine has asked for them."""
        self._observations_of: dict[str, int] = {}
        self._steps_of: dict[tuple[type[Process], str], int] = {}
        self._largest = 0
        """The size of the largest set that the last step iterated."""

    def foresee(self, wanted: bool) -> None:
        """Whether `armed` leaves out handlers that no message can trigger."""
        self._guards.foresee = wanted

    # -- questions of the engine -------------------------------------------------------------------------------------

    @property
    def cells_read(self) -> int:
        """The shared fields that the last answer depends on, as bits. The engine sets it to zero before a question."""
        return self.model_codec.cells.seen

    @cells_read.setter
    def cells_read(self, seen: int) -> None:
        self.model_codec.cells.seen = seen

    def initial(self) -> tuple[list[list[Outcome]], list[bytes]]:
        """For each process (and cell) the outcomes of its @init methods, and the states of the monitors before these run.

        The engine combines the outcomes: each combination is an initial state.
        """
        system = self.system
        self.starts = [self._started(index) for index in range(len(system.processes))]
        unborn = Outcome(bytes([UNBORN]), [], [], [], [], [], None)
        spare = [[unborn] for _ in system.classes[len(system.processes) :]]
        cells = [[unborn._replace(local=self._initial_cell(cell))] for cell in system.cells]
        return [*self.starts, *spare, *cells], [self._named(m, f"monitor {type(m).__name__}") for m in system.monitors]

    def _started(self, index: int) -> list[Outcome]:
        """What the @init methods of a process do, one after the other, for each combination of their choices."""
        process = self.system.processes[index]
        local = bytes([UP]) + self._named(process, repr(process.id))
        found = [Outcome(local, [], [], [], [], [], None)]
        for number, handler in enumerate(self.handlers[index]):
            if handler.kind != "init":
                continue
            after = []
            for before in found:
                for outcome in self.run(index, before.local, number, []):
                    self._refuse(index, number, outcome)
                    self._require_room(before.sends + outcome.sends, self.where(index, number))
                    after.append(
                        outcome._replace(
                            sends=before.sends + outcome.sends,
                            events=before.events + outcome.events,
                            choices=before.choices + outcome.choices,
                        )
                    )
                if len(after) > _MOST_CHOICES:
                    raise ModelError(
                        f"the @init methods of {process.id!r} have more than {_MOST_CHOICES:,} combinations of choices",
                        hint="choose less before the first step: let an action choose",
                    )
            found = after
        return found

    def _refuse(self, index: int, number: int, outcome: Outcome) -> None:
        """Refuse an @init method that fails or spawns: before the initial state there is no run to show."""
        if outcome.failure is not None and outcome.failure.exception is not None:
            raise ModelError(outcome.failure.message, hint=outcome.failure.hint)
        if outcome.failure or outcome.spawns:
            raise ModelError(
                f"{self.where(index, number)}: an @init method must not spawn or fail",
                hint="make it an @action whose guard reads a field",
            )

    def _initial_cell(self, cell: Cell) -> bytes:
        shared = next(shared for shared in self.system.shared if shared.__dict__["_id"] == cell.shared)
        return self._cell(self.model_codec.encode(shared.__dict__[cell.name], str(cell)))

    def _cell(self, content: bytes) -> bytes:
        """The local state of a cell."""
        return self.codec.joined([bytes([UP]), content])

    def chosen(self, combination: int) -> dict[int, list[bytes]]:
        """For each process whose @init methods choose, what they choose in a combination, which the engine numbers."""
        found: dict[int, list[bytes]] = {}
        for index in reversed(range(len(self.starts))):
            combination, digit = divmod(combination, len(self.starts[index]))
            if self.starts[index][digit].choices:
                found[index] = self.starts[index][digit].choices
        return dict(reversed(found.items()))

    def armed(self, index: int, local: bytes, only: int | None = None) -> list[Takes]:
        """Handlers that may run in this local state (of all, or of one), and how many messages each takes."""
        return self._guards.armed(index, local, only)

    def guards(
        self, index: int, local: bytes, questions: Sequence[tuple[int, tuple[int, bytes]]]
    ) -> list[bytes | Failure | None]:
        """For each handler and message, None if its guard is false here, else the value of its `same` fields."""
        return self._guards.guards(index, local, questions)

    def accepts(
        self, index: int, local: bytes, number: int, sets: Sequence[Sequence[tuple[int, bytes]]]
    ) -> list[bool | Failure]:
        """For each set of messages that a handler may take, what its guard over the whole set says."""
        return self._guards.accepts(index, local, number, sets)

    def step(self, index: int, local: bytes, number: int, messages: Sequence[tuple[int, bytes]]) -> list[Outcome]:
        """The outcomes of a handler, one per combination of its choices."""
        return self.run(index, local, number, messages)

    def run(self, index: int, local: bytes, number: int, messages: Sequence[tuple[int, bytes]]) -> list[Outcome]:
        """Run a handler on every combination of its choices, and check that it is a function."""
        failure = self._guards.failure(index, number, local, messages)
        if failure is not None:  # its guard raised an exception
            return [Outcome(self.model_codec.without_cells(index, local), [], [], [], [], [], failure)]
        key = (self.system.classes[index], self.handlers[index][number].name)
        count = self._steps_of.get(key, 0) + 1
        if self.sample.takes(count):
            where = self.where(index, number)
            outcomes = self.sample.record(where, self._explore, index, local, number, messages)
            self.sample.questions.append(Question(where, ("step", index, local, number, [*messages]), outcomes))
        else:
            outcomes = self._explore(index, local, number, messages)
        self._steps_of[key] = count
        for turn in turns(count, self._largest, least=1) if len(outcomes) <= _FEW_OUTCOMES else [count]:
            again = self.order.permuted(turn, self._explore, index, local, number, messages, True)
            if [comparable(o) for o in again] != [comparable(o) for o in outcomes]:
                raise self.difference(index, number, outcomes, again)
        if self.recorder is not None:
            taken = [self.model_codec.message(sender, content) for sender, content in messages]
            read = set().union(*self._noted(index, local, number, messages)[1])
            self.recorder.ran(key, (index, local, number, tuple(messages)), taken, read)
        return outcomes

    def crash(self, index: int, local: bytes, recovers: bool) -> bytes:
        """The local state after a crash: all fields stay visible, or (with recovery) the volatile ones are reset."""
        if not recovers:
            return bytes([CRASHED]) + local[1:]
        fields = self.model_codec.process(index, local).__dict__
        fields |= self.volatile(index)
        names = self.system.classes[index].__plait_fields__
        return self.model_codec.local(
            DOWN, tuple(fields[name] for name in names), names, f"{self.system.pids[index]} after a crash"
        )

    def volatile(self, index: int) -> dict[str, Any]:
        """The fields that a crash resets, with their first values (for a spawned process: its class's defaults)."""
        cls = self.system.classes[index]
        if index < len(self.system.processes):
            start = {name: self.system.processes[index].__dict__[name] for name in cls.__plait_fields__}
        else:
            start = {}
            for field in dataclasses.fields(cls):  # type: ignore[arg-type]
                if field.default is not dataclasses.MISSING:
                    start[field.name] = field.default
                elif field.default_factory is not dataclasses.MISSING:
                    start[field.name] = field.default_factory()
        volatile = {name: value for name, value in start.items() if name not in cls.__plait_durable__}
        return volatile | self._bounded(cls, volatile)

    def _bounded(self, cls: type[Process], fields: dict[str, Any]) -> dict[str, Any]:
        """Clocks like those among the fields, with their bounds."""
        bounds = self.bounds.get(cls, {})
        undeclared = [name for name in bounds if name in fields and not fields[name]._is_declared]
        return {name: fields[name]._fresh(bounds[name]) for name in undeclared}

    def tick(self, index: int, local: bytes) -> bytes:
        """The local state after a tick. While a process is down, only its durable clocks run."""
        cls = self.system.classes[index]
        if local[0] in (CRASHED, UNBORN):
            return local
        fields = self.model_codec.process(index, local).__dict__
        for name in cls.__plait_clocks__ if local[0] == UP else cls.__plait_clocks__ & cls.__plait_durable__:
            fields[name]._tick()
        names = cls.__plait_fields__
        return self.model_codec.local(
            local[0], tuple(fields[name] for name in names), names, f"{self.system.pids[index]} after a tick"
        )

    def recover(self, index: int, local: bytes) -> list[Outcome]:
        """The outcomes of a process that recovers from a crash."""
        back = bytes([UP]) + local[1:]
        for number, handler in enumerate(self.handlers[index]):
            if handler.kind == "recovery":
                return self.run(index, back, number, [])
        return [Outcome(self.model_codec.without_cells(index, back), [], [], [], [], [], None)]

    def observe(self, number: int, state: bytes, index: int, event: bytes) -> bytes | Failure:
        """The state of a monitor after an event, or the exception that it raised."""
        where = f"{type(self.system.monitors[number]).__name__}.observe"
        count = self._observations_of[where] = self._observations_of.get(where, 0) + 1
        asked = (number, where, state, index, event)
        if self.sample.takes(count):
            result = self.sample.record(where, self._observed, *asked)
            self.sample.questions.append(Question(where, ("observe", *asked), kind_of(result)))
        else:
            result = self._observed(*asked)
        for turn in turns(count, self.order.largest, least=1):
            again = self.order.permuted(turn, self._observed, *asked, True)
            if kind_of(again) != kind_of(result):
                raise ModelError(
                    f"{where} is not a function of its state and the event: run twice, it gave "
                    f"{self._answer_text(result)} and {self._answer_text(again)}",
                    hint="an observer must not use randomness, clocks, globals or the order of a set",
                )
        return result

    def _observed(
        self, number: int, where: str, state: bytes, index: int, event: bytes, probe: bool = False
    ) -> bytes | Failure:
        cls = type(self.system.monitors[number])
        copy = object.__new__(cls)
        copy.__dict__.update(zip(cls.__plait_fields__, self.codec.decode(state), strict=True))
        self.model_codec.thread = get_ident()
        self.model_codec.cells.begin_view(None)
        try:
            given = self.system.pids[index], self.codec.decode(event)
            copy.observe(*given) if probe else self.order.watched(copy.observe, *given)
            return self._named(copy, where)
        except BaseException as error:
            require_users(error)
            return failed(where, error)

    def _answer_text(self, answer: bytes | Failure) -> str:
        return answer.message if isinstance(answer, Failure) else text(to_data(self.codec.decode(answer)))

    def too_many_sets(self, index: int, number: int) -> ModelError:
        """The error for a handler that may take more sets of messages in one state than the engine lists."""
        return ModelError(
            f"{self.where(index, number)} may take more than 50,000 sets of messages in one state",
            hint="allow fewer sets: a guard where= on each message, same=…, or at_least(…, most=…)",
        )

    def where(self, index: int, number: int) -> str:
        """A handler's name for a message to the user."""
        return f"{self.system.classes[index].__name__}.{self.handlers[index][number].name}"

    def reads(
        self, index: int, local: bytes, number: int, messages: Sequence[tuple[int, bytes]], choices: list[bytes]
    ) -> list[str]:
        """The fields and cells that a step read, in its guard or its handler; for traces."""
        if self.guard_raised(index, local, number, messages):  # its handler did not run
            read = self._guards.reads(index, number, local, messages)
            return [name for name in self._places(index) if name in read]
        outcomes, notes = self._noted(index, local, number, messages)
        by_handler = next((n for n, o in zip(notes, outcomes, strict=True) if o.choices == choices), set())
        read = by_handler | self._guards.reads(index, number, local, messages)
        return [name for name in self._places(index) if name in read]

    def _places(self, index: int) -> tuple[str, ...]:
        """The fields of a process, and all cells, by name."""
        return (*self.system.classes[index].__plait_fields__, *self.model_codec.cells.names)

    def guard_raised(self, index: int, local: bytes, number: int, messages: Sequence[tuple[int, bytes]]) -> bool:
        """Whether the guard of a step raised an exception. Then its handler does not run."""
        return self._guards.failure(index, number, local, messages) is not None

    def _noted(
        self, index: int, local: bytes, number: int, messages: Sequence[tuple[int, bytes]]
    ) -> tuple[list[Outcome], list[set[str]]]:
        """The outcomes of a handler, and the fields that each of them read."""
        notes: list[set[str]] = []
        try:
            return self._explore(index, local, number, messages, notes=notes), notes
        except ModelError:  # it used its own class, which does not record reads
            outcomes = self._explore(index, local, number, messages)
            return outcomes, [set(self._places(index))] * len(outcomes)

    def never_run(self) -> list[tuple[type[Process], Handler]]:
        """Handlers that have not run so far."""
        return [(c, h) for c, h in self.system.handlers() if (c, h.name) not in self._steps_of]

    def was_sent(self, handler: Handler, cls: type[Process] | None = None) -> bool:
        """Whether a step sent a message for this handler (to a process of the class, if one is given)."""
        return any(issubclass(t, handler.messages) and to is (cls or to) for t, to in self.sent)

    # -- running ---------------------------------------------------------------------------------------------------

    def _explore(
        self,
        index: int,
        local: bytes,
        number: int,
        messages: Sequence[tuple[int, bytes]],
        probe: bool = False,
        notes: list[set[str]] | None = None,
    ) -> list[Outcome]:
        """The outcomes of a handler, one per combination of choices; `notes` gets the fields that each of them read."""
        handler, where = self.handlers[index][number], self.where(index, number)
        cls = self.system.classes[index]
        if notes is not None or probe:
            handler = cls.__plait_handlers__[number]  # the original, which does not record coverage
        branches, outcomes, largest = Branches(), [], 0
        own = self.model_codec.without_cells(index, local)
        while True:
            noting: type[Process] = cls if notes is None else watched(cls)  # type: ignore[arg-type]
            process = self.model_codec.process(index, local, cls=noting)
            if notes is not None:
                notes.append(set())
                object.__getattribute__(process, "__dict__")["_reads"] = notes[-1]
            run = StepRun(self.system, where, branches, self.model_codec.encode)
            object.__getattribute__(process, "__dict__")["_run"] = run
            arguments: list[Any] = []
            if handler.kind == "message":
                given = tuple(self.model_codec.message(sender, content) for sender, content in messages)
                if notes is not None and self.recorder is not None:
                    given = tuple(watched_message(m, self.recorder.noting(handler.name)) for m in given)
                arguments = [given] if handler.quorum is not None else [given[0]]
            self.model_codec.thread = get_ident()
            fields = object.__getattribute__(process, "__dict__")
            clocks = {name: fields[name] for name in cls.__plait_clocks__}
            try:
                if probe:
                    handler.function(process, *arguments)
                else:
                    self.order.watched(handler.function, process, *arguments)
                _check_clocks(where, clocks, fields, run)
                outcomes.append(self._outcome(index, local, process, run, where))
                self.sent |= run.sent_to
            except AssertionError as error:
                said = text_of(error)
                message = f"{where}: assertion failed{f': {said}' if said else ''}"
                outcomes.append(_failed(own, run, Failure(True, message)))
            except NoSlotError as error:
                outcomes.append(_failed(own, run, Failure(False, error.message, error.hint)))
            except PlaitError as error:
                mistake = explained(where, error)
                if not run.expected:
                    raise mistake from None
                # After a spawn, this branch may be impossible. The engine decides that.
                outcomes.append(_failed(own, run, Failure(False, mistake.message, mistake.hint)))
            except BaseException as error:
                require_users(error)
                outcomes.append(_failed(own, run, failed(where, error)))
            if notes is not None:
                notes[-1] |= self.model_codec.cells.noted_names()
            largest = max(largest, self.order.largest)
            if not branches.advance():
                self._largest = largest
                return outcomes
            if len(outcomes) >= _MOST_CHOICES:
                raise ModelError(
                    f"{where} has more than {_MOST_CHOICES:,} combinations of choices in one step",
                    hint="choose less in one step: split it into several actions",
                )

    def _outcome(self, index: int, before: bytes, process: Process, run: StepRun, where: str) -> Outcome:
        spawns = [(slot, bytes([UP]) + self._named(p, f"{where}: spawned process")) for slot, p in run.spawned]
        # On an unordered network, the order of sends does not matter. It must not make outcomes differ.
        sends = run.sends if self.system.network.ordered else sorted(run.sends)
        self._require_room(sends, where)
        local = bytes([UP]) + self._named(process, where)
        if self.system.cells:
            spawns += self._written(index, before, process, where)
        return Outcome(local, sends, run.events, spawns, sorted(run.expected.items()), run.choices, None)

    def _require_room(self, sends: list[tuple[int, bytes]], where: str) -> None:
        """Refuse a step that sends more to a process than a channel holds: it would never be possible."""
        network = self.system.network
        if network.capacity is None or network.full == "drop" or len(sends) <= network.capacity:
            return
        to, count = Counter(to for to, _ in sends).most_common(1)[0]
        if count > network.capacity:
            raise ModelError(
                f"{where} sends {count} messages to {self.system.pids[to]!r} in one step, but the network holds at most "
                f"{network.capacity} messages of one sender for one receiver",
                hint="raise the capacity, or send in several steps",
            )

    def _written(self, index: int, before: bytes, process: Process, where: str) -> list[tuple[int, bytes]]:
        """The cells that a step has written: their positions, and their local states."""
        names = self.system.classes[index].__plait_fields__
        after = self.model_codec.situation(declared_values(process, names, where), names, where)
        cells = [self.codec.fields(local)[len(names) + 1 :] for local in (before, bytes([UP]) + after)]
        first, blind = len(self.system.classes), self.model_codec.cells.blind
        written = [
            (number, now)
            for number, (then, now) in enumerate(zip(*cells, strict=True))
            if then != now or number in blind
        ]
        for number, now in written:
            try:
                without_clock(now)
            except TypeError as error:
                what, hint = error.args
                raise ModelError(f"{where} writes {self.system.cells[number]}: {what}", hint=hint) from None
        return [(first + number, self._cell(now)) for number, now in written]

    def _named(self, thing: Process | Monitor, where: str) -> bytes:
        """The content of the fields of a process or monitor."""
        fields = thing.__plait_fields__
        values = declared_values(thing, fields, where)
        if isinstance(thing, Process) and thing.__plait_clocks__:
            named = dict(zip(fields, values, strict=True))
            values = tuple((named | self._bounded(self._declared(thing), named)).values())
        return self.model_codec.fields(values, fields, where)

    def _declared(self, process: Process) -> type[Process]:
        """The class of a process in the System. The process may be one that records reads."""
        cls = type(process)
        return cls if cls in self.system.classes else cls.__mro__[1]

    # -- questions of the sample -----------------------------------------------------------------------------------

    def answer(self, asked: tuple[Any, ...]) -> Any:
        """The answer to a question of a sample, which can be sent to another interpreter."""
        kind, *arguments = asked
        if kind == "step":
            return [comparable(o) for o in self._explore(*arguments)]
        if kind == "guard":
            return kind_of(self._guards.answer(*arguments))
        return self._value_in(*arguments) if kind == "property" else kind_of(self._observed(*arguments))

    def difference(self, index: int, number: int, first: list[Outcome], second: list[Outcome]) -> ModelError:
        """The error for a step that had other outcomes the second time."""
        where = self.where(index, number)
        hint = "a handler must not use randomness, clocks, globals or the order of a set: use self.choose, or sort"
        if len(first) != len(second):
            what = f"{len(first)} outcomes and then {len(second)}"
            return ModelError(f"{where} is not a function of its inputs: run twice, it had {what}", hint=hint)
        a, b = next((a, b) for a, b in zip(first, second, strict=True) if comparable(a) != comparable(b))
        if kind_of(a.failure) != kind_of(b.failure):
            failures = (a.failure, b.failure)
            what = " and then ".join("did not fail" if f is None else f"failed: {f.message}" for f in failures)
        elif a.local != b.local:
            names = self.system.classes[index].__plait_fields__
            for name, x, y in zip(names, self.codec.decode(a.local[1:]), self.codec.decode(b.local[1:]), strict=True):
                if self.codec.encode(x) != self.codec.encode(y):
                    what = f"set {name} to {text(to_data(x))} and then to {text(to_data(y))}"
                    break
        elif a.sends != b.sends:
            what = f"sent {self._shown(a.sends)} and then {self._shown(b.sends)}"
        elif a.spawns != b.spawns and a.expected == b.expected:
            what = "wrote shared fields differently"
        else:
            what = "announced, chose or spawned differently"
        return ModelError(f"{where} is not a function of its inputs: run twice, it {what}", hint=hint)

    def _shown(self, sends: list[tuple[int, bytes]]) -> str:
        return (
            ", ".join(f"{text(to_data(self.codec.decode(m)))} to {self.system.pids[to]!r}" for to, m in sends)
            or "nothing"
        )


def comparable(outcome: Outcome) -> tuple[Any, ...]:
    """The parts on which two runs must agree: all but the text of a failure."""
    return (*outcome[:-1], kind_of(outcome.failure))


def _check_clocks(where: str, clocks: dict[str, Clock], fields: dict[str, Any], run: StepRun) -> None:
    """Refuse a handler that puts another clock in a field, or gives one of its clocks to a process that it spawns."""
    for name, clock in clocks.items():
        if isinstance(fields.get(name), Clock) and fields[name] is not clock:
            raise ModelError(
                f"{where} assigns self.{name}, which is a clock",
                hint=f"a clock stays in its field: use self.{name}.reset(), start() and stop()",
            )
    given = [value for _, child in run.spawned for value in child.__dict__.values()]
    for name, clock in clocks.items():
        if any(value is clock for value in given):
            raise ModelError(
                f"{where} gives its clock self.{name} to a process that it spawns",
                hint="give the process a Clock() of its own",
            )


def _failed(local: bytes, run: StepRun, failure: Failure) -> Outcome:
    """The outcome of a step that fails."""
    return Outcome(local, [], [], [], sorted(run.expected.items()), run.choices, failure)
