"""Conversions between LLVM values and the 64-bit words of records."""

from __future__ import annotations

import struct

from plait.epa.instrumentation import llvm as ll
from plait.epa.instrumentation.llvm import Llvm, Ref
from plait.epa.instrumentation.table import Class

_MIX = 0x9E3779B97F4A7C15


class Words:
    """Inserts conversions at the position of a builder."""

    def __init__(self, library: Llvm, module: Ref, builder: Ref) -> None:
        self.llvm, self.builder = library, builder
        self.layout = library.GetModuleDataLayout(module)
        self.context = library.GetModuleContext(module)
        self.i64 = library.IntTypeInContext(self.context, 64)
        self.i32 = library.IntTypeInContext(self.context, 32)

    def number(self, value: int, bits: int = 64) -> Ref:
        """A constant."""
        constant: Ref = self.llvm.ConstInt(self.i64 if bits == 64 else self.i32, value, 0)
        return constant

    def size(self, alloca: Ref) -> int | None:
        """The size of a stack object, if it is constant."""
        count = self.constant(self.llvm.GetOperand(alloca, 0))
        each: int = self.llvm.ABISizeOfType(self.layout, self.llvm.GetAllocatedType(alloca))
        return None if count is None else count * each

    def zero(self, address: Ref, size: Ref) -> None:
        """Set memory to zero."""
        byte = self.llvm.ConstInt(self.llvm.IntTypeInContext(self.context, 8), 0, 0)
        self.llvm.BuildMemSet(self.builder, address, byte, size, 1)

    def width(self, kind: Ref) -> int:
        """The number of bytes of a value of this type in a record."""
        bits = self.sort(kind)[1] or 64
        return next(n for n in (1, 2, 4, 8) if bits <= 8 * n)

    def constant(self, value: Ref) -> int | None:
        """The word of a constant with a known value. None: not such a constant."""
        llvm = self.llvm
        kind = llvm.TypeOf(value)
        if llvm.IsAConstantInt(value) and llvm.GetIntTypeWidth(kind) <= 64:
            plain: int = llvm.ConstIntGetZExtValue(value)
            return plain
        if llvm.IsAConstantPointerNull(value):
            return 0
        if llvm.IsAConstantFP(value):
            real = llvm.ConstRealGetDouble(value, ll.array([0]))
            if llvm.GetTypeKind(kind) == ll.DOUBLE:
                return int.from_bytes(struct.pack("<d", real), "little")
            if llvm.GetTypeKind(kind) == ll.FLOAT:
                return int.from_bytes(struct.pack("<f", real), "little")
        return None

    def sort(self, kind: Ref) -> tuple[Class, int]:
        """The kind of values of a type, and their width if the recorder can change them."""
        llvm = self.llvm
        shape = llvm.GetTypeKind(kind)
        if shape == ll.INTEGER:
            width: int = llvm.GetIntTypeWidth(kind)
            return ("word" if width == 64 else "plain", width) if width <= 64 else ("opaque", 0)
        simple: dict[int, tuple[Class, int]] = {
            ll.POINTER: ("pointer", 64),
            ll.FLOAT: ("float", 32),
            ll.DOUBLE: ("double", 64),
            ll.HALF: ("plain", 16),
            ll.FP80: ("opaque", 0),
            ll.FP128: ("opaque", 0),
            ll.VECTOR: ("opaque", 0),
        }
        return simple.get(shape, ("none", 0))

    def word(self, value: Ref) -> Ref:
        """A value as a 64-bit integer; for wider values, a digest."""
        llvm, builder = self.llvm, self.builder
        kind = llvm.TypeOf(value)
        shape = llvm.GetTypeKind(kind)
        result: Ref
        if shape == ll.POINTER:
            result = llvm.BuildPtrToInt(builder, value, self.i64, b"")
        elif shape == ll.INTEGER and llvm.GetIntTypeWidth(kind) <= 64:
            narrow = llvm.GetIntTypeWidth(kind) < 64
            result = llvm.BuildZExt(builder, value, self.i64, b"") if narrow else value
        elif self.sort(kind)[0] == "none":
            result = self.number(0)
        else:
            bits = llvm.SizeOfTypeInBits(self.layout, kind)
            raw = llvm.IntTypeInContext(self.context, bits)
            if shape == ll.VECTOR and self._has_pointers(value):
                return self.number(0)
            whole = value if shape == ll.INTEGER else llvm.BuildBitCast(builder, value, raw, b"")
            if bits <= 64:
                return self._stretch(whole, bits)
            result = self.number(0)
            for shift in range(0, bits, 64):
                part = llvm.BuildLShr(builder, whole, llvm.ConstInt(raw, shift, 0), b"") if shift else whole
                result = llvm.BuildMul(builder, result, self.number(_MIX), b"")
                part = llvm.BuildTrunc(builder, part, self.i64, b"")
                result = llvm.BuildXor(builder, result, part, b"")
        return result

    def _stretch(self, whole: Ref, bits: int) -> Ref:
        result: Ref = self.llvm.BuildZExt(self.builder, whole, self.i64, b"") if bits < 64 else whole
        return result

    def _has_pointers(self, value: Ref) -> bool:
        element = self.llvm.GetElementType(self.llvm.TypeOf(value))
        return bool(self.llvm.GetTypeKind(element) == ll.POINTER)

    def back(self, word: Ref, kind: Ref) -> Ref:
        """The inverse of `word`, for values of at most 64 bits."""
        llvm, builder = self.llvm, self.builder
        shape = llvm.GetTypeKind(kind)
        result: Ref
        if shape == ll.POINTER:
            result = llvm.BuildIntToPtr(builder, word, kind, b"")
        elif shape == ll.INTEGER:
            result = llvm.BuildTrunc(builder, word, kind, b"") if llvm.GetIntTypeWidth(kind) < 64 else word
        else:
            bits = llvm.SizeOfTypeInBits(self.layout, kind)
            raw = llvm.IntTypeInContext(self.context, bits)
            narrow = llvm.BuildTrunc(builder, word, raw, b"") if bits < 64 else word
            result = llvm.BuildBitCast(builder, narrow, kind, b"")
        return result
