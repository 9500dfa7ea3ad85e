"""The declarations of a Distal text: message types, records, parameters, functions, and its upons in the listing order."""

from __future__ import annotations

import ast
import dataclasses
import keyword
import re

from plait.kernel.extras import needs
from plait.rounds.distal.expressions import tidy
from plait.rounds.distal.names import BUILTIN, RESERVED, Function, Names, RoundField
from plait.rounds.distal.parser import HERE, Node, Text, parse
from plait.rounds.distal.scope import Scope
from plait.rounds.distal.value_types import BOOL, INT, TEXT, ValueType

with needs("rounds"):
    from lark import Token


@dataclasses.dataclass(eq=False)
class Upon:
    """An upon: what it waits for, and its action."""

    node: Node
    name: str
    """The name of its handler."""
    body: Node
    guard: Node | None
    message: Token | None = None
    """The type of its messages; None for a timeout."""
    round: str | None = None
    """The round of its messages, if this is a field."""
    times: Node | None = None
    """It waits for more messages than this; None for one message."""
    exactly: bool = False
    """Whether it takes as many as `times` says, no more."""
    until: bool = False
    """Whether a timeout may end its waiting."""
    timer: Token | None = None
    """The timeout that must have been started."""
    nested: list[Upon] = dataclasses.field(default_factory=list)
    """The upons in its action."""
    outer: Upon | None = None

    @property
    def waits(self) -> str:
        """The variable that says whether a nested upon was reached."""
        return f"waits_{self.name}"

    @property
    def conjuncts(self) -> list[Node]:
        """The parts of its guard."""
        found, rest = [], [self.guard] if self.guard is not None else []
        while rest:
            node = rest.pop(0)
            if node.data == "binary" and node.token(1).type == "AND":
                rest[:0] = [node.node(0), node.node(2)]
            else:
                found.append(node)
        return found


