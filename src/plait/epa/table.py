"""The static table: what each recorded number stands for in the program. Programs carry it, traces too."""

from __future__ import annotations

from typing import Literal

import msgspec

FORMAT = 2
"""The version of the records (docs/epa.md) that is written and read."""
Class = Literal["none", "plain", "pointer", "word", "float", "double", "opaque"]
"""What kind of value a site has. A `word` is an integer as wide as a pointer: it may be an address."""


class Site(msgspec.Struct, frozen=True, array_like=True):
    """One instruction, one argument of a call, or the entry of a function. Its number is its place in the table, from 1."""

    op: str
    function: str
    file: str
    line: int
    kind: Class
    bits: int
    """Width of the value, for faults; 0 if it cannot be corrupted."""
    size: int
    """Bytes accessed, for loads and stores."""
    operands: list[int]
    """Sites of the instructions whose results this one uses."""
    name: str
    """The variable of an alloca, the function that a call names, else nothing."""
    parent: int = 0
    """The call that an argument belongs to, and the argument's place in it."""
    index: int = 0
    shape: list[str] = []
    """The operands as the source of a result has them: `#12` is what site 12 made, others are constants and names."""


class Global(msgspec.Struct, frozen=True, array_like=True):
    """A global variable, a function, or a thread's own variable."""

    name: str
    kind: Literal["global", "function", "local"]


class Table(msgspec.Struct, frozen=True):
    """All sites and globals of a program."""

    sites: list[Site]
    globals: list[Global]
    clang: str
    sources: list[str]
    warnings: list[str] = []
    format: int = 0
    """The version of the records that the program writes."""

    def site(self, number: int) -> Site:
        """The site of a recorded number.

        >>> Table([Site("load", "f", "a.c", 3, "plain", 32, 4, [], "")], [], "14", []).site(1).line
        3
        """
        return self.sites[number - 1]

    def place(self, number: int) -> str:
        """Where a site is in the source, for people."""
        site = self.site(number)
        return f"{site.file}:{site.line}" if site.line else site.file or site.function

    def words(self, number: int) -> str:
        """What a site does, for people: `load`, `call malloc`, `argument 0 of malloc`."""
        site = self.site(number)
        if site.op == "argument":
            return f"argument {site.index} of {site.name or 'a call'}"
        if site.op in ("call", "enter", "alloca") and site.name:
            return f"{site.op} {site.name}"
        return site.op
