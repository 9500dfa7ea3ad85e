"""The addresses of globals: lists in sections of the program. The recorder writes them to the trace at the start."""

from __future__ import annotations

from plait.epa.instrumentation.llvm import CALL, INVOKE, Ref, array
from plait.epa.instrumentation.pieces import Hooks
from plait.epa.instrumentation.table import Global


class Places:
    """The lists of one module."""

    def __init__(self, hooks: Hooks, index: int) -> None:
        self.llvm, self.hooks, self.words, self.index = hooks.llvm, hooks, hooks.words, index

    def tell(self, variables: list[Ref], functions: list[Ref], known: list[Global]) -> dict[Ref, int]:
        """Make the lists, add the globals to `known`, and return the numbers of those with a fixed address."""
        placed: dict[Ref, int] = {}
        llvm = self.llvm
        byte_pointer = llvm.PointerType(llvm.IntTypeInContext(self.words.context, 8), 0)
        fields = [byte_pointer, self.words.i64, self.words.i64]
        entry = llvm.StructTypeInContext(self.words.context, array(fields), 3, 0)
        rows: list[Ref] = []
        local: list[tuple[Ref, int, int]] = []
        for value in [*variables, *functions]:
            name = llvm.name(value)
            is_function = bool(llvm.IsAFunction(value))
            if name.startswith(("llvm.", "epa_")) or (llvm.IsDeclaration(value) and not is_function):
                continue
            if llvm.IsDeclaration(value):
                if self._taken(value):
                    parts = [
                        llvm.ConstBitCast(value, byte_pointer),
                        self.words.number(1),
                        self.words.number(len(known)),
                    ]
                    rows.append(llvm.ConstStructInContext(self.words.context, array(parts), 3, 0))
                    known.append(Global(name, "external"))
                continue
            size = 1 if is_function else llvm.ABISizeOfType(self.words.layout, llvm.GlobalGetValueType(value))
            is_local = not is_function and bool(llvm.IsThreadLocal(value))
            number = len(known)
            known.append(Global(name, "function" if is_function else "local" if is_local else "global"))
            if is_local:
                local.append((value, size, number))
            elif size:
                parts = [llvm.ConstBitCast(value, byte_pointer), self.words.number(size), self.words.number(number)]
                rows.append(llvm.ConstStructInContext(self.words.context, array(parts), 3, 0))
                placed[value] = number
        if rows:
            self._section("epa_globals", entry, rows)
        if local:
            self._locals(local)
        return placed

    def _taken(self, function: Ref) -> bool:
        """Whether a function is used in another way than by a direct call: it may be called through a pointer."""
        llvm = self.llvm
        for user in llvm.users(function):
            called = llvm.IsAInstruction(user) and llvm.GetInstructionOpcode(user) in (CALL, INVOKE)
            if not called or llvm.GetCalledValue(user) != function:
                return True
            if any(llvm.GetOperand(user, i) == function for i in range(llvm.GetNumArgOperands(user))):
                return True
        return False

    def _locals(self, variables: list[tuple[Ref, int, int]]) -> None:
        """Add a function that reports the addresses of thread-local variables of the calling thread to the recorder."""
        llvm = self.llvm
        kind = llvm.FunctionType(self.hooks.void, array([]), 0, 0)
        function = llvm.AddFunction(self.hooks.module, f"epa_locals_of_{self.index}".encode(), kind)
        llvm.PositionBuilderAtEnd(self.words.builder, llvm.AppendBasicBlockInContext(self.words.context, function, b""))
        llvm.SetCurrentDebugLocation2(self.words.builder, None)
        number_of = self.words.number
        for value, size, number in variables:
            self.hooks("epa_range", number_of(number, 32), number_of(3, 32), self.words.word(value), number_of(size))
        llvm.BuildRetVoid(self.words.builder)
        self._section("epa_locals", llvm.TypeOf(function), [function])

    def _section(self, name: str, kind: Ref, rows: list[Ref]) -> None:
        llvm = self.llvm
        table = llvm.AddGlobal(self.hooks.module, llvm.ArrayType(kind, len(rows)), f"{name}_of_{self.index}".encode())
        llvm.SetInitializer(table, llvm.ConstArray(kind, array(rows), len(rows)))
        llvm.SetSection(table, name.encode())
        llvm.SetAlignment(table, 8)
