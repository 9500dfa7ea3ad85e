"""Calls that the reader can follow into the function and back. Records omit their arguments and results."""

from __future__ import annotations

from plait.epa.instrumentation import llvm as ll
from plait.epa.instrumentation.llvm import Llvm, Ref
from plait.epa.instrumentation.words import Words


def returns(llvm: Llvm, call: Ref) -> bool:
    """Whether the result of a call is the return value of a recorded function."""
    if llvm.GetInstructionOpcode(call) not in (ll.CALL, ll.INVOKE):
        return False
    callee = llvm.GetCalledValue(call)
    if not llvm.IsAFunction(callee) or llvm.IsDeclaration(callee):
        return False
    certain = llvm.GetLinkage(callee) in (ll.EXTERNAL, ll.INTERNAL, ll.PRIVATE)
    return certain and bool(llvm.GetCalledFunctionType(call) == llvm.GlobalGetValueType(callee))


def parameters(words: Words, function: Ref) -> dict[Ref, int]:
    """The parameters of a function that only this program calls, by name, with the numbers of recorded arguments."""
    llvm = words.llvm
    if llvm.GetLinkage(function) not in (ll.INTERNAL, ll.PRIVATE):
        return {}
    for user in llvm.users(function):
        if not llvm.IsAInstruction(user) or not returns(llvm, user) or llvm.GetCalledValue(user) != function:
            return {}
        if any(llvm.GetOperand(user, i) == function for i in range(llvm.GetNumArgOperands(user))):
            return {}
    found, count = {}, 0
    for i in range(llvm.CountParams(function)):
        parameter = llvm.GetParam(function, i)
        if words.sort(llvm.TypeOf(parameter))[0] in ("none", "opaque"):
            continue
        if not llvm.copied(function, i):
            found[parameter] = count
        count += 1
    return found
