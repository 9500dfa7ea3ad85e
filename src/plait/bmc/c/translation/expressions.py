"""Expressions: their values, with one operation of the code for each access to shared memory."""

from __future__ import annotations

import abc
import codecs
from collections.abc import Callable

from msgspec import structs

from plait.bmc.c.reading.tree import (
    Assign,
    Binary,
    Block,
    Call,
    Cast,
    Conditional,
    Declaration,
    Evaluated,
    Expression,
    FunctionName,
    Increment,
    Index,
    Items,
    Literal,
    Member,
    Name,
    Number,
    Text,
    Unary,
)
from plait.bmc.c.reading.types import (
    ADDRESS,
    CHAR,
    INT,
    VOID,
    Array,
    CType,
    Function,
    Integer,
    Pointer,
    Struct,
    Synchronization,
    Void,
    as_condition,
    as_number,
    cells,
    converted,
    integer,
    promoted,
    similar,
)
from plait.bmc.c.reading.usage import plain
from plait.bmc.c.translation.memory import Memory
from plait.bmc.c.translation.model import Model
from plait.bmc.c.translation.values import NOWHERE, ZERO, Located, Object, Origins, Reference, Val
from plait.bmc.program.arithmetic import negate, operation, wrap
from plait.bmc.program.builder import CodeBuilder, Label
from plait.bmc.program.definition import DIVISION, LIMITS, OVERFLOW, Choice, Constant, Expr, Read, Set

Binding = Object | Val
"""What a name of a function means: an object, or a value that is known."""

TRUE = Constant(True)
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))


