"""Which fields are relevant and which auxiliary (paper 000, section III; DESIGN section 5)."""

from __future__ import annotations

import dataclasses
from typing import Literal

from plait.model.process import Process
from plait.model.system import System


@dataclasses.dataclass(frozen=True)
class Decomposition:
    """The auxiliary fields of each process class."""

    auxiliary: dict[type[Process], frozenset[str]]

    def __bool__(self) -> bool:
        return any(self.auxiliary.values())

    @property
    def summary(self) -> str:
        names = [f"{cls.__name__}.{name}" for cls, fields in self.auxiliary.items() for name in sorted(fields)]
        return f"auxiliary: {', '.join(names)}"


def decompose(system: System, inference: Literal["auto", "declared"]) -> Decomposition:
    return Decomposition({})
