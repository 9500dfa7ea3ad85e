"""Built-in functions, subscripts, comprehensions and context managers."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any

from plait.bmc.program.arithmetic import operation
from plait.bmc.program.definition import Constant, Expr, Read, Set
from plait.bmc.python.statements import Statements
from plait.bmc.python.translation import LOCK, RLOCK
from plait.bmc.python.values import INT, NO_VALUE, NONE_VALUE, Value, described, items_of, known, number, truth


class Library(Statements):
    """Translates what Python itself offers."""

    def tuple_items(self, value: Value) -> list[Value]:
        """The items of a tuple."""
        return items_of(value, self.heap)

    # -- subscripts ----------------------------------------------------------------------------------------------------

    def _subscript(self, node: ast.Subscript) -> Value:
        owner = self.expr(node.value)
        if isinstance(node.slice, ast.Slice):
            raise self.refused(node, "a slice is not supported", "use a loop over the indices")
        key = self.expr(node.slice)
        if "never" in (owner.type.category, key.type.category):
            return NO_VALUE
        if owner.type.category == "tuple":
            items = self.tuple_items(owner)
            index = self.number(key, node)
            if not isinstance(index, Constant) or not -len(items) <= index.value < len(items):
                raise self.refused(node, "the index of a tuple must be known", "use a list")
            return items[index.value]
        if not self.is_container(owner.type):
            raise self.refused(node, f"an item of a {described(owner.type)} is read", "use a list, a dict or a tuple")
        return self.get_item(owner, key, node)

    # -- comprehensions ------------------------------------------------------------------------------------------------

    def _listcomp(self, node: ast.ListComp) -> Value:
        value = self.made(node, list, [])
        self.grow(value)
        key = (self.frame.context, node, "list")
        self.store(key, value, "new list", local=True)

        def add() -> None:
            item = self.expr(node.elt)
            made = self.fetch(key, "new list", local=True)
            self.container_method(made, "append", [item], {}, node)

        self.comprehended(node.generators, add)
        return self.fetch(key, "new list", local=True)

    def comprehended(self, generators: list[ast.comprehension], add: Callable[[], None]) -> None:
        """Run code for each round of a comprehension."""
        if not generators:
            with self.code.scratch():
                add()
            return
        first = generators[0]
        if first.is_async:
            raise self.refused(first.iter, "an asynchronous comprehension is not supported", "use a loop")

        def body() -> None:
            end = self.code.label()
            for test in first.ifs:
                following = self.code.label()
                self.condition(test, following, end)
                self.code.mark(following)
            self.comprehended(generators[1:], add)
            self.code.jump(end)
            self.code.mark(end)

        names = {n.id for n in ast.walk(first.target) if isinstance(n, ast.Name)}
        frame = self.frame
        self.frame = frame.inside({name: (frame.home, first, name) for name in names})
        kept = sorted(names & self.frame.captured)
        if kept and self.loops and self.heap.settled:
            what = f"a function in a comprehension uses {', '.join(kept)}, and a loop runs the comprehension"
            raise self.refused(first.target, what, f"make it a default argument: lambda {kept[0]}={kept[0]}: …")
        self.each(first, first.target, first.iter, body)
        self.frame = frame

    # -- built-in functions --------------------------------------------------------------------------------------------

    def builtin(self, target: Any, node: ast.Call) -> Value | None:
        """Call a built-in function. None: it is not known."""
        if target is builtins.len and len(node.args) == 1:
            value = self.expr(node.args[0])
            if value.type.category == "never":
                return NO_VALUE
            if value.type.category == "tuple":
                return number(len(value.type.items))
            if not self.is_container(value.type):
                raise self.refused(
                    node, f"len of a {described(value.type)} is not supported", "use lists, dicts and sets"
                )
            return Value(INT, (self.length(value),))
        if target in (builtins.sum, builtins.all, builtins.any) and len(node.args) == 1:
            return self._folded(target, node)
        if target in (builtins.min, builtins.max):
            return self._extreme(target, node)
        if target is builtins.list and len(node.args) == 1:
            return self._copy(node)
        simple = {builtins.abs: self._abs, builtins.int: self._int, builtins.bool: self._bool}
        if target in simple and len(node.args) == 1:
            value = self.expr(node.args[0])
            return value if value.type.category == "never" else simple[target](value, node)
        if target in (builtins.str, builtins.repr):
            self.arguments(node)
            return known(node)
        if target is builtins.tuple and len(node.args) == 1:
            value = self.expr(node.args[0])
            return value if value.type.category in ("tuple", "never") else None
        if target is builtins.isinstance:
            return self._isinstance(node)
        if target is builtins.id:
            raise self.refused(node, "id() is not supported", "give the objects numbers of their own")
        return None

    def _abs(self, value: Value, node: ast.AST) -> Value:
        found = self.number(value, node)
        negative = operation("-", Constant(0), found)
        return self.integer(self.choice(operation("<", found, Constant(0)), negative, found))

    def _int(self, value: Value, node: ast.AST) -> Value:
        return self.integer(self.number(value, node))

    def _bool(self, value: Value, node: ast.AST) -> Value:
        return self.boolean(self.test_of(value))

    def _isinstance(self, node: ast.Call) -> Value:
        (value, cls), _ = self.arguments(node)
        t, static = value.type, cls.type.static
        if t.category != "ref" or static is None or t.site is None or t.optional:
            raise self.refused(node, "isinstance is supported for objects only", "compare with None, or use a field")
        answers = {issubclass(c, static.value) for c in self.heap.classes(t.site)}
        if len(answers) == 1:
            return truth(answers.pop())
        found: Expr = Constant(False)
        reference = self.reference(value, "class")
        for member, _condition in self.member(t.site, reference):
            if issubclass(member.cls, static.value):
                first = self.heap.first(member)
                low = operation(">=", reference, Constant(first))
                inside = operation("&&", low, operation("<", reference, Constant(first + member.capacity)))
                found = operation("||", found, inside)
        return self.boolean(found)

    def _extreme(self, target: Any, node: ast.Call) -> Value:
        if node.keywords or not node.args:
            raise self.refused(node, "min and max with options are not supported", "write a loop")
        if len(node.args) == 1:
            return self._folded(target, node)
        values = [self.keep(self.expr(argument)) for argument in node.args]
        if any(v.type.category == "never" for v in values):
            return NO_VALUE
        numbers = [self.number(v, node) for v in values]
        best = numbers[0]
        for other in numbers[1:]:
            better = operation("<" if target is builtins.min else ">", other, best)
            best = self.choice(better, other, best)
        return self.integer(best)

    def _folded(self, target: Any, node: ast.Call) -> Value:
        """`sum`, `all`, `any`, `min`, `max` of a list or of a generator: a loop."""
        argument = node.args[0]
        kind = "bool" if target in (builtins.all, builtins.any) else "int"
        key = (self.frame.context, node, "folded")
        result = self.of.variables(key, INT if kind == "int" else truth_type(), "folded result", self.code, NO_VALUE)[0]
        some = self.of.variables((*key, "some"), truth_type(), "some item", self.code, NO_VALUE)[0]
        start: Expr = Constant(0) if kind == "int" else Constant(target is builtins.all)
        self.code.set(result, start)
        self.code.set(some, Constant(False))
        end = self.code.label()

        def add(value: Value) -> None:
            if value.type.category == "never":
                return
            if target is builtins.sum:
                self.code.set(result, operation("+", Read(result), self.number(value, node)))
            elif kind == "int":
                found = self.number(value, node)
                better = operation("<" if target is builtins.min else ">", found, Read(result))
                first = operation("==", Read(some), Constant(False))
                chosen = self.choice(operation("||", first, better), found, Read(result))
                self.emit([Set(result, None, chosen), Set(some, None, Constant(True))])
            else:
                stop, following = self.code.label(), self.code.label()
                labels = (following, stop) if target is builtins.all else (stop, following)
                self.code.branch(self.test_of(value), *labels)
                self.code.mark(stop)
                self.code.set(result, Constant(target is builtins.any))
                self.code.jump(end)
                self.code.mark(following)

        if isinstance(argument, ast.GeneratorExp | ast.ListComp):
            self.comprehended(argument.generators, lambda: add(self.expr(argument.elt)))
        else:
            name = "item of a list"
            frame = self.frame
            self.frame = frame.inside({name: (frame.home, node, name)})
            target_name = ast.copy_location(ast.Name(name, ast.Store()), node)
            load = ast.copy_location(ast.Name(name, ast.Load()), node)
            self.each(node, target_name, argument, lambda: add(self.expr(load)))
            self.frame = frame
        self.code.jump(end)
        self.code.mark(end)
        if kind == "bool":
            return Value(truth_type(), (Read(result),))
        return Value(INT, (Read(result),))

    def _copy(self, node: ast.Call) -> Value:
        comprehension = self.heap.functions.get(("copy", node))
        if comprehension is None:
            name = "item of a list"
            target, load = ast.Name(name, ast.Store()), ast.Name(name, ast.Load())
            generator = ast.comprehension(target, node.args[0], [], 0)
            comprehension = ast.copy_location(ast.ListComp(load, [generator]), node)
            for part in (target, load):
                ast.copy_location(part, node)
            self.heap.functions["copy", node] = comprehension
        found: Value = self._listcomp(comprehension)
        return found

    def container_operator(self, left: Value, operator: ast.operator, right: Value, node: ast.AST) -> Value:
        """`left operator right` of containers."""
        if not isinstance(operator, ast.Add) or not self.is_container(left.type) or not self.is_container(right.type):
            what = f"{ast.unparse(node)}: arithmetic of {described(left.type)}s is not supported"
            raise self.refused(node, what, "use numbers; for lists, use +, append and extend")
        left, right = self.keep(left), self.keep(right)
        value = self.made(node, list, [])
        for part in (left, right):
            self.container_method(value, "extend", [part], {}, node)
        return value

    # -- context managers ----------------------------------------------------------------------------------------------

    def enter_context(self, value: Value, node: ast.With) -> Value:
        """The start of a `with` statement."""
        return self._context(value, "__enter__", [], node)

    def leave_context(self, value: Value, node: ast.With) -> None:
        """The end of a `with` statement."""
        self._context(value, "__exit__", [NONE_VALUE] * 3, node)

    def _context(self, value: Value, name: str, given: list[Value], node: ast.With) -> Value:
        t = value.type
        if t.category != "ref" or t.site is None:
            raise self.refused(
                node, f"with of a {described(t)} is not supported", "use a lock, or an object of your class"
            )
        for cls, kind in ((LOCK, "lock"), (RLOCK, "lock"), *_CONTEXTS):
            if issubclass(t.site.cls, cls):
                found: Value | None = getattr(self, f"{kind}_method")(value, name, {}, node)
                if found is not None:
                    return found
        return self.dispatched(value, name, given, {}, node)


def truth_type() -> Any:
    """The type of truth values."""
    from plait.bmc.python.values import BOOL

    return BOOL


def _contexts() -> list[tuple[type, str]]:
    import threading

    return [(threading.Condition, "condition"), (threading.Semaphore, "semaphore")]


_CONTEXTS = _contexts()
