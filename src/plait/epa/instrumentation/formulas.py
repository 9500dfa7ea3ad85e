"""Results that the reader computes from known operands. Records omit them.

These are integer arithmetic, comparisons, conversions and addresses of elements. Records keep results that depend on
the machine or on the path: floating-point numbers, divisions, shifts by variable amounts, and phis.
"""

from __future__ import annotations

from collections.abc import Callable

from plait.epa.instrumentation import llvm as ll
from plait.epa.instrumentation.llvm import Llvm, Ref
from plait.epa.instrumentation.table import LINEAR, Formula, Origin
from plait.epa.instrumentation.words import Words

Known = Callable[[Ref], tuple[Origin, int] | None]
Term = tuple[int, int, int, int]

_BINARY = {ll.MUL, ll.AND, ll.OR, ll.XOR}
_SHIFTS = {ll.SHL, ll.LSHR, ll.ASHR}
_WORD = 1 << 64


def formula_of(words: Words, instruction: Ref, opcode: int, known: Known) -> Formula | None:
    """The formula of an instruction's result from values that the reader knows. None: not possible."""
    llvm = words.llvm
    bits = words.sort(llvm.TypeOf(instruction))[1]
    if not bits:
        return None
    operands = [llvm.GetOperand(instruction, i) for i in range(llvm.GetNumOperands(instruction))]
    if opcode == ll.GEP:
        return _element(words, instruction, operands, known)
    kinds = [words.sort(llvm.TypeOf(operand)) for operand in operands]
    if any(not width or kind in ("float", "double", "opaque") for kind, width in kinds):
        return None
    origins = [known(operand) for operand in operands]
    found = [origin for origin in origins if origin is not None]
    if len(found) < len(operands):
        return None
    terms: list[Term] = [
        (int(origin), number, width, 1) for (origin, number), (_, width) in zip(found, kinds, strict=True)
    ]
    if opcode in (ll.ADD, ll.SEXT, ll.TRUNC):
        return Formula(LINEAR, bits, 0, terms)
    if opcode in (ll.ZEXT, ll.PTRTOINT, ll.INTTOPTR):
        return Formula(LINEAR, bits, 0, [(*terms[0][:2], 64, 1)])
    if opcode == ll.SUB:
        return Formula(LINEAR, bits, 0, [terms[0], (*terms[1][:3], _WORD - 1)])
    if opcode in _BINARY or opcode == ll.SELECT:
        return Formula(opcode, bits, 0, terms)
    if opcode in _SHIFTS and found[1][0] == Origin.CONSTANT and found[1][1] < bits:
        return Formula(opcode, bits, 0, terms)
    if opcode == ll.ICMP:
        return Formula(opcode, bits, llvm.GetICmpPredicate(instruction), terms)
    return None


def _element(words: Words, instruction: Ref, operands: list[Ref], known: Known) -> Formula | None:
    """The formula of an address: the base address, and the offsets of fields and elements."""
    llvm = words.llvm
    start = known(operands[0])
    if start is None:
        return None
    base, terms = 0, [(int(start[0]), start[1], 64, 1)]
    kind = llvm.GetGEPSourceElementType(instruction)
    for i, index in enumerate(operands[1:]):
        constant = llvm.ConstIntGetSExtValue(index) if llvm.IsAConstantInt(index) else None
        if i and llvm.GetTypeKind(kind) == ll.STRUCT:
            base += llvm.OffsetOfElement(words.layout, kind, constant)
            kind = llvm.StructGetTypeAtIndex(kind, constant)
            continue
        if i:
            kind = llvm.GetElementType(kind)
        stride = llvm.ABISizeOfType(words.layout, kind)
        if constant is not None:
            base += constant * stride
            continue
        origin = known(index)
        width = words.sort(llvm.TypeOf(index))[1]
        if origin is None or not width:
            return None
        terms.append((int(origin[0]), origin[1], width, stride))
    return Formula(LINEAR, 64, base % _WORD, terms)


def unwrapped(library: Llvm, value: Ref) -> Ref:
    """A pointer without the conversions of LLVM 14 between pointer types."""
    while (
        library.IsAInstruction(value)
        and library.GetInstructionOpcode(value) == ll.BITCAST
        and library.GetTypeKind(library.TypeOf(value)) == ll.POINTER
    ):
        value = library.GetOperand(value, 0)
    return value
