"""The LLVM-C API of an installed libLLVM through ctypes: the functions that the instrumentation needs.

The C API is stable from LLVM 14 to 19. Only pointers differ: they have types in 14, and are opaque from 15 on. The
instrumentation does not use the type that a pointer points to. It passes addresses to the recorder as 64-bit integers.
So it works with both.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from plait.kernel.errors import PlaitError, UsageError

Ref = int
"""A value, a type, a block, a module: an address in LLVM's memory."""

# Opcodes and kinds of the C API (llvm-c/Core.h); they do not change between versions.
RET, BR, INVOKE, ALLOCA, LOAD, STORE, GEP, BITCAST, PHI, CALL = 1, 2, 5, 26, 27, 28, 29, 41, 44, 45
ADD, SUB, MUL, SHL, LSHR, ASHR, AND, OR, XOR, ICMP, SELECT = 8, 10, 12, 20, 21, 22, 23, 24, 25, 42, 46
TRUNC, ZEXT, SEXT, PTRTOINT, INTTOPTR = 30, 31, 32, 39, 40
UDIV, SDIV, UREM, SREM, CMPXCHG, RMW, LANDINGPAD = 14, 15, 17, 18, 56, 57, 59
EXTERNAL, AVAILABLE, INTERNAL, PRIVATE = 0, 1, 8, 9
"""Linkages whose definitions cannot be replaced. The last two are not visible outside of their module."""
OPCODES = {
    8: "add", 9: "fadd", 10: "sub", 11: "fsub", 12: "mul", 13: "fmul", 14: "udiv", 15: "sdiv", 16: "fdiv", 17: "urem",
    18: "srem", 19: "frem", 20: "shl", 21: "lshr", 22: "ashr", 23: "and", 24: "or", 25: "xor", 26: "alloca", 27: "load",
    28: "store", 29: "getelementptr", 30: "trunc", 31: "zext", 32: "sext", 33: "fptoui", 34: "fptosi", 35: "uitofp",
    36: "sitofp", 37: "fptrunc", 38: "fpext", 39: "ptrtoint", 40: "inttoptr", 42: "icmp", 43: "fcmp", 44: "phi",
    45: "call", 46: "select", 49: "va_arg", 50: "extractelement", 53: "extractvalue", 56: "cmpxchg", 57: "atomicrmw",
    66: "fneg", 68: "freeze", 1: "return", 5: "invoke", 59: "landingpad",
}  # fmt: skip
"""Instructions that have a name in traces."""
HALF, FLOAT, DOUBLE, FP80, FP128, INTEGER, STRUCT, POINTER, VECTOR = 1, 2, 3, 4, 5, 8, 10, 12, 13

