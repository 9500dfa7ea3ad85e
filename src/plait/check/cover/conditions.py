"""Condition coverage: a function is rewritten so that it records the values of its conditions.

Conditions are tests of `if`, `while` and conditional expressions, operands of `and` and `or`, filters of
comprehensions, and cases of `match`. The rewritten function computes the same result; each condition passes its value
to a function that records it.

The conditions of a property also show which of its parts were evaluated. The operands after a false operand of `and`,
or after a true operand of `or`, are not evaluated. Nor is the element of an empty loop. If a is never true, then b is
vacuously true in `not a or b`, `if a: return b`, `b if a else True` and `all(b for x in y if a)`.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import types
from collections.abc import Callable, Sequence
from typing import Any, Literal

from plait.ir.definition import definition, leaves

Skipped = Literal["", "part", "all"]


@dataclasses.dataclass
class Condition:
    """A condition, and the values that it has had so far."""

    text: str
    line: int
    is_test: bool = True
    """It is a test, which can be true or false. The others are places that a run reaches or not."""
    true: bool = False
    false: bool = False
    never_true: Skipped = ""
    """How much of a property is not evaluated if this is never true: nothing, a part, or all that it requires."""
    never_false: Skipped = ""
    loop: Condition | None = None
    """For the body of a loop: the condition of the loop itself."""
    operands: list[Condition] = dataclasses.field(default_factory=list)
    """The operands of `and` or `or`. They are never false if `and` is never false, never true if `or` is never true."""
    of_and: bool = False

    @property
    def reached(self) -> bool:
        return self.true or self.false

    def implied(self) -> list[Condition]:
        """The operands that have had the same single value as the whole."""
        same = self.true and not self.false if self.of_and else self.false and not self.true
        return self.operands if same else []

    def skipped(self) -> tuple[Skipped, str]:
        """What was never evaluated because of this, and the reason as text."""
        if self.loop is not None:
            return ("all" if self.loop.reached and not self.reached else ""), "never had an element"
        if self.false and not self.true:
            return self.never_true, "was never true"
        return (self.never_false if self.true and not self.false else ""), "was never false"


def conditions_of(function: Any) -> tuple[Callable[..., Any], list[Condition]]:
    """The function, rewritten to record its conditions. Without source, the function itself and no conditions."""
    return _recording(function, Condition("", 0))


def value_conditions_of(function: Any) -> tuple[Callable[..., Any], list[Condition]]:
    """The same for a guard or a property: the first condition is its value."""
    whole = Condition(getattr(function, "__name__", "it"), 0)
    inner, found = _recording(function, whole)

    def recorded(*arguments: Any) -> Any:
        value = inner(*arguments)
        whole.true, whole.false = whole.true or bool(value), whole.false or not value
        return value

    return recorded, [whole, *found]


def _recording(function: Any, whole: Condition) -> tuple[Callable[..., Any], list[Condition]]:
    node = definition(function) if isinstance(function, types.FunctionType) else None
    if node is None:
        return function, []
    whole.line = node.lineno
    found: list[Condition] = []
    node, visitor = copy.deepcopy(node), _Noting(found)
    if isinstance(node, ast.Lambda):
        whole.text = ast.unparse(node.body)
        if isinstance(node.body, ast.BoolOp):
            visitor.operands(node.body, whole)
        else:
            node.body = visitor.visit(node.body)
    else:
        node.body = visitor.block(node.body)
    if not found:
        return function, []

    def note(number: int, value: Any) -> Any:
        if value:
            found[number].true = True
        else:
            found[number].false = True
        return value

    def reach(number: int, value: Any) -> Any:
        found[number].true = True
        return value

    return _rebuilt(function, node, {_NOTE: note, _REACH: reach}), found


_NOTE, _REACH = "_plait_note_", "_plait_reach_"


class _Noting(ast.NodeTransformer):
    """Inserts the calls that record conditions."""

    def __init__(self, found: list[Condition]) -> None:
        self.found = found
        self._asked: set[ast.expr] = set()
        """Loops inside `any`: the user may want that there is no such element."""

    def _add(self, node: ast.AST, **more: Any) -> int:
        text = more.pop("text", None) or ast.unparse(node)
        self.found.append(Condition(text, getattr(node, "lineno", 0), **more))
        return len(self.found) - 1

    def _noted(self, node: ast.expr, **more: Any) -> ast.expr:
        number = self._add(node, **more)
        if isinstance(node, ast.BoolOp):
            self.operands(node, self.found[number])
            return _call(_NOTE, number, node)
        return _call(_NOTE, number, self.visit(node))

    def operands(self, node: ast.BoolOp, whole: Condition | None = None) -> None:
        """Record the operands of `and` or `or`. `whole` is set if it is a condition itself."""
        of_and, made = isinstance(node.op, ast.And), []
        for i, value in enumerate(node.values):
            skipped = "" if value is node.values[-1] else "part" if i else "all"
            number = len(self.found)
            made.append((number, self._noted(value, **{"never_true" if of_and else "never_false": skipped})))
        node.values = [noted for _, noted in made]
        if whole is not None:
            whole.operands, whole.of_and = [self.found[number] for number, _ in made], of_and

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.operands(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(func=ast.Name(id="any"), args=[ast.GeneratorExp() as loop]):
                self._asked.add(loop)
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        trivial = [isinstance(part, ast.Constant) for part in (node.body, node.orelse)]
        node.test = self._noted(node.test, never_true=_skipped(*trivial), never_false=_skipped(*trivial[::-1]))
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_While(self, node: ast.While) -> ast.stmt:
        node.test = self._noted(node.test)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    def visit_For(self, node: ast.For) -> ast.stmt:
        text = f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
        start = self._add(node, text=text, is_test=False)
        node.iter = _call(_REACH, start, self.visit(node.iter))
        inside = self._add(node, text=text, is_test=False, loop=self.found[start])
        entered = ast.Expr(_call(_REACH, inside, ast.Constant(None)))
        node.body, node.orelse = [entered, *self.block(node.body)], self.block(node.orelse)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        number = self._add(node.pattern, text=f"case {ast.unparse(node.pattern)}", false=True)
        if node.guard is not None:
            node.guard = self._noted(node.guard)
        node.body = [ast.Expr(_call(_REACH, number, ast.Constant(None))), *self.block(node.body)]
        return node

    def _comprehension(self, node: Any) -> ast.expr:
        first, text = node.generators[0], ast.unparse(node)
        start = self._add(node, is_test=False)
        filtered = any(g.ifs for g in node.generators)
        for generator in node.generators:
            generator.iter = self.visit(generator.iter)
            generator.ifs = [self._noted(test, never_true="all") for test in generator.ifs]
        first.iter = _call(_REACH, start, first.iter)
        element = "value" if isinstance(node, ast.DictComp) else "elt"
        made = self.visit(getattr(node, element))
        if not filtered and node not in self._asked:
            inside = self._add(node, text=text, is_test=False, loop=self.found[start])
            made = _call(_REACH, inside, made)
        setattr(node, element, made)
        if isinstance(node, ast.DictComp):
            node.key = self.visit(node.key)
        return node  # type: ignore[no-any-return]

    visit_GeneratorExp = visit_ListComp = visit_SetComp = visit_DictComp = _comprehension  # noqa: N815

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        node.body = self.block(node.body)
        return node

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """A sequence of statements. Statements after an `if` may depend on it."""
        made = []
        for number, statement in enumerate(statements):
            if isinstance(statement, ast.If):
                made.append(self._if(statement, statements[number + 1 :]))
            else:
                made.append(self.visit(statement))
        return made

    def _if(self, node: ast.If, following: Sequence[ast.stmt]) -> ast.stmt:
        rest = [*node.orelse, *following]
        trivial, rest_trivial = _trivial(node.body), _trivial(rest)
        leaving = bool(node.orelse) or any(map(leaves, node.body))
        never_false = _skipped(rest_trivial, trivial) if leaving else ""
        node.test = self._noted(node.test, never_true=_skipped(trivial, rest_trivial), never_false=never_false)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, self.block(value))
            elif isinstance(value, list):
                setattr(node, name, [self.visit(v) if isinstance(v, ast.AST) else v for v in value])
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node


def _trivial(body: Sequence[ast.stmt]) -> bool:
    """Whether statements require nothing: they return a constant, or continue."""
    match body:
        case [] | [ast.Return(value=ast.Constant())] | [ast.Raise()] | [ast.Continue() | ast.Break() | ast.Pass()]:
            return True
        case [ast.Assert(test=ast.Constant())]:
            return True
    return False


def _skipped(trivial: bool, other_trivial: bool) -> Skipped:
    """What is not evaluated if one of two branches is never taken."""
    return "" if trivial else "all" if other_trivial else "part"


def _call(name: str, number: int, value: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [ast.Constant(number), value], [])


def _rebuilt(function: types.FunctionType, node: Any, given: dict[str, Any]) -> Callable[..., Any]:
    """The function with this definition. The given names have these values in it."""
    code = function.__code__
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [d and ast.Constant(None) for d in node.args.kw_defaults]
    statement: ast.stmt = node
    if isinstance(node, ast.Lambda):
        statement = ast.Expr(node)
    else:
        node.decorator_list, node.returns = [], None
        if hasattr(node, "type_params"):
            node.type_params = []
    # A class around the function mangles private names. A function around the class has the free variables as its
    # parameters.
    scopes = function.__qualname__.split(".")
    owner = scopes[-2].lstrip("_") if len(scopes) > 1 and scopes[-2] != "<locals>" else ""
    inside = ast.ClassDef(name=f"___{owner}", bases=[], keywords=[], body=[statement], decorator_list=[])
    names = [*given, *(n for n in code.co_freevars if n != "__class__")]
    arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
    outer = ast.FunctionDef(name="_plait_outer_", args=arguments, body=[inside], decorator_list=[])
    for made in (inside, outer):
        if "type_params" in type(made)._fields:  # since Python 3.12
            made.type_params = []  # type: ignore[union-attr,unused-ignore]
    module = ast.fix_missing_locations(ast.Module([outer], []))
    inner = compile(module, code.co_filename, "exec", dont_inherit=True)
    for name in (outer.name, inside.name, code.co_name):
        inner = next(c for c in inner.co_consts if isinstance(c, types.CodeType) and c.co_name == name)
    cells = {name: types.CellType(value) for name, value in given.items()}
    cells.update(zip(code.co_freevars, function.__closure__ or (), strict=True))
    closure = tuple(cells[name] for name in inner.co_freevars)
    again = types.FunctionType(inner, function.__globals__, function.__name__, function.__defaults__, closure)
    again.__kwdefaults__ = function.__kwdefaults__
    return again
