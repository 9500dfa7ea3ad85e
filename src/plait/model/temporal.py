"""Temporal properties: properties of infinite runs, in linear temporal logic.

    @eventually
    def decided(s):
        return all(l.value is not None for l in s[Learner])

    leads_to(hungry, eats)                  # G(hungry >> F(eats))
    ltl(G(request >> F(reply)))             # operators on functions with @predicate
    ltl("G(request -> F reply)", request=…, reply=…)

A run that reaches a terminal state stays there for ever. `plait.model.fairness` has the assumptions on runs.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import linecache
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from plait.kernel.errors import ModelError
from plait.model.fairness import Fairness, assumptions
from plait.model.properties import Property

LAMBDA = "<lambda>"
"""The name that Python gives to every lambda."""
MAX_NAME = 40
"""A longer text is not used as a name."""


@dataclasses.dataclass(frozen=True, repr=False)
class Formula:
    """A formula of linear temporal logic. `&`, `|`, `~` and `>>` (implies) combine formulas."""

    def __and__(self, other: Any) -> Formula:
        return And(self, formula(other))

    def __rand__(self, other: Any) -> Formula:
        return And(formula(other), self)

    def __or__(self, other: Any) -> Formula:
        return Or(self, formula(other))

    def __ror__(self, other: Any) -> Formula:
        return Or(formula(other), self)

    def __invert__(self) -> Formula:
        return Not(self)

    def __rshift__(self, other: Any) -> Formula:
        return Implies(self, formula(other))

    def __rrshift__(self, other: Any) -> Formula:
        return Implies(formula(other), self)

    def __bool__(self) -> bool:
        raise ModelError(f"the formula {self} has no truth value", hint="use & | ~ >> instead of and, or, not, if")

    def __str__(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        return str(_with_names(self, None))

    @property
    def parts(self) -> tuple[Formula, ...]:
        values = (getattr(self, f.name) for f in dataclasses.fields(self))
        return tuple(value for value in values if isinstance(value, Formula))

    def atoms(self) -> Iterator[Atom]:
        """The predicates in the formula, in order. One predicate may appear several times."""
        for part in self.parts:
            yield from part.atoms()

    def renamed(self, names: Mapping[Atom, str]) -> Formula:
        """The same formula with other names for some predicates."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        parts = {name: part.renamed(names) for name, part in fields.items() if isinstance(part, Formula)}
        return dataclasses.replace(self, **parts)


@dataclasses.dataclass(frozen=True, repr=False)
class Atom(Formula):
    """A predicate on a view of one state."""

    name: str
    predicate: Callable[[Any], Any]

    def atoms(self) -> Iterator[Atom]:
        yield self

    def renamed(self, names: Mapping[Atom, str]) -> Formula:
        return Atom(names.get(self, self.name), self.predicate)

    def __call__(self, view: Any) -> Any:
        return self.predicate(view)

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True, repr=False)
class Constant(Formula):
    """True or false, on every run."""

    value: bool

    def __str__(self) -> str:
        return str(self.value).lower()


@dataclasses.dataclass(frozen=True, repr=False)
class _Unary(Formula):
    of: Formula

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", formula(self.of))


@dataclasses.dataclass(frozen=True, repr=False)
class _Binary(Formula):
    left: Formula
    right: Formula
    _sign = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", formula(self.left))
        object.__setattr__(self, "right", formula(self.right))

    def __str__(self) -> str:
        return f"({self.left} {self._sign} {self.right})"


class Not(_Unary):
    """The formula is false now."""

    def __str__(self) -> str:
        return f"!{self.of}"


class Next(_Unary):
    """The formula is true after the next step."""

    def __str__(self) -> str:
        return f"X {self.of}"


class Globally(_Unary):
    """The formula is true now and for ever."""

    def __str__(self) -> str:
        return f"G {self.of}"


class Finally(_Unary):
    """The formula is true now or later."""

    def __str__(self) -> str:
        return f"F {self.of}"


class And(_Binary):
    """Both formulas are true."""

    _sign = "&"


class Or(_Binary):
    """At least one of the formulas is true."""

    _sign = "|"


class Implies(_Binary):
    """If the first formula is true now, the second is true now."""

    _sign = "->"


class Until(_Binary):
    """The second formula is true now or later, and the first is true until then."""

    _sign = "U"


class Release(_Binary):
    """The second formula is true until the first is true, and at that time too; or it is true for ever."""

    _sign = "R"


class WeakUntil(_Binary):
    """The first formula is true until the second is true; or it is true for ever."""

    _sign = "W"


G, F, X, U, R, W = Globally, Finally, Next, Until, Release, WeakUntil


def formula(value: Any) -> Formula:
    """Turn a value into a formula: a function of the view becomes a predicate, True and False become constants."""
    if isinstance(value, Formula):
        return value
    if isinstance(value, bool):
        return Constant(value)
    if isinstance(value, Property):
        raise _is_property(value)
    if callable(value) and not isinstance(value, type):
        return Atom(str(getattr(value, "__name__", value)), value)
    raise ModelError(
        f"{value!r} is not a formula",
        hint="use functions of the view, and combine them with G, F, X, U, R, W, &, |, ~ and >>",
    )


