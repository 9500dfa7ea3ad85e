"""Quantified properties: which properties are decided by looking at one process, or at two, at a time.

A property such as `all(p(a) for a in s[Role])` is true if it is true of each process alone, that is, if `s[Role]` had only
that process. `len({a.value for a in s[Role]}) <= 1` is true if it is true of each pair. So a *part* of a property is the
property itself, in which an expression such as `s[Role]` stands for one or two processes. (Other such expressions stand for
no process: then what they say is true.)

The rules below say which uses of `s[Role]` (*occurrences*) a test is about, and how many processes of each it must see at
once. They are about the truth of tests. With `every`, a test is the conjunction of its parts; otherwise the disjunction, by
the dual rules. A test without occurrences is its own part.

- `all(E for a in s[Role] if C for …)`: the parts of E, for each process.
- `all(E for a, b in combinations(s[Role], 2) …)`: for each pair; `permutations` and `product` likewise.
- `len(X) <= 1`, `len(X) == len(set(X))`, `sum(T for a in s[Role]) <= 1` where T is a bool: for each pair. Two elements
  that are too many come from at most two processes.
- `A and B`: the parts of A, and those of B. `A or B`: the parts of both together. `not A`: the dual.
- `X = [E for a in s[Role] …]`, then any test of X.
- `for a in s[Role]: assert A`, `if A: return False`: as `all`.

A process that is fixed (`(root,) = s[Root]`, `s[Node][0]`) takes part in every part.
"""

from __future__ import annotations

import ast
import itertools
import types
from typing import TYPE_CHECKING, Any

from plait.ir import nodes
from plait.ir.definition import MUTATORS, UNKNOWN, Definition
from plait.ir.frame import is_builtin
from plait.ir.parts.inlining import Inlining, NotQuantifiedError
from plait.ir.reason import NotLoweredError
from plait.model.process import Process

if TYPE_CHECKING:
    from plait.ir.program import Lowering

_CHANGES = (ast.AugAssign, ast.NamedExpr, ast.Delete, ast.Nonlocal, ast.FunctionDef, ast.While)
Group = dict[ast.AST, int]
"""Occurrences that parts see together, and how many processes of each."""
MOST_PARTS = 512
_MOST_PROCESSES = 2
"""Of a part, besides fixed ones."""


def parts_of(lowering: Lowering, function: types.FunctionType) -> tuple[bool, list[nodes.Part]]:
    """Whether all parts must be true, or one; and the parts. There are none if the property is not quantified."""
    definition = lowering.definition(function)
    arguments = function.__code__.co_varnames[: function.__code__.co_argcount]
    if definition is None or len(arguments) != 1:
        return True, []
    try:
        found = Quantifiers(lowering, function, definition)
        return found.every, found.parts()
    except (NotQuantifiedError, NotLoweredError):
        return True, []


