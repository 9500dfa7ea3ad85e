"""The static table: the meaning of each recorded number. Programs and traces contain it."""

from __future__ import annotations

import enum
from typing import Literal

import msgspec

FORMAT = 6
"""The version of the record format (docs/reference/epa.md)."""
Class = Literal["none", "plain", "pointer", "word", "float", "double", "opaque"]
"""The kind of value of a site. A `word` is an integer as wide as a pointer: it may be an address."""


class Site(msgspec.Struct, frozen=True, array_like=True):
    """An instruction, an argument of a call, or the entry of a function. Its number is its place in the table."""

    op: str
    function: str
    file: str
    line: int
    kind: Class
    bits: int
    """The width of the value, for faults; 0 if it cannot be corrupted."""
    size: int
    """The number of accessed bytes, for loads and stores."""
    operands: list[int]
    """The sites whose results this one uses."""
    name: str
    """The variable of an alloca, or the function of a call; else empty."""
    parent: int = 0
    """For an argument: the site of its call."""
    index: int = 0
    """For an argument: its position. For a comparison of integers: the number of its predicate in LLVM."""
    shape: list[str] = []
    """The operands of a result: `#12` is the result of site 12, others are constants and names."""
    uses: int = 0
    """The number of uses of the result in the program."""


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """A straight-line piece of code: its events in order."""

    function: int
    """The number of its function."""
    steps: list[tuple[int, int, int, int, int, int]]
    """For each event: kind, site, and the origins of its two words (`Origin` and a number, each)."""


class Origin(enum.IntEnum):
    """The origin of a word of an event. Each origin has a number."""

    CONSTANT = 0
    """The word is the number."""
    STORED = 1
    """The word is in the record; the number is its width in bytes."""
    RESULT = 2
    """The last result in this frame of a site; the number counts from the first site of the function."""
    GLOBAL = 3
    """The address of the global with this number."""
    BELOW = 4
    """An address: the record has its distance below the frame, in four bytes."""
    COMPUTED = 5
    """The result of the formula with this number."""
    VARIABLE = 6
    """The last value of the variable of site n // 16 (counted as for results); else n % 16 bytes of the record."""
    AGAIN = 7
    """The last result of the same site in this frame; if it differs, the record has it, in this number of bytes."""
    RETURNED = 8
    """The last return value."""
    ARGUMENT = 9
    """The recorded argument with this number of the last call."""


LINEAR = 0
"""A formula that is a sum. For others, the opcode of the instruction is the name."""


class Formula(msgspec.Struct, frozen=True, array_like=True):
    """A formula: how the reader computes a result."""

    op: int
    bits: int
    """The width of the result."""
    base: int
    """The constant of a sum; for a comparison, the number of the predicate in LLVM."""
    terms: list[tuple[int, int, int, int]]
    """The operands: an `Origin` and a number, the width (signed, unless 64), and a factor for sums."""


class Function(msgspec.Struct, frozen=True, array_like=True):
    """The sites of a function: the first one (its entry), and their number."""

    first: int
    count: int


class Global(msgspec.Struct, frozen=True, array_like=True):
    """A global variable, a function, a thread-local variable, or an external function whose address is taken."""

    name: str
    kind: Literal["global", "function", "local", "external"]


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
    """The version of the record format of the program."""

    def site(self, number: int) -> Site:
        """The site of a recorded number.

        >>> Table([Site("load", "f", "a.c", 3, "plain", 32, 4, [], "")], [], "14", []).site(1).line
        3
        """
        return self.sites[number - 1]

    def place(self, number: int) -> str:
        """The place of a site in the source, as text; without a site, the start of the program."""
        if not number:
            return "the start"
        site = self.site(number)
        return f"{site.file}:{site.line}" if site.line else site.file or site.function

    def words(self, number: int) -> str:
        """A site as text: `load`, `call malloc`, `argument 0 of malloc`."""
        site = self.site(number)
        if site.op == "argument":
            return f"argument {site.index} of {site.name or 'a call'}"
        if site.op in ("call", "enter", "alloca") and site.name:
            return f"{site.op} {site.name}"
        return site.op