def predicate(function: Callable[[Any], Any]) -> Atom:
    """Make a function of the view usable in formulas: `@predicate def idle(s): …`, then `G(idle >> F(busy))`."""
    made = formula(function) if callable(function) and not isinstance(function, type) else None
    if not isinstance(made, Atom):
        raise ModelError(
            f"predicate({function!r}): expected a function of the view", hint="write @predicate def idle(s): …"
        )
    return made


def _is_property(value: Property) -> ModelError:
    """The error for a property inside a formula, which can only have predicates and other formulas."""
    instead = {
        "always": "give the predicate itself, or write G(…) for always",
        "temporal": "give its formula: F(…) for eventually, G(F(…)) for always_eventually",
    }
    return ModelError(
        f"{value.name} is a property ({value.kind}), which cannot be part of a formula",
        hint=instead.get(value.kind, "give the predicate itself: a function of the view, or one with @predicate"),
    )


@dataclasses.dataclass(frozen=True)
class Temporal(Property):
    """A property of infinite runs."""

    formula: Formula = Constant(True)
    fairness: tuple[Fairness, ...] = ()
    """Assumptions of this property, in addition to those of the System."""


def _temporal(name: str | None, made: Formula, doc: str, fairness: Iterable[Fairness], kind: str = "") -> Temporal:
    made = _with_names(made, name)
    label = name or kind or str(made)
    given = assumptions(fairness, label)
    return Temporal(label, "temporal", _has_no_state, doc, unnamed=not name, formula=made, fairness=given)


def _with_names(made: Formula, name: str | None, letters: Mapping[Formula, str] | None = None) -> Formula:
    """The formula with names for its lambdas.

    The only predicate of a formula gets the name of the property. Of several, each gets its text as name if that is
    short, else its letter or a number.
    """
    atoms = list(dict.fromkeys(made.atoms()))
    lambdas = [atom for atom in atoms if atom.name == LAMBDA]
    names: dict[Atom, str] = {}
    for number, atom in enumerate(lambdas):
        taken = {other.name for other in atoms} | {*names.values()}
        by_place = (letters or {}).get(atom, f"λ{number + 1}")
        wanted = name if name and len(atoms) == 1 else _short_text(atom.predicate)
        names[atom] = wanted if wanted and wanted not in taken else by_place
    return made.renamed(names)


