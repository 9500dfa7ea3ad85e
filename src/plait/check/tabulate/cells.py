"""The fields of shared objects (*cells*) while user code runs: who reads them, and who writes them.

A question of the engine about a process comes with the contents of all cells, after the fields of its local state. The
answer depends on the cells that were read, and the engine asks again only if one of these has another content. So reads
are recorded here. References to shared objects (`plait.model.shared.reference`) lead here, in handlers, guards and
properties alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid
from plait.model.system import Cell, System

HOLE = Pid("", 0)
"""In place of the content of a cell that the question does not read (`rust/src/system/model.rs`)."""
LAST = 63
"""This bit of a set of cells stands for all cells from there on."""


def cell_bit(cell: int) -> int:
    """The bit of a cell in a set of cells."""
    return 1 << min(cell, LAST)


class UnseenError(BaseException):
    """A question was asked without a cell that it reads: only the audit of symmetries does this, by its name."""


class Cells:
    """The cells of one System. It is the memory of all references."""

    def __init__(self, system: System) -> None:
        self.all: Sequence[Cell] = system.cells
        self.names = [str(cell) for cell in system.cells]
        self._numbers = {cell: number for number, cell in enumerate(system.cells)}
        self.values: list[Any] = []
        """Of a step or guard: the present values of all cells."""
        self.noted: set[int] = set()
        """The cells that the code that runs now has read."""
        self.blind: set[int] = set()
        """The cells that the code that runs now has written before it read them. What they contained does not matter, so
        these writes count even if they change nothing here."""
        self.seen = 0
        """The cells that were read since the engine has set this to zero, as bits."""
        self._viewed: Callable[[int], Any] | None = None
        self._writable = False

    def begin(self, values: Iterable[Any]) -> None:
        """A handler or a guard runs: on these values of all cells. (What a guard changes is noticed when it has run.)"""
        self.values, self.noted, self.blind = list(values), set(), set()
        self._viewed, self._writable = None, True

    def begin_view(self, viewed: Callable[[int], Any] | None) -> None:
        """A property runs, on a view of a state, which records the reads itself. None: a monitor, which has no view."""
        self.values, self.noted, self.blind = [], set(), set()
        self._viewed, self._writable = viewed, False

    def note(self, cells: Iterable[int]) -> None:
        """These cells were read."""
        for cell in cells:
            self.seen |= cell_bit(cell)

    def noted_names(self) -> set[str]:
        """The cells that the code has read, by name."""
        return {self.names[cell] for cell in self.noted}

    def read(self, shared: Pid, name: str) -> Any:
        number = self._number(shared, name)
        if self._viewed is not None:
            return self._viewed(number)
        self._require_state(shared, name)
        self.noted.add(number)
        self.note([number])
        value = self.values[number]
        if value == HOLE:
            raise UnseenError
        return value

    def write(self, shared: Pid, name: str, value: Any) -> None:
        number = self._number(shared, name)
        if not self._writable:
            raise ModelError(
                f"{shared!r}.{name} is written by a property or a monitor",
                hint="properties and monitors can only read: move the change into a handler",
            )
        self._require_state(shared, name)
        if number not in self.noted:
            self.blind.add(number)
        self.values[number] = value

    def _require_state(self, shared: Pid, name: str) -> None:
        if not self.values:
            raise ModelError(
                f"{shared!r}.{name} is used by a monitor or an @init method, where there is no state",
                hint="to a monitor, announce the value; before the first step, give the shared object its value: "
                f"{shared.role}({name}=…)",
            )

    def _number(self, shared: Pid, name: str) -> int:
        return self._numbers[Cell(shared, name)]
