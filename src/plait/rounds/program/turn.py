"""A turn of a process in the sequential program (Sequentialization, Algorithm 1): UPDATE of a round, SEND of the next.

A transition of the program takes at most one step of the protocol, so that the program has all states of the protocol. If no
other step is possible (nearly always), the turn ends in the same transition.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid
from plait.model.message import Message
from plait.model.process import Handler, Process
from plait.rounds.assumptions import Lost
from plait.rounds.calendar import CONDITIONS, Breach, where
from plait.rounds.program.protocol import HandlerRun, Letter
from plait.rounds.program.step import CRASH, Heard, ProtocolStep

if TYPE_CHECKING:
    from plait.rounds.sequential import Program

PASS = "pass"
Stage = Literal["update", "send"]


@dataclasses.dataclass(frozen=True)
class Token:
    """What travels with the turn: crash budgets, the note of the assumption, the processes, and the next round."""

    budgets: tuple[int, ...] = ()
    note: Any = None
    alive: tuple[Pid, ...] = ()
    born: tuple[Pid, ...] = ()
    """Processes created in this round; they take part from the next round."""
    goal: int = 1
    """The round to send in."""
    loud: bool = False
    """Whether some process sends a message in it."""
    following: int = 0
    """The next round after it in which some process may send, as far as is known (0 for none)."""


@dataclasses.dataclass(frozen=True)
class Ghost:
    """What the program knows about a process besides its fields."""

    place: int = 0
    """The round whose mail it waits for."""
    ahead: int = 0
    """Its clock, if this is later than its round (0 otherwise)."""
    letters: tuple[Letter, ...] = ()
    """Its messages for later rounds."""
    kept: Message | None = None
    """Its message of this round for the next process."""


class Mail(Message):
    """What one process sends to another in a round: a message of the protocol, or nothing."""

    place: int
    contents: Message | None = None
    token: Token | None = None
    """If present, the receiver gets the turn."""
    ghost: Ghost | None = None
    """Only in the mail to itself. A ghost among the fields would only distinguish more states."""


class Held(Message):
    """An unfinished turn, held by its process."""

    stage: Stage
    token: Token
    ghost: Ghost
    heard: Heard = ()
    took: bool = False
    """Whether it has consumed a message of this round, or was created just before it."""


@dataclasses.dataclass(frozen=True)
class Unheard:
    """A choice: the senders whose messages of this round the process loses."""

    senders: tuple[Pid, ...]
    note: Any


class Option(NamedTuple):
    """A step of the protocol that is possible now."""

    step: ProtocolStep
    handler: Handler
    script: Sequence[int] | None = None


class Turn:
    """A turn in progress: it changes the process, and what the program knows about it."""

    def __init__(
        self, program: Program, process: Process, stage: Stage, token: Token, ghost: Ghost, heard: Heard = ()
    ) -> None:
        self.program, self.process, self.me = program, process, process.id
        self.stage, self.token, self.heard, self.took = stage, token, heard, False
        self.at = ghost.place
        self.ahead, self.letters, self.kept = ghost.ahead, ghost.letters, ghost.kept
        self.next = 0
        """The next round after this turn in which an action of the process may send (0 for none)."""

    @property
    def place(self) -> int:
        """The round of this part of the turn: mail is consumed in one round, and sent for a later one."""
        return self.token.goal if self.stage == "send" else self.at

    @property
    def silent(self) -> bool:
        return bool(self.program.system.faults) and self.process.rounds_silent  # type: ignore[attr-defined]

    def lose(self) -> None:
        """Choose which messages are lost, as the assumption allows."""
        if self.silent:
            self.heard = ()
        assumed = self.program.assumed
        if assumed.free:
            return
        if self.me == self.token.alive[0]:
            self.token = dataclasses.replace(self.token, note=assumed.start(self.token.alive))
        senders = tuple(sender for sender, _ in self.heard)
        options: dict[Unheard, Lost] = {}
        for lost, note in assumed.losses(self.token.note, self.me, senders, self.token.alive):
            options.setdefault(Unheard(tuple(sorted(lost)), note), lost)
        chosen = self.process.choose(list(options)) if len(options) > 1 else next(iter(options))
        self.heard = tuple(entry for entry in self.heard if entry[0] not in options[chosen])
        self.token = dataclasses.replace(self.token, note=chosen.note)

    def go_on(self, *, fresh: bool) -> None:
        """Take at most one step of the protocol, and end the turn if no other step is possible."""
        program, taken = self.program, False
        while True:
            options = [] if self.silent else self._options()
            crashes = [] if self.silent else list(program.crashes(self.me, self.token.budgets))
            last = bool(crashes) and self.stage == "update" and self.token.goal > program.end
            if taken and (options or last):
                return self._hold()
            menu: list[Any] = [option.step for option in options]
            if not taken and (fresh or options or last):
                part = int(self.stage == "update")
                menu += [ProtocolStep(self.place, part, CRASH, (), (n,)) for n in crashes]
            must = self.stage == "update" and not program.assumed.free and any(o.step.consumed for o in options)
            if not must:
                menu.append(PASS)
            chosen = PASS if menu[0] is PASS else self.process.choose(menu)
            if chosen is PASS:
                if self.heard and program.audit:
                    program.audit.passed(self.process, self.ahead, self.heard, self.place)
                if self.stage == "send" or self.token.goal > program.end:
                    return self._end()
                self.stage, self.heard, self.took, fresh = "send", (), False, False
                continue
            taken = True
            if chosen.handler == CRASH:
                self._crash(chosen.choices[0])
            else:
                self._take(next(o for o in options if o.step is chosen))

    # -- steps of the protocol -------------------------------------------------------------------------------------

    def _options(self) -> list[Option]:
        """The steps that are possible now: receipts in the UPDATE part; in the SEND part, actions that send in this round.

        Actions that send nothing are possible in the SEND part, and in the UPDATE part after the first receipt. A process
        that was just created may take them at once.
        """
        program, place, part = self.program, self.place, int(self.stage == "update")
        options, self.next = [], 0
        if self.heard:
            for handler, consumed in program.receipts(self.process, self.heard):
                options.append(Option(ProtocolStep(place, part, handler.name, consumed), handler))
        if self.stage == "send" or self.took:
            for handler in program.actions(self.process):
                for trial in program.trials(self.process, handler):
                    first = min(trial.places, default=None)
                    program.beyond |= first is not None and first > program.end
                    self.next = earliest(self.next, place + 1 if first is None else first if first > place else 0)
                    if first is None or (self.stage == "send" and first == place):
                        step = ProtocolStep(place, part, handler.name, (), trial.choices)
                        options.append(Option(step, handler, trial.script))
        return options

    def _take(self, option: Option) -> None:
        step, audit = option.step, self.program.audit
        before, self.program.turn = audit.key(self.process) if audit else None, self
        run = self.program.run(self.process, option.handler, step.consumed, option.script)
        if step.consumed:
            self._refuse(option.handler, self.program.calendar.consumed(self.ahead, [step.place])[1])
        self.settle(option.handler, run)
        if audit:
            audit.step(self.process, before, step.place, self.ahead if step.consumed or run.letters else None)
        if run.children:
            self.token = dataclasses.replace(self.token, born=(*self.token.born, *run.children))
        self.heard = tuple(entry for entry in self.heard if entry not in step.consumed)
        self.took |= bool(step.consumed)

    def settle(self, handler: Handler, run: HandlerRun) -> None:
        """Advance the clock, and add the messages to the letters."""
        program = self.program
        clock = 2 * self.place + 1 if self.stage == "update" else max(self.ahead, 2 * self.place)
        self.ahead, breach = program.calendar.sent(clock, [letter.place for letter in run.letters])
        self._refuse(handler, breach)
        if not run.letters:
            return
        letters = list(self.letters)
        for letter in run.letters:
            if any(letter[:2] == other[:2] for other in letters):
                what = f"sends {letter.to!r} a second message of {program.calendar.name(letter.place)}"
                self._refuse(handler, Breach(6, what))
            if letter.place <= program.end:
                letters.append(letter)
            else:
                program.beyond = True
        self.letters = tuple(sorted(letters, key=lambda letter: letter[:2]))

    def _refuse(self, handler: Handler, breach: Breach | None) -> None:
        if breach is None:
            return
        if self.program.audit:  # the checker shows a run to the failing step
            raise AssertionError
        raise ModelError(
            f"not round-based: {where(type(self.process), handler)} {breach.what}, "
            f"which breaks condition {breach.condition} ({CONDITIONS[breach.condition]})",
            hint="plait rounds tags decides all conditions, with a run to each step that breaks one",
            placed=True,
        )

    def _crash(self, number: int) -> None:
        budgets = tuple(b - (i == number) for i, b in enumerate(self.token.budgets))
        self.process.rounds_silent = True  # type: ignore[attr-defined]
        self.token, self.heard = dataclasses.replace(self.token, budgets=budgets), ()

    # -- the end of a transition, and of the turn --------------------------------------------------------------------

    def _ghost(self) -> Ghost:
        ahead = self.ahead if self.ahead > 2 * self.at else 0
        return Ghost(self.at, ahead, self.letters, self.kept)

    def _hold(self) -> None:
        ghost = Ghost(self.at, self.ahead, self.letters, self.kept)
        self.process.send(self.me, Held(self.stage, self.token, ghost, self.heard, self.took))

    def _end(self) -> None:
        if self.token.goal <= self.program.end:
            self._note()
        follower = self._follower(self.token.alive)
        if follower is not None:
            # The turn travels with the mail that was held back.
            self.process.send(follower, Mail(self.at, self.kept, self.token))
        if self.token.goal <= self.program.end:
            self.at = self.token.goal
            self.mail()

    def _note(self) -> None:
        """Tell the later processes whether a message is sent, and when a process may send again."""
        token = self.token
        following = earliest(token.following, self.next)
        for letter in self.letters:
            if letter.place > token.goal:
                following = earliest(following, letter.place)
        loud = token.loud or any(letter.place == token.goal for letter in self.letters)
        # Once a message is sent, no round is left out, and `following` does not matter.
        self.token = dataclasses.replace(token, loud=loud, following=0 if loud else following)

    def mail(self) -> None:
        """Send the mail of a round, except what goes with the turn. The last process gives the turn to the first."""
        program, token, place = self.program, self.token, self.at
        everyone = (*token.alive, *token.born)
        follower, last = self._follower(everyone), self.me == token.alive[-1]
        letters = {letter.to: letter.message for letter in self.letters if letter.place == place}
        for pid in letters:
            if pid not in everyone:
                raise ModelError(
                    f"{self.me!r} sends to {pid!r} in {program.calendar.name(place)}, before its first round",
                    hint="send to a process only in a round after its creation",
                )
        if letters:
            self.letters = tuple(letter for letter in self.letters if letter.place != place)
        self.kept = letters.get(follower) if follower is not None else None
        if program.grows:
            self.process.rounds_members = len(token.alive)  # type: ignore[attr-defined]
            self.process.rounds_first = 0  # type: ignore[attr-defined]
        for pid in everyone:
            if pid != follower:
                turn = self._next_round() if last and pid == everyone[0] else None
                mine = self._ghost() if pid == self.me else None
                self.process.send(pid, Mail(place, letters.get(pid), turn, mine))

    def _next_round(self) -> Token:
        """The turn as it passes from the last process of a round to the first of the next.

        If no message was sent for that round, it changes no process. Then the next round to send in is the next in which a
        process may send. This does not apply if processes may crash, or were just created: they need a turn.
        """
        token, after = self.token, self.token.goal + 1
        if not token.loud and not token.born and not any(token.budgets) and token.goal > 0:
            after = token.following or self.program.end + 1
        return Token(token.budgets, None, (*token.alive, *token.born), (), after)

    def _follower(self, order: tuple[Pid, ...]) -> Pid | None:
        """The next process in the order."""
        position = order.index(self.me)
        return order[position + 1] if position + 1 < len(order) else None


def earliest(one: int, other: int) -> int:
    """The smaller of two rounds; 0 means none."""
    return min(one, other) if one and other else one or other
