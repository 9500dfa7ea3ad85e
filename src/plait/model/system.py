"""A System: processes, a network, faults, monitors and properties. Its constructor rejects mistakes."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from plait.kernel.errors import ModelError, UsageError
from plait.kernel.pid import Pid
from plait.model.clock import Clock
from plait.model.fairness import Fairness, assumptions
from plait.model.faults import Crash
from plait.model.message import Message
from plait.model.monitor import Monitor
from plait.model.network import Network, unordered
from plait.model.process import Handler, Process
from plait.model.properties import BUILT_IN, Drawing, Property, condition, distinct
from plait.model.quorum import Quorum
from plait.model.shared import OUTSIDE, Shared, loose
from plait.model.tag import check_rounds

if TYPE_CHECKING:
    from plait.model.view import View

MOST_DRIFT = 100


class Cell(NamedTuple):
    """A field of a shared object: a component of the state of its own."""

    shared: Pid
    name: str

    def __str__(self) -> str:
        return f"{self.shared!r}.{self.name}"


class System:
    """The system that `plait.check` checks.

    Objects of a `Shared` class that processes hold in their fields are shared state: see `shared`.
    `spare={Worker: 2}` declares slots for processes that `spawn` creates. So all states have the same shape.
    `symmetric=[Acceptor]` declares that the processes of a role are interchangeable: if two of the same class are
    exchanged everywhere (fields, messages, all uses of their ids), the system behaves the same.
    `rotations=[Node]` declares that the processes of a role form a ring, in their order: if each takes the place of the
    next one, and the last that of the first, the system behaves the same.
    `rounds=["Prepare", "Ack"]` is the order of the rounds of a phase, for messages with `@tagged`.
    `initially=lambda s: …` is true in the initial states, if not all combinations of choices of `@init` methods are meant.
    `within=lambda s: …` bounds the search: a state in which it is false is checked, but not expanded.
    `fairness=[weak(Worker)]` lists assumptions: steps that a run cannot delay for ever. Temporal properties use them. A
    process that is assumed to recover (`weak(recovery(Worker))`) is not at its end while it is down.
    `drift=1` lets the clocks of different processes be up to one tick apart. Without drift, all advance at once.
    `views=[ring]` lists functions with `@view`, which draw a state for people. They have no influence on a search.
    """

    def __init__(
        self,
        processes: Iterable[Process],
        *,
        network: Network | None = None,
        faults: Iterable[Crash] = (),
        monitors: Iterable[Monitor] = (),
        properties: Iterable[Property] = (),
        spare: Mapping[type[Process], int] | None = None,
        symmetric: Iterable[type[Process]] = (),
        rotations: Iterable[type[Process]] = (),
        rounds: Sequence[str] | None = None,
        fairness: Iterable[Fairness] = (),
        initially: Callable[[View], object] | None = None,
        within: Callable[[View], object] | None = None,
        drift: int | None = 0,
        views: Iterable[Drawing] = (),
        name: str = "system",
    ) -> None:
        self.name = name
        self.target: str | None = None
        """The target of `plait check` for this system. The loader sets it."""
        self.parameters: dict[str, Any] = {}
        self.processes = _list_of(processes, Process, "processes")
        self.network = network if network is not None else unordered()
        self.faults = _list_of(faults, Crash, "faults")
        self.monitors = _list_of(monitors, Monitor, "monitors")
        self.properties: list[Property] = distinct(_list_of(properties, Property, "properties"))
        self.views: list[Drawing] = _list_of(views, Drawing, "views")
        """What draws states for people."""
        self.fairness = assumptions(fairness, "System")
        """The assumptions of temporal properties."""
        self.initially = condition("initially", initially)
        """Which combinations of choices of `@init` methods are initial states; None: all."""
        self.within = condition("within", within)
        """Which states are expanded; None: all."""
        self.spare = dict(spare or {})
        if not isinstance(self.network, Network):
            hint = "use unordered(), duplicating(), fifo() or mailbox()"
            raise ModelError(f"network={network!r} is not a network", hint=hint)
        if not self.processes:
            raise ModelError("a System needs at least one process", hint="write for example System([Ping(), Pong()])")
        self.classes: list[type[Process]] = [type(p) for p in self.processes]
        for role, count in self.spare.items():
            if not (isinstance(role, type) and issubclass(role, Process)) or not isinstance(count, int) or count < 0:
                raise ModelError(
                    f"spare={{{role!r}: {count!r}}}: expected a Process class and a number of slots",
                    hint="write for example spare={Worker: 2} for two spare slots",
                )
            self.classes += [role] * count
        self.pids = self._number()
        self.index = {pid: i for i, pid in enumerate(self.pids)}
        self._members: dict[tuple[type[Process], bool], list[int]] = {}
        self._ids: dict[type[Process], tuple[Pid, ...]] = {}
        for process, pid in zip(self.processes, self.pids, strict=False):
            process.__dict__["_id"] = pid
        self.shared: list[Shared] = self._find_shared()
        """The shared objects that processes hold, in the order in which they are found."""
        self.cells: list[Cell] = [
            Cell(shared.__dict__["_id"], name) for shared in self.shared for name in shared.__plait_fields__
        ]
        """The fields of shared objects. Their positions follow those of the processes."""
        covered: dict[int, type[Process]] = {}
        self.symmetric: list[type[Process]] = self._check_symmetric("symmetric", symmetric, covered)
        """Roles with interchangeable processes."""
        self.rotations: list[type[Process]] = self._check_symmetric("rotations", rotations, covered)
        """Roles whose processes form a ring."""
        self.rounds: list[str] = check_rounds(rounds, self._consumed())
        """The rounds of a phase, in their order. Empty if messages have no tags."""
        self.drift = 0 if drift is None else drift
        """By how many ticks clocks of different processes may be apart. 0: all of them tick at once."""
        self._check_shared()
        self._check_loose()
        self._check_clocks()
        self._check_quorums()
        self._check_names()
        self._check_quantified()

    def members(self, role: type[Process], *, spares: bool = False) -> list[int]:
        """The positions of the processes of a role: of its class, of subclasses, and of classes with `role=`."""
        found = self._members.get((role, spares))
        if found is None:
            count = len(self.classes) if spares else len(self.processes)
            found = self._members[role, spares] = [i for i in range(count) if plays(self.classes[i], role)]
        return found

    def ids(self, role: type[Process]) -> tuple[Pid, ...]:
        """The addresses of the processes of a role, without those that may be spawned."""
        found = self._ids.get(role)
        if found is None:
            found = self._ids[role] = tuple(self.pids[i] for i in self.members(role))
        return found

    def may_recover(self, position: int) -> bool:
        """Whether the process may crash and recover."""
        cls = self.classes[position]
        roles = (fault.roles for fault in self.faults if fault.recovers)
        return any(not some or any(plays(cls, role) for role in some) for some in roles)

    @property
    def returning(self) -> list[bool]:
        """Per process, whether it is assumed to recover when it is down. Then its recovery counts as a step."""
        roles = [one.role for one in self.fairness if one.recovers and one.role is not None]
        return [
            self.may_recover(position) and any(plays(cls, role) for role in roles)
            for position, cls in enumerate(self.classes)
        ]

    def quorum_size(self, quorum: Quorum) -> int:
        """How many messages a quorum needs in this system."""
        return quorum.resolve(len(self.members(quorum.role)))

    def handlers(self) -> list[tuple[type[Process], Handler]]:
        """All handlers of all classes, in the order of the processes."""
        return [(c, h) for c in dict.fromkeys(self.classes) for h in c.__plait_handlers__]

    @property
    def ticking(self) -> list[int]:
        """The positions of processes that have a tick of their own: with drift, all that have clocks.

        Without drift there is one tick of all processes. It is counted as one of the first process that has clocks.
        """
        timed = [position for position, cls in enumerate(self.classes) if cls.__plait_clocks__]
        return timed if self.drift else timed[:1]

    def _consumed(self) -> Iterator[tuple[str, type[Message]]]:
        for cls, handler in self.handlers():
            for message in handler.messages:
                yield f"{cls.__name__}.{handler.name}", message

    def _number(self) -> list[Pid]:
        counts: dict[str, int] = {}
        owner: dict[str, type[Process]] = {}
        pids = []
        for cls in self.classes:
            name = cls.__name__
            if owner.setdefault(name, cls) is not cls:
                raise ModelError(f"two different process classes are called {name}", hint="rename one of them")
            pids.append(Pid(name, counts.get(name, 0)))
            counts[name] = counts.get(name, 0) + 1
        return pids

    def _find_shared(self) -> list[Shared]:
        """Number the shared objects. They belong to this System from now on."""
        found: dict[int, Shared] = {}
        waiting: list[Any] = list(self.processes)
        while waiting:
            holder = waiting.pop(0)
            for name in holder.__plait_fields__:
                for value in _shared_in(holder.__dict__.get(name)):
                    if id(value) not in found:
                        found[id(value)] = value
                        waiting.append(value)
        counts: dict[str, int] = {}
        classes: dict[str, type] = {cls.__name__: cls for cls in self.classes}
        for shared in found.values():
            name = type(shared).__name__
            if classes.setdefault(name, type(shared)) is not type(shared):
                raise ModelError(f"two different classes are called {name}", hint="rename one of them")
            pid = Pid(name, counts.get(name, 0))
            if shared.__dict__.get("_id", pid) != pid:
                raise ModelError(
                    f"{pid!r} is {shared.__dict__['_id']!r} of another System",
                    hint="make new shared objects for each System, in a function that returns the System",
                )
            shared.__dict__.update(_id=pid, _memory=OUTSIDE)
            counts[name] = counts.get(name, 0) + 1
        return list(found.values())

    def shared_class(self, cell: Cell) -> type[Shared]:
        """The class of a shared field."""
        return next(type(shared) for shared in self.shared if shared.__dict__["_id"] == cell.shared)

    def _check_loose(self) -> None:
        """Refuse a shared object that steps use, but no process holds: it would be an ordinary global variable."""
        for cls in dict.fromkeys(self.classes):
            for base in cls.__mro__:
                for name, value in base.__dict__.items():
                    if isinstance(value, Shared) and name not in cls.__plait_fields__:
                        hint = f"annotate it: {name}: {type(value).__name__}, and give one object to all that share it"
                        raise ModelError(f"{cls.__name__}.{name} is a shared object, but no field", hint=hint)
        uses = [
            (f"{cls.__name__}.{h.name}", one) for cls, h in self.handlers() for one in (h.function, h.where, h.accept)
        ]
        uses += [(f"property {prop.name}", prop.function) for prop in self.properties]
        uses += [(f"view {drawing.name}", drawing.function) for drawing in self.views]
        for place, function in uses:
            for name, value in loose(function):
                raise ModelError(
                    f"{place} uses {name}, a shared object that no process of the System holds",
                    hint=f"give it to a field ({name.lower()}: {type(value).__name__}), and use self.{name.lower()}",
                )

    def _check_shared(self) -> None:
        """Refuse a mutable object that two processes hold: it would not be shared, each process would get a copy."""
        seen: dict[int, str] = {}
        for process in (*self.processes, *self.shared):
            for name in process.__plait_fields__:
                place = f"{process.__dict__['_id']}.{name}"
                if name not in process.__dict__:
                    raise ModelError(
                        f"the field {place} has no value",
                        hint="__init__ and __post_init__ must set every field; a property or descriptor cannot be a field",
                    )
                for value in _mutable(process.__dict__[name]):
                    if seen.setdefault(id(value), place) != place:
                        raise ModelError(
                            f"{seen[id(value)]} and {place} hold the same {type(value).__name__} object",
                            hint="give each its own copy, or put the value into a field of a Shared object",
                        )

    def _check_clocks(self) -> None:
        for process in self.processes:
            declared = process.__plait_clocks__
            for name in process.__plait_fields__:
                value = process.__dict__[name]
                if (type(value) is Clock) != (name in declared):
                    what = f"is a clock, but has the value {value!r}"
                    hint = "give it a Clock(), or annotate it with another type"
                    if name not in declared:
                        what, hint = "has a Clock as its value", f"annotate it: {name}: Clock = Clock()"
                    raise ModelError(f"the field {process.id}.{name} {what}", hint=hint)
        urgent = [f"{cls.__name__}.{handler.name}" for cls, handler in self.handlers() if handler.urgent]
        if isinstance(self.drift, bool) or not isinstance(self.drift, int) or not 0 <= self.drift <= MOST_DRIFT:
            raise ModelError(
                f"System: drift={self.drift!r}: expected a number of ticks from 0 to {MOST_DRIFT}",
                hint="drift=1 lets clocks of different processes be one tick apart",
            )
        if not self.ticking and (urgent or self.drift):
            what = f"{urgent[0]} is urgent" if urgent else f"drift={self.drift}"
            raise ModelError(
                f"System: {what}, but no process has a clock: there is no tick",
                hint="declare a clock in a process (lease: Clock = Clock()), or leave this out",
            )

    def _check_symmetric(self, option: str, given: Any, covered: dict[int, type[Process]]) -> list[type[Process]]:
        try:
            roles = list(given)
        except TypeError:
            raise ModelError(f"System: {option}={given!r} is not a list", hint=f"write {option}=[Acceptor]") from None
        for role in roles:
            if not (isinstance(role, type) and issubclass(role, Process)):
                raise ModelError(
                    f"System: {role!r} in {option} is not a Process class", hint=f"give classes: {option}=[Acceptor]"
                )
            members = self.members(role)
            if len(members) < 2:
                count = f"only {self.pids[members[0]]!r}" if members else "no process"
                raise ModelError(
                    f"System: {option}=[{role.__name__}], but {count} has this role",
                    hint=f"leave {role.__name__} out: symmetry needs at least two processes",
                )
            if slots := [c.__name__ for c, count in self.spare.items() if count and plays(c, role)]:
                raise ModelError(
                    f"System: {option}=[{role.__name__}], but {slots[0]} has spare slots",
                    hint=f"leave {role.__name__} out: spare slots are used in order, so they are not interchangeable",
                )
            classes = list(dict.fromkeys(self.classes[i] for i in members))
            if option == "rotations" and len(classes) > 1:
                raise ModelError(
                    f"System: rotations=[{role.__name__}], but {self.pids[members[0]]!r} and the others are not all of "
                    f"one class: {', '.join(c.__name__ for c in classes)}",
                    hint=f"leave {role.__name__} out: only processes of one class can take each other's places",
                )
            for i in members:
                if i in covered:
                    raise ModelError(
                        f"System: {self.pids[i]!r} has two symmetric roles, {covered[i].__name__} and {role.__name__}",
                        hint="keep one of them",
                    )
                covered[i] = role
        return roles

    def _check_quorums(self) -> None:
        for cls, handler in self.handlers():
            where, quorum = f"{cls.__name__}.{handler.name}", handler.size
            if handler.quorum is not None and self.network.kind == "mailbox":
                raise ModelError(
                    f"{where}: a mailbox is taken message by message, and this handler takes a quorum",
                    hint="count the messages in a field, or use unordered() or fifo()",
                )
            if isinstance(quorum, Quorum):
                members, size = len(self.members(quorum.role)), self.quorum_size(quorum)
                if size < 1 or (size > members and (handler.distinct or not members)):
                    raise ModelError(
                        f"{where}: a quorum of {size} {quorum.role.__name__}, but the system has {members}",
                        hint="the handler could never run: lower the quorum or add processes",
                    )
                if handler.most(size) < size:
                    raise ModelError(
                        f"{where}: a quorum of at least {size} and at most {handler.most(size)} messages",
                        hint="the handler could never run: give most= a larger number",
                    )
            elif isinstance(quorum, int) and handler.distinct and quorum > len(self.classes):
                raise ModelError(
                    f"{where}: a quorum of {quorum} senders, but the system has {len(self.classes)} processes",
                    hint="the handler could never run: lower the quorum, add processes, or allow distinct=False",
                )

    def _check_names(self) -> None:
        for kind, names in (
            ("property", [p.name for p in self.properties]),
            ("monitor", [type(m).__name__ for m in self.monitors]),
            ("view", [drawing.name for drawing in self.views]),
        ):
            for name in names:
                if kind == "property" and name in BUILT_IN:
                    raise ModelError(
                        f"a property is called {name!r}, which is the name of a built-in property",
                        hint="give it another name: always(…, name=…)",
                    )
                if names.count(name) > 1:
                    hint = "make a subclass of one of them" if kind == "monitor" else "give one another name: name=…"
                    raise ModelError(f"two {kind} definitions are called {name!r}", hint=hint)

    def _check_quantified(self) -> None:
        for prop in self.properties:
            over = prop.quantified
            if over is not None and not self.members(over.role, spares=True):
                option = "each" if over.count == 1 else "pairs"
                roles = ", ".join(cls.__name__ for cls in dict.fromkeys(self.classes))
                raise ModelError(
                    f"property {prop.name}: {option}={over.role.__name__}, but the system has no {over.role.__name__}",
                    hint=f"its roles are: {roles}; leave the property out, or add a {over.role.__name__}",
                )

    def __repr__(self) -> str:
        return f"System({self.name}: {', '.join(map(repr, self.pids))}; {self.network})"


def _shared_in(value: Any, depth: int = 20) -> Iterator[Shared]:
    """The shared objects that a value refers to."""
    if isinstance(value, Shared):
        yield value
    elif depth and isinstance(value, list | tuple | set | frozenset):
        inner = [found for part in value for found in _shared_in(part, depth - 1)]
        if len(inner) > 1 and isinstance(value, set | frozenset):
            raise ModelError("a set of shared objects gives them no order", hint="hold them in a tuple or a list")
        yield from inner
    elif depth and isinstance(value, dict):
        for key, part in value.items():
            yield from _shared_in(key, depth - 1)
            yield from _shared_in(part, depth - 1)
    elif depth and dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _shared_in(getattr(value, field.name, None), depth - 1)


def _mutable(value: Any, depth: int = 20) -> Iterator[Any]:
    """The objects inside a value that a handler can change in place."""
    if isinstance(value, Shared):
        return
    record = dataclasses.is_dataclass(value) and not isinstance(value, type)
    if isinstance(value, list | dict | set | deque | Clock) or (record and not value.__dataclass_params__.frozen):
        yield value
    inner: Iterable[Any] = ()
    if isinstance(value, list | tuple | deque):
        inner = value
    elif isinstance(value, dict):
        inner = value.values()
    elif record:
        inner = [getattr(value, f.name, None) for f in dataclasses.fields(value)]
    if depth:  # a value that contains itself is refused later, by an error that names its field
        for part in inner:
            yield from _mutable(part, depth - 1)


def plays(cls: type[Process], role: type[Process]) -> bool:
    """Whether processes of a class have this role."""
    return issubclass(cls, role) or (cls.__plait_role__ is not None and issubclass(cls.__plait_role__, role))


def selected(system: System, names: Sequence[str] | None) -> list[Property]:
    """The properties with these names; all properties if `names` is None. An unknown name raises a UsageError.

    The names of built-in properties are accepted, but they are in no list: these properties are always checked.
    """
    known = {p.name: p for p in system.properties}
    for name in names or ():
        if name not in known and name not in BUILT_IN:
            raise UsageError(
                f"{system.name} has no property {name!r}", hint=f"its properties are: {', '.join([*known, *BUILT_IN])}"
            )
    return list(system.properties) if names is None else [known[name] for name in names if name in known]


def with_properties(system: System, properties: list[Property]) -> System:
    """A copy of the system with other properties."""
    copy = System.__new__(System)
    copy.__dict__.update(system.__dict__)
    copy.properties = properties
    return copy


def with_network(system: System, network: Network) -> System:
    """A copy of the system with another network."""
    copy = System.__new__(System)
    copy.__dict__.update(system.__dict__)
    copy.network = network
    return copy


def _list_of(values: Any, kind: type, what: str) -> list[Any]:
    try:
        result = list(values)
    except TypeError:
        raise ModelError(f"System: {what}={values!r} is not a list", hint=f"give a list of {kind.__name__}") from None
    for value in result:
        if not isinstance(value, kind):
            hint = {
                Property: "decorate the function with @always, @reachable or @final; wrap a formula in ltl(…)",
                Process: "give instances: Acceptor(), not Acceptor",
                Monitor: "give instances: History(), not History",
                Drawing: "decorate the function with @view",
                Crash: "use crash_stop(Role, budget=1) or crash_recovery(Role, budget=1)",
            }[kind]
            raise ModelError(f"System: {value!r} in {what} is not a {kind.__name__}", hint=hint)
    return result