class Declarations:
    """All that a text declares."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.names = Names(text, constants={"n": INT, "phases": INT})
        self.phases: dict[str, str] = {}
        """The field with the phase of each message type."""
        self.defaults: dict[str, str] = {"n": "3", "phases": "2"}
        """The values of parameters, in Python."""
        self.computed: dict[str, Node] = {}
        """The expressions of constants."""
        self.required: list[Node] = []
        self.upons: list[Upon] = []
        """All upons in the listing order; nested ones follow the upon around them."""
        self.properties: list[Node] = []
        self.own: set[str] = set()
        """The functions that the text defines itself."""
        self._labels: dict[str, int] = {}
        prelude = Text((HERE / "prelude.distal").read_text(encoding="utf-8"), "prelude.distal")
        for function in parse(prelude, start="prelude").nodes():
            self._function(function, prelude)
        for node in parse(text).nodes():
            getattr(self, f"_{node.data}")(node)
        self._find_variables()

    def _find_variables(self) -> None:
        timers = {str(node.token(1)) for action in self.actions for node in action.find("timer")}
        for action in self.actions:
            for found in action.find("assign", "add", "put"):
                self.names.variables.setdefault(str(found.token(0)), None)
        self.names.outputs = any(True for action in self.actions for _ in action.find("output"))
        for upon in self.upons:
            if upon.outer is not None:
                self.flag(upon.waits)
            if upon.timer is not None and upon.timer not in timers:
                raise self.text.error(
                    upon.timer, f"no action starts the timeout {upon.timer}", f"write: start timeout({upon.timer})"
                )
        for timer in sorted(timers):
            self.flag(f"timeout_{timer}")

    def flag(self, name: str) -> None:
        """A truth value that each process remembers."""
        self.names.variables[name] = BOOL
        self.names.live.add(name)

    @property
    def actions(self) -> list[Node]:
        """The blocks of init and of all upons."""
        return [self.init, *(upon.body for upon in self.upons if upon.outer is None)]

    # -- declarations ------------------------------------------------------------------------------------------------

    def fresh(self, name: Token, *taken: object) -> None:
        """Raise an error if a name cannot be declared."""
        if name in RESERVED or name in BUILTIN or keyword.iskeyword(name) or str(name).startswith("_"):
            raise self.text.error(name, f"'{name}' is a reserved name", "choose another name")
        if any(name in group for group in taken):  # type: ignore[operator]
            raise self.text.error(name, f"'{name}' is declared twice", "choose another name")

    def _capital(self, name: Token, what: str) -> None:
        self.fresh(name, self.names.messages, self.names.records)
        if not name[0].isupper():
            raise self.text.error(
                name, f"the {what} '{name}' must begin with a capital letter", f"write {name.capitalize()}"
            )

    def _message(self, node: Node) -> None:
        name = node.token(0)
        self._capital(name, "message type")
        found: dict[str, ValueType] = {}
        for field in node.nodes():
            mark, kind, label, values = field.children[0], field.node(1), field.token(2), field.children[3]
            self.fresh(label, found, {"sender"})
            found[str(label)] = self.names.type_of(kind)
            role = mark.type if isinstance(mark, Token) else None
            if role == "PHASE":
                if name in self.phases or found[str(label)] != INT:
                    raise self.text.error(label, "a message has one phase, of type int")
                self.phases[str(name)] = str(label)
            if role == "ROUND":
                self._round(name, label, found[str(label)], values)
            elif values is not None:
                raise self.text.error(label, "only the field with the round lists its values", "write: round text …")
        self.names.messages[str(name)] = found
        if self.phases and len(self.phases) < len(self.names.messages):
            raise self.text.error(
                name, "either all message types have a phase, or none", "mark the field: phase int ballot;"
            )

    def _round(self, name: Token, label: Token, kind: ValueType, values: Node | Token | None) -> None:
        """A field that has the round of the message."""
        if name in self.names.rounds or kind != TEXT:
            raise self.text.error(label, "a message has one round, of type text")
        if not isinstance(values, Node):
            raise self.text.error(
                label, "expected the rounds in their order", f'write: round text {label} in ["Ask", "Answer"];'
            )
        found = [str(ast.literal_eval(str(value))) for value in values.children]
        for value in found:
            if not re.fullmatch(r"\w+", value) or found.count(value) > 1:
                raise self.text.error(values, f"{value!r} is no name of a round, or is listed twice")
        self.names.rounds[str(name)] = RoundField(str(label), found)

    def _record(self, node: Node) -> None:
        name = node.token(0)
        self._capital(name, "record")
        found: dict[str, ValueType] = {}
        for kind, label in zip(node.children[1::2], node.children[2::2], strict=True):
            assert isinstance(kind, Node)
            assert isinstance(label, Token)
            self.fresh(label, found)
            found[str(label)] = self.names.type_of(kind)
        self.names.records[str(name)] = found

    def _parameter(self, node: Node) -> None:
        kind, name, value = node.node(0), node.token(1), node.node(2)
        if name in ("n", "phases"):
            kind_of = INT
        else:
            self.fresh(name, self.names.constants)
            kind_of = self.names.type_of(kind)
        scope = Scope(Names(self.text), self.text, myself=False)
        self.defaults[str(name)] = tidy(scope.of(value, kind_of, f"the value of {name}"))
        self.names.constants[str(name)] = kind_of

    def _constant(self, node: Node) -> None:
        kind, name, value = node.node(0), node.token(1), node.node(2)
        if name in ("n", "phases") and name not in self.computed:
            self.names.constants.pop(str(name))
            del self.defaults[str(name)]
        else:
            self.fresh(name, self.names.constants)
        kind_of = self.names.type_of(kind)
        Scope(self.names, self.text, myself=False).of(value, kind_of, f"the value of {name}")
        self.computed[str(name)] = value
        self.names.constants[str(name)] = kind_of

    def _require(self, node: Node) -> None:
        self.required.append(node.node(0))

    def _spawns(self, node: Node) -> None:
        if self.names.spare is not None:
            raise self.text.error(node, "spawns is declared twice", "leave one of them out")
        self.names.spare = node.node(0)

    def _function(self, node: Node, text: Text | None = None) -> None:
        result, name, formals, body = node.node(0), node.token(1), node.children[2], node.node(3)
        if text is None:
            self.fresh(name, self.own)
            self.own.add(str(name))
        parameters: dict[str, ValueType] = {}
        for formal in formals.nodes() if isinstance(formals, Node) else ():
            kind, label = formal.node(0), formal.token(1)
            self.fresh(label, parameters)
            parameters[str(label)] = self.names.type_of(kind)
        mailboxes = list(body.find("mailbox"))
        read = [found.children[0] for found in mailboxes]
        if mailboxes and not isinstance(read[0], Token):
            raise (text or self.text).error(mailboxes[0], "a function names the messages it reads", "write mbox(Ack)")
        selects = len(mailboxes) == 1 == sum(select.children[2] is mailboxes[0] for select in body.find("select"))
        self.names.functions[str(name)] = Function(
            node,
            text or self.text,
            parameters,
            self.names.type_of(result),
            body,
            str(read[0]) if read else None,
            selects,
        )

    # -- the program -------------------------------------------------------------------------------------------------

    def _init(self, node: Node) -> None:
        self.init = node.nodes()[0]
        for found in self.init.find("upon"):
            raise self.text.error(found, "an upon in init", "write it in the loop")

    def _loop(self, node: Node) -> None:
        for upon in node.nodes():
            self._upon(upon, None)

    def _upon(self, node: Node, outer: Upon | None) -> None:
        trigger, guard, times, until, body = (
            node.node(0),
            node.children[1],
            node.children[2],
            node.children[3],
            node.node(4),
        )
        message = trigger.token(0) if trigger.data == "on_message" else None
        if message is not None and message not in self.names.messages:
            known = ", ".join(self.names.messages) or "none"
            raise self.text.error(
                message, f"there is no message type '{message}'", f"declare it with type …; there are: {known}"
            )
        count = times.node(1) if isinstance(times, Node) else None
        if message is None and (count is not None or until is not None):
            what = "times" if count is not None else "until"
            raise self.text.error(node, f"a timeout cannot have {what}", f"leave {what} out")
        exactly = isinstance(times, Node) and times.children[0] is not None
        if exactly and until is not None:
            raise self.text.error(node, "exactly and until contradict each other", "leave one of them out")
        rounds = self.names.rounds.get(str(message))
        for value in rounds.values if rounds else [None]:
            made = Upon(node, "", body, guard if isinstance(guard, Node) else None, message, value, count, exactly)
            made.until, made.outer = until is not None, outer
            if trigger.data == "on_timeout" and isinstance(trigger.children[0], Token):
                made.timer = trigger.children[0]
            if rounds and value is not None and self._never(made, rounds.field, value):
                continue
            made.name = self._label(f"upon_{snake(self.names.kind_of(str(message or 'timeout'), value))}")
            self.upons.append(made)
            if outer is not None:
                outer.nested.append(made)
            for inner in _nested(body):
                self._upon(inner, made)

    def _never(self, upon: Upon, field: str, value: str) -> bool:
        """Whether the guard says that the round is another one: `m.step = "Ack"`."""
        for part in upon.conjuncts:
            if part.data == "equal":
                for one, other in ((part.node(0), part.node(1)), (part.node(1), part.node(0))):
                    if one.data == "access" and one.token(1) == field and other.data == "text":
                        owner = one.node(0)
                        if owner.data == "name" and owner.children[0] == "m":
                            return bool(ast.literal_eval(str(other.token(0))) != value)
        return False

    def _label(self, label: str) -> str:
        self._labels[label] = self._labels.get(label, 0) + 1
        return label if self._labels[label] == 1 else f"{label}_{self._labels[label]}"

    def _property(self, node: Node) -> None:
        self.fresh(node.token(1), [known.token(1) for known in self.properties])
        self.properties.append(node)


def _nested(node: Node) -> list[Node]:
    """The upons in an action that are not in another one of them."""
    found = []
    for part in node.nodes():
        found += [part] if part.data == "upon" else _nested(part)
    return found


def snake(name: str) -> str:
    """The name of a type as part of the name of a function: StartView is start_view."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
