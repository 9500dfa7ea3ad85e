"""Instrumentation of LLVM IR: every load, store, alloca, call, return and result calls the recorder (thesis 004, 5.4.1).

A result passes through the recorder (`epa_value` takes it and gives it back), so that one binary serves golden and
faulty runs: the recorder changes the value at the site that a fault plan names. Values reach it as 64-bit integers,
addresses as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from plait.epa import llvm as ll
from plait.epa.effects import effects_of
from plait.epa.llvm import Llvm, Ref, array
from plait.epa.table import Class, Global, Site
from plait.kernel.errors import PlaitError, UsageError

_VALUES = {
    number
    for number, name in ll.OPCODES.items()
    if name not in ("alloca", "load", "store", "call", "return", "invoke", "landingpad", "va_arg", "extractvalue")
} - {ll.CMPXCHG, ll.RMW}
"""Instructions whose result is recorded and that do nothing else."""
_SILENT = ("llvm.dbg.", "llvm.lifetime.", "llvm.va_", "llvm.stack", "llvm.eh.", "llvm.assume", "llvm.invariant.")
_ARITY = {
    "epa_value": 2, "epa_load": 3, "epa_store": 3, "epa_alloca": 3, "epa_enter": 1, "epa_landing": 1, "epa_return": 2,
    "epa_call": 2, "epa_argument": 2, "epa_range": 4, "epa_string": 3, "epa_copy": 4, "epa_atomic": 0,
}  # fmt: skip
_GIVE_BACK = ("epa_value", "epa_load", "epa_argument")
MOST_SITES = 1 << 20
"""A record has 20 bits for its site."""
_MIX = 0x9E3779B97F4A7C15


class Instrumentation:
    """The sites and globals of a program's modules, numbered as they are instrumented."""

    def __init__(self, library: Llvm, sources: Sequence[Path] = ()) -> None:
        self.llvm = library
        # Sources are called as the user called them.
        self.names = {str(source.resolve()): str(source) for source in sources}
        self.sites: list[Site] = []
        self.globals: list[Global] = []
        self.warnings: list[str] = []
        self._modules = 0

    def instrument(self, bitcode: Path, result: Path) -> None:
        """Instrument one module."""
        llvm = self.llvm
        module = llvm.read(llvm.ContextCreate(), bitcode)
        _Module(self, module, self._modules).run()
        self._modules += 1
        if wrong := llvm.verify(module):
            raise PlaitError(f"the instrumentation of {bitcode.name} is not valid LLVM IR: {wrong}")
        if llvm.WriteBitcodeToFile(module, str(result).encode()):
            raise PlaitError(f"{result} cannot be written", hint="check the free space")

    def add(self, site: Site) -> int:
        """A new site's number."""
        if len(self.sites) + 1 >= MOST_SITES:
            raise UsageError(
                f"the program has more than {MOST_SITES:,} instructions", hint="instrument fewer of its sources"
            )
        self.sites.append(site)
        return len(self.sites)


