"""Bounded model checking of concurrent programs with shared variables, with projections (thesis, chapter 4).

from plait.bmc import check, parse_program

program = parse_program(open("counter.plait").read())
print(check(program))
"""

from __future__ import annotations

from plait.bmc.api import check
from plait.bmc.load import load, parse_program
from plait.bmc.program import Program
from plait.bmc.python import (
    assume,
    atomic,
    build,
    choose,
    havoc,
    lock,
    skip,
    thread,
    unlock,
)

__all__ = [
    "Program",
    "assume",
    "atomic",
    "build",
    "check",
    "choose",
    "havoc",
    "load",
    "lock",
    "parse_program",
    "skip",
    "thread",
    "unlock",
]
