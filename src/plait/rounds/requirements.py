"""What cannot be sequentialized, and why."""

from __future__ import annotations

from plait.kernel.errors import ModelError
from plait.model.system import System


def refuse(system: System) -> None:
    """Raise if a System has something that the reordering of steps does not respect (docs/reference/rounds.md)."""
    network = system.network
    if network.kind != "unordered":
        raise ModelError(
            f"{system.name}: rounds need an unordered network, not {network.kind}",
            hint="a message that is late must neither hold up nor repeat others: network=unordered()",
        )
    for fault in system.faults:
        if fault.recovers:
            raise ModelError(
                f"{system.name}: {fault} cannot be put into rounds",
                hint="use crash_stop: a crash is silence from then on",
            )
    if system.monitors:
        raise ModelError(
            f"{system.name}: the monitor {type(system.monitors[0]).__name__} sees the order of steps of different "
            "processes, which rounds change",
            hint="keep what the property needs in fields of the processes",
        )
    for prop in system.properties:
        if prop.kind not in ("always", "reachable"):
            what = "terminal states" if prop.kind == "final" else "whole runs"
            raise ModelError(
                f"{system.name}: the property {prop.name} is about {what}, which rounds do not preserve",
                hint="choose others with --property NAME: rounds are for always and reachable properties",
            )
