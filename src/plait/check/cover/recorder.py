"""Records which parts of a model a search has exercised (the data is in `plait.kernel.coverage`).

The engine asks Python about each step, guard and property once per distinct input. Steps, guards and properties are
functions of their inputs. So these calls show everything that handlers, guards and properties do in the searched
states. The recorder listens to the calls; the search itself does not change. `Recorder` rewrites the functions of the
model so that they record their conditions (`plait.check.cover.conditions`). It also records messages and reads.

A handler *ran* if one of its steps was possible in a searched state. A step that spawns is executed for each slot that
may be free, and counts for each.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any, Literal, NamedTuple

from plait.check.cover.conditions import Condition, conditions_of, value_conditions_of
from plait.check.reduce.decomposition import decompose
from plait.kernel.coverage import Branch, Coverage, FieldCoverage, HandlerCoverage, MessageCoverage, Untested
from plait.model.message import Message
from plait.model.process import Handler, Process
from plait.model.properties import Property
from plait.model.system import System
from plait.model.temporal import And, Atom, Constant, Formula, Implies, Not, Or, Temporal

Place = tuple[type[Process], str]
"""A handler."""
Went = Set[tuple[type[Message], type[Process]]]
"""Types of messages, and the classes of their receivers."""


class Recorder:
    """Listens to a tabulation."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.steps: dict[Place, set[tuple[Any, ...]]] = {}
        """The different steps of each handler."""
        self.taken: set[tuple[type[Message], type[Process]]] = set()
        """Types of messages, with the class that received them."""
        self.reads: dict[tuple[type, str], set[str]] = {}
        """The readers of a field of a process or of a message."""
        self.cell_reads: dict[str, set[str]] = {}
        """The readers of a field of a shared object."""
        self._guards: dict[Place, list[Condition]] = {}
        self._accepts: dict[Place, list[Condition]] = {}
        self._bodies: dict[Place, list[Condition]] = {}
        self._properties: list[list[Condition]] = []
        """By the number of the property."""
        self._recording: list[Property] = []
        """The properties, rewritten. Several tabulations of one check share them."""
        self._made: dict[tuple[type[Process], Handler], Handler] = {}

    # -- recording functions ---------------------------------------------------------------------------------------

    def handler(self, cls: type[Process], handler: Handler) -> Handler:
        """The handler, rewritten to record its conditions."""
        made = self._made.get((cls, handler))
        if made is None:
            function, self._bodies[cls, handler.name] = conditions_of(handler.function)
            guard = handler.where
            if guard is not None:
                guard, found = value_conditions_of(guard)
                self._guards[cls, handler.name] = found
            accept = handler.accept
            if accept is not None:
                accept, found = value_conditions_of(accept)
                self._accepts[cls, handler.name] = found
            made = dataclasses.replace(handler, function=function, where=guard, accept=accept)
            self._made[cls, handler] = made
        return made

    def properties(self, properties: Sequence[Property]) -> list[Property]:
        """The properties, rewritten to record their conditions. The first condition is the property itself."""
        for prop in properties[len(self._recording) :]:
            function, found = value_conditions_of(prop.function)
            self._properties.append(found)
            if prop.quantified is not None:
                function = dataclasses.replace(prop.quantified, holds=function).predicate()
            self._recording.append(dataclasses.replace(prop, predicate=function))
        return self._recording

    # -- events that it records ------------------------------------------------------------------------------------

    def ran(self, place: Place, step: tuple[Any, ...], taken: Sequence[Message], fields: set[str]) -> None:
        cls, name = place
        self.steps.setdefault(place, set()).add(step)
        self.taken |= {(type(message), cls) for message in taken}
        self.read(cls, fields, name)

    def hopeless(self, cls: type[Process], handler: str) -> None:
        """A guard was false for every message. (Only partial-order reduction asks for this.)"""
        self._guards[cls, handler][0].false = True

    def read(self, cls: type, fields: Iterable[str], by: str) -> None:
        cells = {str(cell) for cell in self.system.cells}
        for field in fields:
            if field in cells:
                self.read_cells([field], f"{cls.__name__}.{by}")
            else:
                self.reads.setdefault((cls, field), set()).add(by)

    def read_cells(self, cells: Iterable[str], by: str) -> None:
        for cell in cells:
            self.cell_reads.setdefault(cell, set()).add(by)

    def noting(self, by: str) -> Callable[[type[Message], str], None]:
        """For messages that report which of their fields are read, and by what code."""
        return lambda kind, field: self.read(kind, [field], by)

    def saw(self, messages: Iterable[Message], by: str) -> None:
        """These messages do not report which fields are read. So all their fields count as read."""
        for message in messages:
            self.read(type(message), _fields_of(type(message)), by)

    # -- the result ---------------------------------------------------------------------------------------------

    def coverage(self, over: str, never: dict[Place, str], sent: Went, untested: Iterable[Untested]) -> Coverage:
        """The coverage. `never`: handlers that never ran, with the reason. `sent`: message types and their receivers."""
        handlers = [
            HandlerCoverage(c.__name__, h.name, len(self.steps.get((c, h.name), ())), never.get((c, h.name)))
            for c, h in self.system.handlers()
        ]
        branches, messages, fields = (
            list(self._branches()),
            list(self._messages(sent)),
            [*self._fields(), *self._contents(sent)],
        )
        return Coverage(over, handlers, branches, messages, fields, list(untested))

    def untested(self, number: int) -> Iterator[Untested]:
        """The parts of a property that were never tested."""
        for condition in self._properties[number]:
            skipped, why = condition.skipped()
            if skipped:
                yield Untested(self.system.properties[number].name, condition.text, why, skipped == "all")

    def was_true(self, number: int) -> bool:
        """Whether a property was ever true. It must have been evaluated."""
        return self._properties[number][0].true

    def _branches(self) -> Iterator[Branch]:
        for cls, handler in self.system.handlers():
            place = (cls, handler.name)
            parts: list[tuple[Literal["guard", "accept", "body"], dict[Place, list[Condition]]]]
            parts = [("guard", self._guards), ("accept", self._accepts), ("body", self._bodies)]
            for part, known in parts:
                found = known.get(place, [])
                implied = {id(operand) for c in found for operand in c.implied()}
                for c in found:
                    if c.is_test:
                        where = (cls.__name__, handler.name, part, c.text, c.line or None)
                        yield Branch(*where, c.true, c.false, id(c) in implied)

    def _messages(self, sent: Went) -> Iterator[MessageCoverage]:
        known = {message for _, h in self.system.handlers() for message in h.messages}
        for cls in dict.fromkeys(self.system.classes):
            known |= set(_named(cls))
        known |= {kind for kind, _ in sent}
        for kind in sorted(known, key=lambda k: k.__name__):
            to, by = (sorted({c.__name__ for k, c in pairs if k is kind}) for pairs in (sent, self.taken))
            below = any(k is not kind and issubclass(k, kind) for k in known)
            if to or not below:  # a base class stands for its subclasses
                yield MessageCoverage(kind.__name__, to, by)

    def _fields(self) -> Iterator[FieldCoverage]:
        idle = {(f.cls, f.name) for f in decompose(self.system, "auto").fields if f.auxiliary and not f.audited}
        for cls in dict.fromkeys(self.system.classes):
            for name in cls.__plait_fields__:
                by = sorted(self.reads.get((cls, name), ()))
                yield FieldCoverage(cls.__name__, name, by, (cls, name) not in idle)
        for cell in self.system.cells:
            by, counts = (
                sorted(self.cell_reads.get(str(cell), ())),
                (self.system.shared_class(cell), cell.name) not in idle,
            )
            yield FieldCoverage(repr(cell.shared), cell.name, by, counts)

    def _contents(self, sent: Went) -> Iterator[FieldCoverage]:
        """The fields of messages that are sent."""
        for kind in sorted({kind for kind, _ in sent}, key=lambda k: k.__name__):
            for name in _fields_of(kind):
                yield FieldCoverage(kind.__name__, name, sorted(self.reads.get((kind, name), ())), True)