_FUNCTION = 0xFFFFFFFF
"""The index for attributes of the function itself, not of its result or of an argument."""
_P, _U, _N, _S = ctypes.c_void_p, ctypes.c_uint, ctypes.c_ulonglong, ctypes.c_char_p
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    # name: result, arguments
    "ContextCreate": (_P,),
    "CreateMemoryBufferWithContentsOfFile": (ctypes.c_int, _S, _P, _P),
    "ParseBitcodeInContext2": (ctypes.c_int, _P, _P, _P),
    "WriteBitcodeToFile": (ctypes.c_int, _P, _S),
    "VerifyModule": (ctypes.c_int, _P, ctypes.c_int, _P),
    "GetModuleDataLayout": (_P, _P),
    "SizeOfTypeInBits": (_N, _P, _P),
    "StoreSizeOfType": (_N, _P, _P),
    "ABISizeOfType": (_N, _P, _P),
    "GetFirstFunction": (_P, _P),
    "GetNextFunction": (_P, _P),
    "GetFirstGlobal": (_P, _P),
    "GetNextGlobal": (_P, _P),
    "IsDeclaration": (ctypes.c_int, _P),
    "IsThreadLocal": (ctypes.c_int, _P),
    "GlobalGetValueType": (_P, _P),
    "GetFirstBasicBlock": (_P, _P),
    "GetNextBasicBlock": (_P, _P),
    "GetFirstInstruction": (_P, _P),
    "GetNextInstruction": (_P, _P),
    "GetInstructionOpcode": (ctypes.c_int, _P),
    "GetNumOperands": (ctypes.c_int, _P),
    "GetNumArgOperands": (_U, _P),
    "GetOperand": (_P, _P, _U),
    "SetOperand": (None, _P, _U, _P),
    "GetCalledValue": (_P, _P),
    "GetCalledFunctionType": (_P, _P),
    "GetLinkage": (ctypes.c_int, _P),
    "CountParams": (_U, _P),
    "GetParam": (_P, _P, _U),
    "GetNormalDest": (_P, _P),
    "SetNormalDest": (None, _P, _P),
    "InsertBasicBlockInContext": (_P, _P, _P, _S),
    "GetOrdering": (ctypes.c_int, _P),
    "GetAllocatedType": (_P, _P),
    "IsAFunction": (_P, _P),
    "IsAInstruction": (_P, _P),
    "IsAInlineAsm": (_P, _P),
    "IsAConstantInt": (_P, _P),
    "IsAGlobalValue": (_P, _P),
    "IsAArgument": (_P, _P),
    "ConstIntGetSExtValue": (ctypes.c_longlong, _P),
    "TypeOf": (_P, _P),
    "GetTypeKind": (ctypes.c_int, _P),
    "GetIntTypeWidth": (_U, _P),
    "GetValueName2": (_S, _P, _P),
    "GetDebugLocLine": (_U, _P),
    "GetDebugLocFilename": (_P, _P, _P),
    "GetDebugLocDirectory": (_P, _P, _P),
    "InstructionGetDebugLoc": (_P, _P),
    "SetCurrentDebugLocation2": (None, _P, _P),
    "ReplaceAllUsesWith": (None, _P, _P),
    "CreateBuilderInContext": (_P, _P),
    "PositionBuilderBefore": (None, _P, _P),
    "PositionBuilderAtEnd": (None, _P, _P),
    "BuildCall2": (_P, _P, _P, _P, _P, _U, _S),
    "BuildZExt": (_P, _P, _P, _P, _S),
    "BuildTrunc": (_P, _P, _P, _P, _S),
    "BuildBitCast": (_P, _P, _P, _P, _S),
    "BuildPtrToInt": (_P, _P, _P, _P, _S),
    "BuildIntToPtr": (_P, _P, _P, _P, _S),
    "BuildLShr": (_P, _P, _P, _P, _S),
    "BuildXor": (_P, _P, _P, _P, _S),
    "BuildAnd": (_P, _P, _P, _P, _S),
    "BuildNot": (_P, _P, _P, _S),
    "BuildMul": (_P, _P, _P, _P, _S),
    "BuildAlloca": (_P, _P, _P, _S),
    "BuildLoad2": (_P, _P, _P, _P, _S),
    "BuildStore": (_P, _P, _P, _P),
    "BuildMemSet": (_P, _P, _P, _P, _P, _U),
    "PrintValueToString": (_P, _P),
    "GetModuleInlineAsm": (_S, _P, _P),
    "BuildBr": (_P, _P, _P),
    "BuildRetVoid": (_P, _P),
    "IntTypeInContext": (_P, _P, _U),
    "VoidTypeInContext": (_P, _P),
    "PointerType": (_P, _P, _U),
    "FunctionType": (_P, _P, _P, _U, ctypes.c_int),
    "StructTypeInContext": (_P, _P, _P, _U, ctypes.c_int),
    "ArrayType": (_P, _P, _U),
    "AddFunction": (_P, _P, _S, _P),
    "AddGlobal": (_P, _P, _P, _S),
    "SetInitializer": (None, _P, _P),
    "SetSection": (None, _P, _S),
    "SetAlignment": (None, _P, _U),
    "ConstInt": (_P, _P, _N, ctypes.c_int),
    "ConstBitCast": (_P, _P, _P),
    "ConstStructInContext": (_P, _P, _P, _U, ctypes.c_int),
    "ConstArray": (_P, _P, _P, _U),
    "AppendBasicBlockInContext": (_P, _P, _P, _S),
    "GetFirstUse": (_P, _P),
    "GetNextUse": (_P, _P),
    "GetUser": (_P, _P),
    "GetNumSuccessors": (_U, _P),
    "GetSuccessor": (_P, _P, _U),
    "GetModuleContext": (_P, _P),
    "GetSourceFileName": (_S, _P, ctypes.POINTER(ctypes.c_size_t)),
    "GetElementType": (_P, _P),
    "GetGEPSourceElementType": (_P, _P),
    "OffsetOfElement": (_N, _P, _P, _U),
    "StructGetTypeAtIndex": (_P, _P, _U),
    "GetICmpPredicate": (ctypes.c_int, _P),
    "LinkModules2": (ctypes.c_int, _P, _P),
    "GetNamedFunction": (_P, _P, _S),
    "SetLinkage": (None, _P, ctypes.c_int),
    "SetVolatile": (None, _P, ctypes.c_int),
    "GetBasicBlockTerminator": (_P, _P),
    "GetInstructionParent": (_P, _P),
    "InstructionRemoveFromParent": (None, _P),
    "InsertIntoBuilder": (None, _P, _P),
    "IsConstant": (ctypes.c_int, _P),
    "IsUndef": (ctypes.c_int, _P),
    "IsAConstantFP": (_P, _P),
    "IsAConstantPointerNull": (_P, _P),
    "ConstIntGetZExtValue": (_N, _P),
    "ConstRealGetDouble": (ctypes.c_double, _P, _P),
    "BuildAdd": (_P, _P, _P, _P, _S),
    "BuildSub": (_P, _P, _P, _P, _S),
    "GetEnumAttributeKindForName": (_U, _S, ctypes.c_size_t),
    "GetEnumAttributeAtIndex": (_P, _P, _U, _U),
    "RemoveEnumAttributeAtIndex": (None, _P, _U, _U),
    "GetCallSiteEnumAttribute": (_P, _P, _U, _U),
    "CreatePassBuilderOptions": (_P,),
    "DisposePassBuilderOptions": (None, _P),
    "RunPasses": (_P, _P, _S, _P, _P),
    "GetErrorMessage": (_S, _P),
}


