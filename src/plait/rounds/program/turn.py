"""A turn of a process in the sequential program (Sequentialization, Algorithm 1): UPDATE of a round, SEND of the next.

After UPDATE of the last round, the SEND part is for actions that leave the last phase: nobody receives their messages.

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
from plait.rounds.program.protocol import HandlerRun, Letter, Trial, state_of
from plait.rounds.program.step import CRASH, Heard, ProtocolStep

if TYPE_CHECKING:
    from plait.rounds.sequential import Program

PASS = "pass"
MOST = 10_000
"""The largest number of local states in which a process looks for a message that its silent actions prepare."""
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
    """Whether it has consumed a message of this round, was created just before it, or has just left the last phase."""
    owes: bool = False
    """Whether its last step prepares a message of this SEND part."""


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
        self.stage, self.token, self.heard, self.took, self.owes = stage, token, heard, False, False
        self.at = ghost.place
        self.ahead, self.letters, self.kept = ghost.ahead, ghost.letters, ghost.kept
        self.next = 0
        """The next round after this turn in which an action of the process may send (0 for none)."""

    @property
    def place(self) -> int:
        """The round of this part of the turn: mail is consumed in one round, and sent for a later one."""
        return self.token.goal if self.stage == "send" else self.at

    @property
    def closing(self) -> bool:
        """Whether this is the last turn: its SEND part is for actions that leave the last phase."""
        return self.token.goal > self.program.end

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
            last = bool(crashes) and self.stage == "send" and self.closing
            if taken and (options or last):
                return self._hold()
            menu: list[Any] = [option.step for option in options]
            if not taken and (options or last or (fresh and not self.closing)):
                part = int(self.stage == "update")
                menu += [ProtocolStep(self._key_place(None), part, CRASH, (), (n,)) for n in crashes]
            must = self.stage == "update" and not program.assumed.free and any(o.step.consumed for o in options)
            if not must and not self.owes:
                menu.append(PASS)
            chosen = PASS if menu[0] is PASS else self.process.choose(menu)
            if chosen is PASS:
                if self.heard and program.audit:
                    program.audit.passed(self.process, self.ahead, self.heard, self.place)
                if self.stage == "send":
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
        """The steps that are possible now: receipts in the UPDATE part, and actions."""
        program, part = self.program, int(self.stage == "update")
        options, self.next = [], 0
        if self.heard:
            for handler, consumed in program.receipts(self.process, self.heard):
                options.append(Option(ProtocolStep(self.place, part, handler.name, consumed), handler))
        silent = self._silent_now(must=bool(options))
        if self.stage == "send" or silent:
            for handler in program.actions(self.process):
                for trial in program.trials(self.process, handler):
                    first = self._first(trial)
                    program.beyond |= first is not None and first > program.end
                    following = self.place + 1 if first is None else first if first > self.place else 0
                    self.next = earliest(self.next, following)
                    if self._sends_now(trial) or (first is None and (silent or self._prepares(trial))):
                        step = ProtocolStep(self._key_place(first), part, handler.name, (), trial.choices)
                        options.append(Option(step, handler, trial.script))
        return options

    def _silent_now(self, must: bool) -> bool:
        """Whether an action that sends nothing may run now, whatever the process does next.

        Without an assumption, it may follow each step. With one, it waits until the process has taken what it hears in the
        round that it is in (docs/reference/rounds.md).
        """
        if not self.program.assumed.free:
            return self.stage == "update" and not must and self.at > 0 and self.ahead <= 2 * self.at + 1
        return self.took or (self.stage == "send" and not self.closing)

    def _first(self, trial: Trial) -> int | None:
        """The round of an action. Without an assumption, an action that fails may fail at any time."""
        return None if trial.fails and self.program.assumed.free else min(trial.places, default=None)

    def _sends_now(self, trial: Trial) -> bool:
        """Whether an action belongs to this SEND part. After the last phase, the clock of a process advances only once."""
        first = self._first(trial)
        if first is None or self.stage != "send":
            return False
        if not self.closing:
            return first == self.place
        end = self.program.end
        return first > end and (self.ahead <= 2 * end + 1 or all(2 * u == self.ahead for u in trial.places))

    def _prepares(self, trial: Trial) -> bool:
        """Whether actions that send nothing lead from this one to an action of this SEND part."""
        if self.stage != "send" or trial.fails:
            return False
        known, pending = set(), [trial.after]
        while pending:
            process = pending.pop()
            if (key := state_of(process)) in known:
                continue
            known.add(key)
            if len(known) > MOST:
                raise ModelError(
                    f"{self.me!r} has more than {MOST:,} local states before it sends in a round",
                    hint="bound the actions that send nothing, or assume nothing about the network",
                )
            for handler in self.program.actions(process):
                for further in self.program.trials(process, handler):
                    if self._sends_now(further):
                        return True
                    if not further.places and not further.fails:
                        pending.append(further.after)
        return False

    def _key_place(self, first: int | None) -> int:
        """The round of a step in the order of the rounds. Steps after the last phase have the round that they send in."""
        if self.stage == "send" and self.closing:
            return first or max(self.program.end + 1, self.ahead // 2)
        return self.place

    def _take(self, option: Option) -> None:
        step, audit = option.step, self.program.audit
        before, self.program.turn = audit.key(self.process) if audit else None, self
        run = self.program.run(self.process, option.handler, step.consumed, option.script)
        if step.consumed:
            self._refuse(option.handler, self.program.calendar.consumed(self.ahead, [step.place])[1])
            self.ahead = 2 * step.place + 1
        self.settle(option.handler, run)
        if audit:
            audit.step(self.process, before, step.place, self.ahead if step.consumed or run.letters else None)
        if run.children:
            self.token = dataclasses.replace(self.token, born=(*self.token.born, *run.children))
        self.heard = tuple(entry for entry in self.heard if entry not in step.consumed)
        self.took |= bool(step.consumed) or (self.closing and bool(run.letters))
        self.owes = self.stage == "send" and not self.program.assumed.free and not run.letters

    def settle(self, handler: Handler, run: HandlerRun) -> None:
        """Advance the clock, and add the messages to the letters."""
        program = self.program
        self.ahead, breach = program.calendar.sent(self.ahead, [letter.place for letter in run.letters])
        self._refuse(handler, breach)
        if not run.letters:
            return
        letters = list(self.letters)
        for letter in run.letters:
            if any(letter[:2] == other[:2] for other in letters):
                what = f"sends {letter.to!r} a second message of {program.calendar.name(letter.place)}"
                self._refuse(handler, Breach(6, what))
            beyond = letter.place > program.end
            program.beyond |= beyond
            letters.append(letter._replace(message=None) if beyond else letter)
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
        self.token, self.heard, self.owes = dataclasses.replace(self.token, budgets=budgets), (), False

    # -- the end of a transition, and of the turn --------------------------------------------------------------------

    def _ghost(self) -> Ghost:
        ahead = self.ahead if self.ahead > 2 * self.at else 0
        return Ghost(self.at, ahead, self.letters, self.kept)

    def _hold(self) -> None:
        ghost = Ghost(self.at, self.ahead, self.letters, self.kept)
        self.process.send(self.me, Held(self.stage, self.token, ghost, self.heard, self.took, self.owes))

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
            if token.goal < letter.place <= self.program.end:
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
