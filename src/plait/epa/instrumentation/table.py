"""The static table: what each recorded number stands for in the program. Programs carry it, traces too."""

from __future__ import annotations

import enum
from typing import Literal

import msgspec

FORMAT = 4
"""The version of the records (docs/guides/epa.md) that is written and read."""
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
    """Of a comparison of integers, LLVM's number of its predicate."""
    shape: list[str] = []
    """The operands as the source of a result has them: `#12` is what site 12 made, others are constants and names."""


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """A straight piece of code: what happens, one after the other, once its record begins."""

    function: int
    """Its place among the functions."""
    steps: list[tuple[int, int, int, int, int, int]]
    """Per event: kind, site, and where its two words come from (`Origin` and a number, each)."""


class Origin(enum.IntEnum):
    """Where a word of an event comes from."""

    CONSTANT = 0
    """It is the number."""
    STORED = 1
    """The record has it, in as many bytes."""
    RESULT = 2
    """The site of that number, counted from its function's first, has made it; last, in this frame."""
    GLOBAL = 3
    """It is the address of the global of that number."""
    BELOW = 4
    """The record has, in four bytes, how far below the frame it lies."""
    COMPUTED = 5
    """The formula of that number gives it."""
    VARIABLE = 6
    """What the variable of site n // 16 (counted like those of results) was last given; else n % 16 bytes of the record."""
    AGAIN = 7
    """What the same site has made last, in this frame; else so many bytes of the record."""
    RETURNED = 8
    """What was returned last."""
    ARGUMENT = 9
    """The argument of that number, of those that are recorded, of the last call."""


LINEAR = 0
"""The formula is a sum; others are named by the opcode of the instruction."""


class Formula(msgspec.Struct, frozen=True, array_like=True):
    """How the reader computes a result."""

    op: int
    bits: int
    """Width of the result."""
    base: int
    """What is added to a sum; of a comparison, LLVM's number of the predicate."""
    terms: list[tuple[int, int, int, int]]
    """Operands: where from (an `Origin` and a number), their width (with sign, unless 64), and a factor in a sum."""


class Function(msgspec.Struct, frozen=True, array_like=True):
    """A function's sites: the first, which is its entry, and how many it has."""

    first: int
    count: int


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
    functions: list[Function] = []
    pieces: list[Piece] = []
    formulas: list[Formula] = []
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
