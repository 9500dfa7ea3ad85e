"""The sequential program of a round-based protocol (paper 002, section 5, Algorithm 1).

Round after round, each process in turn takes the messages of the round that were sent to it (`update`) and then sends those
of the next (`send`). What it does not take is lost. Only one process has the turn, so that nothing is interleaved.

One process of the protocol stays one process of the program, with its fields and a *ghost* of ours, so that the engine
tabulates each one's steps apart. In every round each process gets exactly one `Mail` from each, empty or not, and takes
them all in one quorum transition. No message is needed to pass the turn: a process holds back its mail for the one that comes
after it until its own turn ends. Where processes are created, sending is a pass of its own after all updates,
because only then it is known who takes part.

A run of the program is a run of the protocol in which some messages are late for ever; docs/rounds.md proves the converse.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid
from plait.model.message import Message
from plait.model.network import unordered
from plait.model.process import Handler, Process
from plait.model.system import System, plays
from plait.rounds.assumptions import Assumption, Lost, assumption
from plait.rounds.clock import CONDITIONS, Breach, where
from plait.rounds.firing import Catcher, Fired, Heard, Letter, Protocol
from plait.rounds.refusal import refuse
from plait.rounds.views import viewed

PASS = "pass"  # noqa: S105


@dataclasses.dataclass(frozen=True)
class Token:
    """What travels with the turn: crashes that may still happen, what the assumption notes, and who takes part."""

    budgets: tuple[int, ...] = ()
    note: Any = None
    alive: tuple[Pid, ...] = ()
    born: tuple[Pid, ...] = ()
    """Created in this round; they take part from the next one on."""


@dataclasses.dataclass(frozen=True)
class Turn:
    """Where a process is in its turn when it has more than one step to take."""

    stage: str
    token: Token
    heard: Heard = ()
    took: bool = False
    """Whether it has taken a message of this round."""


@dataclasses.dataclass(frozen=True)
class Ghost:
    """What the program adds to the fields of a process."""

    place: int = 0
    """The round whose mail it waits for."""
    ahead: int = 0
    """Its clock, if that is later than the round it is in (0 otherwise)."""
    letters: tuple[Letter, ...] = ()
    """Messages that it made for later rounds."""
    kept: Message | None = None
    """Its message of this round for the process after it."""
    turn: Turn | None = None
    members: int = 0
    silent: bool = False
    """Crashed."""


class Mail(Message):
    """What one process sends to another in a round: a message of the protocol, or nothing."""

    place: int
    contents: Message | None = None
    token: Token | None = None
    """With it, the receiver gets the turn."""


class Begin(Message):
    """The turn to send, where sending is a pass of its own."""

    place: int
    token: Token


@dataclasses.dataclass(frozen=True)
class Unheard:
    """A choice: the senders whose messages of this round are lost to a process."""

    senders: tuple[Pid, ...]
    note: Any


class Option(NamedTuple):
    """A step that may be taken now."""

    step: Fired
    handler: Handler
    script: Sequence[int] | None = None


class Program(Protocol):
    """Algorithm 1 for one System: what all its processes know."""

    def __init__(self, system: System, phases: int, assumed: Assumption) -> None:
        refuse(system)
        super().__init__(system)
        self.phases, self.assumed = phases, assumed
        self.end = self.calendar.last(phases)
        self.grows = any(system.spare.values())
        self.beyond = False
        """Whether a message of a later phase than the last one was made."""
        self.now = 0
        self.classes: dict[str, type[Process]] = {}
        for cls in dict.fromkeys(system.classes):
            self.classes[cls.__name__] = _sequential(cls, self)

    def make(self) -> System:
        """The program, as a System to check."""
        everyone = tuple(self.system.pids[: len(self.system.processes)])
        processes = []
        for process in self.system.processes:
            fields = {name: copy.deepcopy(process.__dict__[name]) for name in process.__plait_fields__}
            processes.append(self.classes[process.id.role](**fields, ghost=Ghost(members=len(everyone))))
        made = System(
            processes,
            network=unordered(),
            properties=[viewed(p) for p in self.system.properties],
            spare={self.classes[cls.__name__]: count for cls, count in self.system.spare.items()},
            name=self.system.name,
        )
        made.target, made.parameters = self.system.target, self.system.parameters
        return made

    def start(self) -> Token:
        everyone = tuple(self.system.pids[: len(self.system.processes)])
        return Token(tuple(f.budget for f in self.system.faults), None, everyone)

    def spawn(self, catcher: Catcher, real: Any, role: type[Process], fields: dict[str, Any]) -> Pid:
        first = len(self.system.processes)
        slots = [p for p in self.system.pids[first:] if p.role == role.__name__]
        if real is None and slots:  # a trial: which slot is free is not known, nor does it matter
            catcher.children.append(slots[0])
            return slots[0]
        cls = self.classes.get(role.__name__, role)
        child: Pid = real.spawn(cls, {**fields, "ghost": Ghost(place=self.now)})
        catcher.children.append(child)
        return child

    def crashes(self, pid: Pid, token: Token) -> Iterator[int]:
        """The faults that may hit a process."""
        cls = self.system.classes[self.system.index[pid]]
        for number, fault in enumerate(self.system.faults):
            if token.budgets[number] and (not fault.roles or any(plays(cls, role) for role in fault.roles)):
                yield number


class Sequential(Process):
    """A process of the program: the turns of Algorithm 1 around the handlers of the protocol."""

    ghost: Ghost = Ghost()
    rounds_program: ClassVar[Program]

    def rounds_begin(self) -> None:
        """What the protocol does before its first step; and empty mail, so that the first turn can begin."""
        program = self.rounds_program
        for handler in program.of(self):
            if handler.kind == "init":
                self._settle(handler, program.fire(self, handler, ()), 0, None)
        token = program.start()
        if program.grows:
            if self.id == token.alive[0]:
                self.send(self.id, Begin(1, token))
            return
        self._mail(0, token)

    def rounds_update(self, mails: tuple[Mail, ...]) -> None:
        """Take the mail of a round, and the turn: the UPDATE part, as far as its first step."""
        program, ghost = self.rounds_program, self.ghost
        token = next(m.token for m in mails if m.token is not None)
        heard = tuple((m.sender, m.contents) for m in mails if m.contents is not None)
        if ghost.silent:
            heard = ()
        if not program.assumed.free:
            if self.id == token.alive[0]:
                token = dataclasses.replace(token, note=program.assumed.start(token.alive))
            if not ghost.silent:
                token, heard = self._lose(token, heard)
        self._go_on(Turn("update", token, heard), fresh=True)

    def rounds_send(self, begin: Begin) -> None:
        """Take the turn to send, where that is a pass of its own."""
        self.ghost = dataclasses.replace(self.ghost, place=begin.place, members=len(begin.token.alive))
        self._go_on(Turn("send", begin.token), fresh=True)

    def rounds_more(self) -> None:
        """Go on with the turn."""
        turn = self.ghost.turn
        assert turn is not None
        self.ghost = dataclasses.replace(self.ghost, turn=None)
        self._go_on(turn, fresh=False)

    # -- a turn ----------------------------------------------------------------------------------------------------

    def _lose(self, token: Token, heard: Heard) -> tuple[Token, Heard]:
        """Choose which messages are lost, as the assumption allows."""
        program = self.rounds_program
        senders = tuple(sender for sender, _ in heard)
        options: dict[Unheard, Lost] = {}
        for lost, note in program.assumed.losses(token.note, self.id, senders, token.alive):
            options.setdefault(Unheard(tuple(sorted(lost)), note), lost)
        chosen = self.choose(list(options)) if len(options) > 1 else next(iter(options))
        kept = tuple(entry for entry in heard if entry[0] not in options[chosen])
        return dataclasses.replace(token, note=chosen.note), kept

    def _go_on(self, turn: Turn, *, fresh: bool) -> None:
        """Take at most one step of the protocol, and end the turn if there is no other to take."""
        program, fired = self.rounds_program, False
        while True:
            options = [] if self.ghost.silent else self._options(turn)
            if fired and options:
                self.ghost = dataclasses.replace(self.ghost, turn=turn)
                return
            menu: list[Any] = [option.step for option in options]
            if not self.ghost.silent and not fired and (fresh or options):
                menu += [Fired(self._place(turn), int(turn.stage == "update"), "crash", (), (n,)) for n in program.crashes(self.id, turn.token)]
            must = turn.stage == "update" and not program.assumed.free and any(option.step.consumed for option in options)
            if not must:
                menu.append(PASS)
            chosen = PASS if menu[0] is PASS else self.choose(menu)
            if chosen is PASS:
                if turn.stage == "send" or program.grows or self.ghost.place == program.end:
                    return self._end(turn)
                turn = Turn("send", turn.token)
                fresh = False
            elif chosen.handler == "crash":
                turn, fired = self._crash(turn, chosen.choices[0]), True
            else:
                turn, fired = self._fire(turn, next(o for o in options if o.step is chosen)), True

    def _place(self, turn: Turn) -> int:
        """The round of the turn: mail is made for the round after the one it was taken in."""
        ahead = turn.stage == "send" and not self.rounds_program.grows
        return self.ghost.place + ahead

    def _options(self, turn: Turn) -> list[Option]:
        """The steps of the protocol that may be taken now."""
        program, place = self.rounds_program, self._place(turn)
        options = []
        if turn.stage == "update":
            for handler, consumed in program.receipts(self, turn.heard):
                _, breach = program.calendar.consumed(self.ghost.ahead, [place])
                self._refuse(handler, breach)
                options.append(Option(Fired(place, 1, handler.name, consumed), handler))
        if turn.stage == "send" or turn.took:
            for handler in program.actions(self):
                for trial in program.trials(self, handler):
                    program.beyond |= bool(trial.places) and min(trial.places) > program.end
                    if not trial.places or (turn.stage == "send" and min(trial.places) == place):
                        step = Fired(place, int(turn.stage == "update"), handler.name, (), trial.choices)
                        options.append(Option(step, handler, trial.script))
        return options

    def _fire(self, turn: Turn, option: Option) -> Turn:
        program, chosen = self.rounds_program, option.step
        program.now = chosen.place + 1
        catcher = program.fire(self, option.handler, chosen.consumed, option.script)
        self._settle(option.handler, catcher, chosen.place, turn)
        token = turn.token
        if catcher.children:
            token = dataclasses.replace(token, born=(*token.born, *catcher.children))
        left = tuple(entry for entry in turn.heard if entry not in chosen.consumed)
        return dataclasses.replace(turn, token=token, heard=left, took=turn.took or bool(chosen.consumed))

    def _settle(self, handler: Handler, catcher: Catcher, place: int, turn: Turn | None) -> None:
        """Move the clock, and put what was sent among the letters."""
        program, ghost = self.rounds_program, self.ghost
        clock = 2 * place + 1 if turn is not None and turn.stage == "update" else max(ghost.ahead, 2 * place)
        clock, breach = program.calendar.sent(clock, [letter.place for letter in catcher.letters])
        self._refuse(handler, breach)
        letters = list(ghost.letters)
        for letter in catcher.letters:
            if any(letter[:2] == other[:2] for other in letters):
                what = f"sends {letter.to!r} a second message of {program.calendar.name(letter.place)}"
                self._refuse(handler, Breach(6, what))
            letters.append(letter)
        program.beyond |= any(letter.place > program.end for letter in letters)
        known = sorted((x for x in letters if x.place <= program.end), key=lambda x: (x.place, x.to))
        self.ghost = dataclasses.replace(ghost, letters=tuple(known), ahead=clock)

    def _refuse(self, handler: Handler, breach: Breach | None) -> None:
        if breach is not None:
            raise ModelError(
                f"not round-based: {where(type(self), handler)} {breach.what}, "
                f"against condition {breach.condition} ({CONDITIONS[breach.condition]})",
                hint="plait rounds tags decides all conditions, with a run to each step that breaks one",
            )

    def _crash(self, turn: Turn, number: int) -> Turn:
        budgets = tuple(b - (i == number) for i, b in enumerate(turn.token.budgets))
        self.ghost = dataclasses.replace(self.ghost, silent=True)
        return dataclasses.replace(turn, token=dataclasses.replace(turn.token, budgets=budgets), heard=())

    # -- the end of a turn -----------------------------------------------------------------------------------------

    def _end(self, turn: Turn) -> None:
        program, ghost, token = self.rounds_program, self.ghost, turn.token
        if turn.stage == "send":
            place = self._place(turn)
            if not program.grows:
                self._hand_over(token)
            self._mail(place, token)
        elif ghost.place == program.end or self.id != token.alive[-1]:
            self._hand_over(token)
            self.ghost = dataclasses.replace(self.ghost, place=ghost.place + 1, kept=None)
        else:  # the last update of a round: those created in it join, and the next round begins
            alive = tuple(sorted((*token.alive, *token.born), key=program.system.index.__getitem__))
            self.send(alive[0], Begin(ghost.place + 1, Token(token.budgets, None, alive)))
            self.ghost = dataclasses.replace(self.ghost, place=ghost.place + 1, kept=None)
        if self.ghost.ahead <= 2 * self.ghost.place:
            self.ghost = dataclasses.replace(self.ghost, ahead=0)

    def _hand_over(self, token: Token) -> None:
        """Give the turn to update to the next process, with the mail that was held back for it."""
        follower = self._follower(token)
        if follower is not None:
            self.send(follower, Mail(self.ghost.place, self.ghost.kept, token))

    def _mail(self, place: int, token: Token) -> None:
        """Send the mail of a round, except what the next process gets with the turn; the last one gives it to the first."""
        program, follower = self.rounds_program, self._follower(token)
        letters = {letter.to: letter.message for letter in self.ghost.letters if letter.place == place}
        for pid in letters:
            if pid not in token.alive:
                raise ModelError(
                    f"{self.id!r} sends to {pid!r} in {program.calendar.name(place)}, before the round it takes part in",
                    hint="send to a process only after it was created, in a later round",
                )
        for pid in token.alive:
            if pid != follower:
                turn = token if follower is None and pid == token.alive[0] else None
                self.send(pid, Mail(place, letters.get(pid), turn))
        if program.grows and follower is not None:
            self.send(follower, Begin(place, token))
        left = tuple(letter for letter in self.ghost.letters if letter.place != place)
        kept = letters.get(follower) if follower is not None else None
        self.ghost = dataclasses.replace(self.ghost, place=place, letters=left, kept=kept)

    def _follower(self, token: Token) -> Pid | None:
        """Who comes next in the round."""
        position = token.alive.index(self.id)
        return token.alive[position + 1] if position + 1 < len(token.alive) else None


def _sequential(cls: type[Process], program: Program) -> type[Process]:
    """A class of the protocol as one of the program: the same fields and methods, other transitions."""
    if "ghost" in cls.__plait_fields__:
        raise ModelError(f"{cls.__name__} has a field 'ghost', which is the program's", hint="give it another name")
    everyone = len(program.system.processes)
    namespace = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "rounds_program": program,
    }
    made: type[Process] = type(cls.__name__, (cls, Sequential), namespace)
    handlers = [
        Handler("begin", "init", Sequential.rounds_begin),
        Handler(
            "update",
            "message",
            Sequential.rounds_update,
            Mail,
            lambda self, m: m.place == self.ghost.place,
            (lambda self: self.ghost.members or everyone) if program.grows else everyone,
        ),
        Handler("more", "action", Sequential.rounds_more, where=lambda self: self.ghost.turn is not None),
    ]
    if program.grows:
        handlers.append(Handler("send", "message", Sequential.rounds_send, Begin))
    made.__plait_handlers__ = tuple(handlers)
    return made


def sequentialize(system: System, *, phases: int = 3, assume: str | Assumption = "none") -> System:
    """The sequential program of a round-based System, as a System: what `plait check TARGET --rounds` checks."""
    return program_of(system, phases=phases, assume=assume).make()


def program_of(system: System, *, phases: int = 3, assume: str | Assumption = "none") -> Program:
    """The program before it is a System: it also knows what was left out."""
    if isinstance(phases, bool) or not isinstance(phases, int) or phases < 1:
        raise ModelError(f"phases={phases!r}", hint="give a number of phases, at least 1")
    if isinstance(assume, str):
        faults = sum(fault.budget for fault in system.faults) if system.faults else None
        assume = assumption(assume, faults=faults)
    return Program(system, phases, assume)
