"""The bitcode in object files, and the members of archives (ELF and `ar`, as on Linux)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_CLANG, _OURS = b".llvmbc", b".epa_bc"
"""The section of the bitcode. Clang names it `.llvmbc` (`-fembed-bitcode`). But with this name, the LLVM plugins of ar
and ld take the object for one of link-time optimization."""
_ELF = b"\x7fELF\x02\x01"
_OBJECT = 1
"""The type of an ELF file that can be linked. Programs and shared libraries have other types."""
_BITCODE = b"BC\xc0\xde"
_ARCHIVE, _THIN = b"!<arch>\n", b"!<thin>\n"
_HEADER = 60
"""Bytes of the header of an archive member."""


class Member(NamedTuple):
    """A member of an archive."""

    name: str
    """As the archive has it. For a thin archive: the path of the file, from the folder of the archive."""
    content: bytes
    thin: bool


def modules(content: bytes) -> list[bytes]:
    """The bitcode modules of an object file. `ld -r` makes objects with several modules.

    >>> modules(b"no object")
    []
    """
    found = _section(content)
    return list(_split(content[found.at : found.at + found.length])) if found else []


def rename(path: Path) -> None:
    """Rename the bitcode section of an object file that clang has made. Both names have the same length."""
    try:
        content = path.read_bytes()
        if (found := _section(content)) and content[found.name : found.name + len(_CLANG)] == _CLANG:
            with path.open("r+b") as file:
                file.seek(found.name)
                file.write(_OURS)
    except OSError:
        return  # not a file (/dev/null), or not ours


class _Section(NamedTuple):
    """Positions in an object file."""

    name: int
    at: int
    length: int


def _section(content: bytes) -> _Section | None:
    """The bitcode section; None if there is none."""
    if not content.startswith(_ELF) or len(content) < 64 or content[16] != _OBJECT:
        return None
    (table,) = struct.unpack_from("<Q", content, 40)
    size, count, names = struct.unpack_from("<HHH", content, 58)
    try:
        first = struct.unpack_from("<QI", content, table + 32)
        count, names = count or first[0], first[1] if names == 0xFFFF else names  # numbers too large for the header
        rows = [struct.unpack_from("<IIQQQQ", content, table + size * i) for i in range(count)]
        texts = rows[names][4]
        for name, _, _, _, at, length in rows:
            start = texts + name
            if content[start : content.index(b"\0", start)] in (_CLANG, _OURS):
                return _Section(start, at, length)
    except (struct.error, IndexError, ValueError):
        return None  # the linker will say that the object is damaged
    return None


def _split(content: bytes) -> Iterator[bytes]:
    """Split bitcode that was concatenated. A module is the magic number and blocks; a block has its length in words."""
    at = 0
    while (begin := content.find(_BITCODE, at)) >= 0:
        at = begin + 4
        while at + 8 <= len(content) and content[at : at + 4] != _BITCODE and content[at] & 3 == 1:
            at += 8 + 4 * int(struct.unpack_from("<I", content, at + 4)[0])
        yield content[begin:at]


def is_archive(content: bytes) -> bool:
    """Whether a file is an archive.

    >>> is_archive(b"!<arch>\\n"), is_archive(b"!<thin>\\n"), is_archive(b"INPUT(a.o)")
    (True, True, False)
    """
    return content.startswith((_ARCHIVE, _THIN))


def members(path: Path) -> list[Member]:
    """The members of an archive that are files, in order. The format is the one of GNU and LLVM `ar`."""
    content = path.read_bytes()
    thin = content.startswith(_THIN)
    found: list[Member] = []
    names = b""
    at = len(_ARCHIVE)
    while at + _HEADER <= len(content):
        name = content[at : at + 16].rstrip()
        size = int(content[at + 48 : at + 58])
        at += _HEADER
        special = name in (b"/", b"//", b"/SYM64/")
        body = content[at : at + size] if special or not thin else b""
        if name == b"//":
            names = body
        elif not special:
            if name.startswith(b"/"):  # the name is in the table of long names
                start = int(name[1:])
                name = names[start : names.index(b"/\n", start)]
            text = name.removesuffix(b"/").decode(errors="surrogateescape")
            found.append(Member(text, (path.parent / text).read_bytes() if thin else body, thin))
        at += len(body) + len(body) % 2
    return found