class Quantifiers(Inlining):
    """The analysis of one property."""

    def __init__(self, lowering: Lowering, function: types.FunctionType, definition: Definition) -> None:
        super().__init__(lowering, function, definition)
        self.roles: dict[ast.AST, list[int]] = {}
        """The positions of the processes of an occurrence."""
        self.fixed: dict[ast.AST, list[int]] = {}
        """Expressions for fixed processes."""
        self.one: set[ast.AST] = set()
        """Those of them that are one process, not a tuple."""
        self.lets: dict[str, list[ast.AST]] = {}
        """Variables for collections: the occurrences that their elements come from."""
        self.definition: Definition = self.inlined(definition)
        self._check(self.definition)
        if isinstance(self.definition, ast.Lambda):
            self.every, self.groups = self._either(self.definition.body)
        else:
            self.every, self.groups = self._function(self.definition.body)

    def _check(self, definition: ast.AST) -> None:
        """Refuse a property that changes something, or may: its parts would change it apart from each other."""
        for node in ast.walk(definition):
            if isinstance(node, _CHANGES) and node is not definition:
                raise NotQuantifiedError
            if isinstance(node, ast.Attribute) and (node.attr in MUTATORS or isinstance(node.ctx, ast.Store)):
                raise NotQuantifiedError
            if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                raise NotQuantifiedError

    # -- occurrences -----------------------------------------------------------------------------------------------

    def _role(self, node: ast.AST) -> list[int] | None:
        """The positions of the processes of `s[Role]`, `s.get(Role)`, `s.processes` or `s`."""
        role: Any = UNKNOWN
        if self.is_view(node) or (
            isinstance(node, ast.Attribute) and node.attr == "processes" and self.is_view(node.value)
        ):
            role = Process
        elif isinstance(node, ast.Subscript) and self.is_view(node.value):
            role = self.frame.static(node.slice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and self.is_view(node.func.value):
            role = self.frame.static(node.args[0]) if node.func.attr == "get" and len(node.args) == 1 else UNKNOWN
        if not (isinstance(role, type) and issubclass(role, Process)):
            return None
        system = self.lowering.system
        if system.members(role, spares=True) != system.members(role):
            raise NotQuantifiedError  # a spawned process would have no part
        return system.members(role)

    def _collection(self, node: ast.AST) -> list[ast.AST] | None:
        """The occurrences that the elements of a collection come from; each element comes from one process of each."""
        positions = self._role(node)
        if positions is not None:
            self.roles[node] = positions
            return [node]
        if isinstance(node, ast.Name) and node.id in self.lets:
            return self.lets[node.id]
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            group = self._clauses(node.generators)
            self._plain(node.elt)
            return [o for o, count in group.items() for _ in range(count)] if group else None
        wrapper = isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords
        if wrapper and isinstance(node.func, ast.Name):  # type: ignore[attr-defined]
            callee = self.frame.static(node.func)  # type: ignore[attr-defined]
            if any(callee is t for t in (list, tuple, set, frozenset)):
                return self._collection(node.args[0])  # type: ignore[attr-defined]
        return None

    def _clauses(self, generators: list[ast.comprehension]) -> Group:
        """The occurrences that the clauses of a comprehension go through."""
        group: Group = {}
        for generator in generators:
            for occurrence, count in self._iterated(generator.iter).items():
                group[occurrence] = group.get(occurrence, 0) + count
            for condition in generator.ifs:
                self._plain(condition)
        return group

    def _iterated(self, node: ast.expr) -> Group:
        found = self._collection(node)
        if found is not None:
            group: Group = {}
            for occurrence in found:
                group[occurrence] = group.get(occurrence, 0) + 1
            return group
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute) and not node.keywords:
            callee = self.frame.static(node.func)
            if callee in (itertools.combinations, itertools.permutations) and len(node.args) == 2:
                inner = self._collection(node.args[0])
                if inner is not None and len(inner) == 1 and _is_number(node.args[1], 2):
                    return {inner[0]: 2}
                raise NotQuantifiedError
            if callee is itertools.product:
                group = {}
                for argument in node.args:
                    for occurrence in self._collection(argument) or [_PLAIN]:
                        if occurrence is _PLAIN:
                            self._plain(argument)
                        else:
                            group[occurrence] = group.get(occurrence, 0) + 1
                return group
        self._plain(node)
        return {}

    def _plain(self, node: ast.AST) -> None:
        """Refuse an expression that uses the view, except for fixed processes and for sizes of roles."""
        if self._fixed_process(node):
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
            argument = node.args[0]
            counts = is_builtin(self.frame.static(node.func), "len") and isinstance(argument, ast.Subscript)
            if counts and self._role(argument):
                return
        if self.is_view(node) or (isinstance(node, ast.Name) and node.id in self.lets):
            raise NotQuantifiedError
        for child in ast.iter_child_nodes(node):
            self._plain(child)

    def _fixed_process(self, node: ast.AST) -> bool:
        """Whether an expression is `s[Role][0]`."""
        if not isinstance(node, ast.Subscript):
            return False
        positions = self._role(node.value)
        if positions is None:
            return False
        index: Any = node.slice.value if isinstance(node.slice, ast.Constant) else UNKNOWN
        if isinstance(node.slice, ast.Name):
            index = self.frame.static(node.slice)
        if type(index) is not int or not 0 <= index < len(positions):
            raise NotQuantifiedError
        self.fixed[node] = [positions[index]]
        self.one.add(node)
        return True

    # -- tests -----------------------------------------------------------------------------------------------------

    def _either(self, node: ast.expr) -> tuple[bool, list[Group]]:
        """The groups of the value of a property, as a conjunction or else as a disjunction."""
        roles, fixed, one = dict(self.roles), dict(self.fixed), set(self.one)
        try:
            return True, self.test(node, True, strict=True)
        except NotQuantifiedError:
            self.roles, self.fixed, self.one = roles, fixed, one
            return False, self.test(node, False, strict=True)

    def test(self, node: ast.expr, every: bool, *, strict: bool = False) -> list[Group]:
        """The groups of a test. `strict`: its value must be a bool."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.test(node.operand, not every)
        if isinstance(node, ast.BoolOp):
            found = [self.test(operand, every, strict=strict) for operand in node.values]
            if isinstance(node.op, ast.And) == every:
                return [group for groups in found for group in groups]
            return [_together(choice) for choice in itertools.product(*found)]
        if isinstance(node, ast.Call) and not node.keywords and len(node.args) == 1:
            callee = self.frame.static(node.func) if isinstance(node.func, ast.Name) else UNKNOWN
            if is_builtin(callee, "bool"):
                return self.test(node.args[0], every)
            if is_builtin(callee, "all") or is_builtin(callee, "any"):
                return self._quantifier(node.args[0], every, is_builtin(callee, "all"))
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            pairs = self._at_most_one(node, every)
            if pairs is not None:
                return [pairs]
        if not every and not strict:
            found_in = self._collection(node)  # it is true if it has an element
            if found_in is not None:
                return [_together([{o: 1} for o in found_in])]
        self._plain(node)
        if strict and not is_bool(node):
            raise NotQuantifiedError
        return [{}]

    def _quantifier(self, node: ast.expr, every: bool, universal: bool) -> list[Group]:
        if not isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp):
            if universal and every:  # all(collection)
                found = self._collection(node)
                if found is not None:
                    return [_together([{o: 1} for o in found])]
            self._plain(node)
            return [{}]
        group = self._clauses(node.generators)
        if not group:
            self._plain(node)
            return [{}]
        if universal != every:
            raise NotQuantifiedError
        return [_together([group, inner]) for inner in self.test(node.elt, every)]

    def _at_most_one(self, node: ast.Compare, every: bool) -> Group | None:
        """`len(X) <= 1` and the like: two elements are one too many."""
        left, right, op = node.left, node.comparators[0], node.ops[0]
        small = (isinstance(op, ast.LtE) and _is_number(right, 1)) or (isinstance(op, ast.Lt) and _is_number(right, 2))
        large = (isinstance(op, ast.Gt) and _is_number(right, 1)) or (isinstance(op, ast.GtE) and _is_number(right, 2))
        if (small and every) or (large and not every):
            counted = self._argument(left, "len")
            if counted is not None:
                return self._pairs(counted)
            counted = self._argument(left, "sum")
            if isinstance(counted, ast.GeneratorExp | ast.ListComp) and is_bool(counted.elt):
                return self._pairs(counted)
        one, other = self._argument(left, "len"), self._argument(right, "len")
        if one is None or other is None:
            return None
        # `len(X) == len(set(X))`: the set is never larger.
        if isinstance(op, (ast.Eq, ast.LtE) if every else (ast.NotEq, ast.Gt)) and self._is_set_of(other, one):
            return self._pairs(one)
        if isinstance(op, (ast.Eq, ast.GtE) if every else (ast.NotEq, ast.Lt)) and self._is_set_of(one, other):
            return self._pairs(other)
        return None

    def _is_set_of(self, node: ast.expr, name: ast.expr) -> bool:
        """Whether an expression is `set(X)` or `{f(x) for x in X}`, for a variable X."""
        if not isinstance(name, ast.Name):
            return False
        inner = self._argument(node, "set")
        if isinstance(node, ast.SetComp) and len(node.generators) == 1 and not node.generators[0].ifs:
            self._plain(node.elt)
            inner = node.generators[0].iter
        return isinstance(inner, ast.Name) and inner.id == name.id

    def _pairs(self, node: ast.expr) -> Group | None:
        found = self._collection(node)
        return {found[0]: 2} if found is not None and len(found) == 1 else None

    def _argument(self, node: ast.expr, name: str) -> ast.expr | None:
        """The argument of a call of a built-in function."""
        if (
            not isinstance(node, ast.Call)
            or not isinstance(node.func, ast.Name)
            or len(node.args) != 1
            or node.keywords
        ):
            return None
        return node.args[0] if is_builtin(self.frame.static(node.func), name) else None

    # -- statements ------------------------------------------------------------------------------------------------

    def _function(self, body: list[ast.stmt]) -> tuple[bool, list[Group]]:
        """The groups of a property that is a function."""
        last = body[-1]
        if not isinstance(last, ast.Return) or last.value is None:
            raise NotQuantifiedError
        value = last.value.value if isinstance(last.value, ast.Constant) else None
        every = value is not False
        groups = [group for statement in body[:-1] for group in self._statement(statement, every)]
        if isinstance(value, bool) and groups:
            return every, groups
        if groups:
            return True, groups + self.test(last.value, True, strict=True)
        return self._either(last.value)

    def _statement(self, node: ast.stmt, every: bool) -> list[Group]:
        """The groups of what a statement requires; without `every`, of what is enough."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return []
        if isinstance(node, ast.Assert) and every:
            return self.test(node.test, True)
        if isinstance(node, ast.Assign | ast.AnnAssign):
            self._assignment(node)
            return []
        if isinstance(node, ast.If) and not node.orelse and len(node.body) == 1:
            only = node.body[0]
            value = only.value if isinstance(only, ast.Return) else None
            if isinstance(value, ast.Constant) and value.value is (not every):
                return self.test(node.test, False)
            if isinstance(only, ast.Assert | ast.If | ast.For):
                self._plain(node.test)
                return self._statement(only, every)
        if isinstance(node, ast.For) and not node.orelse:
            self._check_loop(node)
            around = self._iterated(node.iter)
            groups = [group for inner in node.body for group in self._statement(inner, every)]
            return [_together([around, group]) for group in groups]
        raise NotQuantifiedError

    def _check_loop(self, loop: ast.For) -> None:
        """Refuse a loop whose variables have values from an earlier round, or are used after it."""
        inside = [n for n in ast.walk(loop) if isinstance(n, ast.Name)]
        stored = {n.id: (n.lineno, n.col_offset) for n in inside if not isinstance(n.ctx, ast.Load)}
        targets = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
        for node in ast.walk(self.definition):
            if not isinstance(node, ast.Name) or node.id not in stored:
                continue
            if node not in inside:
                raise NotQuantifiedError
            if node.id not in targets and (node.lineno, node.col_offset) < stored[node.id]:
                raise NotQuantifiedError

    def _assignment(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = node.value
        if len(targets) != 1 or value is None:
            raise NotQuantifiedError
        target = targets[0]
        if isinstance(target, ast.Tuple | ast.List):
            positions = self._role(value)
            names = [e for e in target.elts if isinstance(e, ast.Name)]
            if positions is not None and len(positions) == len(names) == len(target.elts):
                self.fixed[value] = positions
                return
        elif isinstance(target, ast.Name):
            once = sum(isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Store)
                       for n in ast.walk(self.definition)) == 1  # fmt: skip
            if once and not isinstance(value, ast.GeneratorExp):
                found = self._collection(value)
                if found is not None:
                    self.lets[target.id] = found
                    return
        self._plain(value)

    # -- parts -----------------------------------------------------------------------------------------------------

    def parts(self) -> list[nodes.Part]:
        """The parts of the property."""
        fixed = [(node, position) for node, positions in self.fixed.items() for position in positions]
        made: dict[tuple[tuple[ast.AST, int], ...], int] = {}
        found: dict[tuple[int, tuple[int, ...]], None] = {}
        groups = self._reduced()
        for group in groups:
            if sum(group.values()) > _MOST_PROCESSES:
                raise NotQuantifiedError
            choices = [self._choices(occurrence, count) for occurrence, count in group.items()]
            for choice in itertools.product(*choices):
                shape = tuple((o, len(c)) for o, c in zip(group, choice, strict=True))
                if shape not in made:
                    number = self._lowered(shape, fixed)
                    if number is None:
                        raise NotQuantifiedError
                    made[shape] = number
                positions = [*(p for _, p in fixed), *(p for chosen in choice for p in chosen)]
                found[made[shape], tuple(positions)] = None
        if len(found) > MOST_PARTS or not all(positions for _, positions in found):
            raise NotQuantifiedError
        return [nodes.Part(function, list(positions)) for function, positions in found]

    def _reduced(self) -> list[Group]:
        """The groups without those that a larger one contains: its parts say the same, and more."""
        unique = [g for i, g in enumerate(self.groups) if g not in self.groups[:i]]
        return [g for g in unique if not any(g is not other and self._contains(other, g) for other in unique)]

    def _contains(self, large: Group, small: Group) -> bool:
        return all(large.get(o, 0) >= count for o, count in small.items()) and all(self.roles[o] for o in large)

    def _choices(self, occurrence: ast.AST, count: int) -> list[tuple[int, ...]]:
        positions = self.roles[occurrence]
        return list(itertools.combinations(positions, min(count, len(positions)))) if positions else []

    def _lowered(self, shape: tuple[tuple[ast.AST, int], ...], fixed: list[tuple[ast.AST, int]]) -> int | None:
        """The function of parts in which each occurrence stands for this number of processes."""
        chosen: dict[ast.AST, Any] = {o: nodes.TupleDisplay([]) for o in self.roles}
        slot = 0
        for node, positions in self.fixed.items():
            views = [nodes.Local(slot + i) for i in range(len(positions))]
            slot += len(positions)
            chosen[node] = views[0] if node in self.one else nodes.TupleDisplay(list(views))
        for occurrence, count in shape:
            chosen[occurrence] = nodes.TupleDisplay([nodes.Local(slot + i) for i in range(count)])
            slot += count
        return self.lowering.part(self.function, self.definition, self.view, chosen, slot)


_PLAIN = ast.Pass()


def _together(groups: Any) -> Group:
    """The group that has the occurrences of all."""
    found: Group = {}
    for group in groups:
        for occurrence, count in group.items():
            found[occurrence] = found.get(occurrence, 0) + count
    return found


def _is_number(node: ast.expr, value: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == value


def is_bool(node: ast.expr) -> bool:
    """Whether the value of an expression is a bool, whatever the state is."""
    if isinstance(node, ast.Compare):
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if isinstance(node, ast.BoolOp):
        return all(map(is_bool, node.values))
    if isinstance(node, ast.IfExp):
        return is_bool(node.body) and is_bool(node.orelse)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool)
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("all", "any", "bool", "isinstance")
    )
