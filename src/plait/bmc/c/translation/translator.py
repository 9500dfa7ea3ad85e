"""The translation of one process: its variables, and functions, which are inlined at each call."""

from __future__ import annotations

from plait.bmc.c.reading.initialisers import Initial, initials, scalars
from plait.bmc.c.reading.tree import (
    Assign,
    Call,
    Declaration,
    Definition,
    Evaluated,
    Expression,
    FunctionName,
    Increment,
    Number,
    nodes,
)
from plait.bmc.c.reading.types import (
    BOOL,
    INT,
    Array,
    CType,
    Integer,
    Pointer,
    Struct,
    Synchronization,
    Void,
    integer,
)
from plait.bmc.c.translation.library import CALLS, ignores
from plait.bmc.c.translation.model import Model
from plait.bmc.c.translation.statements import Frame, Statements
from plait.bmc.c.translation.values import NOWHERE, ZERO, Located, Object, Reference, Val
from plait.bmc.program.arithmetic import operation
from plait.bmc.program.builder import CodeBuilder
from plait.bmc.program.definition import LIMITS, MEMORY, Constant, Domain, Expr, Read, Set, Variable
from plait.bmc.program.source import Place

_LARGE = 16
"""The number of scalars from which on an initialiser becomes a part of the initial state, if possible."""


