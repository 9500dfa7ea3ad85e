"""Why a property is false in the last state of a run: its clauses, what it read, who wrote that, and what led there.

- *Clauses*: the expression that the property returns is taken apart, as far as it is a plain expression, down to the part
  that makes it false, with the values in it.
- *Reads*: each field that the property read, its value, and the step that wrote it last.
- *Slice*: the steps that those writes go back to: what a step read of its own process, and the messages it took, were
  written and sent by earlier steps, and so on. The other steps have no part in it.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from plait.check.tracing import Tracer
from plait.kernel.trace import Clause, Event, Read, Why
from plait.model.properties import Property
from plait.model.view import View

MOST_CLAUSES = 12
"""Lines of explanation; more would explain less."""


def why(tracer: Tracer, prop: Property, number: int, events: Sequence[Event]) -> Why:
    """Why the property has its value in the last state."""
    runner = tracer.runner
    locals_, inboxes, monitors, _ = runner.engine.components(tracer.state)
    tabulation, system = runner.tabulation, runner.system
    _, components, fields = tabulation.evaluate(number, locals_, inboxes, monitors)
    view = View(
        system,
        lambda i: tabulation.local_value(i, locals_[i]),
        lambda i: tabulation.inbox_value(inboxes[i]),
        lambda i: tabulation.monitor_value(i, monitors[i]),
    )
    last = events[-1].state if events else tracer.initial
    reads = []
    for index, position in dict.fromkeys(fields):
        if position:
            lane, name = tracer.names[index], system.classes[index].__plait_fields__[position - 1]
            reads.append(Read(lane, name, last.fields[lane].get(name), _writer(events, lane, name)))
    for kind, index in components:
        if kind == "monitor":
            name = type(system.monitors[index]).__name__
            step = next((i for i, e in reversed([*enumerate(events)]) if e.announced), None)
            reads.append(Read(name, None, last.monitors.get(name), step))
    roots = {read.step for read in reads if read.step is not None}
    if any(read.field is None for read in reads):  # a monitor remembers everything that was announced
        roots |= {i for i, e in enumerate(events) if e.announced}
    roots |= _of_inboxes(tracer, components, events)
    clauses = list(_clauses(prop.predicate, view))[:MOST_CLAUSES]
    steps = _slice(events, roots, {m.id: m.sender for m in tracer.messages} if system.network.kind == "fifo" else {})
    return Why(clauses, sorted(reads, key=lambda r: (r.step is None, r.step)), sorted(steps))


def _writer(events: Sequence[Event], lane: str, name: str, before: int | None = None) -> int | None:
    """The last step that wrote a field."""
    for i in reversed(range(len(events) if before is None else before)):
        event = events[i]
        if (event.lane == lane and name in event.changed) or lane in event.spawned:
            return i
        if event.lane == lane and event.kind in ("crash", "recover"):
            return i
    return None


def _of_inboxes(tracer: Tracer, components: Sequence[tuple[str, int]], events: Sequence[Event]) -> set[int]:
    """The steps that sent what is pending in inboxes that were read."""
    read = {tracer.names[index] for kind, index in components if kind == "inbox"}
    pending = {m for lane in read for m in (events[-1].state.pending.get(lane, []) if events else [])}
    return {i for i, event in enumerate(events) if pending & {*event.sent}}


def _slice(events: Sequence[Event], roots: set[int], queues: dict[int, str]) -> set[int]:
    """The steps that others go back to. Where messages queue up, by sender, one is taken after those before it."""
    senders = {message: i for i, event in enumerate(events) for message in event.sent}
    found: set[int] = set()
    waiting = sorted(roots)
    while waiting:
        number = waiting.pop()
        if number in found:
            continue
        found.add(number)
        event = events[number]
        waiting += [senders[m] for m in event.consumed if m in senders]
        written = (_writer(events, event.lane, name, number) for name in event.read)
        waiting += [step for step in written if step is not None]
        heads = {queues[m] for m in event.consumed if m in queues}
        waiting += [
            i
            for i, other in enumerate(events[:number])
            if other.lane == event.lane and heads & {queues.get(m) for m in other.consumed}
        ]
    return found


# -- clauses -----------------------------------------------------------------------------------------------------------


def _clauses(predicate: Callable[[Any], Any], view: View) -> Iterator[Clause]:
    """The parts that make a property false, each with its value; nothing for what is no plain expression."""
    parsed = _expression(predicate)
    if parsed is None:
        return
    expression, argument = parsed
    code = getattr(predicate, "__code__", None)
    cells = zip(code.co_freevars if code else (), getattr(predicate, "__closure__", None) or (), strict=True)
    names = {**vars(builtins), **getattr(predicate, "__globals__", {}), argument: view}
    for name, cell in cells:
        names[name] = cell.cell_contents
    try:
        yield from _explained(expression, names)
    except Exception:  # what it calls may not like to be asked in pieces; the verdict does not depend on this
        return


def _expression(predicate: Callable[[Any], Any]) -> tuple[ast.expr, str] | None:
    """The one expression that a function returns, and the name of its argument."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(predicate)))
    except (OSError, TypeError, SyntaxError):
        return None
    match tree.body:
        case [
            ast.FunctionDef(args=ast.arguments(args=[argument]), body=[*others, ast.Return(value=ast.expr() as value)])
        ]:
            if all(isinstance(o, ast.Expr) and isinstance(o.value, ast.Constant) for o in others):
                return value, argument.arg
    return None


