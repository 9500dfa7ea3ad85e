"""Process ids. They have their own type, so that ids in states and messages differ from numbers."""

from __future__ import annotations

from functools import total_ordering
from types import MethodType

from plait.kernel.errors import ModelError


@total_ordering
class Pid:
    """The id of a process: the name of its class, and its index among the processes of this class.

    >>> Pid("Acceptor", 1)
    Acceptor1
    """

    __slots__ = ("_hash", "index", "role")
    role: str
    index: int
    _hash: int

    def __init__(self, role: str, index: int) -> None:
        object.__setattr__(self, "role", role)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "_hash", hash((role, index)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a process id cannot be changed")

    def __reduce__(self) -> tuple[type[Pid], tuple[str, int]]:
        return (Pid, (self.role, self.index))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Pid):
            return self.index == other.index and self.role == other.role
        if isinstance(other, MethodType) and other.__name__ == "pid":
            raise ModelError(
                f"{self!r} is compared with the method pid of {_name_of(other.__self__)}",
                hint="the id of a process is self.id; Role.pid(0) is the id of the first process of a role",
            )
        return False

    def __lt__(self, other: Pid) -> bool:
        return (self.role, self.index) < (other.role, other.index)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{self.role}{self.index}"

    def __plait_data__(self) -> dict[str, str]:
        return {"#pid": repr(self)}


def _name_of(owner: object) -> str:
    return owner.__name__ if isinstance(owner, type) else type(owner).__name__
