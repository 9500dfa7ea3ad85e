"""Expressions of P, checked for names and types, and translated to Python."""

from __future__ import annotations

import re
from typing import NamedTuple

from plait.rounds.p import syntax as s
from plait.rounds.p.lexer import Place
from plait.rounds.p.names import Names
from plait.rounds.p.value_types import ANY, BOOL, EVENT, INT, MACHINE, NOTHING, NULL, STRING, ValueType, fits


class Code(NamedTuple):
    """An expression in Python and its type. A value that is not new is copied where it is stored."""

    text: str
    kind: ValueType
    new: bool = True


class Scope:
    """What names mean in a function, and which of its machine's functions it may call."""

    def __init__(
        self, names: Names, machine: s.Machine, *, blocking: set[str], jumping: set[str], failing: set[str]
    ) -> None:
        self.names, self.machine, self.text = names, machine, names.text
        self.blocking, self.jumping, self.failing = blocking, jumping, failing
        """The functions that may wait in a `receive`, those that may end early, and of these the functions of a spec that do
        so only if an assertion fails."""
        self.fields = {variable.name: names.resolve(variable.type) for variable in machine.variables}
        self.functions = {**names.functions, **{function.name: function for function in machine.functions}}
        self.local: dict[str, tuple[str, ValueType]] = {}

    @property
    def is_spec(self) -> bool:
        return self.machine.observes is not None

    def changes(self, function: str, around: tuple[str, ...] = ()) -> set[str]:
        """The variables of the machine that a function, or one that it calls, assigns."""
        called = self.functions.get(function)
        if called is None or function in around:
            return set()
        own = {variable.name for variable in (*called.parameters, *called.variables)}
        found: set[str] = set()
        for node in called.find(s.Assign, s.Insert, s.Remove, s.Foreach, s.Call):
            if isinstance(node, s.Call):
                found |= self.changes(node.function, (*around, function))
            elif isinstance(node, s.Foreach):
                found |= {node.name} - own
            elif isinstance(node, s.Assign | s.Insert | s.Remove):
                base = node.target
                while isinstance(base, s.Field | s.Item | s.Index):
                    base = base.of
                found |= {base.name} - own if isinstance(base, s.Name) else set()
        return found

    # -- values that are stored --------------------------------------------------------------------------------------------

    def stored(self, node: s.Expression, kind: ValueType, what: str) -> str:
        """An expression of a type, as a value to keep."""
        code = self.expression(node)
        self.check(node.place, code.kind, kind, what)
        return self.kept(code)

    def kept(self, code: Code) -> str:
        if not code.kind.mutable or code.new:
            return code.text
        return (
            f"dict({code.text})" if code.kind.name == "map" and not code.kind.of[1].mutable else f"copied({code.text})"
        )

    def check(self, place: Place, found: ValueType, wanted: ValueType, what: str) -> None:
        if not fits(found, wanted):
            raise self.text.error(place, f"{what} has the type {wanted}, not {found}", "change one of the types")

    def of(self, node: s.Expression, kind: ValueType, what: str) -> str:
        """An expression that must have a type."""
        code = self.expression(node)
        self.check(node.place, code.kind, kind, what)
        return code.text

    def payload(self, place: Place, given: tuple[s.Expression, ...], kind: ValueType, what: str) -> str:
        """The payload of an event, of a state or of a machine: several values are a tuple."""
        if not given:
            if kind not in (NOTHING, ANY) and not fits(NULL, kind):
                raise self.text.error(place, f"{what} needs a payload of the type {kind}", "add it")
            return "None"
        if kind == NOTHING:
            raise self.text.error(given[0].place, f"{what} has no payload", "remove it, or declare its type")
        node = given[0] if len(given) == 1 else s.TupleOf(given[0].place, given)
        return self.stored(node, kind, f"the payload of {what}")

    def where(self, place: Place) -> str:
        return repr(self.text.where(place))

    # -- expressions -------------------------------------------------------------------------------------------------------

    def expression(self, node: s.Expression) -> Code:
        made: Code = getattr(self, f"_{type(node).__name__.lower()}")(node)
        return made

    def _literal(self, node: s.Literal) -> Code:
        kind = {int: INT, bool: BOOL, str: STRING}.get(type(node.value), NULL)
        return Code(repr(node.value), kind)

    def variable(self, name: str) -> Code | None:
        """A variable of the function or of the machine."""
        if name in self.local:
            text, kind = self.local[name]
            return Code(text, kind, False)
        if name in self.fields:
            return Code(f"self.{self.names.python(name)}", self.fields[name], False)
        return None

    def _name(self, node: s.Name) -> Code:
        if (variable := self.variable(node.name)) is not None:
            return variable
        if node.name in self.names.events or node.name == "halt":
            return Code(f"Events.{self.names.python(node.name)}", EVENT)
        if (enum := self.names.element(node.name)) is not None:
            text = f"{self.names.python(enum.name)}.{self.names.python(node.name)}"
            return Code(text, ValueType(f"enum {enum.name}"))
        elements = [element for enum in self.names.enums.values() for element, _ in enum.elements]
        raise self.names.unknown(
            node.place, "variable", node.name, [*self.local, *self.fields, *self.names.events, *elements]
        )

    def _this(self, node: s.This) -> Code:
        if self.is_spec:
            raise self.text.error(node.place, "a spec cannot use this: it is not a machine", "remove it")
        return Code("self.id", MACHINE)

    def _choose(self, node: s.Choose) -> Code:
        if self.is_spec:
            raise self.text.error(node.place, "a spec cannot choose", "choose in a machine, and announce the choice")
        if node.of is None:
            return Code("self.choose([False, True])", BOOL)
        code, where = self.expression(node.of), self.where(node.place)
        match code.kind.name:
            case "int":
                return Code(f"self.choose(options(range({code.text}), {where}))", INT)
            case "seq":
                return Code(f"self.choose(options({code.text}, {where}))", code.kind.of[0], False)
            case "set" | "map":
                return Code(f"self.choose(options({self.ordered(code)}, {where}))", code.kind.of[0], False)
        raise self.text.error(node.place, f"choose needs an int or a collection, not {code.kind}")

    def ordered(self, code: Code) -> str:
        """The elements of a set or the keys of a map as a list, in their order."""
        plain = code.kind.of[0].name in ("int", "string")
        return f"sorted({code.text})" if plain else f"sorted({code.text}, key=rank)"

    def _tupleof(self, node: s.TupleOf) -> Code:
        codes = [self.expression(item) for item in node.items]
        kind = ValueType("tuple", tuple(self._known(code, node.place) for code in codes))
        return Code(f"{self.names.tuple_class(kind)}({', '.join(map(self.kept, codes))})", kind)

    def _recordof(self, node: s.RecordOf) -> Code:
        codes = [self.expression(item) for item in node.items]
        kind = ValueType("record", tuple(self._known(code, node.place) for code in codes), node.names)
        if len(set(node.names)) < len(node.names):
            raise self.text.error(node.place, "two fields have the same name", "rename one of them")
        return Code(f"{self.names.tuple_class(kind)}({', '.join(map(self.kept, codes))})", kind)

    def _known(self, code: Code, place: Place) -> ValueType:
        if code.kind == NOTHING:
            raise self.text.error(place, "a function without a result has no value", "let it return a value")
        return code.kind

    def field(self, node: s.Field | s.Item, kind: ValueType) -> tuple[str, ValueType]:
        """The Python name and the type of a part of a tuple."""
        if isinstance(node, s.Item):
            if kind.name != "tuple" or node.index >= len(kind.of):
                raise self.text.error(node.place, f"a value of the type {kind} has no item {node.index}")
            return self.names.attributes(kind)[node.index], kind.of[node.index]
        if kind.name != "record" or node.name not in kind.fields:
            hint = f"its fields are: {', '.join(kind.fields)}" if kind.fields else "use a named tuple"
            raise self.text.error(node.place, f"a value of the type {kind} has no field {node.name}", hint)
        return self.names.attribute(node.name), kind.of[kind.fields.index(node.name)]

    def _field(self, node: s.Field) -> Code:
        code = self.expression(node.of)
        name, kind = self.field(node, code.kind)
        return Code(f"{code.text}.{name}", kind, code.new)

    def _item(self, node: s.Item) -> Code:
        code = self.expression(node.of)
        name, kind = self.field(node, code.kind)
        return Code(f"{code.text}.{name}", kind, code.new)

    def _index(self, node: s.Index) -> Code:
        code, where = self.expression(node.of), self.where(node.place)
        match code.kind.name:
            case "seq":
                return Code(
                    f"item({code.text}, {self.of(node.index, INT, 'an index')}, {where})", code.kind.of[0], False
                )
            case "set":
                index = self.of(node.index, INT, "an index")
                return Code(f"item({self.ordered(code)}, {index}, {where})", code.kind.of[0], False)
            case "map":
                key = self.of(node.index, code.kind.of[0], "a key")
                return Code(f"look_up({code.text}, {key}, {where})", code.kind.of[1], False)
        raise self.text.error(node.place, f"a value of the type {code.kind} has no elements", "use seq, set or map")

    def _call(self, node: s.Call) -> Code:
        if node.function in self.blocking or node.function in self.jumping:
            what = "waits in a receive" if node.function in self.blocking else "may end in goto or raise"
            raise self.text.error(
                node.place,
                f"{node.function} {what}, and is called within an expression",
                "call it in a statement of its own: x = f(…);",
            )
        return self.call(node)

    def arguments(self, node: s.Call) -> tuple[s.Function, list[str]]:
        """A called function, and the arguments of a call."""
        function = self.functions.get(node.function)
        if function is None:
            raise self.names.unknown(node.place, "function", node.function, self.functions)
        if len(node.arguments) != len(function.parameters):
            raise self.text.error(
                node.place,
                f"{function.name} has {len(function.parameters)} parameters, and the call gives {len(node.arguments)}",
            )
        given = []
        for parameter, argument in zip(function.parameters, node.arguments, strict=True):
            kind = self.names.resolve(parameter.type)
            given.append(self.stored(argument, kind, f"the parameter {parameter.name} of {function.name}"))
        return function, given

    def call(self, node: s.Call) -> Code:
        """A call of a function that does not wait."""
        function, given = self.arguments(node)
        return Code(f"self.fun_{function.name}({', '.join(given)})", self.names.resolve(function.result))

    def _new(self, node: s.New) -> Code:
        if self.is_spec:
            raise self.text.error(node.place, "a spec cannot create machines", "create it in a machine")
        machine = self.names.machines.get(node.machine)
        if machine is None:
            raise self.names.unknown(node.place, "machine", node.machine, self.names.machines)
        kind = entry_type(self.names, machine)
        payload = self.payload(node.place, node.arguments, kind, f"the machine {machine.name}")
        return Code(f"self.new_(self.spawn({self.names.python(machine.name)}), {payload})", MACHINE)

    def _builtin(self, node: s.Builtin) -> Code:
        code = self.expression(node.of)
        kind = code.kind
        if node.name == "sizeof":
            if kind.name not in ("seq", "set", "map"):
                raise self.text.error(node.place, f"sizeof needs a collection, not {kind}")
            return Code(f"len({code.text})", INT)
        if kind.name != "map":
            raise self.text.error(node.place, f"{node.name} needs a map, not {kind}")
        if node.name == "keys":
            return Code(f"tuple({self.ordered(code)})", ValueType("seq", kind.of[:1]))
        simple = re.fullmatch(r"[\w.]+", code.text)
        entry = f"{code.text}[k__]" if simple else "v__"
        if not simple:
            items = f"sorted({code.text}.items(), key=lambda e__: rank(e__[0]))"
            return Code(f"tuple([{entry} for k__, v__ in {items}])", ValueType("seq", kind.of[1:]), False)
        return Code(f"tuple([{entry} for k__ in {self.ordered(code)}])", ValueType("seq", kind.of[1:]), False)

    def _default(self, node: s.Default) -> Code:
        kind = self.names.resolve(node.type)
        return Code(self.names.default(kind), kind)

    def _unary(self, node: s.Unary) -> Code:
        if node.operator == "!":
            return Code(f"(not {self.of(node.of, BOOL, 'the operand of !')})", BOOL)
        return Code(f"(-{self.of(node.of, INT, 'the operand of -')})", INT)

    def _binary(self, node: s.Binary) -> Code:
        operator = node.operator
        if operator in ("&&", "||"):
            what = f"the operand of {operator}"
            left, right = self.of(node.left, BOOL, what), self.of(node.right, BOOL, what)
            return Code(f"({left} {'and' if operator == '&&' else 'or'} {right})", BOOL)
        left_code, right_code = self.expression(node.left), self.expression(node.right)
        left, right = left_code.text, right_code.text
        if operator in ("==", "!="):
            if self._vaguely_comparable(node.place, left_code.kind, right_code.kind):
                return Code(f"(rank({left}) {operator} rank({right}))", BOOL)
            return Code(f"({left} {operator} {right})", BOOL)
        if operator == "in":
            kind = right_code.kind
            if kind.name not in ("seq", "set", "map"):
                raise self.text.error(node.place, f"in needs a collection, not {kind}")
            if self._vaguely_comparable(node.place, left_code.kind, kind.of[0]):
                return Code(f"(rank({left}) in [rank(x__) for x__ in {right}])", BOOL)
            return Code(f"({left} in {right})", BOOL)
        if operator == "+" and left_code.kind == STRING:
            self.check(node.place, right_code.kind, STRING, "the operand of +")
            return Code(f"({left} + {right})", STRING)
        for code in (left_code, right_code):
            self.check(node.place, code.kind, INT, f"the operand of {operator}")
        if operator in ("/", "%"):
            function = "quotient" if operator == "/" else "remainder"
            return Code(f"{function}({left}, {right}, {self.where(node.place)})", INT)
        return Code(f"({left} {operator} {right})", INT if operator in "+-*" else BOOL)

    def _vaguely_comparable(self, place: Place, left: ValueType, right: ValueType) -> bool:
        """Whether two types can be compared only by types and values: Python says that 1 is true."""
        if not (fits(left, right) or fits(right, left)):
            raise self.text.error(
                place, f"values of the types {left} and {right} cannot be compared", "cast one: x as int"
            )
        return (left.vague or right.vague) and NULL not in (left, right)

    def _cast(self, node: s.Cast) -> Code:
        code, kind = self.expression(node.of), self.names.resolve(node.type)
        if node.word == "to":
            if kind == INT and code.kind.name.startswith("enum "):
                return Code(f"{code.text}.value", INT)
            self.check(node.place, code.kind, kind, "the operand of to")
            return Code(code.text, kind, code.new)
        if fits(code.kind, kind):
            return Code(code.text, kind, code.new)
        if not fits(kind, code.kind):
            raise self.text.error(node.place, f"a value of the type {code.kind} is never a {kind}", "remove the cast")
        name = self.names.cast(kind)
        return Code(f"{name}({code.text}, {self.where(node.place)})", kind, code.new)

    def _format(self, node: s.Format) -> Code:
        codes = [self.expression(argument) for argument in node.arguments]
        parts: list[str] = []
        for part in re.split(r"(\{\d+\})", node.text):
            if re.fullmatch(r"\{\d+\}", part):
                number = int(part[1:-1])
                if number >= len(codes):
                    raise self.text.error(node.place, f"the format has {part}, but only {len(codes)} arguments")
                parts.append(f"shown({codes[number].text})")
            elif part:
                parts.append(repr(part))
        return Code(f"({' + '.join(parts)})" if parts else "''", STRING)


def start_state(names: Names, machine: s.Machine) -> s.State:
    """The state in which a machine starts."""
    starts = [state for state in machine.states if state.start]
    if len(starts) != 1:
        raise names.text.error(
            machine.place, f"{machine.name} has {len(starts) or 'no'} start states", "mark one: start state Init { … }"
        )
    return starts[0]


def entry_type(names: Names, machine: s.Machine) -> ValueType:
    """The type of the payload with which a machine is created."""
    return parameter_type(names, machine, start_state(names, machine).entry)


def parameter_type(names: Names, machine: s.Machine, function: s.Function | s.Name | None) -> ValueType:
    """The type of the payload that a function of a state takes."""
    if isinstance(function, s.Name):
        function = function_of(names, machine, function)
    if function is None or not function.parameters:
        return NOTHING
    if len(function.parameters) > 1:
        raise names.text.error(function.place, f"{function.name} has several parameters, and a handler has at most one")
    return names.resolve(function.parameters[0].type)


def function_of(names: Names, machine: s.Machine, name: s.Name) -> s.Function:
    """A function that a state names."""
    known = {**names.functions, **{function.name: function for function in machine.functions}}
    if name.name not in known:
        raise names.unknown(name.place, "function", name.name, known)
    return known[name.name]
