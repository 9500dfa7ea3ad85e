"""The creation order of processes, and whether it matters. The sequential program numbers them in the order of its rounds.

If several processes create processes of one role, a run of the protocol may number these in another order. This makes
no difference if all behaviour is the same up to names. So each guard, step and property is evaluated again with names
exchanged, in all ways; docs/reference/rounds.md proves that this is enough. If a difference is found, the protocol gets
no verdict.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from plait.kernel.pid import Pid
from plait.model.message import Message
from plait.model.process import Handler, Process
from plait.model.properties import Property
from plait.model.system import System
from plait.model.view import view_class
from plait.rounds.calendar import where
from plait.rounds.program.protocol import delivered, fresh, key_of, own, state_of
from plait.rounds.program.views import RoundsProcess, RoundsView

MOST = 24
"""The largest number of ways to exchange names that are tried: those of four processes of a role."""
Names = Mapping[Pid, Pid]
"""The exchanged processes, with their new names."""


class CreationOrder:
    """The ways to exchange the names of created processes, and what was found to depend on them."""

    def __init__(self, system: System, compare: bool) -> None:
        self.created = frozenset(system.pids[len(system.processes) :])
        self.creators: dict[str, set[Pid]] = {}
        """For each role, the processes that create its processes."""
        self.difference: str | None = None
        self.ways: Sequence[Names] = []
        if too_many_orders(system):
            self.difference = f"{len(self.created)} processes may be created: these have too many orders to compare"
        elif compare:
            self.ways = creation_ways(system)
            fields = [own(process)[name] for process in system.processes for name in type(process).__plait_fields__]
            if any(key_of(renamed(fields, names)) != key_of(fields) for names in self.ways):
                self.note("the initial state")

    @property
    def several(self) -> str | None:
        """The creators of a role that has several."""
        for role, creators in self.creators.items():
            if len(creators) > 1:
                return f"{', '.join(map(repr, sorted(creators)))} create processes of {role} in any order"
        return None

    def note(self, what: str) -> None:
        """Record that something depends on the names."""
        self.difference = self.difference or f"{what} depends on their numbers"

    def watching(self, cls: type[Process], handler: Handler) -> Handler:
        """The handler, whose guard, quorum and steps are evaluated again with names exchanged."""
        if not self.ways:
            return handler
        said = where(cls, handler)
        quorum = handler.quorum
        return dataclasses.replace(
            handler,
            where=None if handler.where is None else self._asked(handler.where, f"the guard of {said}"),
            quorum=self._asked(quorum, f"the quorum of {said}") if callable(quorum) else quorum,
            function=self._stepped(handler.function, said),
        )

    def viewed(self, prop: Property, mortal: bool) -> Property:
        """The property of the program's states, evaluated again with names exchanged."""

        def predicate(view: Any) -> Any:
            value = prop.predicate(RoundsView(view, mortal))
            for names in self.ways:
                exchanged = RenamedView(view, mortal, names)
                if exchanged.possible and bool(_answer(prop.predicate, exchanged)) != bool(value):
                    self.note(f"property {prop.name}")
            return value

        return dataclasses.replace(prop, predicate=predicate, quantified=None)

    def _ways(self, process: Process, messages: Iterable[Message]) -> Sequence[Names]:
        """The ways to exchange names that can make a difference: none if no created process is named here."""
        mine = own(process)
        known = process.id in self.created or any(self._mentioned(mine[n]) for n in type(process).__plait_fields__)
        return self.ways if known or any(m.sender in self.created or self._mentioned(m) for m in messages) else ()

    def _mentioned(self, value: Any) -> bool:
        """Whether a created process is named in a value."""
        if isinstance(value, Pid):
            return value in self.created
        if isinstance(value, list | tuple | set | frozenset | collections.deque):
            return any(map(self._mentioned, value))
        if isinstance(value, dict):
            return any(map(self._mentioned, itertools.chain(value, value.values())))
        fields = getattr(value, "__dataclass_fields__", ())
        return any(self._mentioned(getattr(value, name)) for name in fields)

    def _asked(self, question: Callable[..., Any], said: str) -> Callable[..., Any]:
        seen: set[Hashable] = set()

        @functools.wraps(question)
        def ask(process: Process, *messages: Message) -> Any:
            value = question(process, *messages)
            if (ways := self._ways(process, messages)) and _new(seen, _situation(process, messages)):
                for names in ways:
                    if _answer(question, _twin(process, names), *(_message(m, names) for m in messages)) != value:
                        self.note(said)
            return value

        return ask

    def _stepped(self, function: Callable[..., Any], said: str) -> Callable[..., Any]:
        seen: set[Hashable] = set()

        @functools.wraps(function)
        def step(process: Process, *given: Any) -> None:
            messages = given[0] if given and isinstance(given[0], tuple) else given
            ways, before, situation = self._ways(process, messages), _twin(process, {}), _situation(process, messages)
            real = own(process)["_run"]
            record = own(process)["_run"] = _Record(real)
            failed: AssertionError | None = None
            try:
                function(process, *given)
            except AssertionError as error:
                failed = error
            finally:
                own(process)["_run"] = real
            named = ways or record.spawned or self._ways(process, ()) or self._mentioned(record.sent)
            if named and _new(seen, (situation, key_of([chosen for _, chosen in record.chosen]))):
                for names in self.ways:
                    twin = _twin(before, names)
                    again = own(twin)["_run"] = _Again(record, names)
                    others = tuple(_message(m, names) for m in messages)
                    try:
                        function(twin, *([others] if messages is not given else others))
                        alike = failed is None and again.agrees() and state_of(twin) == state_of(_twin(process, names))
                    except AssertionError:
                        alike = failed is not None
                    except Exception:
                        alike = False
                    if not alike:
                        self.note(said)
            if failed is not None:
                raise failed

        return step


