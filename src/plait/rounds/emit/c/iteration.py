"""Loops in C: comprehensions, generators, and what is iterated over."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from plait.ir import nodes
from plait.rounds.emit.c.expressions import Expressions, Value
from plait.rounds.emit.c.types import (
    EMPTY,
    INT,
    NOTHING,
    PROCESS,
    Type,
    UnknownTypeError,
    as_sequence,
    joined,
    said,
    sequence,
)


class Iteration(Expressions):
    """Translates loops."""

    def iterate(self, node: Any, use: Callable[[Value], None]) -> None:
        counter = self.temporary(INT, "i")
        del self.declared[counter]
        if isinstance(node, nodes.ViewRole):
            self.over([str(p) for p in node.positions], counter, PROCESS, use)
            return
        if isinstance(node, nodes.Generator):
            self.clauses(node.clauses, lambda: use(self.value(node.element)))
            return
        if isinstance(node, nodes.CallBuiltin):
            if node.name == "range":
                bounds = [self.number_of(v) for v in self.values(node.arguments)]
                if len(bounds) > 2:
                    raise UnknownTypeError("range with a step")
                low, high = ("0", bounds[0]) if len(bounds) == 1 else bounds
                with self.block(f"for (int {counter} = {low}; {counter} < {high}; {counter}++)"):
                    use(Value(counter, INT))
                return
            if node.name in ("enumerate", "itertools.pairwise", "reversed"):
                whole = self.collection(node.arguments[0])
                start = self.number_of(self.value(node.arguments[1])) if len(node.arguments) > 1 else "0"
                head = f"for (int {counter} = 0; {counter} < {whole.text}.length; {counter}++)"
                if node.name == "itertools.pairwise":
                    head = f"for (int {counter} = 0; {counter} + 1 < {whole.text}.length; {counter}++)"
                item = Value(f"{whole.text}.at[{counter}]", whole.type.parts[0])
                with self.block(head):
                    if node.name == "enumerate":
                        use(self._pair(Value(f"{start} + {counter}" if start != "0" else counter, INT), item))
                    elif node.name == "reversed":
                        use(Value(f"{whole.text}.at[{whole.text}.length - 1 - {counter}]", item.type))
                    else:
                        use(self._pair(item, Value(f"{whole.text}.at[{counter} + 1]", item.type)))
                return
            if node.name == "map" and len(node.arguments) == 2:
                self.iterate(node.arguments[1], lambda item: use(self.called(node.arguments[0], [item])))
                return
        whole = self.collection(node)
        if whole.type == EMPTY:
            return
        with self.block(f"for (int {counter} = 0; {counter} < {whole.text}.length; {counter}++)"):
            use(Value(f"{whole.text}.at[{counter}]", whole.type.parts[0]))

    def walk(self, whole: Value, use: Callable[[Value], None]) -> None:
        """A loop over a sequence in a variable."""
        if whole.type != EMPTY:
            counter = self.temporary(INT, "i")
            del self.declared[counter]
            with self.block(f"for (int {counter} = 0; {counter} < {whole.text}.length; {counter}++)"):
                use(Value(f"{whole.text}.at[{counter}]", whole.type.parts[0]))

    def over(self, texts: list[str], counter: str, type_: Type, use: Callable[[Value], None]) -> None:
        numbers = [int(t) for t in texts]
        if numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            with self.block(f"for (int {counter} = {numbers[0]}; {counter} < {numbers[-1] + 1}; {counter}++)"):
                use(Value(counter, type_))
            return
        for text in texts:
            use(Value(text, type_))

    def _pair(self, one: Value, other: Value) -> Value:
        type_ = Type("tuple", (one.type, other.type))
        return Value(f"({self.unit.structs.name(type_)}){{{one.text}, {other.text}}}", type_)

    def collection(self, node: Any) -> Value:
        """An iterable as a sequence in a variable."""
        if isinstance(node, nodes.Generator | nodes.ViewRole) or (
            isinstance(node, nodes.CallBuiltin) and node.name in ("range", "enumerate", "itertools.pairwise", "map")
        ):
            return self.collected(lambda use: self.iterate(node, use))
        value = self.value(node)
        found = as_sequence(value.type)
        if found.kind != "sequence":
            raise UnknownTypeError(f"{said(value.type)} as a collection")
        return self.saved(Value(self.converted(value, found), found)) if found != EMPTY else Value("", EMPTY)

    def collected(self, fill: Callable[[Callable[[Value], None]], None], *, distinct: bool = False) -> Value:
        """A sequence of the values that a loop gives; with `distinct`, each once."""
        made = self.temporary(EMPTY, "items")
        self.out(f"{made}.length = 0;")
        at = len(self.lines) - 1
        types: list[Type] = []

        def use(value: Value) -> None:
            known = types[0] if types else NOTHING
            types[:] = [joined(known, value.type)]
            if known not in (NOTHING, types[0]):
                raise UnknownTypeError("a collection of values of different types")
            type_ = sequence(types[0])
            item = self.saved(value) if distinct else value
            append = f"{self.unit.structs.append(type_)}(&{made}, {item.text});"
            if distinct:
                append = f"if (!{self.unit.structs.contains(type_)}({made}, {item.text})) {append}"
            self.out(append)

        fill(use)
        self._saved.add(made)
        if not types:
            del self.lines[at]
            del self.declared[made]
            return Value("", EMPTY)
        self.declared[made] = sequence(types[0])
        return Value(made, dataclasses.replace(sequence(types[0]), unordered=distinct))

    def clauses(self, several: Sequence[nodes.Clause], inner: Callable[[], None]) -> None:
        """The loops of a comprehension."""
        if not several:
            inner()
            return
        clause = several[0]

        def use(item: Value) -> None:
            self.assign(clause.target, item)
            if clause.conditions:
                test = self.shortcut(clause.conditions, "&&").text
                with self.block(f"if ({test})"):
                    self.clauses(several[1:], inner)
            else:
                self.clauses(several[1:], inner)

        self.iterate(clause.iterable, use)

    def assign(self, target: Any, value: Value) -> None:
        """Assign a value to a target: implemented by the statements."""
        raise NotImplementedError

    def called(self, function: Any, arguments: list[Value]) -> Value:
        """The call of a function that is a value: `key=len`, `key=lambda ack: …`."""
        if (
            isinstance(function, nodes.Lambda)
            and len(function.body) == 1
            and isinstance(function.body[0], nodes.Return)
        ):
            for slot, argument in zip(function.parameters, arguments, strict=True):
                self.assign_slot(slot, argument)
            return self.value(function.body[0].value)
        if isinstance(function, nodes.BuiltinValue) and function.name == "len":
            return self.length(arguments[0])
        if isinstance(function, nodes.FunctionValue):
            bound = [] if function.bound is None else [self.value(function.bound)]
            return self.unit.call(self, function.function, [*bound, *arguments])
        raise UnknownTypeError(f"{getattr(function, 'name', 'a function')} as a value")

    def length(self, value: Value) -> Value:
        if value.type == EMPTY:
            return Value("0", INT)
        if value.type.kind == "tuple":
            return Value(str(len(value.type.parts)), INT)
        if value.type.kind != "sequence":
            raise UnknownTypeError(f"len of {said(value.type)}")
        return Value(f"{value.text}.length", INT)

    def _e_list_comprehension(self, node: nodes.ListComprehension) -> Value:
        return self.collected(lambda use: self.clauses(node.clauses, lambda: use(self.value(node.element))))

    def _e_set_comprehension(self, node: nodes.SetComprehension) -> Value:
        return self.collected(
            lambda use: self.clauses(node.clauses, lambda: use(self.value(node.element))), distinct=True
        )

    def _e_set_display(self, node: nodes.SetDisplay) -> Value:
        if any(isinstance(item, nodes.Starred) for item in node.items):
            raise UnknownTypeError("{*…}")
        several = self.values(node.items)

        def fill(use: Callable[[Value], None]) -> None:
            for value in several:
                use(value)

        return self.collected(fill, distinct=True)

    def _e_generator(self, node: nodes.Generator) -> Value:
        return self.collected(lambda use: self.iterate(node, use))

    def _e_view_role(self, node: nodes.ViewRole) -> Value:
        return self.collected(lambda use: self.iterate(node, use))
