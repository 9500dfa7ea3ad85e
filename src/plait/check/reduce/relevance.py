"""Selective hashing: the engine sees the relevant part of local states only (DBSS, sections II to IV; Algorithm 1).

h(s) keeps the relevant fields of every local state. In the bytes for the engine, the auxiliary fields are holes. So
local states with equal relevant parts have one content, one id and one fingerprint. In Python, each relevant part has a
*representative*: the first full local state with this relevant part. Steps, guards and crashes start from it.

This is sound if all full local states with one relevant part give the same relevant answers (Definition 1, transition
decomposition). For fields that are proven auxiliary, they do. Fields that are only declared auxiliary are *audited*:
every full local state must give the same answers as its representative; a different answer is a model error. The
results of audited steps are audited too. So the audit covers all runs, not only the runs of representatives.

A question about a process comes with the contents of all shared fields (`plait.check.tabulate.cells`). Those of auxiliary
ones are filled in here; their reads and writes are not reported. So the engine never sees a difference between them.

The proof could be wrong. So proven fields are audited on a *sample*: SAMPLED full local states of each of the first
MOST_SAMPLED relevant parts of a class, each with SAMPLED other contents of the auxiliary shared fields. A different answer
is then an internal error. The proof also assumes which
classes the values have, and that the annotations of messages are right: this is checked for all messages.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from plait._native import Failure
from plait.check.cover.recorder import Recorder
from plait.check.reduce.decomposition import Decomposition
from plait.check.source.classes import held
from plait.check.source.dataflow import Field, Owner
from plait.check.source.purity import plain_type
from plait.check.tabulate.cells import HOLE, LAST, cell_bit
from plait.check.tabulate.codec import UNBORN, kind_of
from plait.check.tabulate.evaluation import STATUSES
from plait.check.tabulate.guards import Takes
from plait.check.tabulate.steprun import Outcome
from plait.check.tabulate.tabulation import Tabulation, comparable
from plait.kernel.errors import Argument, ModelError
from plait.kernel.values import text, to_data
from plait.model.process import Process
from plait.model.system import System

MOST_AUDITED = 100_000
"""The audit ends with an error after this many full local states: an auxiliary field may grow forever."""
MOST_AUDITED_BYTES = 32_000_000

SAMPLED = 2
"""How many full local states of a relevant part are compared with its representative, if all fields are proven."""
MOST_SAMPLED = 500
"""The number of relevant parts of each class that are sampled: the first ones of the search."""

Question = tuple[Any, ...]
"""A question of the engine about a local state: the name of a method of Tabulation, and its other arguments."""
Situation = tuple[Question, tuple[bytes, ...]]
"""A question, and the contents of all shared fields. In the place of auxiliary ones there are holes."""


@dataclasses.dataclass
class _Shared:
    """The full local states of one process with the same relevant part."""

    representative: bytes
    watched: bool = False
    """The answers are kept and compared."""
    variants: dict[bytes, bytes] = dataclasses.field(default_factory=dict)
    """The full local states so far, with the representative, by the parts that the audit compares."""
    asked: dict[Situation, tuple[Any, int]] = dataclasses.field(default_factory=dict)
    """The relevant answers of the representative, and the shared fields that it read."""


class Relevance(Tabulation):
    """A Tabulation whose local states are relevant parts."""

    def __init__(self, system: System, decomposition: Decomposition, recorder: Recorder | None = None) -> None:
        super().__init__(system, recorder)
        self.auxiliary = decomposition.auxiliary
        self._audited = decomposition.audited
        self._hole = self.codec.encode(None)
        self._aux_at = [_positions(cls, self.auxiliary.get(cls, frozenset())) for cls in system.classes]
        proven = {cls: names - self._audited.get(cls, frozenset()) for cls, names in self.auxiliary.items()}
        self._proven_at = [_positions(cls, proven.get(cls, frozenset())) for cls in system.classes]
        self._is_audited = [bool(self._audited.get(cls)) for cls in system.classes]
        self._shared: dict[tuple[int, bytes], _Shared] = {}
        self._examples: dict[type[Process], bytes] = {}
        """A full local state of each class."""
        self._work: list[tuple[int, bytes, bytes]] = []
        """States to audit: position, relevant part, full local state."""
        self._fillings: dict[int, list[bytes]] = {}
        """The contents of each auxiliary cell: its initial one, which goes with representatives, and those of the sample."""
        self._unseen = 0
        """The auxiliary cells, as bits."""
        self._known_cells: set[bytes] = set()
        self._unread = self.codec.encode(HOLE)
        for number, cell in enumerate(system.cells):
            if cell.name in self.auxiliary.get(system.shared_class(cell), ()):
                self._fillings[number] = []
                self._unseen |= cell_bit(number) if number < LAST else 0
        self._count = self._bytes = 0
        self._watched: dict[type[Process], int] = {}
        self._found = decomposition.found
        self._checks_values = any(f.auxiliary and not f.audited for f in decomposition.fields)
        self._known_messages: set[bytes] = set()
        network = system.network
        self._keeps_messages = network.kind == "duplicating" and network.duplications is None
        self._finals = [p.name for p in system.properties if p.kind == "final"]

    # -- questions of the engine --------------------------------------------------------------------------------------

    def initial(self) -> tuple[list[list[Outcome]], list[bytes]]:
        processes, monitors = super().initial()
        for index, outcomes in enumerate(processes):
            for outcome in outcomes:
                self._meet(index, outcome.local)
        self._drain()
        erased = [[o._replace(local=self.erased(i, o.local)) for o in some] for i, some in enumerate(processes)]
        return erased, monitors

    def armed(self, index: int, local: bytes, only: int | None = None) -> list[Takes]:
        return self._ask(index, local, ("armed", only))  # type: ignore[no-any-return]

    def guards(
        self, index: int, local: bytes, questions: Sequence[tuple[int, tuple[int, bytes]]]
    ) -> list[bytes | Failure | None]:
        return self._ask(index, local, ("guards", tuple(questions)))  # type: ignore[no-any-return]

    def accepts(
        self, index: int, local: bytes, number: int, sets: Sequence[Sequence[tuple[int, bytes]]]
    ) -> list[bool | Failure]:
        return self._ask(index, local, ("accepts", number, tuple(map(tuple, sets))))  # type: ignore[no-any-return]

    def step(self, index: int, local: bytes, number: int, messages: Sequence[tuple[int, bytes]]) -> list[Outcome]:
        return self._ask(index, local, ("run", number, tuple(messages)))  # type: ignore[no-any-return]

    def crash(self, index: int, local: bytes, recovers: bool) -> bytes:
        return self._ask(index, local, ("crash", recovers))  # type: ignore[no-any-return]

    def recover(self, index: int, local: bytes) -> list[Outcome]:
        return self._ask(index, local, ("recover",))  # type: ignore[no-any-return]

    def tick(self, index: int, local: bytes) -> bytes:
        return self._ask(index, local, ("tick",))  # type: ignore[no-any-return]

    def reads(
        self, index: int, local: bytes, number: int, messages: Sequence[tuple[int, bytes]], choices: list[bytes]
    ) -> list[str]:
        relevant, cells = self._split(index, local)
        full = self._situated(self._known(index, relevant).representative, cells)
        return super().reads(index, full, number, messages, choices)

    # -- relevant parts and representatives ------------------------------------------------------------------------

    def erased(self, index: int, local: bytes) -> bytes:
        """The relevant part of a full local state, of a process or of a cell."""
        cell = index - len(self._aux_at)
        if cell >= 0:
            return self._cell(self._hole) if cell in self._fillings else local
        return self._without(local, self._aux_at[index])

    def _without(self, local: bytes, positions: frozenset[int]) -> bytes:
        if not positions or local[0] == UNBORN:
            return local
        parts = self.codec.fields(local)
        head = local[1 : len(local) - sum(map(len, parts[1:]))]
        kept = [self._hole if i in positions else part for i, part in enumerate(parts)]
        return b"".join([kept[0], head, *kept[1:]])

    def _split(self, index: int, local: bytes) -> tuple[bytes, tuple[bytes, ...]]:
        """A local state, and the contents of cells that follow its fields."""
        if not self.system.cells or local[0] == UNBORN:
            return local, ()
        parts = self.codec.fields(local)
        own = len(self.system.classes[index].__plait_fields__) + 1
        return (self.codec.joined(parts[:own]), tuple(parts[own:])) if len(parts) > own else (local, ())

    def _situated(self, full: bytes, cells: Sequence[bytes], turn: int = 0) -> bytes:
        """A full local state with the contents of all cells. For each turn, the holes are filled in another way."""
        if not cells:
            return full
        fillings = {number: some[min(turn, len(some) - 1)] for number, some in self._fillings.items()}
        return self.model_codec.with_cells(full, [fillings.get(i, content) for i, content in enumerate(cells)])

    def _known(self, index: int, relevant: bytes) -> _Shared:
        found = self._shared.get((index, relevant))
        if found is None:
            # No step of this process led to this relevant part: it is, for example, another's after a permutation.
            # Any values may fill the holes, because nothing depends on them.
            cls = self.system.classes[index]
            full = relevant
            if self._aux_at[index] and relevant[0] != UNBORN:
                example = self.codec.fields(self._examples[cls])
                parts = self.codec.fields(relevant)
                head = relevant[1 : len(relevant) - sum(map(len, parts[1:]))]
                filled = [example[i] if i in self._aux_at[index] else part for i, part in enumerate(parts)]
                full = b"".join([filled[0], head, *filled[1:]])
            self._meet(index, full)
            found = self._shared[index, relevant]
        return found

    def _meet(self, index: int, full: bytes) -> None:
        """Record a full local state: as a representative, or as one to audit."""
        if index >= len(self._aux_at):
            self._meet_cell(index - len(self._aux_at), full)
            return
        relevant = self.erased(index, full)
        shared = self._shared.get((index, relevant))
        if shared is None:
            shared = self._shared[index, relevant] = _Shared(full)
            if full[0] == UNBORN or not (self._aux_at[index] or self._fillings):
                return
            cls = self.system.classes[index]
            self._examples.setdefault(cls, full)
            self._check_classes(self.codec.decode(full[1:]), f"the state of {self.system.pids[index]!r}")
            self._watched[cls] = self._watched.get(cls, 0) + 1
            shared.watched = self._is_audited[index] or self._watched[cls] <= MOST_SAMPLED
        if not shared.watched:
            return
        if not self._is_audited[index]:
            if full != shared.representative and full not in shared.variants and len(shared.variants) < SAMPLED:
                shared.variants[full] = full
                self._work.append((index, relevant, full))
            return
        compared = self._without(full, self._proven_at[index])
        if compared in shared.variants:
            return
        shared.variants[compared] = full
        self._count, self._bytes = self._count + 1, self._bytes + len(compared)
        if self._count > MOST_AUDITED or self._bytes > MOST_AUDITED_BYTES:
            raise self._endless(index)
        if len(shared.variants) > 1:
            self._work.append((index, relevant, full))

    def _meet_cell(self, cell: int, local: bytes) -> None:
        """Record the content of a shared field."""
        _, content = self.codec.fields(local)
        if content in self._known_cells and cell not in self._fillings:
            return
        if content not in self._known_cells:
            self._known_cells.add(content)
            self._check_classes(self.codec.decode(content), str(self.system.cells[cell]))
        some = self._fillings.get(cell, [content])
        if content in some or len(some) > SAMPLED:
            return
        some.append(content)
        # What was asked before is asked again with this content.
        self._work += [(i, relevant, s.representative) for (i, relevant), s in self._shared.items() if s.watched]

    # -- questions -------------------------------------------------------------------------------------------------

    def _ask(self, index: int, local: bytes, question: Question) -> Any:
        """The relevant answer of the representative. All other full local states must give the same answer."""
        local, cells = self._split(index, local)
        shared, situation = self._known(index, local), (question, cells)
        self._check_messages(_contents(question))
        if not shared.watched:
            answer = self._answer(index, shared.representative, situation), self.cells_read
            self._drain()  # the step may have spawned an audited process
        elif situation in shared.asked:
            answer = shared.asked[situation]
        else:
            answer = self._answer(index, shared.representative, situation), self.cells_read
            shared.asked[situation] = answer
            for full in [shared.representative, *shared.variants.values()]:
                self._compare(index, shared, full, situation)
            self._drain()
        self.cells_read = answer[1] & ~self._unseen
        return answer[0]

    def _drain(self) -> None:
        while self._work:
            index, relevant, full = self._work.pop()
            shared = self._shared[index, relevant]
            for situation in list(shared.asked):
                self._compare(index, shared, full, situation)

    def _answer(self, index: int, full: bytes, situation: Situation, turn: int = 0) -> Any:
        """The answer for a full local state, reduced to relevant parts."""
        (method, *arguments), cells = question, _ = situation
        answer = getattr(super(), method)(index, self._situated(full, cells, turn), *arguments)
        if method in ("crash", "tick"):
            self._meet(index, answer)
            return self.erased(index, answer)
        if method not in ("run", "recover"):
            return answer
        erased = []
        for outcome in answer:
            self._meet(index, outcome.local)
            for slot, spawned in outcome.spawns:
                self._meet(slot, spawned)
            if method == "run" and self._finals and self._is_audited[index]:
                self._check_settled(index, full, question, *self._changing([outcome], cells))
            first = len(self._aux_at)
            born = [(slot, local) for slot, local in outcome.spawns if slot - first not in self._fillings]
            spawns = [(slot, self.erased(slot, local)) for slot, local in born]
            erased.append(outcome._replace(local=self.erased(index, outcome.local), spawns=spawns))
        return erased

    def _compare(self, index: int, shared: _Shared, full: bytes, situation: Situation) -> None:
        """Compare a full local state, with each filling of the cells, with the representative."""
        cells = situation[1]
        if self._unread in cells:  # asked by the audit of symmetries
            return
        expected = self._changing(shared.asked[situation][0], cells)
        fillings = 1 + (max((len(some) for some in self._fillings.values()), default=1) - 1 if cells else 0)
        for turn in range(fillings):
            if turn == 0 and full == shared.representative:
                continue
            try:
                answer = self._changing(self._answer(index, full, situation, turn), cells)
            except ModelError as error:
                if isinstance(error, _AuditError):
                    raise
                answer = error
            if isinstance(answer, ModelError) or _comparable(answer) != _comparable(expected):
                one, other = self._situated(shared.representative, cells), self._situated(full, cells, turn)
                raise self._unsound(index, one, other, situation[0], expected, answer)

    def _changing(self, answer: Any, cells: tuple[bytes, ...]) -> Any:
        """An answer without the writes that leave a shared field as it is. They count only if the field was not read."""
        if not cells or not isinstance(answer, list):
            return answer
        idle = [(len(self._aux_at) + i, self._cell(content)) for i, content in enumerate(cells)]
        return [
            o._replace(spawns=[s for s in o.spawns if s not in idle]) if isinstance(o, Outcome) else o for o in answer
        ]

    def _check_settled(self, index: int, full: bytes, question: Question, outcome: Outcome) -> None:
        """Refuse a step that changes only audited fields: without them, the state could look terminal."""
        before, after = (self._without(local, self._proven_at[index]) for local in (full, outcome.local))
        if outcome.failure or before == after or self.erased(index, full) != self.erased(index, outcome.local):
            return
        if any(
            slot >= len(self._aux_at) and slot - len(self._aux_at) not in self._fillings for slot, _ in outcome.spawns
        ):
            return  # it changes a shared field, too
        _, number, messages = question
        if not messages or self._keeps_messages or any(to == index for to, _ in outcome.sends):
            where = self.where(index, number)
            fields = self._differing(index, full, outcome.local, self._audited)
            raise _AuditError(
                f"{where} may change nothing except {_listed(fields)}, which is declared aux. Without this field, "
                f"the state would count as terminal for {', '.join(self._finals)}",
                hint=f"do not declare {_names(fields)} aux, or check without the final properties",
            )

    def _check_messages(self, contents: Sequence[bytes]) -> None:
        """The proof relies on the classes of all values and on the annotations of some fields of messages."""
        for content in contents:
            if not self._checks_values or content in self._known_messages:
                continue
            self._known_messages.add(content)
            message = self.codec.decode(content)
            self._check_classes(message, "a message")
            for cls, name, kind in self._found.relied:
                value = getattr(message, name, None) if isinstance(message, cls) else kind()
                if plain_type(value) is not kind:
                    raise _AuditError(
                        f"{cls.__name__}.{name} is annotated {kind.__name__}, but a message has {value!r} there. "
                        "Decomposition relies on this annotation",
                        hint=("correct the annotation, or leave ", Argument("reduce", "decomposition"), " out"),
                    )

    def _check_classes(self, value: Any, place: str) -> None:
        for cls in held(value) if self._checks_values else ():
            if cls not in self._found.records:
                raise _AuditError(
                    f"{place} has a value of {cls.__qualname__}, which no handler refers to by its name. "
                    "Decomposition relies on knowing all classes",
                    hint=("refer to the class by its name, or leave ", Argument("reduce", "decomposition"), " out"),
                )

    # -- errors ----------------------------------------------------------------------------------------------------

    def _differing(self, index: int, one: bytes, other: bytes, fields: Mapping[Owner, frozenset[str]]) -> list[Field]:
        """Those of some fields in which two full local states differ. Cells may follow both."""
        cls = self.system.classes[index]
        there: list[Field] = [(cls, name) for name in cls.__plait_fields__]
        there += [(self.system.shared_class(cell), cell.name) for cell in self.system.cells]
        found = zip(there, self.codec.fields(one)[1:], self.codec.fields(other)[1:], strict=False)
        return list(dict.fromkeys(f for f, a, b in found if a != b and f[1] in fields.get(f[0], ())))

    def _unsound(
        self, index: int, first: bytes, second: bytes, question: Question, expected: Any, answer: Any
    ) -> Exception:
        pid = self.system.pids[index]
        declared = self._differing(index, first, second, self._audited)
        what, one, other = self._contrast(index, question, expected, answer)
        both = (
            f"but the behaviour of {pid!r} depends on it\n"
            f"  in one local state:  {self._state(index, first)}\n"
            f"  in another:          {self._state(index, second)}\n"
            f"  {what}:\n"
            f"    in the first:  {one}\n"
            f"    in the second: {other}"
        )
        if declared:
            hint = f"do not declare {_names(declared)} aux"
            return _AuditError(f"{_listed(declared)} is declared aux, {both}", hint=hint)
        proven = self._differing(index, first, second, self.auxiliary)
        return RuntimeError(f"the analysis of the source took {_listed(proven)} for auxiliary, {both}")

    def _endless(self, index: int) -> ModelError:
        cls = self.system.classes[index]
        fields: list[Field] = [(cls, name) for name in sorted(self._audited[cls])]
        return _AuditError(
            f"{_listed(fields)} is declared aux without a proof, and has too many values for "
            f"the audit: more than {self._count - 1:,} local states",
            hint="keep a shorter history, or change the code that reads it and may raise or have an effect: "
            "plait show (option decomposition) lists this code",
        )

    def _state(self, index: int, local: bytes) -> str:
        values = self.codec.decode(local[1:])
        shown = ", ".join(f"{n} = {text(to_data(v))}" for n, v in zip(self._places(index), values, strict=False))
        return shown + ("" if local[0] == 0 else f" ({STATUSES[local[0]]})")

    def _contrast(self, index: int, question: Question, expected: Any, answer: Any) -> tuple[str, str, str]:
        """The question, and two different answers to it."""
        method, *arguments = question
        pid = self.system.pids[index]
        what = {"armed": "which handlers may run", "crash": f"after a crash of {pid!r}", "recover": f"{pid!r} recovers"}
        what["tick"] = f"after a tick of {pid!r}"
        asked = what.get(method, "")
        if method == "run":
            asked = f"step {self.where(index, arguments[0])} of {pid!r}{self._messages(arguments[1])}"
        if isinstance(answer, ModelError):
            return asked or "a guard", "no error", answer.message
        if method == "guards":
            for (number, delivered), a, b in zip(arguments[0], expected, answer, strict=True):
                if a != b:
                    asked = f"the guard of {self.where(index, number)}{self._messages([delivered])}"
                    return asked, str(a is not None).lower(), str(b is not None).lower()
        if method == "accepts":
            number, sets = arguments
            for messages, a, b in zip(sets, expected, answer, strict=True):
                if _comparable([a]) != _comparable([b]):
                    asked = f"the accept guard of {self.where(index, number)}{self._messages(messages)}"
                    return asked, str(a).lower(), str(b).lower()
        if method == "armed":
            return asked, self._armed_text(index, expected), self._armed_text(index, answer)
        if method in ("crash", "tick"):
            return asked, self._state(index, expected), self._state(index, answer)
        return asked, *self._outcomes_text(index, expected, answer)

    def _armed_text(self, index: int, armed: list[Takes]) -> str:
        names = [
            f"{self.handlers[index][a.handler].name}{f' with {a.least} messages' if a.least > 1 else ''}" for a in armed
        ]
        return ", ".join(names) or "none"

    def _messages(self, messages: Sequence[tuple[int, bytes]]) -> str:
        shown = [f"{text(to_data(self.codec.decode(m)))} from {self.system.pids[s]!r}" for s, m in messages]
        return f" on {', '.join(shown)}" if shown else ""

    def _outcomes_text(self, index: int, one: list[Outcome], other: list[Outcome]) -> tuple[str, str]:
        if len(one) != len(other):
            return f"{len(one)} outcomes", f"{len(other)} outcomes"
        a, b = next((a, b) for a, b in zip(one, other, strict=True) if _comparable([a]) != _comparable([b]))
        if bool(a.failure) != bool(b.failure):
            return tuple(o.failure.message if o.failure else "no failure" for o in (a, b))  # type: ignore[return-value]
        if a.choices != b.choices:
            return tuple(f"chooses {self._values(o.choices)}" for o in (a, b))  # type: ignore[return-value]
        if a.sends != b.sends:
            return f"sends {self._shown(a.sends)}", f"sends {self._shown(b.sends)}"
        if a.events != b.events:
            return tuple(f"announces {self._values(o.events)}" for o in (a, b))  # type: ignore[return-value]
        if a.local != b.local:
            names = self.system.classes[index].__plait_fields__
            values = zip(names, self.codec.fields(a.local)[1:], self.codec.fields(b.local)[1:], strict=True)
            name, x, y = next(v for v in values if v[1] != v[2])
            return tuple(f"{name} becomes {self._values([v])}" for v in (x, y))  # type: ignore[return-value]
        return self._spawns_text(a), self._spawns_text(b)

    def _spawns_text(self, outcome: Outcome) -> str:
        first = len(self.system.classes)
        pids = [self.system.pids[slot] for slot, _ in outcome.spawns if slot < first]
        written = [
            f"{self.system.cells[slot - first]} becomes {self._values(self.codec.fields(local)[1:])}"
            for slot, local in outcome.spawns
            if slot >= first
        ]
        return ", ".join([f"spawns {pids} with other fields"] * bool(pids) + written) or "writes nothing"

    def _values(self, contents: Sequence[bytes]) -> str:
        return ", ".join(text(to_data(self.codec.decode(c))) for c in contents) or "nothing"


class _AuditError(ModelError):
    """An error of the audit, not an exception of the model."""


def _positions(cls: type[Process], names: frozenset[str]) -> frozenset[int]:
    """The positions of fields in a local state. Position 0 is the status."""
    return frozenset(i for i, name in enumerate(cls.__plait_fields__, 1) if name in names)


def _listed(fields: Sequence[Field]) -> str:
    return " and ".join(f"{cls.__name__}.{name}" for cls, name in fields)


def _names(fields: Sequence[Field]) -> str:
    return " and ".join(name for _, name in fields)


def _contents(question: Question) -> list[bytes]:
    """The messages that a question is about."""
    match question:
        case ("guards", asked):
            return [content for _, (_, content) in asked]
        case ("accepts", _, sets):
            return [content for messages in sets for _, content in messages]
        case ("run", _, messages):
            return [content for _, content in messages]
    return []


def _comparable(answer: Any) -> Any:
    """The parts of an answer that must agree: everything except the text of a failure."""
    if isinstance(answer, list):
        return [comparable(one) if isinstance(one, Outcome) else kind_of(one) for one in answer]
    return answer
