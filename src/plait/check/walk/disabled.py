"""Why the other handlers cannot run in a state: which guard is false, and which of its parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from plait.check.explain.waiting import waiting_of
from plait.check.explain.why import clauses_of
from plait.check.runner import Runner
from plait.kernel.trace import Clause, Wait
from plait.kernel.values import text, to_data

_MOST_KNOWN = 10_000
_SHOWN = 2
"""Messages that a guard refuses and that are shown."""


class Disabled(msgspec.Struct, frozen=True):
    """A handler that cannot run, or a process that takes no step at all."""

    lane: str
    handler: str | None
    reasons: list[Clause]


class DisabledHandlers:
    """Remembers the reasons by process: a step changes few of them."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self._known: dict[tuple[int, ...], list[Disabled]] = {}

    def others(self, state: Sequence[int], enabled: set[tuple[str, str]]) -> list[Disabled]:
        """The handlers that are not among the enabled ones (lane and name), each with its reasons."""
        processes = range(len(self.runner.system.classes))
        found = (one for index in processes for one in self._of_process(state, index))
        return [one for one in found if one.handler is None or (one.lane, one.handler) not in enabled]

    def _of_process(self, state: Sequence[int], index: int) -> list[Disabled]:
        locals_, inboxes, _, _ = self.runner.engine.components(state)
        cells = locals_[len(self.runner.system.classes) :]
        key = (index, locals_[index], inboxes[index], *cells)
        # If channels are bounded, the inboxes of others count, too.
        if self.runner.system.network.capacity is not None:
            key += tuple(inboxes)
        if key not in self._known:
            if len(self._known) > _MOST_KNOWN:
                self._known.clear()
            self._known[key] = [
                _explained(self.runner, state, index, wait) for wait in waiting_of(self.runner, state, index)
            ]
        return self._known[key]


def _explained(runner: Runner, state: Sequence[int], index: int, wait: Wait) -> Disabled:
    reasons = [Clause(wait.reason, "")]
    if wait.handler is not None and "guard" in wait.reason:
        reasons += _of_guard(runner, state, index, wait.handler)
    return Disabled(wait.lane, wait.handler, reasons)


def _of_guard(runner: Runner, state: Sequence[int], index: int, name: str) -> Iterator[Clause]:
    """The parts of the guard that make it false; for a message that it refuses, the message first."""
    tabulation, codec = runner.tabulation, runner.tabulation.model_codec
    handlers = runner.system.classes[index].__plait_handlers__
    number = next(n for n, handler in enumerate(handlers) if handler.name == name)
    guard, local = handlers[number].where, runner.local(state, index)
    if guard is None:
        return
    if not handlers[number].messages:
        yield from clauses_of(guard, [codec.process(index, local)])
        return
    inbox = runner.engine.store.inbox(runner.engine.components(state)[1][index])
    pending = dict.fromkeys((sender, content) for _, sender, content in inbox)
    for_it = [message for message in pending if number in tabulation.handlers_for(index, *message)]
    answers = tabulation.guards(index, local, [(number, message) for message in for_it])
    refused = [message for message, answer in zip(for_it, answers, strict=True) if answer is None]
    for sender, content in refused[:_SHOWN]:
        message = codec.message(sender, content)
        yield Clause(f"{text(to_data(message))} from {runner.system.pids[sender]!r}", "refused")
        yield from clauses_of(guard, [codec.process(index, local), message])
