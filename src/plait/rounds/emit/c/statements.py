"""Functions of the intermediate representation in C: their statements, and the table of the functions that are used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from plait.ir import nodes
from plait.ir.frame import unwrapped
from plait.ir.program import Lowering
from plait.ir.reason import NotLoweredError, Reason
from plait.ir.scope import Instance, Kind
from plait.kernel.errors import ModelError
from plait.kernel.places import place
from plait.model.message import Message
from plait.model.system import System
from plait.rounds.emit.c.calls import Calls
from plait.rounds.emit.c.expressions import Expressions, Value, Wider
from plait.rounds.emit.c.types import (
    EMPTY,
    NONE,
    NOTHING,
    PROCESS,
    Structs,
    Type,
    UnknownTypeError,
    as_sequence,
    identifier,
    joined,
    of_annotation,
    said,
    snake,
)

_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """auto bool break case char const continue default do double else enum extern false float for goto if inline int
        long main register restrict return short signed sizeof static struct switch true typedef union unsigned void
        volatile while self place phase round pick position assert N PHASES LAST CAPACITY NONE INDEX""",
    )
)
"""Names that a local variable of C cannot have."""


class Statements(Calls):
    """Translates the statements of one function."""

    def __init__(self, unit: Unit, number: int, slots: dict[int, Type], result: Type) -> None:
        self.unit = unit
        super().__init__(number, slots, result)

    def statements(self, body: Iterable[Any]) -> None:
        for node in body:
            found: Callable[[Any], None] | None = getattr(self, f"_do_{snake(type(node).__name__)}", None)
            if found is None:
                raise self.unit.refused(self.number, node, self.unit.construct(node))
            try:
                found(node)
            except UnknownTypeError as error:
                raise self.unit.refused(self.number, node, str(error)) from None

    def _do_evaluate(self, node: nodes.Evaluate) -> None:
        if isinstance(node.value, nodes.Constant):
            return  # a docstring
        self.value(node.value)

    def _do_assign(self, node: nodes.Assign) -> None:
        if len(node.targets) == 1 and _fits(node.targets[0], node.value):  # a, b = x, y
            several = [self.saved(v) for v in self.values(node.value.items)]  # type: ignore[union-attr]
            for part, value in zip(node.targets[0].targets, several, strict=True):  # type: ignore[union-attr]
                self.assign(part, value)
            return
        value = self.value(node.value)
        if len(node.targets) > 1 or isinstance(node.targets[0], nodes.TupleTarget):
            value = self.saved(value)
        for target in node.targets:
            self.assign(target, value)

    def assign(self, target: Any, value: Value) -> None:
        """Assign a value to a target."""
        if isinstance(target, nodes.LocalTarget):
            self.assign_slot(target.slot, value)
        elif isinstance(target, nodes.AttributeTarget):
            owner = self.value(target.value)
            if owner.type != PROCESS:
                raise UnknownTypeError(f"an assignment to {target.name} of {said(owner.type)}")
            text, type_ = self.unit.field(target.name, owner.text)
            joined(type_, value.type)
            self.out(f"{text} = {self.converted(value, type_)};")
        elif isinstance(target, nodes.TupleTarget):
            whole = self.saved(value)
            found = whole.type
            if found.kind == "tuple" and len(found.parts) == len(target.targets):
                for i, part in enumerate(target.targets):
                    self.assign(part, Value(f"{whole.text}._{i}", found.parts[i]))
            elif found.kind == "sequence" and found.parts:
                self.out(f"assert({whole.text}.length == {len(target.targets)});")
                for i, part in enumerate(target.targets):
                    self.assign(part, Value(f"{whole.text}.at[{i}]", found.parts[0]))
            else:
                raise UnknownTypeError(f"an assignment of {said(found)} to {len(target.targets)} variables")
        else:
            raise UnknownTypeError(self.unit.construct(target))

    def _do_augmented_assign(self, node: nodes.AugmentedAssign) -> None:
        target = node.target
        if isinstance(target, nodes.LocalTarget):
            if self.slots.get(target.slot, NOTHING).kind == "sequence":  # of a list, it changes other variables, too
                raise UnknownTypeError("+= on a local tuple or list; write x = x + …")
            before: Any = nodes.Local(target.slot)
        elif isinstance(target, nodes.AttributeTarget):
            before = nodes.Attribute(target.value, target.name)
        else:
            raise UnknownTypeError(self.unit.construct(target))
        left = self.value(before)
        items = node.value.items if isinstance(node.value, nodes.TupleDisplay | nodes.ListDisplay) else None
        if node.operator == "+" and items and left.type.parts and left.type.kind == "sequence" and not _starred(items):
            for value in [self.saved(v) if len(items) > 1 else v for v in self.values(items)]:  # x += (a, b)
                joined(left.type.parts[0], value.type)
                self.out(
                    f"{self.unit.structs.append(left.type)}(&{left.text}, {self.converted(value, left.type.parts[0])});"
                )
            return
        left, right = self.values([before, node.value])
        if node.operator == "+" and left.type.kind == "sequence" and left.type.parts and right.type != EMPTY:
            joined(as_sequence(left.type), as_sequence(right.type))
            right = Value(self.converted(right, left.type), left.type)
        self.assign(target, self.binary(node.operator, left, right))

    def _do_if(self, node: nodes.If) -> None:
        with self.block(f"if ({self.truth(node.test)})"):
            self.statements(node.body)
        if node.orelse:
            self.lines[-1] += " else {"
            self.depth += 1
            self.statements(node.orelse)
            self.depth -= 1
            self.out("}")

    def _do_while(self, node: nodes.While) -> None:
        if node.orelse:
            raise UnknownTypeError("while … else")
        with self.block("while (true)"):
            self.out(f"if (!({self.truth(node.test)})) break;")
            self.statements(node.body)

    def _do_for(self, node: nodes.For) -> None:
        if node.orelse:
            raise UnknownTypeError("for … else")

        def use(item: Value) -> None:
            self.assign(node.target, item)
            self.statements(node.body)

        if isinstance(node.iterable, nodes.Generator | nodes.ViewRole):
            self.walk(self.collection(node.iterable), use)
        else:
            self.iterate(node.iterable, use)

    def _do_break(self, node: nodes.Break) -> None:
        self.out("break;")

    def _do_continue(self, node: nodes.Continue) -> None:
        self.out("continue;")

    def _do_return(self, node: nodes.Return) -> None:
        if node.value is None:
            self.out("return;")
            return
        value = self.value(node.value)
        if value.type == NONE and self.result == NOTHING:
            self.out("return;")
            return
        wider = joined(self.result, value.type)
        if wider != self.result:
            known, self.result = self.result, wider
            if known != NOTHING:
                raise Wider
        self.out(f"return {self.converted(value, wider)};")

    def _do_assert(self, node: nodes.Assert) -> None:
        self.out(f"assert({self.truth(node.test)});")

    def _do_raise(self, node: nodes.Raise) -> None:
        self.out("assert(false);  // an exception")


def _starred(items: list[Any]) -> bool:
    return any(isinstance(item, nodes.Starred) for item in items)


def _fits(target: Any, value: Any) -> bool:
    """Whether the items of a tuple can be assigned one by one."""
    return (
        isinstance(target, nodes.TupleTarget)
        and isinstance(value, nodes.TupleDisplay)
        and len(target.targets) == len(value.items)
        and not _starred(value.items)
        and not any(isinstance(part, nodes.StarredTarget) for part in target.targets)
    )


class Unit:
    """The functions of a program that are used, and the tables that they share."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._constants: list[Any] = []
        self.lowering = Lowering(system, self._encode)
        self._numbers: dict[int, str] = {}
        self.structs = Structs()
        self.fields: dict[str, Type] = {}
        self.texts: dict[str, str] = {}
        """All texts, with their names."""
        self.uses_codes = False
        """Whether texts are made from numbers, or numbers from texts."""
        self.functions: list[str] = []
        """The C functions, in the order of their declaration."""
        self._compiled: dict[tuple[int, tuple[Type, ...]], tuple[str, Type]] = {}
        self._open: list[tuple[str, Type]] = []
        """The functions that are being translated."""
        self._effects: frozenset[int] = frozenset()
        self.messages: dict[str, type[Message]] = {}
        """The classes of messages that are sent."""
        for cls in dict.fromkeys(system.classes):
            self.lowering.classes.number(cls)
            self._declare_fields(cls)
        for process in system.processes:
            for name in process.__plait_fields__:
                self.lowering.classes.meet(process.__dict__[name])

    def _declare_fields(self, cls: Any) -> None:
        import typing

        hints = typing.get_type_hints(cls)
        for name in cls.__plait_fields__:
            try:
                found = of_annotation(hints[name])
            except UnknownTypeError as error:
                raise ModelError(
                    f"{cls.__name__}.{name}: C has no {error}",
                    hint="annotate the field with numbers, bool, Literal texts, process ids, or tuples of these",
                ) from None
            if self.fields.setdefault(name, found) != found:
                raise ModelError(
                    f"{cls.__name__}.{name} has another type than the field {name} of another class",
                    hint="give the fields different names: the program has one array for each name",
                )

    # -- constants -----------------------------------------------------------------------------------------------------

    def _encode(self, value: object) -> bytes:
        for number, known in enumerate(self._constants):
            if type(known) is type(value) and repr(known) == repr(value):
                return str(number).encode()
        self._constants.append(value)
        return str(len(self._constants) - 1).encode()

    def constant(self, content: bytes) -> Any:
        """The value of a constant."""
        return self._constants[int(content)]

    def literal(self, value: Any, type_: Type) -> str:
        """A value as C writes it."""
        if value is None:
            return "NONE"
        if isinstance(value, bool):
            return str(value).lower()
        if type_.kind == "text":
            return self._text(value)
        if type_.kind == "pid":
            return str(self.system.index[value])
        if type_.kind == "sequence":
            if not type_.parts:
                return ""
            items = [
                self.literal(v, type_.parts[0])
                for v in (sorted(value) if isinstance(value, set | frozenset) else value)
            ]
            return f"({self.structs.name(type_)}){{.length = {len(items)}, .at = {{{', '.join(items)}}}}}"
        if type_.kind == "tuple":
            items = [self.literal(v, t) for v, t in zip(value, type_.parts, strict=True)]
            return f"({self.structs.name(type_)}){{{', '.join(items)}}}"
        if type_.kind == "record":
            items = [f".{name} = {self.literal(getattr(value, name), t)}" for name, t in self.structs.members(type_)]
            return f"({self.structs.name(type_)}){{{', '.join(items)}}}"
        return str(value)

    def _text(self, value: str) -> str:
        if value not in self.texts:
            name = f"TEXT_{identifier(value)}"
            self.texts[value] = name if name not in self.texts.values() else f"{name}_{len(self.texts)}"
        return self.texts[value]

    def text_numbers(self) -> dict[str, int]:
        """The number of each text, by its name: in the order of the texts, or as `ord` says if it is used."""
        several = sorted(self.texts)
        if not self.uses_codes:
            return {self.texts[text]: number for number, text in enumerate(several)}
        long = next((text for text in several if len(text) != 1), None)
        if long is not None:
            raise ModelError(
                f"{self.system.name} uses ord or chr, and the text {long!r}, which is not one character",
                hint="use --to python, or write all texts with one character",
            )
        return {self.texts[text]: ord(text) for text in several}

    # -- names ---------------------------------------------------------------------------------------------------------

    def field(self, name: str, process: str) -> tuple[str, Type]:
        """A field of a process: the expression, and its type."""
        if name not in self.fields:
            raise UnknownTypeError(f"attribute {name} of a process")
        return f"s_{name}[{process}]", self.fields[name]

    def slot_name(self, number: int, slot: int) -> str:
        """The name of a local variable."""
        names = self.lowering.bodies[number].names
        if slot == 0 and self._takes_self(number):
            return "self"
        name = identifier(names[slot])
        if name in _KEYWORDS or name == "_" or names.index(names[slot]) != slot or re.fullmatch(r"[a-z]+\d+", name):
            name = f"{name}_{slot}"
        return name

    def _takes_self(self, number: int) -> bool:
        supplied = self.lowering.bodies[number].supplied
        return bool(supplied) and isinstance(supplied[0][1], Instance)

    def class_of(self, number: int) -> type:
        """A class by its number in the representation."""
        return self.lowering.classes.order[number]

    def sender(self, type_: Type) -> str:
        """The function that sends messages of a type."""
        if type_.cls is None or not issubclass(type_.cls, Message):
            raise UnknownTypeError(f"a message that is {said(type_)}")
        self.messages[type_.cls.__name__] = type_.cls
        return f"send_{type_.cls.__name__}"

    def has_effects(self, node: Any) -> bool:
        """Whether an expression sends, chooses or changes fields."""
        return any(
            isinstance(n, nodes.Send | nodes.Broadcast | nodes.Choose | nodes.Spawn)
            or (isinstance(n, nodes.CallFunction | nodes.FunctionValue) and n.function in self._effects)
            for n in walked(node)
        )

    # -- errors --------------------------------------------------------------------------------------------------------

    def construct(self, node: Any) -> str:
        """A node in words."""
        words = re.sub(r"(?<!^)(?=[A-Z])", " ", type(node).__name__).lower()
        return {"spawn": "self.spawn(…)", "view process": "s[pid]"}.get(words, words)

    def refused(self, number: int, node: Any, what: str) -> ModelError:
        """The error for a construct that C cannot express."""
        function = self.lowering.functions[number]
        assert function is not None
        line = self.lowering.lines.get(id(node), (function.line, None))[0]
        return ModelError(
            f"{function.name} cannot be written in C: {what} ({place(function.file, line)})",
            hint="use --to python, or write it with numbers, tuples and loops over them",
        )

    def _refused(self, label: str, reason: Reason) -> ModelError:
        where = f" ({place(reason.file, reason.line)})" if reason.file else ""
        return ModelError(
            f"{label} cannot be written in C: {reason.construct}{where}",
            hint="use --to python, or write it with numbers, tuples and loops over them",
        )

    # -- functions -----------------------------------------------------------------------------------------------------

    def entry(self, label: str, function: Any, kinds: tuple[Kind | None, ...]) -> int:
        """The number of a handler, guard, quorum size or property. Call `complete` after all of them."""
        try:
            number = self.lowering.entry(unwrapped(function), kinds)
        except NotLoweredError as error:
            raise self._refused(label, error.reason) from None
        self._numbers.setdefault(number, label)
        return number

    def complete(self) -> None:
        """Refuse what cannot be lowered, and find the functions with effects."""
        self.lowering.complete()
        for number, label in self._numbers.items():
            if number in self.lowering.reasons:
                raise self._refused(label, self.lowering.reasons[number])
        self._effects = effects_of(self.lowering.finished())

    def call(self, caller: Expressions, number: int, arguments: list[Value]) -> Value:
        """The call of a function."""
        name, result = self.compiled(number, tuple(v.type for v in arguments))
        text = f"{name}({', '.join(v.text for v in arguments)})"
        if result == NOTHING:
            caller.out(f"{text};")
            return Value("NONE", NONE)
        value = Value(text, result)
        if number in self._effects:
            made = caller.temporary(result, "result")
            caller.out(f"{made} = {text};")
            return Value(made, result)
        return value

    def compiled(self, number: int, types: tuple[Type, ...], name: str | None = None) -> tuple[str, Type]:
        """The name and the result of the C function for arguments of these types."""
        key = (number, types)
        if key in self._compiled:
            if self._compiled[key] in self._open:
                raise UnknownTypeError("a recursive function")
            return self._compiled[key]
        function = self.lowering.functions[number]
        assert function is not None
        if any(t == EMPTY for t in types):
            raise UnknownTypeError("an empty tuple as an argument")
        name = name or identifier(function.name.replace(".<locals>.", "."))
        if name in {known for known, _ in self._compiled.values()}:
            name = f"{name}_{len(self._compiled)}"
        self._compiled[key] = started = (name, NOTHING)
        self._open.append(started)
        slots = dict(enumerate(types))
        result = NOTHING
        assigned = {n.slot for n in walked(function.body) if isinstance(n, nodes.LocalTarget | nodes.Assigned)}
        fixed = {self.slot_name(number, i) for i in range(len(types)) if i not in assigned}
        for _ in range(50):
            made = Statements(self, number, dict(slots), result)
            made.fixed = fixed
            try:
                made.statements(function.body)
                break
            except Wider:
                slots, result = made.slots, made.result
        self._open.remove(started)
        self._compiled[key] = (name, made.result)
        c_name = self.structs.name
        parameters = ", ".join(f"{c_name(t)} {self.slot_name(number, i)}" for i, t in enumerate(types)) or "void"
        own = {self.slot_name(number, i) for i in range(len(types))}
        variables = [
            f"    {c_name(t)} {variable};\n"
            for variable, t in made.declared.items()
            if variable not in own and t.kind != "nothing" and t != EMPTY
        ]
        head = f"static {c_name(made.result)} {name}({parameters}) {{\n"
        self.functions.append(head + "".join(variables) + "\n".join(made.lines) + "\n}\n")
        return self._compiled[key]


def effects_of(functions: list[nodes.Function]) -> frozenset[int]:
    """The functions that send, choose, or change fields, themselves or in functions that they call."""
    direct: set[int] = set()
    calls: dict[int, set[int]] = {}
    for number, function in enumerate(functions):
        calls[number] = set()
        for node in walked(function.body):
            if isinstance(node, nodes.CallFunction | nodes.FunctionValue):
                calls[number].add(node.function)
            elif isinstance(node, nodes.Send | nodes.Broadcast | nodes.Choose | nodes.Spawn | nodes.AttributeTarget):
                direct.add(number)
    while more := {n for n, callees in calls.items() if callees & direct} - direct:
        direct |= more
    return frozenset(direct)


def walked(value: Any) -> Iterator[Any]:
    """All nodes in a value."""
    if isinstance(value, nodes.Node):
        yield value
        for name in value.__struct_fields__:
            yield from walked(getattr(value, name))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from walked(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from walked(part)
