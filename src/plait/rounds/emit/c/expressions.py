"""Expressions of the intermediate representation in C.

An expression becomes a C expression, and statements before it: a comprehension, for example, becomes a loop that fills a
variable. What has effects (a call that sends or changes fields) is such a statement, too, so that the order of effects is
that of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from plait.ir import nodes
from plait.model.message import Message
from plait.rounds.emit.c.types import (
    BOOL,
    EMPTY,
    INT,
    NOTHING,
    PID,
    Type,
    UnknownTypeError,
    as_sequence,
    fields_of,
    joined,
    of_value,
    said,
    sequence,
    snake,
)

if TYPE_CHECKING:
    from plait.rounds.emit.c.statements import Unit


class Value(NamedTuple):
    """A C expression and its type."""

    text: str
    type: Type


class Wider(Exception):  # noqa: N818 no error
    """A variable has a wider type than was thought: translate the function again."""


class Expressions:
    """Translates the expressions of one function."""

    unit: Unit

    def __init__(self, number: int, slots: dict[int, Type], result: Type) -> None:
        self.number, self.slots, self.result = number, slots, result
        self.lines: list[str] = []
        self.depth = 1
        self.declared: dict[str, Type] = {}
        """The local variables of the C function."""
        self.fixed: set[str] = set()
        """The parameters that are never assigned."""
        self._temporaries = 0
        self._saved: set[str] = set()
        """Variables that are assigned once."""

    # -- places ------------------------------------------------------------------------------------------------------

    def out(self, line: str) -> None:
        """A statement before the expression."""
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.out(f"{head} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.out("}")

    def temporary(self, type_: Type, hint: str = "t") -> str:
        """A new variable."""
        self._temporaries += 1
        name = f"{hint}{self._temporaries}"
        self.declared[name] = type_
        return name

    def saved(self, value: Value) -> Value:
        """The value in a variable: it does not change any more, and can be used several times."""
        if value.text in self.fixed or value.text in self._saved:
            return value
        if value.text.lstrip("-").isdigit() or value.type == EMPTY:
            return value
        name = self.temporary(value.type)
        self._saved.add(name)
        self.out(f"{name} = {value.text};")
        return Value(name, value.type)

    def variable(self, slot: int) -> str:
        """The C variable of a slot."""
        return self.unit.slot_name(self.number, slot)

    def assign_slot(self, slot: int, value: Value) -> None:
        """Assign a local variable."""
        known = self.slots.get(slot, NOTHING)
        wider = joined(known, value.type)
        if wider != known:
            self.slots[slot] = wider
            if known != NOTHING:
                raise Wider
        name = self.variable(slot)
        if wider.kind not in ("sequence",) or wider.parts:
            self.declared[name] = wider
            self.out(f"{name} = {self.converted(value, wider)};")

    def converted(self, value: Value, wanted: Type) -> str:
        """A value as a value of another type."""
        if value.type == wanted:
            return value.text
        if value.type.scalar and wanted.scalar:
            kinds = (value.type.kind, wanted.kind)
            if kinds[0] != kinds[1] and kinds != ("bool", "int") and not (kinds[0] == "none" and wanted.optional):
                raise UnknownTypeError(f"{said(value.type)} where {said(wanted)} is expected")
            if value.type.optional and not wanted.optional:
                value = self.saved(value)
                self.out(f"assert({value.text} != NONE);")
            return value.text
        if value.type == EMPTY and wanted.kind == "sequence":
            return f"({self.unit.structs.name(wanted)}){{.length = 0}}"
        if value.type.kind == "tuple" and wanted.kind == "sequence":
            made = self.temporary(wanted, "items")
            self.out(f"{made}.length = 0;")
            whole = self.saved(value)
            for i, part in enumerate(value.type.parts):
                item = self.converted(Value(f"{whole.text}._{i}", part), wanted.parts[0])
                self.out(f"{self.unit.structs.append(wanted)}(&{made}, {item});")
            return made
        if value.type.kind == wanted.kind == "sequence" and value.type.parts and wanted.parts:
            made, whole = self.temporary(wanted, "items"), self.saved(value)
            self.out(f"{made}.length = 0;")

            def use(item: Value) -> None:
                text = self.converted(item, wanted.parts[0])
                self.out(f"{self.unit.structs.append(wanted)}(&{made}, {text});")

            self.walk(whole, use)
            return made
        if value.type.kind == "tuple" and wanted.kind == "tuple" and len(value.type.parts) == len(wanted.parts):
            whole = self.saved(value)
            parts = [
                self.converted(Value(f"{whole.text}._{i}", part), want)
                for i, (part, want) in enumerate(zip(value.type.parts, wanted.parts, strict=True))
            ]
            return f"({self.unit.structs.name(wanted)}){{{', '.join(parts)}}}"
        raise UnknownTypeError(f"{said(value.type)} where {said(wanted)} is expected")

    # -- expressions -------------------------------------------------------------------------------------------------

    def value(self, node: Any) -> Value:
        """The value of an expression."""
        found: Callable[[Any], Value] | None = getattr(self, f"_e_{snake(type(node).__name__)}", None)
        if found is None:
            raise self.unit.refused(self.number, node, self.unit.construct(node))
        try:
            return found(node)
        except UnknownTypeError as error:
            raise self.unit.refused(self.number, node, str(error)) from None

    def values(self, several: Sequence[Any]) -> list[Value]:
        """The values of operands, from left to right. A value is saved if a later operand has effects."""
        made = []
        for i, node in enumerate(several):
            value = self.value(node)
            made.append(self.saved(value) if any(map(self.unit.has_effects, several[i + 1 :])) else value)
        return made

    def truth(self, node: Any) -> str:
        """An expression as a condition."""
        if isinstance(node, nodes.And | nodes.Or):
            return self.shortcut(node.operands, "&&" if isinstance(node, nodes.And) else "||").text
        value = self.value(node)
        try:
            return self.truth_of(value)
        except UnknownTypeError as error:
            raise self.unit.refused(self.number, node, str(error)) from None

    def truth_of(self, value: Value) -> str:
        type_ = value.type
        if type_.kind == "bool" and not type_.optional:
            return value.text
        if type_.kind in ("int", "bool"):
            return f"({value.text} != 0 && {value.text} != NONE)" if type_.optional else f"{value.text} != 0"
        if type_.kind == "none":
            return "false"
        if type_ == EMPTY:
            return "false"
        if type_.kind == "sequence":
            return f"{value.text}.length > 0"
        if type_.kind == "tuple":
            return "true"
        raise UnknownTypeError(f"{said(type_)} as a condition")

    def _e_constant(self, node: nodes.Constant) -> Value:
        return self.constant(self.unit.constant(node.content))

    def constant(self, value: Any) -> Value:
        """A value that does not depend on the state."""
        type_ = of_value(value)
        return Value(self.unit.literal(value, type_), type_)

    def _e_local(self, node: nodes.Local) -> Value:
        type_ = self.slots.get(node.slot, NOTHING)
        if type_ == NOTHING:
            raise UnknownTypeError("a variable that is read before it is assigned")
        return Value(self.variable(node.slot), type_)

    def _e_self_id(self, node: nodes.SelfId) -> Value:
        return Value("self", PID)

    def _e_attribute(self, node: nodes.Attribute) -> Value:
        value = self.value(node.value)
        if value.type.kind == "pid" and node.name == "index":
            return Value(f"INDEX[{value.text}]", INT)
        if value.type.kind == "process":
            if node.name == "id":
                return Value(value.text, PID)
            return Value(*self.unit.field(node.name, value.text))
        if value.type.kind == "record" and value.type.cls is not None:
            if node.name == "__class__.__name__":
                return self.constant(value.type.cls.__name__)
            if node.name == "sender" and issubclass(value.type.cls, Message):
                return Value(f"{value.text}.sender", PID)
            fields = fields_of(value.type.cls)
            if node.name in fields:
                return Value(f"{value.text}.{node.name}", fields[node.name])
        raise UnknownTypeError(f"attribute {node.name} of {said(value.type)}")

    def _e_subscript(self, node: nodes.Subscript) -> Value:
        value = self.value(node.value)
        if isinstance(node.index, nodes.Slice):
            if node.index.step is not None:
                raise UnknownTypeError("a slice with a step")
            whole = Value(self.converted(value, as_sequence(value.type)), as_sequence(value.type))
            lower = "0" if node.index.lower is None else self.number_of(self.value(node.index.lower))
            upper = "CAPACITY" if node.index.upper is None else self.number_of(self.value(node.index.upper))
            return Value(f"{self.unit.structs.slice(whole.type)}({whole.text}, {lower}, {upper})", whole.type)
        index = self.value(node.index)
        if value.type.kind == "tuple" and index.text.lstrip("-").isdigit():
            number = range(len(value.type.parts))[int(index.text)]
            return Value(f"{value.text}._{number}", value.type.parts[number])
        found = as_sequence(value.type)
        if found.kind != "sequence" or not found.parts:
            raise UnknownTypeError(f"an item of {said(value.type)}")
        whole = self.saved(Value(self.converted(value, found), found))
        return Value(f"{whole.text}.at[position({self.number_of(index)}, {whole.text}.length)]", found.parts[0])

    def number_of(self, value: Value) -> str:
        """A value that must be a number."""
        if value.type.kind not in ("int", "bool"):
            raise UnknownTypeError(f"{said(value.type)} as a number")
        if value.type.optional:
            saved = self.saved(value)
            self.out(f"assert({saved.text} != NONE);")
            return saved.text
        return value.text

    def _e_unary_operation(self, node: nodes.UnaryOperation) -> Value:
        if node.operator == "not":
            return Value(f"!({self.truth(node.operand)})", BOOL)
        if node.operator not in ("-", "+"):
            raise UnknownTypeError(f"the operator {node.operator}")
        return Value(f"({node.operator}{self.number_of(self.value(node.operand))})", INT)

    def _e_binary_operation(self, node: nodes.BinaryOperation) -> Value:
        left, right = self.values([node.left, node.right])
        return self.binary(node.operator, left, right)

    def binary(self, operator: str, left: Value, right: Value) -> Value:
        """`left operator right`"""
        collections = {left.type.kind, right.type.kind} <= {"sequence", "tuple"}
        if operator == "+" and collections:
            both = joined(as_sequence(left.type), as_sequence(right.type))
            if left.type == EMPTY or right.type == EMPTY:
                found = right if left.type == EMPTY else left
                return Value(self.converted(found, both) if both != EMPTY else found.text, both)
            one, other = self.converted(left, both), self.converted(right, both)
            return Value(f"{self.unit.structs.concatenate(both)}({one}, {other})", both)
        if operator == "*" and left.type.kind in ("sequence", "tuple") and left.type != EMPTY:
            whole = as_sequence(left.type)
            repeated = f"{self.unit.structs.repeat(whole)}({self.converted(left, whole)}, {self.number_of(right)})"
            return Value(repeated, whole)
        if operator in ("//", "%"):
            name = "floor_div" if operator == "//" else "floor_mod"
            return Value(f"{name}({self.number_of(left)}, {self.number_of(right)})", INT)
        if operator not in ("+", "-", "*"):
            raise UnknownTypeError(f"the operator {operator} on {said(left.type)} and {said(right.type)}")
        return Value(f"({self.number_of(left)} {operator} {self.number_of(right)})", INT)

    def _e_and(self, node: nodes.And) -> Value:
        return self.shortcut(node.operands, "&&", conditions=True)

    def _e_or(self, node: nodes.Or) -> Value:
        return self.shortcut(node.operands, "||", conditions=True)

    def shortcut(self, operands: list[Any], operator: str, *, conditions: bool = False) -> Value:
        """`a and b`: the later operands are evaluated only if they are needed.

        Its value is one of the operands. If this is not only used as a condition, all operands must be conditions.
        """
        texts: list[str] = []
        result = None
        for node in operands:
            before, depth = len(self.lines), self.depth
            self.depth += result is not None
            if conditions:
                value = self.value(node)
                if value.type != BOOL:
                    raise UnknownTypeError(f"and, or: a value that is {said(value.type)}")
                text = value.text
            else:
                text = self.truth(node)
            made = self.lines[before:]
            del self.lines[before:]
            self.depth = depth
            if texts and made and result is None:  # it needs statements: they run only if the operand is needed
                result = self.temporary(BOOL, "test")
                self.out(f"{result} = {f' {operator} '.join(texts)};")
                made = ["    " + line for line in made]
            if result is None:
                self.lines += made
                texts.append(text if text.isidentifier() else f"({text})")
                continue
            self.out(f"if ({'!' if operator == '||' else ''}{result}) {{")
            self.lines += made
            self.lines.append("    " * (self.depth + 1) + f"{result} = {text};")
            self.out("}")
        return Value(result or f" {operator} ".join(texts), BOOL)

    def _e_compare(self, node: nodes.Compare) -> Value:
        several = self.values([node.left, *node.rights])
        if len(several) > 2:
            several = [self.saved(v) for v in several]
        pairs = zip(several, node.operators, several[1:], strict=False)
        tests = [self.comparison(operator, one, other) for one, operator, other in pairs]
        return Value(" && ".join(f"({t})" for t in tests) if len(tests) > 1 else tests[0], BOOL)

    def comparison(self, operator: str, one: Value, other: Value) -> str:
        """`one operator other`"""
        if operator in ("in", "not in"):
            found = as_sequence(other.type)
            negation = "!" if operator == "not in" else ""
            if found == EMPTY:
                return "false" if operator == "in" else "true"
            if found.kind != "sequence":
                raise UnknownTypeError(f"in, on {said(other.type)}")
            if other.type.kind == "tuple" and one.type.scalar:  # in ("wants", "asked")
                item, whole = self.saved(one), self.saved(other)
                tests = [f"{item.text} == {whole.text}._{i}" for i in range(len(other.type.parts))]
                return f"{negation}({' || '.join(tests)})"
            joined(found.parts[0], one.type)
            whole_text = self.converted(other, found)
            return f"{negation}{self.unit.structs.contains(found)}({whole_text}, {self.converted(one, found.parts[0])})"
        if operator in ("is", "is not"):
            if "none" not in (one.type.kind, other.type.kind) and one.type.kind != "bool":
                raise UnknownTypeError(f"{operator}, on {said(one.type)}")
            operator = "==" if operator == "is" else "!="
        if {one.type.kind, other.type.kind} <= {"int", "bool", "text", "pid", "none", "process"}:
            numbers = {one.type.kind, other.type.kind} <= {"int", "bool"}
            if operator in ("==", "!="):
                kinds = {one.type.kind, other.type.kind} - {"none", "process"}
                if len(kinds) > 1 and not numbers:
                    return "false" if operator == "==" else "true"  # values of different types are different
                return f"{one.text} {operator} {other.text}"
            if one.type.kind == "pid" or not (numbers or one.type.kind == other.type.kind):
                raise UnknownTypeError(f"{operator}, on {said(one.type)} and {said(other.type)}")
            if numbers:
                return f"{self.number_of(one)} {operator} {self.number_of(other)}"
            return f"{one.text} {operator} {other.text}"
        if one.type.kind == "record" or other.type.kind == "record":
            both = one.type
            if one.type != other.type:
                raise UnknownTypeError(f"{operator}, on {said(one.type)} and {said(other.type)}")
        elif EMPTY in (one.type, other.type) and operator in ("==", "!="):
            full = other if one.type == EMPTY else one
            return f"{full.text}.length {operator} 0" if full.type != EMPTY else str(operator == "==").lower()
        elif one.type.kind == other.type.kind == "tuple" and len(one.type.parts) == len(other.type.parts):
            parts = zip(one.type.parts, other.type.parts, strict=True)
            both = Type("tuple", tuple(joined(a, b) for a, b in parts))
        else:
            both = joined(one.type, other.type)
        a, b = self.converted(one, both), self.converted(other, both)
        structs = self.unit.structs
        if operator in ("==", "!="):
            return ("!" if operator == "!=" else "") + structs.equal(both, a, b)
        return {
            "<": structs.less(both, a, b),
            ">": structs.less(both, b, a),
            "<=": "!" + structs.less(both, b, a),
            ">=": "!" + structs.less(both, a, b),
        }[operator]

    def _e_conditional(self, node: nodes.Conditional) -> Value:
        test = self.truth(node.test)
        branches = []
        for part in (node.body, node.orelse):
            before = len(self.lines)
            self.depth += 1
            value = self.value(part)
            self.depth -= 1
            branches.append((value, self.lines[before:]))
            del self.lines[before:]
        both = joined(branches[0][0].type, branches[1][0].type)
        if both.scalar and not any(made for _, made in branches):
            return Value(f"({test} ? {branches[0][0].text} : {branches[1][0].text})", both)
        result = self.temporary(both, "either")
        for head, (value, made) in zip((f"if ({test})", "else"), branches, strict=True):
            with self.block(head):
                self.lines += made
                self.out(f"{result} = {self.converted(value, both)};")
        return Value(result, both)

    def _e_assigned(self, node: nodes.Assigned) -> Value:
        self.assign_slot(node.slot, self.value(node.value))
        return self._e_local(nodes.Local(node.slot))

    def _e_tuple_display(self, node: nodes.TupleDisplay) -> Value:
        if any(isinstance(item, nodes.Starred) for item in node.items):
            return self._e_list_display(node)
        if not node.items:
            return Value("", EMPTY)
        several = self.values(node.items)
        type_ = Type("tuple", tuple(v.type for v in several))
        if any(v.type == EMPTY for v in several):
            raise UnknownTypeError("an empty tuple in a tuple")
        return Value(f"({self.unit.structs.name(type_)}){{{', '.join(v.text for v in several)}}}", type_)

    def _e_list_display(self, node: nodes.ListDisplay | nodes.TupleDisplay) -> Value:
        if not node.items:
            return Value("", EMPTY)
        result = Value("", EMPTY)
        for item in node.items:
            if isinstance(item, nodes.Starred):
                result = self.binary("+", result, self.value(item.value))
                continue
            value = self.value(item)
            type_ = joined(result.type, sequence(value.type)) if result.type != EMPTY else sequence(value.type)
            made = self.temporary(type_, "items")
            self.out(f"{made}.length = 0;" if result.type == EMPTY else f"{made} = {self.converted(result, type_)};")
            self.out(f"{self.unit.structs.append(type_)}(&{made}, {self.converted(value, type_.parts[0])});")
            result = Value(made, type_)
        return result

    def walk(self, whole: Value, use: Callable[[Value], None]) -> None:
        """A loop over a sequence in a variable: implemented by `Iteration`."""
        raise NotImplementedError
