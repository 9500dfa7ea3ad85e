"""Random P programs, and what they can do: an interpreter that takes one operation at a time, in all orders.

A program is data: machines with states, whose functions are lists of operations. It can be written as P text, and it can be
executed here, without the front end. Each operation is a step of its own, so machines interleave between any two of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import strategies as st

EVENTS = ("e0", "e1", "e2")
STATES = ("S0", "S1")
Op = tuple[Any, ...]


class State(NamedTuple):
    entry: tuple[Op, ...]
    exit: tuple[Op, ...]
    handlers: tuple[Op, ...]  # for each event: ("do", ops), ("goto", state, ops), ("defer",), ("ignore",), ("none",)


class Program(NamedTuple):
    machines: tuple[tuple[State, State], ...]  # the first creates the others
    fuel: int  # how often each machine sends, raises or goes to a state


# -- as text ---------------------------------------------------------------------------------------------------------------


def written(program: Program) -> str:
    """The program in P. A machine knows those that were created before it; the first knows all."""
    lines = [f"event {event}: int;" for event in EVENTS]
    lines += [f"spec Order observes {', '.join(EVENTS)} {{", "  var seen: int;", "  start state Watch {"]
    for number, event in enumerate(EVENTS):
        lines.append(f"    on {event} do (p: int) {{ seen = (seen * 5 + 3 * {number} + p) % 11; }}")
    lines += ["  }", "}"]
    for number, states in enumerate(program.machines):
        lines += [f"machine M{number} {{", "  var peers: seq[machine];", "  var x: int;", "  var fuel: int;"]
        for name, state in zip(STATES, states, strict=True):
            lines.append(f"  {'start ' if name == 'S0' else ''}state {name} {{")
            lines += ["    " + line for line in _entry(program, number, name, state)]
            lines += ["    exit {", *_ops(state.exit, "0", "      "), "    }"]
            for event, handler in zip(EVENTS, state.handlers, strict=True):
                if handler[0] == "do":
                    lines += [f"    on {event} do (p: int) {{", *_ops(handler[1], "p", "      "), "    }"]
                elif handler[0] == "goto":
                    lines += [
                        f"    on {event} goto {handler[1]} with (p: int) {{",
                        *_ops(handler[2], "p", "      "),
                        "    }",
                    ]
                elif handler[0] != "none":
                    lines.append(f"    {handler[0]} {event};")
            lines.append("  }")
        lines.append("}")
    lines.append("test random [main=M0]: assert Order in { M0 };")
    return "\n".join(lines)


def _entry(program: Program, number: int, name: str, state: State) -> Iterator[str]:
    """The entry function. The start state sets the machine up, if the machine has not been there before."""
    if name != "S0":
        yield from ("entry {", *_ops(state.entry, "0", "  "), "}")
        return
    yield "entry (given: any) {"
    yield "  if (sizeof(peers) == 0) {"
    yield f"    fuel = {program.fuel};"
    if number == 0:
        yield "    peers += (0, this);"
        for other in range(1, len(program.machines)):
            yield f"    peers += ({other}, new M{other}(peers));"
    else:
        yield "    peers = given as seq[machine];"
    yield "  }"
    yield from (*_ops(state.entry, "0", "  "), "}")


def _ops(ops: tuple[Op, ...], payload: str, indent: str) -> Iterator[str]:
    for op in ops:
        match op:
            case ("send", peer, event, value):
                what = f"send peers[{peer} % sizeof(peers)], {event}, {_value(value, payload)};"
                yield f"{indent}if (fuel > 0) {{ fuel = fuel - 1; {what} }}"
            case ("announce", event, value):
                yield f"{indent}announce {event}, {_value(value, payload)};"
            case ("add", number):
                yield f"{indent}x = (x + {number}) % 3;"
            case ("choose",):
                yield f"{indent}x = choose(2);"
            case ("assert", number):
                yield f"{indent}assert x != {number};"
            case ("if", number, yes, no):
                yield f"{indent}if (x == {number}) {{"
                yield from _ops(yes, payload, indent + "  ")
                yield f"{indent}}} else {{"
                yield from _ops(no, payload, indent + "  ")
                yield f"{indent}}}"
            case ("goto", state):
                to = "S0, null" if state == "S0" else state
                yield f"{indent}if (fuel > 0) {{ fuel = fuel - 1; goto {to}; }}"
            case ("raise", event, value):
                yield f"{indent}if (fuel > 0) {{ fuel = fuel - 1; raise {event}, {_value(value, payload)}; }}"
            case ("receive", event, inside):
                yield f"{indent}receive {{ case {event}: (q: int) {{"
                yield from _ops(inside, "q", indent + "  ")
                yield f"{indent}}} }}"


def _value(value: Any, payload: str) -> str:
    return payload if value == "p" else str(value)


# -- executed --------------------------------------------------------------------------------------------------------------


class Machine(NamedTuple):
    at: str = ""  # not created
    x: int = 0
    fuel: int = 0
    rest: tuple[tuple[Op, int], ...] = ()  # what is left to do, each with the payload
    queue: tuple[tuple[int, str, int], ...] = ()  # sender, event, payload


class World(NamedTuple):
    machines: tuple[Machine, ...]
    seen: int = 0  # by the specification


class FailedError(Exception):
    """An assertion fails, or an event is not handled."""


def begin(program: Program) -> World:
    first = Machine("S0", 0, program.fuel, _with((*_creations(program), *program.machines[0][0].entry), 0))
    return World((first, *(Machine() for _ in program.machines[1:])))


def _creations(program: Program) -> Iterator[Op]:
    for number in range(1, len(program.machines)):
        yield ("new", number)


def _with(ops: Any, payload: int) -> tuple[tuple[Op, int], ...]:
    return tuple((op, payload) for op in ops)


def steps(program: Program, world: World) -> Iterator[World]:
    """All worlds after one operation of one machine. Raises if one fails."""
    for number, machine in enumerate(world.machines):
        if not machine.at:
            continue
        if machine.rest and machine.rest[0][0][0] != "receive":
            yield from _operation(program, world, number)
            continue
        wanted = machine.rest[0][0][1] if machine.rest else None
        for place, (_, event, payload) in enumerate(machine.queue):
            handler = _handler(program, number, machine.at, event)
            if wanted is None and handler[0] == "defer":
                continue
            if wanted is not None and event != wanted:
                continue
            after = machine._replace(queue=machine.queue[:place] + machine.queue[place + 1 :])
            if wanted is not None:
                inside = _with(machine.rest[0][0][2], payload)
                yield _set(world, number, after._replace(rest=inside + machine.rest[1:]))
            else:
                yield _set(world, number, after._replace(rest=_reaction(program, number, machine.at, event, payload)))
            break


def _handler(program: Program, number: int, at: str, event: str) -> Op:
    return program.machines[number][STATES.index(at)].handlers[EVENTS.index(event)]


def _reaction(program: Program, number: int, at: str, event: str, payload: int) -> tuple[tuple[Op, int], ...]:
    """What a machine does with an event."""
    handler = _handler(program, number, at, event)
    match handler:
        case ("do", ops):
            return _with(ops, payload)
        case ("goto", state, ops):
            here = program.machines[number][STATES.index(at)]
            return (*_with(here.exit, 0), *_with(ops, payload), *_entering(program, number, state))
        case ("none",):
            raise FailedError
    return ()  # ignored, or raised and deferred: P drops it


def _entering(program: Program, number: int, state: str) -> tuple[tuple[Op, int], ...]:
    there = program.machines[number][STATES.index(state)]
    return (((("at", state), 0)), *_with(there.entry, 0))


def _set(world: World, number: int, machine: Machine) -> World:
    return world._replace(machines=(*world.machines[:number], machine, *world.machines[number + 1 :]))


def _operation(program: Program, world: World, number: int) -> Iterator[World]:
    machine = world.machines[number]
    (op, payload), rest = machine.rest[0], machine.rest[1:]
    after = machine._replace(rest=rest)
    value = payload if op[-1] == "p" else op[-1]
    if op[0] in ("send", "goto", "raise"):
        if not machine.fuel:
            yield _set(world, number, after)
            return
        after = after._replace(fuel=machine.fuel - 1)
    match op:
        case ("new", other):
            entry = program.machines[other][0].entry
            created = world.machines[other]._replace(at="S0", fuel=program.fuel, rest=_with(entry, 0))
            yield _set(_set(world, number, after), other, created)
        case ("send", peer, event, _):
            to = peer % (len(program.machines) if number == 0 else number)
            told = _told(_set(world, number, after), event, value)
            target = told.machines[to]
            yield _set(told, to, target._replace(queue=(*target.queue, (number, event, value))))
        case ("announce", event, _):
            yield _told(_set(world, number, after), event, value)
        case ("add", amount):
            yield _set(world, number, after._replace(x=(machine.x + amount) % 3))
        case ("choose",):
            for x in range(2):
                yield _set(world, number, after._replace(x=x))
        case ("assert", bad):
            if machine.x == bad:
                raise FailedError
            yield _set(world, number, after)
        case ("if", wanted, yes, no):
            inside = _with(yes if machine.x == wanted else no, payload)
            yield _set(world, number, after._replace(rest=inside + rest))
        case ("goto", state):
            here = program.machines[number][STATES.index(machine.at)]
            jump = (*_with(here.exit, 0), *_entering(program, number, state))
            yield _set(world, number, after._replace(rest=jump))
        case ("raise", event, _):
            yield _set(world, number, after._replace(rest=_reaction(program, number, machine.at, event, value)))
        case ("at", state):
            yield _set(world, number, after._replace(at=state))


def _told(world: World, event: str, value: int) -> World:
    return world._replace(seen=(world.seen * 5 + 3 * EVENTS.index(event) + value) % 11)


class Outcomes(NamedTuple):
    fails: bool
    ends: frozenset[World]  # without what is left to do; a machine that waits has ... in its place
    complete: bool


def outcomes(program: Program, limit: int = 3000) -> Outcomes:
    """All that can happen: whether something fails, and the states in which nothing more can happen."""
    start = begin(program)
    met, waiting, ends, fails = {start}, [start], set(), False
    while waiting:
        world = waiting.pop()
        try:
            after = list(steps(program, world))
        except FailedError:
            fails = True
            continue
        if not after:
            ends.add(
                world._replace(
                    machines=tuple(m._replace(rest=((("wait",), 0),) if m.rest else ()) for m in world.machines)
                )
            )
        for other in after:
            if other not in met:
                met.add(other)
                waiting.append(other)
        if len(met) > limit:
            return Outcomes(fails, frozenset(ends), False)
    return Outcomes(fails, frozenset(ends), True)


# -- random ----------------------------------------------------------------------------------------------------------------

_VALUES = st.sampled_from((0, 1, "p"))
_EVENT = st.sampled_from(EVENTS)
_SIMPLE = st.one_of(
    st.tuples(st.just("send"), st.integers(0, 2), _EVENT, _VALUES),
    st.tuples(st.just("send"), st.integers(0, 2), _EVENT, _VALUES),
    st.tuples(st.just("announce"), _EVENT, _VALUES),
    st.tuples(st.just("add"), st.integers(1, 2)),
    st.just(("choose",)),
    st.tuples(st.just("assert"), st.integers(1, 2)),
)
_JUMP = st.one_of(
    st.tuples(st.just("goto"), st.sampled_from(STATES)), st.tuples(st.just("raise"), _EVENT, st.sampled_from((0, 1)))
)
_INSIDE = st.lists(_SIMPLE, max_size=2).map(tuple)
_RECEIVE = st.tuples(st.just("receive"), _EVENT, st.lists(_SIMPLE | _JUMP, max_size=2).map(tuple))
_IF = st.tuples(st.just("if"), st.integers(0, 1), st.lists(_SIMPLE | _JUMP, max_size=2).map(tuple), _INSIDE)
_SEND = st.tuples(st.just("send"), st.integers(0, 2), _EVENT, _VALUES)
_OPS = st.lists(st.one_of(_SIMPLE, _SEND, _SEND, _SIMPLE, _IF, _JUMP, _RECEIVE), max_size=4).map(tuple)
_HANDLER = st.one_of(
    st.tuples(st.just("do"), _OPS),
    st.tuples(st.just("do"), _OPS),
    st.tuples(st.just("goto"), st.just("S1"), _INSIDE),
    st.just(("defer",)),
    st.just(("ignore",)),
    st.just(("none",)),
)
_STATE = st.builds(State, _OPS, _INSIDE, st.tuples(_HANDLER, _HANDLER, _HANDLER))
_HARMLESS = st.builds(State, _OPS, _INSIDE, st.tuples(*[_HANDLER.filter(lambda h: h[0] != "none")] * 3))


def programs(limit: int = 1500) -> st.SearchStrategy[tuple[Program, Outcomes]]:
    """Programs with few states, and their outcomes."""
    machines = st.lists(st.tuples(_HARMLESS | _STATE, _HARMLESS | _STATE), min_size=2, max_size=3).map(tuple)
    made = st.builds(Program, machines, st.integers(1, 2))
    return made.map(lambda p: (p, outcomes(p, limit))).filter(lambda pair: pair[1].complete)
