"""Monitors: deterministic observers whose state is part of the model (histories, specifications)."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, dataclass_transform

from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid


@dataclass_transform(kw_only_default=True)
class Monitor:
    """Observes the events that processes `announce`. A subclass declares fields; its `observe` changes them.

    >>> class Count(Monitor):
    ...     events: int = 0
    ...     def observe(self, process, event):
    ...         self.events += 1
    """

    __plait_fields__: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        try:
            dataclasses.dataclass(eq=False, kw_only=True)(cls)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"monitor {cls.__name__}: {error}", hint="for a mutable default write field(default_factory=list)"
            ) from None
        cls.__plait_fields__ = tuple(f.name for f in dataclasses.fields(cls))  # type: ignore[arg-type]

    def observe(self, process: Pid, event: Any) -> None:
        """Update the fields for an event that `process` announced."""
        raise ModelError(
            f"monitor {type(self).__name__} does not define observe(self, process, event)",
            hint="define it: Plait calls it with every event that a process announces",
        )