class Llvm:
    """An installed libLLVM. `llvm.BuildZExt(…)` is `LLVMBuildZExt(…)`."""

    def __init__(self, library: Path) -> None:
        try:
            loaded = ctypes.CDLL(str(library))
            for name, (result, *arguments) in _SIGNATURES.items():
                function = getattr(loaded, f"LLVM{name}")
                function.restype = result
                function.argtypes = arguments
                setattr(self, name, function)
        except (OSError, AttributeError) as error:
            raise UsageError(f"{library} cannot be used: {error}", hint="install another version of clang") from None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"LLVM{name} is not among the signatures of {__name__}")

    def read(self, context: Ref, file: Path) -> Ref:
        """Parse bitcode."""
        buffer, module, message = _P(), _P(), _P()
        failed = self.CreateMemoryBufferWithContentsOfFile(
            str(file).encode(), ctypes.byref(buffer), ctypes.byref(message)
        ) or self.ParseBitcodeInContext2(context, buffer, ctypes.byref(module))
        if failed or module.value is None:
            raise UsageError(
                f"{file} cannot be read as LLVM bitcode", hint="clang and libLLVM must have the same version"
            )
        return module.value

    def verify(self, module: Ref) -> str | None:
        """The error in a module; None if it is valid."""
        message = _P()
        if self.VerifyModule(module, 2, ctypes.byref(message)) and message.value:
            return ctypes.string_at(message.value).decode(errors="replace")
        return None

    def passes(self, module: Ref, names: str) -> None:
        """Run LLVM passes on a module."""
        options = self.CreatePassBuilderOptions()
        failed = self.RunPasses(module, names.encode(), None, options)
        self.DisposePassBuilderOptions(options)
        if failed:
            said: bytes = self.GetErrorMessage(failed)
            raise PlaitError(f"LLVM cannot run {names}: {said.decode(errors='replace')}")

    def returns_twice(self, call: Ref, callee: Ref) -> bool:
        """Whether a call can return twice, as setjmp does."""
        name = b"returns_twice"
        kind = self.GetEnumAttributeKindForName(name, len(name))
        declared = self.IsAFunction(callee) and self.GetEnumAttributeAtIndex(callee, _FUNCTION, kind)
        return bool(declared or self.GetCallSiteEnumAttribute(call, _FUNCTION, kind))

    def assembly(self, value: Ref) -> str:
        """The text of inline assembly."""
        shown = ctypes.string_at(self.PrintValueToString(value)).decode(errors="replace")
        found = re.search(r'asm [^"]*"((?:[^"\\\\]|\\\\.)*)"', shown)
        return found[1] if found else shown

    def copied(self, function: Ref, parameter: int) -> bool:
        """Whether a parameter is the address of a copy of the argument (byval)."""
        name = b"byval"
        return bool(self.GetEnumAttributeAtIndex(function, parameter + 1, self.GetEnumAttributeKindForName(name, 5)))

    def keep_calls(self, function: Ref) -> None:
        """Keep a function that asks to be inlined: it must have a frame of its own."""
        name = b"alwaysinline"
        kind = self.GetEnumAttributeKindForName(name, len(name))
        if self.GetEnumAttributeAtIndex(function, _FUNCTION, kind):
            self.RemoveEnumAttributeAtIndex(function, _FUNCTION, kind)
            if self.GetLinkage(function) == AVAILABLE:  # there may be no other definition
                self.SetLinkage(function, INTERNAL)

    def name(self, value: Ref) -> str:
        """The name of a value; empty if it has none."""
        length = ctypes.c_size_t()
        found: bytes | None = self.GetValueName2(value, ctypes.byref(length))
        return found.decode(errors="replace") if found else ""

    def source(self, module: Ref) -> str:
        """The source file of a module, as clang got it."""
        found: bytes = self.GetSourceFileName(module, ctypes.byref(ctypes.c_size_t()))
        return found.decode(errors="replace")

    def place(self, value: Ref) -> tuple[str, int]:
        """The file and line of an instruction or a function."""
        parts = []
        for get in (self.GetDebugLocDirectory, self.GetDebugLocFilename):
            length = _U()
            at = get(value, ctypes.byref(length))
            parts.append(ctypes.string_at(at, length.value).decode(errors="replace") if at else "")
        line: int = self.GetDebugLocLine(value)
        return str(Path(*parts)) if parts[1] else "", line

    def functions(self, module: Ref) -> Iterator[Ref]:
        """The functions of a module."""
        yield from self._chain(self.GetFirstFunction(module), self.GetNextFunction)

    def globals(self, module: Ref) -> Iterator[Ref]:
        """The variables of a module."""
        yield from self._chain(self.GetFirstGlobal(module), self.GetNextGlobal)

    def blocks(self, function: Ref) -> Iterator[list[Ref]]:
        """The instructions of a function, block by block."""
        for block in self._chain(self.GetFirstBasicBlock(function), self.GetNextBasicBlock):
            yield list(self._chain(self.GetFirstInstruction(block), self.GetNextInstruction))

    def users(self, value: Ref) -> Iterator[Ref]:
        """The instructions that use a value."""
        for use in self._chain(self.GetFirstUse(value), self.GetNextUse):
            yield self.GetUser(use)

    def successors(self, end: Ref) -> list[Ref]:
        """The possible next blocks after a terminator."""
        return [self.GetSuccessor(end, i) for i in range(self.GetNumSuccessors(end))]

    @staticmethod
    def _chain(first: Ref | None, following: Any) -> Iterator[Ref]:
        here = first
        while here:
            after = following(here)
            yield here
            here = after


def array(values: Sequence[Ref]) -> Any:
    """A C array of references."""
    return (_P * max(1, len(values)))(*values)