class Expressions(Memory, abc.ABC):
    """Translates expressions."""

    def __init__(self, model: Model, code: CodeBuilder) -> None:
        super().__init__(model, code)
        self.names: dict[Declaration, Binding] = {}
        """The variables of the function that is being translated."""
        self.wanted: CType | None = None
        """The type to which a pointer from malloc is converted."""

    @abc.abstractmethod
    def call(self, e: Call) -> Val:
        """The result of a call."""

    @abc.abstractmethod
    def block(self, body: Block) -> Val:
        """Execute a block; the value of its last expression."""

    @abc.abstractmethod
    def declare(self, declared: Declaration) -> None:
        """Make a local variable, and initialise it."""

    @abc.abstractmethod
    def static(self, declared: Declaration) -> Object:
        """The object of a static variable."""

    # -- control flow --------------------------------------------------------------------------------------------------

    def jump_if(self, e: Expression, then: Label, otherwise: Label) -> None:
        """Continue at one of two labels."""
        match e:
            case Unary("!", operand):
                self.jump_if(operand, otherwise, then)
            case Binary("&&" | "||" as operator, left, right) if not self.pure(e):
                middle = self.code.label()
                if operator == "&&":
                    self.jump_if(left, middle, otherwise)
                else:
                    self.jump_if(left, then, middle)
                self.mark(middle)
                self.jump_if(right, then, otherwise)
            case _:
                self.branch(self.condition(e), then, otherwise)

    def condition(self, e: Expression) -> Expr:
        """Whether a value is not 0."""
        return as_condition(self.value(e).expr)

    def pure(self, e: Expression) -> bool:
        """Whether the evaluation needs no operation of the code: only numbers and locals whose address is not taken."""
        match e:
            case Number() | FunctionName():
                return True
            case Name(declaration):
                if declaration.static:
                    return self.fixed(declaration) is not None
                found = self.names.get(declaration)
                return isinstance(found, Val) or (found is not None and found.process is not None)
            case Unary("-", operand):
                return not self.model.options.overflow and self.pure(operand)
            case Unary("+" | "~" | "!", operand):
                return self.pure(operand)
            case Cast(operand, t):
                return isinstance(t, Integer | Pointer) and self.pure(operand)
            case Binary(operator, left, right) if operator not in ("/", "%", ","):
                checked = self.model.options.overflow and operator in ("+", "-", "*", "<<", ">>")
                checked |= operator in ("+", "-") and any(isinstance(x.type, Pointer) for x in (left, right))
                return not checked and self.pure(left) and self.pure(right)
            case Conditional(condition, then, otherwise):
                return all(map(self.pure, (condition, then, otherwise)))
            case _:
                return False

    def fixed(self, declared: Declaration) -> int | None:
        """The value of a static variable that nobody assigns."""
        if declared.assigned or declared.shared or not isinstance(declared.type, Integer) or not declared.defined:
            return None
        match declared.initial:
            case None:
                return 0
            case e if self.pure(e):
                return self.cast(self.value(e), declared.type).constant
            case _:
                return None

    # -- values --------------------------------------------------------------------------------------------------------

    def value(self, e: Expression, needed: bool = True) -> Val:
        """The value of an expression. If it is not needed, only its effects matter."""
        match e:
            case Number(value, t):
                return Val(Constant(value), t)
            case Text():
                return self.cast_array(self.reference(e), Pointer(CHAR))
            case FunctionName(name):
                origins = frozenset((f"function {name}",))
                return Val(Constant(self.model.address(name)), Pointer(Function(-1)), origins, function=name)
            case Name(declaration):
                return self._name(declaration)
            case Member() | Index() | Literal() | Unary("*"):
                return self.load(self.reference(e)) if needed or not isinstance(e.type, Struct) else Val(ZERO, VOID)
            case Unary("&", operand):
                return structs.replace(self.pointer(self.reference(operand)), type=e.type)
            case Unary("!", operand):
                return Val(as_number(negate(self.condition(operand))), INT)
            case Unary(operator, operand):
                return self.unary(operator, self.value(operand), integer(e.type))
            case Binary(",", left, right):
                self.value(left, needed=False)
                return self.value(right, needed)
            case Binary("&&" | "||"):
                return self._logic(e)
            case Binary(operator, left, right):
                return self.binary(operator, self.value(left), self.value(right), e.type)
            case Assign():
                return self._assign(e, needed)
            case Increment():
                return self._increment(e, needed)
            case Conditional():
                return self._conditional(e, needed)
            case Cast(operand, t):
                return self._cast(operand, t, needed)
            case Call():
                return self.call(e)
            case Evaluated(body):
                return self.block(body)
            case Items():
                raise self.refusal("an initialiser here", e.place)

    def _name(self, declared: Declaration) -> Val:
        bound = self.names.get(declared)
        if isinstance(bound, Val):
            return bound
        if declared.static and (known := self.fixed(declared)) is not None:
            return Val(Constant(known), declared.type)
        return self.load(self.whole(bound or self.static(declared)))

    def reference(self, e: Expression) -> Reference:
        """What an expression refers to."""
        match e:
            case Name(declaration):
                bound = self.names.get(declaration)
                if isinstance(bound, Val):
                    raise AssertionError(f"{declaration.name} is a value")
                return self.whole(bound or self.static(declaration))
            case Literal(declaration):
                self.declare(declaration)
                found = self.names[declaration]
                assert isinstance(found, Object)
                return self.whole(found)
            case Unary("*", operand):
                return self.pointed(self.value(operand), f"the pointer {_shown(operand)}")
            case Member(base, field):
                return self.member(self.reference(base), field)
            case Index(base, index):
                if isinstance(base, Cast) and isinstance(base.operand.type, Array):
                    array = self.reference(base.operand)
                    return self.element(array, self.value(index).expr)
                pointer = self.value(base)
                return self.pointed(self.moved(pointer, self.value(index).expr), f"the pointer {_shown(e)}")
            case Text(value):
                return self.whole(self._text(value))
            case Cast(operand, t) if similar(operand.type, t):
                return self.reference(operand)
            case _ if isinstance(e.type, Struct):
                found = self.model.local(self.unique("value"), e.type, self.code.number)
                content = self.value(e)
                found.unset = not content.certain
                self.store(self.whole(found), content)
                return self.whole(found)
            case _:
                raise self.refusal(f"access to {_shown(e)}", e.place)

    def written(self, e: Expression) -> Reference:
        """What a function writes to: its argument is the address (see `RESULTS` in usage.py)."""
        match inner := plain(e):
            case Unary("&", operand):
                return self.reference(operand)
            case _:
                return self.pointed(self.value(inner), f"the pointer {_shown(e)}")

    def unique(self, name: str) -> str:
        """A name for a local object of this process."""
        return self.model.name(f"{self.code.name}.{name}").removeprefix(f"{self.code.name}.")

    def _text(self, value: str) -> Object:
        try:
            data = list(codecs.decode(value, "unicode_escape").encode("latin-1", "replace"))
        except ValueError:
            data = list(value.encode())
        found = self.model.object("text", Array(CHAR, len(data) + 1))
        found.initial[()] = [c - 256 if c > 127 else c for c in data]
        return found

    def unary(self, operator: str, value: Val, t: Integer) -> Val:
        e = converted(value.expr, value.type, t)
        if operator == "-":
            raw = operation("-", ZERO, e)
            self.overflow(raw, t, "-")
            return Val(wrap(raw, t.bits, t.signed), t, value.origins)
        if operator == "~":
            top = Constant(-1 if t.signed else t.high)
            return Val(operation("-", top, e), t, value.origins)
        return Val(e, t, value.origins)

    def overflow(self, raw: Expr, t: Integer, operator: str, legal: Expr = TRUE) -> None:
        """Check that an operation is legal and its result fits in a signed type, if this is asked for."""
        if self.model.options.overflow and t.signed and not self.silent:
            inside = operation("&&", operation("<=", Constant(t.low), raw), operation("<=", raw, Constant(t.high)))
            inside = operation("&&", legal, inside)
            self.code.ensure(inside, OVERFLOW, f"the result of {operator} does not fit in {t.name or 'its type'}")

    def binary(self, operator: str, left: Val, right: Val, t: CType) -> Val:
        """The result of an operator on values."""
        origins = left.origins | right.origins
        if operator in _COMPARISONS:
            return Val(as_number(operation(operator, left.expr, right.expr)), INT)
        if isinstance(left.type, Pointer) and isinstance(right.type, Pointer):
            self.counted(left)
            self.counted(right)
            distance = operation("-", left.expr, right.expr)
            stride = cells(left.type.target)
            return Val(distance if stride == 1 else operation("quot", distance, Constant(stride)), t)
        if isinstance(left.type, Pointer) or isinstance(right.type, Pointer):
            pointer, number = (left, right) if isinstance(left.type, Pointer) else (right, left)
            by = number.expr if operator == "+" else operation("-", ZERO, number.expr)
            moved = self.moved(pointer, by)
            return structs.replace(moved, expr=wrap(moved.expr, ADDRESS.bits, False))
        if self.objects(origins):
            self.code.ensure(Constant(False), LIMITS, f"{operator} on the number of an address: this cannot be checked")
        return Val(self.arithmetic(operator, left.expr, right.expr, integer(t)), t, origins)

    def arithmetic(self, operator: str, left: Expr, right: Expr, t: Integer) -> Expr:
        """Arithmetic in a type: it wraps around, unless an overflow is a violation."""
        match operator:
            case "/" | "%":
                self.code.ensure(operation("!=", right, ZERO), DIVISION, f"the divisor of {operator} is 0")
                if right == ZERO:
                    return ZERO
                if operator == "%":
                    return operation("rem", left, right)
                raw = operation("quot", left, right)
                self.overflow(raw, t, operator)
                safe = not t.signed or (isinstance(right, Constant) and right.value != -1)
                return raw if safe else wrap(raw, t.bits, t.signed)
            case "<<" | ">>":
                amount = self._amount(right, t)
                raw = operation(operator, left, amount)
                if operator == "<<":
                    self.overflow(raw, t, operator, operation(">=", left, ZERO))
                return raw if operator == ">>" else wrap(raw, t.bits, t.signed)
            case "&" | "|" | "^":
                return operation(operator, left, right)
            case _:
                raw = operation(operator, left, right)
                self.overflow(raw, t, operator)
                return wrap(raw, t.bits, t.signed)

    def _amount(self, e: Expr, t: Integer) -> Expr:
        """By how much to shift. Beyond the size of the type, C leaves it open; as x86 does, use the low bits."""
        if isinstance(e, Constant) and 0 <= e.value < t.bits:
            return e
        if self.model.options.overflow and not self.silent:
            inside = operation("&&", operation("<=", ZERO, e), operation("<", e, Constant(t.bits)))
            self.code.ensure(inside, OVERFLOW, f"the shift is not in the range 0 to {t.bits - 1}")
        return operation("&", e, Constant(t.bits - 1))

    def _logic(self, e: Binary) -> Val:
        if self.pure(e):
            return Val(as_number(operation(e.operator, self.condition(e.left), self.condition(e.right))), INT)
        result = self.code.temporary("int", 1, False)
        yes, no, done = self.code.label(), self.code.label(), self.code.label()
        self.jump_if(e, yes, no)
        self.mark(yes)
        self.code.set(result, Constant(1))
        self.jump(done)
        self.mark(no)
        self.code.set(result, ZERO)
        self.mark(done)
        return Val(Read(result), INT)

    def _conditional(self, e: Conditional, needed: bool) -> Val:
        if self.pure(e):
            condition = self.condition(e.condition)
            one, two = self.value(e.then), self.value(e.otherwise)
            if isinstance(condition, Constant):
                return one if condition.value else two
            return Val(Choice(condition, one.expr, two.expr), e.type, one.origins | two.origins)
        code = self.code
        yes, no, done = code.label(), code.label(), code.label()
        result = None
        if isinstance(e.type, Struct):
            raise self.refusal("a conditional expression of struct type", e.place, "write it as if and else")
        if not isinstance(e.type, Void) and needed:
            t = integer(e.type)
            result = code.temporary("int", t.bits, t.signed)
        self.jump_if(e.condition, yes, no)
        origins: Origins = NOWHERE
        for label, part in ((yes, e.then), (no, e.otherwise)):
            self.mark(label)
            value = self.value(part, result is not None)
            if result is not None:
                code.set(result, converted(value.expr, value.type, e.type))
                origins |= value.origins
            self.jump(done)
        self.mark(done)
        return Val(ZERO if result is None else Read(result), e.type, origins)

    # -- conversions ---------------------------------------------------------------------------------------------------

    def _cast(self, operand: Expression, t: CType, needed: bool) -> Val:
        if isinstance(operand.type, Array) and isinstance(t, Pointer):
            return self.cast_array(self.reference(operand), t)
        if isinstance(t, Void):
            self.value(operand, needed=False)
            return Val(ZERO, VOID)
        outer = self.wanted
        if isinstance(t, Pointer) and not isinstance(t.target, Void):
            self.wanted = t.target
        value = self.value(operand, needed)
        self.wanted = outer
        return self.cast(value, t)

    def cast_array(self, array: Reference, t: Pointer) -> Val:
        """An array as a pointer to its first element."""
        return structs.replace(self.pointer(self.element(array, ZERO)), type=t)

    def cast(self, value: Val, t: CType) -> Val:
        """A value converted to a type."""
        if value.parts is not None or isinstance(t, Struct | Array | Synchronization):
            return value
        if isinstance(t, Void):
            return Val(ZERO, VOID)
        kept = integer(t).bits == ADDRESS.bits
        return Val(
            converted(value.expr, value.type, t),
            t,
            value.origins,
            value.target if kept else None,
            value.function if kept else None,
        )

    # -- assignments ---------------------------------------------------------------------------------------------------

    def _assign(self, e: Assign, needed: bool) -> Val:
        target = self.reference(e.target)
        if e.operator:
            return self._update(target, self._operator(e), needed, old=False)
        outer = self.wanted
        if isinstance(e.target.type, Pointer) and not isinstance(e.target.type.target, Void):
            self.wanted = e.target.type.target
        value = self.cast(self.value(e.value), e.target.type)
        self.wanted = outer
        if needed and value.parts is None:
            t = integer(value.type)
            value = structs.replace(value, expr=self.code.kept(value.expr, bits=t.bits, signed=t.signed))
        self.store(target, value)
        return value

    def _operator(self, e: Assign) -> Callable[[Val], Val]:
        right = self.value(e.value)

        def calculate(old: Val) -> Val:
            if isinstance(old.type, Pointer) or e.calculation is None:
                return self.binary(e.operator, old, right, old.type)
            t = e.calculation
            number = right if e.operator in ("<<", ">>") else self.cast(right, t)
            return self.cast(self.binary(e.operator, self.cast(old, t), number, t), old.type)

        return calculate

    def _increment(self, e: Increment, needed: bool) -> Val:
        def calculate(old: Val) -> Val:
            if isinstance(old.type, Pointer):
                return self.binary("+", old, Val(Constant(e.change), INT), old.type)
            t = promoted(integer(old.type))
            return self.cast(self.binary("+", self.cast(old, t), Val(Constant(e.change), INT), t), old.type)

        return self._update(self.reference(e.target), calculate, needed, old=not e.prefix)

    def _update(self, target: Reference, calculate: Callable[[Val], Val], needed: bool, old: bool) -> Val:
        """Read, calculate, write. An atomic variable is updated in one step."""
        t = integer(target.type)
        if getattr(target.type, "atomic", False):
            before, after = self.update(target, calculate)
            return before if old else after
        first = self.load(target)
        if old and needed:
            first = structs.replace(first, expr=self.copied(first.expr, t))
        second = calculate(first)
        if needed and not old:
            second = structs.replace(second, expr=self.copied(second.expr, t))
        self.store(target, second)
        return first if old else second

    def copied(self, e: Expr, t: Integer) -> Expr:
        return self.code.kept(e, bits=t.bits, signed=t.signed)

    def update(
        self, target: Reference, calculate: Callable[[Val], Val], reads: bool = True, writes: bool = True
    ) -> tuple[Val, Val]:
        """Change a scalar in one atomic step: its values before and after."""
        t = integer(target.type)
        before = self.code.temporary("int", t.bits, t.signed)
        after = self.code.temporary("int", t.bits, t.signed)
        origins: set[str] = set()

        def act(at: Located) -> None:
            variable, index = self.cell(at)
            known = self._contents(variable)
            flag = self.flag(at)
            if reads and flag is not None and variable.process is not None:
                self.doubt(flag, at)
            self.silent = True
            new = calculate(Val(Read(before), target.type, known))
            self.silent = False
            self.flow(variable, new)
            origins.update(known | new.origins)
            own = Integer(variable.bits or t.bits, variable.signed)
            read = Set(before, None, converted(Read(variable, index), own, t))
            if not writes:
                self.step(at, [read], True)
            elif not reads:
                self.step(at, [Set(variable, index, converted(new.expr, t, own))], True)
            else:
                write = Set(variable, index, converted(Read(after), t, own))
                self.step(at, [read, Set(after, None, new.expr), write], True)

        self.access(target, act)
        found = frozenset(origins)
        return Val(Read(before), target.type, found), Val(Read(after), target.type, found)


def _shown(e: Expression) -> str:
    text = " ".join(e.place.text.split())
    return text if len(text) <= 40 else text[:39] + "…"
