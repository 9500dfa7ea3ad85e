"""The view of a global state that a property reads. It records the reads.

It records the *components* in the order of their first reads, because a property is evaluated once per tuple of the
values of the components that it reads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NoReturn, TypeVar, overload

from plait.kernel.errors import Argument, ModelError
from plait.kernel.pid import Pid
from plait.model.message import Message
from plait.model.monitor import Monitor
from plait.model.process import Process, Status
from plait.model.shared import Shared, reference
from plait.model.system import Cell, System

Component = tuple[Literal["field", "inbox", "monitor", "cell"], int, str | None]
"""A part of a state that a property reads: a field of a process (None: its status), its inbox, a monitor, or a field of a
shared object."""
P = TypeVar("P", bound=Process)
M = TypeVar("M", bound=Monitor)
S = TypeVar("S", bound=Shared)


_KEPT = """
__init__ __new__ __post_init__ __del__ __getattr__ __getattribute__ __setattr__ __delattr__ __init_subclass__
__class_getitem__ __set_name__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __replace__ __dir__ __sizeof__
__annotate__ __annotate_func__
"""
VIEW_KEEPS = frozenset(_KEPT.split())
"""Special methods of a process that do not concern a view of it."""


class NoFieldError(ModelError, AttributeError):
    """A property reads an attribute that the class does not have. `getattr` with a default and `hasattr` catch it."""


class ProcessView:
    """One process, read-only: its fields as attributes, `id`, `crashed`, `inbox`, and what its class defines.

    A method of the class runs with the view as `self`. So what it reads is recorded, and what it writes is refused.
    """

    __slots__ = ("_index", "_view")

    _view: View
    _index: int

    def __init__(self, view: View, index: int) -> None:
        object.__setattr__(self, "_view", view)
        object.__setattr__(self, "_index", index)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Its role, so that `isinstance(p, Role)` and `match` see it."""
        return self._view.system.classes[self._index]

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise ModelError(
            f"the property changes the state it looks at: {self.id}.{name}", hint="move the change into a handler"
        )

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def _running(self, what: str) -> NoReturn:
        """Called by `send` and the other methods of Process that need a running handler."""
        raise ModelError(
            f"the property calls {self.id}.{what}()", hint="only a handler can: guards and properties can only read"
        )

    @property
    def id(self) -> Pid:
        return self._view.system.pids[self._index]

    @property
    def status(self) -> Status:
        """'up', 'crashed' (for ever), 'down' (until it recovers) or 'unborn' (a spare slot that is not used yet)."""
        self._view.reads["field", self._index, None] = None
        return self._view.local(self._index)[0]

    @property
    def crashed(self) -> bool:
        return self.status in ("crashed", "down")

    @property
    def inbox(self) -> tuple[Message, ...]:
        """The pending messages of this process."""
        self._view.reads["inbox", self._index, None] = None
        return self._view.inbox(self._index)

    def __getattr__(self, name: str) -> Any:
        view = self._view
        cls = view.system.classes[self._index]
        if name not in cls.__plait_fields__:
            return class_attribute(self, cls, name)
        status, fields = view.local(self._index)
        if self._index >= len(view.system.processes):  # only a process of a spare slot can be unborn
            view.reads["field", self._index, None] = None
        view.reads["field", self._index, name] = None
        if name in view.auxiliary.get(cls, ()):
            raise _auxiliary(cls, name)
        if status == "unborn":
            raise ModelError(f"{self.id} has no {name} yet: it is unborn", hint="read its status first, or use s[Role]")
        return fields[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProcessView) and other._index == self._index

    def __hash__(self) -> int:
        return hash(self._index)

    def __repr__(self) -> str:
        return repr(self.id)


def class_attribute(process: Any, cls: type[Process], name: str) -> Any:
    """What the class of a process defines besides fields: a method with the view of the process as `self`, a constant."""
    special = name.startswith("__") and name.endswith("__")
    base = next((b for b in cls.__mro__[:-1] if name in b.__dict__ and not special), None)
    if base is None:
        raise NoFieldError(
            f"{cls.__name__} has no field {name!r}",
            hint=f"its fields are: {', '.join(cls.__plait_fields__) or 'none'}",
        )
    found = base.__dict__[name]
    if isinstance(found, functools.cached_property):
        raise ModelError(
            f"the property reads {cls.__name__}.{name}, a cached_property, which changes the process",
            hint=f"make {name} a property",
        )
    return found.__get__(process, cls) if hasattr(type(found), "__get__") else found


@functools.lru_cache(maxsize=256)
def view_class(cls: Any, view: type) -> type[Any]:
    """The class of views of a process class: it has the special methods (`__eq__`, `__len__`) that the user defined."""
    bases = [base for base in reversed(cls.__mro__) if base not in (Process, object)]
    defined = {name: value for base in bases for name, value in base.__dict__.items() if name not in VIEW_KEEPS}
    special = {
        name: value
        for name, value in defined.items()
        if name.startswith("__") and name.endswith("__") and (callable(value) or name == "__hash__")
    }
    return type(view.__name__, (view,), {"__slots__": (), **special}) if special else view


def _auxiliary(cls: type[Process] | type[Shared], name: str) -> ModelError:
    if issubclass(cls, Process) and name in cls.__plait_aux__:
        return ModelError(
            f"{cls.__name__}.{name} is declared aux, but the property reads it",
            hint=(f"do not declare {name} aux, or check without ", Argument("reduce", "decomposition")),
        )
    return ModelError(
        f"the analysis of the source found {cls.__name__}.{name} to be auxiliary, but the property reads it",
        hint=("use ", Argument("decomposition", "declared"), ", and report this bug of the analysis"),
    )