def _fields_of(kind: type[Message]) -> list[str]:
    return [f.name for f in dataclasses.fields(kind)]


def _named(cls: type[Process]) -> Iterator[type[Message]]:
    """The message classes that occur in the methods of a class."""

    def codes(code: types.CodeType) -> Iterator[types.CodeType]:
        yield code
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                yield from codes(constant)

    for base in cls.__mro__:
        for function in vars(base).values() if issubclass(base, Process) and base is not Process else ():
            if isinstance(function, types.FunctionType):
                for code in codes(function.__code__):
                    for name in code.co_names:
                        value = function.__globals__.get(name)
                        if isinstance(value, type) and issubclass(value, Message) and value is not Message:
                            yield value


# -- premises of formulas ----------------------------------------------------------------------------------------------


class Premise(NamedTuple):
    """The condition under which a formula requires anything: p in `G(p -> F q)`."""

    property: str
    atom: Atom
    """The premise as a predicate."""
    initially: bool
    """It matters in the initial state only."""


def premises(properties: Sequence[Temporal]) -> list[Premise]:
    """The premises of formulas that are about single states."""

    def within(formula: Formula, initially: bool) -> Iterator[tuple[Formula, bool]]:
        match formula:
            case Implies(left, right) | Or(Not(left), right):
                yield left, initially
                yield from within(right, initially)
            case And() | Or():
                yield from within(formula.left, initially)
                yield from within(formula.right, initially)
            case Not():  # an implication that must be false is not vacuous
                return
            case _:
                for part in formula.parts:
                    yield from within(part, False)

    found = []
    for prop in properties:
        for premise, initially in within(prop.formula, True):
            if _of_one_state(premise):
                found.append(Premise(prop.name, _as_atom(premise), initially))
    return found


def _of_one_state(formula: Formula) -> bool:
    kinds = (Atom, Constant, Not, And, Or, Implies)
    return isinstance(formula, kinds) and all(map(_of_one_state, formula.parts))


def _as_atom(formula: Formula) -> Atom:
    if isinstance(formula, Atom):
        return formula

    def value(part: Formula, view: Any) -> bool:
        match part:
            case Constant(known):
                return known
            case Not():
                return not value(part.of, view)
            case And():
                return value(part.left, view) and value(part.right, view)
            case Or():
                return value(part.left, view) or value(part.right, view)
            case Implies():
                return not value(part.left, view) or value(part.right, view)
        return bool(part(view))  # type: ignore[operator]

    return Atom(str(formula), lambda view: value(formula, view))
