"""The view of a global state that a property reads. It records the reads.

It records the *components* in the order of their first reads, because a property is evaluated once per tuple of the
values of the components that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeVar, overload

from plait.kernel.errors import Argument, ModelError
from plait.kernel.pid import Pid
from plait.model.message import Message
from plait.model.monitor import Monitor
from plait.model.process import Process, Status
from plait.model.system import System

Component = tuple[Literal["field", "inbox", "monitor"], int, str | None]
"""A part of a state that a property reads: a field of a process (None: its status), its inbox, or a monitor."""
P = TypeVar("P", bound=Process)
M = TypeVar("M", bound=Monitor)


class NoFieldError(ModelError, AttributeError):
    """A property reads a field that the class does not have. `getattr` with a default and `hasattr` catch it."""


class ProcessView:
    """One process, read-only: its fields as attributes, `id`, `crashed`, `inbox`."""

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

    def __setattr__(self, name: str, value: Any) -> None:
        raise ModelError(
            f"the property changes the state it looks at: {self.id}.{name}", hint="move the change into a handler"
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
            raise NoFieldError(
                f"{cls.__name__} has no field {name!r}",
                hint=f"its fields are: {', '.join(cls.__plait_fields__) or 'none'}",
            )
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


def _auxiliary(cls: type[Process], name: str) -> ModelError:
    if name in cls.__plait_aux__:
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

    The three functions get the value of a component by its position: (status, fields), pending messages, a monitor.
    """

    def __init__(
        self,
        system: System,
        local: Callable[[int], tuple[Status, dict[str, Any]]],
        inbox: Callable[[int], tuple[Message, ...]],
        monitor: Callable[[int], Monitor],
        auxiliary: Mapping[type[Process], frozenset[str]] | None = None,
    ) -> None:
        self.system = system
        self.local, self.inbox, self._monitor = local, inbox, monitor
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

    @overload
    def __getitem__(self, key: type[P]) -> tuple[P, ...]: ...
    @overload
    def __getitem__(self, key: type[M]) -> M: ...
    @overload
    def __getitem__(self, key: Pid) -> ProcessView: ...
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Pid):
            if key not in self.system.index:
                raise ModelError(f"the system has no process {key!r}", hint=f"it has: {self.system.pids}")
            return ProcessView(self, self.system.index[key])
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
                    return self._monitor(i)
        raise ModelError(
            f"the view has no {key!r}",
            hint="use s[Role], s[pid], or s[MonitorClass] for a monitor of the System",
        )

    def get(self, role: type[P]) -> tuple[P, ...]:
        """The processes of a role, as `s[role]` gives them; none if the system does not have this role.

        ```python
        always(lambda s: all(p.leader for p in s.get(Backup)))  # holds without a backup, too
        ```
        """
        if not (isinstance(role, type) and issubclass(role, Process)):
            raise ModelError(f"s.get({role!r}) asks for no role", hint="give the class of a process")
        first_spare = len(self.system.processes)
        found: Any = [ProcessView(self, i) for i in self.system.members(role, spares=True)]
        return tuple(p for p in found if p._index < first_spare or p.status != "unborn")

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
