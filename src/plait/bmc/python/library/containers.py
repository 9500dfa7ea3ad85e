"""Lists, deques, dicts and sets: each call of a method is one operation, as CPython's global lock guarantees.

A container has a length and a number of cells. Cells after the last item are 0, so equal contents are equal states. An
item is read or written by a plain access, as an attribute is; a call of a method is atomic.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import msgspec
from msgspec import structs

from plait.bmc.program.arithmetic import operation
from plait.bmc.program.definition import (
    ASSERTIONS,
    BOUNDS,
    LIMITS,
    Action,
    Branch,
    Choice,
    Constant,
    Ensure,
    Expr,
    Read,
    Set,
    Variable,
)
from plait.bmc.python.code import ThreadCode
from plait.bmc.python.heap import Site
from plait.bmc.python.translation import CONTAINERS
from plait.bmc.python.values import BOOL, INT, NO_VALUE, NONE_VALUE, Type, Value, converted, described, layout, scalar

ZERO, ONE = Constant(0), Constant(1)


class Items(msgspec.Struct):
    """The cells of one container."""

    site: Site
    base: Expr
    """The position of its first cell."""
    extent: int
    length: tuple[Variable, Expr | None]

    @property
    def count(self) -> Expr:
        """The number of items."""
        return Read(*self.length)

    def counted(self, change: int) -> Action:
        """Change the number of items."""
        return Set(*self.length, operation("+", self.count, Constant(change)))

    def at(self, index: Expr) -> Expr:
        """The position of an item."""
        return operation("+", self.base, index) if self.base != ZERO else index


class Containers(ThreadCode):
    """Translates operations of containers."""

    def is_container(self, t: Type) -> bool:
        """Whether the objects of a type are containers of Python."""
        return t.category == "ref" and t.site is not None and issubclass(t.site.cls, CONTAINERS)

    def items(self, value: Value) -> Items:
        """The cells of a container."""
        site = value.type.site
        assert site is not None
        reference = self.reference(value, "an item")
        extent = self.extent(site)
        base = operation("*", operation("-", reference, ONE), Constant(extent))
        return Items(site, base, extent, self.cell(site, "length", reference, INT))

    def extent(self, site: Site) -> int:
        """The number of cells of each container of a pool."""
        root = self.heap.find(site)
        most = max(1, *(member.extent for member in self.heap.pool(site)))
        return max(most, self.of.options.objects) if root.grows else most

    def grow(self, value: Value) -> None:
        """The program adds items to a container."""
        assert value.type.site is not None
        root = self.heap.find(value.type.site)
        if not root.grows:
            root.grows = self.heap.changed = True

    # -- cells ---------------------------------------------------------------------------------------------------------

    def cells(self, items: Items, index: Expr, field: str = "item") -> list[tuple[Variable, Expr | None]]:
        """The cells of an item."""
        where = items.at(index)
        return [(v, where) for v in self.of.fields(items.site, field, extent=items.extent)]

    def content(self, items: Items, index: Expr, field: str = "item") -> Value:
        """An item as expressions over shared cells: part of one operation."""
        t = self.heap.type(self.heap.field(items.site, field))
        return Value(t, tuple(Read(v, i) for v, i in self.cells(items, index, field)))

    def put(self, items: Items, index: Expr, value: Value, field: str = "item") -> list[Action]:
        """Write an item."""
        t = self.joined(self.heap.field(items.site, field), value.type, "an item")
        parts = converted(value, t, self.heap)
        return [Set(v, i, part) for (v, i), part in zip(self.cells(items, index, field), parts, strict=False)]

    def erase(self, items: Items, index: Expr, field: str = "item") -> list[Action]:
        """The cell of an item that is removed is 0 again."""
        return [Set(v, i, Constant(False) if v.kind == "bool" else ZERO) for v, i in self.cells(items, index, field)]

    def fields_of_items(self, items: Items) -> list[str]:
        """The fields that have a cell for each item."""
        if issubclass(items.site.cls, dict):
            return ["key", "item"]
        return ["item"]

    def taken(self, items: Items, index: Expr) -> list[Action]:
        """Remove the item at an index: the following items move."""
        found: list[Action] = []
        for field in self.fields_of_items(items):
            for at in range(items.extent - 1):
                here, there = self.cells(items, Constant(at), field), self.cells(items, Constant(at + 1), field)
                for (v, i), (_, j) in zip(here, there, strict=True):
                    moved = operation(">=", Constant(at), index)
                    value = self.choice(moved, Read(v, j), Read(v, i))
                    if value != Read(v, i):
                        found.append(Set(v, i, value))
            found += self.erase(items, Constant(items.extent - 1), field)
        return [*found, items.counted(-1)]

    def copied(self, value: Value) -> tuple[Value, list[Action]]:
        """A copy of a value in temporary variables, made by actions."""
        kinds = layout(value.type, self.heap)
        temporaries = [self.code.temporary(kind) for kind in kinds]
        actions: list[Action] = [Set(t, None, p) for t, p in zip(temporaries, value.parts, strict=False)]
        return Value(value.type, tuple(Read(t) for t in temporaries)), actions

    def room(self, items: Items) -> Ensure:
        """The check that there is room for one more item."""
        text = f"a {items.site.cls.__name__} has more than {items.extent} items (the limit is the option objects)"
        return Ensure(operation("<", items.count, Constant(items.extent)), LIMITS, text)

    def normal(self, items: Items, index: Expr) -> tuple[Expr, Expr]:
        """An index from the start, and whether it is in range."""
        if isinstance(index, Constant):
            if index.value >= 0:
                return index, operation("<", index, items.count)
            place = operation("+", items.count, index)
            return place, operation(">=", place, ZERO)
        place = Choice(operation("<", index, ZERO), operation("+", index, items.count), index)
        inside = operation("&&", operation(">=", place, ZERO), operation("<", place, items.count))
        return place, inside

    def found_at(self, items: Items, value: Value, field: str, node: ast.AST) -> Expr:
        """The first index of a value, -1 if it is not there."""
        result: Expr = Constant(-1)
        if self.heap.type(self.heap.field(items.site, field)).category == "never":
            return result
        for at in range(items.extent - 1, -1, -1):
            here = operation("<", Constant(at), items.count)
            same = self.same(self.content(items, Constant(at), field), value, node)
            result = self.choice(operation("&&", here, same), Constant(at), result)
        return result

    # -- displays ------------------------------------------------------------------------------------------------------

    def made(self, node: ast.AST, cls: type, values: Sequence[Value], keys: Sequence[Value] | None = None) -> Value:
        """A new container with items."""
        site, value, _ = self.allocate(node, cls, cls.__name__)
        if site.extent < len(values):
            site.extent = len(values)
            self.heap.changed = True
        items = self.items(value)
        if keys is not None:
            for key, content in zip(keys, values, strict=True):
                self.emit(self.entry(items, key, content, node), atomic=True)
            return value
        actions: list[Action] = []
        for at, content in enumerate(values):
            if content.type.category != "never":
                actions += self.put(items, Constant(at), content)
        self.emit([*actions, Set(*items.length, Constant(len(values)))])
        return value

    def _list(self, node: ast.List) -> Value:
        if any(isinstance(item, ast.Starred) for item in node.elts):
            raise self.refused(node, "* in a list is not supported", "append the items one by one")
        return self.made(node, list, [self.keep(self.expr(item)) for item in node.elts])

    def _dict(self, node: ast.Dict) -> Value:
        if None in node.keys:
            raise self.refused(node, "** in a dict is not supported", "assign the keys one by one")
        pairs = [
            (self.keep(self.expr(k)), self.keep(self.expr(v))) for k, v in zip(node.keys, node.values, strict=True) if k
        ]
        return self.made(node, dict, [v for _, v in pairs], [k for k, _ in pairs])

    def _set(self, node: ast.Set) -> Value:
        value = self.made(node, set, [])
        self.grow(value)
        for item in node.elts:
            self.container_method(value, "add", [self.expr(item)], {}, node)
        return value

    def entry(self, items: Items, key: Value, content: Value, node: ast.AST) -> list[Action]:
        """Assign an item of a dict."""
        if "never" in (key.type.category, content.type.category):
            return []
        self.put(items, ZERO, content)
        added_key = self.put(items, items.count, key, "key")
        place = self.code.temporary()
        here = Read(place)
        new = [self.room(items), *added_key, *self.put(items, items.count, content), items.counted(1)]
        old = self.put(items, here, content)
        found = self.found_at(items, key, "key", node)
        return [Set(place, None, found), Branch(operation(">=", here, ZERO), tuple(old), tuple(new))]

    # -- items ---------------------------------------------------------------------------------------------------------

    def get_item(self, value: Value, key: Value, node: ast.AST) -> Value:
        """`value[key]`"""
        items = self.items(value)
        if issubclass(items.site.cls, dict):
            place = self.code.temporary()
            find = Set(place, None, self.found_at(items, key, "key", node))
            result, copy = self.copied(self.content(items, Read(place)))
            there = operation(">=", Read(place), ZERO)
            text = "KeyError: the key is not in the dict"
            self.guarded(there, KeyError, BOUNDS, text, copy, before=[find], atomic=False)
            return result
        where, inside = self.normal(items, self.number(key, node))
        result, copy = self.copied(self.content(items, where))
        self.guarded(inside, IndexError, BOUNDS, "IndexError: list index out of range", copy, atomic=False)
        return result

    def unpacked(self, value: Value, count: int, node: ast.AST) -> list[Value]:
        """The items of a list, for so many variables: one operation."""
        items = self.items(value)
        if not issubclass(items.site.cls, list):
            raise self.refused(node, f"a {described(value.type)} is unpacked", "unpack a tuple or a list")
        found, actions = [], []
        for number in range(min(count, items.extent)):
            result, copy = self.copied(self.content(items, Constant(number)))
            found.append(result)
            actions += copy
        text = f"ValueError: the list does not have {count} items"
        enough = operation("==", items.count, Constant(count))
        self.guarded(enough, ValueError, ASSERTIONS, text, actions, atomic=True)
        return found + [NO_VALUE] * (count - len(found))

    def set_item(self, value: Value, key: Value, content: Value, node: ast.AST) -> None:
        """`value[key] = content`"""
        if "never" in (key.type.category, content.type.category):
            return
        items = self.items(value)
        if issubclass(items.site.cls, dict):
            self.grow(value)
            self.emit(self.entry(items, key, content, node))
            return
        where, inside = self.normal(items, self.number(key, node))
        text = "IndexError: list assignment index out of range"
        self.guarded(inside, IndexError, BOUNDS, text, self.put(items, where, content), atomic=False)

    def delete_item(self, value: Value, key: Value, node: ast.AST) -> None:
        """`del value[key]`"""
        self.container_method(value, "__delitem__", [key], {}, node)

    # -- methods -------------------------------------------------------------------------------------------------------

    def container_method(
        self, value: Value, name: str, given: list[Value], named: dict[str, Value], node: ast.AST
    ) -> Value:
        """Call a method of a container: one operation."""
        site = value.type.site
        assert site is not None
        if named or any(v.type.category == "never" for v in given):
            if named:
                raise self.refused(node, f"{name} with named arguments is not supported", "pass them by position")
            return NO_VALUE
        kind = "dict" if issubclass(site.cls, dict) else "set" if issubclass(site.cls, set) else "sequence"
        method: Callable[..., Value] | None = getattr(self, f"_{kind}_{name.strip('_')}", None)
        if method is None:
            raise self.refused(
                node, f"the method {name} of {site.cls.__name__} is not supported", "use append, pop, len, in, items"
            )
        return method(value, self.items(value), node, *given)

    def _sequence_append(self, value: Value, items: Items, node: ast.AST, content: Value) -> Value:
        self.grow(value)
        self.emit([self.room(items), *self.put(items, items.count, content), items.counted(1)], atomic=True)
        return NONE_VALUE

    def _sequence_appendleft(self, value: Value, items: Items, node: ast.AST, content: Value) -> Value:
        return self._sequence_insert(value, items, node, Value(Type("int", constant=0)), content)

    def _sequence_insert(self, value: Value, items: Items, node: ast.AST, index: Value, content: Value) -> Value:
        self.grow(value)
        put = self.put(items, ZERO, content)
        where = self.number(index, node)
        place = self.code.temporary()
        clipped = self.choice(operation("<", where, items.count), where, items.count)
        low = self.choice(operation("<", where, ZERO), operation("+", where, items.count), clipped)
        at_least = self.choice(operation("<", low, ZERO), ZERO, low)
        actions: list[Action] = [self.room(items), Set(place, None, at_least)]
        del put
        for at in range(items.extent - 1, 0, -1):
            here, before = self.cells(items, Constant(at)), self.cells(items, Constant(at - 1))
            for (v, i), (_, j) in zip(here, before, strict=True):
                moved = operation(">", Constant(at), Read(place))
                actions.append(Set(v, i, self.choice(moved, Read(v, j), Read(v, i))))
        self.emit([*actions, *self.put(items, Read(place), content), items.counted(1)], atomic=True)
        return NONE_VALUE

    def _sequence_extend(self, value: Value, items: Items, node: ast.AST, other: Value) -> Value:
        self.grow(value)
        if other.type.category == "tuple":
            for item in self.tuple_items(other):
                self._sequence_append(value, items, node, item)
            return NONE_VALUE
        if not self.is_container(other.type) or issubclass(other.type.site.cls, dict):  # type: ignore[union-attr]
            raise self.refused(node, f"extend with a {described(other.type)} is not supported", "extend with a list")
        more = self.items(other)
        count = self.code.temporary()
        actions: list[Action] = [Set(count, None, more.count)]
        for at in range(more.extent):
            content = self.content(more, Constant(at))
            if content.type.category != "never":
                put = (self.room(items), *self.put(items, items.count, content), items.counted(1))
                actions.append(Branch(operation("<", Constant(at), Read(count)), put, ()))
        self.emit(actions, atomic=True)
        return NONE_VALUE

    def _removal(self, items: Items, where: Expr, inside: Expr, cls: type, text: str) -> Value:
        """Remove an item, which is the result."""
        place = self.code.temporary()
        result, copy = self.copied(self.content(items, Read(place)))
        last = where == operation("+", items.count, Constant(-1))
        remove = [*self.erase(items, Read(place)), items.counted(-1)] if last else self.taken(items, Read(place))
        self.guarded(inside, cls, BOUNDS, text, [Set(place, None, where), *copy, *remove])
        return result

    def _sequence_pop(self, value: Value, items: Items, node: ast.AST, index: Value | None = None) -> Value:
        number = Constant(-1) if index is None else self.number(index, node)
        where, inside = self.normal(items, number)
        return self._removal(items, where, inside, IndexError, "IndexError: pop from an empty list, or out of range")

    def _sequence_popleft(self, value: Value, items: Items, node: ast.AST) -> Value:
        where, inside = self.normal(items, ZERO)
        return self._removal(items, where, inside, IndexError, "IndexError: pop from an empty deque")

    def _sequence_delitem(self, value: Value, items: Items, node: ast.AST, index: Value) -> Value:
        where, inside = self.normal(items, self.number(index, node))
        self._removal(items, where, inside, IndexError, "IndexError: list assignment index out of range")
        return NONE_VALUE

    def _sequence_clear(self, value: Value, items: Items, node: ast.AST) -> Value:
        actions: list[Action] = []
        for field in self.fields_of_items(items):
            for at in range(items.extent):
                actions += self.erase(items, Constant(at), field)
        self.emit([*actions, Set(*items.length, ZERO)], atomic=True)
        return NONE_VALUE

    _dict_clear = _set_clear = _sequence_clear

    def _sequence_index(self, value: Value, items: Items, node: ast.AST, content: Value) -> Value:
        place = self.code.temporary()
        self.emit([Set(place, None, self.found_at(items, content, "item", node))], atomic=True)
        self.check(operation(">=", Read(place), ZERO), ValueError, BOUNDS, "ValueError: the item is not in the list")
        return Value(INT, (Read(place),))

    def _sequence_remove(self, value: Value, items: Items, node: ast.AST, content: Value) -> Value:
        where = self.found_at(items, content, "item", node)
        inside = operation(">=", where, ZERO)
        self._removal(items, where, inside, ValueError, "ValueError: the item to remove is not there")
        return NONE_VALUE

    def _set_remove(self, value: Value, items: Items, node: ast.AST, content: Value) -> Value:
        where = self.found_at(items, content, "item", node)
        self._removal(items, where, operation(">=", where, ZERO), KeyError, "KeyError: the item to remove is not there")
        return NONE_VALUE

    def _set_discard(self, value: Value, items: Items, node: ast.AST, content: Value) -> Value:
        place = self.code.temporary()
        found = Set(place, None, self.found_at(items, content, "item", node))
        there = operation(">=", Read(place), ZERO)
        self.emit([found, Branch(there, tuple(self.taken(items, Read(place))), ())], atomic=True)
        return NONE_VALUE

    def _set_add(self, value: Value, items: Items, node: ast.AST, content: Value) -> Value:
        self.grow(value)
        put = [self.room(items), *self.put(items, items.count, content), items.counted(1)]
        absent = operation("<", self.found_at(items, content, "item", node), ZERO)
        self.emit([Branch(absent, tuple(put), ())], atomic=True)
        return NONE_VALUE

    def _dict_get(self, value: Value, items: Items, node: ast.AST, key: Value, default: Value = NONE_VALUE) -> Value:
        return self._found_or(value, items, node, key, default, remove=False)

    def _found_or(
        self, value: Value, items: Items, node: ast.AST, key: Value, default: Value, *, remove: bool
    ) -> Value:
        place = self.code.temporary()
        result, copy = self.copied(self.content(items, Read(place)))
        there = operation(">=", Read(place), ZERO)
        gone = self.taken(items, Read(place)) if remove else []
        found = Set(place, None, self.found_at(items, key, "key", node))
        self.emit([found, Branch(there, (*copy, *gone), ())], atomic=True)
        then, otherwise = self.code.label(), self.code.label()
        self.code.branch(there, then, otherwise)
        return self.merged(node, "get", [(then, lambda: result), (otherwise, lambda: default)])

    def _dict_setdefault(self, value: Value, items: Items, node: ast.AST, key: Value, default: Value) -> Value:
        self.grow(value)
        entry = self.entry(items, key, default, node)
        place = self.code.temporary()
        there = operation(">=", Read(place), ZERO)
        result, copy = self.copied(self.content(items, Read(place)))
        find = Set(place, None, self.found_at(items, key, "key", node))
        self.emit([find, Branch(there, (), tuple(entry)), find, *copy], atomic=True)
        return result

    def _dict_pop(self, value: Value, items: Items, node: ast.AST, key: Value, default: Value | None = None) -> Value:
        if default is not None:
            return self._found_or(value, items, node, key, default, remove=True)
        where = self.found_at(items, key, "key", node)
        return self._removal(items, where, operation(">=", where, ZERO), KeyError, "KeyError: the key is not there")

    def _dict_delitem(self, value: Value, items: Items, node: ast.AST, key: Value) -> Value:
        self._dict_pop(value, items, node, key)
        return NONE_VALUE

    # -- questions -----------------------------------------------------------------------------------------------------

    def length(self, value: Value) -> Expr:
        """`len(value)`"""
        items = self.items(value)
        return scalar(self.read(INT, [items.length], atomic=True), self.heap)

    def contains(self, value: Value, content: Value, node: ast.AST) -> Expr:
        """`content in value`"""
        if value.type.category == "tuple":
            found: Expr = Constant(False)
            for item in self.tuple_items(value):
                found = operation("||", found, self.same(item, content, node))
            return found
        if not self.is_container(value.type):
            raise self.refused(
                node, f"`in` of a {described(value.type)} is not supported", "use lists, dicts, sets, tuples"
            )
        items = self.items(value)
        field = "key" if issubclass(items.site.cls, dict) else "item"
        place = self.code.temporary("bool")
        there = operation(">=", self.found_at(items, content, field, node), ZERO)
        self.emit([Set(place, None, there)], atomic=True)
        return Read(place)

    def same_containers(self, left: Value, right: Value, node: ast.AST) -> Expr:
        """`left == right` of lists."""
        if not self.is_container(right.type):
            return Constant(False)
        a, b = self.items(left), self.items(right)
        if any(issubclass(x.site.cls, dict | set) for x in (a, b)):
            raise self.refused(node, "== of dicts and sets is not supported", "compare their items")
        never = any(self.heap.type(self.heap.field(x.site, "item")).category == "never" for x in (a, b))
        found: Expr = operation("==", a.count, b.count)
        for at in range(0 if never else min(a.extent, b.extent)):
            one, two = self.content(a, Constant(at)), self.content(b, Constant(at))
            beyond = operation(">=", Constant(at), a.count)
            found = operation("&&", found, operation("||", beyond, self.same(one, two, node)))
        result = self.code.temporary("bool")
        self.emit([Set(result, None, found)], atomic=True)
        return Read(result)

    def truth_of_object(self, value: Value) -> Expr:
        """The truth of an object: of a container, whether it has items."""
        if not self.is_container(value.type):
            return self.test(value)
        if not value.type.optional:
            return operation(">", self.length(value), ZERO)
        some, empty = self.code.label(), self.code.label()
        self.code.branch(self.test(value), some, empty)
        present = Value(structs.replace(value.type, optional=False), value.parts)
        merged = self.merged(
            self.node,
            "truth",
            [
                (some, lambda: Value(BOOL, (operation(">", self.length(present), ZERO),))),
                (empty, lambda: Value(Type("bool", constant=0))),
            ],
        )
        return self.test(merged)
