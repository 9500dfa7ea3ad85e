"""Effects of functions of the C++ library: streams, strings, lists and trees.

The names are mangled (Itanium C++ ABI). Members of containers whose code is in headers are a part of the program.
"""

from __future__ import annotations

import re

from plait.epa.instrumentation.effect import Effect

CPP_STREAMS = re.compile(
    r"_ZNK?S[oi](?!rsEPSt15|lsEPSt15|.*streambuf).*|_ZStlsI.*|_ZStrsI.*|_ZSt4end[ls]I.*|_ZSt5flushI.*|_ZSt16__ostream_insertI.*|_ZSt7getlineI.*"
)
"""Functions of the C++ library whose first argument is a stream."""

CPP = re.compile(
    r"_ZNK?S[sa].*|_ZNK?St7__cxx1112basic_string.*|_ZNSt8ios_base4InitC1Ev|_ZNSt8ios_base4InitD1Ev"
    r"|_ZSt\d+_Rb_tree_\w+|_ZNKSt8__detail20_Prime_rehash_policy.*|_ZNSt8__detail15_List_node_base(?!10_M_reverse).*"
    r"|_ZSt\d+__throw_\w+|_ZNK?St\d+(?:\w*_error|exception|bad_\w+|out_of_range)[CD4]?.*|_ZNSaIcE.*"
    r"|_ZSt(?:17rethrow_exception|17current_exception|9terminate).*|__cxa_\w+|__once_proxy|_Unwind_\w+|__gxx_personality_v0"
    r"|_ZNSt15__exception_ptr13exception_ptr.*|_ZSt11_Hash_bytesPKvmm|_ZNSt9exceptionD[012]Ev|_ZNKSt9exception4whatEv"
    r"|_ZNSt18condition_variable.*|_ZNSt6thread.*|_ZTIS.*|_Zn[wa]m.*|_Zd[la]Pv.*|_ZNSt7__cxx11\d+basic_stringstream.*"
    r"|_ZNSt7__cxx11\d+basic_[io]stringstream.*|_ZNKSt7__cxx11\d+basic_\w*stringstream.*|_ZSt20__throw_\w+"
)
"""Functions of the C++ library that work only on their arguments."""

FILE_STREAMS = re.compile(r"_ZN?K?St1[34]basic_[io]?fstreamI\w+")
"""File streams: constructors, open and close. Threads that open files depend on each other."""

_TREE = re.compile(r"_ZSt18_Rb_tree_(?:in|de)crementPK?St18_Rb_tree_node_base")
_TEXT = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE"
_STRING_MEMBER = re.compile(rf"_ZN(K?){_TEXT[1:]}(\w+)")
_STRINGSTREAM = re.compile(r"_ZNK?St7__cxx11\d+basic_[io]?stringstreamIcSt11char_traitsIcESaIcEE(\w+)")
_SIZES = {"b": 1, "s": 2, "t": 2, "i": 4, "j": 4, "f": 4, "l": 8, "m": 8, "x": 8, "y": 8, "d": 8, "e": 16}
_OBJECT, _ARGUMENT = 32, 8
"""Bytes of a string; the first bytes of another argument, which show that threads share it."""
_CHANGES = re.compile(
    r"6append|6assign|6insert|7replace|5erase|9push_back|8pop_back|5clear|6resize|7reserve|4swap|aS|pL"
    r"|9_M_append|9_M_assign|10_M_replace|9_M_mutate|8_M_erase|14_M_replace_aux"
)
_READS = re.compile(r"7compare|4find|5rfind|1[0-9]find_\w+|4copy")
_LENGTH = re.compile(
    r"(?:6append|6assign|9_M_append)E(PKcm)|(?:7replace|10_M_replace)E(mmPKcm)|6insertE(mPKcm)|7compareE(mmPKcm)"
)


