"""Threads: each place that makes threads has processes of its own, one for each thread that it can make."""

from __future__ import annotations

import ast
import collections
import queue
import threading
from collections.abc import Callable
from typing import Any

from plait.bmc.program.arithmetic import operation
from plait.bmc.program.builder import CodeBuilder
from plait.bmc.program.definition import ASSERTIONS, Constant, Expr, Read, Require, Set
from plait.bmc.python.functions import Closure, Frame, Function
from plait.bmc.python.heap import Site
from plait.bmc.python.library.loaded import asyncio
from plait.bmc.python.library.locks import Locks
from plait.bmc.python.translation import CONTAINERS, LOCK, RLOCK, ThreadPlan
from plait.bmc.python.values import (
    BOOL,
    INT,
    NO_VALUE,
    NONE_VALUE,
    Value,
    converted,
    known,
    number,
    scalar,
)

_PARAMETERS = ("group", "target", "name", "args", "kwargs")
_METHODS: dict[type, tuple[str, dict[str, tuple[str, ...]]]] = {
    LOCK: ("lock", {"acquire": ("blocking", "timeout")}),
    RLOCK: ("lock", {"acquire": ("blocking", "timeout")}),
    threading.Condition: (
        "condition",
        {
            "acquire": ("blocking", "timeout"),
            "wait": ("timeout",),
            "wait_for": ("predicate", "timeout"),
            "notify": ("n",),
        },
    ),
    threading.Semaphore: ("semaphore", {"acquire": ("blocking", "timeout"), "release": ("n",)}),
    threading.Event: ("event", {"wait": ("timeout",)}),
    threading.Barrier: ("barrier", {"wait": ("timeout",)}),
    queue.Queue: (
        "queue",
        {
            "put": ("item", "block", "timeout"),
            "get": ("block", "timeout"),
            "put_nowait": ("item",),
        },
    ),
    queue.SimpleQueue: (
        "queue",
        {
            "put": ("item", "block", "timeout"),
            "get": ("block", "timeout"),
            "put_nowait": ("item",),
        },
    ),
    threading.Thread: ("thread", {"join": ("timeout",)}),
}
"""The classes of Python that synchronize, and the parameters of their methods."""


