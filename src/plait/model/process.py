"""What a user writes: a Process with fields and handlers.

    class Acceptor(Process):
        promised: int = 0

        @on(Prepare, where=lambda self, m: m.ballot > self.promised)
        def prepare(self, m):
            self.promised = m.ballot
            self.send(m.sender, Promise(m.ballot))

Handlers run one at a time on a private copy of the fields, which they may change freely. The decorators only record what
triggers a handler; `plait.check` decides when it runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeVar, dataclass_transform, overload

from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid
from plait.model.message import Message

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Quorum:
    """How many messages a quorum transition consumes, and whose."""

    role: type[Process]
    size: int | Literal["majority", "all"]

    def resolve(self, members: int) -> int:
        if self.size == "majority":
            return members // 2 + 1
        return members if self.size == "all" else self.size

    def __str__(self) -> str:
        return f"{self.size} of {self.role.__name__}"


def majority(role: type[Process]) -> Quorum:
    """More than half of the processes of a role."""
    return Quorum(role, "majority")


def everyone(role: type[Process]) -> Quorum:
    """All processes of a role."""
    return Quorum(role, "all")


def some(size: int, role: type[Process]) -> Quorum:
    """A fixed number of processes of a role."""
    return Quorum(role, size)


@dataclasses.dataclass(frozen=True)
class Handler:
    """One kind of transition of a process, as its decorator declared it."""

    name: str
    kind: Literal["action", "message", "init", "recovery"]
    function: Callable[..., Any]
    message: type[Message] | None = None
    where: Callable[..., Any] | None = None
    quorum: Quorum | int | Callable[[Any], int] | None = None
    same: tuple[str, ...] = ()

    @property
    def trigger(self) -> str:
        """The trigger in words, for `plait show`."""
        if self.kind != "message":
            return f"@{self.kind}"
        assert self.message is not None
        parts = [self.message.__name__]
        if self.quorum is not None:
            parts.append(f"quorum {getattr(self.quorum, '__name__', self.quorum)}")
        if self.same:
            parts.append(f"same {', '.join(self.same)}")
        return f"@on({'; '.join(parts)})"


_MARK = "__plait_handler__"
_SUSPENDS = 0x20 | 0x80 | 0x200
"""The code flags of generators, coroutines and asynchronous generators."""


def _mark(function: F, handler: Handler) -> F:
    if not callable(function):
        raise ModelError(f"@{handler.kind} must decorate a method, not {function!r}")
    if getattr(function, "__code__", None) is not None and function.__code__.co_flags & _SUSPENDS:
        raise ModelError(
            f"{function.__qualname__} is a generator or a coroutine: calling it runs nothing",
            hint="a handler is a plain method that runs to its end: no yield, no async",
        )
    setattr(function, _MARK, handler)
    return function


def _callable_or_none(place: str, value: object) -> None:
    if value is not None and not callable(value):
        what = "when=lambda self: …" if place.startswith("@action") else "where=lambda self, m: …"
        raise ModelError(f"{place} must be a function, not {value!r}", hint=f"write {what}")


@overload
def action(function: F) -> F: ...
@overload
def action(*, when: Callable[[Any], Any] | None = None) -> Callable[[F], F]: ...
def action(function: Any = None, *, when: Callable[[Any], Any] | None = None) -> Any:
    """A transition that needs no message: enabled while `when(self)` is true (always, without a guard)."""
    _callable_or_none("@action: when", when)

    def decorate(f: F) -> F:
        return _mark(f, Handler(f.__name__, "action", f, where=when))

    return decorate if function is None else decorate(function)


def on(
    message: type[Message],
    *,
    where: Callable[[Any, Any], Any] | None = None,
    quorum: Quorum | int | Callable[[Any], int] | None = None,
    same: str | Sequence[str] = (),
) -> Callable[[F], F]:
    """A transition that consumes a message of this type for which `where(self, m)` holds.

    With `quorum` it consumes that many messages from distinct senders at once, and the handler gets them as a tuple in
    the order of their senders; `same` names fields in which they must agree. The guard is asked for each message alone.
    """
    if not (isinstance(message, type) and issubclass(message, Message)):
        raise ModelError(f"@on({message!r}): expected a Message class", hint="class Ping(Message): number: int")
    _callable_or_none(f"@on({message.__name__}): where", where)
    fields = (same,) if isinstance(same, str) else tuple(same)
    known = {f.name for f in dataclasses.fields(message)}  # type: ignore[arg-type]
    for name in fields:
        if name not in known:
            raise ModelError(
                f"@on({message.__name__}, same={same!r}): {message.__name__} has no field {name!r}",
                hint=f"its fields are: {', '.join(sorted(known)) or 'none'}",
            )
    if fields and quorum is None:
        raise ModelError(f"@on({message.__name__}, same={same!r}) has no quorum", hint="same= goes with quorum=")
    if isinstance(quorum, bool) or (isinstance(quorum, int) and quorum < 1):
        raise ModelError(f"@on({message.__name__}): quorum={quorum!r}", hint="a quorum is at least 1")

    def decorate(f: F) -> F:
        return _mark(f, Handler(f.__name__, "message", f, message, where, quorum, fields))

    return decorate


def init(function: F) -> F:
    """A method that runs once, before the initial state, and may send."""
    return _mark(function, Handler(function.__name__, "init", function))


def recovery(function: F) -> F:
    """A method that runs when the process comes back from a crash, and may send."""
    return _mark(function, Handler(function.__name__, "recovery", function))


def durable(default: Any = dataclasses.MISSING, *, default_factory: Any = dataclasses.MISSING) -> Any:
    """A field that survives a crash: `promised: int = durable(0)`."""
    if default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=default_factory, metadata={"durable": True})
    return dataclasses.field(default=default, metadata={"durable": True})


def aux(
    default: Any = dataclasses.MISSING, *, default_factory: Any = dataclasses.MISSING, durable: bool = False
) -> Any:
    """A field that what happens does not depend on: `log: list[int] = aux(default_factory=list)`.

    With `check(..., reduce="decomposition")` states that differ in auxiliary fields only count as one. Plait proves that
    nothing depends on them, or watches that nothing does; a field that turns out to matter is an error.
    """
    metadata = {"aux": True, "durable": durable}
    if default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=default_factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


class Run(Protocol):
    """What a running handler may ask for; the checker provides it."""

    def send(self, to: Pid, message: Message) -> None: ...
    def announce(self, event: Any) -> None: ...
    def choose(self, options: Iterable[Any]) -> Any: ...
    def spawn(self, role: type[Process], fields: dict[str, Any]) -> Pid: ...
    def ids(self, role: type[Process]) -> tuple[Pid, ...]: ...


@dataclass_transform(kw_only_default=True)
class Process:
    """Base of all processes; a subclass declares its fields by annotations, like a dataclass with keyword arguments.

    `class Liar(Process, role=Acceptor)` counts as an Acceptor (for `broadcast`, `majority`, properties) without having
    its handlers: the way to write a Byzantine process.
    """

    __plait_fields__: ClassVar[tuple[str, ...]] = ()
    __plait_durable__: ClassVar[frozenset[str]] = frozenset()
    __plait_aux__: ClassVar[frozenset[str]] = frozenset()
    __plait_handlers__: ClassVar[tuple[Handler, ...]] = ()
    __plait_role__: ClassVar[type[Process] | None] = None

    def __init_subclass__(cls, *, role: type[Process] | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if role is not None:
            cls.__plait_role__ = role
        for name in cls.__dict__.get("__annotations__", {}):
            if name == "id" or name.startswith("_"):
                raise ModelError(
                    f"{cls.__name__}.{name}: this name is reserved", hint="choose another name for the field"
                )
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
        cls.__plait_handlers__ = _collect(cls)

    @classmethod
    def pid(cls, index: int) -> Pid:
        """The id of the index-th process of this class: for fields that name other processes."""
        return Pid(cls.__name__, index)

    @property
    def id(self) -> Pid:
        """This process's own id."""
        return _own(self)["_id"]  # type: ignore[no-any-return]

    def send(self, to: Pid | Iterable[Pid], message: Message) -> None:
        """Send a message to one process, or to each of several."""
        run = self._running("send")
        for pid in tuple(to) if isinstance(to, Iterable) else (to,):
            run.send(pid, message)

    def broadcast(self, role: type[Process], message: Message, *, myself: bool = True) -> None:
        """Send a message to every process of a role (with `myself=False`, to every other)."""
        run = self._running("broadcast")
        for pid in run.ids(role):
            if myself or pid != self.id:
                run.send(pid, message)

    def ids(self, role: type[Process]) -> tuple[Pid, ...]:
        """The ids of the processes of a role, in order (spare slots not included)."""
        return self._running("ids").ids(role)

    def announce(self, event: Any) -> None:
        """Tell the monitors that something happened."""
        self._running("announce").announce(event)

    def choose(self, options: Iterable[T]) -> T:
        """A nondeterministic choice: every option is explored."""
        return self._running("choose").choose(options)  # type: ignore[no-any-return]

    def spawn(self, role: type[Process], **fields: Any) -> Pid:
        """Create a process in the next spare slot of this role, and return its id."""
        return self._running("spawn").spawn(role, fields)

    def _running(self, what: str) -> Run:
        run = _own(self).get("_run")
        if run is None:
            raise ModelError(
                f"{type(self).__name__}.{what}() was called outside of a handler",
                hint="guards and properties only look; handlers act",
            )
        return run  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        fields = ", ".join(f"{n}={self.__dict__[n]!r}" for n in self.__plait_fields__ if n in self.__dict__)
        return f"{self.__dict__.get('_id', type(self).__name__)}({fields})"


def _own(process: Process) -> dict[str, Any]:
    """The attributes of a process, looked at without counting as a read of its fields."""
    return object.__getattribute__(process, "__dict__")  # type: ignore[no-any-return]


def _collect(cls: type[Process]) -> tuple[Handler, ...]:
    """Handlers of the class and its bases, in order of definition; an undecorated override keeps the trigger."""
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
