"""Tasks of asyncio: each is a process whose steps end at an `await` that suspends.

All code of a task is an atomic section. An `await` that does not suspend (a free lock, a task that has ended, another
coroutine) is no scheduling point. Tasks that can run do so in any order: Python promises none. When `asyncio.run` is
over, tasks that are left do not continue.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from msgspec import structs

from plait.bmc.program.arithmetic import operation
from plait.bmc.program.definition import (
    Constant,
    Expr,
    Read,
    Set,
    Variable,
)
from plait.bmc.python.code import Exit
from plait.bmc.python.functions import Frame, Function
from plait.bmc.python.library.awaitables import Awaitable, Awaitables, Coroutine, is_object
from plait.bmc.python.library.loaded import asyncio
from plait.bmc.python.translation import ThreadPlan
from plait.bmc.python.values import BOOL, NO_VALUE, NONE_VALUE, Value, converted, known, scalar

_REFUSED = ("current_task", "wait", "as_completed", "wait_for", "to_thread", "shield")


class TaskGroup:
    """The object of `async with asyncio.TaskGroup()`."""

    def __init__(self) -> None:
        self.values: list[tuple[Any, Value]] = []

    def create_task(self) -> None:
        """Its only method: see `Tasks.library_call`."""


class Tasks(Awaitables):
    """Translates asynchronous code."""

    def main(self, function: Function, values: dict[str, Value], node: ast.AST) -> None:
        """The code of the main thread."""
        if not function.suspends:
            super().main(function, values, node)
            return
        self._loop(lambda: self.inserted(function, [], values, node))

    def _loop(self, run: Callable[[], Value]) -> Value:
        """`asyncio.run`"""
        self.code.enter()
        result = run()
        self.code.step([Set(self.closed(), None, Constant(True))])
        self.code.leave()
        return result

    # -- coroutines ----------------------------------------------------------------------------------------------------

    def coroutine(
        self,
        function: Function,
        found: list[Value],
        named: dict[str, Value],
        outer: Frame | None,
        owner: type | None,
        node: ast.AST,
    ) -> Value:
        """A call of an asynchronous function."""
        return known(Coroutine(function, found, named, outer, owner, node))

    def _await(self, node: ast.Await) -> Value:
        return self.awaited(self.expr(node.value), node)

    def awaited(self, value: Value, node: ast.AST) -> Value:
        """`await value`"""
        t = value.type
        if t.category == "never":
            return NO_VALUE
        static = t.static.value if t.static is not None else None
        if isinstance(static, Coroutine):
            return self._run(static)
        if isinstance(static, Awaitable):
            return static.run()
        if t.category == "ref" and t.site is not None and issubclass(t.site.cls, asyncio.Task):
            return self._join(value)
        raise self.refused(node, "this object cannot be awaited", "await a coroutine, a task, or an object of asyncio")

    def _run(self, coroutine: Coroutine) -> Value:
        return self.inserted(
            coroutine.function,
            coroutine.found,
            coroutine.named,
            coroutine.node,
            outer=coroutine.outer,
            owner=coroutine.owner,
        )

    # -- tasks ---------------------------------------------------------------------------------------------------------

    def create(self, value: Value, node: ast.AST, tag: int = 0) -> Value:
        """`asyncio.create_task(value)`: a task is returned as it is."""
        static = value.type.static.value if value.type.static is not None else None
        if isinstance(static, Awaitable):
            raise self.refused(node, "a task of an object of asyncio is not supported", "write a coroutine around it")
        if not isinstance(static, Coroutine):
            return value
        self.unshared(static.function, static.outer)
        before = self.frame
        self.frame = structs.replace(before, context=self.of.context(before.context, node, ("task", tag)))
        site, task, copy = self.allocate(node, asyncio.Task, "task", most=self.of.options.threads)
        names = list(static.named)
        given = [*static.found, *static.named.values()]
        end = self.code.label()
        for number_of_copy in range(site.capacity):
            here, following = self.code.label(), self.code.label()
            plan = self._plan(site, number_of_copy, None, False, role=static.function.name)
            plan.task, plan.frame, plan.node = True, self.frame, node
            plan.coroutine = static
            plan.names = names
            self.code.branch(operation("==", copy, Constant(number_of_copy)), here, following)
            self.code.mark(here)
            self._give(plan, given, None)
            self.code.step([Set(plan.code.started, None, Constant(True))])
            self.code.jump(end)
            self.code.mark(following)
        self.code.mark(end)
        self.frame = before
        return task

    def run_plan(self, plan: ThreadPlan) -> None:
        """The code of a thread or of a task."""
        if not plan.task:
            super().run_plan(plan)
            return
        self.task = self.awaitable = True
        self.frame = plan.frame
        self.at(plan.node)
        arguments = self.received(plan, plan.arguments)
        coroutine: Coroutine = plan.coroutine
        positional = len(arguments) - len(plan.names)
        named = dict(zip(plan.names, arguments[positional:], strict=True))
        self.code.enter()
        if coroutine.function.suspends:
            self.suspend(Constant(True))
        result = self._run(structs.replace(coroutine, found=arguments[:positional], named=named))
        if result.type.category != "never":
            cells = self._result(plan)
            to = self.joined(self.heap.field(plan.site, "result"), result.type, "the result of a task")
            self.write(cells(), converted(result, to, self.heap), result.type, to)
        self.code.end()

    def _result(self, plan: ThreadPlan) -> Callable[[], list[tuple[Variable, Expr | None]]]:
        reference = scalar(self.of.reference(plan.site, Constant(plan.copy)), self.heap)
        return lambda: self.field_cells(plan.site, "result", reference)

    def _join(self, value: Value, *, group: bool = False) -> Value:
        """Wait for the end of a task; its result."""
        self.receives(group=group)
        done = self.code.temporary("bool")

        def wait(code: Any) -> None:
            fine, late = self.code.label(), self.code.label()
            self.emit([Set(done, None, Read(code.finished))], atomic=True)
            self.code.branch(Read(done), fine, late)
            self.code.mark(late)
            self.suspend(Read(code.finished))
            self.code.jump(fine)
            self.code.mark(fine)

        value = self.keep(value)
        self.for_each_thread(value, wait)
        return self._task_result(value)

    def _task_result(self, value: Value) -> Value:
        site = value.type.site
        assert site is not None
        t = self.heap.type(self.heap.field(site, "result"))
        if t.category == "never":
            return NONE_VALUE if self.heap.settled else NO_VALUE
        return self.read(t, self.field_cells(site, "result", scalar(value, self.heap)))

    def task_method(self, value: Value, name: str, values: dict[str, Value], node: ast.AST) -> Value | None:
        """A method of a task."""
        if name == "done":
            done = self.code.temporary("bool")
            self.for_each_thread(value, lambda code: self.emit([Set(done, None, Read(code.finished))], atomic=True))
            return Value(BOOL, (Read(done),))
        if name == "result":
            self.receives()
            return self._task_result(value)
        return None

    def _gather(self, node: ast.Call) -> Value:
        """`asyncio.gather(…)`: the tasks start at once."""
        if node.keywords:
            raise self.refused(node, "gather with options is not supported", "catch exceptions in the coroutines")
        groups: list[tuple[str, Value]] = []
        for at, argument in enumerate(node.args):
            if not isinstance(argument, ast.Starred):
                task = self.create(self.expr(argument), node, at)
                groups.append(("one", self._held(node, at, task)))
                continue
            inner = argument.value
            if isinstance(inner, ast.ListComp | ast.GeneratorExp):
                groups.append(("all", self._held(node, at, self._started(inner))))
            else:
                groups.append(("all", self._held(node, at, self.expr(inner))))
        return known(Awaitable(lambda: self._gathered(groups, node)))

    def _held(self, node: ast.AST, at: int, value: Value) -> Value:
        if value.type.category == "never":
            return value
        key = (self.frame.context, node, "gathered", at)
        self.store(key, value, "gathered task", local=True)
        return self.fetch(key, "gathered task", local=True)

    def _started(self, node: ast.ListComp | ast.GeneratorExp) -> Value:
        """The tasks of a comprehension of coroutines."""
        value = self.made(node, list, [])
        self.grow(value)
        key = (self.frame.context, node, "list")
        self.store(key, value, "new list", local=True)

        def add() -> None:
            task = self.create(self.expr(node.elt), node)
            self.container_method(self.fetch(key, "new list", local=True), "append", [task], {}, node)

        self.comprehended(node.generators, add)
        return self.fetch(key, "new list", local=True)

    def _gathered(self, groups: list[tuple[str, Value]], node: ast.Call) -> Value:
        results: list[Value] = []
        for kind, value in groups:
            if value.type.category == "never":
                continue
            if kind == "one":
                results.append(self.keep(self._join(value)))
            else:
                self.each_value(node, value, self._join)
        if any(v.type.category == "never" for v in results):
            return NO_VALUE
        if all(v.type.category == "none" for v in results):
            return NONE_VALUE
        if len({v.type for v in results}) > 1 and all(kind == "one" for kind, _ in groups):
            return self.packed(results)  # a list of different types: its items are known by their number
        if any(v.type.category == "none" for v in results):
            return NONE_VALUE
        return self.made(node, list, results)

    def each_value(self, node: ast.AST, value: Value, act: Callable[[Value], Value]) -> None:
        """Do something with each item of a list."""
        name = "item of a list"
        if value.type.category == "tuple":
            for item in self.tuple_items(value):
                act(item)
            return
        frame = self.frame
        self.frame = frame.inside({name: (frame.home, node, name)})
        target = ast.copy_location(ast.Name(name, ast.Store()), node)
        load = ast.copy_location(ast.Name(name, ast.Load()), node)
        self.each_item(node, target, value, "item", False, lambda: self._acted(act, load))
        self.frame = frame

    def _acted(self, act: Callable[[Value], Value], load: ast.expr) -> None:
        with self.code.scratch():
            value = self.expr(load)
            if value.type.category != "never":
                act(value)

    # -- functions and objects of asyncio ------------------------------------------------------------------------------

    def library_call(self, target: Any, node: ast.Call) -> Value | None:
        """Call a function of Python. None: it is not known."""
        group = getattr(target, "__self__", None)
        if target in (asyncio.create_task, asyncio.ensure_future) or isinstance(group, TaskGroup):
            value = self.expr(node.args[0])
            if value.type.category == "never":
                return NO_VALUE
            task = self.create(value, node)
            if isinstance(group, TaskGroup):
                self.container_method(self._group(group), "append", [task], {}, node)
            return task
        if target is asyncio.sleep:
            given = dict(zip(("delay", "result"), node.args, strict=False)) | {k.arg: k.value for k in node.keywords}
            result = self._held(node, 0, self.expr(given["result"])) if "result" in given else NONE_VALUE
            return known(Awaitable(lambda: self._slept(result)))
        if target is asyncio.gather:
            return self._gather(node)
        if target is asyncio.run:
            value = self.expr(node.args[0])
            return NO_VALUE if value.type.category == "never" else self._loop(lambda: self.awaited(value, node))
        if any(target is getattr(asyncio, name) for name in _REFUSED):
            raise self.refused(node, f"asyncio.{target.__name__} is not supported", "use create_task, gather and await")
        if is_object(target):
            found, named = self.arguments(node)
            parameters = {asyncio.Queue: ["maxsize"], asyncio.Condition: ["lock"]}.get(target, ["value"])
            return self.made_object(target, dict(zip(parameters, found, strict=False)) | named, node)
        return super().library_call(target, node)

    def _slept(self, result: Value) -> Value:
        self.suspend(Constant(True))
        return result

    # -- asynchronous statements ---------------------------------------------------------------------------------------

    def _asyncwith_statement(self, node: ast.AsyncWith) -> None:
        self._entered(node, list(node.items))

    def _entered(self, node: ast.AsyncWith, items: list[ast.withitem]) -> None:
        if not items:
            self.block(node.body)
            return
        item = items[0]
        leave = self._enter(node, item)
        if leave is None:
            return
        clean = self.emitter(leave)
        is_group = (self.frame.context, item, "group") in self.heap.types
        key = (self.frame.context, item, "context")
        sees = not is_group and self.sees(self.fetch(key, "context object", local=True), "__aexit__")
        self.exits.append(Exit("group" if is_group else "cleanup", emit=clean, sees=sees))
        self._entered(node, items[1:])
        self.exits.pop()
        if self.code.reachable:
            clean()

    def _enter(self, node: ast.AsyncWith, item: ast.withitem) -> Callable[[], None] | None:
        call = item.context_expr
        if isinstance(call, ast.Call) and self.expr(call.func).type == known(asyncio.TaskGroup).type:
            return self._enter_group(node, item)
        value = self.expr(call)
        if value.type.category == "never":
            return None
        key = (self.frame.context, item, "context")
        self.store(key, value, "context object", local=True)
        site = value.type.site
        if site is None:
            raise self.refused(node, "async with is not supported for this object", "use a lock of asyncio")
        names = ("acquire", "release") if is_object(site.cls) else ("__aenter__", "__aexit__")
        given = [[], []] if is_object(site.cls) else [[], [NONE_VALUE] * 3]

        def act(at: int) -> Value:
            held = self.fetch(key, "context object", local=True)
            found = self.call_method(held, names[at], given[at], {}, node)
            return found if at and is_object(site.cls) else self.awaited(found, node)

        entered = act(0)
        if item.optional_vars is not None:
            self.assign(item.optional_vars, entered)

        def leave() -> None:
            self.at(item.context_expr)
            act(1)

        return leave

    def _group(self, group: TaskGroup) -> Value:
        key, _ = group.values[-1]
        return self.fetch(key, "task group", local=True)

    def _enter_group(self, node: ast.AsyncWith, item: ast.withitem) -> Callable[[], None]:
        group = self.heap.functions.setdefault(("group", self.frame.context, item), TaskGroup())
        key = (self.frame.context, item, "group")
        value = self.made(item.context_expr, list, [])
        self.grow(value)
        self.store(key, value, "task group", local=True)
        group.values.append((key, value))
        if item.optional_vars is not None:
            self.assign(item.optional_vars, known(group))

        def leave() -> None:
            self.at(item.context_expr)
            self.each_value(item.context_expr, self._group(group), lambda task: self._join(task, group=True))

        return leave
