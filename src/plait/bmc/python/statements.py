"""Statements."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable

from msgspec import structs

from plait.bmc.program.arithmetic import operation
from plait.bmc.program.definition import ASSERTIONS, Action, Branch, Constant, Expr, Read, Set
from plait.bmc.python.code import Exit
from plait.bmc.python.expressions import Expressions
from plait.bmc.python.values import (
    INT,
    NO_VALUE,
    NONE_VALUE,
    Value,
    described,
    items_of,
    known,
    number,
)
from plait.ir.scope import Bindings


class Statements(Expressions):
    """Translates statements."""

    def block(self, statements: list[ast.stmt]) -> None:
        """Statements in order."""
        for statement in statements:
            if not self.code.reachable:
                return
            self.at(statement)
            method = getattr(self, f"_{type(statement).__name__.lower()}_statement", None)
            if method is None:
                name = type(statement).__name__.lower()
                raise self.refused(
                    statement, f"the statement `{name}` is not supported", "write it with if, while and for"
                )
            with self.code.scratch():
                method(statement)

    # -- assignments ---------------------------------------------------------------------------------------------------

    def assign(self, target: ast.expr, value: Value) -> None:
        """Assign a target."""
        if isinstance(target, ast.Name):
            self._assign_name(target, value)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(self.expr(target.value), target.attr, value, target)
        elif isinstance(target, ast.Subscript):
            self._assign_item(target, value)
        elif isinstance(target, ast.Tuple | ast.List):
            if value.type.category == "never":
                return
            if any(isinstance(part, ast.Starred) for part in target.elts):
                raise self.refused(target, "* in an assignment is not supported", "use an index for each item")
            if self.is_container(value.type):
                for part, item in zip(target.elts, self.unpacked(value, len(target.elts), target), strict=True):
                    self.assign(part, item)
                return
            if value.type.category != "tuple" or len(value.type.items) != len(target.elts):
                raise self.refused(
                    target, f"a {described(value.type)} is unpacked to {len(target.elts)} variables", "unpack a tuple"
                )
            for part, item in zip(target.elts, list(map(self.keep, items_of(value, self.heap))), strict=True):
                self.assign(part, item)
        else:
            raise self.refused(target, f"assignment to {ast.unparse(target)} is not supported", "assign each item")

    def _assign_name(self, target: ast.Name, value: Value) -> None:
        name = target.id
        frame = self.frame.holder(name)
        if value.type.category == "never":
            return
        if frame is None:
            self.set_global(self.frame.function.origin.__globals__, name, value)
            return
        self.set_assigned(frame, name, True)
        if name in frame.fixed:
            del frame.fixed[name]
        self.store(frame.key(name), value, name, local=not frame.shares(name))

    def _assign_item(self, target: ast.Subscript, value: Value) -> None:
        owner = self.expr(target.value)
        if owner.type.category == "never":
            return
        if not self.is_container(owner.type):
            raise self.refused(target, f"an item of a {described(owner.type)} is assigned", "use a list or a dict")
        self.set_item(owner, self.expr(target.slice), value, target)

    def _assign_statement(self, node: ast.Assign) -> None:
        self.name_object(node.targets[0], node.value)
        value = self.expr(node.value)
        if len(node.targets) > 1:
            value = self.keep(value)
        for target in node.targets:
            self.assign(target, value)

    def _annassign_statement(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.name_object(node.target, node.value)
            self.assign(node.target, self.expr(node.value))

    def name_object(self, target: ast.expr, value: ast.expr) -> None:
        """A new object is called like the variable that it is assigned to."""
        name = target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else None
        if name is not None:
            self.named[value] = name

    def _augassign_statement(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            self.assign(target, self.augmented(self.expr(load), node))
        elif isinstance(target, ast.Attribute):
            owner = self.keep(self.expr(target.value))
            value = self.attribute(owner, target.attr, target)
            self.set_attribute(owner, target.attr, self.augmented(value, node), target)
        else:
            owner, key = self.keep(self.expr(target.value)), self.keep(self.expr(target.slice))
            if "never" in (owner.type.category, key.type.category):
                return
            if not self.is_container(owner.type):
                raise self.refused(target, f"an item of a {described(owner.type)} is assigned", "use a list or a dict")
            value = self.augmented(self.get_item(owner, key, target), node)
            self.set_item(owner, key, value, target)

    def augmented(self, value: Value, node: ast.AugAssign) -> Value:
        """The new value of `target operator= value`."""
        if isinstance(node.op, ast.Add) and self.is_container(value.type):
            self.container_method(value, "extend", [self.expr(node.value)], {}, node)
            return value
        return self.binary(value, node.op, self.expr(node.value), node)

    def _delete_statement(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                owner = self.expr(target.value)
                if self.is_container(owner.type):
                    self.delete_item(owner, self.expr(target.slice), target)
                    continue
                if owner.type.category == "never":
                    continue
            elif isinstance(target, ast.Name) and target.id in self.frame.function.early:
                self.check_assigned(self.frame, target.id)
                self.set_assigned(self.frame, target.id, False)
                continue
            raise self.refused(target, f"del {ast.unparse(target)} is not supported", "assign None")

    def _expr_statement(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.expr(node.value)

    def _pass_statement(self, node: ast.Pass) -> None:
        pass

    _global_statement = _nonlocal_statement = _import_statement = _pass_statement

    def _functiondef_statement(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            raise self.refused(node, f"{node.name} has a decorator", "remove the decorator of the nested function")
        found, loop = self.closure(node), self.frame.loop
        own = isinstance(loop, ast.For) and any(part is node for part in loop.body)
        if own and node.name not in self.frame.captured and not self._used_outside(loop, {node.name}):
            self.frame.fixed[node.name] = found  # Each round has a function of its own.
            return
        self.assign(ast.copy_location(ast.Name(node.name, ast.Store()), node), found)

    _asyncfunctiondef_statement = _functiondef_statement

    # -- control flow --------------------------------------------------------------------------------------------------

    def _if_statement(self, node: ast.If) -> None:
        then, otherwise, end = (self.code.label() for _ in range(3))
        self.condition(node.test, then, otherwise)
        for label, body in ((then, node.body), (otherwise, node.orelse)):
            if self.targeted(label):
                self.code.mark(label)
                self.block(body)
                if self.code.reachable:
                    self.code.jump(end)
        if self.targeted(end):
            self.code.mark(end)

    def targeted(self, label: object) -> bool:
        """Whether some jump leads to a label."""
        for operation_ in self.code.operations[self.scanned :]:
            self.targets |= {id(operation_.then), id(operation_.otherwise)}
        self.scanned = len(self.code.operations)
        return id(label) in self.targets

    def _while_statement(self, node: ast.While) -> None:
        again, body, otherwise, end = (self.code.label() for _ in range(4))
        self.code.mark(again)
        self.at(node)
        self.loops.append((self.frame.context, node))
        self.condition(node.test, body, otherwise)
        if self.targeted(body):
            self.code.mark(body)
            self.exits.append(Exit("loop", label=end, again=again))
            self.block(node.body)
            self.exits.pop()
            if self.code.reachable:
                self.code.jump(again)
        self.loops.pop()
        if self.targeted(otherwise):
            self.code.mark(otherwise)
            self.block(node.orelse)
            if self.code.reachable:
                self.code.jump(end)
        if self.targeted(end):
            self.code.mark(end)

    def _for_statement(self, node: ast.For) -> None:
        end = self.code.label()

        def body() -> None:
            again = self.code.label()
            self.exits.append(Exit("loop", label=end, again=again))
            self.block(node.body)
            self.exits.pop()
            if self.code.reachable:
                self.code.jump(again)
            if self.targeted(again):
                self.code.mark(again)

        self.each(node, node.target, node.iter, body)
        if self.code.reachable:
            self.block(node.orelse)
        if self.code.reachable:
            self.code.jump(end)
        if self.targeted(end):
            self.code.mark(end)

    def each(self, node: ast.AST, target: ast.expr, iterable: ast.expr, body: Callable[[], None]) -> None:
        """Run code for each item of an iterable. Afterwards, the code continues where no item is left."""
        numbered, inner = None, iterable
        if self._is_call_of(iterable, "enumerate") and isinstance(iterable, ast.Call) and len(iterable.args) == 1:
            numbered, inner = True, iterable.args[0]
        if self._is_call_of(inner, "range") and isinstance(inner, ast.Call) and not numbered:
            self._each_number(node, target, inner, body)
            return
        view = "item"
        method = inner.func if isinstance(inner, ast.Call) and not inner.args else None
        if isinstance(method, ast.Attribute) and method.attr in ("items", "keys", "values"):
            view, inner = method.attr, method.value
        if self._is_call_of(inner, "list") and isinstance(inner, ast.Call) and len(inner.args) == 1:
            inner = inner.args[0] if isinstance(inner.args[0], ast.Attribute | ast.Name) else inner
        value = self.expr(inner)
        if value.type.category == "never":
            return
        if value.type.category == "tuple":
            items = items_of(value, self.heap)
            kept = [self.keep(item) for item in items]
            values = [self.packed([number(i), v]) for i, v in enumerate(kept)] if numbered else kept
            self._unrolled(node, target, values, body)
            return
        if not self.is_container(value.type):
            raise self.refused(
                iterable, f"for over a {described(value.type)} is not supported", "use range, a list or a dict"
            )
        self.each_item(node, target, value, view, bool(numbered), body)

    def _is_call_of(self, node: ast.expr, name: str) -> bool:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
            return False
        if self.frame.holder(node.func.id) is not None:
            return False
        return self.frame.outside(node.func.id) is getattr(builtins, name)

    def _each_number(self, node: ast.AST, target: ast.expr, call: ast.Call, body: Callable[[], None]) -> None:
        given = [self.number(self.expr(argument), call) for argument in call.args]
        first = given[0] if len(given) > 1 else Constant(0)
        last = given[1] if len(given) > 1 else given[0]
        step = given[2] if len(given) > 2 else Constant(1)
        if not isinstance(step, Constant) or not step.value:
            raise self.refused(call, "the step of range must be a known number, not 0", "use a constant")
        if isinstance(first, Constant) and isinstance(last, Constant):
            rounds = range(first.value, last.value, step.value)
            makes = (self.frame.context, node) in self.heap.unrolled
            if makes and len(rounds) <= max(self.of.options.unwind, 16):
                self._unrolled(node, target, [number(i) for i in rounds], body)
                return
        key = (self.frame.context, node, "number")
        counter = self.of.variables(key, INT, f"{ast.unparse(target)} next", self.code, NO_VALUE)[0]
        bound = self.of.variables((*key, "last"), INT, "range end", self.code, NO_VALUE)[0]
        limit: Expr = last
        if not isinstance(last, Constant):
            self.code.set(bound, last)
            limit = Read(bound)
        self.code.set(counter, first)
        more = operation("<" if step.value > 0 else ">", Read(counter), limit)
        again, inside, end = (self.code.label() for _ in range(3))
        self.code.mark(again)
        self.at(node)
        self.code.branch(more, inside, end)
        self.code.mark(inside)
        self.loops.append((self.frame.context, node))
        with self.code.scratch():
            self.assign(target, Value(INT, (Read(counter),)))
        self.code.set(counter, operation("+", Read(counter), step))
        body()
        self.loops.pop()
        if self.code.reachable:
            self.code.jump(again)
        self.code.mark(end)
        self.code.set(counter, Constant(0))

    def _unrolled(self, node: ast.AST, target: ast.expr, values: list[Value], body: Callable[[], None]) -> None:
        context = self.frame.context
        bound = Bindings(getattr(node, "body", []) if isinstance(getattr(node, "body", []), list) else []).counts
        names = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
        free = isinstance(target, ast.Name) and not names & (set(bound) | self.frame.captured)
        used = isinstance(node, ast.For) and self._used_outside(node, names)
        for at, value in enumerate(values):
            frame = self.frame
            rounds = structs.replace(
                frame, context=self.of.context(context, node, at), fixed=dict(frame.fixed), loop=node
            )
            self.frame = rounds
            if free and isinstance(target, ast.Name) and all(isinstance(p, Constant) for p in value.parts):
                if used:
                    self.assign(target, value)
                rounds.fixed[target.id] = value
            else:
                self.assign(target, value)
            body()
            self.frame = frame
            if not self.code.reachable:
                return

    def _used_outside(self, node: ast.AST | None, names: set[str]) -> bool:
        inside = sum(1 for n in ast.walk(node or ast.Pass()) if isinstance(n, ast.Name) and n.id in names)
        everywhere = sum(1 for n in ast.walk(self.frame.function.node) if isinstance(n, ast.Name) and n.id in names)
        return everywhere > inside

    def each_item(
        self, node: ast.AST, target: ast.expr, value: Value, view: str, numbered: bool, body: Callable[[], None]
    ) -> None:
        """The same for the items of a container."""
        key = (self.frame.context, node, "index")
        counter = self.of.variables(key, INT, "loop index", self.code, NO_VALUE)[0]
        kept = (self.frame.context, node, "iterated")
        self.store(kept, value, "iterated object", local=True)
        self.code.set(counter, Constant(0))
        size = self.of.variables((*key, "size"), INT, "size at the start", self.code, NO_VALUE)[0]
        assert value.type.site is not None
        if not issubclass(value.type.site.cls, list):
            self.code.set(size, self.length(value))
        again, inside, end = (self.code.label() for _ in range(3))
        self.code.mark(again)
        self.at(node)
        with self.code.scratch():
            items = self.items(self.fetch(kept, "iterated object", local=True))
            fields = {"items": ["key", "item"], "keys": ["key"], "values": ["item"]}.get(view)
            is_dict = issubclass(items.site.cls, dict)
            fields = fields or (["key"] if is_dict else ["item"])
            more = self.code.temporary("bool")
            parts = [self.copied(self.content(items, Read(counter), field)) for field in fields]
            copy = tuple(action for _, actions in parts for action in actions)
            there = operation("<", Read(counter), items.count)
            actions: list[Action] = [Set(more, None, there), Branch(Read(more), copy, ())]
            if issubclass(items.site.cls, list):
                self.emit(actions, atomic=True)
            else:
                same = operation("==", items.count, Read(size))
                text = f"RuntimeError: the {items.site.cls.__name__} changed during iteration"
                self.guarded(same, RuntimeError, ASSERTIONS, text, actions)
            self.code.branch(Read(more), inside, end)
            self.code.mark(inside)
            content = parts[0][0] if len(parts) == 1 else self.packed([part for part, _ in parts])
            if numbered:
                content = self.packed([Value(INT, (Read(counter),)), content])
            if content.type.category != "never":
                self.assign(target, content)
        self.code.set(counter, operation("+", Read(counter), Constant(1)))
        self.loops.append((self.frame.context, node, "items"))
        body()
        self.loops.pop()
        if self.code.reachable:
            self.code.jump(again)
        self.code.mark(end)
        self.code.set(counter, Constant(0))

    def _break_statement(self, node: ast.Break) -> None:
        at = self.nearest("loop")
        assert at is not None
        label = self.exits[at].label
        assert label is not None
        self.leave(at, label)

    def _continue_statement(self, node: ast.Continue) -> None:
        at = self.nearest("loop")
        assert at is not None
        label = self.exits[at].again
        assert label is not None
        self.leave(at, label)

    def _return_statement(self, node: ast.Return) -> None:
        at = next(i for i in range(len(self.exits) - 1, -1, -1) if self.exits[i].kind == "call")
        value = NONE_VALUE if node.value is None else self.expr(node.value)
        if value.type.category != "never":
            self.store(self.exits[at].key, value, "the result", local=True)
        label = self.exits[at].label
        assert label is not None
        self.leave(at, label)

    # -- checks and exceptions -----------------------------------------------------------------------------------------

    def _assert_statement(self, node: ast.Assert) -> None:
        fine, bad = self.code.label(), self.code.label()
        text = f"the assertion {ast.unparse(node.test)} fails"
        if self.catcher(AssertionError) is None and not isinstance(node.test, ast.BoolOp):
            self.code.ensure(self.truth(node.test), ASSERTIONS, text)
            return
        self.condition(node.test, fine, bad)
        if self.targeted(bad):
            self.code.mark(bad)
            self.throw(AssertionError, ASSERTIONS, text)
        if self.targeted(fine):
            self.code.mark(fine)

    def _raise_statement(self, node: ast.Raise) -> None:
        cls: type | None = None
        if node.exc is None:
            cls = next((e.caught for e in reversed(self.exits) if e.caught is not None), None)
        else:
            value = self.expr(node.exc)
            if value.type.category == "never":
                return
            static = value.type.static
            cls = static.value if static is not None else None
        if not isinstance(cls, type) or not issubclass(cls, BaseException):
            raise self.refused(
                node, "this exception is not known", "raise a class of exceptions, or an instance made here"
            )
        self.throw(cls, ASSERTIONS, f"{cls.__name__} is not caught")

    def _try_statement(self, node: ast.Try) -> None:
        end = self.code.label()
        if node.finalbody:
            jumps = ast.Return | ast.Break | ast.Continue | ast.Raise | ast.Assert
            diverts = any(isinstance(n, jumps) for part in node.finalbody for n in ast.walk(part))
            diverts = diverts or any(e.handlers for e in self.exits)
            clean = self.emitter(lambda: self.block(node.finalbody))
            self.exits.append(Exit("cleanup", emit=clean, diverts=diverts))
        labels = [self.code.label() for _ in node.handlers]
        self.thrown.update((id(label), set()) for label in labels)
        if node.handlers:
            classes = [self._caught(handler) for handler in node.handlers]
            self.exits.append(Exit("except", handlers=list(zip(classes, labels, strict=True))))
        self.block(node.body)
        if node.handlers:
            handlers = self.exits.pop().handlers
        if self.code.reachable:
            self.block(node.orelse)
        if self.code.reachable:
            self.code.jump(end)
        for handler, label in zip(node.handlers, labels, strict=True):
            if self.targeted(label):
                self.code.mark(label)
                caught = next(classes for classes, other in handlers if other is label)[0]
                thrown = self.thrown[id(label)]
                if len(thrown) == 1:
                    (caught,) = thrown
                elif len(thrown) > 1:
                    self._refuse_raise(handler, thrown)
                self._handle(handler, caught)
                if self.code.reachable:
                    self.code.jump(end)
        if self.targeted(end):
            self.code.mark(end)
        if node.finalbody:
            self.exits.pop()
            if self.code.reachable:
                self.block(node.finalbody)

    def _refuse_raise(self, handler: ast.ExceptHandler, thrown: set[type]) -> None:
        """A handler of several exceptions does not know which one to raise again."""
        for node in (n for statement in handler.body for n in ast.walk(statement) if isinstance(n, ast.Raise)):
            again = node.exc is None or (isinstance(node.exc, ast.Name) and node.exc.id == handler.name)
            if again:
                names = " or ".join(sorted(cls.__name__ for cls in thrown))
                what = f"the exception that is raised again is {names}: this is not supported"
                raise self.refused(node, what, "write one `except` for each class")

    def _handle(self, handler: ast.ExceptHandler, caught: type) -> None:
        """The body of a handler. Its variable exists only there."""
        frame, name = self.frame, handler.name
        if name is None:
            self.exits.append(Exit("handler", caught=caught))
            self.block(handler.body)
            self.exits.pop()
            return
        before = dict(frame.fixed)
        clean = self.emitter(lambda: self.set_assigned(frame, name, False))
        self.exits.append(Exit("handler", caught=caught, emit=clean))
        self.set_assigned(frame, name, True)
        frame.fixed[name] = known(caught)
        self.block(handler.body)
        self.exits.pop()
        frame.fixed.pop(name, None)
        if name in before:
            frame.fixed[name] = before[name]
        if self.code.reachable:
            clean()

    def _caught(self, handler: ast.ExceptHandler) -> tuple[type, ...]:
        if handler.type is None:
            return (BaseException,)
        found: list[type] = []
        for part in handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]:
            static = self.expr(part).type.static
            if static is None or not isinstance(static.value, type):
                raise self.refused(
                    handler, f"except {ast.unparse(part)} is not supported", "name a class of exceptions"
                )
            found.append(static.value)
        return tuple(found)

    def emitter(self, emit: Callable[[], None]) -> Callable[[], None]:
        """Clean-up in the frame of this statement, from whatever frame it is left."""
        frame = self.frame

        def run() -> None:
            before, here, node = self.frame, self.code.here, self.node
            self.frame = frame
            with self.code.scratch():
                emit()
            self.frame, self.node = before, node
            self.code.at(here)

        return run

    def _with_statement(self, node: ast.With) -> None:
        self._items_of_with(node, list(node.items))

    def _items_of_with(self, node: ast.With, items: list[ast.withitem]) -> None:
        if not items:
            self.block(node.body)
            return
        item = items[0]
        value = self.expr(item.context_expr)
        if value.type.category == "never":
            return
        key = (self.frame.context, item, "context")
        self.store(key, value, "context object", local=True)
        held = self.fetch(key, "context object", local=True)
        entered = self.enter_context(held, node)
        if item.optional_vars is not None:
            self.assign(item.optional_vars, entered)

        def leave() -> None:
            self.at(item.context_expr)
            self.leave_context(self.fetch(key, "context object", local=True), node)

        self.exits.append(Exit("cleanup", emit=self.emitter(leave), sees=self.sees(held, "__exit__")))
        self._items_of_with(node, items[1:])
        self.exits.pop()
        if self.code.reachable:
            self.emitter(leave)()
