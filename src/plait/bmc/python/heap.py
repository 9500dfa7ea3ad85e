"""The heap: the objects of a program, in pools.

A *site* is a place that makes objects: a call in the source, in one context, or an object that exists after the import.
Objects of sites that can be in the same variable belong to one *pool* and are numbered from 1 in it. Each field of the
objects of a pool is an array.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec
from msgspec import structs

from plait.bmc.python.values import NEVER, Type, join


class Site(msgspec.Struct, eq=False):
    """A place that makes objects of one class."""

    key: Hashable
    cls: type
    name: str
    number: int
    """Sites are ordered by their discovery."""
    capacity: int = 1
    """The number of objects that it can make."""
    parent: Site | None = None
    """In the forest of pools."""
    members: list[Site] = msgspec.field(default_factory=list)
    origin: Any = None
    """The object, if it exists after the import."""
    extent: int = 0
    """Of a container: the number of items that it can hold."""
    grows: bool = False
    """Of a container: whether the program adds items."""
    released: bool = False
    """Of a lock that any thread may release: whether the program does so outside of `with`."""

    def __repr__(self) -> str:
        return f"<site {self.name}>"


class Heap:
    """All sites, their pools, and the types of variables and fields. It grows until nothing is new."""

    def __init__(self) -> None:
        self.sites: dict[Hashable, Site] = {}
        self.types: dict[Hashable, Type] = {}
        self.changed = False
        self.texts: dict[Any, int] = {}
        """Texts and members of enums have numbers."""
        self.contexts: dict[Hashable, int] = {}
        self.functions: dict[Hashable, Any] = {}
        self.unrolled: set[Hashable] = set()
        """Loops that make objects."""
        self.constructed: set[tuple[Site, str]] = set()
        """The attributes that objects of a site get when they are made."""
        self.settled = False
        """Whether the last pass found nothing new: then, what has no type yet is an error."""

    def restarted(self) -> Heap:
        """The same, without what was found while fewer loops were unrolled."""
        found = Heap()
        found.texts, found.contexts, found.functions = self.texts, self.contexts, self.functions
        found.unrolled, found.changed = self.unrolled, True
        return found

    def site(self, key: Hashable, cls: type, name: str, capacity: int = 1, origin: Any = None) -> Site:
        """The site of this key."""
        found = self.sites.get(key)
        if found is None:
            found = Site(key, cls, name, len(self.sites), origin=origin)
            found.members.append(found)
            self.sites[key] = found
            self.changed = True
        if found.capacity < capacity:
            found.capacity = capacity
            self.changed = True
        return found

    def find(self, site: Site) -> Site:
        """The site that stands for the pool."""
        while site.parent is not None:
            site = site.parent
        return site

    def unite(self, a: Site, b: Site) -> Site:
        """Make one pool of two."""
        a, b = self.find(a), self.find(b)
        if a is b:
            return a
        if b.number < a.number:
            a, b = b, a
        b.parent = a
        a.members = sorted([*a.members, *b.members], key=lambda s: s.number)
        a.grows = a.grows or b.grows
        self.changed = True
        for name in {key[2] for key in self.types if isinstance(key, tuple) and key[:2] == ("field", b)}:
            self.assign(("field", a, name), self.types.pop(("field", b, name)))
        return a

    def pool(self, site: Site) -> list[Site]:
        """All sites of the pool."""
        return self.find(site).members

    def size(self, site: Site) -> int:
        """The number of objects of the pool."""
        return sum(member.capacity for member in self.pool(site))

    def only(self, site: Site) -> bool:
        """Whether the pool has one object."""
        return self.size(site) == 1

    def first(self, site: Site) -> int:
        """The number of the first object of a site in its pool."""
        at = 1
        for member in self.pool(site):
            if member is site:
                break
            at += member.capacity
        return at

    def classes(self, site: Site) -> list[type]:
        """The classes of the objects of a pool."""
        return list(dict.fromkeys(member.cls for member in self.pool(site)))

    # -- types ---------------------------------------------------------------------------------------------------------

    def field(self, site: Site, name: str) -> tuple[str, Site, str]:
        """The key of the type of a field."""
        return ("field", self.find(site), name)

    def type(self, key: Hashable) -> Type:
        """The type of a variable."""
        return self._current(self.types.get(key, NEVER))

    def _current(self, t: Type) -> Type:
        if t.site is not None and t.site.parent is not None:
            return structs.replace(t, site=self.find(t.site))
        if t.items:
            items = tuple(map(self._current, t.items))
            return t if items == t.items else structs.replace(t, items=items)
        return t

    def assign(self, key: Hashable, t: Type) -> Type:
        """A variable can hold a value of this type too."""
        before = self.type(key)
        after = self._current(join(before, self._current(t), self))
        if after != before:
            self.types[key] = after
            self.changed = True
        return after

    def construct(self, site: Site, name: str) -> None:
        """An object of a site gets this attribute when it is made."""
        if (site, name) not in self.constructed:
            self.constructed.add((site, name))
            self.changed = True

    def unsure(self, site: Site, name: str) -> bool:
        """Whether an object of the pool may not have this attribute yet."""
        return any(not self._has(member, name) for member in self.pool(site))

    def _has(self, member: Site, name: str) -> bool:
        if hasattr(member.cls, name) or (member, name) in self.constructed:
            return True
        return member.origin is not None and name in vars(member.origin)

    # -- texts ---------------------------------------------------------------------------------------------------------

    def text(self, value: Any) -> int:
        """The number of a text or of a member of an enum, from 1."""
        return self.texts.setdefault(value, len(self.texts) + 1)
