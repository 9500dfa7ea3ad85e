"""Satisfiability of conditions, decided by Z3. No other file uses Z3.

A value is a real number and a flag that says whether it is NULL. All ordered values of SQL can be embedded in the
reals: whole numbers as themselves, strings as distinct reals. A condition has three values, so it is a pair of
formulas: one for true, one for false. A comparison is between values of one kind. Any other comparison is opaque. The DBMS
converts a value to the type of the column that stores it or is compared with it. So names of variables contain the type: a
parameter that is compared with columns of two types is two unrelated variables. Servers accept a key only if it is the same
value in all types of its columns, so a key is one variable.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from plait.gyro.sql.entries import Entry
from plait.gyro.sql.terms import (
    And,
    Column,
    Condition,
    Constant,
    Generated,
    IsNull,
    Kind,
    Not,
    Opaque,
    Or,
    Parameter,
    Same,
    Term,
    normal_form,
)
from plait.kernel.deadline import interruptible
from plait.kernel.extras import needs

with needs("gyro"):
    import z3  # type: ignore[import-untyped,unused-ignore]

_Value = tuple[z3.BoolRef, z3.ArithRef]
_Truth = tuple[z3.BoolRef, z3.BoolRef]
_Domain = tuple[Kind, str]
"""The kind and the type of the columns that a value is compared with."""
Key = Parameter | Generated
_QUICK = 1_000_000
"""Units of work of Z3, about a second. Nearly all questions need a thousandth. Only the others are worth a thread."""


class Solver:
    """Decides whether two operations, of two transactions or of the same one, can conflict."""

    def __init__(self) -> None:
        self.questions = 0
        self._solver = z3.Solver()
        self._solver.set("ctrl_c", False)  # Ctrl-C is for Python: Z3 would take it and answer "unknown", a conflict
        self._strings: dict[str, z3.ArithRef] = {}
        self._fresh = itertools.count()
        self._shapes: dict[Entry, tuple[Entry, dict[Term, Term]]] = {}
        self._conflicts: dict[tuple[Entry, Entry], bool] = {}
        self._equalities: dict[tuple[Entry, Term, Entry, Term], bool] = {}
        """The answers so far. Many entries of an application differ in their names only."""
        self._formulas: dict[tuple[Entry, int], tuple[z3.BoolRef, dict[Key, set[_Domain]]]] = {}

    def conflict(self, one: Entry, other: Entry) -> bool:
        """Whether two operations can access the same row through these entries."""
        question = self._shape(one)[0], self._shape(other)[0]
        if question not in self._conflicts:
            self._conflicts[question] = self._satisfiable(*self._both(*question))
        return self._conflicts[question]

    def _shape(self, entry: Entry) -> tuple[Entry, dict[Term, Term]]:
        """An entry with a condition in normal form, and what became of its terms."""
        if entry not in self._shapes:
            condition, renamed = normal_form(entry.condition, entry.instance)
            self._shapes[entry] = Entry(entry.table, frozenset(), condition, "row", ""), renamed
        return self._shapes[entry]

    def implies_equal(self, one: Entry, left: Key, other: Entry, right: Key) -> bool:
        """Whether two operations that conflict in these entries always have equal values of these keys.

        >>> from plait.gyro.sql.terms import Compare
        >>> row = Column("cart", "id", "number")
        >>> entry = Entry("cart", frozenset({"id"}), Compare("=", row, Parameter("c")), "cart", "query")
        >>> Solver().implies_equal(entry, Parameter("c"), entry, Parameter("c"))
        True
        """
        (mine, renamed), (theirs, renamed_too) = self._shape(one), self._shape(other)
        question = mine, renamed.get(left, left), theirs, renamed_too.get(right, right)
        if question not in self._equalities:
            self._equalities[question] = self._implies_equal(*question)  # type: ignore[arg-type]
        return self._equalities[question]

    def _implies_equal(self, one: Entry, left: Key, other: Entry, right: Key) -> bool:
        domains = [
            sorted(self._formula(e, side)[1].get(k, ())) for side, (e, k) in enumerate(((one, left), (other, right)))
        ]
        if not all(domains) or len({kind for found in domains for kind, _ in found}) != 1:
            return False
        mine, theirs = (
            [self._variable(left, d, 0) for d in domains[0]],
            [self._variable(right, d, 1) for d in domains[1]],
        )
        each = [_same(found[0], more) for found in (mine, theirs) for more in found[1:]]
        return not self._satisfiable(*self._both(one, other), *each, z3.Not(_same(mine[0], theirs[0])))

    def _both(self, one: Entry, other: Entry) -> list[z3.BoolRef]:
        formulas = [self._formula(one, 0), self._formula(other, 1)]
        parts = [formula for formula, _ in formulas]
        # Two generated ids for one column are never equal.
        for left, right in itertools.product(*([k for k in keys if isinstance(k, Generated)] for _, keys in formulas)):
            if left.source == right.source:
                domains = itertools.product(formulas[0][1][left], formulas[1][1][right])
                for one_domain, other_domain in domains:
                    if one_domain[0] == other_domain[0]:
                        values = self._variable(left, one_domain, 0)[1], self._variable(right, other_domain, 1)[1]
                        parts.append(values[0] != values[1])
        if self._strings:
            parts.append(z3.Distinct(*self._strings.values()))
        return parts

    def _satisfiable(self, *formulas: z3.BoolRef) -> bool:
        self.questions += 1
        self._solver.push()
        self._solver.add(*formulas)
        self._solver.set("rlimit", _QUICK)
        answer = self._solver.check()
        if answer == z3.unknown:
            self._solver.set("rlimit", 0)
            answer = interruptible(self._solver.check, self._solver.ctx.interrupt)
        self._solver.pop()
        return bool(answer != z3.unsat)

    # -- formulas ----------------------------------------------------------------------------------------------------

    def _formula(self, entry: Entry, side: int) -> tuple[z3.BoolRef, dict[Key, set[_Domain]]]:
        """The condition as a formula, and the kinds and types of the columns that each key in it is compared with."""
        if (entry, side) not in self._formulas:
            keys: dict[Key, set[_Domain]] = {}
            asserted: list[z3.BoolRef] = []

            def value(term: Term, domain: _Domain) -> _Value:
                if isinstance(term, Parameter | Generated):
                    keys.setdefault(term, set()).add(domain)
                if isinstance(term, Column):
                    row = term.instance == entry.instance
                    name = f"row.{term.name}" if row else f"{side}:{term.instance}.{term.name}"
                    if not term.nullable:
                        asserted.append(z3.Not(z3.Bool(f"{name}:{domain[0]}?")))
                    return z3.Bool(f"{name}:{domain[0]}?"), z3.Real(f"{name}:{domain[0]}")
                return self._variable(term, domain, side)

            true, _ = self._truth(entry.condition, value)
            self._formulas[entry, side] = z3.And(true, *asserted), keys
        return self._formulas[entry, side]

    def _variable(self, term: Term, domain: _Domain, side: int) -> _Value:
        if isinstance(term, Constant):
            if term.value is None:
                return z3.BoolVal(True), z3.RealVal(0)
            if isinstance(term.value, str):
                known = self._strings.setdefault(term.value, z3.Real(f"string:{len(self._strings)}"))
                return z3.BoolVal(False), known
            return z3.BoolVal(False), z3.RealVal(term.value)
        if isinstance(term, Generated):
            return z3.BoolVal(False), z3.Real(f"{side}:new:{term.source}:{term.site}:{domain[0]}")
        name = f"{side}:{term.name if isinstance(term, Parameter) else f'?{term.number}'}:{' '.join(domain)}"  # type: ignore[union-attr]
        return z3.Bool(f"{name}?"), z3.Real(name)

    def _truth(self, condition: Condition, value: Callable[[Term, _Domain], _Value]) -> _Truth:
        if isinstance(condition, And | Or):
            parts = [self._truth(p, value) for p in condition.parts]
            true, false = [t for t, _ in parts], [f for _, f in parts]
            return (z3.And(true), z3.Or(false)) if isinstance(condition, And) else (z3.Or(true), z3.And(false))
        if isinstance(condition, Not):
            true_, false_ = self._truth(condition.part, value)
            return false_, true_
        if isinstance(condition, IsNull):
            if not isinstance(condition.term, Column):
                return self._anything()
            null, _ = value(condition.term, (condition.term.kind, condition.term.type))
            return null, z3.Not(null)
        if isinstance(condition, Opaque):
            return self._anything()
        domain = _domain(condition.left, condition.right)
        if domain is None:
            return self._anything()
        (null, left), (null2, right) = value(condition.left, domain), value(condition.right, domain)
        if isinstance(condition, Same):
            same = z3.And(null == null2, z3.Or(null, left == right))
            return same, z3.Not(same)
        known = z3.And(z3.Not(null), z3.Not(null2))
        holds = {"=": left == right, "<": left < right, "<=": left <= right}[condition.operator]
        return z3.And(known, holds), z3.And(known, z3.Not(holds))

    def _anything(self) -> _Truth:
        number = next(self._fresh)
        true, false = z3.Bool(f"opaque:{number}+"), z3.Bool(f"opaque:{number}-")
        return z3.And(true, z3.Not(false)), z3.And(false, z3.Not(true))


def _same(one: _Value, other: _Value) -> z3.BoolRef:
    """Both are NULL, or both are equal."""
    return z3.And(one[0] == other[0], z3.Or(one[0], one[1] == other[1]))


def _domain(left: Term, right: Term) -> _Domain | None:
    """The kind of a comparison, if the columns and the constants have one kind, and the type of the column."""
    columns = [t for t in (left, right) if isinstance(t, Column)]
    kinds = {t.kind for t in columns}
    constants = {t.kind for t in (left, right) if isinstance(t, Constant) and t.value is not None}
    if len(kinds) != 1 or "other" in kinds or not constants <= (kinds if kinds != {"float"} else {"number"}):
        return None
    return columns[0].kind, columns[0].type
