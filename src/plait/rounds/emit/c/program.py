"""The text of a sequential program in C: Algorithm 1 around the functions of the protocol."""

from __future__ import annotations

import textwrap

from plait.ir.scope import VIEW, Instance
from plait.kernel.errors import ModelError
from plait.model.message import Message
from plait.model.process import Handler, Process
from plait.model.quorum import Quorum
from plait.model.tag import tag_of
from plait.rounds.assumptions import Custom, Kernel
from plait.rounds.calendar import where
from plait.rounds.emit.c.parts import Names, Parts
from plait.rounds.emit.c.statements import Unit
from plait.rounds.emit.c.types import BOOL, PROCESS, Type, UnknownTypeError, sequence
from plait.rounds.emit.description import Description

_HEAD = """// {title}
//
// Made by `plait rounds emit {origin} --to c`. Check it with `plait bmc FILE`, or with CBMC.
//
// In each phase, and in each round of the phase ({rounds}):
//   SEND    one process after another runs actions whose messages belong to this round, or none of them
//   UPDATE  one process after another hears {heard}, and runs handlers on them;
//           messages that are not heard in their round are lost
//
// An assertion that holds here holds for the protocol, for this number of phases, if the protocol is round-based:
// `plait rounds tags {origin}` decides this.{reachable}

#include <assert.h>
#include <stdbool.h>

extern bool __VERIFIER_nondet_bool(void);
extern void __VERIFIER_assume(int);

#define N {n}  // processes: {pids}
#define PHASES {phases}
#define ROUNDS {count}
#define LAST (PHASES * ROUNDS)  // rounds are numbered through all phases, from 1
#define CAPACITY {capacity}  // the largest number of items in a sequence; more is a failed assertion
#define NONE (-2147483647 - 1)
{texts}"""

_BASE = {
    "pick": """\
// One of 0, …, n - 1.
static int pick(int n) {
    int chosen = 0;
    while (chosen < n - 1 && __VERIFIER_nondet_bool()) chosen++;
    return chosen;
}
""",
    "position": """\
// The position of an item, as Python counts: -1 is the last one.
static int position(int i, int length) {
    if (i < 0) i += length;
    assert(0 <= i && i < length);
    return i;
}
""",
    "floor_div": """\
static int floor_div(int a, int b) {
    assert(b != 0);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
""",
    "floor_mod": """\
static int floor_mod(int a, int b) {
    assert(b != 0);
    return a - b * (a / b - (a % b != 0 && (a < 0) != (b < 0)));
}
""",
}
"""Functions that the program has if it uses them."""


def c_text(described: Description) -> str:
    """The text of the file."""
    return emitted(described)[0]


def emitted(described: Description) -> tuple[str, Unit]:
    """The text of the file, and the types that it uses."""
    _refuse(described)
    program = _Program(described)
    return program.text(), program.unit


def _refuse(described: Description) -> None:
    """Refuse what the C program does not have."""
    system = described.system
    if described.grows:
        raise ModelError(f"{system.name} creates processes, which --to c does not support", hint="use --to python")
    if system.faults:
        raise ModelError(f"{system.name}: --to c does not support {system.faults[0]}", hint="use --to python")
    if isinstance(described.assumed, Custom):
        raise ModelError(
            f"--assume {described.assumed}: --to c does not support predicates",
            hint="use --to python, or one of the assumptions none, reliable, n-f, majority, common, kernel",
        )