def _groups(system: System) -> list[list[Pid]]:
    """The processes that may be created, by role."""
    created = system.pids[len(system.processes) :]
    return [[p for p in created if p.role == role] for role in dict.fromkeys(p.role for p in created)]


def too_many_orders(system: System) -> bool:
    """Whether created processes have too many orders to compare."""
    return math.prod(math.factorial(len(group)) for group in _groups(system)) > MOST


def creation_ways(system: System) -> Sequence[Names]:
    """The ways to exchange the names of created processes, without the one that exchanges nothing; none if too many."""
    groups = _groups(system)
    if too_many_orders(system):
        return []
    orders = itertools.product(*(itertools.permutations(group) for group in groups))
    flat = list(itertools.chain(*groups))
    return [dict(zip(flat, itertools.chain(*order), strict=True)) for order in orders][1:]


class _DifferenceError(Exception):
    """A handler behaved differently when names were exchanged."""


class _Record:
    """Passes on the requests of a handler (`plait.model.process.Run`), and records them."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.sent: list[tuple[Pid, Message]] = []
        self.chosen: list[tuple[list[Any], Any]] = []
        self.spawned: list[tuple[str, dict[str, Any], Pid]] = []

    def send(self, to: Pid, message: Message) -> None:
        self.sent.append((to, fresh(message)))
        self._real.send(to, message)

    def choose(self, options: Iterable[Any]) -> Any:
        values = options if isinstance(options, set | frozenset) else list(options)
        chosen = self._real.choose(values)
        self.chosen.append((fresh(list(values)), fresh(chosen)))
        return chosen

    def spawn(self, role: type[Process], fields: dict[str, Any]) -> Pid:
        before = fresh(fields)
        child: Pid = self._real.spawn(role, fields)
        self.spawned.append((role.__name__, before, child))
        return child

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _Again:
    """Answers a handler as before, with names exchanged, if it makes the same requests."""

    def __init__(self, record: _Record, names: Names) -> None:
        self._record, self._names = record, names
        self._chosen, self._spawned = iter(record.chosen), iter(record.spawned)
        self._sent: list[tuple[Pid, Message]] = []

    def agrees(self) -> bool:
        """Whether the handler did the same again; the order of sends does not matter."""
        expected = [(renamed(to, self._names), renamed(m, self._names)) for to, m in self._record.sent]
        done = next(self._chosen, None) is None and next(self._spawned, None) is None
        return done and _bag(expected) == _bag(self._sent)

    def send(self, to: Pid, message: Message) -> None:
        self._sent.append((to, fresh(message)))

    def announce(self, event: Any) -> None:
        """There are no monitors."""

    def choose(self, options: Iterable[Any]) -> Any:
        values, chosen = next(self._chosen, ([], None))
        if _bag(renamed(values, self._names)) != _bag(options):
            raise _DifferenceError
        return renamed(chosen, self._names)

    def spawn(self, role: type[Process], fields: dict[str, Any]) -> Pid:
        known, before, child = next(self._spawned, ("", {}, None))
        if known != role.__name__ or key_of(renamed(before, self._names)) != key_of(fields) or child is None:
            raise _DifferenceError
        return renamed(child, self._names)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._record, name)


class RenamedView(RoundsView):
    """A state of the program in which created processes have exchanged names."""

    def __init__(self, view: Any, mortal: bool, names: Names) -> None:
        super().__init__(view, mortal)
        self._names = names
        self._former = {new: old for old, new in names.items()}

    @property
    def possible(self) -> bool:
        """Whether the created processes have the first names, as in each run."""
        return all(
            (self._view[a].status == "unborn") == (self._view[b].status == "unborn") for a, b in self._names.items()
        )

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Pid):
            process = self._view[self._former.get(key, key)]
            return view_class(process.__class__, RenamedProcess)(process, self._mortal, self._names)
        found = super().__getitem__(key)
        if isinstance(found, RoundsProcess):
            return self[found.id]
        return self._sorted(p.id for p in found)

    def __iter__(self) -> Iterator[RoundsProcess]:
        return iter(self._sorted(p.id for p in self._view))

    def _sorted(self, ids: Iterable[Pid]) -> tuple[RoundsProcess, ...]:
        """The processes in the order of their new names."""
        before = list(ids)
        return tuple(self[pid] for pid in sorted((self._names.get(p, p) for p in before), key=before.index))


class RenamedProcess(RoundsProcess):
    """A process under its other name."""

    __slots__ = ("_names",)

    def __init__(self, process: Any, mortal: bool, names: Names) -> None:
        super().__init__(process, mortal)
        self._names = names

    @property
    def id(self) -> Pid:
        return self._names.get(self._process.id, self._process.id)

    def __getattr__(self, name: str) -> Any:
        found, cls = super().__getattr__(name), cast(type[Process], self.__class__)
        return renamed(found, self._names) if name in cls.__plait_fields__ else found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RenamedProcess) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return repr(self.id)


def renamed(value: Any, names: Names) -> Any:
    """A copy of a value in which processes have other names."""
    if isinstance(value, Pid):
        return names.get(value, value)
    if isinstance(value, tuple) and type(value) is not tuple:
        return tuple.__new__(type(value), (renamed(v, names) for v in tuple.__iter__(value)))
    if isinstance(value, collections.deque):
        return collections.deque((renamed(v, names) for v in value), value.maxlen)
    for base in (list, tuple, set, frozenset):
        if isinstance(value, base):
            return base(renamed(v, names) for v in value)
    if isinstance(value, dict):
        entries = {renamed(k, names): renamed(v, names) for k, v in value.items()}
        twin = copy.copy(value)  # of a defaultdict, with its factory
        twin.clear()
        twin |= entries
        return twin
    if dataclasses.is_dataclass(value) and not isinstance(value, type | enum.Enum):
        made = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(made, field.name, renamed(getattr(value, field.name), names))
        return made
    return value


def _answer(question: Callable[..., Any], *given: Any) -> Any:
    """The answer; an error is an answer, too, which equals no other."""
    try:
        return question(*given)
    except Exception as error:
        return error


def _bag(values: Iterable[Any]) -> Counter[Any]:
    """Values without their order, as something to compare."""
    return Counter(map(key_of, values))


def _message(message: Message, names: Names) -> Message:
    made: Message = renamed(message, names)
    return delivered(names.get(message.sender, message.sender), made)


def _twin(process: Process, names: Names) -> Process:
    """A copy of a process with names exchanged."""
    mine, twin = own(process), object.__new__(type(process))
    own(twin).update(mine)
    for name in type(process).__plait_fields__:
        own(twin)[name] = renamed(mine[name], names)
    own(twin)["_id"] = names.get(process.id, process.id)
    return twin


def _situation(process: Process, messages: Iterable[Message]) -> Hashable:
    """What a guard or a step depends on, as a key."""
    return (process.id, state_of(process), *((m.sender, key_of(m)) for m in messages))


def _new(seen: set[Hashable], situation: Hashable) -> bool:
    """Whether a situation is new; from now on it is not."""
    if situation in seen:
        return False
    seen.add(situation)
    return True
