"""Objects of the user's classes: how they are made, and their attributes."""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import structs

from plait.bmc.program.builder import Label
from plait.bmc.program.definition import ASSERTIONS, Constant, Expr, Read
from plait.bmc.python.functions import UNKNOWN
from plait.bmc.python.heap import Site
from plait.bmc.python.library.threads import Threads
from plait.bmc.python.translation import CONTAINERS, IS_SET
from plait.bmc.python.values import (
    BOOL,
    NO_VALUE,
    Type,
    Value,
    converted,
    described,
    known,
)
from plait.ir.definition import members


class Bound(msgspec.Struct, eq=False):
    """A method of a class that is called on an instance, or a class method."""

    function: types.FunctionType
    owner: type
    receiver: Value | None


class Objects(Threads):
    """Translates attributes."""

    def is_library(self, module: types.ModuleType) -> bool:
        """Whether a module belongs to Python."""
        return module.__name__.partition(".")[0] in sys.stdlib_module_names

    def is_library_class(self, cls: type) -> bool:
        return cls.__module__.partition(".")[0] in sys.stdlib_module_names and not issubclass(cls, BaseException)

    # -- objects of the user's classes ---------------------------------------------------------------------------------

    def construct(self, cls: type, node: ast.Call) -> Value:
        if issubclass(cls, BaseException):
            self.arguments(node)
            return known(cls)
        if issubclass(cls, enum.Enum) or issubclass(cls, (tuple, int, str, *CONTAINERS)):
            raise self.refused(
                node, f"{cls.__name__}(…) is not supported: it derives from a built-in class", "use a plain class"
            )
        if "__new__" in {n for base in cls.__mro__[:-1] for n in vars(base) if not self.is_library_class(base)}:
            raise self.refused(node, f"{cls.__name__} has __new__, which is not supported", "use __init__")
        found, named = self.arguments(node)
        is_thread = issubclass(cls, threading.Thread)
        most = self.of.options.threads if is_thread else None
        site, value, _ = self.allocate(node, cls, cls.__name__.lower(), most=most)
        self.building.append(site)
        self._initialize_object(cls, value, found, named, node)
        self.building.pop()
        return value

    def _initialize_object(
        self, cls: type, value: Value, found: list[Value], named: dict[str, Value], node: ast.Call
    ) -> None:
        init = members(cls, "__init__")
        generated = isinstance(init, types.FunctionType) and init.__code__.co_filename.startswith("<")
        if dataclasses.is_dataclass(cls) and generated:
            self._fill(cls, value, found, named, node)
            return
        if isinstance(init, types.FunctionType):
            self.dispatched(value, "__init__", found, named, node)
        elif found or named:
            raise self.refused(node, f"{cls.__name__} takes no arguments", "define __init__")

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
            assert value.type.site is not None
            self.heap.construct(self.building[-1], field.name)
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
        found = {cls: members(cls, name) for cls in self.heap.classes(site)}
        key = self.heap.field(site, name)
        if self.heap.type(key).category != "never" and not any(isinstance(f, property) for f in found.values()):
            self._class_defaults(site, name)
            return self._read_field(site, name, reference)
        first = next(iter(found.values()))
        if isinstance(first, types.FunctionType | classmethod | staticmethod):
            receiver = structs.replace(value.type, optional=False)
            return Value(Type("method", items=(receiver,), name=name), value.parts)
        if UNKNOWN in found.values():
            if not self.heap.changed and self.heap.settled:
                raise self.refused(node, f"{described(value.type)} has no attribute {name}", "assign it in __init__")
            return NO_VALUE
        if len(found) == 1 or (len({id(f) for f in found.values()}) == 1 and not isinstance(first, property)):
            return self._of_class(value, next(iter(found)), name, node)
        return self._of_some_class(value, reference, name, node)

    def _read_field(self, site: Site, name: str, reference: Expr) -> Value:
        t = self.heap.type(self.heap.field(site, name))
        cells = self.field_cells(site, name, reference)
        if not self.heap.unsure(site, name):
            return self.read(t, cells)
        there = Read(*self.cell(site, name + IS_SET, reference, BOOL))
        result, copy = self.copied(Value(t, tuple(Read(v, i) for v, i in cells)))
        text = f"AttributeError: the object has no attribute {name} yet"
        self.guarded(there, AttributeError, ASSERTIONS, text, copy, atomic=False)
        return result

    def _is_new(self, node: ast.AST, site: Site) -> bool:
        """Whether an attribute of the object that is being made is assigned."""
        if not self.building or self.building[-1] not in self.heap.pool(site) or not isinstance(node, ast.Attribute):
            return False
        names = [x.arg for x in self.frame.function.node.args.args]
        return isinstance(node.value, ast.Name) and node.value.id == names[0] if names else False

    def _of_class(self, value: Value, cls: type, name: str, node: ast.AST) -> Value:
        """A property or an attribute of a class that an object has."""
        found = members(cls, name)
        if isinstance(found, property):
            assert found.fget is not None
            return self.call_function(found.fget, [value], {}, node, cls)
        return self.class_attribute(cls, name, node)

    def _of_some_class(self, value: Value, reference: Expr, name: str, node: ast.AST) -> Value:
        """The same, if the object can have several classes."""
        site = value.type.site
        assert site is not None
        ways: list[tuple[Label, Callable[[], Value]]] = []
        for member, condition in self.member(site, reference):
            here, following = self.code.label(), self.code.label()
            self.code.branch(condition, here, following)
            ways.append((here, functools.partial(self._of_class, value, member.cls, name, node)))
            if self.code.reachable or not isinstance(condition, Constant):
                self.code.mark(following)
        return self.merged(node, name, ways)

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
            self.call_function(descriptor.fset, [value, content], {}, node, self.heap.classes(t.site)[0])
            return
        self._class_defaults(t.site, name)
        to = self.joined(self.heap.field(t.site, name), content.type, name)
        cells = self.field_cells(t.site, name, reference)
        parts = converted(content, to, self.heap)
        if self._is_new(node, t.site):
            self.heap.construct(self.building[-1], name)
        if self.heap.unsure(t.site, name):
            cells = [*cells, self.cell(t.site, name + IS_SET, reference, BOOL)]
            parts = (*parts, Constant(True))
        self.write(cells, parts, content.type, to)

    def _set_static(self, owner: Any, name: str, content: Value, node: ast.AST) -> None:
        if isinstance(owner, types.ModuleType) and not self.is_library(owner):
            self.set_global(vars(owner), name, content)
        elif isinstance(owner, type) and not self.is_library_class(owner):
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
            if issubclass(owner, BaseException):
                what = f"the attribute {name} of an exception is not supported"
                raise self.refused(node, what, "write the value to a variable before the exception is raised")
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
            if members(cls, "__eq__") is not object.__dict__["__eq__"] and not self.is_library_class(cls):
                raise self.refused(
                    node, f"{cls.__name__} defines ==, which is not supported", "compare with `is`, or fields"
                )
