"""Calls: of functions of the program, methods, constructors, and of functions that the virtual machine knows.

A function of the program has a *variant* for each set of parameters that a call gives: the variant has exactly these
parameters, in the order of the call, and assigns the defaults of the others. A parameter that is known at once (the
view, a class, a function) is left out of it.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import operator
import types
import typing
from collections.abc import Sequence
from typing import Any

from plait.ir import builtins, nodes
from plait.ir.builtins import derived_from, library_class
from plait.ir.definition import UNKNOWN, members, value_of
from plait.ir.effects import Effects
from plait.ir.frame import is_builtin, is_code, is_typing, unwrapped
from plait.ir.nodes import Expression
from plait.ir.parameters import Parameters, Supplied, parameters_of
from plait.ir.scope import CALLABLE, VIEW, Instance, Kind, LocalFunction, Static, Viewed, exists
from plait.kernel.pid import Pid
from plait.model.process import Process

Given = tuple[Expression | None, Kind | None]
"""An argument: its value, unless it has none at run time, and its kind."""


class Calls(Effects):
    """Lowers the calls of one function."""

    def _call(self, node: ast.Call) -> Expression:
        func = node.func
        if any(k.arg is None for k in node.keywords):
            raise self.refused(node, "call with **")
        if isinstance(func, ast.Attribute):
            if isinstance(func.value, ast.Call) and is_builtin(self._callee(func.value), "super"):
                return self._super(func, node)
            kind = self.kind(func.value)
            if isinstance(kind, Instance):
                return self._method(kind.cls, func, members(kind.cls, func.attr), node)
            if kind is VIEW:
                return self._view_method(func.attr, node)
        callee = self._callee(node)
        if callee is not UNKNOWN:
            return self._static_call(callee, node)
        if isinstance(func, ast.Name):
            return self._local_call(func, node)
        if isinstance(func, ast.Attribute):
            return self._method_of_value(func, node)
        called = self.any(func)
        self._no_keywords(node)
        return nodes.CallValue(called, self.items(node.args))

    def _callee(self, node: ast.Call) -> Any:
        return self.static(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else UNKNOWN

    def _no_keywords(self, node: ast.Call) -> None:
        if node.keywords:
            raise self.refused(node, "keyword argument of a function value")

    def _local_call(self, func: ast.Name, node: ast.Call) -> Expression:
        """A call of a variable."""
        scope = self.holder(func.id)
        assert scope is not None
        function = self._name(func)
        known = scope.functions.get(func.id)
        if known is not None:
            return nodes.CallValue(function, self._to_nested(known, node))
        self._no_keywords(node)
        return nodes.CallValue(function, self.items(node.args))

    def _to_nested(self, function: LocalFunction, node: ast.Call) -> list[Expression]:
        """The arguments of a call of a nested function: keywords are in their places, defaults may be missing."""
        arguments = function.node.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        values = self.items(node.args)
        for keyword in node.keywords:
            if len(values) >= len(names) or names[len(values)] != keyword.arg:
                raise self.refused(node, "keyword arguments in another order than the parameters")
            values.append(self.expr(keyword.value))
        return values

    # -- functions of the program ----------------------------------------------------------------------------------

    def call(self, function: Any, first: list[Given], node: ast.AST) -> Expression:
        """A call of a function of the program: with the arguments `first`, then those of the call, if it is one."""
        function = unwrapped(function)
        if isinstance(function, functools._lru_cache_wrapper):
            raise self.refused(node, f"{function.__name__}(…), which has a cache")
        if not isinstance(function, types.FunctionType):
            raise self.refused(node, f"call of a {type(function).__name__}")
        parameters = parameters_of(function)
        if parameters.kwarg:
            raise self.refused(node, f"{function.__name__}(…), which has **kwargs")
        given = list(first)
        spread: ast.expr | None = None
        for argument in node.args if isinstance(node, ast.Call) else ():
            if isinstance(argument, ast.Starred):
                spread = argument.value
                continue
            if spread is not None:
                raise self.refused(node, "argument after *")
            given.append(self.given(argument))
        whole = parameters.vararg is not None and len(given) >= len(parameters.positional)
        if spread is not None and not whole:
            given += self._spread(spread, parameters, len(given), node)
        supplied: list[Supplied] = []
        values: list[Expression] = []
        rest: list[Expression] = []
        for position, (value, kind) in enumerate(given):
            if position < len(parameters.positional):
                supplied.append((parameters.positional[position], kind))
                if exists(kind):
                    assert value is not None
                    values.append(value)
            elif parameters.vararg is None or kind is not None or value is None:
                raise self.refused(node, f"arguments of {function.__name__}(…)")
            else:
                rest.append(value)
        if spread is not None and whole:
            rest.append(nodes.Starred(self.collected(spread)))
        if rest:
            assert parameters.vararg is not None
            supplied.append((parameters.vararg, None))
            values.append(nodes.TupleDisplay(rest))
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            name = keyword.arg
            if name is None or name not in parameters.keywords or any(name == s for s, _ in supplied):
                raise self.refused(node, f"arguments of {function.__name__}(…)")
            value, kind = self.given(keyword.value)
            supplied.append((name, kind))
            if exists(kind):
                assert value is not None
                values.append(value)
        missing = [n for n in parameters.required if all(n != s for s, _ in supplied)]
        if missing:
            raise self.refused(node, f"arguments of {function.__name__}(…)")
        special = self.intrinsic(function, values)
        if special is not None:
            return special
        return nodes.CallFunction(self.lowering.variant(function, tuple(supplied), self, node), values)

    def intrinsic(self, function: types.FunctionType, values: list[Expression]) -> Expression | None:
        """What replaces a function of Plait that CPython needs for its error messages only."""
        if function.__module__ == "plait.model.linearizability" and function.__name__ == "_hashable":
            # A set display bails if the value cannot be hashed.
            slot = self.slot()
            made = nodes.SetDisplay([nodes.Assigned(slot, values[0])])
            return nodes.Conditional(made, nodes.Local(slot), nodes.Local(slot))
        return None

    def given(self, node: ast.expr) -> Given:
        """An argument of a function of the program."""
        kind = self.kind(node)
        if kind is VIEW:
            self.whole_view(node)
        if kind is not None:
            return (self.any(node) if exists(kind) else None), kind
        if self.is_callable(node):
            return self.any(node), CALLABLE
        if isinstance(node, ast.Name | ast.Attribute):
            found = self.static(node)
            if found is not UNKNOWN and is_code(found):
                return None, Static(found)
        return self.expr(node), None

    def _spread(self, node: ast.expr, parameters: Parameters, before: int, call: ast.AST) -> list[Given]:
        """`*values` of a call: one value for each positional parameter that is left."""
        names = parameters.positional[before:]
        if parameters.vararg is not None or not isinstance(node, ast.Name) or not names:
            raise self.refused(call, "call with *")
        values = self.expr(node)
        count = nodes.Compare(nodes.CallBuiltin("len", [values], {}), ["=="], [self.constant(len(names), call)])
        items: list[Expression] = [nodes.Subscript(values, self.constant(i, call)) for i in range(len(names))]
        items[0] = nodes.Conditional(count, items[0], self.fails(call))
        return [(item, None) for item in items]

    # -- methods ---------------------------------------------------------------------------------------------------

    def _super(self, func: ast.Attribute, node: ast.Call) -> Expression:
        """`super().method(…)`: the method of the next class in the order of resolution of the value's exact class."""
        assert isinstance(func.value, ast.Call)
        name = self.function.__code__.co_varnames[:1]
        owner: Any = value_of(self.function, "__class__")
        kind = self.scope_of_function().kinds.get(name[0]) if name else None
        if func.value.args:
            owner, kind = self.static(func.value.args[0]), self.kind(func.value.args[-1])
        if isinstance(kind, Static) and isinstance(owner, type):
            found = members(kind.value, func.attr, owner)
            if isinstance(found, classmethod):
                return self.call(found.__func__, [(None, kind)], node)
        if not isinstance(kind, Instance | Viewed) or not isinstance(owner, type) or owner not in kind.cls.__mro__:
            raise self.refused(node, "super()")
        receiver = ast.copy_location(ast.Name(name[0], ast.Load()), node)
        if isinstance(kind, Viewed):
            return self.call(members(kind.cls, func.attr, owner), [(self.expr(receiver), kind)], node)
        func = ast.copy_location(ast.Attribute(receiver, func.attr, ast.Load()), node)
        return self._method(kind.cls, func, members(kind.cls, func.attr, owner), node)

    def _method(self, cls: type, func: ast.Attribute, found: Any, node: ast.Call) -> Expression:
        """A call of a method of a value whose class is known."""
        name = func.attr
        if name in self.lowering.classes.fields(cls):
            raise self.refused(node, f"call of the field {name}")
        if issubclass(cls, Process) and found is Process.__dict__.get(name) and found is not None:
            return self.pid_of(cls, node) if name == "pid" else self.effect(name, node)
        if name == "_replace" and issubclass(cls, tuple):
            return self._method_of_value(func, node)
        if isinstance(found, classmethod):
            return self.call(found.__func__, [(None, Static(cls))], node)
        if isinstance(found, staticmethod):
            return self.call(found.__func__, [], node)
        function = unwrapped(found)
        if isinstance(function, types.FunctionType) and not function.__code__.co_filename.startswith("<"):
            return self.call(function, [(self.expr(func.value), Instance(cls))], node)
        if found is UNKNOWN or not issubclass(cls, tuple | str | int):
            raise self.refused(node, f"{cls.__name__}.{name}(…)")
        return self._method_of_value(func, node)

    def bound_method(self, cls: type, node: ast.Attribute, count: int | None) -> Expression:
        """`key=self.rank`"""
        found = members(cls, node.attr)
        if isinstance(found, staticmethod):
            return self.function_value(found.__func__, node, count)
        function = unwrapped(found)
        if not isinstance(function, types.FunctionType) or function in Process.__dict__.values():
            raise self.refused(node, f"{cls.__name__}.{node.attr} as a value")
        supplied = self._first(function, count, node, Instance(cls))
        return nodes.FunctionValue(self.lowering.variant(function, supplied, self, node), self.expr(node.value))

    def _first(
        self, function: types.FunctionType, count: int | None, node: ast.AST, bound: Kind | None = None
    ) -> tuple[Supplied, ...]:
        """The parameters that a function as a value is called with: `count`, else all that have no default."""
        parameters = parameters_of(function)
        names: Sequence[str] = parameters.positional
        skip = int(bound is not None)
        if parameters.kwarg or (parameters.vararg and count is None):
            raise self.refused(node, f"{function.__name__} as a value")
        wanted = [n for n in names[skip:] if n in parameters.required] if count is None else names[skip : skip + count]
        if set(parameters.required) - {*names[:skip], *wanted} or (count is not None and len(wanted) != count):
            raise self.refused(node, f"{function.__name__} as a value")
        return (*((n, bound) for n in names[:skip]), *((n, None) for n in wanted))

    def _method_of_value(self, func: ast.Attribute, node: ast.Call) -> Expression:
        """A call of a method, where the class of the value decides."""
        name = func.attr
        if name == "_replace":
            return nodes.Replace(self.expr(func.value), self._changes(node))
        if name.startswith("_"):
            raise self.refused(node, f".{name}(…)")
        value = self.expr(func.value)
        keywords = {k.arg or "": k.value for k in node.keywords}
        if name in builtins.METHODS:
            allowed = builtins.METHOD_KEYWORDS.get(name, frozenset())
            if not allowed.issuperset(keywords):
                raise self.refused(node, f".{name}(…) with these arguments")
            named = {k: self.function_argument(v, 1) if k == "key" else self.expr(v) for k, v in keywords.items()}
            arguments: list[Expression] = []
            for argument in node.args:
                if isinstance(argument, ast.Starred):
                    arguments.append(nodes.Starred(self.collected(argument.value)))
                else:
                    arguments.append(self._consumed_argument(argument))
            self.lowering.classes.call(name, len(node.args), ())
            return nodes.CallMethod(value, name, arguments, named)
        of_library = name in builtins.LIBRARY_METHODS and not self.lowering.whole
        if of_library and keywords and builtins.METHOD_KEYWORDS.get(name, frozenset()).issuperset(keywords):
            self.lowering.classes.call(name, len(node.args), ())
            return nodes.CallMethod(value, name, self.items(node.args), {k: self.expr(v) for k, v in keywords.items()})
        lower = self._consumed_argument if of_library else self.expr
        arguments = [lower(a) for a in node.args] + [self.expr(v) for v in keywords.values()]
        called = self.lowering.classes.call(name, len(node.args), tuple(keywords))
        if not of_library:
            self.lowering.expects(self, name, node)
        return nodes.CallMethod(value, called, arguments, {})

    def _consumed_argument(self, node: ast.expr) -> Expression:
        found = self.consumed(node)
        if type(found) is nodes.Lambda or (type(found) is nodes.Local and found.slot in self.callables):
            raise self.refused(node, "function that is kept")
        return found

    def _changes(self, node: ast.Call) -> dict[str, Expression]:
        return {k.arg or "": self.expr(k.value) for k in node.keywords}

    # -- functions that are known now ------------------------------------------------------------------------------

    def _static_call(self, callee: Any, node: ast.Call) -> Expression:
        if isinstance(callee, types.MethodType):
            if callee.__func__ is Process.__dict__["pid"].__func__ and isinstance(callee.__self__, type):
                return self.pid_of(callee.__self__, node)
            if isinstance(callee.__self__, type):
                return self.call(callee.__func__, [(None, Static(callee.__self__))], node)
        callee = unwrapped(callee)
        if isinstance(callee, functools.partial):
            return self._partial(callee, node)
        if isinstance(callee, functools._lru_cache_wrapper):
            return self.call(callee, [], node)  # refused there
        if self.lowering.whole and isinstance(callee, type | types.BuiltinFunctionType) and callee in builtins.UNKNOWN:
            return self._builtin(builtins.UNKNOWN[callee], node)
        of_library = None if self.lowering.whole else library_class(callee)
        if of_library is not None:
            return self._library_class(of_library, node)
        name = builtins.name_of(callee)
        if isinstance(callee, types.FunctionType) and name is None:
            return self._function_call(callee, node)
        if isinstance(callee, type) and callee not in builtins.NAMES and callee is not type:
            return self._constructor(callee, node)
        if is_builtin(callee, "isinstance"):
            return self.is_instance(node)
        if is_builtin(callee, "getattr") and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
            attribute = node.args[1].value
            if isinstance(attribute, str):
                return self.expr(ast.copy_location(ast.Attribute(node.args[0], attribute, ast.Load()), node))
        found = self._operator(callee, node)
        if found is not None:
            return found
        if name is None:
            shown = ast.unparse(node.func)
            raise self.refused(node, f"{shown}(…)")
        if name not in builtins.NAMES.values():  # str.lower(text)
            if not node.args or node.keywords or isinstance(node.args[0], ast.Starred):
                raise self.refused(node, f"{name}(…)")
            values = [self._consumed_argument(a) for a in node.args]
            return nodes.CallMethod(values[0], name.rpartition(".")[2], values[1:], {})
        return self._builtin(name, node)

    def _function_call(self, callee: types.FunctionType, node: ast.Call) -> Expression:
        if is_typing(callee, "cast") and len(node.args) == 2:
            return self.any(node.args[1])
        if is_typing(callee, "assert_never") and not self.lowering.whole:
            return self.fails(node)
        if is_typing(callee, "assert_type") or is_typing(callee, "reveal_type"):
            return self.any(node.args[0])
        if callee is dataclasses.replace and len(node.args) == 1:
            return nodes.Replace(self.expr(node.args[0]), self._changes(node))
        if callee in (Process.send, Process.broadcast, Process.announce, Process.choose, Process.spawn, Process.ids):
            raise self.refused(node, f"Process.{callee.__name__}(…)")
        return self.call(callee, [], node)

    def _partial(self, callee: functools.partial[Any], node: ast.Call) -> Expression:
        """A call of `functools.partial(function, …)`, with positional arguments."""
        if callee.keywords:
            raise self.refused(node, "functools.partial with keywords")
        first: list[Given] = []
        for value in callee.args:
            first.append((None, Static(value)) if is_code(value) else (self.constant(value, node), None))
        return self.call(callee.func, first, node)

    def _operator(self, callee: Any, node: ast.Call) -> Expression | None:
        """A call of a function of `operator`."""
        if getattr(callee, "__module__", None) != "_operator" or node.keywords:
            return None
        if any(isinstance(a, ast.Starred) for a in node.args):
            return None
        values = [self.expr(a) for a in node.args]
        return self.operation(callee, values)

    def operation(self, callee: Any, values: list[Expression]) -> Expression | None:
        """An operator, by its function of `operator`."""
        if callee in builtins.BINARY and len(values) == 2:
            return nodes.BinaryOperation(builtins.BINARY[callee], *values)  # type: ignore[arg-type]
        if callee in builtins.COMPARISONS and len(values) == 2:
            return nodes.Compare(values[0], [builtins.COMPARISONS[callee]], [values[1]])  # type: ignore[list-item]
        if callee in builtins.UNARY and len(values) == 1:
            return nodes.UnaryOperation(builtins.UNARY[callee], values[0])  # type: ignore[arg-type]
        if callee is operator.getitem and len(values) == 2:
            return nodes.Subscript(*values)
        return None

    def _builtin(self, name: str, node: ast.Call) -> Expression:
        allowed = builtins.KEYWORDS.get(name, frozenset())
        keywords = {k.arg or "": k.value for k in node.keywords}
        if name == "dict" and keywords and not node.args:
            keys: list[Expression | None] = [self.constant(k, node) for k in keywords]
            return nodes.DictDisplay(keys, [self.expr(v) for v in keywords.values()])
        if not allowed.issuperset(keywords) and not self.lowering.whole:
            raise self.refused(node, f"{name}(…) with these arguments")
        if name == "len" and len(node.args) == 1:
            size = self.size_of_role(node.args[0])
            if size is not None:
                return self.constant(size, node)
        position, count = builtins.CALLED.get(name, (None, None))
        if name == "map":
            count = len(node.args) - 1
        arguments: list[Expression] = []
        for i, argument in enumerate(node.args):
            if isinstance(argument, ast.Starred):
                arguments.append(nodes.Starred(self.collected(argument.value)))
            elif i == position:
                arguments.append(self.function_argument(argument, count))
            else:
                arguments.append(self._consumed_argument(argument))
        named = {k: self.function_argument(v, 1) if k == "key" else self.expr(v) for k, v in keywords.items()}
        return nodes.CallBuiltin(name, arguments, named)

    def _library_class(self, name: str, node: ast.Call) -> Expression:
        """An instance of a class of Python's library."""
        keywords = {k.arg or "": k.value for k in node.keywords}
        if name in ("collections.Counter", "collections.OrderedDict") and keywords and not node.args:
            keys: list[Expression | None] = [self.constant(k, node) for k in keywords]
            display = nodes.DictDisplay(keys, [self.expr(v) for v in keywords.values()])
            return nodes.CallBuiltin(name, [display], {})
        if name != "collections.defaultdict":
            return self._builtin(name, node)
        if keywords or len(node.args) > 2 or any(isinstance(a, ast.Starred) for a in node.args):
            raise self.refused(node, "defaultdict(…) with these arguments")
        self.lowering.inserts = True
        factory: Any = None
        if node.args and not (isinstance(node.args[0], ast.Constant) and node.args[0].value is None):
            factory = self.static(node.args[0])
            if not isinstance(factory, type):
                raise self.refused(node, "defaultdict(…) of something that is no class")
            if factory.__module__ not in ("builtins", "collections"):
                self.number_of(factory, node)
        made = None if factory is None else f"{factory.__module__}.{factory.__qualname__}"
        rest = [self._consumed_argument(a) for a in node.args[1:]]
        return nodes.CallBuiltin(name, [self.constant(made, node), *rest], {})

    # -- functions as values ---------------------------------------------------------------------------------------

    def function_argument(self, node: ast.expr, count: int | None) -> Expression:
        """A function that is given to a function which calls it at once, with `count` arguments."""
        if self.is_callable(node):
            return self.any(node)
        if isinstance(node, ast.Call):
            made = self._made_function(node)
            if made is not None:
                return made
        if isinstance(node, ast.Attribute):
            kind = self.kind(node.value)
            if isinstance(kind, Instance) and node.attr not in self.lowering.classes.fields(kind.cls):
                return self.bound_method(kind.cls, node, count)
        if isinstance(node, ast.Name | ast.Attribute):
            found = self.static(node)
            if found is not UNKNOWN and is_code(found):
                return self.function_value(found, node, count)
            if found is UNKNOWN and isinstance(node, ast.Attribute) and count is not None:
                return self._method_value(node, count)
        return self.expr(node)

    def _method_value(self, node: ast.Attribute, count: int) -> Expression:
        """`key=order.index`: a lambda that calls the method."""
        value = self.expr(node.value)
        if node.attr not in builtins.METHODS or not is_pure_name(node.value):
            raise self.refused(node, f".{node.attr} as a value")
        slots = [self.slot() for _ in range(count)]
        called = nodes.CallMethod(value, node.attr, [nodes.Local(s) for s in slots], {})
        return nodes.Lambda(slots, [], [nodes.Return(called)])

    def _made_function(self, node: ast.Call) -> Expression | None:
        """`operator.itemgetter(1)` or `operator.attrgetter("term")`: a lambda."""
        callee = self._callee(node)
        if node.keywords or callee not in (operator.itemgetter, operator.attrgetter) or not node.args:
            return None
        slot = self.slot()
        parts: list[Expression] = []
        for argument in node.args:
            if callee is operator.itemgetter:
                parts.append(nodes.Subscript(nodes.Local(slot), self.expr(argument)))
                continue
            if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
                raise self.refused(node, "operator.attrgetter(…)")
            part: Expression = nodes.Local(slot)
            for name in argument.value.split("."):
                if name in self.lowering.clocks:
                    raise self.refused(node, f"the clock {name} as a value")
                self.lowering.classes.use(name)
                part = nodes.Attribute(part, name)
            parts.append(part)
        return nodes.Lambda([slot], [], [nodes.Return(parts[0] if len(parts) == 1 else nodes.TupleDisplay(parts))])

    def function_value(self, value: Any, node: ast.expr, count: int | None) -> Expression:
        """A function as a value, which will be called with `count` arguments."""
        value = unwrapped(value)
        name = builtins.name_of(value)
        if name is not None:
            return nodes.BuiltinValue(name)
        if isinstance(value, types.FunctionType):
            variant = self.lowering.variant(value, self._first(value, count, node), self, node)
            return nodes.FunctionValue(variant, None)
        if getattr(value, "__module__", None) == "_operator" and count is not None:
            slots = [self.slot() for _ in range(count)]
            made = self.operation(value, [nodes.Local(s) for s in slots])
            if made is not None:
                return nodes.Lambda(slots, [], [nodes.Return(made)])
        if isinstance(value, type) and count is not None and self.lowering.classes.objection(value) is None:
            fields = self.lowering.classes.parameters(value)
            slots = [self.slot() for _ in range(count)]
            if len(fields.positional) >= count and set(fields.required) <= set(fields.positional[:count]):
                given: dict[str, Expression] = {
                    n: nodes.Local(s) for n, s in zip(fields.positional, slots, strict=False)
                }
                return nodes.Lambda(slots, [], [nodes.Return(self.made(value, given, node))])
        what = "the class " if isinstance(value, type) else ""
        raise self.refused(node, f"{what}{getattr(value, '__name__', type(value).__name__)} as a value")

    # -- constructors ----------------------------------------------------------------------------------------------

    def _constructor(self, cls: type, node: ast.Call) -> Expression:
        if cls is Pid and len(node.args) == 2 and isinstance(node.args[0], ast.Constant):
            return self.pid_named(str(node.args[0].value), node.args[1], node)
        if issubclass(cls, self.lowering.enum):
            if len(node.args) != 1 or node.keywords:
                raise self.refused(node, f"{cls.__name__}(…)")
            number = self.number_of(cls, node)
            if issubclass(cls, enum.Flag):
                return nodes.Construct(number, [self.expr(node.args[0])])
            return nodes.Subscript(self.constant({m.value: m for m in cls}, node), self.expr(node.args[0]))
        if cls is object or issubclass(cls, BaseException | typing.Generic):
            raise self.refused(node, f"{cls.__name__}(…)")
        number = self.number_of(cls, node)
        base = derived_from(cls)
        if base is not None:
            if node.keywords:
                raise self.refused(node, f"arguments of {cls.__name__}(…)")
            content = nodes.CallBuiltin(base.__name__, [self._consumed_argument(a) for a in node.args], {})
            return nodes.Construct(number, [content])
        parameters = self.lowering.classes.parameters(cls)
        given: dict[str, Expression] = {}
        for name, argument in zip(parameters.positional, node.args, strict=False):
            if isinstance(argument, ast.Starred):
                raise self.refused(node, f"{cls.__name__}(*…)")
            given[name] = self.expr(argument)
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg in given or keyword.arg not in parameters.keywords:
                raise self.refused(node, f"arguments of {cls.__name__}(…)")
            given[keyword.arg] = self.expr(keyword.value)
        if len(node.args) > len(parameters.positional) or not set(parameters.required) <= set(given):
            raise self.refused(node, f"arguments of {cls.__name__}(…)")
        return self.made(cls, given, node)


def is_pure_name(node: ast.expr) -> bool:
    """Whether an expression is a name with attributes."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