def _explained(node: ast.expr, names: dict[str, Any]) -> Iterator[Clause]:
    value = _value(node, names)
    match node:
        case ast.BoolOp(values=parts) if bool(value) == isinstance(node.op, ast.Or):
            part = next(p for p in parts if bool(_value(p, names)) == bool(value))
            yield from _explained(part, names)
        case ast.BoolOp(values=parts):
            deciding = [p for p in parts if bool(_value(p, names)) == bool(value)]
            for part in deciding[:1] if isinstance(node.op, ast.And) else deciding:
                yield from _explained(part, names)
        case ast.UnaryOp(op=ast.Not(), operand=part):
            yield from _explained(part, names)
        case ast.IfExp(test=test, body=body, orelse=other):
            yield _clause(test, _value(test, names))
            yield from _explained(body if _value(test, names) else other, names)
        case ast.Call(func=ast.Name(id="bool"), args=[part], keywords=[]):
            yield from _explained(part, names)
        case ast.Call(func=ast.Name(id="all" | "any" as which), args=[ast.GeneratorExp() as loop], keywords=[]) if bool(
            value
        ) == (which == "any"):
            found = _instance(loop, which == "any", names)
            yield _clause(node, value)
            yield Clause("with " + ", ".join(f"{name} = {_shown(v)}" for name, v in found.items()), "")
            yield from _explained(loop.elt, {**names, **found})
        case ast.Compare(left=left, comparators=rights):
            yield _clause(node, value)
            for part in (left, *rights):
                if not isinstance(part, ast.Constant | ast.Name):
                    yield _clause(part, _value(part, names))
        case _:
            yield _clause(node, value)


def _instance(loop: ast.GeneratorExp, wanted: bool, names: dict[str, Any]) -> dict[str, Any]:
    """The first values of the loop's variables for which its element is true, or false."""
    bound = [n.id for g in loop.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)]
    elements: list[ast.expr] = [ast.Name(name, ast.Load()) for name in bound]
    pairs = ast.GeneratorExp(ast.Tuple([loop.elt, *elements], ast.Load()), loop.generators)
    for value, *found in _value(pairs, names):
        if bool(value) == wanted:
            return dict(zip(bound, found, strict=True))
    raise LookupError


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    expression = ast.fix_missing_locations(ast.Expression(node))
    return eval(compile(expression, "<property>", "eval"), names)


def _clause(node: ast.expr, value: Any) -> Clause:
    text = ast.unparse(node)
    match node:
        case ast.Call(args=[ast.GeneratorExp() as loop], keywords=[]):
            text = f"{ast.unparse(node.func)}{ast.unparse(loop)}"  # once in parentheses is enough
    return Clause(text, _shown(value))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:99] + "…"
