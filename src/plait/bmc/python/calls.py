"""Calls: functions of the user are inlined, and methods are found in the class of the object."""

from __future__ import annotations

import ast
import inspect
import random
import sys
import threading
import time
import types
from collections.abc import Callable, Hashable
from typing import Any

from msgspec import structs

from plait.bmc.program.arithmetic import operation
from plait.bmc.program.builder import Label
from plait.bmc.program.definition import ASSERTIONS, LIMITS, Constant, Domain, Expr
from plait.bmc.python.code import Exit
from plait.bmc.python.functions import Closure, Frame, Function
from plait.bmc.python.heap import Site
from plait.bmc.python.library.loaded import logging
from plait.bmc.python.objects import Bound, Objects
from plait.bmc.python.values import (
    INT,
    NO_VALUE,
    NONE_VALUE,
    Value,
    described,
    items_of,
    known,
)
from plait.ir.definition import members
from plait.ir.scope import Bindings

_LOG = frozenset(("debug", "info", "warning", "warn", "error", "critical", "exception", "log"))
_NOTHING: tuple[Any, ...] = (time.sleep, print, random.seed, sys.stdout.write, sys.setswitchinterval)
"""Calls that change nothing in the program."""


class CurrentThread:
    """What `threading.current_thread()` returns. Its name and number are for messages only: nobody may look at them."""


def _logs(target: Any) -> bool:
    """Whether a function writes to a log."""
    name = getattr(target, "__name__", "")
    owner = getattr(target, "__self__", None)
    logger = isinstance(owner, logging.Logger | logging.LoggerAdapter)
    return name in _LOG and (logger or getattr(logging, name, None) is target)


_CURRENT = CurrentThread()


