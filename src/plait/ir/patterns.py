"""Patterns of `match`, as tests: the names of a pattern are bound when all of it fits."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from plait.ir import builtins, nodes
from plait.ir.calls import Calls
from plait.ir.nodes import Expression

_WHOLE = (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Types whose pattern has one position, which is the value itself: `case int(x)`."""


Tests = tuple[list[Expression], list[tuple[int, Expression]]]
"""The tests of a pattern, and the slots that it binds, with their values."""


class Patterns(Calls):
    """Lowers the match statements of one function."""

    def match(self, node: ast.Match) -> list[nodes.Statement]:
        """A chain of tests."""
        subject = self.slot()
        first: nodes.Statement = nodes.Assign([nodes.LocalTarget(subject)], self.expr(node.subject))
        chain: list[nodes.Statement] = []
        cases: list[tuple[Expression | None, list[nodes.Statement]]] = []
        for case in node.cases:
            parts, names = self._pattern(case.pattern, nodes.Local(subject))
            parts += self._bind(names)
            if case.guard is not None:
                parts.append(self.expr(case.guard))
            cases.append((_all(parts), self.block(case.body)))
        for test, body in reversed(cases):
            chain = body if test is None else [nodes.If(test, body, chain)]
        return [first, *chain]

    def _certain(self, node: Expression) -> Expression:
        """A part of a pattern that never raises, because the tests before it hold."""
        self.lowering.certain[id(node)] = node
        return node

    def _bind(self, names: list[tuple[int, Expression]]) -> list[Expression]:
        """A test that is true, and binds names."""
        return [nodes.TupleDisplay([nodes.Assigned(slot, value) for slot, value in names])] if names else []

    def _pattern(self, pattern: ast.pattern, value: Expression) -> Tests:
        """The tests of a pattern, and the names that it binds."""
        if isinstance(pattern, ast.MatchValue):
            return [nodes.Compare(value, ["=="], [self.expr(pattern.value)])], []
        if isinstance(pattern, ast.MatchSingleton):
            return [nodes.Compare(value, ["is"], [self.constant(pattern.value, pattern)])], []
        if isinstance(pattern, ast.MatchAs):
            tests, names = ([], []) if pattern.pattern is None else self._pattern(pattern.pattern, value)
            return tests, [*names, *self._captured(pattern.name, value, pattern)]
        if isinstance(pattern, ast.MatchOr):
            return [nodes.Or([self._alternative(p, value) for p in pattern.patterns])], []
        if isinstance(pattern, ast.MatchSequence):
            return self._sequence(pattern, value)
        if isinstance(pattern, ast.MatchClass):
            return self._class(pattern, value)
        if isinstance(pattern, ast.MatchMapping):
            return self._mapping(pattern, value)
        raise self.refused(pattern, f"{type(pattern).__name__} pattern")

    def _alternative(self, pattern: ast.pattern, value: Expression) -> Expression:
        tests, names = self._pattern(pattern, value)
        return _all([*tests, *self._bind(names)]) or self.constant(True, pattern)

    def _captured(self, name: str | None, value: Expression, node: ast.AST) -> list[tuple[int, Expression]]:
        if name is None:
            return []
        scope = self.holder(name)
        if scope is None or name in scope.kinds:
            raise self.refused(node, f"{name} is assigned")
        return [(scope.slots[name], value)]

    def _parts(self, pairs: list[tuple[ast.pattern, Expression]]) -> Tests:
        tests: list[Expression] = []
        names: list[tuple[int, Expression]] = []
        for pattern, value in pairs:
            more, bound = self._pattern(pattern, value)
            tests += more
            names += bound
        return tests, names

    def _sequence(self, node: ast.MatchSequence, value: Expression) -> Tests:
        patterns = node.patterns
        star = next((i for i, p in enumerate(patterns) if isinstance(p, ast.MatchStar)), None)
        count = len(patterns) - (star is not None)
        length = self._certain(nodes.CallBuiltin("len", [value], {}))
        enough: Any = "==" if star is None else ">="
        tests: list[Expression] = [
            nodes.IsInstance(value, ["list", "tuple", "range", "collections.deque"], []),
            nodes.Compare(length, [enough], [self.constant(count, node)]),
        ]
        pairs: list[tuple[ast.pattern, Expression]] = []
        bound: list[tuple[int, Expression]] = []
        for i, pattern in enumerate(patterns):
            if isinstance(pattern, ast.MatchStar):
                last = i - count  # 0 if nothing follows
                upper = self.constant(last, node) if last else None
                cut = nodes.Slice(self.constant(i, node), upper, None)
                rest = nodes.CallBuiltin("list", [self._certain(nodes.Subscript(value, cut))], {})
                bound += self._captured(pattern.name, self._certain(rest), pattern)
            else:
                at = i if star is None or i < star else i - len(patterns)
                pairs.append((pattern, self._certain(nodes.Subscript(value, self.constant(at, node)))))
        more, names = self._parts(pairs)
        return tests + more, names + bound

    def _class(self, node: ast.MatchClass, value: Expression) -> Tests:
        (cls,) = self.classes_of(node.cls) if not isinstance(node.cls, ast.Tuple) else (object,)
        tests = [self.instance_test(value, [cls], node)]
        pairs: list[tuple[ast.pattern, Expression]] = []
        if cls in builtins.TYPES:
            if node.kwd_attrs or len(node.patterns) > 1 or (node.patterns and cls not in _WHOLE):
                raise self.refused(node, f"pattern of {cls.__name__} with attributes")
            pairs = [(p, value) for p in node.patterns]
        else:
            order = getattr(cls, "__match_args__", ())
            if len(node.patterns) > len(order):
                raise self.refused(node, f"pattern of {cls.__name__} with these positions")
            names = [*order[: len(node.patterns)], *node.kwd_attrs]
            for name, pattern in zip(names, [*node.patterns, *node.kwd_patterns], strict=True):
                if name not in self.lowering.classes.fields(cls) and not (name == "sender" and _delivered(cls)):
                    raise self.refused(node, f"pattern with {cls.__name__}.{name}")
                if name in getattr(cls, "__plait_clocks__", ()):
                    raise self.refused(node, f"the clock {name} as a value")
                pairs.append((pattern, nodes.Attribute(value, name)))
        more, bound = self._parts(pairs)
        return tests + more, bound

    def _mapping(self, node: ast.MatchMapping, value: Expression) -> Tests:
        if node.rest is not None:
            raise self.refused(node, "pattern with **")
        tests: list[Expression] = [nodes.IsInstance(value, ["dict"], [])]
        pairs: list[tuple[ast.pattern, Expression]] = []
        for key, pattern in zip(node.keys, node.patterns, strict=True):
            found = self.expr(key)
            tests.append(nodes.Compare(found, ["in"], [value]))
            pairs.append((pattern, nodes.Subscript(value, found)))
        more, bound = self._parts(pairs)
        return tests + more, bound


def _all(tests: list[Expression]) -> Expression | None:
    if not tests:
        return None
    return tests[0] if len(tests) == 1 else nodes.And(tests)


def _delivered(cls: type) -> bool:
    return dataclasses.is_dataclass(cls) and isinstance(getattr(cls, "sender", None), property)
