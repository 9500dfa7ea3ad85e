"""Instrumentation of LLVM IR: record every load, store, alloca, call, return and result (Saissi 2019, section 5.4.1).

A result passes through the recorder, and the program continues with the value that the recorder returns. So one binary
is enough for golden and faulty runs: the recorder changes the value at the site of the fault. Values and addresses are
recorded as 64-bit integers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from plait.epa.instrumentation import llvm as ll
from plait.epa.instrumentation.calls import parameters, returns
from plait.epa.instrumentation.effect import Effect
from plait.epa.instrumentation.effects import AFTER, COMPARISONS, effects_of
from plait.epa.instrumentation.expected import Expected, chains
from plait.epa.instrumentation.formulas import formula_of, unwrapped
from plait.epa.instrumentation.libraries import intrinsic_is_known
from plait.epa.instrumentation.llvm import Llvm, Ref
from plait.epa.instrumentation.pieces import NOTHING, Hooks, Record, Where
from plait.epa.instrumentation.places import Places
from plait.epa.instrumentation.replayed import REPLAYED, is_ordered
from plait.epa.instrumentation.table import Class, Formula, Function, Global, Origin, Piece, Site
from plait.epa.instrumentation.words import Words
from plait.kernel.errors import PlaitError, UsageError

VALUE, LOAD, STORE, ALLOCA, ENTER, RETURN, CALL, ARGUMENT, LANDING = range(1, 10)
"""Kinds of events (`rust/src/epa/format.rs`)."""
_VALUES = {
    number
    for number, name in ll.OPCODES.items()
    if name not in ("alloca", "load", "store", "call", "return", "invoke", "landingpad", "va_arg", "extractvalue")
} - {ll.CMPXCHG, ll.RMW}
"""Instructions without other effects, whose result is recorded."""
_DIVISIONS = (ll.UDIV, ll.SDIV, ll.UREM, ll.SREM)
_UNRECORDED = {ll.BR, 3, 4, 7, ll.BITCAST, 49, 51, 52, 53, 54, 55, 58, 60}
"""Instructions without an event: jumps, conversions of pointers, parts of vectors and structures, fences."""
_SILENT = ("llvm.dbg.", "llvm.lifetime.", "llvm.va_", "llvm.stack", "llvm.eh.", "llvm.assume", "llvm.invariant.")
MOST_SITES = 1 << 20
"""The maximal number of sites: a record has 20 bits for a site."""
_NEAR = 1 << 30
"""The maximal size of a stack object whose distance from its frame fits in four bytes."""


class Instrumentation:
    """The sites, pieces and globals of the modules of a program, numbered in the order of instrumentation."""

    def __init__(self, library: Llvm, recorder: Path, named: Callable[[str], str], *, lean: bool = True) -> None:
        self.llvm = library
        self.lean = lean
        self.recorder = recorder
        self.named = functools.cache(named)
        """The shown name of a source file."""
        self.sources: list[str] = []
        self.sites: list[Site] = []
        self.globals: list[Global] = []
        self.functions: list[Function] = []
        self.pieces: list[Piece] = []
        self.formulas: list[Formula] = []
        self._modules = 0

    def instrument(self, bitcode: Path, result: Path) -> None:
        """Instrument one module."""
        llvm = self.llvm
        context = llvm.ContextCreate()
        module = llvm.read(context, bitcode)
        self.sources.append(self.named(llvm.source(module)))
        _Module(self, module, self._modules).run(llvm.read(context, self.recorder))
        self._modules += 1
        if wrong := llvm.verify(module):
            raise PlaitError(f"the instrumentation of {bitcode.name} is not valid LLVM IR: {wrong}")
        llvm.passes(module, "always-inline,function(mem2reg)")
        if llvm.WriteBitcodeToFile(module, str(result).encode()):
            raise PlaitError(f"{result} cannot be written", hint="check the free space")

    def add(self, site: Site) -> int:
        """Add a site, and return its number."""
        if len(self.sites) + 1 >= MOST_SITES:
            raise UsageError(
                f"the program has more than {MOST_SITES:,} instructions", hint="instrument fewer of its sources"
            )
        self.sites.append(site)
        return len(self.sites)


class _Module:
    """The instrumentation of one module."""

    def __init__(self, program: Instrumentation, module: Ref, index: int) -> None:
        llvm = self.llvm = program.llvm
        self.program, self.module, self.index = program, module, index
        self.context = llvm.GetModuleContext(module)
        self.builder = llvm.CreateBuilderInContext(self.context)
        self.words = Words(llvm, module, self.builder)
        self.hooks = Hooks(llvm, module, self.words)
        self.layout = self.words.layout
        self.numbers: dict[Ref, int] = {}
        self.known: set[int] = set()
        self.placed: dict[Ref, int] = {}
        self.record: Record | None = None
        self.function, self.file, self.line, self.first = "", "", 0, 0
        self.fixed: set[Ref] = set()
        self.expected = Expected()
        self.parameters: dict[Ref, int] = {}
        self.entry: Record | None = None

    def run(self, recorder: Ref) -> None:
        llvm = self.llvm
        functions = [f for f in llvm.functions(self.module) if not llvm.IsDeclaration(f)]
        external = [f for f in llvm.functions(self.module) if llvm.IsDeclaration(f)]
        variables = list(llvm.globals(self.module))
        for function in functions:
            llvm.keep_calls(function)
        if functions:  # unused declarations of the recorder would not link
            self._link(recorder)
        if self.program.lean:  # before the table takes the addresses of all functions
            self.parameters = {p: i for f in functions for p, i in parameters(self.words, f).items()}
        places = Places(self.hooks, self.index)
        self.placed = places.tell(variables, [*functions, *external], self.program.globals)
        for function in functions:
            self._function(function)

    def _link(self, recorder: Ref) -> None:
        """Link the inlined part of the recorder into the module."""
        llvm = self.llvm
        inlined = [llvm.name(f) for f in llvm.functions(recorder) if not llvm.IsDeclaration(f)]
        if llvm.LinkModules2(self.module, recorder):
            raise PlaitError(
                "the recorder cannot be linked into the program",
                hint="check that the program and the recorder have the same target",
            )
        for name in inlined:
            llvm.SetLinkage(llvm.GetNamedFunction(self.module, name.encode()), ll.INTERNAL)

    # ---- functions

    def _function(self, function: Ref) -> None:
        llvm = self.llvm
        self.function = llvm.name(function)
        self.file, self.line = self._place(function)
        entry = self.program.add(Site("enter", self.function, self.file, self.line, "none", 0, 0, [], self.function))
        self.first = entry
        blocks = list(llvm.blocks(function))
        for block in blocks:
            for instruction in block:
                self._number(instruction)
        self._entry(blocks, entry)
        for chain in chains(llvm, blocks):
            for block in chain:
                for instruction in block:
                    self._instruction(instruction)
            self._end(chain[-1][-1])
        self.program.functions.append(Function(entry, len(self.program.sites) + 1 - entry))

    def _entry(self, blocks: list[list[Ref]], entry: int) -> None:
        """Record the frame and its objects. Allocas must stay at the start: only there, they are part of the frame."""
        llvm, block = self.llvm, blocks[0]
        self.fixed = {i for i in block if llvm.GetInstructionOpcode(i) == ll.ALLOCA and self.words.size(i) is not None}
        start = next(i for i in block if i not in self.fixed)
        allocas = [i for i in block if i in self.fixed]
        for alloca in allocas[block.index(start) :]:
            llvm.InstructionRemoveFromParent(alloca)
            llvm.PositionBuilderBefore(self.builder, start)
            llvm.InsertIntoBuilder(self.builder, alloca)
        self._before(start, start)
        self.expected = Expected.find(self.words, blocks, self.fixed) if self.program.lean else Expected()
        self._clear(block, allocas)
        record = self.entry = self._begin(start, start)
        frame = self.hooks("epa_frame")
        record.event(ENTER, entry, record.store(frame))
        sizes = [self.words.size(alloca) or 0 for alloca in allocas]
        for alloca, size in zip(allocas, sizes, strict=True):
            record = self._begin(start, start)
            address = self.words.word(alloca)
            where = record.below(address, frame) if sum(sizes) < _NEAR else record.store(address)
            self._known(ALLOCA, self.numbers[alloca], where, (Origin.CONSTANT, size))

    def _clear(self, block: list[Ref], allocas: list[Ref]) -> None:
        """Set new variables to zero: memory that the program did not write must be the same in each run."""
        llvm = self.llvm
        given = {
            llvm.GetOperand(i, 1)
            for i in block
            if llvm.GetInstructionOpcode(i) == ll.STORE and llvm.IsAArgument(llvm.GetOperand(i, 0))
        }
        for alloca in allocas:
            if size := alloca not in given and self.words.size(alloca):
                self.words.zero(alloca, self.words.number(size))

    def _number(self, instruction: Ref) -> None:
        """Give an instruction its site, before the code is changed."""
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
        elif opcode in _UNRECORDED:
            return
        else:
            where, line = self._place(instruction)
            raise UsageError(
                f"{where or self.file}:{line}: the LLVM instruction with opcode {opcode} is not supported",
                hint="asm goto and exceptions of Windows are such instructions",
            )
        file, line = self._place(instruction)
        kind: Class = "none"
        bits = 0
        if opcode in (ll.STORE, ll.RET):
            if llvm.GetNumOperands(instruction):
                kind, bits = self.words.sort(llvm.TypeOf(llvm.GetOperand(instruction, 0)))
                bits = bits if opcode == ll.STORE else 0
        elif opcode == ll.ALLOCA:
            kind = "pointer"
        elif opcode in (ll.CALL, ll.INVOKE) and not llvm.GetFirstUse(instruction):
            pass  # the result is unused, and may be arbitrary (the thread that a barrier chooses)
        elif opcode not in (ll.CMPXCHG, ll.LANDINGPAD):
            kind, bits = self.words.sort(llvm.TypeOf(instruction))
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
            Site(
                op,
                self.function,
                file or self.file,
                line or self.line,
                kind,
                bits,
                size,
                operands,
                name,
                shape=shape,
                index=llvm.GetICmpPredicate(instruction) if opcode == ll.ICMP else 0,
                uses=sum(1 for _ in llvm.users(instruction)),
            )
        )

    # ---- records

    def _begin(self, before: Ref, located: Ref) -> Record:
        """The record of this piece of code. Moves the builder in front of an instruction."""
        self._before(before, located)
        if self.record is not None and self.record.full:
            self._end(before)
        if self.record is None:
            self.record = Record(self.hooks, len(self.program.pieces), len(self.program.functions))
            self.program.pieces.append(Piece(0, []))
        return self.record

    def _end(self, before: Ref) -> None:
        if self.record is not None:
            self._before(before, before)
            self.program.pieces[self.record.number] = self.record.end()
            self.record = None

    def _known(self, kind: int, site: int, a: Where, b: Where = NOTHING) -> None:
        """Add an event whose result the reader knows from now on."""
        assert self.record is not None
        self.record.event(kind, site, a, b)
        self.known.add(site)

    def _where(self, value: Ref, record: Record) -> Where:
        """The source of a value for the reader; by default the record."""
        kind = self.llvm.TypeOf(value)
        if self.words.sort(kind)[0] == "none":
            return NOTHING
        if value in self.parameters and record is self.entry and all(step[0] != CALL for step in record.steps):
            return Origin.ARGUMENT, self.parameters[value]
        return self._source(value) or record.store(self.words.word(value), self.words.width(kind))

    def _source(self, value: Ref) -> Where | None:
        """The source of a value that the reader knows. None: it does not know the value."""
        value = unwrapped(self.llvm, value)
        constant = self.words.constant(value)
        if constant is not None:
            return Origin.CONSTANT, constant
        if self.numbers.get(value) in self.known:
            return Origin.RESULT, self.numbers[value] - self.first
        return (Origin.GLOBAL, self.placed[value]) if value in self.placed else None

    def _safe(self, address: Ref) -> bool:
        """Whether an access cannot trap, because its object exists."""
        return address in self.placed or address in self.fixed

    # ---- instructions

    def _instruction(self, instruction: Ref) -> None:
        llvm = self.llvm
        number = self.numbers.get(instruction)
        if number is None or instruction in self.fixed:
            return
        opcode = llvm.GetInstructionOpcode(instruction)
        if opcode in _VALUES:
            following = self._after(instruction, opcode)
            if opcode in _DIVISIONS:
                self._begin(instruction, instruction).mark()
            self._result(VALUE, instruction, number, following)
        elif opcode == ll.LOAD:
            self._load(instruction, number)
        elif opcode == ll.STORE:
            self._store(instruction, number, llvm.GetOperand(instruction, 1), llvm.GetOperand(instruction, 0))
        elif opcode in (ll.CMPXCHG, ll.RMW):
            written = llvm.GetOperand(instruction, 2 if opcode == ll.CMPXCHG else 1)
            self._store(instruction, number, llvm.GetOperand(instruction, 0), written)
            following = self._after(instruction, opcode)
            if opcode == ll.RMW:
                self._result(VALUE, instruction, number, following)
            self._done(following)
        elif opcode == ll.ALLOCA:
            record = self._begin(self._after(instruction, opcode), instruction)
            size = self.words.number(llvm.ABISizeOfType(self.layout, llvm.GetAllocatedType(instruction)))
            size = llvm.BuildMul(self.builder, self.words.word(llvm.GetOperand(instruction, 0)), size, b"")
            self.words.zero(instruction, size)
            address = record.store(self.words.word(instruction))
            self._known(ALLOCA, number, address, record.store(size))
        elif opcode == ll.RET:
            record = self._begin(instruction, instruction)
            has_value = llvm.GetNumOperands(instruction) > 0
            record.event(RETURN, number, self._where(llvm.GetOperand(instruction, 0), record) if has_value else NOTHING)
        elif opcode == ll.LANDINGPAD:
            self._landing(number, self._after(instruction, opcode), instruction)
        else:
            self._called(instruction, number, opcode)

    def _load(self, instruction: Ref, number: int) -> None:
        llvm = self.llvm
        following = self._after(instruction, ll.LOAD)
        address = llvm.GetOperand(instruction, 0)
        atomic = bool(llvm.GetOrdering(instruction))
        if atomic:
            self._atomic(instruction, address)
        elif not self._safe(address):
            self._begin(instruction, instruction).mark()
        llvm.SetVolatile(instruction, 1)  # the code generator must not optimize this load away
        self._result(LOAD, instruction, number, following, address)
        if atomic:
            self._done(following)

    def _atomic(self, instruction: Ref, address: Ref) -> None:
        """Begin an atomic access: it has a place in the order of the run."""
        self._end(instruction)
        self._before(instruction, instruction)
        self.hooks("epa_atomic", self.words.word(address))

    def _done(self, following: Ref) -> None:
        """The atomic access, or the operation on a file, is done."""
        self._end(following)
        self._before(following, following)
        self.hooks("epa_done")

    def _store(self, instruction: Ref, number: int, address: Ref, written: Ref) -> None:
        llvm = self.llvm
        atomic_store = llvm.GetInstructionOpcode(instruction) == ll.STORE and llvm.GetOrdering(instruction)
        if llvm.GetInstructionOpcode(instruction) != ll.STORE or atomic_store:
            self._atomic(instruction, address)
        llvm.SetVolatile(instruction, 1)
        record = self._begin(instruction, instruction)
        record.event(STORE, number, self._where(address, record), self._where(written, record))
        word = self.words.word(written)
        if self._skippable(instruction):
            word = record.written(number, self.words.word(address), self.program.sites[number - 1].size, word)
            llvm.SetOperand(instruction, 0, self.words.back(word, llvm.TypeOf(written)))
        if address in self.expected.variables:
            self.expected.keep(self.words, self.expected.variables[address], word)
        if not self._safe(address):
            record.mark()
        if atomic_store:
            self._done(self._after(instruction, ll.STORE))

    def _skippable(self, instruction: Ref) -> bool:
        """Whether a fault can skip this store: the value is one that the recorder can change."""
        llvm = self.llvm
        if llvm.GetInstructionOpcode(instruction) != ll.STORE:
            return False
        return self.words.sort(llvm.TypeOf(llvm.GetOperand(instruction, 0)))[1] > 0

    def _landing(self, number: int, before: Ref, located: Ref) -> None:
        """Record that control has returned to this frame, from any deeper frame."""
        record = self._begin(before, located)
        record.event(LANDING, number, record.store(self.hooks("epa_frame")))

    def _called(self, instruction: Ref, number: int, opcode: int) -> None:
        """Record a call: callee, arguments, known memory accesses and result."""
        llvm = self.llvm
        name = self._callee(instruction)
        callee = llvm.GetCalledValue(instruction)
        intrinsic = name.startswith(("llvm.", "asm "))
        if intrinsic and (name.startswith("asm ") or not intrinsic_is_known(name)):
            self._begin(instruction, instruction).event(CALL, number)  # the check must know that it was executed
            self._end(instruction)
        if not intrinsic:
            direct = bool(llvm.IsAFunction(callee))
            record = self._begin(instruction, instruction)
            record.event(CALL, number, NOTHING if direct else self._where(callee, record))
            self._arguments(instruction, number, name)
            self._end(instruction)
            inside = direct and not llvm.IsDeclaration(callee)
            self.hooks("epa_call" if inside else "epa_call_out", self.words.number(number, 32), record.at)
        effects = effects_of(name) if intrinsic or llvm.IsDeclaration(callee) or not llvm.IsAFunction(callee) else ()
        following = self._normal_edge(instruction) if opcode == ll.INVOKE else self._after(instruction, opcode)
        ordered = following is not None and is_ordered(name, effects)
        if ordered:
            self._end(instruction)
            self._before(instruction, instruction)
            self.hooks.order(effects, instruction)
        self._memory(instruction, number, [effect for effect in effects if effect.access not in AFTER], instruction)
        if following is None:
            return
        if ordered:
            self._done(following)
        if self._is_replayed(instruction):
            self._end(following)
            self._before(following, instruction)
            self.hooks.chance(effects, instruction, number)
        self._memory(instruction, number, [effect for effect in effects if effect.access in AFTER], following)
        if llvm.returns_twice(instruction, callee):
            self._before(following, instruction)
            self.hooks("epa_returned")
            self._landing(number, following, instruction)
        if self.program.sites[number - 1].kind != "none":
            self._result(VALUE, instruction, number, following)
        if opcode == ll.INVOKE:
            self._end(following)

    def _arguments(self, instruction: Ref, number: int, name: str) -> None:
        llvm = self.llvm
        site = self.program.sites[number - 1]
        for i in range(llvm.GetNumArgOperands(instruction)):
            value = llvm.GetOperand(instruction, i)
            kind, bits = self.words.sort(llvm.TypeOf(value))
            if kind in ("none", "opaque"):
                continue
            operands = [self.numbers[value]] if value in self.numbers else []
            argument = self.program.add(
                Site("argument", self.function, site.file, site.line, kind, bits, 0, operands, name, number, i)
            )
            record = self._begin(instruction, instruction)
            where = self._where(value, record)
            given = record.passed(argument, self.words.word(value))
            record.event(ARGUMENT, argument, where)
            llvm.SetOperand(instruction, i, self.words.back(given, llvm.TypeOf(value)))

    def _memory(self, instruction: Ref, number: int, effects: Sequence[Effect], before: Ref) -> None:
        """Record the known memory accesses of a call, in front of an instruction."""
        if effects:
            self._end(before)
            self._before(before, instruction)
            for effect in effects:
                self.hooks.touch(effect, instruction, number)

    def _normal_edge(self, invoke: Ref) -> Ref | None:
        """A new block on the edge without an exception. The result is recorded at its end."""
        llvm = self.llvm
        target = llvm.GetNormalDest(invoke)
        first = llvm.GetFirstInstruction(target)
        if llvm.GetInstructionOpcode(first) == ll.PHI:
            return None  # the C API cannot update the edge in the phi; at -O0, clang makes no phi here
        block = llvm.InsertBasicBlockInContext(self.context, target, b"")
        llvm.SetNormalDest(invoke, block)
        llvm.PositionBuilderAtEnd(self.builder, block)
        end: Ref = llvm.BuildBr(self.builder, target)
        return end

    def _result(self, event: int, value: Ref, number: int, before: Ref, address: Ref | None = None) -> None:
        """Record a result before an instruction, and replace its other uses by the value that the recorder returns."""
        llvm = self.llvm
        kind = llvm.TypeOf(value)
        sort, bits = self.words.sort(kind)
        if sort == "none":
            return
        opcode = llvm.GetInstructionOpcode(value)
        record = self._begin(before, value)
        place = NOTHING if address is None else self._where(address, record)
        word = self.words.word(value)
        if self._only_sign(value, opcode, bits):
            word = self.hooks("epa_sign", word)
        if opcode in (ll.CALL, ll.INVOKE) and self._is_replayed(value):
            word = self.hooks("epa_chance", word, self.words.number(number, 32))
        formula = (
            formula_of(self.words, value, opcode, self._source) if opcode in _VALUES and self.program.lean else None
        )
        if not bits:  # too wide for the recorder: record a digest, keep the value
            where = record.store(word)
        else:
            if formula is not None:
                where, given = (Origin.COMPUTED, len(self.program.formulas)), record.passed(number, word)
                self.program.formulas.append(formula)
            elif self.program.lean and returns(llvm, value):
                where, given = (Origin.RETURNED, 0), record.passed(number, word)
            elif value in self.expected.again or address in self.expected.variables:
                where, given = self._guess(record, value, number, word, address)
            else:
                where, given = record.value(number, word, self.words.width(kind))
            back = self.words.back(given, kind)
            llvm.ReplaceAllUsesWith(value, back)
            self.numbers[back] = number
            # The recorder must get the original value, but its use was replaced too.
            if word == value:
                llvm.SetOperand(given, llvm.GetNumArgOperands(given) - 1, value)
            else:
                self._restore(word, back, value)
        self._known(event, number, where if address is None else place, NOTHING if address is None else where)

    def _is_replayed(self, call: Ref) -> bool:
        """Whether a replayed run takes the result of a call from the golden run."""
        return self._callee(call) in REPLAYED and bool(self.llvm.IsDeclaration(self.llvm.GetCalledValue(call)))

    def _only_sign(self, value: Ref, opcode: int, bits: int) -> bool:
        """Whether the value is the result of an external comparison. The program continues with its sign."""
        if opcode not in (ll.CALL, ll.INVOKE) or bits != 32 or not COMPARISONS.fullmatch(self._callee(value)):
            return False
        return bool(self.llvm.IsDeclaration(self.llvm.GetCalledValue(value)))

    def _guess(self, record: Record, load: Ref, number: int, word: Ref, address: Ref | None) -> tuple[Where, Ref]:
        """Record a value unless it is the expected one."""
        llvm, width = self.llvm, self.words.width(self.llvm.TypeOf(load))
        variable = self.expected.variables.get(address) if address else None
        place = variable or self.expected.again[load]
        origin = Origin.VARIABLE if variable else Origin.AGAIN
        kept = llvm.BuildLoad2(self.builder, self.words.i64, place, b"")
        given = record.guessed(number, word, width, kept, origin)
        if variable is None or address is None:
            self.expected.keep(self.words, place, given)
            return (origin, width), given
        return (origin, 16 * (self.numbers[address] - self.first) + width), given

    def _restore(self, word: Ref, back: Ref, value: Ref) -> None:
        """Find the conversion that used the value, and restore the original value there."""
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
        """An operand as text: `#12` is the result of site 12."""
        llvm = self.llvm
        if operand in self.numbers:
            return f"#{self.numbers[operand]}"
        if llvm.IsAConstantInt(operand):
            return str(llvm.ConstIntGetSExtValue(operand))
        named = llvm.IsAGlobalValue(operand) or llvm.IsAArgument(operand)
        return llvm.name(operand) if named else "_"

    def _place(self, value: Ref) -> tuple[str, int]:
        file, line = self.llvm.place(value)
        return (self.program.named(file) if file else file), line

    def _callee(self, instruction: Ref) -> str:
        """The name of the called function, if it is known; for inline assembly its text."""
        llvm = self.llvm
        callee = llvm.GetCalledValue(instruction)
        if llvm.IsAInlineAsm(callee):
            return f"asm {llvm.assembly(callee)}"
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