class Calls(Objects):
    """Translates calls."""

    def _call(self, node: ast.Call) -> Value:
        func = node.func
        if isinstance(func, ast.Attribute):
            if self._is_super(func.value):
                return self._super(node, func)
            receiver = self.expr(func.value)
            if receiver.type.category == "never":
                return NO_VALUE
            if receiver.type.category in ("ref", "none"):
                return self._method(receiver, func.attr, node)
            if receiver.type.category == "str":
                raise self.refused(node, f"the method {func.attr} of texts is not supported", "compare texts only")
            return self.call(self.attribute(receiver, func.attr, func), node)
        return self.call(self.expr(func), node)

    def arguments(self, node: ast.Call) -> tuple[list[Value], dict[str, Value]]:
        """The arguments of a call, from left to right."""
        found: list[Value] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                value = self.expr(argument.value)
                if value.type.category == "never":
                    continue
                if value.type.category != "tuple":
                    raise self.refused(
                        node, "* in a call needs a tuple of known length", "pass the arguments one by one"
                    )
                found += items_of(value, self.heap)
            else:
                found.append(self.expr(argument))
        named: dict[str, Value] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.refused(node, "** in a call is not supported", "pass the arguments by name")
            named[keyword.arg] = self.expr(keyword.value)
        return found, named

    # -- what is called ------------------------------------------------------------------------------------------------

    def call(self, callee: Value, node: ast.Call) -> Value:
        """Call a value."""
        t = callee.type
        if t.category == "never":
            return NO_VALUE
        if t.category == "method":
            receiver = Value(t.items[0], callee.parts)
            return self._method(receiver, t.name, node)
        if t.category == "ref":
            return self._method(callee, "__call__", node)
        if t.category != "static":
            raise self.refused(node, f"a {described(t)} is called", "call functions, methods and classes")
        assert t.static is not None
        target = t.static.value
        if isinstance(target, type) and not self.is_library_class(target):
            return self.construct(target, node)
        special = self.library_call(target, node)
        if special is not None:
            return special
        found, named = self.arguments(node)
        return self.call_known(target, found, named, node)

    def call_value(self, callee: Value, found: list[Value], named: dict[str, Value], node: ast.AST) -> Value:
        """Call a value with values: the target of a thread."""
        t = callee.type
        if t.category == "method":
            receiver = Value(t.items[0], callee.parts)
            return self.call_method(receiver, t.name, found, named, node)
        if t.category == "static" and t.static is not None:
            return self.call_known(t.static.value, found, named, node)
        return NO_VALUE

    def call_known(self, target: Any, found: list[Value], named: dict[str, Value], node: ast.AST) -> Value:
        """Call a function of the user."""
        if isinstance(target, Closure):
            self._require_own_variables(target, node)
            return self.inline(target.function, found, named, node, outer=target.frame, owner=target.frame.owner)
        if isinstance(target, Bound):
            if self.is_library_class(target.owner) and found:
                name = target.function.__name__
                return self.library_base_call(target.owner, found[0], name, found[1:], named, node)
            receivers = [] if target.receiver is None else [target.receiver]
            return self.call_function(target.function, [*receivers, *found], named, node, target.owner)
        if isinstance(target, types.FunctionType):
            return self.call_function(target, found, named, node, None)
        if isinstance(target, types.MethodType):
            receiver = self.of.imported(target.__self__)
            return self.call_function(target.__func__, [receiver, *found], named, node, type(target.__self__))
        name = getattr(target, "__qualname__", None) or type(target).__name__
        module = getattr(target, "__module__", None)
        full = f"{module}.{name}" if module not in (None, "builtins") else name
        raise self.refused(node, f"{full} is not supported", "remove the call, or write the function in Python")

    def _require_own_variables(self, target: Closure, node: ast.AST) -> None:
        """All calls of a function that a loop makes have the same variables, so a nested one must not outlive its call."""
        frame: Frame | None = target.frame
        while frame is not None:
            used = target.function.free & frame.captured
            if frame.repeated and used and frame.function.node not in self.depth:
                if self.heap.settled:
                    name, outer = target.function.name, frame.function.name
                    what = (
                        f"{name} uses {', '.join(sorted(used))} of {outer}, which a loop calls, after {outer} has ended"
                    )
                    raise self.refused(node, what, f"pass the values as arguments of {name}, or use an object")
                self.heap.unrolled.update(frame.repeated)
            frame = frame.outer

    def call_function(
        self, target: Callable[..., Any], found: list[Value], named: dict[str, Value], node: ast.AST, owner: type | None
    ) -> Value:
        """Call a function of a module."""
        assert isinstance(target, types.FunctionType)
        module = sys.modules.get(target.__module__)
        if module is not None and self.is_library(module):
            raise self.refused(
                node,
                f"{target.__module__}.{target.__qualname__} is not supported",
                "remove the call, or write the function in Python",
            )
        function = self.of.function(target)
        if function is None:
            raise self.refused(node, f"{target.__qualname__} has no source", "define it in a file")
        return self.inline(function, found, named, node, owner=owner)

    def main(self, function: Function, values: dict[str, Value], node: ast.AST) -> None:
        """The code of the main thread."""
        self.inline(function, [], values, node)

    # -- inlining ------------------------------------------------------------------------------------------------------

    def inline(
        self,
        function: Function,
        found: list[Value],
        named: dict[str, Value],
        node: ast.AST,
        *,
        outer: Frame | None = None,
        owner: type | None = None,
        tag: Hashable = None,
    ) -> Value:
        """The result of a function whose code is inserted here."""
        if function.suspends:
            return self.coroutine(function, found, named, outer, owner, node)
        return self.inserted(function, found, named, node, outer=outer, owner=owner, tag=tag)

    def inserted(
        self,
        function: Function,
        found: list[Value],
        named: dict[str, Value],
        node: ast.AST,
        *,
        outer: Frame | None = None,
        owner: type | None = None,
        tag: Hashable = None,
    ) -> Value:
        """The code of a function, here."""
        if any(v.type.category == "never" for v in (*found, *named.values())):
            return NO_VALUE
        if self.depth.count(function.node) > self.of.options.unwind:
            text = f"{function.name} calls itself more than {self.of.options.unwind} times (the limit is the option unwind)"
            self.code.ensure(Constant(False), LIMITS, text)
            self.code.jump(self.code.exit)
            return NO_VALUE
        body = function.node.body
        if isinstance(body, list) and any(isinstance(n, ast.Yield | ast.YieldFrom) for s in body for n in ast.walk(s)):
            raise self.refused(node, f"{function.name} is a generator", "collect the items in a list")
        context = self.of.context((self.frame.context, self.code.number), node, (function.node, tag))
        frame = Frame(function, context, context, outer, owner, tuple(self.loops))
        self._bind(frame, found, named, node)
        before, here = self.frame, self.code.here
        end = self.code.label()
        key = (context, "return")
        self.frame = frame
        for name in sorted(function.early):
            self.set_assigned(frame, name, name in function.parameters)
        self.depth.append(function.node)
        self.exits.append(Exit("call", label=end, key=key))
        if isinstance(body, list):
            self.block(body)
            if self.code.reachable:
                self.store(key, NONE_VALUE, "the result", local=True)
        else:
            self.at(body)
            self.store(key, self.expr(body), "the result", local=True)
        self.exits.pop()
        self.depth.pop()
        self.code.mark(end)
        result = self.fetch(key, "the result", local=True)
        self.frame = before
        self.code.at(here)
        return result

    def _bind(self, frame: Frame, found: list[Value], named: dict[str, Value], node: ast.AST) -> None:
        """Give the parameters of a function their values."""
        function = frame.function
        a = function.node.args
        positional = [x.arg for x in (*a.posonlyargs, *a.args)]
        if a.kwarg is not None:
            raise self.refused(function.node, f"** in the parameters of {function.name} is not supported", "name them")
        values = dict(zip(positional, found, strict=False))
        if a.vararg is not None:
            values[a.vararg.arg] = self.packed(found[len(positional) :])
        elif len(found) > len(positional):
            raise self.refused(
                node, f"{function.name} takes {len(positional)} arguments, not {len(found)}", "correct the call"
            )
        for name, value in named.items():
            if name in values or name not in {*positional, *(x.arg for x in a.kwonlyargs)}:
                raise self.refused(node, f"{function.name} has no free parameter {name}", "correct the call")
            values[name] = value
        rebound = Bindings(function.node.body if isinstance(function.node.body, list) else [function.node.body]).counts
        for name, default in function.defaults:
            if name not in values:
                values[name] = self._default(function, name, default, frame)
        for name in (*positional, *(x.arg for x in a.kwonlyargs), *([a.vararg.arg] if a.vararg else [])):
            if name not in values:
                raise self.refused(node, f"{function.name} needs the argument {name}", "correct the call")
            value = values[name]
            fixed = name not in rebound and name not in function.captured
            if fixed and all(isinstance(part, Constant) for part in value.parts):
                frame.fixed[name] = value
            else:
                self.store(frame.key(name), value, name, local=not frame.shares(name))

    def _default(self, function: Function, name: str, default: ast.expr, frame: Frame) -> Value:
        """The value of a default argument: of the function object, or from the definition of a nested function."""
        if frame.outer is not None:
            key = frame.outer.default(function.node, name)
            constant = frame.outer.defaults.get(key)
            return self.fetch(key, name, local=False) if constant is None else constant
        signature = inspect.signature(function.origin)
        if name in signature.parameters:
            return self.of.imported(signature.parameters[name].default)
        return self.expr(default)

    # -- methods -------------------------------------------------------------------------------------------------------

    def _method(self, receiver: Value, name: str, node: ast.Call) -> Value:
        t = receiver.type
        if t.category == "none":
            self.throw(AttributeError, ASSERTIONS, f"AttributeError: None has no method {name}")
            return NO_VALUE
        assert t.site is not None
        if t.optional:
            receiver = Value(structs.replace(t, optional=False), (self.reference(receiver, name),))
        given, named = self.arguments(node)
        return self.call_method(receiver, name, given, named, node)

    def call_method(
        self, receiver: Value, name: str, given: list[Value], named: dict[str, Value], node: ast.AST
    ) -> Value:
        """Call a method of an object, of Python or of the user."""
        found = self.library_method(receiver, name, given, named, node)
        return self.dispatched(receiver, name, given, named, node) if found is None else found

    def dispatched(
        self, receiver: Value, name: str, found: list[Value], named: dict[str, Value], node: ast.AST, after: Any = None
    ) -> Value:
        """Call a method of the user, of the class that the object has."""
        site = receiver.type.site
        assert site is not None
        reference = self.reference(receiver, name)
        groups: dict[Any, list[tuple[Site, Expr]]] = {}
        for member, condition in self.member(site, reference):
            groups.setdefault((members(member.cls, name, after), member.cls), []).append((member, condition))
        ways: list[tuple[Label, Callable[[], Value]]] = []
        for number_of_group, ((target, cls), sites) in enumerate(groups.items()):
            label = self.code.label()
            ways.append((label, self._way(receiver, target, cls, name, found, named, node, number_of_group)))
            if len(groups) > 1:
                for member, condition in sites:
                    following = self.code.label()
                    first = operation(">=", reference, Constant(self.heap.first(member)))
                    self.code.branch(operation("&&", first, condition), label, following)
                    self.code.mark(following)
        if len(ways) == 1:
            return ways[0][1]()
        self.code.jump(ways[-1][0])
        return self.merged(node, name, ways)

    def _way(
        self,
        receiver: Value,
        target: Any,
        cls: type,
        name: str,
        found: list[Value],
        named: dict[str, Value],
        node: ast.AST,
        tag: int,
    ) -> Callable[[], Value]:
        def way() -> Value:
            owner = next((b for b in cls.__mro__ if vars(b).get(name) is target), cls)
            if isinstance(target, staticmethod):
                return self.call_function(target.__func__, found, named, node, owner)
            if isinstance(target, classmethod):
                return self.call_function(target.__func__, [known(cls), *found], named, node, owner)
            if isinstance(target, types.FunctionType):
                if owner is not cls and self.is_library_class(owner):
                    return self.library_base_call(owner, receiver, name, found, named, node)
                return self.call_function(target, [receiver, *found], named, node, owner)
            if name == "__init__" and not found and not named:
                return NONE_VALUE
            value = self.attribute(receiver, name, node)
            if value.type.category in ("static", "method"):
                return self.call_value(value, found, named, node)
            raise self.refused(node, f"{cls.__name__} has no method {name} that is supported", "define it in the class")

        return way

    def _is_super(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return False
        return node.func.id == "super" and self.frame.holder("super") is None

    def _super(self, node: ast.Call, func: ast.Attribute) -> Value:
        owner = self.frame.owner
        names = [x.arg for x in self.frame.function.node.args.args]
        if owner is None or not names:
            raise self.refused(node, "super() outside of a method", "use it in a method of a class")
        receiver = self.expr(ast.copy_location(ast.Name(names[0], ast.Load()), node))
        if receiver.type.category == "never":
            return NO_VALUE
        found, named = self.arguments(node)
        return self.dispatched(receiver, func.attr, found, named, node, after=owner)

    # -- functions of the library --------------------------------------------------------------------------------------

    def library_call(self, target: Any, node: ast.Call) -> Value | None:
        """Call a function of Python. None: it is not known."""
        if target in _NOTHING or _logs(target):
            for argument in node.args:
                self.expr(argument.value if isinstance(argument, ast.Starred) else argument)
            return NONE_VALUE
        if target is threading.current_thread and not node.args:
            return known(_CURRENT)
        if target in (threading.get_ident, threading.get_native_id):
            return known(node)
        if target is random.randint or target is random.randrange:
            return self._random(target, node)
        made = self.make_library_object(target, node)
        if made is not None:
            return made
        found = self.thread_function(target, node)
        if found is not None:
            return found
        return self.builtin(target, node)

    def _random(self, target: Any, node: ast.Call) -> Value:
        numbers = [self.number(v, node) for v in self.arguments(node)[0]]
        given = [e for e in numbers if isinstance(e, Constant)]
        if len(given) != len(numbers) or not 1 <= len(given) <= 2:
            raise self.refused(node, "the range of a random number must be known", "use constants")
        low, high = [Constant(0), *given][-2:]
        last = high.value if target is random.randint else high.value - 1
        return Value(INT, (self.code.choose(Domain("int", low.value, last)),))
