"""The few functions of libclang that its Python binding does not offer, and the translation unit of a file."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plait.bmc.program.source import Place, Source
from plait.kernel.extras import needs

with needs("c"):
    from clang import cindex

HEADERS = Path(__file__).parents[1] / "headers"
"""Headers of our own: the result does not depend on those of the machine."""

_OPTIONS = [
    "-x",
    "c",
    "-std=gnu17",
    "--target=x86_64-pc-linux-gnu",
    "-nostdinc",
    "-isystem",
    str(HEADERS),
    "-idirafter",
    "/usr/include",
    "-idirafter",
    "/usr/include/x86_64-linux-gnu",
    "-include",
    str(HEADERS / "plait_builtins.h"),
    "-w",
    "-Wno-implicit-function-declaration",
    "-Wno-implicit-int",
    "-Wno-int-conversion",
    "-Wno-return-type",
    "-Wno-incompatible-function-pointer-types",
    "-ferror-limit=1",
]

UNARY = {1: "++", 2: "--", 3: "++", 4: "--", 5: "&", 6: "*", 7: "+", 8: "-", 9: "~", 10: "!", 13: "extension"}
"""Operators by the number that libclang gives them; 1 and 2 are behind their operand."""
BINARY = dict(
    enumerate(
        [
            "*",
            "/",
            "%",
            "+",
            "-",
            "<<",
            ">>",
            "<=>",
            "<",
            ">",
            "<=",
            ">=",
            "==",
            "!=",
            "&",
            "^",
            "|",
            "&&",
            "||",
            "=",
            "*=",
            "/=",
            "%=",
            "+=",
            "-=",
            "<<=",
            ">>=",
            "&=",
            "^=",
            "|=",
            ",",
        ],
        3,
    )
)


def _function(name: str, result: Any, *arguments: Any) -> Any:
    found = getattr(cindex.conf.lib, name)
    found.argtypes, found.restype = list(arguments), result
    return found


def unary(cursor: Any) -> tuple[str, bool]:
    """The operator of a unary expression, and whether it is before its operand."""
    number = _function("clang_getCursorUnaryOperatorKind", ctypes.c_int, cindex.Cursor)(cursor)
    return UNARY.get(number, "unknown"), number not in (1, 2)


def binary(cursor: Any) -> str:
    """The operator of a binary expression or a compound assignment."""
    number = _function("clang_getCursorBinaryOperatorKind", ctypes.c_int, cindex.Cursor)(cursor)
    return BINARY.get(number, "unknown")


def value(cursor: Any) -> int | None:
    """The value of a constant expression."""
    found = _function("clang_Cursor_Evaluate", ctypes.c_void_p, cindex.Cursor)(cursor)
    if not found:
        return None
    try:
        if _function("clang_EvalResult_getKind", ctypes.c_int, ctypes.c_void_p)(found) != 1:
            return None
        if _function("clang_EvalResult_isUnsignedInt", ctypes.c_uint, ctypes.c_void_p)(found):
            return int(_function("clang_EvalResult_getAsUnsigned", ctypes.c_ulonglong, ctypes.c_void_p)(found))
        return int(_function("clang_EvalResult_getAsLongLong", ctypes.c_longlong, ctypes.c_void_p)(found))
    finally:
        _function("clang_EvalResult_dispose", None, ctypes.c_void_p)(found)


def initialiser(cursor: Any) -> Any | None:
    """The initialiser of a variable."""
    found = _function("clang_Cursor_getVarDeclInitializer", cindex.Cursor, cindex.Cursor)(cursor)
    return None if found.kind.is_invalid() else _owned(found, cursor)


def atomic(type_: Any) -> Any:
    """The type inside of `_Atomic`."""
    found = _function("clang_Type_getValueType", cindex.Type, cindex.Type)(type_)
    found._tu = type_._tu
    return found


def anonymous(cursor: Any) -> bool:
    """Whether a struct or union inside of another one has neither a name nor a member of its type."""
    return bool(_function("clang_Cursor_isAnonymousRecordDecl", ctypes.c_uint, cindex.Cursor)(cursor))


def _owned(cursor: Any, by: Any) -> Any:
    cursor._tu = by._tu
    return cursor


def translation_unit(path: Path, source: Source, options: Sequence[str] = ()) -> Any:
    """Parse a file. What the compiler rejects is an error with its message and line."""
    # GCC's header has an atomic struct with an initialiser, which clang rejects. All operations on it are atomic anyway.
    text = re.sub(r"_Atomic(\s+struct\s*\{[^}]*\}\s*atomic_flag\s*;)", r"       \1", source.text)
    unit = cindex.Index.create().parse(str(path), args=[*_OPTIONS, *options], unsaved_files=[(str(path), text)])
    for diagnostic in unit.diagnostics:
        if diagnostic.severity >= cindex.Diagnostic.Error:
            at = diagnostic.location
            inside = at.file is not None and at.file.name == str(path)
            place = Place(max(at.line, 1), max(at.column, 1)) if inside else Place(1, 1)
            where = "" if inside or at.file is None else f" ({at.file.name}, line {at.line})"
            raise source.error(
                place, f"this is not valid C: {diagnostic.spelling}{where}", "compile the program with gcc -c first"
            )
    return unit