class Threads(Locks):
    """Translates threads, and finds the methods of objects of Python."""

    # -- objects of Python ---------------------------------------------------------------------------------------------

    def library_method(
        self, receiver: Value, name: str, given: list[Value], named: dict[str, Value], node: ast.AST
    ) -> Value | None:
        """Call a method of an object of Python. None: the method is one of the user."""
        site = receiver.type.site
        assert site is not None
        for cls, (kind, parameters) in (_METHODS | {asyncio.Task: ("task", {})}).items():
            if issubclass(site.cls, cls):
                if site.cls is not cls and name in _own_names(site.cls, cls):
                    return None
                if kind == "thread" and name not in ("start", "join", "is_alive", "setDaemon"):
                    return None
                if any(v.type.category == "never" for v in (*given, *named.values())):
                    return NO_VALUE
                values = dict(zip(parameters.get(name, ()), given, strict=False)) | named
                method: Callable[..., Value | None] = getattr(self, f"{kind}_method")
                found = method(receiver, name, values, node)
                if found is None:
                    raise self.refused(
                        node, f"the method {name} of {site.cls.__name__} is not supported", "use another one"
                    )
                return found
        if issubclass(site.cls, CONTAINERS):
            return self.container_method(receiver, name, given, named, node)
        return None

    def library_attribute(self, value: Value, name: str, node: ast.AST) -> Value | None:
        """An attribute of an object of Python. None: it is a field of the user."""
        site = value.type.site
        assert site is not None
        if issubclass(site.cls, threading.Thread) and name in ("name", "daemon", "ident", "native_id"):
            if name == "ident":
                return Value(INT, (scalar(value, self.heap),)) if value.parts else number(1)
            return known(node)
        return None

    def set_library_attribute(self, value: Value, name: str, content: Value, node: ast.AST) -> bool:
        """Assign an attribute of an object of Python. False: it is a field of the user."""
        site = value.type.site
        assert site is not None
        if not issubclass(site.cls, threading.Thread) or name not in ("daemon", "name"):
            return False
        if name == "daemon":
            for member, _ in self.member(site, self.reference(value, name)):
                for plan in self._plans(member):
                    plan.code.required = not content.type.constant
        return True

    def library_base_call(
        self, owner: type, receiver: Value, name: str, found: list[Value], named: dict[str, Value], node: ast.AST
    ) -> Value:
        """Call a method of a class of Python on an object of a derived class."""
        if issubclass(owner, threading.Thread) and name == "__init__":
            return self._initialize(receiver, found, named, node)
        if issubclass(owner, threading.Thread) and name in ("start", "join", "is_alive"):
            values = dict(zip(("timeout",), found, strict=False)) | named
            result = self.thread_method(receiver, name, values, node)
            return NONE_VALUE if result is None else result
        raise self.refused(node, f"{owner.__name__}.{name} is not supported", "call methods of your classes")

    def make_library_object(self, target: Any, node: ast.Call) -> Value | None:
        """Make an object of a class of Python. None: the class is not known."""
        try:
            hash(target)
        except TypeError:
            return None
        if target is threading.Thread:
            given = next((k.value for k in node.keywords if k.arg == "kwargs"), None)
            kept = node
            if isinstance(given, ast.Dict) and all(isinstance(k, ast.Constant) for k in given.keys):
                kept = ast.copy_location(ast.Call(node.func, node.args, []), node)
                kept.keywords = [k for k in node.keywords if k.arg != "kwargs"]
            else:
                given = None
            found, named = self.arguments(kept)
            extra = {} if given is None else self._named_arguments(given)
            named |= {f"kwargs {name}": value for name, value in extra.items()}
            if any(v.type.category == "never" for v in (*found, *named.values())):
                return NO_VALUE
            _, value, _ = self.allocate(node, threading.Thread, "thread", most=self.of.options.threads)
            self._initialize(value, found, named, node)
            return value
        if target in (list, dict, set, collections.deque) and not node.args:
            return self.made(node, target, [], [] if target is dict else None)
        if target in (queue.Queue, queue.LifoQueue, queue.SimpleQueue) or getattr(target, "__module__", "") in (
            "threading",
            "_thread",
        ):
            found, named = self.arguments(node)
            if any(v.type.category == "never" for v in (*found, *named.values())):
                return NO_VALUE
            return self.make_lock(target, found, named, node)
        return None

    def _named_arguments(self, node: ast.Dict) -> dict[str, Value]:
        pairs = zip(node.keys, node.values, strict=True)
        return {str(k.value): self.expr(v) for k, v in pairs if isinstance(k, ast.Constant)}

    # -- making threads ------------------------------------------------------------------------------------------------

    def _initialize(self, value: Value, found: list[Value], named: dict[str, Value], node: ast.AST) -> Value:
        """`Thread.__init__`"""
        site = value.type.site
        assert site is not None
        values = dict(zip(_PARAMETERS, found, strict=False)) | named
        target = values.get("target", NONE_VALUE)
        arguments = values.get("args", Value(converted_empty()))
        if "kwargs" in values:
            raise self.refused(
                node, "kwargs of a thread is not supported here", "write kwargs={…} in the call of Thread"
            )
        if arguments.type.category == "ref":
            raise self.refused(node, "the arguments of a thread must be a tuple", "write args=(…,)")
        reference = scalar(value, self.heap)
        member = self.member(site, reference)[0][0]
        if member.capacity > 1:
            member = self._made_here(site, node) or member
        daemon = values.get("daemon", NONE_VALUE)
        required = not daemon.type.constant
        label = values.get("name")
        plans = [
            self._plan(member, copy, None if target.type.category == "none" else target, required, label)
            for copy in range(member.capacity)
        ]
        for plan in plans:
            plan.frame, plan.node = self.frame, node
        extra = {n.removeprefix("kwargs "): v for n, v in named.items() if n.startswith("kwargs ")}
        items = [*self.tuple_items(arguments), *extra.values()]
        for plan in plans:
            plan.names = list(extra)
        receiver = target if target.type.category == "method" else None
        if member.capacity == 1:
            self._give(plans[0], items, receiver)
            return NONE_VALUE
        end = self.code.label()
        for copy, plan in enumerate(plans):
            here, following = self.code.label(), self.code.label()
            this = operation("==", reference, Constant(self.heap.first(member) + copy))
            self.code.branch(this, here, following)
            self.code.mark(here)
            self._give(plan, items, receiver)
            self.code.jump(end)
            self.code.mark(following)
        self.code.mark(end)
        return NONE_VALUE

    def _made_here(self, site: Site, node: ast.AST) -> Site | None:
        return next((m for m in self.heap.pool(site) if m.key == ("made", self.frame.context, node)), None)

    def _give(self, plan: ThreadPlan, items: list[Value], receiver: Value | None) -> None:
        """Keep the arguments of a thread until it starts."""
        given = [*([] if receiver is None else [receiver]), *items]
        kept: list[Value] = []
        for at, value in enumerate(given):
            key = ("argument", plan.site, plan.copy, at)
            t = self.joined(key, value.type, "an argument of a thread")
            if all(isinstance(part, Constant) for part in value.parts) and plan.site.capacity == 1:
                kept.append(value)
                continue
            variables = self.of.variables(key, t, f"{plan.code.name} argument", None, NO_VALUE)
            self.write([(v, None) for v in variables], converted(value, t, self.heap), value.type, t)
            kept.append(Value(t, tuple(Read(v) for v in variables)))
        if receiver is not None:
            plan.target, kept = kept[0], kept[1:]
        plan.arguments = kept

    def _plan(
        self, site: Site, copy: int, target: Value | None, required: bool, label: Value | None = None, role: str = ""
    ) -> ThreadPlan:
        static = None if target is None or target.type.static is None else target.type.static.value
        if isinstance(static, Closure):
            self.unshared(static.function, static.frame)
        found = self.of.plans.get((site, copy))
        if found is None:
            role = role or self.role(site, target)
            name = self._label(label) or self.of.unique(role)
            code = self.of.builder.process(name, role, spawned=True, required=required)
            found = self.of.plans[site, copy] = ThreadPlan(site, copy, code, target)
        elif target is not None:
            found.target = target
        return found

    def unshared(self, function: Function, frame: Frame | None) -> None:
        """A thread must not use the variables of a function that is called again and again: each call has its own."""
        used = function.free & (frame.captured if frame is not None else frozenset())
        if frame is not None and frame.repeated and used:
            what = f"{function.name} uses {', '.join(sorted(used))} of {frame.function.name}, which a loop calls"
            raise self.refused(self.node, what, "pass the values as arguments of the thread")

    def role(self, site: Site, target: Value | None) -> str:
        """What threads of a place are called."""
        if target is None or target.type.category == "never":
            return site.cls.__name__
        if target.type.category == "method":
            return target.type.name
        static = target.type.static
        found = getattr(static.value, "function", static.value) if static is not None else None
        return getattr(found, "__name__", None) or getattr(found, "name", None) or "thread"

    def _label(self, label: Value | None) -> str | None:
        if label is None or label.type.category != "str" or label.type.constant is None:
            return None
        text = next(k for k, v in self.heap.texts.items() if v == label.type.constant)
        return self.of.unique(str(text))

    def _plans(self, site: Site) -> list[ThreadPlan]:
        return [plan for (other, _), plan in self.of.plans.items() if other is site]

    # -- using threads -------------------------------------------------------------------------------------------------

    def for_each_thread(self, value: Value, act: Callable[[CodeBuilder], None]) -> None:
        """An operation for the thread that a reference means."""
        site = value.type.site
        assert site is not None
        reference = self.reference(value, "a method")
        end = self.code.label()
        candidates: list[tuple[Expr, ThreadPlan]] = []
        for member in self.heap.pool(site):
            for plan in self._plans(member):
                this = Constant(self.heap.first(member) + plan.copy)
                candidates.append((operation("==", reference, this), plan))
        for condition, plan in candidates:
            if condition == Constant(False):
                continue
            here, following = self.code.label(), self.code.label()
            self.code.branch(condition, here, following)
            self.code.mark(here)
            act(plan.code)
            self.code.jump(end)
            self.code.mark(following)
        self.code.jump(end)
        self.code.mark(end)

    def thread_method(self, value: Value, name: str, values: dict[str, Value], node: ast.AST) -> Value | None:
        """A method of a thread."""
        site = value.type.site
        assert site is not None
        begun = self.cell(site, "was started", self.reference(value, name), BOOL)
        if name == "start":
            self.code.set(begun[0], Constant(True), begun[1]) if False else None
            old = self.read(BOOL, [begun], atomic=True)
            text = "RuntimeError: threads can only be started once"
            self.check(operation("==", scalar(old, self.heap), Constant(False)), RuntimeError, ASSERTIONS, text)
            self.code.set(begun[0], Constant(True), begun[1], synchronizes=True)
            self.for_each_thread(value, lambda code: self.code.step([Set(code.started, None, Constant(True))]))
            return NONE_VALUE
        if name == "join":
            old = self.read(BOOL, [begun], atomic=True)
            text = "RuntimeError: cannot join thread before it is started"
            self.check(scalar(old, self.heap), RuntimeError, ASSERTIONS, text)
            if self.patience(values):
                self.for_each_thread(value, lambda code: self.code.step([Require(Read(code.finished))], waits=True))
            return NONE_VALUE
        if name == "is_alive":
            result = self.code.temporary("bool")

            def alive(code: CodeBuilder) -> None:
                running = operation("&&", Read(code.started), operation("==", Read(code.finished), Constant(False)))
                self.emit([Set(result, None, running)], atomic=True)

            self.for_each_thread(value, alive)
            return Value(BOOL, (Read(result),))
        return NONE_VALUE if name == "setDaemon" else None

    def thread_function(self, target: Any, node: ast.Call) -> Value | None:
        """Functions of `threading`."""
        if target is threading.get_ident or target is threading.get_native_id:
            return number(self.code.number + 1)
        return None

    def run_plan(self, plan: ThreadPlan) -> None:
        """The code of a thread."""
        frame, node = plan.frame, plan.node
        self.frame = frame
        self.at(node)
        arguments = self.received(plan, [*([plan.target] if plan.target is not None else []), *plan.arguments])
        if plan.target is None:
            receiver = self.of.reference(plan.site, Constant(plan.copy))
            self.dispatched(receiver, "run", [], {}, node)
        else:
            first = len(arguments) - len(plan.names)
            named = dict(zip(plan.names, arguments[first:], strict=True))
            self.call_value(arguments[0], arguments[1:first], named, node)
        self.code.end()

    def received(self, plan: ThreadPlan, values: list[Value]) -> list[Value]:
        """The arguments of a thread: it reads them in its first step."""
        arguments, actions = [], []
        for value in values:
            copy, more = self.copied(value)
            arguments.append(copy if value.parts and not isinstance(value.parts[0], Constant) else value)
            actions += more if arguments[-1] is copy else []
        first = self.code.operations[0]
        first.actions = (*first.actions, *actions)
        return arguments


def converted_empty() -> Any:
    """The type of the empty tuple."""
    from plait.bmc.python.values import tuple_of

    return tuple_of(())


def _own_names(cls: type, base: type) -> set[str]:
    """The names that the user's classes between a class and a class of Python define."""
    found: set[str] = set()
    for other in cls.__mro__:
        if other is base:
            break
        if other.__module__ not in ("threading", "queue", "_thread"):
            found |= set(vars(other))
    return found
