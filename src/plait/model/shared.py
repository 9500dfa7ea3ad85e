"""Shared state: objects whose fields several processes read and write."""

from __future__ import annotations

import contextlib
import dataclasses
import dis
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, ClassVar, Protocol, TypeGuard, dataclass_transform

from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid

_RESERVED = ("id", "status", "crashed", "inbox")


class Memory(Protocol):
    """Where the fields of shared objects are while user code runs. The checker implements it."""

    def read(self, shared: Pid, name: str) -> Any: ...
    def write(self, shared: Pid, name: str, value: Any) -> None: ...


@dataclass_transform(kw_only_default=True)
class Shared:
    """State that several processes read and write: memory, a lock table, a database. A subclass declares its fields.

    A process holds a shared object in a field. A step reads and writes its fields atomically.

    >>> from plait import Process, System, action
    >>> class Counter(Shared):
    ...     value: int = 0
    >>> class Worker(Process):
    ...     counter: Counter
    ...     done: bool = False
    ...     @action(when=lambda self: not self.done)
    ...     def increment(self):
    ...         self.counter.value += 1
    ...         self.done = True
    >>> counter = Counter()
    >>> System([Worker(counter=counter), Worker(counter=counter)]).shared
    [Counter0]
    """

    __plait_fields__: ClassVar[tuple[str, ...]] = ()
    __plait_shared__: ClassVar[bool] = True
    """By this, the native codec knows that a state has a reference to the object, and not its fields."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, value in cls.__dict__.items():
            if hasattr(value, "__plait_handler__"):
                raise ModelError(
                    f"shared {cls.__name__}.{name} is a handler, but only processes have handlers",
                    hint="move it into a process that holds the object; methods of a shared class are called by handlers",
                )
        for name in cls.__dict__.get("__annotations__", {}):
            if name in _RESERVED or name.startswith("_"):
                raise ModelError(
                    f"{cls.__name__}.{name}: this name is reserved", hint="choose another name for the field"
                )
        try:
            dataclasses.dataclass(eq=False, repr=False, kw_only=True)(cls)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"shared {cls.__name__}: {error}", hint="for a mutable default write field(default_factory=list)"
            ) from None
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        for field in fields:
            for kind in ("aux", "durable"):
                if field.metadata.get(kind):
                    raise ModelError(
                        f"shared {cls.__name__}.{field.name} is declared {kind}",
                        hint="declare it without: shared fields survive crashes, and decomposition finds the auxiliary ones",
                    )
        cls.__plait_fields__ = tuple(f.name for f in fields)
        for base in cls.__mro__:
            if base.__dict__.get("__slots__"):
                raise ModelError(
                    f"shared {cls.__name__}: its base {base.__name__} has __slots__, which are no fields",
                    hint=f"remove __slots__ from {base.__name__}, and declare fields by annotations",
                )

    def __getattribute__(self, name: str) -> Any:
        if name in type(self).__plait_fields__:
            own = object.__getattribute__(self, "__dict__")
            if "_memory" in own:
                return own["_memory"].read(own["_id"], name)
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        own = object.__getattribute__(self, "__dict__")
        if "_memory" not in own:
            object.__setattr__(self, name, value)
        elif name in type(self).__plait_fields__:
            own["_memory"].write(own["_id"], name, value)
        elif isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
        else:
            raise ModelError(
                f"{own['_id']!r}.{name} is set, but {type(self).__name__} does not declare it",
                hint=f"declare the field in the class: {name}: … = …",
            )

    def __delattr__(self, name: str) -> None:
        raise ModelError(f"{self!r}.{name} is deleted", hint="set it to None instead")

    def __eq__(self, other: object) -> bool:
        """Two references are equal if they refer to one object."""
        known = object.__getattribute__(self, "__dict__").get("_id")
        return self is other or (known is not None and type(other) is type(self) and known == other.__dict__.get("_id"))

    def __hash__(self) -> int:
        return hash(object.__getattribute__(self, "__dict__").get("_id", id(self)))

    def __copy__(self) -> Shared:
        return self

    def __deepcopy__(self, memo: Any) -> Shared:
        return self

    def __repr__(self) -> str:
        known = object.__getattribute__(self, "__dict__").get("_id")
        return repr(known) if known is not None else f"{type(self).__name__}(…)"

    def __plait_data__(self) -> dict[str, str]:
        return {"#pid": repr(self)}


class _Outside:
    """The memory of an object that a System has taken: its fields are values of a state, and there is none here."""

    def read(self, shared: Pid, name: str) -> Any:
        raise _outside(shared, name, "read")

    def write(self, shared: Pid, name: str, value: Any) -> None:
        raise _outside(shared, name, "written")


def _outside(shared: Pid, name: str, what: str) -> ModelError:
    return ModelError(
        f"{shared!r}.{name} is {what} outside of a state",
        hint=f"in a handler, use the field of the process that holds the object; in a property, s[{shared.role}]",
    )


OUTSIDE: Memory = _Outside()


def reference(cls: type[Shared], pid: Pid, memory: Memory) -> Shared:
    """A reference to a shared object, whose fields are in this memory."""
    made = object.__new__(cls)
    object.__getattribute__(made, "__dict__").update(_id=pid, _memory=memory)
    return made


def loose(function: Any) -> Iterator[tuple[str, Shared]]:
    """The shared objects that a function uses by a global name or a closure, although no System has taken them."""
    function = inspect.unwrap(function) if callable(function) else function
    if not isinstance(function, FunctionType):
        return
    codes = [function.__code__]
    for code in codes:  # the list grows during the loop
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
        for name in code.co_names:
            value = function.__globals__.get(name)
            if _is_loose(value) and ("LOAD_GLOBAL", name) in ((i.opname, i.argval) for i in dis.get_instructions(code)):
                yield name, value
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not bound yet
            if _is_loose(cell.cell_contents):
                yield name, cell.cell_contents


def _is_loose(value: object) -> TypeGuard[Shared]:
    return isinstance(value, Shared) and "_id" not in object.__getattribute__(value, "__dict__")
