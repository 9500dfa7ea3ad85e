"""Faults: the types of Saissi 2019, Table 9, those of LLFI, and faults of APIs and locks.

A fault changes one execution of one site; a stuck bit changes all executions from one on. A type has an *action* of the
recorder, the sites that it fits, and a way to draw the value of the action. Files in Python can define more types
(`custom_faults.py`).
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from plait.epa.instrumentation.table import Site, Table
from plait.kernel.errors import Argument, UsageError

ACTIONS: dict[str, str] = {
    "xor": "flips the bits of VALUE",
    "or": "sets the bits of VALUE",
    "clear": "clears the bits of VALUE",
    "set": "replaces the value by VALUE",
    "add": "adds VALUE",
    "divide": "divides by VALUE; 0 gives 0",
}
"""What the recorder can do with a value. Each action is also a type for a single run."""
CALLS = ("skip", "twice", "kill")
"""Actions at calls."""
_ALLOCATIONS = {"malloc": (0,), "calloc": (0, 1), "_Znwm": (0,), "_Znam": (0,)}
_STREAMS = {"fread": (1, 2), "fwrite": (1, 2)}
_LOCKS = ("pthread_mutex_lock", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock", "mtx_lock")
_UNLOCKS = ("pthread_mutex_unlock", "pthread_rwlock_unlock", "mtx_unlock")
_READS = ("read", "pread", "recv", "recvfrom", "fread")
_NULL = ("malloc", "calloc", "realloc", "fopen", "fdopen", "opendir")
_MINUS_ONE = ("open", "openat", "close", "read", "pread", "write", "pwrite", "lseek", "fcntl", "fstat", "unlink",
              "pipe", "socket", "connect", "bind", "listen", "accept", "send", "recv", "sendto", "recvfrom")  # fmt: skip
_ERRORS = (errno.EINTR, errno.EIO, errno.EAGAIN, errno.ENOMEM, errno.EACCES, errno.ENOSPC)

Fits = Callable[[Site, str], bool]
Draw = Callable[[Site, random.Random], int]


class Model(NamedTuple):
    """A type of fault. `fits` gets a site and the name of a thread."""

    about: str
    action: str
    fits: Fits
    value: Draw


def _result(site: Site, thread: str) -> bool:
    return site.bits > 0 and site.op not in ("argument", "enter", "store")


def _size_of(sizes: Mapping[str, tuple[int, ...]]) -> Fits:
    return lambda site, thread: site.op == "argument" and site.name in sizes and site.index in sizes[site.name]


def _operation(site: Site, thread: str) -> bool:
    """A call that is neither inline assembly nor an intrinsic."""
    return site.op == "call" and not site.name.startswith(("asm ", "llvm."))


def _call_of(names: Sequence[str]) -> Fits:
    return lambda site, thread: site.op == "call" and site.name in names


def _result_of(names: Sequence[str]) -> Fits:
    return lambda site, thread: site.op == "call" and site.name in names and site.bits > 0


def _one_bit(site: Site, random_: random.Random) -> int:
    return 1 << random_.randrange(site.bits)


def _several_bits(site: Site, random_: random.Random) -> int:
    count = random_.randint(2, 4)
    return sum(1 << bit for bit in random_.sample(range(site.bits), min(count, site.bits)))


def _window(site: Site, random_: random.Random) -> int:
    """Two to eight adjacent bits: the first and the last one flip, the others at random."""
    width = min(random_.randint(2, 8), site.bits)
    inside = random_.getrandbits(width) | 1 | 1 << (width - 1)
    return inside << random_.randrange(site.bits - width + 1)


def _returned(site: Site, random_: random.Random) -> int:
    return random_.choice([0, 1, (1 << site.bits) - 1])


def _failure(site: Site, random_: random.Random) -> int:
    """The number of an error; above it, the width of the result -1 (0 for NULL)."""
    return random_.choice(_ERRORS) | (0 if site.name in _NULL else site.bits) << 32


def _nothing(site: Site, random_: random.Random) -> int:
    return 0


MODELS: dict[str, Model] = {
    "bitflip": Model("flips one bit of a result", "xor", _result, _one_bit),
    "multibit": Model(
        "flips two to four bits of a result", "xor", lambda s, t: s.bits > 1 and _result(s, t), _several_bits
    ),
    "window": Model(
        "flips bits of a result in a window of two to eight bits",
        "xor",
        lambda s, t: s.bits > 1 and _result(s, t),
        _window,
    ),
    "operand": Model("flips one bit of an operand of an instruction", "xor", lambda s, t: s.bits > 0, _one_bit),
    "stuck0": Model("clears one bit of all results of an instruction from one on", "stuck0", _result, _one_bit),
    "stuck1": Model("sets one bit of all results of an instruction from one on", "stuck1", _result, _one_bit),
    "branch": Model("inverts a condition", "xor", lambda s, t: s.bits == 1 and _result(s, t), lambda s, r: 1),
    "skipped": Model(
        "skips an instruction: its result stays the one of its last execution, and memory keeps its content",
        "stale",
        lambda s, t: _result(s, t) or (s.op == "store" and s.bits > 0),
        _nothing,
    ),
    "memory": Model(
        "flips one bit in memory, just before it is read",
        "poke",
        lambda s, t: s.op == "getelementptr",
        lambda s, r: 1 << r.randrange(8),
    ),
    "argument": Model(
        "flips one bit of an argument of a call", "xor", lambda s, t: s.op == "argument" and s.bits > 0, _one_bit
    ),
    "filesize": Model(
        "increases the size argument of fread or fwrite", "add", _size_of(_STREAMS), lambda s, r: r.randrange(1, 65)
    ),
    "mallsize": Model(
        "decreases the size argument of malloc or calloc",
        "divide",
        _size_of(_ALLOCATIONS),
        lambda s, r: r.choice([0, 2, 4, 8]),
    ),
    "callcorr": Model(
        "corrupts the first argument of a call",
        "xor",
        lambda s, t: s.op == "argument" and s.index == 0 and s.bits > 0,
        _one_bit,
    ),
    "invalptr": Model("corrupts the result of malloc or calloc", "xor", _call_of(tuple(_ALLOCATIONS)), _one_bit),
    "returncode": Model(
        "replaces the result of a call by 0, 1 or -1", "set", lambda s, t: s.op == "call" and s.bits > 0, _returned
    ),
    "errno": Model(
        "lets a system call or an allocation fail: -1 or NULL, and errno",
        "fail",
        _result_of(_MINUS_ONE + _NULL),
        _failure,
    ),
    "shortread": Model(
        "decreases the result of read, recv or fread", "divide", _result_of(_READS), lambda s, r: r.choice([0, 2, 4])
    ),
    "skipunlock": Model("skips the release of a lock", "skip", _call_of(_UNLOCKS), _nothing),
    "droplock": Model("skips the acquisition of a lock", "skip", _call_of(_LOCKS), _nothing),
    "doublelock": Model("acquires a lock twice", "twice", _call_of(_LOCKS), _nothing),
    "doubleunlock": Model("releases a lock twice", "twice", _call_of(_UNLOCKS), _nothing),
    "killthread": Model("ends a thread at a call", "kill", lambda s, t: _operation(s, t) and t != "T_0", _nothing),
}
TYPES: dict[str, str] = {name: model.about for name, model in MODELS.items()}


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fault. `nth` is the number of the execution of the site by the thread, from 0."""

    type: str
    site: int
    thread: str
    nth: int
    value: int
    action: str = ""
    """The action of the recorder, if the type does not say it: the type is the name of a file in Python."""

    @property
    def plan(self) -> str:
        """The fault as the recorder reads it: ACTION:SITE:THREAD:NTH:VALUE.

        >>> Fault("bitflip", 12, "T_0_1", 3, 1 << 5).plan
        'xor:12:T_0_1:3:32'
        """
        known = MODELS[self.type].action if self.type in MODELS else self.type
        return f"{self.action or known}:{self.site}:{self.thread}:{self.nth}:{self.value}"

    @property
    def text(self) -> str:
        """The fault as text, as `parse` reads it.

        >>> Fault("bitflip", 12, "T_0_1", 3, 1 << 5).text
        'bitflip:12:T_0_1:3:32'
        """
        return f"{self.action or self.type}:{self.site}:{self.thread}:{self.nth}:{self.value}"


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
    if kind not in {**TYPES, **ACTIONS} or min(numbers) < 0 or numbers[0] < 1 or numbers[2] >= 1 << 64:
        raise UsageError(
            (Argument("fault", text), " does not fit"), hint=f"the types are {', '.join([*TYPES, *ACTIONS])}"
        )
    return Fault(kind, numbers[0], thread, numbers[1], numbers[2])