class _Program(Parts):
    """Writes one program."""

    def __init__(self, described: Description) -> None:
        super().__init__(described)
        self.steps: dict[tuple[str, str], int] = {}
        self.sizes: dict[tuple[str, str], int] = {}

    def text(self) -> str:
        """The whole file."""
        unit = self.unit
        for cls, handler in self.system.handlers():
            self._enter(cls, handler)
        checked = [(p, unit.entry(f"property {p.name}", p.predicate, (VIEW,))) for p in self.system.properties]
        unit.complete()
        names = self._compile()
        asserted: list[tuple[str, str]] = []
        wanted: list[tuple[str, str]] = []
        for prop, number in checked:
            try:
                name, result = unit.compiled(number, (), name=f"property_{prop.name}")
            except UnknownTypeError as error:
                raise ModelError(
                    f"property {prop.name} cannot be written in C: {error}", hint="use --to python"
                ) from None
            if result != BOOL:
                raise ModelError(
                    f"property {prop.name} cannot be written in C: its result is not bool", hint="use --to python"
                )
            (asserted if prop.kind == "always" else wanted).append((prop.name, name))
        arrays = self._arrays()
        send_functions = [self._send_function(cls) for cls in self.messages().values()]
        parts = [
            self.send_part(names),
            *(self.update_part(number, names) for number in range(len(self.described.rounds))),
        ]
        rest = [
            *send_functions,
            _title("the protocol"),
            *unit.functions,
            self._check(asserted, wanted),
            _title("the sequential program (Algorithm 1)"),
            *parts,
            self._update_switch(),
            self._main(names),
        ]
        used = "\n".join([*unit.structs.functions, *rest])
        if "INDEX[" not in used:
            arrays = arrays[1:]
        return "\n".join(
            [
                self._head(wanted),
                _title("values"),
                *unit.structs.declared,
                "",
                *(text for name, text in _BASE.items() if f"{name}(" in used),
                *unit.structs.functions,
                _title("the variables of all processes, and the mailboxes"),
                *arrays,
                *rest,
            ]
        )

    # -- the protocol ----------------------------------------------------------------------------------------------------

    def _enter(self, cls: type[Process], handler: Handler) -> None:
        key, said = (cls.__name__, handler.name), where(cls, handler)
        kinds = (Instance(cls), None) if handler.kind == "message" else (Instance(cls),)
        self.steps[key] = self.unit.entry(said, handler.function, kinds)
        if handler.where is not None:
            self.guards[key] = self.unit.entry(f"the guard of {said}", handler.where, kinds)
        if not isinstance(handler.size, int | Quorum):
            self.sizes[key] = self.unit.entry(f"the quorum of {said}", handler.size, kinds[:1])

    def _compile(self) -> Names:
        """The C functions of the handlers, by class and name."""
        unit, names = self.unit, {}
        for cls, handler in self.system.handlers():
            key = (cls.__name__, handler.name)
            label = "_".join(key)
            message = _message(handler)
            try:
                taken = (PROCESS,) if message is None else (PROCESS, message)
                if key in self.guards:
                    _, result = unit.compiled(self.guards[key], taken, name=f"{label}_guard")
                    if result != BOOL:
                        raise UnknownTypeError("a guard whose value is not bool")
                if key in self.sizes:
                    unit.compiled(self.sizes[key], (PROCESS,), name=f"{label}_size")
                given = taken if handler.quorum is None or message is None else (PROCESS, sequence(message))
                names[key], _ = unit.compiled(self.steps[key], given, name=label)
            except UnknownTypeError as error:
                raise ModelError(
                    f"{where(cls, handler)} cannot be written in C: {error}", hint="use --to python"
                ) from None
        return names

    def messages(self) -> dict[str, type[Message]]:
        """All classes of messages that are sent or consumed."""
        found = dict(self.unit.messages)
        for _, handler in self.system.handlers():
            found |= {m.__name__: m for m in handler.messages}
        for cls in found.values():
            if any(issubclass(other, cls) and other is not cls for other in found.values()):
                raise ModelError(f"--to c: a message class derives from {cls.__name__}", hint="use --to python")
        return dict(sorted(found.items(), key=lambda entry: (self.round_of(entry[1]), entry[0])))

    def round_of(self, cls: type[Message]) -> int:
        tag = tag_of(cls)
        if tag is None or tag.round not in self.described.rounds:
            raise ModelError(
                f"{cls.__name__} belongs to none of the rounds: {', '.join(self.described.rounds)}",
                hint=f'decorate {cls.__name__} with @tagged(phase="…", round="…")',
            )
        return self.described.rounds.index(tag.round)

    # -- texts -----------------------------------------------------------------------------------------------------------

    def _head(self, wanted: list[tuple[str, str]]) -> str:
        described = self.described
        reachable = ""
        if wanted:
            first = wanted[0][0]
            names = ", ".join(name for name, _ in wanted)
            reachable = (
                f"\n// Reachable properties: {names}. With -D SHOW_{first}, an assertion fails in the states in which\n"
                f"// {first} is true: a counterexample is an example."
            )
        texts = "".join(f"#define {name} {number}\n" for name, number in self.unit.text_numbers().items())
        return _HEAD.format(
            title=described.title,
            origin=described.origin,
            rounds=", ".join(described.rounds),
            heard="some of the messages of this round"
            if self.free
            else f"messages of this round, as {described.assumed} requires",
            n=len(described.processes),
            pids=", ".join(map(repr, described.processes)),
            phases=described.phases,
            count=len(described.rounds),
            capacity=max(8, len(described.processes) * described.phases),
            texts=texts,
            reachable=reachable,
        )

    def _arrays(self) -> list[str]:
        """One array for each variable, and the mailboxes."""
        unit, lines = self.unit, []
        index = ", ".join(str(pid.index) for pid in self.described.processes)
        lines.append(f"static const int INDEX[N] = {{{index}}};  // of each process among those of its class")
        for name, type_ in unit.fields.items():
            values = [self._initial(process, name, type_) for process in self.system.processes]
            lines.append(f"static {unit.structs.name(type_)} s_{name}[N] = {{{', '.join(values)}}};")
        lines.append("")
        lines.append("static int clock_[N];  // 2 t after a send in round t, 2 t + 1 after a receipt in it")
        lines.append(
            "static int earliest, latest;  // the first and the last round in which the current step sends; 0 for none"
        )
        if isinstance(self.described.assumed, Kernel):
            lines.append("static int kernel;  // the process that all processes hear in this round")
        for name, cls in self.messages().items():
            c = unit.structs.name(Type("record", cls=cls))
            lines.append(f"static {c} mailbox_{name}[PHASES + 1][N][N];  // of each phase, receiver and sender")
            lines.append(f"static bool full_{name}[PHASES + 1][N][N];")
        return [*lines, ""]

    def _initial(self, process: Process, name: str, type_: Type) -> str:
        if name not in process.__plait_fields__:
            return "0" if type_.scalar else "{0}"
        text = self.unit.literal(process.__dict__[name], type_)
        return text.partition(")")[2] if text.startswith("(") and not type_.scalar else text

    def _send_function(self, cls: type[Message]) -> str:
        """The function that puts a message into a mailbox."""
        tag = tag_of(cls)
        assert tag is not None
        number, name = self.round_of(cls) + 1, cls.__name__
        phase = f"m.{tag.phase}" if isinstance(tag.phase, str) else str(tag.phase)
        c = self.unit.structs.name(Type("record", cls=cls))
        return textwrap.dedent(f"""\
            static void send_{name}(int self, int to, {c} m) {{
                int place = ({phase} - 1) * ROUNDS + {number};
                assert({phase} >= 1 && 2 * place >= clock_[self]);  // the protocol is round-based
                if (earliest == 0 || place < earliest) earliest = place;
                if (place > latest) latest = place;
                if (place > LAST) return;  // nobody receives it
                assert(!full_{name}[{phase}][to][self]);  // the protocol is round-based
                m.sender = self;
                mailbox_{name}[{phase}][to][self] = m;
                full_{name}[{phase}][to][self] = true;
            }}
            """)

    def _check(self, asserted: list[tuple[str, str]], wanted: list[tuple[str, str]]) -> str:
        lines = ["// The properties, after each turn.", "static void check(void) {"]
        lines += [f"    assert({name}());" for _, name in asserted]
        for prop, name in wanted:
            lines += [f"#ifdef SHOW_{prop}", f"    assert(!{name}());", "#endif"]
        return "\n".join([*lines, "}", ""])

    def _main(self, names: Names) -> str:
        lines = ["int main(void) {"]
        begins = [
            f"    {names[type(p).__name__, h.name]}({i});"
            for i, p in enumerate(self.system.processes)
            for h in type(p).__plait_handlers__
            if h.kind == "init"
        ]
        if begins:
            lines.append("    // before the first round")
            for line in begins:
                process = line.rpartition("(")[2].rstrip(");")
                lines += [
                    "    earliest = latest = 0;",
                    line,
                    f"    if (2 * latest > clock_[{process}]) clock_[{process}] = 2 * latest;",
                ]
        lines += [
            "    check();",
            "    for (int place = 1; place <= LAST + 1; place++) {",
            "        for (int turn = 0; turn < 2 * N; turn++) {",
            "            if (turn < N) send(turn, place);",
            "            else if (place <= LAST) update(turn - N, place);",
            "            check();",
            "        }",
            "    }",
            "    return 0;",
            "}",
            "",
        ]
        return "\n".join(lines)

    def _update_switch(self) -> str:
        lines = ["// UPDATE: process p hears messages of a round, and runs handlers on them."]
        lines += ["static void update(int p, int place) {", "    int phase = (place - 1) / ROUNDS + 1;"]
        if isinstance(self.described.assumed, Kernel):
            lines.append("    if (p == 0) kernel = pick(N);")
        lines.append("    switch ((place - 1) % ROUNDS) {")
        for number, name in enumerate(self.described.rounds):
            lines.append(f"    case {number}: update_{number + 1}(p, phase, place); break;  // {name}")
        return "\n".join([*lines, "    }", "}", ""])


def _title(text: str) -> str:
    return f"// -- {text} ".ljust(119, "-") + "\n"


def _message(handler: Handler) -> Type | None:
    return Type("record", cls=handler.messages[0]) if handler.messages else None
