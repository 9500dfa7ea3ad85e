"""Plait finds the interleaving that breaks a concurrent or distributed system, or shows that there is none.

from plait import Message, Process, System, action, always, check, on

class Token(Message): pass

class Node(Process):
    has: bool = False
    ...

print(check(System([Node(has=True), Node()], properties=[...])))

In: a model, as classes. Out: a Verdict. To read the source, open `check/api.py` first: it has `check`. `model/` has what a
model is made of. docs/internals/architecture.md describes the other folders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plait.kernel.errors import ModelError, PlaitError, TraceError, UsageError
from plait.kernel.rendering import Renderer, provide

if TYPE_CHECKING:
    from dataclasses import field

    from plait.check.api import check
    from plait.explore.widget import explorer
    from plait.kernel.pid import Pid
    from plait.kernel.trace import Trace
    from plait.kernel.verdict import Verdict
    from plait.model.clock import Clock, tick
    from plait.model.fairness import everybody, fair_loss, strong, weak
    from plait.model.faults import crash_recovery, crash_stop
    from plait.model.message import Message
    from plait.model.monitor import Monitor
    from plait.model.network import Network, duplicating, fifo, mailbox, unordered
    from plait.model.process import Process, action, aux, durable, init, on, recovery
    from plait.model.properties import Property, always, deadlock_free, final, reachable, view
    from plait.model.quorum import at_least, everyone, majority, some
    from plait.model.refinement import refines
    from plait.model.shared import Shared
    from plait.model.system import System
    from plait.model.tag import tagged
    from plait.model.temporal import (
        F,
        G,
        R,
        U,
        W,
        X,
        always_eventually,
        eventually,
        eventually_always,
        leads_to,
        ltl,
        predicate,
        stable,
    )
    from plait.model.view import View

__version__: str
__all__ = [
    "Clock",
    "F",
    "G",
    "Message",
    "ModelError",
    "Monitor",
    "Network",
    "Pid",
    "PlaitError",
    "Process",
    "Property",
    "R",
    "Shared",
    "System",
    "Trace",
    "TraceError",
    "U",
    "UsageError",
    "Verdict",
    "View",
    "W",
    "X",
    "action",
    "always",
    "always_eventually",
    "at_least",
    "aux",
    "check",
    "crash_recovery",
    "crash_stop",
    "deadlock_free",
    "duplicating",
    "durable",
    "eventually",
    "eventually_always",
    "everybody",
    "everyone",
    "explorer",
    "fair_loss",
    "field",
    "fifo",
    "final",
    "init",
    "leads_to",
    "ltl",
    "mailbox",
    "majority",
    "on",
    "predicate",
    "reachable",
    "recovery",
    "refines",
    "some",
    "stable",
    "strong",
    "tagged",
    "tick",
    "unordered",
    "view",
    "weak",
]

_PLACES = {
    "dataclasses": "field",
    "plait.check.api": "check",
    "plait.explore.widget": "explorer",
    "plait.kernel.pid": "Pid",
    "plait.kernel.trace": "Trace",
    "plait.kernel.verdict": "Verdict",
    "plait.model.clock": "Clock tick",
    "plait.model.fairness": "everybody fair_loss strong weak",
    "plait.model.faults": "crash_recovery crash_stop",
    "plait.model.message": "Message",
    "plait.model.monitor": "Monitor",
    "plait.model.network": "Network duplicating fifo mailbox unordered",
    "plait.model.process": "Process action aux durable init on recovery",
    "plait.model.properties": "Property always deadlock_free final reachable view",
    "plait.model.quorum": "at_least everyone majority some",
    "plait.model.refinement": "refines",
    "plait.model.shared": "Shared",
    "plait.model.system": "System",
    "plait.model.tag": "tagged",
    "plait.model.temporal": "F G R U W X always_eventually eventually eventually_always leads_to ltl predicate stable",
    "plait.model.view": "View",
}
"""The modules of the public names. A name is imported when it is first used: a command loads only what it needs."""
_LAZY = {name: module for module, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `plait --help` and `plait bmc` need no model, a model no engine."""
    if name == "__version__":
        from importlib.metadata import version

        return version("plait")
    if name not in _LAZY:
        raise AttributeError(f"module 'plait' has no attribute {name!r}")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _renderer() -> Renderer:
    """What `str(verdict)` and a notebook show. The kernel imports no report; the package connects the two."""
    from plait.report.display import Display

    return Display()


provide(_renderer)
