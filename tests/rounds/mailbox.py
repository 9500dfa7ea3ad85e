"""Distal's semantics as in Sequentialization (section 3.1), with a mailbox: slow, obvious, and without a line of Plait.

A process has a pool, where messages to it arrive, and a mailbox `mbox`. In every iteration of its loop it moves a subset of
the pool to the mailbox, and runs the first upon that is enabled. What that upon counted is used up; the rest stays in the
mailbox. A timeout may come or not.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

Local = dict[str, Any]


class Mail(NamedTuple):
    kind: str
    sender: int
    fields: tuple[Any, ...]


@dataclass(frozen=True)
class Upon:
    kind: str | None
    """None is a timeout."""
    guard: Callable[[Local, Mail | None], bool]
    action: Callable[[Local, list[Mail], Callable[[int, str, tuple[Any, ...]], None]], None]
    times: int | None = None
    """More than so many messages; None is one message."""
    together: Callable[[Local, list[Mail]], bool] | None = None
    """What else must hold for all its messages in the mailbox."""
    until: bool = False
    """Whether a timeout of its own may end its waiting, with any number of messages."""
    timer: str = ""
    """The name of a timeout."""


@dataclass(frozen=True)
class Protocol:
    start: list[Local]
    init: Callable[[Local, Callable[[int, str, tuple[Any, ...]], None]], None]
    upons: list[Upon]


class State(NamedTuple):
    locals: tuple[tuple[tuple[str, Any], ...], ...]
    pools: tuple[tuple[Mail, ...], ...]
    boxes: tuple[tuple[Mail, ...], ...]


def reachable(protocol: Protocol) -> set[tuple[tuple[str, Any], ...]]:
    """All local states of all processes in all runs, with the process's number."""
    local, pools = copy.deepcopy(protocol.start), [[] for _ in protocol.start]  # type: list[Local], list[list[Mail]]
    for p, fields in enumerate(local):
        protocol.init(fields, lambda to, kind, content, p=p: pools[to].append(Mail(kind, p, content)))  # type: ignore[misc]
    first = _frozen(local, pools, [[] for _ in local])
    seen, todo = {first}, [first]
    while todo:
        for after in _iterations(protocol, todo.pop()):
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return {(("process", p), *fields) for state in seen for p, fields in enumerate(state.locals)}


def _frozen(local: list[Local], pools: list[list[Mail]], boxes: list[list[Mail]]) -> State:
    return State(
        tuple(tuple(sorted(fields.items())) for fields in local),
        tuple(tuple(sorted(pool, key=repr)) for pool in pools),
        tuple(tuple(sorted(box, key=repr)) for box in boxes),
    )


def _iterations(protocol: Protocol, state: State) -> Iterator[State]:
    """What one process does next: it moves a message (and so, by and by, any subset), or runs the first enabled upon."""
    for p in range(len(state.locals)):
        for i, mail in enumerate(state.pools[p]):
            rest, box = [*state.pools[p][:i], *state.pools[p][i + 1 :]], [*state.boxes[p], mail]
            yield state._replace(
                pools=(*state.pools[:p], tuple(rest), *state.pools[p + 1 :]),
                boxes=(*state.boxes[:p], tuple(sorted(box, key=repr)), *state.boxes[p + 1 :]),
            )
        timers = {upon.timer for upon in protocol.upons if upon.kind is None}
        for timeout in (None, *timers, *(number for number, upon in enumerate(protocol.upons) if upon.until)):
            after = _run(protocol, state, p, timeout)
            if after is not None:
                yield after


def _run(protocol: Protocol, state: State, p: int, timeout: str | int | None) -> State | None:
    """The first enabled upon. `timeout` is what happens: nothing, a timeout with this name, or that of this upon."""
    local, pools, boxes = (
        [dict(f) for f in state.locals],
        [list(x) for x in state.pools],
        [list(x) for x in state.boxes],
    )
    mine, box = local[p], boxes[p]
    for number, upon in enumerate(protocol.upons):
        if upon.kind is None:
            used: list[Mail] = []
            enabled = timeout == upon.timer and upon.guard(mine, None)
        else:
            used = [mail for mail in box if mail.kind == upon.kind and upon.guard(mine, mail)]
            enabled = len({mail.sender for mail in used}) > (upon.times or 0)
            if upon.together is not None:
                enabled = enabled and upon.together(mine, used)
            elif upon.times is None and not upon.until:
                used = used[:1]
            enabled = enabled or (upon.until and timeout == number and upon.guard(mine, None))
        if enabled:
            for mail in used:
                box.remove(mail)
            upon.action(mine, used, lambda to, kind, content: pools[to].append(Mail(kind, p, content)))
            return _frozen(local, pools, boxes)
    return None
