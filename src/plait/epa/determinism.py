"""Local determinism (Saissi 2019, Definition 5, condition 1): does the past of a thread determine what it does?

Only the recorded instructions of the program are known to be deterministic. Each other thing that the run executed is
modelled, refused, listed as an assumption, or not known. What is not known makes the verdict inconclusive.
"""

from __future__ import annotations

import mmap
import os
import signal
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from plait.epa.files import opened
from plait.epa.instrumentation.effects import UNFOLLOWED, effects_of
from plait.epa.instrumentation.libraries import assembly_is_harmless, knowledge
from plait.epa.instrumentation.replayed import BY_TURN, REPLAYED
from plait.epa.instrumentation.table import Origin
from plait.epa.recording import ARGUMENT, Recording

_HANDLES = frozenset(
    ["pthread_join", "pthread_detach", "pthread_equal", "pthread_exit", "thrd_join", "thrd_detach", "thrd_equal",
     "longjmp", "pthread_setaffinity_np", "pthread_setspecific"]
)  # fmt: skip
"""Functions that take a handle or an address as an integer, and do not show it."""
_CONSTANT = frozenset(["/dev/null", "/dev/zero", "/dev/full", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"])
_CONTENT = frozenset(
    ["fwrite", "write", "pwrite", "memcmp", "bcmp", "memchr", "_ZSt11_Hash_bytesPKvmm", "_ZNSo5writeEPKcl"]
)
"""Functions whose effect depends on each byte of the memory that they read."""
_FREE_PAGES = frozenset([86])
"""Names of `sysconf` whose value changes all the time (`_SC_AVPHYS_PAGES`)."""
_ENVIRONMENT = frozenset(["ctime", "localtime", "opendir", "readdir", "setlocale", "strerror"])
"""Functions with a hidden state that also depend on the environment, or on files."""
_MAP_FIXED = 0x10
_SHOWN = 4


class Doubts(NamedTuple):
    """The reasons against local determinism."""

    refused: list[str]
    """What the input does not determine."""
    unknown: list[str]
    """External code of which nothing is known."""
    assumptions: list[str]
    """What must hold besides: sentences."""
    replayed: list[str]
    """What the input does not determine, but replay repeats."""


def doubts(
    recording: Recording, nondeterministic: Iterable[str], allow: Iterable[str], *, replay: bool = False
) -> Doubts:
    """Look at everything that the run executed besides recorded instructions. `replay`: other runs are replayed."""
    return _Search(recording, frozenset(nondeterministic), frozenset(allow), replay).run()


class _Search:
    def __init__(self, recording: Recording, listed: frozenset[str], allowed: frozenset[str], replay: bool) -> None:
        self.recording, self.table = recording, recording.table
        self.listed, self.allowed, self.replay = listed, allowed, replay
        self.replayed: set[str] = set()
        self.refused: set[str] = set()
        self.unknown: set[str] = set()
        self.machine: set[str] = set()
        self.trusted: set[str] = set()
        self.assumptions: list[str] = []
        self.defined = {g.name for g in self.table.globals if g.kind == "function"}
        self.callers: dict[str, set[str]] = {}
        self.executed: dict[int, set[str]] = {}

    def run(self) -> Doubts:
        for thread, number, _, _ in self.recording.executions():
            if number:
                self.executed.setdefault(number, set()).add(thread)
                self.callers.setdefault(self.table.site(number).name, set()).add(thread)
        for number in self.executed:
            site = self.table.site(number)
            if site.op == "call" and site.name and site.name not in self.defined:
                self._call(site.name, number, used=site.kind != "none")
        self._addresses()
        self._memory_and_pointers()
        self._signals()
        self._files()
        if self.trusted:
            names = ", ".join(sorted(self.trusted))
            self.assumptions.append(f"{names}: deterministic, and no memory that threads share (--allow)")
        if self.machine:
            names = ", ".join(sorted(self.machine))
            self.assumptions.append(f"{names}: the machine, its environment and its files are the same in each run")
        return Doubts(sorted(self.refused), sorted(self.unknown), self.assumptions, sorted(self.replayed))

    def _call(self, name: str, number: int, *, used: bool, direct: bool = True) -> None:
        place = self.table.place(number)
        if name.startswith("asm "):
            if not assembly_is_harmless(name[4:]) and "asm" not in self.allowed:
                self.refused.add(f"inline assembly ({name[4:40]}) at {place}")
            return
        what = knowledge(name)
        if name in self.allowed:
            self.trusted |= {name} if what != "known" else set()
        elif name in self.listed or (what == "nondeterministic" and (used or name != "pthread_barrier_wait")):
            # Calls by name are instrumented; those of locks are interposed, and replayed even through a pointer.
            repeats = self.replay and name not in self.listed and (name in BY_TURN or (direct and name in REPLAYED))
            (self.replayed if repeats else self.refused).add(f"{name} at {place}")
        elif what == "stateful" and len(self.callers.get(name, ())) > 1:
            self.refused.add(f"{name}, whose state threads share, at {place}")
        elif name == "fileno" and not self.replay and len(self.callers.get("fopen", ())) > 1:
            self.refused.add(f"fileno, a number that depends on the order of fopen in several threads, at {place}")
        elif name == "sysconf" and self._constant(number, 0) in _FREE_PAGES:
            self.refused.add(f"sysconf, which tells how much memory is free, at {place}")
        elif name == "setvbuf" and self._constant(number, 1) != 0:
            self.unknown.add("setvbuf with a buffer of the program")
        elif name == "mmap" and (flags := self._constant(number, 3) or _MAP_FIXED) & _MAP_FIXED:
            self.unknown.add("mmap with MAP_FIXED, or with flags that are no constant")
        elif name == "mmap" and flags & mmap.MAP_SHARED and not flags & mmap.MAP_ANONYMOUS:
            self.assumptions.append("a mapped file changes only through its mapping")
        elif not direct and effects_of(name):
            self.unknown.add(f"{name} through a pointer")
        elif what == "machine" or name in _ENVIRONMENT:
            self.machine.add(name)
        elif what == "unknown" and name not in UNFOLLOWED:  # the check has another reason for these
            self.unknown.add(name)

    def _constant(self, call: int, index: int) -> int | None:
        """The value of an argument, if it is a constant."""
        sites = self.table.sites
        for piece in self.table.pieces:
            for kind, number, origin, value, *_ in piece.steps:
                site = sites[number - 1]
                if kind == ARGUMENT and (site.parent, site.index) == (call, index):
                    return value if origin == Origin.CONSTANT else None
        return None

    def _addresses(self) -> None:
        if "addresses" in self.allowed:
            self.trusted.add("addresses")
            return
        places = {self.table.place(number) for number in self.recording.native.address_arithmetic()}
        self.refused |= {f"arithmetic on addresses at {place}" for place in places}

    def _memory_and_pointers(self) -> None:
        elsewhere = set()
        ordered = not UNFOLLOWED.keys() & self.callers.keys()  # else it is unknown whether memory was freed before
        for reason, number, target in self.recording.native.suspects():
            site, place = self.table.site(number), self.table.place(number)
            if reason == "freed" and ordered and "freed" not in self.allowed:
                self.refused.add(f"a read of freed memory at {place}")
            elif reason == "unknown":
                elsewhere.add(place)
            elif reason == "printed" and "addresses" not in self.allowed:
                self.refused.add(f"an address is printed at {place}")
            elif reason == "argument" and "addresses" not in self.allowed:
                name = site.name
                if name and name not in self.defined | _HANDLES and name not in self.allowed:
                    self.refused.add(f"an address as an integer argument of {name} at {place}")
            elif reason == "part" and "addresses" not in self.allowed:
                if site.op != "call":
                    self.refused.add(f"a part of an address is read at {place}")
                elif site.name in _CONTENT and site.name not in self.allowed:
                    self.refused.add(f"{site.name} reads an address as bytes at {place}")
            elif reason == "pointer":
                self._pointer(number, target)
        if elsewhere:
            shown = sorted(elsewhere)
            more = f" and {len(shown) - _SHOWN} more places" if len(shown) > _SHOWN else ""
            self.assumptions.append(
                f"memory that a library or the system allocated has the same content in each run: read at "
                f"{', '.join(shown[:_SHOWN])}{more}"
            )

    def _pointer(self, number: int, target: int | None) -> None:
        """A call through a pointer: of the program itself, of a known function, or of anything."""
        kind, place = "", self.table.place(number)
        if target is not None:
            kind, _, which, *_ = self.recording.native.object(target)
        if kind == "global" and which < len(self.table.globals):
            found = self.table.globals[which]
            if found.kind == "external" and found.name not in self.defined:
                self._call(found.name, number, used=True, direct=False)
            return
        if "pointers" not in self.allowed:
            where = f" of {self.recording.object(target).name}" if target is not None else ""
            self.unknown.add(f"code{where} that is called through a pointer at {place} (pointers)")

    def _signals(self) -> None:
        try:
            entries = set((self.recording.folder / "signals").read_text().split())
        except FileNotFoundError:
            return
        for entry in sorted(entries):
            number = int(entry[:-1])
            try:
                name = signal.Signals(number).name
            except ValueError:
                name = f"signal {number}"
            if entry.endswith("s") and "signals" not in self.allowed and number not in _FROM_AN_INSTRUCTION:
                self.refused.add(f"a handler of {name} ran: it may run at another time")
            elif entry.endswith("a") and "signals" not in self.allowed:
                self.refused.add(f"a handler of {name} ran: another time, or another thread, is possible")
            else:
                self.assumptions.append(
                    f"the handler of {name} shares no memory with other threads (it is not recorded)"
                )

    def _files(self) -> None:
        """Devices and tables of the system have another content in each run. Other files are inputs."""
        reads, own = set(), set()
        for file in opened(self.recording.folder):
            path = str(file.path)
            real = os.path.realpath(path)
            if _changes(path) or _changes(real):
                if not {path, real} & self.allowed:
                    where = f" at {self.table.place(file.site)}" if file.site else ""
                    self.refused.add(f"{path}{where}")
            elif file.writes and file.old is None:
                own.add(path)
            elif path not in own and path not in _CONSTANT:
                reads.add(path)
        if reads:
            names = ", ".join(sorted(path.rsplit("/", 1)[-1] for path in reads))
            self.assumptions.append(f"these files have the same content before each run: {names}")


def _changes(path: str) -> bool:
    """Whether a file has another content in each run: a device, a table of the system, a pipe, a socket."""
    if path in _CONSTANT or Path(path).is_relative_to("/dev/shm"):
        return False
    if path.startswith(("/dev/", "/proc/", "/sys/")):
        return True
    try:
        kind = Path(path).stat().st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(kind) and not stat.S_ISDIR(kind)


_FROM_AN_INSTRUCTION = frozenset([signal.SIGSEGV, signal.SIGFPE, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP])
