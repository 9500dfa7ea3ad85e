"""The dependence graph of a model's source, and why a field is relevant.

An edge from a to b says: the value of b, or whether b happens, may depend on a. *Sinks* are observable: a guard, a
send, an announcement, a choice, a spawned process, an assertion, an exception, a read by a property. A field is
auxiliary if no sink can be reached from it. Proof: take two local states that differ only in such fields, and run one
handler on both. By induction over the run, all values, tests and effects that lead to a sink are equal in both runs,
because their inputs lead to the sink too. So the guards agree. The runs take the same observable branches and have the
same effects. They end in states with equal relevant fields: Definition 1 of DBSS. With shared state, a local state means
the fields of a process and those of all shared objects: a handler reads and writes these, and no others.

`plait.check.source.dataflow` builds the graph, one handler of one class at a time. The graph is an over-approximation:
code that the analysis does not support makes all fields of the class relevant, and all shared fields, which it may read
and write. The reason then names that code.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

from plait._native import Codec
from plait.check.source import purity
from plait.check.source.classes import Classes
from plait.check.source.dataflow import (
    EscapeError,
    Field,
    Flow,
    Graph,
    Node,
    Owner,
    References,
    Value,
    annotated,
    shared_classes,
)
from plait.ir.definition import UNKNOWN, bindings, definition, static_value
from plait.ir.program import Lowering
from plait.ir.reason import NotLoweredError
from plait.ir.scope import Instance
from plait.kernel.pid import Pid
from plait.model.message import Message
from plait.model.monitor import Monitor
from plait.model.process import Handler, Process
from plait.model.properties import Property
from plait.model.shared import Shared
from plait.model.system import System
from plait.model.view import ProcessView, view_class

Reasons = dict[Field, tuple[str, ...]]


class Dependences(NamedTuple):
    """What the analysis found, and what it assumed."""

    reasons: Reasons
    """For each relevant field, the chain from the code that reads it to an observable effect."""
    records: frozenset[type]
    """The classes of all values, apart from builtin types."""
    relied: tuple[tuple[type[Message], str, type], ...]
    """Fields of messages that must have these types."""


_HARMLESS = {"builtins", "collections", "itertools", "functools", "math", "dataclasses", "typing"}
"""Modules whose classes and functions never read a field whose name is passed to them."""
_REVEALING = {"getattr", "vars", "dir", "eval", "exec", "globals", "locals", "attrgetter", "methodcaller"}


def dependences(system: System) -> Dependences:
    """Which fields of the system are relevant, and why."""
    classes = Classes(system)
    untyped = _untyped_at_first(system)
    lowering = Lowering(system, Codec(Pid).encode, whole=True)
    for shared in shared_classes(system):  # any function may get a reference to it
        lowering.classes.number(shared)
    entries = {cls: [_entries(lowering, cls, h) for h in cls.__plait_handlers__] for cls in system.classes}
    lowering.complete()
    references = _references_at_first(system)
    while True:
        graph = _graph(system, lowering, entries, classes, untyped, references)
        if graph.mistyped <= untyped and not graph.assigned & references.keys():
            break
        untyped |= graph.mistyped
        references = {field: found for field, found in references.items() if field not in graph.assigned}
    for cls in graph.process_classes:
        for name in cls.__plait_clocks__:
            graph.sink([("field", cls, name)], "the tick reads it")
    for prop in system.properties:
        _property(graph, system, prop)
    relied = sorted(graph.relied, key=lambda f: (f[0].__qualname__, f[1]))
    types_ = tuple((cls, name, annotated(cls, name) or object) for cls, name in relied)
    return Dependences(_reasons(graph, system), frozenset(classes.records), types_)


class Entry(NamedTuple):
    """A function of a handler."""

    label: str
    number: int | EscapeError
    """Its number in the program."""
    many: bool
    """It gets several messages."""


Entries = list[Entry]
"""The functions of a handler. The last one is its body."""


def _entries(lowering: Lowering, cls: type[Process], handler: Handler) -> Entries:
    label = f"{cls.__name__}.{handler.name}"
    given = (Instance(cls), None) if handler.kind == "message" else (Instance(cls),)
    parts: list[tuple[str, Any, Any, bool]] = [
        (f"the guard of {label}", handler.where, given, False),
        (f"the quorum of {label}", handler.size, given[:1], False),
        (f"the accept guard of {label}", handler.accept, given, True),
        (label, handler.function, given, handler.quorum is not None),
    ]
    found: Entries = []
    for name, function, kinds, many in parts:
        if not callable(function):
            continue
        try:
            number: int | EscapeError = lowering.entry(function, kinds)
        except NotLoweredError as error:
            number = EscapeError(f"{name}: {error}")
        found.append(Entry(name, number, many))
    return found


def _graph(
    system: System,
    lowering: Lowering,
    entries: dict[type[Process], list[Entries]],
    classes: Classes,
    untyped: set[Field],
    references: References,
) -> Graph:
    """The dependences of all handlers, if these fields have values of several types."""
    graph = Graph(system, lowering, classes, untyped, references)
    special = classes.special()
    hooks = filter(None, map(lowering.classes.self_objection, shared_classes(system)))
    objection = f"operators on values may run {special}" if special is not None else next(hooks, None)
    for cls in graph.process_classes:
        try:
            if objection is not None:
                raise EscapeError(objection)
            for handler, functions in zip(cls.__plait_handlers__, entries[cls], strict=True):
                _handler(graph, system, cls, handler, functions)
        except EscapeError as escape:
            fields: list[Field] = [*((cls, name) for name in cls.__plait_fields__), *graph.shared_fields]
            for field in fields:
                graph.sink([("field", *field)], escape.reason)
            graph.mistyped |= set(graph.shared_fields)
            graph.assigned |= set(fields)
            for spawned in system.classes[len(system.processes) :]:  # it may spawn them with any values
                graph.mistyped |= {(spawned, name) for name in spawned.__plait_fields__}
    return graph


def _untyped_at_first(system: System) -> set[Field]:
    """The fields whose first value, or default, does not have the type of the annotation."""
    found: set[Field] = set()
    for shared in system.shared:
        for name in shared.__plait_fields__:
            if purity.plain_type(shared.__dict__[name]) is not annotated(type(shared), name):
                found.add((type(shared), name))
    for cls, process in zip(system.classes, [*system.processes, *[None] * len(system.classes)], strict=False):
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            values = [] if process is None else [process.__dict__[field.name]]
            if process is None and field.default is not dataclasses.MISSING:
                values.append(field.default)
            elif process is None and field.default_factory is not dataclasses.MISSING:
                values.append(field.default_factory())
            settled = process is None and not purity.is_plain_init(cls)  # it may set the field
            if settled or any(purity.plain_type(value) is not annotated(cls, field.name) for value in values):
                found.add((cls, field.name))
    return found


def _references_at_first(system: System) -> References:
    """The fields that hold references to shared objects at first. Fields of spawned processes may get any values."""
    found: dict[Field, set[Any]] = {}
    spare = system.classes[len(system.processes) :]
    for owner in (*system.processes, *system.shared):
        for name in owner.__plait_fields__ if type(owner) not in spare else ():
            found.setdefault((type(owner), name), set()).add(type(owner.__dict__[name]))
    shared = set(shared_classes(system))
    return {field: frozenset(classes) for field, classes in found.items() if classes <= shared}


def _handler(graph: Graph, system: System, cls: type[Process], handler: Handler, functions: Entries) -> None:
    for label, number, many in functions:
        if isinstance(number, EscapeError):
            raise number
        flow = Flow(graph, cls, handler.message, many)
        result = flow.call(number, [Value()] * (graph.function(number).parameters), frozenset(), root=True)
        if label != functions[-1].label:
            graph.sink(result.deps, label)
        written = flow.finish()
    finals = [p.name for p in system.properties if p.kind == "final"]
    if finals and _may_be_idle(system, handler, flow):
        # Without the written fields, such a step looks as if it changed nothing. A state that no step changes is
        # terminal.
        graph.sink(written, f"{label} may have no other effect, and {finals[0]} is about terminal states", minor=True)


def _may_be_idle(system: System, handler: Handler, flow: Flow) -> bool:
    """Whether a step may change only the fields that it writes."""
    if handler.kind not in ("action", "message"):
        return False
    network = system.network
    if not handler.messages or (network.kind == "duplicating" and network.duplications is None):
        return True
    # The step removes a message. The message is pending again only if the step sends it to its own process.
    return any(sent is None or issubclass(sent, handler.messages) for sent in flow.sent)


def _reasons(graph: Graph, system: System) -> Reasons:
    """Walk backwards from the sinks, breadth first: the first path to a field is a shortest one."""
    towards: dict[Node, Node | None] = {}
    for minor in (False, True):  # a possible exception is the weaker reason
        sinks = [node for node in graph.sources if node[0] == "sink" and node[1] is minor]
        towards |= dict.fromkeys(sinks)
        queue = deque(sinks)
        while queue:
            node = queue.popleft()
            for source in sorted(graph.sources.get(node, ()), key=graph.label):
                if source not in towards:
                    towards[source] = node
                    queue.append(source)
    reasons: Reasons = {}
    for cls, name in fields_of(system):
        chain: list[str] = []
        step = towards.get(("field", cls, name))
        while step is not None:
            if step[0] != "result" or "<lambda>" not in graph.label(step):  # the label of the guard is enough
                chain.append(graph.label(step))
            step = towards[step]
        if chain:
            reasons[cls, name] = tuple(dict.fromkeys(chain))
    return reasons


def fields_of(system: System) -> list[Field]:
    """The fields of all processes and shared objects, by class."""
    owners: list[Owner] = [*dict.fromkeys(system.classes), *shared_classes(system)]
    return [(cls, name) for cls in owners for name in cls.__plait_fields__]


# -- properties --------------------------------------------------------------------------------------------------------


def _property(graph: Graph, system: System, prop: Property) -> None:
    """A property reads the fields whose names occur in it, and in what it calls.

    A missed name cannot make a verdict wrong: reading an auxiliary field through the view is an error.
    """
    fields = fields_of(system)
    try:
        seen: set[Any] = set()
        read = dict(_names_read(system, prop.predicate, seen))
        for cls in dict.fromkeys(system.classes):  # operators on processes may run these
            special = vars(view_class(cast(Any, cls), ProcessView)).keys() - vars(ProcessView).keys()
            for name in sorted(special):
                read |= dict(_member(system, inspect.getattr_static(cls, name), seen))
    except EscapeError as escape:
        graph.sink([("field", *f) for f in fields], f"property {prop.name}: {escape.reason}")
        return
    for owner, name in fields:
        if name in read:
            graph.sink([("field", owner, name)], f"property {prop.name} reads it ({read[name]})")


def _names_read(system: System, function: Any, seen: set[Any]) -> Iterator[tuple[str, str]]:
    """Attribute names that occur in a function or in the values that it refers to, with the place."""
    if isinstance(function, types.MethodType):
        function = function.__func__
    if not isinstance(function, types.FunctionType):
        raise EscapeError(f"{function!r} has no source")
    if function in seen:
        return
    seen.add(function)
    node = definition(function)
    if node is None:
        raise EscapeError(f"the source of {function.__qualname__} is not available")
    local = set(bindings(node))
    body = node.body if isinstance(node.body, list) else [node.body]
    for inner in (part for top in body for part in ast.walk(top)):
        place = f"line {getattr(inner, 'lineno', 0)}"
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and inner.value.isidentifier():
            yield inner.value, place  # getattr(p, "log")
        if isinstance(inner, ast.MatchClass):
            yield from ((name, place) for name in inner.kwd_attrs)
        if isinstance(inner, ast.Attribute):
            if inner.attr in ("format", "format_map"):
                raise EscapeError(f"it calls {inner.attr}, which reads attributes")
            yield inner.attr, place
            for cls in (*map(type, system.monitors), *system.classes, *shared_classes(system)):
                yield from _member(system, inspect.getattr_static(cls, inner.attr, None), seen)
        if isinstance(inner, ast.Name | ast.Attribute):
            yield from _referred(system, static_value(function, inner, local), seen)


def _member(system: System, value: Any, seen: set[Any]) -> Iterator[tuple[str, str]]:
    """The reads of a method, or of a property, of a process, a monitor or a shared object."""
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if callable(value) and not isinstance(value, type) and not _is_ours(getattr(value, "__module__", None) or ""):
        yield from _names_read(system, value, seen)


def _referred(system: System, value: Any, seen: set[Any]) -> Iterator[tuple[str, str]]:
    """The reads that a global of a property adds."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    name, module = getattr(value, "__name__", ""), getattr(value, "__module__", None) or ""
    if value is UNKNOWN or value is getattr:
        # A local name, or getattr, which is supported with a constant name only.
        if value is getattr and not _constant_getattrs(seen):
            raise EscapeError("it calls getattr")
    elif isinstance(value, Property):
        yield from _names_read(system, value.predicate, seen)
    elif name in _REVEALING and callable(value):
        raise EscapeError(f"it calls {name}")
    elif isinstance(value, types.FunctionType):
        if module.partition(".")[0] not in _HARMLESS and not _is_ours(module):
            yield from _names_read(system, value, seen)
    elif isinstance(value, type):
        known = (Process, Message, Monitor, Shared, enum.Enum, BaseException)
        if not issubclass(value, known) and module.partition(".")[0] not in _HARMLESS and not _is_ours(module):
            for method in value.__dict__.values():
                if isinstance(method, types.FunctionType) and method.__code__.co_filename != "<string>":
                    yield from _names_read(system, method, seen)
    elif isinstance(value, types.MethodType):
        yield from _names_read(system, value, seen)
    elif callable(value) and not isinstance(value, types.BuiltinFunctionType | types.ModuleType):
        raise EscapeError(f"{value!r} has no source")


def _is_ours(module: str) -> bool:
    return module.startswith(("plait.model.", "plait.kernel."))


def _constant_getattrs(functions: Iterable[Any]) -> bool:
    """Whether every getattr in these functions has a constant name."""
    for function in functions:
        node = definition(function)
        for inner in ast.walk(node) if node is not None else ():
            if isinstance(inner, ast.Name) and inner.id == "getattr":
                calls = [c for c in ast.walk(node) if isinstance(c, ast.Call) and c.func is inner]  # type: ignore[arg-type]
                if not calls or len(calls[0].args) < 2 or not isinstance(calls[0].args[1], ast.Constant):
                    return False
    return True
