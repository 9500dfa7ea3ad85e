"""What a System must satisfy to have a sequential program."""

from __future__ import annotations

from plait.check.runner import Runner
from plait.kernel.errors import Argument, ModelError
from plait.model.process import Handler
from plait.model.quorum import AtLeast
from plait.model.system import System, with_properties


def _set_guard(handler: Handler) -> str | None:
    """What a handler uses that the sequential program does not implement: its turns take quorums of one size and type."""
    if handler.accept is not None:
        return "accept="
    if isinstance(handler.quorum, AtLeast):
        return "at_least"
    if not handler.distinct:
        return "distinct=False"
    return "several message types" if len(handler.messages) > 1 else None


def refuse(system: System) -> None:
    """Raise an error if reordering the steps of a System could change its behaviour (docs/reference/rounds.md)."""
    network = system.network
    if network.kind != "unordered":
        raise ModelError(
            f"{system.name}: rounds need an unordered network, not {network.kind}",
            hint="use network=unordered()",
        )
    if network.capacity is not None:
        raise ModelError(f"{system.name}: rounds need a network without a capacity", hint="use network=unordered()")
    if system.initially is not None or len(Runner(with_properties(system, [])).initial) > 1:
        raise ModelError(
            f"{system.name}: rounds need one initial state, but @init methods choose",
            hint="let an action choose, or give the choice as a parameter of the model",
        )
    if system.within is not None:
        raise ModelError(
            f"{system.name}: rounds change the order of steps, and so which states are outside of System(within=…)",
            hint="leave within out: the number of phases bounds the sequential program",
        )
    if system.ticking:
        raise ModelError(
            f"{system.name}: {system.classes[system.ticking[0]].__name__} has a clock, and rounds change when steps happen",
            hint="model the timeout as an action without a clock: it may happen at any time",
        )
    for fault in system.faults:
        if fault.recovers:
            raise ModelError(
                f"{system.name}: rounds do not support {fault}",
                hint="use crash_stop: a crashed process sends nothing more",
            )
    if system.monitors:
        raise ModelError(
            f"{system.name}: the monitor {type(system.monitors[0]).__name__} observes the order of steps of different "
            "processes, which rounds change",
            hint="put what the property needs into fields of the processes",
        )
    for cls, handler in system.handlers():
        if (what := _set_guard(handler)) is not None:
            raise ModelError(
                f"{system.name}: {cls.__name__}.{handler.name} uses {what}, which rounds do not support",
                hint="write the handler with one message type and a quorum of a fixed size, or check the protocol "
                "without rounds",
            )
    if system.shared:
        raise ModelError(
            f"{system.name}: processes share {system.shared[0]!r}, and rounds change the order of their steps",
            hint="use plait check, or send messages instead",
        )
    for prop in system.properties:
        if prop.kind not in ("always", "reachable"):
            what = "terminal states" if prop.kind == "final" else "whole runs"
            raise ModelError(
                f"{system.name}: the property {prop.name} is about {what}, which rounds do not preserve",
                hint=("choose other ", Argument("properties"), ": rounds are for always and reachable properties"),
            )