def _short_text(function: Callable[[Any], Any]) -> str | None:
    """The expression of a lambda as the user wrote it. None if it is long, or if there is no source.

    An expression with operators is put in parentheses, so that it can be part of a formula.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    # Each instruction knows its part of the source. The last instruction has the whole expression.
    places = [place for place in code.co_positions() if None not in place and place[2] != place[3]]
    if not places or len({line for first, last, *_ in places for line in (first, last)}) > 1:
        return None
    start, end = min(place[2] for place in places), max(place[3] for place in places)
    line = linecache.getline(code.co_filename, places[0][0]).encode()
    text = line[start:end].decode(errors="replace")
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if len(text) > MAX_NAME or isinstance(node, ast.Constant):
        return None
    return text if isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Name) else f"({text})"


def _has_no_state(view: Any) -> Any:
    raise ModelError(
        "a temporal property has no value in a state: it is about runs",
        hint="evaluate a predicate of the view instead",
    )


def _of_one(kind: str, make: Callable[[Formula], Formula], p: Any, name: str | None, fairness: Any) -> Any:
    def decorate(function: Any) -> Temporal:
        atom = formula(function)
        label = name or (str(atom) if isinstance(atom, Atom) and atom.name != LAMBDA else None)
        doc = (getattr(function, "__doc__", None) or "").strip().split("\n")[0]
        return _temporal(label, make(atom), "" if isinstance(function, Formula) else doc, fairness, kind)

    return decorate if p is None else decorate(p)


def eventually(p: Any = None, *, name: str | None = None, fairness: Iterable[Fairness] = ()) -> Any:
    """On every fair run, the predicate is true at some time."""
    return _of_one("eventually", Finally, p, name, fairness)


def always_eventually(p: Any = None, *, name: str | None = None, fairness: Iterable[Fairness] = ()) -> Any:
    """On every fair run, the predicate is true infinitely often."""
    return _of_one("always_eventually", lambda f: Globally(Finally(f)), p, name, fairness)


def eventually_always(p: Any = None, *, name: str | None = None, fairness: Iterable[Fairness] = ()) -> Any:
    """On every fair run, the predicate is true from some time on, for ever."""
    return _of_one("eventually_always", lambda f: Finally(Globally(f)), p, name, fairness)


def stable(p: Any = None, *, name: str | None = None, fairness: Iterable[Fairness] = ()) -> Any:
    """On every fair run, once the predicate is true, it stays true."""
    return _of_one("stable", lambda f: Globally(Implies(f, Globally(f))), p, name, fairness)


def leads_to(p: Any, q: Any, *, name: str | None = None, fairness: Iterable[Fairness] = ()) -> Temporal:
    """On every fair run, whenever the first predicate is true, the second is true then or later."""
    first, second = formula(p), formula(q)
    first, second = _with_names(Implies(first, second), None, {second: "q", first: "p"}).parts
    made = Globally(Implies(first, Finally(second)))
    return _temporal(name, made, "", fairness, f"{first} leads to {second}")


def ltl(
    given: Any, /, *, name: str | None = None, fairness: Iterable[Fairness] = (), **predicates: Callable[[Any], Any]
) -> Temporal:
    """A formula as a property: `ltl(G(request >> F(reply)))`, or `ltl("G(request -> F reply)", request=…, reply=…)`.

    The text has operators, true, false, parentheses, and predicates by name. The operators, from the strongest to the
    weakest: G F X ! (G is also written [], and F <>), then U R W, then &, then |, then -> (or =>), then <-> (or <=>).
    """
    if isinstance(given, str):
        made = _Parser(given, predicates).formula()
    elif predicates:
        raise ModelError(
            f"ltl(…, {', '.join(predicates)}=…): only a formula as text takes predicates by name",
            hint='give the formula as text, for example ltl("G(request -> F reply)", request=…, reply=…)',
        )
    else:
        made = formula(given)
    return _temporal(name, made, "", fairness)


def _equivalent(left: Formula, right: Formula) -> Formula:
    return And(Implies(left, right), Implies(right, left))


_TOKEN = re.compile(r"\s*(?:(<->|<=>|<>|\[\]|->|=>|&&?|\|\|?|[!~()])|([A-Za-z_]\w*)|(\S))")
_UNARY = {"G": Globally, "[]": Globally, "F": Finally, "<>": Finally, "X": Next, "!": Not, "~": Not, "not": Not}
_LEVELS: list[dict[str, Callable[[Formula, Formula], Formula]]] = [
    {"<->": _equivalent, "<=>": _equivalent},
    {"->": Implies, "=>": Implies},
    {"|": Or, "||": Or, "or": Or},
    {"&": And, "&&": And, "and": And},
    {"U": Until, "R": Release, "W": WeakUntil},
]
"""Binary operators, the weakest first. All are right-associative."""
_RESERVED = {"true", "false", *_UNARY, *(sign for signs in _LEVELS for sign in signs)}
_OPERATORS = "operators: G F X ! [] <>, then U R W, then &, then |, then -> =>, then <-> <=>, and parentheses"


def _given(name: str, value: Any) -> Atom:
    """The predicate that a formula as text calls by this name."""
    if name in _RESERVED:
        raise ModelError(
            f"ltl(…, {name}=…): {name} is a reserved word of formulas", hint="give the predicate another name"
        )
    try:
        return Atom(name, predicate(value).predicate)
    except ModelError as error:
        raise ModelError(f"ltl(…, {name}=…): {error.message}", hint=error.hint) from None


class _Parser:
    """Parses a formula that is given as text."""

    def __init__(self, text: str, predicates: dict[str, Callable[[Any], Any]]) -> None:
        self.text = text
        self.predicates = {name: _given(name, value) for name, value in predicates.items()}
        self.tokens = [(m.group(m.lastindex or 0), m.start(m.lastindex or 0)) for m in _TOKEN.finditer(text.rstrip())]
        self.at = 0

    def formula(self) -> Formula:
        made = self._level(0)
        if self.at < len(self.tokens):
            raise self._error("an operator or the end")
        return made

    def _peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def _error(self, expected: str, hint: str = _OPERATORS) -> ModelError:
        column = self.tokens[self.at][1] + 1 if self.at < len(self.tokens) else len(self.text) + 1
        found = f"found {self._peek()!r}" if self._peek() else "the text ends"
        return ModelError(f"ltl({self.text!r}), column {column}: expected {expected}, {found}", hint=hint)

    def _known(self) -> str:
        """The hint if a predicate, or the beginning of a formula, was expected: what is possible here."""
        known = f"predicates given: {', '.join(self.predicates) or 'none'}"
        if not self._peek().isidentifier() or self._peek() in _RESERVED:
            return f"{known}; {_OPERATORS}"
        close = difflib.get_close_matches(self._peek(), self.predicates, n=1)
        return f"did you mean {close[0]!r}? {known}" if close else known

    def _level(self, level: int) -> Formula:
        if level == len(_LEVELS):
            return self._unary()
        left = self._level(level + 1)
        made = _LEVELS[level].get(self._peek())
        if made is None:
            return left
        self.at += 1
        return made(left, self._level(level))

    def _unary(self) -> Formula:
        token = self._peek()
        if token == "(":
            self.at += 1
            inner = self._level(0)
            if self._peek() != ")":
                raise self._error("an operator or ')'")
            self.at += 1
            return inner
        if token in self.predicates:
            self.at += 1
            return self.predicates[token]
        if token in ("true", "false"):
            self.at += 1
            return Constant(token == "true")
        if token in _UNARY:
            self.at += 1
            return _UNARY[token](self._unary())
        raise self._error("a predicate, G, F, X, ! or '('", self._known())