class Translator(Statements):
    """Translates the code of one process."""

    def __init__(self, model: Model, code: CodeBuilder, chain: tuple[str, ...]) -> None:
        super().__init__(model, code)
        self.chain = chain
        """The functions of the threads that lead to this one."""
        self.own: dict[Declaration, Object] = {}
        """The thread-local variables of this thread."""
        self.result: Variable | None = None
        """For a thread: the variable for its result."""

    # -- functions -----------------------------------------------------------------------------------------------------

    def call(self, e: Call) -> Val:
        """The result of a call."""
        if isinstance(e.function, FunctionName):
            return self._call(e.function.name, e)
        pointer = self.value(e.function)
        if pointer.function is not None:
            return self._call(pointer.function, e)
        return self._through_pointer(pointer, e)

    def _call(self, name: str, e: Call) -> Val:
        known = CALLS.get(name)
        definition = self.model.unit.function(name) or self.model.unit.function(f"__plait_{name}")
        if known is not None and (definition is None or name in ("reach_error", "__VERIFIER_error")):
            self._ignored(name, e)
            return known(self, e)
        if definition is None and name.startswith(("__VERIFIER_nondet_", "nondet_")):
            return self.nondeterministic(e)
        if definition is None:
            what = "errno" if name == "__errno_location" else f"the function {name}, which has no body,"
            raise self.refusal(what, e.place)
        arguments = [self.value(a) for a in e.arguments]
        if not name.startswith("__VERIFIER_atomic_"):
            return self.inlined(definition, arguments, e.place)
        self.code.enter()
        value = self.inlined(definition, arguments, e.place)
        self.code.leave()
        return value

    def _ignored(self, name: str, e: Call) -> None:
        """Evaluate the arguments that do not matter for the model of a function: they may have effects."""
        for number, argument in enumerate(e.arguments):
            effects = any(isinstance(n, Assign | Increment | Call | Evaluated) for n in nodes(argument))
            if ignores(name, number) and (effects or isinstance(argument.type, Integer)):
                self.value(argument, needed=False)

    def nondeterministic(self, e: Call) -> Val:
        """Any value of a type."""
        t = e.type
        if isinstance(e.function, FunctionName) and e.function.name.endswith("_bool"):
            return Val(self.code.choose(Domain("int", 0, 1), 1, False), BOOL)
        if not isinstance(t, Integer):
            raise self.refusal("a nondeterministic value that is not an integer", e.place)
        return Val(self.code.choose(Domain("int", t.low, t.high), t.bits, t.signed), t)

    def _through_pointer(self, pointer: Val, e: Call) -> Val:
        """A call through a pointer: a branch to each function that it may point to."""
        names = [n.removeprefix("function ") for n in self.model.resolved(pointer.origins) if n.startswith("function ")]
        arguments = [self.value(a) for a in e.arguments]
        address = self.steady(pointer.expr)
        result = None
        if isinstance(e.type, Integer | Pointer):
            result = self.code.temporary("int", integer(e.type).bits, integer(e.type).signed)
        elif isinstance(e.type, Struct):
            raise self.refusal("a call through a pointer with a struct as result", e.place)
        origins = NOWHERE
        done = self.code.label("called")
        for name in names:
            definition = self.model.unit.function(name)
            if definition is None:
                raise self.refusal(f"a call through a pointer to {name}, which has no body,", e.place)
            if len(definition.parameters) != len(arguments):
                continue
            here, after = self.code.label(), self.code.label()
            self.branch(operation("==", address, Constant(self.model.address(name))), here, after)
            self.mark(here)
            value = self.inlined(definition, arguments, e.place)
            if result is not None:
                self.code.set(result, self.cast(value, e.type).expr)
                origins |= value.origins
            self.jump(done)
            self.mark(after)
        if self.code.reachable:
            self.code.ensure(Constant(False), MEMORY, "the pointer does not point to a function")
        self.mark(done)
        return Val(ZERO if result is None else Read(result), e.type, origins)

    def inlined(self, definition: Definition, arguments: list[Val], place: Place) -> Val:
        """The body of a function, with these arguments."""
        code = self.code
        depth = sum(frame.function is definition for frame in self.frames)
        if depth > self.model.options.unwind:
            text = (
                f"{definition.name} calls itself more than {self.model.options.unwind} times (the limit: option unwind)"
            )
            code.ensure(Constant(False), LIMITS, text)
            return Val(ZERO, definition.result)
        outer, self.names = self.names, {}
        t = definition.result
        result: Variable | Object | None = None
        if isinstance(t, Integer | Pointer):
            result = code.temporary("int", integer(t).bits, integer(t).signed)
        elif isinstance(t, Struct):
            result = self.model.local(self.unique("result"), t, code.number)
            result.unset = True
        for parameter, argument in zip(definition.parameters, arguments, strict=False):
            self.bind(parameter, self.cast(argument, parameter.type))
        frame = Frame(definition, code.label(f"end of {definition.name}"), result)
        self.frames.append(frame)
        self.loops += definition.jumps
        with code.scratch():
            self.statement(definition.body)
            if code.reachable and isinstance(result, Variable) and definition.name != "main":
                # It ends without a return: the result, if somebody uses it, can be anything.
                number = integer(t)
                code.set(result, code.choose(Domain("int", number.low, number.high), number.bits, number.signed))
        self.loops -= definition.jumps
        self.frames.pop()
        self.mark(frame.exit)
        self.names = outer
        code.at(place)
        if isinstance(result, Object):
            return self.load(self.whole(result))
        if len(frame.returned) == 1 and isinstance(frame.returned[0].expr, Constant):
            return frame.returned[0]
        origins = frozenset().union(*(value.origins for value in frame.returned)) if frame.returned else NOWHERE
        return Val(ZERO if result is None else Read(result), t, origins)

    def bind(self, parameter: Declaration, value: Val) -> None:
        """Give a parameter its value."""
        fixed = not parameter.assigned and not parameter.shared and isinstance(value.expr, Constant)
        if fixed and value.parts is None:
            self.names[parameter] = value
            return
        found = self.local(parameter)
        found.unset = not value.certain
        self.store(self.whole(found), value)

    def local(self, declared: Declaration, t: CType | None = None) -> Object:
        """A new local variable."""
        t = t or declared.type
        if declared.shared or _synchronizes(t):
            found = self.model.object(f"{self.code.name}.{declared.name}", t)
        else:
            found = self.model.local(self.unique(declared.name), t, self.code.number)
        self.names[declared] = found
        return found

    # -- variables -----------------------------------------------------------------------------------------------------

    def declare(self, declared: Declaration) -> None:
        """Make a local variable, and initialise it."""
        if declared.static:
            return
        t, initial = declared.type, declared.initial
        scalar = isinstance(t, Integer | Pointer)
        if scalar and initial is not None:
            outer = self.wanted
            self.wanted = t.target if isinstance(t, Pointer) and not isinstance(t.target, Void) else None
            first = initials(t, initial)
            early = self.local(declared) if declared.unset else None
            if early is not None:
                self.valueless(early, declared)
            value = self.cast(self.value(first[0][1]) if first else Val(ZERO, INT), t)
            self.wanted = outer
            if early is None and not declared.assigned and not declared.shared and isinstance(value.expr, Constant):
                self.names[declared] = value
                return
            self.store(self.whole(early or self.local(declared)), value)
            return
        if isinstance(t, Array) and t.count == 0 and declared.length is not None:
            length = self.value(declared.length).constant
            if length is None or length < 1:
                raise self.refusal("an array whose length is not a constant", declared.place)
            t = Array(t.element, length)
        found = self.local(declared, t)
        if initial is not None:
            if declared.unset:
                self.valueless(found, declared)
            self._initialise(found, initials(t, initial))
        elif declared.unset and isinstance(t, Integer) and not (declared.shared or declared.skipped):
            value = Val(self.code.choose(Domain("int", t.low, t.high), t.bits, t.signed), t)
            self.store(self.whole(found), value)
        elif declared.unset or (not scalar and (declared.skipped or not declared.filled)):
            self.valueless(found, declared)

    def valueless(self, found: Object, declared: Declaration) -> None:
        """A local variable that has no value at first. After a jump over its declaration, it has none either."""
        if declared.skipped and self.loops:
            raise self.refusal(f"a jump over the declaration of {declared.name} in a loop", declared.place)
        found.unset = True
        if self.loops and self.code.reachable:
            self.forget(self.whole(found))

    def _initialise(self, found: Object, given: list[Initial]) -> None:
        paths = list(scalars(found.type))
        if isinstance(found.type, Synchronization) or (len(paths) > _LARGE and not self.loops):
            self._preset(found, given)
            return
        values: dict[tuple[str | int, ...], Val] = {}
        for path, e in given:
            at = self._part(found, path)
            if isinstance(at, Located) and isinstance(at.type, Synchronization):
                kind = _mutex_kind(at.type, e)
                if kind:
                    self.code.step([Set(*self.cell(at, "kind"), Constant(kind))])
            else:
                values[path] = self.value(e)
        if isinstance(found.type, Struct) and () in values:
            found.unset |= not values[()].certain
            self.store(self.whole(found), values[()])
            return
        for path, value in values.items():
            at = self._part(found, path)
            self.store(at, self.cast(value, at.type))
        inside = [path for path, value in values.items() if value.parts is not None]
        for path in paths:
            if path not in values and not any(path[: len(p)] == p for p in inside):
                at = self._part(found, path)
                self.store(at, Val(ZERO, at.type))

    def _part(self, found: Object, path: tuple[str | int, ...]) -> Reference:
        at: Reference = self.whole(found)
        for step in path:
            at = self.member(at, step) if isinstance(step, str) else self.element(at, Constant(step))
        return at

    def static(self, declared: Declaration) -> Object:
        """The object of a static variable, with its initial value."""
        known = self.own if declared.thread_local else self.model.statics
        if declared in known:
            return known[declared]
        if not declared.defined:
            raise self.refusal(f"the variable {declared.name}, which is declared but not defined,")
        name = f"{self.code.name}.{declared.name}" if declared.thread_local else declared.name
        found = known[declared] = self.model.object(name, declared.type)
        if declared.initial is not None:
            self._preset(found, initials(declared.type, declared.initial))
        return found

    def _preset(self, found: Object, given: list[Initial]) -> None:
        """Set the initial values of an object in the initial state."""
        pointers: list[tuple[Located, Val]] = []
        for path, e in given:
            at = self._part(found, path)
            assert isinstance(at, Located)
            if isinstance(at.type, Synchronization):
                kind = _mutex_kind(at.type, e)
                if kind:
                    _put(found, (*at.path, "kind"), at.index, kind)
                continue
            value = self.cast(self.value(e), at.type)
            if value.constant is None:
                raise self.refusal("an initialiser that is not a constant", e.place)
            _put(found, at.path, at.index, value.constant)
            if value.origins:
                pointers.append((at, value))
        for at, value in pointers:
            self.flow(self.variable(at), value)


def _mutex_kind(t: Synchronization, e: Expression) -> int:
    """The kind of a mutex that an initialiser gives: 0 is the usual one."""
    kinds = [n.value for n in nodes(e) if isinstance(n, Number) and n.value]
    return kinds[0] if t.kind == "mutex" and kinds else 0


def _synchronizes(t: CType) -> bool:
    """Whether a type contains a synchronization object: functions get its address."""
    match t:
        case Synchronization():
            return True
        case Array(element):
            return _synchronizes(element)
        case Struct():
            return any(map(_synchronizes, t.fields.values()))
        case _:
            return False


def _put(found: Object, key: tuple[str, ...], index: Expr, value: int) -> None:
    assert isinstance(index, Constant)
    values = found.initial.setdefault(key, [])
    values += [0] * (int(index.value) + 1 - len(values))
    values[int(index.value)] = value
