"""Expected loads: the reader expects their values, so records contain them only if they differ (docs/reference/epa.md).

A local variable whose address is never taken has its last assigned value. A load in a loop from an address that does
not change in the loop usually has the same value as the last time. The program keeps the expected values (in registers
if possible, by LLVM's mem2reg), compares them with the loaded values, and records all different ones. So a wrong
expectation only costs space in the trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from plait.epa.instrumentation import llvm as ll
from plait.epa.instrumentation.llvm import Llvm, Ref
from plait.epa.instrumentation.words import Words

_CHANGING = {ll.PHI, ll.CALL, ll.INVOKE, ll.CMPXCHG, ll.RMW, ll.LANDINGPAD, ll.ALLOCA}


@dataclass
class Expected:
    """The places where a function keeps expected values: of variables, and of repeated loads."""

    variables: dict[Ref, Ref] = field(default_factory=dict)
    again: dict[Ref, Ref] = field(default_factory=dict)

    @classmethod
    def find(cls, words: Words, blocks: list[list[Ref]], fixed: set[Ref]) -> Expected:
        """Find the expected loads of a function with objects of fixed size. The builder is at its start."""
        llvm = words.llvm
        if any(_returns_twice(llvm, i) for block in blocks for i in block):
            return cls()  # values in registers may be outdated when setjmp returns again

        def place() -> Ref:
            here: Ref = llvm.BuildAlloca(words.builder, words.i64, b"")
            cls.keep(words, here, words.number(0))
            return here

        private = {alloca: None for alloca in blocks[0] if alloca in fixed and _private(words, alloca)}
        loops = list(_loops(llvm, blocks))
        inside: dict[Ref, list[list[Ref]]] = {}
        for loop in sorted(loops, key=len, reverse=True):
            for block in loop:
                inside[block[0]] = loop  # the innermost loop comes last
        again = []
        for block in blocks:
            if block[0] in inside:
                invariant = _Invariant(llvm, inside[block[0]], fixed, set(private))
                again += [i for i in block if invariant.load(i) and words.sort(llvm.TypeOf(i))[1]]
        return cls({alloca: place() for alloca in private}, {load: place() for load in again})

    @staticmethod
    def keep(words: Words, place: Ref, word: Ref) -> None:
        """Expect a value. Its complement is kept: then an overwrite of both with the same value is noticed."""
        words.llvm.BuildStore(words.builder, words.llvm.BuildNot(words.builder, word, b""), place)


class _Invariant:
    """Whether a value is most likely the same in every iteration of a loop."""

    def __init__(self, llvm: Llvm, loop: list[list[Ref]], fixed: set[Ref], private: set[Ref]) -> None:
        self.llvm, self.fixed, self.private = llvm, fixed, private
        self.inside = {i for block in loop for i in block}
        stores = [i for i in self.inside if llvm.GetInstructionOpcode(i) == ll.STORE]
        self.written = {llvm.GetOperand(store, 1) for store in stores}
        elsewhere = [store for store in stores if llvm.GetOperand(store, 1) not in private]
        self.types = {llvm.TypeOf(llvm.GetOperand(store, 0)) for store in elsewhere}
        self.found: dict[Ref, bool] = {}

    def load(self, instruction: Ref) -> bool:
        """Whether an instruction is such a load, but not of a variable."""
        if self.llvm.GetInstructionOpcode(instruction) != ll.LOAD or self.llvm.GetOrdering(instruction):
            return False
        return self.llvm.GetOperand(instruction, 0) not in self.private and self(instruction)

    def __call__(self, value: Ref) -> bool:
        if value not in self.inside or value in self.fixed:
            return True
        if value not in self.found:
            self.found[value] = False
            self.found[value] = self._holds(value)
        return self.found[value]

    def _holds(self, value: Ref) -> bool:
        llvm = self.llvm
        opcode = llvm.GetInstructionOpcode(value)
        if opcode in _CHANGING:
            return False
        operands = [llvm.GetOperand(value, i) for i in range(llvm.GetNumOperands(value))]
        if opcode == ll.LOAD:
            address = operands[0]
            if address in self.written or (address not in self.private and llvm.TypeOf(value) in self.types):
                return False
        return all(self(operand) for operand in operands)


def _returns_twice(llvm: Llvm, instruction: Ref) -> bool:
    called = llvm.GetInstructionOpcode(instruction) in (ll.CALL, ll.INVOKE)
    return called and llvm.returns_twice(instruction, llvm.GetCalledValue(instruction))


def _private(words: Words, alloca: Ref) -> bool:
    """Whether only loads and stores of the whole variable use its address."""
    llvm = words.llvm
    kind = llvm.GetAllocatedType(alloca)
    if not words.sort(kind)[1]:
        return False
    for user in llvm.users(alloca):
        opcode = llvm.GetInstructionOpcode(user)
        if opcode == ll.LOAD:
            same = llvm.TypeOf(user) == kind
        elif opcode == ll.STORE:
            stored = llvm.GetOperand(user, 0)
            same = stored != alloca and llvm.TypeOf(stored) == kind and not llvm.IsUndef(stored)
        else:
            return False
        if not same or llvm.GetOrdering(user):
            return False
    return True


def _loops(llvm: Llvm, blocks: list[list[Ref]]) -> Iterator[list[list[Ref]]]:
    """The natural loops of a function. Integers represent sets of blocks, one bit per block."""
    place = {llvm.GetInstructionParent(block[0]): i for i, block in enumerate(blocks)}
    after = [[place[b] for b in llvm.successors(block[-1])] for block in blocks]
    before: list[list[int]] = [[] for _ in blocks]
    for i, successors in enumerate(after):
        for j in successors:
            before[j].append(i)
    everything = (1 << len(blocks)) - 1
    dominators = [1] + [everything] * (len(blocks) - 1)
    changed = True
    while changed:
        changed = False
        for i in range(1, len(blocks)):
            common = everything
            for j in before[i]:
                common &= dominators[j]
            changed |= dominators[i] != (common := common | 1 << i)
            dominators[i] = common
    bodies: dict[int, set[int]] = {}
    for i, successors in enumerate(after):
        for head in successors:
            if dominators[i] >> head & 1:
                body = bodies.setdefault(head, {head})
                todo = [i]
                while todo:
                    if (block := todo.pop()) not in body:
                        body.add(block)
                        todo += before[block]
    for body in bodies.values():
        yield [blocks[i] for i in sorted(body)]


def chains(llvm: Llvm, blocks: list[list[Ref]]) -> list[list[list[Ref]]]:
    """The blocks in chains: the blocks of a chain are always executed one after the other."""
    by_place = {llvm.GetInstructionParent(block[0]): block for block in blocks}
    entries = dict.fromkeys(by_place, 0)
    following: dict[Ref, Ref] = {}
    for place, block in by_place.items():
        successors = llvm.successors(block[-1])
        for successor in successors:
            entries[successor] += 1
        if len(successors) == 1 and llvm.GetInstructionOpcode(block[-1]) == ll.BR:
            following[place] = successors[0]
    inner = {successor for successor in following.values() if entries[successor] == 1}
    found, seen = [], set()
    for place in sorted(by_place, key=inner.__contains__):
        chain: list[list[Ref]] = []
        here: Ref | None = place
        while here is not None and here not in seen and (not chain or here in inner):
            seen.add(here)
            chain.append(by_place[here])
            here = following.get(here)
        if chain:
            found.append(chain)
    return found
