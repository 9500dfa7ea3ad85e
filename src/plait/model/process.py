"""What a user writes: a Process with fields and handlers.

    class Acceptor(Process):
        promised: int = 0

        @on(Prepare, where=lambda self, m: m.ballot > self.promised)
        def prepare(self, m):
            self.promised = m.ballot
            self.send(m.sender, Promise(m.ballot))

A handler runs on a private copy of the fields, and may change it freely. One handler runs at a time. The decorators
only record the trigger of a handler; `plait.check` decides when the handler runs.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, dataclass_transform, overload

from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid
from plait.model.clock import own_clocks
from plait.model.message import Message
from plait.model.quorum import MANY, AtLeast, Quorum, Size, check_size

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
P = TypeVar("P")
R = TypeVar("R")
M = TypeVar("M", bound=Message)

Status = Literal["up", "crashed", "down", "unborn"]
"""Of a process in a state: it runs, has crashed forever, is down until it recovers, or is a spare slot."""
_RESERVED = ("id", "status", "crashed", "inbox")
"""Names that every process has for properties (`plait.model.view`). A field of this name could not be read."""


@dataclasses.dataclass(frozen=True)
class Handler:
    """A handler of a process, as its decorator declares it. All its transitions run this method."""

    name: str
    kind: Literal["action", "message", "init", "recovery"]
    function: Callable[..., Any]
    messages: tuple[type[Message], ...] = ()
    """The classes of messages that it takes; empty for an action."""
    where: Callable[..., Any] | None = None
    quorum: Size | AtLeast | None = None
    same: tuple[str, ...] = ()
    accept: Callable[..., Any] | None = None
    """A guard over the whole set of messages."""
    distinct: bool = True
    """The messages of one step have different senders."""
    urgent: bool = False
    """While it is enabled, time stands still."""

    @property
    def message(self) -> type[Message] | None:
        """The class of its messages; None for an action, and for a handler of several classes."""
        return self.messages[0] if len(self.messages) == 1 else None

    @property
    def message_names(self) -> str:
        """The names of the classes of its messages, as text."""
        return " or ".join(message.__name__ for message in self.messages)

    @property
    def size(self) -> Size:
        """How many messages it takes at least."""
        quorum = self.quorum.size if isinstance(self.quorum, AtLeast) else self.quorum
        return 1 if quorum is None else quorum

    @property
    def role(self) -> type[Process] | None:
        """The role of the senders, if the quorum names one."""
        return self.size.role if isinstance(self.size, Quorum) else None

    def most(self, least: int) -> int:
        """How many messages it takes at most, if it takes at least so many."""
        if not isinstance(self.quorum, AtLeast):
            return least
        return MANY if self.quorum.most is None else self.quorum.most

    @property
    def trigger(self) -> str:
        """The trigger as text, for `plait show`."""
        if self.kind != "message":
            return f"@{self.kind}{'(urgent)' if self.urgent else ''}"
        parts = [self.message_names]
        if self.quorum is not None:
            parts.append(f"quorum {getattr(self.quorum, '__name__', self.quorum)}")
        if self.same:
            parts.append(f"same {', '.join(self.same)}")
        if not self.distinct:
            parts.append("senders may repeat")
        if self.accept is not None:
            parts.append("accept")
        if self.urgent:
            parts.append("urgent")
        return f"@on({'; '.join(parts)})"


_MARK = "__plait_handler__"
_SUSPENDS = 0x20 | 0x80 | 0x200
"""The code flags of generators, coroutines and asynchronous generators."""


def _mark(function: F, handler: Handler) -> F:
    if not callable(function):
        raise ModelError(
            f"@{handler.kind} must decorate a method, not {function!r}", hint="write it directly above a def"
        )
    if getattr(function, "__code__", None) is not None and function.__code__.co_flags & _SUSPENDS:
        raise ModelError(
            f"{function.__qualname__} is a generator or a coroutine: calling it runs nothing",
            hint="write the handler as a plain method, without yield and async",
        )
    setattr(function, _MARK, handler)
    return function


def _callable_or_none(place: str, value: object) -> None:
    if value is not None and not callable(value):
        what = "when=lambda self: …" if place.startswith("@action") else "where=lambda self, m: …"
        what = "accept=lambda self, ms: …" if place.endswith("accept") else what
        raise ModelError(f"{place} must be a function, not {value!r}", hint=f"write {what}")


def _check_urgent(place: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ModelError(
            f"{place}: urgent={value!r}: expected True or False",
            hint="write urgent=True; when it is urgent, say in its guard",
        )


@overload
def action(function: F) -> F: ...
@overload
def action(*, when: Callable[[Any], Any] | None = None, urgent: bool = False) -> Callable[[F], F]: ...
def action(function: Any = None, *, when: Callable[[Any], Any] | None = None, urgent: bool = False) -> Any:
    """A handler that needs no message. It is enabled while `when(self)` is true; without `when`, always.

    While an `urgent` handler is enabled, there is no tick: clocks stand still (`Clock`).
    """
    _callable_or_none("@action: when", when)
    _check_urgent("@action", urgent)

    def decorate(f: F) -> F:
        return _mark(f, Handler(f.__name__, "action", f, where=when, urgent=urgent))

    return decorate if function is None else decorate(function)


@overload
def on(
    message: type[M], /, *, where: Callable[[Any, M], object] | None = None, urgent: bool = False
) -> Callable[[Callable[[P, M], R]], Callable[[P, M], R]]: ...
@overload
def on(
    message: type[M],
    /,
    *more: type[M],
    where: Callable[[Any, M], object] | None = None,
    quorum: Size | AtLeast,
    same: str | Sequence[str] = (),
    accept: Callable[[Any, tuple[M, ...]], object] | None = None,
    distinct: bool = True,
    urgent: bool = False,
) -> Callable[[Callable[[P, tuple[M, ...]], R]], Callable[[P, tuple[M, ...]], R]]: ...
def on(
    message: type[Message],
    /,
    *more: type[Message],
    where: Callable[[Any, Any], object] | None = None,
    quorum: Size | AtLeast | None = None,
    same: str | Sequence[str] = (),
    accept: Callable[[Any, Any], object] | None = None,
    distinct: bool = True,
    urgent: bool = False,
) -> Callable[[F], F]:
    """A handler that consumes a message of this type for which `where(self, m)` is true.

    With `quorum` it consumes a set of messages in one step: this number of them, or with `at_least` any larger number,
    too. The handler gets them as a tuple, in the order of their senders. `same` names the fields that must be equal in
    all of them. They have different senders, unless `distinct=False`. The guard `where` is evaluated for each message
    separately; the guard `accept(self, ms)` is evaluated for each set that all this allows. With several message types,
    a set may have messages of each of them. While an `urgent` handler can take a message, there is no tick (`Clock`).
    """
    _check_urgent(f"@on({getattr(message, '__name__', message)})", urgent)
    kinds = (message, *more)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Message)):
            raise ModelError(
                f"@on({kind!r}): expected a Message class",
                hint="define one, for example class Ping(Message): number: int",
            )
    place = f"@on({', '.join(kind.__name__ for kind in kinds)})"
    _callable_or_none(f"{place}: where", where)
    _callable_or_none(f"{place}: accept", accept)
    fields = (same,) if isinstance(same, str) else tuple(same)
    for kind in kinds:
        known = {f.name for f in dataclasses.fields(kind)}
        for name in fields:
            if name not in known:
                raise ModelError(
                    f"{place[:-1]}, same={same!r}): {kind.__name__} has no field {name!r}",
                    hint=f"its fields are: {', '.join(sorted(known)) or 'none'}",
                )
    if quorum is None:
        for given, value in (
            (bool(fields), f"same={same!r}"),
            (accept is not None, "accept=…"),
            (not distinct, "distinct=False"),
            (bool(more), ""),
        ):
            if given:
                what = f"{place[:-1]}, {value})" if value else place
                raise ModelError(
                    f"{what} has no quorum",
                    hint=f"add quorum=…, or leave {value.partition('=')[0]}= out"
                    if value
                    else "add quorum=1, or write one handler for each type",
                )
    check_size(place, quorum.size if isinstance(quorum, AtLeast) else quorum)

    def decorate(f: F) -> F:
        return _mark(f, Handler(f.__name__, "message", f, kinds, where, quorum, fields, accept, bool(distinct), urgent))

    return decorate


def init(function: F) -> F:
    """A method that runs once, before the initial state. It may send messages and choose.

    Each combination of choices of the `@init` methods of all processes is an initial state.
    """
    return _mark(function, Handler(function.__name__, "init", function))


@dataclasses.dataclass(frozen=True)
class Recovery:
    """The recovery of each process of a role, for `weak` and `strong`."""

    role: type[Process]

    def __str__(self) -> str:
        return f"recovery({self.role.__name__})"


@overload
def recovery(of: type[Process]) -> Recovery: ...
@overload
def recovery(of: F) -> F: ...
def recovery(of: Any) -> Any:
    """A decorator for the method that runs when the process recovers from a crash. The method may send messages.

    In fairness assumptions, `weak(recovery(Server))` says that a Server that is down recovers.
    """
    if isinstance(of, type):
        if not issubclass(of, Process):
            raise ModelError(
                f"recovery({of.__name__}) is not about a Process class", hint="write for example recovery(Server)"
            )
        return Recovery(of)
    return _mark(of, Handler(of.__name__, "recovery", of))


def durable(default: Any = dataclasses.MISSING, *, default_factory: Any = dataclasses.MISSING) -> Any:
    """A field that keeps its value when the process crashes: `promised: int = durable(0)`."""
    if default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=default_factory, metadata={"durable": True})
    return dataclasses.field(default=default, metadata={"durable": True})


def aux(
    default: Any = dataclasses.MISSING, *, default_factory: Any = dataclasses.MISSING, durable: bool = False
) -> Any:
    """An auxiliary field: no step and no property depends on it. `log: list[int] = aux(default_factory=list)`.

    With `check(..., reduce="decomposition")`, states that differ only in auxiliary fields count as one state. Plait
    proves that nothing depends on the field, or checks this during the search. If something depends on it, this is an
    error.
    """
    metadata = {"aux": True, "durable": durable}
    if default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=default_factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


class Run(Protocol):
    """The functions that a running handler can call. The checker implements them."""

    def send(self, to: Pid, message: Message) -> None: ...
    def announce(self, event: Any) -> None: ...
    def choose(self, options: Iterable[Any]) -> Any: ...
    def spawn(self, role: type[Process], fields: dict[str, Any]) -> Pid: ...
    def ids(self, role: type[Process]) -> tuple[Pid, ...]: ...


@dataclass_transform(kw_only_default=True)
class Process:
    """Base class of all processes. A subclass declares its fields by annotations, as a dataclass does.

    `class Liar(Process, role=Acceptor)` counts as an Acceptor for `broadcast`, `majority` and properties, but does not
    have the handlers of Acceptor. Write a Byzantine process like this.
    """

    __plait_fields__: ClassVar[tuple[str, ...]] = ()
    __plait_durable__: ClassVar[frozenset[str]] = frozenset()
    __plait_aux__: ClassVar[frozenset[str]] = frozenset()
    __plait_clocks__: ClassVar[frozenset[str]] = frozenset()
    __plait_handlers__: ClassVar[tuple[Handler, ...]] = ()
    __plait_role__: ClassVar[type[Process] | None] = None

    if TYPE_CHECKING:  # what properties read of `s[Role]`: `plait.model.view.ProcessView` has these

        @property
        def status(self) -> Status: ...
        @property
        def crashed(self) -> bool: ...
        @property
        def inbox(self) -> tuple[Message, ...]: ...

    def __init_subclass__(cls, *, role: type[Process] | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if role is not None:
            cls.__plait_role__ = role
        for name in cls.__dict__.get("__annotations__", {}):
            if name in _RESERVED or name.startswith("_"):
                raise ModelError(
                    f"{cls.__name__}.{name}: this name is reserved", hint="choose another name for the field"
                )
        for name in _RESERVED:
            if isinstance(cls.__dict__.get(name), property):
                raise ModelError(
                    f"{cls.__name__}.{name}: this name is reserved, properties would not see this one",
                    hint="choose another name for the property",
                )
        clocks = own_clocks(cls)
        try:
            dataclasses.dataclass(eq=False, repr=False, kw_only=True)(cls)
        except ValueError as error:
            raise ModelError(
                f"process {cls.__name__}: {error}",
                hint="a mutable default would be shared between processes: write field(default_factory=list)",
            ) from None
        except TypeError as error:
            raise ModelError(f"process {cls.__name__}: {error}") from None
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        cls.__plait_fields__ = tuple(f.name for f in fields)
        cls.__plait_durable__ = frozenset(f.name for f in fields if f.metadata.get("durable"))
        cls.__plait_aux__ = frozenset(f.name for f in fields if f.metadata.get("aux"))
        cls.__plait_clocks__ = cls.__plait_clocks__ - cls.__dict__.get("__annotations__", {}).keys() | clocks
        for name in sorted(cls.__plait_clocks__ & cls.__plait_aux__):
            raise ModelError(
                f"{cls.__name__}.{name} is a clock, and declared aux",
                hint="do not declare it aux: the tick depends on every clock",
            )
        cls.__plait_handlers__ = _collect(cls)
        for base in cls.__mro__:
            if base.__dict__.get("__slots__"):
                raise ModelError(
                    f"process {cls.__name__}: its base {base.__name__} has __slots__, which are no fields",
                    hint=f"remove __slots__ from {base.__name__}, and declare fields by annotations",
                )
        _check_annotations(cls, sys._getframe(1).f_locals)

    @classmethod
    def pid(cls, index: int) -> Pid:
        """The id of the process of this class with this index. Use it for fields that name other processes."""
        return Pid(cls.__name__, index)

    @property
    def id(self) -> Pid:
        """The id of this process."""
        return _own(self)["_id"]  # type: ignore[no-any-return]

    def send(self, to: Pid | Iterable[Pid], message: Message) -> None:
        """Send a message to one process, or to each of several processes."""
        run = self._running("send")
        for pid in tuple(to) if isinstance(to, Iterable) else (to,):
            run.send(pid, message)

    def broadcast(self, role: type[Process], message: Message, *, myself: bool = True) -> None:
        """Send a message to every process of a role. With `myself=False`, this process does not get it."""
        run = self._running("broadcast")
        for pid in run.ids(role):
            if myself or pid != self.id:
                run.send(pid, message)

    def ids(self, role: type[Process]) -> tuple[Pid, ...]:
        """The ids of the processes of a role, in order, without spare slots."""
        return self._running("ids").ids(role)

    def announce(self, event: Any) -> None:
        """Send an event to the monitors."""
        self._running("announce").announce(event)

    def choose(self, options: Iterable[T]) -> T:
        """Choose one of the options. The checker explores every option."""
        return self._running("choose").choose(options)  # type: ignore[no-any-return]

    def spawn(self, role: type[Process], **fields: Any) -> Pid:
        """Create a process in the next spare slot of this role, and return its id."""
        return self._running("spawn").spawn(role, fields)

    def _running(self, what: str) -> Run:
        run = _own(self).get("_run")
        if run is None:
            raise ModelError(
                f"{type(self).__name__}.{what}() was called outside of a handler",
                hint="call it in a handler: guards and properties can only read",
            )
        return run  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        fields = ", ".join(f"{n}={self.__dict__[n]!r}" for n in self.__plait_fields__ if n in self.__dict__)
        return f"{self.__dict__.get('_id', type(self).__name__)}({fields})"


def _check_annotations(cls: type[Process], around: Mapping[str, Any]) -> None:
    """Refuse a handler whose parameter is annotated with messages that its trigger does not give it."""
    for handler in cls.__plait_handlers__:
        function: Any = inspect.unwrap(handler.function)
        code = getattr(function, "__code__", None)
        if not handler.messages or code is None or code.co_argcount < 2 or handler.name not in cls.__dict__:
            continue
        annotation = getattr(function, "__annotations__", {}).get(code.co_varnames[1])
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, function.__globals__, {**around, **vars(cls)})
            except Exception:  # a name that only a type checker can resolve
                continue
        several, single = _annotated(annotation)
        expected, wrong = " | ".join(message.__name__ for message in handler.messages), single
        if handler.quorum is not None:
            expected, wrong = f"tuple[{expected}, ...]", several
        # A handler of a base class may know by its guard which subclass it gets.
        related = all(any(issubclass(c, m) or issubclass(m, c) for c in wrong) for m in handler.messages)
        if (single or several) and not related:
            shown = getattr(annotation, "__name__", annotation) if single else annotation
            raise ModelError(
                f"{cls.__name__}.{handler.name} is annotated with {shown}, but {handler.trigger} gives it {expected}",
                hint=f"write {code.co_varnames[1]}: {expected}, or change the message of @on",
            )


def _annotated(annotation: Any) -> tuple[list[type[Message]], list[type[Message]]]:
    """The Message classes of an annotation: those in a collection, and those alone."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return [], [annotation] if issubclass(annotation, Message) else []
    origin = typing.get_origin(annotation)
    if isinstance(origin, type) and issubclass(origin, Message):  # a generic message
        return [], [origin]
    several: list[type[Message]] = []
    single: list[type[Message]] = []
    for part in typing.get_args(annotation):
        inner_several, inner_single = _annotated(part)
        several += inner_several
        single += inner_single
    if origin in (typing.Union, types.UnionType, typing.Annotated):
        return several, single
    return ([*several, *single], []) if isinstance(origin, type) and issubclass(origin, Iterable) else ([], [])


def _own(process: Process) -> dict[str, Any]:
    """The attributes of a process. Looking at them does not count as a read of its fields."""
    return object.__getattribute__(process, "__dict__")  # type: ignore[no-any-return]


def _collect(cls: type[Process]) -> tuple[Handler, ...]:
    """The handlers of a class and its bases, in order. An override without decorator keeps the trigger."""
    found: dict[str, Handler] = {}
    for base in reversed(cls.__mro__):
        for name, value in base.__dict__.items():
            handler = getattr(value, _MARK, None)
            if isinstance(handler, Handler):
                found[name] = dataclasses.replace(handler, name=name, function=value)  # a decorator may have wrapped it
            elif name in found:
                if callable(value):
                    found[name] = dataclasses.replace(found[name], function=value)
                else:
                    del found[name]
    return tuple(found.values())
