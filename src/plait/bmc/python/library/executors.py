"""`ThreadPoolExecutor`: each call that is submitted is a process. It waits until one of the workers is free."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from plait.bmc.program import synchronization as sync
from plait.bmc.program.arithmetic import operation
from plait.bmc.program.definition import Constant, Read, Require, Set
from plait.bmc.python.library.loaded import futures as pools
from plait.bmc.python.library.tasks import Tasks
from plait.bmc.python.translation import ThreadPlan
from plait.bmc.python.values import BOOL, INT, NO_VALUE, NONE_VALUE, Value, converted, number, scalar

_MANY = 1 << 10
"""The number of workers of an executor without a limit."""


class Executors(Tasks):
    """Translates executors of threads."""

    def library_call(self, target: Any, node: ast.Call) -> Value | None:
        """Call a function of Python. None: it is not known."""
        if target is not pools.ThreadPoolExecutor:
            return super().library_call(target, node)
        found, named = self.arguments(node)
        workers = named.get("max_workers", found[0] if found else NONE_VALUE)
        if workers.type.category == "never":
            return NO_VALUE
        site, value, _ = self.allocate(node, pools.ThreadPoolExecutor, "executor")
        reference = scalar(value, self.heap)
        count = self.number(number(_MANY) if workers.type.category == "none" else workers, node)
        variable, index = self.cell(site, "workers", reference, INT)
        self.code.set(variable, count, index)
        inner = self.heap.functions.setdefault(("futures of", node), ast.copy_location(ast.Pass(), node))
        futures = self.made(inner, list, [])
        self.grow(futures)
        self.set_field(site, reference, "futures", futures)
        return value

    def _call(self, node: ast.Call) -> Value:
        mapped = self._mapped(node.args[0]) if self._is_call_of(node, "list") and len(node.args) == 1 else None
        if mapped is None:
            return super()._call(node)
        key = ("results of", node)
        waiting = self.heap.functions.get(key)
        if waiting is None:
            one = ast.Name("future of map", ast.Load())
            result = ast.Call(ast.Attribute(one, "result", ast.Load()), [], [])
            waiting = _comprehension(result, "future of map", mapped, node)
            self.heap.functions[key] = waiting
        found: Value = self._listcomp(waiting)
        return found

    def _expr_statement(self, node: ast.Expr) -> None:
        mapped = self._mapped(node.value)
        if mapped is None:
            super()._expr_statement(node)
        else:
            self._listcomp(mapped)

    def _mapped(self, node: ast.expr) -> ast.ListComp | None:
        """For `executor.map(f, items)`: the list of its futures. None: it is something else."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "map":
            return None
        owner = node.func.value
        if len(node.args) != 2 or node.keywords or not isinstance(owner, ast.Name):
            return None
        if not self._is_executor(self.expr(owner)):
            return None
        key = ("futures of map", node)
        found = self.heap.functions.get(key)
        if found is None:
            item = ast.Name("item of map", ast.Load())
            submit = ast.Call(ast.Attribute(owner, "submit", ast.Load()), [node.args[0], item], [])
            found = _comprehension(submit, "item of map", node.args[1], node)
            self.heap.functions[key] = found
        assert isinstance(found, ast.ListComp)
        return found

    def library_method(
        self, receiver: Value, name: str, given: list[Value], named: dict[str, Value], node: ast.AST
    ) -> Value | None:
        """Call a method of an object of Python. None: the method is one of the user."""
        site = receiver.type.site
        assert site is not None
        method: Callable[..., Value | None] | None = None
        if issubclass(site.cls, pools.ThreadPoolExecutor):
            method = {"submit": self._submit, "shutdown": self._shutdown}.get(name)
        elif issubclass(site.cls, pools.Future):
            method = {"result": self._future_result, "done": self._future_done}.get(name)
        else:
            return super().library_method(receiver, name, given, named, node)
        if method is None:
            what = f"the method {name} of {site.cls.__name__} is not supported"
            hint = "use list(executor.map(…)), or submit" if name == "map" else "use submit, result, done and shutdown"
            raise self.refused(node, what, hint)
        if any(v.type.category == "never" for v in (*given, *named.values())):
            return NO_VALUE
        return method(receiver, given, named, node)

    def _submit(self, pool: Value, given: list[Value], named: dict[str, Value], node: ast.AST) -> Value:
        home = pool.type.site
        assert home is not None
        reference = self.reference(pool, "submit")
        if not isinstance(reference, Constant):
            raise self.refused(node, "submit needs a known executor", "make the executor once, outside of loops")
        site, value, copy = self.allocate(node, pools.Future, "future", most=self.of.options.threads)
        target, arguments = given[0], [*given[1:], *named.values()]
        receiver = target if target.type.category == "method" else None
        end = self.code.label()
        for at in range(site.capacity):
            here, following = self.code.label(), self.code.label()
            plan = self._plan(site, at, target, True)
            plan.frame, plan.node, plan.names = self.frame, node, list(named)
            plan.workers = self.cell(home, "workers", reference, INT)
            self.code.branch(operation("==", copy, Constant(at)), here, following)
            self.code.mark(here)
            self._give(plan, arguments, receiver)
            self.code.step([Set(plan.code.started, None, Constant(True))])
            self.code.jump(end)
            self.code.mark(following)
        self.code.mark(end)
        self.container_method(self._futures(pool), "append", [value], {}, node)
        return value

    def _futures(self, pool: Value) -> Value:
        site = pool.type.site
        assert site is not None
        cells = self.field_cells(site, "futures", self.reference(pool, "submit"))
        return self.read(self.heap.type(self.heap.field(site, "futures")), cells)

    def run_plan(self, plan: ThreadPlan) -> None:
        """The code of a thread, a task or a call that was submitted."""
        if plan.workers is None or plan.target is None:
            super().run_plan(plan)
            return
        self.awaitable = True
        self.frame = plan.frame
        self.at(plan.node)
        arguments = self.received(plan, [plan.target, *plan.arguments])
        sync.down(self.code, plan.workers)
        first = len(arguments) - len(plan.names)
        named = dict(zip(plan.names, arguments[first:], strict=True))
        result = self.call_value(arguments[0], arguments[1:first], named, plan.node)
        if result.type.category != "never":
            to = self.joined(self.heap.field(plan.site, "result"), result.type, "the result of a call")
            reference = scalar(self.of.reference(plan.site, Constant(plan.copy)), self.heap)
            cells = self.field_cells(plan.site, "result", reference)
            self.write(cells, converted(result, to, self.heap), result.type, to)
        sync.up(self.code, plan.workers)
        self.code.end()

    def _done(self, value: Value) -> Value:
        self.for_each_thread(value, lambda code: self.code.step([Require(Read(code.finished))], waits=True))
        return NONE_VALUE

    def _future_result(self, value: Value, given: list[Value], named: dict[str, Value], node: ast.AST) -> Value:
        if given or named:
            raise self.refused(node, "result with a timeout is not supported", "wait without a timeout")
        self.receives()
        value = self.keep(value)
        self._done(value)
        return self._task_result(value)

    def _future_done(self, value: Value, given: list[Value], named: dict[str, Value], node: ast.AST) -> Value:
        done = self.code.temporary("bool")
        self.for_each_thread(value, lambda code: self.emit([Set(done, None, Read(code.finished))], atomic=True))
        return Value(BOOL, (Read(done),))

    def _shutdown(self, pool: Value, given: list[Value], named: dict[str, Value], node: ast.AST) -> Value:
        wait = named.get("wait", given[0] if given else number(1))
        if wait.type.constant:
            futures = self._futures(pool)
            if futures.type.category != "never":
                self.each_value(node, futures, self._done)
        return NONE_VALUE

    # -- with ----------------------------------------------------------------------------------------------------------

    def enter_context(self, value: Value, node: ast.With) -> Value:
        """The start of a `with` statement."""
        return value if self._is_executor(value) else super().enter_context(value, node)

    def leave_context(self, value: Value, node: ast.With) -> None:
        """The end of a `with` statement."""
        if self._is_executor(value):
            self._shutdown(value, [], {}, node)
        else:
            super().leave_context(value, node)

    def _is_executor(self, value: Value) -> bool:
        site = value.type.site
        return site is not None and issubclass(site.cls, pools.ThreadPoolExecutor)


def _comprehension(item: ast.expr, name: str, items: ast.expr, at: ast.AST) -> ast.ListComp:
    """`[item for name in items]`, at the place of a node."""
    found = ast.ListComp(item, [ast.comprehension(ast.Name(name, ast.Store()), items, [], 0)])
    for part in ast.walk(found):
        if isinstance(part, ast.expr) and not hasattr(part, "lineno"):
            ast.copy_location(part, at)
    return found
