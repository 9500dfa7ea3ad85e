"""The sequential program of a round-based protocol, as a System (Sequentialization, section 5, Algorithm 1).

In each round, one process after another consumes the messages of the round that were sent to it (`update`) and then
sends those of the next (`send`). Messages that it does not consume are lost. Only one process has the turn, so steps
are not interleaved.

Each process of the protocol is one process of the program, with the same fields, so that the engine tabulates the steps
of each process separately. In each round each process gets exactly one `Mail` from each process, empty or not, and
consumes them all in one quorum transition. Passing the turn needs no message of its own: a process holds back its mail
for the next process until its turn ends. Rounds in which no process sends are left out. After the last round, processes
run the actions with which they leave the last phase. A created process takes part from the next round, and sends from the
round after it. A process that is created in the last round, or later, runs only actions that send nothing.

A run of the program is a run of the protocol in which some messages are never delivered; docs/reference/rounds.md
proves the converse.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, ClassVar

from plait.kernel.errors import Argument, ModelError, UsageError
from plait.kernel.pid import Pid
from plait.model.network import unordered
from plait.model.process import Handler, Process
from plait.model.system import System, plays
from plait.rounds.assumptions import Assumption, Deliver, assumption
from plait.rounds.conditions.audit import Audit
from plait.rounds.program.creation_order import CreationOrder
from plait.rounds.program.protocol import HandlerRun, Protocol
from plait.rounds.program.turn import Ghost, Held, Mail, Token, Turn
from plait.rounds.requirements import refuse

PHASES = 3
"""How many phases a program has, by default."""


class Program(Protocol):
    """Algorithm 1 for one System: what all its processes share."""

    def __init__(
        self, system: System, phases: int, assumed: Assumption, audited: bool = False, compared: bool = False
    ) -> None:
        refuse(system)
        super().__init__(system)
        self.phases, self.assumed = phases, assumed
        self.end = self.calendar.last(phases)
        self.grows = any(system.spare.values())
        self.creation_order = CreationOrder(system, compared)
        for cls in dict.fromkeys(system.classes):
            named = self.handlers[cls.__name__]
            named.update({name: self.creation_order.watching(cls, handler) for name, handler in named.items()})
        self.everyone = tuple(system.pids[: len(system.processes)])
        self.beyond = False
        """Whether the protocol goes beyond the last phase: a message of a later phase, or a process that begins there."""
        self.audit = Audit(self) if audited else None
        self.turn: Any = None
        """The current turn."""
        self.classes = {cls.__name__: _sequential(cls, self) for cls in dict.fromkeys(system.classes)}

    def make(self) -> System:
        """The program, as a System to check."""
        processes = []
        for process in self.system.processes:
            fields = {name: copy.deepcopy(process.__dict__[name]) for name in process.__plait_fields__}
            if self.grows:
                fields["rounds_members"] = len(self.everyone)
            processes.append(self.classes[process.id.role](**fields))
        made = System(
            processes,
            network=unordered(),
            properties=[self.creation_order.viewed(p, bool(self.system.faults)) for p in self.system.properties],
            spare={self.classes[cls.__name__]: count for cls, count in self.system.spare.items()},
            name=self.system.name,
        )
        made.target, made.parameters = self.system.target, self.system.parameters
        return made

    def start(self) -> Token:
        """The first turn."""
        return Token(tuple(f.budget for f in self.system.faults), None, self.everyone, goal=0)

    def spawn(self, run: HandlerRun, real: Any, role: type[Process], fields: dict[str, Any]) -> Pid:
        slots = [p for p in self.system.pids[len(self.everyone) :] if p.role == role.__name__]
        if real is None:  # a trial: any slot will do
            if not slots:
                raise ModelError(
                    f"spawns {role.__name__}, but the System declares no spare slots for it",
                    hint=f"System(..., spare={{{role.__name__}: 1}})",
                )
            run.children.append(slots[0])
            return slots[0]
        cls = self.classes.get(role.__name__, role)
        token, me, first = self.turn.token, self.turn.me, self.turn.token.goal
        if first > self.end:  # it begins after the last round: it gets only the turn
            self.beyond = True
            mails, first = 1, max(first, self.turn.ahead // 2 + 1)
        else:  # it gets mail from its parent and the processes after it, and the turn from the one created before it
            mails = len(token.alive) - token.alive.index(me) + bool(token.born or run.children)
        child: Pid = real.spawn(cls, {**fields, "rounds_members": mails, "rounds_first": first})
        run.children.append(child)
        self.creation_order.creators.setdefault(role.__name__, set()).add(me)
        return child

    def crashes(self, pid: Pid, budgets: tuple[int, ...]) -> Iterator[int]:
        """The faults that may crash a process."""
        cls = self.system.classes[self.system.index[pid]]
        for number, fault in enumerate(self.system.faults):
            if budgets[number] and (not fault.roles or any(plays(cls, role) for role in fault.roles)):
                yield number


class Sequential(Process):
    """A process of the program: the transitions of Algorithm 1 instead of those of the protocol."""

    rounds_program: ClassVar[Program]

    def rounds_begin(self) -> None:
        """Run the @init methods of the protocol, and send empty mail so that the first turn can begin."""
        program, token = self.rounds_program, self.rounds_program.start()
        turn = Turn(program, self, "send", token, Ghost())
        for handler in program.of(self):
            if handler.kind == "init":
                turn.settle(handler, program.run(self, handler, ()))
        if program.audit:
            program.audit.start(self, turn.ahead)
        turn.mail()

    def rounds_update(self, mails: tuple[Mail, ...]) -> None:
        """Take the mail of a round, and the turn: the UPDATE part, up to its first step."""
        ghost = next((m.ghost for m in mails if m.ghost is not None), None)
        newborn = ghost is None
        if ghost is None:  # created in the last round: it takes part now, and sends from the next round
            first = self.rounds_first  # type: ignore[attr-defined]
            ghost = Ghost(first, 2 * first + 1)
            if self.rounds_program.audit:
                self.rounds_program.audit.start(self, ghost.ahead)
        token = next(m.token for m in mails if m.token is not None)
        heard = tuple((m.sender, m.contents) for m in mails if m.contents is not None)
        turn = Turn(self.rounds_program, self, "update", token, ghost, heard)
        turn.took = newborn
        if self.rounds_program.audit:
            self.rounds_program.audit.came(self, heard)
        turn.lose()
        turn.go_on(fresh=True)

    def rounds_more(self, held: Held) -> None:
        """Continue a turn."""
        turn = Turn(self.rounds_program, self, held.stage, held.token, held.ghost, held.heard)
        turn.took, turn.owes = held.took, held.owes
        turn.go_on(fresh=False)


class Growing(Process):
    """If processes are created, each knows how many there are in a round."""

    rounds_members: int = 1
    rounds_first: int = 0
    """The first round in which it takes part, until this round."""


class Mortal(Process):
    """If processes crash, each knows whether it has crashed."""

    rounds_silent: bool = False


def _sequential(cls: type[Process], program: Program) -> type[Process]:
    """A class of the protocol as one of the program: the same fields and methods, other transitions."""
    for name in dir(cls):
        if name.startswith("rounds_"):
            raise ModelError(
                f"{cls.__name__}.{name}: names that begin with rounds_ are reserved for the sequential program",
                hint="choose another name",
            )
    namespace = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "rounds_program": program,
    }
    more = [*([Growing] if program.grows else []), *([Mortal] if program.system.faults else [])]
    made: type[Process] = type(cls.__name__, (cls, Sequential, *more), namespace)
    size = (lambda self: self.rounds_members) if program.grows else len(program.everyone)
    fits = (lambda self, m: self.rounds_first in (0, m.place) or m.place > program.end) if program.grows else None
    handlers = [
        Handler("begin", "init", Sequential.rounds_begin),
        Handler("update", "message", Sequential.rounds_update, (Mail,), fits, size, ("place",)),
        Handler("more", "message", Sequential.rounds_more, (Held,)),
    ]
    made.__plait_handlers__ = tuple(handlers)
    return made


def sequentialize(system: System, *, phases: int = PHASES, assume: str | Assumption = "none") -> System:
    """The sequential program of a round-based System, as a System: what `plait check TARGET --rounds` checks."""
    return program_of(system, phases=phases, assume=assume).make()


def program_of(
    system: System,
    *,
    phases: int = PHASES,
    assume: str | Assumption = "none",
    audited: bool = False,
    compared: bool = False,
) -> Program:
    """The program before it is a System: it also knows what was left out.

    If audited, it records the messages that were not consumed; if compared, whether names of created processes matter.
    """
    if isinstance(phases, bool) or not isinstance(phases, int) or phases < 1:
        raise ModelError(f"phases={phases!r}: expected a whole number, 1 or more", hint="for example phases=3")
    if isinstance(assume, str):
        faults = sum(fault.budget for fault in system.faults) if system.faults else None
        assume = assumption(assume, faults=faults)
    n = len(system.processes)
    if isinstance(assume, Deliver) and assume.missing(n) >= n:
        raise UsageError(
            (Argument("assume", str(assume)), f": of {n} processes, all messages may be lost"),
            hint=("give ", Argument("assume", "none")),
        )
    return Program(system, phases, assume, audited, compared)


def phases_text(phases: int) -> str:
    """A number of phases in words."""
    return f"{phases} phase{'s' if phases > 1 else ''}"
