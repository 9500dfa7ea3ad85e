"""Why no step explains an event: for each step that might, the guard or the value that forbids it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from plait._native import Transition
from plait.check.explain.tracing import label
from plait.check.runner import Runner
from plait.check.walk.disabled import DisabledHandlers
from plait.conform.compiled import ENVIRONMENT, Compiled
from plait.conform.log import Event, Received, Sent
from plait.kernel.values import text, to_data
from plait.kernel.verdict import Candidate, Unexplained

_MOST = 8
"""Candidates that are shown."""


class Explanation:
    """Explains events that come next in a state of the engine."""

    def __init__(self, runner: Runner, compiled: Compiled) -> None:
        self.runner, self.compiled = runner, compiled
        self._disabled = DisabledHandlers(runner)
        self._events = compiled.engine_events

    def unexplained(self, front: Sequence[int], state: Sequence[int]) -> list[Unexplained]:
        """The next events of all processes that are ready, and why no step explains them. Root causes come first."""
        found = []
        for process, own in enumerate(self.compiled.events):
            if front[process] == len(own):
                continue
            if any(front[other] <= last for other, last in self.compiled.order.before[process][front[process]]):
                continue
            event = own[front[process]]
            found.append(
                Unexplained(
                    place=event.place,
                    process=self.runner.names[process],
                    event=self.compiled.described(event),
                    candidates=list(itertools.islice(self._candidates(process, front[process], event, state), _MOST)),
                    waits=self._waits(process, front, state),
                )
            )
        return sorted(found, key=lambda one: one.waits is not None)

    def _waits(self, process: int, front: Sequence[int], state: Sequence[int]) -> str | None:
        """The process that may still send a message that the next event receives."""
        number = front[process]
        inbox = {(sender, content) for _, sender, content in self._inbox(process, state)}
        for (sender, exact, pattern), _ in zip(
            self._events[process][number][2], self.compiled.events[process][number].record.received, strict=True
        ):
            if exact is not None:
                there = any((who, content) in inbox for who, content in exact)
            else:
                there = any(
                    sender in (None, who) and (pattern is None or self.compiled.matches(pattern, content))
                    for who, content in inbox
                )
            if there:
                continue
            senders = {who for who, _ in exact} if exact else {sender} - {None}
            for other in sorted(senders) if senders else range(len(front)):  # type: ignore[type-var]
                if other != process and other is not None and front[other] < len(self.compiled.events[other]):
                    return self.runner.names[other]
        return None

    def _inbox(self, process: int, state: Sequence[int]) -> list[tuple[int, int, bytes]]:
        return self.runner.engine.store.inbox(self.runner.engine.components(state)[1][process])

    # -- candidates ------------------------------------------------------------------------------------------------

    def _candidates(self, process: int, number: int, event: Event, state: Sequence[int]) -> Iterator[Candidate]:
        record = event.record
        if record.step is None and not record.received and not record.sent:
            yield Candidate("no step", list(self._fields(process, number, event, state)))
        steps = [t for t in self.runner.engine.successors(state) if t.process == process]
        named = [t for t in steps if record.step in (None, label(self.runner.system, t))]
        told: set[tuple[str, ...]] = set()
        for transition in named:
            forbids = list(self._forbids(process, number, event, transition))
            name = self._named(transition)
            if forbids and (name, *forbids) not in told:
                told.add((name, *forbids))
                yield Candidate(name, forbids)
        yield from self._disabled_ones(process, event, state, named)

    def _disabled_ones(
        self, process: int, event: Event, state: Sequence[int], possible: Sequence[Transition]
    ) -> Iterator[Candidate]:
        """Handlers that cannot run here, and why."""
        record = event.record
        lane = self.runner.names[process]
        if record.step in ENVIRONMENT:
            if not possible:
                yield Candidate(str(record.step), ["the model has no such step here"])
            return
        ran = {(lane, label(self.runner.system, t)) for t in possible}
        kinds = {one.type for one in record.received if one.type is not None}
        handlers = {h.name: h for h in self.runner.system.classes[process].__plait_handlers__}
        for one in self._disabled.others(state, ran):
            if one.lane != lane or (record.step is not None and one.handler not in (None, record.step)):
                continue
            if record.step is None and kinds and one.handler is not None:
                taken = {m.__name__ for message in handlers[one.handler].messages for m in message.__mro__}
                taken |= {
                    m.__name__
                    for m in self.compiled.types.values()
                    if issubclass(m, handlers[one.handler].messages or ())
                }
                if not kinds & taken:
                    continue
            reasons = [clause.text if not clause.value else f"{clause.text}: {clause.value}" for clause in one.reasons]
            yield Candidate(one.handler or lane, reasons)

    def _named(self, transition: Transition) -> str:
        """A step with the messages that it takes."""
        decode, names = self.runner.tabulation.codec.decode, self.runner.names
        taken = [f"{text(to_data(decode(content)))} from {names[who]}" for _, who, content in transition.consumed]
        name = label(self.runner.system, transition)
        return f"{name} with {', '.join(taken)}" if taken else name

    def _forbids(self, process: int, number: int, event: Event, transition: Transition) -> Iterator[str]:
        """What in an event does not fit a step."""
        if transition.failure is not None:
            yield f"the step fails: {transition.failure.message}"
            return
        record, (_, _, received, sent, _, _, _) = event.record, self._events[process][number]
        consumed = [(who, content) for _, who, content in transition.consumed]
        for item, taken in zip(received, record.received, strict=True):
            if not any(self._fits(item, who, who, content) for who, content in consumed):
                yield f"it does not take {_said(taken)}"
        sends = [(to, content) for to, _, content in transition.sends]
        messages = [one for one in record.sent for _ in ([one.to] if not isinstance(one.to, list) else one.to)]
        for item, message in zip(sent, messages, strict=True):
            if not any(self._fits(item, to, process, content) for to, content in sends):
                yield f"it does not send {_said(message)}"
        yield from self._fields(process, number, event, transition.state)
        _, _, all_sends, all_receives = self.compiled.complete[process]
        if all_receives and transition.kind == "step" and len(received) < len(consumed):
            yield f"it takes {len(consumed)} messages, and the log has {len(received)}"
        if all_sends and transition.kind == "step" and len(sent) < len(sends):
            yield f"it sends {len(sends)} messages, and the log has {len(sent)}"

    def _fits(self, item: Any, other: int, sender: int, content: bytes) -> bool:
        wanted, exact, pattern = item
        if wanted not in (None, other):
            return False
        if exact is not None:
            return (sender, content) in exact
        return pattern is None or self.compiled.matches(pattern, content)

    def _fields(self, process: int, number: int, event: Event, state: Sequence[int]) -> Iterator[str]:
        """The fields that have another value in a state."""
        local = self.runner.engine.components(state)[0][process]
        data = self.runner.data(process, local)
        parts = self.runner.tabulation.codec.fields(self.runner.engine.store.local(local))
        for (field, allowed), (name, value) in zip(
            self._events[process][number][4], event.record.state.items(), strict=True
        ):
            if field + 1 >= len(parts) or parts[field + 1] not in allowed:
                yield f"{name} is {text(data.get(name))}, and the log says {_plain(value)}"


def _said(message: Received | Sent) -> str:
    fields = ", ".join(f"{name}={_plain(value)}" for name, value in message.fields.items())
    where = ""
    if isinstance(message, Received) and message.sender is not None:
        where = f" from {message.sender}"
    if isinstance(message, Sent) and message.to is not None:
        where = f" to {message.to if isinstance(message.to, str) else ', '.join(message.to)}"
    return f"{message.type or 'a message'}({fields}){where}" if message.type else f"a message{where}"


def _plain(value: Any) -> str:
    return text(value) if isinstance(value, dict) else repr(value)
