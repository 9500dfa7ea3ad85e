"""The part of the Python side of the engine that evaluates properties.

The engine asks for the value of a property in a state, which it gives as ids of components. The answer includes what the
property read, so that the engine asks again only if this changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import get_ident
from typing import Any, Literal

from plait._native import Failure, Store
from plait.check.cover.recorder import Recorder
from plait.check.tabulate.codec import NO_CONTENT, UNBORN, ModelCodec, declared_values, explained, failed, require_users
from plait.check.tabulate.probe import set_order, turns
from plait.check.tabulate.sample import Question, Sample
from plait.kernel.errors import ModelError
from plait.model.clock import refusal
from plait.model.message import Message
from plait.model.monitor import Monitor
from plait.model.process import Process, Status
from plait.model.properties import Property
from plait.model.shared import Shared
from plait.model.system import System
from plait.model.view import View

STATUSES: tuple[Status, ...] = ("up", "crashed", "down", "unborn")

Read = tuple[Literal["field", "inbox", "monitor"], int, int]
"""A component that a property read. A field is given by its position in its class, from 1; 0 stands for the status.
The positions of cells follow those of processes; a cell has one field."""
Judgement = tuple[bool | None, list[Read]]
"""A property's value in a state (None: it raised an exception), and the components that it read, in order."""