def _of_stream(name: str) -> tuple[Effect, ...]:
    """A function whose first argument is a stream. Others are values, or memory that is read or written."""
    found = [Effect("C++ stream", 0)]
    if scanned := re.fullmatch(r"_ZNSirsER([bstijlmxyfde])", name):
        found.append(Effect("write", 1, bytes=_SIZES[scanned[1]]))
    elif re.fullmatch(r"_ZNSo5writeEPKcl|_ZSt16__ostream_insertI\w+PKS3_l", name):
        found.append(Effect("read", 1, (2,)))
    elif re.fullmatch(r"_ZNSi(?:4read|8readsome|3get|7getline)EPcl[cv]?", name):
        found.append(Effect("write", 1, (2,)))
    elif name == "_ZNSi3getERc" or re.fullmatch(r"_ZStrsI\w+RS3_", name):
        found.append(Effect("write", 1, bytes=1))
    elif re.fullmatch(r"_ZStlsI\w+PK[ac]", name):
        found.append(Effect("read string", 1))
    elif re.fullmatch(r"_ZStrsI\w+P(?:S3_|c)", name):
        found.append(Effect("wrote string", 1))
    elif re.match(r"_ZStlsI\w+basic_string", name):
        found.append(Effect("string", 1))
    elif re.match(r"_ZStrsI\w+basic_string|_ZSt7getlineI", name):
        found += [Effect("string", 1, bytes=1), Effect("changed string", 1)]
    return tuple(found)


def _of_string(member: str) -> tuple[Effect, ...]:
    """A member of std::string: its characters, and the memory of its arguments."""
    kinds = re.sub(r"\A(?:C[12]|D[12]|a[SN]|pL|ix)?(?:\d+[a-z_]+)?E", "", member)
    if member.startswith("6substrE"):  # the result comes first
        return Effect("write", 0, bytes=_OBJECT), Effect("string", 1)
    if _CHANGES.match(member):
        found = [Effect("string", 0, bytes=1), Effect("changed string", 0)]
    elif _READS.match(member):
        found = [Effect("string", 0)]
    else:
        accessor = re.search(r"E(?:v|m)\Z", member) and not re.match(r"C|D|1?[0-9]_M_", member)
        found = [Effect("read" if accessor else "write", 0, bytes=_OBJECT)]
    if re.match(r"(?:R|RK|O)S4_", kinds):
        swaps = member.startswith("4swap")
        found += [Effect("string", 1, bytes=int(swaps)), *([Effect("changed string", 1)] if swaps else [])]
    elif sized := _LENGTH.match(member):
        at = 1 + next(group for group in sized.groups() if group).index("P")
        found.append(Effect("read", at, (at + 1,)))
    elif re.match(r"C[12]E?PKcm", member):
        found.append(Effect("read", 1, (2,)))
    elif text := re.match(r"(m*)PKc(?!mm|S)", kinds):
        found.append(Effect("read string", 1 + len(text[1])))
    else:
        found.append(Effect("read", 1, bytes=_ARGUMENT))
    return tuple(found)


def _of_stringstream(member: str) -> tuple[Effect, ...]:
    if member.startswith("3strEv"):  # the result comes first
        return Effect("write", 0, bytes=_OBJECT), Effect("C++ stream", 1)
    found = [Effect("write", 0, bytes=_ARGUMENT) if member[0] in "CD" else Effect("C++ stream", 0)]
    return (*found, Effect("string", 1)) if "basic_string" in member else tuple(found)


def cpp_effects(name: str) -> tuple[Effect, ...] | None:
    """The effects of a function of the C++ library with a model of its own. None: it has none.

    >>> [(effect.access, effect.at) for effect in cpp_effects("_ZNSirsERi")]
    [('C++ stream', 0), ('write', 1)]
    """
    if CPP_STREAMS.fullmatch(name):
        return _of_stream(name)
    if _TREE.fullmatch(name):
        return (Effect("tree", 0),)
    if member := _STRING_MEMBER.fullmatch(name):
        return _of_string(member[2])
    if stream := _STRINGSTREAM.fullmatch(name):
        return _of_stringstream(stream[1])
    if FILE_STREAMS.fullmatch(name):
        path = [Effect("read string", 1)] if "EPKc" in name else [Effect("string", 1)] if "basic_string" in name else []
        return (Effect("write", 0, bytes=_ARGUMENT), *path)
    return None