class Where(NamedTuple):
    """The sites and executions that a campaign may change. Names are patterns such as `sort_*`.

    >>> Where.of(["function=quick*", "nth=0-9"])
    Where(function='quick*', line='*', opcode='*', thread='*', nth=(0, 9))
    """

    function: str = "*"
    line: str = "*"
    opcode: str = "*"
    thread: str = "*"
    nth: tuple[int, int] | None = None
    """The first and the last execution of a site by a thread, from 0: the iterations of a loop."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> Where:
        """Parse conditions: `function=NAME`, `line=FILE:LINE`, `opcode=NAME`, `thread=NAME`, `nth=FIRST-LAST`."""
        found = cls()
        for text in texts:
            key, equals, value = text.partition("=")
            first, _, last = value.partition("-")
            if key == "nth" and first.isdigit() and (last or first).isdigit() and int(first) <= int(last or first):
                found = found._replace(nth=(int(first), int(last or first)))
            elif key in ("function", "line", "opcode", "thread") and equals and value:
                found = cls(**{**found._asdict(), key: value})
            else:
                raise UsageError(
                    (Argument("where", text), " is not a condition"),
                    hint="for example function=sort, line=kmeans.c:21, opcode=add, thread=T_0_*, nth=0-9",
                )
        return found

    def fits(self, table: Table, number: int, thread: str) -> bool:
        """Whether a site and a thread are chosen."""
        site = table.site(number)
        place = f"{site.file}:{site.line}"
        line = fnmatchcase(place, self.line) or fnmatchcase(place, f"*/{self.line}") or self.line == str(site.line)
        names = ((site.function, self.function), (site.op, self.opcode), (thread, self.thread))
        return line and all(fnmatchcase(name, pattern) for name, pattern in names)


class Target(NamedTuple):
    """A site for a type of fault, and the number of its executions by a thread, from the execution `first` on."""

    site: int
    thread: str
    times: int
    first: int = 0


def _users(table: Table) -> dict[int, int]:
    """The sites whose fault is a fault of an operand, and the instruction that has the operand."""
    found: dict[int, int] = {}
    for number, site in enumerate(table.sites, 1):
        if site.op in ("store", "argument"):
            found[number] = site.parent or number
        for operand in site.operands:
            # Arguments of calls and values of stores have sites of their own. The address of a store has none.
            own = site.op in ("call", "argument") or (site.op == "store" and table.site(operand).kind != "pointer")
            if not own and table.site(operand).uses == 1:
                found.setdefault(operand, number)
    return found


def targets(
    table: Table,
    executions: Iterable[tuple[str, int, int, int]],
    kind: str,
    *,
    model: Model | None = None,
    where: Where | None = None,
) -> list[Target]:
    """The sites for a type of fault, given the number of executions by thread and site in the golden run.

    Operands: the value of a store and an argument of a call are changed there. For other instructions, the operand is
    changed where it was computed, if it has no other use.
    """
    chosen, where = model or MODELS[kind], where or Where()
    of_operand = _users(table) if model is None and kind == "operand" else None
    # Memory is changed when its address is computed, if the address is for a load.
    read = {s.operands[0] for s in table.sites if s.op == "load" and s.operands}
    found = []
    for thread, site, values, calls in executions:
        if chosen.action == "poke" and site not in read:
            continue
        if not site:
            continue
        times = calls if chosen.action in CALLS or table.site(site).op == "store" else values
        user = site if of_operand is None else of_operand.get(site)
        if not user or not times or not chosen.fits(table.site(site), thread) or not where.fits(table, user, thread):
            continue
        first, last = where.nth or (0, times - 1)
        if first < times:
            found.append(Target(site, thread, min(last, times - 1) - first + 1, first))
    return found


def draw(
    table: Table, choices: Sequence[Target], kind: str, random_: random.Random, model: Model | None = None
) -> Fault:
    """A random fault of a type: all executions of all sites are equally likely."""
    target = random_.choices(choices, weights=[t.times for t in choices])[0]
    nth = target.first + random_.randrange(target.times)
    chosen = model or MODELS[kind]
    value = chosen.value(table.site(target.site), random_)
    return Fault(kind, target.site, target.thread, nth, value, chosen.action if model else "")
