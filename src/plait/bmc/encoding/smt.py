"""Formulas as SMT-LIB text, the input of every solver.

A term is a Python bool or int if its value is known, else text. Known values are calculated here, so that solvers get
smaller formulas. A long term gets a name, and other terms use the name. So a formula is as large as its graph, not as
its tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plait.bmc.program.arithmetic import calculate, wrapped

Term = str | bool | int
"""Known: a bool or an int. Unknown: an SMT-LIB term."""

_LONG = 60
_COMPARE = {"<": "bvslt", "<=": "bvsle", ">": "bvsgt", ">=": "bvsge"}
_BITS = {"+": "bvadd", "-": "bvsub", "*": "bvmul"}
_BITWISE = {"&": "bvand", "|": "bvor", "^": "bvxor", "<<": "bvshl", ">>": "bvashr"}
_DIVISIONS = ("/", "%", "quot", "rem")
_SHIFTS = ("<<", ">>")
_MOST_SHIFT = 64


LARGEST = 30 << 20
"""A formula of more characters than this takes solvers minutes to read."""


class TooLargeError(Exception):
    """The formula is larger than the limit."""


class CannotEncodeError(TooLargeError):
    """No formula for the program: a bitwise operator has an operand of unbounded size."""


class Formula:
    """Declarations and assertions. Numbers are bit-vectors of `bits` bits (two's complement); None: integers."""

    def __init__(self, bits: int | None) -> None:
        self.bits = bits
        self.lines: list[str] = []
        self.names = 0
        self.constants: list[str] = []
        """The names of the declared constants."""
        self.assertions = 0
        self.size = 0

    def _line(self, text: str) -> None:
        self.size += len(text)
        if self.size > LARGEST:
            raise TooLargeError
        self.lines.append(text)

    @property
    def sort(self) -> str:
        return "Int" if self.bits is None else f"(_ BitVec {self.bits})"

    @property
    def logic(self) -> str:
        """Bit-vectors only, or integers with products of variables."""
        return "QF_BV" if self.bits is not None else "ALL"

    def text(self, goal: Iterable[Term] = ()) -> str:
        """The whole formula as text for a solver."""
        ends = [f"(assert {self._bool(g)})" for g in goal]
        return "\n".join([f"(set-logic {self.logic})", *self.lines, *ends, "(check-sat)", ""])

    # -- names ---------------------------------------------------------------------------------------------------------

    def declare(self, name: str, sort: str) -> str:
        """Declare a constant. The solver chooses its value."""
        name = f"|{name}|"
        self._line(f"(declare-const {name} {sort})")
        self.constants.append(name)
        return name

    def boolean(self, name: str) -> str:
        return self.declare(name, "Bool")

    def number(self, name: str) -> str:
        return self.declare(name, self.sort)

    def vector(self, name: str, bits: int) -> str:
        """Declare a natural number of `bits` bits, independent of the sort of numbers."""
        return self.declare(name, f"(_ BitVec {bits})")

    def named(self, term: Term, sort: str, name: str | None = None) -> Term:
        """The same term, by a name if it is long."""
        if not isinstance(term, str) or (len(term) < _LONG and name is None) or term[0] == "|":
            return term
        self.names += 1
        label = f"|{name or 'term'} {self.names}|"
        self._line(f"(define-fun {label} () {sort} {term})")
        return label

    def add(self, term: Term) -> None:
        """Assert a term."""
        if term is not True:
            self.assertions += 1
            self._line(f"(assert {self._bool(term)})")

    # -- truth values --------------------------------------------------------------------------------------------------

    @staticmethod
    def _bool(term: Term) -> str:
        return term if isinstance(term, str) else "true" if term else "false"

    def _flat(self, terms: Iterable[Term], neutral: bool) -> list[str] | bool:
        found: dict[str, None] = {}
        for term in terms:
            if isinstance(term, str):
                if self.not_(term) in found:
                    return not neutral
                found[term] = None
            elif bool(term) != neutral:
                return not neutral
        return list(found)

    def all(self, *terms: Term) -> Term:
        """The conjunction of terms."""
        return self._joined("and", terms, True)

    def any(self, *terms: Term) -> Term:
        """The disjunction of terms."""
        return self._joined("or", terms, False)

    def _joined(self, operator: str, terms: Sequence[Term], neutral: bool) -> Term:
        flat = self._flat(terms, neutral)
        if isinstance(flat, bool):
            return flat
        if len(flat) < 2:
            return flat[0] if flat else neutral
        return self.named(f"({operator} {' '.join(flat)})", "Bool")

    def not_(self, term: Term) -> Term:
        if not isinstance(term, str):
            return not term
        return term[5:-1] if term.startswith("(not ") else f"(not {term})"

    def implies(self, left: Term, right: Term) -> Term:
        return self.any(self.not_(left), right)

    def select(self, condition: Term, then: Term, otherwise: Term, sort: str | None = None) -> Term:
        """If-then-else; on truth values unless a sort is given."""
        if not isinstance(condition, str):
            return then if condition else otherwise
        if type(then) is type(otherwise) and then == otherwise:
            return then
        if sort is None:
            if then is True:
                return self.any(condition, otherwise)
            if then is False:
                return self.all(self.not_(condition), otherwise)
            if otherwise is True:
                return self.any(self.not_(condition), then)
            if otherwise is False:
                return self.all(condition, then)
            return self.named(f"(ite {condition} {then} {otherwise})", "Bool")
        bits = self._width(sort)
        term = f"(ite {condition} {self._literal(then, bits)} {self._literal(otherwise, bits)})"
        return self.named(term, sort)

    def same(self, left: Term, right: Term) -> Term:
        """Whether two truth values are equal."""
        if not isinstance(left, str):
            return right if left else self.not_(right)
        if not isinstance(right, str):
            return left if right else self.not_(left)
        return left == right or self.named(f"(= {left} {right})", "Bool")

    # -- numbers -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _width(sort: str) -> int | None:
        return None if sort == "Int" else int(sort.split()[2][:-1])

    @staticmethod
    def _literal(term: Term, bits: int | None) -> str:
        if isinstance(term, str):
            return term
        if bits is not None:
            return f"(_ bv{int(term) % (1 << bits)} {bits})"
        return str(int(term)) if term >= 0 else f"(- {-int(term)})"

    def equal(self, left: Term, right: Term, sort: str | None = None) -> Term:
        """Whether two numbers, or two terms of a sort, are equal."""
        if not isinstance(left, str) and not isinstance(right, str):
            return left == right
        if left == right:
            return True
        bits = self._width(sort or self.sort)
        return self.named(f"(= {self._literal(left, bits)} {self._literal(right, bits)})", "Bool")

    def below(self, left: Term, right: Term, sort: str) -> Term:
        """Whether one natural number of a bit-vector sort is less than another."""
        bits = self._width(sort)
        return self.named(f"(bvult {self._literal(left, bits)} {self._literal(right, bits)})", "Bool")

    def at_most(self, left: Term, right: Term, sort: str) -> Term:
        return self.not_(self.below(right, left, sort))

    def wrap(self, value: int) -> int:
        """A known number, wrapped around to the bits of numbers."""
        if self.bits is None:
            return value
        half = 1 << (self.bits - 1)
        return (value + half) % (2 * half) - half

    def modulo(self, term: Term, bits: int, signed: bool) -> Term:
        """A number modulo 2^bits, from 0 or with a sign. With more bits than numbers have, it is the number itself.

        The number need not be exact: a term that is right modulo 2^bits is enough.
        """
        if self.bits is not None and bits >= self.bits:
            return term  # the analysis of ranges has counted the bits of the result
        if not isinstance(term, str):
            return wrapped(int(term), bits, signed)
        if self.bits is not None:
            extend = "sign_extend" if signed else "zero_extend"
            low = f"((_ extract {bits - 1} 0) {term})"
            return self.named(f"((_ {extend} {self.bits - bits}) {low})", self.sort)
        if not signed:
            return self.named(f"(mod {term} {1 << bits})", self.sort)
        half = 1 << (bits - 1)
        return self.named(f"(- (mod (+ {term} {half}) {1 << bits}) {half})", self.sort)

    def operate(self, operator: str, left: Term, right: Term) -> Term:
        """Arithmetic and comparisons of numbers. A divisor is not 0, a shift is 0 to 64; else, the result is any number."""
        if not isinstance(right, str) and (
            (operator in _DIVISIONS and right == 0) or (operator in _SHIFTS and not 0 <= right <= _MOST_SHIFT)
        ):
            return 0  # no run evaluates this
        if not isinstance(left, str) and not isinstance(right, str):
            result = calculate(operator, left, right)
            return result if isinstance(result, bool) else self.wrap(result)
        if operator == "==":
            return self.equal(left, right)
        if operator == "!=":
            return self.not_(self.equal(left, right))
        if right == 0 and not isinstance(right, str) and operator in ("+", "-", "|", "^", "<<", ">>"):
            return left
        one, two = self._literal(left, self.bits), self._literal(right, self.bits)
        if operator in _COMPARE:
            name = operator if self.bits is None else _COMPARE[operator]
            return self.named(f"({name} {one} {two})", "Bool")
        if operator in _BITS:
            return self.named(f"({operator if self.bits is None else _BITS[operator]} {one} {two})", self.sort)
        if self.bits is None:
            bitwise = operator in _BITWISE
            text = _bitwise_integers(operator, left, right) if bitwise else _divided_integers(operator, one, two, right)
        elif operator in _BITWISE:
            text = f"({_BITWISE[operator]} {one} {two})"
        else:
            text = self._divided(operator, one, two, right)
        return self.named(text, self.sort)

    def _divided(self, operator: str, one: str, two: str, divisor: Term) -> str:
        """Division or remainder of bit-vectors. `/` and `%` round down, `quot` and `rem` round towards zero."""
        zero, less = self._literal(0, self.bits), self._literal(1, self.bits)
        if isinstance(divisor, int) and divisor > 0 and divisor & (divisor - 1) == 0:
            rest = f"(bvand {one} {self._literal(divisor - 1, self.bits)})"
            shift = self._literal(divisor.bit_length() - 1, self.bits)
            match operator:
                case "%":
                    return rest
                case "/":
                    return f"(bvashr {one} {shift})"
                case "quot":
                    up = f"(ite (bvslt {one} {zero}) {self._literal(divisor - 1, self.bits)} {zero})"
                    return f"(bvashr (bvadd {one} {up}) {shift})"
            down = f"(and (bvslt {one} {zero}) (not (= {rest} {zero})))"
            return f"(ite {down} (bvsub {rest} {two}) {rest})"
        match operator:
            case "quot":
                return f"(bvsdiv {one} {two})"
            case "rem":
                return f"(bvsrem {one} {two})"
            case "%":
                return f"(bvsmod {one} {two})"
        # bvsdiv rounds towards zero: subtract one where it rounded up.
        up = f"(and (xor (bvslt {one} {zero}) (bvslt {two} {zero})) (not (= (bvsrem {one} {two}) {zero})))"
        return f"(bvsub (bvsdiv {one} {two}) (ite {up} {less} {zero}))"


def _divided_integers(operator: str, one: str, two: str, divisor: Term) -> str:
    """Division or remainder of integers. `div` and `mod` of SMT-LIB leave a remainder that is never negative."""
    if operator in ("quot", "rem"):
        name = "div" if operator == "quot" else "mod"
        return f"(ite (>= {one} 0) ({name} {one} {two}) (- ({name} (- {one}) {two})))"
    plain = f"({'div' if operator == '/' else 'mod'} {one} {two})"
    if isinstance(divisor, int) and divisor > 0:
        return plain
    other = f"(- {plain} 1)" if operator == "/" else f"(+ {plain} {two})"
    return f"(ite (or (> {two} 0) (= (mod {one} {two}) 0)) {plain} {other})"


def _bitwise_integers(operator: str, left: Term, right: Term) -> str:
    """A bitwise operator on integers, if a constant operand makes it arithmetic."""
    if operator in ("&", "^") and not isinstance(left, str):
        left, right = right, left
    if isinstance(right, int) and isinstance(left, str):
        if operator == "&" and right >= 0 and right & (right + 1) == 0:
            return f"(mod {left} {right + 1})"
        if operator == "^" and right == -1:
            return f"(- (- {left}) 1)"
        if operator in _SHIFTS:
            return f"({'*' if operator == '<<' else 'div'} {left} {1 << right})"
    raise CannotEncodeError(f"the operator {operator} on a number without a bound")
