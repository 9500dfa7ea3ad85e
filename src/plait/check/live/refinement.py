"""Refinement: the answers that the engine needs, and counterexamples that show both runs.

The engine builds the graph of all states and looks at its edges (`rust/src/live/refinement.rs`). It asks a `Refining`
which abstract state a state maps to, whether changes of the abstract state are steps of the abstract System, and in which
abstract states a run must not stay. The abstract System has an engine of its own. Only reachable abstract states are
expanded: if each step so far was allowed, the abstract state before the next one was reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from threading import get_ident

import msgspec

from plait._native import Transition
from plait.check.explain.tracing import Tracer, label
from plait.check.live.lasso import EngineFairness, Lasso, is_fair
from plait.check.live.search import engine_fairness
from plait.check.runner import Runner
from plait.check.tabulate.codec import declared_values, failed, require_users
from plait.check.tabulate.evaluation import Read
from plait.check.tabulate.probe import turns
from plait.kernel.errors import ModelError
from plait.kernel.trace import Event, Snapshot, Trace, Wait
from plait.kernel.values import Data, text, to_data
from plait.model.refinement import Refinement
from plait.model.system import with_properties
from plait.model.view import View

Key = tuple[bytes, ...]
"""An abstract state: the content of each of its processes."""
MOST_OUTCOMES = 3
"""So many outcomes of a step that is possible are listed."""


class Refining:
    """Answers the engine about one refinement of a System."""

    def __init__(self, runner: Runner, prop: Refinement) -> None:
        self.runner, self.prop = runner, prop
        # Of its properties, only the condition on initial states counts.
        self.abstract = Runner(with_properties(prop.abstract, [p for p in (prop.abstract.initially,) if p is not None]))
        self.fairness = engine_fairness(prop.abstract, prop.abstract.fairness)
        self._numbers: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._reached: dict[Key, list[int]] = {}
        self._successors: dict[Key, list[tuple[Transition, Key]]] = {}
        self._count = 0
        self.initial = [self._key(start) for start, _ in self.abstract.initial]
        self._reached.update(zip(self.initial, (start for start, _ in self.abstract.initial), strict=True))

    # -- questions of the engine -------------------------------------------------------------------------------------

    def value(self, locals_: Sequence[int], inboxes: Sequence[int], monitors: Sequence[int]) -> tuple[int, list[Read]]:
        """The number of the abstract state that a state maps to, and what the mapping read."""
        tabulation, place = self.runner.tabulation, self._place
        view = View(
            self.runner.system,
            lambda i: tabulation.local_value(i, locals_[i]),
            lambda i: tabulation.inbox_value(inboxes[i]),
            lambda i: tabulation.monitor_value(i, monitors[i]),
            cell=lambda i: tabulation.cell_value(locals_[len(self.runner.system.classes) + i]),
        )
        self._count += 1
        key = tabulation.order.watched(self._mapped, view)
        for turn in turns(self._count, tabulation.order.largest):
            again = tabulation.order.permuted(turn, self._mapped, tabulation.fresh_view(locals_, inboxes, monitors))
            if again != key:
                raise ModelError(
                    f"{place} is not a function of the state: evaluated twice, it returned "
                    f"{self.text(key)} and then {self.text(again)}",
                    hint="a mapping must not use randomness, clocks, globals or the order of a set",
                )
        tabulation.check_untouched(place, view, locals_, inboxes, monitors)
        number = self._numbers.setdefault(key, len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
        return number, tabulation.positions(view)

    def starts(self, number: int) -> bool:
        """Whether it is an initial state of the abstract System."""
        return self._keys[number] in self.initial

    def forbidden(self, changes: Sequence[tuple[int, int]]) -> int | None:
        """The first of some changes that is no step of the abstract System."""
        for place, (before, after) in enumerate(changes):
            if not self._steps(self._keys[before], self._keys[after]):
                return place
        return None

    def unstable(self) -> list[bool]:
        """Per abstract state, whether a step with a fairness assumption is enabled there."""
        return [self._is_unstable(key) for key in self._keys]

    # -- the abstract System -------------------------------------------------------------------------------------------

    @property
    def _place(self) -> str:
        return f"the mapping of {self.prop.name}"

    def _mapped(self, view: View) -> Key:
        """The abstract state of a view."""
        codec = self.abstract.tabulation.model_codec
        self.runner.tabulation.model_codec.thread = get_ident()
        self.runner.tabulation.model_codec.cells.begin_view(view.cell)
        try:
            made = self.prop.processes(view)
        except ModelError:
            raise
        except BaseException as error:
            require_users(error)
            raise ModelError(failed(self._place, error).message, hint="the mapping must not raise exceptions") from None
        return tuple(
            b"\0" + codec.fields(declared_values(p, p.__plait_fields__, self._place), p.__plait_fields__, self._place)
            for p in made
        )

    def _key(self, state: Sequence[int]) -> Key:
        locals_, inboxes, _, _ = self.abstract.engine.components(state)
        store = self.abstract.engine.store
        if any(store.inbox(inbox) for inbox in inboxes):
            raise ModelError(
                f"{self.prop.name}: the abstract System sends messages",
                hint="state it with actions only: its state must be the fields of its processes",
            )
        return tuple(store.local(local) for local in locals_)

    def successors(self, key: Key) -> list[tuple[Transition, Key]]:
        """The steps of the abstract System from a state that can be reached, and the states that they lead to."""
        found = self._successors.get(key)
        if found is None:
            steps = self.abstract.engine.successors(self._reached[key])
            failure = next((t.failure for t in steps if t.failure is not None), None)
            if failure is not None:
                raise ModelError(
                    f"{self.prop.name}: a step of the abstract System fails where {self.text(key)}: {failure.message}",
                    hint="guard against the case: a step of an abstract System is possible, or it is not",
                )
            found = self._successors[key] = [(t, self._key(t.state)) for t in steps]
            for transition, there in found:
                self._reached.setdefault(there, transition.state)
        return found

    def _steps(self, before: Key, after: Key) -> list[Transition]:
        """The abstract steps from a state to another."""
        return [t for t, there in self.successors(before) if there == after]

    def _is_unstable(self, key: Key) -> bool:
        places = {place for one in self.fairness for place in one.handlers}
        return any((t.process, t.handler) in places for t, there in self.successors(key) if there != key)

    def text(self, key: Key, since: Key | None = None) -> str:
        """An abstract state in one line; if another is given, only what has changed since."""
        pids, fields = self.prop.abstract.pids, self._fields(key)
        old = self._fields(since) if since is not None else [{}] * len(fields)
        return ", ".join(
            f"{f'{pid!r}.' if len(pids) > 1 else ''}{name}={text(value)}"
            for pid, own, was in zip(pids, fields, old, strict=True)
            for name, value in own.items()
            if name not in was or was[name] != value
        )

    def _fields(self, key: Key) -> list[dict[str, Data]]:
        decode = self.abstract.tabulation.codec.decode
        return [
            {name: to_data(value) for name, value in zip(cls.__plait_fields__, decode(content[1:]), strict=True)}
            for cls, content in zip(self.prop.abstract.classes, key, strict=True)
        ]

    def _name(self, t: Transition) -> str:
        """An abstract step: its process if there are several, its handler and its choices."""
        decode = self.abstract.tabulation.codec.decode
        pids = self.prop.abstract.pids
        choices = ", ".join(text(to_data(decode(choice))) for choice in t.choices)
        whose = f"{pids[t.process]!r}." if len(pids) > 1 else ""
        return f"{whose}{label(self.prop.abstract, t)}{f'({choices})' if choices else ''}"

    def candidates(self, before: Key, after: Key) -> list[Wait]:
        """For each handler of the abstract System, why it does not lead from a state to another."""
        found = []
        for index, (cls, pid) in enumerate(zip(self.prop.abstract.classes, self.prop.abstract.pids, strict=True)):
            for number, handler in enumerate(cls.__plait_handlers__):
                if handler.kind != "action":
                    continue
                steps = [
                    (t, there) for t, there in self.successors(before) if (t.process, t.handler) == (index, number)
                ]
                reason = "its guard is false"
                if steps:
                    shown = [
                        f"{self._name(t)} leads to {self.text(there, before)}" for t, there in steps[:MOST_OUTCOMES]
                    ]
                    more = len(steps) - len(shown)
                    reason = "; ".join([*shown, *([f"and {more} more"] if more else [])])
                found.append(Wait(repr(pid), handler.name, reason))
        return found

    # -- runs ----------------------------------------------------------------------------------------------------------

    def keys(self, tracer: Tracer) -> list[Key]:
        """The abstract states along a run of the System."""
        found = []
        for state in tracer.visited:
            number, _ = self.value(*self.runner.engine.components(state)[:3])
            found.append(self._keys[number])
        return found

    def violated_by(self, lasso: Lasso, assumed: Sequence[EngineFairness]) -> str | None:
        """How a run violates the refinement: initial, step or stuttering; None if it does not."""
        keys = self.keys(lasso.tracer)
        if keys[0] not in self.initial:
            return "initial"
        for place, (before, after) in enumerate(pairwise(keys)):
            if before != after and not self._steps(before, after):
                return "step" if place == len(keys) - 2 else None
        here = keys[lasso.stem :]
        ends = lasso.loop is not None or lasso.tracer.runner.may_end(lasso.tracer.state)
        closes = lasso.loop is None or lasso.tracer.visited[-1] == lasso.tracer.visited[lasso.loop]
        still = len(set(here)) == 1 and self._is_unstable(here[0])
        return "stuttering" if ends and closes and still and is_fair(lasso, assumed) else None

    def trace(self, lasso: Lasso, kind: str) -> Trace:
        """A counterexample: each snapshot has the abstract state, each event the abstract step."""
        tracer, keys = lasso.tracer, self.keys(lasso.tracer)
        title = f"abstract {self.prop.title}"
        found = tracer.trace(lasso.events, self.prop.name, "", loop=lasso.loop)

        def with_abstract(snapshot: Snapshot, key: Key) -> Snapshot:
            fields = self._fields(key)
            named = dict(zip(map(repr, self.prop.abstract.pids), fields, strict=True))
            shown: Data = fields[0] if len(fields) == 1 else named
            return msgspec.structs.replace(snapshot, monitors={**snapshot.monitors, title: shown})

        events: list[Event] = []
        for event, (before, after) in zip(found.events, pairwise(keys), strict=True):
            steps = self._steps(before, after) if before in self._reached and before != after else []
            step = (
                "stays"
                if before == after
                else f"{self._name(steps[0]) if steps else 'no step'}: {self.text(after, before)}"
            )
            state = with_abstract(event.state, after)
            events.append(msgspec.structs.replace(event, state=state, abstract=step))
        waiting: list[Wait] = []
        if kind == "initial":
            explanation = (
                f"the initial state does not map to {'the' if len(self.initial) == 1 else 'an'} initial state of "
                f"{self.prop.title}\n  it maps to {self.text(keys[0])}\n  expected   "
                + "\n          or ".join(map(self.text, self.initial[:MOST_OUTCOMES]))
            )
        elif kind == "step":
            explanation = (
                f"step {len(events)} maps to no step of {self.prop.title}\n"
                f"  from {self.text(keys[-2])}\n  to   {self.text(keys[-1], keys[-2])}"
            )
            waiting = self.candidates(keys[-2], keys[-1])
        else:
            fair = ", ".join(str(one) for one in self.prop.abstract.fairness)
            end = "the run ends" if lasso.loop is None else f"steps {lasso.stem + 1} to {len(events)} repeat for ever"
            explanation = (
                f"{end}, and {self.prop.title} stays in one state for ever, which {fair} forbids\n"
                f"  it stays in {self.text(keys[-1])}"
            )
            waiting = [wait for wait in self.candidates(keys[-1], keys[-1]) if wait.reason != "its guard is false"]
        return msgspec.structs.replace(
            found,
            initial=with_abstract(found.initial, keys[0]),
            events=events,
            explanation=explanation,
            waiting=waiting,
            abstract=title,
        )