class Evaluation:
    """Evaluates the properties of one System."""

    auxiliary: Mapping[type[Process] | type[Shared], frozenset[str]] = {}
    """Fields that the engine never sees (`plait.check.reduce.relevance`)."""

    def __init__(self, system: System, recorder: Recorder | None = None) -> None:
        self.system = system
        self.recorder = recorder
        """Records coverage."""
        self.model_codec = ModelCodec(system)
        self.codec = self.model_codec.codec
        self.order = set_order()
        self.sample = Sample()
        self.store: Store | None = None
        """The engine's interned values, by id; set when the engine is made."""
        self.raised: set[str] = set()
        """Properties that raised an exception in some state."""
        self._properties = system.properties if recorder is None else recorder.properties(system.properties)
        self._evaluations_of: dict[str, int] = {}
        self._locals: dict[tuple[type[Process], int], tuple[Status, dict[str, Any]]] = {}
        self._inboxes: dict[int, tuple[Message, ...]] = {}
        self._monitors: dict[tuple[int, int], Monitor] = {}
        self._cells: dict[int, Any] = {}

    def evaluate(
        self, number: int, locals_: Sequence[int], inboxes: Sequence[int], monitors: Sequence[int]
    ) -> Judgement:
        """Evaluate a property in a state (component ids): its value, and the components that it read, in order."""
        prop = self._properties[number]
        view = View(
            self.system,
            lambda i: self.local_value(i, locals_[i]),
            lambda i: self.inbox_value(inboxes[i]),
            lambda i: self.monitor_value(i, monitors[i]),
            self.auxiliary,
            cell=lambda i: self.cell_value(locals_[len(self.system.classes) + i]),
        )
        count = self._evaluations_of[prop.name] = self._evaluations_of.get(prop.name, 0) + 1
        place = f"property {prop.name}"
        if self.sample.takes(count):
            value = self.sample.record(place, self._value, prop, view)
            contents = self._contents_of(locals_, inboxes, monitors)
            self.sample.questions.append(Question(place, ("property", number, *contents), value))
        else:
            value = self._value(prop, view)
        largest = self.order.largest
        try:
            view.check_relevant()
        except ModelError as error:
            raise explained(place, error) from None
        for turn in turns(count, largest):
            again = self.order.permuted(turn, self._value_again, number, locals_, inboxes, monitors)
            if again != value:
                first, second = ("an exception" if v is None else v for v in (value, again))
                raise ModelError(
                    f"property {prop.name} is not a function of the state: "
                    f"evaluated twice, it returned {first} and then {second}",
                    hint="a property must not use randomness, clocks, globals or the order of a set",
                )
        self.check_untouched(place, view, locals_, inboxes, monitors)
        reads = self.positions(view)
        if self.recorder is not None:
            for kind, index, name in view.reads:
                if kind == "cell":
                    self.recorder.read_cells([self.model_codec.cells.names[index]], place)
                elif name is not None:
                    self.recorder.read(self.system.classes[index], {name}, place)
            pending = [m for kind, i, _ in reads if kind == "inbox" for m in self.inbox_value(inboxes[i])]
            self.recorder.saw(pending, place)
        return value, reads

    def positions(self, view: View) -> list[Read]:
        """What was read of a view, for the engine."""
        classes = self.system.classes
        return [
            ("field", len(classes) + index, 1)
            if kind == "cell"
            else (kind, index, 0 if name is None else classes[index].__plait_fields__.index(name) + 1)
            for kind, index, name in view.reads
        ]

    def _value_again(
        self, number: int, locals_: Sequence[int], inboxes: Sequence[int], monitors: Sequence[int]
    ) -> bool | None:
        return self._value_in(number, *self._contents_of(locals_, inboxes, monitors))

    def _value_in(
        self, number: int, locals_: list[bytes], inboxes: list[list[tuple[int, int, bytes]]], monitors: list[bytes]
    ) -> bool | None:
        """The value of a property in a state that is given by the contents of its components."""
        # The original, which does not record coverage.
        return self._value(self.system.properties[number], self._fresh_view(locals_, inboxes, monitors), probe=True)

    def _value(self, prop: Property, view: View, probe: bool = False) -> bool | None:
        """The value of a property, None if it raised an exception."""
        found = self._judged(prop, view, probe)
        if isinstance(found, Failure):
            self.raised.add(prop.name)
            return None
        return found

    def _judged(self, prop: Property, view: View, probe: bool = False) -> bool | Failure:
        self.model_codec.thread = get_ident()
        self.model_codec.cells.begin_view(view.cell)
        try:
            value = prop(view) if probe else self.order.watched(prop, view)
        except AssertionError:
            return False
        except BaseException as error:
            require_users(error)
            return failed(f"property {prop.name}", error)
        if not isinstance(value, bool):
            raise ModelError(
                f"property {prop.name} returned {value!r}", hint="return True or False (or use assert and return True)"
            )
        return value

    def check_untouched(
        self, place: str, view: View, locals_: Sequence[int], inboxes: Sequence[int], monitors: Sequence[int]
    ) -> None:
        """Refuse a property or mapping that changes a value that it reads: it would change other states too."""
        assert self.store is not None
        for kind, i in dict.fromkeys((kind, i) for kind, i, _ in view.reads):
            now: list[object]
            if kind == "field":
                content = self.store.local(locals_[i])
                if content[0] == UNBORN:
                    continue
                what, then = repr(self.system.pids[i]), [content[1:]]
                values = tuple(self._locals[self.system.classes[i], locals_[i]][1].values())
                if (refused := refusal(values)) is not None:
                    raise explained(place, refused)
                now = [values]
            elif kind == "monitor":
                monitor = self._monitors[i, monitors[i]]
                what, then = f"monitor {type(monitor).__name__}", [self.store.monitor(monitors[i])]
                now = [declared_values(monitor, monitor.__plait_fields__, place)]
            elif kind == "cell":
                cell = locals_[len(self.system.classes) + i]
                what, then, now = self.model_codec.cells.names[i], [self.store.local(cell)[1:]], [(self._cells[cell],)]
            else:
                what, then = f"the inbox of {self.system.pids[i]!r}", [m for _, _, m in self.store.inbox(inboxes[i])]
                now = list(self._inboxes[inboxes[i]])
            try:
                same = [self.codec.encode(value) for value in now] == then
            except NO_CONTENT:
                same = False
            if not same and kind == "field":
                what = f"{what}.{self._changed(i, locals_[i])}"
            if not same:
                raise ModelError(
                    f"{place} changes the state it looks at: {what}", hint="copy a value before changing it"
                )

    def _changed(self, index: int, local: int) -> str:
        """The first field whose value is not the one of the local state any more."""
        assert self.store is not None
        _, *contents = self.codec.fields(self.store.local(local))
        fields = self._locals[self.system.classes[index], local][1]
        for (name, value), content in zip(fields.items(), contents, strict=True):
            try:
                if self.codec.encode(value) != content:
                    return name
            except NO_CONTENT:
                return name
        return ", ".join(fields)  # two fields share an object

    def property_failure(
        self, number: int, locals_: Sequence[int], inboxes: Sequence[int], monitors: Sequence[int]
    ) -> Failure | None:
        """The exception that a property raises in a state, or None."""
        view = self.fresh_view(locals_, inboxes, monitors)
        found = self._judged(self.system.properties[number], view, probe=True)
        return found if isinstance(found, Failure) else None

    def fresh_view(self, locals_: Sequence[int], inboxes: Sequence[int], monitors: Sequence[int]) -> View:
        """A view of fresh values."""
        return self._fresh_view(*self._contents_of(locals_, inboxes, monitors))

    # -- values of components ----------------------------------------------------------------------------------------

    def _fresh_view(
        self, locals_: list[bytes], inboxes: list[list[tuple[int, int, bytes]]], monitors: list[bytes]
    ) -> View:
        """A view of fresh values, from the contents of the components."""
        classes, decode = self.system.classes, self.codec.decode

        def local(i: int) -> tuple[Status, dict[str, Any]]:
            content = locals_[i]
            values = () if content[0] == UNBORN else decode(content[1:])
            return STATUSES[content[0]], dict(zip(classes[i].__plait_fields__, values, strict=False))

        def monitor(i: int) -> Monitor:
            copy: Monitor = object.__new__(type(self.system.monitors[i]))
            copy.__dict__.update(zip(copy.__plait_fields__, decode(monitors[i]), strict=True))
            return copy

        def inbox(i: int) -> tuple[Message, ...]:
            return tuple(self.model_codec.message(sender, m) for _, sender, m in inboxes[i])

        def cell(i: int) -> Any:
            return decode(locals_[len(classes) + i][1:])[0]

        return View(self.system, local, inbox, monitor, self.auxiliary, cell=cell)

    def _contents_of(
        self, locals_: Sequence[int], inboxes: Sequence[int], monitors: Sequence[int]
    ) -> tuple[list[bytes], list[list[tuple[int, int, bytes]]], list[bytes]]:
        store = self.store
        assert store is not None
        return [*map(store.local, locals_)], [*map(store.inbox, inboxes)], [*map(store.monitor, monitors)]

    def local_value(self, index: int, local: int) -> tuple[Status, dict[str, Any]]:
        """Status and fields of a local state."""
        # Content does not contain the class: equal fields of two classes have one id.
        key = (self.system.classes[index], local)
        found = self._locals.get(key)
        if found is None:
            assert self.store is not None
            content = self.store.local(local)
            names = self.system.classes[index].__plait_fields__
            fields = dict(zip(names, self.codec.decode(content[1:]), strict=True)) if content[0] != UNBORN else {}
            found = self._locals[key] = (STATUSES[content[0]], fields)
        return found

    def cell_value(self, cell: int) -> Any:
        """The content of a shared field, by the local state of its cell."""
        if cell not in self._cells:
            assert self.store is not None
            self._cells[cell] = self.codec.decode(self.store.local(cell)[1:])[0]
        return self._cells[cell]

    def inbox_value(self, inbox: int) -> tuple[Message, ...]:
        found = self._inboxes.get(inbox)
        if found is None:
            assert self.store is not None
            found = tuple(self.model_codec.message(sender, content) for _, sender, content in self.store.inbox(inbox))
            self._inboxes[inbox] = found
        return found

    def monitor_value(self, number: int, state: int) -> Monitor:
        found = self._monitors.get((number, state))
        if found is None:
            assert self.store is not None
            cls = type(self.system.monitors[number])
            found = object.__new__(cls)
            found.__dict__.update(zip(cls.__plait_fields__, self.codec.decode(self.store.monitor(state)), strict=True))
            self._monitors[number, state] = found
        return found
