"""Why a declared symmetry is wrong: the evidence of the engine, as text.

The engine permutes processes of a symmetric role and checks that the system does the same, up to the new names
(`rust/src/symmetry/audit.rs`). It compares answers of the model. This module shows the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plait.check.tabulate.codec import UP, ModelCodec
from plait.kernel.errors import ModelError
from plait.kernel.values import text, to_data
from plait.model.system import System, plays


class AsymmetryError(ModelError):
    """A declared symmetry is wrong."""


Swapped = Sequence[tuple[int, int]]
"""Positions of processes, and the positions they are moved to."""
_HINT = "remove the role from System(symmetric=…), or make the model treat its processes equally"
_HINT_RING = "remove the role from System(rotations=…), or make the model treat all places in the ring equally"


class Asymmetry:
    """The part of a Tabulation that explains why a permutation is not a symmetry."""

    system: System
    model_codec: ModelCodec

    def asymmetric_initial(self, swapped: Swapped, process: int, image: int) -> AsymmetryError:
        """The initial states of two processes do not correspond."""
        if process >= len(self.system.classes):
            cell = self.system.cells[process - len(self.system.classes)]
            return self._refused(swapped, f"the initial value of {cell} treats them differently")
        a, b = self.system.pids[process], self.system.pids[image]
        return self._refused(swapped, f"the initial states of {a!r} and {b!r} differ: {self._initial(process, image)}")

    def _initial(self, process: int, image: int) -> str:
        fields = [self.system.processes[i].__dict__ for i in (process, image)]
        for name in self.system.classes[process].__plait_fields__:
            a, b = (text(to_data(f[name])) for f in fields)
            if a != b:
                return f"{name} is {a} and {b}"
        return "they were sent different messages, or their @init methods do different things"

    def asymmetric_start(self, swapped: Swapped, combination: int) -> AsymmetryError:
        """The image of one of several initial states is no initial state."""
        decode = self.model_codec.codec.decode
        chosen = [
            f"{self.system.pids[index]!r} chooses {', '.join(text(to_data(decode(c))) for c in choices)}"
            for index, choices in self.chosen(combination).items()
        ]
        return self._refused(
            swapped,
            "the initial states treat them differently: "
            f"there is no initial state that corresponds to the one in which {'; '.join(chosen)}",
        )

    def chosen(self, combination: int) -> dict[int, list[bytes]]:
        raise NotImplementedError

    def asymmetric_monitor(self, swapped: Swapped, number: int, initial: bool) -> AsymmetryError:
        """A monitor treats the processes differently, in its initial state or after an event."""
        what = "the initial state" if initial else "observe()"
        name = type(self.system.monitors[number]).__name__
        return self._refused(swapped, f"{what} of monitor {name} treats them differently")

    def asymmetric_step(
        self,
        swapped: Swapped,
        process: int,
        local: bytes,
        image: int,
        image_local: bytes,
        handler: int | None,
        messages: Sequence[tuple[int, bytes]],
    ) -> AsymmetryError:
        """In corresponding states, two processes do different things."""
        name = f"{self.system.classes[process].__name__}"
        if handler is not None:
            name += f".{self.system.classes[process].__plait_handlers__[handler].name}"
        given = ", ".join(
            f"{text(to_data(self.model_codec.codec.decode(m)))} from {self.system.pids[sender]!r}"
            for sender, m in messages
        )
        return self._refused(
            swapped,
            f"{name} treats them differently: {self._state(process, local)} and {self._state(image, image_local)}, "
            f"which are equal up to names, do different things{f' with {given}' if given else ''}",
        )

    def asymmetric_property(
        self, swapped: Swapped, number: int, value: bool | None, image: bool | None
    ) -> AsymmetryError:
        """A property treats the processes differently. None: it raises an exception."""
        name = self.system.properties[number].name
        how = "an exchange" if len(swapped) == 2 else "a rotation"
        before, after = (f"is {v}" if v is not None else "raises an exception" for v in (value, image))
        return self._refused(
            swapped, f"property {name} treats them differently: it {before} in a state, and {after} after {how}"
        )

    def _state(self, process: int, local: bytes) -> str:
        if local[0] != UP:
            return f"{self.system.pids[process]!r}, which is not up,"
        fields: dict[str, Any] = self.model_codec.process(process, local).__dict__
        names = self.system.classes[process].__plait_fields__
        shown = ", ".join(f"{n}={text(to_data(fields[n]))}" for n in names)
        return f"{self.system.pids[process]!r}({shown})"

    def _refused(self, swapped: Swapped, why: str) -> AsymmetryError:
        names = [repr(self.system.pids[i]) for i, _ in swapped]
        ring = any(plays(self.system.classes[swapped[0][0]], role) for role in self.system.rotations)
        listed = " and ".join([", ".join(names[:-1]), names[-1]])
        return AsymmetryError(f"{listed} are not symmetric: {why}", hint=_HINT_RING if ring else _HINT)
