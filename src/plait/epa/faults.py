"""Faults: the types of Saissi 2019, Table 9, and concurrency faults. A fault changes one execution of one site."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from plait.epa.instrumentation.table import Site, Table
from plait.kernel.errors import Argument, UsageError

FaultType = Literal["bitflip", "filesize", "mallsize", "callcorr", "invalptr", "skipunlock", "droplock", "killthread"]

TYPES: dict[str, str] = {
    "bitflip": "flips one bit of a result",
    "filesize": "increases the size argument of fread or fwrite",
    "mallsize": "decreases the size argument of malloc or calloc",
    "callcorr": "corrupts the first argument of a call",
    "invalptr": "corrupts the result of malloc or calloc",
    "skipunlock": "skips the release of a lock",
    "droplock": "skips the acquisition of a lock",
    "killthread": "ends a thread at a call",
}
DATA_FAULTS = ("bitflip", "filesize", "mallsize", "callcorr", "invalptr")
_SIZES = {"malloc": (0,), "calloc": (0, 1), "_Znwm": (0,), "_Znam": (0,), "fread": (1, 2), "fwrite": (1, 2)}
_LOCKS = ("pthread_mutex_lock", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock")
_UNLOCKS = ("pthread_mutex_unlock", "pthread_rwlock_unlock")


class Fault(msgspec.Struct, frozen=True):
    """A fault. `nth` is the number of the execution of the site by the thread, from 0."""

    type: FaultType
    site: int
    thread: str
    nth: int
    value: int

    @property
    def plan(self) -> str:
        """The fault as the recorder reads it: ACTION:SITE:THREAD:NTH:VALUE.

        >>> Fault("bitflip", 12, "T_0_1", 3, 1 << 5).plan
        'xor:12:T_0_1:3:32'
        """
        action = {
            "filesize": "add",
            "mallsize": "minify",
            "skipunlock": "skip",
            "droplock": "skip",
            "killthread": "kill",
        }.get(self.type, "xor")
        return f"{action}:{self.site}:{self.thread}:{self.nth}:{self.value}"

    @property
    def text(self) -> str:
        """The fault as text, as `parse` reads it.

        >>> Fault("bitflip", 12, "T_0_1", 3, 1 << 5).text
        'bitflip:12:T_0_1:3:32'
        """
        return f"{self.type}:{self.site}:{self.thread}:{self.nth}:{self.value}"


def parse(text: str) -> Fault:
    """Parse a fault: TYPE:SITE:THREAD:NTH:VALUE."""
    parts = text.split(":")
    try:
        kind, site, thread, nth, value = parts
        numbers = int(site), int(nth), int(value, 0)
    except ValueError:
        raise UsageError(
            (Argument("fault", text), " does not have the form TYPE:SITE:THREAD:NTH:VALUE"),
            hint="for example bitflip:12:T_0_1:0:32; a campaign prints such faults",
        ) from None
    if kind not in TYPES or min(numbers) < 0 or numbers[0] < 1:
        raise UsageError((Argument("fault", text), " does not fit"), hint=f"the types are {', '.join(TYPES)}")
    return Fault(kind, numbers[0], thread, numbers[1], numbers[2])  # type: ignore[arg-type]


class Target(NamedTuple):
    """A site for a type of fault, and the number of its executions by a thread."""

    site: int
    thread: str
    times: int


def targets(table: Table, executions: Iterable[tuple[str, int, int, int]], kind: str) -> list[Target]:
    """The sites for a type of fault, given the number of executions by thread and site in the golden run."""
    found = []
    for thread, site, values, calls in executions:
        times = calls if kind in ("skipunlock", "droplock", "killthread") else values
        if site and times and _fits(table.site(site), kind, thread):
            found.append(Target(site, thread, times))
    return found


def _fits(site: Site, kind: str, thread: str) -> bool:
    if kind == "bitflip":
        return site.bits > 0 and site.op not in ("argument", "enter")
    if kind in ("filesize", "mallsize"):
        names = ("fread", "fwrite") if kind == "filesize" else ("malloc", "calloc", "_Znwm", "_Znam")
        return site.op == "argument" and site.name in names and site.index in _SIZES[site.name]
    if kind == "callcorr":
        return site.op == "argument" and site.index == 0 and site.bits > 0
    if site.op != "call":
        return False
    if kind == "invalptr":
        return site.name in ("malloc", "calloc", "_Znwm", "_Znam")
    if kind == "killthread":
        return thread != "T_0"
    return site.name in (_LOCKS if kind == "droplock" else _UNLOCKS)


def draw(table: Table, choices: Sequence[Target], kind: str, random_: random.Random) -> Fault:
    """A random fault of a type: all executions of all sites are equally likely."""
    target = random_.choices(choices, weights=[t.times for t in choices])[0]
    site = table.site(target.site)
    nth = random_.randrange(target.times)
    if kind == "filesize":
        value = random_.randrange(1, 65)
    elif kind == "mallsize":
        value = random_.choice([0, 2, 4, 8])
    elif kind in ("skipunlock", "droplock", "killthread"):
        value = 0
    else:
        value = 1 << random_.randrange(site.bits)
    return Fault(kind, target.site, target.thread, nth, value)  # type: ignore[arg-type]