class View:
    """A global state: `s[Role]` and `s[pid]` are processes, `s[Audit]` is a monitor, `s.messages` is what is pending.

    `s[Store]` is a shared object. The functions get the value of a component by its position: (status, fields), pending
    messages, a monitor, a field of a shared object.
    """

    def __init__(
        self,
        system: System,
        local: Callable[[int], tuple[Status, dict[str, Any]]],
        inbox: Callable[[int], tuple[Message, ...]],
        monitor: Callable[[int], Monitor],
        auxiliary: Mapping[type[Process] | type[Shared], frozenset[str]] | None = None,
        *,
        cell: Callable[[int], Any] | None = None,
    ) -> None:
        self.system = system
        self._cell = cell
        self.local, self.inbox, self.monitor = local, inbox, monitor
        self.auxiliary = auxiliary or {}
        """Fields without a value in this view. Reading one is an error."""
        self.reads: dict[Component, None] = {}
        """The components that were read, in the order of their first reads."""

    def check_relevant(self) -> None:
        """Raise if an auxiliary field was read, even if the property caught the error."""
        for kind, index, name in self.reads:
            if kind == "field" and name is not None:
                cls = self.system.classes[index]
                if name in self.auxiliary.get(cls, ()):
                    raise _auxiliary(cls, name)
            elif kind == "cell":
                self._require_relevant(index)

    def _require_relevant(self, number: int) -> None:
        """Refuse to read an auxiliary shared field."""
        cell = self.system.cells[number]
        if self.auxiliary and cell.name in self.auxiliary.get(cls := self.system.shared_class(cell), ()):
            raise _auxiliary(cls, cell.name)

    @overload
    def __getitem__(self, key: type[P]) -> tuple[P, ...]: ...
    @overload
    def __getitem__(self, key: type[M]) -> M: ...
    @overload
    def __getitem__(self, key: type[S]) -> S: ...
    @overload
    def __getitem__(self, key: Pid) -> ProcessView: ...
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Pid):
            if key not in self.system.index:
                raise ModelError(f"the system has no process {key!r}", hint=f"it has: {self.system.pids}")
            return self._process(self.system.index[key])
        if isinstance(key, type) and issubclass(key, Process):
            if not self.system.members(key, spares=True):
                roles = ", ".join(cls.__name__ for cls in dict.fromkeys(self.system.classes))
                raise ModelError(
                    f"the system has no {key.__name__}: s[{key.__name__}] has no process",
                    hint=f"its roles are: {roles}; if a role may be absent, use s.get({key.__name__})",
                )
            return self.get(key)
        if isinstance(key, type) and issubclass(key, Monitor):
            for i, monitor in enumerate(self.system.monitors):
                if isinstance(monitor, key):
                    self.reads["monitor", i, None] = None
                    return self.monitor(i)
        if isinstance(key, type) and issubclass(key, Shared):
            return self._shared(key)
        raise ModelError(
            f"the view has no {key!r}",
            hint="use s[Role], s[pid], s[MonitorClass] for a monitor, or s[SharedClass] for a shared object",
        )

    def _shared(self, cls: type[S]) -> S:
        found = [shared for shared in self.shared if isinstance(shared, cls)]
        if len(found) != 1:
            raise ModelError(
                f"the system has {len(found) or 'no'} shared objects of the class {cls.__name__}",
                hint="s[…] is for a single one: read others through a process that holds them, or s.shared",
            )
        return found[0]

    @property
    def shared(self) -> tuple[Shared, ...]:
        """All shared objects."""
        return tuple(reference(type(shared), shared.__dict__["_id"], self) for shared in self.system.shared)

    # -- the memory of references to shared objects

    def read(self, shared: Pid, name: str) -> Any:
        """The field of a shared object."""
        return self.cell(self.system.cells.index(Cell(shared, name)))

    def write(self, shared: Pid, name: str, value: Any) -> None:
        """Refuse the change of a shared object."""
        raise ModelError(
            f"the property changes the state it looks at: {shared!r}.{name}", hint="move the change into a handler"
        )

    def cell(self, number: int) -> Any:
        """The field of a shared object, by its number."""
        assert self._cell is not None
        self.reads["cell", number, None] = None
        self._require_relevant(number)
        return self._cell(number)

    def get(self, role: type[P]) -> tuple[P, ...]:
        """The processes of a role, as `s[role]` gives them; none if the system does not have this role.

        ```python
        always(lambda s: all(p.leader for p in s.get(Backup)))  # holds without a backup, too
        ```
        """
        if not (isinstance(role, type) and issubclass(role, Process)):
            raise ModelError(f"s.get({role!r}) asks for no role", hint="give the class of a process")
        first_spare = len(self.system.processes)
        found: Any = [self._process(i) for i in self.system.members(role, spares=True)]
        return tuple(p for p in found if p._index < first_spare or p.status != "unborn")

    def _process(self, index: int) -> ProcessView:
        cls: Any = self.system.classes[index]
        return view_class(cls, ProcessView)(self, index)  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[ProcessView]:
        return iter(self.processes)

    @property
    def processes(self) -> tuple[ProcessView, ...]:
        """All processes."""
        return self[Process]  # type: ignore[return-value]  # to a property, a process is its class

    @property
    def messages(self) -> tuple[Message, ...]:
        """All pending messages."""
        return tuple(m for p in self.processes for m in p.inbox)
