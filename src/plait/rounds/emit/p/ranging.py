"""Expressions that range over a collection, translated to P: each is a function with a loop."""

from __future__ import annotations

from collections.abc import Callable

from plait.kernel.extras import needs
from plait.rounds.distal.parser import Node
from plait.rounds.distal.value_types import BOOL, INT, TEXT, ValueType, list_of, set_of
from plait.rounds.emit.p.translation import RUN, Expressions

with needs("rounds"):
    from lark import Token


class Ranging(Expressions):
    """All expressions."""

    def _over(
        self, node: Node, name: Token, domain: Node, condition: Node | None, result: ValueType | None,
        inner: Callable[[], list[str]],
        before: list[str], after: list[str], variables: list[str],
    ) -> str:  # fmt: skip
        """A call of a function with a loop. `inner` makes the statements in the loop, where the name is bound."""
        over, kind = self.code(domain)

        def body() -> list[str]:
            known = dict(self.local)
            self.local[str(name)] = kind and kind.element
            test = self.of(condition, BOOL) if condition is not None else None
            inside = inner()
            self.local = known
            if test is not None:
                inside = [f"if ({test}) {{", *(f"  {line}" for line in inside), "}"]
            return [
                f"var {name}: {self.type(kind and kind.element)};",
                *variables,
                *before,
                f"foreach ({name} in {over}) {{",
                *(f"  {line}" for line in inside),
                "}",
                *after,
            ]

        outer = self.local.pop(str(name), None)
        made = self.helper(node, result, body)
        if outer is not None:
            self.local[str(name)] = outer
        return made

    def _element(self, name: Token, domain: Node, part: Node) -> ValueType | None:
        """The type of an expression in which a name is bound."""
        known = dict(self.local)
        self.local[str(name)] = (kind := self.code(domain)[1]) and kind.element
        found = self.code(part)[1]
        self.local = known
        return found

    def _list_of(
        self, node: Node, part: Node, name: Token, domain: Node, condition: Node | None = None
    ) -> tuple[str, ValueType | None]:
        kind = list_of(self._element(name, domain, part))
        add = lambda: [f"made += (sizeof(made), {self.of(part, kind.element)});"]  # noqa: E731
        made = self._over(
            node, name, domain, condition, kind, add, [], ["return made;"], [f"var made: {self.type(kind)};"]
        )
        return made, kind

    def _set_of(
        self, node: Node, part: Node, name: Token, domain: Node, condition: Node | None = None
    ) -> tuple[str, ValueType | None]:
        kind = set_of(self._element(name, domain, part))
        add = lambda: [f"made += ({self.of(part, kind.element)});"]  # noqa: E731
        made = self._over(
            node, name, domain, condition, kind, add, [], ["return made;"], [f"var made: {self.type(kind)};"]
        )
        return made, kind

    def _count(
        self, node: Node, _: Token, name: Token, domain: Node, condition: Node | None = None
    ) -> tuple[str, ValueType | None]:
        add = lambda: ["made = made + 1;"]  # noqa: E731
        return self._over(node, name, domain, condition, INT, add, [], ["return made;"], ["var made: int;"]), INT

    def _aggregate(
        self, node: Node, function: Token, part: Node, name: Token, domain: Node, condition: Node | None = None
    ) -> tuple[str, ValueType | None]:
        kind = self._element(name, domain, part)
        variables = [f"var made: {self.type(kind)};", f"var one: {self.type(kind)};", "var some: bool;"]
        if function == "sum":
            add = lambda: [f"made = made + {self.of(part, INT)};"]  # noqa: E731
            return self._over(node, name, domain, condition, INT, add, [], ["return made;"], variables[:1]), INT
        sign = ">" if function == "max" else "<"

        def best() -> list[str]:
            return [
                f"one = {self.of(part, kind)};",
                f"if (!some || one {sign} made) {{",
                "  made = one;",
                "}",
                "some = true;",
            ]

        after = [f'assert some, "{function} of nothing";', "return made;"]
        return self._over(node, name, domain, condition, kind, best, [], after, variables), kind

    def _select(
        self, node: Node, order: Token, name: Token, domain: Node, *rest: Node | None
    ) -> tuple[str, ValueType | None]:
        condition, keys, result = rest
        assert keys is not None
        assert result is not None
        kind = self._element(name, domain, result)
        kinds = [self._element(name, domain, key) for key in keys.nodes()]
        variables = [f"var made: {self.type(kind)};", "var some: bool;", "var better: bool;"]
        for i, one in enumerate(kinds):
            variables += [f"var key{i}: {self.type(one)};", f"var best{i}: {self.type(one)};"]

        def best() -> list[str]:
            lines = [
                f"key{i} = {self.of(key, one)};" for i, (key, one) in enumerate(zip(keys.nodes(), kinds, strict=True))
            ]
            test = "false"
            for i, one in reversed(list(enumerate(kinds))):
                less = (
                    self._less(f"best{i}", f"key{i}", one)
                    if order == "greatest"
                    else self._less(f"key{i}", f"best{i}", one)
                )
                test = f"({less} || (key{i} == best{i} && {test}))"
            lines += [f"better = !some || {test};", "if (better) {", f"  made = {self.of(result, kind)};"]
            lines += [f"  best{i} = key{i};" for i in range(len(kinds))]
            return [*lines, "}", "some = true;"]

        after = [f'assert some, "{order} of nothing";', "return made;"]
        return self._over(node, name, domain, condition, kind, best, [], after, variables), kind

    def _less(self, one: str, other: str, kind: ValueType | None) -> str:
        if kind == BOOL:
            return f"(!{one} && {other})"
        if kind is not None and kind.name == "list":
            name, p = f"Less_{self._label(kind)}", self.type(kind)
            inner = self._less("one[i]", "other[i]", kind.element)
            self.functions.setdefault(
                name,
                [
                    f"fun {name}(one: {p}, other: {p}): bool {{",
                    "  var i: int;",
                    "  while (i < sizeof(one) && i < sizeof(other)) {",
                    "    if (one[i] != other[i]) {",
                    f"      return {inner};",
                    "    }",
                    "    i = i + 1;",
                    "  }",
                    "  return sizeof(one) < sizeof(other);",
                    "}",
                ],
            )
            return f"{name}({one}, {other})"
        if kind == TEXT:
            self._texts()
            return f"(Rank({one}) < Rank({other}))"
        return f"({one} < {other})"

    def _quantified(
        self, node: Node, quantifier: Token, names: Node, domain: Node | None, formula: Node
    ) -> tuple[str, ValueType | None]:
        (name,) = names.children
        assert isinstance(name, Token)
        if domain is None:
            known = dict(self.local)
            self.local[str(name)] = RUN
            made = self.of(formula, BOOL)
            self.local = known
            return made, BOOL
        every = quantifier in ("forall", "∀")
        stop, end = ("false", "true") if every else ("true", "false")

        def ask() -> list[str]:
            test = self.of(formula, BOOL)
            return [f"if ({f'!({test})' if every else test}) {{", f"  return {stop};", "}"]

        return self._over(node, name, domain, None, BOOL, ask, [], [f"return {end};"], []), BOOL
