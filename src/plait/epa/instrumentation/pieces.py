"""The record of a straight-line piece of code: the values that the reader cannot compute (docs/reference/epa.md).

Constants are in the table. The result of an instruction of the same frame is in the record of that instruction. So the
record of a load has its value, but usually not its address; the record of a store is usually empty. Calls, atomic
accesses and branches end a piece. Expected values (`expected.py`) come last in a record, so that they can be omitted.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.epa.instrumentation.effect import Effect
from plait.epa.instrumentation.llvm import INTEGER, POINTER, Llvm, Ref, array
from plait.epa.instrumentation.table import Origin, Piece
from plait.epa.instrumentation.words import Words

EXPECTED = 2 << 29
"""In the first word of a record: it omits all expected values (`recorder.h`)."""
ALL = (1 << 64) - 1
MOST_BYTES = 4096
"""The maximal length of a record. A longer one would not fit in the space that the recorder reserves."""
_AT = {"stream": "epa_stream", "C++ stream": "epa_cpp_stream", "list": "epa_list", "tree": "epa_tree"}
_DESCRIPTORS = {"stdin": 0, "stdout": 1, "stderr": 2}
Where = tuple[Origin, int]
NOTHING: Where = (Origin.CONSTANT, 0)
_OUTSIDE = {"epa_range": (2, 4), "epa_string": (2, 3), "epa_copy": (1, 4), "epa_atomic": (0, 1), "epa_done": (0, 0),
            "epa_stream": (1, 2), "epa_stdout": (1, 1), "epa_stderr": (1, 1), "epa_stdin": (1, 1), "epa_file": (2, 3),
            "epa_descriptor": (2, 3), "epa_descriptors": (2, 2), "epa_printed": (1, 4), "epa_scanned": (1, 4),
            "epa_returned": (0, 0), "epa_orders": (0, 1), "epa_orders_stream": (0, 1), "epa_orders_name": (0, 1),
            "epa_chance_memory": (1, 3), "epa_cpp_stream": (1, 2), "epa_cpp_string": (2, 3), "epa_list": (1, 2),
            "epa_tree": (1, 2)}  # fmt: skip
"""Recorder functions that are called and not inlined: the number of narrow arguments, and of all arguments."""


class Hooks:
    """Inserts calls of the recorder at the position of a builder. Calls of its linked part are inlined later."""

    def __init__(self, library: Llvm, module: Ref, words: Words) -> None:
        self.llvm, self.module, self.words = library, module, words
        self.void = library.VoidTypeInContext(words.context)
        self._known: dict[str, tuple[Ref, Ref]] = {}

    def __call__(self, name: str, *arguments: Ref) -> Ref:
        """Insert a call of a function of the recorder."""
        llvm = self.llvm
        if name not in self._known:
            if name in _OUTSIDE:
                narrow, count = _OUTSIDE[name]
                kinds = [self.words.i32 if i < narrow else self.words.i64 for i in range(count)]
                kind = llvm.FunctionType(self.void, array(kinds), count, 0)
                function = llvm.AddFunction(self.module, name.encode(), kind)
            else:
                function = llvm.GetNamedFunction(self.module, name.encode())
                kind = llvm.GlobalGetValueType(function)
            self._known[name] = (kind, function)
        kind, function = self._known[name]
        called: Ref = llvm.BuildCall2(self.words.builder, kind, function, array(arguments), len(arguments), b"")
        return called

    def touch(self, effect: Effect, call: Ref, number: int) -> None:
        """Record the known memory accesses of a call."""
        llvm, words = self.llvm, self.words
        if max(effect.at, effect.source, *effect.length, 0) >= llvm.GetNumArgOperands(call):
            return

        def argument(i: int) -> Ref:
            return words.word(llvm.GetOperand(call, i))

        site = words.number(number, 32)
        if effect.access in ("stdin", "stdout", "stderr"):
            self(f"epa_{effect.access}", site)
            return
        if effect.access == "descriptors":
            self("epa_descriptors", site, words.number(effect.bytes, 32))
            return
        if effect.access in ("printed", "scanned"):
            for i in range(effect.at + 1, llvm.GetNumArgOperands(call)):
                if llvm.GetTypeKind(llvm.TypeOf(llvm.GetOperand(call, i))) in (POINTER, INTEGER):
                    index = words.number(i - effect.at - 1)
                    self(f"epa_{effect.access}", site, argument(effect.at), index, argument(i))
            return
        length = self._length(effect, call)
        if effect.access in ("read string", "wrote string"):
            self("epa_string", site, words.number(effect.access == "wrote string", 32), argument(effect.at))
        elif effect.access in ("file", "descriptor"):
            self(f"epa_{effect.access}", site, words.number(effect.bytes, 32), argument(effect.at))
        elif effect.access in _AT:
            self(_AT[effect.access], site, argument(effect.at))
        elif effect.access in ("string", "changed string"):
            changes = effect.bytes or int(effect.access == "changed string")
            self("epa_cpp_string", site, words.number(changes, 32), argument(effect.at))
        elif effect.access == "copy":
            self("epa_copy", site, argument(effect.at), argument(effect.source), length)
        elif llvm.GetTypeKind(llvm.TypeOf(llvm.GetOperand(call, effect.at))) == POINTER:
            self("epa_range", site, words.number(effect.access == "write", 32), argument(effect.at), length)

    def _length(self, effect: Effect, call: Ref) -> Ref:
        length = self.words.number(effect.bytes or 1)
        for i in effect.length:
            word = self.words.word(self.llvm.GetOperand(call, i))
            length = self.llvm.BuildMul(self.words.builder, length, word, b"")
        return length

    def order(self, effects: Sequence[Effect], call: Ref) -> None:
        """Begin an operation on a file that has a place in the order of all of them. `epa_done` ends it."""
        llvm, words = self.llvm, self.words
        for effect in effects:
            if effect.access in _DESCRIPTORS:
                self("epa_orders", words.number(_DESCRIPTORS[effect.access]))
            elif effect.at >= llvm.GetNumArgOperands(call) and effect.access in ("file", "descriptor"):
                continue
            elif effect.access == "file":
                self("epa_orders_stream", words.word(llvm.GetOperand(call, effect.at)))
            elif effect.access == "descriptor":
                self("epa_orders", words.word(llvm.GetOperand(call, effect.at)))
            elif effect.access == "descriptors":
                path = next(
                    (words.word(llvm.GetOperand(call, e.at)) for e in effects if e.access == "read string"), None
                )
                self("epa_orders_name", path or words.number(0))

    def chance(self, effects: Sequence[Effect], call: Ref, number: int) -> None:
        """Record or replay the memory that a call has written, if the input does not determine it."""
        for effect in effects:
            if effect.access == "write" and effect.at < self.llvm.GetNumArgOperands(call):
                address = self.words.word(self.llvm.GetOperand(call, effect.at))
                self("epa_chance_memory", self.words.number(number, 32), address, self._length(effect, call))


class Record:
    """The record of a piece. It begins at the position of the builder."""

    def __init__(self, hooks: Hooks, number: int, function: int) -> None:
        self.hooks, self.words = hooks, hooks.words
        self.number, self.function = number, function
        self.steps: list[tuple[int, int, int, int, int, int]] = []
        self.size = 4
        self.marked = False
        self.expected: dict[Origin, list[tuple[Ref, int]]] = {Origin.AGAIN: [], Origin.VARIABLE: []}
        self.equal = dict.fromkeys(self.expected, self.words.number(ALL))
        self.at = hooks("epa_room", self.words.number(number, 32), self.words.number(0, 32))
        self.fault = hooks("epa_fault")

    @property
    def full(self) -> bool:
        """Whether the record should end soon."""
        return self.size + sum(width for part in self.expected.values() for _, width in part) > MOST_BYTES

    def event(self, kind: int, site: int, a: Where = NOTHING, b: Where = NOTHING) -> None:
        """Add the next event."""
        self.steps.append((kind, site, int(a[0]), a[1], int(b[0]), b[1]))

    def _take(self, width: int) -> tuple[Ref, Ref]:
        offset = self.size
        self.size += width
        return self.at, self.words.number(offset, 32)

    def store(self, word: Ref, width: int = 8) -> Where:
        """Put a word into the record."""
        self.hooks(f"epa_put{width}", *self._take(width), word)
        return Origin.STORED, width

    def below(self, address: Ref, frame: Ref) -> Where:
        """Put an address near the frame into the record."""
        distance = self.words.llvm.BuildSub(self.words.builder, frame, address, b"")
        self.hooks("epa_put4", *self._take(4), distance)
        return Origin.BELOW, 4

    def value(self, site: int, word: Ref, width: int) -> tuple[Where, Ref]:
        """Put a value into the record that a fault may change, and return the resulting value."""
        given = self.hooks(f"epa_value{width}", self.words.number(site, 32), self.fault, *self._take(width), word)
        return (Origin.STORED, width), given

    def guessed(self, site: int, word: Ref, width: int, kept: Ref, origin: Origin) -> Ref:
        """Put an expected value into the record. It can be omitted if all such values match the kept complements."""
        llvm, builder = self.words.llvm, self.words.builder
        zero = self.words.number(0, 32)
        given = self.hooks(f"epa_value{width}", self.words.number(site, 32), self.fault, self.at, zero, word)
        self.expected[origin].append((given, width))
        equal = llvm.BuildXor(builder, given, kept, b"")
        self.equal[origin] = llvm.BuildAnd(builder, self.equal[origin], equal, b"")
        return given

    def passed(self, site: int, word: Ref) -> Ref:
        """Pass a value through the recorder that the reader knows, but that a fault may change."""
        return self.hooks("epa_pass", self.words.number(site, 32), self.fault, self.at, word)

    def written(self, site: int, address: Ref, size: int, word: Ref) -> Ref:
        """Pass the value through the recorder that a store writes."""
        width, number = self.words.number(size, 32), self.words.number(site, 32)
        return self.hooks("epa_written", number, self.fault, self.at, address, width, word)

    def mark(self) -> None:
        """Mark that the next instruction may end the program."""
        if self.steps:
            self.hooks("epa_mark", self.words.number(len(self.steps), 32))
            self.marked = True

    def end(self) -> Piece:
        """End the record at the position of the builder."""
        llvm, number = self.words.llvm, self.words.number
        sizes = [self.size]
        for part in self.expected.values():
            for call, width in part:
                llvm.SetOperand(call, 3, number(self.size, 32))
                self.size += width
            sizes.append(self.size)
        llvm.SetOperand(self.at, 1, number(self.size, 32))
        if sizes[0] == self.size:
            end = llvm.BuildAdd(self.words.builder, self.at, number(self.size), b"")
        else:
            llvm.SetOperand(self.at, 0, number(self.number | EXPECTED, 32))
            widths = [number(size, 32) for size in sizes]
            end = self.hooks("epa_end", self.at, number(self.number, 32), *widths, *self.equal.values())
        self.hooks("epa_commit_marked" if self.marked else "epa_commit", end)
        return Piece(self.function, self.steps)
