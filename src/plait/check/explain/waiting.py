"""Who waits for what in a state in which no step is possible: for each process, why none of its handlers can run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from plait.check.runner import Runner
from plait.check.tabulate.guards import Takes
from plait.kernel.trace import Wait
from plait.model.process import Handler


def waiting(runner: Runner, state: Sequence[int]) -> list[Wait]:
    """For each handler of each process, why it cannot run, or does nothing. A process that does not run has one entry."""
    return [wait for index in range(len(runner.system.classes)) for wait in waiting_of(runner, state, index)]


def waiting_of(runner: Runner, state: Sequence[int], index: int) -> list[Wait]:
    """The same for one process."""
    tabulation, cls, pid = runner.tabulation, runner.system.classes[index], runner.system.pids[index]
    locals_, inboxes, _, _ = runner.engine.components(state)
    status = tabulation.local_value(index, locals_[index])[0]
    if status == "unborn":
        return []
    if status != "up":
        return [Wait(repr(pid), None, f"it is {status}")]
    local = runner.local(state, index)
    armed = {takes.handler: takes for takes in tabulation.armed(index, local)}
    pending = [(sender, content) for _, sender, content in runner.engine.store.inbox(inboxes[index])]
    handlers = [(n, h) for n, h in enumerate(cls.__plait_handlers__) if h.kind in ("action", "message")]
    found = [] if handlers else [Wait(repr(pid), None, "it has no handlers")]
    for number, handler in handlers:
        for_it = [m for m in dict.fromkeys(pending) if number in tabulation.handlers_for(index, *m)]
        answers = list(zip(for_it, tabulation.guards(index, local, [(number, m) for m in for_it]), strict=True))
        taken = [a for _, a in answers if a is not None]
        reason = _full(runner, index, number, local, inboxes, [m for m, a in answers if a is not None])
        reason = reason or _reason(handler, armed.get(number), len(for_it), len(taken))
        found.append(Wait(repr(pid), handler.name, reason))
    return found


def _full(
    runner: Runner, index: int, number: int, local: bytes, inboxes: Sequence[int], taken: Sequence[tuple[int, bytes]]
) -> str | None:
    """The channels that are too full for what a handler would send, as text; None if this is not the reason."""
    system, capacity = runner.system, runner.system.network.capacity
    handler = system.classes[index].__plait_handlers__[number]
    if capacity is None or system.network.full == "drop" or handler.quorum is not None:
        return None
    if not handler.messages and number not in {entry[0] for entry in runner.tabulation.armed(index, local)}:
        return None
    full: set[str] = set()
    for messages in [[message] for message in taken] if handler.messages else [[]]:
        for outcome in runner.tabulation.step(index, local, number, messages):
            for to, count in Counter(to for to, _ in outcome.sends).items():
                pending = [(sender, content) for _, sender, content in runner.engine.store.inbox(inboxes[to])]
                left = [m for m in pending if m not in messages or to != index]
                if sum(sender == index for sender, _ in left) + count > capacity:
                    full.add(repr(system.pids[to]))
    return f"there is no room in the channel to {' and to '.join(sorted(full))}" if full else None


def _reason(handler: Handler, wanted: Takes | None, pending: int, accepted: int) -> str:
    """Why a handler cannot run: which messages it wants, how many are pending for it, and which its guard accepts."""
    if not handler.messages:
        return "its guard is false" if wanted is None else "it changes nothing"
    name = handler.message_names
    if not pending:
        return f"no {name} is pending"
    if not accepted:
        return f"its guard refuses {'the' if pending == 1 else f'all {pending}'} pending {name}"
    if wanted is not None and (wanted.least > 1 or wanted.accepts):
        count = f"{'at least ' if wanted.most > wanted.least else ''}{wanted.least} {name}"
        senders = " from distinct senders" if wanted.distinct else ""
        together = "that it accepts" if wanted.accepts else "that fit together"
        return f"it needs {count}{senders} {together}: {accepted} of {pending} pending fit"
    return "it changes nothing"
