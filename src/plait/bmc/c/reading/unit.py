"""A C file: its functions and variables, read from libclang on demand, and errors for what is not supported.

Only what `main` can reach is read, so headers may contain anything. `syntax.py` reads statements and expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from plait.bmc.c.reading import binding
from plait.bmc.c.reading.filling import mark_filled
from plait.bmc.c.reading.tree import Block, Declaration, Definition, nodes
from plait.bmc.c.reading.types import (
    SYNCHRONIZATION,
    Array,
    CType,
    Function,
    Integer,
    Pointer,
    Struct,
    Synchronization,
    Void,
)
from plait.bmc.c.reading.usage import analyse, note
from plait.bmc.program.source import Place, Source
from plait.kernel.errors import UsageError

_INTEGERS = {
    "BOOL": Integer(1, False, "_Bool"),
    "CHAR_S": Integer(8, True, "char"),
    "CHAR_U": Integer(8, False, "char"),
    "SCHAR": Integer(8, True, "signed char"),
    "UCHAR": Integer(8, False, "unsigned char"),
    "SHORT": Integer(16, True, "short"),
    "USHORT": Integer(16, False, "unsigned short"),
    "INT": Integer(32, True, "int"),
    "UINT": Integer(32, False, "unsigned int"),
    "LONG": Integer(64, True, "long"),
    "ULONG": Integer(64, False, "unsigned long"),
    "LONGLONG": Integer(64, True, "long long"),
    "ULONGLONG": Integer(64, False, "unsigned long long"),
    "WCHAR": Integer(32, True, "wchar_t"),
}
_REFUSED = {
    "FLOAT": "floating-point numbers",
    "DOUBLE": "floating-point numbers",
    "LONGDOUBLE": "floating-point numbers",
    "FLOAT128": "floating-point numbers",
    "HALF": "floating-point numbers",
    "COMPLEX": "complex numbers",
    "INT128": "128-bit integers",
    "UINT128": "128-bit integers",
    "VARIABLEARRAY": "arrays whose length is not a constant",
    "INCOMPLETEARRAY": "arrays without a length",
    "VECTOR": "vectors",
    "EXTVECTOR": "vectors",
}
_DEEPEST = 150
"""The number of statements and expressions that may be nested."""
_TEXT = 90
"""The length at which the text of a statement is cut."""


class Unit:
    """A parsed C file."""

    def __init__(self, path: Path, options: Sequence[str] = ()) -> None:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}", hint="give a .c or .i file") from None
        self.path, self.source = path, Source(str(path), text)
        self.raw = text.encode()
        self.unit = binding.translation_unit(path, self.source, options)
        self.bodies: dict[str, Any] = {}
        self.known: dict[str, Definition] = {}
        self.structs: dict[Any, Struct] = {}
        self.declarations: dict[Any, Declaration] = {}
        self.depth = 0
        self.locals: list[Declaration] = []
        """The variables of the function that is being read."""
        for cursor in self.unit.cursor.get_children():
            if cursor.kind.name == "FUNCTION_DECL" and cursor.is_definition():
                self.bodies[cursor.spelling] = cursor

    # -- places --------------------------------------------------------------------------------------------------------

    def place(self, cursor: Any, text: str | None = None) -> Place:
        """The place of a cursor, with its text in one line."""
        at = cursor.location if cursor.location.line else cursor.extent.start
        file = at.file.name if at.file is not None else str(self.path)
        shown = self.text(cursor) if text is None else text
        shown = " ".join(shown.split())
        shown = shown if len(shown) <= _TEXT else shown[: _TEXT - 1] + "…"
        start = cursor.extent.start
        line, column = (start.line, start.column) if start.line else (at.line, at.column)
        return Place(max(line, 1), max(column, 1), shown, "" if file == str(self.path) else file)

    def text(self, cursor: Any) -> str:
        """The source text of a cursor in the main file."""
        start, end = cursor.extent.start, cursor.extent.end
        if start.file is None or start.file.name != str(self.path):
            return ""
        return self.raw[start.offset : end.offset].decode(errors="replace")

    def refuse(self, cursor: Any, what: str, hint: str | None = None) -> NoReturn:
        """Say that a construct is not supported, and where it is."""
        raise self.refusal(self.place(cursor), what, hint)

    @contextmanager
    def nested(self, cursor: Any) -> Iterator[None]:
        """Read a statement or an expression inside of another one."""
        self.depth += 1
        if self.depth > _DEEPEST:
            self.refuse(cursor, "this deep nesting", "split the expression or the chain of else if")
        yield
        self.depth -= 1

    def refusal(self, place: Place, what: str, hint: str | None = None) -> Exception:
        """The error for a construct that is not supported."""
        if place.file:
            return UsageError(f"{place.file}, line {place.line}: {what} cannot be checked", hint=hint or _HINT)
        return self.source.error(place, f"{what} cannot be checked", hint or _HINT)

    # -- types ---------------------------------------------------------------------------------------------------------

    def type(self, t: Any, cursor: Any) -> CType:
        """The type of something at a cursor."""
        kind = t.kind.name
        if kind == "ELABORATED":
            return self.type(t.get_named_type(), cursor)
        if kind == "TYPEDEF":
            declared = t.get_declaration()
            if declared.spelling in SYNCHRONIZATION:
                return Synchronization(SYNCHRONIZATION[declared.spelling], max(t.get_size(), 1))
            return self.type(declared.underlying_typedef_type, cursor)
        if kind in _INTEGERS:
            return _INTEGERS[kind]
        if kind == "ATOMIC":
            return self._atomic(self.type(binding.atomic(t), cursor), cursor)
        if kind == "POINTER":
            return Pointer(self._pointee(t.get_pointee(), cursor))
        if kind == "ENUM":
            return self.type(t.get_declaration().enum_type, cursor)
        if kind == "CONSTANTARRAY":
            if t.element_count == 0:
                self.refuse(cursor, "an array of length 0")
            return Array(self.type(t.element_type, cursor), t.element_count)
        if kind == "RECORD":
            return self._struct(t, cursor)
        if kind == "VOID":
            return Void()
        if kind in ("FUNCTIONPROTO", "FUNCTIONNOPROTO"):
            return Function(len(list(t.argument_types())) if kind == "FUNCTIONPROTO" else -1)
        if kind in _REFUSED:
            self.refuse(cursor, _REFUSED[kind])
        canonical = t.get_canonical()
        if canonical.kind.name != kind:
            return self.type(canonical, cursor)
        return self.refuse(cursor, f"the type {t.spelling}")

    def _pointee(self, t: Any, cursor: Any) -> CType:
        """What a pointer points to. It may be unknown, as long as nobody uses it."""
        canonical = t.get_canonical()
        if canonical.kind.name in ("INCOMPLETEARRAY", "VARIABLEARRAY"):
            return self.type(t.element_type, cursor)
        if canonical.kind.name == "RECORD" and canonical.get_size() < 0:
            return Void()
        if canonical.kind.name == "UNEXPOSED" or canonical.kind.name in _REFUSED:
            return Void()
        return self.type(t, cursor)

    def _atomic(self, t: CType, cursor: Any) -> CType:
        if isinstance(t, Integer):
            return Integer(t.bits, t.signed, t.name, atomic=True)
        if isinstance(t, Pointer):
            return Pointer(t.target, atomic=True)
        return self.refuse(cursor, "an atomic struct")

    def _struct(self, t: Any, cursor: Any) -> Struct:
        declared = t.get_declaration()
        definition = declared.get_definition() or declared
        key = (definition.spelling, definition.location.offset, definition.hash)  # see `declaration`
        if key in self.structs:
            return self.structs[key]
        fields = list(definition.get_children())
        parts = [c for c in fields if c.kind.name == "FIELD_DECL"]
        if definition.kind.name == "UNION_DECL" and len(parts) != 1:
            self.refuse(cursor, "a union with several members")
        for part in fields:
            if part.kind.name in ("STRUCT_DECL", "UNION_DECL") and binding.anonymous(part):
                self.refuse(part if self._own(part) else cursor, "a struct or union without a name inside of a struct")
        found = self.structs[key] = Struct(definition.spelling or "unnamed", bytes=max(t.get_size(), 1))
        for part in parts:
            if part.is_bitfield():
                self.refuse(part if self._own(part) else cursor, f"the bit-field {part.spelling}")
            if part.type.get_canonical().kind.name == "INCOMPLETEARRAY":
                self.refuse(part if self._own(part) else cursor, f"the array {part.spelling} without a length")
            found.fields[part.spelling] = self.type(part.type, part if self._own(part) else cursor)
        return found

    def _own(self, cursor: Any) -> bool:
        return cursor.location.file is not None and cursor.location.file.name == str(self.path)

    # -- declarations --------------------------------------------------------------------------------------------------

    def declaration(self, cursor: Any) -> Declaration:
        """The variable that a cursor refers to, or declares."""
        from plait.bmc.c.reading.syntax import expression

        first = cursor.canonical
        key = (first.spelling, first.location.offset, first.hash)  # one macro may declare several variables of a name
        if key in self.declarations:
            return self.declarations[key]
        definition = cursor.get_definition() or cursor
        storage = definition.storage_class.name
        scope = definition.semantic_parent.kind.name if definition.semantic_parent else ""
        file_scope = scope == "TRANSLATION_UNIT"
        at = definition if self._own(definition) else cursor
        canonical = definition.type.get_canonical()
        if definition.kind.name == "PARM_DECL" and canonical.kind.name.endswith("ARRAY"):
            t: CType = Pointer(self.type(canonical.element_type, at))
        elif definition.kind.name == "VAR_DECL" and canonical.kind.name == "VARIABLEARRAY":
            t = Array(self.type(definition.type.element_type, at), 0)
        else:
            t = self.type(definition.type, at)
        found = Declaration(
            definition.spelling,
            t,
            self.place(definition),
            static=file_scope or storage in ("STATIC", "EXTERN"),
            defined=storage != "EXTERN" or binding.initialiser(definition) is not None,
        )
        self.declarations[key] = found
        if definition.kind.name == "VAR_DECL":
            found.thread_local = definition.tls_kind.name != "NONE"
            value = binding.initialiser(definition)
            if canonical.kind.name == "VARIABLEARRAY":
                lengths = [c for c in definition.get_children() if c.kind.is_expression()]
                found.length = expression(self, lengths[0]) if lengths else None
            found.initial = None if value is None else expression(self, value)
            for node in nodes(found):
                note(node)
        if not file_scope:
            self.locals.append(found)
        return found

    def variables(self) -> list[Declaration]:
        """The variables that exist for the whole run and have been read so far."""
        return [d for d in self.declarations.values() if d.static]

    def function(self, name: str) -> Definition | None:
        """A function with a body."""
        from plait.bmc.c.reading.syntax import statement

        if name in self.known:
            return self.known[name]
        cursor = self.bodies.get(name)
        if cursor is None:
            return None
        if cursor.type.kind.name == "FUNCTIONPROTO" and cursor.type.is_function_variadic():
            self.refuse(cursor, f"the function {name} with a variable number of arguments")
        outer, self.locals = self.locals, []
        parameters = [self.declaration(c) for c in cursor.get_arguments()]
        body = next(c for c in cursor.get_children() if c.kind.name == "COMPOUND_STMT")
        block = statement(self, body)
        assert isinstance(block, Block)
        found = Definition(
            name, parameters, self.type(cursor.result_type, cursor), block, self.place(cursor, name), self.locals
        )
        self.locals = outer
        analyse(found)
        mark_filled(found)
        self.known[name] = found
        return found


_HINT = "the section on C of docs/reference/bmc.md lists what can be checked"