class _Module:
    """One module while it is instrumented."""

    def __init__(self, program: Instrumentation, module: Ref, index: int) -> None:
        llvm = self.llvm = program.llvm
        self.program, self.module, self.index = program, module, index
        self.layout = llvm.GetModuleDataLayout(module)
        self.context = llvm.GetModuleContext(module)
        self.builder = llvm.CreateBuilderInContext(self.context)
        self.i32 = llvm.IntTypeInContext(self.context, 32)
        self.i64 = llvm.IntTypeInContext(self.context, 64)
        self.void = llvm.VoidTypeInContext(self.context)
        self.hooks: dict[str, tuple[Ref, Ref]] = {}
        self.numbers: dict[Ref, int] = {}
        self.function, self.file, self.line = "", "", 0

    def run(self) -> None:
        llvm = self.llvm
        functions = [f for f in llvm.functions(self.module) if not llvm.IsDeclaration(f)]
        variables = list(llvm.globals(self.module))
        for function in functions:
            self._function(function)
        self._globals(variables, functions)

    # ---- globals

    def _globals(self, variables: list[Ref], functions: list[Ref]) -> None:
        """Tell the recorder where globals are: a section of the program that lists address, size and number."""
        llvm = self.llvm
        byte_pointer = llvm.PointerType(llvm.IntTypeInContext(self.context, 8), 0)
        fields = [byte_pointer, self.i64, self.i64]
        entry = llvm.StructTypeInContext(self.context, array(fields), 3, 0)
        rows: list[Ref] = []
        local: list[tuple[Ref, int, int]] = []
        for value in [*variables, *functions]:
            name = llvm.name(value)
            if llvm.IsDeclaration(value) or name.startswith("llvm."):
                continue
            is_function = bool(llvm.IsAFunction(value))
            size = 1 if is_function else llvm.ABISizeOfType(self.layout, llvm.GlobalGetValueType(value))
            is_local = not is_function and bool(llvm.IsThreadLocal(value))
            number = len(self.program.globals)
            self.program.globals.append(Global(name, "function" if is_function else "local" if is_local else "global"))
            if is_local:
                local.append((value, size, number))
            elif size:
                parts = [llvm.ConstBitCast(value, byte_pointer), self._int(size), self._int(number)]
                rows.append(llvm.ConstStructInContext(self.context, array(parts), 3, 0))
        if rows:
            self._section("epa_globals", entry, rows)
        if local:
            self._locals(local)

    def _locals(self, variables: list[tuple[Ref, int, int]]) -> None:
        """A function that tells the recorder where the calling thread's own variables are."""
        llvm = self.llvm
        kind = llvm.FunctionType(self.void, array([]), 0, 0)
        function = llvm.AddFunction(self.module, f"epa_locals_of_{self.index}".encode(), kind)
        llvm.PositionBuilderAtEnd(self.builder, llvm.AppendBasicBlockInContext(self.context, function, b""))
        llvm.SetCurrentDebugLocation2(self.builder, None)
        for value, size, number in variables:
            self._call("epa_range", self._int(number, 32), self._int(3, 32), self._word(value), self._int(size))
        llvm.BuildRetVoid(self.builder)
        self._section("epa_locals", llvm.TypeOf(function), [function])

    def _section(self, name: str, kind: Ref, rows: list[Ref]) -> None:
        llvm = self.llvm
        table = llvm.AddGlobal(self.module, llvm.ArrayType(kind, len(rows)), f"{name}_of_{self.index}".encode())
        llvm.SetInitializer(table, llvm.ConstArray(kind, array(rows), len(rows)))
        llvm.SetSection(table, name.encode())
        llvm.SetAlignment(table, 8)

    # ---- functions

    def _function(self, function: Ref) -> None:
        llvm = self.llvm
        self.function = llvm.name(function)
        self.file, self.line = self._place(function)
        entry = self.program.add(Site("enter", self.function, self.file, self.line, "none", 0, 0, [], self.function))
        instructions = list(llvm.instructions(function))
        for instruction in instructions:
            self._number(instruction)
        first = llvm.GetFirstInstruction(llvm.GetFirstBasicBlock(function))
        self._before(first, first)
        self._call("epa_enter", self._int(entry, 32))
        for instruction in instructions:
            self._instruction(instruction)

    def _number(self, instruction: Ref) -> None:
        """Give an instruction its site, before anything is changed."""
        llvm = self.llvm
        opcode = llvm.GetInstructionOpcode(instruction)
        if opcode in (ll.CALL, ll.INVOKE):
            name = self._callee(instruction)
            if name.startswith(_SILENT):
                return
        elif opcode in (ll.ALLOCA,):
            name = llvm.name(instruction)
        elif opcode in _VALUES or opcode in (ll.LOAD, ll.STORE, ll.RET, ll.CMPXCHG, ll.RMW, ll.LANDINGPAD):
            name = ""
        else:
            return
        file, line = self._place(instruction)
        kind: Class = "none"
        bits = 0
        if opcode in (ll.STORE, ll.RET):
            if llvm.GetNumOperands(instruction):
                kind, _ = self._class(llvm.TypeOf(llvm.GetOperand(instruction, 0)))
        elif opcode == ll.ALLOCA:
            kind = "pointer"
        elif opcode in (ll.CALL, ll.INVOKE) and not llvm.GetFirstUse(instruction):
            pass  # nobody looks at the result, and it may be anything (which thread a barrier chooses)
        elif opcode not in (ll.CMPXCHG, ll.LANDINGPAD):
            kind, bits = self._class(llvm.TypeOf(instruction))
        size = 0
        if opcode in (ll.LOAD, ll.RMW):
            size = llvm.StoreSizeOfType(self.layout, llvm.TypeOf(instruction))
        elif opcode == ll.STORE:
            size = llvm.StoreSizeOfType(self.layout, llvm.TypeOf(llvm.GetOperand(instruction, 0)))
        elif opcode == ll.CMPXCHG:
            size = llvm.StoreSizeOfType(self.layout, llvm.TypeOf(llvm.GetOperand(instruction, 1)))
        operands, shape = [], []
        for i in range(llvm.GetNumOperands(instruction)):
            operand = llvm.GetOperand(instruction, i)
            if operand in self.numbers:
                operands.append(self.numbers[operand])
            if opcode in _VALUES:
                shape.append(self._shown(operand))
        op = "call" if opcode == ll.INVOKE else ll.OPCODES[opcode]
        self.numbers[instruction] = self.program.add(
            Site(op, self.function, file or self.file, line or self.line, kind, bits, size, operands, name, shape=shape)
        )

    def _instruction(self, instruction: Ref) -> None:
        llvm = self.llvm
        number = self.numbers.get(instruction)
        if number is None:
            return
        opcode = llvm.GetInstructionOpcode(instruction)
        if opcode in _VALUES:
            self._result(instruction, number, self._after(instruction, opcode))
        elif opcode == ll.LOAD:
            following = self._after(instruction, opcode)
            self._before(following, instruction)
            if llvm.GetOrdering(instruction):
                self._call("epa_atomic")
            address = self._word(llvm.GetOperand(instruction, 0))
            self._result(instruction, number, following, "epa_load", address)
        elif opcode == ll.STORE:
            self._before(instruction, instruction)
            if llvm.GetOrdering(instruction):
                self._call("epa_atomic")
            value, address = llvm.GetOperand(instruction, 0), llvm.GetOperand(instruction, 1)
            self._call("epa_store", self._int(number, 32), self._word(address), self._word(value))
        elif opcode == ll.ALLOCA:
            following = self._after(instruction, opcode)
            self._before(following, instruction)
            size = self._int(llvm.ABISizeOfType(self.layout, llvm.GetAllocatedType(instruction)))
            count = self._word(llvm.GetOperand(instruction, 0))
            size = llvm.BuildMul(self.builder, count, size, b"")
            self._call("epa_alloca", self._int(number, 32), self._word(instruction), size)
        elif opcode == ll.RET:
            self._before(instruction, instruction)
            has_value = llvm.GetNumOperands(instruction) > 0
            value = self._word(llvm.GetOperand(instruction, 0)) if has_value else self._int(0)
            self._call("epa_return", self._int(number, 32), value)
        elif opcode in (ll.CMPXCHG, ll.RMW):
            self._before(self._after(instruction, opcode), instruction)
            self._call("epa_atomic")
            written = llvm.GetOperand(instruction, 2 if opcode == ll.CMPXCHG else 1)
            address = self._word(llvm.GetOperand(instruction, 0))
            self._call("epa_store", self._int(number, 32), address, self._word(written))
        elif opcode == ll.LANDINGPAD:
            self._before(self._after(instruction, opcode), instruction)
            self._call("epa_landing", self._int(number, 32))
        else:
            self._called(instruction, number, opcode)

    def _called(self, instruction: Ref, number: int, opcode: int) -> None:
        """A call: its callee, its arguments, the memory that it is known to touch, and its result."""
        llvm = self.llvm
        name = self._callee(instruction)
        callee = llvm.GetCalledValue(instruction)
        intrinsic = name.startswith("llvm.") or bool(llvm.IsAInlineAsm(callee))
        self._before(instruction, instruction)
        if not intrinsic:
            direct = bool(llvm.IsAFunction(callee))
            self._call("epa_call", self._int(number, 32), self._int(0) if direct else self._word(callee))
            site = self.program.sites[number - 1]
            for i in range(llvm.GetNumArgOperands(instruction)):
                value = llvm.GetOperand(instruction, i)
                kind, bits = self._class(llvm.TypeOf(value))
                if kind in ("none", "opaque"):
                    continue
                operands = [self.numbers[value]] if value in self.numbers else []
                argument = self.program.add(
                    Site("argument", self.function, site.file, site.line, kind, bits, 0, operands, name, number, i)
                )
                given = self._call("epa_argument", self._int(argument, 32), self._word(value))
                llvm.SetOperand(instruction, i, self._back(given, llvm.TypeOf(value)))
        self._memory(instruction, number, name)
        if self.program.sites[number - 1].kind == "none":
            return
        invoked = opcode == ll.INVOKE
        following = self._normal_edge(instruction) if invoked else self._after(instruction, opcode)
        if following is not None:
            self._result(instruction, number, following)

    def _memory(self, instruction: Ref, number: int, name: str) -> None:
        llvm = self.llvm
        for effect in effects_of(name):
            needed = max(effect.at, effect.source, *effect.length, 0)
            if needed >= llvm.GetNumArgOperands(instruction):
                continue
            argument: Callable[[int], Ref] = lambda i: self._word(llvm.GetOperand(instruction, i))  # noqa: E731
            if effect.access == "read string":
                self._call("epa_string", self._int(number, 32), self._int(0, 32), argument(effect.at))
                continue
            length = self._int(effect.bytes or 1)
            for i in effect.length:
                length = llvm.BuildMul(self.builder, length, argument(i), b"")
            if effect.access == "copy":
                self._call("epa_copy", self._int(number, 32), argument(effect.at), argument(effect.source), length)
            else:
                writes = self._int(effect.access == "write", 32)
                self._call("epa_range", self._int(number, 32), writes, argument(effect.at), length)

    def _normal_edge(self, invoke: Ref) -> Ref | None:
        """A block of its own on the edge that is taken when nothing is thrown; its end is where a result is recorded."""
        llvm = self.llvm
        target = llvm.GetNormalDest(invoke)
        first = llvm.GetFirstInstruction(target)
        if llvm.GetInstructionOpcode(first) == ll.PHI:
            return None  # the C interface cannot rename the edge in the phi; clang makes none at -O0
        block = llvm.InsertBasicBlockInContext(self.context, target, b"")
        llvm.SetNormalDest(invoke, block)
        llvm.PositionBuilderAtEnd(self.builder, block)
        end: Ref = llvm.BuildBr(self.builder, target)
        return end

    def _result(self, value: Ref, number: int, before: Ref, hook: str = "epa_value", *between: Ref) -> None:
        """Record a result before an instruction, and let all other uses see what the recorder gives back."""
        llvm = self.llvm
        kind, bits = self._class(llvm.TypeOf(value))
        if kind == "none":
            return
        self._before(before, value)
        word = self._word(value)
        given = self._call(hook, self._int(number, 32), *between, word)
        if not bits:
            return  # too wide for the recorder: a digest is recorded, and the value stays
        back = self._back(given, llvm.TypeOf(value))
        llvm.ReplaceAllUsesWith(value, back)
        self.numbers[back] = number
        # The recorder itself must see the value: its own use was replaced as well.
        if word == value:
            llvm.SetOperand(given, llvm.GetNumArgOperands(given) - 1, value)
        else:
            self._restore(word, back, value)

    def _restore(self, word: Ref, back: Ref, value: Ref) -> None:
        """Find the conversion that took the value, and give it the value again."""
        llvm = self.llvm
        here = word
        while True:
            operand = llvm.GetOperand(here, 0)
            if operand == back:
                llvm.SetOperand(here, 0, value)
                return
            here = operand

    # ---- small parts

    def _shown(self, operand: Ref) -> str:
        """An operand for people: `#12` is what site 12 made."""
        llvm = self.llvm
        if operand in self.numbers:
            return f"#{self.numbers[operand]}"
        if llvm.IsAConstantInt(operand):
            return str(llvm.ConstIntGetSExtValue(operand))
        named = llvm.IsAGlobalValue(operand) or llvm.IsAArgument(operand)
        return llvm.name(operand) if named else "_"

    def _place(self, value: Ref) -> tuple[str, int]:
        file, line = self.llvm.place(value)
        return self.program.names.get(file, file), line

    def _callee(self, instruction: Ref) -> str:
        """The name of the function that is called, if it is known."""
        llvm = self.llvm
        callee = llvm.GetCalledValue(instruction)
        return llvm.name(callee) if llvm.IsAFunction(callee) else ""

    def _after(self, instruction: Ref, opcode: int) -> Ref:
        llvm = self.llvm
        following: Ref = llvm.GetNextInstruction(instruction)
        while opcode == ll.PHI and llvm.GetInstructionOpcode(following) in (ll.PHI, ll.LANDINGPAD):
            following = llvm.GetNextInstruction(following)
        return following

    def _before(self, instruction: Ref, located: Ref) -> None:
        llvm = self.llvm
        llvm.PositionBuilderBefore(self.builder, instruction)
        if llvm.IsAInstruction(located):
            llvm.SetCurrentDebugLocation2(self.builder, llvm.InstructionGetDebugLoc(located))

    def _int(self, value: int, bits: int = 64) -> Ref:
        constant: Ref = self.llvm.ConstInt(self.i64 if bits == 64 else self.i32, value, 0)
        return constant

    def _class(self, kind: Ref) -> tuple[Class, int]:
        """What sort of value a type has, and its width if the recorder can change it."""
        llvm = self.llvm
        sort = llvm.GetTypeKind(kind)
        if sort == ll.INTEGER:
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
        return simple.get(sort, ("none", 0))

    def _word(self, value: Ref) -> Ref:
        """A value as a 64-bit integer; of what is wider, a digest."""
        llvm, builder = self.llvm, self.builder
        kind = llvm.TypeOf(value)
        sort = llvm.GetTypeKind(kind)
        result: Ref
        if sort == ll.POINTER:
            result = llvm.BuildPtrToInt(builder, value, self.i64, b"")
        elif sort == ll.INTEGER and llvm.GetIntTypeWidth(kind) <= 64:
            narrow = llvm.GetIntTypeWidth(kind) < 64
            result = llvm.BuildZExt(builder, value, self.i64, b"") if narrow else value
        elif self._class(kind)[0] == "none":
            result = self._int(0)
        else:
            bits = llvm.SizeOfTypeInBits(self.layout, kind)
            raw = llvm.IntTypeInContext(self.context, bits)
            if sort == ll.VECTOR and self._has_pointers(value):
                return self._int(0)
            whole = value if sort == ll.INTEGER else llvm.BuildBitCast(builder, value, raw, b"")
            if bits <= 64:
                return self._stretch(whole, bits)
            result = self._int(0)
            for shift in range(0, bits, 64):
                part = llvm.BuildLShr(builder, whole, llvm.ConstInt(raw, shift, 0), b"") if shift else whole
                result = llvm.BuildMul(builder, result, self._int(_MIX), b"")
                part = llvm.BuildTrunc(builder, part, self.i64, b"")
                result = llvm.BuildXor(builder, result, part, b"")
        return result

    def _stretch(self, whole: Ref, bits: int) -> Ref:
        result: Ref = self.llvm.BuildZExt(self.builder, whole, self.i64, b"") if bits < 64 else whole
        return result

    def _has_pointers(self, value: Ref) -> bool:
        element = self.llvm.GetElementType(self.llvm.TypeOf(value))
        return bool(self.llvm.GetTypeKind(element) == ll.POINTER)

    def _back(self, word: Ref, kind: Ref) -> Ref:
        """The inverse of `_word`, for what is no wider than 64 bits."""
        llvm, builder = self.llvm, self.builder
        sort = llvm.GetTypeKind(kind)
        result: Ref
        if sort == ll.POINTER:
            result = llvm.BuildIntToPtr(builder, word, kind, b"")
        elif sort == ll.INTEGER:
            result = llvm.BuildTrunc(builder, word, kind, b"") if llvm.GetIntTypeWidth(kind) < 64 else word
        else:
            bits = llvm.SizeOfTypeInBits(self.layout, kind)
            raw = llvm.IntTypeInContext(self.context, bits)
            narrow = llvm.BuildTrunc(builder, word, raw, b"") if bits < 64 else word
            result = llvm.BuildBitCast(builder, narrow, kind, b"")
        return result

    def _call(self, name: str, *arguments: Ref) -> Ref:
        """Call the recorder. The first argument, if any, is a site; the second of some is small as well."""
        llvm = self.llvm
        if name not in self.hooks:
            small = {"epa_range": 2, "epa_string": 2}.get(name, 1)
            kinds = [self.i32 if i < small else self.i64 for i in range(_ARITY[name])]
            kind = llvm.FunctionType(self.i64 if name in _GIVE_BACK else self.void, array(kinds), len(kinds), 0)
            self.hooks[name] = (kind, llvm.AddFunction(self.module, name.encode(), kind))
        kind, hook = self.hooks[name]
        called: Ref = llvm.BuildCall2(self.builder, kind, hook, array(arguments), len(arguments), b"")
        return called
