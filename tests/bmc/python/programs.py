"""Programs for tests, as text: they are written to a file and loaded as the user's module."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import NamedTuple

from plait.bmc import Program, check
from plait.bmc.load import Reading, load
from plait.bmc.verdict import UNDEFINED

HEADER = """\
import asyncio, collections, concurrent.futures, dataclasses, enum, queue, random, threading, time
from threading import Thread

def run(*targets):
    threads = [Thread(target=t) for t in targets]
    for t in threads:
        t.start()
    for t in threads:
        t.join()

"""


class Case(NamedTuple):
    """A program, and a change of its text that violates a check."""

    text: str
    old: str
    new: str
    check: str = "assertions"


def load_text(folder: Path, text: str, function: str = "main", **options: int) -> Program:
    """The program of a function of a module with this text."""
    file = folder / "program.py"
    file.write_text(HEADER + textwrap.dedent(text))
    return load(f"{file}:{function}", reading=Reading(**options))


def violations(program: Program) -> set[str]:
    """The checks that are violated. All others hold, or the program is undefined after a violation."""
    verdict = check(program, encoding="explicit")
    violated = {p.name for p in verdict.properties if p.status == "violated"} - {"races"}
    others = {p.status for p in verdict.properties if p.status != "violated"}
    assert others <= ({"inconclusive"} if violated & UNDEFINED else {"holds"}), verdict
    return violated
