"""Why a property is false in the last state of a run: its clauses, its reads, and the steps that caused them.

- *Clauses*: the property ended in a statement (a return, a failed assertion). This statement, with the tests and loops
  around it, is divided into parts, down to the part that makes it false. Each part is shown with its values.
- *Reads*: each field that the property read, with its value and the last step that wrote it; pending messages in
  inboxes; processes that are not running.
- *Slice*: the steps that caused these writes. A step reads fields of its own process and takes messages. Earlier steps
  wrote and sent them, and so on. The other steps did not contribute. What monitors require does not count: without
  an earlier step, a monitor may refuse what a step announces.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import itertools
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

from plait.check.explain.tracing import Tracer
from plait.check.runner import Runner
from plait.check.tabulate.codec import require_users
from plait.ir.definition import definition
from plait.kernel.trace import Clause, Event, Read, Why
from plait.kernel.values import to_data
from plait.model.properties import Property
from plait.model.view import ProcessView, View

MOST_CLAUSES = 12
"""The maximum number of lines: a longer explanation is harder to read."""


def why(tracer: Tracer, prop: Property, number: int, events: Sequence[Event]) -> Why:
    """Why the property has its value in the last state."""
    runner = tracer.runner
    locals_, inboxes, monitors, _ = runner.engine.components(tracer.state)
    tabulation, system = runner.tabulation, runner.system
    _, components = tabulation.evaluate(number, locals_, inboxes, monitors)
    # What a process has in its fields also depends on whether it runs.
    fields = {(i, at) for kind, i, position in components if kind == "field" for at in (0, position)}
    last = events[-1].state if events else tracer.initial
    reads = []
    for index, position in sorted(fields):  # a property may have read them in the order of a set
        if index >= len(tracer.names):
            if position:
                cell = system.cells[index - len(tracer.names)]
                lane = repr(cell.shared)
                reads.append(Read(lane, cell.name, last.fields[lane][cell.name], _writer(events, lane, cell.name)))
            continue
        lane = tracer.names[index]
        if position:
            name = system.classes[index].__plait_fields__[position - 1]
            reads.append(Read(lane, name, last.fields[lane].get(name), _writer(events, lane, name)))
        elif (step := _standing(events, lane)) is not None or lane in last.status:
            reads.append(Read(lane, "status", last.status.get(lane, "up"), step))
    for kind, index, _ in sorted(components):
        if kind == "monitor":
            name = type(system.monitors[index]).__name__
            step = next((i for i, e in reversed([*enumerate(events)]) if e.announced), None)
            reads.append(Read(name, None, last.monitors.get(name), step))
        elif kind == "inbox" and last.pending.get(tracer.names[index]):
            lane = tracer.names[index]
            step = next((i for i, e in reversed([*enumerate(events)]) if {*e.sent} & {*last.pending[lane]}), None)
            reads.append(Read(lane, "inbox", [to_data(m) for m in tabulation.inbox_value(inboxes[index])], step))
    roots = {read.step for read in reads if read.step is not None}
    if any(read.field is None for read in reads):  # a monitor depends on all announcements
        roots |= {i for i, e in enumerate(events) if e.announced}
    roots |= _of_inboxes(tracer, components, events)
    if prop.kind == "final":  # every step contributes to the state being terminal
        roots |= set(range(len(events)))
    return Why(clauses(prop, view_of(runner, tracer.state)), _by_step(reads), _sliced(tracer, events, roots))


def violators(tracer: Tracer, prop: Property) -> list[list[str]]:
    """The processes, or pairs, for which a property of each process or of pairs is false in the last state."""
    if prop.quantified is None:
        return []
    return [[repr(p.id) for p in chosen] for chosen in prop.quantified.violators(view_of(tracer.runner, tracer.state))]


def view_of(runner: Runner, state: Sequence[int]) -> View:
    """A view of a state."""
    locals_, inboxes, monitors, _ = runner.engine.components(state)
    tabulation, processes = runner.tabulation, len(runner.system.classes)
    view = View(
        runner.system,
        lambda i: tabulation.local_value(i, locals_[i]),
        lambda i: tabulation.inbox_value(inboxes[i]),
        lambda i: tabulation.monitor_value(i, monitors[i]),
        cell=lambda i: tabulation.cell_value(locals_[processes + i]),
    )
    tabulation.model_codec.cells.begin_view(view.cell)
    return view


def why_failed(tracer: Tracer, events: Sequence[Event]) -> Why:
    """Why the last step failed: the reads of the step, and their causes."""
    failing = events[-1]
    roots = {len(events) - 1}
    if failing.announced:  # a monitor may have raised, and it depends on all announcements
        roots |= {i for i, e in enumerate(events) if e.announced}
    before = events[-2].state if len(events) > 1 else tracer.initial
    reads = []
    for read in failing.read:
        lane, name = _place(failing, read)
        reads.append(Read(lane, name, before.fields[lane].get(name), _writer(events[:-1], lane, name)))
    return Why([], _by_step(reads), _sliced(tracer, events, roots))


def _place(event: Event, read: str) -> tuple[str, str]:
    """The lane and the field that a step names: its own lane, or the lane of a shared object or of a clock."""
    lane, _, name = read.rpartition(".")
    return lane or event.lane, name


def _by_step(reads: list[Read]) -> list[Read]:
    """Reads in the order of the steps that wrote them; what no step wrote comes last."""
    return sorted(reads, key=lambda r: (r.step is None, r.step))


def _sliced(tracer: Tracer, events: Sequence[Event], roots: set[int]) -> list[int]:
    kind = tracer.system.network.kind
    queues = {m.id: m.sender if kind == "fifo" else "" for m in tracer.messages} if kind in ("fifo", "mailbox") else {}
    return sorted(_slice(events, roots, queues))


def _standing(events: Sequence[Event], lane: str) -> int | None:
    """The last step that started, stopped or restarted a process."""
    for i in reversed(range(len(events))):
        if lane in events[i].spawned or (events[i].lane == lane and events[i].kind in ("crash", "recover")):
            return i
    return None


def _writer(events: Sequence[Event], lane: str, name: str, before: int | None = None) -> int | None:
    """The last step that wrote a field."""
    for i in reversed(range(len(events) if before is None else before)):
        event = events[i]
        if (event.lane == lane and name in event.changed) or f"{lane}.{name}" in event.changed:
            return i
        if lane in event.spawned:
            return i
        if event.lane == lane and event.kind in ("crash", "recover"):
            return i
    return None


def _of_inboxes(tracer: Tracer, components: Sequence[tuple[str, int, int]], events: Sequence[Event]) -> set[int]:
    """The steps that sent the pending messages of inboxes that were read."""
    read = {tracer.names[index] for kind, index, _ in components if kind == "inbox"}
    pending = {m for lane in read for m in (events[-1].state.pending.get(lane, []) if events else [])}
    senders = _senders(events)
    return {senders[message] for message in pending if message in senders}


def _senders(events: Sequence[Event]) -> dict[int, int]:
    """For each message, the step that sent it, or that made the copy: the latest message that is pending then."""
    found = {message: i for i, event in enumerate(events) for message in event.sent}
    for i, event in enumerate(events):
        if event.kind == "duplicate":
            found.setdefault(max(event.state.pending[event.lane]), i)
    return found


def _slice(events: Sequence[Event], roots: set[int], queues: dict[int, str]) -> set[int]:
    """The steps that these steps depend on. In a queue, a message is taken after the messages before it."""
    senders = _senders(events)
    found: set[int] = set()
    waiting = sorted(roots)
    while waiting:
        number = waiting.pop()
        if number in found:
            continue
        found.add(number)
        event = events[number]
        waiting += [senders[m] for m in event.consumed if m in senders]
        read = event.changed if event.kind == "tick" else event.read  # a clock goes on from where it was
        written = (_writer(events, *_place(event, name), number) for name in read)
        waiting += [step for step in (*written, _standing(events[:number], event.lane)) if step is not None]
        heads = {queues[m] for m in event.consumed if m in queues}
        waiting += [
            i
            for i, other in enumerate(events[:number])
            if other.lane == event.lane and heads & {queues.get(m) for m in other.consumed}
        ]
    return found


# -- clauses -----------------------------------------------------------------------------------------------------------


def clauses(prop: Property, view: View) -> list[Clause]:
    """The parts that decide the value of a property, each with its value. Nothing if there is no source."""
    return list(itertools.islice(_caught(_clauses(prop, view)), MOST_CLAUSES))


def clauses_of(function: Any, arguments: Sequence[Any]) -> list[Clause]:
    """The parts that decide what a function of the model returns, such as a guard."""
    return list(itertools.islice(_caught(_inside(function, arguments, set())), MOST_CLAUSES))


def _caught(found: Iterator[Clause]) -> Iterator[Clause]:
    """A part may raise if it is evaluated alone. The verdict does not depend on this."""
    try:
        yield from found
    except BaseException as error:
        require_users(error)


def _clauses(prop: Property, view: View) -> Iterator[Clause]:
    if prop.quantified is None:
        yield from _inside(prop.predicate, [view], set())
        return
    chosen = next(prop.quantified.violators(view))
    names = inspect.signature(prop.function).parameters
    told: set[str] = set()
    yield _with(dict(zip(names, chosen, strict=False)), told)
    yield from _inside(prop.function, chosen, told)


def _inside(function: Any, arguments: Sequence[Any], told: set[str]) -> Iterator[Clause]:
    """Why a function returns its value."""
    node = _definition(function) if isinstance(function, types.FunctionType) else None
    if node is None:
        return
    names = {**vars(builtins), **function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        names[name] = cell.cell_contents
    line, local = _ending(function, arguments)
    if isinstance(node, ast.Lambda):
        yield from _explained(node.body, {**names, **local}, told)
    else:
        yield from _statement(node.body, line, {**names, **local}, told)


def _ending(function: types.FunctionType, arguments: Sequence[Any]) -> tuple[int, dict[str, Any]]:
    """The line in which a function returns or an assertion fails, and the variables there."""
    found: tuple[int, dict[str, Any]] = (0, {})

    def follow(frame: types.FrameType, event: str, argument: Any) -> Any:
        nonlocal found
        if frame.f_code is not function.__code__:
            return None
        found = (frame.f_lineno, dict(frame.f_locals))
        return follow

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        function(*arguments)
    except AssertionError:
        pass
    finally:
        sys.settrace(before)
    return found


def _statement(body: Sequence[ast.stmt], line: int, names: dict[str, Any], told: set[str]) -> Iterator[Clause]:
    """Why the statement in this line was reached, and its parts."""
    here = next((node for node in body if node.lineno <= line <= (node.end_lineno or 0)), None)
    match here:
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield from _explained(value, names, told)
        case ast.Assert(test=test):
            yield from _explained(test, names, told)
        case ast.If(test=test):
            inner = here.body if any(n.lineno <= line <= (n.end_lineno or 0) for n in here.body) else here.orelse
            if isinstance(inner[0], ast.Return) and isinstance(inner[0].value, ast.Constant):
                yield from _explained(test, names, told)
            else:
                yield _clause(test, _value(test, names))
            yield from _statement(inner, line, names, told)
        case ast.For():
            bound = [n.id for n in ast.walk(here.target) if isinstance(n, ast.Name) and n.id in names]
            yield _with({name: names[name] for name in bound}, told)
            yield from _statement(here.body, line, names, told)
        case ast.Match(subject=subject):
            yield _clause(subject, _value(subject, names))
            for case in here.cases:
                yield from _statement(case.body, line, names, told)
        case ast.With() | ast.While() | ast.Try():
            for part in (here.body, *(handler.body for handler in getattr(here, "handlers", ()))):
                yield from _statement(part, line, names, told)


def _explained(node: ast.expr, names: dict[str, Any], told: set[str]) -> Iterator[Clause]:
    value = _value(node, names)
    match node:
        case ast.BoolOp(values=parts) if bool(value) == isinstance(node.op, ast.Or):
            part = next(p for p in parts if bool(_value(p, names)) == bool(value))
            yield from _explained(part, names, told)
        case ast.BoolOp(values=parts):
            for part in parts:
                yield from _explained(part, names, told)
        case ast.UnaryOp(op=ast.Not(), operand=part):
            yield from _explained(part, names, told)
        case ast.IfExp(test=test, body=body, orelse=other):
            yield _clause(test, _value(test, names))
            yield from _explained(body if _value(test, names) else other, names, told)
        case ast.Call(func=ast.Name(id="bool"), args=[part], keywords=[]):
            yield from _explained(part, names, told)
        case ast.Call(func=ast.Name(id="all" | "any" as which), args=[ast.GeneratorExp() as loop], keywords=[]) if bool(
            value
        ) == (which == "any"):
            found = _instance(loop, which == "any", names)
            yield _clause(node, value)
            yield _with(found, told)
            yield from _explained(loop.elt, {**names, **found}, told)
        case ast.Compare(left=left, comparators=rights):
            yield _clause(node, value)
            for part in (left, *rights):
                if _text(part) not in told and any(isinstance(n, ast.Name) for n in ast.walk(part)):
                    told.add(_text(part))
                    yield _clause(part, _value(part, names))
        case ast.Constant():
            return  # it explains nothing
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if _is_users(names.get(name)):
            yield _clause(node, value)
            if not any(isinstance(part, ast.Starred) for part in given):
                yield from _inside(names[name], [_value(part, names) for part in given], set())
        case _:
            yield _clause(node, value)


def _is_users(value: Any) -> bool:
    """Whether this is a function of the model, not of Plait or a library."""
    if not isinstance(value, types.FunctionType):
        return False
    package = value.__module__.partition(".")[0]
    return value.__module__.startswith("plait.protocols") or package not in {"plait", *sys.stdlib_module_names}


def _with(found: dict[str, Any], told: set[str]) -> Clause:
    """The values of the variables of a loop."""
    told |= found.keys()
    return Clause("with " + ", ".join(f"{name} = {_shown(v)}" for name, v in found.items()), "")


def _instance(loop: ast.GeneratorExp, wanted: bool, names: dict[str, Any]) -> dict[str, Any]:
    """The first values of the loop's variables for which its element is true (or false)."""
    bound = [n.id for g in loop.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)]
    elements: list[ast.expr] = [ast.Name(name, ast.Load()) for name in bound]
    pairs = ast.GeneratorExp(ast.Tuple([loop.elt, *elements], ast.Load()), loop.generators)
    for value, *found in _value(pairs, names):
        if bool(value) == wanted:
            return dict(zip(bound, found, strict=True))
    raise LookupError


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(_compiled(node), names)


# The explorer asks about the same guards again and again.
@functools.lru_cache(4_096)
def _compiled(node: ast.expr) -> types.CodeType:
    return compile(ast.fix_missing_locations(ast.Expression(node)), "<property>", "eval")


_text = functools.lru_cache(4_096)(ast.unparse)
_definition = functools.lru_cache(1_024)(definition)


def _clause(node: ast.expr, value: Any) -> Clause:
    text = _text(node)
    match node:
        case ast.Call(args=[ast.GeneratorExp() as loop], keywords=[]):
            text = f"{ast.unparse(node.func)}{ast.unparse(loop)}"  # one pair of parentheses is enough
    return Clause(text, _shown(value))


def _repr(value: Any) -> str:
    """The value as Python writes it, with the elements of sets in a fixed order."""
    if type(value) in (set, frozenset) and value:
        inner = "{" + ", ".join(sorted(map(_repr, value))) + "}"
        return inner if type(value) is set else f"frozenset({inner})"
    if isinstance(value, ProcessView):
        return repr(value.id)
    return "[" + ", ".join(map(_repr, value)) + "]" if type(value) is list else repr(value)


def _shown(value: Any) -> str:
    text = _repr(value)
    return text if len(text) <= 100 else text[:99] + "…"
