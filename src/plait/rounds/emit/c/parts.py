"""The SEND and UPDATE parts of Algorithm 1 in C."""

from __future__ import annotations

from plait.model.message import Message
from plait.model.process import Handler, Process
from plait.model.quorum import Quorum
from plait.model.system import plays
from plait.rounds.assumptions import Deliver, Kernel
from plait.rounds.emit.c.statements import Unit
from plait.rounds.emit.c.types import Type, sequence
from plait.rounds.emit.description import Description

Names = dict[tuple[str, str], str]
"""The C functions of the handlers, by class and name."""


class Parts:
    """Writes the parts of a round. The functions of handlers and guards are named after class and handler."""

    def __init__(self, described: Description) -> None:
        self.described, self.system = described, described.system
        self.unit = Unit(self.system)
        self.free = described.assumed.free
        self.guards: dict[tuple[str, str], int] = {}
        """The guards of handlers that have one."""

    def messages(self) -> dict[str, type[Message]]:
        """All classes of messages, by their names."""
        raise NotImplementedError

    def round_of(self, cls: type[Message]) -> int:
        """The number of the round of a message, from 0."""
        raise NotImplementedError

    def _processes(self, cls: type[Process]) -> str:
        """The condition that a process has a class."""
        numbers = [i for i, c in enumerate(self.system.classes) if c is cls]
        if len(numbers) == len(self.system.classes):
            return ""
        low, high = numbers[0], numbers[-1]
        if numbers == list(range(low, high + 1)):
            return f"p == {low}" if low == high else f"{low} <= p && p <= {high}"
        return " || ".join(f"p == {i}" for i in numbers)

    def _actions(self, names: Names, indent: str) -> str:
        """The choice of an action that is enabled, and its step."""
        cases: list[str] = []
        for cls, handler in self.system.handlers():
            if handler.kind == "action":
                key = (cls.__name__, handler.name)
                guard = [
                    *([f"({self._processes(cls)})"] if self._processes(cls) else []),
                    *([f"{'_'.join(key)}_guard(p)"] if key in self.guards else []),
                ]
                test = f"__VERIFIER_assume({' && '.join(guard)}); " if guard else ""
                cases.append(f"{indent}case {len(cases)}: {test}{names[key]}(p); break;")
        if not cases:
            return ""
        return "\n".join([f"{indent}switch (pick({len(cases)})) {{", *cases, f"{indent}}}"])

    def send_part(self, names: Names) -> str:
        actions = self._actions(names, "        ")
        if not actions:
            return (
                "// SEND: no process has actions; the messages of this round were sent in earlier steps.\n"
                "static void send(int p, int place) {\n    (void)p;\n    (void)place;\n}\n"
            )
        if self.free:
            comment = "Between them it may run actions that send nothing."
            start, silent, after, end = (
                "    bool left = false;",
                "place <= LAST || left",
                "if (earliest) left = true;",
                "",
            )
        else:
            comment = "Before them it may run actions that send nothing."
            start, silent, after = "    bool owes = false;", "true", "owes = earliest == 0;"
            end = "    __VERIFIER_assume(!owes);  // what sends nothing leads to an action of this round\n"
        return f"""\
// SEND: process p runs actions whose messages belong to this round, or none of them. {comment}
// After the last round it may leave the last phase: its messages then belong to one later round.
static void send(int p, int place) {{
{start}
    while (__VERIFIER_nondet_bool()) {{
        int before = clock_[p];
        earliest = latest = 0;
{actions}
        if (earliest == 0) {{
            __VERIFIER_assume({silent});
        }} else if (place <= LAST) {{
            __VERIFIER_assume(earliest == place);
        }} else {{
            __VERIFIER_assume(earliest > LAST);
            __VERIFIER_assume(before <= 2 * LAST + 1 || (2 * earliest == before && 2 * latest == before));
        }}
        if (2 * latest > clock_[p]) clock_[p] = 2 * latest;
        {after}
    }}
{end}}}
"""

    def update_part(self, number: int, names: Names) -> str:
        """The function for the UPDATE part of a round."""
        title = self.described.rounds[number]
        classes = [cls for cls in self.messages().values() if self.round_of(cls) == number]
        lines = [
            f"// UPDATE of round {title}: process p hears some of the messages, and runs handlers on them.",
            f"static void update_{number + 1}(int p, int phase, int place) {{",
            *self._heard(classes),
        ]
        actions = self._actions(names, "            ")
        handlers = [
            (cls, handler)
            for cls, handler in self.system.handlers()
            if handler.kind == "message" and handler.messages[0] in classes
        ]
        if self.free and actions:
            lines.append("    bool took = false;")
        if not handlers:
            return "\n".join([*lines, "    (void)place;", *self._emptied(classes), "}", ""])
        lines += ["    while (__VERIFIER_nondet_bool()) {", "        earliest = latest = 0;"]
        lines.append(f"        switch (pick({len(handlers) + bool(actions)})) {{")
        for case, (cls, handler) in enumerate(handlers):
            lines += self._receipt(
                case, cls, handler, names[cls.__name__, handler.name], took=bool(self.free and actions)
            )
        if actions:
            lines.append(f"        case {len(handlers)}:  // an action that sends nothing")
            if self.free:
                lines.append("            __VERIFIER_assume(took);")
            else:
                lines.append("            __VERIFIER_assume(clock_[p] <= 2 * place + 1);")
                lines += self._nothing_enabled(handlers, "            ")
            lines += [actions, "            __VERIFIER_assume(earliest == 0);", "            break;"]
        lines += [
            "        }",
            "        if (2 * latest > clock_[p]) clock_[p] = 2 * latest;",
            "    }",
        ]
        if not self.free:
            lines.append("    // A process takes what it hears.")
            lines += self._nothing_enabled(handlers, "    ")
        return "\n".join([*lines, *self._emptied(classes), "}", ""])

    def _heard(self, classes: list[type[Message]]) -> list[str]:
        """The heard-of set of process p."""
        assumed = self.described.assumed
        full = " || ".join(f"full_{cls.__name__}[phase][p][q]" for cls in classes)
        full = f"({full})" if len(classes) > 1 else full
        lines = ["    bool heard[N];  // the heard-of set"]
        if isinstance(assumed, Deliver):
            least = len(self.described.processes) - assumed.missing(len(self.described.processes))
            lines += [
                "    int sent = 0, received = 0;",
                "    for (int q = 0; q < N; q++) {",
                f"        heard[q] = {full} && __VERIFIER_nondet_bool();",
                f"        sent += {full};",
                "        received += heard[q];",
                "    }",
                f"    __VERIFIER_assume(received >= {least} || received == sent);",
            ]
        elif isinstance(assumed, Kernel):
            must = "(q == kernel || p == kernel || " if assumed.mutual else "(q == kernel || "
            lines.append(f"    for (int q = 0; q < N; q++) heard[q] = {full} && {must}__VERIFIER_nondet_bool());")
        else:
            lines.append(f"    for (int q = 0; q < N; q++) heard[q] = {full} && __VERIFIER_nondet_bool();")
        return lines

    def _fits(self, cls: type[Process], handler: Handler, q: str) -> str:
        """The condition that a handler may consume the message of process q."""
        name, key = handler.messages[0].__name__, (cls.__name__, handler.name)
        tests = [f"heard[{q}]", f"full_{name}[phase][p][{q}]"]
        if handler.role is not None:
            senders = [i for i, c in enumerate(self.system.classes) if plays(c, handler.role)]
            if len(senders) < len(self.system.classes):
                tests.append("(" + " || ".join(f"{q} == {i}" for i in senders) + ")")
        if key in self.guards:
            tests.append(f"{'_'.join(key)}_guard(p, mailbox_{name}[phase][p][{q}])")
        return " && ".join(tests)

    def _size(self, cls: type[Process], handler: Handler) -> str:
        size = handler.size
        if isinstance(size, Quorum):
            return str(self.system.quorum_size(size))
        return str(size) if isinstance(size, int) else f"{cls.__name__}_{handler.name}_size(p)"

    def _receipt(self, case: int, cls: type[Process], handler: Handler, function: str, *, took: bool) -> list[str]:
        """A case: a handler takes messages."""
        name = handler.messages[0].__name__
        condition = self._processes(cls)
        lines = [f"        case {case}: {{  // {handler.name}"]
        if condition:
            lines.append(f"            __VERIFIER_assume({condition});")
        if handler.quorum is None:
            lines += [
                "            int q = pick(N);",
                f"            __VERIFIER_assume({self._fits(cls, handler, 'q')});",
                "            heard[q] = false;",
                "            clock_[p] = 2 * place + 1;",
                f"            {function}(p, mailbox_{name}[phase][p][q]);",
            ]
        else:
            c = self.unit.structs.name(sequence(Type("record", cls=handler.messages[0])))
            lines += [
                f"            {c} messages;",
                "            messages.length = 0;",
                "            for (int q = 0; q < N; q++) {",
                f"                if ({self._fits(cls, handler, 'q')} && __VERIFIER_nondet_bool()) {{",
                f"                    messages.at[messages.length] = mailbox_{name}[phase][p][q];",
                "                    messages.length++;",
                "                    heard[q] = false;",
                "                }",
                "            }",
                f"            __VERIFIER_assume(messages.length == {self._size(cls, handler)});",
            ]
            if handler.same:
                test = " && ".join(self._same(handler, "messages.at[i]", "messages.at[0]"))
                lines.append(f"            for (int i = 1; i < messages.length; i++) __VERIFIER_assume({test});")
            lines += ["            clock_[p] = 2 * place + 1;", f"            {function}(p, messages);"]
        return [*lines, *(["            took = true;"] if took else []), "            break;", "        }"]

    def _same(self, handler: Handler, one: str, other: str) -> list[str]:
        members = dict(self.unit.structs.members(Type("record", cls=handler.messages[0])))
        return [self.unit.structs.equal(members[f], f"{one}.{f}", f"{other}.{f}") for f in handler.same]

    def _nothing_enabled(self, handlers: list[tuple[type[Process], Handler]], indent: str) -> list[str]:
        """No handler can take messages that are heard."""
        lines = []
        for cls, handler in handlers:
            condition, name = self._processes(cls), handler.messages[0].__name__
            mine = f"({condition}) && " if condition else ""
            lines.append(f"{indent}for (int q = 0; q < N; q++) {{")
            if handler.quorum is None:
                lines.append(f"{indent}    __VERIFIER_assume(!({mine}{self._fits(cls, handler, 'q')}));")
            else:
                boxes = [f"mailbox_{name}[phase][p][{x}]" for x in ("r", "q")]
                same = "".join(f" && {test}" for test in self._same(handler, *boxes))
                lines += [
                    f"{indent}    int count = 0;",
                    f"{indent}    if ({mine}{self._fits(cls, handler, 'q')}) {{",
                    f"{indent}        for (int r = 0; r < N; r++) if ({self._fits(cls, handler, 'r')}{same}) count++;",
                    f"{indent}        __VERIFIER_assume(count < {self._size(cls, handler)});",
                    f"{indent}    }}",
                ]
            lines.append(f"{indent}}}")
        return lines

    def _emptied(self, classes: list[type[Message]]) -> list[str]:
        return [
            f"    for (int q = 0; q < N; q++) full_{cls.__name__}[phase][p][q] = false;  // the others are lost"
            for cls in classes
        ]
