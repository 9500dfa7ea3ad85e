"""Calls: functions of the user are inlined; classes make objects; methods are found in the class of the object."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import random
import sys
import threading
import time
import types
from collections.abc import Callable, Hashable
from typing import Any

from plait.bmc.program.arithmetic import operation
from plait.bmc.program.builder import Label
from plait.bmc.program.definition import ASSERTIONS, LIMITS, Constant, Domain, Expr
from plait.bmc.python.code import Exit
from plait.bmc.python.functions import Closure, Frame, Function
from plait.bmc.python.heap import Site
from plait.bmc.python.threads import Threads
from plait.bmc.python.translation import CONTAINERS
from plait.bmc.python.values import (
    INT,
    NO_VALUE,
    NONE_VALUE,
    Type,
    Value,
    converted,
    described,
    items_of,
    known,
)
from plait.ir.frame import members
from plait.ir.scope import Bindings

_NOTHING: tuple[Any, ...] = (time.sleep, print, random.seed, sys.stdout.write, sys.setswitchinterval)
"""Calls that change nothing in the program."""


@dataclasses.dataclass(eq=False)
class Bound:
    """A method of a class that is called on an instance, or a class method."""

    function: types.FunctionType
    owner: type
    receiver: Value | None


class Calls(Threads):
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
        if isinstance(target, type) and not self._is_library_class(target):
            return self._construct(target, node)
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
            return self.dispatched(receiver, t.name, found, named, node)
        if t.category == "static" and t.static is not None:
            return self.call_known(t.static.value, found, named, node)
        return NO_VALUE

    def call_known(self, target: Any, found: list[Value], named: dict[str, Value], node: ast.AST) -> Value:
        """Call a function of the user."""
        if isinstance(target, Closure):
            return self.inline(target.function, found, named, node, outer=target.frame, owner=target.frame.owner)
        if isinstance(target, Bound):
            receivers = [] if target.receiver is None else [target.receiver]
            return self._user(target.function, [*receivers, *found], named, node, target.owner)
        if isinstance(target, types.FunctionType):
            return self._user(target, found, named, node, None)
        if isinstance(target, types.MethodType):
            receiver = self.of.imported(target.__self__)
            return self._user(target.__func__, [receiver, *found], named, node, type(target.__self__))
        name = getattr(target, "__qualname__", None) or type(target).__name__
        module = getattr(target, "__module__", None)
        full = f"{module}.{name}" if module not in (None, "builtins") else name
        raise self.refused(node, f"{full} is not supported", "remove the call, or write the function in Python")

    def _user(
        self, target: types.FunctionType, found: list[Value], named: dict[str, Value], node: ast.AST, owner: type | None
    ) -> Value:
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

    def is_library(self, module: types.ModuleType) -> bool:
        """Whether a module belongs to Python."""
        return module.__name__.partition(".")[0] in sys.stdlib_module_names

    def _is_library_class(self, cls: type) -> bool:
        return cls.__module__.partition(".")[0] in sys.stdlib_module_names and not issubclass(cls, BaseException)

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
            raise self.refused(node, "asynchronous functions are not supported here", "use threads")
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
            text = f"{function.name} calls itself more than {self.of.options.unwind} times"
            self.code.ensure(Constant(False), LIMITS, text)
            self.code.jump(self.code.exit)
            return NO_VALUE
        body = function.node.body
        if isinstance(body, list) and any(isinstance(n, ast.Yield | ast.YieldFrom) for s in body for n in ast.walk(s)):
            raise self.refused(node, f"{function.name} is a generator", "collect the items in a list")
        context = self.of.context((self.frame.context, self.code.number), node, (function.node, tag))
        frame = Frame(function, context, context, outer, owner)
        self._bind(frame, found, named, node)
        before, here = self.frame, self.code.here
        end = self.code.label()
        key = (context, "return")
        self.frame = frame
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
        defaults: list[tuple[str, ast.expr | None]] = list(
            zip(positional[len(positional) - len(a.defaults) :], a.defaults, strict=True)
        )
        defaults += [(x.arg, d) for x, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
        for name, default in defaults:
            if name not in values and default is not None:
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
        """The value of a default argument: of the function object if there is one, else of the expression."""
        origin = function.origin
        signature = inspect.signature(origin)
        if frame.outer is None and name in signature.parameters:
            return self.of.imported(signature.parameters[name].default)
        before, self.frame = self.frame, frame.outer or self.frame
        value = self.expr(default)
        self.frame = before
        return value

    # -- methods -------------------------------------------------------------------------------------------------------

    def _method(self, receiver: Value, name: str, node: ast.Call) -> Value:
        t = receiver.type
        if t.category == "none":
            self.throw(AttributeError, ASSERTIONS, f"AttributeError: None has no method {name}")
            return NO_VALUE
        assert t.site is not None
        if t.optional:
            receiver = Value(dataclasses.replace(t, optional=False), (self.reference(receiver, name),))
        found = self.library_method(receiver, name, node)
        if found is not None:
            return found
        given, named = self.arguments(node)
        return self.dispatched(receiver, name, given, named, node)

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
                return self._user(target.__func__, found, named, node, owner)
            if isinstance(target, classmethod):
                return self._user(target.__func__, [known(cls), *found], named, node, owner)
            if isinstance(target, types.FunctionType):
                if owner is not cls and self._is_library_class(owner):
                    return self.library_base_call(owner, receiver, name, found, named, node)
                return self._user(target, [receiver, *found], named, node, owner)
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

    # -- objects of the user's classes ---------------------------------------------------------------------------------

    def _construct(self, cls: type, node: ast.Call) -> Value:
        if issubclass(cls, BaseException):
            self.arguments(node)
            return known(cls)
        if issubclass(cls, enum.Enum) or issubclass(cls, (tuple, int, str, *CONTAINERS)):
            raise self.refused(
                node, f"{cls.__name__}(…) is not supported: it derives from a built-in class", "use a plain class"
            )
        if "__new__" in {n for base in cls.__mro__[:-1] for n in vars(base) if not self._is_library_class(base)}:
            raise self.refused(node, f"{cls.__name__} has __new__, which is not supported", "use __init__")
        found, named = self.arguments(node)
        is_thread = issubclass(cls, threading.Thread)
        most = self.of.options.threads if is_thread else None
        site, value, _ = self.allocate(node, cls, cls.__name__.lower(), most=most)
        del site
        init = members(cls, "__init__")
        generated = isinstance(init, types.FunctionType) and init.__code__.co_filename.startswith("<")
        if dataclasses.is_dataclass(cls) and generated:
            self._fill(cls, value, found, named, node)
            return value
        if isinstance(init, types.FunctionType):
            self.dispatched(value, "__init__", found, named, node)
        elif found or named:
            raise self.refused(node, f"{cls.__name__} takes no arguments", "define __init__")
        return value

    def _fill(self, cls: Any, value: Value, found: list[Value], named: dict[str, Value], node: ast.AST) -> None:
        fields = [f for f in dataclasses.fields(cls) if f.init]
        given = dict(zip([f.name for f in fields], found, strict=False)) | named
        for field in dataclasses.fields(cls):
            if field.name in given:
                content = given[field.name]
            elif field.default is not dataclasses.MISSING:
                content = self.of.imported(field.default)
            elif field.default_factory is not dataclasses.MISSING:
                made = ast.copy_location(ast.Call(ast.Name(field.name, ast.Load()), [], []), node)
                key = ("factory", self.frame.context, node, field.name)
                made = self.heap.functions.setdefault(key, made)
                content = self.call(known(field.default_factory), made)
            else:
                raise self.refused(node, f"{cls.__name__} needs the argument {field.name}", "correct the call")
            self.set_attribute(value, field.name, content, node)
        if hasattr(cls, "__post_init__"):
            self.dispatched(value, "__post_init__", [], {}, node)

    def object_attribute(self, value: Value, name: str, node: ast.AST) -> Value:
        """`value.name` of an object."""
        site = value.type.site
        assert site is not None
        special = self.library_attribute(value, name, node)
        if special is not None:
            return special
        reference = self.reference(value, name)
        found = [members(cls, name) for cls in self.heap.classes(site)]
        first = found[0]
        if isinstance(first, property):
            assert first.fget is not None
            owner = self.heap.classes(site)[0]
            return self._user(first.fget, [value], {}, node, owner)  # type: ignore[arg-type]
        key = self.heap.field(site, name)
        if self.heap.type(key).category != "never":
            self._class_defaults(site, name)
            return self.read(self.heap.type(key), self.field_cells(site, name, reference))
        if isinstance(first, types.FunctionType | classmethod | staticmethod):
            receiver = dataclasses.replace(value.type, optional=False)
            return Value(Type("method", items=(receiver,), name=name), value.parts)
        if not isinstance(first, type(None)) and any(name in vars(c) for c in self.heap.classes(site)[0].__mro__):
            return self.class_attribute(self.heap.classes(site)[0], name, node)
        if not self.heap.changed and self.heap.settled:
            raise self.refused(node, f"{described(value.type)} has no attribute {name}", "assign it in __init__")
        return NO_VALUE

    def _class_defaults(self, site: Site, name: str) -> None:
        for member in self.heap.pool(site):
            default = getattr(member.cls, name, None)
            plain = default is not None and not callable(default) and not hasattr(type(default), "__get__")
            if member.origin is None and plain:
                self.joined(self.heap.field(site, name), self.of.imported(default).type, name)

    def set_attribute(self, value: Value, name: str, content: Value, node: ast.AST) -> None:
        """`value.name = content`"""
        t = value.type
        if t.category == "static" and t.static is not None:
            self._set_static(t.static.value, name, content, node)
            return
        if t.category == "never" or content.type.category == "never":
            return
        if t.category != "ref":
            raise self.refused(node, f"an attribute of a {described(t)} is assigned", "assign attributes of objects")
        assert t.site is not None
        if self.set_library_attribute(value, name, content, node):
            return
        reference = self.reference(value, name)
        descriptor = members(self.heap.classes(t.site)[0], name)
        if isinstance(descriptor, property):
            if descriptor.fset is None:
                raise self.refused(node, f"the property {name} cannot be assigned", "give it a setter")
            self._user(descriptor.fset, [value, content], {}, node, self.heap.classes(t.site)[0])  # type: ignore[arg-type]
            return
        self._class_defaults(t.site, name)
        to = self.joined(self.heap.field(t.site, name), content.type, name)
        cells = self.field_cells(t.site, name, reference)
        self.write(cells, converted(content, to, self.heap), content.type, to)

    def _set_static(self, owner: Any, name: str, content: Value, node: ast.AST) -> None:
        if isinstance(owner, types.ModuleType) and not self.is_library(owner):
            self.set_global(vars(owner), name, content)
        elif isinstance(owner, type) and not self._is_library_class(owner):
            holder = next((b for b in owner.__mro__ if name in vars(b)), owner)
            initial = self.of.imported(vars(holder).get(name), name)
            key = ("class", holder, name)
            if name in vars(holder):
                self.joined(key, initial.type, name)
            self.store(key, content, f"{holder.__name__}.{name}", local=False, initial=initial)
        else:
            raise self.refused(node, f"{name} is assigned here", "assign attributes of objects and of your classes")

    def set_global(self, names: dict[str, Any], name: str, content: Value) -> None:
        """Assign a global variable."""
        key = ("global", id(names), name)
        initial = NO_VALUE
        if name in names:
            initial = self.of.imported(names[name], name)
            self.joined(key, initial.type, name)
        self.store(key, content, name, local=False, initial=initial)

    def class_attribute(self, owner: type, name: str, node: ast.AST) -> Value:
        """`Class.name`"""
        holder = next((b for b in owner.__mro__ if name in vars(b)), None)
        if holder is None:
            if name in ("__name__", "__qualname__"):
                return self.of.imported(owner.__name__)
            raise self.refused(node, f"{owner.__name__} has no attribute {name}", "define it in the class")
        value = vars(holder)[name]
        if isinstance(value, staticmethod):
            return known(value.__func__)
        if isinstance(value, classmethod):
            key = ("bound", owner, name)
            return known(self.heap.functions.setdefault(key, Bound(value.__func__, holder, known(owner))))  # type: ignore[arg-type]
        if isinstance(value, types.FunctionType):
            key = ("unbound", owner, name)
            return known(self.heap.functions.setdefault(key, Bound(value, holder, None)))
        initial = self.of.imported(value, name)
        cell = ("class", holder, name)
        self.joined(cell, initial.type, name)
        return self.fetch(cell, f"{holder.__name__}.{name}", local=False, initial=initial)

    def refuse_equality(self, site: Site, node: ast.AST) -> None:
        """Objects whose class defines `==` are not supported."""
        for cls in self.heap.classes(site):
            if cls.__eq__ is not object.__eq__ and not self._is_library_class(cls):
                raise self.refused(
                    node, f"{cls.__name__} defines ==, which is not supported", "compare with `is`, or fields"
                )

    # -- functions of the library --------------------------------------------------------------------------------------

    def library_call(self, target: Any, node: ast.Call) -> Value | None:
        """Call a function of Python. None: it is not known."""
        if target in _NOTHING:
            for argument in node.args:
                self.expr(argument.value if isinstance(argument, ast.Starred) else argument)
            return NONE_VALUE
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
